//! Fence and rally points by the mission protocol, whose points stay with the caller: an aircraft has no room for a list that it
//! does not fly by.
//!
//! A point that the autopilot asks for is handed in, and the points that it holds are handed out as they are read. A list that
//! was sent, or cleared, is read back at the end, and it is for the caller to compare it ([`first_difference`]).

// ArduCopter sends MISSION_REQUEST, which MAVLink has deprecated since.
#![allow(deprecated)]

use serde::{Deserialize, Serialize};
use wingbeat_geo::region::POINTS_MAX;
use wingbeat_geo::{Duration, Instant};

use super::Item;
use super::reader::{ListReader, Reply};
use crate::dialect::{
    MISSION_CLEAR_ALL_DATA, MISSION_COUNT_DATA, MavCmd, MavFrame, MavMessage, MavMissionResult,
    MavMissionType,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegionKind {
    /// The fence.
    Fence,
    /// Rally points.
    Rally,
}

impl RegionKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fence => "the fence",
            Self::Rally => "the rally points",
        }
    }
    const fn mission_type(self) -> MavMissionType {
        match self {
            Self::Fence => MavMissionType::MAV_MISSION_TYPE_FENCE,
            Self::Rally => MavMissionType::MAV_MISSION_TYPE_RALLY,
        }
    }
}

/// What a point is of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum RegionPart {
    /// A corner of a polygon.
    Corner {
        /// Whether the aircraft must be inside.
        is_inclusion: bool,
        /// Corners of its polygon.
        corners: u16,
    },
    /// The centre of a circle.
    Circle {
        /// Whether the aircraft must be inside.
        is_inclusion: bool,
        /// Its radius, metres.
        radius_m: f32,
    },
    /// Where an aeroplane returns to; a copter keeps it, and does not fly there.
    ReturnPoint,
    /// A rally point.
    Rally {
        /// Its height above home, metres: ArduCopter keeps whole ones.
        height_m: i16,
    },
}

/// A point of a fence, or a rally point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionPoint {
    /// What it is of.
    pub part: RegionPart,
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
}

impl RegionPoint {
    /// As the mission protocol carries it.
    fn item(&self) -> Item {
        let (command, param, altitude_m) = match self.part {
            RegionPart::Corner { is_inclusion: true, corners } => {
                (MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION, f32::from(corners), 0.0)
            }
            RegionPart::Corner { is_inclusion: false, corners } => {
                (MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION, f32::from(corners), 0.0)
            }
            RegionPart::Circle { is_inclusion: true, radius_m } => {
                (MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION, radius_m, 0.0)
            }
            RegionPart::Circle { is_inclusion: false, radius_m } => {
                (MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION, radius_m, 0.0)
            }
            RegionPart::ReturnPoint => (MavCmd::MAV_CMD_NAV_FENCE_RETURN_POINT, 0.0, 0.0),
            RegionPart::Rally { height_m } => (MavCmd::MAV_CMD_NAV_RALLY_POINT, 0.0, f32::from(height_m)),
        };
        Item {
            command,
            frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
            params: [param, 0.0, 0.0, 0.0],
            latitude_e7: self.latitude_e7,
            longitude_e7: self.longitude_e7,
            altitude_m,
        }
    }

    /// What an item is; none of an item that is no such point.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    fn of(item: &Item) -> Option<Self> {
        let param = item.params[0];
        let corners =
            || (param.is_finite() && (0.0..=f32::from(u16::MAX)).contains(&param)).then_some(param as u16);
        let part = match item.command {
            MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_INCLUSION => {
                RegionPart::Corner { is_inclusion: true, corners: corners()? }
            }
            MavCmd::MAV_CMD_NAV_FENCE_POLYGON_VERTEX_EXCLUSION => {
                RegionPart::Corner { is_inclusion: false, corners: corners()? }
            }
            MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_INCLUSION if param.is_finite() => {
                RegionPart::Circle { is_inclusion: true, radius_m: param }
            }
            MavCmd::MAV_CMD_NAV_FENCE_CIRCLE_EXCLUSION if param.is_finite() => {
                RegionPart::Circle { is_inclusion: false, radius_m: param }
            }
            MavCmd::MAV_CMD_NAV_FENCE_RETURN_POINT => RegionPart::ReturnPoint,
            MavCmd::MAV_CMD_NAV_RALLY_POINT
                if super::is_relative(item.frame) && libm::fabsf(item.altitude_m) <= f32::from(i16::MAX) =>
            {
                RegionPart::Rally { height_m: libm::roundf(item.altitude_m) as i16 }
            }
            _ => return None,
        };
        Some(Self { part, latitude_e7: item.latitude_e7, longitude_e7: item.longitude_e7 })
    }

    /// Whether an autopilot that holds `other` keeps to this point.
    fn is_held_as(&self, other: &Self) -> bool {
        self.item().is_held_as(&other.item())
    }
}

/// The first point that is held differently from how it was sent, or that is held too much or too little.
pub fn first_difference(sent: &[RegionPoint], held: &[RegionPoint]) -> Option<usize> {
    let differing = sent.iter().zip(held).position(|(sent, held)| !sent.is_held_as(held));
    differing.or_else(|| (sent.len() != held.len()).then_some(sent.len().min(held.len())))
}

/// What a message of the autopilot brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RegionEvent {
    /// It asks for this point ([`Exchange::supply`]).
    Wanted(u16),
    /// It holds so many points, which are read now, from the first on.
    Count(u16),
    /// It holds this point.
    Held(u16, RegionPoint),
}

const PERIOD: Duration = Duration::from_millis(1_500);
const TRIES: u8 = 5;
/// 127 points at 57 600 baud take 11 s to send, and 3 s to be read; a line that loses half needs a few times that.
const GIVE_UP_AFTER: Duration = Duration::from_secs(90);

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many points are sent; none clears the list. Whether the last has left.
    Sending {
        count: u16,
        last_sent: bool,
    },
    Reading,
}

/// Sends, clears or reads one list.
#[derive(Clone, Debug)]
pub struct Exchange {
    kind: RegionKind,
    stage: Stage,
    /// How many points are to be found when it is read.
    expected: Option<u16>,
    count: Option<u16>,
    retry: Retry,
    reader: ListReader,
    give_up_at: Instant,
    failed: Option<Failure>,
}

impl Exchange {
    /// Reads the list.
    pub fn reading(now: Instant, kind: RegionKind) -> Self {
        Self {
            kind,
            stage: Stage::Reading,
            expected: None,
            count: None,
            retry: Retry::new(now, PERIOD, TRIES),
            reader: ListReader::new(now, kind.mission_type()),
            give_up_at: now + GIVE_UP_AFTER,
            failed: None,
        }
    }
    /// Replaces the list by so many points, or clears it, and reads it back.
    pub fn writing(now: Instant, kind: RegionKind, count: u16) -> Self {
        Self {
            stage: Stage::Sending { count, last_sent: false },
            expected: Some(count),
            ..Self::reading(now, kind)
        }
    }
    /// Which list.
    pub fn kind(&self) -> RegionKind {
        self.kind
    }
    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.expected.is_some()
    }
    /// When it wants polling.
    pub fn due(&self) -> Instant {
        let at = match self.stage {
            _ if self.failed.is_some() => Instant::ZERO,
            Stage::Sending { .. } => self.retry.due(),
            Stage::Reading => self.reader.due(),
        };
        at.min(self.give_up_at)
    }

    /// Takes the autopilot's side.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) -> Option<RegionEvent> {
        if self.failed.is_some() {
            return None;
        }
        let Stage::Sending { count, last_sent } = self.stage else { return self.read(now, message) };
        let kind = self.kind.mission_type();
        match message {
            MavMessage::MISSION_REQUEST(r) if r.mission_type == kind && r.seq < count => {
                Some(RegionEvent::Wanted(r.seq))
            }
            MavMessage::MISSION_REQUEST_INT(r) if r.mission_type == kind && r.seq < count => {
                Some(RegionEvent::Wanted(r.seq))
            }
            MavMessage::MISSION_ACK(ack) if ack.mission_type == kind => {
                match ack.mavtype {
                    MavMissionResult::MAV_MISSION_ACCEPTED if last_sent => {
                        self.stage = Stage::Reading;
                        self.reader = ListReader::new(now, kind);
                    }
                    // Late ones, of a point that came twice or of an exchange before this.
                    MavMissionResult::MAV_MISSION_ACCEPTED
                    | MavMissionResult::MAV_MISSION_INVALID_SEQUENCE => {}
                    // It no longer waits: from the beginning.
                    MavMissionResult::MAV_MISSION_OPERATION_CANCELLED => {
                        self.retry = Retry::new(now, PERIOD, TRIES);
                    }
                    result => {
                        self.failed = Some(Failure::Refused { what: self.kind.name(), result: result as u8 });
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn read(&mut self, now: Instant, message: &MavMessage) -> Option<RegionEvent> {
        if self.reader.is_complete() {
            return None;
        }
        match self.reader.on_message(now, message) {
            Reply::Nothing => None,
            // Of what was sent one may be late.
            Reply::Refused(_) if self.writes() && !self.reader.is_reading() => None,
            Reply::Refused(result) => {
                self.failed = Some(Failure::Refused { what: self.kind.name(), result: result as u8 });
                None
            }
            // A repeated request has two answers.
            Reply::Count { count, .. } if self.count == Some(count) => None,
            Reply::Count { .. } if self.count.is_some() => {
                self.failed = Some(Failure::Changed { what: self.kind.name() });
                None
            }
            Reply::Count { count, .. } if self.expected.is_some_and(|expected| expected != count) => {
                self.failed = Some(Failure::Different { seq: count });
                None
            }
            Reply::Count { count, .. } if usize::from(count) > POINTS_MAX => {
                let most = POINTS_MAX as u16;
                self.failed = Some(Failure::TooMany { what: self.kind.name(), found: count, most });
                None
            }
            Reply::Count { count, .. } => {
                self.count = Some(count);
                self.reader.read_from(now, 0, count);
                Some(RegionEvent::Count(count))
            }
            Reply::Item(m) => {
                let point = RegionPoint::of(&Item::of(m));
                if point.is_none() {
                    self.failed = Some(Failure::NoRegion { what: self.kind.name(), seq: m.seq });
                }
                point.map(|point| RegionEvent::Held(m.seq, point))
            }
        }
    }

    /// Sends the point that was asked for.
    pub fn supply(&mut self, now: Instant, seq: u16, point: &RegionPoint, transmit: &mut Transmit<'_>) {
        let Stage::Sending { count, last_sent } = &mut self.stage else { return };
        if seq >= *count {
            return;
        }
        let item = point.item().encode(seq, self.kind.mission_type(), transmit.system_id);
        // No room is a lost frame: it is asked for again.
        let _ = transmit.send(&MavMessage::MISSION_ITEM_INT(item));
        *last_sent |= seq + 1 == *count;
        // The transfer moves: its silence is counted from here.
        self.retry = Retry::new(now + PERIOD, PERIOD, TRIES);
    }

    /// Sends when due; done when the list is read completely, and where it was written has the length that was sent.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if let Some(failure) = self.failed {
            return Progress::Failed(failure);
        }
        let Stage::Sending { count, last_sent } = &mut self.stage else {
            if self.reader.is_complete() {
                self.reader.acknowledge(transmit);
                return Progress::Done;
            }
            if now >= self.give_up_at {
                return Progress::Failed(Failure::NoEffect { what: "reading it" });
            }
            return match self.reader.poll(now, transmit) {
                Ok(()) => Progress::Pending,
                Err(failure) => Progress::Failed(failure),
            };
        };
        if now >= self.give_up_at {
            return Progress::Failed(Failure::NoEffect { what: self.kind.name() });
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let (count, mission_type) = (*count, self.kind.mission_type());
        *last_sent = count == 0;
        let _ = match count {
            0 => transmit.send(&MavMessage::MISSION_CLEAR_ALL(MISSION_CLEAR_ALL_DATA {
                target_system,
                target_component,
                mission_type,
            })),
            count => transmit.send(&MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                count,
                target_system,
                target_component,
                mission_type,
                opaque_id: 0,
            })),
        };
        Progress::Pending
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::dialect::{MISSION_ACK_DATA, MISSION_ITEM_INT_DATA, MISSION_REQUEST_DATA};
    use crate::job::testing::sent;
    use std::vec::Vec;

    fn corner(i: i32) -> RegionPoint {
        let part = RegionPart::Corner { is_inclusion: i % 2 == 0, corners: 3 };
        RegionPoint { part, latitude_e7: 394_825_940 + i, longitude_e7: -3_462_650 }
    }

    /// An autopilot that keeps what it is sent, loses each `lose`-th of its answers and holds the point `corrupt` elsewhere. How it
    /// ended, what was read, and when.
    fn run(
        job: &mut Exchange,
        points: &[RegionPoint],
        stored: &mut Vec<MISSION_ITEM_INT_DATA>,
        (lose, corrupt): (u32, Option<u16>),
    ) -> (Progress, Vec<RegionPoint>, u64) {
        let kind = job.kind.mission_type();
        let (mut answers, mut held, mut queue) = (0, Vec::new(), Vec::new());
        let (mut incoming, mut due_count) = (Vec::new(), 0);
        for ms in (0..200_000).step_by(20) {
            let now = Instant::from_millis(ms);
            let mut progress = Progress::Pending;
            let wanted: Vec<u16> = core::mem::take(&mut queue);
            let mut messages = Vec::new();
            for seq in wanted {
                messages.extend(sent(|t| job.supply(now, seq, &points[usize::from(seq)], t)));
            }
            messages.extend(sent(|t| progress = job.poll(now, t)));
            if progress != Progress::Pending {
                return (progress, held, ms);
            }
            for message in messages {
                let ack = |result| {
                    MavMessage::MISSION_ACK(MISSION_ACK_DATA {
                        mavtype: result,
                        mission_type: kind,
                        ..Default::default()
                    })
                };
                let request = |seq| {
                    let data = MISSION_REQUEST_DATA { seq, mission_type: kind, ..Default::default() };
                    MavMessage::MISSION_REQUEST(data)
                };
                let answer = match message {
                    MavMessage::MISSION_COUNT(m) => {
                        due_count = m.count;
                        incoming.clear();
                        Some(request(0))
                    }
                    MavMessage::MISSION_CLEAR_ALL(_) => {
                        stored.clear();
                        Some(ack(MavMissionResult::MAV_MISSION_ACCEPTED))
                    }
                    MavMessage::MISSION_ITEM_INT(mut m) if usize::from(m.seq) == incoming.len() => {
                        m.x += i32::from(corrupt == Some(m.seq));
                        incoming.push(m);
                        Some(if incoming.len() == usize::from(due_count) {
                            *stored = core::mem::take(&mut incoming);
                            ack(MavMissionResult::MAV_MISSION_ACCEPTED)
                        } else {
                            request(incoming.len() as u16)
                        })
                    }
                    MavMessage::MISSION_ITEM_INT(_) => {
                        Some(ack(MavMissionResult::MAV_MISSION_INVALID_SEQUENCE))
                    }
                    MavMessage::MISSION_REQUEST_LIST(_) => {
                        Some(MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
                            count: stored.len() as u16,
                            mission_type: kind,
                            ..Default::default()
                        }))
                    }
                    MavMessage::MISSION_REQUEST_INT(m) => {
                        Some(MavMessage::MISSION_ITEM_INT(stored[usize::from(m.seq)].clone()))
                    }
                    MavMessage::MISSION_ACK(_) => None,
                    other => panic!("{other:?}"),
                };
                answers += u32::from(answer.is_some());
                let Some(answer) = answer.filter(|_| lose == 0 || answers % lose != 0) else { continue };
                match job.on_message(now, &answer) {
                    Some(RegionEvent::Wanted(seq)) => queue.push(seq),
                    Some(RegionEvent::Count(count)) => held = std::vec![corner(-1); usize::from(count)],
                    Some(RegionEvent::Held(seq, point)) => held[usize::from(seq)] = point,
                    None => {}
                }
            }
            // It asks again for what does not come.
            if ms % 1_000 == 0 && !incoming.is_empty() {
                let seq = incoming.len() as u16;
                let data = MISSION_REQUEST_DATA { seq, mission_type: kind, ..Default::default() };
                if let Some(RegionEvent::Wanted(seq)) =
                    job.on_message(now, &MavMessage::MISSION_REQUEST(data))
                {
                    queue.push(seq);
                }
            }
        }
        panic!("never ends");
    }

    #[test]
    fn what_is_sent_is_read_back_and_a_cleared_list_is_empty() {
        let points: Vec<_> = (0..9).map(corner).collect();
        for lose in [0, 3] {
            let mut stored = Vec::new();
            let mut job = Exchange::writing(Instant::ZERO, RegionKind::Fence, 9);
            let (progress, held, ms) = run(&mut job, &points, &mut stored, (lose, None));
            assert_eq!((progress, first_difference(&points, &held)), (Progress::Done, None), "{lose}");
            assert!(lose > 0 || ms < 1_000, "{ms}");
            let mut job = Exchange::reading(Instant::ZERO, RegionKind::Fence);
            let (progress, again, _) = run(&mut job, &[], &mut stored, (lose, None));
            assert_eq!((progress, again), (Progress::Done, held));
            let mut job = Exchange::writing(Instant::ZERO, RegionKind::Fence, 0);
            let (progress, left, _) = run(&mut job, &[], &mut stored, (lose, None));
            assert_eq!((progress, left.len(), stored.len()), (Progress::Done, 0, 0));
        }
    }

    #[test]
    fn a_point_that_is_held_elsewhere_differs() {
        let points: Vec<_> = (0..9).map(corner).collect();
        let mut job = Exchange::writing(Instant::ZERO, RegionKind::Fence, 9);
        let (progress, held, _) = run(&mut job, &points, &mut Vec::new(), (0, Some(4)));
        assert_eq!((progress, first_difference(&points, &held)), (Progress::Done, Some(4)));
        assert_eq!(first_difference(&points, &points[..8]), Some(8));
        let rally = |height_m| RegionPoint { part: RegionPart::Rally { height_m }, ..corner(0) };
        assert_eq!(first_difference(&[rally(20)], &[rally(21)]), Some(0));
        assert_eq!(first_difference(&[rally(20)], &[rally(20)]), None);
    }

    #[test]
    fn silence_a_refusal_and_foreign_items_end_it() {
        let mut job = Exchange::writing(Instant::ZERO, RegionKind::Rally, 2);
        let mut progress = Progress::Pending;
        let mut counts = 0;
        for s in 0..=10 {
            counts += sent(|t| progress = job.poll(Instant::from_secs(s), t)).len();
        }
        assert_eq!((progress, counts), (Progress::Failed(Failure::Silent { tries: 5 }), 5));

        let mut job = Exchange::writing(Instant::ZERO, RegionKind::Rally, 2);
        sent(|t| progress = job.poll(Instant::ZERO, t));
        let refusal = MISSION_ACK_DATA {
            mavtype: MavMissionResult::MAV_MISSION_NO_SPACE,
            mission_type: MavMissionType::MAV_MISSION_TYPE_RALLY,
            ..Default::default()
        };
        job.on_message(Instant::ZERO, &MavMessage::MISSION_ACK(refusal));
        sent(|t| progress = job.poll(Instant::ZERO, t));
        let refused = Failure::Refused { what: "the rally points", result: 4 };
        assert_eq!((progress, job.due()), (Progress::Failed(refused), Instant::ZERO));

        let foreign =
            Item::waypoint(crate::target::RelativePosition { latitude_e7: 1, longitude_e7: 2, height_mm: 3 });
        let mut stored = std::vec![foreign.encode(0, MavMissionType::MAV_MISSION_TYPE_FENCE, 1)];
        let mut job = Exchange::reading(Instant::ZERO, RegionKind::Fence);
        let (progress, _, _) = run(&mut job, &[], &mut stored, (0, None));
        assert_eq!(progress, Progress::Failed(Failure::NoRegion { what: "the fence", seq: 0 }));
    }

    #[test]
    fn a_point_becomes_the_item_that_the_protocol_names() {
        let point = |part| RegionPoint { part, latitude_e7: 394_825_940, longitude_e7: -3_462_650 };
        for (part, command, param, altitude_m) in [
            (RegionPart::Corner { is_inclusion: true, corners: 5 }, 5001, 5.0, 0.0),
            (RegionPart::Corner { is_inclusion: false, corners: 4 }, 5002, 4.0, 0.0),
            (RegionPart::Circle { is_inclusion: true, radius_m: 30.0 }, 5003, 30.0, 0.0),
            (RegionPart::Circle { is_inclusion: false, radius_m: 7.5 }, 5004, 7.5, 0.0),
            (RegionPart::Rally { height_m: 25 }, 5100, 0.0, 25.0),
        ] {
            let mut job = Exchange::writing(Instant::ZERO, RegionKind::Fence, 1);
            let messages = sent(|t| job.supply(Instant::ZERO, 0, &point(part), t));
            let [MavMessage::MISSION_ITEM_INT(item)] = &messages[..] else { panic!("{messages:?}") };
            let found = (item.command as u32, item.param1, item.z, item.x, item.y, item.frame as u32);
            assert_eq!(found, (command, param, altitude_m, 394_825_940, -3_462_650, 3));
            assert_eq!(RegionPoint::of(&Item::of(item)), Some(point(part)));
        }
    }
}
