//! A recorded flight: the comma-separated rows of a pilot's sticks and of the aircraft's positions, as the
//! reference keeps them.
//!
//! ```text
//! 1, time_ns, roll_us, pitch_us, throttle_us, yaw_us
//! 0, time_ns, easting_m, northing_m, altitude_m, height_m, speed_m_s, heading_rad
//! ```
//!
//! Rows come in any order. The sticks are what is flown; positions show how the recorded aircraft flew.

use std::fmt;

use wingbeat_geo::Duration;

use super::Sticks;
use crate::flight_controller::Truth;

/// A receiver's pulses lie within these, microseconds.
const PULSES_US: std::ops::RangeInclusive<u16> = 800..=2200;
/// A recording of more rows than this is none of one flight (the published one has 4665).
const ROWS_MAX: usize = 1_000_000;
/// No flight of a multicopter lasts longer.
const DURATION_MAX: Duration = Duration::from_secs(4 * 3600);
/// The switch is turned before the first row is played: it has to rest in its position.
const BEFORE: Duration = Duration::from_secs(1);

/// A row of the aircraft's own position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionRow {
    /// Time after the first row of the sticks; before it is zero.
    pub at: Duration,
    /// East in its UTM zone, metres.
    pub easting_m: f64,
    /// North in its UTM zone, metres.
    pub northing_m: f64,
    /// Height above where it took off, metres.
    pub height_m: f64,
    /// Speed over ground.
    pub speed_m_s: f64,
    /// Where the nose points, clockwise from north.
    pub heading_rad: f64,
}

/// A recorded flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    sticks: Vec<(Duration, Sticks)>,
    positions: Vec<PositionRow>,
}

/// Why a file is no recorded flight.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceError {
    /// Which line, from 1; none for the file as a whole.
    pub line: Option<usize>,
    /// The value or problem that was found.
    pub found: String,
    /// The values that are accepted.
    pub expected: &'static str,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "found {}, expected {}", self.found, self.expected)
    }
}

impl std::error::Error for TraceError {}

/// Shows what was found, however long the line is.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("'{short}…'") } else { format!("'{short}'") }
}

impl Trace {
    /// Reads a recording.
    ///
    /// # Errors
    /// Names the first bad line, what was found and what was expected.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut sticks: Vec<(i64, Sticks)> = Vec::new();
        let mut positions: Vec<(i64, [f64; 6])> = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let bad =
                |found: &str, expected| TraceError { line: Some(number + 1), found: shown(found), expected };
            if number >= ROWS_MAX {
                return Err(bad(line, "at most a million rows"));
            }
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let time = || {
                let text = fields.get(1).copied().unwrap_or_default();
                text.parse::<i64>().map_err(|_| bad(text, "a time in whole nanoseconds"))
            };
            match fields[0] {
                "1" if fields.len() == 6 => {
                    let mut pulses = [0u16; 4];
                    for (pulse, field) in pulses.iter_mut().zip(&fields[2..]) {
                        let parsed = field.parse::<u16>().ok().filter(|p| PULSES_US.contains(p));
                        *pulse = parsed.ok_or_else(|| bad(field, "a pulse of 800 to 2200 µs"))?;
                    }
                    let [roll_us, pitch_us, throttle_us, yaw_us] = pulses;
                    sticks.push((time()?, Sticks { roll_us, pitch_us, throttle_us, yaw_us }));
                }
                "0" if fields.len() == 8 => {
                    let mut numbers = [0.0; 6];
                    for (number, field) in numbers.iter_mut().zip(&fields[2..]) {
                        let parsed = field.parse::<f64>().ok().filter(|n| n.is_finite());
                        *number = parsed.ok_or_else(|| bad(field, "a finite number"))?;
                    }
                    positions.push((time()?, numbers));
                }
                "1" => return Err(bad(line, "6 fields: 1, time, roll, pitch, throttle, yaw")),
                "0" => {
                    return Err(bad(line, "8 fields: 0, time, easting, northing, z, height, speed, heading"));
                }
                other => return Err(bad(other, "a row that begins with 0 or 1")),
            }
        }
        sticks.sort_by_key(|(at, _)| *at);
        positions.sort_by_key(|(at, _)| *at);
        let whole = |found: String, expected| TraceError { line: None, found, expected };
        let Some((first, last)) = sticks.first().zip(sticks.last()).map(|(a, b)| (a.0, b.0)) else {
            return Err(whole("no row of sticks".into(), "one or more"));
        };
        let since = |at: i64| {
            let passed_ns = i128::from(at) - i128::from(first);
            Duration::from_micros(u64::try_from(passed_ns / 1_000).unwrap_or(0))
        };
        if since(last) > DURATION_MAX {
            return Err(whole(format!("{} s of flight", since(last).as_secs()), "at most four hours"));
        }
        Ok(Self {
            sticks: sticks.into_iter().map(|(at, s)| (since(at), s)).collect(),
            positions: positions
                .into_iter()
                .map(|(at, [easting_m, northing_m, _, height_m, speed_m_s, heading_rad])| PositionRow {
                    at: since(at),
                    easting_m,
                    northing_m,
                    height_m,
                    speed_m_s,
                    heading_rad,
                })
                .collect(),
        })
    }

    /// From the first row of the sticks to the last.
    pub fn duration(&self) -> Duration {
        self.sticks.last().map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// How the recorded aircraft flew, in order.
    pub fn positions(&self) -> &[PositionRow] {
        &self.positions
    }
}

/// Plays a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    trace: Trace,
    next: usize,
}

impl Replay {
    /// From its first row.
    pub fn new(trace: Trace) -> Self {
        Self { trace, next: 0 }
    }

    /// The row of that time. Before the first the sticks rest with the switch at LOITER; after the last the
    /// throttle goes down, because the simulated aircraft need not have descended with the recorded one.
    pub(super) fn sticks(&mut self, flown: Duration, _seen: &Truth) -> Sticks {
        let rows = &self.trace.sticks;
        while rows.get(self.next).is_some_and(|(at, _)| *at + BEFORE <= flown) {
            self.next += 1;
        }
        match self.next.checked_sub(1) {
            None => Sticks::DOWN,
            Some(_) if self.next == rows.len() => Sticks::DOWN,
            Some(row) => rows[row].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "0,1500,694233.5,4399724.5,393.6,0.03,0.03,5.08\n1,2000000,1500,1500,1600,1500\n\
                        1, 1000000, 994, 2006, 982, 2006\n\n0,3000000,694234.0,4399724.5,393.6,1.0,0.5,5.0\n";

    #[test]
    fn rows_in_any_order_become_one_flight() {
        let trace = Trace::parse(GOOD).unwrap();
        assert_eq!(trace.duration(), Duration::from_millis(1));
        let [first, second] = trace.positions() else { panic!("{:?}", trace.positions()) };
        assert_eq!((first.at, second.at), (Duration::ZERO, Duration::from_millis(2)));
        assert_eq!((second.height_m, second.speed_m_s, second.heading_rad), (1.0, 0.5, 5.0));
        assert_eq!(
            trace.sticks[0].1,
            Sticks { roll_us: 994, pitch_us: 2006, throttle_us: 982, yaw_us: 2006 }
        );
    }

    #[test]
    fn bad_rows_name_their_line() {
        for (bad, words) in [
            ("1,5,1500,1500,1500", &["line 6", "'1,5,1500,1500,1500'", "6 fields"][..]),
            ("0,5,1,2,3", &["line 6", "8 fields"]),
            ("7,5", &["line 6", "'7'", "begins with 0 or 1"]),
            ("1,x,1500,1500,1500,1500", &["line 6", "'x'", "nanoseconds"]),
            ("1,5,1500,1500,1500,99", &["line 6", "'99'", "800 to 2200"]),
            ("0,5,1,2,3,4,nan,6", &["line 6", "'nan'", "finite"]),
            ("1,99999999999999999,1500,1500,1500,1500", &["at most four hours"]),
        ] {
            let message = Trace::parse(&format!("{GOOD}{bad}\n")).unwrap_err().to_string();
            for word in words {
                assert!(message.contains(word), "{bad}: {message}");
            }
        }
        assert!(Trace::parse("").unwrap_err().to_string().contains("no row of sticks"));
    }
}
