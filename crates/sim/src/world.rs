//! The deterministic world: agents, their simulated flight controllers and the radio channel between
//! them, on a clock that jumps to the next event. Real MAVLink bytes and real datagrams cross it.
//!
//! One seed makes one child generator per consumer, and events of one instant are processed in the order in
//! which they were scheduled, so the same seed gives the same bytes: [`World::trace_hash`] is a hash of them.

mod console;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use wingbeat_agent::guardian::Before;
use wingbeat_agent::separation::Figures;
use wingbeat_agent::{
    Agent, AvoidanceTally, Command, FlightRecord, Input, KnownAutopilot, LogEntry, MissionExtras, Outputs,
    Phase, Rejection, Reply, Severity, StateId, Status, Text,
};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_wire::{Point, RosterError, VehicleId};

use crate::autopilot::{Autopilot, Incident, Motion};
use crate::channel::{Counters, Losses, REACHES};
use crate::faults::{Fault, Guard, SerialLines};
use crate::flight_controller::{FlightController, Truth};
use crate::keys::{Keys, Signatures};
use crate::logic::{self, Logic};
use crate::medium::statistics::Statistics;
use crate::medium::{FlowFigures, Lateness, Medium, Reception};
use crate::observer::{Observer, Sample};
use crate::pilot::{Pilot, STICK_PERIOD};
use crate::replies::lets_the_reference_write;
use crate::stalls::{self, Stalls};
use console::Desk;

/// What follows the agents of a world: every input that passes an agent's door, and what it answered.
pub trait Record {
    /// An agent begins, before its first input: at the start, and where a companion starts again.
    fn begin(&mut self, now: Instant, vehicle: usize, agent: &Agent);
    /// An agent handled an input.
    fn handled(&mut self, now: Instant, vehicle: usize, input: &Input<'_>, agent: &Agent, out: &Outputs);
}

/// How often the checkers sample.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// What commands an aircraft instead of its agent is not asked more often by its own wish.
const LOGIC_PERIOD_LEAST: Duration = Duration::from_millis(1);

/// One aircraft: its companion and its autopilot.
struct Vehicle {
    agent: Agent,
    /// After its last input, while changes are kept.
    stage: Stage,
    controller: Box<dyn Autopilot>,
    /// The wake-up that is in the queue; others that come are stale.
    wake_at: Instant,
    /// The pilot that holds its sticks, and since when.
    pilot: Option<(Pilot, Instant)>,
    companion: Companion,
    /// What commands it instead of its agent.
    logic: Option<Box<dyn Logic>>,
    /// What the companion that died last has kept of its swarm's flight.
    flight: Option<Box<FlightRecord>>,
    /// Its guardian, where it has the flight controller.
    guard: Option<Box<Guard>>,
    /// Whether its guardian ended.
    is_guardian_dead: bool,
    /// Whether its guardian has given it back to another daemon, which it does once in a flight.
    was_given_back: bool,
}

/// How far an aircraft has come, as its protocol has it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stage {
    state: StateId,
    reached: Option<u16>,
}

impl Stage {
    fn of(agent: &Agent) -> Self {
        let view = agent.view();
        Self { state: view.state, reached: view.reached }
    }
}

/// Whether a companion lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Companion {
    Lives,
    /// Its radio is silent, and its flight controller receives nothing of it. Another process begins then.
    Restarts,
    /// For good.
    Dead,
    /// Something else is in its place.
    Replaced,
}

/// An event of the queue. Events of one instant are processed in the order in which they were scheduled; the
/// order of the variants never decides, since each entry has a number of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scheduled {
    /// Flight controllers tick.
    Tick,
    /// The checkers sample.
    Check,
    /// A datagram arrives, at all of these at the same time, in this order.
    Arrival { from: Option<usize>, to: Vec<usize>, bytes: Arc<[u8]> },
    /// Something happens on the medium.
    Medium,
    /// An agent wanted waking.
    Wake { vehicle: usize },
    /// A pilot moves the sticks.
    Sticks { vehicle: usize },
    /// A fault begins: its place in the list.
    Fault { index: usize },
    /// A fault ends.
    FaultEnds { index: usize },
    /// The operator's console repeats its orders.
    Console,
}

/// An entry of an agent's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Simulated time.
    pub at: Instant,
    /// Index of the aircraft in the world, from 0.
    pub vehicle: usize,
    /// Severity and text.
    pub entry: LogEntry,
}

/// A datagram that an agent sent, received or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Simulated time.
    pub at: Instant,
    /// Index of the aircraft in the world, from 0.
    pub vehicle: usize,
    /// The sealed datagram.
    pub bytes: Arc<[u8]>,
}

/// An agent's protocol came to another state, or to another waypoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Simulated time.
    pub at: Instant,
    /// Index of the aircraft in the world, from 0.
    pub vehicle: usize,
    /// Its state, as the protocol's paper names it.
    pub state: StateId,
    /// The waypoint that it reached last.
    pub reached: Option<u16>,
    /// True position of the aircraft, not its estimate.
    pub position: Position,
    /// The members that it did not wait for then.
    pub given_up: Vec<VehicleId>,
}

/// What one aircraft received of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When last.
    pub last: Instant,
    /// The longest time between two datagrams so far.
    pub silence: Duration,
}

/// The world.
pub struct World {
    now: Instant,
    frame: Frame,
    vehicles: Vec<Vehicle>,
    medium: Box<dyn Medium>,
    /// The medium's event that is in the queue; others that come are stale.
    medium_at: Instant,
    received: Vec<Reception>,
    keys: Keys,
    /// The operator's console, where it has a radio.
    desk: Option<Desk>,
    /// By time, then by the number that `serial` gave the entry.
    queue: BinaryHeap<Reverse<(Instant, u64, Scheduled)>>,
    /// Entries scheduled so far.
    serial: u64,
    observer: Observer,
    /// When each flight controller ticks next: apart from the controllers, which are large, so that finding
    /// those that are due is cheap.
    ticks_at: Vec<Instant>,
    /// Which places in `positions` are behind the truth.
    is_stale: Vec<bool>,
    /// Of each aircraft, then of the console's radio.
    positions: Vec<DVec3>,
    samples: Vec<Sample>,
    trace: u64,
    faults: Vec<Fault>,
    lines: SerialLines,
    stalls: Stalls,
    log: Vec<Logged>,
    /// What was sent since it was taken last; nothing is kept before the first request.
    sent: Option<Vec<Sent>>,
    /// Changes of state since they were taken last; nothing is kept before the first request.
    changes: Option<Vec<Change>>,
    /// Of each directed link, `from * count + to`; nothing is kept before the first request.
    links: Option<Vec<Option<Heard>>>,
    outputs: Outputs,
    record: Option<Box<dyn Record>>,
    /// Why an autopilot cannot fly on: the world stands still.
    failure: Option<String>,
    /// Whether what goes to a flight controller waits until it has sent, and what waits.
    replies_only: bool,
    waiting: Vec<Vec<u8>>,
    bytes: Vec<u8>,
}

impl World {
    /// A world with these aircraft, at time zero. Distances are measured in the frame of `origin`. Datagrams bear the
    /// stand-in of a signature; see [`World::signing`].
    pub fn new(
        origin: Position,
        vehicles: Vec<(Agent, impl Into<Box<dyn Autopilot>>)>,
        medium: impl Into<Box<dyn Medium>>,
        collision_distance_m: f64,
    ) -> Self {
        let count = vehicles.len();
        let ids = vehicles.iter().map(|(agent, _)| agent.id());
        let keys = Keys::new(Signatures::StandIn, 0, ids).expect("a roster of stand-ins has no end");
        let vehicles: Vec<Vehicle> = vehicles
            .into_iter()
            .map(|(agent, controller)| Vehicle {
                stage: Stage::of(&agent),
                agent,
                controller: controller.into(),
                wake_at: Instant::NEVER,
                companion: Companion::Lives,
                logic: None,
                flight: None,
                guard: None,
                is_guardian_dead: false,
                was_given_back: false,
                pilot: None,
            })
            .collect();
        let mut world = Self {
            now: Instant::ZERO,
            frame: Frame::new(origin),
            vehicles,
            medium: medium.into(),
            medium_at: Instant::NEVER,
            received: Vec::new(),
            keys,
            desk: None,
            queue: BinaryHeap::new(),
            serial: 0,
            observer: Observer::new(count, collision_distance_m),
            ticks_at: vec![Instant::ZERO; count],
            is_stale: vec![true; count],
            positions: vec![DVec3::ZERO; count],
            samples: Vec::with_capacity(count),
            trace: 0xcbf2_9ce4_8422_2325,
            faults: Vec::new(),
            lines: SerialLines::default(),
            stalls: Stalls::default(),
            log: Vec::new(),
            sent: None,
            changes: None,
            links: None,
            outputs: Outputs::default(),
            record: None,
            failure: None,
            replies_only: false,
            waiting: vec![Vec::new(); count],
            bytes: Vec::new(),
        };
        world.push(Instant::ZERO, Scheduled::Tick);
        world.push(Instant::ZERO, Scheduled::Check);
        world.schedule_medium();
        for vehicle in 0..count {
            world.rearm(vehicle);
        }
        world
    }

    /// The same with other keys, made from a seed, before anything was sent.
    ///
    /// # Errors
    /// More aircraft than a roster holds.
    pub fn signing(mut self, signatures: Signatures, seed: u64) -> Result<Self, RosterError> {
        self.keys = Keys::new(signatures, seed, self.vehicles.iter().map(|v| v.agent.id()))?;
        Ok(self)
    }

    /// The same, recorded, before any input.
    pub fn recorded(mut self, record: Option<Box<dyn Record>>) -> Self {
        self.record = record;
        if let Some(record) = &mut self.record {
            for (i, vehicle) in self.vehicles.iter().enumerate() {
                record.begin(self.now, i, &vehicle.agent);
            }
        }
        self
    }

    /// The frame in which distances are measured.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The keys of its aircraft: for tests of what a captured one sends.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    fn push(&mut self, at: Instant, event: Scheduled) {
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, event)));
    }

    /// Puts the agent's next wake-up into the queue.
    fn rearm(&mut self, vehicle: usize) {
        let (at, _) = self.vehicles[vehicle].agent.poll_timeout();
        if at < self.vehicles[vehicle].wake_at && at != Instant::NEVER {
            let at = at.max(self.now);
            self.vehicles[vehicle].wake_at = at;
            self.push(at, Scheduled::Wake { vehicle });
        }
    }

    /// Lets everything happen that happens until `end`, and `end` with it; or until an autopilot cannot fly on
    /// ([`World::failure`]).
    pub fn run_until(&mut self, end: Instant) {
        while let Some(Reverse((at, _, _))) = self.queue.peek() {
            if self.failure.is_some() {
                return;
            }
            let at = *at;
            if at > end {
                break;
            }
            if self.look_ahead(at) {
                continue;
            }
            let Some(Reverse((at, _, event))) = self.queue.pop() else { break };
            self.now = at;
            match event {
                Scheduled::Tick => self.tick(),
                Scheduled::Check => self.check(),
                Scheduled::Arrival { from, to, bytes } => {
                    self.hear(from, &to);
                    if let Some(from) = from.filter(|from| self.has_logic(*from)) {
                        // On another port than agents' datagrams.
                        for to in to {
                            self.run_logic(to, &[], &[(from, Arc::clone(&bytes))]);
                        }
                        continue;
                    }
                    // Opened once: it is the same for every receiver.
                    let opened = self.keys.roster().open(&bytes);
                    for to in to {
                        if to >= self.vehicles.len() {
                            self.console_receives(opened);
                        } else if !self.stalls.keep_datagram(self.now, to, &bytes) {
                            self.agent(to, Input::Datagram(opened));
                        }
                    }
                }
                Scheduled::Medium if self.medium_at == at => {
                    self.medium_at = Instant::NEVER;
                    self.carry();
                }
                Scheduled::Medium => {}
                Scheduled::Sticks { vehicle } => self.move_sticks(vehicle),
                Scheduled::Wake { vehicle } => {
                    if self.vehicles[vehicle].wake_at != at {
                        continue;
                    }
                    self.vehicles[vehicle].wake_at = Instant::NEVER;
                    if self.stalls.keep_bytes(at, vehicle, &[]) {
                        // Its process takes everything when it gets a processor.
                        continue;
                    }
                    if self.vehicles[vehicle].logic.is_some() {
                        self.run_logic(vehicle, &[], &[]);
                        continue;
                    }
                    self.agent(vehicle, Input::Wake);
                    let (next, why) = self.vehicles[vehicle].agent.poll_timeout();
                    let asks = next <= at && self.vehicles[vehicle].companion == Companion::Lives;
                    assert!(!asks, "aircraft {vehicle} wants waking now, for ever: {why}");
                }
                Scheduled::Fault { index } => self.fail(self.faults[index]),
                Scheduled::FaultEnds { index } => self.recover(self.faults[index]),
                Scheduled::Console => self.wake_console(),
            }
        }
        self.now = end;
    }

    fn tick(&mut self) {
        for (vehicle, at) in self.vehicles.iter_mut().zip(&self.ticks_at) {
            if *at <= self.now {
                vehicle.controller.begin(self.now);
            }
        }
        let mut next = Instant::NEVER;
        for i in 0..self.vehicles.len() {
            if self.ticks_at[i] > self.now {
                next = next.min(self.ticks_at[i]);
                continue;
            }
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            let (_, is_unheard) = self.lines.lose(self.now, i);
            let controller = &mut self.vehicles[i].controller;
            if let Err(why) = controller.finish(&mut bytes) {
                self.failure.get_or_insert_with(|| format!("aircraft {}: {why}", i + 1));
            }
            self.ticks_at[i] = controller.poll_timeout();
            self.is_stale[i] = true;
            next = next.min(self.ticks_at[i]);
            if is_unheard {
                bytes.clear();
            }
            if !bytes.is_empty() {
                self.trace = mixed(self.trace, self.now, i, 1, &bytes);
                if !self.waiting[i].is_empty() && lets_the_reference_write(&bytes) {
                    controller.receive(&self.waiting[i]);
                    self.waiting[i].clear();
                }
                if self.vehicles[i].guard.is_none() && !self.stalls.keep_bytes(self.now, i, &bytes) {
                    self.agent(i, Input::Autopilot(&bytes));
                }
            }
            self.guard(i, &bytes);
            self.catch_up(i);
            self.run_logic(i, &bytes, &[]);
            self.bytes = bytes;
        }
        self.push(next, Scheduled::Tick);
    }

    /// A pilot takes the transmitter of one aircraft, now.
    pub fn seat(&mut self, vehicle: usize, pilot: Pilot) {
        let seated = self.vehicles[vehicle].pilot.is_some();
        self.vehicles[vehicle].pilot = Some((pilot, self.now));
        if !seated {
            self.push(self.now, Scheduled::Sticks { vehicle });
        }
    }

    /// Takes the sticks of one aircraft from its pilot.
    pub fn unseat(&mut self, vehicle: usize) {
        self.vehicles[vehicle].pilot = None;
    }

    /// Returns the pilot who holds the sticks of one aircraft.
    pub fn pilot_mut(&mut self, vehicle: usize) -> Option<&mut Pilot> {
        self.vehicles[vehicle].pilot.as_mut().map(|(pilot, _)| pilot)
    }

    /// A datagram from outside this world reaches one radio, now.
    pub fn inject(&mut self, vehicle: usize, datagram: &[u8]) {
        let bytes = Arc::from(datagram);
        self.push(self.now, Scheduled::Arrival { from: None, to: vec![vehicle], bytes });
    }

    /// Keeps which aircraft received which and when, where that is asked for.
    fn hear(&mut self, from: Option<usize>, to: &[usize]) {
        let (Some(links), Some(from)) = (&mut self.links, from) else { return };
        let count = self.vehicles.len();
        // The console's radio is none of an aircraft.
        for to in to.iter().filter(|to| **to < count && from < count) {
            let link = &mut links[from * count + to];
            *link = Some(match *link {
                Some(Heard { last, silence }) => {
                    Heard { last: self.now, silence: silence.max(self.now.since(last)) }
                }
                None => Heard { last: self.now, silence: Duration::ZERO },
            });
        }
    }

    /// What an aircraft (the second) has received of another. Keeping it begins with the first call.
    pub fn heard(&mut self, from: usize, to: usize) -> Option<Heard> {
        let count = self.vehicles.len();
        let links = self.links.get_or_insert_with(|| vec![None; count * count]);
        links.get(from * count + to).copied().flatten()
    }

    fn move_sticks(&mut self, vehicle: usize) {
        let aircraft = &mut self.vehicles[vehicle];
        let Some((pilot, since)) = &mut aircraft.pilot else { return };
        let sticks = pilot.sticks(self.now.since(*since), &aircraft.controller.truth());
        aircraft.controller.set_rc(Some(sticks.channels()));
        let pulses = [sticks.roll_us, sticks.pitch_us, sticks.throttle_us, sticks.yaw_us];
        let bytes: Vec<u8> = pulses.iter().flat_map(|p| p.to_le_bytes()).collect();
        self.trace = mixed(self.trace, self.now, vehicle, 4, &bytes);
        self.push(self.now + STICK_PERIOD, Scheduled::Sticks { vehicle });
    }

    /// A second ground station commands a mode on a radio of its own: the companion receives no
    /// acknowledgement.
    fn command_from_ground(&mut self, vehicle: usize, mode: Mode) {
        let controller = &mut self.vehicles[vehicle].controller;
        match controller.simulated() {
            Some(simulated) => {
                simulated.set_mode_by_ground_station(mode);
                self.note_touched(vehicle);
            }
            None => controller.receive(&stalls::mode_order(mode)),
        }
    }

    /// A companion that has a processor again takes what waited for it.
    fn catch_up(&mut self, i: usize) {
        let Some(backlog) = self.stalls.take(self.now, i) else { return };
        if !backlog.bytes.is_empty() && self.vehicles[i].guard.is_none() {
            self.agent(i, Input::Autopilot(&backlog.bytes));
        }
        for datagram in backlog.datagrams {
            let opened = self.keys.roster().open(&datagram);
            self.agent(i, Input::Datagram(opened));
        }
        self.agent(i, Input::Wake);
    }

    /// A fault begins.
    fn fail(&mut self, fault: Fault) {
        self.medium.disturb(fault);
        self.lines.begin(fault);
        self.stalls.begin(fault);
        match fault {
            Fault::CompanionDies { vehicle, guarded } => self.bury(vehicle, guarded, Companion::Dead),
            Fault::DaemonRestarts { vehicle, guarded, .. } => {
                self.bury(vehicle, guarded, Companion::Restarts)
            }
            Fault::Falls { vehicle } => self.bury(vehicle, false, Companion::Dead),
            Fault::GuardianDies { vehicle } => {
                self.vehicles[vehicle].is_guardian_dead = true;
                self.vehicles[vehicle].guard = None;
                self.agent(vehicle, Input::Guard(None));
            }
            Fault::SecondGround { vehicle, mode } => self.command_from_ground(vehicle, mode),
            // Of autopilots below; channel, lines and processors have been told.
            Fault::MotorsFail { .. }
            | Fault::AutopilotReboots { .. }
            | Fault::PilotTakes { .. }
            | Fault::TransmitterLost { .. }
            | Fault::BatteryAt { .. }
            | Fault::GnssLost { .. }
            | Fault::EstimateDiverges { .. }
            | Fault::EstimateDrifts { .. }
            | Fault::Stuck { .. }
            | Fault::TextsGarbled { .. }
            | Fault::GustFront { .. }
            | Fault::Starved { .. }
            | Fault::RadioSilent { .. }
            | Fault::SerialLine { .. }
            | Fault::Late { .. }
            | Fault::Doubled { .. }
            | Fault::Loss { .. }
            | Fault::Bursts { .. }
            | Fault::Partition { .. } => {}
        }
        self.suffer(fault.vehicle(), fault.incident());
    }

    /// A fault ends. What disturbs channel and lines is asked whether it is over.
    fn recover(&mut self, fault: Fault) {
        if let Fault::DaemonRestarts { vehicle, .. } = fault {
            self.begin_again(vehicle);
        }
        self.suffer(fault.vehicle(), fault.relief());
    }

    /// Something happens to an autopilot, if it is something.
    fn suffer(&mut self, vehicle: Option<usize>, incident: Option<Incident>) {
        let (Some(vehicle), Some(incident)) = (vehicle, incident) else { return };
        if let Err(why) = self.vehicles[vehicle].controller.suffer(incident) {
            self.failure.get_or_insert_with(|| format!("aircraft {}: {why}", vehicle + 1));
        }
        if self.vehicles[vehicle].controller.acts_at_once() {
            self.note_touched(vehicle);
        }
    }

    /// An autopilot was reached into: the effect is visible now; what it sends about it is delivered with the next tick.
    fn note_touched(&mut self, vehicle: usize) {
        (self.ticks_at[vehicle], self.is_stale[vehicle]) = (Instant::ZERO, true);
    }

    /// A companion ends. One that died before stays dead, and the guardian that took the aircraft keeps it.
    fn bury(&mut self, vehicle: usize, guarded: bool, companion: Companion) {
        let aircraft = &mut self.vehicles[vehicle];
        if aircraft.companion == Companion::Lives {
            if guarded && !aircraft.is_guardian_dead && aircraft.guard.is_none() {
                let mut pulse = aircraft.agent.pulse(self.now);
                if aircraft.was_given_back {
                    pulse.route = 0;
                }
                aircraft.guard = Some(Box::new(Guard::take_over(self.now, pulse)));
            }
            aircraft.companion = companion;
            aircraft.flight = aircraft.agent.flight_record().map(Box::new);
        } else if companion == Companion::Dead {
            aircraft.companion = Companion::Dead;
        }
    }

    /// Another process of the companion begins.
    fn begin_again(&mut self, vehicle: usize) {
        let aircraft = &mut self.vehicles[vehicle];
        if aircraft.companion == Companion::Restarts {
            aircraft.companion = Companion::Lives;
            aircraft.agent = aircraft.agent.restarted(self.now);
            aircraft.wake_at = Instant::NEVER;
            if let Some(record) = &mut self.record {
                record.begin(self.now, vehicle, &aircraft.agent);
            }
            if let Some(record) = self.vehicles[vehicle].flight.take() {
                self.agent(vehicle, Input::Flight(&record));
            }
            self.agent(vehicle, Input::Wake);
        }
    }

    /// The guardian, if it has the flight controller, reads it and commands it, until it is done.
    fn guard(&mut self, i: usize, bytes: &[u8]) {
        let (is_cut, _) = self.lines.lose(self.now, i);
        let (now, vehicle) = (self.now, &mut self.vehicles[i]);
        let Some(guard) = &mut vehicle.guard else { return };
        let mut asked = Vec::new();
        guard.step(now, bytes, &mut asked);
        if !asked.is_empty() {
            if !is_cut {
                vehicle.controller.receive(&asked);
            }
            self.trace = mixed(self.trace, now, i, 5, &asked);
        }
        let lives = vehicle.companion == Companion::Lives;
        if lives && guard.has_flight_controller() {
            guard.pulse(now, vehicle.agent.pulse(now));
            if let Some(system_id) = guard.tell() {
                let known = KnownAutopilot { system_id, is_armed: true };
                self.agent(i, Input::KnownAutopilot { known, is_held: true });
            }
        }
        let vehicle = &mut self.vehicles[i];
        let Some(guard) = &mut vehicle.guard else { return };
        if lives && guard.has_flight_controller() {
            guard.pulse(now, vehicle.agent.pulse(now));
        }
        if !guard.has_flight_controller() && lives {
            // Of a flight that no daemon takes up the next one learns nothing here.
            let before = guard.pulse(now, vehicle.agent.pulse(now));
            vehicle.guard = None;
            if matches!(before, Before::OnRoute { .. }) {
                self.vehicles[i].was_given_back = true;
                self.agent(i, Input::Before(before));
            }
            self.agent(i, Input::AutopilotLink(true));
        }
    }

    /// What commands the aircraft instead of its agent runs until now.
    fn run_logic(&mut self, i: usize, bytes: &[u8], heard: &[logic::Heard]) {
        let Some(logic) = self.vehicles.get_mut(i).and_then(|vehicle| vehicle.logic.as_mut()) else { return };
        let mut sent = logic::Sent::default();
        if let Err(why) = logic.run(self.now, bytes, heard, &mut sent) {
            self.failure.get_or_insert_with(|| format!("aircraft {}: {why}", i + 1));
        }
        // One that reads its clock in a loop would be asked for ever.
        let due = logic.due().max(self.now + LOGIC_PERIOD_LEAST);
        if due < self.vehicles[i].wake_at && due != Instant::NEVER {
            self.vehicles[i].wake_at = due;
            self.push(due, Scheduled::Wake { vehicle: i });
        }
        if !sent.autopilot.is_empty() {
            let (is_cut, _) = self.lines.lose(self.now, i);
            if !is_cut {
                self.vehicles[i].controller.receive(&sent.autopilot);
            }
            self.trace = mixed(self.trace, self.now, i, 7, &sent.autopilot);
        }
        if sent.datagrams.is_empty() {
            return;
        }
        self.locate();
        for bytes in sent.datagrams {
            self.trace = mixed(self.trace, self.now, i, 8, &bytes);
            self.transmit(i, bytes);
        }
        self.carry();
    }

    /// Whether a radio is that of an aircraft which something else commands than an agent.
    fn has_logic(&self, radio: usize) -> bool {
        self.vehicles.get(radio).is_some_and(|vehicle| vehicle.logic.is_some())
    }

    fn check(&mut self) {
        self.locate();
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        samples.extend((0..self.vehicles.len()).map(|i| self.sample(i)));
        self.observer.sample(self.now, &samples);
        self.samples = samples;
        self.push(self.now + CHECK_PERIOD, Scheduled::Check);
    }

    /// Brings `positions` up to the truth. It changes when a flight controller ticks, several datagrams apart.
    fn locate(&mut self) {
        let places = self.positions.iter_mut().zip(&mut self.is_stale);
        for ((position, is_stale), vehicle) in places.zip(&self.vehicles) {
            if std::mem::take(is_stale) {
                *position = vehicle.controller.place_in(&self.frame);
            }
        }
    }

    /// What the checkers see, where `positions` are up to date.
    fn sample(&self, i: usize) -> Sample {
        let motion = self.vehicles[i].controller.motion();
        let view = self.vehicles[i].agent.view();
        Sample {
            local: self.positions[i],
            velocity: motion.velocity,
            armed: motion.armed,
            landed: motion.landed,
            phase: self.phase(i),
            leader: view.swarm.leader,
            slot_offset: view.slot_offset_m.map(|o| o.extend(0.0)),
            heading_rad: motion.heading_rad,
            slot_in_heading: view.slot_in_heading_m,
        }
    }

    /// One input for one agent, and everything that it asks for.
    fn agent(&mut self, i: usize, input: Input<'_>) -> Option<Reply> {
        if self.vehicles[i].companion != Companion::Lives {
            return None;
        }
        let (now, vehicle, out) = (self.now, &mut self.vehicles[i], &mut self.outputs);
        vehicle.agent.handle(now, input, out);
        if let Some(record) = &mut self.record {
            record.handled(now, i, &input, &vehicle.agent, out);
        }
        if let Some(changes) = &mut self.changes {
            let stage = Stage::of(&vehicle.agent);
            if stage != vehicle.stage {
                vehicle.stage = stage;
                let Stage { state, reached } = stage;
                let position = vehicle.controller.truth().position;
                let absentees = vehicle.agent.absentees();
                let given_up = absentees.iter().filter(|a| !a.is_waited_for).map(|a| a.id).collect();
                changes.push(Change { at: now, vehicle: i, state, reached, position, given_up });
            }
        }
        if !out.autopilot.is_empty() {
            let (is_cut, _) = self.lines.lose(now, i);
            if is_cut || vehicle.guard.is_some() {
                // Lost on the line, or its port is the guardian's.
            } else if self.replies_only {
                self.waiting[i].extend_from_slice(&out.autopilot);
            } else {
                vehicle.controller.receive(&out.autopilot);
            }
            self.trace = mixed(self.trace, now, i, 2, &out.autopilot);
        }
        self.log.extend(out.log.drain(..).map(|entry| Logged { at: now, vehicle: i, entry }));
        let reply = out.reply.take();
        if !out.datagrams.is_empty() {
            self.locate();
        }
        let mut drafts = std::mem::take(&mut self.outputs.datagrams);
        for draft in &mut drafts {
            let datagram = self.keys.signer(i).seal(draft);
            self.trace = mixed(self.trace, now, i, 3, datagram);
            let bytes: Arc<[u8]> = Arc::from(datagram);
            if let Some(sent) = &mut self.sent {
                sent.push(Sent { at: now, vehicle: i, bytes: Arc::clone(&bytes) });
            }
            self.transmit(i, bytes);
        }
        if !drafts.is_empty() {
            self.carry();
        }
        self.rearm(i);
        reply
    }

    /// A radio sends, from where `positions` has it; [`World::carry`] follows.
    fn transmit(&mut self, radio: usize, bytes: Arc<[u8]>) {
        self.medium.transmit(self.now, radio, bytes, &self.positions, &mut self.received);
    }

    /// Brings the medium up to now: what it delivers arrives, and its next event is scheduled.
    fn carry(&mut self) {
        if !self.medium.looks_ahead() {
            self.advance_medium(self.now);
        }
        self.deliver();
        self.schedule_medium();
    }

    fn schedule_medium(&mut self) {
        let next = self.medium.poll_timeout();
        if next < self.medium_at && !self.medium.looks_ahead() {
            self.medium_at = next;
            self.push(next, Scheduled::Medium);
        }
    }

    /// Whether something arrives before the event at this time, or at it.
    fn look_ahead(&mut self, at: Instant) -> bool {
        if !self.medium.looks_ahead() || self.medium.poll_timeout() > at {
            return false;
        }
        self.advance_medium(at);
        self.deliver() || self.failure.is_some()
    }

    fn advance_medium(&mut self, until: Instant) {
        self.locate();
        self.medium.moved(self.now, &self.positions);
        if let Err(why) = self.medium.advance(until, &mut self.received) {
            self.failure.get_or_insert_with(|| format!("medium: {why}"));
        }
    }

    /// What the medium knows to arrive is scheduled; whether there was any.
    fn deliver(&mut self) -> bool {
        let mut received = std::mem::take(&mut self.received);
        let any = !received.is_empty();
        for Reception { at, from, to, bytes } in received.drain(..) {
            self.push(at.max(self.now), Scheduled::Arrival { from: Some(from), to, bytes });
        }
        self.received = received;
        any
    }

    /// From now on what an agent sends to its flight controller arrives when that has next sent something that
    /// the reference implementation's would have sent: there one thread reads a frame, then writes what is to be
    /// written. It delays an order by up to the time between two frames.
    pub fn send_replies_only(&mut self) {
        self.replies_only = true;
    }
    /// The time now.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// From now on this commands an aircraft, and not its agent, which receives and sends nothing more.
    pub fn replace_agent(&mut self, vehicle: usize, logic: Box<dyn Logic>) {
        let vehicle = &mut self.vehicles[vehicle];
        (vehicle.companion, vehicle.logic) = (Companion::Replaced, Some(logic));
    }
    /// What commands an aircraft instead of its agent, where something does.
    pub fn logic(&self, vehicle: usize) -> Option<&dyn Logic> {
        self.vehicles[vehicle].logic.as_deref()
    }
    /// Number of aircraft.
    pub fn count(&self) -> usize {
        self.vehicles.len()
    }
    /// Something goes wrong at a time; one that is past means now.
    ///
    /// # Panics
    /// If the fault names an aircraft that is not there.
    pub fn inflict(&mut self, at: Instant, fault: Fault) {
        if let Some(vehicle) = fault.vehicle() {
            assert!(vehicle < self.count(), "aircraft {vehicle} of {}", self.count());
        }
        self.faults.push(fault);
        let (at, index) = (at.max(self.now), self.faults.len() - 1);
        self.push(at, Scheduled::Fault { index });
        if let Some(until) = fault.until() {
            self.push(until.max(at), Scheduled::FaultEnds { index });
        }
    }
    /// Whether an aircraft's companion has died for good.
    pub fn is_dead(&self, vehicle: usize) -> bool {
        self.vehicles[vehicle].companion == Companion::Dead
    }
    /// Whether an aircraft's companion has died and no guardian flies it: it stays where its autopilot was
    /// told to be.
    pub fn is_left_alone(&self, vehicle: usize) -> bool {
        self.is_dead(vehicle) && self.vehicles[vehicle].guard.is_none()
    }
    /// Returns whether its guardian has the flight controller of an aircraft: its daemon commands
    /// nothing meanwhile.
    pub fn is_guarded(&self, vehicle: usize) -> bool {
        self.vehicles[vehicle].guard.as_ref().is_some_and(|guard| guard.has_flight_controller())
    }
    /// The true state of one aircraft.
    pub fn truth(&self, vehicle: usize) -> Truth {
        self.vehicles[vehicle].controller.truth()
    }
    /// Returns whether a failsafe of its flight controller chose the present mode of one aircraft.
    pub fn is_in_failsafe_mode(&self, vehicle: usize) -> bool {
        self.vehicles[vehicle].controller.is_in_failsafe_mode()
    }
    /// Returns the true motion of one aircraft: what a checker reads at every step.
    pub fn motion(&self, vehicle: usize) -> Motion {
        self.vehicles[vehicle].controller.motion()
    }
    /// Returns the true charge of one aircraft's battery, per cent; `None` of a program outside.
    pub fn charge_percent(&self, vehicle: usize) -> Option<f64> {
        self.vehicles[vehicle].controller.charge_percent()
    }
    /// Where one aircraft truly is, metres east, north and up of the world's origin.
    pub fn place(&self, vehicle: usize) -> DVec3 {
        self.positions[vehicle]
    }
    /// One aircraft's agent, to read its state. That of a dead companion stays as it was last.
    pub fn agent_of(&self, vehicle: usize) -> &Agent {
        &self.vehicles[vehicle].agent
    }
    /// The operator commands one aircraft.
    pub fn command(&mut self, vehicle: usize, id: &str, command: Command) -> Reply {
        self.answered(vehicle, Input::Operator { id, command })
    }
    /// The operator hands one aircraft a mission.
    pub fn mission(&mut self, vehicle: usize, points: &[Point]) -> Reply {
        self.answered(vehicle, Input::Mission(points))
    }
    /// The operator hands one aircraft a mission with what it states besides its waypoints.
    pub fn mission_with(&mut self, vehicle: usize, points: &[Point], extras: &MissionExtras) -> Reply {
        match extras.is_none() {
            true => self.mission(vehicle, points),
            false => self.answered(vehicle, Input::MissionWith(points, extras)),
        }
    }
    /// A console takes the lease of one aircraft (true), or none holds it any more.
    pub fn lease(&mut self, vehicle: usize, is_held: bool) {
        self.agent(vehicle, Input::Lease(is_held));
    }
    fn answered(&mut self, vehicle: usize, input: Input<'_>) -> Reply {
        if self.vehicles[vehicle].companion != Companion::Lives {
            let why = match self.vehicles[vehicle].companion {
                Companion::Replaced => "no agent commands it",
                Companion::Lives | Companion::Restarts | Companion::Dead => "its companion is dead",
            };
            let why = Text::try_from(why).unwrap_or_default();
            return Reply::Refused(Rejection::Disengaged(why));
        }
        self.agent(vehicle, input).expect("the agent answers commands and missions")
    }
    /// What people see of one aircraft.
    pub fn status(&self, vehicle: usize) -> Status {
        self.vehicles[vehicle].agent.status(self.now)
    }
    /// What one aircraft's avoidance came to, if it flies a protocol that has one.
    pub fn avoidance_tally(&self, vehicle: usize) -> Option<AvoidanceTally> {
        self.vehicles[vehicle].agent.view().avoidance_tally
    }
    /// How far one aircraft's flight has come. What commands it instead of an agent moves it until it ends.
    pub fn phase(&self, vehicle: usize) -> Phase {
        match &self.vehicles[vehicle].logic {
            Some(logic) if logic.has_ended() => Phase::Finished,
            Some(_) => Phase::Moving,
            None => self.vehicles[vehicle].agent.view().phase,
        }
    }
    /// Distances to other aircraft as one aircraft's monitor has them.
    pub fn separation_figures(&self, vehicle: usize) -> Figures {
        self.vehicles[vehicle].agent.separation_figures()
    }
    /// Why the world stands still, if an autopilot cannot fly on.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
    /// One aircraft's simulated flight controller, to make it fail otherwise than by a [`Fault`].
    ///
    /// # Panics
    /// If another autopilot flies it.
    pub fn controller(&mut self, vehicle: usize) -> &mut FlightController {
        self.note_touched(vehicle);
        let simulated = self.vehicles[vehicle].controller.simulated();
        simulated.expect("a simulated flight controller")
    }
    /// Takes the datagrams that were sent since this was called last. Keeping them begins with the first
    /// call.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        self.sent.replace(Vec::new()).unwrap_or_default()
    }
    /// Takes the changes of state since this was called last. Keeping them begins with the first call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        if self.changes.is_none() {
            for vehicle in &mut self.vehicles {
                vehicle.stage = Stage::of(&vehicle.agent);
            }
        }
        self.changes.replace(Vec::new()).unwrap_or_default()
    }
    /// The checkers.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }
    /// What the channel did.
    pub fn channel_counters(&self) -> Counters {
        self.medium.counters()
    }
    /// What became of every datagram, where the medium models frames.
    pub fn medium_statistics(&self) -> Option<&Statistics> {
        self.medium.statistics()
    }
    /// The flight is over: what the medium has not simulated yet until now happens, and no aircraft receives it.
    pub fn end_medium(&mut self) {
        if let Err(why) = self.medium.end(self.now) {
            self.failure.get_or_insert_with(|| format!("medium: {why}"));
        }
    }
    /// How late receptions were dated, where the medium is a simulator of its own.
    pub fn lateness(&self) -> Option<Lateness> {
        self.medium.lateness()
    }
    /// What traffic beside that of the aircraft has brought, where the medium has any.
    pub fn flows(&self) -> &[FlowFigures] {
        self.medium.flows()
    }
    /// What the channel lost, by distance.
    pub fn losses_by_distance(&self) -> &[Losses; REACHES] {
        self.medium.losses_by_distance()
    }
    /// Everything that agents logged, oldest first.
    pub fn log(&self) -> &[Logged] {
        &self.log
    }
    /// Lines of at least this severity.
    pub fn log_from(&self, severity: Severity) -> impl Iterator<Item = &Logged> {
        self.log.iter().filter(move |l| l.entry.severity >= severity)
    }
    /// A number over every byte that crossed a border, with its time: equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }
}

/// Mixes what crossed a border into a trace (FNV-1a).
fn mixed(trace: u64, now: Instant, vehicle: usize, border: u8, bytes: &[u8]) -> u64 {
    let time = now.as_micros().to_le_bytes();
    let border = [vehicle as u8, border];
    let mix = |hash: u64, bytes: &[u8]| {
        bytes.iter().fold(hash, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    mix(mix(mix(trace, &time), &border), bytes)
}
