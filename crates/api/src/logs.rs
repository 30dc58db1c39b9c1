//! The flight logs of an aircraft, for a computer that collects them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A flight log of the daemon, or a part of it: `NNNNNN-PP.mcap`.
    Flight,
    /// A DataFlash log of the flight controller, which the daemon has fetched: `autopilot-NNNNN-UTC.bin`, its number in the flight
    /// controller's list, and when it was begun, seconds after 1970 (its length where that is not known).
    Autopilot,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogFile {
    /// Its name. It has no folder.
    pub name: String,
    /// What it is.
    pub kind: LogKind,
    /// Its length now; that of the present flight grows. What is there does not change any more.
    pub bytes: u64,
    /// Seconds since it was last written, by the aircraft's own clock; 0 where that was set back since.
    pub age_s: u64,
}

/// The files that an aircraft has, oldest flight first, at most the newest 4096.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogFiles {
    /// The files.
    pub files: Vec<LogFile>,
    /// Why there may be others: nothing is logged, or the directory cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// POST body: which of the flight controller's own logs are to be fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AutopilotLogRequest {
    /// The newest, so many. What is there whole is not fetched again.
    #[schema(minimum = 1, maximum = 16)]
    pub newest: u16,
}

/// What a daemon does about the flight controller's own logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutopilotLogWork {
    /// Nothing.
    #[default]
    None,
    /// It asks which there are.
    Listing,
    /// It fetches one after another.
    Fetching,
}

/// How far fetching the flight controller's own logs has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AutopilotLogs {
    /// What it does.
    pub work: AutopilotLogWork,
    /// The file of the log that is being fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// How much of it is there, bytes.
    pub received_bytes: u32,
    /// Its length.
    pub bytes: u32,
    /// Those of the last request that are there whole: names in the list of files.
    pub held: Vec<String>,
    /// Why the last request ended before its end. What is there is continued by the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The hash of a piece of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogHash {
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// The longest piece that is hashed in one request, bytes.
pub const LOG_PIECE_MAX: u64 = 32 << 20;
