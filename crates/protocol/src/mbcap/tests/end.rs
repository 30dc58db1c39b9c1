//! The end of a mission: ArduCopter says it a stopping distance early, once, and AUTO after it begins anew.

use super::*;

/// A protocol in flight in the given state, at second 100, in conflict with `other`.
fn in_state(avoidance: Avoidance, me: u64, other: u64) -> Craft {
    let mut craft = Craft::new(Config::mbcap_e(), me, &[(-300.0, 0.0), (300.0, 0.0)]);
    let at = craft.telemetry();
    craft.handle(Instant::ZERO, Input::Telemetry(at));
    craft.handle(Instant::ZERO, Input::Operator(Command::Setup));
    craft.handle(Instant::ZERO, Input::Operator(Command::Start));
    craft.handle(Instant::ZERO, Input::Reached(0));
    let at = craft.telemetry();
    craft.handle(Instant::from_secs(89), Input::Telemetry(at));
    let p = &mut craft.protocol;
    (p.state, p.since) = (State::Flying(avoidance), Instant::from_secs(90));
    p.told.state = Some(avoidance);
    if avoidance != Avoidance::Normal {
        p.avoiding = Some(VehicleId(other));
    }
    craft.mode = None;
    craft
}

/// What the flight controller is asked for by an input.
fn orders(craft: &mut Craft, now: Instant, input: Input<'_>) -> Vec<Order> {
    let mut actions = Actions::new();
    craft.protocol.handle(now, input, &mut actions);
    let order = |action| if let Action::Order(order) = action { Some(order) } else { None };
    actions.into_iter().filter_map(order).collect()
}

#[test]
fn mbcap_13_a_mission_that_has_ended_is_not_begun_anew() {
    let s = Instant::from_secs;
    // The lower one waits. While it braked, the last waypoint counted as reached, 50 m before it.
    let mut lower = in_state(Avoidance::GoOnPlease, 1, 2);
    lower.handle(s(91), Input::Reached(1));
    lower.protocol.overtaken = true;
    assert!(!lower.protocol.is_landing(), "it stands in the other's path");
    let last = point(DVec2::new(300.0, 0.0), 20.0);
    assert_eq!(orders(&mut lower, s(101), Input::Wake), [Order::FlyTo(last)]);
    assert_eq!(orders(&mut lower, s(101), Input::Done(Order::FlyTo(last))), []);
    assert_eq!(lower.protocol.state_id(), StateId::Normal);
    // It has only just begun to move.
    let at = lower.telemetry();
    assert_eq!(orders(&mut lower, s(102), Input::Telemetry(at)), []);
    lower.at = DVec2::new(298.5, 0.0);
    let at = lower.telemetry();
    assert_eq!(orders(&mut lower, s(103), Input::Telemetry(at)), [Order::Land]);
    // The higher one passes the other in the same way.
    let mut higher = in_state(Avoidance::StandStill, 2, 1);
    higher.handle(s(91), Input::Reached(1));
    let p = Frame::new(HOME).to_position(DVec3::new(-280.0, 0.0, 20.0));
    let place =
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: p.altitude_mm };
    let gives_way = Message::Beacon(Beacon {
        state: Avoidance::GoOnPlease,
        avoiding: Some(VehicleId(2)),
        planned_speed_cm_s: 1_000,
        locations: core::iter::once(place).collect(),
        ..Beacon::default()
    });
    let heard = Input::Message { from: VehicleId(1), flight: 0, message: &gives_way };
    assert_eq!(orders(&mut higher, s(100), heard), [Order::FlyTo(last)]);
    higher.handle(s(101), Input::Done(Order::FlyTo(last)));
    assert_eq!(higher.protocol.state_id(), StateId::Overtaking);
}

#[test]
fn mbcap_13_a_mission_ends_though_nobody_said_that_the_last_waypoint_was_reached() {
    let s = Instant::from_secs;
    let mut craft = in_state(Avoidance::Normal, 1, 2);
    craft.at = DVec2::new(299.0, 0.0);
    craft.velocity = DVec2::new(3.0, 0.0);
    let at = craft.telemetry();
    assert_eq!(orders(&mut craft, s(101), Input::Telemetry(at)), [], "it may fly over it");
    craft.velocity = DVec2::ZERO;
    let at = craft.telemetry();
    assert_eq!(orders(&mut craft, s(102), Input::Telemetry(at)), [Order::Land]);
    // And one that stops short of a waypoint that it reached is not waited for.
    let mut short = in_state(Avoidance::Normal, 1, 2);
    short.handle(s(91), Input::Reached(1));
    short.at = DVec2::new(295.0, 0.0);
    let at = short.telemetry();
    assert_eq!(orders(&mut short, s(93), Input::Telemetry(at)), [], "it may have only just begun to move");
    assert_eq!(orders(&mut short, s(101), Input::Telemetry(at)), [Order::Land]);
}

#[test]
fn mbcap_13_who_passes_and_has_arrived_keeps_nobody_waiting() {
    let s = Instant::from_secs;
    let mut higher = in_state(Avoidance::Overtaking, 2, 1);
    // The other stands beside the last waypoint, so we never get far from it.
    let p = Frame::new(HOME).to_position(DVec3::new(300.0, 12.0, 20.0));
    let place =
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: p.altitude_mm };
    let waits = Message::Beacon(Beacon {
        state: Avoidance::GoOnPlease,
        avoiding: Some(VehicleId(2)),
        locations: core::iter::once(place).collect(),
        ..Beacon::default()
    });
    let event = higher.protocol.event;
    higher.at = DVec2::new(290.0, 0.0);
    let at = higher.telemetry();
    higher.handle(s(96), Input::Telemetry(at));
    higher.handle(s(96), Input::Message { from: VehicleId(1), flight: 0, message: &waits });
    higher.handle(s(96), Input::Reached(1));
    assert_eq!(
        (higher.protocol.state_id(), higher.protocol.event),
        (StateId::Overtaking, event),
        "not there yet"
    );
    higher.at = DVec2::new(299.5, 0.0);
    let at = higher.telemetry();
    higher.handle(s(98), Input::Telemetry(at));
    assert_eq!(higher.protocol.event, event + 1, "the other learns that it may go on");
    let at = higher.telemetry();
    assert_eq!(orders(&mut higher, s(99), Input::Telemetry(at)), [Order::Land]);
}

/// A beacon of aircraft 2 that stands in conflict with a third.
fn has_a_third() -> Message {
    let p = Frame::new(HOME).to_position(DVec3::new(-260.0, 0.0, 20.0));
    let place =
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: p.altitude_mm };
    Message::Beacon(Beacon {
        state: Avoidance::StandStill,
        avoiding: Some(VehicleId(9)),
        locations: core::iter::once(place).collect(),
        ..Beacon::default()
    })
}

/// A second passes: a report, and what else there is to hear.
fn second(craft: &mut Craft, s: u64, input: Input<'_>) -> Vec<Order> {
    let at = craft.telemetry();
    let mut asked = orders(craft, Instant::from_secs(s), Input::Telemetry(at));
    asked.extend(orders(craft, Instant::from_secs(s), input));
    asked
}

#[test]
fn mbcap_14_who_waits_for_one_that_is_heard_no_more_goes_on() {
    let mut craft = in_state(Avoidance::StandStill, 1, 2);
    let told = has_a_third();
    let heard = Input::Message { from: VehicleId(2), flight: 0, message: &told };
    for s in 91..=300 {
        assert_eq!(second(&mut craft, s, heard), [], "its turn comes, second {s}");
    }
    // Then it is silent. Its last word counts for 10 s, and the wait for 120 s from then.
    let resumed = (301..=500).find(|&s| second(&mut craft, s, Input::Wake) == [Order::Resume]);
    let resumed_s = resumed.expect("it goes on");
    assert!((428..=432).contains(&resumed_s), "found {resumed_s} s");
}

#[test]
fn mbcap_14_three_that_wait_for_each_other_do_not_wait_for_ever() {
    let mut craft = in_state(Avoidance::Normal, 1, 2);
    craft.protocol.adopt(VehicleId(2));
    craft.protocol.enter(Instant::from_secs(90), Avoidance::StandStill, &mut Actions::new());
    let told = has_a_third();
    let heard = Input::Message { from: VehicleId(2), flight: 0, message: &told };
    let landed = (91..=1_000).find(|&s| second(&mut craft, s, heard) == [Order::Land]);
    // 600 s of turns, then the 120 s of a deadlock.
    let landed_s = landed.expect("it lands");
    assert!((808..=814).contains(&landed_s), "found {landed_s} s");
    assert_eq!(craft.protocol.tally.deadlocks_failed, 1);
}
