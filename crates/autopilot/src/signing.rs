//! Transfer of the signing key to the autopilot: SETUP_SIGNING, proved by its first frame that is signed by it
//! (<https://mavlink.io/en/guide/message_signing.html#secret-key-management>).
//!
//! The key crosses the link in the clear, so this is done once, over a cable, and only on purpose. It is
//! never done in flight: an autopilot that does not take the key would no longer accept our frames.

use wingbeat_geo::{Duration, Instant};

use crate::codec::signing::{Key, Timestamp};
use crate::dialect::{MavMessage, SETUP_SIGNING_DATA};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};
use crate::telemetry::Telemetry;

/// ArduCopter 4.6.2 signs every frame within a second of it.
const PERIOD: Duration = Duration::from_secs(2);

/// Makes the autopilot sign with our key.
#[derive(Clone, Debug)]
pub struct SetupSigning {
    key: Key,
    retry: Retry,
}

impl SetupSigning {
    /// Tries three times: the message has no acknowledgement.
    pub fn new(now: Instant, key: Key) -> Self {
        Self { key, retry: Retry::new(now, PERIOD, 3) }
    }
    /// When [`SetupSigning::poll`] is due.
    pub fn due(&self) -> Instant {
        self.retry.due()
    }
    /// Sends when due; done when a frame that is signed by the key was `accepted`. Armed motors end it.
    pub fn poll(
        &mut self,
        now: Instant,
        telemetry: &Telemetry,
        accepted: bool,
        time: Timestamp,
        transmit: &mut Transmit<'_>,
    ) -> Progress {
        if accepted {
            return Progress::Done;
        }
        if telemetry.armed {
            return Progress::Failed(Failure::Armed { what: "handing over the signing key" });
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => {}
            Ok(true) => {
                // No room is a lost frame: the next try replaces it.
                let _ = transmit.send(&MavMessage::SETUP_SIGNING(SETUP_SIGNING_DATA {
                    initial_timestamp: time.units(),
                    target_system: transmit.system_id,
                    target_component: AUTOPILOT_COMPONENT_ID,
                    secret_key: self.key.bytes(),
                }));
            }
        }
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::sent;

    const KEY: Key = Key::new([7; 32]);

    #[test]
    fn sends_the_key_until_a_signed_frame_comes() {
        let (telemetry, time) = (Telemetry::default(), Timestamp::from_units(99));
        let mut job = SetupSigning::new(Instant::ZERO, KEY);
        let mut progress = Progress::Pending;
        let messages = sent(|t| progress = job.poll(Instant::ZERO, &telemetry, false, time, t));
        assert!(
            matches!(&messages[..], [MavMessage::SETUP_SIGNING(m)] if m.secret_key == [7; 32] && m.initial_timestamp == 99)
        );
        assert_eq!(progress, Progress::Pending);
        sent(|t| progress = job.poll(Instant::from_secs(1), &telemetry, true, time, t));
        assert_eq!(progress, Progress::Done);
    }

    #[test]
    fn fails_without_a_signed_frame_and_never_sends_in_flight() {
        let mut telemetry = Telemetry::default();
        let mut job = SetupSigning::new(Instant::ZERO, KEY);
        let (mut frames, mut progress) = (0, Progress::Pending);
        for s in 0..=6 {
            let now = Instant::from_secs(s);
            frames += sent(|t| progress = job.poll(now, &telemetry, false, Timestamp::default(), t)).len();
        }
        assert_eq!((frames, progress), (3, Progress::Failed(Failure::Silent { tries: 3 })));
        telemetry.armed = true;
        let mut job = SetupSigning::new(Instant::ZERO, KEY);
        let messages =
            sent(|t| progress = job.poll(Instant::ZERO, &telemetry, false, Timestamp::default(), t));
        assert!(messages.is_empty());
        assert_eq!(progress, Progress::Failed(Failure::Armed { what: "handing over the signing key" }));
    }
}
