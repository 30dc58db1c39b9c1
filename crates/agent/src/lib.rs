//! One aircraft: its coordination protocol, its autopilot and its radio messages behind one door.
//!
//! An [`Agent`] is handed one [`Input`] at a time together with the time, and fills a bounded
//! [`Outputs`]. It has no clock, no socket, no thread and no hidden randomness: the same inputs at the same
//! times give the same bytes. Its owner (the daemon, the bench, a replay) owns the world.
//!
//! The arbiter's order is pilot, then failsafe, then swarm: a change of flight mode, or an arming, that the agent did
//! not ask for is a pilot's takeover (or the autopilot's own failsafe). The agent then commands nothing any more until
//! it is engaged again, on the ground or where the pilot hands it over, or the operator ends a failsafe's flight another way. Where the aircraft is and
//! what it does is broadcast all the same ([`takeover`]).
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod admission;
mod budget;
mod checks;
mod clock;
mod command;
mod config;
mod coordination;
mod corrections;
pub mod energy;
mod executor;
mod fence;
mod flight_setup;
mod given;
pub mod guardian;
mod home;
mod identity;
mod lanes;
mod layers;
mod loan;
mod orders;
mod origin;
mod owed;
mod parameters;
mod passed;
mod probes;
mod region;
mod rejoin;
mod remote_id;
mod returns;
mod senders;
pub mod separation;
mod settings;
mod start_gate;
mod status;
mod takeover;

#[cfg(test)]
mod tests;

pub use clock::ClockStatus;
pub use command::{Rejection, Reply, Stage};
pub use config::{CompanionLoss, Config, Forgets, Operator, RemoteIdConfig, Signing};
pub use coordination::Coordination;
pub use corrections::{CorrectionRefused, CorrectionsStatus};
pub use lanes::KnownSession;
pub use loan::{CURES_MAX, Cure};
pub use origin::{Origin, Sample};
pub use owed::{OWED_MAX, Owed};
pub use parameters::{ParameterOrder, ParameterReport, REPORTS_MAX};
pub use probes::ProbeOrder;
pub use region::{RegionFinding, RegionOrder, RegionReport, Verdict};
pub use remote_id::RemoteIdStatus;
pub use status::{
    CHECKS_MAX, COMMANDS_MAX, Check, CommandProgress, FlightControllerStatus, LinkState, Navigation, Status,
};
pub use wingbeat_autopilot::codec::signing::Key as SigningKey;
pub use wingbeat_autopilot::mission::{
    RegionEvent, RegionKind, RegionPart, RegionPoint, first_difference, hash as route_hash,
};
pub use wingbeat_autopilot::parameter::{
    Change as ParameterChange, Finding, Listed as ListedParameter, Name as ParameterName,
    Value as ParameterValue, Watched,
};
pub use wingbeat_autopilot::remote_id::{self as open_drone_id, OperatorPlace};
pub use wingbeat_autopilot::telemetry::Known as KnownAutopilot;
pub use wingbeat_protocol::mbcap::Tally as AvoidanceTally;
pub use wingbeat_protocol::{Command, ConfigError, FlightRecord, Phase, Severity, StateId, Text, View};
pub use wingbeat_protocol::{LegExtras, MissionExtras, RouteEnd};
pub use wingbeat_wire::CommandId;

use command::{Commands, Observation};
use coordination::ActiveProtocol;
use corrections::CorrectionsState;
use executor::Executor;
use given::Given;
use guardian::{Activity, Before, Modes, Pulse, Stance};
use heapless::Vec;
use loan::Loan;
use orders::Orders;
use parameters::Requested;
use passed::LastCommand;
use rejoin::Rejoin;
use remote_id::RemoteIdState;
use senders::{SENDERS_MAX, Senders};
use takeover::{Authority, is_emergency};
use wingbeat_autopilot::codec::framing::Outgoing;
use wingbeat_autopilot::codec::signing::{Signer, Timestamp, Unsigned, Verifier};
use wingbeat_autopilot::codec::{Decoder, Frame};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::gateway::ConsoleHeartbeat;
use wingbeat_autopilot::gnss_time::GnssClock;
use wingbeat_autopilot::heartbeat::Heartbeat;
use wingbeat_autopilot::job::TRANSMIT_LEN_MAX;
use wingbeat_autopilot::mission::Exchange;
use wingbeat_autopilot::parameter::{Change, Watch};
use wingbeat_autopilot::signing::SetupSigning;
use wingbeat_autopilot::streams::Streams;
use wingbeat_autopilot::telemetry::switch::ModeSwitch;
use wingbeat_autopilot::telemetry::{Gnss, LINK_TIMEOUT, StreamRequest, TelemetryEvent};
use wingbeat_autopilot::{Failure, Progress, Telemetry, Transmit, rc};
use wingbeat_geo::{Duration, Frame as LocalFrame, Instant, Position};
use wingbeat_protocol::{Absentees, Action, Actions, Fence, Order, text};
use wingbeat_wire::{Datagram, Draft, Message, Opened, Point, Probe, Refused, VehicleId};

/// What happens to an aircraft.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Time has passed.
    Wake,
    /// Bytes from the autopilot, in pieces of any size.
    Autopilot(&'a [u8]),
    /// It is so many microseconds after 1970, UTC: what signatures are stamped with. Said at the start and
    /// whenever the clock was set.
    Utc {
        /// Microseconds since 1970.
        unix_us: u64,
    },
    /// The keys of datagrams hold from and until so many microseconds after 1970, UTC: stated at the start, and when there
    /// are others. Without keys nothing is stated.
    KeysHold {
        /// When they were issued.
        from_unix_us: u64,
        /// When they expire: from then on no setup begins.
        until_unix_us: u64,
    },
    /// The port to the autopilot opened (true) or closed.
    AutopilotLink(bool),
    /// A datagram from the radio: as [`wingbeat_wire::Roster::open`] opened it, or why that refused it, which is counted.
    Datagram(Result<Opened<'a>, Refused>),
    /// An operator's order that came by another path than the radio, opened alike. It is answered like a command.
    Order {
        /// The order.
        opened: Opened<'a>,
        /// Whether the console itself is the peer of the TLS connection: no recording comes this way.
        is_direct: bool,
    },
    /// The operator commands.
    Operator {
        /// The sender's id of this command.
        id: &'a str,
        /// The command.
        command: Command,
    },
    /// The operator hands over a mission: waypoints, heights above home.
    Mission(&'a [Point]),
    /// The operator's mission with what it states besides its waypoints.
    MissionWith(&'a [Point], &'a MissionExtras),
    /// The operator sets the flight up otherwise than configured: protocol and numbers, for this aircraft.
    Coordination(&'a Coordination),
    /// The operator reads the flight controller's parameters, or sets one.
    Parameters(ParameterOrder),
    /// The operator reads or replaces fence or rally points, or the owner supplies what of that is its own.
    Region(RegionOrder),
    /// What the guardian answers, or nothing when none does.
    Guard(Option<guardian::Answer>),
    /// Who had the aircraft before, as the guardian knows it. Its owner hands this in before the port opens.
    Before(Before),
    /// The identity of the flight controller, as an agent before this one kept it ([`Agent::known_autopilot`]) or the guardian
    /// knows it. Its owner hands this in before the port opens.
    KnownAutopilot {
        /// The identity.
        known: KnownAutopilot,
        /// Whether the guardian has that flight controller and receives it.
        is_held: bool,
    },
    /// What the swarm's flight before was, as an agent before this one knew it ([`Agent::flight_record`]). Its owner hands this in
    /// first.
    Flight(&'a FlightRecord),
    /// A ground station commands the autopilot through the gateway. The frame leaves after this.
    GroundStation {
        /// What it commands, for the log.
        what: &'a str,
    },
    /// A probe of the link is due.
    Probe(ProbeOrder),
    /// A console took the lease (true), or no console holds it any more.
    Lease(bool),
    /// An agent before this one had lost the aircraft to a pilot and was not engaged again: what
    /// [`Agent::taken_by_pilot`] said. Its owner hands this in first.
    TakenBefore {
        /// For people.
        by: &'a str,
    },
    /// An agent before this one owed that to the pilot: one of what [`Agent::owed`] gave. Its owner hands these in first.
    Owed(Owed),
    /// A console's program whose orders an agent before this one took ([`Agent::known_sessions`]).
    /// Its owner hands these in first.
    KnownSession(KnownSession),
}

/// A boot of the flight controller takes no longer.
const BOOTS_WITHIN: Duration = Duration::from_secs(30);
/// How long another aircraft with our id is remembered after its last datagram.
const DUPLICATE_ID_FOR: Duration = Duration::from_secs(5);
/// An aircraft in AUTO stands at the end of its route where it is so near to the last waypoint, metres,
const AT_THE_END_M: f64 = 3.0;
/// so slow,
const STANDING_M_S: f64 = 0.6;
/// for so long: ArduCopter waits at no waypoint of ours.
const SETTLED: Duration = Duration::from_secs(5);

/// One line for the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Severity, for the log's level.
    pub severity: Severity,
    /// The text of the line.
    pub text: Text,
}

/// Everything to do after one input, in order.
#[derive(Default)]
pub struct Outputs {
    /// Bytes for the autopilot: whole frames.
    pub autopilot: Vec<u8, TRANSMIT_LEN_MAX>,
    /// Datagrams to seal and broadcast: an input asks for two at most, its consequences for two more.
    pub datagrams: Vec<Draft, 4>,
    /// Lines for the log.
    pub log: Vec<LogEntry, 16>,
    /// The answer to [`Input::Operator`], [`Input::Order`], [`Input::Mission`], [`Input::Coordination`], [`Input::Parameters`] and
    /// [`Input::Region`].
    pub reply: Option<Reply>,
    /// The operator's command that was accepted, by whatever path it came.
    pub accepted: Option<Command>,
    /// The probe that was received, and its sender.
    pub probe: Option<(VehicleId, Probe)>,
    /// What came of [`Input::Parameters`].
    pub parameters: Vec<ParameterReport, REPORTS_MAX>,
    /// What came of [`Input::Region`].
    pub regions: region::Reports,
}

impl Outputs {
    fn clear(&mut self) {
        self.autopilot.clear();
        self.parameters.clear();
        self.regions.clear();
        self.datagrams.clear();
        self.log.clear();
        (self.reply, self.accepted, self.probe) = (None, None, None);
    }
    fn log(&mut self, severity: Severity, text: Text) {
        // A flood of lines is cut off; the status shows the state in any case.
        let _ = self.log.push(LogEntry { severity, text });
    }
    fn notify(&mut self, notice: &separation::Notice) {
        self.log(notice.severity(), notice.text());
    }
}

/// The agent of one aircraft: autopilot client, protocol and radio codec.
pub struct Agent {
    config: Config,
    seed: u64,
    /// When it was made.
    began: Instant,
    protocol: ActiveProtocol,
    mission: Given,
    decoder: Decoder,
    telemetry: Telemetry,
    heartbeat: Heartbeat,
    console: ConsoleHeartbeat,
    streams: Streams,
    parameters: Watch,
    executor: Executor,
    /// Until when nothing is due towards the autopilot, and what is then. Only an input other than a datagram
    /// changes that, and an order.
    idle_until: (Instant, &'static str),
    commands: Commands,
    authority: Authority,
    /// What the autopilot announced last of a failsafe of its own, and when.
    announced: Option<(Instant, Text)>,
    /// An emergency command that waits until the aircraft's state is known.
    waiting: Option<Command>,
    link_was_up: bool,
    /// Whether the protocol has been told where the aircraft is.
    has_reported: bool,
    /// Whether reports of reached waypoints may have been lost in a gap on the line.
    missed_reports: bool,
    mode_switch: ModeSwitch,
    /// Whether the last position is one: since the EKF lost it in flight it is where it was last, also on the ground.
    is_located: bool,
    /// The mission item that its navigation flew to by the last report of this stay in AUTO.
    current_item: Option<u16>,
    /// Since when it stands at the end of its route, where such a report is missed.
    stands_since: Option<Instant>,
    /// Since when frames have been received without a gap.
    link_up_at: Instant,
    /// Whether a console holds the lease.
    is_leased: bool,
    outgoing: Outgoing,
    /// The key on its way to the autopilot.
    setup_signing: Option<SetupSigning>,
    /// UTC as it was last given, with the agent time then.
    utc: Option<(Instant, u64)>,
    gnss_clock: GnssClock,
    remote_id: RemoteIdState,
    corrections: CorrectionsState,
    /// From and until when keys hold, microseconds after 1970.
    keys_hold_us: Option<(u64, u64)>,
    guard: Option<guardian::Answer>,
    /// The flight controller that the guardian has and receives.
    held: Option<u8>,
    /// For the first heartbeat.
    before: Before,
    rejoin: Rejoin,
    /// What distinguishes the route that was loaded into the autopilot last, as that holds it; 0 before.
    route_hash: u64,
    /// When a ground station on another line of the autopilot's beat under our console's id.
    other_ground_station_at: Option<Instant>,
    separation: separation::Monitor,
    gauge: energy::Gauge,
    /// Parameters of the pilot that are set otherwise for the flight.
    loan: Loan,
    /// Whether the operator asked for parameters, and was not told yet what came of it.
    has_requested: bool,
    /// What our clock is counted from in datagrams, microseconds.
    counter_base_us: u64,
    /// The counter of our last datagram.
    counter: u64,
    senders: Senders<SENDERS_MAX>,
    orders: Orders,
    last_command: LastCommand,
    /// When a datagram of another aircraft with our id was received.
    duplicate_id_at: Option<Instant>,
    sent: u64,
    received: u64,
    refused: [u32; Refused::ALL.len()],
    /// How the route lies in the fence that was read last.
    verdict: Option<Verdict>,
}

impl Agent {
    /// An aircraft that waits for its autopilot and its operator.
    ///
    /// # Errors
    /// Names the first number of the configuration that cannot be flown.
    pub fn new(config: Config, seed: u64, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            protocol: config.coordination.begin(seed, now),
            seed,
            began: now,
            mission: Given::default(),
            decoder: match &config.signing {
                None => Decoder::default(),
                Some(Signing { key, setup, .. }) => {
                    let unsigned = if *setup { Unsigned::UntilSigned } else { Unsigned::Refused };
                    Decoder::verifying(Verifier::new(key.clone(), unsigned))
                }
            },
            telemetry: match config.companion_loss {
                CompanionLoss::FliesOn => Telemetry::identifying(config.autopilot_system_id),
                // The owner made the line, and one flight controller at its end.
                CompanionLoss::EndsWithIt => Telemetry::default(),
            },
            heartbeat: Heartbeat::new(now),
            console: ConsoleHeartbeat::new(config.ground_station_system_id),
            streams: Streams::new(now, config.position_interval),
            parameters: budget::watch(&config.coordination, now),
            executor: Executor::default(),
            idle_until: (Instant::NEVER, "nothing"),
            commands: Commands::default(),
            authority: Authority::Ours,
            announced: None,
            waiting: None,
            link_was_up: false,
            has_reported: false,
            missed_reports: false,
            mode_switch: ModeSwitch::default(),
            is_located: true,
            current_item: None,
            stands_since: None,
            link_up_at: now,
            is_leased: false,
            outgoing: Outgoing {
                signer: config.signing.as_ref().map(|s| Signer::new(s.key.clone(), s.link_id)),
                ..Outgoing::default()
            },
            setup_signing: config
                .signing
                .as_ref()
                .filter(|s| s.setup)
                .map(|s| SetupSigning::new(now, s.key.clone())),
            utc: None,
            gnss_clock: GnssClock::new(now),
            remote_id: RemoteIdState::new(now),
            corrections: CorrectionsState::new(now),
            keys_hold_us: None,
            guard: None,
            held: None,
            before: Before::Unknown,
            rejoin: Rejoin::default(),
            route_hash: 0,
            other_ground_station_at: None,
            separation: separation::Monitor::new(config.separation),
            gauge: energy::Gauge::default(),
            loan: Loan::default(),
            has_requested: false,
            counter_base_us: 0,
            counter: 0,
            senders: Senders::default(),
            orders: Orders::default(),
            last_command: LastCommand::default(),
            duplicate_id_at: None,
            sent: 0,
            received: 0,
            refused: [0; Refused::ALL.len()],
            verdict: None,
            config,
        })
    }

    /// What a daemon that ended begins with when it is started again: its configuration, and the clock that it counts its
    /// datagrams from.
    pub fn restarted(&self, now: Instant) -> Self {
        let origin = Origin { began_us: now.as_micros(), counter: self.counter, ..self.origin() };
        Self::of(origin).expect("this configuration was accepted before")
    }

    /// Counts its datagrams from here: our clock at time zero, microseconds, and above all that was sent before under our
    /// id. Nothing was sent yet.
    #[must_use]
    pub fn counting_from(mut self, base_us: u64) -> Self {
        (self.counter_base_us, self.counter) = (base_us, base_us);
        self
    }

    /// The counter of its last datagram: no later one has a lower.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Its id.
    pub fn id(&self) -> VehicleId {
        self.config.coordination.me()
    }

    /// The one way in. When it returns, `out` holds everything to do, in order; what it held before is
    /// gone.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        out.clear();
        if now >= self.idle_until.0 && now >= self.decoder.due() {
            self.decode(|decoder, each| decoder.expire(now, each), now, out);
        }
        match input {
            Input::Wake => {
                self.protocol_input(now, wingbeat_protocol::Input::Wake, out);
            }
            Input::Autopilot(bytes) => self.on_autopilot_bytes(now, bytes, out),
            Input::Utc { unix_us } => self.on_utc(now, unix_us),
            Input::KeysHold { from_unix_us, until_unix_us } => {
                self.keys_hold_us = Some((from_unix_us, until_unix_us));
            }
            Input::AutopilotLink(true) => {
                self.decoder.restart();
                self.outgoing.negotiation.restart();
                self.streams.restart(now);
                self.parameters.restart(now);
            }
            Input::AutopilotLink(false) => {
                out.log(Severity::Warning, text!("the port to the flight controller closed"));
            }
            Input::Datagram(Ok(opened)) => self.on_datagram(now, opened, out),
            Input::Datagram(Err(reason)) => self.refuse(reason),
            Input::Order { opened, is_direct } => {
                out.reply = Some(self.on_posted_order(now, opened, is_direct, out));
            }
            Input::Operator { id, command } => out.reply = Some(self.obey(now, id, command, out)),
            Input::Mission(points) => out.reply = Some(self.take_mission(points, MissionExtras::NONE)),
            Input::MissionWith(points, extras) => out.reply = Some(self.take_mission(points, extras)),
            Input::Coordination(flight) => out.reply = Some(self.set_flight_up(now, flight, out)),
            Input::Parameters(order) => out.reply = Some(self.begin_parameters(now, order)),
            Input::Region(order) => out.reply = Some(self.on_region(now, order, out)),
            // Of an autopilot that was heard we know more.
            Input::Before(before) => {
                if self.telemetry.system_id.is_none() {
                    self.before = before;
                }
            }
            Input::KnownAutopilot { known, is_held } => self.expect_autopilot(known, is_held, out),
            Input::Flight(record) => self.remember_flight(now, record, out),
            Input::Guard(answer) => self.on_guardian_answer(answer, out),
            Input::GroundStation { what } => self.on_ground_station_command(now, what, out),
            Input::Probe(order) => self.broadcast_probe(now, order, out),
            Input::Lease(held) => self.is_leased = held,
            Input::TakenBefore { by } => self.disengage(now, text!("{by}"), out),
            Input::Owed(owed) => self.take_owed(owed, out),
            Input::KnownSession(known) => self.orders.lanes.recall(known),
        }
        // A console that is lost after the setup must not end the flight: the autopilot's failsafe waits for these
        // heartbeats once it has received one.
        let outlives_lease = || self.console.is_sent() && self.is_at_stake();
        self.console.lease(now, self.is_leased || outlives_lease());
        // Datagrams from eighty others five times a second change nothing here, except by an order, or a state, which is
        // logged.
        let is_datagram = matches!(input, Input::Datagram(_));
        if !is_datagram || now >= self.idle_until.0 {
            self.advance_signer(now);
            self.work(now, out);
            self.idle_until = self.next_work();
        }
        if self.commands.are_open() && (!is_datagram || !out.log.is_empty()) {
            self.observe_commands();
        }
    }

    /// Not inlined: room for the absentees on the stack costs at every input.
    #[inline(never)]
    fn observe_commands(&mut self) {
        let absent = match self.commands.watches_members() {
            true => self.protocol.details().absentees,
            false => Absentees::new(),
        };
        self.commands.observe(Observation {
            me: self.config.coordination.me(),
            mode: self.telemetry.mode(),
            armed: self.telemetry.armed,
            phase: self.protocol.view().phase,
            absent: &absent,
            loan: self.loan.state(),
        });
    }

    /// When it wants [`Input::Wake`], and why. Earlier is harmless.
    pub fn poll_timeout(&self) -> (Instant, &'static str) {
        let next = self.protocol.poll_timeout();
        if next.0 < self.idle_until.0 { next } else { self.idle_until }
    }

    /// When there is something to do towards the autopilot, and what, if nothing else comes of it.
    fn next_work(&self) -> (Instant, &'static str) {
        let mut next = (Instant::NEVER, "nothing");
        let mut consider = |at: Instant, why| {
            if at < next.0 {
                next = (at, why);
            }
        };
        consider(self.decoder.due(), "frame not finished");
        if self.telemetry.system_id.is_some() {
            if let Some(job) = &self.setup_signing {
                consider(job.due(), "signing key not yet taken");
            }
            consider(self.heartbeat.due(), "heartbeat due");
            consider(self.console.due(), "console's heartbeat due");
            consider(self.streams.due(), "telemetry check due");
            if self.telemetry.is_copter == Some(true) {
                consider(self.parameters.due(), "parameter check due");
                consider(self.gnss_clock.due(), "question for the clock due");
            }
            consider(self.executor.requested_due(), "parameters asked for");
            consider(self.rejoin.due(), "no position reported yet");
            if self.config.remote_id.is_some() {
                consider(self.remote_id.due(), "Remote ID due");
            }
            if self.may_order() {
                consider(self.executor.due(), "order not yet effective");
                consider(self.executor.reading_due(), "mission not read back yet");
                if !self.telemetry.armed {
                    consider(self.loan.due(), "parameter not yet set");
                }
                if self.restores_settings() {
                    consider(self.executor.restore_due(), "the pilot's settings not yet given back");
                }
            }
        }
        if let Some(at) = self.telemetry.frame_at.filter(|_| self.link_was_up) {
            consider(at + LINK_TIMEOUT, "flight controller silent");
        }
        next
    }

    /// Whether the motors are armed.
    pub fn is_armed(&self) -> bool {
        self.telemetry.armed
    }

    /// The autopilot's system id, once received.
    pub fn system_id(&self) -> Option<u8> {
        self.telemetry.system_id
    }

    /// The messages of the autopilot that it relies on, for a gateway that forwards requests of others.
    pub fn needs(&self) -> impl Iterator<Item = StreamRequest> {
        self.streams.requests()
    }

    /// What becomes of the aircraft when we die, as configured.
    pub fn companion_loss(&self) -> CompanionLoss {
        self.config.companion_loss
    }

    /// What the flight is set up with: the protocol and its numbers.
    pub fn coordination(&self) -> &Coordination {
        &self.config.coordination
    }

    /// Where this aircraft may fly.
    pub fn fence(&self) -> Fence {
        self.protocol.fence()
    }

    /// The aircraft's own waypoints (the master's mission before setup).
    pub fn route(&self) -> &[Point] {
        self.protocol.route()
    }

    /// What the swarm's flight is, once it is known. Its owner keeps it on the ground for an agent after this one; it may change
    /// with the protocol's state.
    pub fn flight_record(&self) -> Option<FlightRecord> {
        self.protocol.flight_record()
    }

    /// Where the aircraft stands, or stood before it was armed.
    pub fn stands_at(&self) -> Option<Position> {
        self.telemetry.disarmed_position
    }

    /// The protocol's state, as far as it costs nothing.
    pub fn view(&self) -> View {
        self.protocol.view()
    }

    /// The members of the swarm that are lost, left or excluded.
    pub fn absentees(&self) -> Absentees {
        self.protocol.details().absentees
    }

    /// How near others were on this flight, or on the last.
    pub fn separation_figures(&self) -> separation::Figures {
        self.separation.figures()
    }

    /// The status.
    pub fn status(&self, now: Instant) -> Status {
        let t = &self.telemetry;
        let (view, details) = (self.protocol.view(), self.protocol.details());
        let (route, reached) = self.shown_route();
        let checks = self.checks(now, &details.line);
        Status {
            id: self.config.coordination.me(),
            at: now,
            protocol: self.protocol.name(),
            state: view.state,
            phase: view.phase,
            detail: match self.authority.taken_by() {
                Some(by) => by.clone(),
                None => self.rejoin_line(now).unwrap_or(details.line),
            },
            engaged: self.authority.is_ours(),
            failsafe: matches!(self.authority, Authority::Failsafe { .. }),
            flight_controller: FlightControllerStatus {
                link: match t.frame_at {
                    None => LinkState::NeverSeen,
                    Some(_) if t.is_up(now) => LinkState::Up,
                    Some(_) => LinkState::Lost,
                },
                heartbeat_at: t.heartbeat_at,
                vehicle: t.vehicle,
                is_copter: t.is_copter,
                firmware: t.firmware,
                reboots: t.reboots,
                other_autopilots: t.other_autopilots,
                version: t.version,
                mode_number: t.mode_number,
                armed: t.armed,
                refused: self.decoder.refused(),
            },
            navigation: t.position.map(|position| Navigation {
                position,
                height_m: t.height_m,
                velocity_m_s: t.velocity_m_s,
                heading_rad: t.heading_rad,
            }),
            target: view.target,
            measured: t.measured.clone(),
            energy: self.energy_status(now),
            clock: self.clock_status(now),
            remote_id: self.remote_id_status(now),
            corrections: self.corrections_status(now),
            route_hash: (!route.is_empty()).then(|| given::hash(route, self.shown_extras())),
            plan_hash: details.plan_hash,
            route_len: route.len() as u16,
            reached,
            avoidance: details.avoidance,
            separation: self.separation.view(now),
            swarm: view.swarm,
            absentees: details.absentees,
            formation: details.formation,
            sent: self.sent,
            received: self.received,
            refused: self.refused.map(u64::from),
            checks,
            cures: self.cures(),
            can_resume: self.authority.is_ours()
                && self.protocol.permits(Command::Resume).is_ok()
                && self.failed_check(now, Command::Resume).is_none(),
            commands: self.commands.list().clone(),
            parameters: self.parameters.clone(),
        }
    }

    fn checks(&self, now: Instant, line: &Text) -> Vec<Check, CHECKS_MAX> {
        let ground = layers::GroundStation {
            parameters: &self.parameters,
            version: self.telemetry.version,
            id: self.config.ground_station_system_id,
            is_sent: self.console.is_sent(),
            other_at: self.other_ground_station_at,
        };
        let (me, duplicate_id) = (self.config.coordination.me(), self.has_duplicate_id(now));
        let judged = checks::Preflight {
            config: &self.config,
            telemetry: &self.telemetry,
            protocol: &*self.protocol,
            guard: self.guard,
            energy: self.flight_against_battery(now),
            ground,
            keys: self.keys_hold_us.map(|terms| (terms, self.latest_us(now))),
            clock: self.clock_check(now),
            remote_id: self.remote_id_check(now),
            is_return_height_set: self.executor.overridden_return_height().is_some(),
            swarm: checks::swarm(me, &*self.protocol, duplicate_id, line),
            verdict: self.verdict,
        };
        let mut checks = checks::preflight(judged, now);
        let _ = checks.extend_from_slice(self.orders.lanes.judge(now).as_slice());
        checks
    }

    /// What stands against a flight and has one cure.
    fn cures(&self) -> Vec<Cure, CURES_MAX> {
        settings::cures(&self.parameters, self.protocol.view().route_speed_m_s.is_some())
    }

    /// What a guardian is to know of us; the endpoint's fingerprint is the owner's to fill in.
    pub fn pulse(&self, now: Instant) -> Pulse {
        let view = self.protocol.view();
        let flying = self.telemetry.armed && !matches!(view.phase, Phase::Start | Phase::Finished);
        let activity = match self.authority {
            Authority::Pilot { .. } => Activity::Pilot,
            Authority::Failsafe { .. } => Activity::Failsafe,
            // The guardian must not touch it either.
            Authority::Ours if view.is_piloted => Activity::Pilot,
            Authority::Ours if flying || self.executor.flies() || self.rejoin.answers() => {
                Activity::Commanding
            }
            Authority::Ours if self.given_back().is_some() => Activity::Commanding,
            Authority::Ours if self.telemetry.armed => Activity::IdleArmed,
            Authority::Ours => Activity::Idle,
        };
        Pulse {
            activity,
            system_id: self.telemetry.system_id.unwrap_or(0),
            ours: match activity {
                Activity::Failsafe => self.telemetry.mode_number.map_or(Modes::default(), Modes::one),
                Activity::Idle | Activity::IdleArmed | Activity::Commanding | Activity::Pilot => {
                    self.given_back().unwrap_or(self.executor.own_modes(now))
                }
            },
            switch_channel: self.switch_channel().unwrap_or(0),
            endpoint: 0,
            route: match view.phase {
                Phase::Moving | Phase::Waiting
                    if activity == Activity::Commanding && self.protocol.takes_up() =>
                {
                    self.protocol.left_on().unwrap_or(self.route_hash)
                }
                Phase::Start
                | Phase::Preparing
                | Phase::Ready
                | Phase::Moving
                | Phase::Waiting
                | Phase::Ending
                | Phase::Finished
                | Phase::Aborted => 0,
            },
            // A pilot's aircraft, as far as is known here, is not ours to answer for.
            takes_up: self.takes_up(),
        }
    }

    fn on_guardian_answer(&mut self, answer: Option<guardian::Answer>, out: &mut Outputs) {
        let watched = |answer: Option<guardian::Answer>| answer.is_some_and(|a| a.stance == Stance::Watching);
        if watched(answer) && !watched(self.guard) {
            out.log(Severity::Info, text!("the guardian protects this aircraft"));
        } else if watched(self.guard) && !watched(answer) {
            out.log(
                Severity::Error,
                text!("no guardian watches: if this daemon dies, at most the autopilot's own failsafe acts"),
            );
        }
        if let Some(answer) = answer.filter(|a| a.stance.holds() && self.guard != Some(*a)) {
            let (cause, does) = (answer.cause, answer.stance.name());
            out.log(Severity::Warning, text!("the guardian has the flight controller ({cause}): {does}"));
        }
        self.guard = answer;
    }

    fn on_autopilot_bytes(&mut self, now: Instant, bytes: &[u8], out: &mut Outputs) {
        self.decode(|decoder, each| decoder.push_at(now, bytes, each), now, out);
    }

    fn decode(
        &mut self,
        act: impl FnOnce(&mut Decoder, &mut dyn FnMut(Frame)),
        now: Instant,
        out: &mut Outputs,
    ) {
        let mut decoder = core::mem::take(&mut self.decoder);
        act(&mut decoder, &mut |frame| self.on_frame(now, &frame, out));
        self.decoder = decoder;
    }

    /// What we sign next is not behind our clock, nor behind what the autopilot signed.
    fn advance_signer(&mut self, now: Instant) {
        let Some(signer) = &mut self.outgoing.signer else { return };
        if let Some(unix_us) = clock::elapsed(self.utc, now) {
            signer.advance(Timestamp::from_unix_us(unix_us));
        }
        if let Some(verifier) = self.decoder.verifier() {
            signer.advance(verifier.newest());
        }
    }

    fn on_frame(&mut self, now: Instant, frame: &Frame, out: &mut Outputs) {
        if let Some(last) = self.telemetry.frame_at.filter(|_| !self.telemetry.is_up(now)) {
            self.executor.bridge_gap(last, now);
            self.missed_reports = true;
        }
        match self.telemetry.on_frame(now, frame) {
            TelemetryEvent::Position => {
                if let Some(position) = self.telemetry.position {
                    let is_first = !self.has_reported;
                    self.on_position(now, position, out);
                    if is_first && self.has_reported {
                        self.report_found_in_flight(now, position, out);
                    }
                    self.obey_waiting(now, out);
                    self.go_on(now, out);
                    if self.missed_reports {
                        self.catch_up(now, out);
                    }
                    self.judge_energy(now, out);
                    self.judge_start(now, out);
                }
            }
            TelemetryEvent::ItemReached(item) => {
                let waypoint = given::items(&*self.protocol).ok().and_then(|items| items.waypoint(item));
                if let Some(waypoint) = waypoint {
                    self.protocol_input(now, wingbeat_protocol::Input::Reached(waypoint), out);
                }
            }
            TelemetryEvent::CurrentItem(item) => {
                self.rejoin.on_item(item);
                self.on_current_item(now, item, out);
            }
            TelemetryEvent::Heartbeat(change) => self.judge_heartbeat(now, change, out),
            TelemetryEvent::Identified(vehicle) => {
                self.forget_autopilot(now);
                self.parameters.forget(now);
                self.judge_first_heartbeat(now, out);
                self.forget_flight(now);
                if vehicle.is_copter() {
                    let id = self.telemetry.system_id.unwrap_or(0);
                    out.log(Severity::Info, text!("flight controller: {vehicle}, system {id}"));
                } else {
                    out.log(
                        Severity::Error,
                        text!("flight controller: found {vehicle}, expected ArduCopter; not commanded"),
                    );
                }
            }
            TelemetryEvent::Rebooted => {
                self.forget_autopilot(now);
                out.log(Severity::Warning, text!("the flight controller has rebooted"));
                self.judge_reboot(now, out);
            }
            TelemetryEvent::OtherAutopilot(id) => self.report_other(id, out),
            TelemetryEvent::TwoWithOneId | TelemetryEvent::Several => self.report_several(now, out),
            TelemetryEvent::StatusText { severe, text: line } => {
                let severity = if severe { Severity::Warning } else { Severity::Info };
                log_whole(severity, &line, out);
                self.on_status_text(now, &line, out);
            }
            TelemetryEvent::Channels(channels) => self.judge_switch(now, &channels, out),
            TelemetryEvent::Other => {}
        }
        self.remote_id.on_frame(now, self.telemetry.system_id, frame);
        let from_ground_station = frame.header.system_id == u32::from(self.config.ground_station_system_id);
        if from_ground_station && matches!(frame.message, MavMessage::HEARTBEAT(_)) {
            self.other_ground_station_at = Some(now);
        }
        if self.telemetry.is_ours(frame) {
            self.outgoing.negotiation.on_frame(now, frame);
            self.streams.on_message(now, &frame.message);
            self.parameters.on_message(&frame.message);
            let has_fix = self.telemetry.measured.gnss.is_some_and(Gnss::has_fix);
            let event = self.gnss_clock.on_message(now, has_fix, &frame.message);
            clock::report(event, out);
            self.executor.on_message(now, &frame.message, &*self.protocol);
            if let Some(job) = self.executor.reading_begun() {
                self.rejoin.on_message(now, &frame.message, job, &mut self.mission);
            }
            self.loan.on_message(now, &frame.message);
            if let Some(job) = self.executor.requested() {
                job.on_message(now, &frame.message, &mut out.parameters, &mut out.regions);
            }
        }
    }

    /// The report of a reached waypoint comes once, and may be lost. In AUTO the waypoints before the current item were
    /// reached: by two reports in a row, because the first in AUTO may still be of the mission before.
    fn on_current_item(&mut self, now: Instant, item: u16, out: &mut Outputs) {
        let is_on_route =
            self.telemetry.armed && self.telemetry.mode() == Some(Mode::Auto) && self.may_order();
        let before = core::mem::replace(&mut self.current_item, is_on_route.then_some(item));
        let (Some(before), true) = (before, is_on_route) else { return };
        let items = given::items(&*self.protocol).ok();
        let Some(reached) = items.and_then(|items| items.reached_before(item.min(before))) else { return };
        if self.protocol.view().reached < Some(reached) {
            self.protocol_input(now, wingbeat_protocol::Input::Reached(reached), out);
        }
    }

    /// The report of a reached waypoint comes once, and may have come in a gap on the line. In AUTO an aircraft stands at the
    /// end of its route only.
    fn catch_up(&mut self, now: Instant, out: &mut Outputs) {
        let t = &self.telemetry;
        let (Some(at), Some(last)) = (t.position, self.protocol.route().last()) else { return };
        let end = Position { latitude_e7: last.latitude_e7, longitude_e7: last.longitude_e7, altitude_mm: 0 };
        let off_m = LocalFrame::new(end).to_local(at).truncate().length();
        let speed_m_s = t.velocity_m_s.length();
        let stands =
            t.armed && t.mode() == Some(Mode::Auto) && speed_m_s < STANDING_M_S && off_m < AT_THE_END_M;
        if !(stands && self.may_order()) {
            self.stands_since = None;
            return;
        }
        if now.since(*self.stands_since.get_or_insert(now)) >= SETTLED {
            (self.missed_reports, self.stands_since) = (false, None);
            let last = self.protocol.route().len() as u16 - 1;
            self.protocol_input(now, wingbeat_protocol::Input::Reached(last), out);
        }
    }

    fn on_position(&mut self, now: Instant, position: Position, out: &mut Outputs) {
        // In flight the EKF reports on without knowing where it is: to the protocol that is as no report. The first one
        // says that it flies, and those after the landing that it stands, but not where.
        let is_armed = self.telemetry.armed;
        self.is_located = match self.telemetry.ekf_position {
            Some(false) => self.is_located && !is_armed,
            Some(true) | None => true,
        };
        self.protocol.set_measured(now, budget::measured(&self.telemetry));
        if is_armed && !self.is_located && self.has_reported {
            return;
        }
        self.has_reported = true;
        let own = separation::Own {
            position,
            velocity_m_s: self.telemetry.velocity_m_s,
            height_m: self.telemetry.height_m,
            armed: self.telemetry.armed,
        };
        self.separation.on_own(now, own, &mut |notice| out.notify(&notice));
        let report = wingbeat_protocol::Telemetry {
            position,
            height_m: self.telemetry.height_m,
            velocity_m_s: self.telemetry.velocity_m_s,
            heading_rad: self.telemetry.heading_rad,
            armed: self.telemetry.armed,
            landing: self.telemetry.mode() == Some(Mode::Land),
            is_located: self.is_located,
        };
        self.protocol.set_handling(budget::handling(&self.telemetry));
        self.protocol_input(now, wingbeat_protocol::Input::Telemetry(report), out);
    }

    /// What was asked of the autopilot and known of it holds no longer.
    fn forget_autopilot(&mut self, now: Instant) {
        self.streams.restart(now);
        self.parameters.restart(now);
        self.gnss_clock.restart(now);
        self.mode_switch.forget();
    }

    fn on_datagram(&mut self, now: Instant, opened: Opened<'_>, out: &mut Outputs) {
        let (from, claim) = (opened.from(), opened.claim());
        if let Err(reason) = self.admits(now, &claim) {
            return self.refuse(reason);
        }
        if from == self.id() {
            self.on_duplicate_id(now, out);
            return self.refuse(Refused::Own);
        }
        let mut datagram = Datagram::blank();
        if let Err(reason) = opened.read_into(&mut datagram) {
            return self.refuse(reason);
        }
        // Before it is judged: what is refused once costs no second signature.
        let is_new = self.check_age(now, &claim).is_ok();
        if is_new {
            self.note_datagram(now, &claim, out);
        }
        let Datagram { flight, message, .. } = &datagram;
        if let Message::Beacon(beacon) = message {
            let taken = self.separation.on_beacon(now, from, beacon, &mut |notice| out.notify(&notice));
            if let Err(reason) = taken {
                return self.refuse(reason);
            }
        }
        if let Message::Order(order) = message {
            return self.on_order(now, opened, *flight, order, is_new, out);
        }
        self.received += 1;
        // An answer is the console's.
        if matches!(message, Message::OrderTaken(_)) {
            return;
        }
        if let Message::Probe(probe) = message {
            out.probe = Some((from, *probe));
            return;
        }
        if let Message::Corrections(corrections) = message {
            return self.on_corrections(now, from, corrections, out);
        }
        if matches!(message, Message::Passed(_)) {
            return self.on_passed(now, &opened, &mut datagram, out);
        }
        let input = wingbeat_protocol::Input::Message { from, flight: *flight, message };
        if self.protocol_input(now, input, out) && message.is_command() {
            self.last_command.keep(&opened, *flight);
        }
    }

    /// A radio may receive itself, but nothing that was not sent yet: another sender has our id, and our key.
    fn on_duplicate_id(&mut self, now: Instant, out: &mut Outputs) {
        if !self.has_duplicate_id(now) {
            out.log(Severity::Error, text!("another aircraft has our id, {}: received by radio", self.id()));
        }
        self.duplicate_id_at = Some(now);
    }

    fn has_duplicate_id(&self, now: Instant) -> bool {
        self.duplicate_id_at.is_some_and(|at| now.since(at) < DUPLICATE_ID_FOR)
    }

    fn refuse(&mut self, reason: Refused) {
        let count = &mut self.refused[reason as usize];
        *count = count.saturating_add(1);
    }

    fn obey(&mut self, now: Instant, id: &str, command: Command, out: &mut Outputs) -> Reply {
        let reply = self.judge_command(now, id, command, out);
        match &reply {
            Reply::Accepted => out.accepted = Some(command),
            Reply::Refused(why) => self.on_refused(now, command, why, out),
            Reply::AlreadyKnown => {}
        }
        reply
    }

    fn judge_command(&mut self, now: Instant, id: &str, command: Command, out: &mut Outputs) -> Reply {
        let Some(id) = CommandId::try_from(id).ok().filter(|id| !id.is_empty()) else {
            return Reply::Refused(Rejection::Id { found: id.len() });
        };
        match self.commands.command_of(&id) {
            Some(earlier) if earlier == command => return Reply::AlreadyKnown,
            Some(earlier) => return Reply::Refused(Rejection::Reused { id, command, earlier }),
            None => {}
        }
        match command {
            Command::RecoverControl => {
                self.release_override(out);
                self.disengage(now, text!("handed to the pilot by the operator"), out);
                self.commands.accept(id, command);
                return Reply::Accepted;
            }
            Command::Engage if !self.is_judged(now) => return Reply::Refused(Rejection::Unknown),
            Command::Engage if self.telemetry.armed => return self.engage_in_flight(now, id, out),
            // The heartbeat that shows them running is up to a second late.
            Command::Engage if self.executor.arms() => return Reply::Refused(Rejection::Arming),
            Command::Engage => {
                self.engage(now);
                self.commands.accept(id, command);
                return Reply::Accepted;
            }
            Command::SetParameters => return self.set_parameters(id),
            Command::Setup
            | Command::Start
            | Command::Resume
            | Command::Hold
            | Command::Return
            | Command::Land
            | Command::Exclude { .. } => {}
        }
        if let Some(by) = self.authority.holds_against(command) {
            return Reply::Refused(Rejection::Disengaged(by.clone()));
        }
        if let Some(failed) = self.failed_check(now, command) {
            return Reply::Refused(Rejection::Check { name: failed.name, detail: failed.detail });
        }
        // Not refused for what is not known: whether it flies, and how.
        if is_emergency(command) && !self.is_state_known(now) {
            out.log(Severity::Warning, self.waiting_line(command));
            self.waiting = Some(command);
            self.commands.accept(id, command);
            return Reply::Accepted;
        }
        if let Err(why) = self.protocol.permits(command) {
            return Reply::Refused(why.into());
        }
        self.commands.accept(id, command);
        self.warn_of_home(command, out);
        if command.concerns_flight() {
            self.waiting = None;
            self.gauge.decide(command);
        }
        // Of a failsafe the operator takes the aircraft back.
        self.authority = Authority::Ours;
        self.set_height_of_return(command);
        self.protocol_input(now, wingbeat_protocol::Input::Operator(command), out);
        Reply::Accepted
    }

    /// On the ground, before the flight is set up: what the autopilot is asked for then is judged by these.
    fn set_parameters(&mut self, id: CommandId) -> Reply {
        if let Some(by) = self.authority.taken_by() {
            return Reply::Refused(Rejection::Disengaged(by.clone()));
        }
        let state = self.protocol.view().state;
        if self.telemetry.armed || self.protocol.view().phase != Phase::Start {
            return Reply::Refused(Rejection::Underway(state));
        }
        let cures = self.cures();
        if cures.is_empty() {
            return Reply::Refused(Rejection::NothingToSet);
        }
        self.loan.lend(&cures);
        self.commands.accept(id, Command::SetParameters);
        Reply::Accepted
    }

    /// On the ground: in flight the line is the telemetry's, and what is flown was judged by the parameters as they are.
    #[inline(never)]
    fn begin_parameters(&mut self, now: Instant, order: ParameterOrder) -> Reply {
        let sets = matches!(order, ParameterOrder::Set { .. });
        if let Some(why) = self.check_request(now, sets) {
            return Reply::Refused(why);
        }
        // What is given back after the flight would undo it.
        if sets && (self.loan.has_lent() || self.executor.owes_settings()) {
            return Reply::Refused(Rejection::Lent);
        }
        self.request(Requested::new(now, order))
    }

    /// Whether the autopilot may be asked for what no flight needs, or given it.
    fn check_request(&self, now: Instant, writes: bool) -> Option<Rejection> {
        if !self.is_judged(now) {
            return Some(Rejection::NotReceived);
        }
        if self.telemetry.armed || self.executor.arms() {
            return Some(Rejection::MotorsArmed);
        }
        if self.has_requested {
            return Some(Rejection::UnderWay);
        }
        let view = self.protocol.view();
        match self.authority.taken_by() {
            Some(by) if writes => Some(Rejection::Disengaged(by.clone())),
            Some(_) | None if writes && view.phase != Phase::Start => Some(Rejection::Underway(view.state)),
            Some(_) | None => None,
        }
    }

    fn request(&mut self, requested: Requested) -> Reply {
        if !self.executor.request(requested) {
            return Reply::Refused(Rejection::Underway(self.protocol.view().state));
        }
        self.has_requested = true;
        Reply::Accepted
    }

    /// Fence and rally points: on the ground, as parameters.
    #[inline(never)]
    fn on_region(&mut self, now: Instant, order: RegionOrder, out: &mut Outputs) -> Reply {
        let (kind, count) = match order {
            RegionOrder::Read(kind) => (kind, None),
            RegionOrder::Write(kind, count) => (kind, Some(count)),
            RegionOrder::Supply(seq, ref point) => {
                let (executor, telemetry) = (&mut self.executor, &self.telemetry);
                let transmit = transmit(telemetry, &mut self.outgoing, out);
                if let (Some(Requested::Region(job)), Some(mut transmit)) = (executor.requested(), transmit)
                    && !telemetry.armed
                {
                    job.supply(now, seq, point, &mut transmit);
                }
                return Reply::Accepted;
            }
            RegionOrder::Judged(verdict) => {
                self.verdict = verdict;
                return Reply::Accepted;
            }
        };
        if let Some(why) = self.check_request(now, count.is_some()) {
            return Reply::Refused(why);
        }
        let Some(firmware) = self.telemetry.firmware else { return Reply::Refused(Rejection::NoVersion) };
        let has_list = match kind {
            RegionKind::Fence => firmware.has_fence_missions(),
            RegionKind::Rally => firmware.has_rally_missions(),
        };
        if !has_list {
            return Reply::Refused(Rejection::NoRegions(firmware.version));
        }
        self.request(Requested::Region(match count {
            None => Exchange::reading(now, kind),
            Some(count) => Exchange::writing(now, kind, count),
        }))
    }

    /// Continues what was asked of the parameters.
    fn work_parameters(&mut self, now: Instant, out: &mut Outputs) {
        let Some(system_id) = self.telemetry.system_id.filter(|_| self.has_requested) else { return };
        let mut transmit = self.outgoing.transmit(system_id, &mut out.autopilot);
        let (mut region, mut is_dropped) = (None, true);
        let ended = match self.executor.requested() {
            Some(job) => {
                (region, is_dropped) = (job.region(), false);
                job.poll(now, self.telemetry.armed, &mut transmit)
            }
            // A pilot has, who armed it, or an order.
            None if self.telemetry.armed => Some(Err(Failure::Armed { what: "reading and setting" })),
            None => Some(Err(Failure::NoEffect { what: "what was asked of the parameters before an order" })),
        };
        let Some(result) = ended else { return };
        self.has_requested = false;
        self.executor.end_requested();
        // Of what was dropped it is not known which it was: both have ended.
        if region.is_some() || is_dropped {
            let _ = out.regions.push(RegionReport::Ended(result.map(|_| ())));
        }
        if let Some((kind, writes)) = region {
            match result {
                Ok(_) if writes => {
                    // The fence's points are a parameter.
                    self.parameters.restart(now);
                    self.verdict = None;
                    out.log(Severity::Info, text!("{}: sent, and read back", kind.name()));
                }
                Ok(_) => {}
                Err(failure) => out.log(Severity::Error, text!("{}: {failure}", kind.name())),
            }
            return;
        }
        match result {
            Ok(Some((name, change))) => {
                let Change { before, now } = change;
                let _ = out.parameters.push(ParameterReport::Set(name, change));
                if before != now {
                    out.log(Severity::Info, text!("parameter {name} set from {before} to {now}"));
                }
            }
            Ok(None) => {}
            Err(failure) if is_dropped => out.log(Severity::Error, text!("{failure}")),
            Err(failure) => out.log(Severity::Error, text!("parameters: {failure}")),
        }
        let _ = out.parameters.push(ParameterReport::Ended(result.map(|_| ())));
    }

    /// The first check that does not hold where the command relies on it. What held at *Setup* may not at *Start*: in
    /// their slots aircraft wait for the operator for as long as he likes.
    fn failed_check(&self, now: Instant, command: Command) -> Option<Check> {
        let may_be_armed = match command {
            Command::Setup => false,
            Command::Start | Command::Resume => true,
            Command::Hold
            | Command::Return
            | Command::Land
            | Command::RecoverControl
            | Command::Engage
            | Command::SetParameters
            | Command::Exclude { .. } => return None,
        };
        let mut checks = self.checks(now, &Text::new()).into_iter();
        let flies = self.telemetry.armed;
        checks.find(|check| {
            let in_the_air = [checks::DISARMED, checks::KEYS, checks::CLOCK, checks::REMOTE_ID];
            let is_of_ground = [identity::SEVERAL, checks::STATE].contains(&check.name);
            let is_waived = in_the_air.contains(&check.name) || is_of_ground && flies;
            check.is_required && !(check.passed || may_be_armed && is_waived)
        })
    }

    /// The first check of the route that does not hold: setup checked the mission, which the plan has made a route of.
    #[inline(never)]
    fn failed_check_of_route(&self) -> Option<Check> {
        let (parameters, protocol) = (&self.parameters, &*self.protocol);
        let is_return_height_set = self.executor.overridden_return_height().is_some();
        let checks = checks::of_route(
            &self.config,
            &self.telemetry,
            parameters,
            protocol,
            is_return_height_set,
            self.verdict,
        );
        checks.into_iter().find(|check| !check.passed)
    }

    /// Whether a silence is that of a flight controller that boots: ArduCopter speaks before it has found its sensors, and
    /// then not for seconds. It was received for no longer, and has nothing to fly.
    fn is_booting(&self, now: Instant) -> bool {
        let is_young = self.telemetry.boot.boot_ms().is_none_or(|ms| ms < BOOTS_WITHIN.as_millis() as u32);
        is_young
            && !self.is_at_stake()
            && now.since(self.began) < BOOTS_WITHIN
            && self.telemetry.position.is_none()
    }

    /// Whether a heartbeat has come since the line works again.
    fn has_shown_its_mode(&self) -> bool {
        self.telemetry.heartbeat_at.is_some_and(|at| at >= self.link_up_at)
    }

    /// Whether it is known who flies the aircraft, and whether it flies.
    fn is_judged(&self, now: Instant) -> bool {
        self.telemetry.is_up(now) && self.link_was_up && self.has_shown_its_mode()
    }

    /// Whether the flight controller reported lately whether the aircraft flies, and where.
    fn is_state_known(&self, now: Instant) -> bool {
        self.telemetry.is_up(now)
            && self.telemetry.heartbeat_at.is_some()
            && self.telemetry.position.is_some()
    }

    /// Judges an emergency command that waited for the flight controller.
    fn obey_waiting(&mut self, now: Instant, out: &mut Outputs) {
        if !self.is_state_known(now) {
            return;
        }
        let Some(command) = self.waiting.take() else { return };
        let refused = match self.authority.holds_against(command) {
            Some(by) => Some(text!("not engaged: {by}")),
            None => self.protocol.permits(command).err().map(|why| text!("{why}")),
        };
        if let Some(why) = refused {
            self.commands.fail(command);
            return out.log(Severity::Warning, text!("{command}: refused: {why}"));
        }
        self.authority = Authority::Ours;
        self.set_height_of_return(command);
        self.protocol_input(now, wingbeat_protocol::Input::Operator(command), out);
    }

    /// A fresh protocol.
    fn begin_protocol(&mut self, now: Instant) {
        // Another flight needs other random numbers, and the same ones when it is replayed.
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        self.protocol = self.config.coordination.begin(self.seed, now);
        self.has_reported = false;
        self.forget_found();
        self.mission.set_usual_speed(self.protocol.view().route_speed_m_s);
    }

    /// Restarts: a fresh protocol with the same mission.
    fn engage(&mut self, now: Instant) {
        self.begin_protocol(now);
        if !self.mission.is_empty() {
            // It was accepted before, by the same rules.
            let _ = self.protocol.set_mission(self.mission.route(), self.mission.extras());
        }
        self.executor.clear();
        self.executor.expect_nothing();
        if self.loan.restore() {
            self.commands.fail(Command::SetParameters);
        }
        self.authority = Authority::Ours;
        self.waiting = None;
    }

    #[inline(never)]
    fn take_mission(&mut self, points: &[Point], extras: &MissionExtras) -> Reply {
        if let Err(why) = self.protocol.set_mission(points, extras) {
            return Reply::Refused(why.into());
        }
        self.executor.end_reading();
        self.rejoin = Rejoin::default();
        self.mission.set(points, extras, self.protocol.view().route_speed_m_s);
        Reply::Accepted
    }

    /// Every channel 0: the pilot's sticks count again
    /// (<https://mavlink.io/en/messages/common.html#RC_CHANNELS_OVERRIDE>).
    /// ArduCopter obeys that only from its ground station's id; 255 unless a parameter gives another.
    fn release_override(&mut self, out: &mut Outputs) {
        let known = self.parameters.integer(Watched::GroundStationId);
        let ground_station_id = known.and_then(|id| u8::try_from(id).ok()).unwrap_or(255);
        let Some(mut transmit) = transmit(&self.telemetry, &mut self.outgoing, out) else { return };
        let _ = rc::release(ground_station_id, &mut transmit);
    }

    /// Hands an input to the protocol and performs what it asks. One that is not engaged goes on broadcasting where the
    /// aircraft is, and orders nothing.
    /// Whether the protocol took it.
    fn protocol_input(
        &mut self,
        now: Instant,
        input: wingbeat_protocol::Input<'_>,
        out: &mut Outputs,
    ) -> bool {
        let mut actions = Actions::new();
        self.protocol.handle(now, input, &mut actions);
        self.perform(now, &actions, out)
    }

    /// Performs what a protocol asks. Whether it took the input.
    fn perform(&mut self, now: Instant, actions: &Actions, out: &mut Outputs) -> bool {
        let mut is_taken = true;
        // By reference: an action has room for the largest plan, and moving it moves that too.
        for action in actions {
            match action {
                Action::Order(_) if !self.authority.is_ours() => {}
                Action::Order(order) => {
                    self.executor.begin(*order);
                    self.idle_until = (Instant::ZERO, "an order begins");
                }
                Action::Broadcast { flight, message } => self.broadcast(now, *flight, message, out),
                Action::PassOn => self.pass_command_on(now, out),
                Action::Log(severity, line) => out.log(*severity, line.clone()),
                Action::Refused(reason) => {
                    is_taken = false;
                    self.received -= 1;
                    self.refuse(*reason);
                }
            }
        }
        is_taken
    }

    fn broadcast(&mut self, now: Instant, flight: u32, message: &Message, out: &mut Outputs) {
        if let Message::Exclude { member } = message
            && self.pass_exclusion_on(flight, *member, out)
        {
            return;
        }
        let clock_us = self.counter_base_us.saturating_add(now.as_micros());
        self.counter = clock_us.max(self.counter.saturating_add(1));
        let (me, counter) = (self.id(), self.counter);
        // Written where it leaves from; beyond the bound nothing is asked for.
        let draft = match out.datagrams.push(Draft::default()) {
            Ok(()) => out.datagrams.last_mut(),
            Err(_) => None,
        };
        let Some(draft) = draft else { return };
        match draft.write(me, counter, flight, message) {
            Ok(()) => self.sent += 1,
            Err(reason) => {
                out.datagrams.pop();
                out.log(Severity::Error, text!("a message does not fit a datagram: {reason}"));
            }
        }
    }

    /// Gives the autopilot the signing key, where that is configured.
    fn hand_over_key(&mut self, now: Instant, out: &mut Outputs) {
        let Some(job) = &mut self.setup_signing else { return };
        let accepted = self.decoder.verifier().is_some_and(|v| v.accepted() > 0);
        let time = self.outgoing.signer.as_ref().map_or_else(Timestamp::default, Signer::now);
        let Some(mut transmit) = transmit(&self.telemetry, &mut self.outgoing, out) else { return };
        match job.poll(now, &self.telemetry, accepted, time, &mut transmit) {
            Progress::Pending => return,
            Progress::Done => out.log(Severity::Info, text!("the flight controller signs with our key")),
            Progress::Failed(failure) => out.log(Severity::Error, text!("signing key: {failure}")),
        }
        self.setup_signing = None;
    }

    /// Whether the pilot's height of RTL and speed of AUTO are to be given back now: on the ground, before or after a flight.
    fn restores_settings(&self) -> bool {
        let between_flights =
            || matches!(self.protocol.view().phase, Phase::Start | Phase::Finished | Phase::Aborted);
        !self.telemetry.armed && self.executor.owes_settings() && between_flights()
    }

    /// After a flight, and on the ground, the pilot's parameters come back.
    fn end_loan(&mut self, out: &mut Outputs) {
        let phase = self.protocol.view().phase;
        let is_over = matches!(phase, Phase::Finished | Phase::Aborted);
        if self.loan.is_overdue()
            && self.link_was_up
            && !self.telemetry.armed
            && (is_over || phase == Phase::Start)
        {
            // What the pilot has set meanwhile stays.
            let reported = |watched| self.parameters.value(watched);
            if !self.loan.is_reported(|watched| !matches!(self.parameters.finding(watched), Finding::Unknown))
            {
                return;
            }
            while let Some((name, before, found)) = self.loan.forget_set_since(reported) {
                out.log(
                    Severity::Info,
                    text!("{name}: found {found}, set since: the pilot's {before} of before is forgotten"),
                );
            }
            self.loan.restore_once();
        } else if is_over && !self.telemetry.armed {
            self.loan.restore_once();
        }
    }

    /// Whether orders go out: to an ArduCopter, not after a takeover, and after a gap on the line not before a heartbeat
    /// has shown what a pilot did meanwhile.
    fn may_order(&self) -> bool {
        let is_judged = self.has_shown_its_mode();
        self.authority.is_ours() && self.telemetry.is_copter == Some(true) && self.link_was_up && is_judged
    }

    /// The speed of AUTO as the autopilot reported it last.
    fn reported_speed(&self) -> Option<(ParameterName, ParameterValue)> {
        match self.parameters.finding(Watched::TrackSpeed) {
            Finding::Known { name, value } => Some((name, value)),
            Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => None,
        }
    }

    /// What is due towards the autopilot: heartbeat, requests, the order.
    fn work(&mut self, now: Instant, out: &mut Outputs) {
        let up = self.telemetry.is_up(now);
        if self.link_was_up && !up {
            if !self.is_booting(now) {
                out.log(Severity::Error, text!("nothing received from the flight controller"));
            }
        } else if up && !self.link_was_up {
            out.log(Severity::Info, text!("the flight controller is connected"));
            // Its state meanwhile is unknown.
            self.parameters.restart(now);
            self.link_up_at = now;
        }
        self.link_was_up = up;
        self.hand_over_key(now, out);
        self.work_parameters(now, out);
        self.end_loan(out);
        self.await_position(now, out);
        // An order ends and the protocol's answer may begin the next: three in a row is plenty, and a
        // fourth waits for the next input.
        for _ in 0..3 {
            let (may_order, restores) = (self.may_order(), self.restores_settings());
            // Another autopilot is refused, and asked for nothing.
            let is_copter = self.telemetry.is_copter == Some(true);
            let operator = self.operator_place();
            let speed = self.reported_speed();
            let unix_us = self.latest_us(now);
            let Some(mut transmit) = transmit(&self.telemetry, &mut self.outgoing, out) else {
                return;
            };
            // A frame without room is a lost frame; every sender tries again.
            let _ = self.heartbeat.poll(now, &mut transmit);
            let _ = self.console.poll(now, &mut transmit);
            let _ = self.streams.poll(now, &mut transmit);
            if is_copter {
                let _ = self.parameters.poll(now, &mut transmit);
                let _ = self.gnss_clock.poll(now, &mut transmit);
            }
            if let Some(config) = &self.config.remote_id {
                self.remote_id.poll(now, config, operator, unix_us, &mut transmit);
            }
            if !may_order {
                return;
            }
            if let Some(result) = self.rejoin.poll(now, &mut self.executor, &mut transmit) {
                self.on_mission_read(now, result, out);
                continue;
            }
            if !self.telemetry.armed
                && let Some(line) = self.loan.poll(now, &mut transmit)
            {
                match line {
                    Ok(line) => out.log(Severity::Info, line),
                    Err(line) => out.log(Severity::Error, line),
                }
                continue;
            }
            if restores {
                match self.executor.restore_settings(now, &mut transmit) {
                    None => return,
                    Some(Ok(line)) => out.log(Severity::Info, line),
                    // The others are given back all the same.
                    Some(Err(line)) => out.log(Severity::Error, line),
                }
                continue;
            }
            let mut ended = self.executor.poll(now, &self.telemetry, &*self.protocol, speed, &mut transmit);
            if let Some(held) = self.executor.take_held() {
                self.route_hash = held;
            }
            // Reading the mission back may have taken a minute.
            if self.executor.take_compared()
                && let Some(Check { name, detail, .. }) = self.failed_check(now, Command::Start)
            {
                out.log(Severity::Error, text!("{name}: {detail}"));
                ended = self.executor.refuse();
            }
            let Some((order, result)) = ended else { return };
            let failed = if order == Order::LoadRoute { self.failed_check_of_route() } else { None };
            let input = match (result, failed) {
                (Ok(()), Some(Check { name, detail, .. })) => {
                    out.log(Severity::Error, text!("{order}: {name}: {detail}"));
                    wingbeat_protocol::Input::Failed(order)
                }
                (Ok(()), None) => {
                    if order == Order::LoadRoute
                        && let (Some(mm), Some(pilots)) =
                            (self.protocol.view().return_height_mm, self.executor.overridden_return_height())
                    {
                        let line = text!("returns at {} m; the pilot's {pilots}", f64::from(mm) / 1e3);
                        out.log(Severity::Info, line);
                    }
                    if order == Order::LoadRoute
                        && let (Some(m_s), Some((name, pilots))) =
                            (self.protocol.view().route_speed_m_s, self.executor.pilots_speed())
                    {
                        out.log(Severity::Info, text!("flies at {m_s} m/s; the pilot's {name} {pilots}"));
                    }
                    wingbeat_protocol::Input::Done(order)
                }
                (Err(failure), _) => {
                    out.log(Severity::Error, text!("{order}: {failure}"));
                    match order {
                        Order::FlyRoute { .. } => self.commands.fail(Command::Start),
                        Order::ResumeHeld => self.commands.fail(Command::Resume),
                        Order::LoadRoute
                        | Order::TakeOff { .. }
                        | Order::FlyTo(_)
                        | Order::Resume
                        | Order::Hold
                        | Order::Return
                        | Order::Land => {}
                    }
                    wingbeat_protocol::Input::Failed(order)
                }
            };
            self.protocol_input(now, input, out);
        }
    }
}

/// Logs a text of the autopilot, in as many lines as it takes.
fn log_whole(severity: Severity, line: &str, out: &mut Outputs) {
    const PREFIX: &str = "flight controller: ";
    let mut rest = line;
    loop {
        let mut room = Text::new().capacity() - PREFIX.len();
        while !rest.is_char_boundary(room.min(rest.len())) {
            room -= 1;
        }
        let (part, after) = rest.split_at(room.min(rest.len()));
        out.log(severity, text!("{PREFIX}{part}"));
        if after.is_empty() {
            return;
        }
        rest = after;
    }
}

/// Sends frames once the autopilot's system id is known.
fn transmit<'a>(
    telemetry: &Telemetry,
    outgoing: &'a mut Outgoing,
    out: &'a mut Outputs,
) -> Option<Transmit<'a>> {
    Some(outgoing.transmit(telemetry.system_id?, &mut out.autopilot))
}
