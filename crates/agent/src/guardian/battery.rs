//! The battery while the guardian has the aircraft: the rule by which the daemon lands, for the worst battery that counts.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::telemetry::{ChargeState, Measurements, Worst};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Text, text};

use super::{Config, Takeover, TakeoverPhase};
use crate::energy::{lands_after, millivolts, volts};

impl Takeover {
    /// Takes a message of the autopilot. Returns the line for the log, once, where the voltage or the reported state has been
    /// low for long enough and the aircraft does not land already.
    pub(super) fn is_low_now(
        &mut self,
        now: Instant,
        message: &MavMessage,
        measured: &mut Measurements,
        config: &Config,
    ) -> Option<Text> {
        measured.on_message(message);
        if !matches!(message, MavMessage::SYS_STATUS(_)) {
            return None;
        }
        let worst = measured.battery.as_ref().and_then(|battery| battery.worst(config.other_batteries));
        let is_below = |worst: Worst| {
            let is_under = millivolts(worst).is_some_and(|found_mv| found_mv < config.land_below_mv);
            is_under || config.land_below_mv > 0 && worst.state >= ChargeState::Failed
        };
        let low = worst.filter(|worst| is_below(*worst));
        self.low_since = low.map(|_| self.low_since.unwrap_or(now));
        let found_mv = low.and_then(millivolts).unwrap_or(u16::MAX);
        let counts_after = lands_after(config.below_for_s, config.land_below_mv, found_mv);
        let low_for = self.low_since.map_or(Duration::ZERO, |since| now.since(since));
        let is_held = low_for > counts_after;
        let for_s = low_for.as_secs().min(u64::from(config.below_for_s));
        let lands = self.shown == Some(Mode::Land.number());
        let acts = self.phase != TakeoverPhase::AwaitingHeartbeat && is_held && !lands && !self.is_low;
        self.is_low |= acts;
        let worst = low.filter(|_| acts)?;
        let (number, found_mv) = (worst.number, millivolts(worst).unwrap_or_default());
        Some(if found_mv >= config.land_below_mv || found_mv == 0 {
            let state = worst.state.name();
            text!("battery {number}: {state} for {for_s} s, as the flight controller reports: land")
        } else {
            let [found_v, limit_v] = [found_mv, config.land_below_mv].map(volts);
            text!("battery: {found_v:.2} V, below {limit_v:.2} V for {for_s} s: land")
        })
    }
}
