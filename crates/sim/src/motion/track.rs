//! The straight track of ArduCopter's waypoint navigation, 3.5 generation: an intermediate target
//! runs along the line from origin to destination, no farther ahead of the aircraft than a leash
//! (50 m at 10 m/s), and the position controller chases it.
//!
//! ```text
//! origin ────────●aircraft──────────◎target────────▶ destination
//!                └───── ≤ leash ────┘
//! ```
//!
//! Facts from stored copies of `AC_WPNav` of that generation: the target gains speed with twice the
//! acceleration limit, slows down by `v = sqrt(4·a·d)` before a destination it stops at (never below
//! 0.5 m/s), stays within `a/kP` of the aircraft's speed while that is slow, overruns a fast
//! destination by 2 m, and restarts with every destination, which is why a stream of positions
//! flies slowly.

use wingbeat_geo::DVec3;

use super::horizontal::LEASH_MIN_M;
use super::{NavParameters, bounded, sqrt3};

const FAST_OVERRUN_M: f64 = 2.0;
const TARGET_SPEED_MIN_M_S: f64 = 0.5;
/// Horizontal tracks shorter than this turn no nose (WPNAV_YAW_DIST_MIN).
const YAW_DISTANCE_MIN_M: f64 = 2.0;
/// The nose follows a target that is at least this part of the leash away.
const YAW_LEASH_PART_MIN: f64 = 0.134;

/// Leashes of the position controllers, which bound how far the target runs ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leashes {
    pub(super) horizontal_m: f64,
    pub(super) up_m: f64,
    pub(super) down_m: f64,
}

/// The track being flown.
#[derive(Clone, Debug)]
pub(super) struct Track {
    origin: DVec3,
    destination: DVec3,
    unit: DVec3,
    length_m: f64,
    fast: bool,
    /// How far along the track the target is.
    along_m: f64,
    target_speed_m_s: f64,
    slowing: bool,
    reached: bool,
    /// The next period does not raise the target's speed.
    fresh: bool,
    speed_m_s: f64,
    acceleration_m_s2: f64,
    leash_m: f64,
}

impl Track {
    pub(super) fn new(at: DVec3) -> Self {
        Self {
            origin: at,
            destination: at,
            unit: DVec3::ZERO,
            length_m: 0.0,
            fast: false,
            along_m: 0.0,
            target_speed_m_s: 0.0,
            slowing: false,
            reached: false,
            fresh: false,
            speed_m_s: 0.0,
            acceleration_m_s2: 0.0,
            leash_m: LEASH_MIN_M,
        }
    }

    /// A new line, its target at the origin, moving with the aircraft's present speed along it.
    pub(super) fn start(
        &mut self,
        origin: DVec3,
        destination: DVec3,
        fast: bool,
        velocity: DVec3,
        parameters: &NavParameters,
        leashes: Leashes,
    ) {
        let line = destination - origin;
        let length_m = sqrt3(line);
        *self = Self { origin, destination, fast, length_m, ..Self::new(origin) };
        if length_m > 1e-6 {
            self.unit = line / length_m;
        }
        self.set_limits(parameters, leashes);
        self.target_speed_m_s =
            bounded(velocity.dot(self.unit), 0.0, bounded(parameters.wpnav_speed_m_s, 0.0, 1e3));
    }

    /// A guided message began this line between two periods: the first one does not raise the target's
    /// speed yet (measured: a stream of positions flies slower than it would otherwise).
    pub(super) fn lose_first_period(&mut self) {
        self.fresh = true;
    }

    /// Limits along the line: those of the axis that binds first.
    fn set_limits(&mut self, parameters: &NavParameters, leashes: Leashes) {
        let horizontal = libm::sqrt(self.unit.x * self.unit.x + self.unit.y * self.unit.y).max(1e-9);
        let vertical = libm::fabs(self.unit.z).max(1e-9);
        let (speed_z, leash_z) = if self.unit.z >= 0.0 {
            (parameters.wpnav_speed_up_m_s, leashes.up_m)
        } else {
            (parameters.wpnav_speed_down_m_s, leashes.down_m)
        };
        let limit = |along: f64, z: f64, max| bounded((along / horizontal).min(z / vertical), 0.0, max);
        self.speed_m_s = limit(parameters.wpnav_speed_m_s, libm::fabs(speed_z), 1e3);
        self.acceleration_m_s2 =
            limit(parameters.wpnav_accel_m_s2, parameters.wpnav_accel_z_m_s2, 50.0).max(0.05);
        self.leash_m = limit(leashes.horizontal_m, leash_z, 1e4).max(1e-3);
    }

    /// Moves the target on; returns where it is.
    pub(super) fn advance(
        &mut self,
        position: DVec3,
        velocity: DVec3,
        parameters: &NavParameters,
        leashes: Leashes,
        dt_s: f64,
    ) -> DVec3 {
        self.set_limits(parameters, leashes);
        let from_origin = position - self.origin;
        let covered_m = from_origin.dot(self.unit);
        let off = from_origin - self.unit * covered_m;
        let off_horizontal_m = libm::sqrt(off.x * off.x + off.y * off.y);
        let leash_z_m = if off.z >= 0.0 { leashes.up_m } else { leashes.down_m };
        // The share of the leash that being off the track takes: hypotenuse and opposite side.
        let off_share = (libm::fabs(off.z) / leash_z_m).max(off_horizontal_m / leashes.horizontal_m);
        let slack_m =
            if off_share < 1.0 { self.leash_m * libm::sqrt(1.0 - off_share * off_share) } else { 0.0 };
        let along_max_m = covered_m + slack_m;
        let held = self.along_m > along_max_m;
        self.pace(velocity.dot(self.unit), held, dt_s);
        if !held {
            self.along_m += self.target_speed_m_s * dt_s;
            if self.along_m > along_max_m {
                self.along_m = along_max_m;
                self.target_speed_m_s =
                    (self.target_speed_m_s - 2.0 * self.acceleration_m_s2 * dt_s).max(0.0);
            }
        }
        let end_m = if self.fast { self.length_m + FAST_OVERRUN_M } else { self.length_m };
        self.along_m = bounded(self.along_m, 0.0, end_m);
        if self.along_m >= self.length_m
            && (self.fast || sqrt3(position - self.destination) <= parameters.wpnav_radius_m.max(0.1))
        {
            self.reached = true;
        }
        self.origin + self.unit * self.along_m
    }

    /// The target's speed, from its own limits and the aircraft's speed along the track.
    fn pace(&mut self, speed_along_m_s: f64, held: bool, dt_s: f64) {
        // Position gain 1: the speed where the controller's response turns from linear to root.
        let linear_m_s = self.acceleration_m_s2;
        if speed_along_m_s < -linear_m_s {
            // Flying away from the destination: the target waits.
            self.target_speed_m_s = 0.0;
            return;
        }
        if !held && !core::mem::take(&mut self.fresh) {
            self.target_speed_m_s += 2.0 * self.acceleration_m_s2 * dt_s;
        }
        self.target_speed_m_s = bounded(self.target_speed_m_s, 0.0, self.speed_m_s);
        if !self.fast {
            let left_m = self.length_m - self.along_m;
            let slow_down_m = self.speed_m_s * self.speed_m_s / (4.0 * self.acceleration_m_s2);
            self.slowing |= left_m <= slow_down_m;
            if self.slowing {
                let slow = libm::sqrt(4.0 * self.acceleration_m_s2 * left_m.max(0.0));
                self.target_speed_m_s = self.target_speed_m_s.min(slow.max(TARGET_SPEED_MIN_M_S));
            }
        }
        if libm::fabs(speed_along_m_s) < linear_m_s {
            self.target_speed_m_s =
                bounded(self.target_speed_m_s, speed_along_m_s - linear_m_s, speed_along_m_s + linear_m_s);
        }
    }

    /// The heading towards the target, `None` where the track or the leash is too short to define it.
    pub(super) fn heading(&self, position: DVec3, leash_m: f64) -> Option<f64> {
        let line = self.destination - self.origin;
        if libm::sqrt(line.x * line.x + line.y * line.y) < YAW_DISTANCE_MIN_M {
            return None;
        }
        if leash_m < YAW_DISTANCE_MIN_M {
            return Some(libm::atan2(line.x, line.y));
        }
        let ahead = self.origin + self.unit * self.along_m - position;
        let distance_m = libm::sqrt(ahead.x * ahead.x + ahead.y * ahead.y);
        (distance_m > YAW_DISTANCE_MIN_M.min(leash_m * YAW_LEASH_PART_MIN))
            .then(|| libm::atan2(ahead.x, ahead.y))
    }

    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// Where the intermediate target is now: the next leg starts here.
    pub(super) fn target(&self) -> DVec3 {
        self.origin + self.unit * self.along_m
    }
}
