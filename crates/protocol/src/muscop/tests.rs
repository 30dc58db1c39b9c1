//! A swarm of MUSCOP machines over perfect aircraft: orders take effect by themselves, flight is
//! straight at 10 m/s. What is tested is the protocol; the agents' tests fly real flight dynamics.

extern crate std;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::ToString as _;
use std::vec::Vec as StdVec;

use wingbeat_geo::formation::{Layout, Offset, Offsets};
use wingbeat_geo::{DVec3, Duration, Frame, Position};

use wingbeat_wire::{Datagram, Location, Message, Refused};

use super::*;
use crate::swarm::Manner;
use crate::swarm::passing::Passing;
use crate::swarm::plan::Route;
use crate::{Action, Order, Severity, Telemetry};

mod faults;
mod landing;
mod model;
mod preview;
mod rejoin;
mod returning;
mod table;

struct Craft {
    config: Config,
    muscop: Muscop,
    frame: Frame,
    at: DVec3,
    home: DVec3,
    order: Option<Order>,
    armed: bool,
    /// Everything it logged.
    log: StdVec<(Instant, Severity, Text)>,
    orders: StdVec<(Instant, Order)>,
    passing: Passing,
}

impl Craft {
    fn telemetry(&self, velocity_m_s: DVec3) -> Telemetry {
        Telemetry {
            position: self.frame.to_position(self.at),
            height_m: self.at.z,
            velocity_m_s,
            heading_rad: 0.0,
            armed: self.armed,
            landing: false,
            is_located: true,
        }
    }
}

struct Rig {
    seed: u64,
    craft: StdVec<Craft>,
    now: Instant,
    /// Whether a datagram (number, from, to) arrives.
    receives: Box<dyn Fn(u64, usize, usize) -> bool>,
    /// The companion computer is dead: the flight controller flies to its last target and stays there.
    dead: StdVec<bool>,
    /// Least distance of two aircraft of which one is in the air, metres, and which two.
    nearest: (f64, usize, usize),
    datagrams: u64,
    states: BTreeMap<usize, StdVec<StateId>>,
}

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

fn mission(legs: &[(f64, f64)], height_m: f64) -> Route {
    let frame = Frame::new(ORIGIN);
    legs.iter()
        .map(|&(east, north)| {
            let p = frame.to_position(DVec3::new(east, north, 0.0));
            Point {
                latitude_e7: p.latitude_e7,
                longitude_e7: p.longitude_e7,
                height_mm: (height_m * 1e3) as i32,
            }
        })
        .collect()
}

impl Rig {
    fn new(count: usize, layout: Layout, seed: u64) -> Self {
        Self::with_places(count, layout, &Offsets::new(), seed)
    }

    fn with_places(count: usize, layout: Layout, offsets: &Offsets, seed: u64) -> Self {
        let frame = Frame::new(ORIGIN);
        let craft = (0..count)
            .map(|i| {
                let mut config = Config::new(VehicleId(10 + i as u64), VehicleId(10), count);
                config.swarm.layout = layout;
                config.swarm.offsets = offsets.clone();
                let mut muscop = Muscop::new(config.clone(), seed + i as u64, Instant::ZERO);
                if i == 0 {
                    muscop
                        .set_mission(
                            &mission(&[(0.0, 0.0), (0.0, 200.0), (200.0, 200.0)], 20.0),
                            MissionExtras::NONE,
                        )
                        .unwrap();
                }
                Craft {
                    config,
                    muscop,
                    frame,
                    at: DVec3::new((i as f64 - (count / 2) as f64) * 10.0, 0.0, 0.0),
                    home: DVec3::ZERO,
                    order: None,
                    armed: false,
                    log: StdVec::new(),
                    orders: StdVec::new(),
                    passing: Passing::default(),
                }
            })
            .collect();
        Self {
            craft,
            seed,
            now: Instant::ZERO,
            receives: Box::new(|_, _, _| true),
            dead: std::vec![false; count],
            nearest: (f64::INFINITY, 0, 0),
            datagrams: 0,
            states: BTreeMap::new(),
        }
    }

    /// Gives an aircraft another configuration, before it has met the others.
    fn configure(&mut self, i: usize, change: impl Fn(&mut swarm::Config)) {
        assert_eq!(self.now, Instant::ZERO);
        let craft = &mut self.craft[i];
        change(&mut craft.config.swarm);
        let task = craft.muscop.swarm.task_mut().clone();
        craft.muscop = Muscop::new(craft.config.clone(), self.seed + i as u64, Instant::ZERO);
        *craft.muscop.swarm.task_mut() = task;
    }

    fn configure_all(&mut self, change: impl Fn(&mut swarm::Config)) {
        (0..self.craft.len()).for_each(|i| self.configure(i, &change));
    }

    fn feed(&mut self, i: usize, input: Input<'_>) {
        let mut queue = StdVec::new();
        self.feed_one(i, input, &mut queue);
        while let Some((to, datagram)) = queue.pop() {
            let mut passing = self.craft[to].passing.clone();
            let me = self.craft[to].muscop.swarm.config().me;
            passing.receive(me, datagram, |input| self.feed_one(to, input, &mut queue));
            self.craft[to].passing = passing;
        }
    }

    /// Whether the input was taken.
    fn feed_one(&mut self, i: usize, input: Input<'_>, queue: &mut StdVec<(usize, Datagram)>) -> bool {
        if self.dead[i] {
            return false;
        }
        let (now, count) = (self.now, self.craft.len());
        let craft = &mut self.craft[i];
        let mut out = Actions::new();
        craft.muscop.handle(now, input, &mut out);
        let is_taken = !out.iter().any(|action| matches!(action, Action::Refused(_)));
        for action in out {
            match action {
                Action::Order(order) => {
                    craft.order = Some(order);
                    craft.orders.push((now, order));
                }
                Action::Broadcast { .. } | Action::PassOn => {
                    let from = craft.muscop.swarm.config().me;
                    let sent = match action {
                        Action::Broadcast { flight, message } => Some((flight, message)),
                        _ => craft.passing.pass_on(),
                    };
                    let Some((flight, message)) = sent else { continue };
                    self.datagrams += 1;
                    let counter = self.datagrams;
                    let datagram = Datagram { from, counter, flight, message };
                    let datagram = datagram.draft().unwrap().read().unwrap();
                    for to in (0..count).filter(|&to| to != i) {
                        if (self.receives)(self.datagrams, i, to) {
                            queue.push((to, datagram.clone()));
                        }
                    }
                }
                Action::Log(severity, line) => craft.log.push((now, severity, line)),
                Action::Refused(_) => {}
            }
        }
        let state = craft.muscop.state_id();
        let states = self.states.entry(i).or_default();
        if states.last() != Some(&state) {
            states.push(state);
        }
        is_taken
    }

    /// One step of 50 ms: aircraft fly, report and are woken.
    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(50);
        for i in 0..self.craft.len() {
            let craft = &mut self.craft[i];
            let (mut done, before) = (None, craft.at);
            match craft.order {
                Some(Order::LoadRoute) => done = craft.order.take(),
                Some(Order::TakeOff { height_mm }) => {
                    if !craft.armed {
                        craft.home = craft.at;
                    }
                    craft.armed = true;
                    craft.at.z = (craft.at.z + 0.1).min(f64::from(height_mm) / 1e3);
                }
                Some(Order::FlyTo(place)) => {
                    let there = craft.frame.to_local(Position {
                        latitude_e7: place.latitude_e7,
                        longitude_e7: place.longitude_e7,
                        altitude_mm: 0,
                    });
                    let there = DVec3::new(there.x, there.y, f64::from(place.height_mm) / 1e3);
                    let way = there - craft.at;
                    craft.at += way.clamp_length_max(0.5);
                }
                // As the autopilot's RTL: up, home, down.
                Some(Order::Return) => {
                    let way = (craft.home - craft.at).truncate();
                    let up_m = craft.muscop.view().return_height_mm.map_or(0.0, |mm| f64::from(mm) / 1e3);
                    if way.length() < 0.01 {
                        craft.at.z = (craft.at.z - 0.1).max(0.0);
                        craft.armed &= craft.at.z > 0.0;
                    } else if craft.at.z < up_m {
                        craft.at.z = (craft.at.z + 0.125).min(up_m);
                    } else {
                        craft.at += way.clamp_length_max(0.25).extend(0.0);
                    }
                }
                Some(Order::Land) => {
                    craft.at.z = (craft.at.z - 0.1).max(0.0);
                    craft.armed &= craft.at.z > 0.0;
                }
                Some(Order::Hold) => done = craft.order.take(),
                None => {}
                Some(order @ (Order::FlyRoute { .. } | Order::Resume | Order::ResumeHeld)) => {
                    panic!("MUSCOP orders {order}")
                }
            }
            let telemetry = craft.telemetry((craft.at - before) / 0.05);
            if let Some(order) = done {
                self.feed(i, Input::Done(order));
            }
            self.feed(i, Input::Telemetry(telemetry));
            self.feed(i, Input::Wake);
        }
        for a in 0..self.craft.len() {
            for b in (0..a).filter(|&b| self.craft[a].at.z > 0.5 || self.craft[b].at.z > 0.5) {
                let apart = self.craft[a].at.distance(self.craft[b].at);
                if apart < self.nearest.0 {
                    self.nearest = (apart, a, b);
                }
            }
        }
    }

    /// Whether all aircraft whose companions live are on the ground with their motors off.
    fn all_down(&self) -> bool {
        (0..self.craft.len()).all(|i| self.dead[i] || !self.craft[i].armed)
    }

    fn leader(&self) -> usize {
        self.craft.iter().position(|c| c.muscop.swarm.is_leader()).unwrap()
    }

    fn has_logged(&self, i: usize, words: &str) -> bool {
        self.craft[i].log.iter().any(|(_, _, line)| line.contains(words))
    }

    fn until(&mut self, what: &str, seconds: u64, condition: impl Fn(&Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !condition(self) {
            assert!(
                self.now < end,
                "{what} did not happen in {seconds} s: {:?} {:?}",
                self.details(),
                self.craft
                    .iter()
                    .filter(|c| c.muscop.state_id() == StateId::Aborted)
                    .map(|c| c.log.clone())
                    .collect::<StdVec<_>>()
            );
            self.step();
        }
    }

    fn details(&self) -> StdVec<(StateId, Text)> {
        self.craft.iter().map(|c| (c.muscop.state_id(), c.muscop.detail())).collect()
    }

    fn command_all(&mut self, command: Command) {
        for i in 0..self.craft.len() {
            self.craft[i].muscop.permits(command).unwrap();
            self.feed(i, Input::Operator(command));
        }
    }

    fn all_in(&self, state: StateId) -> bool {
        self.craft.iter().all(|c| c.muscop.state_id() == state)
    }

    fn set_up(&mut self) {
        self.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == r.craft.len());
        self.command_all(Command::Setup);
        self.until("setup", 300, |r| r.all_in(StateId::SetupFinished));
    }
}

/// A fixed scramble of datagrams.
fn scramble(n: u64, from: usize, to: usize) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (from * 31 + to) as u64;
    // As SplitMix64: a product alone has the same bit for many datagrams that are equally far apart.
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[test]
fn muscop_01_a_mission_from_setup_to_landing() {
    for layout in [Layout::Linear, Layout::Matrix, Layout::Circular] {
        let mut rig = Rig::new(5, layout, 1);
        rig.set_up();
        rig.command_all(Command::Start);
        rig.until("landing", 300, |r| r.all_in(StateId::Finished));
        let expected = [
            StateId::Start,
            StateId::Setup,
            StateId::ReadyToFly,
            StateId::TakingOff,
            StateId::SetupFinished,
            StateId::WaypointReached,
            StateId::MovingToWaypoint,
            StateId::WaypointReached,
            StateId::MovingToWaypoint,
            StateId::WaypointReached,
            StateId::MovingToLand,
            StateId::Landing,
            StateId::Finished,
        ];
        for (i, states) in &rig.states {
            assert_eq!(*states, expected, "aircraft {i}, {layout:?}");
        }
        // They came down in the landing formation around the centre.
        for a in 0..5 {
            for b in 0..a {
                let apart = rig.craft[a].at.distance(rig.craft[b].at);
                assert!(apart > 8.0 && apart < 60.0, "{layout:?} {a} {b}: {apart} m");
            }
        }
    }
}

#[test]
fn muscop_01_every_formation_is_flown_as_it_was_asked_for() {
    let place = |right_dm, ahead_dm, up_dm| Offset { right_dm, ahead_dm, up_dm };
    let offsets =
        [place(0, 0, 0), place(600, -600, 50), place(-600, -600, -30), place(0, 700, 0), place(0, 1_400, 0)];
    let offsets = Offsets::from_slice(&offsets).unwrap();
    for layout in Layout::ALL {
        let mut rig = Rig::with_places(5, layout, &offsets, 1);
        rig.set_up();
        let asked = crate::swarm::shape::configured(layout, &offsets, 5, 50.0).unwrap();
        let heading = plan::heading_rad(rig.craft[0].muscop.swarm.assignment().plan());
        let center = rig.craft.iter().position(|c| c.muscop.swarm.is_leader()).unwrap();
        for craft in &rig.craft {
            let slot = craft.muscop.swarm.assignment().slot();
            let wanted = asked.offset_m(slot, heading).extend(asked.height_m(slot));
            let apart = (craft.at - rig.craft[center].at).distance(wanted);
            assert!(apart < 2.5, "{layout}: slot {slot} is {apart} m from its place");
            assert_eq!(craft.muscop.view().swarm.formation, layout.name());
        }
        rig.command_all(Command::Start);
        rig.until("landing", 900, |r| r.all_in(StateId::Finished));
        for a in 0..5 {
            for b in 0..a {
                let apart = rig.craft[a].at.distance(rig.craft[b].at);
                assert!(apart > 8.0, "{layout} {a} {b}: {apart} m");
            }
        }
    }
}

#[test]
fn muscop_08_an_offset_below_the_ground_or_above_the_fence_is_refused_with_its_slot() {
    let place = |right_dm, up_dm| Offset { right_dm, ahead_dm: 0, up_dm };
    // The mission flies at 20 m: 19 m below it is too low, 101 m above it too high.
    for (offsets, words) in [
        (
            [place(0, 0), place(600, -190), place(-600, 0)],
            ", slot 1, waypoint 0: height 1 m, expected 2 to 120 m",
        ),
        (
            [place(0, 0), place(600, 0), place(-600, 1_010)],
            ", slot 2, waypoint 0: height 121 m, expected 2 to 120 m",
        ),
        ([place(0, 0), place(600, 0), place(600, 300)], "slots 1 and 2 are 0.0 m apart over the ground"),
    ] {
        let offsets = Offsets::from_slice(&offsets).unwrap();
        let mut rig = Rig::with_places(3, Layout::Custom, &offsets, 1);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
        rig.feed(0, Input::Operator(Command::Setup));
        assert_eq!(rig.craft[0].muscop.state_id(), StateId::Start);
        let log = &rig.craft[0].log;
        assert!(log.iter().any(|(_, _, line)| line.contains(words)), "{words}: {log:?}");
    }
}

#[test]
fn muscop_02_no_aircraft_leaves_a_waypoint_before_all_are_there() {
    let mut rig = Rig::new(4, Layout::Linear, 3);
    rig.set_up();
    // Aircraft 3 hangs at the first waypoint: its order to fly is lost in its flight controller.
    rig.command_all(Command::Start);
    rig.until("first leg", 30, |r| r.all_in(StateId::MovingToWaypoint));
    rig.craft[3].order = None;
    for _ in 0..20 * 60 {
        rig.step();
    }
    for (i, craft) in rig.craft.iter().enumerate() {
        let expected = if i == 3 { StateId::MovingToWaypoint } else { StateId::WaypointReached };
        assert_eq!(craft.muscop.state_id(), expected, "aircraft {i}");
        assert!(craft.muscop.reached() <= Some(1));
    }
}

#[test]
fn muscop_03_eight_of_ten_datagrams_may_be_lost() {
    for seed in 0..10 {
        let mut rig = Rig::new(5, Layout::Matrix, seed);
        rig.receives = Box::new(|n, from, to| {
            // 20 % arrive, evenly among all pairs.
            scramble(n, from, to) % 10 < 2
        });
        rig.until("calls", 30, |r| r.craft[0].muscop.swarm.setup().count() == 5);
        rig.command_all(Command::Setup);
        rig.until("setup", 600, |r| r.all_in(StateId::SetupFinished));
        rig.command_all(Command::Start);
        rig.until("landing", 900, |r| r.all_in(StateId::Finished));
    }
}

#[test]
fn muscop_04_the_operator_stops_it_in_every_state() {
    for command in [Command::Hold, Command::Return, Command::Land] {
        for steps in (20..2_400).step_by(97) {
            let mut rig = Rig::new(3, Layout::Linear, 9);
            rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
            rig.command_all(Command::Setup);
            for _ in 0..steps {
                if rig.all_in(StateId::SetupFinished) {
                    rig.command_all(Command::Start);
                }
                rig.step();
            }
            for i in 0..3 {
                if rig.craft[i].muscop.permits(command).is_ok() {
                    rig.feed(i, Input::Operator(command));
                    // One that returns may have to wait for others; one that is above its home lands.
                    let expected: &[Order] = match command {
                        Command::Hold => &[Order::Hold],
                        Command::Return => &[Order::Return, Order::Hold, Order::Land],
                        Command::Land
                        | Command::Setup
                        | Command::Start
                        | Command::Resume
                        | Command::RecoverControl
                        | Command::Engage
                        | Command::SetParameters
                        | Command::Exclude { .. } => &[Order::Land],
                    };
                    let craft = &rig.craft[i];
                    let obeys = craft.order.is_some_and(|order| expected.contains(&order));
                    assert!(!craft.armed || obeys, "{command:?} after {steps} steps");
                    assert_eq!(craft.muscop.state_id(), StateId::Aborted);
                }
            }
            if command != Command::Hold {
                rig.until("all down", 300, |r| r.craft.iter().all(|c| !c.armed));
                assert!(rig.nearest.0 > 5.0, "{command:?} after {steps} steps: {:?}", rig.nearest);
            }
        }
    }
}

#[test]
fn muscop_06_a_failed_order_holds_then_lands() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.until("first leg", 30, |r| r.all_in(StateId::MovingToWaypoint));
    let failed_at = rig.now;
    let order = rig.craft[0].order.unwrap();
    rig.feed(0, Input::Failed(order));
    assert_eq!(rig.craft[0].order, Some(Order::Hold));
    rig.until("landed", 120, |r| !r.craft[0].armed);
    let (landed_at, _) = *rig.craft[0].orders.iter().find(|(_, o)| *o == Order::Land).unwrap();
    assert!(landed_at.since(failed_at) >= Duration::from_secs(60));
    assert!(rig.craft[0].log.iter().any(|(_, s, l)| *s == Severity::Error && l.contains("an order failed")));
}

#[test]
fn muscop_07_unknown_senders_and_other_flights_are_refused() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.set_up();
    let flight = rig.craft[0].muscop.swarm.assignment().flight();
    let refused = |rig: &mut Rig, from: u64, flight: u32, message: Message| {
        let mut out = Actions::new();
        let input = Input::Message { from: VehicleId(from), flight, message: &message };
        rig.craft[2].muscop.handle(rig.now, input, &mut out);
        out.iter().find_map(|a| if let Action::Refused(r) = a { Some(*r) } else { None })
    };
    let go = Message::MoveToWaypoint { waypoint: 1 };
    assert_eq!(refused(&mut rig, 99, flight, go.clone()), Some(Refused::UnexpectedSender));
    assert_eq!(refused(&mut rig, 11, flight + 1, go.clone()), Some(Refused::OtherFlight));
    // A member that is not the centre cannot lead.
    assert_eq!(refused(&mut rig, 10, flight, go.clone()), Some(Refused::UnexpectedSender));
    assert_eq!(refused(&mut rig, 11, flight, go), None);
    // Only the configured master plans.
    let plan =
        rig.craft[0].muscop.swarm.assignment().plan().with_waypoints(wingbeat_wire::FIRST_WAYPOINTS_MAX);
    assert_eq!(refused(&mut rig, 11, flight, Message::Data(plan)), Some(Refused::UnexpectedSender));
}

#[test]
fn muscop_08_setup_is_refused_with_a_reason() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    assert_eq!(rig.craft[0].muscop.permits(Command::Setup), Err(Denied::NoPosition));
    rig.step();
    assert_eq!(rig.craft[0].muscop.permits(Command::Setup), Err(Denied::Missing { found: 1, expected: 3 }));
    assert!(
        rig.craft[1]
            .muscop
            .set_mission(&mission(&[(0.0, 0.0), (9.0, 9.0)], 20.0), MissionExtras::NONE)
            .is_err(),
        "not the master"
    );
    assert!(
        rig.craft[0].muscop.set_mission(&mission(&[(0.0, 0.0)], 20.0), MissionExtras::NONE).is_err(),
        "one waypoint"
    );
    // A waypoint above the fence, and one too far away, name the slot and the waypoint.
    for (legs, height, word) in [(300.0, 130.0, "height 130 m"), (6_000.0, 20.0, "from the start")] {
        let mut rig = Rig::new(3, Layout::Linear, 4);
        rig.craft[0]
            .muscop
            .set_mission(&mission(&[(0.0, 0.0), (legs, 0.0)], height), MissionExtras::NONE)
            .unwrap();
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
        rig.command_all(Command::Setup);
        assert_eq!(rig.craft[0].muscop.state_id(), StateId::Start);
        assert!(rig.craft[0].log.iter().any(|(_, _, l)| l.contains(word)), "{:?}", rig.craft[0].log);
    }
}

#[test]
fn muscop_18_what_cannot_be_flown_is_refused_before_any_aircraft_arms() {
    type Change = fn(&mut Rig);
    let cases: [(&str, Change); 8] = [
        (
            "000000000000000b and 000000000000000a stand 4.0 m apart, expected 8.0 m: position errors 3.0 m",
            |r| {
                r.craft[1].at.x -= 6.0;
            },
        ),
        ("distance_m 9.0 m, expected at least 10.0 m", |r| r.configure(0, |c| c.distance_m = 9.0)),
        ("landing_distance_m 10.0 m, expected at least 21.2 m: position errors 14.2 m", |r| {
            for craft in &mut r.craft {
                craft.at *= 3.0;
            }
            r.configure(0, |c| c.surroundings.gnss_error_m = 2.5);
        }),
        ("distance_m 4 m: slots over each other", |r| r.configure(0, |c| c.distance_m = 4.0)),
        ("landing_distance_m 2.5 m: slots", |r| r.configure(0, |c| c.landing_distance_m = 2.5)),
        ("000000000000000a, slot 0, waypoint 0: 300 m from", |r| {
            r.configure(0, |c| (c.distance_m, c.distance_most_m) = (300.0, 250.0));
        }),
        ("waypoint 1: height -5 m, expected 2 to 120 m", |r| {
            let mut mission = mission(&[(0.0, 0.0), (0.0, 200.0)], 20.0);
            mission[1].height_mm = -5_000;
            r.craft[0].muscop.set_mission(&mission, MissionExtras::NONE).unwrap();
        }),
        ("heading: found NaN", |r| r.craft[0].muscop.swarm.task_mut().heading_rad = Some(f64::NAN)),
    ];
    for (words, change) in cases {
        let mut rig = Rig::new(3, Layout::Linear, 4);
        change(&mut rig);
        rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
        rig.command_all(Command::Setup);
        for _ in 0..100 {
            rig.step();
        }
        assert!(rig.has_logged(0, words), "{words}: {:?}", rig.craft[0].log);
        assert_eq!(rig.craft[0].muscop.state_id(), StateId::Start, "{words}");
        assert!(rig.craft.iter().all(|c| !c.armed));
    }
    // A follower whose own fence is narrower refuses the plan, logs why, and so keeps setup from going on.
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.configure(2, |c| c.height_most_m = 15.0);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
    rig.command_all(Command::Setup);
    for _ in 0..100 {
        rig.step();
    }
    assert!(
        rig.has_logged(2, "the master's plan is refused: 000000000000000c, slot 2, waypoint 0: height 20 m")
    );
    assert!(rig.craft[0].muscop.detail().contains("waiting for 1 to hold the plan"));
    // One that holds another plan is named.
    let flight = rig.craft[0].muscop.swarm.assignment().flight();
    let other = Message::DataAck { hash: 7 };
    for _ in 0..2 {
        rig.feed(0, Input::Message { from: VehicleId(12), flight, message: &other });
        rig.step();
    }
    let logged =
        rig.craft[0].log.iter().filter(|(_, _, l)| l.contains("000000000000000c holds another plan"));
    assert_eq!(logged.count(), 1);
    // Two aircraft with one id call from two positions.
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 3);
    let Point { latitude_e7, longitude_e7, .. } = mission(&[(80.0, 80.0)], 0.0)[0];
    let elsewhere = Message::Stands { at: Location { latitude_e7, longitude_e7, altitude_mm: 0 } };
    let call = crate::swarm::setup::call_number(rig.craft[0].muscop.swarm.config().master);
    // A call to another master is refused, whichever aircraft it comes from.
    rig.feed(0, Input::Message { from: VehicleId(12), flight: call ^ 1, message: &elsewhere });
    rig.craft[0].muscop.permits(Command::Setup).unwrap();
    rig.feed(0, Input::Message { from: VehicleId(12), flight: call, message: &elsewhere });
    let refused = rig.craft[0].muscop.permits(Command::Setup).unwrap_err().to_string();
    assert!(refused.contains("000000000000000c: received from two positions"), "{refused}");
}

#[test]
fn muscop_19_all_take_off_at_once_only_where_their_paths_never_meet() {
    for (separation_m, flies) in [(5.0, false), (3.0, true)] {
        for lost in [0, 8] {
            let mut rig = Rig::new(5, Layout::Linear, 4);
            rig.configure(0, |c| (c.take_off, c.separation_m) = (Manner::Simultaneous, separation_m));
            rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 5);
            rig.receives = Box::new(move |n, from, to| scramble(n, from, to) % 10 >= lost);
            rig.command_all(Command::Setup);
            if !flies {
                assert!(rig.has_logged(0, "come within 3."), "{:?}", rig.craft[0].log);
                assert_eq!(rig.craft[0].muscop.state_id(), StateId::Start);
                continue;
            }
            rig.until("setup", 300, |r| r.all_in(StateId::SetupFinished));
            assert!(rig.nearest.0 >= separation_m, "{:?}", rig.nearest);
            let begins =
                |c: &Craft| c.orders.iter().find(|(_, o)| matches!(o, Order::TakeOff { .. })).unwrap().0;
            let first = rig.craft.iter().map(begins).min().unwrap();
            let last = rig.craft.iter().map(begins).max().unwrap();
            assert!(lost > 0 || last.since(first) < Duration::from_secs(3), "{:?}", last.since(first));
        }
    }
}

#[test]
fn muscop_09_a_lone_aircraft_flies_the_same_mission() {
    let mut rig = Rig::new(1, Layout::Linear, 4);
    rig.step();
    rig.command_all(Command::Setup);
    rig.until("setup", 60, |r| r.all_in(StateId::SetupFinished));
    rig.command_all(Command::Start);
    rig.until("landing", 120, |r| r.all_in(StateId::Finished));
}

#[test]
fn muscop_11_a_follower_takes_setup_twice_and_waits_for_the_plan() {
    let mut rig = Rig::new(2, Layout::Linear, 4);
    rig.until("calls", 5, |r| r.craft[0].muscop.swarm.setup().count() == 2);
    for _ in 0..2 {
        rig.craft[1].muscop.permits(Command::Setup).unwrap();
        rig.feed(1, Input::Operator(Command::Setup));
    }
    assert_eq!(rig.craft[1].muscop.state_id(), StateId::Setup);
    rig.feed(0, Input::Operator(Command::Setup));
    rig.until("setup", 120, |r| r.all_in(StateId::SetupFinished));
}

#[test]
fn a_machine_never_wants_waking_in_the_past() {
    let mut rig = Rig::new(3, Layout::Linear, 4);
    rig.set_up();
    rig.command_all(Command::Start);
    for _ in 0..4_000 {
        rig.step();
        for craft in &mut rig.craft {
            let mut out = Actions::new();
            craft.muscop.handle(rig.now, Input::Wake, &mut out);
            let (at, why) = craft.muscop.poll_timeout();
            assert!(at > rig.now, "{why} in {}", craft.muscop.state_id());
        }
    }
}
