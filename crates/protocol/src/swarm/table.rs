//! Transition tables: every state of a machine under every input, through its door.
//!
//! The states are not made up: a harness flies until a machine is in each of them, and [`Table`] keeps a copy of the
//! machine as it is then. So a row shows what the machine does in a situation that occurs.

pub(crate) mod fingerprint;

extern crate std;
use std::collections::{BTreeMap, BTreeSet};
use std::string::{String, ToString};
use std::vec::Vec;

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{
    Beacon, Coordinates, Course, Ending, FirstPart, Location, Message, MoreWaypoints, Point, VehicleId,
};

use super::plan::{self, Plan, position};
use super::setup::call_number;
use crate::{Action, Actions, Command, EndFlight, Input, Order, Protocol, Telemetry};

/// One machine in one state.
struct Situation<P> {
    machine: P,
    now: Instant,
    telemetry: Telemetry,
}

/// Machines by role and state, in the order in which they were found.
pub(crate) struct Table<P> {
    found: BTreeMap<(usize, String), Situation<P>>,
    order: Vec<(usize, String)>,
}

/// The parts that have rows of their own.
pub(crate) const PARTS: [&str; 5] = ["setup", "take_off", "flight", "landing", "abort"];

/// The part to which a state belongs.
fn part_of(state: &str) -> &'static str {
    match state.trim_end_matches(", disarmed") {
        "Start" | "Setup" | "ReadyToFly" => "setup",
        "SetupFinished" => "take_off",
        "MovingToLand" | "Landing" | "Finished" => "landing",
        state if state.starts_with("TakingOff") => "take_off",
        state if state.starts_with("Aborted") => "abort",
        _ => "flight",
    }
}

/// The flight that the messages of a table belong to.
pub(crate) struct FlightOf {
    pub(crate) number: u32,
    /// This aircraft in each role.
    pub(crate) own: Vec<VehicleId>,
    /// The master, which members call.
    pub(crate) master: VehicleId,
    /// The leader of the flight and its slot.
    pub(crate) leader: (VehicleId, u8),
    /// All members.
    pub(crate) members: Vec<VehicleId>,
    /// Where the leader may land.
    pub(crate) site: Point,
    /// Messages besides those that every swarm has.
    pub(crate) messages: Vec<(&'static str, Message)>,
}

impl<P: Protocol + Clone> Table<P> {
    pub(crate) fn new() -> Self {
        Self { found: BTreeMap::new(), order: Vec::new() }
    }

    /// Keeps a machine that is in a state for the first time.
    pub(crate) fn keep(
        &mut self,
        role: usize,
        state: String,
        now: Instant,
        telemetry: Telemetry,
        machine: &P,
    ) {
        let key = (role, if telemetry.armed { state } else { state + ", disarmed" });
        if !self.found.contains_key(&key) {
            self.order.push(key.clone());
            self.found.insert(key, Situation { machine: machine.clone(), now, telemetry });
        }
    }

    /// Asserts that a role was found in each of its states, and in no other.
    pub(crate) fn assert_whole(&self, role: usize, states: &[&str]) {
        let of_role = self.order.iter().filter(|(r, _)| *r == role);
        let found: BTreeSet<&str> = of_role.map(|(_, state)| state.trim_end_matches(", disarmed")).collect();
        assert_eq!(found, states.iter().copied().collect(), "states of role {role}");
    }

    /// The rows of a role in a part: of each state the effects, and the inputs that have them. An input that has none is not listed.
    pub(crate) fn rows(
        &self,
        role: usize,
        part: &str,
        flight: &FlightOf,
        name: impl Fn(&P) -> String,
    ) -> String {
        let mut rows = String::new();
        for key in self.order.iter().filter(|(r, state)| *r == role && part_of(state) == part) {
            rows += &std::format!("{}\n", key.1);
            let mut by_effect: Vec<(String, Vec<String>)> = Vec::new();
            for (input, effect) in self.found[key].effects(flight, flight.own[role], &name) {
                match by_effect.iter_mut().find(|(known, _)| *known == effect) {
                    Some((_, inputs)) => inputs.push(input),
                    None => by_effect.push((effect, [input].into())),
                }
            }
            for (effect, inputs) in by_effect {
                rows += &std::format!("    {effect}\n        <- {}\n", inputs.join(" | "));
            }
        }
        rows
    }
}

impl<P: Protocol + Clone> Situation<P> {
    /// What each input does; of those that do nothing, nothing.
    fn effects(
        &self,
        flight: &FlightOf,
        own: VehicleId,
        name: &impl Fn(&P) -> String,
    ) -> Vec<(String, String)> {
        let mut effects = Vec::new();
        let mut try_inputs = |input: String, steps: &[(u64, Input<'_>)]| {
            let mut machine = self.machine.clone();
            let mut done = Vec::new();
            for &(after_ms, step) in steps {
                let mut out = Actions::new();
                machine.handle(self.now + Duration::from_millis(after_ms), step, &mut out);
                for action in &out {
                    match action {
                        Action::Order(order) => done.push(order.to_string()),
                        Action::Refused(reason) => done.push(std::format!("refused: {reason:?}")),
                        Action::Broadcast { .. } | Action::PassOn | Action::Log(..) => {}
                    }
                }
                if name(&machine) != name(&self.machine) {
                    break;
                }
            }
            if name(&machine) != name(&self.machine) {
                done.insert(0, name(&machine));
            }
            done.dedup();
            if !done.is_empty() {
                effects.push((input, done.join(", ")));
            }
        };

        let silence: Vec<_> = (0..3_000).map(|n| (n * 200, Input::Wake)).collect();
        try_inputs("ten minutes of silence".into(), &silence);
        let armed = |armed| Telemetry { armed, ..self.telemetry };
        try_inputs("disarmed".into(), &[(1, Input::Telemetry(armed(false)))]);
        try_inputs("armed".into(), &[(1, Input::Telemetry(armed(true)))]);
        let at_target =
            self.machine.view().target.map_or(self.telemetry, |target| self.telemetry.moved_to(target));
        let arrives = [(1, Input::Telemetry(at_target)), (400, Input::Wake)];
        try_inputs("at the target".into(), &arrives);
        let lands = Telemetry { landing: true, ..self.telemetry };
        try_inputs("mode LAND".into(), &[(1, Input::Telemetry(lands))]);
        let other = flight.members.iter().copied().find(|id| *id != own && *id != flight.leader.0);
        for (text, command) in [
            ("Setup", Command::Setup),
            ("Start", Command::Start),
            ("Hold", Command::Hold),
            ("Return", Command::Return),
            ("Land", Command::Land),
            ("Exclude this aircraft", Command::Exclude { member: own }),
            ("Exclude another", Command::Exclude { member: other.unwrap_or(own) }),
        ] {
            try_inputs(std::format!("operator: {text}"), &[(1, Input::Operator(command))]);
        }
        let point = self.telemetry.point();
        for order in [
            Order::LoadRoute,
            Order::TakeOff { height_mm: 5_000 },
            Order::FlyTo(point),
            Order::Hold,
            Order::Return,
            Order::Land,
        ] {
            try_inputs(std::format!("done: {order}"), &[(1, Input::Done(order))]);
            try_inputs(std::format!("failed: {order}"), &[(1, Input::Failed(order))]);
        }
        for ending in EndFlight::ALL {
            try_inputs(std::format!("taken over: {ending:?}"), &[(1, Input::TakenOver(ending))]);
            try_inputs(std::format!("battery low: {ending:?}"), &[(1, Input::BatteryLow(ending))]);
        }
        try_inputs("reached 1".into(), &[(1, Input::Reached(1))]);

        let number = flight.number;
        let plan_hash = self.machine.details().plan_hash.unwrap_or(0);
        let messages = messages(own, other.unwrap_or(own), flight, point, plan_hash);
        for (text, message) in messages.iter().chain(&flight.messages) {
            if own != flight.leader.0 {
                let from_leader = Input::Message { from: flight.leader.0, flight: number, message };
                try_inputs(std::format!("leader: {text}"), &[(1, from_leader)]);
            }
            let others = flight.members.iter().copied().filter(|id| *id != own && *id != flight.leader.0);
            let from_others: Vec<_> =
                others.map(|from| (1, Input::Message { from, flight: number, message })).collect();
            try_inputs(std::format!("others: {text}"), &from_others);
            let by = flight.members.iter().copied().find(|id| *id != own && *id != flight.leader.0);
            if own != flight.leader.0
                && message.is_command()
                && let Some(by) = by
            {
                let passed = Input::Passed { by, from: flight.leader.0, flight: number, command: message };
                try_inputs(std::format!("passed on: {text}"), &[(1, passed)]);
            }
        }
        let at =
            Location { altitude_mm: 0, latitude_e7: point.latitude_e7, longitude_e7: point.longitude_e7 };
        let (hello, call) = (Message::Stands { at }, call_number(flight.master));
        for (text, from, flight) in [
            ("a member calls", other.unwrap_or(own), call),
            ("an unknown aircraft calls", VehicleId(99), call),
            ("a member calls another master", other.unwrap_or(own), call ^ 1),
        ] {
            try_inputs(text.into(), &[(1, Input::Message { from, flight, message: &hello })]);
        }
        let alive = Message::Alive { at: point };
        let unknown = Input::Message { from: VehicleId(99), flight: number, message: &alive };
        try_inputs("an unknown aircraft".into(), &[(1, unknown)]);
        let foreign = Input::Message { from: flight.leader.0, flight: number ^ 1, message: &alive };
        try_inputs("another flight".into(), &[(1, foreign)]);
        effects
    }
}

/// The message of a plan that one datagram carries.
pub(crate) fn data_of(plan: &Plan) -> Message {
    Message::Data(plan.with_waypoints(plan.waypoints.len()))
}

/// The first of two datagrams of a plan, with its first waypoint,
pub(crate) fn first_of(plan: &Plan) -> Message {
    Message::DataFirst(FirstPart { plan: plan.with_waypoints(1), hash: plan::hash(plan), count: 2 })
}

/// and the second.
pub(crate) fn others_of(plan: &Plan) -> Message {
    let waypoints = plan.waypoints.iter().rev().copied().take(1).collect();
    Message::DataWaypoints(MoreWaypoints { hash: plan::hash(plan), count: 2, first: 1, waypoints })
}

/// The messages of every swarm.
fn messages(
    own: VehicleId,
    other: VehicleId,
    flight: &FlightOf,
    at: Point,
    hash: u64,
) -> Vec<(&'static str, Message)> {
    let leader = flight.leader.1;
    [
        ("DataAck", Message::DataAck { hash }),
        ("DataAck of another plan", Message::DataAck { hash: !hash }),
        ("ReadyToFly", Message::ReadyToFly),
        ("ReadyToFlyAck", Message::ReadyToFlyAck),
        ("TakeOffTogether", Message::TakeOffTogether),
        ("Recall", Message::Recall),
        ("TakeOffNow for this aircraft", Message::TakeOffNow { next: own }),
        ("TakeOffNow for another", Message::TakeOffNow { next: other }),
        ("TargetReached", Message::TargetReached),
        ("TakeOffEnd", Message::TakeOffEnd),
        ("TakeOffEndAck", Message::TakeOffEndAck),
        ("Alive", Message::Alive { at }),
        ("Holding", Message::Holding { at }),
        ("Adrift", Message::Adrift { at }),
        ("Leaving, holding", Message::Leaving { at, how: Ending::Holding }),
        ("Leaving, returning", Message::Leaving { at, how: Ending::Returning }),
        ("Leaving, landing", Message::Leaving { at, how: Ending::Landing }),
        ("Leaving, down", Message::Leaving { at, how: Ending::Down }),
        ("Exclude this aircraft", Message::Exclude { member: own }),
        ("Exclude another", Message::Exclude { member: other }),
        ("Land", Message::Land { at: flight.site }),
        ("LandAround", Message::LandAround { at: flight.site, leader }),
        ("LandHere", Message::LandHere { at }),
        ("Coordinates", Message::Coordinates(Coordinates { at, heading_urad: 0, leads: true })),
        ("Beacon", Message::Beacon(Beacon::default())),
        ("Course", Message::Course(Course::default())),
    ]
    .into()
}

impl Telemetry {
    fn moved_to(self, target: Point) -> Self {
        let height_m = f64::from(target.height_mm) * 1e-3;
        Self { position: position(target), height_m, ..self }
    }
}
