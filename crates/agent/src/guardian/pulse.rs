//! What a daemon and its guardian exchange, over a local stream socket: records of fixed
//! length, the daemon's five times a second and the guardian's in answer to each.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Version of both records. Another version is another program: the two refuse each other.
pub const VERSION: u8 = 1;
/// Length of an encoded [`Pulse`].
pub const PULSE_LEN: usize = 11;
/// Length of an encoded [`Answer`].
pub const ANSWER_LEN: usize = 3;

/// What the daemon is doing with its aircraft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: its death would change nothing.
    Idle,
    /// An order is under way, or the aircraft is armed and flies a protocol: its death leaves an aircraft
    /// that flies on alone.
    Commanding,
    /// The pilot has the aircraft.
    Pilot,
}

/// A set of ArduCopter's flight modes, by number. Numbers from 32 are never in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(pub u32);

impl Modes {
    /// The set of one mode.
    pub fn one(number: u32) -> Self {
        Self(1_u32.checked_shl(number).unwrap_or(0))
    }
    /// Whether a mode is in it.
    pub fn contains(self, number: u32) -> bool {
        self.0 & Self::one(number).0 != 0
    }
    /// With another set.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Without another set.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What a daemon sends its guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The daemon's activity.
    pub activity: Activity,
    /// The flight controller's MAVLink system id, 0 while unknown.
    pub system_id: u8,
    /// Modes that the companion requested: the one that a heartbeat showed last, and those requested and
    /// not shown yet. Any other is the pilot's.
    pub ours: Modes,
    /// Fingerprint of the autopilot's endpoint ([`fingerprint`]): a guardian of another port protects no aircraft.
    pub endpoint: u32,
}

/// A number that distinguishes endpoints (FNV-1a, 32 bit).
pub fn fingerprint(endpoint: &str) -> u32 {
    endpoint.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Why a record is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The other process uses another version.
    #[error(
        "guard socket: found version {0}, expected {VERSION}; are wingbeatd and wingbeat-guard of one release?"
    )]
    Version(u8),
    /// A code that this version does not have.
    #[error("guard socket: found code {found} for {what}, expected 0 to {most}")]
    Code {
        /// The field: `activity`, `stance` or `cause`.
        what: &'static str,
        /// The code that was received.
        found: u8,
        /// The highest code that is known.
        most: u8,
    },
}

impl Pulse {
    /// Its bytes.
    pub fn encode(&self) -> [u8; PULSE_LEN] {
        let activity = match self.activity {
            Activity::Idle => 0,
            Activity::Commanding => 1,
            Activity::Pilot => 2,
        };
        let [m0, m1, m2, m3] = self.ours.0.to_le_bytes();
        let [e0, e1, e2, e3] = self.endpoint.to_le_bytes();
        [VERSION, activity, self.system_id, m0, m1, m2, m3, e0, e1, e2, e3]
    }

    /// Back from its bytes.
    ///
    /// # Errors
    /// Another version, or a code that this version does not have.
    pub fn decode(bytes: &[u8; PULSE_LEN]) -> Result<Self, RecordError> {
        let [version, activity, system_id, m0, m1, m2, m3, e0, e1, e2, e3] = *bytes;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let activity = match activity {
            0 => Activity::Idle,
            1 => Activity::Commanding,
            2 => Activity::Pilot,
            found => return Err(RecordError::Code { what: "activity", found, most: 2 }),
        };
        let ours = Modes(u32::from_le_bytes([m0, m1, m2, m3]));
        Ok(Self { activity, system_id, ours, endpoint: u32::from_le_bytes([e0, e1, e2, e3]) })
    }
}

/// Why a guardian took the autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The daemon's socket closed.
    Ended,
    /// The daemon's pulses stopped while its socket was open.
    Hung,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the daemon ended",
            Self::Hung => "the daemon hung",
        })
    }
}

/// What a guardian is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stance {
    /// It monitors the daemon; its port to the autopilot is closed.
    Watching,
    /// Its configuration names another autopilot endpoint: it does not protect this aircraft.
    OtherEndpoint,
    /// It has the autopilot and waits for a heartbeat.
    AwaitingHeartbeat,
    /// It has the autopilot and requests BRAKE.
    Braking,
    /// It has the autopilot, which holds in BRAKE.
    Holding,
    /// It has the autopilot and requests the mode that ends the flight.
    Ending,
    /// It has the autopilot, which lands or returns.
    Descending,
}

impl Stance {
    const ALL: [Self; 7] = [
        Self::Watching,
        Self::OtherEndpoint,
        Self::AwaitingHeartbeat,
        Self::Braking,
        Self::Holding,
        Self::Ending,
        Self::Descending,
    ];

    /// Whether the guardian has the autopilot: no other process may open its port.
    pub fn holds(self) -> bool {
        !matches!(self, Self::Watching | Self::OtherEndpoint)
    }

    /// As text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Watching => "watching",
            Self::OtherEndpoint => "watching another autopilot.endpoint",
            Self::AwaitingHeartbeat => "waiting for a heartbeat",
            Self::Braking => "requesting BRAKE",
            Self::Holding => "holding in BRAKE",
            Self::Ending => "requesting the mode that ends the flight",
            Self::Descending => "landing or returning",
        }
    }
}

/// What a guardian answers to a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What the guardian is doing.
    pub stance: Stance,
    /// Why it has the autopilot; means nothing while it has not.
    pub cause: Cause,
}

impl Answer {
    /// Its bytes.
    pub fn encode(&self) -> [u8; ANSWER_LEN] {
        let stance = Stance::ALL.iter().position(|s| *s == self.stance).unwrap_or_default() as u8;
        [VERSION, stance, u8::from(self.cause == Cause::Hung)]
    }

    /// Back from its bytes.
    ///
    /// # Errors
    /// Another version, or a code that this version does not have.
    pub fn decode(bytes: &[u8; ANSWER_LEN]) -> Result<Self, RecordError> {
        let [version, stance, cause] = *bytes;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let most = Stance::ALL.len() as u8 - 1;
        let stance = *Stance::ALL.get(usize::from(stance)).ok_or(RecordError::Code {
            what: "stance",
            found: stance,
            most,
        })?;
        let cause = match cause {
            0 => Cause::Ended,
            1 => Cause::Hung,
            found => return Err(RecordError::Code { what: "cause", found, most: 1 }),
        };
        Ok(Self { stance, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for activity in [Activity::Idle, Activity::Commanding, Activity::Pilot] {
            let pulse = Pulse {
                activity,
                system_id: 7,
                ours: Modes::one(4).with(Modes::one(17)),
                endpoint: fingerprint("serial:/dev/ttyAMA0:921600"),
            };
            assert_eq!(Pulse::decode(&pulse.encode()), Ok(pulse));
        }
        for stance in Stance::ALL {
            for cause in [Cause::Ended, Cause::Hung] {
                let answer = Answer { stance, cause };
                assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
            }
        }
    }

    #[test]
    fn every_other_record_is_refused_and_none_panics() {
        let good = Answer { stance: Stance::Descending, cause: Cause::Hung }.encode();
        assert_eq!(Answer::decode(&[9, good[1], good[2]]), Err(RecordError::Version(9)));
        assert!(matches!(Answer::decode(&[VERSION, 7, 0]), Err(RecordError::Code { what: "stance", .. })));
        assert!(matches!(Answer::decode(&[VERSION, 0, 2]), Err(RecordError::Code { what: "cause", .. })));
        for version in 0..=u8::MAX {
            for activity in 0..=u8::MAX {
                let mut bytes = [0xff; PULSE_LEN];
                (bytes[0], bytes[1]) = (version, activity);
                assert_eq!(Pulse::decode(&bytes).is_ok(), version == VERSION && activity <= 2);
            }
        }
    }

    #[test]
    fn a_mode_that_is_no_copters_is_in_no_set() {
        assert!(Modes(u32::MAX).contains(31));
        assert!(!Modes(u32::MAX).contains(32) && !Modes(u32::MAX).contains(u32::MAX));
        assert_eq!(Modes::one(4).with(Modes::one(17)).without(Modes::one(4)), Modes::one(17));
    }
}
