//! The fuzz targets for the air on the committed corpora and on some thousand inputs from a seed, so that a
//! plain `cargo test` runs what `cargo fuzz` searches.

#[path = "../../../fuzz/beacons.rs"]
mod entries;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use wingbeat_protocol::StateId;

const INPUTS: u64 = 4_000;

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{}: found {} files", folder.display(), files.len());
    files
}

fn replay(name: &str, run: fn(&[u8])) {
    for file in corpus(name) {
        run_named(&file.display().to_string(), &std::fs::read(&file).unwrap(), run);
    }
}

/// Prints the input before the panic continues.
fn run_named(name: &str, input: &[u8], run: fn(&[u8])) {
    if let Err(panic) = std::panic::catch_unwind(|| run(input)) {
        eprintln!("input: {name}");
        std::panic::resume_unwind(panic);
    }
}

/// Bytes: small numbers, such as enums and lengths are, and anything.
fn random(seed: u64) -> Vec<u8> {
    let mut generator = Pcg64Mcg::new(u128::from(seed) << 32 | 0xbea);
    generator.next_u64();
    let mut below = |bound: u64| (generator.next_u64() >> 33) % bound;
    (0..below(500))
        .map(|_| match below(8) {
            0..=3 => below(16) as u8,
            _ => below(256) as u8,
        })
        .collect()
}

#[test]
fn the_corpus_of_datagrams_passes() {
    replay("datagrams", entries::datagrams);
}

#[test]
fn the_corpus_of_beacons_passes() {
    replay("beacons", entries::beacons);
}

/// A corpus that no longer leads anywhere is none.
#[test]
fn the_corpus_of_beacons_reaches_every_state_of_a_flight() {
    let reached: BTreeSet<StateId> =
        corpus("beacons").iter().flat_map(|file| entries::states(&std::fs::read(file).unwrap())).collect();
    for state in wingbeat_wire::Avoidance::ALL.map(StateId::from).iter().chain(&[StateId::Aborted]) {
        assert!(reached.contains(state), "{state}: found {reached:?}");
    }
}

#[test]
fn random_datagrams_pass() {
    for seed in 0..INPUTS {
        let bytes = random(seed);
        run_named(&format!("seed {seed}"), &bytes, entries::datagrams);
        for (kind, what) in [(1, "a plan"), (12, "a beacon"), (24, "a first part"), (25, "waypoints")] {
            // The same as one of these: sender, counter, flight, the kind's number.
            let bytes = [&[2, 1, 0, kind], &*bytes].concat();
            run_named(&format!("seed {seed}, {what}"), &bytes, entries::datagrams);
        }
    }
}

#[test]
fn random_scripts_of_beacons_pass() {
    for seed in 0..INPUTS {
        run_named(&format!("seed {seed}"), &random(seed), entries::beacons);
    }
}
