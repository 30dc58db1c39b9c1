//! How many tests passed and failed, read from the reports of the test runners.
//!
//! nextest, vitest and node write a JUnit file. `cargo test` has no report on stable Rust: of it the closing
//! lines are read.

use anyhow::{Context as _, Result, bail};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Tests that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds two counts.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// The verdict on one `<testcase>`.
#[derive(Clone, Copy)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Verdict {
    fn counts(self) -> Counts {
        match self {
            Self::Passed => Counts { passed: 1, failed: 0 },
            Self::Failed => Counts { passed: 0, failed: 1 },
            Self::Skipped => Counts::default(),
        }
    }

    /// The verdict once this element was found inside of the test case.
    fn with(self, element: &BytesStart<'_>) -> Self {
        match element.name().as_ref() {
            b"failure" | b"error" => Self::Failed,
            b"skipped" if !matches!(self, Self::Failed) => Self::Skipped,
            _ => self,
        }
    }
}

/// The test cases of a JUnit report. Totals in its attributes are not read: node writes none.
pub(crate) fn junit(report: &str) -> Result<Counts> {
    let mut reader = Reader::from_str(report);
    let (mut counts, mut case, mut depth, mut has_root) = (Counts::default(), None::<Verdict>, 0_u32, false);
    loop {
        match reader.read_event().context("the JUnit report is no XML")? {
            Event::Start(element) => {
                depth += 1;
                match element.name().as_ref() {
                    b"testcase" => case = Some(Verdict::Passed),
                    b"testsuites" => has_root = true,
                    _ => case = case.map(|verdict| verdict.with(&element)),
                }
            }
            Event::Empty(element) => match element.name().as_ref() {
                b"testcase" => counts = counts.plus(Verdict::Passed.counts()),
                b"testsuites" => has_root = true,
                _ => case = case.map(|verdict| verdict.with(&element)),
            },
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                if element.name().as_ref() == b"testcase" {
                    counts = counts.plus(case.take().map(Verdict::counts).unwrap_or_default());
                }
            }
            Event::Eof if has_root && depth == 0 => return Ok(counts),
            Event::Eof => bail!("the JUnit report: found it cut off, expected a closed <testsuites>"),
            // Text, comments, declarations.
            _ => {}
        }
    }
}

/// The sum of the closing lines of `cargo test` (`test result: ok. 3 passed; 0 failed; …`, one per program);
/// `None` without any.
pub(crate) fn closing_lines(text: &str) -> Option<Counts> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("test result:"));
    let counts = lines.filter_map(|line| line.split_once(". ")).map(|(_, rest)| {
        let number = |word| {
            let mut parts = rest.split(';').filter_map(|part| part.trim().split_once(' '));
            parts.find(|(_, name)| *name == word).and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
        };
        Counts { passed: number("passed"), failed: number("failed") }
    });
    counts.reduce(Counts::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    #[test]
    fn nextest() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4" failures="2" errors="1" uuid="6f" time="0.1">
    <testsuite name="wingbeat-geo" tests="4" disabled="0" errors="1" failures="1">
        <testcase name="a" classname="wingbeat-geo" time="0.005"></testcase>
        <testcase name="b" classname="wingbeat-geo"><flakyFailure type="test failure"/></testcase>
        <testcase name="c" classname="wingbeat-geo"><failure type="test failure">1 &lt; 2</failure>
            <system-out>test result: ok. 9 passed; 0 failed</system-out></testcase>
        <testcase name="d" classname="wingbeat-geo"><error type="execution failure"/></testcase>
    </testsuite>
</testsuites>"#;
        assert_eq!(junit(report).unwrap(), counts(2, 2));
    }

    #[test]
    fn vitest_and_node() {
        let vitest = r#"<testsuites name="vitest tests" tests="3" failures="1" errors="0" time="0.2">
            <testsuite name="src/a.test.ts" tests="3" failures="1" skipped="1">
            <testcase classname="src/a.test.ts" name="one" time="0.01"/>
            <testcase classname="src/a.test.ts" name="two"><failure message="x" type="E">at</failure></testcase>
            <testcase classname="src/a.test.ts" name="three"><skipped/></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(junit(vitest).unwrap(), counts(1, 1));
        // node: test cases of no suite, nested suites, no totals.
        let node = r#"<testsuites><testcase name="a" time="1" classname="test"/>
            <testsuite name="outer"><testsuite name="inner"><testcase name="b" failure="no">
            <failure type="cancelledByParent" message="no">[Error: no]</failure></testcase></testsuite>
            </testsuite><!-- tests 2 --></testsuites>"#;
        assert_eq!(junit(node).unwrap(), counts(1, 1));
        assert_eq!(junit("<testsuites/>").unwrap(), counts(0, 0));
    }

    #[test]
    fn a_report_that_is_cut_off_or_no_report_is_refused() {
        for report in [
            "",
            "no report",
            "<testsuites><testsuite><testcase name=\"a\"/>",
            "<testsuites><testcase></testsuites>",
            "<html></html>",
        ] {
            assert!(junit(report).is_err(), "{report}");
        }
    }

    #[test]
    fn cargo_test_is_the_sum_of_its_programs() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(closing_lines(text), Some(counts(8, 2)));
        assert_eq!(closing_lines("error: could not compile"), None);
    }
}
