//! What power cuts leave of flight logs: each is read up to its last good chunk, which holds all that the disk had confirmed.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use wingbeat_record::reader::{Log, ReadError};

use super::{
    disk::{Node, Tree},
    trace::{Change, Op},
};

/// No block of a log spans more of the agent's time, microseconds.
const BLOCK_AGE_US: u64 = 750_000;

/// What a cut takes at most, where the machine is not late, seconds: the promise of docs/records.md.
const LOST_S_MOST: f64 = 1.0;

/// A file's records.
#[derive(Clone, Debug)]
struct Read {
    blocks: Vec<u64>,
    is_ended: bool,
}

/// The whole logs, as the killed daemons left them, and what was read of parts of them.
pub(crate) struct Logs {
    whole: BTreeMap<PathBuf, Log>,
    known: BTreeMap<(PathBuf, u64), Result<Read, String>>,
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == wingbeat_record::store::ENDING)
}

fn folder(state: &Path) -> PathBuf {
    state.join("log")
}

fn files(state: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder(state))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_log(path))
        .collect()
}

/// Whether the newest of so many logs has so many blocks.
pub(crate) fn has(state: &Path, logs: usize, blocks: usize) -> bool {
    let mut files = files(state);
    files.sort();
    files.len() == logs && Log::read(&files[logs - 1]).is_ok_and(|log| log.blocks.len() >= blocks)
}

/// The state without what is in the logs.
pub(crate) fn listed(tree: &Tree) -> Tree {
    let node = |path: &Path, node: &Node| match node {
        Node::File(_) if is_log(path) => Node::File(vec![]),
        Node::File(_) | Node::Folder => node.clone(),
    };
    tree.iter().map(|(path, found)| (path.clone(), node(path, found))).collect()
}

/// Whether a daemon that was started on a state, and stopped, has left its logs alone and added its own, which is whole.
pub(crate) fn added(folder: &Path, state: &Path, tree: &Tree) -> Result<(), String> {
    let mut own = files(folder);
    for (path, node) in tree.iter().filter(|(path, _)| is_log(path)) {
        let path = folder.join(path.strip_prefix(state).unwrap());
        own.retain(|file| *file != path);
        if Node::File(fs::read(&path).map_err(|error| error.to_string())?) != *node {
            return Err(format!("{} was changed", path.display()));
        }
    }
    let [own] = &own[..] else { return Err(format!("found {own:?}, expected one more log")) };
    match Log::read(own) {
        Ok(Log { flaw: None, .. }) => Ok(()),
        Ok(log) => Err(format!("the next daemon's log: {:?}", log.flaw)),
        Err(error) => Err(format!("the next daemon's log: {error}")),
    }
}

impl Logs {
    /// The logs of a state directory whose daemons have all ended.
    pub(crate) fn of(state: &Path) -> Self {
        let whole: BTreeMap<_, _> =
            files(state).into_iter().map(|path| (path.clone(), Log::read(&path).unwrap())).collect();
        for (path, log) in &whole {
            assert!(!log.blocks.is_empty(), "{}: found no records, expected some", path.display());
        }
        Self { whole, known: BTreeMap::new() }
    }

    /// What is read of so much of a log. It has to be a part of the whole.
    fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<Read, String> {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let key = (path.to_owned(), hasher.finish());
        let whole = &self.whole[path];
        let read = || {
            let copy = tempfile::NamedTempFile::new().unwrap();
            fs::write(copy.path(), bytes).unwrap();
            let log = Log::read(copy.path()).map_err(|error| match error {
                ReadError::NoLog { found } => found,
                ReadError::Io(error) => panic!("{error}"),
            })?;
            if let Some(Err(error)) = log.entries().find(Result::is_err) {
                return Err(format!("a record: {error}"));
            }
            let same = log.blocks.iter().zip(&whole.blocks);
            if log.blocks.len() > whole.blocks.len() || same.clone().any(|(a, b)| a.records != b.records) {
                return Err("other records than were written".to_owned());
            }
            Ok(Read {
                blocks: log.blocks.iter().map(|block| block.from_us).collect(),
                is_ended: log.flaw.is_none(),
            })
        };
        self.known.entry(key).or_insert_with(read).clone()
    }

    /// Whether a state has all that the disk confirmed of each log, and each that was cut says so.
    pub(crate) fn judge(&mut self, tree: &Tree, synced: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
        let wrong = |path: &Path, what: &str| Err(format!("{}: {what}", path.display()));
        for (path, certain) in synced.iter().filter(|(path, _)| is_log(path)) {
            let Some(Node::File(bytes)) = tree.get(path) else { return wrong(path, "the log is gone") };
            let certain = self.read(path, certain)?.blocks.len();
            let found = self.read(path, bytes)?;
            if certain == 0 || found.blocks.len() < certain {
                return wrong(path, &format!("found {} blocks, expected {certain}", found.blocks.len()));
            }
            if found.is_ended && found.blocks.len() < self.whole[path].blocks.len() {
                return wrong(path, "it does not say that it was cut");
            }
        }
        // Of the others nothing was confirmed: they may be empty, but nothing in them may be taken for records.
        for (path, node) in tree.iter().filter(|(path, _)| is_log(path) && !synced.contains_key(*path)) {
            let Node::File(bytes) = node else { return wrong(path, "a folder") };
            if self.read(path, bytes).is_ok_and(|found| found.is_ended) {
                return wrong(path, "it does not say that it was cut");
            }
        }
        Ok(())
    }

    /// How much a cut takes: at each moment at which a daemon asks the disk to confirm a block, what it had recorded since
    /// the last that was confirmed. The block is at most so long by the agent's own time; the rest is this machine's.
    pub(crate) fn summary(&mut self, ops: &[Op]) -> String {
        let mut lost_s = vec![];
        for (path, log) in &self.whole {
            let inode = ops.iter().find_map(|op| match &op.change {
                Change::Create { path: made, inode } if made == path => Some(*inode),
                _ => None,
            });
            let base_us: u64 = log.about["utc_of_agent_time_zero_us"].parse().unwrap();
            let mut syncs =
                ops.iter().filter(|op| Some(op.change.clone()) == inode.map(|inode| Change::Sync { inode }));
            for (number, block) in log.blocks.iter().enumerate() {
                let Some(sync) = syncs.next() else {
                    // One that was killed while it waited for the disk.
                    assert!(
                        number + 1 == log.blocks.len(),
                        "{}: a block was never confirmed",
                        path.display()
                    );
                    break;
                };
                let one = Log { blocks: vec![block.clone()], ..Log::default() };
                let end_us = one.entries().last().unwrap().unwrap().at.as_micros();
                assert!(
                    end_us < block.from_us + BLOCK_AGE_US,
                    "{}: a block of {} us",
                    path.display(),
                    end_us - block.from_us
                );
                lost_s.push(sync.begun_s - (base_us + block.from_us) as f64 / 1e6);
            }
        }
        lost_s.sort_by(f64::total_cmp);
        let (median, most) = (lost_s[lost_s.len() / 2], lost_s[lost_s.len() - 1]);
        assert!(
            median <= LOST_S_MOST,
            "a cut takes {median:.2} s in the median, expected at most {LOST_S_MOST}"
        );
        format!(
            "{} logs, {} blocks; a cut takes up to {median:.2} s of one in the median, {most:.2} s at most",
            self.whole.len(),
            lost_s.len()
        )
    }
}
