//! The autopilot's last reports.

mod boot;
pub mod identification;
pub mod measurements;
mod requests;
pub mod status_text;
pub mod switch;

use wingbeat_geo::{DVec3, Duration, Instant, Position};

use crate::codec::Frame;
use crate::copter::{Mode, reports_downward_speed};
use crate::dialect::{
    EkfStatusFlags, HEARTBEAT_DATA, HOME_POSITION_DATA, MavMessage, MavModeFlag, MavSysStatusSensor,
    RC_CHANNELS_DATA, SYS_STATUS_DATA,
};
use crate::identity::{Firmware, Vehicle};
use crate::job::AUTOPILOT_COMPONENT_ID;

pub use crate::identity::Version;
pub use boot::Boot;
pub use identification::{Identification, Known};
pub use measurements::{Battery, ChargeState, Filter, Gnss, Measurements, Pack, Wind, Worst};
pub use requests::{REQUESTS_MAX, StreamRequest, requests};
pub use status_text::StatusText;

use boot::Ticked;
use identification::{Adopted, Judged};
pub use status_text::Joiner;

/// Silence after which the link to the autopilot counts as lost. Position reports come at 4 Hz and
/// heartbeats at 1 Hz: one lost heartbeat alone is not a lost link.
pub const LINK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A wind that is not reported for this time is not known.
const WIND_FOR: Duration = Duration::from_secs(10);

/// The autopilot's report of its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetReport {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Time of the report.
    pub at: Instant,
}

/// The autopilot's report of distance and bearing to its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BearingReport {
    /// Distance over the ground, metres.
    pub distance_m: f64,
    /// Bearing, radians clockwise from north.
    pub bearing_rad: f64,
    /// Time of the report.
    pub at: Instant,
}

/// What SYS_STATUS reports of sensors (<https://mavlink.io/en/messages/common.html#MAV_SYS_STATUS_SENSOR>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensors {
    /// Whether the autopilot's own checks before arming pass; absent where they are off or not reported (3.5.7).
    pub prearm: Option<bool>,
    /// Whether a pilot's transmitter is received; absent where no receiver was found.
    pub radio_control: Option<bool>,
}

impl Sensors {
    /// What one report says.
    pub fn of(m: &SYS_STATUS_DATA) -> Self {
        let (present, enabled, healthy) = (
            m.onboard_control_sensors_present,
            m.onboard_control_sensors_enabled,
            m.onboard_control_sensors_health,
        );
        let is_healthy = |sensor| (present & enabled).contains(sensor).then(|| healthy.contains(sensor));
        Self {
            prearm: is_healthy(MavSysStatusSensor::MAV_SYS_STATUS_PREARM_CHECK),
            radio_control: is_healthy(MavSysStatusSensor::MAV_SYS_STATUS_SENSOR_RC_RECEIVER),
        }
    }
}

/// What the autopilot's texts about its own checks begin with.
const PREARM: &str = "PreArm: ";

/// The last report of each value, with its time where its age matters.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    /// Decides which flight controller is ours.
    pub identification: Identification,
    /// The system id of the adopted autopilot.
    pub system_id: Option<u8>,
    /// Last frame of any kind from it.
    pub frame_at: Option<Instant>,
    /// Last heartbeat.
    pub heartbeat_at: Option<Instant>,
    /// Autopilot and vehicle, from the heartbeat.
    pub vehicle: Option<Vehicle>,
    /// Whether that is ArduCopter, the only one that Wingbeat commands.
    pub is_copter: Option<bool>,
    /// `custom_mode` of the last heartbeat.
    pub mode_number: Option<u32>,
    /// Motors armed.
    pub armed: bool,
    /// The last position report.
    pub position: Option<Position>,
    /// When it was received.
    pub position_at: Option<Instant>,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Heading, radians clockwise from north.
    pub heading_rad: f64,
    /// The EKF has an absolute horizontal position.
    pub ekf_position: Option<bool>,
    /// When the EKF reported last.
    pub ekf_at: Option<Instant>,
    /// The target that it reports.
    pub target: Option<TargetReport>,
    /// Distance and bearing that it reports: 3.5.7 reports no more of its target.
    pub target_bearing: Option<BearingReport>,
    /// Firmware.
    pub version: Option<Version>,
    /// Firmware, capabilities, board.
    pub firmware: Option<Firmware>,
    /// The last home report.
    pub home: Option<Position>,
    /// When it was received; absent where that was before the motors were armed.
    pub home_at: Option<Instant>,
    /// Home that a system reported before it was identified: ArduCopter reports it once, when it has set it.
    pub early_home: Option<(u8, Position)>,
    /// The last position that was reported with the motors off: ArduCopter sets its home there when it is armed.
    pub disarmed_position: Option<Position>,
    /// Health of sensors and of the autopilot's own checks.
    pub sensors: Option<Sensors>,
    /// Why the autopilot's own checks fail, and when it announced that.
    pub prearm_failure: Option<(Instant, StatusText)>,
    /// Joins its texts.
    pub texts: Joiner,
    /// What an operator sees of its sensors and estimators.
    pub measured: Measurements,
    /// When the wind was reported last.
    pub wind_at: Option<Instant>,
    /// Its clocks.
    pub boot: Boot,
    /// Where its motors were started last.
    pub armed_position: Option<Position>,
    /// Number of its reboots.
    pub reboots: u32,
    /// Other autopilots on this line.
    pub other_autopilots: OtherAutopilots,
}

/// Autopilots on the line that are not ours. Their frames are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherAutopilots {
    /// System id of the last heartbeat.
    pub system_id: Option<u8>,
    /// Number of their heartbeats.
    pub heartbeats: u32,
}

/// What a frame brought, as far as the agent acts on it.
#[derive(Clone, Debug, PartialEq)]
pub enum TelemetryEvent {
    /// A position report.
    Position,
    /// A heartbeat.
    Heartbeat(HeartbeatChange),
    /// A heartbeat of an autopilot that is ours from now on.
    Identified(Vehicle),
    /// The autopilot has rebooted: its values are forgotten, except identity, mode and arming.
    Rebooted,
    /// The first heartbeat of another autopilot with this system id, which is ignored.
    OtherAutopilot(u8),
    /// Two senders use the system id of ours.
    TwoWithOneId,
    /// A further flight controller speaks while none is adopted: it is not known which is ours.
    Several,
    /// The autopilot's own navigation reached this item of its mission.
    ItemReached(u16),
    /// The autopilot's own navigation flies to this item of its mission, or has ended it there.
    CurrentItem(u16),
    /// A message for the operator.
    StatusText {
        /// Warning or worse: ArduCopter reports its failsafes as warnings.
        severe: bool,
        /// The message, its parts joined.
        text: StatusText,
    },
    /// The channels of the pilot's transmitter.
    Channels(RC_CHANNELS_DATA),
    /// Anything else.
    Other,
}

/// What a heartbeat shows that the one before did not. Nothing is new in the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatChange {
    /// Another mode.
    pub mode: bool,
    /// The motors were armed or disarmed.
    pub arming: bool,
}

impl Telemetry {
    /// Returns the telemetry of a line on which anything may speak; `configured` is the system id that the operator chose.
    pub fn identifying(configured: Option<u8>) -> Self {
        Self { identification: Identification::new(configured), ..Self::default() }
    }

    /// Returns whether the frame comes from the adopted autopilot. Ground stations, gimbals and other autopilots on the
    /// same line are not ours.
    pub fn is_ours(&self, frame: &Frame) -> bool {
        frame.header.component_id == AUTOPILOT_COMPONENT_ID
            && self.system_id.is_some_and(|id| u32::from(id) == frame.header.system_id)
    }

    /// Judges whose heartbeat it is; counts those of others.
    fn identify(&mut self, now: Instant, frame: &Frame) -> Option<TelemetryEvent> {
        let MavMessage::HEARTBEAT(m) = &frame.message else { return None };
        let vehicle = Vehicle::of(m).filter(|_| frame.header.component_id == AUTOPILOT_COMPONENT_ID)?;
        let system_id = u8::try_from(frame.header.system_id).ok().filter(|id| *id != 0)?;
        let is_armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
        let adopted = self.system_id.map(|system_id| Adopted {
            system_id,
            is_copter: self.is_copter == Some(true),
            is_armed: self.armed,
        });
        match self.identification.judge(now, system_id, vehicle, is_armed, adopted) {
            Judged::Ours => None,
            Judged::Other(is_first) => {
                self.other_autopilots.system_id = Some(system_id);
                self.other_autopilots.heartbeats = self.other_autopilots.heartbeats.saturating_add(1);
                let is_known = self.system_id.is_some() || self.identification.expected().is_some();
                Some(match is_first {
                    true if is_known => TelemetryEvent::OtherAutopilot(system_id),
                    true if self.identification.contenders(now, false).is_some() => TelemetryEvent::Several,
                    true | false => TelemetryEvent::Other,
                })
            }
            Judged::Adopt => {
                let identification = core::mem::take(&mut self.identification);
                let (other_autopilots, reboots) = (self.other_autopilots, self.reboots);
                let home = self.early_home.filter(|(id, _)| *id == system_id).map(|(_, home)| home);
                *self = Self {
                    home,
                    home_at: home.map(|_| now),
                    identification,
                    other_autopilots,
                    reboots,
                    system_id: Some(system_id),
                    ..Self::default()
                };
                self.on_heartbeat(now, m, vehicle);
                Some(TelemetryEvent::Identified(vehicle))
            }
        }
    }

    fn on_heartbeat(&mut self, now: Instant, m: &HEARTBEAT_DATA, vehicle: Vehicle) -> HeartbeatChange {
        let is_first = self.heartbeat_at.is_none();
        (self.frame_at, self.heartbeat_at) = (Some(now), Some(now));
        (self.vehicle, self.is_copter) = (Some(vehicle), Some(vehicle.is_copter()));
        let is_armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
        let arming = core::mem::replace(&mut self.armed, is_armed) != is_armed && !is_first;
        if arming && is_armed {
            self.armed_position = self.disarmed_position;
            // The autopilot has set home here. Its earlier reports are of another.
            self.home_at = None;
        }
        let mode = self.mode_number.replace(m.custom_mode).is_some_and(|before| before != m.custom_mode);
        HeartbeatChange { mode, arming }
    }

    /// Forgets what does not survive a reboot. Mode and arming stay until the next heartbeat, so that a change
    /// of them is found.
    fn forget(&mut self, now: Instant) {
        *self = Self {
            identification: core::mem::take(&mut self.identification),
            boot: self.boot.rebooted(now),
            system_id: self.system_id,
            frame_at: self.frame_at,
            heartbeat_at: self.heartbeat_at,
            vehicle: self.vehicle,
            is_copter: self.is_copter,
            mode_number: self.mode_number,
            armed: self.armed,
            reboots: self.reboots.saturating_add(1),
            other_autopilots: self.other_autopilots,
            ..Self::default()
        };
    }

    /// Applies a frame.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_frame(&mut self, now: Instant, frame: &Frame) -> TelemetryEvent {
        if let Some(event) = self.identify(now, frame) {
            return event;
        }
        if !self.is_ours(frame) {
            if self.system_id.is_none() && frame.header.component_id == AUTOPILOT_COMPONENT_ID {
                self.keep_early_home(frame);
            }
            return TelemetryEvent::Other;
        }
        self.frame_at = Some(now);
        match self.boot.on_message(now, &frame.message, self.armed) {
            Ticked::Restarted => {
                self.forget(now);
                return TelemetryEvent::Rebooted;
            }
            Ticked::Twins(true) => return TelemetryEvent::TwoWithOneId,
            Ticked::On | Ticked::Twins(false) => {}
        }
        self.measured.on_message(&frame.message);
        if let MavMessage::WIND(_) = &frame.message {
            self.wind_at = Some(now);
        } else if self.wind_at.is_none_or(|at| now.since(at) >= WIND_FOR) {
            self.measured.wind = None;
        }
        match &frame.message {
            MavMessage::HEARTBEAT(m) => match Vehicle::of(m) {
                Some(vehicle) => TelemetryEvent::Heartbeat(self.on_heartbeat(now, m, vehicle)),
                None => TelemetryEvent::Other,
            },
            MavMessage::GLOBAL_POSITION_INT(m) => {
                let position = Position { latitude_e7: m.lat, longitude_e7: m.lon, altitude_mm: m.alt };
                // ArduCopter reports 0, 0 before it has a position.
                if (m.lat == 0 && m.lon == 0) || !position.is_on_earth() {
                    return TelemetryEvent::Other;
                }
                self.position = Some(position);
                self.position_at = Some(now);
                if !self.armed {
                    self.disarmed_position = Some(position);
                }
                self.height_m = f64::from(m.relative_alt) * 1e-3;
                let up = if reports_downward_speed(self.version) { -1e-2 } else { 1e-2 };
                self.velocity_m_s =
                    DVec3::new(f64::from(m.vy) * 1e-2, f64::from(m.vx) * 1e-2, f64::from(m.vz) * up);
                if m.hdg != u16::MAX {
                    self.heading_rad = (f64::from(m.hdg) * 1e-2).to_radians();
                }
                TelemetryEvent::Position
            }
            MavMessage::SYS_STATUS(m) => {
                self.sensors = Some(Sensors::of(m));
                TelemetryEvent::Other
            }
            MavMessage::EKF_STATUS_REPORT(m) => {
                self.ekf_position = Some(m.flags.contains(EkfStatusFlags::EKF_POS_HORIZ_ABS));
                self.ekf_at = Some(now);
                TelemetryEvent::Other
            }
            MavMessage::POSITION_TARGET_GLOBAL_INT(m) => {
                self.target = Some(TargetReport { latitude_e7: m.lat_int, longitude_e7: m.lon_int, at: now });
                TelemetryEvent::Other
            }
            MavMessage::NAV_CONTROLLER_OUTPUT(m) => {
                self.target_bearing = Some(BearingReport {
                    distance_m: f64::from(m.wp_dist),
                    bearing_rad: f64::from(m.target_bearing).to_radians(),
                    at: now,
                });
                TelemetryEvent::Other
            }
            MavMessage::AUTOPILOT_VERSION(m) => {
                let firmware = Firmware::of(m);
                (self.version, self.firmware) = (Some(firmware.version), Some(firmware));
                TelemetryEvent::Other
            }
            MavMessage::HOME_POSITION(m) => {
                if let Some(home) = home_of(m) {
                    (self.home, self.home_at) = (Some(home), Some(now));
                }
                TelemetryEvent::Other
            }
            MavMessage::MISSION_ITEM_REACHED(m) => TelemetryEvent::ItemReached(m.seq),
            MavMessage::MISSION_CURRENT(m) => TelemetryEvent::CurrentItem(m.seq),
            MavMessage::RC_CHANNELS(m) => TelemetryEvent::Channels(m.clone()),
            MavMessage::STATUSTEXT(m) => match self.texts.push(now, m) {
                Some(whole) => self.on_text(now, whole),
                None => TelemetryEvent::Other,
            },
            _ => match self.texts.overdue(now) {
                Some(whole) => self.on_text(now, whole),
                None => TelemetryEvent::Other,
            },
        }
    }

    /// Keeps the home that a system reports before it is identified.
    fn keep_early_home(&mut self, frame: &Frame) {
        if let MavMessage::HOME_POSITION(m) = &frame.message
            && let (Ok(id), Some(home)) = (u8::try_from(frame.header.system_id), home_of(m))
        {
            self.early_home = Some((id, home));
        }
    }

    fn on_text(&mut self, now: Instant, (severe, text): (bool, StatusText)) -> TelemetryEvent {
        if let Some(why) = text.strip_prefix(PREARM) {
            // A part of a text that fits.
            self.prearm_failure = Some((now, why.try_into().unwrap_or_default()));
        }
        TelemetryEvent::StatusText { severe, text }
    }

    /// The mode, if it is one of [`Mode`].
    pub fn mode(&self) -> Option<Mode> {
        self.mode_number.and_then(Mode::from_number)
    }

    /// Returns the position of home: in flight as it was reported since the arming, else the position of the arming.
    pub fn returns_to(&self) -> Option<Position> {
        let reported = self.home.filter(|_| self.armed && self.home_at.is_some());
        reported.or(self.disarmed_position).or(self.home)
    }

    /// Whether a frame came within [`LINK_TIMEOUT`].
    pub fn is_up(&self, now: Instant) -> bool {
        self.frame_at.is_some_and(|at| now.since(at) < LINK_TIMEOUT)
    }
}

/// Returns the home of a report, if it is a place on earth.
fn home_of(m: &HOME_POSITION_DATA) -> Option<Position> {
    let home = Position { latitude_e7: m.latitude, longitude_e7: m.longitude, altitude_mm: m.altitude };
    home.is_on_earth().then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::MavHeader;
    use crate::dialect::{GLOBAL_POSITION_INT_DATA, MavAutopilot, MavType, SYSTEM_TIME_DATA, WIND_DATA};

    fn frame(component_id: u8, message: MavMessage) -> Frame {
        let header = MavHeader { system_id: 7, component_id, sequence: 0 };
        Frame { header, version: Default::default(), message }
    }

    fn heartbeat(mode: Mode) -> MavMessage {
        MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: mode.number(),
            mavtype: MavType::MAV_TYPE_QUADROTOR,
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
            ..HEARTBEAT_DATA::default()
        })
    }

    /// After the first heartbeat of system 7.
    fn met() -> Telemetry {
        let mut t = Telemetry::default();
        assert!(matches!(
            t.on_frame(Instant::ZERO, &frame(1, heartbeat(Mode::Guided))),
            TelemetryEvent::Identified(_)
        ));
        t
    }

    fn clock(time_boot_ms: u32) -> Frame {
        frame(1, MavMessage::SYSTEM_TIME(SYSTEM_TIME_DATA { time_unix_usec: 0, time_boot_ms }))
    }

    #[test]
    fn a_home_that_is_reported_before_the_first_heartbeat_is_kept_for_its_system_alone() {
        let home = |system_id, latitude| Frame {
            header: MavHeader { system_id, component_id: 1, sequence: 0 },
            ..frame(1, MavMessage::HOME_POSITION(HOME_POSITION_DATA { latitude, ..Default::default() }))
        };
        let mut t = Telemetry::default();
        let meet = |t: &mut Telemetry| t.on_frame(Instant::ZERO, &frame(1, heartbeat(Mode::Guided)));
        t.on_frame(Instant::ZERO, &home(7, 394_825_940));
        meet(&mut t);
        assert_eq!(t.home.map(|home| home.latitude_e7), Some(394_825_940));

        let mut t = Telemetry::default();
        t.on_frame(Instant::ZERO, &home(9, 394_825_940));
        meet(&mut t);
        assert_eq!((t.home, t.home_at), (None, None));
    }

    #[test]
    fn a_clock_that_goes_back_is_a_reboot_and_values_are_forgotten() {
        let mut t = met();
        let now = Instant::from_secs(1);
        let position = GLOBAL_POSITION_INT_DATA {
            time_boot_ms: 90_000,
            lat: 394_825_940,
            lon: -3_462_650,
            ..Default::default()
        };
        let stalled = frame(1, MavMessage::GLOBAL_POSITION_INT(position));
        assert_eq!(t.on_frame(now, &stalled), TelemetryEvent::Position);
        assert_eq!(t.on_frame(now, &clock(90_000)), TelemetryEvent::Other);
        // The receiver stalls, not the autopilot.
        assert_eq!(t.on_frame(now, &clock(95_000)), TelemetryEvent::Other);
        assert_eq!((t.on_frame(now, &stalled), t.reboots), (TelemetryEvent::Position, 0));
        assert_eq!(t.on_frame(now, &clock(90_000 + 5_100)), TelemetryEvent::Other);
        // Reordered frames are no reboot, nor is the clock's wrap.
        assert_eq!(t.on_frame(now, &clock(94_300)), TelemetryEvent::Other);
        assert_eq!(t.on_frame(now, &clock(2_000)), TelemetryEvent::Rebooted);
        assert_eq!((t.position, t.version, t.ekf_position, t.reboots), (None, None, None, 1));
        assert_eq!((t.system_id, t.mode()), (Some(7), Some(Mode::Guided)));
        assert_eq!(t.on_frame(now, &clock(2_100)), TelemetryEvent::Other);
        // A step of more than half of its range would be one back.
        for ms in [u32::MAX / 3, u32::MAX / 3 * 2, u32::MAX - 10] {
            assert_eq!(t.on_frame(now, &clock(ms)), TelemetryEvent::Other);
        }
        assert_eq!((t.on_frame(now, &clock(500)), t.reboots), (TelemetryEvent::Other, 1));
    }

    #[test]
    fn a_wind_that_is_no_longer_reported_is_not_known() {
        let mut t = met();
        let wind = WIND_DATA { direction: 90.0, speed: 4.0, speed_z: 0.0 };
        t.on_frame(Instant::from_secs(1), &frame(1, MavMessage::WIND(wind)));
        t.on_frame(Instant::from_secs(10), &clock(10_000));
        assert!(t.measured.wind.is_some());
        t.on_frame(Instant::from_secs(11), &clock(11_000));
        assert_eq!(t.measured.wind, None);
    }

    #[test]
    fn a_second_autopilot_is_ignored_counted_and_reported_once() {
        let mut t = met();
        let now = Instant::from_secs(1);
        let other = |message| Frame {
            header: MavHeader { system_id: 9, component_id: 1, sequence: 0 },
            ..frame(1, message)
        };
        assert_eq!(t.on_frame(now, &other(heartbeat(Mode::Land))), TelemetryEvent::OtherAutopilot(9));
        assert_eq!(t.on_frame(now, &other(heartbeat(Mode::Land))), TelemetryEvent::Other);
        let other_autopilots = OtherAutopilots { system_id: Some(9), heartbeats: 2 };
        assert_eq!((t.mode(), t.other_autopilots), (Some(Mode::Guided), other_autopilots));
        assert_eq!(t.on_frame(now, &other(clock(1).message)), TelemetryEvent::Other);
        assert_eq!((t.boot.boot_ms(), t.frame_at), (None, Some(Instant::ZERO)));
        // Ours is silent for a reboot: the other is not adopted. After a minute alone it has replaced ours.
        for s in 2..61 {
            let event = t.on_frame(Instant::from_secs(s), &other(heartbeat(Mode::Land)));
            assert_eq!((event, t.system_id), (TelemetryEvent::Other, Some(7)), "{s}");
        }
        let later = Instant::from_secs(61);
        assert!(matches!(t.on_frame(later, &other(heartbeat(Mode::Land))), TelemetryEvent::Identified(_)));
        assert_eq!((t.system_id, t.mode()), (Some(9), Some(Mode::Land)));
        assert_eq!(t.identification.replaced(), Some(7));
    }

    #[test]
    fn an_armed_aircraft_that_stops_sending_is_not_replaced_by_another() {
        let mut t = Telemetry { armed: true, ..met() };
        let other = Frame {
            header: MavHeader { system_id: 9, component_id: 1, sequence: 0 },
            ..frame(1, heartbeat(Mode::Land))
        };
        assert_eq!(t.on_frame(Instant::from_secs(100), &other), TelemetryEvent::OtherAutopilot(9));
        assert_eq!(t.system_id, Some(7));
    }

    #[test]
    fn a_heartbeat_of_a_ground_station_identifies_no_autopilot() {
        let mut t = Telemetry::default();
        let MavMessage::HEARTBEAT(mut m) = heartbeat(Mode::Guided) else { unreachable!() };
        m.autopilot = MavAutopilot::MAV_AUTOPILOT_INVALID;
        let router = HEARTBEAT_DATA {
            mavtype: MavType::MAV_TYPE_GCS,
            autopilot: MavAutopilot::MAV_AUTOPILOT_GENERIC,
            ..HEARTBEAT_DATA::default()
        };
        let tracker = HEARTBEAT_DATA {
            mavtype: MavType::MAV_TYPE_ANTENNA_TRACKER,
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            ..HEARTBEAT_DATA::default()
        };
        for other in [m, router, tracker] {
            let other = frame(1, MavMessage::HEARTBEAT(other));
            assert_eq!(t.on_frame(Instant::ZERO, &other), TelemetryEvent::Other);
            assert_eq!((t.system_id, t.frame_at), (None, None));
            assert_eq!(t.other_autopilots, OtherAutopilots::default(), "it is no flight controller");
        }
    }

    #[test]
    fn a_mode_change_is_an_event_and_other_components_are_not_the_autopilot() {
        let mut t = Telemetry::default();
        let now = Instant::from_secs(1);
        assert_eq!(t.on_frame(now, &frame(190, heartbeat(Mode::Auto))), TelemetryEvent::Other);
        let quadrotor = Vehicle { autopilot: 3, kind: 2 };
        assert_eq!(
            t.on_frame(now, &frame(1, heartbeat(Mode::Guided))),
            TelemetryEvent::Identified(quadrotor)
        );
        assert_eq!(
            t.on_frame(now, &frame(1, heartbeat(Mode::Guided))),
            TelemetryEvent::Heartbeat(HeartbeatChange::default())
        );
        let changed = TelemetryEvent::Heartbeat(HeartbeatChange { mode: true, arming: false });
        assert_eq!(t.on_frame(now, &frame(1, heartbeat(Mode::Loiter))), changed);
        assert_eq!((t.mode(), t.armed, t.system_id), (Some(Mode::Loiter), false, Some(7)));
        assert!(t.is_up(now + Duration::from_millis(1_499)) && !t.is_up(now + LINK_TIMEOUT));
    }

    #[test]
    fn a_sensor_counts_where_it_is_present_and_enabled() {
        const PREARM: u32 = 0x1000_0000;
        const RECEIVER: u32 = 0x1_0000;
        let mut t = met();
        for (present, enabled, healthy, prearm, radio_control) in [
            (0, PREARM, PREARM, None, None),
            (PREARM, 0, PREARM, None, None),
            (PREARM | RECEIVER, PREARM | RECEIVER, RECEIVER, Some(false), Some(true)),
            (PREARM | RECEIVER, PREARM | RECEIVER, PREARM, Some(true), Some(false)),
        ] {
            let bits = MavSysStatusSensor::from_bits_truncate;
            let m = SYS_STATUS_DATA {
                onboard_control_sensors_present: bits(present),
                onboard_control_sensors_enabled: bits(enabled),
                onboard_control_sensors_health: bits(healthy),
                ..Default::default()
            };
            t.on_frame(Instant::ZERO, &frame(1, MavMessage::SYS_STATUS(m)));
            assert_eq!(t.sensors, Some(Sensors { prearm, radio_control }));
        }
    }

    #[test]
    fn where_the_motors_are_started_stays_when_they_run() {
        let mut t = met();
        let at = |lat| GLOBAL_POSITION_INT_DATA { lat, lon: -3_462_650, ..Default::default() };
        t.on_frame(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(at(394_825_940))));
        t.armed = true;
        t.on_frame(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(at(394_835_940))));
        assert_eq!(t.disarmed_position.map(|p| p.latitude_e7), Some(394_825_940));
    }

    #[test]
    fn a_position_of_zeros_is_no_position() {
        let mut t = met();
        let zero = GLOBAL_POSITION_INT_DATA::default();
        assert_eq!(
            t.on_frame(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(zero))),
            TelemetryEvent::Other
        );
        let real = GLOBAL_POSITION_INT_DATA {
            lat: 394_825_940,
            lon: -3_462_650,
            vx: 100,
            vz: -50,
            ..Default::default()
        };
        assert_eq!(
            t.on_frame(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(real.clone()))),
            TelemetryEvent::Position
        );
        assert_eq!(t.velocity_m_s, DVec3::new(0.0, 1.0, 0.5));
        // The same climb of ArduCopter 3.5, once it has said that it is that.
        t.version = Some(Version { major: 3, minor: 5, patch: 7 });
        let upward = GLOBAL_POSITION_INT_DATA { vz: 50, ..real };
        t.on_frame(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(upward)));
        assert_eq!(t.velocity_m_s, DVec3::new(0.0, 1.0, 0.5));
    }
}
