//! The mission that an operator handed over, or that was found in the flight controller.

use wingbeat_autopilot::dialect::MavCmd;
use wingbeat_autopilot::mission::{
    FIRST_WAYPOINT, Item, ItemList, LegItems, RouteItems, hash_with, may_hold,
};
use wingbeat_autopilot::target::RelativePosition;
use wingbeat_protocol::{Command, LegExtras, MissionExtras, Protocol, Route, RouteEnd};
use wingbeat_wire::Point;

use crate::executor::place;
use crate::{Agent, Watched};

/// The place of a mission item.
fn point(item: &Item) -> Point {
    let RelativePosition { latitude_e7, longitude_e7, height_mm } = item.held();
    Point { latitude_e7, longitude_e7, height_mm }
}

/// The parts of a leg as mission items. A leg with a yaw states its speed as well: the yaw then comes second, and the flight
/// controller keeps it.
fn leg_items(extras: &MissionExtras, waypoint: usize, usual_m_s: Option<f64>) -> LegItems {
    let leg = extras.leg(waypoint);
    let stated = (leg.speed_cm_s > 0).then(|| f64::from(leg.speed_cm_s) * 1e-2);
    let for_yaw = || leg.yaw_cdeg.and(extras.speed_m_s(waypoint).or(usual_m_s));
    LegItems {
        hold_s: leg.hold_s,
        speed_m_s: stated.or_else(for_yaw).map(|m_s| m_s as f32),
        yaw_deg: leg.yaw_cdeg.map(|cdeg| f32::from(cdeg) * 0.01),
    }
}

/// The mission items of a protocol's route.
///
/// # Errors
/// The number of items that do not fit.
#[expect(clippy::type_complexity, reason = "closures have no names")]
pub(crate) fn items(
    protocol: &dyn Protocol,
) -> Result<RouteItems<impl Fn(usize) -> Option<RelativePosition>, impl Fn(usize) -> LegItems>, usize> {
    items_of(protocol.route(), protocol.extras(), protocol.view().route_speed_m_s)
}

#[expect(clippy::type_complexity, reason = "closures have no names")]
fn items_of<'a>(
    route: &'a [Point],
    extras: &'a MissionExtras,
    usual_m_s: Option<f64>,
) -> Result<RouteItems<impl Fn(usize) -> Option<RelativePosition> + 'a, impl Fn(usize) -> LegItems + 'a>, usize>
{
    let items = RouteItems::new(
        route.len(),
        move |index| route.get(index).map(|point| place(*point)),
        move |index| leg_items(extras, index, usual_m_s),
    )?;
    Ok(if extras.take_off_mm == 0 { items } else { items.with_take_off(extras.take_off_mm) })
}

/// The hash of a protocol's route with the parts of its legs.
pub(crate) fn hash(route: &[Point], extras: &MissionExtras) -> u64 {
    hash_with(route.iter().map(|point| place(*point)), |index| {
        let leg = extras.leg(index);
        LegItems {
            hold_s: leg.hold_s,
            speed_m_s: (leg.speed_cm_s > 0).then(|| f32::from(leg.speed_cm_s) * 0.01),
            yaw_deg: leg.yaw_cdeg.map(|cdeg| f32::from(cdeg) * 0.01),
        }
    })
}

/// A mission: waypoints and what it states besides.
#[derive(Default)]
pub(crate) struct Given {
    route: Route,
    extras: MissionExtras,
    /// Speed of the item before a yaw without a speed, metres per second; `None` for a mission that was found.
    usual_m_s: Option<f64>,
    /// Whether items were found that do not fit.
    is_cut: bool,
}

impl Given {
    /// Takes a mission that an operator handed over, for a protocol that flies at `usual_m_s`.
    pub(crate) fn set(&mut self, points: &[Point], extras: &MissionExtras, usual_m_s: Option<f64>) {
        // A protocol that takes more than any can keep does not exist; nothing would be flown then.
        self.route = Route::from_slice(points).unwrap_or_default();
        self.extras.clone_from(extras);
        (self.usual_m_s, self.is_cut) = (usual_m_s, false);
    }
    /// Sets the speed of the protocol that flies the mission next.
    pub(crate) fn set_usual_speed(&mut self, usual_m_s: Option<f64>) {
        self.usual_m_s = usual_m_s.filter(|_| !self.is_empty());
    }
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.route.is_empty()
    }
    pub(crate) fn route(&self) -> &[Point] {
        &self.route
    }
    pub(crate) fn extras(&self) -> &MissionExtras {
        &self.extras
    }

    /// The waypoint that was reached last by an aircraft that is at a mission item.
    pub(crate) fn reached_before(&self, seq: u16) -> Option<u16> {
        items_of(&self.route, &self.extras, self.usual_m_s).ok()?.reached_before(seq)
    }

    /// Number of mission items after the take-off; `None` where they do not fit.
    pub(crate) fn items(&self) -> Option<usize> {
        let items = items_of(&self.route, &self.extras, self.usual_m_s).ok().filter(|_| !self.is_cut)?;
        items.count().checked_sub(usize::from(FIRST_WAYPOINT))
    }

    /// Whether the flight controller holds this mission's item at an index after the take-off.
    pub(crate) fn is_held(&self, index: usize, held: &Item) -> bool {
        let first = usize::from(FIRST_WAYPOINT);
        let expected = items_of(&self.route, &self.extras, self.usual_m_s).ok();
        expected.and_then(|items| items.item(index + first)).is_some_and(|own| may_hold(&own, held))
    }

    /// Takes an item that was found in the flight controller, at an index after the take-off; items come in any order.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(crate) fn take_found(&mut self, index: usize, item: &Item) {
        let place = point(item);
        if index >= self.route.len() {
            // It fits: a longer list is refused by the reading.
            let _ = self.route.resize(index + 1, place);
        }
        if let Some(slot) = self.route.get_mut(index) {
            *slot = place;
        }
        let [first, second, ..] = item.params;
        let none = LegExtras::none(index as u16);
        let taken = self.extras.insert(match item.command {
            MavCmd::MAV_CMD_DO_CHANGE_SPEED => {
                LegExtras { speed_cm_s: (second * 100.0 + 0.5) as u16, ..none }
            }
            MavCmd::MAV_CMD_CONDITION_YAW => {
                LegExtras { yaw_cdeg: Some((first * 100.0 + 0.5) as u16 % 36_000), ..none }
            }
            _ => LegExtras { hold_s: first as u16, ..none },
        });
        self.is_cut |= taken.is_err();
    }

    /// Makes a mission of the items that were found: speeds and yaws become parts of the legs that follow them.
    pub(crate) fn end_found(&mut self) {
        let (mut waypoints, mut legs) = (0, MissionExtras::default());
        let mut next = LegExtras::none(0);
        for index in 0..self.route.len() {
            let found = self.extras.leg(index);
            if found.speed_cm_s > 0 || found.yaw_cdeg.is_some() {
                if found.speed_cm_s > 0 {
                    next.speed_cm_s = found.speed_cm_s;
                }
                next.yaw_cdeg = found.yaw_cdeg.or(next.yaw_cdeg);
                continue;
            }
            self.route[waypoints] = self.route[index];
            let leg = LegExtras { waypoint: waypoints as u16, hold_s: found.hold_s, ..next };
            self.is_cut |= legs.push(leg).is_err();
            (waypoints, next) = (waypoints + 1, LegExtras::none(0));
        }
        self.route.truncate(waypoints);
        self.extras = legs;
    }
}

impl Agent {
    /// Before a setup, gives a mission that ends with a return the height of the flight controller's own returns, as far as the
    /// fence allows it.
    pub(crate) fn set_height_of_return(&mut self, command: Command) {
        if command != Command::Setup || !matches!(self.mission.extras.end, RouteEnd::Return { .. }) {
            return;
        }
        let returns_m = match self.parameters.value(Watched::ReturnHeight) {
            Some(centimetres) => Some(centimetres.as_f64() * 1e-2),
            None => self.parameters.value(Watched::ReturnHeightM).map(|metres| metres.as_f64()),
        };
        let height_m = returns_m.unwrap_or(0.0).min(self.protocol.fence().height_most_m);
        self.mission.extras.end = RouteEnd::Return { height_mm: (height_m * 1e3) as i32 };
        // It was taken before, by the same rules.
        let _ = self.protocol.set_mission(&self.mission.route, &self.mission.extras);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items of every kind come in any order and become the mission that was loaded.
    #[test]
    fn a_mission_that_was_loaded_is_found_again_with_its_speeds_holds_and_yaws() {
        let at = |n: i32| Point { latitude_e7: 394_000_000 + n, longitude_e7: -3_000_000, height_mm: 20_000 };
        let route = [at(0), at(1), at(2), at(3)];
        let mut extras = MissionExtras::default();
        for leg in [
            LegExtras { speed_cm_s: 400, ..LegExtras::none(1) },
            LegExtras { hold_s: 30, yaw_cdeg: Some(9_000), speed_cm_s: 250, ..LegExtras::none(2) },
            LegExtras { hold_s: 10, ..LegExtras::none(3) },
        ] {
            extras.push(leg).unwrap();
        }
        let items = items_of(&route, &extras, None).unwrap();
        assert_eq!(items.count(), 2 + 4 + 3);
        let kinds = [2, 3, 4, 5, 6, 7, 8].map(|seq| items.waypoint(seq));
        assert_eq!(kinds, [Some(0), None, Some(1), None, None, Some(2), Some(3)]);
        let reached = [0, 2, 3, 4, 5, 6, 7, 8].map(|seq| items.reached_before(seq));
        let (none, first, second, third) = (None, Some(0), Some(1), Some(2));
        assert_eq!(reached, [none, none, first, first, second, second, second, third]);
        let mut given = Given::default();
        given.set(&route, &extras, None);
        assert_eq!(given.items(), Some(items.count() - 2));
        let mut found = Given::default();
        for index in [3, 0, 6, 1, 5, 2, 4] {
            let item = items.item(index + 2).unwrap();
            assert!(given.is_held(index, &item));
            assert!(!given.is_held(index, &Item { params: [77.0, 77.0, 0.0, 0.0], ..item }), "{index}");
            found.take_found(index, &item);
        }
        found.end_found();
        assert_eq!((found.route(), found.extras()), (&route[..], &extras));
        assert_ne!(hash(&route, &extras), hash(&route, MissionExtras::NONE));
    }

    /// The upload states a speed before each yaw.
    #[test]
    fn a_yaw_without_a_speed_is_counted_in_the_same_way_everywhere() {
        let at = |n: i32| Point { latitude_e7: 394_000_000 + n, longitude_e7: -3_000_000, height_mm: 20_000 };
        let route = [at(0), at(1), at(2)];
        let mut extras = MissionExtras::default();
        extras.push(LegExtras { yaw_cdeg: Some(9_000), ..LegExtras::none(1) }).unwrap();
        let items = items_of(&route, &extras, Some(10.0)).unwrap();
        assert_eq!(items.count(), 2 + route.len() + extras.items());
        let mut given = Given::default();
        given.set(&route, &extras, Some(10.0));
        assert_eq!(given.items(), Some(5));
        assert!((0..5).all(|index| given.is_held(index, &items.item(index + 2).unwrap())));
        assert_eq!([3, 5, 6].map(|seq| given.reached_before(seq)), [Some(0), Some(0), Some(1)]);
    }

    /// 129 different headings are more than a mission keeps.
    #[test]
    fn a_found_mission_that_does_not_fit_is_no_mission_that_was_loaded() {
        let mut found = Given::default();
        for index in 0..129 {
            found.take_found(index, &Item::yaw(index as f32));
        }
        assert_eq!(found.items(), None);
    }
}
