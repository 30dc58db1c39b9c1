//! One line in the log for datagrams that do not leave, however many they are.

use wingbeat_geo::{Duration, Instant};

use crate::SendError;

/// Without another failure for so long, datagrams leave again.
const QUIET: Duration = Duration::from_secs(10);

/// Datagrams that did not leave since the last line about them.
#[derive(Clone, Debug, Default)]
pub struct Outage {
    /// Names of the reasons that were reported.
    reported: Vec<&'static str>,
    lost: u64,
    last: Option<Instant>,
}

impl Outage {
    /// A datagram did not leave. The line to log, where this reason has not been reported since datagrams last left. A
    /// radio that is down has reported itself.
    pub fn failed(&mut self, now: Instant, error: &SendError) -> Option<String> {
        if *error == SendError::Down {
            return None;
        }
        (self.lost, self.last) = (self.lost + 1, Some(now));
        let is_new = !self.reported.contains(&error.name());
        is_new.then(|| {
            self.reported.push(error.name());
            format!("datagrams do not leave: {error}; counted as {}", error.name())
        })
    }

    /// A datagram left. The line to log, where none has failed for ten seconds and some had before.
    pub fn left(&mut self, now: Instant) -> Option<String> {
        self.last.filter(|last| now.since(*last) >= QUIET)?;
        let Self { lost, .. } = std::mem::take(self);
        Some(format!("datagrams leave again; {lost} did not"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_reported_once_until_datagrams_leave_again() {
        let (mut outage, mut lines) = (Outage::default(), vec![]);
        let at = Instant::from_millis;
        for ms in (0..5_000).step_by(20) {
            // Every other one leaves.
            lines.extend(outage.failed(at(ms), &SendError::Busy));
            lines.extend(outage.left(at(ms + 10)));
            lines.extend(outage.failed(at(ms), &SendError::Down));
        }
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("queue is full") && lines[0].contains("radio_busy"), "{lines:?}");
        assert!(outage.failed(at(5_000), &SendError::Refused("ENOMEM".into())).is_some());
        assert_eq!(outage.left(at(14_999)), None);
        assert_eq!(outage.left(at(15_000)).as_deref(), Some("datagrams leave again; 251 did not"));
        assert_eq!(outage.left(at(60_000)), None);
        assert!(outage.failed(at(60_001), &SendError::Busy).is_some());
    }
}
