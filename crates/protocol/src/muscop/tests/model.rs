//! Release, succession and exclusion under every schedule of an adversary with a budget, on the real machines.
//!
//! **What is explored.** Three or four machines fly a plan of three waypoints, straight ahead, abreast. Time advances in
//! rounds of one broadcast period. In each round the adversary lets everything pass or takes one [`Step`]: another set of
//! links (each ordered pair of members has its own) that are cut until it chooses another, a sender whose datagrams of the
//! round arrive one round late and after newer ones, an aircraft that needs one round more on its leg, a companion that
//! dies and starts anew (one), a member that the operator excludes, at one other or at all (one). The search visits every
//! schedule of at most `budget` such steps within `horizon` rounds from the start of the flight; from every state that it
//! reaches a calm continuation, in which all datagrams arrive, is flown until all are down.
//!
//! **What is one state.** [`World::number`]: the fingerprint of every machine
//! ([`Swarm::fingerprint`](crate::swarm::Swarm), [`Barrier::fingerprint`]), the aircraft, the datagrams under way, the
//! links that are cut, and what the checks remember. It has everything that a machine reads in flight, with times relative
//! to now, so equal numbers continue equally (two of a million states share a 64-bit number by accident with a probability
//! of 3e-8). A state that was explored with as many rounds and as much budget left is not explored again. Ages are capped
//! at 2 s: beyond that only returns and the landing one after the other read them, and neither occurs here.
//!
//! **What is abstracted.** A datagram is received in the round in which it is sent, after all have sent theirs and in the
//! order of the slots, or in the next one, or not at all; other orders within a round are not explored. An aircraft stands
//! at a waypoint, and at the next after two rounds, or more where the adversary delays it: positions in between decide the
//! distance on a leg along a row (MUSCOP-16 and -17 have tests of their own), and abreast nothing. A period of 400 ms, a time
//! to live of 1 s and waits of 12 s stand for 200 ms, 5 s and 120 s: three rounds without a datagram make a member lost,
//! so that one search has both, single losses and lost members. A companion that starts anew is a machine in `Start` on an
//! aircraft in the air, as in the daemon: the flight controller flies to its last target and stays there.
//!
//! **What must hold.** [`World::check_command`], [`World::check_departure`], [`World::check_received`] and [`World::check`]
//! have it one by one; every calm continuation must end with all down within [`CALM_ROUNDS`]. A calm continuation that joins
//! one flown before ends there: what the checks remember of the past counts within the horizon. "No two are released to
//! different waypoints" holds as it stands as long as no member was lost, left or excluded; afterwards a leader has gone
//! on without the one that it had lost, and the search counts how often.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::println;
use std::string::String;

use wingbeat_geo::Duration;
use wingbeat_wire::{Datagram, Message, read_unverified};

use super::faults::straight_on_by;
use super::*;
use crate::swarm::table::fingerprint::coordinates;
use crate::swarm::timer::Timer;

/// One broadcast period.
const ROUND: Duration = Duration::from_millis(400);

/// A calm continuation of more rounds waits for ever: longer than what is left of the flight, the longest wait, and the hold
/// before a landing.
const CALM_ROUNDS: u32 = 60;

/// Ordered pairs of members, one bit each.
type Links = u16;

fn link(from: usize, to: usize) -> Links {
    1 << (from * 4 + to)
}

/// What the adversary does in a round, before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing new.
    Keep,
    /// These links are cut from now on, and no others.
    Cut(Links),
    /// What this member sends in this round arrives in the next, after what is sent then.
    Delay(usize),
    /// This aircraft needs one round more.
    Slow(usize),
    /// The companion of this aircraft starts anew.
    Restart(usize),
    /// The operator excludes a member, at one other or at all members.
    Exclude { at: Option<usize>, member: usize },
}

/// The message that is received in place of one that a member broadcasts; none where it is received as it is.
type Forge = fn(usize, &Message) -> Option<Message>;

/// What is the same in all states.
struct Setting {
    configs: StdVec<Config>,
    routes: StdVec<StdVec<Point>>,
    center: usize,
    /// The order of succession.
    succession: StdVec<usize>,
    /// Broken on purpose: what a member broadcasts is replaced before it is received.
    forge: Forge,
    /// What an aircraft needs from one waypoint to the next.
    leg_rounds: u8,
    /// Prints what the aircraft log.
    is_printed: bool,
}

/// One aircraft, as its flight controller flies it.
#[derive(Clone)]
struct Flyer {
    telemetry: Telemetry,
    /// Target, and the rounds until it is there.
    target: Option<(Point, u8)>,
    /// An order whose completion is reported in the next round.
    done: Option<Order>,
    lands: bool,
    /// The waypoint that it has truly reached.
    reached: u16,
    /// Its companion started anew.
    restarted: bool,
}

/// What the checks remember.
#[derive(Clone, Default, Hash)]
struct History {
    /// The waypoint that each member, as leader, commanded last, and the highest.
    commands: StdVec<(u16, u16)>,
    /// Members that received from their leader that it recalled its release.
    recalled: StdVec<bool>,
    /// A member was lost, left or excluded, as any other had it.
    was_absent: bool,
}

/// All machines at one time.
#[derive(Clone)]
struct World {
    now: Instant,
    machines: StdVec<Muscop>,
    flyers: StdVec<Flyer>,
    cut: Links,
    /// Delayed to the next round.
    delayed: StdVec<Sent>,
    /// The commands that the machines pass on.
    passing: StdVec<Passing>,
    /// Datagrams sent: the counter of the next.
    counter: u64,
    history: History,
    has_excluded: bool,
    has_restarted: bool,
    /// What must not be, and is.
    violation: Option<String>,
    /// Members that follow one leader and are present to each other were released to different waypoints in this round.
    is_apart: bool,
}

/// A datagram under way.
#[derive(Clone)]
struct Sent {
    from: usize,
    datagram: Datagram,
    /// It commands a lower waypoint than its sender had commanded before.
    is_recall: bool,
}

/// The flight has begun: all are at the first waypoint, and have received nothing of each other there yet.
fn begin(count: usize) -> (Setting, World) {
    let mut rig = Rig::new(count, Layout::Linear, 4);
    rig.configure_all(|config| {
        config.distance_m = 20.0;
        (config.send_period, config.arrival_period) = (ROUND, ROUND);
        config.time_to_live = Duration::from_secs(1);
        config.silence = Duration::from_secs(1);
        config.hold_before_landing = Duration::from_secs(6);
        config.check().unwrap();
    });
    straight_on_by(&mut rig, &[0.0, 40.0, 80.0]);
    rig.set_up();
    let slot_of = |c: &Craft| c.muscop.swarm.assignment().slot();
    rig.craft.sort_by_key(slot_of);
    let assignment = rig.craft[0].muscop.swarm.assignment();
    let center = assignment.center();
    let order = assignment.plan().take_off_order.iter().rev().map(|&slot| usize::from(slot));
    let succession = std::iter::once(center).chain(order.filter(|&slot| slot != center)).collect();
    let setting = Setting {
        configs: rig.craft.iter().map(|c| c.config.clone()).collect(),
        routes: rig.craft.iter().map(|c| c.muscop.route().to_vec()).collect(),
        center,
        succession,
        forge: |_, _| None,
        leg_rounds: 2,
        is_printed: false,
    };
    let flyers = setting.routes.iter().zip(&rig.craft).map(|(route, craft)| Flyer {
        telemetry: moved_to(craft.telemetry(DVec3::ZERO), route[0]),
        target: None,
        done: None,
        lands: false,
        reached: 0,
        restarted: false,
    });
    let mut world = World {
        now: rig.now,
        flyers: flyers.collect(),
        machines: rig.craft.iter().map(|c| c.muscop.clone()).collect(),
        cut: 0,
        delayed: StdVec::new(),
        passing: std::vec![Passing::default(); count],
        counter: 0,
        history: History {
            commands: std::vec![(0, 0); count],
            recalled: std::vec![false; count],
            was_absent: false,
        },
        has_excluded: false,
        has_restarted: false,
        violation: None,
        is_apart: false,
    };
    (0..count).for_each(|slot| world.align(slot));
    (0..2).for_each(|_| world.round(&setting, Step::Keep));
    let mut sent = VecDeque::new();
    for slot in 0..count {
        world.feed(&setting, slot, Input::Operator(Command::Start), &mut sent);
    }
    (setting, world)
}

fn moved_to(telemetry: Telemetry, target: Point) -> Telemetry {
    let height_m = f64::from(target.height_mm) / 1e3;
    Telemetry { position: plan::position(target), height_m, velocity_m_s: DVec3::ZERO, ..telemetry }
}

/// The waypoint to which a message commands.
fn commanded(message: &Message) -> Option<u16> {
    match *message {
        Message::Release { waypoint }
        | Message::MoveToWaypoint { waypoint }
        | Message::Gather { waypoint } => Some(waypoint),
        _ => None,
    }
}

fn flight_of(machine: &Muscop) -> Option<BarrierState> {
    if let State::Flying(flight) = machine.swarm.state() { Some(flight) } else { None }
}

impl World {
    /// Lets the periods of a machine end with the rounds.
    fn align(&mut self, slot: usize) {
        let at = self.now + ROUND;
        for timer in [Timer::Broadcast, Timer::ArrivalCheck] {
            self.machines[slot].swarm.timers_mut().set(timer, at);
        }
    }

    fn is_over(&self) -> bool {
        self.flyers.iter().all(|flyer| flyer.restarted || !flyer.telemetry.armed)
    }

    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    fn take(&mut self, setting: &Setting, step: Step) {
        match step {
            Step::Keep | Step::Delay(_) => {}
            Step::Cut(links) => self.cut = links,
            Step::Slow(slot) => {
                if let Some((_, rounds)) = &mut self.flyers[slot].target {
                    *rounds += 1;
                }
            }
            Step::Restart(slot) => {
                self.has_restarted = true;
                self.flyers[slot].restarted = true;
                self.flyers[slot].done = None;
                self.machines[slot] = Muscop::new(setting.configs[slot].clone(), 4, self.now);
                self.align(slot);
            }
            Step::Exclude { at, member } => {
                self.has_excluded = true;
                let command = Command::Exclude { member: setting.configs[member].swarm.me };
                let mut sent = VecDeque::new();
                for slot in (0..self.machines.len()).filter(|&slot| at.is_none_or(|at| at == slot)) {
                    if self.machines[slot].permits(command).is_ok() {
                        self.feed(setting, slot, Input::Operator(command), &mut sent);
                    }
                }
                self.deliver(setting, sent, None);
            }
        }
    }

    /// What the adversary may do next.
    fn steps(&self, cuts: &[Links], out: &mut StdVec<Step>) {
        let count = self.machines.len();
        out.extend(cuts.iter().filter(|&&links| links != self.cut).map(|&links| Step::Cut(links)));
        let is_flying = |slot: &usize| flight_of(&self.machines[*slot]).is_some();
        let flying: StdVec<usize> = (0..count).filter(is_flying).collect();
        out.extend(flying.iter().map(|&slot| Step::Delay(slot)));
        out.extend((0..count).filter(|&slot| self.flyers[slot].target.is_some()).map(Step::Slow));
        if !self.has_restarted {
            out.extend(flying.iter().map(|&slot| Step::Restart(slot)));
        }
        if !self.has_excluded {
            out.extend((0..count).map(|member| Step::Exclude { at: None, member }));
            for at in flying {
                let others = (0..count).filter(|&member| member != at);
                out.extend(others.map(|member| Step::Exclude { at: Some(at), member }));
            }
        }
    }

    /// One period: aircraft fly and report, machines are woken, and what they broadcast is received.
    fn round(&mut self, setting: &Setting, step: Step) {
        self.take(setting, step);
        self.is_apart = false;
        self.now = self.now + ROUND;
        let mut sent = VecDeque::new();
        for slot in 0..self.machines.len() {
            self.fly(setting, slot);
            let (telemetry, done) = (self.flyers[slot].telemetry, self.flyers[slot].done.take());
            let now = self.now;
            // The report of the flight controller is the older.
            self.now = Instant::from_millis(now.as_millis() - 1);
            if let Some(order) = done {
                self.feed(setting, slot, Input::Done(order), &mut sent);
            }
            self.feed(setting, slot, Input::Telemetry(telemetry), &mut sent);
            self.now = now;
            self.feed(setting, slot, Input::Wake, &mut sent);
        }
        let late = core::mem::take(&mut self.delayed);
        sent.extend(late);
        let delays = if let Step::Delay(slot) = step { Some(slot) } else { None };
        self.deliver(setting, sent, delays);
        self.check();
    }

    fn fly(&mut self, setting: &Setting, slot: usize) {
        let flyer = &mut self.flyers[slot];
        if flyer.lands {
            (flyer.telemetry.armed, flyer.telemetry.height_m) = (false, 0.0);
        }
        if let Some((target, rounds)) = &mut flyer.target {
            *rounds -= 1;
            if *rounds == 0 {
                let waypoint = setting.routes[slot].iter().position(|at| at == target);
                flyer.reached = waypoint.map_or(flyer.reached, |waypoint| flyer.reached.max(waypoint as u16));
                flyer.telemetry = moved_to(flyer.telemetry, *target);
                flyer.target = None;
            }
        }
    }

    /// Hands on what was sent, and what is sent in answer, first to last.
    fn deliver(&mut self, setting: &Setting, mut sent: VecDeque<Sent>, delays: Option<usize>) {
        while let Some(next) = sent.pop_front() {
            let Sent { from, ref datagram, is_recall } = next;
            if delays == Some(from) {
                self.delayed.push(next);
                continue;
            }
            for to in (0..self.machines.len()).filter(|&to| to != from) {
                if self.cut & link(from, to) == 0 {
                    self.note_recall(from, to, &datagram.message, is_recall);
                    let mut passing = self.passing[to].clone();
                    let me = setting.configs[to].swarm.me;
                    passing.receive(me, datagram.clone(), |input| self.feed(setting, to, input, &mut sent));
                    self.passing[to] = passing;
                    self.check_received(setting, from, to);
                }
            }
        }
    }

    /// Whether the input was taken.
    fn feed(&mut self, setting: &Setting, slot: usize, input: Input<'_>, sent: &mut VecDeque<Sent>) -> bool {
        let mut out = Actions::new();
        let before = flight_of(&self.machines[slot]);
        self.machines[slot].handle(self.now, input, &mut out);
        self.history.was_absent |= !self.machines[slot].swarm.members().absent().is_empty();
        self.check_departure(slot, before);
        for action in &out {
            match action {
                Action::Order(order) => self.obey(setting.leg_rounds, slot, *order),
                Action::Broadcast { flight, message } => {
                    let is_recall = self.check_command(slot, message);
                    let message = (setting.forge)(slot, message).unwrap_or_else(|| message.clone());
                    self.send(setting, slot, (*flight, message), is_recall, sent);
                }
                Action::PassOn => {
                    if let Some(passed) = self.passing[slot].pass_on() {
                        self.send(setting, slot, passed, false, sent);
                    }
                }
                Action::Log(_, line) if setting.is_printed => println!("       {slot} logs: {line}"),
                Action::Log(..) | Action::Refused(_) => {}
            }
        }
        !out.iter().any(|action| matches!(action, Action::Refused(_)))
    }

    fn send(
        &mut self,
        setting: &Setting,
        slot: usize,
        (flight, message): (u32, Message),
        is_recall: bool,
        sent: &mut VecDeque<Sent>,
    ) {
        self.counter += 1;
        let from = setting.configs[slot].swarm.me;
        let datagram = Datagram { from, counter: self.counter, flight, message };
        sent.push_back(Sent { from: slot, datagram, is_recall });
    }

    fn obey(&mut self, leg_rounds: u8, slot: usize, order: Order) {
        let flyer = &mut self.flyers[slot];
        match order {
            Order::FlyTo(target) => (flyer.target, flyer.lands) = (Some((target, leg_rounds)), false),
            Order::Hold => (flyer.target, flyer.done) = (None, Some(order)),
            Order::Land => (flyer.target, flyer.lands) = (None, true),
            Order::LoadRoute
            | Order::TakeOff { .. }
            | Order::Return
            | Order::FlyRoute { .. }
            | Order::Resume
            | Order::ResumeHeld => panic!("no order of the flight: {order}"),
        }
    }

    /// A leader commands nothing beyond what all have reached that it receives, and no excluded one commands. Whether it
    /// recalls a release.
    fn check_command(&mut self, slot: usize, message: &Message) -> bool {
        let Some(waypoint) = commanded(message) else { return false };
        let swarm = &self.machines[slot].swarm;
        let awaited = swarm.awaited();
        if !swarm.is_leader() || swarm.members().excluded().contains(slot) {
            self.violate(std::format!("{slot} commands and does not lead: {message:?}"));
        }
        for member in awaited {
            let reached = self.flyers[member].reached;
            if reached + 1 < waypoint {
                self.violate(std::format!("{slot} commands {waypoint}, and {member} has reached {reached}"));
            }
        }
        let (last, highest) = &mut self.history.commands[slot];
        *last = waypoint;
        *highest = waypoint.max(*highest);
        waypoint < *highest
    }

    fn note_recall(&mut self, from: usize, to: usize, message: &Message, is_recall: bool) {
        if commanded(message).is_some() && self.machines[to].swarm.members().leader() == from {
            self.history.recalled[to] = is_recall;
        }
    }

    /// What must hold when an aircraft leaves a waypoint.
    fn check_departure(&mut self, slot: usize, before: Option<BarrierState>) {
        let Some(BarrierState::WaypointReached { waypoint: left }) = before else { return };
        let swarm = &self.machines[slot].swarm;
        let State::Flying(BarrierState::MovingToWaypoint { waypoint, commanded_by: leader }) = swarm.state()
        else {
            return;
        };
        let absent = swarm.members().absent();
        if leader == slot {
            // Its own departure is a command, before it broadcasts that.
            let (last, highest) = &mut self.history.commands[slot];
            (*last, *highest) = (waypoint, waypoint.max(*highest));
        }
        let (last, highest) = self.history.commands[leader];
        let mut faults = StdVec::new();
        if waypoint != left + 1 {
            faults.push(std::format!("{slot} leaves {left} for {waypoint}"));
        }
        if leader == slot {
            for member in swarm.awaited() {
                if self.flyers[member].reached < left {
                    faults.push(std::format!("{slot} leads from {left}, and {member} has not reached it"));
                }
            }
        } else {
            if absent.contains(leader) {
                faults.push(std::format!("{slot} follows {leader}, which it counts as absent"));
            }
            if highest < waypoint {
                faults.push(std::format!("{slot} leaves for {waypoint}, which {leader} never commanded"));
            }
            // The one for which it was recalled is still behind.
            let awaited = self.machines[leader].swarm.awaited();
            let is_behind = awaited.iter().any(|member| self.flyers[member].reached < left);
            if self.history.recalled[slot] && last < waypoint && is_behind {
                faults.push(std::format!(
                    "{slot} leaves for {waypoint}, which {leader} recalled, as it received"
                ));
            }
        }
        // The wording of the requirement, for all that are present to each other.
        let is_one = |a: usize, b: usize| {
            let (a_has, b_has) = (self.machines[a].swarm.members(), self.machines[b].swarm.members());
            a_has.leader() == b_has.leader() && !a_has.absent().contains(b) && !b_has.absent().contains(a)
        };
        for other in (0..self.machines.len()).filter(|&other| other != slot) {
            let Some(BarrierState::MovingToWaypoint { waypoint: others, .. }) =
                flight_of(&self.machines[other])
            else {
                continue;
            };
            if others != waypoint && is_one(slot, other) && is_one(slot, leader) && is_one(other, leader) {
                self.is_apart = true;
            }
            if others != waypoint && !self.history.was_absent {
                faults.push(std::format!(
                    "{slot} is released to {waypoint}, {other} to {others}, and none was ever lost"
                ));
            }
        }
        for fault in faults {
            self.violate(fault);
        }
    }

    /// No two lead of which the later in the order of succession has just received the earlier.
    fn check_received(&mut self, setting: &Setting, from: usize, to: usize) {
        let swarm = &self.machines[to].swarm;
        let rank = |slot: usize| setting.succession.iter().position(|&of| of == slot);
        let is_flying = flight_of(&self.machines[from]).is_some() && flight_of(&self.machines[to]).is_some();
        if is_flying && swarm.is_leader() && rank(from) < rank(to) && !swarm.members().absent().contains(from)
        {
            self.violate(std::format!("{to} leads, and has received {from}"));
        }
    }

    /// What holds after every round.
    fn check(&mut self) {
        let count = self.machines.len();
        for slot in 0..count {
            let machine = &self.machines[slot];
            let Some(flight) = flight_of(machine) else { continue };
            let members = machine.swarm.members();
            let excluded = members.excluded();
            if excluded.contains(slot) {
                self.violate(std::format!("{slot} knows that it is excluded, and flies on: {flight:?}"));
                continue;
            }
            let leader = members.leader();
            if excluded.contains(leader) {
                self.violate(std::format!("{slot} follows {leader}, which is excluded"));
                continue;
            }
            if !(machine.swarm.awaited() & excluded).is_empty() {
                self.violate(std::format!("{slot} waits for one that is excluded"));
                continue;
            }
        }
    }

    /// The number of everything that decides how this continues, without the adversary.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (machine, flyer) in self.machines.iter().zip(&self.flyers) {
            (flyer.restarted, flyer.lands, flyer.reached, flyer.done.is_some()).hash(&mut hasher);
            (coordinates(flyer.telemetry.point()), flyer.telemetry.armed).hash(&mut hasher);
            flyer.target.map(|(at, rounds)| (coordinates(at), rounds)).hash(&mut hasher);
            machine.swarm.fingerprint(self.now, &mut hasher);
            let silence = machine.swarm.config().silence;
            let led_for = self.now.since(machine.barrier.led_since()).min(silence);
            machine.barrier.fingerprint(led_for.as_millis() as u64, &mut hasher);
        }
        // Of commands that are kept or passed on, their order counts, and not how many datagrams came between.
        let passed = |message: &Message| match message {
            Message::Passed(sealed) => Some(read_unverified(sealed).unwrap()),
            _ => None,
        };
        let delayed = || self.delayed.iter().filter_map(|sent| passed(&sent.datagram.message));
        let kept = || self.passing.iter().map(|passing| passing.last.clone());
        let counters: BTreeSet<u64> =
            kept().flatten().chain(delayed()).map(|datagram| datagram.counter).collect();
        let ranked = |datagram: &Datagram| {
            let command = passed(&datagram.message);
            let Datagram { from, flight, ref message, .. } = *command.as_ref().unwrap_or(datagram);
            let counter = command.as_ref().map_or(0, |command| counters.range(..command.counter).count());
            let datagram = Datagram { from, counter: counter as u64, flight, message: message.clone() };
            (command.is_some(), datagram.draft().unwrap().content().to_vec())
        };
        for last in kept() {
            let rank = last.as_ref().map(|last| counters.range(..last.counter).count());
            (last.map(|last| ranked(&last)), rank).hash(&mut hasher);
        }
        for sent in &self.delayed {
            (sent.from, ranked(&sent.datagram), sent.is_recall).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The same with what the adversary and the checks know.
    fn number(&self, calm: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (calm, self.cut, &self.history, self.has_excluded, self.has_restarted).hash(&mut hasher);
        hasher.finish()
    }

    /// Every member in a few characters.
    fn line(&self) -> String {
        let member = |(slot, machine): (usize, &Muscop)| {
            let (swarm, flyer) = (&machine.swarm, &self.flyers[slot]);
            let state = match flight_of(machine) {
                Some(BarrierState::WaypointReached { waypoint }) => std::format!("at {waypoint}"),
                Some(BarrierState::MovingToWaypoint { waypoint, commanded_by }) => {
                    std::format!("to {waypoint} by {commanded_by}")
                }
                None => swarm.state().label(|_| String::new()),
            };
            let members = swarm.members();
            std::format!(
                "{slot}: {state}, reached {}, leader {}, absent {:?}",
                flyer.reached,
                members.leader(),
                members.absent()
            )
        };
        self.machines.iter().enumerate().map(member).collect::<StdVec<_>>().join(" | ")
    }
}

/// How a calm continuation ends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End {
    rounds: u32,
    /// All aircraft whose companion lives have flown the mission to its end.
    is_complete: bool,
}

struct Search {
    setting: Setting,
    cuts: StdVec<Links>,
    /// What was explored, with how many rounds and how much budget left.
    explored: BTreeMap<u64, StdVec<(u8, u8)>>,
    calm: BTreeMap<u64, End>,
    path: StdVec<Step>,
    found: Found,
}

#[derive(Default)]
struct Found {
    states: u64,
    rounds: u64,
    calm_rounds: u64,
    longest: u32,
    /// Without an exclusion or a restart: calm continuations in which not all complete the mission.
    incomplete: BTreeSet<u64>,
    /// Released to different waypoints, though present to each other and to their leader: how often, and how.
    apart: u64,
    first_apart: Option<StdVec<Step>>,
}

/// What a search found that must not be, and the steps to it.
#[derive(Debug)]
struct Counterexample {
    what: String,
    steps: StdVec<Step>,
}

impl Search {
    fn new(setting: Setting, cuts: StdVec<Links>) -> Self {
        let (explored, calm) = (BTreeMap::new(), BTreeMap::new());
        Self { setting, cuts, explored, calm, path: StdVec::new(), found: Found::default() }
    }

    fn fails(&self, what: String) -> Counterexample {
        Counterexample { what, steps: self.path.clone() }
    }

    fn explore(&mut self, world: &World, rounds: u8, budget: u8) -> Result<(), Counterexample> {
        let calm = world.fingerprint();
        let known = self.explored.entry(world.number(calm)).or_default();
        if known.iter().any(|&(r, b)| r >= rounds && b >= budget) {
            return Ok(());
        }
        if known.is_empty() {
            self.found.states += 1;
        }
        known.retain(|&(r, b)| r > rounds || b > budget);
        known.push((rounds, budget));
        self.continue_calmly(world, calm)?;
        if rounds == 0 || world.is_over() {
            return Ok(());
        }
        let mut steps = std::vec![Step::Keep];
        if budget > 0 {
            world.steps(&self.cuts, &mut steps);
        }
        for step in steps {
            let mut next = world.clone();
            self.path.push(step);
            next.round(&self.setting, step);
            self.found.rounds += 1;
            if let Some(what) = next.violation.take() {
                return Err(self.fails(what));
            }
            if next.is_apart {
                self.found.apart += 1;
                self.found.first_apart.get_or_insert_with(|| self.path.clone());
            }
            self.explore(&next, rounds - 1, budget - u8::from(step != Step::Keep))?;
            self.path.pop();
        }
        Ok(())
    }

    /// From here on every datagram is received: all end.
    fn continue_calmly(&mut self, world: &World, number: u64) -> Result<(), Counterexample> {
        let mut on_the_way = StdVec::new();
        let of_world = number;
        let mut number = number;
        let mut calm: Option<World> = None;
        let end = loop {
            if let Some(&end) = self.calm.get(&number) {
                break end;
            }
            let now = calm.get_or_insert_with(|| World { cut: 0, ..world.clone() });
            if now.is_over() {
                let is_down = |slot: usize| {
                    now.flyers[slot].restarted || now.machines[slot].state_id() == StateId::Finished
                };
                let end = End { rounds: 0, is_complete: (0..now.machines.len()).all(is_down) };
                self.calm.insert(number, end);
                break end;
            }
            if on_the_way.len() as u32 > CALM_ROUNDS {
                let what = std::format!("does not end in {CALM_ROUNDS} calm rounds: {}", now.line());
                return Err(self.fails(what));
            }
            on_the_way.push(number);
            now.round(&self.setting, Step::Keep);
            self.found.calm_rounds += 1;
            if let Some(what) = now.violation.take() {
                return Err(self.fails(std::format!("in the calm continuation: {what}")));
            }
            number = now.fingerprint();
        };
        let mut rounds = end.rounds;
        for number in on_the_way.into_iter().rev() {
            rounds += 1;
            self.calm.insert(number, End { rounds, ..end });
        }
        self.found.longest = self.found.longest.max(rounds);
        if !end.is_complete && !world.has_excluded && !world.has_restarted {
            self.found.incomplete.insert(of_world);
        }
        Ok(())
    }
}

/// Every set of ordered pairs of three members.
fn all_cuts(count: usize) -> StdVec<Links> {
    let pairs: StdVec<Links> = pairs(count).map(|(from, to)| link(from, to)).collect();
    let of = |bits: u32| (0..pairs.len()).filter(|n| bits >> n & 1 == 1).fold(0, |cut, n| cut | pairs[n]);
    (0..1 << pairs.len()).map(of).collect()
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    (0..count).flat_map(move |from| (0..count).filter(move |&to| to != from).map(move |to| (from, to)))
}

/// None, every partition in two, every member that is mute, and every one that is deaf.
fn plain_cuts(count: usize) -> StdVec<Links> {
    let cut = |is_cut: &dyn Fn(usize, usize) -> bool| {
        pairs(count).filter(|&(from, to)| is_cut(from, to)).fold(0, |cut, (from, to)| cut | link(from, to))
    };
    let mut cuts = std::vec![0];
    for side in 1..1 << (count - 1) {
        cuts.push(cut(&|from, to| (side >> from ^ side >> to) & 1 == 1));
    }
    for member in 0..count {
        cuts.extend([cut(&|from, _| from == member), cut(&|_, to| to == member)]);
    }
    cuts
}

/// Flies steps, and then all is received until all have ended; each round is printed.
fn replay(count: usize, change: impl Fn(&mut Setting), steps: &[Step]) -> World {
    let (mut setting, mut world) = begin(count);
    setting.is_printed = true;
    change(&mut setting);
    println!("  succession {:?}; begin: {}", setting.succession, world.line());
    for (round, &step) in steps.iter().enumerate() {
        world.round(&setting, step);
        let step = match step {
            Step::Cut(links) => {
                let is_cut = |&(from, to): &(usize, usize)| links & link(from, to) != 0;
                let cut = pairs(count).filter(is_cut).map(|(from, to)| std::format!(" {from}>{to}"));
                std::format!("Cut{}", cut.collect::<String>())
            }
            step => std::format!("{step:?}"),
        };
        println!("  {round:2} {step}: {}", world.line());
    }
    world.cut = 0;
    for _ in 0..CALM_ROUNDS {
        if world.is_over() || world.violation.is_some() {
            break;
        }
        world.round(&setting, Step::Keep);
    }
    println!("     all received from here on: {}", world.line());
    world
}

/// Searches, and prints what was found.
fn search(
    count: usize,
    change: impl Fn(&mut Setting),
    cuts: StdVec<Links>,
    horizon: u8,
    budget: u8,
) -> Result<Found, Counterexample> {
    let (mut setting, world) = begin(count);
    change(&mut setting);
    let mut search = Search::new(setting, cuts);
    let result = search.explore(&world, horizon, budget);
    let found = core::mem::take(&mut search.found);
    println!(
        "{count} members, {} sets of links, at most {budget} steps in {horizon} rounds: {} states, {} transitions, {} \
         calm rounds, all ended within {:.1} s; {} states from which not all complete the mission; {} releases to \
         different waypoints after a loss",
        search.cuts.len(),
        found.states,
        found.rounds,
        found.calm_rounds,
        f64::from(found.longest) * ROUND.as_secs_f64(),
        found.incomplete.len(),
        found.apart
    );
    if let Err(counterexample) = &result {
        println!("counterexample: {}", counterexample.what);
        replay(count, change, &counterexample.steps);
    }
    result.map(|()| found)
}

/// A search that finds nothing that must not be.
fn assert_all(count: usize, cuts: StdVec<Links>, horizon: u8, budget: u8) -> Found {
    match search(count, |_| {}, cuts, horizon, budget) {
        Ok(found) => found,
        Err(counterexample) => panic!("{}", counterexample.what),
    }
}

#[test]
fn muscop_02_05_13_15_25_every_schedule_of_three_members() {
    let found = assert_all(3, plain_cuts(3), 12, 2);
    assert!(found.states > 10_000, "{}", found.states);
    // What a loss makes of the release: see the next but one.
    let steps = found.first_apart.expect("a release apart");
    replay(3, |_| {}, &steps);
}

#[test]
fn muscop_02_05_13_15_25_every_set_of_links_of_three_members() {
    let found = assert_all(3, all_cuts(3), 5, 2);
    assert!(found.states > 10_000, "{}", found.states);
}

#[test]
fn muscop_02_05_13_15_25_every_schedule_of_four_members() {
    let found = assert_all(4, plain_cuts(4), 6, 2);
    assert!(found.states > 10_000, "{}", found.states);
}

#[test]
#[ignore = "minutes: cargo xtask test --full"]
fn larger_three_members_and_three_steps() {
    assert_all(3, plain_cuts(3), 12, 3);
}

#[test]
#[ignore = "minutes: cargo xtask test --full"]
fn larger_every_set_of_links_of_three_members() {
    assert_all(3, all_cuts(3), 12, 2);
}

#[test]
#[ignore = "minutes: cargo xtask test --full"]
fn larger_four_members() {
    assert_all(4, plain_cuts(4), 12, 2);
}

/// The leader is lost to the one that succeeds it, whose operator excludes it there alone. The others learn it from that
/// one, though it leads none of them, and none waits for one that waits for another leader.
#[test]
fn muscop_13_the_leader_is_excluded_by_the_operator_of_another_part() {
    let leader = begin(3).0.center;
    for at in (0..3).filter(|&at| at != leader) {
        for cuts in [0, (0..3).filter(|&of| of != at).fold(0, |cut, of| cut | link(of, at))] {
            let mut steps = std::vec![Step::Keep; 9];
            steps[2] = if cuts == 0 { Step::Keep } else { Step::Cut(cuts) };
            steps[7] = Step::Exclude { at: Some(at), member: leader };
            let world = replay(3, |setting| setting.leg_rounds = 6, &steps);
            assert_eq!((world.is_over(), &world.violation), (true, &None), "at {at}: {}", world.line());
            let states = world.machines.iter().map(Muscop::state_id).collect::<StdVec<_>>();
            assert_eq!(states[leader], StateId::Aborted, "at {at}: {}", world.line());
        }
    }
}

/// Two members that do not receive each other, of which the leader receives both: the release is passed on to one that has
/// received the recall. The leader's counter shows that it is older.
#[test]
fn muscop_25_a_release_that_is_passed_on_after_the_recall_does_not_count() {
    let both = |a: usize, b: usize| link(a, b) | link(b, a);
    let succession = begin(4).0.succession;
    let [leader, relays, waits, behind] = succession[..] else { panic!("{succession:?}") };
    let without_leader = both(behind, relays) | both(behind, waits);
    let mut steps = std::vec![Step::Keep; 10];
    // Nothing of the one that stays behind is received.
    steps[1] = Step::Cut(without_leader | both(behind, leader));
    (steps[4], steps[5]) = (Step::Slow(behind), Step::Slow(behind));
    // The leader receives it again; the one that waits misses the release,
    steps[8] = Step::Cut(without_leader | link(leader, waits) | link(relays, waits));
    // and receives the recall, and then the release from another member.
    steps[9] = Step::Cut(without_leader);
    let world = replay(4, |setting| setting.leg_rounds = 6, &steps);
    assert_eq!(world.violation, None);
}

/// The search finds a swarm that is broken on purpose, in the fewest rounds that show it.
#[test]
fn the_search_finds_what_is_broken() {
    let leader = begin(3).0.center;
    assert_eq!(leader, 1);
    let early: Forge = |slot, message| match *message {
        // A member that reports the waypoint while it is on its way.
        Message::Following { waypoint, reached: false, .. } if slot == 0 => {
            Some(Message::ReachedWaypointAck { waypoint })
        }
        _ => None,
    };
    let eager: Forge = |_, message| match *message {
        // A leader that waits for none.
        Message::Gather { waypoint } => Some(Message::Release { waypoint: waypoint + 1 }),
        _ => None,
    };
    let mute: Forge = |_, message| match *message {
        // A leader that releases none but itself.
        Message::Release { .. } | Message::MoveToWaypoint { .. } | Message::Gather { .. } => {
            Some(Message::Gather { waypoint: 0 })
        }
        _ => None,
    };
    let deaf: Forge = |_, message| match message {
        // No member relays an exclusion.
        Message::Exclude { .. } => Some(Message::ReadyToFlyAck),
        _ => None,
    };
    for (forge, expected) in [
        (early, "and 0 has not reached"),
        (eager, "never commanded"),
        (mute, "does not end"),
        (deaf, "does not end"),
    ] {
        let found = (1..12)
            .find_map(|horizon| search(3, |setting| setting.forge = forge, std::vec![0], horizon, 1).err());
        let what = found.map(|counterexample| counterexample.what).unwrap_or_default();
        assert!(what.contains(expected), "expected {expected}: {what}");
    }
}
