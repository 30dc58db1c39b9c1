//! The keys of a fleet in a folder of the operator's computer: made once, handed to each aircraft and console by hand, and
//! renewed without one that is lost.
//!
//! | file | where | mode |
//! |---|---|---|
//! | `fleet.key` | all aircraft and consoles | 600 |
//! | `roster.toml` | all aircraft and consoles | 644 |
//! | `aircraft/ID.key` | that aircraft | 600 |
//! | `consoles/ID.key` | that console, as `console.key` | 600 |

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use wingbeat_wire::{FleetKey, Role, Signer, VehicleId};

use crate::{RosterFile, file};

const FLEET_KEY: &str = "fleet.key";
const ROSTER: &str = "roster.toml";
const AIRCRAFT: &str = "aircraft";
const CONSOLES: &str = "consoles";

/// Why a folder of keys is not made or changed; nothing secret is part of it.
#[derive(Debug, thiserror::Error)]
#[error("{}: found {found}, expected {expected}", .path.display())]
pub struct EnrolmentError {
    path: PathBuf,
    found: String,
    expected: &'static str,
}

fn refused(path: &Path, found: impl ToString, expected: &'static str) -> EnrolmentError {
    EnrolmentError { path: path.into(), found: found.to_string(), expected }
}

/// Makes the folder of a new fleet: its key, and a roster without aircraft.
///
/// # Errors
/// There is one already, or the folder cannot be written.
pub fn init(folder: &Path) -> Result<(), EnrolmentError> {
    let roster = folder.join(ROSTER);
    if roster.exists() {
        return Err(refused(&roster, "a roster", "a folder without a fleet"));
    }
    make_folder(&folder.join(AIRCRAFT))?;
    write_secret(&folder.join(FLEET_KEY), &random(folder)?)?;
    write_roster(&roster, &RosterFile::new(1))
}

fn make_folder(folder: &Path) -> Result<(), EnrolmentError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| refused(folder, error, "a folder that can be written"))
}

/// Adds an aircraft or a console: makes its secret, and puts its public key into the roster. The path of its secret is
/// returned.
///
/// # Errors
/// It is enrolled already, the roster is full, or the folder is no fleet's.
pub fn enrol(folder: &Path, id: VehicleId, role: Role) -> Result<PathBuf, EnrolmentError> {
    let path = folder.join(ROSTER);
    let mut roster = read_roster(&path)?;
    let name = id.to_string();
    if let Some((known, ..)) = roster.entries().find(|(_, known, _)| **known == name) {
        return Err(refused(&path, format!("{} {id}", known.name()), "an id that is not enrolled"));
    }
    let secret = random(folder)?;
    let key = Signer::new(&secret, roster.epoch, FleetKey([0; 32])).public_key().unwrap_or_default();
    roster.of_mut(role).insert(name, hexadecimal(&key));
    // What no aircraft would read is not written.
    let expected = "a roster that an aircraft can read";
    crate::roster_of(&roster, FleetKey([0; 32])).map_err(|found| refused(&path, found, expected))?;
    let folder = folder.join(if role == Role::Aircraft { AIRCRAFT } else { CONSOLES });
    make_folder(&folder)?;
    let file = folder.join(format!("{id}.key"));
    write_secret(&file, &secret)?;
    write_roster(&path, &roster)?;
    Ok(file)
}

/// Begins the next epoch, without some aircraft and consoles: a new fleet key, and a roster that no longer has them. The number of the
/// epoch is returned.
///
/// # Errors
/// One of them is not enrolled, or the folder is no fleet's.
pub fn renew(folder: &Path, without: &[VehicleId]) -> Result<u8, EnrolmentError> {
    let path = folder.join(ROSTER);
    let mut roster = read_roster(&path)?;
    for id in without {
        let removed = Role::ALL.into_iter().find_map(|role| roster.of_mut(role).remove(&id.to_string()));
        removed.ok_or_else(|| refused(&path, format!("no {id}"), "an id that is enrolled"))?;
    }
    let next = roster.epoch.checked_add(1);
    roster.epoch = next.ok_or_else(|| refused(&path, "epoch 255", "at most 254: make a new fleet"))?;
    let (key, new) = (folder.join(FLEET_KEY), folder.join("fleet.key.new"));
    // Of an attempt that was interrupted.
    let _ = fs::remove_file(&new);
    write_secret(&new, &random(folder)?)?;
    write_roster(&path, &roster)?;
    fs::rename(&new, &key).map_err(|error| refused(&key, error, "a file that can be replaced"))?;
    Ok(roster.epoch)
}

fn read_roster(path: &Path) -> Result<RosterFile, EnrolmentError> {
    crate::read_roster_file(path)
        .map_err(|found| refused(path, found, "the roster of a fleet (wingbeat fleet init)"))
}

fn write_roster(path: &Path, roster: &RosterFile) -> Result<(), EnrolmentError> {
    let expected = "a file that can be written";
    let text = toml::to_string(roster).map_err(|error| refused(path, error, expected))?;
    file::write(path, text.trim_end()).map_err(|error| refused(path, error, expected))
}

/// Never over a secret that is there.
fn write_secret(path: &Path, secret: &[u8; 32]) -> Result<(), EnrolmentError> {
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{}", hexadecimal(secret))?;
        file.sync_all()
    };
    write().map_err(|error| refused(path, error, "a new file that can be written"))
}

fn random(folder: &Path) -> Result<[u8; 32], EnrolmentError> {
    let mut bytes = [0; 32];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(32) => Ok(bytes),
        found => {
            let found = found.map_or_else(|error| error.to_string(), |length| format!("{length} bytes"));
            Err(refused(folder, format!("no random key ({found})"), "32 random bytes of the kernel"))
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;
    use wingbeat_wire::{Datagram, Refused};

    const ONE: VehicleId = VehicleId(0x00b8_27eb_0102_0304);
    const TWO: VehicleId = VehicleId(0x00b8_27eb_0102_0305);

    fn keys_of(folder: &Path, id: VehicleId) -> Result<Keys, String> {
        let secret = folder.join(AIRCRAFT).join(format!("{id}.key"));
        crate::read(id, &secret, &folder.join(FLEET_KEY), &folder.join(ROSTER))
            .map_err(|unusable| unusable.refused.found)
    }

    fn sealed(keys: &Keys, from: VehicleId) -> Vec<u8> {
        let mut draft = Datagram { from, ..Datagram::blank() }.draft().unwrap();
        keys.signer.seal(&mut draft).to_vec()
    }

    #[test]
    fn what_is_enrolled_is_received_until_the_next_epoch_leaves_it_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("fleet");
        init(&folder).unwrap();
        assert!(enrol(&folder, ONE, Role::Aircraft).unwrap().ends_with("aircraft/00b827eb01020304.key"));
        enrol(&folder, TWO, Role::Aircraft).unwrap();
        let (one, two) = (keys_of(&folder, ONE).unwrap(), keys_of(&folder, TWO).unwrap());
        assert_eq!(two.roster.open(&sealed(&one, ONE)).map(|opened| opened.from()), Ok(ONE));
        assert_eq!(two.roster.open(&sealed(&one, TWO)), Err(Refused::Signature));

        assert_eq!(renew(&folder, &[ONE]).unwrap(), 2);
        assert!(keys_of(&folder, ONE).unwrap_err().contains("no key of this aircraft"));
        let renewed = keys_of(&folder, TWO).unwrap();
        assert_eq!(renewed.roster.open(&sealed(&one, ONE)), Err(Refused::Epoch));
        assert_eq!(renewed.roster.open(&sealed(&renewed, TWO)).map(|opened| opened.from()), Ok(TWO));
        // Whatever epoch it claims, it has not the new fleet key.
        let mut forged = sealed(&one, ONE);
        forged[1] = 2;
        assert_eq!(renewed.roster.open(&forged), Err(Refused::FleetTag));
    }

    #[test]
    fn nothing_is_made_twice_and_every_refusal_names_what_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let message = enrol(folder, ONE, Role::Aircraft).unwrap_err().to_string();
        assert!(message.contains("No such file") && message.contains("wingbeat fleet init"), "{message}");
        init(folder).unwrap();
        let fleet_key = fs::read(folder.join(FLEET_KEY)).unwrap();
        assert!(init(folder).unwrap_err().to_string().contains("found a roster"));
        enrol(folder, ONE, Role::Aircraft).unwrap();
        let message = enrol(folder, ONE, Role::Aircraft).unwrap_err().to_string();
        assert!(
            message.contains("found aircraft 00b827eb01020304, expected an id that is not enrolled"),
            "{message}"
        );
        let message = renew(folder, &[TWO]).unwrap_err().to_string();
        assert!(message.contains("found no 00b827eb01020305"), "{message}");
        assert_eq!(fs::read(folder.join(FLEET_KEY)).unwrap(), fleet_key, "nothing was renewed");
        for id in 1..136 {
            enrol(folder, VehicleId(id), Role::Aircraft).unwrap();
        }
        let message = enrol(folder, VehicleId(136), Role::Aircraft).unwrap_err().to_string();
        assert!(message.contains("found more than 136 aircraft and consoles"), "{message}");
        assert!(!folder.join("aircraft/0000000000000088.key").exists());
    }

    #[test]
    fn a_console_is_enrolled_with_its_role_and_finds_itself_by_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        init(folder).unwrap();
        enrol(folder, ONE, Role::Aircraft).unwrap();
        let secret = enrol(folder, TWO, Role::Safety).unwrap();
        assert!(secret.ends_with("consoles/00b827eb01020305.key"));
        let message = enrol(folder, TWO, Role::Operator).unwrap_err().to_string();
        assert!(message.contains("found safety 00b827eb01020305"), "{message}");
        assert!(crate::read_console(folder).unwrap_err().found.contains("console.key: No such file"));
        fs::copy(secret, folder.join("console.key")).unwrap();
        let console = crate::read_console(folder).unwrap();
        assert_eq!((console.id, console.role), (TWO, Role::Safety));
        let aircraft = keys_of(folder, ONE).unwrap();
        let sealed = sealed(&console.keys, TWO);
        assert_eq!(aircraft.roster.open(&sealed).map(|opened| opened.role()), Ok(Some(Role::Safety)));
        // An aircraft's key is no console's, and the other way round.
        fs::copy(folder.join("aircraft").join(format!("{ONE}.key")), folder.join("console.key")).unwrap();
        let refused = crate::read_console(folder).unwrap_err();
        assert!(refused.found.contains("for no operator and no safety pilot"), "{}", refused.found);
        fs::copy(
            folder.join("consoles").join(format!("{TWO}.key")),
            folder.join("aircraft").join(format!("{TWO}.key")),
        )
        .unwrap();
        assert!(keys_of(folder, TWO).unwrap_err().contains("a console under the id of this aircraft"));
    }
}
