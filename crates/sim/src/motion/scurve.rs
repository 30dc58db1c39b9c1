//! One straight leg of 4.x navigation as a time law: from rest to a cruise speed and back to rest with
//! bounded speed, acceleration, jerk and snap (an S-curve).
//!
//! ```text
//! jerk  ╭─╮                            The jerk rises and falls as a raised cosine, so that the snap
//!       │ ╰──╮      ╭──╯ ...          is bounded too. The stretch after the cruise mirrors the one
//! accel    ╭────╮                     before it.
//! ```
//!
//! A ramp to the acceleration `a` at the jerk `j` lasts `a/j + t_j`, where `t_j` is the rise time of the
//! jerk; a stretch of two ramps and `t_a` seconds at full acceleration gains `a·(t_r + t_a)` and covers
//! half that speed times its duration. These two relations give every time in closed form.

use core::f64::consts::PI;

use wingbeat_geo::DVec3;

/// Limits along the leg.
#[derive(Clone, Copy, Debug)]
pub(super) struct LegLimits {
    pub(super) speed_m_s: f64,
    pub(super) acceleration_m_s2: f64,
    pub(super) jerk_m_s3: f64,
    pub(super) snap_m_s4: f64,
}

/// Motion since a point, in space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Motion {
    pub(super) position: DVec3,
    pub(super) velocity: DVec3,
    pub(super) acceleration: DVec3,
}

impl Motion {
    pub(super) fn add(&mut self, other: Self) {
        self.position += other.position;
        self.velocity += other.velocity;
        self.acceleration += other.acceleration;
    }
}

/// Distance, speed and acceleration along the leg.
#[derive(Clone, Copy, Debug)]
struct Along(f64, f64, f64);

/// A leg and how far in time it has been flown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    unit: DVec3,
    length_m: f64,
    jerk_m_s3: f64,
    /// Rise time of the jerk, time at full jerk, time at full acceleration.
    rise_s: f64,
    jerk_s: f64,
    full_s: f64,
    cruise_s: f64,
    speed_m_s: f64,
    elapsed_s: f64,
}

impl Leg {
    /// A leg along `line`.
    pub(super) fn new(line: DVec3, limits: LegLimits) -> Self {
        let length_m = super::sqrt3(line);
        if length_m < 1e-6 {
            return Self {
                unit: DVec3::ZERO,
                length_m: 0.0,
                jerk_m_s3: 0.0,
                rise_s: 0.0,
                jerk_s: 0.0,
                full_s: 0.0,
                cruise_s: 0.0,
                speed_m_s: 0.0,
                elapsed_s: 0.0,
            };
        }
        let LegLimits { speed_m_s, acceleration_m_s2, jerk_m_s3: j, snap_m_s4: s } = limits;
        let half_m = 0.5 * length_m;
        let rise_s = PI * j / (2.0 * s);
        // The largest acceleration that speed and half the length leave room for, without any time at
        // full acceleration: first as if the full jerk is reached, then as if it is not.
        let by_speed = 0.5 * j * (libm::sqrt(rise_s * rise_s + 4.0 * speed_m_s / j) - rise_s);
        let by_length = j * (ramp_for_length(half_m / j, rise_s) - rise_s);
        let mut a = acceleration_m_s2.min(by_speed).min(by_length);
        let (mut jerk, mut rise) = (j, rise_s);
        if a < j * rise_s {
            let by_speed = libm::cbrt(speed_m_s * speed_m_s * s / (2.0 * PI));
            let by_length = libm::sqrt(half_m * s / (2.0 * PI));
            a = acceleration_m_s2.min(by_speed).min(by_length);
            rise = libm::sqrt(PI * a / (2.0 * s));
            jerk = a / rise;
        }
        let jerk_s = (a / jerk - rise).max(0.0);
        let ramp_s = 2.0 * rise + jerk_s;
        // Time at full acceleration: until the speed, or until half the length.
        let by_speed = speed_m_s / a - ramp_s;
        let by_length = 0.5 * (libm::sqrt(ramp_s * ramp_s + 8.0 * half_m / a) - 3.0 * ramp_s);
        let full_s = by_speed.min(by_length).max(0.0);
        let reached_m_s = a * (ramp_s + full_s);
        let stretch_m = 0.5 * reached_m_s * (2.0 * ramp_s + full_s);
        let cruise_s = ((length_m - 2.0 * stretch_m) / reached_m_s).max(0.0);
        Self {
            unit: line / length_m,
            length_m,
            jerk_m_s3: jerk,
            rise_s: rise,
            jerk_s,
            full_s,
            cruise_s,
            speed_m_s: reached_m_s,
            elapsed_s: 0.0,
        }
    }

    fn ramp_s(&self) -> f64 {
        2.0 * self.rise_s + self.jerk_s
    }

    /// How long the aircraft gains speed.
    fn stretch_s(&self) -> f64 {
        2.0 * self.ramp_s() + self.full_s
    }

    /// How long the whole leg lasts.
    pub(super) fn duration_s(&self) -> f64 {
        2.0 * self.stretch_s() + self.cruise_s
    }

    pub(super) fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    pub(super) fn remaining_s(&self) -> f64 {
        (self.duration_s() - self.elapsed_s).max(0.0)
    }

    pub(super) fn finished(&self) -> bool {
        self.elapsed_s >= self.duration_s()
    }

    /// When it begins to slow down.
    pub(super) fn brakes_at_s(&self) -> f64 {
        self.stretch_s() + self.cruise_s
    }

    /// The speed that it reaches.
    pub(super) fn speed_m_s(&self) -> f64 {
        self.speed_m_s
    }

    pub(super) fn pass(&mut self, dt_s: f64) {
        self.elapsed_s = (self.elapsed_s + dt_s).min(self.duration_s());
    }

    /// The motion now, from the leg's start.
    pub(super) fn now(&self) -> Motion {
        self.at(self.elapsed_s)
    }

    /// The motion now, as seen from the leg's end.
    pub(super) fn now_from_end(&self) -> Motion {
        self.at_from_end(self.elapsed_s)
    }

    /// The motion at a time, as seen from the leg's end.
    pub(super) fn at_from_end(&self, time_s: f64) -> Motion {
        let then = self.at(time_s);
        Motion { position: then.position - self.unit * self.length_m, ..then }
    }

    /// The motion at a time, from the leg's start.
    pub(super) fn at(&self, time_s: f64) -> Motion {
        let Along(position, velocity, acceleration) = self.along(time_s);
        Motion {
            position: self.unit * position,
            velocity: self.unit * velocity,
            acceleration: self.unit * acceleration,
        }
    }

    fn along(&self, time_s: f64) -> Along {
        if time_s <= 0.0 || self.length_m <= 0.0 {
            return Along(0.0, 0.0, 0.0);
        }
        let left_s = self.duration_s() - time_s;
        if left_s <= 0.0 {
            return Along(self.length_m, 0.0, 0.0);
        }
        let stretch_s = self.stretch_s();
        if time_s < stretch_s {
            self.gaining(time_s)
        } else if left_s < stretch_s {
            let Along(position, velocity, acceleration) = self.gaining(left_s);
            Along(self.length_m - position, velocity, -acceleration)
        } else {
            let stretch_m = 0.5 * self.speed_m_s * stretch_s;
            Along(stretch_m + self.speed_m_s * (time_s - stretch_s), self.speed_m_s, 0.0)
        }
    }

    /// The stretch that gains speed.
    fn gaining(&self, time_s: f64) -> Along {
        let ramp_s = self.ramp_s();
        if time_s <= ramp_s {
            return self.ramp(time_s);
        }
        let stretch_s = self.stretch_s();
        let left_s = stretch_s - time_s;
        if left_s < ramp_s {
            // The second ramp is the first one backwards.
            let Along(position, velocity, acceleration) = self.ramp(left_s);
            let to_come_m = self.speed_m_s * left_s - position;
            return Along(
                0.5 * self.speed_m_s * stretch_s - to_come_m,
                self.speed_m_s - velocity,
                acceleration,
            );
        }
        let Along(position, velocity, acceleration) = self.ramp(ramp_s);
        let t = time_s - ramp_s;
        Along(position + velocity * t + 0.5 * acceleration * t * t, velocity + acceleration * t, acceleration)
    }

    /// From rest to full acceleration.
    fn ramp(&self, time_s: f64) -> Along {
        let (half_jerk, rise_s) = (0.5 * self.jerk_m_s3, self.rise_s);
        let beta = PI / rise_s;
        let rising = |t: f64| {
            let (sin, cos) = libm::sincos(beta * t);
            Along(
                half_jerk * (t * t * t / 6.0 + (sin / beta - t) / (beta * beta)),
                half_jerk * (0.5 * t * t + (cos - 1.0) / (beta * beta)),
                half_jerk * (t - sin / beta),
            )
        };
        if time_s <= rise_s {
            return rising(time_s);
        }
        // At the top of the rise sine and cosine are 0 and -1.
        let Along(s1, v1, a1) = Along(
            half_jerk * (rise_s * rise_s * rise_s / 6.0 - rise_s / (beta * beta)),
            half_jerk * (0.5 * rise_s * rise_s - 2.0 / (beta * beta)),
            half_jerk * rise_s,
        );
        let t = (time_s - rise_s).min(self.jerk_s);
        let jerk = self.jerk_m_s3;
        let full = Along(
            s1 + v1 * t + 0.5 * a1 * t * t + jerk * t * t * t / 6.0,
            v1 + a1 * t + 0.5 * jerk * t * t,
            a1 + jerk * t,
        );
        let t = time_s - rise_s - self.jerk_s;
        if t <= 0.0 {
            return full;
        }
        let Along(s2, v2, a2) = full;
        let (sin, cos) = libm::sincos(beta * t);
        Along(
            s2 + v2 * t + 0.5 * a2 * t * t + half_jerk * (t * t * t / 6.0 + (t - sin / beta) / (beta * beta)),
            v2 + a2 * t + half_jerk * (0.5 * t * t + (1.0 - cos) / (beta * beta)),
            a2 + half_jerk * (t + sin / beta),
        )
    }
}

/// The ramp time `x` of `x²·(x - rise) = length_per_jerk`: Newton's method from above, where the
/// function is convex, so that it falls to the root without passing it.
fn ramp_for_length(length_per_jerk: f64, rise_s: f64) -> f64 {
    let mut x = rise_s + libm::cbrt(length_per_jerk);
    for _ in 0..20 {
        let f = x * x * (x - rise_s) - length_per_jerk;
        let slope = x * (3.0 * x - 2.0 * rise_s);
        let step = f / slope.max(1e-12);
        x -= step;
        if libm::fabs(step) < 1e-12 * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LegLimits =
        LegLimits { speed_m_s: 10.0, acceleration_m_s2: 2.5, jerk_m_s3: 1.0, snap_m_s4: 5.2 };

    /// Every leg, from a centimetre to kilometres, arrives, and its speed and acceleration are the
    /// derivatives of its position within the limits, while it gains speed and while it loses it.
    #[test]
    fn legs_of_any_length_are_smooth_and_arrive() {
        for length_m in [0.01, 0.3, 1.0, 3.0, 10.0, 30.0, 55.0, 100.0, 300.0, 5000.0] {
            for (speed_m_s, acceleration_m_s2) in [(0.2, 1.0), (2.5, 1.0), (10.0, 2.5), (15.0, 0.2)] {
                let limits = LegLimits { speed_m_s, acceleration_m_s2, ..LIMITS };
                let leg = Leg::new(DVec3::new(0.0, length_m, 0.0), limits);
                let dt = leg.stretch_s() / 2000.0;
                for from_s in [0.0, leg.brakes_at_s()] {
                    let mut before = leg.along(from_s);
                    for i in 1..=2000 {
                        let now = leg.along(from_s + f64::from(i) * dt);
                        let why = format!("{length_m} m, {limits:?}, step {i}: {before:?} {now:?}");
                        let moved = 0.5 * (now.1 + before.1) * dt;
                        // The trapezoid's own error is a twelfth of these.
                        assert!(
                            (now.0 - before.0 - moved).abs() < 1e-9 + limits.jerk_m_s3 * dt * dt * dt,
                            "{why}"
                        );
                        let gained = 0.5 * (now.2 + before.2) * dt;
                        assert!(
                            (now.1 - before.1 - gained).abs() < 1e-9 + limits.snap_m_s4 * dt * dt * dt,
                            "{why}"
                        );
                        assert!(
                            now.1 <= speed_m_s + 1e-9 && now.2.abs() <= acceleration_m_s2 + 1e-9,
                            "{why}"
                        );
                        assert!((now.2 - before.2).abs() <= limits.jerk_m_s3 * dt + 1e-9, "{why}");
                        before = now;
                    }
                }
                let Along(end_m, end_m_s, _) = leg.along(leg.duration_s() - 1e-9);
                assert!((end_m - length_m).abs() < 1e-6 && end_m_s.abs() < 1e-6, "{end_m} {end_m_s}");
            }
        }
    }

    #[test]
    fn a_long_leg_cruises_at_its_speed() {
        let leg = Leg::new(DVec3::new(300.0, 0.0, 0.0), LIMITS);
        assert!((leg.speed_m_s() - 10.0).abs() < 1e-9);
        // Half the jerk's rise each side of a/j, twice, and the rest at full acceleration.
        assert!((leg.stretch_s() - (10.0 / 2.5 + 2.5 + leg.rise_s)).abs() < 1e-9);
    }
}
