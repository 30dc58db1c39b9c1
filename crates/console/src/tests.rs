extern crate std;

use std::vec::Vec;

use wingbeat_wire::{Roster, Signer};

use super::*;

const ME: VehicleId = VehicleId(99);
const BASE_US: u64 = 1_795_435_200_000_000;
const MINUTE: Instant = Instant::from_secs(60);

fn press(id: &str, command: Command) -> Press {
    Press { id: CommandId::try_from(id).unwrap(), command, flight: 0 }
}

/// What is sent from this time on within a period, over which it is spread: counter, id, addressees.
fn sent_in_period(console: &mut Console, ms: u64) -> Vec<(u64, Order)> {
    let mut found = sent(console, ms);
    let end = Instant::from_millis(ms) + REPEAT_PERIOD;
    while console.poll_timeout() < end {
        let at = console.poll_timeout();
        found.extend(sent_at(console, at));
    }
    found
}

/// What is sent at this time.
fn sent(console: &mut Console, ms: u64) -> Vec<(u64, Order)> {
    sent_at(console, Instant::from_millis(ms))
}

fn sent_at(console: &mut Console, at: Instant) -> Vec<(u64, Order)> {
    let mut found = Vec::new();
    console.poll(at, |draft| {
        let datagram = draft.read().unwrap();
        assert_eq!(datagram.from, ME);
        let Message::Order(order) = datagram.message else { panic!("no order") };
        found.push((datagram.counter, order));
    });
    found
}

fn addressed(sent: &[(u64, Order)]) -> Vec<(&str, Vec<u64>)> {
    let ids = |to: &Addressees| match to {
        Addressees::All => std::vec![0],
        Addressees::Listed(ids) => ids.iter().map(|id| id.0).collect(),
    };
    sent.iter().map(|(_, order)| (order.id.as_str(), ids(&order.to))).collect()
}

fn answer(console: &mut Console, from: u64, id: &str, progress: OrderProgress) -> Option<Answer> {
    let taken = OrderTaken { console: ME, id: CommandId::try_from(id).unwrap(), progress };
    let message = Message::OrderTaken(taken);
    let datagram = Datagram { from: VehicleId(from), counter: 1, flight: 0, message };
    let mut draft = datagram.draft().unwrap();
    let bytes = Signer::insecure().seal(&mut draft).to_vec();
    console.on_datagram(&Roster::insecure().open(&bytes).unwrap())
}

#[test]
fn an_order_is_repeated_with_newer_counters_until_each_has_carried_it_out() {
    let mut console = Console::new(ME, BASE_US);
    assert_eq!(console.poll_timeout(), Instant::NEVER);
    for vehicle in [1, 2, 3] {
        console.begin(Instant::from_secs(1), &press("h", Command::Hold), VehicleId(vehicle), MINUTE);
    }
    let first = sent(&mut console, 1_000);
    assert_eq!(addressed(&first), [("h", std::vec![1, 2, 3])]);
    assert_eq!(first[0].0, BASE_US + 1_000_000);
    assert_eq!(console.poll_timeout(), Instant::from_millis(1_100));
    assert!(sent(&mut console, 1_050).is_empty());
    answer(&mut console, 1, "h", OrderProgress::Accepted);
    answer(&mut console, 2, "h", OrderProgress::EffectSeen);
    let second = sent(&mut console, 1_100);
    assert_eq!(addressed(&second), [("h", std::vec![1, 3])], "accepted is not yet done");
    assert!(second[0].0 > first[0].0);
    answer(&mut console, 3, "h", OrderProgress::Refused);
    console.end(VehicleId(1), |press| press.command == Command::Hold);
    assert!(sent(&mut console, 1_200).is_empty());
    assert_eq!(console.poll_timeout(), Instant::NEVER);
}

#[test]
fn the_command_that_was_pressed_last_replaces_the_one_before() {
    let mut console = Console::new(ME, BASE_US);
    for vehicle in [1, 2] {
        console.begin(Instant::ZERO, &press("h", Command::Hold), VehicleId(vehicle), MINUTE);
    }
    let exclude = Command::Exclude { member: VehicleId(7) };
    console.begin(Instant::ZERO, &press("x", exclude), VehicleId(1), MINUTE);
    console.begin(Instant::ZERO, &press("l", Command::Land), VehicleId(2), MINUTE);
    let all = sent_in_period(&mut console, 0);
    assert_eq!(
        addressed(&all),
        [("h", std::vec![1]), ("l", std::vec![2]), ("x", std::vec![0])],
        "what recovers comes first"
    );
    assert!(console.repeats("h", VehicleId(1)) && !console.repeats("h", VehicleId(2)));
    // An exclusion is done where it is known.
    answer(&mut console, 1, "x", OrderProgress::Accepted);
    assert!(!console.repeats("x", VehicleId(1)));
}

#[test]
fn a_swarm_is_addressed_in_several_datagrams_and_the_time_ends_it() {
    let mut console = Console::new(ME, BASE_US);
    for vehicle in 0..200 {
        console.begin(Instant::ZERO, &press("l", Command::Land), VehicleId(vehicle), Instant::from_secs(1));
    }
    let sent_once = sent_in_period(&mut console, 0);
    let lengths = sent_once.iter().map(|(_, order)| match &order.to {
        Addressees::Listed(ids) => ids.len(),
        Addressees::All => 0,
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [32, 32, 32, 32, 32, 32, 8]);
    assert!(sent(&mut console, 1_000).is_empty());
    assert_eq!(console.poll_timeout(), Instant::NEVER);
    for order in 0..100 {
        let id = std::format!("{order}");
        console.begin(MINUTE, &press(&id, Command::Hold), VehicleId(order), MINUTE + REPEAT_PERIOD);
    }
    let excluded =
        |vehicle: u64| press(&std::format!("x{vehicle}"), Command::Exclude { member: VehicleId(vehicle) });
    for vehicle in 0..REPEATED_MAX as u64 {
        console.begin(MINUTE, &excluded(vehicle), VehicleId(1), MINUTE + REPEAT_PERIOD);
    }
    let all = sent_in_period(&mut console, 60_000);
    let commands = all.iter().filter(|(_, order)| order.command == Command::Hold).count();
    assert_eq!(
        (all.len(), commands),
        (REPEATED_MAX, 100),
        "exclusions make room for each other, and no recovery does"
    );
}

#[test]
fn a_round_is_spread_over_the_period_and_aircraft_that_were_added_one_by_one_are_addressed_together() {
    let mut console = Console::new(ME, BASE_US);
    for vehicle in 0..50 {
        // The owner sends after each.
        console.begin(
            Instant::from_millis(vehicle / 10),
            &press("l", Command::Land),
            VehicleId(vehicle),
            MINUTE,
        );
        assert_eq!(sent(&mut console, vehicle / 10).len(), 1);
    }
    let mut times = Vec::new();
    while console.poll_timeout() < Instant::from_millis(395) {
        let at = console.poll_timeout();
        let datagrams = sent_at(&mut console, at);
        let [(_, Order { to: Addressees::Listed(ids), .. })] = datagrams.as_slice() else { panic!("one") };
        times.push((at.as_millis(), ids.len()));
    }
    assert_eq!(times, [(100, 32), (150, 18), (200, 32), (250, 18), (300, 32), (350, 18)]);
}

#[test]
fn counters_only_grow_and_answers_to_others_are_not_ours() {
    let mut console = Console::new(ME, BASE_US);
    let hold = press("h", Command::Hold);
    let counters: Vec<u64> = (0..3)
        .map(|_| console.draft(Instant::ZERO, &hold, Addressees::All).read().unwrap().counter)
        .collect();
    assert_eq!(counters, [1, 2, 3].map(|n| BASE_US + n));
    assert_eq!(console.counter(), BASE_US + 3);
    let taken = OrderTaken { console: VehicleId(98), id: hold.id.clone(), progress: OrderProgress::Accepted };
    for message in [Message::OrderTaken(taken), Message::ReadyToFly] {
        let mut draft = Datagram { message, ..Datagram::blank() }.draft().unwrap();
        let bytes = Signer::insecure().seal(&mut draft).to_vec();
        assert_eq!(console.on_datagram(&Roster::insecure().open(&bytes).unwrap()), None);
    }
}

#[test]
fn an_exclusion_is_for_the_flight_that_each_aircraft_reports() {
    let mut console = Console::new(ME, BASE_US);
    let exclusion = |flight| Press { flight, ..press("x", Command::Exclude { member: VehicleId(7) }) };
    // The first lies about its flight, and does not take the others' exclusion from them.
    for (vehicle, flight) in [(1, 666), (2, 5), (3, 5)] {
        console.begin(Instant::ZERO, &exclusion(flight), VehicleId(vehicle), MINUTE);
    }
    let mut flights = Vec::new();
    while console.poll_timeout() < Instant::ZERO + REPEAT_PERIOD {
        let at = console.poll_timeout();
        console.poll(at, |draft| flights.push(draft.read().unwrap().flight));
    }
    assert_eq!(flights, [666, 5]);
}
