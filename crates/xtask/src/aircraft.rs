//! `cargo xtask bench aircraft`: what `wingbeatd` takes of an aircraft's computer, into `docs/performance.md`: the program that is
//! installed, in a network namespace with nothing but loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::cross::{self, Target};
use crate::nspawn::http;
use crate::{bench, process};

const BEGIN: &str = "<!-- measured: written by cargo xtask bench aircraft -->";
const END: &str = "<!-- end of measured aircraft -->";

const STARTS: usize = 10;
/// Of the simulated controller, as of a real one.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);
const START_TARGET_S: f64 = 2.0;
const NEIGHBOURS: usize = 25;
/// Datagrams on average, so that every neighbour is known.
const RECEIVED_OF_EACH: usize = 100;
const MEMORY_TARGET_MB: f64 = 20.0;
const SIZE_TARGET_MB: f64 = 10.0;
/// How long instructions are counted, in flight.
const COUNTED: Duration = Duration::from_secs(20);
/// A Cortex-A53 of a Raspberry Pi 3: instructions for one of x86-64, instructions in a cycle, cycles a second; as in
/// `crates/wire/benches/envelope.rs`.
const A53: (f64, f64, f64) = (1.5, 0.8, 1.2e9);
/// Anything that is waited for comes within this, also under valgrind on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);
/// API ports from here on; flight controllers from 5760 on, each ten further.
const HTTP: u16 = 20_000;
const AUTOPILOT: u16 = 5_760;

/// Builds the programs, and measures in a namespace of its own.
pub(crate) fn run(root: &Path) -> Result<()> {
    let me = process::keep_running_program(root, "aircraft")?;
    process::run(process::cargo().current_dir(root).args([
        "build",
        "--quiet",
        "--bins",
        "--package",
        "wingbeat-cli",
    ]))?;
    cross::aircraft(root, Target::X86_64, cross::Profile::Dist)?;
    let script = "ip link set lo up && exec \"$0\" bench aircraft --inside";
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "--", "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["--mount-proc", "--", "sh", "-c", script]).arg(me);
    process::run(&mut command)
}

/// Measures, prints, and writes.
pub(crate) fn run_inside(root: &Path) -> Result<()> {
    let triple = Target::X86_64.triple();
    let programs = [root.join("target/cross"), root.join("target/cross/debian")]
        .map(|folder| folder.join(triple).join("dist/wingbeatd"));
    let daemon =
        programs.into_iter().find(|path| path.is_file()).context("found no wingbeatd that was built")?;
    let folder = root.join("target/aircraft");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let bench = Bench { daemon, wingbeat: root.join("target/debug/wingbeat"), folder };
    let size_mb = fs::metadata(&bench.daemon)?.len() as f64 / 1e6;
    let starts_s = bench.starts()?;
    let [median_s, most_s] = [starts_s[STARTS / 2], starts_s[STARTS - 1]];
    let memory = bench.memory_mb()?;
    let verdict = |met: bool| if met { "met" } else { "**missed**" };
    let instructions = if process::is_on_the_path("valgrind") {
        let each_s = bench.instructions_each_s()?;
        let share_percent = each_s * A53.0 / A53.1 / A53.2 * 100.0;
        format!(
            "{:.2} million instructions of the program's own (without the kernel's) per second of flight, over {} s; \
             {share_percent:.2} % of a Cortex-A53 at 1.2 GHz, estimated with {} of its instructions for one of these and {} in a \
             cycle",
            each_s / 1e6,
            COUNTED.as_secs(),
            A53.0,
            A53.1
        )
    } else {
        "not counted: no valgrind".to_owned()
    };
    let measured = format!(
        "{BEGIN}\nMachine: {}.\n\n| figure | target | measured | |\n|---|---|---|---|\n\
         | from the start of the process to the first heartbeat of the flight controller parsed, on a pseudo-terminal; the \
         simulated controller sends one a second; ten starts spread over that second | at most {START_TARGET_S} s | median {median_s:.2} s, most {most_s:.2} s | {} |\n\
         | resident memory with {NEIGHBOURS} neighbours, on the ground, keys and TLS, MUSCOP | at most {MEMORY_TARGET_MB} MB | \
         {memory:.1} MB | {} |\n\
         | `wingbeatd`, stripped, x86-64 | at most {SIZE_TARGET_MB} MB | {size_mb:.1} MB | {} |\n\
         | one aircraft on its mission, alone, under callgrind | | {instructions} | |\n{END}",
        bench::machine(),
        verdict(most_s <= START_TARGET_S),
        verdict(memory <= MEMORY_TARGET_MB),
        verdict(size_mb <= SIZE_TARGET_MB),
    );
    println!("{measured}");
    bench::replace(&root.join("docs/performance.md"), BEGIN, END, &measured)
}

struct Bench {
    daemon: PathBuf,
    wingbeat: PathBuf,
    folder: PathBuf,
}

/// A process that does not outlive the measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Result<Ended> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Ended(quiet.spawn().with_context(|| format!("starting {}", process::show(quiet)))?))
}

fn until<T>(what: &str, period: Duration, mut poll: impl FnMut() -> Option<T>) -> Result<T> {
    let since = Instant::now();
    loop {
        if let Some(found) = poll() {
            return Ok(found);
        }
        ensure!(since.elapsed() < LIMIT, "never, within {} s: {what}", LIMIT.as_secs());
        sleep(period);
    }
}

fn id(aircraft: usize) -> String {
    format!("0000b827eb{aircraft:06x}")
}

impl Bench {
    /// A configuration for one of `aircraft`; without keys unless `security` names them.
    fn configure(&self, number: usize, aircraft: usize, endpoint: &str, security: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{number}.toml"));
        let alone = if aircraft == 1 { "alone = true\n" } else { "" };
        let socket = self.folder.join(format!("guard-{number}.sock"));
        let text = format!(
            "id = \"{}\"\n[autopilot]\nendpoint = \"{endpoint}\"\n[security]\n{security}[radio]\ninterface = \"lo\"\n\
             broadcast = \"127.255.255.255\"\n[http]\nbind = \"127.0.0.1:{}\"\n[guard]\nsocket = {socket:?}\n[muscop]\n\
             master = \"{}\"\naircraft = {aircraft}\n{alone}",
            id(number),
            HTTP + number as u16,
            id(1),
        );
        fs::write(&path, text)?;
        Ok(path)
    }

    fn daemon(&self, config: &Path) -> Result<Ended> {
        start(as_installed(&mut Command::new(&self.daemon), config)?.env("RUST_LOG", "warn"))
    }

    /// Seconds from the start of the process to the first heartbeat, sorted.
    fn starts(&self) -> Result<Vec<f64>> {
        let line = self.folder.join("line");
        let _sim = start(Command::new(&self.wingbeat).args(["sim", "--serial"]).arg(&line))?;
        until("the flight controller's line", Duration::from_millis(20), || line.exists().then_some(()))?;
        let endpoint = format!("serial:{}:921600", line.display());
        let config = self.configure(1, 1, &endpoint, "insecure = true\n")?;
        let mut all = Vec::new();
        for number in 0..STARTS {
            // A start ends with a heartbeat: the next one would begin with the same part of the period before it each time.
            sleep(HEARTBEAT_PERIOD * number as u32 / STARTS as u32);
            let began = Instant::now();
            let _daemon = self.daemon(&config)?;
            until("a heartbeat", Duration::from_millis(5), || {
                let status = status(1)?;
                (status["flight_controller"]["link"] == "up").then_some(())
            })?;
            all.push(began.elapsed().as_secs_f64());
        }
        all.sort_by(f64::total_cmp);
        Ok(all)
    }

    /// Resident memory of one that receives all others, megabytes.
    fn memory_mb(&self) -> Result<f64> {
        let aircraft = NEIGHBOURS + 1;
        let count = aircraft.to_string();
        let first = AUTOPILOT.to_string();
        let _sim = start(Command::new(&self.wingbeat).args(["sim", "--uavs", &count, "--tcp", &first]))?;
        let fleet = self.folder.join("fleet");
        process::output(Command::new(&self.wingbeat).args(["fleet", "init"]).arg(&fleet))?;
        let mut configs = Vec::new();
        for number in 1..=aircraft {
            let keys = self.folder.join(format!("keys-{number}"));
            fs::create_dir(&keys)?;
            let (key, bundle) = (keys.join("aircraft.key"), keys.join("fleet.bundle"));
            let security = format!("secret_key_file = {key:?}\nbundle_file = {bundle:?}\n");
            let endpoint = format!("tcp:127.0.0.1:{}", AUTOPILOT as usize + 10 * (number - 1));
            let config = self.configure(number, aircraft, &endpoint, &security)?;
            let request = keys.join("request");
            let mut ask = Command::new(&self.daemon);
            let asked =
                ask.arg("--config").arg(&config).args(["enrol", "--request"]).arg(&request).output()?;
            let said = String::from_utf8_lossy(&asked.stderr).into_owned();
            let code = said.trim().rsplit("code ").next().unwrap_or_default().to_owned();
            ensure!(asked.status.success(), "enrol: found {said:?}, expected a request");
            let mut enrol = Command::new(&self.wingbeat);
            process::output(
                enrol.args(["fleet", "enrol"]).arg(&fleet).arg(&request).args(["--code", &code]),
            )?;
            configs.push(config);
        }
        let console = self.folder.join("console");
        let mut add = Command::new(&self.wingbeat);
        process::output(add.args(["fleet", "console"]).arg(&fleet).arg("0000000000000c01").arg(&console))?;
        let bundle = fleet.join("fleet.bundle");
        let mut daemons = Vec::new();
        for config in &configs {
            let mut accept = Command::new(&self.daemon);
            process::output(accept.arg("--config").arg(config).args(["enrol", "--accept"]).arg(&bundle))?;
            daemons.push(self.daemon(config)?);
        }
        let address = format!("127.0.0.1:{}", HTTP + 1);
        let bind = "127.0.0.1:8700";
        let mut ground = Command::new(&self.wingbeat);
        let _ground = start(ground.args(["ground", &address, "--bind", bind, "--keys"]).arg(&console))?;
        let least = (NEIGHBOURS * RECEIVED_OF_EACH) as u64;
        until("datagrams of all neighbours", Duration::from_millis(500), || {
            let (_, picture) = http::ask(bind, "GET", "/api/v1/fleet", None).ok()?;
            (picture["aircraft"][0]["status"]["radio"]["received"].as_u64()? >= least).then_some(())
        })?;
        // Their beacons keep coming; what grows with them has grown.
        sleep(Duration::from_secs(10));
        let pid = daemons.first().context("no daemon")?.0.id();
        let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = text
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
        let kib: f64 = kib.context("/proc/PID/status: found no VmRSS")?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Instructions per second of a flight, by callgrind.
    fn instructions_each_s(&self) -> Result<f64> {
        let _sim = start(Command::new(&self.wingbeat).args(["sim", "--uavs", "1", "--tcp", "5760"]))?;
        let config = self.configure(1, 1, "tcp:127.0.0.1:5760", "insecure = true\n")?;
        let guard = self.daemon.with_file_name("wingbeat-guard");
        let _guard = start(Command::new(guard).arg("--config").arg(&config))?;
        let out = self.folder.join("callgrind");
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
        let daemon = start(as_installed(command.arg(&self.daemon), &config)?)?;
        let period = Duration::from_millis(500);
        until("all checks pass", period, || {
            let to = |latitude_deg: f64| json!({"latitude_deg": latitude_deg, "longitude_deg": -0.3464, "height_m": 10.0});
            let mission = json!({"name": "there", "waypoints": [to(39.4825), to(39.4860)]});
            let address = format!("127.0.0.1:{}", HTTP + 1);
            http::ask(&address, "PUT", "/api/v1/mission", Some(&mission)).ok()?;
            let status = status(1)?;
            let mut checks = status["checks"].as_array()?.iter();
            checks.all(|check| check["passed"] == true || check["is_required"] == false).then_some(())
        })?;
        self.order("setup")?;
        until("it has taken off", period, || (status(1)?["state"] == "SetupFinished").then_some(()))?;
        self.order("start")?;
        until("it flies", period, || (status(1)?["state"] == "MovingToWaypoint").then_some(()))?;
        let pid = daemon.0.id().to_string();
        let control = |what: &str| process::output(Command::new("callgrind_control").args([what, &pid]));
        control("-z")?;
        let began = Instant::now();
        sleep(COUNTED);
        control("-d")?;
        let counted_s = began.elapsed().as_secs_f64();
        let flies = status(1).context("no status")?;
        ensure!(
            flies["state"] == "MovingToWaypoint",
            "found state {}, expected it to fly still",
            flies["state"]
        );
        let text = fs::read_to_string(out.with_extension("1"))?;
        let total = text.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse::<f64>().ok());
        Ok(total.context("callgrind: found no summary")? / counted_s)
    }

    fn order(&self, command: &str) -> Result<()> {
        let body = json!({"id": command, "command": command});
        let address = format!("127.0.0.1:{}", HTTP + 1);
        let (code, answer) = http::ask(&address, "POST", "/api/v1/commands", Some(&body))?;
        if !(200..300).contains(&code) {
            bail!("{command}: found {code} {answer}, expected it to be taken");
        }
        Ok(())
    }
}

/// With a state directory, in which it writes its flight log.
fn as_installed<'a>(daemon: &'a mut Command, config: &Path) -> Result<&'a mut Command> {
    let state = config.with_extension("state");
    fs::create_dir_all(&state)?;
    Ok(daemon.arg("--config").arg(config).arg("--state").arg(state))
}

/// What a daemon says of itself, if it answers.
fn status(number: usize) -> Option<Value> {
    let address = format!("127.0.0.1:{}", HTTP as usize + number);
    let (code, status) = http::ask(&address, "GET", "/api/v1/status", None).ok()?;
    (code == 200).then_some(status)
}
