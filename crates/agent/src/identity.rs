//! Whose flight controller it is: what the operator, an earlier daemon and the guardian know of it, and what stands against
//! a flight while it is not certain.

use core::fmt::Write as _;

use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::telemetry::Known;
use wingbeat_geo::Instant;
use wingbeat_protocol::{Command, Cut, Severity, Text, text};

use crate::status::Check;
use crate::{Agent, Outputs};

/// Holds before the flight, and no longer: in flight the adopted one is ours, whoever else speaks.
pub(crate) const SEVERAL: &str = "several flight controllers";

/// Returns ids as text: `system 2`, `systems 1 and 2`.
fn named(ids: &[u8]) -> Text {
    let mut line = Text::new();
    let mut cut = Cut(&mut line);
    for (i, id) in ids.iter().enumerate() {
        let before = match i {
            0 if ids.len() == 1 => "system ",
            0 => "systems ",
            _ if i + 1 == ids.len() => " and ",
            _ => ", ",
        };
        // Cutting does not fail.
        let _ = write!(cut, "{before}{id}");
    }
    line
}

/// Returns the check that fails while it is not certain which flight controller is this aircraft's.
pub(crate) fn several(t: &Telemetry, now: Instant) -> Option<Check> {
    let detail = match t.system_id {
        Some(id) if t.boot.has_twins(now) => {
            text!("two with system id {id} on this line: give each aircraft its own SYSID_THISMAV")
        }
        _ => {
            let ids = named(&t.identification.contenders(now, t.system_id.is_some())?);
            text!("{ids} speak on this line: set autopilot.system_id = N, the id of this aircraft's own")
        }
    };
    Some(Check { name: SEVERAL, passed: false, is_required: true, detail })
}

/// Returns the state of the line to the flight controller, with the ids that speak in its place.
pub(crate) fn line(t: &Telemetry, now: Instant) -> Text {
    let speaking = t.identification.speaking(now);
    let others = named(&speaking);
    let expected = t.identification.expected();
    match (t.frame_at, expected) {
        (None, Some(id)) if !speaking.is_empty() => match t.identification.is_configured() {
            true => text!("not known: autopilot.system_id {id} is not received, {others} on this line"),
            false => {
                text!(
                    "not known: system {id} of before is not received, {others}; if replaced, set autopilot.system_id"
                )
            }
        },
        (None, Some(id)) => text!("no heartbeat received of system {id}"),
        (None, None) if speaking.len() == 1 => text!("{others} is received: listens for others"),
        (None, None) if speaking.len() > 1 => text!("not known which is ours: {others}"),
        (None, None) => text!("no heartbeat received"),
        (Some(at), _) if !t.is_up(now) => text!("silent for {} ms", now.since(at).as_millis()),
        (Some(_), _) => match (t.identification.replaced(), t.system_id) {
            (Some(before), Some(id)) => {
                text!(
                    "system {id} has replaced system {before}: if that is right, set autopilot.system_id = {id}"
                )
            }
            (None, _) | (_, None) => text!("heartbeats received"),
        },
    }
}

impl Agent {
    /// Notes which flight controller is ours, as an earlier daemon or the guardian knew it; `is_held` where the guardian
    /// has it now.
    pub(crate) fn expect_autopilot(&mut self, known: Known, is_held: bool, out: &mut Outputs) {
        self.held = is_held.then_some(known.system_id);
        if self.telemetry.system_id.is_some() {
            return;
        }
        let identification = &mut self.telemetry.identification;
        let before = identification.known().filter(|before| before.system_id == known.system_id);
        match identification.expected() {
            Some(expected) if expected != known.system_id => {
                let id = known.system_id;
                out.log(
                    Severity::Warning,
                    text!("the guardian knows system {id} as the flight controller, expected {expected}: not taken"),
                );
            }
            Some(_) | None => {
                let is_armed = known.is_armed || is_held || before.is_some_and(|before| before.is_armed);
                identification.expect(Known { is_armed, ..known });
            }
        }
    }

    /// Returns which flight controller is ours, for an agent after this one.
    pub fn known_autopilot(&self) -> Option<Known> {
        self.telemetry.identification.known()
    }

    /// Returns the system id of the flight controller whose flight this agent takes up: the one that the guardian holds and
    /// receives, if it is ours; else 0.
    pub(crate) fn takes_up(&self) -> u8 {
        let expected = self.telemetry.identification.expected();
        let takes =
            self.telemetry.system_id.is_none() && self.authority.is_ours() && self.protocol.takes_up();
        self.held.filter(|id| takes && expected.is_none_or(|expected| expected == *id)).unwrap_or(0)
    }

    /// Returns the line of the log for a command that waits for the flight controller.
    pub(crate) fn waiting_line(&self, command: Command) -> Text {
        if self.held.is_some() && self.telemetry.system_id.is_none() {
            return text!(
                "{command}: waits: the guardian has the aircraft and lands it; a pilot can take it"
            );
        }
        text!("{command}: waits until the flight controller reports")
    }

    /// Reports a flight controller that is not ours.
    pub(crate) fn report_other(&self, id: u8, out: &mut Outputs) {
        let ours = self.telemetry.system_id.or(self.telemetry.identification.expected()).unwrap_or(0);
        out.log(
            Severity::Warning,
            text!("a second autopilot on the line: found system {id}, expected {ours}; ignored"),
        );
    }

    /// Reports why none of several is commanded.
    pub(crate) fn report_several(&self, now: Instant, out: &mut Outputs) {
        if let Some(Check { name, detail, .. }) = several(&self.telemetry, now) {
            out.log(Severity::Error, text!("{name}: {detail}"));
        }
    }
}
