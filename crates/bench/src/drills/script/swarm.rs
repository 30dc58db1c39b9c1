//! Drills of a swarm that flies a mission (MUSCOP).

use wingbeat_agent::Command;
use wingbeat_geo::Duration;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::swarm::Manner;
use wingbeat_sim::channel::Draw;

use super::{
    Act, Death, Dice, Role, Script, Stage, Step, Streams, below, between, bursts, catalogue, loss, one_of,
    partition, seconds, trouble,
};
use crate::drills::Kind;
use crate::drills::dice::Draws;
use crate::drills::failure::Protocol;
use crate::scenario::{Scenario, Task, route};

/// Waypoints of its mission.
const WAYPOINTS: usize = 4;

pub(super) fn draw(kind: Kind, protocol: Protocol, streams: &mut Streams, aircraft: usize) -> Script {
    let rng = &mut streams.steps;
    let scenario = scenario(&mut streams.scenario, aircraft);
    let after_hold = one_of(rng, [Command::Land, Command::Return]);
    let steps = if kind == Kind::Combined {
        let parts = &Kind::SWARM[..Kind::SWARM.len() - 1];
        (0..2 + below(rng, 2))
            .map(|_| {
                let part = parts[below(rng, parts.len() as u64) as usize];
                step(rng, part, aircraft)
            })
            .collect()
    } else if Kind::TROUBLE.contains(&kind) {
        trouble(rng, kind, aircraft)
    } else if Kind::COMMON.contains(&kind) {
        catalogue::common(rng, kind, protocol)
    } else if Kind::FURTHER.contains(&kind) {
        catalogue::further(rng, kind, protocol)
    } else if kind == Kind::AnyTwoMuscop {
        catalogue::any_two(rng, protocol, aircraft)
    } else if kind == Kind::OneWayRadio {
        catalogue::radio(rng, protocol)
    } else {
        vec![step(rng, kind, aircraft)]
    };
    let (pilot_hover, draws) = (seconds(20.0), Draws::default());
    let mut script = Script { scenario, others: None, steps, after_hold, reaction: None, pilot_hover, draws };
    if kind == Kind::Failsafe {
        script.scenario.parameters.extend(trouble::battery_failsafe(rng));
    }
    if kind == Kind::Reserve {
        trouble::keep_reserve(rng, &mut script.scenario);
    }
    script
}

/// What goes wrong at one stage of one aircraft, or on the channel from the beginning on.
fn trouble(rng: &mut Dice, kind: Kind, aircraft: usize) -> Vec<Step> {
    let follower = Role::Follower(below(rng, 1_000) as usize);
    let whose = one_of(rng, [Role::Master, Role::Leader, follower]);
    let (stage, delay) = match kind {
        Kind::Datagrams => (Stage::Start, Duration::ZERO),
        _ => stage(rng),
    };
    let stage = if stage == Stage::MovingToLand && whose == Role::Leader { Stage::Landing } else { stage };
    let step = |(later, act)| Step { whose, stage, delay: delay + later, act };
    if kind == Kind::Consoles {
        return trouble::two_consoles(rng, whose).into_iter().map(step).collect();
    }
    if kind == Kind::TwoDaemons {
        return trouble::two_daemons(rng, whose).into_iter().map(step).collect();
    }
    if kind == Kind::Reserve {
        return trouble::batteries(rng, whose, aircraft).into_iter().map(step).collect();
    }
    let inflict = |fault| (Duration::ZERO, Act::Inflict(whose, fault));
    trouble::draw(rng, kind).into_iter().map(inflict).map(step).collect()
}

fn step(rng: &mut Dice, kind: Kind, aircraft: usize) -> Step {
    let follower = Role::Follower(below(rng, 1_000) as usize);
    let death = one_of(rng, Death::ALL);
    let abort = one_of(rng, [Command::Hold, Command::Return, Command::Land]);
    let any = one_of(rng, [Role::Master, Role::Leader, follower]);
    let whose = match kind {
        Kind::MasterKilled => Role::Master,
        Kind::SlaveKilled => follower,
        Kind::AbortOne | Kind::RadioSilent => any,
        _ => Role::Leader,
    };
    let act = match kind {
        Kind::MasterKilled | Kind::CentreKilled | Kind::SlaveKilled => Act::Kill(whose, death),
        Kind::RadioSilent => Act::Silence(whose, seconds(between(rng, 1.0, 60.0))),
        Kind::Loss => loss(rng),
        Kind::Bursts => bursts(rng),
        Kind::Partition => partition(rng, aircraft),
        Kind::AbortAll => Act::Press(abort, None),
        // `AbortOne`; a combination is drawn part by part, and drills that follow a pilot elsewhere.
        _ => Act::Press(abort, Some(whose)),
    };
    let (stage, delay) = match kind {
        // From before the first datagram on: during the whole flight.
        Kind::Loss | Kind::Bursts => (Stage::Start, Duration::ZERO),
        _ => stage(rng),
    };
    // The leader lands where it is and has no leg to a landing position.
    let stage = if stage == Stage::MovingToLand && whose == Role::Leader { Stage::Landing } else { stage };
    Step { whose, stage, delay, act }
}

/// A stage in which something can go wrong, and for how long after its beginning that may be drawn.
fn stage(rng: &mut Dice) -> (Stage, Duration) {
    let moves = WAYPOINTS as u64 * 2 - 1;
    let (stage, within_s) = match below(rng, 6 + moves) {
        0 => (Stage::Setup, 1.0),
        1 => (Stage::ReadyToFly, 1.0),
        2 => (Stage::TakingOff, 40.0),
        3 => (Stage::SetupFinished, 2.0),
        4 => (Stage::MovingToLand, 8.0),
        5 => (Stage::Landing, 12.0),
        m => (Stage::Mission((m - 6) as u16), 6.0),
    };
    (stage, seconds(between(rng, 0.0, within_s)))
}

/// Aircraft with room between them, short legs with turns.
fn scenario(rng: &mut Dice, aircraft: usize) -> Scenario {
    let (mut corner, mut towards_rad) = ([0.0; 2], between(rng, 0.0, core::f64::consts::TAU));
    let mut corners = vec![corner];
    while corners.len() < WAYPOINTS {
        let leg_m = between(rng, 40.0, 80.0);
        corner = [corner[0] + libm::sin(towards_rad) * leg_m, corner[1] + libm::cos(towards_rad) * leg_m];
        corners.push(corner);
        towards_rad += between(rng, -1.8, 1.8);
    }
    let mut scenario = Scenario::muscop("drill", route(&corners, between(rng, 10.0, 25.0)));
    scenario.draw = Draw::PerPacket;
    if let Task::Swarm(swarm) = &mut scenario.task {
        swarm.aircraft = aircraft;
        swarm.layout = one_of(rng, [Layout::Linear, Layout::Matrix, Layout::Circular]);
        // On a leg along a row one flies behind the other: at 10 m/s none stops within 20 m.
        let (speed_m_s, least_m) = one_of(rng, [(5.0, 20.0), (10.0, 30.0)]);
        (swarm.speed_m_s, swarm.distance_m) = (speed_m_s, between(rng, least_m, 50.0));
        swarm.landing = Manner::ALL[below(rng, 2) as usize];
    }
    scenario
}
