//! What a disk may hold after its power was cut: more than any file system in use here leaves.
//!
//! On the disk is what was synced: the content of a file by its own `fsync`, a name by that of its folder. Of what was not, any part
//! may be there: each name that was made, replaced or removed by itself, in whatever order; of a file all that was written,
//! half of it, nothing, zeros of the right length, or what was synced before. ext4, btrfs and xfs leave less, because they
//! keep the order of names and put a new file's name on the disk with its content.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::trace::{Change, Inode, Op};

/// The files of the folder after a cut.
pub(crate) type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// More names than these are never pending: each doubles the states.
const PENDING_MAX: usize = 8;

/// A file's content: what is on the disk for certain, and what it is now.
#[derive(Clone, Debug, Default)]
struct File {
    synced: Option<Vec<u8>>,
    now: Vec<u8>,
}

impl File {
    /// What may be left.
    fn left(&self) -> Vec<Vec<u8>> {
        let Self { synced, now } = self;
        if synced.as_ref() == Some(now) {
            return vec![now.clone()];
        }
        let half = now[..now.len() / 2].to_vec();
        let mut left = vec![now.clone(), half, vec![], vec![0; now.len()]];
        left.extend(synced.clone());
        left.sort();
        left.dedup();
        left
    }
}

/// Every state in which a cut before the change number `cut` may leave the folder.
pub(crate) fn states(ops: &[Op], cut: usize) -> BTreeSet<Tree> {
    let mut files: BTreeMap<Inode, File> = BTreeMap::new();
    // Changes of names, and whether each is on the disk.
    let mut names: Vec<(&Change, bool)> = vec![];
    for Op { change, .. } in &ops[..cut] {
        match change {
            Change::Create { inode, .. } => {
                files.insert(*inode, File::default());
                names.push((change, false));
            }
            Change::Rename { .. } | Change::Link { .. } | Change::Unlink { .. } => {
                names.push((change, false))
            }
            Change::Truncate { inode } => files.get_mut(inode).unwrap().now.clear(),
            Change::Write { inode, at, bytes } => {
                let now = &mut files.get_mut(inode).unwrap().now;
                now.resize(now.len().max(at + bytes.len()), 0);
                now[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Change::Sync { inode } => {
                let file = files.get_mut(inode).unwrap();
                file.synced = Some(file.now.clone());
            }
            Change::SyncFolder { path } => {
                for (change, is_synced) in &mut names {
                    *is_synced |= places(change).iter().any(|place| place.parent() == Some(path));
                }
            }
        }
    }
    let pending: Vec<usize> = (0..names.len()).filter(|i| !names[*i].1).collect();
    assert!(pending.len() <= PENDING_MAX, "{} names are pending: {names:?}", pending.len());
    let mut all = BTreeSet::new();
    for chosen in 0..1_u32 << pending.len() {
        let is_there = |i: usize| {
            names[i].1 || pending.iter().position(|p| *p == i).is_some_and(|bit| chosen >> bit & 1 == 1)
        };
        let mut tree: BTreeMap<&Path, Inode> = BTreeMap::new();
        for (_, (change, _)) in names.iter().enumerate().filter(|(i, _)| is_there(*i)) {
            match change {
                Change::Create { path, inode } | Change::Link { to: path, inode } => {
                    tree.insert(path, *inode);
                }
                Change::Rename { from, to, inode } => {
                    tree.remove(from.as_path());
                    tree.insert(to, *inode);
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
        let inodes: BTreeSet<Inode> = tree.values().copied().collect();
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
            tree.iter().map(|(path, inode)| (path.to_path_buf(), content[inode].clone())).collect::<Tree>()
        }));
    }
    all
}

fn places(change: &Change) -> Vec<&Path> {
    match change {
        Change::Create { path, .. } | Change::Unlink { path } => vec![path],
        Change::Link { to, .. } => vec![to],
        Change::Rename { from, to, .. } => vec![from, to],
        Change::Truncate { .. } | Change::Write { .. } | Change::Sync { .. } | Change::SyncFolder { .. } => {
            vec![]
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
        states(ops, ops.len()).iter().map(|tree| tree.get(&path(name)).cloned()).collect()
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
}
