//! A fleet's logs in one folder: `OUT/EXPERIMENT/UTC/aircraft-N/…`, and `manifest.json`.
//!
//! ```text
//! aircraft ──list──▶ which files ──ranges──▶ NAME.part ──hashes of its pieces──▶ NAME, in the manifest
//! ```
//!
//! What it promises: an aircraft that does not answer is named in the manifest and ends nothing; what was received is kept,
//! and another run with `resume` asks for the rest only; a file is in the manifest once every piece of it has the hash that
//! the aircraft has. No name that an aircraft sends becomes a path unless it has the form of a log's, and no more of a file
//! is held in memory than a piece that the network delivers.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use reqwest::{Client, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use wingbeat_api::{
    AutopilotLogRequest, AutopilotLogWork, AutopilotLogs, BUNDLE_FORMAT, Bundle, BundledAircraft,
    BundledChecklist, BundledClock, BundledFile, LOG_PIECE_MAX, LogFile, LogFiles, LogHash, LogKind, Missing,
    paths,
};
use wingbeat_keys::ConsoleKeys;

use crate::checklist::is_result;
use crate::client::{self, Clients};
use crate::{StartError, addresses};

/// The manifest's name.
pub const MANIFEST: &str = "manifest.json";
/// The folder of what was kept of checklists.
const CHECKLISTS: &str = "checklists";
/// Aircraft that are asked at the same time: they share the air.
const AT_ONCE: usize = 4;
/// A download without a byte for so long is begun anew where it ended.
const STALL: Duration = Duration::from_secs(10);
/// Tries without a byte more, and hashes that differ, until a file is given up.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);
/// An aircraft hashes a piece, after those that others wait for.
const HASH_LIMIT: Duration = Duration::from_secs(30);
/// The flight controller's logs, which an aircraft fetches: without a byte more for so long they are left.
const FETCH_STALL: Duration = Duration::from_secs(60);
/// Files of one aircraft, and the length of one: what it states beyond is refused.
const FILES_MAX: usize = 4096;
const FILE_LEN_MAX: u64 = 8 << 30;
/// The longest name of a file and of an experiment.
const NAME_MAX: usize = 64;
const BUFFER: usize = 64 * 1024;
/// Bytes that a bundle leaves free on its disk: room for the manifest, which says what did not fit.
pub const FREE_LEAST: u64 = 8 << 20;

/// What is collected, and where to.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The folder of all experiments.
    pub out: PathBuf,
    /// The experiment: letters, digits, dot, hyphen and underscore.
    pub experiment: String,
    /// Files that were written within so many hours.
    pub hours: u32,
    /// Continue the experiment's newest bundle.
    pub resume: bool,
    /// The flight controllers' own logs, so many of each, the newest; 0 for none.
    pub autopilot_logs: u16,
    /// Bytes that stay free on the disk: [`FREE_LEAST`].
    pub free_least: u64,
    /// Reads the clocks of a flight log, and why it ends before its end; nothing is known of them without.
    pub read_clock: Option<ReadClock>,
    /// What the ground service kept of its checklist with flights, by name: it is a part of the bundle.
    pub checklists: Vec<(String, Vec<u8>)>,
    /// What of that it did not give.
    pub missing: Vec<Missing>,
}

/// The clocks of a flight log, and why that ends before its end; or why it cannot be read.
pub type ReadClock = fn(&Path) -> Result<(BundledClock, Option<String>), String>;

/// An aircraft that is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The address of its API.
    pub address: String,
    /// Its id, where it is known: another that answers there is not collected.
    pub id: Option<String>,
    /// Its display name, where it is known.
    pub name: String,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// An aircraft's file: bytes that are there, and its length.
    Receives(&'a Source, &'a str, u64, u64),
    /// A file is whole.
    Holds(&'a Source, &'a BundledFile),
    /// Something is missing.
    Lacks(&'a Source, &'a Missing),
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// An address, or no client.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The experiment's name.
    #[error(
        "experiment: found {0:?}, expected 1 to {NAME_MAX} letters, digits, dots, hyphens and underscores, the first a letter or digit"
    )]
    Experiment(String),
    /// The folder.
    #[error("{}: found {found}, expected {expected}", .path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
    /// No aircraft.
    #[error("aircraft: found none, expected the address of at least one")]
    NoAircraft,
}

fn at(path: &Path, expected: &'static str) -> impl Fn(io::Error) -> BundleError {
    move |error| BundleError::Folder { path: path.into(), found: error.to_string(), expected }
}

/// Whether a name can be a file's and a folder's on every system.
fn is_plain(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !name.ends_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

/// Whether a name that an aircraft sent is one of a log of this kind.
fn is_log(file: &LogFile) -> bool {
    let has_numbers = |text: &str, count: usize| {
        let numbers: Vec<&str> = text.split('-').collect();
        numbers.len() == count
            && numbers.iter().all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let numbers = match file.kind {
        LogKind::Flight => file.name.strip_suffix(".mcap"),
        LogKind::Autopilot => file.name.strip_prefix("autopilot-").and_then(|name| name.strip_suffix(".bin")),
    };
    is_plain(&file.name) && numbers.is_some_and(|text| has_numbers(text, 2))
}

/// The folder of a bundle, for this process alone.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    _lock: Option<fs::File>,
}

impl Folder {
    fn open(wanted: &Wanted, now: Timestamp) -> Result<(Self, Bundle), BundleError> {
        const EXPECTED: &str = "a folder that can be written";
        if !is_plain(&wanted.experiment) {
            return Err(BundleError::Experiment(wanted.experiment.chars().take(NAME_MAX).collect()));
        }
        let experiment = wanted.out.join(&wanted.experiment);
        fs::create_dir_all(&experiment).map_err(at(&experiment, EXPECTED))?;
        if wanted.resume {
            let path = newest(&experiment)?;
            let folder = Self { _lock: lock(&path)?, path };
            let bundle = folder.read()?;
            return Ok((folder, bundle));
        }
        let utc = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        // Another may have been begun in the same second.
        let mut path = experiment.join(&utc);
        let mut number = 1;
        while let Err(error) = fs::create_dir(&path) {
            number += 1;
            if error.kind() != io::ErrorKind::AlreadyExists || number > 99 {
                return Err(at(&path, EXPECTED)(error));
            }
            path = experiment.join(format!("{utc}-{number:02}"));
        }
        let bundle = Bundle {
            format: BUNDLE_FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            experiment: wanted.experiment.clone(),
            begun: now.to_string(),
            ..Bundle::default()
        };
        Ok((Self { _lock: lock(&path)?, path }, bundle))
    }

    fn read(&self) -> Result<Bundle, BundleError> {
        const EXPECTED: &str = "the manifest of a bundle of this version";
        let path = self.path.join(MANIFEST);
        let text = fs::read(&path).map_err(at(&path, EXPECTED))?;
        let refused = |found: String| BundleError::Folder { path: path.clone(), found, expected: EXPECTED };
        let bundle: Bundle = serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        if bundle.format != BUNDLE_FORMAT {
            return Err(refused(format!("form {}", bundle.format)));
        }
        // A file's name is a path below.
        match bundle.aircraft.iter().find(|one| !is_plain(&one.folder)) {
            Some(one) => Err(refused(format!("the folder {:?}", one.folder))),
            None => Ok(bundle),
        }
    }

    /// Replaces the manifest, so that a power cut leaves this or the one before.
    fn write(&self, bundle: &Bundle) -> Result<(), BundleError> {
        let path = self.path.join(MANIFEST);
        let new = self.path.join("manifest.new");
        let write = || -> io::Result<()> {
            let mut file = fs::File::create(&new)?;
            file.write_all(format!("{}\n", serde_json::to_string_pretty(bundle)?).as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        // Half of one takes room that a full disk has not.
        write().inspect_err(|_| drop(fs::remove_file(&new))).map_err(at(&path, "to write the manifest there"))
    }
}

impl Folder {
    /// Files of the ground service, in a folder of their own. A name that is none of theirs, which another service may have sent,
    /// becomes no path.
    fn keep_checklists(&self, bundle: &mut Bundle, files: &[(String, Vec<u8>)]) -> Result<(), BundleError> {
        let folder = self.path.join(CHECKLISTS);
        for (name, bytes) in files.iter().filter(|(name, _)| is_result(name)) {
            fs::create_dir_all(&folder).map_err(at(&folder, "a folder that can be written"))?;
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(at(&path, "a file that can be written"))?;
            let kept = BundledChecklist {
                name: name.clone(),
                bytes: bytes.len() as u64,
                sha256: wingbeat_keys::file::hexadecimal(&Sha256::digest(bytes)),
            };
            bundle.checklists.retain(|known| known.name != kept.name);
            bundle.checklists.push(kept);
        }
        bundle.checklists.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

/// The newest bundle of an experiment.
fn newest(experiment: &Path) -> Result<PathBuf, BundleError> {
    const EXPECTED: &str = "a bundle that was begun before (--resume)";
    let entries = fs::read_dir(experiment).map_err(at(experiment, EXPECTED))?;
    let folders =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.join(MANIFEST).is_file());
    let none = || BundleError::Folder { path: experiment.into(), found: "none".into(), expected: EXPECTED };
    folders.max().ok_or_else(none)
}

/// Takes a folder for this process, where the system can.
fn lock(path: &Path) -> Result<Option<fs::File>, BundleError> {
    #[cfg(unix)]
    {
        let folder = fs::File::open(path).map_err(at(path, "a folder"))?;
        rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
            |error| {
                let found = match error {
                    rustix::io::Errno::WOULDBLOCK => "another program collecting a bundle there".to_owned(),
                    error => error.to_string(),
                };
                BundleError::Folder {
                    path: path.into(),
                    found,
                    expected: "a folder that no other collects in",
                }
            },
        )?;
        Ok(Some(folder))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        Ok(None)
    }
}

/// Collects the logs of these aircraft. Returns the bundle's folder and its manifest, in which is what is missing.
///
/// # Errors
/// Nothing can be collected: an address that is none, no client, or a folder that cannot be written.
pub async fn collect(
    wanted: &Wanted,
    keys: Option<&ConsoleKeys>,
    sources: &[Source],
    watch: &(dyn Fn(Step<'_>) + Sync),
) -> Result<(PathBuf, Bundle), BundleError> {
    let keys = keys.and_then(|keys| wingbeat_tls::Identity::new(&keys.keys.signer, &keys.keys.roster));
    collect_with(wanted, keys.as_ref(), sources, watch).await
}

/// As [`collect`], with the connection's keys.
pub(crate) async fn collect_with(
    wanted: &Wanted,
    keys: Option<&wingbeat_tls::Identity>,
    sources: &[Source],
    watch: &(dyn Fn(Step<'_>) + Sync),
) -> Result<(PathBuf, Bundle), BundleError> {
    if sources.is_empty() {
        return Err(BundleError::NoAircraft);
    }
    let found: Vec<String> = sources.iter().map(|source| source.address.clone()).collect();
    let addresses = addresses(&found, if keys.is_some() { "https" } else { "http" })?;
    let clients = Clients::new(keys.cloned()).map_err(StartError::from)?;
    let (folder, mut bundle) = Folder::open(wanted, Timestamp::now())?;
    bundle.ended = None;
    bundle.missing.clone_from(&wanted.missing);
    folder.keep_checklists(&mut bundle, &wanted.checklists)?;
    let mut places = Vec::new();
    for (source, address) in sources.iter().zip(addresses) {
        let source = Source { address, ..source.clone() };
        let known = |one: &BundledAircraft| match (&one.id, &source.id) {
            (Some(one), Some(id)) => one == id,
            _ => one.address == source.address,
        };
        let place = match bundle.aircraft.iter().position(known) {
            Some(place) => place,
            None => {
                let folder = format!("aircraft-{}", bundle.aircraft.len() + 1);
                bundle.aircraft.push(BundledAircraft { folder, ..BundledAircraft::default() });
                bundle.aircraft.len() - 1
            }
        };
        let one = &mut bundle.aircraft[place];
        one.address = source.address.clone();
        one.id = one.id.take().or_else(|| source.id.clone());
        if one.name.is_empty() {
            one.name = source.name.clone();
        }
        one.missing = vec![Missing { what: "aircraft".into(), why: "not asked yet".into() }];
        places.push((place, source, one.clone()));
    }
    folder.write(&bundle)?;
    let path = folder.path.as_path();
    let clients = &clients;
    let each = places.into_iter().map(|(place, source, one)| async move {
        let worker = Worker { wanted, clients, source: &source, folder: path.join(&one.folder), watch };
        (place, worker.collect(one).await)
    });
    let mut done = stream::iter(each).buffer_unordered(AT_ONCE);
    while let Some((place, one)) = done.next().await {
        bundle.aircraft[place] = one;
        folder.write(&bundle)?;
    }
    drop(done);
    bundle.complete = bundle.missing.is_empty() && bundle.aircraft.iter().all(|one| one.missing.is_empty());
    bundle.ended = Some(Timestamp::now().to_string());
    folder.write(&bundle)?;
    Ok((folder.path.clone(), bundle))
}

/// What collects from one aircraft.
struct Worker<'a> {
    wanted: &'a Wanted,
    clients: &'a Clients,
    source: &'a Source,
    folder: PathBuf,
    watch: &'a (dyn Fn(Step<'_>) + Sync),
}

/// Why a file did not come.
enum Failed {
    /// Another try may do.
    Again(String),
    /// None will.
    Finally(String),
}

impl Worker<'_> {
    /// Collects what is not there yet; what was there before stays, whether the aircraft answers or not.
    async fn collect(&self, mut one: BundledAircraft) -> BundledAircraft {
        one.missing.clear();
        match self.files(&mut one).await {
            Ok((client, files)) => {
                for file in files {
                    self.file(&client, &mut one, file).await;
                }
            }
            Err(why) => self.lacks(&mut one, "aircraft", why),
        }
        one.files.sort_by(|a, b| a.name.cmp(&b.name));
        one
    }

    fn lacks(&self, one: &mut BundledAircraft, what: &str, why: String) {
        let missing = Missing { what: what.into(), why };
        (self.watch)(Step::Lacks(self.source, &missing));
        one.missing.push(missing);
    }

    /// Which files it has of those that are wanted.
    async fn files(&self, one: &mut BundledAircraft) -> Result<(Client, Vec<LogFile>), String> {
        let address = &self.source.address;
        let identity = client::identity(self.clients, address).await?;
        if let Some(id) = one.id.as_ref().filter(|id| **id != identity.id) {
            return Err(format!("found aircraft {} at this address, expected {id}", identity.id));
        }
        let client = self.clients.of(&identity.id)?;
        (one.id, one.name) = (Some(identity.id), identity.name);
        (one.version, one.protocol) = (identity.version, identity.protocol);
        if self.wanted.autopilot_logs > 0
            && let Err(why) = self.fetch_autopilot_logs(&client).await
        {
            self.lacks(one, "flight controller's logs", why);
        }
        let list: LogFiles = client::get(&client, address, paths::LOGS).await?;
        let found = list.files.len();
        let most = u64::from(self.wanted.hours) * 3600;
        let mut names = BTreeSet::new();
        let mut files = Vec::new();
        for file in list.files.into_iter().take(FILES_MAX) {
            let shown: String = file.name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
            if !is_log(&file) || !names.insert(file.name.clone()) {
                self.lacks(
                    one,
                    "a file",
                    format!("found the name {shown:?}, expected that of a log, each once"),
                );
            } else if file.bytes > FILE_LEN_MAX {
                self.lacks(
                    one,
                    &shown,
                    format!("found {} bytes, expected at most {FILE_LEN_MAX}", file.bytes),
                );
            } else if file.age_s <= most {
                files.push(file);
            }
        }
        if found > FILES_MAX {
            self.lacks(one, "files", format!("found {found} files, expected at most {FILES_MAX}"));
        }
        if let Some(problem) = list.problem {
            self.lacks(one, "flight logs", problem);
        } else if files.is_empty() {
            let hours = self.wanted.hours;
            self.lacks(
                one,
                "flight logs",
                format!("found none of the last {hours} h, expected at least one"),
            );
        }
        Ok((client, files))
    }

    /// Has the aircraft fetch its flight controller's logs, and waits for it.
    async fn fetch_autopilot_logs(&self, client: &Client) -> Result<(), String> {
        let (address, path) = (&self.source.address, paths::AUTOPILOT_LOGS);
        let request = AutopilotLogRequest { newest: self.wanted.autopilot_logs };
        let (status, body) =
            client::ask(client, client::Method::POST, address, path, Some(&request), None).await?;
        if !status.is_success() {
            return Err(client::refusal(status, &body));
        }
        let (mut before, mut grew_at) = (AutopilotLogs::default(), Instant::now());
        loop {
            sleep(PAUSE).await;
            match client::get::<AutopilotLogs>(client, address, path).await {
                Ok(now) if now.work == AutopilotLogWork::None => return now.problem.map_or(Ok(()), Err),
                Ok(now) => {
                    if let Some(name) = &now.log {
                        let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
                        let (held, of) = (now.received_bytes.into(), now.bytes.into());
                        (self.watch)(Step::Receives(self.source, &name, held, of));
                    }
                    if now != before {
                        (before, grew_at) = (now, Instant::now());
                    }
                }
                // It is asked again until it is too long ago.
                Err(_) if grew_at.elapsed() < FETCH_STALL => {}
                Err(why) => return Err(why),
            }
            if grew_at.elapsed() >= FETCH_STALL {
                let seconds = FETCH_STALL.as_secs();
                return Err(format!(
                    "found nothing more for {seconds} s, expected the flight controller's logs"
                ));
            }
        }
    }

    /// Fetches a file, and enters it.
    async fn file(&self, client: &Client, one: &mut BundledAircraft, file: LogFile) {
        match self.fetch(client, &file).await {
            Ok(sha256) => {
                let path = self.folder.join(&file.name);
                let (mut clock, mut flaw) = (None, None);
                if let Some(read) = self.wanted.read_clock.filter(|_| file.kind == LogKind::Flight) {
                    match spawn_blocking(move || read(&path)).await {
                        Ok(Ok((found, why))) => (clock, flaw) = (Some(found), why),
                        Ok(Err(why)) => flaw = Some(why),
                        Err(error) => flaw = Some(error.to_string()),
                    }
                }
                let held =
                    BundledFile { name: file.name, kind: file.kind, bytes: file.bytes, sha256, clock, flaw };
                (self.watch)(Step::Holds(self.source, &held));
                one.files.retain(|other| other.name != held.name);
                one.files.push(held);
            }
            Err(why) => self.lacks(one, &file.name, why),
        }
    }

    /// Fetches what is not there yet, and verifies all of it. Its hash.
    async fn fetch(&self, client: &Client, file: &LogFile) -> Result<String, String> {
        let local =
            |error: io::Error| format!("{}: found {error}, expected to write it", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(local)?;
        let whole = self.folder.join(&file.name);
        let part = self.folder.join(format!("{}.part", file.name));
        if let Ok(held) = fs::metadata(&whole) {
            if held.len() > file.bytes {
                return Err(format!(
                    "found a file of this name with {} bytes here, expected at most the aircraft's {}: it stays as it is",
                    held.len(),
                    file.bytes
                ));
            }
            // It is verified again, and may have grown.
            fs::rename(&whole, &part).map_err(local)?;
        }
        let (mut tries, mut differs) = (0, 0);
        loop {
            let before = fs::metadata(&part).map_or(0, |held| held.len());
            match self.receive(client, file, &part).await {
                Ok(()) => {}
                Err(Failed::Finally(why)) => return Err(why),
                Err(Failed::Again(why)) => {
                    let after = fs::metadata(&part).map_or(0, |held| held.len());
                    tries = if after > before { 0 } else { tries + 1 };
                    if tries >= TRIES {
                        return Err(format!("{why}; {after} of {} bytes are here", file.bytes));
                    }
                    sleep(PAUSE).await;
                    continue;
                }
            }
            match self.verify(client, file, &part).await? {
                Ok(sha256) => {
                    fs::rename(&part, &whole).map_err(local)?;
                    return Ok(sha256);
                }
                Err(good) => {
                    differs += 1;
                    if differs >= TRIES {
                        let what = "found other bytes than the aircraft's by their hash";
                        return Err(format!("{what}, after byte {good}, {differs} times, expected the same"));
                    }
                    // Only what is behind the last good piece is asked for again.
                    let cut = fs::OpenOptions::new().write(true).open(&part);
                    cut.and_then(|file| file.set_len(good)).map_err(local)?;
                }
            }
        }
    }

    /// Receives the bytes that are not there yet.
    async fn receive(&self, client: &Client, file: &LogFile, part: &Path) -> Result<(), Failed> {
        let local = |error: io::Error| {
            Failed::Finally(format!("found {error}, expected to write {}", part.display()))
        };
        let mut to =
            tokio::fs::OpenOptions::new().append(true).create(true).open(part).await.map_err(local)?;
        let mut held = to.metadata().await.map_err(local)?.len();
        if held > file.bytes {
            to.set_len(file.bytes).await.map_err(local)?;
            held = file.bytes;
        }
        if held == file.bytes {
            return Ok(());
        }
        self.has_room()?;
        let url = format!("{}{}?name={}", self.source.address, paths::LOG_FILE, file.name);
        let range = format!("bytes={held}-{}", file.bytes - 1);
        let sent = timeout(STALL, client.get(url).header(header::RANGE, range).send()).await;
        let late = || Failed::Again(format!("found nothing for {} s, expected its bytes", STALL.as_secs()));
        let mut response =
            sent.map_err(|_| late())?.map_err(|error| Failed::Again(client::reason(&error)))?;
        let status = response.status();
        if status != StatusCode::PARTIAL_CONTENT {
            let body = timeout(STALL, client::body(&mut response)).await.map_err(|_| late())?;
            let why = client::refusal(status, &body.unwrap_or_default());
            return Err(match status {
                StatusCode::SERVICE_UNAVAILABLE => Failed::Again(why),
                _ => Failed::Finally(why),
            });
        }
        let found = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
        if !found.is_some_and(|found| found.starts_with(&format!("bytes {held}-"))) {
            let found: String = found.unwrap_or("no range").chars().take(NAME_MAX).collect();
            return Err(Failed::Finally(format!("found {found:?}, expected the bytes from {held} on")));
        }
        let mut result = Ok(());
        while held < file.bytes {
            let piece = match timeout(STALL, response.chunk()).await {
                Err(_) => Err(late()),
                Ok(Err(error)) => Err(Failed::Again(client::reason(&error))),
                Ok(Ok(None)) => {
                    Err(Failed::Again("found the end of its answer before that of the file".into()))
                }
                Ok(Ok(Some(piece))) => Ok(piece),
            };
            match piece {
                Ok(piece) => {
                    let room = usize::try_from(file.bytes - held).unwrap_or(usize::MAX);
                    let piece = &piece[..piece.len().min(room)];
                    self.has_room()?;
                    to.write_all(piece).await.map_err(local)?;
                    held += piece.len() as u64;
                    (self.watch)(Step::Receives(self.source, &file.name, held, file.bytes));
                }
                Err(failed) => {
                    result = Err(failed);
                    break;
                }
            }
        }
        to.flush().await.map_err(local)?;
        to.sync_all().await.map_err(local)?;
        result
    }

    /// Whether the disk has room for more, and for the manifest after it.
    fn has_room(&self) -> Result<(), Failed> {
        match free(&self.folder) {
            Some(free) if free < self.wanted.free_least => Err(Failed::Finally(format!(
                "{}: found {free} bytes free on its disk, expected at least {} to stay so; what is here stays",
                self.folder.display(),
                self.wanted.free_least
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Compares the hash of each piece with the aircraft's: that of all of it, or how many bytes are good.
    async fn verify(
        &self,
        client: &Client,
        file: &LogFile,
        part: &Path,
    ) -> Result<Result<String, u64>, String> {
        let path = part.to_owned();
        let hashed = spawn_blocking(move || hashes(&path)).await.map_err(|error| error.to_string())?;
        let (all, pieces) =
            hashed.map_err(|error| format!("found {error}, expected to read {}", part.display()))?;
        let mut from = 0;
        for own in pieces {
            let bytes = (file.bytes - from).min(LOG_PIECE_MAX);
            let query = format!("{}?name={}&from={from}&bytes={bytes}", paths::LOG_HASH, file.name);
            let asked = client.get(format!("{}{query}", self.source.address)).timeout(HASH_LIMIT).send();
            let mut response = asked.await.map_err(|error| client::reason(&error))?;
            let body = client::body(&mut response).await?;
            if !response.status().is_success() {
                return Err(client::refusal(response.status(), &body));
            }
            let theirs: LogHash = serde_json::from_slice(&body)
                .map_err(|error| format!("{} is not what was expected: {error}", paths::LOG_HASH))?;
            if theirs.sha256 != own {
                return Ok(Err(from));
            }
            from += bytes;
        }
        Ok(Ok(all))
    }
}

/// Bytes that this user may write on the disk of a folder, where the system says so.
fn free(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

fn digits(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of a file, and those of its pieces.
fn hashes(path: &Path) -> io::Result<(String, Vec<String>)> {
    let mut file = fs::File::open(path)?;
    let (mut all, mut piece, mut pieces, mut buffer) =
        (Sha256::new(), Sha256::new(), Vec::new(), vec![0; BUFFER]);
    let mut left = LOG_PIECE_MAX;
    loop {
        let most = BUFFER.min(usize::try_from(left).unwrap_or(BUFFER));
        let read = file.read(&mut buffer[..most])?;
        all.update(&buffer[..read]);
        piece.update(&buffer[..read]);
        left -= read as u64;
        if (read == 0 && left < LOG_PIECE_MAX) || left == 0 {
            pieces.push(digits(std::mem::take(&mut piece)));
            left = LOG_PIECE_MAX;
        }
        if read == 0 {
            return Ok((digits(all), pieces));
        }
    }
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
