//! The virtual radio channel: which aircraft receive a broadcast, and when.
//!
//! Three published models of reach (thesis section 4.1.3). Losses are drawn per packet, or once per pair
//! and second and then the same in both directions, as the reference implementation does: a lost second
//! loses every datagram in it. One child generator per link, so that traffic on one link never changes
//! the random draws of another.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use wingbeat_geo::{DVec3, Duration, Instant};

use crate::faults::{Disturbances, Fault};
use crate::medium::{Medium, Reception};
use crate::rng::{self, Children, Pcg64Mcg};

/// How far radio reaches.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Every aircraft receives everything.
    Unrestricted,
    /// Everything within a range, nothing beyond.
    FixedRange {
        /// The range, metres.
        range_m: f64,
    },
    /// 802.11a with 5 dBi antennas, measured between multicopters: a share of
    /// 5.335e-7 d² + 3.395e-5 d is lost at d metres, everything beyond 1350 m.
    Ieee80211a,
    /// Measured: metres that rise, and the share lost there. Between two rows along a straight line; nearer than the first as
    /// there, farther than the last as there.
    Table(Arc<[(f64, f64)]>),
}

/// How often a link's loss is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Again for every datagram.
    PerPacket,
    /// Once a second for a pair, both directions alike.
    PerSecond,
}

/// Beyond this no 802.11a frame is received (thesis section 4.1.3).
const IEEE80211A_RANGE_M: f64 = 1350.0;

impl Model {
    /// Share of datagrams lost at a distance, 0..=1.
    pub fn loss(&self, distance_m: f64) -> f64 {
        match self {
            Self::Unrestricted => 0.0,
            Self::FixedRange { range_m } => f64::from(u8::from(distance_m > *range_m)),
            Self::Table(rows) => between(rows, distance_m),
            Self::Ieee80211a if distance_m > IEEE80211A_RANGE_M => 1.0,
            Self::Ieee80211a => (5.335e-7 * distance_m * distance_m + 3.395e-5 * distance_m).min(1.0),
        }
    }
}

/// The share of a table at a distance.
fn between(rows: &[(f64, f64)], distance_m: f64) -> f64 {
    let after = rows.partition_point(|(row_m, _)| *row_m <= distance_m);
    match (after.checked_sub(1).and_then(|before| rows.get(before)), rows.get(after)) {
        (Some((from_m, from)), Some((until_m, until))) => {
            from + (until - from) * (distance_m - from_m) / (until_m - from_m)
        }
        (Some((_, share)), None) | (None, Some((_, share))) => *share,
        (None, None) => 0.0,
    }
}

impl std::str::FromStr for Model {
    type Err = String;
    /// `unrestricted`, `range:METRES` or `802.11a`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected unrestricted, range:METRES (more than 0) or 802.11a";
        match text {
            "unrestricted" => Ok(Self::Unrestricted),
            "802.11a" => Ok(Self::Ieee80211a),
            _ => match text.strip_prefix("range:").map(str::parse::<f64>) {
                Some(Ok(range_m)) if range_m > 0.0 && range_m.is_finite() => Ok(Self::FixedRange { range_m }),
                _ => Err(format!("channel: found '{text}', {expected}")),
            },
        }
    }
}

/// What the channel did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent.
    pub sent: u64,
    /// Receptions: one datagram counts once for each receiver.
    pub delivered: u64,
    /// Receptions that distance, random loss and faults prevented.
    pub lost: u64,
}

/// A datagram on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Index of the receiver.
    pub to: usize,
    /// When its last bit has arrived.
    pub at: Instant,
}

/// The channel among `count` radios.
pub struct Channel {
    model: Model,
    draw: Draw,
    count: usize,
    /// One generator per directed link, `from * count + to`.
    links: Vec<Pcg64Mcg>,
    /// The generators of pairs and seconds.
    seconds: Children,
    /// What was drawn last for each directed link, alike in both directions, and for which second.
    drawn: Vec<(u64, f64)>,
    disturbances: Disturbances,
    /// When each radio has sent what it has to send: one datagram of a radio does not overtake another.
    free_at: Vec<Instant>,
    counters: Counters,
    by_distance: [Losses; REACHES],
    /// Storage that is used again.
    deliveries: Vec<Delivery>,
}

/// What became of datagrams over one range of distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Receptions that could have happened.
    pub sent: u64,
    /// Those that distance and random loss prevented.
    pub lost: u64,
}

/// Width of a range of distances, metres; the ranges lie around its multiples.
pub const REACH_M: f64 = 100.0;
/// Ranges that losses are counted in; what is farther counts in the last.
pub const REACHES: usize = 26;

impl Channel {
    /// A channel among `count` radios.
    pub fn new(model: Model, draw: Draw, seed: u64, count: usize) -> Self {
        let links = (0..count * count).map(|link| rng::child(seed, "radio packet", link as u64)).collect();
        Self {
            model,
            draw,
            count,
            links,
            seconds: Children::of(seed, "radio second"),
            drawn: vec![(u64::MAX, 0.0); count * count],
            disturbances: Disturbances::new(seed, count),
            free_at: vec![Instant::ZERO; count],
            counters: Counters::default(),
            by_distance: [Losses::default(); REACHES],
            deliveries: Vec::new(),
        }
    }

    /// Something begins to disturb it. A fault of an aircraft changes nothing here.
    pub fn disturb(&mut self, fault: Fault) {
        self.disturbances.begin(fault);
    }

    /// Sends `len` bytes from one radio; appends the receivers and times to `out`.
    ///
    /// # Panics
    /// If `positions` does not hold one place per radio.
    pub fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        len: usize,
        positions: &[DVec3],
        out: &mut Vec<Delivery>,
    ) {
        assert_eq!(positions.len(), self.count, "one position per radio");
        self.counters.sent += 1;
        let at = now.max(self.free_at[from]) + airtime(len);
        self.free_at[from] = at;
        for to in (0..self.count).filter(|&to| to != from) {
            // As the reference: distance over the ground.
            let distance_m = positions[from].truncate().distance(positions[to].truncate());
            let loss = self.model.loss(distance_m);
            let disturbed = self.disturbances.lose(now, from, to);
            let reach = (distance_m / REACH_M + 0.5) as usize;
            let is_lost = self.draw(now, from, to) < loss || disturbed;
            let losses = &mut self.by_distance[reach.min(REACHES - 1)];
            losses.sent += 1;
            losses.lost += u64::from(is_lost);
            if is_lost {
                self.counters.lost += 1;
            } else {
                self.counters.delivered += 1;
                let (late, again) = self.disturbances.delay(now, from, to);
                out.push(Delivery { to, at: at + late });
                out.extend(again.map(|by| Delivery { to, at: at + late + by }));
            }
        }
    }

    fn draw(&mut self, now: Instant, from: usize, to: usize) -> f64 {
        match self.draw {
            Draw::PerPacket => rng::uniform(&mut self.links[from * self.count + to]),
            Draw::PerSecond => {
                let second = now.as_micros() / 1_000_000;
                let (known, drawn) = self.drawn[from * self.count + to];
                if known == second {
                    return drawn;
                }
                let pair = (from.min(to) * self.count + from.max(to)) as u64;
                let drawn = rng::uniform(&mut self.seconds.child(pair << 32 | second));
                self.drawn[from * self.count + to] = (second, drawn);
                self.drawn[to * self.count + from] = (second, drawn);
                drawn
            }
        }
    }

    /// Datagrams sent, delivered and lost so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What it lost so far, by distance: the first range is up to half of [`REACH_M`], each other around a
    /// multiple of it.
    pub fn losses_by_distance(&self) -> &[Losses; REACHES] {
        &self.by_distance
    }
}

impl Medium for Channel {
    fn disturb(&mut self, fault: Fault) {
        Channel::disturb(self, fault);
    }

    fn moved(&mut self, _: Instant, _: &[DVec3]) {}

    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        positions: &[DVec3],
        out: &mut Vec<Reception>,
    ) {
        let mut deliveries = core::mem::take(&mut self.deliveries);
        Channel::transmit(self, now, from, bytes.len(), positions, &mut deliveries);
        out.extend(deliveries.chunk_by(|a, b| a.at == b.at).map(|together| Reception {
            at: together[0].at,
            from,
            to: together.iter().map(|delivery| delivery.to).collect(),
            bytes: Arc::clone(&bytes),
        }));
        deliveries.clear();
        self.deliveries = deliveries;
    }

    /// Everything is known when it is sent.
    fn advance(&mut self, _: Instant, _: &mut Vec<Reception>) -> Result<(), String> {
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        Instant::NEVER
    }

    fn counters(&self) -> Counters {
        Channel::counters(self)
    }

    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        Channel::losses_by_distance(self)
    }
}

/// Time on the air of `len` bytes of UDP payload in 802.11a at 6 Mbit/s: 20 µs of preamble and header,
/// then 4 µs for every 24 bits of payload and 59 bytes of MAC, LLC, IP and UDP (IEEE 802.11-2016,
/// clause 17.4.3).
pub fn airtime(len: usize) -> Duration {
    Duration::from_micros(20 + 4 * (len as u64 + 59).div_ceil(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(distances_m: &[f64]) -> Vec<DVec3> {
        distances_m.iter().map(|&x| DVec3::new(x, 0.0, 0.0)).collect()
    }

    fn share_lost(draw: Draw, distance_m: f64, packets: u64) -> f64 {
        let mut channel = Channel::new(Model::Ieee80211a, draw, 5, 2);
        let mut out = Vec::new();
        for i in 0..packets {
            channel.transmit(Instant::from_millis(i * 200), 0, 50, &line(&[0.0, distance_m]), &mut out);
        }
        channel.counters().lost as f64 / packets as f64
    }

    #[test]
    fn loss_is_the_published_polynomial() {
        assert!((Model::Ieee80211a.loss(1000.0) - 0.56745).abs() < 1e-9);
        assert_eq!(Model::Ieee80211a.loss(1350.1), 1.0);
        for draw in [Draw::PerPacket, Draw::PerSecond] {
            let lost = share_lost(draw, 600.0, 20_000);
            assert!((lost - Model::Ieee80211a.loss(600.0)).abs() < 0.02, "{draw:?} {lost}");
        }
    }

    #[test]
    fn a_table_is_read_between_its_rows() {
        let table = Model::Table([(100.0, 0.1), (200.0, 0.3), (300.0, 1.0)].into());
        let expected =
            [(0.0, 0.1), (100.0, 0.1), (150.0, 0.2), (200.0, 0.3), (250.0, 0.65), (300.0, 1.0), (9e9, 1.0)];
        for (distance_m, share) in expected {
            assert!(
                (table.loss(distance_m) - share).abs() < 1e-12,
                "{distance_m}: {}",
                table.loss(distance_m)
            );
        }
    }

    #[test]
    fn a_second_is_lost_whole_and_both_ways() {
        let mut channel = Channel::new(Model::Ieee80211a, Draw::PerSecond, 5, 2);
        let positions = line(&[0.0, 900.0]);
        let mut by_second = std::collections::BTreeMap::<u64, Vec<bool>>::new();
        for ms in (0..60_000).step_by(200) {
            for from in 0..2 {
                let mut out = Vec::new();
                channel.transmit(Instant::from_millis(ms), from, 50, &positions, &mut out);
                by_second.entry(ms / 1000).or_default().push(out.is_empty());
            }
        }
        assert!(by_second.values().all(|s| s.iter().all(|&lost| lost == s[0])));
        assert!(by_second.values().any(|s| s[0]) && by_second.values().any(|s| !s[0]));
    }

    #[test]
    fn fixed_range_and_airtime() {
        let mut channel = Channel::new(Model::FixedRange { range_m: 100.0 }, Draw::PerPacket, 1, 3);
        let mut out = Vec::new();
        channel.transmit(Instant::ZERO, 0, 705, &line(&[0.0, 99.0, 101.0]), &mut out);
        // 705 bytes take 1.040 ms (the reference's own example).
        assert_eq!(out, [Delivery { to: 1, at: Instant::from_micros(1040) }]);
    }

    #[test]
    fn losses_are_counted_where_they_happen() {
        let mut channel = Channel::new(Model::FixedRange { range_m: 220.0 }, Draw::PerPacket, 1, 4);
        let mut out = Vec::new();
        channel.transmit(Instant::ZERO, 0, 50, &line(&[0.0, 210.0, 240.0, 9_000.0]), &mut out);
        let found: Vec<(usize, Losses)> =
            channel.losses_by_distance().iter().copied().enumerate().filter(|(_, l)| l.sent > 0).collect();
        assert_eq!(found, [(2, Losses { sent: 2, lost: 1 }), (25, Losses { sent: 1, lost: 1 })]);
    }

    #[test]
    fn a_name_is_parsed_or_explained() {
        assert_eq!("range:250".parse(), Ok(Model::FixedRange { range_m: 250.0 }));
        for bad in ["", "range:", "range:NaN", "range:-1", "wifi"] {
            assert!(bad.parse::<Model>().unwrap_err().contains(bad), "{bad}");
        }
    }
}
