use super::*;

#[test]
fn a_drill_repeats_byte_for_byte() {
    let kinds = [Kind::SlaveKilled, Kind::Combined];
    let once = drills(&kinds, 1, 3, 1).unwrap();
    let again = drills(&kinds, 1, 3, 3).unwrap();
    assert_eq!(once, again);
    let hashes: std::collections::BTreeSet<u64> = once.iter().map(|o| o.trace_hash).collect();
    assert_eq!(hashes.len(), once.len(), "every seed is another flight");
}
