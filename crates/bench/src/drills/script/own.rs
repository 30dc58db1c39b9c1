//! Drills of aircraft on missions of their own (Mission, Sweep, MBCAP).

use wingbeat_agent::Command;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::channel::Draw;
use wingbeat_sim::faults::{Direction, Fault};

use super::{
    Act, Dice, Role, Script, Stage, Step, Streams, below, between, catalogue, encounter, one_of, seconds,
    trouble,
};
use crate::drills::Kind;
use crate::drills::dice::Draws;
use crate::drills::failure::Protocol;
use crate::scenario::{OwnMission, OwnTask, Scenario, Task, Variant, route};

/// Between the lanes of Mission and MBCAP, and the strips of Sweep, metres.
const LANE_M: f64 = 60.0;

pub(super) fn draw(kind: Kind, protocol: Protocol, streams: &mut Streams, aircraft: usize) -> Script {
    let rng = &mut streams.steps;
    let scenario = match (kind, protocol) {
        (Kind::LongWay, _) => encounter::long_way(&mut streams.scenario, protocol, aircraft),
        // Kinds that are not of the lanes meet at any angle and height.
        (kind, Protocol::Mbcap) if !Kind::OWN.contains(&kind) => {
            encounter::meet(&mut streams.scenario, aircraft)
        }
        _ => scenario(&mut streams.scenario, kind, protocol, aircraft),
    };
    let like = match kind {
        Kind::OwnFailsafe => Some(Kind::Failsafe),
        Kind::OwnGnss => Some(Kind::Gnss),
        _ => None,
    };
    let steps = match like {
        Some(like) => trouble_of_one(rng, like),
        None if kind == Kind::OwnReserve => batteries(rng, aircraft),
        None if Kind::COMMON.contains(&kind) => catalogue::common(rng, kind, protocol),
        None if Kind::FURTHER.contains(&kind) => catalogue::further(rng, kind, protocol),
        None if matches!(kind, Kind::AnyTwoMbcap | Kind::AnyTwoMission | Kind::AnyTwoSweep) => {
            catalogue::any_two(rng, protocol, aircraft)
        }
        None if kind == Kind::MbcapRadio => catalogue::radio(rng, protocol),
        None if kind == Kind::MbcapDatagrams => catalogue::channel(rng, protocol),
        // Nothing goes wrong but where they fly, and how far.
        None if matches!(kind, Kind::MbcapMeet | Kind::LongWay) => vec![],
        None => vec![step(rng)],
    };
    let (after_hold, pilot_hover, draws) = (Command::Land, seconds(20.0), Draws::default());
    let mut script = Script { scenario, others: None, steps, after_hold, reaction: None, pilot_hover, draws };
    if kind == Kind::OwnFailsafe {
        script.scenario.parameters.extend(trouble::battery_failsafe(rng));
    }
    if kind == Kind::OwnReserve {
        trouble::keep_reserve(rng, &mut script.scenario);
    }
    script
}

/// Batteries that run low as one aircraft takes off, or flies.
fn batteries(rng: &mut Dice, aircraft: usize) -> Vec<Step> {
    let (whose, stage, delay) = when(rng);
    let all = trouble::batteries(rng, whose, aircraft).into_iter();
    all.map(|(later, act)| Step { whose, stage, delay: delay + later, act }).collect()
}

/// One aircraft as it takes off, or flies.
fn when(rng: &mut Dice) -> (Role, Stage, Duration) {
    let whose = Role::Follower(below(rng, 1_000) as usize);
    let (stage, within_s) = one_of(rng, [(Stage::TakingOff, 8.0), (Stage::Mission(1), 40.0)]);
    (whose, stage, seconds(between(rng, 0.0, within_s)))
}

/// What goes wrong with one aircraft as it takes off, or flies.
fn trouble_of_one(rng: &mut Dice, like: Kind) -> Vec<Step> {
    let (whose, stage, delay) = when(rng);
    let step = |fault| Step { whose, stage, delay, act: Act::Inflict(whose, fault) };
    trouble::draw(rng, like).into_iter().map(step).collect()
}

fn step(rng: &mut Dice) -> Step {
    let (whose, stage, delay) = when(rng);
    let (vehicle, until) = (0, Instant::ZERO + seconds(between(rng, 1.0, 60.0)));
    let pilots = trouble::draw(rng, Kind::PilotTakes);
    let act = match below(rng, 5) {
        0 => {
            let lost = one_of(rng, [Direction::Both, Direction::Received, Direction::Sent]);
            Act::Inflict(whose, Fault::SerialLine { vehicle, lost, flaps: Duration::ZERO, until })
        }
        1 => Act::Inflict(whose, Fault::CompanionDies { vehicle, guarded: true }),
        2 => Act::Inflict(whose, Fault::DaemonRestarts { vehicle, guarded: true, until }),
        3 => Act::Inflict(whose, pilots[0]),
        _ => Act::Press(one_of(rng, [Command::Hold, Command::Land]), Some(whose)),
    };
    Step { whose, stage, delay, act }
}

/// Lanes side by side; for Sweep the corners of one area; for MBCAP every second lane crosses the others.
fn scenario(rng: &mut Dice, kind: Kind, protocol: Protocol, aircraft: usize) -> Scenario {
    let variant = match kind {
        Kind::SweepFaults => Variant::Sweep,
        Kind::MbcapFaults => Variant::MbcapE,
        // Paths that cross twice as often as each of the others.
        Kind::OwnFailsafe | Kind::OwnGnss | Kind::OwnReserve => {
            one_of(rng, [Variant::Off, Variant::Sweep, Variant::MbcapE, Variant::MbcapE])
        }
        _ => match protocol {
            Protocol::Sweep => Variant::Sweep,
            Protocol::Mbcap => Variant::MbcapE,
            // `MissionFaults`; other protocols are drawn elsewhere.
            Protocol::Mission | Protocol::Muscop | Protocol::FollowMe => Variant::Off,
        },
    };
    let (length_m, height_m) = (between(rng, 150.0, 250.0), between(rng, 10.0, 25.0));
    let speed_m_s = one_of(rng, [5.0, 10.0]);
    let lane = |i: usize| LANE_M * (i / 2) as f64;
    let mission = |i: usize| {
        let (corners, start) = match variant {
            Variant::Sweep => {
                let start = [LANE_M * (i as f64 + 0.5), -30.0];
                (vec![[0.0, 0.0], [0.0, length_m], [LANE_M * aircraft as f64, length_m]], Some(start))
            }
            Variant::MbcapE | Variant::Mbcap if i % 2 == 1 => {
                (vec![[-80.0, lane(i)], [length_m - 80.0, lane(i)]], None)
            }
            Variant::MbcapE | Variant::Mbcap => (vec![[lane(i), -80.0], [lane(i), length_m - 80.0]], None),
            Variant::Off => {
                let east_m = LANE_M * i as f64;
                (vec![[east_m, 0.0], [east_m, length_m / 2.0], [east_m, length_m]], None)
            }
        };
        let start = start.map(|start| route(&[start], height_m)[0]);
        OwnMission { speed_m_s, points: route(&corners, height_m), start, leaves_at_s: Vec::new() }
    };
    let missions = (0..aircraft).map(mission).collect();
    let mut scenario = Scenario::new("drill", Task::Own(OwnTask { variant, missions }));
    scenario.draw = Draw::PerPacket;
    scenario
}
