//! Failsafes, overrides and the fence.

use super::*;
use crate::motion::Profile;

#[test]
fn a_silent_ground_station_in_guided_means_return() {
    let mut bench = Bench::hovering();
    bench.beats = false;
    bench.run(4.0);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
    bench.run(2.0);
    assert_eq!(bench.fc.truth().mode, Mode::Rtl, "FS_GCS_ENABLE is 1 on 3.5.7, after 5 s");
    bench.until(90.0, "landing", |b| !b.fc.truth().armed);
}

#[test]
fn a_silent_ground_station_in_auto_means_nothing_to_3_5_7() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.upload(&triangle());
    bench.arm();
    bench.command(MavCmd::MAV_CMD_MISSION_START, [0.0; 7]);
    bench.beats = false;
    bench.run(25.0);
    assert_eq!(bench.fc.truth().mode, Mode::Auto);
}

#[test]
fn a_companion_s_heartbeat_does_not_stand_for_the_ground_station_s() {
    let mut bench = Bench::hovering();
    bench.beats = false;
    for _ in 0..8 {
        bench.send_as(1, &heartbeat());
        bench.run(1.0);
    }
    assert_eq!(bench.fc.truth().mode, Mode::Rtl);
}

#[test]
fn the_ground_failsafe_of_4_6_2_is_off_until_it_is_set() {
    let mut config = Config::new(1, home());
    config.profile = Profile::Copter462;
    let mut bench = Bench::new(config);
    bench.run(1.0);
    bench.take_off(10.0);
    bench.beats = false;
    bench.run(20.0);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
    bench.beats = true;
    bench.run(2.0);
    bench.set("FS_GCS_ENABLE", 5.0);
    bench.beats = false;
    bench.run(7.0);
    assert_eq!(bench.fc.truth().mode, Mode::Land);
    assert!(bench.texts().iter().any(|t| t == "GCS Failsafe"));
}

#[test]
fn overrides_end_three_seconds_after_the_last() {
    let mut bench = Bench::hovering();
    bench.mode(Mode::AltHold);
    bench.throttle(1500);
    bench.run(2.8);
    assert!(bench.fc.truth().velocity.z.abs() < 0.5, "{:?}", bench.fc.truth());
    bench.run(2.5);
    // The pilot's own throttle is down: it sinks.
    assert!(bench.fc.truth().velocity.z < -0.5, "{:?}", bench.fc.truth());
}

#[test]
fn overrides_count_from_the_ground_station_only_and_65535_leaves_them() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.send_as(9, &override_of([0, 0, 1600, 0, 0, 0, 0, 0]));
    bench.run(0.1);
    assert_eq!(bench.fc.rc.effective.0[2], 1000);
    bench.send(&override_of([1600, 0, 1600, 0, 0, 0, 0, 0]));
    bench.send(&override_of([0, 0, 65535, 0, 0, 0, 0, 0]));
    bench.run(0.1);
    assert_eq!(bench.fc.rc.effective.0[..3], [1500, 1500, 1600]);
}

#[test]
fn a_lost_radio_means_return() {
    let mut bench = Bench::hovering();
    bench.fc.set_rc(None);
    bench.run(1.0);
    assert_eq!(bench.fc.truth().mode, Mode::Rtl);
    // The throttle pulse below FS_THR_VALUE is how other receivers signal it.
    let mut bench = Bench::hovering();
    bench.fc.set_rc(Some(RcChannels([1500, 1500, 950, 1500, 1800, 1000, 1000, 1800])));
    bench.run(0.5);
    assert_eq!(bench.fc.truth().mode, Mode::Rtl);
    // Overrides stand in for a radio that is not there.
    let mut bench = Bench::hovering();
    bench.fc.set_rc(None);
    for _ in 0..10 {
        bench.throttle(1500);
        bench.run(0.3);
    }
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
}

#[test]
fn an_empty_battery_lands() {
    let mut bench = Bench::hovering();
    bench.set("FS_BATT_ENABLE", 1.0);
    bench.set("FS_BATT_MAH", 2000.0);
    bench.run(1.0);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
    bench.fc.set_battery_percent(10.0);
    bench.run(1.0);
    assert_eq!(bench.fc.truth().mode, Mode::Land);
    assert!(bench.texts().iter().any(|t| t == "Low battery"));
}

#[test]
fn a_lost_position_lands() {
    let mut bench = Bench::hovering();
    bench.fc.gps_loss(true);
    bench.run(4.0);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
    bench.run(2.0);
    assert_eq!(bench.fc.truth().mode, Mode::Land);
    assert!(!bench.mode(Mode::Guided), "GUIDED needs a position");
}

/// Wind carries it away, and what it reports is where it knew itself last.
#[test]
fn without_a_position_a_landing_drifts() {
    for (diverges, drift_m) in [(false, 0.0..1.0), (true, 20.0..120.0)] {
        let mut config = Config::new(1, home());
        config.wind.speed_m_s = 5.0;
        let mut bench = Bench::new(config);
        bench.run(1.0);
        bench.take_off(10.0);
        let before = bench.fc.truth().local;
        bench.fc.diverge(diverges);
        bench.mode(Mode::Land);
        bench.until(60.0, "landing", |b| !b.fc.truth().armed);
        let drifted_m = (bench.fc.truth().local - before).truncate().length();
        assert!(drift_m.contains(&drifted_m), "{drifted_m}");
        let (reported, _) = bench.fc.reported();
        assert!((reported - before).truncate().length() < 1.0, "{reported}");
    }
}

#[test]
fn a_breach_of_the_fence_means_return() {
    let mut bench = Bench::hovering();
    bench.set("FENCE_RADIUS", 30.0);
    bench.set("FENCE_ENABLE", 1.0);
    // A target beyond the fence is not taken.
    let mut there = item(0, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 60.0, 0.0, 10.0);
    there.current = 2;
    bench.send(&MavMessage::MISSION_ITEM_INT(there.clone()));
    bench.run(0.1);
    assert_eq!(bench.fc.counters().targets_refused, 0);
    let refused = |m: &MavMessage| matches!(m, MavMessage::MISSION_ACK(a) if a.mavtype == MavMissionResult::MAV_MISSION_ERROR);
    assert!(bench.received.iter().any(|(_, m)| refused(m)));
    // One that was taken before flies into it.
    bench.set("FENCE_ENABLE", 0.0);
    bench.send(&MavMessage::MISSION_ITEM_INT(there));
    bench.run(0.1);
    bench.set("FENCE_ENABLE", 1.0);
    bench.until(30.0, "the breach", |b| b.fc.truth().mode == Mode::Rtl);
    assert!(bench.fc.truth().local.y < 32.0);
    let breached = |m: &MavMessage| matches!(m, MavMessage::FENCE_STATUS(f) if f.breach_status == 1);
    assert!(bench.received.iter().any(|(_, m)| breached(m)));
    bench.until(90.0, "landing at home", |b| !b.fc.truth().armed);
    assert!(bench.fc.truth().local.length() < 2.0);
}

#[test]
fn it_does_not_arm_outside_the_fence() {
    let mut bench = Bench::hovering();
    let mut there = item(0, MavCmd::MAV_CMD_NAV_WAYPOINT, 0.0, 40.0, 0.0, 10.0);
    there.current = 2;
    bench.send(&MavMessage::MISSION_ITEM_INT(there));
    bench.run(30.0);
    bench.mode(Mode::Land);
    bench.until(40.0, "landing", |b| !b.fc.truth().armed);
    bench.set("FENCE_RADIUS", 30.0);
    bench.set("FENCE_ENABLE", 1.0);
    bench.mode(Mode::Guided);
    assert_eq!(bench.arm(), FAILED);
    assert!(bench.texts().iter().any(|t| t == "PreArm: check fence"), "{:?}", bench.texts());
}

#[test]
fn the_mode_switch_is_the_pilot_s() {
    let mut bench = Bench::hovering();
    // Position 5 of 6 is LOITER.
    bench.fc.set_rc(Some(RcChannels([1500, 1500, 1500, 1500, 1685, 1000, 1000, 1800])));
    bench.run(0.1);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
    bench.run(0.3);
    assert_eq!(bench.fc.truth().mode, Mode::Loiter);
}

#[test]
fn a_muted_link_sends_nothing_and_still_receives() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.fc.mute(true);
    let from = bench.received.len();
    bench.mode(Mode::Guided);
    bench.run(3.0);
    assert_eq!(bench.received.len(), from);
    assert_eq!(bench.fc.truth().mode, Mode::Guided);
}
