//! What the actors of a drill share and its rules read: the script, the world, how far each aircraft has come, and
//! the story so far.

use std::collections::BTreeSet;

use wingbeat_agent::{Agent, Config as AgentConfig, Phase, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Frame, Instant};
use wingbeat_sim::channel::Channel;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::world::{Record, World};
use wingbeat_wire::VehicleId;

use super::failure::{Began, Failure, FlightPhase, Protocol};
use super::progress::Progress;
use super::script::{Act, Role, Script};
use super::{Conditions, Kind};
use crate::lockstep::autopilots;
use crate::scenario::ORIGIN;

/// The master, and the piloted leader, is the first of its swarm.
pub(super) const FIRST: usize = 0;
/// The ids of the other swarm begin here.
pub(super) const OTHERS: u64 = 0x0a00_0000_0001;

/// From this mean wind on a drill counts as one in wind, metres per second.
const WINDY_M_S: f64 = 2.0;
/// Batteries of the field are empty by then.
const LONG_WAY_ENDS: Instant = Instant::from_secs(1_200);
/// Two failures are one hazard where the first lasts or ended less than this ago.
const AT_ONCE: Duration = Duration::from_secs(20);
/// And from this slope on as one with unlevel homes, metres.
const SLOPING_M: f64 = 0.5;

/// What is wrong with one aircraft, for the rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Struck {
    /// The pilot, or the second ground station, that has it.
    pub(super) pilot: Option<Taken>,
    /// Until then its companion or its autopilot cannot do what it is asked.
    pub(super) until: Instant,
    /// Until then its radio is dead, mute or deaf.
    pub(super) radio_until: Instant,
    /// How far its estimate may be off over the ground, metres.
    pub(super) off_m: f64,
    /// Whether its daemon forgot its flight.
    pub(super) restarts: bool,
    /// Whether what goes wrong stops its motors in this flight: a fall is no crash of ours.
    pub(super) falls: bool,
    /// Whether a fault left so little charge in this flight that the battery may be empty before it is down.
    pub(super) is_drained: bool,
    /// Whether its autopilot acts by itself and says nothing that can be read: that counts as the pilot's doing.
    pub(super) acts_unannounced: bool,
}

/// An aircraft that a pilot or a second ground station took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The mode of the switch.
    pub(super) mode: Mode,
    /// Since when it is in that position.
    pub(super) since: Instant,
    /// Whether the motors ran then.
    pub(super) was_armed: bool,
    /// How often the pilot turned it there: once more where an order of ours that left before the first heartbeat
    /// overtook him.
    pub(super) turns: u32,
    /// Whether a second ground station has it, and no pilot.
    pub(super) is_ground: bool,
}

impl Taken {
    /// Returns the fault by which an aircraft comes into a mode of those who have it.
    fn fault(self, vehicle: usize) -> Fault {
        match self.is_ground {
            true => Fault::SecondGround { vehicle, mode: self.mode },
            false => Fault::PilotTakes { vehicle, mode: self.mode },
        }
    }
}

pub(super) struct Sky {
    kind: Kind,
    pub(super) script: Script,
    pub(super) seed: u64,
    pub(super) world: World,
    pub(super) progress: Progress,
    /// When the last that goes wrong began, or ended.
    pub(super) calm_at: Instant,
    /// What is wrong with each aircraft by itself.
    pub(super) struck: Vec<Struck>,
    pub(super) story: Vec<String>,
    /// Which failures began in which phases.
    pub(super) began: BTreeSet<Began>,
    /// The failures so far, and when each ends.
    failures: Vec<(Failure, Instant)>,
    /// When the motors of each aircraft ran first.
    pub(super) armed_at: Vec<Option<Instant>>,
    /// Whether an aircraft was in the air.
    pub(super) has_flown: bool,
    /// Whether something but the channel failed before a flight: *Setup* may be refused because of it.
    pub(super) failed_on_ground: bool,
    /// The hardest touch-down so far, metres per second.
    pub(super) hardest_m_s: f64,
    was_landed: Vec<bool>,
}

impl Sky {
    /// # Errors
    /// What was drawn cannot be flown.
    pub(super) fn new(
        kind: Kind,
        script: Script,
        seed: u64,
        conditions: Conditions,
        record: Option<Box<dyn Record>>,
    ) -> anyhow::Result<Self> {
        let scenario = &script.scenario;
        scenario.check()?;
        let mut vehicles = Vec::new();
        for (i, autopilot) in autopilots(scenario, seed)?.into_iter().enumerate() {
            vehicles.push((scenario.agent(i, seed)?, autopilot));
        }
        if let (Some(others), Some(task)) = (&script.others, script.others_task()) {
            for (i, autopilot) in autopilots(others, seed)?.into_iter().enumerate() {
                let me = OTHERS + i as u64;
                let mut follow = task.config(VehicleId(me), VehicleId(OTHERS));
                follow.swarm.surroundings = others.surroundings();
                follow.swarm.landing_distance_m = follow.swarm.default_landing_distance_m();
                let companion_loss = others.agent_config(i).companion_loss;
                let config = AgentConfig { companion_loss, ..AgentConfig::new(follow) };
                vehicles.push((Agent::new(config, seed ^ me, Instant::ZERO)?, autopilot));
            }
        }
        let count = vehicles.len();
        let channel = Channel::new(scenario.channel.clone(), scenario.draw, seed, count);
        let world = World::new(ORIGIN, vehicles, channel, scenario.collision_distance_m);
        let mut world = world.recorded(record);
        for i in 0..scenario.aircraft() {
            let Some(mission) = scenario.mission_for(i) else { continue };
            if let Reply::Refused(why) = world.mission(i, mission) {
                anyhow::bail!("mission of aircraft {}: {why}", i + 1);
            }
        }
        if kind == Kind::GroundEnds {
            (0..count).for_each(|i| world.lease(i, true));
        }
        world.take_changes();
        let progress = Progress::new(count);
        let mut struck = vec![Struck::default(); count];
        if conditions.gnss_bias_m > 0.0 {
            for (vehicle, struck) in struck.iter_mut().enumerate() {
                let (offset_m, until) = (conditions.bias_m(seed, vehicle), Instant::NEVER);
                let within = Duration::ZERO;
                world.inflict(Instant::ZERO, Fault::EstimateDrifts { vehicle, offset_m, within, until });
                struck.off_m = conditions.gnss_bias_m;
            }
        }
        Ok(Self {
            kind,
            script,
            seed,
            world,
            progress,
            // Nothing is wrong with a mission that is longer than the battery but its end.
            calm_at: if kind == Kind::LongWay { LONG_WAY_ENDS } else { Instant::ZERO },
            struck,
            story: vec![],
            began: BTreeSet::new(),
            failures: vec![],
            armed_at: vec![None; count],
            has_flown: false,
            failed_on_ground: false,
            hardest_m_s: 0.0,
            was_landed: vec![true; count],
        })
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.world.run_until(self.world.now() + by);
    }

    /// Notes that an act begins now, and until when it lasts, in the true phases of the aircraft that it concerns. An aircraft
    /// whose companion is dead already is not concerned.
    pub(super) fn note_failure(&mut self, act: &Act, concerns: &[usize], until: Instant) {
        let Some(failure) = Failure::of(self.kind, act) else { return };
        let living = concerns.iter().copied().filter(|&i| self.lives(i));
        let phases: Vec<FlightPhase> = living.filter_map(|i| FlightPhase::of(self, i)).collect();
        let now = self.world.now();
        let lasts = |&(other, ends): &(Failure, Instant)| {
            other != failure && (now <= ends || now.since(ends) <= AT_ONCE)
        };
        let both = self.failures.iter().any(lasts).then_some(Failure::Two);
        if !phases.is_empty() {
            self.failures.push((failure, until));
        }
        let is_of_channel =
            matches!(failure, Failure::Loss | Failure::Bursts | Failure::Late | Failure::Doubled);
        self.failed_on_ground |= !is_of_channel && phases.contains(&FlightPhase::Ground);
        for phase in phases {
            let all = [Some(failure), both].into_iter().flatten();
            self.began.extend(all.map(|failure| Began { failure, phase }));
        }
    }

    /// Notes the phases that are flown in wind or above a slope: both last the whole flight.
    pub(super) fn note_phases(&mut self) {
        let scenario = &self.script.scenario;
        let is_windy = scenario.wind.speed_m_s >= WINDY_M_S;
        let is_sloping = scenario.slope_m >= SLOPING_M;
        if !self.world.now().as_micros().is_multiple_of(1_000_000) || !(is_windy || is_sloping) {
            return;
        }
        for i in 0..self.size() {
            let Some(phase) = FlightPhase::of(self, i) else { continue };
            let all = [(is_windy, Failure::Wind), (is_sloping, Failure::Unlevel)];
            self.began
                .extend(all.into_iter().filter(|(is, _)| *is).map(|(_, failure)| Began { failure, phase }));
        }
    }

    /// Measures touch-downs.
    pub(super) fn measure(&mut self) {
        let now = self.world.now();
        for i in 0..self.count() {
            let motion = self.world.motion(i);
            if motion.landed && !self.was_landed[i] && !self.falls(i) {
                self.hardest_m_s = self.hardest_m_s.max(self.world.truth(i).touchdown_m_s);
            }
            if motion.landed && self.was_landed[i] && !motion.armed {
                // A fault of one flight excuses no fall of the next. The rules have judged this touch-down.
                (self.struck[i].falls, self.struck[i].is_drained) = (false, false);
            }
            if motion.armed {
                self.armed_at[i].get_or_insert(now);
            }
            self.has_flown |= !motion.landed;
            self.was_landed[i] = motion.landed;
        }
    }

    /// Whether a fault explains that an aircraft falls. Little charge explains it where the battery is empty, as far as its true
    /// charge is known.
    pub(super) fn falls(&self, i: usize) -> bool {
        let is_empty = || self.world.charge_percent(i).is_none_or(|percent| percent <= 0.0);
        self.struck[i].falls || self.struck[i].is_drained && is_empty()
    }

    /// Number of aircraft, those of the other swarm among them.
    pub(super) fn count(&self) -> usize {
        self.world.count()
    }

    /// Number of aircraft of one swarm.
    pub(super) fn size(&self) -> usize {
        self.script.scenario.aircraft()
    }

    /// Number of swarms.
    pub(super) fn swarms(&self) -> usize {
        self.count() / self.size()
    }

    pub(super) fn lives(&self, i: usize) -> bool {
        !self.world.is_dead(i)
    }

    /// Returns whether an aircraft that avoids others by radio stays on the ground: *Setup* and
    /// *Start* come by HTTP over the same radio, which takes both directions.
    pub(super) fn is_grounded(&self, i: usize) -> bool {
        let avoids = Protocol::of(&self.script.scenario) == Protocol::Mbcap;
        avoids && self.world.now() < self.struck[i].radio_until
    }

    /// All whose companions are not dead.
    pub(super) fn living(&self) -> Vec<usize> {
        (0..self.count()).filter(|&i| self.lives(i)).collect()
    }

    /// Whether a pilot flies it: its companion's death lands nothing, and the pilot does.
    pub(super) fn is_piloted(&self, i: usize) -> bool {
        self.script.follow_task().is_some() && i % self.size() == FIRST
    }

    /// The aircraft that has this role now.
    pub(super) fn index(&self, role: Role) -> usize {
        let leads = |&i: &usize| self.world.agent_of(i).view().swarm.leader;
        // In a formation that follows a pilot the leader does not change.
        let leader = match self.script.follow_task() {
            Some(_) => FIRST,
            None => (0..self.size()).find(leads).unwrap_or(FIRST),
        };
        match role {
            Role::Master => FIRST,
            Role::Leader => leader,
            Role::Follower(n) => {
                let followers: Vec<usize> = (0..self.size()).filter(|&i| i != FIRST && i != leader).collect();
                // Of two, one is the master and the other may lead.
                followers.get(n % followers.len().max(1)).copied().unwrap_or(leader)
            }
        }
    }

    /// Distance over the ground, metres.
    pub(super) fn apart_m(&self, a: usize, b: usize) -> f64 {
        let frame = Frame::new(ORIGIN);
        let at = |i: usize| frame.to_local(self.world.truth(i).position).truncate();
        at(a).distance(at(b))
    }

    /// Something goes wrong until then.
    pub(super) fn disturb_until(&mut self, at: Instant) {
        self.calm_at = self.calm_at.max(at);
    }

    /// A pilot or a second ground station takes an aircraft, or commands its mode once more.
    pub(super) fn take(&mut self, vehicle: usize, mode: Mode, is_ground: bool) {
        let (since, truth) = (self.world.now(), self.world.truth(vehicle));
        let before = self.struck[vehicle].pilot.filter(|taken| taken.mode == mode);
        let turns = 1 + before.map_or(0, |taken| taken.turns);
        let taken = Taken { mode, since, was_armed: truth.armed, turns, is_ground };
        self.world.inflict(since, taken.fault(vehicle));
        // What a switch was set to before *Setup* is where the operator found the aircraft, and his to judge.
        if !truth.armed && self.world.phase(vehicle) == Phase::Start {
            return;
        }
        // A command that changes nothing is seen by nothing.
        if is_ground && truth.mode == mode {
            return;
        }
        // A transmitter has one switch: who turns it flies the aircraft from now on.
        self.world.unseat(vehicle);
        self.struck[vehicle].pilot = Some(taken);
    }

    /// Whether its daemon was restarted while its swarm flew: it does not know what it was about.
    pub(super) fn has_forgotten(&self, i: usize) -> bool {
        let flies = |j: usize| j / self.size() == i / self.size() && self.world.truth(j).armed;
        let is_back = self.struck[i].restarts && self.world.now() >= self.struck[i].until;
        is_back && self.world.phase(i) == Phase::Start && (0..self.count()).any(flies)
    }

    /// Whether its daemon was restarted on the ground and all others of its swarm have lost it: they took off without it, and
    /// it waits for a plan that is flown already.
    pub(super) fn is_left_behind(&self, i: usize, others: &[usize]) -> bool {
        let id = self.script.scenario.id(i);
        let has_lost_it = |&j: &usize| {
            self.world.agent_of(j).absentees().iter().any(|absent| absent.id == id && absent.is_lost)
        };
        let is_back = self.struck[i].restarts && self.world.now() >= self.struck[i].until;
        is_back && !self.world.truth(i).armed && others.iter().all(has_lost_it)
    }

    /// Adds a line to the story.
    pub(super) fn note(&mut self, line: &str) {
        self.story.push(format!("{:8.3} s {line}", self.world.now().as_secs_f64()));
    }

    /// Those aircraft, for a story.
    pub(super) fn describe(&self, which: impl Fn(usize) -> bool) -> String {
        let one = |i: usize| {
            let status = self.world.status(i);
            let dead = if self.lives(i) { "" } else { ", dead" };
            let (state, detail) = (status.state, status.detail);
            format!("aircraft {} ({state}: {detail}; {:?}{dead})", i + 1, self.world.truth(i).mode)
        };
        (0..self.count()).filter(|&i| which(i)).map(one).collect::<Vec<_>>().join(", ")
    }
}
