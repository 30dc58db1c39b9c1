//! The few parameters that safety and preflight depend on: read once the link is up, and again after a
//! reboot, kept in a table of fixed size.
//!
//! ArduPilot reports every changed parameter on every link, so the table follows what a ground station
//! writes. Rows are read in their order, so those that setup waits for come first.

use wingbeat_geo::{Duration, Instant};

use super::{Kind, Name, Names, Refusal, Value, answer, request};
use crate::codec::BufferFull;
use crate::dialect::{MavMessage, MavParamError};
use crate::job::Transmit;

macro_rules! watched {
    ($($(#[$doc:meta])* $variant:ident = $kind:ident $usual:literal;)*) => {
        /// A parameter that is watched.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Watched { $($(#[$doc])* $variant),* }

        /// Every watched parameter, in the order of the table.
        pub const WATCHED: &[Watched] = &[$(Watched::$variant),*];

        const ROWS: &[(Names, Kind)] =
            &[$((Names::of($usual), Kind::$kind)),*];
    };
}

watched! {
    /// The aircraft's MAVLink system id.
    SystemId = Integer "SYSID_THISMAV";
    /// The ground station that ArduPilot obeys as its pilot's: RC overrides and the ground-station failsafe
    /// depend on its frames alone.
    GroundStationId = Integer "SYSID_MYGCS";
    /// Whether frames of others than that ground station are dropped: the lowest bit.
    SystemIdEnforce = Integer "SYSID_ENFORCE";
    /// The action when the ground station is silent.
    GroundStationFailsafe = Integer "FS_GCS_ENABLE";
    /// Seconds of silence before that action (4.x).
    GroundStationTimeout = Real "FS_GCS_TIMEOUT";
    /// Exceptions from failsafes (4.x).
    FailsafeOptions = Integer "FS_OPTIONS";
    /// The action when the pilot's radio is silent.
    ThrottleFailsafe = Integer "FS_THR_ENABLE";
    /// Whether the fence is on.
    FenceEnable = Integer "FENCE_ENABLE";
    /// What it bounds, as bits; the lowest is the height.
    FenceType = Integer "FENCE_TYPE";
    /// Its greatest height above home, metres.
    FenceHeight = Real "FENCE_ALT_MAX";
    /// The autopilot's own paths stay this far below it, metres.
    FenceMargin = Real "FENCE_MARGIN";
    /// Its greatest horizontal distance from home, metres.
    FenceRadius = Real "FENCE_RADIUS";
    /// Points of its polygons.
    FencePoints = Integer "FENCE_TOTAL";
    /// Number of rally points.
    RallyPoints = Integer "RALLY_TOTAL";
    /// Whether AUTO begins the mission again each time that it is entered.
    MissionRestart = Integer "MIS_RESTART";
    /// Whether heights of the return are above home, 0, or above the terrain, 1 (4.x).
    ReturnHeightType = Integer "RTL_ALT_TYPE";
    /// Height at which the return ends, centimetres; 0 lands.
    ReturnEndHeight = Integer "RTL_ALT_FINAL";
    /// The action when the position estimate fails.
    EstimateFailsafe = Integer "FS_EKF_ACTION";
    /// Height of the return, centimetres.
    ReturnHeight = Integer "RTL_ALT";
    /// Speed along a track, centimetres per second.
    TrackSpeed = Real "WPNAV_SPEED";
    /// A waypoint is reached within this distance, centimetres.
    WaypointRadius = Real "WPNAV_RADIUS";
    /// Seconds after which a silent stream of guided velocities stops the aircraft (4.x).
    GuidedTimeout = Real "GUID_TIMEOUT";
    /// Seconds on the ground after which the motors are disarmed.
    DisarmDelay = Integer "DISARM_DELAY";
    /// Which checks guard arming.
    ArmingCheck = Integer "ARMING_CHECK";
    /// Flow control of TELEM2.
    Telem2FlowControl = Integer "BRD_SER2_RTSCTS";
    /// Speed of TELEM2, thousands of baud.
    Telem2Baud = Integer "SERIAL2_BAUD";
    /// Protocol of TELEM2: 1 MAVLink 1, 2 MAVLink 2.
    Telem2Protocol = Integer "SERIAL2_PROTOCOL";
    /// Battery capacity, milliampere hours.
    BatteryCapacity = Integer "BATT_CAPACITY";
    /// The action beyond the fence.
    FenceAction = Integer "FENCE_ACTION";
    /// How the battery is measured; 0 not at all.
    BatteryMonitor = Integer "BATT_MONITOR";
    /// The action when the battery is low.
    BatteryLowAction = Integer "BATT_FS_LOW_ACT";
    /// The voltage below which it is low; 0 for none.
    BatteryLowVoltage = Real "BATT_LOW_VOLT";
    /// The remaining charge below which it is low, milliampere hours; 0 for none.
    BatteryLowCharge = Real "BATT_LOW_MAH";
    /// The action when the battery is nearly empty (4.x).
    BatteryCriticalAction = Integer "BATT_FS_CRT_ACT";
    /// The voltage below which it is nearly empty (4.x); 0 for none.
    BatteryCriticalVoltage = Real "BATT_CRT_VOLT";
    /// The remaining charge below which it is nearly empty, milliampere hours (4.x); 0 for none.
    BatteryCriticalCharge = Real "BATT_CRT_MAH";
    /// When the fence is switched on without `FENCE_ENABLE` (4.6); 0 never.
    FenceAutoEnable = Integer "FENCE_AUTOENABLE";
    /// Height at which the return ends, metres (4.7); 0 lands.
    ReturnEndHeightM = Real "RTL_ALT_FINAL_M";
    /// Height of the return, metres (4.7).
    ReturnHeightM = Real "RTL_ALT_M";
    /// The channel of the pilot's mode switch; 0 for none (3.5.7: 5).
    ModeSwitchChannel = Integer "FLTMODE_CH";
    /// The greatest speed of a pilot in LOITER, centimetres per second.
    LoiterSpeed = Real "LOIT_SPEED";
    /// The same up to 3.5.
    OldLoiterSpeed = Real "WPNAV_LOIT_SPEED";
    /// The highest of a range of ground stations that begins with the one above (4.7); none where it is lower.
    GroundStationIdHighest = Integer "MAV_GCS_SYSID_HI";
    /// Climb rate between waypoints, centimetres per second.
    ClimbSpeed = Real "WPNAV_SPEED_UP";
    /// Descent rate between waypoints, centimetres per second.
    DescentSpeed = Real "WPNAV_SPEED_DN";
    /// Wait above home before the landing of a return, milliseconds.
    ReturnWait = Integer "RTL_LOIT_TIME";
    /// Speed of the return, centimetres per second; 0 for the speed along a track.
    ReturnSpeed = Integer "RTL_SPEED";
    /// Descent rate of the last metres of a landing, centimetres per second.
    LandingSpeed = Integer "LAND_SPEED";
    /// Descent rate of a landing above that, centimetres per second; 0 for the descent rate between waypoints.
    LandingSpeedHigh = Integer "LAND_SPEED_HIGH";
    /// Height below which a landing is slow, centimetres (3.6).
    LandingSlowBelow = Integer "LAND_ALT_LOW";
    /// Speed of the return, metres per second (4.7); 0 for the speed along a track.
    ReturnSpeedM = Real "RTL_SPEED_MS";
    /// Descent rate of the last metres of a landing, metres per second (4.7).
    LandingSpeedM = Real "LAND_SPD_MS";
    /// Descent rate of a landing above that, metres per second (4.7); 0 for the descent rate between waypoints.
    LandingSpeedHighM = Real "LAND_SPD_HIGH_MS";
    /// Height below which a landing is slow, metres (4.7).
    LandingSlowBelowM = Real "LAND_ALT_LOW_M";
}

/// Integers that 4.7 has under other names, as reals and in metres: asked for where the speed along a track has its old name.
const OF_CENTIMETRES: [Watched; 4] =
    [Watched::ReturnSpeed, Watched::LandingSpeed, Watched::LandingSpeedHigh, Watched::LandingSlowBelow];

/// The same values in metres: asked for where the speed along a track has its new name.
const OF_METRES: [Watched; 4] =
    [Watched::ReturnSpeedM, Watched::LandingSpeedM, Watched::LandingSpeedHighM, Watched::LandingSlowBelowM];

/// Those that matter only to an aircraft that a pilot flies: no other asks for them.
const OF_PILOTS: [Watched; 2] = [Watched::LoiterSpeed, Watched::OldLoiterSpeed];

/// Number of watched parameters.
pub const WATCHED_MAX: usize = WATCHED.len();

impl Watched {
    /// Its names.
    pub fn names(self) -> Names {
        ROWS[self as usize].0
    }
    /// The kind of number that is expected.
    pub fn kind(self) -> Kind {
        ROWS[self as usize].1
    }
}

/// What is known of a watched parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Finding {
    /// Not requested yet, or not answered yet.
    #[default]
    Unknown,
    /// Its value.
    Known {
        /// Its name on this autopilot.
        name: Name,
        /// Its value.
        value: Value,
    },
    /// The autopilot does not have it: it left every request unanswered, or answered so.
    Absent,
    /// It holds another kind of number than expected.
    WrongKind {
        /// The kind that it holds.
        found: Kind,
    },
    /// What came cannot be read.
    Unreadable,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    finding: Finding,
    requested_at: Option<Instant>,
}

/// Time between requests while a value is unknown.
const POLL_PERIOD: Duration = Duration::from_millis(200);
/// Requests at a time: at 57600 baud four take 22 ms.
const PER_POLL: usize = 4;
/// A request is repeated after this time.
const PATIENCE: Duration = Duration::from_millis(1_400);
/// Requests under each name.
const TRIES: u8 = 3;

/// The table.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    rows: [Row; WATCHED_MAX],
    /// How often each was requested; in a row of the table it would take the room of a word.
    requests: [u8; WATCHED_MAX],
    /// Rows whose value was read before the last restart: it may have changed. A bit for each.
    old: u64,
    is_piloted: bool,
    due: Instant,
}

const _: () = assert!(WATCHED_MAX <= u64::BITS as usize, "a bit for each row");

impl Watch {
    /// Knows nothing; the first requests are due now.
    pub fn new(now: Instant) -> Self {
        Self {
            rows: [Row::default(); WATCHED_MAX],
            requests: [0; WATCHED_MAX],
            old: 0,
            is_piloted: false,
            due: now,
        }
    }
    /// The same of an aircraft that a pilot flies.
    pub fn of_piloted(now: Instant) -> Self {
        Self { is_piloted: true, ..Self::new(now) }
    }
    /// Forgets everything and asks again: another autopilot is ours.
    pub fn forget(&mut self, now: Instant) {
        *self = Self { is_piloted: self.is_piloted, ..Self::new(now) };
    }
    /// Asks for everything again: the link is back, or the autopilot has restarted. Until the answer each value is unknown;
    /// [`Watch::last`] still has it.
    pub fn restart(&mut self, now: Instant) {
        for (index, row) in self.rows.iter_mut().enumerate() {
            match row.finding {
                Finding::Known { .. } => self.old |= 1 << index,
                Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => {
                    row.finding = Finding::Unknown;
                }
            }
            row.requested_at = None;
        }
        (self.requests, self.due) = ([0; WATCHED_MAX], now);
    }
    fn is_old(&self, which: Watched) -> bool {
        self.old >> (which as usize) & 1 != 0
    }
    /// Whether one is asked for.
    fn is_wanted(&self, which: Watched) -> bool {
        if which == Watched::GroundStationIdHighest {
            return self.has_station_range();
        }
        if OF_CENTIMETRES.contains(&which) {
            return !self.has_speeds_in_metres();
        }
        if OF_METRES.contains(&which) {
            return self.has_speeds_in_metres();
        }
        self.is_piloted || !OF_PILOTS.contains(&which)
    }
    /// Whether this autopilot may obey a range of ground stations: those that have the new name do.
    pub fn has_station_range(&self) -> bool {
        match self.finding(Watched::GroundStationId) {
            Finding::Known { name, .. } => Some(name.as_str()) == Names::GROUND_STATION_ID.other,
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => false,
        }
    }
    /// Whether this autopilot has speeds in metres per second, under the names of 4.7.
    fn has_speeds_in_metres(&self) -> bool {
        match self.finding(Watched::TrackSpeed) {
            Finding::Known { name, .. } => Some(name.as_str()) == Watched::TrackSpeed.names().other,
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => false,
        }
    }
    /// When it wants polling; never, once everything is known.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// What is known of one.
    pub fn finding(&self, which: Watched) -> Finding {
        if self.is_old(which) { Finding::Unknown } else { self.rows[which as usize].finding }
    }
    /// The last value of one that was reported, also where it is requested again.
    pub fn last(&self, which: Watched) -> Option<Value> {
        match self.rows[which as usize].finding {
            Finding::Known { value, .. } => Some(value),
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => None,
        }
    }
    /// The value of one, if it is known.
    pub fn value(&self, which: Watched) -> Option<Value> {
        match self.finding(which) {
            Finding::Known { value, .. } => Some(value),
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => None,
        }
    }
    /// The value of one that is a whole number, if it is known.
    pub fn integer(&self, which: Watched) -> Option<i64> {
        self.value(which).and_then(Value::as_integer)
    }
    /// Whether each was answered or is absent.
    pub fn is_complete(&self) -> bool {
        self.iter().all(|(which, finding)| finding != Finding::Unknown || !self.is_wanted(which))
    }
    /// The table.
    pub fn iter(&self) -> impl Iterator<Item = (Watched, Finding)> + '_ {
        WATCHED.iter().map(|&which| (which, self.finding(which)))
    }

    /// Takes values, requested by the agent or by others.
    pub fn on_message(&mut self, message: &MavMessage) {
        if !matches!(message, MavMessage::PARAM_VALUE(_) | MavMessage::PARAM_ERROR(_)) {
            return;
        }
        for (index, ((row, requests), (names, kind))) in
            self.rows.iter_mut().zip(self.requests).zip(ROWS).enumerate()
        {
            let is_old = self.old >> index & 1 != 0;
            row.finding = match answer(message, names) {
                None => continue,
                Some(Ok((name, value))) if value.kind() == *kind => {
                    Finding::Known { name, value: names.in_usual_unit(name, value) }
                }
                Some(Ok((_, value))) => Finding::WrongKind { found: value.kind() },
                Some(Err(Refusal::Bad(_))) => Finding::Unreadable,
                Some(Err(Refusal::Error { error, .. })) => {
                    // There is no such name; with two, the other request stands.
                    let is_absent = error == MavParamError::MAV_PARAM_ERROR_DOES_NOT_EXIST
                        && (names.other.is_none() || requests >= 2)
                        && (is_old || row.finding == Finding::Unknown);
                    if is_absent { Finding::Absent } else { continue }
                }
            };
            self.old &= !(1 << index);
        }
    }

    /// Requests some of the unknown values.
    ///
    /// # Errors
    /// No room; the request leaves at the next call.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        self.due = now + POLL_PERIOD;
        let (mut left, mut complete) = (PER_POLL, true);
        let wanted: [bool; WATCHED_MAX] = core::array::from_fn(|index| self.is_wanted(WATCHED[index]));
        let rows = self.rows.iter_mut().zip(&mut self.requests).zip(ROWS);
        for (index, (((row, requests), (names, _)), is_wanted)) in rows.zip(wanted).enumerate() {
            let is_old = self.old >> index & 1 != 0;
            if !(is_old || row.finding == Finding::Unknown) || !is_wanted {
                continue;
            }
            if row.requested_at.is_none_or(|at| now.since(at) >= PATIENCE) {
                if *requests >= TRIES * names.count() {
                    row.finding = Finding::Absent;
                    self.old &= !(1 << index);
                    continue;
                }
                if left > 0 {
                    left -= 1;
                    request(names.of_try(*requests), transmit)?;
                    (*requests, row.requested_at) = (*requests + 1, Some(now));
                }
            }
            complete = false;
        }
        if complete {
            self.due = Instant::NEVER;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::testing::{integer, real};
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// Runs until every value is known or absent; returns the time, and the requested names.
    fn run(
        watch: &mut Watch,
        from: Instant,
        answer: impl Fn(&str) -> Option<MavMessage>,
    ) -> (Instant, Vec<String>) {
        let (mut now, mut requested) = (from, Vec::new());
        while watch.due() != Instant::NEVER {
            now = watch.due().max(now);
            let messages = sent(|t| watch.poll(now, t).unwrap());
            assert!(messages.len() <= PER_POLL);
            for message in messages {
                let MavMessage::PARAM_REQUEST_READ(m) = message else { panic!("{message:?}") };
                let name = crate::codec::text(&*m.param_id).to_string();
                if let Some(message) = answer(&name) {
                    watch.on_message(&message);
                }
                requested.push(name);
            }
            assert!(now.since(from) < Duration::from_secs(60), "it never ends");
        }
        (now, requested)
    }

    /// A name, and the first and the last version that has it, of 3.5, 3.6, 4.0 to 4.7: ArduPilot's parameter metadata of each
    /// version (<https://github.com/ArduPilot/ParameterRepository>, `Copter-VERSION/apm.pdef.json`).
    type Named = (&'static str, (u8, u8), (u8, u8));

    const NAMED: &[Named] = &[
        ("SYSID_THISMAV", (3, 5), (4, 6)),
        ("MAV_SYSID", (4, 7), (4, 7)),
        ("SYSID_MYGCS", (3, 5), (4, 6)),
        ("MAV_GCS_SYSID", (4, 7), (4, 7)),
        ("MAV_GCS_SYSID_HI", (4, 7), (4, 7)),
        ("SYSID_ENFORCE", (3, 5), (4, 6)),
        ("MAV_OPTIONS", (4, 7), (4, 7)),
        ("FS_GCS_ENABLE", (3, 5), (4, 7)),
        ("FS_GCS_TIMEOUT", (4, 1), (4, 7)),
        ("FS_OPTIONS", (4, 0), (4, 7)),
        ("FS_THR_ENABLE", (3, 5), (4, 7)),
        ("FENCE_ENABLE", (3, 5), (4, 7)),
        ("FENCE_TYPE", (3, 5), (4, 7)),
        ("FENCE_ALT_MAX", (3, 5), (4, 7)),
        ("FENCE_MARGIN", (3, 5), (4, 7)),
        ("FENCE_RADIUS", (3, 5), (4, 7)),
        ("FENCE_TOTAL", (3, 5), (4, 7)),
        ("FENCE_ACTION", (3, 5), (4, 7)),
        ("FENCE_AUTOENABLE", (4, 6), (4, 7)),
        ("RALLY_TOTAL", (3, 5), (4, 7)),
        ("MIS_RESTART", (3, 5), (4, 7)),
        ("RTL_ALT_TYPE", (4, 1), (4, 7)),
        ("RTL_ALT", (3, 5), (4, 6)),
        ("RTL_ALT_M", (4, 7), (4, 7)),
        ("RTL_ALT_FINAL", (3, 5), (4, 6)),
        ("RTL_ALT_FINAL_M", (4, 7), (4, 7)),
        ("FS_EKF_ACTION", (3, 5), (4, 7)),
        ("WPNAV_SPEED", (3, 5), (4, 6)),
        ("WP_SPD", (4, 7), (4, 7)),
        ("WPNAV_RADIUS", (3, 5), (4, 6)),
        ("WP_RADIUS_M", (4, 7), (4, 7)),
        ("WPNAV_LOIT_SPEED", (3, 5), (3, 5)),
        ("LOIT_SPEED", (3, 6), (4, 6)),
        ("LOIT_SPEED_MS", (4, 7), (4, 7)),
        ("GUID_TIMEOUT", (4, 1), (4, 7)),
        ("DISARM_DELAY", (3, 5), (4, 7)),
        ("ARMING_CHECK", (3, 5), (4, 6)),
        ("ARMING_SKIPCHK", (4, 7), (4, 7)),
        ("BRD_SER2_RTSCTS", (3, 5), (4, 7)),
        ("SERIAL2_BAUD", (3, 5), (4, 7)),
        ("SERIAL2_PROTOCOL", (3, 5), (4, 7)),
        ("BATT_CAPACITY", (3, 5), (4, 7)),
        ("BATT_MONITOR", (3, 5), (4, 7)),
        ("FS_BATT_ENABLE", (3, 5), (3, 5)),
        ("BATT_FS_LOW_ACT", (3, 6), (4, 7)),
        ("FS_BATT_VOLTAGE", (3, 5), (3, 5)),
        ("BATT_LOW_VOLT", (3, 6), (4, 7)),
        ("FS_BATT_MAH", (3, 5), (3, 5)),
        ("BATT_LOW_MAH", (3, 6), (4, 7)),
        ("BATT_FS_CRT_ACT", (3, 6), (4, 7)),
        ("BATT_CRT_VOLT", (3, 6), (4, 7)),
        ("BATT_CRT_MAH", (3, 6), (4, 7)),
        ("FLTMODE_CH", (3, 6), (4, 7)),
        ("WPNAV_SPEED_UP", (3, 5), (4, 6)),
        ("WP_SPD_UP", (4, 7), (4, 7)),
        ("WPNAV_SPEED_DN", (3, 5), (4, 6)),
        ("WP_SPD_DN", (4, 7), (4, 7)),
        ("RTL_LOIT_TIME", (3, 5), (4, 7)),
        ("RTL_SPEED", (3, 5), (4, 6)),
        ("RTL_SPEED_MS", (4, 7), (4, 7)),
        ("LAND_SPEED", (3, 5), (4, 6)),
        ("LAND_SPD_MS", (4, 7), (4, 7)),
        ("LAND_SPEED_HIGH", (3, 5), (4, 6)),
        ("LAND_SPD_HIGH_MS", (4, 7), (4, 7)),
        ("LAND_ALT_LOW", (3, 6), (4, 6)),
        ("LAND_ALT_LOW_M", (4, 7), (4, 7)),
    ];

    fn as_expected(name: &str) -> Option<MavMessage> {
        let (_, kind) = ROWS.iter().find(|(names, _)| names.has(name))?;
        Some(match kind {
            Kind::Integer => integer(name, 3.0),
            Kind::Real => real(name, 3.0),
        })
    }

    #[test]
    fn each_is_requested_once_when_it_is_answered() {
        let mut watch = Watch::new(Instant::ZERO);
        let (_, requested) = run(&mut watch, Instant::ZERO, as_expected);
        assert_eq!(requested.len(), WATCHED_MAX - OF_PILOTS.len() - OF_METRES.len() - 1);
        assert!(watch.is_complete());
        let mut watch = Watch::of_piloted(Instant::ZERO);
        let (at, requested) = run(&mut watch, Instant::ZERO, as_expected);
        assert_eq!(requested.len(), WATCHED_MAX - OF_METRES.len() - 1);
        assert!(at <= Instant::from_secs(3), "{at:?}");
        assert_eq!(watch.integer(Watched::GroundStationFailsafe), Some(3));
        assert_eq!(watch.value(Watched::TrackSpeed), Some(Value::Real(3.0)));
        // A reboot: everything is requested again.
        watch.restart(Instant::from_secs(10));
        assert_eq!(watch.finding(Watched::SystemId), Finding::Unknown);
        assert_eq!(
            run(&mut watch, Instant::from_secs(10), as_expected).1.len(),
            WATCHED_MAX - OF_METRES.len() - 1
        );
        // A ground station changes one.
        watch.on_message(&integer("FS_GCS_ENABLE", 0.0));
        assert_eq!(watch.integer(Watched::GroundStationFailsafe), Some(0));
    }

    #[test]
    fn after_a_restart_a_value_is_unknown_until_it_is_read_again_and_the_last_one_is_kept() {
        let mut watch = Watch::new(Instant::ZERO);
        run(&mut watch, Instant::ZERO, as_expected);
        let last = watch.last(Watched::TrackSpeed);
        watch.restart(Instant::from_secs(10));
        assert!(!watch.is_complete() && watch.value(Watched::TrackSpeed).is_none());
        assert_eq!((watch.last(Watched::TrackSpeed), last.is_some()), (last, true));
        watch.on_message(&real("WPNAV_SPEED", 321.0));
        assert_eq!(watch.value(Watched::TrackSpeed), Some(Value::Real(321.0)));
        run(&mut watch, Instant::from_secs(10), as_expected);
        assert!(watch.is_complete());
        watch.forget(Instant::from_secs(20));
        assert_eq!(watch.last(Watched::TrackSpeed), None);
    }

    #[test]
    fn a_parameter_without_an_answer_is_absent_and_the_other_name_counts() {
        let mut watch = Watch::new(Instant::ZERO);
        let (at, requested) = run(&mut watch, Instant::ZERO, |name| match name {
            "GUID_TIMEOUT" | "SYSID_THISMAV" => None,
            "WPNAV_SPEED" => Some(integer(name, 500.0)),
            "RTL_ALT" => Some(integer(name, 0.5)),
            _ => as_expected(name),
        });
        let count = |name| requested.iter().filter(|n| *n == name).count();
        assert_eq!((count("GUID_TIMEOUT"), watch.finding(Watched::GuidedTimeout)), (3, Finding::Absent));
        assert_eq!((count("SYSID_THISMAV"), count("MAV_SYSID")), (1, 1));
        let name = Name::new("MAV_SYSID").unwrap();
        assert_eq!(watch.finding(Watched::SystemId), Finding::Known { name, value: Value::Integer(3) });
        assert_eq!(watch.finding(Watched::TrackSpeed), Finding::WrongKind { found: Kind::Integer });
        assert_eq!(watch.finding(Watched::ReturnHeight), Finding::Unreadable);
        assert!(watch.is_complete() && at < Instant::from_secs(9), "{at:?}");
    }

    #[test]
    fn of_4_7_speeds_are_found_under_their_new_names_and_in_the_usual_unit() {
        let mut watch = Watch::of_piloted(Instant::ZERO);
        let (_, requested) = run(&mut watch, Instant::ZERO, |name| match name {
            "WP_SPD" => Some(real(name, 7.5)),
            "WP_RADIUS_M" => Some(real(name, 2.0)),
            "LOIT_SPEED_MS" => Some(real(name, 12.5)),
            "WPNAV_SPEED" | "WPNAV_RADIUS" | "LOIT_SPEED" | "WPNAV_LOIT_SPEED" => None,
            "RTL_SPEED_MS" => Some(real(name, 4.0)),
            _ => as_expected(name),
        });
        assert!(requested.iter().any(|name| name == "WP_SPD"));
        assert_eq!(watch.value(Watched::ReturnSpeedM), Some(Value::Real(4.0)));
        let found = [Watched::TrackSpeed, Watched::WaypointRadius, Watched::LoiterSpeed];
        assert_eq!(found.map(|which| watch.value(which).unwrap().as_f64()), [750.0, 200.0, 1250.0]);
        let name = Name::new("WP_SPD").unwrap();
        assert_eq!(watch.finding(Watched::TrackSpeed), Finding::Known { name, value: Value::Real(750.0) });
        assert_eq!(watch.finding(Watched::OldLoiterSpeed), Finding::Absent);
    }

    #[test]
    fn every_version_is_read_by_the_names_that_it_has() {
        for version in [(3, 5), (3, 6), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4), (4, 5), (4, 6), (4, 7)] {
            let has = |name: &str| {
                let (_, first, last) = NAMED.iter().find(|named| named.0 == name).expect(name);
                (*first..=*last).contains(&version)
            };
            let mut watch = Watch::of_piloted(Instant::ZERO);
            let (_, requested) =
                run(&mut watch, Instant::ZERO, |name| if has(name) { as_expected(name) } else { None });
            for (which, finding) in watch.iter() {
                let names = which.names();
                let name = [Some(names.usual), names.other].into_iter().flatten().find(|name| has(name));
                let found = match finding {
                    Finding::Known { name, .. } => Some(name),
                    Finding::Absent => None,
                    Finding::Unknown => {
                        assert!(!watch.is_wanted(which), "{version:?} {which:?}");
                        None
                    }
                    Finding::WrongKind { .. } | Finding::Unreadable => panic!("{version:?} {which:?}"),
                };
                assert_eq!(found.as_ref().map(Name::as_str), name, "{version:?} {which:?}");
            }
            assert_eq!(watch.has_station_range(), version >= (4, 7));
            assert_eq!(requested.iter().any(|name| name == "MAV_GCS_SYSID_HI"), version >= (4, 7));
        }
        for (name, ..) in NAMED {
            assert!(ROWS.iter().any(|(names, _)| names.has(name)), "{name}: no row reads it");
        }
    }

    #[test]
    fn every_parameter_of_an_autopilot_without_answers_is_absent() {
        let mut watch = Watch::of_piloted(Instant::ZERO);
        let (_, requested) = run(&mut watch, Instant::ZERO, |_| None);
        assert!(requested.len() <= WATCHED_MAX * 6);
        let is_absent = |(which, finding)| finding == Finding::Absent || !watch.is_wanted(which);
        assert!(watch.iter().all(is_absent));
    }
}
