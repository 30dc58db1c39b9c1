//! The file of a lab's checklist. It is read strictly: what is not understood is refused with its line, because an item that is
//! passed over is an item that is not checked.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use wingbeat_api::{ChecklistItem, ChecklistScope, ChecklistStep};
use wingbeat_keys::file;

/// The longest file, bytes.
const FILE_MAX: usize = 64 * 1024;
/// Items of a list.
const ITEMS_MAX: usize = 64;
/// The longest id, bytes: it is typed.
const ID_MAX: usize = 32;
/// The longest title and text, characters: two lines of the page.
const TEXT_MAX: usize = 200;
/// The longest hint, characters.
const HINT_MAX: usize = 400;
/// What an item can have.
const ITEM_KEYS: [&str; 6] = ["id", "text", "hint", "required", "per", "before"];
/// What a list can have.
const LIST_KEYS: [&str; 2] = ["title", "item"];

/// Why a checklist is not read.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: found {found}, expected {expected}", .path.display(), .line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct ChecklistError {
    path: PathBuf,
    line: Option<usize>,
    found: String,
    expected: String,
}

/// A checklist as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Its title.
    pub(crate) title: String,
    /// SHA-256 of its file.
    pub(crate) hash: String,
    /// Without ticks.
    pub(crate) items: Vec<ChecklistItem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Spanned<String>,
    #[serde(default)]
    item: Vec<Spanned<WrittenItem>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenItem {
    id: Spanned<String>,
    text: Spanned<String>,
    hint: Option<Spanned<String>>,
    #[serde(default = "yes")]
    required: bool,
    #[serde(default)]
    per: ChecklistScope,
    #[serde(default)]
    before: ChecklistStep,
}

fn yes() -> bool {
    true
}

/// What is wrong, where in the text, and what it should be.
struct Wrong {
    at: Option<usize>,
    found: String,
    expected: String,
}

fn wrong(at: usize, found: impl fmt::Display, expected: impl fmt::Display) -> Wrong {
    Wrong { at: Some(at), found: found.to_string(), expected: expected.to_string() }
}

impl List {
    /// Reads a checklist's file.
    ///
    /// # Errors
    /// What was found there instead, and in which line.
    pub fn read(path: &Path) -> Result<Self, ChecklistError> {
        let text = file::read_text(path, FILE_MAX, "").map_err(|refused| ChecklistError {
            path: path.into(),
            line: None,
            // It begins with the path.
            found: refused
                .found
                .split_once(": ")
                .map_or(refused.found.clone(), |(_, found)| found.to_owned()),
            expected: format!("a checklist of at most {FILE_MAX} bytes (docs/operating.md)"),
        })?;
        Self::parse(&text).map_err(|Wrong { at, found, expected }| {
            let line = at.map(|at| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count());
            ChecklistError { path: path.into(), line, found, expected }
        })
    }

    fn parse(text: &str) -> Result<Self, Wrong> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let (found, expected) = syntax(error.message());
            Wrong { at: error.span().map(|span| span.start), found, expected }
        })?;
        check_text("title", &written.title, TEXT_MAX)?;
        let found = written.item.len();
        if !(1..=ITEMS_MAX).contains(&found) {
            let expected = format!("1 to {ITEMS_MAX} tables [[item]]");
            return Err(Wrong { at: None, found: format!("{found} items"), expected });
        }
        let mut ids = BTreeSet::new();
        let mut items = Vec::with_capacity(found);
        for item in written.item.into_iter().map(Spanned::into_inner) {
            let (at, id) = (item.id.span().start, item.id.into_inner());
            let is_id = (1..=ID_MAX).contains(&id.len())
                && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
            if !is_id {
                let expected = format!("1 to {ID_MAX} of a to z, 0 to 9, hyphen, underscore");
                return Err(wrong(at, format!("the id \"{}\"", shown(&id)), expected));
            }
            if !ids.insert(id.clone()) {
                return Err(wrong(at, format!("the id \"{id}\" twice"), "each once"));
            }
            check_text("text", &item.text, TEXT_MAX)?;
            if let Some(hint) = &item.hint {
                check_text("hint", hint, HINT_MAX)?;
            }
            items.push(ChecklistItem {
                id,
                text: item.text.into_inner(),
                hint: item.hint.map_or_else(String::new, Spanned::into_inner),
                required: item.required,
                per: item.per,
                before: item.before,
                ticks: vec![],
            });
        }
        let hash = file::hexadecimal(&Sha256::digest(text.as_bytes()));
        Ok(Self { title: written.title.into_inner(), hash, items })
    }

    /// The item with this id.
    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    /// The id that is nearest to one that there is not.
    pub(crate) fn nearest(&self, id: &str) -> Option<&str> {
        nearest(id, self.items.iter().map(|item| item.id.as_str()))
    }
}

/// The name that may have been meant: one letter in three is wrong at most.
fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(name, found);
    names.min_by_key(|name| distance(name)).filter(|name| distance(name) * 3 <= found.len().max(3))
}

/// What the parser says, as found and expected; of a key that there is not, with the nearest that there is.
fn syntax(message: &str) -> (String, String) {
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    if let Some((key, rest)) = unknown {
        let keys: &[&str] = if rest.contains("`text`") { &ITEM_KEYS } else { &LIST_KEYS };
        let cure = nearest(key, keys.iter().copied())
            .map_or(String::new(), |name| format!("{name} (did you mean that?), or "));
        return (format!("the key \"{}\"", shown(key)), format!("{cure}one of {}", keys.join(", ")));
    }
    let first: Vec<String> = message.split_whitespace().map(shown).collect();
    (first.join(" "), "a checklist: title, and tables [[item]] with id and text".to_owned())
}

/// Characters that control a terminal, join lines, or turn the direction of the text around them.
fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The beginning of a text that is refused, as it may stand in a message.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(ID_MAX) {
        match is_steering(c) {
            true => shown.push_str(&format!("[U+{:04X}]", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

/// One line that can be shown as it is.
fn check_text(key: &str, text: &Spanned<String>, most: usize) -> Result<(), Wrong> {
    let (at, text) = (text.span().start, text.get_ref());
    if let Some(c) = text.chars().find(|c| is_steering(*c)) {
        let found = format!("the character U+{:04X} in {key}", u32::from(c));
        return Err(wrong(at, found, "none that controls a terminal or turns the direction of text"));
    }
    let count = text.chars().count();
    if text.trim().is_empty() || count > most {
        return Err(wrong(
            at,
            format!("{count} characters in {key}"),
            format!("1 to {most}, not only spaces"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<List, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.toml");
        std::fs::write(&path, text).unwrap();
        List::read(&path)
            .map_err(|error| error.to_string().replace(&format!("{}", path.display()), "list.toml"))
    }

    #[test]
    fn the_sample_is_read() {
        let list = parsed(include_str!("../../../../deploy/checklist.toml")).unwrap();
        let ids: Vec<&str> = list.items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!(ids, ["area", "permit", "propellers", "battery", "transmitter", "go"]);
        let item = |id: &str| &list.items[list.position(id).unwrap()];
        assert!(item("area").required && !item("permit").required);
        assert_eq!(
            (item("area").per, item("battery").per),
            (ChecklistScope::Fleet, ChecklistScope::Aircraft)
        );
        assert_eq!((item("area").before, item("go").before), (ChecklistStep::Setup, ChecklistStep::Start));
        assert!(item("area").hint.is_empty() && !item("propellers").hint.is_empty());
        assert_eq!(list.hash.len(), 64);
        assert_eq!(list.nearest("propeler"), Some("propellers"));
        assert_eq!(list.nearest("xyz"), None);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let with = |line: &str| format!("title = \"T\"\n[[item]]\nid = \"a\"\n{line}\n");
        let long = "x".repeat(201);
        let id33 = "i".repeat(33);
        let cases = [
            (String::new(), "list.toml:1: found missing field `title`, expected a checklist"),
            ("title = \"T\"\n".into(), "list.toml: found 0 items, expected 1 to 64 tables [[item]]"),
            (with(""), "list.toml:2: found missing field `text`, expected a checklist"),
            (
                with("txt = \"b\""),
                "list.toml:4: found the key \"txt\", expected text (did you mean that?), or one of id, text, hint, required, per, before",
            ),
            (
                with("text = \"b\"\nowner = 1"),
                "list.toml:5: found the key \"owner\", expected one of id, text, hint",
            ),
            (
                "titel = \"T\"".into(),
                "list.toml:1: found the key \"titel\", expected title (did you mean that?), or one of title, item",
            ),
            (with("text = 7"), "list.toml:4: found invalid type: integer `7`, expected a string"),
            (
                with("text = \"b\"\nper = \"drone\""),
                "list.toml:5: found unknown variant `drone`, expected `fleet` or `aircraft`",
            ),
            (with("text = \"b\"\nrequired = \"no\""), "list.toml:5: found invalid type: string"),
            (
                with("text = \"  \""),
                "list.toml:4: found 2 characters in text, expected 1 to 200, not only spaces",
            ),
            (
                with(&format!("text = \"{long}\"")),
                "list.toml:4: found 201 characters in text, expected 1 to 200",
            ),
            (
                with("text = \"go\u{202e}no\""),
                "list.toml:4: found the character U+202E in text, expected none that controls",
            ),
            (
                with("text = \"b\"\nhint = \"a\\nb\""),
                "list.toml:5: found the character U+000A in hint, expected none that controls",
            ),
            (
                with("text = \"b\"\n[[item]]\nid = \"a\"\ntext = \"c\""),
                "list.toml:6: found the id \"a\" twice, expected each once",
            ),
            (
                with("text = \"b\"\n[[item]]\nid = \"A b\"\ntext = \"c\""),
                "list.toml:6: found the id \"A b\", expected 1 to 32 of a to z",
            ),
            (
                with(&format!("text = \"b\"\n[[item]]\nid = \"{id33}\"\ntext = \"c\"")),
                "list.toml:6: found the id \"iii",
            ),
            ("title = \n".into(), "list.toml:1: found "),
        ];
        for (text, expected) in cases {
            let message = parsed(&text).unwrap_err();
            assert!(message.starts_with(expected), "{message}\nnot {expected}");
            assert!(!message.contains(['\u{202e}', '\n']), "{message:?}");
        }
        let items: String = (0..65).map(|i| format!("[[item]]\nid = \"i{i}\"\ntext = \"b\"\n")).collect();
        let message = parsed(&format!("title = \"T\"\n{items}")).unwrap_err();
        assert_eq!(message, "list.toml: found 65 items, expected 1 to 64 tables [[item]]");
        let message = parsed(&format!("title = \"T\" # {}", "x".repeat(70_000))).unwrap_err();
        assert_eq!(
            message,
            "list.toml: found more than 65536 bytes, expected a checklist of at most 65536 bytes (docs/operating.md)"
        );
        let missing = List::read(Path::new("/nowhere/list.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/list.toml: found No such file"), "{missing}");
    }
}
