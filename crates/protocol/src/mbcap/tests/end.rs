//! The end of a mission: ArduCopter reports it a stopping distance early, once, and AUTO after it begins anew; and
//! the end of a wait.

use super::driver::{CLIMB, Driver, ELSEWHERE, HERE, LAST, beacon};
use super::*;

/// What the flight controller is asked for.
fn orders(driver: &mut Driver, act: impl FnOnce(&mut Driver)) -> Vec<Order> {
    driver.orders.clear();
    act(driver);
    core::mem::take(&mut driver.orders)
}

fn last() -> Point {
    point(DVec2::new(LAST.0, LAST.1), 20.0)
}

#[test]
fn mbcap_13_a_mission_that_has_ended_is_not_begun_anew() {
    // The lower one waits. While it braked, the last waypoint counted as reached, 50 m before it.
    let mut lower = Driver::new(1, 2);
    lower.go_on_please();
    lower.feed(Input::Reached(1));
    lower.wait(1);
    assert!(!lower.sent.landing, "it stands in the other's path");
    lower.receive(Beacon { event: 1, ..beacon(Avoidance::Normal, None, ELSEWHERE) });
    assert_eq!(orders(&mut lower, Driver::check), [Order::FlyTo(last())]);
    assert_eq!(orders(&mut lower, Driver::done), []);
    assert_eq!(lower.protocol.view().state, StateId::Normal);
    assert_eq!(orders(&mut lower, Driver::report), [], "it has only just begun to move");
    assert_eq!(orders(&mut lower, |d| d.fly((298.5, 0.0), 0.0)), [Order::Land]);
    // The higher one passes the other in the same way.
    let mut higher = Driver::new(2, 1);
    higher.stand_still();
    higher.feed(Input::Reached(1));
    higher.mutual(Avoidance::GoOnPlease, ELSEWHERE);
    assert_eq!(orders(&mut higher, Driver::check), [Order::FlyTo(last())]);
    higher.done();
    assert_eq!(higher.protocol.view().state, StateId::Overtaking);
}

#[test]
fn mbcap_13_a_mission_ends_though_the_report_of_its_last_waypoint_was_lost() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.wait(3);
    assert_eq!(orders(&mut driver, |d| d.fly((299.0, 0.0), 3.0)), [], "it may fly over it");
    assert_eq!(orders(&mut driver, |d| d.fly((299.0, 0.0), 0.0)), [Order::Land]);
    // And one that stops short of a waypoint that it reached lands there.
    let mut short = Driver::new(1, 2);
    short.normal();
    short.feed(Input::Reached(1));
    let at = (295.0, 0.0);
    assert_eq!(orders(&mut short, |d| d.fly(at, 0.0)), [], "it may have only just begun to move");
    assert_eq!(orders(&mut short, |d| d.wait(3)), [Order::Land]);
}

#[test]
fn mbcap_13_where_its_mission_may_have_ended_it_continues_without_beginning_anew() {
    for (x, order) in [(LAST.0 - 1.0, Order::FlyTo(last())), (LAST.0 - 50.0, Order::FlyTo(last()))]
        .into_iter()
        .chain([(LAST.0 - 60.0, Order::Resume)])
    {
        let mut driver = Driver::new(1, 2);
        driver.normal();
        // Ordered to hold there; that the last waypoint counted as reached was reported over a cut line.
        driver.fly((x, 0.0), 3.0);
        driver.wait(5);
        driver.receive(beacon(Avoidance::Normal, None, &[(x, 10.0)]));
        driver.check();
        driver.done();
        driver.fly((x, 0.0), 0.0);
        driver.wait(8);
        driver.lands();
        assert_eq!(orders(&mut driver, Driver::check), [order], "{x}");
    }
}

/// It was flown past at 2.8 m while it still was as high.
#[test]
fn mbcap_18_one_that_lands_is_flown_over_once_it_is_below() {
    let mut waits = Driver::new(1, 2);
    waits.go_on_please();
    waits.lands_at(44.0);
    assert_eq!(orders(&mut waits, Driver::check), []);
    waits.report();
    waits.lands();
    assert_eq!(orders(&mut waits, Driver::check), [Order::Resume]);
    // Nor is one on the mission blind to it.
    let mut flies = Driver::new(1, 2);
    flies.normal();
    flies.receive(Beacon { landing: true, ..beacon(Avoidance::Normal, None, super::driver::NEAR) });
    assert_eq!(orders(&mut flies, Driver::check), [Order::Hold]);
}

/// Neither knows where it would fly, nor do the others.
#[test]
fn mbcap_19_one_that_does_not_know_where_it_is_does_not_continue() {
    let mut waits = Driver::new(1, 2);
    waits.go_on_please();
    waits.now = waits.now + Duration::from_secs(2);
    assert_eq!(orders(&mut waits, Driver::lands), []);
    waits.report();
    assert_eq!(orders(&mut waits, Driver::check), [Order::Resume]);
}

#[test]
fn mbcap_13_an_aircraft_that_passes_and_has_arrived_does_not_keep_others_waiting() {
    let mut higher = Driver::new(2, 1);
    higher.overtaking();
    // The other stands near the last waypoint, so we never get far from it.
    let there = &[(300.0, 12.0)];
    higher.feed(Input::Reached(1));
    for _ in 0..6 {
        higher.mutual(Avoidance::GoOnPlease, there);
        higher.fly((290.0, 0.0), 5.0);
        higher.check();
    }
    assert_eq!((higher.protocol.view().state, higher.sent.event), (StateId::Overtaking, 0), "not there yet");
    higher.fly((299.5, 0.0), 0.0);
    higher.check();
    assert_eq!(higher.sent.event, 1, "the other learns that it may continue");
    assert_eq!(orders(&mut higher, Driver::report), [Order::Land]);
}

/// Hovering there it would come into the next conflict before it was seen to be at the end.
#[test]
fn mbcap_13_one_that_passes_over_its_last_waypoint_lands_though_that_report_was_lost() {
    let mut higher = Driver::new(2, 1);
    higher.overtaking();
    higher.fly((299.5, 0.0), 0.0);
    let ordered = (0..12).find_map(|_| {
        higher.mutual(Avoidance::GoOnPlease, &[(300.0, 12.0)]);
        orders(&mut higher, |d| d.wait(1)).first().copied()
    });
    assert_eq!((ordered, higher.protocol.view().state), (Some(Order::Land), StateId::Landing));
    assert_eq!(higher.sent.event, 1, "the other learns that it may continue");
}

/// The other stands in conflict with a third, for as many seconds; when something was asked for.
fn third(driver: &mut Driver, seconds: u32, order: Order) -> Option<u32> {
    (1..=seconds).find(|_| {
        driver.receive(beacon(Avoidance::StandStill, Some(9), ELSEWHERE));
        orders(driver, |d| d.wait(1)) == [order]
    })
}

#[test]
fn mbcap_14_an_aircraft_continues_when_the_peer_that_it_waits_for_is_silent() {
    let mut driver = Driver::new(1, 2);
    driver.stand_still();
    assert_eq!(third(&mut driver, 210, Order::Resume), None, "its peer has another conflict first");
    // Then the peer is silent. Where it stands it is on no one's path: the wait ends when it counts as silent.
    let resumed_s = (1..=200).find(|_| orders(&mut driver, |d| d.wait(1)) == [Order::Resume]);
    assert!((5..=6).contains(&resumed_s.expect("it continues")), "found {resumed_s:?} s");
}

/// The course of an aircraft whose mission leads there.
fn course(waypoints: &[(f64, f64)]) -> Message {
    let waypoints = beacon(Avoidance::Normal, None, waypoints).locations.into_iter().collect();
    Message::Course(Course { lands: false, waypoints })
}

/// Another flies east from 100 m west of our path at its planned speed, and falls silent.
fn falls_silent(driver: &mut Driver, mission: &[(f64, f64)]) {
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(-100.0, -100.0)]) });
    driver.receive_course(&course(mission));
}

/// Stops before the path of another that fell silent, and stands 50 m from it.
fn stops_before_silent(driver: &mut Driver) {
    driver.normal();
    // Its prediction is of one location, and its mission leads across ours at x = -100.
    falls_silent(driver, &[(-100.0, 300.0)]);
    driver.fly((-200.0, 0.0), 10.0);
    assert_eq!(orders(driver, |d| d.wait(2)), [], "a lost datagram is no silence");
    driver.fly((-160.0, 0.0), 10.0);
    assert_eq!(orders(driver, |d| d.wait(2)), [Order::Hold]);
    driver.done();
    driver.fly((-150.0, 0.0), 0.0);
}

#[test]
fn mbcap_16_the_higher_stops_before_the_path_of_a_silent_one_and_passes_when_it_cannot_be_there() {
    let mut driver = Driver::new(2, 1);
    stops_before_silent(&mut driver);
    // One that flies on is past after half a minute; one that stopped may hover there until its guardian has landed it.
    let resumed_s = (1..=200).find(|_| orders(&mut driver, |d| d.wait(1)) == [Order::Resume]);
    assert!((78..=90).contains(&resumed_s.expect("it continues")), "found {resumed_s:?} s");
    driver.done();
    assert_eq!(driver.protocol.view().state, StateId::Overtaking, "a mute one waits until it is passed");
}

/// The radio of either may be dead, and the other may stand for us: only one of two continues.
#[test]
fn mbcap_21_the_lower_of_two_lets_a_silent_one_pass_for_good_and_lands() {
    let mut driver = Driver::new(1, 2);
    stops_before_silent(&mut driver);
    let ordered: Vec<_> =
        (1..=300).filter_map(|s| Some((s, *orders(&mut driver, |d| d.wait(1)).first()?))).collect();
    let [(landed_s, Order::Land)] = ordered[..] else { panic!("it never continues, found {ordered:?}") };
    assert!((118..=130).contains(&landed_s), "found {landed_s} s");
}

#[test]
fn mbcap_21_the_lower_says_to_a_mute_one_that_it_may_pass() {
    let mut driver = Driver::new(1, 2);
    stops_before_silent(&mut driver);
    driver.wait(10);
    assert_eq!((driver.sent.state, driver.sent.avoiding), (Avoidance::GoOnPlease, Some(VehicleId(2))));
}

/// It fell silent 560 m away: coming nearer, or receding out of the reach of the radio.
#[test]
fn mbcap_21_one_that_did_not_recede_is_an_obstacle_beyond_the_usual_reach_too() {
    for (first_m, is_one) in [(-590.0, true), (-530.0, false)] {
        let mut driver = Driver::new(1, 2);
        driver.normal();
        let at = |y| Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(-100.0, y)]) };
        driver.receive(at(first_m));
        driver.wait(3);
        driver.receive(at(-560.0));
        driver.receive_course(&course(&[(-100.0, 300.0)]));
        driver.fly((-200.0, 0.0), 10.0);
        driver.wait(45);
        driver.fly((-160.0, 0.0), 10.0);
        assert_eq!(!orders(&mut driver, |d| d.wait(3)).is_empty(), is_one, "first received {first_m} m off");
    }
}

/// A mute aircraft stands, and the other flies at it without a word.
#[test]
fn mbcap_23_one_that_stands_leaves_the_way_of_one_that_does_not_answer_whatever_its_right_of_way() {
    for (me, other) in [(1, 2), (2, 1)] {
        for answers in [false, true] {
            let mut driver = Driver::new(me, other);
            driver.stand_still();
            let (x, y) = HERE;
            let flies = Beacon {
                speed_cm_s: 1_000,
                ..beacon(
                    Avoidance::Normal,
                    answers.then_some(me),
                    &[(x + 50.0, y + 1.0), (x + 20.0, y + 1.0)],
                )
            };
            driver.receive(flies);
            driver.receive_course(&course(&[(x - 300.0, y + 1.0)]));
            let ordered = orders(&mut driver, Driver::check);
            let avoidance = driver.protocol.details().avoidance.unwrap();
            if answers {
                assert_eq!((&*ordered, avoidance.is_received), (&[][..], Some(true)), "{me}");
                continue;
            }
            let [Order::FlyTo(aside)] = ordered[..] else { panic!("{me} moves aside, found {ordered:?}") };
            assert!(aside.latitude_e7 < point(DVec2::new(x, y), 20.0).latitude_e7, "away from its path");
            assert_eq!(avoidance.is_received, Some(false), "{me}: the page shows it");
        }
    }
}

#[test]
fn mbcap_24_a_deaf_aircraft_is_known_to_be_deaf_when_two_fall_silent_at_once() {
    let receives = |driver: &Driver| driver.protocol.details().avoidance.unwrap().receives;
    let mut driver = Driver::new(1, 2);
    driver.normal();
    assert_eq!(receives(&driver), None, "no other was ever received");
    driver.receive(beacon(Avoidance::Normal, None, ELSEWHERE));
    driver.wait(1);
    assert_eq!(receives(&driver), Some(true));
    driver.wait(8);
    assert_eq!(receives(&driver), None, "its radio or ours");
    for id in [2, 3] {
        driver.other = id;
        driver.receive(beacon(Avoidance::Normal, None, ELSEWHERE));
    }
    driver.wait(8);
    assert_eq!(receives(&driver), Some(false));
    driver.wait(300);
    assert_eq!(receives(&driver), Some(false), "nothing was received since");
    driver.receive(beacon(Avoidance::Normal, None, ELSEWHERE));
    driver.wait(1);
    assert_eq!(receives(&driver), Some(true));
}

/// Both would be where their paths cross 6 s after the last beacon: so far no prediction reaches.
#[test]
fn mbcap_16_it_stops_clear_of_a_path_though_the_other_fell_silent_seconds_before_they_cross() {
    let (config, at_m_s) = (Config::mbcap_e(), 10.0);
    let room_m = predict::brake_distance_m(config::BrakeFit::Later, crate::Handling::Tracks, at_m_s)
        + config.safe_distance_m();
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.fly((-160.0, 0.0), at_m_s);
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(-100.0, -60.0)]) });
    driver.receive_course(&course(&[(-100.0, 300.0)]));
    let stops_at = (1..=6).map(|second| -160.0 + at_m_s * f64::from(second)).find(|&x| {
        let ordered = orders(&mut driver, Driver::check);
        driver.fly((x, 0.0), at_m_s);
        ordered == [Order::Hold]
    });
    let left_m = -100.0 - stops_at.expect("it stops");
    assert!(left_m >= room_m, "{left_m} m before the path, expected {room_m}");
}

/// Nearly across the path of one that is not there for seconds it would stop on that path, or right behind it.
#[test]
fn mbcap_16_it_flies_on_across_a_path_on_which_it_would_stop() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(-100.0, -80.0)]) });
    driver.receive_course(&course(&[(-100.0, 20.0)]));
    for second in 1..8 {
        driver.fly((-140.0 + 10.0 * f64::from(second), 0.0), 10.0);
        assert_eq!(orders(&mut driver, Driver::check), [], "after {second} s");
    }
}

#[test]
fn mbcap_16_in_the_path_of_a_silent_aircraft_it_moves_aside() {
    let mut driver = Driver::new(1, 2);
    driver.stand_still();
    let (x, y) = HERE;
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(x + 80.0, y + 3.0)]) });
    driver.receive_course(&course(&[(x - 300.0, y + 3.0)]));
    let moved = (1..=10).find_map(|_| orders(&mut driver, |d| d.wait(1)).first().copied());
    let Some(Order::FlyTo(aside)) = moved else { panic!("it moves aside, found {moved:?}") };
    assert!(aside.latitude_e7 < point(DVec2::new(x, y), 20.0).latitude_e7, "away from that path");
}

#[test]
fn mbcap_16_it_lands_clear_of_one_that_hovers_over_its_last_waypoint_without_a_word() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    falls_silent(&mut driver, &[(-250.0, 0.0)]);
    let stopped_s = (1..=20).find(|_| orders(&mut driver, |d| d.wait(1)) == [Order::Hold]);
    assert!((8..=12).contains(&stopped_s.expect("it stops")), "found {stopped_s:?} s: 130 m at 11 m/s");
    driver.done();
    let landed_s = (1..=200).find(|_| orders(&mut driver, |d| d.wait(1)) == [Order::Land]);
    assert!((118..=130).contains(&landed_s.expect("it lands")), "found {landed_s:?} s");
}

#[test]
fn mbcap_17_it_lands_aside_where_another_has_landed_at_the_end_of_its_mission() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    let (x, y) = LAST;
    driver.receive(Beacon { landing: true, ..beacon(Avoidance::Normal, None, &[(x + 3.0, y)]) });
    driver.feed(Input::Reached(1));
    let ended = orders(&mut driver, |d| d.fly((x - 1.0, y), 0.0));
    let [Order::FlyTo(aside)] = ended[..] else { panic!("it flies aside, found {ended:?}") };
    assert_eq!(driver.protocol.view().state, StateId::MovingAside);
    assert!(!driver.sent.landing, "others keep clear of it on its way");
    let aside = Frame::new(HOME).to_local(Position {
        latitude_e7: aside.latitude_e7,
        longitude_e7: aside.longitude_e7,
        altitude_mm: 0,
    });
    assert!(aside.truncate().distance(DVec2::new(x + 3.0, y)) > 10.0, "{aside}");
    assert_eq!(orders(&mut driver, |d| d.fly((aside.x, aside.y), 0.0)), [Order::Land]);
}

/// It fell silent before the end of our mission, on a course that leads past it: it may lie there.
#[test]
fn mbcap_17_it_lands_aside_of_the_course_of_one_that_fell_silent() {
    let mut driver = Driver::new(1, 2);
    driver.normal();
    let (x, y) = LAST;
    driver.fly((x - 200.0, y), 10.0);
    driver.receive(Beacon { speed_cm_s: 1_000, ..beacon(Avoidance::Normal, None, &[(x - 4.0, y - 40.0)]) });
    driver.receive_course(&course(&[(x - 4.0, y + 100.0)]));
    driver.now = driver.now + Duration::from_secs(300);
    driver.feed(Input::Reached(1));
    let ended = orders(&mut driver, |d| d.fly((x - 1.0, y), 0.0));
    let [Order::FlyTo(aside)] = ended[..] else { panic!("it flies aside, found {ended:?}") };
    let aside = Frame::new(HOME).to_local(Position {
        latitude_e7: aside.latitude_e7,
        longitude_e7: aside.longitude_e7,
        altitude_mm: 0,
    });
    assert!(aside.x - (x - 4.0) > 10.0, "{aside}");
}

#[test]
fn mbcap_14_three_that_wait_for_each_other_do_not_wait_for_ever() {
    let mut driver = Driver::new(1, 2);
    driver.stand_still();
    let landed_s = third(&mut driver, 1_000, Order::Land).expect("it lands");
    // 600 s for the other's conflicts, 8 of which have passed, then the 120 s of a deadlock.
    assert!((710..=716).contains(&landed_s), "found {landed_s} s");
    assert_eq!(driver.protocol.view().avoidance_tally.map(|t| t.deadlocks_failed), Some(1));
    driver.fly(HERE, 0.0);
    assert_eq!(driver.protocol.view().state, StateId::EmergencyLand);
}

#[test]
fn mbcap_15_what_fails_in_the_air_holds_and_broadcasts_and_lands_60_s_later() {
    for lead in [Driver::normal, Driver::stand_still, Driver::ordered_to_hold] {
        let mut driver = Driver::new(1, 2);
        lead(&mut driver);
        assert_eq!(orders(&mut driver, |d| d.feed(Input::Failed(Order::Resume))), [Order::Hold]);
        assert_eq!(driver.protocol.view().state, StateId::Holding);
        driver.wait(1);
        // For others it is an obstacle where it is, and in conflict with no aircraft.
        let Beacon { state, landing, avoiding, locations, .. } = driver.sent.clone();
        assert_eq!((state, landing, avoiding, locations.len()), (Avoidance::StandStill, false, None, 1));
        assert_eq!(orders(&mut driver, |d| d.wait(58)), [], "the operator may decide");
        assert_eq!(orders(&mut driver, |d| d.wait(1)), [Order::Land]);
        driver.at.landing = true;
        driver.wait(2);
        assert!(driver.sent.landing, "others need not keep clear any more");
        driver.disarm();
        assert_eq!(
            (driver.protocol.view().state, driver.protocol.poll_timeout().0),
            (StateId::Aborted, Instant::NEVER)
        );
    }
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.feed(Input::Failed(Order::Resume));
    assert_eq!(
        orders(&mut driver, |d| d.feed(Input::Failed(Order::Hold))),
        [Order::Land],
        "it cannot even hold"
    );
    let mut driver = Driver::new(1, 2);
    driver.normal();
    driver.feed(Input::Failed(Order::Resume));
    assert_eq!(orders(&mut driver, |d| d.command(Command::Return)), [Order::Return], "the operator decided");
    assert_eq!(orders(&mut driver, |d| d.wait(100)), []);
}

#[test]
fn mbcap_15_a_conflict_that_is_not_solved_lands_without_holding_as_published() {
    let mut driver = Driver::new(1, 2);
    let asked = orders(&mut driver, Driver::emergency_land);
    assert_eq!((asked.last(), driver.protocol.view().state), (Some(&Order::Land), StateId::EmergencyLand));
    assert_eq!(orders(&mut driver, |d| d.feed(Input::Failed(Order::Land))), []);
    assert_eq!(
        (driver.protocol.view().state, driver.sent.state),
        (StateId::EmergencyLand, Avoidance::EmergencyLand)
    );
    driver.disarm();
    assert_eq!(driver.protocol.view().state, StateId::Finished, "the protocol ended the flight");
    assert_eq!(driver.protocol.details().line, "landed: a conflict was not solved");
}

#[test]
fn mbcap_15_an_aircraft_that_disarms_without_having_been_asked_to_land_has_aborted() {
    for lead in [Driver::normal, Driver::stand_still, Driver::ordered_to_hold] {
        let mut driver = Driver::new(1, 2);
        lead(&mut driver);
        driver.disarm();
        assert_eq!(driver.protocol.view().state, StateId::Aborted);
    }
    // While taking off it can only be that the order fails, and that the operator tries again.
    let mut driver = Driver::new(1, 2);
    driver.take_off();
    driver.disarm();
    driver.wait(31);
    assert_eq!(driver.protocol.view().state, StateId::TakingOff, "its order is still under way");
    driver.feed(Input::Failed(CLIMB));
    assert_eq!(driver.protocol.view().state, StateId::SetupFinished);
}

#[test]
fn a_stop_is_refused_on_the_ground_after_the_flight_and_accepted_from_its_setup_on() {
    const STOPS: [Command; 3] = [Command::Hold, Command::Return, Command::Land];
    type Lead = fn(&mut Driver);
    let on_ground: [Lead; 3] = [
        |_| {},
        |d| {
            d.landing();
            d.disarm();
        },
        |d| {
            d.normal();
            d.command(Command::Land);
            d.disarm();
        },
    ];
    for lead in on_ground {
        let mut driver = Driver::new(1, 2);
        lead(&mut driver);
        let found = driver.protocol.view().state;
        for stop in STOPS {
            assert_eq!(driver.protocol.permits(stop), Err(Denied::OnGround { found }));
        }
        driver.at.armed = true;
        driver.report();
        for stop in STOPS {
            assert_eq!(driver.protocol.permits(stop), Ok(()), "{found}, armed by hand");
        }
    }
    // A stop that came while an aircraft waits for its start makes that start refused.
    let before: [Lead; 3] = [
        |d| d.command(Command::Setup),
        Driver::set_up,
        |d| {
            d.set_up();
            d.command(Command::Start);
        },
    ];
    for lead in before {
        let mut driver = Driver::new(1, 2);
        lead(&mut driver);
        driver.command(Command::Land);
        assert_eq!(driver.protocol.view().state, StateId::Aborted);
        assert!(driver.protocol.permits(Command::Start).is_err());
    }
}
