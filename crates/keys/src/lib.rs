//! The keys of a fleet's datagrams, and the files that hold them.
//!
//! Three files, because each has other readers: its own secret one aircraft or console alone, the fleet's key all of the
//! fleet, the roster any program. [`enrolment`] makes and renews them, [`counter`] keeps how far a sender's counters have
//! come.
#![forbid(unsafe_code)]

pub mod counter;
pub mod enrolment;
pub mod file;

use std::{collections::BTreeMap, io::Read as _, path::Path};

use file::Refused;
use serde::{Deserialize, Serialize};
use wingbeat_wire::{FleetKey, Role, Roster, Signer, VehicleId};

/// A full roster has 12 kB.
const ROSTER_FILE_MAX: u64 = 64 * 1024;

/// How an aircraft or a console seals what it sends, and what it opens.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// Its own keys.
    pub signer: Signer,
    /// What it knows of all. As large as all their keys.
    pub roster: Box<Roster>,
}

impl Keys {
    /// Without keys: any program may send in any aircraft's name.
    pub fn insecure() -> Self {
        Self { signer: Signer::insecure(), roster: Box::new(Roster::insecure()) }
    }
}

/// Public keys by id.
type PublicKeys = BTreeMap<String, String>;

/// The file of the public keys: a table for each role.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RosterFile {
    /// The epoch of all keys.
    pub(crate) epoch: u8,
    aircraft: PublicKeys,
    #[serde(default, skip_serializing_if = "PublicKeys::is_empty")]
    operator: PublicKeys,
    #[serde(default, skip_serializing_if = "PublicKeys::is_empty")]
    safety: PublicKeys,
    #[serde(default, skip_serializing_if = "PublicKeys::is_empty")]
    viewer: PublicKeys,
}

impl RosterFile {
    pub(crate) fn new(epoch: u8) -> Self {
        let [aircraft, operator, safety, viewer] = Default::default();
        Self { epoch, aircraft, operator, safety, viewer }
    }

    fn of(&self, role: Role) -> &PublicKeys {
        match role {
            Role::Aircraft => &self.aircraft,
            Role::Operator => &self.operator,
            Role::Safety => &self.safety,
            Role::Viewer => &self.viewer,
        }
    }

    pub(crate) fn of_mut(&mut self, role: Role) -> &mut PublicKeys {
        match role {
            Role::Aircraft => &mut self.aircraft,
            Role::Operator => &mut self.operator,
            Role::Safety => &mut self.safety,
            Role::Viewer => &mut self.viewer,
        }
    }

    /// Every id with its role and public key.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Role, &String, &String)> {
        Role::ALL.into_iter().flat_map(|role| self.of(role).iter().map(move |(id, key)| (role, id, key)))
    }
}

/// Why keys are not taken; what secret files hold is never part of it.
#[derive(Debug)]
pub struct Unusable {
    /// The key of the configuration.
    pub key: &'static str,
    /// What was found there.
    pub refused: Refused,
}

/// Reads the three files of the aircraft `me`.
///
/// # Errors
/// The first file that cannot be used.
pub fn read(me: VehicleId, secret: &Path, fleet: &Path, roster: &Path) -> Result<Keys, Unusable> {
    let unusable = |key| move |refused| Unusable { key, refused };
    let secret =
        file::read_digits(secret, closed_to(secret)).map_err(unusable("security.secret_key_file"))?;
    let fleet = file::read_digits(fleet, closed_to(fleet)).map_err(unusable("security.fleet_key_file"))?;
    let path = roster;
    let (epoch, roster) = read_roster(path, FleetKey(fleet)).map_err(unusable("security.roster_file"))?;
    let signer = Signer::new(&secret, epoch, FleetKey(fleet));
    if roster.public_key(me) != signer.public_key() || roster.role(me) != Some(Role::Aircraft) {
        let found = match roster.role(me) {
            Some(Role::Aircraft) => "another key of",
            Some(_) => "a console under the id of",
            None => "no key of",
        };
        let refused = Refused {
            found: format!("{}: {found} this aircraft, {me}", path.display()),
            expected: "the public half of security.secret_key_file",
        };
        return Err(Unusable { key: "security.roster_file", refused });
    }
    Ok(Keys { signer, roster })
}

/// Who a console is, and its keys.
#[derive(Clone, Debug)]
pub struct ConsoleKeys {
    /// Its id: that under which the roster has its key.
    pub id: VehicleId,
    /// What it may order.
    pub role: Role,
    /// Its keys.
    pub keys: Keys,
}

/// Reads the keys of a console from a folder: `console.key`, `fleet.key` and `roster.toml`.
///
/// # Errors
/// The first file that cannot be used, or a key that is no console's.
pub fn read_console(folder: &Path) -> Result<ConsoleKeys, Refused> {
    let [secret, fleet, path] = ["console.key", "fleet.key", "roster.toml"].map(|name| folder.join(name));
    let secret_path = secret.display().to_string();
    let secret = file::read_digits(&secret, closed_to(&secret))?;
    let fleet = file::read_digits(&fleet, closed_to(&fleet))?;
    let (epoch, roster) = read_roster(&path, FleetKey(fleet))?;
    let signer = Signer::new(&secret, epoch, FleetKey(fleet));
    let consoles = roster.senders().filter(|(_, role)| matches!(role, Role::Operator | Role::Safety));
    let found = consoles.into_iter().find(|(id, _)| roster.public_key(*id) == signer.public_key());
    let (id, role) = found.ok_or_else(|| Refused {
        found: format!(
            "{secret_path}: a key that {} has for no operator and no safety pilot",
            path.display()
        ),
        expected: "the key of an enrolled console (wingbeat fleet enrol --role operator)",
    })?;
    Ok(ConsoleKeys { id, role, keys: Keys { signer, roster } })
}

/// Of a secret its group has no use. But what systemd hands over (systemd.exec(5), `LoadCredential`) it may open to the
/// daemon's user by an access control list, whose mask stands where the group's permissions do (acl(5)).
fn closed_to(path: &Path) -> u32 {
    let is_credential =
        std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
    if is_credential { 0o007 } else { 0o077 }
}

fn read_roster(path: &Path, fleet: FleetKey) -> Result<(u8, Box<Roster>), Refused> {
    let expected = "epoch = 0 to 255, and [aircraft], [operator], [safety], [viewer] with lines \"ID\" = \"PUBLIC KEY\" of 16 and 64 hexadecimal digits";
    let refused = |found: String| Refused { found: format!("{}: {found}", path.display()), expected };
    let file = read_roster_file(path).map_err(refused)?;
    let roster = roster_of(&file, fleet).map_err(refused)?;
    Ok((file.epoch, roster))
}

/// What a roster's file holds, or what was found instead.
pub(crate) fn read_roster_file(path: &Path) -> Result<RosterFile, String> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(ROSTER_FILE_MAX).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| error.message().to_owned())
}

/// The roster of a file, or what of it is none.
pub(crate) fn roster_of(file: &RosterFile, fleet: FleetKey) -> Result<Box<Roster>, String> {
    let mut roster = Box::new(Roster::new(file.epoch, fleet));
    for (role, id, key) in file.entries() {
        let vehicle = VehicleId::from_hexadecimal(id).ok_or_else(|| format!("id {id:?}"))?;
        let key = file::digits(key).ok_or_else(|| format!("public key {key:?} of {id}"))?;
        roster.add(vehicle, role, &key).map_err(|error| error.to_string())?;
    }
    Ok(roster)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const ME: VehicleId = VehicleId(0x00b8_27eb_0102_0304);

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            files.write("secret", &hex(&[1; 32]), 0o600);
            files.write("fleet", &hex(&[2; 32]), 0o600);
            let key = Signer::new(&[1; 32], 0, FleetKey([0; 32])).public_key().unwrap();
            files.write("roster", &format!("epoch = 7\n[aircraft]\n\"{ME}\" = \"{}\"\n", hex(&key)), 0o644);
            files
        }
        fn write(&self, name: &str, text: &str, mode: u32) {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        fn read(&self, me: VehicleId) -> Result<Keys, (&'static str, String)> {
            let path = |name: &str| self.0.path().join(name);
            read(me, &path("secret"), &path("fleet"), &path("roster"))
                .map_err(|u| (u.key, format!("{}, expected {}", u.refused.found, u.refused.expected)))
        }
    }

    #[test]
    fn an_aircraft_opens_what_it_seals_and_its_files_show_in_no_message() {
        let keys = Files::new().read(ME).unwrap();
        let datagram = wingbeat_wire::Datagram { from: ME, ..wingbeat_wire::Datagram::blank() };
        let mut draft = datagram.draft().unwrap();
        let bytes = keys.signer.seal(&mut draft);
        assert_eq!(keys.roster.open(bytes).map(|opened| opened.from()), Ok(ME));
        assert!(keys.roster.is_secured() && !Keys::insecure().roster.is_secured());
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_what_was_found() {
        let files = Files::new();
        let refused = |files: &Files| files.read(ME).unwrap_err();
        files.write("secret", &hex(&[1; 32]), 0o640);
        let (key, why) = refused(&files);
        assert!(key == "security.secret_key_file" && why.contains("mode 640"), "{why}");
        files.write("secret", &hex(&[3; 32]), 0o600);
        let (key, why) = refused(&files);
        assert!(key == "security.roster_file" && why.contains("another key of this aircraft"), "{why}");
        assert!(!why.contains("0303"), "{why}");
        files.write("secret", "01", 0o600);
        assert!(refused(&files).1.contains("2 characters"));
        let files = Files::new();
        let (key, why) = files.read(VehicleId(9)).unwrap_err();
        assert!(key == "security.roster_file" && why.contains("no key of this aircraft"), "{why}");
        for (text, words) in [
            ("epoch = 1", "missing field"),
            ("epoch = 300\n[aircraft]\n", "300"),
            ("epoch = 1\n[aircraft]\n\"12\" = \"34\"\n", "id \"12\""),
            ("epoch = 1\n[aircraft]\n\"00b827eb01020304\" = \"34\"\n", "public key \"34\""),
        ] {
            files.write("roster", text, 0o644);
            let (key, why) = refused(&files);
            assert!(key == "security.roster_file" && why.contains(words), "{why}");
        }
        std::fs::remove_file(files.0.path().join("fleet")).unwrap();
        assert_eq!(refused(&files).0, "security.fleet_key_file");
    }
}
