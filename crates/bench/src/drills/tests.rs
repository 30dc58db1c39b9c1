use super::*;

/// Seeds of each kind in a plain `cargo test`; `wingbeat bench drills` flies 500.
const SEEDS: u64 = 8;

#[test]
fn a_drill_repeats_byte_for_byte_on_any_number_of_threads() {
    let kinds = [Kind::SlaveKilled, Kind::Combined];
    let once = drills(&kinds, 1, 3, 1).unwrap();
    assert_eq!(once, drills(&kinds, 1, 3, 3).unwrap());
    let hashes: std::collections::BTreeSet<u64> = once.iter().map(|o| o.trace_hash).collect();
    assert_eq!(hashes.len(), once.len(), "every seed is another flight");
}

/// Nobody comes near another or moves on before all are there, everybody comes down, nothing panics.
#[test]
fn whatever_goes_wrong_nobody_is_left_behind_or_up() {
    let outcomes = drills(&Kind::SWARM, 1, SEEDS, 2).unwrap();
    for outcome in &outcomes {
        assert!(outcome.safety.is_empty(), "{}", story(outcome));
    }
    let befell = outcomes.iter().filter(|o| !o.story.is_empty()).count();
    assert!(befell * 10 >= outcomes.len() * 9, "{befell} of {}", outcomes.len());
}

/// Where the ether alone is at fault, without long silence, nobody comes near another and all complete.
#[test]
fn loss_alone_costs_neither_distance_nor_the_mission() {
    for outcome in drills(&[Kind::Loss], 1, SEEDS * 2, 2).unwrap() {
        assert!(outcome.is_good() && outcome.completed == outcome.aircraft, "{}", story(&outcome));
        assert!(outcome.separation_min_m > 5.0, "{}", story(&outcome));
    }
}

/// Whatever the operator stops, and whoever does not hear for a while, nobody comes near another.
#[test]
fn neither_an_abort_nor_a_silent_radio_costs_distance() {
    for outcome in drills(&[Kind::AbortAll, Kind::AbortOne, Kind::RadioSilent], 1, SEEDS * 3, 2).unwrap() {
        assert!(outcome.is_good() && outcome.separation_min_m > 5.0, "{}", story(&outcome));
    }
}

/// Drills that were unsafe once, or that their mending made so: one returns unheard through the layer that another
/// climbs through (141, 2.1 m); who is kept from climbing by somebody who never speaks again comes down all the same
/// (87); nobody waits on the leg along which one without a companion flies on (312); nor for ever for those whose homes it
/// never heard (239).
#[test]
fn returns_of_the_unheard_cost_no_distance() {
    for seed in [87, 141, 239, 312] {
        let outcome = drill(Kind::Combined, seed).unwrap();
        assert!(outcome.is_good() && outcome.separation_min_m > 5.0, "{}", story(&outcome));
    }
}

#[test]
fn every_kind_is_found_by_its_name_and_a_failure_by_its_command() {
    for kind in Kind::all() {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("mast".parse::<Kind>().unwrap_err().contains("found 'mast'"));
    assert_eq!(command(Kind::AbortOne, 17), "wingbeat bench drill --kind abort-one --seed 17");
}

#[test]
fn a_table_counts_what_failed() {
    let mut outcome = drill(Kind::Loss, 1).unwrap();
    outcome.safety.push("separation: for the test".into());
    let table = table(std::slice::from_ref(&outcome));
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["loss", "1", "1", "0"], "{table}");
    let told = failures(&[outcome]);
    assert!(told.starts_with("wingbeat bench drill --kind loss --seed 1\n"), "{told}");
    assert!(told.contains("UNSAFE separation: for the test"), "{told}");
}
