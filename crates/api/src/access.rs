//! Who may do what on the ground service, and what was done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a user of the ground service may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// See everything but the log of what was done; plan, and send nothing.
    Observer,
    /// Command aircraft.
    Operator,
    /// See who the users are, and end their sessions.
    Administrator,
}

impl UserRole {
    /// All, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Observer, Self::Operator, Self::Administrator];

    /// Its name, as in files and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Observer => "observer",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }
}

impl std::str::FromStr for UserRole {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("found {name:?}, expected one of {names}")
        })
    }
}

/// POST body: a user signs in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The user's name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// The password is no part of it.
impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignIn").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether the service knows users, and who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Access {
    /// Whether users sign in. Without, whatever reaches the service commands.
    pub login: bool,
    /// Who has signed in with this browser; absent while none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<SignedIn>,
    /// Why there is none, where a session was shown: it ended, or is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A user with a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// The user's name.
    pub name: String,
    /// What the user may do.
    pub role: UserRole,
    /// Until the session ends, milliseconds.
    pub ends_in_ms: u64,
}

/// What was done through the ground service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    /// Oldest first.
    pub entries: Vec<AuditEntry>,
    /// Entries that did not reach the file, since the service started. Their numbers are missing there.
    pub lost: u64,
    /// Refused requests of the kind that a stranger can send without end, of which the log has no entry.
    pub suppressed: u64,
    /// Whether it is kept in a file; else it ends with the service.
    pub kept: bool,
}

/// One thing that was done, or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counts up over restarts of the service.
    pub number: u64,
    /// UTC, as in RFC 3339, to the millisecond.
    pub time: String,
    /// Who; empty where none had signed in.
    pub user: String,
    /// What that user might do; absent where none had signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<UserRole>,
    /// The address that it came from.
    pub address: String,
    /// What was done: `command`, `mission`, `sign_in`, and so on.
    pub action: String,
    /// More of it: the command's name, the mission's hash.
    pub what: String,
    /// Ids of the aircraft that it was for; empty are all, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The command's id; empty for everything else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The HTTP status that it was answered with; 499 where its sender broke it off before.
    pub status: u16,
    /// Why it was refused; empty where it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub refused: String,
}

/// The users of a ground service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Users {
    /// By name.
    pub users: Vec<User>,
}

/// One user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// The name.
    pub name: String,
    /// What the user may do.
    pub role: UserRole,
    /// Sessions that have not ended.
    pub sessions: u32,
}
