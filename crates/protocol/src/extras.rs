//! Parts of a mission besides its waypoints: speeds, holds, yaws, the height of its take-off and its end.
//!
//! The flight controller flies speeds, holds and yaws by itself in AUTO. The end is a part of the route: an aircraft that
//! returns or lands elsewhere flies there along a last leg, at the height of the last waypoint or higher, so that
//! avoidance and predictions hold on the way.

use serde::{Deserialize, Serialize};
use wingbeat_geo::{Duration, Position, ROUTE_MAX};
use wingbeat_wire::Point;

use crate::leg_table::LegTable;
use crate::{MissionError, Route};

/// The highest speed of a leg, centimetres per second.
pub const LEG_SPEED_MAX_CM_S: u16 = 10_000;
/// Yaws are below this, hundredths of a degree.
const YAW_END_CDEG: u16 = 36_000;

/// Parts of one leg: of the waypoint, and of the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegExtras {
    /// Index of the waypoint that the leg leads to, from 0.
    pub waypoint: u16,
    /// Time to hold at the waypoint, seconds.
    pub hold_s: u16,
    /// Ground speed from this leg on, centimetres per second; 0 where it does not change.
    pub speed_cm_s: u16,
    /// Yaw on this leg, hundredths of a degree clockwise from north; `None` where the autopilot turns the aircraft.
    pub yaw_cdeg: Option<u16>,
}

impl LegExtras {
    /// A leg without anything but its waypoint.
    pub const fn none(waypoint: u16) -> Self {
        Self { waypoint, hold_s: 0, speed_cm_s: 0, yaw_cdeg: None }
    }
    /// Whether the leg has nothing but its waypoint.
    pub fn is_none(&self) -> bool {
        *self == Self::none(self.waypoint)
    }
    /// Number of mission items besides the waypoint. A yaw comes with a speed, stated or not: the flight controller keeps
    /// a yaw that is the second item before a waypoint.
    fn items(&self) -> usize {
        let has_yaw = self.yaw_cdeg.is_some();
        usize::from(self.speed_cm_s > 0 || has_yaw) + usize::from(has_yaw)
    }
}

/// How a mission ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouteEnd {
    /// It lands at its last waypoint.
    #[default]
    Land,
    /// It flies to another position and lands there; the height of the point is not used.
    LandAt(Point),
    /// It flies to where it took off and lands there.
    Return {
        /// Least height of the way back above home, millimetres.
        height_mm: i32,
    },
}

impl RouteEnd {
    /// Adds the last leg to a route: to where the mission lands. The way back needs the place of the take-off; without it the
    /// route stays as it is.
    ///
    /// # Errors
    /// The point that does not fit.
    pub(crate) fn add_to(&self, route: &mut Route, home: Option<Position>) -> Result<(), Point> {
        let Some(&last) = route.last() else { return Ok(()) };
        match (*self, home) {
            (Self::LandAt(place), _) => route.push(Point { height_mm: last.height_mm, ..place }),
            (Self::Return { height_mm }, Some(home)) => {
                let height_mm = height_mm.max(last.height_mm);
                if height_mm > last.height_mm {
                    route.push(Point { height_mm, ..last })?;
                }
                let Position { latitude_e7, longitude_e7, .. } = home;
                route.push(Point { latitude_e7, longitude_e7, height_mm })
            }
            (Self::Land, _) | (Self::Return { .. }, None) => Ok(()),
        }
    }
}

/// Parts of a mission besides its waypoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissionExtras {
    /// Legs without extras are not listed.
    legs: LegTable,
    /// How the mission ends.
    pub end: RouteEnd,
    /// Height above home at which the take-off ends, millimetres; 0 for that of the first waypoint.
    pub take_off_mm: i32,
}

impl MissionExtras {
    /// Nothing besides the waypoints.
    pub const NONE: &'static Self = &Self { legs: LegTable::new(), end: RouteEnd::Land, take_off_mm: 0 };

    /// Whether there is nothing besides the waypoints.
    pub fn is_none(&self) -> bool {
        self == Self::NONE
    }

    /// Adds the extras of the next leg; legs come in the order of their waypoints.
    ///
    /// # Errors
    /// The leg is not behind the last one, or does not fit.
    pub fn push(&mut self, leg: LegExtras) -> Result<(), LegExtras> {
        if self.legs.last().is_some_and(|last| last >= leg.waypoint) {
            return Err(leg);
        }
        self.legs.set(leg)
    }

    /// Adds the extras of a leg, in any order; they replace those of the same leg.
    ///
    /// # Errors
    /// The leg is behind the longest route, or [`LEG_KINDS_MAX`] others differ from it.
    pub fn insert(&mut self, leg: LegExtras) -> Result<(), LegExtras> {
        self.legs.set(leg)
    }

    /// The legs that have extras, in order of their waypoints.
    pub fn legs(&self) -> impl DoubleEndedIterator<Item = LegExtras> + '_ {
        self.legs.iter()
    }

    /// The extras of the leg to a waypoint.
    pub fn leg(&self, waypoint: usize) -> LegExtras {
        self.legs.get(waypoint)
    }

    /// The hold at a waypoint.
    pub fn hold(&self, waypoint: usize) -> Duration {
        Duration::from_secs(u64::from(self.leg(waypoint).hold_s))
    }

    /// The speed on the leg to a waypoint, metres per second; `None` where no leg up to there states one.
    pub fn speed_m_s(&self, waypoint: usize) -> Option<f64> {
        let stated = |leg: &LegExtras| usize::from(leg.waypoint) <= waypoint && leg.speed_cm_s > 0;
        self.legs().rev().find(stated).map(|leg| f64::from(leg.speed_cm_s) * 1e-2)
    }

    /// Number of mission items besides the waypoints.
    pub fn items(&self) -> usize {
        self.legs().map(|leg| leg.items()).sum()
    }

    /// Judges the extras of a mission of so many waypoints; the fence judges the height of the take-off at the setup.
    ///
    /// # Errors
    /// A leg to no waypoint, a value out of range, or more items than fit.
    pub(crate) fn check(&self, waypoints: usize) -> Result<(), MissionError> {
        for leg in self.legs() {
            let waypoint = usize::from(leg.waypoint);
            let is_valid = waypoint < waypoints
                && leg.speed_cm_s <= LEG_SPEED_MAX_CM_S
                && leg.yaw_cdeg.is_none_or(|yaw| yaw < YAW_END_CDEG);
            if !is_valid {
                return Err(MissionError::Leg { waypoint });
            }
        }
        let found = waypoints + self.items() + self.end_waypoints();
        if found > ROUTE_MAX { Err(MissionError::Items { found }) } else { Ok(()) }
    }

    /// The most waypoints that the end adds.
    fn end_waypoints(&self) -> usize {
        match self.end {
            RouteEnd::Land => 0,
            RouteEnd::LandAt(_) => 1,
            RouteEnd::Return { .. } => 2,
        }
    }

    /// Returns the extras that the lanes of a sweep have: the speed from the first corner on, the take-off and the end.
    ///
    /// # Errors
    /// A corner has others.
    pub(crate) fn of_lanes(&self) -> Result<Self, MissionError> {
        let mut lanes = Self { end: self.end, take_off_mm: self.take_off_mm, ..Self::default() };
        for leg in self.legs() {
            let is_first = leg.waypoint == 0 && leg.hold_s == 0 && leg.yaw_cdeg.is_none();
            if !is_first || lanes.push(leg).is_err() {
                return Err(MissionError::LegOfArea { waypoint: usize::from(leg.waypoint) });
            }
        }
        Ok(lanes)
    }

    /// Judges the extras of a formation's mission: it flies the end only.
    ///
    /// # Errors
    /// The mission has others.
    pub(crate) fn of_formation(&self, waypoints: &[Point]) -> Result<(), MissionError> {
        let take_off_mm = waypoints.first().map_or(0, |first| first.height_mm);
        match self.legs().next() {
            Some(leg) => Err(MissionError::LegOfFormation { waypoint: usize::from(leg.waypoint) }),
            None if ![0, take_off_mm].contains(&self.take_off_mm) => {
                Err(MissionError::LegOfFormation { waypoint: 0 })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString as _;

    use super::*;

    fn extras(legs: &[(u16, u16, u16)]) -> MissionExtras {
        let mut extras = MissionExtras::default();
        for &(waypoint, hold_s, speed_cm_s) in legs {
            extras.push(LegExtras { hold_s, speed_cm_s, ..LegExtras::none(waypoint) }).unwrap();
        }
        extras
    }

    #[test]
    fn a_speed_holds_until_the_next_one_and_a_hold_is_of_its_waypoint() {
        let extras = extras(&[(1, 0, 400), (2, 30, 0), (5, 10, 250)]);
        let speeds = [0, 1, 2, 4, 5, 9].map(|waypoint| extras.speed_m_s(waypoint));
        assert_eq!(speeds, [None, Some(4.0), Some(4.0), Some(4.0), Some(2.5), Some(2.5)]);
        let holds = [0, 1, 2, 5].map(|waypoint| extras.hold(waypoint).as_millis());
        assert_eq!((holds, extras.items()), ([0, 0, 30_000, 10_000], 2));
        let mut turned = extras.clone();
        turned.insert(LegExtras { yaw_cdeg: Some(9_000), ..LegExtras::none(3) }).unwrap();
        assert_eq!(turned.items(), 4, "a yaw without a speed is two items");
        let mut late = extras.clone();
        assert!(late.push(LegExtras { hold_s: 1, ..LegExtras::none(5) }).is_err(), "twice");
    }

    #[test]
    fn an_end_that_lies_elsewhere_is_a_last_leg() {
        let point = |latitude_e7, height_mm| Point { latitude_e7, longitude_e7: 7, height_mm };
        let home = Some(Position { latitude_e7: 1, longitude_e7: 2, altitude_mm: 5 });
        let there = |height_mm| Point { latitude_e7: 1, longitude_e7: 2, height_mm };
        for (end, home, added) in [
            (RouteEnd::Land, home, &[] as &[Point]),
            (RouteEnd::LandAt(point(90, 0)), home, &[point(90, 20_000)]),
            (RouteEnd::Return { height_mm: 0 }, home, &[there(20_000)]),
            (RouteEnd::Return { height_mm: 25_000 }, home, &[point(60, 25_000), there(25_000)]),
            (RouteEnd::Return { height_mm: 0 }, None, &[]),
        ] {
            let mut route = Route::from_slice(&[point(50, 10_000), point(60, 20_000)]).unwrap();
            end.add_to(&mut route, home).unwrap();
            assert_eq!(&route[2..], added, "{end:?}");
        }
    }

    #[test]
    fn extras_that_do_not_fit_are_named() {
        let error = |extras: &MissionExtras, waypoints| extras.check(waypoints).unwrap_err().to_string();
        assert!(error(&extras(&[(2, 5, 0)]), 2).contains("waypoint 2"));
        assert!(error(&extras(&[(1, 5, 10_001)]), 2).contains("waypoint 1"));
        assert_eq!(extras(&[(1, 5, 10_000)]).check(599), Ok(()));
        assert!(error(&extras(&[(1, 5, 10_000)]), 600).contains("found 601 mission items"));
    }
}
