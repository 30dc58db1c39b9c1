//! Small files: 64 hexadecimal digits of a key, and what must survive a restart.

use std::{
    fs, io,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Digits of a key.
const DIGITS: usize = 64;

/// Why a key is not taken; what the file holds is never part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was found, and where.
    pub found: String,
    /// What is expected.
    pub expected: &'static str,
}

/// Reads 64 hexadecimal digits from a file without any of these permissions.
///
/// # Errors
/// What was found instead; nothing that the file holds is part of it.
pub fn read_digits(path: &Path, closed_to: u32) -> Result<[u8; DIGITS / 2], Refused> {
    let refused = |found: &dyn std::fmt::Display, expected| Refused {
        found: format!("{}: {found}", path.display()),
        expected,
    };
    let readable = "a file with 64 hexadecimal digits";
    let io = |error: std::io::Error| refused(&error, readable);
    let file = fs::File::open(path).map_err(io)?;
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
pub fn digits(text: &str) -> Option<[u8; DIGITS / 2]> {
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

/// Writes a line to a file: whole or not at all, and on the disk.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, line: &str) -> io::Result<()> {
    let new: PathBuf = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    io::Write::write_all(&mut file, format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}
