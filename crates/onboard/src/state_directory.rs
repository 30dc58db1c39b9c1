//! The directory in which a daemon keeps what the next one must know: one daemon has it, and its files are read up to a length.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Takes the directory, as [`wingbeat_keys::folder::lock`] does.
///
/// # Errors
/// Another daemon has it.
pub fn lock(directory: &Path) -> Result<Option<File>, String> {
    wingbeat_keys::folder::lock(directory, "wingbeatd", "expected a directory of its own")
}

/// The whole file; nothing where there is none.
///
/// # Errors
/// Why it cannot be read, or that it is longer than `len_max` bytes.
pub(crate) fn read(path: &Path, len_max: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    file.take(len_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > len_max { Err(format!("more than {len_max} bytes")) } else { Ok(Some(bytes)) }
}
