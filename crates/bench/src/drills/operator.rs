//! The operator of a drill: presses *Setup* and *Start*, ends a *Hold* after a while, and lands a swarm that does not
//! land without help. *Setup* and *Start* reach no MBCAP aircraft whose radio is dead, mute or
//! deaf.

use wingbeat_agent::{Command, Phase, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::world::World;

use super::sky::{FIRST, Sky};

/// How often a button that was refused is pressed again.
const PRESS_PERIOD: Duration = Duration::from_millis(500);
/// How long the operator lets an aircraft hover at *Hold*.
pub(super) const HOLD_PATIENCE: Duration = Duration::from_secs(20);
/// The operator sees that an aircraft in flight has no flight any more.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// From the end of what goes wrong to all aircraft on the ground without the operator: a failed leg's 60 s and 2 s
/// per metre, 60 s of hold, and the rest of a mission of some 200 m. Five aircraft,
const CALM_BOUND: Duration = Duration::from_secs(480);

/// and for every other one: where all land one after the other from 25 m, 30 s at 1.5 and 0.5 m/s, the 17 s until the
/// next one knows and has set off and braked,
const CALM_BOUND_EACH: Duration = Duration::from_secs(47);

/// and, for each aircraft of the swarm, its part of the mean way in from a row 50 m apart: 10 m at 5 m/s.
const CALM_BOUND_WAY: Duration = Duration::from_secs(2);

/// and never longer than a battery flies.
const BATTERY_BOUND: Duration = Duration::from_secs(1_200);

/// From the end of what goes wrong to all of so many aircraft on the ground without the operator.
pub(super) fn calm_bound(aircraft: usize) -> Duration {
    let way = (0..aircraft).fold(Duration::ZERO, |way, _| way + CALM_BOUND_WAY);
    (5..aircraft).fold(CALM_BOUND, |bound, _| bound + CALM_BOUND_EACH + way).min(BATTERY_BOUND)
}

pub(super) struct Operator {
    set_up: Vec<bool>,
    /// Whether *Start* was accepted; one per swarm.
    started: Vec<bool>,
    /// Where it was refused or waits for a radio, and is pressed again.
    start_refused: Vec<bool>,
    hold_until: Vec<Option<Instant>>,
    presses: Vec<Press>,
    gave_up_at: Option<Instant>,
    /// Whether the operator is gone: no button is pressed any more.
    is_gone: bool,
}

/// A button that was pressed for one aircraft.
#[derive(Clone, Debug)]
pub(super) struct Press {
    pub(super) vehicle: usize,
    pub(super) command: Command,
    pub(super) at: Instant,
    pub(super) reply: Reply,
}

impl Press {
    /// Why it was refused; empty where it was not.
    pub(super) fn why(&self) -> String {
        match &self.reply {
            Reply::Refused(why) => why.to_string(),
            Reply::Accepted | Reply::AlreadyKnown => String::new(),
        }
    }
}

impl Operator {
    /// The last *Setup* of each aircraft that never came through it.
    pub(super) fn refused_setups(&self) -> Vec<&Press> {
        let is_setup = |press: &&Press| press.command == Command::Setup;
        let last = |i: usize| self.presses.iter().rev().filter(is_setup).find(|press| press.vehicle == i);
        let never = (0..self.set_up.len()).filter(|&i| !self.set_up[i]);
        never.filter_map(last).filter(|press| matches!(press.reply, Reply::Refused(_))).collect()
    }

    pub(super) fn new(aircraft: usize, swarms: usize) -> Self {
        Self {
            set_up: vec![false; aircraft],
            started: vec![false; swarms],
            start_refused: vec![false; aircraft],
            hold_until: vec![None; aircraft],
            presses: vec![],
            gave_up_at: None,
            is_gone: false,
        }
    }

    /// Leaves: no button is pressed from now on.
    pub(super) fn end(&mut self) {
        self.is_gone = true;
    }

    /// Whether *Setup* was accepted by an aircraft.
    pub(super) fn has_set_up(&self) -> bool {
        self.set_up.contains(&true)
    }

    /// Whether *Start* was pressed for a swarm.
    pub(super) fn has_started(&self, swarm: usize) -> bool {
        self.started[swarm]
    }

    /// When the operator gave up waiting, and landed all.
    pub(super) fn gave_up_at(&self) -> Option<Instant> {
        self.gave_up_at
    }

    /// Lets an aircraft hold until then.
    pub(super) fn hold_until(&mut self, i: usize, at: Instant) {
        self.hold_until[i] = Some(at);
    }

    /// Presses a button; whether it was accepted.
    pub(super) fn press(&mut self, world: &mut World, i: usize, command: Command) -> bool {
        if self.is_gone {
            return false;
        }
        let id = format!("{command:?} {}", self.presses.len() + 1);
        let reply = world.command(i, &id, command);
        let is_accepted = reply == Reply::Accepted;
        self.presses.push(Press { vehicle: i, command, at: world.now(), reply });
        is_accepted
    }

    /// Every button that was pressed, in order.
    pub(super) fn presses(&self) -> &[Press] {
        &self.presses
    }

    /// Presses what can be pressed now.
    pub(super) fn operate(&mut self, sky: &mut Sky) {
        let now = sky.world.now();
        let is_pressing = now.as_micros().is_multiple_of(PRESS_PERIOD.as_micros() as u64);
        if is_pressing {
            for i in 0..sky.count() {
                if !self.set_up[i] && sky.world.phase(i) == Phase::Start && !sky.is_grounded(i) {
                    self.set_up[i] = self.press(&mut sky.world, i, Command::Setup);
                }
            }
        }
        if is_pressing {
            for i in 0..sky.count() {
                self.care_for(sky, i);
                let is_ready = sky.world.phase(i) == Phase::Ready && !sky.is_grounded(i);
                if self.start_refused[i] && is_ready {
                    self.start_refused[i] = !self.press(&mut sky.world, i, Command::Start);
                }
            }
        }
        for swarm in 0..sky.swarms() {
            if !self.started[swarm] {
                self.start(sky, swarm);
            }
        }
        let living = sky.living();
        for &i in &living {
            if self.hold_until[i].is_some_and(|at| now >= at) {
                self.hold_until[i] = None;
                self.press(&mut sky.world, i, sky.script.after_hold);
            }
        }
        if self.gave_up_at.is_none() && now > sky.calm_at + calm_bound(sky.size()) {
            self.gave_up_at = Some(now);
        }
        if self.gave_up_at.is_some() && is_pressing {
            for i in living {
                let truth = sky.world.truth(i);
                if truth.armed && truth.mode != Mode::Land {
                    self.press(&mut sky.world, i, Command::Land);
                }
            }
        }
    }

    /// An aircraft whose daemon was restarted: in flight it is landed, and set up again where all are on the ground.
    fn care_for(&mut self, sky: &mut Sky, i: usize) {
        let (struck, now, truth) = (sky.struck[i], sky.world.now(), sky.world.truth(i));
        if !struck.restarts || sky.is_piloted(i) || now < struck.until || sky.world.phase(i) != Phase::Start {
            return;
        }
        if !sky.has_forgotten(i) {
            self.set_up[i] = false;
        } else if !truth.landed && truth.mode != Mode::Land && now > struck.until + NOTICED_WITHIN {
            self.press(&mut sky.world, i, Command::Land);
        }
    }

    /// *Start* for all that are ready, once none is still about to be; the pilot begins to fly the leader.
    fn start(&mut self, sky: &mut Sky, swarm: usize) {
        let size = sky.size();
        let members: Vec<usize> = (swarm * size..(swarm + 1) * size).filter(|&i| sky.lives(i)).collect();
        let is_ready = |&i: &usize| sky.world.phase(i) == Phase::Ready && !sky.is_grounded(i);
        let ready: Vec<usize> = members.iter().copied().filter(is_ready).collect();
        let is_settled = |&i: &usize| {
            matches!(sky.world.phase(i), Phase::Ready | Phase::Finished | Phase::Aborted)
                || sky.has_forgotten(i)
                || sky.is_grounded(i)
                || sky.is_left_behind(i, &ready)
        };
        if ready.is_empty() || !members.iter().all(is_settled) {
            return;
        }
        self.started[swarm] = true;
        // These are started when their radios work again.
        members.iter().filter(|&&i| sky.is_grounded(i)).for_each(|&i| self.start_refused[i] = true);
        for &i in &ready {
            self.start_refused[i] = !self.press(&mut sky.world, i, Command::Start);
        }
        let leader = swarm * size + FIRST;
        let scenario = if swarm == 0 { Some(&sky.script.scenario) } else { sky.script.others.as_ref() };
        let pilot = scenario.and_then(|s| s.pilot(FIRST, sky.seed + swarm as u64));
        if let Some(pilot) = pilot.filter(|_| ready.contains(&leader) && sky.struck[leader].pilot.is_none()) {
            sky.world.seat(leader, pilot);
        }
    }
}
