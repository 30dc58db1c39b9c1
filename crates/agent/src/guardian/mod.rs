//! The guardian: the process that stops and lands an aircraft whose companion daemon has died.
//!
//! A position target has no time-out in ArduCopter and a mission in AUTO continues without it, so a dead
//! daemon leaves an aircraft that flies on. The guardian is a second, small process on the same computer.
//! While the daemon lives it only receives its pulses. When they end while the daemon was commanding, it
//! takes the autopilot's port, requests BRAKE until a heartbeat shows it, holds, requests LAND (or RTL) until
//! that is seen, and waits for the motors to stop.
//!
//! Promises: it commands nothing while the daemon lives, or when the daemon was idle or the pilot had the
//! aircraft; any mode that neither the daemon nor itself requested is the pilot's, and ends what it does
//! immediately; once its own mode was seen, a mode of the daemon's is not expected any more.
//! Where a voltage to land at is configured, it holds and returns no longer than the battery does.
//!
//! An aircraft that a daemon left on its route it gives back, once in a flight and while it holds, to the next daemon that
//! takes the flight up by the system id of the flight controller that the guardian receives ([`Pulse::takes_up`]): from then
//! on that daemon holds it, resumes it or lands it, and is succeeded if it dies. A daemon that does not receive that flight
//! controller within [`RECEIVED_WITHIN`] loses the aircraft to the guardian again.
//!
//! Like the agent it is pure: one [`Input`] with the time in, bounded [`Outputs`] out.
//! `docs/decisions/0003-companion-death.md` gives the reasons. The transition table is
//! [`TakeoverPhase::next`], printed whole in `snapshots/`.
//!
//! ```text
//!            pulse             socket closed, or silence and SIGKILL, while commanding
//! (no daemon) ───▶ Watching ─────────────────────▶ AwaitingHeartbeat ──▶ Braking ──▶ Holding ──▶ Ending ──▶ Descending
//!                     ▲                               │           │           │          │           │
//!                     └───────────────────────────────┴───────────┴───────────┴──────────┴───────────┘
//!                                    disarmed, or the pilot's mode: the port closes
//! ```

// SET_MODE is what ArduCopter 3.5.7 obeys.
#![allow(deprecated)]

mod battery;
mod life;
mod pulse;
#[cfg(test)]
mod tests;

pub use life::{LATE_WITHIN, Process, ProcessState};
pub use pulse::{
    Activity, Answer, Beat, Before, Cause, Modes, PULSE_LEN, Pulse, REPORT_LEN, RecordError, Report, Stance,
    VERSION, fingerprint,
};

use heapless::Vec;
use life::{Life, Verdict};
use serde::Deserialize;
use wingbeat_autopilot::codec::framing::Outgoing;
use wingbeat_autopilot::codec::signing::{Signer, Timestamp, Unsigned, Verifier};
use wingbeat_autopilot::codec::{Decoder, Frame};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    HEARTBEAT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavState, MavType, SET_MODE_DATA,
};
use wingbeat_autopilot::identity::Vehicle;
use wingbeat_autopilot::job::{AUTOPILOT_COMPONENT_ID, TRANSMIT_LEN_MAX};
use wingbeat_autopilot::telemetry::{Measurements, Sensors, status_text::printable, switch::ModeSwitch};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Severity, Text, text};

use crate::takeover::{ANNOUNCED_WITHIN, announces_failsafe, is_of_failsafe};
use crate::{LogEntry, Signing};

/// The guardian's MAVLink component: the second onboard computer
/// (<https://mavlink.io/en/messages/common.html#MAV_COMP_ID_ONBOARD_COMPUTER2>).
pub const COMPONENT_ID: u8 = 192;
/// How often a daemon sends a pulse, in addition to one at every change.
pub const PULSE_PERIOD: Duration = Duration::from_millis(200);
/// A daemon that has not been answered for so long is not protected.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A heartbeat shows the mode at 1 Hz on 3.5.7: request again a little later than that.
const REQUEST_PERIOD: Duration = Duration::from_millis(1_200);
/// 3.5.7 refuses BRAKE and RTL without a position estimate: after so many tries LAND, which needs none.
const TRIES: u8 = 3;
/// A daemon that dies while it arms leaves motors that start a moment later: so long a disarmed heartbeat
/// is ignored.
const ARMING_WITHIN: Duration = Duration::from_secs(3);
/// So long after a daemon's death the next may take up its flight.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(60);
/// A killed process is gone within milliseconds; whatever its socket reports, the aircraft does not wait longer.
const KILL_WITHIN: Duration = Duration::from_millis(500);
/// A daemon that was given the aircraft back receives its flight controller within this time: a port that opens, and two
/// heartbeats.
pub const RECEIVED_WITHIN: Duration = Duration::from_secs(4);
/// Our heartbeat, MAVLink's usual period.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(1);

/// What follows the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Land where it is.
    #[default]
    Land,
    /// Return to launch.
    Rtl,
    /// Stay in BRAKE, for a pilot or the battery failsafe to end.
    Hold,
}

/// Configuration of a guardian.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// A commanding daemon that is silent for so long hangs.
    pub silence: Duration,
    /// How long BRAKE is kept.
    pub hold: Duration,
    /// What it requests after the hold.
    pub then: Then,
    /// Voltage under load below which the aircraft lands where it is, also while it holds or returns, millivolts; 0 for none. The
    /// daemon's ([`Reserve::land_below_mv`](crate::energy::Reserve::land_below_mv)).
    pub land_below_mv: u16,
    /// How long it stays below, seconds.
    pub below_for_s: u8,
    /// Batteries that nothing is judged by; the daemon's ([`Reserve::other_batteries`](crate::energy::Reserve::other_batteries)).
    pub other_batteries: u16,
    /// [`fingerprint`] of the autopilot's endpoint.
    pub endpoint: u32,
    /// Whether frames to and from the autopilot are signed, as the daemon's are.
    pub signing: Option<Signing>,
}

/// An input of a guardian.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Time has passed. Pulses that wait are handed in before.
    Wake,
    /// What time it is, for signing.
    Utc {
        /// Microseconds since 1970.
        unix_us: u64,
    },
    /// A daemon connected.
    Connected,
    /// The daemon's pulse, at the moment when its driver turned.
    Pulse(Pulse),
    /// The daemon's pulse as it was received.
    Beat(Beat),
    /// The answer to [`Outputs::sample`]; none where the process cannot be read.
    Process(Option<Process>),
    /// The daemon's socket closed.
    Gone,
    /// The port to the autopilot opened (true) or closed.
    AutopilotLink(bool),
    /// Bytes from the autopilot.
    Autopilot(&'a [u8]),
    /// The guardian itself is asked to end: an aircraft that it holds lands now.
    Stop,
}

/// Everything to do after one input.
#[derive(Default)]
pub struct Outputs {
    /// Bytes for the autopilot.
    pub autopilot: Vec<u8, TRANSMIT_LEN_MAX>,
    /// What to answer to [`Input::Pulse`].
    pub report: Option<Report>,
    /// The daemon hangs: end its process by force, so that its port is free.
    pub kill: bool,
    /// A sample of the daemon's process is wanted now.
    pub sample: bool,
    /// The daemon's process has ended: its connection is of no use.
    pub is_dead: bool,
    /// Lines for the log.
    pub log: Vec<LogEntry, 8>,
}

impl Outputs {
    fn log(&mut self, severity: Severity, text: Text) {
        let _ = self.log.push(LogEntry { severity, text });
    }
}

/// What a guardian does that has taken over the autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverPhase {
    /// Waits for a heartbeat, which shows mode and arming.
    AwaitingHeartbeat,
    /// Requests BRAKE.
    Braking,
    /// A heartbeat showed BRAKE.
    Holding,
    /// Requests LAND or RTL.
    Ending,
    /// A heartbeat showed LAND or RTL.
    Descending,
}

/// What a heartbeat, a deadline or a request to stop means to a guardian that has taken over the autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeoverInput {
    /// Motors off, and arming may still be on its way.
    DisarmedEarly,
    /// Motors off.
    Disarmed,
    /// A mode that neither the daemon nor the guardian requested, or a mode switch that the pilot moved.
    Foreign,
    /// BRAKE, requested.
    Brake,
    /// LAND or RTL, requested.
    Descent,
    /// Any other mode that the daemon requested: GUIDED, AUTO.
    Commanded,
    /// No heartbeat showed the requested mode after the last try.
    Unconfirmed,
    /// BRAKE was kept long enough.
    HoldOver,
    /// The battery carries the aircraft to the ground and no farther.
    BatteryLow,
    /// The guardian is asked to end.
    Stop,
}

/// What a input leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing changes.
    Stay,
    /// Another phase.
    To(TakeoverPhase),
    /// The guardian releases the autopilot.
    Release,
}

impl TakeoverPhase {
    /// Every phase.
    pub const ALL: [Self; 5] =
        [Self::AwaitingHeartbeat, Self::Braking, Self::Holding, Self::Ending, Self::Descending];

    /// The transition table: it reads and never writes, so that a test can print it whole.
    pub fn next(self, input: TakeoverInput) -> Next {
        match (self, input) {
            (_, TakeoverInput::Foreign | TakeoverInput::Disarmed) => Next::Release,
            (Self::AwaitingHeartbeat, TakeoverInput::DisarmedEarly) => Next::Stay,
            (_, TakeoverInput::DisarmedEarly) => Next::Release,
            (Self::AwaitingHeartbeat, TakeoverInput::Commanded) => Next::To(Self::Braking),
            (Self::AwaitingHeartbeat | Self::Braking | Self::Descending, TakeoverInput::Brake) => {
                Next::To(Self::Holding)
            }
            // The daemon had requested it already: it lands.
            (Self::AwaitingHeartbeat | Self::Braking | Self::Ending, TakeoverInput::Descent) => {
                Next::To(Self::Descending)
            }
            (Self::Braking, TakeoverInput::Unconfirmed | TakeoverInput::Stop) => Next::To(Self::Ending),
            (Self::Holding, TakeoverInput::HoldOver | TakeoverInput::Stop) => Next::To(Self::Ending),
            // LAND, instead of what was kept or requested; before the first heartbeat nothing is known.
            (Self::Braking | Self::Holding | Self::Ending | Self::Descending, TakeoverInput::BatteryLow) => {
                Next::To(Self::Ending)
            }
            // RTL was refused: LAND instead.
            (Self::Ending, TakeoverInput::Unconfirmed | TakeoverInput::Stop) => Next::To(Self::Ending),
            // Before the first heartbeat it is unknown whether the pilot commands the aircraft: the pilot's mode outranks.
            (
                _,
                TakeoverInput::Commanded
                | TakeoverInput::Brake
                | TakeoverInput::Descent
                | TakeoverInput::Unconfirmed
                | TakeoverInput::HoldOver
                | TakeoverInput::BatteryLow
                | TakeoverInput::Stop,
            ) => Next::Stay,
        }
    }

    fn stance(self) -> Stance {
        match self {
            Self::AwaitingHeartbeat => Stance::AwaitingHeartbeat,
            Self::Braking => Stance::Braking,
            Self::Holding => Stance::Holding,
            Self::Ending => Stance::Ending,
            Self::Descending => Stance::Descending,
        }
    }
}

/// A daemon that is connected.
#[derive(Clone, Copy, Debug)]
struct DaemonWatch {
    pulse: Option<Pulse>,
    life: Life,
    killed_at: Option<Instant>,
}

/// The autopilot, taken over by the guardian.
#[derive(Clone, Copy, Debug)]
struct Takeover {
    cause: Cause,
    phase: TakeoverPhase,
    since: Instant,
    system_id: u8,
    /// Modes that the daemon or the guardian requested: no sign of a pilot.
    ours: Modes,
    shown: Option<u32>,
    /// The mode that is requested.
    requested: Mode,
    tries: u8,
    /// When the autopilot announced a failsafe.
    announced_at: Option<Instant>,
    /// The channel of the pilot's mode switch, 0 while unknown; the switch; and whether it was moved, since the last report of the
    /// receiver.
    switch_channel: u8,
    switch: ModeSwitch,
    switch_moved: bool,
    /// It was requested at least once.
    is_requested: bool,
    request_at: Instant,
    hold_until: Instant,
    heartbeat_at: Instant,
    /// The guardian is to end: nothing but LAND.
    stopping: bool,
    /// Since when the voltage is below the configured one.
    low_since: Option<Instant>,
    /// It was for long enough: nothing but LAND.
    is_low: bool,
    /// The route that the daemon left the aircraft on; 0 where it was on none.
    route: u64,
}

/// A guardian.
pub struct Guardian {
    config: Config,
    daemon: Option<DaemonWatch>,
    takeover: Option<Takeover>,
    /// The batteries, as the autopilot has reported them since the takeover.
    measured: Measurements,
    /// For the next daemon.
    before: Before,
    /// The aircraft was given back in this flight: it is not again.
    is_given_back: bool,
    /// It was, and the daemon that has it has not received the autopilot yet: what it is succeeded by, and when.
    given_back: Option<(Pulse, Instant)>,
    /// The system id of the flight controller, as the last daemon knew it; 0 while unknown.
    known_id: u8,
    port_open: bool,
    utc: Option<(Instant, u64)>,
    decoder: Decoder,
    outgoing: Outgoing,
}

impl Guardian {
    /// A guardian that waits for its daemon.
    pub fn new(config: Config) -> Self {
        let outgoing = Outgoing {
            signer: config.signing.as_ref().map(|s| Signer::new(s.key.clone(), s.link_id)),
            ..Outgoing::default()
        };
        let decoder = decoder(&config);
        let before = Before::Unknown;
        Self {
            config,
            daemon: None,
            takeover: None,
            measured: Measurements::default(),
            before,
            is_given_back: false,
            given_back: None,
            known_id: 0,
            port_open: false,
            utc: None,
            decoder,
            outgoing,
        }
    }

    /// Whether it wants the port to the autopilot open. It must be closed otherwise.
    pub fn wants_port(&self) -> bool {
        self.takeover.is_some()
    }

    /// What it is doing, for its answer and the log.
    pub fn stance(&self) -> Stance {
        self.takeover.map_or(Stance::Watching, |takeover| takeover.phase.stance())
    }

    /// Whether a daemon is protected now: it would be noticed if it died.
    pub fn watches_a_commanding_daemon(&self) -> bool {
        self.commanding().is_some()
    }

    /// When it wants [`Input::Wake`]. Earlier is harmless.
    pub fn poll_timeout(&self) -> Instant {
        let mut next = Instant::NEVER;
        if let (Some((watch, _)), None) = (self.commanding(), self.takeover) {
            next = match watch.killed_at {
                Some(at) => at + KILL_WITHIN,
                None => watch.life.due(self.config.silence),
            };
            if let Some((_, until)) = self.given_back {
                next = next.min(until);
            }
        }
        if let Some(takeover) = self.takeover {
            match takeover.phase {
                TakeoverPhase::Braking | TakeoverPhase::Ending if self.port_open => {
                    next = next.min(takeover.request_at)
                }
                TakeoverPhase::AwaitingHeartbeat
                | TakeoverPhase::Descending
                | TakeoverPhase::Braking
                | TakeoverPhase::Ending => {}
                TakeoverPhase::Holding => next = next.min(takeover.hold_until),
            }
            if takeover.system_id != 0 && self.port_open {
                next = next.min(takeover.heartbeat_at);
            }
        }
        next
    }

    /// Handles one input. When it returns, `out` is everything to do; what it held before is cleared.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        *out = Outputs::default();
        match input {
            Input::Wake => self.wake(now, out),
            Input::Utc { unix_us } => self.utc = Some((now, unix_us)),
            Input::Connected => {
                out.log(Severity::Info, text!("a daemon connected"));
                self.daemon = Some(DaemonWatch { pulse: None, life: Life::new(now), killed_at: None });
            }
            Input::Pulse(pulse) => {
                if let Some(watch) = &mut self.daemon {
                    watch.life.renew(now);
                }
                self.pulse(now, pulse, out);
            }
            Input::Beat(beat) => self.beat(now, beat, out),
            Input::Process(sample) => self.judge_process(now, sample, out),
            Input::Gone => self.gone(now, out),
            Input::AutopilotLink(open) => {
                self.port_open = open;
                // Half a frame of before the port closed is no frame's beginning.
                self.decoder.restart();
                self.outgoing.negotiation.restart();
                if let Some(takeover) = &mut self.takeover {
                    let what = if open { "open" } else { "closed" };
                    if open {
                        // What was on its way when the port closed may be lost; and a UDP bridge learns from
                        // our heartbeat where to send.
                        (takeover.request_at, takeover.tries, takeover.heartbeat_at) = (now, 0, now);
                    }
                    out.log(Severity::Info, text!("the port to the flight controller is {what}"));
                }
            }
            Input::Autopilot(bytes) => {
                let mut decoder = core::mem::take(&mut self.decoder);
                decoder.push_at(now, bytes, |frame| self.on_frame(now, &frame, out));
                self.decoder = decoder;
            }
            Input::Stop => {
                if let Some(takeover) = &mut self.takeover {
                    takeover.stopping = true;
                    self.apply(now, TakeoverInput::Stop, out);
                }
            }
        }
        self.send_due(now, out);
    }

    /// The daemon with its last pulse, while it commands the aircraft.
    fn commanding(&self) -> Option<(DaemonWatch, Pulse)> {
        let watch = self.daemon?;
        let given_back = self.given_back.map(|(pulse, _)| pulse);
        let commands = watch.pulse.filter(|pulse| pulse.activity == Activity::Commanding);
        // A daemon that was given the aircraft back says more of it when it has received it.
        Some((watch, given_back.or(commands)?))
    }

    /// Gives the aircraft back to a daemon that takes up its flight, while it holds. The report that says so follows the next
    /// pulse, when the port is closed.
    fn give_back(&mut self, now: Instant, daemon: Pulse, out: &mut Outputs) {
        let Some(takeover) = self.takeover else { return };
        let may_be = takeover.phase == TakeoverPhase::Holding
            && !takeover.stopping
            && !takeover.is_low
            && takeover.route != 0
            && now.since(takeover.since) < TAKEN_UP_WITHIN;
        // By the id that is received here: a daemon that means another aircraft does not get this one.
        let is_meant = daemon.takes_up != 0 && daemon.takes_up == takeover.system_id && daemon.system_id == 0;
        if !may_be || self.is_given_back || !is_meant {
            return;
        }
        let modes = Modes::one(Mode::Brake.number());
        let Takeover { route, system_id, switch_channel, .. } = takeover;
        self.before = Before::OnRoute { modes, route };
        self.is_given_back = true;
        let left = Pulse {
            activity: Activity::Commanding,
            system_id,
            ours: modes,
            switch_channel,
            endpoint: self.config.endpoint,
            route: 0,
            takes_up: 0,
        };
        self.given_back = Some((left, now + RECEIVED_WITHIN));
        (self.takeover, self.port_open) = (None, false);
        if let Some(watch) = &mut self.daemon {
            watch.life.renew(now);
        }
        let held_ms = now.since(takeover.since).as_millis();
        out.log(
            Severity::Warning,
            text!(
                "system {system_id}, holding on route {route:016x}: given back after {held_ms} ms to a daemon that takes it up"
            ),
        );
    }

    /// A pulse as it was received: a sign of life of a certain age, and, if it is the newest, its content.
    fn beat(&mut self, now: Instant, beat: Beat, out: &mut Outputs) {
        let Some(watch) = &mut self.daemon else { return };
        let is_newest = watch.life.on_beat(now, &beat);
        if let Some(pulse) = if is_newest { Some(beat.pulse) } else { watch.pulse } {
            self.pulse(now, pulse, out);
        }
    }

    fn pulse(&mut self, now: Instant, pulse: Pulse, out: &mut Outputs) {
        let Some(watch) = &mut self.daemon else { return };
        let ours = pulse.endpoint == self.config.endpoint;
        if !ours && watch.pulse.is_none_or(|before| before.endpoint == self.config.endpoint) {
            out.log(Severity::Error, text!("the daemon has another autopilot.endpoint: it is not protected"));
        }
        watch.pulse = Some(pulse);
        let stance = if ours { self.stance() } else { Stance::OtherEndpoint };
        if !ours && let Some(watch) = &mut self.daemon {
            // Kept for the comparison above, and never acted upon.
            watch.pulse = Some(Pulse { activity: Activity::Idle, ..pulse });
        }
        let cause = self.takeover.map_or(Cause::Ended, |takeover| takeover.cause);
        // Of another autopilot it knows nothing.
        let before = if ours { self.before } else { Before::Unknown };
        let system_id = match self.takeover {
            _ if !ours => 0,
            // Known and received are two things: it is named when a heartbeat has shown it.
            Some(takeover) => takeover.shown.map_or(0, |_| takeover.system_id),
            None => self.known_id,
        };
        out.report = Some(Report { answer: Answer { stance, cause }, before, system_id });
        if !ours {
            return;
        }
        if pulse.system_id != 0 && self.takeover.is_none() {
            self.known_id = pulse.system_id;
        }
        if let Some((left, _)) = self.given_back
            && pulse.system_id != 0
        {
            // From here on its own pulses say whether it is succeeded.
            self.given_back = None;
            if pulse.system_id != left.system_id {
                let (found, expected) = (pulse.system_id, left.system_id);
                out.log(
                    Severity::Error,
                    text!(
                        "the daemon received system {found}, given back was system {expected}: taken again"
                    ),
                );
                self.known_id = left.system_id;
                return self.take_over(now, Cause::NotReceived, left, out);
            }
        }
        if pulse.system_id != 0 && pulse.activity == Activity::Idle {
            self.is_given_back = false;
        }
        self.give_back(now, pulse, out);
    }

    fn gone(&mut self, now: Instant, out: &mut Outputs) {
        let commanding = self.commanding();
        let left = self.daemon.take();
        self.given_back = None;
        // While the guardian has the autopilot the daemon knows nothing newer.
        if let (Some(pulse), None) = (left.and_then(|watch| watch.pulse), self.takeover)
            && pulse.endpoint == self.config.endpoint
        {
            self.before = self.before.after(pulse);
        }
        match commanding {
            Some((watch, pulse)) if self.takeover.is_none() => {
                let cause = if watch.killed_at.is_some() { Cause::Hung } else { Cause::Ended };
                self.take_over(now, cause, pulse, out);
            }
            _ if left.is_some() => out.log(Severity::Info, text!("the daemon left; it was not commanding")),
            _ => {}
        }
    }

    fn take_over(&mut self, now: Instant, cause: Cause, pulse: Pulse, out: &mut Outputs) {
        out.log(Severity::Error, text!("{cause} while it was commanding: taking over the flight controller"));
        self.decoder = decoder(&self.config);
        self.outgoing.negotiation.restart();
        self.measured = Measurements::default();
        self.takeover = Some(Takeover {
            cause,
            phase: TakeoverPhase::AwaitingHeartbeat,
            since: now,
            system_id: if pulse.system_id == 0 { self.known_id } else { pulse.system_id },
            ours: pulse.ours,
            shown: None,
            requested: Mode::Brake,
            tries: 0,
            announced_at: None,
            switch_channel: pulse.switch_channel,
            switch: ModeSwitch::default(),
            switch_moved: false,
            is_requested: false,
            request_at: now,
            hold_until: Instant::NEVER,
            heartbeat_at: now,
            stopping: false,
            low_since: None,
            is_low: false,
            route: pulse.route,
        });
    }

    /// A sample of the daemon's process was taken.
    fn judge_process(&mut self, now: Instant, sample: Option<Process>, out: &mut Outputs) {
        if self.takeover.is_some() || self.commanding().is_none() {
            return;
        }
        let silence = self.config.silence;
        if let Some(watch) = self.daemon.as_mut().filter(|watch| watch.killed_at.is_none()) {
            let verdict = watch.life.on_sample(now, silence, sample);
            self.act_on(now, verdict, out);
        }
    }

    fn act_on(&mut self, now: Instant, verdict: Verdict, out: &mut Outputs) {
        match verdict {
            Verdict::Wait(line) => {
                if let Some(line) = line {
                    out.log(Severity::Warning, line);
                }
            }
            Verdict::Sample => out.sample = true,
            Verdict::Kill(line) => {
                out.log(Severity::Error, line);
                out.kill = true;
                if let Some(watch) = &mut self.daemon {
                    watch.killed_at = Some(now);
                }
            }
            Verdict::Dead(line) => {
                out.log(Severity::Error, line);
                out.is_dead = true;
                self.gone(now, out);
            }
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Outputs) {
        if let (Some((_, pulse)), None) = (self.commanding(), self.takeover) {
            if let Some((left, until)) = self.given_back
                && now >= until
            {
                out.log(
                    Severity::Error,
                    text!("system {} was given back and is not received", left.system_id),
                );
                self.given_back = None;
                self.take_over(now, Cause::NotReceived, left, out);
            } else if let Some(watch) = &mut self.daemon {
                match watch.killed_at {
                    None => {
                        let verdict = watch.life.judge(now, self.config.silence);
                        self.act_on(now, verdict, out);
                    }
                    Some(at) if now >= at + KILL_WITHIN => {
                        out.log(Severity::Error, text!("the hung daemon does not end"));
                        // From now on it counts as dead.
                        self.daemon = None;
                        self.given_back = None;
                        self.take_over(now, Cause::Hung, pulse, out);
                    }
                    Some(_) => {}
                }
            }
        }
        let Some(takeover) = &self.takeover else { return };
        match takeover.phase {
            TakeoverPhase::Holding if now >= takeover.hold_until => {
                self.apply(now, TakeoverInput::HoldOver, out)
            }
            TakeoverPhase::Braking | TakeoverPhase::Ending
                if self.port_open && now >= takeover.request_at && takeover.tries >= TRIES =>
            {
                self.apply(now, TakeoverInput::Unconfirmed, out);
            }
            TakeoverPhase::AwaitingHeartbeat
            | TakeoverPhase::Braking
            | TakeoverPhase::Holding
            | TakeoverPhase::Ending
            | TakeoverPhase::Descending => {}
        }
    }

    fn on_frame(&mut self, now: Instant, frame: &Frame, out: &mut Outputs) {
        let Some(takeover) = &mut self.takeover else { return };
        let is_autopilots = takeover.system_id != 0
            && frame.header.system_id == u32::from(takeover.system_id)
            && frame.header.component_id == AUTOPILOT_COMPONENT_ID;
        if is_autopilots {
            if let MavMessage::STATUSTEXT(status) = &frame.message
                && announces_failsafe(&printable(&*status.text))
            {
                takeover.announced_at = Some(now);
            }
            if let MavMessage::RC_CHANNELS(channels) = &frame.message {
                takeover.switch_moved |= takeover.switch.on_report(now, channels, takeover.switch_channel);
            }
            if let MavMessage::SYS_STATUS(status) = &frame.message {
                // A receiver that has lost the transmitter may turn its channels to a preset, and is reported as lost only later: then
                // no pilot is there, and the aircraft is not given up.
                let is_received = Sensors::of(status).radio_control == Some(true);
                if core::mem::take(&mut takeover.switch_moved) && is_received {
                    out.log(Severity::Warning, text!("the pilot moved the mode switch"));
                    self.before = Before::Pilot;
                    return self.apply(now, TakeoverInput::Foreign, out);
                }
            }
            if let Some(line) = takeover.is_low_now(now, &frame.message, &mut self.measured, &self.config) {
                out.log(Severity::Warning, line);
                return self.apply(now, TakeoverInput::BatteryLow, out);
            }
        }
        let MavMessage::HEARTBEAT(heartbeat) = &frame.message else { return };
        let is_armed = heartbeat.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED);
        // Where no daemon has named it, the one that flies in a mode that was asked for.
        let is_meant = match takeover.system_id {
            0 => is_armed && takeover.ours.contains(heartbeat.custom_mode),
            id => frame.header.system_id == u32::from(id),
        };
        let from_autopilot = is_meant
            && frame.header.component_id == AUTOPILOT_COMPONENT_ID
            && Vehicle::of(heartbeat).is_some_and(Vehicle::is_copter);
        if !from_autopilot {
            return;
        }
        self.outgoing.negotiation.on_frame(now, frame);
        takeover.system_id = u8::try_from(frame.header.system_id).unwrap_or(takeover.system_id);
        if !is_armed {
            let early = now < takeover.since + ARMING_WITHIN;
            self.before = Before::Ours(Modes::default());
            self.is_given_back = false;
            return self.apply(
                now,
                if early { TakeoverInput::DisarmedEarly } else { TakeoverInput::Disarmed },
                out,
            );
        }
        let number = heartbeat.custom_mode;
        if !takeover.ours.contains(number) {
            let name = Mode::from_number(number).map_or("a mode of its own", Mode::name);
            let is_announced = takeover.announced_at.is_some_and(|at| now.since(at) <= ANNOUNCED_WITHIN);
            let is_failsafe = is_announced && is_of_failsafe(Mode::from_number(number));
            let by = if is_failsafe { "a failsafe's" } else { "the pilot's or a failsafe's" };
            out.log(Severity::Warning, text!("mode {name} ({number}) is {by}"));
            self.before = if is_failsafe { Before::Failsafe(Modes::one(number)) } else { Before::Pilot };
            return self.apply(now, TakeoverInput::Foreign, out);
        }
        if let Some(before) = takeover.shown.replace(number).filter(|before| *before != number) {
            // A mode that was left is not expected again.
            takeover.ours = takeover.ours.without(Modes::one(before));
            if number == takeover.requested.number() && takeover.is_requested {
                // Ours was requested last: what the daemon had requested no longer counts.
                takeover.ours = Modes::one(number);
            }
        }
        let input = match Mode::from_number(number) {
            // What is left for LAND shows for a while.
            Some(Mode::Brake | Mode::Rtl | Mode::SmartRtl) if takeover.is_low => TakeoverInput::Commanded,
            Some(Mode::Brake) => TakeoverInput::Brake,
            Some(Mode::Land | Mode::Rtl | Mode::SmartRtl) => TakeoverInput::Descent,
            _ => TakeoverInput::Commanded,
        };
        self.apply(now, input, out);
    }

    /// Applies the transition that the table returns.
    fn apply(&mut self, now: Instant, input: TakeoverInput, out: &mut Outputs) {
        let Some(takeover) = &mut self.takeover else { return };
        match takeover.phase.next(input) {
            Next::Stay => {}
            Next::Release => {
                let why = if input == TakeoverInput::Foreign { "not ours any more" } else { "disarmed" };
                let held_ms = now.since(takeover.since).as_millis();
                out.log(Severity::Info, text!("{why}: released the flight controller after {held_ms} ms"));
                (self.takeover, self.port_open) = (None, false);
                if let Some(watch) = &mut self.daemon {
                    watch.life.renew(now);
                }
            }
            Next::To(phase) => {
                takeover.phase = phase;
                match phase {
                    TakeoverPhase::AwaitingHeartbeat | TakeoverPhase::Descending => {}
                    TakeoverPhase::Braking => {
                        (takeover.requested, takeover.is_requested, takeover.tries, takeover.request_at) =
                            (Mode::Brake, false, 0, now);
                    }
                    TakeoverPhase::Holding => {
                        takeover.hold_until = match self.config.then {
                            _ if takeover.stopping => now,
                            Then::Hold => Instant::NEVER,
                            Then::Land | Then::Rtl => now + self.config.hold,
                        };
                    }
                    TakeoverPhase::Ending => {
                        let refused = input == TakeoverInput::Unconfirmed;
                        let mode = match self.config.then {
                            Then::Rtl if !refused && !takeover.stopping && !takeover.is_low => Mode::Rtl,
                            Then::Land | Then::Rtl | Then::Hold => Mode::Land,
                        };
                        (takeover.requested, takeover.is_requested, takeover.tries, takeover.request_at) =
                            (mode, false, 0, now);
                    }
                }
                out.log(Severity::Warning, text!("{}", phase.stance().name()));
            }
        }
    }

    /// Sends the mode request and the heartbeat that are due.
    fn send_due(&mut self, now: Instant, out: &mut Outputs) {
        let Some(takeover) = &mut self.takeover else { return };
        // A closed port has no receiver.
        if takeover.system_id == 0 || !self.port_open {
            return;
        }
        if let Some(signer) = &mut self.outgoing.signer {
            // Not behind our clock, nor behind what the autopilot signed.
            if let Some((at, unix_us)) = self.utc {
                let passed_us = now.as_micros().saturating_sub(at.as_micros());
                signer.advance(Timestamp::from_unix_us(unix_us.saturating_add(passed_us)));
            }
            if let Some(verifier) = self.decoder.verifier() {
                // Later, not as late: the autopilot may have stamped its own with the daemon's last.
                signer.advance(Timestamp::from_units(verifier.newest().units() + 1));
            }
        }
        let system_id = takeover.system_id;
        let mut transmit = self.outgoing.transmit(system_id, &mut out.autopilot);
        let mut send = |message: &MavMessage| {
            // A frame that finds no room is lost, and is sent again at its next deadline.
            let _ = transmit.send_from(system_id, COMPONENT_ID, message);
        };
        if matches!(takeover.phase, TakeoverPhase::Braking | TakeoverPhase::Ending)
            && now >= takeover.request_at
        {
            takeover.ours = takeover.ours.with(Modes::one(takeover.requested.number()));
            takeover.tries = takeover.tries.saturating_add(1);
            takeover.is_requested = true;
            takeover.request_at = now + REQUEST_PERIOD;
            send(&MavMessage::SET_MODE(SET_MODE_DATA {
                custom_mode: takeover.requested.number(),
                target_system: takeover.system_id,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
            }));
        }
        if now >= takeover.heartbeat_at {
            takeover.heartbeat_at = now + HEARTBEAT_PERIOD;
            send(&MavMessage::HEARTBEAT(HEARTBEAT_DATA {
                custom_mode: 0,
                mavtype: MavType::MAV_TYPE_ONBOARD_CONTROLLER,
                autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
                base_mode: MavModeFlag::empty(),
                system_status: MavState::MAV_STATE_ACTIVE,
                mavlink_version: 3,
            }));
        }
    }
}

/// A decoder that accepts the same signatures as the daemon's.
fn decoder(config: &Config) -> Decoder {
    match &config.signing {
        None => Decoder::default(),
        Some(Signing { key, setup, .. }) => {
            let unsigned = if *setup { Unsigned::UntilSigned } else { Unsigned::Refused };
            Decoder::verifying(Verifier::new(key.clone(), unsigned))
        }
    }
}
