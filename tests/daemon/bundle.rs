//! The logs of whole daemons, collected over their APIs: real processes with simulated flight controllers.

use crate::common::client;
use crate::common::rig;

use std::{path::Path, time::Instant};

use client::ask;
use rig::{PATIENCE, Rig, aircraft, home};
use tokio::{net::TcpListener, time::sleep};
use wingbeat_api::{AutopilotLogWork, AutopilotLogs, BundledClock, FleetBundle, paths};
use wingbeat_ground::bundle::{FREE_LEAST, Source, Wanted, collect};
use wingbeat_hub::serve;
use wingbeat_onboard::Clock as KernelClock;
use wingbeat_record::{clock::Clock, reader::Log};
use wingbeat_sim::flight_controller::{Config, FlightController};

fn read_clock(path: &Path) -> Result<(BundledClock, Option<String>), String> {
    let (clock, flaw) = Clock::of_file(path).map_err(|error| error.to_string())?;
    let ahead_of_gnss_ms = clock.ahead_us().map(|us| us as f64 / 1e3);
    Ok((BundledClock { ahead_of_gnss_ms, ..BundledClock::default() }, flaw))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_running_daemon_is_collected_with_its_clock_and_one_that_is_gone_is_named() {
    let autopilot = aircraft().await;
    let rig = Rig::new(autopilot.address, false).await;
    // A fix, and the first answers about the clock.
    rig.until("GNSS time", |s| s.navigation.is_some() && s.time_ms > 8_000 && s.log.written > 100).await;
    let out = tempfile::tempdir().unwrap();
    let wanted = Wanted {
        checklists: vec![],
        missing: vec![],
        out: out.path().into(),
        experiment: "one".into(),
        hours: 1,
        resume: false,
        autopilot_logs: 0,
        free_least: FREE_LEAST,
        read_clock: Some(read_clock),
    };
    let there = Source { address: rig.api.to_string(), ..Source::default() };
    let gone = Source { address: "127.0.0.1:1".into(), name: "gone".into(), ..Source::default() };
    let (folder, bundle) = collect(&wanted, None, &[there, gone], &|_| {}).await.unwrap();
    assert!(!bundle.complete);
    let [one, other] = bundle.aircraft.as_slice() else { panic!("{bundle:?}") };
    assert_eq!((one.id.as_deref(), one.missing.len()), (Some("00b827eb01020304"), 0), "{one:?}");
    assert_eq!((other.name.as_str(), other.missing[0].what.as_str()), ("gone", "aircraft"));
    let [file] = one.files.as_slice() else { panic!("{one:?}") };
    // The daemon goes on writing: what was there when it was asked is whole, and says that it is not ended.
    let log = Log::read(&folder.join(&one.folder).join(&file.name)).unwrap();
    assert!(log.blocks.len() > 4 && log.flaw.is_some() && file.flaw.is_some(), "{:?}", log.flaw);
    let ahead = file.clock.as_ref().and_then(|clock| clock.ahead_of_gnss_ms);
    assert!(ahead.is_some(), "{file:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ground_service_collects_into_its_own_folder_one_bundle_at_a_time() {
    let autopilot = aircraft().await;
    let rig = Rig::new(autopilot.address, false).await;
    rig.until("a log", |s| s.log.written > 100).await;
    let config = wingbeat_ground::Config {
        bind: "127.0.0.1:0".parse().unwrap(),
        aircraft: vec![rig.api.to_string()],
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_onboard::Hosts::default(),
        console: None,
        protection: wingbeat_ground::Protection::default(),
    };
    let ground = wingbeat_ground::Ground::start(config).await.unwrap();
    let at = ground.address();
    let collect = |body: &'static str| ask(at, "POST", paths::FLEET_BUNDLE, body);
    let body = r#"{"experiment":"field-day","autopilot_logs":0}"#;
    let (code, answer) = collect(body).await;
    assert!(code == 409 && answer.contains("found no folder for bundles"), "{answer}");
    let out = tempfile::tempdir().unwrap();
    ground.keep_bundles(wingbeat_ground::Bundles { folder: out.path().into(), read_clock: Some(read_clock) });
    let (code, answer) = collect(r#"{"experiment":"field-day","autopilot_logs":17}"#).await;
    assert!(code == 400 && answer.contains("autopilot_logs: found 17, expected 0 to 16"), "{answer}");
    let (code, answer) = collect(body).await;
    assert_eq!(code, 202, "{answer}");
    let (code, answer) = collect(body).await;
    assert!(code == 409 && answer.contains("found one that is being collected"), "{code} {answer}");
    let begun = Instant::now();
    let done = loop {
        let (_, answer) = ask(at, "GET", paths::FLEET_BUNDLE, "").await;
        let now: FleetBundle = serde_json::from_str(&answer).unwrap();
        if !now.running {
            break now;
        }
        assert!(begun.elapsed() < PATIENCE, "{now:?}");
        sleep(std::time::Duration::from_millis(20)).await;
    };
    let (folder, bundle) = (done.folder.unwrap(), done.bundle.unwrap());
    assert!(Path::new(&folder).starts_with(out.path().join("field-day")) && bundle.complete, "{bundle:?}");
    assert!(Path::new(&folder).join("manifest.json").is_file());
    // A name that leads out of it.
    assert_eq!(collect(r#"{"experiment":"../x"}"#).await.0, 202);
    let begun = Instant::now();
    loop {
        let (_, answer) = ask(at, "GET", paths::FLEET_BUNDLE, "").await;
        let now: FleetBundle = serde_json::from_str(&answer).unwrap();
        if let Some(problem) = now.problem {
            assert!(problem.starts_with("experiment: found \"../x\", expected 1 to 64"), "{problem}");
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{answer}");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    ground.stop().await;
}

/// What the daemon answers of them once nothing is under way.
async fn fetched(rig: &Rig) -> AutopilotLogs {
    let begun = Instant::now();
    loop {
        let (code, body) = ask(rig.api, "GET", paths::AUTOPILOT_LOGS, "").await;
        assert_eq!(code, 200, "{body}");
        let now: AutopilotLogs = serde_json::from_str(&body).unwrap();
        if now.work == AutopilotLogWork::None {
            return now;
        }
        assert!(begun.elapsed() < PATIENCE, "{now:?}");
        sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flight_controllers_own_logs_are_fetched_whole_continued_and_not_in_a_flight() {
    let logs: Vec<(u32, Vec<u8>)> = [7_000, 0, 250_000]
        .map(|len: u32| (len, (0..len).map(|i| (i * 31 + i / 255) as u8).collect()))
        .into_iter()
        .enumerate()
        .map(|(i, (_, log))| (if i == 0 { 0 } else { 1_764_000_000 + i as u32 }, log))
        .collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clock = KernelClock::real_time();
    let config = Config { logs: logs.clone(), ..Config::new(1, home()) };
    let fc = FlightController::new(config, 7, clock.now());
    tokio::spawn(serve::flight_controller(listener, fc, clock, |_| {}));
    let rig = Rig::new(address, true).await;
    rig.until("a position", |s| s.navigation.is_some()).await;
    let directory = rig.folder.path().join("log");
    let begin = || ask(rig.api, "POST", paths::AUTOPILOT_LOGS, r#"{"newest":16}"#);
    let (code, body) = ask(rig.api, "POST", paths::AUTOPILOT_LOGS, r#"{"newest":17}"#).await;
    assert!(code == 400 && body.contains("newest: found 17, expected 1 to 16"), "{body}");

    // A part of an earlier daemon's, whose last bytes never reached the card.
    let name = "autopilot-00003-1764000002.bin";
    let mut part = logs[2].1[..150_000].to_vec();
    part[149_000..].fill(0);
    std::fs::write(directory.join(name).with_extension("part"), part).unwrap();
    assert_eq!(begin().await.0, 202);
    let done = fetched(&rig).await;
    assert_eq!((done.problem.as_deref(), done.held.len()), (None, 2), "{done:?}");
    assert_eq!(std::fs::read(directory.join(name)).unwrap(), logs[2].1);
    assert_eq!(std::fs::read(directory.join("autopilot-00001-7000.bin")).unwrap(), logs[0].1);
    // What is there whole is not fetched again.
    let written_at = |name: &str| std::fs::metadata(directory.join(name)).unwrap().modified().unwrap();
    let before = written_at(name);
    assert_eq!(begin().await.0, 202);
    assert_eq!(fetched(&rig).await.held.len(), 2);
    assert_eq!(written_at(name), before);
    // The agent never had them: its flight log does not hold them again.
    let written = rig.status().await.log;
    assert!(written.problem.is_none() && written.lost == 0, "{written:?}");

    // None begins where a flight has.
    rig.set_up(home()).await;
    let (code, body) = begin().await;
    assert!(code == 409 && body.contains("found state "), "{body}");
}
