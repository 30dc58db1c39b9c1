//! Whether `strace` is here.

use std::process::Command;

/// Why no program can be traced here, if so.
pub(crate) fn missing() -> Option<&'static str> {
    match Command::new("strace").args(["-o", "/dev/null", "true"]).status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some("strace may not trace here"),
        Err(_) => Some("no strace here"),
    }
}
