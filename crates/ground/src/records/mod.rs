//! Recorded flights below one directory: which there are, and what of one is replayed on the page. Files are read where they
//! are, from their channels in JSON, as `docs/records.md` describes them; nothing is written, and nothing outside the directory
//! is read.
//!
//! | module | what it does |
//! |---|---|
//! | [`clocks`] | UTC of the logs of a bundle, by its manifest |
//! | [`file`] | one MCAP file, record by record, as far as it goes |
//! | [`results`] | the page of what a campaign of the bench came to |
//! | [`track`] | the samples, datagrams and events of a log, thinned to a bound |

mod clocks;
mod file;
mod results;
mod track;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use wingbeat_api::{RecordedLog, RecordedTrack, Records};

use crate::readers::Budget;
use crate::refused::Refused;
use clocks::Clocks;
use file::{About, Problem};

/// How a log's file ends.
const ENDING: &str = "mcap";
/// Logs that are listed.
const LOGS_MAX: usize = 2_000;
/// Files and folders that are visited for it.
const VISITED_MAX: usize = 50_000;
/// How deep folders are visited.
const DEPTH_MAX: usize = 8;
/// Samples of a track.
pub(crate) const SAMPLES_MAX: u32 = 20_000;
/// The fewest that may be asked for.
pub(crate) const SAMPLES_LEAST: u32 = 100;
/// A name, or another text that a file states of itself, is no longer, characters.
const TEXT_MAX: usize = 200;

/// A file of a log: its part, path and length.
type Part = (u32, PathBuf, u64);

/// The logs below a directory.
pub(crate) fn list(root: &Path, budget: &Budget) -> Result<Records, Refused> {
    let mut found: BTreeMap<(PathBuf, String), Vec<Part>> = BTreeMap::new();
    let (mut visited, mut left_out, mut results) = (0, 0_u32, Vec::new());
    let mut folders = vec![(root.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if folder == root => {
                return Err(Refused::unavailable(format!("{}: {error}", root.display())));
            }
            // Gone meanwhile, or not to be read: what there is elsewhere is shown.
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            visited += 1;
            if visited > VISITED_MAX {
                left_out += 1;
                continue;
            }
            // Of a link it says that it is one: none is followed.
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|ending| ending == ENDING) {
                let length_bytes = entry.metadata().map_or(0, |about| about.len());
                let (flight, part) = match number(&path) {
                    Some((flight, part)) => (format!("{flight:06}"), part),
                    None => (entry.file_name().to_string_lossy().into_owned(), 0),
                };
                found.entry((folder.clone(), flight)).or_default().push((part, path, length_bytes));
            } else if kind.is_file() && entry.file_name() == results::FIGURES {
                match results::about(root, &folder) {
                    Some(_) if results.len() == LOGS_MAX => left_out += 1,
                    about => results.extend(about),
                }
            }
        }
    }
    let (mut logs, mut clocks) = (Vec::new(), Clocks::below(root));
    for mut parts in found.into_values() {
        parts.sort();
        let Some((_, first, _)) = parts.first() else { continue };
        // A name that no request can carry is none that can be asked for.
        let Some(file) = first.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        if logs.len() == LOGS_MAX {
            left_out += 1;
            continue;
        }
        let (about, problem) = match file::about(first, budget) {
            Ok(about) => (about, String::new()),
            Err(problem) => (About::default(), problem.to_string()),
        };
        logs.push(RecordedLog {
            file: file.replace(std::path::MAIN_SEPARATOR, "/"),
            length_bytes: parts.iter().map(|(_, _, length_bytes)| length_bytes).sum(),
            parts: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            aircraft: text(&about, "aircraft"),
            name: text(&about, "name"),
            began_unix_ms: file::zero_unix_us(&about)
                .map(|stated_us| clocks.zero_unix_us(first).unwrap_or(stated_us) / 1_000),
            problem,
        });
    }
    logs.sort_by(|a, b| a.file.cmp(&b.file));
    results.sort_by(|a, b| a.page.cmp(&b.page));
    Ok(Records { logs, results, left_out })
}

/// What of one log is replayed, with as many samples at most.
pub(crate) fn read(root: &Path, name: &str, samples: u32, budget: &Budget) -> Result<RecordedTrack, Refused> {
    if !(SAMPLES_LEAST..=SAMPLES_MAX).contains(&samples) {
        return Err(Refused::bad_request(format!(
            "samples: found {samples}, expected {SAMPLES_LEAST} to {SAMPLES_MAX}"
        )));
    }
    let is_log = |path: &Path| path.extension().is_some_and(|ending| ending == ENDING);
    let path = below(root, name, "the path of a log (.mcap)", is_log)?;
    let mut track = track::read(&path, name, samples, budget).map_err(|problem| match problem {
        Problem::Io(error) => Refused::unavailable(format!("{name}: {error}")),
        Problem::NotRead(_) => Refused::unavailable(format!("{name}: {problem}")),
        Problem::NoLog(_) => Refused::bad_request(format!("{name}: {problem}")),
    })?;
    if let (Some(stated_ms), Some(us)) = (&mut track.zero_unix_ms, Clocks::below(root).zero_unix_us(&path)) {
        *stated_ms = us as f64 / 1e3;
    }
    Ok(track)
}

/// The page of a campaign's results.
pub(crate) fn page(root: &Path, name: &str) -> Result<Vec<u8>, Refused> {
    let path = below(root, name, "the path of a page of results (index.html)", results::is_page)?;
    results::read(&path).map_err(|error| Refused::unavailable(format!("{name}: {error}")))
}

/// The file of this name below a directory, which is canonical itself: none outside it, and none that a link leads to.
fn below(root: &Path, name: &str, what: &str, is_wanted: impl Fn(&Path) -> bool) -> Result<PathBuf, Refused> {
    let relative = Path::new(name);
    let is_plain = !name.is_empty()
        && !name.contains(['\\', '\0'])
        && relative.components().all(|part| matches!(part, Component::Normal(_)));
    let path = root.join(relative);
    if !is_plain || !is_wanted(&path) {
        return Err(Refused::bad_request(format!(
            "file: found {:?}, expected {what} below the directory of records",
            name.chars().take(TEXT_MAX).collect::<String>()
        )));
    }
    match path.canonicalize() {
        Ok(canonical) if canonical == path && path.is_file() => Ok(path),
        Ok(_) => Err(Refused::bad_request(format!(
            "file: found {name:?}, which is a link or no file, expected {what} below the directory of records"
        ))),
        Err(_) => Err(Refused::not_found(format!("file: found no {name:?} among the records"))),
    }
}

fn text(about: &About, key: &str) -> String {
    about.get(key).map_or_else(String::new, |text| text.chars().take(TEXT_MAX).collect())
}

/// The flight and the part in an aircraft's file name, `NNNNNN-PP.mcap`.
fn number(path: &Path) -> Option<(u32, u32)> {
    let (flight, part) = path.file_stem()?.to_str()?.split_once('-')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(flight) && is_digits(part)).then_some(())?;
    Some((flight.parse().ok()?, part.parse().ok()?))
}

/// The part of the same flight that follows a file, where it is there.
fn next_part(path: &Path) -> Option<PathBuf> {
    let (flight, part) = number(path)?;
    let next = path.with_file_name(format!("{flight:06}-{:02}.{ENDING}", part.checked_add(1)?));
    fs::symlink_metadata(&next).is_ok_and(|about| about.is_file()).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_directory_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("records");
        fs::create_dir_all(root.join("one")).unwrap();
        for path in ["outside.mcap", "records/one/inside.mcap", "records/text.txt"] {
            fs::write(root.parent().unwrap().join(path), "").unwrap();
        }
        let below = |root: &Path, name: &str| {
            below(root, name, "a log", |path| path.extension().is_some_and(|ending| ending == ENDING))
        };
        assert_eq!(below(&root, "one/inside.mcap").unwrap(), root.join("one/inside.mcap"));
        for bad in [
            "",
            ".",
            "one",
            "..",
            "../outside.mcap",
            "one/../../outside.mcap",
            "./one/inside.mcap",
            "/etc/passwd",
            "/etc/hosts.mcap",
            "text.txt",
            "one\\inside.mcap",
            "one/inside.mcap\0",
            "one/inside.mcap/",
        ] {
            let Err(refused) = below(&root, bad) else {
                // What the system takes for the same file is inside all the same.
                assert!(bad.starts_with("./") || bad.ends_with('/'), "{bad}");
                continue;
            };
            assert!(refused.to_string().starts_with("file: found "), "{bad}: {refused}");
        }
        assert_eq!(below(&root, "one/none.mcap").unwrap_err().status(), 404);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("../outside.mcap"), root.join("link.mcap")).unwrap();
            std::os::unix::fs::symlink(root.parent().unwrap(), root.join("up")).unwrap();
            for link in ["link.mcap", "up/outside.mcap"] {
                assert_eq!(below(&root, link).unwrap_err().status(), 400, "{link}");
            }
            let listed = list(&root, &Budget::of(1 << 20)).unwrap();
            let names: Vec<&str> = listed.logs.iter().map(|log| log.file.as_str()).collect();
            assert_eq!(names, ["one/inside.mcap"]);
            assert!(listed.logs[0].problem.contains("expected a flight log"), "{:?}", listed.logs[0]);
        }
    }

    #[test]
    fn the_parts_of_an_aircrafts_flight_are_one_log() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in
            ["000001-00.mcap", "000001-01.mcap", "000002-03.mcap", "uav-001.mcap", "uav-002.mcap", "1-x.mcap"]
        {
            fs::write(root.join(name), "12345").unwrap();
        }
        let listed = list(&root, &Budget::of(1 << 20)).unwrap();
        let found: Vec<_> =
            listed.logs.iter().map(|log| (log.file.as_str(), log.parts, log.length_bytes)).collect();
        assert_eq!(
            found,
            [
                ("000001-00.mcap", 2, 10),
                ("000002-03.mcap", 1, 5),
                ("1-x.mcap", 1, 5),
                ("uav-001.mcap", 1, 5),
                ("uav-002.mcap", 1, 5)
            ]
        );
        assert_eq!(next_part(&root.join("000001-00.mcap")), Some(root.join("000001-01.mcap")));
        assert_eq!(next_part(&root.join("000001-01.mcap")), None);
        assert_eq!(list(&root.join("nowhere"), &Budget::of(1)).unwrap_err().status(), 502);
    }
}
