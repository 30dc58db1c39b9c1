//! The table of a plan that loads the medium: our figures, those of ns-3 and the published ones side by side.

use std::fmt::Write as _;

use wingbeat_sim::medium::statistics::{Delays, Statistics};

use super::reference::{Point, published};
use super::{Load, Outcome};

/// One of the counts.
type Count = fn(&Statistics) -> u64;

/// Delivery may differ from ns-3 by this much.
const DELIVERY_TOLERANCE: f64 = 0.03;
/// The mean access delay may differ from ns-3 by this share.
const ACCESS_TOLERANCE: f64 = 0.25;

/// A load and what came of it.
pub struct Row<'a> {
    load: &'a Load,
    runs: Vec<&'a Statistics>,
    access: Delays,
    ns3: Option<&'a Point>,
}

impl<'a> Row<'a> {
    /// The runs of a load, one for each seed.
    pub fn of(load: &'a Load, outcomes: &'a [Outcome], ns3: Option<&'a Point>) -> Self {
        let runs: Vec<&Statistics> = outcomes.iter().map(|outcome| &outcome.statistics).collect();
        let mut access = Delays::default();
        runs.iter().for_each(|run| access.extend(&run.access));
        Self { load, runs, access, ns3 }
    }

    fn sum(&self, of: Count) -> u64 {
        self.runs.iter().map(|run| of(run)).sum()
    }

    fn share(&self, part: Count, whole: Count) -> f64 {
        self.sum(part) as f64 / self.sum(whole).max(1) as f64
    }

    fn delivery(&self) -> f64 {
        self.share(|s| s.received, |s| s.possible)
    }

    /// Whether it is as ns-3 has it, if that is known.
    pub fn is_as_ns3(&self) -> Option<bool> {
        let ns3 = self.ns3?;
        let delivery_differs = (self.delivery() - ns3.delivery).abs() > DELIVERY_TOLERANCE;
        let access_differs = (self.access.mean_ms() / ns3.access_ms[0] - 1.0).abs() > ACCESS_TOLERANCE;
        Some(!delivery_differs && !access_differs)
    }
}

/// Three tables: ours next to ns-3, ours next to the published table, and what became of every datagram.
pub fn table(rows: &[Row<'_>]) -> String {
    let mut t = String::new();
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(t, "{}", text.trim_end());
    };
    line("                                delivery        frames overlapped  access delay, ms: mean     50 %         95 %         99 %".into());
    line("geometry  radios bytes  load    ours    ns-3    ours    ns-3         ours   ns-3    ours   ns-3    ours   ns-3    ours   ns-3".into());
    for row in rows {
        let Load { geometry, nodes, payload_bytes, .. } = row.load;
        let mut text =
            format!("{:<9} {nodes:>6} {payload_bytes:>5} {:>5.2}", geometry.to_string(), row.load.offered());
        let share = |ours: f64, ns3: Option<f64>| format!("  {ours:>6.4}  {}", cell(ns3, 6, 4));
        text += &share(row.delivery(), row.ns3.map(|p| p.delivery));
        text += &share(row.share(|s| s.overlapped, |s| s.sent), row.ns3.map(|p| p.overlapped));
        text += "     ";
        let of = |i: usize| row.ns3.map(|p| p.access_ms[i]);
        let quantiles = [0.50, 0.95, 0.99].map(|share| row.access.quantile_ms(share));
        for (i, ours) in [row.access.mean_ms()].into_iter().chain(quantiles).enumerate() {
            text += &format!(" {ours:>6.3} {} ", cell(of(i), 6, 3));
        }
        if row.is_as_ns3() == Some(false) {
            text += " DIFFERS";
        }
        line(text);
    }
    let held = rows.iter().filter_map(Row::is_as_ns3).collect::<Vec<_>>();
    line(format!(
        "of {} rows that ns-3 has, {} are within {} points of delivery and {:.0} % of mean access delay",
        held.len(),
        held.iter().filter(|is_held| **is_held).count(),
        DELIVERY_TOLERANCE * 100.0,
        ACCESS_TOLERANCE * 100.0
    ));

    if rows.iter().any(|row| published(row.load).is_some()) {
        line(String::new());
        line("               waited for the medium, %    overlapped or collided, %".into());
        line("radios  load   ours  ArduSim Table 3       ours  ns-3  ArduSim Table 3".into());
    }
    for row in rows {
        let Some((waited, collided)) = published(row.load) else { continue };
        line(format!(
            "{:>6} {:>5.2} {:>6.2} {:>16.2}     {:>6.2} {} {:>16.2}",
            row.load.nodes,
            row.load.offered(),
            row.share(|s| s.waited_for_medium, |s| s.sent) * 100.0,
            waited * 100.0,
            row.share(|s| s.overlapped, |s| s.sent) * 100.0,
            cell(row.ns3.map(|p| p.overlapped * 100.0), 5, 2),
            collided * 100.0
        ));
    }

    line(String::new());
    line("datagrams, % of those handed over: not sent (queue full, too old), sent; of these waited for own, for the medium".into());
    line("receptions, % of those possible: out of range, cut off, receiver sending, collided, noise, lost, received".into());
    for row in rows {
        line(format!("{} {} radios, {} bytes", row.load.geometry, row.load.nodes, row.load.payload_bytes));
        becomes(row.runs.iter().copied(), &mut line);
    }
    t
}

/// Two lines: what became of datagrams, and of receptions.
pub fn becomes<'a>(runs: impl Iterator<Item = &'a Statistics> + Clone, line: &mut impl FnMut(String)) {
    let sum = |of: Count| runs.clone().map(of).sum::<u64>();
    let part = |name: &str, part: u64, whole: u64| {
        format!(" {name} {part} ({:.2} %)", part as f64 * 100.0 / whole.max(1) as f64)
    };
    let (offered, sent, possible) = (sum(|s| s.offered), sum(|s| s.sent), sum(|s| s.possible));
    line(format!(
        "  datagrams {offered}:{},{},{};{},{}",
        part("queue full", sum(|s| s.queue_full), offered),
        part("too old", sum(|s| s.expired), offered),
        part("sent", sent, offered),
        part("waited for own", sum(|s| s.waited_for_own), offered),
        part("for the medium", sum(|s| s.waited_for_medium), sent),
    ));
    let kinds: [(&str, Count); 7] = [
        ("out of range", |s| s.out_of_range),
        ("cut off", |s| s.cut_off),
        ("receiver sending", |s| s.receiver_sending),
        ("collided", |s| s.collided),
        ("noise", |s| s.noise),
        ("lost", |s| s.lost),
        ("received", |s| s.received),
    ];
    let parts: Vec<String> = kinds.iter().map(|(name, of)| part(name, sum(*of), possible)).collect();
    line(format!("  receptions {possible}:{}", parts.join(",")));
}

/// A number, or what stands for none.
fn cell(number: Option<f64>, width: usize, digits: usize) -> String {
    number.map_or_else(|| format!("{:>width$}", "none"), |number| format!("{number:>width$.digits$}"))
}
