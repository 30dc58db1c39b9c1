//! Drills of a formation that follows a piloted leader (FollowMe).

use wingbeat_agent::Command;
use wingbeat_geo::Duration;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::follow_me::LeaderLost;
use wingbeat_sim::channel::Draw;

use super::{
    Act, Death, Dice, Reaction, Role, Script, Stage, Step, Streams, below, between, bursts, catalogue, loss,
    one_of, partition, seconds, trouble,
};
use crate::drills::Kind;
use crate::drills::dice::Draws;
use crate::drills::failure::Protocol;
use crate::scenario::follow::LeaderPilot;
use crate::scenario::{FollowTask, Scenario, Task};

/// Three kilometres at the scenarios' latitude, 1e-7 degree.
const EAST_E7: i32 = 349_000;

pub(super) fn draw(kind: Kind, protocol: Protocol, streams: &mut Streams, aircraft: usize) -> Script {
    let rng = &mut streams.steps;
    let mut scenario = scenario(&mut streams.scenario, aircraft);
    if kind == Kind::FollowReserve {
        trouble::keep_reserve(rng, &mut scenario);
    }
    let (stops_after_s, hover_s) = (between(rng, 1.0, 4.0), between(rng, 2.0, 70.0));
    Script {
        others: (kind == Kind::FollowStranger).then(|| elsewhere(&scenario)),
        steps: match kind {
            _ if Kind::COMMON.contains(&kind) => catalogue::common(rng, kind, protocol),
            _ if Kind::FURTHER.contains(&kind) => catalogue::further(rng, kind, protocol),
            Kind::AnyTwoFollowMe => catalogue::any_two(rng, protocol, aircraft),
            Kind::FollowRadio => catalogue::radio(rng, protocol),
            Kind::FollowDatagrams => catalogue::channel(rng, protocol),
            _ => steps(rng, kind, aircraft),
        },
        draws: Draws::default(),
        after_hold: Command::Land,
        pilot_hover: seconds(20.0),
        reaction: Some(Reaction { stops_after: seconds(stops_after_s), hover: seconds(hover_s) }),
        scenario,
    }
}

fn steps(rng: &mut Dice, kind: Kind, aircraft: usize) -> Vec<Step> {
    let whose = Role::Master;
    let like = match kind {
        Kind::FollowSerial => one_of(rng, [Kind::SerialCut, Kind::SerialFlaps]),
        Kind::FollowGnss => Kind::Gnss,
        Kind::FollowDaemonRestarts => Kind::DaemonRestarts,
        Kind::FollowPilotTakes => Kind::PilotTakes,
        Kind::FollowReserve => {
            let follower = Role::Follower(below(rng, 1_000) as usize);
            let (stage, delay) = stage(rng);
            let all = trouble::batteries(rng, follower, aircraft).into_iter();
            return all.map(|(later, act)| Step { whose, stage, delay: delay + later, act }).collect();
        }
        _ => return step(rng, kind, aircraft).into_iter().collect(),
    };
    let follower = Role::Follower(below(rng, 1_000) as usize);
    let role = if like == Kind::PilotTakes { follower } else { one_of(rng, [Role::Master, follower]) };
    let (stage, delay) = stage(rng);
    let step = |fault| Step { whose, stage, delay, act: Act::Inflict(role, fault) };
    trouble::draw(rng, like).into_iter().map(step).collect()
}

fn step(rng: &mut Dice, kind: Kind, aircraft: usize) -> Option<Step> {
    let follower = Role::Follower(below(rng, 1_000) as usize);
    let death = one_of(rng, Death::ALL);
    let abort = one_of(rng, [Command::Hold, Command::Land]);
    let act = match kind {
        Kind::FollowLeaderKilled => Act::Kill(Role::Master, death),
        // Twice as often about as long as followers wait for their leader.
        Kind::FollowLeaderSilent => {
            let most_s = one_of(rng, [4.0, 4.0, 60.0]);
            Act::Silence(Role::Master, seconds(between(rng, 1.0, most_s)))
        }
        Kind::FollowSlaveKilled => Act::Kill(follower, death),
        Kind::FollowLoss => loss(rng),
        Kind::FollowBursts => bursts(rng),
        Kind::FollowPartition => partition(rng, aircraft),
        Kind::FollowAbortAll => Act::Press(abort, None),
        Kind::FollowAbortOne => Act::Press(abort, Some(follower)),
        // `FollowStranger`: the other swarm and what it forges are all that happens.
        _ => return None,
    };
    let (stage, delay) = match kind {
        // From before the first datagram on: during the whole flight.
        Kind::FollowLoss | Kind::FollowBursts => (Stage::Start, Duration::ZERO),
        _ => stage(rng),
    };
    Some(Step { whose: Role::Master, stage, delay, act })
}

/// A stage of the leader in which something can go wrong, and for how long after its beginning that may be drawn.
fn stage(rng: &mut Dice) -> (Stage, Duration) {
    let (stage, within_s) = match below(rng, 10) {
        0 => (Stage::Setup, 1.0),
        1 => (Stage::ReadyToFly, 0.5),
        2 => (Stage::TakingOff, 60.0),
        3 => (Stage::SetupFinished, 1.0),
        4 | 5 => (Stage::Waiting, 10.0),
        6 => (Stage::Landing, 12.0),
        _ => (Stage::Following, 60.0),
    };
    (stage, seconds(between(rng, 0.0, within_s)))
}

/// Aircraft as far apart as their leader's refresh demands, and a leader piloted for a minute or two.
fn scenario(rng: &mut Dice, aircraft: usize) -> Scenario {
    let refresh = Duration::from_millis(one_of(rng, [500, 1_000, 2_000]));
    let least_m = FollowTask { refresh, ..FollowTask::new() }.distance_least_m();
    let task = FollowTask {
        aircraft,
        layout: one_of(rng, [Layout::Linear, Layout::Matrix, Layout::Circular]),
        distance_m: between(rng, least_m, least_m + 30.0),
        refresh,
        heading_noise_rad: 1.1f64.to_radians(),
        turn_m_s: 3.0,
        leader_lost: one_of(rng, [LeaderLost::Hold, LeaderLost::Land]),
        follows_again: below(rng, 2) == 1,
        pilot: LeaderPilot::Drawn(seconds(between(rng, 60.0, 120.0))),
        ..FollowTask::new()
    };
    let mut scenario = Scenario::new("drill", Task::Follow(task));
    scenario.draw = Draw::PerPacket;
    scenario
}

/// The same swarm three kilometres east, and farther by what both reach beyond a kilometre.
fn elsewhere(scenario: &Scenario) -> Scenario {
    let mut other = scenario.clone();
    if let Task::Follow(task) = &mut other.task {
        let farther = 2.0 * (task.reach_m() - 1_000.0).max(0.0) / 3_000.0;
        for end in &mut task.axis {
            end.longitude_e7 += EAST_E7 + (f64::from(EAST_E7) * farther) as i32;
        }
    }
    other
}
