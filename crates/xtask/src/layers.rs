//! Which crate may depend on which: the design's dependency rule, checked on what `cargo metadata` says.
//!
//! ```text
//! words     geo, wire
//! machines  protocol, autopilot            (never on each other)
//! agent     agent
//! sim       sim
//! edges     link, radio, record, api, missions
//! binaries  onboard, ground, bench, cli, xtask
//! ```
//!
//! A crate depends on lower rows only; inside the binaries' row the edges that may be are listed. Normal,
//! build and dev-dependencies obey the same rule. Everything above `edges` is pure and says so itself.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

const PREFIX: &str = "wingbeat-";

const ROWS: &[(&str, &[&str])] = &[
    ("words", &["geo", "wire"]),
    ("machines", &["protocol", "autopilot"]),
    ("agent", &["agent"]),
    ("sim", &["sim"]),
    ("edges", &["link", "radio", "record", "api", "missions"]),
    ("binaries", &["onboard", "ground", "bench", "cli", "xtask"]),
];

/// Rows up to and including this one are pure.
const LAST_PURE_ROW: usize = 3;

/// `sim` is pure but keeps the standard library: its event queue and its fleets need an allocator.
const PURE_WITH_STD: &[&str] = &["sim"];

/// The edges inside the binaries' row.
const AMONG_BINARIES: &[(&str, &[&str])] =
    &[("bench", &["onboard", "ground"]), ("cli", &["onboard", "ground", "bench"])];

/// `ground` knows an aircraft by its API and its beacons, never by its machines.
const NEVER_FOR_GROUND: &[&str] = &["protocol", "autopilot", "agent", "sim"];

/// A dependency of one of our crates on another, without the packages' common prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
    /// Empty for a normal dependency, else `dev-` or `build-`.
    kind: &'static str,
}

/// Checks the workspace; the answer is one line for people, the error lists every violation.
pub(crate) fn run(root: &Path) -> Result<String> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("reading the workspace with `cargo metadata`")?;
    let mut edges = BTreeSet::new();
    let mut problems = Vec::new();
    let packages = metadata.workspace_packages();
    for package in &packages {
        let Some(name) = package.name.strip_prefix(PREFIX) else {
            problems.push(format!("package {}: its name must begin with `{PREFIX}`", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(to) = dependency.name.strip_prefix(PREFIX) else { continue };
            let kind = match dependency.kind {
                DependencyKind::Development => "dev-",
                DependencyKind::Build => "build-",
                _ => "",
            };
            edges.insert(Edge { from: name.to_owned(), to: to.to_owned(), kind });
        }
        if row_of(name).is_none() {
            problems.push(format!("{name}: found in no row of the layers, expected one: give it its row in crates/xtask/src/layers.rs"));
        }
        let manifest = package.manifest_path.as_std_path();
        let text =
            std::fs::read_to_string(manifest).with_context(|| format!("reading {}", manifest.display()))?;
        problems.extend(manifest_problem(name, &text));
        if row_of(name).is_some_and(|row| row <= LAST_PURE_ROW) {
            let library = manifest.with_file_name("src").join("lib.rs");
            let text = std::fs::read_to_string(&library)
                .with_context(|| format!("reading {}", library.display()))?;
            problems.extend(purity_problems(name, &text));
        }
    }
    problems.extend(edges.iter().filter_map(forbidden));
    if !problems.is_empty() {
        bail!("layers: {} against the design's rules:\n  {}", problems.len(), problems.join("\n  "));
    }
    Ok(format!("layers: {} crates, {} edges between them, all downwards", packages.len(), edges.len()))
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|(_, names)| names.contains(&name))
}

/// Why the edge may not be, naming the edge and the rule.
fn forbidden(edge: &Edge) -> Option<String> {
    let Edge { from, to, kind } = edge;
    // A crate without a row is told elsewhere; its edges cannot be judged.
    let (Some(from_row), Some(to_row)) = (row_of(from), row_of(to)) else { return None };
    let (from_name, to_name) = (ROWS[from_row].0, ROWS[to_row].0);
    let told = |rule: String| Some(format!("{from} -> {to} ({kind}dependency): {rule}"));
    if from == "ground" && NEVER_FOR_GROUND.contains(&to.as_str()) {
        return told("ground knows an aircraft by its API and its beacons, never by its machines".to_owned());
    }
    if from_row == to_row && from_name == "binaries" {
        let allowed =
            AMONG_BINARIES.iter().any(|(name, to_names)| name == from && to_names.contains(&to.as_str()));
        if allowed {
            return None;
        }
        return told(
            "among the binaries only bench -> onboard, ground and cli -> onboard, ground, bench may be"
                .to_owned(),
        );
    }
    if from_row <= to_row {
        return told(format!("a crate depends on lower rows only; found {from_name} -> {to_name}"));
    }
    None
}

/// Every crate takes the workspace's lints.
fn manifest_problem(name: &str, manifest: &str) -> Option<String> {
    let mut section = "";
    for line in manifest.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        if line.starts_with('[') {
            section = line;
        }
        let compact: String = line.split_whitespace().collect();
        if (section == "[lints]" && compact == "workspace=true")
            || (section.is_empty() && compact == "lints.workspace=true")
        {
            return None;
        }
    }
    Some(format!("{name}: Cargo.toml has no `[lints] workspace = true`, expected it in every crate"))
}

/// A pure crate declares it, so that the compiler holds it.
fn purity_problems(name: &str, library: &str) -> Vec<String> {
    let has = |attribute: &str| library.lines().any(|line| line.trim() == attribute);
    let mut wanted = vec!["#![forbid(unsafe_code)]"];
    if !PURE_WITH_STD.contains(&name) {
        wanted.push("#![no_std]");
    }
    wanted
        .into_iter()
        .filter(|attribute| !has(attribute))
        .map(|attribute| format!("{name}: src/lib.rs has no line `{attribute}`, expected it in a pure crate"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(from: &str, to: &str) -> Option<String> {
        forbidden(&Edge { from: from.to_owned(), to: to.to_owned(), kind: "" })
    }

    #[test]
    fn what_the_design_draws_may_be() {
        for (from, to) in [
            ("protocol", "geo"),
            ("protocol", "wire"),
            ("autopilot", "geo"),
            ("agent", "protocol"),
            ("agent", "autopilot"),
            ("sim", "autopilot"),
            ("sim", "agent"),
            ("radio", "sim"),
            ("onboard", "api"),
            ("onboard", "agent"),
            ("ground", "api"),
            ("ground", "radio"),
            ("bench", "onboard"),
            ("bench", "ground"),
            ("cli", "bench"),
            ("cli", "missions"),
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
            ("onboard", "bench"),
            ("ground", "onboard"),
            ("bench", "cli"),
            ("xtask", "ground"),
            ("geo", "geo"),
        ] {
            let told = judge(from, to).unwrap_or_else(|| panic!("{from} -> {to} must be refused"));
            assert!(told.starts_with(&format!("{from} -> {to} (dependency): ")), "{told}");
        }
        assert!(judge("protocol", "autopilot").is_some_and(|told| told.contains("machines -> machines")));
    }

    #[test]
    fn ground_never_knows_the_machines() {
        for to in NEVER_FOR_GROUND {
            let told = judge("ground", to).unwrap_or_default();
            assert!(told.contains("by its API and its beacons"), "ground -> {to}: {told}");
        }
    }

    #[test]
    fn a_dev_dependency_obeys_and_is_called_so() {
        let edge = Edge { from: "geo".to_owned(), to: "sim".to_owned(), kind: "dev-" };
        assert!(forbidden(&edge).is_some_and(|told| told.starts_with("geo -> sim (dev-dependency)")));
    }

    #[test]
    fn lints_come_from_the_workspace() {
        assert_eq!(manifest_problem("geo", "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"), None);
        assert_eq!(manifest_problem("geo", "[lints]\nworkspace=true # why\n"), None);
        for bad in [
            "[package]\n",
            "[lints]\n# workspace = true\n",
            "[lints.rust]\nworkspace = true\n",
            "[lints]\nworkspace = false\n",
        ] {
            assert!(manifest_problem("geo", bad).is_some_and(|told| told.starts_with("geo: ")), "{bad}");
        }
    }

    #[test]
    fn purity_is_declared() {
        assert!(purity_problems("geo", "//! x\n#![no_std]\n#![forbid(unsafe_code)]\n").is_empty());
        assert!(purity_problems("sim", "#![forbid(unsafe_code)]\n").is_empty());
        assert_eq!(purity_problems("geo", "// #![no_std]\n").len(), 2);
        assert_eq!(purity_problems("agent", "#![forbid(unsafe_code)]\n").len(), 1);
    }

    #[test]
    fn this_repository_obeys() {
        let line = run(&crate::root()).expect("no violation");
        assert!(line.starts_with("layers: "), "{line}");
    }
}
