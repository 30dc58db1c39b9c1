//! The files of a log: one of a bench's flight, or those of a directory on the aircraft, which begins a new one when the
//! present one is long, and deletes the oldest to stay within its limits. It never fills the disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::event::Event;
use crate::file::{Header, LogFile};
use crate::recorder::Block;
use crate::writer::Sink;

/// The ending of every file.
pub const ENDING: &str = "mcap";
/// The beginning and the ending of the autopilot's own logs, which are in the same directory: `autopilot-NNNNN-UTC.bin`.
pub const AUTOPILOT: &str = "autopilot-";
/// See [`AUTOPILOT`].
pub const AUTOPILOT_ENDING: &str = ".bin";
/// Flights are numbered with so many digits: names sort by age.
const DIGITS: usize = 6;
/// After a failure the next file is begun no earlier than so many blocks later: about ten seconds.
const RETRY_BLOCKS: u32 = 13;

/// One file, of a flight in virtual time: never synchronised, of any length.
pub struct SingleFile {
    path: PathBuf,
    header: Header,
    file: Option<LogFile>,
}

impl SingleFile {
    /// A file that is begun with its first block; one that is there is replaced.
    pub fn new(path: PathBuf, header: Header) -> Self {
        Self { path, header, file: None }
    }

    fn found(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: found {error}, expected to write the flight log there", self.path.display())
    }
}

impl Sink for SingleFile {
    fn write(&mut self, block: &Block) -> Result<(), String> {
        if self.file.is_none() {
            let file = File::create(&self.path).map_err(|error| self.found(&error))?;
            let begun = LogFile::begin(file, &self.header, block);
            self.file = Some(begun.map_err(|error| self.found(&error))?);
        }
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write(block));
        written.map_err(|error| self.found(&error))
    }

    fn end(&mut self) -> Result<(), String> {
        let ended = self.file.take().map(LogFile::finish).transpose();
        ended.map(drop).map_err(|error| self.found(&error))
    }
}

/// The limits of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A file that is as long is followed by another, bytes.
    pub file_len: u64,
    /// All files together, bytes.
    pub total_len: u64,
    /// A file that was not written for so long is deleted.
    pub age: Duration,
    /// So much of the disk stays free, bytes.
    pub free_len: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            file_len: 64 * MIB,
            total_len: 2_048 * MIB,
            age: Duration::from_secs(30 * 24 * 3_600),
            free_len: 512 * MIB,
        }
    }
}

/// The directory of an aircraft's logs, for one daemon: `NNNNNN-PP.mcap`, flight and part.
pub struct Store {
    directory: PathBuf,
    limits: Limits,
    header: Header,
    flight: u64,
    part: u32,
    current: Option<(PathBuf, LogFile)>,
    /// Records that no file took.
    lost: u64,
    /// Blocks until the next file may be begun.
    wait: u32,
}

impl Store {
    /// Opens a directory, and makes it where it is missing. Another daemon that writes there has other numbers.
    ///
    /// # Errors
    /// Nothing can be written there: one line.
    pub fn open(directory: &Path, limits: Limits, header: Header) -> Result<Self, String> {
        let found = |error: io::Error| {
            format!(
                "log.directory {}: found {error}, expected to write flight logs there",
                directory.display()
            )
        };
        make(directory).map_err(found)?;
        let last = listed(directory).map_err(found)?.last().map_or(0, |file| file.flight);
        let mut flight = last + 1;
        // The empty file reserves the number, and is the proof that files can be made.
        loop {
            match OpenOptions::new().write(true).create_new(true).open(path(directory, flight, 1)) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => flight += 1,
                Err(error) => return Err(found(error)),
            }
        }
        Ok(Self {
            directory: directory.into(),
            limits,
            header,
            flight,
            part: 0,
            current: None,
            lost: 0,
            wait: 0,
        })
    }

    /// The file that is being written, or will be.
    pub fn path(&self) -> PathBuf {
        path(&self.directory, self.flight, self.part.max(1))
    }

    fn found(&self, error: &dyn std::fmt::Display) -> String {
        format!("log: {}: found {error}, expected to write the flight log there", self.path().display())
    }

    fn begin(&mut self, block: &Block) -> Result<(), String> {
        self.part += 1;
        let path = self.path();
        let open = |error: &dyn std::fmt::Display| {
            format!("log: {}: found {error}, expected to write the flight log there", path.display())
        };
        // The first part was reserved.
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|error| open(&error))?;
        sync_names(&self.directory).map_err(|error| open(&error))?;
        let mut header = self.header.clone();
        header.about.insert("flight".into(), self.flight.to_string());
        header.about.insert("part".into(), self.part.to_string());
        let file = LogFile::begin(file, &header, block).map_err(|error| open(&error))?;
        self.header.utc_base_us = file.utc_base_us();
        self.current = Some((path, file));
        Ok(())
    }

    fn append(&mut self, block: &Block) -> Result<(), String> {
        self.make_room()?;
        if self.current.is_none() {
            self.begin(block)?;
        }
        if self.lost > 0
            && let Some((_, file)) = &mut self.current
        {
            let mut gap = Block::default();
            gap.push(&mut 0, block.from_us, &Event::Lost(self.lost));
            if let Err(error) = file.write(&gap) {
                return Err(self.found(&error));
            }
            self.lost = 0;
        }
        let Some((path, file)) = &mut self.current else { return Ok(()) };
        let written = file.write(block).and_then(|()| file.sync());
        let is_long = || fs::metadata(&*path).is_ok_and(|metadata| metadata.len() >= self.limits.file_len);
        match written {
            Ok(()) if is_long() => self.end(),
            Ok(()) => Ok(()),
            Err(error) => Err(self.found(&error)),
        }
    }

    /// Deletes what is too old or too much, and judges whether the disk has room.
    fn make_room(&mut self) -> Result<(), String> {
        let current = self.current.as_ref().map(|(path, _)| path.as_path());
        let error = |error: io::Error| self.found(&error);
        let mut files = listed(&self.directory).map_err(error)?;
        let mut total: u64 = files.iter().map(|file| file.len).sum();
        let mut free = free_len(&self.directory).map_err(error)?;
        files.retain(|file| Some(file.path.as_path()) != current && file.flight != self.flight);
        for file in &files {
            let is_much = total > self.limits.total_len || free < self.limits.free_len;
            if !is_much && file.age < self.limits.age {
                break;
            }
            // One that cannot be deleted leaves less room, which is judged below.
            if fs::remove_file(&file.path).is_ok() {
                total = total.saturating_sub(file.len);
                free = free.saturating_add(file.len);
            }
        }
        if free < self.limits.free_len {
            let (free, least) = (free >> 20, self.limits.free_len >> 20);
            return Err(
                self.found(&format_args!("{free} MiB free on its disk, at least {least} of which stay free"))
            );
        }
        if total > self.limits.total_len {
            let (total, most) = (total >> 20, self.limits.total_len >> 20);
            return Err(self.found(&format_args!("{total} MiB of logs, of which {most} are kept")));
        }
        Ok(())
    }
}

impl Sink for Store {
    fn write(&mut self, block: &Block) -> Result<(), String> {
        if self.wait > 0 {
            self.wait -= 1;
            self.lost += block.count;
            return Err(self.found(&"an error in the file before"));
        }
        let result = self.append(block);
        if result.is_err() {
            self.lost += block.count;
            self.wait = RETRY_BLOCKS;
            // What was written stays as it is; its index is missing.
            self.current = None;
        }
        result
    }

    fn end(&mut self) -> Result<(), String> {
        match self.current.take() {
            Some((_, file)) => file
                .finish()
                .map_err(|error| self.found(&error))
                .and_then(|file| file.sync_data().map_err(|error| self.found(&error))),
            None => Ok(()),
        }
    }
}

/// A file of a directory.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// The number of its flight.
    pub flight: u64,
    /// Bytes.
    pub len: u64,
    /// Since it was last written; nothing where the clock was set back since.
    pub age: Duration,
}

fn path(directory: &Path, flight: u64, part: u32) -> PathBuf {
    directory.join(format!("{flight:0DIGITS$}-{part:02}.{ENDING}"))
}

/// Flight and part of a file's name.
pub(crate) fn number(path: &Path) -> Option<(u64, u32)> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
    let (flight, part) = name.split_once('-')?;
    Some((flight.parse().ok()?, part.parse().ok()?))
}

/// Whether a name is that of a log of the autopilot.
pub fn is_of_autopilot(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(AUTOPILOT).and_then(|name| name.strip_suffix(AUTOPILOT_ENDING));
    numbers
        .and_then(|numbers| numbers.split_once('-'))
        .is_some_and(|(id, utc)| is_number(id) && is_number(utc))
}

/// The path of a file of a directory by its name, where it is one of a flight log's: no name leads out of the directory.
pub fn named(directory: &Path, name: &str) -> Option<PathBuf> {
    if is_of_autopilot(name) {
        return Some(directory.join(name));
    }
    let (flight, part) = number(Path::new(name))?;
    let found = path(directory, flight, part);
    (found.file_name()? == name).then_some(found)
}

/// The part of the same flight that follows a file, where it is there.
pub fn next_part(file: &Path) -> Option<PathBuf> {
    let (flight, part) = number(file)?;
    let next = path(file.parent()?, flight, part.checked_add(1)?);
    next.exists().then_some(next)
}

/// The files of a directory, oldest first; others are left alone.
///
/// # Errors
/// It cannot be read.
pub fn listed(directory: &Path) -> io::Result<Vec<Listed>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let Some((flight, _)) = number(&path) else { continue };
        // Gone meanwhile.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        files.push(Listed { path, flight, len: metadata.len(), age });
    }
    files.sort_by_key(|file| number(&file.path));
    Ok(files)
}

/// Makes a directory, and those above it where they are missing, so that a power cut leaves them.
fn make(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(above)?;
    match fs::create_dir(directory) {
        // Another daemon has made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_names(above),
    }
}

/// Puts the names in a directory on the disk: a file that is synchronised may still lack its name there.
fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// What the disk of a directory has free for this process, bytes.
///
/// # Errors
/// The system's.
pub fn free_len(directory: &Path) -> io::Result<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(directory)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    // Aircraft write logs, and they run Linux.
    #[cfg(not(unix))]
    {
        let _ = directory;
        Ok(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(from_us: u64, len: usize) -> Block {
        let mut block = Block::default();
        // What does not compress: xorshift.
        let mut x = from_us + 88_172_645_463_325_252;
        let noise = std::iter::repeat_with(|| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as u8
        });
        let noise: Vec<u8> = noise.take(len).collect();
        block.push(&mut 0, from_us, &Event::Autopilot(&noise));
        block
    }

    fn names(directory: &Path) -> Vec<String> {
        let files = listed(directory).unwrap();
        files.iter().map(|f| f.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_follow_one_another_and_the_oldest_flights_go() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { file_len: 20_000, total_len: 60_000, free_len: 0, ..Limits::default() };
        for _ in 0..3 {
            let mut store = Store::open(folder.path(), limits.clone(), Header::default()).unwrap();
            for i in 0..6 {
                store.write(&block(i * 1_000, 8_000)).unwrap();
            }
            store.end().unwrap();
        }
        // Three files of three blocks each flight; never another's file.
        let left = names(folder.path());
        assert!(left.iter().all(|name| !name.starts_with("000001")), "{left:?}");
        assert!(left.contains(&"000003-02.mcap".to_owned()), "{left:?}");
        let total: u64 = listed(folder.path()).unwrap().iter().map(|file| file.len).sum();
        assert!(total < 90_000, "{total}");
        assert_eq!(
            next_part(&folder.path().join("000003-01.mcap")),
            Some(folder.path().join("000003-02.mcap"))
        );
        assert_eq!(next_part(&folder.path().join("other.mcap")), None);
        let named = |name| named(folder.path(), name);
        assert_eq!(named("000003-02.mcap"), Some(folder.path().join("000003-02.mcap")));
        assert_eq!(named("autopilot-00012-7.bin"), Some(folder.path().join("autopilot-00012-7.bin")));
        for other in ["autopilot-1.bin", "autopilot-1-2-3.bin", "autopilot-..-7.bin", "autopilot-1-/7.bin"] {
            assert_eq!(named(other), None, "{other}");
        }
        for other in
            ["3-2.mcap", "../000003-02.mcap", "/000003-02.mcap", "000003-02.mcap/", "+00003-02.mcap", "x", ""]
        {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_disk_without_room_is_left_alone_and_what_was_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut store =
            Store::open(folder.path(), Limits { free_len: 0, ..Limits::default() }, Header::default())
                .unwrap();
        store.write(&block(0, 100)).unwrap();
        store.limits.free_len = u64::MAX;
        let refused = store.write(&block(1, 100)).unwrap_err();
        assert!(refused.contains("free on its disk"), "{refused}");
        store.limits.free_len = 0;
        // It waits, then begins another part that states the loss.
        let mut waited = 2;
        while store.write(&block(waited, 100)).is_err() {
            waited += 1;
            assert!(waited < 100);
        }
        store.end().unwrap();
        assert_eq!(names(folder.path()), ["000001-01.mcap", "000001-02.mcap"]);
        let first = crate::reader::Log::read(&folder.path().join("000001-01.mcap")).unwrap();
        assert_eq!(first.blocks.len(), 1);
        let second = crate::reader::Log::read(&folder.path().join("000001-02.mcap")).unwrap();
        assert!(second.flaw.is_none());
        let lost = second.entries().find_map(|entry| match entry.unwrap().event {
            Event::Lost(count) => Some(count),
            _ => None,
        });
        assert_eq!(lost, Some(waited - 1));
    }

    #[test]
    fn two_daemons_in_one_directory_write_their_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            Store::open(folder.path(), Limits { free_len: 0, ..Limits::default() }, Header::default())
                .unwrap()
        };
        let (mut one, mut two) = (open(), open());
        one.write(&block(0, 10)).unwrap();
        two.write(&block(0, 10)).unwrap();
        assert_ne!(one.path(), two.path());
        let missing = Path::new("/proc/no such directory");
        assert!(
            Store::open(missing, Limits::default(), Header::default())
                .is_err_and(|e| e.contains("log.directory"))
        );
    }
}
