//! ns-3 as the medium among a world's radios: a process of its own, asked what arrives before each event of the world.
//!
//! Our program (`crates/cosim/ns3/medium.cc`, built by `cargo xtask ns3 program` where ns-3 is installed) is a process because
//! of ns-3's licence, and because it may end without us. One socket is its standard input and output. It greets with `WBN3`
//! and the number of the protocol (2 bytes). Then each request is answered; numbers are little-endian, a length first:
//!
//! | request | bytes | | answer | bytes |
//! |---|---|---|---|---|
//! | until, ns | 8 | | reached, ns | 8 |
//! | 1: it stops at a reception; 2: it says what it used | 1 | | its next event, ns | 8 |
//! | moves | 4 | | of a processor used so far, ns, or 0 | 8 |
//! | each: at ns; of each radio: east, north, up, metres | 8; 24 | | receptions | 4 |
//! | datagrams | 4 | | each: at ns, receiver, id | 14 |
//! | each: at ns, sender, id, bytes | 16 | | arrivals of flows | 4 |
//! | | | | each: at ns, flow, bytes | 16 |
//!
//! It stops 2 µs after a first reception, so that what an aircraft sends because of one is on the air at most 2 µs late. It is
//! not asked while it has nothing to do. A thread that waits for each answer shares a core with the program ([`crate::same_core`]). The content of datagrams stays here: it is told their sizes. What was asked of it may be
//! kept as a [`Tape`], and run again without the world: [`crate::tape`].
#![allow(clippy::disallowed_methods, reason = "another program is waited for, and may fall silent")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::time::{ClockId, clock_gettime};
use wingbeat_geo::{DVec3, Instant};
use wingbeat_sim::channel::{Counters, Losses, REACH_M, REACHES};
use wingbeat_sim::faults::{Disturbances, Fault};
use wingbeat_sim::medium::timing::Nanos;
use wingbeat_sim::medium::{FlowFigures, Lateness, Medium, Reception};

use crate::method::Method;
use crate::process::Watched;
use crate::same_core::SameCore;
use crate::tape::{Sent, Tape};

/// The program's name, and the environment's key for its path.
const PROGRAM: &str = "wingbeat-ns3";
const PROGRAM_KEY: &str = "WINGBEAT_NS3";
const MAGIC: &[u8; 4] = b"WBN3";
const PROTOCOL: u16 = 3;
/// Bits of a request.
const STOPS: u8 = 1;
const WANTS_USED: u8 = 2;
/// An answer is read in one piece unless it is longer.
const READ_BYTES: usize = 1 << 16;
/// More than any answer needs: every datagram of a second at every radio.
const ANSWER_BYTES_MOST: usize = 64 << 20;
/// What is still under way after so long was received wherever it is to be received: a datagram waits at most 0.5 s in
/// a queue, and AODV keeps one for 30 s.
const UNDER_WAY_NS: u64 = 60_000_000_000;
/// One that closed its output has ended within so long, or does not end.
const ENDS_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
const POLL: std::time::Duration = std::time::Duration::from_millis(20);
/// A message quotes so much of what the program printed.
const QUOTED_BYTES: u64 = 400;

/// How datagrams find radios that are not in range. Broadcasts, which is what aircraft send, reach neighbours only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// They do not.
    #[default]
    None,
    /// Ad-hoc on-demand distance vector (RFC 3561).
    Aodv,
    /// Optimised link state (RFC 3626).
    Olsr,
    /// Destination-sequenced distance vector.
    Dsdv,
}

impl Routing {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Aodv => "aodv",
            Self::Olsr => "olsr",
            Self::Dsdv => "dsdv",
        }
    }
}

impl std::str::FromStr for Routing {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::None, Self::Aodv, Self::Olsr, Self::Dsdv];
        let known = all.into_iter().find(|routing| routing.name() == name);
        known.ok_or_else(|| format!("found '{name}', expected none, aodv, olsr or dsdv"))
    }
}

/// What distance does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// So much is lost over the first metre, and so much more with each tenfold distance.
    LogDistance {
        /// Of the distance.
        exponent: f64,
        /// dB.
        first_metre_db: f64,
    },
    /// Within it all receive alike, beyond none receives.
    Range {
        /// Metres.
        range_m: f64,
    },
}

/// Where a flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At this radio.
    Radio(usize),
    /// At this node on the ground.
    Ground(usize),
}

/// Constant bit rate by UDP from one radio to another, beside what aircraft send.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Index of the sender.
    pub from: usize,
    /// The receiver.
    pub to: End,
    /// Of payload.
    pub kbit_s: f64,
    /// Of each datagram, 4 to 1472.
    pub payload_bytes: u16,
    /// When it begins and ends, seconds.
    pub seconds: (f64, f64),
}

/// The medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How the flight and ns-3 keep one time.
    pub method: Method,
    /// How datagrams find radios that are not in range.
    pub routing: Routing,
    /// What distance does.
    pub reach: Reach,
    /// Power of a radio and the gains of both antennas.
    pub power_dbm: f64,
    /// By how much a receiver's noise exceeds the thermal noise.
    pub noise_figure_db: f64,
    /// Of every frame.
    pub rate_mbit_s: u8,
    /// Traffic beside that of the aircraft.
    pub flows: Vec<Flow>,
    /// Nodes on the ground, which stay where they are, metres east, north and up. They receive flows and pass them on.
    pub ground: Vec<DVec3>,
}

impl Config {
    /// Index of a flow's receiver where so many radios move.
    fn end(&self, flow: &Flow, movers: usize) -> usize {
        match flow.to {
            End::Radio(radio) => radio,
            End::Ground(node) => movers + node,
        }
    }
}

impl Default for Config {
    /// As our own medium's.
    fn default() -> Self {
        Self {
            method: Method::default(),
            routing: Routing::None,
            reach: Reach::LogDistance { exponent: 2.2, first_metre_db: 46.7 },
            power_dbm: 30.0,
            noise_figure_db: 7.0,
            rate_mbit_s: 6,
            flows: Vec::new(),
            ground: Vec::new(),
        }
    }
}

/// Where our program is: what `WINGBEAT_NS3` names, else beside this one, else in `../ns3` of its folder, where `cargo xtask ns3
/// program` puts it.
///
/// # Errors
/// It is nowhere.
pub fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(PROGRAM_KEY) {
        let path = PathBuf::from(named);
        ensure!(path.is_file(), "{PROGRAM_KEY}: found no file {}, expected {PROGRAM}", path.display());
        return Ok(path);
    }
    let own = std::env::current_exe().unwrap_or_default();
    let folders = own.ancestors().skip(1).take(3);
    let places = folders.flat_map(|folder| [folder.join(PROGRAM), folder.join("ns3").join(PROGRAM)]);
    places.into_iter().find(|path| path.is_file()).with_context(|| {
        format!(
            "found no {PROGRAM} beside {}, nor {PROGRAM_KEY}, expected the program that cargo xtask ns3 program builds (Debian: \
             apt install libns3-dev)",
            own.display()
        )
    })
}

/// A datagram that is on its way, or was until lately.
struct UnderWay {
    from: usize,
    /// Of each radio, whether it has received it.
    is_received: Vec<bool>,
    /// In the time of the flight, and in that of ns-3.
    sent: Instant,
    sent_at_ns: u64,
    bytes: Arc<[u8]>,
}

/// What the coupling has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How often the program was asked.
    pub round_trips: u64,
    /// Of a processor, by the program.
    pub ns3_ns: u64,
    /// Of a processor, by those who ask it.
    pub asking_ns: u64,
}

/// ns-3 among a number of radios.
pub struct Ns3 {
    program: Watched,
    socket: UnixStream,
    printed: File,
    /// All radios: those that move, then those on the ground.
    count: usize,
    movers: usize,
    /// How far it has come.
    reached_ns: u64,
    /// When something next happens in it.
    next_ns: u64,
    places: Vec<DVec3>,
    /// Whether it was told where they are.
    is_placed: bool,
    /// Of all radios, from a time on.
    moves: Vec<(u64, Vec<DVec3>)>,
    queued: Vec<Sent>,
    under_way: BTreeMap<u32, UnderWay>,
    serial: u32,
    disturbances: Disturbances,
    counters: Counters,
    by_distance: [Losses; REACHES],
    flows: Vec<FlowFigures>,
    lateness: Lateness,
    spent: Spent,
    /// Used by the program before what it costs was counted; `None` while that is not counted.
    ns3_before_ns: Option<u64>,
    same_core: SameCore,
    tape: Option<Arc<Mutex<Tape>>>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Ns3 {
    /// Starts the program for so many radios that move. A program that answers nothing for `silence`, by the wall clock, has failed.
    ///
    /// # Errors
    /// It does not start, or is another.
    pub fn start(
        program: &Path,
        config: &Config,
        seed: u64,
        movers: usize,
        silence: std::time::Duration,
    ) -> Result<Self> {
        let count = movers + config.ground.len();
        let (ours, theirs) = UnixStream::pair().context("a socket")?;
        ours.set_read_timeout(Some(silence))?;
        // One that reads no more takes as much as the socket holds.
        ours.set_write_timeout(Some(silence))?;
        let theirs = OwnedFd::from(theirs);
        let printed = crate::process::temporary(tempfile::tempfile())?;
        let mut command = Command::new(program);
        command
            .args(arguments(config, seed, movers))
            .stdin(Stdio::from(theirs.try_clone()?))
            .stdout(Stdio::from(theirs))
            .stderr(Stdio::from(printed.try_clone()?));
        let started = Watched::start(&mut command)
            .with_context(|| format!("{}: it does not start", program.display()))?;
        // With it our copies of its end of the socket: or we would not see that it has closed it.
        drop(command);
        let same_core = SameCore::with(&started.child);
        let mut medium = Self {
            program: started,
            socket: ours,
            printed,
            count,
            movers,
            reached_ns: 0,
            next_ns: 0,
            places: vec![DVec3::ZERO; movers].into_iter().chain(config.ground.iter().copied()).collect(),
            is_placed: false,
            moves: Vec::new(),
            queued: Vec::new(),
            under_way: BTreeMap::new(),
            serial: 0,
            disturbances: Disturbances::new(seed, count),
            counters: Counters::default(),
            by_distance: [Losses::default(); REACHES],
            flows: config
                .flows
                .iter()
                .map(|flow| FlowFigures::new(flow.from, config.end(flow, movers)))
                .collect(),
            lateness: Lateness::default(),
            spent: Spent::default(),
            ns3_before_ns: None,
            same_core,
            tape: None,
            request: Vec::new(),
            answer: Vec::new(),
        };
        let mut hello = [0; 6];
        if let Err(error) = medium.socket.read_exact(&mut hello) {
            return Err(medium.silent(&error)).with_context(|| program.display().to_string());
        }
        let [magic @ .., low, high] = hello;
        let protocol = u16::from_le_bytes([low, high]);
        ensure!(
            &magic == MAGIC && protocol == PROTOCOL,
            "{}: found a greeting of {hello:?}, expected {PROGRAM} with protocol {PROTOCOL}: build it again (cargo xtask ns3 program)",
            program.display()
        );
        Ok(medium)
    }

    /// What it has cost since [`Ns3::count_cost`].
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Counts from now on what it costs; its start is no part of that.
    ///
    /// # Errors
    /// The program answers nothing.
    pub fn count_cost(&mut self) -> Result<()> {
        self.ns3_before_ns = Some(0);
        self.ask(0, false)?;
        (self.ns3_before_ns, self.spent) = (Some(self.spent.ns3_ns), Spent::default());
        Ok(())
    }

    /// Keeps from now on what is asked of it, and what that costs.
    ///
    /// # Errors
    /// The program answers nothing.
    pub fn keep(&mut self) -> Result<Arc<Mutex<Tape>>> {
        self.count_cost()?;
        let tape = Arc::new(Mutex::new(Tape::new(self.movers)));
        Ok(Arc::clone(self.tape.insert(tape)))
    }

    /// From then on the radios that move are at these places.
    ///
    /// # Panics
    /// If it is not one place for each.
    pub fn moves_at(&mut self, at: Instant, places: &[DVec3]) {
        assert_eq!(places.len(), self.movers, "one place for each radio that moves");
        self.move_at(Nanos::of(at).0.max(self.reached_ns), places);
    }

    pub(crate) fn move_at(&mut self, at_ns: u64, places: &[DVec3]) {
        self.is_placed = true;
        self.places[..self.movers].copy_from_slice(places);
        self.moves.push((at_ns, self.places.clone()));
    }

    /// Lets all happen until then, whatever arrives; how many receptions that were.
    ///
    /// # Errors
    /// It ended, fell silent, or answers what is none.
    pub fn run_to(&mut self, until: Instant) -> Result<u64> {
        Ok(self.ask(Nanos::of(until).0, false)?.len() as u64)
    }

    /// A datagram of the tape, sent then.
    pub(crate) fn send_again(&mut self, sent: Sent) {
        self.queued.push(sent);
    }

    /// Ends the program, as a crash of it would.
    pub fn kill(&mut self) {
        self.program.kill();
    }

    /// Why nothing comes from the program.
    fn silent(&mut self, error: &std::io::Error) -> anyhow::Error {
        let how = match (error.kind(), self.program.child.try_wait()) {
            (ErrorKind::WouldBlock | ErrorKind::TimedOut, Ok(None)) => {
                "ns-3 fell silent: found no answer".to_owned()
            }
            (_, Ok(Some(status))) => format!("ns-3 ended: {status}"),
            (_, _) => match self.about_to_end() {
                Some(status) => format!("ns-3 ended: {status}"),
                None => format!("ns-3 closed its output and goes on ({error})"),
            },
        };
        let mut text = String::new();
        let _ = self.printed.rewind();
        let _ = (&self.printed).take(QUOTED_BYTES).read_to_string(&mut text);
        let text = text.trim().replace('\n', " | ");
        if text.is_empty() { anyhow!("{how}") } else { anyhow!("{how}, it printed: {text}") }
    }

    /// How it has ended, where it does within a moment.
    fn about_to_end(&mut self) -> Option<std::process::ExitStatus> {
        let polls = ENDS_WITHIN.as_millis() / POLL.as_millis();
        (0..polls).find_map(|_| {
            std::thread::sleep(POLL);
            self.program.child.try_wait().ok().flatten()
        })
    }

    /// Asks once what happens until then, or until something has arrived.
    pub(crate) fn ask(&mut self, until_ns: u64, stops: bool) -> Result<Vec<Arrived>> {
        if !stops {
            self.begin(until_ns, stops)?;
            return self.finish(until_ns);
        }
        // Programs that are started from now on would be on that core too; a flight's are by now.
        self.same_core.before_asking();
        let answer = self.begin(until_ns, stops).and_then(|()| self.finish(until_ns));
        self.same_core.after_asking();
        answer
    }

    /// Asks, and does not wait for the answer.
    pub(crate) fn begin(&mut self, until_ns: u64, stops: bool) -> Result<()> {
        // What is later is for a later request.
        let moves = self.moves.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        let queued = self.queued.partition_point(|sent| sent.at_ns <= until_ns);
        if let Some(tape) = &self.tape {
            let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
            tape.take(until_ns, &self.moves[..moves], &self.queued[..queued], self.movers);
        }
        let began_ns = self.used_ns();
        self.request.clear();
        self.request.extend([0; 4]);
        self.request.extend(until_ns.to_le_bytes());
        let wants_used = if self.ns3_before_ns.is_some() { WANTS_USED } else { 0 };
        self.request.push(if stops { STOPS | wants_used } else { wants_used });
        self.request.extend((moves as u32).to_le_bytes());
        for (at_ns, places) in self.moves.drain(..moves) {
            self.request.extend(at_ns.to_le_bytes());
            for number in places.iter().flat_map(|place| place.to_array()) {
                self.request.extend(number.to_le_bytes());
            }
        }
        self.request.extend((queued as u32).to_le_bytes());
        for Sent { at_ns, from, id, bytes } in self.queued.drain(..queued) {
            self.request.extend(at_ns.to_le_bytes());
            self.request.extend((from as u16).to_le_bytes());
            self.request.extend(id.to_le_bytes());
            self.request.extend(bytes.to_le_bytes());
        }
        let length = (self.request.len() - 4) as u32;
        self.request[..4].copy_from_slice(&length.to_le_bytes());
        self.spent.round_trips += 1;
        let written = self.socket.write_all(&self.request);
        self.spent.asking_ns += self.used_ns().saturating_sub(began_ns);
        written.map_err(|error| self.silent(&error))
    }

    /// The answer to what was asked until then.
    pub(crate) fn finish(&mut self, until_ns: u64) -> Result<Vec<Arrived>> {
        let began_ns = self.used_ns();
        let length = match read_answer(&mut self.socket, &mut self.answer) {
            Ok(length) => length,
            Err(error) => return Err(self.silent(&error)),
        };
        let broken = || anyhow!("ns-3: found an answer of {length} bytes that is none");
        let mut fields = Fields(&self.answer[4..4 + length]);
        let answer = (|| {
            let (reached_ns, next_ns, used_ns) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let receptions = fields.u32()?;
            let mut received = Vec::new();
            for _ in 0..receptions {
                received.push(Arrived {
                    at_ns: fields.u64()?,
                    to: usize::from(fields.u16()?),
                    id: fields.u32()?,
                });
            }
            let mut arrivals = Vec::new();
            for _ in 0..fields.u32()? {
                arrivals.push((fields.u64()?, fields.u32()? as usize, fields.u32()?));
            }
            fields.0.is_empty().then_some((reached_ns, next_ns, used_ns, received, arrivals))
        })();
        let (reached_ns, next_ns, ns3_used_ns, received, arrivals) = answer.ok_or_else(broken)?;
        let from_ns = self.reached_ns;
        ensure!(
            (from_ns..=until_ns).contains(&reached_ns),
            "ns-3: found {reached_ns} ns reached, expected {from_ns} to {until_ns}"
        );
        // It stops early where something has arrived, and there alone.
        ensure!(
            reached_ns == until_ns || !received.is_empty(),
            "ns-3: found {reached_ns} ns reached and nothing received, expected {until_ns}"
        );
        ensure!(
            next_ns >= reached_ns,
            "ns-3: found its next event at {next_ns} ns, expected {reached_ns} at least"
        );
        for one in &received {
            ensure!(one.to < self.count, "ns-3: found receiver {} of {}", one.to, self.count);
            ensure!(
                (from_ns..=reached_ns).contains(&one.at_ns),
                "ns-3: found a reception at {} ns, expected {from_ns} to {reached_ns}",
                one.at_ns
            );
            if let Some(sent) = self.under_way.get_mut(&one.id) {
                let again = std::mem::replace(&mut sent.is_received[one.to], true);
                ensure!(
                    !again && one.to != sent.from,
                    "ns-3: found datagram {} of radio {} received by radio {}, expected each other radio at most once",
                    one.id,
                    sent.from,
                    one.to
                );
            }
        }
        (self.reached_ns, self.next_ns) = (reached_ns, next_ns);
        for (at_ns, flow, bytes) in arrivals {
            if let Some(flow) = self.flows.get_mut(flow) {
                flow.count(Nanos(at_ns).instant(), bytes);
            }
        }
        if let Some(before_ns) = self.ns3_before_ns {
            self.spent.ns3_ns = ns3_used_ns.saturating_sub(before_ns);
            self.spent.asking_ns += self.used_ns().saturating_sub(began_ns);
        }
        if let Some(tape) = &self.tape {
            let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
            tape.answered(reached_ns, received.len() as u64, self.spent);
        }
        Ok(received)
    }

    /// A datagram is sent at `at_ns` of ns-3's time, or as soon as it may still.
    pub(crate) fn send(&mut self, now: Instant, at_ns: u64, from: usize, bytes: Arc<[u8]>) {
        let (id, at_ns) = (self.serial, at_ns.max(self.reached_ns));
        self.serial = self.serial.wrapping_add(1);
        self.counters.sent += 1;
        self.counters.lost += self.movers as u64 - 1;
        for to in (0..self.movers).filter(|to| *to != from) {
            let losses = &mut self.by_distance[self.reach(from, to)];
            losses.sent += 1;
            losses.lost += 1;
        }
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.queued.push(Sent { at_ns, from, id, bytes: length });
        self.under_way.insert(
            id,
            UnderWay { from, is_received: vec![false; self.count], sent: now, sent_at_ns: at_ns, bytes },
        );
    }

    /// Of what has arrived, what its receivers get, at `handed` of the time at which it arrived.
    pub(crate) fn receive(
        &mut self,
        arrived: Vec<Arrived>,
        handed: impl Fn(u64) -> Instant,
        dated: Dated,
        out: &mut Vec<Reception>,
    ) {
        // Of nodes on the ground only flows are counted.
        for Arrived { at_ns, to, id } in arrived.into_iter().filter(|one| one.to < self.movers) {
            let Some(UnderWay { from, sent, sent_at_ns, bytes, .. }) = self.under_way.get(&id) else {
                continue;
            };
            let (from, sent, bytes) = (*from, *sent, Arc::clone(bytes));
            let (due_ns, at) = (Nanos::of(sent).0 + at_ns.saturating_sub(*sent_at_ns), handed(at_ns));
            if self.disturbances.lose(sent, from, to) {
                continue;
            }
            self.counters.lost -= 1;
            self.counters.delivered += 1;
            let dated_ns = match dated {
                Dated::WhenReceived => Nanos::of(at).0,
                Dated::WhenArrived => at_ns,
            };
            self.lateness.count(dated_ns.abs_diff(due_ns) / 1_000);
            let reach = self.reach(from, to);
            let losses = &mut self.by_distance[reach];
            losses.lost = losses.lost.saturating_sub(1);
            let (late, again) = self.disturbances.delay(sent, from, to);
            let again = again.map(|by| at + late + by);
            out.extend([Some(at + late), again].into_iter().flatten().map(|at| Reception {
                at,
                from,
                to: vec![to],
                bytes: Arc::clone(&bytes),
            }));
        }
        self.forget();
    }

    /// What this thread has used of a processor, where that is counted: the question is a system call.
    fn used_ns(&self) -> u64 {
        if self.ns3_before_ns.is_none() {
            return 0;
        }
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    }

    /// How far it has come, in its time.
    pub(crate) fn reached_ns(&self) -> u64 {
        self.reached_ns
    }

    fn reach(&self, from: usize, to: usize) -> usize {
        let place = |i: usize| self.places.get(i).copied().unwrap_or_default().truncate();
        ((place(from).distance(place(to)) / REACH_M + 0.5) as usize).min(REACHES - 1)
    }

    /// Forgets what is under way no more.
    fn forget(&mut self) {
        let since_ns = self.reached_ns.saturating_sub(UNDER_WAY_NS);
        while let Some(first) = self.under_way.first_entry() {
            if first.get().sent_at_ns >= since_ns {
                break;
            }
            first.remove();
        }
    }
}

/// Which time a reception has where it is reported.
#[derive(Clone, Copy)]
pub(crate) enum Dated {
    /// That at which an aircraft receives it.
    WhenReceived,
    /// That of ns-3.
    WhenArrived,
}

/// A datagram arrived in ns-3.
pub(crate) struct Arrived {
    /// In its time.
    at_ns: u64,
    to: usize,
    id: u32,
}

/// Reads an answer behind its length, both into `buffer`; how many bytes came, which are more than were announced if it is none.
fn read_answer(socket: &mut UnixStream, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
    buffer.resize(buffer.len().max(READ_BYTES), 0);
    let (mut got, mut expected) = (0, 4);
    while got < expected {
        match socket.read(&mut buffer[got..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => got += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(length) = buffer[..got].first_chunk() {
            expected = 4 + (u32::from_le_bytes(*length) as usize).min(ANSWER_BYTES_MOST);
            buffer.resize(buffer.len().max(expected), 0);
        }
    }
    Ok(got - 4)
}

fn arguments(config: &Config, seed: u64, movers: usize) -> Vec<String> {
    let mut arguments = vec![
        format!("--nodes={}", movers + config.ground.len()),
        // ns-3 takes a run of its one seed, 1 to 2³² − 1.
        format!("--seed={}", 1 + seed % u64::from(u32::MAX - 1)),
        format!("--routing={}", config.routing.name()),
        format!("--rate={}", config.rate_mbit_s),
        format!("--power-dbm={}", config.power_dbm),
        format!("--noise-figure-db={}", config.noise_figure_db),
    ];
    match config.reach {
        Reach::LogDistance { exponent, first_metre_db } => {
            arguments.push(format!("--exponent={exponent}"));
            arguments.push(format!("--first-metre-db={first_metre_db}"));
        }
        Reach::Range { range_m } => arguments.push(format!("--range-m={range_m}")),
    }
    if !config.flows.is_empty() {
        let flows = config.flows.iter().map(|flow| {
            let ((begin_s, end_s), to) = (flow.seconds, config.end(flow, movers));
            format!("{}:{to}:{}:{}:{begin_s}:{end_s}", flow.from, flow.kbit_s, flow.payload_bytes)
        });
        arguments.push(format!("--flows={}", flows.collect::<Vec<_>>().join(",")));
    }
    arguments
}

impl Medium for Ns3 {
    fn disturb(&mut self, fault: Fault) {
        self.disturbances.begin(fault);
    }

    fn moved(&mut self, _: Instant, positions: &[DVec3]) {
        if !self.is_placed || self.places[..self.movers] != *positions {
            // Where they were since it was asked last is of no time.
            self.moves.clear();
            self.move_at(self.reached_ns, positions);
        }
    }

    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        positions: &[DVec3],
        _: &mut Vec<Reception>,
    ) {
        assert_eq!(positions.len(), self.movers, "one position per radio");
        self.moved(now, positions);
        self.send(now, Nanos::of(now).0, from, bytes);
    }

    fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        let until_ns = Nanos::of(until).0;
        if until_ns <= self.reached_ns {
            return Ok(());
        }
        let received = self.ask(until_ns, true).map_err(|error| format!("{error:#}"))?;
        self.receive(received, |at_ns| Nanos(at_ns).instant(), Dated::WhenReceived, out);
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        let queued_ns = self.queued.first().map_or(u64::MAX, |first| first.at_ns);
        Nanos(self.next_ns.min(queued_ns)).instant()
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn flows(&self) -> &[FlowFigures] {
        &self.flows
    }

    fn lateness(&self) -> Option<Lateness> {
        Some(self.lateness)
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        &self.by_distance
    }
}

/// What is left of an answer.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk::<N>()?;
        self.0 = left;
        Some(*taken)
    }
    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
