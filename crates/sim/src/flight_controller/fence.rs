//! The fence: a circle and a ceiling around home. Beyond it the aircraft returns or lands, and outside
//! it does not arm. Polygons are not simulated.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{FENCE_STATUS_DATA, FenceBreach, FenceMitigate, MavMessage, MavSeverity};
use wingbeat_geo::DVec3;

use super::{FlightController, Parameter};
use crate::motion::Profile;

/// `FENCE_TYPE` bits.
const CEILING: u32 = 1;
const CIRCLE: u32 = 2;
/// Each further breach needs so much more (ArduPilot, `AC_FENCE_*_BACKUP_DISTANCE`).
const BACKUP_CIRCLE_M: f64 = 20.0;
const BACKUP_CEILING_M: f64 = 20.0;
/// Farther out than this it lands (ArduPilot, `AC_FENCE_GIVE_UP_DISTANCE`).
const GIVE_UP_M: f64 = 100.0;

#[derive(Debug, Default)]
pub(super) struct Fence {
    breached: u32,
    breaches: u16,
    breach_ms: u32,
    /// How far beyond the fence the next breach counts.
    ceiling_margin_m: f64,
    circle_margin_m: f64,
}

impl FlightController {
    /// The fences that are on.
    fn fences(&self) -> u32 {
        if self.parameters.flag(Parameter::FENCE_ENABLE) == 1 {
            self.parameters.flag(Parameter::FENCE_TYPE) & (CEILING | CIRCLE)
        } else {
            0
        }
    }
    pub(super) fn fence_needs_position(&self) -> bool {
        self.fences() & CIRCLE != 0
    }
    /// How far a place lies beyond ceiling and circle; negative inside.
    fn beyond(&self, place: DVec3) -> (f64, f64) {
        let home = self.home_or_origin();
        let up_m = place.z - home.z;
        let out_m = libm::hypot(place.x - home.x, place.y - home.y);
        (
            up_m - self.parameters.get(Parameter::FENCE_ALT_MAX),
            out_m - self.parameters.get(Parameter::FENCE_RADIUS),
        )
    }
    pub(super) fn fence_allows(&self, place: DVec3) -> bool {
        let (fences, (up, out)) = (self.fences(), self.beyond(place));
        !(fences & CEILING != 0 && up > 0.0 || fences & CIRCLE != 0 && out > 0.0)
    }
    pub(super) fn outside_fence(&self) -> bool {
        !self.fence_allows(self.vehicle.state().position)
    }
    /// The height below the ceiling that a return may climb to.
    pub(super) fn below_ceiling(&self, up_m: f64) -> f64 {
        if self.fences() & CEILING == 0 {
            return up_m;
        }
        let margin = self.parameters.get(Parameter::FENCE_MARGIN);
        up_m.min(self.home_or_origin().z + self.parameters.get(Parameter::FENCE_ALT_MAX) - margin)
    }

    /// Ten times a second.
    pub(super) fn check_fence(&mut self) {
        let fences = self.fences();
        if fences == 0 || !self.armed() {
            self.fence.breached = 0;
            self.fence.ceiling_margin_m = 0.0;
            self.fence.circle_margin_m = 0.0;
            return;
        }
        let (up, out) = self.beyond(self.vehicle.state().position);
        let mut new = 0;
        if fences & CEILING != 0 && up >= self.fence.ceiling_margin_m && up >= 0.0 {
            new |= CEILING;
            self.fence.ceiling_margin_m = up + BACKUP_CEILING_M;
        }
        if fences & CIRCLE != 0 && out >= self.fence.circle_margin_m && out >= 0.0 {
            new |= CIRCLE;
            self.fence.circle_margin_m = out + BACKUP_CIRCLE_M;
        }
        if up < 0.0 {
            self.fence.ceiling_margin_m = 0.0;
        }
        if out < 0.0 {
            self.fence.circle_margin_m = 0.0;
        }
        let outside =
            (if up >= 0.0 { fences & CEILING } else { 0 }) | (if out >= 0.0 { fences & CIRCLE } else { 0 });
        let changed = new != 0 || (self.fence.breached != 0 && outside == 0);
        self.fence.breached = outside;
        if new != 0 {
            self.fence.breaches = self.fence.breaches.saturating_add(1);
            self.fence.breach_ms = self.uptime().as_millis() as u32;
            self.breach(up, out);
        }
        if changed {
            self.send_fence_status();
        }
    }

    fn breach(&mut self, up: f64, out: f64) {
        if self.profile() == Profile::Copter462 {
            self.send_text(MavSeverity::MAV_SEVERITY_WARNING, format_args!("Fence Breached"));
        }
        let action = self.parameters.flag(Parameter::FENCE_ACTION);
        if action == 0 {
            return;
        }
        if self.landed() {
            return self.disarm();
        }
        let modes: &[Mode] = match action {
            _ if up.max(out) > GIVE_UP_M => &[Mode::Land],
            2 => &[Mode::Land],
            3 => &[Mode::SmartRtl, Mode::Rtl, Mode::Land],
            4 => &[Mode::Brake, Mode::Land],
            5 => &[Mode::SmartRtl, Mode::Land],
            _ => &[Mode::Rtl, Mode::Land],
        };
        for &mode in modes {
            if self.mode == mode || self.enter_by_failsafe(mode) {
                return;
            }
        }
    }

    pub(super) fn send_fence_status(&mut self) {
        if self.parameters.flag(Parameter::FENCE_ENABLE) == 0 {
            return;
        }
        let breach_type = if self.fence.breached & CEILING != 0 {
            FenceBreach::FENCE_BREACH_MAXALT
        } else if self.fence.breached & CIRCLE != 0 {
            FenceBreach::FENCE_BREACH_BOUNDARY
        } else {
            FenceBreach::FENCE_BREACH_NONE
        };
        self.send(&MavMessage::FENCE_STATUS(FENCE_STATUS_DATA {
            breach_time: self.fence.breach_ms,
            breach_count: self.fence.breaches,
            breach_status: u8::from(self.fence.breached != 0),
            breach_type,
            breach_mitigation: FenceMitigate::FENCE_MITIGATE_UNKNOWN,
        }));
    }
}
