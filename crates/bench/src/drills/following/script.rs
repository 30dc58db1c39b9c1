//! What is drawn from the seed of a drill behind a pilot: the formation, the pilot's flight, and what goes wrong at
//! which point of it.

use wingbeat_agent::{Command, StateId};
use wingbeat_geo::Duration;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::follow_me::LeaderLost;
use wingbeat_sim::chance::{self, Pcg64Mcg};
use wingbeat_sim::channel::Draw;

use super::super::script::{Act, Death, Role, below, between, seconds};
use super::super::{AIRCRAFT, Kind};
use crate::scenario::follow::LeaderPilot;
use crate::scenario::{FollowTask, Scenario, Task};

/// How far an aircraft has come, in the order of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Before *Setup*.
    Start,
    /// The plan is being spread.
    Setup,
    /// All hold it.
    ReadyToFly,
    /// Slaves take off.
    TakingOff,
    /// In the slots, before *Start*.
    SetupFinished,
    /// The pilot climbs.
    Waiting,
    /// The leader leads.
    Following,
    /// To the landing place.
    MovingToLand,
    /// Coming down.
    Landing,
    /// Down, or ended before.
    Over,
}

impl Stage {
    /// Of an aircraft in this state of its protocol.
    pub(super) fn of(state: StateId) -> Self {
        match state {
            StateId::Start => Self::Start,
            StateId::Setup => Self::Setup,
            StateId::ReadyToFly => Self::ReadyToFly,
            StateId::TakingOff => Self::TakingOff,
            StateId::SetupFinished => Self::SetupFinished,
            StateId::Ready | StateId::WaitMaster => Self::Waiting,
            StateId::FollowMe | StateId::Following | StateId::LeaderLost => Self::Following,
            StateId::MovingToLand => Self::MovingToLand,
            StateId::Landing => Self::Landing,
            StateId::Finished | StateId::Aborted => Self::Over,
            // Of other protocols.
            StateId::Flying
            | StateId::Holding
            | StateId::WaypointReached
            | StateId::MovingToWaypoint
            | StateId::Normal
            | StateId::StandStill
            | StateId::MovingAside
            | StateId::GoOnPlease
            | StateId::Overtaking
            | StateId::EmergencyLand => Self::Over,
        }
    }

    /// A stage of the leader in which something can go wrong, and for how long after its beginning that may be
    /// drawn.
    fn drawn(luck: &mut Pcg64Mcg) -> (Self, Duration) {
        let (stage, within_s) = match below(luck, 10) {
            0 => (Self::Setup, 1.0),
            1 => (Self::ReadyToFly, 0.5),
            2 => (Self::TakingOff, 60.0),
            3 => (Self::SetupFinished, 1.0),
            4 | 5 => (Self::Waiting, 10.0),
            6 => (Self::Landing, 12.0),
            _ => (Self::Following, 60.0),
        };
        (stage, seconds(between(luck, 0.0, within_s)))
    }
}

/// Something that happens so long after the leader has come to a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
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
    /// Formation, pilot, air.
    pub(super) scenario: Scenario,
    /// Another such swarm far away on the same channel.
    pub(super) others: Option<Scenario>,
    /// What goes wrong.
    pub(super) step: Option<Step>,
    /// How long the pilot takes to see that something went wrong, and to stop.
    pub(super) reaction: Duration,
    /// How long he then hovers before he comes down: who lost him may hear him again.
    pub(super) hover: Duration,
}

impl Script {
    /// The drill of a kind and a seed.
    pub(super) fn draw(kind: Kind, seed: u64) -> Self {
        let mut luck = chance::child(seed, kind.name(), 0);
        let scenario = scenario(&mut chance::child(seed, "follow scenario", 0));
        let (reaction, hover) = (between(&mut luck, 1.0, 4.0), between(&mut luck, 2.0, 70.0));
        let others = (kind == Kind::FollowStranger).then(|| elsewhere(&scenario));
        Self {
            others,
            step: step(&mut luck, kind),
            reaction: seconds(reaction),
            hover: seconds(hover),
            scenario,
        }
    }
}

fn step(luck: &mut Pcg64Mcg, kind: Kind) -> Option<Step> {
    let slave = Role::Slave(below(luck, 1_000) as usize);
    let death = [Death::Companion, Death::Guarded, Death::Falls, Death::Radio][below(luck, 4) as usize];
    let abort = [Command::Hold, Command::Land][below(luck, 2) as usize];
    let act = match kind {
        Kind::FollowLeaderKilled => Act::Kill(Role::Master, death),
        // Twice as often about as long as slaves wait for their leader.
        Kind::FollowLeaderSilent => {
            let most_s = [4.0, 4.0, 60.0][below(luck, 3) as usize];
            Act::Silence(Role::Master, seconds(between(luck, 1.0, most_s)))
        }
        Kind::FollowSlaveKilled => Act::Kill(slave, death),
        Kind::FollowLoss => Act::Loss { share: between(luck, 0.0, 0.8) },
        Kind::FollowBursts => {
            Act::Bursts { share: between(luck, 0.1, 0.6), stretch: seconds(between(luck, 0.3, 5.0)) }
        }
        // Neither nobody nor everybody.
        Kind::FollowPartition => Act::Partition { group: u128::from(1 + below(luck, (1 << AIRCRAFT) - 2)) },
        Kind::FollowAbortAll => Act::Press(abort, None),
        Kind::FollowAbortOne => Act::Press(abort, Some(slave)),
        _ => return None,
    };
    let (stage, delay) = match kind {
        // From before the first word on: the whole flight is under it.
        Kind::FollowLoss | Kind::FollowBursts => (Stage::Start, Duration::ZERO),
        _ => Stage::drawn(luck),
    };
    Some(Step { stage, delay, act })
}

/// Five aircraft, as far apart as their leader's word is frequent, behind a pilot who flies for a minute or two.
fn scenario(luck: &mut Pcg64Mcg) -> Scenario {
    let refresh = Duration::from_millis([500, 1_000, 2_000][below(luck, 3) as usize]);
    let least_m = FollowTask { refresh, ..FollowTask::new() }.distance_least_m();
    let task = FollowTask {
        aircraft: AIRCRAFT,
        layout: [Layout::Linear, Layout::Matrix, Layout::Circular][below(luck, 3) as usize],
        distance_m: between(luck, least_m, least_m + 30.0),
        refresh,
        heading_noise_rad: 1.1f64.to_radians(),
        turn_m_s: 3.0,
        leader_lost: [LeaderLost::Hold, LeaderLost::Land][below(luck, 2) as usize],
        follows_again: below(luck, 2) == 1,
        pilot: LeaderPilot::Drawn(seconds(between(luck, 60.0, 120.0))),
        ..FollowTask::new()
    };
    let mut scenario = Scenario::new("drill", Task::Follow(task));
    scenario.gps_noise_m = 0.3;
    scenario.draw = Draw::PerPacket;
    scenario
}

/// The same swarm three kilometres east.
fn elsewhere(scenario: &Scenario) -> Scenario {
    let mut other = scenario.clone();
    if let Task::Follow(task) = &mut other.task {
        for place in &mut task.axis {
            place.longitude_e7 += EAST_E7;
        }
    }
    other
}

/// Three kilometres at the scenarios' latitude, 1e-7 degree.
const EAST_E7: i32 = 349_000;
