//! Arming and disarming: by command, by sticks, automatically; and the checks before it.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavSeverity;
use wingbeat_geo::{Duration, Instant};

use super::{FlightController, Parameter, TICK};
use crate::motion::Profile;

/// How long the yaw stick has to be held in its corner.
const STICK_HOLD: Duration = Duration::from_secs(2);
/// How far the yaw stick has to be out (3.5.7: 4000 of 4500).
const STICK_CORNER: f64 = 0.88;
/// Arming within this time is not yet flying: a failsafe disarms (3.5.7, `ARMING_DELAY_SEC`).
const ARMING_DELAY: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Arming {
    armed_at: Option<Instant>,
    /// Whether modes that fly by themselves may leave the ground: the throttle was raised, or a command
    /// said so (ArduCopter's `auto_armed`).
    pub(super) may_take_off: bool,
    /// Since when nothing has kept it armed on the ground.
    idle_since: Instant,
    /// Since when the yaw stick has been in a corner, and whether that one arms.
    stick: Option<(Instant, bool)>,
}

impl Arming {
    pub(super) fn armed(&self) -> bool {
        self.armed_at.is_some()
    }
    pub(super) fn in_delay(&self, now: Instant) -> bool {
        self.armed_at.is_some_and(|at| now.since(at) < ARMING_DELAY)
    }
}

/// The source of an arming request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmBy {
    Command,
    /// A command with the number that skips the checks.
    Force,
    Sticks,
}

impl FlightController {
    pub(super) fn armed(&self) -> bool {
        self.arming.armed()
    }

    /// What fails of the checks that ArduCopter repeats while it is disarmed, with the text that it gives.
    fn prearm_obstacle(&self) -> Option<&'static str> {
        let old = self.profile() == Profile::Copter357;
        let pick = |a: &'static str, b: &'static str| Some(if old { a } else { b });
        let checks = self.parameters.flag(Parameter::ARMING_CHECK) != 0;
        if !self.estimate.gyros_settled(self.now) {
            return pick("PreArm: gyros still settling", "Arm: Accels inconsistent");
        }
        if !old && !self.estimate.has_origin(self.now) {
            return Some("Arm: AHRS: waiting for home");
        }
        if checks {
            let low = self.throttle_pulse_us() < self.parameters.get(Parameter::FS_THR_VALUE);
            let watched = self.parameters.flag(Parameter::FS_THR_ENABLE) != 0;
            if watched && (low || self.failsafes.radio()) {
                return pick("Arm: Throttle below Failsafe", "Arm: Radio failsafe on");
            }
            if self.failsafes.battery() {
                return pick("PreArm: Check Battery", "PreArm: Battery failsafe");
            }
        }
        if self.needs_position(self.mode) || self.fence_needs_position() {
            if !self.estimate.has_fix(self.now) {
                return pick("PreArm: Need 3D Fix", "PreArm: GPS 1: Bad fix");
            }
            if !self.position_ok() {
                return pick("PreArm: Need 3D Fix", "Arm: Need Position Estimate");
            }
        }
        if let Some(text) = self.remote_id_obstacle() {
            return Some(text);
        }
        if checks && self.outside_fence() {
            return pick("PreArm: check fence", "PreArm: vehicle outside fence");
        }
        None
    }

    /// Whether the checks are repeated, and whether they pass, as SYS_STATUS reports since 4.0: they count as passed
    /// while it is armed.
    pub(super) fn prearm(&self) -> (bool, bool) {
        let enabled = self.parameters.flag(Parameter::ARMING_CHECK) != 0;
        (enabled, enabled && (self.armed() || self.prearm_obstacle().is_none()))
    }

    /// Announces why it would not arm, half a minute from one to the next, 15 s after boot for the first time.
    pub(super) fn announce_prearm_failure(&mut self) {
        let (period_ms, first_ms) = (30_000, 15_000);
        let tick_ms = TICK.as_millis();
        if self.profile() != Profile::Copter462
            || self.uptime().as_millis() % period_ms / tick_ms != first_ms / tick_ms
            || self.armed()
            || !self.prearm().0
        {
            return;
        }
        if let Some(text) = self.prearm_obstacle() {
            let why = text.split_once(": ").map_or(text, |(_, why)| why);
            self.send_text(MavSeverity::MAV_SEVERITY_CRITICAL, format_args!("PreArm: {why}"));
        }
    }

    /// Why it does not arm, with the text that ArduCopter gives.
    fn arming_obstacle(&self, by: ArmBy) -> Option<&'static str> {
        if let Some(text) = self.prearm_obstacle() {
            return Some(text);
        }
        let checks = self.parameters.flag(Parameter::ARMING_CHECK) != 0;
        let by_command = by != ArmBy::Sticks;
        let armable = match self.mode {
            Mode::Stabilize | Mode::AltHold | Mode::Loiter | Mode::PosHold => true,
            Mode::Guided => by_command,
            Mode::Auto | Mode::Rtl | Mode::Land | Mode::Brake | Mode::SmartRtl => false,
        };
        if !armable {
            return Some("Arm: Mode not armable");
        }
        let throttle = self.throttle_stick();
        let too_high = match self.mode {
            Mode::Guided => false,
            Mode::Stabilize => throttle > 0.0,
            Mode::AltHold
            | Mode::Auto
            | Mode::Loiter
            | Mode::Rtl
            | Mode::Land
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => self.pilot_climbs(),
        };
        (checks && too_high).then_some("Arm: Throttle too high")
    }

    /// Arms, or returns the reason why not.
    pub(super) fn arm(&mut self, by: ArmBy) -> bool {
        if self.armed() {
            return true;
        }
        // 3.5.7 has no forced arming.
        let skip = by == ArmBy::Force && self.profile() == Profile::Copter462;
        if !skip && let Some(text) = self.arming_obstacle(by) {
            self.send_text(MavSeverity::MAV_SEVERITY_CRITICAL, format_args!("{text}"));
            return false;
        }
        self.send_text(MavSeverity::MAV_SEVERITY_INFO, format_args!("Arming motors"));
        if self.estimate.has_origin(self.now) {
            self.set_home(self.vehicle.state().position);
        }
        self.arming = Arming { armed_at: Some(self.now), idle_since: self.now, ..Arming::default() };
        self.start_path();
        true
    }

    /// Disarms immediately, in the air too.
    pub(super) fn disarm(&mut self) {
        if !self.armed() {
            return;
        }
        self.send_text(MavSeverity::MAV_SEVERITY_INFO, format_args!("Disarming motors"));
        self.arming = Arming::default();
        self.auto.reset();
        self.returning.reset();
        self.guided.reset();
    }

    /// Automatic arming and disarming.
    pub(super) fn check_arming_timers(&mut self) {
        let throttle_zero = self.rc.throttle_zero(self.now);
        let manual = self.mode == Mode::Stabilize;
        if self.armed() {
            if !throttle_zero {
                self.arming.may_take_off = true;
            } else if manual && !self.failsafes.radio() {
                self.arming.may_take_off = false;
            }
            // DISARM_DELAY: armed on the ground, throttle down, nothing happens.
            let delay_s = self.parameters.get(Parameter::DISARM_DELAY).clamp(0.0, 127.0);
            if !throttle_zero || !self.landed() || delay_s == 0.0 || self.taking_off() {
                self.arming.idle_since = self.now;
            } else if self.now.since(self.arming.idle_since).as_secs_f64() >= delay_s {
                self.disarm();
            }
        }
        self.check_sticks(throttle_zero);
    }

    /// Throttle down and yaw out to the right for two seconds arms, to the left disarms.
    fn check_sticks(&mut self, throttle_zero: bool) {
        let yaw = self.yaw_stick();
        if !throttle_zero || yaw.abs() < STICK_CORNER || self.rc.lost_at().is_some() {
            self.arming.stick = None;
            return;
        }
        let right = yaw > 0.0;
        match self.arming.stick {
            Some((since, side)) if side == right => {
                if self.now.since(since) >= STICK_HOLD {
                    self.arming.stick = None;
                    if right {
                        self.arm(ArmBy::Sticks);
                    } else if self.landed() || self.mode == Mode::Stabilize {
                        self.disarm();
                    }
                }
            }
            _ => self.arming.stick = Some((self.now, right)),
        }
    }
}
