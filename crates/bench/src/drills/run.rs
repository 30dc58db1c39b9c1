//! One drill under way: the world, what the script lets go wrong, the operator, and where there is one the pilot. The
//! rules are judged after every step.

use std::path::Path;

use wingbeat_agent::{Phase, Severity};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::follow_me::LeaderLost;
use wingbeat_sim::world::{Logged, Record};

use super::failure::Protocol;
use super::faults::Faults;
use super::forged::ForgedSender;
use super::operator::{Operator, calm_bound};
use super::pilot::Pilot;
use super::rules::Rules;
use super::script::Script;
use super::sky::Sky;
use super::{Conditions, Draws, Kind, Outcome, command};
use crate::recording::Recording;

/// How often operator, script and rules are handled.
pub(super) const STEP: Duration = Duration::from_millis(100);
/// From the operator's *Land* to the ground: 25 m at 0.5 m/s and a lost datagram's worth.
pub(super) const LAND_BOUND: Duration = Duration::from_secs(120);
/// All on the ground for so long, and none arms: nothing will happen any more.
const REST: Duration = Duration::from_secs(60);
/// The rules are judged once more so long after the end.
const AFTER_REST: Duration = Duration::from_secs(2);
/// *Setup* is accepted within this, or never.
const SET_UP_WITHIN: Duration = Duration::from_secs(10);
/// By then a program has its position and accepts orders.
const PROGRAM_READY_WITHIN: Duration = Duration::from_secs(120);
/// So often a formation that is refused is drawn wider.
const EASED_MOST: u32 = 8;
/// A flight takes no longer than this until the last that goes wrong.
const FLIGHT_LIMIT: Duration = Duration::from_secs(1_320);

/// Virtual time after which something is wrong with the drill itself: 1800 s with five aircraft.
pub(super) fn time_limit(aircraft: usize) -> Duration {
    FLIGHT_LIMIT + calm_bound(aircraft)
}

/// Everything that moves in a drill.
pub(super) struct Run {
    pub(super) sky: Sky,
    pub(super) faults: Faults,
    pub(super) operator: Operator,
    pilot: Option<Pilot>,
    forged: ForgedSender,
    /// Since when all that can land are on the ground.
    rest_since: Option<Instant>,
}

/// Why a drill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No aircraft flies, and none will.
    AtRest,
    /// Some fly in spite of the operator's *Land*.
    NotLanded,
    /// The drill's time is over.
    TimeLimit,
}

/// A drill and its judges.
pub(super) struct Drill {
    pub(super) run: Run,
    pub(super) rules: Rules,
}

/// Flies the drill of a kind and a seed.
///
/// # Errors
/// What was drawn cannot be flown.
pub(super) fn fly(
    kind: Kind,
    seed: u64,
    conditions: Conditions,
    draws: &Draws,
    folder: Option<&Path>,
) -> anyhow::Result<Outcome> {
    let mut script = Script::redraw(kind, seed, conditions, draws);
    if script.is_formation() {
        conditions.check()?;
    }
    for _ in 0..EASED_MOST {
        if !conditions.may_be_refused() || is_set_up(kind, &script, seed, conditions)? {
            break;
        }
        script.ease();
    }
    let about = [("flight", command(kind, seed, conditions))];
    let recording = folder.map(|folder| Recording::begin(folder, &about)).transpose()?;
    let record = recording.as_ref().map(Recording::recorder);
    let mut drill = Drill::recorded(kind, script, seed, conditions, record)?;
    let end = loop {
        drill.step();
        drill.check_world(seed)?;
        if let Some(end) = drill.run.end() {
            break end;
        }
    };
    if end == End::AtRest {
        drill.run.sky.advance(AFTER_REST);
        drill.check_world(seed)?;
        drill.judge();
    }
    drill.rules.on_end(&drill.run, end);
    let outcome = drill.outcome(kind, seed, conditions);
    recording.map_or(Ok(()), Recording::end)?;
    Ok(outcome)
}

/// Whether the aircraft accept *Setup* where nothing goes wrong: what they refuse, because two paths come too near, is no drill.
fn is_set_up(kind: Kind, script: &Script, seed: u64, conditions: Conditions) -> anyhow::Result<bool> {
    let calm = Script { steps: vec![], ..script.clone() };
    let mut drill = Drill::new(kind, calm, seed, conditions)?;
    let within = if conditions.arducopter.is_some() { PROGRAM_READY_WITHIN } else { SET_UP_WITHIN };
    while drill.run.sky.world.now() < Instant::ZERO + within {
        drill.step();
        drill.check_world(seed)?;
        let sky = &drill.run.sky;
        // The leader of each swarm.
        if (0..sky.count()).step_by(sky.size()).all(|i| sky.world.phase(i) != Phase::Start) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Drill {
    /// # Errors
    /// What was drawn cannot be flown.
    pub(super) fn new(kind: Kind, script: Script, seed: u64, conditions: Conditions) -> anyhow::Result<Self> {
        Self::recorded(kind, script, seed, conditions, None)
    }

    /// The same with a recorder of its inputs.
    fn recorded(
        kind: Kind,
        script: Script,
        seed: u64,
        conditions: Conditions,
        record: Option<Box<dyn Record>>,
    ) -> anyhow::Result<Self> {
        let rules = Rules::of(kind, &script);
        let (steps, pilot) = (script.steps.len(), script.reaction.map(Pilot::new));
        let sky = Sky::new(kind, script, seed, conditions, record)?;
        let run = Run {
            faults: Faults::new(steps, sky.count()),
            operator: Operator::new(sky.count(), sky.swarms()),
            pilot,
            forged: ForgedSender::default(),
            rest_since: None,
            sky,
        };
        Ok(Self { run, rules })
    }

    pub(super) fn step(&mut self) {
        self.run.sky.advance(STEP);
        self.run.sky.measure();
        self.judge();
        self.run.act();
    }

    /// # Errors
    /// An autopilot cannot fly on: a program that ended or fell silent.
    fn check_world(&self, seed: u64) -> anyhow::Result<()> {
        let failure = self.run.sky.world.failure();
        failure.map_or(Ok(()), |why| Err(anyhow::anyhow!("drill of seed {seed}: {why}")))
    }

    fn judge(&mut self) {
        for change in self.run.sky.world.take_changes() {
            for passed in self.run.sky.progress.apply(&change) {
                self.rules.on_milestone(&self.run, &passed);
            }
        }
        self.rules.on_step(&self.run);
    }

    fn outcome(self, kind: Kind, seed: u64, conditions: Conditions) -> Outcome {
        let Run { mut sky, forged, rest_since, operator, .. } = self.run;
        for press in operator.refused_setups() {
            sky.story.push(format!("aircraft {}: Setup is refused: {}", press.vehicle + 1, press.why()));
        }
        if let Some(task) = sky.script.follow_task() {
            let configured = match task.leader_lost {
                LeaderLost::Hold => "hold",
                LeaderLost::Land => "land",
            };
            sky.story.push(format!("leader lost: {configured}"));
        }
        if forged.sent() > 0 {
            let refused = |i: usize| sky.world.status(i).refused.iter().sum::<u64>();
            let refused = (0..sky.size()).map(refused).sum::<u64>();
            sky.story.push(format!("{refused} forged datagrams refused"));
        }
        let world = &sky.world;
        let landed_at = rest_since.unwrap_or(world.now());
        let (safety, liveness) = self.rules.verdict();
        Outcome {
            kind,
            seed,
            conditions,
            completed: completed(&sky),
            aircraft: sky.count(),
            separation_min_m: world.observer().swarm().separation_min_m,
            to_ground: landed_at.since(sky.calm_at),
            duration: world.now().since(Instant::ZERO),
            trace_hash: world.trace_hash(),
            log: world.log().iter().map(line).collect(),
            protocol: Protocol::of(&sky.script.scenario),
            began: sky.began,
            flew: sky.has_flown,
            hardest_m_s: sky.hardest_m_s,
            draws: sky.script.draws,
            story: sky.story,
            safety,
            liveness,
        }
    }
}

impl Run {
    /// What all that act do after a step of the world.
    fn act(&mut self) {
        let Self { sky, faults, operator, pilot, forged, .. } = self;
        faults.inject(sky, operator);
        sky.note_phases();
        if let Some(pilot) = pilot {
            pilot.fly(sky, operator);
        }
        forged.broadcast(sky);
        operator.operate(sky);
    }

    fn end(&mut self) -> Option<End> {
        let now = self.sky.world.now();
        if self.is_at_rest() {
            return Some(End::AtRest);
        }
        if self.operator.gave_up_at().is_some_and(|at| now > at + LAND_BOUND) {
            return Some(End::NotLanded);
        }
        (now >= Instant::ZERO + time_limit(self.sky.size())).then_some(End::TimeLimit)
    }

    /// No aircraft flies that can still land, and none will fly.
    fn is_at_rest(&mut self) -> bool {
        let (sky, now) = (&self.sky, self.sky.world.now());
        let is_up = |i: usize| {
            let truth = sky.world.truth(i);
            // One that is left alone stays up, unless a pilot lands it.
            let can_land = !sky.world.is_left_alone(i) || sky.is_piloted(i) && !truth.landed;
            truth.armed && can_land
        };
        if (0..sky.count()).any(is_up) {
            self.rest_since = None;
            return false;
        }
        let since = *self.rest_since.get_or_insert(now);
        let has_ended =
            |i: usize| !sky.lives(i) || matches!(sky.world.phase(i), Phase::Finished | Phase::Aborted);
        // A program that has no position yet is set up by no press.
        let is_ready = sky.script.scenario.arducopter.is_none() || self.operator.has_set_up();
        let rest = if is_ready { REST } else { PROGRAM_READY_WITHIN };
        self.faults.are_over() && ((0..sky.count()).all(has_ended) || now > since.max(sky.calm_at) + rest)
    }
}

/// How many aircraft completed their flight.
pub(super) fn completed(sky: &Sky) -> usize {
    sky.living().into_iter().filter(|&i| sky.world.phase(i) == Phase::Finished).count()
}

fn line(logged: &Logged) -> String {
    let mark = if logged.entry.severity == Severity::Info { ' ' } else { '!' };
    let (at_s, aircraft) = (logged.at.as_secs_f64(), logged.vehicle + 1);
    format!("{at_s:8.3} s {mark} aircraft {aircraft}: {}", logged.entry.text)
}
