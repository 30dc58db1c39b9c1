//! RTL and SMART_RTL: climb, fly home, wait, land; and the recorded path that SMART_RTL flies back.

use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};

use super::{FlightController, Parameter};
use crate::motion::{Profile, Task};

/// RTL climbs at least to this height (3.5.7, `RTL_ALT_MIN`).
const RETURN_ALTITUDE_MIN_M: f64 = 2.0;
/// The cone near home asks for at least this climb (3.5.7, `RTL_ABS_MIN_CLIMB`).
const CLIMB_MIN_M: f64 = 2.5;
/// A cone shallower than this is no cone (3.5.7, `RTL_MIN_CONE_SLOPE`).
const CONE_SLOPE_MIN: f64 = 0.5;
/// Most points of the recorded path (ArduCopter: SRTL_POINTS up to 500).
const POINTS_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ReturnPhase {
    Climb,
    /// Back along the recorded path, point by point.
    Retrace,
    Home,
    Wait {
        until: Instant,
    },
    Descend,
    Land,
}

#[derive(Debug, Default)]
pub(super) struct Returning {
    phase: Option<ReturnPhase>,
    /// Positions since arming, home first.
    path: Vec<DVec3>,
    /// The path exceeded its bound: SMART_RTL is not offered until the next arming.
    lost: bool,
}

impl Returning {
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
    /// Stops returning, keeps the recorded path.
    pub(super) fn stop(&mut self) {
        self.phase = None;
    }
    pub(super) fn has_path(&self) -> bool {
        !self.lost && !self.path.is_empty()
    }
}

/// Distance of `b` from the line segment between `a` and `c`.
fn off_line(a: DVec3, b: DVec3, c: DVec3) -> f64 {
    let line = c - a;
    let part = if line.length_squared() > 0.0 { (b - a).dot(line) / line.length_squared() } else { 0.0 };
    (a + line * part.clamp(0.0, 1.0) - b).length()
}

impl FlightController {
    /// Arming: the recorded path starts here.
    pub(super) fn start_path(&mut self) {
        self.returning.reset();
        self.returning.path.push(self.vehicle.state().position);
    }

    /// Records a point of the path, when it is `SRTL_ACCURACY` from the last; straight sections need
    /// their ends only.
    pub(super) fn record_path(&mut self) {
        if self.profile() == Profile::Copter357
            || !self.armed()
            || self.landed()
            || self.mode == Mode::SmartRtl
            || self.returning.lost
        {
            return;
        }
        let here = self.vehicle.state().position;
        let accuracy_m = self.parameters.get(Parameter::SRTL_ACCURACY).clamp(0.1, 10.0);
        let path = &mut self.returning.path;
        if path.last().is_some_and(|&last| (here - last).length() < accuracy_m) {
            return;
        }
        let on_a_line = match path[..] {
            [.., before, last] => off_line(before, last, here) < accuracy_m / 2.0,
            _ => false,
        };
        if on_a_line {
            path.pop();
        }
        let bound = (self.parameters.flag(Parameter::SRTL_POINTS) as usize).min(POINTS_MAX);
        if self.returning.path.len() >= bound {
            self.returning.lost = true;
            self.returning.path.clear();
        } else {
            self.returning.path.push(here);
        }
    }

    fn return_altitude_m(&self, distance_m: f64) -> f64 {
        let cm = |p| self.parameters.get(p) / 100.0;
        let now_m = self.vehicle.state().position.z;
        let home_m = self.home_or_origin().z;
        let wanted_m = cm(Parameter::RTL_ALT).max(RETURN_ALTITUDE_MIN_M) + home_m;
        let target_m = wanted_m.max(now_m + cm(Parameter::RTL_CLIMB_MIN).max(0.0));
        let slope = self.parameters.get(Parameter::RTL_CONE_SLOPE);
        let coned_m = if slope >= CONE_SLOPE_MIN {
            target_m.min((home_m + distance_m * slope).max(now_m + CLIMB_MIN_M))
        } else {
            target_m
        };
        // Never down on the way home, never through the fence's ceiling.
        self.below_ceiling(coned_m.max(now_m)).max(now_m)
    }

    /// Starts RTL where the aircraft is.
    pub(super) fn start_return(&mut self) {
        if !self.armed() || self.landed() {
            self.returning.phase = Some(ReturnPhase::Climb);
            return;
        }
        let speed_m_s = self.parameters.get(Parameter::RTL_SPEED) / 100.0;
        self.nav = self.parameters.nav(self.config.profile);
        if speed_m_s > 0.0 {
            self.nav.wpnav_speed_m_s = speed_m_s;
        }
        let here = self.vehicle.state().position;
        let home = self.home_or_origin();
        let distance_m = libm::hypot(here.x - home.x, here.y - home.y);
        let altitude_m = self.return_altitude_m(distance_m);
        self.returning.phase = Some(ReturnPhase::Climb);
        self.hold_stopping_point();
        let stop = self.vehicle.target().unwrap_or(here);
        self.waypoint(DVec3::new(stop.x, stop.y, altitude_m));
    }

    /// Starts SMART_RTL: back along the path that was flown.
    pub(super) fn start_smart_return(&mut self) {
        if self.armed() && !self.landed() {
            self.returning.phase = Some(ReturnPhase::Retrace);
            self.hold_stopping_point();
        }
    }

    fn waypoint(&mut self, destination: DVec3) {
        let task = Task::Waypoint { destination, fast: false, next: None, yaw: None };
        self.vehicle.set_task(task, &self.nav);
    }

    /// A point of the recorded path, flown through on the way to the one before it.
    fn retrace(&mut self, destination: DVec3) {
        // The first point is the ground that it was armed on: nothing is flown towards that.
        let next = match self.returning.path[..] {
            [_, .., next] => Some(next),
            _ => None,
        };
        self.vehicle
            .set_task(Task::Waypoint { destination, fast: next.is_some(), next, yaw: None }, &self.nav);
    }

    /// One tick of RTL, SMART_RTL or AUTO's return.
    pub(super) fn run_return(&mut self) {
        // 3.5.7 leaves the ground in RTL no more than in any other autonomous mode.
        if self.landed() && self.returning.phase != Some(ReturnPhase::Land) {
            return self.ensure(Task::Idle);
        }
        let Some(phase) = self.returning.phase else { return self.start_return() };
        let reached = self.vehicle.destination_reached();
        let home = self.home_or_origin();
        match phase {
            ReturnPhase::Climb if reached => {
                let target = self.vehicle.target().unwrap_or(self.vehicle.state().position);
                self.returning.phase = Some(ReturnPhase::Home);
                self.waypoint(DVec3::new(home.x, home.y, target.z));
            }
            ReturnPhase::Retrace if reached => match self.returning.path.pop() {
                // The first point is the ground that it was armed on: descend above it.
                Some(point) if !self.returning.path.is_empty() => self.retrace(point),
                _ => self.wait_at_home(),
            },
            ReturnPhase::Home if reached => self.wait_at_home(),
            ReturnPhase::Wait { until } if self.now >= until => self.leave_home_point(),
            ReturnPhase::Descend if reached => self.returning.phase = Some(ReturnPhase::Descend),
            ReturnPhase::Land => self.run_landing(),
            ReturnPhase::Climb
            | ReturnPhase::Retrace
            | ReturnPhase::Home
            | ReturnPhase::Wait { .. }
            | ReturnPhase::Descend => {}
        }
    }

    fn wait_at_home(&mut self) {
        let wait_ms = self.parameters.get(Parameter::RTL_LOIT_TIME).max(0.0) as u64;
        self.returning.phase = Some(ReturnPhase::Wait { until: self.now + Duration::from_millis(wait_ms) });
    }

    /// Down to `RTL_ALT_FINAL` and stay, or to the ground. A lost radio always lands (3.5.7).
    fn leave_home_point(&mut self) {
        let final_m = self.parameters.get(Parameter::RTL_ALT_FINAL) / 100.0;
        if final_m > 0.0 && !self.failsafes.radio() {
            let home = self.home_or_origin();
            self.returning.phase = Some(ReturnPhase::Descend);
            self.waypoint(DVec3::new(home.x, home.y, home.z + final_m));
        } else {
            self.returning.phase = Some(ReturnPhase::Land);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_on_the_line_is_off_it_by_nothing() {
        let (a, c) = (DVec3::ZERO, DVec3::new(10.0, 0.0, 0.0));
        assert_eq!(off_line(a, DVec3::new(5.0, 0.0, 0.0), c), 0.0);
        assert_eq!(off_line(a, DVec3::new(5.0, 3.0, 0.0), c), 3.0);
        assert_eq!(off_line(a, DVec3::new(-4.0, 3.0, 0.0), c), 5.0);
    }
}
