//! Fault drills: seeded swarms under seeded faults, in virtual time. While something goes wrong the rules of safety
//! hold; once nothing goes wrong any more, the rules of liveness do too. `rules` names them all.
//!
//! A kind and a seed are one drill: the same swarm, the same faults, the same bytes.
//!
//! | module | |
//! |---|---|
//! | `conditions` | how many aircraft, which autopilot, how good its position, how much wind |
//! | `dice` | the random numbers that a script is drawn from |
//! | `script` | what is drawn from a seed: aircraft, flight, faults |
//! | `failure` | the catalogue of failures, the phases of a flight |
//! | `run` | one drill under way, step by step |
//! | `sky` | what the actors share and the rules read: world, progress, story |
//! | `faults`, `operator`, `pilot`, `forged` | the actors |
//! | `progress` | how far each aircraft has come |
//! | `rules` | the checks by name, of all drills and of each task |
//! | [`hazards`] | which failure was flown in which phase, and the tables of the documents |
//! | [`hunt`] | a search for drills that break a rule |
//! | `table` | the table of many drills, the story of one |

mod conditions;
mod dice;
mod failure;
mod faults;
mod forged;
pub mod hazards;
pub mod hunt;
mod lookout;
mod operator;
mod pilot;
mod progress;
mod rules;
mod run;
mod script;
mod sky;
mod table;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use strum::{IntoStaticStr, VariantArray};
use wingbeat_geo::Duration;

pub use conditions::{
    AIRCRAFT, BATTERY_MIN, Chosen, Conditions, GNSS_BIAS_M, GPS_NOISE_M, SLOPE_M, SPEED_M_S, WIND_M_S,
};
pub use dice::Draws;
pub use failure::{Began, Failure, FlightPhase, Protocol};
pub use table::{failures, story, table};

/// What goes wrong in a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// The owner of the mission is lost: its companion, with or without a guardian, its radio, or its motors.
    MasterKilled,
    /// The leader of the flight is lost.
    CentreKilled,
    /// Any other is lost.
    SlaveKilled,
    /// One radio is silent for up to a minute.
    RadioSilent,
    /// 0 to 80 % of all datagrams are lost, the whole flight long.
    Loss,
    /// Links fall silent for stretches, the whole flight long.
    Bursts,
    /// Two groups do not receive each other for 30 s.
    Partition,
    /// The operator stops all.
    AbortAll,
    /// The operator stops one.
    AbortOne,
    /// Two or three of all these. The last of [`Kind::SWARM`].
    Combined,
    /// A serial line loses what is sent, what is received, or both, for up to a minute.
    SerialCut,
    /// A serial line is cut and whole by turns.
    SerialFlaps,
    /// A flight controller restarts.
    AutopilotReboots,
    /// A pilot takes an aircraft, hovers, and lands it.
    PilotTakes,
    /// An autopilot acts by itself: transmitter, battery, estimate; or its motors fail.
    Failsafe,
    /// Satellites are lost, or an estimate drifts away from the truth.
    Gnss,
    /// A daemon ends and is started again, with or without a guardian.
    DaemonRestarts,
    /// Two daemons end within 15 s of each other; one is started again, the other too, later, or never.
    TwoDaemons,
    /// Datagrams come late, overtake each other, and come twice, the whole flight long.
    Datagrams,
    /// The operator commands *Hold*, *Return* and *Land* within a second, from two consoles.
    Consoles,
    /// Batteries run low, one's or all, and aircraft end their flights by their reserve: of charge, or of voltage.
    Reserve,
    /// The piloted leader's companion, radio or motors are lost.
    FollowLeaderKilled,
    /// The leader's radio is silent for a while.
    FollowLeaderSilent,
    /// A follower is lost.
    FollowSlaveKilled,
    /// 0 to 80 % of all datagrams are lost, the whole flight long.
    FollowLoss,
    /// Links fall silent for stretches, the whole flight long.
    FollowBursts,
    /// Two groups do not receive each other for 30 s.
    FollowPartition,
    /// Another swarm flies on the same channel, and an unknown sender claims to lead this one.
    FollowStranger,
    /// The operator stops all.
    FollowAbortAll,
    /// The operator stops a follower.
    FollowAbortOne,
    /// A serial line is cut, or flaps: the leader's, or a follower's.
    FollowSerial,
    /// Satellites are lost, or an estimate drifts: the leader's, or a follower's.
    FollowGnss,
    /// A daemon ends and is started again: the leader's, or a follower's.
    FollowDaemonRestarts,
    /// A pilot takes a follower.
    FollowPilotTakes,
    /// Batteries run low, a follower's or all.
    FollowReserve,
    /// Aircraft on missions of their own, side by side (Mission): one loses its line or its companion, a pilot takes it, or
    /// the operator holds it.
    MissionFaults,
    /// The same where all search one area (Sweep).
    SweepFaults,
    /// The same where paths cross (MBCAP-e).
    MbcapFaults,
    /// An autopilot acts by itself, or its motors fail: of aircraft on missions of their own, under any of the three.
    OwnFailsafe,
    /// Satellites are lost, or an estimate drifts, likewise.
    OwnGnss,
    /// Batteries run low, likewise.
    OwnReserve,
    /// A radio is dead, mute or deaf, for a while or for good (MUSCOP).
    OneWayRadio,
    /// A radio is dead, mute or deaf, for a while or for good (FollowMe).
    FollowRadio,
    /// Datagrams are lost, late or doubled, from some phase on (FollowMe).
    FollowDatagrams,
    /// Nothing goes wrong: aircraft meet head-on, crossing and following, at any angle and height (MBCAP-e).
    MbcapMeet,
    /// A radio is dead, mute or deaf while they meet so.
    MbcapRadio,
    /// Datagrams are lost, late or doubled while they meet so.
    MbcapDatagrams,
    /// Missions that take longer than the batteries last (Mission, MBCAP).
    LongWay,
    /// The satellites of all aircraft are jammed (any protocol).
    Jammer,
    /// The radios of all aircraft are silent, mute or deaf.
    AllRadios,
    /// The batteries of all aircraft run low.
    AllBatteries,
    /// The mean wind changes at once for all aircraft.
    GustFront,
    /// One transmitter controls all aircraft and is lost.
    OneTransmitter,
    /// The operator, the consoles and the ground service are gone for good.
    GroundEnds,
    /// Any two of the catalogue, in any phase (MUSCOP).
    AnyTwoMuscop,
    /// Any two of the catalogue, in any phase (FollowMe).
    #[strum(serialize = "any-two-followme")]
    AnyTwoFollowMe,
    /// Any two of the catalogue, in any phase (MBCAP-e).
    AnyTwoMbcap,
    /// Any two of the catalogue, in any phase (Mission).
    AnyTwoMission,
    /// Any two of the catalogue, in any phase (Sweep).
    AnyTwoSweep,
    /// A second ground station commands one aircraft into a mode (any protocol).
    SecondGround,
    /// The companion of one aircraft gets no processor for stretches.
    Starved,
    /// A pilot's transmitter is lost while a command of the operator is carried out.
    FailsafeInCommand,
}

impl Kind {
    /// The kinds of a swarm that flies a mission (MUSCOP); the combination of the others is the last.
    pub const SWARM: [Self; 10] = [
        Self::MasterKilled,
        Self::CentreKilled,
        Self::SlaveKilled,
        Self::RadioSilent,
        Self::Loss,
        Self::Bursts,
        Self::Partition,
        Self::AbortAll,
        Self::AbortOne,
        Self::Combined,
    ];
    /// What else goes wrong with such a swarm: no part of [`Kind::Combined`].
    pub const TROUBLE: [Self; 11] = [
        Self::SerialCut,
        Self::SerialFlaps,
        Self::AutopilotReboots,
        Self::PilotTakes,
        Self::Failsafe,
        Self::Gnss,
        Self::DaemonRestarts,
        Self::TwoDaemons,
        Self::Datagrams,
        Self::Consoles,
        Self::Reserve,
    ];
    /// The kinds of aircraft on missions of their own (Mission, Sweep, MBCAP).
    pub const OWN: [Self; 6] = [
        Self::MissionFaults,
        Self::SweepFaults,
        Self::MbcapFaults,
        Self::OwnFailsafe,
        Self::OwnGnss,
        Self::OwnReserve,
    ];
    /// The kinds of a formation that follows a piloted leader (FollowMe).
    pub const FOLLOWING: [Self; 14] = [
        Self::FollowLeaderKilled,
        Self::FollowLeaderSilent,
        Self::FollowSlaveKilled,
        Self::FollowLoss,
        Self::FollowBursts,
        Self::FollowPartition,
        Self::FollowStranger,
        Self::FollowAbortAll,
        Self::FollowAbortOne,
        Self::FollowSerial,
        Self::FollowGnss,
        Self::FollowDaemonRestarts,
        Self::FollowPilotTakes,
        Self::FollowReserve,
    ];

    /// Causes that reach all aircraft; the seed draws the protocol.
    pub const COMMON: [Self; 6] = [
        Self::Jammer,
        Self::AllRadios,
        Self::AllBatteries,
        Self::GustFront,
        Self::OneTransmitter,
        Self::GroundEnds,
    ];
    /// Faults of one aircraft; the seed draws the protocol.
    pub const FURTHER: [Self; 3] = [Self::SecondGround, Self::Starved, Self::FailsafeInCommand];
    /// Any two faults, a kind for each protocol.
    pub const ANY_TWO: [Self; 5] =
        [Self::AnyTwoMuscop, Self::AnyTwoFollowMe, Self::AnyTwoMbcap, Self::AnyTwoMission, Self::AnyTwoSweep];

    /// Returns the protocol of the drill of this seed. Kinds of [`Kind::OWN`] draw theirs with their missions.
    pub(crate) fn protocol(self, seed: u64) -> Protocol {
        match self {
            kind if Self::FOLLOWING.contains(&kind) => Protocol::FollowMe,
            kind if Self::COMMON.contains(&kind) || Self::FURTHER.contains(&kind) => {
                Protocol::VARIANTS[(seed % Protocol::VARIANTS.len() as u64) as usize]
            }
            Self::FollowRadio | Self::FollowDatagrams | Self::AnyTwoFollowMe => Protocol::FollowMe,
            Self::MbcapMeet | Self::MbcapRadio | Self::MbcapDatagrams | Self::AnyTwoMbcap => Protocol::Mbcap,
            // The other half of the seed: `Conditions` draws the autopilot from `seed % 2`.
            Self::LongWay if seed / 2 % 2 == 1 => Protocol::Mbcap,
            Self::LongWay | Self::AnyTwoMission => Protocol::Mission,
            Self::AnyTwoSweep | Self::SweepFaults => Protocol::Sweep,
            Self::MbcapFaults => Protocol::Mbcap,
            kind if Self::OWN.contains(&kind) => Protocol::Mission,
            // `SWARM`, `TROUBLE`, `OneWayRadio`, `AnyTwoMuscop`.
            _ => Protocol::Muscop,
        }
    }

    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    /// Whether every aircraft completes its flight whatever of this kind goes wrong.
    fn costs_no_flight(self) -> bool {
        matches!(self, Self::Loss | Self::FollowStranger)
    }

    /// As commands and tables call it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::str::FromStr for Kind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::all().map(Self::name).collect::<Vec<_>>().join(", ");
        let found = Self::all().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("found '{text}', expected one of {names}"))
    }
}

/// How one drill went.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The kind of fault that was injected.
    pub kind: Kind,
    /// Seed of scenario and faults.
    pub seed: u64,
    /// What surrounded it.
    pub conditions: Conditions,
    /// What went wrong when, and how far each aircraft was then.
    pub story: Vec<String>,
    /// The rules of safety that were broken.
    pub safety: Vec<String>,
    /// The rules of liveness that were broken.
    pub liveness: Vec<String>,
    /// How many completed the mission and landed.
    pub completed: usize,
    /// Number of aircraft.
    pub aircraft: usize,
    /// The nearest that two ever were while one of them flew, metres.
    pub separation_min_m: f64,
    /// From the end of what went wrong until all that could land had landed.
    pub to_ground: Duration,
    /// Virtual time flown.
    pub duration: Duration,
    /// Number over every byte that crossed a border.
    pub trace_hash: u64,
    /// What aircraft logged; `!` marks warnings and errors.
    pub log: Vec<String>,
    /// The protocol that was flown.
    pub protocol: Protocol,
    /// Whether an aircraft was in the air: a drill in which none flew proves nothing.
    pub flew: bool,
    /// Which failures began in which phases.
    pub began: BTreeSet<Began>,
    /// The hardest touch-down of an aircraft whose motors were not made to fail, metres per second.
    pub hardest_m_s: f64,
    /// The numbers that decided it.
    pub draws: Draws,
}

impl Outcome {
    /// Whether no aircraft flew and no rule of safety was broken.
    pub fn is_not_flown(&self) -> bool {
        !self.flew && self.safety.is_empty()
    }

    /// Whether every rule was kept.
    pub fn is_good(&self) -> bool {
        self.safety.is_empty() && self.liveness.is_empty()
    }

    /// Whether an aircraft met the ground hard, or its motors stopped above it, without a fault that stops motors.
    pub fn has_crashed(&self) -> bool {
        self.safety.iter().any(|line| line.starts_with("crash:"))
    }

    /// The command that flies it again.
    pub fn command(&self) -> String {
        command(self.kind, self.seed, self.conditions)
    }
}

/// The command that flies a drill again.
pub fn command(kind: Kind, seed: u64, conditions: Conditions) -> String {
    format!("wingbeat bench drill --kind {} --seed {seed}{}", kind.name(), conditions.options(seed))
}

thread_local! {
    static UNDER_WAY: Cell<Option<(Kind, u64, Conditions)>> = const { Cell::new(None) };
}

/// The command that flies the drill that this thread flies now: what a panic belongs to where panics end the process.
pub fn under_way() -> Option<String> {
    UNDER_WAY.get().map(|(kind, seed, conditions)| command(kind, seed, conditions))
}

/// Flies one drill. A panic is a failure of safety, where the build lets it be caught.
///
/// # Errors
/// What was drawn cannot be flown.
pub fn drill(kind: Kind, seed: u64, conditions: Conditions) -> anyhow::Result<Outcome> {
    recorded(kind, seed, conditions, &Draws::default(), None)
}

/// The same with other draws than those of the seed, and with the flight logs of its aircraft in a folder.
///
/// # Errors
/// As [`drill`], and a log that cannot be written.
pub fn recorded(
    kind: Kind,
    seed: u64,
    conditions: Conditions,
    draws: &Draws,
    folder: Option<&Path>,
) -> anyhow::Result<Outcome> {
    anyhow::ensure!(draws.are_sound(), "draws: expected numbers from 0 to less than 1");
    UNDER_WAY.set(Some((kind, seed, conditions)));
    let flown = catch_unwind(AssertUnwindSafe(|| run::fly(kind, seed, conditions, draws, folder)));
    UNDER_WAY.set(None);
    flown.unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Ok(Outcome {
            kind,
            seed,
            conditions,
            story: vec![],
            safety: vec![format!("panic: {message}")],
            liveness: vec![],
            completed: 0,
            aircraft: conditions.aircraft,
            separation_min_m: f64::INFINITY,
            to_ground: Duration::ZERO,
            duration: Duration::ZERO,
            trace_hash: 0,
            log: vec![],
            protocol: kind.protocol(seed),
            flew: true,
            began: BTreeSet::new(),
            hardest_m_s: 0.0,
            draws: draws.clone(),
        })
    })
}

/// Flies the drills of these kinds with seeds from `first` on, over threads, each in the conditions of its seed. Results are in the order of
/// kinds and seeds, whatever the number of threads.
///
/// # Errors
/// What was drawn cannot be flown.
pub fn drills(
    kinds: &[Kind],
    first: u64,
    seeds: u64,
    threads: usize,
    conditions: impl Fn(u64) -> Conditions + Sync,
) -> anyhow::Result<Vec<Outcome>> {
    let next = AtomicU64::new(0);
    let all = kinds.len() as u64 * seeds;
    let flown = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= all {
                        return;
                    }
                    let (kind, seed) = (kinds[(job / seeds) as usize], first + job % seeds);
                    let mut outcome = drill(kind, seed, conditions(seed));
                    if let Ok(outcome) = &mut outcome
                        && outcome.is_good()
                    {
                        // Thousands of good flights need no log.
                        outcome.log = vec![];
                    }
                    flown.lock().expect("no thread panics while it holds the list").push((job, outcome));
                }
            });
        }
    });
    let mut flown = flown.into_inner().expect("all threads are done");
    flown.sort_by_key(|(job, _)| *job);
    flown.into_iter().map(|(_, outcome)| outcome).collect()
}
