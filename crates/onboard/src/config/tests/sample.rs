//! `deploy/wingbeatd.toml` is the description of the keys. It is held against the types and their limits here, and
//! the table of `docs/operating.md` is made from it.

use std::fmt::Write as _;

use super::*;

/// The configuration that is installed.
const SAMPLE: &str = include_str!("../../../../../deploy/wingbeatd.toml");

/// How a key stands in the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// As a comment: the value is the default.
    Default,
    /// Inside its explanation: it has no default.
    Example,
    /// Set, and required or to be checked.
    Set,
}

/// A key as the sample explains it.
#[derive(Clone, Debug)]
struct Entry {
    key: String,
    value: String,
    shown: Shown,
    meaning: String,
    /// What it may be, with the unit.
    range: String,
    source: String,
}

impl Entry {
    fn is_required(&self) -> bool {
        self.meaning.contains("Required.")
    }
    /// As TOML.
    fn value(&self) -> toml::Value {
        format!("value = {}", self.value).parse::<toml::Table>().unwrap().remove("value").unwrap()
    }
}

/// A line that gives a key its value; an explanation is a sentence.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    is_name.then_some((name, value))
}

/// Every key of the sample, in its order.
fn entries() -> Vec<Entry> {
    let (mut section, mut entries) = (String::new(), Vec::new());
    let mut comment: Vec<&str> = Vec::new();
    for line in SAMPLE.lines() {
        if let Some(name) = line.strip_prefix('[') {
            (section, comment) = (format!("{}.", name.trim_end_matches(']')), Vec::new());
            continue;
        }
        let explanation = line.strip_prefix("# ");
        let example = explanation.and_then(assignment);
        let commented = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).and_then(assignment);
        let Some(((name, value), shown)) = example
            .map(|key| (key, Shown::Example))
            .or(commented.map(|key| (key, Shown::Default)))
            .or(assignment(line).map(|key| (key, Shown::Set)))
        else {
            match explanation {
                Some(text) => comment.push(text),
                None => comment.clear(),
            }
            continue;
        };
        let key = format!("{section}{name}");
        let text = comment.join(" ");
        let (meaning, brackets) =
            text.strip_suffix(']').and_then(|text| text.rsplit_once(" [")).unwrap_or_else(|| {
                panic!("{key}: found {text:?}, expected its meaning and then [range; source]")
            });
        let (range, source) = brackets
            .rsplit_once("; ")
            .unwrap_or_else(|| panic!("{key}: found [{brackets}], expected [range; source]"));
        let [meaning, range, source] = [meaning, range, source].map(str::to_owned);
        entries.push(Entry { key, value: value.to_owned(), shown, meaning, range, source });
        comment.clear();
    }
    entries
}

/// Keys whose limits are other keys' values.
const BOUNDED_BY_OTHERS: [&str; 5] = [
    "fence.height_most_m",
    "log.total_mb",
    "separation.alarm_distance_m",
    "sweep.strip",
    "follow_me.height_m",
];

/// The sample's aircraft.
fn sample_mac(interface: &str) -> Result<u64, String> {
    assert_eq!(interface, "wlan0");
    Ok(0xb827_eb01_0203)
}

/// Decided by what the aircraft's state directory holds, which is not this machine's.
const KEYS_OF_THE_FLEET: [&str; 3] =
    ["security.insecure", "security.secret_key_file", "security.bundle_file"];

/// Reads it, but for the keys of the fleet.
fn read_without_keys(mut table: toml::Table) -> Result<Settings, ConfigError> {
    for key in KEYS_OF_THE_FLEET {
        set_key(&mut table, key, None);
    }
    set_key(&mut table, KEYS_OF_THE_FLEET[0], Some(true.into()));
    read_with(&Layers::of("wingbeatd.toml", &toml::to_string(&table).unwrap()), &sample_mac)
}

/// The sample with every default set.
fn sample_uncommented() -> toml::Table {
    let mut table = toml::Table::new();
    for entry in entries().iter().filter(|entry| entry.shown != Shown::Example) {
        set_key(&mut table, &entry.key, Some(entry.value()));
    }
    table
}

fn set_key(table: &mut toml::Table, key: &str, value: Option<toml::Value>) {
    let (table, name) = match key.split_once('.') {
        None => (table, key),
        Some((section, name)) => {
            let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
            (section.as_table_mut().unwrap(), name)
        }
    };
    match value {
        Some(value) => table.insert(name.to_owned(), value),
        None => table.remove(name),
    };
}

/// The sample with a key set or removed, under the protocol that has the key.
fn parsed_with(key: &str, value: Option<toml::Value>) -> Result<Settings, ConfigError> {
    let mut table = sample_uncommented();
    let section = key.split('.').next().unwrap();
    if ["mbcap", "mission", "sweep", "follow_me"].contains(&section) {
        set_key(&mut table, "protocol", Some(section.into()));
    }
    if ["mbcap.horizon_s", "mbcap.reaction_distance_m"].contains(&key) {
        let of_mbcap_e = [
            "brake",
            "gps_error_m",
            "reaction_s",
            "loss_s",
            "braking_m_s2",
            "curve_error_m",
            "aside_error_m",
        ];
        for of_mbcap_e in of_mbcap_e {
            set_key(&mut table, &format!("mbcap.{of_mbcap_e}"), None);
        }
        set_key(&mut table, "mbcap.variant", Some("mbcap".into()));
    }
    set_key(&mut table, key, value);
    read_without_keys(table)
}

#[test]
fn the_sample_is_read_and_what_it_shows_as_a_comment_is_the_default() {
    let without_keys = read_with(&Layers::of("wingbeatd.toml", SAMPLE), &sample_mac).unwrap_err().to_string();
    assert!(
        without_keys.starts_with(
            "wingbeatd.toml: security.secret_key_file: found /var/lib/wingbeat/aircraft.key: No such file"
        ),
        "{without_keys}"
    );
    let settings = read_without_keys(SAMPLE.parse().unwrap()).unwrap();
    assert_eq!(settings.daemon.agent.coordination.me(), VehicleId(0xb827_eb01_0203));
    assert_eq!(settings.daemon.autopilot.to_string(), "serial:/dev/ttyAMA0:921600");
    for protocol in ["muscop", "mbcap", "follow_me", "mission", "sweep"] {
        let mut defaults = SAMPLE.parse::<toml::Table>().unwrap();
        set_key(&mut defaults, "protocol", Some(protocol.into()));
        let defaults = read_without_keys(defaults);
        let mut shown = sample_uncommented();
        set_key(&mut shown, "protocol", Some(protocol.into()));
        let shown = read_without_keys(shown);
        // What is stated is not what is absent; what either means is.
        let meaning = |mut settings: Settings| {
            settings.daemon.protocols = Default::default();
            settings
        };
        assert_eq!(
            meaning(shown.unwrap()),
            meaning(defaults.unwrap()),
            "{protocol}: a commented value is not the default"
        );
    }
}

#[test]
fn the_sample_has_every_key_once_and_no_other() {
    let mut schema = schema::keys::<File>();
    assert!(schema.contains(&"id".into()) && schema.contains(&"muscop.silence_ms".into()), "{schema:?}");
    let mut sample: Vec<String> = entries().into_iter().map(|entry| entry.key).collect();
    schema.sort();
    sample.sort();
    assert_eq!(sample, schema, "deploy/wingbeatd.toml and the configuration's types");
}

#[test]
fn a_required_key_is_marked_and_the_others_can_be_left_out() {
    for entry in entries().into_iter().filter(|entry| !KEYS_OF_THE_FLEET.contains(&&*entry.key)) {
        let parsed = parsed_with(&entry.key, None);
        assert_eq!(parsed.is_err(), entry.is_required(), "{}: {parsed:?}", entry.key);
    }
}

/// A value that is beyond every limit makes the program report the limit; the sample states the same.
#[test]
fn the_range_of_every_number_is_the_one_that_is_judged_and_has_the_unit_of_its_name() {
    let mut judged = 0;
    for entry in entries() {
        let Entry { key, range, source, .. } = &entry;
        let known = ["ours", "ArduSim", "ArduCopter", "MAVLink", "ASTM F3411"].contains(&&**source);
        assert!(known || source.starts_with("thesis "), "{key}: found source {source}");
        let beyond = match entry.value() {
            toml::Value::Integer(_) => toml::Value::Integer(9_999_999_999),
            toml::Value::Float(_) => toml::Value::Float(9_999_999_999.0),
            toml::Value::String(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_)
            | toml::Value::Table(_) => continue,
        };
        let message = parsed_with(key, Some(beyond)).expect_err(key).to_string();
        let Some((_, expected)) = message.split_once(&format!("{key}: found 9999999999, expected ")) else {
            // Too large for its type: a port, a share, a number of aircraft.
            assert!(message.contains("9999999999"), "{key}: {message}");
            continue;
        };
        judged += 1;
        if !BOUNDED_BY_OTHERS.contains(&&**key) {
            assert_eq!(range, expected.split(", for example").next().unwrap(), "{key}");
        }
    }
    assert!(judged > 60, "found {judged} numbers");
}

#[test]
fn the_manual_s_table_is_made_from_the_sample() {
    const BEGIN: &str = "<!-- keys: written by UPDATE_DOCS=1 cargo test -p wingbeat-onboard -->\n";
    const END: &str = "<!-- end of keys -->";
    let mut table = String::from("| key | default | may be | source | meaning |\n|---|---|---|---|---|\n");
    for Entry { key, value, shown, meaning, range, source } in entries() {
        let default = match shown {
            Shown::Default if ["id", "name"].contains(&&*key) => "see there".to_owned(),
            Shown::Default => format!("`{value}`"),
            Shown::Example => "none".to_owned(),
            Shown::Set if meaning.contains("Required.") => "required".to_owned(),
            Shown::Set => "none".to_owned(),
        };
        let meaning = meaning.replace(" Required.", "").replace(" No default; for example:", "");
        let [range, meaning] = [range, meaning].map(|text| text.replace("docs/", "").replace('|', "\\|"));
        writeln!(table, "| `{key}` | {default} | {range} | {source} | {meaning} |").unwrap();
    }
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md"));
    let manual = std::fs::read_to_string(path).unwrap();
    let begin = manual.find(BEGIN).expect("the beginning of the table") + BEGIN.len();
    let end = begin + manual[begin..].find(END).expect("the end of the table");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{table}{}", &manual[..begin], &manual[end..])).unwrap();
        return;
    }
    assert_eq!(&manual[begin..end], table, "UPDATE_DOCS=1 writes it");
}
