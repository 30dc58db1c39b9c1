//! Datagrams that measure the link between aircraft (thesis section 4.1.3.1, *Dronning*).

use core::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{DATAGRAM_LEN_MAX, Location, Refused};

/// Faster than any multicopter, centimetre per second.
const SPEED_MAX_CM_S: u16 = 10_000;
/// A full circle, 1e-2 degree.
const CIRCLE_CDEG: u16 = 36_000;

/// One of many datagrams, by which receivers count what is lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The test that it belongs to; 0 of those that every aircraft broadcasts all the time.
    pub test: u32,
    /// Its number in the test, from 0; in the background since the sender's start, wrapping.
    pub sequence: u32,
    /// Time from one to the next, milliseconds.
    pub period_ms: u16,
    /// Where the sender is and how it flies, where it is known.
    pub motion: Option<SenderMotion>,
    /// What makes the datagram as long as the test asks for.
    pub padding: Padding,
}

/// Where an aircraft is and how it flies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderMotion {
    /// Present position.
    pub at: Location,
    /// Where the nose points, 1e-2 degree clockwise from north, less than a full circle.
    pub heading_cdeg: u16,
    /// Velocity to the east, centimetre per second.
    pub east_cm_s: i16,
    /// To the north, centimetre per second.
    pub north_cm_s: i16,
    /// Upwards, centimetre per second.
    pub up_cm_s: i16,
}

impl Probe {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        // Silence is judged by it.
        if self.period_ms == 0 {
            return Err(Refused::Impossible);
        }
        self.motion.map_or(Ok(()), |motion| motion.check())
    }
}

impl SenderMotion {
    fn check(&self) -> Result<(), Refused> {
        let velocity = [self.east_cm_s, self.north_cm_s, self.up_cm_s];
        let is_possible = self.heading_cdeg < CIRCLE_CDEG
            && velocity.iter().all(|component| component.unsigned_abs() <= SPEED_MAX_CM_S);
        if is_possible { self.at.check() } else { Err(Refused::Impossible) }
    }
}

/// So many bytes of zero, after their number in two bytes, little-endian: with a number of fixed length every length of the
/// datagram is possible. Bytes that are not zero are refused, so that nothing travels here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding(pub u16);

impl Serialize for Padding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(2 + usize::from(self.0))?;
        for byte in self.0.to_le_bytes() {
            tuple.serialize_element(&byte)?;
        }
        for _ in 0..self.0 {
            tuple.serialize_element(&0_u8)?;
        }
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for Padding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // At most: what is there is known when its number was read.
        deserializer.deserialize_tuple(2 + DATAGRAM_LEN_MAX, Zeros)
    }
}

struct Zeros;

impl<'de> Visitor<'de> for Zeros {
    type Value = Padding;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number in two bytes and as many bytes of zero")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Padding, A::Error> {
        let mut byte = || bytes.next_element::<u8>()?.ok_or_else(|| A::Error::custom("too short"));
        let length = u16::from_le_bytes([byte()?, byte()?]);
        for _ in 0..length {
            if byte()? != 0 {
                return Err(A::Error::custom("padding that is not zero"));
            }
        }
        Ok(Padding(length))
    }
}
