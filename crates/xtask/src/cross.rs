//! `cargo xtask cross`: the programs for Debian on other machines: Raspberry Pi OS, 64 or 32 bits, and PCs.
//!
//! Two routes to a standard library for the target: rustup's, where its server answers, else Debian's
//! `rustc-web` with the foreign `libstd-rust-web-dev`, unpacked under `target/cross` and never installed
//! (a foreign architecture on the host would change the host's packages). Either way Debian's cross linker
//! links. The programs are checked: the machine in the ELF header, the newest glibc that they need, and
//! whether they run under qemu-user where that is installed.

pub(crate) mod debian;
mod elf;
mod vectors;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use object::elf::{EM_AARCH64, EM_ARM, EM_X86_64, Machine};

pub(crate) use self::vectors::{vectors, vectors_missing};

use crate::process;

/// How programs are built.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// As they are installed: small, in minutes.
    Dist,
    /// As the tests are: what is found does not depend on it.
    Dev,
}

impl Profile {
    /// Its name, and that of its folder.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Dist => ["dist", "dist"],
            Self::Dev => ["dev", "debug"],
        }
    }
}

/// A machine that reaches no download server reports it within this, or hangs.
const INSTALL_LIMIT: Duration = Duration::from_secs(120);
/// qemu starts a program within this.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// What Debian 12 and Raspberry Pi OS bookworm have.
const GLIBC_MOST: (u32, u32) = (2, 36);

/// The target of the cross build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Raspberry Pi OS, 64 bits: Pi 3, 4, 5, Zero 2 W.
    Aarch64,
    /// Raspberry Pi OS, 32 bits, on the same boards.
    Armv7,
    /// PCs, and companion computers like them.
    #[value(name = "x86_64")]
    X86_64,
}

impl Target {
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::Armv7 => "armv7-unknown-linux-gnueabihf",
            Self::X86_64 => "x86_64-unknown-linux-gnu",
        }
    }

    /// Debian's prefix of cross tools, and the folder below `/usr` with the target's libraries.
    fn tools(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64-linux-gnu",
            Self::Armv7 => "arm-linux-gnueabihf",
            Self::X86_64 => "x86_64-linux-gnu",
        }
    }

    fn linker(self) -> String {
        format!("{}-gcc", self.tools())
    }

    /// Debian's name of the architecture.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::Aarch64 => "arm64",
            Self::Armv7 => "armhf",
            Self::X86_64 => "amd64",
        }
    }

    /// Whether this machine runs programs for the target without an emulator.
    pub(crate) fn is_native(self) -> bool {
        self.triple().starts_with(std::env::consts::ARCH)
    }

    fn qemu(self) -> &'static str {
        match self {
            Self::Aarch64 => "qemu-aarch64-static",
            Self::Armv7 => "qemu-arm-static",
            Self::X86_64 => "qemu-x86_64-static",
        }
    }

    fn machine(self) -> Machine {
        match self {
            Self::Aarch64 => EM_AARCH64,
            Self::Armv7 => EM_ARM,
            Self::X86_64 => EM_X86_64,
        }
    }
}

/// What this machine lacks to build for `target`, if anything. Whether a server has the standard library is
/// known only after a request to it.
pub(crate) fn missing(target: Target) -> Option<String> {
    let linker = target.linker();
    (!process::is_installed(&linker)).then(|| {
        format!(
            "{linker}: not found; install gcc-{} and libc6-dev-{}-cross",
            target.tools().replace('_', "-"),
            target.debian()
        )
    })
}

/// A crate whose programs are built, and their names. Each is built by itself: together the aircraft's would contain
/// what only the bench asks for (`stand-in`).
type Built = (&'static str, &'static [&'static str]);
const AIRCRAFT: Built = ("wingbeat-onboard", &["wingbeatd", "wingbeat-guard"]);
const GROUND: Built = ("wingbeat-cli", &["wingbeat"]);

/// Builds for `target`, and prints one line of findings per program. Returns the folder of the programs.
pub(crate) fn run(root: &Path, target: Target) -> Result<PathBuf> {
    build(root, target, Profile::Dist, has_target(target)?, &[AIRCRAFT, GROUND])
}

/// Builds the aircraft's programs alone, and returns their folder.
pub(crate) fn aircraft(root: &Path, target: Target, profile: Profile) -> Result<PathBuf> {
    build(root, target, profile, has_target(target)?, &[AIRCRAFT])
}

/// The same by Debian's compiler, on a machine that reaches rustup's server too.
pub(crate) fn run_by_debian(root: &Path, target: Target) -> Result<PathBuf> {
    build(root, target, Profile::Dist, false, &[AIRCRAFT, GROUND])
}

/// Whether rustup has the standard library, or could get it.
fn has_target(target: Target) -> Result<bool> {
    let triple = target.triple();
    Ok(missing(target).is_none() && (installed(triple)? || install(triple)))
}

fn build(
    root: &Path,
    target: Target,
    profile: Profile,
    has_target: bool,
    crates: &[Built],
) -> Result<PathBuf> {
    let [profile, folder_of_profile] = profile.names();
    if let Some(what) = missing(target) {
        bail!("{what}");
    }
    let linker = target.linker();
    let triple = target.triple();
    let variable =
        |suffix: &str| format!("CARGO_TARGET_{}_{suffix}", triple.to_uppercase().replace('-', "_"));
    let folder = root.join("target/cross");
    let compiler = if has_target { None } else { Some(debian::compiler(&folder, target.debian())?) };
    // Another compiler's artefacts do not mix with rustup's.
    let folder = if has_target { folder } else { folder.join("debian") };
    let route = compiler.as_ref().map_or("rustup's standard library".to_owned(), |compiler| {
        let version = &compiler.version;
        format!("Debian's rustc-web {version}")
    });
    println!("cross: {triple} by {route}, linked by {linker}");
    for (package, _) in crates {
        let mut build = process::cargo();
        build
            .current_dir(root)
            .args(["build", "--profile", profile, "--target", triple, "--bins", "--package", package])
            .arg("--target-dir")
            .arg(&folder)
            .env(variable("LINKER"), &linker);
        if let Some(compiler) = &compiler {
            compiler.apply(&mut build);
        }
        process::run(&mut build)?;
    }
    let programs = folder.join(triple).join(folder_of_profile);
    for name in crates.iter().flat_map(|(_, programs)| *programs) {
        let program = programs.join(name);
        println!("cross: {}", judge(&program, target)?);
        println!("cross: {name} started: {}", try_out(name, &program, target)?);
    }
    println!("cross: wingbeatd --check: {}", check(&programs.join("wingbeatd"), root, target)?);
    Ok(programs)
}

/// The target directory that a build was given.
fn installed(triple: &str) -> Result<bool> {
    let sysroot = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = String::from_utf8(sysroot).context("rustc's sysroot is not UTF-8")?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(triple).join("lib").is_dir())
}

fn install(triple: &str) -> bool {
    process::succeeds_within(Command::new("rustup").args(["target", "add", triple]), INSTALL_LIMIT)
}

/// Whether it is a program for the target that the target's Debian can start.
fn judge(program: &Path, target: Target) -> Result<String> {
    let name = program.display();
    let bytes = std::fs::read(program).with_context(|| format!("reading {name}"))?;
    let found = elf::requirements(&bytes).with_context(|| name.to_string())?;
    let (machine, expected) = (found.machine, target.machine());
    ensure!(machine == expected, "{name}: found ELF machine {machine:?}, expected {expected:?}");
    let (major, minor) =
        found.glibc.with_context(|| format!("{name}: found no version of glibc, expected one"))?;
    ensure!(
        (major, minor) <= GLIBC_MOST,
        "{name}: found a need of glibc {major}.{minor}, expected at most {}.{}",
        GLIBC_MOST.0,
        GLIBC_MOST.1
    );
    let size = bytes.len() as f64 / 1e6;
    Ok(format!("{name}: {size:.1} MB, ELF machine {machine:?}, needs glibc {major}.{minor}"))
}

/// Starts it, where qemu can.
fn try_out(name: &str, program: &Path, target: Target) -> Result<String> {
    if let Some(skipped) = without_emulator(target) {
        return Ok(skipped);
    }
    let version = process::output(emulated(program, target).arg("--version"))?;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let expected = format!("{name} {}", env!("CARGO_PKG_VERSION"));
    ensure!(version == expected, "--version: found {version:?}, expected {expected:?}");
    Ok(version)
}

/// Lets it read the sample configuration and open what that names: a flight controller on TCP, because
/// qemu-user cannot open a serial line.
fn check(program: &Path, root: &Path, target: Target) -> Result<String> {
    if let Some(skipped) = without_emulator(target) {
        return Ok(skipped);
    }
    let autopilot = std::net::TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("tcp:{}", autopilot.local_addr()?);
    let free = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = emulated(program, target);
    command
        .arg("--check")
        .arg("--config")
        .arg(root.join("deploy/wingbeatd.toml"))
        .env("WINGBEAT_ID", "0000b827eb010203")
        .env("WINGBEAT_AUTOPILOT__ENDPOINT", &endpoint)
        .env("WINGBEAT_RADIO__INTERFACE", "lo")
        .env("WINGBEAT_RADIO__PORT", free.to_string())
        .env("WINGBEAT_HTTP__BIND", "127.0.0.1:0")
        .env("WINGBEAT_SECURITY__INSECURE", "true");
    ensure!(
        process::succeeds_within(&mut command, RUN_LIMIT),
        "`{}` failed, expected exit code 0",
        process::show(&command)
    );
    Ok(format!("sample configuration, {endpoint}: fine"))
}

fn without_emulator(target: Target) -> Option<String> {
    let is_missing = !target.is_native() && !process::is_installed(target.qemu());
    is_missing.then(|| format!("skipped: no {} here", target.qemu()))
}

/// The program as this machine starts it.
pub(crate) fn emulated(program: &Path, target: Target) -> Command {
    let Some([emulator, arguments @ ..]) = emulator(target) else { return Command::new(program) };
    let mut command = Command::new(emulator);
    command.args(arguments).arg(program);
    command
}

/// What starts programs for the target where this machine cannot.
fn emulator(target: Target) -> Option<[String; 3]> {
    (!target.is_native()).then(|| [target.qemu().into(), "-L".into(), format!("/usr/{}", target.tools())])
}
