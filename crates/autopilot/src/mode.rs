//! Flight mode: requested with SET_MODE, proved by the heartbeat.
//!
//! SET_MODE is the one request that ArduCopter 3.5.7 and 4.6.2 both obey (3.5.7 refuses
//! MAV_CMD_DO_SET_MODE, 4.6.2 gives SET_MODE no acknowledgement), and the acknowledgement is not
//! needed: the heartbeat's mode is the proof. A heartbeat that left before the autopilot obeyed is no proof: a
//! caller that has just requested another mode uses [`SetMode::proved_after`].

// MAVLink deprecates SET_MODE for MAV_CMD_DO_SET_MODE, which ArduCopter 3.5.7 does not know.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant};

use crate::copter::Mode;
use crate::dialect::{MavMessage, MavModeFlag, SET_MODE_DATA};
use crate::job::{Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

/// Heartbeats show the mode at 1 Hz: a retry comes a little later.
const PERIOD: Duration = Duration::from_millis(1_200);

/// Sets a flight mode.
#[derive(Clone, Copy, Debug)]
pub struct SetMode {
    mode: Mode,
    retry: Retry,
    /// An earlier heartbeat is no proof.
    proved_from: Instant,
}

/// A heartbeat later than this after a request was written by an autopilot that had read it: 3.5.7 reads its
/// lines at 50 Hz, and a heartbeat waits behind some hundred bytes of a serial line.
const READ_WITHIN: Duration = Duration::from_millis(300);

impl SetMode {
    /// Tries five times.
    pub fn new(now: Instant, mode: Mode) -> Self {
        Self { mode, retry: Retry::new(now, PERIOD, 5), proved_from: Instant::ZERO }
    }
    /// Tries until the mode shows: for a stop, a landing and a return.
    pub fn insist(now: Instant, mode: Mode) -> Self {
        Self { mode, retry: Retry::endless(now, PERIOD), proved_from: Instant::ZERO }
    }
    /// Another mode was requested and has not shown yet, and this one at `requested_at`: the last heartbeat may
    /// show the mode before both, so the request is sent in any case, and only a heartbeat that came well after
    /// `requested_at` is a proof.
    pub fn proved_after(self, requested_at: Instant) -> Self {
        Self { proved_from: requested_at + READ_WITHIN, ..self }
    }
    /// The mode to set.
    pub fn mode(&self) -> Mode {
        self.mode
    }
    /// When [`SetMode::poll`] is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    /// Sends when due; done when the heartbeat shows the mode.
    pub fn poll(&mut self, now: Instant, telemetry: &Telemetry, transmit: &mut Transmit<'_>) -> Progress {
        let proves = telemetry.heartbeat_at.is_some_and(|at| at >= self.proved_from);
        if proves && telemetry.mode_number == Some(self.mode.number()) {
            return Progress::Done;
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => {}
            Ok(true) => {
                // No room is a lost frame: the next try replaces it.
                let _ = transmit.send(&MavMessage::SET_MODE(SET_MODE_DATA {
                    custom_mode: self.mode.number(),
                    target_system: transmit.system_id,
                    base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
                }));
            }
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Failure;
    use crate::job::testing::sent;

    #[test]
    fn repeats_until_the_heartbeat_shows_it_and_fails_after_five() {
        let mut job = SetMode::new(Instant::ZERO, Mode::Guided);
        let mut telemetry = Telemetry::default();
        let (mut frames, mut progress) = (0, Progress::Pending);
        for ms in (0..=7_200).step_by(100) {
            frames += sent(|t| progress = job.poll(Instant::from_millis(ms), &telemetry, t)).len();
        }
        assert_eq!((frames, progress), (5, Progress::Failed(Failure::Silent { tries: 5 })));
        telemetry.mode_number = Some(Mode::Guided.number());
        telemetry.heartbeat_at = Some(Instant::ZERO);
        sent(|t| progress = SetMode::new(Instant::ZERO, Mode::Guided).poll(Instant::ZERO, &telemetry, t));
        assert_eq!(progress, Progress::Done);
    }

    #[test]
    fn a_heartbeat_before_the_request_is_no_proof_while_another_mode_is_pending() {
        let mut job = SetMode::new(Instant::ZERO, Mode::Guided).proved_after(Instant::ZERO);
        let mut telemetry = Telemetry { mode_number: Some(Mode::Guided.number()), ..Telemetry::default() };
        for (received_ms, ms, frames, expected) in [
            (0, 10, 1, Progress::Pending),
            // It left before the request came.
            (20, 30, 0, Progress::Pending),
            (1_000, 1_000, 0, Progress::Done),
        ] {
            telemetry.heartbeat_at = Some(Instant::from_millis(received_ms));
            let mut progress = Progress::Pending;
            let messages = sent(|t| progress = job.poll(Instant::from_millis(ms), &telemetry, t));
            assert_eq!((messages.len(), progress), (frames, expected), "{ms} ms");
        }
    }

    #[test]
    fn a_stop_is_repeated_without_end() {
        let mut job = SetMode::insist(Instant::ZERO, Mode::Brake);
        let mut frames = 0;
        for s in 0..600 {
            frames += sent(|t| {
                assert_eq!(job.poll(Instant::from_secs(s), &Telemetry::default(), t), Progress::Pending);
            })
            .len();
        }
        assert!(frames >= 300, "{frames}");
    }
}
