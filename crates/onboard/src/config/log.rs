//! The section `log`: the flight log on the aircraft.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use wingbeat_record::store::Limits;

use super::ConfigError;
use super::values::value;
use crate::recording::Settings;

const MIB: u64 = 1 << 20;
const DAY_S: u64 = 24 * 3_600;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    enabled: Option<bool>,
    directory: Option<PathBuf>,
    file_mb: Option<u64>,
    total_mb: Option<u64>,
    age_days: Option<u64>,
    free_mb: Option<u64>,
}

impl Log {
    pub(super) fn settings(self) -> Result<Option<Settings>, ConfigError> {
        let mut limits = Limits::default();
        for (key, configured, (least, most), unit, target) in [
            ("log.file_mb", self.file_mb, (1, 4_096), MIB, &mut limits.file_len),
            ("log.total_mb", self.total_mb, (2, 1_048_576), MIB, &mut limits.total_len),
            ("log.free_mb", self.free_mb, (16, 1_048_576), MIB, &mut limits.free_len),
        ] {
            let Some(found) = configured else { continue };
            if !(least..=most).contains(&found) {
                return Err(value(key, &found, format!("{least} to {most} MiB")));
            }
            *target = found * unit;
        }
        if let Some(days) = self.age_days {
            if !(1..=3_650).contains(&days) {
                return Err(value("log.age_days", &days, "1 to 3650 days"));
            }
            limits.age = Duration::from_secs(days * DAY_S);
        }
        if limits.total_len < 2 * limits.file_len {
            let (total, file) = (limits.total_len / MIB, limits.file_len / MIB);
            return Err(value("log.total_mb", &total, format!("at least twice log.file_mb, {}", 2 * file)));
        }
        let directory = self.directory.filter(|directory| !directory.as_os_str().is_empty());
        if let Some(directory) = directory.as_ref().filter(|directory| !directory.is_absolute()) {
            return Err(value("log.directory", &directory.display(), "an absolute path"));
        }
        Ok(self.enabled.unwrap_or(true).then_some(Settings { directory, limits }))
    }
}
