//! Corrections of satellite navigation as a base station makes them: frames of RTCM 3
//! (RTCM 10403.3, section 4: `D3`, six bits of zero, ten bits of length, the message, CRC-24Q).

use heapless::Vec;
use serde::Serialize;

use crate::Refused;

/// The longest frame that an aircraft's flight controller takes: four fragments of 180 bytes
/// (<https://mavlink.io/en/messages/common.html#GPS_RTCM_DATA>).
pub const RTCM_LEN_MAX: usize = 720;
/// The longest that there is.
const FRAME_LEN_MAX: usize = HEAD_LEN + 1_023 + CRC_LEN;
const PREAMBLE: u8 = 0xd3;
const HEAD_LEN: usize = 3;
const CRC_LEN: usize = 3;
/// CRC-24Q (Qualcomm), begun with zero.
const POLYNOMIAL: u32 = 0x0186_4cfb;

/// One frame of a base station.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Corrections {
    /// The whole frame.
    pub frame: Vec<u8, RTCM_LEN_MAX>,
}

impl Corrections {
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if is_frame(&self.frame) { Ok(()) } else { Err(Refused::Impossible) }
    }
}

/// Whether the bytes are one whole frame.
pub fn is_frame(bytes: &[u8]) -> bool {
    length(bytes) == Some(bytes.len()) && crc24q(bytes) == 0
}

/// The checksum; that of a frame with its own at its end is zero.
fn crc24q(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 16, |crc, _| {
            let crc = crc << 1;
            if crc & 0x0100_0000 == 0 { crc } else { crc ^ POLYNOMIAL }
        })
    })
}

/// The length of the frame that begins here, at least that of the shortest where its head is not there yet; nothing where none
/// does.
fn length(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [] | [PREAMBLE] | [PREAMBLE, 0..4] => Some(HEAD_LEN + CRC_LEN),
        [PREAMBLE, high @ 0..4, low, ..] => {
            Some(HEAD_LEN + (usize::from(high) << 8 | usize::from(low)) + CRC_LEN)
        }
        [_, ..] => None,
    }
}

/// Finds the frames in a stream of bytes, whatever is between them.
#[derive(Debug, Default)]
pub struct RtcmFinder {
    bytes: Vec<u8, FRAME_LEN_MAX>,
    /// Whole frames with a wrong checksum: damaged, or bytes of another kind that begin like one.
    pub damaged: u64,
    /// Bytes that were no part of a frame.
    pub garbage_bytes: u64,
    /// Frames that no flight controller takes.
    pub too_long: u64,
}

impl RtcmFinder {
    /// Takes bytes as they come and hands out every whole frame.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&Corrections)) {
        for &byte in bytes {
            // A frame that is whole leaves immediately, so there is room.
            let _ = self.bytes.push(byte);
            while !self.bytes.is_empty() {
                match length(&self.bytes) {
                    Some(length) if length > self.bytes.len() => break,
                    Some(length) if crc24q(&self.bytes[..length]) == 0 => {
                        match Vec::from_slice(&self.bytes[..length]) {
                            Ok(frame) => each(&Corrections { frame }),
                            Err(_) => self.too_long += 1,
                        }
                        self.drop(length);
                    }
                    is_damaged => {
                        self.damaged += u64::from(is_damaged.is_some());
                        let next = self.bytes[1..].iter().position(|&byte| byte == PREAMBLE);
                        let garbage = next.map_or(self.bytes.len(), |next| next + 1);
                        self.garbage_bytes += garbage as u64;
                        self.drop(garbage);
                    }
                }
            }
        }
    }

    /// The stream is another one: what was not whole of the last has no rest.
    pub fn restart(&mut self) {
        self.garbage_bytes += self.bytes.len() as u64;
        self.bytes.clear();
    }

    fn drop(&mut self, count: usize) {
        let left = self.bytes.len() - count;
        self.bytes.copy_within(count.., 0);
        self.bytes.truncate(left);
    }
}

/// A frame around a message, for tests and simulated base stations; nothing where the message is too long for one.
pub fn rtcm_frame(message: &[u8]) -> Option<Corrections> {
    let length = u16::try_from(message.len()).ok().filter(|length| *length < 1_024)?;
    let [high, low] = length.to_be_bytes();
    let mut frame = Vec::from_slice(&[PREAMBLE, high, low]).ok()?;
    frame.extend_from_slice(message).ok()?;
    let [_, crc @ ..] = crc24q(&frame).to_be_bytes();
    frame.extend_from_slice(&crc).ok()?;
    Some(Corrections { frame })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    /// A real message 1005, of RTCM 10403.1, section 4.2.
    const EXAMPLE: [u8; 25] = [
        0xd3, 0x00, 0x13, 0x3e, 0xd7, 0xd3, 0x02, 0x02, 0x98, 0x0e, 0xde, 0xef, 0x34, 0xb4, 0xbd, 0x62, 0xac,
        0x09, 0x41, 0x98, 0x6f, 0x33, 0x36, 0x0b, 0x98,
    ];

    fn found(bytes: &[u8], piece: usize) -> (vec::Vec<Corrections>, RtcmFinder) {
        let (mut finder, mut frames) = (RtcmFinder::default(), vec![]);
        for piece in bytes.chunks(piece) {
            finder.push(piece, |frame| frames.push(frame.clone()));
        }
        (frames, finder)
    }

    #[test]
    fn the_example_of_the_standard_is_a_frame_and_no_changed_bit_of_it_is() {
        assert!(is_frame(&EXAMPLE));
        assert_eq!(rtcm_frame(&EXAMPLE[3..22]).unwrap().frame, EXAMPLE);
        for bit in 0..EXAMPLE.len() * 8 {
            let mut changed = EXAMPLE;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_frame(&changed), "bit {bit}");
        }
        assert!(
            !is_frame(&EXAMPLE[..24])
                && !is_frame(&[])
                && !is_frame(&EXAMPLE[..1])
                && !is_frame(&EXAMPLE[..2])
        );
    }

    #[test]
    fn frames_are_found_in_pieces_between_noise_and_after_a_damaged_one() {
        let mut damaged = EXAMPLE;
        damaged[9] ^= 1;
        // No frame begins with the first two bytes; one of eight bytes seems to with the last three. So one does in the damaged
        // frame, of 520 bytes.
        let noise = [0xd3, 0xff, b'$', b'G', 0xd3, 0x00, 0x02];
        let stream = [&noise[..], &EXAMPLE, &damaged, &EXAMPLE.repeat(30), &[0xd3]].concat();
        for piece in [1, 7, stream.len()] {
            let (frames, finder) = found(&stream, piece);
            assert_eq!(frames.len(), 31, "{piece}");
            assert!(frames.iter().all(|found| found.frame == EXAMPLE));
            assert_eq!((finder.damaged, finder.garbage_bytes), (3, (noise.len() + damaged.len()) as u64));
        }
    }

    #[test]
    fn a_frame_that_no_flight_controller_takes_is_counted_and_left_out() {
        let mut long = vec![PREAMBLE, 0x03, 0xff];
        long.extend([7; 1_023]);
        let [_, crc @ ..] = crc24q(&long).to_be_bytes();
        long.extend(crc);
        let (frames, finder) = found(&[&long[..], &EXAMPLE].concat(), 100);
        assert_eq!((frames.len(), finder.too_long, finder.garbage_bytes), (1, 1, 0));
        assert_eq!(rtcm_frame(&[7; RTCM_LEN_MAX - 6]).unwrap().frame.len(), RTCM_LEN_MAX);
        assert!(rtcm_frame(&[7; RTCM_LEN_MAX - 5]).is_none());
    }
}
