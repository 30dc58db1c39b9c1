//! Frames from messages.

use mavlink::{MavlinkVersion, Message};

use super::crc::checksum;
use super::finder::{CHECKSUM_LEN, FLAG_SIGNED, SIGNATURE_LEN};
use super::signing::Signer;
use super::{BufferFull, FRAME_LEN_MAX, MavHeader};
use crate::dialect::MavMessage;

/// The longest payload.
const PAYLOAD_LEN_MAX: usize = 255;

/// A frame under construction: never longer than the longest.
type Buffer = heapless::Vec<u8, FRAME_LEN_MAX>;

fn finish<const N: usize>(
    mut frame: Buffer,
    payload: &[u8],
    id: u32,
    signer: Option<&mut Signer>,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    frame.extend_from_slice(payload).map_err(|_| BufferFull)?;
    let extra_crc = MavMessage::extra_crc(id);
    let sum = checksum(&frame[1..], extra_crc).to_le_bytes();
    frame.extend_from_slice(&sum).map_err(|_| BufferFull)?;
    if let Some(signer) = signer {
        let signature = signer.sign(&frame);
        frame.extend_from_slice(&signature).map_err(|_| BufferFull)?;
    }
    out.extend_from_slice(&frame).map_err(|_| BufferFull)
}

/// MAVLink 2, signed or not.
fn version_2<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    signer: Option<&mut Signer>,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    let mut payload = [0; PAYLOAD_LEN_MAX];
    let len = message.ser(MavlinkVersion::V2, &mut payload);
    let id = message.message_id();
    let [id0, id1, id2, _] = id.to_le_bytes();
    let flags = if signer.is_some() { FLAG_SIGNED } else { 0 };
    // A system id is a byte in every frame that we accept or send.
    let MavHeader { system_id, component_id, sequence } = header;
    let head = [0xfd, len as u8, flags, 0, sequence, system_id as u8, component_id, id0, id1, id2];
    let frame_len = head.len() + len + CHECKSUM_LEN + usize::from(flags) * SIGNATURE_LEN;
    // Asked first: a timestamp is spent only on a frame that leaves.
    if out.capacity() - out.len() < frame_len {
        return Err(BufferFull);
    }
    finish(Buffer::from_iter(head), &payload[..len], id, signer, out)
}

/// The bytes of one message as a MAVLink 2 frame, appended to `out`.
///
/// # Errors
/// `out` has no room for the frame; nothing is appended.
pub fn encode_v2<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    version_2(header, message, None, out)
}

/// The bytes of one message as a signed MAVLink 2 frame, appended to `out`.
///
/// # Errors
/// `out` has no room for the frame; nothing is appended, and no time is spent of the signer's.
pub fn encode_signed<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    signer: &mut Signer,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    version_2(header, message, Some(signer), out)
}

/// The bytes of one message as a MAVLink 1 frame, appended to `out`. Extension fields stay behind, as
/// MAVLink 1 demands: an autopilot that supports nothing else refuses a message of another length. A message
/// whose number MAVLink 1 cannot write goes as MAVLink 2; an autopilot that does not understand that does
/// not know the message either.
///
/// # Errors
/// `out` has no room for the frame; nothing is appended.
pub fn encode_v1<const N: usize>(
    header: MavHeader,
    message: &MavMessage,
    out: &mut heapless::Vec<u8, N>,
) -> Result<(), BufferFull> {
    let mut payload = [0; PAYLOAD_LEN_MAX];
    let len = message.ser(MavlinkVersion::V1, &mut payload);
    let id = message.message_id();
    let Ok(short_id) = u8::try_from(id) else { return encode_v2(header, message, out) };
    let MavHeader { system_id, component_id, sequence } = header;
    let head = [0xfe, len as u8, sequence, system_id as u8, component_id, short_id];
    finish(Buffer::from_iter(head), &payload[..len], id, None, out)
}
