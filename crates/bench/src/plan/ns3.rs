//! The section of a plan that describes ns-3 as the medium.

use anyhow::{Result, anyhow, ensure};
use serde::Deserialize;
use wingbeat_cosim::method::{Method, PACE};
use wingbeat_cosim::ns3::{Config, End, Flow, Reach};
use wingbeat_geo::DVec3;

/// What differs from [`Config::default`]. Every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ns3 {
    /// `next-event`, `coupled`, `stepwise` or `asynchronous`: how the flight and ns-3 keep one time.
    pub method: Option<String>,
    /// Where it is asynchronous: seconds of ns-3 in a second of the flight.
    pub asynchronous_pace: Option<f64>,
    /// `none`, `aodv`, `olsr` or `dsdv`.
    pub routing: Option<String>,
    /// Of every frame, Mbit/s: 6, 9, 12, 18, 24, 36, 48 or 54.
    pub rate_mbit_s: Option<u8>,
    /// Power of every radio and the gains of both antennas, dBm.
    pub power_dbm: Option<f64>,
    /// Noise of a receiver above that of its channel, dB.
    pub noise_figure_db: Option<f64>,
    /// Exponent of the loss by distance.
    pub exponent: Option<f64>,
    /// Loss over the first metre, dB.
    pub first_metre_db: Option<f64>,
    /// Instead of a loss by distance: all within receive alike, none beyond, metres.
    pub range_m: Option<f64>,
    /// Nodes on the ground, metres east and north of the bench's origin and above its ground: they receive flows and pass them
    /// on.
    #[serde(default)]
    pub ground_east_north_up_m: Vec<[f64; 3]>,
    /// Traffic beside that of the aircraft.
    #[serde(default)]
    pub flow: Vec<PlannedFlow>,
}

/// Constant bit rate by UDP from one aircraft to another, or to a node on the ground.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedFlow {
    /// The sender, counted from 1.
    pub from: usize,
    /// The receiver, counted from 1,
    pub to: Option<usize>,
    /// or the node on the ground, counted from 1.
    pub to_ground: Option<usize>,
    /// Of payload, kbit/s.
    pub kbit_s: f64,
    /// Of each datagram, 4 to 1472 bytes.
    pub payload_bytes: u16,
    /// Its begin, seconds after the flight controllers were switched on.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
}

/// Of 802.11a.
const RATES_MBIT_S: [u8; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
/// A day of simulated time.
const LATEST_S: f64 = 86_400.0;

fn within(key: &str, found: f64, low: f64, high: f64) -> Result<f64> {
    ensure!((low..=high).contains(&found), "channel.ns3.{key}: found {found}, expected {low} to {high}");
    Ok(found)
}

impl Ns3 {
    /// The medium; with another routing or method if one is named.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn config(&self, routing: Option<&str>, method: Option<&str>) -> Result<Config> {
        let default = Config::default();
        let routing = routing.or(self.routing.as_deref()).map_or(Ok(default.routing), str::parse);
        let rate_mbit_s = self.rate_mbit_s.unwrap_or(default.rate_mbit_s);
        ensure!(
            RATES_MBIT_S.contains(&rate_mbit_s),
            "channel.ns3.rate_mbit_s: found {rate_mbit_s}, expected one of {RATES_MBIT_S:?}"
        );
        let number = |key: &str, found: Option<f64>, default: f64, low: f64, high: f64| {
            found.map_or(Ok(default), |found| within(key, found, low, high))
        };
        Ok(Config {
            method: self.method(method)?,
            routing: routing.map_err(|error| anyhow!("channel.ns3.routing: {error}"))?,
            reach: self.reach(default.reach)?,
            power_dbm: number("power_dbm", self.power_dbm, default.power_dbm, -50.0, 60.0)?,
            noise_figure_db: number(
                "noise_figure_db",
                self.noise_figure_db,
                default.noise_figure_db,
                0.0,
                30.0,
            )?,
            rate_mbit_s,
            flows: self
                .flow
                .iter()
                .map(|flow| flow.read(self.ground_east_north_up_m.len()))
                .collect::<Result<_>>()?,
            ground: self
                .ground_east_north_up_m
                .iter()
                .flatten()
                .map(|metres| within("ground_east_north_up_m", *metres, -100_000.0, 100_000.0))
                .collect::<Result<Vec<_>>>()?
                .chunks(3)
                .map(DVec3::from_slice)
                .collect(),
        })
    }

    fn method(&self, named: Option<&str>) -> Result<Method> {
        let pace = within("asynchronous_pace", self.asynchronous_pace.unwrap_or(PACE), 0.1, 10.0)?;
        let method = named.or(self.method.as_deref()).map_or(Ok(Method::default()), str::parse);
        Ok(match method.map_err(|error| anyhow!("channel.ns3.method: {error}"))? {
            Method::Asynchronous { .. } => Method::Asynchronous { pace },
            method @ (Method::NextEvent | Method::Coupled | Method::Stepwise) => method,
        })
    }

    fn reach(&self, default: Reach) -> Result<Reach> {
        let by_distance = self.exponent.is_some() || self.first_metre_db.is_some();
        match (self.range_m, default) {
            (Some(_), _) if by_distance => Err(anyhow!(
                "channel.ns3.range_m: found exponent or first_metre_db too, expected the range alone"
            )),
            (Some(range_m), _) => Ok(Reach::Range { range_m: within("range_m", range_m, 1.0, 100_000.0)? }),
            (None, Reach::LogDistance { exponent, first_metre_db }) => Ok(Reach::LogDistance {
                exponent: within("exponent", self.exponent.unwrap_or(exponent), 1.0, 6.0)?,
                first_metre_db: within(
                    "first_metre_db",
                    self.first_metre_db.unwrap_or(first_metre_db),
                    0.0,
                    120.0,
                )?,
            }),
            (None, range @ Reach::Range { .. }) => Ok(range),
        }
    }
}

impl PlannedFlow {
    fn read(&self, ground: usize) -> Result<Flow> {
        let &Self { from, to, to_ground, kbit_s, payload_bytes, from_s, until_s } = self;
        ensure!(
            from >= 1 && to != Some(0),
            "channel.ns3.flow: found aircraft 0, expected them counted from 1"
        );
        let to = match (to, to_ground) {
            (Some(to), None) => {
                ensure!(
                    from != to,
                    "channel.ns3.flow: found {from} as sender and receiver, expected two aircraft"
                );
                End::Radio(to - 1)
            }
            (None, Some(node)) => {
                ensure!(
                    (1..=ground).contains(&node),
                    "channel.ns3.flow.to_ground: found {node}, expected 1 to {ground}, the nodes of ground_east_north_up_m"
                );
                End::Ground(node - 1)
            }
            _ => return Err(anyhow!("channel.ns3.flow: expected either to or to_ground")),
        };
        within("flow.kbit_s", kbit_s, 0.001, 54_000.0)?;
        within("flow.payload_bytes", payload_bytes.into(), 4.0, 1472.0)?;
        within("flow.from_s", from_s, 0.0, LATEST_S)?;
        within("flow.until_s", until_s, 0.0, LATEST_S)?;
        ensure!(
            from_s < until_s,
            "channel.ns3.flow.until_s: found {until_s}, expected more than from_s, {from_s}"
        );
        Ok(Flow { from: from - 1, to, kbit_s, payload_bytes, seconds: (from_s, until_s) })
    }
}

#[cfg(test)]
mod tests {
    use wingbeat_cosim::ns3::Routing;

    use super::*;

    fn read(text: &str) -> Result<Config> {
        toml::from_str::<Ns3>(text)?.config(None, None)
    }

    #[test]
    fn every_key_is_read() {
        assert_eq!(read("").unwrap(), Config::default());
        let config = read(
            "method = \"asynchronous\"\nasynchronous_pace = 1.5\nrouting = \"aodv\"\nrate_mbit_s = 12\npower_dbm = 20\nnoise_figure_db = 5\nrange_m = 250\n\
             [[flow]]\nfrom = 1\nto = 6\nkbit_s = 100\npayload_bytes = 512\nfrom_s = 10\nuntil_s = 70\n",
        )
        .unwrap();
        assert_eq!(
            config,
            Config {
                method: Method::Asynchronous { pace: 1.5 },
                routing: Routing::Aodv,
                reach: Reach::Range { range_m: 250.0 },
                power_dbm: 20.0,
                noise_figure_db: 5.0,
                rate_mbit_s: 12,
                flows: vec![Flow {
                    from: 0,
                    to: End::Radio(5),
                    kbit_s: 100.0,
                    payload_bytes: 512,
                    seconds: (10.0, 70.0)
                }],
                ground: Vec::new(),
            }
        );
        let sink = "ground_east_north_up_m = [[1, 2, 3], [0, 0, 1.5]]\n\
             [[flow]]\nfrom = 3\nto_ground = 2\nkbit_s = 1\npayload_bytes = 4\nfrom_s = 0\nuntil_s = 1\n";
        let config = read(sink).unwrap();
        assert_eq!(config.ground, [DVec3::new(1.0, 2.0, 3.0), DVec3::new(0.0, 0.0, 1.5)]);
        assert_eq!((config.flows[0].from, config.flows[0].to), (2, End::Ground(1)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let flow = |keys: &str| format!("[[flow]]\nfrom_s = 1\nuntil_s = 2\npayload_bytes = 100\n{keys}");
        for (text, expected) in [
            (
                "routing = \"rip\"".to_owned(),
                "channel.ns3.routing: found 'rip', expected none, aodv, olsr or dsdv",
            ),
            (
                "method = \"lax\"".to_owned(),
                "channel.ns3.method: found 'lax', expected stepwise, asynchronous, coupled or next-event",
            ),
            (
                "asynchronous_pace = 0".to_owned(),
                "channel.ns3.asynchronous_pace: found 0, expected 0.1 to 10",
            ),
            ("rate_mbit_s = 11".to_owned(), "channel.ns3.rate_mbit_s: found 11, expected one of [6, 9,"),
            ("range_m = 0".to_owned(), "channel.ns3.range_m: found 0, expected 1 to 100000"),
            ("range_m = 9\nexponent = 3".to_owned(), "expected the range alone"),
            ("exponent = nan".to_owned(), "channel.ns3.exponent: found NaN, expected 1 to 6"),
            (flow("from = 0\nto = 2\nkbit_s = 1"), "found aircraft 0, expected them counted from 1"),
            (flow("from = 2\nto = 2\nkbit_s = 1"), "found 2 as sender and receiver, expected two aircraft"),
            (
                flow("from = 1\nto = 2\nkbit_s = 0"),
                "channel.ns3.flow.kbit_s: found 0, expected 0.001 to 54000",
            ),
            ("mode = 1".to_owned(), "unknown field `mode`"),
            (flow("from = 1\nkbit_s = 1"), "expected either to or to_ground"),
            (flow("from = 1\nto = 2\nto_ground = 1\nkbit_s = 1"), "expected either to or to_ground"),
            (flow("from = 1\nto_ground = 1\nkbit_s = 1"), "to_ground: found 1, expected 1 to 0"),
            ("ground_east_north_up_m = [[0, 0, inf]]".to_owned(), "found inf, expected -100000 to 100000"),
        ] {
            let message = format!("{:#}", read(&text).unwrap_err());
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
