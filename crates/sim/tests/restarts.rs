//! A daemon that is started again in each state of MUSCOP, in virtual time: what it reads from the flight controller, that it
//! orders nothing by itself, that a pilot keeps the aircraft, and that it is one of its swarm again.
//!
//! `cargo test -p wingbeat-sim --test restarts -- --nocapture` prints what became of each.

#[path = "common/row.rs"]
mod row;

use wingbeat_agent::{Command, LinkState, Phase, Reply, StateId};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::world::World;

use self::row::Row;

/// Every state in which an aircraft has something to lose.
const STATES: [StateId; 8] = [
    StateId::Setup,
    StateId::ReadyToFly,
    StateId::TakingOff,
    StateId::SetupFinished,
    StateId::MovingToWaypoint,
    StateId::WaypointReached,
    StateId::MovingToLand,
    StateId::Landing,
];
/// From the end of one daemon to the begin of the next.
const OUTAGE: Duration = Duration::from_secs(2);
/// Longer than any flight here takes to its end.
const LIMIT: Duration = Duration::from_secs(600);

/// Three in line, when this one has come to the state.
fn in_state(vehicle: usize, state: StateId) -> World {
    let is_there = |world: &World| world.agent_of(vehicle).view().state == state;
    Row::default().fly(is_there, Duration::ZERO)
}

fn run(world: &mut World, time: Duration) {
    world.run_until(world.now() + time);
}

/// Runs until it is so.
fn until(world: &mut World, what: &str, mut is_so: impl FnMut(&World) -> bool) {
    let end = world.now() + LIMIT;
    while !is_so(world) {
        assert!(world.now() < end, "never: {what}; {:?}", world.log());
        run(world, Duration::from_millis(100));
    }
}

fn press(world: &mut World, vehicle: usize, command: Command) -> Reply {
    let id = format!("{command:?}-{}", world.now().as_millis());
    world.command(vehicle, &id, command)
}

/// All are set up together on the ground: each knows every other.
fn set_up_again(world: &mut World, what: &str) {
    let end = world.now() + LIMIT;
    let mut set_up = vec![false; world.count()];
    while !(0..world.count()).all(|i| world.phase(i) == Phase::Ready) {
        assert!(world.now() < end, "{what}: never ready again; {:?}", world.log());
        for (i, set_up) in set_up.iter_mut().enumerate() {
            *set_up = *set_up || press(world, i, Command::Setup) == Reply::Accepted;
        }
        run(world, Duration::from_millis(200));
    }
}

#[test]
fn in_each_state_it_reads_the_aircraft_orders_nothing_and_is_one_of_its_swarm_again() {
    for state in STATES {
        for (vehicle, guarded) in [(0, true), (0, false), (2, true), (2, false)] {
            let what = format!("{state}, aircraft {vehicle}, guarded {guarded}");
            let mut world = in_state(vehicle, state);
            let before = world.truth(vehicle);
            let again_at = world.now() + OUTAGE;
            world.inflict(world.now(), Fault::DaemonRestarts { vehicle, guarded, until: again_at });
            run(&mut world, OUTAGE);
            assert_eq!(world.agent_of(vehicle).view().state, StateId::Start, "{what}");

            // Until the operator commands, no order of its own: the guardian's modes alone, or the one that was.
            let end = world.now() + Duration::from_secs(10);
            let mut modes = vec![world.truth(vehicle).mode];
            while world.now() < end {
                run(&mut world, Duration::from_millis(50));
                let truth = world.truth(vehicle);
                assert!(before.armed || !truth.armed, "{what}: armed");
                if modes.last() != Some(&truth.mode) {
                    modes.push(truth.mode);
                }
            }
            let permitted: &[Mode] = if guarded { &[before.mode, Mode::Brake, Mode::Land] } else { &[before.mode] };
            assert!(modes.iter().all(|mode| permitted.contains(mode)), "{what}: {modes:?}");

            if !guarded && world.truth(vehicle).armed {
                // What it knows is what the flight controller reports.
                let (status, truth) = (world.status(vehicle), world.truth(vehicle));
                let reported = &status.flight_controller;
                assert_eq!((reported.link, reported.armed), (LinkState::Up, true), "{what}");
                assert_eq!(status.flight_controller.mode, Some(truth.mode), "{what}");
                assert_eq!(press(&mut world, vehicle, Command::Land), Reply::Accepted, "{what}");
            }
            until(&mut world, &format!("{what}: its line is back, and it is down"), |world| {
                world.status(vehicle).flight_controller.link == LinkState::Up && !world.truth(vehicle).armed
            });
            let sent = (world.take_sent(), run(&mut world, Duration::from_secs(3)), world.take_sent()).2;
            assert!(sent.iter().any(|datagram| datagram.vehicle == vehicle), "{what}: it is not heard");

            // The operator lands the others where they did not end by themselves.
            for other in (0..world.count()).filter(|other| *other != vehicle) {
                press(&mut world, other, Command::Land);
            }
            until(&mut world, &format!("{what}: all are down"), |world| {
                (0..world.count()).all(|i| !world.truth(i).armed)
            });
            set_up_again(&mut world, &what);
            println!("{what}: {modes:?}, set up again at {:.0} s", world.now().since(Instant::ZERO).as_secs_f64());
        }
    }
}

#[test]
fn a_pilot_who_takes_the_aircraft_while_no_daemon_runs_keeps_it() {
    for state in STATES {
        let vehicle = 2;
        let mut world = in_state(vehicle, state);
        if !world.truth(vehicle).armed {
            continue;
        }
        let again_at = world.now() + OUTAGE;
        world.inflict(world.now(), Fault::DaemonRestarts { vehicle, guarded: false, until: again_at });
        run(&mut world, Duration::from_secs(1));
        world.inflict(world.now(), Fault::PilotTakes { vehicle, mode: Mode::AltHold });
        run(&mut world, Duration::from_secs(20));
        let truth = world.truth(vehicle);
        assert_eq!((truth.mode, truth.armed), (Mode::AltHold, true), "{state}");
        for command in [Command::Hold, Command::Land, Command::Return] {
            let reply = press(&mut world, vehicle, command);
            assert!(matches!(reply, Reply::Refused(_)), "{state}: {command:?}: {reply:?}");
        }
        run(&mut world, Duration::from_secs(5));
        assert_eq!(world.truth(vehicle).mode, Mode::AltHold, "{state}");
    }
}
