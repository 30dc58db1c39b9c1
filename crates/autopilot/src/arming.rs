//! Arming: requested with MAV_CMD_COMPONENT_ARM_DISARM, proved by the heartbeat.

use wingbeat_geo::{Duration, Instant};

use crate::dialect::{MavCmd, MavMessage, MavResult};
use crate::job::{Failure, Progress, Retry, Transmit, acknowledged};
use crate::telemetry::Telemetry;

/// Arms the motors.
#[derive(Clone, Copy, Debug)]
pub struct Arm {
    retry: Retry,
    refusals: u8,
    refused: Option<MavResult>,
}

/// A refusal may be temporary (gyros settle, the EKF settles): this many are accepted.
const REFUSALS_MAX: u8 = 4;

impl Arm {
    /// Tries for ten seconds.
    pub fn new(now: Instant) -> Self {
        Self { retry: Retry::new(now, Duration::from_secs(2), 5), refusals: 0, refused: None }
    }
    /// When [`Arm::poll`] is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    /// Takes the acknowledgement.
    pub fn on_message(&mut self, message: &MavMessage) {
        match acknowledged(message, MavCmd::MAV_CMD_COMPONENT_ARM_DISARM) {
            None | Some(MavResult::MAV_RESULT_ACCEPTED) => {}
            Some(result) => {
                self.refusals = self.refusals.saturating_add(1);
                self.refused = Some(result);
            }
        }
    }
    /// Sends when due; done when the heartbeat shows armed motors.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        if telemetry.armed {
            return Progress::Done;
        }
        let failure = |silent| match self.refused {
            Some(result) => Failure::Refused { what: "arming", result: result as u8 },
            None => silent,
        };
        if self.refusals >= REFUSALS_MAX {
            return Progress::Failed(failure(Failure::Silent { tries: REFUSALS_MAX }));
        }
        match self.retry.poll(now) {
            Err(silent) => return Progress::Failed(failure(silent)),
            Ok(false) => {}
            Ok(true) => {
                let params = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
                let _ = transmit.command(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, params);
            }
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::{ack, sent};

    #[test]
    fn refused_four_times_is_refused_with_its_result() {
        let mut job = Arm::new(Instant::ZERO);
        let (mut frames, mut progress) = (0, Progress::Pending);
        for s in 0..8 {
            let now = sent(|t| progress = job.poll(Instant::from_secs(s), &Telemetry::default(), t)).len();
            for _ in 0..now {
                job.on_message(&ack(MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, MavResult::MAV_RESULT_FAILED));
            }
            frames += now;
        }
        assert_eq!(frames, 4);
        assert_eq!(progress, Progress::Failed(Failure::Refused { what: "arming", result: 4 }));
    }
}
