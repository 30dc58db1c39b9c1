//! Faults of a world, through all layers: what dies stays dead, a flight controller continues to its last target,
//! and the same faults give the same bytes.

#[path = "common/row.rs"]
mod row;

use wingbeat_agent::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::Duration;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::world::World;

use self::row::Row;

/// Three in line over two waypoints, two seconds after the first set off.
fn under_way() -> World {
    Row::default().fly(|world| row::all_move(world, 1), Duration::from_secs(2))
}

#[test]
fn a_companion_that_dies_sends_nothing_and_its_autopilot_flies_on_to_its_target() {
    let mut world = under_way();
    world.take_sent();
    world.inflict(world.now(), Fault::CompanionDies { vehicle: 2, guarded: false });
    world.run_until(world.now() + Duration::from_secs(60));
    assert!(world.is_dead(2) && world.is_left_alone(2) && !world.is_dead(1));
    let sent = world.take_sent();
    assert!(sent.iter().any(|s| s.vehicle == 1) && sent.iter().all(|s| s.vehicle != 2));
    let truth = world.truth(2);
    assert_eq!((truth.mode, truth.armed, truth.landed), (Mode::Guided, true, false));
    assert!((truth.local.y - 100.0).abs() < 2.0 && truth.velocity.length() < 0.5, "{truth:?}");
    assert!(matches!(world.command(2, "x", Command::Land), wingbeat_agent::Reply::Refused(_)));
}

#[test]
fn a_guardian_brakes_and_lands_the_aircraft_of_a_companion_that_dies() {
    let mut world = under_way();
    let before = world.truth(2).local;
    world.inflict(world.now(), Fault::CompanionDies { vehicle: 2, guarded: true });
    world.run_until(world.now() + Duration::from_secs(5));
    assert_eq!(world.truth(2).mode, Mode::Brake);
    world.run_until(world.now() + Duration::from_secs(60));
    let truth = world.truth(2);
    assert!(!truth.armed && truth.landed && truth.touchdown_m_s < 1.0, "{truth:?}");
    assert!((truth.local - before).truncate().length() < 35.0, "{truth:?}");
    assert!(!world.is_left_alone(2));
}

#[test]
fn an_aircraft_that_falls_is_on_the_ground_within_5_s_and_the_others_are_not() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::Falls { vehicle: 0 });
    world.run_until(world.now() + Duration::from_secs(5));
    assert!(world.truth(0).landed && world.truth(0).touchdown_m_s > 5.0, "{:?}", world.truth(0));
    assert!(world.is_dead(0) && !world.truth(1).landed);
}

#[test]
fn the_same_faults_give_the_same_bytes() {
    let fly = |share| {
        let mut world = under_way();
        let until = world.now() + Duration::from_secs(20);
        world.inflict(world.now() + Duration::from_millis(1_234), Fault::Loss { share, until });
        world.inflict(world.now() + Duration::from_secs(3), Fault::RadioSilent { vehicle: 1, until });
        world.run_until(world.now() + Duration::from_secs(40));
        (world.trace_hash(), world.channel_counters().lost)
    };
    let (hash, lost) = fly(0.5);
    assert_eq!((hash, lost), fly(0.5));
    assert!(lost > 0 && fly(0.9).1 > lost);
}
