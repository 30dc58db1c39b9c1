//! How strong a frame arrives: distance, fading, bursts, partitions, jammers.

use wingbeat_geo::{DVec3, Duration, Instant};

use super::timing::Nanos;
use crate::channel::{REACH_M, REACHES};
use crate::rng::{self, Children, Pcg64Mcg};

/// What distance does to a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Propagation {
    /// Every frame arrives everywhere with the same power: overlapping frames destroy each other.
    Equal {
        /// Power at every antenna, dBm.
        power_dbm: f64,
    },
    /// Loss grows with the logarithm of distance.
    LogDistance {
        /// 2 in free space.
        exponent: f64,
        /// Loss over the first metre, dB.
        first_metre_db: f64,
    },
    /// Pairs of metres and dB, metres rising; linear between them, and no link beyond the last.
    Table(Vec<(f64, f64)>),
}

/// What a link does to a frame beside distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fading {
    /// Nothing.
    None,
    /// The power varies by Nakagami's distribution, drawn for each frame and receiver.
    PerPacket {
        /// Nakagami's m: 1 is Rayleigh fading, more is calmer.
        m: u8,
    },
    /// The same drawn for a pair and second, both directions alike.
    PerSecond {
        /// Nakagami's m.
        m: u8,
    },
}

/// Losses in bursts: each pair is in a good or a bad state, both directions alike, and stays there for a time that is
/// exponentially distributed (Gilbert 1960, Elliott 1963). Frames that are lost so are sensed all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// How long the good state lasts, mean.
    pub good: Duration,
    /// How long the bad state lasts, mean.
    pub bad: Duration,
    /// Share of frames that is lost in the good state.
    pub lost_in_good: f64,
    /// Share of frames that is lost in the bad state.
    pub lost_in_bad: f64,
}

/// Two groups of radios that do not reach each other for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// One group as bits, the lowest for the first radio; all others are the other group.
    pub group: u128,
    /// Its begin.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
}

/// A source of noise on the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jammer {
    /// Where it is, in the frame of the radios' positions.
    pub at_m: DVec3,
    /// What it radiates towards a receiver, antennas included, dBm. Propagation by [`Propagation::Equal`] does not
    /// weaken it.
    pub power_dbm: f64,
    /// Its begin.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
    /// It radiates for `on` of each `period`; always where the two are equal.
    pub on: Duration,
    /// See `on`.
    pub period: Duration,
}

impl Jammer {
    /// Whether it radiates, and when that changes next.
    pub(super) fn state(&self, now: Nanos) -> (bool, Nanos) {
        let (from, until) = (Nanos::of(self.from), Nanos::of(self.until));
        if now < from {
            return (false, from);
        }
        if now >= until {
            return (false, Nanos::NEVER);
        }
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let (on, period) = (nanos(self.on), nanos(self.period).max(1));
        if on >= period {
            return (true, until);
        }
        let into = now.since(from) % period;
        let is_on = into < on;
        (is_on, now.plus(if is_on { on - into } else { period - into }).min(until))
    }
}

/// Milliwatts of so many dBm; 0 of minus infinity.
pub(super) fn milliwatts(dbm: f64) -> f64 {
    libm::exp10(dbm / 10.0)
}

/// Nanoseconds that light takes for a metre.
const NS_PER_M: f64 = 1e9 / 299_792_458.0;
/// Weaker than this is as nothing, 16 dB below a good receiver's noise, milliwatts.
const FAINT_MW: f64 = 1e-11;

/// One direction of a pair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// What arrives, milliwatts.
    pub(super) power_mw: f64,
    /// How much later it arrives.
    pub(super) delay_ns: u32,
    /// Range of distance that its losses are counted in.
    pub(super) reach: u8,
    /// Cut by a partition or a silent radio.
    pub(super) is_cut: bool,
}

/// The links of all pairs as far as they follow from positions.
pub(super) struct Links {
    propagation: Propagation,
    sent_dbm: f64,
    positions: Vec<DVec3>,
    /// Counts the changes of positions.
    version: u64,
    /// By sender, with the version that the row was computed for.
    rows: Vec<(u64, Vec<Link>)>,
}

impl Links {
    pub(super) fn new(propagation: Propagation, sent_dbm: f64, count: usize) -> Self {
        let rows = (0..count).map(|_| (0, vec![Link::default(); count])).collect();
        Self { propagation, sent_dbm, positions: vec![DVec3::ZERO; count], version: 1, rows }
    }

    /// Whether that changed anything.
    pub(super) fn moved(&mut self, positions: &[DVec3]) -> bool {
        assert_eq!(positions.len(), self.positions.len(), "one position per radio");
        if self.positions == positions {
            return false;
        }
        self.positions.copy_from_slice(positions);
        self.version += 1;
        true
    }

    /// From one radio to all; to itself nothing arrives.
    pub(super) fn row(&mut self, from: usize) -> &[Link] {
        if self.rows[from].0 != self.version {
            let at = self.positions[from];
            for to in (0..self.positions.len()).filter(|to| *to != from) {
                let link = self.link(at, self.positions[to], self.sent_dbm);
                self.rows[from].1[to] = link;
            }
            self.rows[from].0 = self.version;
        }
        &self.rows[from].1
    }

    /// What a jammer does at a radio, milliwatts.
    pub(super) fn jammed_mw(&self, jammer: &Jammer, at: usize) -> f64 {
        match self.propagation {
            Propagation::Equal { .. } => milliwatts(jammer.power_dbm),
            Propagation::LogDistance { .. } | Propagation::Table(_) => {
                self.link(jammer.at_m, self.positions[at], jammer.power_dbm).power_mw
            }
        }
    }

    fn link(&self, from: DVec3, to: DVec3, sent_dbm: f64) -> Link {
        let distance_m = from.distance(to);
        let power_mw = match &self.propagation {
            Propagation::Equal { power_dbm } => milliwatts(*power_dbm),
            Propagation::LogDistance { exponent, first_metre_db } => {
                // Nearer than a metre the model has no meaning.
                milliwatts(sent_dbm - first_metre_db) * libm::pow(distance_m.max(1.0), -exponent)
            }
            Propagation::Table(table) => {
                loss_db(table, distance_m).map_or(0.0, |loss_db| milliwatts(sent_dbm - loss_db))
            }
        };
        // As the published models count: distance over the ground.
        let reach = (from.truncate().distance(to.truncate()) / REACH_M + 0.5) as usize;
        Link {
            power_mw: if power_mw < FAINT_MW { 0.0 } else { power_mw },
            delay_ns: (distance_m * NS_PER_M) as u32,
            reach: reach.min(REACHES - 1) as u8,
            is_cut: false,
        }
    }
}

fn loss_db(table: &[(f64, f64)], distance_m: f64) -> Option<f64> {
    let next = table.partition_point(|(metres, _)| *metres < distance_m);
    let (end_m, end_db) = *table.get(next)?;
    let Some(&(start_m, start_db)) = next.checked_sub(1).and_then(|i| table.get(i)) else {
        return Some(end_db);
    };
    Some(start_db + (end_db - start_db) * (distance_m - start_m) / (end_m - start_m))
}

/// What is drawn for links: generators of their own for each, so that traffic on one changes nothing on another.
pub(super) struct Draws {
    fading: Fading,
    bursts: Option<Bursts>,
    count: usize,
    /// One per directed link, `from * count + to`.
    links: Vec<Pcg64Mcg>,
    seconds: Children,
    /// Gain of a pair and its second.
    gains: Vec<(u64, f64)>,
    /// Generator, state (bad) and when that was asked last, one per pair, at the index of its lower radio's link.
    states: Vec<Option<(Pcg64Mcg, bool, Nanos)>>,
    seed: u64,
}

impl Draws {
    pub(super) fn new(fading: Fading, bursts: Option<Bursts>, seed: u64, count: usize) -> Self {
        let per_link = |wanted: bool| if wanted { count * count } else { 0 };
        Self {
            fading,
            bursts,
            count,
            links: (0..count * count).map(|link| rng::child(seed, "radio frame", link as u64)).collect(),
            seconds: Children::of(seed, "radio fading"),
            gains: vec![(u64::MAX, 1.0); per_link(matches!(fading, Fading::PerSecond { .. }))],
            states: vec![None; per_link(bursts.is_some())],
            seed,
        }
    }

    /// Uniform in 0..1 for a directed link.
    pub(super) fn uniform(&mut self, from: usize, to: usize) -> f64 {
        rng::uniform(&mut self.links[from * self.count + to])
    }

    /// Weakens, and sometimes strengthens, what one radio sends to all others.
    pub(super) fn fade(&mut self, now: Nanos, from: usize, row: &mut [Link]) {
        if self.fading == Fading::None {
            return;
        }
        for (to, link) in row.iter_mut().enumerate().filter(|(to, link)| *to != from && link.power_mw > 0.0) {
            link.power_mw *= match self.fading {
                Fading::None => 1.0,
                Fading::PerPacket { m } => gain(&mut self.links[from * self.count + to], m),
                Fading::PerSecond { m } => {
                    let (low, high) = (from.min(to), from.max(to));
                    let (pair, second) = (low * self.count + high, now.0 / 1_000_000_000);
                    if self.gains[pair].0 != second {
                        let mut generator = self.seconds.child((pair as u64) << 32 | second);
                        self.gains[pair] = (second, gain(&mut generator, m));
                    }
                    self.gains[pair].1
                }
            };
        }
    }

    /// Whether a frame is lost in a burst.
    pub(super) fn is_lost_in_burst(&mut self, now: Nanos, from: usize, to: usize) -> bool {
        let Some(bursts) = self.bursts else { return false };
        let pair = from.min(to) * self.count + from.max(to);
        let seed = self.seed;
        let good_rate = 1.0 / bursts.good.as_secs_f64().max(1e-6);
        let bad_rate = 1.0 / bursts.bad.as_secs_f64().max(1e-6);
        // Share of time in the bad state.
        let share = good_rate / (good_rate + bad_rate);
        let (generator, is_bad, asked) = self.states[pair].get_or_insert_with(|| {
            let mut generator = rng::child(seed, "radio bursts", pair as u64);
            let is_bad = rng::uniform(&mut generator) < share;
            (generator, is_bad, now)
        });
        // What the state is after a time of which nothing else is known.
        let memory = libm::exp(-(good_rate + bad_rate) * now.since(*asked) as f64 * 1e-9);
        let bad_now = share + (f64::from(u8::from(*is_bad)) - share) * memory;
        (*is_bad, *asked) = (rng::uniform(generator) < bad_now, now);
        let lost = if *is_bad { bursts.lost_in_bad } else { bursts.lost_in_good };
        rng::uniform(generator) < lost
    }
}

/// Power gain of mean 1: gamma-distributed with shape m, the sum of m exponentials.
fn gain(generator: &mut Pcg64Mcg, m: u8) -> f64 {
    let product: f64 = (0..m).map(|_| 1.0 - rng::uniform(generator)).product();
    -libm::log(product) / f64::from(m)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dbm(mw: f64) -> f64 {
        10.0 * libm::log10(mw)
    }

    fn at(propagation: Propagation, distance_m: f64) -> Link {
        let mut links = Links::new(propagation, 16.0, 2);
        links.moved(&[DVec3::ZERO, DVec3::new(0.0, distance_m, 0.0)]);
        links.row(0)[1]
    }

    #[test]
    fn power_falls_with_the_logarithm_of_distance_or_as_a_table_says() {
        let log = Propagation::LogDistance { exponent: 2.0, first_metre_db: 46.7 };
        assert!((dbm(at(log.clone(), 100.0).power_mw) - (16.0 - 86.7)).abs() < 1e-9);
        assert!((dbm(at(log.clone(), 0.1).power_mw) - (16.0 - 46.7)).abs() < 1e-9);
        assert_eq!(at(log.clone(), 300.0).delay_ns, 1000);
        assert_eq!((at(log.clone(), 349.0).reach, at(log.clone(), 351.0).reach), (3, 4));
        assert_eq!(at(log, 1e5).power_mw, 0.0, "as nothing");
        let table = Propagation::Table(vec![(10.0, 60.0), (110.0, 80.0)]);
        for (metres, loss_db) in [(1.0, 60.0), (10.0, 60.0), (60.0, 70.0), (110.0, 80.0)] {
            assert!((dbm(at(table.clone(), metres).power_mw) - (16.0 - loss_db)).abs() < 1e-9, "{metres}");
        }
        assert_eq!(at(table, 110.1).power_mw, 0.0);
    }

    #[test]
    fn positions_that_stay_keep_their_rows_and_others_do_not() {
        let mut links = Links::new(Propagation::LogDistance { exponent: 2.0, first_metre_db: 46.7 }, 16.0, 2);
        let places = |x| [DVec3::ZERO, DVec3::new(x, 0.0, 0.0)];
        assert!(links.moved(&places(10.0)) && !links.moved(&places(10.0)));
        let near = links.row(0)[1].power_mw;
        assert!(links.moved(&places(20.0)));
        assert!((near / links.row(0)[1].power_mw - 4.0).abs() < 1e-9);
    }

    #[test]
    fn fading_keeps_the_mean_and_has_nakagamis_variance() {
        for m in [1, 4] {
            let mut draws = Draws::new(Fading::PerPacket { m }, None, 3, 2);
            let gains: Vec<f64> = (0..20_000)
                .map(|_| {
                    let mut row = [Link::default(), Link { power_mw: 1.0, ..Link::default() }];
                    draws.fade(Nanos::ZERO, 0, &mut row);
                    row[1].power_mw
                })
                .collect();
            let mean = gains.iter().sum::<f64>() / 20_000.0;
            let variance = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!(
                (mean - 1.0).abs() < 0.03 && (variance * f64::from(m) - 1.0).abs() < 0.1,
                "{m}: {mean} {variance}"
            );
        }
    }

    #[test]
    fn a_second_fades_whole_and_both_ways() {
        let mut draws = Draws::new(Fading::PerSecond { m: 1 }, None, 3, 2);
        let mut gain = |from: usize, ms: u64| {
            let mut row = [Link { power_mw: 1.0, ..Link::default() }; 2];
            draws.fade(Nanos::from_micros(ms * 1000), from, &mut row);
            row[1 - from].power_mw
        };
        let first = gain(0, 0);
        assert!(gain(1, 10) == first && gain(0, 999) == first);
        assert_ne!(gain(0, 1000), first);
    }

    #[test]
    fn bursts_lose_their_share_in_stretches_of_their_length() {
        let bursts = Bursts {
            good: Duration::from_millis(300),
            bad: Duration::from_millis(100),
            lost_in_good: 0.0,
            lost_in_bad: 1.0,
        };
        let mut draws = Draws::new(Fading::None, Some(bursts), 3, 2);
        let asked = 400_000;
        let lost: Vec<bool> = (0..asked)
            .map(|ms: u64| {
                draws.is_lost_in_burst(
                    Nanos::from_micros(ms * 1000),
                    (ms % 2) as usize,
                    1 - (ms % 2) as usize,
                )
            })
            .collect();
        let share = lost.iter().filter(|l| **l).count() as f64 / asked as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let length_ms = share * asked as f64 / bursts;
        assert!((share - 0.25).abs() < 0.02 && (length_ms - 100.0).abs() < 8.0, "{share} {length_ms}");
    }

    #[test]
    fn a_jammer_radiates_when_it_is_to() {
        let seconds = |s| Nanos::of(Instant::from_secs(s));
        let (from, until) = (Instant::from_secs(2), Instant::from_secs(12));
        let (on, period) = (Duration::from_secs(1), Duration::from_secs(4));
        let jammer = Jammer { at_m: DVec3::ZERO, power_dbm: 20.0, from, until, on, period };
        assert_eq!(jammer.state(seconds(0)), (false, seconds(2)));
        assert_eq!(jammer.state(seconds(2)), (true, seconds(3)));
        assert_eq!(jammer.state(seconds(3)), (false, seconds(6)));
        assert_eq!(jammer.state(seconds(11)), (false, seconds(12)));
        assert_eq!(jammer.state(seconds(12)), (false, Nanos::NEVER));
        let always = Jammer { on: period, ..jammer };
        assert_eq!(always.state(seconds(5)), (true, seconds(12)));
    }
}
