//! Reads Prometheus' text format, strictly: what a scraper would refuse or misread fails the test.

use std::collections::BTreeMap;

/// Every sample by its name and labels as they stand, and its value.
pub(crate) fn parse(text: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        name.bytes()
            .enumerate()
            .all(|(i, b)| b.is_ascii_alphabetic() || b == b'_' || (i > 0 && b.is_ascii_digit()))
            && !name.is_empty()
    };
    let mut samples = BTreeMap::new();
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    let mut family = String::new();
    assert!(text.ends_with('\n'), "the last line has an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a help");
            assert!(!families.contains_key(name), "{name}: its samples stand together, once");
            assert!(help.ends_with(['.', ')']) && !help.contains('\\'), "{line}");
            name.clone_into(&mut family);
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(name, family, "HELP and TYPE are of one family");
            assert!(["gauge", "counter"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            for unit in ["_ms", "_m", "_s", "_deg", "_v", "_a", "_percent"] {
                assert!(!name.ends_with(unit), "{name}: base units, whole words");
            }
            families.insert(name.to_owned(), kind.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line:?}"));
        let name = series.split('{').next().expect("a name");
        assert!(is_name(name) && name == family && families.contains_key(name), "{line}");
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let mut rest =
                labels.strip_prefix('{').and_then(|l| l.strip_suffix('}')).expect("labels in braces");
            while !rest.is_empty() {
                let (label, after) = rest.split_once("=\"").expect("a label's name and value");
                assert!(is_name(label), "{line}");
                // Up to the quote that is not escaped.
                let mut escaped = false;
                let end = after.char_indices().find(|&(_, c)| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                rest = &after[end.expect("a closing quote").0 + 1..];
                rest = rest.strip_prefix(',').unwrap_or(rest);
            }
        }
        let value = match value {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            value => value.parse().unwrap_or_else(|_| panic!("no number: {line}")),
        };
        assert!(samples.insert(series.to_owned(), value).is_none(), "{series}: found twice");
    }
    samples
}
