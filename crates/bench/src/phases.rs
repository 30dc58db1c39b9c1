//! Where the time of a flight in virtual time goes: the autopilots with their physics, the medium, and all else, which is the
//! agents and the world. Where the medium is ns-3, also what it takes to be asked by the world instead of running alone.
//!
//! The three are the phases of a step of the published co-simulators: flight, network, logic.
#![allow(clippy::disallowed_methods, reason = "it measures this computer")]

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as Wall;

use anyhow::{Context, Result};
use wingbeat_cosim::method::Method;
use wingbeat_cosim::ns3::{self, Spent};
use wingbeat_cosim::tape::{Replayed, Tape};
use wingbeat_geo::{DVec3, Frame, Instant};
use wingbeat_sim::autopilot::{Autopilot, Incident, Motion};
use wingbeat_sim::channel::{Counters, Losses, REACHES};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{FlightController, RcChannels, Truth};
use wingbeat_sim::medium::statistics::Statistics;
use wingbeat_sim::medium::{FlowFigures, Lateness, Medium, Reception};

use crate::flight::FlightResult;
use crate::lockstep::{self, SILENCE};
use crate::scenario::Scenario;

/// The length of a step for which the figures are printed, seconds: real programs fly by such steps.
const STEP_S: f64 = 0.01;

/// Watches a flight.
#[derive(Debug, Default)]
pub struct Watch {
    autopilots_ns: AtomicU64,
    medium_ns: AtomicU64,
    tape: Mutex<Option<Arc<Mutex<Tape>>>>,
}

impl Watch {
    /// The same autopilot, timed.
    pub(crate) fn autopilot(self: &Arc<Self>, inner: Box<dyn Autopilot>) -> Box<dyn Autopilot> {
        Box::new(TimedAutopilot { inner, watch: Arc::clone(self) })
    }

    /// The medium of a scenario, timed.
    ///
    /// # Errors
    /// As [`Scenario::radio`].
    pub(crate) fn radio(self: &Arc<Self>, scenario: &Scenario, seed: u64) -> Result<Box<dyn Medium>> {
        let inner = match &scenario.ns3 {
            Some(config) if config.method == Method::NextEvent => {
                let mut ns3 = lockstep::ns3(config, seed, scenario.aircraft())?;
                *self.tape.lock().unwrap_or_else(PoisonError::into_inner) = Some(ns3.keep()?);
                Box::new(ns3)
            }
            Some(_) | None => scenario.radio(seed)?,
        };
        Ok(Box::new(TimedMedium { inner, watch: Arc::clone(self) }))
    }

    /// What the flight came to; ns-3 runs once more, alone.
    ///
    /// # Errors
    /// It does not run.
    pub(crate) fn phases(
        &self,
        scenario: &Scenario,
        seed: u64,
        flight: &FlightResult,
        wall_s: f64,
    ) -> Result<Phases> {
        let tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner).take();
        let coupling = match (&tape, &scenario.ns3) {
            (Some(tape), Some(config)) => {
                let tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
                let program = ns3::find().context("channel.model")?;
                let alone = tape.replay(&program, config, seed, SILENCE)?;
                let asked = tape.ask_again(&program, config, seed, SILENCE)?;
                Some(Coupling { receptions: tape.receptions, spent: tape.spent, asked, alone })
            }
            _ => None,
        };
        let seconds = |ns: &AtomicU64| ns.load(Ordering::Relaxed) as f64 * 1e-9;
        Ok(Phases {
            label: scenario.label(),
            method: scenario.ns3.as_ref().map(|config| config.method),
            aircraft: scenario.aircraft(),
            seed,
            virtual_s: flight.duration.as_secs_f64(),
            wall_s,
            autopilots_s: seconds(&self.autopilots_ns),
            medium_s: seconds(&self.medium_ns),
            coupling,
        })
    }
}

/// Where the time of a flight went.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    label: String,
    method: Option<Method>,
    aircraft: usize,
    seed: u64,
    virtual_s: f64,
    wall_s: f64,
    autopilots_s: f64,
    medium_s: f64,
    coupling: Option<Coupling>,
}

/// What it takes ns-3 to be asked by the world.
#[derive(Clone, Debug, PartialEq)]
struct Coupling {
    receptions: u64,
    /// In the flight.
    spent: Spent,
    /// By the same requests, without the flight between them.
    asked: Replayed,
    /// In pieces of 10 s.
    alone: Replayed,
}

impl Coupling {
    /// By how much more of a processor it took, per cent of ns-3 alone; a dash where alone it took nothing.
    fn percent(&self, spent: Spent) -> String {
        let (alone, spent) = (all_ns(self.alone.spent), all_ns(spent));
        if alone == 0 {
            "-".to_owned()
        } else {
            format!("{:.1}", (spent as f64 / alone as f64 - 1.0) * 100.0)
        }
    }
}

/// Of a processor, by both ends.
fn all_ns(spent: Spent) -> u64 {
    spent.ns3_ns + spent.asking_ns
}

impl Phases {
    /// Lines for people, and for `cargo xtask bench cosim`.
    pub fn text(&self) -> String {
        let Self { label, method, aircraft, seed, virtual_s, wall_s, autopilots_s, medium_s, coupling } =
            self;
        let method = method.map_or_else(String::new, |method| format!(", {}", method.name()));
        let us = |seconds: f64| seconds / (virtual_s / STEP_S) * 1e6;
        let mut text = format!(
            "{label}{method}, {aircraft} aircraft, flight seed {seed}: {virtual_s:.0} s in {wall_s:.2} s, {:.1} times real time; each 10 ms: \
             {:.0} us autopilots and physics, {:.0} us agents and world, {:.0} us medium\n",
            virtual_s / wall_s,
            us(*autopilots_s),
            us((wall_s - autopilots_s - medium_s).max(0.0)),
            us(*medium_s)
        );
        if let Some(coupling) = coupling {
            let Coupling { receptions, spent, asked, alone } = coupling;
            let seconds = |ns: u64| ns as f64 * 1e-9;
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "  ns-3: {} round trips, {receptions} receptions, {:.3} s of a core and {:.3} s to ask it; asked so without the flight {} \
                 receptions, {:.3} s; alone {} receptions, {:.3} s: coupling {} %, in the flight {} %",
                spent.round_trips,
                seconds(spent.ns3_ns),
                seconds(spent.asking_ns),
                asked.receptions,
                seconds(all_ns(asked.spent)),
                alone.receptions,
                seconds(all_ns(alone.spent)),
                coupling.percent(asked.spent),
                coupling.percent(*spent)
            );
        }
        text
    }
}

/// What each method of coupling ns-3 took, beside what was published; `None` unless the flight was flown stepwise and coupled.
pub fn run_times(all: &[Phases]) -> Option<String> {
    let of = |name: &str| all.iter().find(|one| one.method.is_some_and(|method| method.name() == name));
    let (stepwise, coupled) = (of("stepwise")?, of("coupled")?);
    let (flight_s, network_s) = (stepwise.wall_s - stepwise.medium_s, stepwise.medium_s);
    let wall =
        |name: &str| of(name).map_or_else(|| "-".to_owned(), |phases| format!("{:.2} s", phases.wall_s));
    Some(format!(
        "run time              here       published (Park et al. 2020, another flight on other computers)\n\
         stepwise         {:>9}       156.7 s\n\
         - flight alone   {flight_s:>7.2} s       127.4 s\n\
         - network alone  {network_s:>7.2} s       29.28 s\n\
         coupled          {:>9}       129.2 s\n\
         - saved          {:>7.1} %       17.5 %\n\
         - over the longer of both {:.2} s   1.8 s\n\
         asynchronous     {:>9}       129.2 s\n\
         next-event       {:>9}       -\n",
        wall("stepwise"),
        wall("coupled"),
        (1.0 - coupled.wall_s / stepwise.wall_s) * 100.0,
        coupled.wall_s - flight_s.max(network_s),
        wall("asynchronous"),
        wall("next-event"),
    ))
}

fn spend<T>(on: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let began = Wall::now();
    let result = work();
    on.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    result
}

#[derive(Debug)]
struct TimedAutopilot {
    inner: Box<dyn Autopilot>,
    watch: Arc<Watch>,
}

impl Autopilot for TimedAutopilot {
    fn receive(&mut self, bytes: &[u8]) {
        spend(&self.watch.autopilots_ns, || self.inner.receive(bytes));
    }
    fn begin(&mut self, until: Instant) {
        spend(&self.watch.autopilots_ns, || self.inner.begin(until));
    }
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        spend(&self.watch.autopilots_ns, || self.inner.finish(out))
    }
    fn poll_timeout(&self) -> Instant {
        self.inner.poll_timeout()
    }
    fn truth(&self) -> Truth {
        self.inner.truth()
    }
    fn motion(&self) -> Motion {
        self.inner.motion()
    }
    fn charge_percent(&self) -> Option<f64> {
        self.inner.charge_percent()
    }
    fn place_in(&self, frame: &Frame) -> DVec3 {
        self.inner.place_in(frame)
    }
    fn set_rc(&mut self, channels: Option<RcChannels>) {
        self.inner.set_rc(channels);
    }
    fn suffer(&mut self, incident: Incident) -> Result<(), String> {
        self.inner.suffer(incident)
    }
    fn acts_at_once(&self) -> bool {
        self.inner.acts_at_once()
    }
    fn simulated(&mut self) -> Option<&mut FlightController> {
        self.inner.simulated()
    }
}

struct TimedMedium {
    inner: Box<dyn Medium>,
    watch: Arc<Watch>,
}

impl Medium for TimedMedium {
    fn disturb(&mut self, fault: Fault) {
        self.inner.disturb(fault);
    }
    fn moved(&mut self, now: Instant, positions: &[DVec3]) {
        self.inner.moved(now, positions);
    }
    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        positions: &[DVec3],
        out: &mut Vec<Reception>,
    ) {
        spend(&self.watch.medium_ns, || self.inner.transmit(now, from, bytes, positions, out));
    }
    fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        spend(&self.watch.medium_ns, || self.inner.advance(until, out))
    }
    fn poll_timeout(&self) -> Instant {
        self.inner.poll_timeout()
    }
    fn end(&mut self, now: Instant) -> Result<(), String> {
        spend(&self.watch.medium_ns, || self.inner.end(now))
    }
    fn lateness(&self) -> Option<Lateness> {
        self.inner.lateness()
    }
    fn looks_ahead(&self) -> bool {
        self.inner.looks_ahead()
    }
    fn counters(&self) -> Counters {
        self.inner.counters()
    }
    fn statistics(&self) -> Option<&Statistics> {
        self.inner.statistics()
    }
    fn flows(&self) -> &[FlowFigures] {
        self.inner.flows()
    }
    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        self.inner.losses_by_distance()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plan::Plan;
    use crate::run;

    #[test]
    fn a_watched_flight_is_the_same_and_ns3_alone_receives_the_same() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans"));
        let mut plan = Plan::read(&folder.join("gzuav-speed.toml")).unwrap();
        plan.keep(Some(2), None).unwrap();
        let has_ns3 = ns3::find().map_err(|why| println!("ns-3 skipped: {why:#}")).is_ok();
        for medium in ["unrestricted", "ns3"].into_iter().take(if has_ns3 { 2 } else { 1 }) {
            plan.set_medium(medium).unwrap();
            let plain = run::run(&plan, folder, 3, 1).unwrap();
            let (watched, phases) = run::run_watched(&plan, folder, 3).unwrap();
            assert!(watched.failed.is_empty(), "{:?}", watched.failed);
            assert_eq!((&plain.table, plain.trace_hash), (&watched.table, watched.trace_hash));
            let [phases] = &phases[..] else { panic!("found {} flights", phases.len()) };
            assert!(phases.autopilots_s > 0.0 && phases.medium_s > 0.0, "{phases:?}");
            assert!(phases.autopilots_s + phases.medium_s < phases.wall_s, "{phases:?}");
            assert!(phases.text().contains(" us autopilots and physics, "), "{}", phases.text());
            assert_eq!(phases.coupling.is_some(), medium == "ns3");
            if let Some(coupling) = &phases.coupling {
                // One more or less where something happens in the nanosecond in which they move.
                assert!(coupling.receptions > 100, "{coupling:?}");
                assert!(coupling.receptions.abs_diff(coupling.alone.receptions) <= 2, "{coupling:?}");
                assert!(coupling.spent.round_trips > 100 && coupling.alone.spent.round_trips < 30);
                let of = |one: &Replayed| (one.receptions, one.spent.round_trips);
                assert_eq!(of(&coupling.asked), (coupling.receptions, coupling.spent.round_trips));
                assert!(phases.text().contains(" %, in the flight "), "{}", phases.text());
            }
        }
    }
}
