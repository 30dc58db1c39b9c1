//! Plans are compared with the aircraft as they are, and no aircraft is told.

use crate::support;

use reqwest::Method;
use serde_json::{Value, json};
use support::{Fake, all_up, ground, id, picture};
use wingbeat_api::measurements::Battery;
use wingbeat_api::{GeoPoint, LinkState, Parameter, Phase, PlanPreview, SwarmPlan, paths};
use wingbeat_ground::Handle;

/// Metres per degree of latitude; the fakes stand at 39.48, -0.34.
const DEGREE_M: f64 = 111_034.0;
const HERE: [f64; 2] = [39.48, -0.34];

async fn post(handle: &Handle, path: &str, body: &Value) -> (u16, Value) {
    let client = wingbeat_ground::plain_client().expect("a client");
    let request = client.request(Method::POST, format!("http://{}{path}", handle.address())).json(body);
    let response = request.send().await.expect("it answers");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

async fn preview(handle: &Handle, body: &Value) -> PlanPreview {
    let (status, answer) = post(handle, paths::PLAN_PREVIEW, body).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_value(answer).expect("a preview")
}

/// A waypoint so many metres north and east of where the fakes stand.
fn waypoint(north_m: f64, east_m: f64) -> Value {
    let longitude_deg = HERE[1] + east_m / (DEGREE_M * HERE[0].to_radians().cos());
    json!({"latitude_deg": HERE[0] + north_m / DEGREE_M, "longitude_deg": longitude_deg, "height_m": 20.0})
}

fn draft(missions: &[(usize, Value)]) -> Value {
    let missions: Vec<_> = missions
        .iter()
        .map(|(number, waypoints)| json!({"vehicle": id(*number), "mission": {"name": "m", "waypoints": waypoints}}))
        .collect();
    json!({"missions": missions})
}

/// Aircraft that fly for themselves, side by side.
async fn alone(count: usize) -> Vec<Fake> {
    let mut fakes = Vec::new();
    for number in 1..=count {
        let fake = Fake::start(number).await;
        {
            let status = &mut fake.lock().status;
            status.protocol = "mission".to_owned();
            status.swarm = None;
        }
        fakes.push(fake);
    }
    fakes
}

fn texts(preview: &PlanPreview) -> Vec<(bool, &str)> {
    preview.problems.iter().map(|problem| (problem.stops, problem.text.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mission_far_from_the_aircraft_must_not_be_sent() {
    let fakes = alone(1).await;
    let handle = ground(&fakes).await;
    picture(&handle, "its status arrives", all_up).await;
    let far = json!([waypoint(113_000.0, 0.0), waypoint(113_100.0, 0.0)]);
    let found = preview(&handle, &draft(&[(1, far)])).await;
    assert_eq!(texts(&found), [(true, "Waypoint 2 lies 113.3 km from UAV 1, expected at most 5.0 km")]);
    let away_m = found.flights[0].distance_m.expect("known");
    assert!((away_m - 113_200.0).abs() < 300.0, "{away_m}");
    assert_eq!(found.flights[0].duration_s, None);

    let apart = json!([waypoint(600.0, 0.0), waypoint(700.0, 0.0)]);
    let found = preview(&handle, &draft(&[(1, apart)])).await;
    assert_eq!(texts(&found), [(false, "The first waypoint lies 600 m from UAV 1")]);

    let mut high = draft(&[(1, json!([waypoint(10.0, 0.0), waypoint(90.0, 0.0)]))]);
    high["missions"][0]["mission"]["waypoints"][1]["height_m"] = json!(130.0);
    let found = preview(&handle, &high).await;
    let fence = "m, waypoint 2: found altitude 130 m above home, expected at most 120 m (the fence)";
    assert_eq!(texts(&found), [(true, fence)]);
    assert!(picture(&handle, "nothing changed", all_up).await.missions.is_empty());

    fakes[0].lock().status.phase = Phase::Moving;
    picture(&handle, "it flies", |p| p.aircraft[0].status.as_ref().is_some_and(|s| s.phase == Phase::Moving))
        .await;
    let near = draft(&[(1, json!([waypoint(10.0, 0.0), waypoint(90.0, 0.0)]))]);
    assert_eq!(texts(&preview(&handle, &near).await), [(true, "UAV 1 takes a mission before Set up only")]);

    fakes[0].lock().status.phase = Phase::Start;
    picture(&handle, "it is down", |p| {
        p.aircraft[0].status.as_ref().is_some_and(|s| s.phase == Phase::Start)
    })
    .await;
    fakes[0].lock().mute = true;
    picture(&handle, "it is lost", |p| p.aircraft[0].link == LinkState::Lost).await;
    let found = preview(&handle, &near).await;
    assert_eq!(texts(&found), [(false, "UAV 1 is out of contact: this is compared with where it was last")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn duration_and_charge_are_estimated_from_the_aircrafts_own_speed() {
    let fakes = alone(1).await;
    {
        let status = &mut fakes[0].lock().status;
        let speed = Parameter { name: "WPNAV_SPEED".into(), value: Some(1000.0), detail: String::new() };
        status.flight_controller.parameters = vec![speed];
        let battery = Battery {
            remaining_percent: Some(40),
            voltage_v: 15.0,
            current_a: None,
            cells_v: Vec::new(),
            consumed_mah: None,
            left_s: None,
            needed_s: None,
            batteries: Vec::new(),
        };
        status.measurements.battery = Some(battery);
    }
    let handle = ground(&fakes).await;
    picture(&handle, "its status arrives", all_up).await;
    let mut request = draft(&[(1, json!([waypoint(0.0, 0.0), waypoint(200.0, 0.0)]))]);
    let found = preview(&handle, &request).await;
    // Up 20 m at 2.5 m/s, 200 m at 10 m/s with 10 s to speed up and stop, down 10 m at 1.5 and 10 m at 0.5 m/s.
    let flight = &found.flights[0];
    let duration_s = flight.duration_s.expect("known");
    assert!((duration_s - (8.0 + 30.0 + 20.0 / 3.0 + 20.0)).abs() < 0.1, "{duration_s}");
    assert!((flight.length_m.expect("known") - 200.0).abs() < 0.5);
    assert_eq!((flight.needed_percent, flight.remaining_percent), (None, Some(40)));
    assert_eq!(texts(&found), []);
    for (endurance_s, expected) in [
        (1200.0, vec![]),
        (200.0, vec![(false, "UAV 1 would land with 8 % of its battery, expected at least 20 %")]),
        (100.0, vec![(true, "The battery of UAV 1 does not last")]),
    ] {
        request["endurance_s"] = json!(endurance_s);
        assert_eq!(texts(&preview(&handle, &request).await), expected, "{endurance_s} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_speed_of_4_7_counts_under_its_own_name() {
    let fakes = alone(4).await;
    let parameter =
        |name: &str, cm_s: f64| Parameter { name: name.into(), value: Some(cm_s), detail: String::new() };
    for (fake, parameters) in fakes.iter().zip([
        vec![parameter("WP_SPD", 1000.0)],
        vec![parameter("WPNAV_SPEED", 1000.0)],
        // Nothing that could be flown: as without, 5 m/s.
        vec![parameter("WP_SPD", 0.0)],
        vec![],
    ]) {
        fake.lock().status.flight_controller.parameters = parameters;
    }
    let handle = ground(&fakes).await;
    picture(&handle, "their statuses arrive", |p| all_up(p) && p.aircraft.len() == 4).await;
    let route = json!([waypoint(0.0, 0.0), waypoint(200.0, 0.0)]);
    let mut durations_s = vec![];
    for number in 1..=4 {
        let found = preview(&handle, &draft(&[(number, route.clone())])).await;
        durations_s.push(found.flights[0].duration_s.expect("known"));
    }
    // 200 m at 10 m/s take 30 s with speeding up and stopping, at 5 m/s 45 s; the rest is the same.
    assert!((durations_s[0] - durations_s[1]).abs() < 1e-9, "{durations_s:?}");
    assert!((durations_s[2] - durations_s[0] - 15.0).abs() < 0.1, "{durations_s:?}");
    assert!((durations_s[2] - durations_s[3]).abs() < 1e-9, "{durations_s:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn aircraft_that_would_meet_are_named() {
    let fakes = alone(2).await;
    fakes[1].lock().status.navigation.as_mut().expect("a position").position.latitude_deg += 200.0 / DEGREE_M;
    let handle = ground(&fakes).await;
    picture(&handle, "their statuses arrive", |p| all_up(p) && p.aircraft.len() == 2).await;
    let north = json!([waypoint(0.0, 0.0), waypoint(200.0, 0.0)]);
    let south = json!([waypoint(200.0, 0.0), waypoint(0.0, 0.0)]);
    let found = preview(&handle, &draft(&[(1, north.clone()), (2, south)])).await;
    let [(false, text)] = texts(&found)[..] else { panic!("{found:?}") };
    assert!(
        text.starts_with("UAV 1 and UAV 2 come within 0 m of each other, ")
            || text.contains("within 1 m")
            || text.contains("within 2 m"),
        "{text}"
    );
    // Half-way, where the map marks it.
    let [conflict] = &found.conflicts[..] else { panic!("{found:?}") };
    assert_eq!(conflict.vehicles, [id(1), id(2)]);
    assert!(
        conflict.apart_m < 3.0 && text.contains(&format!("{} s after", conflict.after_s)),
        "{conflict:?}"
    );
    for place in &conflict.places {
        let north_m = (place.latitude_deg - HERE[0]) * DEGREE_M;
        assert!(
            (north_m - 100.0).abs() < 6.0 && (place.longitude_deg - HERE[1]).abs() < 1e-5,
            "{north_m} {place:?}"
        );
    }
    let beside = json!([waypoint(200.0, 60.0), waypoint(0.0, 60.0)]);
    let apart = preview(&handle, &draft(&[(1, north), (2, beside)])).await;
    assert_eq!((texts(&apart), apart.conflicts.len()), (vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swarm_is_shown_in_its_formation() {
    let mut fakes = Vec::new();
    for number in 1..=3usize {
        let fake = Fake::start(number).await;
        {
            let status = &mut fake.lock().status;
            let east_m = (number as f64 - 2.0) * 10.0;
            let at = &mut status.navigation.as_mut().expect("a position").position;
            at.longitude_deg += east_m / (DEGREE_M * HERE[0].to_radians().cos());
            let swarm = status.swarm.as_mut().expect("a swarm");
            swarm.size = 3;
            if number == 1 {
                swarm.leader = true;
                swarm.plan = Some(SwarmPlan {
                    distance_m: 30.0,
                    heading_deg: None,
                    planned: false,
                    refused: None,
                    slots: Vec::new(),
                });
            }
        }
        fakes.push(fake);
    }
    let handle = ground(&fakes).await;
    picture(&handle, "their statuses arrive", |p| all_up(p) && p.aircraft.len() == 3).await;
    let found = preview(&handle, &draft(&[(1, json!([waypoint(100.0, 0.0), waypoint(300.0, 0.0)]))])).await;
    assert_eq!(texts(&found), []);
    let formation = found.formation.as_ref().expect("a formation");
    assert_eq!((formation.name.as_str(), formation.distance_m), ("linear", Some(30.0)));
    assert!(formation.heading_deg < 0.01 || formation.heading_deg > 359.99, "{}", formation.heading_deg);
    // A line across the way to the north, in the order in which they stand.
    let vehicles: Vec<_> = formation.slots.iter().map(|slot| slot.vehicle.clone()).collect();
    assert_eq!(vehicles, [id(1), id(2), id(3)]);
    let [left, middle, right]: [GeoPoint; 3] = [0, 1, 2].map(|slot| formation.slots[slot].place);
    assert!((middle.latitude_deg - (HERE[0] + 100.0 / DEGREE_M)).abs() < 1e-5);
    let apart_m = (right.longitude_deg - left.longitude_deg) * DEGREE_M * HERE[0].to_radians().cos();
    assert!((apart_m - 60.0).abs() < 0.5, "{apart_m}");
    // It gathers first, then flies both waypoints.
    assert!(found.flights.len() == 3 && found.flights.iter().all(|flight| flight.route.len() == 3));
    assert!(found.flights.iter().all(|flight| flight.duration_s == found.flights[0].duration_s));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_make_no_sense_are_refused() {
    let fakes = alone(1).await;
    let handle = ground(&fakes).await;
    picture(&handle, "its status arrives", all_up).await;
    let route = json!([waypoint(10.0, 0.0), waypoint(50.0, 0.0)]);
    let mut endless = draft(&[(1, route.clone())]);
    endless["endurance_s"] = json!(0.0);
    for (body, status, part) in [
        (json!({"missions": []}), 400, "missions: found 0, expected 1 to 128"),
        (draft(&[(7, route.clone())]), 404, "no status of an aircraft with the id"),
        (draft(&[(1, route.clone()), (1, route.clone())]), 400, "twice, expected it once"),
        (endless, 400, "endurance_s: found 0, expected 60 to 36000 s"),
        (json!({"missions": [], "who": 1}), 400, "unknown field"),
    ] {
        let (found, answer) = post(&handle, paths::PLAN_PREVIEW, &body).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(found == status && message.contains(part), "{found} {answer}");
    }
    // What cannot be flown is said and not refused: the operator sees all that is wrong.
    let found = preview(&handle, &draft(&[(1, json!([waypoint(10.0, 0.0)]))])).await;
    assert_eq!(texts(&found), [(true, "UAV 1 does not take it: found 1 waypoint, expected 2 or more")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawn_mission_is_written_in_every_format() {
    let fakes = alone(1).await;
    let handle = ground(&fakes).await;
    let mission = json!({"name": "drawn", "waypoints": [waypoint(10.0, 0.0), waypoint(50.0, 20.0)]});
    for (format, start) in [("waypoints", "QGC WPL 110\n"), ("plan", "{\n"), ("kml", "<?xml")] {
        let request = json!({"format": format, "missions": [mission]});
        let (status, file) = post(&handle, paths::MISSION_EXPORT, &request).await;
        assert_eq!((status, &file["notes"]), (200, &json!([])), "{file}");
        assert_eq!(file["name"], json!(format!("drawn.{format}")));
        assert!(file["text"].as_str().is_some_and(|text| text.starts_with(start)), "{file}");
        let (status, read) =
            post(&handle, paths::MISSION_FILES, &json!({"name": file["name"], "text": file["text"]})).await;
        assert_eq!(status, 200, "{read}");
        let read = read["missions"][0]["mission"]["waypoints"].as_array().expect("waypoints").clone();
        for (one, other) in read.iter().zip(mission["waypoints"].as_array().expect("waypoints")) {
            for (name, step) in [("latitude_deg", 1e-7), ("longitude_deg", 1e-7), ("height_m", 1e-3)] {
                let [a, b] = [one, other].map(|item| item[name].as_f64().expect("a number"));
                assert!((a - b).abs() <= 0.51 * step, "{format} {name}: {a} {b}");
            }
        }
    }
}
