//! Aircraft that no protocol flies, that land unreceived, that come back unreceived, and that fly
//! over a take-off site.

use super::driver::{Driver, HERE, NEAR, beacon};
use super::*;

/// A course that leads along these positions.
fn course(lands: bool, waypoints: &[(f64, f64)], altitude_m: f64) -> Message {
    let mut waypoints: heapless::Vec<Location, { wingbeat_wire::COURSE_MAX }> =
        beacon(Avoidance::Normal, None, waypoints).locations.into_iter().collect();
    waypoints.iter_mut().for_each(|at| at.altitude_mm = (altitude_m * 1e3) as i32);
    Message::Course(Course { lands, waypoints })
}

fn flown(at: &[(f64, f64)], speed_cm_s: u16) -> Beacon {
    Beacon { speed_cm_s, ..beacon(Avoidance::Normal, None, at) }
}

fn local(at: Point) -> DVec2 {
    let position = Position { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, altitude_mm: 0 };
    Frame::new(HOME).to_local(position).truncate()
}

fn is_started(driver: &mut Driver) -> bool {
    driver.refused = false;
    driver.command(Command::Start);
    !driver.refused
}

/// The other stopped 3.6 m from an aircraft that climbed, which stayed in its downwash.
#[test]
fn mbcap_25_no_aircraft_takes_off_under_another() {
    let (x, y) = HERE;
    let mut driver = Driver::new(1, 2);
    driver.set_up();
    driver.receive(flown(&[(x - 60.0, y), (x - 57.0, y)], 600));
    driver.receive_course(&course(false, &[(x + 200.0, y)], 50.0));
    driver.report();
    assert!(!is_started(&mut driver), "it is there within 8 s");
    let denied = driver.protocol.permits(Command::Start).unwrap_err();
    assert!(format!("{denied}").contains("0000000000000002 flies over"), "{denied}");
    driver.receive(flown(&[(x + 20.0, y), (x + 23.0, y)], 600));
    driver.report();
    assert!(is_started(&mut driver), "it has passed");
}

#[test]
fn mbcap_25_one_that_hovers_over_the_site_bars_the_take_off_and_one_next_to_it_does_not() {
    let (x, y) = HERE;
    for (off_m, bars) in [(5.0, true), (10.0, false)] {
        let mut driver = Driver::new(1, 2);
        driver.set_up();
        let mut hovers = beacon(Avoidance::StandStill, None, &[(x + off_m, y)]);
        hovers.locations[0].altitude_mm += 15_000;
        driver.receive(hovers);
        driver.report();
        assert_eq!(is_started(&mut driver), !bars, "{off_m} m");
    }
    // As published, *Start* waits for no aircraft; one on the ground is no obstacle.
    let mut grounded = Driver::new(1, 2);
    grounded.set_up();
    grounded.receive(beacon(Avoidance::Normal, None, &[(x + 5.0, y)]));
    grounded.report();
    assert!(is_started(&mut grounded));
}

#[test]
fn mbcap_25_one_that_is_ordered_to_take_off_is_an_obstacle_before_its_motors_run() {
    for (climbs, order) in [(true, Some(Order::Hold)), (false, None)] {
        let mut driver = Driver::new(1, 2);
        driver.normal();
        let mut grounded = Beacon { landing: true, ..beacon(Avoidance::Normal, None, NEAR) };
        grounded.locations[0].altitude_mm = 30_000;
        driver.receive(grounded);
        driver.receive_course(&course(!climbs, if climbs { NEAR } else { &[] }, 50.0));
        driver.orders.clear();
        driver.check();
        assert_eq!(driver.orders.first().copied(), order, "climbs: {climbs}");
    }
}

/// In its pilot's hands the other names no conflict, and its flight controller has no course.
#[test]
fn mbcap_26_it_leaves_the_way_of_one_that_drifts_in_its_pilots_hands() {
    let (x, y) = HERE;
    let hovers = beacon(Avoidance::StandStill, None, &[(x, y + 4.0)]);
    // At 1.5 m/s from 12 m away.
    let drifts = flown(&[(x, y + 12.0), (x, y + 11.25), (x, y + 10.5), (x, y + 6.0), (x, y)], 150);
    for came in [hovers, drifts] {
        let mut driver = Driver::new(2, 1);
        driver.stand_still();
        driver.orders.clear();
        driver.receive(came);
        driver.receive_course(&course(false, &[], 50.0));
        driver.check();
        let [Order::FlyTo(aside)] = driver.orders[..] else { panic!("{:?}", driver.orders) };
        let off_m = local(aside).distance(DVec2::new(x, y));
        assert!(off_m > 7.5, "{off_m} m");
    }
}

fn obstacle_ends(driver: &Driver) -> Option<(DVec2, DVec2)> {
    let (_, obstacle) = driver.protocol.obstacles(driver.now).next()?;
    Some((obstacle.path.first()?.truncate(), obstacle.path.last()?.truncate()))
}

/// The other has lost its position, or its radio: it lands, and drifts with the air.
#[test]
fn mbcap_27_one_that_falls_silent_as_it_lands_is_an_obstacle_downwind_until_it_is_down() {
    // At rest, and where it coasts 10 m north.
    for (coasts, north_m) in [(&[][..], 0.0), (&[(0.0, 90.0)][..], 10.0)] {
        let mut driver = Driver::new(2, 1);
        driver.normal();
        let air_m_s = Some(DVec2::new(3.0, 0.0));
        driver.protocol.set_measured(driver.now, Measured { air_m_s, ..Measured::default() });
        driver.receive(Beacon { landing: true, ..beacon(Avoidance::Normal, None, &[(0.0, 80.0)]) });
        driver.receive_course(&course(true, coasts, 50.0));
        driver.wait(1);
        assert_eq!(obstacle_ends(&driver), None, "its beacons say where it is");
        driver.wait(3);
        let (from, to) = obstacle_ends(&driver).unwrap();
        let drift = to - from;
        // 20 m at 0.5 m/s.
        assert!((drift - DVec2::new(120.0, north_m)).length() < 1.0, "{drift}");
        if coasts.is_empty() {
            driver.wait(38);
            assert_eq!(obstacle_ends(&driver), None, "it is down");
        }
    }
}

#[test]
fn mbcap_27_one_that_falls_silent_on_the_ground_is_none() {
    let mut driver = Driver::new(2, 1);
    driver.normal();
    let mut low = Beacon { landing: true, ..beacon(Avoidance::Normal, None, &[(0.0, 80.0)]) };
    low.locations[0].altitude_mm = 32_000;
    driver.receive(low);
    driver.receive_course(&course(true, &[], 50.0));
    driver.wait(4);
    assert_eq!(obstacle_ends(&driver), None);
}

/// The other recedes at 600 m and falls silent: it is out of reach, or its radio is dead and it
/// comes back later.
#[test]
fn mbcap_28_one_that_recedes_within_the_reach_of_the_radio_is_not_forgotten() {
    for (farthest_m, is_known) in [(700.0, false), (1_000.0, true)] {
        let mut driver = Driver::new(2, 1);
        driver.normal();
        let away = |m: f64| flown(&[(HERE.0 - m, 0.0), (HERE.0 - m - 5.0, 0.0)], 1_000);
        driver.receive(away(farthest_m));
        driver.receive_course(&course(false, &[(HERE.0 - 900.0, 0.0), (HERE.0, 0.0)], 50.0));
        for m in [570.0, 580.0, 590.0, 600.0] {
            driver.wait(1);
            driver.receive(away(m));
        }
        driver.wait(30);
        assert_eq!(driver.protocol.obstacles(driver.now).count(), usize::from(is_known), "{farthest_m} m");
    }
}
