//! The fuzz targets' entry functions on the committed corpora and on some thousand inputs from a seed, so
//! that a plain `cargo test` runs what `cargo fuzz` searches.

#[path = "../../../fuzz/entries.rs"]
mod entries;

use std::path::Path;

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

const INPUTS: u64 = 4_000;

fn replay(name: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{}: found {} files", folder.display(), files.len());
    for file in files {
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

/// Bytes as they occur in frames: small numbers, start bytes, anything.
fn random(seed: u64) -> Vec<u8> {
    let mut generator = Pcg64Mcg::new(u128::from(seed) << 32 | 0x5eed);
    generator.next_u64();
    let mut below = |bound: u64| (generator.next_u64() >> 33) % bound;
    (0..below(600))
        .map(|_| match below(16) {
            0 => 0xfd,
            1 => 0xfe,
            2..=9 => below(12) as u8,
            _ => below(256) as u8,
        })
        .collect()
}

#[test]
fn the_corpus_of_frames_passes() {
    replay("frames", entries::frames);
}

#[test]
fn the_corpus_of_jobs_passes() {
    replay("jobs", entries::jobs);
}

#[test]
fn random_streams_pass() {
    for seed in 0..INPUTS {
        run_named(&format!("seed {seed}"), &random(seed), entries::frames);
    }
}

#[test]
fn random_scripts_pass() {
    for seed in 0..INPUTS {
        run_named(&format!("seed {seed}"), &random(seed), entries::jobs);
    }
}
