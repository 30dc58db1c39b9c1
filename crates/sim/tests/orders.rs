//! An operator's orders by radio, through all layers: who is believed, and what is passed on.

use crate::common::row;

use wingbeat_agent::{Command, Phase, Reply, Stage};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::keys::CONSOLE;
use wingbeat_sim::world::World;
use wingbeat_wire::{
    Addressees, Claim, CommandId, Datagram, Message, Order, OrderProgress, Point, Refused, Sealed, Signer,
    VehicleId,
};

use self::row::Row;

const COUNT: usize = 4;
const ALL: [usize; COUNT] = [0, 1, 2, 3];
/// A member that is neither leader nor master.
const MEMBER: usize = 3;

fn id(vehicle: usize) -> VehicleId {
    VehicleId(vehicle as u64 + 1)
}

/// Four on their leg, signed, with a console.
fn under_way() -> World {
    let row = Row { count: COUNT, console: true, mission_m: &[(0.0, 0.0), (0.0, 400.0)], ..Row::default() };
    row.fly(|world| row::all_move(world, COUNT), Duration::from_secs(2))
}

fn run(world: &mut World, for_time: Duration) {
    world.run_until(world.now() + for_time);
}

fn flight(world: &World) -> u32 {
    let flight = world.agent_of(0).view().swarm.flight;
    assert_ne!(flight, 0, "drawn at setup");
    flight
}

fn exclude() -> Command {
    Command::Exclude { member: id(MEMBER) }
}

fn order(command: Command, name: &str) -> Message {
    Message::Order(Order { id: CommandId::try_from(name).unwrap(), to: Addressees::All, command })
}

/// What its sender seals now.
fn sealed(world: &World, signer: &Signer, from: VehicleId, flight: u32, message: Message) -> Vec<u8> {
    let counter = world.now().as_micros();
    signer.seal(&mut Datagram { from, counter, flight, message }.draft().unwrap()).to_vec()
}

fn of_console(world: &World, flight: u32, message: Message) -> Vec<u8> {
    sealed(world, world.keys().console(), CONSOLE, flight, message)
}

fn refused(world: &World, vehicle: usize, reason: Refused) -> u64 {
    world.status(vehicle).refused[reason as usize]
}

fn modes(world: &World) -> Vec<Mode> {
    ALL.map(|i| world.truth(i).mode).to_vec()
}

fn has_excluded(world: &World, vehicle: usize) -> bool {
    world.agent_of(vehicle).absentees().iter().any(|a| a.id == id(MEMBER) && a.excluded_by.is_some())
}

#[test]
fn an_order_is_carried_out_by_all_where_half_is_lost_and_then_no_longer_repeated() {
    for command in [Command::Hold, Command::Return, Command::Land, Command::RecoverControl] {
        let mut world = under_way();
        let flown = modes(&world);
        world.inflict(world.now(), Fault::Loss { share: 0.5, until: Instant::NEVER });
        let pressed = world.now();
        world.press("stop", command, &ALL);
        while ALL.iter().any(|&i| world.console_repeats("stop", i)) {
            run(&mut world, Duration::from_millis(100));
            assert!(world.now() < pressed + Duration::from_secs(10), "{command}: {:?}", modes(&world));
        }
        for i in ALL {
            let status = world.status(i);
            let found: Vec<_> = status.commands.iter().filter(|c| c.id == "stop").collect();
            assert!(found.len() == 1 && found[0].stage == Stage::EffectSeen, "{command}, {i}: {found:?}");
        }
        match command {
            Command::RecoverControl => assert!(ALL.iter().all(|&i| !world.status(i).engaged)),
            _ => assert_ne!(modes(&world), flown, "{command}"),
        }
    }
}

#[test]
fn an_order_that_reaches_one_aircraft_reaches_all() {
    let mut world = under_way();
    let bytes = of_console(&world, 0, order(Command::Hold, "h"));
    world.take_sent();
    world.inject(1, &bytes);
    run(&mut world, Duration::from_secs(2));
    assert_eq!(modes(&world), [Mode::Brake; COUNT]);
    let relayed = world.take_sent().iter().filter(|sent| *sent.bytes == *bytes).count();
    assert!((1..=COUNT).contains(&relayed), "each passes it on once at most: {relayed}");
}

/// With all the keys of one aircraft, the leader's at that.
#[test]
fn a_captured_aircraft_excludes_no_member_and_orders_nothing() {
    let mut world = under_way();
    let number = flight(&world);
    for vehicle in ALL {
        for (i, message) in
            [Message::Exclude { member: id(MEMBER) }, order(exclude(), "x"), order(Command::Land, "l")]
                .into_iter()
                .enumerate()
        {
            let captured = usize::from(vehicle == 0);
            let before = refused(&world, vehicle, Refused::NotPermitted);
            let bytes = sealed(&world, world.keys().signer(captured), id(captured), number, message);
            world.inject(vehicle, &bytes);
            run(&mut world, Duration::from_millis(1));
            assert_eq!(refused(&world, vehicle, Refused::NotPermitted), before + 1, "{vehicle}, {i}");
        }
    }
    run(&mut world, Duration::from_secs(2));
    assert!(ALL.iter().all(|&i| world.phase(i) == Phase::Moving && !has_excluded(&world, i)));
    // Nor in the console's name.
    let bytes = sealed(&world, world.keys().signer(1), CONSOLE, number, order(exclude(), "x"));
    world.inject(0, &bytes);
    run(&mut world, Duration::from_millis(1));
    assert_eq!(refused(&world, 0, Refused::Signature), 1);
}

/// A member that has not failed, with all its keys, towards another that is not the leader either.
#[test]
fn what_a_captured_member_says_of_its_leader_commands_nothing() {
    let mut world = under_way();
    let number = flight(&world);
    let leader = ALL.into_iter().find(|&i| world.agent_of(i).view().swarm.leader).unwrap();
    let victim = ALL.into_iter().find(|&i| i != leader && i != MEMBER).unwrap();
    assert_ne!(leader, MEMBER);
    let at = world.truth(MEMBER).position;
    let at = Point { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, height_mm: 20_000 };
    let send = |world: &mut World, message: Message, reason: Option<Refused>| {
        let count = |world: &World| reason.map_or(0, |reason| refused(world, victim, reason));
        let (before, what) = (count(world), format!("{message:?}"));
        let bytes = sealed(world, world.keys().signer(MEMBER), id(MEMBER), number, message);
        world.inject(victim, &bytes);
        run(world, Duration::from_millis(1));
        assert_eq!(count(world), before + u64::from(reason.is_some()), "{what}");
        assert_eq!(world.phase(victim), Phase::Moving, "{what}");
    };
    // In its own name it reports, and commands nothing.
    for slot in 0..COUNT as u8 {
        let following = Message::Following { waypoint: 1, reached: false, leader: slot, at };
        send(&mut world, following, None);
    }
    // In the leader's name, without the leader's key,
    let passed = |world: &World, signer: usize, from: usize, message: Message| {
        let bytes = sealed(world, world.keys().signer(signer), id(from), number, message);
        Message::Passed(Sealed::from_slice(&bytes).unwrap())
    };
    let forged = passed(&world, MEMBER, leader, Message::LandHere { at });
    send(&mut world, forged, Some(Refused::Signature));
    // its own as if that were a leader's,
    let own = passed(&world, MEMBER, MEMBER, Message::LandHere { at });
    send(&mut world, own, Some(Refused::UnexpectedSender));
    // what is no command, and no datagram at all.
    let report = passed(&world, leader, leader, Message::Alive { at });
    send(&mut world, report, Some(Refused::UnexpectedSender));
    send(&mut world, Message::Passed(Sealed::new()), Some(Refused::Empty));
    run(&mut world, Duration::from_secs(2));
    assert!(ALL.iter().all(|&i| world.phase(i) == Phase::Moving), "all fly on");
    // In its own name: it leaves, and is believed about itself.
    send(&mut world, Message::LandHere { at }, Some(Refused::UnexpectedSender));
    run(&mut world, Duration::from_secs(2));
    assert!(ALL.iter().all(|&i| world.phase(i) == Phase::Moving), "all fly on");
    // What the leader itself sealed counts, whatever brings it.
    let genuine = passed(&world, leader, leader, Message::LandHere { at });
    let bytes = sealed(&world, world.keys().signer(MEMBER), id(MEMBER), number, genuine);
    world.inject(victim, &bytes);
    run(&mut world, Duration::from_secs(1));
    assert_eq!(world.phase(victim), Phase::Aborted);
}

/// It reaches the leader alone, while another member receives nothing for far longer than a datagram may be old.
#[test]
fn an_exclusion_is_passed_on_as_the_console_signed_it_to_one_that_was_out_of_range() {
    let mut world = under_way();
    let leader = ALL.into_iter().find(|&i| world.agent_of(i).view().swarm.leader).unwrap();
    let absent = ALL.into_iter().find(|&i| i != leader && i != MEMBER).unwrap();
    let until = world.now() + Duration::from_secs(9);
    for vehicle in [absent, MEMBER] {
        world.inflict(world.now(), Fault::RadioSilent { vehicle, lost: Direction::Both, until });
    }
    let number = flight(&world);
    let bytes = of_console(&world, number, order(exclude(), "x"));
    world.inject(leader, &bytes);
    run(&mut world, Duration::from_millis(10));
    // It received a newer order, for another aircraft: by its console's counter the exclusion is old.
    let to = Addressees::Listed([id(COUNT)].into_iter().collect());
    let other = Order { id: "o".try_into().unwrap(), to, command: Command::Hold };
    world.inject(absent, &of_console(&world, 0, Message::Order(other)));
    run(&mut world, Duration::from_millis(10));
    assert_eq!(refused(&world, absent, Refused::Impossible), 0);
    world.run_until(until);
    assert!(has_excluded(&world, leader) && !has_excluded(&world, absent));
    world.take_sent();
    run(&mut world, Duration::from_secs(5));
    assert!(ALL.iter().filter(|&&i| i != MEMBER).all(|&i| has_excluded(&world, i)), "all know it");
    assert_eq!(world.phase(MEMBER), Phase::Aborted);
    let sent = world.take_sent();
    assert!(sent.iter().any(|sent| *sent.bytes == *bytes), "byte for byte");
    assert!(ALL.iter().all(|&i| refused(&world, i, Refused::NotPermitted) == 0));
}

#[test]
fn an_exclusion_of_another_flight_is_refused() {
    let mut world = under_way();
    let number = flight(&world);
    world.inject(0, &of_console(&world, number ^ 1, order(exclude(), "x")));
    run(&mut world, Duration::from_secs(1));
    assert!(refused(&world, 0, Refused::OtherFlight) >= 1 && !has_excluded(&world, 0));
}

#[test]
fn a_recorded_order_and_one_that_was_withheld_are_refused() {
    let mut world = under_way();
    let hold = of_console(&world, 0, order(Command::Hold, "h"));
    run(&mut world, Duration::from_millis(10));
    let withheld = of_console(&world, 0, order(Command::Land, "l"));
    world.inject(0, &hold);
    run(&mut world, Duration::from_secs(3));
    let before = [Refused::Replayed, Refused::Stale].map(|reason| refused(&world, 0, reason));
    world.inject(0, &hold);
    world.inject(0, &withheld);
    run(&mut world, Duration::from_millis(1));
    let after = [Refused::Replayed, Refused::Stale].map(|reason| refused(&world, 0, reason));
    assert_eq!(after, before.map(|count| count + 1));
    assert_eq!(world.truth(0).mode, Mode::Brake, "no landing");
}

/// A program of the console: its session, and its clock at the world's time zero.
#[derive(Clone, Copy)]
struct Program {
    session: u32,
    base_us: u64,
}

impl Program {
    /// Seals an order now.
    fn seals(self, world: &World, command: Command, name: &str) -> Vec<u8> {
        let counter = self.base_us + world.now().as_micros();
        let message = order(command, name);
        let datagram = Datagram { from: CONSOLE, counter, flight: self.session, message };
        world.keys().console().seal(&mut datagram.draft().unwrap()).to_vec()
    }
}

/// UTC of these programs, later than the simulated GNSS time.
const UTC_US: u64 = 3_000_000_000_000_000;
const HOUR_US: u64 = 3_600_000_000;

#[test]
fn an_order_by_radio_is_obeyed_whatever_counters_another_program_with_the_key_has_used() {
    let first = Program { session: 1, base_us: UTC_US };
    let spare = Program { session: 2, base_us: UTC_US + HOUR_US };
    let mut world = under_way();
    let is_done = |world: &World, name: &str| {
        let commands = &world.status(0).commands;
        commands.iter().any(|c| c.id.as_str() == name && c.stage == Stage::EffectSeen)
    };
    world.inject(0, &first.seals(&world, Command::Hold, "first"));
    run(&mut world, Duration::from_secs(3));
    assert!(is_done(&world, "first"));
    let recorded = spare.seals(&world, Command::Return, "spare");
    world.inject(0, &recorded);
    run(&mut world, Duration::from_secs(3));
    assert!(is_done(&world, "spare"), "{:?}", world.status(0).commands);
    let hold = first.seals(&world, Command::Hold, "again");
    world.inject(0, &hold);
    run(&mut world, Duration::from_secs(3));
    assert!(is_done(&world, "again"), "{:?}", world.status(0).commands);
    let check = world.status(0).checks.iter().find(|check| check.name == "console keys").cloned();
    assert!(check.is_some_and(|check| !check.passed && check.detail.contains("used by two programs")));
    // Recordings of either are refused.
    let before = refused(&world, 0, Refused::Replayed);
    world.inject(0, &recorded);
    world.inject(0, &hold);
    run(&mut world, Duration::from_secs(1));
    assert_eq!(refused(&world, 0, Refused::Replayed), before + 2);
    // The laptop on which the service was started again: another session.
    let restarted = Program { session: 3, base_us: UTC_US };
    world.inject(0, &restarted.seals(&world, Command::Land, "restarted"));
    run(&mut world, Duration::from_secs(3));
    assert!(is_done(&world, "restarted"), "{:?}", world.status(0).commands);
}

#[test]
fn an_hour_old_recording_of_a_session_that_an_aircraft_never_received_is_refused_by_radio() {
    let mut world = under_way();
    // GNSS time counts after it stood for a minute.
    while world.agent_of(0).gnss_time(world.now()).is_none() {
        run(&mut world, Duration::from_secs(1));
        assert!(world.now() < Instant::from_secs(300));
    }
    let old = Program { session: 7, base_us: 1_000_000 };
    let before = refused(&world, 0, Refused::Stale);
    world.inject(0, &old.seals(&world, Command::Land, "old"));
    run(&mut world, Duration::from_secs(1));
    assert_eq!(refused(&world, 0, Refused::Stale), before + 1);
    assert!(world.status(0).commands.iter().all(|c| c.id.as_str() != "old"));
}

#[test]
fn what_is_no_emergency_is_not_taken_by_radio() {
    let mut world = under_way();
    for (i, command) in
        [Command::Setup, Command::Start, Command::Resume, Command::Engage, Command::SetParameters]
            .into_iter()
            .enumerate()
    {
        world.inject(0, &of_console(&world, 0, order(command, "c")));
        run(&mut world, Duration::from_millis(1));
        assert_eq!(refused(&world, 0, Refused::NotPermitted), i as u64 + 1, "{command}");
    }
}

#[test]
fn a_command_by_two_paths_is_one_and_its_id_is_no_other_commands() {
    let mut world = under_way();
    assert_eq!(world.command(0, "h", Command::Hold), Reply::Accepted);
    world.inject(0, &of_console(&world, 0, order(Command::Hold, "h")));
    run(&mut world, Duration::from_secs(1));
    assert_eq!(world.status(0).commands.iter().filter(|c| c.id == "h").count(), 1);
    world.inject(0, &of_console(&world, 0, order(Command::Land, "h")));
    run(&mut world, Duration::from_secs(2));
    assert_eq!(world.truth(0).mode, Mode::Brake);
    let line = world.log().iter().find(|l| l.vehicle == 0 && l.entry.text.contains("land by radio: refused"));
    assert!(line.is_some_and(|l| l.entry.text.contains("expected hold")), "{line:?}");
}

#[test]
fn what_was_refused_once_is_not_new_when_it_comes_again() {
    let mut world = under_way();
    let start = of_console(&world, 0, order(Command::Start, "s"));
    for _ in 0..3 {
        world.inject(0, &start);
        run(&mut world, Duration::from_millis(1));
    }
    assert_eq!([Refused::NotPermitted, Refused::Replayed].map(|reason| refused(&world, 0, reason)), [1, 2]);
}

#[test]
fn an_order_under_the_id_of_another_is_answered_as_refused() {
    let mut world = under_way();
    world.inject(0, &of_console(&world, 0, order(Command::Hold, "x")));
    run(&mut world, Duration::from_secs(2));
    world.take_sent();
    for _ in 0..8 {
        world.inject(0, &of_console(&world, 0, order(Command::Land, "x")));
        run(&mut world, Duration::from_millis(100));
    }
    let sent = world.take_sent();
    let answers: Vec<OrderProgress> = sent
        .iter()
        .filter(|sent| sent.vehicle == 0)
        .filter_map(|sent| {
            let mut datagram = Datagram::blank();
            world.keys().roster().open(&sent.bytes).unwrap().read_into(&mut datagram).unwrap();
            let Message::OrderTaken(taken) = datagram.message else { return None };
            Some(taken.progress)
        })
        .collect();
    assert!((2..8).contains(&answers.len()), "{answers:?}");
    assert!(answers.iter().all(|progress| *progress == OrderProgress::Refused), "{answers:?}");
}

#[test]
fn what_a_console_broadcasts_does_not_overtake_what_it_posts() {
    let mut world = under_way();
    let sealed_at = world.now();
    run(&mut world, Duration::from_secs(1));
    world.inject(0, &of_console(&world, 0, order(Command::Hold, "h")));
    let posted = |world: &World, at: Instant| {
        let claim = Claim { from: CONSOLE, counter: at.as_micros(), exclusion: None, session: None };
        world.agent_of(0).admits_posted(world.now(), &claim, false)
    };
    run(&mut world, Duration::from_millis(1));
    assert_eq!(posted(&world, sealed_at), Ok(()));
    let claim = Claim { from: CONSOLE, counter: sealed_at.as_micros(), exclusion: None, session: None };
    assert_eq!(
        world.agent_of(0).admits(world.now(), &claim),
        Err(Refused::Replayed),
        "by radio it is a recording"
    );
    run(&mut world, Duration::from_millis(1_100));
    world.inject(0, &of_console(&world, 0, order(Command::Hold, "h")));
    run(&mut world, Duration::from_millis(1));
    assert_eq!(posted(&world, sealed_at), Err(Refused::Stale));
}

/// With the keys of a console.
#[test]
fn orders_without_end_leave_the_air_to_emergencies() {
    let mut world = under_way();
    world.take_sent();
    let mut orders = Vec::new();
    for i in 0..1_000 {
        let bytes = of_console(&world, 0, order(Command::Hold, &format!("h{i}")));
        world.inject(1, &bytes);
        orders.push(bytes);
        run(&mut world, Duration::from_millis(2));
    }
    let sent = world.take_sent();
    for vehicle in ALL {
        let relayed =
            sent.iter().filter(|sent| sent.vehicle == vehicle && orders.iter().any(|o| **o == *sent.bytes));
        let relayed = relayed.count();
        assert!((1..=3 * 32).contains(&relayed), "{vehicle}: {relayed} in 2 s");
    }
}
