//! A whole plan in virtual time. Flights are independent, so they go over threads; results are put
//! back in order, so the number of threads changes nothing but the time it takes.
#![allow(clippy::disallowed_methods, reason = "how long a watched flight takes is what is asked")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wingbeat_geo::Duration;
use wingbeat_sim::flight_controller::TICK;

use crate::campaign::accept;
use crate::campaign::row::FlightRow;
use crate::campaign::stored::Flown;
use crate::flight::{FlightResult, fly_recorded, fly_through, fly_watched};
use crate::guidance::{self, Guidance};
use crate::hosts;
use crate::phases::{Phases, Watch};
use crate::plan::saturation::Saturation;
use crate::plan::{Plan, Table};
use crate::progress;
use crate::report::{self, Row};
use crate::saturation::{Load, reference, table};
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
    /// The figures of each flight, in order.
    pub figures: Vec<FlightRow>,
    /// What lies out of the ranges that the plan expects.
    pub missed: Vec<String>,
}

/// Flies a plan whose files are relative to `folder`. The same seed flies the same flights.
///
/// # Errors
/// A scenario cannot be flown.
pub fn run(plan: &Plan, folder: &Path, seed: u64, threads: usize) -> Result<Outcome> {
    run_recorded(plan, folder, seed, threads, None)
}

/// The same, with the flight logs of each flight in a folder of its own under `record`.
///
/// # Errors
/// As [`run`], and a log that cannot be written.
pub fn run_recorded(
    plan: &Plan,
    folder: &Path,
    seed: u64,
    threads: usize,
    record: Option<&Path>,
) -> Result<Outcome> {
    ensure!(
        plan.hosts.is_none() || plan.saturation.is_none() && plan.guidance.is_none(),
        "hosts: found a plan without aircraft, expected flights"
    );
    if let Some(saturation) = &plan.saturation {
        return saturate(plan, saturation, folder, seed, threads);
    }
    if let Some(guidance) = &plan.guidance {
        return guide(plan, guidance, seed, threads);
    }
    let mut jobs = Jobs::of(plan, folder, seed)?;
    if let Some(hosts) = plan.hosts {
        ensure!(
            threads == 1,
            "--threads: found {threads}, expected 1: several computers fly one flight at a time"
        );
        hosts::open(hosts, &mut jobs)?;
    }
    let flights = fly_all(&jobs.all, plan.time_limit(), threads, record)?;
    Ok(outcome(plan, &jobs, &flights))
}

/// The same one flight after another, and where the time of each went.
///
/// # Errors
/// As [`run`], and a plan without aircraft.
pub fn run_watched(plan: &Plan, folder: &Path, seed: u64) -> Result<(Outcome, Vec<Phases>)> {
    ensure!(
        plan.saturation.is_none() && plan.guidance.is_none(),
        "--phases: found a plan without aircraft, expected flights"
    );
    plan.on_one_computer("--phases")?;
    let jobs = Jobs::of(plan, folder, seed)?;
    let (mut flights, mut phases) = (Vec::new(), Vec::new());
    for (scenario, seed) in &jobs.all {
        let (watch, began) = (Arc::new(Watch::default()), Instant::now());
        let flight = fly_watched(scenario, *seed, plan.time_limit(), &watch)?;
        let wall_s = began.elapsed().as_secs_f64();
        phases.push(watch.phases(scenario, *seed, &flight, wall_s)?);
        flights.push(flight);
    }
    Ok((outcome(plan, &jobs, &flights), phases))
}

/// The flights of a plan with their seeds, in the order in which they are numbered.
pub struct Jobs {
    /// Row for row, then the reference of each where the table asks for one.
    pub all: Vec<(Scenario, u64)>,
    /// How many of them are the plan's own.
    pub flown: usize,
}

impl Jobs {
    /// Of a plan whose files are relative to `folder`.
    ///
    /// # Errors
    /// A scenario cannot be flown.
    pub fn of(plan: &Plan, folder: &Path, seed: u64) -> Result<Self> {
        let mut all: Vec<(Scenario, u64)> = plan.flights(folder, seed)?.into_iter().flatten().collect();
        let flown = all.len();
        if plan.table == Table::MuscopOverhead {
            all.extend_from_within(..);
            all[flown..].iter_mut().for_each(|(scenario, _)| *scenario = alone(scenario));
        }
        Ok(Self { all, flown })
    }
}

/// What the flights of a plan come to, whenever and wherever they were flown.
pub fn outcome(plan: &Plan, jobs: &Jobs, flights: &[FlightResult]) -> Outcome {
    let (mut trace_hash, mut failed, mut warnings) = (0u64, Vec::new(), Vec::new());
    let mut virtual_time = Duration::ZERO;
    for ((scenario, flight_seed), flight) in jobs.all.iter().zip(flights) {
        trace_hash = trace_hash.rotate_left(7) ^ flight.trace_hash;
        virtual_time += flight.duration;
        let name =
            format!("{}, {} aircraft, flight seed {flight_seed}", scenario.label(), scenario.aircraft());
        if !is_good(counts_collisions(plan), flight) {
            let causes = flight.causes.iter().map(|cause| format!("\n  {cause}")).collect::<String>();
            failed.push(format!("{name}{causes}"));
        }
        warnings.extend(flight.warnings.iter().map(|w| format!("{name}: {w}")));
    }
    let figures: Vec<FlightRow> = Flown::all(plan, jobs)
        .iter()
        .zip(flights)
        .map(|(flown, flight)| FlightRow::of(flown, flight))
        .collect();
    let missed = accept::misses(&plan.accept, &figures);
    let (flights, lone) = flights.split_at(jobs.flown);
    let repeat = plan.repeat as usize;
    let rows: Vec<Row> = jobs.all[..jobs.flown]
        .chunks(repeat)
        .enumerate()
        .map(|(i, row)| {
            let of = |all: &[FlightResult]| all.chunks(repeat).nth(i).unwrap_or_default().to_vec();
            Row::of(row.first().map(|(scenario, _)| scenario), of(flights), of(lone))
        })
        .collect();
    let table = match plan.table {
        Table::Flights => report::flights(&rows),
        Table::Axes => report::axes::table(&rows),
        Table::MuscopOverhead => report::muscop::overhead(&rows),
        Table::Flows => report::flows::table(&rows),
        Table::Media => report::media::table(&rows),
        Table::MbcapPairs => report::pairs::table(&rows),
        Table::MbcapCrowd => report::crowd::table(&rows),
        Table::MuscopOffsets => report::muscop::offsets(&rows),
        Table::MuscopDistance => report::muscop::distance(&rows),
        Table::MuscopLoss => report::muscop::loss(&rows),
        Table::MuscopScale => report::muscop::scale(&rows),
        Table::Following => report::following::table(&rows),
        // Its plans fly no rows.
        Table::ChannelSaturation | Table::Guidance => String::new(),
    };
    Outcome { table, warnings, trace_hash, failed, virtual_time, figures, missed }
}

/// In a crowd collisions are counted: they are what the table is about.
pub(crate) fn counts_collisions(plan: &Plan) -> bool {
    plan.table == Table::MbcapCrowd
}

/// Whether a flight came to what its plan expects.
pub(crate) fn is_good(counts_collisions: bool, flight: &FlightResult) -> bool {
    if counts_collisions { flight.is_complete() } else { flight.succeeded() }
}

/// The reference of thesis Table 6.2: one aircraft flies the same waypoints and stops at each. It waits for
/// no other, and no companion stands between its arrival and its next leg, so that arrival is checked as often as a
/// flight controller reports: the published reference is the autopilot's own mission, which stopped at every waypoint.
pub(crate) fn alone(scenario: &Scenario) -> Scenario {
    let mut alone = scenario.clone();
    if let Task::Swarm(swarm) = &mut alone.task {
        (swarm.aircraft, swarm.arrival_period, swarm.orders_wait) = (1, Duration::ZERO, false);
        (swarm.position_interval, swarm.clock_walk_s) = (TICK, 0.0);
    }
    alone
}

/// Radios without aircraft.
fn saturate(
    plan: &Plan,
    saturation: &Saturation,
    folder: &Path,
    seed: u64,
    threads: usize,
) -> Result<Outcome> {
    let (loads, config) = (saturation.loads()?, plan.csma()?);
    let points = reference::read(&folder.join(&saturation.reference))?;
    let repeat = plan.repeat as usize;
    let jobs: Vec<(Load, u64)> = loads
        .iter()
        .flat_map(|load| {
            (0..u64::from(plan.repeat)).map(|k| (*load, seed.wrapping_mul(1_000).wrapping_add(k)))
        })
        .collect();
    let seconds = plan.time_limit().as_secs();
    let outcomes = each(&jobs, threads, |(load, seed)| Ok(load.run(&config, *seed, seconds)))?;
    let trace_hash = outcomes.iter().fold(0u64, |hash, outcome| hash.rotate_left(7) ^ outcome.trace_hash);
    let rows: Vec<table::Row<'_>> = loads
        .iter()
        .zip(outcomes.chunks(repeat))
        .map(|(load, outcomes)| table::Row::of(load, outcomes, reference::find(&points, load)))
        .collect();
    Ok(Outcome {
        table: table::table(&rows),
        warnings: Vec::new(),
        trace_hash,
        failed: Vec::new(),
        virtual_time: plan.time_limit() * jobs.len() as u32,
        figures: Vec::new(),
        missed: Vec::new(),
    })
}

/// A point that nodes on the ground guide.
fn guide(plan: &Plan, guidance: &Guidance, seed: u64, threads: usize) -> Result<Outcome> {
    let config = plan.air_of_guidance()?;
    let repeat = plan.repeat as usize;
    let seeds = (0..u64::from(plan.repeat)).map(|k| seed.wrapping_mul(1_000).wrapping_add(k));
    let jobs: Vec<(f64, u64)> = guidance
        .intervals_m
        .iter()
        .flat_map(|interval_m| seeds.clone().map(|seed| (*interval_m, seed)))
        .collect();
    let flights = each(&jobs, threads, |(interval_m, seed)| {
        guidance.fly(*interval_m, &config, *seed, plan.time_limit())
    })?;
    let rows: Vec<_> = guidance.intervals_m.iter().copied().zip(flights.chunks(repeat)).collect();
    Ok(Outcome {
        table: guidance::table(&rows),
        warnings: Vec::new(),
        trace_hash: flights.iter().fold(0u64, |hash, flight| hash.rotate_left(7) ^ flight.trace_hash),
        failed: Vec::new(),
        virtual_time: flights.iter().fold(Duration::ZERO, |sum, flight| sum + flight.duration),
        figures: Vec::new(),
        missed: Vec::new(),
    })
}

fn fly_all(
    jobs: &[(Scenario, u64)],
    time_limit: Duration,
    threads: usize,
    record: Option<&Path>,
) -> Result<Vec<FlightResult>> {
    // Flights that differ in their networks only are one.
    let mut groups: Vec<(Scenario, u64, Vec<usize>)> = Vec::new();
    for (i, (scenario, seed)) in jobs.iter().enumerate() {
        let flight = scenario.network.as_ref().map(|_| scenario.without_network());
        let same = flight.as_ref().and_then(|flight| {
            groups.iter_mut().find(|(other, other_seed, _)| other_seed == seed && other == flight)
        });
        match same {
            Some((_, _, group)) => group.push(i),
            None => groups.push((flight.unwrap_or_else(|| scenario.clone()), *seed, vec![i])),
        }
    }
    let flown = each(&groups, threads, |(_, seed, group)| {
        let folder = record.map(|record| record.join(format!("flight-{:04}", group[0] + 1)));
        let scenarios: Vec<&Scenario> = group.iter().map(|&i| &jobs[i].0).collect();
        match &scenarios[..] {
            [scenario] => Ok(vec![fly_recorded(scenario, *seed, time_limit, folder.as_deref())?]),
            several => fly_through(several, *seed, time_limit, folder.as_deref(), None),
        }
    })?;
    let mut all: Vec<(usize, FlightResult)> = groups
        .iter()
        .zip(flown)
        .flat_map(|((_, _, group), flown)| group.iter().copied().zip(flown))
        .collect();
    all.sort_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, flight)| flight).collect())
}

/// Does all jobs on so many threads; the results are in their order.
///
/// # Errors
/// That of the first job in their order that has one; after it none is begun.
pub fn each<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    run: impl Fn(&J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<R>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    let result = run(job);
                    progress::done();
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    results.lock().expect("no job panics while it holds the list")[i] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("all threads are done");
    results.into_iter().map(|r| r.context("a job was not done")?).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::fly;
    use crate::scenario::Variant;

    #[test]
    fn after_a_job_that_fails_none_is_begun() {
        let begun = AtomicUsize::new(0);
        let run = |job: &u32| {
            begun.fetch_add(1, Ordering::Relaxed);
            ensure!(*job != 2, "found {job}");
            Ok(*job)
        };
        assert_eq!(each(&[1, 2, 3, 4], 1, run).unwrap_err().to_string(), "found 2");
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }

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

    #[test]
    fn a_swarm_varies_in_channel_formation_and_size() {
        let (mut plan, folder) = plan_of("muscop-scale.toml");
        plan.keep(Some(9), None).unwrap();
        assert!(plan.clone().keep(Some(10), None).unwrap_err().to_string().contains("found 10"));
        let rows = plan.flights(&folder, 1).unwrap();
        assert_eq!(rows.len(), 12, "two channels, one size, six missions");
        let stairs = plan.mission.as_mut().and_then(|m| m.staircase.as_mut()).unwrap();
        (stairs.waypoints, stairs.length_m) = (vec![4], 300.0);
        let outcome = run(&plan, &folder, 1, 1).unwrap();
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        assert!(outcome.table.contains("ideal           9   74.95 m"), "{}", outcome.table);
        assert!(outcome.table.contains("lossy           9   74.95 m"), "{}", outcome.table);
    }

    fn plan_of(name: &str) -> (Plan, std::path::PathBuf) {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans"));
        (Plan::read(&folder.join(name)).unwrap(), folder.to_path_buf())
    }

    #[test]
    fn mbcap_keeps_two_apart_that_would_meet_and_costs_what_was_published() {
        let (mut plan, folder) = plan_of("mbcap-pairs.toml");
        plan.repeat = 1;
        plan.own.as_mut().unwrap().flight.retain(|f| f.name.starts_with("3 "));
        let outcome = run(&plan, &folder, 1, 1).unwrap();
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let rows = plan.flights(&folder, 1).unwrap();
        let flown: Vec<FlightResult> =
            rows.iter().flatten().map(|(s, seed)| fly(s, *seed, plan.time_limit()).unwrap()).collect();
        let closest =
            |f: &FlightResult| f.encounters.iter().map(|e| e.closest_m).fold(f64::INFINITY, f64::min);
        let [off, mbcap, mbcap_e] = &flown[..] else { panic!("three variants, found {}", flown.len()) };
        assert!(closest(off) < 1.0, "they meet: {}", closest(off));
        assert!((18.0..25.0).contains(&closest(mbcap)), "20 m aside: {}", closest(mbcap));
        assert!((6.0..10.0).contains(&closest(mbcap_e)), "7.5 m aside: {}", closest(mbcap_e));
        // Thesis Table 5.3, to a fifth: 56 and 29 s, 42 and 21 s; no aircraft stops without a protocol.
        assert_eq!((off.stops(), mbcap.stops(), mbcap_e.stops()), (0.0, 2.0, 2.0));
        for (with, published) in [(mbcap, [56.0, 29.0]), (mbcap_e, [42.0, 21.0])] {
            for (uav, published_s) in published.into_iter().enumerate() {
                let added_s = with.aircraft[uav].flight_time_s - off.aircraft[uav].flight_time_s;
                assert!((added_s / published_s - 1.0).abs() < 0.2, "UAV {}: {added_s} s", uav + 1);
            }
        }
    }

    #[test]
    fn swarms_fly_over_frames_alike_on_any_number_of_threads_and_frames_leave_the_other_media_alone() {
        let (mut plan, folder) = plan_of("csma-swarm.toml");
        plan.keep(Some(4), None).unwrap();
        plan.repeat = 1;
        let [one, two] = [1, 2].map(|threads| run(&plan, &folder, 5, threads).unwrap());
        assert!(one.failed.is_empty(), "{:?}", one.failed);
        assert_eq!((&one.table, one.trace_hash), (&two.table, two.trace_hash));
        // Only the row over frames knows what became of them.
        assert_eq!(one.table.matches("waited for own").count(), 1, "{}", one.table);
        let flown: Vec<FlightResult> = plan
            .flights(&folder, 5)
            .unwrap()
            .iter()
            .flatten()
            .map(|(s, seed)| fly(s, *seed, plan.time_limit()).unwrap())
            .collect();
        let medium = flown[2].medium.as_ref().unwrap();
        assert!(flown[0].medium.is_none() && flown[1].medium.is_none());
        assert!(medium.lost > 0 && medium.received > 1_000, "{medium:?}");
        assert_eq!(flown[2].radio.delivered, medium.received);
        // What the plan says of frames changes nothing for the published models.
        plan.channel.csma = Default::default();
        plan.vary.channel.pop();
        let without = run(&plan, &folder, 5, 1).unwrap();
        assert!(one.table.starts_with(&without.table), "{}\n{}", one.table, without.table);
    }

    #[test]
    fn a_swarm_flies_over_ns3_twice_with_the_same_trace() {
        let (mut plan, folder) = plan_of("muscop-routes.toml");
        if let Err(why) = wingbeat_cosim::ns3::find() {
            println!("skipped: {why:#}");
            return;
        }
        plan.set_medium("ns3:aodv").unwrap();
        let [one, two] = [1, 2].map(|_| run(&plan, &folder, 5, 1).unwrap());
        assert!(one.failed.is_empty(), "{:?}", one.failed);
        assert_eq!((&one.table, one.trace_hash), (&two.table, two.trace_hash));
        assert!(one.table.contains("flow 2 to 9, routing aodv: "), "{}", one.table);
        plan.set_medium("csma").unwrap();
        assert_ne!(one.trace_hash, run(&plan, &folder, 5, 1).unwrap().trace_hash);
    }

    #[test]
    fn stepwise_equals_coupled_and_asynchronous_is_late() {
        let (mut plan, folder) = plan_of("dusc-methods.toml");
        let mut swarm = plan_of("muscop-routes.toml").0;
        swarm.set_medium("ns3").unwrap();
        swarm.set_method("stepwise").unwrap();
        let refused = swarm.flights(&folder, 1).unwrap_err().to_string();
        assert!(refused.contains("channel.ns3.method: found stepwise, expected another"), "{refused}");
        swarm.set_medium("csma").unwrap();
        assert!(swarm.set_method("coupled").unwrap_err().to_string().contains("found the medium csma"));
        if let Err(why) = wingbeat_cosim::ns3::find() {
            println!("skipped: {why:#}");
            return;
        }
        // Two that scatter first and return first.
        plan.channel.ns3.flow.truncate(2);
        let outcome = run(&plan, &folder, 5, 2).unwrap();
        assert!(outcome.failed.is_empty(), "{:?} {:?}", outcome.failed, outcome.warnings);
        let rows: Vec<&str> = outcome.table.lines().filter(|line| line.starts_with("scatter")).collect();
        let [_, coupled, stepwise, asynchronous] = rows[..] else { panic!("{}", outcome.table) };
        for exact in [coupled, stepwise] {
            assert!(exact.contains("  0 of "), "{}", outcome.table);
        }
        assert!(!asynchronous.contains("  0 of "), "{}", outcome.table);
        // Its fall and rise are dated by ns-3's seconds, of which a fifth more pass.
        let low_s = |row: &str| -> Vec<f64> {
            let words: Vec<&str> = row.split_whitespace().collect();
            let to =
                words.iter().position(|word| *word == "to").unwrap_or_else(|| panic!("{}", outcome.table));
            [words[to - 1], words[to + 1]].map(|word| word.parse().unwrap()).to_vec()
        };
        for (late_s, exact_s) in low_s(asynchronous).into_iter().zip(low_s(coupled)) {
            assert!((1.15..1.25).contains(&(late_s / exact_s)), "{}", outcome.table);
        }
        assert_eq!(outcome.table, run(&plan, &folder, 5, 1).unwrap().table);
    }

    #[test]
    fn mbcap_and_follow_me_fly_over_frames() {
        // MUSCOP flies above; Mission and Sweep broadcast nothing.
        for name in ["mbcap-pairs.toml", "followme-sitl.toml"] {
            let (mut plan, folder) = plan_of(name);
            plan.repeat = 1;
            plan.channel.model = "csma".into();
            if let Some(own) = &mut plan.own {
                own.flight.truncate(1);
            }
            let flights = plan.flights(&folder, 1).unwrap();
            let speaks = |(scenario, _): &&(Scenario, u64)| scenario.variant() != Some(Variant::Off);
            for (scenario, seed) in flights.iter().flatten().filter(speaks).take(2) {
                let flight = fly(scenario, *seed, plan.time_limit()).unwrap();
                let medium = flight.medium.as_ref().unwrap();
                assert!(
                    flight.succeeded() && medium.received > 100,
                    "{name}: {:?} {medium:?}",
                    flight.warnings
                );
                assert_eq!(flight, fly(scenario, *seed, plan.time_limit()).unwrap(), "{name}");
            }
        }
    }

    #[test]
    fn three_search_a_field_and_keep_apart() {
        let (plan, folder) = plan_of("sweep.toml");
        let flights = plan.flights(&folder, 1).unwrap();
        assert_eq!((flights.len(), flights[0].len()), (1, 3));
        for (scenario, seed) in &flights[0] {
            let flight = fly(scenario, *seed, plan.time_limit()).unwrap();
            assert!(flight.succeeded() && flight.warnings.is_empty(), "{seed}: {:?}", flight.warnings);
            // On the ground they stand 10 m apart.
            assert!(flight.swarm.separation_min_m > 8.0, "{seed}: {} m", flight.swarm.separation_min_m);
            for aircraft in &flight.aircraft {
                // Three lanes of 200 m, the legs between them, take-off, the leg to the first lane, and landing.
                assert!((690.0..860.0).contains(&aircraft.distance_m), "{seed}: {} m", aircraft.distance_m);
            }
        }
        assert_eq!(run(&plan, &folder, 1, 2).unwrap().failed, Vec::<String>::new());
    }

    #[test]
    fn a_part_of_a_crowd_is_flown_alike_on_any_number_of_threads() {
        let (mut plan, folder) = plan_of("mbcap-crowd.toml");
        plan.keep(Some(4), Some(Variant::MbcapE)).unwrap();
        plan.repeat = 2;
        let crowd = plan.own.as_mut().and_then(|own| own.crowd.as_mut()).unwrap();
        (crowd.waypoints, crowd.side_m) = (4, 1_100.0);
        let [one, two] = [1, 2].map(|threads| run(&plan, &folder, 3, threads).unwrap());
        assert!(one.failed.is_empty(), "{:?}", one.failed);
        assert_eq!((&one.table, one.trace_hash), (&two.table, two.trace_hash));
        assert!(one.table.starts_with("4 aircraft, mbcap-e, 2 flights"), "{}", one.table);
        assert!(plan_of("muscop-overhead.toml").0.keep(None, Some(Variant::Off)).is_err());
        assert!(plan_of("mbcap-pairs.toml").0.keep(Some(3), None).is_err());
    }
}
