//! Mission upload with proof: sent item by item as the autopilot asks for them, then read back and
//! compared (<https://mavlink.io/en/services/mission.html>).
//!
//! ArduCopter keeps its home in item 0, so the mission proper begins at 1 and item 0 is not compared.
//! It stores altitudes in centimetres.

// ArduCopter 3.5.7 asks with MISSION_REQUEST, which MAVLink has deprecated since.
#![allow(deprecated)]

use sha2::{Digest, Sha256};
use wingbeat_geo::{Duration, Instant};

use crate::dialect::{
    MISSION_ACK_DATA, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_INT_DATA,
    MISSION_REQUEST_LIST_DATA, MavCmd, MavFrame, MavMessage, MavMissionResult, MavMissionType,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};
use crate::target::Place;

/// Items in one mission: home, take-off and 58 waypoints.
pub const ITEMS_MAX: usize = 60;

/// What an item asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MAV_CMD_NAV_WAYPOINT.
    Waypoint,
    /// MAV_CMD_NAV_TAKEOFF.
    TakeOff,
}

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What.
    pub kind: Kind,
    /// Where.
    pub place: Place,
}

/// A mission as the autopilot stores it; index 0 is home.
pub type Items = heapless::Vec<Item, ITEMS_MAX>;

/// The items of a route: home, a take-off to the height of the first waypoint, the waypoints.
///
/// # Errors
/// More waypoints than fit; the number that was found.
pub fn items_of(route: impl ExactSizeIterator<Item = Place> + Clone) -> Result<Items, usize> {
    let found = route.len();
    let mut items = Items::new();
    let first = route.clone().next().unwrap_or(Place { latitude_e7: 0, longitude_e7: 0, height_mm: 0 });
    for item in [Item { kind: Kind::Waypoint, place: first }, Item { kind: Kind::TakeOff, place: first }] {
        items.push(item).map_err(|_| found)?;
    }
    for place in route {
        items.push(Item { kind: Kind::Waypoint, place }).map_err(|_| found)?;
    }
    Ok(items)
}

/// First eight bytes of the SHA-256 over latitude, longitude and height of every place: what an
/// aircraft holds is what was sent if and only if the hashes agree.
pub fn hash(route: impl Iterator<Item = Place>) -> u64 {
    let mut sha = Sha256::new();
    for place in route {
        sha.update(place.latitude_e7.to_be_bytes());
        sha.update(place.longitude_e7.to_be_bytes());
        sha.update(place.height_mm.to_be_bytes());
    }
    let digest = sha.finalize();
    u64::from_be_bytes(core::array::from_fn(|i| digest[i]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// MISSION_COUNT sent; the autopilot asks for items.
    Sending,
    /// MISSION_REQUEST_LIST sent.
    Counting,
    /// Reading item by item.
    Reading { seq: u16 },
}

/// Wants a mission in the autopilot.
#[derive(Clone, Debug)]
pub struct Upload {
    items: Items,
    phase: Phase,
    retry: Retry,
    /// Every step may start anew; the whole may not take for ever.
    give_up_at: Instant,
    /// Item that the autopilot asked for and that is not sent yet.
    wanted: Option<u16>,
    refused: Option<MavMissionResult>,
    different: Option<u16>,
    complete: bool,
}

/// Repeating too soon makes ArduCopter start over; it asks again itself each second.
const PERIOD: Duration = Duration::from_millis(1_500);
const TRIES: u8 = 5;
/// 60 items at 57 600 baud take 3 s; a line that loses half needs a few times that.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

impl Upload {
    /// Sends and reads back `items`.
    pub fn new(now: Instant, items: Items) -> Self {
        Self {
            items,
            phase: Phase::Sending,
            retry: Retry::new(now, PERIOD, TRIES),
            give_up_at: now + GIVE_UP_AFTER,
            wanted: None,
            refused: None,
            different: None,
            complete: false,
        }
    }
    /// When it wants polling.
    pub fn due(&self) -> Instant {
        if self.wanted.is_some() { Instant::ZERO } else { self.retry.due() }
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        self.phase = phase;
        self.retry = Retry::new(now, PERIOD, TRIES);
    }

    /// Hears the autopilot's side of the transfer.
    pub fn hear(&mut self, now: Instant, message: &MavMessage) {
        match (message, self.phase) {
            (MavMessage::MISSION_REQUEST(r), Phase::Sending) => self.wanted = Some(r.seq),
            (MavMessage::MISSION_REQUEST_INT(r), Phase::Sending) => self.wanted = Some(r.seq),
            (MavMessage::MISSION_ACK(ack), Phase::Sending) => match ack.mavtype {
                MavMissionResult::MAV_MISSION_ACCEPTED => self.enter(now, Phase::Counting),
                result => self.refused = Some(result),
            },
            (MavMessage::MISSION_COUNT(count), Phase::Counting) => {
                if usize::from(count.count) == self.items.len() {
                    self.enter(now, Phase::Reading { seq: 1 });
                } else {
                    self.different = Some(count.count);
                }
            }
            (MavMessage::MISSION_ITEM_INT(item), Phase::Reading { seq }) if item.seq == seq => {
                let Some(sent) = self.items.get(usize::from(seq)) else { return };
                let same_kind = item.command == command(sent.kind);
                let centimetres = |m: f32| libm::roundf(m * 100.0) as i32;
                let same_place = (item.x, item.y, centimetres(item.z))
                    == (
                        sent.place.latitude_e7,
                        sent.place.longitude_e7,
                        centimetres(sent.place.height_mm as f32 * 1e-3),
                    );
                if !same_kind || !same_place {
                    self.different = Some(seq);
                } else if usize::from(seq) + 1 == self.items.len() {
                    self.complete = true;
                } else {
                    self.enter(now, Phase::Reading { seq: seq + 1 });
                }
            }
            _ => {}
        }
    }

    /// Sends when due; done when every item read back is the one that was sent.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(result) = self.refused {
            return Progress::Failed(Failure::Refused { what: "the mission", result: result as u8 });
        }
        if let Some(seq) = self.different {
            return Progress::Failed(Failure::Different { seq });
        }
        if now >= self.give_up_at && !self.complete {
            return Progress::Failed(Failure::NoEffect { what: "the mission" });
        }
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let mission_type = MavMissionType::MAV_MISSION_TYPE_MISSION;
        if self.complete {
            let _ = transmit.send(&MavMessage::MISSION_ACK(MISSION_ACK_DATA {
                target_system,
                target_component,
                mavtype: MavMissionResult::MAV_MISSION_ACCEPTED,
                mission_type,
                opaque_id: 0,
            }));
            return Progress::Done;
        }
        if let Some(seq) = self.wanted.take() {
            if let Some(item) = self.items.get(usize::from(seq)) {
                let _ = transmit.send(&MavMessage::MISSION_ITEM_INT(encode(item, seq, target_system)));
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
        let message = match self.phase {
            Phase::Sending => MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                count: self.items.len() as u16,
                target_system,
                target_component,
                mission_type,
                opaque_id: 0,
            }),
            Phase::Counting => MavMessage::MISSION_REQUEST_LIST(MISSION_REQUEST_LIST_DATA {
                target_system,
                target_component,
                mission_type,
            }),
            Phase::Reading { seq } => MavMessage::MISSION_REQUEST_INT(MISSION_REQUEST_INT_DATA {
                seq,
                target_system,
                target_component,
                mission_type,
            }),
        };
        let _ = transmit.send(&message);
        Progress::Pending
    }
}

fn command(kind: Kind) -> MavCmd {
    match kind {
        Kind::Waypoint => MavCmd::MAV_CMD_NAV_WAYPOINT,
        Kind::TakeOff => MavCmd::MAV_CMD_NAV_TAKEOFF,
    }
}

fn encode(item: &Item, seq: u16, target_system: u8) -> MISSION_ITEM_INT_DATA {
    MISSION_ITEM_INT_DATA {
        param1: 0.0,
        param2: 0.0,
        param3: 0.0,
        param4: 0.0,
        x: item.place.latitude_e7,
        y: item.place.longitude_e7,
        z: item.place.height_mm as f32 * 1e-3,
        seq,
        command: command(item.kind),
        target_system,
        target_component: AUTOPILOT_COMPONENT_ID,
        frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
        current: 0,
        autocontinue: 1,
        mission_type: MavMissionType::MAV_MISSION_TYPE_MISSION,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::MISSION_REQUEST_DATA;
    use crate::job::testing::sent;
    use std::vec::Vec;

    fn route() -> Vec<Place> {
        (0..5)
            .map(|i| Place { latitude_e7: 394_825_940 + i * 9, longitude_e7: -3_462_650, height_mm: 20_129 })
            .collect()
    }

    /// An autopilot of whose answers `lose` sixteenths are lost, and that may corrupt what it stores.
    fn transfer(lose: u64, corrupt: Option<u16>) -> (Progress, Instant) {
        let items = items_of(route().into_iter()).unwrap();
        let mut upload = Upload::new(Instant::ZERO, items);
        let mut stored: Vec<MISSION_ITEM_INT_DATA> = Vec::new();
        let (mut answers, mut asked_at) = (0, None);
        for ms in (0..70_000).step_by(10) {
            let now = Instant::from_millis(ms);
            let mut progress = Progress::Pending;
            // It asks again each second for the item that it waits for.
            if asked_at.is_some_and(|at| now.since(at) >= Duration::from_secs(1)) && stored.len() < 7 {
                asked_at = Some(now);
                let seq = stored.len() as u16;
                upload.hear(
                    now,
                    &MavMessage::MISSION_REQUEST(MISSION_REQUEST_DATA { seq, ..Default::default() }),
                );
            }
            for message in sent(|t| progress = upload.poll(now, t)) {
                let mut answer = match message {
                    MavMessage::MISSION_COUNT(_) => {
                        stored.clear();
                        asked_at = Some(now);
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
                        asked_at = Some(now);
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
                    upload.hear(now, &answer);
                }
            }
            if progress != Progress::Pending {
                return (progress, now);
            }
        }
        (Progress::Pending, Instant::from_secs(70))
    }

    #[test]
    fn what_is_read_back_is_what_was_sent() {
        assert_eq!(transfer(0, None).0, Progress::Done);
        assert_eq!(transfer(0, Some(3)).0, Progress::Failed(Failure::Different { seq: 3 }));
    }

    #[test]
    fn lost_answers_are_asked_for_again() {
        for lose in 1..7 {
            assert_eq!(transfer(lose, None).0, Progress::Done, "{lose} of 16 answers lost");
        }
        assert_eq!(transfer(16, None).0, Progress::Failed(Failure::NoEffect { what: "the mission" }));
    }

    #[test]
    fn the_hash_tells_missions_apart() {
        let one = hash(route().into_iter());
        let mut other = route();
        other[4].height_mm += 1;
        assert_ne!(one, hash(other.into_iter()));
        assert_eq!(one, hash(route().into_iter()));
    }
}
