//! What is drawn from a drill's seed: the aircraft, their flight, and what goes wrong at which point of it. The order
//! of the draws is part of a drill: another order is another flight.

mod catalogue;
mod encounter;
mod follow;
mod own;
mod swarm;
mod trouble;

use wingbeat_agent::Command;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::swarm::Manner;
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::motion::BatteryParameters;

use super::conditions::HOVER_MAH_PER_MIN;
use super::dice::{Dice, Draws, Streams};
use super::failure::Protocol;
use super::progress::Stage;
use super::{Conditions, Kind};
use crate::scenario::{FollowTask, Scenario, Task};

/// A formation that is refused is drawn so much wider, metres.
const EASED_BY_M: f64 = 5.0;

/// An aircraft by what it does in its swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The owner of the mission, or the piloted leader.
    Master,
    /// The leader of the flight; before the plan is known, the master.
    Leader,
    /// The n-th of all others.
    Follower(usize),
}

/// How an aircraft is lost to its swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// Its companion dies, and its autopilot continues to the last target.
    Companion,
    /// Its companion dies, and a guardian lands the aircraft.
    Guarded,
    /// It falls.
    Falls,
    /// Its radio stops sending and receiving.
    Radio,
}

impl Death {
    const ALL: [Self; 4] = [Self::Companion, Self::Guarded, Self::Falls, Self::Radio];

    pub(super) fn fault(self, vehicle: usize) -> Fault {
        match self {
            Self::Companion => Fault::CompanionDies { vehicle, guarded: false },
            Self::Guarded => Fault::CompanionDies { vehicle, guarded: true },
            Self::Falls => Fault::Falls { vehicle },
            Self::Radio => Fault::RadioSilent { vehicle, lost: Direction::Both, until: Instant::NEVER },
        }
    }

    /// For a story.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Companion => "its companion dies, unguarded",
            Self::Guarded => "its companion dies, guarded",
            Self::Falls => "it falls",
            Self::Radio => "its radio dies",
        }
    }
}

/// What goes wrong, or is commanded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Act {
    /// An aircraft is lost.
    Kill(Role, Death),
    /// Its radio is silent for a while.
    Silence(Role, Duration),
    /// A share of all datagrams is lost during the whole flight.
    Loss {
        /// Share lost, 0 to 1.
        share: f64,
    },
    /// Stretches of silence on each link.
    Bursts {
        /// Share of them that is lost.
        share: f64,
        /// Their length.
        stretch: Duration,
    },
    /// Two groups do not receive each other for 30 s.
    Partition {
        /// One of them, as bits.
        group: u128,
    },
    /// The operator's command to one aircraft, or to all.
    Press(Command, Option<Role>),
    /// A fault as the world has it: of the aircraft that has the role then, and with its end counted from then on.
    Inflict(Role, Fault),
    /// A fault of every aircraft of the swarm, or of the channel.
    InflictAll(Fault),
    /// The operator and the consoles are gone: no button is pressed any more, no lease is held.
    GroundEnds,
}

impl Act {
    /// The same for an ArduCopter program: for an estimate that diverges its satellites are lost, and it is never stuck, nor are its
    /// texts garbled.
    fn of_program(self) -> Option<Self> {
        match self {
            Self::Inflict(role, Fault::EstimateDiverges { vehicle, until }) => {
                Some(Self::Inflict(role, Fault::GnssLost { vehicle, until }))
            }
            Self::Inflict(_, Fault::Stuck { .. } | Fault::TextsGarbled { .. }) => None,
            Self::InflictAll(_) | Self::GroundEnds => Some(self),
            Self::Kill(..)
            | Self::Silence(..)
            | Self::Loss { .. }
            | Self::Bursts { .. }
            | Self::Partition { .. }
            | Self::Press(..)
            | Self::Inflict(..) => Some(self),
        }
    }
}

/// Something that happens so long after an aircraft has come to a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// The aircraft whose stage counts.
    pub(super) whose: Role,
    pub(super) stage: Stage,
    pub(super) delay: Duration,
    pub(super) act: Act,
}

/// How the pilot of a leader reacts when something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reaction {
    /// From the first sign to the stop.
    pub(super) stops_after: Duration,
    /// How long the leader then hovers before it lands: a follower that lost it may receive it again.
    pub(super) hover: Duration,
}

/// A drill as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) scenario: Scenario,
    /// Another such swarm far away on the same channel.
    pub(super) others: Option<Scenario>,
    pub(super) steps: Vec<Step>,
    /// The operator's command to an aircraft that has held at *Hold* long enough.
    pub(super) after_hold: Command,
    /// Of the leader's pilot, where there is one.
    pub(super) reaction: Option<Reaction>,
    /// How long a pilot who took an aircraft hovers before he lands it.
    pub(super) pilot_hover: Duration,
    /// The numbers from which all this was drawn.
    pub(super) draws: Draws,
}

/// Draws the script of a protocol for so many aircraft.
type Draw = fn(Kind, Protocol, &mut Streams, usize) -> Script;

impl Script {
    /// Draws the drill of a kind and a seed.
    #[cfg(test)]
    pub(super) fn draw(kind: Kind, seed: u64, conditions: Conditions) -> Self {
        Self::redraw(kind, seed, conditions, &Draws::default())
    }

    /// Draws with other numbers first than those of the seed.
    pub(super) fn redraw(kind: Kind, seed: u64, conditions: Conditions, draws: &Draws) -> Self {
        let protocol = kind.protocol(seed);
        let (draw, consumer): (Draw, &str) = match protocol {
            Protocol::FollowMe => (follow::draw, "follow scenario"),
            Protocol::Muscop => (swarm::draw, "drill scenario"),
            Protocol::Mbcap | Protocol::Mission | Protocol::Sweep => (own::draw, "own scenario"),
        };
        let mut streams = Streams::new(kind, seed, consumer, draws);
        let mut script = draw(kind, protocol, &mut streams, conditions.aircraft);
        if kind == Kind::OneTransmitter && protocol != Protocol::Muscop {
            trouble::give_return_heights(&mut script.scenario, conditions.aircraft);
        }
        conditions.surround(&mut script.scenario, &mut streams.wind);
        if let Some(others) = &mut script.others {
            conditions.surround(others, &mut Dice::new(seed, "drill wind", &draws.wind));
        }
        script.draws = streams.drawn();
        if conditions.arducopter.is_some() {
            let of_program = |step: Step| step.act.of_program().map(|act| Step { act, ..step });
            script.steps = script.steps.into_iter().filter_map(of_program).collect();
        }
        script
    }

    /// The same with more room, where the aircraft refuse to be set up: one after the other, and then farther apart.
    pub(super) fn ease(&mut self) {
        if self.is_formation() {
            self.scenario.ground_distance_m += EASED_BY_M;
        }
        match &mut self.scenario.task {
            Task::Swarm(task) if task.take_off == Manner::Simultaneous => task.take_off = Manner::Sequential,
            Task::Swarm(task) => task.distance_m += EASED_BY_M,
            Task::Follow(task) => task.distance_m += EASED_BY_M,
            Task::Own(_) => {}
        }
        if let Some(others) = &mut self.others {
            others.ground_distance_m += EASED_BY_M;
            if let Task::Follow(task) = &mut others.task {
                task.distance_m += EASED_BY_M;
            }
        }
    }

    /// Returns how long a full battery lasts in a hover, minutes.
    pub(super) fn battery_min(&self) -> f64 {
        let capacity_mah = self.scenario.charge.and_then(|charge| charge.capacity_mah);
        capacity_mah.unwrap_or(BatteryParameters::default().capacity_mah) / HOVER_MAH_PER_MIN
    }

    /// Returns whether the aircraft keep a separation budget together.
    pub(super) fn is_formation(&self) -> bool {
        !matches!(self.scenario.task, Task::Own(_))
    }

    /// The task of a formation that follows a pilot.
    pub(super) fn follow_task(&self) -> Option<&FollowTask> {
        follow_task(&self.scenario)
    }

    /// The task of the other swarm.
    pub(super) fn others_task(&self) -> Option<&FollowTask> {
        self.others.as_ref().and_then(follow_task)
    }
}

fn follow_task(scenario: &Scenario) -> Option<&FollowTask> {
    match &scenario.task {
        Task::Follow(task) => Some(task),
        Task::Swarm(_) | Task::Own(_) => None,
    }
}

/// A whole number less than `count`.
fn below(rng: &mut Dice, count: u64) -> u64 {
    (rng.uniform() * count as f64) as u64
}

fn between(rng: &mut Dice, least: f64, most: f64) -> f64 {
    least + rng.uniform() * (most - least)
}

fn one_of<T: Copy, const N: usize>(rng: &mut Dice, choices: [T; N]) -> T {
    choices[below(rng, N as u64) as usize]
}

fn seconds(s: f64) -> Duration {
    Duration::from_micros((s * 1e6) as u64)
}

/// From 0 to 80 % of all datagrams.
fn loss(rng: &mut Dice) -> Act {
    Act::Loss { share: between(rng, 0.0, 0.8) }
}

fn bursts(rng: &mut Dice) -> Act {
    Act::Bursts { share: between(rng, 0.1, 0.6), stretch: seconds(between(rng, 0.3, 5.0)) }
}

/// Neither group is empty.
fn partition(rng: &mut Dice, aircraft: usize) -> Act {
    Act::Partition { group: u128::from(1 + below(rng, (1 << aircraft) - 2)) }
}
