//! A network of our own. SITL binds every interface and has no option for less, so the whole bench runs
//! in a network namespace where there is only the loopback interface, if the system lets us have one.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Marks the process that already runs in its own network.
pub const MARK: &str = "WINGBEAT_SITL_NETWORK";

/// What `sh` does inside: loopback up, then the command in the same process.
const INSIDE: &str = r#"ip link set lo up && exec "$@""#;

/// Whether this process is the one inside.
pub fn is_own() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Replaces this process by one with the same arguments in a network of its own. It keeps the process id,
/// so signals still arrive. Returns only if that is not possible, and why.
pub fn enter() -> String {
    // Root needs no other user; other users become root of a user namespace to enter it.
    let choices: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let possible = choices.into_iter().find(|choice| {
        let mut try_it = Command::new("unshare");
        try_it.args(*choice).args(["--", "sh", "-c", INSIDE, "sh", "true"]);
        let silent = try_it.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    });
    let Some(choice) = possible else {
        return "unshare --net with `ip link set lo up` is not possible here".into();
    };
    let program = match std::env::current_exe() {
        Ok(program) => program.into_os_string(),
        Err(error) => return format!("the own program is not found: {error}"),
    };
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = Command::new("unshare");
    command.args(choice).args(["--", "sh", "-c", INSIDE, "sh"]).arg(program).args(arguments);
    command.env(MARK, "own");
    exec(&mut command)
}

#[cfg(unix)]
fn exec(command: &mut Command) -> String {
    use std::os::unix::process::CommandExt as _;
    format!("unshare: {}", command.exec())
}

#[cfg(not(unix))]
fn exec(_: &mut Command) -> String {
    "network namespaces are Linux's".into()
}
