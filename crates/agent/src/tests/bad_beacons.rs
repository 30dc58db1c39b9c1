//! What comes from the air that no honest aircraft sends: each refused with its one reason, counted, and
//! without any other effect.

use super::*;
use wingbeat_wire::{Avoidance, Beacon, DATAGRAM_LEN_MAX, Location};

const HERE: Location = Location { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

/// One under MBCAP-e whose mission has begun, 20 m up; no other is in the air.
fn flying() -> Bench {
    let mut config = mbcap::Config::mbcap_e();
    config.me = VehicleId(1);
    let mut bench = Bench::with(config.into());
    // Until it is known which parameters it does not have under either name.
    for _ in 0..10 {
        bench.second();
    }
    assert_eq!(bench.feed(Input::Operator { id: "s", command: Command::Setup }), Some(Reply::Accepted));
    bench.order_is_done();
    assert_eq!(bench.feed(Input::Operator { id: "t", command: Command::Start }), Some(Reply::Accepted));
    bench.order_is_done();
    (bench.armed, bench.mode, bench.height_mm) = (true, Mode::Auto.number(), 20_000);
    // Both are what the order that was skipped would have asked for, and no pilot's.
    (bench.agent.telemetry.armed, bench.agent.telemetry.mode_number) = (true, Some(bench.mode));
    bench.second();
    assert_eq!(bench.agent.view().state, StateId::Normal, "{:?}", bench.log);
    bench.datagrams.clear();
    bench
}

impl Bench {
    /// The order that the executor is given counts as done.
    fn order_is_done(&mut self) {
        use wingbeat_protocol::{Input, Order};
        let order = match self.agent.view().state {
            StateId::Setup => Order::LoadRoute,
            _ => Order::FlyRoute { height_mm: 20_000 },
        };
        self.agent.executor.clear();
        self.agent.protocol_input(self.now, Input::Done(order), &mut Outputs::default());
    }

    fn refused(&self) -> [u64; Refused::ALL.len()] {
        self.agent.status(self.now).refused
    }
}

/// A beacon of one that flies a kilometre north of us.
fn beacon() -> Beacon {
    let place = |n: i32| Location { latitude_e7: HERE.latitude_e7 + 90_000 + n * 450, ..HERE };
    Beacon {
        planned_speed_cm_s: 1_000,
        speed_cm_s: 1_000,
        locations: (0..11).map(place).collect(),
        ..Beacon::default()
    }
}

fn datagram(from: u64, counter: u64, beacon: Beacon) -> Vec<u8, DATAGRAM_LEN_MAX> {
    let message = Message::Beacon(beacon);
    let datagram = Datagram { from: VehicleId(from), counter, flight: 0, message };
    Vec::from_slice(datagram.draft().unwrap().content()).unwrap()
}

fn changed(change: impl FnOnce(&mut Beacon)) -> Vec<u8, DATAGRAM_LEN_MAX> {
    numbered(100, change)
}

fn numbered(counter: u64, change: impl FnOnce(&mut Beacon)) -> Vec<u8, DATAGRAM_LEN_MAX> {
    let mut beacon = beacon();
    change(&mut beacon);
    datagram(2, counter, beacon)
}

/// One location more than fits: the count is the last number before the locations.
fn sixty_locations() -> Vec<u8, DATAGRAM_LEN_MAX> {
    let mut bytes = changed(|b| b.locations = (0..59).map(|_| Location::default()).collect());
    let count = bytes.iter().rposition(|&b| b == 59).unwrap();
    bytes[count] = 60;
    bytes.extend_from_slice(&[0; 3]).unwrap();
    bytes
}

/// Of a sender with keys: what is sealed is not yet sense.
#[test]
fn mbcap_09_each_bad_beacon_is_refused_with_its_reason_and_does_nothing() {
    let and_more = |more: &[u8]| {
        let mut bytes = changed(|_| {});
        bytes.extend_from_slice(more).unwrap();
        bytes
    };
    let whole = changed(|_| {});
    let cut = Vec::from_slice(&whole[..whole.len() - 1]).unwrap();
    #[rustfmt::skip]
    let cases: [(&str, Vec<u8, DATAGRAM_LEN_MAX>, Refused); 25] = [
        ("nothing", Vec::new(), Refused::Malformed),
        ("a byte too few", cut, Refused::Malformed),
        ("a byte too many", and_more(&[0]), Refused::TrailingBytes),
        ("two in one", and_more(&whole), Refused::TrailingBytes),
        ("more locations than fit", sixty_locations(), Refused::Malformed),
        ("no location", changed(|b| b.locations.clear()), Refused::Contradiction),
        ("our own", datagram(1, 0, beacon()), Refused::Own),
        ("faster than any multicopter", changed(|b| b.speed_cm_s = 10_001), Refused::Impossible),
        ("the fastest that can be written", changed(|b| b.speed_cm_s = u16::MAX), Refused::Impossible),
        ("a mission as fast", changed(|b| b.planned_speed_cm_s = 10_001), Refused::Impossible),
        ("from the past", changed(|b| b.age_ms = 10_001), Refused::Stale),
        ("from long ago", changed(|b| b.age_ms = u16::MAX), Refused::Stale),
        ("beyond the pole", changed(|b| b.locations[0].latitude_e7 = 900_000_001), Refused::OffEarth),
        ("beyond the other", changed(|b| b.locations[0].latitude_e7 = i32::MIN), Refused::OffEarth),
        ("beyond the date line", changed(|b| b.locations[0].longitude_e7 = -1_800_000_001), Refused::OffEarth),
        ("as far as can be written", changed(|b| b.locations[0].longitude_e7 = i32::MAX), Refused::OffEarth),
        ("going off the earth", changed(|b| b.locations[10].latitude_e7 = i32::MAX), Refused::OffEarth),
        ("in space", changed(|b| b.locations[0].altitude_mm = 100_000_001), Refused::Impossible),
        ("in the earth", changed(|b| b.locations[10].altitude_mm = i32::MIN), Refused::Impossible),
        ("1000 km away", numbered(97, |b| b.locations.iter_mut().for_each(|l| l.latitude_e7 += 90_000_000)), Refused::FarAway),
        ("on the other side of the earth", numbered(98, |b| b.locations.iter_mut().for_each(|l| l.longitude_e7 += 1_800_000_000)), Refused::FarAway),
        ("going 1000 km away", changed(|b| b.locations[10].latitude_e7 += 90_000_000), Refused::FarAway),
        ("a state that does not exist", { let mut b = whole.clone(); let at = state_at(&whole); b[at] = 6; b }, Refused::Malformed),
        ("a number that does not end", Vec::from_slice(&[0xff; 40]).unwrap(), Refused::Malformed),
        ("a message that does not exist", Vec::from_slice(&[2, 100, 0, 99]).unwrap(), Refused::Malformed),
    ];
    let mut bench = flying();
    let check = |bench: &mut Bench, what: &str, reason: Refused, receive: &dyn Fn(&mut Bench)| {
        let (before, status) = (bench.refused(), bench.agent.status(bench.now));
        bench.log.clear();
        receive(bench);
        let mut expected = before;
        expected[reason as usize] += 1;
        let after = bench.agent.status(bench.now);
        assert_eq!(after.refused, expected, "{what}: expected {reason} and nothing else");
        assert_eq!(after, Status { refused: expected, ..status }, "{what}: it changed something");
        assert!(bench.log.is_empty(), "{what}: {:?}", bench.log);
    };
    for (what, content, reason) in &cases {
        check(&mut bench, what, *reason, &|bench| bench.receive_content(content));
    }
    for (what, bytes, reason) in [
        ("nothing", &[][..], Refused::Empty),
        ("the signed version", &[wingbeat_wire::VERSION; 80], Refused::Version),
        ("the version before", &[3; 80], Refused::Version),
        ("all ones", &[0xff; DATAGRAM_LEN_MAX], Refused::Version),
        ("too many", &[0; DATAGRAM_LEN_MAX + 1], Refused::TooLong),
    ] {
        check(&mut bench, what, reason, &|bench| bench.receive_datagram(bytes));
    }
    // What bears our id and we have not sent yet was sealed by another with our key, and that is logged once.
    for _ in 0..2 {
        bench.receive_content(&datagram(1, u64::MAX, beacon()));
    }
    let logged =
        bench.log.iter().filter(|line| std::format!("{line:?}").contains("another aircraft has our id"));
    assert_eq!(logged.count(), 1, "{:?}", bench.log);
    // One that was understood and refused is a recording when it comes again.
    check(&mut bench, "again", Refused::Replayed, &|bench| {
        bench.receive_content(&numbered(98, |b| {
            b.locations.iter_mut().for_each(|l| l.longitude_e7 += 1_800_000_000)
        }));
    });
    // And the good one, whose counter some of them had that were not understood, is taken.
    let received = bench.agent.status(bench.now).received;
    bench.receive_content(&whole);
    let status = bench.agent.status(bench.now);
    assert_eq!(status.received, received + 1);
    assert!((status.separation.nearest.unwrap().distance_m - 1_000.0).abs() < 5.0, "{:?}", status.separation);
    // Another protocol's message is none of ours.
    let muscop = Datagram { from: VehicleId(2), counter: 101, flight: 0, message: Message::ReadyToFly };
    check(&mut bench, "another protocol's", Refused::UnexpectedSender, &|bench| {
        bench.receive_content(muscop.draft().unwrap().content());
    });
}

/// Where in the content the state stands: the one byte that another state changes.
fn state_at(whole: &[u8]) -> usize {
    let other = changed(|b| b.state = Avoidance::StandStill);
    whole.iter().zip(&other).position(|(a, b)| a != b).unwrap()
}

#[test]
fn mbcap_11_what_comes_late_or_twice_overwrites_nothing() {
    let mut bench = flying();
    let to_the_north = |n: i32| {
        let mut beacon = beacon();
        beacon.locations.iter_mut().for_each(|l| l.latitude_e7 += n * 4_500);
        beacon
    };
    let mut told_m = |counter, n| {
        bench.receive_content(&datagram(2, counter, to_the_north(n)));
        let distance_m = bench.agent.status(bench.now).separation.nearest.unwrap().distance_m;
        let replayed = bench.refused()[Refused::Replayed as usize];
        ((distance_m / 50.0).round() as i32, replayed)
    };
    // Steps of 50 m, a kilometre away.
    assert_eq!(told_m(100, 0), (20, 0));
    assert_eq!(told_m(102, 2), (22, 0));
    assert_eq!(told_m(101, 1), (22, 1), "it came late");
    assert_eq!(told_m(102, 9), (22, 2), "it came twice, and changed on the way");
    assert_eq!(told_m(103, 3), (23, 2));
}

#[test]
fn mbcap_09_a_storm_of_2000_a_second_costs_its_sender_the_entry_and_no_other() {
    let mut bench = flying();
    let (start, received) = (bench.now, bench.agent.status(bench.now).received);
    let mut own = 0;
    bench.position();
    for i in 1..=4_000_u64 {
        bench.now = start + Duration::from_micros(i * 500);
        bench.receive_content(&datagram(2, i, beacon()));
        if i % 400 == 0 {
            bench.position();
            bench.receive_content(&datagram(3, i + 1, beacon()));
        }
        if bench.agent.poll_timeout().0 <= bench.now {
            bench.feed(Input::Wake);
        }
        own += bench.datagrams.drain(..).count();
    }
    let status = bench.agent.status(bench.now);
    // 20 a second are its share; the 21st costs it 10 s. Each of the other's ten is taken.
    assert_eq!(status.refused[Refused::Storm as usize], 4_000 - 20);
    assert_eq!(status.received - received, 20 + 10);
    assert_eq!(own, 10 + 1, "we continue to broadcast five times a second, and each 2 s where we fly");
    // After 10 s of anything it has its place again.
    bench.now = start + Duration::from_secs(11);
    bench.receive_content(&datagram(2, 5_000, beacon()));
    let status = bench.agent.status(bench.now);
    assert_eq!(status.refused[Refused::Storm as usize], 4_000 - 20);
}

#[test]
fn mbcap_09_names_without_end_fill_no_table() {
    let mut bench = flying();
    // 2000 senders that each send one beacon within a second, and one that continues.
    let start = bench.now;
    for i in 0..2_000_u64 {
        bench.now = start + Duration::from_micros(i * 500);
        bench.receive_content(&datagram(1_000 + i, 1, beacon()));
        if i % 400 == 0 {
            bench.receive_content(&datagram(3, i + 1, beacon()));
        }
    }
    let status = bench.agent.status(bench.now);
    // 110 are known: the one that continues has its entry because it came before they were so many.
    assert_eq!(status.refused[Refused::NoRoom as usize], 2_000 - 109);
    assert_eq!(status.received, 109 + 5);
}
