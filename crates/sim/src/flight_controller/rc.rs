//! The pilot's radio: channels, overrides from the ground station, sticks, and the mode switch.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::RC_CHANNELS_OVERRIDE_DATA;
use wingbeat_geo::{Duration, Instant};

use super::parameters::{Channel, Parameters};
use super::{FlightController, Parameter};
use crate::motion::Sticks;

/// Channels that can be overridden.
const CHANNELS: usize = 8;
/// The channel of the mode switch, from 0 (`FLTMODE_CH` 5).
const SWITCH: usize = 4;
/// The switch has to rest in a position for so long before it counts.
const SWITCH_DEBOUNCE: Duration = Duration::from_millis(200);
/// How long the throttle has to be down before it counts as zero (3.5.7, radio.cpp).
const THROTTLE_ZERO_DEBOUNCE: Duration = Duration::from_millis(400);
/// A stick must be within this much of the throttle's range above its dead zone to count as down.
const THROTTLE_DOWN: f64 = 0.02;

/// What a receiver delivers: pulse widths of channels 1 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RcChannels(pub [u16; CHANNELS]);

impl RcChannels {
    /// A transmitter that is switched on and left alone, as SITL has it: throttle down, sticks centred,
    /// mode switch in the sixth position.
    pub const IDLE: Self = Self([1500, 1500, 1000, 1500, 1800, 1000, 1000, 1800]);
    /// The same with the throttle in the middle, where modes that hold the altitude hover.
    pub const HOVER: Self = Self([1500, 1500, 1500, 1500, 1800, 1000, 1000, 1800]);
}

#[derive(Clone, Copy, Debug, Default)]
struct Override {
    pulse_us: u16,
    heard_at: Instant,
}

#[derive(Debug)]
pub(super) struct Rc {
    receiver: Option<RcChannels>,
    lost_at: Option<Instant>,
    /// Since boot.
    was_received: bool,
    overrides: [Option<Override>; CHANNELS],
    /// What counts now: receiver under overrides.
    pub(super) effective: RcChannels,
    throttle_up_at: Option<Instant>,
    switch: usize,
    switch_candidate: (usize, Instant),
}

impl Rc {
    pub(super) fn new(receiver: Option<RcChannels>) -> Self {
        let effective = receiver.unwrap_or(RcChannels([0; CHANNELS]));
        let switch = switch_position(effective.0[SWITCH]);
        Self {
            receiver,
            lost_at: receiver.is_none().then_some(Instant::ZERO),
            was_received: receiver.is_some(),
            overrides: [None; CHANNELS],
            effective,
            throttle_up_at: None,
            switch,
            switch_candidate: (switch, Instant::ZERO),
        }
    }
    pub(super) fn receiver(&mut self, channels: Option<RcChannels>, now: Instant) {
        self.lost_at = match (channels, self.lost_at) {
            (Some(_), _) => None,
            (None, None) => Some(now),
            (None, earlier) => earlier,
        };
        self.was_received |= channels.is_some();
        self.receiver = channels;
    }
    /// Whether a receiver was found.
    pub(super) fn is_present(&self) -> bool {
        self.was_received
    }
    /// The mode of the switch, STABILIZE where that is none that is simulated.
    pub(super) fn boot_mode(&self, parameters: &Parameters) -> Mode {
        Mode::from_number(parameters.switch_mode(self.switch)).unwrap_or(Mode::Stabilize)
    }
    /// The switch is turned to another position, which chooses that mode, and has rested there.
    pub(super) fn turn_switch(&mut self, mode: Mode, parameters: &mut Parameters) {
        // The last two positions, in turns.
        let (position, pulse_us) = if self.switch == 5 { (4, 1685) } else { (5, 1800) };
        parameters.set_switch_mode(position, mode.number());
        (self.switch, self.effective.0[SWITCH]) = (position, pulse_us);
        if let Some(channels) = &mut self.receiver {
            channels.0[SWITCH] = pulse_us;
        }
    }
    /// Whether a ground station's overrides count.
    pub(super) fn overridden(&self) -> bool {
        self.overrides.iter().any(Option::is_some)
    }
    pub(super) fn clear_overrides(&mut self) {
        self.overrides = [None; CHANNELS];
    }
    /// Since when the receiver has been silent.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.lost_at
    }
    /// Whether the throttle has been down for long enough.
    pub(super) fn throttle_zero(&self, now: Instant) -> bool {
        self.throttle_up_at.is_none_or(|at| now.since(at) >= THROTTLE_ZERO_DEBOUNCE)
    }
}

/// Position 0..=5 of the mode switch.
fn switch_position(pulse_us: u16) -> usize {
    // ArduCopter's bounds (<https://ardupilot.org/copter/docs/flight-modes.html>).
    [1231, 1361, 1491, 1621, 1750].iter().filter(|&&bound| pulse_us >= bound).count()
}

/// −1..=1 of a centred stick.
fn centred(pulse_us: u16, channel: Channel) -> f64 {
    let offset = f64::from(pulse_us) - channel.trim_us;
    let (dead, sign) = (channel.dead_zone_us, if channel.reversed { -1.0 } else { 1.0 });
    let value = if offset > dead {
        (offset - dead) / (channel.max_us - channel.trim_us - dead).max(1.0)
    } else if offset < -dead {
        (offset + dead) / (channel.trim_us - channel.min_us - dead).max(1.0)
    } else {
        0.0
    };
    value.clamp(-1.0, 1.0) * sign
}

/// 0..=1 of a throttle stick.
fn ranged(pulse_us: u16, channel: Channel) -> f64 {
    let pulse = if channel.reversed {
        channel.max_us + channel.min_us - f64::from(pulse_us)
    } else {
        f64::from(pulse_us)
    };
    let low = channel.min_us + channel.dead_zone_us;
    ((pulse - low) / (channel.max_us - low).max(1.0)).clamp(0.0, 1.0)
}

impl FlightController {
    /// Takes overrides: zero gives a channel back, 65535 leaves it as it is. They count as a sign of life
    /// of the ground station, as 3.5.7 has it.
    pub(super) fn handle_rc_override(&mut self, m: &RC_CHANNELS_OVERRIDE_DATA) {
        let pulses = [
            m.chan1_raw,
            m.chan2_raw,
            m.chan3_raw,
            m.chan4_raw,
            m.chan5_raw,
            m.chan6_raw,
            m.chan7_raw,
            m.chan8_raw,
        ];
        for (slot, pulse_us) in self.rc.overrides.iter_mut().zip(pulses) {
            match pulse_us {
                0 => *slot = None,
                u16::MAX => {}
                _ => *slot = Some(Override { pulse_us, heard_at: self.now }),
            }
        }
        self.failsafes.on_ground_station_heartbeat(self.now);
    }

    pub(super) fn update_rc(&mut self) {
        // 4.x calls this time RC_OVERRIDE_TIME, −1 for ever. 3.5.7 has no such time of its own: there the
        // overrides stay until the ground station falls silent; set −1 to fly that.
        let hold_s = self.parameters.get(Parameter::RC_OVERRIDE_TIME);
        if hold_s >= 0.0 {
            let hold = Duration::from_millis((hold_s.min(1e6) * 1e3) as u64);
            let now = self.now;
            for slot in &mut self.rc.overrides {
                *slot = slot.filter(|o| now.since(o.heard_at) < hold);
            }
        }
        let receiver = self.rc.receiver.unwrap_or(self.rc.effective);
        for (i, pulse) in self.rc.effective.0.iter_mut().enumerate() {
            *pulse = self.rc.overrides[i].map_or(receiver.0[i], |o| o.pulse_us);
        }
        if self.throttle_stick() > THROTTLE_DOWN {
            self.rc.throttle_up_at = Some(self.now);
        }
        self.update_switch();
    }

    fn update_switch(&mut self) {
        let received = self.rc.lost_at.is_none() || self.rc.overrides[SWITCH].is_some();
        let position = switch_position(self.rc.effective.0[SWITCH]);
        if !received || position != self.rc.switch_candidate.0 {
            self.rc.switch_candidate = (position, self.now);
        }
        if position != self.rc.switch && self.now.since(self.rc.switch_candidate.1) >= SWITCH_DEBOUNCE {
            self.rc.switch = position;
            if let Some(mode) = Mode::from_number(self.parameters.switch_mode(position)) {
                self.set_mode(mode);
            }
        }
    }

    fn mapped(&self, which: Parameter) -> usize {
        (self.parameters.get(which) as usize).clamp(1, CHANNELS)
    }

    /// The sticks as calibration and mapping give them. Where one is enough, ask for that one: some are read
    /// at in every tick.
    pub(super) fn sticks(&self) -> Sticks {
        Sticks {
            roll: self.centred_stick(Parameter::RCMAP_ROLL),
            pitch: self.centred_stick(Parameter::RCMAP_PITCH),
            throttle: self.throttle_stick(),
            yaw: self.yaw_stick(),
        }
    }

    /// The throttle stick alone, 0..=1.
    pub(super) fn throttle_stick(&self) -> f64 {
        let (pulse, channel) = self.pulse(Parameter::RCMAP_THROTTLE);
        ranged(pulse, channel)
    }

    /// The yaw stick alone, −1..=1.
    pub(super) fn yaw_stick(&self) -> f64 {
        self.centred_stick(Parameter::RCMAP_YAW)
    }

    fn centred_stick(&self, which: Parameter) -> f64 {
        let (pulse, channel) = self.pulse(which);
        centred(pulse, channel)
    }

    fn pulse(&self, which: Parameter) -> (u16, Channel) {
        let number = self.mapped(which);
        (self.rc.effective.0[number - 1], self.parameters.channel(number))
    }

    /// The pulse width on the throttle channel.
    pub(super) fn throttle_pulse_us(&self) -> f64 {
        f64::from(self.rc.effective.0[self.mapped(Parameter::RCMAP_THROTTLE) - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::Profile;

    #[test]
    fn switch_positions_are_arducopters() {
        let positions: Vec<usize> =
            [1000, 1230, 1295, 1425, 1555, 1685, 1875].into_iter().map(switch_position).collect();
        assert_eq!(positions, [0, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn dead_zones_and_ends_of_the_sticks() {
        let p = Parameters::new(Profile::Copter357);
        assert_eq!(centred(1515, p.channel(1)), 0.0);
        assert_eq!(centred(2000, p.channel(1)), 1.0);
        assert_eq!(centred(1000, p.channel(1)), -1.0);
        assert_eq!(ranged(1030, p.channel(3)), 0.0);
        assert_eq!(ranged(2000, p.channel(3)), 1.0);
        assert!((ranged(1515, p.channel(3)) - 0.5).abs() < 1e-9);
    }
}
