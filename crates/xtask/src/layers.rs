//! Which crate may depend on which: the design's dependency rule, checked on the output of `cargo metadata`.
//!
//! ```text
//! words     geo, wire
//! machines  protocol, autopilot, console   (never on each other)
//! agent     agent
//! sim       sim
//! edges     link, radio, record, api, missions, keys, linktest, tls, cosim, helics
//! hub       hub
//! server    server
//! binaries  onboard, ground, bench, cli, xtask
//! tests     daemon-tests, fuzz-targets
//! ```
//!
//! A crate depends on lower rows only; inside the binaries' row the permitted edges are listed. Normal,
//! build and dev-dependencies obey the same rule. Every crate up to `sim` is pure and declares it. The
//! aircraft's programs link no simulator, over any number of edges.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};
use serde::Deserialize;

const PREFIX: &str = "wingbeat-";

const ROWS: &[(&str, &[&str])] = &[
    ("words", &["geo", "wire"]),
    ("machines", &["protocol", "autopilot", "console"]),
    ("agent", &["agent"]),
    ("sim", &["sim"]),
    ("edges", &["link", "radio", "record", "api", "missions", "keys", "linktest", "tls", "cosim", "helics"]),
    ("hub", &["hub"]),
    ("server", &["server"]),
    ("binaries", &["onboard", "ground", "bench", "cli", "xtask"]),
    ("tests", &["daemon-tests", "fuzz-targets"]),
];

/// Rows up to and including this one are pure.
const LAST_PURE_ROW: usize = 3;

/// `sim` is pure but keeps the standard library: its event queue and its fleets need an allocator.
const PURE_WITH_STD: &[&str] = &["sim"];

/// In a pure crate a new state, message or reason does not compile where it is not treated.
const NO_WILDCARDS: &str = "#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]";

/// The edges inside the binaries' row.
const AMONG_BINARIES: &[(&str, &[&str])] =
    &[("bench", &["onboard", "ground"]), ("cli", &["onboard", "ground", "bench"])];

/// `ground` knows an aircraft by its API and its beacons, never by its machines.
const NEVER_FOR_GROUND: &[&str] = &["protocol", "autopilot", "agent", "sim"];

/// What the aircraft's package may not reach over any path, so that `cargo tree -p wingbeat-onboard` shows
/// none of them: an aircraft that links the simulator could fly on simulated data.
const NEVER_IN_THE_AIRCRAFT: &[&str] = &["sim", "hub", "cosim", "helics"];
const AIRCRAFT: &str = "onboard";

/// What replays flight logs.
const REPLAYS: &[&str] = &["record", "bench", "cli", "daemon-tests"];

/// Builds of their own that have some of our crates: their lock files do not follow the workspace's by themselves, and a build with
/// `--locked` refuses one that has stayed behind.
const OTHER_LOCKS: &[&str] = &["fuzz/Cargo.lock", "tests/frames/Cargo.lock"];

/// A dependency of one of our crates on another, without the packages' common prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
    /// Empty for a normal dependency, else `dev-` or `build-`.
    kind: &'static str,
}

/// Checks the workspace; the answer is one line for the terminal, the error lists every violation.
pub(crate) fn run(root: &Path) -> Result<String> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading the workspace with `cargo metadata`")?;
    let mut edges = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut problems = Vec::new();
    let packages = metadata.workspace_packages();
    for package in &packages {
        let Some(name) = package.name.strip_prefix(PREFIX) else {
            problems.push(format!("package {}: its name must begin with `{PREFIX}`", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(to) = dependency.name.strip_prefix(PREFIX) else { continue };
            if to == name {
                // Its own features, for its tests.
                continue;
            }
            let kind = match dependency.kind {
                DependencyKind::Development => "dev-",
                DependencyKind::Build => "build-",
                _ => "",
            };
            problems.extend(stand_in_problem(name, to, &dependency.features));
            problems.extend(replay_problem(name, to, &dependency.features));
            edges.insert(Edge { from: name.to_owned(), to: to.to_owned(), kind });
        }
        names.insert(name.to_owned());
        let manifest = package.manifest_path.as_std_path();
        let text =
            std::fs::read_to_string(manifest).with_context(|| format!("reading {}", manifest.display()))?;
        problems.extend(manifest_problem(name, &text));
        if row_of(name).is_some_and(|row| row <= LAST_PURE_ROW) {
            let library = manifest.with_file_name("src").join("lib.rs");
            let text = std::fs::read_to_string(&library)
                .with_context(|| format!("reading {}", library.display()))?;
            problems.extend(purity_problems(name, &text));
            for file in sources(&manifest.with_file_name("src"))? {
                let text =
                    std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
                problems.extend(tuple_wildcards(&file, &text));
            }
        }
    }
    for lock in OTHER_LOCKS {
        let path = root.join(lock);
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let locked: LockFile = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
        for package in &packages {
            let linked = package.dependencies.iter().filter(|dependency| {
                dependency.kind == DependencyKind::Normal
                    && !dependency.optional
                    && dependency.target.is_none()
            });
            let linked: Vec<&str> = linked.map(|dependency| dependency.name.as_str()).collect();
            problems.extend(lock_problem(lock, &locked, &package.name, &linked));
        }
    }
    problems.extend(row_problems(&names));
    problems.extend(edges.iter().filter_map(forbidden));
    problems.extend(NEVER_IN_THE_AIRCRAFT.iter().filter_map(|to| reached(&edges, AIRCRAFT, to)));
    if !problems.is_empty() {
        bail!("layers: {} against the design's rules:\n  {}", problems.len(), problems.join("\n  "));
    }
    Ok(format!("layers: {} crates, {} edges between them, all downwards", packages.len(), edges.len()))
}

/// What of a lock file is looked at.
#[derive(Debug, Deserialize)]
struct LockFile {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    /// Names, some with a version behind.
    #[serde(default)]
    dependencies: Vec<String>,
}

/// A crate of ours that links something which a lock file does not have with it.
fn lock_problem(lock: &str, locked: &LockFile, package: &str, linked: &[&str]) -> Option<String> {
    let found = locked.package.iter().find(|locked| locked.name == package)?;
    let names: Vec<&str> = found.dependencies.iter().filter_map(|name| name.split(' ').next()).collect();
    let missing = linked.iter().find(|name| !names.contains(*name))?;
    Some(format!(
        "{lock}: found {package} without {missing}, expected it as in its manifest: `cargo metadata` in that folder writes the file"
    ))
}

/// Datagrams that are opened without a proof belong to the ground's programs.
fn replay_problem(from: &str, to: &str, features: &[String]) -> Option<String> {
    let is_turned_on = matches!(to, "wire" | "record") && features.iter().any(|feature| feature == "replay");
    (is_turned_on && !REPLAYS.contains(&from)).then(|| {
        format!("{from} -> {to}: found the feature `replay`, expected it of {} alone: an aircraft could take a log for its radio", REPLAYS.join(", "))
    })
}

/// Signatures that prove nothing outside one process belong to the simulator, which no aircraft links.
fn stand_in_problem(from: &str, to: &str, features: &[String]) -> Option<String> {
    let is_turned_on = to == "wire" && features.iter().any(|feature| feature == "stand-in");
    (is_turned_on && from != "sim").then(|| {
        format!("{from} -> {to}: found the feature `stand-in`, expected it of sim alone: an aircraft could load it")
    })
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|(_, names)| names.contains(&name))
}

/// Crates without a row, and rows that list a crate that the workspace does not have.
fn row_problems(names: &BTreeSet<String>) -> Vec<String> {
    let without = names.iter().filter(|name| row_of(name).is_none()).map(|name| {
        format!("{name}: found in no row of the layers, expected one: add it in crates/xtask/src/layers.rs")
    });
    let listed = ROWS.iter().flat_map(|(_, listed)| *listed);
    let absent = listed.filter(|name| !names.contains(**name)).map(|name| {
        format!(
            "{name}: found in a row of crates/xtask/src/layers.rs and not in the workspace, expected both"
        )
    });
    without.chain(absent).collect()
}

/// The shortest path from a crate to another, if there is one: the first edge of any kind, then what is
/// linked. The dev-dependencies of a dependency are not built.
fn reached(edges: &BTreeSet<Edge>, from: &str, to: &str) -> Option<String> {
    let mut before: BTreeMap<&str, &Edge> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for edge in edges.iter().filter(|edge| edge.from == at && (at == from || edge.kind != "dev-")) {
            if edge.to != from && !before.contains_key(edge.to.as_str()) {
                before.insert(&edge.to, edge);
                queue.push_back(&edge.to);
            }
        }
    }
    let mut path = vec![to];
    while let Some(edge) = before.get(path.last().copied()?) {
        path.push(&edge.from);
    }
    path.reverse();
    (path.len() > 1).then(|| format!("{}: {from} may not reach {to}, directly or not", path.join(" -> ")))
}

/// Why the edge is forbidden, naming the edge and the rule.
fn forbidden(edge: &Edge) -> Option<String> {
    let Edge { from, to, kind } = edge;
    // A crate without a row is reported elsewhere; its edges cannot be judged.
    let (Some(from_row), Some(to_row)) = (row_of(from), row_of(to)) else { return None };
    let (from_name, to_name) = (ROWS[from_row].0, ROWS[to_row].0);
    let problem = |rule: String| Some(format!("{from} -> {to} ({kind}dependency): {rule}"));
    if from == "ground" && NEVER_FOR_GROUND.contains(&to.as_str()) {
        return problem(
            "ground knows an aircraft by its API and its beacons, never by its machines".to_owned(),
        );
    }
    if from_row == to_row && from_name == "binaries" {
        let allowed =
            AMONG_BINARIES.iter().any(|(name, to_names)| name == from && to_names.contains(&to.as_str()));
        if allowed {
            return None;
        }
        return problem(
            "among the binaries only bench -> onboard, ground and cli -> onboard, ground, bench are allowed"
                .to_owned(),
        );
    }
    if from_row <= to_row {
        return problem(format!("a crate depends on lower rows only; found {from_name} -> {to_name}"));
    }
    None
}

/// Every crate inherits the workspace's lints.
fn manifest_problem(name: &str, manifest: &str) -> Option<String> {
    let inherits = toml::from_str::<toml::Table>(manifest)
        .ok()
        .and_then(|table| table.get("lints")?.get("workspace")?.as_bool())
        .unwrap_or(false);
    (!inherits)
        .then(|| format!("{name}: Cargo.toml has no `[lints] workspace = true`, expected it in every crate"))
}

/// A pure crate declares it, so that the compiler holds it.
fn purity_problems(name: &str, library: &str) -> Vec<String> {
    let has = |attribute: &str| library.lines().any(|line| line.trim() == attribute);
    let mut wanted = vec!["#![forbid(unsafe_code)]", NO_WILDCARDS];
    if !PURE_WITH_STD.contains(&name) {
        wanted.push("#![no_std]");
    }
    wanted
        .into_iter()
        .filter(|attribute| !has(attribute))
        .map(|attribute| format!("{name}: src/lib.rs has no line `{attribute}`, expected it in a pure crate"))
        .collect()
}

/// The Rust files below a folder, without those of tests.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Arms that match any tuple: clippy does not see that they stand for enumerations.
fn tuple_wildcards(file: &Path, text: &str) -> Vec<String> {
    let is_wildcard = |line: &str| {
        let pattern = line.trim_start().split("=>").next().filter(|pattern| *pattern != line.trim_start());
        pattern
            .and_then(|pattern| pattern.trim_end().strip_prefix('(')?.strip_suffix(')'))
            .is_some_and(|inside| inside.split(',').all(|part| part.trim() == "_"))
    };
    let problem = |(at, _): (usize, &str)| {
        let place = format!("{}:{}", file.display(), at + 1);
        format!("{place}: found an arm for any tuple, expected nested matches that name what is left")
    };
    text.lines().enumerate().filter(|(_, line)| is_wildcard(line)).map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_has_stayed_behind_is_found() {
        let text = "version = 4\n[[package]]\nname = \"wingbeat-geo\"\nversion = \"0.1.0\"\n\
            dependencies = [\n \"glam\",\n \"syn 2.0.1\",\n]\n[[package]]\nname = \"glam\"\nversion = \"0.34.2\"\n";
        let locked: LockFile = toml::from_str(text).unwrap();
        let found =
            |package: &str, linked: &[&str]| lock_problem("fuzz/Cargo.lock", &locked, package, linked);
        assert_eq!(found("wingbeat-geo", &["glam", "syn"]), None);
        assert_eq!(found("wingbeat-wire", &["serde"]), None, "not of that build");
        let problem = found("wingbeat-geo", &["glam", "serde"]).unwrap();
        assert!(problem.starts_with("fuzz/Cargo.lock: found wingbeat-geo without serde, "), "{problem}");
    }

    #[test]
    fn an_arm_for_any_tuple_is_found_where_it_stands() {
        let file = Path::new("src/x.rs");
        for arm in ["(_, _) => {}", "    (_, _) => None,", "(_, _, _) => 1,", "(_) => 1,"] {
            let found = tuple_wildcards(file, &format!("match (a, b) {{\n{arm}\n}}"));
            assert!(found.len() == 1 && found[0].starts_with("src/x.rs:2: "), "{arm}: {found:?}");
        }
        for line in
            ["(_, None) => {}", "let (_, _) = x;", "|(_, _)| 1", "(a, _) => 1", "_ => 1", "x(_, _) => 1"]
        {
            assert_eq!(tuple_wildcards(file, line), Vec::<String>::new(), "{line}");
        }
    }

    fn judge(from: &str, to: &str) -> Option<String> {
        forbidden(&Edge { from: from.to_owned(), to: to.to_owned(), kind: "" })
    }

    #[test]
    fn only_the_simulator_turns_the_stand_in_of_signatures_on() {
        let features = ["schema", "stand-in"].map(str::to_owned);
        assert!(stand_in_problem("onboard", "wire", &features).is_some_and(|p| p.contains("sim alone")));
        assert_eq!(stand_in_problem("sim", "wire", &features), None);
        assert_eq!(stand_in_problem("onboard", "wire", &features[..1]), None);
    }

    #[test]
    fn edges_of_the_design_are_allowed() {
        for (from, to) in [
            ("protocol", "geo"),
            ("protocol", "wire"),
            ("autopilot", "geo"),
            ("agent", "protocol"),
            ("agent", "autopilot"),
            ("sim", "autopilot"),
            ("sim", "agent"),
            ("hub", "radio"),
            ("hub", "sim"),
            ("onboard", "api"),
            ("onboard", "agent"),
            ("ground", "api"),
            ("ground", "radio"),
            ("bench", "onboard"),
            ("bench", "ground"),
            ("cli", "bench"),
            ("cli", "missions"),
            ("daemon-tests", "onboard"),
            ("daemon-tests", "hub"),
        ] {
            assert_eq!(judge(from, to), None, "{from} -> {to}");
        }
    }

    #[test]
    fn upward_and_sideways_edges_are_refused_by_name() {
        for (from, to) in [
            ("geo", "wire"),
            ("wire", "agent"),
            ("protocol", "autopilot"),
            ("autopilot", "protocol"),
            ("autopilot", "sim"),
            ("agent", "sim"),
            ("sim", "link"),
            ("api", "missions"),
            ("link", "onboard"),
            ("radio", "hub"),
            ("onboard", "daemon-tests"),
            ("onboard", "bench"),
            ("ground", "onboard"),
            ("bench", "cli"),
            ("xtask", "ground"),
            ("geo", "geo"),
        ] {
            let problem = judge(from, to).unwrap_or_else(|| panic!("{from} -> {to} must be refused"));
            assert!(problem.starts_with(&format!("{from} -> {to} (dependency): ")), "{problem}");
        }
        assert!(
            judge("protocol", "autopilot").is_some_and(|problem| problem.contains("machines -> machines"))
        );
    }

    #[test]
    fn ground_never_depends_on_the_machines() {
        for to in NEVER_FOR_GROUND {
            let problem = judge("ground", to).unwrap_or_default();
            assert!(problem.contains("by its API and its beacons"), "ground -> {to}: {problem}");
        }
    }

    #[test]
    fn a_dev_dependency_obeys_and_is_named_as_one() {
        let edge = Edge { from: "geo".to_owned(), to: "sim".to_owned(), kind: "dev-" };
        assert!(forbidden(&edge).is_some_and(|problem| problem.starts_with("geo -> sim (dev-dependency)")));
    }

    #[test]
    fn the_aircraft_reaches_no_simulator_over_any_path() {
        let edge = |(from, to, kind): (&str, &str, &'static str)| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            kind,
        };
        let edges = |list: &[(&str, &str, &'static str)]| list.iter().copied().map(edge).collect();
        let clean: BTreeSet<_> = edges(&[
            ("onboard", "radio", ""),
            ("hub", "radio", ""),
            ("hub", "sim", ""),
            // Not built for the aircraft: the dev-dependency of a dependency.
            ("radio", "hub", "dev-"),
            ("radio", "onboard", "dev-"),
        ]);
        assert_eq!(reached(&clean, "onboard", "sim"), None);
        for (more, path) in [
            (&[("onboard", "sim", "dev-")][..], "onboard -> sim: "),
            (&[("radio", "sim", "")], "onboard -> radio -> sim: "),
            (&[("radio", "wire", ""), ("wire", "sim", "build-")], "onboard -> radio -> wire -> sim: "),
            (&[("onboard", "hub", "dev-")], "onboard -> hub -> sim: "),
        ] {
            let all = clean.union(&edges(more)).cloned().collect();
            let problem = reached(&all, "onboard", "sim").unwrap_or_default();
            assert!(problem.starts_with(path), "found {problem:?}, expected {path}");
        }
    }

    #[test]
    fn rows_and_workspace_list_the_same_crates() {
        let listed = ROWS.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
        let mut names: BTreeSet<_> = listed.collect();
        assert_eq!(row_problems(&names), Vec::<String>::new());
        names.remove("hub");
        names.insert("missing".to_owned());
        let problems = row_problems(&names);
        assert!(problems.len() == 2 && problems[0].starts_with("missing: found in no row"), "{problems:?}");
        assert!(problems[1].starts_with("hub: found in a row"), "{problems:?}");
    }

    #[test]
    fn lints_come_from_the_workspace() {
        assert_eq!(manifest_problem("geo", "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"), None);
        assert_eq!(manifest_problem("geo", "[lints]\nworkspace=true # why\n"), None);
        assert_eq!(manifest_problem("geo", "lints = { workspace = true }\n"), None);
        for bad in [
            "[package]\n",
            "[lints]\n# workspace = true\n",
            "[lints.rust]\nworkspace = true\n",
            "[lints]\nworkspace = false\n",
            "[lints]\nworkspace = \"true\"\n",
            "[lints\nworkspace = true\n",
        ] {
            assert!(
                manifest_problem("geo", bad).is_some_and(|problem| problem.starts_with("geo: ")),
                "{bad}"
            );
        }
    }

    #[test]
    fn purity_is_declared() {
        let all = format!("//! x\n#![no_std]\n#![forbid(unsafe_code)]\n{NO_WILDCARDS}\n");
        assert_eq!(purity_problems("geo", &all), Vec::<String>::new());
        assert_eq!(purity_problems("sim", &all.replace("#![no_std]\n", "")), Vec::<String>::new());
        assert_eq!(purity_problems("agent", &all.replace("#![no_std]\n", "")).len(), 1);
        assert_eq!(purity_problems("geo", &all.replace("#!", "// #!")).len(), 3);
    }

    #[test]
    fn this_repository_obeys() {
        let line = run(&crate::root()).expect("no violation");
        assert!(line.starts_with("layers: "), "{line}");
    }
}
