//! docs/failures.md: every fault of the simulated world and every failure of the catalogue has a row, and the hazard tables are
//! those of drills that were flown (`docs/hazards.json`). The name of a test or a drill proves nothing here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use strum::VariantArray as _;
use wingbeat_bench::drills::hazards::{self, Results};
use wingbeat_bench::drills::{self, Began, Conditions, Failure, Kind};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the table below a heading: their cells, without the two lines of its head.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = page.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = below.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells =
        |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    rows.map(cells).collect()
}

/// What a cell has between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Every Rust source below a folder, as one text.
fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The names of the variants of `Fault`.
fn faults() -> BTreeSet<String> {
    let source = read("crates/sim/src/faults.rs");
    let (_, body) = source.split_once("pub enum Fault {").unwrap();
    let body = body.split("\n}").next().unwrap_or_default();
    let variant = |line: &str| {
        let name = line.strip_prefix("    ")?.strip_suffix(" {")?;
        name.chars().all(char::is_alphanumeric).then(|| name.to_owned())
    };
    body.lines().filter_map(variant).collect()
}

#[test]
fn every_failure_of_the_catalogue_and_every_fault_has_a_row() {
    let happens = table(&read("docs/failures.md"), "What happens");
    for failure in Failure::VARIANTS {
        let rows = happens.iter().filter(|row| row[0] == failure.name()).count();
        assert_eq!(rows, 1, "{}: rows of *What happens*", failure.name());
    }
    let named: BTreeSet<String> = happens.iter().flat_map(|row| quoted(&row[1])).map(str::to_owned).collect();
    let faults = faults();
    assert!(faults.len() > 15, "{faults:?}");
    assert_eq!(named, faults);
    for row in &happens {
        assert!(row.len() == 5 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

fn results() -> Results {
    serde_json::from_str(&read("docs/hazards.json")).expect("docs/hazards.json: results of drills")
}

/// The generated sections are those of the results, to the byte: no cell can be written by hand.
#[test]
fn the_hazard_tables_are_those_of_the_results() {
    let results = results();
    let cure = "write them with `wingbeat bench hazards --from-file --write`";
    for (page, expected) in [("docs/failures.md", results.table()), ("docs/testing.md", results.measured())] {
        let text = read(page);
        let found = hazards::section(&text).unwrap_or_else(|| panic!("{page}: no generated section"));
        assert_eq!(found.trim(), expected.trim(), "{page}: {cure}");
    }
}

/// Drills of the file, spread over it, flown again: the failure begins in the phase that the file states.
#[test]
fn a_cell_is_flown_by_the_drill_that_it_names() {
    const SAMPLE: usize = 12;
    let results = results();
    assert!(results.flown.len() > 10 * SAMPLE, "{} entries", results.flown.len());
    for flown in results.flown.iter().step_by(results.flown.len() / SAMPLE) {
        let kind: Kind = flown.kind.parse().unwrap();
        let outcome = drills::drill(kind, flown.seed, Conditions::of_hazards(flown.seed)).unwrap();
        let began = Began { failure: flown.failure, phase: flown.phase };
        assert!(
            outcome.protocol == flown.protocol && outcome.began.contains(&began),
            "{}: found {:?}, expected {began:?}: fly the results again with `wingbeat bench hazards --write`",
            outcome.command(),
            outcome.began
        );
    }
}

/// Counts are whole: no kind of drill has more unsafe or crashed drills than drills, and every kind of the catalogue was flown.
#[test]
fn the_results_are_those_of_every_kind() {
    let results = results();
    let flown: BTreeSet<&str> = results.kinds.iter().map(|of| of.kind.as_str()).collect();
    assert_eq!(flown, Kind::all().map(Kind::name).collect());
    let tallies = results.kinds.iter().map(|of| of.tally).chain(results.flown.iter().map(|f| f.tally));
    for tally in tallies {
        assert!(tally.crashed <= tally.r#unsafe && tally.r#unsafe + tally.stuck <= tally.drills, "{tally:?}");
    }
}

/// The last cell of a row names tests and commands that there are.
#[test]
fn every_start_names_what_holds_it() {
    const COMMANDS: [&str; 3] = ["image", "network", "pi"];
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    sources(&root().join("tests"), &mut code);
    let rows = table(&read("docs/failures.md"), "Starts and bad input");
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        let names = quoted(&row[2]);
        assert!(row.len() == 3 && !names.is_empty(), "{row:?}");
        for name in names {
            let exists = COMMANDS.contains(&name) || code.contains(&format!("fn {name}("));
            assert!(exists, "{}: found `{name}`, expected a test or a command", row[0]);
        }
    }
}
