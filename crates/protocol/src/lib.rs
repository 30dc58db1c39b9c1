//! The coordination protocols, as pure state machines.
//!
//! A protocol is handed one [`Input`] at a time together with the time and answers with a bounded list
//! of [`Action`]s. It knows no MAVLink and no bytes: an order is "fly there", a message is a value. The
//! agent turns orders into MAVLink and messages into datagrams.
//!
//! [`mission`] flies a mission and nothing else; [`mbcap`] keeps aircraft on missions of their own apart
//! (thesis chapter 5); [`muscop`] flies one mission as a formation (thesis chapter 6); [`follow_me`] makes a
//! formation follow an aircraft that a pilot flies (thesis chapter 7); [`sweep`] searches an area in lanes. What
//! every swarm does before and after its flight is [`swarm`]. How to add a protocol is in
//! `docs/protocols/writing-one.md`.
#![no_std]
#![forbid(unsafe_code)]

pub mod config;
pub mod flight;
pub mod follow_me;
pub mod mbcap;
pub mod mission;
pub mod muscop;
pub mod swarm;
pub mod sweep;

pub use config::{ConfigError, Configuration, Fence};
pub use flight::EndFlight;
pub use follow_me::FollowMe;
pub use mbcap::Mbcap;
pub use mission::Mission;
pub use muscop::Muscop;
pub use sweep::Sweep;

use wingbeat_geo::{DVec2, DVec3, Instant, Position};
use wingbeat_wire::{Avoidance, Ending, LOCATIONS_MAX, Message, Point, Refused, SWARM_MAX, VehicleId};

/// Waypoints in one aircraft's own mission.
pub const ROUTE_MAX: usize = 110;

/// An aircraft's own waypoints.
pub type Route = heapless::Vec<Point, ROUTE_MAX>;

/// One line for people.
pub type Text = heapless::String<112>;

/// A line from a format string; what does not fit is cut off.
#[macro_export]
macro_rules! text {
    ($($argument:tt)*) => {{
        let mut text = $crate::Text::new();
        // Cutting does not fail.
        let _ = core::fmt::Write::write_fmt(&mut $crate::Cut(&mut text), format_args!($($argument)*));
        text
    }};
}

/// Writes as much as fits, character by character.
pub struct Cut<'a>(pub &'a mut Text);

impl core::fmt::Write for Cut<'_> {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        for c in s.chars() {
            if self.0.push(c).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// What an operator can ask of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Form the swarm, take off, take the slots.
    Setup,
    /// Fly the mission.
    Start,
    /// Stop and hold position.
    Hold,
    /// Return to launch.
    Return,
    /// Land where it is.
    Land,
    /// No longer wait for this member; if it is this aircraft, hold and then land.
    Exclude(VehicleId),
}

/// What a protocol knows of its own aircraft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telemetry {
    /// Where it is.
    pub position: Position,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Where its nose points, clockwise from north; outside 0 to 2π the autopilot does not know.
    pub heading_rad: f64,
    /// Whether its motors are armed.
    pub armed: bool,
    /// Whether the flight controller is in a mode that brings it down.
    pub landing: bool,
}

impl Telemetry {
    /// The place as it is told to others.
    pub fn point(&self) -> Point {
        Point {
            latitude_e7: self.position.latitude_e7,
            longitude_e7: self.position.longitude_e7,
            height_mm: (self.height_m * 1e3) as i32,
        }
    }
}

/// What a protocol asks of its aircraft. A later order replaces an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Put the route ([`Protocol::route`]) into the flight controller and prove that it is there.
    LoadRoute,
    /// Arm and climb straight up to this height above home, millimetre.
    TakeOff {
        /// Height above home, millimetre.
        height_mm: i32,
    },
    /// Fly straight there and stop.
    FlyTo(Point),
    /// Arm, climb to this height above home, and fly the route by the flight controller's own navigation.
    FlyRoute {
        /// Height above home, millimetre.
        height_mm: i32,
    },
    /// Back to the route where it was left.
    Resume,
    /// Stop and hold position.
    Hold,
    /// Return to launch.
    Return,
    /// Land where it is.
    Land,
}

impl core::fmt::Display for Order {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::LoadRoute => "loading the route",
            Self::TakeOff { .. } => "taking off",
            Self::FlyTo(_) => "flying to a place",
            Self::FlyRoute { .. } => "beginning the route",
            Self::Resume => "resuming the route",
            Self::Hold => "holding",
            Self::Return => "returning",
            Self::Land => "landing",
        })
    }
}

/// What happens to a protocol.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Wake,
    /// The aircraft reported itself.
    Telemetry(Telemetry),
    /// Another aircraft spoke. The agent drops its own datagrams before.
    Message {
        /// Who.
        from: VehicleId,
        /// Which flight it belongs to.
        flight: u32,
        /// What.
        message: &'a Message,
    },
    /// The operator commands; asked before with [`Protocol::permits`].
    Operator(Command),
    /// The flight controller reached a waypoint of the route by its own navigation.
    Reached(u16),
    /// An order's effect was seen.
    Done(Order),
    /// An order was refused, or never took effect.
    Failed(Order),
}

/// How bad a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For the record.
    Info,
    /// Look at it.
    Warning,
    /// Something that was wanted does not happen.
    Error,
}

/// What a protocol wants done.
// As large as its largest message: there is no allocator to put that elsewhere.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Command the aircraft.
    Order(Order),
    /// Say something to everybody in range.
    Broadcast {
        /// Which flight it belongs to.
        flight: u32,
        /// What.
        message: Message,
    },
    /// Tell people.
    Log(Severity, Text),
    /// The message just handed in was not for us: count it.
    Refused(Refused),
}

/// One input asks at most: a refusal, two state changes with an order and a line each, and the two
/// messages of one talk.
pub type Actions = heapless::Vec<Action, 8>;

/// The bound of [`Actions`] holds what one input can ask: see there.
pub(crate) fn push(out: &mut Actions, action: Action) {
    let pushed = out.push(action);
    debug_assert!(pushed.is_ok(), "see the bound on Actions");
}

/// How far a flight has come, whatever its protocol calls that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// On the ground, waiting for the operator.
    Start,
    /// Between the operator's setup and its end; between its start and the mission.
    Preparing,
    /// Set up, waiting for the operator's start.
    Ready,
    /// On the mission, standing for others.
    Waiting,
    /// On the mission, under way.
    Moving,
    /// The mission is over: coming down.
    Ending,
    /// Landed after the mission.
    Finished,
    /// Ended by the operator or a failure.
    Aborted,
}

/// A protocol's place in the swarm, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwarmView {
    /// Whether this aircraft leads the flight.
    pub leader: bool,
    /// Who leads, once known.
    pub leader_id: Option<VehicleId>,
    /// How many fly; before setup, how many the master has heard with itself.
    pub size: usize,
    /// Name of the formation.
    pub formation: &'static str,
    /// Our slot, once assigned.
    pub slot: Option<usize>,
}

impl SwarmView {
    /// Of an aircraft that belongs to no swarm.
    pub const ALONE: Self = Self { leader: false, leader_id: None, size: 1, formation: "none", slot: None };
}

/// A member of the swarm that nobody waits for any more, or that was told to leave, as this aircraft knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Who.
    pub id: VehicleId,
    /// It has been silent for the time to live.
    pub silent: bool,
    /// It said that it leaves, and how.
    pub leaves: Option<Ending>,
    /// The operator excluded it: this aircraft's own id where the operator said so here, otherwise the aircraft
    /// that passed it on.
    pub excluded_by: Option<VehicleId>,
}

/// The formation as the aircraft that plans sees it, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct FormationView {
    /// Distance between slots, metres.
    pub distance_m: f64,
    /// Where it points, radians clockwise from north; nothing before that is known.
    pub heading_rad: Option<f64>,
    /// The swarm has agreed on it. Otherwise it is what setup would plan now.
    pub is_planned: bool,
    /// Why setup would come to nothing.
    pub refused: Option<Text>,
    /// The places, by slot; none before all aircraft were heard and there is a mission.
    pub slots: heapless::Vec<SlotView, SWARM_MAX>,
}

/// A place in the formation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Who flies there.
    pub id: VehicleId,
    /// Where it is.
    pub place: Point,
}

/// The members that are not waited for, by slot.
pub type Absentees = heapless::Vec<Absent, SWARM_MAX>;

/// What a protocol that avoids others sees and does, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct AvoidanceView {
    /// Its state.
    pub state: Avoidance,
    /// Whom it is in conflict with.
    pub avoiding: Option<VehicleId>,
    /// Where it is and will be, as its last beacon told.
    pub predicted: heapless::Vec<Position, LOCATIONS_MAX>,
    /// Where the conflict lies.
    pub risk: Option<Position>,
    /// Where it goes to give way.
    pub aside: Option<Position>,
}

/// What every coordination protocol offers. To add one: implement this and [`Configuration`] in one file, and
/// name it among the agent's (`docs/protocols/writing-one.md`).
pub trait Protocol {
    /// Its name in configurations.
    fn name(&self) -> &'static str;
    /// Takes the operator's mission: waypoints, heights above home.
    ///
    /// # Errors
    /// The state or the role forbids it, or the mission cannot be flown; for people.
    fn set_mission(&mut self, mission: &[Point]) -> Result<(), Text>;
    /// The one way in. When it returns, `out` holds everything to do, in order.
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions);
    /// When it wants [`Input::Wake`], and why. Earlier is harmless.
    fn poll_timeout(&self) -> (Instant, &'static str);
    /// Whether the operator may command this now.
    ///
    /// # Errors
    /// Why not, for people.
    fn permits(&self, command: Command) -> Result<(), Text>;
    /// The state, in the words of the protocol's paper.
    fn state(&self) -> &'static str;
    /// How far the flight has come.
    fn phase(&self) -> Phase;
    /// One line: what it does or waits for.
    fn detail(&self) -> Text;
    /// The aircraft's own waypoints; empty before they are known.
    fn route(&self) -> &[Point];
    /// The waypoint reached last.
    fn reached(&self) -> Option<u16>;
    /// Where it is flying to: unless told, the waypoint after the one reached last.
    fn target(&self) -> Option<Point> {
        let next = self.reached().map_or(0, |w| usize::from(w) + 1);
        self.route().get(next).copied()
    }
    /// Place in the swarm; alone unless told.
    fn swarm(&self) -> SwarmView {
        SwarmView::ALONE
    }
    /// Speed at which the flight controller flies the route by its own navigation, metres per second; nothing
    /// where the protocol leads it from place to place.
    fn route_speed_m_s(&self) -> Option<f64> {
        None
    }
    /// Height above home at which the aircraft returns, by its own decision or its autopilot's, millimetre;
    /// nothing where the pilot's own setting stays.
    fn return_height_mm(&self) -> Option<i32> {
        None
    }
    /// What it does to avoid others; nothing where the protocol does not.
    fn avoidance(&self) -> Option<AvoidanceView> {
        None
    }
    /// Whether this aircraft waits for another where its protocol waits for all; one that is lost or excluded
    /// it does not wait for.
    fn waits_for(&self, _who: VehicleId) -> bool {
        true
    }
    /// The members of the swarm that are not waited for; none without a swarm.
    fn absentees(&self) -> Absentees {
        Absentees::new()
    }
    /// The formation with its places, where this aircraft plans it.
    fn formation(&self) -> Option<FormationView> {
        None
    }
    /// What its avoidance came to so far; nothing where it has none.
    fn avoidance_tally(&self) -> Option<mbcap::Tally> {
        None
    }
    /// Where our slot lies from the leader's, metres east and north; nothing without a formation.
    fn slot_offset_m(&self) -> Option<DVec2> {
        None
    }
    /// Where our slot lies from the leader's in a formation that turns with the leader: metres right of the
    /// leader's nose, and ahead; nothing where the formation keeps its heading.
    fn slot_in_heading_m(&self) -> Option<DVec2> {
        None
    }
    /// Whether a pilot flies this aircraft. The protocol gives it no order then, and a change of its flight mode
    /// is the pilot's business and no takeover.
    fn is_piloted(&self) -> bool {
        false
    }
    /// Hash of the plan that the swarm shares; nothing without one.
    fn plan_hash(&self) -> Option<u64> {
        None
    }
}
