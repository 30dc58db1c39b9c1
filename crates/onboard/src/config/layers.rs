//! What is configured, and where: the file, those of `conf.d` next to it by name, the environment, flags; the later
//! overrides the earlier.

use std::{
    collections::BTreeMap,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::{ConfigError, DEFAULT_PATH, schema};

/// Nothing that a daemon is configured with is longer, bytes; a device or an endless pipe is not read to its end.
const FILE_MAX: u64 = 64 * 1024;
/// Files of `conf.d`.
const FILES_MAX: usize = 64;
/// The folder next to the file whose `*.toml` are read after it.
const FOLDER: &str = "conf.d";
/// The prefix of variables that are keys; between a section and its key stand two underscores.
const PREFIX: &str = "WINGBEAT_";
/// Keys that belong to no section.
const TOP_KEYS: [&str; 3] = ["WINGBEAT_ID", "WINGBEAT_NAME", "WINGBEAT_PROTOCOL"];

/// Variables of other programs of this project: the console's, the bench's and the tests'.
const OTHER_PROGRAMS: [&str; 6] = [
    "WINGBEAT_GROUND",
    "WINGBEAT_TRUST",
    "WINGBEAT_USER",
    "WINGBEAT_PASSWORD",
    "WINGBEAT_SESSIONS",
    "WINGBEAT_SITL",
];

/// The variable of a key.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").to_uppercase())
}

/// Whether a variable is meant as a key: each key has a section, but for [`TOP_KEYS`].
fn is_key(variable: &str) -> bool {
    let is_in_section = variable.strip_prefix(PREFIX).is_some_and(|key| key.contains("__"));
    is_in_section || TOP_KEYS.contains(&variable)
}

/// The flags of every program that reads the daemon's configuration.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The configuration file; the files conf.d/*.toml next to it override it in the order of their names.
    #[arg(long, global = true, value_name = "FILE", default_value = DEFAULT_PATH)]
    pub config: PathBuf,
    /// Override a key, for example radio.port=14601; also in the environment, as WINGBEAT_RADIO__PORT.
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = assignment)]
    pub overrides: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let is_key = |key: &str| {
        key.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        })
    };
    match text.split_once('=') {
        Some((key, value)) if is_key(key) => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("found {text:?}, expected KEY=VALUE, for example radio.port=14601")),
    }
}

/// Files, environment and flags that together are a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Path and text of each file; the first is the main one.
    files: Vec<(PathBuf, String)>,
    environment: BTreeMap<String, String>,
    flags: Vec<(String, String)>,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Kept {
    files: Vec<KeptFile>,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct KeptFile {
    path: String,
    text: String,
}

impl Layers {
    /// Reads the files, and takes the process's environment.
    ///
    /// # Errors
    /// A file or folder that cannot be read.
    pub fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let mut files = vec![(flags.config.clone(), load(&flags.config)?)];
        for path in drop_ins(&flags.config)? {
            let text = load(&path)?;
            files.push((path, text));
        }
        Ok(Self { files, flags: flags.overrides.clone(), ..Self::default() }.environment(variables()))
    }

    /// Reads as much as can be read, for what must be known of files that are not usable.
    pub(super) fn read_leniently(flags: &Flags) -> Self {
        let others = drop_ins(&flags.config).unwrap_or_default();
        let texts = std::iter::once(flags.config.clone()).chain(others).map(|path| {
            let bytes = std::fs::File::open(&path).and_then(|file| {
                let mut bytes = Vec::new();
                file.take(FILE_MAX).read_to_end(&mut bytes).map(|_| bytes)
            });
            let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
            (path, text)
        });
        let files = texts.collect();
        Self { files, flags: flags.overrides.clone(), ..Self::default() }.environment(variables())
    }

    /// The value of a key as the last layer that has it states it, whether it is valid or not. Of a file that is no TOML the
    /// lines are read.
    pub(super) fn stated(&self, section: &str, name: &str) -> Option<String> {
        let key = format!("{section}.{name}");
        let variable = variable(&key);
        let flag = self.flags.iter().rev().find(|(flag, _)| *flag == key).map(|(_, value)| value.clone());
        let in_files = || self.files.iter().rev().find_map(|(_, text)| stated_in(text, section, name));
        flag.or_else(|| self.environment.get(&variable).cloned()).or_else(in_files)
    }

    /// Whether a layer has the section, with keys or without.
    pub(super) fn has_section(&self, section: &str) -> bool {
        let prefix = format!("{PREFIX}{}__", section.to_uppercase());
        self.files.iter().any(|(_, text)| match text.parse::<toml::Table>() {
            Ok(table) => table.contains_key(section),
            Err(_) => lines(text).any(|(of, _)| of == section),
        }) || self.environment.keys().any(|key| key.starts_with(&prefix))
            || self.flags.iter().any(|(key, _)| key.split('.').next() == Some(section))
    }

    /// Returns whether a line of a file has this word, in whatever section. Comments do not count.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.files.iter().any(|(_, text)| lines(text).any(|(_, line)| line.contains(word)))
    }

    /// Returns whether a file has a section whose name is at most two letters from this one, in whatever case.
    pub(super) fn has_section_like(&self, section: &str) -> bool {
        let is_like = |of: &str| {
            let name = of.trim_matches(['[', ']', '"', '\'', ' ']).to_lowercase();
            strsim::damerau_levenshtein(&name, section) <= 2
        };
        self.files.iter().any(|(_, text)| lines(text).any(|(of, _)| is_like(of)))
    }

    /// Whether each file is TOML and not empty.
    pub(super) fn is_whole(&self) -> bool {
        self.files.iter().all(|(_, text)| !text.trim().is_empty() && text.parse::<toml::Table>().is_ok())
    }

    /// One file of this text.
    pub fn of(path: &str, text: &str) -> Self {
        Self { files: vec![(path.into(), text.to_owned())], ..Self::default() }
    }

    /// With these variables.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = variables.into_iter().filter(|(key, _)| is_key(key)).collect();
        self
    }

    /// Returns a line for each variable that looks like a key of this configuration and is none. They are left out: one
    /// environment serves several programs.
    pub fn warnings(variables: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        let others = |key: &String| OTHER_PROGRAMS.iter().any(|other| key.starts_with(other));
        let is_strange = |key: &String| key.starts_with(PREFIX) && !is_key(key) && !others(key);
        let mut strange: Vec<String> = variables.into_iter().map(|(key, _)| key).filter(is_strange).collect();
        strange.sort();
        let keys: Vec<String> = schema::keys::<super::File>().iter().map(|key| variable(key)).collect();
        let line = |found: String| {
            let distance = |key: &&String| strsim::damerau_levenshtein(key, &found);
            let nearest = keys.iter().min_by_key(distance).filter(|key| distance(key) * 3 <= found.len());
            let meant = nearest.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            format!(
                "environment: found {found}, which is no key of the configuration and is left out; keys are WINGBEAT_SECTION__KEY{meant}"
            )
        };
        strange.into_iter().map(line).collect()
    }

    /// Returns those lines for the environment of this process.
    pub fn warnings_here() -> Vec<String> {
        Self::warnings(variables())
    }

    /// The folder of the main file, to which paths in the configuration are relative.
    pub(super) fn folder(&self) -> &Path {
        self.files.first().and_then(|(path, _)| path.parent()).unwrap_or(Path::new(""))
    }

    /// The files as one text, for [`Layers::from_kept`]. Environment and flags are not part of it: the next start has
    /// its own.
    pub(super) fn to_kept(&self) -> String {
        let files = self
            .files
            .iter()
            .map(|(path, text)| KeptFile { path: path.display().to_string(), text: text.clone() });
        toml::to_string(&Kept { files: files.collect() }).unwrap_or_default()
    }

    /// What [`Layers::to_kept`] gave, with the environment and flags of now.
    pub(super) fn from_kept(text: &str, flags: &Flags) -> Option<Self> {
        let kept: Kept = toml::from_str(text).ok()?;
        let files = kept.files.into_iter().map(|file| (file.path.into(), file.text)).collect();
        Some(Self { files, flags: flags.overrides.clone(), ..Self::default() }.environment(variables()))
    }

    /// The paths of the files that are read, in their order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// What sets a key: a flag, a variable of the environment, or the last file that has it; the main file where it has its
    /// default.
    pub fn place(&self, key: &str) -> String {
        if self.flags.iter().any(|(flag, _)| flag == key) {
            return format!("--set {key}");
        }
        let variable = variable(key);
        if self.environment.contains_key(&variable) {
            return variable;
        }
        let has = |text: &str| {
            let table = text.parse::<toml::Table>().map(toml::Value::Table).ok();
            key.split('.').try_fold(table?, |value, part| value.get(part).cloned())
        };
        let file = self.files.iter().rev().find(|(_, text)| has(text).is_some()).or(self.files.first());
        file.map_or_else(String::new, |(path, _)| path.display().to_string())
    }

    /// Each file strictly, then all together.
    pub(super) fn merged<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let mut strict = None;
        for (path, text) in &self.files {
            let file: T = toml::from_str(text).map_err(|error| ConfigError::Toml {
                path: path.display().to_string(),
                message: with_nearest::<T>(error.to_string().trim_end()),
            })?;
            strict = Some(file);
        }
        let is_alone = self.files.len() == 1 && self.environment.is_empty() && self.flags.is_empty();
        if let Some(strict) = strict.filter(|_| is_alone) {
            return Ok(strict);
        }
        // No `try_parsing`: it would turn an id of digits into a number and lose its zeros.
        let environment = config::Environment::with_prefix("WINGBEAT")
            .prefix_separator("_")
            .separator("__")
            .source(Some(self.environment.clone().into_iter().collect()));
        let mut builder = config::Config::builder();
        for (_, text) in &self.files {
            builder = builder.add_source(config::File::from_str(text, config::FileFormat::Toml));
        }
        builder = builder.add_source(environment);
        // The files alone were fine.
        let refused = |error: config::ConfigError| {
            ConfigError::Override(format!(
                "environment (WINGBEAT_...) or --set: {}",
                with_nearest::<T>(&error.to_string())
            ))
        };
        for (key, value) in &self.flags {
            builder = builder.set_override(key, value.as_str()).map_err(refused)?;
        }
        builder.build().and_then(config::Config::try_deserialize::<T>).map_err(refused)
    }
}

/// The value of a key in a text that may be no TOML.
fn stated_in(text: &str, section: &str, name: &str) -> Option<String> {
    if let Ok(table) = text.parse::<toml::Table>() {
        let value = table.get(section)?.get(name)?;
        return Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let of_key = |(of, line): (&str, &str)| {
        let (key, value) = line.split_once('=')?;
        let is_it = of == section && key.trim().rsplit('.').next() == Some(name);
        is_it.then(|| {
            let value = value.split('#').next().unwrap_or_default().trim();
            value.trim_matches('"').to_owned()
        })
    };
    lines(text).filter_map(of_key).last()
}

/// The lines of a text that may be no TOML, with the section of each; a header is a line too. Comments are left out.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(move |line| {
        if let Some(rest) = line.strip_prefix('[') {
            section = rest.split(']').next().unwrap_or(rest).trim();
            return (section, line);
        }
        // A dotted key names its section itself.
        let key = line.split('=').next().unwrap_or_default().trim();
        match key.split_once('.') {
            Some((of, _)) if section.is_empty() => (of.trim(), line),
            _ => (section, line),
        }
    })
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
}

/// serde's message, and the known key that an unknown one is likely to mean.
fn with_nearest<T: DeserializeOwned>(message: &str) -> String {
    let unknown = message.split_once("unknown field `").and_then(|(_, rest)| rest.split_once('`'));
    let Some((unknown, _)) = unknown else { return message.to_owned() };
    let version = env!("CARGO_PKG_VERSION");
    let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let keys = schema::keys::<T>();
    let nearest =
        keys.iter().min_by_key(|key| strsim::damerau_levenshtein(&name(key), unknown)).filter(|key| {
            // Every third letter may be another.
            strsim::damerau_levenshtein(&name(key), unknown) * 3 <= unknown.len()
        });
    let cure = nearest.map_or_else(String::new, |key| format!("did you mean {key}? "));
    format!(
        "{message}\n{cure}Wingbeat {version} has no such key; remove it, also if a newer version wrote it"
    )
}

/// The files of `conf.d` next to `main`, in the order of their names.
fn drop_ins(main: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let folder = main.parent().unwrap_or(Path::new("")).join(FOLDER);
    let refused = |found: String| ConfigError::File {
        path: folder.display().to_string(),
        found,
        expected: format!("a readable folder of at most {FILES_MAX} configuration files, or none"),
    };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(error.to_string())),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| refused(error.to_string()))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
        if paths.len() > FILES_MAX {
            return Err(refused("more".into()));
        }
    }
    paths.sort();
    Ok(paths)
}

fn load(path: &Path) -> Result<String, ConfigError> {
    let error = |found: String| ConfigError::File {
        path: path.display().to_string(),
        found,
        expected: format!("a readable configuration file of at most {FILE_MAX} bytes"),
    };
    let file = std::fs::File::open(path).map_err(|cause| error(cause.to_string()))?;
    let mut text = String::new();
    let length =
        file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|cause| error(cause.to_string()))?;
    if length as u64 > FILE_MAX { Err(error("a longer one".into())) } else { Ok(text) }
}
