//! Two and three aircraft as points with a mission, on a radio without losses.

extern crate std;

mod alone;
mod driver;
mod end;
mod moved;
mod others;
mod table;

use super::*;
use std::string::String;
use std::{format, vec, vec::Vec};
use wingbeat_geo::DVec2;
use wingbeat_wire::{Beacon, Course, Location};

use crate::{EndFlight, MissionExtras, Order, Route};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 30_000 };
const STEP: Duration = Duration::from_millis(250);
/// WPNAV_ACCEL of ArduCopter 3.5.7.
const ACCELERATION_M_S2: f64 = 1.0;

/// An aircraft that carries out orders immediately.
struct Craft {
    id: VehicleId,
    protocol: Mbcap,
    mission: Vec<DVec2>,
    at: DVec2,
    velocity: DVec2,
    mode: Option<Order>,
    armed: bool,
    next: usize,
    states: Vec<(u64, StateId)>,
    refused: Vec<Refused>,
    /// Its last beacon.
    sent: Beacon,
}

fn point(at: DVec2, height_m: f64) -> Point {
    let p = Frame::new(HOME).to_position(at.extend(0.0));
    Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: (height_m * 1e3) as i32 }
}

impl Craft {
    fn new(config: Config, id: u64, mission: &[(f64, f64)]) -> Self {
        let mission: Vec<_> = mission.iter().map(|&(x, y)| DVec2::new(x, y)).collect();
        let mut protocol = Mbcap::new(Config { me: VehicleId(id), ..config }, id, Instant::ZERO);
        protocol
            .set_mission(&mission.iter().map(|&w| point(w, 20.0)).collect::<Route>(), MissionExtras::NONE)
            .unwrap();
        let at = mission[0];
        Self {
            id: VehicleId(id),
            protocol,
            mission,
            at,
            velocity: DVec2::ZERO,
            mode: None,
            armed: false,
            next: 1,
            states: vec![],
            refused: vec![],
            sent: Beacon::default(),
        }
    }

    fn telemetry(&self) -> Telemetry {
        let frame = Frame::new(HOME);
        Telemetry {
            position: frame.to_position(self.at.extend(20.0)),
            height_m: 20.0,
            velocity_m_s: self.velocity.extend(0.0),
            heading_rad: 0.0,
            armed: self.armed,
            landing: self.mode == Some(Order::Land),
            is_located: true,
        }
    }

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Vec<Message> {
        let (mut sent, mut inputs) = (Vec::new(), vec![]);
        let mut actions = Actions::new();
        self.protocol.handle(now, input, &mut actions);
        loop {
            for action in core::mem::take(&mut actions) {
                match action {
                    Action::Order(order) => {
                        self.mode = Some(order);
                        self.armed = self.armed || matches!(order, Order::FlyRoute { .. });
                        if !matches!(order, Order::FlyTo(_)) {
                            inputs.push(order);
                        }
                    }
                    Action::Broadcast { message, .. } => sent.push(message),
                    Action::PassOn | Action::Log(..) => {}
                    Action::Refused(reason) => self.refused.push(reason),
                }
            }
            let Some(order) = inputs.pop() else { break };
            self.protocol.handle(now, Input::Done(order), &mut actions);
        }
        let state = self.protocol.view().state;
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((now.as_millis(), state));
        }
        if let Some(Message::Beacon(beacon)) = sent.last() {
            self.sent = beacon.clone();
        }
        sent
    }

    /// Flies one step; true where a waypoint is reached.
    fn fly(&mut self, speed_m_s: f64) -> Option<u16> {
        let dt = STEP.as_secs_f64();
        let (goal, limit) = match self.mode {
            Some(Order::FlyRoute { .. } | Order::Resume) => (self.mission.get(self.next).copied(), speed_m_s),
            Some(Order::FlyTo(p)) => {
                let p = Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
                (Some(Frame::new(HOME).to_local(p).truncate()), speed_m_s)
            }
            // Home, where it lands: as the autopilot does it.
            Some(Order::Return) if self.at != self.mission[0] => (Some(self.mission[0]), speed_m_s),
            Some(Order::Return) => {
                self.armed = false;
                (None, 0.0)
            }
            _ => (None, 0.0),
        };
        let Some(goal) = goal else {
            let slower = (self.velocity.length() - 5.0 * dt).max(0.0);
            self.velocity = self.velocity.normalize_or_zero() * slower;
            self.at += self.velocity * dt;
            return None;
        };
        let left = goal - self.at;
        let fastest = limit.min(libm::sqrt(2.0 * ACCELERATION_M_S2 * left.length()));
        let speed = (self.velocity.length() + ACCELERATION_M_S2 * dt).min(fastest);
        self.velocity = left.normalize_or_zero() * speed;
        let step = self.velocity * dt;
        if step.length() >= left.length() - 0.2 {
            self.at = goal;
            if !matches!(self.mode, Some(Order::FlyTo(_) | Order::Return)) {
                self.next += 1;
                return Some(self.next as u16 - 1);
            }
        } else {
            self.at += step;
        }
        None
    }
}

/// Commands to the aircraft of that index, at that time in seconds.
type Commanded = (u64, usize, Command);

struct Flown {
    separation_m: f64,
    crafts: Vec<Craft>,
    ended_s: Vec<f64>,
}

fn fly(crafts: Vec<Craft>, speeds: &[f64], limit_s: u64) -> Flown {
    fly_commanded(crafts, speeds, limit_s, &[])
}

fn fly_commanded(mut crafts: Vec<Craft>, speeds: &[f64], limit_s: u64, commanded: &[Commanded]) -> Flown {
    let mut separation_m = f64::INFINITY;
    let mut ended_s = vec![f64::NAN; crafts.len()];
    for craft in &mut crafts {
        let at = craft.telemetry();
        craft.handle(Instant::ZERO, Input::Telemetry(at));
        craft.handle(Instant::ZERO, Input::Operator(Command::Setup));
        craft.handle(Instant::ZERO, Input::Operator(Command::Start));
        craft.handle(Instant::ZERO, Input::Reached(0));
    }
    for ms in (0..limit_s * 1000).step_by(50) {
        let now = Instant::from_millis(ms);
        let mut sent = Vec::new();
        for &(_, i, command) in commanded.iter().filter(|(at_s, ..)| at_s * 1000 == ms) {
            sent.extend(crafts[i].handle(now, Input::Operator(command)).into_iter().map(|m| (i, m)));
        }
        for (i, craft) in crafts.iter_mut().enumerate() {
            if ms % 250 == 0 {
                if let Some(reached) = craft.fly(speeds[i]) {
                    sent.extend(craft.handle(now, Input::Reached(reached)).into_iter().map(|m| (i, m)));
                }
                if craft.mode == Some(Order::Land) && craft.velocity == DVec2::ZERO {
                    craft.armed = false;
                }
                let at = craft.telemetry();
                sent.extend(craft.handle(now, Input::Telemetry(at)).into_iter().map(|m| (i, m)));
            } else {
                sent.extend(craft.handle(now, Input::Wake).into_iter().map(|m| (i, m)));
            }
            let is_down = !craft.armed && craft.protocol.view().state == StateId::Aborted;
            if ended_s[i].is_nan() && (is_down || craft.protocol.view().state == StateId::Finished) {
                ended_s[i] = now.as_secs_f64();
            }
        }
        for (from, message) in sent {
            for i in (0..crafts.len()).filter(|&i| i != from) {
                let id = crafts[from].id;
                crafts[i].handle(now, Input::Message { from: id, flight: 0, message: &message });
            }
        }
        for i in 0..crafts.len() {
            for j in 0..i {
                if crafts[i].armed && crafts[j].armed {
                    separation_m = separation_m.min(crafts[i].at.distance(crafts[j].at));
                }
            }
        }
        if ended_s.iter().all(|s| !s.is_nan()) {
            break;
        }
    }
    assert!(crafts.iter().all(|c| c.refused.is_empty()), "honest beacons are taken");
    Flown { separation_m, crafts, ended_s }
}

fn names(craft: &Craft) -> Vec<StateId> {
    craft.states.iter().map(|s| s.1).collect()
}

#[test]
fn mbcap_07_perpendicular_crossing() {
    for config in [Config::mbcap(), Config::mbcap_e()] {
        let low = Craft::new(config.clone(), 1, &[(-300.0, 0.0), (300.0, 0.0)]);
        let high = Craft::new(config.clone(), 2, &[(0.0, -300.0), (0.0, 300.0)]);
        let flown = fly(vec![low, high], &[10.0, 10.0], 400);
        assert!(flown.separation_m > 15.0, "{} {}", config.name, flown.separation_m);
        let low = names(&flown.crafts[0]);
        assert_eq!(
            low,
            [
                StateId::Start,
                StateId::SetupFinished,
                StateId::Normal,
                StateId::StandStill,
                StateId::GoOnPlease,
                StateId::Normal,
                StateId::Landing,
                StateId::Finished
            ]
        );
        let high = names(&flown.crafts[1]);
        assert_eq!(
            high,
            [
                StateId::Start,
                StateId::SetupFinished,
                StateId::Normal,
                StateId::StandStill,
                StateId::Overtaking,
                StateId::Normal,
                StateId::Landing,
                StateId::Finished
            ]
        );
        assert_eq!(flown.crafts.iter().map(|c| c.sent.event).collect::<Vec<_>>(), [1, 1]);
    }
}

#[test]
fn mbcap_07_face_to_face_the_lower_moves_aside() {
    for config in [Config::mbcap(), Config::mbcap_e()] {
        let low = Craft::new(config.clone(), 1, &[(-300.0, 0.0), (300.0, 0.0)]);
        let high = Craft::new(config.clone(), 2, &[(300.0, 0.0), (-300.0, 0.0)]);
        let flown = fly(vec![low, high], &[10.0, 10.0], 400);
        assert!(flown.separation_m > 6.0, "{} {}", config.name, flown.separation_m);
        assert!(names(&flown.crafts[0]).contains(&StateId::MovingAside), "{:?}", names(&flown.crafts[0]));
        assert!(!names(&flown.crafts[1]).contains(&StateId::MovingAside));
        assert!(flown.ended_s.iter().all(|s| !s.is_nan()), "{:?}", flown.crafts[0].states);
    }
}

#[test]
fn mbcap_08_a_third_waits_until_the_first_two_are_done() {
    let crafts = vec![
        Craft::new(Config::mbcap_e(), 1, &[(-300.0, 0.0), (300.0, 0.0)]),
        Craft::new(Config::mbcap_e(), 2, &[(0.0, -300.0), (0.0, 300.0)]),
        Craft::new(Config::mbcap_e(), 3, &[(220.0, 210.0), (-200.0, -200.0)]),
    ];
    let flown = fly(crafts, &[10.0; 3], 600);
    assert!(
        flown.ended_s.iter().all(|s| !s.is_nan()),
        "{:?}",
        flown.crafts.iter().map(|c| &c.states).collect::<Vec<_>>()
    );
    assert!(flown.separation_m > 5.0, "{}", flown.separation_m);
}

/// Two pairs face to face in one place, the second pair later by up to 3 s: the least separation of each flight.
fn two_pairs_m(config: &Config) -> Vec<f64> {
    let later_m = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0];
    let flight = |off_m: f64| {
        let far = 300.0 + off_m;
        let crafts = vec![
            Craft::new(config.clone(), 1, &[(0.0, 300.0), (0.0, -300.0)]),
            Craft::new(config.clone(), 2, &[(0.0, -300.0), (0.0, 300.0)]),
            Craft::new(config.clone(), 3, &[(-far, 0.0), (300.0, 0.0)]),
            Craft::new(config.clone(), 4, &[(far, 0.0), (-300.0, 0.0)]),
        ];
        let flown = fly(crafts, &[10.0; 4], 900);
        assert!(flown.ended_s.iter().all(|s| !s.is_nan()), "{off_m}: one stands for ever");
        assert!(flown.crafts.iter().all(|c| !names(c).contains(&StateId::EmergencyLand)), "{off_m}");
        flown.separation_m
    };
    later_m.map(flight).to_vec()
}

#[test]
fn mbcap_08_two_that_pass_keep_clear_of_each_other_and_of_those_that_stand() {
    let separations_m = two_pairs_m(&Config::mbcap_e());
    assert!(separations_m.iter().all(|&m| m > 6.0), "{separations_m:?}");
    // As published they judge no third, and one that stands stays in the way of one that does not answer.
    let published =
        two_pairs_m(&Config { passing_judges: false, avoids_to_the_end: false, ..Config::mbcap_e() });
    assert!(published.iter().any(|&m| m < 5.0), "{published:?}");
}

/// Two fly home on ways that cross; on their missions they were there at different times. The first turns back after 47 to 53 s.
fn returning_m(config: &Config) -> Vec<(f64, Flown)> {
    let flight = |at_s: u64| {
        let crafts = vec![
            Craft::new(config.clone(), 1, &[(0.0, 0.0), (700.0, 0.0)]),
            Craft::new(config.clone(), 2, &[(200.0, -300.0), (200.0, 400.0)]),
        ];
        let commands = [(at_s, 0, Command::Return), (55, 1, Command::Return)];
        let flown = fly_commanded(crafts, &[10.0; 2], 600, &commands);
        (flown.separation_m, flown)
    };
    (47..=53).map(flight).collect()
}

#[test]
fn mbcap_20_two_that_return_on_ways_that_cross_avoid_each_other() {
    let (mut stopped, mut unsafe_before) = (0, 0);
    for (separation_m, flown) in returning_m(&Config::mbcap_e()) {
        assert!(separation_m > 6.0, "{separation_m}");
        assert!(flown.ended_s.iter().all(|s| !s.is_nan()), "one stands for ever");
        for craft in &flown.crafts {
            assert_eq!(names(craft).last(), Some(&StateId::Aborted), "{:?}", craft.states);
            assert!(craft.at == craft.mission[0], "{} came down at {}", craft.id, craft.at);
            stopped += craft.protocol.tally.stops;
        }
    }
    assert!(stopped > 0, "none had to stop");
    for (separation_m, _) in returning_m(&Config { avoids_to_the_end: false, ..Config::mbcap_e() }) {
        unsafe_before += u32::from(separation_m < 5.0);
    }
    assert!(unsafe_before > 0, "their ways do not cross at one time");
}

/// A storm from one sender, through the whole state machine: its beacons are refused and counted, our beacons
/// continue, and another aircraft is still avoided.
#[test]
fn mbcap_09_in_a_storm_beacons_continue_and_another_is_avoided() {
    const STORM_FROM_MS: u64 = 5_000;
    const END_MS: u64 = 25_000;
    let (flood, ahead) = (VehicleId(5), VehicleId(9));
    let beacon = |at: DVec2, height_m: f64| {
        let p = Frame::new(HOME).to_position(at.extend(height_m));
        let location =
            Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: p.altitude_mm };
        Message::Beacon(Beacon { locations: core::iter::once(location).collect(), ..Beacon::default() })
    };
    let (storm, standing) = (beacon(DVec2::new(30.0, 0.0), 200.0), beacon(DVec2::new(150.0, 0.0), 20.0));
    let mut craft = Craft::new(Config::mbcap_e(), 1, &[(0.0, 0.0), (600.0, 0.0)]);
    let at = craft.telemetry();
    for input in [
        Input::Telemetry(at),
        Input::Operator(Command::Setup),
        Input::Operator(Command::Start),
        Input::Reached(0),
    ] {
        craft.handle(Instant::ZERO, input);
    }
    let (mut flooded, mut sent) = (0, 0);
    let beacons = |sent: Vec<Message>| sent.iter().filter(|m| matches!(m, Message::Beacon(_))).count();
    for half_ms in 0..END_MS * 2 {
        let (now, ms) = (Instant::from_micros(half_ms * 500), half_ms / 2);
        if half_ms.is_multiple_of(500) {
            let _ = craft.fly(10.0);
            let at = craft.telemetry();
            sent += beacons(craft.handle(now, Input::Telemetry(at)));
        }
        if half_ms.is_multiple_of(400) {
            let message = Input::Message { from: ahead, flight: 0, message: &standing };
            sent += beacons(craft.handle(now, message));
        }
        if ms >= STORM_FROM_MS {
            flooded += 1;
            let message = Input::Message { from: flood, flight: 0, message: &storm };
            sent += beacons(craft.handle(now, message));
        }
    }
    // Twenty are taken when it begins, and twenty more ten seconds later.
    assert!(craft.refused.iter().all(|&r| r == Refused::Storm));
    assert_eq!((flooded, craft.refused.len()), (40_000, 39_960));
    assert!((120..=130).contains(&sent), "five beacons a second: found {sent} in {END_MS} ms");
    assert_eq!(names(&craft).last(), Some(&StateId::StandStill), "{:?}", craft.states);
    assert_eq!(craft.protocol.details().avoidance.and_then(|a| a.avoiding), Some(ahead));
    assert!(craft.at.x < 150.0 - Config::mbcap_e().risk.distance_m, "{}", craft.at);
}
