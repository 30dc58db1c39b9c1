//! PMTiles: whether an archive is whole, and of tiles that browsers can read.

const EXPECTED: &str = "a PMTiles archive of version 3";
/// What archives begin with.
pub(super) const MAGIC: &[u8] = b"PMTiles";
/// <https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md>, section 3.
pub(super) const HEADER_LEN: usize = 127;
/// Where the header has offset and length of each part of the file.
const PARTS: [(&str, usize); 4] =
    [("root directory", 8), ("metadata", 24), ("leaf directories", 40), ("tiles", 56)];

/// Judges an archive of that length by its header.
///
/// # Errors
/// What was found and what is expected, as one line.
pub(super) fn judge(header: &[u8], file_len: u64) -> Result<(), String> {
    let Some(header) = header.first_chunk::<HEADER_LEN>() else {
        return Err(format!("found {file_len} bytes, expected {EXPECTED}, which has {HEADER_LEN} at least"));
    };
    if header[7] != 3 {
        return Err(format!("found PMTiles of version {}, expected {EXPECTED}", header[7]));
    }
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    for (part, at) in PARTS {
        let end = number(at).checked_add(number(at + 8));
        if end.is_none_or(|end| end > file_len) {
            return Err(format!(
                "found {file_len} bytes, of which the {part} would end at byte {}, expected a whole archive: was it copied to its end?",
                end.map_or_else(|| "2^64 and more".to_owned(), |end| end.to_string())
            ));
        }
    }
    // 0 unknown, 1 none, 2 gzip, 3 brotli, 4 zstandard.
    for (what, at) in [("directories", 97), ("tiles", 98)] {
        if !matches!(header[at], 1 | 2) {
            let found = header[at];
            return Err(format!(
                "found {what} of compression {found}, expected none (1) or gzip (2), which browsers read"
            ));
        }
    }
    // 1 vectors, 2 PNG, 3 JPEG, 4 WebP, 5 AVIF.
    if !matches!(header[99], 1..=5) {
        return Err(format!("found tiles of kind {}, expected vectors (1) or pictures (2 to 5)", header[99]));
    }
    if header[100] > header[101] {
        return Err(format!("found zooms {} to {}, expected the least first", header[100], header[101]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::check;

    /// Made by the writer of the PMTiles project (`tests/browser/tiles/make.py`).
    const PICTURES: &[u8] = include_bytes!("../../../../tests/browser/tiles/pictures.pmtiles");
    const VECTORS: &[u8] = include_bytes!("../../../../tests/browser/tiles/vectors.pmtiles");

    fn checked(bytes: &[u8]) -> Result<(), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("field.pmtiles");
        std::fs::write(&path, bytes).expect("written");
        check(&path)
    }

    #[test]
    fn archives_of_pictures_and_of_vectors_are_taken() {
        assert_eq!(checked(PICTURES), Ok(()));
        assert_eq!(checked(VECTORS), Ok(()));
    }

    #[test]
    fn what_the_page_cannot_open_is_named() {
        let with = |at: usize, value: u8| {
            let mut bytes = PICTURES.to_vec();
            bytes[at] = value;
            bytes
        };
        let whole = PICTURES.len();
        for (bytes, says) in [
            (
                PICTURES[..whole - 1].to_vec(),
                "of which the tiles would end at byte 833, expected a whole archive",
            ),
            (
                PICTURES[..100].to_vec(),
                "found 100 bytes, expected a PMTiles archive of version 3, which has 127 at least",
            ),
            (with(63, 0x7f), "the tiles would end at byte 9151314442816"),
            (
                [&PICTURES[..56], &[0xff; 16], &PICTURES[72..]].concat(),
                "the tiles would end at byte 2^64 and more",
            ),
            (with(7, 2), "found PMTiles of version 2, expected a PMTiles archive of version 3"),
            (with(0, b'p'), "found a file of another kind"),
            (with(97, 3), "found directories of compression 3, expected none (1) or gzip (2)"),
            (with(98, 4), "found tiles of compression 4"),
            (with(99, 0), "found tiles of kind 0, expected vectors (1) or pictures (2 to 5)"),
            (with(100, 16), "found zooms 16 to 15"),
        ] {
            let found = checked(&bytes).expect_err(says);
            assert!(found.contains(says), "{found}");
        }
        assert_eq!(
            checked(b"PMTi"),
            Err("found a file of another kind, expected a PMTiles archive of version 3, or MBTiles"
                .to_owned())
        );
        let missing = check(Path::new("/nowhere/field.pmtiles")).expect_err("no such file");
        assert!(missing.contains("expected a PMTiles archive of version 3"), "{missing}");
    }
}
