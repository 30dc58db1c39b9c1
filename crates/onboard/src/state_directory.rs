//! The directory in which a daemon keeps what the next one must know: one daemon has it, and its files are read up to a length.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

/// Has the directory until it is dropped, or the process has ended, however that ended. Nothing where the system cannot tell: what
/// stands against the directory is said where something is kept in it.
///
/// # Errors
/// Another daemon has it.
pub fn lock(directory: &Path) -> Result<Option<File>, String> {
    let Ok(opened) = File::open(directory) else { return Ok(None) };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Err(format!(
            "{}: found another wingbeatd that keeps its state there, expected a directory of its own",
            directory.display()
        )),
        Err(_) => Ok(None),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_has_the_directory_until_it_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let first = lock(directory.path()).unwrap();
        assert!(first.is_some());
        assert!(lock(directory.path()).unwrap_err().contains("found another wingbeatd"));
        drop(first);
        assert!(lock(directory.path()).unwrap().is_some());
        assert!(lock(&directory.path().join("missing")).unwrap().is_none(), "that is said elsewhere");
    }
}
