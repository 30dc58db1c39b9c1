//! The messages between aircraft and their bytes; and the vocabulary that aircraft share with the ground: an
//! operator's [`Command`], a flight's [`StateId`] and [`Phase`].
//!
//! A datagram is a version byte and a postcard-encoded [`Datagram`]. Everything in it is bounded and an
//! integer. [`decode`] turns bytes into a value that cannot be wrong, or names one reason per refused
//! datagram; it never panics and never allocates. Golden datagrams lie under `vectors/`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

#[cfg(feature = "schema")]
extern crate std;

mod command;
mod message;
mod places;
mod read;
mod state;

pub use command::Command;
pub use message::{
    AGE_MAX_MS, Avoidance, Beacon, COURSE_MAX, Coordinates, Course, Ending, FIRST_WAYPOINTS_MAX, FirstPart,
    LOCATIONS_MAX, Location, MORE_WAYPOINTS_MAX, Message, MoreWaypoints, Plan, Point, SWARM_MAX, SlotOffset,
    VehicleId, WAYPOINTS_MAX,
};

pub use places::Places;
use serde::Serialize;
pub use state::{Phase, StateId};

/// The longest datagram: what fits an Ethernet frame without fragments (1500 − 20 IP − 8 UDP).
pub const DATAGRAM_LEN_MAX: usize = 1472;

/// The first byte of every datagram. A change of any message below changes it. A kind that is added does not: to an older
/// program its datagrams are malformed.
pub const VERSION: u8 = 3;

/// The bytes of one datagram.
pub type Bytes = heapless::Vec<u8, DATAGRAM_LEN_MAX>;

/// A datagram: a message with its sender, flight and sequence number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Datagram {
    /// The sender.
    pub from: VehicleId,
    /// The flight it belongs to: drawn at random by the leader at setup. Before that, [`Message::Hello`] bears a
    /// number made from the id of the leader that it is for. A message of another flight is an old one or another
    /// swarm's.
    pub flight: u32,
    /// Counts the sender's datagrams, so that duplicates and losses are seen.
    pub sequence: u32,
    /// The content.
    pub message: Message,
}

/// Why a datagram was dropped. One reason each, counted and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refused {
    /// No byte at all.
    #[error("empty datagram")]
    Empty,
    /// Longer than [`DATAGRAM_LEN_MAX`].
    #[error("longer than {DATAGRAM_LEN_MAX} bytes")]
    TooLong,
    /// The first byte is not [`VERSION`].
    #[error("unknown protocol version")]
    Version,
    /// The bytes are not a datagram of this version.
    #[error("malformed")]
    Malformed,
    /// A whole datagram and something after it.
    #[error("bytes after the end")]
    TrailingBytes,
    /// A position that is not on the earth.
    #[error("position off the earth")]
    OffEarth,
    /// A plan whose parts contradict each other.
    #[error("contradictory plan")]
    Contradiction,
    /// Our own datagram came back: a broadcast reaches its sender too.
    #[error("own datagram")]
    Own,
    /// The sender does not belong to this swarm, or claims a role that it does not have.
    #[error("unexpected sender")]
    UnexpectedSender,
    /// It belongs to another flight.
    #[error("other flight")]
    OtherFlight,
    /// A number that no multicopter has: a speed, an altitude.
    #[error("impossible value")]
    Impossible,
    /// Measured too long ago.
    #[error("stale")]
    Stale,
    /// A position too far away to matter here.
    #[error("far away")]
    FarAway,
    /// The sender sends more than its share.
    #[error("storm")]
    Storm,
    /// More aircraft than can be known.
    #[error("no room")]
    NoRoom,
    /// A newer one of the same sender came before it: it was delayed, duplicated or recorded.
    #[error("overtaken by a newer one")]
    Overtaken,
}

impl Refused {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 16] = [
        Self::Empty,
        Self::TooLong,
        Self::Version,
        Self::Malformed,
        Self::TrailingBytes,
        Self::OffEarth,
        Self::Contradiction,
        Self::Own,
        Self::UnexpectedSender,
        Self::OtherFlight,
        Self::Impossible,
        Self::Stale,
        Self::FarAway,
        Self::Storm,
        Self::NoRoom,
        Self::Overtaken,
    ];
    /// A stable name for counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::Version => "version",
            Self::Malformed => "malformed",
            Self::TrailingBytes => "trailing_bytes",
            Self::OffEarth => "off_earth",
            Self::Contradiction => "contradiction",
            Self::Own => "own",
            Self::UnexpectedSender => "stranger",
            Self::OtherFlight => "other_flight",
            Self::Impossible => "impossible",
            Self::Stale => "stale",
            Self::FarAway => "far_away",
            Self::Storm => "storm",
            Self::NoRoom => "no_room",
            Self::Overtaken => "overtaken",
        }
    }
}

impl Datagram {
    /// An empty one, to be read into with [`decode_into`].
    pub const fn blank() -> Self {
        Self { from: VehicleId(0), flight: 0, sequence: 0, message: Message::ReadyToFly }
    }
}

/// The bytes of a datagram.
///
/// # Errors
/// [`Refused::TooLong`] when it does not fit: the plan has too many slots.
pub fn encode(datagram: &Datagram) -> Result<Bytes, Refused> {
    let Datagram { from, flight, sequence, message } = datagram;
    let mut bytes = Bytes::new();
    encode_into(*from, *flight, *sequence, message, &mut bytes)?;
    Ok(bytes)
}

/// Writes the bytes of the datagram with this message: in place, because a message has room for the largest
/// plan, and most are a few bytes.
///
/// # Errors
/// As [`encode`]; `bytes` are not to be sent then.
pub fn encode_into(
    from: VehicleId,
    flight: u32,
    sequence: u32,
    message: &Message,
    bytes: &mut Bytes,
) -> Result<(), Refused> {
    bytes.clear();
    bytes.push(VERSION).map_err(|_| Refused::TooLong)?;
    // The same fields in the same order as a datagram's: the same bytes.
    let datagram = (from, flight, sequence, message);
    postcard::serialize_with_flavor(&datagram, read::Tail(bytes)).map_err(|_| Refused::TooLong)
}

/// What stands before a message at its longest: version; 64 bits, and twice 32, seven to a byte.
const HEADER_LEN_MAX: usize = 1 + 10 + 5 + 5;

/// Three numbers of 32 bits, seven to a byte.
const POINT_LEN_MAX: usize = 3 * 5;

// Kind; hash; twice 16 bits; the number of waypoints.
const _: () = assert!(
    HEADER_LEN_MAX + 1 + 10 + 3 + 3 + 1 + MORE_WAYPOINTS_MAX * POINT_LEN_MAX <= DATAGRAM_LEN_MAX,
    "the longest DataWaypoints fits a datagram"
);

/// Length of the longest datagram with this message: the sender's id and the counters at their
/// longest. More than [`DATAGRAM_LEN_MAX`] cannot be sent.
pub fn length_at_most(message: &Message) -> usize {
    HEADER_LEN_MAX + length(message)
}

/// Bytes of a position in a datagram.
pub fn point_length(point: Point) -> usize {
    length(&point)
}

/// Counting writes nothing, so there is nothing that can fail; if it did, the value cannot be sent.
fn length<T: Serialize>(value: &T) -> usize {
    postcard::experimental::serialized_size(value).unwrap_or(DATAGRAM_LEN_MAX)
}

/// The datagram of some bytes.
///
/// # Errors
/// The one reason why it is not a datagram.
pub fn decode(bytes: &[u8]) -> Result<Datagram, Refused> {
    let mut datagram = Datagram::blank();
    decode_into(bytes, &mut datagram)?;
    Ok(datagram)
}

/// Reads the datagram of some bytes in place: it has room for the largest plan, most are a few bytes, and each
/// is received by every aircraft.
///
/// # Errors
/// As [`decode`]; `datagram` holds no meaning then.
pub fn decode_into(bytes: &[u8], datagram: &mut Datagram) -> Result<(), Refused> {
    let (&version, rest) = bytes.split_first().ok_or(Refused::Empty)?;
    if bytes.len() > DATAGRAM_LEN_MAX {
        return Err(Refused::TooLong);
    }
    if version != VERSION {
        return Err(Refused::Version);
    }
    let rest = read::datagram(rest, datagram).map_err(|_| Refused::Malformed)?;
    if !rest.is_empty() {
        return Err(Refused::TrailingBytes);
    }
    datagram.message.check()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::{format, string::String, vec::Vec};

    fn point(n: i32) -> Point {
        Point { latitude_e7: 394_825_940 + n * 4500, longitude_e7: -3_462_650 - n * 5800, height_mm: 20_000 }
    }

    fn course() -> Course {
        Course { number: 300, lands: true, waypoints: beacon().locations.into_iter().collect() }
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
            ("land_here", Message::LandHere { at: point(5), leader: 2 }),
            ("land_around", Message::LandAround { at: point(9), leader: 2 }),
            ("release", Message::Release { waypoint: 14 }),
            ("take_off_together", Message::TakeOffTogether),
            ("recall", Message::Recall),
            ("holding", Message::Holding { at: point(3) }),
            ("data_first", Message::DataFirst(first_part())),
            ("data_waypoints", Message::DataWaypoints(more_waypoints())),
            ("stands", Message::Stands { at: beacon().locations[0] }),
            ("course", Message::Course(course())),
        ]
    }

    /// The bytes on the air are a contract: a change of them is a new [`VERSION`], never an accident.
    #[test]
    fn golden_datagrams() {
        for (name, message) in examples() {
            let datagram = Datagram { from: VehicleId(0x0200_0000_0001), flight: 7, sequence: 300, message };
            let bytes = encode(&datagram).unwrap();
            assert_eq!(decode(&bytes), Ok(datagram));
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let path = format!("{}/vectors/{name}.hex", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("WINGBEAT_WRITE_VECTORS").is_some() {
                std::fs::write(&path, format!("{hex}\n")).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap();
            assert_eq!(
                hex,
                golden.trim(),
                "{name}: to accept new bytes, raise VERSION and set WINGBEAT_WRITE_VECTORS"
            );
        }
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

    fn encoded(message: Message) -> Result<Bytes, Refused> {
        encode(&Datagram { from: VehicleId(u64::MAX), flight: u32::MAX, sequence: u32::MAX, message })
    }

    #[test]
    fn a_plan_for_a_hundred_aircraft_fits_one_datagram() {
        for (aircraft, waypoints) in [(81, 30), (100, 30)] {
            let message = Message::Data(plan_of(aircraft, waypoints));
            let bytes = encoded(message.clone()).unwrap();
            assert_eq!(bytes.len(), length_at_most(&message), "{aircraft} aircraft");
        }
        let mut custom = plan_of(100, 30);
        custom.layout = 7;
        custom.offsets =
            (0..100).map(|n| SlotOffset { right_dm: 5_000, ahead_dm: -n * 40, up_dm: n }).collect();
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
        let offsets =
            |n: usize| (0..n).map(|i| SlotOffset { right_dm: i as i32 * 100, ..SlotOffset::default() });
        for layout in [0, 1, 2, 3, 4, 5, 8, 15, 18, 24] {
            assert_eq!(refused(&|p| p.layout = layout), None, "{layout}");
            let listed = |p: &mut Plan| (p.layout, p.offsets) = (layout, offsets(3).collect());
            assert_eq!(refused(&listed), Some(Refused::Contradiction), "{layout}");
        }
        for layout in [6, 7] {
            assert_eq!(refused(&|p| p.layout = layout), Some(Refused::Contradiction), "{layout}");
            for (n, answer) in
                [(2, Some(Refused::Contradiction)), (3, None), (4, Some(Refused::Contradiction))]
            {
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
        assert!((DATAGRAM_LEN_MAX - POINT_LEN_MAX..=DATAGRAM_LEN_MAX).contains(&bytes.len()));
        assert_eq!(decode(&bytes).unwrap().message, message);
    }

    #[test]
    fn the_parts_of_a_plan_make_no_message_larger() {
        assert!(size_of::<Message>() <= size_of::<Plan>() + 3 * size_of::<u64>());
    }

    #[test]
    fn each_kind_of_malformed_bytes_has_its_reason() {
        let good =
            encode(&Datagram { from: VehicleId(1), flight: 0, sequence: 0, message: Message::ReadyToFly })
                .unwrap();
        assert_eq!(decode(&[]), Err(Refused::Empty));
        assert_eq!(decode(&[VERSION; DATAGRAM_LEN_MAX + 1]), Err(Refused::TooLong));
        assert_eq!(decode(&[9, 1, 2]), Err(Refused::Version));
        assert_eq!(decode(&good[..good.len() - 1]), Err(Refused::Malformed));
        let mut long = good.clone();
        long.push(0).unwrap();
        assert_eq!(decode(&long), Err(Refused::TrailingBytes));
        let away = Point { latitude_e7: 900_000_001, ..point(0) };
        let bytes = encode(&Datagram {
            from: VehicleId(1),
            flight: 0,
            sequence: 0,
            message: Message::Hello { at: away },
        })
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
            let bytes = encode(&Datagram { from: VehicleId(1), flight: 0, sequence: 0, message }).unwrap();
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
        let mut bytes = encode(&Datagram { from: VehicleId(1), flight: 0, sequence: 0, message }).unwrap();
        let count = bytes.iter().rposition(|&b| b == 59).unwrap();
        bytes[count] = 60;
        bytes.extend_from_slice(&[0, 0, 0]).unwrap();
        assert_eq!(decode(&bytes), Err(Refused::Malformed));
    }

    #[test]
    fn a_course_that_no_multicopter_flies_is_refused() {
        let refused = |change: &dyn Fn(&mut Course)| {
            let mut course = course();
            change(&mut course);
            let message = Message::Course(course);
            let bytes = encode(&Datagram { from: VehicleId(1), flight: 0, sequence: 0, message }).unwrap();
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
            let bytes = encode(&Datagram { from: VehicleId(1), flight: 0, sequence: 0, message }).unwrap();
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
        let (datagram, rest) = postcard::take_from_bytes::<Datagram>(bytes.split_first()?.1).ok()?;
        (bytes[0] == VERSION && rest.is_empty() && datagram.message.check().is_ok()).then_some(datagram)
    }

    #[test]
    fn every_kind_has_an_example() {
        let kinds: std::collections::BTreeSet<u32> = examples()
            .iter()
            .map(|(_, message)| {
                let bytes = encode(&Datagram { message: message.clone(), ..Datagram::blank() }).unwrap();
                postcard::take_from_bytes(&bytes[4..]).unwrap().0
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
            kind in 0..30u8, mut bytes in prop::collection::vec(any::<u8>(), 5..200),
        ) {
            let message = which.get(&examples()).1.clone();
            let mut changed = encode(&Datagram { message, ..Datagram::blank() }).unwrap();
            *at.get_mut(&mut changed) = byte;
            prop_assert_eq!(decode(&changed).ok(), derived(&changed));
            bytes[..5].copy_from_slice(&[VERSION, 0, 0, 0, kind]);
            prop_assert_eq!(decode(&bytes).ok(), derived(&bytes));
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..1600)) {
            let _ = decode(&bytes);
            if let Some(first) = bytes.first_mut() { *first = VERSION; }
            if let Ok(datagram) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&datagram).unwrap()), Ok(datagram));
            }
        }

        #[test]
        fn a_flipped_bit_is_another_datagram_or_a_refusal(
            which in any::<prop::sample::Index>(), bit in 0..400usize,
        ) {
            let message = which.get(&examples()).1.clone();
            let datagram = Datagram { from: VehicleId(5), flight: 9, sequence: 2, message };
            let mut bytes = encode(&datagram).unwrap();
            let at = bit / 8 % bytes.len();
            bytes[at] ^= 1 << (bit % 8);
            prop_assert_ne!(decode(&bytes), Ok(datagram));
        }
    }
}
