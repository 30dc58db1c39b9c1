//! Frames in noise, in pieces, signed, in both versions.

extern crate std;
use super::*;
use crate::dialect::{HEARTBEAT_DATA, MavModeFlag};
use proptest::prelude::*;
use std::vec::Vec;

fn heartbeat(custom_mode: u32) -> MavMessage {
    MavMessage::HEARTBEAT(HEARTBEAT_DATA {
        custom_mode,
        base_mode: MavModeFlag::empty(),
        ..HEARTBEAT_DATA::default()
    })
}

fn header(sequence: u8) -> MavHeader {
    MavHeader { system_id: 3, component_id: 1, sequence }
}

#[test]
fn golden_heartbeat_bytes() {
    let mut out = heapless::Vec::<u8, 64>::new();
    encode_v2(header(7), &heartbeat(4), &mut out).unwrap();
    // 0xFD, length 9, flags, sequence, system, component, id 0, then the payload of
    // https://mavlink.io/en/messages/common.html#HEARTBEAT and the checksum.
    assert_eq!(out[..10], [0xfd, 9, 0, 0, 7, 3, 1, 0, 0, 0]);
    assert_eq!(out[10..14], [4, 0, 0, 0]);
    assert_eq!(out.len(), 21);
}

#[test]
fn an_empty_heartbeat_must_name_its_base_mode() {
    // The library's default claims an armed aircraft: code that builds a heartbeat states the mode.
    assert!(HEARTBEAT_DATA::default().base_mode.contains(MavModeFlag::MAV_MODE_FLAG_SAFETY_ARMED));
}

#[test]
fn unknown_enum_value_is_counted_and_the_next_frame_parses() {
    let mut bytes = heapless::Vec::<u8, 128>::new();
    encode_v2(header(0), &heartbeat(1), &mut bytes).unwrap();
    bytes[14] = 250; // MAV_TYPE 250
    let crc = mavlink::calculate_crc(&bytes[1..19], 50).to_le_bytes();
    bytes[19..21].copy_from_slice(&crc);
    encode_v2(header(1), &heartbeat(2), &mut bytes).unwrap();
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    decoder.push(&bytes, |f| frames.push(f.header.sequence));
    assert_eq!(frames, [1]);
    assert_eq!(decoder.refused().unknown_content, 1);
}

fn encoded(version: Version, sequence: u8, message: &MavMessage) -> Vec<u8> {
    let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
    match version {
        Version::V1 => encode_v1(header(sequence), message, &mut frame),
        Version::V2 => encode_v2(header(sequence), message, &mut frame),
    }
    .unwrap();
    frame.to_vec()
}

/// A plausible MAVLink 2 header that announces a payload of `len`.
fn false_start(id: u32, len: u8) -> [u8; 10] {
    let [a, b, c, _] = id.to_le_bytes();
    [0xfd, len, 0, 0, 9, 9, 9, a, b, c]
}

const FILE_TRANSFER_PROTOCOL: u32 = 110;
const GPS_RTCM_DATA: u32 = 233;

/// Heartbeats at 1 Hz behind `before`, with an owner that calls [`Decoder::expire`] when due.
/// Returns when each was handed on, after its last byte came.
fn delays_behind(before: &[u8], heartbeats: u32) -> Vec<wingbeat_geo::Duration> {
    let mut decoder = Decoder::default();
    let mut delays = Vec::new();
    decoder.push_at(Instant::ZERO, before, |_| panic!("a false start is no frame"));
    for i in 0..heartbeats {
        let sent_at = Instant::from_secs(u64::from(i));
        let next_at = Instant::from_secs(u64::from(i + 1));
        let arrived = |at: Instant| {
            move |f: Frame| {
                assert_eq!(f.message, heartbeat(i));
                at.since(sent_at)
            }
        };
        let note = arrived(sent_at);
        decoder.push_at(sent_at, &encoded(Version::V2, i as u8, &heartbeat(i)), |f| delays.push(note(f)));
        while decoder.due() < next_at {
            let due = decoder.due();
            let note = arrived(due);
            decoder.expire(due, |f| delays.push(note(f)));
        }
    }
    assert_eq!(decoder.refused().overtaken, 1);
    delays
}

#[test]
fn a_false_start_delays_a_trickle_by_its_patience_once() {
    let delays = delays_behind(&false_start(FILE_TRANSFER_PROTOCOL, 250), 5);
    assert_eq!(delays.len(), 5);
    assert_eq!(delays[0], finder::PATIENCE);
    assert!(delays[1..].iter().all(|d| d.is_zero()), "{delays:?}");
}

#[test]
fn a_candidate_longer_than_its_message_delays_nothing() {
    // A heartbeat has nine bytes. A later version may have more, so it is no proof, but a doubt.
    assert_eq!(delays_behind(&false_start(0, 255), 3), [wingbeat_geo::Duration::ZERO; 3]);
}

#[test]
fn a_message_that_has_grown_since_is_taken() {
    // A later sender's RTCM message: fields that we do not know behind those that we do.
    let mut frame = std::vec![0xfd, 200, 0, 0, 1, 3, 1, 233, 0, 0];
    frame.extend([1; 200]);
    let crc = crc::checksum(&frame[1..], 35).to_le_bytes();
    frame.extend(crc);
    let mut found = 0;
    for piece in frame.chunks(7) {
        Finder::push(&mut Finder::default(), Instant::ZERO, piece, |_| panic!("a piece is no frame"));
    }
    Finder::default().push(Instant::ZERO, &frame, |raw| {
        found += 1;
        assert_eq!((raw.message_id(), raw.payload().len()), (GPS_RTCM_DATA, 200));
    });
    assert_eq!(found, 1);
}

#[test]
fn frames_inside_a_frame_are_its_payload() {
    // A log or a tunnel that carries MAVLink: the inner frames are complete long before the outer one.
    let inner = encoded(Version::V2, 0, &heartbeat(1));
    let mut payload = [0; 251];
    for chunk in payload[4..].chunks_exact_mut(inner.len()) {
        chunk.copy_from_slice(&inner);
    }
    let mut outer = std::vec![0xfd, 251, 0, 0, 0, 3, 1, 110, 0, 0];
    outer.extend(payload);
    let crc = crc::checksum(&outer[1..], 84).to_le_bytes();
    outer.extend(crc);
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    // At 57600 baud.
    for (i, byte) in outer.iter().enumerate() {
        let now = Instant::from_micros(i as u64 * 174);
        decoder.expire(now, |f| frames.push(f.message.clone()));
        decoder.push_at(now, &[*byte], |f| frames.push(f.message.clone()));
    }
    assert!(matches!(frames[..], [MavMessage::FILE_TRANSFER_PROTOCOL(_)]), "{frames:?}");
    assert_eq!(decoder.refused(), Refused::default());
}

#[test]
fn each_reason_is_counted_for_itself() {
    let good = encoded(Version::V2, 0, &heartbeat(1));
    let refused = |bytes: &[u8]| {
        let mut decoder = Decoder::default();
        decoder.push(&[&good, bytes, &good].concat(), |_| {});
        let refused = decoder.refused();
        assert_eq!(refused.garbage_bytes as usize, bytes.len());
        Refused { garbage_bytes: 0, ..refused }
    };
    let one = Refused::default();
    assert_eq!(refused(b"ArduCopter V3.5.7"), one);
    let mut corrupt = good.clone();
    corrupt[12] ^= 1;
    assert_eq!(refused(&corrupt), Refused { bad_checksum: 1, ..one });
    assert_eq!(refused(&false_start(13, 9)), Refused { unknown_message: 1, ..one });
    assert_eq!(refused(&[0xfd, 9, 0x80]), Refused { bad_header: 1, ..one });
    assert_eq!(
        refused(&[0xfe, 200, 0, 1, 1, 0]),
        Refused { bad_header: 1, ..one },
        "a heartbeat of 200 bytes"
    );
}

/// Bytes, with more start bytes than uniform ones have.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![Just(0xfd), Just(0xfe)];
    let header = (prop::sample::select(std::vec![0, 1, 30, 33, FILE_TRANSFER_PROTOCOL, 13]), any::<u8>())
        .prop_map(|(id, len)| false_start(id, len).to_vec());
    prop_oneof![prop::collection::vec(prop_oneof![4 => any::<u8>(), 1 => start], 0..60), header,]
}

/// Whether `bytes` begin with a frame, as the library has checksums: of noise, one false start in 65 536.
fn begins_with_a_frame(bytes: &[u8]) -> bool {
    let (header_len, id, signature_len) = match bytes {
        [0xfe, _, _, _, _, id, ..] => (6, u32::from(*id), 0),
        [0xfd, _, flags @ 0..=1, _, _, _, _, a, b, c, ..] => {
            (10, u32::from_le_bytes([*a, *b, *c, 0]), usize::from(*flags) * finder::SIGNATURE_LEN)
        }
        _ => return false,
    };
    let checked_len = header_len + usize::from(bytes[1]);
    let Some([low, high]) = bytes.get(checked_len..checked_len + 2) else { return false };
    bytes.len() >= checked_len + 2 + signature_len
        && mavlink::calculate_crc(&bytes[1..checked_len], MavMessage::extra_crc(id))
            == u16::from_le_bytes([*low, *high])
}

#[test]
fn noise_whose_checksum_holds_is_a_frame_and_takes_what_is_inside() {
    // A header of GLOBAL_POSITION_INT, a heartbeat as most of its payload, and noise that is its checksum.
    let start = false_start(33, 24);
    let inside = encoded(Version::V1, 5, &heartbeat(5));
    let behind = encoded(Version::V2, 6, &heartbeat(6));
    let bytes = [&start[..], &inside, &false_start(30, 90), &behind].concat();
    assert!(begins_with_a_frame(&bytes) && !begins_with_a_frame(&bytes[..35]));
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    decoder.push(&bytes, |f| frames.push(f.message));
    assert!(
        matches!(frames[..], [MavMessage::GLOBAL_POSITION_INT(_), ref last] if *last == heartbeat(6)),
        "{frames:?}"
    );
}

proptest! {
    #[test]
    fn every_frame_survives_noise_and_any_slicing(
        noise in prop::collection::vec(noise(), 1..20), slice in 1..600usize, ms in 0..30u64,
    ) {
        let mut bytes = Vec::new();
        let mut in_noise = Vec::new();
        for (i, piece) in noise.iter().enumerate() {
            in_noise.extend(bytes.len()..bytes.len() + piece.len());
            bytes.extend(piece);
            let version = if i % 2 == 0 { Version::V2 } else { Version::V1 };
            bytes.extend(encoded(version, i as u8, &heartbeat(i as u32)));
        }
        // What is by chance a frame may take others with it.
        prop_assume!(!in_noise.iter().any(|&at| begins_with_a_frame(&bytes[at..])));
        let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
        let mut now = Instant::ZERO;
        for piece in bytes.chunks(slice) {
            decoder.expire(now, |f| frames.push(f));
            decoder.push_at(now, piece, |f| frames.push(f));
            now = now + wingbeat_geo::Duration::from_millis(ms);
        }
        // No frame waits for a byte that never comes.
        while decoder.due() != Instant::NEVER {
            decoder.expire(decoder.due(), |f| frames.push(f));
        }
        prop_assert_eq!(frames.len(), noise.len());
        prop_assert!(frames.iter().enumerate().all(|(i, f)| f.message == heartbeat(i as u32)));
    }

    #[test]
    fn every_byte_is_accounted_for(bytes in prop::collection::vec(noise(), 0..40), slice in 1..600usize) {
        let bytes = bytes.concat();
        let (mut finder, mut in_frames) = (Finder::default(), 0);
        for piece in bytes.chunks(slice) {
            finder.push(Instant::ZERO, piece, |raw| in_frames += raw.bytes().len());
        }
        let garbage = finder.dropped().garbage_bytes as usize;
        prop_assert_eq!(in_frames + garbage + finder.pending(), bytes.len());
        prop_assert!(finder.pending() < FRAME_LEN_MAX);
    }

    #[test]
    fn slicing_changes_nothing(pieces in prop::collection::vec(noise(), 0..20), slice in 1..600usize) {
        let bytes: Vec<u8> = pieces.iter().enumerate().flat_map(|(i, piece)| {
            piece.iter().copied().chain(encoded(Version::V2, i as u8, &heartbeat(i as u32))).collect::<Vec<_>>()
        }).collect();
        let frames = |slice: usize| {
            let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(slice) {
                decoder.push(piece, |f| frames.push(f));
            }
            decoder.expire(Instant::NEVER, |f| frames.push(f));
            frames
        };
        prop_assert_eq!(frames(slice), frames(bytes.len().max(1)));
    }
}

mod signatures {
    use super::super::signing::{Key, SignatureRefused, Signer, Timestamp, Unsigned, Verifier};
    use super::super::vectors;
    use super::*;
    use crate::dialect::{
        COMMAND_LONG_DATA, MISSION_ACK_DATA, MavAutopilot, MavCmd, MavMissionType, MavState, MavType,
        RADIO_STATUS_DATA,
    };

    const TIME: u64 = 0x1234_5678_9abc;

    fn key() -> Key {
        Key::new(core::array::from_fn(|i| i as u8))
    }

    fn quadrotor() -> MavMessage {
        MavMessage::HEARTBEAT(HEARTBEAT_DATA {
            custom_mode: 4,
            mavtype: MavType::MAV_TYPE_QUADROTOR,
            autopilot: MavAutopilot::MAV_AUTOPILOT_ARDUPILOTMEGA,
            base_mode: MavModeFlag::from_bits_retain(81),
            system_status: MavState::MAV_STATE_STANDBY,
            mavlink_version: 3,
        })
    }

    /// Frames that were accepted, and the refused ones.
    fn check(verifier: Verifier, frames: &[&[u8]]) -> (usize, SignatureRefused) {
        let (mut decoder, mut count) = (Decoder::verifying(verifier), 0);
        for frame in frames {
            decoder.push(frame, |_| count += 1);
        }
        assert_eq!(decoder.refused().garbage_bytes, 0, "refused frames are frames");
        (count, decoder.refused().signature)
    }

    fn strict() -> Verifier {
        Verifier::new(key(), Unsigned::Refused)
    }

    fn signer_at(link_id: u8, units: u64) -> Signer {
        let mut signer = Signer::new(key(), link_id);
        signer.advance(Timestamp::from_units(units));
        signer
    }

    fn signed_by(signer: &mut Signer, sender: MavHeader) -> Vec<u8> {
        let mut frame = heapless::Vec::<u8, FRAME_LEN_MAX>::new();
        encode_signed(sender, &heartbeat(0), signer, &mut frame).unwrap();
        frame.to_vec()
    }

    fn signed(link_id: u8, units: u64) -> Vec<u8> {
        signed_by(&mut signer_at(link_id, units), header(0))
    }

    #[test]
    fn frames_are_pymavlink_s_byte_for_byte() {
        let mission_ack = MavMessage::MISSION_ACK(MISSION_ACK_DATA {
            target_system: 1,
            target_component: 1,
            mission_type: MavMissionType::MAV_MISSION_TYPE_RALLY,
            ..MISSION_ACK_DATA::default()
        });
        assert_eq!(encoded(Version::V2, 7, &quadrotor()), vectors::HEARTBEAT_V2);
        assert_eq!(encoded(Version::V1, 7, &quadrotor()), vectors::HEARTBEAT_V1);
        assert_eq!(encoded(Version::V2, 7, &mission_ack), vectors::MISSION_ACK_V2);
        assert_eq!(encoded(Version::V1, 7, &mission_ack).len(), 6 + 3 + 2, "without the extension field");
        let command = MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            param1: 1.0,
            command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
            target_system: 1,
            target_component: 1,
            ..COMMAND_LONG_DATA::default()
        });
        let mut signer = signer_at(5, TIME);
        let mut frames = heapless::Vec::<u8, 128>::new();
        encode_signed(header(7), &quadrotor(), &mut signer, &mut frames).unwrap();
        encode_signed(header(7), &command, &mut signer, &mut frames).unwrap();
        assert_eq!(frames[..], [&vectors::HEARTBEAT_SIGNED[..], &vectors::COMMAND_SIGNED].concat());
    }

    #[test]
    fn pymavlink_s_frames_are_accepted_once() {
        let frames: [&[u8]; 2] = [&vectors::HEARTBEAT_SIGNED, &vectors::COMMAND_SIGNED];
        assert_eq!(check(strict(), &frames), (2, SignatureRefused::default()));
        let again = [frames[0], frames[1], frames[1], frames[0]];
        assert_eq!(check(strict(), &again), (2, SignatureRefused { replayed: 2, ..Default::default() }));
    }

    #[test]
    fn what_is_changed_or_of_another_key_is_refused() {
        let mut changed = vectors::HEARTBEAT_SIGNED;
        changed[33] ^= 1;
        let other = Verifier::new(Key::new([9; 32]), Unsigned::Refused);
        let wrong = SignatureRefused { wrong: 1, ..Default::default() };
        assert_eq!(check(strict(), &[&changed]), (0, wrong));
        assert_eq!(check(other, &[&vectors::HEARTBEAT_SIGNED]), (0, wrong));
        // A changed payload with a checksum that was made to fit: the checksum is no secret.
        let mut forged = vectors::HEARTBEAT_SIGNED;
        forged[10] = 9;
        let crc = crc::checksum(&forged[1..19], 50).to_le_bytes();
        forged[19..21].copy_from_slice(&crc);
        assert_eq!(check(strict(), &[&forged]), (0, wrong));
        // A refused frame does not move the time on.
        let later = signed(1, TIME + 1);
        assert_eq!(check(strict(), &[&forged, &later]).0, 1);
    }

    #[test]
    fn nothing_unsigned_passes_but_a_modem_s_report() {
        let radio = encoded(Version::V2, 0, &MavMessage::RADIO_STATUS(RADIO_STATUS_DATA::default()));
        let frames: [&[u8]; 3] = [&vectors::HEARTBEAT_V2, &vectors::HEARTBEAT_V1, &radio];
        assert_eq!(check(strict(), &frames), (1, SignatureRefused { unsigned: 2, ..Default::default() }));
        // While the key is transferred, until it has arrived.
        let lenient = Verifier::new(key(), Unsigned::UntilSigned);
        let frames: [&[u8]; 3] = [&vectors::HEARTBEAT_V2, &vectors::HEARTBEAT_SIGNED, &vectors::HEARTBEAT_V2];
        assert_eq!(check(lenient, &frames), (2, SignatureRefused { unsigned: 1, ..Default::default() }));
    }

    #[test]
    fn a_new_sender_may_be_a_minute_behind_and_no_more() {
        const MINUTE: u64 = 6_000_000;
        let now = signed(0, TIME);
        let frames: [&[u8]; 3] = [&now, &signed(1, TIME - MINUTE), &signed(2, TIME - MINUTE - 1)];
        assert_eq!(check(strict(), &frames), (2, SignatureRefused { old: 1, ..Default::default() }));
    }

    #[test]
    fn senders_are_bounded_and_none_is_forgotten_while_it_could_be_repeated() {
        let frames: Vec<_> = (0..=16).map(|link_id| signed(link_id, TIME)).collect();
        let slices: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        let one = SignatureRefused { too_many_streams: 1, ..Default::default() };
        assert_eq!(check(strict(), &slices), (16, one));
        // An hour later a new sender replaces one; a repeat of that is old.
        let (first, hour) = (&slices[..16], TIME + 60 * 6_000_000);
        let (known, new) = (signed(3, hour), signed(99, hour));
        let frames = [first, &[&known, &new], &[slices[0]]].concat();
        let one = SignatureRefused { old: 1, ..Default::default() };
        assert_eq!(check(strict(), &frames), (18, one));
    }

    #[test]
    fn our_time_never_goes_back() {
        let mut signer = signer_at(1, TIME);
        signer.advance(Timestamp::from_units(5));
        let frames = [0, 1, 2].map(|_| signed_by(&mut signer, header(0)));
        assert_eq!(signer.now().units(), TIME + 3, "frames of one instant differ");
        let slices = frames.each_ref().map(Vec::as_slice);
        assert_eq!(check(strict(), &slices), (3, SignatureRefused::default()));
        assert_eq!(Timestamp::from_unix_us(0).units(), 0, "a clock that was never set");
        // 2026-01-01 00:00 UTC is 4018 days after 2015-01-01.
        assert_eq!(Timestamp::from_unix_us(1_767_225_600_000_000).units(), 4018 * 86_400 * 100_000);
    }

    #[test]
    fn a_signature_without_room_spends_no_time() {
        let mut signer = signer_at(1, TIME);
        let mut out = heapless::Vec::<u8, 33>::new();
        assert_eq!(encode_signed(header(0), &quadrotor(), &mut signer, &mut out), Err(BufferFull));
        assert_eq!((signer.now().units(), out.len()), (TIME, 0));
    }
}
