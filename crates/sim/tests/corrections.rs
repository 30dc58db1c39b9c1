//! Corrections of satellite navigation: from a console's datagram to the fix of a flight controller's receiver.

use crate::common::pair;
use crate::common::row;

use pair::{HOME, Pair};
use row::Row;
use wingbeat_agent::{Command, CorrectionRefused, Input};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::Duration;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::Config;
use wingbeat_sim::keys::CONSOLE;
use wingbeat_wire::{
    Corrections, Datagram, FleetKey, Message, RTCM_LEN_MAX, Refused, Role, Roster, Signer, VehicleId,
    rtcm_frame,
};

const AIRCRAFT: VehicleId = VehicleId(1);
const SECOND_BASE: VehicleId = VehicleId(0xc2);
const SAFETY: VehicleId = VehicleId(0xc3);
const SECOND: Duration = Duration::from_secs(1);

/// The signer of 32 times this byte.
fn signer(secret: u8) -> Signer {
    Signer::new(&[secret; 32], 1, FleetKey([7; 32]))
}

fn roster() -> Roster {
    let mut roster = Roster::new(1, FleetKey([7; 32]));
    let members = [
        (AIRCRAFT, Role::Aircraft),
        (CONSOLE, Role::Operator),
        (SECOND_BASE, Role::Operator),
        (SAFETY, Role::Safety),
    ];
    for (secret, (id, role)) in (1..).zip(members) {
        roster.add(id, role, &signer(secret).public_key().unwrap()).unwrap();
    }
    roster
}

/// A receiver that needs corrections, behind an agent that is connected.
fn pair() -> Pair {
    let mut pair = Pair::new(Config { needs_corrections: true, ..Config::new(1, HOME) }, |config| {
        config.companion_loss = wingbeat_agent::CompanionLoss::EndsWithIt;
    });
    pair.run(Duration::from_secs(3));
    pair
}

fn frame(length: usize) -> Corrections {
    let message: Vec<u8> = (0..length - 6).map(|i| (i % 251) as u8).collect();
    rtcm_frame(&message).unwrap()
}

fn sealed(from: VehicleId, secret: u8, counter: u64, frame: Corrections) -> Vec<u8> {
    let datagram = Datagram { from, counter, flight: 0, message: Message::Corrections(frame) };
    signer(secret).seal(&mut datagram.draft().unwrap()).to_vec()
}

/// What the aircraft's radio receives.
fn receive(pair: &mut Pair, roster: &Roster, bytes: &[u8]) {
    let now = pair.now();
    let opened = roster.open_if(bytes, |claim| pair.agent.admits(now, claim));
    pair.feed(Input::Datagram(opened));
}

/// The console broadcasts a frame now.
fn correct(pair: &mut Pair, roster: &Roster, (from, secret): (VehicleId, u8), length: usize) {
    let bytes = sealed(from, secret, pair.true_us(), frame(length));
    receive(pair, roster, &bytes);
}

fn fix(pair: &Pair) -> u8 {
    pair.agent.status(pair.now()).measured.gnss.unwrap().fix_type
}

fn refused(pair: &Pair, reason: CorrectionRefused) -> u32 {
    pair.agent.status(pair.now()).corrections.map_or(0, |c| c.refused[reason as usize])
}

#[test]
fn a_fix_becomes_rtk_float_and_fixed_with_corrections_and_an_ordinary_one_without() {
    let (mut pair, roster) = (pair(), roster());
    assert_eq!(fix(&pair), 3);
    assert!(pair.agent.status(pair.now()).corrections.is_none());
    let mut seen = vec![];
    for _ in 0..9 {
        // What a base station sends each second.
        for length in [120, 300, 150, 25] {
            correct(&mut pair, &roster, (CONSOLE, 2), length);
            pair.run(Duration::from_millis(20));
        }
        pair.run(SECOND);
        seen.push(fix(&pair));
    }
    assert!(seen[0] == 5 && seen[8] == 6 && seen.is_sorted(), "{seen:?}");
    assert_eq!(pair.controller.corrections(), (36, 0));
    let shown = pair.agent.status(pair.now()).corrections.unwrap();
    let (console, at) = shown.base.unwrap();
    assert_eq!((console, shown.injected, shown.refused), (CONSOLE, 36, [0; 3]));
    assert!((500..700).contains(&shown.bytes_s), "{shown:?}");
    let age = pair.now().since(at);
    assert!(age >= Duration::from_millis(900) && age < SECOND * 2, "{age:?}");
    pair.run(Duration::from_secs(12));
    assert_eq!(fix(&pair), 3, "they stay away");
    assert_eq!(pair.agent.status(pair.now()).corrections.unwrap().bytes_s, 0);
}

#[test]
fn a_frame_of_every_length_reaches_the_receiver_whole() {
    let (mut pair, roster) = (pair(), roster());
    let lengths = [6, 7, 25, 179, 180, 181, 359, 360, 361, 539, 540, 541, 719, RTCM_LEN_MAX];
    for (i, length) in (1..).zip(lengths) {
        correct(&mut pair, &roster, (CONSOLE, 2), length);
        pair.run(SECOND);
        assert_eq!(pair.controller.corrections(), (i, 0), "{length} bytes");
    }
}

#[test]
fn a_datagram_counts_once_in_time_and_from_an_operators_console_of_this_fleet_alone() {
    let (mut pair, roster) = (pair(), roster());
    let count = |pair: &Pair, reason: Refused| pair.agent.status(pair.now()).refused[reason as usize];
    let first = sealed(CONSOLE, 2, pair.true_us(), frame(200));
    let late = sealed(CONSOLE, 2, pair.true_us() + 1, frame(200));
    receive(&mut pair, &roster, &first);
    receive(&mut pair, &roster, &first);
    assert_eq!(count(&pair, Refused::Replayed), 1);
    pair.run(Duration::from_secs(3));
    receive(&mut pair, &roster, &late);
    assert_eq!(count(&pair, Refused::Stale), 1);
    // By roles.
    for (from, secret) in [(SAFETY, 4), (AIRCRAFT, 1)] {
        let before = count(&pair, Refused::NotPermitted) + count(&pair, Refused::Own);
        correct(&mut pair, &roster, (from, secret), 200);
        assert_eq!(count(&pair, Refused::NotPermitted) + count(&pair, Refused::Own), before + 1, "{from}");
    }
    // In the console's name, by another key of the fleet, and by another fleet.
    let forged = sealed(CONSOLE, 4, pair.true_us(), frame(200));
    receive(&mut pair, &roster, &forged);
    assert_eq!(count(&pair, Refused::Signature), 1);
    let message = Message::Corrections(frame(200));
    let foreign = Datagram { from: CONSOLE, counter: pair.true_us(), flight: 0, message };
    let other = Signer::new(&[2; 32], 1, FleetKey([8; 32]));
    let foreign = other.seal(&mut foreign.draft().unwrap()).to_vec();
    receive(&mut pair, &roster, &foreign);
    assert_eq!(count(&pair, Refused::FleetTag), 1);
    pair.run(SECOND);
    assert_eq!(pair.controller.corrections(), (1, 0));
    assert_eq!(pair.agent.status(pair.now()).corrections.unwrap().injected, 1);
}

#[test]
fn one_base_station_counts_until_it_is_silent() {
    let (mut pair, roster) = (pair(), roster());
    for _ in 0..5 {
        correct(&mut pair, &roster, (CONSOLE, 2), 200);
        correct(&mut pair, &roster, (SECOND_BASE, 3), 200);
        pair.run(SECOND);
    }
    assert_eq!(refused(&pair, CorrectionRefused::OtherBase), 5);
    assert_eq!(pair.controller.corrections(), (5, 0));
    for _ in 0..12 {
        correct(&mut pair, &roster, (SECOND_BASE, 3), 200);
        pair.run(SECOND);
    }
    let shown = pair.agent.status(pair.now()).corrections.unwrap();
    assert_eq!(shown.base.unwrap().0, SECOND_BASE);
    assert!((14..16).contains(&refused(&pair, CorrectionRefused::OtherBase)), "{shown:?}");
}

#[test]
fn a_flood_of_corrections_takes_half_of_a_slow_line_at_most() {
    let (mut pair, roster) = (pair(), roster());
    for _ in 0..20 * 20 {
        correct(&mut pair, &roster, (CONSOLE, 2), RTCM_LEN_MAX);
        pair.run(Duration::from_millis(50));
    }
    // In 20 s: 2500 bytes at once, then 2500 a second.
    let (frames, broken) = pair.controller.corrections();
    assert!((70..=73).contains(&frames) && broken == 0, "{frames}, {broken}");
    assert_eq!(refused(&pair, CorrectionRefused::TooMany), 400 - frames);
}

#[test]
fn without_a_flight_controller_nothing_is_injected() {
    let roster = roster();
    let mut pair = Pair::new(Config::new(1, HOME), |config| {
        config.companion_loss = wingbeat_agent::CompanionLoss::EndsWithIt;
    });
    correct(&mut pair, &roster, (CONSOLE, 2), 200);
    let shown = pair.agent.status(pair.now()).corrections.unwrap();
    assert_eq!((shown.base, shown.injected), (None, 0));
    assert_eq!(refused(&pair, CorrectionRefused::NoFlightController), 1);
}

/// Twenty frames of the longest kind a second, where half of all datagrams are lost: an emergency order reaches all as fast as
/// without them.
#[test]
fn a_flood_of_corrections_holds_up_no_emergency() {
    const COUNT: usize = 4;
    let row = Row { count: COUNT, console: true, mission_m: &[(0.0, 0.0), (0.0, 400.0)], ..Row::default() };
    let held_after = |floods: bool| {
        let mut world = row.fly(|world| row::all_move(world, COUNT), Duration::from_secs(2));
        world.inflict(world.now(), Fault::Loss { share: 0.5, until: wingbeat_geo::Instant::NEVER });
        let pressed = world.now();
        world.press("stop", Command::Hold, &[0, 1, 2, 3]);
        while !(0..COUNT).all(|i| world.truth(i).mode == Mode::Brake) {
            if floods {
                let message = Message::Corrections(frame(RTCM_LEN_MAX));
                // The world's console counts by the same clock.
                let counter = world.now().as_micros() - 1;
                let datagram = Datagram { from: CONSOLE, counter, flight: 0, message };
                let bytes = world.keys().console().seal(&mut datagram.draft().unwrap()).to_vec();
                (0..COUNT).for_each(|i| world.inject(i, &bytes));
            }
            world.run_until(world.now() + Duration::from_millis(50));
            assert!(world.now() < pressed + Duration::from_secs(10), "{floods}");
        }
        let injected = (0..COUNT).map(|i| world.status(i).corrections.map_or(0, |c| c.injected)).min();
        (world.now().since(pressed), injected)
    };
    let (alone, none) = held_after(false);
    let (flooded, some) = held_after(true);
    assert!(none == Some(0) && some > Some(0), "{none:?}, {some:?}");
    assert!(flooded <= alone + SECOND, "{flooded:?}, alone {alone:?}");
}
