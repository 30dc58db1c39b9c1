//! Five aircraft as they are installed: `wingbeatd` and `wingbeat-guard` as processes of their own, each pair in a network
//! namespace with one interface, joined by a bridge that loses, delays, duplicates and reorders; behind the pseudo-terminal of each
//! a simulated flight controller; and one PC Companion on the same bridge. They fly MUSCOP from upload to landing, and one
//! daemon is killed on the way. Ignored unless asked for, because it takes two minutes of real time: `cargo xtask test --full`.

#[path = "../../crates/radio/tests/namespaces/bridge.rs"]
#[allow(dead_code, reason = "what the radio's own tests count")]
mod bridge;
#[path = "../../crates/radio/tests/namespaces/hosts.rs"]
mod hosts;

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bridge::{Bridge, Impairment};
use hosts::{command, enter, new_host, plug_in};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::runtime::Runtime;
use wingbeat_api::{
    FleetCommandRequest, FleetMissionUpload, FleetPicture, MissionItem, MissionUpload, Phase, paths,
};
use wingbeat_bench::serve_serial::{self, Line};
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_ground::{Ground, Handle, Listening};
use wingbeat_radio::{Clock, Destination, UdpBroadcast, UdpConfig};
use wingbeat_sim::flight_controller::{Config, FlightController};
use wingbeat_wire::Command as Order;

const AIRCRAFT: u8 = 5;
/// The PC Companion's place on the bridge.
const GROUND: u8 = AIRCRAFT;
const ROUGH: Impairment =
    Impairment { loss: 0.05, duplicate: 0.02, delay: Duration::from_millis(10), everything: true };
const CLEAR: Impairment = Impairment { loss: 0.0, duplicate: 0.0, delay: Duration::ZERO, everything: true };
/// A phase of the flight takes half a minute.
const PHASE: Duration = Duration::from_secs(240);

fn home() -> Position {
    Position::from_degrees(39.4824, -0.3464, 10.0).unwrap()
}

/// A process that is killed with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program in the namespace of a host, with its configuration and its log in a folder.
fn program(host: u8, name: &str, path: &str, folder: &Path) -> Process {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(format!("{name}.log")))
        .unwrap();
    let child = Command::new("ip")
        .args(["netns", "exec", &format!("air{host}"), path, "--config"])
        .arg(folder.join("wingbeatd.toml"))
        .arg("--state")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Process(child)
}

fn daemon(host: u8, folder: &Path) -> Process {
    program(host, "wingbeatd", env!("CARGO_BIN_EXE_wingbeatd-under-test"), folder)
}

fn configure(host: u8, folder: &Path, line: &Path) {
    let (number, line, socket) = (host + 1, line.display(), folder.join("guard.sock").display().to_string());
    let text = format!(
        "id = \"{number:016x}\"\n\
         [autopilot]\nendpoint = \"serial:{line}:921600\"\n\
         [radio]\ninterface = \"wlan0\"\nbroadcast = \"interface\"\n\
         [security]\ninsecure = true\n\
         [http]\nbind = \"10.77.0.{number}:8080\"\n\
         [guard]\nsocket = \"{socket}\"\n\
         [muscop]\nmaster = \"0000000000000001\"\naircraft = {AIRCRAFT}\ntake_off = \"simultaneous\"\n"
    );
    std::fs::write(folder.join("wingbeatd.toml"), text).unwrap();
}

/// A runtime whose threads are in the namespace of a host.
fn runtime_in(host: u8) -> Runtime {
    let enter = move || {
        let namespace = std::fs::File::open(format!("/run/netns/air{host}")).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).on_thread_start(enter).enable_all().build().unwrap()
}

fn log_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("wingbeatd.log")).unwrap_or_default()
}

struct Flight {
    folders: Vec<PathBuf>,
    since: Instant,
    runtime: Runtime,
    ground: Handle,
}

impl Flight {
    fn picture(&self) -> FleetPicture {
        self.runtime.block_on(self.ground.picture()).unwrap()
    }

    /// Waits until the picture is like this.
    fn until(&self, what: &str, satisfies: impl Fn(&FleetPicture) -> bool) {
        let since = Instant::now();
        loop {
            let picture = self.picture();
            if satisfies(&picture) {
                return println!("{:5.1} s  {what}", self.since.elapsed().as_secs_f64());
            }
            if since.elapsed() > PHASE {
                let found: Vec<_> = picture
                    .aircraft
                    .iter()
                    .map(|one| {
                        (
                            &one.problem,
                            one.status.as_ref().map(|s| {
                                (s.phase, s.checks.iter().filter(|c| !c.passed).collect::<Vec<_>>())
                            }),
                        )
                    })
                    .collect();
                let logs: String = self.folders.iter().map(|folder| log_of(folder)).collect();
                panic!("never, within {PHASE:?}: {what}: {found:#?}\n{:#?}\n{logs}", picture.commands);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn press(&self, id: &str, command: Order) {
        let request = FleetCommandRequest { id: id.into(), command, vehicles: Vec::new() };
        let reply = self.runtime.block_on(self.ground.command(request));
        assert!(reply.is_ok(), "{command}: {reply:?}");
    }
}

fn all(picture: &FleetPicture, satisfies: impl Fn(&wingbeat_api::AircraftStatus) -> bool) -> bool {
    picture.aircraft.len() == usize::from(AIRCRAFT)
        && picture.aircraft.iter().all(|one| one.status.as_ref().is_some_and(&satisfies))
}

#[test]
#[ignore = "two minutes of real time, with the machine to itself"]
fn five_daemons_in_namespaces_fly_muscop_and_one_is_killed() {
    if enter("namespaces::five_daemons_in_namespaces_fly_muscop_and_one_is_killed") {
        return;
    }
    command("mount -t tmpfs tmpfs /run");
    for host in 0..=GROUND {
        new_host(host);
        plug_in(host);
    }
    let ports: Vec<String> = (0..=GROUND).map(|host| format!("port{host}")).collect();
    let bridge = Bridge::over(&ports, 7, CLEAR);

    let controllers =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let clock = Clock::start(1.0).unwrap();
    let root = tempfile::tempdir().unwrap();
    let frame = Frame::new(home());
    let places = Arc::new(Mutex::new([None::<DVec3>; AIRCRAFT as usize]));
    let nearest_m = Arc::new(Mutex::new(f64::INFINITY));
    let mut processes = Vec::new();
    let mut daemons = Vec::new();
    let folders: Vec<_> = (0..AIRCRAFT).map(|host| root.path().join(format!("air{host}"))).collect();
    for (host, folder) in (0..AIRCRAFT).zip(&folders) {
        std::fs::create_dir(folder).unwrap();
        let line = {
            let _guard = controllers.enter();
            Line::new(&folder.join("tty")).unwrap()
        };
        configure(host, folder, line.device());
        let at = frame.to_position(DVec3::new(12.0 * f64::from(host), 0.0, 0.0));
        let controller = FlightController::new(Config::new(host + 1, at), 1, wingbeat_geo::Instant::ZERO);
        let (places, nearest_m, frame) = (places.clone(), nearest_m.clone(), Frame::new(home()));
        controllers.spawn(serve_serial::flight_controller(line, controller, clock, move |controller| {
            let truth = controller.truth();
            let mut places = places.lock().unwrap();
            places[usize::from(host)] = (!truth.landed).then(|| frame.to_local(truth.position));
            let others = places.iter().enumerate().filter(|(i, _)| *i != usize::from(host));
            let Some(own) = places[usize::from(host)] else { return };
            let distances_m = others.filter_map(|(_, other)| other.map(|other| own.distance(other)));
            let mut least_m = nearest_m.lock().unwrap();
            *least_m = distances_m.fold(*least_m, f64::min);
        }));
        processes.push(program(host, "guard", env!("CARGO_BIN_EXE_wingbeat-guard-under-test"), folder));
        daemons.push(daemon(host, folder));
    }
    let runtime = runtime_in(GROUND);
    // The master broadcasts nothing before Setup, and is listed; the others are found by their datagrams.
    let aircraft = vec!["10.77.0.1:8080".to_owned()];
    let config = wingbeat_ground::Config {
        bind: ([10, 77, 0, GROUND + 1], 8700).into(),
        aircraft,
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_ground::Hosts::default(),
        console: None,
        protection: Default::default(),
    };
    let mut ground = runtime.block_on(async { runtime.spawn(Ground::start(config)).await.unwrap().unwrap() });
    {
        let _guard = runtime.enter();
        let radio =
            UdpConfig { interface: Some("wlan0".into()), port: 14_600, destination: Destination::Interface };
        let listening = Listening { radio: "wlan0:14600".into(), api_port: 8080 };
        ground.listen(listening, UdpBroadcast::spawn(radio));
    }
    let flight = Flight { folders: folders.clone(), since: Instant::now(), runtime, ground };
    bridge.set(ROUGH);

    flight.until("the PC Companion receives all five", |picture| all(picture, |_| true));
    let waypoint = |north_m: f64| {
        let at = frame.to_position(DVec3::new(0.0, north_m, 0.0));
        MissionItem::at(f64::from(at.latitude_e7) * 1e-7, f64::from(at.longitude_e7) * 1e-7, 25.0)
    };
    let mission = MissionUpload::new("namespaces", vec![waypoint(0.0), waypoint(60.0), waypoint(90.0)]);
    let upload = FleetMissionUpload { vehicle: format!("{:016x}", 1), mission };
    let address = flight.ground.address();
    let put = async move {
        let url = format!("http://{address}{}", paths::FLEET_MISSION);
        let answer = wingbeat_ground::plain_client().unwrap().put(url).json(&upload).send().await.unwrap();
        (answer.status().is_success(), answer.text().await.unwrap())
    };
    let (taken, answer) = flight.runtime.block_on(async { flight.runtime.spawn(put).await.unwrap() });
    assert!(taken, "{answer}");
    flight.until("Setup can be pressed", |picture| picture.actions.setup);
    flight.press("setup", Order::Setup);
    flight.until("all are in their slots", |picture| all(picture, |one| one.phase == Phase::Ready));
    flight.press("start", Order::Start);
    flight.until("all fly", |picture| all(picture, |one| one.phase == Phase::Moving));

    // One that is not the leader: its guardian holds it, and it rejoins.
    let is_leader = |picture: &FleetPicture, number: u8| {
        let id = format!("{number:016x}");
        let of = |one: &wingbeat_api::FleetAircraft| one.status.as_ref().filter(|s| s.id == id).cloned();
        picture.aircraft.iter().find_map(of).is_some_and(|s| s.swarm.is_some_and(|swarm| swarm.leader))
    };
    let picture = flight.picture();
    let killed = (1..AIRCRAFT).find(|host| !is_leader(&picture, host + 1)).unwrap();
    drop(daemons.remove(usize::from(killed)));
    println!("{:5.1} s  the daemon of {} was killed", flight.since.elapsed().as_secs_f64(), killed + 1);
    std::thread::sleep(Duration::from_secs(1));
    let _again = daemon(killed, &folders[usize::from(killed)]);
    flight.until("all have landed after the mission, the killed one with them", |picture| {
        all(picture, |one| one.phase == Phase::Finished && !one.flight_controller.armed)
    });
    let log = log_of(&folders[usize::from(killed)]);
    assert!(log.contains("rejoins its swarm"), "{log}");
    let nearest_m = nearest_m.lock().unwrap();
    println!("least distance in flight {:.1} m", *nearest_m);
    assert!(*nearest_m >= 5.0, "{nearest_m} m between two in flight");
    drop(processes);
}
