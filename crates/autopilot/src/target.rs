//! A place to fly to: SET_POSITION_TARGET_GLOBAL_INT with the position only, sent once and proved by
//! the autopilot's own report of where it flies to (POSITION_TARGET_GLOBAL_INT, or the way to it in
//! NAV_CONTROLLER_OUTPUT).
//!
//! Once, because ArduCopter 3.5.7 begins its track anew at every such message: sent at 4 Hz the
//! aircraft never reaches its speed.

// MAVLink deprecates the _INT frame names, which 3.5.7 needs.
#![allow(deprecated)]

use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};

use crate::dialect::{MavFrame, MavMessage, PositionTargetTypemask, SET_POSITION_TARGET_GLOBAL_INT_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

/// The way is reported in whole metres, from where the aircraft was a moment before or after its last
/// position report.
const SAME_WAY_M: f64 = 5.0;
/// Below this a bearing says nothing.
const BEARING_FROM_M: f64 = 20.0;
/// The bearing is reported in whole degrees, from a moment before or after.
const SAME_BEARING_RAD: f64 = 0.25;
/// The report may come a little rounded.
const SAME_PLACE_M: f64 = 1.0;

/// A place and a height above home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Height above home, millimetre.
    pub height_mm: i32,
}

/// Wants the autopilot to fly to a place.
#[derive(Clone, Copy, Debug)]
pub struct FlyTo {
    place: Place,
    asked_at: Option<Instant>,
    retry: Retry,
}

impl FlyTo {
    /// Tries five times, two seconds apart.
    pub fn new(now: Instant, place: Place) -> Self {
        Self { place, asked_at: None, retry: Retry::new(now, Duration::from_secs(2), 5) }
    }
    /// When it wants polling.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    fn is_proved(&self, telemetry: &Telemetry) -> bool {
        let there = Position {
            latitude_e7: self.place.latitude_e7,
            longitude_e7: self.place.longitude_e7,
            altitude_mm: 0,
        };
        let near = |latitude_e7, longitude_e7| {
            let local: DVec3 =
                Frame::new(there).to_local(Position { latitude_e7, longitude_e7, altitude_mm: 0 });
            local.truncate().length() < SAME_PLACE_M
        };
        let reported = telemetry.target.is_some_and(|t| {
            self.asked_at.is_some_and(|asked| t.at > asked) && near(t.latitude_e7, t.longitude_e7)
        });
        // An aircraft that is there already has nothing to report.
        let there_already = self.asked_at.is_some()
            && telemetry.position.is_some_and(|p| near(p.latitude_e7, p.longitude_e7))
            && (telemetry.height_m - f64::from(self.place.height_mm) * 1e-3).abs() < SAME_PLACE_M;
        reported || there_already || self.way_is_ours(telemetry, there)
    }

    /// Whether the way that the autopilot reports is the way to the place. 3.5.7 tells no more: it does
    /// not know POSITION_TARGET_GLOBAL_INT.
    fn way_is_ours(&self, telemetry: &Telemetry, there: Position) -> bool {
        let (Some(way), Some(here), Some(asked)) = (telemetry.way, telemetry.position, self.asked_at) else {
            return false;
        };
        let ours = Frame::new(here).to_local(there).truncate();
        let distance_m = ours.length();
        let same_length = (way.distance_m - distance_m).abs() < SAME_WAY_M.max(distance_m * 0.05);
        let turn = heading_rad(DVec2::ZERO, ours) - way.bearing_rad;
        let same_bearing = libm::cos(turn) > libm::cos(SAME_BEARING_RAD);
        way.at > asked && same_length && (same_bearing || distance_m < BEARING_FROM_M)
    }
    /// Sends when due; done when the autopilot reports this place as its target.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        if self.is_proved(telemetry) {
            return Progress::Done;
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => {}
            Ok(true) => {
                let position_only = PositionTargetTypemask::all()
                    & !(PositionTargetTypemask::POSITION_TARGET_TYPEMASK_X_IGNORE
                        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_Y_IGNORE
                        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_Z_IGNORE
                        | PositionTargetTypemask::POSITION_TARGET_TYPEMASK_FORCE_SET);
                let _ = transmit.send(&MavMessage::SET_POSITION_TARGET_GLOBAL_INT(
                    SET_POSITION_TARGET_GLOBAL_INT_DATA {
                        lat_int: self.place.latitude_e7,
                        lon_int: self.place.longitude_e7,
                        alt: self.place.height_mm as f32 * 1e-3,
                        type_mask: position_only,
                        target_system: transmit.system_id,
                        target_component: AUTOPILOT_COMPONENT_ID,
                        coordinate_frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT,
                        time_boot_ms: now.as_millis() as u32,
                        vx: 0.0,
                        vy: 0.0,
                        vz: 0.0,
                        afx: 0.0,
                        afy: 0.0,
                        afz: 0.0,
                        yaw: 0.0,
                        yaw_rate: 0.0,
                    },
                ));
                self.asked_at = Some(now);
            }
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Failure;
    use crate::job::testing::sent;
    use crate::telemetry::{TargetReport, WayReport};

    const PLACE: Place = Place { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

    #[test]
    fn sent_once_when_the_report_agrees() {
        let mut job = FlyTo::new(Instant::ZERO, PLACE);
        let mut telemetry = Telemetry::default();
        let messages = sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let [MavMessage::SET_POSITION_TARGET_GLOBAL_INT(m)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(
            (m.lat_int, m.lon_int, m.alt, m.type_mask.bits()),
            (394_825_940, -3_462_650, 20.0, 0x0df8)
        );
        // A report of the place before, and one of long ago, prove nothing.
        let report = |latitude_e7, ms| {
            Some(TargetReport { latitude_e7, longitude_e7: -3_462_650, at: Instant::from_millis(ms) })
        };
        for (target, expected) in [
            (report(394_825_940, 0), Progress::Pending),
            (report(394_835_940, 500), Progress::Pending),
            (report(394_825_941, 500), Progress::Done),
        ] {
            telemetry.target = target;
            sent(|t| assert_eq!(job.poll(Instant::from_millis(600), &telemetry, t), expected));
        }
    }

    #[test]
    fn the_way_proves_it_where_the_target_is_not_told() {
        let mut job = FlyTo::new(Instant::ZERO, PLACE);
        // 100 m south of the place.
        let here = Position { latitude_e7: 394_816_933, longitude_e7: -3_462_650, altitude_mm: 0 };
        let mut telemetry = Telemetry { position: Some(here), ..Telemetry::default() };
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let way = |distance_m, degrees: f64, ms| {
            Some(WayReport { distance_m, bearing_rad: degrees.to_radians(), at: Instant::from_millis(ms) })
        };
        for (report, expected) in [
            (way(0.0, 0.0, 500), Progress::Pending),
            (way(100.0, 90.0, 500), Progress::Pending),
            (way(100.0, -2.0, 0), Progress::Pending),
            (way(98.0, -2.0, 500), Progress::Done),
        ] {
            telemetry.way = report;
            sent(|t| assert_eq!(job.poll(Instant::from_millis(600), &telemetry, t), expected));
        }
    }

    #[test]
    fn a_deaf_autopilot_is_a_failure() {
        let mut job = FlyTo::new(Instant::ZERO, PLACE);
        let (mut frames, mut progress) = (0, Progress::Pending);
        for s in 0..=10 {
            frames += sent(|t| progress = job.poll(Instant::from_secs(s), &Telemetry::default(), t)).len();
        }
        assert_eq!((frames, progress), (5, Progress::Failed(Failure::Silent { tries: 5 })));
    }
}
