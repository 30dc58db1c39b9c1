//! The operator's commands: each has an id, so that a command that arrives twice is one command, and
//! each is followed until its effect is seen in telemetry.

use heapless::Vec;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::identity::Version;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Absent, Command, ConfigError, Denied, MissionError, Phase, StateId, Text};
use wingbeat_wire::{CommandId, Refused, VehicleId};

use crate::loan::LoanState;
use crate::status::{COMMANDS_MAX, CommandProgress};

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
    /// It is not carried out.
    Refused(Rejection),
}

/// Why an agent does not carry out a command, or take a mission.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejection {
    /// A command needs an id by which it is known when it comes again.
    #[error("command id: found {found} characters, expected 1 to 64")]
    Id {
        /// Its length.
        found: usize,
    },
    /// Another command came under this id: its sender would take *already known* for *done*.
    #[error(
        "id {id:?}: found {command}, expected {earlier}, which came under this id before: a new command needs a new id"
    )]
    Reused {
        /// The id.
        id: CommandId,
        /// What came now.
        command: Command,
        /// What came before.
        earlier: Command,
    },
    /// An order that is not taken.
    #[error("order: {0}")]
    Order(#[from] Refused),
    /// A pilot, a failsafe or a ground station has the aircraft.
    #[error("not engaged: {0}")]
    Disengaged(Text),
    /// The agent is engaged again on the ground, or in flight where the pilot hands the aircraft over.
    #[error(
        "engaging is possible on the ground, disarmed, or in flight when the pilot has switched to GUIDED"
    )]
    Armed,
    /// Our own order is starting the motors: an agent that began anew would not know whose they are.
    #[error("engaging is possible before the motors are started or once they run: they are being started")]
    Arming,
    /// The flight has begun: it was judged by the parameters as they are.
    #[error("parameters are set on the ground in state Start, found {0}")]
    Underway(StateId),
    /// A flight is set up on the ground, before it begins.
    #[error("a flight is set up on the ground in state Start, found {0}")]
    Begun(StateId),
    /// Motors are armed, or about to be.
    #[error("a flight is set up with disarmed motors, found armed ones")]
    SetUpArmed,
    /// An order is being carried out.
    #[error("a flight is set up while no order is carried out, found one")]
    OrderUnderWay,
    /// Of another aircraft.
    #[error("id: found {found}, expected {expected}: an aircraft keeps its id")]
    OtherAircraft {
        /// In the set-up.
        found: VehicleId,
        /// Ours.
        expected: VehicleId,
    },
    /// A number of a set-up that cannot be flown.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// Nothing is known of the flight controller's motors.
    #[error("found no heartbeat of the flight controller, expected one: nothing is known of its motors")]
    NotReceived,
    /// In flight parameters are neither read nor set.
    #[error("parameters: found armed motors, expected disarmed ones")]
    MotorsArmed,
    /// One request at a time.
    #[error("parameters: found another request under way, expected none")]
    UnderWay,
    /// What is given back after the flight would undo what is set now.
    #[error(
        "parameters: found the pilot's set otherwise for a flight, expected them given back (engage does that)"
    )]
    Lent,
    /// What the flight controller can do is not known.
    #[error("found no version of the flight controller, expected one")]
    NoVersion,
    /// Its firmware has no such list.
    #[error("found ArduCopter {0}, which has no list of them in the mission protocol, expected 4.0 or later")]
    NoRegions(Version),
    /// Every parameter that has one cure is as it should be.
    #[error("no parameter to set: what else fails has no single cure")]
    NothingToSet,
    /// Whether it flies, and who flies it, is not known.
    #[error("engaging needs a heartbeat of the flight controller: none received")]
    Unknown,
    /// A preflight check failed.
    #[error("{name}: {detail}")]
    Check {
        /// The check.
        name: &'static str,
        /// The check's finding.
        detail: Text,
    },
    /// The protocol does not permit the command.
    #[error(transparent)]
    Command(#[from] Denied),
    /// The protocol does not take the mission.
    #[error(transparent)]
    Mission(#[from] MissionError),
}

/// What is observed of an aircraft, to judge whether a command took effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation<'a> {
    pub(crate) me: VehicleId,
    pub(crate) mode: Option<Mode>,
    pub(crate) armed: bool,
    pub(crate) phase: Phase,
    /// Members of the swarm that are not waited for.
    pub(crate) absent: &'a [Absent],
    /// Whether the parameters are set that were asked for.
    pub(crate) loan: LoanState,
}

impl Observation<'_> {
    /// Whether an excluded member is out: it reported so, or is is_lost.
    fn is_out(&self, member: VehicleId) -> bool {
        if member == self.me {
            return matches!(self.phase, Phase::Aborted | Phase::Finished);
        }
        self.absent.iter().any(|a| a.id == member && (a.is_lost || a.leaves.is_some()))
    }
}

/// The last commands.
#[derive(Default)]
pub(crate) struct Commands {
    last: Vec<CommandProgress, COMMANDS_MAX>,
    /// Whether the effect of one is still to be seen.
    open: bool,
    /// When *Start* was refused in flight first; the others may have been started.
    start_refused_at: Option<Instant>,
}

/// An aircraft of a swarm that refused *Start* in flight ends the flight of all after this time if it is not started.
pub(crate) const START_WAITS: Duration = Duration::from_secs(60);

impl Commands {
    /// Notes that *Start* was refused in flight. Returns whether that is new.
    pub(crate) fn refuse_start(&mut self, now: Instant) -> bool {
        self.start_refused_at.replace(self.start_refused_at.unwrap_or(now)).is_none()
    }
    /// Returns when the wait for a start ends, where one was refused in flight.
    pub(crate) fn start_ends_at(&self) -> Option<Instant> {
        self.start_refused_at.map(|at| at + START_WAITS)
    }
    /// Forgets a refused start: the aircraft was started, or flies no more.
    pub(crate) fn forget_start(&mut self) {
        self.start_refused_at = None;
    }
    pub(crate) fn list(&self) -> &Vec<CommandProgress, COMMANDS_MAX> {
        &self.last
    }
    /// The command that came under an id.
    pub(crate) fn command_of(&self, id: &CommandId) -> Option<Command> {
        self.last.iter().find(|c| c.id == *id).map(|c| c.command)
    }
    /// How far the command with an id has come.
    pub(crate) fn stage_of(&self, id: &CommandId) -> Option<Stage> {
        self.last.iter().find(|c| c.id == *id).map(|c| c.stage)
    }
    /// Notes an accepted command; whatever this aircraft was still about is overtaken.
    pub(crate) fn accept(&mut self, id: CommandId, command: Command) {
        let overtakes = |c: &&mut CommandProgress| command.concerns_flight() && c.command.concerns_flight();
        for earlier in self.last.iter_mut().filter(|c| c.stage == Stage::Accepted).filter(overtakes) {
            earlier.stage = Stage::Failed;
        }
        if self.last.is_full() {
            self.last.remove(0);
        }
        let _ = self.last.push(CommandProgress { id, command, stage: Stage::Accepted });
        self.open = true;
        if command.concerns_flight() {
            self.forget_start();
        }
    }
    /// A command that waited cannot be carried out.
    pub(crate) fn fail(&mut self, command: Command) {
        for waiting in self.last.iter_mut().filter(|c| c.stage == Stage::Accepted && c.command == command) {
            waiting.stage = Stage::Failed;
        }
    }
    /// Whether the effect of one is still to be seen.
    pub(crate) fn are_open(&self) -> bool {
        self.open
    }
    /// Whether the effect of an exclusion is being waited for: only then the absent members are determined.
    pub(crate) fn watches_members(&self) -> bool {
        self.last.iter().any(|c| c.stage == Stage::Accepted && !c.command.concerns_flight())
    }
    /// Looks whether effects are to be seen.
    pub(crate) fn observe(&mut self, seen: Observation<'_>) {
        for current in self.last.iter_mut().filter(|c| c.stage == Stage::Accepted) {
            Self::judge(current, seen);
        }
        self.open = self.last.iter().any(|c| c.stage == Stage::Accepted);
    }
    fn judge(current: &mut CommandProgress, seen: Observation<'_>) {
        let effect = match current.command {
            Command::Setup => seen.phase == Phase::Ready,
            Command::Start => seen.phase == Phase::Moving,
            Command::Hold => seen.mode == Some(Mode::Brake) || !seen.armed,
            Command::Return => seen.mode == Some(Mode::Rtl) || !seen.armed,
            Command::Land => seen.mode == Some(Mode::Land) || !seen.armed,
            Command::Resume => seen.phase == Phase::Moving && seen.mode == Some(Mode::Auto),
            Command::SetParameters => seen.loan == LoanState::Settled,
            Command::RecoverControl | Command::Engage => true,
            Command::Exclude { member } => seen.is_out(member),
        };
        let failed = match current.command {
            // Back at the start: it could not be planned.
            Command::Setup => matches!(seen.phase, Phase::Aborted | Phase::Start),
            Command::Start => seen.phase == Phase::Aborted,
            Command::SetParameters => seen.loan == LoanState::Failed,
            Command::Hold
            | Command::Return
            | Command::Land
            | Command::Resume
            | Command::RecoverControl
            | Command::Engage
            | Command::Exclude { .. } => false,
        };
        if effect {
            current.stage = Stage::EffectSeen;
        } else if failed {
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

    const ME: VehicleId = VehicleId(1);

    fn seen(mode: Mode, phase: Phase, absent: &[Absent]) -> Observation<'_> {
        Observation { me: ME, mode: Some(mode), armed: true, phase, absent, loan: LoanState::Settled }
    }

    #[test]
    fn an_exclusion_replaces_no_other_command() {
        let other = VehicleId(7);
        let absent = |is_lost| Absent {
            id: other,
            is_lost,
            leaves: None,
            excluded_by: Some(ME),
            is_waited_for: false,
        };
        let mut commands = Commands::default();
        commands.accept(id("a"), Command::Setup);
        commands.accept(id("b"), Command::Exclude { member: other });
        commands.accept(id("c"), Command::Exclude { member: ME });
        let stages = |commands: &Commands| commands.list().iter().map(|c| c.stage).collect::<Vec<_, 8>>();
        assert!(commands.watches_members());
        commands.observe(seen(Mode::Guided, Phase::Preparing, &[absent(false)]));
        assert_eq!(stages(&commands), [Stage::Accepted, Stage::Accepted, Stage::Accepted]);
        commands.observe(seen(Mode::Guided, Phase::Preparing, &[absent(true)]));
        assert_eq!(stages(&commands), [Stage::Accepted, Stage::EffectSeen, Stage::Accepted]);
        commands.observe(seen(Mode::Brake, Phase::Aborted, &[absent(true)]));
        assert_eq!(stages(&commands), [Stage::Failed, Stage::EffectSeen, Stage::EffectSeen]);
        assert!(!commands.watches_members());
    }

    #[test]
    fn a_setup_that_could_not_be_planned_has_failed() {
        let mut commands = Commands::default();
        commands.accept(id("a"), Command::Setup);
        commands.observe(seen(Mode::Guided, Phase::Start, &[]));
        assert_eq!(commands.list()[0].stage, Stage::Failed);
    }

    #[test]
    fn a_later_command_overtakes_and_the_ninth_pushes_out_the_first() {
        let mut commands = Commands::default();
        commands.accept(id("a"), Command::Setup);
        commands.accept(id("b"), Command::Land);
        assert_eq!(commands.list()[0].stage, Stage::Failed);
        commands.observe(seen(Mode::Guided, Phase::Aborted, &[]));
        assert_eq!(commands.list()[1].stage, Stage::Accepted);
        commands.observe(seen(Mode::Land, Phase::Aborted, &[]));
        assert_eq!(commands.list()[1].stage, Stage::EffectSeen);
        for name in ["c", "d", "e", "f", "g", "h", "i"] {
            commands.accept(id(name), Command::Hold);
        }
        assert_eq!(
            (commands.command_of(&id("a")), commands.command_of(&id("b"))),
            (None, Some(Command::Land))
        );
    }
}
