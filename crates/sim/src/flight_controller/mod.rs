//! The simulated flight controller: ArduCopter as a companion computer meets it. MAVLink bytes in,
//! MAVLink bytes out, twenty milliseconds a tick.
//!
//! It answers as ArduCopter 3.5.7 or 4.6.2 answers (acknowledgements, refusals, their texts), flies what
//! `crate::motion` flies, and keeps the failsafes that bring an aircraft down when a companion dies. It
//! has no clock, no socket and no hidden randomness: the same configuration, seed and input give the same
//! bytes. Bad bytes are counted and harmless. One file holds one microservice; [`FlightController`]'s
//! methods are spread over them.
//!
//! Three answers are kinder than 3.5.7's own unless [`Config::is_exact`], because the published flights are flown with them:
//! `MAV_CMD_SET_MESSAGE_INTERVAL` is accepted (3.5.7 in SITL: UNSUPPORTED), COMMAND_INT carries the same
//! commands as COMMAND_LONG (3.5.7: UNSUPPORTED for arming), and an override of the pilot's sticks ends
//! after `RC_OVERRIDE_TIME`, 3 s (3.5.7 has no such parameter: overrides stay until the ground station
//! falls silent for 5 s; −1 flies that).
//!
//! Where the estimate differs from the truth: navigation flies on the estimate, so [`Truth`] is the
//! estimate without the wandering error of the position sensor. On the ground the error stands still.

#![allow(deprecated, reason = "ArduCopter 3.5.7 uses messages that MAVLink has superseded since")]

mod arming;
mod auto;
mod clock;
mod commands;
mod corrections;
mod estimate;
mod failsafe;
mod fence;
mod files;
mod guided;
mod link;
mod mission;
mod modes;
mod parameters;
mod points;
mod rc;
mod remote_id;
mod returning;
mod telemetry;
#[cfg(test)]
mod tests;

use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};

pub use link::Counters;
pub use parameters::Parameter;
pub use rc::RcChannels;
pub use telemetry::Group;

use rand_core::Rng;

use crate::autopilot::{Autopilot, Incident, Motion};
use crate::motion::{
    Battery, BatteryParameters, Multicopter, NavParameters, Profile, State, Task, Wind, WindEstimate,
    WindParameters,
};
use crate::rng::child;
use crate::sensors::POSITION_STEP_S;

/// One tick: ArduCopter's 50 Hz loop, which reads the link and runs navigation.
pub const TICK: Duration = Duration::from_millis(20);
/// One tick in seconds.
const TICK_S: f64 = 0.02;
/// Failsafes, the fence and the battery are checked every fifth tick (10 Hz), as ArduCopter does.
const SLOW_TICKS: u64 = 5;
/// The same in seconds.
const SLOW_S: f64 = POSITION_STEP_S;

/// No battery lasts longer in a hover than this many hours.
const DRAIN_HOURS_MAX: usize = 100;

/// How long the flight controller takes until it can fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// First heartbeat, position fix and position estimate come after the seconds that were measured
    /// with SITL (2.3, 9.3 and 40.9 s on 3.5.7).
    Cold,
    /// Ready immediately.
    Warm,
}

/// What a simulated flight controller is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// MAVLink system id (`SYSID_THISMAV`).
    pub system_id: u8,
    /// Where it stands when it boots.
    pub home: Position,
    /// Where its nose points, clockwise from north.
    pub heading_rad: f64,
    /// Whose answers and navigation it has.
    pub profile: Profile,
    /// Whether 3.5.7 answers as strictly as the real one, as `wingbeat sim` has it for the scripts of others. The flights of
    /// the bench are flown with its kinder answers.
    pub is_exact: bool,
    /// The wind around it.
    pub wind: WindParameters,
    /// The gusts that it shares with others: their seed, and where their field begins. `None`: its own.
    pub weather: Option<(u64, Position)>,
    /// Standard deviation of the wandering error of its position estimate.
    pub gps_noise_m: f64,
    /// Standard deviation of the wandering of its nose in flight. It shows in the true and in the reported heading;
    /// the motion is flown as if the nose stood still.
    pub heading_noise_rad: f64,
    /// How far its clock walks from the world's in one second, standard deviation; in n seconds it is √n times
    /// that. Not a quartz, which is a thousand times better: an autopilot that is simulated in real time on a
    /// machine that has other work. At most 0.1.
    pub clock_walk_s: f64,
    /// Its battery and what hovering draws; `BATT_CAPACITY` follows the capacity.
    pub battery: BatteryParameters,
    /// How long it takes to get ready.
    pub boot: Boot,
    /// Which serial port the companion is on: its `SRn_*` parameters set the telemetry (SERIAL0 is the
    /// port that SITL offers on TCP 5760, SERIAL2 is TELEM2).
    pub serial: u8,
    /// Universal time of the boot, microseconds since 1970, as the position sensor reports it.
    pub utc_at_boot_us: u64,
    /// Whether its position sensor has an RTK fix only while it is handed corrections (`GPS_RTCM_DATA`), and an ordinary one
    /// without. SITL's shows an RTK fix always.
    pub needs_corrections: bool,
    /// What the pilot's receiver delivers, if one is connected and switched on.
    pub rc: Option<RcChannels>,
    /// Its own logs, the oldest first: when each was begun, seconds after 1970 (0 where it did not know), and its bytes.
    pub logs: Vec<(u32, Vec<u8>)>,
    /// Parameters that differ from the defaults, as a defaults file would set them before boot.
    pub parameters: Vec<(Parameter, f32)>,
}

impl Config {
    /// ArduCopter 3.5.7 at `home`, nose to the north, ready immediately, in calm air and without noise, with
    /// a pilot's transmitter that is switched on and left alone (throttle down, mode STABILIZE).
    pub fn new(system_id: u8, home: Position) -> Self {
        Self {
            system_id,
            home,
            heading_rad: 0.0,
            profile: Profile::Copter357,
            is_exact: false,
            wind: WindParameters::default(),
            weather: None,
            gps_noise_m: 0.0,
            heading_noise_rad: 0.0,
            clock_walk_s: 0.0,
            battery: BatteryParameters::default(),
            boot: Boot::Warm,
            serial: 0,
            // 2026-01-01T00:00:00Z.
            utc_at_boot_us: 1_767_225_600_000_000,
            needs_corrections: false,
            rc: Some(RcChannels::IDLE),
            logs: Vec::new(),
            parameters: Vec::new(),
        }
    }
}

/// What is really so. For checkers, never for the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Where the aircraft is.
    pub position: Position,
    /// The same in metres east, north and up of [`Config::home`].
    pub local: DVec3,
    /// Metres a second east, north and up.
    pub velocity: DVec3,
    /// Where its nose points, clockwise from north.
    pub heading_rad: f64,
    /// Whether the motors may turn.
    pub armed: bool,
    /// The flight mode.
    pub mode: Mode,
    /// Whether it stands on the ground.
    pub landed: bool,
    /// How long it has been in the air since boot.
    pub flight_time: Duration,
    /// The speed at which it last met the ground; above about 2 m/s it is wreckage.
    pub touchdown_m_s: f64,
}

/// A simulated flight controller with its aircraft.
#[derive(Debug)]
pub struct FlightController {
    config: Config,
    frame: Frame,
    /// The time by its own clock.
    now: Instant,
    /// How far it is to fly next, by the world's clock.
    until: Instant,
    clock: clock::Clock,
    ticks: u64,
    booted_at: Instant,
    link: link::Link,
    counters: Counters,
    parameters: parameters::Parameters,
    nav: NavParameters,
    vehicle: Multicopter,
    wind: Wind,
    /// From where the field of gusts begins to home, metres east and north.
    in_weather_m: DVec2,
    wind_m_s: DVec3,
    wind_estimate: WindEstimate,
    battery: Battery,
    estimate: estimate::Estimate,
    streams: telemetry::Streams,
    rc: rc::Rc,
    mode: Mode,
    arming: arming::Arming,
    home: Option<DVec3>,
    mission: mission::Mission,
    points: points::Points,
    files: files::Files,
    auto: auto::Auto,
    guided: guided::Guided,
    returning: returning::Returning,
    failsafes: failsafe::Failsafes,
    fence: fence::Fence,
    remote_id: remote_id::RemoteId,
    corrections: corrections::Corrections,
    motor_failed: bool,
    /// Whether it stays where it is, whatever its mode.
    is_stuck: bool,
    flight_time: Duration,
    touchdown_m_s: f64,
}

impl FlightController {
    /// A flight controller that is switched on at `now`.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        let index = u64::from(config.system_id);
        let mut parameters = parameters::Parameters::new(config.profile);
        parameters.set(Parameter::SYSID_THISMAV, f32::from(config.system_id));
        parameters.set(Parameter::BATT_CAPACITY, config.battery.capacity_mah as f32);
        if config.profile == Profile::Copter357 && config.is_exact {
            // Overrides stay until the ground station falls silent.
            parameters.set(Parameter::RC_OVERRIDE_TIME, -1.0);
        }
        for &(parameter, value) in &config.parameters {
            parameters.set(parameter, value);
        }
        let own = (child(seed, "wind", index).next_u64(), config.home);
        let (gusts, origin) = config.weather.unwrap_or(own);
        let wind = Wind::new(config.wind, gusts);
        let in_weather_m = Frame::new(origin).to_local(config.home).truncate();
        let mut fc = Self {
            frame: Frame::new(config.home),
            now,
            until: now,
            clock: clock::Clock::new(config.clock_walk_s, child(seed, "clock", index), now),
            ticks: 0,
            booted_at: now,
            link: link::Link::new(config.system_id),
            counters: Counters::default(),
            nav: parameters.nav(config.profile),
            parameters,
            vehicle: Multicopter::new(config.profile, DVec3::ZERO, config.heading_rad),
            wind,
            in_weather_m,
            wind_m_s: DVec3::ZERO,
            wind_estimate: WindEstimate::default(),
            battery: Battery::new(config.battery),
            estimate: estimate::Estimate::new(
                child(seed, "position noise", index),
                child(seed, "heading noise", index),
            ),
            streams: telemetry::Streams::default(),
            rc: rc::Rc::new(config.rc),
            mode: Mode::Stabilize,
            arming: arming::Arming::default(),
            home: None,
            mission: mission::Mission::default(),
            points: points::Points::default(),
            files: files::Files::default(),
            auto: auto::Auto::default(),
            guided: guided::Guided::default(),
            returning: returning::Returning::default(),
            failsafes: failsafe::Failsafes::default(),
            fence: fence::Fence::default(),
            remote_id: remote_id::RemoteId::default(),
            corrections: corrections::Corrections::default(),
            motor_failed: false,
            is_stuck: false,
            flight_time: Duration::ZERO,
            touchdown_m_s: 0.0,
            config,
        };
        fc.boot(now);
        fc
    }

    /// What a power cycle forgets: everything but parameters, mission, battery and the place.
    fn boot(&mut self, now: Instant) {
        self.booted_at = now;
        self.mode = self.rc.boot_mode(&self.parameters);
        self.arming = arming::Arming::default();
        self.home = None;
        self.auto = auto::Auto::default();
        self.guided = guided::Guided::default();
        self.returning = returning::Returning::default();
        self.failsafes = failsafe::Failsafes::default();
        self.fence = fence::Fence::default();
        self.files = files::Files::default();
        self.remote_id = remote_id::RemoteId::default();
        self.corrections = corrections::Corrections::default();
        self.estimate.boot(self.config.profile, self.config.boot, now);
        self.nav = self.parameters.nav(self.config.profile);
        self.link.system_id = self.parameters.get(Parameter::SYSID_THISMAV).clamp(1.0, 255.0) as u8;
        self.streams = telemetry::Streams::default();
        for group in Group::ALL {
            let rate = parameters::Parameters::stream_rate(self.config.serial, group);
            self.set_stream_rate(group, self.parameters.get(rate));
        }
        self.vehicle.set_task(Task::Stopped, &self.nav);
    }

    /// Bytes from the companion. They are read at the next tick, as ArduCopter's loop does.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.link.receive(bytes);
    }

    /// Lets time pass to `now`, one tick after the other; appends what the flight controller sends to
    /// `out`, whole MAVLink frames.
    pub fn advance(&mut self, now: Instant, out: &mut Vec<u8>) {
        while let Some(own) = self.clock.tick(now) {
            self.now = own;
            self.tick();
        }
        self.link.drain(out);
    }

    /// When the next tick is due, by the world's clock.
    pub fn poll_timeout(&self) -> Instant {
        self.clock.next_tick()
    }

    fn tick(&mut self) {
        self.ticks += 1;
        self.read_link();
        self.note_estimate_events();
        self.update_rc();
        if self.ticks.is_multiple_of(SLOW_TICKS) {
            self.check_failsafes();
            self.check_fence();
        }
        self.run_mission_transfer();
        self.run_file_burst();
        self.run_mode();
        self.fly();
        self.note_position();
        self.check_arming_timers();
        self.announce_prearm_failure();
        self.send_listed_parameters();
        self.send_arm_status();
        self.send_telemetry();
    }

    /// Moves the aircraft and what hangs on its motion.
    fn fly(&mut self) {
        let was_landed = self.vehicle.state().landed;
        let fall_m_s = -self.vehicle.state().velocity.z;
        let was_high = self.vehicle.state().position.z > 0.0;
        let slow = self.ticks.is_multiple_of(SLOW_TICKS);
        if slow {
            let place_m = self.in_weather_m + self.vehicle.state().position.truncate();
            self.wind_m_s = self.wind.at(self.now.as_secs_f64(), place_m);
        }
        self.vehicle.step(TICK_S, &self.nav, self.wind_m_s);
        let state = self.vehicle.state();
        if was_high && state.position.z <= 0.0 {
            self.touchdown_m_s = fall_m_s;
        }
        if !was_landed || !state.landed {
            self.flight_time += TICK;
        }
        if slow {
            self.battery.step(SLOW_S, state);
            // Nothing is left to turn them.
            self.motor_failed |= self.battery.remaining_percent() <= 0.0;
            self.wind_estimate.step(SLOW_S, self.wind_m_s, !state.landed);
            if !state.landed {
                self.estimate.error.step(self.config.gps_noise_m);
            }
            self.estimate.wander_heading(self.config.heading_noise_rad, !state.landed);
            self.record_path();
        }
    }

    fn profile(&self) -> Profile {
        self.config.profile
    }
    fn landed(&self) -> bool {
        self.vehicle.state().landed
    }
    /// Time since boot.
    fn uptime(&self) -> Duration {
        self.now.since(self.booted_at)
    }
    /// Where the nose points, 0 to 2π clockwise from north.
    fn nose_rad(&self) -> f64 {
        let off = self.estimate.heading_off_rad();
        let yaw = self.vehicle.state().yaw_rad;
        if off == 0.0 {
            return yaw;
        }
        let tau = core::f64::consts::TAU;
        let nose = libm::fmod(yaw + off, tau);
        if nose < 0.0 { nose + tau } else { nose }
    }
    /// Home in the local frame; the launch point until one is set.
    fn home_or_origin(&self) -> DVec3 {
        self.home.unwrap_or(DVec3::ZERO)
    }
    /// Asks the vehicle for a task unless it is at it.
    fn ensure(&mut self, task: Task) {
        if *self.vehicle.task() != task {
            self.vehicle.set_task(task, &self.nav);
        }
    }

    /// What is really so. For checkers, never for the agent.
    pub fn truth(&self) -> Truth {
        let Motion { velocity, heading_rad, armed, landed } = Autopilot::motion(self);
        let local = self.local();
        Truth {
            position: self.frame.to_position(local),
            local,
            velocity,
            heading_rad,
            armed,
            mode: self.mode,
            landed,
            flight_time: self.flight_time,
            touchdown_m_s: self.touchdown_m_s,
        }
    }

    /// Where it truly is, as a frame measures it: what [`FlightController::truth`] returns, for frequent use.
    pub fn place_in(&self, frame: &Frame) -> DVec3 {
        self.frame.to_frame(frame, self.local())
    }

    fn local(&self) -> DVec3 {
        let (state, drift) = (self.vehicle.state(), self.estimate.error.drift());
        let mut at = state.position - self.estimate.error.wandering();
        if drift != DVec3::ZERO {
            at -= drift;
            // The ground is where it is, whatever the barometer has drifted by.
            at.z = if state.landed { at.z + drift.z } else { at.z.max(0.0) };
        }
        at
    }

    /// What arrived, what was refused, what was answered.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.refused = self.link.refused();
        counters
    }

    /// Takes the position sensor away, or gives it back.
    pub fn gps_loss(&mut self, lost: bool) {
        self.estimate.lose(lost, self.now);
    }
    /// The estimate diverges, with satellites or without: the position is unknown; or it is known again.
    pub fn diverge(&mut self, on: bool) {
        self.estimate.diverge(on);
    }
    /// From now on the estimate moves until it is off by `offset_m` (metres east, north and up), while the aircraft
    /// flies. It takes so long to get there.
    pub fn drift(&mut self, offset_m: DVec3, within: Duration) {
        self.estimate.error.drift_to(offset_m, within);
    }
    /// Cuts the texts that it sends, and writes rubbish into them; or leaves them whole again.
    pub fn garble_texts(&mut self, on: bool) {
        self.link.are_texts_garbled = on;
    }
    /// Blocks the aircraft in flight: it hovers, and reports whatever mode it is asked for; or lets it fly again.
    pub fn be_stuck(&mut self, on: bool) {
        self.is_stuck = on;
        if !on {
            self.enter(self.mode);
        }
    }
    /// The processor restarts. ArduCopter boots disarmed: in flight the motors stop, and the fall ends them for good.
    pub fn restart(&mut self) {
        self.motor_failed |= !self.landed();
        self.config.boot = Boot::Cold;
        self.boot(self.now);
    }
    /// Blocks what the flight controller sends (a broken transmit wire), or passes it again.
    pub fn mute(&mut self, on: bool) {
        self.link.muted = on;
    }
    /// Stops the motors for good: the aircraft falls.
    pub fn fail_motors(&mut self) {
        self.motor_failed = true;
    }
    /// Changes the weather from now on: a wind that rises, falls or turns.
    pub fn set_wind(&mut self, parameters: WindParameters, seed: u64) {
        self.wind = Wind::new(parameters, seed);
    }
    /// Sets the state of charge of the battery.
    pub fn set_battery_percent(&mut self, percent: f64) {
        let wanted_mah = self.config.battery.capacity_mah * (1.0 - percent.clamp(0.0, 100.0) / 100.0);
        self.battery = Battery::new(self.config.battery);
        // A hover of just the length that takes the charge.
        let hover = State {
            throttle: 0.5,
            landed: false,
            velocity: DVec3::ZERO,
            acceleration: DVec3::ZERO,
            ..*self.vehicle.state()
        };
        for _ in 0..DRAIN_HOURS_MAX {
            let left_mah = wanted_mah - self.battery.used_mah();
            if left_mah <= 0.0 {
                break;
            }
            self.battery.step(0.0, &hover);
            let hours = left_mah / (self.battery.current_a() * 1e3).max(1e-3);
            self.battery.step((hours * 3600.0).min(3600.0), &hover);
        }
    }
    /// Its satellites show this time, microseconds after 1970, at `now`: a server in real time follows the kernel's.
    pub fn set_utc_us(&mut self, now: Instant, utc_us: u64) {
        self.config.utc_at_boot_us = utc_us.saturating_sub(now.since(self.booted_at).as_micros() as u64);
    }
    /// What the pilot's receiver delivers from now on; `None` is a lost radio link.
    pub fn set_rc(&mut self, channels: Option<RcChannels>) {
        self.rc.receiver(channels, self.now);
    }
    /// The transmitter is not received, or is received again as it was.
    pub fn lose_transmitter(&mut self, lost: bool) {
        let channels = (!lost).then_some(self.rc.effective);
        self.rc.receiver(channels, self.now);
    }
    /// The pilot centres all sticks, the throttle too, and turns the mode switch. Returns whether the mode was taken.
    pub fn take_by_pilot(&mut self, mode: Mode) -> bool {
        self.set_rc(Some(RcChannels::HOVER));
        self.set_mode_by_pilot(mode)
    }
    /// The pilot turns the mode switch. Returns whether the mode was taken.
    pub fn set_mode_by_pilot(&mut self, mode: Mode) -> bool {
        self.rc.turn_switch(mode, &mut self.parameters);
        self.set_mode(mode)
    }
    /// A ground station on another radio commands a mode. Returns whether the mode was taken.
    pub fn set_mode_by_ground_station(&mut self, mode: Mode) -> bool {
        self.set_mode(mode)
    }
    /// A value of a parameter, `None` if this version does not have it.
    pub fn parameter(&self, parameter: Parameter) -> Option<f64> {
        self.parameters.has(parameter).then(|| self.parameters.get(parameter))
    }
}

impl Autopilot for FlightController {
    fn receive(&mut self, bytes: &[u8]) {
        Self::receive(self, bytes);
    }

    /// It flies when it is waited for: two do not fly at the same time.
    fn begin(&mut self, until: Instant) {
        self.until = until;
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.advance(self.until, out);
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        Self::poll_timeout(self)
    }

    fn truth(&self) -> Truth {
        Self::truth(self)
    }

    fn charge_percent(&self) -> Option<f64> {
        Some(self.battery.remaining_percent())
    }

    fn is_in_failsafe_mode(&self) -> bool {
        self.failsafes.has_chosen(self.mode)
    }

    fn motion(&self) -> Motion {
        let state = self.vehicle.state();
        Motion {
            velocity: state.velocity,
            heading_rad: self.nose_rad(),
            armed: self.arming.armed(),
            landed: state.landed,
        }
    }

    fn place_in(&self, frame: &Frame) -> DVec3 {
        Self::place_in(self, frame)
    }

    fn set_rc(&mut self, channels: Option<RcChannels>) {
        Self::set_rc(self, channels);
    }

    fn acts_at_once(&self) -> bool {
        true
    }

    fn suffer(&mut self, incident: Incident) -> Result<(), String> {
        match incident {
            Incident::MotorsFail => self.fail_motors(),
            Incident::Restarts => self.restart(),
            Incident::PilotTakes(mode) => drop(self.take_by_pilot(mode)),
            Incident::TransmitterLost(lost) => self.lose_transmitter(lost),
            Incident::BatteryAt { percent } => self.set_battery_percent(percent),
            Incident::GnssLost(lost) => self.gps_loss(lost),
            Incident::EstimateDiverges(diverges) => self.diverge(diverges),
            Incident::PositionDrifts { to_m, within } => self.drift(to_m, within),
            Incident::Stuck(stuck) => self.be_stuck(stuck),
            Incident::TextsGarbled(garbled) => self.garble_texts(garbled),
            Incident::WindShifts { by_m_s } => self.wind.shift(by_m_s),
        }
        Ok(())
    }

    fn simulated(&mut self) -> Option<&mut FlightController> {
        Some(self)
    }
}
