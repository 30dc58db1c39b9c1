//! Texts of the autopilot: parts of one text are joined, and bytes that are no text are shown as such.

use heapless::{String, Vec};
use wingbeat_geo::{Duration, Instant};

use crate::dialect::{MavSeverity, STATUSTEXT_DATA};

/// The longest text that is kept, bytes of UTF-8.
pub const TEXT_LEN_MAX: usize = 200;
/// Bytes of one part.
const PART_LEN: usize = 50;
/// A part that does not come within this time is lost.
const PART_WITHIN: Duration = Duration::from_secs(2);

/// A text of the autopilot.
pub type StatusText = String<TEXT_LEN_MAX>;

/// Returns whether a character changes the line that shows it: control characters, and those that turn the direction
/// of writing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns bytes up to the first zero as text that can be shown: what is no UTF-8, a control character or changes the
/// direction of writing becomes U+FFFD.
pub fn printable(bytes: &[u8]) -> StatusText {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let mut text = StatusText::new();
    for chunk in bytes[..end].utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| if is_hidden(c) { char::REPLACEMENT_CHARACTER } else { c });
        let invalid = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
        for c in valid.chain(invalid) {
            // A longer text is cut at a character.
            if text.push(c).is_err() {
                return text;
            }
        }
    }
    text
}

/// Returns whether a severity is a warning or worse: ArduCopter reports its failsafes as warnings.
fn is_severe(severity: MavSeverity) -> bool {
    matches!(
        severity,
        MavSeverity::MAV_SEVERITY_EMERGENCY
            | MavSeverity::MAV_SEVERITY_ALERT
            | MavSeverity::MAV_SEVERITY_CRITICAL
            | MavSeverity::MAV_SEVERITY_WARNING
            | MavSeverity::MAV_SEVERITY_ERROR
    )
}

/// Joins texts that come in parts (<https://mavlink.io/en/messages/common.html#STATUSTEXT>).
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    /// The id of the text whose parts are collected; 0 where there is none.
    id: u16,
    next_part: u8,
    is_severe: bool,
    bytes: Vec<u8, TEXT_LEN_MAX>,
    last_at: Instant,
    /// Whether its last part has come.
    is_whole: bool,
}

impl Joiner {
    /// Takes a message. Returns a text that is complete, with whether it is severe.
    pub(super) fn push(&mut self, now: Instant, m: &STATUSTEXT_DATA) -> Option<(bool, StatusText)> {
        let part: &[u8] = &*m.text;
        if m.id == 0 {
            return Some((is_severe(m.severity), printable(part)));
        }
        // Parts of another text were lost: it is shown as far as it came.
        let left = if self.id == m.id { None } else { self.take() };
        let length = part.iter().position(|&b| b == 0).unwrap_or(part.len());
        if self.id == 0 {
            (self.id, self.next_part, self.is_severe) = (m.id, 0, is_severe(m.severity));
        }
        if self.next_part < m.chunk_seq {
            // Bytes beyond the longest text are cut.
            let _ = self.bytes.extend_from_slice(" [...] ".as_bytes());
        }
        let room = self.bytes.capacity() - self.bytes.len();
        let _ = self.bytes.extend_from_slice(&part[..length.min(room)]);
        (self.next_part, self.last_at) = (m.chunk_seq.saturating_add(1), now);
        self.is_whole = length < PART_LEN;
        match left {
            Some(left) => Some(left),
            None if self.is_whole => self.take(),
            None => None,
        }
    }

    /// Returns a text that waits and to which nothing is added any more.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<(bool, StatusText)> {
        let is_due = self.id != 0 && (self.is_whole || now.since(self.last_at) >= PART_WITHIN);
        if is_due { self.take() } else { None }
    }

    fn take(&mut self) -> Option<(bool, StatusText)> {
        let Self { id, is_severe, bytes, .. } = core::mem::take(self);
        (id != 0).then(|| (is_severe, printable(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: u16, chunk_seq: u8, text: &[u8]) -> STATUSTEXT_DATA {
        let mut field = [0; PART_LEN];
        field[..text.len()].copy_from_slice(text);
        let severity = MavSeverity::MAV_SEVERITY_CRITICAL;
        STATUSTEXT_DATA { severity, text: field.into(), id, chunk_seq }
    }

    /// As ArduCopter 4.6 sends it: 50 bytes, and the rest.
    const WHOLE: &str = "PreArm: Compasses inconsistent, internal and external differ by 41 degrees";

    #[test]
    fn parts_of_a_text_are_joined_and_lost_ones_are_shown_as_lost() {
        let now = Instant::from_secs(1);
        let mut joiner = Joiner::default();
        let (first, second) = WHOLE.as_bytes().split_at(PART_LEN);
        assert_eq!(joiner.push(now, &part(7, 0, first)), None);
        // A whole one in between does not disturb it.
        assert_eq!(joiner.push(now, &part(0, 0, b"Low battery")).unwrap().1, "Low battery");
        let (is_severe, text) = joiner.push(now, &part(7, 1, second)).unwrap();
        assert_eq!((is_severe, text.as_str()), (true, WHOLE));
        // The second of three is lost.
        joiner.push(now, &part(8, 0, first));
        let text = joiner.push(now, &part(8, 2, b"end")).unwrap().1;
        assert!(text.ends_with("internal and exter [...] end"), "{text}");
        // The last one is lost: it is shown when the next text begins, or after two seconds.
        joiner.push(now, &part(9, 0, first));
        assert!(joiner.push(now, &part(10, 0, b"next")).unwrap().1.ends_with("exter"));
        assert_eq!(joiner.overdue(now).unwrap().1, "next");
        joiner.push(now, &part(11, 0, first));
        assert_eq!(joiner.overdue(now + Duration::from_millis(1_999)), None);
        assert!(joiner.overdue(now + PART_WITHIN).unwrap().1.ends_with("exter"));
        assert_eq!(joiner.overdue(now + PART_WITHIN), None);
        // A text of exactly one part has an empty one behind it.
        assert_eq!(joiner.push(now, &part(12, 0, first)), None);
        assert!(joiner.push(now, &part(12, 1, b"")).unwrap().1.ends_with("exter"));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_and_hide_nothing() {
        assert_eq!(printable(b"M\xe9t\xe9o: vent fort\0rest"), "M\u{fffd}t\u{fffd}o: vent fort");
        assert_eq!(printable("a\u{202e}b\u{1b}[2Jc\nd".as_bytes()), "a\u{fffd}b\u{fffd}[2Jc\u{fffd}d");
        assert_eq!(printable("Höhe 10 m ✓".as_bytes()), "Höhe 10 m ✓");
        let long = printable(&[0xff; 200]);
        assert!(long.len() <= TEXT_LEN_MAX && long.chars().all(|c| c == '\u{fffd}'));
    }

    #[test]
    fn rubbish_is_bounded() {
        let mut joiner = Joiner::default();
        for seq in 0..=255 {
            joiner.push(Instant::ZERO, &part(5, seq, &[b'x'; PART_LEN]));
        }
        assert_eq!(joiner.overdue(Instant::from_secs(9)).unwrap().1.len(), TEXT_LEN_MAX);
    }
}
