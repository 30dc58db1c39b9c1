//! The file that holds the key of MAVLink's message signing.

use std::{io::Read as _, os::unix::fs::PermissionsExt as _, path::Path};

use wingbeat_agent::SigningKey;

/// Digits of a key.
const DIGITS: usize = 64;

/// Why a key is not taken; what the file holds is never part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) found: String,
    pub(crate) expected: &'static str,
}

/// Reads the autopilot's key from a file that is closed to others.
pub(crate) fn read_key(path: &Path) -> Result<SigningKey, Refused> {
    let key = read_digits(path, 0o007)?;
    if key == [0; DIGITS / 2] {
        let found = format!("{}: 64 zeros", path.display());
        return Err(Refused { found, expected: "a key: zeros turn signing off at the autopilot" });
    }
    Ok(SigningKey::new(key))
}

/// Reads 64 hexadecimal digits from a file without any of these permissions.
pub(crate) fn read_digits(path: &Path, closed_to: u32) -> Result<[u8; DIGITS / 2], Refused> {
    let refused = |found: &dyn std::fmt::Display, expected| Refused {
        found: format!("{}: {found}", path.display()),
        expected,
    };
    let readable = "a file with 64 hexadecimal digits";
    let io = |error: std::io::Error| refused(&error, readable);
    let file = std::fs::File::open(path).map_err(io)?;
    let mode = file.metadata().map_err(io)?.permissions().mode() & 0o777;
    if mode & closed_to != 0 {
        let expected = match closed_to {
            0o007 => "a file closed to others (chmod o= FILE)",
            _ => "a file closed to all but its owner (chmod 600 FILE)",
        };
        return Err(refused(&format!("mode {mode:o}"), expected));
    }
    let mut text = String::new();
    // The digits and a line's end; a device or an endless pipe is not read on.
    file.take(DIGITS as u64 + 2).read_to_string(&mut text).map_err(io)?;
    let text = text.trim_end();
    digits(text).ok_or_else(|| {
        refused(&format!("{} characters", text.len()), "64 hexadecimal digits and nothing else")
    })
}

/// The bytes of 64 hexadecimal digits.
pub(crate) fn digits(text: &str) -> Option<[u8; DIGITS / 2]> {
    if text.len() != DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; DIGITS / 2];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        let digit = |d: u8| char::from(d).to_digit(16).map_or(0, |v| v as u8);
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_key_is_64_digits_that_others_cannot_read() {
        let digits = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
        let expected = SigningKey::new(std::array::from_fn(|i| i as u8));
        for text in [digits.to_owned(), format!("{digits}\n"), format!("{digits}\r\n")] {
            assert_eq!(read_key(key_file(&text, 0o640).path()), Ok(expected.clone()), "{text:?}");
        }
        for (text, mode, found) in [
            (digits.to_owned(), 0o644, "mode 644"),
            (String::new(), 0o600, "0 characters"),
            (digits[1..].to_owned(), 0o600, "63 characters"),
            (format!("{digits}\n{digits}"), 0o600, "66 characters"),
            (digits.replace(['f', 'F'], "g"), 0o600, "64 characters"),
            ("0".repeat(64), 0o600, "64 zeros"),
        ] {
            let file = key_file(&text, mode);
            let refused = read_key(file.path()).unwrap_err();
            assert!(refused.found.ends_with(found), "{refused:?}");
            assert!(text.is_empty() || !format!("{refused:?}").contains(text.trim()), "it shows the key");
        }
        assert!(read_key(Path::new("/nowhere/key")).unwrap_err().found.starts_with("/nowhere/key: "));
    }
}
