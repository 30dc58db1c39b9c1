//! Our beacons, five a second, with the locations that the state calls for (thesis section 5.1.3).

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Instant, Position};
use wingbeat_wire::{AGE_MAX_MS, Avoidance, Beacon, COURSE_MAX, Course, LOCATIONS_MAX, Location, Message};

use super::predict::{self, Locations, Moving, Track, Waypoints as _};
use super::state::Avoiding;
use super::{Local, Mbcap, State, Way, flying};
use crate::{Action, Actions, EndFlight, REPORT_HOLDS, STOPS_WITHIN, coasts_m, push};
use wingbeat_geo::Duration;

/// A standing aircraft broadcasts its next waypoints up to the first that is farther than this, metres.
const PATH_MAX_M: f64 = 400.0;

/// The contents of our last beacon, from which risks are computed too.
#[derive(Clone, Debug, Default)]
pub(super) struct LastBeacon {
    pub(super) locations: Locations,
    /// The same as they go out.
    encoded: Vec<Location, LOCATIONS_MAX>,
    /// When the first location was measured.
    pub(super) measured_at: Instant,
    /// Beacons with these locations so far.
    pub(super) sent: u32,
    pub(super) state: Option<Avoidance>,
    pub(super) speed_m_s: f64,
}

/// A course is broadcast when it changes, and then so often.
const COURSE_PERIOD: Duration = Duration::from_secs(2);
/// A waypoint is left out of a course where that moves the path by less than this, in metres.
const STRAIGHT_M: f64 = 1.0;
/// At most this many waypoints in a row are left out of a course.
const LEFT_OUT_MAX: usize = 16;
/// So long after its motors stopped an aircraft broadcasts that it is down.
const DOWN_FOR: Duration = Duration::from_secs(3);

/// Where the flight controller flies if it gets no other order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ahead {
    /// Along the mission, from this waypoint on.
    Mission(usize),
    /// To a position aside.
    Aside(DVec2),
    /// It stays.
    Nowhere,
    /// Home, and lands there.
    Home,
    /// It lands, or is on the ground.
    Down,
}

/// One that lands goes on no farther than this where it is slow, metres.
const COASTS_LEAST_M: f64 = 2.5;

/// The course that was broadcast last.
#[derive(Clone, Debug, Default)]
pub(super) struct LastCourse {
    ahead: Option<Ahead>,
    sent_at: Instant,
    leads: Leads,
    leads_since: Instant,
}

/// The end to which courses lead, whatever interrupts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Leads {
    #[default]
    Mission,
    Home,
    Down,
}

impl LastCourse {
    /// Returns since when its courses lead to the present end.
    pub(super) fn leads_since(&self) -> Instant {
        self.leads_since
    }

    #[cfg(test)]
    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Takes the course that is sent now.
    fn send(&mut self, now: Instant, ahead: Ahead) {
        let leads = match ahead {
            Ahead::Mission(_) => Leads::Mission,
            Ahead::Home => Leads::Home,
            Ahead::Down => Leads::Down,
            // It stays within the distance that others keep from its course.
            Ahead::Aside(_) | Ahead::Nowhere => self.leads,
        };
        if leads != self.leads {
            (self.leads, self.leads_since) = (leads, now);
        }
        (self.ahead, self.sent_at) = (Some(ahead), now);
    }
}

impl Mbcap {
    /// Returns whether its flight was ordered and has not begun: a radio that dies before the
    /// motors run leaves a mission that the others have to know.
    fn is_ordered_up(&self) -> bool {
        self.config.avoids_to_the_end && self.flight.state() == State::TakingOff
    }

    /// Returns where its flight controller flies; nothing where that is not known.
    fn ahead(&self) -> Option<Ahead> {
        if !(self.flight.is_armed() || self.is_ordered_up()) {
            return Some(Ahead::Down);
        }
        let mission = || match self.is_returning() {
            true => Ahead::Home,
            false => Ahead::Mission(self.flight.next_waypoint()),
        };
        Some(match self.flight.state() {
            State::TakingOff => mission(),
            State::Flying(avoiding) => match avoiding {
                Avoiding::Normal { .. }
                // Until it is seen to brake it may fly on.
                | Avoiding::Stopping { stands_by: None, .. }
                | Avoiding::Overtaking { .. }
                | Avoiding::Resuming { .. } => mission(),
                Avoiding::MovingAside { aside, .. } | Avoiding::LandingAside { aside, .. } => Ahead::Aside(aside),
                Avoiding::Stopping { .. } | Avoiding::StandStill { .. } | Avoiding::GoOnPlease { .. } => {
                    Ahead::Nowhere
                }
                Avoiding::EmergencyLand { .. } => Ahead::Down,
            },
            State::Holding { .. } | State::Aborted(EndFlight::Hold) => Ahead::Nowhere,
            State::Aborted(EndFlight::Return) => return self.is_home_known().then_some(Ahead::Home),
            State::Landing
            | State::Aborted(EndFlight::Land)
            | State::Start
            | State::Setup
            | State::SetupFinished
            | State::Finished => Ahead::Down,
        })
    }

    /// Broadcasts where the flight controller flies if nothing more is ordered.
    pub(super) fn broadcast_course(&mut self, now: Instant, out: &mut Actions) {
        let Some(local) = &self.local else { return };
        let has_just_landed = self.disarmed_at.is_some_and(|at| now.since(at) <= DOWN_FOR);
        let is_in_flight = self.flight.is_armed() || self.is_ordered_up();
        if !(is_in_flight || has_just_landed) || now.since(self.motion.measured_at) > REPORT_HOLDS {
            return;
        }
        let Some(ahead) = self.ahead() else { return };
        let last = &mut self.last_course;
        if last.ahead == Some(ahead) && now.since(last.sent_at) < COURSE_PERIOD {
            return;
        }
        let route = Way::Mission { local, route: self.flight.route(), extras: self.flight.extras() };
        let mut waypoints: Vec<DVec3, COURSE_MAX> = Vec::new();
        match ahead {
            // The last counts as reached before the aircraft is there.
            Ahead::Mission(next) => {
                add_turns(
                    &mut waypoints,
                    self.motion.here,
                    &route,
                    next.min(route.count().saturating_sub(1)),
                );
            }
            Ahead::Aside(at) => waypoints.extend([at.extend(self.motion.here.z)]),
            // The flight began there.
            Ahead::Home => waypoints.extend([DVec3::new(0.0, 0.0, self.motion.here.z)]),
            // If it falls silent now it may land without knowing where it is.
            Ahead::Down => {
                let (moved_at, velocity_m_s) = self.motion.moved;
                let is_under_way = self.flight.is_armed() && now.since(moved_at) <= STOPS_WITHIN;
                let on_m =
                    Some(coasts_m(velocity_m_s)).filter(|on| is_under_way && on.length() > COASTS_LEAST_M);
                waypoints.extend(on_m.map(|on_m| self.motion.here + on_m.extend(0.0)));
            }
            Ahead::Nowhere => {}
        }
        let location = |at: &DVec3| {
            let Position { latitude_e7, longitude_e7, altitude_mm } = local.frame.to_position(*at);
            Location { latitude_e7, longitude_e7, altitude_mm }
        };
        let lands = matches!(ahead, Ahead::Home | Ahead::Down);
        let course = Course { lands, waypoints: waypoints.iter().map(location).collect() };
        last.send(now, ahead);
        push(out, Action::Broadcast { flight: 0, message: Message::Course(course) });
    }

    /// The locations along the mission at its planned speed, or on the way home: where we fly if we fly on, or continue.
    pub(super) fn path_ahead(&self) -> Locations {
        let Some(local) = &self.local else { return Locations::new() };
        let moving =
            Moving { speed_m_s: self.flight.planned_speed_m_s(), acceleration_m_s2: 0.0, ..self.moving() };
        self.track(&self.way(local)).ahead(&moving, &self.config.prediction)
    }

    fn track<'a>(&self, waypoints: &'a Way<'a>) -> Track<'a, Way<'a>> {
        let next = self.next_on(waypoints);
        Track { waypoints, next, project: self.motion.is_on_track }
    }

    fn next_on(&self, way: &Way<'_>) -> usize {
        match way {
            Way::Mission { .. } => self.flight.next_waypoint(),
            Way::Home { .. } => 0,
        }
    }

    /// The first of the waypoints that others are told: the last counts as reached before the aircraft is there.
    fn first_told(&self, way: &Way<'_>) -> usize {
        let next = self.next_on(way);
        if self.config.avoids_to_the_end { next.min(way.count().saturating_sub(1)) } else { next }
    }

    /// The locations of a new beacon (thesis section 5.1.3); of an aircraft that has left its mission, those straight
    /// ahead.
    fn locations(&self, state: State, local: &Local) -> Locations {
        let mut locations = Locations::new();
        let avoiding = match state {
            State::Flying(avoiding) => Some(avoiding),
            State::TakingOff | State::Landing => None,
            State::Aborted(_) if self.is_returning() => None,
            State::Start
            | State::Setup
            | State::SetupFinished
            | State::Holding { .. }
            | State::Finished
            | State::Aborted(_) => {
                let (here, velocity_m_s) = (self.motion.here, self.velocity_m_s());
                // Farther than any prediction reaches.
                let ahead = here.truncate() + velocity_m_s * 1_000.0;
                return predict::straight(&self.moving(), ahead, &self.config.prediction);
            }
        };
        let here = self.motion.here;
        let speed_m_s = self.flight.speed_m_s();
        let moving = self.moving();
        let waypoints = self.way(local);
        let shown = avoiding.map_or(Avoidance::Normal, |a| a.shown());
        match shown {
            Avoidance::GoOnPlease => {
                let risk = avoiding.and_then(|a| a.conflict()).and_then(|c| c.risk);
                locations.extend([here].into_iter().chain(risk));
            }
            Avoidance::StandStill => {
                locations.extend([here]);
                for waypoint in (self.first_told(&waypoints)..).map_while(|i| waypoints.get(i)) {
                    let near = waypoint.truncate().distance(here.truncate()) < PATH_MAX_M;
                    if locations.push(waypoint).is_err() || !near {
                        break; // the first that is far still counts
                    }
                }
            }
            Avoidance::Normal | Avoidance::MovingAside | Avoidance::Overtaking | Avoidance::EmergencyLand
                if speed_m_s < self.config.prediction.moving_m_s =>
            {
                locations.extend([here]);
            }
            Avoidance::MovingAside => match avoiding.and_then(|a| a.aside()) {
                Some(aside) => return predict::straight(&moving, aside, &self.config.prediction),
                None => locations.extend([here]),
            },
            Avoidance::Normal | Avoidance::Overtaking | Avoidance::EmergencyLand => {
                return self.track(&waypoints).ahead(&moving, &self.config.prediction);
            }
        }
        locations
    }

    fn moving(&self) -> Moving {
        let super::Motion { here, trail, acceleration, .. } = self.motion;
        let speed_m_s = self.flight.speed_m_s();
        Moving { at: here, speed_m_s, acceleration_m_s2: acceleration.m_s2(), trail }
    }

    fn velocity_m_s(&self) -> DVec2 {
        self.flight.telemetry().map_or(DVec2::ZERO, |telemetry| telemetry.velocity_m_s.truncate())
    }

    /// Sends a beacon; every few of them with a new prediction.
    pub(super) fn broadcast(&mut self, now: Instant, out: &mut Actions) {
        let state = self.flight.state();
        let Some(shown) = shown(state, self.flight.speed_m_s() < self.config.prediction.moving_m_s) else {
            return;
        };
        let (Some(local), true) = (&self.local, self.flight.is_armed() || self.is_ordered_up()) else {
            return;
        };
        // Others treat an aircraft that does not know where it is as they treat a silent one.
        if now.since(self.motion.measured_at) > REPORT_HOLDS {
            return;
        }
        let changed = self.config.renew_at_change && self.last_beacon.state != Some(shown);
        if changed || self.last_beacon.sent.is_multiple_of(self.config.beacons_per_prediction) {
            let locations = self.locations(state, local);
            let encode = |&at: &DVec3| {
                let Position { latitude_e7, longitude_e7, altitude_mm } = local.frame.to_position(at);
                Location { latitude_e7, longitude_e7, altitude_mm }
            };
            self.last_beacon = LastBeacon {
                encoded: locations.iter().map(encode).collect(),
                locations,
                measured_at: self.motion.measured_at,
                sent: 0,
                state: Some(shown),
                speed_m_s: self.flight.speed_m_s(),
            };
        }
        let landing = self.is_landing();
        let last = &mut self.last_beacon;
        last.sent += 1;
        last.state = Some(shown);
        let age_ms = now.since(last.measured_at).as_millis();
        // A location so old is refused by every receiver.
        if last.locations.is_empty() || age_ms > u128::from(AGE_MAX_MS) {
            return;
        }
        let beacon = Beacon {
            event: self.event,
            state: shown,
            landing,
            avoiding: flying(state).and_then(|a| a.conflict()).map(|c| c.peer),
            planned_speed_cm_s: cm_s(self.flight.planned_speed_m_s()),
            speed_cm_s: cm_s(last.speed_m_s),
            age_ms: age_ms as u16,
            locations: last.encoded.clone(),
        };
        push(out, Action::Broadcast { flight: 0, message: Message::Beacon(beacon) });
    }
}

/// Adds the waypoints of a route from one on, without those next to the straight line between their neighbours.
fn add_turns(turns: &mut Vec<DVec3, COURSE_MAX>, here: DVec3, route: &Way<'_>, first: usize) {
    let mut left_out: Vec<DVec3, LEFT_OUT_MAX> = Vec::new();
    let mut from = here;
    let mut last: Option<DVec3> = None;
    for at in (first..).map_while(|i| route.get(i)) {
        if let Some(before) = last.replace(at) {
            let is_straight = left_out.push(before).is_ok()
                && left_out.iter().all(|p| line_distance_m(*p, from, at) < STRAIGHT_M);
            if !is_straight {
                if turns.push(before).is_err() {
                    return;
                }
                from = before;
                left_out.clear();
            }
        }
    }
    if let Some(last) = last {
        let _ = turns.push(last);
    }
}

/// Returns the distance of a position from a straight line between two others, in metres.
fn line_distance_m(at: DVec3, from: DVec3, to: DVec3) -> f64 {
    let along = to - from;
    let share = (at - from).dot(along) / along.length_squared().max(f64::MIN_POSITIVE);
    at.distance(from + along * share.clamp(0.0, 1.0))
}

/// What others see of a state in the air. They know six states: an aircraft that holds or returns, by a command, after
/// a failure or in a pilot's hands, is an obstacle where it stands, as in StandStill, or on its way, as in Normal; one
/// that lands has a flag for that besides its state.
const fn shown(state: State, stands: bool) -> Option<Avoidance> {
    match state {
        State::Flying(avoiding) => Some(avoiding.shown()),
        State::TakingOff | State::Landing | State::Aborted(EndFlight::Land) => Some(Avoidance::Normal),
        State::Holding { .. } | State::Aborted(EndFlight::Hold | EndFlight::Return) => {
            Some(if stands { Avoidance::StandStill } else { Avoidance::Normal })
        }
        State::Start | State::Setup | State::SetupFinished | State::Finished => None,
    }
}

fn cm_s(speed_m_s: f64) -> u16 {
    libm::round(speed_m_s * 100.0).clamp(0.0, f64::from(u16::MAX)) as u16
}
