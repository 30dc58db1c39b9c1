//! Reading a datagram in place, and writing one at the end of what is there.
//!
//! A message is as large as its largest kind, and without an allocator it lies where it is used. What the derived
//! reading does, value by value through a visitor each, moves the whole of it several times for a message of
//! three numbers. So the kinds are distinguished here, by the numbers that the derived writing gives them; the
//! tests compare every kind with that.

use core::num::NonZeroU32;

use heapless::Vec;
use postcard::ser_flavors::Flavor;
use postcard::{Deserializer, Error, Result, de_flavors::Slice};
use serde::Deserialize;

use crate::envelope::Bytes;
use crate::{
    Beacon, Command, Corrections, Course, Datagram, FirstPart, Message, MoreWaypoints, Order, Plan,
    VehicleId, deltas,
};

/// The number of [`Message::Order`].
const ORDER: u32 = 29;
/// The number of [`Message::Passed`].
const PASSED: u32 = 31;

type Reader<'a> = Deserializer<'a, Slice<'a>>;

fn next<'a, T: Deserialize<'a>>(reader: &mut Reader<'a>) -> Result<T> {
    T::deserialize(reader)
}

/// Reads sender and counter, which stand first; the rest is returned.
pub(crate) fn origin(content: &[u8]) -> Result<(VehicleId, u64, &[u8])> {
    let mut reader = Deserializer::from_bytes(content);
    let (from, counter) = (next(&mut reader)?, next(&mut reader)?);
    Ok((from, counter, reader.finalize()?))
}

/// The part of a console's order that decides how its age is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// An exclusion: its flight and the member.
    Exclusion(u32, VehicleId),
    /// Another command: the session of the console's program, if it states one.
    InSession(Option<NonZeroU32>),
}

/// Reads that part of an order; `None` for any other message.
pub(crate) fn ordered(body: &[u8]) -> Option<Ordered> {
    let mut reader = Deserializer::from_bytes(body);
    let flight = next(&mut reader).ok()?;
    let kind: u32 = next(&mut reader).ok()?;
    if kind != ORDER {
        return None;
    }
    Some(match next(&mut reader).ok()? {
        Order { command: Command::Exclude { member }, .. } => Ordered::Exclusion(flight, member),
        Order { .. } => Ordered::InSession(NonZeroU32::new(flight)),
    })
}

/// The datagram within one that passes a leader's command on; nothing of any other message.
pub(crate) fn passed(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Deserializer::from_bytes(body);
    let _flight: u32 = next(&mut reader).ok()?;
    let kind: u32 = next(&mut reader).ok()?;
    if kind == PASSED { next(&mut reader).ok() } else { None }
}

/// Reads what comes after them in place; what comes after that is returned.
pub(crate) fn body<'a>(bytes: &'a [u8], datagram: &mut Datagram) -> Result<&'a [u8]> {
    let mut reader = Deserializer::from_bytes(bytes);
    datagram.flight = next(&mut reader)?;
    message(&mut reader, &mut datagram.message)?;
    reader.finalize()
}

fn message(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    let kind: u32 = next(r)?;
    *message = match kind {
        0 => Message::Hello { at: next(r)? },
        1 => return whole_plan(r, message),
        2 => Message::DataAck { hash: next(r)? },
        3 => Message::ReadyToFly,
        4 => Message::ReadyToFlyAck,
        5 => Message::TakeOffNow { next: next(r)? },
        6 => Message::TargetReached,
        7 => Message::TakeOffEnd,
        8 => Message::TakeOffEndAck,
        9 => Message::ReachedWaypointAck { waypoint: next(r)? },
        10 => Message::MoveToWaypoint { waypoint: next(r)? },
        11 => Message::Land { at: next(r)? },
        12 => return beacon(r, message),
        13 => Message::Coordinates(next(r)?),
        14 => Message::Alive { at: next(r)? },
        15 => Message::Gather { waypoint: next(r)? },
        16 => Message::Following { waypoint: next(r)?, reached: next(r)?, leader: next(r)?, at: next(r)? },
        17 => Message::Leaving { at: next(r)?, how: next(r)? },
        18 => Message::Exclude { member: next(r)? },
        19 => Message::LandHere { at: next(r)? },
        20 => Message::LandAround { at: next(r)?, leader: next(r)? },
        21 => Message::Release { waypoint: next(r)? },
        22 => Message::TakeOffTogether,
        23 => Message::Holding { at: next(r)? },
        24 => return first_part(r, message),
        25 => return more_waypoints(r, message),
        26 => Message::Recall,
        27 => Message::Stands { at: next(r)? },
        28 => return course(r, message),
        ORDER => Message::Order(next(r)?),
        30 => Message::OrderTaken(next(r)?),
        PASSED => return passed_on(r, message),
        32 => Message::Probe(next(r)?),
        33 => return corrections(r, message),
        34 => Message::Adrift { at: next(r)? },
        _ => return Err(Error::DeserializeBadEncoding),
    };
    Ok(())
}

fn whole_plan(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    *message = Message::Data(Plan::default());
    if let Message::Data(read) = message { plan(r, read) } else { Ok(()) }
}

fn first_part(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    *message = Message::DataFirst(FirstPart::default());
    let Message::DataFirst(part) = message else { return Ok(()) };
    plan(r, &mut part.plan)?;
    part.hash = next(r)?;
    part.count = next(r)?;
    Ok(())
}

fn more_waypoints(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    *message = Message::DataWaypoints(MoreWaypoints::default());
    let Message::DataWaypoints(part) = message else { return Ok(()) };
    part.hash = next(r)?;
    part.count = next(r)?;
    part.first = next(r)?;
    list(r, &mut part.waypoints)
}

fn passed_on(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    let bytes: &[u8] = next(r)?;
    *message = Message::Passed(Vec::from_slice(bytes).map_err(|_| Error::DeserializeBadEncoding)?);
    Ok(())
}

fn corrections(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    let bytes: &[u8] = next(r)?;
    let frame = Vec::from_slice(bytes).map_err(|_| Error::DeserializeBadEncoding)?;
    *message = Message::Corrections(Corrections { frame });
    Ok(())
}

fn plan(r: &mut Reader<'_>, plan: &mut Plan) -> Result<()> {
    plan.layout = next(r)?;
    plan.distance_mm = next(r)?;
    plan.landing_distance_mm = next(r)?;
    plan.heading_urad = next(r)?;
    list(r, &mut plan.slots)?;
    list(r, &mut plan.take_off_order)?;
    list(r, &mut plan.waypoints)?;
    list(r, &mut plan.offsets)
}

fn beacon(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    *message = Message::Beacon(Beacon::default());
    let Message::Beacon(beacon) = message else { return Ok(()) };
    beacon.event = next(r)?;
    beacon.state = next(r)?;
    beacon.landing = next(r)?;
    beacon.avoiding = next(r)?;
    beacon.planned_speed_cm_s = next(r)?;
    beacon.speed_cm_s = next(r)?;
    beacon.age_ms = next(r)?;
    list(r, &mut beacon.locations)?;
    deltas::restore(&mut beacon.locations);
    Ok(())
}

fn course(r: &mut Reader<'_>, message: &mut Message) -> Result<()> {
    *message = Message::Course(Course::default());
    let Message::Course(course) = message else { return Ok(()) };
    course.lands = next(r)?;
    list(r, &mut course.waypoints)?;
    deltas::restore(&mut course.waypoints);
    Ok(())
}

/// A list, which begins with its length. One that is too long is refused before it is read.
fn list<'a, T: Deserialize<'a>, const N: usize>(r: &mut Reader<'a>, list: &mut Vec<T, N>) -> Result<()> {
    list.clear();
    let count: usize = next(r)?;
    if count > N {
        return Err(Error::DeserializeBadEncoding);
    }
    for _ in 0..count {
        // There is room: see above.
        list.push(next(r)?).map_err(|_| Error::DeserializeBadEncoding)?;
    }
    Ok(())
}

/// Writes at the end of bytes.
pub(crate) struct Tail<'a>(pub(crate) &'a mut Bytes);

impl Flavor for Tail<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> Result<()> {
        self.0.push(byte).map_err(|_| Error::SerializeBufferFull)
    }
    fn try_extend(&mut self, bytes: &[u8]) -> Result<()> {
        // Numbers of a few bytes: a call to copy them costs more than they do.
        bytes.iter().try_for_each(|byte| self.try_push(*byte))
    }
    fn finalize(self) -> Result<()> {
        Ok(())
    }
}
