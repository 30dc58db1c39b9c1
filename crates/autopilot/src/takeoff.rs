//! Guided take-off: requested with MAV_CMD_NAV_TAKEOFF, proved by the climb.

use wingbeat_geo::{Duration, Instant};

use crate::dialect::{MavCmd, MavMessage, MavResult};
use crate::job::{Failure, Progress, Retry, Transmit, acknowledged};
use crate::telemetry::Telemetry;

/// Climbed by this much, it flies.
const CLIMBED_M: f64 = 0.5;
/// ArduCopter 3.5.7 leaves the ground 2.7 s after the acknowledgement, 4.6.2 3.4 s.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes off in GUIDED.
#[derive(Clone, Copy, Debug)]
pub struct TakeOff {
    height_m: f32,
    from_m: f64,
    retry: Retry,
    accepted_at: Option<Instant>,
    refused: Option<MavResult>,
}

impl TakeOff {
    /// To `height_m` above home, from the height that telemetry shows now.
    pub fn new(now: Instant, height_m: f64, telemetry: &Telemetry) -> Self {
        Self {
            height_m: height_m as f32,
            from_m: telemetry.height_m,
            retry: Retry::new(now, Duration::from_secs(1), 4),
            accepted_at: None,
            refused: None,
        }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        self.accepted_at.map_or(self.retry.due(), |at| at + EFFECT_TIMEOUT)
    }
    /// Takes the acknowledgement.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match acknowledged(message, MavCmd::MAV_CMD_NAV_TAKEOFF) {
            None => {}
            Some(MavResult::MAV_RESULT_ACCEPTED) => self.accepted_at = self.accepted_at.or(Some(now)),
            Some(result) => self.refused = Some(result),
        }
    }
    /// Sends when due; done when the aircraft has climbed.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        if telemetry.height_m >= self.from_m + CLIMBED_M {
            return Progress::Done;
        }
        if let Some(accepted_at) = self.accepted_at {
            let waited_enough = now >= accepted_at + EFFECT_TIMEOUT;
            let failure = Progress::Failed(Failure::NoEffect { what: "take-off" });
            return if waited_enough { failure } else { Progress::Pending };
        }
        match (self.retry.poll(now), self.refused) {
            (Err(_), Some(result)) => {
                return Progress::Failed(Failure::Refused { what: "take-off", result: result as u8 });
            }
            (Err(silent), None) => return Progress::Failed(silent),
            (Ok(false), _) => {}
            (Ok(true), _) => {
                let params = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, self.height_m];
                let _ = transmit.command(MavCmd::MAV_CMD_NAV_TAKEOFF, params);
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
    fn accepted_without_a_climb_is_a_failure_and_is_not_requested_twice() {
        let mut job = TakeOff::new(Instant::ZERO, 5.0, &Telemetry::default());
        let (mut frames, mut progress) = (0, Progress::Pending);
        for s in 0..=10 {
            let now = Instant::from_secs(s);
            frames += sent(|t| progress = job.poll(now, &Telemetry::default(), t)).len();
            job.on_message(now, &ack(MavCmd::MAV_CMD_NAV_TAKEOFF, MavResult::MAV_RESULT_ACCEPTED));
        }
        assert_eq!((frames, progress), (1, Progress::Failed(Failure::NoEffect { what: "take-off" })));
    }

    #[test]
    fn a_climb_is_the_proof() {
        let mut job = TakeOff::new(Instant::ZERO, 5.0, &Telemetry::default());
        let climbed = Telemetry { height_m: 0.6, ..Telemetry::default() };
        sent(|t| assert_eq!(job.poll(Instant::ZERO, &climbed, t), Progress::Done));
    }
}
