//! One test: what was sent, and what of it was received.

use std::collections::BTreeMap;

use wingbeat_geo::{DVec3, Frame, Position};

/// Datagrams of one test at most: ten minutes of a hundred a second.
pub const COUNT_MAX: u32 = 60_000;

/// What a test consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Its number, the same at all aircraft.
    pub number: u32,
    /// Id of the aircraft that sends.
    pub from: String,
    /// Id of the aircraft that receives.
    pub to: String,
    /// Datagrams sent.
    pub count: u32,
    /// Datagrams a second.
    pub rate_hz: f64,
    /// Length of each, bytes.
    pub payload_bytes: u32,
}

/// Where an aircraft is and how it flies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flight {
    /// Where it is.
    pub position: Position,
    /// Where its nose points, radians clockwise from north.
    pub heading_rad: f64,
    /// East, north and up, metres per second.
    pub velocity_m_s: DVec3,
}

/// A datagram, and where both aircraft were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reception {
    /// How often it was received; 0 of one that was lost, where its sender's own record says where it was.
    pub copies: u32,
    /// The sender, as it said.
    pub sender: Flight,
    /// The receiver at that time.
    pub receiver: Flight,
}

/// A test from one aircraft to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What was sent.
    pub test: Test,
    /// What is known of datagrams, by their numbers from 0: each less than [`Test::count`].
    known: BTreeMap<u32, Reception>,
}

impl Record {
    /// A test of which nothing was received yet.
    pub fn new(test: Test) -> Self {
        Self { test, known: BTreeMap::new() }
    }

    /// Keeps a reception: the first copy with where both were. False of a number that was not sent, which is not kept.
    pub fn add(&mut self, sequence: u32, sender: Flight, receiver: Flight) -> bool {
        let is_sent = self.note(sequence, sender, receiver);
        if let Some(known) = self.known.get_mut(&sequence).filter(|_| is_sent) {
            known.copies += 1;
        }
        is_sent
    }

    /// Keeps where both were when a datagram was sent, received or not: from their own records. False as of [`Record::add`].
    pub fn note(&mut self, sequence: u32, sender: Flight, receiver: Flight) -> bool {
        let is_sent = sequence < self.test.count.min(COUNT_MAX);
        if is_sent {
            self.known.entry(sequence).or_insert(Reception { copies: 0, sender, receiver });
        }
        is_sent
    }

    /// What was received, by its number.
    pub fn receptions(&self) -> impl Iterator<Item = (u32, &Reception)> {
        self.known().filter(|(_, known)| known.copies > 0)
    }

    /// All of which it is known where both were, by its number.
    pub fn known(&self) -> impl Iterator<Item = (u32, &Reception)> {
        self.known.iter().map(|(sequence, known)| (*sequence, known))
    }

    /// The distance of datagrams, and whether they were received. Between two that are known it is reckoned as if it had
    /// changed evenly; before the first and after the last it is not known, and they are left out.
    pub fn distances(&self) -> Vec<(f64, bool)> {
        let all: Vec<(u32, f64, bool)> =
            self.known().map(|(n, r)| (n, r.distance_m(), r.copies > 0)).collect();
        let mut distances = Vec::with_capacity(self.test.count as usize);
        for pair in all.windows(2) {
            let ((from, from_m, received), (until, until_m, _)) = (pair[0], pair[1]);
            distances.push((from_m, received));
            let share = |n: u32| f64::from(n - from) / f64::from(until - from);
            distances.extend((from + 1..until).map(|n| (from_m + (until_m - from_m) * share(n), false)));
        }
        distances.extend(all.last().map(|&(_, last_m, received)| (last_m, received)));
        distances
    }
}

impl Reception {
    /// From the receiver to the sender, metres east, north and up.
    fn sender_m(&self) -> DVec3 {
        Frame::new(self.receiver.position).to_local(self.sender.position)
    }

    /// Between them, metres over the ground, as the channel's models have it.
    pub fn distance_m(&self) -> f64 {
        self.sender_m().truncate().length()
    }

    /// How much higher the sender is, metres.
    pub fn height_difference_m(&self) -> f64 {
        self.sender_m().z
    }

    /// Where the receiver sees the sender: from its nose, radians clockwise, -π to π. None where they are at one place.
    pub fn relative_angle_rad(&self) -> Option<f64> {
        let to = self.sender_m().truncate();
        let bearing_rad = to.x.atan2(to.y);
        let turn = std::f64::consts::TAU;
        let angle = (bearing_rad - self.receiver.heading_rad + turn / 2.0).rem_euclid(turn) - turn / 2.0;
        (to.length() > 0.0).then_some(angle)
    }

    /// How far above the receiver's horizon the sender is, radians.
    pub fn elevation_rad(&self) -> f64 {
        self.height_difference_m().atan2(self.distance_m())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const HOME: Position =
        Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

    pub(crate) fn at(east_m: f64, north_m: f64, up_m: f64) -> Flight {
        let position = Frame::new(HOME).to_position(DVec3::new(east_m, north_m, up_m));
        Flight { position, heading_rad: 0.0, velocity_m_s: DVec3::new(3.0, 4.0, -1.0) }
    }

    pub(crate) fn test(count: u32) -> Test {
        let (from, to) = ("0000000000000001".into(), "0000000000000002".into());
        Test { number: 7, from, to, count, rate_hz: 50.0, payload_bytes: 1_000 }
    }

    #[test]
    fn lost_datagrams_are_where_the_aircraft_were_between() {
        let mut record = Record::new(test(8));
        for (sequence, east_m) in [(2, 100.0), (3, 110.0), (6, 140.0)] {
            assert!(record.add(sequence, at(east_m, 0.0, 0.0), at(0.0, 0.0, 0.0)));
        }
        assert!(
            record.add(3, at(0.0, 0.0, 0.0), at(0.0, 0.0, 0.0))
                && !record.add(8, at(0.0, 0.0, 0.0), at(0.0, 0.0, 0.0))
        );
        let far = at(700.0, 0.0, 0.0);
        assert!(
            record.note(7, far, at(0.0, 0.0, 0.0)) && record.note(6, far, far),
            "a reception is known already"
        );
        let found = record.distances();
        // Nothing is known of 0 and 1.
        let expected =
            [(100.0, true), (110.0, true), (120.0, false), (130.0, false), (140.0, true), (700.0, false)];
        assert_eq!(found.len(), expected.len());
        for ((found_m, received), (expected_m, expected)) in found.into_iter().zip(expected) {
            assert!((found_m - expected_m).abs() < 0.1 && received == expected, "{found_m} {received}");
        }
        assert_eq!(record.receptions().count(), 3);
        assert!(Record::new(test(8)).distances().is_empty());
    }

    #[test]
    fn a_sender_is_seen_from_the_receiver_s_nose() {
        let seen = |east_m, north_m, up_m, heading_deg: f64| {
            let receiver = Flight { heading_rad: heading_deg.to_radians(), ..at(0.0, 0.0, 0.0) };
            Reception { copies: 1, sender: at(east_m, north_m, up_m), receiver }
        };
        let angle_deg = |r: Reception| r.relative_angle_rad().map(|a| a.to_degrees().round());
        assert_eq!(angle_deg(seen(100.0, 0.0, 0.0, 0.0)), Some(90.0));
        assert_eq!(angle_deg(seen(-100.0, 0.0, 0.0, 0.0)), Some(-90.0));
        assert_eq!(angle_deg(seen(0.0, 100.0, 0.0, 350.0)), Some(10.0));
        assert_eq!(angle_deg(seen(0.0, 0.0, 10.0, 350.0)), None);
        assert_eq!(seen(100.0, 0.0, 100.0, 0.0).elevation_rad().to_degrees().round(), 45.0);
    }
}
