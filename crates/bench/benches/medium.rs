//! How many receptions the medium delivers in a second of one core: a hundred radios in range of each other, 705 bytes
//! five times a second each, the datagrams' hand-over included.
//!
//! `cargo bench --package wingbeat-bench --bench medium [-- RUNS]`

use anyhow::{Context, Result};
use wingbeat_bench::saturation::{Geometry, Load};
use wingbeat_bench::sky::on_core_s;
use wingbeat_sim::medium::csma::Config;

/// Simulated seconds of each run.
const SECONDS: u64 = 61;

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let runs = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let runs: usize = runs.map_or(Ok(5), |runs| runs.parse()).context("RUNS: expected a number")?;
    let load = Load { geometry: Geometry::Equal, nodes: 100, payload_bytes: 705, rate_hz: 5.0 };
    let mut rates = Vec::new();
    for seed in 0..runs.max(1) as u64 {
        let began_s = on_core_s()?;
        let received = load.run(&Config::default(), seed, SECONDS).statistics.received;
        rates.push(received as f64 / (on_core_s()? - began_s) * 1e-6);
    }
    rates.sort_by(f64::total_cmp);
    let (least, median, most) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
    println!(
        "medium: {median:.2} million receptions per second of one core (median; {least:.2} to {most:.2} in {} runs)",
        rates.len()
    );
    Ok(())
}
