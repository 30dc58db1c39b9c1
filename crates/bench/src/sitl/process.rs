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

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use wingbeat_geo::Position;
use wingbeat_sim::motion::Profile;

/// What the shell does. `$1` is the directory, the rest is the command. A line on its input, or the end of
/// its input, kills the program; the end removes the directory.
const WRAPPER: &str = r#"
trap '' INT TERM HUP PIPE
dir=$1; shift
cd "$dir" || exit 126
exec 3<&0
"$@" </dev/null >console.txt 2>&1 &
sitl=$!
( read -r line; kill -9 "$sitl" ) <&3 2>/dev/null &
watcher=$!
wait "$sitl"; status=$?
kill -9 "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null
echo "ended $status"
while read -r line <&3; do :; done
cd / && rm -rf "$dir"
"#;

/// The program prints its help within milliseconds.
const HELP_TIMEOUT: Duration = Duration::from_secs(10);
/// Killing and removing takes milliseconds on a machine that is not stuck.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How a version of SITL wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 3.5 to 4.4: `--uartA`; a synthetic clock and no Flight Gear must be asked for.
    UartA,
    /// Newer: `--serial0`.
    Serial0,
}

/// An ArduCopter SITL program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute: instances run in directories of their own, where a relative path names another file.
    path: PathBuf,
    dialect: Dialect,
}

impl Program {
    /// Finds a program, relative to where we run, and reads its dialect from its help.
    ///
    /// # Errors
    /// The file is not there, is no program, or is no SITL.
    pub async fn find(binary: &Path) -> Result<Self> {
        let place = binary.display();
        let path =
            binary.canonicalize().with_context(|| format!("{place}: expected an ArduCopter SITL program"))?;
        let mut command = Command::new(&path);
        command.arg("--help").stdin(Stdio::null()).kill_on_drop(true).current_dir(std::env::temp_dir());
        let output = timeout(HELP_TIMEOUT, command.output())
            .await
            .map_err(|_| anyhow!("{place} --help: found no end within {HELP_TIMEOUT:?}"))?
            .with_context(|| format!("{place}: expected an ArduCopter SITL program"))?;
        let mut help = String::from_utf8_lossy(&output.stdout).into_owned();
        help.push_str(&String::from_utf8_lossy(&output.stderr));
        let dialect = Dialect::read(&help).with_context(|| format!("{place} --help"))?;
        Ok(Self { path, dialect })
    }
}

/// The profile that is most like a program, by the version in it; none where it has none.
///
/// # Errors
/// It cannot be read.
pub fn profile(binary: &Path) -> Result<Option<Profile>> {
    let bytes = std::fs::read(binary).with_context(|| binary.display().to_string())?;
    Ok(version_in(&bytes).map(|(major, minor)| Profile::of_version(major, minor)))
}

/// The first `Copter V4.6` (`APM:Copter V3.5`), which every version has among its texts.
fn version_in(program: &[u8]) -> Option<(u8, u8)> {
    const NAME: &[u8] = b"Copter V";
    let digit = |byte: Option<&u8>| byte.filter(|b| b.is_ascii_digit()).map(|b| b - b'0');
    program.windows(NAME.len()).enumerate().filter(|(_, name)| *name == NAME).find_map(|(at, _)| {
        let version = &program[at + NAME.len()..];
        (version.get(1) == Some(&b'.')).then_some(())?;
        Some((digit(version.first())?, digit(version.get(2))?))
    })
}

impl Dialect {
    fn read(help: &str) -> Result<Self> {
        ensure!(
            help.contains("--home") && help.contains("--speedup"),
            "found no --home and --speedup among the options, expected an ArduCopter SITL program"
        );
        match (help.contains("--serial0"), help.contains("--uartA")) {
            (true, _) => Ok(Self::Serial0),
            (false, true) => Ok(Self::UartA),
            (false, false) => bail!("found neither --serial0 nor --uartA, expected one of them"),
        }
    }

    /// The arguments that start one instance.
    pub fn arguments(self, start: &Start) -> Vec<String> {
        let Position { latitude_e7, longitude_e7, altitude_mm } = start.home;
        let home = format!(
            "{:.7},{:.7},{:.2},{:.1}",
            f64::from(latitude_e7) * 1e-7,
            f64::from(longitude_e7) * 1e-7,
            f64::from(altitude_mm) * 1e-3,
            start.heading_rad.to_degrees().rem_euclid(360.0)
        );
        let (first, serial): (&[&str], _) = match self {
            Self::UartA => (&["-S", "--disable-fgview"], "--uartA"),
            Self::Serial0 => (&[], "--serial0"),
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
        let directory =
            tempfile::Builder::new().prefix("wingbeat-sitl-").tempdir().context("a working directory")?;
        std::fs::write(directory.path().join("defaults.parm"), defaults).context("defaults.parm")?;
        let mut command = Command::new("sh");
        command
            .args(["-c", WRAPPER, "wingbeat-sitl"])
            .arg(directory.path())
            .arg(&program.path)
            .args(program.dialect.arguments(start))
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
        let console = std::fs::read(self.directory().join("console.txt")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let tail: Vec<&str> = console.lines().rev().take(4).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        format!("{how}, its last lines: {}", tail.join(" | "))
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
    fn each_dialect_is_known_by_its_help() {
        let old = "--home|-O HOME\n--speedup|-s SPEEDUP\n--uartA device\n";
        let new = "--home|-O HOME\n--speedup|-s SPEEDUP\n--serial0 device\n";
        assert_eq!(Dialect::read(old).unwrap(), Dialect::UartA);
        assert_eq!(Dialect::read(new).unwrap(), Dialect::Serial0);
        assert!(Dialect::read("usage: ls").unwrap_err().to_string().contains("expected an ArduCopter"));
        let old = Dialect::UartA.arguments(&start()).join(" ");
        assert_eq!(
            old,
            "-S --disable-fgview -I 61 --uartA tcp:0 --home 39.4825940,-0.3462650,50.00,270.0 --model quad \
             --speedup 5 --defaults defaults.parm"
        );
        let new = Dialect::Serial0.arguments(&start()).join(" ");
        assert!(new.starts_with("-I 61 --serial0 tcp:0 --home"), "{new}");
    }

    #[test]
    fn a_programs_version_is_among_its_texts() {
        let in_text = |text: &str| version_in(text.as_bytes());
        assert_eq!(in_text("\0APM:Copter V3.5.7\0"), Some((3, 5)));
        assert_eq!(in_text("Copter Vx\0ArduCopter V4.6.2\0"), Some((4, 6)));
        assert_eq!([in_text("Copter V4"), in_text("ArduCopter"), in_text("")], [None; 3]);
        assert_eq!(Profile::of_version(4, 0), Profile::Copter357);
        assert_eq!(Profile::of_version(4, 7), Profile::Copter462);
    }

    #[tokio::test]
    async fn a_file_that_is_no_sitl_is_named() {
        let error = Program::find(Path::new("/nowhere/arducopter")).await.unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/arducopter"), "{error:#}");
        let error = format!("{:#}", Program::find(Path::new("/bin/true")).await.unwrap_err());
        assert!(error.contains("/bin/true") && error.contains("expected an ArduCopter"), "{error}");
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
