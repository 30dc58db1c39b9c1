//! Running other programs: output goes to the terminal line by line and is kept for counting; a program
//! that is not installed gives one message that names what to install.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// What a program printed, both streams in the order in which lines arrived, and how it ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

/// Runs a program, showing its output and keeping it.
pub(crate) fn tee(command: &mut Command) -> Result<Finished> {
    let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let text = Arc::new(Mutex::new(String::new()));
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
        child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
    ];
    let copies: Vec<_> = streams
        .into_iter()
        .flatten()
        .map(|stream| {
            let text = Arc::clone(&text);
            thread::spawn(move || copy_lines(stream, &text))
        })
        .collect();
    let status = child.wait().with_context(|| format!("waiting for {}", show(command)))?;
    for copy in copies {
        // A copy ends with the stream; a panic in it would only have lost lines for the count.
        let _ = copy.join();
    }
    let text = std::mem::take(&mut *text.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Finished { status, text })
}

fn copy_lines(stream: Box<dyn Read + Send>, text: &Mutex<String>) {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line), Ok(n) if n > 0) {
        // A closed terminal does not end the count.
        let _ = std::io::stdout().write_all(&line);
        text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

/// Builds the program `wingbeat` as it is shipped; returns its path.
pub(crate) fn build_wingbeat(root: &Path) -> Result<PathBuf> {
    let program = root.join("target/release/wingbeat");
    if !program.exists() {
        println!("building wingbeat: the first time takes about a quarter of an hour on two cores");
    }
    // Cargo shows its progress on a terminal: a silent quarter of an hour looks like a program that hangs.
    run(cargo().current_dir(root).args(["build", "--release", "--package", "wingbeat-cli"]))?;
    Ok(program)
}

/// Builds the program `wingbeat` for development as `cargo xtask test` does, with the same features: after it nothing is built
/// anew. Returns its path.
pub(crate) fn build_wingbeat_dev(root: &Path) -> Result<PathBuf> {
    run(cargo().current_dir(root).args(["build", "--quiet", "--workspace", "--bins", "--examples"]))?;
    Ok(root.join("target/debug/wingbeat"))
}

/// Runs a program that must succeed, its output going straight to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = spawn(command)?.wait().with_context(|| format!("waiting for {}", show(command)))?;
    if !status.success() {
        bail!("`{}` failed: found {status}, expected exit code 0", show(command));
    }
    Ok(())
}

/// Runs a program, its output going straight to the terminal; whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool> {
    let status = spawn(command)?.wait().with_context(|| format!("waiting for {}", show(command)))?;
    Ok(status.success())
}

/// Runs a program that must succeed, for what it prints on standard output.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let finished = child.wait_with_output().with_context(|| format!("waiting for {}", show(command)))?;
    if !finished.status.success() {
        bail!("`{}` failed: found {}, expected exit code 0", show(command), finished.status);
    }
    Ok(finished.stdout)
}

/// Runs a program quietly; true if it succeeded within `limit`, false if it failed, was not there, or
/// was stopped.
pub(crate) fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = silent.spawn() else { return false };
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// Whether a program can be started at all.
pub(crate) fn is_installed(program: &str) -> bool {
    succeeds_within(Command::new(program).arg("--version"), Duration::from_secs(20))
}

/// Whether there is a program of this name on the path, or where root has its own; it is not started.
pub(crate) fn is_on_the_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path)
            .chain([PathBuf::from("/sbin"), PathBuf::from("/usr/sbin")])
            .any(|folder| folder.join(program).is_file())
    })
}

/// Copies the running program to `target/xtask/NAME` and returns the copy's path. A build may replace the program that
/// runs, and then its own path leads nowhere: call this before the build.
///
/// # Errors
/// The copy cannot be written.
pub(crate) fn keep_running_program(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = root.join("target/xtask");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let path = folder.join(name);
    let new = folder.join(format!("{name}.{}", std::process::id()));
    // The file behind this link stays readable where another one has taken its name.
    std::fs::copy("/proc/self/exe", &new).with_context(|| format!("copying to {}", new.display()))?;
    std::fs::rename(&new, &path).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The cargo that runs us, else the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_os_string();
    let folder = command.get_current_dir().map(Path::to_path_buf);
    command.spawn().map_err(|error| match error.kind() {
        // The system reports the same for a missing program and for a missing folder to run it in.
        std::io::ErrorKind::NotFound if folder.as_ref().is_some_and(|folder| !folder.is_dir()) => {
            anyhow::anyhow!("{}: not found; expected this folder", folder.unwrap_or_default().display())
        }
        std::io::ErrorKind::NotFound => missing(&program),
        _ => anyhow::Error::new(error).context(format!("starting {}", show(command))),
    })
}

fn missing(program: &OsStr) -> anyhow::Error {
    let name = program.to_string_lossy();
    let cure = match name.as_ref() {
        "node" | "npm" => "expected Node.js 20.19 or newer with npm on the PATH",
        "cargo" => "expected rustup's cargo on the PATH",
        _ => "expected it on the PATH",
    };
    anyhow::anyhow!("{name}: not found; {cure}")
}

/// A command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_program_is_kept_and_replaces_an_older_copy() {
        let folder = tempfile::TempDir::new().unwrap();
        for _ in 0..2 {
            let kept = keep_running_program(folder.path(), "me").unwrap();
            assert_eq!(kept, folder.path().join("target/xtask/me"));
            assert_eq!(std::fs::read(&kept).unwrap(), std::fs::read("/proc/self/exe").unwrap());
        }
        assert_eq!(std::fs::read_dir(folder.path().join("target/xtask")).unwrap().count(), 1);
    }

    #[test]
    fn both_streams_are_kept_and_the_status_is_returned() {
        let finished =
            tee(Command::new("sh").args(["-c", "echo one; echo two >&2; exit 3"])).expect("sh runs");
        assert_eq!(finished.status.code(), Some(3));
        assert!(finished.text.contains("one\n") && finished.text.contains("two\n"), "{}", finished.text);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("wingbeat-no-such-program")).expect_err("it does not exist");
        assert_eq!(error.to_string(), "wingbeat-no-such-program: not found; expected it on the PATH");
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_taken_for_the_program() {
        let error = run(Command::new("true").current_dir("no-such-folder")).expect_err("it does not exist");
        assert_eq!(error.to_string(), "no-such-folder: not found; expected this folder");
    }

    #[test]
    fn a_program_that_hangs_is_stopped() {
        assert!(!succeeds_within(Command::new("sleep").arg("600"), Duration::from_millis(100)));
        assert!(succeeds_within(&mut Command::new("true"), Duration::from_secs(60)));
        assert!(!succeeds_within(&mut Command::new("false"), Duration::from_secs(60)));
    }
}
