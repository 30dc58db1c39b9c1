//! Two and more aircraft on straight lines, with explicit times.

extern crate std;
use super::*;
use std::vec::Vec as StdVec;
use wingbeat_geo::Frame;

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const OTHER: VehicleId = VehicleId(7);

/// A place, metres east, north and up of home.
fn place(at: DVec3) -> Position {
    Frame::new(HOME).to_position(at)
}

fn own(at: DVec3, velocity_m_s: DVec3) -> Own {
    Own { position: place(at), velocity_m_s, height_m: at.z, armed: true }
}

/// The beacon of an aircraft there, `age_ms` after it was there.
fn beacon(at: DVec3, velocity_m_s: DVec3, age_ms: u16) -> Beacon {
    let location = |at: DVec3| {
        let p = place(at);
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: p.altitude_mm }
    };
    Beacon {
        age_ms,
        speed_cm_s: (velocity_m_s.truncate().length() * 100.0) as u16,
        locations: [location(at), location(at + velocity_m_s * 0.5)].into_iter().collect(),
        ..Beacon::default()
    }
}

/// A monitor and its notices.
struct Bench {
    monitor: Monitor,
    notices: StdVec<Notice>,
}

impl Bench {
    fn new() -> Self {
        Self { monitor: Monitor::new(Thresholds::default()), notices: StdVec::new() }
    }
    fn own_at(&mut self, ms: u64, own: Own) {
        self.monitor.on_own(Instant::from_millis(ms), own, &mut |n| self.notices.push(n));
    }
    fn beacon_at(&mut self, ms: u64, id: VehicleId, beacon: &Beacon) -> Result<(), Refused> {
        self.monitor.on_beacon(Instant::from_millis(ms), id, beacon, &mut |n| self.notices.push(n))
    }
    fn view(&self, ms: u64) -> View {
        self.monitor.view(Instant::from_millis(ms))
    }
}

const UP: DVec3 = DVec3::new(0.0, 0.0, 20.0);

/// We fly east at 10 m/s from home; the other comes towards us, abeam of our line and above it. Our position is
/// reported each 250 ms, its beacons come each 200 ms with a new prediction each second.
fn meet(beside_m: f64, above_m: f64) -> Bench {
    let mut bench = Bench::new();
    let (east, west) = (DVec3::new(10.0, 0.0, 0.0), DVec3::new(-10.0, 0.0, 0.0));
    let start = DVec3::new(203.0, beside_m, 20.0 + above_m);
    for ms in (0..20_000).step_by(50) {
        if ms % 250 == 0 {
            bench.own_at(ms, own(UP + east * (ms as f64 / 1e3), east));
        }
        if ms % 200 == 0 {
            let measured_ms = ms / 1000 * 1000;
            let b = beacon(start + west * (measured_ms as f64 / 1e3), west, (ms - measured_ms) as u16);
            assert_eq!(bench.beacon_at(ms, OTHER, &b), Ok(()));
        }
    }
    bench
}

#[test]
fn mbcap_12_the_least_distance_lies_within_an_interval_and_not_at_its_ends() {
    // They pass at 10.15 s, when nothing is reported; 100 ms before they are 2 m farther apart along the line.
    let bench = meet(3.0, 0.0);
    let figures = bench.monitor.figures();
    let least = figures.least.unwrap();
    assert_eq!(least.id, OTHER);
    assert!((least.distance_m - 3.0).abs() < 0.03, "{least:?}");
    assert_eq!((figures.alarms, figures.collisions), (1, 1));
    // The published rule sampled at 10.0 s (3 m along, 3 m abeam): 4.2 m.
    assert_eq!(figures.rule_collisions, 1);
    let kinds: StdVec<_> = bench.notices.iter().map(Notice::severity).collect();
    assert_eq!(kinds, [Severity::Warning, Severity::Error], "{:?}", bench.notices);
    let Notice::Alarm { now, closing } = bench.notices[0] else { panic!("{:?}", bench.notices) };
    // Within 3 s they come nearer than 7 m when they are 66.3 m apart at a closing speed of 20 m/s.
    assert!((60.0..67.0).contains(&now.distance_m) && closing.distance_m < 7.0, "{now:?} {closing:?}");
}

#[test]
fn mbcap_12_horizontal_and_vertical_distance_stand_apart() {
    // 12 m above us: the distance is 12.4 m, no alarm; the published rule calls it a collision.
    let bench = meet(3.0, 12.0);
    let figures = bench.monitor.figures();
    let least = figures.least.unwrap();
    assert!((least.distance_m - 12.37).abs() < 0.03, "{least:?}");
    assert!((least.horizontal_m - 3.0).abs() < 0.03 && (least.vertical_m - 12.0).abs() < 0.01, "{least:?}");
    assert_eq!((figures.alarms, figures.collisions, figures.rule_collisions), (0, 0, 1));
    assert!(bench.notices.is_empty(), "{:?}", bench.notices);
}

#[test]
fn mbcap_12_the_status_shows_the_nearest_and_the_closest_approach() {
    let mut bench = Bench::new();
    let east = DVec3::new(10.0, 0.0, 0.0);
    bench.own_at(0, own(UP, east));
    // One stands near us; one approaches.
    bench.beacon_at(0, VehicleId(1), &beacon(UP + DVec3::new(0.0, 40.0, 0.0), DVec3::ZERO, 0)).unwrap();
    bench.beacon_at(0, VehicleId(2), &beacon(UP + DVec3::new(100.0, 8.0, 0.0), -east, 0)).unwrap();
    let view = bench.view(1_000);
    let nearest = view.nearest.unwrap();
    assert_eq!(nearest.id, VehicleId(1));
    assert!((nearest.distance_m - 41.23).abs() < 0.05, "dead-reckoned for a second: {nearest:?}");
    let closing = view.closing.unwrap();
    assert_eq!(closing.id, VehicleId(2));
    assert!((closing.time_s - 4.0).abs() < 0.02 && (closing.distance_m - 8.0).abs() < 0.02, "{closing:?}");
    // The position of a silent aircraft is not extrapolated for ever.
    bench.own_at(4_000, own(UP, east));
    let view = bench.view(4_000);
    assert_eq!((view.nearest, view.closing), (None, None));
}

#[test]
fn mbcap_12_an_encounter_is_notified_once_and_a_second_one_again() {
    let mut bench = Bench::new();
    let still = own(UP, DVec3::ZERO);
    let mut alarms = StdVec::new();
    // To and fro between 3 and 9 m from us: one encounter. Then 20 m away, and back.
    for (step, away_m) in [9.0, 6.0, 9.0, 6.0, 13.0, 6.5, 20.0, 6.0].into_iter().enumerate() {
        let ms = step as u64 * 1_000;
        bench.own_at(ms, still);
        bench.beacon_at(ms, OTHER, &beacon(UP + DVec3::new(away_m, 0.0, 0.0), DVec3::ZERO, 0)).unwrap();
        alarms.push((bench.monitor.figures().alarms, bench.view(ms).alarmed));
    }
    let expected = [(0, false), (1, true), (1, true), (1, true), (1, true), (1, true), (1, false), (2, true)];
    assert_eq!(alarms, expected);
    assert_eq!(bench.monitor.figures().collisions, 0);
    assert!(bench.notices.iter().all(|n| matches!(n, Notice::Alarm { .. })), "{:?}", bench.notices);
}

#[test]
fn mbcap_12_on_the_ground_none_is_near_and_each_flight_ends_with_a_line() {
    let mut bench = Bench::new();
    let near = beacon(DVec3::new(2.0, 0.0, 0.0), DVec3::ZERO, 0);
    let ground = |armed| Own { armed, ..own(DVec3::ZERO, DVec3::ZERO) };
    bench.own_at(0, ground(false));
    bench.beacon_at(0, OTHER, &near).unwrap();
    bench.own_at(250, ground(true));
    bench.beacon_at(400, OTHER, &near).unwrap();
    assert_eq!((bench.notices.len(), bench.monitor.figures()), (0, Figures::default()));
    bench.own_at(500, own(DVec3::new(0.0, 0.0, 6.0), DVec3::ZERO));
    assert_eq!(bench.notices.len(), 1, "6.3 m: {:?}", bench.notices);
    bench.own_at(1_000, ground(true));
    assert!(
        matches!(bench.notices.last(), Some(Notice::Collision(_))),
        "it flew: it has not landed before it is disarmed"
    );
    bench.own_at(1_250, ground(false));
    let text = bench.notices.last().unwrap().text();
    assert_eq!(
        text.as_str(),
        "closest to 0000000000000007: 2.0 m (2.0 m over ground, 0.0 m in height), alarms: 1"
    );
    // The next flight has its own figures.
    bench.own_at(9_000, own(UP, DVec3::ZERO));
    bench.own_at(9_250, ground(false));
    assert_eq!(bench.notices.last().unwrap().text().as_str(), "closest to no aircraft: no position received");
}

#[test]
fn mbcap_12_a_full_table_keeps_the_near_and_the_fresh() {
    let mut bench = Bench::new();
    bench.own_at(0, own(UP, DVec3::ZERO));
    for i in 0..TRACKS_MAX as u64 {
        let away = UP + DVec3::new(50.0 + i as f64, 0.0, 0.0);
        bench.beacon_at(0, VehicleId(i), &beacon(away, DVec3::ZERO, 0)).unwrap();
    }
    let known = |bench: &Bench, id| bench.monitor.tracks.iter().any(|t| t.id == VehicleId(id));
    // Farther than all: it is not kept. Nearer: the farthest is dropped.
    bench.beacon_at(10, VehicleId(900), &beacon(UP + DVec3::new(900.0, 0.0, 0.0), DVec3::ZERO, 0)).unwrap();
    assert!(!known(&bench, 900) && known(&bench, 127));
    bench.beacon_at(20, VehicleId(901), &beacon(UP + DVec3::new(30.0, 0.0, 0.0), DVec3::ZERO, 0)).unwrap();
    assert!(known(&bench, 901) && !known(&bench, 127) && known(&bench, 126));
    assert!(bench.monitor.tracks.is_sorted_by(|a, b| a.id > b.id) && bench.monitor.tracks.is_full());
    // Silent for long: a fresh sender replaces it.
    bench
        .beacon_at(11_000, VehicleId(900), &beacon(UP + DVec3::new(900.0, 0.0, 0.0), DVec3::ZERO, 0))
        .unwrap();
    assert!(known(&bench, 900));
}

#[test]
fn mbcap_12_one_that_brakes_sends_one_location_and_keeps_its_velocity() {
    let mut bench = Bench::new();
    bench.own_at(0, own(UP, DVec3::ZERO));
    let north = DVec3::new(0.0, 8.0, 0.0);
    let at = |s: f64| DVec3::new(100.0, -50.0, 20.0) + north * s;
    bench.beacon_at(0, OTHER, &beacon(at(0.0), north, 0)).unwrap();
    let alone = |s: f64| {
        let mut b = beacon(at(s), north, 0);
        b.locations.truncate(1);
        b
    };
    for s in [1.0, 1.0, 2.0] {
        bench.beacon_at((s * 1e3) as u64, OTHER, &alone(s)).unwrap();
        let found = long(bench.monitor.tracks[0].velocity_m_s);
        assert!((found - north).length() < 0.02, "{found}");
    }
    // Where it waits, its further locations are no way that it flies.
    let mut waits = beacon(at(3.0), DVec3::new(0.5, 0.0, 0.0), 0);
    waits.state = Avoidance::GoOnPlease;
    bench.beacon_at(3_000, OTHER, &waits).unwrap();
    let found = long(bench.monitor.tracks[0].velocity_m_s);
    assert!((found - DVec3::new(0.0, 0.5, 0.0)).length() < 0.02, "{found}");
}

#[test]
fn mbcap_12_positions_far_away_are_refused_and_extremes_do_no_harm() {
    let mut bench = Bench::new();
    bench.own_at(0, own(UP, DVec3::ZERO));
    assert_eq!(
        bench.beacon_at(0, OTHER, &Beacon::default()),
        Err(Refused::Contradiction),
        "without a location it is not used"
    );
    let far = Location { latitude_e7: HOME.latitude_e7 + 90_000_000, longitude_e7: 0, altitude_mm: 0 };
    let b = Beacon { locations: core::iter::once(far).collect(), ..Beacon::default() };
    assert_eq!(bench.beacon_at(0, OTHER, &b), Err(Refused::FarAway));
    assert!(bench.monitor.tracks.is_empty());
    // Both sides of the date line are neighbours.
    let line = |longitude_e7| Position { latitude_e7: 0, longitude_e7, altitude_mm: 0 };
    bench.own_at(10, Own { position: line(1_800_000_000), ..own(UP, DVec3::ZERO) });
    let l = line(-1_799_999_000);
    let there = Location { latitude_e7: 0, longitude_e7: l.longitude_e7, altitude_mm: 0 };
    let b = Beacon { locations: core::iter::once(there).collect(), ..Beacon::default() };
    bench.beacon_at(10, OTHER, &b).unwrap();
    assert!((bench.view(10).nearest.unwrap().distance_m - 11.13).abs() < 0.01);
    // What no autopilot and no aircraft reports.
    for latitude_e7 in [i32::MIN, -900_000_000, 900_000_000, i32::MAX] {
        for altitude_mm in [i32::MIN, i32::MAX] {
            let position = Position { latitude_e7, longitude_e7: i32::MIN, altitude_mm };
            let velocity_m_s = DVec3::splat(f64::from(i16::MAX));
            bench.own_at(20, Own { position, velocity_m_s, height_m: f64::from(altitude_mm), armed: true });
            let l =
                Location { latitude_e7, longitude_e7: i32::MAX, altitude_mm: -altitude_mm.max(-i32::MAX) };
            let b = Beacon {
                speed_cm_s: u16::MAX,
                age_ms: u16::MAX,
                locations: [l, there].into_iter().collect(),
                ..Beacon::default()
            };
            let _ = bench.beacon_at(30, VehicleId(u64::MAX), &b);
            let view = bench.view(40);
            assert!(view.nearest.is_none_or(|n| n.distance_m.is_finite()), "{view:?}");
        }
    }
}
