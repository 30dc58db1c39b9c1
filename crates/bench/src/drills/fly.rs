//! One drill, flown: an operator who presses *Setup* and *Start*, what the script lets go wrong, and the
//! rules that must hold whatever it is. An operator who sees that his swarm does not come down by itself lands
//! it: that is a failure of liveness; a swarm that does not come down even then, one of safety.

use wingbeat_agent::{Command, Phase, Reply, Severity};
use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::world::{Change, World};
use wingbeat_wire::VehicleId;

use super::script::{Act, Role, Script, Stage};
use super::{Kind, Outcome};
use crate::scenario::ORIGIN;

/// How often operator, script and rules look.
pub(super) const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// How often a button that was refused is pressed again.
pub(super) const PRESS_PERIOD: Duration = Duration::from_millis(500);
/// A partition heals after this (the drill's subject).
pub(super) const PARTITION: Duration = Duration::from_secs(30);
/// How long the operator lets his swarm hover at his own *Hold*.
pub(super) const HOLD_PATIENCE: Duration = Duration::from_secs(20);
/// From the last that goes wrong to everybody on the ground without the operator: a failed leg's 60 s and 2 s
/// per metre, 60 s of hold, and the rest of a mission of some 200 m.
pub(super) const CALM_BOUND: Duration = Duration::from_secs(480);
/// From the operator's *Land* to the ground: 25 m at 0.5 m/s and a lost datagram's worth.
pub(super) const LAND_BOUND: Duration = Duration::from_secs(120);
/// All on the ground for so long, and nobody arms: nothing will come any more.
pub(super) const REST: Duration = Duration::from_secs(60);
/// Whoever says that it has reached a waypoint is at most so far from it over the ground: 1 m of arrival, three
/// deviations of its position, and a look's worth of way.
const REACHED_WITHIN_M: f64 = 3.0;
/// Virtual time after which something is wrong with the drill itself.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(1_800);

/// What is kept of one aircraft.
#[derive(Clone, Copy)]
struct Seen {
    stage: Stage,
    since: Instant,
    /// The waypoint that it has really reached last.
    reached: Option<u16>,
}

struct Drill {
    script: Script,
    world: World,
    seen: Vec<Seen>,
    /// Who belonged to whose group at the last look.
    groups: Vec<Vec<bool>>,
    /// When each step of the script begins, once its stage has come.
    due: Vec<Option<Instant>>,
    acted: Vec<bool>,
    set_up: Vec<bool>,
    started: bool,
    /// When the operator has had enough of his own *Hold*.
    hold_over_at: Vec<Option<Instant>>,
    presses: u32,
    /// When the last that goes wrong began, or ended.
    calm_at: Instant,
    gave_up_at: Option<Instant>,
    rest_since: Option<Instant>,
    story: Vec<String>,
    safety: Vec<String>,
    liveness: Vec<String>,
}

/// Flies the drill of a kind and a seed.
///
/// # Errors
/// What was drawn cannot be flown.
pub(super) fn fly(kind: Kind, seed: u64) -> anyhow::Result<Outcome> {
    let script = Script::draw(kind, seed);
    let scenario = &script.scenario;
    scenario.check()?;
    let mut vehicles = Vec::new();
    for i in 0..scenario.aircraft() {
        vehicles.push((scenario.agent(i, seed)?, scenario.controller(i, seed)));
    }
    let count = vehicles.len();
    let mut world = World::new(ORIGIN, vehicles, scenario.radio(seed), scenario.collision_distance_m);
    for i in 0..count {
        let Some(mission) = scenario.mission_for(i) else { continue };
        if let Reply::Refused(why) = world.mission(i, mission) {
            anyhow::bail!("mission of aircraft {}: {why}", i + 1);
        }
    }
    world.take_changes();
    let steps = script.steps.len();
    let seen = Seen { stage: Stage::Start, since: Instant::ZERO, reached: None };
    let mut drill = Drill {
        script,
        world,
        seen: vec![seen; count],
        groups: vec![vec![true; count]; count],
        due: vec![None; steps],
        acted: vec![false; steps],
        set_up: vec![false; count],
        started: false,
        hold_over_at: vec![None; count],
        presses: 0,
        calm_at: Instant::ZERO,
        gave_up_at: None,
        rest_since: None,
        story: vec![],
        safety: vec![],
        liveness: vec![],
    };
    drill.run();
    Ok(drill.outcome(kind, seed))
}

impl Drill {
    fn run(&mut self) {
        while self.world.now() < Instant::ZERO + TIME_LIMIT {
            let next = self.world.now() + LOOK_PERIOD;
            // What the script lets go wrong happens at its own time, between two looks.
            self.world.run_until(next);
            self.look();
            self.follow_script();
            self.operate();
            if self.is_over() {
                self.world.run_until(self.world.now() + Duration::from_secs(2));
                self.look();
                return;
            }
            if self.gave_up_at.is_some_and(|at| self.world.now() > at + LAND_BOUND) {
                let up = self.describe(|drill, i| drill.flies(i));
                self.safety.push(format!("not down {} s after Land: {up}", LAND_BOUND.as_secs()));
                return;
            }
        }
        self.safety.push(format!("not over after {} s", TIME_LIMIT.as_secs()));
    }

    fn count(&self) -> usize {
        self.seen.len()
    }
    fn lives(&self, i: usize) -> bool {
        !self.world.is_dead(i)
    }
    fn flies(&self, i: usize) -> bool {
        let truth = self.world.truth(i);
        truth.armed && !truth.landed
    }
    fn describe(&self, which: impl Fn(&Self, usize) -> bool) -> String {
        let one = |i: usize| {
            let status = self.world.status(i);
            let dead = if self.lives(i) { "" } else { ", dead" };
            let (state, detail) = (status.state, status.detail);
            format!("aircraft {} ({state}: {detail}; {:?}{dead})", i + 1, self.world.truth(i).mode)
        };
        (0..self.count()).filter(|&i| which(self, i)).map(one).collect::<Vec<_>>().join(", ")
    }

    /// Who has that role now.
    fn index(&self, role: Role) -> usize {
        let leader = (0..self.count()).find(|&i| self.world.agent_of(i).view().swarm.leader).unwrap_or(0);
        match role {
            Role::Master => 0,
            Role::Centre => leader,
            Role::Slave(n) => {
                let slaves: Vec<usize> = (1..self.count()).filter(|&i| i != leader).collect();
                slaves[n % slaves.len()]
            }
        }
    }

    /// The rules, and what they need to know.
    fn look(&mut self) {
        for change in self.world.take_changes() {
            let stage = Stage::of(change.state, change.reached);
            let seen = &mut self.seen[change.vehicle];
            if stage == seen.stage {
                continue;
            }
            (seen.stage, seen.since) = (stage, change.at);
            if let Stage::Mission(m) = stage {
                // Whoever is on the way to a waypoint has reached the one before.
                self.reach(&change, m / 2);
                if m % 2 == 1 {
                    self.release(&change, m / 2);
                }
            }
        }
        let given_up = self.given_up();
        self.groups = (0..self.count())
            .map(|i| (0..self.count()).map(|j| self.is_member(&given_up, i, j)).collect())
            .collect();
        if let Some(c) = self.world.observer().swarm().collisions.first()
            && !self.safety.iter().any(|s| s.starts_with("separation"))
        {
            let (a, b, at_s) = (c.pair.0 + 1, c.pair.1 + 1, c.at.as_secs_f64());
            let who = self.describe(|_, i| i == c.pair.0 || i == c.pair.1);
            let line =
                format!("separation: aircraft {a} and {b} at {at_s:.1} s, {:.2} m: {who}", c.distance_m);
            self.safety.push(line);
        }
    }

    /// An aircraft says that it is at a waypoint.
    fn reach(&mut self, change: &Change, waypoint: u16) {
        let i = change.vehicle;
        if self.seen[i].reached == Some(waypoint) {
            return;
        }
        self.seen[i].reached = Some(waypoint);
        let Some(&place) = self.world.agent_of(i).route().get(usize::from(waypoint)) else {
            self.safety.push(format!("aircraft {} is at waypoint {waypoint}, which it does not have", i + 1));
            return;
        };
        let (latitude_e7, longitude_e7) = (place.latitude_e7, place.longitude_e7);
        let there = Position { latitude_e7, longitude_e7, altitude_mm: 0 };
        let off_m = Frame::new(there).to_local(change.position).truncate().length();
        if off_m > REACHED_WITHIN_M {
            let line = format!("aircraft {} says it is at waypoint {waypoint}, {off_m:.1} m away", i + 1);
            self.safety.push(line);
        }
    }

    /// An aircraft leaves a waypoint: every member of its group has reached it. It left at some time since the
    /// last look, so that one that was given up at either of them may have been given up then.
    fn release(&mut self, change: &Change, waypoint: u16) {
        let i = change.vehicle;
        let given_up = self.given_up();
        let member = |j: usize| self.groups[i][j] && self.is_member(&given_up, i, j);
        let late = |&j: &usize| member(j) && self.seen[j].reached < Some(waypoint);
        for j in (0..self.count()).filter(late).collect::<Vec<_>>() {
            let (who, at_s, other) = (i + 1, change.at.as_secs_f64(), j + 1);
            self.safety.push(format!(
                "release: aircraft {who} leaves waypoint {waypoint} at {at_s:.1} s before aircraft {other} reached it"
            ));
        }
    }

    /// Whether `j` belongs to the group that `i` flies with: neither it nor whoever leads it has given `j` up.
    fn is_member(&self, given_up: &[Vec<VehicleId>], i: usize, j: usize) -> bool {
        let scenario = &self.script.scenario;
        let (leader, other) = (self.world.agent_of(i).view().swarm.leader_id, scenario.id(j));
        let leader = (0..self.count()).find(|&l| Some(scenario.id(l)) == leader).unwrap_or(i);
        let waits = |i: usize| !given_up[i].contains(&other);
        waits(i) && (leader == j || waits(leader))
    }

    /// By aircraft, the members that it does not wait for.
    fn given_up(&self) -> Vec<Vec<VehicleId>> {
        let of = |i: usize| {
            let absentees = self.world.agent_of(i).absentees();
            absentees.iter().filter(|a| !a.is_waited_for).map(|a| a.id).collect()
        };
        (0..self.count()).map(of).collect()
    }

    fn follow_script(&mut self) {
        let now = self.world.now();
        for index in 0..self.due.len() {
            let step = self.script.steps[index];
            if self.due[index].is_none() {
                let seen = self.seen[self.index(step.whose)];
                if seen.stage >= step.stage && seen.stage != Stage::Over {
                    self.due[index] = Some(seen.since.max(now) + step.delay);
                }
            }
            if self.due[index].is_some_and(|due| now >= due) && !self.acted[index] {
                self.acted[index] = true;
                self.act(step.act);
            }
        }
    }

    fn act(&mut self, act: Act) {
        let now = self.world.now();
        self.calm_at = self.calm_at.max(now);
        let told = match act {
            Act::Kill(role, death) => {
                let vehicle = self.index(role);
                self.world.inflict(now, death.fault(vehicle));
                format!("aircraft {}: {}", vehicle + 1, death.words())
            }
            Act::Silence(role, lasts) => {
                let vehicle = self.index(role);
                self.calm_at = self.calm_at.max(now + lasts);
                self.world.inflict(now, Fault::RadioSilent { vehicle, until: now + lasts });
                format!("aircraft {}: its radio is silent for {:.1} s", vehicle + 1, lasts.as_secs_f64())
            }
            Act::Loss { share } => {
                self.world.inflict(now, Fault::Loss { share, until: Instant::NEVER });
                format!("{:.0} % of all datagrams are lost", share * 1e2)
            }
            Act::Bursts { share, stretch } => {
                self.world.inflict(now, Fault::Bursts { share, stretch, until: Instant::NEVER });
                let (share, stretch_s) = (share * 1e2, stretch.as_secs_f64());
                format!("{share:.0} % of all stretches of {stretch_s:.1} s are lost")
            }
            Act::Partition { group } => {
                self.calm_at = self.calm_at.max(now + PARTITION);
                self.world.inflict(now, Fault::Partition { group, until: now + PARTITION });
                format!("partition: {group:05b} and the others")
            }
            Act::Press(command, role) => {
                let chosen: Vec<usize> =
                    role.map_or_else(|| (0..self.count()).collect(), |r| vec![self.index(r)]);
                for &i in &chosen {
                    let accepted = self.press(i, command);
                    if accepted && command == Command::Hold {
                        self.hold_over_at[i] = Some(now + HOLD_PATIENCE);
                        self.calm_at = self.calm_at.max(now + HOLD_PATIENCE);
                    }
                }
                let who: Vec<String> = chosen.iter().map(|i| (i + 1).to_string()).collect();
                format!("the operator commands {command:?} to {}", who.join(", "))
            }
        };
        let stages: Vec<String> = self.seen.iter().map(|s| s.stage.name()).collect();
        self.story.push(format!("{:8.3} s {told} (at {})", now.as_secs_f64(), stages.join(", ")));
    }

    /// Presses a button; whether it was accepted.
    fn press(&mut self, i: usize, command: Command) -> bool {
        self.presses += 1;
        let id = format!("{command:?} {}", self.presses);
        self.world.command(i, &id, command) == Reply::Accepted
    }

    fn operate(&mut self) {
        let now = self.world.now();
        let pressing = now.as_micros().is_multiple_of(PRESS_PERIOD.as_micros() as u64);
        let phase = |drill: &Self, i: usize| drill.world.phase(i);
        if pressing {
            for i in 0..self.count() {
                if !self.set_up[i] && phase(self, i) == Phase::Start {
                    self.set_up[i] = self.press(i, Command::Setup);
                }
            }
        }
        let settled = |p: Phase| matches!(p, Phase::Ready | Phase::Finished | Phase::Aborted);
        let living: Vec<usize> = (0..self.count()).filter(|&i| self.lives(i)).collect();
        let ready = living.iter().any(|&i| phase(self, i) == Phase::Ready);
        if !self.started && ready && living.iter().all(|&i| settled(phase(self, i))) {
            self.started = true;
            for &i in &living {
                if phase(self, i) == Phase::Ready {
                    self.press(i, Command::Start);
                }
            }
        }
        for i in living.iter().copied() {
            if self.hold_over_at[i].is_some_and(|at| now >= at) {
                self.hold_over_at[i] = None;
                self.press(i, self.script.after_hold);
            }
        }
        let enough = self.calm_at + CALM_BOUND;
        if self.gave_up_at.is_none() && now > enough {
            self.gave_up_at = Some(now);
            let up = self.describe(|drill, i| drill.flies(i) && drill.lives(i));
            let all = if up.is_empty() { self.describe(|_, _| true) } else { up };
            self.liveness
                .push(format!("not down {} s after the last that went wrong: {all}", CALM_BOUND.as_secs()));
        }
        if self.gave_up_at.is_some() && pressing {
            for i in living {
                if self.world.truth(i).armed && self.world.phase(i) != Phase::Aborted {
                    self.press(i, Command::Land);
                }
            }
        }
    }

    /// Nobody flies who can still come down, and nobody will fly.
    fn is_over(&mut self) -> bool {
        let now = self.world.now();
        let up = |i: usize| self.world.truth(i).armed && !self.world.is_left_alone(i);
        if (0..self.count()).any(up) {
            self.rest_since = None;
            return false;
        }
        let since = *self.rest_since.get_or_insert(now);
        let ended =
            |i: usize| !self.lives(i) || matches!(self.world.phase(i), Phase::Finished | Phase::Aborted);
        let acted = self.due.iter().zip(&self.acted).all(|(due, acted)| due.is_none() || *acted);
        acted && ((0..self.count()).all(ended) || now > since.max(self.calm_at) + REST)
    }

    fn outcome(mut self, kind: Kind, seed: u64) -> Outcome {
        let finished = |i: &usize| self.world.phase(*i) == Phase::Finished;
        let completed = (0..self.count()).filter(|&i| self.lives(i)).filter(finished).count();
        // Nothing was lost for good, and nobody was silent for long: the mission is flown to its end.
        let promised = kind == Kind::Loss || self.story.is_empty();
        if promised && completed < self.count() && self.liveness.is_empty() {
            let all = self.describe(|drill, i| drill.world.phase(i) != Phase::Finished);
            self.liveness.push(format!("mission not completed: {all}"));
        }
        let down_at = self.rest_since.unwrap_or(self.world.now());
        let line = |l: &wingbeat_sim::world::Logged| {
            let mark = if l.event.severity == Severity::Info { ' ' } else { '!' };
            format!("{:8.3} s {mark} aircraft {}: {}", l.at.as_secs_f64(), l.vehicle + 1, l.event.text)
        };
        Outcome {
            kind,
            seed,
            story: self.story,
            safety: self.safety,
            liveness: self.liveness,
            completed,
            aircraft: self.seen.len(),
            separation_min_m: self.world.observer().swarm().separation_min_m,
            to_ground: down_at.since(self.calm_at),
            duration: self.world.now().since(Instant::ZERO),
            trace_hash: self.world.trace_hash(),
            log: self.world.log().iter().map(line).collect(),
        }
    }
}
