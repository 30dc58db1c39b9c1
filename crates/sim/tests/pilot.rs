//! The simulated pilot at the sticks of a simulated aircraft.

use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{Duration, Instant, Position};
use wingbeat_sim::flight_controller::{Config, FlightController, Truth};
use wingbeat_sim::pilot::synthetic::Synthetic;
use wingbeat_sim::pilot::trace::{Replay, Trace};
use wingbeat_sim::pilot::{Pilot, STICK_PERIOD};

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// Every sample of a flight, until it is down and disarmed or `limit` has passed.
fn flown(mut pilot: Pilot, limit: Duration) -> Vec<(Duration, Truth)> {
    let mut config = Config::new(1, HOME);
    config.heading_rad = 291f64.to_radians();
    config.heading_noise_rad = 1.1f64.to_radians();
    let mut fc = FlightController::new(config, 7, Instant::ZERO);
    let (mut out, mut samples, mut time, mut armed) = (Vec::new(), Vec::new(), Duration::ZERO, false);
    while time < limit {
        let truth = fc.truth();
        samples.push((time, truth));
        armed |= truth.armed;
        if armed && !truth.armed {
            break;
        }
        fc.set_rc(Some(pilot.sticks(time, &truth).channels()));
        time += STICK_PERIOD;
        fc.advance(Instant::ZERO + time, &mut out);
        out.clear();
    }
    samples
}

#[test]
fn the_published_profile_is_flown() {
    let samples = flown(Pilot::Synthetic(Synthetic::published(3)), Duration::from_secs(800));
    let (end, last) = samples.last().unwrap();
    assert!(last.landed && !last.armed, "{last:?}");
    assert!((620.0..720.0).contains(&end.as_secs_f64()), "684 s were published, found {end:?}");
    let cruising: Vec<f64> =
        samples.iter().map(|(_, t)| t.velocity.truncate().length()).filter(|v| *v > 3.0).collect();
    let mean = cruising.iter().sum::<f64>() / cruising.len() as f64;
    assert!((4.6..5.0).contains(&mean), "4.9 m/s were published, found {mean}");
    let height_m = samples.iter().map(|(_, t)| t.local.z).fold(0.0, f64::max);
    assert!((39.0..43.0).contains(&height_m), "41.9 m were published, found {height_m}");
    let flying = samples.iter().filter(|(_, t)| !t.landed);
    let off: Vec<f64> = flying.map(|(_, t)| t.heading_rad.to_degrees() - 291.0).collect();
    let deviation = (off.iter().map(|o| o * o).sum::<f64>() / off.len() as f64).sqrt();
    assert!((0.8..1.4).contains(&deviation), "1.1° of wandering were asked for, found {deviation}°");
    assert!(samples.iter().filter(|(_, t)| t.armed).all(|(_, t)| t.mode == Mode::Loiter));
}

#[test]
fn drawn_flights_turn_climb_stop_and_land() {
    for seed in 1..=5 {
        let samples = flown(
            Pilot::Synthetic(Synthetic::drawn(seed, Duration::from_secs(300))),
            Duration::from_secs(660),
        );
        let (end, last) = samples.last().unwrap();
        assert!(last.landed && !last.armed, "seed {seed}: {last:?}");
        assert!(end.as_secs() > 200, "seed {seed}: {end:?}");
        assert!(last.touchdown_m_s < 2.0, "seed {seed}: met the ground at {} m/s", last.touchdown_m_s);
        let fast = samples.iter().map(|(_, t)| t.velocity.truncate().length()).fold(0.0, f64::max);
        assert!((3.0..5.2).contains(&fast), "seed {seed}: {fast} m/s");
        let again = flown(
            Pilot::Synthetic(Synthetic::drawn(seed, Duration::from_secs(300))),
            Duration::from_secs(660),
        );
        assert_eq!(samples, again);
    }
}

#[test]
fn a_recording_arms_takes_off_and_is_brought_down_after_its_end() {
    // Throttle down and yaw right for 3 s; up for 10 s; right for 10 s; let go.
    let mut text = String::new();
    for tenth in 0..300u64 {
        let [roll, throttle, yaw] = match tenth {
            ..30 => [1500, 982, 2006],
            30..50 => [1500, 1500, 1490],
            50..150 => [1500, 1888, 1490],
            150..250 => [2006, 1514, 1490],
            _ => [1500, 1514, 1490],
        };
        text += &format!("1,{},{roll},1500,{throttle},{yaw}\n", 26_552_460_561 + tenth * 100_000_000);
    }
    let samples = flown(Pilot::Trace(Replay::new(Trace::parse(&text).unwrap())), Duration::from_secs(300));
    let (_, last) = samples.last().unwrap();
    assert!(last.landed && !last.armed, "{last:?}");
    let most = |of: fn(&Truth) -> f64| samples.iter().map(|(_, t)| of(t)).fold(0.0, f64::max);
    assert!(most(|t| t.local.z) > 12.0 && most(|t| t.velocity.truncate().length()) > 4.0);
}
