//! Flights: take-off, AUTO, GUIDED, return, the pilot's modes, and the same bytes twice.

use wingbeat_autopilot::dialect::{
    PositionTargetTypemask, SET_POSITION_TARGET_GLOBAL_INT_DATA, SET_POSITION_TARGET_LOCAL_NED_DATA,
};
use wingbeat_geo::{DVec3, Frame};

use super::*;
use crate::motion::Profile;

pub(super) fn target_local(mask: u16, position_ned: [f32; 3], velocity_ned: [f32; 3]) -> MavMessage {
    MavMessage::SET_POSITION_TARGET_LOCAL_NED(SET_POSITION_TARGET_LOCAL_NED_DATA {
        x: position_ned[0],
        y: position_ned[1],
        z: position_ned[2],
        vx: velocity_ned[0],
        vy: velocity_ned[1],
        vz: velocity_ned[2],
        type_mask: PositionTargetTypemask::from_bits_truncate(mask),
        target_system: 1,
        target_component: 1,
        coordinate_frame: MavFrame::MAV_FRAME_LOCAL_NED,
        ..SET_POSITION_TARGET_LOCAL_NED_DATA::DEFAULT
    })
}

#[test]
fn guided_take_off_flight_and_landing() {
    let mut bench = Bench::hovering();
    let goal = DVec3::new(20.0, 10.0, 15.0);
    let place = Frame::new(home()).to_position(goal);
    bench.send(&MavMessage::SET_POSITION_TARGET_GLOBAL_INT(SET_POSITION_TARGET_GLOBAL_INT_DATA {
        lat_int: place.latitude_e7,
        lon_int: place.longitude_e7,
        alt: 15.0,
        type_mask: PositionTargetTypemask::from_bits_truncate(0xff8),
        target_system: 1,
        target_component: 1,
        coordinate_frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT_INT,
        ..SET_POSITION_TARGET_GLOBAL_INT_DATA::DEFAULT
    }));
    bench.until(40.0, "the target", |b| (b.fc.truth().local - goal).length() < 1.0);
    assert_eq!(bench.command(MavCmd::MAV_CMD_NAV_LAND, [0.0; 7]), OK);
    bench.until(40.0, "disarming on the ground", |b| !b.fc.truth().armed);
    let truth = bench.fc.truth();
    assert!(truth.landed && truth.touchdown_m_s < 1.0, "{truth:?}");
    assert!((truth.local - DVec3::new(20.0, 10.0, 0.0)).length() < 1.5, "{truth:?}");
}

#[test]
fn auto_flies_a_mission_to_its_end_and_disarms() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    assert_eq!(bench.upload(&triangle()), MavMissionResult::MAV_MISSION_ACCEPTED);
    assert_eq!(bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]), FAILED, "disarmed");
    assert_eq!(bench.arm(), OK);
    assert_eq!(bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]), OK);
    let mut farthest = [f64::MAX; 3];
    let corners = [DVec3::new(0.0, 60.0, 10.0), DVec3::new(60.0, 60.0, 10.0), DVec3::new(60.0, 30.0, 10.0)];
    bench.until(200.0, "the end of the mission", |b| {
        for (best, corner) in farthest.iter_mut().zip(corners) {
            *best = best.min((b.fc.truth().local - corner).length());
        }
        !b.fc.truth().armed
    });
    assert_eq!(bench.reached(), [1, 2, 3, 4]);
    // The first corner is cut, the second is waited at; the third is flown through on the way home.
    assert!(farthest[0] < 8.0 && farthest[1] < 2.0 && farthest[2] < 8.0, "{farthest:?}");
    let truth = bench.fc.truth();
    assert!(truth.landed && truth.local.length() < 1.0 && truth.mode == Mode::Auto, "{truth:?}");
    assert!(bench.texts().iter().any(|t| t == "Reached command #3"));
}

#[test]
fn auto_waits_on_the_ground_for_a_raised_throttle() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.upload(&triangle());
    assert_eq!(bench.arm(), OK);
    assert!(bench.mode(Mode::Auto));
    bench.run(5.0);
    assert!(bench.fc.truth().landed);
    bench.throttle(1500);
    bench.run(1.0);
    bench.throttle(0);
    bench.run(8.0);
    assert!(bench.fc.truth().local.z > 1.0, "{:?}", bench.fc.truth());
}

#[test]
fn auto_on_the_ground_needs_a_take_off_item_and_armed_a_mission() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    assert_eq!(bench.arm(), OK);
    assert!(!bench.mode(Mode::Auto), "without a mission");
    let mut items = triangle();
    items.remove(1);
    for (n, item) in items.iter_mut().enumerate() {
        item.seq = n as u16;
    }
    bench.upload(&items);
    assert!(!bench.mode(Mode::Auto), "without a take-off");
    let texts = bench.texts();
    assert!(texts.iter().any(|t| t == "Auto: Missing Takeoff Cmd"), "{texts:?}");
    assert!(texts.iter().any(|t| t == "Flight mode change failed"), "{texts:?}");
}

#[test]
fn a_velocity_that_is_not_renewed_ends_after_three_seconds() {
    let mut bench = Bench::hovering();
    for _ in 0..50 {
        bench.send(&target_local(0xfc7, [0.0; 3], [4.0, 0.0, 0.0]));
        bench.run(0.2);
    }
    let moving = bench.fc.truth();
    assert!(moving.velocity.y > 3.5, "{moving:?}");
    bench.run(2.5);
    assert!(bench.fc.truth().velocity.y > 3.0, "still flying: {:?}", bench.fc.truth());
    // 3.5.7 stops beyond the point that it was to stop at, and flies back to it.
    bench.run(10.0);
    let after = bench.fc.truth();
    assert!(after.velocity.length() < 0.5, "{after:?}");
    assert!((after.local.z - 10.0).abs() < 1.0, "{after:?}");
}

#[test]
fn position_with_velocity_is_followed_and_acceleration_refused() {
    let mut bench = Bench::hovering();
    bench.set("WPNAV_SPEED", 1000.0);
    for step in 0..100 {
        let north = step as f32 * 0.2 * 3.0;
        bench.send(&target_local(0xfc0, [north, 0.0, -10.0], [3.0, 0.0, 0.0]));
        bench.run(0.2);
    }
    let truth = bench.fc.truth();
    assert!((truth.local.y - 60.0).abs() < 2.0 && (truth.velocity.y - 3.0).abs() < 0.5, "{truth:?}");
    let refused = bench.fc.counters().targets_refused;
    bench.send(&target_local(0xe00, [0.0; 3], [0.0; 3]));
    bench.send(&target_local(0xff8, [f32::NAN, 0.0, 0.0], [0.0; 3]));
    bench.run(0.1);
    assert_eq!(bench.fc.counters().targets_refused, refused + 2);
}

#[test]
fn a_guided_item_flies_there() {
    let mut bench = Bench::hovering();
    let mut there = item(0, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 15.0, -5.0, 12.0);
    there.current = 2;
    bench.send(&MavMessage::MISSION_ITEM_INT(there));
    bench.run(0.1);
    let acks = bench.received.iter().filter(
        |(_, m)| matches!(m, MavMessage::MISSION_ACK(a) if a.mavtype == MavMissionResult::MAV_MISSION_ACCEPTED),
    );
    assert_eq!(acks.count(), 1);
    let goal = DVec3::new(-5.0, 15.0, 12.0);
    bench.until(40.0, "the item's place", |b| (b.fc.truth().local - goal).length() < 1.0);
}

#[test]
fn return_climbs_flies_home_waits_and_lands() {
    let mut bench = Bench::hovering();
    bench.send(&target_local(0xff8, [40.0, 0.0, -10.0], [0.0; 3]));
    bench.run(30.0);
    assert!(bench.mode(Mode::Rtl));
    let mut highest: f64 = 0.0;
    bench.until(90.0, "landing at home", |b| {
        highest = highest.max(b.fc.truth().local.z);
        !b.fc.truth().armed
    });
    let truth = bench.fc.truth();
    assert!((14.0..16.5).contains(&highest), "RTL_ALT is 15 m, was {highest} m");
    assert!(truth.landed && truth.local.length() < 1.5, "{truth:?}");
}

#[test]
fn smart_return_retraces_the_way() {
    let mut config = Config::new(1, home());
    config.profile = Profile::Copter462;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.take_off(10.0);
    for goal in [[40.0, 0.0, -10.0], [40.0, 40.0, -10.0]] {
        bench.send(&target_local(0xff8, goal, [0.0; 3]));
        bench.run(25.0);
    }
    assert!(bench.mode(Mode::SmartRtl));
    let mut nearest = f64::MAX;
    bench.until(150.0, "landing at home", |b| {
        nearest = nearest.min((b.fc.truth().local - DVec3::new(0.0, 40.0, 10.0)).length());
        !b.fc.truth().armed
    });
    assert!(nearest < 5.0, "the corner was missed by {nearest} m");
    assert!(bench.fc.truth().local.length() < 2.5, "{:?}", bench.fc.truth());
}

#[test]
fn brake_stops_and_stays() {
    let mut bench = Bench::hovering();
    for _ in 0..40 {
        bench.send(&target_local(0xfc7, [0.0; 3], [5.0, 0.0, 0.0]));
        bench.run(0.2);
    }
    assert!(bench.mode(Mode::Brake));
    bench.run(12.0);
    let truth = bench.fc.truth();
    assert!(truth.velocity.length() < 0.3 && (truth.local.z - 10.0).abs() < 1.0, "{truth:?}");
}

#[test]
fn the_pilot_climbs_in_alt_hold_and_falls_in_stabilize_with_the_throttle_down() {
    let mut bench = Bench::hovering();
    let centred = |throttle| Some(RcChannels([1500, 1500, throttle, 1500, 1800, 1000, 1000, 1800]));
    bench.fc.set_rc(centred(1700));
    assert!(bench.mode(Mode::AltHold));
    bench.run(4.0);
    assert!(bench.fc.truth().local.z > 11.5, "{:?}", bench.fc.truth());
    bench.fc.set_rc(centred(1000));
    assert!(bench.fc.set_mode_by_pilot(Mode::Stabilize));
    bench.until(10.0, "the ground", |b| b.fc.truth().local.z <= 0.0);
    assert!(bench.fc.truth().touchdown_m_s > 5.0, "{:?}", bench.fc.truth());
}

#[test]
fn stopped_motors_fall() {
    let mut bench = Bench::hovering();
    bench.fc.fail_motors();
    bench.until(10.0, "the ground", |b| b.fc.truth().local.z <= 0.0);
    assert!(bench.fc.truth().touchdown_m_s > 5.0);
}

/// The sticks are centred, so that no delay disarms it.
#[test]
fn land_disarms_what_fell() {
    let mut bench = Bench::hovering();
    assert!(bench.fc.take_by_pilot(Mode::AltHold));
    bench.fc.fail_motors();
    bench.run(30.0);
    assert!(bench.fc.truth().landed && bench.fc.truth().armed, "{:?}", bench.fc.truth());
    assert!(bench.fc.set_mode_by_pilot(Mode::Land));
    bench.run(1.0);
    assert!(!bench.fc.truth().armed, "{:?}", bench.fc.truth());
}

#[test]
fn a_wandering_estimate_moves_the_truth_and_not_what_is_reported() {
    let mut config = Config::new(1, home());
    config.gps_noise_m = 1.0;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.take_off(10.0);
    bench.run(120.0);
    let error = (bench.fc.truth().local - DVec3::new(0.0, 0.0, 10.0)).length();
    assert!(error > 0.1 && error < 6.0, "{error}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let fly = |seed: u64| {
        let mut config = Config::new(1, home());
        config.gps_noise_m = 0.5;
        config.wind.speed_m_s = 3.0;
        config.wind.gust_deviation_m_s = 1.0;
        config.wind.gust_time_constant_s = 2.0;
        config.parameters = vec![(Parameter::SR0_POSITION, 10.0), (Parameter::SR0_EXTRA1, 10.0)];
        let mut bench = Bench { fc: FlightController::new(config, seed, Instant::ZERO), ..Bench::warm() };
        bench.run(1.0);
        bench.take_off(10.0);
        bench.send(&target_local(0xff8, [30.0, 10.0, -10.0], [0.0; 3]));
        bench.run(20.0);
        bench.received
    };
    let (one, again, other) = (fly(7), fly(7), fly(8));
    assert!(one.len() > 500);
    assert!(one == again, "two runs of one seed differ");
    assert!(one != other, "another seed gave the same flight");
}

#[test]
fn auto_changes_speed_waits_and_lands_at_a_place() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    let mut speed = item(2, MavCmd::MAV_CMD_DO_CHANGE_SPEED, 0.0, 0.0, 0.0, 0.0);
    speed.param2 = 8.0;
    let items = [
        item(0, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 0.0, 0.0, 0.0),
        item(1, MavCmd::MAV_CMD_NAV_TAKEOFF, 0.0, 0.0, 0.0, 8.0),
        speed,
        item(3, MavCmd::MAV_CMD_NAV_LOITER_TIME, 3.0, 150.0, 0.0, 8.0),
        item(4, MavCmd::MAV_CMD_NAV_LAND, 0.0, 150.0, 20.0, 0.0),
    ];
    bench.upload(&items);
    bench.arm();
    bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]);
    let mut fastest: f64 = 0.0;
    bench.until(150.0, "the landing", |b| {
        let v = b.fc.truth().velocity;
        fastest = fastest.max(v.x.hypot(v.y));
        !b.fc.truth().armed
    });
    assert!((6.5..8.8).contains(&fastest), "{fastest} m/s");
    let truth = bench.fc.truth();
    assert!((truth.local - DVec3::new(20.0, 150.0, 0.0)).length() < 2.0, "{truth:?}");
    assert_eq!(bench.reached(), [1, 3, 4]);
}

#[test]
fn a_mission_is_left_paused_resumed_and_jumped_in() {
    let mut config = Config::new(1, home());
    config.profile = Profile::Copter462;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.upload(&triangle());
    bench.mode(Mode::Guided);
    assert_eq!(bench.arm(), OK);
    assert_eq!(bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]), OK);
    bench.until(40.0, "the take-off", |b| b.reached().contains(&1));
    bench.run(4.0);
    let pause = MavCmd::MAV_CMD_DO_PAUSE_CONTINUE;
    assert_eq!(bench.command(pause, [0.0; 7]), OK);
    // Limited in jerk, it runs beyond its stopping point and comes back.
    bench.run(20.0);
    assert!(bench.fc.truth().velocity.length() < 0.3, "{:?}", bench.fc.truth());
    assert_eq!(bench.reached(), [1]);
    assert_eq!(bench.command(pause, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), OK);
    bench.until(40.0, "the first waypoint", |b| b.reached().contains(&2));
    // Another mode, then AUTO again: it continues where it was.
    bench.mode(Mode::Brake);
    bench.run(5.0);
    assert!(bench.mode(Mode::Auto));
    bench.until(60.0, "the second waypoint", |b| b.reached().contains(&3));
    bench.send(&MavMessage::MISSION_SET_CURRENT(wingbeat_autopilot::dialect::MISSION_SET_CURRENT_DATA {
        seq: 2,
        target_system: 1,
        target_component: 1,
    }));
    bench.until(60.0, "the first waypoint again", |b| b.reached() == [1, 2, 3, 2]);
}

#[test]
fn a_mission_that_has_ended_begins_anew_when_auto_is_entered_again() {
    let mut bench = Bench::hovering();
    // Without the return at its end.
    bench.upload(&triangle()[..5]);
    assert!(bench.mode(Mode::Auto));
    bench.until(200.0, "the last waypoint", |b| b.reached().contains(&4));
    // The real one flew back to the first item, 3.5.7 within a second.
    assert!(bench.mode(Mode::Brake));
    bench.run(5.0);
    let before = bench.reached().len();
    assert!(bench.mode(Mode::Auto));
    bench.until(60.0, "the first waypoint again", |b| b.reached()[before..].contains(&2));
}

#[test]
fn a_landing_takes_the_time_that_was_measured() {
    let mut bench = Bench::hovering();
    let started = bench.now;
    bench.command(MavCmd::MAV_CMD_NAV_LAND, [0.0; 7]);
    bench.until(60.0, "disarming", |b| !b.fc.truth().armed);
    let seconds = bench.now.since(started).as_secs_f64();
    // Both versions: 23 s from 10 m, the land detector's pause included.
    assert!((23.0 - seconds).abs() < 23.0 * 0.15, "{seconds} s");
}

/// Near home the cone lowers the climb; without it RTL climbs to its height wherever it begins.
#[test]
fn return_near_home_climbs_to_its_height_only_without_the_cone() {
    for (slope, expected_m) in [(1.0, 12.5), (0.0, 30.0)] {
        let mut bench = Bench::hovering();
        bench.set("RTL_ALT", 3000.0);
        bench.set("RTL_CONE_SLOPE", slope);
        bench.send(&target_local(0xff8, [5.0, 0.0, -10.0], [0.0; 3]));
        bench.run(15.0);
        assert!(bench.mode(Mode::Rtl));
        let mut highest: f64 = 0.0;
        bench.until(120.0, "landing at home", |b| {
            highest = highest.max(b.fc.truth().local.z);
            !b.fc.truth().armed
        });
        assert!(
            (highest - expected_m).abs() < 1.5,
            "slope {slope}: was {highest} m, expected {expected_m} m"
        );
    }
}
