//! Clearing a list, choosing the current item, the end of a mission.

// MAVLink has replaced MISSION_SET_CURRENT by a command since; 3.5.7 supports only the message.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant};

use crate::dialect::{
    MISSION_CLEAR_ALL_DATA, MISSION_REQUEST_LIST_DATA, MISSION_SET_CURRENT_DATA, MavMessage,
    MavMissionResult, MavMissionType,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};

const PERIOD: Duration = Duration::from_millis(1_000);
const TRIES: u8 = 5;

/// Clears a list, proved by its count.
#[derive(Clone, Copy, Debug)]
pub struct Clear {
    kind: MavMissionType,
    retry: Retry,
    acknowledged: bool,
    empty: bool,
    failed: Option<Failure>,
}

impl Clear {
    /// Clears the mission, the fence or the rally points.
    pub fn new(now: Instant, kind: MavMissionType) -> Self {
        let retry = Retry::new(now, PERIOD, TRIES);
        Self { kind, retry, acknowledged: false, empty: false, failed: None }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.empty || self.failed.is_some() { Instant::ZERO } else { self.retry.due() }
    }
    /// Takes the acknowledgement and the count.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match message {
            MavMessage::MISSION_ACK(m) if m.mission_type == self.kind && !self.acknowledged => {
                if m.mavtype == MavMissionResult::MAV_MISSION_ACCEPTED {
                    (self.acknowledged, self.retry) = (true, Retry::new(now, PERIOD, TRIES));
                } else {
                    self.failed = Some(Failure::Refused { what: "clearing", result: m.mavtype as u8 });
                }
            }
            MavMessage::MISSION_COUNT(m) if m.mission_type == self.kind && self.acknowledged => {
                // Home alone is no mission.
                let least = super::first_of(self.kind);
                if m.count <= least {
                    self.empty = true;
                } else {
                    self.failed = Some(Failure::Different { seq: least });
                }
            }
            _ => {}
        }
    }
    /// Sends when due; done when nothing is left.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if self.empty {
            return Progress::Done;
        }
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let mission_type = self.kind;
        let _ = if self.acknowledged {
            transmit.send(&MavMessage::MISSION_REQUEST_LIST(MISSION_REQUEST_LIST_DATA {
                target_system,
                target_component,
                mission_type,
            }))
        } else {
            transmit.send(&MavMessage::MISSION_CLEAR_ALL(MISSION_CLEAR_ALL_DATA {
                target_system,
                target_component,
                mission_type,
            }))
        };
        Progress::Pending
    }
}

/// Makes an item the current one, proved by MISSION_CURRENT.
#[derive(Clone, Copy, Debug)]
pub struct SetCurrent {
    seq: u16,
    retry: Retry,
    requested: bool,
    found: Option<u16>,
    done: bool,
}

impl SetCurrent {
    /// Tries five times.
    pub fn new(now: Instant, seq: u16) -> Self {
        Self { seq, retry: Retry::new(now, PERIOD, TRIES), requested: false, found: None, done: false }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if self.done { Instant::ZERO } else { self.retry.due() }
    }
    /// Takes the number of the current item.
    pub fn on_message(&mut self, message: &MavMessage) {
        if let MavMessage::MISSION_CURRENT(m) = message
            && self.requested
        {
            (self.done, self.found) = (self.done || m.seq == self.seq, Some(m.seq));
        }
    }
    /// Sends when due.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if self.done {
            return Progress::Done;
        }
        match (self.retry.poll(now), self.found) {
            // It reports, but another item.
            (Err(_), Some(_)) => Progress::Failed(Failure::NoEffect { what: "another current item" }),
            (Err(silent), None) => Progress::Failed(silent),
            (Ok(false), _) => Progress::Pending,
            (Ok(true), _) => {
                self.requested = true;
                let _ = transmit.send(&MavMessage::MISSION_SET_CURRENT(MISSION_SET_CURRENT_DATA {
                    seq: self.seq,
                    target_system: transmit.system_id,
                    target_component: AUTOPILOT_COMPONENT_ID,
                }));
                Progress::Pending
            }
        }
    }
}

/// Whether a mission of `count` items has ended: its last item was reached, or the one before it where
/// the last lands the aircraft, and the aircraft is within `distance_m` of its last position.
pub fn is_ended(reached: Option<u16>, count: u16, last_lands: bool, away_m: f64, distance_m: f64) -> bool {
    let last = count.saturating_sub(if last_lands { 2 } else { 1 });
    last > 0 && reached.is_some_and(|reached| reached >= last) && away_m <= distance_m
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MISSION_ACK_DATA, MISSION_COUNT_DATA, MISSION_CURRENT_DATA};
    use crate::job::testing::sent;

    const MISSION: MavMissionType = MavMissionType::MAV_MISSION_TYPE_MISSION;

    fn clear(result: MavMissionResult, left: u16) -> Progress {
        let mut job = Clear::new(Instant::ZERO, MISSION);
        let mut progress = Progress::Pending;
        for s in 0..20 {
            let now = Instant::from_secs(s);
            for message in sent(|t| progress = job.poll(now, t)) {
                job.on_message(
                    now,
                    &match message {
                        MavMessage::MISSION_CLEAR_ALL(_) => MavMessage::MISSION_ACK(MISSION_ACK_DATA {
                            mavtype: result,
                            ..Default::default()
                        }),
                        _ => MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                            count: left,
                            ..Default::default()
                        }),
                    },
                );
            }
        }
        progress
    }

    #[test]
    fn a_list_is_cleared_when_its_count_is_zero() {
        let (ok, denied) = (MavMissionResult::MAV_MISSION_ACCEPTED, MavMissionResult::MAV_MISSION_DENIED);
        assert_eq!((clear(ok, 0), clear(ok, 1)), (Progress::Done, Progress::Done));
        assert_eq!(clear(ok, 7), Progress::Failed(Failure::Different { seq: 1 }));
        assert_eq!(clear(denied, 0), Progress::Failed(Failure::Refused { what: "clearing", result: 14 }));
    }

    fn set_current(reported: impl Fn(u64) -> Option<u16>) -> Progress {
        let mut job = SetCurrent::new(Instant::ZERO, 4);
        let current = |seq| MavMessage::MISSION_CURRENT(MISSION_CURRENT_DATA { seq, ..Default::default() });
        // A report from before the request is no proof.
        job.on_message(&current(4));
        let mut progress = Progress::Pending;
        for s in 0..20 {
            sent(|t| progress = job.poll(Instant::from_secs(s), t));
            if progress != Progress::Pending {
                break;
            }
            if let Some(seq) = reported(s) {
                job.on_message(&current(seq));
            }
        }
        progress
    }

    #[test]
    fn the_current_item_is_the_one_that_is_reported() {
        assert_eq!(set_current(|s| Some(if s < 3 { 1 } else { 4 })), Progress::Done);
        let failure = Failure::NoEffect { what: "another current item" };
        assert_eq!(set_current(|_| Some(1)), Progress::Failed(failure));
        assert_eq!(set_current(|_| None), Progress::Failed(Failure::Silent { tries: 5 }));
    }

    #[test]
    fn a_mission_has_ended_at_its_last_position() {
        assert!(is_ended(Some(4), 5, false, 1.0, 2.0) && is_ended(Some(3), 5, true, 1.0, 2.0));
        assert!(!is_ended(Some(3), 5, false, 1.0, 2.0) && !is_ended(Some(4), 5, false, 3.0, 2.0));
        assert!(!is_ended(None, 5, false, 0.0, 2.0) && !is_ended(Some(0), 1, false, 0.0, 2.0));
    }
}
