//! The one owner of the fleet's picture. Aircraft, deliveries and consoles send it messages; it answers
//! and pushes. It never waits for any of them: consoles read from a bounded broadcast, and one that falls
//! behind is given a fresh picture.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};
use wingbeat_api::{
    Actions, AircraftChange, AircraftStatus, AlarmsAcknowledge, Command, CommandProgress, CommandStage,
    FleetAircraft, FleetAlarms, FleetCommand, FleetCommandNote, FleetCommandReply, FleetCommandRequest,
    FleetLogLine, FleetPicture, FleetUpdate, Identity, LogLine, MissionUpload, Severity, VehicleOutcome,
};

use wingbeat_console::{Answer, Press};
use wingbeat_wire::{CommandId, OrderProgress};

use crate::alarms::Alarms;
use crate::checklist::{self, Accepted};
use crate::client;
use crate::deliver::Delivery;
use crate::delta;
use crate::desk::Desk;
use crate::fleet::Fleet;
use crate::ledger::{self, Known, Lane, Ledger, Order, addressed};
use crate::listen::Listener;
use crate::refused::Refused;

/// How often links are aged, and at most so long an aircraft's answer to a recovery waits before consoles are told.
const TICK: Duration = Duration::from_millis(50);
/// Between two updates to the consoles: every fourth tick.
const PUSH_EVERY: Duration = Duration::from_millis(200);
/// Without any change a console still receives a message this often, which shows that the service runs.
const PULSE_EVERY: Duration = Duration::from_secs(1);
/// Members of a status that no one reads five times a second: where nothing but numbers of theirs has changed, they wait for the pulse.
const ONCE_A_SECOND: [&str; 5] = ["battery", "log", "radio", "time_ms", "wind"];
/// Before a mission is asked for again while there is no answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Before it is asked for at the next holder when one cannot give it.
const NEXT_HOLDER_AFTER: Duration = Duration::from_millis(300);
/// Pushes that a console may be behind: ten seconds and some log lines.
const PUSHES_KEPT: usize = 128;
/// A command's id.
const MAX_ID_CHARACTERS: usize = 64;
/// Why a command was given.
const MAX_NOTE_CHARACTERS: usize = 200;
/// Lines of the log that a console is given when it connects.
const LOG_KEPT: usize = 256;

/// What aircraft and deliveries report.
pub(crate) enum Message {
    Identified {
        index: usize,
        identity: Identity,
    },
    Status {
        index: usize,
        status: Box<AircraftStatus>,
    },
    Log {
        index: usize,
        line: LogLine,
    },
    Troubled {
        index: usize,
        reason: String,
    },
    Mission {
        hash: String,
        answer: Result<MissionUpload, String>,
    },
    Delivered {
        id: String,
        vehicle: String,
        outcome: VehicleOutcome,
        detail: String,
    },
    /// By radio.
    Answered(Answer),
}

/// What consoles ask.
#[derive(Debug)]
pub(crate) enum Request {
    Picture(oneshot::Sender<FleetPicture>),
    Subscribe(oneshot::Sender<Result<Subscription, Refused>>),
    Command(FleetCommandRequest, String, oneshot::Sender<Result<Admitted, Refused>>),
    Locate(String, oneshot::Sender<Result<String, Refused>>),
    /// One aircraft by its id, with everything.
    Aircraft(String, oneshot::Sender<Result<FleetAircraft, Refused>>),
    Note(FleetCommandNote, oneshot::Sender<Result<(), Refused>>),
    Acknowledge(AlarmsAcknowledge, String, oneshot::Sender<Result<FleetAlarms, Refused>>),
    /// An aircraft that was found.
    Found(Found),
    /// Whether one of these addresses is followed.
    Follows(Vec<String>, oneshot::Sender<bool>),
    /// Id and address of each aircraft that is one.
    Addresses(oneshot::Sender<Vec<(String, String)>>),
}

/// An aircraft that answered at an address.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) address: String,
    pub(crate) id: String,
}

/// One event for every console, already in its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub(crate) event: &'static str,
    pub(crate) data: Arc<str>,
}

/// A console's start: the picture, and everything after it.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) picture: Push,
    pub(crate) pushes: broadcast::Receiver<Push>,
}

/// A command that was taken, or had been before.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) reply: FleetCommandReply,
    pub(crate) repeated: bool,
}

/// What a picture says of the service itself.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The name by which it holds leases.
    pub(crate) console: String,
    /// Whether it serves a map of the ground.
    pub(crate) has_map: bool,
    /// Whether it serves that tile by tile.
    pub(crate) has_tiles: bool,
    /// What finds aircraft by their datagrams, once it does.
    pub(crate) listener: Arc<OnceLock<Listener>>,
    /// What has to be ticked before *Setup* and *Start*.
    pub(crate) checklist: Arc<checklist::Desk>,
}

/// How an aircraft is followed.
#[derive(Clone, Debug)]
pub(crate) struct Following {
    pub(crate) clients: client::Clients,
    /// The name by which leases are held; none where this console may hold none.
    pub(crate) lease: Option<String>,
    pub(crate) desk: Option<Arc<Desk>>,
    /// The addresses of those that are to show the effect of a recovery command: they are asked, besides.
    pub(crate) closely: watch::Sender<BTreeSet<String>>,
}

impl Following {
    /// Begins what receives an aircraft's events.
    pub(crate) fn begin(
        &self,
        tasks: &mut JoinSet<()>,
        index: usize,
        address: &str,
        owner: &mpsc::Sender<Message>,
    ) {
        let (clients, address) = (self.clients.clone(), address.to_owned());
        tasks.spawn(crate::follow::follow(clients, index, address, owner.clone(), self.closely.subscribe()));
    }

    /// Begins what holds the lease of the aircraft with this id. It renews it by the connections that carry the aircraft's commands,
    /// so that one of them is open when a command is to go.
    fn hold(&self, tasks: &mut JoinSet<()>, address: &str, id: &str) -> Option<AbortHandle> {
        let (name, client) = (self.lease.clone()?, self.clients.of(id).ok()?);
        Some(tasks.spawn(crate::lease::hold(client, address.to_owned(), name, self.clients.tokens().clone())))
    }
}

/// What every console has been sent: the next update says what is different.
#[derive(Default)]
struct Sent {
    /// By address.
    aircraft: BTreeMap<String, serde_json::Value>,
    commands: Vec<FleetCommand>,
    /// The revision of the alarms.
    alarms: u64,
    actions: Actions,
    /// The checklist, and its version.
    checklist: (u64, Option<serde_json::Value>),
}

/// The owner's state.
pub(crate) struct Owner {
    about: About,
    started_unix_ms: u64,
    sent: Sent,
    log: VecDeque<FleetLogLine>,
    fleet: Fleet,
    ledger: Ledger,
    alarms: Alarms,
    clients: client::Clients,
    /// What signs orders, and repeats them by radio.
    desk: Option<Arc<Desk>>,
    following: Following,
    pushes: broadcast::Sender<Push>,
    /// For the tasks that the owner starts.
    messages: mpsc::Sender<Message>,
    tasks: JoinSet<()>,
    sending: BTreeMap<(String, Lane), AbortHandle>,
    /// Of each aircraft that has been identified: its id, and what holds its lease.
    leases: BTreeMap<usize, (String, Option<AbortHandle>)>,
    /// Missions that were asked for: how often, and when again.
    asked: BTreeMap<String, (usize, Instant)>,
    /// A recovery has come to its end: consoles are told with the next tick.
    is_urgent: bool,
    last_push: Instant,
    last_pulse: Instant,
}

impl Owner {
    /// An owner of a fleet of which no status was received yet.
    pub(crate) fn new(
        about: About,
        fleet: Fleet,
        clients: client::Clients,
        following: Following,
        messages: mpsc::Sender<Message>,
        now: Instant,
    ) -> Self {
        let desk = following.desk.clone();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_unix_ms = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX);
        Self {
            about,
            started_unix_ms: started_unix_ms.saturating_sub(fleet.time_ms(now)),
            sent: Sent::default(),
            log: VecDeque::new(),
            fleet,
            ledger: Ledger::default(),
            alarms: Alarms::default(),
            clients,
            desk,
            following,
            pushes: broadcast::Sender::new(PUSHES_KEPT),
            messages,
            tasks: JoinSet::new(),
            sending: BTreeMap::new(),
            leases: BTreeMap::new(),
            asked: BTreeMap::new(),
            is_urgent: false,
            last_push: now,
            last_pulse: now,
        }
    }

    /// Serves until every console's handle is gone.
    pub(crate) async fn run(
        mut self,
        mut requests: mpsc::Receiver<Request>,
        mut messages: mpsc::Receiver<Message>,
    ) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // The operator first, then time, then the stream of statuses, which never ends.
            tokio::select! {
                biased;
                request = requests.recv() => match request {
                    Some(request) => self.answer(request, Instant::now()),
                    None => return,
                },
                _ = tick.tick() => self.tick(Instant::now()),
                Some(message) = messages.recv() => self.take(message, Instant::now()),
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    fn answer(&mut self, request: Request, now: Instant) {
        // An asker that has gone away needs no answer.
        match request {
            Request::Picture(reply) => drop(reply.send(self.picture(now))),
            Request::Subscribe(reply) => drop(reply.send(self.subscribe(now))),
            Request::Command(request, by, reply) => drop(reply.send(self.command(&request, by, now))),
            Request::Found(found) => self.found(&found),
            Request::Follows(addresses, reply) => {
                let follows = self.fleet.addresses().any(|known| addresses.iter().any(|one| one == known));
                let _ = reply.send(follows);
            }
            Request::Addresses(reply) => drop(reply.send(self.addresses())),
            Request::Locate(id, reply) => drop(reply.send(self.locate(&id).map(str::to_owned))),
            Request::Aircraft(id, reply) => drop(reply.send(self.aircraft(&id, now))),
            Request::Note(note, reply) => drop(reply.send(self.note(note))),
            Request::Acknowledge(request, by, reply) => {
                let at_ms = self.fleet.time_ms(now);
                drop(reply.send(self.alarms.acknowledge(&request, &by, at_ms)));
            }
        }
    }

    fn found(&mut self, Found { address, id }: &Found) {
        let Some(index) = self.fleet.add(address, id) else { return };
        tracing::info!("aircraft {id} was found at {address}");
        self.following.begin(&mut self.tasks, index, address, &self.messages);
    }

    fn addresses(&self) -> Vec<(String, String)> {
        let address = |id: &str| Some((id.to_owned(), self.fleet.find(id)?.ok()?.to_owned()));
        self.fleet.ids().filter_map(address).collect()
    }

    fn take(&mut self, message: Message, now: Instant) {
        match message {
            Message::Identified { index, identity } => {
                self.lease(index, &identity.id);
                let change = self.fleet.identified(index, identity);
                if let Some(id) = change.duplicate
                    && let Some(Err(problem)) = self.fleet.find(&id)
                {
                    self.log(index, Severity::Error, &problem);
                    let orders = self.ledger.give_up(&id, &problem);
                    self.carry_out(orders);
                }
                if let Some(id) = change.newcomer {
                    let order = self.ledger.for_newcomer(&id, self.fleet.time_ms(now));
                    self.carry_out(order);
                }
            }
            Message::Status { index, status } => {
                let (vehicle, progress) = (status.id.clone(), status.commands.clone());
                let is_down = self.about.checklist.observe(&status);
                let change = self.fleet.status(index, *status, now);
                if is_down {
                    self.log(
                        index,
                        Severity::Info,
                        "its flight is over: its ticks of the checklist are cleared",
                    );
                }
                // Only from the aircraft that the command was sent to.
                if self.fleet.id_at(index) == Some(vehicle.as_str())
                    && matches!(self.fleet.find(&vehicle), Some(Ok(_)))
                {
                    let mut orders = Vec::new();
                    self.ledger.progressed(&vehicle, &progress, &mut orders);
                    self.carry_out(orders);
                }
                if change.link_up {
                    self.log(index, Severity::Info, "link between ground and aircraft is up");
                }
            }
            Message::Log { index, line } => {
                self.fleet.listened(index, now);
                if let Some(id) = self.fleet.id_at(index).map(str::to_owned) {
                    self.keep(LogLine { id, ..line }, now);
                }
            }
            Message::Troubled { index, reason } => self.fleet.troubled(index, reason),
            Message::Mission { hash, answer: Ok(mission) } => {
                self.asked.remove(&hash);
                self.fleet.mission(hash, mission);
            }
            Message::Mission { hash, answer: Err(reason) } => {
                tracing::debug!(hash, reason, "a mission could not be read");
                // The next holder, soon: it may be the one that was given it.
                if let Some((_, again)) = self.asked.get_mut(&hash) {
                    *again = now + NEXT_HOLDER_AFTER;
                }
            }
            Message::Delivered { id, vehicle, outcome, detail } => {
                // A recovery command is repeated until its effect is seen; of all others the answer is the end.
                let is_recovery =
                    self.ledger.command_of(&id).is_some_and(|c| ledger::lane(c) == Lane::Recovery);
                let goes_on =
                    outcome == VehicleOutcome::Sending || outcome == VehicleOutcome::Accepted && is_recovery;
                if let Some(desk) = self.desk.as_ref().filter(|_| !goes_on) {
                    desk.end(&id, &vehicle);
                }
                self.ledger.delivered(&id, &vehicle, outcome, detail);
            }
            Message::Answered(answer) => self.answered(&answer),
        }
    }

    /// Holds the lease of what answers at that place of the fleet.
    fn lease(&mut self, index: usize, id: &str) {
        if self.leases.get(&index).is_some_and(|(held, _)| held == id) {
            return;
        }
        let Some(address) = self.fleet.address(index) else { return };
        let holding = self.following.hold(&mut self.tasks, address, id);
        if let Some((_, Some(of_another))) = self.leases.insert(index, (id.to_owned(), holding)) {
            of_another.abort();
        }
    }

    /// What an aircraft answers by radio counts like what its status shows.
    fn answered(&mut self, Answer { vehicle, id, progress }: &Answer) {
        let Some(command) = self.ledger.command_of(id) else { return };
        let (stage, detail) = match progress {
            OrderProgress::Accepted => (CommandStage::Accepted, "accepted, received by radio"),
            OrderProgress::EffectSeen => (CommandStage::EffectSeen, "effect seen, received by radio"),
            OrderProgress::Failed => (CommandStage::Failed, "failed, received by radio"),
            OrderProgress::Refused => (CommandStage::Failed, "refused, received by radio"),
        };
        let step = CommandProgress { id: id.as_str().to_owned(), command, stage, detail: detail.to_owned() };
        let mut orders = Vec::new();
        self.ledger.progressed(&vehicle.to_string(), &[step], &mut orders);
        self.carry_out(orders);
    }

    fn tick(&mut self, now: Instant) {
        for index in self.fleet.age(now) {
            self.log(index, Severity::Warning, "link between ground and aircraft is lost");
        }
        let over = self.ledger.expire(self.fleet.time_ms(now));
        self.carry_out(over);
        self.alarms.judge(self.fleet.time_ms(now), || self.fleet.all(now));
        self.ask_for_missions(now);
        self.look_closely();
        let every = if std::mem::take(&mut self.is_urgent) { TICK } else { PUSH_EVERY };
        // A tick is a little early or late.
        if now.saturating_duration_since(self.last_push) + TICK / 2 < every {
            return;
        }
        self.last_push = now;
        let pulse = now.saturating_duration_since(self.last_pulse) >= PULSE_EVERY;
        if pulse {
            self.last_pulse = now;
            self.fleet.show_ages();
        }
        if self.pushes.receiver_count() == 0 {
            // Missions that no aircraft holds are forgotten all the same.
            self.fleet.take_redraw();
        } else {
            self.flush(now, pulse);
        }
    }

    /// Sends every console what has changed; with `pulse` also where nothing has.
    fn flush(&mut self, now: Instant, pulse: bool) {
        if self.fleet.take_redraw() {
            self.redraw(now);
            if let Some(picture) = self.picture_push(now) {
                let _ = self.pushes.send(picture);
            }
            return;
        }
        let mut aircraft = Vec::new();
        for changed in self.fleet.take_changed(now) {
            let (address, mut new) = (changed.address.clone(), streamed(changed));
            let old = self.sent.aircraft.get(&address).unwrap_or(&serde_json::Value::Null);
            if !pulse {
                for member in ONCE_A_SECOND {
                    delta::keep_numbers(&old["status"][member], &mut new["status"], member);
                }
            }
            if let Some(change) = delta::change(old, &new) {
                self.sent.aircraft.insert(address.clone(), new);
                aircraft.push(AircraftChange { address, change });
            }
        }
        let shown = self.ledger.shown();
        let commands: Vec<_> =
            shown.iter().filter(|command| !self.sent.commands.contains(command)).cloned().collect();
        self.sent.commands = shown;
        let alarms = self.alarms.since(self.sent.alarms);
        self.sent.alarms = self.alarms.revision();
        let now_possible = self.actions();
        let actions = (now_possible != self.sent.actions).then(|| now_possible.clone());
        self.sent.actions = now_possible;
        let listening = self.about.listener.get().filter(|_| pulse).map(Listener::shown);
        let corrections = self.desk.as_ref().filter(|_| pulse).and_then(|desk| desk.base_station());
        let checklist = self.checklist_change();
        let changed = !aircraft.is_empty() || !commands.is_empty() || !alarms.is_empty();
        if pulse || changed || actions.is_some() || checklist.is_some() {
            let time_ms = self.fleet.time_ms(now);
            self.push(
                "update",
                &FleetUpdate {
                    time_ms,
                    aircraft,
                    commands,
                    alarms,
                    corrections,
                    listening,
                    checklist,
                    actions,
                },
            );
        }
    }

    /// What consoles have after the next picture.
    fn redraw(&mut self, now: Instant) {
        self.fleet.take_changed(now);
        let all = self.fleet.all(now).into_iter();
        self.sent = Sent {
            aircraft: all.map(|aircraft| (aircraft.address.clone(), streamed(aircraft))).collect(),
            commands: self.ledger.shown(),
            alarms: self.alarms.revision(),
            actions: self.actions(),
            checklist: (self.about.checklist.version(), self.checklist_value()),
        };
    }

    /// The checklist as the event stream carries it.
    fn checklist_value(&self) -> Option<serde_json::Value> {
        self.about.checklist.shown().and_then(|shown| serde_json::to_value(shown).ok())
    }

    /// What of it consoles have not been sent.
    fn checklist_change(&mut self) -> Option<serde_json::Value> {
        let version = self.about.checklist.version();
        if version == self.sent.checklist.0 {
            return None;
        }
        let new = self.checklist_value();
        let old = std::mem::replace(&mut self.sent.checklist, (version, new.clone())).1;
        delta::change(&old.unwrap_or_default(), &new?)
    }

    /// Returns what the operator can do now: nothing that an unticked item or another console stands before.
    fn actions(&self) -> Actions {
        let mut actions = self.fleet.actions(&self.ledger);
        let missing = |command| {
            let due = self.fleet.due(&self.ledger, command);
            let elsewhere = self.fleet.in_charge_of_another(&self.about.console, &due);
            if elsewhere.is_empty() {
                return self.about.checklist.missing(command, &self.fleet.named(&due));
            }
            elsewhere
        };
        if actions.setup {
            actions.setup_blocked = missing(Command::Setup);
            actions.setup = actions.setup_blocked.is_empty();
        }
        if actions.start {
            actions.start_blocked = missing(Command::Start);
            actions.start = actions.start_blocked.is_empty();
        }
        actions
    }

    /// The picture as far as the consoles have been sent it: the next update counts from this one.
    fn picture_push(&self, now: Instant) -> Option<Push> {
        let order = self.fleet.addresses();
        let aircraft = order.filter_map(|address| self.sent.aircraft.get(address)).cloned().collect();
        let rest = FleetPicture {
            aircraft: Vec::new(),
            commands: self.sent.commands.clone(),
            actions: self.sent.actions.clone(),
            ..self.picture(now)
        };
        let mut picture = serde_json::to_value(rest).unwrap_or_default();
        picture["aircraft"] = serde_json::Value::Array(aircraft);
        if let Some(checklist) = &self.sent.checklist.1 {
            picture["checklist"] = checklist.clone();
        }
        encode("picture", &picture)
    }

    fn picture(&self, now: Instant) -> FleetPicture {
        FleetPicture {
            time_ms: self.fleet.time_ms(now),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            console: self.about.console.clone(),
            started_unix_ms: self.started_unix_ms,
            has_map: self.about.has_map,
            has_tiles: self.about.has_tiles,
            corrections: self.desk.as_ref().and_then(|desk| desk.base_station()),
            listening: self.about.listener.get().map(Listener::shown),
            checklist: self.about.checklist.shown(),
            aircraft: self.fleet.all(now),
            missions: self.fleet.missions(),
            commands: self.ledger.shown(),
            alarms: self.alarms.shown(),
            actions: self.actions(),
            log: self.log.iter().cloned().collect(),
        }
    }

    fn subscribe(&mut self, now: Instant) -> Result<Subscription, Refused> {
        if self.pushes.receiver_count() == 0 {
            self.redraw(now);
        } else {
            self.flush(now, false);
        }
        let picture = self.picture_push(now).ok_or_else(|| Refused::busy("no picture".to_owned()))?;
        Ok(Subscription { picture, pushes: self.pushes.subscribe() })
    }

    fn aircraft(&self, id: &str, now: Instant) -> Result<FleetAircraft, Refused> {
        let of = |aircraft: &FleetAircraft| aircraft.status.as_ref().is_some_and(|status| status.id == id);
        let found = self.fleet.all(now).into_iter().find(of);
        found.ok_or_else(|| {
            Refused::not_found(format!("vehicle: no status of an aircraft with the id {id:?} is known"))
        })
    }

    fn note(&mut self, FleetCommandNote { id, note }: FleetCommandNote) -> Result<(), Refused> {
        let found = note.chars().count();
        if found > MAX_NOTE_CHARACTERS || note.chars().any(char::is_control) {
            return Err(Refused::bad_request(format!(
                "note: found {found} characters, expected at most {MAX_NOTE_CHARACTERS}, none of them a control character"
            )));
        }
        tracing::info!(id, note, "why a command was given");
        match self.ledger.note(&id, note) {
            true => Ok(()),
            false => Err(Refused::not_found(format!("id: no command {id:?} is shown"))),
        }
    }

    fn command(
        &mut self,
        request: &FleetCommandRequest,
        by: String,
        now: Instant,
    ) -> Result<Admitted, Refused> {
        // What an aircraft would refuse must not be accepted here: a stop would never leave.
        let is_visible = request.id.bytes().all(|byte| byte.is_ascii_graphic());
        if request.id.is_empty() || request.id.len() > MAX_ID_CHARACTERS || !is_visible {
            let found: String = request.id.chars().take(MAX_ID_CHARACTERS).collect();
            return Err(Refused::bad_request(format!(
                "id: found {found:?} ({} bytes), expected 1 to {MAX_ID_CHARACTERS} visible ASCII characters",
                request.id.len()
            )));
        }
        match self.ledger.known(request) {
            Some(Known::Same { vehicles }) => {
                return Ok(Admitted {
                    reply: FleetCommandReply { id: request.id.clone(), vehicles },
                    repeated: true,
                });
            }
            Some(Known::Different { command, asked }) => {
                return Err(Refused::conflict(format!(
                    "id {:?}: found {} for {}, expected {command} for {}, which came under this id before: a new command \
                     needs a new id",
                    request.id,
                    request.command,
                    addressed(&request.vehicles),
                    addressed(&asked),
                )));
            }
            None => {}
        }
        let known: Vec<String> = self.fleet.ids().map(str::to_owned).collect();
        let mut vehicles = request.vehicles.clone();
        vehicles.sort();
        vehicles.dedup();
        let together = matches!(request.command, Command::Setup | Command::Start);
        if together && !vehicles.is_empty() && vehicles != known && !self.fleet.each_alone(&vehicles) {
            return Err(Refused::bad_request(format!(
                "vehicles: found {} of {} aircraft, expected none or all: {} is for the whole swarm",
                vehicles.len(),
                known.len(),
                request.command
            )));
        }
        let swarm = match request.command {
            Command::Exclude { member } => {
                self.fleet.in_swarm_with(&member.to_string()).map_err(Refused::conflict)?
            }
            _ => known,
        };
        let blocked = if together {
            self.fleet.blocked(&self.ledger, request.command, &vehicles)
        } else {
            String::new()
        };
        if !blocked.is_empty() {
            return Err(Refused::conflict(blocked));
        }
        if together {
            let due = self.fleet.due(&self.ledger, request.command);
            let named = |id: &String| vehicles.is_empty() || vehicles.contains(id);
            vehicles = due.into_iter().filter(named).collect();
        } else if vehicles.is_empty() {
            vehicles = swarm;
        }
        let elsewhere = match together {
            true => self.fleet.in_charge_of_another(&self.about.console, &vehicles),
            false => String::new(),
        };
        if !elsewhere.is_empty() {
            return Err(Refused::conflict(elsewhere).with_code("lease"));
        }
        // Of the two commands that begin a flight alone: an aircraft is stopped, held, landed and brought back whatever is ticked.
        let missing = match together {
            true => self.about.checklist.missing(request.command, &self.fleet.named(&vehicles)),
            false => String::new(),
        };
        if !missing.is_empty() {
            return Err(Refused::conflict(missing).with_code("checklist"));
        }
        if vehicles.is_empty() {
            return Err(Refused::conflict(
                "no status of any aircraft received yet, expected at least one".to_owned(),
            ));
        }
        // Those that are there are commanded even if others are not: in an emergency that is what counts.
        let unknown = |id: &str| format!("no aircraft with the id {id:?} is known");
        if let [id, ..] = vehicles.as_slice()
            && vehicles.iter().all(|id| self.fleet.find(id).is_none())
        {
            return Err(Refused::not_found(unknown(id)));
        }
        let targets = vehicles.iter().map(|id| {
            let commandable = self.fleet.find(id).unwrap_or_else(|| Err(unknown(id)));
            (id.clone(), commandable.map(|_| ()))
        });
        let targets: Vec<_> = targets.collect();
        let orders = self.ledger.admit(request, self.fleet.time_ms(now), targets);
        if together {
            let aircraft = checklist::checked(self.fleet.all(now), &vehicles);
            let (command, id) = (request.command, request.id.as_str());
            self.about.checklist.accepted(Accepted { command, id, by: &by, aircraft });
        }
        self.ledger.attribute(&request.id, by);
        tracing::info!(
            id = request.id,
            command = %request.command,
            vehicles = vehicles.len(),
            "command"
        );
        self.carry_out(orders);
        Ok(Admitted { reply: FleetCommandReply { id: request.id.clone(), vehicles }, repeated: false })
    }

    fn locate(&self, id: &str) -> Result<&str, Refused> {
        match self.fleet.find(id) {
            None => Err(Refused::not_found(format!("vehicle: no aircraft with the id {id:?} is known"))),
            Some(Err(problem)) => Err(Refused::conflict(problem)),
            Some(Ok(address)) => Ok(address),
        }
    }

    fn carry_out(&mut self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            match order {
                Order::Stop { vehicle, lane } => {
                    self.is_urgent |= lane == Lane::Recovery;
                    if let Some(desk) = &self.desk {
                        desk.stop(&vehicle, lane);
                    }
                    if let Some(delivery) = self.sending.remove(&(vehicle, lane)) {
                        delivery.abort();
                    }
                }
                Order::Send { id, command, vehicle } => {
                    // Ids were checked when the command was taken.
                    let Ok(id) = CommandId::try_from(id.as_str()) else { continue };
                    let (limit, owner) = (ledger::time_to_live(command), self.messages.clone());
                    let (lane, desk) = (ledger::lane(command), self.desk.clone());
                    let flight = match lane {
                        Lane::Exclusion(_) => self.fleet.flight_of(&vehicle),
                        Lane::Normal | Lane::Recovery => 0,
                    };
                    let press = Press { id, command, flight };
                    // Whatever answers at its address.
                    if let Some(desk) = &desk {
                        desk.begin(&press, &vehicle, limit);
                    }
                    let reached = match (self.fleet.find(&vehicle), self.clients.of(&vehicle)) {
                        (Some(Ok(address)), Ok(client)) => Ok((address.to_owned(), client)),
                        (Some(Err(problem)), _) | (Some(Ok(_)), Err(problem)) => Err(problem),
                        (None, _) => Err("no aircraft answers with this id".to_owned()),
                    };
                    let (address, client) = match reached {
                        Ok(reached) => reached,
                        // The radio may repeat a recovery command: its end is not known yet.
                        Err(problem) if lane == Lane::Recovery => {
                            let detail = format!("not sent by network: {problem}");
                            let id = press.id.as_str();
                            self.ledger.delivered(id, &vehicle, VehicleOutcome::Sending, detail);
                            continue;
                        }
                        Err(problem) => {
                            let detail = format!("not sent: {problem}");
                            let id = press.id.as_str();
                            self.ledger.delivered(id, &vehicle, VehicleOutcome::Failed, detail);
                            continue;
                        }
                    };
                    let tokens = self.clients.tokens().clone();
                    let vehicle_id = vehicle.clone();
                    let delivery =
                        Delivery { client, address, vehicle: vehicle_id, press, desk, tokens, limit, owner };
                    let task = self.tasks.spawn(delivery.run());
                    if let Some(older) = self.sending.insert((vehicle, lane), task) {
                        older.abort();
                    }
                }
            }
        }
    }

    /// At the aircraft to which a recovery command is on its way.
    fn look_closely(&self) {
        let recovering =
            self.sending.iter().filter(|((_, lane), task)| *lane == Lane::Recovery && !task.is_finished());
        let at = recovering.filter_map(|((vehicle, _), _)| Some(self.fleet.find(vehicle)?.ok()?.to_owned()));
        let at: BTreeSet<_> = at.collect();
        self.following.closely.send_if_modified(|now| {
            let is_other = *now != at;
            *now = at;
            is_other
        });
    }

    fn ask_for_missions(&mut self, now: Instant) {
        let missing = self.fleet.missing_missions();
        self.asked.retain(|hash, _| missing.contains_key(hash));
        for (hash, holders) in missing {
            let (times, again) = self.asked.get(&hash).copied().unwrap_or((0, now));
            let Some(address) =
                holders.get(times % holders.len()).and_then(|index| self.fleet.address(*index))
            else {
                continue;
            };
            if now < again {
                continue;
            }
            let (address, owner) = (address.to_owned(), self.messages.clone());
            let client = holders.get(times % holders.len()).and_then(|index| self.fleet.id_at(*index));
            let Some(Ok(client)) = client.map(|id| self.clients.of(id)) else { continue };
            // An attempt takes two answers at most and so ends before the next one begins.
            self.asked.insert(hash.clone(), (times + 1, now + ASK_AGAIN_AFTER));
            self.tasks.spawn(async move {
                let answer = client::mission(&client, &address, &hash).await;
                let _ = owner.send(Message::Mission { hash, answer }).await;
            });
        }
    }

    /// A line of the ground service about an aircraft.
    fn log(&mut self, index: usize, severity: Severity, text: &str) {
        let Some((id, name, time_ms)) = self.fleet.introduce(index) else { return };
        tracing::info!(id, name, text, "aircraft");
        self.keep(LogLine { id, time_ms, severity, text: format!("{name}: {text}") }, Instant::now());
    }

    /// For those that connect later, and to the consoles that there are.
    fn keep(&mut self, line: LogLine, now: Instant) {
        let line = FleetLogLine { at_ms: self.fleet.time_ms(now), line };
        self.push("log", &line);
        if self.log.len() == LOG_KEPT {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    fn push(&self, event: &'static str, value: &impl serde::Serialize) {
        if let Some(push) = encode(event, value) {
            // No console is no error.
            let _ = self.pushes.send(push);
        }
    }
}

/// An aircraft as the event stream carries it.
fn streamed(mut aircraft: FleetAircraft) -> serde_json::Value {
    if let Some(status) = &mut aircraft.status {
        status.flight_controller.parameters.clear();
    }
    let mut value = serde_json::to_value(aircraft).unwrap_or_default();
    delta::round(&mut value);
    value
}

/// Our own types always have a JSON form; if one should not, a console misses a push and nothing falls.
fn encode(event: &'static str, value: &impl serde::Serialize) -> Option<Push> {
    match serde_json::to_string(value) {
        Ok(data) => Some(Push { event, data: data.into() }),
        Err(error) => {
            tracing::error!(event, %error, "cannot be written as JSON");
            None
        }
    }
}

#[cfg(test)]
#[path = "owner_tests.rs"]
mod tests;
