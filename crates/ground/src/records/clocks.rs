//! UTC of the logs of a bundle, by its manifest: GNSS time puts aircraft whose computers' clocks disagree on one clock. A log by
//! itself states its computer's clock only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wingbeat_api::{Bundle, BundledFile};

use super::number;

/// The name of a bundle's manifest, in the folder above those of its aircraft.
const MANIFEST: &str = "manifest.json";
/// A longer one is not read, bytes: of a hundred aircraft with a hundred files each it has 4 MB.
const LENGTH_MAX: u64 = 16 << 20;

/// The manifests of the bundles below a directory, each read once.
pub(super) struct Clocks<'a> {
    root: &'a Path,
    read: BTreeMap<PathBuf, Option<Bundle>>,
}

impl<'a> Clocks<'a> {
    /// None is read yet.
    pub(super) fn below(root: &'a Path) -> Self {
        Self { root, read: BTreeMap::new() }
    }

    /// UTC at agent time zero of a bundle's log, microseconds after 1970: GNSS time, else its computer's clock as it was set
    /// last. Nothing of a log that is in none.
    pub(super) fn zero_unix_us(&mut self, log: &Path) -> Option<u64> {
        let folder = log.parent()?;
        let above = folder.parent().filter(|above| above.starts_with(self.root))?;
        let bundle = self.read.entry(above.to_path_buf()).or_insert_with(|| manifest(above)).as_ref()?;
        let name = folder.file_name()?.to_str()?;
        let aircraft = bundle.aircraft.iter().find(|aircraft| aircraft.folder == name)?;
        let (flight, _) = number(log)?;
        let is_of_flight = |file: &&BundledFile| number(Path::new(&file.name)).is_some_and(|n| n.0 == flight);
        // The parts of a flight have one agent time.
        let clocks = aircraft.files.iter().filter(is_of_flight).filter_map(|file| file.clock.as_ref());
        let (mut gnss, mut computer) = (None, None);
        for clock in clocks {
            gnss = gnss.or(clock.gnss_of_agent_time_zero_us);
            computer = clock.utc_of_agent_time_zero_us.or(computer);
        }
        gnss.or(computer)
    }
}

/// A manifest, where there is one that can be read. No link is followed.
fn manifest(folder: &Path) -> Option<Bundle> {
    let path = folder.join(MANIFEST);
    let about = fs::symlink_metadata(&path).ok()?;
    if !about.is_file() || about.len() > LENGTH_MAX {
        return None;
    }
    serde_json::from_slice(&fs::read(&path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use wingbeat_api::{BundledAircraft, BundledClock, LogKind};

    use super::*;

    #[test]
    fn the_logs_of_a_bundle_are_on_gnss_time_and_others_on_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let bundle = root.join("field-day/20260912T101502Z");
        fs::create_dir_all(bundle.join("aircraft-1")).unwrap();
        let file = |name: &str, gnss: Option<u64>, computer: u64| BundledFile {
            name: name.into(),
            kind: LogKind::Flight,
            bytes: 1,
            sha256: String::new(),
            clock: Some(BundledClock {
                utc_of_agent_time_zero_us: Some(computer),
                gnss_of_agent_time_zero_us: gnss,
                ..BundledClock::default()
            }),
            flaw: None,
        };
        let aircraft = BundledAircraft {
            folder: "aircraft-1".into(),
            files: vec![
                file("000001-01.mcap", Some(7_000_000), 9_000_000),
                file("000002-01.mcap", None, 5_000_000),
                file("000002-02.mcap", None, 6_000_000),
            ],
            ..BundledAircraft::default()
        };
        let manifest = Bundle { format: 1, aircraft: vec![aircraft], ..Bundle::default() };
        fs::write(bundle.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        let mut clocks = Clocks::below(&root);
        let mut of = |path: &str| clocks.zero_unix_us(&bundle.join(path));
        assert_eq!(of("aircraft-1/000001-01.mcap"), Some(7_000_000));
        // As the clock was set last.
        assert_eq!(of("aircraft-1/000002-01.mcap"), Some(6_000_000));
        for other in [
            "aircraft-1/000003-01.mcap",
            "aircraft-2/000001-01.mcap",
            "aircraft-1/uav.mcap",
            "000001-01.mcap",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        // What is above the directory of records is not read.
        let inside = bundle.join("aircraft-1");
        assert_eq!(Clocks::below(&inside).zero_unix_us(&inside.join("000001-01.mcap")), None);
        fs::write(bundle.join(MANIFEST), "rubbish").unwrap();
        assert_eq!(Clocks::below(&root).zero_unix_us(&inside.join("000001-01.mcap")), None);
    }
}
