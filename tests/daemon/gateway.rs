//! Ground stations connected to a flying daemon: real clients from outside, and what the autopilot gets of them.

// REQUEST_DATA_STREAM is deprecated, and what these clients send.
#![allow(deprecated)]

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;
#[path = "../python/environment.rs"]
mod environment;
use crate::common::spy;

use std::{net::SocketAddr, process::Stdio, time::Duration};

use aircraft::{flight_controller, home, until};
use client::ask;
use config::{config, tcp};
use spy::{Received, spy};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    sync::watch,
    time::timeout,
};
use wingbeat_api::{MissionItem, MissionUpload, StateId, paths};
use wingbeat_autopilot::{
    dialect::{MavDataStream, MavMessage},
    gateway::command_of,
};
use wingbeat_geo::{DVec3, Frame};
use wingbeat_hub::{Hub, HubRadio};
use wingbeat_onboard::{Clock, Config, Handle, gateway, start};
use wingbeat_protocol::muscop;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    motion::Profile::{self, Copter357, Copter462},
};
use wingbeat_wire::VehicleId;

/// Longer than a client takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct LoneFlight {
    handle: Handle,
    received: Received,
    _hub: Hub,
    _online: watch::Sender<bool>,
}

/// A lone aircraft that flies a leg of two kilometres, five times as fast as the clock.
async fn flying(profile: Profile) -> LoneFlight {
    let clock = Clock::start(5.0).unwrap();
    let me = VehicleId(0xa1);
    let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, 1, 1);
    let (hub, mut radios): (Hub, Vec<HubRadio>) = Hub::spawn(channel, 1, clock);
    let (online_sender, online) = watch::channel(true);
    let far = flight_controller(profile, (0, 0.0), clock, None, online).await;
    let (address, received) = spy(far).await;
    let agent = wingbeat_agent::Config::new(muscop::Config::new(me, me, 1));
    let config = Config {
        gateway: gateway::Config {
            udp: vec!["udp:127.0.0.1:0".parse().unwrap()],
            tcp: Some(([127, 0, 0, 1], 0).into()),
            ..gateway::Config::default()
        },
        ..config(agent, tcp(address))
    };
    let handle = start(config, clock, radios.remove(0)).await.unwrap();
    let frame = Frame::new(home());
    let item = |north_m| {
        let place = frame.to_position(DVec3::new(0.0, north_m, 0.0));
        MissionItem::at(place.latitude_deg(), place.longitude_deg(), 8.0)
    };
    let mission = MissionUpload::new("leg", vec![item(10.0), item(2_000.0)]);
    let body = serde_json::to_string(&mission).unwrap();
    assert_eq!(ask(handle.address(), "PUT", paths::MISSION, &body).await.0, 200);
    until(&handle, "checks passed", |s| s.checks.iter().all(|check| check.passed || !check.is_required))
        .await;
    for (command, state) in [("setup", StateId::SetupFinished), ("start", StateId::MovingToWaypoint)] {
        let body = format!(r#"{{"id":"{command}","command":"{command}"}}"#);
        let (code, answer) = ask(handle.address(), "POST", paths::COMMANDS, &body).await;
        assert_eq!(code, 202, "{answer}");
        until(&handle, command, |s| s.state == state).await;
    }
    LoneFlight { handle, received, _hub: hub, _online: online_sender }
}

impl LoneFlight {
    fn tcp(&self) -> SocketAddr {
        self.handle.gateway()[1]
    }

    /// Nothing that a client read took the aircraft over, or slowed what the agent needs.
    fn still_flies(&self) {
        let status = self.handle.status().borrow().clone();
        assert!(
            status.engaged && status.state == StateId::MovingToWaypoint,
            "{} {}",
            status.state,
            status.detail
        );
        let mut position_hz = None;
        for (system, component, message) in self.received.lock().unwrap().iter() {
            if *component == 191 {
                continue;
            }
            if let MavMessage::REQUEST_DATA_STREAM(m) = message
                && matches!(
                    m.req_stream_id,
                    MavDataStream::MAV_DATA_STREAM_ALL | MavDataStream::MAV_DATA_STREAM_POSITION
                )
            {
                position_hz = Some(m.req_message_rate * u16::from(m.start_stop));
            }
            let what = command_of(message);
            assert!(what.is_none(), "{system}.{component} commanded before it was its turn: {what:?}");
            if let MavMessage::HEARTBEAT(_) = message {
                panic!("a heartbeat of {system}.{component} without a lease");
            }
        }
        assert!(position_hz.is_none_or(|hz| hz >= 4), "the position comes at {position_hz:?} Hz");
    }

    /// The client's command reached the autopilot, the agent is silent, and not one order followed.
    async fn is_taken_over(&self, by: &str) {
        let status = until(&self.handle, "taken over", |s| !s.engaged).await;
        assert!(status.detail.contains("ground station") && status.detail.contains(by), "{}", status.detail);
        // Ten seconds of the flight: a target would have been repeated ten times.
        let from = status.time_ms;
        until(&self.handle, "ten seconds on", |s| s.time_ms > from + 10_000).await;
        let received = self.received.lock().unwrap();
        let commands = |wanted: fn(u8) -> bool| {
            let of = move |(_, (_, component, message)): &(usize, &(u32, u8, MavMessage))| {
                wanted(*component) && command_of(message).is_some()
            };
            received.iter().enumerate().filter(of).map(|(at, _)| at)
        };
        let taken_at = commands(|component| component != 191).next().expect("the client's command arrived");
        let ours_last = commands(|component| component == 191).next_back().expect("the agent flew");
        assert!(ours_last < taken_at, "an order of ours at {ours_last}, behind theirs at {taken_at}");
    }

    /// Runs a client: it reads and prints READ, is let continue, takes over and prints TAKEN.
    async fn run_client(&self, script: &str, address: String, by: &str) {
        let python = match environment::python() {
            Ok(python) => python,
            Err(why) => return eprintln!("skipped: no {script} here ({why})"),
        };
        let path = format!("{}/../clients/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(python);
        command.arg(path).arg(address);
        self.drive(command, script, &[("READ", "\n")], "TAKEN", by).await;
    }

    /// Runs MAVProxy as a person would: commands are typed when it has printed what they wait for.
    async fn mavproxy_client(&self, taken: &str) {
        let python = match environment::python() {
            Ok(python) => python,
            Err(why) => return eprintln!("skipped: no MAVProxy here ({why})"),
        };
        let state = tempfile::tempdir().unwrap();
        let mut command = Command::new(&python);
        command
            .args(["-u".as_ref(), python.with_file_name("mavproxy.py").as_os_str()])
            .arg(format!("--master=tcp:{}", self.tcp()))
            .args(["--default-modules=param,wp,mode,rc,arm,misc,cmdlong", "--aircraft=one"])
            .args(["--state-basedir".as_ref(), state.path().as_os_str()])
            .env("HOME", state.path())
            .env("TERM", "dumb")
            .current_dir(state.path());
        let steps = [
            // It requests all streams and all parameters without a command.
            ("Received", "set streamrate 1\nwp list\n"),
            ("Saved 4 waypoints", "set streamrate 0\nwp list\n"),
            ("Saved 4 waypoints", "mode LOITER\n"),
        ];
        self.drive(command, "MAVProxy", &steps, taken, "MAV_CMD_DO_SET_MODE").await;
    }

    /// Drives a client: each step waits for a line that contains the first and writes the second. Until
    /// the last step nothing may have been commanded; after it the client takes over, and prints `taken`.
    async fn drive(&self, mut command: Command, name: &str, steps: &[(&str, &str)], taken: &str, by: &str) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut client = command.spawn().unwrap();
        let mut input = client.stdin.take().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let mut output = String::new();
        let mut steps = steps.iter().peekable();
        while let Ok(Some(line)) =
            timeout(PATIENCE, lines.next_line()).await.unwrap_or_else(|_| panic!("{name} hangs: {output}"))
        {
            output += &line;
            output.push('\n');
            match steps.next_if(|(wait, _)| line.contains(wait)) {
                Some((_, write)) => {
                    self.still_flies();
                    input.write_all(write.as_bytes()).await.unwrap();
                    input.flush().await.unwrap();
                }
                None if steps.peek().is_none() && line.contains(taken) => {
                    return self.is_taken_over(by).await;
                }
                None => {}
            }
        }
        panic!("{name} ended: {output}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn pymavlink_reads_and_takes_over() {
    let flight = flying(Copter357).await;
    let address = format!("tcp:{}", flight.tcp());
    flight.run_client("beside_pymavlink.py", address, "mode LOITER").await;
    flight.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn mavsdk_reads_and_takes_over() {
    let flight = flying(Copter357).await;
    let address = format!("tcpout://{}", flight.tcp());
    flight.run_client("beside_mavsdk.py", address, "ground station").await;
    flight.handle.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn mavproxy_reads_and_takes_over() {
    let flight = flying(Copter462).await;
    flight.mavproxy_client("Mode LOITER").await;
    flight.handle.stop().await;
}

/// Today's MAVProxy asks by a command that 3.5.7 does not know: the mode stays, and the agent is silent
/// all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_takeover_that_the_autopilot_refuses_is_one() {
    let flight = flying(Copter357).await;
    flight.mavproxy_client("DO_SET_MODE: UNSUPPORTED").await;
    flight.handle.stop().await;
}
