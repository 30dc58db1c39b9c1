//! The catalogue of failures: their names are the rows of `docs/failures.md`. A drill records which began in which phase of
//! the flight, read from the true state of the aircraft in that instant.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use wingbeat_agent::Command;
use wingbeat_sim::faults::{Direction, Fault};

use super::Kind;
use super::progress::Stage;
use super::script::Act;
use super::sky::Sky;
use crate::scenario::{Scenario, Task, Variant};

/// A protocol that drills fly.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[allow(missing_docs, reason = "their names")]
pub enum Protocol {
    #[strum(serialize = "MUSCOP")]
    Muscop,
    FollowMe,
    #[strum(serialize = "MBCAP")]
    Mbcap,
    Mission,
    Sweep,
}

impl Protocol {
    /// Returns the protocol that a scenario's aircraft fly.
    pub(super) fn of(scenario: &Scenario) -> Self {
        match &scenario.task {
            Task::Swarm(_) => Self::Muscop,
            Task::Follow(_) => Self::FollowMe,
            Task::Own(task) => match task.variant {
                Variant::Off => Self::Mission,
                Variant::Sweep => Self::Sweep,
                Variant::Mbcap | Variant::MbcapE => Self::Mbcap,
            },
        }
    }

    /// As tables and options call it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::str::FromStr for Protocol {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::VARIANTS.iter().copied().find(|p| p.name().eq_ignore_ascii_case(text));
        let names = || Self::VARIANTS.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("found '{text}', expected one of {}", names()))
    }
}

/// A phase of the flight of one aircraft.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
pub enum FlightPhase {
    /// Before its motors run.
    #[strum(serialize = "on the ground")]
    Ground,
    /// Until it is in its slot.
    #[strum(serialize = "take-off")]
    TakeOff,
    /// In its slot, until *Start* or the leader's first target.
    #[strum(serialize = "slots")]
    Slots,
    /// On its mission, or following.
    #[strum(serialize = "mission")]
    Mission,
    /// Returning or landing, until its motors stop.
    #[strum(serialize = "return, landing")]
    Landing,
}

impl FlightPhase {
    /// As tables call it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the phase of an aircraft now; `None` after its flight.
    pub(super) fn of(sky: &Sky, vehicle: usize) -> Option<Self> {
        let (motion, stage) = (sky.world.motion(vehicle), sky.progress.stage(vehicle));
        if !motion.armed && motion.landed {
            let is_ahead = sky.progress.has_not_flown(vehicle);
            return is_ahead.then_some(Self::Ground);
        }
        Some(match stage {
            Stage::Start | Stage::Setup | Stage::ReadyToFly | Stage::TakingOff => Self::TakeOff,
            Stage::SetupFinished | Stage::Waiting => Self::Slots,
            Stage::Following | Stage::Mission(_) => Self::Mission,
            Stage::MovingToLand | Stage::Landing | Stage::Over => Self::Landing,
        })
    }
}

/// A failure of the catalogue.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[allow(missing_docs, reason = "named as the rows of docs/failures.md")]
pub enum Failure {
    #[strum(serialize = "companion dies")]
    CompanionDies,
    #[strum(serialize = "whole aircraft falls")]
    Falls,
    #[strum(serialize = "motor")]
    Motor,
    #[strum(serialize = "daemon restarts")]
    DaemonRestarts,
    #[strum(serialize = "guardian dead")]
    GuardianDead,
    #[strum(serialize = "serial line, both ways")]
    SerialBoth,
    #[strum(serialize = "serial line, to the companion")]
    SerialToCompanion,
    #[strum(serialize = "serial line, to the autopilot")]
    SerialToAutopilot,
    #[strum(serialize = "serial line flaps")]
    SerialFlaps,
    #[strum(serialize = "autopilot restarts")]
    AutopilotRestarts,
    #[strum(serialize = "EKF, compass")]
    Ekf,
    #[strum(serialize = "GNSS lost")]
    GnssLost,
    #[strum(serialize = "GNSS biased, jumping or spoofed by up to 4 m")]
    GnssBiased,
    #[strum(serialize = "barometer drifts")]
    Barometer,
    #[strum(serialize = "transmitter lost")]
    Transmitter,
    #[strum(serialize = "battery low or critical")]
    BatteryLow,
    #[strum(serialize = "battery empty")]
    BatteryEmpty,
    #[strum(serialize = "wind")]
    Wind,
    #[strum(serialize = "gust front")]
    GustFront,
    #[strum(serialize = "radio silent")]
    RadioSilent,
    #[strum(serialize = "radio mute or deaf")]
    RadioOneWay,
    #[strum(serialize = "datagrams lost")]
    Loss,
    #[strum(serialize = "datagrams lost in bursts")]
    Bursts,
    #[strum(serialize = "partition")]
    Partition,
    #[strum(serialize = "datagrams late or reordered")]
    Late,
    #[strum(serialize = "datagrams doubled")]
    Doubled,
    #[strum(serialize = "ground service or console lost")]
    GroundEnds,
    #[strum(serialize = "second ground station")]
    SecondGround,
    #[strum(serialize = "operator's slip")]
    OperatorSlip,
    #[strum(serialize = "pilot takes over")]
    PilotTakes,
    #[strum(serialize = "unlevel homes")]
    Unlevel,
    #[strum(serialize = "starved processors")]
    Starved,
    #[strum(serialize = "failsafe in the middle of a command")]
    FailsafeInCommand,
    #[strum(serialize = "two failures at once")]
    Two,
    #[strum(serialize = "autopilot reports RTL and does not move")]
    Stuck,
    #[strum(serialize = "STATUSTEXT cut or garbled")]
    TextsGarbled,
    #[strum(serialize = "Hold, Return and Land within a second from two consoles")]
    Consoles,
    #[strum(serialize = "GNSS jammer: all aircraft")]
    Jammer,
    #[strum(serialize = "all radios")]
    AllRadios,
    #[strum(serialize = "all batteries")]
    AllBatteries,
    #[strum(serialize = "one transmitter for all aircraft")]
    OneTransmitter,
}

/// Charge at which a battery is empty, per cent.
const EMPTY_PERCENT: f64 = 0.5;

impl Failure {
    /// As the rows of `docs/failures.md` call it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the failure that an act is, in a drill of this kind; none of an order that is part of the flight.
    pub(super) fn of(kind: Kind, act: &Act) -> Option<Self> {
        Some(match *act {
            Act::Kill(_, death) => Self::of_fault(&death.fault(0))?,
            Act::Silence(..) => Self::RadioSilent,
            Act::Loss { .. } => Self::Loss,
            Act::Bursts { .. } => Self::Bursts,
            Act::Partition { .. } => Self::Partition,
            Act::Press(..) if kind == Kind::Consoles => Self::Consoles,
            // The command that the failsafe interrupts is no slip.
            Act::Press(..) if kind == Kind::FailsafeInCommand => return None,
            Act::Press(Command::Hold | Command::Land | Command::Return, _) => Self::OperatorSlip,
            Act::Press(..) => return None,
            Act::Inflict(_, Fault::TransmitterLost { .. }) if kind == Kind::FailsafeInCommand => {
                Self::FailsafeInCommand
            }
            Act::Inflict(_, ref fault) => Self::of_fault(fault)?,
            Act::GroundEnds => Self::GroundEnds,
            Act::InflictAll(ref fault) => match fault {
                Fault::GnssLost { .. } => Self::Jammer,
                Fault::RadioSilent { .. } => Self::AllRadios,
                Fault::BatteryAt { .. } => Self::AllBatteries,
                Fault::TransmitterLost { .. } => Self::OneTransmitter,
                other => Self::of_fault(other)?,
            },
        })
    }

    fn of_fault(fault: &Fault) -> Option<Self> {
        Some(match *fault {
            Fault::CompanionDies { .. } => Self::CompanionDies,
            Fault::Falls { .. } => Self::Falls,
            Fault::MotorsFail { .. } => Self::Motor,
            Fault::DaemonRestarts { .. } => Self::DaemonRestarts,
            Fault::GuardianDies { .. } => Self::GuardianDead,
            Fault::RadioSilent { lost: Direction::Both, .. } => Self::RadioSilent,
            Fault::RadioSilent { .. } => Self::RadioOneWay,
            Fault::SerialLine { flaps, .. } if flaps > wingbeat_geo::Duration::ZERO => Self::SerialFlaps,
            Fault::SerialLine { lost: Direction::Both, .. } => Self::SerialBoth,
            Fault::SerialLine { lost: Direction::Received, .. } => Self::SerialToCompanion,
            Fault::SerialLine { lost: Direction::Sent, .. } => Self::SerialToAutopilot,
            Fault::AutopilotReboots { .. } => Self::AutopilotRestarts,
            Fault::PilotTakes { .. } => Self::PilotTakes,
            Fault::TransmitterLost { .. } => Self::Transmitter,
            Fault::BatteryAt { percent, .. } if percent < EMPTY_PERCENT => Self::BatteryEmpty,
            Fault::BatteryAt { .. } => Self::BatteryLow,
            Fault::GnssLost { .. } => Self::GnssLost,
            Fault::EstimateDiverges { .. } => Self::Ekf,
            Fault::EstimateDrifts { offset_m, .. } if offset_m.truncate().length() > 0.0 => Self::GnssBiased,
            Fault::EstimateDrifts { .. } => Self::Barometer,
            Fault::Stuck { .. } => Self::Stuck,
            Fault::TextsGarbled { .. } => Self::TextsGarbled,
            Fault::GustFront { .. } => Self::GustFront,
            Fault::SecondGround { .. } => Self::SecondGround,
            Fault::Starved { .. } => Self::Starved,
            Fault::Late { .. } => Self::Late,
            Fault::Doubled { .. } => Self::Doubled,
            Fault::Loss { .. } => Self::Loss,
            Fault::Bursts { .. } => Self::Bursts,
            Fault::Partition { .. } => Self::Partition,
        })
    }
}

/// A failure that began in a phase of the flight of an aircraft that it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Began {
    /// Which.
    pub failure: Failure,
    /// The true phase.
    pub phase: FlightPhase,
}
