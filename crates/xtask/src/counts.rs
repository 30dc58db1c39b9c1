//! How many tests passed and failed, read from what the test runners print at their end.

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

/// Which runner printed the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo nextest run`: `Summary [ 0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped`.
    Nextest,
    /// `cargo test`: `test result: ok. 3 passed; 0 failed; …`, once per binary.
    CargoTest,
    /// `cargo test --doc`, which ends like `cargo test`.
    Documentation,
    /// vitest: `Tests  1 failed | 11 passed (12)`.
    Vitest,
    /// `node --test`: `# pass 3` and `# fail 0`.
    Node,
}

/// The sum of every closing line of that runner in the text; `None` if there is none.
pub(crate) fn read(runner: Runner, text: &str) -> Option<Counts> {
    let mut sum: Option<Counts> = None;
    for line in text.lines() {
        let line = without_colours(line);
        let line = line.trim();
        let (failed_words, rest): (&[&str], &str) = match runner {
            Runner::Nextest => match line.strip_prefix("Summary [").and_then(|l| l.split_once("run:")) {
                Some((_, rest)) => (&["failed", "timed out", "exec failed"], rest),
                None => continue,
            },
            Runner::CargoTest | Runner::Documentation => {
                match line.strip_prefix("test result:").and_then(|l| l.split_once(". ")) {
                    Some((_, rest)) => (&["failed"], rest),
                    None => continue,
                }
            }
            Runner::Vitest => match line.strip_prefix("Tests ") {
                Some(rest) => (&["failed"], rest),
                None => continue,
            },
            Runner::Node => {
                let line = line.trim_start_matches(['#', 'ℹ']).trim();
                let number = |word| line.strip_prefix(word).and_then(|n: &str| n.trim().parse().ok());
                let one = match (number("pass "), number("fail "), number("cancelled ")) {
                    (Some(passed), _, _) => Counts { passed, failed: 0 },
                    (_, Some(failed), _) | (_, _, Some(failed)) => Counts { passed: 0, failed },
                    _ => continue,
                };
                sum = Some(sum.unwrap_or_default().plus(one));
                continue;
            }
        };
        let mut one = Counts::default();
        for part in rest.split([',', ';', '|', '(']) {
            let Some((number, word)) = part.trim().split_once(' ') else { continue };
            let (Ok(number), word) = (number.parse::<u64>(), word.trim()) else { continue };
            if word == "passed" {
                one.passed += number;
            } else if failed_words.contains(&word) {
                one.failed += number;
            }
        }
        sum = Some(sum.unwrap_or_default().plus(one));
    }
    sum
}

/// The line without terminal escapes: `ESC [ … letter`.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
        } else if characters.next() == Some('[') {
            let _ = characters.find(char::is_ascii_alphabetic);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64) -> Option<Counts> {
        Some(Counts { passed, failed })
    }

    #[test]
    fn nextest() {
        let text = "     Summary [   0.012s] 16 tests run: 16 passed, 0 skipped\n";
        assert_eq!(read(Runner::Nextest, text), counts(16, 0));
        let text = "\u{1b}[31;1m     Summary\u{1b}[0m [   9.2s] 7/9 tests run: 3 passed (1 slow), 2 failed, 2 timed out, 1 skipped";
        assert_eq!(read(Runner::Nextest, text), counts(3, 4));
        assert_eq!(read(Runner::Nextest, "error: could not compile"), None);
    }

    #[test]
    fn cargo_test_sums_its_binaries() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(read(Runner::CargoTest, text), counts(8, 2));
    }

    #[test]
    fn vitest() {
        let text =
            " Test Files  1 failed | 3 passed (4)\n      Tests  2 failed | 41 passed | 1 skipped (44)\n";
        assert_eq!(read(Runner::Vitest, text), counts(41, 2));
        assert_eq!(
            read(Runner::Vitest, "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m12 passed\u{1b}[22m (12)"),
            counts(12, 0)
        );
    }

    #[test]
    fn node() {
        assert_eq!(
            read(Runner::Node, "# tests 4\n# pass 3\n# fail 1\n# cancelled 2\n# skipped 0\n"),
            counts(3, 3)
        );
        assert_eq!(read(Runner::Node, "ℹ pass 2\nℹ fail 0\n"), counts(2, 0));
    }
}
