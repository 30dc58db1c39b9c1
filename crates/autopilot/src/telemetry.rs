//! What the autopilot reported last.

use wingbeat_geo::{DVec3, Duration, Instant, Position};

use crate::codec::{Frame, text};
use crate::copter::Mode;
use crate::dialect::{EkfStatusFlags, MavAutopilot, MavMessage, MavModeFlag, MavSeverity, MavType};
use crate::job::AUTOPILOT_COMPONENT_ID;

/// Silence after which the link to the autopilot counts as lost. Position reports come at 4 Hz and
/// heartbeats at 1 Hz: one lost heartbeat alone is not a lost link.
pub const LINK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Version of the autopilot's firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major.
    pub major: u8,
    /// Minor.
    pub minor: u8,
    /// Patch.
    pub patch: u8,
}

/// A place that the autopilot says it flies to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetReport {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// When it said so.
    pub at: Instant,
}

/// How far and in which direction the autopilot says its target is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WayReport {
    /// Distance over the ground, metres.
    pub distance_m: f64,
    /// Bearing, radians clockwise from north.
    pub bearing_rad: f64,
    /// When it said so.
    pub at: Instant,
}

/// What was heard, each with the time where age matters.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    /// The autopilot's system id, from its first heartbeat.
    pub system_id: Option<u8>,
    /// Last frame of any kind from it.
    pub frame_at: Option<Instant>,
    /// Last heartbeat.
    pub heartbeat_at: Option<Instant>,
    /// What kind of autopilot it is: true for ArduPilot on a multicopter, false for anything else.
    pub is_copter: Option<bool>,
    /// `custom_mode` of the last heartbeat.
    pub mode_number: Option<u32>,
    /// Motors armed.
    pub armed: bool,
    /// Where it is.
    pub position: Option<Position>,
    /// When that was.
    pub position_at: Option<Instant>,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Heading, radians clockwise from north.
    pub heading_rad: f64,
    /// Battery volts.
    pub voltage_v: Option<f64>,
    /// Battery amperes.
    pub current_a: Option<f64>,
    /// Battery, per cent.
    pub remaining_percent: Option<u8>,
    /// GNSS fix type (3 = three-dimensional).
    pub fix_type: Option<u8>,
    /// Satellites in use.
    pub satellites: Option<u8>,
    /// The EKF knows the absolute horizontal position.
    pub ekf_position: Option<bool>,
    /// When the EKF reported last.
    pub ekf_at: Option<Instant>,
    /// Where it says it flies to.
    pub target: Option<TargetReport>,
    /// How far away it says that is: all that 3.5.7 tells of its target.
    pub way: Option<WayReport>,
    /// Firmware.
    pub version: Option<Version>,
}

/// What a frame brought that somebody must act on.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A position report.
    Position,
    /// A heartbeat; `changed` if the mode is another than before.
    Heartbeat {
        /// The mode number before, if it changed.
        changed_from: Option<u32>,
    },
    /// The autopilot says something to people.
    StatusText {
        /// Error or worse.
        severe: bool,
        /// What.
        text: heapless::String<50>,
    },
    /// Anything else.
    Other,
}

impl Telemetry {
    /// Whether the frame comes from the autopilot that we serve. The first heartbeat of an autopilot
    /// decides which that is; ground stations and gimbals on the same line do not.
    fn is_from_autopilot(&self, frame: &Frame) -> bool {
        frame.header.component_id == AUTOPILOT_COMPONENT_ID
            && self.system_id.is_none_or(|id| u32::from(id) == frame.header.system_id)
    }

    /// Writes a frame into the books.
    pub fn absorb(&mut self, now: Instant, frame: &Frame) -> Event {
        if !self.is_from_autopilot(frame) {
            return Event::Other;
        }
        self.frame_at = Some(now);
        match &frame.message {
            MavMessage::HEARTBEAT(m) => {
                self.system_id = u8::try_from(frame.header.system_id).ok();
                let copter = matches!(
                    m.mavtype,
                    MavType::MAV_TYPE_QUADROTOR
                        | MavType::MAV_TYPE_HEXAROTOR
                        | MavType::MAV_TYPE_OCTOROTOR
                        | MavType::MAV_TYPE_TRICOPTER
                        | MavType::MAV_TYPE_COAXIAL
                        | MavType::MAV_TYPE_DODECAROTOR
                        | MavType::MAV_TYPE_HELICOPTER
                );
                self.is_copter = Some(copter && m.autopilot == MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA);
                self.heartbeat_at = Some(now);
                self.armed = m.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
                let before = self.mode_number.replace(m.custom_mode);
                Event::Heartbeat { changed_from: before.filter(|&b| b != m.custom_mode) }
            }
            MavMessage::GLOBAL_POSITION_INT(m) => {
                let position = Position { latitude_e7: m.lat, longitude_e7: m.lon, altitude_mm: m.alt };
                // ArduCopter reports 0, 0 before it knows where it is.
                if (m.lat == 0 && m.lon == 0) || !position.is_on_earth() {
                    return Event::Other;
                }
                self.position = Some(position);
                self.position_at = Some(now);
                self.height_m = f64::from(m.relative_alt) * 1e-3;
                self.velocity_m_s =
                    DVec3::new(f64::from(m.vy) * 1e-2, f64::from(m.vx) * 1e-2, f64::from(m.vz) * -1e-2);
                if m.hdg != u16::MAX {
                    self.heading_rad = (f64::from(m.hdg) * 1e-2).to_radians();
                }
                Event::Position
            }
            MavMessage::SYS_STATUS(m) => {
                self.voltage_v = (m.voltage_battery != u16::MAX).then(|| f64::from(m.voltage_battery) * 1e-3);
                self.current_a = (m.current_battery >= 0).then(|| f64::from(m.current_battery) * 1e-2);
                self.remaining_percent = u8::try_from(m.battery_remaining).ok();
                Event::Other
            }
            MavMessage::GPS_RAW_INT(m) => {
                self.fix_type = Some(m.fix_type as u8);
                self.satellites = (m.satellites_visible != u8::MAX).then_some(m.satellites_visible);
                Event::Other
            }
            MavMessage::EKF_STATUS_REPORT(m) => {
                self.ekf_position = Some(m.flags.contains(EkfStatusFlags::EKF_POS_HORIZ_ABS));
                self.ekf_at = Some(now);
                Event::Other
            }
            MavMessage::POSITION_TARGET_GLOBAL_INT(m) => {
                self.target = Some(TargetReport { latitude_e7: m.lat_int, longitude_e7: m.lon_int, at: now });
                Event::Other
            }
            MavMessage::NAV_CONTROLLER_OUTPUT(m) => {
                self.way = Some(WayReport {
                    distance_m: f64::from(m.wp_dist),
                    bearing_rad: f64::from(m.target_bearing).to_radians(),
                    at: now,
                });
                Event::Other
            }
            MavMessage::AUTOPILOT_VERSION(m) => {
                let [_, patch, minor, major] = m.flight_sw_version.to_le_bytes();
                self.version = Some(Version { major, minor, patch });
                Event::Other
            }
            MavMessage::STATUSTEXT(m) => {
                let mut line = heapless::String::new();
                // A field of 50 bytes fits 50 bytes.
                let _ = line.push_str(text(&*m.text));
                let severe = matches!(
                    m.severity,
                    MavSeverity::MAV_SEVERITY_EMERGENCY
                        | MavSeverity::MAV_SEVERITY_ALERT
                        | MavSeverity::MAV_SEVERITY_CRITICAL
                        | MavSeverity::MAV_SEVERITY_ERROR
                );
                Event::StatusText { severe, text: line }
            }
            _ => Event::Other,
        }
    }

    /// The mode, if it is one that Wingbeat knows.
    pub fn mode(&self) -> Option<Mode> {
        self.mode_number.and_then(Mode::from_number)
    }

    /// Whether the autopilot was heard lately.
    pub fn is_up(&self, now: Instant) -> bool {
        self.frame_at.is_some_and(|at| now.since(at) < LINK_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::MavHeader;
    use crate::dialect::{GLOBAL_POSITION_INT_DATA, HEARTBEAT_DATA};

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

    #[test]
    fn a_mode_change_is_an_event_and_other_components_are_not_the_autopilot() {
        let mut t = Telemetry::default();
        let now = Instant::from_secs(1);
        assert_eq!(t.absorb(now, &frame(190, heartbeat(Mode::Auto))), Event::Other);
        assert_eq!(
            t.absorb(now, &frame(1, heartbeat(Mode::Guided))),
            Event::Heartbeat { changed_from: None }
        );
        let changed = Event::Heartbeat { changed_from: Some(Mode::Guided.number()) };
        assert_eq!(t.absorb(now, &frame(1, heartbeat(Mode::Loiter))), changed);
        assert_eq!((t.mode(), t.armed, t.system_id), (Some(Mode::Loiter), false, Some(7)));
        assert!(t.is_up(now + Duration::from_millis(1_499)) && !t.is_up(now + LINK_TIMEOUT));
    }

    #[test]
    fn a_position_of_zeros_is_no_position() {
        let mut t = Telemetry::default();
        let zero = GLOBAL_POSITION_INT_DATA::default();
        assert_eq!(t.absorb(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(zero))), Event::Other);
        let real = GLOBAL_POSITION_INT_DATA {
            lat: 394_825_940,
            lon: -3_462_650,
            vx: 100,
            vz: -50,
            ..Default::default()
        };
        assert_eq!(
            t.absorb(Instant::ZERO, &frame(1, MavMessage::GLOBAL_POSITION_INT(real))),
            Event::Position
        );
        assert_eq!(t.velocity_m_s, DVec3::new(0.0, 1.0, 0.5));
    }
}
