//! Lists of locations on the air: of each only its difference from where the two before it point. Along a straight path
//! at one speed that is zero but for rounding, one byte for each of the three numbers instead of four or five.
//!
//! The differences wrap, so that every list has one and none is lost: a location that is not on the earth is refused
//! after it was restored, as before.

use heapless::Vec;
use serde::{Deserialize, Deserializer, Serializer, ser::SerializeSeq};

use crate::Location;

/// Where the next location is expected.
#[derive(Default)]
struct Expected {
    next: Location,
    /// None before the first: the second is expected where the first is.
    last: Option<Location>,
}

impl Expected {
    /// Takes the location that was there.
    fn follow(&mut self, found: Location) {
        let ahead = |last: i32, found: i32| found.wrapping_add(found.wrapping_sub(last));
        self.next = self.last.replace(found).map_or(found, |last| combine(last, found, ahead));
    }
}

fn combine(a: Location, b: Location, by: impl Fn(i32, i32) -> i32) -> Location {
    Location {
        latitude_e7: by(a.latitude_e7, b.latitude_e7),
        longitude_e7: by(a.longitude_e7, b.longitude_e7),
        altitude_mm: by(a.altitude_mm, b.altitude_mm),
    }
}

/// The locations of their differences.
pub(crate) fn restore(differences: &mut [Location]) {
    let mut expected = Expected::default();
    for each in differences {
        *each = combine(expected.next, *each, i32::wrapping_add);
        expected.follow(*each);
    }
}

pub(crate) fn serialize<S: Serializer, const N: usize>(
    locations: &Vec<Location, N>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(locations.len()))?;
    let mut expected = Expected::default();
    for each in locations {
        list.serialize_element(&combine(*each, expected.next, i32::wrapping_sub))?;
        expected.follow(*each);
    }
    list.end()
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<Vec<Location, N>, D::Error> {
    let mut locations = Vec::deserialize(deserializer)?;
    restore(&mut locations);
    Ok(locations)
}
