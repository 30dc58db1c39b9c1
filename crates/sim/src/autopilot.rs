//! What flies an aircraft of the world: the simulated flight controller, or a program outside that is in step with it.
//!
//! Time passes in two phases, so that programs in processes of their own fly at the same time: [`Autopilot::begin`] says
//! how far, [`Autopilot::finish`] waits until all of it is flown. What an autopilot receives between the two is part of the
//! next stretch. A world asks in the order of its aircraft, so the same bytes come in the same order however long
//! each takes.

use core::fmt::Debug;

use serde::{Deserialize, Serialize};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec3, Duration, Frame, Instant};

use crate::flight_controller::{FlightController, RcChannels, Truth};

/// The truth of how an aircraft moves, as [`Truth`] has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Metres a second east, north and up.
    pub velocity: DVec3,
    /// Where its nose points, clockwise from north.
    pub heading_rad: f64,
    /// Whether the motors may turn.
    pub armed: bool,
    /// Whether it stands on the ground.
    pub landed: bool,
}

/// What happens to an autopilot, its sensors, its battery or its pilot. When, and for how long, [`crate::faults::Fault`] says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Incident {
    /// The motors fail, for good.
    MotorsFail,
    /// The processor restarts; in flight the motors stop for good.
    Restarts,
    /// The pilot centres the sticks and turns the mode switch.
    PilotTakes(Mode),
    /// The pilot's transmitter is lost, or received again.
    TransmitterLost(bool),
    /// The battery has this charge left.
    BatteryAt {
        /// State of charge, 0 to 100.
        percent: f64,
    },
    /// No satellites, or some again.
    GnssLost(bool),
    /// The position estimate diverges, or is one again.
    EstimateDiverges(bool),
    /// What measures the position moves away from the truth.
    PositionDrifts {
        /// Measured minus true after `within`: metres east, north and up.
        to_m: DVec3,
        /// How long it takes to get there.
        within: Duration,
    },
    /// Modes are taken and the aircraft hovers all the same, or flies again.
    Stuck(bool),
    /// Texts are cut and full of rubbish, or whole again.
    TextsGarbled(bool),
    /// The mean wind differs from the weather's by so much: metres per second east, north and up.
    WindShifts {
        /// The difference.
        by_m_s: DVec3,
    },
}

/// An autopilot with its aircraft.
pub trait Autopilot: Debug + Send {
    /// Bytes from the companion, read in the next stretch.
    fn receive(&mut self, bytes: &[u8]);

    /// Time is to pass to `until`.
    fn begin(&mut self, until: Instant);

    /// Waits until it has passed; appends what the autopilot sent to `out`.
    ///
    /// # Errors
    /// It cannot fly on, and why: a process that ended or fell silent.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String>;

    /// When the next stretch is due.
    fn poll_timeout(&self) -> Instant;

    /// What is really so at the end of the last stretch.
    fn truth(&self) -> Truth;

    /// What of the truth a checker samples at every step: a position on the ellipsoid takes longer than all else.
    fn motion(&self) -> Motion {
        let Truth { velocity, heading_rad, armed, landed, .. } = self.truth();
        Motion { velocity, heading_rad, armed, landed }
    }

    /// Returns the true charge of its battery, per cent; `None` of a program outside.
    fn charge_percent(&self) -> Option<f64> {
        None
    }

    /// Returns whether a failsafe of its own chose its present mode; a program outside does not
    /// say.
    fn is_in_failsafe_mode(&self) -> bool {
        false
    }

    /// Where it truly is, as a frame measures it.
    fn place_in(&self, frame: &Frame) -> DVec3;

    /// What the pilot's receiver delivers from now on; `None` is a lost radio link.
    fn set_rc(&mut self, channels: Option<RcChannels>);

    /// Something happens to it, between two stretches; [`Autopilot::acts_at_once`] says when it shows.
    ///
    /// # Errors
    /// That cannot be done to it, and why.
    fn suffer(&mut self, incident: Incident) -> Result<(), String>;

    /// Whether what it suffers is seen at once: then it may be asked to begin before its next stretch is due, as the simulated
    /// flight controller. A program outside has it with its next stretch, whose time stays.
    fn acts_at_once(&self) -> bool {
        false
    }

    /// The simulated flight controller, to look into it; a program outside has none.
    fn simulated(&mut self) -> Option<&mut FlightController> {
        None
    }
}

impl From<FlightController> for Box<dyn Autopilot> {
    fn from(controller: FlightController) -> Self {
        Box::new(controller)
    }
}
