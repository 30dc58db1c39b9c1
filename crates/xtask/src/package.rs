//! `cargo xtask package`: the aircraft's package for a PC, from its build to its purge. The programs' sizes are held, the
//! package is installed in a bare system, and the daemon that it installs is started with a simulated flight controller.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cross::{self, Target};
use crate::dist::{self, Package};
use crate::nspawn::{Program, Story, adapt, http};
use crate::packages::{self, Debian, Packages};
use crate::process;

const TARGET: Target = Target::X86_64;
const PROGRAMS: [&str; 5] = ["dpkg", "dpkg-query", "systemctl", "systemd-sysusers", "setpriv"];
/// systemd waits so long before it kills the daemon (`TimeoutStopSec` of its unit).
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Returns what this machine lacks, if anything.
pub(crate) fn missing() -> Result<Option<String>> {
    if !TARGET.is_native() {
        return Ok(Some(format!("no {} here", TARGET.triple())));
    }
    if let Some(program) = PROGRAMS.into_iter().find(|program| !process::is_on_the_path(program)) {
        return Ok(Some(format!("no {program} here")));
    }
    if let Some(what) = dist::missing(TARGET) {
        return Ok(Some(what));
    }
    let id = String::from_utf8(process::output(Command::new("id").arg("-u"))?)?;
    Ok((id.trim() != "0").then(|| format!("it needs root, found user id {}", id.trim())))
}

/// Builds, installs, starts, upgrades and purges the package; `wingbeat` is the program of the simulated flight controller.
///
/// # Errors
/// The first thing that is not as it must be.
pub(crate) fn run(root: &Path, wingbeat: &Path) -> Result<String> {
    let folder = root.join("target/package");
    let programs = cross::aircraft(root, TARGET, cross::Profile::Dist)?;
    let sizes = dist::sizes(Package::Aircraft, &programs)?;
    let packages = Packages::build(root, TARGET, &programs, &folder)?;
    let about = dist::judge(packages.now(), Package::Aircraft, TARGET)?;
    let libc =
        process::output(Command::new("dpkg-query").args(["--show", "--showformat=${Version}", "libc6"]))?;
    let system = Debian { root: folder.join("system"), is_bare: true };
    packages::bare(&system.root, TARGET.debian(), String::from_utf8_lossy(&libc).trim())?;
    packages.install(&system)?;
    let story = Story::begin();
    start(wingbeat, &system.root, &story)?;
    packages.come_and_go(&system, &|what| story.log(what))?;
    Ok(format!("package: {about}; {sizes}; installed, started, upgraded, rolled back, removed and purged"))
}

/// Starts the installed daemon with the installed configuration, edited as an operator does for a swarm of one, and stops it.
fn start(wingbeat: &Path, system: &Path, story: &Story) -> Result<()> {
    let folder = system.with_file_name("run");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let line = folder.join("ttyAMA0");
    let mut sim = Program::start(Command::new(wingbeat).args(["sim", "--serial"]).arg(&line))?;
    story.until("the simulated flight controller is behind a line", || {
        sim.alive()?;
        Ok(line.exists().then_some(()))
    })?;
    let configuration = system.join("etc/wingbeat/wingbeatd.toml");
    let sample =
        std::fs::read_to_string(&configuration).with_context(|| configuration.display().to_string())?;
    std::fs::write(&configuration, adapt(&sample)?)?;
    let http = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let radio = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let installed = |program: &str| {
        // As root: the folders above may be closed to others.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig=KILL", "--"])
            .arg(system.join("usr/bin").join(program))
            .arg("--config")
            .arg(&configuration)
            .env("STATE_DIRECTORY", &folder)
            .env("WINGBEAT_AUTOPILOT__ENDPOINT", format!("serial:{}:115200", line.display()))
            .env("WINGBEAT_RADIO__PORT", radio.to_string())
            .env("WINGBEAT_HTTP__BIND", &http)
            .env("WINGBEAT_GUARD__SOCKET", folder.join("guard.sock"));
        Program::start(&mut command)
    };
    let mut guard = installed("wingbeat-guard")?;
    let mut daemon = installed("wingbeatd")?;
    let ask = |path: &str| http::ask(&http, "GET", path, None).ok().filter(|(code, _)| *code == 200);
    story.until("the installed daemon shows its flight controller, and its guardian", || {
        daemon.alive()?;
        guard.alive()?;
        let Some((_, status)) = ask("/api/v1/status") else { return Ok(None) };
        let is_guarded = status["checks"].as_array().is_some_and(|checks| {
            checks.iter().any(|check| check["name"] == "companion loss" && check["passed"] == true)
        });
        Ok((status["flight_controller"]["link"] == "up" && is_guarded).then_some(()))
    })?;
    let identity = ask("/api/v1/identity").context("the identity was not answered")?.1;
    let version = identity["version"].as_str().unwrap_or_default();
    ensure!(version == dist::VERSION, "version: found {version:?}, expected {}", dist::VERSION);
    daemon.stop(STOP_LIMIT)?;
    guard.stop(STOP_LIMIT)?;
    story.log("the installed daemon and the guardian end on SIGTERM");
    Ok(())
}
