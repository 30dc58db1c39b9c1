//! The users' file: names, roles and hashes of passwords.
//!
//! A change of the file counts within a second, without a restart: a user who is taken out has no session any more.
//! Where the file is damaged later, what was read last counts on, and the log says so.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use wingbeat_api::UserRole;
use wingbeat_keys::file;

/// Users of one service.
pub const USERS_MAX: usize = 256;
/// The shortest password, characters: NIST SP 800-63B, 3.1.1.2, asks for 8 at least.
pub const PASSWORD_MIN: usize = 10;
/// The longest, bytes: what is hashed is bounded.
pub const PASSWORD_MAX: usize = 256;
/// The longest name, bytes.
const NAME_MAX: usize = 32;
/// The longest file, bytes.
const FILE_MAX: u64 = 256 * 1024;
/// How often the file is looked at.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// Why the users' file is not read or changed; no password is part of it.
#[derive(Debug, thiserror::Error)]
#[error("{}: found {found}, expected {expected}", .path.display())]
pub struct UsersError {
    path: PathBuf,
    found: String,
    expected: &'static str,
}

fn refused(path: &Path, found: impl fmt::Display, expected: &'static str) -> UsersError {
    UsersError { path: path.into(), found: found.to_string(), expected }
}

/// One user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What the user may do.
    pub role: UserRole,
    /// Argon2id, in the PHC format.
    password: String,
}

/// The hash is no part of it.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("role", &self.role).finish_non_exhaustive()
    }
}

impl Entry {
    /// Of a password that is hashed here: Argon2id, 19 MiB, 2 passes (the OWASP Password Storage Cheat Sheet).
    ///
    /// # Errors
    /// The password is too short or too long, or the system has no random bytes.
    pub fn new(role: UserRole, password: &str) -> Result<Self, String> {
        let (found, bytes) = (password.chars().count(), password.len());
        if found < PASSWORD_MIN || bytes > PASSWORD_MAX {
            return Err(format!(
                "password: found {found} characters, expected at least {PASSWORD_MIN} and at most {PASSWORD_MAX} bytes"
            ));
        }
        let hash = Argon2::default()
            .hash_password(password.as_bytes())
            .map_err(|error| format!("password: {error}"))?;
        Ok(Self { role, password: hash.to_string() })
    }

    /// Whether this is the password. It takes some tens of milliseconds and 19 MiB.
    pub(crate) fn has_password(&self, password: &str) -> bool {
        let Ok(hash) = PasswordHash::new(&self.password) else { return false };
        Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()
    }

    /// What changes with the password: a session of the old one has ended.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        blake3::hash(self.password.as_bytes()).into()
    }
}

/// All users, by name.
pub type Entries = BTreeMap<String, Entry>;

/// A name that is shown, logged and compared as it is.
///
/// # Errors
/// It has other characters, or too many.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_one = (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'));
    let shown: String = name.chars().take(NAME_MAX).flat_map(char::escape_debug).collect();
    is_one.then_some(()).ok_or_else(|| {
        format!(
            "found the name \"{shown}\", expected 1 to {NAME_MAX} of a to z, 0 to 9, dot, hyphen, underscore"
        )
    })
}

/// Reads the file.
///
/// # Errors
/// It cannot be read, is none, or others than its owner and its group may read it.
pub fn read(path: &Path) -> Result<Entries, UsersError> {
    const EXPECTED: &str = "a users' file (wingbeat ground users add)";
    let facts = fs::metadata(path).map_err(|error| refused(path, error, EXPECTED))?;
    if facts.len() > FILE_MAX {
        return Err(refused(path, format!("{} bytes", facts.len()), EXPECTED));
    }
    let mode = file::mode(&facts);
    if mode & 0o007 != 0 {
        let found = format!("mode {mode:o}, with which others read the hashes of passwords");
        return Err(refused(path, found, "mode 600 or 640"));
    }
    let text = fs::read_to_string(path).map_err(|error| refused(path, error, EXPECTED))?;
    let entries: Entries = toml::from_str(&text).map_err(|error| refused(path, error.message(), EXPECTED))?;
    if entries.len() > USERS_MAX {
        return Err(refused(path, format!("{} users", entries.len()), "at most 256"));
    }
    for (name, entry) in &entries {
        check_name(name).map_err(|found| refused(path, found, EXPECTED))?;
        if PasswordHash::new(&entry.password).is_err() {
            return Err(refused(path, format!("no hash for {name}"), EXPECTED));
        }
    }
    Ok(entries)
}

/// Reads the file, changes what it holds, and writes it: whole or not at all, for its owner and its group alone.
///
/// # Errors
/// As [`read`], but for a file that is not there; what the change refuses; and the file cannot be written.
pub fn change(
    path: &Path,
    change: impl FnOnce(&mut Entries) -> Result<(), String>,
) -> Result<(), UsersError> {
    let mut entries = if path.exists() { read(path)? } else { Entries::new() };
    change(&mut entries).map_err(|found| UsersError {
        path: path.into(),
        found,
        expected: "a change that can be made",
    })?;
    if entries.len() > USERS_MAX {
        return Err(refused(path, format!("{} users", entries.len()), "at most 256"));
    }
    let text =
        toml::to_string(&entries).map_err(|error| refused(path, error, "users that can be written"))?;
    write(path, &text).map_err(|error| refused(path, error, "a file that can be written"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let mode = fs::metadata(path).map_or(0o600, |facts| file::mode(&facts) & 0o770);
    let _ = fs::remove_file(&new);
    let mut file = file::create_new(&new, mode)?;
    file.write_all(b"# Users of the PC Companion: change them with `wingbeat ground users`.\n")?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    file::sync_folder(path)
}

/// The users as the file has them now.
#[derive(Debug)]
pub(crate) struct Users {
    path: PathBuf,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    entries: Entries,
    stamp: Option<(SystemTime, u64)>,
    looked_at: Instant,
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let facts = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&facts);
    #[cfg(not(unix))]
    let number = facts.len();
    Some((facts.modified().ok()?, number))
}

impl Users {
    pub(crate) fn open(path: &Path) -> Result<Self, UsersError> {
        let stamp = stamp(path);
        let entries = read(path)?;
        if entries.is_empty() {
            return Err(refused(path, "no user", "at least one (wingbeat ground users add)"));
        }
        let now = Now { entries, stamp, looked_at: Instant::now() };
        Ok(Self { path: path.into(), now: Mutex::new(now) })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        self.current().entries.get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(String, UserRole)> {
        self.current().entries.iter().map(|(name, entry)| (name.clone(), entry.role)).collect()
    }

    fn current(&self) -> MutexGuard<'_, Now> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.looked_at.elapsed() >= LOOKED_AT_EVERY {
            now.looked_at = Instant::now();
            let found = stamp(&self.path);
            if found != now.stamp {
                now.stamp = found;
                match read(&self.path) {
                    Ok(entries) => now.entries = entries,
                    Err(error) => tracing::error!("users: {error}; those that were read before count on"),
                }
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_password_that_was_given_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let add = |name: &str, role, password: &str| {
            let entry = Entry::new(role, password)?;
            let name = name.to_owned();
            change(&path, |all| {
                all.insert(name, entry);
                Ok(())
            })
            .map_err(|error| error.to_string())
        };
        add("anna", UserRole::Operator, "correct horse").unwrap();
        add("ben.2", UserRole::Observer, "battery staple").unwrap();
        let users = read(&path).unwrap();
        assert_eq!(users.keys().collect::<Vec<_>>(), ["anna", "ben.2"]);
        assert!(users["anna"].has_password("correct horse") && !users["anna"].has_password("battery staple"));
        assert!(!users["anna"].has_password("") && users["ben.2"].role == UserRole::Observer);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("$argon2id$v=19$m=19456,t=2,p=1$") && !text.contains("horse"), "{text}");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777, 0o600);
        assert!(!format!("{users:?}").contains("argon2"), "hashes stay out of logs");
        let short = Entry::new(UserRole::Operator, "short").unwrap_err();
        assert_eq!(short, "password: found 5 characters, expected at least 10 and at most 256 bytes");
    }

    #[test]
    fn a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        let hash = Entry::new(UserRole::Operator, "correct horse").unwrap().password;
        for (text, mode, what) in [
            ("rubbish".to_owned(), 0o600, "expected a users' file"),
            ("[anna]\nrole = \"root\"\npassword = \"x\"\n".to_owned(), 0o600, "unknown variant `root`"),
            ("[anna]\nrole = \"operator\"\npassword = \"plain\"\n".to_owned(), 0o600, "no hash for anna"),
            (
                format!("[\"An\\u202ena\"]\nrole = \"operator\"\npassword = \"{hash}\"\n"),
                0o600,
                "found the name \"An\\u{202e}na\"",
            ),
            (format!("[anna]\nrole = \"operator\"\npassword = \"{hash}\"\n"), 0o644, "mode 644"),
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.starts_with(&path.display().to_string()) && error.contains(what), "{error}");
        }
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(Users::open(&path).unwrap_err().to_string().contains("found no user"));
    }
}
