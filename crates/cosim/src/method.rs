//! How a flight and ns-3 keep one time: our own method, and those that DUSC's paper compares (Park et al. 2020, sections 3.3, 4 and 7),
//! so that they can be set beside each other on the same flight.
//!
//! | method | the network knows places | aircraft receive |
//! |---|---|---|
//! | next-event | at each event of the world | when it arrives, at most 2 µs late |
//! | coupled | each 20 ms, and runs once a step of five of them is complete | at the end of the step |
//! | stepwise | each 20 ms, after the flight | nothing |
//! | asynchronous | each 20 ms, when the other program has come to them | when it arrives by the other's clock |
//!
//! **Coupled** is the published algorithm (DTMA) with τ = 5 locations at 50 Hz. Where aircraft fly by what they receive (the paper's
//! dependency NAC) the flight waits for each step. Where they do not, ns-3 computes a step while the next is flown.
//!
//! **Asynchronous** programs run without regard to each other, each as fast as its computer lets it. What that comes to depends on the
//! computer, so here it is a rule: ns-3 passes [`PACE`] (or what a plan says) times as much time as the flight, by turns more and less by up to
//! [`PACE_WANDERS`], drawn from the seed for each second. So the race is modelled and not run, and the same seed loses it in the same way.

use std::sync::Arc;

use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::channel::{Counters, Losses, REACHES};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::medium::timing::Nanos;
use wingbeat_sim::medium::{FlowFigures, Lateness, Medium, Reception};
use wingbeat_sim::rng;

use crate::ns3::{Dated, Ns3};

/// Locations of the published flight simulator, 50 a second.
const LOCATED: Duration = Duration::from_millis(20);
/// So many make a step of the published algorithm (its τ).
const STEP_LOCATIONS: u32 = 5;
/// What of a recorded flight is handed to ns-3 at once: no request is large.
const PIECE_NS: u64 = 1_000_000_000;
/// Seconds of ns-3 in a second of the flight, unless a plan says otherwise: the paper's example, a network at 1.2 times and a flight at 0.6
/// times real time.
pub const PACE: f64 = 2.0;
/// By so much of it the pace differs from second to second.
pub const PACE_WANDERS: f64 = 0.1;

/// How the flight and ns-3 keep one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// ns-3 stops where something arrives.
    #[default]
    NextEvent,
    /// By steps.
    Coupled,
    /// The flight first, then ns-3.
    Stepwise,
    /// Both at a pace of their own.
    Asynchronous {
        /// Seconds of ns-3 in a second of the flight, 0.1 to 10.
        pace: f64,
    },
}

impl Method {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::NextEvent => "next-event",
            Self::Coupled => "coupled",
            Self::Stepwise => "stepwise",
            Self::Asynchronous { .. } => "asynchronous",
        }
    }
}

impl std::str::FromStr for Method {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Stepwise, Self::Asynchronous { pace: PACE }, Self::Coupled, Self::NextEvent];
        let known = all.into_iter().find(|method| method.name() == name);
        known.ok_or_else(|| format!("found '{name}', expected stepwise, asynchronous, coupled or next-event"))
    }
}

/// ns-3 by one of the published methods.
pub struct Published {
    ns3: Ns3,
    method: Method,
    seed: u64,
    /// Whether aircraft fly by what they receive, so that the flight waits for each step.
    waits: bool,
    /// When the next location is due.
    next: Instant,
    located: u32,
    places: Vec<DVec3>,
    /// Until when ns-3 was asked and has not answered yet.
    asked_ns: Option<u64>,
    /// Of the second that passes: in the time of the flight its number, in ns-3's its begin, and the pace in it.
    second: (u64, u64, f64),
}

impl Published {
    /// ns-3 as it was started, by a method that is not next-event; `waits` where aircraft fly by what they receive.
    pub fn new(ns3: Ns3, method: Method, seed: u64, waits: bool) -> Self {
        let mut medium = Self {
            ns3,
            method,
            seed,
            waits,
            next: Instant::ZERO,
            located: 0,
            places: Vec::new(),
            asked_ns: None,
            second: (0, 0, 1.0),
        };
        medium.second.2 = medium.pace_in(0);
        medium
    }

    /// The pace in a second of the flight.
    fn pace_in(&self, second: u64) -> f64 {
        match self.method {
            Method::Asynchronous { pace } => {
                let mut rng = rng::child(self.seed, "pace", second);
                pace * (1.0 + PACE_WANDERS * (2.0 * rng::uniform(&mut rng) - 1.0))
            }
            Method::NextEvent | Method::Coupled | Method::Stepwise => 1.0,
        }
    }

    /// The time of ns-3 at a time of the flight, which does not go back.
    fn ns3_at(&mut self, at: Instant) -> u64 {
        let at_ns = Nanos::of(at).0;
        let Method::Asynchronous { .. } = self.method else { return at_ns };
        const SECOND_NS: u64 = 1_000_000_000;
        while at_ns >= (self.second.0 + 1) * SECOND_NS {
            let (second, begin_ns, pace) = self.second;
            self.second = (second + 1, begin_ns + (pace * SECOND_NS as f64) as u64, self.pace_in(second + 1));
        }
        let (second, begin_ns, pace) = self.second;
        begin_ns + (pace * (at_ns - second * SECOND_NS) as f64) as u64
    }

    /// Takes the answer that is still to come.
    fn take(&mut self, now: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        let Some(until_ns) = self.asked_ns.take() else { return Ok(()) };
        let arrived = self.ns3.finish(until_ns).map_err(|error| format!("{error:#}"))?;
        let dated = match self.method {
            Method::NextEvent | Method::Coupled => Dated::WhenReceived,
            Method::Stepwise | Method::Asynchronous { .. } => Dated::WhenArrived,
        };
        self.ns3.receive(arrived, |_| now, dated, out);
        Ok(())
    }

    fn ask(&mut self, until_ns: u64) -> Result<(), String> {
        self.ns3.begin(until_ns, false).map_err(|error| format!("{error:#}"))?;
        self.asked_ns = Some(until_ns);
        Ok(())
    }

    /// A location of each aircraft.
    fn locate(&mut self, now: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        let at_ns = self.ns3_at(now);
        self.ns3.move_at(at_ns, &self.places);
        self.located += 1;
        match self.method {
            Method::NextEvent | Method::Stepwise => Ok(()),
            Method::Coupled => {
                // The first location begins the first step.
                if self.located % STEP_LOCATIONS != 1 || self.located == 1 {
                    return Ok(());
                }
                self.take(now, out)?;
                self.ask(at_ns)?;
                if self.waits { self.take(now, out) } else { Ok(()) }
            }
            Method::Asynchronous { .. } => {
                self.take(now, out)?;
                self.ask(at_ns)
            }
        }
    }
}

impl Medium for Published {
    fn disturb(&mut self, fault: Fault) {
        self.ns3.disturb(fault);
    }

    fn moved(&mut self, _: Instant, positions: &[DVec3]) {
        self.places.clear();
        self.places.extend_from_slice(positions);
    }

    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        positions: &[DVec3],
        _: &mut Vec<Reception>,
    ) {
        self.moved(now, positions);
        let at_ns = self.ns3_at(now);
        self.ns3.send(now, at_ns, from, bytes);
    }

    fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        while self.next <= until {
            let now = self.next;
            self.next = now + LOCATED;
            self.locate(now, out)?;
        }
        Ok(())
    }

    fn end(&mut self, now: Instant) -> Result<(), String> {
        let mut out = Vec::new();
        self.take(now, &mut out)?;
        let end_ns = self.ns3_at(now);
        while self.ns3.reached_ns() < end_ns {
            self.ask(end_ns.min(self.ns3.reached_ns() + PIECE_NS))?;
            self.take(now, &mut out)?;
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        self.next
    }

    fn lateness(&self) -> Option<Lateness> {
        self.ns3.lateness()
    }

    fn flows(&self) -> &[FlowFigures] {
        self.ns3.flows()
    }

    fn counters(&self) -> Counters {
        self.ns3.counters()
    }

    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        self.ns3.losses_by_distance()
    }
}
