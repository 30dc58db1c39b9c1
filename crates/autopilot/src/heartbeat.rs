//! Our heartbeat: onboard controller, component 191, 1 Hz. The owner sends it from its control loop: when
//! the loop stops, the heartbeat stops.

use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::dialect::{HEARTBEAT_DATA, MavAutopilot, MavMessage, MavModeFlag, MavState, MavType};
use crate::job::Transmit;

/// MAVLink's usual period (<https://mavlink.io/en/services/heartbeat.html>).
const PERIOD: Duration = Duration::from_secs(1);

/// The timer of our heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    due: Instant,
}

impl Heartbeat {
    /// The first is due now.
    pub fn new(now: Instant) -> Self {
        Self { due: now }
    }
    /// When the next one is due.
    pub fn due(&self) -> Instant {
        self.due
    }
    /// Sends it when it is due.
    ///
    /// # Errors
    /// No room; it stays due.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due {
            return Ok(());
        }
        transmit.send(&MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: 0,
            mavtype: MavType::MAV_TYPE_ONBOARD_CONTROLLER,
            autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
            base_mode: MavModeFlag::empty(),
            system_status: MavState::MAV_STATE_ACTIVE,
            mavlink_version: 3,
        }))?;
        self.due = now + PERIOD;
        Ok(())
    }
}
