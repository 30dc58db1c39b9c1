//! One drill behind a pilot (FollowMe), flown: an operator who presses *Setup* and *Start*, a pilot who flies the
//! leader and stops and lands when he sees that something went wrong, what the script lets go wrong, and the rules
//! that must hold whatever it is:
//!
//! - nobody comes nearer to another than 5 m, and everybody comes down;
//! - a slave that no longer hears its leader does what is configured, soon;
//! - nobody follows another leader, whatever it claims.

mod script;
#[cfg(test)]
mod tests;

use wingbeat_agent::{Agent, Command, Config as AgentConfig, Phase, Reply, Severity, StateId};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::follow_me::LeaderLost;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::pilot::Pilot;
use wingbeat_sim::pilot::synthetic::Synthetic;
use wingbeat_sim::world::World;
use wingbeat_wire::{Coordinates, Datagram, Message, Point, VehicleId};

use super::fly::{
    CALM_BOUND, HOLD_PATIENCE, LAND_BOUND, LOOK_PERIOD, PARTITION, PRESS_PERIOD, REST, TIME_LIMIT,
};
use super::script::{Act, Role};
use super::{AIRCRAFT, Kind, Outcome};
use crate::scenario::FollowTask;
use crate::scenario::{ORIGIN, Scenario, Task};
use script::{Script, Stage};

/// The leader is the first.
const LEADER: usize = 0;
/// A pilot lands no nearer to another, by eye.
const CLEAR_BELOW_M: f64 = 12.0;
/// Two refreshes, and a datagram that is lost: by then a pilot who leads sees who follows.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(5);
/// From the loss of the leader to the slave's own decision, beside the timeout: a refresh, and a look.
const DECIDES_WITHIN: Duration = Duration::from_millis(2_500);
/// Whoever flies after a leader three kilometres away is soon farther than this from its own.
const ASTRAY_M: f64 = 1_000.0;
/// The ids of the other swarm begin here.
const OTHERS: u64 = 0x0a00_0000_0001;

struct Drill {
    script: Script,
    world: World,
    stages: Vec<(Stage, Instant)>,
    due: Option<Instant>,
    acted: bool,
    set_up: Vec<bool>,
    /// The first swarm, then the other: whether it was started.
    started: [bool; 2],
    /// When the pilot saw trouble, and whether he has come down for it.
    trouble_at: Option<Instant>,
    pilot_stopped: bool,
    /// When he comes down, unless somebody stands below.
    pilot_lands_at: Option<Instant>,
    /// Since when the leader tells where it is.
    tells_since: Option<Instant>,
    /// Since when it says nothing, for good.
    silent_since: Option<Instant>,
    flight: Option<u32>,
    forge_at: Instant,
    forged: u32,
    hold_over_at: Vec<Option<Instant>>,
    presses: u32,
    calm_at: Instant,
    gave_up_at: Option<Instant>,
    rest_since: Option<Instant>,
    story: Vec<String>,
    safety: Vec<String>,
    liveness: Vec<String>,
}

fn task(scenario: &Scenario) -> &FollowTask {
    match &scenario.task {
        Task::Follow(task) => task,
        Task::Swarm(_) | Task::Own(_) => unreachable!("drills behind a pilot draw no other task"),
    }
}

/// Flies the drill of a kind and a seed.
///
/// # Errors
/// What was drawn cannot be flown.
pub(super) fn fly(kind: Kind, seed: u64) -> anyhow::Result<Outcome> {
    let mut drill = Drill::of(Script::draw(kind, seed), seed)?;
    drill.run(seed);
    Ok(drill.outcome(kind, seed))
}

impl Drill {
    fn of(script: Script, seed: u64) -> anyhow::Result<Self> {
        let scenario = &script.scenario;
        scenario.check()?;
        let mut vehicles = Vec::new();
        for i in 0..AIRCRAFT {
            vehicles.push((scenario.agent(i, seed)?, scenario.controller(i, seed)));
        }
        if let Some(others) = &script.others {
            for i in 0..AIRCRAFT {
                let config = task(others).config(VehicleId(OTHERS + i as u64), VehicleId(OTHERS));
                let config = AgentConfig {
                    companion_loss: others.agent_config(i).companion_loss,
                    ..AgentConfig::new(config)
                };
                let agent = Agent::new(config, seed ^ (OTHERS + i as u64), Instant::ZERO)?;
                vehicles.push((agent, others.controller(i, seed)));
            }
        }
        let count = vehicles.len();
        let channel = wingbeat_sim::channel::Channel::new(scenario.channel, scenario.draw, seed, count);
        let mut world = World::new(ORIGIN, vehicles, channel, scenario.collision_distance_m);
        world.take_changes();
        Ok(Self {
            script,
            world,
            stages: vec![(Stage::Start, Instant::ZERO); count],
            due: None,
            acted: false,
            set_up: vec![false; count],
            started: [false; 2],
            trouble_at: None,
            pilot_stopped: false,
            pilot_lands_at: None,
            tells_since: None,
            silent_since: None,
            flight: None,
            forge_at: Instant::ZERO,
            forged: 0,
            hold_over_at: vec![None; count],
            presses: 0,
            calm_at: Instant::ZERO,
            gave_up_at: None,
            rest_since: None,
            story: vec![],
            safety: vec![],
            liveness: vec![],
        })
    }
}

impl Drill {
    fn run(&mut self, seed: u64) {
        while self.world.now() < Instant::ZERO + TIME_LIMIT {
            self.step(seed);
            if self.is_over() {
                self.world.run_until(self.world.now() + Duration::from_secs(2));
                self.look();
                return;
            }
            if self.gave_up_at.is_some_and(|at| self.world.now() > at + LAND_BOUND) {
                let up = self.describe(|drill, i| drill.world.truth(i).armed);
                self.safety.push(format!("not down {} s after Land: {up}", LAND_BOUND.as_secs()));
                return;
            }
        }
        self.safety.push(format!("not over after {} s", TIME_LIMIT.as_secs()));
    }

    /// From one look to the next.
    fn step(&mut self, seed: u64) {
        self.world.run_until(self.world.now() + LOOK_PERIOD);
        self.look();
        self.follow_script();
        self.fly_by_hand();
        self.forge();
        self.operate(seed);
    }

    fn count(&self) -> usize {
        self.stages.len()
    }
    fn lives(&self, i: usize) -> bool {
        !self.world.is_dead(i)
    }
    /// Whether a pilot holds its sticks: his companion's death brings nobody down, and he does.
    fn is_led_by_hand(&self, i: usize) -> bool {
        i % AIRCRAFT == LEADER
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
    /// One line for each rule is enough.
    fn unsafe_once(&mut self, rule: &str, line: String) {
        if !self.safety.iter().any(|s| s.starts_with(rule)) {
            self.safety.push(format!("{rule}: {line}"));
        }
    }

    fn index(&self, role: Role) -> usize {
        match role {
            Role::Master | Role::Centre => LEADER,
            Role::Slave(n) => 1 + n % (AIRCRAFT - 1),
        }
    }

    /// The rules.
    fn look(&mut self) {
        for change in self.world.take_changes() {
            let stage = Stage::of(change.state);
            if stage != self.stages[change.vehicle].0 {
                self.stages[change.vehicle] = (stage, change.at);
                if change.vehicle == LEADER && stage == Stage::Waiting {
                    self.tells_since = Some(change.at);
                }
            }
        }
        if let Some(c) = self.world.observer().swarm().collisions.first() {
            let (a, b, at_s, apart_m) = (c.pair.0 + 1, c.pair.1 + 1, c.at.as_secs_f64(), c.distance_m);
            let who = self.describe(|_, i| i == c.pair.0 || i == c.pair.1);
            self.unsafe_once(
                "separation",
                format!("aircraft {a} and {b} at {at_s:.1} s, {apart_m:.2} m: {who}"),
            );
        }
        let now = self.world.now();
        let config = task(&self.script.scenario).config(VehicleId(1), VehicleId(1));
        let (timeout, waits) = (config.leader_timeout, config.swarm.hold_before_landing);
        // Who never heard its leader waits as long as for an operator.
        let silent_since = self.silent_since;
        let told = self.tells_since.zip(silent_since).is_some_and(|(a, b)| b > a + DECIDES_WITHIN);
        let decided_by = |waits_since: Instant| match silent_since {
            None => Instant::NEVER,
            Some(at) if told => at + timeout + DECIDES_WITHIN,
            Some(at) => at.max(waits_since) + waits + DECIDES_WITHIN,
        };
        for i in 0..self.count() {
            let (first, mine) = if i < AIRCRAFT {
                (LEADER, self.script.scenario.id(LEADER))
            } else {
                (AIRCRAFT + LEADER, VehicleId(OTHERS))
            };
            if let Some(leader) =
                self.world.agent_of(i).view().swarm.leader_id.filter(|leader| *leader != mine)
            {
                self.unsafe_once("leader", format!("aircraft {} takes {leader} for its leader", i + 1));
            }
            let far_m = self.apart_m(i, first);
            if far_m > ASTRAY_M {
                self.unsafe_once("astray", format!("aircraft {} is {far_m:.0} m from its leader", i + 1));
            }
            let follows =
                matches!(self.world.agent_of(i).view().state, StateId::WaitMaster | StateId::Following);
            if i < AIRCRAFT && follows && self.lives(i) && now > decided_by(self.stages[i].1) {
                let state = self.describe(|_, j| i == j);
                self.unsafe_once("leader lost", format!("undecided at {:.1} s: {state}", now.as_secs_f64()));
            }
        }
    }

    fn apart_m(&self, a: usize, b: usize) -> f64 {
        let frame = wingbeat_geo::Frame::new(ORIGIN);
        let at = |i: usize| frame.to_local(self.world.truth(i).position).truncate();
        at(a).distance(at(b))
    }

    fn follow_script(&mut self) {
        let now = self.world.now();
        let Some(step) = self.script.step else { return };
        let (stage, since) = self.stages[LEADER];
        if self.due.is_none() && stage >= step.stage && stage != Stage::Over {
            self.due = Some(since.max(now) + step.delay);
        }
        if self.due.is_some_and(|due| now >= due) && !self.acted {
            self.acted = true;
            self.act(step.act);
        }
    }

    fn act(&mut self, act: Act) {
        let now = self.world.now();
        self.calm_at = self.calm_at.max(now);
        let told = match act {
            Act::Kill(role, death) => {
                let vehicle = self.index(role);
                if vehicle == LEADER {
                    self.silent_since = Some(now);
                }
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
                    role.map_or_else(|| (0..AIRCRAFT).collect(), |r| vec![self.index(r)]);
                for &i in &chosen {
                    if self.press(i, command) && command == Command::Hold {
                        self.hold_over_at[i] = Some(now + HOLD_PATIENCE);
                        self.calm_at = self.calm_at.max(now + HOLD_PATIENCE);
                    }
                }
                let who: Vec<String> = chosen.iter().map(|i| (i + 1).to_string()).collect();
                format!("the operator commands {command:?} to {}", who.join(", "))
            }
        };
        let stages: Vec<String> = self.stages.iter().map(|(stage, _)| format!("{stage:?}")).collect();
        self.story.push(format!("{:8.3} s {told} (at {})", now.as_secs_f64(), stages.join(", ")));
    }

    fn press(&mut self, i: usize, command: Command) -> bool {
        self.presses += 1;
        let id = format!("{command:?} {}", self.presses);
        self.world.command(i, &id, command) == Reply::Accepted
    }

    /// The pilot sees who falls behind or is lost, stops, and comes down after a while.
    fn fly_by_hand(&mut self) {
        let now = self.world.now();
        if self.pilot_lands_at.is_some_and(|at| now >= at) {
            self.pilot_lands_at = None;
            if let Some((right, ahead)) = self.aside() {
                self.world.seat(LEADER, Pilot::Synthetic(Synthetic::landing_aside(right, ahead)));
            }
        }
        if !self.started[0] || self.pilot_stopped {
            return;
        }
        let leads = self.world.agent_of(LEADER).view().state == StateId::FollowMe;
        let leads = leads && now > self.stages[LEADER].1 + FOLLOWS_WITHIN;
        let wrong = |i: usize| match self.world.agent_of(i).view().state {
            _ if !self.lives(i) => true,
            StateId::LeaderLost | StateId::Aborted => true,
            // He leads, and who should follow does not.
            StateId::WaitMaster | StateId::SetupFinished => leads,
            _ => false,
        };
        if self.trouble_at.is_none() && (0..AIRCRAFT).any(wrong) {
            self.trouble_at = Some(now);
        }
        if self.trouble_at.is_some_and(|at| now >= at + self.script.reaction) {
            self.pilot_stopped = true;
            let hover = self.script.hover;
            if self.world.truth(LEADER).landed {
                // He stays on the ground, and whoever waits for him has to be told.
                self.world.seat(LEADER, Pilot::Synthetic(Synthetic::coming_down(Duration::ZERO)));
                (1..AIRCRAFT).for_each(|i| {
                    self.press(i, Command::Land);
                });
            } else {
                self.calm_at = self.calm_at.max(now + hover);
                self.pilot_lands_at = Some(now + hover);
                self.world.seat(LEADER, Pilot::Synthetic(Synthetic::coming_down(hover)));
                self.story.push(format!(
                    "{:8.3} s the pilot stops, and lands {:.0} s later",
                    now.as_secs_f64(),
                    hover.as_secs_f64()
                ));
            }
        }
    }

    /// Where a pilot with eyes flies before he comes down, right and ahead of the nose: away from who stands near
    /// the place below him.
    fn aside(&self) -> Option<(f64, f64)> {
        let frame = wingbeat_geo::Frame::new(ORIGIN);
        let leader = self.world.truth(LEADER);
        let here = frame.to_local(leader.position).truncate();
        let off = |i: usize| here - frame.to_local(self.world.truth(i).position).truncate();
        let nearest = (1..AIRCRAFT).map(off).min_by(|a, b| a.length().total_cmp(&b.length()))?;
        if nearest.length() > CLEAR_BELOW_M {
            return None;
        }
        let away = nearest.normalize_or(wingbeat_geo::DVec2::Y);
        let (sin, cos) = leader.heading_rad.sin_cos();
        Some((away.x * cos - away.y * sin, away.x * sin + away.y * cos))
    }

    /// Words of a stranger under the number of this flight: it leads, from where the other swarm is, and it calls
    /// to land there.
    fn forge(&mut self) {
        let Some(others) = &self.script.others else { return };
        for sent in self.world.take_sent() {
            if let Ok(datagram) = wingbeat_wire::decode(&sent.bytes)
                && sent.vehicle == LEADER
                && matches!(datagram.message, Message::Coordinates(_))
            {
                self.flight = Some(datagram.flight);
            }
        }
        let Some(flight) = self.flight.filter(|_| self.world.now() >= self.forge_at) else { return };
        self.forge_at = self.world.now() + Duration::from_millis(700);
        let at = Point { height_mm: 19_000, ..task(others).axis[0] };
        let lies = [
            Message::Coordinates(Coordinates { at, heading_urad: 1_000_000, leads: true }),
            Message::Land { at },
        ];
        // Its own id, that of the other leader, and that of a slave of this very flight.
        for from in [VehicleId(7), VehicleId(OTHERS), self.script.scenario.id(1)] {
            for message in &lies {
                self.forged += 1;
                let sequence = 1_000_000 + self.forged;
                let datagram = Datagram { from, flight, sequence, message: message.clone() };
                let bytes = wingbeat_wire::encode(&datagram).expect("what was read can be written");
                (0..AIRCRAFT).for_each(|i| self.world.inject(i, &bytes));
            }
        }
    }

    fn operate(&mut self, seed: u64) {
        let now = self.world.now();
        let pressing = now.as_micros().is_multiple_of(PRESS_PERIOD.as_micros() as u64);
        if pressing {
            for i in 0..self.count() {
                if !self.set_up[i] && self.world.phase(i) == Phase::Start {
                    self.set_up[i] = self.press(i, Command::Setup);
                }
            }
        }
        let swarms = self.count() / AIRCRAFT;
        for swarm in (0..swarms).filter(|&s| !self.started[s]).collect::<Vec<_>>() {
            self.start(swarm, seed);
        }
        for i in 0..self.count() {
            if self.hold_over_at[i].is_some_and(|at| now >= at) {
                self.hold_over_at[i] = None;
                self.press(i, Command::Land);
            }
        }
        if self.gave_up_at.is_none() && now > self.calm_at + CALM_BOUND {
            self.gave_up_at = Some(now);
            let up = self.describe(|drill, i| drill.world.truth(i).armed && drill.lives(i));
            let all = if up.is_empty() { self.describe(|_, _| true) } else { up };
            self.liveness
                .push(format!("not down {} s after the last that went wrong: {all}", CALM_BOUND.as_secs()));
        }
        if self.gave_up_at.is_some() && pressing {
            for i in (0..self.count()).filter(|&i| self.lives(i)).collect::<Vec<_>>() {
                if self.world.truth(i).armed && self.world.phase(i) != Phase::Aborted {
                    self.press(i, Command::Land);
                }
            }
        }
    }

    /// *Start* for all who are ready, as soon as nobody is still about to be; the pilot takes his transmitter.
    fn start(&mut self, swarm: usize, seed: u64) {
        let members: Vec<usize> =
            (swarm * AIRCRAFT..(swarm + 1) * AIRCRAFT).filter(|&i| self.lives(i)).collect();
        let settled =
            |&i: &usize| matches!(self.world.phase(i), Phase::Ready | Phase::Finished | Phase::Aborted);
        let ready: Vec<usize> =
            members.iter().copied().filter(|&i| self.world.phase(i) == Phase::Ready).collect();
        if ready.is_empty() || !members.iter().all(settled) {
            return;
        }
        self.started[swarm] = true;
        for &i in &ready {
            self.press(i, Command::Start);
        }
        let scenario = if swarm == 0 { Some(&self.script.scenario) } else { self.script.others.as_ref() };
        let leader = swarm * AIRCRAFT + LEADER;
        if ready.contains(&leader)
            && let Some(pilot) = scenario.and_then(|s| s.pilot(LEADER, seed + swarm as u64))
        {
            self.world.seat(leader, pilot);
        }
    }

    fn is_over(&mut self) -> bool {
        let now = self.world.now();
        let up = |i: usize| {
            let truth = self.world.truth(i);
            let comes_down = !self.world.is_left_alone(i) || self.is_led_by_hand(i) && !truth.landed;
            truth.armed && comes_down
        };
        if (0..self.count()).any(up) {
            self.rest_since = None;
            return false;
        }
        let since = *self.rest_since.get_or_insert(now);
        let ended =
            |i: usize| !self.lives(i) || matches!(self.world.phase(i), Phase::Finished | Phase::Aborted);
        let acted = self.due.is_none() || self.acted;
        acted && ((0..self.count()).all(ended) || now > since.max(self.calm_at) + REST)
    }

    fn outcome(mut self, kind: Kind, seed: u64) -> Outcome {
        let finished = |i: &usize| self.world.phase(*i) == Phase::Finished;
        let completed = (0..self.count()).filter(|&i| self.lives(i)).filter(finished).count();
        // Strangers alone keep nobody from following.
        let promised = kind == Kind::FollowStranger || self.story.is_empty();
        if promised && completed < self.count() && self.liveness.is_empty() {
            let all = self.describe(|drill, i| drill.world.phase(i) != Phase::Finished);
            self.liveness.push(format!("flight not completed: {all}"));
        }
        let down_at = self.rest_since.unwrap_or(self.world.now());
        let line = |l: &wingbeat_sim::world::Logged| {
            let mark = if l.event.severity == Severity::Info { ' ' } else { '!' };
            format!("{:8.3} s {mark} aircraft {}: {}", l.at.as_secs_f64(), l.vehicle + 1, l.event.text)
        };
        let configured = match task(&self.script.scenario).leader_lost {
            LeaderLost::Hold => "hold",
            LeaderLost::Land => "land",
            LeaderLost::Return => "return",
        };
        self.story.push(format!("leader lost: {configured}"));
        if self.forged > 0 {
            let refused = |i: usize| self.world.status(i).refused.iter().sum::<u64>();
            self.story.push(format!("{} lies refused", (0..AIRCRAFT).map(refused).sum::<u64>()));
        }
        Outcome {
            kind,
            seed,
            story: self.story,
            safety: self.safety,
            liveness: self.liveness,
            completed,
            aircraft: self.stages.len(),
            separation_min_m: self.world.observer().swarm().separation_min_m,
            to_ground: down_at.since(self.calm_at),
            duration: self.world.now().since(Instant::ZERO),
            trace_hash: self.world.trace_hash(),
            log: self.world.log().iter().map(line).collect(),
        }
    }
}
