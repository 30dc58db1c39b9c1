//! The chain of S-curve legs that 4.x flies in AUTO and RTL: the leg before, this one, the one after.
//!
//! ```text
//! ───────── this leg ──────────╮ corner
//!                slowing down  ╰──╮        Both legs move the target together: the sum cuts the corner.
//!                                 │ next leg, gaining speed
//! ```
//!
//! Every leg is planned from rest to rest. The next one begins while this one still slows down, at the
//! moment from which the sum of both stays inside the waypoint's radius, the speed and the corner's
//! acceleration; so the speed at a corner follows from its angle. A target that runs away from an
//! aircraft which cannot follow gets its time slowed down instead.

use wingbeat_geo::DVec3;

use super::horizontal::length;
use super::scurve::{Leg, LegLimits, Motion};
use super::shaping::{Smooth, along};
use super::{NavParameters, bounded, sqrt3};

/// WPNAV_JERK.
const JERK_M_S3: f64 = 1.0;
/// The snap that ATC_INPUT_TC 0.15 allows, of which navigation uses half.
const SNAP_M_S4: f64 = 0.5 * JERK_M_S3 * core::f64::consts::PI / (2.0 * 0.15);
/// The corner's acceleration is this part of WPNAV_ACCEL (WPNAV_ACCEL_C 0).
const CORNER_PART: f64 = 2.0;
/// The target's clock stands still if the aircraft falls behind by more than this part allows.
const FOLLOW_MARGIN: f64 = 0.05;

/// A leg, where it ends, and the speed that it was planned with.
#[derive(Clone, Copy, Debug)]
struct Planned {
    leg: Leg,
    destination: DVec3,
    speed_m_s: f64,
}

/// The legs being flown.
#[derive(Clone, Debug)]
pub(super) struct Course {
    previous: Option<Leg>,
    this: Planned,
    next: Option<Planned>,
    origin: DVec3,
    /// How fast the target's clock runs: 1 while the aircraft keeps up.
    clock: f64,
    /// The speed wanted now as a part of the speed that this leg was planned with.
    part: f64,
    /// The target is at the destination, or at the corner.
    passed: bool,
}

impl Course {
    pub(super) fn new(at: DVec3) -> Self {
        let p = NavParameters::new(super::Profile::Copter462);
        let this = plan(at, at, &p);
        Self { previous: None, this, next: None, origin: at, clock: 1.0, part: 1.0, passed: true }
    }

    /// A leg from rest: nothing was flown before, or it was broken off.
    pub(super) fn start(
        &mut self,
        origin: DVec3,
        destination: DVec3,
        next: Option<DVec3>,
        p: &NavParameters,
    ) {
        *self = Self { this: plan(origin, destination, p), passed: false, ..Self::new(origin) };
        self.look_ahead(next, p);
    }

    /// The leg after one that was flown to its end, or to the corner.
    pub(super) fn follow(&mut self, destination: DVec3, next: Option<DVec3>, p: &NavParameters) {
        self.origin = self.this.destination;
        self.previous = Some(self.this.leg);
        let announced = self.next.filter(|n| n.destination == destination);
        let this = match announced {
            Some(planned) if planned.leg.elapsed_s() > 0.0 || planned.speed_m_s == p.wpnav_speed_m_s => {
                planned
            }
            _ => plan(self.origin, destination, p),
        };
        self.part = bounded(self.part * self.this.speed_m_s / this.speed_m_s.max(0.01), 0.0, 10.0);
        self.this = this;
        self.passed = false;
        self.look_ahead(next, p);
    }

    fn look_ahead(&mut self, next: Option<DVec3>, p: &NavParameters) {
        self.next = next.map(|place| plan(self.this.destination, place, p));
    }

    /// Whether the target is there: at the end of the leg, or where the next one takes over.
    pub(super) fn passed(&self) -> bool {
        self.passed
    }

    pub(super) fn destination(&self) -> DVec3 {
        self.this.destination
    }

    /// Moves the target on; `error` is how far the aircraft is behind it.
    pub(super) fn advance(
        &mut self,
        target: &mut Smooth,
        error: DVec3,
        velocity: DVec3,
        p: &NavParameters,
        dt_s: f64,
    ) {
        let speed = sqrt3(target.velocity);
        let able = if speed > 1e-6 {
            let course = target.velocity / speed;
            let kept = velocity.dot(course) - error.dot(course);
            bounded(FOLLOW_MARGIN + kept / speed, 0.0, 1.0)
        } else {
            1.0
        };
        // The clock follows with the time that the acceleration needs to build up.
        let lag_s = bounded(p.wpnav_accel_m_s2, 0.05, 50.0) / JERK_M_S3;
        self.clock += (able - self.clock) * (dt_s / lag_s).min(1.0);
        let wanted = bounded(p.wpnav_speed_m_s / self.this.speed_m_s.max(0.01), 0.0, 10.0);
        let step = p.wpnav_accel_m_s2 / self.this.speed_m_s.max(0.01) * dt_s;
        self.part = bounded(wanted, self.part - step, self.part + step);

        let dt_s = dt_s * self.clock * self.part;
        let mut sum = Motion { position: self.origin, velocity: DVec3::ZERO, acceleration: DVec3::ZERO };
        if let Some(leg) = &mut self.previous {
            leg.pass(dt_s);
            sum.add(leg.now_from_end());
            if leg.finished() {
                self.previous = None;
            }
        }
        self.this.leg.pass(dt_s);
        sum.add(self.this.leg.now());
        if let Some(Planned { leg: next, .. }) = &mut self.next
            && (next.elapsed_s() > 0.0 || may_turn(&self.this.leg, next, p))
        {
            next.pass(dt_s);
            sum.add(next.now());
            self.passed |= next.elapsed_s() >= self.this.leg.remaining_s();
        }
        self.passed |= self.this.leg.finished();
        target.position = sum.position;
        target.velocity = sum.velocity * self.part;
        target.acceleration = sum.acceleration * (self.part * self.part);
    }
}

/// Whether the next leg may begin now: seen from the middle of the time that is left, when both legs
/// move the target, the corner is cut by less than the waypoint's radius and flown within the limits.
fn may_turn(this: &Leg, next: &Leg, p: &NavParameters) -> bool {
    let left_s = this.remaining_s();
    if this.elapsed_s() < this.brakes_at_s() || left_s >= 0.5 * next.duration_s() {
        return false;
    }
    let mut middle = this.at_from_end(this.elapsed_s() + 0.5 * left_s);
    middle.add(next.at(0.5 * left_s));
    sqrt3(middle.position) < p.wpnav_radius_m.max(0.05)
        && length(middle.velocity.truncate()) < this.speed_m_s().min(next.speed_m_s())
        && length(middle.acceleration.truncate()) < CORNER_PART * p.wpnav_accel_m_s2
}

fn plan(from: DVec3, to: DVec3, p: &NavParameters) -> Planned {
    let line = to - from;
    let length_m = sqrt3(line);
    let unit = if length_m > 1e-9 { line / length_m } else { DVec3::ZERO };
    let speed_m_s = bounded(p.wpnav_speed_m_s, 0.01, 1e3);
    let up = bounded(libm::fabs(p.wpnav_speed_up_m_s), 0.01, 100.0);
    let down = bounded(libm::fabs(p.wpnav_speed_down_m_s), 0.01, 100.0);
    let horizontal = bounded(p.wpnav_accel_m_s2, 0.05, 50.0);
    let z = bounded(p.wpnav_accel_z_m_s2, 0.05, 50.0);
    let leg = Leg::new(
        line,
        LegLimits {
            speed_m_s: bounded(along(unit, speed_m_s, up, down), 0.01, 1e3),
            acceleration_m_s2: bounded(along(unit, horizontal, z, z), 0.05, 50.0),
            jerk_m_s3: JERK_M_S3,
            snap_m_s4: SNAP_M_S4,
        },
    );
    Planned { leg, destination: to, speed_m_s: p.wpnav_speed_m_s }
}
