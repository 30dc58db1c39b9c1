//! The section of a plan that describes a medium of 802.11 frames.

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::channel::Draw;
use wingbeat_sim::medium::csma::{Capture, Config};
use wingbeat_sim::medium::link;

/// What differs from [`Config::default`]. Every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Csma {
    /// Power of every radio and the gains of both antennas, dBm.
    pub power_dbm: Option<f64>,
    /// Exponent of the loss by distance.
    pub exponent: Option<f64>,
    /// Loss over the first metre, dB.
    pub first_metre_db: Option<f64>,
    /// Instead of an exponent: pairs of metres and dB, metres rising.
    #[serde(default)]
    pub table: Vec<(f64, f64)>,
    /// Noise of a receiver above that of its channel, dB.
    pub noise_figure_db: Option<f64>,
    /// `never`, `stronger` or `later`: what becomes of frames that overlap.
    pub capture: Option<String>,
    /// Nakagami's m of the fading, which `channel.draw` draws; none without it.
    pub fading_m: Option<u8>,
    /// Losses in bursts.
    pub bursts: Option<Bursts>,
    /// Datagrams that a radio keeps until it can send them.
    pub queue: Option<usize>,
    /// A datagram that waited longer is not sent, milliseconds.
    pub lifetime_ms: Option<u64>,
    /// Groups that do not reach each other.
    #[serde(default)]
    pub partition: Vec<Partition>,
    /// Sources of noise.
    #[serde(default)]
    pub jammer: Vec<Jammer>,
}

/// Losses in bursts, after Gilbert and Elliott.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// How long the good state lasts, mean, milliseconds.
    pub good_ms: u64,
    /// How long the bad state lasts, mean, milliseconds.
    pub bad_ms: u64,
    /// Share of frames lost in the good state.
    #[serde(default)]
    pub lost_in_good: f64,
    /// Share of frames lost in the bad state.
    pub lost_in_bad: f64,
}

/// A group of aircraft and all others do not reach each other for a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The group, aircraft counted from 1.
    pub aircraft: Vec<usize>,
    /// Its begin, seconds after the flight controllers were switched on.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
}

/// A source of noise.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jammer {
    /// Metres east, north and up of the world's origin.
    pub at_m: [f64; 3],
    /// What it radiates, the antennas' gains included, dBm.
    pub power_dbm: f64,
    /// Its begin, seconds.
    pub from_s: f64,
    /// Its end, seconds.
    pub until_s: f64,
    /// It radiates for so long of each period, milliseconds; without it always.
    pub on_ms: Option<u64>,
    /// The period, milliseconds.
    pub period_ms: Option<u64>,
}

fn within(key: &str, found: f64, low: f64, high: f64) -> Result<f64> {
    ensure!((low..=high).contains(&found), "channel.csma.{key}: found {found}, expected {low} to {high}");
    Ok(found)
}

/// A day of simulated time.
const LATEST_S: f64 = 86_400.0;

fn span(key: &str, from_s: f64, until_s: f64) -> Result<(Instant, Instant)> {
    let micros = |part: &str, s: f64| {
        Ok::<_, anyhow::Error>((within(&format!("{key}.{part}"), s, 0.0, LATEST_S)? * 1e6) as u64)
    };
    let (from, until) = (micros("from_s", from_s)?, micros("until_s", until_s)?);
    ensure!(from < until, "channel.csma.{key}.until_s: found {until_s}, expected more than from_s, {from_s}");
    Ok((Instant::from_micros(from), Instant::from_micros(until)))
}

impl Csma {
    /// The medium.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn config(&self, draw: Draw) -> Result<Config> {
        let default = Config::default();
        let number = |key: &str, found: Option<f64>, default: f64, low: f64, high: f64| {
            found.map_or(Ok(default), |found| within(key, found, low, high))
        };
        let m = self.fading_m.map(|m| within("fading_m", m.into(), 1.0, 16.0).map(|_| m)).transpose()?;
        let fading = match (m, draw) {
            (None, _) => link::Fading::None,
            (Some(m), Draw::PerPacket) => link::Fading::PerPacket { m },
            (Some(m), Draw::PerSecond) => link::Fading::PerSecond { m },
        };
        let queue = within("queue", self.queue.unwrap_or(default.queue) as f64, 1.0, 10_000.0)? as usize;
        let lifetime_ms = match self.lifetime_ms {
            Some(ms) => Duration::from_millis(within("lifetime_ms", ms as f64, 1.0, 60_000.0)? as u64),
            None => default.lifetime,
        };
        Ok(Config {
            propagation: self.propagation(&default.propagation)?,
            power_dbm: number("power_dbm", self.power_dbm, default.power_dbm, -50.0, 60.0)?,
            noise_figure_db: number(
                "noise_figure_db",
                self.noise_figure_db,
                default.noise_figure_db,
                0.0,
                30.0,
            )?,
            capture: self.capture(default.capture)?,
            fading,
            bursts: self.bursts.as_ref().map(Bursts::read).transpose()?,
            queue,
            lifetime: lifetime_ms,
            partitions: self.partition.iter().map(Partition::read).collect::<Result<_>>()?,
            jammers: self.jammer.iter().map(Jammer::read).collect::<Result<_>>()?,
        })
    }

    fn propagation(&self, default: &link::Propagation) -> Result<link::Propagation> {
        if self.table.is_empty() {
            let link::Propagation::LogDistance { exponent, first_metre_db } = *default else {
                bail!("channel.csma: expected a default by distance");
            };
            return Ok(link::Propagation::LogDistance {
                exponent: within("exponent", self.exponent.unwrap_or(exponent), 1.0, 6.0)?,
                first_metre_db: within(
                    "first_metre_db",
                    self.first_metre_db.unwrap_or(first_metre_db),
                    0.0,
                    120.0,
                )?,
            });
        }
        ensure!(
            self.exponent.is_none() && self.first_metre_db.is_none(),
            "channel.csma.table: found exponent or first_metre_db too, expected the table alone"
        );
        ensure!(
            self.table.len() <= 1000,
            "channel.csma.table: found {} rows, expected 1000 at most",
            self.table.len()
        );
        for &(metres, loss_db) in &self.table {
            within("table (metres)", metres, 0.0, 100_000.0)?;
            within("table (dB)", loss_db, 0.0, 300.0)?;
        }
        for pair in self.table.windows(2) {
            let (first, second) = (pair[0].0, pair[1].0);
            ensure!(
                first < second,
                "channel.csma.table: found {second} m after {first} m, expected metres rising"
            );
        }
        Ok(link::Propagation::Table(self.table.clone()))
    }

    fn capture(&self, default: Capture) -> Result<Capture> {
        Ok(match self.capture.as_deref() {
            None => default,
            Some("never") => Capture::Never,
            Some("stronger") => Capture::Stronger,
            Some("later") => Capture::Later,
            Some(other) => bail!("channel.csma.capture: found '{other}', expected never, stronger or later"),
        })
    }
}

impl Bursts {
    fn read(&self) -> Result<link::Bursts> {
        let millis =
            |key: &str, ms: u64| within(key, ms as f64, 1.0, 3_600_000.0).map(|_| Duration::from_millis(ms));
        Ok(link::Bursts {
            good: millis("bursts.good_ms", self.good_ms)?,
            bad: millis("bursts.bad_ms", self.bad_ms)?,
            lost_in_good: within("bursts.lost_in_good", self.lost_in_good, 0.0, 1.0)?,
            lost_in_bad: within("bursts.lost_in_bad", self.lost_in_bad, 0.0, 1.0)?,
        })
    }
}

impl Partition {
    fn read(&self) -> Result<link::Partition> {
        let (from, until) = span("partition", self.from_s, self.until_s)?;
        let mut group = 0u128;
        for &aircraft in &self.aircraft {
            let most = wingbeat_wire::SWARM_MAX;
            ensure!(
                (1..=most).contains(&aircraft),
                "channel.csma.partition.aircraft: found {aircraft}, expected 1 to {most}"
            );
            group |= 1 << (aircraft - 1);
        }
        Ok(link::Partition { group, from, until })
    }
}

impl Jammer {
    fn read(&self) -> Result<link::Jammer> {
        let (from, until) = span("jammer", self.from_s, self.until_s)?;
        for metres in self.at_m {
            within("jammer.at_m", metres, -100_000.0, 100_000.0)?;
        }
        let (on_ms, period_ms) = match (self.on_ms, self.period_ms) {
            (None, None) => (1, 1),
            (Some(on_ms), Some(period_ms)) => {
                within("jammer.period_ms", period_ms as f64, 1.0, 3_600_000.0)?;
                (within("jammer.on_ms", on_ms as f64, 1.0, period_ms as f64)? as u64, period_ms)
            }
            _ => bail!("channel.csma.jammer: found one of on_ms and period_ms, expected both or none"),
        };
        Ok(link::Jammer {
            at_m: DVec3::from_array(self.at_m),
            power_dbm: within("jammer.power_dbm", self.power_dbm, -50.0, 80.0)?,
            from,
            until,
            on: Duration::from_millis(on_ms),
            period: Duration::from_millis(period_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, staircase};

    fn read(text: &str) -> Result<Config> {
        let csma: Csma = toml::from_str(text)?;
        csma.config(Draw::PerPacket)
    }

    #[test]
    fn every_key_is_read() {
        assert_eq!(read("").unwrap(), Config::default());
        let text = "power_dbm = 16.0\nexponent = 2.7\nfirst_metre_db = 46.7\nnoise_figure_db = 10.0\ncapture = \"later\"\n\
            fading_m = 3\nqueue = 7\nlifetime_ms = 40\n\
            bursts = { good_ms = 900, bad_ms = 100, lost_in_bad = 0.8 }\n\
            [[partition]]\naircraft = [1, 3]\nfrom_s = 2.5\nuntil_s = 3.0\n\
            [[jammer]]\nat_m = [1, 2, 3]\npower_dbm = 20.0\nfrom_s = 0\nuntil_s = 9\non_ms = 2\nperiod_ms = 10\n";
        let config = read(text).unwrap();
        assert_eq!(
            config.propagation,
            link::Propagation::LogDistance { exponent: 2.7, first_metre_db: 46.7 }
        );
        assert_eq!((config.power_dbm, config.noise_figure_db, config.capture), (16.0, 10.0, Capture::Later));
        assert_eq!((config.fading, config.queue), (link::Fading::PerPacket { m: 3 }, 7));
        assert_eq!(config.lifetime, Duration::from_millis(40));
        assert_eq!(config.bursts.map(|b| (b.lost_in_good, b.lost_in_bad)), Some((0.0, 0.8)));
        assert_eq!(
            (config.partitions[0].group, config.partitions[0].from),
            (0b101, Instant::from_millis(2500))
        );
        assert_eq!((config.jammers[0].at_m.z, config.jammers[0].on), (3.0, Duration::from_millis(2)));
        let config = read("table = [[0, 40], [100, 80]]").unwrap();
        assert_eq!(config.propagation, link::Propagation::Table(vec![(0.0, 40.0), (100.0, 80.0)]));
    }

    #[test]
    fn what_flies_in_real_time_refuses_it() {
        let mut scenario = Scenario::muscop("stairs", staircase(2, 100.0, 10.0));
        assert!(scenario.real_time_channel(1).is_ok());
        scenario.csma = Some(Config::default());
        let message = scenario.real_time_channel(1).map(drop).unwrap_err().to_string();
        assert!(message.contains("channel.model: found csma, expected unrestricted"), "{message}");
    }

    #[test]
    fn bad_keys_are_named() {
        for (text, words) in [
            ("powr = 1", "unknown field `powr`"),
            ("exponent = nan", "channel.csma.exponent: found NaN, expected 1 to 6"),
            ("power_dbm = 99.0", "power_dbm: found 99"),
            ("capture = \"always\"", "capture: found 'always', expected never, stronger or later"),
            ("fading_m = 0", "fading_m: found 0"),
            ("queue = 0", "queue: found 0"),
            ("lifetime_ms = 0", "lifetime_ms: found 0"),
            ("table = [[10, 40], [10, 80]]", "found 10 m after 10 m"),
            ("table = [[10, 40]]\nexponent = 2.0", "expected the table alone"),
            ("bursts = { good_ms = 0, bad_ms = 1, lost_in_bad = 1.0 }", "bursts.good_ms: found 0"),
            ("bursts = { good_ms = 1, bad_ms = 1, lost_in_bad = 1.1 }", "bursts.lost_in_bad: found 1.1"),
            (
                "[[partition]]\naircraft = [0]\nfrom_s = 0\nuntil_s = 1",
                "aircraft: found 0, expected 1 to 128",
            ),
            (
                "[[partition]]\naircraft = [1]\nfrom_s = 2\nuntil_s = 1",
                "until_s: found 1, expected more than from_s, 2",
            ),
            (
                "[[jammer]]\nat_m = [0, 0, 0]\npower_dbm = 1\nfrom_s = 0\nuntil_s = 1\non_ms = 1",
                "expected both or none",
            ),
        ] {
            let message = format!("{:#}", read(text).unwrap_err());
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
