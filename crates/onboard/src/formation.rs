//! The formation that a configuration asks for: its name, and the file with the slots of a custom one.

use std::path::Path;

use wingbeat_geo::FormationError;
use wingbeat_geo::formation::{Layout, Offsets, read_offsets};
use wingbeat_protocol::swarm::shape;

use crate::config::ConfigError;

/// No list of 128 slots is longer; a device or an endless pipe is not read to its end.
const FILE_MAX: u64 = 64 * 1024;

/// The keys of one formation, for messages.
pub(crate) struct Keys {
    pub(crate) formation: &'static str,
    pub(crate) formation_file: &'static str,
}

/// Reads the file of a custom formation.
///
/// # Errors
/// Names the file, the line, what was found and what was expected.
pub fn read(path: &Path) -> Result<Offsets, String> {
    use std::io::Read as _;
    let here = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
    let file = std::fs::File::open(path).map_err(|cause| here(&cause))?;
    let mut text = String::new();
    let length = file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|cause| here(&cause))?;
    if length as u64 > FILE_MAX {
        return Err(here(&format!("found a longer file, expected at most {FILE_MAX} bytes")));
    }
    read_offsets(&text).map_err(|cause| here(&cause))
}

/// The layout and, of a custom one, its slots, for so many aircraft so far apart.
pub(crate) fn choose(
    keys: &Keys,
    name: Option<&str>,
    file: Option<&Path>,
    aircraft: usize,
    distance_m: f64,
) -> Result<(Layout, Offsets), ConfigError> {
    let wrong = |key, found: String, expected: String| ConfigError::Value { key, found, expected };
    let name = name.unwrap_or(Layout::Linear.name());
    let layout: Layout = name.parse().map_err(|error| {
        let expected = match error {
            FormationError::UnknownLayout => format!("one of {}", Layout::names()),
            other => other.to_string(),
        };
        wrong(keys.formation, format!("{name:?}"), expected)
    })?;
    let offsets = match (layout, file) {
        (Layout::Custom, Some(file)) => {
            read(file).map_err(|cause| wrong(keys.formation_file, cause, "a file of slots".to_owned()))?
        }
        (Layout::Custom, None) => {
            return Err(wrong(keys.formation_file, "none".into(), "the file of the slots".into()));
        }
        (_, Some(file)) => {
            let found = format!("{} and formation {name:?}", file.display());
            return Err(wrong(keys.formation_file, found, "it with formation \"custom\" only".into()));
        }
        (_, None) => Offsets::new(),
    };
    match shape::configured(layout, &offsets, aircraft, distance_m) {
        // Numbers of other keys, which have their own message.
        Ok(_) | Err(FormationError::Count(_) | FormationError::Distance(_)) => Ok((layout, offsets)),
        Err(refused) => {
            Err(wrong(keys.formation, format!("{name:?}: {refused}"), "one that can be flown".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys { formation: "muscop.formation", formation_file: "muscop.formation_file" };

    fn custom(text: &str, aircraft: usize) -> Result<(Layout, Offsets), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        choose(&KEYS, Some("custom"), Some(file.path()), aircraft, 10.0).map_err(|e| e.to_string())
    }

    #[test]
    fn every_name_is_taken_and_listed() {
        let refused = choose(&KEYS, Some("vee"), None, 9, 20.0).unwrap_err().to_string();
        for layout in Layout::ALL {
            assert!(refused.contains(layout.name()), "{layout} is not in {refused}");
            if layout != Layout::Custom {
                let chosen = choose(&KEYS, Some(&layout.to_string()), None, 9, 20.0).unwrap();
                assert_eq!(chosen, (layout, Offsets::new()));
            }
        }
        assert_eq!(choose(&KEYS, None, None, 9, 20.0).unwrap().0, Layout::Linear);
    }

    #[test]
    fn a_custom_one_comes_from_its_file() {
        let (layout, offsets) = custom("0,0\n20,5\n-20,5.5,3\n", 3).unwrap();
        assert_eq!((layout, offsets.len(), offsets[2].up_dm), (Layout::Custom, 3, 30));
        for (text, aircraft, words) in [
            (
                "0,0\n20,x\n",
                2,
                &["muscop.formation_file: found", "line 2: found \"x\", expected a number"][..],
            ),
            ("0,0\n20,5\n", 3, &["muscop.formation: found \"custom\"", "2 slots for 3 aircraft"]),
            ("0,0\n5,5,20\n", 2, &["muscop.formation", "slots 0 and 1 are 7.1 m apart", "at least 10 m"]),
            ("0,0\n0,0,20\n", 2, &["slots 0 and 1 are 0.0 m apart over the ground"]),
            (&"0,0\n".repeat(20_000), 2, &["longer file"]),
        ] {
            let message = custom(text, aircraft).unwrap_err();
            for word in words {
                assert!(message.contains(word), "{message}");
            }
        }
    }

    #[test]
    fn a_name_without_its_file_and_a_file_without_its_name_are_refused() {
        let refused = |name, file: Option<&str>| {
            choose(&KEYS, Some(name), file.map(Path::new), 3, 10.0).unwrap_err().to_string()
        };
        assert_eq!(
            refused("custom", None),
            "muscop.formation_file: found none, expected the file of the slots"
        );
        assert!(refused("linear", Some("x.csv")).contains("x.csv and formation \"linear\""));
        assert!(refused("custom", Some("/nowhere/x.csv")).contains("/nowhere/x.csv: No such file"));
        assert!(refused("split-up:9", None).contains("found 9 parts, expected 2 to 8"));
    }
}
