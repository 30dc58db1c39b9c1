//! What the system knows of this process.

use std::error::Error;
use std::fs;

/// Seconds that this process, which has one thread, had a core for itself (proc(5): schedstat). On a core that
/// nobody else wants it is the time by the clock.
pub(crate) fn on_core_s() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns as f64 * 1e-9)
}
