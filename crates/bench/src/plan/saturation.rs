//! The section of a plan in which radios without aircraft load the medium.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::saturation::{Geometry, Load};

/// Radios that broadcast.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saturation {
    /// What ns-3 came to: a file, relative to the plan.
    pub reference: String,
    /// The loads.
    pub load: Vec<Loads>,
}

/// Loads that differ in the number of radios.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loads {
    /// `equal` or `discMETRES`.
    pub geometry: String,
    /// Numbers of radios.
    pub nodes: Vec<usize>,
    /// UDP payload of a datagram, bytes.
    pub payload_bytes: usize,
    /// Datagrams of each radio in a second.
    pub rate_hz: f64,
}

/// Links grow with the square of the radios.
const NODES_MAX: usize = 1000;
/// What a datagram carries at most without fragments.
const PAYLOAD_MAX: usize = 1472;

impl Saturation {
    /// Every load.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn loads(&self) -> Result<Vec<Load>> {
        let mut all = Vec::new();
        for loads in &self.load {
            let Loads { payload_bytes, rate_hz, .. } = *loads;
            let geometry: Geometry = loads.geometry.parse().context("saturation.load")?;
            ensure!(
                (1..=PAYLOAD_MAX).contains(&payload_bytes),
                "saturation.load.payload_bytes: found {payload_bytes}, expected 1 to {PAYLOAD_MAX}"
            );
            ensure!(
                (0.01..=10_000.0).contains(&rate_hz),
                "saturation.load.rate_hz: found {rate_hz}, expected 0.01 to 10000"
            );
            for &nodes in &loads.nodes {
                ensure!(
                    (2..=NODES_MAX).contains(&nodes),
                    "saturation.load.nodes: found {nodes}, expected 2 to {NODES_MAX}"
                );
                all.push(Load { geometry, nodes, payload_bytes, rate_hz });
            }
        }
        ensure!(!all.is_empty(), "saturation.load: found no number of nodes, expected one or more");
        Ok(all)
    }

    /// Only so many radios.
    pub(super) fn keep(&mut self, nodes: Option<usize>) -> Result<()> {
        let Some(nodes) = nodes else { return Ok(()) };
        self.load.iter_mut().for_each(|loads| loads.nodes.retain(|n| *n == nodes));
        self.load.retain(|loads| !loads.nodes.is_empty());
        ensure!(!self.load.is_empty(), "aircraft: found {nodes}, expected a number that saturation.load has");
        Ok(())
    }
}
