//! The keys of an aircraft's datagrams, and the files that hold them.
//!
//! Three files, because each has other readers: its own secret this aircraft alone, the fleet's key every aircraft of the
//! fleet, the roster any program.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use serde::{Deserialize, Serialize};
use wingbeat_wire::{FleetKey, Roster, Signer, VehicleId};

use crate::signing::{self, Refused};

/// A roster of 128 aircraft has 11 kB.
const ROSTER_FILE_MAX: u64 = 64 * 1024;

/// How an aircraft seals what it sends, and what it opens.
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

/// The file of the aircraft's public keys.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RosterFile {
    /// The epoch of all keys.
    pub(crate) epoch: u8,
    /// Public keys by id.
    pub(crate) aircraft: BTreeMap<String, String>,
}

/// Why keys are not taken; what secret files hold is never part of it.
pub(crate) struct Unusable {
    /// The key of the configuration.
    pub(crate) key: &'static str,
    pub(crate) refused: Refused,
}

/// Reads the three files of the aircraft `me`.
pub(crate) fn read(me: VehicleId, secret: &Path, fleet: &Path, roster: &Path) -> Result<Keys, Unusable> {
    let unusable = |key| move |refused| Unusable { key, refused };
    let secret =
        signing::read_digits(secret, closed_to(secret)).map_err(unusable("security.secret_key_file"))?;
    let fleet = signing::read_digits(fleet, closed_to(fleet)).map_err(unusable("security.fleet_key_file"))?;
    let path = roster;
    let (epoch, roster) = read_roster(path, FleetKey(fleet)).map_err(unusable("security.roster_file"))?;
    let signer = Signer::new(&secret, epoch, FleetKey(fleet));
    if roster.public_key(me) != signer.public_key() {
        let found = if roster.public_key(me).is_some() { "another key of" } else { "no key of" };
        let refused = Refused {
            found: format!("{}: {found} this aircraft, {me}", path.display()),
            expected: "the public half of security.secret_key_file",
        };
        return Err(Unusable { key: "security.roster_file", refused });
    }
    Ok(Keys { signer, roster })
}

/// Of a secret its group has no use. But what systemd hands over (systemd.exec(5), `LoadCredential`) it may open to the
/// daemon's user by an access control list, whose mask stands where the group's permissions do (acl(5)).
fn closed_to(path: &Path) -> u32 {
    let is_credential =
        std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
    if is_credential { 0o007 } else { 0o077 }
}

fn read_roster(path: &Path, fleet: FleetKey) -> Result<(u8, Box<Roster>), Refused> {
    let expected =
        "epoch = 0 to 255, and [aircraft] with lines \"ID\" = \"PUBLIC KEY\" of 16 and 64 hexadecimal digits";
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
    for (id, key) in &file.aircraft {
        let vehicle = VehicleId::from_hexadecimal(id).ok_or_else(|| format!("id {id:?}"))?;
        let key = signing::digits(key).ok_or_else(|| format!("public key {key:?} of {id}"))?;
        roster.add(vehicle, &key).map_err(|error| error.to_string())?;
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
