//! Silent and deaf aircraft: where the others go, and for how long they wait.

use super::driver::{CLIMB, Driver, ELSEWHERE, HERE, THROUGH_US, beacon};
use super::*;

/// Returns the orders of some seconds, each with the second in which it was given.
fn ordered(driver: &mut Driver, seconds: u32, each: impl Fn(&mut Driver)) -> Vec<(u32, Order)> {
    let mut all = Vec::new();
    for second in 1..=seconds {
        driver.orders.clear();
        each(driver);
        driver.wait(1);
        all.extend(driver.orders.iter().map(|order| (second, *order)));
    }
    all
}

fn course(waypoints: &[(f64, f64)]) -> Message {
    let waypoints = beacon(Avoidance::Normal, None, waypoints).locations.into_iter().collect();
    Message::Course(Course { lands: false, waypoints })
}

fn local(at: Point) -> DVec2 {
    let position = Position { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, altitude_mm: 0 };
    Frame::new(HOME).to_local(position).truncate()
}

/// The other flies at this speed, and falls silent.
fn falls_silent(driver: &mut Driver, at: (f64, f64), mission: &[(f64, f64)]) {
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[at]) });
    driver.receive_course(&course(mission));
}

/// The aircraft flies at once to where it was ordered.
fn obeys(driver: &mut Driver) {
    if let Some(Order::FlyTo(at)) = driver.orders.last().copied() {
        let at = local(at);
        driver.fly((at.x, at.y), 0.0);
    }
}

/// The lanes are 20 m apart, and the lower keeps 15 m from each.
#[test]
fn mbcap_21_between_two_lanes_of_a_silent_one_it_stays_and_lands_in_time() {
    let mut driver = Driver::new(1, 2);
    driver.stand_still();
    let (x, y) = HERE;
    falls_silent(
        &mut driver,
        (x + 60.0, y + 6.0),
        &[(x - 200.0, y + 6.0), (x - 200.0, y - 14.0), (x + 200.0, y - 14.0)],
    );
    let mut all = Vec::new();
    for second in 1..=200 {
        driver.orders.clear();
        driver.wait(1);
        all.extend(driver.orders.iter().map(|order| (second, *order)));
        obeys(&mut driver);
    }
    let asides = all.iter().filter(|(_, order)| matches!(order, Order::FlyTo(_))).count();
    assert!(asides <= 3, "it does not move to and fro: {all:?}");
    let lands =
        all.iter().find(|(_, order)| *order == Order::Land).unwrap_or_else(|| panic!("it lands: {all:?}")).0;
    assert!((118..=140).contains(&lands), "{lands} s");
}

#[test]
fn mbcap_16_it_leaves_the_place_next_to_one_that_hovers_silent_and_the_end_of_a_course() {
    let (x, y) = HERE;
    // It hovers 4 m away; its course ends 4 m before us.
    for (at, mission) in [((x, y + 4.0), &[][..]), ((x, y + 100.0), &[(x, y + 4.0)][..])] {
        let mut driver = Driver::new(1, 2);
        driver.stand_still();
        driver.receive(beacon(Avoidance::Normal, None, &[at]));
        driver.receive_course(&course(mission));
        let orders = ordered(&mut driver, 12, |_| {});
        let [(_, Order::FlyTo(aside))] = orders[..] else { panic!("it moves aside, found {orders:?}") };
        let off_m = local(aside).distance(DVec2::new(x, y + 4.0));
        assert!(off_m > 14.9, "{off_m} m");
    }
}

/// On its way aside for 120 s, it stands across the course of the higher.
#[test]
fn mbcap_21_the_lower_on_its_way_aside_never_crosses_the_course_of_a_silent_one() {
    let mut driver = Driver::new(1, 2);
    driver.moving_aside();
    let orders = ordered(&mut driver, 200, |_| {});
    let [(aside, Order::FlyTo(_)), (_, Order::Land)] = orders[..] else { panic!("{orders:?}") };
    assert!((118..=128).contains(&aside), "{aside} s: to land clear of that course");
}

/// The other aircraft receives nothing, and flew past without a word.
#[test]
fn mbcap_21_one_that_stands_for_a_deaf_one_goes_on_when_that_has_passed() {
    for (me, other) in [(1, 2), (2, 1)] {
        let mut driver = Driver::new(me, other);
        driver.stand_still();
        let orders = ordered(&mut driver, 30, |d| {
            let passed = &[(HERE.0, 200.0), (HERE.0, 230.0)];
            d.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, passed) });
        });
        assert!(orders.iter().any(|(_, order)| *order == Order::Resume), "{me}: {orders:?}");
    }
}

/// It is silent since before this aircraft turned back: it cannot know that way.
#[test]
fn mbcap_21_a_lower_one_that_does_not_know_the_way_home_counts_as_one_that_is_higher() {
    let mut driver = Driver::new(2, 1);
    driver.normal();
    falls_silent(&mut driver, (-100.0, -100.0), &[(-100.0, 300.0)]);
    let yields = |driver: &Driver| {
        let mut obstacles = driver.protocol.obstacles(driver.now);
        obstacles.next().map(|(_, obstacle)| obstacle.yields)
    };
    driver.wait(6);
    assert_eq!(yields(&driver), Some(true));
    driver.command(Command::Return);
    driver.done();
    driver.wait(1);
    assert_eq!(yields(&driver), Some(false));
    falls_silent(&mut driver, (-100.0, -100.0), &[(-100.0, 300.0)]);
    driver.wait(6);
    assert_eq!(yields(&driver), Some(true), "it was received since");
}

/// It brakes for a third, or passes another and stops for one in its way.
#[test]
fn mbcap_24_one_that_brakes_for_a_third_does_not_count_as_one_that_ignores_us() {
    let (x, y) = HERE;
    for (state, east_m, ignores) in [
        (Avoidance::Normal, 50.0, false),
        (Avoidance::Overtaking, 50.0, false),
        (Avoidance::Overtaking, 25.0, true),
    ] {
        let mut driver = Driver::new(1, 2);
        driver.stand_still();
        let ahead = &[(x + east_m, y + 1.0), (x + 20.0, y + 1.0)];
        driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(state, Some(9), ahead) });
        driver.receive_course(&course(&[(x - 300.0, y + 1.0)]));
        let orders = ordered(&mut driver, 1, |_| {});
        assert_eq!(!orders.is_empty(), ignores, "{state:?} {east_m} m: {orders:?}");
        let avoidance = driver.protocol.details().avoidance.unwrap();
        assert_eq!(avoidance.is_received, None, "{state:?}");
    }
}

/// The peer gave way, and then has to leave its place itself: it flies into the way of the one that passes.
#[test]
fn mbcap_08_one_that_passes_stops_for_a_peer_that_moves_into_its_way() {
    let mut driver = Driver::new(2, 1);
    driver.overtaking();
    driver.fly(HERE, 8.0);
    let orders = ordered(&mut driver, 7, |d| {
        let (x, y) = HERE;
        let crosses = &[(x + 25.0, y + 6.0), (x + 25.0, y), (x + 25.0, y - 6.0)];
        d.receive(Beacon { speed_cm_s: 300, ..beacon(Avoidance::MovingAside, Some(2), crosses) });
    });
    assert_eq!(orders.first().map(|(_, order)| *order), Some(Order::Hold), "{orders:?}");
    // A peer that stands gave way, and is passed.
    let mut driver = Driver::new(2, 1);
    driver.overtaking();
    driver.fly(HERE, 8.0);
    let stands = |d: &mut Driver| d.mutual(Avoidance::GoOnPlease, &[(HERE.0 + 25.0, HERE.1 + 6.0)]);
    assert_eq!(ordered(&mut driver, 7, stands), []);
}

/// It gave way, and then was told to hold where it stands.
#[test]
fn mbcap_08_one_that_passes_stops_for_a_peer_that_stands_in_its_way_and_gives_way_no_longer() {
    for (claims, stops) in [(Some(2), false), (None, true), (Some(9), true)] {
        let mut driver = Driver::new(2, 1);
        driver.overtaking();
        driver.fly(HERE, 8.0);
        let orders = ordered(&mut driver, 3, |d| {
            d.receive(beacon(Avoidance::StandStill, claims, &[(HERE.0 + 25.0, HERE.1 + 3.0)]));
        });
        assert_eq!(orders.iter().any(|(_, order)| *order == Order::Hold), stops, "{claims:?}: {orders:?}");
    }
}

/// A third passes another, and its next locations lie where this aircraft would go.
#[test]
fn mbcap_08_one_that_gives_way_does_not_fly_through_the_way_of_one_that_passes() {
    let aside_of = |third: Option<&[(f64, f64)]>| {
        let mut driver = Driver::new(1, 2);
        driver.stand_still();
        if let Some(third) = third {
            driver.other = 3;
            driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Overtaking, Some(9), third) });
            driver.other = 2;
        }
        driver.mutual(Avoidance::StandStill, THROUGH_US);
        let orders = ordered(&mut driver, 1, |_| {});
        orders.first().map(|(_, order)| if let Order::FlyTo(at) = order { local(*at).y } else { f64::NAN })
    };
    let (x, y) = HERE;
    let free = aside_of(None).expect("it moves aside");
    assert!(free < y, "{free}");
    let south = [(x - 60.0, y - 9.0), (x, y - 9.0), (x + 60.0, y - 9.0)];
    let other = aside_of(Some(&south)).expect("it moves to the other side");
    assert!(other > y, "{other}");
    let both = [(x, y - 9.0), (x + 60.0, y - 9.0), (x + 60.0, y + 12.0), (x, y + 12.0)];
    assert_eq!(aside_of(Some(&both)), None, "it waits until that one is through");
}

/// In a pilot's hands it has no course, and flies on.
#[test]
fn mbcap_16_one_in_a_pilots_hands_that_falls_silent_is_reckoned_along_its_prediction() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    let flies = &[(-100.0, 0.0), (-70.0, 0.0), (-40.0, 0.0)];
    let nearest_m = |driver: &Driver| {
        let mut obstacles = driver.protocol.obstacles(driver.now);
        obstacles.next().map(|(_, obstacle)| obstacle.room_m(DVec3::new(-40.0 - HERE.0, 0.0, 0.0), 50.0))
    };
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, flies) });
    driver.receive_course(&course(&[]));
    driver.wait(3);
    assert!(nearest_m(&driver).is_some_and(|m| m < 1.0), "{:?}", nearest_m(&driver));
    driver.receive(beacon(Avoidance::StandStill, None, ELSEWHERE));
    driver.wait(3);
    assert!(nearest_m(&driver).is_some_and(|m| m > 50.0), "{:?}", nearest_m(&driver));
}

#[test]
fn a_course_leaves_out_the_waypoints_of_straight_lanes() {
    let mut route: Vec<_> = (0..60).map(|i| (HERE.0 + 10.0 * f64::from(i), 0.3 * f64::from(i % 2))).collect();
    route.extend([(290.0, 40.0), (-300.0, 40.0)]);
    let mut craft = Craft::new(Config::mbcap_e(), 1, &route);
    let at = craft.telemetry();
    craft.handle(Instant::ZERO, Input::Telemetry(at));
    craft.handle(Instant::ZERO, Input::Operator(Command::Setup));
    let mut sent = craft.handle(Instant::ZERO, Input::Operator(Command::Start));
    for ms in 1..=20 {
        let at = craft.telemetry();
        sent.extend(craft.handle(Instant::from_millis(100 * ms), Input::Telemetry(at)));
    }
    let of_mission = |m: &Message| match m {
        Message::Course(course) if course.waypoints.len() > 2 => Some(course.clone()),
        _ => None,
    };
    let course = sent.iter().find_map(of_mission).expect("a course");
    let last = point(DVec2::new(-300.0, 40.0), 0.0);
    let end = course.waypoints.last().unwrap();
    assert!(course.waypoints.len() < 10, "{}", course.waypoints.len());
    assert!(
        end.latitude_e7.abs_diff(last.latitude_e7) < 3 && end.longitude_e7.abs_diff(last.longitude_e7) < 3
    );
}

/// Taken up in the air: its flight did not begin at home, which is not known.
#[test]
fn mbcap_20_one_whose_home_is_not_known_broadcasts_no_course_home() {
    let courses_after = |is_at_home: bool| {
        let mut driver = Driver::new(1, 2);
        driver.normal();
        driver.protocol.local.as_mut().unwrap().is_at_home = is_at_home;
        driver.command(Command::Return);
        let sent_at = driver.protocol.last_course.clone();
        driver.done();
        driver.wait(3);
        sent_at.sent_at() != driver.protocol.last_course.sent_at()
    };
    assert_eq!([courses_after(true), courses_after(false)], [true, false]);
}

/// The radio may die between the order and the first turn of the motors.
#[test]
fn mbcap_21_a_mission_is_broadcast_from_its_start_on_and_taken_back_where_the_take_off_fails() {
    let mut driver = Driver::new(1, 2);
    driver.set_up();
    let seconds = |driver: &mut Driver, count: u32| {
        let mut sent = Vec::new();
        for _ in 0..count {
            driver.now = driver.now + Duration::from_secs(1);
            let mut actions = Actions::new();
            driver.protocol.handle(driver.now, Input::Telemetry(driver.at), &mut actions);
            sent.extend(actions.into_iter().filter_map(|action| match action {
                Action::Broadcast { message, .. } => Some(message),
                Action::Order(_) | Action::Refused(_) | Action::PassOn | Action::Log(..) => None,
            }));
        }
        sent
    };
    let courses = |sent: &[Message]| {
        let of = |m: &Message| if let Message::Course(course) = m { Some(course.lands) } else { None };
        sent.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert!(seconds(&mut driver, 3).is_empty(), "no flight is ordered");
    driver.command(Command::Start);
    let sent = seconds(&mut driver, 2);
    assert!(sent.iter().any(|m| matches!(m, Message::Beacon(beacon) if beacon.landing)), "{sent:?}");
    assert_eq!(courses(&sent).first(), Some(&false), "{sent:?}");
    driver.feed(Input::Failed(CLIMB));
    let sent = seconds(&mut driver, 6);
    assert!(courses(&sent).iter().all(|lands| *lands) && !courses(&sent).is_empty(), "{sent:?}");
    assert!(seconds(&mut driver, 3).is_empty(), "it stays on the ground");
}

#[test]
fn mbcap_21_a_short_flight_between_two_waits_for_a_silent_one_does_not_end_the_wait() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.wait(40);
    driver.protocol.alone_since = Some(driver.now);
    let Some(Avoiding::Normal { since }) = driver.protocol.avoiding() else { panic!("on its mission") };
    assert!(driver.now.since(since) > Duration::from_secs(30));
    driver.wait(1);
    assert_eq!(driver.protocol.alone_since, None, "on its mission for long");
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.protocol.alone_since = Some(driver.now);
    driver.wait(15);
    assert!(driver.protocol.alone_since.is_some());
}

/// The peer stands because of this aircraft and is not received by it: no conflict of the two is
/// solved.
#[test]
fn mbcap_21_one_that_gave_way_and_is_not_received_lands_after_all_its_waits_together() {
    let lands_after = |waited_s: u64| {
        let mut driver = Driver::new(1, 2);
        driver.now = Instant::from_secs(waited_s);
        driver.go_on_please();
        driver.protocol.alone_since =
            (waited_s > 0).then(|| Instant::from_micros(driver.now.as_micros() - waited_s * 1_000_000));
        let orders = ordered(&mut driver, 125, |d| d.mutual(Avoidance::StandStill, ELSEWHERE));
        let [(second, Order::Land)] = orders[..] else { panic!("it lands: {orders:?}") };
        second
    };
    assert!((119..=122).contains(&lands_after(0)), "{}", lands_after(0));
    assert!((29..=33).contains(&lands_after(100)), "{}", lands_after(100));
}

/// A lower aircraft fell silent on a course 9 m south of this one.
#[test]
fn mbcap_16_one_that_gives_way_does_not_move_into_the_course_of_a_silent_one() {
    let aside_of = |course_y: f64| {
        let (x, y) = HERE;
        let mut driver = Driver::new(2, 1);
        driver.stand_still();
        let conflict = Conflict { peer: VehicleId(3), risk: None };
        let (began_at, since) = (driver.now, driver.now);
        let stands = Avoiding::StandStill { conflict, began_at, since, is_aside: false };
        driver.protocol.flight.apply(Some(decide::to(stands)), &mut Actions::new());
        falls_silent(&mut driver, (x - 60.0, y + course_y), &[(x + 400.0, y + course_y)]);
        driver.wait(6);
        driver.other = 3;
        driver.mutual(Avoidance::StandStill, THROUGH_US);
        let orders = ordered(&mut driver, 1, |_| {});
        let [(_, Order::FlyTo(at))] = orders[..] else { panic!("it moves aside: {orders:?}") };
        local(at).y - y
    };
    assert!(aside_of(-60.0) < 0.0, "{}", aside_of(-60.0));
    assert!(aside_of(-9.0) > 0.0, "{}", aside_of(-9.0));
}

/// Behind its position aside its mission leads through the place of this aircraft.
#[test]
fn mbcap_23_one_that_stands_does_not_leave_the_way_of_one_that_moves_aside_elsewhere() {
    let (x, y) = HERE;
    let mut driver = Driver::new(1, 2);
    driver.stand_still();
    falls_silent(&mut driver, (x + 200.0, y + 200.0), &[(x - 20.0, y - 12.0)]);
    let orders = ordered(&mut driver, 2, |d| {
        let aside = &[(x + 20.0, y + 20.0), (x + 20.0, y + 14.0)];
        d.receive(Beacon { speed_cm_s: 300, ..beacon(Avoidance::MovingAside, Some(9), aside) });
        d.receive_course(&course(&aside[1..]));
    });
    assert_eq!(orders, []);
}
