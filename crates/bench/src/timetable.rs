//! Missions by a timetable: the operator holds an aircraft at a waypoint until it is to leave it. The published experiments move their
//! aircraft so, formation after formation.

use anyhow::{Result, ensure};
use wingbeat_agent::{Command, Phase, Reply};
use wingbeat_geo::{Duration, Instant};
use wingbeat_sim::world::World;

use crate::scenario::Scenario;

/// Longer than any flight of a plan.
const LATEST_S: f64 = 86_400.0;

/// Refuses a timetable that cannot be kept on a route of so many waypoints.
pub(crate) fn check(leaves_at_s: &[f64], waypoints: usize) -> Result<()> {
    let (found, most) = (leaves_at_s.len(), waypoints.saturating_sub(1));
    ensure!(
        found <= most,
        "leaves_at_s: found {found} times, expected {most} at most: it lands at the last waypoint"
    );
    let mut before_s = 0.0;
    for &at_s in leaves_at_s {
        ensure!(
            (before_s..=LATEST_S).contains(&at_s),
            "leaves_at_s: found {at_s}, expected {before_s} to {LATEST_S}, each later than the one before"
        );
        before_s = at_s;
    }
    Ok(())
}

/// The timetables of a flight under way.
pub(crate) struct Timetable {
    rows: Vec<Row>,
}

/// Of one aircraft.
struct Row {
    leaves_at: Vec<Instant>,
    is_held: bool,
    /// Why it did not obey last.
    refused: Option<String>,
}

impl Timetable {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let at = |at_s: &f64| Instant::ZERO + Duration::from_micros((at_s * 1e6) as u64);
        let row = |i| Row {
            leaves_at: scenario.leaves_at_s(i).iter().map(at).collect(),
            is_held: false,
            refused: None,
        };
        Self { rows: (0..scenario.aircraft()).map(row).collect() }
    }

    /// Holds what is early, and lets fly on what is due.
    pub(crate) fn keep(&mut self, world: &mut World) {
        let now = world.now();
        for (i, row) in self.rows.iter_mut().enumerate() {
            let Some(reached) = world.agent_of(i).view().reached else { continue };
            let Some(&leaves_at) = row.leaves_at.get(usize::from(reached)) else { continue };
            let (command, name) = match (row.is_held, now < leaves_at) {
                (false, true) if world.phase(i) == Phase::Moving => (Command::Hold, "hold"),
                // It may not be held yet; then it is asked again.
                (true, false) => (Command::Resume, "resume"),
                _ => continue,
            };
            let reply = world.command(i, &format!("{name} at {}", now.as_millis()), command);
            row.refused = None;
            match reply {
                Reply::Accepted => row.is_held = !row.is_held,
                Reply::Refused(why) => row.refused = Some(format!("refused to {name}: {why}")),
                Reply::AlreadyKnown => {}
            }
        }
    }

    /// Aircraft that did not keep theirs in the end, a line each.
    pub(crate) fn not_kept(self) -> impl Iterator<Item = String> {
        let rows = self.rows.into_iter().enumerate();
        rows.filter_map(|(i, row)| row.refused.map(|why| format!("aircraft {}: timetable: {why}", i + 1)))
    }
}
