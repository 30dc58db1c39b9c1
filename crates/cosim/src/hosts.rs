//! Aircraft of one world on several computers. The first has the world, and some of the autopilots; the others, which may be slower to
//! reach, fly the rest. Each stretch crosses once: what autopilots receive, how far they are to fly, and then what they sent and
//! where they truly are. ArduCopter reads its ports each 10 ms, so nothing is lost by that. What happens to one (an
//! [`Incident`]) crosses when it happens.
//!
//! What carries the messages is an [`Exchange`]: HELICS, whose time counts them, or channels in a test. Computers that do
//! not fly alike are refused before anything flies: [`Identity`].

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_sim::autopilot::{Autopilot, Incident};
use wingbeat_sim::flight_controller::{RcChannels, Truth};

/// Carries what the first computer says to the others, which are counted from 2.
pub trait Exchange: Send {
    /// Sends, and waits for the answer of each to which something was sent, by their numbers.
    ///
    /// # Errors
    /// One does not answer.
    fn exchange(&mut self, messages: Vec<(usize, Vec<u8>)>) -> Result<Vec<(usize, Vec<u8>)>>;
}

/// Carries what another computer is told, and its answers.
pub trait Answering {
    /// What comes next.
    ///
    /// # Errors
    /// The first computer is gone.
    fn next(&mut self) -> Result<Vec<u8>>;

    /// Answers to it.
    ///
    /// # Errors
    /// The first computer is gone.
    fn answer(&mut self, bytes: Vec<u8>) -> Result<()>;
}

/// Of the program, and of the messages between its computers.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), ", messages 3");

/// By what a computer flies: equal on all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// This program's version: [`VERSION`].
    pub version: String,
    /// A hash over the plan with what was changed of it.
    pub plan: u64,
    /// A hash over what its mathematical library answers: an autopilot program calls that of its computer.
    pub arithmetic: u64,
    /// A hash over the autopilot program, 0 where it is simulated.
    pub program: u64,
    /// How many computers fly, by which the aircraft are dealt.
    pub computers: usize,
}

impl Identity {
    /// Whether another computer flies alike, and what of it differs.
    fn check(&self, number: usize, found: &Self) -> Result<()> {
        if found.version != self.version {
            return Err(other_version(number, &found.version, &self.version));
        }
        let differs = |what: &str, found: &dyn Debug, expected: &dyn Debug| -> Result<()> {
            bail!("computer {number}: found {what} {found:?}, expected {expected:?}, as on the first")
        };
        let hashes = [
            ("a plan of hash", found.plan, self.plan),
            ("a mathematical library (libm) of hash", found.arithmetic, self.arithmetic),
            ("an autopilot program of hash", found.program, self.program),
        ];
        for (what, found, expected) in hashes {
            if found != expected {
                return differs(what, &Hex(found), &Hex(expected));
            }
        }
        if found.computers != self.computers {
            return differs("hosts.count", &found.computers, &self.computers);
        }
        Ok(())
    }
}

struct Hex(u64);

impl Debug for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A hash over what the mathematical library of this computer answers.
#[allow(clippy::disallowed_methods, reason = "the computer's own functions are what is asked for")]
pub fn arithmetic() -> u64 {
    let functions: [fn(f64) -> f64; 11] = [
        f64::sin,
        f64::cos,
        f64::tan,
        f64::atan,
        f64::exp,
        f64::ln,
        f64::log10,
        f64::ln_1p,
        f64::cbrt,
        f64::sinh,
        |x| x.powf(0.37),
    ];
    // ArduPilot computes in these, and a library may change them alone.
    let singles: [fn(f32) -> f32; 8] =
        [f32::sin, f32::cos, f32::tan, f32::atan, f32::exp, f32::ln, f32::log10, |x| x.powf(0.37)];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    // FNV-1a over the bits.
    let mut add = |bits: u64| hash = (hash ^ bits).wrapping_mul(0x0000_0100_0000_01b3);
    for i in 1..=2_000_u16 {
        let x = f64::from(i) * 0.013_7;
        functions.iter().for_each(|function| add(function(x).to_bits()));
        add(x.atan2(f64::from(i % 7) - 3.0).to_bits());
        let small = f64::from(i) / 2_001.0;
        [small.asin(), small.acos()].iter().for_each(|angle| add(angle.to_bits()));

        let x = f32::from(i) * 0.013_7;
        singles.iter().for_each(|function| add(function(x).to_bits().into()));
        add(x.atan2(f32::from(i % 7) - 3.0).to_bits().into());
        let small = f32::from(i) / 2_001.0;
        [small.asin(), small.acos()].iter().for_each(|angle| add(angle.to_bits().into()));
    }
    hash
}

/// The version in a hello, with which it begins in every version of the program, whatever comes behind it.
fn version_of(bytes: &[u8]) -> Option<String> {
    let hello: (u32, String) = postcard::take_from_bytes(bytes).ok()?.0;
    (hello.0 == 0).then_some(hello.1)
}

fn other_version(number: usize, found: &str, expected: &str) -> anyhow::Error {
    anyhow!("computer {number}: found wingbeat {found:?}, expected {expected:?}, as on the first")
}

/// Other versions of the program know the first by their places: what is new comes behind them, and [`VERSION`] counts on.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// What flies on the first computer.
    Hello(Identity),
    /// A flight begins: its hash, and its seed.
    Flight { hash: u64, seed: u64 },
    /// A stretch, of these aircraft.
    Stretch { until_us: u64, aircraft: Vec<Step> },
    /// There is no further flight.
    Over,
    /// Something happens to an aircraft, behind what it was told before.
    Incident { told: Step, incident: Incident },
}

#[derive(Debug, Serialize, Deserialize)]
struct Step {
    aircraft: u16,
    bytes: Vec<u8>,
    /// `None`: as it was; the receiver's link is lost, or these pulses.
    receiver: Option<Option<[u16; 8]>>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answered {
    Hello(Identity),
    /// It has started these aircraft, or come to an end.
    Ready(Vec<Flown>),
    Flown(Vec<Flown>),
    /// Why it cannot fly.
    Refused(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct Flown {
    aircraft: u16,
    result: Result<Arrived, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Arrived {
    bytes: Vec<u8>,
    next_us: u64,
    acts_at_once: bool,
    position: [i32; 3],
    local: [f64; 3],
    velocity: [f64; 3],
    heading_rad: f64,
    armed: bool,
    mode: u32,
    landed: bool,
    flight_time_us: u64,
    touchdown_m_s: f64,
}

impl Arrived {
    fn of(autopilot: &dyn Autopilot, bytes: Vec<u8>) -> Self {
        let truth = autopilot.truth();
        let Position { latitude_e7, longitude_e7, altitude_mm } = truth.position;
        Self {
            bytes,
            next_us: autopilot.poll_timeout().as_micros(),
            acts_at_once: autopilot.acts_at_once(),
            position: [latitude_e7, longitude_e7, altitude_mm],
            local: truth.local.to_array(),
            velocity: truth.velocity.to_array(),
            heading_rad: truth.heading_rad,
            armed: truth.armed,
            mode: truth.mode.number(),
            landed: truth.landed,
            flight_time_us: truth.flight_time.as_micros() as u64,
            touchdown_m_s: truth.touchdown_m_s,
        }
    }

    fn truth(&self) -> Result<Truth, String> {
        let [latitude_e7, longitude_e7, altitude_mm] = self.position;
        Ok(Truth {
            position: Position { latitude_e7, longitude_e7, altitude_mm },
            local: DVec3::from_array(self.local),
            velocity: DVec3::from_array(self.velocity),
            heading_rad: self.heading_rad,
            armed: self.armed,
            mode: Mode::from_number(self.mode)
                .ok_or_else(|| format!("found mode {}, which is none", self.mode))?,
            landed: self.landed,
            flight_time: Duration::from_micros(self.flight_time_us),
            touchdown_m_s: self.touchdown_m_s,
        })
    }
}

/// The first computer's side. Its clones are one.
#[derive(Clone)]
pub struct Federation(Arc<Mutex<State>>);

struct State {
    exchange: Box<dyn Exchange>,
    /// It has failed: it is not waited for once more.
    is_lost: bool,
    /// This one and the others.
    computers: usize,
    /// What the others are to fly next, by their numbers.
    pending: BTreeMap<usize, Vec<Step>>,
    until: Instant,
    flown: BTreeMap<usize, Result<Arrived, String>>,
}

impl Debug for Federation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Federation({})", self.computers())
    }
}

impl PartialEq for Federation {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Federation {
    /// Of so many computers, this one among them.
    ///
    /// # Errors
    /// Another does not answer, or does not fly as this one does.
    pub fn open(exchange: Box<dyn Exchange>, computers: usize, identity: &Identity) -> Result<Self> {
        let mut state = State {
            exchange,
            is_lost: false,
            computers,
            pending: BTreeMap::new(),
            until: Instant::ZERO,
            flown: BTreeMap::new(),
        };
        let mut problem = Ok(());
        for (number, answer) in state.ask_all(&Said::Hello(identity.clone()))? {
            let Answered::Hello(found) = answer else {
                bail!("computer {number}: found {answer:?}, expected who it is")
            };
            problem = problem.and(identity.check(number, &found));
        }
        problem?;
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many computers they are.
    pub fn computers(&self) -> usize {
        self.state().computers
    }

    /// The computer of an aircraft, from 1, which is this one: they are dealt out in turn.
    pub fn computer_of(&self, aircraft: usize) -> usize {
        aircraft % self.computers() + 1
    }

    /// The others start the autopilots of a flight, known by its hash.
    ///
    /// # Errors
    /// One cannot.
    pub fn begin(&self, hash: u64, seed: u64) -> Result<()> {
        let mut state = self.state();
        state.pending.clear();
        state.flown.clear();
        for (number, answer) in state.ask_all(&Said::Flight { hash, seed })? {
            match answer {
                Answered::Ready(started) => state.keep(started),
                Answered::Refused(why) => bail!("computer {number}: {why}"),
                Answered::Hello(_) | Answered::Flown(_) => {
                    bail!("computer {number}: found {answer:?}, expected that it is ready")
                }
            }
        }
        Ok(())
    }

    /// The autopilot of an aircraft on another computer, which has its home there.
    ///
    /// # Errors
    /// The other computer has not started it.
    pub fn autopilot(&self, aircraft: usize, home: Position) -> Result<Remote> {
        let computer = self.computer_of(aircraft);
        let mut remote = Remote {
            federation: self.clone(),
            computer,
            aircraft,
            frame: Frame::new(home),
            bytes: Vec::new(),
            receiver: None,
            next: Instant::ZERO,
            acts_at_once: false,
            truth: Truth {
                position: home,
                local: DVec3::ZERO,
                velocity: DVec3::ZERO,
                heading_rad: 0.0,
                armed: false,
                mode: Mode::Stabilize,
                landed: true,
                flight_time: Duration::ZERO,
                touchdown_m_s: 0.0,
            },
        };
        remote.arrive().map_err(|why| anyhow!("aircraft {}: {why}", aircraft + 1))?;
        Ok(remote)
    }
}

impl State {
    fn ask(&mut self, messages: Vec<(usize, Vec<u8>)>) -> Result<Vec<(usize, Answered)>> {
        let wanted: Vec<usize> = messages.iter().map(|(number, _)| *number).collect();
        let answers = self.exchange.exchange(messages);
        self.is_lost = answers.is_err();
        let answers = answers?;
        let answered: Vec<usize> = answers.iter().map(|(number, _)| *number).collect();
        ensure!(
            answered == wanted,
            "found answers of computers {answered:?}, expected one of each of {wanted:?}"
        );
        let read = |(number, bytes): (usize, Vec<u8>)| match postcard::from_bytes(&bytes) {
            Ok(answer) => Ok((number, answer)),
            Err(error) => Err(match version_of(&bytes) {
                Some(found) if found != VERSION => other_version(number, &found, VERSION),
                _ => anyhow!(error).context(format!("computer {number}: what it answers is no answer")),
            }),
        };
        answers.into_iter().map(read).collect()
    }

    fn ask_all(&mut self, said: &Said) -> Result<Vec<(usize, Answered)>> {
        let bytes = postcard::to_stdvec(said)?;
        self.ask((2..=self.computers).map(|number| (number, bytes.clone())).collect())
    }

    /// What waits is flown on all computers at the same time.
    fn fly(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let until_us = self.until.as_micros();
        let mut messages = Vec::new();
        for (number, aircraft) in pending {
            messages.push((number, postcard::to_stdvec(&Said::Stretch { until_us, aircraft })?));
        }
        self.ask_flown(messages)
    }

    /// One of them does it at once.
    fn tell(&mut self, number: usize, said: &Said) -> Result<()> {
        self.ask_flown(vec![(number, postcard::to_stdvec(said)?)])
    }

    fn ask_flown(&mut self, messages: Vec<(usize, Vec<u8>)>) -> Result<()> {
        for (number, answer) in self.ask(messages)? {
            let Answered::Flown(flown) = answer else {
                bail!("computer {number}: found {answer:?}, expected what was flown")
            };
            self.keep(flown);
        }
        Ok(())
    }

    fn keep(&mut self, flown: Vec<Flown>) {
        self.flown.extend(flown.into_iter().map(|flown| (usize::from(flown.aircraft), flown.result)));
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.is_lost {
            // What they answer changes nothing any more.
            let _ = self.ask_all(&Said::Over);
        }
    }
}

/// An autopilot on another computer.
#[derive(Debug)]
pub struct Remote {
    federation: Federation,
    computer: usize,
    aircraft: usize,
    frame: Frame,
    bytes: Vec<u8>,
    receiver: Option<Option<[u16; 8]>>,
    next: Instant,
    acts_at_once: bool,
    truth: Truth,
}

impl Remote {
    /// What it was told and has not flown by.
    fn told(&mut self) -> Step {
        Step {
            aircraft: self.aircraft as u16,
            bytes: std::mem::take(&mut self.bytes),
            receiver: self.receiver.take(),
        }
    }

    /// Takes what came of it, and answers what it sent.
    fn arrive(&mut self) -> Result<Vec<u8>, String> {
        let there = format!("computer {}", self.computer);
        let arrived = self.federation.state().flown.remove(&self.aircraft);
        let arrived =
            arrived.ok_or_else(|| format!("{there}: found nothing of it, expected what it has flown"))?;
        let arrived = arrived.map_err(|why| format!("{there}: {why}"))?;
        self.truth = arrived.truth().map_err(|why| format!("{there}: {why}"))?;
        (self.next, self.acts_at_once) = (Instant::from_micros(arrived.next_us), arrived.acts_at_once);
        Ok(arrived.bytes)
    }
}

impl Autopilot for Remote {
    fn receive(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn begin(&mut self, until: Instant) {
        let step = self.told();
        let mut state = self.federation.state();
        state.until = until;
        state.pending.entry(self.computer).or_default().push(step);
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let mut state = self.federation.state();
        if !state.pending.is_empty() {
            state.fly().map_err(|error| format!("{error:#}"))?;
        }
        drop(state);
        out.extend_from_slice(&self.arrive()?);
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        self.next
    }

    fn truth(&self) -> Truth {
        self.truth
    }

    fn place_in(&self, frame: &Frame) -> DVec3 {
        self.frame.to_frame(frame, self.truth.local)
    }

    fn set_rc(&mut self, channels: Option<RcChannels>) {
        self.receiver = Some(channels.map(|RcChannels(pulses)| pulses));
    }

    fn suffer(&mut self, incident: Incident) -> Result<(), String> {
        let flies = |steps: &Vec<Step>| steps.iter().any(|step| usize::from(step.aircraft) == self.aircraft);
        if self.federation.state().pending.get(&self.computer).is_some_and(flies) {
            return Err(format!("found {incident:?} within a stretch, expected it between two"));
        }
        let said = Said::Incident { told: self.told(), incident };
        self.federation.state().tell(self.computer, &said).map_err(|error| format!("{error:#}"))?;
        self.arrive().map(|_| ())
    }

    fn acts_at_once(&self) -> bool {
        self.acts_at_once
    }
}

/// Autopilots of a flight, each with its aircraft's number from 0.
pub type Started = Vec<(usize, Box<dyn Autopilot>)>;

/// Another computer's side, until the first has no further flight; how many it flew. `start` starts the autopilots of a flight,
/// known by its hash and its seed.
///
/// # Errors
/// The first computer is gone, or flies otherwise.
pub fn serve(
    number: usize,
    link: &mut dyn Answering,
    identity: &Identity,
    mut start: impl FnMut(u64, u64) -> Result<Started>,
) -> Result<u64> {
    let mut flights = 0;
    let mut flying: Started = Vec::new();
    let mut differs = Ok(());
    // Of this computer's part; the first says it, too.
    let mut failed: Result<()> = Ok(());
    loop {
        let bytes = link.next()?;
        let said: Said = match (postcard::from_bytes(&bytes), version_of(&bytes)) {
            (Ok(said), _) => said,
            (Err(_), Some(first)) if first != VERSION => {
                differs = Err(other_version(number, VERSION, &first));
                // The first one reads as much of it as it knows, and says it too.
                link.answer(postcard::to_stdvec(&Answered::Hello(identity.clone()))?)?;
                continue;
            }
            (Err(error), _) => return Err(error).context("what the first computer says is nothing known"),
        };
        let answer = match said {
            Said::Hello(first) => {
                differs = first.check(number, identity);
                Answered::Hello(identity.clone())
            }
            Said::Flight { hash, seed } => {
                // Before the next are started: programs of the last have its ports.
                flying.clear();
                match start(hash, seed) {
                    Ok(started) => {
                        flying = started;
                        flights += 1;
                        let arrived = |(index, autopilot): &(usize, Box<dyn Autopilot>)| Flown {
                            aircraft: *index as u16,
                            result: Ok(Arrived::of(&**autopilot, Vec::new())),
                        };
                        Answered::Ready(flying.iter().map(arrived).collect())
                    }
                    Err(error) => {
                        let why = format!("{error:#}");
                        failed = failed.and(Err(error));
                        Answered::Refused(why)
                    }
                }
            }
            Said::Stretch { until_us, aircraft } => {
                Answered::Flown(fly(&mut flying, Instant::from_micros(until_us), aircraft))
            }
            Said::Incident { told, incident } => Answered::Flown(vec![suffer(&mut flying, told, incident)]),
            Said::Over => {
                flying.clear();
                link.answer(postcard::to_stdvec(&Answered::Ready(Vec::new()))?)?;
                return differs.and(failed).map(|()| flights);
            }
        };
        if let Answered::Flown(flown) = &answer {
            let why = flown.iter().find_map(|one| one.result.as_ref().err());
            failed = failed.and(why.map_or(Ok(()), |why| Err(anyhow!("{why}"))));
        }
        link.answer(postcard::to_stdvec(&answer)?)?;
    }
}

fn find(flying: &mut Started, number: usize) -> Result<&mut dyn Autopilot, String> {
    match flying.iter_mut().find(|(index, _)| *index == number) {
        Some((_, autopilot)) => Ok(&mut **autopilot),
        None => Err("found no such aircraft here".into()),
    }
}

fn tell(autopilot: &mut dyn Autopilot, step: &Step) {
    autopilot.receive(&step.bytes);
    if let Some(channels) = step.receiver {
        autopilot.set_rc(channels.map(RcChannels));
    }
}

/// All begin before the first is waited for.
fn fly(flying: &mut Started, until: Instant, steps: Vec<Step>) -> Vec<Flown> {
    for step in &steps {
        // One that is not here is answered for below.
        let Ok(autopilot) = find(flying, usize::from(step.aircraft)) else { continue };
        tell(autopilot, step);
        autopilot.begin(until);
    }
    let mut finish = |aircraft: u16| {
        let autopilot = find(flying, usize::from(aircraft))?;
        let mut bytes = Vec::new();
        autopilot.finish(&mut bytes)?;
        Ok(Arrived::of(autopilot, bytes))
    };
    steps.iter().map(|step| Flown { aircraft: step.aircraft, result: finish(step.aircraft) }).collect()
}

fn suffer(flying: &mut Started, told: Step, incident: Incident) -> Flown {
    let result = find(flying, usize::from(told.aircraft)).and_then(|autopilot| {
        tell(autopilot, &told);
        autopilot.suffer(incident)?;
        Ok(Arrived::of(autopilot, Vec::new()))
    });
    Flown { aircraft: told.aircraft, result }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use wingbeat_sim::flight_controller::{Config, FlightController};

    use super::*;

    /// The first computer's end of threads that stand for the others.
    struct Threads(Vec<End>);
    type End = (Sender<Vec<u8>>, Receiver<Vec<u8>>);
    struct Thread(Receiver<Vec<u8>>, Sender<Vec<u8>>);

    impl Exchange for Threads {
        fn exchange(&mut self, messages: Vec<(usize, Vec<u8>)>) -> Result<Vec<(usize, Vec<u8>)>> {
            for (number, bytes) in &messages {
                self.0[number - 2].0.send(bytes.clone()).ok().context("gone")?;
            }
            messages
                .iter()
                .map(|(number, _)| Ok((*number, self.0[number - 2].1.recv().ok().context("gone")?)))
                .collect()
        }
    }

    impl Answering for Thread {
        fn next(&mut self) -> Result<Vec<u8>> {
            self.0.recv().ok().context("gone")
        }

        fn answer(&mut self, bytes: Vec<u8>) -> Result<()> {
            self.1.send(bytes).ok().context("gone")
        }
    }

    fn identity() -> Identity {
        Identity { version: "1".into(), plan: 2, arithmetic: arithmetic(), program: 0, computers: 2 }
    }

    fn controller(index: usize) -> FlightController {
        let home = Position {
            latitude_e7: 394_000_000 + 900 * index as i32,
            longitude_e7: -3_000_000,
            altitude_mm: 0,
        };
        FlightController::new(Config::new(index as u8 + 1, home), index as u64, Instant::ZERO)
    }

    type Computer = std::thread::JoinHandle<Result<u64>>;

    fn computers(count: usize, theirs: Identity) -> (Threads, Vec<Computer>) {
        let (mut threads, mut joined) = (Vec::new(), Vec::new());
        for number in 2..=count {
            let ((to, told), (tell, from)) = (channel(), channel());
            threads.push((to, from));
            let theirs = theirs.clone();
            joined.push(std::thread::spawn(move || {
                let start = |hash, seed| {
                    ensure!((hash, seed) == (7, 1), "found flight {hash} of seed {seed}, expected 7 of 1");
                    let ours = (0..5).filter(|index| index % count + 1 == number);
                    Ok(ours.map(|index| (index, controller(index).into())).collect())
                };
                serve(number, &mut Thread(told, tell), &theirs, start)
            }));
        }
        (Threads(threads), joined)
    }

    /// What five flight controllers send in so many stretches, in which this happens, and where each is in the end.
    fn flown(
        mut autopilots: Vec<Box<dyn Autopilot>>,
        incidents: &[(usize, usize, Incident)],
    ) -> (Vec<u8>, Vec<Truth>) {
        let mut sent = Vec::new();
        let mut now = autopilots.iter().map(|autopilot| autopilot.poll_timeout()).min().unwrap();
        for stretch in 0..3_000 {
            let mut due: Vec<usize> = (0..5).filter(|&i| autopilots[i].poll_timeout() <= now).collect();
            for (_, aircraft, incident) in incidents.iter().filter(|(at, ..)| *at == stretch) {
                // A pilot who takes it has a transmitter again.
                autopilots[*aircraft].set_rc(None);
                autopilots[*aircraft].suffer(*incident).unwrap();
                assert!(autopilots[*aircraft].acts_at_once());
                due = (0..5).filter(|i| due.contains(i) || i == aircraft).collect();
            }
            due.iter().for_each(|&i| autopilots[i].begin(now));
            for i in due {
                autopilots[i].finish(&mut sent).unwrap();
                autopilots[i].receive(&[0xfd, i as u8]);
            }
            now = autopilots.iter().map(|autopilot| autopilot.poll_timeout()).min().unwrap();
        }
        (sent, autopilots.iter().map(|autopilot| autopilot.truth()).collect())
    }

    #[test]
    fn what_is_flown_on_one_two_and_three_computers_is_the_same() {
        // Each on every computer of two and three, but for the first aircraft.
        let incidents: Vec<_> = [
            Incident::PilotTakes(Mode::AltHold),
            Incident::GnssLost(true),
            Incident::BatteryAt { percent: 30.0 },
            Incident::PositionDrifts { to_m: DVec3::new(3.0, 4.0, 1.0), within: Duration::from_secs(5) },
            Incident::TextsGarbled(true),
            Incident::Restarts,
        ]
        .into_iter()
        .enumerate()
        .flat_map(|(i, incident)| (1..5).map(move |aircraft| (500 + 301 * i + aircraft, aircraft, incident)))
        .collect();
        let alone = || (0..5).map(|index| controller(index).into()).collect();
        let (expected, places) = flown(alone(), &incidents);
        assert!(expected.len() > 5_000, "{} bytes", expected.len());
        assert!(flown(alone(), &[]).0 != expected, "nothing happened");
        for count in [2, 3] {
            let (threads, joined) = computers(count, identity());
            let federation = Federation::open(Box::new(threads), count, &identity()).unwrap();
            federation.begin(7, 1).unwrap();
            let autopilot = |index: usize| -> Box<dyn Autopilot> {
                let ours = controller(index);
                if federation.computer_of(index) == 1 {
                    return ours.into();
                }
                Box::new(federation.autopilot(index, Autopilot::truth(&ours).position).unwrap())
            };
            let (sent, truths) = flown((0..5).map(autopilot).collect(), &incidents);
            assert_eq!((sent == expected, truths), (true, places.clone()), "{count} computers");
            // Each says why it refused, too.
            let refused = federation.begin(8, 1).unwrap_err().to_string();
            assert_eq!(refused, "computer 2: found flight 8 of seed 1, expected 7 of 1");
            drop(federation);
            for computer in joined {
                let said = computer.join().unwrap().unwrap_err().to_string();
                assert_eq!(said, "found flight 8 of seed 1, expected 7 of 1");
            }
        }
    }

    /// Writes down what it is told, and has it with its next stretch.
    #[derive(Debug)]
    struct Noting(Arc<Mutex<Vec<String>>>, Truth);

    impl Noting {
        fn note(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }
    }

    impl Autopilot for Noting {
        fn receive(&mut self, bytes: &[u8]) {
            self.note(format!("receives {bytes:?}"));
        }
        fn begin(&mut self, until: Instant) {
            self.note(format!("begins {}", until.as_micros()));
        }
        fn finish(&mut self, _: &mut Vec<u8>) -> Result<(), String> {
            Ok(())
        }
        fn poll_timeout(&self) -> Instant {
            Instant::from_micros(70)
        }
        fn truth(&self) -> Truth {
            self.1
        }
        fn place_in(&self, _: &Frame) -> DVec3 {
            DVec3::ZERO
        }
        fn set_rc(&mut self, channels: Option<RcChannels>) {
            self.note(format!("transmitter {}", channels.is_some()));
        }
        fn suffer(&mut self, incident: Incident) -> Result<(), String> {
            self.note(format!("suffers {incident:?}"));
            if incident == Incident::MotorsFail { Err("found motors".into()) } else { Ok(()) }
        }
    }

    #[test]
    fn what_happens_crosses_behind_what_was_told_before() {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let ((to, told), (tell, from)) = (channel(), channel());
        let (ours, home) = (Arc::clone(&notes), Autopilot::truth(&controller(0)));
        let other = std::thread::spawn(move || {
            let start = |_, _| {
                let autopilot: Box<dyn Autopilot> = Box::new(Noting(Arc::clone(&ours), home));
                Ok(vec![(1, autopilot)])
            };
            serve(2, &mut Thread(told, tell), &identity(), start)
        });
        let federation = Federation::open(Box::new(Threads(vec![(to, from)])), 2, &identity()).unwrap();
        federation.begin(7, 1).unwrap();
        let mut remote = federation.autopilot(1, home.position).unwrap();
        assert!(!remote.acts_at_once());
        remote.receive(&[1]);
        remote.set_rc(Some(RcChannels::HOVER));
        remote.suffer(Incident::GnssLost(true)).unwrap();
        remote.receive(&[2]);
        remote.suffer(Incident::Restarts).unwrap();
        remote.set_rc(None);
        remote.begin(Instant::from_micros(70));
        let why = remote.suffer(Incident::Restarts).unwrap_err();
        assert!(why.contains("within a stretch"), "{why}");
        remote.finish(&mut Vec::new()).unwrap();
        assert_eq!(remote.suffer(Incident::MotorsFail).unwrap_err(), "computer 2: found motors");
        drop((remote, federation));
        assert_eq!(other.join().unwrap().unwrap_err().to_string(), "found motors");
        let expected = [
            "receives [1]",
            "transmitter true",
            "suffers GnssLost(true)",
            "receives [2]",
            "suffers Restarts",
            "receives []",
            "transmitter false",
            "begins 70",
            "receives []",
            "suffers MotorsFail",
        ];
        assert_eq!(*notes.lock().unwrap(), expected);
    }

    /// That of 0.1.0, messages 2: four fields, without the number of computers.
    const HELLO_2: &[u8] = b"\x00\x110.1.0, messages 2\x02\x03\x00";

    #[test]
    fn one_whose_hello_has_another_shape_is_of_another_version() {
        let there = format!(
            "computer 2: found wingbeat \"0.1.0, messages 2\", expected {VERSION:?}, as on the first"
        );
        let ((to, told), (tell, from)) = (channel(), channel());
        let old = std::thread::spawn(move || {
            told.recv().unwrap();
            tell.send(HELLO_2.to_vec()).unwrap();
        });
        let error = Federation::open(Box::new(Threads(vec![(to, from)])), 2, &identity()).unwrap_err();
        assert_eq!(error.to_string(), there);
        old.join().unwrap();

        let (Threads(first), joined) = computers(2, identity());
        first[0].0.send(HELLO_2.to_vec()).unwrap();
        let answer = first[0].1.recv().unwrap();
        assert_eq!(version_of(&answer).unwrap(), identity().version);
        first[0].0.send(postcard::to_stdvec(&Said::Over).unwrap()).unwrap();
        let here = format!(
            "computer 2: found wingbeat {VERSION:?}, expected \"0.1.0, messages 2\", as on the first"
        );
        for computer in joined {
            assert_eq!(computer.join().unwrap().unwrap_err().to_string(), here);
        }
    }

    #[test]
    fn computers_that_fly_otherwise_are_refused_by_both() {
        let differ = [
            (
                Identity { version: "0".into(), ..identity() },
                "computer 2: found wingbeat \"0\", expected \"1\"",
            ),
            (
                Identity { plan: 3, ..identity() },
                "a plan of hash 0000000000000003, expected 0000000000000002",
            ),
            (
                Identity { arithmetic: 4, ..identity() },
                "a mathematical library (libm) of hash 0000000000000004",
            ),
            (Identity { program: 5, ..identity() }, "an autopilot program of hash 0000000000000005"),
            (Identity { computers: 3, ..identity() }, "found hosts.count 3, expected 2"),
        ];
        for (theirs, expected) in differ {
            let (threads, joined) = computers(2, theirs);
            let here = Federation::open(Box::new(threads), 2, &identity()).unwrap_err().to_string();
            assert!(here.contains(expected), "{here}");
            for computer in joined {
                assert_eq!(computer.join().unwrap().unwrap_err().to_string(), here);
            }
        }
    }
}
