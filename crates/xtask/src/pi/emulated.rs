//! The quick check: `wingbeatd` and `wingbeat-guard` for arm64, each under qemu-user, fly a mission with a simulated flight
//! controller over TCP. (qemu-user cannot open a serial line: that is the guest's to show.)

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::operator::{ID, Operator, bound};
use crate::cross::{self, Target};
use crate::nspawn::Program;
use crate::process;

const TARGET: Target = Target::Aarch64;

/// What this machine lacks, if anything; with a package that is built already it builds none.
pub(crate) fn missing(package: Option<&Path>) -> Option<String> {
    let linker = package.map_or_else(|| cross::missing(TARGET), |_| None);
    let libraries = Path::new("/usr/aarch64-linux-gnu/lib");
    let libraries = (!libraries.is_dir())
        .then(|| format!("no {} here; install libc6-dev-arm64-cross", libraries.display()));
    let emulator = (!process::is_installed(super::EMULATOR))
        .then(|| format!("no {} here; install qemu-user-static", super::EMULATOR));
    linker.or(libraries).or(emulator)
}

/// Builds the aircraft's programs unless a package is given, and flies them, with this `wingbeat` of this machine.
pub(crate) fn run(root: &Path, wingbeat: &Path, package: Option<&Path>) -> Result<()> {
    let folder = super::folder(root).join("emulated");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(folder.join("state"))?;
    let programs = match package {
        None => cross::aircraft(root, TARGET, cross::Profile::Dev)?,
        Some(package) => {
            process::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&folder))?;
            folder.join("usr/bin")
        }
    };
    let mut operator = Operator::begin(wingbeat)?;
    let configuration = folder.join("wingbeatd.toml");
    let radio = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let text = format!(
        "id = \"{ID}\"\nprotocol = \"mission\"\n[autopilot]\nendpoint = \"tcp:127.0.0.1:{}\"\n[radio]\ninterface = \"lo\"\n\
         broadcast = \"127.255.255.255\"\nport = {radio}\n[security]\ninsecure = true\n[http]\nbind = \"127.0.0.1:{}\"\n\
         [guard]\nsocket = {:?}\n",
        operator.flight_controller,
        operator.api,
        folder.join("guard")
    );
    std::fs::write(&configuration, text)?;
    let start = |program: &str| {
        let mut command = cross::emulated(&programs.join(program), TARGET);
        command.arg("--config").arg(&configuration).arg("--state").arg(folder.join("state"));
        let log = std::fs::File::create(folder.join(format!("{program}.log")))?;
        Program::start(bound(&command).stderr(Stdio::from(log)))
    };
    let mut flying = [start("wingbeat-guard")?, start("wingbeatd")?];
    operator.connect(wingbeat, None)?;
    operator.take_off()?;
    operator.completes()?;
    let armed = operator.shown()?["status"]["flight_controller"]["armed"].clone();
    ensure!(armed == false, "found armed {armed}, expected false");
    flying.iter_mut().try_for_each(Program::alive)
}
