//! Parquet files as they are written, opened by polars.

use std::path::Path;
use std::process::Command;

fn wingbeat(arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wingbeat"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = command.current_dir(root).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn all_formats_at_once_are_what_each_is_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/flights/perpendicular-mbcap-e.mcap");
    let logs = ["uav-001.mcap", "uav-002.mcap"].map(path);
    for log in &logs {
        std::fs::copy(&recorded, log).unwrap();
    }
    let all = path("all");
    wingbeat(&["log", "export", &logs[0], &logs[1], "--to", "all", "--out", &all]);
    let one =
        [("csv", "csv"), ("tlog", "tlog")].map(|(format, ending)| (format, "uav-002", ending, &logs[1..]));
    let endings = ["kml", "kmz", "scr", "gpx", "parquet"].map(|format| (format, format));
    let of_both = endings.into_iter().chain([("ns2", "tcl"), ("bonnmotion", "movements")]);
    let of_both = of_both.map(|(format, ending)| (format, "tracks", ending, &logs[..]));
    let mut found = 1;
    for (format, name, ending, logs) in one.into_iter().chain(of_both) {
        let alone = path("alone");
        let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
        wingbeat(&[&["log", "export", "--to", format, "--out", &alone][..], &logs].concat());
        let together = std::fs::read(format!("{all}/{name}.{ending}")).unwrap();
        assert!(!together.is_empty() && together == std::fs::read(&alone).unwrap(), "{format}");
        found += 1;
    }
    // The first aircraft's are there too.
    assert_eq!(std::fs::read_dir(&all).unwrap().count(), found + 1);
}

#[test]
fn polars_opens_what_is_exported_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (campaign, tracks, flights, csv) =
        (path("campaign"), path("tracks.parquet"), path("flights.parquet"), path("flights.csv"));
    let log = "tests/flights/perpendicular-mbcap-e.mcap";
    wingbeat(&["log", "export", log, log, "--to", "parquet", "--out", &tracks]);
    wingbeat(&["bench", "run", "tests/browser/crossing.toml", "--repeat", "2", "--out", &campaign]);
    wingbeat(&["bench", "merge", &campaign, "--parquet", &flights, "--csv", &csv]);
    for file in [&tracks, &flights] {
        let bytes = std::fs::read(file).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{file}");
    }
    let python = match crate::environment::tables() {
        Ok(python) => python,
        Err(why) => {
            eprintln!("skipped: no polars here ({why})");
            return;
        }
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/open_parquet.py");
    let output = Command::new(python).arg(script).args([&tracks, &flights, &csv]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("done"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
