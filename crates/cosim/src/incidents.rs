//! What happens to an aircraft that a program flies: done to its physics, to what its sensors measure, to its receiver, or by a
//! parameter of the program, as a ground station would set it.
//!
//! | incident | what is done |
//! |---|---|
//! | motors fail | our physics has no thrust any more |
//! | the pilot takes it | the transmitter is there, sticks in the middle; `FLTMODE5` or `FLTMODE6` is set, whichever the switch does not stand at, and once that is answered and the switch has rested, it is turned there |
//! | transmitter lost | the receiver delivers a throttle below `FS_THR_VALUE`, as receivers are configured to |
//! | battery | our physics has that charge left. The program's monitor is made to measure what our physics has used and its voltage: once a second a current is added to the one that SITL simulates (`BATT_AMP_OFFSET`), so that both have used the same a second later, and `SIM_BATT_VOLTAGE` is set |
//! | satellites lost | `SIM_GPS_DISABLE`, `SIM_GPS1_ENABLE` |
//! | the position drifts | its sensors measure it elsewhere |
//!
//! A parameter is set again each second until the program answers with its value, and after a restart: one that does not ends the
//! flight.
//!
//! It restarts in [`crate::copter`], which has its process. An estimate that diverges, a program that is stuck and garbled texts are
//! not done to a program.

use anyhow::{Result, anyhow, ensure};
use wingbeat_autopilot::codec::{MavHeader, encode_v1};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{MavMessage, MavParamType, PARAM_SET_DATA};
use wingbeat_geo::DVec3;
use wingbeat_sim::autopilot::Incident;
use wingbeat_sim::flight_controller::RcChannels;
use wingbeat_sim::motion::{Battery, BatteryParameters};
use wingbeat_sim::rigid::{MOTORS, Rigid};
use wingbeat_sim::rng::{self, Pcg64Mcg};
use wingbeat_sim::sensors::{ImuNoise, PositionError};

use crate::proxy::State;

/// The channel of the throttle, and what a receiver delivers there without its transmitter: below 975 µs (`FS_THR_VALUE`).
const THROTTLE: usize = 2;
const THROTTLE_LOST_US: u16 = 950;
/// The channel of the mode switch (`FLTMODE_CH` 5), and the pulses of its fifth and sixth position.
const SWITCH: usize = 4;
const SWITCH_US: [u16; 2] = [1685, 1800];
/// From here on it is the sixth.
const SIXTH_FROM_US: u16 = 1750;
/// A switch has rested after so long, seconds: ArduCopter takes no notice of a position that it has for less than 0.2 s.
const RESTS_S: f64 = 0.3;
/// From so long after its start on a program measures its battery: while it initialises it takes parameters and measures nothing.
const MEASURES_FROM_S: f64 = 10.0;
/// Its monitor is told so often, seconds.
const TOLD_EACH_S: f64 = 1.0;
/// What it is told is no farther from what it was told, volts and amperes.
const TOLD_WITHIN_V: f64 = 0.1;
const TOLD_WITHIN_A: f64 = 0.5;
/// Of the monitor, amperes for each volt at its pin, as SITL's pin wants it: it is set where a battery is kept.
pub const AMP_PER_VOLT: f64 = 17.0;
/// The parameter by which it is told to add a current.
const AMP_OFFSET: &str = "BATT_AMP_OFFSET";
/// What SITL of 3.5 simulates at the full throttle of its third output: a current, and by how much the voltage sags. (`SITL_State.cpp`)
const FULL_THROTTLE_A: f64 = 50.0;
const FULL_THROTTLE_V: f64 = 0.7;
const THROTTLE_OUTPUT: usize = 2;
/// A parameter that is not answered is set again after so long, seconds, and so often.
const SET_EACH_S: f64 = 1.0;
const SET_MOST: u8 = 30;
/// A ground station, as which parameters are set.
const GROUND_STATION: MavHeader = MavHeader { system_id: 255, component_id: 190, sequence: 0 };

/// What an aircraft's sensors are off by, and what is known of its battery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sensors {
    /// Standard deviation of the wandering position error, metres.
    pub position_m: f64,
    /// Of gyroscopes and accelerometers.
    pub imu: ImuNoise,
    /// What the errors are drawn from.
    pub seed: u64,
    /// The charge of a full battery as the program has it (`BATT_CAPACITY`), mAh; none where the battery has no end, and nothing of it is told.
    pub battery_mah: Option<f64>,
}

/// The program's battery monitor.
#[derive(Debug)]
struct Monitor {
    /// As the program has it; none where it has no end.
    capacity_mah: Option<f64>,
    /// Whether the program simulates what its motors draw.
    has_current: bool,
    /// What it has measured since it began.
    used_mah: f64,
    throttle: f64,
    /// What it was told to add, and the voltage; none where it does not know ours.
    told_a: f64,
    told_v: Option<f64>,
    /// What it has taken of that, and what `used_mah` has too much where it takes no more.
    taken_a: f64,
    untaken_mah: f64,
    /// When it is told next, seconds.
    due_s: f64,
}

impl Monitor {
    fn simulated_a(&self) -> f64 {
        if self.has_current { FULL_THROTTLE_A * self.throttle } else { 0.0 }
    }

    /// So much time passes with these outputs.
    fn step(&mut self, dt_s: f64, outputs: [f64; MOTORS]) {
        self.throttle = outputs[THROTTLE_OUTPUT].clamp(0.0, 1.0);
        self.used_mah += (self.simulated_a() + self.told_a) * dt_s / 3.6;
        self.untaken_mah += (self.told_a - self.taken_a) * dt_s / 3.6;
    }

    /// It has taken what it was told to add.
    fn takes(&mut self) {
        (self.taken_a, self.untaken_mah) = (self.told_a, 0.0);
    }

    /// What it is to be told of our physics' battery, amperes and volts, where that is something else.
    fn tell(&mut self, time_s: f64, battery: &Battery) -> (Option<f64>, Option<f64>) {
        if self.capacity_mah.is_none() || time_s < self.due_s {
            return (None, None);
        }
        self.due_s = time_s + TOLD_EACH_S;
        self.used_mah -= std::mem::take(&mut self.untaken_mah);
        // What it has not taken is told again otherwise, or it would be repeated.
        let is_untaken = self.told_a != self.taken_a;
        self.told_a = self.taken_a;
        let left_mah = battery.used_mah() - self.used_mah;
        let amperes = battery.current_a() - self.simulated_a() + left_mah * 3.6 / TOLD_EACH_S;
        let sags_v = if self.has_current { FULL_THROTTLE_V * self.throttle } else { 0.0 };
        let volts = battery.voltage_v() + sags_v;
        let is_other_a = is_untaken || (amperes - self.told_a).abs() > TOLD_WITHIN_A;
        let is_other_v = self.told_v.is_none_or(|told_v| (volts - told_v).abs() > TOLD_WITHIN_V);
        if is_other_a {
            self.told_a = amperes;
        }
        if is_other_v {
            self.told_v = Some(volts);
        }
        (is_other_a.then_some(amperes), is_other_v.then_some(volts))
    }
}

/// A parameter that is set: the names that versions have for it, each with its value.
#[derive(Debug)]
struct Setting {
    names: Vec<(&'static str, f32)>,
    is_answered: bool,
    /// So often it was set without an answer, and when it is set again, seconds.
    sent: u8,
    due_s: f64,
}

/// What has happened to one aircraft.
#[derive(Debug)]
pub(crate) struct Incidents {
    sensors: Sensors,
    error: PositionError,
    imu: Pcg64Mcg,
    have_motors_failed: bool,
    /// What the transmitter sends, or sent last, and whether it does.
    channels: RcChannels,
    is_silent: bool,
    /// What a pilot who took it turned the switch to, and when, seconds; the mode that he turns it for once it has rested.
    taken_us: Option<u16>,
    turned_at_s: f64,
    wanted: Option<Mode>,
    is_transmitter_lost: bool,
    /// The receiver is to be told.
    is_received_anew: bool,
    monitor: Monitor,
    /// Every parameter that was set.
    settings: Vec<Setting>,
    sequence: u8,
}

impl Incidents {
    /// `has_current`: the program simulates what its motors draw.
    pub(crate) fn new(sensors: Sensors, has_current: bool) -> Self {
        Self {
            error: PositionError::new(rng::child(sensors.seed, "position", 0)),
            imu: rng::child(sensors.seed, "imu", 0),
            have_motors_failed: false,
            channels: RcChannels::IDLE,
            is_silent: false,
            taken_us: None,
            turned_at_s: f64::NEG_INFINITY,
            wanted: None,
            is_transmitter_lost: false,
            is_received_anew: false,
            monitor: Monitor {
                capacity_mah: sensors.battery_mah,
                has_current,
                used_mah: 0.0,
                throttle: 0.0,
                told_a: 0.0,
                told_v: None,
                taken_a: 0.0,
                untaken_mah: 0.0,
                due_s: MEASURES_FROM_S,
            },
            settings: Vec::new(),
            sequence: 0,
            sensors,
        }
    }

    /// It happens now.
    pub(crate) fn suffer(&mut self, incident: Incident, body: &mut Rigid) {
        match incident {
            Incident::MotorsFail => self.have_motors_failed = true,
            Incident::PilotTakes(mode) => self.wanted = Some(mode),
            Incident::TransmitterLost(lost) => {
                (self.is_transmitter_lost, self.is_received_anew) = (lost, true);
            }
            Incident::BatteryAt { percent } => {
                let capacity_mah = match self.monitor.capacity_mah {
                    Some(capacity_mah) => capacity_mah,
                    None => self.give_battery(),
                };
                body.set_charge(capacity_mah, percent);
            }
            Incident::GnssLost(lost) => self.set(&[
                ("SIM_GPS_DISABLE", f64::from(u8::from(lost))),
                ("SIM_GPS1_ENABLE", f64::from(u8::from(!lost))),
            ]),
            Incident::PositionDrifts { to_m, within } => self.error.drift_to(to_m, within),
            // The process and the wind belong to the driver; the others are refused.
            Incident::Restarts
            | Incident::WindShifts { .. }
            | Incident::EstimateDiverges(_)
            | Incident::Stuck(_)
            | Incident::TextsGarbled(_) => {}
        }
    }

    /// The program has started again with the parameters that it had: its receiver knows nothing, and its monitor has a full battery.
    pub(crate) fn restarted(&mut self, was_flying: bool) {
        self.have_motors_failed |= was_flying;
        (self.is_received_anew, self.turned_at_s) = (true, f64::NEG_INFINITY);
        // It may have ended before it had stored what it answered.
        for setting in &mut self.settings {
            (setting.is_answered, setting.sent, setting.due_s) = (false, 0, 0.0);
        }
        let monitor = &mut self.monitor;
        (monitor.used_mah, monitor.untaken_mah) = (0.0, 0.0);
        (monitor.told_v, monitor.due_s) = (None, MEASURES_FROM_S);
    }

    /// A battery with an end: its capacity.
    fn give_battery(&mut self) -> f64 {
        let capacity_mah = BatteryParameters::default().capacity_mah;
        self.monitor.capacity_mah = Some(capacity_mah);
        self.set(&[("BATT_AMP_PERVOLT", AMP_PER_VOLT), ("BATT_AMP_PERVLT", AMP_PER_VOLT)]);
        self.set(&[("BATT_CAPACITY", capacity_mah)]);
        capacity_mah
    }

    /// So much time passes with these outputs of the program.
    pub(crate) fn step(&mut self, dt_s: f64, outputs: [f64; MOTORS]) {
        self.monitor.step(dt_s, outputs);
    }

    /// The pilot turns the switch, if he wants to, it has rested, and the program knows the mode of where it goes.
    fn turn(&mut self, time_s: f64) {
        let Some(mode) = self.wanted.filter(|_| time_s >= self.turned_at_s + RESTS_S) else { return };
        let RcChannels(pulses) = self.transmitted();
        let stands_sixth = pulses[SWITCH] >= SIXTH_FROM_US;
        let (name, to) = if stands_sixth { ("FLTMODE5", 0) } else { ("FLTMODE6", 1) };
        if !self.is_set(name, f64::from(mode.number())) {
            return;
        }
        (self.wanted, self.turned_at_s) = (None, time_s);
        self.channels = RcChannels::HOVER;
        self.taken_us = Some(SWITCH_US[to]);
        // Who takes it has a transmitter.
        (self.is_silent, self.is_transmitter_lost, self.is_received_anew) = (false, false, true);
    }

    /// The pilot's sticks, or none where the transmitter falls silent.
    pub(crate) fn transmit(&mut self, channels: Option<RcChannels>) {
        self.channels = channels.unwrap_or(self.channels);
        (self.is_silent, self.is_received_anew) = (channels.is_none(), true);
    }

    fn transmitted(&self) -> RcChannels {
        let RcChannels(mut pulses) = self.channels;
        pulses[SWITCH] = self.taken_us.unwrap_or(pulses[SWITCH]);
        RcChannels(pulses)
    }

    /// What the receiver delivers, where that has to be told.
    pub(crate) fn received(&mut self) -> Option<RcChannels> {
        let RcChannels(mut pulses) = self.transmitted();
        if self.is_transmitter_lost || self.is_silent {
            pulses[THROTTLE] = THROTTLE_LOST_US;
        }
        std::mem::take(&mut self.is_received_anew).then_some(RcChannels(pulses))
    }

    /// What the serial port is to bring the program at this time, behind what else it brings. What its receiver delivers is known after it.
    ///
    /// # Errors
    /// The program does not answer what it was set.
    pub(crate) fn bytes(&mut self, time_s: f64, body: &Rigid) -> Result<Vec<u8>> {
        self.turn(time_s);
        let (amperes, volts) = self.monitor.tell(time_s, body.battery());
        if let Some(amperes) = amperes {
            self.set(&[(AMP_OFFSET, -amperes / AMP_PER_VOLT)]);
        }
        if let Some(volts) = volts {
            self.set(&[("SIM_BATT_VOLTAGE", volts)]);
        }
        let mut bytes = Vec::new();
        for setting in self.settings.iter_mut().filter(|set| !set.is_answered && time_s >= set.due_s) {
            let names = || setting.names.iter().map(|(name, value)| format!("{name} {value}"));
            ensure!(
                setting.sent < SET_MOST,
                "parameters: found no answer to {SET_MOST} times {}, expected one: the program does not take what happens to it",
                names().collect::<Vec<_>>().join(" or ")
            );
            (setting.sent, setting.due_s) = (setting.sent + 1, time_s + SET_EACH_S);
            for (name, value) in &setting.names {
                bytes.extend(param_set(self.sequence, name, *value)?);
                self.sequence = self.sequence.wrapping_add(1);
            }
        }
        Ok(bytes)
    }

    /// The program says what a parameter is.
    pub(crate) fn answered(&mut self, name: &str, value: f32) {
        for setting in self.settings.iter_mut().filter(|set| !set.is_answered) {
            setting.is_answered = setting.names.contains(&(name, value));
            if setting.is_answered && name == AMP_OFFSET {
                self.monitor.takes();
            }
        }
    }

    /// A parameter is to be set, by the names that versions have for it; instead of what it was to be.
    fn set(&mut self, names: &[(&'static str, f64)]) {
        let names: Vec<(&str, f32)> = names.iter().map(|(name, value)| (*name, *value as f32)).collect();
        let before = self.settings.iter().position(|set| set.names[0].0 == names[0].0);
        let before = before.map(|at| self.settings.remove(at));
        // One that answers nothing is not forgotten for what it is told next.
        let sent = before.filter(|before| !before.is_answered).map_or(0, |before| before.sent);
        self.settings.push(Setting { names, is_answered: false, sent, due_s: 0.0 });
    }

    /// Whether the program has answered that it is that; it is set where it was not.
    fn is_set(&mut self, name: &'static str, value: f64) -> bool {
        let names = [(name, value as f32)];
        match self.settings.iter().find(|setting| setting.names == names) {
            Some(setting) => setting.is_answered,
            None => {
                self.set(&[(name, value)]);
                false
            }
        }
    }

    /// What the motors do of what they are told.
    pub(crate) fn outputs(&self, outputs: [f64; MOTORS]) -> [f64; MOTORS] {
        if self.have_motors_failed { [0.0; MOTORS] } else { outputs }
    }

    /// [`POSITION_STEP_S`](wingbeat_sim::sensors::POSITION_STEP_S) pass in flight.
    pub(crate) fn wander(&mut self) {
        self.error.step(self.sensors.position_m);
    }

    /// What the sensors measure of what is so.
    pub(crate) fn measured(&mut self, truth: State, thrust_share: f64) -> State {
        let off = self.error.wandering() + self.error.drift();
        let (rate, force) = self.sensors.imu.draw(&mut self.imu, thrust_share);
        State {
            rate_rad_s: truth.rate_rad_s + rate,
            force_m_s2: truth.force_m_s2 + force,
            position_ned: truth.position_ned + DVec3::new(off.y, off.x, -off.z),
            ..truth
        }
    }
}

/// A ground station sets a parameter of whichever aircraft is at the other end. A program that does not have it says nothing.
fn param_set(sequence: u8, name: &str, value: f32) -> Result<heapless::Vec<u8, 64>> {
    let mut param_id = [0; 16];
    param_id[..name.len()].copy_from_slice(name.as_bytes());
    let message = MavMessage::PARAM_SET(PARAM_SET_DATA {
        param_value: value,
        target_system: 0,
        target_component: 0,
        param_id: param_id.into(),
        param_type: MavParamType::MAV_PARAM_TYPE_REAL32,
    });
    let mut frame = heapless::Vec::new();
    let header = MavHeader { sequence, ..GROUND_STATION };
    encode_v1(header, &message, &mut frame).map_err(|_| anyhow!("{name}: a frame that is too long"))?;
    Ok(frame)
}

/// Whether it may happen to a program.
///
/// # Errors
/// Why not.
pub fn check(incident: Incident) -> Result<(), String> {
    match incident {
        Incident::EstimateDiverges(_) | Incident::Stuck(_) | Incident::TextsGarbled(_) => Err(format!(
            "found {incident:?}, expected what happens to an ArduCopter program: simulated flight controllers alone fail so"
        )),
        Incident::MotorsFail
        | Incident::Restarts
        | Incident::PilotTakes(_)
        | Incident::TransmitterLost(_)
        | Incident::BatteryAt { .. }
        | Incident::GnssLost(_)
        | Incident::WindShifts { .. }
        | Incident::PositionDrifts { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_autopilot::codec::{Decoder, text};
    use wingbeat_geo::{DQuat, Duration};
    use wingbeat_sim::rigid::Body;

    use super::*;

    fn body() -> Rigid {
        Rigid::new(Body::default(), BatteryParameters::default(), 0.0)
    }

    /// The parameters that are set, with their values.
    fn set(bytes: &[u8]) -> Vec<(String, f32)> {
        let (mut decoder, mut all) = (Decoder::default(), Vec::new());
        decoder.push(bytes, |frame| match frame.message {
            MavMessage::PARAM_SET(set) => {
                assert_eq!((frame.header.system_id, set.target_system), (255, 0));
                all.push((text(&*set.param_id).to_owned(), set.param_value));
            }
            other => panic!("{other:?}"),
        });
        all
    }

    /// What a program is set at this time, which answers all of it.
    fn told(incidents: &mut Incidents, time_s: f64, body: &Rigid) -> Vec<(String, f32)> {
        let told = set(&incidents.bytes(time_s, body).unwrap());
        told.iter().for_each(|(name, value)| incidents.answered(name, *value));
        told
    }

    #[test]
    fn a_parameter_is_set_until_it_is_answered() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        incidents.suffer(Incident::GnssLost(true), &mut body);
        let both = [("SIM_GPS_DISABLE".to_owned(), 1.0), ("SIM_GPS1_ENABLE".to_owned(), 0.0)];
        for (time_s, is_set) in [(5.0, true), (5.9, false), (6.0, true), (6.5, false)] {
            let set = set(&incidents.bytes(time_s, &body).unwrap());
            assert_eq!(set, if is_set { both.to_vec() } else { Vec::new() }, "{time_s}");
            // Of before it was set, and another's.
            incidents.answered("SIM_GPS_DISABLE", 0.0);
            incidents.answered("SIM_GPS2_ENABLE", 0.0);
        }
        // A program has one of the names.
        incidents.answered("SIM_GPS1_ENABLE", 0.0);
        assert!(incidents.bytes(7.0, &body).unwrap().is_empty());
        // What it is to be now replaces what it was to be; one that never answers ends the flight.
        incidents.suffer(Incident::GnssLost(false), &mut body);
        incidents.suffer(Incident::GnssLost(true), &mut body);
        let sent =
            (0..30).filter(|i| set(&incidents.bytes(8.0 + f64::from(*i), &body).unwrap()) == both).count();
        assert_eq!(sent, 30);
        let why = incidents.bytes(38.0, &body).unwrap_err().to_string();
        assert!(
            why.starts_with(
                "parameters: found no answer to 30 times SIM_GPS_DISABLE 1 or SIM_GPS1_ENABLE 0, "
            ),
            "{why}"
        );
        // Nor is that forgotten for what it is told next.
        incidents.suffer(Incident::GnssLost(false), &mut body);
        assert!(incidents.bytes(38.0, &body).is_err());
        // A program that has started again is asked anew, also for what it had answered: it may not have stored it.
        for _ in 0..2 {
            incidents.restarted(false);
            let told = told(&mut incidents, 0.0, &body);
            assert_eq!(told, [("SIM_GPS_DISABLE".to_owned(), 0.0), ("SIM_GPS1_ENABLE".to_owned(), 1.0)]);
            assert!(incidents.bytes(1.0, &body).unwrap().is_empty());
        }
    }

    #[test]
    fn a_pilot_turns_the_switch_to_where_it_does_not_stand_once_it_has_rested() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        assert_eq!(incidents.received(), None);
        // Where sticks move, their switch stands at the fifth position.
        let RcChannels(mut sticks) = RcChannels::IDLE;
        (sticks[THROTTLE], sticks[SWITCH]) = (1700, SWITCH_US[0]);
        incidents.transmit(Some(RcChannels(sticks)));
        assert_eq!(incidents.received(), Some(RcChannels(sticks)));
        for (time_s, mode, name, pulse_us) in [
            (0.0, Mode::Loiter, "FLTMODE6", 1800),
            (0.5, Mode::Land, "FLTMODE5", 1685),
            (9.0, Mode::Land, "FLTMODE6", 1800),
        ] {
            incidents.suffer(Incident::PilotTakes(mode), &mut body);
            assert_eq!(told(&mut incidents, time_s, &body), [(name.to_owned(), mode.number() as f32)]);
            assert_eq!(incidents.received(), None, "the program knew its mode only when it had answered");
            assert_eq!(told(&mut incidents, time_s + 0.01, &body), []);
            let RcChannels(pulses) = incidents.received().unwrap();
            assert_eq!((pulses[THROTTLE], pulses[SWITCH]), (1500, pulse_us));
            assert_eq!(incidents.received(), None, "told once");
        }
        // Two within the time that a switch rests: the second waits, or the switch would stand where it stood.
        incidents.suffer(Incident::PilotTakes(Mode::AltHold), &mut body);
        assert_eq!(told(&mut incidents, 9.1, &body), []);
        assert_eq!(told(&mut incidents, 9.32, &body), [("FLTMODE5".to_owned(), 2.0)]);
        assert_eq!(told(&mut incidents, 9.33, &body), []);
        // A mode that the program has there already.
        incidents.suffer(Incident::PilotTakes(Mode::Land), &mut body);
        assert_eq!(told(&mut incidents, 20.0, &body), []);
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!(pulses[SWITCH], 1800);
        // Sticks that move on do not turn it back.
        incidents.transmit(Some(RcChannels(sticks)));
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!((pulses[THROTTLE], pulses[SWITCH]), (1700, 1800));
    }

    #[test]
    fn without_its_transmitter_a_receiver_delivers_a_throttle_below_the_failsafes() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        // One that falls silent and sends again, and one that is lost.
        incidents.transmit(None);
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!(pulses[THROTTLE], 950);
        incidents.transmit(Some(RcChannels::HOVER));
        assert_eq!(incidents.received(), Some(RcChannels::HOVER));
        incidents.suffer(Incident::TransmitterLost(true), &mut body);
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!(pulses[THROTTLE], 950);
        incidents.suffer(Incident::TransmitterLost(false), &mut body);
        assert_eq!(incidents.received(), Some(RcChannels::HOVER));
        // A pilot who takes it then has one.
        incidents.suffer(Incident::TransmitterLost(true), &mut body);
        incidents.transmit(None);
        incidents.suffer(Incident::PilotTakes(Mode::Loiter), &mut body);
        told(&mut incidents, 0.0, &body);
        told(&mut incidents, 0.01, &body);
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!((pulses[THROTTLE], pulses[SWITCH]), (1500, 1685));
    }

    /// What a monitor has used after so many seconds in which the program's current flows beside what it is told.
    /// It takes none of the first `lost` times that it is told.
    fn used_mah(
        incidents: &mut Incidents,
        body: &mut Rigid,
        seconds: usize,
        outputs: [f64; MOTORS],
        mut lost: usize,
    ) -> f64 {
        let throttle = outputs[THROTTLE_OUTPUT];
        let own_a = if incidents.monitor.has_current { 50.0 * throttle } else { 0.0 };
        let (mut added_a, mut used_mah) = (incidents.monitor.told_a, incidents.monitor.used_mah);
        for step in 0..seconds * 400 {
            if step % 4 == 0 {
                for (name, value) in set(&incidents.bytes(100.0 + step as f64 * 0.0025, body).unwrap()) {
                    if name == "BATT_AMP_OFFSET" && lost > 0 {
                        lost -= 1;
                        continue;
                    }
                    incidents.answered(&name, value);
                    if name == "BATT_AMP_OFFSET" {
                        added_a = -f64::from(value) * 17.0;
                    }
                }
            }
            body.step(0.0025, outputs, DVec3::ZERO);
            incidents.step(0.0025, outputs);
            used_mah += (own_a + added_a) * 0.0025 / 3.6;
        }
        incidents.monitor.due_s = 0.0;
        used_mah
    }

    #[test]
    fn a_monitor_measures_what_our_physics_has_used() {
        let sensors = Sensors { battery_mah: Some(5_000.0), ..Sensors::default() };
        for has_current in [true, false] {
            let parameters = BatteryParameters { capacity_mah: 5_000.0, ..BatteryParameters::default() };
            let mut body = Rigid::new(Body::default(), parameters, 0.0);
            let mut incidents = Incidents::new(sensors, has_current);
            assert_eq!(told(&mut incidents, 9.9, &body), [], "the program does not measure yet");
            let mut close = |seconds, percent: Option<f64>, lost| {
                if let Some(percent) = percent {
                    incidents.suffer(Incident::BatteryAt { percent }, &mut body);
                }
                let used_mah = used_mah(&mut incidents, &mut body, seconds, [0.55; MOTORS], lost);
                let off_mah = used_mah - body.battery().used_mah();
                assert!(off_mah.abs() < 10.0, "{has_current} {percent:?}: {off_mah} mAh");
            };
            close(120, None, 0);
            close(3, Some(40.0), 0);
            // Again at once, and one that is above what is left.
            close(3, Some(20.0), 0);
            close(3, Some(90.0), 0);
            // One that the program does not take at first.
            close(6, Some(50.0), 2);
            // A monitor that begins again with a full battery.
            incidents.restarted(false);
            assert_eq!(told(&mut incidents, 0.0, &body).len(), 2, "what it had been set");
            assert_eq!(told(&mut incidents, 9.9, &body), [], "the program does not measure yet");
            let used_mah = used_mah(&mut incidents, &mut body, 3, [0.55; MOTORS], 0);
            assert!((used_mah - body.battery().used_mah()).abs() < 10.0, "{used_mah} mAh");
        }
    }

    #[test]
    fn a_current_that_was_not_taken_is_not_repeated_when_it_is_none_any_more() {
        let sensors = Sensors { battery_mah: Some(5_000.0), ..Sensors::default() };
        let (mut incidents, body) = (Incidents::new(sensors, false), body());
        // More than our physics has used: it is to measure less.
        incidents.monitor.used_mah = 10.0;
        let set_a =
            |bytes: Vec<u8>| set(&bytes).iter().find(|(name, _)| name == AMP_OFFSET).map(|(_, v)| -v * 17.0);
        assert!(set_a(incidents.bytes(10.0, &body).unwrap()).unwrap() < -30.0);
        incidents.monitor.used_mah = 0.0;
        let now_a = set_a(incidents.bytes(11.0, &body).unwrap()).unwrap();
        assert!(now_a.abs() < 1.0, "{now_a} A");
    }

    #[test]
    fn a_voltage_sags_once() {
        let sensors = Sensors { battery_mah: Some(10_000.0), ..Sensors::default() };
        let mut body = body();
        body.step(0.1, [0.6; MOTORS], DVec3::ZERO);
        for (has_current, more_v) in [(true, 0.7 * 0.6), (false, 0.0)] {
            let mut incidents = Incidents::new(sensors, has_current);
            incidents.step(0.0025, [0.6; MOTORS]);
            let told = told(&mut incidents, 10.0, &body);
            let volts = (body.battery().voltage_v() + more_v) as f32;
            assert!(told.contains(&("SIM_BATT_VOLTAGE".to_owned(), volts)), "{told:?}");
        }
    }

    #[test]
    fn a_battery_without_end_becomes_one_with_an_end_and_what_was_used_counts_for_nothing() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        // Five minutes of 27 A.
        for _ in 0..120_000 {
            incidents.step(0.0025, [0.54; MOTORS]);
        }
        assert_eq!(told(&mut incidents, 0.0, &body), []);
        incidents.suffer(Incident::BatteryAt { percent: 60.0 }, &mut body);
        assert!((body.battery().used_mah() - 4_000.0).abs() < 1e-6);
        let told = told(&mut incidents, 11.0, &body);
        let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
        let expected =
            ["BATT_AMP_PERVOLT", "BATT_AMP_PERVLT", "BATT_CAPACITY", "BATT_AMP_OFFSET", "SIM_BATT_VOLTAGE"];
        assert_eq!((names, told[2].1), (expected.to_vec(), 10_000.0));
        let used_mah = used_mah(&mut incidents, &mut body, 3, [0.54; MOTORS], 0);
        assert!((used_mah - body.battery().used_mah()).abs() < 10.0, "{used_mah} mAh");
    }

    #[test]
    fn satellites_sensors_and_motors() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        incidents.suffer(Incident::GnssLost(true), &mut body);
        assert_eq!(
            told(&mut incidents, 0.0, &body),
            [("SIM_GPS_DISABLE".to_owned(), 1.0), ("SIM_GPS1_ENABLE".to_owned(), 0.0)]
        );
        incidents.suffer(
            Incident::PositionDrifts { to_m: DVec3::new(1.0, 2.0, 3.0), within: Duration::ZERO },
            &mut body,
        );
        incidents.wander();
        let truth = State {
            time_s: 0.0,
            rate_rad_s: DVec3::ZERO,
            force_m_s2: DVec3::ZERO,
            attitude: DQuat::IDENTITY,
            velocity_ned: DVec3::ZERO,
            position_ned: DVec3::new(10.0, 20.0, -30.0),
        };
        let measured = incidents.measured(truth, 0.4);
        assert_eq!(measured, State { position_ned: DVec3::new(12.0, 21.0, -33.0), ..truth });
        assert_eq!(incidents.outputs([0.5; MOTORS]), [0.5; MOTORS]);
        incidents.suffer(Incident::MotorsFail, &mut body);
        assert_eq!(incidents.outputs([0.5; MOTORS]), [0.0; MOTORS]);
        for incident in
            [Incident::Stuck(true), Incident::TextsGarbled(true), Incident::EstimateDiverges(true)]
        {
            assert!(check(incident).unwrap_err().contains("simulated flight controllers alone"));
        }
        assert_eq!(check(Incident::Restarts), Ok(()));
    }
}
