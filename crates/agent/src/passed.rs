//! Commands of a swarm's leader that reach a member through another.
//!
//! A command counts as the leader's alone ([`Message::is_command`]). An aircraft that obeys one keeps it as the leader sealed
//! it, and passes it on within a datagram of its own while the protocol knows of a member that may have missed it. It may be
//! older than datagrams of the leader that were received since; a later command of the same leader replaces it.

use wingbeat_geo::Instant;
use wingbeat_protocol::Input;
use wingbeat_wire::{Datagram, Message, Opened, Refused, Sealed, VehicleId};

use crate::{Agent, Outputs};

/// The last command of a leader.
#[derive(Debug, Default)]
pub(crate) struct LastCommand {
    origin: Option<Origin>,
    sealed: Sealed,
}

#[derive(Clone, Copy, Debug)]
struct Origin {
    leader: VehicleId,
    flight: u32,
    counter: u64,
}

impl LastCommand {
    /// Keeps a command that the protocol took.
    pub(crate) fn keep(&mut self, opened: &Opened<'_>, flight: u32) {
        // The longest fits: see there.
        let Ok(sealed) = Sealed::from_slice(opened.sealed()) else { return };
        self.origin = Some(Origin { leader: opened.from(), flight, counter: opened.counter() });
        self.sealed = sealed;
    }

    /// Whether a command is this one, or was replaced by it.
    fn replaces(&self, opened: &Opened<'_>) -> bool {
        let is_later = |kept: Origin| kept.leader == opened.from() && kept.counter >= opened.counter();
        self.origin.is_some_and(is_later)
    }
}

impl Agent {
    /// A datagram that passes a command on, which is read into `datagram` in place of it. Not inlined: it is rare.
    #[inline(never)]
    pub(crate) fn on_passed(
        &mut self,
        now: Instant,
        opened: &Opened<'_>,
        datagram: &mut Datagram,
        out: &mut Outputs,
    ) {
        let by = opened.from();
        let Some(command) = opened.passed() else { return self.refuse_received(Refused::Malformed) };
        // Our own comes back, and one that is known comes from every member.
        if command.from() == self.id() || self.last_command.replaces(&command) {
            return;
        }
        if let Err(reason) = command.read_into(datagram) {
            return self.refuse_received(reason);
        }
        let Datagram { from, flight, message, .. } = &*datagram;
        if !message.is_command() {
            return self.refuse_received(Refused::UnexpectedSender);
        }
        let input = Input::Passed { by, from: *from, flight: *flight, command: message };
        if self.protocol_input(now, input, out) {
            self.last_command.keep(&command, *flight);
        }
    }

    /// Passes on the command that this aircraft obeys.
    pub(crate) fn pass_command_on(&mut self, now: Instant, out: &mut Outputs) {
        let flight = self.protocol.view().swarm.flight;
        if self.last_command.origin.is_none_or(|kept| kept.flight != flight) {
            return;
        }
        let message = Message::Passed(self.last_command.sealed.clone());
        self.broadcast(now, flight, &message, out);
    }

    fn refuse_received(&mut self, reason: Refused) {
        self.received -= 1;
        self.refuse(reason);
    }
}
