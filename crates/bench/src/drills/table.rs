//! Drills as one table, and a failing drill as a story.

use std::fmt::Write;

use super::{Kind, Outcome};

/// Lines of a failing drill's log that are shown.
const LOG_TAIL: usize = 30;
/// Failing drills of a kind whose stories are printed.
const STORIES: usize = 3;

/// One row per kind that was flown.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "kind                  seeds  unsafe  stuck  completed  least separation m  to ground s (median, last)\n",
    );
    for kind in Kind::all() {
        let row: Vec<&Outcome> = outcomes.iter().filter(|o| o.kind == kind).collect();
        if row.is_empty() {
            continue;
        }
        let count = |which: fn(&Outcome) -> bool| row.iter().filter(|o| which(o)).count();
        let not_safe = count(|o| !o.safety.is_empty());
        let stuck = count(|o| o.safety.is_empty() && !o.liveness.is_empty());
        let least_m = row.iter().map(|o| o.separation_min_m).fold(f64::INFINITY, f64::min);
        let (done, all) = row.iter().fold((0, 0), |(done, all), o| (done + o.completed, all + o.aircraft));
        let mut to_ground_s: Vec<f64> = row.iter().map(|o| o.to_ground.as_secs_f64()).collect();
        to_ground_s.sort_by(f64::total_cmp);
        let (median_s, last_s) = (to_ground_s[row.len() / 2], to_ground_s[row.len() - 1]);
        let share = done as f64 / all as f64 * 1e2;
        let _ = writeln!(
            out,
            "{:<21} {:>5}  {not_safe:>6}  {stuck:>5}  {share:>7.1} %  {least_m:>18.2}  {median_s:>14.1}, {last_s:.1}",
            kind.name(),
            row.len(),
        );
    }
    out
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
