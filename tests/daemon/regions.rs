//! Fence and rally points of whole daemons with simulated flight controllers: sent by a ground service, read back, compared.

use crate::common::aircraft;
use crate::common::client;
use crate::common::config;

use std::{net::SocketAddr, time::Duration};

use aircraft::{flight_controller, until};
use client::{ask, ask_with};
use config::{config, tcp};
use tokio::{sync::watch, time::sleep};
use wingbeat_api::{
    FenceArea, FleetRegionWrite, FleetRegions, GroundPoint, LeaseGrant, LinkState, RallyPoint, Region,
    RegionState, RegionWork, paths,
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

const IDS: [u64; 3] = [0xa1, 0xa2, 0xa3];
/// The third flies a firmware that has no such lists.
const PROFILES: [Profile; 3] = [Profile::Copter462, Profile::Copter462, Profile::Copter357];

async fn fleet(ground: SocketAddr, method: &str, body: &str) -> FleetRegions {
    let (code, answer) = ask(ground, method, paths::FLEET_REGION, body).await;
    assert!(code == 200 || code == 202, "{code} {answer}");
    serde_json::from_str(&answer).expect("JSON")
}

/// Waits until no aircraft reads or sends anything.
async fn idle(ground: SocketAddr) -> FleetRegions {
    for _ in 0..600 {
        let now = fleet(ground, "GET", "").await;
        if now.vehicles.iter().all(|v| v.state.as_ref().is_some_and(|s| s.work == RegionWork::None)) {
            return now;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("never idle");
}

/// Waits until the service holds the lease of each aircraft.
async fn leases(ground: &wingbeat_ground::Handle) {
    for _ in 0..100 {
        let picture = ground.picture().await.expect("a picture");
        let lease = |a: &wingbeat_api::FleetAircraft| a.status.as_ref().and_then(|s| s.lease.clone());
        if picture.aircraft.iter().all(|a| lease(a).is_some_and(|lease| lease.console == picture.console)) {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("the service does not hold all leases");
}

/// Sends a region to one aircraft as another console, once the lease of the last one has ended.
async fn change(aircraft: SocketAddr, region: &str) {
    for _ in 0..100 {
        let lease = r#"{"console":"another","ttl_ms":1000}"#;
        let (code, answer) = ask(aircraft, "POST", paths::LEASE, lease).await;
        if code == 200 {
            let grant: LeaseGrant = serde_json::from_str(&answer).expect("a grant");
            let token = grant.token.expect("the token of a new lease");
            let (code, answer) = ask_with(&token, aircraft, "PUT", paths::REGION, region).await;
            assert_eq!(code, 202, "{answer}");
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("the lease of the stopped service does not end");
}

/// So far away, to the 1e-7 degree that the flight controller keeps.
fn moved(at: &GroundPoint, north_deg: f64, east_deg: f64) -> GroundPoint {
    let to_e7 = |degrees: f64| (degrees * 1e7).round() as i32;
    GroundPoint::of(to_e7(at.latitude_deg + north_deg), to_e7(at.longitude_deg + east_deg))
}

fn square(at: &GroundPoint, half_deg: f64) -> FenceArea {
    let corners = [(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)];
    let corners = corners.map(|(north, east)| moved(at, north * half_deg, east * half_deg));
    FenceArea::Polygon { inclusion: true, corners: corners.to_vec() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_is_sent_to_many_read_back_compared_and_cleared() {
    let clock = Clock::real_time();
    let (hub, radios) = Hub::spawn(Channel::new(Model::Unrestricted, Draw::PerPacket, 5, 3), 3, clock);
    let (sender, online) = watch::channel(true);
    let mut daemons = vec![];
    for (i, (id, radio)) in (0..).zip(IDS.into_iter().zip(radios)) {
        let place = (i, 10.0 * f64::from(i));
        let profile = PROFILES[usize::from(i)];
        let autopilot = flight_controller(profile, place, clock, None, online.clone()).await;
        let agent = wingbeat_agent::Config::new(muscop::Config::new(VehicleId(id), VehicleId(IDS[0]), 3));
        daemons.push(start(config(agent, tcp(autopilot)), clock, radio).await.expect("it starts"));
    }
    for daemon in &daemons {
        until(daemon, "a heartbeat", |s| s.flight_controller.link == LinkState::Up).await;
        until(daemon, "a position", |s| s.navigation.is_some()).await;
        until(daemon, "a version", |s| {
            s.checks.iter().any(|c| c.name == "ArduCopter" && c.detail.contains('.'))
        })
        .await;
    }
    let one = daemons[0].address();
    let position = daemons[0].status().borrow().navigation.expect("a position").position;
    let here = GroundPoint { latitude_deg: position.latitude_deg, longitude_deg: position.longitude_deg };
    // As the flight controller keeps it.
    let here = GroundPoint::of((here.latitude_deg * 1e7) as i32, (here.longitude_deg * 1e7) as i32);
    let service = || wingbeat_ground::Config {
        bind: "127.0.0.1:0".parse().expect("an address"),
        aircraft: daemons.iter().map(|daemon| daemon.address().to_string()).collect(),
        web_dir: None,
        tiles: None,
        parameters: None,
        records: None,
        hosts: wingbeat_onboard::Hosts::default(),
        console: None,
        protection: wingbeat_ground::Protection::default(),
    };
    let ground = Ground::start(service()).await.expect("the service starts");
    let at = ground.address();
    leases(&ground).await;

    // Sent to all: two hold it, the old firmware says why not.
    let exclusion = FenceArea::Circle { inclusion: false, centre: moved(&here, 0.002, 0.0), radius_m: 30.5 };
    let GroundPoint { latitude_deg, longitude_deg } = moved(&here, 0.0005, 0.0);
    let rally = RallyPoint { latitude_deg, longitude_deg, height_m: 25 };
    let fence = vec![square(&here, 0.005), exclusion];
    let region = Region { fence: Some(fence.clone()), rally: Some(vec![rally]) };
    let write = |vehicles: &[u64], region: &Region| {
        let vehicles = vehicles.iter().map(|id| VehicleId(*id).to_string()).collect();
        serde_json::to_string(&FleetRegionWrite { vehicles, region: region.clone() }).expect("JSON")
    };
    let begun = fleet(at, "PUT", &write(&[], &region)).await;
    assert_eq!(begun.vehicles.len(), 3);
    let old = begun.vehicles[2].problem.as_deref().expect("refused");
    assert!(
        old.contains("found ArduCopter 3.5.7, which has no list of them in the mission protocol"),
        "{old}"
    );
    let held = idle(at).await;
    for vehicle in &held.vehicles[..2] {
        let state = vehicle.state.as_ref().expect("an answer");
        assert!(state.problems.is_empty() && vehicle.differs.is_empty(), "{vehicle:?}");
        assert_eq!((state.fence.as_ref(), state.rally.as_deref()), (Some(&fence), Some(&[rally][..])));
    }
    // It is the flight controller's: its count of points shows in its parameters.
    until(&daemons[0], "the count", |s| {
        s.flight_controller.parameters.iter().any(|p| p.name == "FENCE_TOTAL" && p.value == Some(5.0))
    })
    .await;

    // While the service holds the lease another console changes nothing.
    let other = serde_json::to_string(&Region { fence: Some(vec![square(&here, 0.004)]), rally: None });
    let other = other.expect("JSON");
    let (code, answer) = ask(one, "PUT", paths::REGION, &other).await;
    assert!(code == 409 && answer.contains("found the lease of console"), "{code} {answer}");

    // Another console changes one of them later, and the service that reads both again finds it.
    ground.stop().await;
    change(one, &other).await;
    let ground = Ground::start(service()).await.expect("the service starts");
    let at = ground.address();
    leases(&ground).await;
    fleet(at, "POST", r#"{"vehicles":[]}"#).await;
    let drifted = idle(at).await;
    assert!(drifted.vehicles[0].differs.is_empty(), "{drifted:?}");
    assert_eq!(drifted.vehicles[1].differs, ["fence: found 2 areas, expected 1"]);

    // A fence that an aircraft stands outside of is not sent.
    let far = GroundPoint { latitude_deg: here.latitude_deg + 1.0, ..here };
    let outside = Region { fence: Some(vec![square(&far, 0.001)]), rally: None };
    let refused = fleet(at, "PUT", &write(&[IDS[0]], &outside)).await;
    let why = refused.vehicles[0].problem.as_deref().expect("refused");
    assert!(why.contains("found home outside of the fence"), "{why}");

    // Cleared, and read back empty.
    let nothing = Region { fence: Some(vec![]), rally: Some(vec![]) };
    fleet(at, "PUT", &write(&IDS[..2], &nothing)).await;
    let cleared = idle(at).await;
    for vehicle in &cleared.vehicles[..2] {
        let RegionState { fence, rally, problems, .. } = vehicle.state.clone().expect("an answer");
        assert_eq!((fence, rally, problems), (Some(vec![]), Some(vec![]), vec![]));
        assert!(vehicle.differs.is_empty(), "{vehicle:?}");
    }

    // What is no fence is named, by the service and by the aircraft.
    let two = r#"{"fence":[{"shape":"polygon","inclusion":true,"corners":[{"latitude_deg":1,"longitude_deg":2}]}]}"#;
    let (code, body) = ask(one, "PUT", paths::REGION, two).await;
    assert!(code == 400 && body.contains("fence[0]: found 1 corners, expected at least 3"), "{code} {body}");
    let (code, body) =
        ask(at, "PUT", paths::FLEET_REGION, &format!(r#"{{"vehicles":[],"region":{two}}}"#)).await;
    assert!(code == 400 && body.contains("expected at least 3"), "{code} {body}");
    let (code, body) = ask(at, "POST", paths::REGION_FILES, r#"{"name":"a.plan","text":"{}"}"#).await;
    assert!(code == 400 && body.contains("a.plan: found neither"), "{code} {body}");
    drop((sender, hub));
    ground.stop().await;
}
