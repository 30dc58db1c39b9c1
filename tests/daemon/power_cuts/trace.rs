//! What a real daemon does to the files of a folder, as `strace` sees it.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

/// Calls that change files or names, or put them on the disk. Those that are not understood here fail the test when they
/// are used on a file of the folder: none is overlooked.
const CALLS: &str = "trace=openat,open,creat,close,dup,dup2,dup3,fcntl,lseek,write,writev,pwrite64,pwritev,sendfile,\
     copy_file_range,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,link,linkat,\
     symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat";

/// A file by its number: names come and go.
pub(crate) type Inode = usize;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    MakeFolder { path: PathBuf },
    Create { path: PathBuf, inode: Inode },
    Truncate { inode: Inode },
    Write { inode: Inode, at: usize, bytes: Vec<u8> },
    Sync { inode: Inode },
    SyncFolder { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, inode: Inode },
    Link { to: PathBuf, inode: Inode },
    Unlink { path: PathBuf },
}

/// A change, and when it began by the system's clock, seconds.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) begun_s: f64,
    pub(crate) change: Change,
}

/// A command whose program is recorded; its arguments follow.
pub(crate) fn recorded(program: &str, to: &Path) -> Command {
    let mut command = Command::new("strace");
    // A file for each thread: no call is cut in two by another's.
    command.args(["-ff", "-ttt", "-T", "-xx", "-s", "1000000", "-e", CALLS, "-e", "signal=none", "-o"]);
    command.arg(to).arg("--").arg(program);
    command
}

/// What the recordings have of the folder, one run of a program after the other.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) ops: Vec<Op>,
    names: BTreeMap<PathBuf, Inode>,
    lengths: Vec<usize>,
}

/// An open file or folder of the folder; several descriptors may share one.
enum Open {
    File { inode: Inode, at: usize },
    Folder(PathBuf),
}

impl Recording {
    /// Reads what `recorded(_, to)` has written.
    pub(crate) fn add(&mut self, folder: &Path, to: &Path) {
        let prefix = format!("{}.", to.file_name().unwrap().to_str().unwrap());
        let mut calls = vec![];
        for entry in fs::read_dir(to.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_str().unwrap().starts_with(&prefix) {
                calls.extend(fs::read_to_string(path).unwrap().lines().filter_map(Call::parse));
            }
        }
        assert!(!calls.is_empty(), "{}: found no call, expected some", to.display());
        // What one thread makes of another's result begins after that has ended. A number that is closed may be another
        // thread's before the close has ended.
        let key = |call: &Call| if call.name == "close" { call.begun_s } else { call.ended_s };
        calls.sort_by(|a, b| key(a).total_cmp(&key(b)));
        // Threads share them.
        let mut open = BTreeMap::new();
        for call in calls {
            if let Some(change) = self.apply(folder, &mut open, &call) {
                self.ops.push(Op { begun_s: call.begun_s, change });
            }
        }
    }

    fn apply(
        &mut self,
        folder: &Path,
        open: &mut BTreeMap<i64, Rc<RefCell<Open>>>,
        call: &Call,
    ) -> Option<Change> {
        let inside = |path: &Path| path.starts_with(folder);
        let path = |i: usize| PathBuf::from(String::from_utf8(bytes(&call.arguments[i])).unwrap());
        let number = |i: usize| call.arguments[i].parse::<i64>().unwrap();
        match call.name.as_str() {
            "openat" => {
                let (path, flags) = (path(1), &call.arguments[2]);
                open.remove(&call.result);
                if !inside(&path) {
                    return None;
                }
                if path.is_dir() {
                    open.insert(call.result, Rc::new(RefCell::new(Open::Folder(path))));
                    return None;
                }
                let known = self.names.get(&path).copied();
                // One that was made by another program than those recorded, and is only read.
                if known.is_none() && !flags.contains("O_CREAT") {
                    return None;
                }
                let inode = known.unwrap_or(self.lengths.len());
                let at = if flags.contains("O_APPEND") { self.lengths[inode] } else { 0 };
                open.insert(call.result, Rc::new(RefCell::new(Open::File { inode, at })));
                match known {
                    Some(_) if flags.contains("O_TRUNC") => {
                        self.lengths[inode] = 0;
                        Some(Change::Truncate { inode })
                    }
                    Some(_) => None,
                    None => {
                        self.lengths.push(0);
                        self.names.insert(path.clone(), inode);
                        Some(Change::Create { path, inode })
                    }
                }
            }
            "close" => {
                open.remove(&number(0));
                None
            }
            "write" => match &mut *open.get(&number(0))?.borrow_mut() {
                Open::File { inode, at } => {
                    let mut bytes = bytes(&call.arguments[1]);
                    bytes.truncate(call.result as usize);
                    let change = Change::Write { inode: *inode, at: *at, bytes: bytes.clone() };
                    *at += bytes.len();
                    self.lengths[*inode] = self.lengths[*inode].max(*at);
                    Some(change)
                }
                Open::Folder(path) => panic!("a write to the folder {}", path.display()),
            },
            "lseek" => {
                if let Open::File { at, .. } = &mut *open.get(&number(0))?.borrow_mut() {
                    *at = call.result as usize;
                }
                None
            }
            "fsync" | "fdatasync" => Some(match &*open.get(&number(0))?.borrow() {
                Open::File { inode, .. } => Change::Sync { inode: *inode },
                Open::Folder(path) => Change::SyncFolder { path: path.clone() },
            }),
            "rename" => self.rename(path(0), path(1), inside),
            "renameat" | "renameat2" => self.rename(path(1), path(3), inside),
            "link" => self.link(&path(0), path(1), inside),
            "linkat" => self.link(&path(1), path(3), inside),
            "unlink" => self.unlink(path(0)),
            "unlinkat" => self.unlink(path(1)),
            "mkdir" | "mkdirat" => {
                let path = path(usize::from(call.name == "mkdirat"));
                inside(&path).then_some(Change::MakeFolder { path })
            }
            "dup" | "dup2" | "dup3" => copy(open, number(0), call.result),
            "fcntl" if call.arguments[1].starts_with("F_DUPFD") => copy(open, number(0), call.result),
            "fcntl" => None,
            _ => {
                let uses = call.arguments.iter().any(|argument| {
                    argument.parse().is_ok_and(|fd: i64| open.contains_key(&fd))
                        || argument.starts_with('"')
                            && inside(&PathBuf::from(String::from_utf8_lossy(&bytes(argument)).as_ref()))
                });
                assert!(!uses, "not understood: {call:?}");
                None
            }
        }
    }

    fn rename(&mut self, from: PathBuf, to: PathBuf, inside: impl Fn(&Path) -> bool) -> Option<Change> {
        if !inside(&from) {
            return None;
        }
        let inode = self.names.remove(&from).unwrap();
        self.names.insert(to.clone(), inode);
        Some(Change::Rename { from, to, inode })
    }

    fn link(&mut self, from: &Path, to: PathBuf, inside: impl Fn(&Path) -> bool) -> Option<Change> {
        if !inside(&to) {
            return None;
        }
        let inode = self.names[from];
        self.names.insert(to.clone(), inode);
        Some(Change::Link { to, inode })
    }

    fn unlink(&mut self, path: PathBuf) -> Option<Change> {
        self.names.remove(&path).map(|_| Change::Unlink { path })
    }
}

/// Another number for what is open.
fn copy(open: &mut BTreeMap<i64, Rc<RefCell<Open>>>, of: i64, to: i64) -> Option<Change> {
    match open.get(&of).cloned() {
        Some(same) => open.insert(to, same),
        None => open.remove(&to),
    };
    None
}

/// A call that succeeded.
#[derive(Debug)]
struct Call {
    begun_s: f64,
    ended_s: f64,
    name: String,
    arguments: Vec<String>,
    result: i64,
}

impl Call {
    /// `1764.5 write(3, "\x61", 1) = 1 <0.00002>`
    fn parse(line: &str) -> Option<Self> {
        let (begun, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once('(')?;
        let (arguments, rest) = rest.rsplit_once(") ")?;
        let (result, took) = rest.trim_start().strip_prefix("= ")?.rsplit_once(" <")?;
        let result = result.split(' ').next()?.parse().ok().filter(|result| *result >= 0)?;
        let begun_s: f64 = begun.parse().ok()?;
        let took_s: f64 = took.strip_suffix('>')?.parse().ok()?;
        Some(Self {
            begun_s,
            ended_s: begun_s + took_s,
            name: name.to_owned(),
            // Strings are hexadecimal: no comma is in one.
            arguments: arguments.split(", ").map(str::to_owned).collect(),
            result,
        })
    }
}

/// The bytes of `"\x61\x62"`.
fn bytes(argument: &str) -> Vec<u8> {
    let inner = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.unwrap_or_else(|| panic!("found {argument}, expected a whole string"));
    inner.split("\\x").skip(1).map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}
