//! What is owed to the pilot: parameters that are overridden, with the pilot's values. Its host keeps them where a power cut
//! leaves them before the frame that overrides one leaves, and hands them to the agent after a restart, which gives them
//! back on the ground.

use heapless::Vec;
use wingbeat_autopilot::parameter::{Name, Value};
use wingbeat_protocol::{Severity, text};

use crate::loan::CURES_MAX;
use crate::returns;
use crate::{Agent, Outputs};

/// Parameters that can be overridden at the same time.
pub const OWED_MAX: usize = CURES_MAX + returns::COUNT;

/// A parameter of the pilot that is overridden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Owed {
    /// As this autopilot calls it.
    pub name: Name,
    /// The pilot's value.
    pub pilots: Value,
    /// What it is overridden with, where that is one value for the whole flight. An autopilot that holds neither was set by
    /// its pilot since, whose value stays.
    pub ours: Option<Value>,
}

impl Agent {
    /// What is owed to the pilot now.
    pub fn owed(&self) -> Vec<Owed, OWED_MAX> {
        let mut owed = Vec::new();
        // There is room for all of both.
        owed.extend(self.loan.owed().chain(self.executor.owed()).take(OWED_MAX));
        owed
    }

    /// An agent before this one owed that.
    pub(crate) fn take_owed(&mut self, owed: Owed, out: &mut Outputs) {
        let Owed { name, pilots, .. } = owed;
        if self.executor.owe(&owed) || self.loan.owe(&owed) {
            return out.log(
                Severity::Warning,
                text!("{name}: the pilot's {pilots} is owed since before the restart"),
            );
        }
        out.log(
            Severity::Error,
            text!("{name}: the pilot's {pilots} is owed, and this version does not override it"),
        );
    }
}
