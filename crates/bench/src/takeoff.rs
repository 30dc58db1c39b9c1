//! What each strategy of slot assignment costs a swarm at take-off: the distance flown, the time, and the pairs that
//! come too near to each other (the reference compares the same).
//!
//! The paths are those that are planned: straight up to the first height, then straight to the slot, in calm air,
//! at a multicopter's usual speeds. Nothing is simulated; the same seed gives the same table everywhere, but for
//! the time that the computer takes.
#![allow(clippy::disallowed_methods, reason = "the time that an assignment takes is measured")]

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wingbeat_geo::approach::nearest_between;
use wingbeat_geo::assignment::{PERMUTED_MAX, Strategy, cost_m2};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec2, DVec3, Formation};
use wingbeat_sim::rng;

/// Aircraft stand so far apart (reference), metres.
const GROUND_DISTANCE_M: f64 = 10.0;
/// An aircraft is not set down to the centimetre.
const PLACEMENT_ERROR_M: f64 = 0.3;
/// End of the climb straight up (reference, for slots at 10 m and more).
const FIRST_HEIGHT_M: f64 = 5.0;
/// Height of the slots.
const HEIGHT_M: f64 = 20.0;
/// ArduCopter's WPNAV_SPEED_UP and WPNAV_SPEED as they are unless changed, and the acceleration of its 3.5.7.
const CLIMB_M_S: f64 = 2.5;
const SPEED_M_S: f64 = 10.0;
const ACCELERATION_M_S2: f64 = 1.0;
/// Nearer than this is a conflict.
const CONFLICT_M: f64 = 5.0;
/// Paths are taken for straight during so long: the nearest approach within a step is exact.
const STEP_S: f64 = 0.1;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Numbers of aircraft.
    pub counts: Vec<usize>,
    /// How they stand.
    pub ground: Vec<Layout>,
    /// How they fly.
    pub air: Vec<Layout>,
    /// Distance between slots, metres.
    pub distance_m: f64,
    /// What randomness is drawn from.
    pub seed: u64,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of aircraft.
    pub count: usize,
    /// How they stand.
    pub ground: Layout,
    /// How they fly.
    pub air: Layout,
    /// How the slots were assigned.
    pub strategy: Strategy,
    /// Time for that on this computer, milliseconds: not the same twice.
    pub calculation_ms: f64,
    /// The length of all paths, metres.
    pub distance_m: f64,
    /// The sum of squared distances over the ground, square metres.
    pub cost_m2: f64,
    /// One after another.
    pub sequential: TakeOff,
    /// All at the same time, each as fast as it flies.
    pub simultaneous: TakeOff,
    /// All at the same time, each so fast that all arrive together.
    pub in_step: TakeOff,
}

/// One order of take-off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TakeOff {
    /// From the first motor to the last in its slot, seconds.
    pub time_s: f64,
    /// Pairs that come too near to each other.
    pub conflicts: usize,
    /// The nearest that two come to each other, metres.
    pub nearest_m: f64,
}

/// The path of one aircraft.
#[derive(Clone, Copy)]
struct Path {
    ground: DVec3,
    slot: DVec3,
    /// When it leaves the ground.
    start_s: f64,
    /// How long it takes from the first height to the slot.
    flight_s: f64,
    /// Whether its speed is steady from the first height on.
    is_steady: bool,
}

impl Path {
    fn end_s(&self) -> f64 {
        self.start_s + FIRST_HEIGHT_M / CLIMB_M_S + self.flight_s
    }
    /// Where it is.
    fn at(&self, time_s: f64) -> DVec3 {
        let climbed_m = ((time_s - self.start_s) * CLIMB_M_S).clamp(0.0, FIRST_HEIGHT_M);
        let flown_s = time_s - self.start_s - FIRST_HEIGHT_M / CLIMB_M_S;
        let first = self.ground + DVec3::Z * FIRST_HEIGHT_M;
        if flown_s <= 0.0 {
            return self.ground + DVec3::Z * climbed_m;
        }
        let share = if flown_s >= self.flight_s {
            1.0
        } else if self.is_steady {
            flown_s / self.flight_s
        } else {
            let length_m = first.distance(self.slot);
            flown_m(length_m, self.flight_s, flown_s) / length_m
        };
        first.lerp(self.slot, share)
    }
}

/// How long it takes from standstill to standstill.
fn duration_s(length_m: f64) -> f64 {
    let ramps_m = SPEED_M_S * SPEED_M_S / ACCELERATION_M_S2;
    if length_m < ramps_m {
        2.0 * (length_m / ACCELERATION_M_S2).sqrt()
    } else {
        length_m / SPEED_M_S + SPEED_M_S / ACCELERATION_M_S2
    }
}

/// How far it has come after so long.
fn flown_m(length_m: f64, duration_s: f64, time_s: f64) -> f64 {
    let ramp_s = (duration_s / 2.0).min(SPEED_M_S / ACCELERATION_M_S2);
    let ramp = |t: f64| 0.5 * ACCELERATION_M_S2 * t * t;
    if time_s < ramp_s {
        ramp(time_s)
    } else if time_s < duration_s - ramp_s {
        ramp(ramp_s) + (time_s - ramp_s) * ACCELERATION_M_S2 * ramp_s
    } else {
        length_m - ramp(duration_s - time_s)
    }
}

/// Time, conflicts and the nearest approach of these paths.
fn fly(paths: &[Path]) -> TakeOff {
    let time_s = paths.iter().map(Path::end_s).fold(0.0, f64::max);
    let steps = (time_s / STEP_S).ceil() as usize + 1;
    let tracks: Vec<Vec<DVec3>> =
        paths.iter().map(|path| (0..=steps).map(|step| path.at(step as f64 * STEP_S)).collect()).collect();
    let mut result = TakeOff { time_s, conflicts: 0, nearest_m: f64::INFINITY };
    for (i, a) in tracks.iter().enumerate() {
        for b in &tracks[..i] {
            let nearest_m = (0..steps)
                .map(|step| nearest_between(a[step] - b[step], a[step + 1] - b[step + 1]).length_squared())
                .fold(f64::INFINITY, f64::min)
                .sqrt();
            result.conflicts += usize::from(nearest_m < CONFLICT_M);
            result.nearest_m = result.nearest_m.min(nearest_m);
        }
    }
    result
}

/// Compares, in the order of the arguments: numbers, ground, air, strategies.
///
/// # Errors
/// A formation is impossible.
pub fn compare(comparison: &Comparison) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &count in &comparison.counts {
        for &ground in &comparison.ground {
            let standing = standing(ground, count, comparison.seed)
                .with_context(|| format!("{count} aircraft on the ground, {ground}"))?;
            for &air in &comparison.air {
                let slots = formation_m(air, count, comparison.distance_m)
                    .with_context(|| format!("{count} aircraft in the air, {air}"))?;
                let middle = standing.iter().sum::<DVec2>() / count as f64;
                let slots: Vec<DVec2> = slots.iter().map(|slot| middle + *slot).collect();
                let random = Strategy::Random { seed: comparison.seed };
                for strategy in [Strategy::Optimal, Strategy::KuhnMunkres, Strategy::Simplified, random] {
                    if strategy != Strategy::Optimal || count <= PERMUTED_MAX {
                        let row = row(&standing, &slots, strategy)?;
                        rows.push(Row { count, ground, air, ..row });
                    }
                }
            }
        }
    }
    Ok(rows)
}

fn formation_m(layout: Layout, count: usize, distance_m: f64) -> Result<Vec<DVec2>> {
    ensure!(layout != Layout::Custom, "formation: found custom, expected one without a file");
    let formation = Formation::new(layout, count, distance_m)?;
    Ok((0..count).map(|slot| formation.offset_m(slot, 0.0)).collect())
}

fn standing(layout: Layout, count: usize, seed: u64) -> Result<Vec<DVec2>> {
    let mut positions = formation_m(layout, count, GROUND_DISTANCE_M)?;
    for (i, position) in positions.iter_mut().enumerate() {
        let mut rng = rng::child(seed, "placement", i as u64);
        let mut error = || (rng::uniform(&mut rng) * 2.0 - 1.0) * PLACEMENT_ERROR_M;
        *position += DVec2::new(error(), error());
    }
    Ok(positions)
}

fn row(standing: &[DVec2], slots: &[DVec2], strategy: Strategy) -> Result<Row> {
    let began = Instant::now();
    let assignment = strategy.assign(standing, slots)?;
    let calculation_ms = began.elapsed().as_secs_f64() * 1e3;
    let steady = |i: usize| {
        let (ground, slot) = (standing[i].extend(0.0), slots[assignment.slot_of[i]].extend(HEIGHT_M));
        let flight_s = duration_s(slot.distance(ground + DVec3::Z * FIRST_HEIGHT_M));
        Path { ground, slot, start_s: 0.0, flight_s, is_steady: false }
    };
    let simultaneous: Vec<Path> = (0..standing.len()).map(steady).collect();
    let longest_s = simultaneous.iter().map(|path| path.flight_s).fold(0.0, f64::max);
    let in_step: Vec<Path> =
        simultaneous.iter().map(|path| Path { flight_s: longest_s, is_steady: true, ..*path }).collect();
    let mut in_turn = simultaneous.clone();
    for (position, &i) in assignment.order.iter().enumerate() {
        // The next leaves when the one before has climbed to its first height.
        in_turn[i].start_s = position as f64 * FIRST_HEIGHT_M / CLIMB_M_S;
    }
    Ok(Row {
        count: standing.len(),
        ground: Layout::Linear,
        air: Layout::Linear,
        strategy,
        calculation_ms,
        distance_m: simultaneous
            .iter()
            .map(|path| path.ground.truncate().distance(path.slot.truncate()))
            .sum(),
        cost_m2: cost_m2(standing, slots, &assignment.slot_of),
        sequential: fly(&in_turn),
        simultaneous: fly(&simultaneous),
        in_step: fly(&in_step),
    })
}

/// The table; with the time that the computer took, if asked for.
pub fn table(rows: &[Row], with_time: bool) -> String {
    let mut text = String::new();
    let calculation = if with_time { "  calculation (ms)" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:61}sequential             simultaneous           all in step\n\
         {:>3}  {:14}  {:14}  {:12}  {:>9}  {:>10}  {}  {}  {}{calculation}",
        "", "n", "ground", "air", "strategy", "paths (m)", "cost (m2)", HEAD, HEAD, HEAD
    );
    for row in rows {
        let _ = write!(
            text,
            "{:3}  {:14}  {:14}  {:12}  {:9.0}  {:10.0}",
            row.count,
            row.ground.to_string(),
            row.air.to_string(),
            row.strategy,
            row.distance_m,
            row.cost_m2
        );
        for take_off in [row.sequential, row.simultaneous, row.in_step] {
            let TakeOff { time_s, conflicts, nearest_m } = take_off;
            let _ = write!(text, "  {time_s:6.1} {conflicts:5} {nearest_m:7.1}");
        }
        if with_time {
            let _ = write!(text, "  {:16.3}", row.calculation_ms);
        }
        text.push('\n');
    }
    text
}

/// Seconds, pairs in conflict, nearest approach in metres.
const HEAD: &str = "time(s) pairs near(m)";

#[cfg(test)]
mod tests {
    use super::*;

    fn small(count: usize, seed: u64) -> Vec<Row> {
        let ground = vec![Layout::Linear, Layout::Matrix, Layout::Random { seed: 3 }];
        compare(&Comparison { counts: vec![count], ground, air: flown().collect(), distance_m: 50.0, seed })
            .unwrap()
    }

    /// Every formation but the one whose places a file gives.
    fn flown() -> impl Iterator<Item = Layout> {
        Layout::ALL.into_iter().filter(|layout| *layout != Layout::Custom)
    }

    #[test]
    fn the_least_cost_flies_in_step_without_a_conflict() {
        for (count, seed) in [(9, 1), (16, 2)] {
            let rows = small(count, seed);
            let strategies = if count <= PERMUTED_MAX { 4 } else { 3 };
            assert_eq!(rows.len(), 3 * flown().count() * strategies);
            for row in &rows {
                if matches!(row.strategy, Strategy::Optimal | Strategy::KuhnMunkres) {
                    // 9.15 m is the least on the ground, with two errors of 0.3 m in both directions.
                    assert!(row.in_step.nearest_m > 9.1 / 2f64.sqrt() - 0.1, "{row:?}");
                    assert_eq!(row.in_step.conflicts, 0, "{row:?}");
                }
            }
            let least = |of: &[Row]| of.iter().map(|row| row.cost_m2).fold(f64::INFINITY, f64::min);
            for same in rows.chunk_by(|a, b| (a.ground, a.air) == (b.ground, b.air)) {
                let ours = same.iter().find(|row| row.strategy == Strategy::KuhnMunkres).unwrap();
                assert!(ours.cost_m2 <= least(same) + 0.1, "{ours:?}");
            }
            // A random assignment has conflicts: otherwise this test would show nothing.
            assert!(rows.iter().any(|row| row.in_step.conflicts > 0));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_table() {
        assert_eq!(table(&small(9, 4), false), table(&small(9, 4), false));
        assert_ne!(table(&small(9, 4), false), table(&small(9, 5), false));
    }

    #[test]
    fn a_way_leads_from_the_ground_to_the_slot() {
        for length_m in [3.0, 80.0, 400.0] {
            let (ground, slot) = (DVec3::ZERO, DVec3::new(length_m, 0.0, FIRST_HEIGHT_M));
            let flight_s = duration_s(length_m);
            let path = Path { ground, slot, start_s: 4.0, flight_s, is_steady: false };
            assert_eq!(path.at(0.0), ground);
            assert_eq!(path.at(5.0), DVec3::Z * 2.5);
            assert!(path.at(path.end_s()).distance(slot) < 1e-9);
            let middle = path.at(6.0 + flight_s / 2.0);
            assert!(middle.distance(DVec3::new(length_m / 2.0, 0.0, FIRST_HEIGHT_M)) < 1e-6, "{middle}");
            for step in 0..1_000 {
                let t = step as f64 * 0.1;
                assert!(path.at(t).distance(path.at(t + 0.1)) <= SPEED_M_S * 0.1 + 1e-9);
            }
        }
        // From 100 m on there is a part at full speed: 10 s of ramps and the length at 10 m/s.
        assert_eq!((duration_s(100.0), duration_s(400.0)), (20.0, 50.0));
    }

    /// Two that exchange their positions meet half-way, and one after another they do not.
    #[test]
    fn aircraft_that_exchange_their_positions_are_a_conflict() {
        let ends = [DVec2::new(-20.0, 0.0), DVec2::new(20.0, 0.0)];
        let path = |from: usize, to: usize, start_s| {
            let (ground, slot) = (ends[from].extend(0.0), ends[to].extend(HEIGHT_M));
            Path { ground, slot, start_s, flight_s: duration_s(43.0), is_steady: false }
        };
        let met = fly(&[path(0, 1, 0.0), path(1, 0, 0.0)]);
        assert_eq!(met.conflicts, 1);
        assert!(met.nearest_m < 0.1, "{met:?}");
        assert_eq!(fly(&[path(0, 0, 0.0), path(1, 1, 0.0)]).conflicts, 0);
    }
}
