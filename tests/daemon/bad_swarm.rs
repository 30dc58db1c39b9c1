//! What a swarm cannot fly is refused by its daemons before anybody arms, with the aircraft and the reason: in the
//! answer over HTTP, and among the checks that the console shows.

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;

use aircraft::{flight_controller, home, until};
use client::ask;
use config::{config, tcp};
use tokio::sync::watch;
use wingbeat_api::{AircraftStatus, Check, CommandReply, MissionItem, MissionUpload, Phase, paths};
use wingbeat_geo::formation::{Layout, Offset, Offsets};
use wingbeat_geo::{DVec3, Frame};
use wingbeat_hub::Hub;
use wingbeat_onboard::{Clock, Config, Handle, start};
use wingbeat_protocol::muscop;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    motion::Profile,
};
use wingbeat_wire::VehicleId;

const COUNT: usize = 3;
const MASTER: u64 = 0xa0;
const SPEED: f64 = 10.0;

/// Three daemons in a row, 10 m apart.
struct Swarm {
    fleet: Vec<Handle>,
    _hub: Hub,
    _online: watch::Sender<bool>,
}

impl Swarm {
    async fn start(ids: [u64; COUNT], change: impl Fn(usize, &mut muscop::Config)) -> Self {
        let clock = Clock::start(SPEED).unwrap();
        let (hub, radios) =
            Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 1, COUNT), COUNT, clock);
        let (online_sender, online) = watch::channel(true);
        let mut fleet = vec![];
        for (index, radio) in radios.into_iter().enumerate() {
            let place = Some(hub.positions());
            let address = flight_controller(
                Profile::Copter357,
                (index as u8, 10.0 * index as f64),
                clock,
                place,
                online.clone(),
            )
            .await;
            let mut muscop = muscop::Config::new(VehicleId(ids[index]), VehicleId(MASTER), COUNT);
            muscop.swarm.distance_m = 20.0;
            change(index, &mut muscop);
            let config =
                Config { seed: index as u64, ..config(wingbeat_agent::Config::new(muscop), tcp(address)) };
            fleet.push(start(config, clock, radio).await.unwrap());
        }
        Self { fleet, _hub: hub, _online: online_sender }
    }

    async fn give(&self, index: usize, waypoints: Vec<MissionItem>) -> (u16, String) {
        let body = serde_json::to_string(&MissionUpload::new("bad", waypoints)).unwrap();
        ask(self.fleet[index].address(), "PUT", paths::MISSION, &body).await
    }

    async fn setup(&self, index: usize) -> (u16, CommandReply) {
        let body = r#"{"id":"s","command":"setup"}"#;
        let (code, answer) = ask(self.fleet[index].address(), "POST", paths::COMMANDS, body).await;
        (code, serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{code} {answer}")))
    }

    /// Setup is refused with these words, once they are the only thing that stands in its way.
    async fn is_refused(&self, name: &str, index: usize, words: &str) {
        let blocked = |status: &AircraftStatus| {
            let mut failed = status.checks.iter().filter(|check| check.is_required && !check.passed);
            let is_of_swarm = |check: &Check| ["swarm", "separation"].contains(&check.name.as_str());
            failed.next().is_some_and(|check| is_of_swarm(check) && check.detail.contains(words))
                && failed.all(is_of_swarm)
        };
        until(&self.fleet[index], &format!("{name}: {words}"), blocked).await;
        let (code, reply) = self.setup(index).await;
        assert_eq!(code, 409, "{name}: {reply:?}");
        assert!(reply.reason.contains(words), "{name}: {reply:?}");
        self.is_on_the_ground(name);
    }

    fn is_on_the_ground(&self, name: &str) {
        for handle in &self.fleet {
            let status = handle.status().borrow().clone();
            assert!(!status.flight_controller.armed, "{name}: {} is armed", status.name);
        }
    }

    async fn stop(self) {
        for handle in self.fleet {
            handle.stop().await;
        }
    }
}

fn item(east_m: f64, north_m: f64, height_m: f64) -> MissionItem {
    let place = Frame::new(home()).to_position(DVec3::new(east_m, north_m, 0.0));
    MissionItem::at(place.latitude_deg(), place.longitude_deg(), height_m)
}

fn leg() -> Vec<MissionItem> {
    vec![item(10.0, 0.0, 20.0), item(10.0, 80.0, 20.0)]
}

struct Case {
    name: &'static str,
    ids: [u64; COUNT],
    change: fn(usize, &mut muscop::Config),
    waypoints: fn() -> Vec<MissionItem>,
    /// Who refuses, and with which words.
    refuses: (usize, &'static str),
}

const IDS: [u64; COUNT] = [MASTER, 0xa1, 0xa2];

const CASES: [Case; 6] = [
    Case {
        name: "more members than slots",
        ids: IDS,
        change: |_, muscop| muscop.swarm.aircraft = 2,
        waypoints: leg,
        refuses: (0, "calls too: more aircraft than the 2 of this swarm"),
    },
    Case {
        name: "a formation wider than the fence",
        ids: IDS,
        change: |_, muscop| {
            muscop.swarm.distance_m = 300.0;
            muscop.swarm.distance_most_m = 250.0;
        },
        waypoints: leg,
        refuses: (0, "00000000000000a0, slot 0, waypoint 0: 300 m from the start, expected at most 250 m"),
    },
    Case {
        name: "slots over each other",
        ids: IDS,
        change: |_, muscop| muscop.swarm.distance_m = 4.0,
        waypoints: leg,
        refuses: (0, "distance_m 4 at 5 m/s, expected at least 15.6: braking 7.6 m"),
    },
    Case {
        name: "a slot underground",
        ids: IDS,
        change: |_, muscop| {
            let place = |right_dm, up_dm| Offset { right_dm, ahead_dm: 0, up_dm };
            muscop.swarm.layout = Layout::Custom;
            muscop.swarm.offsets =
                Offsets::from_slice(&[place(0, 0), place(200, -250), place(-200, 0)]).unwrap();
        },
        waypoints: leg,
        refuses: (0, "slot 1, waypoint 0: height -5 m, expected 2 to 120 m"),
    },
    Case {
        name: "a slot outside the fence at a later waypoint",
        ids: IDS,
        change: |_, muscop| muscop.swarm.distance_most_m = 100.0,
        waypoints: || vec![item(10.0, 0.0, 20.0), item(10.0, 98.0, 20.0)],
        refuses: (0, "slot 0, waypoint 1: 100 m from the start, expected at most 100 m"),
    },
    Case {
        name: "aircraft that stand too near to each other",
        ids: IDS,
        change: |_, muscop| {
            muscop.swarm.separation_m = 15.0;
            muscop.swarm.distance_m = 30.0;
            muscop.swarm.landing_distance_m = 20.0;
        },
        waypoints: leg,
        refuses: (0, "stand 10.0 m apart, expected 18.0 m"),
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_swarm_cannot_fly_is_refused_before_any_member_arms() {
    for case in &CASES {
        let swarm = Swarm::start(case.ids, case.change).await;
        let (code, answer) = swarm.give(0, (case.waypoints)()).await;
        assert_eq!(code, 200, "{}: {answer}", case.name);
        swarm.is_refused(case.name, case.refuses.0, case.refuses.1).await;
        swarm.stop().await;
    }
}

/// The one that has said less hears what it has not said yet; which of the two that is depends on who called first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_that_have_the_same_id_refuses() {
    let swarm = Swarm::start([MASTER, 0xa1, 0xa1], |_, _| {}).await;
    assert_eq!(swarm.give(0, leg()).await.0, 200);
    let words = "00000000000000a1: another aircraft has this id";
    tokio::select! {
        () = swarm.is_refused("doubled ids", 1, words) => {}
        () = swarm.is_refused("doubled ids", 2, words) => {}
    }
    swarm.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_mission_is_refused_by_service_and_aircraft() {
    let swarm = Swarm::start(IDS, |_, _| {}).await;
    let (code, answer) = swarm.give(0, vec![item(10.0, 0.0, 20.0)]).await;
    assert!(code == 409 && answer.contains("the mission has 1 waypoints, expected 2 to 600"), "{answer}");
    // Nobody can hold another mission than the master's.
    let (code, answer) = swarm.give(1, leg()).await;
    assert!(
        code == 409 && answer.contains("the mission belongs to the master, 00000000000000a0"),
        "{answer}"
    );
    // A place and so a heading that is no number, as text that JSON does not know and as one that it does.
    for number in ["NaN", "null", "\"NaN\""] {
        let body = format!(
            r#"{{"name":"bad","waypoints":[{{"latitude_deg":{number},"longitude_deg":0.1,"height_m":20}}]}}"#
        );
        let (code, answer) = ask(swarm.fleet[0].address(), "PUT", paths::MISSION, &body).await;
        assert_eq!(code, 400, "{number}: {answer}");
    }
    swarm.is_refused("no mission", 0, "no mission").await;
    swarm.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_own_fence_is_narrower_refuses_the_plan_and_logs_it() {
    let swarm = Swarm::start(IDS, |index, muscop| {
        if index == 2 {
            muscop.swarm.height_most_m = 15.0;
        }
    })
    .await;
    assert_eq!(swarm.give(0, leg()).await.0, 200);
    for handle in &swarm.fleet {
        let ready =
            |status: &AircraftStatus| status.checks.iter().all(|check| check.passed || !check.is_required);
        until(handle, "all checks pass", ready).await;
    }
    for index in 0..COUNT {
        let (code, reply) = swarm.setup(index).await;
        assert_eq!(code, 202, "{reply:?}");
    }
    let refuses = "the master's plan is refused: 00000000000000a2, slot 2, waypoint 0: height 20 m";
    let says = |status: &AircraftStatus| status.detail.starts_with(refuses);
    let status = until(&swarm.fleet[2], "it refuses the plan", says).await;
    assert_eq!(status.phase, Phase::Preparing);
    let waits = |status: &AircraftStatus| status.detail.contains("waiting for 1 to hold the plan");
    until(&swarm.fleet[0], "the master waits for it", waits).await;
    swarm.is_on_the_ground("a narrower fence");
    swarm.stop().await;
}
