//! What a disk may hold after its power was cut: more than any file system in use here leaves.
//!
//! On the disk is what was synced: the content of a file by its own `fsync`, a name by that of its folder. Of what was not, any part
//! may be there: each name that was made, replaced or removed by itself, in whatever order, and nothing of a folder whose
//! own name is missing; of a file, beyond what was synced and is not written over, all that was written, half of it, nothing,
//! zeros of the right length, or what was synced before. ext4, btrfs and xfs leave less, because they keep the order of
//! names and put a new file's name on the disk with its content.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::trace::{Change, Inode, Op};

/// What is in the folder after a cut.
pub(crate) type Tree = BTreeMap<PathBuf, Node>;

/// What a name is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Folder,
    File(Vec<u8>),
}

/// More names than these are never pending: each doubles the states.
const PENDING_MAX: usize = 8;

/// A file's content: what is on the disk for certain, and what it is now.
#[derive(Clone, Debug, Default)]
struct File {
    synced: Option<Vec<u8>>,
    /// So much of what was synced is as it was.
    kept: usize,
    now: Vec<u8>,
}

impl File {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.kept = self.kept.min(at);
        self.now.resize(self.now.len().max(at + bytes.len()), 0);
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn truncate(&mut self) {
        self.kept = 0;
        self.now.clear();
    }

    fn sync(&mut self) {
        self.kept = self.now.len();
        self.synced = Some(self.now.clone());
    }

    /// What may be left.
    fn left(&self) -> Vec<Vec<u8>> {
        let Self { synced, kept, now } = self;
        if synced.as_ref() == Some(now) {
            return vec![now.clone()];
        }
        let (certain, rest) = now.split_at(*kept);
        let rests = [rest.to_vec(), rest[..rest.len() / 2].to_vec(), vec![], vec![0; rest.len()]];
        let mut left: Vec<_> = rests.iter().map(|rest| [certain, rest].concat()).collect();
        left.extend(synced.clone());
        left.sort();
        left.dedup();
        left
    }
}

/// The content of every file after these changes.
fn files(ops: &[Op]) -> BTreeMap<Inode, File> {
    let mut files: BTreeMap<Inode, File> = BTreeMap::new();
    for Op { change, .. } in ops {
        match change {
            Change::Create { inode, .. } => drop(files.insert(*inode, File::default())),
            Change::Truncate { inode } => files.get_mut(inode).unwrap().truncate(),
            Change::Write { inode, at, bytes } => files.get_mut(inode).unwrap().write(*at, bytes),
            Change::Sync { inode } => files.get_mut(inode).unwrap().sync(),
            Change::MakeFolder { .. } | Change::SyncFolder { .. } => {}
            Change::Rename { .. } | Change::Link { .. } | Change::Unlink { .. } => {}
        }
    }
    files
}

/// What is certainly on the disk, at a cut before the change number `cut`, of the files that keep the name under which they
/// were made.
pub(crate) fn synced(ops: &[Op], cut: usize) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files(&ops[..cut]);
    let made = ops[..cut].iter().filter_map(|op| match &op.change {
        Change::Create { path, inode } => Some((path.clone(), files[inode].synced.clone()?)),
        Change::MakeFolder { .. } | Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } => {
            None
        }
        Change::SyncFolder { .. } | Change::Rename { .. } | Change::Link { .. } | Change::Unlink { .. } => {
            None
        }
    });
    made.collect()
}

/// Every state in which a cut before the change number `cut` may leave the folder.
pub(crate) fn states(ops: &[Op], cut: usize) -> BTreeSet<Tree> {
    let files = files(&ops[..cut]);
    // Changes of names, and whether each is on the disk.
    let mut names: Vec<(&Change, bool)> = vec![];
    for Op { change, .. } in &ops[..cut] {
        match change {
            Change::MakeFolder { .. }
            | Change::Create { .. }
            | Change::Rename { .. }
            | Change::Link { .. }
            | Change::Unlink { .. } => names.push((change, false)),
            Change::SyncFolder { path } => {
                for (change, is_synced) in &mut names {
                    *is_synced |= places(change).iter().any(|place| place.parent() == Some(path));
                }
            }
            Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } => {}
        }
    }
    let pending: Vec<usize> = (0..names.len()).filter(|i| !names[*i].1).collect();
    assert!(pending.len() <= PENDING_MAX, "{} names are pending: {names:?}", pending.len());
    let made: BTreeSet<&Path> = names.iter().filter_map(|(change, _)| folder(change)).collect();
    let mut all = BTreeSet::new();
    for chosen in 0..1_u32 << pending.len() {
        let is_there = |i: usize| {
            names[i].1 || pending.iter().position(|p| *p == i).is_some_and(|bit| chosen >> bit & 1 == 1)
        };
        // A folder has no inode here.
        let mut tree: BTreeMap<&Path, Option<Inode>> = BTreeMap::new();
        for (_, (change, _)) in names.iter().enumerate().filter(|(i, _)| is_there(*i)) {
            match change {
                Change::MakeFolder { path } => {
                    tree.insert(path, None);
                }
                Change::Create { path, inode } | Change::Link { to: path, inode } => {
                    tree.insert(path, Some(*inode));
                }
                Change::Rename { from, to, inode } => {
                    tree.remove(from.as_path());
                    tree.insert(to, Some(*inode));
                }
                Change::Unlink { path } => {
                    tree.remove(path.as_path());
                }
                Change::Truncate { .. }
                | Change::Write { .. }
                | Change::Sync { .. }
                | Change::SyncFolder { .. } => {}
            }
        }
        let is_lost =
            |path: &Path| made.iter().any(|folder| path.starts_with(folder) && !tree.contains_key(folder));
        let lost: Vec<&Path> = tree.keys().copied().filter(|path| is_lost(path)).collect();
        for path in lost {
            tree.remove(path);
        }
        let inodes: BTreeSet<Inode> = tree.values().copied().flatten().collect();
        let mut contents: Vec<BTreeMap<Inode, Vec<u8>>> = vec![BTreeMap::new()];
        for inode in inodes {
            let left = files[&inode].left();
            contents = contents
                .iter()
                .flat_map(|so_far| {
                    left.iter().map(move |bytes| {
                        let mut next = so_far.clone();
                        next.insert(inode, bytes.clone());
                        next
                    })
                })
                .collect();
        }
        all.extend(contents.iter().map(|content| {
            let node = |inode: &Option<Inode>| {
                inode.map_or(Node::Folder, |inode| Node::File(content[&inode].clone()))
            };
            tree.iter().map(|(path, inode)| (path.to_path_buf(), node(inode))).collect::<Tree>()
        }));
    }
    all
}

fn places(change: &Change) -> Vec<&Path> {
    match change {
        Change::MakeFolder { path } | Change::Create { path, .. } | Change::Unlink { path } => vec![path],
        Change::Link { to, .. } => vec![to],
        Change::Rename { from, to, .. } => vec![from, to],
        Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } | Change::SyncFolder { .. } => {
            vec![]
        }
    }
}

/// The folder that is made.
fn folder(change: &Change) -> Option<&Path> {
    match change {
        Change::MakeFolder { path } => Some(path),
        Change::Create { .. } | Change::Rename { .. } | Change::Link { .. } | Change::Unlink { .. } => None,
        Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } | Change::SyncFolder { .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(change: Change) -> Op {
        Op { begun_s: 0.0, change }
    }

    fn path(name: &str) -> PathBuf {
        Path::new("/state").join(name)
    }

    fn written(name: &str, inode: Inode, text: &str) -> Vec<Op> {
        vec![
            op(Change::Create { path: path(name), inode }),
            op(Change::Write { inode, at: 0, bytes: text.into() }),
        ]
    }

    /// The texts that the file may have, none where it may be missing.
    fn texts(ops: &[Op], name: &str) -> BTreeSet<Option<Vec<u8>>> {
        let file = |tree: &Tree| match tree.get(&path(name)) {
            Some(Node::File(bytes)) => Some(bytes.clone()),
            Some(Node::Folder) | None => None,
        };
        states(ops, ops.len()).iter().map(file).collect()
    }

    fn expected(texts: &[Option<&str>]) -> BTreeSet<Option<Vec<u8>>> {
        texts.iter().map(|text| text.map(|text| text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn what_was_not_synced_may_be_missing_empty_half_or_zeros() {
        let ops = written("a", 0, "abcd");
        let all = [None, Some(""), Some("ab"), Some("\0\0\0\0"), Some("abcd")];
        assert_eq!(texts(&ops, "a"), expected(&all));
    }

    #[test]
    fn a_file_in_place_that_is_replaced_without_a_sync_may_be_lost() {
        let synced = [op(Change::Sync { inode: 0 }), op(Change::SyncFolder { path: "/state".into() })];
        let mut ops = [written("a", 0, "old!"), synced.to_vec(), written("a.new", 1, "new!")].concat();
        ops.push(op(Change::Rename { from: path("a.new"), to: path("a"), inode: 1 }));
        assert!(texts(&ops, "a").contains(&Some(vec![])), "the classic mistake is found");
        let at = ops.len() - 1;
        ops.insert(at, op(Change::Sync { inode: 1 }));
        assert_eq!(texts(&ops, "a"), expected(&[Some("old!"), Some("new!")]));
        ops.push(op(Change::SyncFolder { path: "/state".into() }));
        assert_eq!(texts(&ops, "a"), expected(&[Some("new!")]));
    }

    #[test]
    fn a_file_that_is_truncated_in_place_may_be_old_new_or_nothing() {
        let synced = [op(Change::Sync { inode: 0 }), op(Change::SyncFolder { path: "/state".into() })];
        let mut ops = [written("a", 0, "old!"), synced.to_vec()].concat();
        ops.push(op(Change::Truncate { inode: 0 }));
        ops.push(op(Change::Write { inode: 0, at: 0, bytes: b"new!".to_vec() }));
        let all = [Some("old!"), Some("new!"), Some(""), Some("ne"), Some("\0\0\0\0")];
        assert_eq!(texts(&ops, "a"), expected(&all));
    }

    #[test]
    fn what_was_synced_stays_when_more_is_appended() {
        let mut ops = written("a", 0, "abcd");
        ops.extend([op(Change::Sync { inode: 0 }), op(Change::SyncFolder { path: "/state".into() })]);
        ops.push(op(Change::Write { inode: 0, at: 4, bytes: b"ef".to_vec() }));
        let all = [Some("abcd"), Some("abcde"), Some("abcd\0\0"), Some("abcdef")];
        assert_eq!(texts(&ops, "a"), expected(&all));
    }

    #[test]
    fn a_file_is_lost_with_its_folder_until_that_is_synced_too() {
        let mut ops = vec![op(Change::MakeFolder { path: path("log") })];
        ops.extend(written("log/a", 0, "abcd"));
        ops.extend([op(Change::Sync { inode: 0 }), op(Change::SyncFolder { path: path("log") })]);
        assert_eq!(texts(&ops, "log/a"), expected(&[None, Some("abcd")]));
        ops.push(op(Change::SyncFolder { path: "/state".into() }));
        assert_eq!(texts(&ops, "log/a"), expected(&[Some("abcd")]));
    }
}
