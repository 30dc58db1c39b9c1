//! Bytes of every message, and what is refused.

extern crate std;
mod hostile;
mod orders;

use super::*;
use proptest::prelude::*;
use std::{format, string::String, vec::Vec};

const EPOCH: u8 = 3;
/// Microseconds from 1970 to 2026-11-23 12:00 UTC: the counter of an aircraft whose clock is set.
const COUNTER: u64 = 1_795_435_200_000_000;

fn fleet() -> FleetKey {
    FleetKey([0x5a; 32])
}

/// That of an aircraft whose secret is 32 times `secret`.
fn signer(secret: u8) -> Signer {
    Signer::new(&[secret; 32], EPOCH, fleet())
}

fn roster(members: impl IntoIterator<Item = (VehicleId, u8)>) -> Roster {
    let mut roster = Roster::new(EPOCH, fleet());
    for (id, secret) in members {
        roster.add(id, Role::Aircraft, &signer(secret).public_key().unwrap()).unwrap();
    }
    // As on an aircraft.
    roster.precompute();
    roster
}

/// The content of a datagram, between the envelope's bytes.
fn encode(datagram: &Datagram) -> Result<Vec<u8>, Refused> {
    Ok(datagram.draft()?.content().to_vec())
}

fn decode(content: &[u8]) -> Result<Datagram, Refused> {
    Draft::of_content(content)?.read()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn point(n: i32) -> Point {
    Point { latitude_e7: 394_825_940 + n * 4500, longitude_e7: -3_462_650 - n * 5800, height_mm: 20_000 }
}

fn course() -> Course {
    Course { lands: true, waypoints: beacon().locations.into_iter().collect() }
}

fn beacon() -> Beacon {
    Beacon {
        event: 3,
        state: Avoidance::StandStill,
        landing: false,
        avoiding: Some(VehicleId(12)),
        planned_speed_cm_s: 1_000,
        speed_cm_s: 12,
        age_ms: 200,
        locations: (0..3)
            .map(|n| Location {
                latitude_e7: 394_825_940 + n * 450,
                longitude_e7: -3_462_650 - n * 580,
                altitude_mm: 52_300,
            })
            .collect(),
    }
}

fn probe() -> Probe {
    let motion = SenderMotion {
        at: beacon().locations[0],
        heading_cdeg: 29_100,
        east_cm_s: -420,
        north_cm_s: 160,
        up_cm_s: 12,
    };
    Probe { test: 5, sequence: 1_234, period_ms: 20, motion: Some(motion), padding: Padding(0) }
}

/// The example of RTCM 10403.1, section 4.2, a message 1005: where a base station stands.
fn corrections() -> Corrections {
    let message = [
        0x3e, 0xd7, 0xd3, 0x02, 0x02, 0x98, 0x0e, 0xde, 0xef, 0x34, 0xb4, 0xbd, 0x62, 0xac, 0x09, 0x41, 0x98,
        0x6f, 0x33,
    ];
    rtcm_frame(&message).unwrap()
}

fn coordinates() -> Coordinates {
    Coordinates { at: point(3), heading_urad: 5_078_908, leads: true }
}

fn small_plan() -> Plan {
    Plan {
        layout: 1,
        distance_mm: 50_000,
        landing_distance_mm: 10_000,
        heading_urad: 785_398,
        slots: [11, 12, 13].map(VehicleId).into_iter().collect(),
        take_off_order: [2, 0, 1].into_iter().collect(),
        waypoints: (0..3).map(point).collect(),
        offsets: heapless::Vec::new(),
    }
}

fn first_part() -> FirstPart {
    FirstPart { plan: small_plan(), hash: 0x0123_4567_89ab_cdef, count: 600 }
}

fn more_waypoints() -> MoreWaypoints {
    let waypoints = (3..6).map(point).collect();
    MoreWaypoints { hash: 0x0123_4567_89ab_cdef, count: 600, first: 3, waypoints }
}

const EXCLUDE: Command = Command::Exclude { member: VehicleId(12) };

fn listed(ids: impl IntoIterator<Item = u64>) -> Addressees {
    Addressees::Listed(ids.into_iter().map(VehicleId).collect())
}

fn order(command: Command, to: Addressees) -> Order {
    Order { id: "4f1c2b".try_into().unwrap(), to, command }
}

fn taken() -> OrderTaken {
    OrderTaken {
        console: VehicleId(99),
        id: "4f1c2b".try_into().unwrap(),
        progress: OrderProgress::EffectSeen,
    }
}

fn examples() -> Vec<(&'static str, Message)> {
    let plan = small_plan();
    let offset = |n| SlotOffset { right_dm: 125 * n, ahead_dm: -200 * n, up_dm: 30 * n };
    let custom = Plan { layout: 7, offsets: (0..3).map(offset).collect(), ..plan.clone() };
    std::vec![
        ("hello", Message::Hello { at: point(0) }),
        ("data", Message::Data(plan)),
        ("data_custom", Message::Data(custom)),
        ("data_ack", Message::DataAck { hash: 0x0123_4567_89ab_cdef }),
        ("ready_to_fly", Message::ReadyToFly),
        ("ready_to_fly_ack", Message::ReadyToFlyAck),
        ("take_off_now", Message::TakeOffNow { next: VehicleId(12) }),
        ("target_reached", Message::TargetReached),
        ("take_off_end", Message::TakeOffEnd),
        ("take_off_end_ack", Message::TakeOffEndAck),
        ("reached_waypoint_ack", Message::ReachedWaypointAck { waypoint: 13 }),
        ("move_to_waypoint", Message::MoveToWaypoint { waypoint: 14 }),
        ("land", Message::Land { at: point(9) }),
        ("beacon", Message::Beacon(beacon())),
        ("coordinates", Message::Coordinates(coordinates())),
        ("alive", Message::Alive { at: point(3) }),
        ("gather", Message::Gather { waypoint: 14 }),
        ("following", Message::Following { waypoint: 14, reached: true, leader: 2, at: point(3) }),
        ("leaving", Message::Leaving { at: point(4), how: Ending::Landing }),
        ("exclude", Message::Exclude { member: VehicleId(12) }),
        ("land_here", Message::LandHere { at: point(5) }),
        ("land_around", Message::LandAround { at: point(9), leader: 2 }),
        ("release", Message::Release { waypoint: 14 }),
        ("take_off_together", Message::TakeOffTogether),
        ("recall", Message::Recall),
        ("holding", Message::Holding { at: point(3) }),
        ("data_first", Message::DataFirst(first_part())),
        ("data_waypoints", Message::DataWaypoints(more_waypoints())),
        ("stands", Message::Stands { at: beacon().locations[0] }),
        ("course", Message::Course(course())),
        ("order", Message::Order(order(Command::Land, Addressees::All))),
        ("order_exclude", Message::Order(order(EXCLUDE, listed([12, 13])))),
        ("order_taken", Message::OrderTaken(taken())),
        ("probe", Message::Probe(probe())),
        ("corrections", Message::Corrections(corrections())),
        ("probe_blind", Message::Probe(Probe { motion: None, padding: Padding(300), ..probe() })),
        ("adrift", Message::Adrift { at: point(4) }),
        ("passed", Message::Passed(command_of(VehicleId(0x0200_0000_0001), &signer(1)))),
    ]
}

/// A command as its leader sealed it.
fn command_of(leader: VehicleId, signer: &Signer) -> Sealed {
    let message = Message::Release { waypoint: 14 };
    let datagram = Datagram { from: leader, counter: COUNTER - 1, flight: 7, message };
    Sealed::from_slice(signer.seal(&mut datagram.draft().unwrap())).unwrap()
}

/// The bytes on the air are a contract: a change of them is a new [`VERSION`], never an accident.
#[test]
fn golden_datagrams() {
    let me = VehicleId(0x0200_0000_0001);
    for (name, message) in examples() {
        let datagram = Datagram { from: me, counter: COUNTER, flight: 7, message };
        let mut roster = Roster::new(EPOCH, fleet());
        let role = match name {
            "order" | "order_exclude" | "corrections" => Role::Operator,
            _ => Role::Aircraft,
        };
        roster.add(me, role, &signer(1).public_key().unwrap()).unwrap();
        check_golden(name, &datagram, &signer(1), &roster);
    }
    let message = Message::Beacon(beacon());
    let datagram = Datagram { from: me, counter: COUNTER, flight: 0, message };
    check_golden("insecure", &datagram, &Signer::insecure(), &Roster::insecure());
    #[cfg(feature = "stand-in")]
    {
        let (signer, roster) =
            (Signer::stand_in(&[9; 32], EPOCH, fleet()), Roster::stand_in(&[9; 32], EPOCH, fleet()));
        check_golden("stand_in", &datagram, &signer, &roster);
    }
}

fn check_golden(name: &str, datagram: &Datagram, signer: &Signer, roster: &Roster) {
    let mut draft = datagram.draft().unwrap();
    let bytes = signer.seal(&mut draft).to_vec();
    let mut read = Datagram::blank();
    // An exclusion in a member's own name is sent where there are no keys.
    let expected = if name == "exclude" { Err(Refused::NotPermitted) } else { Ok(()) };
    assert_eq!(roster.open(&bytes).unwrap().read_into(&mut read), expected, "{name}");
    assert_eq!(read, *datagram);
    assert_eq!(read_unverified(&bytes), Ok(read), "{name}");
    assert_eq!(signer.seal(&mut draft), bytes, "{name}: sealed twice");
    let path = format!("{}/vectors/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WINGBEAT_WRITE_VECTORS").is_some() {
        std::fs::write(&path, format!("{}\n", hex(&bytes))).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let what = "to accept new bytes, raise VERSION and set WINGBEAT_WRITE_VECTORS";
    assert_eq!(hex(&bytes), golden.trim(), "{name}: {what}");
}

fn plan_of(aircraft: u8, waypoints: i32) -> Plan {
    Plan {
        layout: 1,
        distance_mm: 50_000,
        landing_distance_mm: 10_000,
        heading_urad: 6_283_185,
        slots: (0..u64::from(aircraft)).map(|i| VehicleId(0xfe00_0000_0000 + i)).collect(),
        take_off_order: (0..aircraft).collect(),
        waypoints: (0..waypoints).map(point).collect(),
        offsets: heapless::Vec::new(),
    }
}

/// Length of a sealed datagram.
fn sealed_len(content: &[u8]) -> usize {
    signer(1).seal(&mut Draft::of_content(content).unwrap()).len()
}

fn encoded(message: Message) -> Result<Vec<u8>, Refused> {
    encode(&Datagram { from: VehicleId(u64::MAX), counter: u64::MAX, flight: u32::MAX, message })
}

#[test]
fn a_plan_for_a_hundred_aircraft_fits_one_datagram() {
    for (aircraft, waypoints) in [(81, 30), (100, 30)] {
        let message = Message::Data(plan_of(aircraft, waypoints));
        let bytes = encoded(message.clone()).unwrap();
        assert_eq!(sealed_len(&bytes), length_at_most(&message), "{aircraft} aircraft");
    }
    let mut custom = plan_of(100, 30);
    custom.layout = 7;
    custom.offsets = (0..100).map(|n| SlotOffset { right_dm: 5_000, ahead_dm: -n * 40, up_dm: n }).collect();
    let message = Message::Data(custom);
    assert!(length_at_most(&message) > DATAGRAM_LEN_MAX);
    assert_eq!(encoded(message), Err(Refused::TooLong));
}

#[test]
fn a_plan_whose_offsets_contradict_its_formation_is_refused() {
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan_of(3, 3);
        change(&mut plan);
        decode(&encoded(Message::Data(plan)).unwrap()).err()
    };
    let offsets = |n: usize| (0..n).map(|i| SlotOffset { right_dm: i as i32 * 100, ..SlotOffset::default() });
    for layout in [0, 1, 2, 3, 4, 5, 8, 15, 18, 24] {
        assert_eq!(refused(&|p| p.layout = layout), None, "{layout}");
        let listed = |p: &mut Plan| (p.layout, p.offsets) = (layout, offsets(3).collect());
        assert_eq!(refused(&listed), Some(Refused::Contradiction), "{layout}");
    }
    for layout in [6, 7] {
        assert_eq!(refused(&|p| p.layout = layout), Some(Refused::Contradiction), "{layout}");
        for (n, answer) in [(2, Some(Refused::Contradiction)), (3, None), (4, Some(Refused::Contradiction))] {
            assert_eq!(refused(&|p| (p.layout, p.offsets) = (layout, offsets(n).collect())), answer);
        }
    }
    for layout in [16, 17, 25, 255] {
        assert_eq!(refused(&|p| p.layout = layout), Some(Refused::Contradiction), "{layout}");
    }
    let far = |p: &mut Plan| {
        (p.layout, p.offsets) = (7, offsets(3).collect());
        p.offsets[1].ahead_dm = i32::MIN;
    };
    assert_eq!(refused(&far), Some(Refused::Impossible));
}

#[test]
fn a_probe_has_every_length_and_impossible_ones_are_refused() {
    for length in [0, 1, 127, 128, 129, 255, 256, 1_200] {
        let padded = Probe { padding: Padding(length), ..probe() };
        let bytes = encoded(Message::Probe(padded)).unwrap();
        let bare = encoded(Message::Probe(probe())).unwrap();
        assert_eq!(bytes.len(), bare.len() + usize::from(length));
        assert_eq!(decode(&bytes).unwrap().message, Message::Probe(padded));
        let mut other = bytes.clone();
        *other.last_mut().unwrap() = 1;
        assert_eq!(decode(&other).err(), Some(Refused::Malformed), "{length}: no zero, or a number of none");
        assert_eq!(decode(&bytes[..bytes.len() - 1]).err(), Some(Refused::Malformed), "{length}: cut off");
    }
    assert_eq!(encoded(Message::Probe(Probe { padding: Padding(1_400), ..probe() })), Err(Refused::TooLong));
    let refused = |change: &dyn Fn(&mut Probe, &mut SenderMotion)| {
        let (mut probe, mut motion) = (probe(), probe().motion.unwrap());
        change(&mut probe, &mut motion);
        decode(&encoded(Message::Probe(Probe { motion: Some(motion), ..probe })).unwrap()).err()
    };
    assert_eq!(refused(&|_, _| {}), None);
    assert_eq!(refused(&|probe, _| probe.period_ms = 0), Some(Refused::Impossible));
    assert_eq!(refused(&|_, motion| motion.heading_cdeg = 36_000), Some(Refused::Impossible));
    assert_eq!(refused(&|_, motion| motion.up_cm_s = i16::MIN), Some(Refused::Impossible));
    assert_eq!(refused(&|_, motion| motion.at.latitude_e7 = 900_000_001), Some(Refused::OffEarth));
}

#[test]
fn corrections_are_one_whole_frame_that_a_flight_controller_takes() {
    let longest = Message::Corrections(rtcm_frame(&[7; RTCM_LEN_MAX - 6]).unwrap());
    let bytes = encoded(longest.clone()).unwrap();
    assert_eq!(decode(&bytes).unwrap().message, longest);
    assert_eq!(sealed_len(&bytes), length_at_most(&longest));
    let whole = encoded(Message::Corrections(corrections())).unwrap();
    for byte in whole.len() - 25..whole.len() {
        let mut changed = whole.clone();
        changed[byte] ^= 0x10;
        assert_eq!(decode(&changed).err(), Some(Refused::Impossible), "byte {byte}");
    }
    let refused = |frame: &[u8]| {
        let frame = heapless::Vec::from_slice(frame).unwrap();
        decode(&encoded(Message::Corrections(Corrections { frame })).unwrap()).err()
    };
    let twice = corrections().frame.repeat(2);
    for (frame, what) in
        [(&[][..], "nothing"), (&twice, "two"), (&twice[..24], "a part"), (&twice[..26], "more")]
    {
        assert_eq!(refused(frame), Some(Refused::Impossible), "{what}");
    }
    // A length of 721, which this program never writes.
    let mut long = encoded(longest).unwrap();
    let at = long.len() - RTCM_LEN_MAX - 2;
    assert_eq!(long[at..at + 2], [0xd0, 0x05]);
    long[at] = 0xd1;
    long.push(0);
    assert_eq!(decode(&long).err(), Some(Refused::Malformed));
}

#[test]
fn parts_of_a_plan_that_contradict_themselves_are_refused() {
    let first = |change: &dyn Fn(&mut FirstPart)| {
        let mut part = first_part();
        change(&mut part);
        decode(&encoded(Message::DataFirst(part)).unwrap()).err()
    };
    assert_eq!(first(&|_| {}), None);
    assert_eq!(first(&|p| p.count = 4), None);
    // A whole plan is a `Data`; a plan has at most 600 waypoints.
    assert_eq!(first(&|p| p.count = 3), Some(Refused::Contradiction));
    assert_eq!(first(&|p| p.count = 601), Some(Refused::Contradiction));
    assert_eq!(first(&|p| p.plan.waypoints.clear()), Some(Refused::Contradiction));
    assert_eq!(first(&|p| p.plan.waypoints[1].latitude_e7 = -900_000_001), Some(Refused::OffEarth));

    let more = |change: &dyn Fn(&mut MoreWaypoints)| {
        let mut part = more_waypoints();
        change(&mut part);
        decode(&encoded(Message::DataWaypoints(part)).unwrap()).err()
    };
    assert_eq!(more(&|_| {}), None);
    assert_eq!(more(&|p| p.first = 597), None);
    assert_eq!(more(&|p| p.first = 598), Some(Refused::Contradiction));
    assert_eq!(more(&|p| p.first = u16::MAX), Some(Refused::Contradiction));
    assert_eq!(more(&|p| p.first = 0), Some(Refused::Contradiction));
    assert_eq!(more(&|p| p.count = 601), Some(Refused::Contradiction));
    assert_eq!(more(&|p| p.waypoints.clear()), Some(Refused::Contradiction));
    assert_eq!(more(&|p| p.waypoints[2].longitude_e7 = 1_800_000_001), Some(Refused::OffEarth));
}

#[test]
fn the_longest_part_of_a_plan_fits_a_datagram() {
    let far = Point { latitude_e7: -900_000_000, longitude_e7: 1_800_000_000, height_mm: i32::MIN };
    assert_eq!(point_length(far), POINT_LEN_MAX);
    let part = MoreWaypoints {
        hash: u64::MAX,
        count: 600,
        first: 505,
        waypoints: core::iter::repeat_n(far, MORE_WAYPOINTS_MAX).collect(),
    };
    let message = Message::DataWaypoints(part);
    let bytes = encoded(message.clone()).unwrap();
    assert!((DATAGRAM_LEN_MAX - POINT_LEN_MAX..=DATAGRAM_LEN_MAX).contains(&sealed_len(&bytes)));
    assert_eq!(decode(&bytes).unwrap().message, message);
}

#[test]
fn the_parts_of_a_plan_make_no_message_larger() {
    assert!(size_of::<Message>() <= size_of::<Plan>() + 3 * size_of::<u64>());
}

#[test]
fn each_kind_of_malformed_bytes_has_its_reason() {
    let good = encode(&Datagram { from: VehicleId(1), counter: 0, flight: 0, message: Message::ReadyToFly })
        .unwrap();
    assert_eq!(decode(&[]), Err(Refused::Malformed));
    assert_eq!(decode(&[0; DATAGRAM_LEN_MAX]), Err(Refused::TooLong));
    assert_eq!(decode(&good[..good.len() - 1]), Err(Refused::Malformed));
    let mut long = good.clone();
    long.push(0);
    assert_eq!(decode(&long), Err(Refused::TrailingBytes));
    let away = Point { latitude_e7: 900_000_001, ..point(0) };
    let bytes =
        encode(&Datagram { from: VehicleId(1), flight: 0, counter: 0, message: Message::Hello { at: away } })
            .unwrap();
    assert_eq!(decode(&bytes), Err(Refused::OffEarth));
    for (i, reason) in Refused::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, i, "ALL is in the order of the enum");
    }
}

#[test]
fn a_beacon_that_no_multicopter_sends_is_refused() {
    let refused = |change: &dyn Fn(&mut Beacon)| {
        let mut beacon = beacon();
        change(&mut beacon);
        let message = Message::Beacon(beacon);
        let bytes = encode(&Datagram { from: VehicleId(1), counter: 0, flight: 0, message }).unwrap();
        decode(&bytes).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|b| b.speed_cm_s = 10_001), Some(Refused::Impossible));
    assert_eq!(refused(&|b| b.age_ms = 10_001), Some(Refused::Stale));
    assert_eq!(refused(&|b| b.locations.clear()), Some(Refused::Contradiction));
    assert_eq!(refused(&|b| b.locations[2].latitude_e7 = 900_000_001), Some(Refused::OffEarth));
    assert_eq!(refused(&|b| b.locations[0].altitude_mm = i32::MAX), Some(Refused::Impossible));
    assert_eq!(refused(&|b| b.locations[2].latitude_e7 += 90_000_000), Some(Refused::FarAway));
    assert_eq!(refused(&|b| b.locations[1].longitude_e7 += 9_000_600), Some(Refused::FarAway));
    // Across the date line it is not far.
    let across = |b: &mut Beacon| {
        b.locations.iter_mut().for_each(|l| l.longitude_e7 = 1_799_999_000);
        b.locations[1].longitude_e7 = -1_799_999_000;
    };
    assert_eq!(refused(&across), None);
    // More locations than fit: the count is the last but the locations themselves.
    let whole = Beacon { locations: (0..59).map(|_| Location::default()).collect(), ..beacon() };
    let message = Message::Beacon(whole);
    let mut bytes = encode(&Datagram { from: VehicleId(1), counter: 0, flight: 0, message }).unwrap();
    let count = bytes.iter().rposition(|&b| b == 59).unwrap();
    bytes[count] = 60;
    bytes.extend_from_slice(&[0, 0, 0]);
    assert_eq!(decode(&bytes), Err(Refused::Malformed));
}

#[test]
fn a_course_that_no_multicopter_flies_is_refused() {
    let refused = |change: &dyn Fn(&mut Course)| {
        let mut course = course();
        change(&mut course);
        let message = Message::Course(course);
        let bytes = encode(&Datagram { from: VehicleId(1), counter: 0, flight: 0, message }).unwrap();
        decode(&bytes).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|c| c.waypoints.clear()), None, "it stays where it is");
    assert_eq!(refused(&|c| c.waypoints[2].latitude_e7 = 900_000_001), Some(Refused::OffEarth));
    assert_eq!(refused(&|c| c.waypoints[0].altitude_mm = i32::MAX), Some(Refused::Impossible));
    assert_eq!(refused(&|c| c.waypoints[2].latitude_e7 += 90_000_000), Some(Refused::FarAway));
}

#[test]
fn coordinates_that_no_leader_has_are_refused() {
    let refused = |change: &dyn Fn(&mut Coordinates)| {
        let mut coordinates = coordinates();
        change(&mut coordinates);
        let message = Message::Coordinates(coordinates);
        let bytes = encode(&Datagram { from: VehicleId(1), counter: 0, flight: 0, message }).unwrap();
        decode(&bytes).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|c| c.heading_urad = 6_283_186), Some(Refused::Impossible));
    assert_eq!(refused(&|c| c.heading_urad = u32::MAX), Some(Refused::Impossible));
    assert_eq!(refused(&|c| c.at.height_mm = 10_000_001), Some(Refused::Impossible));
    assert_eq!(refused(&|c| c.at.height_mm = i32::MIN), Some(Refused::Impossible));
    assert_eq!(refused(&|c| c.at.longitude_e7 = 1_800_000_001), Some(Refused::OffEarth));
}

/// The derived reading, by value.
fn derived(bytes: &[u8]) -> Option<Datagram> {
    let (datagram, rest) = postcard::take_from_bytes::<Datagram>(bytes).ok()?;
    (rest.is_empty() && datagram.message.check().is_ok()).then_some(datagram)
}

#[test]
fn every_kind_has_an_example() {
    let kinds: std::collections::BTreeSet<u32> = examples()
        .iter()
        .map(|(_, message)| {
            let bytes = encode(&Datagram { message: message.clone(), ..Datagram::blank() }).unwrap();
            postcard::take_from_bytes(&bytes[3..]).unwrap().0
        })
        .collect();
    let known = |kind: &u32| postcard::take_from_bytes::<Message>(&[*kind as u8]).err();
    let unknown = (0..).find(|kind| known(kind) == Some(postcard::Error::SerdeDeCustom)).unwrap();
    assert_eq!(kinds, (0..unknown).collect());
}

proptest! {
    #[test]
    fn read_in_place_as_derived(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        kind in 0..32u8, mut bytes in prop::collection::vec(any::<u8>(), 4..200),
    ) {
        let message = which.get(&examples()).1.clone();
        let mut changed = encode(&Datagram { message, ..Datagram::blank() }).unwrap();
        *at.get_mut(&mut changed) = byte;
        prop_assert_eq!(decode(&changed).ok(), derived(&changed));
        bytes[..4].copy_from_slice(&[0, 0, 0, kind]);
        prop_assert_eq!(decode(&bytes).ok(), derived(&bytes));
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..1600)) {
        let members = roster([(VehicleId(1), 1)]);
        prop_assert!(members.open(&bytes).is_err());
        if let Some(first) = bytes.first_mut() { *first = VERSION; }
        prop_assert!(members.open(&bytes).is_err());
        let _ = read_unverified(&bytes);
        if let Ok(datagram) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&datagram).unwrap()), Ok(datagram));
        }
    }

    #[test]
    fn every_list_of_locations_survives(
        list in prop::collection::vec((any::<i32>(), any::<i32>(), any::<i32>()), 0..59),
    ) {
        let location = |&(latitude_e7, longitude_e7, altitude_mm): &(i32, i32, i32)| {
            Location { latitude_e7, longitude_e7, altitude_mm }
        };
        let beacon = Beacon { locations: list.iter().map(location).collect(), ..Beacon::default() };
        let bytes = encode(&Datagram { message: Message::Beacon(beacon.clone()), ..Datagram::blank() }).unwrap();
        let mut read = Datagram::blank();
        read::body(&bytes[2..], &mut read).unwrap();
        prop_assert_eq!(read.message, Message::Beacon(beacon));
    }

    #[test]
    fn a_flipped_bit_is_another_datagram_or_a_refusal(
        which in any::<prop::sample::Index>(), bit in 0..400usize,
    ) {
        let message = which.get(&examples()).1.clone();
        let datagram = Datagram { from: VehicleId(5), counter: 2, flight: 9, message };
        let mut bytes = encode(&datagram).unwrap();
        let at = bit / 8 % bytes.len();
        bytes[at] ^= 1 << (bit % 8);
        prop_assert_ne!(decode(&bytes), Ok(datagram));
    }
}
