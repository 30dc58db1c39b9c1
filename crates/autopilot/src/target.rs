//! A position to fly to: SET_POSITION_TARGET_GLOBAL_INT with the position only, sent once and proved by
//! the autopilot's own report of its target (POSITION_TARGET_GLOBAL_INT, or distance and bearing in
//! NAV_CONTROLLER_OUTPUT).
//!
//! Once, because ArduCopter 3.5.7 restarts its track at every such message: sent at 4 Hz the
//! aircraft never reaches its speed.

// MAVLink deprecates the _INT frame names, which 3.5.7 needs.
#![allow(deprecated)]

use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};

use crate::dialect::{MavFrame, MavMessage, PositionTargetTypemask, SET_POSITION_TARGET_GLOBAL_INT_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

/// The distance is reported in whole metres, from where the aircraft was a moment before or after its last
/// position report.
const SAME_DISTANCE_M: f64 = 5.0;
/// Below this distance the bearing is not compared.
const BEARING_FROM_M: f64 = 20.0;
/// The bearing is reported in whole degrees, from a moment before or after.
const SAME_BEARING_RAD: f64 = 0.25;
/// The report may be rounded.
const SAME_POSITION_M: f64 = 1.0;

/// A position with its height above home: MAV_FRAME_GLOBAL_RELATIVE_ALT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativePosition {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Height above home, millimetre.
    pub height_mm: i32,
}

/// Makes the autopilot fly to a position.
#[derive(Clone, Copy, Debug)]
pub struct FlyTo {
    position: RelativePosition,
    requested_at: Option<Instant>,
    retry: Retry,
}

impl FlyTo {
    /// Tries five times, two seconds apart.
    pub fn new(now: Instant, position: RelativePosition) -> Self {
        Self { position, requested_at: None, retry: Retry::new(now, Duration::from_secs(2), 5) }
    }
    /// When [`FlyTo::poll`] is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    fn is_proved(&self, telemetry: &Telemetry) -> bool {
        let there = Position {
            latitude_e7: self.position.latitude_e7,
            longitude_e7: self.position.longitude_e7,
            altitude_mm: 0,
        };
        let near = |latitude_e7, longitude_e7| {
            let local: DVec3 =
                Frame::new(there).to_local(Position { latitude_e7, longitude_e7, altitude_mm: 0 });
            local.truncate().length() < SAME_POSITION_M
        };
        let reported = telemetry.target.is_some_and(|t| {
            self.requested_at.is_some_and(|requested_at| t.at > requested_at)
                && near(t.latitude_e7, t.longitude_e7)
        });
        // An aircraft that is there already reports no target.
        let there_already = self.requested_at.is_some()
            && telemetry.position.is_some_and(|p| near(p.latitude_e7, p.longitude_e7))
            && (telemetry.height_m - f64::from(self.position.height_mm) * 1e-3).abs() < SAME_POSITION_M;
        reported || there_already || self.bearing_agrees(telemetry, there)
    }

    /// Whether distance and bearing that the autopilot reports lead to the target. 3.5.7 reports no more: it
    /// does not send POSITION_TARGET_GLOBAL_INT.
    fn bearing_agrees(&self, telemetry: &Telemetry, there: Position) -> bool {
        let (Some(report), Some(here), Some(requested_at)) =
            (telemetry.target_bearing, telemetry.position, self.requested_at)
        else {
            return false;
        };
        let ours = Frame::new(here).to_local(there).truncate();
        let distance_m = ours.length();
        let same_length = (report.distance_m - distance_m).abs() < SAME_DISTANCE_M.max(distance_m * 0.05);
        let difference_rad = heading_rad(DVec2::ZERO, ours) - report.bearing_rad;
        let same_bearing = libm::cos(difference_rad) > libm::cos(SAME_BEARING_RAD);
        report.at > requested_at && same_length && (same_bearing || distance_m < BEARING_FROM_M)
    }
    /// Sends when due; done when the autopilot reports this target.
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
                        lat_int: self.position.latitude_e7,
                        lon_int: self.position.longitude_e7,
                        alt: self.position.height_mm as f32 * 1e-3,
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
                self.requested_at = Some(now);
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
    use crate::telemetry::{BearingReport, TargetReport};

    const POSITION: RelativePosition =
        RelativePosition { latitude_e7: 394_825_940, longitude_e7: -3_462_650, height_mm: 20_000 };

    #[test]
    fn sent_once_when_the_report_agrees() {
        let mut job = FlyTo::new(Instant::ZERO, POSITION);
        let mut telemetry = Telemetry::default();
        let messages = sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let [MavMessage::SET_POSITION_TARGET_GLOBAL_INT(m)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(
            (m.lat_int, m.lon_int, m.alt, m.type_mask.bits()),
            (394_825_940, -3_462_650, 20.0, 0x0df8)
        );
        // A report of another target, and one from before the request, prove nothing.
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
    fn distance_and_bearing_prove_it_where_the_target_is_not_reported() {
        let mut job = FlyTo::new(Instant::ZERO, POSITION);
        // 100 m south of the target.
        let here = Position { latitude_e7: 394_816_933, longitude_e7: -3_462_650, altitude_mm: 0 };
        let mut telemetry = Telemetry { position: Some(here), ..Telemetry::default() };
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &telemetry, t), Progress::Pending));
        let bearing = |distance_m, degrees: f64, ms| {
            Some(BearingReport {
                distance_m,
                bearing_rad: degrees.to_radians(),
                at: Instant::from_millis(ms),
            })
        };
        for (report, expected) in [
            (bearing(0.0, 0.0, 500), Progress::Pending),
            (bearing(100.0, 90.0, 500), Progress::Pending),
            (bearing(100.0, -2.0, 0), Progress::Pending),
            (bearing(98.0, -2.0, 500), Progress::Done),
        ] {
            telemetry.target_bearing = report;
            sent(|t| assert_eq!(job.poll(Instant::from_millis(600), &telemetry, t), expected));
        }
    }

    #[test]
    fn an_autopilot_that_does_not_answer_is_a_failure() {
        let mut job = FlyTo::new(Instant::ZERO, POSITION);
        let (mut frames, mut progress) = (0, Progress::Pending);
        for s in 0..=10 {
            frames += sent(|t| progress = job.poll(Instant::from_secs(s), &Telemetry::default(), t)).len();
        }
        assert_eq!((frames, progress), (5, Progress::Failed(Failure::Silent { tries: 5 })));
    }
}
