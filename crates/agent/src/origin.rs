//! What a flight log keeps of an agent: what makes it anew, and what of it is plotted.

use serde::{Deserialize, Serialize};
use wingbeat_geo::{DVec3, Instant, Position};
use wingbeat_protocol::{ConfigError, Phase, StateId};

use crate::{Agent, Config, energy, separation};

/// What makes an agent anew, before its first input: the same inputs at the same times then give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Its configuration, without the signing key.
    pub config: Config,
    /// The seed of its random numbers.
    pub seed: u64,
    /// When it was made, microseconds of its own time.
    pub began_us: u64,
    /// What its clock is counted from in datagrams, microseconds.
    pub counter_base_us: u64,
    /// The counter of the last datagram of the agent before it.
    pub counter: u64,
}

/// What of an aircraft is plotted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The protocol's state.
    pub state: StateId,
    /// How far the flight has come.
    pub phase: Phase,
    /// The waypoint reached last.
    pub reached: Option<u16>,
    /// Whether the agent may command.
    pub engaged: bool,
    /// Number of the autopilot's mode.
    pub mode_number: Option<u32>,
    /// Whether motors are armed.
    pub armed: bool,
    /// Where it is.
    pub position: Option<Position>,
    /// Height above home, metres.
    pub height_m: f64,
    /// Velocity east, north, up, metres per second.
    pub velocity_m_s: DVec3,
    /// Heading clockwise from north, radians.
    pub heading_rad: f64,
    /// Charge of the battery, per cent.
    pub battery_percent: Option<u8>,
    /// The nearest other aircraft.
    pub nearest: Option<separation::Near>,
}

impl Agent {
    /// What makes this agent anew. Asked for before its first input.
    pub fn origin(&self) -> Origin {
        Origin {
            config: self.config.clone(),
            seed: self.seed,
            began_us: self.began.as_micros(),
            counter_base_us: self.counter_base_us,
            counter: self.counter,
        }
    }

    /// The agent of an origin.
    ///
    /// # Errors
    /// As [`Agent::new`].
    pub fn of(origin: Origin) -> Result<Self, ConfigError> {
        let Origin { config, seed, began_us, counter_base_us, counter } = origin;
        let begun = Self::new(config, seed, Instant::from_micros(began_us))?;
        Ok(Self { counter_base_us, counter, ..begun })
    }

    /// What of it is plotted: cheaper than the status.
    pub fn sample(&self, now: Instant) -> Sample {
        let (t, view) = (&self.telemetry, self.protocol.view());
        Sample {
            state: view.state,
            phase: view.phase,
            reached: view.reached,
            engaged: self.authority.is_ours(),
            mode_number: t.mode_number,
            armed: t.armed,
            position: t.position.filter(|_| t.is_up(now)),
            height_m: t.height_m,
            velocity_m_s: t.velocity_m_s,
            heading_rad: t.heading_rad,
            battery_percent: energy::worst(&self.config.energy.unwrap_or_default(), t)
                .and_then(|worst| worst.remaining_percent),
            nearest: self.separation.view(now).nearest,
        }
    }
}
