//! Upload with proof: sent item by item as the autopilot requests them, then read back and compared.

// ArduCopter 3.5.7 sends MISSION_REQUEST, which MAVLink has deprecated since.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant};

use super::reader::{ListReader, Reply};
use super::{FIRST_WAYPOINT, HeldHash, Item, ItemList, Items, first_of};
use crate::dialect::{MISSION_COUNT_DATA, MavMessage, MavMissionResult, MavMissionType};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};

/// Writes a mission, a fence or rally points to the autopilot.
#[derive(Clone, Debug)]
pub struct Upload {
    items: Items,
    transfer: Transfer,
}

/// An upload whose items are handed in with every call, the same ones until it ends.
#[derive(Clone, Debug)]
pub struct Transfer {
    kind: MavMissionType,
    retry: Retry,
    /// Every step may start again; the whole has a limit.
    give_up_at: Instant,
    /// Item that the autopilot requested and that is not sent yet.
    wanted: Option<u16>,
    /// The last item has left: from now on an acknowledgement means this upload.
    last_sent: bool,
    /// Reads back what was acknowledged.
    reader: Option<ListReader>,
    /// Of the waypoints that were read back.
    held: HeldHash,
    failed: Option<Failure>,
}

/// Repeating too soon makes ArduCopter start over; it repeats its own request each second.
const PERIOD: Duration = Duration::from_millis(1_500);
const TRIES: u8 = 5;
/// 112 items at 57 600 baud take 10 s; a line that loses half needs a few times that.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
/// An aircraft that is to start stands meanwhile.
const GIVE_UP_COMPARING: Duration = Duration::from_secs(90);
/// More items take longer.
const GIVE_UP_AFTER_EACH_MS: u64 = 500;

impl Upload {
    /// Sends and reads back a mission.
    pub fn new(now: Instant, items: Items) -> Self {
        Self::of_kind(now, MavMissionType::MAV_MISSION_TYPE_MISSION, items)
    }
    /// Sends and reads back a list of this kind: fence and rally points where the firmware takes them so
    /// ([`crate::identity::Firmware::has_fence_missions`]).
    pub fn of_kind(now: Instant, kind: MavMissionType, items: Items) -> Self {
        Self { transfer: Transfer::of_kind(now, kind, items.len()), items }
    }
    /// When it wants polling.
    pub fn due(&self) -> Instant {
        self.transfer.due()
    }
    /// Takes the autopilot's side of the transfer.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        self.transfer.on_message(now, message, &self.items);
    }
    /// Sends when due; done when every item read back is the one that was sent.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        self.transfer.poll(now, &self.items, transmit)
    }
}

impl Transfer {
    /// Of a mission of so many items.
    pub fn new(now: Instant, items: usize) -> Self {
        Self::of_kind(now, MavMissionType::MAV_MISSION_TYPE_MISSION, items)
    }
    /// Of a mission that the autopilot is to hold already: it is read and compared, and nothing is sent.
    pub fn comparing(now: Instant, items: usize) -> Self {
        let transfer = Self::new(now, items);
        let give_up_at = now + GIVE_UP_COMPARING;
        Self { reader: Some(ListReader::new(now, transfer.kind)), give_up_at, ..transfer }
    }
    fn of_kind(now: Instant, kind: MavMissionType, items: usize) -> Self {
        let each = Duration::from_millis(items as u64 * GIVE_UP_AFTER_EACH_MS);
        Self {
            kind,
            retry: Retry::new(now, PERIOD, TRIES),
            give_up_at: now + GIVE_UP_AFTER.max(each),
            wanted: None,
            last_sent: false,
            reader: None,
            held: HeldHash::default(),
            failed: None,
        }
    }
    /// Once it is done: what distinguishes the route that the autopilot holds.
    pub fn held(&self) -> u64 {
        self.held.value()
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        match &self.reader {
            _ if self.wanted.is_some() || self.failed.is_some() => Instant::ZERO,
            Some(reader) => reader.due(),
            None => self.retry.due(),
        }
    }

    /// Takes the autopilot's side of the transfer.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage, items: &impl ItemList) {
        if let Some(reader) = &mut self.reader {
            match reader.on_message(now, message) {
                // Late answers to the sending, or to a request that was repeated.
                Reply::Nothing | Reply::Refused(_) => {}
                Reply::Count { count, .. } if usize::from(count) == items.count() => {
                    // The second count answers a repeated request.
                    if !reader.is_reading() {
                        reader.read_from(now, first_of(self.kind), count);
                    }
                }
                Reply::Count { count, .. } => self.failed = Some(Failure::Different { seq: count }),
                Reply::Item(m) => {
                    let found = Item::of(m);
                    if !items.item(usize::from(m.seq)).is_some_and(|item| item.is_held_as(&found)) {
                        self.failed = Some(Failure::Different { seq: m.seq });
                    }
                    if let Some(index) = m.seq.checked_sub(FIRST_WAYPOINT) {
                        self.held.add_item(usize::from(index), &found);
                    }
                }
            }
            return;
        }
        match message {
            MavMessage::MISSION_REQUEST(r) if r.mission_type == self.kind => self.wanted = Some(r.seq),
            MavMessage::MISSION_REQUEST_INT(r) if r.mission_type == self.kind => self.wanted = Some(r.seq),
            MavMessage::MISSION_ACK(ack) if ack.mission_type == self.kind => match ack.mavtype {
                MavMissionResult::MAV_MISSION_ACCEPTED | MavMissionResult::MAV_MISSION_ERROR
                    if self.last_sent =>
                {
                    self.reader = Some(ListReader::new(now, self.kind));
                }
                // A late acknowledgement of an upload before this one, or of an item that came twice: the
                // autopilot continues its requests.
                MavMissionResult::MAV_MISSION_ACCEPTED | MavMissionResult::MAV_MISSION_INVALID_SEQUENCE => {}
                // It no longer waits: from the beginning.
                MavMissionResult::MAV_MISSION_OPERATION_CANCELLED => {
                    self.retry = Retry::new(now, PERIOD, TRIES);
                }
                result => {
                    self.failed = Some(Failure::Refused { what: "the mission", result: result as u8 });
                }
            },
            _ => {}
        }
    }

    /// Sends when due; done when every item read back is the one that was sent.
    pub fn poll(&mut self, now: Instant, items: &impl ItemList, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        if let Some(reader) = &mut self.reader
            && reader.is_complete()
        {
            reader.acknowledge(transmit);
            return Progress::Done;
        }
        if now >= self.give_up_at {
            return Progress::Failed(Failure::NoEffect { what: "the mission" });
        }
        if let Some(reader) = &mut self.reader {
            return match reader.poll(now, transmit) {
                Ok(()) => Progress::Pending,
                Err(failure) => Progress::Failed(failure),
            };
        }
        if let Some(seq) = self.wanted.take() {
            if let Some(item) = items.item(usize::from(seq)) {
                let item = item.encode(seq, self.kind, transmit.system_id);
                let _ = transmit.send(&MavMessage::MISSION_ITEM_INT(item));
                self.last_sent |= usize::from(seq) + 1 == items.count();
                // The transfer moves: its silence is counted from here.
                self.retry = Retry::new(now + PERIOD, PERIOD, TRIES);
            }
            return Progress::Pending;
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        // An empty list ends with the acknowledgement of its count.
        self.last_sent = items.count() == 0;
        let _ = transmit.send(&MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
            count: items.count() as u16,
            target_system: transmit.system_id,
            target_component: AUTOPILOT_COMPONENT_ID,
            mission_type: self.kind,
            opaque_id: 0,
        }));
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::items_of;
    use super::*;
    use crate::dialect::{MISSION_ACK_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_DATA};
    use crate::job::testing::sent;
    use crate::target::RelativePosition;
    use std::vec::Vec;

    fn route() -> Vec<RelativePosition> {
        (0..5)
            .map(|i| RelativePosition {
                latitude_e7: 394_825_940 + i * 9,
                longitude_e7: -3_462_650,
                height_mm: 20_129,
            })
            .collect()
    }

    /// An autopilot that loses `lose` sixteenths of its answers and may corrupt an item.
    fn transfer(lose: u64, corrupt: Option<u16>) -> (Progress, Instant) {
        let items = items_of(route().into_iter()).unwrap();
        let mut upload = Upload::new(Instant::ZERO, items);
        let mut stored: Vec<MISSION_ITEM_INT_DATA> = Vec::new();
        let (mut answers, mut requested_at) = (0, None);
        for ms in (0..70_000).step_by(10) {
            let now = Instant::from_millis(ms);
            let mut progress = Progress::Pending;
            // It repeats its request each second.
            if requested_at.is_some_and(|at| now.since(at) >= Duration::from_secs(1)) && stored.len() < 7 {
                requested_at = Some(now);
                let seq = stored.len() as u16;
                upload.on_message(
                    now,
                    &MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA { seq, ..Default::default() }),
                );
            }
            for message in sent(|t| progress = upload.poll(now, t)) {
                let mut answer = match message {
                    MavMessage::MISSION_COUNT(_) => {
                        stored.clear();
                        requested_at = Some(now);
                        Some(MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA {
                            seq: 0,
                            ..Default::default()
                        }))
                    }
                    MavMessage::MISSION_ITEM_INT(mut item) => {
                        let next = item.seq + 1;
                        item.z = libm::truncf(item.z * 100.0 + 0.5) / 100.0; // centimetres
                        if Some(item.seq) == corrupt {
                            item.x += 1;
                        }
                        requested_at = Some(now);
                        if usize::from(item.seq) == stored.len() {
                            stored.push(item);
                        }
                        Some(if next == 7 {
                            MavMessage::MISSION_ACK(MISSION_ACK_DATA::default())
                        } else {
                            MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA {
                                seq: next,
                                ..Default::default()
                            })
                        })
                    }
                    MavMessage::MISSION_REQUEST_LIST(_) => {
                        Some(MavMessage::MISSION_COUNT(MISSION_COUNT_DATA { count: 7, ..Default::default() }))
                    }
                    MavMessage::MISSION_REQUEST_INT(r) => {
                        let item = stored.iter().rev().find(|i| i.seq == r.seq).unwrap();
                        Some(MavMessage::MISSION_ITEM_INT(item.clone()))
                    }
                    _ => None,
                };
                answers += 1;
                // A fixed scramble, so that no rhythm of the transfer meets a rhythm of the losses.
                if (answers as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 & 15 < lose {
                    answer = None;
                }
                if let Some(answer) = answer {
                    upload.on_message(now, &answer);
                }
            }
            if progress != Progress::Pending {
                return (progress, now);
            }
        }
        (Progress::Pending, Instant::from_secs(70))
    }

    #[test]
    fn an_upload_is_done_when_the_items_read_back_are_equal() {
        assert_eq!(transfer(0, None).0, Progress::Done);
        assert_eq!(transfer(0, Some(3)).0, Progress::Failed(Failure::Different { seq: 3 }));
    }

    #[test]
    fn lost_answers_are_requested_again() {
        for lose in 1..7 {
            assert_eq!(transfer(lose, None).0, Progress::Done, "{lose} of 16 answers lost");
        }
        assert_eq!(transfer(16, None).0, Progress::Failed(Failure::NoEffect { what: "the mission" }));
    }

    #[test]
    fn acknowledgements_that_are_late_repeated_or_out_of_order_prove_nothing() {
        let ack = |mavtype| MavMessage::MISSION_ACK(MISSION_ACK_DATA { mavtype, ..Default::default() });
        let request = |seq| MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA { seq, ..Default::default() });
        let accepted = MavMissionResult::MAV_MISSION_ACCEPTED;
        let mut job = Upload::new(Instant::ZERO, items_of(route().into_iter()).unwrap());
        let mut now = Instant::ZERO;
        let mut step = |job: &mut Upload, received: Option<MavMessage>| {
            now = now + Duration::from_millis(10);
            if let Some(message) = received {
                job.on_message(now, &message);
            }
            sent(|t| assert_eq!(job.poll(now, t), Progress::Pending))
        };
        assert!(matches!(step(&mut job, None)[..], [MavMessage::MISSION_COUNT(_)]));
        // The acknowledgement of an upload before this one: nothing of this one has left.
        assert!(step(&mut job, Some(ack(accepted))).is_empty());
        for seq in [0, 1, 1, 0, 2, 3, 4, 5, 6] {
            let [MavMessage::MISSION_ITEM_INT(item)] = &step(&mut job, Some(request(seq)))[..] else {
                panic!("item {seq} is not sent");
            };
            assert_eq!(item.seq, seq);
            // Its answer to an item that came twice.
            let twice = ack(MavMissionResult::MAV_MISSION_INVALID_SEQUENCE);
            assert!(step(&mut job, Some(twice)).is_empty());
        }
        // An item that this mission does not have is not sent.
        assert!(step(&mut job, Some(request(7))).is_empty());
        assert!(matches!(step(&mut job, Some(ack(accepted)))[..], [MavMessage::MISSION_REQUEST_LIST(_)]));
        assert!(step(&mut job, Some(ack(accepted))).is_empty(), "the same once more");
        let denied = ack(MavMissionResult::MAV_MISSION_NO_SPACE);
        let mut job = Upload::new(Instant::ZERO, items_of(route().into_iter()).unwrap());
        job.on_message(Instant::ZERO, &denied);
        let failure = Failure::Refused { what: "the mission", result: 4 };
        sent(|t| assert_eq!(job.poll(Instant::ZERO, t), Progress::Failed(failure)));
    }
}
