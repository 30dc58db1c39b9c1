//! As much of ELF as judging a program takes.

/// The machine that it is for; nothing if it is no ELF file.
pub(super) fn machine(bytes: &[u8]) -> Option<u16> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    // e_machine follows sixteen bytes of identification and e_type. Byte 5 is the byte order.
    let field = [*bytes.get(18)?, *bytes.get(19)?];
    match bytes.get(5)? {
        1 => Some(u16::from_le_bytes(field)),
        2 => Some(u16::from_be_bytes(field)),
        _ => None,
    }
}

/// The newest version of glibc that it asks for: versions stand as text in its table of strings.
pub(super) fn newest_glibc(bytes: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let versions = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    versions
        .filter_map(|(at, _)| {
            let rest = bytes.get(at + MARK.len()..)?;
            let end = rest.iter().position(|byte| *byte == 0)?;
            let mut numbers = std::str::from_utf8(rest.get(..end)?).ok()?.split('.');
            Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_its_machine() {
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(18, 0);
        header.extend([183, 0]);
        assert_eq!(machine(&header), Some(183));
        header[5] = 2;
        assert_eq!(machine(&header), Some(183 << 8));
        assert_eq!(machine(&header[..19]), None);
        assert_eq!(machine(b"#!/bin/sh and a long line after it"), None);
        let me = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let here = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        assert_eq!(machine(&me), Some(here));
        assert!(newest_glibc(&me) >= Some((2, 2)));
    }

    #[test]
    fn the_newest_version_is_the_greatest_number_and_not_the_last_text() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_2.9.1\0GLIBC_PRIVATE\0"), Some((2, 34)));
        assert_eq!(newest_glibc(b"GLIBC_2.34"), None, "no end");
        assert_eq!(newest_glibc(b""), None);
    }
}
