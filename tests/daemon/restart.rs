//! Daemons that die in each phase of a MUSCOP flight and are started again at once: real processes, swarms of three, one for each
//! phase, all at the same time. The one that is started again reads from its flight controller where the aircraft is, and is
//! in its swarm again: on the ground when it is set up, and on the route at once. In take-off and landing its guardian lands it,
//! and where that died too it hovers until the operator lands it. Nothing comes nearer than 5 m to anything, all land, and each
//! flight controller has its pilot's height of return again. `-- --nocapture` prints what happened.

use crate::common::client;
use crate::common::rig;

use std::sync::{Arc, Mutex};

use client::ask;
use rig::{HOLD_S, PATIENCE, Rig, daemon, guard, home, program};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, time::timeout};
use wingbeat_api::{AircraftStatus, CommandOutcome, MissionItem, MissionUpload, StateId, paths};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_hub::serve;
use wingbeat_onboard::Clock;
use wingbeat_sim::flight_controller::{Config, FlightController, Parameter, Truth};

const AIRCRAFT: usize = 3;
const HEIGHT_M: f64 = 4.0;
/// Between two aircraft on the ground, metres.
const APART_M: f64 = 12.0;
/// A daemon that has just connected knows its place within this, at up to 5 m/s, metres.
const READ_WITHIN_M: f64 = 8.0;
/// `RTL_ALT` of a flight controller that no agent has written to, centimetres.
const PILOTS_RETURN_CM: f64 = 1_500.0;
/// SAFE-07.
const NEAREST_M: f64 = 5.0;

/// What becomes of an aircraft whose daemon died in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Its guardian gives it back, and it flies on with its swarm.
    Rejoins,
    Lands,
}

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dies {
    Daemon,
    /// The daemon and its guardian, as when the companion computer restarts.
    Companion,
}

/// One death.
struct Death {
    phase: &'static str,
    dies: Dies,
    /// 0 leads.
    victim: usize,
    /// Whether it is the time, as the one that dies says.
    when: fn(&AircraftStatus) -> bool,
    /// Where it flew.
    then: Then,
}

fn height_m(status: &AircraftStatus) -> f64 {
    status.navigation.as_ref().map_or(0.0, |navigation| navigation.height_m)
}

fn speed_m_s(status: &AircraftStatus) -> f64 {
    status.navigation.as_ref().map_or(0.0, |navigation| navigation.ground_speed_m_s)
}

const DEATHS: [Death; 10] = [
    Death {
        phase: "before Setup",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::Start,
        then: Then::Lands,
    },
    Death {
        phase: "set up, on the ground",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| matches!(s.state, StateId::Setup | StateId::ReadyToFly),
        then: Then::Lands,
    },
    Death {
        phase: "taking off",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::TakingOff && height_m(s) > 1.0,
        then: Then::Lands,
    },
    Death {
        phase: "on the way to its slot",
        dies: Dies::Daemon,
        victim: 2,
        when: |s| s.state == StateId::TakingOff && speed_m_s(s) > 1.0,
        then: Then::Lands,
    },
    Death {
        phase: "in its slot",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::SetupFinished,
        then: Then::Lands,
    },
    Death {
        phase: "on a leg",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::MovingToWaypoint && speed_m_s(s) > 2.0,
        then: Then::Rejoins,
    },
    Death {
        phase: "on a leg, leading",
        dies: Dies::Daemon,
        victim: 0,
        when: |s| s.state == StateId::MovingToWaypoint && speed_m_s(s) > 2.0,
        then: Then::Rejoins,
    },
    Death {
        phase: "on a leg, whole companion",
        dies: Dies::Companion,
        victim: 1,
        when: |s| s.state == StateId::MovingToWaypoint && speed_m_s(s) > 2.0,
        then: Then::Lands,
    },
    Death {
        phase: "at a waypoint's barrier",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::WaypointReached,
        then: Then::Rejoins,
    },
    Death {
        phase: "landing",
        dies: Dies::Daemon,
        victim: 1,
        when: |s| s.state == StateId::Landing || s.state == StateId::MovingToLand,
        then: Then::Lands,
    },
];

/// A swarm on its homes, each with its guardian.
struct Swarm {
    aircraft: Vec<Rig>,
    truths: Vec<watch::Receiver<Truth>>,
    /// The `RTL_ALT` of each, centimetres.
    return_heights_cm: Vec<watch::Receiver<f64>>,
    nearest_m: Arc<Mutex<f64>>,
}

impl Swarm {
    async fn new(radio: u16) -> Self {
        let frame = Frame::new(home());
        // Where each is, and whether it flies.
        let places = Arc::new(Mutex::new([None::<(DVec3, bool)>; AIRCRAFT]));
        let nearest_m = Arc::new(Mutex::new(f64::INFINITY));
        let (mut aircraft, mut truths, mut return_heights_cm) = (vec![], vec![], vec![]);
        for index in 0..AIRCRAFT {
            let number = index + 1;
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let autopilot = listener.local_addr().unwrap();
            let clock = Clock::real_time();
            let at = frame.to_position(DVec3::new(APART_M * index as f64, 0.0, 0.0));
            let fc = FlightController::new(Config::new(number as u8, at), 7, clock.now());
            let (sender, truth) = watch::channel(fc.truth());
            let (height_sender, height_cm) = watch::channel(f64::NAN);
            let (places, nearest_m, frame) = (places.clone(), nearest_m.clone(), Frame::new(home()));
            tokio::spawn(serve::flight_controller(listener, fc, clock, move |fc| {
                let truth = fc.truth();
                sender.send_replace(truth);
                height_sender.send_replace(fc.parameter(Parameter::RTL_ALT).unwrap());
                let own = (frame.to_local(truth.position), !truth.landed);
                let mut places = places.lock().unwrap();
                places[index] = Some(own);
                for other in (0..AIRCRAFT).filter(|other| *other != index).filter_map(|other| places[other]) {
                    if own.1 || other.1 {
                        let mut least_m = nearest_m.lock().unwrap();
                        *least_m = least_m.min(own.0.distance(other.0));
                    }
                }
            }));
            let folder = TempDir::new().unwrap();
            let text = format!(
                "id = \"{number:016x}\"\n[autopilot]\nendpoint = \"tcp:{autopilot}\"\n[log]\nfree_mb = 16\n[security]\n\
                 insecure = true\n[muscop]\nmaster = \"0000000000000001\"\naircraft = {AIRCRAFT}\ntake_off = \"simultaneous\"\n\
                 distance_m = 30\nhold_before_landing_ms = 5000\n[http]\nbind = \"127.0.0.1:0\"\n[radio]\n\
                 broadcast = \"127.255.255.255\"\nport = {radio}\n[guard]\nsocket = \"{}\"\nhold_s = {HOLD_S}\n",
                folder.path().join("guard.sock").display()
            );
            std::fs::write(folder.path().join("wingbeatd.toml"), text).unwrap();
            aircraft.push(Rig::of(program(), folder, true).await);
            truths.push(truth);
            return_heights_cm.push(height_cm);
        }
        Self { aircraft, truths, return_heights_cm, nearest_m }
    }

    /// A mission for the leader, and what *Setup* asks for.
    async fn ready(&self) {
        let frame = Frame::new(home());
        let item = |north_m| {
            let place = frame.to_position(DVec3::new(0.0, north_m, 0.0));
            MissionItem::at(place.latitude_deg(), place.longitude_deg(), HEIGHT_M)
        };
        let mission = MissionUpload::new("restart", vec![item(5.0), item(20.0), item(30.0)]);
        let body = serde_json::to_string(&mission).unwrap();
        let (code, answer) = ask(self.aircraft[0].api, "PUT", paths::MISSION, &body).await;
        assert_eq!(code, 200, "{answer}");
        self.complete().await;
    }

    async fn complete(&self) {
        for one in &self.aircraft {
            one.until("checks passed", |s| s.checks.iter().all(|check| check.passed || !check.is_required))
                .await;
        }
        let of_all =
            |s: &AircraftStatus| s.swarm.as_ref().is_some_and(|swarm| usize::from(swarm.size) == AIRCRAFT);
        self.aircraft[0].until("all received", of_all).await;
    }

    async fn press(&self, command: &str) {
        for one in &self.aircraft {
            let reply = one.command(command).await;
            assert_eq!(reply.outcome, CommandOutcome::Accepted, "{command}: {reply:?}");
        }
    }

    /// Until it is time for the death, or the flight is over.
    async fn until_death(&self, death: &Death) -> AircraftStatus {
        let victim = &self.aircraft[death.victim];
        let status = victim.status().await;
        if (death.when)(&status) {
            return status;
        }
        self.press("setup").await;
        let is_due = |s: &AircraftStatus| (death.when)(s) || s.state == StateId::SetupFinished;
        let status = victim.until(death.phase, is_due).await;
        if (death.when)(&status) {
            return status;
        }
        for one in &self.aircraft {
            one.until("in its slot", |s| s.state == StateId::SetupFinished).await;
        }
        self.press("start").await;
        victim.until(death.phase, |s| (death.when)(s)).await
    }

    /// Kills and starts again, as systemd does.
    async fn die(&mut self, death: &Death) {
        let victim = &mut self.aircraft[death.victim];
        victim.daemon.signal("KILL");
        if death.dies == Dies::Companion {
            victim.guard().signal("KILL");
            victim.guard = Some(guard(&victim.folder));
        }
        victim.daemon.ended().await;
        (victim.daemon, victim.api) = daemon(&victim.folder).await;
    }

    /// What is on the ground is set up again, and all fly the mission.
    async fn flown_again(&self) {
        for one in &self.aircraft {
            if one.status().await.state == StateId::Start {
                one.until("checks passed", |s| {
                    s.checks.iter().all(|check| check.passed || !check.is_required)
                })
                .await;
                let reply = one.command_as("setup-again", "setup").await;
                assert_eq!(reply.outcome, CommandOutcome::Accepted, "{reply:?}");
            }
        }
        for one in &self.aircraft {
            one.until("in its slot", |s| s.state == StateId::SetupFinished).await;
        }
        self.press("start").await;
        for one in &self.aircraft {
            one.until("mission completed", |s| s.state == StateId::Finished).await;
        }
    }
}

/// What a flight came to, in words.
struct Row {
    phase: &'static str,
    found: String,
    then: String,
    others: String,
    nearest_m: f64,
}

async fn fly(death: &'static Death, radio: u16) -> Row {
    let Death { phase, dies, victim, then, .. } = *death;
    let mut swarm = Swarm::new(radio).await;
    swarm.ready().await;
    let before = swarm.until_death(death).await;
    let flew = swarm.truths[victim].borrow().armed;
    let died_at = swarm.truths[victim].borrow().local;
    if flew {
        let height_cm = *swarm.return_heights_cm[victim].borrow();
        assert_ne!(height_cm, PILOTS_RETURN_CM, "{phase}: it returns in its layer");
    }
    swarm.die(death).await;
    let again = &swarm.aircraft[victim];

    // It reads where its aircraft is, and in which mode, once the line is its own; and it receives its swarm.
    let reads = |s: &AircraftStatus| {
        s.navigation.is_some() && s.flight_controller.mode.is_some() && s.radio.received > 0
    };
    let status = again.until("connected", reads).await;
    let (here, truth) = (status.navigation.as_ref().unwrap(), *swarm.truths[victim].borrow());
    let at = &here.position;
    let place = Position::from_degrees(at.latitude_deg, at.longitude_deg, at.altitude_m).unwrap();
    let off_m = Frame::new(truth.position).to_local(place).length();
    assert!(off_m < READ_WITHIN_M, "{phase}: {off_m} m off: {here:?}, {truth:?}");
    let rejoins = flew && dies == Dies::Daemon && then == Then::Rejoins;
    assert_eq!(status.state == StateId::Start, !rejoins, "{phase}: it orders nothing: {status:?}");
    assert!(status.engaged, "{phase}: {status:?}");
    let (mode, is_armed) = (status.flight_controller.mode.clone().unwrap(), status.flight_controller.armed);
    let place = if is_armed { "in flight" } else { "down" };
    let found = format!("{:?}; again: {mode}, {place}", before.state);

    let then = match (flew, dies) {
        (false, _) => {
            assert!(!is_armed, "{phase}: {status:?}");
            swarm.flown_again().await;
            "set up again: flies with the others".to_owned()
        }
        (true, Dies::Daemon) if rejoins => {
            assert!(is_armed, "{phase}: {status:?}");
            again.daemon.prints("rejoins its swarm").await;
            "rejoins; lands with the others".to_owned()
        }
        (true, Dies::Daemon) => {
            // The line was given back when the motors were off.
            assert!(!is_armed && truth.landed, "{phase}: {status:?}, {truth:?}");
            again.daemon.prints("the guardian has the flight controller (").await;
            let away_m = (truth.local - died_at).truncate().length();
            format!("landed by its guardian, {away_m:.1} m on")
        }
        (true, Dies::Companion) => {
            assert!(is_armed && (mode == "GUIDED" || mode == "BRAKE"), "{phase}: {status:?}");
            // Longer than any order is repeated: the target of the ended daemon is not known, so it brakes.
            again.until("two seconds on", |s| s.time_ms > status.time_ms + 2_000).await;
            assert_eq!(swarm.truths[victim].borrow().mode, Mode::Brake, "{phase}: it orders nothing else");
            for command in ["setup", "start", "resume"] {
                let reply = again.command(command).await;
                assert_eq!(reply.outcome, CommandOutcome::Refused, "{phase}: {command}: {reply:?}");
            }
            let reply = again.command("land").await;
            assert_eq!(reply.outcome, CommandOutcome::Accepted, "{phase}: {reply:?}");
            "brakes, orders nothing; Land: lands".to_owned()
        }
    };
    let mut others = vec![];
    if rejoins {
        for (index, one) in swarm.aircraft.iter().enumerate() {
            one.until(&format!("{phase}: {index} completed"), |s| s.state == StateId::Finished).await;
        }
    }
    for (index, truth) in swarm.truths.iter_mut().enumerate() {
        if index != victim {
            let over = |s: &AircraftStatus| matches!(s.state, StateId::Finished | StateId::Aborted);
            others.push(format!("{:?}", swarm.aircraft[index].until("over", over).await.state));
        }
        let down = timeout(PATIENCE, truth.wait_for(|t| !t.armed)).await;
        let down = *down.unwrap_or_else(|_| panic!("{phase}: {index} is never down")).unwrap();
        assert!(down.landed && down.touchdown_m_s < 1.0, "{phase}: {index}: {down:?}");
    }
    for (index, height_cm) in swarm.return_heights_cm.iter_mut().enumerate() {
        let back = timeout(PATIENCE, height_cm.wait_for(|height_cm| *height_cm == PILOTS_RETURN_CM)).await;
        assert!(back.is_ok(), "{phase}: {index}: RTL_ALT is not the pilot's again");
    }
    let nearest_m = *swarm.nearest_m.lock().unwrap();
    Row { phase, found, then, others: others.join(", "), nearest_m }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_is_started_again_in_any_phase_leaves_its_swarm_safe() {
    // All at once, so that each swarm has another.
    let radios = DEATHS.each_ref().map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let radios = radios.map(|socket| socket.local_addr().unwrap().port());
    let flights: Vec<_> =
        DEATHS.iter().zip(radios).map(|(death, radio)| tokio::spawn(fly(death, radio))).collect();
    println!(
        "{:26} {:44} {:38} {:19} least distance",
        "dies", "state; read by the next daemon", "then", "the others"
    );
    for flight in flights {
        let Row { phase, found, then, others, nearest_m } = flight.await.unwrap();
        println!("{phase:26} {found:44} {then:38} {others:19} {nearest_m:.1} m");
        assert!(nearest_m >= NEAREST_M, "{phase}: {nearest_m} m");
    }
}
