//! The guardian: what brings an aircraft down when its companion's daemon dies.
//!
//! A position target has no time-out in ArduCopter and a mission in AUTO continues without it, so a dead
//! daemon leaves an aircraft that flies on. The guardian is a second, small process beside the daemon.
//! While the daemon lives it only receives its pulses. When they end while the daemon was commanding, it
//! takes the autopilot's port, asks for BRAKE until that is seen, holds, asks for LAND (or RTL) until
//! that is seen, and waits for the motors to stop.
//!
//! Promises: it commands nothing while the daemon lives, or when the daemon was idle or the pilot had the
//! aircraft; any mode that neither the daemon nor itself asked for is the pilot's, and ends what it does
//! at once; once its own mode was seen, a mode of the daemon's is not expected any more.
//!
//! Like the agent it is pure: one [`Input`] with the time in, bounded [`Outputs`] out.
//! `docs/decisions/0003-companion-death.md` gives the reasons. The transition table is
//! [`Phase::next`], printed whole in `snapshots/`.
//!
//! ```text
//!            pulse             socket closed, or silence and SIGKILL, while commanding
//! (no daemon) ───▶ Watching ─────────────────────▶ Looking ──▶ Braking ──▶ Holding ──▶ Ending ──▶ Descending
//!                     ▲                               │           │           │          │           │
//!                     └───────────────────────────────┴───────────┴───────────┴──────────┴───────────┘
//!                                    disarmed, or the pilot's mode: the port closes
//! ```

// SET_MODE is what ArduCopter 3.5.7 obeys.
#![allow(deprecated)]

mod pulse;
#[cfg(test)]
mod tests;

pub use pulse::{
    ANSWER_LEN, Activity, Answer, Cause, Modes, PULSE_LEN, Pulse, RecordError, Stance, VERSION, fingerprint,
};

use heapless::Vec;
use serde::Deserialize;
use wingbeat_autopilot::codec::framing::Outgoing;
use wingbeat_autopilot::codec::signing::{Signer, Timestamp, Unsigned, Verifier};
use wingbeat_autopilot::codec::{Decoder, Frame};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    HEARTBEAT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavState, MavType, SET_MODE_DATA,
};
use wingbeat_autopilot::job::{AUTOPILOT_COMPONENT_ID, TRANSMIT_LEN_MAX};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Severity, Text, text};

use crate::{Event, Signing};

/// The guardian's MAVLink component: the second onboard computer
/// (<https://mavlink.io/en/messages/common.html#MAV_COMP_ID_ONBOARD_COMPUTER2>).
pub const COMPONENT_ID: u8 = 192;
/// How often a daemon sends a pulse, beside those at every change.
pub const PULSE_PERIOD: Duration = Duration::from_millis(200);
/// A daemon that has not been answered for so long is not protected.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A heartbeat shows the mode at 1 Hz on 3.5.7: ask again a little later than that.
const ASK_PERIOD: Duration = Duration::from_millis(1_200);
/// 3.5.7 refuses BRAKE and RTL without a position estimate: after so many tries LAND, which needs none.
const TRIES: u8 = 3;
/// A daemon that dies while it arms leaves motors that start a moment later: so long a disarmed heartbeat
/// is not believed.
const ARMING_WITHIN: Duration = Duration::from_secs(3);
/// A killed process is gone within milliseconds; whatever its socket reports, the aircraft does not wait longer.
const KILL_WITHIN: Duration = Duration::from_millis(500);
/// Woken later than this, the guardian itself stood still, and the daemon perhaps with it: its pulses are
/// given their time once more.
const OVERSLEPT: Duration = Duration::from_millis(500);
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

/// A guardian's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// A commanding daemon that is silent for so long hangs.
    pub silence: Duration,
    /// How long BRAKE is kept.
    pub hold: Duration,
    /// What follows.
    pub then: Then,
    /// [`fingerprint`] of the autopilot's endpoint.
    pub endpoint: u32,
    /// Whether frames to and from the autopilot are signed, as the daemon's are.
    pub signing: Option<Signing>,
}

/// What happens to a guardian.
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
    /// The daemon's pulse.
    Pulse(Pulse),
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
    pub answer: Option<Answer>,
    /// The daemon hangs: end its process by force, so that its port is free.
    pub kill: bool,
    /// Lines for the log.
    pub events: Vec<Event, 8>,
}

impl Outputs {
    fn log(&mut self, severity: Severity, text: Text) {
        let _ = self.events.push(Event { severity, text });
    }
}

/// What a guardian that has the autopilot is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for a heartbeat, to judge by.
    Looking,
    /// Asks for BRAKE.
    Braking,
    /// BRAKE was seen.
    Holding,
    /// Asks for LAND or RTL.
    Ending,
    /// LAND or RTL was seen.
    Descending,
}

/// What a heartbeat, or time, means to a guardian that has the autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Motors off, and arming may still be on its way.
    DisarmedEarly,
    /// Motors off.
    Disarmed,
    /// A mode that neither the daemon nor the guardian asked for.
    Theirs,
    /// BRAKE, asked for.
    Brake,
    /// LAND or RTL, asked for.
    Descent,
    /// Any other mode that the daemon asked for: GUIDED, AUTO.
    Commanded,
    /// What was asked for was not seen after every try.
    Unseen,
    /// BRAKE was kept long enough.
    HoldOver,
    /// The guardian is asked to end.
    Stop,
}

/// What a sight leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing changes.
    Stay,
    /// Another phase.
    To(Phase),
    /// The autopilot is let go.
    Release,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] = [Self::Looking, Self::Braking, Self::Holding, Self::Ending, Self::Descending];

    /// The transition table: it reads and never writes, so that a test can print it whole.
    pub fn next(self, sight: Sight) -> Next {
        match (self, sight) {
            (_, Sight::Theirs | Sight::Disarmed) => Next::Release,
            (Self::Looking, Sight::DisarmedEarly) => Next::Stay,
            (_, Sight::DisarmedEarly) => Next::Release,
            (Self::Looking, Sight::Commanded) => Next::To(Self::Braking),
            (Self::Looking | Self::Braking | Self::Descending, Sight::Brake) => Next::To(Self::Holding),
            // The daemon had asked for it already: it lands.
            (Self::Looking | Self::Braking | Self::Ending, Sight::Descent) => Next::To(Self::Descending),
            (Self::Braking, Sight::Unseen | Sight::Stop) => Next::To(Self::Ending),
            (Self::Holding, Sight::HoldOver | Sight::Stop) => Next::To(Self::Ending),
            // RTL was refused: LAND instead.
            (Self::Ending, Sight::Unseen | Sight::Stop) => Next::To(Self::Ending),
            // Before the first heartbeat it is unknown who commands the aircraft: the pilot's mode outranks.
            (
                _,
                Sight::Commanded
                | Sight::Brake
                | Sight::Descent
                | Sight::Unseen
                | Sight::HoldOver
                | Sight::Stop,
            ) => Next::Stay,
        }
    }

    fn stance(self) -> Stance {
        match self {
            Self::Looking => Stance::Looking,
            Self::Braking => Stance::Braking,
            Self::Holding => Stance::Holding,
            Self::Ending => Stance::Ending,
            Self::Descending => Stance::Descending,
        }
    }
}

/// A daemon that is connected.
#[derive(Clone, Copy, Debug)]
struct Watch {
    pulse: Option<Pulse>,
    received_at: Instant,
    killed_at: Option<Instant>,
}

/// The autopilot in the guardian's hands.
#[derive(Clone, Copy, Debug)]
struct Hold {
    cause: Cause,
    phase: Phase,
    since: Instant,
    system_id: u8,
    /// Modes that are no pilot's doing.
    ours: Modes,
    shown: Option<u32>,
    /// The mode that is asked for.
    asks: Mode,
    tries: u8,
    /// It was asked for at least once.
    asked: bool,
    ask_at: Instant,
    hold_until: Instant,
    heartbeat_at: Instant,
    /// The guardian is to end: nothing but LAND.
    stopping: bool,
}

/// A guardian.
pub struct Guardian {
    config: Config,
    daemon: Option<Watch>,
    hold: Option<Hold>,
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
        Self { config, daemon: None, hold: None, port_open: false, utc: None, decoder, outgoing }
    }

    /// Whether it wants the port to the autopilot open. It must be closed otherwise.
    pub fn wants_port(&self) -> bool {
        self.hold.is_some()
    }

    /// What it is doing.
    pub fn stance(&self) -> Stance {
        self.hold.map_or(Stance::Watches, |hold| hold.phase.stance())
    }

    /// Whether a daemon is protected now: it would be noticed if it died.
    pub fn watches_a_commanding_daemon(&self) -> bool {
        self.commanding().is_some()
    }

    /// When it wants [`Input::Wake`]. Earlier is harmless.
    pub fn poll_timeout(&self) -> Instant {
        let mut next = Instant::NEVER;
        if let (Some((watch, _)), None) = (self.commanding(), self.hold) {
            next = match watch.killed_at {
                Some(at) => at + KILL_WITHIN,
                None => watch.received_at + self.config.silence,
            };
        }
        if let Some(hold) = self.hold {
            match hold.phase {
                Phase::Braking | Phase::Ending if self.port_open => next = next.min(hold.ask_at),
                Phase::Looking | Phase::Descending | Phase::Braking | Phase::Ending => {}
                Phase::Holding => next = next.min(hold.hold_until),
            }
            if hold.system_id != 0 && self.port_open {
                next = next.min(hold.heartbeat_at);
            }
        }
        next
    }

    /// The one way in. When it returns, `out` is everything to do; what it held before is gone.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        *out = Outputs::default();
        match input {
            Input::Wake => self.wake(now, out),
            Input::Utc { unix_us } => self.utc = Some((now, unix_us)),
            Input::Connected => {
                out.log(Severity::Info, text!("a daemon connected"));
                self.daemon = Some(Watch { pulse: None, received_at: now, killed_at: None });
            }
            Input::Pulse(pulse) => self.pulse(now, pulse, out),
            Input::Gone => self.gone(now, out),
            Input::AutopilotLink(open) => {
                self.port_open = open;
                // Half a frame of before the port closed is no frame's beginning.
                self.decoder.restart();
                self.outgoing.negotiation.restart();
                if let Some(hold) = &mut self.hold {
                    let what = if open { "open" } else { "closed" };
                    if open {
                        // What was on its way when the port closed may be lost; and a UDP bridge learns from
                        // our heartbeat where to send.
                        (hold.ask_at, hold.tries, hold.heartbeat_at) = (now, 0, now);
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
                if let Some(hold) = &mut self.hold {
                    hold.stopping = true;
                    self.see(now, Sight::Stop, out);
                }
            }
        }
        self.speak(now, out);
    }

    /// The daemon, if its death would need us.
    fn commanding(&self) -> Option<(Watch, Pulse)> {
        let watch = self.daemon?;
        let pulse = watch.pulse.filter(|pulse| pulse.activity == Activity::Commanding)?;
        Some((watch, pulse))
    }

    fn pulse(&mut self, now: Instant, pulse: Pulse, out: &mut Outputs) {
        let Some(watch) = &mut self.daemon else { return };
        watch.received_at = now;
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
        let cause = self.hold.map_or(Cause::Ended, |hold| hold.cause);
        out.answer = Some(Answer { stance, cause });
    }

    fn gone(&mut self, now: Instant, out: &mut Outputs) {
        let commanding = self.commanding();
        let was_there = self.daemon.take().is_some();
        match commanding {
            Some((watch, pulse)) if self.hold.is_none() => {
                let cause = if watch.killed_at.is_some() { Cause::Hung } else { Cause::Ended };
                self.take(now, cause, pulse, out);
            }
            _ if was_there => out.log(Severity::Info, text!("the daemon left; it was not commanding")),
            _ => {}
        }
    }

    fn take(&mut self, now: Instant, cause: Cause, pulse: Pulse, out: &mut Outputs) {
        out.log(Severity::Error, text!("{cause} while it was commanding: taking the flight controller"));
        self.decoder = decoder(&self.config);
        self.outgoing.negotiation.restart();
        self.hold = Some(Hold {
            cause,
            phase: Phase::Looking,
            since: now,
            system_id: pulse.system_id,
            ours: pulse.ours,
            shown: None,
            asks: Mode::Brake,
            tries: 0,
            asked: false,
            ask_at: now,
            hold_until: Instant::NEVER,
            heartbeat_at: now,
            stopping: false,
        });
    }

    fn wake(&mut self, now: Instant, out: &mut Outputs) {
        if let (Some((watch, pulse)), None) = (self.commanding(), self.hold) {
            let silent_at = watch.received_at + self.config.silence;
            let Some(watch) = &mut self.daemon else { return };
            match watch.killed_at {
                None if now >= silent_at + OVERSLEPT => {
                    out.log(
                        Severity::Warning,
                        text!("woken {} ms late: this machine is too slow", now.since(silent_at).as_millis()),
                    );
                    watch.received_at = now;
                }
                None if now >= silent_at => {
                    let silence_ms = now.since(watch.received_at).as_millis();
                    out.log(
                        Severity::Error,
                        text!("no pulse for {silence_ms} ms: ending the daemon by force"),
                    );
                    out.kill = true;
                    watch.killed_at = Some(now);
                }
                Some(at) if now >= at + KILL_WITHIN => {
                    out.log(Severity::Error, text!("the hung daemon does not end"));
                    // From now on it counts as dead.
                    self.daemon = None;
                    self.take(now, Cause::Hung, pulse, out);
                }
                None | Some(_) => {}
            }
        }
        let Some(hold) = &self.hold else { return };
        match hold.phase {
            Phase::Holding if now >= hold.hold_until => self.see(now, Sight::HoldOver, out),
            Phase::Braking | Phase::Ending if self.port_open && now >= hold.ask_at && hold.tries >= TRIES => {
                self.see(now, Sight::Unseen, out);
            }
            Phase::Looking | Phase::Braking | Phase::Holding | Phase::Ending | Phase::Descending => {}
        }
    }

    fn on_frame(&mut self, now: Instant, frame: &Frame, out: &mut Outputs) {
        let (Some(hold), MavMessage::HEARTBEAT(heartbeat)) = (&mut self.hold, &frame.message) else { return };
        let from_autopilot = frame.header.component_id == AUTOPILOT_COMPONENT_ID
            && (hold.system_id == 0 || frame.header.system_id == u32::from(hold.system_id))
            && heartbeat.autopilot == MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA;
        if !from_autopilot {
            return;
        }
        self.outgoing.negotiation.on_frame(now, frame);
        hold.system_id = u8::try_from(frame.header.system_id).unwrap_or(hold.system_id);
        if !heartbeat.base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED) {
            let early = now < hold.since + ARMING_WITHIN;
            return self.see(now, if early { Sight::DisarmedEarly } else { Sight::Disarmed }, out);
        }
        let number = heartbeat.custom_mode;
        if !hold.ours.contains(number) {
            let name = Mode::from_number(number).map_or("a mode of its own", Mode::name);
            out.log(Severity::Warning, text!("mode {name} ({number}) is the pilot's or a failsafe's"));
            return self.see(now, Sight::Theirs, out);
        }
        if let Some(before) = hold.shown.replace(number).filter(|before| *before != number) {
            // A mode that was left is not expected again.
            hold.ours = hold.ours.without(Modes::one(before));
            if number == hold.asks.number() && hold.asked {
                // Ours was asked for last: whatever the daemon had asked for is past.
                hold.ours = Modes::one(number);
            }
        }
        let sight = match Mode::from_number(number) {
            Some(Mode::Brake) => Sight::Brake,
            Some(Mode::Land | Mode::Rtl | Mode::SmartRtl) => Sight::Descent,
            _ => Sight::Commanded,
        };
        self.see(now, sight, out);
    }

    /// Performs what the table returns.
    fn see(&mut self, now: Instant, sight: Sight, out: &mut Outputs) {
        let Some(hold) = &mut self.hold else { return };
        match hold.phase.next(sight) {
            Next::Stay => {}
            Next::Release => {
                let why = if sight == Sight::Theirs { "not ours any more" } else { "disarmed" };
                let held_ms = now.since(hold.since).as_millis();
                out.log(
                    Severity::Info,
                    text!("{why}: letting go of the flight controller after {held_ms} ms"),
                );
                (self.hold, self.port_open) = (None, false);
                if let Some(watch) = &mut self.daemon {
                    watch.received_at = now;
                }
            }
            Next::To(phase) => {
                hold.phase = phase;
                match phase {
                    Phase::Looking | Phase::Descending => {}
                    Phase::Braking => {
                        (hold.asks, hold.asked, hold.tries, hold.ask_at) = (Mode::Brake, false, 0, now);
                    }
                    Phase::Holding => {
                        hold.hold_until = match self.config.then {
                            _ if hold.stopping => now,
                            Then::Hold => Instant::NEVER,
                            Then::Land | Then::Rtl => now + self.config.hold,
                        };
                    }
                    Phase::Ending => {
                        let refused = sight == Sight::Unseen;
                        let mode = match self.config.then {
                            Then::Rtl if !refused && !hold.stopping => Mode::Rtl,
                            Then::Land | Then::Rtl | Then::Hold => Mode::Land,
                        };
                        (hold.asks, hold.asked, hold.tries, hold.ask_at) = (mode, false, 0, now);
                    }
                }
                out.log(Severity::Warning, text!("{}", phase.stance().name()));
            }
        }
    }

    /// What is due towards the autopilot.
    fn speak(&mut self, now: Instant, out: &mut Outputs) {
        let Some(hold) = &mut self.hold else { return };
        // A closed port has no receiver.
        if hold.system_id == 0 || !self.port_open {
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
        let system_id = hold.system_id;
        let mut transmit = self.outgoing.transmit(system_id, &mut out.autopilot);
        let mut send = |message: &MavMessage| {
            // A frame that finds no room is lost, and is sent again at its next deadline.
            let _ = transmit.send_from(system_id, COMPONENT_ID, message);
        };
        if matches!(hold.phase, Phase::Braking | Phase::Ending) && now >= hold.ask_at {
            hold.ours = hold.ours.with(Modes::one(hold.asks.number()));
            hold.tries = hold.tries.saturating_add(1);
            hold.asked = true;
            hold.ask_at = now + ASK_PERIOD;
            send(&MavMessage::SET_MODE(SET_MODE_DATA {
                custom_mode: hold.asks.number(),
                target_system: hold.system_id,
                base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
            }));
        }
        if now >= hold.heartbeat_at {
            hold.heartbeat_at = now + HEARTBEAT_PERIOD;
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

/// A decoder that believes what the daemon's does.
fn decoder(config: &Config) -> Decoder {
    match &config.signing {
        None => Decoder::default(),
        Some(Signing { key, setup, .. }) => {
            let unsigned = if *setup { Unsigned::UntilSigned } else { Unsigned::Refused };
            Decoder::verifying(Verifier::new(key.clone(), unsigned))
        }
    }
}
