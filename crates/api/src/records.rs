//! Recorded flights that the ground service reads from a directory: what there is, and the track of one log in columns.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The flight logs of the directory of records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Records {
    /// By folder and file.
    pub logs: Vec<RecordedLog>,
    /// Pages of what the bench came to, by folder.
    pub results: Vec<RecordedResults>,
    /// Files that are not listed, because there are more than the service lists.
    pub left_out: u32,
}

/// One flight log: the first of its files, where there are several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedLog {
    /// Its path below the directory of records, by which it is asked for.
    pub file: String,
    /// The length of all its files, bytes.
    pub length_bytes: u64,
    /// How many files it has.
    pub parts: u32,
    /// The aircraft's id, 16 hexadecimal digits; empty where the file does not state it.
    pub aircraft: String,
    /// The aircraft's name; empty where the file does not state it.
    pub name: String,
    /// UTC at its beginning, milliseconds since 1970, where its first file states it.
    pub began_unix_ms: Option<u64>,
    /// Why it cannot be read; empty where nothing is wrong with its beginning.
    pub problem: String,
}

/// What a campaign of the bench came to (`wingbeat bench run --out`): one page that needs no other file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedResults {
    /// The path of its page below the directory of records, by which it is asked for.
    pub page: String,
    /// The page's title; empty where it has none.
    pub title: String,
    /// The length of the page, bytes.
    pub length_bytes: u64,
}

/// What of one log is replayed: columns of equal length, one entry for each sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedTrack {
    /// Its path below the directory of records.
    pub file: String,
    /// The aircraft's id, 16 hexadecimal digits.
    pub aircraft: String,
    /// The aircraft's name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// UTC at agent time zero, milliseconds since 1970; absent where the log does not state it. Logs that state it are on one
    /// clock.
    pub zero_unix_ms: Option<f64>,
    /// Why it ends before its end, where it was cut or is corrupt; empty else.
    pub flaw: String,
    /// Each so many samples of the log one is in the columns; 1 is all. A change of state is never left out.
    pub every: u32,
    /// Agent time of each sample, milliseconds.
    pub time_ms: Vec<u32>,
    /// 1e-7 degree; absent where the position was unknown.
    pub latitude_e7: Vec<Option<i32>>,
    /// 1e-7 degree.
    pub longitude_e7: Vec<Option<i32>>,
    /// Above mean sea level, millimetres.
    pub altitude_mm: Vec<Option<i32>>,
    /// Above home, centimetres.
    pub height_cm: Vec<i32>,
    /// Over ground, centimetres per second.
    pub speed_cm_s: Vec<u32>,
    /// Clockwise from north, degrees.
    pub heading_deg: Vec<u16>,
    /// Charge of the battery, per cent.
    pub battery_percent: Vec<Option<u8>>,
    /// Whether motors were armed.
    pub armed: Vec<bool>,
    /// Whether the agent could command.
    pub engaged: Vec<bool>,
    /// Number of the autopilot's mode.
    pub mode_number: Vec<Option<u32>>,
    /// The waypoint reached last.
    pub waypoint_reached: Vec<Option<u16>>,
    /// The protocol's state: a number in `states`.
    pub state: Vec<u16>,
    /// The nearest other aircraft: a number in `peers`.
    pub nearest: Vec<Option<u16>>,
    /// How far that was, centimetres.
    pub nearest_cm: Vec<Option<u32>>,
    /// Names of states.
    pub states: Vec<String>,
    /// Ids of other aircraft, 16 hexadecimal digits.
    pub peers: Vec<String>,
    /// Datagrams that it received.
    pub received: RecordedDatagrams,
    /// What it logged, and what happened to it, in order.
    pub events: Vec<RecordedEvent>,
    /// Events that are left out, because there are more than the service gives.
    pub events_left_out: u32,
}

/// Datagrams in columns, at most one of each sender in each period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedDatagrams {
    /// The period, milliseconds.
    pub period_ms: u32,
    /// Agent time of each, milliseconds.
    pub time_ms: Vec<u32>,
    /// Its sender: a number in `peers` of the track.
    pub from: Vec<u16>,
    /// Its kind: a number in `kinds`.
    pub kind: Vec<u16>,
    /// Where the sender said that it was, 1e-7 degree; absent where it did not say.
    pub latitude_e7: Vec<Option<i32>>,
    /// 1e-7 degree.
    pub longitude_e7: Vec<Option<i32>>,
    /// Names of messages.
    pub kinds: Vec<String>,
}

/// A line of the log, or a command, an answer, a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordedEvent {
    /// Agent time, milliseconds.
    pub time_ms: u32,
    /// `log`, or the name of what happened: `operator`, `reply`, `mission`, `link`, `lost` and others.
    pub kind: String,
    /// How grave a line of the log is.
    pub severity: crate::Severity,
    /// One line.
    pub text: String,
}
