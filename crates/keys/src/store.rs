//! What a member keeps: its secret, which it made itself, and the fleet's bundle.
//!
//! The first bundle fixes the fleet's authority. From then on only what that has signed replaces it, and nothing that is older: the file
//! itself is what is known of the past.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use wingbeat_wire::{PublicKey, Role, SecretKey, VehicleId};

use crate::{
    Keys, Unusable,
    bundle::{BUNDLE_LEN_MAX, Bundle, Terms},
    closed_to,
    file::{self, Refused, Written},
    request::Request,
};

const EXPECTED: &str = "a bundle that the fleet's authority has signed (wingbeat fleet)";

/// A console's files in its folder.
pub(crate) const CONSOLE_KEY: &str = "console.key";
/// The bundle's, in a console's folder and in the authority's.
pub(crate) const BUNDLE: &str = "fleet.bundle";

/// Where a member's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    me: VehicleId,
    roles: &'static [Role],
    secret_file: PathBuf,
    bundle_file: PathBuf,
    /// The one authority of a daemon that runs, whatever becomes of the file.
    authority: Option<PublicKey>,
}

/// Where a daemon's keys are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// Its files.
    pub store: Store,
    /// Which bundle it started with, and when that holds.
    pub terms: Terms,
}

/// What a member holds: its keys, and what its bundle states of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its keys.
    pub keys: Keys,
    /// Which bundle, and when it holds.
    pub terms: Terms,
}

/// Why a bundle is not taken. What is held is as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected {expected}")]
pub struct NotTaken {
    /// Of which kind.
    pub kind: NotTakenKind,
    found: String,
    expected: String,
}

/// Of which kind a reason is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTakenKind {
    /// It is no bundle.
    Malformed,
    /// It is another authority's, or does not have this member.
    Foreign,
    /// A later one is held.
    Older,
    /// The files cannot be read or written.
    Storage,
}

fn not_taken(kind: NotTakenKind, found: impl fmt::Display, expected: impl fmt::Display) -> NotTaken {
    NotTaken { kind, found: found.to_string(), expected: expected.to_string() }
}

/// A bundle that was verified and written, and is not in its place yet.
#[derive(Debug)]
pub struct Pending {
    /// None where it is held already: anyone may send it again, and each writing wears the card.
    written: Option<Written>,
    held: Held,
}

impl Pending {
    /// Puts it into its place: quick, for everything slow was done before.
    ///
    /// # Errors
    /// The system's; what is held is as before then.
    pub fn commit(self) -> Result<Held, NotTaken> {
        let expected = "a folder in which the bundle can be replaced";
        let committed = self.written.map_or(Ok(()), Written::commit);
        committed.map_err(|error| not_taken(NotTakenKind::Storage, error, expected))?;
        Ok(self.held)
    }
}

impl Store {
    /// The files of the aircraft `me`.
    pub fn of_aircraft(me: VehicleId, secret_file: PathBuf, bundle_file: PathBuf) -> Self {
        Self { me, roles: &[Role::Aircraft], secret_file, bundle_file, authority: None }
    }

    /// The files of the console `me`: in one folder.
    pub fn of_console(me: VehicleId, folder: &Path) -> Self {
        let [secret_file, bundle_file] = [CONSOLE_KEY, BUNDLE].map(|name| folder.join(name));
        Self {
            me,
            roles: &[Role::Operator, Role::Safety, Role::Viewer],
            secret_file,
            bundle_file,
            authority: None,
        }
    }

    /// Takes bundles of this authority alone, also where there is no file any more: a first bundle is taken by hand at the
    /// aircraft, and not over the network.
    #[must_use]
    pub fn of_authority(self, authority: PublicKey) -> Self {
        Self { authority: Some(authority), ..self }
    }

    /// The member's id.
    pub fn id(&self) -> VehicleId {
        self.me
    }

    /// The file of the bundle.
    pub fn bundle_file(&self) -> &Path {
        &self.bundle_file
    }

    /// The request to be enrolled; the secret is made where there is none.
    ///
    /// # Errors
    /// The file of the secret cannot be read or made.
    pub fn request(&self) -> Result<Request, Refused> {
        let path = &self.secret_file;
        let refused = |error: io::Error| Refused {
            found: format!("{}: {error}", path.display()),
            expected: "a folder in which the secret key can be made",
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            file::make_folder(folder).map_err(refused)?;
        }
        let secret = match file::make_secret(path) {
            Ok(secret) => secret,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.secret()?,
            Err(error) => return Err(refused(error)),
        };
        Ok(Request::new(self.me, &secret))
    }

    fn keys(&self, bundle: &Bundle, secret: &SecretKey) -> Result<Keys, String> {
        if let Some(member) = bundle.member(self.me).filter(|member| !self.roles.contains(&member.role)) {
            return Err(format!("{} under the role {}", self.me, member.role.name()));
        }
        bundle.keys(self.me, secret)
    }

    fn secret(&self) -> Result<SecretKey, Refused> {
        file::read_digits(&self.secret_file, closed_to(&self.secret_file))
    }

    /// The bundle that is held; none before the first.
    fn bundle(&self) -> Result<Option<Bundle>, Refused> {
        let path = &self.bundle_file;
        // A file that is there and cannot be read is no reason to take any authority's.
        if matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let text = file::read_text(path, BUNDLE_LEN_MAX, EXPECTED)?;
        let refused = |found| Refused { found: format!("{}: {found}", path.display()), expected: EXPECTED };
        Bundle::parse(&text).map(Some).map_err(refused)
    }

    /// Reads what is held.
    ///
    /// # Errors
    /// The first file that cannot be used, by the key of the configuration.
    pub fn read(&self) -> Result<Held, Unusable> {
        let unusable = |key| move |refused| Unusable { key, refused };
        let secret = self.secret().map_err(unusable("security.secret_key_file"))?;
        let key = "security.bundle_file";
        let refused = |found: &dyn fmt::Display| Unusable {
            key,
            refused: Refused {
                found: format!("{}: {found}", self.bundle_file.display()),
                expected: EXPECTED,
            },
        };
        let bundle = self.bundle().map_err(unusable(key))?.ok_or_else(|| refused(&"no bundle"))?;
        let keys = self.keys(&bundle, &secret).map_err(|found| refused(&found))?;
        Ok(Held { keys, terms: bundle.terms() })
    }

    /// Verifies a bundle against what is held, and writes it next to that.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn prepare(&self, text: &str) -> Result<Pending, NotTaken> {
        use NotTakenKind::{Foreign, Malformed, Older, Storage};
        let bundle = Bundle::parse(text).map_err(|found| not_taken(Malformed, found, EXPECTED))?;
        let terms = bundle.terms();
        let storage = |refused: Refused| not_taken(Storage, refused.found, refused.expected);
        let held = self.bundle().map_err(storage)?;
        let authority = self.authority.or(held.as_ref().map(|held| held.terms().authority));
        if let Some(authority) = authority.filter(|authority| *authority != terms.authority) {
            let found = format!("a bundle of the authority {}", file::hexadecimal(&terms.authority));
            let expected = format!(
                "one of the authority {} (to change fleets, remove {} on the aircraft, and take the other by hand)",
                file::hexadecimal(&authority),
                self.bundle_file.display()
            );
            return Err(not_taken(Foreign, found, expected));
        }
        if let Some(held) = &held {
            let known = held.terms();
            if terms.order() < known.order() {
                return Err(not_taken(Older, terms, format_args!("none older than what is held ({known})")));
            }
            if terms.order() == known.order() && bundle != *held {
                let expected = "the same one, or a later serial";
                return Err(not_taken(Older, format_args!("another bundle of {terms}"), expected));
            }
        }
        let secret = self.secret().map_err(storage)?;
        let keys = self
            .keys(&bundle, &secret)
            .map_err(|found| not_taken(Foreign, found, "a bundle that has this member with its key"))?;
        let is_new = held.is_none_or(|held| held != bundle);
        let written = is_new.then(|| Written::new(&self.bundle_file, text)).transpose().map_err(|error| {
            let expected = format!("a folder that can be written for {}", self.bundle_file.display());
            not_taken(Storage, error, expected)
        })?;
        Ok(Pending { written, held: Held { keys, terms } })
    }

    /// Takes a bundle: verified, and in place of what is held.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn accept(&self, text: &str) -> Result<Held, NotTaken> {
        let held = self.prepare(text)?.commit()?;
        self.sync()?;
        Ok(held)
    }

    /// Puts on the disk that a bundle was committed.
    ///
    /// # Errors
    /// The system's; after a loss of power the one before may be held.
    pub fn sync(&self) -> Result<(), NotTaken> {
        let expected = "a folder whose names can be put on the disk";
        file::sync_folder(&self.bundle_file)
            .map_err(|error| not_taken(NotTakenKind::Storage, error, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enrolment::{self, Change};

    const ONE: VehicleId = VehicleId(0xa1);
    const TWO: VehicleId = VehicleId(0xa2);

    struct Fleet {
        folder: tempfile::TempDir,
        now: jiff::Timestamp,
    }

    impl Fleet {
        fn new() -> Self {
            let fleet =
                Self { folder: tempfile::tempdir().unwrap(), now: "2026-11-24T00:00:00Z".parse().unwrap() };
            enrolment::init(&fleet.authority(), fleet.now, 30).unwrap();
            fleet
        }
        fn authority(&self) -> PathBuf {
            self.folder.path().join("authority")
        }
        fn store(&self, id: VehicleId) -> Store {
            let path = |what: &str| self.folder.path().join(format!("{id}.{what}"));
            Store::of_aircraft(id, path("key"), path("bundle"))
        }
        fn enrol(&self, id: VehicleId) -> String {
            let request = self.store(id).request().unwrap();
            self.change(&Change::Enrol { request, role: Role::Aircraft })
        }
        fn change(&self, change: &Change) -> String {
            enrolment::change(&self.authority(), change, self.now).unwrap().text().to_owned()
        }
    }

    #[test]
    fn what_is_older_than_what_is_held_is_refused_and_the_same_again_is_not() {
        let fleet = Fleet::new();
        let first = fleet.enrol(ONE);
        let second = fleet.enrol(TWO);
        let store = fleet.store(ONE);
        assert_eq!(store.accept(&second).unwrap().terms.order(), (1, 3));
        assert_eq!(store.accept(&second).unwrap().terms.order(), (1, 3));
        let refused = store.accept(&first).unwrap_err();
        assert_eq!(refused.kind, NotTakenKind::Older);
        assert!(refused.to_string().contains("found epoch 1, serial 2"), "{refused}");
        // A later epoch counts for more than any serial.
        let third = fleet.change(&Change::Renew { without: vec![TWO] });
        assert_eq!(store.accept(&third).unwrap().terms.order(), (2, 4));
        assert_eq!(store.accept(&second).unwrap_err().kind, NotTakenKind::Older);
        assert_eq!(store.read().unwrap().terms.order(), (2, 4));
        // The one that was left out takes none that does not have it.
        let lost = fleet.store(TWO).accept(&third).unwrap_err();
        assert!(
            lost.kind == NotTakenKind::Foreign && lost.to_string().contains("no 00000000000000a2"),
            "{lost}"
        );
    }

    #[test]
    fn the_first_bundle_fixes_the_authority() {
        let (fleet, other) = (Fleet::new(), Fleet::new());
        let store = fleet.store(ONE);
        let ours = fleet.enrol(ONE);
        // The other fleet enrols the very same aircraft.
        let request = store.request().unwrap();
        let theirs = other.change(&Change::Enrol { request, role: Role::Aircraft });
        store.accept(&ours).unwrap();
        let refused = store.accept(&theirs).unwrap_err();
        assert!(
            refused.kind == NotTakenKind::Foreign && refused.to_string().contains("authority"),
            "{refused}"
        );
        assert_eq!(std::fs::read_to_string(store.bundle_file()).unwrap(), ours);
        // A file that is garbled is no reason to take another's.
        std::fs::write(store.bundle_file(), "garbled").unwrap();
        assert_eq!(store.accept(&theirs).unwrap_err().kind, NotTakenKind::Storage);
        assert_eq!(store.read().unwrap_err().key, "security.bundle_file");
    }

    #[test]
    fn what_is_interrupted_before_the_end_leaves_what_is_held() {
        let fleet = Fleet::new();
        let store = fleet.store(ONE);
        let first = fleet.enrol(ONE);
        store.accept(&first).unwrap();
        let second = fleet.enrol(TWO);
        let pending = store.prepare(&second).unwrap();
        assert_eq!(store.read().unwrap().terms.order(), (1, 2));
        drop(pending);
        assert_eq!(std::fs::read_to_string(store.bundle_file()).unwrap(), first);
        // Nothing is left behind.
        let names = std::fs::read_dir(fleet.folder.path()).unwrap();
        assert!(
            names.filter(|n| n.as_ref().unwrap().file_name().to_string_lossy().contains("new")).count() == 0
        );
    }

    #[test]
    fn a_secret_is_made_once_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let fleet = Fleet::new();
        let store = fleet.store(ONE);
        let request = store.request().unwrap();
        assert_eq!(store.request().unwrap(), request);
        let mode = store.secret_file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&store.secret_file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = store.request().unwrap_err();
        assert!(refused.found.contains("mode 640"), "{}", refused.found);
        assert_eq!(store.read().unwrap_err().key, "security.secret_key_file");
    }
}
