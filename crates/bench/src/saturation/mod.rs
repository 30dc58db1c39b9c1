//! The medium under load, without aircraft: radios that broadcast at a rate each, as ns-3 simulates them and as the
//! authors of ArduSim loaded their channel (their Table 3).

pub mod reference;
pub mod table;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anyhow::{Result, bail};
use wingbeat_geo::DVec3;
use wingbeat_sim::medium::Reception;
use wingbeat_sim::medium::csma::{Config, Csma};
use wingbeat_sim::medium::link::Propagation;
use wingbeat_sim::medium::statistics::Statistics;
use wingbeat_sim::medium::timing::Nanos;
use wingbeat_sim::rng;

/// Where the radios are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Geometry {
    /// Each receives each with -60 dBm.
    Equal,
    /// Anywhere in a disc; 16.02 dBm, and a loss that grows with the exponent 2.7 from 46.68 dB at 1 m on, as by default
    /// in ns-3 but for the exponent.
    Disc {
        /// Its radius, metres.
        radius_m: f64,
    },
}

impl std::str::FromStr for Geometry {
    type Err = anyhow::Error;
    /// `equal` or `discMETRES`.
    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("disc").map(str::parse::<f64>) {
            _ if text == "equal" => Ok(Self::Equal),
            Some(Ok(radius_m)) if (1.0..=10_000.0).contains(&radius_m) => Ok(Self::Disc { radius_m }),
            _ => bail!("geometry: found '{text}', expected equal or discMETRES (1 to 10000)"),
        }
    }
}

impl std::fmt::Display for Geometry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Disc { radius_m } => write!(f, "disc{radius_m}"),
        }
    }
}

impl Geometry {
    fn propagation(self) -> (Propagation, f64) {
        match self {
            Self::Equal => (Propagation::Equal { power_dbm: -60.0 }, 0.0),
            Self::Disc { .. } => {
                (Propagation::LogDistance { exponent: 2.7, first_metre_db: 46.6777 }, 16.0206)
            }
        }
    }

    fn position(self, generator: &mut rng::Pcg64Mcg) -> DVec3 {
        match self {
            Self::Equal => DVec3::ZERO,
            Self::Disc { radius_m } => {
                let radius_m = radius_m * rng::uniform(generator).sqrt();
                let (sin, cos) = libm::sincos(rng::uniform(generator) * core::f64::consts::TAU);
                DVec3::new(radius_m * cos, radius_m * sin, 0.0)
            }
        }
    }
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Where the radios are.
    pub geometry: Geometry,
    /// How many.
    pub nodes: usize,
    /// UDP payload of a datagram, bytes.
    pub payload_bytes: usize,
    /// Datagrams of each radio in a second; each period is drawn within ±10 %.
    pub rate_hz: f64,
}

/// What a load came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Counts of the measured time.
    pub statistics: Statistics,
    /// Hash over every reception and its time.
    pub trace_hash: u64,
}

/// Left out at the beginning.
const WARM_UP: Nanos = Nanos::from_micros(1_000_000);

impl Load {
    /// Lets it run; what happens in the first of `seconds` is not counted.
    pub fn run(&self, config: &Config, seed: u64, seconds: u64) -> Outcome {
        let (propagation, power_dbm) = self.geometry.propagation();
        let config = Config { propagation, power_dbm, ..config.clone() };
        let mut medium = Csma::new(config, seed, self.nodes);
        let mut placement = rng::child(seed, "saturation placement", 0);
        let positions: Vec<DVec3> = (0..self.nodes).map(|_| self.geometry.position(&mut placement)).collect();
        medium.moved(wingbeat_geo::Instant::ZERO, &positions);

        let mut generators: Vec<_> =
            (0..self.nodes as u64).map(|i| rng::child(seed, "saturation sending", i)).collect();
        let period_ns = 1e9 / self.rate_hz;
        let mut due: BinaryHeap<Reverse<(Nanos, usize)>> = generators
            .iter_mut()
            .enumerate()
            .map(|(i, generator)| Reverse((Nanos((rng::uniform(generator) * period_ns) as u64), i)))
            .collect();
        let datagram: Arc<[u8]> = vec![0; self.payload_bytes].into();
        let end = Nanos::from_micros(seconds * 1_000_000);
        let (mut before, mut trace_hash) = (None, 0xcbf2_9ce4_8422_2325_u64);
        let mut received = Vec::new();
        while let Some(Reverse((now, from))) = due.pop() {
            if before.is_none() && now >= WARM_UP {
                medium.advance_to(WARM_UP, &mut received);
                before = Some(medium.statistics().clone());
            }
            medium.advance_to(now.min(end), &mut received);
            received.drain(..).for_each(|reception| mix(&mut trace_hash, &reception));
            if now > end {
                break;
            }
            medium.transmit_at(now, from, Arc::clone(&datagram));
            let jitter = 0.9 + 0.2 * rng::uniform(&mut generators[from]);
            due.push(Reverse((now.plus((period_ns * jitter) as u64), from)));
        }
        let statistics = medium.statistics() - &before.unwrap_or_default();
        Outcome { statistics, trace_hash }
    }

    /// Time on the air of all that is to be sent, in units of time.
    pub fn offered(&self) -> f64 {
        let airtime_s = wingbeat_sim::medium::timing::airtime(self.payload_bytes).as_secs_f64();
        self.nodes as f64 * self.rate_hz * airtime_s
    }
}

fn mix(hash: &mut u64, reception: &Reception) {
    let mut add = |value: u64| *hash = (*hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    add(reception.at.as_micros());
    add(reception.from as u64);
    reception.to.iter().for_each(|to| add(*to as u64));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// One seed of 11 s instead of three of 30 s: the tolerances hold all the same.
    #[test]
    fn delivery_and_access_delay_are_those_of_ns_3() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ns3/broadcast.csv");
        let points = reference::read(&path).unwrap();
        let disc = |radius_m| Geometry::Disc { radius_m };
        for (geometry, nodes, payload_bytes) in [
            (Geometry::Equal, 25, 705),
            (Geometry::Equal, 100, 400),
            (Geometry::Equal, 100, 705),
            (Geometry::Equal, 200, 705),
            (disc(30.0), 25, 705),
            (disc(30.0), 100, 400),
            (disc(30.0), 100, 705),
        ] {
            let load = Load { geometry, nodes, payload_bytes, rate_hz: 5.0 };
            let outcomes = [load.run(&Config::default(), 1, 11)];
            let point = reference::find(&points, &load);
            assert!(point.is_some(), "{load:?}");
            let row = table::Row::of(&load, &outcomes, point);
            assert_eq!(row.is_as_ns3(), Some(true), "{}", table::table(&[row]));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_receptions_and_the_first_second_is_not_counted() {
        let load = Load {
            geometry: Geometry::Disc { radius_m: 60.0 },
            nodes: 20,
            payload_bytes: 300,
            rate_hz: 20.0,
        };
        let run = |seed| load.run(&Config::default(), seed, 3);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).trace_hash, run(2).trace_hash);
        // 20 radios, 20 a second, 2 s.
        assert!(run(1).statistics.offered.abs_diff(800) < 40, "{:?}", run(1).statistics);
    }

    #[test]
    fn a_plan_names_what_it_cannot_load() {
        let good = include_str!("../../plans/channel-saturation.toml");
        let read = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("plan.toml");
            std::fs::write(&path, text).unwrap();
            crate::plan::Plan::read(&path)
        };
        let mut plan = read(good).unwrap();
        plan.keep(Some(256), None).unwrap();
        assert_eq!(plan.saturation.as_ref().unwrap().loads().unwrap().len(), 1);
        assert!(plan.keep(Some(7), None).unwrap_err().to_string().contains("found 7"));
        for (from, to, words) in [
            ("\"csma\"", "\"802.11a\"", "channel.model: found '802.11a', expected csma"),
            ("\"disc30\"", "\"disc\"", "geometry: found 'disc', expected equal or discMETRES"),
            ("nodes = [50, 100]", "nodes = [1]", "nodes: found 1, expected 2 to 1000"),
            ("rate_hz = 5.0", "rate_hz = 0.0", "rate_hz: found 0"),
            ("payload_bytes = 400", "payload_bytes = 1473", "payload_bytes: found 1473, expected 1 to 1472"),
            ("table = \"channel-saturation\"", "table = \"flights\"", "expected saturation with table"),
            ("draw = \"packet\"", "draw = \"hour\"", "channel.draw: found 'hour'"),
        ] {
            assert!(good.contains(from), "{from}");
            let message = format!("{:#}", read(&good.replacen(from, to, 1)).unwrap_err());
            assert!(message.contains(words), "{to}: {message}");
        }
    }
}
