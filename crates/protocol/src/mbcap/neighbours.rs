//! The other aircraft in the air, by their last beacon: a bounded number, and of each a bounded number of beacons a
//! second.

use heapless::Vec;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{Avoidance, Beacon, COURSE_MAX, Course, Location, Places, Refused, VehicleId};

use super::kept::Kept;
use super::predict::Locations;
use super::risk;
use super::silent::{FORGOTTEN_AFTER, Obstacle, Path};

/// Aircraft that are known at a time; a further one is refused and counted. More of them would not fit the memory of an agent.
const NEIGHBOURS_MAX: usize = 110;
/// An aircraft that was further away when it was received last and receded has left the reach of the radio: it is received
/// again before it is near.
const RECEIVED_WITHIN_M: f32 = 500.0;
/// Whether an aircraft recedes shows after this time,
const RECEDES_OVER: Duration = Duration::from_secs(2);
/// and by this distance, metres.
const RECEDES_M: f32 = 2.0;
/// One that was further than [`RECEIVED_WITHIN_M`] and did not recede is an obstacle for this time: it reaches us at its planned
/// speed within a part of it, the lower of the two has landed then, and an aircraft that turned away is not one for longer.
const FAR_FOR: Duration = Duration::from_secs(240);
/// Beacons that arrived from this many times further away show that an aircraft has not left the
/// reach of the radio.
const REACHES_FURTHER: f32 = 1.5;
/// An aircraft is about to climb where its course begins so much higher than it is, in millimetres.
const CLIMBS_MM: i32 = 2_000;
/// A landing aircraft that was higher when it was received last has not landed, in metres above the
/// own ground.
const LANDED_BELOW_M: f64 = 5.0;
/// A landing aircraft whose beacons arrive is where they say; without one for this time it is not,
/// in seconds.
const UNRECEIVED_S: f64 = 2.0;
/// A landing aircraft coasts no further than this, in metres: a course that is longer leads home.
const COASTS_MOST_M: f64 = 40.0;
/// ArduCopter lands at least so fast (`LAND_SPEED`), in metres per second.
const LANDS_M_S: f64 = 0.5;
/// An aircraft that is faster flies on, in centimetres per second.
const FLIES_CM_S: u16 = 100;
/// Courses that are kept: of the nearest.
const COURSES_MAX: usize = 16;
/// An aircraft farther than this is no neighbour: its position is an error, metres.
const NEAR_ENOUGH_M: f64 = 100_000.0;
/// Beacons of one sender within [`STORM_WINDOW`]: four times what the protocol sends.
pub(super) const STORM_BEACONS: u16 = 20;
const STORM_WINDOW: Duration = Duration::from_secs(1);
/// A sender that sends more is barred for so long.
const BARRED_FOR: Duration = Duration::from_secs(10);

/// This aircraft, as a silent one knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    pub(super) me: VehicleId,
    /// Its ground in its local frame, metres.
    pub(super) ground_m: f64,
    /// The velocity of the air that it measures, metres per second east and north: an aircraft that
    /// lands without a position drifts with it.
    pub(super) air_m_s: DVec2,
    /// Since when its course leads where it leads now: along the mission, home, or down.
    pub(super) leads_since: Instant,
}

/// Another aircraft.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    pub(super) id: VehicleId,
    pub(super) beacon: Kept,
    /// Its first location in our frame.
    pub(super) at: DVec3,
    /// None of its locations is farther than this from the first, metres.
    reach_m: f64,
    /// How far it was from us when its last beacon came, metres.
    off_m: f32,
    /// When and at what distance it was received [`RECEDES_OVER`] ago, metres.
    earlier: (Instant, f32),
    /// Whether it was further away than that.
    recedes: bool,
    /// Whether it receded near the end of the radio's reach.
    is_leaving: bool,
    received_at: Instant,
    window_at: Instant,
    in_window: u16,
    barred_until: Option<Instant>,
}

impl Neighbour {
    /// Whether its last beacon still counts, and others of it are taken.
    pub(super) fn is_valid(&self, now: Instant, validity: Duration) -> bool {
        self.barred_until.is_none() && self.is_recent(now, validity)
    }

    /// Whether its last beacon still counts.
    pub(super) fn is_recent(&self, now: Instant, validity: Duration) -> bool {
        now.since(self.received_at) <= validity
    }

    /// Whether it was not received for so long, and may still be in the air.
    pub(super) fn is_silent(&self, now: Instant, after: Duration) -> bool {
        let silent = now.since(self.received_at);
        let forgotten_after = match self.off_m < RECEIVED_WITHIN_M {
            true => FORGOTTEN_AFTER,
            // Nearer than that the radio is dead, and the aircraft may come back.
            false if self.is_leaving => Duration::ZERO,
            false => FAR_FOR,
        };
        silent > after && silent < forgotten_after
    }

    pub(super) fn received_at(&self) -> Instant {
        self.received_at
    }

    /// Takes its distance from us, and the largest distance from which a beacon has come.
    fn is_off(&mut self, now: Instant, off_m: f32, reach_m: f32) {
        self.off_m = off_m;
        if now.since(self.earlier.0) >= RECEDES_OVER {
            self.recedes = off_m > self.earlier.1 + RECEDES_M;
            self.earlier = (now, off_m);
        }
        self.is_leaving = self.recedes && off_m * REACHES_FURTHER > reach_m;
    }

    /// Returns whether its distance grew in the last seconds.
    pub(super) fn recedes(&self) -> bool {
        self.recedes
    }

    /// Returns the end of its descent if it fell silent while it landed high above the ground: a
    /// dead radio lands it there, and without a position it drifts with the air. Returns nothing
    /// where it is down by now.
    fn descent(&self, silent_s: f64, receiver: Receiver) -> Option<DVec3> {
        let height_m = self.at.z - receiver.ground_m;
        let lasts_s = height_m / LANDS_M_S;
        let lands = height_m > LANDED_BELOW_M && (UNRECEIVED_S..lasts_s).contains(&silent_s);
        lands.then(|| self.at + (receiver.air_m_s * lasts_s).extend(0.0))
    }

    /// Where it may be now that it is silent, by its last course; nothing where it landed, or landed there at rest.
    fn obstacle(
        &self,
        now: Instant,
        frame: &Frame,
        known: Option<&KnownCourse>,
        receiver: Receiver,
    ) -> Option<Obstacle> {
        let mut path: Path = core::iter::once(self.at).collect();
        let stays_at;
        let silent_s = now.since(self.received_at).as_secs_f64() + f64::from(self.beacon.age_ms) * 1e-3;
        let lands = match known {
            Some(known) if known.course.lands && known.course.waypoints.is_empty() => {
                let end = self.descent(silent_s, receiver)?;
                let speed_m_s = receiver.air_m_s.length();
                let _ = path.push(end);
                // It follows no rule of the avoidance, and is down at the end of its path.
                return Some(Obstacle {
                    path,
                    speed_m_s,
                    lands: false,
                    stays_at: 0,
                    yields: false,
                    silent_s,
                });
            }
            Some(known) => {
                for waypoint in known.course.waypoints.iter() {
                    let _ = path.push(local(frame, waypoint));
                }
                stays_at = path.len() - 1;
                // It coasts, and drifts from there.
                if let ([from, to], true) = (path.as_slice(), known.course.lands)
                    && from.distance(*to) < COASTS_MOST_M
                    && let Some(end) = self.descent(silent_s, receiver)
                {
                    let end = *to + (end - self.at);
                    let _ = path.push(end);
                }
                // Standing or aside, its companion may continue the mission at any time.
                for waypoint in known.mission.iter().filter(|_| !known.course.lands) {
                    let _ = path.push(local(frame, waypoint));
                }
                // An aircraft in a pilot's hands has no course, and flies on.
                let flies = self.beacon.state == Avoidance::Normal
                    && self.beacon.avoiding.is_none()
                    && self.beacon.speed_cm_s >= FLIES_CM_S;
                if path.len() == 1 && (flies || self.beacon.state == Avoidance::StandStill) {
                    path.extend(self.locations(frame).into_iter().skip(1).take(path.capacity() - 1));
                }
                known.course.lands
            }
            None if self.beacon.landing => return None,
            // Of an aircraft whose course was never received its prediction is known.
            None => {
                path.extend(self.locations(frame).into_iter().skip(1).take(path.capacity() - 1));
                stays_at = if stands(self.beacon.state) { 0 } else { path.len() - 1 };
                false
            }
        };
        let speed_m_s = f64::from(self.beacon.planned_speed_cm_s.max(self.beacon.speed_cm_s)) * 1e-2;
        // A lower one keeps clear of the course that it received last.
        let yields = self.id < receiver.me && self.received_at >= receiver.leads_since;
        Some(Obstacle { path, speed_m_s, lands, stays_at, yields, silent_s })
    }

    /// Its locations in our frame. Of an aircraft that is far away they are not computed: ask
    /// [`Neighbour::is_within`] first.
    pub(super) fn locations(&self, frame: &Frame) -> Locations {
        self.beacon.locations().map(|l| local(frame, &l)).collect()
    }

    /// One of its locations in our frame.
    pub(super) fn location(&self, frame: &Frame, index: usize) -> Option<DVec3> {
        self.beacon.locations().nth(index).map(|l| local(frame, &l))
    }

    /// Whether any of its locations can be so near to `position`.
    pub(super) fn is_within(&self, distance_m: f64, position: DVec3) -> bool {
        self.at.truncate().distance(position.truncate()) <= self.reach_m + distance_m
    }

    /// Where it will be, as the risk sees it now.
    pub(super) fn trajectory<'a>(&self, now: Instant, locations: &'a Locations) -> risk::Trajectory<'a> {
        risk::Trajectory {
            locations,
            age_s: now.since(self.received_at).as_secs_f64() + f64::from(self.beacon.age_ms) * 1e-3,
            speed_m_s: f64::from(self.beacon.speed_cm_s) * 1e-2,
            is_normal: self.beacon.state == Avoidance::Normal,
            stands: stands(self.beacon.state),
        }
    }

    /// Counts one more beacon. False: too many.
    fn admits(&mut self, now: Instant) -> bool {
        if let Some(until) = self.barred_until {
            if now < until {
                return false;
            }
            self.barred_until = None;
            (self.window_at, self.in_window) = (now, 0);
        }
        if now.since(self.window_at) >= STORM_WINDOW {
            (self.window_at, self.in_window) = (now, 0);
        }
        self.in_window += 1;
        if self.in_window > STORM_BEACONS {
            self.barred_until = Some(now + BARRED_FOR);
            return false;
        }
        true
    }
}

fn local(frame: &Frame, l: &Location) -> DVec3 {
    frame.to_local(Position {
        latitude_e7: l.latitude_e7,
        longitude_e7: l.longitude_e7,
        altitude_mm: l.altitude_mm,
    })
}

/// At least the distance over ground, the short way round the earth, without trigonometry: 1e-7 degree is
/// 11.17 mm at most.
fn distance_bound_m(a: &Location, b: &Location) -> f64 {
    const MOST_M: f64 = 0.011_17;
    const ROUND_E7: u32 = 3_600_000_000;
    let latitude_e7 = a.latitude_e7.abs_diff(b.latitude_e7);
    let longitude_e7 = a.longitude_e7.abs_diff(b.longitude_e7);
    let longitude_e7 = longitude_e7.min(ROUND_E7.saturating_sub(longitude_e7));
    (f64::from(latitude_e7) + f64::from(longitude_e7)) * MOST_M
}

/// Where an aircraft flies if it falls silent.
struct KnownCourse {
    id: VehicleId,
    course: Course,
    /// The waypoints of its mission that it leaves where it stands or moves aside; empty while it flies them.
    mission: Vec<Location, COURSE_MAX>,
}

/// Whether an aircraft in that state stands, so that its further locations are those of its mission.
const fn stands(state: Avoidance) -> bool {
    matches!(state, Avoidance::GoOnPlease | Avoidance::StandStill)
}

/// All of them, highest id first.
#[derive(Default)]
pub(super) struct Neighbours {
    known: Vec<Neighbour, NEIGHBOURS_MAX>,
    courses: Vec<KnownCourse, COURSES_MAX>,
    places: Places,
    /// The largest distance from which a beacon has come, metres.
    reach_m: f32,
}

impl Neighbours {
    /// Takes a beacon. `spared` does not make room for another sender, however long it has been silent.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        id: VehicleId,
        beacon: &Beacon,
        frame: &Frame,
        here: DVec3,
        spared: Option<VehicleId>,
    ) -> Result<(), Refused> {
        let found = self.find(id);
        if let Some(i) = found
            && !self.known[i].admits(now)
        {
            return Err(Refused::Storm);
        }
        let first = beacon.locations.first().ok_or(Refused::Contradiction)?;
        let at = local(frame, first);
        if at.truncate().length() > NEAR_ENOUGH_M {
            return Err(Refused::FarAway);
        }
        let off_m = at.distance(here) as f32;
        self.reach_m = self.reach_m.max(off_m);
        let reach_m = beacon.locations.iter().map(|l| distance_bound_m(first, l)).fold(0.0, f64::max);
        match found {
            Some(i) => {
                let known = &mut self.known[i];
                known.beacon.replace(beacon)?;
                (known.at, known.reach_m, known.received_at) = (at, reach_m, now);
                known.is_off(now, off_m, self.reach_m);
            }
            None => {
                let mut kept = Kept::default();
                kept.replace(beacon)?;
                if self.known.is_full() {
                    // The one that was silent longest makes room; one that is received stays.
                    let oldest = (0..self.known.len())
                        .filter(|&i| Some(self.known[i].id) != spared)
                        .min_by_key(|&i| self.known[i].received_at);
                    match oldest.filter(|&i| now.since(self.known[i].received_at) > STORM_WINDOW) {
                        Some(i) => drop(self.known.remove(i)),
                        None => return Err(Refused::NoRoom),
                    }
                }
                let i = self.known.partition_point(|other| other.id > id);
                let neighbour = Neighbour {
                    id,
                    beacon: kept,
                    at,
                    reach_m,
                    off_m,
                    earlier: (now, off_m),
                    recedes: false,
                    is_leaving: false,
                    received_at: now,
                    window_at: now,
                    in_window: 1,
                    barred_until: None,
                };
                // There is room: see above.
                let _ = self.known.insert(i, neighbour);
                self.places.learn(self.known.iter().map(|n| n.id));
            }
        }
        Ok(())
    }

    /// Takes a course, of a sender whose beacons are received. Of more than there is room for those of the nearest are kept.
    pub(super) fn receive_course(&mut self, id: VehicleId, course: &Course, here: DVec3) {
        let Some(state) = self.find(id).map(|i| self.known[i].beacon.state) else { return };
        let leaves_mission = course.waypoints.is_empty() || state == Avoidance::MovingAside;
        let mut new = KnownCourse { id, course: course.clone(), mission: Vec::new() };
        if let Some(known) = self.courses.iter_mut().find(|known| known.id == id) {
            if leaves_mission && !course.lands {
                new.mission = match known.mission.is_empty() && !known.course.lands {
                    true => known.course.waypoints.clone(),
                    false => known.mission.clone(),
                };
            }
            *known = new;
            return;
        }
        if self.courses.is_full() {
            let off_m = |id| self.get(id).map_or(f64::INFINITY, |n| n.at.distance(here));
            let by_distance =
                |&a: &usize, &b: &usize| off_m(self.courses[a].id).total_cmp(&off_m(self.courses[b].id));
            let farthest = (0..self.courses.len()).max_by(by_distance);
            let Some(i) = farthest.filter(|&i| off_m(self.courses[i].id) > off_m(id)) else { return };
            self.courses.swap_remove(i);
        }
        // There is room: see above.
        let _ = self.courses.push(new);
    }

    /// Where aircraft may be that were not received for so long, by their ids.
    pub(super) fn obstacles<'a>(
        &'a self,
        now: Instant,
        after: Duration,
        frame: Option<&'a Frame>,
        receiver: Receiver,
    ) -> impl Iterator<Item = (VehicleId, Obstacle)> + 'a {
        let silent = self.by_priority().filter(move |n| n.is_silent(now, after));
        silent.filter_map(move |n| Some((n.id, self.way_of(now, n, frame?, receiver)?)))
    }

    /// Where it may fly from its last position on; nothing where it landed.
    pub(super) fn way_of(
        &self,
        now: Instant,
        neighbour: &Neighbour,
        frame: &Frame,
        receiver: Receiver,
    ) -> Option<Obstacle> {
        neighbour.obstacle(now, frame, self.course_of(neighbour), receiver)
    }

    /// Returns whether an aircraft on the ground is about to climb by its course.
    pub(super) fn is_about_to_climb(&self, neighbour: &Neighbour) -> bool {
        let first = self.course_of(neighbour).filter(|known| !known.course.lands);
        let first = first.and_then(|known| known.course.waypoints.first());
        let here = neighbour.beacon.locations().next();
        let rises =
            |(to, from): (&Location, Location)| to.altitude_mm > from.altitude_mm.saturating_add(CLIMBS_MM);
        neighbour.beacon.speed_cm_s < FLIES_CM_S && first.zip(here).is_some_and(rises)
    }

    /// Returns whether no protocol flies an aircraft: its flight controller has no course of ours,
    /// and it names no conflict. A pilot has it, or its operator holds it.
    pub(super) fn is_anothers(&self, neighbour: &Neighbour) -> bool {
        let has_no_course = self
            .course_of(neighbour)
            .is_some_and(|known| !known.course.lands && known.course.waypoints.is_empty());
        has_no_course && neighbour.beacon.avoiding.is_none() && !neighbour.beacon.landing
    }

    /// Where it goes no farther: at the end of its course, where that is known.
    pub(super) fn end_of(&self, neighbour: &Neighbour, frame: &Frame) -> DVec3 {
        let end = self.course_of(neighbour).and_then(|known| known.course.waypoints.last());
        end.map_or(neighbour.at, |end| local(frame, end))
    }

    fn course_of(&self, neighbour: &Neighbour) -> Option<&KnownCourse> {
        self.courses.iter().find(|known| known.id == neighbour.id)
    }

    fn find(&self, id: VehicleId) -> Option<usize> {
        self.places.find(id, |i| self.known.get(i).is_some_and(|n| n.id == id))
    }

    pub(super) fn get(&self, id: VehicleId) -> Option<&Neighbour> {
        self.find(id).map(|i| &self.known[i])
    }

    /// Highest right of way first.
    pub(super) fn by_priority(&self) -> impl Iterator<Item = &Neighbour> {
        self.known.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

    fn beacon() -> Beacon {
        let at = Location { latitude_e7: HERE.latitude_e7, longitude_e7: HERE.longitude_e7, altitude_mm: 0 };
        Beacon { locations: core::iter::once(at).collect(), ..Beacon::default() }
    }

    #[test]
    fn mbcap_09_a_storm_bars_its_sender_and_no_other() {
        let (frame, mut known) = (Frame::new(HERE), Neighbours::default());
        let mut refused = 0;
        for i in 0..2_000 {
            let now = Instant::from_micros(i * 500);
            refused += u32::from(
                known.receive(now, VehicleId(7), &beacon(), &frame, DVec3::ZERO, None) == Err(Refused::Storm),
            );
            if i % 400 == 0 {
                assert_eq!(known.receive(now, VehicleId(8), &beacon(), &frame, DVec3::ZERO, None), Ok(()));
            }
        }
        assert_eq!(refused, 1_980);
        let later = Instant::from_secs(2);
        let validity = Duration::from_secs(10);
        assert!(!known.get(VehicleId(7)).unwrap().is_valid(later, validity));
        assert!(known.get(VehicleId(8)).unwrap().is_valid(later, validity));
        assert_eq!(
            known.receive(Instant::from_secs(12), VehicleId(7), &beacon(), &frame, DVec3::ZERO, None),
            Ok(())
        );
    }

    #[test]
    fn the_date_line_is_no_distance() {
        let at = |longitude_e7| Location { latitude_e7: 0, longitude_e7, altitude_mm: 0 };
        let (west, east) = (at(1_799_999_000), at(-1_799_999_000));
        assert!((distance_bound_m(&west, &east) - 22.34).abs() < 1e-9);
        let across = Beacon { locations: [west, east].into_iter().collect(), ..beacon() };
        let frame = Frame::new(Position { latitude_e7: 0, longitude_e7: 1_799_999_500, altitude_mm: 0 });
        let mut known = Neighbours::default();
        assert_eq!(known.receive(Instant::ZERO, VehicleId(1), &across, &frame, DVec3::ZERO, None), Ok(()));
        let other = known.get(VehicleId(1)).unwrap();
        assert!(!other.is_within(20.0, DVec3::new(500.0, 0.0, 0.0)));
    }

    #[test]
    fn mbcap_09_a_position_far_away_is_refused_and_a_full_table_forgets_the_silent() {
        let (frame, mut known) = (Frame::new(HERE), Neighbours::default());
        let mut far = beacon();
        far.locations[0].latitude_e7 += 90_000_000; // 1000 km
        assert_eq!(
            known.receive(Instant::ZERO, VehicleId(1), &far, &frame, DVec3::ZERO, None),
            Err(Refused::FarAway)
        );
        for id in 0..NEIGHBOURS_MAX as u64 {
            assert_eq!(
                known.receive(Instant::from_millis(id), VehicleId(id), &beacon(), &frame, DVec3::ZERO, None),
                Ok(())
            );
        }
        let new = VehicleId(500);
        assert_eq!(
            known.receive(Instant::from_millis(900), new, &beacon(), &frame, DVec3::ZERO, None),
            Err(Refused::NoRoom)
        );
        assert_eq!(
            known.receive(Instant::from_millis(1_200), new, &beacon(), &frame, DVec3::ZERO, None),
            Ok(())
        );
        assert!(known.get(VehicleId(0)).is_none() && known.get(VehicleId(1)).is_some());
        assert!(known.by_priority().is_sorted_by_key(|n| core::cmp::Reverse(n.id)));
    }
}
