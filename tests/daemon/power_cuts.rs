//! The power of the companion is cut at every moment of what a real daemon writes: enrolment, starts, the next keys, another
//! configuration, a pilot who takes the aircraft and gives it back. `strace` records every change of the state directory;
//! from that follows every state in which the disk may be left: the flight logs of each are read, and a daemon is started on it.
//! `-- --nocapture` prints how many there were, and what the logs lost.

use crate::common::client;
#[path = "power_cuts/disk.rs"]
mod disk;
#[path = "power_cuts/logs.rs"]
mod logs;
use crate::common::rig;
use crate::common::strace;
#[path = "power_cuts/trace.rs"]
mod trace;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use client::ask;
use disk::{Node, Tree};
use logs::Logs;
use rig::{Process, Rig, aircraft, home};
use strace::missing;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use trace::{Change, Op, Recording, recorded};
use wingbeat_api::paths;
use wingbeat_autopilot::copter::Mode;
use wingbeat_ground::push_keys;
use wingbeat_hub::Hub;
use wingbeat_link::Endpoint;
use wingbeat_onboard::{
    Clock,
    config::{self, Flags, kept},
    keys::{
        Request, Store, Timestamp,
        counter::Reserve,
        enrolment::{self, Change as Members},
    },
};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_wire::{Role, VehicleId};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const DAEMON: &str = env!("CARGO_BIN_EXE_wingbeatd-under-test");
const ONE: VehicleId = VehicleId(0xa1);
const CONSOLE: VehicleId = VehicleId(0xc1);
/// The issue asks for 200.
const CUTS_LEAST: usize = 200;
/// Each daemon logs so much at least before it ends.
const BLOCKS_LEAST: usize = 3;

/// What must be left of everything that happened before a time.
#[derive(Clone, Copy, Debug)]
enum Milestone {
    /// The aircraft has shown the code of its key.
    Requested,
    /// It has said that it holds this bundle.
    Holds { serial: u64 },
    /// A daemon with the configuration of this name answers, and has sent datagrams.
    Started { name: &'static str },
}

/// The times of what happened, and the recordings.
struct Story {
    folder: TempDir,
    recording: Recording,
    milestones: Vec<(f64, Milestone)>,
    runs: u32,
}

impl Story {
    fn new() -> Self {
        let story = Self {
            folder: TempDir::new().unwrap(),
            recording: Recording::default(),
            milestones: vec![],
            runs: 0,
        };
        for name in ["state", "traces"] {
            fs::create_dir(story.path(name)).unwrap();
        }
        story
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn happened(&mut self, milestone: Milestone) {
        self.milestones.push((now_s(), milestone));
    }

    /// A recorded run of the daemon's program, whose arguments follow.
    fn run(&mut self) -> Command {
        self.runs += 1;
        recorded(DAEMON, &self.trace())
    }

    fn trace(&self) -> PathBuf {
        self.path("traces").join(self.runs.to_string())
    }

    /// Reads the recording of the run that is over.
    fn over(&mut self, state: &Path) {
        self.recording.add(state, &self.trace());
    }

    /// What must be left by a cut at this time.
    fn before(&self, time_s: f64) -> impl Iterator<Item = &Milestone> {
        self.milestones.iter().filter(move |(at_s, _)| *at_s < time_s).map(|(_, milestone)| milestone)
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The process that strace runs.
fn child_of(process: &Process) -> String {
    let id = process.child.id();
    fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap().trim().to_owned()
}

/// Ends a recorded daemon by a signal, and waits until all of it is recorded.
async fn end(mut daemon: Process, signal: &str) {
    let child = child_of(&daemon);
    assert!(Command::new("kill").arg(format!("-{signal}")).arg(child).status().unwrap().success());
    daemon.ended().await;
}

/// What is read from a state of the disk: all of it by what the daemon itself reads it with.
#[derive(Debug)]
struct Left {
    /// None where there is no key yet.
    secret: Option<Result<[u8; 32], String>>,
    serial: Option<u64>,
    /// The name in the configuration that is kept, where the present one is garbled.
    kept: Option<String>,
    /// Where counters begin if the clock shows 1970.
    base_us: u64,
    taken: bool,
    /// What is wrong with what a daemon logs on it; none also where none was started.
    log_problem: Option<String>,
}

/// Makes the state, reads it, and starts a daemon on it.
async fn left(tree: &Tree, state: &Path, garbled: &Path) -> Left {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (path, node) in tree {
        let path = at(path.strip_prefix(state).unwrap().to_str().unwrap());
        match node {
            Node::Folder => fs::create_dir(&path).unwrap(),
            Node::File(bytes) => {
                fs::write(&path, bytes).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
    }
    let key = at("aircraft.key");
    let digits = || wingbeat_onboard::keys::file::read_digits(&key, 0o077).map_err(|refused| refused.found);
    let secret = key.exists().then(digits);
    let held = Store::of_aircraft(ONE, key, at("fleet.bundle")).read();
    let path = |name: &str| {
        (
            format!("security.{name}"),
            at(if name == "bundle_file" { "fleet.bundle" } else { "aircraft.key" }).display().to_string(),
        )
    };
    let mut flags = Flags { config: garbled.to_owned(), overrides: vec![] };
    if held.is_ok() {
        flags.overrides.extend([path("secret_key_file"), path("bundle_file")]);
    }
    let kept = kept::read_or_kept(&flags, Some(folder.path()), kept::Kept::AsSecure, config::read).ok();
    let base_us = Reserve::open(Some(folder.path()), 0).base_us();
    let (mut taken, mut log_problem) = (false, None);
    let name = kept.as_ref().map(|found| found.settings.daemon.name.clone());
    if let Some(found) = kept {
        let mut daemon = found.settings.daemon;
        daemon.configuration_fault = found.fault;
        daemon.state = Some(folder.path().to_owned());
        daemon.autopilot = Endpoint::TcpClient { host: "127.0.0.1".into(), port: 1 };
        daemon.http = ([127, 0, 0, 1], 0).into();
        daemon.guard = None;
        let clock = Clock::real_time();
        let (_hub, mut radios) =
            Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 1), 1, clock);
        let handle = wingbeat_onboard::start(daemon, clock, radios.remove(0)).await.unwrap();
        let mut status = handle.status();
        let first =
            timeout(PATIENCE, status.wait_for(|status| status.time_ms > 100)).await.unwrap().unwrap().clone();
        taken = !first.engaged;
        let refused = first.checks.iter().any(|check| check.name == "configuration" && !check.passed);
        assert!(refused, "an earlier configuration refuses setup: {first:?}");
        log_problem = first.log.problem.clone();
        handle.stop().await;
        // A daemon that stops waits a second for the disk, and the thread that writes goes on.
        let added = || logs::added(folder.path(), state, tree);
        let written = async {
            while added().is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = timeout(PATIENCE, written).await;
        log_problem = log_problem.or(added().err());
    }
    Left { secret, serial: held.ok().map(|held| held.terms.serial), kept: name, base_us, taken, log_problem }
}

/// Cuts the power before every change and after the last, and prints how many cuts and different states there were.
async fn cut_everywhere(story: &Story, state: &Path) -> usize {
    let garbled = story.path("garbled.toml");
    fs::write(&garbled, "[autopilot\0\0\0").unwrap();
    let ops = &story.recording.ops;
    let secret = fs::read(state.join("aircraft.key")).ok().map(|text| text.trim_ascii().to_vec());
    let mut known: BTreeMap<Tree, Left> = BTreeMap::new();
    let mut logs = Logs::of(state);
    let mut cuts = 0;
    for cut in 0..=ops.len() {
        let time_s = ops.get(cut).map_or_else(now_s, |op| op.begun_s);
        let synced = disk::synced(ops, cut);
        for tree in disk::states(ops, cut) {
            cuts += 1;
            // A daemon lists the logs of others and reads none.
            let listed = logs::listed(&tree);
            if !known.contains_key(&listed) {
                let left = Box::pin(left(&tree, state, &garbled)).await;
                known.insert(listed.clone(), left);
            }
            let left = &known[&listed];
            let mut judged =
                judge(left, story, time_s, secret.as_deref()).and_then(|()| logs.judge(&tree, &synced));
            if must_be_taken(&ops[..cut]) && !left.taken {
                judged = Err("it is forgotten that a pilot has the aircraft".to_owned());
            }
            judged.unwrap_or_else(|wrong| {
                let change = ops.get(cut).map(|op| &op.change);
                panic!(
                    "cut before change {cut} of {}, {change:?}: {wrong}; {left:?} of {listed:?}",
                    ops.len()
                )
            });
        }
    }
    let states = known.len();
    println!(
        "{} changes, {cuts} power cuts, {states} states of the disk: all readable; {}",
        ops.len(),
        logs.summary(ops)
    );
    cuts
}

fn judge(left: &Left, story: &Story, time_s: f64, secret: Option<&[u8]>) -> Result<(), String> {
    let is = |right: bool, wrong: &str| if right { Ok(()) } else { Err(wrong.to_owned()) };
    match &left.secret {
        None => {}
        Some(Ok(bytes)) => {
            let digits = wingbeat_onboard::keys::file::hexadecimal(bytes);
            is(Some(digits.as_bytes()) == secret, "another key")?;
        }
        Some(Err(found)) => return Err(format!("the key: {found}")),
    }
    if let Some(problem) = &left.log_problem {
        return Err(problem.clone());
    }
    for milestone in story.before(time_s) {
        match *milestone {
            Milestone::Requested => is(left.secret.is_some(), "no key")?,
            Milestone::Holds { serial } => {
                is(left.serial.is_some_and(|left| left >= serial), "no bundle, or an earlier one")?;
            }
            Milestone::Started { name } => {
                // A later one may be there before its daemon answers.
                let later = story
                    .milestones
                    .iter()
                    .skip_while(|(_, m)| !matches!(m, Milestone::Started { name: n } if *n == name));
                let mut names = later.filter_map(|(_, m)| match m {
                    Milestone::Started { name } => Some(*name),
                    Milestone::Requested | Milestone::Holds { .. } => None,
                });
                is(
                    left.kept.as_deref().is_some_and(|kept| names.any(|name| name == kept)),
                    "no such configuration",
                )?;
                is(left.base_us as f64 / 1e6 > time_s, "a counter may be used twice")?;
            }
        }
    }
    Ok(())
}

/// Whether it is on the disk that a pilot has the aircraft: written, not removed since, and never forgotten then.
fn must_be_taken(changes: &[Op]) -> bool {
    let is_latch = |path: &Path| path.ends_with("taken-by-pilot");
    let mut folder = None;
    let (mut is_written, mut is_synced) = (false, false);
    for op in changes {
        match &op.change {
            Change::Rename { to, .. } if is_latch(to) => (is_written, folder) = (true, to.parent()),
            Change::Unlink { path } if is_latch(path) => (is_written, is_synced) = (false, false),
            Change::SyncFolder { path } => is_synced |= is_written && folder == Some(path),
            Change::MakeFolder { .. } => {}
            Change::Create { .. } | Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } => {}
            Change::Rename { .. } | Change::Link { .. } | Change::Unlink { .. } => {}
        }
    }
    is_synced
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_counters_and_configurations_are_whole_after_every_power_cut() {
    if let Some(what) = missing() {
        println!("skipped: {what}");
        return;
    }
    let mut story = Story::new();
    let (state, authority) = (story.path("state"), story.path("authority"));
    let configuration = story.path("wingbeatd.toml");
    let write_configuration = |name: &str| {
        let text = format!(
            "id = \"{ONE}\"\nname = \"{name}\"\nprotocol = \"mission\"\n[autopilot]\nendpoint = \"tcp:127.0.0.1:1\"\n\
             [log]\nfree_mb = 16\n[security]\nsecret_key_file = \"{0}/aircraft.key\"\nbundle_file = \"{0}/fleet.bundle\"\n[http]\n\
             bind = \"127.0.0.1:0\"\n[radio]\nbroadcast = \"127.255.255.255\"\nport = {1}\n[guard]\nsocket = \"{0}.sock\"\n",
            state.display(),
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
        );
        fs::write(&configuration, text).unwrap();
    };
    write_configuration("first");
    enrolment::init(&authority, Timestamp::now(), 30).unwrap();
    let change = |change: &Members| enrolment::change(&authority, change, Timestamp::now()).unwrap();

    // Enrolled as by hand.
    let request = story.path("request");
    let mut enrol = story.run();
    enrol.arg("--config").arg(&configuration).args(["enrol", "--request"]).arg(&request);
    assert!(enrol.status().unwrap().success());
    story.over(&state);
    story.happened(Milestone::Requested);
    let request = Request::parse(&fs::read_to_string(&request).unwrap()).unwrap();
    change(&Members::Enrol { request, role: Role::Aircraft });
    let desk = Store::of_console(CONSOLE, &story.path("console"));
    let bundle = change(&Members::Enrol { request: desk.request().unwrap(), role: Role::Operator });
    desk.accept(bundle.text()).unwrap();
    let file = story.path("fleet.bundle");
    fs::write(&file, bundle.text()).unwrap();
    let mut accept = story.run();
    accept.arg("--config").arg(&configuration).args(["enrol", "--accept"]).arg(&file);
    assert!(accept.status().unwrap().success());
    story.over(&state);
    story.happened(Milestone::Holds { serial: bundle.terms().serial });

    // Daemons with changing configurations that are given the keys of the next epochs, and are stopped or killed.
    let keys = wingbeat_onboard::keys::read_console(&story.path("console")).unwrap();
    let runs = [("first", "KILL"), ("second", "TERM"), ("third", "KILL"), ("fourth", "KILL")];
    for (number, (name, signal)) in (1..).zip(runs) {
        write_configuration(name);
        let (daemon, address) = start(&mut story, &configuration, &state).await;
        story.happened(Milestone::Started { name });
        let next = change(&Members::Renew { without: vec![] });
        let receipts = push_keys(&[address], next.text(), &keys).await.unwrap();
        assert!(receipts[0].result.is_ok(), "{receipts:?}");
        story.happened(Milestone::Holds { serial: next.terms().serial });
        let logs = async {
            while !logs::has(&state, number, BLOCKS_LEAST) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(timeout(PATIENCE, logs).await.is_ok(), "{name}: found no {BLOCKS_LEAST} blocks in its log");
        end(daemon, signal).await;
        story.over(&state);
    }

    let cuts = Box::pin(cut_everywhere(&story, &state)).await;
    assert!(cuts >= CUTS_LEAST, "found {cuts} cuts, expected at least {CUTS_LEAST}");
}

/// A recorded daemon that answers.
async fn start(story: &mut Story, configuration: &Path, state: &Path) -> (Process, String) {
    let mut command = story.run();
    command.arg("--config").arg(configuration).arg("--state").arg(state);
    let daemon = Process::start(&mut command);
    let output = daemon.prints("API https://").await;
    let address = output.split_once("API https://").unwrap().1.split(',').next().unwrap().to_owned();
    (daemon, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_a_pilot_has_the_aircraft_is_remembered_over_every_power_cut() {
    if let Some(what) = missing() {
        println!("skipped: {what}");
        return;
    }
    let mut story = Story::new();
    let aircraft = aircraft().await;
    let rig = Rig::with(story.run(), aircraft.address, true).await;
    let state = rig.folder.path().to_owned();
    story.happened(Milestone::Started { name: "uav-0304" });
    rig.cruising(home()).await;
    aircraft.pilot.send_replace(Some(Mode::Loiter));
    rig.until("taken over", |s| !s.engaged).await;
    let latch = state.join("taken-by-pilot");
    exists(&latch, true).await;
    // He hands it back, which is taken when the aircraft has come to rest.
    aircraft.pilot.send_replace(Some(Mode::Guided));
    rig.until("handed back", |s| s.flight_controller.mode.as_deref() == Some("GUIDED")).await;
    let engage = async {
        for id in 0.. {
            let body = format!(r#"{{"id":"engage-{id}","command":"engage"}}"#);
            let (code, _) = ask(rig.api, "POST", paths::COMMANDS, &body).await;
            if (200..300).contains(&code) {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, engage).await.expect("it is engaged again");
    exists(&latch, false).await;
    let Rig { daemon, guard: _guard, folder: _folder, .. } = rig;
    end(daemon, "KILL").await;
    story.over(&state);
    let ops = &story.recording.ops;
    let durable = (0..ops.len()).filter(|cut| must_be_taken(&ops[..*cut])).count();
    assert!(durable > 0, "never on the disk: {ops:?}");
    Box::pin(cut_everywhere(&story, &state)).await;
}

async fn exists(path: &Path, expected: bool) {
    let wait = async {
        while path.exists() != expected {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "{}: never {expected}", path.display());
}
