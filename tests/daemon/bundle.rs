//! The logs of whole daemons, collected over their APIs: real processes with simulated flight controllers.
#![allow(clippy::disallowed_methods, reason = "daemons are served in real time")]

#[path = "../../crates/onboard/tests/common/client.rs"]
mod client;
#[allow(dead_code, reason = "what other tests use")]
#[path = "common/rig.rs"]
mod rig;

use std::path::Path;

use rig::{Rig, aircraft};
use wingbeat_api::BundledClock;
use wingbeat_ground::bundle::{Source, Wanted, collect};
use wingbeat_record::{clock::Clock, reader::Log};

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
        out: out.path().into(),
        experiment: "one".into(),
        hours: 1,
        resume: false,
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
