//! The file of a test: lines `# key = value` of what was sent, then a row for each datagram that was received, or of which both
//! aircraft's own records say where they were.

use std::fmt::Write as _;

use wingbeat_geo::{DVec3, Position};

use crate::{COUNT_MAX, Flight, Record, Test};

const COLUMNS: &str = "sequence,copies,\
    sender_latitude_deg,sender_longitude_deg,sender_altitude_m,sender_heading_deg,\
    sender_east_m_s,sender_north_m_s,sender_up_m_s,\
    receiver_latitude_deg,receiver_longitude_deg,receiver_altitude_m,receiver_heading_deg,\
    receiver_east_m_s,receiver_north_m_s,receiver_up_m_s";

/// A file of a test that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: found {found}, expected {expected}")]
pub struct CsvError {
    /// Which, from 1.
    line: usize,
    found: String,
    expected: String,
}

impl Record {
    /// The text of its file.
    pub fn to_csv(&self) -> String {
        let Test { number, from, to, count, rate_hz, payload_bytes } = &self.test;
        let mut text = format!(
            "# number = {number}\n# from = {from}\n# to = {to}\n# count = {count}\n# rate_hz = {rate_hz}\n\
             # payload_bytes = {payload_bytes}\n{COLUMNS}\n"
        );
        for (sequence, reception) in self.known() {
            let _ = write!(text, "{sequence},{}", reception.copies);
            for Flight { position: p, heading_rad, velocity_m_s: v } in [reception.sender, reception.receiver]
            {
                let degrees = |e7: i32| f64::from(e7) / 1e7;
                let (latitude, longitude) = (degrees(p.latitude_e7), degrees(p.longitude_e7));
                let altitude_m = f64::from(p.altitude_mm) / 1e3;
                let heading_deg = heading_rad.to_degrees();
                let _ = write!(
                    text,
                    ",{latitude:.7},{longitude:.7},{altitude_m:.3},{heading_deg:.2},{:.3},{:.3},{:.3}",
                    v.x, v.y, v.z
                );
            }
            text.push('\n');
        }
        text
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that is not as expected, with what was found there.
    pub fn from_csv(text: &str) -> Result<Self, CsvError> {
        let mut lines = (1..).zip(text.lines());
        let mut key = |name: &str| -> Result<(usize, String), CsvError> {
            let expected = || format!("# {name} = VALUE");
            let end = CsvError { line: 0, found: "the end".into(), expected: expected() };
            let (line, text) = lines.next().ok_or(end)?;
            let value = text.strip_prefix("# ").and_then(|t| t.split_once(" = ")).filter(|(k, _)| *k == name);
            match value {
                Some((_, value)) => Ok((line, value.to_owned())),
                None => Err(CsvError { line, found: quoted(text), expected: expected() }),
            }
        };
        let number = number_of(key("number")?, 0, u32::MAX)?;
        let (from, to) = (key("from")?.1, key("to")?.1);
        let count = number_of(key("count")?, 0, COUNT_MAX)?;
        let (line, text) = key("rate_hz")?;
        let rate_hz = text
            .parse::<f64>()
            .ok()
            .filter(|rate| *rate > 0.0 && rate.is_finite())
            .ok_or(CsvError { line, found: quoted(&text), expected: "a rate of more than 0 Hz".into() })?;
        let payload_bytes = number_of(key("payload_bytes")?, 0, 65_535)?;
        let mut record = Self::new(Test { number, from, to, count, rate_hz, payload_bytes });
        match lines.next() {
            Some((_, columns)) if columns == COLUMNS => {}
            other => {
                let (line, found) = other.unwrap_or((0, "the end"));
                return Err(CsvError {
                    line,
                    found: quoted(found),
                    expected: format!("the columns {COLUMNS}"),
                });
            }
        }
        for (line, text) in lines {
            let error = |expected: &str| CsvError { line, found: quoted(text), expected: expected.into() };
            let fields: Vec<&str> = text.split(',').collect();
            let [sequence, copies, flights @ ..] = fields.as_slice() else {
                return Err(error("16 numbers"));
            };
            let numbers: Option<Vec<f64>> =
                flights.iter().map(|field| field.parse().ok().filter(|n: &f64| n.is_finite())).collect();
            let numbers = numbers.filter(|numbers| numbers.len() == 14).ok_or_else(|| error("16 numbers"))?;
            let sequence = sequence.parse().ok().filter(|n| *n < count);
            let sequence = sequence.ok_or_else(|| error("a sequence below the count"))?;
            let copies: u32 =
                copies.parse().ok().filter(|n| *n <= 1_000).ok_or_else(|| error("0 to 1000 copies"))?;
            let read = |n: &[f64]| -> Result<Flight, CsvError> {
                let position = Position::from_degrees(n[0], n[1], n[2]).map_err(|e| error(&e.to_string()))?;
                let velocity_m_s = DVec3::new(n[4], n[5], n[6]);
                Ok(Flight { position, heading_rad: n[3].to_radians(), velocity_m_s })
            };
            let (sender, receiver) = (read(&numbers[..7])?, read(&numbers[7..])?);
            record.note(sequence, sender, receiver);
            for _ in 0..copies {
                record.add(sequence, sender, receiver);
            }
        }
        Ok(record)
    }
}

/// As much of a line as a message bears.
fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(40).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

fn number_of((line, text): (usize, String), least: u32, most: u32) -> Result<u32, CsvError> {
    let error = || CsvError { line, found: quoted(&text), expected: format!("{least} to {most}") };
    text.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{at, test};

    #[test]
    fn a_test_is_read_as_it_was_written() {
        let mut record = Record::new(test(50));
        for sequence in [3, 4, 4, 49] {
            record.add(sequence, at(f64::from(sequence) * 10.0, 5.0, 1.0), at(0.0, 0.0, 0.0));
        }
        record.note(20, at(200.0, 5.0, 1.0), at(0.0, 0.0, 0.0));
        assert_eq!(Record::from_csv(&record.to_csv()), Ok(record));
    }

    #[test]
    fn a_file_that_is_none_is_refused_with_its_line() {
        let mut record = Record::new(test(50));
        record.add(3, at(10.0, 5.0, 1.0), at(0.0, 0.0, 0.0));
        let good = record.to_csv();
        for (from, to, words) in [
            ("# number = 7", "number", "line 1: found \"number\", expected # number = VALUE"),
            ("# count = 50", "# count = 60001", "line 4: found \"60001\", expected 0 to 60000"),
            ("# rate_hz = 50", "# rate_hz = nan", "line 5: found \"nan\", expected a rate"),
            ("sequence,copies", "sequence", "line 7: found"),
            ("\n3,1,", "\n50,1,", "line 8: found \"50,1,39"),
            ("\n3,1,", "\n3,1001,", "expected 0 to 1000 copies"),
            ("\n3,1,", "\n3,1,1,", "expected 16 numbers"),
            ("\n3,1,39", "\n3,1,99", "latitude 99"),
        ] {
            assert!(good.contains(from), "{from}");
            let message = Record::from_csv(&good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(message.contains(words), "{from} -> {to}: {message}");
        }
        assert!(Record::from_csv("").unwrap_err().to_string().contains("found the end"));
    }
}
