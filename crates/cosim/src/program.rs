//! An ArduCopter SITL program: where it is, which version it is, and how it wants to be called.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::process::{Watched, temporary};

/// The program prints its help within milliseconds.
const HELP_TIMEOUT: Duration = Duration::from_secs(10);
/// More of it is not read.
const HELP_BYTES: usize = 64 << 10;
/// How often an end is checked for.
const POLL_PERIOD: Duration = Duration::from_millis(5);

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
    pub path: PathBuf,
    /// How it wants to be called.
    pub dialect: Dialect,
}

/// The program that the environment names for tests, by `WINGBEAT_SITL` or `WINGBEAT_SITL_4` (4.x); `None` where that is unset or
/// empty, with a line that says so.
pub fn named(key: &str) -> Option<PathBuf> {
    let path = std::env::var_os(key).filter(|path| !path.is_empty());
    if path.is_none() {
        println!("skipped: no SITL here; set {key} to the path of an ArduCopter SITL program");
    }
    path.map(PathBuf::from)
}

impl Program {
    /// Finds a program, relative to where we run, and reads its dialect from its help.
    ///
    /// # Errors
    /// The file is not there, is no program, or is no SITL.
    #[allow(clippy::disallowed_methods, reason = "another program's end is waited for")]
    pub fn find(binary: &Path) -> Result<Self> {
        let place = binary.display();
        let path =
            binary.canonicalize().with_context(|| format!("{place}: expected an ArduCopter SITL program"))?;
        regular(&path)?;
        // No pipe: whatever else has it open, its end need not be waited for.
        let output = temporary(tempfile::tempfile())?;
        let mut command = Command::new(&path);
        command.arg("--help").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        let mut help = Watched::start(command.current_dir(std::env::temp_dir()))
            .with_context(|| format!("{place}: expected an ArduCopter SITL program"))?;
        let began = Instant::now();
        while help.child.try_wait().with_context(|| format!("{place} --help"))?.is_none() {
            ensure!(began.elapsed() < HELP_TIMEOUT, "{place} --help: found no end within {HELP_TIMEOUT:?}");
            std::thread::sleep(POLL_PERIOD);
        }
        drop(help);
        let mut help = vec![0; HELP_BYTES];
        let len = output.read_at(&mut help, 0)?;
        let dialect = Dialect::read(&String::from_utf8_lossy(&help[..len]))
            .with_context(|| format!("{place} --help"))?;
        Ok(Self { path, dialect })
    }

    /// Its version, major and minor, by the text in it; `None` where it has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn version(&self) -> Result<Option<(u8, u8)>> {
        version(&self.path)
    }
}

/// What is no file may have no end.
fn regular(path: &Path) -> Result<()> {
    let place = || format!("{}: expected an ArduCopter SITL program", path.display());
    ensure!(std::fs::metadata(path).with_context(place)?.is_file(), "{}, found no file", place());
    Ok(())
}

/// The version of a program, major and minor, by the text in it; `None` where it has none.
///
/// # Errors
/// It cannot be read.
pub fn version(binary: &Path) -> Result<Option<(u8, u8)>> {
    regular(binary)?;
    let bytes = std::fs::read(binary).with_context(|| binary.display().to_string())?;
    Ok(version_in(&bytes))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_is_known_by_its_help() {
        let old = "--home|-O HOME\n--speedup|-s SPEEDUP\n--uartA device\n";
        let new = "--home|-O HOME\n--speedup|-s SPEEDUP\n--serial0 device\n";
        assert_eq!(Dialect::read(old).unwrap(), Dialect::UartA);
        assert_eq!(Dialect::read(new).unwrap(), Dialect::Serial0);
        assert!(Dialect::read("usage: ls").unwrap_err().to_string().contains("expected an ArduCopter"));
    }

    #[test]
    fn a_programs_version_is_among_its_texts() {
        let in_text = |text: &str| version_in(text.as_bytes());
        assert_eq!(in_text("\0APM:Copter V3.5.7\0"), Some((3, 5)));
        assert_eq!(in_text("Copter Vx\0ArduCopter V4.6.2\0"), Some((4, 6)));
        assert_eq!([in_text("Copter V4"), in_text("ArduCopter"), in_text("")], [None; 3]);
    }

    #[test]
    fn a_help_is_read_though_a_program_of_its_own_goes_on_which_is_ended() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (path, id) = (folder.path().join("arducopter"), folder.path().join("id"));
        let text =
            format!("#!/bin/sh\nsleep 1000 & echo $! > {}\necho --home --speedup --serial0\n", id.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Program::find(&path).unwrap().dialect, Dialect::Serial0);
        let id = std::fs::read_to_string(id).unwrap();
        let stat = format!("/proc/{}/stat", id.trim());
        // One that nothing waits for is left in the table of processes.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_file_that_is_no_sitl_is_named() {
        let error = Program::find(Path::new("/nowhere/arducopter")).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/arducopter"), "{error:#}");
        for endless in ["/dev/zero", "/tmp"] {
            let error = format!("{:#}", Program::find(Path::new(endless)).unwrap_err());
            assert!(error.contains("found no file"), "{error}");
            assert!(version(Path::new(endless)).is_err());
        }
        let error = format!("{:#}", Program::find(Path::new("/bin/true")).unwrap_err());
        assert!(error.contains("/bin/true") && error.contains("expected an ArduCopter"), "{error}");
    }
}
