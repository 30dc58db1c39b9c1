//! The file that holds the key of MAVLink's message signing.

use std::path::Path;

use wingbeat_agent::SigningKey;
use wingbeat_keys::file::{Refused, read_digits};

/// Digits of a key.
const DIGITS: usize = 64;

/// Reads the autopilot's key from a file that is closed to others.
///
/// # Errors
/// No such file, one that others can read, or no key in it.
pub fn read_key(path: &Path) -> Result<SigningKey, Refused> {
    let key = read_digits(path, 0o007)?;
    if key == [0; DIGITS / 2] {
        let found = format!("{}: 64 zeros", path.display());
        return Err(Refused { found, expected: "a key: zeros turn signing off at the autopilot" });
    }
    Ok(SigningKey::new(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
