//! Separation monitor: distances to other aircraft, independent of the protocol. It commands nothing.
//!
//! Its inputs are our own position and velocity as the autopilot reports them, and the beacons of others. Between
//! reports every aircraft is taken to continue straight. It keeps the newest beacon of each neighbour, and of the
//! flight the least distance, minimal over the whole interval between two reports and not at its ends; it notifies
//! once per encounter when another will soon be too near, and once when it is nearer than a collision. In addition
//! to this three-dimensional measure it counts the published rule: a sample each half second, with a limit over
//! ground and one in height (thesis section 5.2 and its program).
//!
//! Bounded, without allocation: [`TRACKS_MAX`] neighbours; when more are received, the farthest is dropped.

#[cfg(test)]
mod tests;

use heapless::Vec;
use serde::{Deserialize, Serialize};
use wingbeat_geo::approach::{horizontal_and_vertical_m, nearest_between};
use wingbeat_geo::{Approach, DVec3, Duration, Instant, Position, Scale};
use wingbeat_protocol::{Severity, Text, text};
use wingbeat_wire::{Avoidance, Beacon, Location, Places, Refused, VehicleId};

/// Neighbours whose track is kept.
pub const TRACKS_MAX: usize = 128;
/// Farther than this the position of another is an error, metres.
const NEAR_ENOUGH_M: f64 = 100_000.0;
/// An aircraft farther away is not tracked: at 2 × 20 m/s it is 25 s away, metres.
const WATCHED_M: f64 = 1_000.0;
/// A position is extrapolated for so long, microseconds: a prediction lives 1 s, and 2 s of beacons may be lost (thesis
/// equation 5.4).
const TRUSTED_US: u64 = 3_000_000;
/// A neighbour silent for so long is dropped where another needs the room, and its encounter is over,
/// microseconds.
const FORGOTTEN_US: u64 = 10_000_000;
/// An encounter is over when the distance is this multiple of what alarmed.
const CLEAR: f64 = 2.0;
/// How far ahead the status predicts, seconds.
const OUTLOOK_S: f64 = 20.0;
/// Higher than this above or below home, an armed aircraft flies, metres.
const AIRBORNE_M: f64 = 1.0;
/// A faster climb in a beacon is refused, metres per second.
const CLIMB_MOST_M_S: f64 = 20.0;

/// Limits below which the monitor raises an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Another that is or will be nearer than this alarms, metres.
    pub alarm_distance_m: f64,
    /// How far ahead that counts, seconds.
    pub alarm_time_s: f64,
    /// Nearer than this is a collision, metres.
    pub collision_distance_m: f64,
    /// The published rule: between two samples.
    pub rule_period: Duration,
    /// The published rule: nearer than this over ground, metres,
    pub rule_horizontal_m: f64,
    /// and nearer than this in height, metres.
    pub rule_vertical_m: f64,
}

impl Default for Thresholds {
    /// Collision and rule as published. The alarm is below the 7.5 m that MBCAP-e keeps when two pass, and its
    /// time is shorter than that in which MBCAP stops for a risk.
    fn default() -> Self {
        Self {
            alarm_distance_m: 7.0,
            alarm_time_s: 3.0,
            collision_distance_m: 5.0,
            rule_period: Duration::from_millis(500),
            rule_horizontal_m: 5.0,
            rule_vertical_m: 20.0,
        }
    }
}

/// What the autopilot reports of ourselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Own {
    /// Own position.
    pub position: Position,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Height above home, metres.
    pub height_m: f64,
    /// Whether motors are armed.
    pub armed: bool,
}

/// How far away another is, or was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// The other aircraft.
    pub id: VehicleId,
    /// Distance, metres.
    pub distance_m: f64,
    /// Over ground, metres.
    pub horizontal_m: f64,
    /// In height, metres.
    pub vertical_m: f64,
}

impl Near {
    fn new(id: VehicleId, offset_m: DVec3) -> Self {
        let (horizontal_m, vertical_m) = horizontal_and_vertical_m(offset_m);
        Self { id, distance_m: offset_m.length(), horizontal_m, vertical_m }
    }
}

/// The closest approach that lies ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closing {
    /// The other aircraft.
    pub id: VehicleId,
    /// In how many seconds.
    pub time_s: f64,
    /// How near it will be if both keep their velocities, metres.
    pub distance_m: f64,
}

/// Figures of one flight: from leaving the ground to disarming.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// The nearest that any aircraft was.
    pub least: Option<Near>,
    /// Encounters that alarmed.
    pub alarms: u32,
    /// Encounters that were collisions.
    pub collisions: u32,
    /// Encounters that were collisions by the published rule.
    pub rule_collisions: u32,
}

/// What the monitor reports to the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The nearest aircraft now.
    pub nearest: Option<Near>,
    /// The aircraft with the closest approach within the next 20 s.
    pub closing: Option<Closing>,
    /// Figures of the flight, or of the last one.
    pub flight: Figures,
    /// Whether an encounter that alarmed is not over.
    pub alarmed: bool,
}

/// What is logged for the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// Another is or will be too near.
    Alarm {
        /// Distance and closest approach at this moment.
        now: Near,
        /// How near it will be.
        closing: Closing,
    },
    /// Another is or was nearer than a collision.
    Collision(Near),
    /// A flight is over.
    Landed(Figures),
}

impl Notice {
    /// Severity of its log entry.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Alarm { .. } => Severity::Warning,
            Self::Collision(_) => Severity::Error,
            Self::Landed(_) => Severity::Info,
        }
    }
    /// One line for the operator.
    pub fn text(&self) -> Text {
        match self {
            Self::Alarm {
                now: Near { id, distance_m, .. },
                closing: Closing { time_s, distance_m: least_m, .. },
            } => {
                text!("too near: {id} at {distance_m:.1} m, {least_m:.1} m in {time_s:.1} s")
            }
            Self::Collision(Near { id, distance_m, horizontal_m, vertical_m }) => text!(
                "collision distance: {id} at {distance_m:.1} m ({horizontal_m:.1} m over ground, {vertical_m:.1} m in height)"
            ),
            Self::Landed(Figures { least: None, .. }) => {
                text!("closest to no aircraft: no position received")
            }
            Self::Landed(Figures { least: Some(least), alarms, .. }) => {
                let Near { id, distance_m, horizontal_m, vertical_m } = least;
                text!(
                    "closest to {id}: {distance_m:.1} m ({horizontal_m:.1} m over ground, {vertical_m:.1} m in height), alarms: {alarms}"
                )
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Encounter {
    None,
    Alarmed,
    Collided,
}

/// The newest beacon of another aircraft.
#[derive(Clone, Debug)]
struct Track {
    id: VehicleId,
    received_at: Instant,
    /// How old the position was then.
    age_ms: u16,
    position: Position,
    /// In single precision, because there are many tracks: positions are whole millimetres.
    velocity_m_s: [f32; 3],
    /// Where it was from us at the last update of this flight, within [`WATCHED_M`].
    last_offset_m: Option<[f32; 3]>,
    encounter: Encounter,
    /// The published rule holds it for a collision that is not over.
    ruled: bool,
}

/// The monitor of one aircraft.
#[derive(Clone, Debug)]
pub struct Monitor {
    thresholds: Thresholds,
    own: Option<(Instant, Own, Scale)>,
    watched: Surroundings,
    concerned: Surroundings,
    airborne: bool,
    /// Highest id first.
    tracks: Vec<Track, TRACKS_MAX>,
    places: Places,
    flight: Figures,
    rule_at: Instant,
}

impl Monitor {
    /// One that has received no beacon.
    pub fn new(thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            own: None,
            watched: Surroundings::default(),
            concerned: Surroundings::default(),
            airborne: false,
            tracks: Vec::new(),
            places: Places::default(),
            flight: Figures::default(),
            rule_at: Instant::ZERO,
        }
    }

    /// Takes a beacon. The caller has dropped our own, and what is not newer than the last of its sender.
    ///
    /// # Errors
    /// It is too far away. A sender that cannot be kept for want of room is not refused: that is for the protocol to
    /// judge.
    pub fn on_beacon(
        &mut self,
        now: Instant,
        from: VehicleId,
        beacon: &Beacon,
        notify: &mut dyn FnMut(Notice),
    ) -> Result<(), Refused> {
        let first = beacon.locations.first().ok_or(Refused::Contradiction)?;
        let position = position(first);
        if self.own.is_some() && self.concerned.is_out(position) {
            return Err(Refused::FarAway);
        }
        let found = self.places.find(from, |i| self.tracks.get(i).is_some_and(|t| t.id == from));
        let i = match found {
            Some(i) => i,
            None => match self.make_room(now, from, position) {
                Some(i) => i,
                None => return Ok(()),
            },
        };
        // The interval before ends with the positions that held until now.
        self.settle(i, now, notify);
        let near = !self.watched.is_out(position);
        let track = &mut self.tracks[i];
        track.velocity_m_s = match &self.own {
            Some((.., scale)) if near => short(velocity(track, beacon, position, scale)),
            _ => [0.0; 3],
        };
        (track.received_at, track.age_ms) = (now, beacon.age_ms);
        track.position = position;
        self.begin_interval(i, now, notify);
        Ok(())
    }

    /// Takes a report of ourselves.
    pub fn on_own(&mut self, now: Instant, own: Own, notify: &mut dyn FnMut(Notice)) {
        let scale = Scale::at(own.position);
        self.watched = Surroundings::around(own.position, &scale, WATCHED_M);
        self.concerned = Surroundings::around(own.position, &scale, NEAR_ENOUGH_M);
        let was_airborne = self.airborne;
        self.airborne = own.armed && (was_airborne || own.height_m.abs() > AIRBORNE_M);
        if !self.airborne {
            if was_airborne {
                notify(Notice::Landed(self.flight));
                self.tracks.iter_mut().for_each(Track::part);
            }
            self.own = Some((now, own, scale));
            return;
        }
        if !was_airborne {
            (self.flight, self.rule_at) = (Figures::default(), now);
        }
        for i in 0..self.tracks.len() {
            self.settle(i, now, notify);
        }
        self.own = Some((now, own, scale));
        let rule = now >= self.rule_at;
        if rule {
            self.rule_at = now + self.thresholds.rule_period;
        }
        for i in 0..self.tracks.len() {
            self.begin_interval(i, now, notify);
            if rule && self.tracks[i].last_offset_m.is_some() {
                self.apply_rule(i);
            }
        }
    }

    /// Figures of this flight, or of the last.
    pub fn figures(&self) -> Figures {
        self.flight
    }

    /// The neighbours and alarms for the status.
    pub fn view(&self, now: Instant) -> View {
        let mut nearest: Option<(VehicleId, DVec3)> = None;
        let mut closing: Option<Closing> = None;
        for track in &self.tracks {
            let Some((offset_m, velocity_m_s)) = self.relative(track, now) else { continue };
            if nearest.is_none_or(|(_, least)| offset_m.length_squared() < least.length_squared()) {
                nearest = Some((track.id, offset_m));
            }
            if offset_m.length_squared() > WATCHED_M * WATCHED_M {
                continue;
            }
            let approach = Approach::within(offset_m, velocity_m_s, OUTLOOK_S);
            let found = Closing { id: track.id, time_s: approach.time_s, distance_m: approach.distance_m() };
            if closing.is_none_or(|least| found.distance_m < least.distance_m) {
                closing = Some(found);
            }
        }
        View {
            nearest: nearest.map(|(id, offset_m)| Near::new(id, offset_m)),
            closing,
            flight: self.flight,
            alarmed: self.tracks.iter().any(|t| t.encounter != Encounter::None),
        }
    }

    /// Where a new sender goes in the table; nothing where all others are fresh and nearer.
    fn make_room(&mut self, now: Instant, id: VehicleId, position: Position) -> Option<usize> {
        if self.tracks.is_full() {
            let distance = |at: Position| {
                self.own.map_or(0.0, |(_, own, scale)| scale.offset_m(own.position, at).length_squared())
            };
            let silent = self.tracks.iter().position(|t| elapsed_us(t.received_at, now) > FORGOTTEN_US);
            let farther = || {
                let farthest = (0..self.tracks.len())
                    .max_by(|&a, &b| {
                        distance(self.tracks[a].position).total_cmp(&distance(self.tracks[b].position))
                    })
                    .filter(|&i| self.tracks[i].encounter == Encounter::None)?;
                (distance(self.tracks[farthest].position) > distance(position)).then_some(farthest)
            };
            let goes = silent.or_else(farther)?;
            self.tracks.remove(goes);
        }
        let i = self.tracks.partition_point(|t| t.id > id);
        let track = Track {
            id,
            received_at: now,
            age_ms: 0,
            position,
            velocity_m_s: [0.0; 3],
            last_offset_m: None,
            encounter: Encounter::None,
            ruled: false,
        };
        self.tracks.insert(i, track).ok()?;
        self.places.learn(self.tracks.iter().map(|t| t.id));
        Some(i)
    }

    /// Where another is from us and how it moves as seen from us, as far as that can be known.
    fn relative(&self, track: &Track, now: Instant) -> Option<(DVec3, DVec3)> {
        let (own_at, own, scale) = self.own.as_ref()?;
        let (own_age_us, age_us) = (elapsed_us(*own_at, now), track.age_us(now));
        if own_age_us > TRUSTED_US || age_us > TRUSTED_US {
            return None;
        }
        let velocity_m_s = long(track.velocity_m_s);
        let offset_m = scale.offset_m(own.position, track.position) + velocity_m_s * (age_us as f64 * 1e-6)
            - own.velocity_m_s * (own_age_us as f64 * 1e-6);
        Some((offset_m, velocity_m_s - own.velocity_m_s))
    }

    /// Ends an interval in which both went straight.
    fn settle(&mut self, i: usize, now: Instant, notify: &mut dyn FnMut(Notice)) {
        let Some(before_m) = self.tracks[i].last_offset_m.filter(|_| self.airborne) else { return };
        match self.relative(&self.tracks[i], now) {
            Some((offset_m, _)) => self.note(i, nearest_between(long(before_m), offset_m), notify),
            // Its position is unknown: this interval is not judged.
            None => self.tracks[i].last_offset_m = None,
        }
    }

    /// Begins the next, with the positions that hold from now on, and predicts.
    fn begin_interval(&mut self, i: usize, now: Instant, notify: &mut dyn FnMut(Notice)) {
        if !self.airborne {
            return;
        }
        // Most are far away: that is cheap to see.
        let track = &mut self.tracks[i];
        if elapsed_us(track.received_at, now) > FORGOTTEN_US || self.watched.is_out(track.position) {
            track.part();
            return;
        }
        let Some((offset_m, velocity_m_s)) = self.relative(&self.tracks[i], now) else {
            self.tracks[i].last_offset_m = None;
            return;
        };
        if offset_m.length_squared() > WATCHED_M * WATCHED_M {
            self.tracks[i].part();
            return;
        }
        self.note(i, offset_m, notify);
        let Thresholds { alarm_distance_m, alarm_time_s, .. } = self.thresholds;
        let approach = Approach::within(offset_m, velocity_m_s, alarm_time_s);
        let (distance_m, id) = (approach.distance_m(), self.tracks[i].id);
        let track = &mut self.tracks[i];
        track.last_offset_m = Some(short(offset_m));
        if distance_m < alarm_distance_m {
            if track.encounter == Encounter::None {
                track.encounter = Encounter::Alarmed;
                self.flight.alarms += 1;
                let closing = Closing { id, time_s: approach.time_s, distance_m };
                notify(Notice::Alarm { now: Near::new(id, offset_m), closing });
            }
        } else if offset_m.length() > CLEAR * alarm_distance_m {
            track.encounter = Encounter::None;
        }
    }

    /// An aircraft was so near.
    fn note(&mut self, i: usize, offset_m: DVec3, notify: &mut dyn FnMut(Notice)) {
        let distance_m = offset_m.length();
        let track = &mut self.tracks[i];
        if self.flight.least.is_none_or(|least| distance_m < least.distance_m) {
            self.flight.least = Some(Near::new(track.id, offset_m));
        }
        if distance_m < self.thresholds.collision_distance_m && track.encounter < Encounter::Collided {
            if track.encounter == Encounter::None {
                self.flight.alarms += 1;
            }
            track.encounter = Encounter::Collided;
            self.flight.collisions += 1;
            notify(Notice::Collision(Near::new(track.id, offset_m)));
        }
    }

    /// The published rule, at its time.
    fn apply_rule(&mut self, i: usize) {
        let track = &mut self.tracks[i];
        let Some(offset_m) = track.last_offset_m.map(long) else { return };
        let (horizontal_m, vertical_m) = horizontal_and_vertical_m(offset_m);
        let Thresholds { rule_horizontal_m, rule_vertical_m, .. } = self.thresholds;
        let holds = horizontal_m < rule_horizontal_m && vertical_m < rule_vertical_m;
        self.flight.rule_collisions += u32::from(holds && !track.ruled);
        track.ruled = holds;
    }
}

/// Latitudes and longitudes around us, of which a circle is a part: what lies outside is quickly seen.
#[derive(Clone, Copy, Debug, Default)]
struct Surroundings {
    middle: Position,
    latitude_e7: u32,
    longitude_e7: u32,
}

impl Surroundings {
    fn around(middle: Position, scale: &Scale, radius_m: f64) -> Self {
        let step_m = scale.offset_m(
            Position::default(),
            Position { latitude_e7: 1_000, longitude_e7: 1_000, altitude_mm: 0 },
        );
        // At the poles every longitude is near; the conversion saturates.
        let steps = |m: f64| (radius_m * 1_000.0 / m) as u32;
        Self { middle, latitude_e7: steps(step_m.y), longitude_e7: steps(step_m.x) }
    }
    fn is_out(&self, place: Position) -> bool {
        const ROUND_E7: u32 = 3_600_000_000;
        let longitude_e7 = place.longitude_e7.abs_diff(self.middle.longitude_e7);
        place.latitude_e7.abs_diff(self.middle.latitude_e7) > self.latitude_e7
            || longitude_e7.min(ROUND_E7.saturating_sub(longitude_e7)) > self.longitude_e7
    }
}

impl Track {
    /// How old its position is.
    fn age_us(&self, now: Instant) -> u64 {
        elapsed_us(self.received_at, now) + u64::from(self.age_ms) * 1_000
    }

    /// It is no concern of ours any more.
    fn part(&mut self) {
        (self.last_offset_m, self.encounter, self.ruled) = (None, Encounter::None, false);
    }
}

/// Returns a vector of a track in single precision.
fn short(of: DVec3) -> [f32; 3] {
    of.as_vec3().to_array()
}

fn long(of: [f32; 3]) -> DVec3 {
    DVec3::from_array(of.map(f64::from))
}

/// Microseconds between two instants: whole numbers, because this is asked for each neighbour at each update.
fn elapsed_us(from: Instant, to: Instant) -> u64 {
    to.as_micros().saturating_sub(from.as_micros())
}

fn position(l: &Location) -> Position {
    Position { latitude_e7: l.latitude_e7, longitude_e7: l.longitude_e7, altitude_mm: l.altitude_mm }
}

/// The velocity of a beacon's sender: its speed, towards its next location. Where the locations are
/// not its way, or are only one, towards where it has come since its last beacon.
fn velocity(track: &Track, beacon: &Beacon, position: Position, scale: &Scale) -> DVec3 {
    let predicts_motion = !matches!(beacon.state, Avoidance::StandStill | Avoidance::GoOnPlease);
    let next = beacon.locations.get(1).filter(|_| predicts_motion).map(self::position);
    let way_m = match next {
        Some(next) => scale.offset_m(position, next),
        None if track.position == position => long(track.velocity_m_s),
        None => scale.offset_m(track.position, position),
    };
    let horizontal_m = way_m.truncate().length();
    if horizontal_m < 0.01 {
        return DVec3::ZERO;
    }
    let velocity = way_m * (f64::from(beacon.speed_cm_s) * 1e-2 / horizontal_m);
    DVec3 { z: velocity.z.clamp(-CLIMB_MOST_M_S, CLIMB_MOST_M_S), ..velocity }
}
