//! Small files: 64 hexadecimal digits of a key, and what must survive a restart.

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::{
    fmt, fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

/// Digits of a key.
const DIGITS: usize = 64;

/// Why a key is not taken; what the file holds is never part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was found, and where.
    pub found: String,
    /// What is expected.
    pub expected: &'static str,
}

/// Reads 64 hexadecimal digits from a file without any of these permissions.
///
/// # Errors
/// What was found instead; nothing that the file holds is part of it.
pub fn read_digits(path: &Path, closed_to: u32) -> Result<[u8; DIGITS / 2], Refused> {
    let refused = |found: &dyn std::fmt::Display, expected| Refused {
        found: format!("{}: {found}", path.display()),
        expected,
    };
    let readable = "a file with 64 hexadecimal digits";
    let io = |error: std::io::Error| refused(&error, readable);
    let file = fs::File::open(path).map_err(io)?;
    let mode = mode(&file.metadata().map_err(io)?);
    if mode & closed_to != 0 {
        let expected = match closed_to {
            0o007 => "a file closed to others (chmod o= FILE)",
            _ => "a file closed to all but its owner (chmod 600 FILE)",
        };
        return Err(refused(&format!("mode {mode:o}"), expected));
    }
    let mut text = String::new();
    // The digits and a line's end; a device or an endless pipe is not read on.
    file.take(DIGITS as u64 + 2).read_to_string(&mut text).map_err(io)?;
    let text = text.trim_end();
    digits::<32>(text).ok_or_else(|| {
        refused(&format!("{} characters", text.len()), "64 hexadecimal digits and nothing else")
    })
}

/// The `N` bytes of twice as many hexadecimal digits.
pub fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        let digit = |d: u8| char::from(d).to_digit(16).map_or(0, |v| v as u8);
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Some(bytes)
}

/// Two digits for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a text of at most `bytes_max`.
///
/// # Errors
/// What was found instead.
pub fn read_text(path: &Path, bytes_max: usize, expected: &'static str) -> Result<String, Refused> {
    let refused =
        |found: &dyn fmt::Display| Refused { found: format!("{}: {found}", path.display()), expected };
    let file = fs::File::open(path).map_err(|error| refused(&error))?;
    let mut text = String::new();
    let read = file.take(bytes_max as u64 + 1).read_to_string(&mut text).map_err(|error| refused(&error))?;
    if read > bytes_max { Err(refused(&format_args!("more than {bytes_max} bytes"))) } else { Ok(text) }
}

/// Makes a folder that its owner alone may enter, where there is none.
///
/// # Errors
/// The system's.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder)
}

/// Makes a new secret of 32 random bytes in a file of mode 600, whole or not at all, and never over one that is there.
///
/// # Errors
/// The system's; that there is one already among them.
pub fn make_secret(path: &Path) -> io::Result<[u8; 32]> {
    let secret = random()?;
    let new = new_name(path);
    let mut file = create(&new, 0o600)?;
    writeln!(file, "{}", hexadecimal(&secret))?;
    file.sync_all()?;
    // A link fails where a rename would replace.
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    linked?;
    sync_folder(path)?;
    Ok(secret)
}

/// 32 random bytes of the kernel.
///
/// # Errors
/// It has none.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    #[cfg(target_os = "linux")]
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())? {
        32 => {}
        length => return Err(io::Error::other(format!("{length} random bytes of 32"))),
    }
    #[cfg(not(target_os = "linux"))]
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// A text that is written and not yet in its place.
#[derive(Debug)]
pub struct Written {
    new: PathBuf,
    path: PathBuf,
}

impl Written {
    /// Writes a text next to `path`, on the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn new(path: &Path, text: &str) -> io::Result<Self> {
        let written = Self { new: new_name(path), path: path.to_owned() };
        let mut file = create(&written.new, 0o644)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(written)
    }

    /// Puts it into its place, where it replaces what is there.
    ///
    /// # Errors
    /// The system's; what is there is as before then.
    pub fn commit(self) -> io::Result<()> {
        fs::rename(&self.new, &self.path)
    }
}

/// What was not committed goes.
impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.new);
    }
}

/// Of this process alone: what another leaves behind, or writes at the same time, is not in the way.
fn new_name(path: &Path) -> PathBuf {
    path.with_extension(format!("new-{}", std::process::id()))
}

/// A new file of the folder's owner: what root makes for a service belongs to that.
fn create(path: &Path, mode: u32) -> io::Result<fs::File> {
    let _ = fs::remove_file(path);
    let file = create_new(path, mode)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let (folder, own) = (fs::metadata(folder)?, file.metadata()?);
        if folder.uid() != own.uid() {
            std::os::unix::fs::fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
        }
    }
    Ok(file)
}

/// Writes a text that its owner alone may read, whole or not at all; what is there is replaced.
///
/// # Errors
/// The system's.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let new = new_name(path);
    let mut file = create(&new, 0o600)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)
}

/// The permissions of a file. Where the system has no such, none: the folder's list of who may enter it counts.
#[must_use]
pub fn mode(facts: &fs::Metadata) -> u32 {
    #[cfg(unix)]
    return facts.permissions().mode() & 0o777;
    #[cfg(not(unix))]
    {
        let _ = facts;
        0
    }
}

/// A new file with these permissions, where the system has such; never one that is there.
///
/// # Errors
/// The system's.
pub fn create_new(path: &Path, mode: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    permit(options.write(true).create_new(true), mode).open(path)
}

/// What is made by these options has these permissions, where the system has such.
pub fn permit(options: &mut fs::OpenOptions, mode: u32) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    options.mode(mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Puts the names in the folder of `path` on the disk; a system on which a folder is no file does that itself.
///
/// # Errors
/// The system's.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

/// Writes a line to a file: whole or not at all, and on the disk.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, line: &str) -> io::Result<()> {
    let new: PathBuf = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)
}
