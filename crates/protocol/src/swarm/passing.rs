//! What an agent does with the commands of a leader, for tests of the protocols: it keeps the last, and passes it on.

use wingbeat_wire::{Datagram, Message, Sealed, Signer, VehicleId, read_unverified};

use crate::Input;

/// The commands that one aircraft passes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passing {
    /// The last that the protocol took.
    pub(crate) last: Option<Datagram>,
}

impl Passing {
    /// The flight and the message with which the last command is passed on.
    pub(crate) fn pass_on(&self) -> Option<(u32, Message)> {
        let last = self.last.as_ref()?;
        let mut draft = last.draft().unwrap();
        let sealed = Sealed::from_slice(Signer::insecure().seal(&mut draft)).unwrap();
        Some((last.flight, Message::Passed(sealed)))
    }

    /// Hands in what was received; `handle` answers whether it was taken.
    pub(crate) fn receive(
        &mut self,
        me: VehicleId,
        datagram: Datagram,
        handle: impl FnOnce(Input<'_>) -> bool,
    ) {
        let Datagram { from, flight, ref message, .. } = datagram;
        let Message::Passed(sealed) = message else {
            if handle(Input::Message { from, flight, message }) && message.is_command() {
                self.last = Some(datagram);
            }
            return;
        };
        let command = read_unverified(sealed).unwrap();
        let is_known = |last: &Datagram| last.from == command.from && last.counter >= command.counter;
        if command.from == me || self.last.as_ref().is_some_and(is_known) {
            return;
        }
        let Datagram { from: leader, flight, message: passed, .. } = &command;
        if handle(Input::Passed { by: from, from: *leader, flight: *flight, command: passed }) {
            self.last = Some(command);
        }
    }
}
