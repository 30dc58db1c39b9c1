//! Faults of the whole catalogue, for any protocol: one of them, two of them, and the common causes that reach all aircraft.

use wingbeat_agent::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::faults::{Direction, Fault};

use super::{
    Act, Death, Dice, Role, Stage, Step, below, between, bursts, loss, one_of, partition, seconds, trouble,
};
use crate::drills::Kind;
use crate::drills::failure::Protocol;

/// A front changes the mean wind by so much, metres per second.
const FRONT_M_S: [f64; 2] = [2.0, 4.0];
/// A channel that loses, delays or doubles datagrams does so for at most this long, seconds.
const CHANNEL_S: f64 = 120.0;

/// Longest stretch, in seconds: the guardian waits one for a process, and one more where that waits
/// for a processor.
const STALL_MOST_S: f64 = 1.9;

/// Number of faults that [`single`] chooses from.
const SINGLES: u64 = 24;

/// Draws a fault of an aircraft or of the channel, or an order.
fn single(dice: &mut Dice, whose: Role, aircraft: usize) -> Vec<Act> {
    let vehicle = 0;
    let drawn = below(dice, SINGLES);
    let until = Instant::ZERO + seconds(between(dice, 1.0, 90.0));
    let one = |fault| vec![Act::Inflict(whose, fault)];
    let of = |dice: &mut Dice, kind| -> Vec<Act> {
        trouble::draw(dice, kind).into_iter().map(|fault| Act::Inflict(whose, fault)).collect()
    };
    match drawn {
        0 => vec![Act::Kill(whose, one_of(dice, [Death::Companion, Death::Guarded]))],
        1 => vec![Act::Kill(whose, Death::Falls)],
        2 => one(Fault::MotorsFail { vehicle }),
        3 => of(dice, Kind::DaemonRestarts),
        4 => one(Fault::GuardianDies { vehicle }),
        5 => of(dice, Kind::SerialCut),
        6 => of(dice, Kind::SerialFlaps),
        7 => one(Fault::AutopilotReboots { vehicle }),
        8 => one(Fault::EstimateDiverges { vehicle, until }),
        9 => one(Fault::GnssLost { vehicle, until }),
        10 => of(dice, Kind::Gnss),
        11 => one(Fault::TransmitterLost { vehicle, until }),
        12 => one(Fault::BatteryAt { vehicle, percent: between(dice, 8.0, 45.0) }),
        13 => one(Fault::BatteryAt { vehicle, percent: 0.0 }),
        14 => vec![Act::Kill(whose, Death::Radio)],
        15 => vec![Act::Silence(whose, until.since(Instant::ZERO))],
        16 | 17 => one(one_way(dice)),
        18 => vec![for_a_while(dice, loss)],
        19 => vec![for_a_while(dice, bursts)],
        20 => vec![partition(dice, aircraft)],
        21 => datagrams(dice),
        22 => of(dice, Kind::PilotTakes),
        _ => vec![Act::Press(one_of(dice, [Command::Hold, Command::Land, Command::Return]), Some(whose))],
    }
}

/// Draws a radio that only receives or only sends, for a while or for good.
fn one_way(dice: &mut Dice) -> Fault {
    let lost = one_of(dice, [Direction::Sent, Direction::Received]);
    let lasts = seconds(between(dice, 5.0, 150.0));
    let until = if below(dice, 2) == 0 { Instant::NEVER } else { Instant::ZERO + lasts };
    Fault::RadioSilent { vehicle: 0, lost, until }
}

/// Draws a channel fault that ends.
fn for_a_while(dice: &mut Dice, draw: impl Fn(&mut Dice) -> Act) -> Act {
    let until = Instant::ZERO + seconds(between(dice, 10.0, CHANNEL_S));
    match draw(dice) {
        Act::Loss { share } => Act::InflictAll(Fault::Loss { share, until }),
        Act::Bursts { share, stretch } => Act::InflictAll(Fault::Bursts { share, stretch, until }),
        other => other,
    }
}

/// Draws datagrams that come late, twice, or both.
fn datagrams(dice: &mut Dice) -> Vec<Act> {
    let until = Instant::ZERO + seconds(between(dice, 10.0, CHANNEL_S));
    let most = seconds(between(dice, 0.1, 3.0));
    let (late, doubled) = (between(dice, 0.1, 0.5), between(dice, 0.1, 0.3));
    let (late, doubled) =
        (Fault::Late { share: late, most, until }, Fault::Doubled { share: doubled, most, until });
    match below(dice, 3) {
        0 => vec![Act::InflictAll(late)],
        1 => vec![Act::InflictAll(doubled)],
        _ => vec![Act::InflictAll(late), Act::InflictAll(doubled)],
    }
}

/// Draws when something begins: a stage of an aircraft, and so long after its beginning.
fn when(dice: &mut Dice, protocol: Protocol) -> (Stage, Duration) {
    let formation = matches!(protocol, Protocol::Muscop | Protocol::FollowMe);
    let mission = if protocol == Protocol::FollowMe { Stage::Following } else { Stage::Mission(1) };
    let (stage, within_s) = match below(dice, 10) {
        0 if formation => (Stage::Setup, 1.0),
        1 if formation => (Stage::SetupFinished, 2.0),
        0 => (Stage::Start, 3.0),
        1..=2 => (Stage::TakingOff, 20.0),
        3..=4 => (Stage::Landing, 15.0),
        5 if protocol == Protocol::Muscop => (Stage::Mission(4), 10.0),
        _ => (mission, 50.0),
    };
    (stage, seconds(between(dice, 0.0, within_s)))
}

fn any_role(dice: &mut Dice) -> Role {
    let follower = Role::Follower(below(dice, 1_000) as usize);
    one_of(dice, [Role::Master, Role::Leader, follower, follower])
}

/// Draws two of the catalogue, each of an aircraft and in a phase of its own; the second half of the time soon after the first.
pub(super) fn any_two(dice: &mut Dice, protocol: Protocol, aircraft: usize) -> Vec<Step> {
    let mut steps = vec![];
    let (mut first, mut second) = (None, None);
    for _ in 0..2 {
        let whose = any_role(dice);
        let (stage, delay) = when(dice, protocol);
        let (soon, later) = (below(dice, 2) == 0, seconds(between(dice, 0.0, 20.0)));
        let (at, stage, delay) = match first {
            Some((at, stage, delay)) if soon => (at, stage, delay + later),
            _ => (whose, stage, delay),
        };
        first = first.or(Some((at, stage, delay)));
        second = Some((steps.len(), whose, at, stage, delay));
        let acts = single(dice, whose, aircraft);
        let acts = acts.into_iter().map(|act| permitted(act, protocol));
        steps.extend(acts.map(|act| Step { whose: at, stage, delay, act }));
    }
    // Drawn last: five of six drills are those that they are without these faults.
    let drawn = below(dice, 12);
    if let (Some((from, role, whose, stage, delay)), 0..=1) = (second, drawn) {
        let (role, fault) = match drawn {
            0 => (not_piloted(role, protocol), second_ground(dice)),
            _ => (role, starved(dice)),
        };
        steps.truncate(from);
        steps.push(Step { whose, stage, delay, act: Act::Inflict(role, fault) });
    }
    steps
}

/// Returns the role of an aircraft that no pilot flies: the leader of a formation has its pilot.
fn not_piloted(role: Role, protocol: Protocol) -> Role {
    match role {
        Role::Master | Role::Leader if protocol == Protocol::FollowMe => Role::Follower(0),
        Role::Master | Role::Leader | Role::Follower(_) => role,
    }
}

/// Draws the mode that a second ground station commands.
fn second_ground(dice: &mut Dice) -> Fault {
    let mode = one_of(dice, [Mode::Loiter, Mode::Brake, Mode::Rtl, Mode::Land]);
    Fault::SecondGround { vehicle: 0, mode }
}

/// Draws stretches without a processor, each shorter than the guardian waits for a process that
/// waits for one.
fn starved(dice: &mut Dice) -> Fault {
    let stall = seconds(between(dice, 0.2, STALL_MOST_S));
    let every = stall + seconds(between(dice, 0.3, 5.0));
    let until = Instant::ZERO + seconds(between(dice, 5.0, 90.0));
    Fault::Starved { vehicle: 0, stall, every, until }
}

/// Draws a fault of one aircraft of [`Kind::FURTHER`].
pub(super) fn further(dice: &mut Dice, kind: Kind, protocol: Protocol) -> Vec<Step> {
    let whose = any_role(dice);
    let unpiloted = not_piloted(whose, protocol);
    let (stage, delay) = when(dice, protocol);
    match kind {
        Kind::SecondGround => {
            let act = Act::Inflict(unpiloted, second_ground(dice));
            vec![Step { whose: unpiloted, stage, delay, act }]
        }
        Kind::Starved => vec![Step { whose, stage, delay, act: Act::Inflict(whose, starved(dice)) }],
        // From a second before the command to two seconds after it.
        _ => {
            let command = one_of(dice, [Command::Hold, Command::Land, Command::Return]);
            let until = Instant::ZERO + seconds(between(dice, 3.0, 60.0));
            let lost_after = seconds(between(dice, 0.0, 3.0));
            let press = permitted(Act::Press(command, Some(unpiloted)), protocol);
            let lost = Act::Inflict(unpiloted, Fault::TransmitterLost { vehicle: 0, until });
            let step = |later, act| Step { whose: unpiloted, stage, delay: delay + later, act };
            vec![step(Duration::from_secs(1), press), step(lost_after, lost)]
        }
    }
}

/// Returns an act that this protocol permits: behind a pilot *Return* is refused (FOLLOW-09), and
/// the operator lands the aircraft, as the refusal asks for.
fn permitted(act: Act, protocol: Protocol) -> Act {
    match act {
        Act::Press(Command::Return, role) if protocol == Protocol::FollowMe => {
            Act::Press(Command::Land, role)
        }
        other => other,
    }
}

/// Draws a fault of one aircraft's radio: it is dead, mute or deaf, for a while or for good.
pub(super) fn radio(dice: &mut Dice, protocol: Protocol) -> Vec<Step> {
    let whose = any_role(dice);
    let (stage, delay) = when(dice, protocol);
    let act = match below(dice, 4) {
        0 => Act::Kill(whose, Death::Radio),
        1 => Act::Silence(whose, seconds(between(dice, 5.0, 120.0))),
        _ => Act::Inflict(whose, one_way(dice)),
    };
    vec![Step { whose, stage, delay, act }]
}

/// Draws a channel that loses, delays or doubles datagrams from some phase on.
pub(super) fn channel(dice: &mut Dice, protocol: Protocol) -> Vec<Step> {
    let whose = any_role(dice);
    let (stage, delay) = when(dice, protocol);
    let acts = match below(dice, 4) {
        0 => vec![for_a_while(dice, loss)],
        1 => vec![for_a_while(dice, bursts)],
        _ => datagrams(dice),
    };
    acts.into_iter().map(|act| Step { whose, stage, delay, act }).collect()
}

/// Draws a cause that reaches all aircraft.
pub(super) fn common(dice: &mut Dice, kind: Kind, protocol: Protocol) -> Vec<Step> {
    let whose = any_role(dice);
    let (stage, delay) = when(dice, protocol);
    let vehicle = 0;
    let until = Instant::ZERO + seconds(between(dice, 5.0, 90.0));
    let act = match kind {
        Kind::Jammer => Act::InflictAll(Fault::GnssLost { vehicle, until }),
        Kind::AllRadios => {
            let lost = one_of(dice, [Direction::Both, Direction::Both, Direction::Sent, Direction::Received]);
            let until = if below(dice, 2) == 0 { Instant::NEVER } else { until };
            Act::InflictAll(Fault::RadioSilent { vehicle, lost, until })
        }
        Kind::AllBatteries => {
            Act::InflictAll(Fault::BatteryAt { vehicle, percent: between(dice, 15.0, 45.0) })
        }
        Kind::OneTransmitter => Act::InflictAll(Fault::TransmitterLost { vehicle, until }),
        Kind::GustFront => {
            let (sin, cos) = libm::sincos(between(dice, 0.0, core::f64::consts::TAU));
            let change_m_s = DVec3::new(sin, cos, 0.0) * between(dice, FRONT_M_S[0], FRONT_M_S[1]);
            Act::InflictAll(Fault::GustFront { vehicle, change_m_s, until })
        }
        _ => Act::GroundEnds,
    };
    vec![Step { whose, stage, delay, act }]
}
