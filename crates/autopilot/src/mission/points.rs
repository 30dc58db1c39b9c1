//! Fence and rally points as 3.5.7 takes them: their number is a parameter, each point travels in a
//! message of its own and is read back (<https://mavlink.io/en/messages/ardupilotmega.html#FENCE_POINT>).
//!
//! FENCE_POINT carries degrees as 32-bit floats, and ArduCopter rounds again when it stores and when it reports:
//! a corner may be a metre off. That much is no difference.

// MAVLink has deprecated these messages since.
#![allow(deprecated)]

use wingbeat_geo::{Duration, Instant};

use crate::dialect::{
    FENCE_FETCH_POINT_DATA, FENCE_POINT_DATA, MavMessage, RALLY_FETCH_POINT_DATA, RALLY_POINT_DATA,
    RallyFlags,
};
use crate::job::{AUTOPILOT_COMPONENT_ID, Failure, Progress, Retry, Transmit};
use crate::parameter::{Names, Value, Write};

/// Points in one list: 3.5.7 has room for 84.
pub const POINTS_MAX: usize = 84;

/// The list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyKind {
    /// The fence: first the point of return, then the corners, the first one again at the end.
    Fence,
    /// Rally points.
    Rally,
}

/// A fence or rally point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyPoint {
    /// Latitude, 1e-7 degree.
    pub latitude_e7: i32,
    /// Longitude, 1e-7 degree.
    pub longitude_e7: i32,
    /// Height above home of a rally point, metres; a fence point has none.
    pub height_m: i16,
}

/// The points of one list.
pub type LegacyPoints = heapless::Vec<LegacyPoint, POINTS_MAX>;

const PERIOD: Duration = Duration::from_millis(700);
const TRIES: u8 = 5;

/// Writes a fence or rally points to the autopilot.
#[derive(Clone, Debug)]
pub struct LegacyUpload {
    kind: LegacyKind,
    points: LegacyPoints,
    total: Write,
    total_written: bool,
    /// The point that is sent and read back.
    index: u8,
    retry: Retry,
    different: bool,
}

impl LegacyUpload {
    /// Sets the number, then sends and reads back each point.
    pub fn new(now: Instant, kind: LegacyKind, points: LegacyPoints) -> Self {
        let name = match kind {
            LegacyKind::Fence => "FENCE_TOTAL",
            LegacyKind::Rally => "RALLY_TOTAL",
        };
        let total = Write::new(now, Names::one(name), Value::Integer(points.len() as i64));
        let retry = Retry::new(now, PERIOD, TRIES);
        Self { kind, points, total, total_written: false, index: 0, retry, different: false }
    }
    /// When the job is due.
    pub fn due(&self) -> Instant {
        if !self.total_written {
            self.total.due()
        } else if self.is_complete() || self.different {
            Instant::ZERO
        } else {
            self.retry.due()
        }
    }
    fn is_complete(&self) -> bool {
        self.total_written && usize::from(self.index) >= self.points.len()
    }
    /// Takes the number and the points.
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        if !self.total_written {
            return self.total.on_message(now, message);
        }
        let Some(&point) = self.points.get(usize::from(self.index)) else { return };
        let same = match (message, self.kind) {
            (MavMessage::FENCE_POINT(m), LegacyKind::Fence) if m.idx == self.index => {
                let (lat, lng) = degrees(point);
                is_rounded(m.lat, lat) && is_rounded(m.lng, lng)
            }
            (MavMessage::RALLY_POINT(m), LegacyKind::Rally) if m.idx == self.index => {
                (m.lat, m.lng, m.alt) == (point.latitude_e7, point.longitude_e7, point.height_m)
            }
            _ => return,
        };
        if same {
            self.index += 1;
            self.retry = Retry::new(now, PERIOD, TRIES);
        } else {
            self.different = true;
        }
    }
    /// Sends when due; done when every point read back is the one that was sent.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Progress {
        if !self.total_written {
            match self.total.poll(now, transmit) {
                Progress::Done => {
                    (self.total_written, self.retry) = (true, Retry::new(now, PERIOD, TRIES));
                }
                other @ (Progress::Pending | Progress::Failed(_)) => return other,
            }
        }
        if self.is_complete() {
            return Progress::Done;
        }
        if self.different {
            return Progress::Failed(Failure::Different { seq: self.index.into() });
        }
        match self.retry.poll(now) {
            Err(failure) => return Progress::Failed(failure),
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
        }
        let Some(&point) = self.points.get(usize::from(self.index)) else { return Progress::Done };
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let (idx, count) = (self.index, self.points.len() as u8);
        let messages = match self.kind {
            LegacyKind::Fence => {
                let (lat, lng) = degrees(point);
                let point = FENCE_POINT_DATA { lat, lng, target_system, target_component, idx, count };
                let fetch = FENCE_FETCH_POINT_DATA { target_system, target_component, idx };
                [MavMessage::FENCE_POINT(point), MavMessage::FENCE_FETCH_POINT(fetch)]
            }
            LegacyKind::Rally => {
                let point = RALLY_POINT_DATA {
                    lat: point.latitude_e7,
                    lng: point.longitude_e7,
                    alt: point.height_m,
                    break_alt: 0,
                    land_dir: 0,
                    target_system,
                    target_component,
                    idx,
                    count,
                    // The dialect has no "none"; only planes use this one, and with it
                    // the point that comes back can be read.
                    flags: RallyFlags::FAVORABLE_WIND,
                };
                let fetch = RALLY_FETCH_POINT_DATA { target_system, target_component, idx };
                [MavMessage::RALLY_POINT(point), MavMessage::RALLY_FETCH_POINT(fetch)]
            }
        };
        for message in &messages {
            // No room is a lost frame: both are sent again.
            let _ = transmit.send(message);
        }
        Progress::Pending
    }
}

/// Whether the first is the second after ArduCopter stored it: degrees in float become 1e-7 degrees in float
/// and then whole ones, and back again. Each of the three steps rounds by half a unit of the
/// last digit at most, the whole number by one of its own.
fn is_rounded(found_deg: f32, sent_deg: f32) -> bool {
    libm::fabsf(found_deg - sent_deg) <= 2.0 * f32::EPSILON * libm::fabsf(sent_deg) + 1e-7
}

fn degrees(point: LegacyPoint) -> (f32, f32) {
    let of = |e7: i32| (f64::from(e7) * 1e-7) as f32;
    (of(point.latitude_e7), of(point.longitude_e7))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use crate::parameter::testing::integer;
    use std::vec::Vec;

    /// As 3.5.7 does it.
    fn stored(deg: f32) -> f32 {
        ((deg * 1.0e7) as i32) as f32 * 1.0e-7
    }

    /// An autopilot that takes points, that loses every `lose`-th answer and may corrupt one.
    fn run(kind: LegacyKind, lose: u32, corrupt: Option<u8>) -> Progress {
        let point =
            |i| LegacyPoint { latitude_e7: 394_825_940 + i * 900, longitude_e7: -3_462_650, height_m: 25 };
        let mut job = LegacyUpload::new(Instant::ZERO, kind, (0..6).map(point).collect());
        let (mut progress, mut answers, mut points) = (Progress::Pending, 0, Vec::new());
        for ms in (0..60_000).step_by(50) {
            let now = Instant::from_millis(ms);
            for message in sent(|t| progress = job.poll(now, t)) {
                let answer = match message {
                    MavMessage::PARAM_SET(m) => {
                        points = std::vec![None; m.param_value as usize];
                        Some(integer(crate::codec::text(&*m.param_id), m.param_value))
                    }
                    MavMessage::FENCE_POINT(mut m) => {
                        let idx = m.idx;
                        m.lat += if corrupt == Some(idx) { 0.000_1 } else { 0.0 };
                        (m.lat, m.lng) = (stored(m.lat), stored(m.lng));
                        points[usize::from(idx)] = Some(MavMessage::FENCE_POINT(m));
                        None
                    }
                    MavMessage::RALLY_POINT(mut m) => {
                        let idx = m.idx;
                        m.alt += i16::from(corrupt == Some(idx));
                        points[usize::from(idx)] = Some(MavMessage::RALLY_POINT(m));
                        None
                    }
                    MavMessage::FENCE_FETCH_POINT(m) => points[usize::from(m.idx)].clone(),
                    MavMessage::RALLY_FETCH_POINT(m) => points[usize::from(m.idx)].clone(),
                    other => panic!("{other:?}"),
                };
                answers += u32::from(answer.is_some());
                if let Some(answer) = answer.filter(|_| lose == 0 || answers % lose != 0) {
                    job.on_message(now, &answer);
                    job.on_message(now, &answer);
                }
            }
            if progress != Progress::Pending {
                break;
            }
        }
        progress
    }

    #[test]
    fn storing_a_corner_rounds_it_and_moving_it_does_not() {
        for i in 0..2_000 {
            let e7 = -1_800_000_000 + i * 1_799_989_i64;
            let deg = (e7 as f64 * 1e-7) as f32;
            assert!(is_rounded(stored(deg), deg), "{deg}");
        }
        assert!(
            !is_rounded(39.482_594, 39.482_614) && !is_rounded(0.000_001, 0.0) && !is_rounded(f32::NAN, 1.0)
        );
    }

    #[test]
    fn every_point_is_read_back() {
        for kind in [LegacyKind::Fence, LegacyKind::Rally] {
            assert_eq!((run(kind, 0, None), run(kind, 2, None)), (Progress::Done, Progress::Done));
            assert_eq!(run(kind, 0, Some(4)), Progress::Failed(Failure::Different { seq: 4 }));
            assert_eq!(run(kind, 1, None), Progress::Failed(Failure::Silent { tries: 3 }));
        }
    }
}
