//! What the script lets go wrong, when its time has come.

use wingbeat_agent::Command;
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::motion::Profile;

use super::operator::{HOLD_PATIENCE, Operator};
use super::progress::Stage;
use super::run::STEP;
use super::script::{Act, Death};
use super::sky::{Sky, Taken};

/// A partition ends after this (the drill's subject).
const PARTITION: Duration = Duration::from_secs(30);

/// A pilot stops a drift towards an aircraft on the ground at this distance, by eye.
const STOPS_WITHIN_M: f64 = 8.0;
/// A pilot who sees that his switch did nothing turns it once more.
pub(super) const TURNS_AGAIN: Duration = Duration::from_secs(2);

/// An aircraft whose charge lasts for less may not be down before its battery is empty: 25 m at 1.5 and 0.5 m/s, and the decision.
const LANDS_WITHIN_S: f64 = 60.0;

/// Returns the aircraft that an act concerns.
fn concerned(act: Act, sky: &Sky) -> Vec<usize> {
    let all = || (0..sky.size()).collect();
    match act {
        Act::Kill(role, _) | Act::Silence(role, _) | Act::Press(_, Some(role)) => vec![sky.index(role)],
        Act::Inflict(role, fault) if fault.vehicle().is_some() => vec![sky.index(role)],
        Act::Inflict(..)
        | Act::Press(_, None)
        | Act::Loss { .. }
        | Act::Bursts { .. }
        | Act::Partition { .. }
        | Act::InflictAll(_)
        | Act::GroundEnds => all(),
    }
}

/// Returns when an act that begins now ends; [`Instant::NEVER`] where nothing ends it.
fn ends(act: Act, now: Instant) -> Instant {
    match act {
        Act::Silence(_, lasts) => now + lasts,
        Act::Partition { .. } => now + PARTITION,
        Act::Press(..) => now,
        Act::Inflict(_, fault) | Act::InflictAll(fault) => {
            fault.moved(0, now.since(Instant::ZERO)).until().unwrap_or(Instant::NEVER)
        }
        Act::Kill(..) | Act::Loss { .. } | Act::Bursts { .. } | Act::GroundEnds => Instant::NEVER,
    }
}

/// Returns a fault as physics permits it now: no battery has more charge than before.
fn permitted(sky: &Sky, vehicle: usize, fault: Fault) -> Fault {
    let Fault::BatteryAt { vehicle: of, percent } = fault else { return fault };
    let left = sky.world.charge_percent(vehicle).unwrap_or(percent);
    Fault::BatteryAt { vehicle: of, percent: percent.min(left) }
}

/// Notes for the rules that a fault strikes an aircraft until then.
fn strike(sky: &mut Sky, vehicle: usize, fault: Fault, ends_at: Instant) {
    if fault.vehicle().is_none() {
        return;
    }
    let motion = sky.world.motion(vehicle);
    let is_in_flight = motion.armed || !motion.landed;
    let is_old = sky.script.scenario.profile == Profile::Copter357;
    let battery_min = sky.script.battery_min();
    let struck = &mut sky.struck[vehicle];
    if !matches!(fault, Fault::EstimateDrifts { .. } | Fault::GustFront { .. }) {
        struck.until = struck.until.max(ends_at);
    }
    if let Fault::RadioSilent { until, .. } = fault {
        struck.radio_until = struck.radio_until.max(until);
    }
    struck.restarts |= matches!(fault, Fault::DaemonRestarts { .. });
    if is_in_flight {
        struck.falls |= matches!(fault, Fault::MotorsFail { .. } | Fault::AutopilotReboots { .. });
        struck.is_drained |= matches!(fault, Fault::BatteryAt { percent, .. }
            if percent * 1e-2 * battery_min * 60.0 < LANDS_WITHIN_S);
    }
    struck.acts_unannounced |= matches!(fault, Fault::TextsGarbled { .. })
        || is_old && matches!(fault, Fault::TransmitterLost { .. });
    if let Fault::EstimateDrifts { offset_m, within, .. } = fault {
        struck.off_m = struck.off_m.max(offset_m.truncate().length());
        sky.disturb_until(ends_at + within);
    }
}

/// Returns whether an aircraft is not in the mode of the pilot who took it, or armed after that. A
/// failsafe of the flight controller outranks the pilot too: without a position LOITER becomes
/// LAND.
pub(super) fn is_overridden(sky: &Sky, vehicle: usize) -> bool {
    let truth = sky.world.truth(vehicle);
    let is_anothers = |taken: Taken| truth.mode != taken.mode && !sky.world.is_in_failsafe_mode(vehicle);
    let differs = |taken: Taken| truth.armed && (is_anothers(taken) || !taken.was_armed);
    sky.struck[vehicle].pilot.is_some_and(differs)
}

/// Returns whether a flight controller refused the first command of a second ground station, as RTL
/// without a position: then no other has the aircraft. A pilot's switch stays where it was turned.
fn is_refused(sky: &Sky, vehicle: usize, taken: Taken) -> bool {
    let is_first = taken.is_ground && taken.turns == 1 && taken.mode != Mode::Land;
    let is_due = sky.world.now() > taken.since && sky.world.now() <= taken.since + STEP;
    is_first && is_due && sky.world.truth(vehicle).mode != taken.mode
}

/// Returns whether a pilot sees an aircraft on the ground near theirs: it cannot make way, and the pilot does not let
/// their own drift onto it.
fn drifts_over_one_that_stands(sky: &Sky, vehicle: usize) -> bool {
    let stands = |i: usize| sky.world.truth(i).landed && !sky.world.truth(i).armed;
    let flies = !sky.world.truth(vehicle).landed;
    flies && (0..sky.count()).any(|i| i != vehicle && stands(i) && sky.apart_m(vehicle, i) < STOPS_WITHIN_M)
}

pub(super) struct Faults {
    /// When each step of the script is due, once its stage has come.
    due: Vec<Option<Instant>>,
    acted: Vec<bool>,
    /// When each aircraft sent for the last time.
    mute_at: Vec<Option<Instant>>,
    /// When each aircraft received for the last time.
    deaf_at: Vec<Option<Instant>>,
}

impl Faults {
    pub(super) fn new(steps: usize, aircraft: usize) -> Self {
        let never = || vec![None; aircraft];
        Self { due: vec![None; steps], acted: vec![false; steps], mute_at: never(), deaf_at: never() }
    }

    /// Whether nothing that is due is still to come.
    pub(super) fn are_over(&self) -> bool {
        self.due.iter().zip(&self.acted).all(|(due, acted)| due.is_none() || *acted)
    }

    /// Returns when a follower lost its leader for good: since then the leader sends nothing, or
    /// the follower receives nothing. A leader whose radio only sends is not lost.
    pub(super) fn lost_at(&self, leader: usize, follower: usize) -> Option<Instant> {
        let all = [self.mute_at[leader], self.deaf_at[follower]];
        all.into_iter().flatten().min()
    }

    /// Notes that the radio of an aircraft is lost for good, in this direction.
    fn lose_radio(&mut self, vehicle: usize, lost: Direction, now: Instant) {
        if matches!(lost, Direction::Both | Direction::Sent) {
            self.mute_at[vehicle].get_or_insert(now);
        }
        if matches!(lost, Direction::Both | Direction::Received) {
            self.deaf_at[vehicle].get_or_insert(now);
        }
    }

    /// Lets happen what is due.
    pub(super) fn inject(&mut self, sky: &mut Sky, operator: &mut Operator) {
        let now = sky.world.now();
        for vehicle in 0..sky.count() {
            let Some(taken) = sky.struck[vehicle].pilot else { continue };
            if is_refused(sky, vehicle, taken) {
                sky.struck[vehicle].pilot = None;
                sky.note(&format!(
                    "aircraft {}: refuses {:?} of the second ground station",
                    vehicle + 1,
                    taken.mode
                ));
            } else if taken.mode == Mode::AltHold && drifts_over_one_that_stands(sky, vehicle) {
                sky.take(vehicle, Mode::Loiter, taken.is_ground);
                sky.note(&format!("aircraft {}: its pilot stops its drift", vehicle + 1));
            } else if taken.mode != Mode::Land && now >= taken.since + sky.script.pilot_hover {
                sky.take(vehicle, Mode::Land, taken.is_ground);
            } else if taken.turns == 1 && now >= taken.since + TURNS_AGAIN && is_overridden(sky, vehicle) {
                sky.take(vehicle, taken.mode, taken.is_ground);
                sky.note(&format!("aircraft {}: its pilot turns the switch once more", vehicle + 1));
            }
        }
        for index in 0..self.due.len() {
            let step = sky.script.steps[index];
            if self.due[index].is_none() {
                let vehicle = sky.index(step.whose);
                let stage = sky.progress.stage(vehicle);
                if stage >= step.stage && stage != Stage::Over {
                    self.due[index] = Some(sky.progress.since(vehicle).max(now) + step.delay);
                }
            }
            if self.due[index].is_some_and(|due| now >= due) && !self.acted[index] {
                self.acted[index] = true;
                self.act(step.act, sky, operator);
            }
        }
    }

    fn act(&mut self, act: Act, sky: &mut Sky, operator: &mut Operator) {
        let now = sky.world.now();
        sky.disturb_until(now);
        sky.note_failure(&act, &concerned(act, sky), ends(act, now));
        let what = match act {
            Act::Kill(role, death) => {
                let vehicle = sky.index(role);
                self.lose_radio(vehicle, Direction::Both, now);
                sky.struck[vehicle].falls |= death == Death::Falls && !sky.world.motion(vehicle).landed;
                if death == Death::Radio {
                    sky.struck[vehicle].radio_until = Instant::NEVER;
                }
                sky.world.inflict(now, death.fault(vehicle));
                format!("aircraft {}: {}", vehicle + 1, death.describe())
            }
            Act::Silence(role, lasts) => {
                let vehicle = sky.index(role);
                sky.disturb_until(now + lasts);
                let struck = &mut sky.struck[vehicle];
                struck.radio_until = struck.radio_until.max(now + lasts);
                sky.world
                    .inflict(now, Fault::RadioSilent { vehicle, lost: Direction::Both, until: now + lasts });
                format!("aircraft {}: its radio is silent for {:.1} s", vehicle + 1, lasts.as_secs_f64())
            }
            Act::Loss { share } => {
                sky.world.inflict(now, Fault::Loss { share, until: Instant::NEVER });
                format!("{:.0} % of all datagrams are lost", share * 1e2)
            }
            Act::Bursts { share, stretch } => {
                sky.world.inflict(now, Fault::Bursts { share, stretch, until: Instant::NEVER });
                let (share, stretch_s) = (share * 1e2, stretch.as_secs_f64());
                format!("{share:.0} % of all stretches of {stretch_s:.1} s are lost")
            }
            Act::Partition { group } => {
                let size = sky.size();
                sky.disturb_until(now + PARTITION);
                sky.world.inflict(now, Fault::Partition { group, until: now + PARTITION });
                format!("partition: {group:0size$b} and the others")
            }
            Act::Inflict(role, fault) => {
                let vehicle = sky.index(role);
                let fault = permitted(sky, vehicle, fault.moved(vehicle, now.since(Instant::ZERO)));
                let ends_at = fault.until().unwrap_or(now);
                sky.disturb_until(ends_at);
                if let Fault::PilotTakes { mode, .. } | Fault::SecondGround { mode, .. } = fault {
                    sky.take(vehicle, mode, matches!(fault, Fault::SecondGround { .. }));
                    sky.disturb_until(now + sky.script.pilot_hover);
                } else {
                    sky.world.inflict(now, fault);
                }
                strike(sky, vehicle, fault, ends_at);
                if let Fault::RadioSilent { lost, until: Instant::NEVER, .. } = fault {
                    self.lose_radio(vehicle, lost, now);
                }
                format!("{fault:?}")
            }
            Act::InflictAll(fault) => {
                let all = if fault.vehicle().is_some() { sky.size() } else { 1 };
                for vehicle in 0..all {
                    let fault = permitted(sky, vehicle, fault.moved(vehicle, now.since(Instant::ZERO)));
                    let ends_at = fault.until().unwrap_or(now);
                    sky.disturb_until(ends_at);
                    sky.world.inflict(now, fault);
                    strike(sky, vehicle, fault, ends_at);
                    if let Fault::RadioSilent { lost, until: Instant::NEVER, .. } = fault {
                        self.lose_radio(vehicle, lost, now);
                    }
                }
                format!("of all: {fault:?}")
            }
            Act::GroundEnds => {
                operator.end();
                // An aircraft that waits for its operator does so for this long.
                sky.disturb_until(now + sky.script.scenario.reserve.wait);
                (0..sky.count()).for_each(|i| sky.world.lease(i, false));
                "the operator and the consoles are gone".to_owned()
            }
            Act::Press(command, role) => {
                let chosen = role.map_or_else(|| (0..sky.size()).collect(), |r| vec![sky.index(r)]);
                for &i in &chosen {
                    if operator.press(&mut sky.world, i, command) && command == Command::Hold {
                        operator.hold_until(i, now + HOLD_PATIENCE);
                        sky.disturb_until(now + HOLD_PATIENCE);
                    }
                }
                let numbers: Vec<String> = chosen.iter().map(|i| (i + 1).to_string()).collect();
                format!("the operator commands {command:?} to {}", numbers.join(", "))
            }
        };
        let stages = sky.progress.names();
        sky.note(&format!("{what} (at {stages})"));
    }
}
