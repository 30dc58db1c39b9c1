//! Reads a list item by item: the count, then the items, a few requests ahead of the answers, so that a
//! slow line is not idle.

use wingbeat_geo::{Duration, Instant};

use crate::dialect::{
    MISSION_ACK_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_INT_DATA, MISSION_REQUEST_LIST_DATA, MavMessage,
    MavMissionResult, MavMissionType,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Retry, Transmit};

use super::ITEMS_MAX;

/// Requests without an answer at a time: at 57600 baud one answer takes 9 ms, ArduCopter's loop 20 ms.
const WINDOW: usize = 4;
/// A request is repeated after this time.
const RESEND: Duration = Duration::from_millis(1_000);
/// Without anything new for this many times `RESEND` the reading fails.
const TRIES: u8 = 6;
const BITMAP_LEN: usize = ITEMS_MAX.div_ceil(32);

/// What a message brought.
pub(super) enum Reply<'a> {
    Nothing,
    Count { count: u16, opaque_id: u32 },
    Item(&'a MISSION_ITEM_INT_DATA),
    Refused(MavMissionResult),
}

#[derive(Clone, Debug)]
pub(super) struct ListReader {
    kind: MavMissionType,
    /// How many items there are, once that is known.
    count: Option<u16>,
    received: [u32; BITMAP_LEN],
    next: u16,
    /// Requests without an answer, with their time.
    open: heapless::Vec<(u16, Instant), WINDOW>,
    silence: Retry,
}

impl ListReader {
    pub(super) fn new(now: Instant, kind: MavMissionType) -> Self {
        Self {
            kind,
            count: None,
            received: [0; BITMAP_LEN],
            next: 0,
            open: heapless::Vec::new(),
            silence: Retry::new(now, RESEND, TRIES),
        }
    }

    /// Reads the items from `first` on, the count being known.
    pub(super) fn read_from(&mut self, now: Instant, first: u16, count: u16) {
        *self = Self { count: Some(count), next: first, ..Self::new(now, self.kind) };
    }

    pub(super) fn is_reading(&self) -> bool {
        self.count.is_some()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.count.is_some_and(|count| self.next >= count) && self.open.is_empty()
    }

    fn may_request(&self) -> bool {
        self.count.is_some_and(|count| self.next < count) && !self.open.is_full()
    }

    pub(super) fn due(&self) -> Instant {
        if self.may_request() || self.is_complete() {
            return Instant::ZERO;
        }
        self.open.iter().map(|(_, at)| *at + RESEND).fold(self.silence.due(), Instant::min)
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub(super) fn on_message<'a>(&mut self, now: Instant, message: &'a MavMessage) -> Reply<'a> {
        match message {
            MavMessage::MISSION_COUNT(m) if m.mission_type == self.kind => {
                Reply::Count { count: m.count, opaque_id: m.opaque_id }
            }
            MavMessage::MISSION_ITEM_INT(m) if m.mission_type == self.kind => {
                let Some(index) = self.open.iter().position(|(seq, _)| *seq == m.seq) else {
                    return Reply::Nothing;
                };
                self.open.swap_remove(index);
                self.silence = Retry::new(now + RESEND, RESEND, TRIES);
                let (index, bit) = (usize::from(m.seq) / 32, 1 << (m.seq % 32));
                let Some(bits) = self.received.get_mut(index).filter(|bits| **bits & bit == 0) else {
                    return Reply::Nothing;
                };
                *bits |= bit;
                Reply::Item(m)
            }
            MavMessage::MISSION_ACK(m)
                if m.mission_type == self.kind && m.mavtype != MavMissionResult::MAV_MISSION_ACCEPTED =>
            {
                Reply::Refused(m.mavtype)
            }
            _ => Reply::Nothing,
        }
    }

    /// Sends what is due.
    pub(super) fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), Failure> {
        if self.is_complete() {
            return Ok(());
        }
        let silent = self.silence.poll(now)?;
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let mission_type = self.kind;
        if self.count.is_none() {
            if silent {
                let _ = transmit.send(&MavMessage::MISSION_REQUEST_LIST(MISSION_REQUEST_LIST_DATA {
                    target_system,
                    target_component,
                    mission_type,
                }));
            }
            return Ok(());
        }
        let request = |seq| {
            MavMessage::MISSION_REQUEST_INT(MISSION_REQUEST_INT_DATA {
                seq,
                target_system,
                target_component,
                mission_type,
            })
        };
        for (seq, at) in self.open.iter_mut().filter(|(_, at)| now.since(*at) >= RESEND) {
            // No room is a lost frame: it is requested again.
            let _ = transmit.send(&request(*seq));
            *at = now;
        }
        while self.may_request() {
            let _ = transmit.send(&request(self.next));
            let _ = self.open.push((self.next, now));
            self.next += 1;
        }
        Ok(())
    }

    /// The acknowledgement that ends a transfer.
    pub(super) fn acknowledge(&self, transmit: &mut Transmit<'_>) {
        let _ = transmit.send(&MavMessage::MISSION_ACK(MISSION_ACK_DATA {
            target_system: transmit.system_id,
            target_component: AUTOPILOT_COMPONENT_ID,
            mavtype: MavMissionResult::MAV_MISSION_ACCEPTED,
            mission_type: self.kind,
            opaque_id: 0,
        }));
    }
}
