//! FollowMe machines over perfect aircraft: orders take effect by themselves, slaves fly straight at 10 m/s,
//! the test is the leader's pilot. What is tested is the protocol; the bench flies real flight dynamics.

extern crate std;
use std::collections::BTreeMap;
use std::string::ToString as _;
use std::vec::Vec as StdVec;

use wingbeat_geo::formation::{Layout, Offset};
use wingbeat_wire::VehicleId;

use wingbeat_geo::{DVec3, Duration, Frame, Position};
use wingbeat_wire::{Coordinates, Datagram, Message, Refused};

use super::*;
use crate::swarm::passing::Passing;
use crate::swarm::plan::position;
use crate::{Order, Severity, Telemetry};

mod table;
mod way;

struct Craft {
    follow: FollowMe,
    at: DVec3,
    heading_rad: f64,
    /// As its flight controller reports it.
    velocity_m_s: DVec3,
    order: Option<Order>,
    armed: bool,
    landing: bool,
    log: StdVec<(Instant, Severity, Text)>,
    orders: StdVec<(Instant, Order)>,
    passing: Passing,
    broadcast: StdVec<(Instant, Message)>,
    refused: StdVec<Refused>,
}

impl Craft {
    fn telemetry(&self, frame: &Frame) -> Telemetry {
        Telemetry {
            position: frame.to_position(self.at.truncate().extend(0.0)),
            height_m: self.at.z,
            velocity_m_s: self.velocity_m_s,
            heading_rad: self.heading_rad,
            armed: self.armed,
            landing: self.landing,
            is_located: true,
        }
    }
}

struct Rig {
    craft: StdVec<Craft>,
    frame: Frame,
    now: Instant,
    /// Whether a datagram (number, from, to) arrives.
    receives: fn(u64, usize, usize) -> bool,
    datagrams: u64,
    states: BTreeMap<usize, StdVec<StateId>>,
    /// Metres a second that the pilot flies the leader with.
    leader_m_s: DVec3,
}

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

impl Rig {
    fn new(count: usize, layout: Layout, change: fn(&mut Config)) -> Self {
        let craft = (0..count)
            .map(|i| {
                let mut config = Config::new(VehicleId(10 + i as u64), VehicleId(10), count);
                config.swarm.layout = layout;
                // What is lost, and for how long, is each test's own.
                (config.leader_timeout, config.follows_again) = (Duration::from_secs(2), false);
                change(&mut config);
                Craft {
                    follow: FollowMe::new(config, 1 + i as u64, Instant::ZERO),
                    at: DVec3::new(i as f64 * 10.0, 0.0, 0.0),
                    heading_rad: 0.0,
                    velocity_m_s: DVec3::ZERO,
                    order: None,
                    armed: false,
                    landing: false,
                    log: StdVec::new(),
                    orders: StdVec::new(),
                    passing: Passing::default(),
                    broadcast: StdVec::new(),
                    refused: StdVec::new(),
                }
            })
            .collect();
        Self {
            craft,
            frame: Frame::new(ORIGIN),
            now: Instant::ZERO,
            receives: |_, _, _| true,
            datagrams: 0,
            states: BTreeMap::new(),
            leader_m_s: DVec3::ZERO,
        }
    }

    fn feed(&mut self, i: usize, input: Input<'_>) {
        let mut queue = StdVec::new();
        self.feed_one(i, input, &mut queue);
        while let Some((to, datagram)) = queue.pop() {
            let mut passing = self.craft[to].passing.clone();
            let me = self.craft[to].follow.swarm.config().me;
            passing.receive(me, datagram, |input| self.feed_one(to, input, &mut queue));
            self.craft[to].passing = passing;
        }
    }

    /// Whether the input was taken.
    fn feed_one(&mut self, i: usize, input: Input<'_>, queue: &mut StdVec<(usize, Datagram)>) -> bool {
        let (now, count) = (self.now, self.craft.len());
        let craft = &mut self.craft[i];
        let mut out = Actions::new();
        craft.follow.handle(now, input, &mut out);
        let is_taken = !out.iter().any(|action| matches!(action, Action::Refused(_)));
        for action in out {
            match action {
                Action::Order(order) => {
                    craft.order = Some(order);
                    craft.orders.push((now, order));
                }
                Action::Broadcast { .. } | Action::PassOn => {
                    let from = craft.follow.swarm.config().me;
                    let sent = match action {
                        Action::Broadcast { flight, message } => Some((flight, message)),
                        _ => craft.passing.pass_on(),
                    };
                    let Some((flight, message)) = sent else { continue };
                    self.datagrams += 1;
                    let counter = self.datagrams;
                    let datagram = Datagram { from, counter, flight, message };
                    let datagram = datagram.draft().unwrap().read().unwrap();
                    craft.broadcast.push((now, datagram.message.clone()));
                    for to in (0..count).filter(|&to| to != i) {
                        if (self.receives)(self.datagrams, i, to) {
                            queue.push((to, datagram.clone()));
                        }
                    }
                }
                Action::Log(severity, line) => craft.log.push((now, severity, line)),
                Action::Refused(reason) => craft.refused.push(reason),
            }
        }
        let state = craft.follow.state_id();
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
            match craft.order {
                Some(Order::TakeOff { height_mm }) => {
                    craft.armed = true;
                    craft.at.z = (craft.at.z + 0.1).min(f64::from(height_mm) / 1e3);
                }
                Some(Order::FlyTo(place)) => {
                    let there = self.frame.to_local(position(place)).truncate();
                    let there = there.extend(f64::from(place.height_mm) / 1e3);
                    craft.at += (there - craft.at).clamp_length_max(0.5);
                }
                Some(Order::Land | Order::Return) => {
                    craft.at.z = (craft.at.z - 0.1).max(0.0);
                    craft.armed &= craft.at.z > 0.0;
                }
                Some(Order::Hold) | None => {}
                Some(order) => panic!("FollowMe orders {order}"),
            }
            if i == 0 && craft.armed {
                craft.at += self.leader_m_s * 0.05;
                craft.at.z = craft.at.z.max(0.0);
                craft.armed = craft.at.z > 0.0 || self.leader_m_s.z > 0.0;
            }
            let (telemetry, order) = (craft.telemetry(&self.frame), craft.order);
            self.feed(i, Input::Telemetry(telemetry));
            if order == Some(Order::Hold) {
                self.feed(i, Input::Done(Order::Hold));
            }
            self.feed(i, Input::Wake);
        }
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds * 20).for_each(|_| self.step());
    }

    fn until(&mut self, what: &str, seconds: u64, condition: impl Fn(&Self) -> bool) {
        let end = self.now + Duration::from_secs(seconds);
        while !condition(self) {
            assert!(self.now < end, "{what} did not happen in {seconds} s: {:?}", self.details());
            self.step();
        }
    }

    fn details(&self) -> StdVec<(StateId, Text)> {
        self.craft.iter().map(|c| (c.follow.state_id(), c.follow.detail())).collect()
    }

    fn state(&self, i: usize) -> StateId {
        self.craft[i].follow.state_id()
    }

    fn slaves_in(&self, state: StateId) -> bool {
        self.craft[1..].iter().all(|c| c.follow.state_id() == state)
    }

    fn command_all(&mut self, command: Command) {
        for i in 0..self.craft.len() {
            self.craft[i].follow.permits(command).unwrap();
            self.feed(i, Input::Operator(command));
        }
    }

    fn set_up(&mut self) {
        self.until("calls", 30, |r| r.craft[0].follow.swarm.setup().count() == r.craft.len());
        self.command_all(Command::Setup);
        self.until("setup", 600, |r| {
            r.slaves_in(StateId::SetupFinished) && r.state(0) == StateId::SetupFinished
        });
    }

    /// Setup, start, and the pilot takes the leader to 20 m.
    fn lead(&mut self) {
        self.set_up();
        self.command_all(Command::Start);
        self.craft[0].armed = true;
        self.leader_m_s = DVec3::Z * 2.0;
        self.until("the leader's climb", 20, |r| r.craft[0].at.z >= 20.0);
        self.leader_m_s = DVec3::ZERO;
        self.until("following", 5, |r| r.slaves_in(StateId::Following));
    }

    /// A message to the slave 1; why it was refused.
    fn receive(&mut self, from: u64, flight: u32, message: Message) -> Option<Refused> {
        let before = self.craft[1].refused.len();
        let mut queue = StdVec::new();
        self.feed_one(1, Input::Message { from: VehicleId(from), flight, message: &message }, &mut queue);
        self.craft[1].refused.get(before).copied()
    }

    fn flight(&self) -> u32 {
        self.craft[0].follow.swarm.assignment().flight()
    }

    fn coordinates(&self) -> Coordinates {
        {
            let follow = &self.craft[0].follow;
            follow.guidance.coordinates(&follow.swarm).unwrap()
        }
    }

    /// Where a slave should be around the leader, and where it is.
    fn off_m(&self, i: usize) -> f64 {
        let place = guidance::slot_around(&self.craft[i].follow.swarm, self.coordinates()).unwrap();
        let there = self.frame.to_local(position(place)).truncate();
        there.extend(f64::from(place.height_mm) * 1e-3).distance(self.craft[i].at)
    }

    fn has_logged(&self, i: usize, words: &str) -> bool {
        self.craft[i].log.iter().any(|(_, _, line)| line.contains(words))
    }
}

/// The configuration as it is.
const USUAL: fn(&mut Config) = |_| {};

#[test]
fn follow_01_a_flight_from_setup_to_landing() {
    for layout in [Layout::Linear, Layout::Matrix, Layout::Circular] {
        let mut rig = Rig::new(5, layout, USUAL);
        rig.lead();
        rig.leader_m_s = DVec3::new(3.0, 3.0, 0.5);
        rig.run(30);
        rig.leader_m_s = DVec3::ZERO;
        rig.run(5);
        assert!((1..5).all(|i| rig.off_m(i) < 0.5), "{layout:?}");
        rig.leader_m_s = DVec3::Z * -2.0;
        rig.until("landing", 120, |r| (0..5).all(|i| r.state(i) == StateId::Finished));
        let common =
            [StateId::Start, StateId::Setup, StateId::ReadyToFly, StateId::TakingOff, StateId::SetupFinished];
        for (i, states) in &rig.states {
            let own: &[StateId] = match i {
                0 => &[StateId::Ready, StateId::FollowMe, StateId::Landing, StateId::Finished],
                _ => &[StateId::WaitMaster, StateId::Following, StateId::Landing, StateId::Finished],
            };
            let expected: StdVec<StateId> = common.iter().chain(own).copied().collect();
            assert_eq!(*states, expected, "aircraft {i}, {layout:?}");
        }
        assert!(rig.craft.iter().all(|c| !c.armed));
    }
}

#[test]
fn follow_02_the_leader_is_never_commanded() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    for command in [Command::Hold, Command::Return, Command::Land] {
        assert!(rig.craft[0].follow.permits(command).unwrap_err().to_string().contains("a pilot flies"));
        // And if it came all the same.
        rig.feed(0, Input::Operator(command));
    }
    rig.run(90);
    assert!(rig.state(0) == StateId::FollowMe && rig.slaves_in(StateId::Following));
    let mut on_ground = Rig::new(3, Layout::Linear, USUAL);
    on_ground.set_up();
    on_ground.feed(0, Input::Operator(Command::Land));
    on_ground.run(5);
    for rig in [rig, on_ground] {
        assert_eq!(rig.craft[0].orders, []);
        assert!(rig.craft[0].follow.view().is_piloted && !rig.craft[1].follow.view().is_piloted);
    }
}

#[test]
fn follow_03_each_refresh_is_one_target_turned_with_the_leader_at_its_height() {
    let mut rig = Rig::new(4, Layout::Linear, USUAL);
    rig.lead();
    let broadcast_before = rig.craft[0].broadcast.len();
    let orders_before = rig.craft[1].orders.len();
    rig.craft[0].heading_rad = core::f64::consts::FRAC_PI_2;
    rig.leader_m_s = DVec3::new(0.0, 1.0, 0.0);
    rig.run(20);
    let broadcast = rig.craft[0].broadcast.len() - broadcast_before;
    assert_eq!((broadcast, rig.craft[1].orders.len() - orders_before), (20, 20), "one each second");
    rig.leader_m_s = DVec3::ZERO;
    // A quarter turn, 3 m/s at 100 m.
    rig.run(60);
    for i in 1..4 {
        let from_leader = rig.craft[i].at - rig.craft[0].at;
        let slot = rig.craft[i].follow.view().slot_in_heading_m.unwrap();
        // Nose to the east: right is south, ahead is east.
        assert!(
            from_leader.distance(DVec3::new(slot.y, -slot.x, 0.0)) < 0.2,
            "{i}: {from_leader}, slot {slot}"
        );
        let offset = rig.craft[i].follow.view().slot_offset_m.unwrap();
        assert!(offset.distance(from_leader.truncate()) < 0.2);
    }
}

#[test]
fn follow_04_no_slave_follows_before_the_leader_is_at_height() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.set_up();
    rig.command_all(Command::Start);
    rig.craft[0].armed = true;
    rig.leader_m_s = DVec3::new(1.0, 0.0, 0.6);
    rig.run(30);
    assert!((17.0..18.05).contains(&rig.craft[0].at.z));
    assert!(rig.slaves_in(StateId::WaitMaster) && rig.state(0) == StateId::Ready);
    let leads = |m: &Message| matches!(m, Message::Coordinates(Coordinates { leads: true, .. }));
    assert!(!rig.craft[0].broadcast.iter().any(|(_, m)| leads(m)));
    rig.until("following", 5, |r| r.slaves_in(StateId::Following));
    assert!(rig.craft[0].broadcast.iter().any(|(_, m)| leads(m)));
}

#[test]
fn follow_05_a_lost_leader_is_held_for_or_landed_for() {
    type Change = fn(&mut Config);
    let cases: [(Change, StateId, Order, &str); 2] = [
        (|c| c.leader_lost = LeaderLost::Hold, StateId::LeaderLost, Order::Hold, "the leader is silent"),
        (|c| c.leader_lost = LeaderLost::Land, StateId::Aborted, Order::Land, "the leader is silent"),
    ];
    for (change, state, order, words) in cases {
        let mut rig = Rig::new(4, Layout::Matrix, change);
        rig.lead();
        rig.leader_m_s = DVec3::X * 3.0;
        rig.run(10);
        rig.receives = |_, from, _| from != 0;
        let silent_at = rig.now;
        rig.until("notice", 5, |r| r.slaves_in(state));
        let after = rig.now.since(silent_at);
        assert!(
            (1_000..=2_100).contains(&after.as_millis()),
            "{after:?} after the last word, which was within 1 s"
        );
        for i in 1..4 {
            assert_eq!(rig.craft[i].orders.last().unwrap().1, order);
            assert!(rig.has_logged(i, words), "{:?}", rig.craft[i].log);
        }
        // The leader flies on, and no slave follows; all slaves land.
        rig.until("coming down", 200, |r| r.craft[1..].iter().all(|c| !c.armed));
        let holding = state == StateId::LeaderLost;
        assert!((1..4).all(|i| rig.has_logged(i, "no operator decided in time") == holding));
        assert!(rig.slaves_in(StateId::Aborted) && rig.state(0) == StateId::FollowMe);
    }
}

#[test]
fn follow_06_a_leader_received_again_is_followed_again_only_as_configured() {
    for (change, follows) in [(USUAL, false), (|c: &mut Config| c.follows_again = true, true)] {
        let mut rig = Rig::new(3, Layout::Linear, change);
        rig.lead();
        rig.receives = |_, from, _| from != 0;
        rig.until("notice", 5, |r| r.slaves_in(StateId::LeaderLost));
        rig.receives = |_, _, _| true;
        rig.run(5);
        assert!(rig.slaves_in(if follows { StateId::Following } else { StateId::LeaderLost }));
    }
}

#[test]
fn follow_21_a_slave_that_misses_its_leader_holds_and_follows_again() {
    let mut rig = Rig::new(3, Layout::Linear, |c| c.leader_timeout = Duration::from_secs(8));
    rig.lead();
    rig.leader_m_s = DVec3::Y * 2.0;
    rig.run(5);
    rig.receives = |_, from, _| from != 0;
    rig.run(4);
    assert!(rig.slaves_in(StateId::Following));
    assert!((1..3).all(|i| rig.craft[i].orders.last().unwrap().1 == Order::Hold));
    rig.receives = |_, _, _| true;
    rig.run(3);
    assert!(rig.slaves_in(StateId::Following));
    assert!((1..3).all(|i| matches!(rig.craft[i].orders.last().unwrap().1, Order::FlyTo(_))));
}

#[test]
fn follow_21_a_slave_holds_no_sooner_at_a_short_refresh() {
    let mut rig = Rig::new(3, Layout::Linear, |c| {
        (c.refresh, c.leader_timeout) = (Duration::from_millis(500), Duration::from_secs(8));
    });
    rig.lead();
    rig.leader_m_s = DVec3::Y * 2.0;
    rig.run(5);
    // Three datagrams are lost, which the channel draws as two losses.
    rig.receives = |_, from, _| from != 0;
    rig.run(2);
    assert!((1..3).all(|i| matches!(rig.craft[i].orders.last().unwrap().1, Order::FlyTo(_))));
    assert!(!rig.has_logged(1, "holding"));
    rig.run(1);
    assert!((1..3).all(|i| rig.craft[i].orders.last().unwrap().1 == Order::Hold));
    assert!(rig.has_logged(1, "holding: the leader is not received"));
}

#[test]
fn follow_07_no_other_is_taken_for_the_leader() {
    let mut rig = Rig::new(4, Layout::Linear, USUAL);
    rig.lead();
    let (flight, target) = (rig.flight(), rig.craft[1].follow.view().target);
    let mut lie = rig.coordinates();
    lie.at.latitude_e7 += 1_000;
    let lied = Message::Coordinates(lie);
    let land = Message::Land { at: lie.at };
    // Another member, an unknown sender, the leader of another flight.
    assert_eq!(rig.receive(12, flight, lied.clone()), Some(Refused::UnexpectedSender));
    assert_eq!(rig.receive(12, flight, land.clone()), Some(Refused::UnexpectedSender));
    for command in [Message::Release { waypoint: 1 }, Message::Gather { waypoint: 1 }] {
        assert_eq!(rig.receive(12, flight, command), Some(Refused::UnexpectedSender));
    }
    assert_eq!(rig.receive(99, flight, lied.clone()), Some(Refused::UnexpectedSender));
    assert_eq!(rig.receive(10, flight ^ 1, lied.clone()), Some(Refused::OtherFlight));
    assert_eq!(rig.craft[1].follow.view().target, target);
    // Without the leader, no other takes its role.
    rig.receives = |_, from, _| from != 0;
    for _ in 0..10 {
        rig.run(1);
        rig.receive(12, flight, lied.clone());
        rig.receive(99, flight, lied.clone());
    }
    assert_eq!(rig.state(1), StateId::LeaderLost);
    assert_eq!(rig.receive(10, flight, land), None);
    rig.run(1);
    assert_eq!(rig.state(1), StateId::Landing, "the leader's own word still counts");
}

#[test]
fn follow_08_impossible_coordinates_are_refused_and_not_broadcast() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    let (flight, good) = (rig.flight(), rig.coordinates());
    let target = rig.craft[1].follow.view().target;
    let changed = |change: fn(&mut Coordinates)| {
        let mut bad = good;
        change(&mut bad);
        Message::Coordinates(bad)
    };
    for (bad, reason) in [
        (changed(|c| c.at.height_mm = 500), Refused::Impossible),
        (changed(|c| c.at.height_mm = 120_001), Refused::Impossible),
        (changed(|c| c.at.latitude_e7 += 20_000), Refused::Impossible),
        (changed(|c| c.at.longitude_e7 += 10_000_000), Refused::FarAway),
    ] {
        assert_eq!(rig.receive(10, flight, bad), Some(reason));
    }
    assert_eq!(rig.craft[1].follow.view().target, target);
    // Without a heading nothing is broadcast, and the slaves notice the silence.
    for heading_rad in [f64::NAN, f64::INFINITY, -0.1, 11.4] {
        rig.craft[0].heading_rad = heading_rad;
        let before = rig.craft[0].broadcast.len();
        rig.run(2);
        assert_eq!(rig.craft[0].broadcast.len(), before, "{heading_rad}");
    }
    assert!(rig.slaves_in(StateId::LeaderLost));
    let mut fresh = Rig::new(2, Layout::Linear, USUAL);
    fresh.craft[0].heading_rad = f64::NAN;
    fresh.run(5);
    assert!(fresh.craft[0].follow.permits(Command::Setup).unwrap_err().to_string().contains("no heading"));
}

#[test]
fn follow_09_the_operator_stops_a_slave_in_every_state() {
    for (command, order) in [(Command::Hold, Order::Hold), (Command::Land, Order::Land)] {
        for wait in [StateId::SetupFinished, StateId::WaitMaster, StateId::Following, StateId::LeaderLost] {
            let mut rig = Rig::new(3, Layout::Linear, USUAL);
            match wait {
                StateId::Following => rig.lead(),
                StateId::LeaderLost => {
                    rig.lead();
                    rig.receives = |_, from, _| from != 0;
                    rig.until("notice", 5, |r| r.slaves_in(StateId::LeaderLost));
                }
                other => {
                    rig.set_up();
                    if other == StateId::WaitMaster {
                        rig.command_all(Command::Start);
                    }
                }
            }
            assert_eq!(rig.state(1), wait);
            rig.craft[1].follow.permits(command).unwrap();
            rig.feed(1, Input::Operator(command));
            assert_eq!(
                (rig.state(1), rig.craft[1].orders.last().unwrap().1),
                (StateId::Aborted, order),
                "{wait}"
            );
            let orders = rig.craft[1].orders.len();
            rig.run(5);
            assert_eq!(rig.craft[1].orders.len(), orders, "it follows no leader any more");
        }
    }
}

#[test]
fn follow_09_a_return_in_flight_is_refused_because_nothing_keeps_it_apart() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    let why = rig.craft[1].follow.permits(Command::Return).unwrap_err();
    assert_eq!(why, crate::Denied::NoReturnBehindPilot);
    assert!(why.to_string().contains("hold or land"));
}

#[test]
fn follow_11_eight_of_ten_datagrams_may_be_lost_and_all_land() {
    let mut rig = Rig::new(5, Layout::Matrix, |c| c.follows_again = true);
    rig.receives = |n, from, to| {
        let mixed = (n * 64 + from as u64 * 8 + to as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32).is_multiple_of(5)
    };
    rig.set_up();
    rig.command_all(Command::Start);
    rig.craft[0].armed = true;
    rig.leader_m_s = DVec3::Z * 2.0;
    rig.until("the leader's climb", 20, |r| r.craft[0].at.z >= 20.0);
    rig.leader_m_s = DVec3::new(1.0, 0.0, 0.0);
    rig.run(60);
    assert!((1..5).all(|i| rig.states[&i].contains(&StateId::Following)), "{:?}", rig.states);
    rig.leader_m_s = DVec3::Z * -2.0;
    rig.until("all down", 300, |r| r.craft.iter().all(|c| !c.armed));
}

#[test]
fn follow_12_the_landing_formation_is_around_the_leader_as_it_points_last() {
    let mut rig = Rig::new(5, Layout::Linear, |c| c.landing = Landing::Formation);
    rig.lead();
    rig.craft[0].heading_rad = core::f64::consts::PI;
    rig.run(120);
    rig.leader_m_s = DVec3::Z * -2.0;
    rig.until("landing", 200, |r| (0..5).all(|i| r.state(i) == StateId::Finished));
    assert!(rig.states[&1].contains(&StateId::MovingToLand));
    for i in 1..5 {
        let from_leader = (rig.craft[i].at - rig.craft[0].at).truncate();
        let slot = rig.craft[i].follow.view().slot_in_heading_m.unwrap();
        // Nose to the south: right is west. 60 m in flight, 10 m on the ground.
        assert!(from_leader.distance(-slot / 6.0) < 1.5, "{i}: {from_leader}, slot {slot}");
    }
}

#[test]
fn follow_13_mode_land_and_a_leader_that_is_down_end_the_flight() {
    for crash in [false, true] {
        let mut rig = Rig::new(3, Layout::Linear, USUAL);
        rig.lead();
        if crash {
            rig.craft[0].armed = false;
        } else {
            rig.craft[0].landing = true;
        }
        rig.run(2);
        assert!(rig.slaves_in(StateId::Landing) && rig.state(0) == StateId::Landing);
        rig.craft[0].armed = false;
        rig.until("all down", 60, |r| (0..3).all(|i| r.state(i) == StateId::Finished));
    }
}

#[test]
fn follow_14_a_yaw_of_the_leader_is_no_flight_through_it() {
    let nearest_m = |turn_m_s: f64| {
        let change: fn(&mut Config) =
            if turn_m_s.is_finite() { USUAL } else { |c| c.turn_m_s = f64::INFINITY };
        let mut rig = Rig::new(5, Layout::Linear, change);
        rig.lead();
        rig.craft[0].heading_rad = core::f64::consts::PI;
        let mut nearest_m = f64::INFINITY;
        for _ in 0..150 * 20 {
            rig.step();
            let leader = rig.craft[0].at;
            nearest_m = rig.craft[1..].iter().map(|c| c.at.distance(leader)).fold(nearest_m, f64::min);
        }
        assert!((1..5).all(|i| rig.off_m(i) < 0.5), "finally all have turned");
        nearest_m
    };
    assert!(nearest_m(3.0) > 45.0, "{}", nearest_m(3.0));
    assert!(nearest_m(f64::INFINITY) < 5.0, "as published they do");
}

#[test]
fn follow_14_a_formation_turns_with_what_a_fast_leader_leaves_of_its_slaves_speed() {
    // From the planned heading, by so far, after 20 s: metres at the outermost slot, 120 m from the leader.
    let turned_m = |handling: Handling, leader_m_s: f64, change: fn(&mut Config)| {
        let mut rig = Rig::new(5, Layout::Linear, change);
        rig.lead();
        rig.craft[0].follow.set_handling(handling);
        rig.craft[0].velocity_m_s = DVec3::new(0.0, leader_m_s, -1.0);
        rig.craft[0].heading_rad = 3.0;
        rig.run(20);
        let last = rig.craft[0].broadcast.iter().rev().find_map(|(_, message)| {
            let Message::Coordinates(c) = message else { return None };
            Some(f64::from(c.heading_urad) * 1e-6)
        });
        last.expect("broadcast") * 120.0
    };
    for (leader_m_s, expected_m) in
        [(0.0, 60.0), (7.0, 60.0), (8.0, 40.0), (9.5, 10.0), (10.0, 0.0), (12.5, 0.0)]
    {
        let found_m = turned_m(Handling::Shaped, leader_m_s, USUAL);
        assert!((found_m - expected_m).abs() < 3.1, "{leader_m_s} m/s: {found_m}");
        let found_m = turned_m(Handling::Tracks, leader_m_s, USUAL);
        assert!((found_m - 60.0).abs() < 3.1, "{leader_m_s} m/s, 3.5.7: {found_m}");
    }
    let published_m = turned_m(Handling::Shaped, 12.5, |c| c.turn_m_s = f64::INFINITY);
    assert!((published_m - 360.0).abs() < 0.01, "{published_m}");
}

#[test]
fn follow_03_a_formation_with_heights_is_flown_at_them_and_within_the_fence() {
    let mut rig = Rig::new(3, Layout::Custom, |c| {
        let place = |right_dm, up_dm| Offset { right_dm, ahead_dm: -600, up_dm };
        c.swarm.offsets.extend([Offset::default(), place(600, 100), place(-600, -100)]);
    });
    rig.lead();
    let heights = |rig: &Rig| {
        let leader_m = rig.craft[0].at.z;
        let mut above_m: StdVec<i32> =
            (1..3).map(|i| libm::round(rig.craft[i].at.z - leader_m) as i32).collect();
        above_m.sort_unstable();
        above_m
    };
    rig.run(5);
    assert_eq!(heights(&rig), [-10, 10]);
    // Above half of its height the leader leads on, and its lower slave would be at 1 m.
    rig.leader_m_s = DVec3::Z * -2.0;
    rig.until("low", 20, |r| r.craft[0].at.z < 11.0);
    rig.leader_m_s = DVec3::ZERO;
    rig.run(5);
    let least_m = rig.craft[0].follow.swarm.config().height_least_m;
    let lowest_m = rig.craft[1..].iter().map(|c| c.at.z).fold(f64::INFINITY, f64::min);
    assert!((lowest_m - least_m).abs() < 0.3, "{lowest_m}");
    assert!(rig.slaves_in(StateId::Following));
}

#[test]
fn follow_15_a_leader_that_is_never_received_is_waited_for_as_long_as_an_operator() {
    for (change, state) in
        [(USUAL, StateId::LeaderLost), (|c: &mut Config| c.leader_lost = LeaderLost::Land, StateId::Aborted)]
    {
        let mut rig = Rig::new(3, Layout::Linear, change);
        rig.set_up();
        rig.receives = |_, from, _| from != 0;
        rig.command_all(Command::Start);
        rig.run(55);
        assert!(rig.slaves_in(StateId::WaitMaster));
        rig.until("notice", 10, |r| r.slaves_in(state));
        rig.until("coming down", 200, |r| r.craft[1..].iter().all(|c| !c.armed));
    }
}

#[test]
fn follow_16_a_climb_that_is_broken_off_lands_all() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.set_up();
    rig.command_all(Command::Start);
    // Motors that run on the ground and stop again are no flight.
    rig.craft[0].armed = true;
    rig.run(3);
    rig.craft[0].armed = false;
    rig.run(3);
    assert!(rig.slaves_in(StateId::WaitMaster) && rig.state(0) == StateId::Ready);
    rig.craft[0].armed = true;
    rig.leader_m_s = DVec3::Z * 2.0;
    rig.run(5);
    rig.leader_m_s = DVec3::Z * -2.0;
    rig.until("all down", 100, |r| (0..3).all(|i| r.state(i) == StateId::Finished));
    assert!(!rig.states[&1].contains(&StateId::Following));
}

#[test]
fn follow_17_a_slave_lands_aside_of_one_that_stands_below() {
    let mut rig = Rig::new(4, Layout::Linear, USUAL);
    rig.lead();
    // One is landed by the operator, and the formation flies on until another is over it.
    let (first, flown) = (rig.craft[1].at, Command::Land);
    rig.feed(1, Input::Operator(flown));
    rig.until("the first down", 100, |r| !r.craft[1].armed);
    let nearest = |rig: &Rig| {
        let apart_m = |i: usize| (rig.craft[i].at - first).truncate().length();
        (2..4).map(|i| (i, apart_m(i))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    };
    let (second, _) = nearest(&rig);
    let way = (first - rig.craft[second].at).truncate();
    rig.leader_m_s = (way / way.length() * 3.0).extend(0.0);
    rig.until("over the first", 60, |r| (r.craft[second].at - first).truncate().length() < 3.0);
    rig.leader_m_s = DVec3::ZERO;
    rig.run(2);
    rig.leader_m_s = DVec3::Z * -2.0;
    rig.until("all down", 200, |r| r.craft.iter().all(|c| !c.armed));
    let apart_m = (rig.craft[second].at - first).truncate().length();
    assert!((8.0..30.0).contains(&apart_m), "{apart_m}");
    assert!(rig.states[&second].contains(&StateId::MovingToLand));
    let other = 5 - second;
    assert!(!rig.states[&other].contains(&StateId::MovingToLand), "an aircraft with a free slot lands in it");
}

#[test]
fn follow_18_slaves_in_their_slots_do_not_wait_for_ever_for_a_leader_that_is_not_received() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.set_up();
    rig.run(200);
    assert!(rig.slaves_in(StateId::SetupFinished), "for an operator they do");
    rig.receives = |_, from, _| from != 0;
    rig.run(55);
    assert!(rig.slaves_in(StateId::SetupFinished));
    rig.until("notice", 10, |r| r.slaves_in(StateId::LeaderLost));
    assert!(rig.has_logged(1, "the leader is silent"));
    rig.until("coming down", 200, |r| r.craft[1..].iter().all(|c| !c.armed));
}

#[test]
fn two_swarms_on_one_channel_are_set_up_each_by_its_own_master() {
    let mut rig = Rig::new(6, Layout::Linear, USUAL);
    for i in 0..6 {
        let leader = VehicleId(10 + i as u64 / 3 * 3);
        let config = Config::new(VehicleId(10 + i as u64), leader, 3);
        rig.craft[i].follow = FollowMe::new(config, 1 + i as u64, Instant::ZERO);
    }
    rig.run(5);
    rig.command_all(Command::Setup);
    rig.until("setup", 200, |r| (0..6).all(|i| r.state(i) == StateId::SetupFinished));
    for i in 0..6 {
        let view = rig.craft[i].follow.view().swarm;
        assert_eq!(view.leader_id, Some(VehicleId(10 + i as u64 / 3 * 3)), "{i}");
    }
}

#[test]
fn a_machine_never_wants_waking_in_the_past() {
    let mut rig = Rig::new(3, Layout::Linear, USUAL);
    rig.lead();
    for second in 0..200 {
        match second {
            20 => rig.receives = |_, from, _| from != 0,
            100 => rig.leader_m_s = DVec3::Z * -2.0,
            _ => {}
        }
        for _ in 0..20 {
            rig.step();
            for craft in &mut rig.craft {
                let mut out = Actions::new();
                craft.follow.handle(rig.now, Input::Wake, &mut out);
                let (at, why) = craft.follow.poll_timeout();
                assert!(at > rig.now, "{why} in {}", craft.follow.state_id());
            }
        }
    }
}

#[test]
fn a_mission_is_refused() {
    let mut rig = Rig::new(2, Layout::Linear, USUAL);
    assert!(
        rig.craft[0]
            .follow
            .set_mission(&[], MissionExtras::NONE)
            .unwrap_err()
            .to_string()
            .contains("flies no mission")
    );
}

#[test]
fn follow_13_below_which_height_the_leader_lands_is_configured() {
    for (change, lands) in [(USUAL, false), (|c: &mut Config| c.lands_below_percent = 80.0, true)] {
        let mut rig = Rig::new(3, Layout::Linear, change);
        rig.lead();
        // 13 m of 19 m.
        rig.leader_m_s = DVec3::Z * -2.0;
        rig.until("the descent", 20, |r| r.craft[0].at.z <= 13.0);
        rig.leader_m_s = DVec3::ZERO;
        rig.run(2);
        assert_eq!(rig.state(0) == StateId::Landing, lands);
    }
}

/// A slave whose companion was restarted: it holds as one without a leader, and follows again whatever is configured for a leader
/// that falls silent. One whose leader is silent lands, and the leader itself is its pilot's.
#[test]
fn follow_20_a_slave_whose_companion_was_restarted_follows_again_once_it_has_listened() {
    for (is_received, lands) in [(true, false), (false, true)] {
        let mut rig = Rig::new(4, Layout::Linear, USUAL);
        rig.lead();
        rig.leader_m_s = DVec3::Y * 3.0;
        rig.run(5);
        let leader = &rig.craft[0].follow;
        assert!(leader.left_on().is_none() && !leader.takes_up());
        let follow = &rig.craft[2].follow;
        let (record, key) = (follow.flight_record().unwrap(), follow.left_on().unwrap());
        let config = Config::new(VehicleId(12), VehicleId(10), 4);
        let (now, config) = (rig.now, Config { swarm: follow.swarm.config().clone(), ..config });
        // The guardian stops the aircraft.
        rig.craft[2].order = None;
        let mut again = FollowMe::new(config, 77, now);
        assert!(again.remember(now, Some(&record)) && again.takes_up());
        rig.craft[2].follow = again;
        let telemetry = rig.craft[2].telemetry(&rig.frame);
        rig.feed(2, Input::Telemetry(telemetry));
        let mut out = Actions::new();
        assert!(rig.craft[2].follow.rejoin(now, key, &mut out));
        assert!(matches!(out.first(), Some(Action::Order(Order::Hold))), "{out:?}");
        assert!(rig.craft[2].follow.left_on().is_none(), "once in a flight");
        if !is_received {
            rig.receives = |_, _, to| to != 2;
        }
        let at = rig.craft[2].at;
        rig.run(4);
        assert_eq!((rig.state(2), rig.craft[2].at), (StateId::LeaderLost, at), "it listens");
        rig.run(3);
        let state = if lands { StateId::LeaderLost } else { StateId::Following };
        assert_eq!(rig.state(2), state);
        if lands {
            rig.until("down", 100, |r| !r.craft[2].armed);
            assert_eq!(rig.state(2), StateId::Aborted);
        } else {
            rig.leader_m_s = DVec3::ZERO;
            rig.run(20);
            let slot = rig.craft[2].follow.view().target.unwrap();
            let off_m = (rig.frame.to_local(position(slot)) - rig.craft[2].at).truncate().length();
            assert!(off_m < 1.0, "{off_m} m off its slot");
        }
    }
}

/// A daemon that is started on the ground while the flight that it has on record goes on receives its leader.
#[test]
fn follow_20_of_the_leader_of_a_flight_that_is_forgotten_nothing_is_left() {
    let mut rig = Rig::new(4, Layout::Linear, USUAL);
    rig.lead();
    rig.run(5);
    let (now, leader, follow) = (rig.now, &rig.craft[0].follow, &rig.craft[2].follow);
    let record = follow.flight_record().unwrap();
    let config = Config::new(VehicleId(12), VehicleId(10), 4);
    let config = Config { swarm: follow.swarm.config().clone(), ..config };
    let mut again = FollowMe::new(config, 77, now);
    assert!(again.remember(now, Some(&record)));
    let message = Message::Coordinates(leader.guidance.coordinates(&leader.swarm).unwrap());
    let input = Input::Message { from: VehicleId(10), flight: record.flight, message: &message };
    again.handle(now, input, &mut Actions::new());
    assert!(again.guidance.has_received_leader());
    again.remember(now, None);
    assert!(!again.guidance.has_received_leader());
}
