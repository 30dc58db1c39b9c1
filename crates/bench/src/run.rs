//! A whole plan in virtual time. Flights are independent, so they go over threads; results are put
//! back in order, so the number of threads changes nothing but the time it takes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use wingbeat_geo::Duration;

use crate::flight::{Flight, fly};
use crate::plan::{Plan, Table};
use crate::report::{self, Row};
use crate::scenario::{Scenario, Task};

/// What a plan came to.
pub struct Outcome {
    /// The table.
    pub table: String,
    /// Warnings and errors of all flights.
    pub warnings: Vec<String>,
    /// One number over all flights' bytes: equal for equal runs.
    pub trace_hash: u64,
    /// Flights that did not succeed, each with the seed that repeats it.
    pub failed: Vec<String>,
    /// Virtual time flown, all flights together.
    pub virtual_time: Duration,
}

/// Flies a plan whose files are relative to `folder`. The same seed flies the same flights.
///
/// # Errors
/// A scenario cannot be flown.
pub fn run(plan: &Plan, folder: &std::path::Path, seed: u64, threads: usize) -> Result<Outcome> {
    let rows = plan.flights(folder, seed)?;
    let with_reference = plan.table == Table::MuscopOverhead;
    let mut jobs: Vec<(Scenario, u64)> = rows.iter().flatten().cloned().collect();
    let flown = jobs.len();
    if with_reference {
        jobs.extend(rows.iter().flatten().map(|(scenario, seed)| (alone(scenario), *seed)));
    }
    let flights = fly_all(&jobs, plan.time_limit(), threads)?;
    let (mut trace_hash, mut failed, mut warnings) = (0u64, Vec::new(), Vec::new());
    let mut virtual_time = Duration::ZERO;
    for ((scenario, flight_seed), flight) in jobs.iter().zip(&flights) {
        trace_hash = trace_hash.rotate_left(7) ^ flight.trace_hash;
        virtual_time += flight.duration;
        let name =
            format!("{}, {} aircraft, flight seed {flight_seed}", scenario.label(), scenario.aircraft());
        // In a crowd collisions are counted: they are what the table is about.
        let good = if plan.table == Table::MbcapCrowd { flight.is_complete() } else { flight.succeeded() };
        if !good {
            failed.push(name.clone());
        }
        warnings.extend(flight.warnings.iter().map(|w| format!("{name}: {w}")));
    }
    let (flights, lone) = flights.split_at(flown);
    let repeat = plan.repeat as usize;
    let rows: Vec<Row> = rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let of = |all: &[Flight]| all.chunks(repeat).nth(i).unwrap_or_default().to_vec();
            Row::of(row.first().map(|(scenario, _)| scenario), of(flights), of(lone))
        })
        .collect();
    let table = match plan.table {
        Table::Flights => report::flights(&rows),
        Table::MuscopOverhead => report::muscop_overhead(&rows),
        Table::MbcapPairs => report::pairs::table(&rows),
        Table::MbcapCrowd => report::crowd::table(&rows),
    };
    Ok(Outcome { table, warnings, trace_hash, failed, virtual_time })
}

/// The reference of thesis Table 6.2: one aircraft flies the same waypoints and stops at each as long as
/// it takes to see that it is there; there is nobody to wait for.
fn alone(scenario: &Scenario) -> Scenario {
    let mut alone = scenario.clone();
    if let Task::Swarm(swarm) = &mut alone.task {
        (swarm.aircraft, swarm.arrival_period) = (1, Duration::ZERO);
    }
    alone
}

fn fly_all(jobs: &[(Scenario, u64)], time_limit: Duration, threads: usize) -> Result<Vec<Flight>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Flight>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some((scenario, seed)) = jobs.get(i) else { return };
                    let flight = fly(scenario, *seed, time_limit);
                    results.lock().expect("no flight panics while it holds the list")[i] = Some(flight);
                }
            });
        }
    });
    let results = results.into_inner().expect("all threads are done");
    results.into_iter().map(|r| r.context("a flight was not flown")?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans"));
        let mut plan = Plan::read(&folder.join("muscop-overhead.toml")).unwrap();
        plan.repeat = 2;
        plan.keep(Some(3), None).unwrap();
        if let Some(stairs) = plan.mission.as_mut().and_then(|m| m.staircase.as_mut()) {
            stairs.waypoints = vec![2, 3];
            stairs.length_m = 200.0;
        }
        let [one, again, three] = [1, 1, 3].map(|threads| run(&plan, folder, 7, threads).unwrap());
        assert!(one.failed.is_empty(), "{:?}", one.failed);
        assert_eq!((&one.table, one.trace_hash), (&again.table, again.trace_hash));
        assert_eq!((&one.table, one.trace_hash), (&three.table, three.trace_hash));
        assert_ne!(one.trace_hash, run(&plan, folder, 8, 1).unwrap().trace_hash);
    }
}
