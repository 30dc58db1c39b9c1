//! Every message and every command of the dialect by whether it commands; rates; leases; addresses.

extern crate std;
use std::format;
use std::string::String;
use std::vec::Vec as StdVec;

use proptest::prelude::*;

use super::*;
use crate::codec::finder::Finder;
use crate::codec::signing::{Key, Signer};
use crate::codec::{Decoder, encode_signed, text as field};
use crate::dialect::{
    COMMAND_INT_DATA, COMMAND_LONG_DATA, FILE_TRANSFER_PROTOCOL_DATA, MavCmd, MavDataStream, PARAM_SET_DATA,
    REQUEST_DATA_STREAM_DATA, SET_MODE_DATA,
};
use crate::streams::Streams;

const VEHICLE: u8 = 7;
const LEASED: Circumstances = Circumstances { system_id: Some(VEHICLE), leased: true };
const FREE: Circumstances = Circumstances { system_id: Some(VEHICLE), leased: false };

/// Keeps what the agent needs at its usual 4 Hz, on a line of 57600 baud.
fn keeper() -> Gatekeeper {
    let streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
    Gatekeeper::new(streams.requests(), rate_cap_hz(Some(57_600)))
}

fn from(system_id: u32, component_id: u8) -> MavHeader {
    MavHeader { system_id, component_id, sequence: 9 }
}

fn judge_as(header: MavHeader, message: &MavMessage, now: Circumstances) -> Verdict {
    let mut bytes = Vec::<u8, FRAME_LEN_MAX>::new();
    encode_v2(header, message, &mut bytes).unwrap();
    found(&bytes, |frame| keeper().judge(frame, now))
}

/// The result of `check` for the one frame in the bytes.
fn found<T>(bytes: &[u8], mut check: impl FnMut(Raw<'_>) -> T) -> T {
    let mut seen = None;
    Finder::default().push(Instant::ZERO, bytes, |frame| {
        assert_eq!(frame.bytes(), bytes);
        seen = Some(check(frame));
    });
    seen.expect("one frame")
}

fn judge(message: &MavMessage) -> Verdict {
    judge_as(from(255, 190), message, FREE)
}

/// A message that is addressed to the vehicle.
fn addressed(mut message: MavMessage) -> MavMessage {
    if let Some(target) = message.target_system_id_mut() {
        *target = VEHICLE;
    }
    message
}

#[test]
fn every_message_that_is_not_known_to_read_commands() {
    let mut passes = StdVec::new();
    let mut refused = StdVec::new();
    for &id in MavMessage::all_ids() {
        let message = addressed(MavMessage::default_message_from_id(id).unwrap());
        match judge(&message) {
            Verdict::Pass | Verdict::Replace(_) => passes.push(message.message_name()),
            Verdict::Refuse(_) | Verdict::Explain(..) => refused.push(message.message_name()),
            Verdict::Command(_) => {}
        }
    }
    passes.sort_unstable();
    refused.sort_unstable();
    assert_eq!(
        passes,
        [
            "AUTOPILOT_VERSION",
            "AUTOPILOT_VERSION_REQUEST",
            "COMMAND_ACK",
            "DEVICE_OP_READ",
            "FENCE_FETCH_POINT",
            "GPS_INJECT_DATA",
            "GPS_RTCM_DATA",
            "LOG_REQUEST_DATA",
            "LOG_REQUEST_END",
            "LOG_REQUEST_LIST",
            "MISSION_ACK",
            "MISSION_REQUEST",
            "MISSION_REQUEST_INT",
            "MISSION_REQUEST_LIST",
            "MISSION_REQUEST_PARTIAL_LIST",
            "PARAM_EXT_REQUEST_LIST",
            "PARAM_EXT_REQUEST_READ",
            "PARAM_REQUEST_LIST",
            "PARAM_REQUEST_READ",
            "PING",
            "RALLY_FETCH_POINT",
            "REMOTE_LOG_BLOCK_STATUS",
            "REQUEST_DATA_STREAM",
            "REQUEST_EVENT",
            "STATUSTEXT",
            "SYSTEM_TIME",
            "TERRAIN_CHECK",
            "TERRAIN_DATA",
            "TIMESYNC",
        ]
    );
    assert_eq!(refused, ["HEARTBEAT", "RADIO", "RADIO_STATUS", "SETUP_SIGNING"]);
}

#[test]
fn messages_that_move_an_aircraft_command() {
    // By name, so that a mistake in the list above would have to be made twice.
    for name in [
        "SET_MODE",
        "COMMAND_LONG",
        "COMMAND_INT",
        "PARAM_SET",
        "RC_CHANNELS_OVERRIDE",
        "MANUAL_CONTROL",
        "SET_ATTITUDE_TARGET",
        "SET_POSITION_TARGET_LOCAL_NED",
        "SET_POSITION_TARGET_GLOBAL_INT",
        "SET_ACTUATOR_CONTROL_TARGET",
        "SET_HOME_POSITION",
        "SET_GPS_GLOBAL_ORIGIN",
        "MISSION_COUNT",
        "MISSION_ITEM",
        "MISSION_ITEM_INT",
        "MISSION_CLEAR_ALL",
        "MISSION_SET_CURRENT",
        "MISSION_WRITE_PARTIAL_LIST",
        "FENCE_POINT",
        "RALLY_POINT",
        "PARAM_MAP_RC",
        "SERIAL_CONTROL",
        "FOLLOW_TARGET",
        "VISION_POSITION_ESTIMATE",
        "GPS_INPUT",
        "HIL_STATE",
        "LOG_ERASE",
        "TUNNEL",
        "V2_EXTENSION",
    ] {
        let message = MavMessage::all_ids()
            .iter()
            .filter_map(|id| MavMessage::default_message_from_id(*id))
            .find(|m| m.message_name() == name);
        let verdict = judge(&addressed(message.unwrap_or_else(|| panic!("no message {name}"))));
        assert!(matches!(verdict, Verdict::Command(_)), "{name}: {verdict:?}");
    }
}

fn command_verdict(id: u16, long: bool) -> Verdict {
    // The number goes in by the bytes: the dialect's type does not hold those that it does not know.
    let message = if long {
        MavMessage::COMMAND_LONG(COMMAND_LONG_DATA { target_system: VEHICLE, ..COMMAND_LONG_DATA::default() })
    } else {
        MavMessage::COMMAND_INT(COMMAND_INT_DATA {
            target_system: VEHICLE,
            autocontinue: 1,
            ..COMMAND_INT_DATA::default()
        })
    };
    let mut bytes = Vec::<u8, FRAME_LEN_MAX>::new();
    encode_v2(from(255, 190), &message, &mut bytes).unwrap();
    let end = bytes.len() - 2;
    bytes[10 + 28..10 + 30].copy_from_slice(&id.to_le_bytes());
    let extra = if long { 152 } else { 158 };
    let sum = mavlink::calculate_crc(&bytes[1..end], extra).to_le_bytes();
    bytes[end..].copy_from_slice(&sum);
    found(&bytes, |frame| keeper().judge(frame, FREE))
}

#[test]
fn every_command_that_is_not_known_to_request_commands() {
    for long in [true, false] {
        let asks: StdVec<u16> =
            (0..=u16::MAX).filter(|&id| !matches!(command_verdict(id, long), Verdict::Command(_))).collect();
        let expected = [401, 410, 510, 511, 512, 519, 520, 521, 522, 525, 527, 528, 2504, 2505, 5200, 42428];
        assert_eq!(asks, expected, "COMMAND_LONG: {long}");
    }
    let unknown = command_verdict(31_999, true);
    assert!(matches!(&unknown, Verdict::Command(what) if what.contains("COMMAND_LONG")), "{unknown:?}");
}

#[test]
fn a_command_is_named_in_messages() {
    let mode = MavMessage::SET_MODE(SET_MODE_DATA {
        custom_mode: 5,
        target_system: VEHICLE,
        ..SET_MODE_DATA::default()
    });
    assert_eq!(command_of(&mode).as_deref(), Some("mode LOITER"));
    let arm = MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
        command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
        ..COMMAND_LONG_DATA::default()
    });
    assert_eq!(command_of(&arm).as_deref(), Some("MAV_CMD_COMPONENT_ARM_DISARM"));
}

#[test]
fn reading_files_takes_nothing_over_and_writing_does() {
    for opcode in 0..=u8::MAX {
        let mut payload = [0; 251];
        payload[3] = opcode;
        let message = MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
            target_system: VEHICLE,
            payload,
            ..FILE_TRANSFER_PROTOCOL_DATA::default()
        });
        let reads = matches!(opcode, 1..=5 | 14..=16);
        assert_eq!(judge(&message) == Verdict::Pass, reads, "operation {opcode}");
    }
}

#[test]
fn heartbeats_of_ground_stations_pass_only_under_a_lease() {
    let of = |mavtype| heartbeat(mavtype);
    let gcs = of(MavType::MAV_TYPE_GCS);
    assert_eq!(judge_as(from(255, 190), &gcs, FREE), Verdict::Refuse(Refusal::HeartbeatWithoutLease));
    assert_eq!(judge_as(from(255, 190), &gcs, LEASED), Verdict::Pass);
    // ArduCopter counts the sender's id, not its kind.
    let other = of(MavType::MAV_TYPE_ONBOARD_CONTROLLER);
    for now in [FREE, LEASED] {
        assert_eq!(judge_as(from(255, 190), &other, now), Verdict::Refuse(Refusal::HeartbeatOfOther));
    }
}

#[test]
fn our_address_another_system_and_frames_before_an_autopilot_are_refused() {
    let ping = MavMessage::PING(Default::default());
    for component in [AUTOPILOT_COMPONENT_ID, COMPONENT_ID] {
        let verdict = judge_as(from(VEHICLE.into(), component), &ping, FREE);
        assert_eq!(verdict, Verdict::Refuse(Refusal::OurAddress));
    }
    assert_eq!(judge_as(from(VEHICLE.into(), 100), &ping, FREE), Verdict::Pass, "a camera of the vehicle");
    let other = MavMessage::SET_MODE(SET_MODE_DATA { target_system: VEHICLE + 1, ..Default::default() });
    assert_eq!(judge(&other), Verdict::Refuse(Refusal::OtherSystem));
    let no_autopilot = Circumstances { system_id: None, leased: true };
    assert_eq!(judge_as(from(255, 190), &ping, no_autopilot), Verdict::Refuse(Refusal::NoAutopilot));
}

fn stream(group: MavDataStream, req_message_rate: u16, start_stop: u8) -> MavMessage {
    MavMessage::REQUEST_DATA_STREAM(REQUEST_DATA_STREAM_DATA {
        req_message_rate,
        target_system: VEHICLE,
        target_component: 1,
        req_stream_id: group,
        start_stop,
    })
}

/// Group and rate of the frames that pass.
fn streams_after(request: &MavMessage) -> StdVec<(MavDataStream, u16)> {
    let rate = |m: &MavMessage| match m {
        MavMessage::REQUEST_DATA_STREAM(m) => {
            (m.req_stream_id, if m.start_stop == 0 { 0 } else { m.req_message_rate })
        }
        other => panic!("{other:?}"),
    };
    match judge(request) {
        Verdict::Pass => [rate(request)].into(),
        Verdict::Replace(frames) => frames.iter().map(rate).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_streams_keep_what_the_agent_needs_and_what_the_line_carries() {
    use MavDataStream as S;
    let (position, status) = (S::MAV_DATA_STREAM_POSITION, S::MAV_DATA_STREAM_EXTENDED_STATUS);
    let (extra1, extra3, all) =
        (S::MAV_DATA_STREAM_EXTRA1, S::MAV_DATA_STREAM_EXTRA3, S::MAV_DATA_STREAM_ALL);
    for (group, asked_hz, start, expected) in [
        (position, 1, 1, &[(position, 4)][..]),
        (position, 4, 0, &[(position, 4)]),
        (position, 4, 1, &[(position, 4)]),
        (position, 50, 1, &[(position, 4)]),
        (status, 0, 1, &[(status, 2)]),
        (status, 3, 1, &[(status, 3)]),
        (extra1, 1, 1, &[(extra1, 1)]),
        (extra1, 4, 0, &[(extra1, 0)]),
        (extra1, 200, 1, &[(extra1, 4)]),
        (all, 4, 1, &[(all, 4)]),
        (all, 10, 1, &[(all, 4)]),
        // One frame, where the line carries everything as fast as the fastest that the agent needs.
        (all, 1, 1, &[(all, 4)]),
        (all, 3, 1, &[(all, 4)]),
        // Streams can be turned off, except those that the agent needs.
        (all, 4, 0, &[(all, 0), (status, 2), (position, 4), (extra3, 1)]),
    ] {
        assert_eq!(streams_after(&stream(group, asked_hz, start)), expected, "{group:?} {asked_hz} {start}");
    }
    // A faster line takes more, and the agent's own rate is never cut.
    assert_eq!((rate_cap_hz(Some(921_600)), rate_cap_hz(Some(9_600)), rate_cap_hz(None)), (50, 1, 50));
    let fast = Streams::new(Instant::ZERO, Duration::from_millis(50));
    let keeper = Gatekeeper::new(fast.requests(), 4);
    let MavMessage::REQUEST_DATA_STREAM(m) = stream(position, 20, 1) else { panic!() };
    assert_eq!(keeper.rate(&MavMessage::REQUEST_DATA_STREAM(m)), Some(Verdict::Pass));
    // All of them as fast as that would fill the line: each of the agent's groups for itself.
    let Some(Verdict::Replace(frames)) = keeper.rate(&stream(all, 4, 1)) else { panic!("replaced") };
    let rates: StdVec<_> = frames
        .iter()
        .map(|frame| match frame {
            MavMessage::REQUEST_DATA_STREAM(m) => (m.req_stream_id, m.req_message_rate),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rates, [(all, 4), (position, 20)]);
}

fn interval_after(id: f32, interval_us: f32, long: bool) -> f32 {
    let command = MavCmd::MAV_CMD_SET_MESSAGE_INTERVAL;
    let message = if long {
        MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1: id,
            param2: interval_us,
            command,
            target_system: VEHICLE,
            ..Default::default()
        })
    } else {
        MavMessage::COMMAND_INT(COMMAND_INT_DATA {
            param1: id,
            param2: interval_us,
            command,
            target_system: VEHICLE,
            autocontinue: 1,
            ..Default::default()
        })
    };
    match judge(&message) {
        Verdict::Pass => interval_us,
        Verdict::Replace(frames) => match (frames.len(), frames.first()) {
            (1, Some(MavMessage::COMMAND_LONG(m))) if long => m.param2,
            (1, Some(MavMessage::COMMAND_INT(m))) if !long => m.param2,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn message_intervals_keep_what_the_agent_needs_and_what_the_line_carries() {
    let (position, attitude, heartbeat) = (33.0, 30.0, 0.0);
    for (id, asked_us, expected_us) in [
        (position, 1e6, 250e3),
        (position, -1.0, 250e3),
        (position, 0.0, 250e3),
        (position, f32::NAN, 250e3),
        (position, 250e3, 250e3),
        (position, 1e3, 250e3),
        (heartbeat, -1.0, 1e6),
        (heartbeat, 500e3, 500e3),
        (attitude, 1e6, 1e6),
        (attitude, -1.0, -1.0),
        (attitude, 0.0, 0.0),
        (attitude, 5e3, 250e3),
    ] {
        for long in [true, false] {
            assert_eq!(interval_after(id, asked_us, long), expected_us, "{id} at {asked_us} us, {long}");
        }
    }
}

fn set(name: &str, value: f32) -> MavMessage {
    let mut param_id = [0; 16];
    param_id[..name.len()].copy_from_slice(name.as_bytes());
    MavMessage::PARAM_SET(PARAM_SET_DATA {
        param_value: value,
        target_system: VEHICLE,
        param_id: param_id.into(),
        ..PARAM_SET_DATA::default()
    })
}

#[test]
fn stream_parameters_are_taken_within_bounds_and_others_command() {
    for (name, value) in [("SR2_POSITION", 4.0), ("SR0_EXTRA1", 0.0), ("MAV2_EXT_STAT", 2.0)] {
        assert_eq!(judge(&set(name, value)), Verdict::Pass, "{name}");
    }
    for (name, value) in
        [("SR2_POSITION", 3.0), ("SR12_EXTRA3", 0.0), ("SR1_EXTRA1", 5.0), ("SR2_POSITION", f32::NAN)]
    {
        match judge(&set(name, value)) {
            Verdict::Explain(Refusal::StreamRate, why) => {
                assert!(why.starts_with(name) && why.contains("expected") && why.len() <= 50, "{why}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    for name in ["WPNAV_SPEED", "SRTL_ACCURACY", "SYSID_MYGCS", "MAV_SYSID", "SR_POSITION", "SR2_POSITIONS"] {
        let verdict = judge(&set(name, 4.0));
        assert!(matches!(&verdict, Verdict::Command(what) if what.contains(name)), "{name}: {verdict:?}");
    }
}

#[test]
fn a_replacement_bears_the_clients_address_version_and_number() {
    for version in [1, 2] {
        let mut bytes = Vec::<u8, FRAME_LEN_MAX>::new();
        let request = stream(MavDataStream::MAV_DATA_STREAM_POSITION, 1, 1);
        let header = from(254, 3);
        if version == 1 {
            encode_v1(header, &request, &mut bytes).unwrap();
        } else {
            encode_v2(header, &request, &mut bytes).unwrap();
        }
        let mut out = Vec::<u8, FRAME_LEN_MAX>::new();
        found(&bytes, |frame| {
            let Verdict::Replace(frames) = keeper().judge(frame, FREE) else { panic!("replaced") };
            encode_like(frame, &frames[0], &mut out).unwrap();
        });
        assert_eq!(out[0], if version == 1 { 0xfe } else { 0xfd });
        let mut seen = 0;
        Decoder::default().push(&out, |frame| {
            assert_eq!(frame.header, header);
            seen += 1;
        });
        assert_eq!(seen, 1);
    }
}

#[test]
fn a_signed_request_that_would_have_to_be_changed_is_refused() {
    let mut signer = Signer::new(Key::new([0xab; 32]), 3);
    let mut signed = |message: &MavMessage| {
        let mut bytes = Vec::<u8, FRAME_LEN_MAX>::new();
        encode_signed(from(255, 190), message, &mut signer, &mut bytes).unwrap();
        found(&bytes, |frame| keeper().judge(frame, FREE))
    };
    let verdict = signed(&stream(MavDataStream::MAV_DATA_STREAM_POSITION, 1, 1));
    assert!(matches!(verdict, Verdict::Explain(Refusal::StreamRate, _)), "{verdict:?}");
    assert_eq!(signed(&MavMessage::PING(Default::default())), Verdict::Pass);
}

#[test]
fn the_allowance_is_the_share_and_a_burst() {
    let share = share_bytes_s(Some(57_600));
    assert_eq!(share, 2_880);
    let mut allowance = Allowance::new(Instant::ZERO, share);
    let mut taken = 0;
    // Ten seconds of a client that sends all the time.
    for ms in 0..10_000 {
        while allowance.take(Instant::from_millis(ms), 40) {
            taken += 40;
        }
    }
    let most = 10 * u64::from(share) + Allowance::BURST_BYTES;
    assert!((most - 80..=most).contains(&taken), "{taken} of {most}");
    // A clock that stops or goes back adds nothing.
    assert!(!allowance.take(Instant::ZERO, 40));
}

#[test]
fn our_frames_have_their_own_count_and_long_lines_are_cut() {
    let mut writer = FrameWriter::default();
    let mut seen = StdVec::new();
    let mut decoder = Decoder::default();
    let long: String = "ä".repeat(40);
    for bytes in [writer.heartbeat(VEHICLE), writer.warn(VEHICLE, &long), writer.heartbeat(VEHICLE)] {
        decoder.push(&bytes, |frame| seen.push(frame));
    }
    assert_eq!(seen.iter().map(|f| f.header.sequence).collect::<StdVec<_>>(), [0, 1, 2]);
    assert!(seen.iter().all(|f| f.header.system_id == u32::from(VEHICLE) && f.header.component_id == 191));
    assert!(matches!(&seen[1].message, MavMessage::STATUSTEXT(m) if field(&m.text[..]) == "ä".repeat(25)));
}

#[test]
fn the_consoles_heartbeat_comes_each_second_while_the_lease_is_held() {
    let mut beat = ConsoleHeartbeat::new(255);
    let mut seen = StdVec::new();
    for ms in (0..6_000).step_by(50) {
        let now = Instant::from_millis(ms);
        match ms {
            1_000 => beat.lease(now, true),
            // Renewed: no heartbeat more.
            1_200 => beat.lease(now, true),
            4_500 => beat.lease(now, false),
            _ => {}
        }
        let (mut own, mut bytes) = (77, Vec::new());
        let mut transmit = Transmit {
            system_id: VEHICLE,
            sequence: &mut own,
            framing: Default::default(),
            bytes: &mut bytes,
        };
        beat.poll(now, &mut transmit).unwrap();
        Decoder::default().push(&bytes, |frame| {
            assert_eq!((frame.header.system_id, frame.header.component_id), (255, 191));
            assert!(matches!(frame.message, MavMessage::HEARTBEAT(m) if m.mavtype == MavType::MAV_TYPE_GCS));
            seen.push((ms, frame.header.sequence));
        });
        assert_eq!(own, 77, "the agent's own frames are counted apart");
    }
    assert_eq!(seen, [(1_000, 0), (2_000, 1), (3_000, 2), (4_000, 3)]);
}

proptest! {
    #[test]
    fn the_agents_requests_are_kept_whatever_is_requested(
        id in prop_oneof![Just(33_f32), Just(1.0), Just(24.0), Just(193.0), Just(62.0), Just(87.0), Just(0.0), any::<f32>()],
        interval_us in prop_oneof![any::<f32>(), -2.0..2e6_f32], long in any::<bool>(),
    ) {
        let after = interval_after(id, interval_us, long);
        let streams = Streams::new(Instant::ZERO, Duration::from_millis(250));
        if let Some(need) = streams.requests().find(|need| need.id as f32 == id) {
            prop_assert!(after > 0.0 && after <= need.interval.as_micros() as f32, "{}", format!("{id} {after}"));
        }
        prop_assert!(!(after > 0.0 && after < 250e3), "faster than the line carries: {after}");
    }

    #[test]
    fn no_frame_of_any_content_panics(
        id_index in 0..MavMessage::all_ids().len(), payload in prop::collection::vec(any::<u8>(), 0..255),
    ) {
        let id = MavMessage::all_ids()[id_index];
        let mut bytes = StdVec::from([0xfd, payload.len() as u8, 0, 0, 9, 255, 190]);
        bytes.extend_from_slice(&id.to_le_bytes()[..3]);
        bytes.extend_from_slice(&payload);
        let sum = mavlink::calculate_crc(&bytes[1..], MavMessage::extra_crc(id));
        bytes.extend_from_slice(&sum.to_le_bytes());
        let mut count = 0;
        Finder::default().push(Instant::ZERO, &bytes, |frame| {
            count += 1;
            if let Verdict::Replace(frames) = keeper().judge(frame, FREE) {
                for message in &frames {
                    let mut out = Vec::<u8, FRAME_LEN_MAX>::new();
                    encode_like(frame, message, &mut out).unwrap();
                }
            }
        });
        // A payload that is longer than the message is a newer version of it, or noise.
        prop_assert!(count <= 1);
    }
}

#[test]
fn a_challenge_and_a_greeting_are_as_short_as_the_shortest_heartbeat_of_a_ground_station() {
    let of_a_station = heartbeat(MavType::MAV_TYPE_GCS);
    let mut v1 = Vec::<u8, FRAME_LEN_MAX>::new();
    crate::codec::encode_v1(from(255, 190), &of_a_station, &mut v1).unwrap();
    let cookie = Cookie::new(u64::MAX);
    let challenge = FrameWriter::default().challenge(VEHICLE, cookie);
    let mut v2 = Vec::<u8, FRAME_LEN_MAX>::new();
    encode_v2(from(u32::from(VEHICLE), 1), &heartbeat(MavType::MAV_TYPE_QUADROTOR), &mut v2).unwrap();
    let short = found(&v2, greeting).expect("a heartbeat");
    assert_eq!((challenge.len(), short.len(), v1.len()), (CHALLENGE_LEN, GREETING_LEN, GREETING_LEN));
    found(&short, |frame| assert_eq!(frame.header(), from(u32::from(VEHICLE), 1)));
    assert_eq!(found(&challenge, greeting), None);

    // As QGroundControl and MAVSDK answer.
    let Some(MavMessage::PING(asked)) = found(&challenge, message_of) else { panic!("a ping") };
    let answered = |ping| {
        let mut bytes = Vec::<u8, FRAME_LEN_MAX>::new();
        encode_v2(from(255, 190), &MavMessage::PING(ping), &mut bytes).unwrap();
        found(&bytes, |frame| cookie.is_returned_by(frame))
    };
    let answer = crate::dialect::PING_DATA { target_system: VEHICLE, target_component: 191, ..asked };
    assert!(answered(answer.clone()));
    assert!(!answered(asked), "a request is none");
    assert!(!answered(crate::dialect::PING_DATA { time_usec: answer.time_usec ^ 1, ..answer.clone() }));
    assert!(!found(&v1, |frame| cookie.is_returned_by(frame)));
    assert_ne!(Cookie::new(0), Cookie::new(2), "never zero");
}
