//! Parameters of whole daemons with simulated flight controllers: read, set, compared by a ground service.

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;

use std::{net::SocketAddr, time::Duration};

use aircraft::{flight_controller, until};
use client::ask;
use config::{config, tcp};
use tokio::{sync::watch, time::sleep};
use wingbeat_api::{
    FleetParameterWrite, FleetParameters, LinkState, ParameterComparison, ParameterEffect, ParameterFile,
    ParameterReference, ParameterTable, ParameterValue, ParameterWork, VehicleParameters, paths,
};
use wingbeat_ground::Ground;
use wingbeat_hub::Hub;
use wingbeat_onboard::{Clock, start};
use wingbeat_protocol::muscop;
use wingbeat_sim::{
    channel::{Channel, Draw, Model},
    motion::Profile,
};
use wingbeat_wire::VehicleId;

const IDS: [u64; 2] = [0xa1, 0xa2];

async fn fleet(ground: SocketAddr, method: &str, body: &str) -> FleetParameters {
    let (code, answer) = ask(ground, method, paths::FLEET_PARAMETERS, body).await;
    assert!(code == 200 || code == 202, "{code} {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

/// Waits until no aircraft reads or sets anything.
async fn idle(ground: SocketAddr) -> FleetParameters {
    for _ in 0..600 {
        let now = fleet(ground, "GET", "").await;
        let is_idle = |work| work == ParameterWork::None;
        if now.vehicles.iter().all(|v| v.progress.as_ref().is_some_and(|p| is_idle(p.work))) {
            return now;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("never idle");
}

async fn compared(ground: SocketAddr, reference: &ParameterReference) -> ParameterComparison {
    let body = serde_json::to_string(reference).expect("JSON");
    let (code, answer) = ask(ground, "POST", paths::FLEET_PARAMETERS_COMPARISON, &body).await;
    assert_eq!(code, 200, "{answer}");
    serde_json::from_str(&answer).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_of_many_are_read_compared_and_set() {
    let clock = Clock::real_time();
    let (hub, radios) = Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 5, 2), 2, clock);
    let (sender, online) = watch::channel(true);
    let mut daemons = vec![];
    for (i, (id, radio)) in (0..).zip(IDS.into_iter().zip(radios)) {
        let place = (i, 10.0 * f64::from(i));
        let autopilot = flight_controller(Profile::Copter462, place, clock, None, online.clone()).await;
        let agent = wingbeat_agent::Config::new(muscop::Config::new(VehicleId(id), VehicleId(IDS[0]), 2));
        daemons.push(start(config(agent, tcp(autopilot)), clock, radio).await.expect("it starts"));
    }
    for daemon in &daemons {
        until(daemon, "a heartbeat", |s| s.flight_controller.link == LinkState::Up).await;
        until(daemon, "a position", |s| s.navigation.is_some()).await;
    }
    let one = daemons[0].address();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("fleet.param"), "RTL_ALT 2000\n").expect("written");
    let ground = Ground::start(wingbeat_ground::Config {
        bind: "127.0.0.1:0".parse().expect("an address"),
        aircraft: daemons.iter().map(|daemon| daemon.address().to_string()).collect(),
        web_dir: None,
        tiles: None,
        parameters: Some(folder.path().to_owned()),
        records: None,
        hosts: wingbeat_onboard::Hosts::default(),
        console: None,
        protection: wingbeat_ground::Protection::default(),
    })
    .await
    .expect("the service starts");
    let at = ground.address();
    for _ in 0..100 {
        let seen = |a: &wingbeat_api::FleetAircraft| a.status.is_some();
        if ground.picture().await.expect("a picture").aircraft.iter().all(seen) {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }

    // Nothing is known before it is read, and nothing is said to differ.
    let nothing = compared(at, &ParameterReference::default()).await;
    assert!(nothing.rows.is_empty() && nothing.vehicles.iter().all(|v| v.age_ms.is_none()), "{nothing:?}");

    let file_of = |vehicle: String| format!("{}?vehicle={vehicle}", paths::FLEET_PARAMETERS_FILE);
    let own_file = file_of(VehicleId(IDS[0]).to_string());
    let (code, body) = ask(at, "GET", &own_file, "").await;
    assert!(code == 409 && body.contains("let it be read first"), "{code} {body}");

    let begun = fleet(at, "POST", r#"{"vehicles":[]}"#).await;
    assert!(begun.vehicles.iter().all(|v| v.problem.is_none()), "{begun:?}");
    let read = idle(at).await;
    for vehicle in &read.vehicles {
        let progress = vehicle.progress.as_ref().expect("an answer");
        assert!(progress.age_ms.is_some() && progress.problems.is_empty(), "{progress:?}");
        assert_eq!(Some(progress.received), progress.count);
        assert!(progress.received > 120, "{progress:?}");
    }
    let (_, body) = ask(one, "GET", paths::PARAMETERS, "").await;
    let table: ParameterTable = serde_json::from_str(&body).expect("JSON");
    assert_eq!(Some(table.parameters.len()), table.progress.count.map(usize::from));

    // Against the folder's profile all have drifted.
    let drifted = compared(at, &ParameterReference::default()).await;
    assert_eq!(drifted.files, ["fleet.param"]);
    let row = drifted.rows.iter().find(|row| row.name == "RTL_ALT").expect("it differs");
    assert_eq!(row.expected, [Some(2_000.0), Some(2_000.0)]);
    assert!(drifted.vehicles.iter().all(|v| v.drifted == 1), "{drifted:?}");

    // Set on both, one of them with a name that does not exist, and a fraction of a whole number.
    let value = |name: &str, value| ParameterValue { name: name.into(), value };
    let vehicles = vec![
        VehicleParameters {
            vehicle: VehicleId(IDS[0]).to_string(),
            parameters: vec![
                value("RTL_ALT", 2_000.0),
                value("NO_SUCH", 1.0),
                value("RTL_ALT_TYPE", 0.5),
                value("FS_EKF_ACTION", 1.0),
            ],
        },
        VehicleParameters {
            vehicle: VehicleId(IDS[1]).to_string(),
            parameters: vec![value("RTL_ALT", 2_000.0)],
        },
    ];
    let body = serde_json::to_string(&FleetParameterWrite { vehicles }).expect("JSON");
    fleet(at, "PUT", &body).await;
    let set = idle(at).await;
    let outcomes = |i: usize| -> Vec<_> {
        let progress = set.vehicles[i].progress.as_ref().expect("an answer");
        progress.outcomes.iter().map(|outcome| outcome.effect).collect()
    };
    use ParameterEffect::{Refused, Set, Unchanged};
    let first = outcomes(0);
    assert_eq!(first[..3], [Set, Refused, Refused], "{set:?}");
    assert!(matches!(first[3], Set | Unchanged), "{set:?}");
    assert_eq!(outcomes(1), [Set]);
    let reasons: Vec<_> = set.vehicles[0].progress.iter().flat_map(|p| &p.outcomes).collect();
    assert_eq!(
        reasons[1].reason,
        "parameter NO_SUCH: no answer after 3 requests, expected a parameter of this autopilot"
    );
    assert_eq!(reasons[2].reason, "parameter RTL_ALT_TYPE: found 0.5, expected a whole number");
    let after = compared(at, &ParameterReference::default()).await;
    assert!(after.vehicles.iter().all(|v| v.drifted == 0), "{after:?}");

    // A profile of the console's own, with a bad line, counts instead of the folder's.
    let text = "RTL_ALT 2500\nrubbish\n".to_owned();
    let profile = Some(ParameterFile { name: "mine.param".into(), text });
    let mine = compared(at, &ParameterReference { profile, overlays: vec![] }).await;
    assert_eq!((mine.files, mine.problems.len()), (vec!["mine.param".to_owned()], 1));
    assert!(mine.vehicles.iter().all(|v| v.drifted == 1));

    // What one holds is a file, and the profile with which it does not differ.
    let (code, text) = ask(at, "GET", &own_file, "").await;
    assert!(code == 200 && text.contains("\nRTL_ALT,2000\n"), "{code} {text}");
    assert_eq!(text.lines().count(), table.parameters.len() + 1);
    let profile = Some(ParameterFile { name: "own.param".into(), text });
    let own = compared(at, &ParameterReference { profile, overlays: vec![] }).await;
    assert_eq!((own.problems, own.vehicles[0].drifted), (vec![], 0));
    assert!(own.vehicles[1].drifted > 0, "another has another address: {:?}", own.vehicles[1]);

    // What cannot be asked for is named.
    let (code, body) = ask(at, "GET", &file_of("drone".into()), "").await;
    assert!((code == 400 || code == 404) && body.contains("drone"), "{code} {body}");
    let (code, body) = ask(one, "PUT", paths::PARAMETERS, r#"{"parameters":[]}"#).await;
    assert!(code == 400 && body.contains("expected 1 to 2048"), "{code} {body}");
    let (code, body) = ask(at, "PUT", paths::FLEET_PARAMETERS, r#"{"vehicles":[]}"#).await;
    assert!(code == 400 && body.contains("expected at least one"), "{code} {body}");
    drop((sender, hub));
    ground.stop().await;
}
