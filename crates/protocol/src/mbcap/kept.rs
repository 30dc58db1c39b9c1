//! A neighbour's last beacon as it is kept. A table holds 110 of them, so a location after the first takes 9 bytes
//! instead of 12: its difference from the first, exactly.

use heapless::Vec;
use wingbeat_wire::{Avoidance, Beacon, LOCATIONS_MAX, Location, Refused, VehicleId};

/// Latitude, longitude and altitude, each as far from the first location's as 24 bits reach: 93 km of latitude, 8 km
/// of altitude.
type Difference = [[u8; 3]; 3];

/// A whole turn of longitude, 1e-7 degree.
const TURN_E7: i64 = 3_600_000_000;

/// The contents of a beacon that are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) event: u16,
    pub(super) state: Avoidance,
    pub(super) landing: bool,
    pub(super) avoiding: Option<VehicleId>,
    pub(super) planned_speed_cm_s: u16,
    pub(super) speed_cm_s: u16,
    pub(super) age_ms: u16,
    first: Location,
    others: Vec<Difference, { LOCATIONS_MAX - 1 }, u8>,
}

impl Kept {
    /// Takes a beacon; when it cannot be kept, the one before stays.
    ///
    /// # Errors
    /// It has no location, or leads farther than a multicopter flies.
    pub(super) fn replace(&mut self, beacon: &Beacon) -> Result<(), Refused> {
        let (first, others) = beacon.locations.split_first().ok_or(Refused::Contradiction)?;
        let differences = || others.iter().map(|l| difference(first, l));
        // Tried before, and then written in place: a copy of the whole list costs more than the subtractions.
        differences().try_for_each(|d| d.map(drop))?;
        self.others.clear();
        self.others.extend(differences().flatten());
        self.event = beacon.event;
        self.state = beacon.state;
        self.landing = beacon.landing;
        self.avoiding = beacon.avoiding;
        self.planned_speed_cm_s = beacon.planned_speed_cm_s;
        self.speed_cm_s = beacon.speed_cm_s;
        self.age_ms = beacon.age_ms;
        self.first = *first;
        Ok(())
    }

    /// The locations, the current one first.
    pub(super) fn locations(&self) -> impl Iterator<Item = Location> {
        core::iter::once(self.first).chain(self.others.iter().map(|d| at(&self.first, d)))
    }
}

fn difference(first: &Location, other: &Location) -> Result<Difference, Refused> {
    let latitude_e7 = i64::from(other.latitude_e7) - i64::from(first.latitude_e7);
    let altitude_mm = i64::from(other.altitude_mm) - i64::from(first.altitude_mm);
    // The short way round the earth.
    let longitude_e7 = match i64::from(other.longitude_e7) - i64::from(first.longitude_e7) {
        east if east > TURN_E7 / 2 => east - TURN_E7,
        west if west < -TURN_E7 / 2 => west + TURN_E7,
        near => near,
    };
    Ok([
        pack(latitude_e7).ok_or(Refused::FarAway)?,
        pack(longitude_e7).ok_or(Refused::FarAway)?,
        pack(altitude_mm).ok_or(Refused::Impossible)?,
    ])
}

fn at(first: &Location, difference: &Difference) -> Location {
    let [latitude_e7, longitude_e7, altitude_mm] = difference.map(unpack);
    let longitude_e7 = match i64::from(first.longitude_e7) + i64::from(longitude_e7) {
        east if east > TURN_E7 / 2 => east - TURN_E7,
        west if west < -TURN_E7 / 2 => west + TURN_E7,
        near => near,
    };
    Location {
        latitude_e7: first.latitude_e7 + latitude_e7,
        // Within half a turn.
        longitude_e7: longitude_e7 as i32,
        altitude_mm: first.altitude_mm + altitude_mm,
    }
}

fn pack(difference: i64) -> Option<[u8; 3]> {
    const LEAST: i64 = -(1 << 23);
    const MOST: i64 = (1 << 23) - 1;
    let [a, b, c, _] = (difference as i32).to_le_bytes();
    (LEAST..=MOST).contains(&difference).then_some([a, b, c])
}

fn unpack([a, b, c]: [u8; 3]) -> i32 {
    // The sign is in the highest of the three bytes.
    i32::from_le_bytes([0, a, b, c]) >> 8
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    fn beacon(locations: &[(i32, i32, i32)]) -> Beacon {
        let location =
            |&(latitude_e7, longitude_e7, altitude_mm)| Location { latitude_e7, longitude_e7, altitude_mm };
        Beacon { locations: locations.iter().map(location).collect(), ..Beacon::default() }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_received(
            first in (-900_000_000..=900_000_000, -1_799_999_999..=1_799_999_999, -1_000_000..=100_000_000),
            others in proptest::collection::vec((-8_000_000..8_000_000, -8_000_000..8_000_000, -8_000_000..8_000_000), 58),
        ) {
            let wrap = |e7: i32| match i64::from(e7) {
                east if east > TURN_E7 / 2 => (east - TURN_E7) as i32,
                west if west < -TURN_E7 / 2 => (west + TURN_E7) as i32,
                near => near as i32,
            };
            let (latitude, longitude, altitude): (i32, i32, i32) = first;
            let all: std::vec::Vec<_> = core::iter::once(first)
                .chain(others.iter().map(|&(a, b, c)| (latitude + a, wrap(longitude + b), altitude + c)))
                .collect();
            let received = beacon(&all);
            let mut kept = Kept::default();
            prop_assert_eq!(kept.replace(&received), Ok(()));
            prop_assert!(kept.locations().eq(received.locations.iter().copied()));
        }
    }

    #[test]
    fn what_is_too_far_is_refused_and_the_last_beacon_stays() {
        let good = beacon(&[(0, 0, 0), (8_388_607, -8_388_608, 8_388_607)]);
        let mut kept = Kept::default();
        kept.replace(&good).unwrap();
        for (bad, reason) in [
            (beacon(&[(1, 1, 1), (8_388_609, 0, 0)]), Refused::FarAway),
            (beacon(&[(1, 1, 1), (0, -8_388_608, 0)]), Refused::FarAway),
            (beacon(&[(1, 1, 1), (0, 0, 8_388_609)]), Refused::Impossible),
            (beacon(&[]), Refused::Contradiction),
        ] {
            assert_eq!(kept.replace(&bad), Err(reason));
            assert!(kept.locations().eq(good.locations.iter().copied()));
        }
    }
}
