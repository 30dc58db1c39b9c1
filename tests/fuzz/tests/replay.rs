//! Every door on its committed corpus and on some thousand inputs from a seed, so that a plain `cargo test` runs what
//! `cargo xtask fuzz` and cargo-fuzz search.

use std::collections::BTreeSet;

use wingbeat_fuzz_targets::mutate::Mutator;
use wingbeat_fuzz_targets::{TARGETS, air, autopilot, corpus};
use wingbeat_protocol::StateId;

const INPUTS: u64 = 3_000;

fn members(name: &str) -> Vec<(String, Vec<u8>)> {
    let files = corpus(name).unwrap_or_else(|e| panic!("the corpus of {name}: {e}"));
    assert!(files.len() >= 5, "{name}: found {} files", files.len());
    files.into_iter().map(|file| (file.display().to_string(), std::fs::read(&file).unwrap())).collect()
}

/// Prints the input before the panic continues.
fn run_named(name: &str, input: &[u8], run: fn(&[u8])) {
    if let Err(panic) = std::panic::catch_unwind(|| run(input)) {
        eprintln!("input: {name}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_corpus_passes() {
    for target in TARGETS {
        for (name, input) in members(target.name) {
            run_named(&name, &input, target.run);
        }
    }
    for (name, input) in members("jobs") {
        run_named(&name, &input[1..], autopilot::every_job);
    }
}

#[test]
fn mutations_of_every_corpus_pass() {
    for target in TARGETS {
        let corpus = members(target.name).into_iter().map(|(_, input)| input).collect();
        let (mut mutator, mut input) = (Mutator::new(corpus, 1), Vec::new());
        for number in 0..INPUTS {
            mutator.next_into(&mut input);
            run_named(&format!("{} {number}: {input:?}", target.name), &input, target.run);
        }
    }
}

/// A corpus that no longer leads anywhere is none.
#[test]
fn the_corpus_of_beacons_reaches_every_state_of_a_flight() {
    let reached: BTreeSet<StateId> =
        members("beacons").iter().flat_map(|(_, input)| air::states(input)).collect();
    for state in wingbeat_wire::Avoidance::ALL.map(StateId::from).iter().chain(&[StateId::Aborted]) {
        assert!(reached.contains(state), "{state}: found {reached:?}");
    }
}

#[test]
fn the_corpora_of_swarms_reach_every_state_of_a_flight() {
    use StateId::{
        Aborted, Finished, Following, Landing, LeaderLost, MovingToLand, MovingToWaypoint, ReadyToFly, Setup,
        SetupFinished, Start, TakingOff, WaitMaster, WaypointReached,
    };
    let common =
        [Start, Setup, ReadyToFly, TakingOff, SetupFinished, MovingToLand, Landing, Finished, Aborted];
    let muscop = (air::muscop_states as fn(&[u8]) -> _, "muscop", vec![WaypointReached, MovingToWaypoint]);
    let follow_me =
        (air::follow_me_states as fn(&[u8]) -> _, "follow_me", vec![WaitMaster, Following, LeaderLost]);
    for (states, name, own) in [muscop, follow_me] {
        let reached: BTreeSet<StateId> = members(name).iter().flat_map(|(_, input)| states(input)).collect();
        for state in common.iter().chain(&own) {
            assert!(reached.contains(state), "{name}, {state}: found {reached:?}");
        }
    }
}
