//! What happens to an aircraft that a program flies: done to its physics, to what its sensors measure, to its receiver, or by a
//! parameter of the program, as a ground station would set it.
//!
//! | incident | what is done |
//! |---|---|
//! | motors fail | our physics has no thrust any more |
//! | the pilot takes it | sticks in the middle; `FLTMODE5` or `FLTMODE6` is set, whichever the switch does not stand at, and the switch is turned there |
//! | transmitter lost | the receiver delivers a throttle below `FS_THR_VALUE`, as receivers are configured to |
//! | battery | our physics has that charge left; the program's monitor is made to measure a current that takes its charge within [`DRAIN_S`] (`BATT_AMP_OFFSET`), and the voltage of that charge (`SIM_BATT_VOLTAGE`); 4.x, whose model JSON has no current, that of our physics too |
//! | satellites lost | `SIM_GPS_DISABLE` |
//! | the position drifts | its sensors measure it elsewhere |
//!
//! It restarts in [`crate::copter`], which has its process. An estimate that diverges, a program that is stuck and garbled texts are
//! not done to a program.

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
/// The charge that the program's monitor measures is gone within this, seconds.
pub const DRAIN_S: f64 = 3.0;
/// Of the monitor, amperes for each volt at its pin, as SITL's pin wants it: it is set where a battery is kept.
pub const AMP_PER_VOLT: f64 = 17.0;
/// What is told is no farther from what our physics has, volts and amperes.
const TOLD_WITHIN_V: f64 = 0.1;
const TOLD_WITHIN_A: f64 = 2.0;
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
    /// The charge of a full battery as the program has it (`BATT_CAPACITY`), mAh; none where the battery has no end. It is told the voltage of
    /// our physics where it has one.
    pub battery_mah: Option<f64>,
}

/// The program's battery monitor while a charge is taken from it.
#[derive(Clone, Copy, Debug)]
enum Drain {
    /// Once it is known what the monitor has.
    Wanted { percent: f64 },
    /// By so much until then, seconds.
    Flows { amperes: f64, until_s: f64 },
}

/// What has happened to one aircraft.
#[derive(Debug)]
pub(crate) struct Incidents {
    sensors: Sensors,
    error: PositionError,
    imu: Pcg64Mcg,
    have_motors_failed: bool,
    /// What the transmitter sends.
    channels: RcChannels,
    /// What a pilot who took it turned the switch to.
    taken_us: Option<u16>,
    is_transmitter_lost: bool,
    is_gnss_lost: bool,
    /// The receiver is to be told.
    is_received_anew: bool,
    drain: Option<Drain>,
    battery_mah: Option<f64>,
    /// Whether the program simulates what its motors draw.
    has_current: bool,
    told_v: f64,
    told_a: f64,
    /// For the serial port.
    bytes: Vec<u8>,
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
            taken_us: None,
            is_transmitter_lost: false,
            is_gnss_lost: false,
            is_received_anew: false,
            drain: None,
            battery_mah: sensors.battery_mah,
            has_current,
            told_v: full_v(),
            told_a: 0.0,
            bytes: Vec::new(),
            sequence: 0,
            sensors,
        }
    }

    /// Whether it may happen to a program.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(incident: Incident) -> Result<(), String> {
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
            | Incident::PositionDrifts { .. } => Ok(()),
        }
    }

    /// It happens now.
    pub(crate) fn suffer(&mut self, incident: Incident, body: &mut Rigid) {
        match incident {
            Incident::MotorsFail => self.have_motors_failed = true,
            Incident::PilotTakes(mode) => self.take(mode),
            Incident::TransmitterLost(lost) => {
                (self.is_transmitter_lost, self.is_received_anew) = (lost, true);
            }
            Incident::BatteryAt { percent } => {
                body.set_charge(percent);
                self.drain = Some(Drain::Wanted { percent });
                if self.battery_mah.is_none() {
                    self.give_battery(BatteryParameters::default().capacity_mah);
                }
            }
            Incident::GnssLost(lost) => self.lose_gnss(lost),
            Incident::PositionDrifts { to_m, within } => self.error.drift_to(to_m, within),
            // Its process is another's; the others are refused.
            Incident::Restarts
            | Incident::EstimateDiverges(_)
            | Incident::Stuck(_)
            | Incident::TextsGarbled(_) => {}
        }
    }

    /// The program has started again: it knows no parameter that was set, its receiver nothing, and its monitor has a full battery.
    pub(crate) fn restarted(&mut self, was_flying: bool) {
        self.have_motors_failed |= was_flying;
        self.is_received_anew = true;
        (self.drain, self.told_v, self.told_a) = (None, full_v(), 0.0);
        self.bytes.clear();
        if let (Some(capacity_mah), None) = (self.battery_mah, self.sensors.battery_mah) {
            self.give_battery(capacity_mah);
        }
        if self.is_gnss_lost {
            self.lose_gnss(true);
        }
    }

    /// A battery with an end.
    fn give_battery(&mut self, capacity_mah: f64) {
        self.battery_mah = Some(capacity_mah);
        self.set("BATT_AMP_PERVOLT", AMP_PER_VOLT);
        self.set("BATT_CAPACITY", capacity_mah);
    }

    /// By the names of two versions: one that is set in flight is ignored where it is not known.
    fn lose_gnss(&mut self, lost: bool) {
        self.is_gnss_lost = lost;
        self.set("SIM_GPS_DISABLE", f64::from(u8::from(lost)));
        self.set("SIM_GPS1_ENABLE", f64::from(u8::from(!lost)));
    }

    fn take(&mut self, mode: Mode) {
        let RcChannels(pulses) = self.transmitted();
        let stands_sixth = pulses[SWITCH] >= SIXTH_FROM_US;
        let (name, to) = if stands_sixth { ("FLTMODE5", 0) } else { ("FLTMODE6", 1) };
        self.set(name, f64::from(mode.number()));
        self.channels = RcChannels::HOVER;
        (self.taken_us, self.is_received_anew) = (Some(SWITCH_US[to]), true);
    }

    /// The pilot's sticks.
    pub(crate) fn transmit(&mut self, channels: RcChannels) {
        (self.channels, self.is_received_anew) = (channels, true);
    }

    fn transmitted(&self) -> RcChannels {
        let RcChannels(mut pulses) = self.channels;
        pulses[SWITCH] = self.taken_us.unwrap_or(pulses[SWITCH]);
        RcChannels(pulses)
    }

    /// What the receiver delivers, where that has to be told.
    pub(crate) fn received(&mut self) -> Option<RcChannels> {
        let RcChannels(mut pulses) = self.transmitted();
        if self.is_transmitter_lost {
            pulses[THROTTLE] = THROTTLE_LOST_US;
        }
        std::mem::take(&mut self.is_received_anew).then_some(RcChannels(pulses))
    }

    /// What the serial port is to bring the program at this time, behind what else it brings; `heard_percent` is the charge that it
    /// reported last, below 0 where it estimates none.
    pub(crate) fn bytes(&mut self, time_s: f64, heard_percent: Option<i8>, body: &Rigid) -> Vec<u8> {
        match (self.drain, heard_percent, self.battery_mah) {
            (Some(Drain::Wanted { percent }), Some(heard), Some(capacity_mah)) => {
                let left_mah = capacity_mah * (f64::from(heard) - percent).max(0.0) / 100.0;
                let flows = Drain::Flows { amperes: left_mah * 3.6 / DRAIN_S, until_s: time_s + DRAIN_S };
                self.drain = (left_mah > 0.0).then_some(flows);
            }
            (Some(Drain::Flows { until_s, .. }), _, _) if time_s >= until_s => self.drain = None,
            _ => {}
        }
        if self.battery_mah.is_some() {
            self.tell(body.battery());
        }
        std::mem::take(&mut self.bytes)
    }

    /// Tells the monitor what it is to measure.
    fn tell(&mut self, battery: &Battery) {
        let volts = battery.voltage_v();
        if (volts - self.told_v).abs() > TOLD_WITHIN_V {
            self.told_v = volts;
            self.set("SIM_BATT_VOLTAGE", volts);
        }
        let amperes = match self.drain {
            Some(Drain::Flows { amperes, .. }) => amperes,
            Some(Drain::Wanted { .. }) | None if self.has_current => 0.0,
            Some(Drain::Wanted { .. }) | None => battery.current_a(),
        };
        if (amperes - self.told_a).abs() > TOLD_WITHIN_A {
            self.told_a = amperes;
            self.set("BATT_AMP_OFFSET", -amperes / AMP_PER_VOLT);
        }
    }

    /// A ground station sets a parameter. A program that does not have it says nothing.
    fn set(&mut self, name: &str, value: f64) {
        let mut param_id = [0; 16];
        param_id[..name.len()].copy_from_slice(name.as_bytes());
        let message = MavMessage::PARAM_SET(PARAM_SET_DATA {
            param_value: value as f32,
            target_system: 1,
            target_component: 1,
            param_id: param_id.into(),
            param_type: MavParamType::MAV_PARAM_TYPE_REAL32,
        });
        let mut frame = heapless::Vec::<u8, 64>::new();
        let header = MavHeader { sequence: self.sequence, ..GROUND_STATION };
        if encode_v1(header, &message, &mut frame).is_ok() {
            self.sequence = self.sequence.wrapping_add(1);
            self.bytes.extend_from_slice(&frame);
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

/// The voltage that a program with a battery is started with.
pub fn full_v() -> f64 {
    Battery::new(BatteryParameters::default()).voltage_v()
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
                assert_eq!((frame.header.system_id, set.target_system), (255, 1));
                all.push((text(&*set.param_id).to_owned(), set.param_value));
            }
            other => panic!("{other:?}"),
        });
        all
    }

    #[test]
    fn a_pilot_turns_the_switch_to_where_it_does_not_stand() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        assert_eq!(incidents.received(), None);
        // Where sticks move, their switch stands at the fifth position.
        let RcChannels(mut sticks) = RcChannels::IDLE;
        (sticks[THROTTLE], sticks[SWITCH]) = (1700, SWITCH_US[0]);
        incidents.transmit(RcChannels(sticks));
        assert_eq!(incidents.received(), Some(RcChannels(sticks)));
        for (mode, name, pulse_us) in
            [(Mode::Loiter, "FLTMODE6", 1800), (Mode::Land, "FLTMODE5", 1685), (Mode::Land, "FLTMODE6", 1800)]
        {
            incidents.suffer(Incident::PilotTakes(mode), &mut body);
            let bytes = incidents.bytes(0.0, None, &body);
            assert_eq!(set(&bytes), [(name.to_owned(), mode.number() as f32)]);
            let RcChannels(pulses) = incidents.received().unwrap();
            assert_eq!((pulses[THROTTLE], pulses[SWITCH]), (1500, pulse_us));
            assert_eq!(incidents.received(), None, "told once");
        }
        // Sticks that move on do not turn it back.
        incidents.transmit(RcChannels(sticks));
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!((pulses[THROTTLE], pulses[SWITCH]), (1700, 1800));
    }

    #[test]
    fn without_its_transmitter_a_receiver_delivers_a_throttle_below_the_failsafes() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        incidents.transmit(RcChannels::HOVER);
        incidents.suffer(Incident::TransmitterLost(true), &mut body);
        let RcChannels(pulses) = incidents.received().unwrap();
        assert_eq!(pulses[THROTTLE], 950);
        incidents.suffer(Incident::TransmitterLost(false), &mut body);
        assert_eq!(incidents.received(), Some(RcChannels::HOVER));
    }

    #[test]
    fn a_charge_is_taken_within_its_time_once_the_monitor_is_known() {
        let sensors = Sensors { battery_mah: Some(5_000.0), ..Sensors::default() };
        let (mut incidents, mut body) = (Incidents::new(sensors, true), body());
        assert!(incidents.bytes(0.0, None, &body).is_empty());
        incidents.suffer(Incident::BatteryAt { percent: 40.0 }, &mut body);
        assert!((body.battery().remaining_percent() - 40.0).abs() < 1e-9);
        let volts = body.battery().voltage_v() as f32;
        assert_eq!(set(&incidents.bytes(1.0, None, &body)), [("SIM_BATT_VOLTAGE".to_owned(), volts)]);
        // 60 % of 5 Ah in 3 s are 3600 A, at 17 A for each volt.
        let began = set(&incidents.bytes(1.01, Some(100), &body));
        assert_eq!(began, [("BATT_AMP_OFFSET".to_owned(), -3_600.0 / 17.0)]);
        assert!(incidents.bytes(4.0, Some(45), &body).is_empty());
        let ended = set(&incidents.bytes(4.01, Some(40), &body));
        assert_eq!(ended, [("BATT_AMP_OFFSET".to_owned(), -0.0)]);
        // More than it has is not taken, nor anything where no charge is estimated.
        for heard in [30, -1] {
            incidents.suffer(Incident::BatteryAt { percent: 40.0 }, &mut body);
            assert!(incidents.bytes(9.0, Some(heard), &body).is_empty());
            assert!(incidents.bytes(99.0, Some(heard), &body).is_empty());
        }
    }

    #[test]
    fn a_battery_without_end_becomes_one_with_an_end() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        incidents.suffer(Incident::BatteryAt { percent: 15.0 }, &mut body);
        let told = set(&incidents.bytes(0.0, None, &body));
        let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["BATT_AMP_PERVOLT", "BATT_CAPACITY", "SIM_BATT_VOLTAGE"]);
        assert_eq!(told[1].1, 10_000.0);
        // A program that restarts has forgotten it, and that there are no satellites.
        incidents.suffer(Incident::GnssLost(true), &mut body);
        incidents.bytes(1.0, Some(15), &body);
        assert_eq!((incidents.bytes(2.0, Some(15), &body).len(), incidents.received()), (0, None));
        incidents.restarted(true);
        assert_eq!(incidents.outputs([0.5; MOTORS]), [0.0; MOTORS]);
        let told = set(&incidents.bytes(0.0, None, &body));
        let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            names,
            ["BATT_AMP_PERVOLT", "BATT_CAPACITY", "SIM_GPS_DISABLE", "SIM_GPS1_ENABLE", "SIM_BATT_VOLTAGE"]
        );
        assert!(incidents.received().is_some());
    }

    #[test]
    fn a_program_without_a_current_of_its_own_measures_that_of_our_physics() {
        let sensors = Sensors { battery_mah: Some(10_000.0), ..Sensors::default() };
        let (mut incidents, mut body) = (Incidents::new(sensors, false), body());
        assert!(incidents.bytes(0.0, None, &body).is_empty(), "less than it is told of");
        for _ in 0..400 {
            body.step(0.0025, [0.6; MOTORS], DVec3::ZERO);
        }
        let amperes = body.battery().current_a();
        let told = set(&incidents.bytes(1.0, Some(100), &body));
        assert!(amperes > 10.0, "{amperes}");
        assert!(told.contains(&("BATT_AMP_OFFSET".to_owned(), (-amperes / AMP_PER_VOLT) as f32)), "{told:?}");
        // After a charge was taken it is that again.
        incidents.suffer(Incident::BatteryAt { percent: 50.0 }, &mut body);
        for _ in 0..400 {
            body.step(0.0025, [0.6; MOTORS], DVec3::ZERO);
        }
        let told = set(&incidents.bytes(2.0, Some(100), &body));
        assert!(told.contains(&("BATT_AMP_OFFSET".to_owned(), -6_000.0 / 17.0)), "{told:?}");
        let amperes = body.battery().current_a();
        let told = set(&incidents.bytes(5.0, Some(50), &body));
        assert_eq!(told, [("BATT_AMP_OFFSET".to_owned(), (-amperes / AMP_PER_VOLT) as f32)]);
    }

    #[test]
    fn satellites_sensors_and_motors() {
        let (mut incidents, mut body) = (Incidents::new(Sensors::default(), true), body());
        incidents.suffer(Incident::GnssLost(true), &mut body);
        assert_eq!(
            set(&incidents.bytes(0.0, None, &body)),
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
            assert!(Incidents::check(incident).unwrap_err().contains("simulated flight controllers alone"));
        }
        assert_eq!(Incidents::check(Incident::Restarts), Ok(()));
    }
}
