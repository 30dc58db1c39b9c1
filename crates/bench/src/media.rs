//! One flight under many networks (DUSC, section 6): what its aircraft transmit is recorded without a medium, and then put through one
//! after another. That is the same flight for each only where aircraft do not fly by what they receive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, ensure};
use serde::Deserialize;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::channel::{Counters, Losses, REACHES};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::medium::{Lateness, Medium, Reception};
use wingbeat_sim::rng;

use crate::flight::{FlightResult, Radio};

/// How often places are taken, and how long after the tick of flight controllers that may have moved them.
const LOCATED: Duration = Duration::from_millis(10);
const AFTER_TICK: Duration = Duration::from_micros(1);

/// What a medium was told, in its order.
enum Told {
    /// From then on the radios are at these places.
    Moved(Arc<[DVec3]>),
    Transmitted(usize, Arc<[u8]>),
    Disturbed(Fault),
}

/// What a medium was told in a flight, and when.
#[derive(Default)]
pub(crate) struct Recording {
    told: Vec<(Instant, Told)>,
    places: Option<Arc<[DVec3]>>,
    sent: u64,
}

impl Recording {
    fn moved(&mut self, now: Instant, places: &[DVec3]) {
        if self.places.as_deref() != Some(places) {
            let places: Arc<[DVec3]> = places.into();
            self.told.push((now, Told::Moved(Arc::clone(&places))));
            self.places = Some(places);
        }
    }
}

/// What each aircraft broadcasts beside what its agent does, from when it is switched on: the load of a protocol that is not flown.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcasts {
    /// Milliseconds from one to the next, 10 to 60 000; when the first comes is drawn.
    pub every_ms: u32,
    /// Of each datagram, 1 to 1472.
    pub bytes: u16,
}

impl Broadcasts {
    pub(crate) fn check(&self) -> Result<()> {
        let Self { every_ms, bytes } = *self;
        ensure!(
            (10..=60_000).contains(&every_ms),
            "broadcasts.every_ms: found {every_ms}, expected 10 to 60000"
        );
        ensure!((1..=1472).contains(&bytes), "broadcasts.bytes: found {bytes}, expected 1 to 1472");
        Ok(())
    }
}

impl Recording {
    /// The same with what the aircraft of a flight broadcast beside.
    pub(crate) fn add(&mut self, broadcasts: Broadcasts, aircraft: usize, seed: u64, end: Instant) {
        let period = Duration::from_millis(broadcasts.every_ms.into());
        for from in 0..aircraft {
            let mut rng = rng::child(seed, "broadcasts", from as u64);
            let mut at = Instant::from_micros((rng::uniform(&mut rng) * period.as_micros() as f64) as u64);
            while at < end {
                let bytes = Arc::from(vec![0; broadcasts.bytes.into()]);
                self.told.push((at, Told::Transmitted(from, bytes)));
                at = at + period;
            }
        }
        // Of one instant, places first.
        self.told.sort_by_key(|(at, _)| *at);
    }
}

/// A medium that delivers nothing.
pub(crate) struct Recorder {
    recording: Arc<Mutex<Recording>>,
    now: Instant,
    next: Instant,
    losses: [Losses; REACHES],
}

impl Recorder {
    /// One that has heard nothing yet, and what it will have heard.
    pub(crate) fn begin() -> (Box<dyn Medium>, Arc<Mutex<Recording>>) {
        let recording = Arc::new(Mutex::new(Recording::default()));
        let recorder = Self {
            recording: Arc::clone(&recording),
            now: Instant::ZERO,
            next: Instant::ZERO + AFTER_TICK,
            losses: [Losses::default(); REACHES],
        };
        (Box::new(recorder), recording)
    }

    fn record(&mut self, record: impl FnOnce(&mut Recording)) {
        record(&mut self.recording.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Medium for Recorder {
    fn disturb(&mut self, fault: Fault) {
        let now = self.now;
        self.record(|recording| recording.told.push((now, Told::Disturbed(fault))));
    }

    fn moved(&mut self, now: Instant, positions: &[DVec3]) {
        self.now = now;
        self.record(|recording| recording.moved(now, positions));
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
        self.record(|recording| {
            recording.sent += 1;
            recording.told.push((now, Told::Transmitted(from, bytes)));
        });
    }

    fn advance(&mut self, until: Instant, _: &mut Vec<Reception>) -> Result<(), String> {
        self.now = until;
        while self.next <= until {
            self.next = self.next + LOCATED;
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        self.next
    }

    fn counters(&self) -> Counters {
        let sent = self.recording.lock().unwrap_or_else(PoisonError::into_inner).sent;
        Counters { sent, ..Counters::default() }
    }

    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        &self.losses
    }
}

/// The medium as a recorded flight is put through it.
struct Replay<'a> {
    medium: &'a mut dyn Medium,
    places: Arc<[DVec3]>,
    received: Vec<Reception>,
    /// When each datagram was sent, by its place in memory, which it keeps.
    sent: BTreeMap<*const u8, Instant>,
    delays: Lateness,
    trace: u64,
}

impl Replay<'_> {
    /// Lets everything happen until then; what happens in that instant only where places do not change in it.
    fn until(&mut self, until: Instant, moves: bool) -> Result<()> {
        // Before it is told where the radios are nothing happens in it.
        if self.places.is_empty() {
            return Ok(());
        }
        while self.medium.poll_timeout() < until || (!moves && self.medium.poll_timeout() == until) {
            let at = if self.medium.looks_ahead() { until } else { self.medium.poll_timeout() };
            self.medium.moved(at, &self.places);
            self.medium.advance(at, &mut self.received).map_err(|why| anyhow!("medium: {why}"))?;
            // It has come to that time, whatever is next in it.
            let is_there = self.medium.looks_ahead() && self.received.is_empty();
            self.count();
            if is_there {
                break;
            }
        }
        Ok(())
    }

    fn count(&mut self) {
        for Reception { at, from, to, bytes } in self.received.drain(..) {
            if let Some(sent) = self.sent.get(&bytes.as_ptr()) {
                to.iter().for_each(|_| self.delays.count(at.since(*sent).as_micros() as u64));
            }
            for number in [at.as_micros(), from as u64].into_iter().chain(to.iter().map(|to| *to as u64)) {
                // FNV-1a.
                let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                self.trace = number.to_le_bytes().into_iter().fold(self.trace, mix);
            }
        }
    }
}

/// What a flight comes to with what its aircraft transmitted put through a medium.
///
/// # Errors
/// The medium cannot go on.
pub(crate) fn put_through(
    recording: &Recording,
    flight: &FlightResult,
    medium: &mut dyn Medium,
) -> Result<FlightResult> {
    let mut replay = Replay {
        medium,
        places: [].into(),
        received: Vec::new(),
        sent: BTreeMap::new(),
        delays: Lateness::default(),
        trace: flight.trace_hash,
    };
    for (at, told) in &recording.told {
        replay.until(*at, matches!(told, Told::Moved(_)))?;
        match told {
            Told::Moved(places) => replay.places = Arc::clone(places),
            Told::Disturbed(fault) => replay.medium.disturb(*fault),
            Told::Transmitted(from, bytes) => {
                replay.sent.insert(bytes.as_ptr(), *at);
                let (places, bytes) = (Arc::clone(&replay.places), Arc::clone(bytes));
                replay.medium.transmit(*at, *from, bytes, &places, &mut replay.received);
                replay.count();
            }
        }
    }
    let end = Instant::ZERO + flight.duration;
    replay.until(end, false)?;
    replay.medium.end(end).map_err(|why| anyhow!("medium: {why}"))?;
    let Counters { sent, delivered, lost, .. } = replay.medium.counters();
    Ok(FlightResult {
        radio: Radio { sent, delivered, lost, ..flight.radio },
        medium: replay.medium.statistics().cloned(),
        flows: replay.medium.flows().to_vec(),
        lateness: replay.medium.lateness(),
        losses: *replay.medium.losses_by_distance(),
        delays: Some(replay.delays),
        trace_hash: replay.trace,
        ..flight.clone()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wingbeat_cosim::ns3;
    use wingbeat_sim::medium::FlowFigures;
    use wingbeat_sim::medium::statistics::Statistics;

    use super::*;
    use crate::flight::{fly_through, observed};
    use crate::plan::{Network, Plan};
    use crate::run;
    use crate::scenario::Variant;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/plans");

    fn plan() -> Plan {
        let mut plan = Plan::read(&Path::new(FOLDER).join("media.toml")).unwrap();
        match ns3::find() {
            Ok(_) => {
                let text = "model = \"ns3\"\nns3 = { range_m = 250 }";
                plan.media.push(toml::from_str::<Network>(text).unwrap());
            }
            Err(why) => println!("ns-3 skipped: {why:#}"),
        }
        plan
    }

    /// A medium that is used, and recorded.
    struct Tee(Box<dyn Medium>, Box<dyn Medium>);

    impl Medium for Tee {
        fn disturb(&mut self, fault: Fault) {
            self.0.disturb(fault);
            self.1.disturb(fault);
        }
        fn moved(&mut self, now: Instant, positions: &[DVec3]) {
            self.0.moved(now, positions);
            self.1.moved(now, positions);
        }
        fn transmit(
            &mut self,
            now: Instant,
            from: usize,
            bytes: Arc<[u8]>,
            positions: &[DVec3],
            out: &mut Vec<Reception>,
        ) {
            self.1.transmit(now, from, Arc::clone(&bytes), positions, out);
            self.0.transmit(now, from, bytes, positions, out);
        }
        fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
            self.0.advance(until, out)
        }
        fn end(&mut self, now: Instant) -> Result<(), String> {
            self.0.end(now)
        }
        fn poll_timeout(&self) -> Instant {
            self.0.poll_timeout()
        }
        fn looks_ahead(&self) -> bool {
            self.0.looks_ahead()
        }
        fn counters(&self) -> Counters {
            self.0.counters()
        }
        fn statistics(&self) -> Option<&Statistics> {
            self.0.statistics()
        }
        fn flows(&self) -> &[FlowFigures] {
            self.0.flows()
        }
        fn losses_by_distance(&self) -> &[Losses; REACHES] {
            self.0.losses_by_distance()
        }
    }

    #[test]
    fn what_was_transmitted_in_a_medium_comes_to_the_same_in_it_again() {
        let plan = plan();
        // They fly by what they receive: all of it is recorded with the medium that they fly in.
        for mut scenario in plan.scenarios(Path::new(FOLDER), 3).unwrap() {
            let crate::scenario::Task::Own(own) = &mut scenario.task else { panic!("missions of their own") };
            (own.variant, scenario.network) = (Variant::MbcapE, None);
            let (recorder, recording) = Recorder::begin();
            let tee = Tee(scenario.radio(3).unwrap(), recorder);
            let flown =
                observed(&scenario, 3, plan.time_limit(), None, None, None, Some(Box::new(tee))).unwrap();
            let recording = recording.lock().unwrap();
            let again = put_through(&recording, &flown, &mut *scenario.radio(3).unwrap()).unwrap();
            let of = |flight: &FlightResult| (flight.radio.sent, flight.radio.delivered, flight.radio.lost);
            assert!(of(&flown).0 > 500 && of(&flown).1 > 100, "{:?}", of(&flown));
            assert_eq!((of(&again), &again.medium), (of(&flown), &flown.medium), "{}", scenario.label());
        }
    }

    #[test]
    fn a_flight_is_flown_once_and_repeats_through_every_network() {
        let (plan, folder) = (plan(), Path::new(FOLDER));
        let outcome = run::run(&plan, folder, 3, 1).unwrap();
        println!("{}", outcome.table);
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let rows = plan.flights(folder, 3).unwrap();
        let scenarios: Vec<_> = rows.iter().flatten().map(|(scenario, _)| scenario).collect();
        let through = fly_through(&scenarios, rows[0][0].1, plan.time_limit(), None, None).unwrap();
        assert_eq!(through.len(), plan.media.len());
        for flight in &through {
            assert_eq!(flight.aircraft, through[0].aircraft);
            assert_eq!(flight.radio.sent, through[0].radio.sent);
            let delays = flight.delays.unwrap();
            assert_eq!(delays.receptions, flight.radio.delivered);
            assert!((0.1..50.0).contains(&delays.mean_ms()), "{delays:?}");
            let row = format!("{:>8}  {:>8}  ", flight.radio.sent, flight.radio.delivered);
            assert!(outcome.table.contains(&row), "{row} {}", outcome.table);
        }
        let received: Vec<u64> = through.iter().map(|flight| flight.radio.delivered).collect();
        // 4 aircraft, and all that is sent without loss is received.
        assert_eq!(received[0], through[0].radio.sent * 3);
        assert!(received[1] < received[2] && received[2] < received[0], "{received:?}");
        assert_eq!(outcome.trace_hash, run::run(&plan, folder, 3, 3).unwrap().trace_hash);
        assert_ne!(outcome.trace_hash, run::run(&plan, folder, 4, 1).unwrap().trace_hash);
    }

    #[test]
    fn a_flight_is_put_through_ns3_by_every_method() {
        let Ok(_) = ns3::find().map_err(|why| println!("skipped: {why:#}")) else { return };
        let mut plan = plan();
        plan.media.truncate(1);
        for method in ["next-event", "coupled", "stepwise", "asynchronous"] {
            let text = format!("name = \"{method}\"\nmodel = \"ns3\"\nns3 = {{ method = \"{method}\" }}");
            plan.media.push(toml::from_str::<Network>(&text).unwrap());
        }
        let outcome = run::run(&plan, Path::new(FOLDER), 3, 1).unwrap();
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        for method in ["next-event", "coupled", "stepwise", "asynchronous"] {
            assert!(outcome.table.contains(method), "{}", outcome.table);
        }
        let found = plan.set_medium("csma").unwrap_err().to_string();
        assert_eq!(found, "medium: found csma beside the plan's [[media]], expected a plan with one medium");
    }

    #[test]
    fn flights_that_a_network_would_change_are_refused() {
        let text = include_str!("../plans/media.toml");
        let fault = "[[fault]]\nwhen = { link-lost = { aircraft = [1, 2], for_s = 2 } }\ninflict = { note = { text = \"lost\" } }\n";
        let late = "[[fault]]\nat_s = 30\ninflict = { loss = { share = 0.5, for_s = 20 } }\n";
        Plan::parse(&text.replace("[channel]", &format!("{late}\n[channel]")), Path::new(".")).unwrap();
        for (from, to, expected) in [
            ("[\"off\"]", "[\"off\", \"mbcap\"]", "media: found aircraft that fly by what they receive"),
            ("[channel]", &format!("{fault}\n[channel]"), "or a fault that the network brings"),
            ("\"range:300\"", "\"range:x\"", "media 2: channel.model: "),
            ("name = \"300 m\"", "name = \"frames\"", "media: found frames twice"),
            ("[channel]", "[vary]\nchannel = [\"802.11a\"]\n[channel]", "media: found vary.channel"),
            ("name = \"frames\"", "nmae = \"frames\"", "unknown field `nmae`"),
            ("every_ms = 200", "every_ms = 0", "broadcasts.every_ms: found 0, expected 10 to 60000"),
            ("bytes = 705", "bytes = 1473", "broadcasts.bytes: found 1473, expected 1 to 1472"),
        ] {
            assert!(text.contains(from), "{from}");
            let found =
                format!("{:#}", Plan::parse(&text.replacen(from, to, 1), Path::new(".")).unwrap_err());
            assert!(found.contains(expected), "{to}: {found}");
        }
        let alone = &text[..text.find("\n[[media]]").unwrap()];
        let found = format!("{:#}", Plan::parse(alone, Path::new(".")).unwrap_err());
        assert!(found.contains("broadcasts: found some and no media"), "{found}");
    }
}
