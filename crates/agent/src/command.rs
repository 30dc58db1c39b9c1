//! The operator's commands: each has an id, so that a command that arrives twice is one command, and
//! each is followed until its effect is seen in telemetry.

use heapless::{String, Vec};
use wingbeat_autopilot::copter::Mode;
use wingbeat_protocol::{Phase, Text};

use crate::status::{COMMANDS_MAX, CommandProgress};

/// Chosen by the sender.
pub type CommandId = String<64>;

/// What an operator can ask of an aircraft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Form the swarm, take off, take the slots.
    Setup,
    /// Fly the mission.
    Start,
    /// Stop and hold position.
    Hold,
    /// Return to launch.
    Return,
    /// Land where it is.
    Land,
    /// Hand the aircraft to the pilot.
    RecoverControl,
    /// Let the agent command again, on the ground.
    Engage,
}

/// How far a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Accepted, effect not seen yet.
    Accepted,
    /// Its effect was read back.
    EffectSeen,
    /// It failed or was overtaken by another.
    Failed,
}

/// Answer to a command or a mission.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It is being carried out.
    Accepted,
    /// The same id came before.
    AlreadyKnown,
    /// The state forbids it.
    Refused(Text),
}

/// What is seen of an aircraft, to tell whether a command took effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) mode: Option<Mode>,
    pub(crate) armed: bool,
    pub(crate) phase: Phase,
}

/// The last commands.
#[derive(Default)]
pub(crate) struct Commands {
    last: Vec<CommandProgress, COMMANDS_MAX>,
    /// Whether the effect of one is still to be seen.
    open: bool,
}

impl Commands {
    pub(crate) fn list(&self) -> &Vec<CommandProgress, COMMANDS_MAX> {
        &self.last
    }
    pub(crate) fn knows(&self, id: &CommandId) -> bool {
        self.last.iter().any(|c| c.id == *id)
    }
    /// Notes an accepted command; whatever was still on its way is overtaken.
    pub(crate) fn accept(&mut self, id: CommandId, command: Command) {
        for earlier in self.last.iter_mut().filter(|c| c.stage == Stage::Accepted) {
            earlier.stage = Stage::Failed;
        }
        if self.last.is_full() {
            self.last.remove(0);
        }
        let _ = self.last.push(CommandProgress { id, command, stage: Stage::Accepted });
        self.open = true;
    }
    /// Whether the effect of one is still to be seen.
    pub(crate) fn are_open(&self) -> bool {
        self.open
    }
    /// Looks whether an effect is to be seen.
    pub(crate) fn look(&mut self, seen: Seen) {
        let Some(current) = self.last.iter_mut().find(|c| c.stage == Stage::Accepted) else {
            self.open = false;
            return;
        };
        let aborted = seen.phase == Phase::Aborted;
        let effect = match current.command {
            Command::Setup => seen.phase == Phase::Ready,
            Command::Start => seen.phase == Phase::Moving,
            Command::Hold => seen.mode == Some(Mode::Brake) || !seen.armed,
            Command::Return => seen.mode == Some(Mode::Rtl) || !seen.armed,
            Command::Land => seen.mode == Some(Mode::Land) || !seen.armed,
            Command::RecoverControl | Command::Engage => true,
        };
        if effect {
            current.stage = Stage::EffectSeen;
        } else if aborted && matches!(current.command, Command::Setup | Command::Start) {
            current.stage = Stage::Failed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CommandId {
        CommandId::try_from(text).unwrap()
    }

    #[test]
    fn a_later_command_overtakes_and_the_ninth_pushes_out_the_first() {
        let mut commands = Commands::default();
        commands.accept(id("a"), Command::Setup);
        commands.accept(id("b"), Command::Land);
        assert_eq!(commands.list()[0].stage, Stage::Failed);
        commands.look(Seen { mode: Some(Mode::Guided), armed: true, phase: Phase::Aborted });
        assert_eq!(commands.list()[1].stage, Stage::Accepted);
        commands.look(Seen { mode: Some(Mode::Land), armed: true, phase: Phase::Aborted });
        assert_eq!(commands.list()[1].stage, Stage::EffectSeen);
        for name in ["c", "d", "e", "f", "g", "h", "i"] {
            commands.accept(id(name), Command::Hold);
        }
        assert!(!commands.knows(&id("a")) && commands.knows(&id("b")));
    }
}
