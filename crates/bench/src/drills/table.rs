//! Drills as one table, and a failing drill as a story.

use std::fmt::Write;

use super::{Kind, Outcome};
use wingbeat_linktest::statistics::rate_most;

/// Lines of a failing drill's log that are shown.
const LOG_TAIL: usize = 30;
/// Failing drills of a kind whose stories are printed.
const STORIES: usize = 3;

/// Each kind that was flown has a row, and all together have the last. Of the unsafe drills those with a crash are counted once more. Next to each
/// count of drills that broke a rule stands the rate that it may have at most ([`rate_most`], 95 %): a rule that no drill broke may
/// still be broken by another. Drills in which nothing flew do not count for the rate.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "kind                    seeds  unsafe   at most  crashed  stuck   at most  completed  least separation m  to ground s (median, last)  not flown\n",
    );
    let of = |kind: Kind| outcomes.iter().filter(move |o| o.kind == kind).collect::<Vec<_>>();
    let kinds: Vec<(&str, Vec<&Outcome>)> =
        Kind::all().map(|kind| (kind.name(), of(kind))).filter(|(_, row)| !row.is_empty()).collect();
    for (name, row) in &kinds {
        out.push_str(&line(name, row));
    }
    if kinds.len() > 1 {
        out.push_str(&line("all", &outcomes.iter().collect::<Vec<_>>()));
    }
    out
}

/// One row of the table.
fn line(name: &str, row: &[&Outcome]) -> String {
    let count = |which: fn(&Outcome) -> bool| row.iter().filter(|o| which(o)).count();
    let not_safe = count(|o| !o.safety.is_empty());
    let crashed = count(Outcome::has_crashed);
    let stuck = count(|o| o.safety.is_empty() && !o.liveness.is_empty());
    let not_flown = count(Outcome::is_not_flown);
    let at_most = |events| rate_most(events, row.len() - not_flown) * 1e2;
    let (not_safe_most, stuck_most) = (at_most(not_safe), at_most(stuck));
    let least_m = row.iter().map(|o| o.separation_min_m).fold(f64::INFINITY, f64::min);
    let (done, all) = row.iter().fold((0, 0), |(done, all), o| (done + o.completed, all + o.aircraft));
    let mut to_ground_s: Vec<f64> = row.iter().map(|o| o.to_ground.as_secs_f64()).collect();
    to_ground_s.sort_by(f64::total_cmp);
    let (median_s, last_s) = (to_ground_s[row.len() / 2], to_ground_s[row.len() - 1]);
    let share = done as f64 / all as f64 * 1e2;
    format!(
        "{name:<22} {:>6}  {not_safe:>6}  {not_safe_most:>6.2} %  {crashed:>7}  {stuck:>5}  {stuck_most:>6.2} %  {share:>7.1} %  \
         {least_m:>18.2}  {median_s:>14.1}, {last_s:.1}  {not_flown:>9}\n",
        row.len(),
    )
}

/// The first failing drills of each kind, safety first, each with what happened, the end of its log, and the
/// command that repeats it; all others by their command.
pub fn failures(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for kind in Kind::all() {
        let mut failed: Vec<&Outcome> = outcomes.iter().filter(|o| o.kind == kind && !o.is_good()).collect();
        failed.sort_by_key(|o| (o.safety.is_empty(), o.seed));
        for (number, outcome) in failed.iter().enumerate() {
            if number < STORIES {
                out.push_str(&story(outcome));
            } else {
                let first = outcome.safety.first().or(outcome.liveness.first());
                let _ = writeln!(out, "{}: {}", outcome.command(), first.map_or("", |s| s.as_str()));
            }
        }
    }
    out
}

/// One drill as text.
pub fn story(outcome: &Outcome) -> String {
    let mut out = format!("{}\n", outcome.command());
    for line in &outcome.story {
        let _ = writeln!(out, "  {line}");
    }
    for line in &outcome.safety {
        let _ = writeln!(out, "  UNSAFE {line}");
    }
    for line in &outcome.liveness {
        let _ = writeln!(out, "  STUCK  {line}");
    }
    for line in outcome.log.iter().skip(outcome.log.len().saturating_sub(LOG_TAIL)) {
        let _ = writeln!(out, "    {line}");
    }
    out
}
