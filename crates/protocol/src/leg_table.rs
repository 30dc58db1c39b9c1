//! Table of the extras of all legs of a mission, in a quarter of the memory of a list of them.
//!
//! A survey states the same few things at hundreds of waypoints. The table keeps each combination of hold, speed and yaw
//! once, and one byte per waypoint.

use core::fmt;

use heapless::Vec;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{SerializeSeq as _, Serializer};
use serde::{Deserialize, Serialize};
use wingbeat_geo::ROUTE_MAX;

use crate::LegExtras;

/// The most combinations of hold, speed and yaw of one mission.
pub const LEG_KINDS_MAX: usize = 128;
/// Stands for a leg without a yaw; yaws are below 36000.
const NO_YAW: u16 = u16::MAX;

/// The parts of a leg without its waypoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    hold_s: u16,
    speed_cm_s: u16,
    yaw_cdeg: u16,
}

impl Kind {
    fn of(leg: LegExtras) -> Self {
        let LegExtras { hold_s, speed_cm_s, yaw_cdeg, .. } = leg;
        Self { hold_s, speed_cm_s, yaw_cdeg: yaw_cdeg.unwrap_or(NO_YAW) }
    }
    fn at(self, waypoint: usize) -> LegExtras {
        let Self { hold_s, speed_cm_s, yaw_cdeg } = self;
        let yaw_cdeg = (yaw_cdeg != NO_YAW).then_some(yaw_cdeg);
        LegExtras { waypoint: number(waypoint), hold_s, speed_cm_s, yaw_cdeg }
    }
}

fn number(waypoint: usize) -> u16 {
    u16::try_from(waypoint).unwrap_or(u16::MAX)
}

/// The extras of the legs of one mission.
#[derive(Clone, Debug, Default)]
pub(crate) struct LegTable {
    /// For each waypoint 0, or the number of its kind counted from 1.
    kind_of: Vec<u8, ROUTE_MAX>,
    kinds: Vec<Kind, LEG_KINDS_MAX>,
}

impl LegTable {
    pub(crate) const fn new() -> Self {
        Self { kind_of: Vec::new(), kinds: Vec::new() }
    }

    fn kind(&self, number: u8) -> Option<Kind> {
        self.kinds.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the extras of the leg to a waypoint.
    pub(crate) fn get(&self, waypoint: usize) -> LegExtras {
        let kind = self.kind_of.get(waypoint).and_then(|of| self.kind(*of));
        kind.map_or(LegExtras::none(number(waypoint)), |kind| kind.at(waypoint))
    }

    /// Sets the extras of a leg.
    ///
    /// # Errors
    /// The leg does not fit, or its yaw is none.
    pub(crate) fn set(&mut self, leg: LegExtras) -> Result<(), LegExtras> {
        let waypoint = usize::from(leg.waypoint);
        if waypoint >= ROUTE_MAX || leg.yaw_cdeg == Some(NO_YAW) {
            return Err(leg);
        }
        let of = if leg.is_none() { 0 } else { self.number_of(Kind::of(leg)).ok_or(leg)? };
        if of != 0 && waypoint >= self.kind_of.len() {
            self.kind_of.resize(waypoint + 1, 0).map_err(|_| leg)?;
        }
        if let Some(slot) = self.kind_of.get_mut(waypoint) {
            *slot = of;
        }
        Ok(())
    }

    /// Returns the number of a kind, which is added where it is new.
    fn number_of(&mut self, kind: Kind) -> Option<u8> {
        let index = match self.kinds.iter().position(|other| *other == kind) {
            Some(index) => index,
            None => {
                self.kinds.push(kind).ok()?;
                self.kinds.len() - 1
            }
        };
        u8::try_from(index + 1).ok()
    }

    /// Returns the legs that have extras, in order of their waypoints.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = LegExtras> + '_ {
        let at = |(waypoint, of): (usize, &u8)| Some(self.kind(*of)?.at(waypoint));
        self.kind_of.iter().enumerate().filter_map(at)
    }

    /// Returns the waypoint of the last leg that has extras.
    pub(crate) fn last(&self) -> Option<u16> {
        self.iter().next_back().map(|leg| leg.waypoint)
    }
}

/// The numbers of the kinds depend on the order in which legs were set.
impl PartialEq for LegTable {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for LegTable {}

/// A recording has the legs in one list, whatever the table in memory is.
impl Serialize for LegTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.iter().count()))?;
        self.iter().try_for_each(|leg| list.serialize_element(&leg))?;
        list.end()
    }
}

impl<'de> Deserialize<'de> for LegTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = LegTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of legs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LegTable, A::Error> {
        let mut table = LegTable::new();
        while let Some(leg) = list.next_element()? {
            table.set(leg).map_err(|_| A::Error::custom("a leg that does not fit"))?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_that_holds_at_each_of_600_waypoints_fits_and_129_kinds_do_not() {
        let mut survey = LegTable::new();
        for waypoint in 0..ROUTE_MAX as u16 {
            survey.set(LegExtras { hold_s: 3 + waypoint % 2, ..LegExtras::none(waypoint) }).unwrap();
        }
        assert_eq!((survey.iter().count(), survey.kinds.len()), (ROUTE_MAX, 2));
        assert_eq!((survey.get(599).hold_s, survey.get(598).hold_s), (4, 3));
        let behind = LegExtras { hold_s: 3, ..LegExtras::none(ROUTE_MAX as u16) };
        assert_eq!(survey.set(behind), Err(behind));
        let mut facade = LegTable::new();
        let leg = |n: u16| LegExtras { yaw_cdeg: Some(n * 100), ..LegExtras::none(n) };
        assert!((0..LEG_KINDS_MAX as u16).all(|n| facade.set(leg(n)).is_ok()));
        assert_eq!(facade.set(leg(128)), Err(leg(128)));
        assert_eq!((facade.get(127), facade.get(128)), (leg(127), LegExtras::none(128)));
        assert!(size_of::<LegTable>() < 1_500, "{} bytes", size_of::<LegTable>());
    }

    #[test]
    fn tables_are_equal_in_whatever_order_their_legs_came() {
        let legs = [(4, 10), (1, 20), (9, 10)].map(|(n, hold_s)| LegExtras { hold_s, ..LegExtras::none(n) });
        let (mut there, mut back) = (LegTable::new(), LegTable::new());
        for (one, other) in legs.iter().zip(legs.iter().rev()) {
            there.set(*one).unwrap();
            back.set(*other).unwrap();
        }
        assert_eq!(there, back);
        back.set(LegExtras::none(4)).unwrap();
        assert_ne!(there, back);
        assert_eq!(back.last(), Some(9));
    }
}
