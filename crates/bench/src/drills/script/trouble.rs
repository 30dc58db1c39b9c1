//! Faults of one aircraft, and of the channel's datagrams, by the kind of drill that they belong to.

use wingbeat_agent::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::flight_controller::Parameter;

use super::{Act, Death, Dice, Role, below, between, one_of, seconds};
use crate::drills::Kind;
use crate::scenario::{Charge, Scenario};

/// An estimate that nothing checks may be off by so much over the ground, metres: aircraft land 10 m apart, and of those
/// 5 m are the least separation and 1 m is the position noise of two.
const DRIFT_MOST_M: f64 = 4.0;
/// And in height: formations fly level, and whoever climbs or lands does so a slot away from the others.
const DRIFT_UP_MOST_M: f64 = 3.0;
/// What is left of a battery when its failsafe acts, mAh.
const LOW_MAH: f32 = 2_000.0;
/// A value of `BATT_MONITOR`: no current is measured, and no charge estimated.
const VOLTAGE_ALONE: f32 = 3.0;

/// The faults that a kind of drill inflicts on one aircraft, with the aircraft 0 and an end that counts from the time when
/// they happen ([`Fault::moved`]).
pub(super) fn draw(rng: &mut Dice, kind: Kind) -> Vec<Fault> {
    let vehicle = 0;
    let until = |rng: &mut Dice, least_s, most_s| Instant::ZERO + seconds(between(rng, least_s, most_s));
    match kind {
        Kind::SerialCut => {
            let lost = one_of(rng, [Direction::Both, Direction::Received, Direction::Sent]);
            let flaps = Duration::ZERO;
            vec![Fault::SerialLine { vehicle, lost, flaps, until: until(rng, 1.0, 60.0) }]
        }
        Kind::SerialFlaps => {
            let flaps = seconds(between(rng, 0.3, 4.0));
            vec![Fault::SerialLine { vehicle, lost: Direction::Both, flaps, until: until(rng, 10.0, 60.0) }]
        }
        Kind::AutopilotReboots => vec![Fault::AutopilotReboots { vehicle }],
        Kind::PilotTakes => {
            let mode = one_of(rng, [Mode::Loiter, Mode::AltHold, Mode::Brake, Mode::Land]);
            vec![Fault::PilotTakes { vehicle, mode }]
        }
        Kind::Failsafe => failsafe(rng),
        Kind::Gnss => vec![position(rng)],
        Kind::DaemonRestarts => {
            let guarded = below(rng, 2) == 1;
            vec![Fault::DaemonRestarts { vehicle, guarded, until: until(rng, 1.0, 10.0) }]
        }
        Kind::Datagrams => {
            let most = seconds(between(rng, 0.1, 3.0));
            let (late, doubled) = (between(rng, 0.0, 0.5), between(rng, 0.0, 0.3));
            let until = Instant::NEVER;
            vec![Fault::Late { share: late, most, until }, Fault::Doubled { share: doubled, most, until }]
        }
        // Other kinds have no fault of one aircraft alone.
        _ => vec![],
    }
}

/// An autopilot that acts by itself, one time in three without its texts being readable; or motors that fail.
fn failsafe(rng: &mut Dice) -> Vec<Fault> {
    let vehicle = 0;
    let until = Instant::ZERO + seconds(between(rng, 3.0, 60.0));
    let mut faults = match below(rng, 6) {
        0 => vec![Fault::TransmitterLost { vehicle, until }],
        1 => vec![Fault::BatteryAt { vehicle, percent: 15.0 }],
        2 => vec![Fault::BatteryAt { vehicle, percent: 0.0 }],
        3 => vec![Fault::EstimateDiverges { vehicle, until }],
        // It reports the mode of its failsafe and moves nowhere.
        4 => vec![Fault::Stuck { vehicle, until }, Fault::TransmitterLost { vehicle, until }],
        _ => vec![Fault::MotorsFail { vehicle }],
    };
    if below(rng, 3) == 0 {
        faults.insert(0, Fault::TextsGarbled { vehicle, until });
    }
    faults
}

/// Satellites that are lost; a bias, a jump, a barometer that drifts.
fn position(rng: &mut Dice) -> Fault {
    let vehicle = 0;
    let until = Instant::ZERO + seconds(between(rng, 1.0, 60.0));
    let towards = between(rng, 0.0, core::f64::consts::TAU);
    let off_m = between(rng, 1.0, DRIFT_MOST_M);
    let over_ground = DVec3::new(libm::sin(towards), libm::cos(towards), 0.0) * off_m;
    let drifts = |offset_m, within_s| {
        let within = seconds(within_s);
        Fault::EstimateDrifts { vehicle, offset_m, within, until: until + within }
    };
    match below(rng, 4) {
        0 => Fault::GnssLost { vehicle, until },
        1 => drifts(over_ground, 20.0),
        2 => drifts(over_ground, 2.0),
        _ => drifts(DVec3::Z * between(rng, -DRIFT_UP_MOST_M, DRIFT_UP_MOST_M), 30.0),
    }
}

/// Parameters by which ArduCopter acts on a low battery: lands or returns.
pub(super) fn battery_failsafe(rng: &mut Dice) -> [(Parameter, f32); 4] {
    let action = one_of(rng, [1.0, 2.0]);
    [
        (Parameter::FS_BATT_ENABLE, action),
        (Parameter::FS_BATT_MAH, LOW_MAH),
        (Parameter::BATT_FS_LOW_ACT, action),
        (Parameter::BATT_LOW_MAH, LOW_MAH),
    ]
}

/// What is kept of the batteries: of the charge, or of the voltage where a monitor estimates no charge.
pub(super) fn keep_reserve(rng: &mut Dice, scenario: &mut Scenario) {
    scenario.charge = Some(Charge { capacity_mah: None, percent: 100.0 });
    if below(rng, 2) == 1 {
        scenario.parameters.push((Parameter::BATT_MONITOR, VOLTAGE_ALONE));
        let millivolts = |volts: f64| (volts * 1e3) as u16;
        scenario.reserve.return_below_mv = millivolts(between(rng, 14.8, 15.2));
        scenario.reserve.land_below_mv = millivolts(between(rng, 13.6, 14.4));
    }
}

/// Between the heights of two returns, metres: the separation, and the errors of both heights on a
/// slope.
const RETURNS_APART_M: f64 = 10.0;
/// The highest return, metres.
const RETURNS_MOST_M: f64 = 110.0;

/// Gives each aircraft its own height of returns above all missions, as `docs/operating.md` asks of
/// the operator: those of the radio failsafe avoid no other aircraft. A MUSCOP swarm has its own
/// layers.
pub(super) fn give_return_heights(scenario: &mut Scenario, aircraft: usize) {
    let lowest_m = (0..aircraft).map(|i| scenario.height_m(i)).fold(0.0, f64::max) + RETURNS_APART_M;
    let apart_m = RETURNS_APART_M.min((RETURNS_MOST_M - lowest_m) / aircraft.max(1) as f64);
    scenario.return_heights_m = (0..aircraft).map(|i| lowest_m + apart_m * i as f64).collect();
}

/// The battery of one has little left; half of the time those of all others too, within 20 s.
pub(super) fn batteries(rng: &mut Dice, whose: Role, aircraft: usize) -> Vec<(Duration, Act)> {
    let mut runs_low = |role, within_s| {
        let percent = between(rng, 5.0, 45.0);
        (seconds(between(rng, 0.0, within_s)), Act::Inflict(role, Fault::BatteryAt { vehicle: 0, percent }))
    };
    let first = runs_low(whose, 0.0);
    let others = [Role::Master, Role::Leader].into_iter().chain((0..aircraft).map(Role::Follower));
    let others: Vec<_> = others.filter(|role| *role != whose).map(|role| runs_low(role, 20.0)).collect();
    let others = if below(rng, 2) == 1 { others } else { vec![] };
    std::iter::once(first).chain(others).collect()
}

/// The daemon of one ends and is started again; within 15 s that of another ends, half of the time for good. Where both are one
/// aircraft, its daemon ends once more while it rejoins, or after. All have a guardian, or none.
pub(super) fn two_daemons(rng: &mut Dice, whose: Role) -> Vec<(Duration, Act)> {
    let follower = Role::Follower(below(rng, 1_000) as usize);
    let other = one_of(rng, [Role::Master, Role::Leader, follower]);
    let (later, guarded) = (seconds(between(rng, 0.0, 15.0)), below(rng, 2) == 1);
    let mut restart = || {
        let until = Instant::ZERO + seconds(between(rng, 1.0, 10.0));
        Fault::DaemonRestarts { vehicle: 0, guarded, until }
    };
    let (first, second) = (Act::Inflict(whose, restart()), Act::Inflict(other, restart()));
    let death = if guarded { Death::Guarded } else { Death::Companion };
    let second = if below(rng, 2) == 1 { second } else { Act::Kill(other, death) };
    vec![(Duration::ZERO, first), (later, second)]
}

/// *Hold*, *Return* and *Land* within a second, in any order, to one aircraft or to all.
pub(super) fn two_consoles(rng: &mut Dice, whose: Role) -> Vec<(Duration, Act)> {
    let mut commands = vec![Command::Hold, Command::Return, Command::Land];
    let role = (below(rng, 2) == 1).then_some(whose);
    let mut acts = vec![];
    while !commands.is_empty() {
        let command = commands.remove(below(rng, commands.len() as u64) as usize);
        acts.push((seconds(between(rng, 0.0, 1.0)), Act::Press(command, role)));
    }
    acts
}
