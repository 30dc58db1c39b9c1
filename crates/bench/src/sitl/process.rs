//! One ArduCopter process in a directory of its own.
//!
//! Between us and it stands a shell that outlives us by a moment: it reads from a pipe of ours, and when
//! that ends, in whatever way we ended, it kills ArduCopter and removes the directory. So nothing is left
//! behind by a return, an error, a panic, a signal or `kill -9`. ArduCopter also ends when its
//! parent is gone, which covers the shell. The shell has a process group of its own: Ctrl-C in a terminal
//! reaches us and not it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use wingbeat_cosim::process::{WRAPPER, last_lines};
pub use wingbeat_cosim::program::Program;
use wingbeat_cosim::program::{Dialect, version};
use wingbeat_geo::Position;
use wingbeat_sim::motion::Profile;

/// Killing and removing takes milliseconds on a machine that is not stuck.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// The profile that is most like a program, by the version in it; none where it has none.
///
/// # Errors
/// It cannot be read.
pub fn profile(binary: &Path) -> Result<Option<Profile>> {
    Ok(version(binary)?.map(|(major, minor)| Profile::of_version(major, minor)))
}

/// The arguments that start one instance.
fn arguments(dialect: Dialect, start: &Start) -> Vec<String> {
    let Position { latitude_e7, longitude_e7, altitude_mm } = start.home;
    let home = format!(
        "{:.7},{:.7},{:.2},{:.1}",
        f64::from(latitude_e7) * 1e-7,
        f64::from(longitude_e7) * 1e-7,
        f64::from(altitude_mm) * 1e-3,
        start.heading_rad.to_degrees().rem_euclid(360.0)
    );
    let (first, serial): (&[&str], _) = match dialect {
        Dialect::UartA => (&["-S", "--disable-fgview"], "--uartA"),
        Dialect::Serial0 => (&[], "--serial0"),
    };
    // `tcp:0` alone: it does not wait for a client.
    let rest = [
        "-I".into(),
        start.instance.to_string(),
        serial.into(),
        "tcp:0".into(),
        "--home".into(),
        home,
        "--model".into(),
        "quad".into(),
        "--speedup".into(),
        start.speedup.to_string(),
        "--defaults".into(),
        "defaults.parm".into(),
    ];
    first.iter().map(ToString::to_string).chain(rest).collect()
}

/// What an instance is started with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Instance number: every port is 10 times this higher.
    pub instance: u16,
    /// Position and ground altitude at the start.
    pub home: Position,
    /// Where its nose points.
    pub heading_rad: f64,
    /// Times real time.
    pub speedup: f64,
}

/// A running instance.
#[derive(Debug)]
pub struct Process {
    directory: tempfile::TempDir,
    wrapper: Child,
    /// Its end makes the shell kill the program and remove the directory.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts an instance with the text of its defaults file.
    ///
    /// # Errors
    /// The system gives no directory or no process.
    pub fn start(program: &Program, start: &Start, defaults: &str) -> Result<Self> {
        let directory = wingbeat_cosim::process::directory()?;
        std::fs::write(directory.path().join("defaults.parm"), defaults).context("defaults.parm")?;
        let mut command = Command::new("sh");
        command
            .args(["-c", WRAPPER, "wingbeat-sitl"])
            .arg(directory.path())
            .arg(&program.path)
            .args(arguments(program.dialect, start))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        let mut wrapper = command.spawn().context("starting sh")?;
        let (input, output) = (wrapper.stdin.take(), wrapper.stdout.take());
        let output = output.context("the shell's output")?;
        Ok(Self { directory, wrapper, input, output: BufReader::new(output).lines() })
    }

    /// Its working directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Waits until it has ended, which it does not do while all is well; returns how, with the last
    /// lines that it printed.
    pub async fn ended(&mut self) -> String {
        let line = self.output.next_line().await.ok().flatten();
        let how = line.map_or("its shell ended".to_owned(), |l| l.replace("ended", "exit status"));
        format!("{how}, its last lines: {}", last_lines(self.directory()))
    }

    /// Ends it, copies its binary logs to `logs` if asked (each name behind `prefix`), and removes its
    /// directory. Returns the logs.
    ///
    /// # Errors
    /// A log could not be copied; it has ended and its directory is gone all the same.
    pub async fn stop(mut self, logs: Option<(&Path, &str)>) -> Result<Vec<PathBuf>> {
        if let Some(input) = &mut self.input {
            // A shell that has ended already does not read it.
            let _ = input.write_all(b"stop\n").await;
        }
        let _ = timeout(STOP_TIMEOUT, self.output.next_line()).await;
        let copied = match logs {
            Some((folder, prefix)) => copy_logs(self.directory(), folder, prefix),
            None => Ok(Vec::new()),
        };
        self.input = None;
        let _ = timeout(STOP_TIMEOUT, self.wrapper.wait()).await;
        copied
    }
}

fn copy_logs(directory: &Path, folder: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let mut copied = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory.join("logs")) else { return Ok(copied) };
    let is_log = |p: &PathBuf| p.extension().is_some_and(|e| e.eq_ignore_ascii_case("bin"));
    let mut logs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(is_log).collect();
    logs.sort();
    for log in logs {
        let name = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let to = folder.join(format!("{prefix}{name}"));
        std::fs::copy(&log, &to).with_context(|| format!("copying {name} to {}", to.display()))?;
        copied.push(to);
    }
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Start {
        let home = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
        Start { instance: 61, home, heading_rad: -std::f64::consts::FRAC_PI_2, speedup: 5.0 }
    }

    /// A program that behaves like SITL as far as the wrapper sees: runs until killed, leaves files.
    fn sleeper(folder: &Path, body: &str) -> Program {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("arducopter");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program { path, dialect: Dialect::UartA }
    }

    /// Waits until no process has `directory` in its command line or works in it.
    async fn none_runs(directory: &str) -> bool {
        let is_one = |process: PathBuf| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let works_in = std::fs::read_link(process.join("cwd")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(directory)
                || works_in.to_string_lossy().starts_with(directory)
        };
        let runs = || std::fs::read_dir("/proc").unwrap().flatten().any(|e| is_one(e.path()));
        for _ in 0..200 {
            if !runs() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }

    #[test]
    fn each_dialect_has_its_arguments() {
        let old = arguments(Dialect::UartA, &start()).join(" ");
        assert_eq!(
            old,
            "-S --disable-fgview -I 61 --uartA tcp:0 --home 39.4825940,-0.3462650,50.00,270.0 --model quad \
             --speedup 5 --defaults defaults.parm"
        );
        let new = arguments(Dialect::Serial0, &start()).join(" ");
        assert!(new.starts_with("-I 61 --serial0 tcp:0 --home"), "{new}");
        assert_eq!(Profile::of_version(4, 0), Profile::Copter357);
        assert_eq!(Profile::of_version(4, 7), Profile::Copter462);
    }

    #[tokio::test]
    async fn stopped_or_dropped_nothing_is_left_and_logs_are_kept_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let program =
            sleeper(folder.path(), "mkdir logs; echo log > logs/00000001.BIN; touch up; exec sleep 1000");
        for stop in [true, false] {
            let process = Process::start(&program, &start(), "FRAME_CLASS 1\n").unwrap();
            let directory = process.directory().to_owned();
            while !directory.join("up").exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            if stop {
                let kept = process.stop(Some((folder.path(), "uav-1-"))).await.unwrap();
                assert_eq!(kept, [folder.path().join("uav-1-00000001.BIN")]);
                assert!(!directory.exists());
            } else {
                drop(process);
            }
            assert!(none_runs(&directory.display().to_string()).await, "the shell is still there");
            assert!(!directory.exists());
        }
    }

    #[tokio::test]
    async fn an_end_of_its_own_is_reported_with_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let program = sleeper(folder.path(), "echo bind failed; exit 3");
        let mut process = Process::start(&program, &start(), "").unwrap();
        let end = process.ended().await;
        assert!(end.contains("exit status 3") && end.contains("bind failed"), "{end}");
        let directory = process.directory().to_owned();
        process.stop(None).await.unwrap();
        assert!(!directory.exists());
    }
}
