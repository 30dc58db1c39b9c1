//! Missions, fences and rally points: upload with proof, download, clearing, the current item
//! (<https://mavlink.io/en/services/mission.html>).
//!
//! ArduCopter keeps its home in item 0 of the mission, so what is flown begins at 1 and item 0 is not
//! compared. It stores altitudes in centimetres, and of each command only the parameters that it uses: those are
//! compared. What is below a centimetre it cuts, towards zero (`packet.z * 100.0f` into an integer, in `AP_Mission.cpp` of 3.5.7 and of
//! 4.x alike).

mod control;
mod download;
mod points;
mod read_back;
mod reader;
mod region;
mod upload;

pub use control::{Clear, SetCurrent, is_ended};
pub use download::Download;
pub use points::{LegacyKind, LegacyPoint, LegacyPoints, LegacyUpload, POINTS_MAX};
pub use read_back::ReadBack;
pub use region::{Exchange, RegionEvent, RegionKind, RegionPart, RegionPoint, first_difference};
pub use upload::{Transfer, Upload};

use sha2::{Digest, Sha256};
use wingbeat_geo::ROUTE_MAX;

use crate::dialect::{MISSION_ITEM_INT_DATA, MavCmd, MavFrame, MavMissionType};
use crate::job::AUTOPILOT_COMPONENT_ID;
use crate::target::RelativePosition;

/// Items in one mission: home, take-off and a route.
pub const ITEMS_MAX: usize = ROUTE_MAX + FIRST_WAYPOINT as usize;

/// One item: any command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// The command.
    pub command: MavCmd,
    /// The reference of its altitude.
    pub frame: MavFrame,
    /// The command's first four parameters.
    pub params: [f32; 4],
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Altitude, metres.
    pub altitude_m: f32,
}

impl Item {
    /// A command at a position.
    pub fn at(command: MavCmd, position: RelativePosition) -> Self {
        Self {
            command,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
            params: [0.0; 4],
            latitude_e7: position.latitude_e7,
            longitude_e7: position.longitude_e7,
            altitude_m: position.height_mm as f32 * 1e-3,
        }
    }
    /// Fly there.
    pub fn waypoint(position: RelativePosition) -> Self {
        Self::at(MavCmd::MAV_CMD_NAV_WAYPOINT, position)
    }
    /// Take off to this height.
    pub fn take_off(position: RelativePosition) -> Self {
        Self::at(MavCmd::MAV_CMD_NAV_TAKEOFF, position)
    }
    /// Land there.
    pub fn land(position: RelativePosition) -> Self {
        Self::at(MavCmd::MAV_CMD_NAV_LAND, position)
    }
    /// A command without a position.
    pub fn command(command: MavCmd, params: [f32; 4]) -> Self {
        let ignored = RelativePosition { latitude_e7: 0, longitude_e7: 0, height_mm: 0 };
        Self { params, ..Self::at(command, ignored) }
    }
    /// Return to launch.
    pub fn return_to_launch() -> Self {
        Self::command(MavCmd::MAV_CMD_NAV_RETURN_TO_LAUNCH, [0.0; 4])
    }
    /// Continue at this speed over the ground.
    pub fn speed(speed_m_s: f32) -> Self {
        Self::command(MavCmd::MAV_CMD_DO_CHANGE_SPEED, [1.0, speed_m_s, -1.0, 0.0])
    }

    /// Turn the nose to this heading, degrees clockwise from north, while the aircraft flies to the next waypoint.
    pub fn yaw(yaw_deg: f32) -> Self {
        Self::command(MavCmd::MAV_CMD_CONDITION_YAW, [yaw_deg, 0.0, 0.0, 0.0])
    }

    fn of(m: &MISSION_ITEM_INT_DATA) -> Self {
        Self {
            command: m.command,
            frame: m.frame,
            params: [m.param1, m.param2, m.param3, m.param4],
            latitude_e7: m.x,
            longitude_e7: m.y,
            altitude_m: m.z,
        }
    }

    fn encode(&self, seq: u16, kind: MavMissionType, target_system: u8) -> MISSION_ITEM_INT_DATA {
        let [param1, param2, param3, param4] = self.params;
        MISSION_ITEM_INT_DATA {
            param1,
            param2,
            param3,
            param4,
            x: self.latitude_e7,
            y: self.longitude_e7,
            z: self.altitude_m,
            seq,
            command: self.command,
            target_system,
            target_component: AUTOPILOT_COMPONENT_ID,
            frame: self.frame,
            current: 0,
            autocontinue: 1,
            mission_type: kind,
        }
    }

    /// Where it is, with the height as ArduCopter stores it.
    pub fn held(&self) -> RelativePosition {
        RelativePosition {
            latitude_e7: self.latitude_e7,
            longitude_e7: self.longitude_e7,
            height_mm: centimetres(self.altitude_m).saturating_mul(10),
        }
    }

    /// Whether an autopilot that holds `other` flies this item: position and altitude where the command has a
    /// position, and the parameters that ArduCopter stores (delays and turns as whole numbers).
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn is_held_as(&self, other: &Self) -> bool {
        let has_position = matches!(
            self.command,
            MavCmd::MAV_CMD_NAV_WAYPOINT
                | MavCmd::MAV_CMD_NAV_TAKEOFF
                | MavCmd::MAV_CMD_NAV_LAND
                | MavCmd::MAV_CMD_NAV_LOITER_UNLIM
                | MavCmd::MAV_CMD_NAV_LOITER_TIME
                | MavCmd::MAV_CMD_NAV_LOITER_TURNS
                | MavCmd::MAV_CMD_NAV_SPLINE_WAYPOINT
                | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION
                | MavCmd::MAV_CMD_NAV_RALLY_POINT
        );
        let fence = matches!(
            self.command,
            MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION
                | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION
        );
        let compared: &[usize] = match self.command {
            MavCmd::MAV_CMD_DO_CHANGE_SPEED => &[0, 1],
            MavCmd::MAV_CMD_CONDITION_YAW => &[0, 3],
            MavCmd::MAV_CMD_NAV_WAYPOINT
            | MavCmd::MAV_CMD_NAV_LOITER_TIME
            | MavCmd::MAV_CMD_NAV_LOITER_TURNS
            | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION
            | MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION
            | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION
            | MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION => &[0],
            _ => &[],
        };
        let same_position = (self.latitude_e7, self.longitude_e7) == (other.latitude_e7, other.longitude_e7);
        // A fence has no height of its own: it is not stored.
        let same_altitude = fence
            || (libm::fabsf(self.altitude_m - other.altitude_m) <= ALTITUDE_CUT_M
                && is_relative(self.frame) == is_relative(other.frame));
        // Speeds and headings are stored as they come, times and turns as whole numbers.
        let is_exact =
            matches!(self.command, MavCmd::MAV_CMD_DO_CHANGE_SPEED | MavCmd::MAV_CMD_CONDITION_YAW);
        let most = if is_exact { 0.005 } else { 0.5 };
        let same_param = |i: usize| libm::fabsf(self.params[i] - other.params[i]) <= most;
        self.command == other.command
            && (!has_position || (same_position && same_altitude))
            && compared.iter().all(|&i| same_param(i))
    }
}

/// By so much an altitude may be held nearer to zero, metres: ArduCopter cuts what is less than a centimetre, and single precision is half
/// a millimetre at most.
const ALTITUDE_CUT_M: f32 = 0.0105;

/// An altitude that was read back, in whole centimetres, which is what ArduCopter stores.
fn centimetres(altitude_m: f32) -> i32 {
    libm::roundf(altitude_m * 100.0) as i32
}

/// Whether altitudes of the frame count from home.
fn is_relative(frame: MavFrame) -> bool {
    #[allow(deprecated)]
    let absolute = matches!(frame, MavFrame::MAV_FRAME_GLOBAL | MavFrame::MAV_FRAME_GLOBAL_INT);
    !absolute
}

/// A mission as the autopilot stores it; index 0 is home.
pub type Items = heapless::Vec<Item, ITEMS_MAX>;

/// Items in their order, made when they are needed: an aircraft has its route already, and no room for a copy that is
/// three times as large.
pub trait ItemList {
    /// How many there are.
    fn count(&self) -> usize;
    /// The item with this index; none past the last.
    fn item(&self, index: usize) -> Option<Item>;
}

impl ItemList for Items {
    fn count(&self) -> usize {
        self.len()
    }
    fn item(&self, index: usize) -> Option<Item> {
        self.get(index).copied()
    }
}

/// Parts of a leg besides the position of its waypoint. The speed and the yaw are items before the waypoint's, the hold is
/// a parameter of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LegItems {
    /// Hold at the waypoint, seconds.
    pub hold_s: u16,
    /// Speed over the ground from this leg on, metres per second.
    pub speed_m_s: Option<f32>,
    /// Yaw on this leg, degrees clockwise from north.
    pub yaw_deg: Option<f32>,
}

impl LegItems {
    /// Number of items before the waypoint.
    fn count(&self) -> usize {
        usize::from(self.speed_m_s.is_some()) + usize::from(self.yaw_deg.is_some())
    }
}

/// The items of a route: home, a take-off, and for each leg its speed, its yaw and its waypoint.
///
/// ArduCopter runs the first item before a waypoint when the leg before ends, and resets the yaw when the next waypoint
/// begins: a yaw that comes second holds. A leg with a yaw should therefore state its speed.
#[derive(Clone, Copy, Debug)]
pub struct RouteItems<P, L> {
    waypoints: usize,
    /// Number of speeds and yaws.
    extras: usize,
    /// Height above home at which the take-off ends, millimetres.
    take_off_mm: i32,
    position: P,
    leg: L,
}

/// Where an item of a route belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteItem {
    Speed(usize),
    Yaw(usize),
    Waypoint(usize),
}

impl<P: Fn(usize) -> Option<RelativePosition>, L: Fn(usize) -> LegItems> RouteItems<P, L> {
    /// Creates the list of so many waypoints; `position` and `leg` name the parts of each.
    ///
    /// # Errors
    /// The number of items besides home and the take-off, where they do not fit.
    pub fn new(waypoints: usize, position: P, leg: L) -> Result<Self, usize> {
        if waypoints > ROUTE_MAX {
            return Err(waypoints);
        }
        let extras = (0..waypoints).map(|waypoint| leg(waypoint).count()).sum();
        if waypoints + extras > ROUTE_MAX {
            return Err(waypoints + extras);
        }
        let take_off_mm = position(0).map_or(0, |first| first.height_mm);
        Ok(Self { waypoints, extras, take_off_mm, position, leg })
    }

    /// Sets the height above home at which the take-off ends, millimetres.
    #[must_use]
    pub fn with_take_off(self, take_off_mm: i32) -> Self {
        Self { take_off_mm, ..self }
    }

    /// Where an item belongs; `None` for home, the take-off and past the last.
    fn place(&self, index: usize) -> Option<RouteItem> {
        let mut left = index.checked_sub(usize::from(FIRST_WAYPOINT))?;
        if self.extras == 0 {
            return (left < self.waypoints).then_some(RouteItem::Waypoint(left));
        }
        for waypoint in 0..self.waypoints {
            let leg = (self.leg)(waypoint);
            let count = leg.count();
            if left < count {
                let is_speed = left == 0 && leg.speed_m_s.is_some();
                return Some(if is_speed { RouteItem::Speed(waypoint) } else { RouteItem::Yaw(waypoint) });
            }
            if left == count {
                return Some(RouteItem::Waypoint(waypoint));
            }
            left -= count + 1;
        }
        None
    }

    /// The waypoint that an item is; `None` for every other item.
    pub fn waypoint(&self, seq: u16) -> Option<u16> {
        match self.place(usize::from(seq))? {
            RouteItem::Waypoint(waypoint) => u16::try_from(waypoint).ok(),
            RouteItem::Speed(_) | RouteItem::Yaw(_) => None,
        }
    }

    /// The waypoint that was reached last by an aircraft that is at an item; `None` before the second waypoint.
    pub fn reached_before(&self, seq: u16) -> Option<u16> {
        let (RouteItem::Speed(waypoint) | RouteItem::Yaw(waypoint) | RouteItem::Waypoint(waypoint)) =
            self.place(usize::from(seq))?;
        u16::try_from(waypoint).ok()?.checked_sub(1)
    }
}

impl<P: Fn(usize) -> Option<RelativePosition>, L: Fn(usize) -> LegItems> ItemList for RouteItems<P, L> {
    fn count(&self) -> usize {
        self.waypoints + self.extras + usize::from(FIRST_WAYPOINT)
    }
    fn item(&self, index: usize) -> Option<Item> {
        let first = || {
            (self.position)(0).unwrap_or(RelativePosition { latitude_e7: 0, longitude_e7: 0, height_mm: 0 })
        };
        if index < usize::from(FIRST_WAYPOINT) {
            let take_off = RelativePosition { height_mm: self.take_off_mm, ..first() };
            return Some(if index == 0 { Item::waypoint(first()) } else { Item::take_off(take_off) });
        }
        match self.place(index)? {
            RouteItem::Speed(waypoint) => (self.leg)(waypoint).speed_m_s.map(Item::speed),
            RouteItem::Yaw(waypoint) => (self.leg)(waypoint).yaw_deg.map(Item::yaw),
            RouteItem::Waypoint(waypoint) => {
                let hold_s = f32::from((self.leg)(waypoint).hold_s);
                let item = Item::waypoint((self.position)(waypoint)?);
                Some(Item { params: [hold_s, 0.0, 0.0, 0.0], ..item })
            }
        }
    }
}

/// The first item of a route after home and the take-off.
pub const FIRST_WAYPOINT: u16 = 2;

/// The items of a route in one list ([`RouteItems`]).
///
/// # Errors
/// More waypoints than fit; the number that was found.
pub fn items_of(route: impl ExactSizeIterator<Item = RelativePosition> + Clone) -> Result<Items, usize> {
    let list = RouteItems::new(route.len(), |i| route.clone().nth(i), |_| LegItems::default())?;
    Ok((0..list.count()).filter_map(|i| list.item(i)).collect())
}

/// First eight bytes of the SHA-256 over latitude, longitude and height of every waypoint: an
/// aircraft holds what was sent if and only if the hashes agree.
pub fn hash(route: impl Iterator<Item = RelativePosition>) -> u64 {
    let mut sha = Sha256::new();
    for position in route {
        sha.update(position.latitude_e7.to_be_bytes());
        sha.update(position.longitude_e7.to_be_bytes());
        sha.update(position.height_mm.to_be_bytes());
    }
    let digest = sha.finalize();
    u64::from_be_bytes(core::array::from_fn(|i| digest[i]))
}

/// What distinguishes a route that an autopilot holds from others: of its waypoints as they were read back, in any order. A daemon takes it of
/// what it has loaded ([`Transfer::held`]), and the next one of what it finds ([`ReadBack::held`]): which heights an autopilot makes of
/// those that it was sent need not be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldHash(u64);

impl HeldHash {
    /// Takes a waypoint as it was read back, once; waypoints count from 0.
    pub fn add(&mut self, waypoint: usize, held: RelativePosition) {
        let index = RelativePosition { latitude_e7: waypoint as i32, longitude_e7: 0, height_mm: 0 };
        self.0 = self.0.wrapping_add(hash([index, held].into_iter()));
    }
    /// Takes an item as it was read back, once; items count from the first after the take-off. A waypoint without a hold is one
    /// of [`HeldHash::add`].
    pub fn add_item(&mut self, index: usize, item: &Item) {
        let is_plain = item.command == MavCmd::MAV_CMD_NAV_WAYPOINT && item.params[0] == 0.0;
        if !is_plain {
            let hundredths = |value: f32| libm::roundf(value * 100.0) as i32;
            let [first, second, _, fourth] = item.params.map(hundredths);
            let params = RelativePosition { latitude_e7: first, longitude_e7: second, height_mm: fourth };
            let kind = RelativePosition {
                latitude_e7: index as i32,
                longitude_e7: item.command as i32,
                height_mm: 1,
            };
            self.0 = self.0.wrapping_add(hash([kind, params].into_iter()));
        }
        if item.command == MavCmd::MAV_CMD_NAV_WAYPOINT {
            self.add(index, item.held());
        }
    }
    /// The hash, never 0.
    pub fn value(self) -> u64 {
        self.0.max(1)
    }
}

/// Whether an autopilot that was sent the first may hold the second.
pub fn may_hold(sent: &Item, held: &Item) -> bool {
    sent.is_held_as(held)
}

/// The hash of a route with the parts of its legs besides the waypoints ([`hash`]); that of the waypoints where there are
/// none.
pub fn hash_with(
    route: impl ExactSizeIterator<Item = RelativePosition>,
    leg: impl Fn(usize) -> LegItems,
) -> u64 {
    let legs = route.len();
    let waypoints = hash(route);
    let hundredths = |value: Option<f32>| value.map_or(-1, |value| libm::roundf(value * 100.0) as i32);
    let extras = |index: usize| {
        let LegItems { hold_s, speed_m_s, yaw_deg } = leg(index);
        let kind =
            RelativePosition { latitude_e7: index as i32, longitude_e7: i32::from(hold_s), height_mm: 0 };
        let values = RelativePosition {
            latitude_e7: hundredths(speed_m_s),
            longitude_e7: hundredths(yaw_deg),
            height_mm: 0,
        };
        [kind, values]
    };
    let stated = |index: &usize| leg(*index) != LegItems::default();
    if (0..legs).any(|index| stated(&index)) {
        waypoints ^ hash((0..legs).filter(stated).flat_map(extras))
    } else {
        waypoints
    }
}

/// The first item that is compared: item 0 of a mission is the autopilot's home.
fn first_of(kind: MavMissionType) -> u16 {
    u16::from(kind == MavMissionType::MAV_MISSION_TYPE_MISSION)
}

/// What programs hold of an item that they were sent.
#[cfg(test)]
pub(crate) mod testing {
    use super::Item;

    /// A program that stores an item and reports it.
    pub(crate) type Copter = fn(Item) -> Item;

    /// 3.5.7 (`AP_Mission.cpp`: `alt = packet.z * 100.0f`, an integer; `packet.z = alt / 100.0f`).
    pub(crate) const COPTER_3: Copter = |item| {
        let cm = (item.altitude_m * 100.0) as i32;
        Item { altitude_m: cm as f32 / 100.0, ..item }
    };
    /// 4.x (the same, and `packet.z = alt * 0.01f`).
    pub(crate) const COPTER_4: Copter = |item| {
        let cm = (item.altitude_m * 100.0) as i32;
        Item { altitude_m: cm as f32 * 0.01, ..item }
    };
    /// What another may do.
    pub(crate) const ROUNDS: Copter = |item| {
        let cm = libm::roundf(item.altitude_m * 100.0);
        Item { altitude_m: cm / 100.0, ..item }
    };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn route() -> std::vec::Vec<RelativePosition> {
        (0..5)
            .map(|i| RelativePosition {
                latitude_e7: 394_825_940 + i * 9,
                longitude_e7: -3_462_650,
                height_mm: 20_129,
            })
            .collect()
    }

    #[test]
    fn the_hash_distinguishes_missions() {
        let one = hash(route().into_iter());
        let mut other = route();
        other[4].height_mm += 1;
        assert_ne!(one, hash(other.into_iter()));
        assert_eq!(one, hash(route().into_iter()));
    }

    /// Heights a millimetre apart, above home and below: what both programs hold of them is taken for them, and for no others.
    #[test]
    fn what_arducopter_holds_of_a_height_is_taken_for_it_and_a_centimetre_more_is_not() {
        let at = |height_mm| RelativePosition { height_mm, ..route()[0] };
        let reported = |item: Item| [testing::COPTER_3, testing::COPTER_4].map(|copter| copter(item).held());
        for height_mm in -60_000_i32..=60_000 {
            let sent = at(height_mm);
            let [old, new] = reported(Item::waypoint(sent));
            assert_eq!(old, new, "both cut, and what they report rounds to the same");
            let cut_mm = (height_mm - old.height_mm) * height_mm.signum();
            assert_eq!(cut_mm, height_mm.abs() % 10, "{height_mm} mm are held as {}", old.height_mm);
            assert!(
                may_hold(&Item::waypoint(sent), &Item::waypoint(old)),
                "{height_mm} mm are held as {}",
                old.height_mm
            );
            for other_mm in [-21, -20, -12, 12, 20, 21] {
                // Held by none of what was sent: farther than any cut.
                assert!(
                    !may_hold(&Item::waypoint(sent), &Item::waypoint(at(height_mm + other_mm))),
                    "{height_mm} mm as {other_mm} more"
                );
            }
        }
    }

    #[test]
    fn a_hash_of_what_is_held_distinguishes_order_place_and_a_centimetre() {
        let hash_of = |order: &[usize], change: fn(&mut std::vec::Vec<RelativePosition>)| {
            let mut held = route();
            change(&mut held);
            let mut hash = HeldHash::default();
            order.iter().for_each(|&i| hash.add(i, held[i]));
            hash.value()
        };
        let one = hash_of(&[0, 1, 2, 3, 4], |_| ());
        assert_eq!(one, hash_of(&[4, 0, 3, 1, 2], |_| ()), "they arrive in any order");
        for other in [
            hash_of(&[0, 1, 2, 3], |_| ()),
            hash_of(&[0, 1, 2, 3, 4], |held| held.swap(1, 3)),
            hash_of(&[0, 1, 2, 3, 4], |held| held[2].height_mm += 10),
            hash_of(&[0, 1, 2, 3, 4], |held| held[2].longitude_e7 += 1),
            hash_of(&[], |_| ()),
        ] {
            assert_ne!(one, other);
        }
        assert_ne!(HeldHash::default().value(), 0);
    }

    #[test]
    fn what_is_flown_by_is_compared_and_nothing_else() {
        let item = Item::waypoint(route()[0]);
        let with = |change: fn(&mut Item)| {
            let mut other = item;
            change(&mut other);
            item.is_held_as(&other)
        };
        assert!(with(|i| i.altitude_m += 0.001) && with(|i| i.params[3] = 90.0));
        // 20.129 m is held as 20.12 m by ArduCopter 3.5.7.
        assert!(with(|i| i.altitude_m = 20.12));
        assert!(!with(|i| i.latitude_e7 += 1) && !with(|i| i.altitude_m += 0.02));
        assert!(!with(|i| i.frame = MavFrame::MAV_FRAME_GLOBAL) && !with(|i| i.params[0] = 1.0));
        let (slow, fast) = (Item::speed(5.0), Item::speed(6.0));
        assert!(slow.is_held_as(&slow) && !slow.is_held_as(&fast));
        assert!(!Item::return_to_launch().is_held_as(&item));
    }

    #[test]
    fn a_route_of_600_waypoints_fits() {
        let position = route()[0];
        assert_eq!(items_of(std::vec![position; 600].into_iter()).map(|i| i.len()), Ok(ITEMS_MAX));
        assert_eq!(items_of(std::vec![position; 601].into_iter()), Err(601));
    }
}
