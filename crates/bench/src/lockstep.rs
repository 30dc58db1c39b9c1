//! Programs outside in a plan's virtual time (docs/lockstep.md): a real ArduCopter for each aircraft with our physics, ns-3 as the
//! medium. What the bench flies in real time with the same programs is [`crate::sitl`].

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rand_core::Rng as _;
use wingbeat_cosim::copter::{Config, Copter, LockStep};
use wingbeat_cosim::incidents::{AMP_PER_VOLT, Sensors};
use wingbeat_cosim::method::{Method, Published};
use wingbeat_cosim::ns3::{self, Ns3};
use wingbeat_cosim::script::{self, Script};
use wingbeat_sim::autopilot::{Autopilot, Incident};
use wingbeat_sim::logic::Logic;
use wingbeat_sim::medium::Medium;
use wingbeat_sim::motion::{Battery, BatteryParameters, WindParameters};
use wingbeat_sim::rigid::Body;
use wingbeat_sim::rng;

use crate::hosts::flight_hash;
use crate::scenario::{Charge, Scenario, Scripted};
use crate::sitl::parameters::{self, Wanted};

/// A program that sends nothing for so long has fallen silent. On a computer with much other work it only waits for its
/// turn.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// The wind of a plan is that of its flight, which is not felt to fall off above this (WMO: wind is measured at 10 m), metres.
const WIND_FULL_MOST_M: f64 = 10.0;
/// A battery without end, as the published flights had it.
pub(crate) const ENDLESS_MAH: f64 = 1e7;

/// The autopilots of a flight, in the order of its aircraft: simulated ones, or programs where the scenario names one; on other
/// computers, where it has some.
///
/// # Errors
/// The program is none, this computer has not what it needs, or another computer cannot fly.
pub(crate) fn autopilots(scenario: &Scenario, seed: u64) -> Result<Vec<Box<dyn Autopilot>>> {
    let mut start = start(scenario, seed)?;
    let Some(federation) = &scenario.hosts else { return (0..scenario.aircraft()).map(start).collect() };
    federation.begin(flight_hash(scenario, seed), seed).context("hosts")?;
    (0..scenario.aircraft())
        .map(|index| match federation.computer_of(index) {
            1 => start(index),
            _ => Ok(Box::new(federation.autopilot(index, scenario.home(index, seed))?) as Box<dyn Autopilot>),
        })
        .collect()
}

/// Starts the autopilot of an aircraft on this computer.
///
/// # Errors
/// The program is none, or this computer has not what it needs.
pub(crate) fn start(
    scenario: &Scenario,
    seed: u64,
) -> Result<impl FnMut(usize) -> Result<Box<dyn Autopilot>>> {
    let program = scenario.arducopter.as_deref().map(LockStep::find).transpose().context("autopilot")?;
    Ok(move |index| match &program {
        Some(program) => {
            let mut copter = Copter::start(program, config(scenario, index, seed)?)?;
            if let Some(Charge { percent, .. }) = scenario.charge.filter(|charge| charge.percent < 100.0) {
                copter.suffer(Incident::BatteryAt { percent }).map_err(|why| anyhow!(why))?;
            }
            Ok(Box::new(copter) as Box<dyn Autopilot>)
        }
        None => Ok(scenario.controller(index, seed).into()),
    })
}

/// What flies aircraft instead of their agents, each with the aircraft's index.
///
/// # Errors
/// This computer has no Python, or a script does not start.
pub(crate) fn scripts(scenario: &Scenario, seed: u64) -> Result<Vec<(usize, Box<dyn Logic>)>> {
    let start = |scripted: &Scripted| -> Result<(usize, Box<dyn Logic>)> {
        let index = scripted.aircraft;
        let script = Script::start(&script::Config {
            path: scripted.path.clone(),
            arguments: scripted.arguments.clone(),
            address: scripted.address.clone(),
            radio: scripted.radio,
            seed: rng::child(seed, "script", index as u64).next_u64(),
            silence: SILENCE,
        });
        Ok((index, Box::new(script.with_context(|| format!("aircraft {}", index + 1))?)))
    };
    scenario.scripts.iter().map(start).collect()
}

/// ns-3 as the medium among so many aircraft.
///
/// # Errors
/// Our program of it is not there, or does not start.
pub(crate) fn ns3(config: &ns3::Config, seed: u64, aircraft: usize) -> Result<Ns3> {
    let program = ns3::find().context("channel.model")?;
    Ns3::start(&program, config, seed, aircraft, SILENCE).context("channel.model")
}

/// The same by the method of its configuration; `waits` where aircraft fly by what they receive.
///
/// # Errors
/// As [`ns3`].
pub(crate) fn medium(
    config: &ns3::Config,
    seed: u64,
    aircraft: usize,
    waits: bool,
) -> Result<Box<dyn Medium>> {
    let ns3 = ns3(config, seed, aircraft)?;
    Ok(match config.method {
        Method::NextEvent => Box::new(ns3),
        method @ (Method::Coupled | Method::Stepwise | Method::Asynchronous { .. }) => {
            Box::new(Published::new(ns3, method, seed, waits))
        }
    })
}

/// What an aircraft's program is started with.
fn config(scenario: &Scenario, index: usize, seed: u64) -> Result<Config> {
    // 3.5 ends at one that it does not have.
    let mut extra: String = scenario
        .parameters_of(index)
        .filter(|(parameter, _)| parameter.is_of(scenario.profile))
        .map(|(parameter, value)| format!("{} {value}\n", parameter.name()))
        .collect();
    let charged = |charge: Charge| charge.capacity_mah.unwrap_or(BatteryParameters::default().capacity_mah);
    let battery_mah = scenario.charge.map(charged);
    let capacity_mah = battery_mah.unwrap_or(ENDLESS_MAH);
    let battery = BatteryParameters { capacity_mah, ..BatteryParameters::default() };
    if battery_mah.is_some() {
        let full_v = Battery::new(battery).voltage_v();
        extra.push_str(&format!(
            "BATT_CAPACITY {capacity_mah}\nBATT_AMP_PERVOLT {AMP_PER_VOLT}\nSIM_BATT_VOLTAGE {full_v:.2}\n"
        ));
    }
    let sensors = Sensors {
        position_m: scenario.gps_noise_m,
        imu: scenario.imu,
        seed: rng::child(seed, "sensors", index as u64).next_u64(),
        battery_mah,
    };
    let defaults = parameters::file(&Wanted {
        speed_m_s: scenario.speed_m_s(index),
        // The wind is in the physics.
        wind: WindParameters::default(),
        log: false,
        position_hz: 0,
        extra: &extra,
    });
    Ok(Config {
        physics: scenario.physics.as_ref().map(|at| at.of(index)).transpose()?,
        home: scenario.home(index, seed),
        heading_rad: scenario.heading_rad(index),
        booted_at: scenario.booted_at(index, seed),
        wind: scenario.wind,
        wind_full_m: scenario.height_m(index).clamp(1.0, WIND_FULL_MOST_M),
        weather: (seed, scenario.origin),
        body: Body::of(scenario.profile),
        battery,
        sensors,
        stretch: scenario.step,
        defaults,
        silence: SILENCE,
    })
}
