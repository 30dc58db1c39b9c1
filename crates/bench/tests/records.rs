//! Flight logs of benches: they replay byte for byte, repeat byte for byte, and what is wrong with one is found.

use std::fs;
use std::path::{Path, PathBuf};

use wingbeat_bench::drills::{Conditions, Kind, recorded};
use wingbeat_bench::flight::{fly, fly_recorded};
use wingbeat_bench::recording::file;
use wingbeat_bench::scenario::{Scenario, Task, staircase};
use wingbeat_geo::Duration;
use wingbeat_record::event::Event;
use wingbeat_record::reader::{Log, ReadError};
use wingbeat_record::replay::{Options, Outcome, ReplayError, Until, replay};

/// Three aircraft, two legs.
fn scenario() -> Scenario {
    let mut scenario = Scenario::muscop("stairs", staircase(2, 200.0, 10.0));
    let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
    swarm.aircraft = 3;
    scenario.gps_noise_m = 0.3;
    scenario
}

const LIMIT: Duration = Duration::from_secs(900);

fn flown(folder: &Path) -> [PathBuf; 3] {
    let flight = fly_recorded(&scenario(), 7, LIMIT, Some(folder)).unwrap();
    assert!(flight.succeeded(), "{:?}", flight.warnings);
    // What follows it changes nothing.
    assert_eq!(flight, fly(&scenario(), 7, LIMIT).unwrap());
    [0, 1, 2].map(|i| file(folder, i))
}

fn replayed(log: &Log) -> Outcome {
    replay(log, &Options::default(), |_, _, _, _| ()).unwrap()
}

#[test]
fn a_flight_replays_and_repeats_byte_for_byte() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (files, again) = (flown(one.path()), flown(two.path()));
    for (file, again) in files.iter().zip(&again) {
        assert_eq!(fs::read(file).unwrap(), fs::read(again).unwrap(), "{}", file.display());
        let log = Log::read(file).unwrap();
        assert_eq!(log.flaw, None);
        let outcome = replayed(&log);
        assert_eq!(outcome.difference, None);
        assert_eq!((outcome.starts, outcome.lost), (1, None));
        assert!(outcome.inputs > 1_000 && outcome.compared > 5_000, "{outcome:?}");
        assert_eq!(outcome.states.last().unwrap().1, "Finished");
        let until = Options { until: Some(Until::State("TakingOff".into())), ..Options::default() };
        let part = replay(&log, &until, |_, _, _, _| ()).unwrap();
        assert!(part.inputs < outcome.inputs && part.states.last().unwrap().1 == "TakingOff");
    }
}

#[test]
fn a_drill_with_a_restart_replays_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (mut logs, mut starts) = (0, 0);
    for kind in [Kind::DaemonRestarts, Kind::Loss, Kind::PilotTakes] {
        let folder = folder.path().join(kind.name());
        recorded(kind, 1, Conditions::default(), Some(&folder)).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let outcome = replayed(&Log::read(&path).unwrap());
            assert_eq!(outcome.difference, None, "{}", path.display());
            (logs, starts) = (logs + 1, starts + outcome.starts);
        }
    }
    assert!(logs >= 9 && starts > logs, "{logs} logs, {starts} starts");
}

#[test]
fn what_is_wrong_with_a_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let files = flown(folder.path());
    let whole = Log::read(&files[1]).unwrap();

    // One bit of an output.
    let mut tampered = Log::read(&files[1]).unwrap();
    let (mut at, mut found) = (0, None);
    for (i, block) in tampered.blocks.iter().enumerate() {
        let mut rest = block.records.as_slice();
        while let Ok((_, event, after)) = Event::read(rest) {
            if matches!(event, Event::ToAutopilot(bytes) if bytes.len() > 20) {
                at += 1;
                if at == 30 {
                    found = Some((i, block.records.len() - after.len() - 1));
                }
            }
            rest = after;
        }
    }
    let (block, byte) = found.unwrap();
    tampered.blocks[block].records[byte] ^= 1;
    let difference = replayed(&tampered).difference.unwrap();
    assert!(difference.expected.starts_with("to-autopilot") && difference.expected != difference.found);

    // Another version.
    let mut other = Log::read(&files[1]).unwrap();
    let agent = wingbeat_record::AGENT.as_bytes();
    let at = other.blocks[0].records.windows(agent.len()).position(|bytes| bytes == agent).unwrap();
    other.blocks[0].records[at..at + agent.len()].copy_from_slice(b"0123456789abcdef");
    let refused = replay(&other, &Options::default(), |_, _, _, _| ()).unwrap_err();
    assert!(
        matches!(&refused, ReplayError::OtherVersion { agent, .. } if agent == "0123456789abcdef"),
        "{refused}"
    );
    let anyway = Options { anyway: true, ..Options::default() };
    assert_eq!(replay(&other, &anyway, |_, _, _, _| ()).unwrap().difference, None);

    // Cut anywhere, or with a byte changed anywhere: what was read replays, and nothing panics.
    let bytes = fs::read(&files[1]).unwrap();
    let path = folder.path().join("part.mcap");
    let mut kept = 0;
    for part in 0..12 {
        let at = bytes.len() * part / 12;
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        for content in [&bytes[..at], &changed] {
            fs::write(&path, content).unwrap();
            match Log::read(&path) {
                Ok(log) => {
                    assert!(log.blocks.len() <= whole.blocks.len());
                    assert!(log.flaw.is_some() || log.blocks == whole.blocks, "{at}");
                    if log.blocks.is_empty() {
                        continue;
                    }
                    kept += 1;
                    let outcome = replay(&log, &Options::default(), |_, _, _, _| ()).unwrap();
                    assert_eq!(outcome.difference, None, "{at}");
                }
                Err(ReadError::NoLog { .. }) => assert!(at < 4_096, "{at}"),
                Err(ReadError::Io(error)) => panic!("{error}"),
            }
        }
    }
    assert!(kept > 6, "{kept}");
}

/// Flights that failed once: copied here they are flown again by every version. What each comes to is in the
/// file of the same name with `.txt`.
#[test]
fn flights_that_failed_once_end_as_they_should() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/flights"));
    let mut flown = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "mcap") {
            continue;
        }
        flown += 1;
        let log = Log::read(&path).unwrap();
        let anyway = Options { anyway: true, ..Options::default() };
        let outcome = replay(&log, &anyway, |_, _, _, _| ()).unwrap();
        let states: Vec<&str> = outcome.states.iter().map(|(_, state)| state.as_str()).collect();
        let found =
            format!("states: {}\nlost: {:?}\n", states.join(", "), outcome.lost.map(|(_, count)| count));
        let expected = path.with_extension("txt");
        let expected = fs::read_to_string(&expected)
            .unwrap_or_else(|_| panic!("{}: found none, expected:\n{found}", expected.display()));
        assert_eq!(found, expected, "{}: {:?}", path.display(), outcome.difference);
    }
    assert!(flown > 0);
}
