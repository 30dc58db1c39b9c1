//! Another aircraft over the take-off site. It cannot stop in time for an aircraft that climbs into
//! its path, and a climbing aircraft judges no other before it is up.

use wingbeat_geo::{DVec3, Frame};
use wingbeat_wire::VehicleId;

use super::Mbcap;
use super::decide::GROUND_M;
use super::neighbours::Neighbour;

/// From *Start* until every aircraft that flies there has stopped: 3 s to the beacons of armed
/// motors, a check, and a braking from 10 m/s, seconds.
const CLIMBS_WITHIN_S: f64 = 8.0;

impl Mbcap {
    /// Returns an aircraft that is over the take-off site, or comes over it while this one climbs.
    pub(super) fn flies_over(&self) -> Option<VehicleId> {
        if !self.config.avoids_to_the_end {
            return None;
        }
        let now = self.motion.measured_at;
        let frame = Frame::new(self.flight.telemetry()?.position);
        let clear_m = self.config.safe_distance_m();
        let is_over = |n: &&Neighbour| {
            let v_m_s = f64::from(n.beacon.speed_cm_s) * 1e-2;
            if n.at.z < GROUND_M && v_m_s < self.config.prediction.moving_m_s {
                // It is on the ground, too.
                return false;
            }
            let way = self.neighbours.way_of(now, n, &frame, self.receiver());
            n.at.truncate().length() < clear_m
                || way
                    .is_some_and(|way| way.may_be_near(DVec3::ZERO, CLIMBS_WITHIN_S, clear_m, f64::INFINITY))
        };
        self.valid_neighbours(now).find(is_over).map(|n| n.id)
    }
}
