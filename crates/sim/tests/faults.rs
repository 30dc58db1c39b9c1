//! Faults of a world, through all layers: what dies stays dead, a flight controller continues to its last target,
//! and the same faults give the same bytes.

use crate::common::row;

use wingbeat_agent::{Command, LinkState, Phase, Reply, StateId, Status};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Frame, Instant};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::flight_controller::Parameter;
use wingbeat_sim::world::World;
use wingbeat_wire::Refused;

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
        world.inflict(
            world.now() + Duration::from_secs(3),
            Fault::RadioSilent { vehicle: 1, lost: Direction::Both, until },
        );
        world.run_until(world.now() + Duration::from_secs(40));
        (world.trace_hash(), world.channel_counters().lost)
    };
    let (hash, lost) = fly(0.5);
    assert_eq!((hash, lost), fly(0.5));
    assert!(lost > 0 && fly(0.9).1 > lost);
}

fn run(world: &mut World, seconds: u64) {
    world.run_until(world.now() + Duration::from_secs(seconds));
}

fn link(world: &World, vehicle: usize) -> LinkState {
    world.status(vehicle).flight_controller.link
}

/// Which aircraft sent datagrams in the next so many seconds.
fn senders(world: &mut World, seconds: u64) -> Vec<usize> {
    world.take_sent();
    run(world, seconds);
    let sent = world.take_sent();
    (0..world.count()).filter(|i| sent.iter().any(|s| s.vehicle == *i)).collect()
}

#[test]
fn a_cut_serial_line_silences_the_companion_and_its_autopilot_flies_on_to_its_target() {
    for lost in [Direction::Both, Direction::Received] {
        let mut world = under_way();
        let until = world.now() + Duration::from_secs(30);
        world.inflict(world.now(), Fault::SerialLine { vehicle: 2, lost, flaps: Duration::ZERO, until });
        run(&mut world, 2);
        assert_eq!(link(&world, 2), LinkState::Lost);
        assert_eq!(senders(&mut world, 5), [0, 1], "{lost:?}: it does not know where it is");
        run(&mut world, 20);
        let truth = world.truth(2);
        assert_eq!((truth.mode, truth.landed), (Mode::Guided, false));
        assert!((truth.local.y - 100.0).abs() < 2.0, "{truth:?}");
        run(&mut world, 5);
        assert_eq!(link(&world, 2), LinkState::Up);
    }
}

#[test]
fn what_is_commanded_over_a_line_that_loses_it_happens_when_the_line_is_whole_again() {
    let mut world = under_way();
    let until = world.now() + Duration::from_secs(10);
    let cut = Fault::SerialLine { vehicle: 2, lost: Direction::Sent, flaps: Duration::ZERO, until };
    world.inflict(world.now(), cut);
    run(&mut world, 1);
    assert_eq!(world.command(2, "hold", Command::Hold), Reply::Accepted);
    run(&mut world, 8);
    assert_eq!((world.truth(2).mode, link(&world, 2)), (Mode::Guided, LinkState::Up));
    run(&mut world, 5);
    assert_eq!(world.truth(2).mode, Mode::Brake);
}

#[test]
fn a_line_that_flaps_is_cut_and_whole_by_turns() {
    let mut world = under_way();
    let (flaps, until) = (Duration::from_secs(4), Instant::NEVER);
    world.inflict(world.now(), Fault::SerialLine { vehicle: 2, lost: Direction::Both, flaps, until });
    let mut seen = vec![];
    for _ in 0..24 {
        run(&mut world, 1);
        seen.push(link(&world, 2) == LinkState::Up);
    }
    let changes = seen.windows(2).filter(|w| w[0] != w[1]).count();
    assert!((5..=6).contains(&changes), "{seen:?}");
}

#[test]
fn an_autopilot_that_restarts_falls_in_flight_and_its_companion_says_so() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::AutopilotReboots { vehicle: 2 });
    run(&mut world, 8);
    let truth = world.truth(2);
    assert!(truth.landed && !truth.armed && truth.touchdown_m_s > 5.0, "{truth:?}");
    assert!(!world.status(2).engaged && !world.is_dead(2));
    assert!(world.log().iter().any(|l| l.vehicle == 2 && l.entry.text.contains("rebooted")));
}

#[test]
fn motors_that_fail_let_the_aircraft_fall_and_the_companion_live() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::MotorsFail { vehicle: 2 });
    run(&mut world, 5);
    assert!(world.truth(2).touchdown_m_s > 5.0 && !world.is_dead(2));
}

#[test]
fn an_empty_battery_stops_the_motors() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::BatteryAt { vehicle: 2, percent: 0.0 });
    run(&mut world, 5);
    assert!(world.truth(2).landed && world.truth(2).touchdown_m_s > 5.0, "{:?}", world.truth(2));
}

#[test]
fn a_pilot_who_takes_an_aircraft_has_it_where_it_is() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::PilotTakes { vehicle: 2, mode: Mode::Loiter });
    let before = world.truth(2).local.z;
    run(&mut world, 30);
    let truth = world.truth(2);
    assert!(truth.mode == Mode::Loiter && (truth.local.z - before).abs() < 1.0, "{truth:?}");
    assert!(!world.status(2).engaged);
}

/// Each cause, with what ArduCopter's parameters ask for.
#[test]
fn failsafes_act_by_their_parameters() {
    let until = Instant::NEVER;
    type Case<'a> = (Fault, &'a [(Parameter, f32)], Mode);
    let cases: [Case<'_>; 5] = [
        (Fault::TransmitterLost { vehicle: 2, until }, &[], Mode::Rtl),
        (Fault::TransmitterLost { vehicle: 2, until }, &[(Parameter::FS_THR_ENABLE, 3.0)], Mode::Land),
        (
            Fault::BatteryAt { vehicle: 2, percent: 10.0 },
            &[(Parameter::FS_BATT_ENABLE, 1.0), (Parameter::FS_BATT_MAH, 2_000.0)],
            Mode::Land,
        ),
        (Fault::GnssLost { vehicle: 2, until }, &[], Mode::Land),
        (Fault::EstimateDiverges { vehicle: 2, until }, &[], Mode::Land),
    ];
    for (fault, parameters, mode) in cases {
        let row = Row { parameters, ..Row::default() };
        let mut world = row.fly(|world| row::all_move(world, 1), Duration::from_secs(2));
        world.inflict(world.now(), fault);
        run(&mut world, 7);
        assert_eq!(world.truth(2).mode, mode, "{fault:?}");
        assert!(!world.status(2).engaged, "{fault:?}");
    }
}

/// A transmitter that is received again starts nothing: the pilot has the aircraft.
#[test]
fn a_transmitter_that_is_received_again_changes_no_mode() {
    let mut world = under_way();
    let until = world.now() + Duration::from_secs(3);
    world.inflict(world.now(), Fault::TransmitterLost { vehicle: 2, until });
    run(&mut world, 6);
    assert_eq!(world.truth(2).mode, Mode::Rtl);
}

#[test]
fn an_estimate_that_drifts_takes_the_aircraft_with_it_and_lands_it_on_the_ground() {
    let mut world = under_way();
    let reported = |world: &World| world.status(2).navigation.unwrap().height_m;
    let (within, offset_m) = (Duration::from_secs(4), DVec3::new(0.0, 0.0, 3.0));
    let until = Instant::NEVER;
    world.inflict(world.now(), Fault::EstimateDrifts { vehicle: 2, offset_m, within, until });
    run(&mut world, 8);
    let off_m = reported(&world) - world.truth(2).local.z;
    assert!((off_m - 3.0).abs() < 0.3, "{off_m}");
    assert_eq!(world.command(2, "land", Command::Land), Reply::Accepted);
    run(&mut world, 70);
    let truth = world.truth(2);
    assert!(!truth.armed && truth.local.z.abs() < 0.1, "{truth:?}");

    let mut world = under_way();
    let offset_m = DVec3::new(10.0, 0.0, 0.0);
    let until = world.now() + Duration::from_secs(20);
    let off_m = |world: &World| {
        let reported = world.status(2).navigation.unwrap().position;
        let frame = Frame::new(world.truth(2).position);
        frame.to_local(reported).x
    };
    world.inflict(world.now(), Fault::EstimateDrifts { vehicle: 2, offset_m, within, until });
    run(&mut world, 10);
    assert!((off_m(&world) - 10.0).abs() < 0.5, "{}", off_m(&world));
    run(&mut world, 20);
    assert!(off_m(&world).abs() < 0.5, "{}", off_m(&world));
}

#[test]
fn a_mute_radio_is_not_received_and_receives() {
    let mut world = under_way();
    let received = |world: &World, i| world.status(i).received;
    run(&mut world, 30);
    let cut = |lost| Fault::RadioSilent { vehicle: 2, lost, until: Instant::NEVER };
    world.inflict(world.now(), cut(Direction::Sent));
    let before = received(&world, 2);
    run(&mut world, 3);
    assert!(received(&world, 2) > before + 5);
    world.inflict(world.now(), cut(Direction::Received));
    let before = received(&world, 2);
    run(&mut world, 3);
    assert_eq!(received(&world, 2), before);
}

#[test]
fn late_and_doubled_datagrams_arrive_out_of_order_and_twice_and_count_once() {
    let mut world = under_way();
    let until = world.now() + Duration::from_secs(10);
    let most = Duration::from_secs(2);
    world.inflict(world.now(), Fault::Doubled { share: 0.5, most, until });
    world.inflict(world.now(), Fault::Late { share: 0.5, most, until });
    let sum = |world: &World, of: &dyn Fn(&Status) -> u64| (0..3).map(|i| of(&world.status(i))).sum::<u64>();
    let received = |world: &World| sum(world, &|status| status.received);
    let replayed = |world: &World| sum(world, &|status| status.refused[Refused::Replayed as usize]);
    let (received_before, replayed_before) = (received(&world), replayed(&world));
    let sent_before = world.channel_counters().sent;
    run(&mut world, 14);
    let (received, replayed) = (received(&world) - received_before, replayed(&world) - replayed_before);
    let sent = world.channel_counters().sent - sent_before;
    // Each reaches two others, and in ten of fourteen seconds one in two of them twice.
    assert!((received + replayed) as f64 > sent as f64 * 2.2, "{received} and {replayed} of {sent}");
    assert!(received < sent * 2 && received > sent, "{received} and {replayed} of {sent}");
}

#[test]
fn a_daemon_that_restarts_has_forgotten_its_flight() {
    let mut world = under_way();
    let until = world.now() + Duration::from_secs(4);
    world.inflict(world.now(), Fault::DaemonRestarts { vehicle: 2, guarded: false, until });
    assert_eq!(senders(&mut world, 3), [0, 1]);
    assert!(matches!(world.command(2, "x", Command::Land), Reply::Refused(_)));
    run(&mut world, 4);
    assert_eq!(world.agent_of(2).view().state, StateId::Start);
    // Its target is of the flight that is not known any more.
    assert_eq!((link(&world, 2), world.truth(2).mode), (LinkState::Up, Mode::Brake));
    assert_eq!(world.command(2, "land", Command::Land), Reply::Accepted);
    run(&mut world, 3);
    assert_eq!(world.truth(2).mode, Mode::Land);
}

#[test]
fn a_guardian_that_lands_an_aircraft_keeps_it_until_it_is_down() {
    let mut world = under_way();
    // After its hold: by then it lands.
    let until = world.now() + Duration::from_secs(15);
    world.inflict(world.now(), Fault::DaemonRestarts { vehicle: 2, guarded: true, until });
    run(&mut world, 5);
    assert_eq!(world.truth(2).mode, Mode::Brake);
    run(&mut world, 12);
    assert_eq!((world.truth(2).mode, link(&world, 2)), (Mode::Land, LinkState::NeverSeen));
    run(&mut world, 60);
    assert!(!world.truth(2).armed);
    assert_eq!((link(&world, 2), world.phase(2)), (LinkState::Up, Phase::Start));
}

#[test]
fn a_guardian_that_holds_an_aircraft_gives_it_back_and_it_rejoins_its_swarm() {
    let mut world = under_way();
    let until = world.now() + Duration::from_secs(3);
    world.inflict(world.now(), Fault::DaemonRestarts { vehicle: 2, guarded: true, until });
    run(&mut world, 2);
    assert_eq!(world.truth(2).mode, Mode::Brake);
    run(&mut world, 4);
    assert!(world.truth(2).armed && link(&world, 2) == LinkState::Up);
    assert!(matches!(world.phase(2), Phase::Moving | Phase::Waiting), "{:?}", world.phase(2));
    run(&mut world, 300);
    assert_eq!(world.phase(2), Phase::Finished);
    assert!(!world.truth(2).armed);
}

#[test]
fn without_its_guardian_a_companion_dies_unguarded() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::GuardianDies { vehicle: 2 });
    world.inflict(world.now() + Duration::from_secs(1), Fault::CompanionDies { vehicle: 2, guarded: true });
    run(&mut world, 10);
    assert!(world.is_left_alone(2));
    assert_eq!(world.truth(2).mode, Mode::Guided);
}

/// The effect of a command is its mode; that nothing comes of it is to be seen from the position only.
#[test]
fn an_aircraft_that_is_stuck_reports_the_mode_and_stays() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::Stuck { vehicle: 2, until: Instant::NEVER });
    run(&mut world, 10);
    let before = world.truth(2).local;
    assert_eq!(world.command(2, "land", Command::Land), Reply::Accepted);
    run(&mut world, 30);
    let truth = world.truth(2);
    assert!(truth.mode == Mode::Land && (truth.local - before).length() < 0.5, "{truth:?}");
}

/// Of a failsafe the operator takes the aircraft back; where its text is garbled it counts as the pilot's.
#[test]
fn a_failsafe_whose_text_is_garbled_counts_as_the_pilots() {
    for garbled in [false, true] {
        let mut world = under_way();
        let until = Instant::NEVER;
        if garbled {
            world.inflict(world.now(), Fault::TextsGarbled { vehicle: 2, until });
        }
        world.inflict(world.now(), Fault::EstimateDiverges { vehicle: 2, until });
        run(&mut world, 5);
        assert_eq!(world.truth(2).mode, Mode::Land);
        let refused = matches!(world.command(2, "hold", Command::Hold), Reply::Refused(_));
        assert_eq!(refused, garbled);
    }
}

/// Without a processor the companion sends nothing and answers nothing. Then it takes what arrived
/// meanwhile, and its flight continues.
#[test]
fn a_companion_without_a_processor_is_silent_for_each_stretch_and_continues() {
    let mut world = under_way();
    world.take_sent();
    let (stall, every) = (Duration::from_millis(1_500), Duration::from_secs(3));
    let until = world.now() + Duration::from_secs(12);
    world.inflict(world.now(), Fault::Starved { vehicle: 1, stall, every, until });
    run(&mut world, 12);
    let sent = world.take_sent();
    let longest = |vehicle: usize| {
        let at: Vec<Instant> = sent.iter().filter(|s| s.vehicle == vehicle).map(|s| s.at).collect();
        at.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
    };
    let (starved, other) = (longest(1), longest(0));
    assert!(starved > Duration::from_millis(1_400) && starved < Duration::from_secs(2), "{starved:?}");
    assert!(other < Duration::from_millis(1_000), "{other:?}");
    run(&mut world, 300);
    assert_eq!(world.phase(1), Phase::Finished);
}

#[test]
fn a_second_ground_station_takes_an_aircraft_and_a_refused_command_does_not() {
    let mut world = under_way();
    world.inflict(world.now(), Fault::SecondGround { vehicle: 2, mode: Mode::Loiter });
    run(&mut world, 3);
    assert_eq!(world.truth(2).mode, Mode::Loiter);
    assert!(!world.status(2).engaged && world.status(1).engaged);
    assert!(
        world
            .log()
            .iter()
            .any(|line| line.vehicle == 2 && line.entry.text.contains("took over: mode LOITER"))
    );
    // RTL needs a position.
    world.inflict(world.now(), Fault::EstimateDiverges { vehicle: 1, until: Instant::NEVER });
    world.inflict(world.now() + Duration::from_secs(2), Fault::SecondGround { vehicle: 1, mode: Mode::Rtl });
    run(&mut world, 4);
    assert_eq!(world.truth(1).mode, Mode::Land);
    assert!(world.is_in_failsafe_mode(1) && !world.is_in_failsafe_mode(2));
}
