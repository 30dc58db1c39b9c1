//! The members as traffic: where each is, how it moves, how far it has come, and how it leaves.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_wire::{Ending, Point, SWARM_MAX};

use super::super::geometry::Geometry;
use crate::STOPS_WITHIN;

/// Two positions nearer than this give no speed, metres,
const MOVED_M: f64 = 0.3;

/// unless they were reported at least this long apart, seconds.
const REPORTS_APART_S: f64 = 0.1;

/// No aircraft is faster, metres per second.
const FASTEST_M_S: f64 = 25.0;

/// No aircraft flies lower, millimetre.
const STANDS_MM: i32 = 1_000;

/// Positions reported this far apart give no speed, seconds.
pub(crate) const STALE_S: f64 = 1.5;

/// The longest time in which a member that holds stops, in seconds.
const STOPS_WITHIN_S: f64 = 6.0;

/// The least deceleration of a member that holds, in m/s²: a slow one stops sooner.
const HOLDS_BRAKING_M_S2: f64 = 1.25;

/// The speed, in m/s, from which on a member swings back when it has stopped.
const SWINGS_BACK_M_S: f64 = 5.0;

/// The time in which two reports show the speed of a member after it left, in seconds.
const REPORTED_WITHIN_S: f64 = 1.5;

/// A member that reports its position for longer, and not that nothing steers it, is steered again.
const STEERED_AFTER: Duration = Duration::from_millis(1_500);

/// What is known of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// The last reported position that gave a speed.
    pub(super) position: Option<Point>,
    pub(super) velocity_m_s: DVec3,
    /// When that was reported.
    pub(super) sampled_at: Instant,
    /// When it last reported any position.
    pub(super) reported_at: Instant,
    /// When it last reported a position under way, and how fast it was.
    moved: (Instant, DVec3),
    /// It reports its position no more: it does not know it, or is not received.
    pub(super) is_silent: bool,
    /// When it last reported that it holds on its leg.
    pub(super) holding_at: Option<Instant>,
    /// Where it stood before it took off.
    pub(super) home: Option<Point>,
    /// It leaves the flight: from where, and how.
    pub(super) departure: Option<(Point, Ending)>,
    /// The time by which it has stopped if it left to hold: it brakes from its speed at that first report.
    stops_at: Instant,
    /// Its velocity when it first reported that, in m/s east and north.
    left_m_s: [f32; 2],
    /// The last waypoint that it is known to have left for.
    pub(super) departed_for: Option<u16>,
    /// The last waypoint that it is known to have reached.
    pub(super) reached: Option<u16>,
    /// It reported that nothing steers it.
    adrift: Option<Adrift>,
}

/// A member that reported that nothing steers it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Adrift {
    /// Its last known position.
    pub(super) at: Point,
    /// The time of its first such report.
    pub(super) began_at: Instant,
    /// When it reported another position before that one last.
    pub(super) since: Instant,
    pub(super) received_at: Instant,
}

/// The wind that carries an aircraft that nothing steers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Air {
    /// Velocity of the air, in metres per second east and north, where it is measured.
    pub(crate) known_m_s: Option<DVec2>,
    /// The mean wind as stated, in metres per second, from anywhere.
    pub(crate) most_m_s: f64,
}

impl Track {
    /// Its last report that nothing steers it, unless it reported its position alone since.
    pub(super) fn adrift(&self) -> Option<Adrift> {
        self.adrift.filter(|adrift| self.reported_at <= adrift.received_at + STEERED_AFTER)
    }

    /// Returns whether a member that left to hold may still brake. One that was slow and now moves
    /// backwards does not: a fast one swings back.
    pub(super) fn may_brake(&self, now: Instant) -> bool {
        let left_m_s = DVec2::from_array(self.left_m_s.map(f64::from));
        let moves_back = left_m_s.dot(self.velocity_m_s.truncate()) < 0.0;
        now < self.stops_at && !(moves_back && left_m_s.length() < SWINGS_BACK_M_S)
    }

    /// How fast it may have been when it fell silent. The last position that it knew is reported for a while, and standing still
    /// takes as long.
    pub(super) fn moves_m_s(&self) -> DVec3 {
        let (moved_at, velocity_m_s) = self.moved;
        let is_under_way = self.is_silent && self.reported_at.since(moved_at) <= STOPS_WITHIN;
        if is_under_way { velocity_m_s } else { DVec3::ZERO }
    }
}

/// The tracks of all members, by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    tracks: Vec<Track, SWARM_MAX>,
    air: Air,
}

impl Traffic {
    /// Of the members of a plan that was just adopted nothing is known.
    pub(crate) fn begin(&mut self, now: Instant, count: usize) {
        let unknown = Track {
            position: None,
            velocity_m_s: DVec3::ZERO,
            sampled_at: now,
            reported_at: now,
            moved: (now, DVec3::ZERO),
            is_silent: false,
            holding_at: None,
            home: None,
            departure: None,
            stops_at: now,
            left_m_s: [0.0; 2],
            departed_for: None,
            reached: None,
            adrift: None,
        };
        self.tracks = core::iter::repeat_n(unknown, count).collect();
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Track> {
        self.tracks.get(slot)
    }

    pub(super) fn track(&self, slot: usize) -> &Track {
        &self.tracks[slot]
    }

    /// Where a member stood first.
    pub(crate) fn home(&self, slot: usize) -> Option<Point> {
        self.tracks.get(slot).and_then(|track| track.home)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Track> {
        self.tracks.iter()
    }

    /// A member reports its position.
    pub(crate) fn report(&mut self, now: Instant, slot: usize, position: Point, geometry: &Geometry) {
        let track = &mut self.tracks[slot];
        (track.reported_at, track.is_silent) = (now, false);
        let past_s = now.since(track.sampled_at).as_secs_f64();
        let moved_m = track.position.map_or(DVec3::ZERO, |before| geometry.offset_m(before, position));
        if moved_m.length() >= MOVED_M || past_s >= REPORTS_APART_S {
            track.velocity_m_s = if past_s < STALE_S { moved_m / past_s.max(0.05) } else { DVec3::ZERO };
            (track.position, track.sampled_at) = (Some(position), now);
            // After a gap the speed is that of the whole gap; and where it will land is no position of one that flies there.
            let velocity_m_s = moved_m / past_s.max(0.05);
            if moved_m.length() >= MOVED_M && velocity_m_s.length() <= FASTEST_M_S {
                track.moved = (now, velocity_m_s);
            }
        }
    }

    /// A member reports that it is not steered, and where it was last.
    pub(crate) fn report_adrift(&mut self, now: Instant, slot: usize, at: Point) {
        let Some(track) = self.tracks.get_mut(slot) else { return };
        let before = track.adrift();
        let began_at = before.map_or(now, |adrift| adrift.began_at);
        let since = track.adrift.filter(|adrift| adrift.at == at).map_or(now, |adrift| adrift.since);
        track.adrift = Some(Adrift { at, began_at, since, received_at: now });
    }

    /// Takes the wind.
    pub(crate) fn set_air(&mut self, air: Air) {
        self.air = air;
    }

    pub(super) fn air(&self) -> Air {
        self.air
    }

    /// Notes which members report their positions no more. Each time that messages are due.
    pub(crate) fn watch(&mut self, now: Instant, silence: Duration) {
        for track in &mut self.tracks {
            track.is_silent = now >= track.reported_at + silence;
        }
    }

    /// A member reports a position that may be where it stands: the first such is its home.
    pub(crate) fn report_home(&mut self, slot: usize, position: Point) {
        let track = &mut self.tracks[slot];
        if position.height_mm < STANDS_MM && track.reached.is_none() {
            track.home = track.home.or(Some(position));
        }
    }

    /// A member reports that it holds on its leg.
    pub(crate) fn report_holding(&mut self, now: Instant, slot: usize) {
        self.tracks[slot].holding_at = Some(now);
    }

    /// A member begins to land, and is silent once it is down.
    pub(crate) fn report_landing(&mut self, now: Instant, slot: usize) {
        self.tracks[slot].reported_at = now;
    }

    /// A member leaves the flight.
    pub(crate) fn report_departure(&mut self, slot: usize, from: Point, how: Ending) {
        let track = &mut self.tracks[slot];
        if track.departure.is_none_or(|(_, before)| before != how) {
            let brakes_s = track.velocity_m_s.length() / HOLDS_BRAKING_M_S2;
            let within_s = (REPORTED_WITHIN_S + brakes_s).min(STOPS_WITHIN_S);
            track.stops_at = track.reported_at + Duration::from_millis((within_s * 1e3) as u64);
            track.left_m_s = track.velocity_m_s.truncate().to_array().map(|m_s| m_s as f32);
        }
        track.departure = Some((from, how));
    }

    /// A member has reached a waypoint, and left for another.
    pub(crate) fn report_progress(&mut self, slot: usize, reached: Option<u16>, departed_for: Option<u16>) {
        let track = &mut self.tracks[slot];
        track.reached = track.reached.max(reached);
        track.departed_for = track.departed_for.max(departed_for);
    }

    /// The last waypoint that a member is known to have reached.
    pub(crate) fn reached(&self, slot: usize) -> Option<u16> {
        self.tracks.get(slot).and_then(|track| track.reached)
    }

    /// The waypoint for which a member is known to have left last.
    pub(crate) fn departed_for(&self, slot: usize) -> Option<u16> {
        self.tracks.get(slot).and_then(|track| track.departed_for)
    }

    /// Whether a member has left for a waypoint that it is not known to have reached.
    pub(crate) fn is_under_way(&self, slot: usize) -> bool {
        self.tracks.get(slot).is_some_and(|track| track.departed_for > track.reached)
    }

    /// When a member reported its position last, or began to land.
    pub(crate) fn reported_at(&self, slot: usize) -> Instant {
        self.tracks[slot].reported_at
    }

    /// How a member leaves the flight, once it reported that.
    pub(crate) fn ending(&self, slot: usize) -> Option<Ending> {
        self.tracks.get(slot).and_then(|track| track.departure).map(|(_, how)| how)
    }
}

#[cfg(test)]
impl Traffic {
    /// Everything that decides what follows, for [`Swarm::fingerprint`](super::super::Swarm::fingerprint).
    pub(crate) fn fingerprint(
        &self,
        ages: &super::super::table::fingerprint::Ages,
        state: &mut impl core::hash::Hasher,
    ) {
        use super::super::table::fingerprint::coordinates;
        use core::hash::Hash as _;
        for track in &self.tracks {
            (track.position.map(coordinates), track.home.map(coordinates)).hash(state);
            track.velocity_m_s.to_array().map(f64::to_bits).hash(state);
            (ages.of(track.sampled_at), ages.of(track.reported_at)).hash(state);
            (ages.of(track.moved.0), track.moved.1.to_array().map(f64::to_bits)).hash(state);
            (track.is_silent, track.holding_at.map(|at| ages.of(at))).hash(state);
            track.departure.map(|(at, how)| (coordinates(at), how as u8)).hash(state);
            (track.departed_for, track.reached).hash(state);
            track.adrift.map(|adrift| (coordinates(adrift.at), ages.of(adrift.since))).hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::plan::Plan;

    fn at(north_mm: i32, height_mm: i32) -> Point {
        // 1e-7 degree of latitude is 11.1 mm.
        Point { latitude_e7: north_mm / 11, longitude_e7: 0, height_mm }
    }

    fn reported(reports: &[(u64, Point)]) -> Track {
        let mut traffic = Traffic::default();
        traffic.begin(Instant::ZERO, 1);
        let geometry = Geometry::of(&Plan::default());
        for &(at_ms, position) in reports {
            traffic.report(Instant::from_millis(at_ms), 0, position, &geometry);
        }
        traffic.tracks[0]
    }

    #[test]
    fn muscop_17_speed_is_taken_from_two_positions_that_are_far_enough_apart() {
        let track = reported(&[(1_000, at(0, 0)), (1_200, at(2_000, 0))]);
        assert!((track.velocity_m_s.y - 10.0).abs() < 0.3, "{}", track.velocity_m_s);
        // The same position again, at the same time, as a second copy of the datagram has it.
        let track = reported(&[(1_000, at(0, 0)), (1_200, at(2_000, 0)), (1_201, at(2_000, 0))]);
        assert!((track.velocity_m_s.y - 10.0).abs() < 0.3, "{}", track.velocity_m_s);
        assert_eq!(
            (track.sampled_at, track.reported_at),
            (Instant::from_millis(1_200), Instant::from_millis(1_201))
        );
        // After a gap no speed is known.
        let track = reported(&[(1_000, at(0, 0)), (2_600, at(16_000, 0))]);
        assert_eq!(track.velocity_m_s, DVec3::ZERO);
    }

    #[test]
    fn muscop_20_the_home_is_where_a_member_stood_first() {
        let mut traffic = Traffic::default();
        traffic.begin(Instant::ZERO, 2);
        traffic.report_home(0, at(0, 900));
        traffic.report_home(0, at(9_000, 0));
        assert_eq!(traffic.track(0).home, Some(at(0, 900)));
        traffic.report_home(1, at(0, 1_000));
        traffic.report_progress(1, Some(0), None);
        traffic.report_home(1, at(0, 0));
        assert_eq!(traffic.track(1).home, None, "in flight no position is one");
    }

    #[test]
    fn muscop_25_progress_is_never_taken_back() {
        let mut traffic = Traffic::default();
        traffic.begin(Instant::ZERO, 1);
        traffic.report_progress(0, Some(2), Some(3));
        traffic.report_progress(0, Some(1), None);
        assert_eq!((traffic.reached(0), traffic.track(0).departed_for), (Some(2), Some(3)));
    }
}
