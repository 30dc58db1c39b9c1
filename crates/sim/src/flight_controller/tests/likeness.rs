//! Times and places of whole modes against runs of ArduCopter in SITL (`docs/autopilot-parity.md`): what the
//! motion alone does not decide. The tolerance is 10 %, or 0.3 m or 0.2 s where that is larger.

use super::flights::target_local;
use super::*;
use crate::motion::Profile;

const PROFILES: [Profile; 2] = [Profile::Copter357, Profile::Copter462];

fn hovering(profile: Profile) -> Bench {
    let mut config = Config::new(1, home());
    config.profile = profile;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.take_off(20.0);
    bench
}

fn near(what: &str, ours: f64, reference: f64, least: f64) {
    let allowed = (0.1 * reference.abs()).max(least);
    assert!((ours - reference).abs() <= allowed, "{what}: {ours:.2} found, {reference:.2} expected");
}

/// From the last heartbeat of the ground station to RTL: 5.49 s (seen at the next heartbeat) and 5.30 s.
#[test]
fn a_silent_ground_station_means_rtl_after_the_measured_time() {
    for (profile, expected_s) in [(Profile::Copter357, 5.493), (Profile::Copter462, 5.304)] {
        let mut bench = hovering(profile);
        bench.set("FS_GCS_ENABLE", 1.0);
        // The heartbeats come with the full seconds.
        bench.until(2.0, "a heartbeat", |b| b.now.as_micros().is_multiple_of(1_000_000));
        bench.tick();
        bench.beats = false;
        let from = bench.now;
        bench.until(10.0, "RTL", |b| b.fc.truth().mode == Mode::Rtl);
        near(&format!("{profile:?}"), bench.now.since(from).as_secs_f64(), expected_s, 0.2);
    }
}

/// In AUTO 4.6.2 returns after 5.1 s.
#[test]
fn a_silent_ground_station_in_auto_means_rtl_to_4_6_2() {
    let mut config = Config::new(1, home());
    config.profile = Profile::Copter462;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.set("FS_GCS_ENABLE", 1.0);
    bench.upload(&triangle());
    bench.mode(Mode::Guided);
    assert_eq!(bench.arm(), OK);
    assert_eq!(bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]), OK);
    bench.until(40.0, "the take-off", |b| b.reached().contains(&1));
    bench.until(2.0, "a heartbeat", |b| b.now.as_micros().is_multiple_of(1_000_000));
    bench.tick();
    bench.beats = false;
    let from = bench.now;
    bench.until(10.0, "RTL", |b| b.fc.truth().mode == Mode::Rtl);
    near("AUTO", bench.now.since(from).as_secs_f64(), 5.105, 0.2);
}

/// RTL at 20 m with RTL_ALT 15 m neither climbs nor descends before home, is within WPNAV_RADIUS of it for
/// 5.5 s (3.5.7) or 7.8 s (4.6.2), then lands.
#[test]
fn rtl_keeps_its_altitude_waits_at_home_and_lands() {
    for (profile, wait_s) in PROFILES.into_iter().zip([5.5, 7.8]) {
        let mut bench = hovering(profile);
        bench.send(&target_local(0xff8, [60.0, 0.0, -20.0], [0.0; 3]));
        bench.run(30.0);
        let up_m = bench.fc.truth().local.z;
        assert!(bench.mode(Mode::Rtl));
        let flat = |b: &Bench| b.fc.truth().local.truncate().length();
        bench.until(60.0, "the way home", |b| flat(b) < 2.0);
        let home_at = bench.now;
        near(&format!("{profile:?} altitude"), bench.fc.truth().local.z, up_m, 0.3);
        bench.until(20.0, "the descent", |b| b.fc.truth().velocity.z < -0.1);
        near(&format!("{profile:?} wait"), bench.now.since(home_at).as_secs_f64(), wait_s, 0.2);
        bench.until(90.0, "landing", |b| !b.fc.truth().armed);
        assert!(flat(&bench) < 1.0, "{:?}", bench.fc.truth());
    }
}

/// GUIDED entered at speed: 4.6.2 slows down along its course and does not come back far.
#[test]
fn guided_entered_at_speed_stops_ahead() {
    for profile in PROFILES {
        let mut bench = hovering(profile);
        for _ in 0..40 {
            bench.send(&target_local(0xfc7, [0.0; 3], [5.0, 0.0, 0.0]));
            bench.run(0.2);
        }
        assert!(bench.mode(Mode::AltHold));
        assert!(bench.mode(Mode::Guided));
        let from = bench.fc.truth().local.y;
        let mut furthest: f64 = 0.0;
        for _ in 0..20 {
            bench.run(1.0);
            furthest = furthest.max(bench.fc.truth().local.y - from);
        }
        let rest = bench.fc.truth().local.y - from;
        assert!(bench.fc.truth().velocity.length() < 0.2, "{profile:?} {:?}", bench.fc.truth());
        assert!((3.0..20.0).contains(&furthest), "{profile:?}: {furthest}");
        assert!(furthest - rest < 2.0, "{profile:?}: {furthest} {rest}");
    }
}

/// 4.6.2 sent WIND in flight only; 3.5.7 has the message and never sends it.
#[test]
fn the_wind_is_reported_in_flight_by_4_6_2() {
    let interval = |bench: &mut Bench| {
        bench.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, [168.0, 1e6, 0.0, 0.0, 0.0, 0.0, 0.0])
    };
    for profile in PROFILES {
        let mut config = Config::new(1, home());
        config.profile = profile;
        // From the west.
        config.wind.speed_m_s = 5.0;
        config.wind.direction_rad = -core::f64::consts::FRAC_PI_2;
        let mut bench = Bench::new(config);
        bench.run(1.0);
        interval(&mut bench);
        bench.run(3.0);
        let winds = |bench: &Bench| -> Vec<(f32, f32)> {
            let wind = |m: &MavMessage| match m {
                MavMessage::WIND(w) => Some((w.direction, w.speed)),
                _ => None,
            };
            bench.received.iter().filter_map(|(_, m)| wind(m)).collect()
        };
        assert_eq!(winds(&bench), [], "on the ground");
        bench.take_off(20.0);
        bench.run(30.0);
        let found = winds(&bench);
        if profile == Profile::Copter357 {
            assert_eq!(found, []);
            continue;
        }
        let (direction_deg, speed_m_s) = *found.last().expect("WIND in flight");
        assert!(found.len() >= 40, "once a second: {}", found.len());
        near("direction", f64::from(direction_deg), -90.0, 1.0);
        near("speed", f64::from(speed_m_s), 5.0, 0.3);
    }
}
