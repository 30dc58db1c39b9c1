//! The units under `systemd/`, checked by systemd's own tools; skipped with a line without `systemd-analyze`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The exposure that `systemd-analyze security` may find at most, in tenths: 0 is none, 100 is all. What is
/// left is what the daemon is for: the network, serial devices, a bound interface.
const EXPOSURE_MAX_TENTHS: &str = "20";

/// The units in a folder of their own, with the programs that were built now in place of the installed ones.
fn units() -> (tempfile::TempDir, Vec<PathBuf>) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systemd");
    let programs = Path::new(env!("CARGO_BIN_EXE_wingbeatd")).parent().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let mut paths = vec![];
    for entry in std::fs::read_dir(source).unwrap() {
        let from = entry.unwrap().path();
        let text = std::fs::read_to_string(&from).unwrap();
        let program = |folder: &str| text.contains(&format!("ExecStart=/usr/{folder}/wingbeat"));
        assert!(program("bin") || program("sbin"), "{}: expected a program of ours", from.display());
        let text = text.replace("/usr/bin/", &format!("{}/", programs.display()));
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/network");
        let text = text.replace("/usr/sbin/", &format!("{}/", scripts.canonicalize().unwrap().display()));
        let to = folder.path().join(from.file_name().unwrap());
        std::fs::write(&to, text).unwrap();
        paths.push(to);
    }
    paths.sort();
    assert!(paths.iter().any(|path| path.ends_with("wingbeatd.service")), "{paths:?}");
    (folder, paths)
}

/// Runs `systemd-analyze`; none where it is not installed.
fn analyze(arguments: &[&str], units: &[PathBuf]) -> Option<Output> {
    match Command::new("systemd-analyze").arg("--no-pager").args(arguments).args(units).output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: no systemd-analyze here ({error})");
            None
        }
    }
}

#[test]
fn every_line_of_the_units_is_accepted_by_systemd() {
    let (folder, units) = units();
    // Without recursive-errors an unknown key would pass.
    let verify = ["verify", "--man=no", "--recursive-errors=yes"];
    let Some(output) = analyze(&verify, &units) else { return };
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output_text.trim().is_empty(), "{output_text}");

    // The test can fail: a misspelt key is found.
    let bad = folder.path().join("misspelt.service");
    let text = std::fs::read_to_string(&units[0]).unwrap().replace("[Service]", "[Service]\nWatchdogSecs=5");
    std::fs::write(&bad, text).unwrap();
    let output = analyze(&verify, &[bad]).unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("WatchdogSecs"), "{output:?}");
}

#[test]
fn the_units_expose_no_more_than_they_must() {
    let (_folder, units) = units();
    for unit in units {
        let threshold = format!("--threshold={EXPOSURE_MAX_TENTHS}");
        let Some(output) = analyze(&["security", "--offline=yes", &threshold], &[unit]) else { return };
        let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && output_text.contains("Overall exposure level"), "{output_text}");
    }
}

#[test]
fn the_units_have_no_capability() {
    for unit in ["wingbeatd.service", "wingbeat-guard.service"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systemd").join(unit);
        let text = std::fs::read_to_string(path).unwrap();
        let set = |line: &&str| line.contains("Capabilit");
        let found: Vec<_> = text.lines().filter(set).collect();
        assert_eq!(found, ["CapabilityBoundingSet="], "{unit}");
        assert!(text.contains("\nUser=wingbeat\n"), "{unit}: found another user, expected one for both");
    }
}

#[test]
fn no_dump_of_the_memory_has_keys_in_it() {
    for unit in ["wingbeatd.service", "wingbeat-guard.service"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../systemd").join(unit);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.lines().any(|line| line == "LimitCORE=0"), "{unit}");
    }
}

#[test]
fn the_units_leave_room_for_every_connection() {
    let limit = |unit: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systemd").join(unit);
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("LimitNOFILE="));
        line.unwrap_or_else(|| panic!("{unit}: found no LimitNOFILE")).parse::<usize>().unwrap()
    };
    let served = wingbeat_server::Settings::default().connections;
    let gateway = 3 * wingbeat_onboard::gateway::CLIENTS_MAX + 1;
    let (daemon, least) =
        (limit("wingbeatd.service"), served + gateway + wingbeat_server::DESCRIPTORS_RESERVED);
    assert!(daemon >= least, "found {daemon}, expected at least {least}");
    assert!(limit("wingbeat-guard.service") >= 64);
}
