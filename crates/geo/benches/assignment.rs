//! How long Kuhn and Munkres' method takes for a large swarm.
//!
//! `cargo bench --package wingbeat-geo --bench assignment [-- AIRCRAFT SEED]`: the time on this machine and, where
//! `valgrind` is installed, how many instructions it takes, from which the time on a slower core follows.
#![allow(clippy::disallowed_methods, reason = "the time that an assignment takes is measured")]

use std::{env, hint::black_box, process::Command, time::Instant};

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wingbeat_geo::DVec2;
use wingbeat_geo::assignment::{PlanePoint, kuhn_munkres};

/// Room for the largest swarm that is measured.
const ROOM: usize = 1000;

/// A Raspberry Pi 3's core (Cortex-A53): 1.2 GHz, 0.8 instructions in a cycle.
const PI_3_PER_S: f64 = 1.2e9 * 0.8;

struct Case {
    name: &'static str,
    ground: Vec<PlanePoint>,
    slots: Vec<PlanePoint>,
}

/// Aircraft stand in a row, or anywhere; slots are a grid, or anywhere. 10 m on the ground, 50 m in the air.
fn cases(count: usize, seed: u64) -> [Case; 3] {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let side = (count as f64).sqrt().ceil();
    let mut anywhere = |distance_m: f64| -> Vec<PlanePoint> {
        let mut uniform = || ((rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * side * distance_m;
        (0..count).map(|_| DVec2::new(uniform(), uniform()).into()).collect()
    };
    let row = |distance_m: f64| -> Vec<PlanePoint> {
        (0..count).map(|i| DVec2::new((i as f64 - (count / 2) as f64) * distance_m, 0.0).into()).collect()
    };
    let grid: Vec<PlanePoint> = (0..count)
        .map(|i| DVec2::new(i as f64 % side - side / 2.0, (i as f64 / side).floor() - side / 2.0) * 50.0)
        .map(PlanePoint::from)
        .collect();
    [
        Case { name: "anywhere to anywhere", ground: anywhere(20.0), slots: anywhere(100.0) },
        Case { name: "anywhere to matrix", ground: anywhere(20.0), slots: grid.clone() },
        Case { name: "row to matrix", ground: row(10.0), slots: grid },
    ]
}

/// Found by its name: valgrind counts inside it only.
#[inline(never)]
#[unsafe(no_mangle)]
fn wingbeat_counted_assignment(case: &Case) -> usize {
    let cost = |i: usize, j: usize| case.ground[i].cost_mm2(case.slots[j]);
    black_box(kuhn_munkres::<ROOM>(case.ground.len(), cost))[0]
}

/// Instructions of one case, by this program under valgrind.
fn instructions(count: usize, seed: u64, case: usize) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=wingbeat_counted_assignment")
        .arg(env::current_exe().ok()?)
        .args([count.to_string(), seed.to_string(), case.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    text.lines().find_map(|line| line.split_once("Collected : ")).and_then(|(_, n)| n.trim().parse().ok())
}

fn main() {
    let numbers: Vec<u64> = env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (count, seed) = (numbers.first().map_or(500, |&n| n as usize), numbers.get(1).copied().unwrap_or(1));
    assert!((2..=ROOM).contains(&count), "aircraft: found {count}, expected 2 to {ROOM}");
    let cases = cases(count, seed);
    if let Some(&one) = numbers.get(2) {
        black_box(wingbeat_counted_assignment(&cases[one as usize % cases.len()]));
        return;
    }
    for (index, case) in cases.iter().enumerate() {
        let began = Instant::now();
        black_box(wingbeat_counted_assignment(case));
        let took_ms = began.elapsed().as_secs_f64() * 1e3;
        let counted = match instructions(count, seed, index) {
            Some(n) => format!(
                "{:.1} million instructions, {:.3} s on a Raspberry Pi 3 class core (estimated)",
                n / 1e6,
                n / PI_3_PER_S
            ),
            None => "instructions not counted: no valgrind".to_owned(),
        };
        println!("assignment: {count} aircraft, {}: {counted}; {took_ms:.0} ms here", case.name);
    }
}
