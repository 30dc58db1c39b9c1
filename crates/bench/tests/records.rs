//! Flight logs of benches: they replay byte for byte, repeat byte for byte, and what is wrong with one is found.

use std::fs;
use std::path::{Path, PathBuf};

use wingbeat_bench::drills::{Conditions, Draws, Kind, recorded};
use wingbeat_bench::flight::{fly, fly_recorded};
use wingbeat_bench::recording::file;
use wingbeat_bench::scenario::{Scenario, Task, staircase};
use wingbeat_geo::Duration;
use wingbeat_record::compare::{CompareError, Flights, Named, rows};
use wingbeat_record::diff::{self, diff};
use wingbeat_record::event::Event;
use wingbeat_record::reader::{Log, ReadError};
use wingbeat_record::recorder::Block;
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
fn a_position_has_the_time_at_which_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let logs = flown(folder.path()).map(|file| Log::read(&file).unwrap());
    for track in wingbeat_record::export::track::tracks(&logs) {
        let reported_m_s = track.fixes.iter().map(|fix| fix.speed_m_s).fold(0.0, f64::max);
        let of_positions = track
            .fixes
            .windows(2)
            .map(|pair| pair[1].local_m.distance(pair[0].local_m) / (pair[1].time_s - pair[0].time_s));
        let most_m_s = of_positions.fold(0.0, f64::max);
        // Positions wander by 0.3 m; one that is stamped a quarter of a second late doubles the speed.
        assert!(most_m_s < 1.3 * reported_m_s, "{}: {most_m_s} m/s, {reported_m_s} reported", track.name);
    }
}

/// The same records in blocks as short as those of an aircraft, which hands one on each 0.75 s.
fn in_short_blocks(mut log: Log) -> Log {
    let (mut blocks, mut last_us) = (vec![Block::default()], 0);
    for entry in log.entries() {
        let entry = entry.unwrap();
        let now_us = entry.at.as_micros();
        if let Some(block) = blocks.last()
            && block.count > 0
            && now_us >= block.from_us + 750_000
        {
            blocks.push(Block::default());
        }
        blocks.last_mut().unwrap().push(&mut last_us, now_us, &entry.event);
    }
    // As a reader gives them: uncounted.
    log.blocks = blocks.into_iter().map(|block| Block { count: 0, ..block }).collect();
    log
}

/// The files of a flight in two parts, whose first is the aircraft's and whose second is what follows of the journal.
fn parted(folder: &Path, whole: &Log, number: u64, cut: impl Fn(Vec<u8>) -> Vec<u8>, lost: bool) -> PathBuf {
    use wingbeat_record::file::{Header, LogFile};
    let (first, second) = whole.blocks.split_at(whole.blocks.len() / 2);
    let path = |part: u32| folder.join(format!("{number:06}-{part:02}.mcap"));
    for (part, blocks) in [(1, first), (2, second)] {
        let header = Header { about: whole.about.clone(), utc_base_us: None };
        let mut file = LogFile::begin(fs::File::create(path(part)).unwrap(), &header, &blocks[0]).unwrap();
        if part == 2 && lost {
            let mut gap = Block::default();
            gap.push(&mut 0, blocks[0].from_us, &Event::Lost(3));
            file.write(&gap).unwrap();
        }
        for block in blocks {
            file.write(block).unwrap();
            file.sync().unwrap();
        }
        file.finish().unwrap();
    }
    fs::write(path(1), cut(fs::read(path(1)).unwrap())).unwrap();
    path(1)
}

#[test]
fn a_part_that_is_not_whole_ends_a_log_unless_the_next_states_the_loss() {
    let folder = tempfile::tempdir().unwrap();
    let files = flown(folder.path());
    let whole = in_short_blocks(Log::read(&files[0]).unwrap());
    let half = whole.blocks.len() / 2;
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let changed = |mut bytes: Vec<u8>| {
        let at = bytes.len() / 3;
        bytes[at] ^= 0x40;
        bytes
    };
    let read = |number, damage: &dyn Fn(Vec<u8>) -> Vec<u8>, lost| {
        Log::read_flight(&parted(folder.path(), &whole, number, damage, lost)).unwrap()
    };
    let good = read(1, &|bytes| bytes, false);
    assert_eq!((good.blocks == whole.blocks, good.flaw), (true, None));
    // It was read on: what is there of the flight replayed otherwise than flown, and an export had a gap that none stated.
    for (number, log) in
        [(2, read(2, &cut, false)), (3, read(3, &changed, false)), (4, read(4, &changed, true))]
    {
        let flaw = log.flaw.clone().unwrap();
        assert!(
            flaw.contains(&format!("{number:06}-01.mcap"))
                && flaw.contains("the parts after it are left out"),
            "{flaw}"
        );
        assert!(!log.blocks.is_empty() && log.blocks.len() < half, "{} of {half}", log.blocks.len());
        assert_eq!(replayed(&log).difference, None);
    }
    // A disk that took no more: the next part says how much.
    let lost = read(5, &cut, true);
    assert_eq!(lost.flaw, None);
    assert!(lost.blocks.len() > whole.blocks.len() - half);
    assert_eq!(replayed(&lost).lost.map(|(_, count)| count), Some(3));
}

#[test]
fn a_record_that_cannot_be_read_ends_a_log_and_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let files = flown(folder.path());
    let mut whole = Log::read(&files[0]).unwrap();
    let (middle, path) = (whole.blocks.len() / 2, folder.path().join("other.mcap"));
    // A record of a later version, in a file whose checksums are right.
    whole.blocks[middle].records.extend([0, 0xf0, 0x7f, 1, 2, 3]);
    let header = wingbeat_record::file::Header { about: whole.about.clone(), utc_base_us: None };
    let file = fs::File::create(&path).unwrap();
    let mut file = wingbeat_record::file::LogFile::begin(file, &header, &whole.blocks[0]).unwrap();
    whole.blocks.iter().for_each(|block| file.write(block).unwrap());
    file.finish().unwrap();
    let read = Log::read_flight(&path).unwrap();
    assert_eq!(read.blocks.len(), middle + 1);
    assert!(read.flaw.as_ref().is_some_and(|flaw| flaw.contains("cannot be read")), "{:?}", read.flaw);
    assert!(read.entries().all(|entry| entry.is_ok()));
    assert_eq!(replayed(&read).difference, None);
}

#[test]
fn a_drill_with_a_restart_replays_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (mut logs, mut starts) = (0, 0);
    for kind in [Kind::DaemonRestarts, Kind::Loss, Kind::PilotTakes] {
        let folder = folder.path().join(kind.name());
        recorded(kind, 1, Conditions::default(), &Draws::default(), Some(&folder)).unwrap();
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

fn differ(first: &Log, second: &Log, options: &diff::Options<'_>) -> diff::Difference {
    match diff(first, second, options).unwrap() {
        diff::Outcome::Differ(difference) => difference,
        diff::Outcome::Same(count) => panic!("{count} records are the same"),
    }
}

#[test]
fn two_logs_differ_from_the_first_record_on_that_differs() {
    let folder = tempfile::tempdir().unwrap();
    let files = flown(folder.path());
    let read = || Log::read(&files[1]).unwrap();
    let all = diff::Options { only: &[], any_time: false, context: 3 };
    assert!(matches!(diff(&read(), &read(), &all), Ok(diff::Outcome::Same(1_000..))));

    // An answer that is another.
    let mut other = read();
    let block = other.blocks.len() / 2;
    let (mut rest, mut byte) = (other.blocks[block].records.as_slice(), None);
    while let Ok((_, event, after)) = Event::read(rest) {
        if matches!(event, Event::ToAutopilot(bytes) if bytes.len() > 20) {
            byte = Some(other.blocks[block].records.len() - after.len() - 1);
        }
        rest = after;
    }
    let byte = byte.unwrap();
    other.blocks[block].records[byte] ^= 1;
    let difference = differ(&read(), &other, &all);
    assert!(difference.is_answer && difference.same > 500, "{difference:?}");
    let lines = [&difference.before, &difference.first, &difference.second];
    assert_eq!(lines.map(Vec::len), [3, 3, 3]);
    assert!(difference.first[0].contains("to-autopilot") && difference.second[0].contains("to-autopilot"));
    assert_ne!(difference.first[0], difference.second[0]);
    let only = ["log".to_owned()];
    let lines_only = diff::Options { only: &only, ..all };
    assert!(matches!(diff(&read(), &other, &lines_only), Ok(diff::Outcome::Same(5..))));

    // The same at other times.
    let mut later = read();
    later.blocks[block].from_us += 1;
    assert!(differ(&read(), &later, &all).same > 500);
    let any_time = diff::Options { any_time: true, ..all };
    assert!(matches!(diff(&read(), &later, &any_time), Ok(diff::Outcome::Same(1_000..))));

    // One that ends before the other; another program's beginning is the same.
    let mut cut = read();
    cut.blocks.truncate(block);
    let difference = differ(&cut, &read(), &all);
    assert_eq!((difference.first.len(), difference.second.len()), (0, 3));
    let mut version = read();
    let agent = wingbeat_record::AGENT.as_bytes();
    let at = version.blocks[0].records.windows(agent.len()).position(|bytes| bytes == agent).unwrap();
    version.blocks[0].records[at..at + agent.len()].copy_from_slice(b"0123456789abcdef");
    assert!(matches!(diff(&read(), &version, &all), Ok(diff::Outcome::Same(_))));
}

#[test]
fn a_flight_is_compared_with_another_as_the_thesis_does() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let fly = |seed, folder: &Path| fly_recorded(&scenario(), seed, LIMIT, Some(folder)).unwrap();
    let (real, bench) = (fly(7, one.path()), fly(8, two.path()));
    let logs = |folder: &Path, aircraft: &[usize]| -> Vec<Named> {
        let log = |&i: &usize| (format!("log {i}"), Log::read(&file(folder, i)).unwrap());
        aircraft.iter().map(log).collect()
    };
    // The order of the files is not that of the aircraft.
    let flights = Flights {
        real: logs(one.path(), &[0, 1, 2]),
        bench: logs(two.path(), &[2, 0, 1]),
        real_off: vec![],
        bench_off: logs(one.path(), &[1, 2, 0]),
    };
    let found = rows(&flights).unwrap();
    assert_eq!(found.len(), 3);
    for (i, row) in found.iter().enumerate() {
        // Heartbeats, which a log has of the motors, come once a second, and the log has a sample each 0.3 s at least: arming is
        // seen late by so much, and disarming too.
        let near = |found_s: f64, expected_s: f64| (found_s - expected_s).abs() <= 1.3;
        assert!(near(row.real_s.0, real.aircraft[i].flight_time_s), "{row:?} {:?}", real.aircraft[i]);
        assert!(near(row.bench_s.0, bench.aircraft[i].flight_time_s), "{row:?} {:?}", bench.aircraft[i]);
        assert!(near(row.bench_s.1.unwrap(), real.aircraft[i].flight_time_s) && row.real_s.1.is_none());
        // The same mission with other noise: near, and not the same.
        assert!(row.apart_m.0 > 0.0 && row.apart_m.1 < 5.0 && row.apart_m.0 < row.apart_m.1, "{row:?}");
    }

    let refused = |flights: Flights| rows(&flights).unwrap_err();
    let of = |real: &[usize], bench: &[usize], off: &[usize]| Flights {
        real: logs(one.path(), real),
        bench: logs(two.path(), bench),
        real_off: logs(one.path(), off),
        bench_off: vec![],
    };
    assert_eq!(refused(of(&[0, 1], &[0], &[])), CompareError::Counts { real: 2, bench: 1 });
    assert!(matches!(refused(of(&[0, 0], &[0, 1], &[])), CompareError::Twice { .. }));
    assert!(matches!(refused(of(&[0], &[0], &[1])), CompareError::Missing { set: "--real-off", .. }));
    let mut cut = of(&[0], &[0], &[]);
    cut.real[0].1.blocks.truncate(1);
    let begun = &mut cut.real[0].1.blocks[0].records;
    let before_arming = begun.len() / 20;
    let (mut at, mut rest) = (0, begun.as_slice());
    while let Ok((_, _, after)) = Event::read(rest)
        && at < before_arming
    {
        at = begun.len() - after.len();
        rest = after;
    }
    begun.truncate(at);
    assert_eq!(refused(cut), CompareError::NoFlight("log 0".into()));
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
