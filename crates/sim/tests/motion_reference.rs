//! Both profiles against the traces of the ArduCopter that they stand for.
//!
//! Each manoeuvre is flown through `Multicopter` the way the reference was flown (20 m take-off by the
//! autopilot, then the legs, brakes or guided targets), measured with the reference's definitions and
//! compared row by row with `data/motion_*.csv`. A row passes within 10 %, or within 0.3 m or 0.2 s
//! where that is larger. A row that is known to miss has the reason in the data; the test fails when it is
//! met, so that the list can only shrink. The table is `docs/autopilot-parity.md`: `UPDATE_DOCS=1 cargo
//! test -p wingbeat-sim --test sim motion_reference::` writes it, so a change of behaviour is a diff to read.

mod fly;
mod measure;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use wingbeat_sim::motion::Profile;

const TOLERANCE: f64 = 0.10;
const TOLERANCE_M: f64 = 0.3;
const TOLERANCE_S: f64 = 0.2;

struct Row {
    quantity: String,
    value: f64,
    unit: String,
    /// Why the row misses, where it does.
    missed: Option<String>,
}

impl Row {
    fn tolerance(&self) -> f64 {
        let part = TOLERANCE * self.value.abs();
        match self.unit.as_str() {
            "m" => part.max(TOLERANCE_M),
            "s" => part.max(TOLERANCE_S),
            _ => part,
        }
    }
}

fn rows(data: &str) -> Vec<Row> {
    data.lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("quantity,") && !line.is_empty())
        .map(|line| {
            let parts: Vec<&str> = line.splitn(4, ',').collect();
            let [quantity, value, unit, missed] = parts[..] else { panic!("four fields: {line}") };
            Row {
                quantity: quantity.to_owned(),
                value: value.parse().unwrap_or_else(|e| panic!("{line}: {e}")),
                unit: unit.to_owned(),
                missed: (!missed.is_empty()).then(|| missed.to_owned()),
            }
        })
        .collect()
}

/// The table of one profile, and what is wrong with it.
fn compare(profile: Profile, data: &str) -> (String, String) {
    let ours: BTreeMap<String, f64> = measure::everything(profile).into_iter().collect();
    let mut table = String::from("| quantity | unit | reference | ours | deviation | verdict |\n");
    table += "|---|---|---:|---:|---:|---|\n";
    let (mut failures, mut misses) = (String::new(), String::new());
    let (mut passed, mut missed) = (0, 0);
    for row in rows(data) {
        let our = *ours.get(&row.quantity).unwrap_or_else(|| panic!("not measured: {}", row.quantity));
        let error = our - row.value;
        let inside = error.abs() <= row.tolerance();
        let verdict = match (&row.missed, inside) {
            (None, true) => {
                passed += 1;
                "within"
            }
            (None, false) => {
                writeln!(failures, "{}: {} expected, {our:.3} found", row.quantity, row.value)
                    .expect("a string");
                "FAILED"
            }
            (Some(why), false) => {
                missed += 1;
                writeln!(misses, "- {}: {} expected, {our:.3} found: {why}", row.quantity, row.value)
                    .expect("a string");
                "missed"
            }
            // Good news must be written down: the row is met now.
            (Some(_), true) => {
                writeln!(failures, "{}: listed as missed, but met ({our:.3})", row.quantity)
                    .expect("a string");
                "FAILED"
            }
        };
        let part = 100.0 * error / row.value.abs();
        let deviation =
            if part.abs() < 100.0 { format!("{part:+.1} %") } else { format!("{error:+.2} {}", row.unit) };
        writeln!(
            table,
            "| {} | {} | {} | {our:.3} | {deviation} | {verdict} |",
            row.quantity, row.unit, row.value
        )
        .expect("a string");
    }
    let mut text =
        format!("{passed} of {} quantities within the tolerance, {missed} missed.\n\n", passed + missed);
    if !misses.is_empty() {
        text += &format!("Missed:\n\n{misses}\n");
    }
    (text + &table, failures)
}

#[test]
fn both_profiles_fly_as_their_references_flew() {
    const BEGIN: &str = "<!-- reference traces -->\n";
    const END: &str = "<!-- end of reference traces -->\n";
    let mut section = String::new();
    let mut failures = String::new();
    for (name, profile, data) in [
        ("4.6.2", Profile::Copter462, include_str!("data/motion_4_6_2.csv")),
        ("3.5.7", Profile::Copter357, include_str!("data/motion_3_5_7.csv")),
    ] {
        let (table, failed) = compare(profile, data);
        write!(section, "\n### ArduCopter {name}\n\n{table}").expect("a string");
        for line in failed.lines() {
            writeln!(failures, "{name} {line}").expect("a string");
        }
    }
    println!("{section}");
    assert!(failures.is_empty(), "outside the tolerance:\n{failures}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/autopilot-parity.md");
    let document = std::fs::read_to_string(&path).expect("docs/autopilot-parity.md");
    let (before, rest) = document.split_once(BEGIN).expect("the marker of the tables");
    let (found, after) = rest.split_once(END).expect("the marker after the tables");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{section}{END}{after}")).expect("the document");
        return;
    }
    for (found, expected) in found.lines().zip(section.lines()) {
        assert_eq!(found, expected, "docs/autopilot-parity.md against the code");
    }
    assert_eq!(found.lines().count(), section.lines().count(), "docs/autopilot-parity.md against the code");
}
