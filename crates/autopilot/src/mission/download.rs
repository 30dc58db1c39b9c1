//! Download of a mission, a fence or rally points, proved by a second count or a second reading.
//!
//! A ground station may change the list while it is read. 4.x numbers its lists (`opaque_id`), so the
//! count is requested again at the end; 3.5.7 does not, so there the items are read twice and compared. A
//! list that changed is read again.

use wingbeat_geo::{Duration, Instant};

use super::reader::{ListReader, Reply};
use super::{ITEMS_MAX, Item, Items};
use crate::dialect::{MavMessage, MavMissionResult, MavMissionType};
use crate::job::{Failure, Progress, Transmit};

/// Changes of the list during the download before it fails.
const CHANGES: u8 = 2;
const GIVE_UP_AFTER: Duration = Duration::from_secs(90);
/// More items take longer: they may be read twice.
const GIVE_UP_AFTER_EACH_MS: u64 = 750;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Items are stored.
    First,
    /// The count is requested again.
    Recount,
    /// Items are compared with those of the first pass.
    Second,
}

/// Reads what the autopilot holds.
#[derive(Clone, Debug)]
pub struct Download {
    kind: MavMissionType,
    reader: ListReader,
    items: Items,
    opaque_id: u32,
    pass: Pass,
    changes: u8,
    give_up_at: Instant,
    complete: bool,
    failed: Option<Failure>,
}

impl Download {
    /// Reads the mission.
    pub fn new(now: Instant) -> Self {
        Self::of_kind(now, MavMissionType::MAV_MISSION_TYPE_MISSION)
    }
    /// Reads a list of this kind.
    pub fn of_kind(now: Instant, kind: MavMissionType) -> Self {
        Self {
            kind,
            reader: ListReader::new(now, kind),
            items: Items::new(),
            opaque_id: 0,
            pass: Pass::First,
            changes: 0,
            give_up_at: now + GIVE_UP_AFTER,
            complete: false,
            failed: None,
        }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.complete || self.failed.is_some() { Instant::ZERO } else { self.reader.due() }
    }
    /// The items, once it is done; item 0 of a mission is home.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    fn start_over(&mut self, now: Instant) {
        self.changes += 1;
        if self.changes > CHANGES {
            self.failed = Some(Failure::Changed { what: "the mission" });
            return;
        }
        self.reader = ListReader::new(now, self.kind);
        self.items.clear();
        self.pass = Pass::First;
    }

    /// Takes the autopilot's side of the transfer.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        if self.complete || self.failed.is_some() {
            return;
        }
        match self.reader.on_message(now, message) {
            Reply::Nothing => {}
            // The list became shorter between count and item.
            Reply::Refused(_) if self.reader.is_reading() => self.start_over(now),
            // Late answers to the reading before.
            Reply::Refused(MavMissionResult::MAV_MISSION_INVALID_SEQUENCE) => {}
            Reply::Refused(result) => {
                self.failed = Some(Failure::Refused { what: "to read the mission", result: result as u8 });
            }
            Reply::Count { count, .. } if usize::from(count) > ITEMS_MAX => {
                let most = ITEMS_MAX as u16;
                self.failed = Some(Failure::TooMany { what: "mission items", found: count, most });
            }
            Reply::Count { count, opaque_id } => self.on_count(now, count, opaque_id),
            Reply::Item(m) => match (self.pass, self.items.get_mut(usize::from(m.seq))) {
                (Pass::First, Some(slot)) => *slot = Item::of(m),
                // The autopilot moves home.
                (Pass::Second, Some(_)) if m.seq < super::first_of(self.kind) => {}
                (Pass::Second, Some(slot)) if *slot != Item::of(m) => self.start_over(now),
                _ => {}
            },
        }
        if self.reader.is_complete() && self.failed.is_none() {
            match self.pass {
                Pass::First => {
                    (self.pass, self.reader) = (Pass::Recount, ListReader::new(now, self.kind));
                }
                Pass::Recount => {}
                Pass::Second => self.complete = true,
            }
        }
    }

    fn on_count(&mut self, now: Instant, count: u16, opaque_id: u32) {
        let same = usize::from(count) == self.items.len() && opaque_id == self.opaque_id;
        match self.pass {
            // A repeated request has two answers.
            Pass::First | Pass::Second if self.reader.is_reading() && same => {}
            Pass::First | Pass::Second if self.reader.is_reading() => self.start_over(now),
            Pass::First | Pass::Second => {
                self.opaque_id = opaque_id;
                let each = Duration::from_millis(u64::from(count) * GIVE_UP_AFTER_EACH_MS);
                self.give_up_at = self.give_up_at.max(now + each);
                let nothing = Item::command(crate::dialect::MavCmd::MAV_CMD_NAV_WAYPOINT, [0.0; 4]);
                // It fits: that was checked before.
                let _ = self.items.resize(usize::from(count), nothing);
                self.reader.read_from(now, 0, count);
            }
            Pass::Recount if !same => self.start_over(now),
            Pass::Recount if opaque_id != 0 || count == 0 => self.complete = true,
            Pass::Recount => {
                self.pass = Pass::Second;
                self.reader.read_from(now, 0, count);
            }
        }
    }

    /// Sends when due; done when the list is known and did not change.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        if self.complete {
            self.reader.acknowledge(transmit);
            return Progress::Done;
        }
        if now >= self.give_up_at {
            return Progress::Failed(Failure::NoEffect { what: "reading the mission" });
        }
        match self.reader.poll(now, transmit) {
            Ok(()) => Progress::Pending,
            Err(failure) => Progress::Failed(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::{MISSION_ACK_DATA, MISSION_COUNT_DATA};
    use crate::job::testing::sent;
    use crate::target::RelativePosition;
    use std::vec::Vec;

    fn items(count: usize) -> Vec<Item> {
        let position = |i| RelativePosition {
            latitude_e7: 394_825_940 + i,
            longitude_e7: -3_462_650,
            height_mm: 20_000,
        };
        (0..count as i32).map(|i| Item::waypoint(position(i))).collect()
    }

    /// An autopilot whose list is `held(number of the answer)`; every answer comes twice, and one in
    /// `lose` is lost.
    fn run(held: impl Fn(u32) -> (Vec<Item>, u32), lose: u32) -> (Progress, Vec<Item>, u32) {
        let mut job = Download::new(Instant::ZERO);
        let (mut progress, mut answers) = (Progress::Pending, 0);
        for ms in (0..100_000).step_by(20) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| progress = job.poll(now, t)) {
                answers += 1;
                let (list, opaque_id) = held(answers);
                let answer = match message {
                    MavMessage::MISSION_REQUEST_LIST(_) => MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                        count: list.len() as u16,
                        opaque_id,
                        ..Default::default()
                    }),
                    MavMessage::MISSION_REQUEST_INT(r) => match list.get(usize::from(r.seq)) {
                        Some(item) => {
                            let kind = MavMissionType::MAV_MISSION_TYPE_MISSION;
                            MavMessage::MISSION_ITEM_INT(item.encode(r.seq, kind, 1))
                        }
                        None => MavMessage::MISSION_ACK(MISSION_ACK_DATA {
                            mavtype: MavMissionResult::MAV_MISSION_INVALID_SEQUENCE,
                            ..Default::default()
                        }),
                    },
                    MavMessage::MISSION_ACK(_) => continue,
                    other => panic!("{other:?}"),
                };
                if lose == 0 || answers % lose != 0 {
                    job.on_message(now, &answer);
                    job.on_message(now, &answer);
                }
            }
            if progress != Progress::Pending {
                break;
            }
        }
        (progress, job.items().to_vec(), answers)
    }

    #[test]
    fn with_an_id_it_is_read_once_and_without_one_twice() {
        let (progress, read, answers) = run(|_| (items(20), 77), 0);
        assert_eq!((progress, read, answers), (Progress::Done, items(20), 23));
        let (progress, read, answers) = run(|_| (items(20), 0), 0);
        assert_eq!((progress, read, answers), (Progress::Done, items(20), 43));
        assert_eq!(run(|_| (Vec::new(), 0), 0).0, Progress::Done);
    }

    #[test]
    fn lost_and_duplicate_answers_change_nothing() {
        for lose in [2, 3, 7] {
            let (progress, read, _) = run(|_| (items(40), 0), lose);
            assert_eq!((progress, read), (Progress::Done, items(40)), "one in {lose} lost");
        }
        assert_eq!(run(|_| (items(3), 0), 1).0, Progress::Failed(Failure::Silent { tries: 6 }));
    }

    #[test]
    fn a_mission_that_changes_under_us_is_read_anew() {
        let moved = || {
            let mut list = items(20);
            list[3].latitude_e7 += 9;
            list
        };
        // Another position in the same number of items, without and with an id; fewer items; more.
        for change in [(moved(), 0), (moved(), 5), (items(8), 0), (items(30), 0)] {
            let (new, id) = change.clone();
            let held = |n| if n < 15 { (items(20), if id == 0 { 0 } else { 4 }) } else { (new.clone(), id) };
            let (progress, read, _) = run(held, 0);
            assert_eq!((progress, read.as_slice()), (Progress::Done, change.0.as_slice()));
        }
    }

    #[test]
    fn a_mission_that_keeps_changing_fails() {
        let (progress, ..) = run(|n| (items(20 + n as usize % 50), 0), 0);
        assert_eq!(progress, Progress::Failed(Failure::Changed { what: "the mission" }));
        let (progress, ..) = run(|_| (items(ITEMS_MAX + 1), 0), 0);
        let failure = Failure::TooMany { what: "mission items", found: 603, most: 602 };
        assert_eq!(progress, Progress::Failed(failure));
    }
}
