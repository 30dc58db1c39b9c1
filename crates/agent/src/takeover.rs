//! Who commands the aircraft, and what takes it from us.
//!
//! Position is told apart from authority: an aircraft that another flies goes on broadcasting where it is and what it
//! does, as far as its mode shows it.

use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::RC_CHANNELS_DATA;
use wingbeat_autopilot::parameter::{Finding, Watched};
use wingbeat_autopilot::telemetry::{HeartbeatChange, switch};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Command, EndFlight, Input, Phase, Severity, Text, text};

use crate::guardian::Before;
use crate::{Agent, CommandId, Outputs, Rejection, Reply};

/// A failsafe's text and the change of mode that it announces come within this time, in either order: modes are read
/// from heartbeats, one a second.
pub(crate) const ANNOUNCED_WITHIN: Duration = Duration::from_secs(3);

/// By then every report shows where the pilot's hand has left the switch.
const HAND_RESTS: Duration = Duration::from_millis(1_500);

/// Who commands the aircraft.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Authority {
    /// The protocol.
    #[default]
    Ours,
    /// A pilot, a ground station, or an unknown cause: until the operator engages the agent again.
    Pilot {
        /// For people.
        by: Text,
        /// When a mode that a failsafe may have chosen showed it; none where it was certainly no failsafe.
        suspected_at: Option<Instant>,
        /// When he has switched to GUIDED since, in which he does not fly it himself.
        handed_over_at: Option<Instant>,
    },
    /// The autopilot's own failsafe: until the operator ends the flight another way.
    Failsafe {
        /// For people.
        by: Text,
    },
}

impl Authority {
    pub(crate) fn is_ours(&self) -> bool {
        *self == Self::Ours
    }

    /// Who has the aircraft, as text; none where we have it.
    pub(crate) fn taken_by(&self) -> Option<&Text> {
        match self {
            Self::Ours => None,
            Self::Pilot { by, .. } | Self::Failsafe { by } => Some(by),
        }
    }

    /// Who has the aircraft so that the operator may not command this. A pilot outranks every command, a failsafe all
    /// but those that end the flight.
    pub(crate) fn holds_against(&self, command: Command) -> Option<&Text> {
        match self {
            Self::Ours => None,
            Self::Failsafe { .. } if is_emergency(command) => None,
            Self::Pilot { by, .. } | Self::Failsafe { by } => Some(by),
        }
    }
}

/// Whether a command ends a flight.
pub(crate) const fn is_emergency(command: Command) -> bool {
    match command {
        Command::Hold | Command::Return | Command::Land => true,
        Command::Setup
        | Command::Start
        | Command::Resume
        | Command::RecoverControl
        | Command::Engage
        | Command::SetParameters
        | Command::Exclude { .. } => false,
    }
}

/// Whether a text of the autopilot announces that it acts by itself. ArduCopter 4.6 names every failsafe so, and the
/// breach of a fence; 3.5.7 names the failsafe of the terrain, calls that of the EKF *EKF variance* and that of the battery *Low
/// battery*, and says nothing when the transmitter is lost: that counts as the pilot's doing.
pub(crate) fn announces_failsafe(line: &str) -> bool {
    let has =
        |what: &str| line.as_bytes().windows(what.len()).any(|w| w.eq_ignore_ascii_case(what.as_bytes()));
    // That one is over is no reason for a change of mode: the pilot is back.
    (has("failsafe") || has("ekf variance") || has("low battery") || has("fence breach")) && !has("cleared")
}

/// Whether a failsafe may have chosen a mode, and not a pilot's switch: it brings the aircraft home, down or to a stop.
pub(crate) fn is_of_failsafe(mode: Option<Mode>) -> bool {
    matches!(mode, Some(Mode::Rtl | Mode::Land | Mode::Brake))
}

/// How a flight ends in a mode, as far as the mode shows it.
fn ending_of(mode: Option<Mode>) -> EndFlight {
    match mode {
        Some(Mode::Rtl) => EndFlight::Return,
        Some(Mode::Land) => EndFlight::Land,
        Some(_) | None => EndFlight::Hold,
    }
}

impl Agent {
    /// What a heartbeat shows and we did not ask for is the pilot's doing or the autopilot's own failsafe: both outrank
    /// us, whether the motors turn or not.
    pub(crate) fn judge_heartbeat(&mut self, now: Instant, change: HeartbeatChange, out: &mut Outputs) {
        let Some(number) = self.telemetry.mode_number else { return };
        let is_mode_foreign = change.mode && !self.executor.expected(now, number);
        self.report_crash(change, out);
        if !self.authority.is_ours() {
            if change.mode || change.arming {
                self.follow_takeover(now, is_mode_foreign, out);
            }
            return;
        }
        let is_arming_foreign = change.arming && self.telemetry.armed && !self.executor.arms();
        if !(is_mode_foreign && self.is_at_stake() || is_arming_foreign) {
            return;
        }
        let mode = match Mode::from_number(number) {
            Some(mode) => text!("mode {}", mode.name()),
            None => text!("mode number {number}"),
        };
        if self.protocol.view().is_piloted {
            return out.log(Severity::Info, text!("the pilot flies in {mode}"));
        }
        let what = if is_mode_foreign { mode } else { text!("armed in {mode}") };
        let by = text!("pilot or failsafe took over: {what}");
        if !(is_mode_foreign && is_of_failsafe(self.telemetry.mode())) {
            return self.disengage(now, by, out);
        }
        let authority = match &self.announced {
            Some((at, line)) if now.since(*at) <= ANNOUNCED_WITHIN => {
                Authority::Failsafe { by: text!("the flight controller took over: {what}: {line}") }
            }
            Some(_) | None => Authority::Pilot { by, suspected_at: Some(now), handed_over_at: None },
        };
        self.give_up(now, authority, out);
    }

    /// Another has the aircraft and does something else with it.
    fn follow_takeover(&mut self, now: Instant, is_mode_foreign: bool, out: &mut Outputs) {
        let is_announced = self.announced.as_ref().is_some_and(|(at, _)| now.since(*at) <= ANNOUNCED_WITHIN);
        let goes_on = is_announced && is_of_failsafe(self.telemetry.mode());
        match &mut self.authority {
            Authority::Failsafe { .. } if is_mode_foreign && !goes_on => {
                return self.disengage(now, text!("pilot took over from the failsafe"), out);
            }
            // Another switch: whatever was suspected before, this is the pilot.
            Authority::Pilot { suspected_at, handed_over_at, .. } => {
                if !is_of_failsafe(self.telemetry.mode()) {
                    *suspected_at = None;
                }
                if is_mode_foreign {
                    *handed_over_at = (self.telemetry.mode() == Some(Mode::Guided)).then_some(now);
                }
            }
            Authority::Failsafe { .. } | Authority::Ours => {}
        }
        let ending = ending_of(self.telemetry.mode());
        self.protocol_input(now, Input::TakenOver(ending), out);
    }

    /// The autopilot says something. A takeover that it announces after the fact was its own.
    pub(crate) fn on_status_text(&mut self, now: Instant, line: &str, out: &mut Outputs) {
        if !announces_failsafe(line) {
            return;
        }
        self.announced = Some((now, text!("{line}")));
        // Where it flies home by our order already no change of mode shows it, and it is not ours to stop any more.
        let returns = self.telemetry.mode() == Some(Mode::Rtl) && self.protocol.view().is_returning;
        if self.authority.is_ours() && returns && !self.executor.is_busy() {
            let by = text!("the flight controller took over while it returned: {line}");
            return self.give_up(now, Authority::Failsafe { by }, out);
        }
        if let Authority::Pilot { by, suspected_at: Some(at), .. } = &self.authority
            && now.since(*at) <= ANNOUNCED_WITHIN
        {
            self.authority = Authority::Failsafe { by: text!("{by}: {line}") };
        }
    }

    /// Motors that stop in the air, by whatever cause, are a crash.
    fn report_crash(&self, change: HeartbeatChange, out: &mut Outputs) {
        if !change.arming || self.telemetry.armed {
            return;
        }
        let (height_m, up_m_s) = (self.telemetry.height_m, self.telemetry.velocity_m_s.z);
        let is_high = height_m > CRASH_ABOVE_M;
        let flies = match self.protocol.view().phase {
            Phase::Moving | Phase::Waiting => true,
            // An aircraft that has landed above its home stands.
            Phase::Ending => is_high && up_m_s.abs() > STANDS_M_S,
            Phase::Aborted => {
                let hovers = self.authority.is_ours() && !self.is_landing();
                is_high && (hovers || up_m_s.abs() > STANDS_M_S)
            }
            Phase::Preparing | Phase::Ready => is_high,
            Phase::Start | Phase::Finished => is_high && up_m_s.abs() > STANDS_M_S,
        };
        if flies {
            out.log(
                Severity::Error,
                text!("the motors stopped in flight, {height_m:.1} m above home: crashed"),
            );
        }
    }

    /// Whether the autopilot's mode ends on the ground.
    fn is_landing(&self) -> bool {
        matches!(self.telemetry.mode(), Some(Mode::Land | Mode::Rtl))
    }

    /// Who has the aircraft, where that is a pilot: what outlives this agent if its owner keeps it.
    pub fn taken_by_pilot(&self) -> Option<&Text> {
        match &self.authority {
            Authority::Pilot { by, .. } => Some(by),
            Authority::Ours | Authority::Failsafe { .. } => None,
        }
    }

    /// The pilot moves his mode switch: he takes the aircraft whatever mode that chooses, also the one in which it is.
    pub(crate) fn judge_switch(&mut self, now: Instant, channels: &RC_CHANNELS_DATA, out: &mut Outputs) {
        // A receiver that has lost the transmitter may turn its channels to a preset.
        let is_received = self.telemetry.sensors.is_none_or(|sensors| sensors.radio_control != Some(false));
        let Some(channel) = self.switch_channel().filter(|_| is_received) else { return };
        let was_moved = self.mode_switch.on_report(now, channels, channel);
        if !was_moved || !self.is_at_stake() || self.protocol.view().is_piloted {
            return;
        }
        let by = match &mut self.authority {
            Authority::Ours => text!("pilot took over: the mode switch was moved"),
            Authority::Failsafe { .. } => {
                text!("pilot took over from the failsafe: the mode switch was moved")
            }
            Authority::Pilot { suspected_at, .. } => return *suspected_at = None,
        };
        // That the transmitter is lost may be announced after the receiver has turned the channel.
        self.give_up(now, Authority::Pilot { by, suspected_at: Some(now), handed_over_at: None }, out);
    }

    /// The channel of the mode switch, once it is known; ArduCopter 3 has no parameter for it.
    pub(crate) fn switch_channel(&self) -> Option<u8> {
        match self.parameters.finding(Watched::ModeSwitchChannel) {
            Finding::Known { value, .. } => value.as_integer().and_then(|channel| u8::try_from(channel).ok()),
            Finding::Absent => {
                let is_old = self.telemetry.version.is_some_and(|version| version.major < 4);
                is_old.then_some(switch::USUAL_CHANNEL)
            }
            Finding::Unknown | Finding::WrongKind { .. } | Finding::Unreadable => None,
        }
    }

    /// The first heartbeat, maybe of an aircraft in flight whose daemon was restarted: in a mode that we never ask for it is
    /// the pilot's, and so it is in one that the guardian knows was not asked for. Where no guardian knows it, the operator may
    /// still end the flight.
    pub(crate) fn judge_first_heartbeat(&mut self, now: Instant, out: &mut Outputs) {
        let before = core::mem::take(&mut self.before);
        let Some(number) = self.telemetry.mode_number else { return };
        if !self.authority.is_ours() || !self.telemetry.armed || self.protocol.view().is_piloted {
            return;
        }
        let mode = Mode::from_number(number);
        let name = mode.map_or_else(|| text!("number {number}"), |mode| text!("{}", mode.name()));
        if !matches!(mode, Some(Mode::Guided | Mode::Auto | Mode::Brake | Mode::Rtl | Mode::Land)) {
            return self.disengage(now, text!("pilot: armed in mode {name} when first received"), out);
        }
        let authority = match before {
            Before::Unknown => return,
            Before::Ours(modes) if modes.contains(number) => return,
            Before::Failsafe(modes) if modes.contains(number) => Authority::Failsafe {
                by: text!("the flight controller took over before the restart: mode {name}"),
            },
            Before::OnRoute { modes, route } if modes.contains(number) => {
                if let Some(mode) = mode {
                    self.answer_for(now, mode, route);
                }
                return;
            }
            Before::Ours(_) | Before::Failsafe(_) | Before::Pilot | Before::OnRoute { .. } => {
                Authority::Pilot {
                    by: text!("pilot or failsafe took over while no daemon ran: mode {name}"),
                    suspected_at: is_of_failsafe(mode).then_some(now),
                    handed_over_at: None,
                }
            }
        };
        self.give_up(now, authority, out);
    }

    /// The autopilot restarted: what it was ordered is gone, and its pilot flies it now, if it flies.
    pub(crate) fn judge_reboot(&mut self, now: Instant, out: &mut Outputs) {
        if self.authority.is_ours() && self.is_at_stake() && !self.protocol.view().is_piloted {
            self.disengage(now, text!("the flight controller restarted in flight or after setup"), out);
        }
    }

    /// Whether the aircraft is ours to lose: it flies, is about to, or was set up to.
    pub(crate) fn is_at_stake(&self) -> bool {
        let is_set_up = match self.protocol.view().phase {
            Phase::Preparing | Phase::Ready | Phase::Moving | Phase::Waiting | Phase::Ending => true,
            Phase::Start | Phase::Finished | Phase::Aborted => false,
        };
        self.telemetry.armed || self.executor.is_busy() || is_set_up
    }

    /// What a ground station beside us commands is as good as the pilot's word. Unlike a change of mode it needs no
    /// heartbeat to be seen: not one order of ours follows it. After the setup it would fly something else than was
    /// planned.
    pub(crate) fn on_ground_station_command(&mut self, now: Instant, what: &str, out: &mut Outputs) {
        if let Authority::Pilot { handed_over_at, .. } = &mut self.authority {
            *handed_over_at = None;
        }
        // An aircraft that is not commanded cannot be taken over.
        if self.authority.is_ours() && !self.protocol.view().is_piloted && self.is_at_stake() {
            self.disengage(now, text!("a ground station took over: {what}"), out);
        }
    }

    /// In flight the pilot hands the aircraft over by switching to GUIDED, in which he does not fly it himself. It holds
    /// then, and the operator decides how its flight ends.
    pub(crate) fn engage_in_flight(&mut self, now: Instant, id: CommandId, out: &mut Outputs) -> Reply {
        let has_rested = |at: Instant| now.since(at) >= HAND_RESTS;
        let is_handed_over = matches!(self.authority, Authority::Pilot { handed_over_at: Some(at), .. } if has_rested(at))
            && self.telemetry.mode() == Some(Mode::Guided)
            && self.protocol.permits(Command::Hold).is_ok();
        if !is_handed_over {
            return Reply::Refused(Rejection::Armed);
        }
        self.authority = Authority::Ours;
        self.commands.accept(id, Command::Engage);
        out.log(Severity::Warning, text!("engaged in flight: handed over by the pilot; holds"));
        self.protocol_input(now, Input::Operator(Command::Hold), out);
        Reply::Accepted
    }

    /// Commands nothing any more.
    pub(crate) fn disengage(&mut self, now: Instant, by: Text, out: &mut Outputs) {
        self.give_up(now, Authority::Pilot { by, suspected_at: None, handed_over_at: None }, out);
    }

    fn give_up(&mut self, now: Instant, authority: Authority, out: &mut Outputs) {
        self.executor.clear();
        self.executor.expect_nothing();
        self.rejoin.stop();
        if let Some(by) = authority.taken_by() {
            const THEN: &str = "commands nothing until engaged again";
            if by.len() + 2 + THEN.len() <= by.capacity() {
                out.log(Severity::Warning, text!("{by}; {THEN}"));
            } else {
                out.log(Severity::Warning, by.clone());
                out.log(Severity::Warning, text!("{THEN}"));
            }
        }
        self.authority = authority;
        let ending = ending_of(self.telemetry.mode());
        self.protocol_input(now, Input::TakenOver(ending), out);
    }
}

/// An aircraft that stands is not so high above its home, whatever the slope, metres.
const CRASH_ABOVE_M: f64 = 3.0;

/// An aircraft that has landed moves slower than this, metres per second.
const STANDS_M_S: f64 = 0.3;
