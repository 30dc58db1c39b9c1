//! Failsafes: the pilot's radio, the ground station, the battery, the position estimate.
//!
//! Each is a level that rises once and starts one action; what clears it starts none, as in ArduCopter:
//! the pilot takes the mode back.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavSeverity;
use wingbeat_geo::{Duration, Instant};

use super::{FlightController, Parameter};
use crate::motion::Profile;

/// 3.5.7's fixed time without a ground station; 4.x has `FS_GCS_TIMEOUT`.
const GROUND_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without a frame of the pilot's receiver (3.5.7, `FS_RADIO_TIMEOUT_MS`).
const RADIO_TIMEOUT: Duration = Duration::from_millis(500);
/// Time that the voltage has to be low (3.5.7, `FS_BATT_VOLTAGE`; 4.x, `BATT_LOW_TIMER`).
const VOLTAGE_TIME: Duration = Duration::from_secs(10);

/// FS_OPTIONS of 4.x: continue in AUTO, or in GUIDED, or landing.
const OPTION_RADIO_AUTO: u32 = 1;
const OPTION_GROUND_AUTO: u32 = 1 << 1;
const OPTION_RADIO_GUIDED: u32 = 1 << 2;
const OPTION_LANDING: u32 = 1 << 3;
const OPTION_GROUND_PILOT: u32 = 1 << 4;

#[derive(Debug, Default)]
pub(super) struct Failsafes {
    ground_heard_at: Option<Instant>,
    ground: bool,
    radio: bool,
    battery: bool,
    battery_critical: bool,
    estimate: bool,
    voltage_low_since: Option<Instant>,
    /// The mode that a failsafe entered and that no order or switch has changed since.
    chosen: Option<Mode>,
}

impl Failsafes {
    /// Notes that a mode is entered; a failsafe that enters it says so afterwards.
    pub(super) fn on_mode_entered(&mut self) {
        self.chosen = None;
    }
    /// Returns whether a failsafe entered this mode.
    pub(super) fn has_chosen(&self, mode: Mode) -> bool {
        self.chosen == Some(mode)
    }
    /// A heartbeat, or a stick override, of the ground station.
    pub(super) fn on_ground_station_heartbeat(&mut self, now: Instant) {
        self.ground_heard_at = Some(now);
    }
    pub(super) fn radio(&self) -> bool {
        self.radio
    }
    pub(super) fn battery(&self) -> bool {
        self.battery || self.battery_critical
    }
    pub(super) fn any(&self) -> bool {
        self.ground || self.radio || self.battery || self.battery_critical || self.estimate
    }
}

/// What a failsafe asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    None,
    Land,
    Return,
    SmartReturnOrReturn,
    SmartReturnOrLand,
    BrakeOrLand,
    Disarm,
}

impl FlightController {
    fn old(&self) -> bool {
        self.profile() == Profile::Copter357
    }

    /// Whether disarming is the safe thing to do: nothing has left the ground yet.
    fn not_flying(&self) -> bool {
        if self.arming.in_delay(self.now) && self.landed() {
            return true;
        }
        match self.mode {
            Mode::Stabilize => self.landed() || self.rc.throttle_zero(self.now),
            Mode::Auto => self.landed() && !self.arming.may_take_off,
            Mode::AltHold
            | Mode::Guided
            | Mode::Loiter
            | Mode::Rtl
            | Mode::Land
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => self.landed(),
        }
    }

    /// Enters a mode that no pilot and no order asked for. Returns whether it was entered.
    pub(super) fn enter_by_failsafe(&mut self, mode: Mode) -> bool {
        let is_entered = self.set_mode(mode);
        if is_entered {
            self.failsafes.chosen = Some(mode);
        }
        is_entered
    }

    fn react(&mut self, reaction: Reaction) {
        let fallback = |fc: &mut Self, modes: &[Mode]| {
            for &mode in modes {
                if mode == fc.mode || fc.enter_by_failsafe(mode) {
                    return;
                }
            }
        };
        match reaction {
            Reaction::None => {}
            _ if !self.armed() => {}
            Reaction::Disarm => self.disarm(),
            _ if self.not_flying() => self.disarm(),
            Reaction::Land => fallback(self, &[Mode::Land]),
            Reaction::Return => fallback(self, &[Mode::Rtl, Mode::Land]),
            Reaction::SmartReturnOrReturn => fallback(self, &[Mode::SmartRtl, Mode::Rtl, Mode::Land]),
            Reaction::SmartReturnOrLand => fallback(self, &[Mode::SmartRtl, Mode::Land]),
            Reaction::BrakeOrLand => fallback(self, &[Mode::Brake, Mode::Land]),
        }
    }

    /// Ten times a second.
    pub(super) fn check_failsafes(&mut self) {
        self.check_radio();
        self.check_ground();
        self.check_battery();
        self.check_estimate();
    }

    fn check_radio(&mut self) {
        let action = self.parameters.flag(Parameter::FS_THR_ENABLE);
        let (silent, lost) = (self.receiver_is_silent(), self.radio_is_lost());
        let rising = lost && !self.radio_failsafe();
        // Without a receiver since boot there is nothing to lose until it is armed.
        if rising && !self.armed() && silent {
            return;
        }
        self.failsafes.radio = lost;
        if !rising {
            return;
        }
        if !self.old() {
            self.send_text(MavSeverity::MAV_SEVERITY_WARNING, format_args!("Radio Failsafe"));
        }
        let options = self.parameters.flag(Parameter::FS_OPTIONS);
        let goes_on = match self.mode {
            Mode::Auto if self.old() => action == 2,
            Mode::Auto => action == 2 || options & OPTION_RADIO_AUTO != 0,
            Mode::Guided if !self.old() => options & OPTION_RADIO_GUIDED != 0,
            Mode::Land => self.old() || options & OPTION_LANDING != 0,
            Mode::Stabilize
            | Mode::AltHold
            | Mode::Guided
            | Mode::Loiter
            | Mode::Rtl
            | Mode::PosHold
            | Mode::Brake
            | Mode::SmartRtl => false,
        };
        let reaction = match action {
            _ if goes_on => Reaction::None,
            3 => Reaction::Land,
            4 => Reaction::SmartReturnOrReturn,
            5 => Reaction::SmartReturnOrLand,
            _ => Reaction::Return,
        };
        self.react(reaction);
    }

    fn receiver_is_silent(&self) -> bool {
        self.rc.lost_at().is_some_and(|at| self.now.since(at) >= RADIO_TIMEOUT) && !self.rc.overridden()
    }

    /// Whether the receiver delivers nothing, or what it delivers without a transmitter; noticed where the failsafe
    /// is on.
    pub(super) fn radio_is_lost(&self) -> bool {
        let low = self.throttle_pulse_us() < self.parameters.get(Parameter::FS_THR_VALUE);
        self.parameters.flag(Parameter::FS_THR_ENABLE) != 0 && (low || self.receiver_is_silent())
    }

    fn radio_failsafe(&self) -> bool {
        self.failsafes.radio
    }

    fn check_ground(&mut self) {
        let action = self.parameters.flag(Parameter::FS_GCS_ENABLE);
        let Some(heard_at) = self.failsafes.ground_heard_at else { return };
        let timeout = if self.old() {
            GROUND_TIMEOUT
        } else {
            let seconds = self.parameters.get(Parameter::FS_GCS_TIMEOUT).clamp(2.0, 120.0);
            Duration::from_millis((seconds * 1e3) as u64)
        };
        // 3.5.7 cares only while the ground station flies: by overrides or in GUIDED.
        let concerned =
            !self.old() || self.rc.overridden() || self.mode == Mode::Guided || self.failsafes.ground;
        let silent = self.now.since(heard_at) >= timeout;
        let rising = action != 0 && concerned && silent && !self.failsafes.ground;
        if !silent || action == 0 {
            if self.failsafes.ground && !self.old() {
                let text = format_args!("GCS Failsafe Cleared");
                self.send_text(MavSeverity::MAV_SEVERITY_WARNING, text);
            }
            self.failsafes.ground = false;
        }
        if !rising {
            return;
        }
        self.failsafes.ground = true;
        if self.old() {
            // The pilot's own sticks count again.
            self.rc.clear_overrides();
        } else {
            self.send_text(MavSeverity::MAV_SEVERITY_WARNING, format_args!("GCS Failsafe"));
        }
        let options = self.parameters.flag(Parameter::FS_OPTIONS);
        let pilots = matches!(self.mode, Mode::Stabilize | Mode::AltHold | Mode::Loiter | Mode::PosHold);
        let goes_on = if self.old() {
            self.mode == Mode::Auto && action == 2
        } else {
            (self.mode == Mode::Auto && (action == 2 || options & OPTION_GROUND_AUTO != 0))
                || (pilots && options & OPTION_GROUND_PILOT != 0)
                || (self.mode == Mode::Land && options & OPTION_LANDING != 0)
        };
        let reaction = match action {
            _ if goes_on => Reaction::None,
            3 => Reaction::SmartReturnOrReturn,
            4 => Reaction::SmartReturnOrLand,
            5 => Reaction::Land,
            7 => Reaction::BrakeOrLand,
            _ => Reaction::Return,
        };
        self.react(reaction);
    }

    fn check_battery(&mut self) {
        if self.parameters.flag(Parameter::BATT_MONITOR) == 0 {
            return;
        }
        let volt = self.battery.voltage_v();
        let left_mah =
            self.parameters.get(Parameter::BATT_CAPACITY) * self.battery.remaining_percent() / 100.0;
        let under = |limit: f64, value: f64| limit > 0.0 && value < limit;
        let get = |p| self.parameters.get(p);
        let (low_volt, low_mah, critical_volt, critical_mah) = if self.old() {
            (get(Parameter::FS_BATT_VOLTAGE), get(Parameter::FS_BATT_MAH), 0.0, 0.0)
        } else {
            (
                get(Parameter::BATT_LOW_VOLT),
                get(Parameter::BATT_LOW_MAH),
                get(Parameter::BATT_CRT_VOLT),
                get(Parameter::BATT_CRT_MAH),
            )
        };
        let time = if self.old() {
            VOLTAGE_TIME
        } else {
            Duration::from_secs(u64::from(self.parameters.flag(Parameter::BATT_LOW_TIMER)))
        };
        let volt_is_low = under(low_volt, volt) || under(critical_volt, volt);
        if !volt_is_low {
            self.failsafes.voltage_low_since = None;
        }
        let since = *self.failsafes.voltage_low_since.get_or_insert(self.now);
        let lasting = volt_is_low && self.now.since(since) >= time;
        if !volt_is_low {
            self.failsafes.voltage_low_since = None;
        }
        let low = under(low_mah, left_mah) || (lasting && under(low_volt, volt));
        let critical = under(critical_mah, left_mah) || (lasting && under(critical_volt, volt));
        if critical && !self.failsafes.battery_critical {
            self.failsafes.battery_critical = true;
            self.failsafes.battery = true;
            self.send_battery_text("critical", volt);
            self.react_battery(Parameter::BATT_FS_CRT_ACT);
        } else if low && !self.failsafes.battery {
            // 3.5.7 watches only while FS_BATT_ENABLE or the motors are on.
            if self.old() && !self.armed() {
                return;
            }
            self.failsafes.battery = true;
            self.send_battery_text("low", volt);
            self.react_battery(Parameter::BATT_FS_LOW_ACT);
        }
    }

    fn send_battery_text(&mut self, level: &str, volt: f64) {
        let warning = MavSeverity::MAV_SEVERITY_WARNING;
        if self.old() {
            self.send_text(warning, format_args!("Low battery"));
        } else {
            let used_mah = self.battery.used_mah();
            self.send_text(warning, format_args!("Battery 1 is {level} {volt:.2}V used {used_mah:.0} mAh"));
        }
    }

    fn react_battery(&mut self, new_action: Parameter) {
        let reaction = if self.old() {
            match self.parameters.flag(Parameter::FS_BATT_ENABLE) {
                1 => Reaction::Land,
                2 => Reaction::Return,
                _ => Reaction::None,
            }
        } else {
            match self.parameters.flag(new_action) {
                1 => Reaction::Land,
                2 => Reaction::Return,
                3 => Reaction::SmartReturnOrReturn,
                4 => Reaction::SmartReturnOrLand,
                5 => Reaction::Disarm,
                7 => Reaction::BrakeOrLand,
                _ => Reaction::None,
            }
        };
        let landing = matches!(self.mode, Mode::Land);
        if !landing || reaction == Reaction::Disarm {
            if !self.old() && reaction != Reaction::None {
                self.send_text(MavSeverity::MAV_SEVERITY_WARNING, format_args!("Battery Failsafe"));
            }
            self.react(reaction);
        }
    }

    /// The position is gone: a mode that needs one lands.
    fn check_estimate(&mut self) {
        let lost = self.armed() && !self.position_ok();
        let rising = lost && !self.failsafes.estimate;
        let concerned = self.needs_position(self.mode);
        if !lost {
            self.failsafes.estimate = false;
        }
        let action = self.parameters.flag(Parameter::FS_EKF_ACTION);
        if !rising || !concerned || action == 0 {
            return;
        }
        self.failsafes.estimate = true;
        self.send_text(MavSeverity::MAV_SEVERITY_CRITICAL, format_args!("EKF variance"));
        let mode = if action == 2 { Mode::AltHold } else { Mode::Land };
        if self.not_flying() {
            self.disarm();
        } else {
            self.enter_by_failsafe(mode);
            if !self.old() {
                let (severity, name) = (MavSeverity::MAV_SEVERITY_CRITICAL, mode.name());
                self.send_text(severity, format_args!("EKF Failsafe: changed to {name} Mode"));
            }
        }
    }
}
