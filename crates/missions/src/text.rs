//! Bytes of a file as text: UTF-8, UTF-16 with a byte order mark, Latin-1, and the document of a KMZ archive.

use std::{
    borrow::Cow,
    io::{Cursor, Read as _},
};

use crate::{
    Problem,
    error::{Fault, shown},
};

/// The first bytes of an archive.
const ARCHIVE: &[u8] = b"PK\x03\x04";
/// Entries of an archive that are searched for its document.
const ENTRIES_MAX: usize = 1_000;

/// Decodes the text of a file that programs for Windows or older ones may have written: UTF-8, UTF-16 with a byte order
/// mark, or Latin-1. A byte order mark is not part of the text.
///
/// # Errors
/// The line, from 1, of bytes that are no text.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, usize> {
    let line_of = |bytes: &[u8]| 1 + bytes.iter().filter(|&&byte| byte == b'\n').count();
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks(2).map(|pair| match *pair {
            [first, second] => unit([first, second]),
            // Half a character is none.
            _ => 0xd800,
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.map(Cow::Owned).map_err(|_| line_of(bytes))
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        _ => {}
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text))),
        Err(error) => {
            let is_control = |byte: &u8| matches!(byte, 0..=8 | 14..=31 | 127);
            match bytes.iter().position(is_control) {
                Some(at) => Err(line_of(&bytes[..at.max(error.valid_up_to())])),
                None => Ok(Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect())),
            }
        }
    }
}

/// Decodes the text of a mission file, or of the document in a KMZ archive.
pub(crate) fn of_file(bytes: &[u8], bytes_max: u64) -> Result<Cow<'_, str>, Fault> {
    let not_text = |line| Fault::line(line, Problem::NotText);
    if !bytes.starts_with(ARCHIVE) {
        return decode(bytes).map_err(not_text);
    }
    let document = document(bytes, bytes_max)?;
    decode(&document).map(|text| Cow::Owned(text.into_owned())).map_err(not_text)
}

/// Returns the index of the document of a KMZ archive: its `doc.kml`, or else its only `.kml` file, at the root before folders.
///
/// # Errors
/// No file, or several without a `doc.kml`: any of them could be the mission.
fn index_of_document<'a>(names: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let mut found: [Vec<(usize, &str)>; 2] = Default::default();
    for (index, name) in names.enumerate() {
        if name.eq_ignore_ascii_case("doc.kml") {
            return Ok(index);
        }
        if name.to_ascii_lowercase().ends_with(".kml") {
            found[usize::from(name.contains('/'))].push((index, name));
        }
    }
    let [root, folders] = found;
    match if root.is_empty() { folders.as_slice() } else { root.as_slice() } {
        [] => Err("no .kml file in it".into()),
        [(index, _)] => Ok(*index),
        [(_, one), (_, other), ..] => Err(format!("{one} and {other} and no doc.kml in it")),
    }
}

/// Reads the document of a KMZ archive; no other member is opened.
fn document(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>, Fault> {
    let broken = |error: &dyn std::fmt::Display| {
        Fault::file(Problem::Unexpected {
            found: format!("an archive that cannot be read ({})", shown(&error.to_string())).into(),
            expected: "a KMZ archive with a KML document".into(),
        })
    };
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let names = (0..archive.len().min(ENTRIES_MAX)).map(|index| archive.name_for_index(index).unwrap_or(""));
    let index = index_of_document(names).map_err(|why| broken(&why))?;
    let entry = archive.by_index(index).map_err(|error| broken(&error))?;
    let mut text = Vec::new();
    // One byte more than allowed shows that it is too large, whatever the archive states.
    let read = entry.take(bytes_max.saturating_add(1)).read_to_end(&mut text);
    read.map_err(|error| broken(&error))?;
    crate::fits(text.len() as u64, bytes_max)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_an_archive_is_its_doc_or_its_only_file() {
        let index = |names: &[&str]| index_of_document(names.iter().copied());
        assert_eq!(index(&["files/old.kml", "a.kml", "DOC.kml"]), Ok(2));
        assert_eq!(index(&["files/old.kml", "icon.png", "survey.KML"]), Ok(2));
        assert_eq!(index(&["icon.png", "files/only.kml"]), Ok(1));
        let two = index(&["a.kml", "b.kml"]).unwrap_err();
        assert_eq!(two, "a.kml and b.kml and no doc.kml in it");
        assert!(index(&["x/a.kml", "y/b.kml"]).is_err() && index(&["icon.png"]).is_err());
    }

    #[test]
    fn text_of_other_programs_is_decoded() {
        let utf16 = |bom: [u8; 2], unit: fn(u16) -> [u8; 2]| {
            let units = "Calibração\n".encode_utf16().flat_map(unit);
            bom.into_iter().chain(units).collect::<Vec<_>>()
        };
        for (bytes, text) in [
            (b"plain\r\n".to_vec(), "plain\r\n"),
            ("\u{feff}Calibração".as_bytes().to_vec(), "Calibração"),
            (utf16([0xff, 0xfe], u16::to_le_bytes), "Calibração\n"),
            (utf16([0xfe, 0xff], u16::to_be_bytes), "Calibração\n"),
            (b"Calibra\xe7\xe3o".to_vec(), "Calibração"),
        ] {
            assert_eq!(decode(&bytes).as_deref(), Ok(text), "{bytes:x?}");
        }
        // A program, or half a character.
        assert_eq!(decode(b"a\nb\n\xff\x00\x01"), Err(3));
        assert!(decode(b"\xff\xfea\x00b").is_err());
    }
}
