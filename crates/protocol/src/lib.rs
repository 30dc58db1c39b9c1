//! The coordination protocols, as pure state machines.
//!
//! A protocol is handed one [`Input`] at a time together with the time and answers with a bounded list
//! of [`Action`]s. It has no MAVLink and no bytes: an order is "fly there", a message is a value. The
//! agent turns orders into MAVLink and messages into datagrams.
//!
//! [`mission`] flies a mission and nothing else; [`mbcap`] keeps aircraft on missions of their own apart
//! (thesis chapter 5); [`muscop`] flies one mission as a formation (thesis chapter 6); [`follow_me`] makes a
//! formation follow an aircraft that a pilot flies (thesis chapter 7); [`sweep`] searches an area in lanes. What
//! every swarm does before and after its flight is [`swarm`], what every aircraft does that flies for itself
//! [`flight`]. How to add a protocol is in
//! `docs/protocols/writing-one.md`.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod accuracy;
pub mod config;
mod denied;
mod extras;
pub mod flight;
pub mod follow_me;
mod leg_table;
pub mod loss_budget;
pub mod mbcap;
pub mod mission;
pub mod muscop;
pub mod swarm;
pub mod sweep;
mod view;

pub use config::{ConfigError, Configuration, Fence};
pub use denied::{Denied, FenceError, MissionError};
pub use extras::{LEG_SPEED_MAX_CM_S, LegExtras, MissionExtras, RouteEnd};
pub use flight::{Asked, EndFlight};
pub use follow_me::FollowMe;
pub use leg_table::LEG_KINDS_MAX;
pub use mbcap::Mbcap;
pub use mission::Mission;
pub use muscop::Muscop;
pub use swarm::budget::Measured;
pub use swarm::{FlightRecord, LISTENS};
pub use sweep::Sweep;
pub use view::{Absent, Absentees, AvoidanceView, Details, FormationView, SlotView, SwarmView, View};
pub use wingbeat_wire::{Command, Phase, StateId};

pub use wingbeat_geo::ROUTE_MAX;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant, Position};
use wingbeat_wire::{Message, Point, Refused, VehicleId};

/// An aircraft's own waypoints.
pub type Route = heapless::Vec<Point, ROUTE_MAX>;

/// One line for the operator.
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

/// After so long without a report of the flight controller an aircraft in flight does not know where it is. It then
/// broadcasts nothing: one that tells an old position as its present one is worse than a silent one, which the others
/// treat as lost.
pub const REPORT_HOLDS: Duration = Duration::from_secs(1);

/// Drag takes the speed of a level multicopter in this time: its way is that of so long at the first speed. That of ArduPilot's
/// simulated quadrotors is 1.5 s and 2.5 s.
const COASTS_S: f64 = 2.5;
/// No farther, metres: that of 15 m/s.
const COASTS_MOST_M: f64 = 37.5;

/// One that has reported no movement for longer stands. A flight controller that loses its position estimate reports none for a
/// moment, at any speed.
pub(crate) const STOPS_WITHIN: Duration = Duration::from_secs(3);
/// One that is faster is under way, metres per second.
pub(crate) const MOVES_M_S: f64 = 1.0;

/// How far over the ground an aircraft goes on at the most that lands without knowing where it is, metres: nothing brakes it.
pub(crate) fn coasts_m(velocity_m_s: DVec3) -> DVec2 {
    (velocity_m_s.truncate() * COASTS_S).clamp_length_max(COASTS_MOST_M)
}

/// How the flight controller moves its aircraft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Handling {
    /// It stops as hard as it can, and begins its track anew at every target (ArduCopter before 4.1, which the published
    /// figures were flown with).
    Tracks,
    /// The changes of its acceleration are bounded: it takes longer to stop. Assumed of what is not known.
    #[default]
    Shaped,
}

/// What a protocol is given of its own aircraft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telemetry {
    /// Present position.
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
    /// Whether it knows where it is. One that landed without knowing reports where it was last.
    pub is_located: bool,
}

impl Telemetry {
    /// The position as it is broadcast.
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
    /// The same after the operator held it: others may have replaced the route meanwhile, which is read back first.
    ResumeHeld,
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
            Self::FlyTo(_) => "flying to a position",
            Self::FlyRoute { .. } => "beginning the route",
            Self::Resume | Self::ResumeHeld => "resuming the route",
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
        /// The sender.
        from: VehicleId,
        /// Which flight it belongs to.
        flight: u32,
        /// The decoded message.
        message: &'a Message,
    },
    /// Another aircraft passed on a command of a leader, who sealed it.
    Passed {
        /// The aircraft that passed it on.
        by: VehicleId,
        /// The leader.
        from: VehicleId,
        /// Which flight it belongs to.
        flight: u32,
        /// The command.
        command: &'a Message,
    },
    /// The operator commands; asked before with [`Protocol::permits`]. Never one of those that are the agent's own,
    /// *Recover control*, *Engage* and *Set parameters*.
    Operator(Command),
    /// The flight controller reached a waypoint of the route by its own navigation.
    Reached(u16),
    /// An order's effect was seen.
    Done(Order),
    /// An order was refused, or never took effect.
    Failed(Order),
    /// Its pilot, its autopilot's failsafe or a ground station flies the aircraft from here on, and ends the flight this
    /// way as far as is known. Nothing is ordered any more; where it is and what it does is still broadcast. Said again
    /// when that changes.
    TakenOver(EndFlight),
    /// The battery carries this aircraft to the end of its flight in this way, and no longer; or it has waited too long.
    /// In a swarm all end it so.
    BatteryLow(EndFlight),
}

/// How bad a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For the record.
    Info,
    /// Needs attention.
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
    /// Broadcast a message.
    Broadcast {
        /// Which flight it belongs to.
        flight: u32,
        /// The message to broadcast.
        message: Message,
    },
    /// Pass on the last command of the leader, as the leader sealed it.
    PassOn,
    /// Log an entry.
    Log(Severity, Text),
    /// The message just handed in was not for us: count it.
    Refused(Refused),
}

/// One input asks at most: a refusal, two state changes with an order and a line each, and the two
/// messages of one broadcast, with a command that is passed on.
pub type Actions = heapless::Vec<Action, 9>;

/// The bound of [`Actions`] holds what one input can ask: see there.
pub(crate) fn push(out: &mut Actions, action: Action) {
    let pushed = out.push(action);
    debug_assert!(pushed.is_ok(), "see the bound on Actions");
}

/// What every coordination protocol offers. To add one: implement this and [`Configuration`] in one file, and
/// name it among the agent's (`docs/protocols/writing-one.md`).
pub trait Protocol {
    /// Its name in configurations.
    fn name(&self) -> &'static str;
    /// Takes the operator's mission: waypoints with heights above home, and what it states besides.
    ///
    /// # Errors
    /// The state or the role forbids it, or the mission cannot be flown as it is stated.
    fn set_mission(&mut self, mission: &[Point], extras: &MissionExtras) -> Result<(), MissionError>;
    /// Parts of [`Protocol::route`] besides its waypoints.
    fn extras(&self) -> &MissionExtras {
        MissionExtras::NONE
    }
    /// Takes how its flight controller moves, as far as that is known, and whenever it may have changed. A protocol whose margins
    /// do not depend on it need not.
    fn set_handling(&mut self, _handling: Handling) {}
    /// Takes what its aircraft measures of where it flies, with each report of the position. A protocol whose margins do not
    /// depend on it need not.
    fn set_measured(&mut self, _now: Instant, _measured: Measured) {}
    /// Whether it can take up a flight that it does not remember ([`Protocol::hold_found`], [`Protocol::take_up`]): one that
    /// is on a route of its own.
    fn takes_up(&self) -> bool {
        false
    }
    /// Its aircraft was found in flight, and was ours before this machine began. It holds as after a failure, and lands unless
    /// it is resumed. Asked after the first report of the position, in [`StateId::Start`].
    fn hold_found(&mut self, _now: Instant, _out: &mut Actions) {}
    /// An aircraft that holds so was on this route and had reached this waypoint: what is resumed.
    ///
    /// # Errors
    /// It does not hold so, or takes up no flight, or the route cannot be flown.
    fn take_up(
        &mut self,
        _route: &[Point],
        _extras: &MissionExtras,
        _reached: Option<u16>,
    ) -> Result<(), MissionError> {
        Err(MissionError::State { found: self.view().state })
    }
    /// What another machine rejoins this aircraft's flight by, with the record of the flight: it changes with each waypoint. None
    /// where it cannot, or where the route alone is enough ([`Protocol::take_up`]).
    fn left_on(&self) -> Option<u64> {
        None
    }
    /// What the flight of a swarm is, once it is known: kept on the ground for the machine after this one. Built on each call.
    fn flight_record(&self) -> Option<FlightRecord> {
        None
    }
    /// Takes what the flight of before was, before anything is known of the aircraft; or, with nothing, forgets it. Whether it
    /// was taken.
    fn remember(&mut self, _now: Instant, _record: Option<&FlightRecord>) -> bool {
        false
    }
    /// Its aircraft was found in flight where [`Protocol::left_on`] says, and was ours before this machine began: it rejoins the
    /// flight that it remembers. Whether it does.
    fn rejoin(&mut self, _now: Instant, _left_on: u64, _out: &mut Actions) -> bool {
        false
    }
    /// The one way in. When it returns, `out` holds everything to do, in order.
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions);
    /// When it wants [`Input::Wake`], and why. Earlier is harmless.
    fn poll_timeout(&self) -> (Instant, &'static str);
    /// Whether the operator may command this now.
    ///
    /// # Errors
    /// Why not.
    fn permits(&self, command: Command) -> Result<(), Denied>;
    /// The aircraft's own waypoints; empty before they are known.
    fn route(&self) -> &[Point];
    /// Where this aircraft may fly, seen from its own home: held against every target, whichever aircraft named it.
    fn fence(&self) -> Fence;
    /// Its state, copied from fields: asked at every input.
    fn view(&self) -> View;
    /// The rest of what is shown of it: formatted, searched for or planned, and asked when a status is published.
    fn details(&self) -> Details;
}
