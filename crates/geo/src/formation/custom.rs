//! Slots from a list, and the file that holds the list.
//!
//! A file has one line per slot: metres to the right of the heading, metres ahead, and, unless it is zero,
//! metres above, separated by commas, with at most one decimal. The first line is the slot that leads;
//! the others are relative to it. Empty lines, and text after a `#`, are skipped.

use core::fmt;
use serde::{Deserialize, Serialize};

use glam::DVec3;
use heapless::{String, Vec};

use super::shape::{Geometry, Shape};
use crate::AIRCRAFT_MAX;

pub(super) const SHAPE: Shape =
    Shape { name: "custom", number: 7, parameter: None, center_slot: |_| 0, geometry: Geometry::Listed };

/// No slot is farther than this from the middle in any direction, decimetres: a local frame ends there.
const FAR_DM: i32 = 1_000_000;

/// The offset of a slot from the slot that leads, in whole decimetres: equal on every aircraft that receives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Offset {
    /// To the right of the heading, decimetres.
    pub right_dm: i32,
    /// Ahead, decimetres.
    pub ahead_dm: i32,
    /// Above, decimetres.
    pub up_dm: i32,
}

/// The slots of one formation.
pub type Offsets = Vec<Offset, AIRCRAFT_MAX>;

/// A slot that is too far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found a slot {found_dm} dm from the middle, expected at most {FAR_DM}")]
pub struct OffsetError {
    /// The coordinate that is too great.
    pub found_dm: i32,
}

impl Offset {
    pub(super) fn check(self) -> Result<(), OffsetError> {
        match [self.right_dm, self.ahead_dm, self.up_dm]
            .into_iter()
            .find(|x| x.unsigned_abs() > FAR_DM as u32)
        {
            Some(found_dm) => Err(OffsetError { found_dm }),
            None => Ok(()),
        }
    }
    /// To the right, ahead, and above, metres.
    pub fn meters(self) -> DVec3 {
        DVec3::new(f64::from(self.right_dm), f64::from(self.ahead_dm), f64::from(self.up_dm)) / 10.0
    }
    /// Rounded to whole decimetres.
    pub(super) fn nearest_to(offset_m: DVec3) -> Self {
        let whole = |x: f64| libm::round(x * 10.0) as i32;
        Self { right_dm: whole(offset_m.x), ahead_dm: whole(offset_m.y), up_dm: whole(offset_m.z) }
    }
}

/// What was found in a file, cut to a line's beginning.
pub type FoundText = String<40>;

/// Why a file is no list of slots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// A line is no slot.
    #[error("line {line}: found \"{found}\", expected {expected}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The first characters of the text that was found.
        found: FoundText,
        /// What is expected instead.
        expected: &'static str,
    },
    /// Nothing but comments.
    #[error("found no slot, expected one line for each aircraft: metres right, metres ahead, metres above")]
    Empty,
    /// More slots than the bound.
    #[error("line {line}: found slot number {}, expected at most {AIRCRAFT_MAX}", AIRCRAFT_MAX + 1)]
    TooMany {
        /// The first line too many, from 1.
        line: usize,
    },
}

/// The slots in the text of a file, in its order.
///
/// # Errors
/// The first line that is no slot, with its beginning and what is expected there.
pub fn read_offsets(text: &str) -> Result<Offsets, FileError> {
    let mut offsets = Offsets::new();
    for (index, whole) in text.lines().enumerate() {
        let line = index + 1;
        let content = whole.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let wrong = |found: &str, expected| {
            let mut cut = FoundText::new();
            // What does not fit is not shown.
            found.chars().all(|c| cut.push(if c.is_control() { '?' } else { c }).is_ok());
            FileError::Line { line, found: cut, expected }
        };
        let mut numbers = [0; 3];
        let mut fields = 0;
        for field in content.split(',') {
            let Some(number) = numbers.get_mut(fields) else {
                fields += 1;
                break;
            };
            *number = decimetres(field.trim()).map_err(|expected| wrong(field.trim(), expected))?;
            fields += 1;
        }
        if !(2..=3).contains(&fields) {
            return Err(wrong(content, "two or three numbers with commas between: right, ahead, above"));
        }
        let [right_dm, ahead_dm, up_dm] = numbers;
        offsets.push(Offset { right_dm, ahead_dm, up_dm }).map_err(|_| FileError::TooMany { line })?;
    }
    if offsets.is_empty() { Err(FileError::Empty) } else { Ok(offsets) }
}

/// A number of metres with at most one decimal.
fn decimetres(text: &str) -> Result<i32, &'static str> {
    const NUMBER: &str = "a number of metres with at most one decimal, for example -12.5";
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, decimal) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(decimal) || decimal.trim_end_matches('0').len() > 1 {
        return Err(NUMBER);
    }
    let tenths = i64::from(decimal.as_bytes()[0] - b'0');
    // No number of so many digits is near enough; and none of them overflows.
    let meters =
        if whole.trim_start_matches('0').len() > 9 { i64::MAX / 20 } else { whole.parse().unwrap_or(0) };
    let found = meters * 10 + tenths;
    if found > i64::from(FAR_DM) {
        return Err("at most 100000 m");
    }
    let found = found as i32;
    Ok(if negative { -found } else { found })
}

impl fmt::Display for Offset {
    /// A line of a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.meters();
        write!(f, "{:.1}, {:.1}, {:.1}", offset.x, offset.y, offset.z)
    }
}
