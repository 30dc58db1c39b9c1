//! What the event stream costs: bytes for each aircraft and update, in the clear and compressed.
#![allow(clippy::disallowed_methods, reason = "services run in real time")]

use crate::support;

use std::io::Read as _;
use std::time::Duration;

use reqwest::header::ACCEPT_ENCODING;
use support::{Fake, all_up, ground, picture};
use wingbeat_api::{Measurements, Parameter, paths};

const AIRCRAFT: usize = 10;
/// What the bound is for.
const BYTES_MAX: usize = 500;

/// Everything that changes in flight changes with each status.
fn fly(fake: &Fake, step: u32) {
    let t = f64::from(step);
    let mut inner = fake.lock();
    let status = &mut inner.status;
    let now = status.navigation.as_mut().expect("a position");
    now.position.latitude_deg += 0.000_013_7;
    now.position.longitude_deg -= 0.000_009_1;
    now.position.altitude_m += 0.137;
    (now.height_m, now.ground_speed_m_s) = (t * 0.137, 9.8 + (t * 0.7).sin());
    (now.climb_m_s, now.heading_deg) = ((t * 0.3).cos(), (t * 7.3) % 360.0);
    now.target = Some(now.position);
    status.flight_controller.heartbeat_age_ms = Some(u64::from(step % 10) * 100);
    status.radio.sent += 3;
    status.radio.received += 27;
    status.log.written += 40;
    let voltage = 16.2 - t * 0.013;
    let battery = serde_json::json!({
        "remaining_percent": 90, "voltage_v": voltage, "current_a": 18.0 + t.sin(), "cells_v": [voltage / 4.0, voltage / 4.0]
    });
    let wind = serde_json::json!({ "speed_m_s": 4.0 + t.cos(), "from_deg": (t * 3.0) % 360.0 });
    status.measurements = Measurements {
        battery: serde_json::from_value(battery).expect("a battery"),
        wind: serde_json::from_value(wind).expect("a wind"),
        ..Measurements::default()
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_has_500_bytes_for_each_aircraft_at_most_and_half_of_that_compressed() {
    let mut fakes = Vec::new();
    for number in 1..=AIRCRAFT {
        let fake = Fake::start(number).await;
        let mut inner = fake.lock();
        inner.status_every = Duration::from_millis(200);
        let parameter =
            Parameter { name: "WPNAV_SPEED".to_owned(), value: Some(500.0), detail: String::new() };
        inner.status.flight_controller.parameters = vec![parameter; 60];
        drop(inner);
        fakes.push(fake);
    }
    let handle = ground(&fakes).await;
    picture(&handle, "all report", all_up).await;
    let url = format!("http://{}{}", handle.address(), paths::FLEET_EVENTS);
    let open = async |coding: &str| {
        let client = wingbeat_ground::plain_client().expect("a client");
        client.get(&url).header(ACCEPT_ENCODING, coding).send().await.expect("a stream")
    };
    let (mut plain, mut gzip) = (open("identity").await, open("br, gzip;q=0.8").await);
    assert!(plain.headers().get("content-encoding").is_none());
    assert_eq!(gzip.headers()["content-encoding"], "gzip");
    assert!(open("gzip;q=0").await.headers().get("content-encoding").is_none(), "it said that it wants none");
    let flying = tokio::spawn(async move {
        for step in 0.. {
            fakes.iter().for_each(|fake| fly(fake, step));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    let (mut text, mut packed) = (Vec::new(), Vec::new());
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    loop {
        tokio::select! {
            chunk = plain.chunk() => text.extend(chunk.expect("it goes on").expect("it goes on")),
            chunk = gzip.chunk() => packed.extend(chunk.expect("it goes on").expect("it goes on")),
            () = tokio::time::sleep_until(end) => break,
        }
    }
    flying.abort();
    let text = String::from_utf8(text).expect("UTF-8");
    let updates: Vec<&str> = text
        .split("\n\n")
        .filter(|event| event.starts_with("event: update") && event.contains("latitude_deg"))
        .collect();
    assert!(updates.len() >= 10, "{} updates", updates.len());
    assert!(updates.iter().all(|update| !update.contains("WPNAV_SPEED")), "no parameter travels");
    // An update has those aircraft of which a status has come since the last one.
    let aircraft: usize = updates.iter().map(|update| update.matches("\"address\"").count()).sum();
    let bytes = updates.iter().map(|update| update.len()).sum::<usize>() / aircraft;
    assert!(bytes <= BYTES_MAX, "{bytes} bytes for each aircraft and update: {:.700}", updates[3]);

    let mut unpacked = String::new();
    // It has no end yet: what was flushed is there.
    let _ = flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut unpacked);
    assert!(unpacked.starts_with("event: picture\n") && unpacked.matches("event: update").count() >= 10);
    assert!(packed.len() * 2 < unpacked.len(), "{} of {} bytes", packed.len(), unpacked.len());
    println!(
        "{bytes} bytes for each aircraft and update, {:.0} % of it compressed",
        100.0 * packed.len() as f64 / unpacked.len() as f64
    );
}
