//! MBCAP and MBCAP-e: collision avoidance between aircraft of different owners, each on its own planned
//! mission (thesis chapter 5).
//!
//! Every aircraft tells five times a second where it is and where it will be. Who finds that another will
//! be at the same place at the same time stops; the one with the lower id gives way, aside if it stands
//! in the other's path; the one with the higher id passes; both go on.
//!
//! ```text
//! Normal ─risk (a)▶ StandStill ─lower id, in the way (d)▶ MovingAside ─there (e)▶ GoOnPlease
//!                   StandStill ─lower id, not in the way (c)──────────────────▶ GoOnPlease
//!                   StandStill ─higher id, the other gives way (h)▶ Overtaking ─past it (i)▶ Normal
//! GoOnPlease ─the other has passed (f)▶ Normal      StandStill ─the other lands (j)▶ Normal
//! any but Normal, for too long: the other is gone ▶ Normal (f, i, j, k), else ▶ EmergencyLand (g)
//! ```
//!
//! Detection is [`risk`], prediction [`predict`], the place aside [`aside`]; this file is the state
//! machine around them. What the sources leave open or say twice is decided in `docs/protocols/mbcap.md`.

pub mod aside;
pub mod config;
mod neighbours;
pub mod predict;
pub mod risk;
mod talk;

#[cfg(test)]
mod tests;

pub use config::Config;

use heapless::Vec;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{LOCATIONS_MAX, Location, Message, Point, Refused, VehicleId};

use crate::{
    Action, Actions, AvoidanceView, Command, Denied, Details, EndFlight, Fence, Input, MissionError, Order,
    Phase, Protocol, ROUTE_MAX, Route, Severity, StateId, Telemetry, Text, View, text,
};
use config::AsideTests;
use neighbours::{Neighbour, Neighbours};
use predict::{Acceleration, Locations, Moving, STANDING_M_S, Track, Trail};

pub use wingbeat_wire::Avoidance;

/// Arrived at the place aside when nearer than this, metres.
const ASIDE_ARRIVED_M: f64 = 1.0;
/// Who stands so long after it was to go on has nowhere to go.
const SETTLED: Duration = Duration::from_secs(10);
/// Waypoints farther than this are not told while standing, but for one, metres.
const WAY_TOLD_M: f64 = 400.0;

/// States. Those of the avoidance are the thesis'; the others lead to them and away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On the ground, waiting for the operator.
    Start,
    /// The mission goes to the flight controller.
    Setup,
    /// The flight controller holds the mission.
    SetupFinished,
    /// Climbing, and then into the mission.
    TakingOff,
    /// On the mission, as the protocol sees it.
    Flying(Avoidance),
    /// The mission is over: coming down.
    Landing,
    /// On the ground, disarmed.
    Finished,
    /// Ended by the operator or a failure, still in the air.
    Aborted(EndFlight),
}

/// A manoeuvre that the flight controller is asked for: until its effect is seen, nothing is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// Braking; stands when slow enough or at `until`.
    Stopping { braking: bool, until: Option<Instant> },
    /// Back to the mission.
    Resuming(Avoidance),
    /// To the place aside; calm when slow enough or at `until`.
    Aside { until: Option<Instant> },
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stops because of a risk.
    pub stops: u32,
    /// Times that it moved aside.
    pub asides: u32,
    /// Deadlocks that ended by going on.
    pub deadlocks_solved: u32,
    /// Deadlocks that ended on the ground.
    pub deadlocks_failed: u32,
}

/// MBCAP on one aircraft.
pub struct Mbcap {
    config: Config,
    state: State,
    since: Instant,
    /// When it began to stand still.
    stood_at: Instant,
    doing: Option<Doing>,
    route: Route,
    /// The mission in the local frame, and that frame; made at the start of the flight.
    frame: Option<Frame>,
    waypoints: Vec<DVec3, ROUTE_MAX>,
    /// Waypoint reached last.
    reached: Option<u16>,
    at: Option<(Instant, Telemetry)>,
    here: DVec3,
    acceleration: Acceleration,
    trail: Trail,
    /// Whether to predict from the mission's line.
    project: bool,
    neighbours: Neighbours,
    /// Risks solved: others learn from it that they may go on.
    event: u16,
    avoiding: Option<VehicleId>,
    /// The last word of the aircraft that is avoided; it outlives its validity.
    avoided: Option<Neighbour>,
    /// Its locations in our frame.
    avoided_locations: Locations,
    avoided_event: Option<u16>,
    overtaken: bool,
    /// Where the risk with the avoided one was.
    risk_at: Option<DVec3>,
    ignored: Option<(VehicleId, Instant)>,
    scanned_last: Option<VehicleId>,
    aside: Option<DVec2>,
    told: Told,
    beacon_at: Instant,
    pass_at: Instant,
    tally: Tally,
}

/// What our last beacon said, which is also what risks are looked for with.
#[derive(Clone, Debug, Default)]
struct Told {
    locations: Locations,
    /// The same as they go out.
    places: Vec<Location, LOCATIONS_MAX>,
    /// When the first location was measured.
    measured_at: Instant,
    /// Beacons with these locations so far.
    sent: u32,
    state: Option<Avoidance>,
    speed_m_s: f64,
}

impl Mbcap {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its beacons and of its passes.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        let mut chance = Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(config.me.0));
        let mut phase = |period: Duration| {
            now + Duration::from_micros(chance.next_u64() % (period.as_micros() as u64).max(1))
        };
        Self {
            state: State::Start,
            since: now,
            stood_at: now,
            doing: None,
            route: Route::new(),
            frame: None,
            waypoints: Vec::new(),
            reached: None,
            at: None,
            here: DVec3::ZERO,
            acceleration: Acceleration::default(),
            trail: Trail::default(),
            project: true,
            neighbours: Neighbours::default(),
            event: 0,
            avoiding: None,
            avoided: None,
            avoided_locations: Locations::new(),
            avoided_event: None,
            overtaken: false,
            risk_at: None,
            ignored: None,
            scanned_last: None,
            aside: None,
            told: Told::default(),
            beacon_at: phase(config.beacon_period),
            pass_at: phase(config.check_period),
            tally: Tally::default(),
            config,
        }
    }

    fn speed_m_s(&self) -> f64 {
        self.at.map_or(0.0, |(_, at)| at.velocity_m_s.truncate().length())
    }
    fn armed(&self) -> bool {
        self.at.is_some_and(|(_, at)| at.armed)
    }
    fn last_reached(&self) -> bool {
        !self.route.is_empty() && self.reached.is_some_and(|w| usize::from(w) + 1 >= self.route.len())
    }
    /// Index of the waypoint that it flies to.
    fn next(&self) -> usize {
        self.reached.map_or(0, |w| usize::from(w) + 1)
    }
    /// Whether others need not reckon with us: on the ground, or coming down.
    fn is_landing(&self) -> bool {
        // Who stands in another's path is in it, though its mission is over.
        let is_at_the_end = self.last_reached()
            && matches!(self.state, State::Flying(Avoidance::Normal) | State::Landing | State::Finished);
        self.config.landing_is_out
            && (!self.armed() || self.at.is_some_and(|(_, at)| at.landing) || is_at_the_end)
    }
    fn flying(&self) -> Option<Avoidance> {
        match self.state {
            State::Flying(avoidance) => Some(avoidance),
            _ => None,
        }
    }

    /// Whether every waypoint lies inside the fence.
    fn flyable(&self) -> Result<(), Denied> {
        let Some((_, at)) = self.at else { return Err(Denied::NoPosition) };
        let Config { height_least_m, height_most_m, distance_most_m, .. } = self.config;
        let fence = Fence { height_least_m, height_most_m, distance_most_m };
        Ok(fence.check(at.position, &self.route)?)
    }

    fn observe(&mut self, now: Instant, at: Telemetry) {
        if let Some((before, last)) = self.at {
            let change_m_s = at.velocity_m_s.truncate().length() - last.velocity_m_s.truncate().length();
            self.acceleration.update(change_m_s, now.since(before).as_secs_f64());
        }
        self.at = Some((now, at));
        if let Some(frame) = &self.frame {
            self.here = frame.to_local(at.position);
            self.trail.push(self.here.truncate());
        }
    }

    /// Puts the mission into a local frame: heights above home become altitudes.
    fn begin_flight(&mut self) {
        let Some((_, at)) = self.at else { return };
        let home_mm = at.position.altitude_mm.saturating_sub(libm::round(at.height_m * 1e3) as i32);
        let frame = Frame::new(at.position);
        self.waypoints = self
            .route
            .iter()
            .map(|w| {
                frame.to_local(Position {
                    latitude_e7: w.latitude_e7,
                    longitude_e7: w.longitude_e7,
                    altitude_mm: w.height_mm.saturating_add(home_mm),
                })
            })
            .collect();
        self.here = frame.to_local(at.position);
        self.frame = Some(frame);
    }

    fn hear(&mut self, now: Instant, from: VehicleId, message: &Message) -> Result<(), Refused> {
        let Message::Beacon(beacon) = message else { return Err(Refused::Stranger) };
        let Some(frame) = &self.frame else { return Ok(()) }; // before the flight nothing is decided
        self.neighbours.hear(now, from, beacon, frame)?;
        if Some(from) == self.avoiding {
            self.refresh_avoided();
        }
        Ok(())
    }

    /// Takes the newest word of the aircraft that is avoided.
    fn refresh_avoided(&mut self) {
        let (Some(id), Some(frame)) = (self.avoiding, &self.frame) else { return };
        let Some(newest) = self.neighbours.get(id) else { return };
        self.avoided_locations = newest.locations(frame);
        if self.flying() == Some(Avoidance::GoOnPlease) {
            self.overtaken |= self.avoided_event.is_some_and(|before| newest.beacon.event != before);
            if self.risk_at.is_none()
                && newest.beacon.state == Avoidance::GoOnPlease
                && let Some(&at) = self.avoided_locations.get(1)
            {
                self.risk_at = Some(at);
            }
        }
        self.avoided_event = Some(newest.beacon.event);
        self.avoided = Some(newest.clone());
    }

    fn adopt(&mut self, id: VehicleId) {
        if self.avoiding != Some(id) {
            (self.avoiding, self.avoided_event) = (Some(id), None);
        }
        self.refresh_avoided();
    }

    fn enter(&mut self, now: Instant, avoidance: Avoidance, out: &mut Actions) {
        self.state = State::Flying(avoidance);
        (self.since, self.doing) = (now, None);
        if self.config.renew_at_change {
            (self.told.sent, self.beacon_at) = (0, now);
        }
        let other = self.avoiding.unwrap_or_default();
        let severity = match avoidance {
            Avoidance::EmergencyLand => Severity::Warning,
            _ => Severity::Info,
        };
        log(
            out,
            severity,
            match avoidance {
                Avoidance::Normal => text!("on the mission"),
                Avoidance::StandStill => text!("standing still, in conflict with {other}"),
                Avoidance::MovingAside => text!("moving aside for {other}"),
                Avoidance::GoOnPlease => text!("giving way to {other}"),
                Avoidance::Overtaking => text!("passing {other}"),
                Avoidance::EmergencyLand => text!("landing: the conflict with {other} was not solved"),
            },
        );
        match avoidance {
            Avoidance::Normal => {
                (self.avoiding, self.avoided, self.avoided_event) = (None, None, None);
                (self.risk_at, self.aside, self.overtaken) = (None, None, false);
            }
            Avoidance::StandStill => self.stood_at = now,
            Avoidance::GoOnPlease => self.overtaken = false,
            _ => {}
        }
    }

    /// The risk is over: others may learn it, and its other side is not looked at for a while.
    fn solved(&mut self, now: Instant) {
        self.event = self.event.wrapping_add(1);
        if let Some(id) = self.avoiding.filter(|_| !self.config.recheck.is_zero()) {
            self.ignored = Some((id, now + self.config.recheck));
        }
    }

    fn order(&mut self, doing: Doing, order: Order, out: &mut Actions) {
        self.doing = Some(doing);
        push(out, Action::Order(order));
    }

    fn resume(&mut self, then: Avoidance, out: &mut Actions) {
        // The last waypoint counts as reached a stopping distance before it. Then the flight controller has
        // ended its mission, and AUTO would begin it anew at the first waypoint.
        let order = match self.route.last().filter(|_| self.last_reached()) {
            Some(&last) => Order::FlyTo(last),
            None => Order::Resume,
        };
        self.order(Doing::Resuming(then), order, out);
    }

    fn emergency(&mut self, now: Instant, out: &mut Actions) {
        self.enter(now, Avoidance::EmergencyLand, out);
        push(out, Action::Order(Order::Land));
    }

    /// What a manoeuvre waits for.
    fn progress(&mut self, now: Instant, out: &mut Actions) {
        let slow = self.speed_m_s() <= self.config.stopped_m_s;
        match self.doing {
            Some(Doing::Stopping { braking: true, until }) => {
                let until = until.unwrap_or(now + self.config.stop);
                if slow || now >= until {
                    self.enter(now, Avoidance::StandStill, out);
                } else {
                    self.doing = Some(Doing::Stopping { braking: true, until: Some(until) });
                }
            }
            Some(Doing::Aside { until }) => {
                let Some(aside) = self.aside else { return };
                let there = self.here.truncate().distance(aside) < ASIDE_ARRIVED_M;
                let until = until.or(there.then_some(now + self.config.calm));
                if until.is_some_and(|until| slow && there || now >= until) {
                    // On the way back it is beside its mission's line.
                    self.project = false;
                    self.aside = None;
                    self.enter(now, Avoidance::GoOnPlease, out);
                } else {
                    self.doing = Some(Doing::Aside { until });
                }
            }
            _ => {}
        }
    }

    /// One pass of the collision detector (reference: thread of the same name).
    fn pass(&mut self, now: Instant, out: &mut Actions) {
        let Some(avoidance) = self.flying() else { return };
        if avoidance == Avoidance::EmergencyLand
            || matches!(self.doing, Some(Doing::Stopping { .. } | Doing::Resuming(_)))
        {
            return;
        }
        if avoidance != Avoidance::Normal && self.deadlocked(now, avoidance, out) {
            return;
        }
        if avoidance != Avoidance::Normal && self.other_lands(now, avoidance, out) {
            return;
        }
        if self.doing.is_some() {
            return; // on its way aside
        }
        match avoidance {
            Avoidance::Normal => self.normal(now, out),
            Avoidance::StandStill => self.stand_still(now, out),
            Avoidance::Overtaking => self.overtake(now, out),
            Avoidance::GoOnPlease => {
                if self.overtaken {
                    self.solved(now);
                    self.resume(Avoidance::Normal, out);
                }
            }
            Avoidance::MovingAside | Avoidance::EmergencyLand => {}
        }
    }

    fn deadlocked(&mut self, now: Instant, avoidance: Avoidance, out: &mut Actions) -> bool {
        if now.since(self.since) <= self.config.deadlock.timeout(self.config.planned_speed_m_s) {
            return false;
        }
        let silent = self.avoided.as_ref().is_none_or(|a| !a.is_valid(now, self.config.beacon_validity));
        if avoidance == Avoidance::Overtaking {
            // The other has moved out of the way; on it goes.
            self.tally.deadlocks_solved += 1;
            self.solved(now);
            self.enter(now, Avoidance::Normal, out);
        } else if silent {
            self.tally.deadlocks_solved += 1;
            self.solved(now);
            self.resume(Avoidance::Normal, out);
        } else {
            self.tally.deadlocks_failed += 1;
            self.event = self.event.wrapping_add(1);
            self.emergency(now, out);
        }
        true
    }

    fn other_lands(&mut self, now: Instant, avoidance: Avoidance, out: &mut Actions) -> bool {
        if !self.config.landing_is_out || !self.avoided.as_ref().is_some_and(|a| a.beacon.landing) {
            return false;
        }
        self.solved(now);
        if avoidance == Avoidance::Overtaking {
            self.enter(now, Avoidance::Normal, out);
        } else {
            self.resume(Avoidance::Normal, out);
        }
        true
    }

    fn normal(&mut self, now: Instant, out: &mut Actions) {
        if self.told.state != Some(Avoidance::Normal) || self.last_reached() || self.is_landing() {
            return;
        }
        let ours = risk::Told {
            locations: &self.told.locations,
            age_s: now.since(self.told.measured_at).as_secs_f64(),
            speed_m_s: self.told.speed_m_s,
            normal: true,
            stands: false,
        };
        let (Some(frame), Some(&here)) = (&self.frame, self.told.locations.first()) else { return };
        let ours_reach_m =
            self.told.locations.iter().map(|l| l.truncate().distance(here.truncate())).fold(0.0, f64::max);
        let mut found: Option<(VehicleId, DVec3)> = None;
        let mut claims = None;
        for other in self.neighbours.by_priority() {
            if !other.is_valid(now, self.config.beacon_validity) {
                continue;
            }
            self.scanned_last = Some(other.id);
            if self.config.landing_is_out && other.beacon.landing {
                continue;
            }
            if other.beacon.avoiding == Some(self.config.me) && claims.is_none() {
                claims = Some(other.id);
            }
            let ignored = self.ignored.is_some_and(|(id, until)| id == other.id && now < until);
            if ignored || found.is_some() {
                continue;
            }
            if !other.is_within(ours_reach_m + self.config.risk.distance_m, here) {
                continue;
            }
            let locations = other.locations(frame);
            let theirs = other.told(now, &locations);
            let p = &self.config.prediction;
            if let Some(at) = risk::between(&ours, &theirs, &self.config.risk, &p.horizon, p.hop_s) {
                found = Some((other.id, at));
            }
        }
        let id = match found {
            Some((id, at)) => {
                self.risk_at = Some(at);
                id
            }
            // Nobody is in our way, but somebody stands because of us.
            None => match claims.filter(|_| now.since(self.since) > self.config.resume) {
                Some(id) => id,
                None => return,
            },
        };
        self.adopt(id);
        self.tally.stops += 1;
        log(out, Severity::Warning, text!("conflict with {id}: stopping"));
        self.order(Doing::Stopping { braking: false, until: None }, Order::Hold, out);
    }

    fn stand_still(&mut self, now: Instant, out: &mut Actions) {
        if now.since(self.since) < self.config.standing {
            // Somebody with a still higher right may stand because of us.
            let higher = self.neighbours.by_priority().find(|n| {
                n.is_valid(now, self.config.beacon_validity)
                    && n.beacon.state == Avoidance::StandStill
                    && !n.beacon.landing
                    && n.beacon.avoiding == Some(self.config.me)
            });
            if let Some(id) = higher.map(|n| n.id).filter(|&id| self.avoiding.is_none_or(|a| id > a)) {
                self.risk_at = None;
                self.adopt(id);
            }
            return;
        }
        let Some(avoided) = &self.avoided else { return };
        let (id, other) = (avoided.id, &avoided.beacon);
        match other.avoiding {
            Some(whom) if whom == self.config.me => {}
            Some(_) => {
                // It has another conflict first: our turn comes. Of one that is heard no more that is old news, and
                // three that wait for each other in a ring would wait until their batteries are empty.
                let is_heard = avoided.is_valid(now, self.config.beacon_validity);
                if is_heard && now.since(self.stood_at) <= self.config.turn {
                    self.since = now;
                }
                return;
            }
            None => return,
        }
        let state = match self.config.aside_tests {
            AsideTests::Avoided => other.state,
            AsideTests::LastScanned => self
                .scanned_last
                .and_then(|id| self.neighbours.get(id))
                .map_or(other.state, |n| n.beacon.state),
        };
        if self.config.me > id && other.state == Avoidance::GoOnPlease {
            self.resume(Avoidance::Overtaking, out);
        } else if self.config.me < id && state == Avoidance::StandStill {
            self.give_way(now, out);
        }
    }

    fn give_way(&mut self, now: Instant, out: &mut Actions) {
        let (Some(avoided), Some(frame), Some((_, at))) = (&self.avoided, &self.frame, self.at) else {
            return;
        };
        let way: Vec<DVec2, { predict::LOCATIONS_MAX }> =
            self.avoided_locations.iter().map(|l| l.truncate()).collect();
        let aside = aside::Aside {
            planned_speed_m_s: f64::from(avoided.beacon.planned_speed_cm_s) * 1e-2,
            safe_distance_m: self.config.safe_distance_m,
            curves: self.config.curves,
        };
        match aside::place(self.here.truncate(), &way, &aside) {
            None => self.enter(now, Avoidance::GoOnPlease, out),
            Some(place) => {
                let there = frame.to_position(place.extend(0.0));
                let target = Point {
                    latitude_e7: there.latitude_e7,
                    longitude_e7: there.longitude_e7,
                    height_mm: libm::round(at.height_m * 1e3) as i32,
                };
                self.aside = Some(place);
                self.tally.asides += 1;
                self.enter(now, Avoidance::MovingAside, out);
                self.order(Doing::Aside { until: None }, Order::FlyTo(target), out);
            }
        }
    }

    fn overtake(&mut self, now: Instant, out: &mut Actions) {
        let Some(&there) = self.avoided_locations.first().filter(|_| self.avoided.is_some()) else { return };
        let behind = self.trail.moves_away_from(there.truncate())
            && self.risk_at.is_none_or(|at| self.trail.moves_away_from(at.truncate()));
        let beyond = !self.config.overtake_beyond
            || self.here.truncate().distance(there.truncate()) > self.config.risk.distance_m;
        // Over its last waypoint it goes no farther: whoever waits would wait for ever.
        let passed = behind && beyond || self.is_at_the_end(now);
        if now.since(self.since) > self.config.overtaking && passed {
            self.solved(now);
            self.enter(now, Avoidance::Normal, out);
        }
    }

    fn obey(&mut self, now: Instant, command: Command, out: &mut Actions) {
        self.doing = None;
        if let Some(end) = EndFlight::commanded(command) {
            (self.state, self.since) = (State::Aborted(end), now);
            push(out, Action::Order(end.order()));
        }
        match command {
            Command::Setup => {
                (self.state, self.since) = (State::Setup, now);
                push(out, Action::Order(Order::LoadRoute));
            }
            Command::Start => {
                self.begin_flight();
                (self.state, self.since) = (State::TakingOff, now);
                let height_mm = self.route.first().map_or(0, |w| w.height_mm);
                push(out, Action::Order(Order::FlyRoute { height_mm }));
            }
            // An end: above. No aircraft is waited for, so none is excluded; the others are the agent's own.
            Command::Hold
            | Command::Return
            | Command::Land
            | Command::RecoverControl
            | Command::Engage
            | Command::Exclude { .. } => {}
        }
    }

    fn done(&mut self, now: Instant, order: Order, out: &mut Actions) {
        match (order, self.state, self.doing) {
            (Order::LoadRoute, State::Setup, _) => (self.state, self.since) = (State::SetupFinished, now),
            (Order::FlyRoute { .. }, State::TakingOff, _) => self.enter(now, Avoidance::Normal, out),
            (Order::Hold, State::Flying(_), Some(Doing::Stopping { until, .. })) => {
                self.doing = Some(Doing::Stopping { braking: true, until });
            }
            (Order::Resume | Order::FlyTo(_), State::Flying(_), Some(Doing::Resuming(then))) => {
                self.enter(now, then, out);
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, order: Order, out: &mut Actions) {
        log(out, Severity::Error, text!("{order} failed in state {}", self.state_id()));
        match self.state {
            State::Setup => (self.state, self.since) = (State::Start, now),
            State::TakingOff if !self.armed() => (self.state, self.since) = (State::SetupFinished, now),
            State::Flying(avoidance) if avoidance != Avoidance::EmergencyLand => self.emergency(now, out),
            State::TakingOff => {
                (self.state, self.since) = (State::Aborted(EndFlight::Land), now);
                push(out, Action::Order(Order::Land));
            }
            _ => {}
        }
    }

    /// Whether the mission has been flown.
    fn is_at_the_end(&self, now: Instant) -> bool {
        let Some(last) = self.waypoints.last() else { return false };
        let near = self.here.truncate().distance(last.truncate()) < predict::AT_THE_END_M;
        // It may stop short of it; and the word that it was reached is said once, over a line that may lose
        // it.
        let stands = self.speed_m_s() <= self.config.stopped_m_s && now.since(self.since) > SETTLED;
        let is_last_leg = self.next() + 1 >= self.waypoints.len();
        if self.last_reached() { near || stands } else { is_last_leg && near && stands }
    }

    /// What follows from where the aircraft is: the end of the mission, the ground.
    fn look(&mut self, now: Instant, out: &mut Actions) {
        let airborne = match self.state {
            State::Flying(_) | State::Landing | State::Aborted(_) => true,
            State::TakingOff => now.since(self.since) > Duration::from_secs(30),
            _ => false,
        };
        if airborne && self.at.is_some() && !self.armed() {
            (self.state, self.since, self.doing) = (State::Finished, now, None);
            self.avoiding = None;
            return;
        }
        if self.flying() == Some(Avoidance::Normal) && self.doing.is_none() && self.is_at_the_end(now) {
            (self.state, self.since) = (State::Landing, now);
            log(out, Severity::Info, text!("the mission is over: landing"));
            push(out, Action::Order(Order::Land));
        }
    }

    fn state_id(&self) -> StateId {
        match self.state {
            State::Start => StateId::Start,
            State::Setup => StateId::Setup,
            State::SetupFinished => StateId::SetupFinished,
            State::TakingOff => StateId::TakingOff,
            State::Flying(avoidance) => avoidance.into(),
            State::Landing => StateId::Landing,
            State::Finished => StateId::Finished,
            State::Aborted(_) => StateId::Aborted,
        }
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Start => Phase::Start,
            State::Setup | State::TakingOff => Phase::Preparing,
            State::SetupFinished => Phase::Ready,
            State::Flying(Avoidance::StandStill | Avoidance::GoOnPlease) => Phase::Waiting,
            State::Flying(Avoidance::Normal | Avoidance::MovingAside | Avoidance::Overtaking) => {
                Phase::Moving
            }
            State::Flying(Avoidance::EmergencyLand) | State::Landing => Phase::Ending,
            State::Finished => Phase::Finished,
            State::Aborted(_) => Phase::Aborted,
        }
    }

    fn detail(&self) -> Text {
        match (self.state, self.avoiding) {
            (State::Start, _) if self.route.is_empty() => text!("waiting for a mission"),
            (State::Start, _) => text!("waiting for setup"),
            (State::SetupFinished, _) => text!("the flight controller holds the mission"),
            (State::Aborted(EndFlight::Hold), _) => text!("holding at the operator's command"),
            (State::Aborted(EndFlight::Return), _) => text!("returning to launch"),
            (State::Aborted(EndFlight::Land), _) => text!("landing"),
            (State::Flying(Avoidance::Normal), None) => {
                text!("waypoint {} of {}", self.next().min(self.route.len()), self.route.len())
            }
            (State::Flying(_), Some(id)) => text!("in conflict with {id}"),
            _ => text!(""),
        }
    }

    fn avoidance(&self) -> Option<AvoidanceView> {
        let frame = self.frame.as_ref()?;
        let place = |at: DVec3| frame.to_position(at);
        Some(AvoidanceView {
            state: self.flying().unwrap_or(Avoidance::Normal),
            avoiding: self.avoiding,
            predicted: self.told.locations.iter().map(|&l| place(l)).collect(),
            risk: self.risk_at.map(place),
            aside: self.aside.map(|a| place(a.extend(self.here.z))),
        })
    }
}

fn push(out: &mut Actions, action: Action) {
    // An input asks for a handful; `Actions` says how the bound is made up.
    let _ = out.push(action);
}

fn log(out: &mut Actions, severity: Severity, line: Text) {
    push(out, Action::Log(severity, line));
}

impl Protocol for Mbcap {
    fn name(&self) -> &'static str {
        self.config.name
    }

    fn set_mission(&mut self, mission: &[Point]) -> Result<(), MissionError> {
        if self.state != State::Start {
            return Err(MissionError::State { found: self.state_id() });
        }
        self.route = Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or(MissionError::Waypoints { found: mission.len() })?;
        Ok(())
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        match input {
            Input::Wake => {}
            Input::Telemetry(at) => {
                self.observe(now, at);
                self.look(now, out);
            }
            Input::Reached(waypoint) => {
                if usize::from(waypoint) < self.route.len() {
                    self.reached = self.reached.max(Some(waypoint));
                    self.project = true;
                }
            }
            Input::Message { from, message, .. } => {
                if let Err(reason) = self.hear(now, from, message) {
                    push(out, Action::Refused(reason));
                }
            }
            Input::Operator(command) => self.obey(now, command, out),
            Input::Done(order) => self.done(now, order, out),
            Input::Failed(order) => self.failed(now, order, out),
        }
        self.progress(now, out);
        if now >= self.pass_at {
            self.pass_at = now + self.config.check_period;
            self.pass(now, out);
        }
        if now >= self.beacon_at {
            self.beacon_at = now + self.config.beacon_period;
            self.talk(now, out);
        }
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        match self.state {
            State::Start | State::Setup | State::SetupFinished | State::Finished => {
                (Instant::NEVER, "nothing")
            }
            _ if self.beacon_at <= self.pass_at => (self.beacon_at, "beacon due"),
            _ => (self.pass_at, "look for conflicts"),
        }
    }

    fn permits(&self, command: Command) -> Result<(), Denied> {
        let found = self.state_id();
        match command {
            Command::Setup => match self.state {
                State::Start if self.route.is_empty() => Err(Denied::NoMission),
                State::Start => self.flyable(),
                _ => Err(Denied::State { command, found, expected: StateId::Start }),
            },
            Command::Start if self.state == State::SetupFinished => Ok(()),
            Command::Start => Err(Denied::State { command, found, expected: StateId::SetupFinished }),
            Command::Hold | Command::Return | Command::Land if self.armed() => Ok(()),
            Command::Hold | Command::Return | Command::Land => Err(Denied::OnGround { found }),
            Command::Exclude { member } => Err(Denied::NoSwarm(member)),
            Command::RecoverControl | Command::Engage => Err(Denied::NotTheProtocols),
        }
    }

    fn route(&self) -> &[Point] {
        &self.route
    }

    fn view(&self) -> View {
        View {
            route_speed_m_s: Some(self.config.planned_speed_m_s),
            avoidance_tally: Some(self.tally),
            ..View::alone(self.state_id(), self.phase()).on_route(&self.route, self.reached)
        }
    }

    fn details(&self) -> Details {
        Details { line: self.detail(), avoidance: self.avoidance(), ..Details::default() }
    }
}
