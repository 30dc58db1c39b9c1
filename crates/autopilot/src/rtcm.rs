//! Corrections of satellite navigation for the autopilot's receiver: `GPS_RTCM_DATA`
//! (<https://mavlink.io/en/messages/common.html#GPS_RTCM_DATA>).
//!
//! A frame that is longer than one message is divided into at most four. Bit 0 of the flags states that, bits 1 and 2 the
//! fragment, and the other five the frame, by which the autopilot does not join fragments of two. It is whole for it
//! when the fourth fragment, or one that is not full, has come with all before it (so ArduPilot's
//! `AP_GPS::handle_gps_rtcm_fragment`, too).

use crate::codec::{BufferFull, FRAME_LEN_MAX};
use crate::dialect::{GPS_RTCM_DATA_DATA, MavMessage};
use crate::job::{TRANSMIT_LEN_MAX, Transmit};

/// Bytes of one fragment.
const FRAGMENT_LEN: usize = 180;
/// Fragments of one frame.
const FRAGMENTS_MAX: usize = 4;
/// The longest frame.
pub const RTCM_LEN_MAX: usize = FRAGMENTS_MAX * FRAGMENT_LEN;
const _: () = assert!(FRAGMENTS_MAX * FRAME_LEN_MAX <= TRANSMIT_LEN_MAX, "the longest frame finds room");

/// Sends one frame of RTCM; `sequence` is one more than that of the frame before.
///
/// # Errors
/// No room for all of it, or it is longer than [`RTCM_LEN_MAX`]; nothing was sent.
pub fn inject(frame: &[u8], sequence: u8, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
    let is_divided = frame.len() > FRAGMENT_LEN;
    // After full fragments an empty one ends the frame, unless there were four.
    let is_closed = is_divided && frame.len().is_multiple_of(FRAGMENT_LEN) && frame.len() < RTCM_LEN_MAX;
    let count = frame.len().div_ceil(FRAGMENT_LEN) + usize::from(is_closed);
    let room = transmit.bytes.capacity() - transmit.bytes.len();
    if count > FRAGMENTS_MAX || room < count * FRAME_LEN_MAX {
        return Err(BufferFull);
    }
    for index in 0..count {
        let from = (index * FRAGMENT_LEN).min(frame.len());
        let part = &frame[from..(from + FRAGMENT_LEN).min(frame.len())];
        let mut data = [0; FRAGMENT_LEN];
        data[..part.len()].copy_from_slice(part);
        let flags = u8::from(is_divided) | (index as u8) << 1 | sequence << 3;
        transmit.send(&MavMessage::GPS_RTCM_DATA(GPS_RTCM_DATA_DATA {
            flags,
            len: part.len() as u8,
            data,
        }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::job::testing::sent;
    use std::vec::Vec;

    fn fragments(length: usize, sequence: u8) -> Vec<(u8, u8)> {
        let frame: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let messages = sent(|t| {
            assert_eq!(inject(&frame, sequence, t).is_ok(), length <= RTCM_LEN_MAX);
        });
        let parts: Vec<_> = messages
            .iter()
            .map(|message| match message {
                MavMessage::GPS_RTCM_DATA(m) => m,
                other => panic!("{other:?}"),
            })
            .collect();
        let joined: Vec<u8> = parts.iter().flat_map(|m| m.data[..usize::from(m.len)].to_vec()).collect();
        assert!(length > RTCM_LEN_MAX || joined == frame);
        parts.iter().map(|m| (m.flags, m.len)).collect()
    }

    #[test]
    fn a_frame_is_divided_as_mavlink_says() {
        assert_eq!(fragments(25, 3), [(3 << 3, 25)]);
        assert_eq!(fragments(180, 31), [(31 << 3, 180)]);
        assert_eq!(fragments(181, 1), [(1 << 3 | 1, 180), (1 << 3 | 1 << 1 | 1, 1)]);
        assert_eq!(fragments(360, 0), [(1, 180), (3, 180), (5, 0)], "an empty fragment ends it");
        assert_eq!(fragments(540, 0), [(1, 180), (3, 180), (5, 180), (7, 0)]);
        assert_eq!(fragments(541, 0), [(1, 180), (3, 180), (5, 180), (7, 1)]);
        assert_eq!(fragments(720, 0), [(1, 180), (3, 180), (5, 180), (7, 180)]);
        // Five bits.
        assert_eq!(fragments(10, 32), [(0, 10)]);
        assert!(fragments(721, 0).is_empty());
    }

    #[test]
    fn all_of_a_frame_leaves_or_nothing() {
        let frame = [7; RTCM_LEN_MAX];
        let messages = sent(|t| {
            for sequence in 0..2 {
                inject(&frame, sequence, t).unwrap();
            }
            assert!(t.bytes.len() + FRAGMENTS_MAX * FRAME_LEN_MAX > TRANSMIT_LEN_MAX);
            assert_eq!(inject(&frame, 2, t), Err(BufferFull));
        });
        assert_eq!(messages.len(), 2 * FRAGMENTS_MAX);
    }
}
