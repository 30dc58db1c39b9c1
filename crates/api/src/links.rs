//! Links between aircraft: what each receives of the others, and tests of a link.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an aircraft receives of the probes that the others broadcast all the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// The aircraft that receives, 16 hexadecimal digits.
    pub id: String,
    /// Time between its own probes, milliseconds; 0 where it broadcasts none.
    pub probe_period_ms: u32,
    /// The aircraft that it received one of, by their ids; at most 136.
    pub links: Vec<Link>,
}

/// The last 30 probes of one aircraft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// The aircraft that sends, 16 hexadecimal digits.
    pub from: String,
    /// Probes received.
    pub received: u32,
    /// Probes lost; also those that are due since the last one.
    pub lost: u32,
    /// Distance over the ground when the last one was received, metres; absent where a position was unknown.
    pub distance_m: Option<f64>,
    /// Time since the last one, milliseconds.
    pub age_ms: u64,
}

/// The links of every pair of aircraft of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetLinks {
    /// What each aircraft receives.
    pub aircraft: Vec<Links>,
    /// The aircraft that did not answer, and why.
    pub missing: Vec<MissingLinks>,
    /// Time since the aircraft were asked, milliseconds.
    pub age_ms: u64,
    /// The number of the test that runs, or of the last; absent where there was none since the service started.
    pub test: Option<u32>,
}

/// An aircraft whose links are not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MissingLinks {
    /// 16 hexadecimal digits.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// A test of the link from one aircraft to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTestRequest {
    /// Its number, the same at all aircraft, 1 to 4294967295; the ground service gives it where it is absent.
    #[serde(default)]
    pub number: Option<u32>,
    /// The aircraft that sends, 16 hexadecimal digits.
    pub sender: String,
    /// The aircraft that record what they receive, 1 to 16 of them.
    pub receivers: Vec<String>,
    /// Datagrams a second, 1 to 100.
    pub rate_hz: f64,
    /// UDP payload of each, bytes: at least what a probe needs (150 with keys, 86 without), at most 1472 (1408 without keys).
    pub payload_bytes: u32,
    /// Duration, seconds, 1 to 600.
    pub seconds: u32,
    /// Sends to the one receiver, and not to all: 802.11 repeats such frames until they are acknowledged.
    #[serde(default)]
    pub unicast: bool,
}

/// What an aircraft does in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkTestRole {
    /// It sends.
    Sender,
    /// It records what it receives.
    Receiver,
}

/// One aircraft's part of the test that runs, or of the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkTestReport {
    /// The test.
    pub test: LinkTestRequest,
    /// What this aircraft does in it.
    pub role: LinkTestRole,
    /// Why it ended; absent while it runs.
    pub ended: Option<String>,
    /// Time since this aircraft began it, milliseconds.
    pub elapsed_ms: u64,
    /// For how long it ran, milliseconds.
    pub ran_ms: u64,
    /// Datagrams sent, or received.
    pub count: u32,
    /// For each second of what was sent, by the numbers of the datagrams; of a sender none.
    pub seconds: Vec<LinkTestSecond>,
}

/// The datagrams of one second of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkTestSecond {
    /// How many of them were received.
    pub received: u32,
    /// Distance over the ground at the last of them, metres; absent where none was received.
    pub distance_m: Option<f64>,
}

/// Where an aircraft is and how it flies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkTestFlight {
    /// Latitude, degrees.
    pub latitude_deg: f64,
    /// Longitude, degrees.
    pub longitude_deg: f64,
    /// Altitude above mean sea level, metres.
    pub altitude_m: f64,
    /// Where the nose points, degrees clockwise from north.
    pub heading_deg: f64,
    /// Velocity to the east, metres per second.
    pub east_m_s: f64,
    /// To the north, metres per second.
    pub north_m_s: f64,
    /// Upwards, metres per second.
    pub up_m_s: f64,
}

/// A datagram that was sent or received; without a number, where a receiver was at that time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkTestRow {
    /// Its number, from 0.
    pub sequence: Option<u32>,
    /// Time since this aircraft began the test, milliseconds.
    pub time_ms: u64,
    /// This aircraft.
    pub own: LinkTestFlight,
    /// The sender, as the datagram states it.
    pub sender: Option<LinkTestFlight>,
}

/// A part of what an aircraft recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LinkTestRows {
    /// The number of the test.
    pub number: u32,
    /// In order of time, at most 1000.
    pub rows: Vec<LinkTestRow>,
    /// Where the next part begins; absent at the end of what is recorded so far.
    pub next: Option<u32>,
}

/// A test as the ground service sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetLinkTest {
    /// The test, with its number.
    pub test: LinkTestRequest,
    /// What the sender answers; absent while it does not.
    pub sender: Option<LinkTestReport>,
    /// What each receiver answers, in the order of the request; absent of one that does not.
    pub receivers: Vec<Option<LinkTestReport>>,
}
