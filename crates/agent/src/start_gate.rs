//! *Start* that one aircraft of a swarm refuses in flight: the others are started and wait for it.
//!
//! The refusal is the swarm's. The aircraft reports the reason and waits for [`START_WAITS`], so that the operator can start it
//! once the reason is gone. Then it ends the flight of all: they return in their layers, or land where they have none.

use wingbeat_geo::Instant;
use wingbeat_protocol::{Command, EndFlight, Severity, StateId, text};

use crate::command::START_WAITS;
use crate::{Agent, Outputs, Rejection};

impl Agent {
    /// Returns whether this aircraft hovers in its slot and the swarm waits for its start. A follower without its leader and an
    /// aircraft at a barrier wait for other aircraft, and no start helps them.
    fn awaits_start(&self) -> bool {
        let view = self.protocol.view();
        self.telemetry.armed
            && view.state == StateId::SetupFinished
            && view.swarm.size > 1
            && self.authority.is_ours()
    }

    /// Notes a start that was refused in flight.
    pub(crate) fn on_refused(&mut self, now: Instant, command: Command, why: &Rejection, out: &mut Outputs) {
        if command != Command::Start || !self.awaits_start() || !self.commands.refuse_start(now) {
            return;
        }
        let wait_s = START_WAITS.as_secs();
        out.log(Severity::Warning, text!("start refused: all end the flight in {wait_s} s; {why}"));
    }

    /// Ends the flight of all where a refused start was not repeated in time.
    pub(crate) fn judge_start(&mut self, now: Instant, out: &mut Outputs) {
        let Some(ends_at) = self.commands.start_ends_at() else { return };
        if !self.awaits_start() {
            return self.commands.forget_start();
        }
        if now < ends_at {
            return;
        }
        self.commands.forget_start();
        let view = self.protocol.view();
        let returns = view.return_height_mm.is_some() && self.protocol.permits(Command::Return).is_ok();
        let ending = if returns { EndFlight::Return } else { EndFlight::Land };
        out.log(
            Severity::Warning,
            text!("the refused start was not repeated in time: {ending}, and so do all"),
        );
        self.protocol_input(now, wingbeat_protocol::Input::BatteryLow(ending), out);
    }
}
