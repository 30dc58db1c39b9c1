//! Whether this aircraft receives others and is received by them, as far as beacons show it. Neither needs a byte more in a beacon:
//! an aircraft that names us in its conflict has received us, and one that flies at us while we stand has not.

use wingbeat_geo::{Duration, Instant};

use super::Mbcap;
use super::neighbours::Neighbour;
use super::silent::SILENT_AFTER;

/// Evidence that is older says nothing of the present.
const HOLDS_FOR: Duration = Duration::from_secs(60);
/// Aircraft that fall silent within this time of each other have one cause: our receiver.
const TOGETHER: Duration = Duration::from_secs(5);

/// The last evidence of either kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Another named this aircraft in its conflict.
    acknowledged_at: Option<Instant>,
    /// Another flew at this aircraft, which stood.
    ignored_at: Option<Instant>,
    /// The judgement at the last check.
    pub(super) radio: Radio,
}

/// The state of the radio towards the others; `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Radio {
    /// Whether others are received.
    pub(super) receives: Option<bool>,
    /// Whether others receive this aircraft.
    pub(super) is_received: Option<bool>,
}

impl Evidence {
    pub(super) fn acknowledged(&mut self, now: Instant) {
        self.acknowledged_at = Some(now);
    }
    pub(super) fn ignored(&mut self, now: Instant) {
        self.ignored_at = Some(now);
    }
}

impl Mbcap {
    /// Returns the state of the radio, judged by the beacons of others.
    pub(super) fn judge_radio(&self, now: Instant) -> Radio {
        let holds = |at: Option<Instant>| at.filter(|at| now.since(*at) <= HOLDS_FOR);
        let evidence = &self.evidence;
        let is_received = match (holds(evidence.acknowledged_at), holds(evidence.ignored_at)) {
            (Some(acknowledged), Some(ignored)) => Some(acknowledged > ignored),
            (Some(_), None) => Some(true),
            (None, Some(_)) => Some(false),
            (None, None) => None,
        };
        Radio { receives: self.receives(now), is_received }
    }

    /// A single aircraft that falls silent may have lost its own radio.
    fn receives(&self, now: Instant) -> Option<bool> {
        let is_received = |n: &Neighbour| n.is_recent(now, self.config.prediction_lasts());
        if self.neighbours.by_priority().any(is_received) {
            return Some(true);
        }
        let fell_silent = self
            .neighbours
            .by_priority()
            .filter(|n| n.is_silent(now, SILENT_AFTER) && n.is_recent(now, HOLDS_FOR) && !n.beacon.landing);
        let (count, first, last) = fell_silent
            .fold((0, Instant::NEVER, Instant::ZERO), |(count, first, last), n| {
                (count + 1, first.min(n.received_at()), last.max(n.received_at()))
            });
        let falls_deaf = count >= 2 && last.since(first) <= TOGETHER;
        // What fell silent long ago proves nothing more, and a beacon alone shows that it receives again.
        let was_deaf = self.evidence.radio.receives == Some(false);
        (falls_deaf || was_deaf).then_some(false)
    }
}
