//! The protocols: arming, commands, parameters, the mission's transfer, telemetry, rubbish.

use proptest::prelude::*;
use wingbeat_autopilot::dialect::{
    MISSION_REQUEST_INT_DATA, MISSION_REQUEST_LIST_DATA, MavDataStream, PARAM_REQUEST_LIST_DATA,
    PARAM_REQUEST_READ_DATA, REQUEST_DATA_STREAM_DATA,
};

use super::*;
use crate::motion::Profile;

fn cold(profile: Profile) -> Bench {
    let mut config = Config::new(1, home());
    config.boot = Boot::Cold;
    config.profile = profile;
    Bench::new(config)
}

#[test]
fn it_sends_nothing_before_it_has_booted_and_arms_only_with_a_position() {
    let mut bench = cold(Profile::Copter357);
    bench.run(2.2);
    assert!(bench.received.is_empty());
    bench.run(1.8);
    assert!(bench.received.iter().any(|(_, m)| matches!(m, MavMessage::HEARTBEAT(_))));
    assert!(bench.mode(Mode::Guided));
    assert_eq!(bench.arm(), FAILED);
    assert!(bench.texts().contains(&"PreArm: gyros still settling".to_owned()), "{:?}", bench.texts());
    bench.run(26.0);
    assert_eq!(bench.arm(), FAILED);
    assert!(bench.texts().contains(&"PreArm: Need 3D Fix".to_owned()), "{:?}", bench.texts());
    bench.run(12.0);
    assert_eq!(bench.arm(), OK);
    let using = bench.texts().iter().filter(|t| t.contains("is using GPS")).count();
    assert_eq!(using, 2);
}

#[test]
fn arming_without_take_off_ends_by_itself() {
    for profile in [Profile::Copter357, Profile::Copter462] {
        let mut bench = Bench::warm();
        bench.fc = FlightController::new(Config { profile, ..Config::new(1, home()) }, 1, Instant::ZERO);
        bench.run(1.0);
        bench.mode(Mode::Guided);
        assert_eq!(bench.arm(), OK);
        bench.run(9.5);
        assert!(bench.fc.truth().armed);
        bench.run(1.0);
        assert!(!bench.fc.truth().armed, "DISARM_DELAY is 10 s");
        // Zero switches it off.
        bench.set("DISARM_DELAY", 0.0);
        assert_eq!(bench.arm(), OK);
        bench.run(30.0);
        assert!(bench.fc.truth().armed);
    }
}

#[test]
fn a_raised_throttle_refuses_arming_and_the_sticks_arm() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.throttle(1500);
    bench.run(0.1);
    assert_eq!(bench.arm(), FAILED);
    assert!(bench.texts().contains(&"Arm: Throttle too high".to_owned()));
    bench.throttle(0);
    bench.run(1.0);
    bench.fc.set_rc(Some(RcChannels([1500, 1500, 1000, 2000, 1800, 1000, 1000, 1800])));
    bench.run(2.2);
    assert!(bench.fc.truth().armed);
    bench.fc.set_rc(Some(RcChannels([1500, 1500, 1000, 1000, 1800, 1000, 1000, 1800])));
    bench.run(2.2);
    assert!(!bench.fc.truth().armed);
}

#[test]
fn commands_answer_as_the_version_does() {
    let zero = [0.0; 7];
    let p1 = |v: f32| [v, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut old = Bench::warm();
    old.run(1.0);
    let mut new = cold(Profile::Copter462);
    new.run(45.0);
    let unsupported = MavResult::MAV_RESULT_UNSUPPORTED;
    let set_guided = [1.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let table: [(MavCmd, [f32; 7], MavResult, MavResult); 12] = [
        (MavCmd::MAV_CMD_DO_SET_MODE, set_guided, unsupported, OK),
        (MavCmd::MAV_CMD_REQUEST_MESSAGE, p1(148.0), unsupported, OK),
        (MavCmd::MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES, p1(1.0), OK, OK),
        (MavCmd::MAV_CMD_GET_HOME_POSITION, zero, OK, OK),
        (MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, [30.0, 1e5, 0.0, 0.0, 0.0, 0.0, 0.0], OK, OK),
        (MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, [9999.0, 1e5, 0.0, 0.0, 0.0, 0.0, 0.0], FAILED, FAILED),
        (MavCmd::MAV_CMD_NAV_TAKEOFF, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0], FAILED, FAILED),
        (MavCmd::MAV_CMD_MISSION_START, zero, FAILED, FAILED),
        (MavCmd::MAV_CMD_DO_CHANGE_SPEED, [0.0, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0], OK, OK),
        (MavCmd::MAV_CMD_DO_CHANGE_SPEED, zero, FAILED, FAILED),
        (MavCmd::MAV_CMD_IMAGE_START_CAPTURE, zero, unsupported, unsupported),
        (MavCmd::MAV_CMD_COMPONENT_ARM_DISARM, zero, OK, OK),
    ];
    for (command, p, of_old, of_new) in table {
        assert_eq!(old.command(command, p), of_old, "3.5.7 {command:?}");
        assert_eq!(new.command(command, p), of_new, "4.6.2 {command:?}");
    }
    // 3.5.7 writes the speed into the parameter, 4.x does not.
    assert_eq!(old.fc.parameter(Parameter::WPNAV_SPEED), Some(700.0));
    assert_eq!(new.fc.parameter(Parameter::WPNAV_SPEED), Some(1000.0));
}

#[test]
fn in_the_air_disarming_needs_force_and_rebooting_is_refused() {
    let mut bench = Bench::hovering();
    let disarm = MavCmd::MAV_CMD_COMPONENT_ARM_DISARM;
    assert_eq!(bench.command(disarm, [0.0; 7]), MavResult::MAV_RESULT_UNSUPPORTED);
    let reboot = MavCmd::MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN;
    assert_eq!(bench.command(reboot, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), FAILED);
    assert!(bench.fc.truth().armed);
    assert_eq!(bench.command(disarm, [0.0, 21196.0, 0.0, 0.0, 0.0, 0.0, 0.0]), OK);
    assert!(!bench.fc.truth().armed);
}

#[test]
fn set_mode_is_acknowledged_as_command_eleven_on_3_5_7() {
    let mut fc = FlightController::new(Config::new(1, home()), 1, Instant::ZERO);
    let mut out = Vec::new();
    fc.advance(Instant::ZERO, &mut out);
    out.clear();
    let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    let set = |mode: u32| {
        MavMessage::SET_MODE(SET_MODE_DATA {
            custom_mode: mode,
            target_system: 1,
            base_mode: MavModeFlag::MAV_MODE_FLAG_CUSTOM_MODE_ENABLED,
        })
    };
    let header = MavHeader { system_id: 255, component_id: 0, sequence: 0 };
    encode_v2(header, &set(4), &mut frame).unwrap();
    fc.receive(&frame);
    fc.advance(Instant::from_millis(20), &mut out);
    assert_eq!(fc.truth().mode, Mode::Guided);
    // COMMAND_ACK (77), command 11, result 0: zeros at the end of a payload are not sent.
    let start = out.windows(3).position(|w| w == [77, 0, 0]).expect("a COMMAND_ACK") - 7;
    assert_eq!(out[start..start + 2], [0xfd, 1]);
    assert_eq!(out[start + 10], 11);
    // Mode 99 does not exist: result 4.
    frame.clear();
    out.clear();
    encode_v2(header, &set(99), &mut frame).unwrap();
    fc.receive(&frame);
    fc.advance(Instant::from_millis(40), &mut out);
    let start = out.windows(3).position(|w| w == [77, 0, 0]).expect("a COMMAND_ACK") - 7;
    assert_eq!(out[start + 10..start + 13], [11, 0, 4]);
}

#[test]
fn parameters_are_listed_read_and_set() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    let list = PARAM_REQUEST_LIST_DATA { target_system: 1, target_component: 1 };
    bench.send(&MavMessage::PARAM_REQUEST_LIST(list));
    bench.run(3.0);
    let values: Vec<(u16, u16, String, f32)> = bench
        .received
        .iter()
        .filter_map(|(_, m)| match m {
            MavMessage::PARAM_VALUE(v) => {
                Some((v.param_index, v.param_count, text(&v.param_id[..]).to_owned(), v.param_value))
            }
            _ => None,
        })
        .collect();
    assert_eq!(values.len(), usize::from(values[0].1));
    assert!(values.iter().enumerate().all(|(i, v)| usize::from(v.0) == i));
    assert!(values.iter().any(|v| v.2 == "WPNAV_ACCEL" && v.3 == 100.0));
    assert!(bench.texts().iter().any(|t| t.starts_with("APM:Copter V3.5.7")));

    bench.set("RTL_ALT", 2500.0);
    bench.set("NO_SUCH", 1.0);
    bench.send(&MavMessage::PARAM_REQUEST_READ(PARAM_REQUEST_READ_DATA {
        param_index: -1,
        target_system: 1,
        target_component: 1,
        param_id: "RTL_ALT".into(),
    }));
    bench.run(0.1);
    let answers = bench.received.iter().filter(|(_, m)| {
        matches!(m, MavMessage::PARAM_VALUE(v) if v.param_value == 2500.0 && v.param_index == u16::MAX)
    });
    assert_eq!(answers.count(), 2, "one for the set, one for the read");
    assert_eq!(bench.fc.counters().unknown_parameters, 1);
}

#[test]
fn a_mission_goes_up_with_losses_and_comes_back_equal() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    let items = triangle();
    bench.send(&count(items.len() as u16));
    // Every request is answered only when it is received for the second time.
    let (mut asked, mut from, mut requests) = ([0; 6], bench.received.len(), 0);
    bench.until(20.0, "the end of the upload", |b| {
        let new: Vec<MavMessage> = b.received[from..].iter().map(|h| h.1.clone()).collect();
        from = b.received.len();
        let mut done = false;
        for message in new {
            match message {
                MavMessage::MISSION_REQUEST(r) => {
                    requests += 1;
                    asked[usize::from(r.seq)] += 1;
                    if asked[usize::from(r.seq)] == 2 {
                        b.send(&MavMessage::MISSION_ITEM_INT(items[usize::from(r.seq)].clone()));
                    }
                }
                MavMessage::MISSION_ACK(a) => {
                    done = a.mavtype == MavMissionResult::MAV_MISSION_ACCEPTED;
                }
                _ => {}
            }
        }
        done
    });
    assert_eq!(requests, 12, "one repetition of each of six requests, a second apart");
    let mission = MavMissionType::MAV_MISSION_TYPE_MISSION;
    bench.send(&MavMessage::MISSION_REQUEST_LIST(MISSION_REQUEST_LIST_DATA {
        target_system: 1,
        target_component: 1,
        mission_type: mission,
    }));
    for seq in 0..6 {
        bench.send(&MavMessage::MISSION_REQUEST_INT(MISSION_REQUEST_INT_DATA {
            seq,
            target_system: 1,
            target_component: 1,
            mission_type: mission,
        }));
    }
    bench.run(0.1);
    let counted =
        bench.received.iter().any(|(_, m)| matches!(m, MavMessage::MISSION_COUNT(c) if c.count == 6));
    assert!(counted);
    let back: Vec<&MISSION_ITEM_INT_DATA> = bench
        .received
        .iter()
        .filter_map(|(_, m)| match m {
            MavMessage::MISSION_ITEM_INT(i) => Some(i),
            _ => None,
        })
        .collect();
    assert_eq!(back.len(), 6);
    for (sent, got) in items.iter().zip(&back).skip(1) {
        let same = (sent.command, sent.x, sent.y, sent.z, sent.param1, sent.frame);
        assert_eq!(same, (got.command, got.x, got.y, got.z, got.param1, got.frame));
    }
    // Item 0 is home, whatever was sent.
    assert_eq!((back[0].x, back[0].y), (home().latitude_e7, home().longitude_e7));
}

#[test]
fn an_upload_without_further_items_is_cancelled() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.send(&count(3));
    bench.run(20.0);
    let requests = bench.received.iter().filter(|(_, m)| matches!(m, MavMessage::MISSION_REQUEST(_))).count();
    assert_eq!(requests, 9, "first immediately, then each second for eight seconds");
}

#[test]
fn items_that_are_not_flown_are_refused() {
    let cases = [
        (MavCmd::MAV_CMD_NAV_SPLINE_WAYPOINT, MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT, 3),
        (MavCmd::MAV_CMD_CONDITION_DISTANCE, MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT, 3),
        (MavCmd::MAV_CMD_NAV_WAYPOINT, MavFrame::MAV_FRAME_GLOBAL_TERRAIN_ALT, 2),
        (MavCmd::MAV_CMD_NAV_WAYPOINT, MavFrame::MAV_FRAME_LOCAL_NED, 2),
    ];
    for (command, frame, result) in cases {
        let mut bench = Bench::warm();
        bench.run(1.0);
        let mut items = triangle();
        items[2].command = command;
        items[2].frame = frame;
        assert_eq!(bench.upload(&items) as u32, result, "{command:?} {frame:?}");
    }
    let mut bench = Bench::warm();
    bench.run(1.0);
    bench.send(&count(2000));
    bench.run(0.1);
    let full = |m: &MavMessage| matches!(m, MavMessage::MISSION_ACK(a) if a.mavtype as u32 == 4);
    assert!(bench.received.iter().any(|(_, m)| full(m)));
}

#[test]
fn telemetry_keeps_its_rates() {
    let mut bench = Bench::warm();
    bench.run(3.0);
    let only_heartbeats = bench
        .received
        .iter()
        .filter(|(_, m)| matches!(m, MavMessage::ATTITUDE(_) | MavMessage::SYS_STATUS(_)));
    assert_eq!(only_heartbeats.count(), 0, "3.5.7 in SITL streams nothing until it is asked");
    bench.set("SR0_EXTRA1", 10.0);
    bench.send(&MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
        req_message_rate: 2,
        target_system: 1,
        target_component: 1,
        req_stream_id: MavDataStream::MAV_DATA_STREAM_EXTENDED_STATUS,
        start_stop: 1,
    }));
    bench.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, [33.0, 2e5, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let from = bench.received.len();
    bench.run(10.0);
    let count = |f: fn(&MavMessage) -> bool| bench.received[from..].iter().filter(|(_, m)| f(m)).count();
    assert!((99..=101).contains(&count(|m| matches!(m, MavMessage::ATTITUDE(_)))));
    assert!((19..=21).contains(&count(|m| matches!(m, MavMessage::SYS_STATUS(_)))));
    assert!((49..=51).contains(&count(|m| matches!(m, MavMessage::GLOBAL_POSITION_INT(_)))));
    assert!((9..=11).contains(&count(|m| matches!(m, MavMessage::HEARTBEAT(_)))));
    assert_eq!(bench.fc.parameter(Parameter::SR0_EXT_STAT), Some(2.0));
}

#[test]
fn frames_for_others_and_from_unknown_senders_are_counted() {
    let mut bench = Bench::warm();
    bench.run(1.0);
    let arm = |system| {
        MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1: 1.0,
            command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
            target_system: system,
            target_component: 1,
            ..COMMAND_LONG_DATA::DEFAULT
        })
    };
    bench.send(&arm(9));
    bench.run(0.1);
    assert!(!bench.fc.truth().armed);
    assert_eq!(bench.fc.counters().other_target, 1);
    bench.set("SYSID_ENFORCE", 1.0);
    bench.send_as(77, &arm(1));
    bench.run(0.1);
    assert!(!bench.fc.truth().armed);
    assert_eq!(bench.fc.counters().other_sender, 1);
    bench.send(&arm(0));
    bench.run(0.1);
    assert!(bench.fc.truth().armed);
}

#[test]
fn answers_come_in_the_version_of_the_request() {
    let mut fc = FlightController::new(Config::new(1, home()), 1, Instant::ZERO);
    let mut out = Vec::new();
    fc.advance(Instant::ZERO, &mut out);
    assert_eq!(out[0], 0xfd);
    out.clear();
    let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    let header = MavHeader { system_id: 255, component_id: 0, sequence: 0 };
    wingbeat_autopilot::codec::encode_v1(header, &heartbeat(), &mut frame).unwrap();
    fc.receive(&frame);
    fc.advance(Instant::from_secs(2), &mut out);
    assert_eq!(out[0], 0xfe);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn rubbish_is_counted_and_harmless(noise in prop::collection::vec(any::<u8>(), 300..2000)) {
        let mut bench = Bench::warm();
        bench.beats = false;
        bench.run(0.1);
        bench.fc.receive(&noise);
        bench.run(0.1);
        // A false start may hold back frames until it is refuted by what follows.
        for _ in 0..40 {
            bench.send(&heartbeat());
        }
        bench.run(0.1);
        prop_assert!(!bench.fc.truth().armed);
        prop_assert!(bench.fc.counters().frames_in > 0);
    }
}

#[test]
fn a_reboot_forgets_the_mode_and_keeps_parameters_and_mission() {
    let mut bench = cold(Profile::Copter357);
    bench.run(45.0);
    bench.upload(&triangle());
    bench.set("RTL_ALT", 2000.0);
    bench.mode(Mode::Guided);
    let reboot = MavCmd::MAV_CMD_PREFLIGHT_REBOOT_SHUTDOWN;
    assert_eq!(bench.command(reboot, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), OK);
    assert_eq!(bench.fc.truth().mode, Mode::Stabilize);
    let from = bench.received.len();
    bench.run(2.0);
    assert_eq!(bench.received.len(), from, "silent while it boots");
    bench.run(3.0);
    bench.mode(Mode::Guided);
    assert_eq!(bench.arm(), FAILED, "no position yet");
    assert_eq!(bench.fc.parameter(Parameter::RTL_ALT), Some(2000.0));
    assert_eq!(bench.fc.parameter(Parameter::MIS_TOTAL), Some(6.0));
    // Milliseconds since boot start again.
    bench.command(MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL, [30.0, 2e5, 0.0, 0.0, 0.0, 0.0, 0.0]);
    bench.run(1.0);
    let boot_ms = bench.received.iter().rev().find_map(|(_, m)| match m {
        MavMessage::ATTITUDE(a) => Some(a.time_boot_ms),
        _ => None,
    });
    assert!(boot_ms.is_some_and(|ms| ms < 10_000), "{boot_ms:?}");
}
