//! docs/failures.md: every fault of the simulated world and every failure of the list has a row, and what a cell names exists.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wingbeat_bench::drills::Kind;

/// What goes wrong with swarms, by the names of the rows.
const FAILURES: [&str; 36] = [
    "companion dies",
    "whole aircraft falls",
    "motor",
    "daemon restarts",
    "guardian dead",
    "serial line, both ways",
    "serial line, to the companion",
    "serial line, to the autopilot",
    "serial line flaps",
    "autopilot restarts",
    "EKF, compass",
    "GNSS lost",
    "GNSS biased, jumping or spoofed by up to 4 m",
    "barometer drifts",
    "transmitter lost",
    "battery low or critical",
    "battery empty",
    "wind",
    "radio silent",
    "radio mute or deaf",
    "datagrams lost",
    "datagrams lost in bursts",
    "partition",
    "datagrams late or reordered",
    "datagrams doubled",
    "ground service or console lost",
    "second ground station",
    "operator's slip",
    "pilot takes over",
    "unlevel homes",
    "starved processors",
    "failsafe in the middle of a command",
    "two failures at once",
    "autopilot reports RTL and does not move",
    "STATUSTEXT cut or garbled",
    "Hold, Return and Land within a second from two consoles",
];

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
fn every_failure_and_every_fault_has_a_row() {
    let page = read("docs/failures.md");
    let (happens, holds) = (table(&page, "What happens"), table(&page, "What holds it"));
    for rows in [&happens, &holds] {
        let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, FAILURES);
    }
    let named: BTreeSet<String> = happens.iter().flat_map(|row| quoted(&row[1])).map(str::to_owned).collect();
    let faults = faults();
    assert!(faults.len() > 15, "{faults:?}");
    assert_eq!(named, faults);
    for row in &happens {
        assert!(row.len() == 5 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

/// A cell names a requirement and a drill or a test that holds it, or states why it cannot happen, or is open and listed.
#[test]
fn every_cell_names_what_holds_it() {
    let page = read("docs/failures.md");
    let protocols = ["muscop", "follow-me", "mbcap"].map(|name| read(&format!("docs/protocols/{name}.md")));
    let open: Vec<String> = table(&page, "Open").into_iter().map(|row| row[0].clone()).collect();
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    sources(&root().join("tests"), &mut code);
    let is_required = |id: &str| {
        let row = format!("| {id} |");
        page.contains(&row) || protocols.iter().any(|page| page.contains(&row))
    };
    let exists = |name: &str| {
        let function = format!("fn {name}(");
        Kind::all().any(|kind| kind.name() == name) || code.contains(&function)
    };
    let mut opened = BTreeSet::new();
    for row in table(&page, "What holds it") {
        let (failure, cells) = (&row[0], &row[1..]);
        assert_eq!(cells.len(), 5, "{failure}");
        for cell in cells {
            if cell.strip_prefix("cannot happen: ").is_some_and(|why| !why.is_empty()) {
                continue;
            }
            if cell.starts_with("open: ") {
                opened.insert(failure.clone());
                continue;
            }
            let words: Vec<&str> = cell.split(' ').collect();
            let ids: Vec<&&str> = words.iter().filter(|word| !word.starts_with('`')).collect();
            let names = quoted(cell);
            assert!(!ids.is_empty() && !names.is_empty(), "{failure}: {cell:?}");
            for id in ids {
                assert!(is_required(id), "{failure}: no requirement {id}");
            }
            for name in names {
                assert!(exists(name), "{failure}: no drill and no test {name}");
            }
        }
    }
    assert_eq!(opened.into_iter().collect::<BTreeSet<_>>(), open.into_iter().collect(), "listed as open");
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
