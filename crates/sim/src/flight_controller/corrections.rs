//! Corrections of satellite navigation, `GPS_RTCM_DATA`: joined as ArduPilot joins them (`AP_GPS::handle_gps_rtcm_fragment`), and
//! used by a receiver that needs them ([`super::Config::needs_corrections`]): with them its fix becomes RTK float, then fixed, and
//! it is an ordinary one again when they stay away.

use wingbeat_autopilot::dialect::{GPS_RTCM_DATA_DATA, GpsFixType};
use wingbeat_geo::{Duration, Instant};

use super::FlightController;

/// Bytes of one fragment.
const FRAGMENT_LEN: usize = 180;
const FRAGMENTS_MAX: usize = 4;
/// Corrections older than this are not used.
const FRESH: Duration = Duration::from_secs(10);
/// So long with them until the ambiguities are resolved.
const FLOAT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Corrections {
    joined: Joined,
    /// Whole frames that the receiver was handed.
    frames: u32,
    /// What it was handed that was no frame.
    refused: u32,
    since: Option<Instant>,
    at: Option<Instant>,
}

/// Fragments of one message.
#[derive(Debug)]
struct Joined {
    buffer: [u8; FRAGMENTS_MAX * FRAGMENT_LEN],
    sequence: u8,
    /// A bit for each fragment that has come.
    received: u8,
    /// Number of fragments and of bytes, once the last has come.
    whole: Option<(usize, usize)>,
}

impl Default for Joined {
    fn default() -> Self {
        Self { buffer: [0; FRAGMENTS_MAX * FRAGMENT_LEN], sequence: 0, received: 0, whole: None }
    }
}

impl Joined {
    /// Takes a fragment; a whole message where it completes one.
    fn take(&mut self, m: &GPS_RTCM_DATA_DATA) -> Option<Vec<u8>> {
        let part = m.data.get(..usize::from(m.len))?;
        if m.flags & 1 == 0 {
            return Some(part.to_vec());
        }
        let (index, sequence) = (usize::from(m.flags >> 1 & 3), m.flags >> 3);
        let start = index * FRAGMENT_LEN;
        let place = &mut self.buffer[start..start + part.len()];
        if self.received != 0 {
            let (is_other, is_seen) = (self.sequence != sequence, self.received & 1 << index != 0);
            if !is_other && is_seen && place == part {
                return None;
            }
            if is_other || is_seen {
                (self.received, self.whole) = (0, None);
            }
        }
        place.copy_from_slice(part);
        self.sequence = sequence;
        self.received |= 1 << index;
        if part.len() < FRAGMENT_LEN {
            self.whole = Some((index + 1, start + part.len()));
        } else if self.received == 0x0f {
            self.whole = Some((FRAGMENTS_MAX, self.buffer.len()));
        }
        let (_, length) = self.whole.filter(|(count, _)| self.received == (1_u8 << count) - 1)?;
        (self.received, self.whole) = (0, None);
        Some(self.buffer[..length].to_vec())
    }
}

impl FlightController {
    pub(super) fn handle_corrections(&mut self, m: &GPS_RTCM_DATA_DATA) {
        let (now, state) = (self.now, &mut self.corrections);
        let Some(frame) = state.joined.take(m) else { return };
        if !wingbeat_wire::is_rtcm_frame(&frame) {
            state.refused = state.refused.saturating_add(1);
            return;
        }
        state.frames = state.frames.saturating_add(1);
        if state.at.is_none_or(|at| now.since(at) > FRESH) {
            state.since = Some(now);
        }
        state.at = Some(now);
    }

    /// Frames of corrections that its receiver was handed, and how often it was handed what is none.
    pub fn corrections(&self) -> (u32, u32) {
        (self.corrections.frames, self.corrections.refused)
    }

    /// What its receiver reports of a fix. SITL's of 3.5.7 shows 6 without corrections.
    pub(super) fn fix_type(&self) -> GpsFixType {
        let Corrections { since, at, .. } = &self.corrections;
        if !self.config.needs_corrections {
            return GpsFixType::GPS_FIX_TYPE_RTK_FIXED;
        }
        match (since, at) {
            (Some(since), Some(at)) if self.now.since(*at) <= FRESH => {
                if self.now.since(*since) < FLOAT {
                    GpsFixType::GPS_FIX_TYPE_RTK_FLOAT
                } else {
                    GpsFixType::GPS_FIX_TYPE_RTK_FIXED
                }
            }
            _ => GpsFixType::GPS_FIX_TYPE_3D_FIX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(sequence: u8, index: u8, data: &[u8]) -> GPS_RTCM_DATA_DATA {
        let mut m =
            GPS_RTCM_DATA_DATA { flags: 1 | index << 1 | sequence << 3, ..GPS_RTCM_DATA_DATA::DEFAULT };
        m.len = data.len() as u8;
        m.data[..data.len()].copy_from_slice(data);
        m
    }

    /// What comes of fragments, in this order.
    fn joined(parts: &[GPS_RTCM_DATA_DATA]) -> Vec<usize> {
        let mut joined = Joined::default();
        parts.iter().filter_map(|part| joined.take(part)).map(|message| message.len()).collect()
    }

    #[test]
    fn fragments_are_joined_as_ardupilot_joins_them() {
        let full = |sequence, index| fragment(sequence, index, &[index + 1; FRAGMENT_LEN]);
        let end = |sequence, index, length: usize| fragment(sequence, index, &vec![9; length]);
        assert_eq!(joined(&[full(1, 0), end(1, 1, 20)]), [200]);
        assert_eq!(joined(&[end(1, 1, 20), full(1, 0)]), [200], "in any order");
        assert_eq!(joined(&[full(1, 0), full(1, 1)]), [0; 0], "an end has to come");
        assert_eq!(joined(&[full(1, 0), full(1, 1), end(1, 2, 0)]), [360]);
        assert_eq!(joined(&[full(1, 0), full(1, 1), full(1, 2), full(1, 3)]), [720]);
        assert_eq!(joined(&[full(1, 0), full(1, 0), end(1, 1, 20)]), [200], "a copy");
        assert_eq!(joined(&[full(1, 0), end(2, 1, 20)]), [0; 0], "of two messages");
        assert_eq!(joined(&[full(1, 0), full(2, 0), end(2, 1, 20)]), [200], "the first was lost");
        let other = fragment(1, 0, &[7; FRAGMENT_LEN]);
        assert_eq!(joined(&[full(1, 0), other, end(1, 1, 20)]), [200], "another of the same number");
        let too_long = GPS_RTCM_DATA_DATA { len: 181, ..GPS_RTCM_DATA_DATA::DEFAULT };
        assert_eq!(joined(&[too_long]), [0; 0]);
    }
}
