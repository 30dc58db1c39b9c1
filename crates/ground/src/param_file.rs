//! Files of parameters, as ground stations write them: `NAME VALUE` or `NAME,VALUE` a line, comments after `#`.

use std::collections::BTreeMap;

/// More than any version of the flight controller has.
pub(crate) const PARAMETERS_MAX: usize = 2_048;
/// Bytes of a file.
pub(crate) const FILE_MAX: usize = 256 * 1024;
/// Problems that are listed one by one.
const PROBLEMS_MAX: usize = 20;
const NAME_MAX: usize = 16;

/// What a file holds, and one line for each of its lines that is none.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Read {
    pub(crate) values: BTreeMap<String, f32>,
    pub(crate) problems: Vec<String>,
}

/// Reads the file; `name` is for the messages.
pub(crate) fn read(name: &str, text: &str) -> Read {
    let mut read = Read::default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    if text.len() > FILE_MAX {
        let found = text.len();
        read.problems.push(format!("{name}: found {found} bytes, expected at most {FILE_MAX}"));
        return read;
    }
    let mut lines = BTreeMap::new();
    let mut more = 0;
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let problem = match parse(line) {
            Ok(None) => continue,
            Ok(Some((parameter, value))) => match lines.get(parameter) {
                Some(first) => {
                    format!("found {parameter} again, expected it once (it stands in line {first})")
                }
                None if lines.len() >= PARAMETERS_MAX => {
                    format!("found another parameter, expected at most {PARAMETERS_MAX}")
                }
                None => {
                    lines.insert(parameter, number);
                    read.values.insert(parameter.to_owned(), value);
                    continue;
                }
            },
            Err(problem) => problem,
        };
        if read.problems.len() < PROBLEMS_MAX {
            read.problems.push(format!("{name}:{number}: {problem}"));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        read.problems.push(format!("{name}: {more} more lines are no parameters"));
    }
    if read.values.is_empty() && read.problems.is_empty() {
        read.problems.push(format!("{name}: found no parameter, expected lines NAME VALUE"));
    }
    read
}

/// Writes the file, which [`read`] reads; `title` is a comment above the parameters.
pub(crate) fn write(title: &str, values: &BTreeMap<String, f32>) -> String {
    let title: String = title.chars().filter(|c| !c.is_control()).collect();
    let mut text = format!("# {title}\n");
    for (name, value) in values {
        // The shortest decimal that is this value again.
        text.push_str(&format!("{name},{value}\n"));
    }
    text
}

fn parse(line: &str) -> Result<Option<(&str, f32)>, String> {
    let content = line.split('#').next().unwrap_or_default();
    let mut words = content.split([',', ' ', '\t']).filter(|word| !word.is_empty());
    let Some(name) = words.next() else { return Ok(None) };
    let shown = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(32).collect() };
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if name.len() > NAME_MAX || !name.bytes().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        let found = shown(name);
        return Err(format!(
            "found the name {found:?}, expected 1 to {NAME_MAX} capital letters, digits and underscores"
        ));
    }
    let Some(text) = words.next() else {
        return Err(format!("found {name} without a value, expected NAME VALUE"));
    };
    if let Some(extra) = words.next() {
        let found = shown(extra);
        return Err(format!("found {found:?} after the value of {name}, expected NAME VALUE"));
    }
    // MAVProxy and ArduPilot's own files write bit masks in hexadecimal.
    let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // A parameter has single precision, which holds each mask up to 2^24 and few above it.
        Some(digits) => u32::from_str_radix(digits, 16).ok().and_then(exact),
        None => text.parse::<f32>().ok(),
    };
    match value {
        Some(value) if value.is_finite() => Ok(Some((name, value))),
        Some(_) | None => {
            let found = shown(text);
            Err(format!("found {found:?} for {name}, expected a finite number that 32 bits hold exactly"))
        }
    }
}

/// Returns a mask as the parameter that holds it, bit by bit.
fn exact(mask: u32) -> Option<f32> {
    let value = mask as f32;
    (f64::from(value) == f64::from(mask)).then_some(value)
}

/// Whether a flight controller holds what a file states: files have six decimals, or six digits.
pub(crate) fn is_same(found: f32, stated: f32) -> bool {
    let (found, stated) = (f64::from(found), f64::from(stated));
    (found - stated).abs() <= 5e-7 + 1e-6 * found.abs().min(stated.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let text = "\u{feff}# a lab's\r\nRTL_ALT 1500\nATC_RAT_RLL_P,0.135 # gain\n\n WPNAV_SPEED\t5e2\nA,-1";
        let read = read("lab.param", text);
        let values: Vec<_> = read.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected = [("A", -1.0), ("ATC_RAT_RLL_P", 0.135), ("RTL_ALT", 1_500.0), ("WPNAV_SPEED", 500.0)];
        assert_eq!((values.as_slice(), read.problems), (expected.as_slice(), vec![]));
    }

    #[test]
    fn a_mask_that_would_change_is_refused() {
        let read = |text: &str| read("lab.parm", text);
        assert_eq!(read("A 0x1000000").values["A"], 16_777_216.0);
        let changed = read("A 0x1000001");
        assert!(changed.values.is_empty() && changed.problems[0].contains("expected a finite number"));
    }

    #[test]
    fn hexadecimal_masks_are_read() {
        let read = |text: &str| read("lab.parm", text);
        assert_eq!(read("LOG_BITMASK 0x2B3FE").values["LOG_BITMASK"], 177_150.0);
        for bad in ["A 0x", "A 0xG", "A -0x10", "A 0x100000000"] {
            assert_eq!(read(bad).problems.len(), 1, "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_read_bit_for_bit() {
        let values: BTreeMap<String, f32> =
            [("A", 0.1), ("B", f32::MIN_POSITIVE), ("C", -16_777_216.0), ("D", 1e20), ("E", f32::MAX)]
                .map(|(name, value)| (name.to_owned(), value))
                .into();
        let text = write("drone\n1", &values);
        assert!(text.starts_with("# drone1\nA,0.1\n"), "{text}");
        assert_eq!(read("own.param", &text), Read { values, problems: vec![] });
    }

    #[test]
    fn each_bad_line_has_one_message_and_the_others_count() {
        let text = "rtl_alt 1\nGOOD 1\nGOOD 2\nB\nC x\nD 1 2\nE NaN\n1 1 RTL_ALT 1500 4\nF 1e99";
        let read = read("lab.param", text);
        assert_eq!(read.values.into_iter().collect::<Vec<_>>(), [("GOOD".to_owned(), 1.0)]);
        let expected = [
            "lab.param:1: found the name \"rtl_alt\", expected 1 to 16 capital letters, digits and underscores",
            "lab.param:3: found GOOD again, expected it once (it stands in line 2)",
            "lab.param:4: found B without a value, expected NAME VALUE",
            "lab.param:5: found \"x\" for C, expected a finite number that 32 bits hold exactly",
            "lab.param:6: found \"2\" after the value of D, expected NAME VALUE",
            "lab.param:7: found \"NaN\" for E, expected a finite number that 32 bits hold exactly",
            "lab.param:8: found the name \"1\", expected 1 to 16 capital letters, digits and underscores",
            "lab.param:9: found \"1e99\" for F, expected a finite number that 32 bits hold exactly",
        ];
        assert_eq!(read.problems, expected);
    }

    #[test]
    fn what_is_too_much_or_nothing_is_one_message() {
        let of = |text: &str| read("a", text).problems;
        assert_eq!(of("# nothing\n"), ["a: found no parameter, expected lines NAME VALUE"]);
        assert_eq!(of(&"x".repeat(FILE_MAX + 1)), ["a: found 262145 bytes, expected at most 262144"]);
        let bad = of(&"bad\n".repeat(100));
        assert_eq!((bad.len(), bad.last().unwrap().as_str()), (21, "a: 80 more lines are no parameters"));
    }

    #[test]
    fn six_decimals_are_the_same_value() {
        assert!(is_same(0.135, 0.135) && is_same(0.123_456_78, 0.123_457) && is_same(1e9, 1e9));
        assert!(!is_same(0.135, 0.136) && !is_same(1_500.0, 1_501.0) && !is_same(0.0, 1e-5));
    }
}
