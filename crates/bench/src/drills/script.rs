//! What is drawn from a drill's seed: the swarm, its mission, and what goes wrong at which point of the
//! flight.

use wingbeat_agent::{Command, StateId};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::chance::{self, Pcg64Mcg};
use wingbeat_sim::channel::Draw;
use wingbeat_sim::faults::Fault;

use wingbeat_protocol::swarm::Manner;

use super::{AIRCRAFT, Kind};
use crate::scenario::{Scenario, Task, route};

/// Waypoints of its mission.
const WAYPOINTS: usize = 4;

/// How far an aircraft has come, in the order of a flight; waypoint states lie between SetupFinished and
/// the landing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Before *Setup*.
    Start,
    /// The plan is being spread.
    Setup,
    /// All hold it.
    ReadyToFly,
    /// Between the first arming and the last slot.
    TakingOff,
    /// In the slots, before *Start*.
    SetupFinished,
    /// The mission: twice the waypoint, and one more on the way from it to the next.
    Mission(u16),
    /// To the landing place.
    MovingToLand,
    /// Coming down.
    Landing,
    /// Down, or ended before.
    Over,
}

impl Stage {
    /// Of an aircraft in this state of its protocol, that reached this waypoint last.
    pub(super) fn of(state: StateId, reached: Option<u16>) -> Self {
        let reached = reached.unwrap_or(0);
        match state {
            StateId::Start => Self::Start,
            StateId::Setup => Self::Setup,
            StateId::ReadyToFly => Self::ReadyToFly,
            StateId::TakingOff => Self::TakingOff,
            StateId::SetupFinished => Self::SetupFinished,
            StateId::WaypointReached => Self::Mission(reached * 2),
            StateId::MovingToWaypoint => Self::Mission(reached * 2 + 1),
            StateId::MovingToLand => Self::MovingToLand,
            StateId::Landing => Self::Landing,
            StateId::Finished | StateId::Aborted => Self::Over,
            // Of other protocols.
            StateId::Flying
            | StateId::Holding
            | StateId::Ready
            | StateId::FollowMe
            | StateId::WaitMaster
            | StateId::Following
            | StateId::LeaderLost
            | StateId::Normal
            | StateId::StandStill
            | StateId::MovingAside
            | StateId::GoOnPlease
            | StateId::Overtaking
            | StateId::EmergencyLand => Self::Over,
        }
    }

    /// In words.
    pub(super) fn name(self) -> String {
        match self {
            Self::Mission(m) if m % 2 == 0 => format!("WaypointReached {}", m / 2),
            Self::Mission(m) => format!("MovingToWaypoint {}", m / 2 + 1),
            other => format!("{other:?}"),
        }
    }

    /// A stage in which something can go wrong, and for how long after its beginning that may be drawn.
    fn drawn(luck: &mut Pcg64Mcg) -> (Self, Duration) {
        let moves = WAYPOINTS as u64 * 2 - 1;
        let (stage, within_s) = match below(luck, 6 + moves) {
            0 => (Self::Setup, 1.0),
            1 => (Self::ReadyToFly, 1.0),
            2 => (Self::TakingOff, 40.0),
            3 => (Self::SetupFinished, 2.0),
            4 => (Self::MovingToLand, 8.0),
            5 => (Self::Landing, 12.0),
            m => (Self::Mission((m - 6) as u16), 6.0),
        };
        (stage, seconds(between(luck, 0.0, within_s)))
    }
}

/// Whom something befalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Who owns the mission.
    Master,
    /// Who leads the flight; before the plan is known, the master.
    Centre,
    /// The n-th of all others.
    Slave(usize),
}

/// How an aircraft is lost to its swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// Its companion dies, and its autopilot goes on with the last target.
    Companion,
    /// Its companion dies, and a guardian brings the aircraft down.
    Guarded,
    /// It falls.
    Falls,
    /// Its radio dies.
    Radio,
}

impl Death {
    /// As the world knows it.
    pub(super) fn fault(self, vehicle: usize) -> Fault {
        match self {
            Self::Companion => Fault::CompanionDies { vehicle, guarded: false },
            Self::Guarded => Fault::CompanionDies { vehicle, guarded: true },
            Self::Falls => Fault::Falls { vehicle },
            Self::Radio => Fault::RadioSilent { vehicle, until: Instant::NEVER },
        }
    }

    /// In words.
    pub(super) fn words(self) -> &'static str {
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
    /// One is lost.
    Kill(Role, Death),
    /// Its radio is silent for a while.
    Silence(Role, Duration),
    /// A share of all datagrams is lost from the beginning to the end.
    Loss {
        /// Share lost.
        share: f64,
    },
    /// Stretches of silence on each link.
    Bursts {
        /// Share of them that is lost.
        share: f64,
        /// Their length.
        stretch: Duration,
    },
    /// Two groups do not hear each other for 30 s.
    Partition {
        /// One of them, as bits.
        group: u128,
    },
    /// The operator's order for one aircraft, or for all.
    Press(Command, Option<Role>),
}

/// Something that happens so long after an aircraft has come to a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Whose stage counts.
    pub(super) whose: Role,
    /// Which stage.
    pub(super) stage: Stage,
    /// How long after.
    pub(super) delay: Duration,
    /// What happens.
    pub(super) act: Act,
}

/// A drill as it was drawn.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Swarm, mission, air.
    pub(super) scenario: Scenario,
    /// What goes wrong.
    pub(super) steps: Vec<Step>,
    /// What the operator does with whoever holds at his command, some time later.
    pub(super) after_hold: Command,
}

pub(super) fn below(luck: &mut Pcg64Mcg, count: u64) -> u64 {
    (chance::uniform(luck) * count as f64) as u64
}

pub(super) fn between(luck: &mut Pcg64Mcg, least: f64, most: f64) -> f64 {
    least + chance::uniform(luck) * (most - least)
}

pub(super) fn seconds(s: f64) -> Duration {
    Duration::from_micros((s * 1e6) as u64)
}

impl Script {
    /// The drill of a kind and a seed.
    pub(super) fn draw(kind: Kind, seed: u64) -> Self {
        let mut luck = chance::child(seed, kind.name(), 0);
        let scenario = scenario(&mut chance::child(seed, "drill scenario", 0));
        let after_hold = [Command::Land, Command::Return][below(&mut luck, 2) as usize];
        let mut steps = Vec::new();
        let mut add = |luck: &mut Pcg64Mcg, ingredient: Kind| steps.push(step(luck, ingredient));
        match kind {
            Kind::Combined => {
                for _ in 0..2 + below(&mut luck, 2) {
                    let parts = &Kind::SWARM[..Kind::SWARM.len() - 1];
                    let part = parts[below(&mut luck, parts.len() as u64) as usize];
                    add(&mut luck, part);
                }
            }
            single => add(&mut luck, single),
        }
        Self { scenario, steps, after_hold }
    }
}

fn step(luck: &mut Pcg64Mcg, kind: Kind) -> Step {
    let slave = Role::Slave(below(luck, 1_000) as usize);
    let death = [Death::Companion, Death::Guarded, Death::Falls, Death::Radio][below(luck, 4) as usize];
    let abort = [Command::Hold, Command::Return, Command::Land][below(luck, 3) as usize];
    let anybody = [Role::Master, Role::Centre, slave][below(luck, 3) as usize];
    let whose = match kind {
        Kind::MasterKilled => Role::Master,
        Kind::SlaveKilled => slave,
        Kind::AbortOne | Kind::RadioSilent => anybody,
        _ => Role::Centre,
    };
    let act = match kind {
        Kind::MasterKilled | Kind::CentreKilled | Kind::SlaveKilled => Act::Kill(whose, death),
        Kind::RadioSilent => Act::Silence(whose, seconds(between(luck, 1.0, 60.0))),
        Kind::Loss => Act::Loss { share: between(luck, 0.0, 0.8) },
        Kind::Bursts => {
            Act::Bursts { share: between(luck, 0.1, 0.6), stretch: seconds(between(luck, 0.3, 5.0)) }
        }
        // Neither nobody nor everybody.
        Kind::Partition => Act::Partition { group: u128::from(1 + below(luck, (1 << AIRCRAFT) - 2)) },
        Kind::AbortAll => Act::Press(abort, None),
        // Drills behind a pilot have scripts of their own.
        _ => Act::Press(abort, Some(whose)),
    };
    let (stage, delay) = match kind {
        // From before the first word on: the whole flight is under it.
        Kind::Loss | Kind::Bursts => (Stage::Start, Duration::ZERO),
        _ => Stage::drawn(luck),
    };
    // The centre comes down where it is and has no way to a landing place.
    let stage = if stage == Stage::MovingToLand && whose == Role::Centre { Stage::Landing } else { stage };
    Step { whose, stage, delay, act }
}

/// Five aircraft with room between them, short legs with turns.
fn scenario(luck: &mut Pcg64Mcg) -> Scenario {
    let (mut place, mut towards_rad) = ([0.0; 2], between(luck, 0.0, core::f64::consts::TAU));
    let mut places = vec![place];
    while places.len() < WAYPOINTS {
        let leg_m = between(luck, 40.0, 80.0);
        place = [place[0] + libm::sin(towards_rad) * leg_m, place[1] + libm::cos(towards_rad) * leg_m];
        places.push(place);
        towards_rad += between(luck, -1.8, 1.8);
    }
    let mut scenario = Scenario::muscop("drill", route(&places, between(luck, 10.0, 25.0)));
    scenario.gps_noise_m = 0.3;
    scenario.draw = Draw::PerPacket;
    if let Task::Swarm(swarm) = &mut scenario.task {
        swarm.aircraft = AIRCRAFT;
        swarm.layout = [Layout::Linear, Layout::Matrix, Layout::Circular][below(luck, 3) as usize];
        // On a leg along a row one flies behind the other: at 10 m/s nobody stops within 20 m.
        let (speed_m_s, least_m) = [(5.0, 20.0), (10.0, 30.0)][below(luck, 2) as usize];
        (swarm.speed_m_s, swarm.distance_m) = (speed_m_s, between(luck, least_m, 50.0));
        swarm.landing = Manner::ALL[below(luck, 2) as usize];
    }
    scenario
}
