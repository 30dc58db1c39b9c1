//! `cargo xtask golden`: flies what is reproducible and compares the traces, hashes over every byte that crossed a
//! border and its time, with `tests/golden/traces.toml`. Each row is named by the `wingbeat` command that flies it. Of
//! the plans that are flown every time, the hash of what they print is compared too: what is observed of a flight can
//! change while its bytes do not.
//!
//! A change of behaviour is a change of that file, so it is seen in the diff of its commit.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

const FILE: &str = "tests/golden/traces.toml";

const HEADER: &str = "\
# Hashes over every byte that crossed a border, and its time, by the `wingbeat` command that flies them;
# under [tables] over what the command prints.
# Compared by `cargo xtask golden` (quick, part of `cargo xtask test`) and `cargo xtask golden --full`.
# Written by `cargo xtask golden --write` (with --full all): a change of behaviour is a change of this file.

";

/// Less than a minute in all on two cores; compared in `cargo xtask test`.
const QUICK: [&str; 40] = [
    DRILLS,
    // Seeds that the documents quote.
    "bench drill --kind combined --seed 141 --calm",
    "bench drill --kind combined --seed 239 --calm",
    "bench drill --kind combined --seed 312 --calm",
    "bench drill --kind combined --seed 87 --calm",
    "bench drill --kind follow-abort-one --seed 149 --calm",
    "bench drill --kind follow-stranger --seed 481 --calm",
    "bench drill --kind master-killed --seed 391 --calm",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 2",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 3",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 4",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 5",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 6",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 7",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 8",
    // Every plan.
    "bench run crates/bench/plans/channel-saturation.toml --seed 1 --repeat 1",
    "bench run crates/bench/plans/csma-swarm.toml --seed 1",
    "bench run crates/bench/plans/followme-channel.toml --seed 1 --repeat 1",
    "bench run crates/bench/plans/followme-least.toml --seed 1 --repeat 1",
    "bench run crates/bench/plans/followme-nine.toml --seed 1",
    "bench run crates/bench/plans/followme-refresh.toml --seed 1 --repeat 1",
    "bench run crates/bench/plans/followme-sitl.toml --seed 1",
    "bench run crates/bench/plans/mbcap-beacon.toml --seed 1 --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 25 --variant mbcap-e --repeat 1",
    "bench run crates/bench/plans/mbcap-four.toml --seed 1 --variant mbcap-e",
    "bench run crates/bench/plans/mbcap-pairs.toml --seed 1",
    "bench run crates/bench/plans/mbcap-sitl.toml --seed 1",
    "bench run crates/bench/plans/media.toml --seed 1",
    "bench run crates/bench/plans/muscop-faults.toml --seed 1",
    "bench run crates/bench/plans/muscop-overhead-sitl.toml --seed 1",
    "bench run crates/bench/plans/muscop-overhead.toml --seed 1",
    // The same with the other kind of signature.
    "bench run crates/bench/plans/muscop-overhead.toml --seed 1 --signatures stand-in",
    "bench run crates/bench/plans/muscop-sitl.toml --seed 1",
    "bench run crates/bench/plans/nine-fourteen.toml --seed 1",
    "bench run crates/bench/plans/survey.toml --seed 1",
    "bench run crates/bench/plans/sweep.toml --seed 1",
    // The other autopilot.
    "bench run crates/bench/plans/followme-sitl.toml --seed 1 --profile 4.6.2",
    "bench run crates/bench/plans/mbcap-pairs.toml --seed 1 --profile 4.6.2",
    "bench run crates/bench/plans/muscop-sitl.toml --seed 1 --profile 4.6.2",
    "bench sky --aircraft 20 --minutes 4 --seed 1",
];

/// One row for each kind and seed.
const DRILLS: &str = "bench drills --seeds 4 --traces";

/// The further seeds of each kind, with the flights that take minutes.
const MORE_DRILLS: &str = "bench drills --seeds 8 --first 5 --traces";

/// Compared by `cargo xtask golden --full` and `cargo xtask test --full`.
const FULL: [&str; 21] = [
    MORE_DRILLS,
    "bench run crates/bench/plans/followme-formations.toml --seed 1",
    "bench run crates/bench/plans/followme-refresh.toml --seed 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 25 --variant off --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 25 --variant mbcap --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 50 --variant off --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 50 --variant mbcap --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 50 --variant mbcap-e --repeat 1",
    // The last is flight seed 1011.
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 50 --variant mbcap --repeat 12",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 75 --variant off --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 75 --variant mbcap --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 75 --variant mbcap-e --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 100 --variant off --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 100 --variant mbcap --repeat 1",
    "bench run crates/bench/plans/mbcap-crowd.toml --seed 1 --uavs 100 --variant mbcap-e --repeat 1",
    "bench run crates/bench/plans/muscop-81.toml --seed 1",
    "bench run crates/bench/plans/muscop-distance.toml --seed 1",
    "bench run crates/bench/plans/muscop-loss.toml --seed 1",
    "bench run crates/bench/plans/muscop-offsets.toml --seed 1",
    "bench run crates/bench/plans/muscop-scale.toml --seed 1",
    "bench sky --aircraft 100 --minutes 64 --seed 1",
];

/// Traces by command.
type Traces = BTreeMap<String, String>;

/// What commands came to.
#[derive(Debug, Default)]
struct Flown {
    traces: Traces,
    /// Hashes of what plans print.
    tables: Traces,
}

/// The file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    quick: Traces,
    full: Traces,
    /// Of the quick rows that fly a plan.
    tables: Traces,
}

/// Flies with this `wingbeat`, and compares or writes. Says how many rows there were.
pub(crate) fn run(root: &Path, program: &Path, full: bool, write: bool) -> Result<String> {
    let path = root.join(FILE);
    let mut golden = match std::fs::read_to_string(&path) {
        Ok(text) => toml::from_str(&text).with_context(|| FILE.to_owned())?,
        Err(_) if write => Golden::default(),
        Err(error) => bail!("{FILE}: {error}; expected the traces (`cargo xtask golden --write --full`)"),
    };
    let quick = fly(root, program, &QUICK)?;
    let full = if full { Some(fly(root, program, &FULL)?) } else { None };
    if write {
        (golden.quick, golden.tables) = (quick.traces, quick.tables);
        golden.full = full.map_or(golden.full, |full| full.traces);
        let text = toml::to_string(&golden).context("the traces as TOML")?;
        std::fs::create_dir_all(path.parent().unwrap_or(root)).with_context(|| FILE.to_owned())?;
        std::fs::write(&path, format!("{HEADER}{text}")).with_context(|| FILE.to_owned())?;
        return Ok(format!(
            "golden: {} quick and {} full traces written",
            golden.quick.len(),
            golden.full.len()
        ));
    }
    let mut differences = compare("trace", &golden.quick, &quick.traces);
    differences.extend(compare("table", &golden.tables, &quick.tables));
    differences.extend(full.iter().flat_map(|full| compare("trace", &golden.full, &full.traces)));
    let rows = quick.traces.len() + full.map_or(0, |full| full.traces.len());
    let tables = quick.tables.len();
    ensure!(
        differences.is_empty(),
        "golden: of {rows} traces and {tables} tables {} differ:\n{}\nif that is on purpose: `cargo xtask golden \
         --write`, in a commit that says which rows change and why",
        differences.len(),
        differences.join("\n")
    );
    Ok(format!("golden: {rows} traces and {tables} tables as committed"))
}

/// One line for each row that is not as committed.
fn compare(what: &str, expected: &Traces, found: &Traces) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let shown = |trace: Option<&String>| trace.map_or("none", String::as_str).to_owned();
    keys.into_iter()
        .filter(|key| expected.get(*key) != found.get(*key))
        .map(|key| {
            let (found, expected) = (shown(found.get(key)), shown(expected.get(key)));
            format!("wingbeat {key}: found {what} {found}, expected {expected}")
        })
        .collect()
}

/// Runs the commands, as many in parallel as there are cores.
fn fly(root: &Path, program: &Path, commands: &[&str]) -> Result<Flown> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, flown) = (AtomicUsize::new(0), Mutex::new(Ok(Flown::default())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = fly_one(root, program, command);
                    let mut flown = flown.lock().expect("no flight panics while it holds the traces");
                    match (&mut *flown, one) {
                        (Ok(all), Ok(one)) => {
                            all.traces.extend(one.traces);
                            all.tables.extend(one.tables);
                        }
                        (Ok(_), Err(error)) => *flown = Err(error),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    flown.into_inner().expect("all threads are done")
}

/// What one command prints. Its exit code reports whether its flights succeeded, which is not the question here:
/// flights that fail are reproducible too.
fn fly_one(root: &Path, program: &Path, command: &str) -> Result<Flown> {
    let mut child = Command::new(program);
    child.current_dir(root).args(command.split(' ')).stdin(Stdio::null()).stderr(Stdio::piped());
    let finished = child.output().with_context(|| format!("wingbeat {command}"))?;
    let text = String::from_utf8_lossy(&finished.stdout);
    let traces: Traces = text.lines().filter_map(|line| row(command, line)).collect();
    ensure!(
        !traces.is_empty(),
        "wingbeat {command}: found {} and no trace, expected one: {}",
        finished.status,
        String::from_utf8_lossy(&finished.stderr)
    );
    let tables = command.starts_with("bench run ").then(|| (command.to_owned(), table(&text)));
    Ok(Flown { traces, tables: tables.into_iter().collect() })
}

/// Hash over what a plan prints beside its trace: FNV-1a, 64 bits.
fn table(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("trace ")).flat_map(|line| [line, "\n"]);
    let hash = lines.flat_map(str::bytes).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// `trace HASH` is the command's own; `trace KIND SEED HASH` is that of one drill.
fn row(command: &str, line: &str) -> Option<(String, String)> {
    match line.strip_prefix("trace ")?.split(' ').collect::<Vec<_>>()[..] {
        [hash] => Some((command.to_owned(), hash.to_owned())),
        [kind, seed, hash] => Some((format!("bench drill --kind {kind} --seed {seed}"), hash.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ns-3 is not on every machine, and its version decides the trace. `crates/bench/src/run.rs` flies it twice.
    const NEEDS_NS3: [&str; 5] = [
        "dusc-guidance.toml",
        "dusc-methods.toml",
        "dusc-routing.toml",
        "gzuav-speed.toml",
        "muscop-routes.toml",
    ];

    /// Nor are Python and pymavlink. `crates/cli/tests/scripts.rs` flies them.
    const NEEDS_PYTHON: [&str; 3] = ["gzuav-coverage.toml", "gzuav-flocking.toml", "script.toml"];

    #[test]
    fn every_plan_has_a_trace() {
        let plans = crate::root().join("crates/bench/plans");
        let mut found = 0;
        for plan in std::fs::read_dir(plans).unwrap() {
            let name = plan.unwrap().file_name().into_string().unwrap();
            let flown = |command: &&str| command.contains(&format!("/{name} "));
            assert!(
                NEEDS_PYTHON.iter().chain(&NEEDS_NS3).any(|other| *other == name)
                    || QUICK.iter().chain(&FULL).any(flown),
                "{name}: expected a row in golden.rs"
            );
            found += 1;
        }
        assert!(found > 10, "{found}");
    }

    #[test]
    fn every_row_of_the_file_is_flown_and_every_flight_is_in_the_file() {
        let text = std::fs::read_to_string(crate::root().join(FILE)).unwrap();
        let golden: Golden = toml::from_str(&text).unwrap();
        for (found, commands, drills, seeds) in
            [(&golden.quick, &QUICK[..], DRILLS, 4), (&golden.full, &FULL[..], MORE_DRILLS, 8)]
        {
            let own = |key: &&String| commands.contains(&key.as_str());
            assert_eq!(found.keys().filter(own).count(), commands.len() - 1, "all but {drills}");
            let drilled = found.keys().filter(|key| !own(key)).collect::<Vec<_>>();
            assert!(drilled.iter().all(|key| key.starts_with("bench drill ")), "{drilled:?}");
            assert_eq!(drilled.len() % seeds, 0, "{drills}");
        }
        let tables: Vec<&str> = golden.tables.keys().map(String::as_str).collect();
        let mut plans: Vec<&str> =
            QUICK.into_iter().filter(|command| command.starts_with("bench run ")).collect();
        plans.sort_unstable();
        assert_eq!(tables, plans);
    }

    /// The trace is no part of the table: it has a row of its own.
    #[test]
    fn a_table_that_differs_in_one_figure_has_another_hash() {
        assert_eq!(table(""), "cbf29ce484222325");
        let flown = "completed 9\ntrace 00ff\n";
        assert_eq!(table(flown), table("completed 9\ntrace 00fe\n"));
        assert_ne!(table(flown), table("completed 8\ntrace 00ff\n"));
        assert_ne!(table("a\nb\n"), table("ab\n"));
    }

    #[test]
    fn a_trace_that_differs_is_named_with_both() {
        let traces = |rows: &[(&str, &str)]| -> Traces {
            rows.iter().map(|(key, trace)| ((*key).into(), (*trace).into())).collect()
        };
        let expected = traces(&[("bench run a", "1"), ("bench run b", "2")]);
        assert!(compare("trace", &expected, &expected).is_empty());
        let found = traces(&[("bench run a", "1"), ("bench run b", "3"), ("bench run c", "4")]);
        assert_eq!(
            compare("trace", &expected, &found),
            [
                "wingbeat bench run b: found trace 3, expected 2",
                "wingbeat bench run c: found trace 4, expected none"
            ]
        );
    }

    #[test]
    fn rows_of_drills_name_the_command_that_flies_one() {
        let drill = row(DRILLS, "trace loss 7 00ff").unwrap();
        assert_eq!(drill, ("bench drill --kind loss --seed 7".into(), "00ff".into()));
        assert_eq!(row("bench run x", "trace 00ff"), Some(("bench run x".into(), "00ff".into())));
        assert_eq!(row("bench run x", "least separation 5 m"), None);
    }
}
