//! The authority of a fleet, in a folder of the operator's computer.
//!
//! | file | |
//! |---|---|
//! | `authority.key` | the authority's secret, mode 600: it signs bundles, and opens the fleet's key |
//! | `fleet.bundle` | the latest bundle, for all members |
//!
//! A change is another bundle in place of the last, so the folder is as before or as after, whenever it is interrupted.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use ed25519_dalek::SigningKey;
use jiff::{SignedDuration, Timestamp};
use wingbeat_wire::{FleetKey, Role, SecretKey, VehicleId};

use crate::{
    bundle::{BUNDLE_LEN_MAX, Bundle, Member, Terms},
    file::{self, Written},
    request::Request,
    store::BUNDLE,
};

const AUTHORITY: &str = "authority.key";
/// How long a bundle holds unless the operator states it, days.
pub const DAYS: u16 = 365;

/// Why a folder of keys is not made or changed; nothing secret is part of it.
#[derive(Debug, thiserror::Error)]
#[error("{}: found {found}, expected {expected}", .path.display())]
pub struct EnrolmentError {
    path: PathBuf,
    found: String,
    expected: &'static str,
}

fn refused(path: &Path, found: impl fmt::Display, expected: &'static str) -> EnrolmentError {
    EnrolmentError { path: path.into(), found: found.to_string(), expected }
}

/// What is changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// A member more, in the same epoch.
    Enrol {
        /// What it asked for, its code compared.
        request: Request,
        /// What it may send.
        role: Role,
    },
    /// The next epoch: another fleet key, for all but these.
    Renew {
        /// Those that are left out.
        without: Vec<VehicleId>,
    },
}

/// Makes the authority of a new fleet, and a bundle without members.
///
/// # Errors
/// There is one already, or the folder cannot be written.
pub fn init(folder: &Path, now: Timestamp, days: u16) -> Result<Bundle, EnrolmentError> {
    let (bundle, key) = (folder.join(BUNDLE), folder.join(AUTHORITY));
    if bundle.exists() {
        return Err(refused(&bundle, "a bundle", "a folder without a fleet"));
    }
    file::make_folder(folder).map_err(|error| refused(folder, error, "a folder that can be written"))?;
    let secret = match file::make_secret(&key) {
        Ok(secret) => secret,
        // Of an attempt that was interrupted: nothing is signed by it yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_authority(folder)?,
        Err(error) => return Err(refused(&key, error, "a new file that can be written")),
    };
    let terms = Terms {
        authority: SigningKey::from_bytes(&secret).verifying_key().to_bytes(),
        epoch: 1,
        serial: 1,
        ..dates(folder, now, SignedDuration::from_hours(24 * i64::from(days)))?
    };
    write(folder, Bundle::sign(&secret, &terms, &new_key(folder)?, &[]))
}

/// Reads the latest bundle.
///
/// # Errors
/// The folder is no fleet's.
pub fn read(folder: &Path) -> Result<Bundle, EnrolmentError> {
    let path = folder.join(BUNDLE);
    let expected = "the bundle of a fleet (wingbeat fleet init)";
    let text = file::read_text(&path, BUNDLE_LEN_MAX, expected);
    let text = text.map_err(|error| EnrolmentError {
        path: path.clone(),
        found: plain(&error.found, &path),
        expected,
    })?;
    Bundle::parse(&text).map_err(|found| refused(&path, found, expected))
}

/// Makes the next bundle, and puts it in place of the last. It holds as long from now on as the last one did.
///
/// # Errors
/// Why nothing is changed.
pub fn change(folder: &Path, change: &Change, now: Timestamp) -> Result<Bundle, EnrolmentError> {
    let path = folder.join(BUNDLE);
    let last = read(folder)?;
    let secret = read_authority(folder)?;
    let terms = last.terms();
    let fleet =
        last.fleet_key(&secret).map_err(|found| refused(&path, found, "a bundle of this authority"))?;
    if now < terms.issued {
        let found = format!("a bundle issued {}, later than this computer's clock shows", terms.issued);
        return Err(refused(&path, found, "a clock that is set"));
    }
    let mut members = last.members().to_vec();
    let (epoch, fleet) = match change {
        Change::Enrol { request, role } => {
            let new = Member { id: request.id(), role: *role, key: request.key() };
            if let Some(known) =
                last.members().iter().find(|member| member.key == new.key && member.id != new.id)
            {
                let found = format!("its key enrolled already, under {}", known.id);
                let expected =
                    "a key of its own, or the other id left out first (wingbeat fleet renew --without)";
                return Err(refused(&path, found, expected));
            }
            match last.member(new.id) {
                Some(known) if *known == new => {}
                Some(known) => {
                    let found = format!("{} {} with another key or role", known.role.name(), known.id);
                    return Err(refused(
                        &path,
                        found,
                        "an id that is not enrolled (wingbeat fleet renew --without)",
                    ));
                }
                None => members.push(new),
            }
            (terms.epoch, fleet)
        }
        Change::Renew { without } => {
            if let Some(id) = without.iter().find(|id| last.member(**id).is_none()) {
                return Err(refused(&path, format!("no {id}"), "an id that is enrolled"));
            }
            members.retain(|member| !without.contains(&member.id));
            let epoch = terms.epoch.checked_add(1);
            let epoch = epoch.ok_or_else(|| refused(&path, "epoch 255", "at most 254: make a new fleet"))?;
            (epoch, new_key(folder)?)
        }
    };
    let terms = Terms {
        authority: terms.authority,
        epoch,
        serial: terms.serial.saturating_add(1),
        ..dates(folder, now, terms.expires.duration_since(terms.issued))?
    };
    write(folder, Bundle::sign(&secret, &terms, &fleet, &members))
}

/// Whole seconds from now, for so long.
fn dates(folder: &Path, now: Timestamp, lasts: SignedDuration) -> Result<Terms, EnrolmentError> {
    let refused = |error| refused(folder, error, "a time of expiry before the year 10000");
    let issued = Timestamp::from_second(now.as_second()).map_err(refused)?;
    let expires = issued.checked_add(lasts).map_err(refused)?;
    Ok(Terms { authority: [0; 32], epoch: 0, serial: 0, issued, expires })
}

fn write(folder: &Path, bundle: Result<Bundle, String>) -> Result<Bundle, EnrolmentError> {
    let path = folder.join(BUNDLE);
    let bundle = bundle.map_err(|found| refused(&path, found, "members that an aircraft can read"))?;
    let written =
        Written::new(&path, bundle.text()).and_then(Written::commit).and_then(|()| file::sync_folder(&path));
    written.map_err(|error| refused(&path, error, "a file that can be replaced"))?;
    Ok(bundle)
}

fn read_authority(folder: &Path) -> Result<SecretKey, EnrolmentError> {
    let path = folder.join(AUTHORITY);
    file::read_digits(&path, 0o077)
        .map_err(|error| refused(&path, plain(&error.found, &path), error.expected))
}

/// Without the path, which the message begins with.
fn plain(found: &str, path: &Path) -> String {
    found.strip_prefix(&format!("{}: ", path.display())).unwrap_or(found).to_owned()
}

fn new_key(folder: &Path) -> Result<FleetKey, EnrolmentError> {
    file::random().map(FleetKey).map_err(|error| refused(folder, error, "32 random bytes of the kernel"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use std::os::unix::fs::PermissionsExt as _;

    const ONE: VehicleId = VehicleId(0xa1);
    const TWO: VehicleId = VehicleId(0xa2);

    fn now() -> Timestamp {
        "2026-11-24T12:00:00.5Z".parse().unwrap()
    }

    fn enrol(id: VehicleId, secret: u8, role: Role) -> Change {
        Change::Enrol { request: Request::new(id, &[secret; 32]), role }
    }

    fn fleet() -> (tempfile::TempDir, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("fleet");
        init(&folder, now(), 10).unwrap();
        (temporary, folder)
    }

    #[test]
    fn a_fleet_is_made_once_and_its_secret_is_its_owners_alone() {
        let (_temporary, folder) = fleet();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(AUTHORITY))), (0o700, 0o600));
        assert!(init(&folder, now(), 10).unwrap_err().to_string().contains("a folder without a fleet"));
        let terms = read(&folder).unwrap().terms();
        assert_eq!(terms.to_string(), "epoch 1, serial 1, until 2026-12-04T12:00:00Z");
        // Interrupted between the two files.
        std::fs::remove_file(folder.join(BUNDLE)).unwrap();
        assert_eq!(init(&folder, now(), 10).unwrap().terms(), terms);
        let message =
            change(&folder.join("none"), &Change::Renew { without: vec![] }, now()).unwrap_err().to_string();
        assert!(
            message.contains("found No such file") && message.contains("wingbeat fleet init"),
            "{message}"
        );
    }

    #[test]
    fn after_a_capture_the_others_have_another_key_and_the_lost_one_has_none() {
        let (_temporary, folder) = fleet();
        change(&folder, &enrol(ONE, 1, Role::Aircraft), now()).unwrap();
        let before = change(&folder, &enrol(TWO, 2, Role::Operator), now()).unwrap();
        let later = now() + SignedDuration::from_hours(48);
        let after = change(&folder, &Change::Renew { without: vec![TWO] }, later).unwrap();
        assert_eq!(after.terms().to_string(), "epoch 2, serial 4, until 2026-12-06T12:00:00Z");
        assert_eq!(after.members().iter().map(|m| m.id).collect::<Vec<_>>(), [ONE]);
        let [old, new] = [&before, &after].map(|bundle| bundle.keys(ONE, &[1; 32]).unwrap());
        assert_ne!(old.signer, new.signer);
        assert_eq!(
            before.fleet_key(&read_authority(&folder).unwrap()).unwrap(),
            before.fleet_key(&read_authority(&folder).unwrap()).unwrap()
        );
        assert_ne!(
            before.fleet_key(&read_authority(&folder).unwrap()).unwrap(),
            after.fleet_key(&read_authority(&folder).unwrap()).unwrap()
        );
        assert!(after.keys(TWO, &[2; 32]).is_err());
        let unknown = change(&folder, &Change::Renew { without: vec![TWO] }, later).unwrap_err().to_string();
        assert!(unknown.contains("found no 00000000000000a2"), "{unknown}");
        assert_eq!(read(&folder).unwrap(), after);
        let early = change(&folder, &Change::Renew { without: vec![] }, now()).unwrap_err().to_string();
        assert!(early.contains("expected a clock that is set"), "{early}");
    }

    #[test]
    fn an_id_has_one_key() {
        let (_temporary, folder) = fleet();
        let first = change(&folder, &enrol(ONE, 1, Role::Aircraft), now()).unwrap();
        let again = change(&folder, &enrol(ONE, 1, Role::Aircraft), now()).unwrap();
        assert_eq!((again.members(), again.terms().serial), (first.members(), 3));
        for other in [enrol(ONE, 2, Role::Aircraft), enrol(ONE, 1, Role::Operator)] {
            let message = change(&folder, &other, now()).unwrap_err().to_string();
            assert!(
                message.contains("found aircraft 00000000000000a1 with another key or role"),
                "{message}"
            );
        }
        assert_eq!(read(&folder).unwrap(), again);
    }

    /// The folder cannot be written from the given step on: it is as before.
    #[test]
    fn a_renewal_that_fails_leaves_the_fleet_as_it_was() {
        let (_temporary, folder) = fleet();
        change(&folder, &enrol(ONE, 1, Role::Aircraft), now()).unwrap();
        let files = || {
            let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
            files.sort();
            files.into_iter().map(|path| (std::fs::read(&path).unwrap_or_default(), path)).collect::<Vec<_>>()
        };
        let before = files();
        // Whatever a crash leaves of the writing is not read, and not in the way.
        let text = std::fs::read_to_string(folder.join(BUNDLE)).unwrap();
        let half = folder.join("fleet.new-1");
        std::fs::write(&half, &text[..100]).unwrap();
        assert_eq!(read(&folder).unwrap().text(), text);
        // The writing of the new bundle fails: a folder is where it would be written.
        let new = folder.join(format!("fleet.new-{}", std::process::id()));
        std::fs::create_dir(&new).unwrap();
        let message = change(&folder, &Change::Renew { without: vec![ONE] }, now()).unwrap_err().to_string();
        assert!(message.contains("a file that can be replaced"), "{message}");
        std::fs::remove_dir(&new).unwrap();
        std::fs::remove_file(&half).unwrap();
        assert_eq!(files(), before);
        // The renaming fails: a folder is where the bundle was.
        let written = Written::new(&folder, "x").unwrap();
        assert!(written.commit().is_err());
        assert_eq!(files(), before);
        assert_eq!(change(&folder, &Change::Renew { without: vec![ONE] }, now()).unwrap().terms().epoch, 2);
    }

    #[test]
    fn a_console_is_enrolled_by_request_and_an_aircrafts_key_is_no_consoles() {
        let (temporary, folder) = fleet();
        let console = temporary.path().join("console");
        let request = Store::of_console(TWO, &console).request().unwrap();
        let bundle = change(&folder, &Change::Enrol { request, role: Role::Safety }, now()).unwrap();
        assert!(crate::read_console(&console).unwrap_err().found.contains("fleet.bundle: No such file"));
        assert_eq!(crate::accept_console(&console, bundle.text()).unwrap().id, TWO);
        let read = crate::read_console(&console).unwrap();
        assert_eq!((read.id, read.role), (TWO, Role::Safety));
        let aircraft = Store::of_aircraft(TWO, console.join("console.key"), console.join(BUNDLE));
        assert!(aircraft.read().unwrap_err().refused.found.contains("under the role safety"));
    }
}
