//! The keys of a fleet's datagrams, and the files that hold them.
//!
//! A member has two files: its own secret, which it made itself and never hands out, and the fleet's bundle, which the authority on the
//! operator's computer has signed.
//!
//! ```text
//! member                              operator's computer
//! Store::request   ── request ─────▶  enrolment::change: the next bundle
//! Store::accept    ◀────── bundle ──
//! ```
//!
//! [`counter`] keeps how far a sender's counters have come.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod counter;
pub mod enrolment;
pub mod file;
pub mod folder;
mod request;
mod signed;
mod store;

use std::path::Path;

pub use self::{
    bundle::{BUNDLE_LEN_MAX, Bundle, Member, Terms, Validity},
    request::{REQUEST_LEN_MAX, Request},
    store::{Enrolled, Held, NotTaken, NotTakenKind, Pending, Store},
};
pub use jiff::Timestamp;

use file::Refused;
use wingbeat_wire::{Role, Roster, Signer, VehicleId};

const EXPECTED_OF_CONSOLE: &str =
    "console.key and fleet.bundle of an enrolled console (wingbeat fleet enrol --role operator)";

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

/// Why keys are not taken; what secret files hold is never part of it.
#[derive(Debug)]
pub struct Unusable {
    /// The key of the configuration.
    pub key: &'static str,
    /// What was found there.
    pub refused: Refused,
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

/// Reads the keys of a console from its folder: `console.key` and `fleet.bundle`.
///
/// # Errors
/// The first file that cannot be used, or a key that is no console's.
pub fn read_console(folder: &Path) -> Result<ConsoleKeys, Refused> {
    let text = file::read_text(&folder.join(store::BUNDLE), BUNDLE_LEN_MAX, EXPECTED_OF_CONSOLE)?;
    let store = console(folder, &text)?;
    let held = store.read().map_err(|unusable| unusable.refused)?;
    console_keys(&store, held)
}

/// Takes a bundle into a console's folder, by the rules of [`Store::accept`].
///
/// # Errors
/// Why it is not taken; what is held is as before then.
pub fn accept_console(folder: &Path, text: &str) -> Result<ConsoleKeys, Refused> {
    let store = console(folder, text)?;
    let held = store.accept(text).map_err(|not_taken| Refused {
        found: format!("{}: {not_taken}", folder.display()),
        expected: "a bundle that is taken",
    })?;
    console_keys(&store, held)
}

/// The console of this folder under the id that a bundle has for its key.
fn console(folder: &Path, text: &str) -> Result<Store, Refused> {
    let path = folder.join(store::CONSOLE_KEY);
    let refused = |found: String| Refused { found, expected: EXPECTED_OF_CONSOLE };
    let bundle = Bundle::parse(text).map_err(|found| refused(format!("{}: {found}", folder.display())))?;
    let secret = file::read_digits(&path, closed_to(&path))?;
    let key = Request::new(VehicleId(0), &secret).key();
    let member = bundle.members().iter().find(|member| member.key == key);
    let member =
        member.ok_or_else(|| refused(format!("{}: a key that the bundle does not have", path.display())))?;
    Ok(Store::of_console(member.id, folder))
}

fn console_keys(store: &Store, held: Held) -> Result<ConsoleKeys, Refused> {
    let keys = held.keys;
    let role = keys.roster.role(store.id());
    let role = role.filter(|role| *role != Role::Aircraft);
    let role = role.ok_or_else(|| Refused {
        found: format!("{}: the keys of no console", store.bundle_file().display()),
        expected: EXPECTED_OF_CONSOLE,
    })?;
    Ok(ConsoleKeys { id: store.id(), role, keys })
}

/// Of a secret its group has no use. But what systemd hands over (systemd.exec(5), `LoadCredential`) it may open to the
/// daemon's user by an access control list, whose mask stands where the group's permissions do (acl(5)).
fn closed_to(path: &Path) -> u32 {
    let is_of_this_process =
        std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
    // Of another unit's too, so that root can check what the daemon is given: systemd alone writes there.
    if is_of_this_process || path.starts_with("/run/credentials") { 0o007 } else { 0o077 }
}
