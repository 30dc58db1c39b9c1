//! One SITL process in a directory of its own, under a shell that outlives us by a moment.
//!
//! The shell reads from a pipe of ours, and when that ends, in whatever way we ended, it kills the program, removes the
//! directory, and kills what else runs in its process group, itself too: what the program has started, where that is a script.
//! So nothing is left behind by a return, an error, a panic, a signal or `kill -9`. Ctrl-C in a terminal reaches us and not that
//! group.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// Where the program's output is, in its directory.
pub const CONSOLE: &str = "console.txt";

/// What the shell does. `$1` is the directory, the rest is the command. A line on its input, or the end of
/// its input, kills the program; the end stops what else is of its group, removes the directory, and kills the group. No file of the program's gets longer than a gigabyte (two, where the shell counts in kilobytes): one that prints
/// without end ends by that.
pub const WRAPPER: &str = r#"
trap '' INT TERM HUP PIPE
dir=$1; shift
cd "$dir" || exit 126
ulimit -f 2097152
exec 3<&0
"$@" </dev/null >console.txt 2>&1 &
sitl=$!
( read -r line; kill -9 "$sitl" ) <&3 2>/dev/null &
watcher=$!
wait "$sitl"; status=$?
kill -9 "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null
echo "ended $status"
while read -r line <&3; do :; done
trap '' USR1; kill -USR1 0
cd /; rm -rf "$dir" || rm -rf "$dir"
kill -9 0
"#;

/// Lines of the program's console that a message quotes, and in how many bytes at its end they are looked for.
const QUOTED: usize = 4;
const QUOTED_BYTES: u64 = 4 << 10;

/// The last lines that a program printed into its working directory.
pub fn last_lines(directory: &Path) -> String {
    let mut console = Vec::new();
    if let Ok(mut file) = std::fs::File::open(directory.join(CONSOLE)) {
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        let end = file.seek(SeekFrom::Start(len.saturating_sub(QUOTED_BYTES)));
        // What cannot be read is not quoted.
        let _ = end.and_then(|_| file.take(QUOTED_BYTES).read_to_end(&mut console));
    }
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(QUOTED)..].join(" | ")
}

/// A working directory.
///
/// # Errors
/// Where temporary files go there is no folder, or none that can be written.
pub fn directory() -> Result<tempfile::TempDir> {
    temporary(tempfile::Builder::new().prefix("wingbeat-sitl-").tempdir())
}

/// What went wrong with a temporary file, and where.
pub(crate) fn temporary<T>(made: std::io::Result<T>) -> Result<T> {
    made.with_context(|| {
        format!("{}: expected a folder for temporary files (TMPDIR)", std::env::temp_dir().display())
    })
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    directory: tempfile::TempDir,
    wrapper: Child,
    /// Its end makes the shell kill the program and remove the directory.
    input: Option<ChildStdin>,
    /// The shell's line about the program's end.
    ended: Receiver<String>,
}

impl Process {
    /// Starts a command in a directory with these files, each a name and its content.
    ///
    /// # Errors
    /// The system gives no directory or no process.
    pub fn start(command: &[String], files: &[(&str, &[u8])]) -> Result<Self> {
        let directory = directory()?;
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).with_context(|| (*name).to_owned())?;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", WRAPPER, "wingbeat-sitl"]).arg(directory.path()).args(command);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut wrapper = shell.spawn().context("starting sh")?;
        let input = wrapper.stdin.take();
        let output = wrapper.stdout.take().context("the shell's output")?;
        let (tell, ended) = sync_channel(1);
        // It ends with the shell.
        std::thread::Builder::new().name("sitl-end".into()).spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = tell.send(line.trim().replace("ended", "exit status"));
        })?;
        Ok(Self { directory, wrapper, input, ended })
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// How it has ended, if it has, with the last lines that it printed.
    pub fn ended(&self) -> Option<String> {
        let how = match self.ended.try_recv() {
            Ok(line) if line.is_empty() => "its shell ended".to_owned(),
            Ok(line) => line,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => "ended before".to_owned(),
        };
        Some(format!("{how}, its last lines: {}", last_lines(self.directory())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        // Killing takes milliseconds; the shell waits for nothing else.
        let _ = self.wrapper.wait();
    }
}

/// What the shell of a [`Watched`] does: a line on its input names a process group, the next one ends it, and where its input ends before
/// that it kills the group.
const WATCH: &str = r#"trap '' INT TERM HUP PIPE; read -r group && { read -r line || kill -9 "-$group"; }"#;

/// A program that we start and speak with ourselves, in a process group of its own. The group is killed with this, and by a shell
/// that outlives us by a moment, however we end.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) child: Child,
    shell: Child,
    input: Option<ChildStdin>,
}

impl Watched {
    /// Starts it.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(program: &mut Command) -> std::io::Result<Self> {
        // Before the program, which is not alone for longer than the line takes.
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCH]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = shell.process_group(0).spawn()?;
        let mut input = shell.stdin.take();
        match program.process_group(0).spawn() {
            Ok(child) => {
                if let Some(input) = &mut input {
                    // A shell that has been killed watches nothing.
                    let _ = writeln!(input, "{}", child.id());
                }
                Ok(Self { child, shell, input })
            }
            Err(error) => {
                drop(input);
                let _ = shell.wait();
                Err(error)
            }
        }
    }

    /// Ends it now, with what it has started.
    pub(crate) fn kill(&mut self) {
        // The group has its name for as long as the child is not waited for, or another of it is there.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell whose own program has written where it runs.
    fn started(folder: &Path) -> (Watched, String) {
        let id = folder.join("id");
        let script = format!("sleep 1000 & echo $! > {}; wait", id.display());
        let watched = Watched::start(Command::new("sh").args(["-c", &script])).unwrap();
        loop {
            match std::fs::read_to_string(&id) {
                Ok(id) if id.ends_with('\n') => return (watched, id.trim().to_owned()),
                _ => std::thread::yield_now(),
            }
        }
    }

    /// Where nothing waits for it an ended program is left in the table of processes.
    fn lives(id: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn ends(id: &str) {
        while lives(id) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_watched_ends_when_it_is_dropped_and_when_we_end() {
        let folder = tempfile::tempdir().unwrap();
        let (dropped, id) = started(folder.path());
        assert!(lives(&id));
        drop(dropped);
        ends(&id);
        let folder = tempfile::tempdir().unwrap();
        let (mut left, id) = started(folder.path());
        assert!(lives(&id));
        // As our end does.
        drop(left.input.take());
        ends(&id);
        left.child.wait().unwrap();
    }

    #[test]
    fn of_a_long_console_the_end_is_quoted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_lines(folder.path()), "");
        let text: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
        std::fs::write(folder.path().join(CONSOLE), text).unwrap();
        assert_eq!(last_lines(folder.path()), "line 99996 | line 99997 | line 99998 | line 99999");
    }
}
