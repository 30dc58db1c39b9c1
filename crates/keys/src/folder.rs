//! A folder that one program has at a time: an aircraft's state directory, a console's key folder.

use std::fs::File;
use std::path::Path;

/// Takes the folder for `program` until the file is dropped, or the process has ended, however that
/// ended. Returns nothing where the system cannot tell: problems of the folder itself are reported
/// where something is kept in it.
///
/// # Errors
/// Another process has it; `cure` says what to do.
pub fn lock(folder: &Path, program: &str, cure: &str) -> Result<Option<File>, String> {
    let Ok(opened) = File::open(folder) else { return Ok(None) };
    if is_taken(&opened) {
        return Err(format!("{}: found another {program} that uses this folder, {cure}", folder.display()));
    }
    Ok(Some(opened))
}

#[cfg(unix)]
fn is_taken(folder: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(folder, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

#[cfg(not(unix))]
fn is_taken(_: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_program_has_the_folder_until_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let take = || lock(folder.path(), "wingbeat ground", "expected a folder of its own");
        let first = take().unwrap();
        assert!(first.is_some());
        let why = take().unwrap_err();
        assert!(
            why.ends_with(
                "found another wingbeat ground that uses this folder, expected a folder of its own"
            ),
            "{why}"
        );
        drop(first);
        assert!(take().unwrap().is_some());
        assert!(
            lock(&folder.path().join("missing"), "x", "y").unwrap().is_none(),
            "that is reported elsewhere"
        );
    }
}
