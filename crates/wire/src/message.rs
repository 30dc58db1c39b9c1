//! The messages of the coordination protocols (MUSCOP: thesis figure 6.2).

use heapless::Vec;
use serde::{Deserialize, Serialize};

use crate::{Corrections, Order, OrderTaken, Probe, Refused, Role, deltas};

/// An aircraft. 64 bits: the MAC address of its radio unless configured; never its MAVLink system id,
/// which is local to one serial link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VehicleId(pub u64);

impl VehicleId {
    /// The id that is written as 16 hexadecimal digits, and nothing else.
    pub fn from_hexadecimal(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(text, 16).ok().filter(|_| digits).map(Self)
    }
}

impl core::fmt::Display for VehicleId {
    /// 16 hexadecimal digits, as in the API.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The largest swarm that a plan can name.
pub const SWARM_MAX: usize = 128;

/// Waypoints in one plan: as many as an aircraft flies for itself, whose flight controller holds a few more (`ROUTE_MAX` of
/// the crate `geo`). [`Message::DataFirst`] and at most seven [`Message::DataWaypoints`] carry them.
pub const WAYPOINTS_MAX: usize = 600;

/// Waypoints of the plan in its first datagram (thesis section 6.1.3: 58 fit the published message).
pub const FIRST_WAYPOINTS_MAX: usize = 58;

/// Waypoints in one [`Message::DataWaypoints`]: so many fit at the longest that a position can be.
pub const MORE_WAYPOINTS_MAX: usize = 90;

/// A position: 1e-7 degree and millimetres above the home of the aircraft that flies there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Height above home, millimetre.
    pub height_mm: i32,
}

impl Point {
    /// Whether it can be one.
    ///
    /// # Errors
    /// It is not on earth.
    pub fn check(self) -> Result<(), Refused> {
        let on_earth = self.latitude_e7.unsigned_abs() <= 900_000_000
            && self.longitude_e7.unsigned_abs() <= 1_800_000_000;
        if on_earth { Ok(()) } else { Err(Refused::OffEarth) }
    }
}

/// What one swarm flies: the mission of the centre aircraft and the slots of all. Every aircraft
/// derives its own waypoints by adding its slot's offset.
///
/// `N` is the room for waypoints: that of a datagram, or of a whole plan ([`WAYPOINTS_MAX`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan<const N: usize = FIRST_WAYPOINTS_MAX> {
    /// The number of the formation, as the protocols register it; with the number of its parts, where it has some.
    pub layout: u8,
    /// Distance between slots in flight, millimetre.
    pub distance_mm: u32,
    /// Distance between slots when landing, millimetre.
    pub landing_distance_mm: u32,
    /// Heading of the formation for the whole flight, 1e-6 radian clockwise from north.
    pub heading_urad: u32,
    /// The aircraft of each slot: the index is the slot.
    pub slots: Vec<VehicleId, SWARM_MAX>,
    /// Slots in the order in which they take off; one may be missing, which a pilot takes off.
    pub take_off_order: Vec<u8, SWARM_MAX>,
    /// Waypoints of the centre; the first is where the formation assembles.
    pub waypoints: Vec<Point, N>,
    /// The offset of each slot from the centre, for a formation that cannot be computed from the numbers above:
    /// random and custom. Empty for the others.
    pub offsets: Vec<SlotOffset, SWARM_MAX>,
}

/// The offset of a slot from the centre, before the formation is rotated to its heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotOffset {
    /// To the right of the heading, decimetre.
    pub right_dm: i32,
    /// Ahead, decimetre.
    pub ahead_dm: i32,
    /// Above, decimetre.
    pub up_dm: i32,
}

/// Layouts whose offsets are in the plan.
const LISTED: core::ops::RangeInclusive<u8> = 6..=7;
/// The numbers that layouts can have: without parts, and split up into two to eight. Whether a layout has such a number is
/// checked where the plan is adopted.
const LAYOUTS: [core::ops::RangeInclusive<u8>; 2] = [0..=15, 18..=24];
/// No slot is farther from the centre in any direction, decimetre.
const OFFSET_MAX_DM: u32 = 1_000_000;

impl<const N: usize> Plan<N> {
    /// The same plan with its first `count` waypoints, and room for others than here: of more than there is room for,
    /// as many as fit.
    pub fn with_waypoints<const M: usize>(&self, count: usize) -> Plan<M> {
        Plan {
            layout: self.layout,
            distance_mm: self.distance_mm,
            landing_distance_mm: self.landing_distance_mm,
            heading_urad: self.heading_urad,
            slots: self.slots.clone(),
            take_off_order: self.take_off_order.clone(),
            waypoints: self.waypoints.iter().copied().take(count.min(M)).collect(),
            offsets: self.offsets.clone(),
        }
    }
}

impl<const N: usize> Plan<N> {
    /// Whether it can be flown by its own word: what every plan that was read from a datagram has passed.
    ///
    /// # Errors
    /// What it says contradicts itself, or is impossible for any aircraft.
    pub fn check(&self) -> Result<(), Refused> {
        let n = self.slots.len();
        let mut seen = [false; SWARM_MAX];
        for &slot in &self.take_off_order {
            if usize::from(slot) >= n || core::mem::replace(&mut seen[usize::from(slot)], true) {
                return Err(Refused::Contradiction);
            }
        }
        let is_duplicate = (1..n).any(|i| self.slots[..i].contains(&self.slots[i]));
        // One may be left out: a pilot takes it off.
        let all_take_off = self.take_off_order.len() == n || self.take_off_order.len() + 1 == n;
        if n == 0 || !all_take_off || is_duplicate || self.waypoints.is_empty() {
            return Err(Refused::Contradiction);
        }
        let listed = if LISTED.contains(&self.layout) { n } else { 0 };
        if self.offsets.len() != listed || !LAYOUTS.iter().any(|known| known.contains(&self.layout)) {
            return Err(Refused::Contradiction);
        }
        let far = |o: &SlotOffset| {
            [o.right_dm, o.ahead_dm, o.up_dm].iter().any(|x| x.unsigned_abs() > OFFSET_MAX_DM)
        };
        if self.offsets.iter().any(far) {
            return Err(Refused::Impossible);
        }
        if self.distance_mm == 0 || self.landing_distance_mm == 0 || self.heading_urad >= 6_283_186 {
            return Err(Refused::Contradiction);
        }
        self.waypoints.iter().try_for_each(|w| w.check())
    }
}

/// The beginning of a plan that one datagram does not carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstPart {
    /// The plan, with its first waypoints only.
    pub plan: Plan,
    /// The hash of the whole plan.
    pub hash: u64,
    /// Waypoints of the whole plan.
    pub count: u16,
}

impl FirstPart {
    fn check(&self) -> Result<(), Refused> {
        let count = usize::from(self.count);
        if count <= self.plan.waypoints.len() || count > WAYPOINTS_MAX {
            return Err(Refused::Contradiction);
        }
        self.plan.check()
    }
}

/// More waypoints of a plan that one datagram does not carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoreWaypoints {
    /// The hash of the whole plan.
    pub hash: u64,
    /// Waypoints of the whole plan.
    pub count: u16,
    /// Index of the first of these.
    pub first: u16,
    /// Waypoints of the centre.
    pub waypoints: Vec<Point, MORE_WAYPOINTS_MAX>,
}

impl MoreWaypoints {
    fn check(&self) -> Result<(), Refused> {
        let (first, count) = (usize::from(self.first), usize::from(self.count));
        // The first waypoint is in the first part.
        let is_empty = first == 0 || self.waypoints.is_empty();
        if is_empty || first + self.waypoints.len() > count || count > WAYPOINTS_MAX {
            return Err(Refused::Contradiction);
        }
        self.waypoints.iter().try_for_each(|w| w.check())
    }
}

/// Locations in one beacon: the current one and 58 predicted ones (the datagram of the reference program).
pub const LOCATIONS_MAX: usize = 59;

/// Faster than any multicopter, centimetre per second.
const SPEED_MAX_CM_S: u16 = 10_000;

/// Age of a measurement beyond which a beacon is refused: it says nothing of a flying aircraft, milliseconds.
pub const AGE_MAX_MS: u16 = 10_000;

/// No location of a beacon is farther than this from its first, 1e-7 degree of latitude (100 km) or longitude.
const REACH_MAX_E7: u32 = 9_000_000;

/// A position with its altitude above sea level: aircraft of different owners share no home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Altitude above mean sea level, millimetre.
    pub altitude_mm: i32,
}

impl Location {
    /// On earth, at a height that something flies at.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        let point = Point { latitude_e7: self.latitude_e7, longitude_e7: self.longitude_e7, height_mm: 0 };
        point.check()?;
        if (-1_000_000..=100_000_000).contains(&self.altitude_mm) { Ok(()) } else { Err(Refused::Impossible) }
    }

    /// Of a list that begins with `first`.
    fn check_from(&self, first: &Self) -> Result<(), Refused> {
        self.check()?;
        if self.is_within_reach_of(first) { Ok(()) } else { Err(Refused::FarAway) }
    }

    /// Approximate, and the shorter difference of longitudes.
    fn is_within_reach_of(&self, first: &Self) -> bool {
        const ROUND_E7: u32 = 3_600_000_000;
        let longitude_e7 = self.longitude_e7.abs_diff(first.longitude_e7);
        let longitude_e7 = longitude_e7.min(ROUND_E7.saturating_sub(longitude_e7));
        self.latitude_e7.abs_diff(first.latitude_e7) <= REACH_MAX_E7 && longitude_e7 <= REACH_MAX_E7
    }
}

/// States of MBCAP that others must know (thesis figures 5.1 and 5.17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Avoidance {
    /// On its mission.
    #[default]
    Normal,
    /// Stopped because of a conflict.
    StandStill,
    /// On its way out of another's path.
    MovingAside,
    /// Waiting until another has passed.
    GoOnPlease,
    /// Passing another.
    Overtaking,
    /// Landing because a conflict was not solved.
    EmergencyLand,
}

impl Avoidance {
    /// Every state, in the order of the wire.
    pub const ALL: [Self; 6] = [
        Self::Normal,
        Self::StandStill,
        Self::MovingAside,
        Self::GoOnPlease,
        Self::Overtaking,
        Self::EmergencyLand,
    ];
    /// The thesis' name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::StandStill => "StandStill",
            Self::MovingAside => "MovingAside",
            Self::GoOnPlease => "GoOnPlease",
            Self::Overtaking => "Overtaking",
            Self::EmergencyLand => "EmergencyLand",
        }
    }
}

/// Where an aircraft is and will be (thesis figure 5.11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beacon {
    /// Risks that the sender has solved.
    pub event: u16,
    /// Its state.
    pub state: Avoidance,
    /// Whether it is landing: it cannot be stopped, and stops no other.
    pub landing: bool,
    /// The aircraft that it is in conflict with.
    pub avoiding: Option<VehicleId>,
    /// Speed of its mission, centimetre per second.
    pub planned_speed_cm_s: u16,
    /// Speed over ground, centimetre per second.
    pub speed_cm_s: u16,
    /// Time since the first location was measured, milliseconds.
    pub age_ms: u16,
    /// Where it is, and then, by state: predicted locations, waypoints, or the location of the risk.
    #[serde(with = "deltas")]
    pub locations: Vec<Location, LOCATIONS_MAX>,
}

impl Beacon {
    fn check(&self) -> Result<(), Refused> {
        if self.speed_cm_s > SPEED_MAX_CM_S || self.planned_speed_cm_s > SPEED_MAX_CM_S {
            return Err(Refused::Impossible);
        }
        if self.age_ms > AGE_MAX_MS {
            return Err(Refused::Stale);
        }
        let first = self.locations.first().ok_or(Refused::Contradiction)?;
        self.locations.iter().try_for_each(|l| l.check_from(first))
    }
}

/// Waypoints in one [`Course`]: more than a multicopter passes in the minutes for which a silent one counts.
pub const COURSE_MAX: usize = 24;

/// Where the sender's flight controller flies without another order, so that others keep clear of it where it falls silent
/// (MBCAP).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// Whether it lands there.
    pub lands: bool,
    /// The next positions that it flies to, in order; none where it stays.
    #[serde(with = "deltas")]
    pub waypoints: Vec<Location, COURSE_MAX>,
}

impl Course {
    fn check(&self) -> Result<(), Refused> {
        self.waypoints.iter().try_for_each(|l| l.check_from(&self.waypoints[0]))
    }
}

/// Where the leader of a FollowMe flight is, and where its nose points (thesis figure 7.3, *Coordinates*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinates {
    /// Present position of the sender.
    pub at: Point,
    /// Where its nose points, 1e-6 radian clockwise from north.
    pub heading_urad: u32,
    /// Whether it leads: it is high enough to be followed. Before, it only broadcasts its position.
    pub leads: bool,
}

impl Coordinates {
    fn check(self) -> Result<(), Refused> {
        self.at.check()?;
        let possible =
            self.heading_urad < 6_283_186 && (-1_000_000..=10_000_000).contains(&self.at.height_mm);
        if possible { Ok(()) } else { Err(Refused::Impossible) }
    }
}

/// The content of a datagram. Names are those of thesis figures 6.1 and 6.2 and, for the take-off, of the reference
/// implementation's messages.
// Without an allocator a message is as large as its largest kind.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
// Read by `read`, in place; the tests compare it with the derived reading.
#[cfg_attr(test, derive(Deserialize))]
pub enum Message {
    /// A follower is present (1), as older programs broadcast it.
    Hello {
        /// Position on the ground.
        at: Point,
    },
    /// The leader's plan (2).
    Data(Plan),
    /// The plan is held and the flight controller holds its mission (4).
    DataAck {
        /// Hash of the plan.
        hash: u64,
    },
    /// All aircraft hold the plan (3).
    ReadyToFly,
    /// A follower is ready (4).
    ReadyToFlyAck,
    /// The sender has climbed clear: the next may take off.
    TakeOffNow {
        /// The next to take off.
        next: VehicleId,
    },
    /// The sender hovers in its slot.
    TargetReached,
    /// All aircraft hover in their slots.
    TakeOffEnd,
    /// Acknowledges that all aircraft hover.
    TakeOffEndAck,
    /// The sender reached a waypoint (6).
    ReachedWaypointAck {
        /// Which, from 0.
        waypoint: u16,
    },
    /// The centre flies to a waypoint, and all others with it (5).
    MoveToWaypoint {
        /// Which, from 0.
        waypoint: u16,
    },
    /// The centre lands, and all others around it (7).
    Land {
        /// Where the centre lands.
        at: Point,
    },
    /// Where the sender is and will be (MBCAP).
    Beacon(Beacon),
    /// Where the leader of a FollowMe flight is (3).
    Coordinates(Coordinates),
    /// The sender broadcasts its position and has nothing else to send.
    Alive {
        /// Present position of the sender.
        at: Point,
    },
    /// The leader is at a waypoint, and the others fly there.
    Gather {
        /// Which, from 0.
        waypoint: u16,
    },
    /// The sender is at a waypoint, or on the leg to it, released by a leader.
    Following {
        /// Which, from 0.
        waypoint: u16,
        /// Whether it is there.
        reached: bool,
        /// The leader's slot.
        leader: u8,
        /// Present position of the sender.
        at: Point,
    },
    /// The sender no longer flies with the swarm.
    Leaving {
        /// Present position of the sender.
        at: Point,
        /// How it ends its flight.
        how: Ending,
    },
    /// A member is excluded from the swarm.
    Exclude {
        /// The member.
        member: VehicleId,
    },
    /// From the leader: the flight is over, every aircraft lands where it is.
    LandHere {
        /// Present position of the leader.
        at: Point,
    },
    /// The sender lands at its position around the leader's landing position, which the leader's own [`Message::Land`] states.
    LandAround {
        /// Where the leader lands.
        at: Point,
        /// The leader's slot.
        leader: u8,
    },
    /// The leader releases all to a waypoint, and leaves itself when those ahead of it have left.
    Release {
        /// Which, from 0.
        waypoint: u16,
    },
    /// From the leader: all take off at the same time, on paths that never meet.
    TakeOffTogether,
    /// The sender stops on its leg, behind another, and will continue.
    Holding {
        /// Present position of the sender.
        at: Point,
    },
    /// The beginning of the leader's plan, where one datagram does not carry it (2).
    DataFirst(FirstPart),
    /// More waypoints of the leader's plan (2).
    DataWaypoints(MoreWaypoints),
    /// The battery of a member carries it home and no farther, or it has waited too long: all return.
    Recall,
    /// A follower is present (1), and how high above sea level its home is. Older programs broadcast [`Message::Hello`].
    Stands {
        /// Position on the ground, with the altitude of its home.
        at: Location,
    },
    /// Where the sender's flight controller flies without another order (MBCAP).
    Course(Course),
    /// An operator's order, from a console.
    Order(Order),
    /// The sender received an order.
    OrderTaken(OrderTaken),
    /// The leader's last command ([`Message::is_command`]) as the leader sealed it, for those that did not receive it.
    Passed(Sealed),
    /// One of many, by which receivers measure the link.
    Probe(Probe),
    /// Corrections of satellite navigation, from a console with a base station.
    Corrections(Corrections),
    /// The sender flies and has lost its position, or its satellites: wind and its last speed carry it, and it descends.
    Adrift {
        /// Its last known position.
        at: Point,
    },
}

/// The longest datagram with a command of a leader, 115 bytes, and some room.
pub const COMMAND_LEN_MAX: usize = 120;

/// A datagram within another.
pub type Sealed = Vec<u8, COMMAND_LEN_MAX>;

/// What an aircraft does that leaves its swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It holds its position.
    Holding,
    /// It flies to where it took off.
    Returning,
    /// It lands where it is.
    Landing,
    /// It is on the ground with its motors off.
    Down,
}

impl Message {
    /// Whether it is a command of a swarm's leader. It counts only as the leader's: other members pass it on as the leader sealed it.
    pub fn is_command(&self) -> bool {
        matches!(
            self,
            Self::MoveToWaypoint { .. }
                | Self::Gather { .. }
                | Self::Release { .. }
                | Self::Land { .. }
                | Self::LandHere { .. }
        )
    }

    /// What decoding cannot see: values that are well formed and still impossible.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        match self {
            Self::Hello { at }
            | Self::Land { at }
            | Self::Alive { at }
            | Self::Holding { at }
            | Self::Adrift { at }
            | Self::LandHere { at }
            | Self::Leaving { at, .. } => at.check(),
            Self::LandAround { at, leader } | Self::Following { leader, at, .. } => {
                at.check().and(slot(*leader))
            }
            Self::Data(plan) => plan.check(),
            Self::DataFirst(part) => part.check(),
            Self::DataWaypoints(part) => part.check(),
            Self::Beacon(beacon) => beacon.check(),
            Self::Course(course) => course.check(),
            Self::Stands { at } => at.check(),
            Self::Coordinates(coordinates) => coordinates.check(),
            Self::Order(order) => order.check(),
            Self::OrderTaken(taken) => taken.check(),
            Self::Probe(probe) => probe.check(),
            Self::Corrections(corrections) => corrections.check(),
            Self::DataAck { .. }
            | Self::ReadyToFly
            | Self::ReadyToFlyAck
            | Self::TakeOffNow { .. }
            | Self::TargetReached
            | Self::TakeOffEnd
            | Self::TakeOffEndAck
            | Self::ReachedWaypointAck { .. }
            | Self::MoveToWaypoint { .. }
            | Self::Gather { .. }
            | Self::Release { .. }
            | Self::TakeOffTogether
            | Self::Recall
            | Self::Passed(_)
            | Self::Exclude { .. } => Ok(()),
        }
    }

    /// What a sender of this role may not send. An exclusion in an aircraft's own name is one too: where keys prove who
    /// sent what, the console's order alone excludes a member.
    pub(crate) fn check_role(&self, role: Role) -> Result<(), Refused> {
        let is_permitted = match self {
            Self::Order(order) => role.may_order(order.command),
            Self::Exclude { .. } => false,
            // They shift positions.
            Self::Corrections(_) => role == Role::Operator,
            Self::Hello { .. }
            | Self::Data(_)
            | Self::DataAck { .. }
            | Self::ReadyToFly
            | Self::ReadyToFlyAck
            | Self::TakeOffNow { .. }
            | Self::TargetReached
            | Self::TakeOffEnd
            | Self::TakeOffEndAck
            | Self::ReachedWaypointAck { .. }
            | Self::MoveToWaypoint { .. }
            | Self::Land { .. }
            | Self::Beacon(_)
            | Self::Coordinates(_)
            | Self::Alive { .. }
            | Self::Gather { .. }
            | Self::Following { .. }
            | Self::Leaving { .. }
            | Self::LandHere { .. }
            | Self::LandAround { .. }
            | Self::Release { .. }
            | Self::TakeOffTogether
            | Self::Holding { .. }
            | Self::Adrift { .. }
            | Self::DataFirst(_)
            | Self::DataWaypoints(_)
            | Self::Recall
            | Self::Stands { .. }
            | Self::Course(_)
            | Self::Passed(_)
            | Self::Probe(_)
            | Self::OrderTaken(_) => role == Role::Aircraft,
        };
        if is_permitted { Ok(()) } else { Err(Refused::NotPermitted) }
    }
}

fn slot(slot: u8) -> Result<(), Refused> {
    if usize::from(slot) < SWARM_MAX { Ok(()) } else { Err(Refused::Contradiction) }
}
