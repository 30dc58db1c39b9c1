//! What a daemon and its guardian exchange, over a local stream socket: records of fixed
//! length, the daemon's five times a second and the guardian's in answer to each.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Version of both records. Another version is another program: the two refuse each other.
pub const VERSION: u8 = 4;
/// Length of an encoded [`Beat`].
pub const PULSE_LEN: usize = 27;
/// Length of an encoded [`Report`].
pub const REPORT_LEN: usize = 17;

/// What the daemon is doing with its aircraft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing, and the motors are off: its death would change nothing.
    Idle,
    /// Nothing, and the motors are armed: in the mode in which it found the aircraft, or in which an order left it.
    IdleArmed,
    /// An order is under way, or the aircraft is armed and flies a protocol: its death leaves an aircraft
    /// that flies on alone.
    Commanding,
    /// The pilot has the aircraft.
    Pilot,
    /// A failsafe of the autopilot has the aircraft.
    Failsafe,
}

impl Activity {
    const ALL: [Self; 5] = [Self::Idle, Self::IdleArmed, Self::Commanding, Self::Pilot, Self::Failsafe];
}

/// A set of ArduCopter's flight modes, by number. Numbers from 32 are never in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// not shown yet. Any other is the pilot's. Where a failsafe has the aircraft, the mode that it chose.
    pub ours: Modes,
    /// The channel of the pilot's mode switch, from 1; 0 while unknown.
    pub switch_channel: u8,
    /// Fingerprint of the autopilot's endpoint ([`fingerprint`]): a guardian of another port protects no aircraft.
    pub endpoint: u32,
    /// The hash of the route in the autopilot while the aircraft is on it and another daemon may take the flight up
    /// (`wingbeat_autopilot::mission::HeldHash`); else 0.
    pub route: u64,
    /// The system id of the flight controller whose flight this daemon takes up: the one that the guardian's reports name, and
    /// no other; 0 for none.
    pub takes_up: u8,
}

/// One pulse as it is sent: by a thread that does nothing else, with the age of the driver's last sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The content.
    pub pulse: Pulse,
    /// The number of the content: a lower one than received is out of date, and a sign of life only.
    pub sequence: u32,
    /// The time since the driver's loop turned last, milliseconds.
    pub driver_age_ms: u16,
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
        /// The field: `activity`, `stance`, `cause` or `before`.
        what: &'static str,
        /// The code that was received.
        found: u8,
        /// The highest code that is known.
        most: u8,
    },
}

impl Beat {
    /// Returns its bytes.
    pub fn encode(&self) -> [u8; PULSE_LEN] {
        let Pulse { activity, system_id, ours, switch_channel, endpoint, route, takes_up } = self.pulse;
        let activity = Activity::ALL.iter().position(|a| *a == activity).unwrap_or_default() as u8;
        let mut bytes = [0; PULSE_LEN];
        let (head, rest) = bytes.split_at_mut(5);
        head.copy_from_slice(&[VERSION, activity, system_id, switch_channel, takes_up]);
        let fields = [&ours.0.to_le_bytes()[..], &endpoint.to_le_bytes(), &route.to_le_bytes()];
        let tail = [&self.sequence.to_le_bytes()[..], &self.driver_age_ms.to_le_bytes()];
        let all = fields.into_iter().chain(tail).flatten();
        rest.iter_mut().zip(all).for_each(|(to, from)| *to = *from);
        bytes
    }

    /// Returns a beat from its bytes.
    ///
    /// # Errors
    /// Another version, or a code that this version does not have.
    pub fn decode(bytes: &[u8; PULSE_LEN]) -> Result<Self, RecordError> {
        let [version, activity, system_id, switch_channel, takes_up, rest @ ..] = *bytes;
        let [m0, m1, m2, m3, e0, e1, e2, e3, rest @ ..] = rest;
        let [r0, r1, r2, r3, r4, r5, r6, r7, s0, s1, s2, s3, a0, a1] = rest;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let pulse = Pulse {
            activity: of_code("activity", &Activity::ALL, activity)?,
            system_id,
            ours: Modes(u32::from_le_bytes([m0, m1, m2, m3])),
            switch_channel,
            endpoint: u32::from_le_bytes([e0, e1, e2, e3]),
            route: u64::from_le_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            takes_up,
        };
        let sequence = u32::from_le_bytes([s0, s1, s2, s3]);
        Ok(Self { pulse, sequence, driver_age_ms: u16::from_le_bytes([a0, a1]) })
    }
}

fn of_code<T: Copy>(what: &'static str, all: &[T], found: u8) -> Result<T, RecordError> {
    let most = all.len() as u8 - 1;
    all.get(usize::from(found)).copied().ok_or(RecordError::Code { what, found, most })
}

/// Why a guardian took the autopilot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The daemon's socket closed.
    Ended,
    /// The daemon's pulses stopped while its socket was open.
    Hung,
    /// The daemon was given the aircraft back and did not receive its flight controller.
    NotReceived,
}

impl Cause {
    const ALL: [Self; 3] = [Self::Ended, Self::Hung, Self::NotReceived];
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the daemon ended",
            Self::Hung => "the daemon hung",
            Self::NotReceived => "the daemon did not receive it",
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

/// How a daemon finds the aircraft, as far as the guardian knows: it outlives daemons, and knows which modes they and it
/// requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// Not known: no daemon before this one has heard the autopilot since the guardian started.
    #[default]
    Unknown,
    /// Wingbeat left it in one of these modes, or, where there is none, with the motors off: armed in another, the pilot or a
    /// failsafe has it.
    Ours(Modes),
    /// A failsafe that the autopilot announced, in this mode: in another, the pilot.
    Failsafe(Modes),
    /// The pilot, or a failsafe that was not announced.
    Pilot,
    /// Wingbeat left it in one of these modes on its way along a route of this hash, and the guardian has given it back: the
    /// daemon that takes the autopilot answers for it. In another mode, the pilot or a failsafe has it.
    OnRoute {
        /// As of [`Before::Ours`].
        modes: Modes,
        /// Of the last [`Pulse::route`].
        route: u64,
    },
}

impl Before {
    /// Returns what the next daemon is to know of the aircraft that a daemon left with this pulse.
    pub(super) fn after(self, pulse: Pulse) -> Self {
        match pulse.activity {
            // It has not received the autopilot.
            _ if pulse.system_id == 0 => self,
            Activity::Idle => Self::Ours(Modes::default()),
            // It asked for nothing, and the mode has not changed since it came.
            Activity::IdleArmed if pulse.ours == Modes::default() => self,
            Activity::IdleArmed | Activity::Commanding => Self::Ours(pulse.ours),
            Activity::Pilot => Self::Pilot,
            Activity::Failsafe => Self::Failsafe(pulse.ours),
        }
    }
}

/// What a guardian answers to a pulse, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the guardian is doing.
    pub answer: Answer,
    /// What a daemon that takes the autopilot now is to know. It means nothing while the guardian has the autopilot.
    pub before: Before,
    /// The system id of the flight controller: while the guardian has it, once a heartbeat was received; else as the last
    /// daemon knew it. 0 while unknown.
    pub system_id: u8,
}

/// What a guardian does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What the guardian is doing.
    pub stance: Stance,
    /// Why it has the autopilot; means nothing while it has not.
    pub cause: Cause,
}

impl Report {
    /// Its bytes.
    pub fn encode(&self) -> [u8; REPORT_LEN] {
        let Answer { stance, cause } = self.answer;
        let stance = Stance::ALL.iter().position(|s| *s == stance).unwrap_or_default() as u8;
        let (before, modes, route) = match self.before {
            Before::Unknown => (0, Modes::default(), 0),
            Before::Ours(modes) => (1, modes, 0),
            Before::Failsafe(modes) => (2, modes, 0),
            Before::Pilot => (3, Modes::default(), 0),
            Before::OnRoute { modes, route } => (4, modes, route),
        };
        let [m0, m1, m2, m3] = modes.0.to_le_bytes();
        let [r0, r1, r2, r3, r4, r5, r6, r7] = route.to_le_bytes();
        let cause = Cause::ALL.iter().position(|c| *c == cause).unwrap_or_default() as u8;
        let id = self.system_id;
        [VERSION, stance, cause, before, m0, m1, m2, m3, r0, r1, r2, r3, r4, r5, r6, r7, id]
    }

    /// Back from its bytes.
    ///
    /// # Errors
    /// Another version, or a code that this version does not have.
    pub fn decode(bytes: &[u8; REPORT_LEN]) -> Result<Self, RecordError> {
        let [version, stance, cause, before, m0, m1, m2, m3, r0, r1, r2, r3, r4, r5, r6, r7, system_id] =
            *bytes;
        let route = [r0, r1, r2, r3, r4, r5, r6, r7];
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let stance = of_code("stance", &Stance::ALL, stance)?;
        let cause = of_code("cause", &Cause::ALL, cause)?;
        let modes = Modes(u32::from_le_bytes([m0, m1, m2, m3]));
        let on_route = Before::OnRoute { modes, route: u64::from_le_bytes(route) };
        let all = [Before::Unknown, Before::Ours(modes), Before::Failsafe(modes), Before::Pilot, on_route];
        Ok(Self { answer: Answer { stance, cause }, before: of_code("before", &all, before)?, system_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for activity in Activity::ALL {
            let pulse = Pulse {
                activity,
                system_id: 7,
                ours: Modes::one(4).with(Modes::one(17)),
                switch_channel: 5,
                endpoint: fingerprint("serial:/dev/ttyAMA0:921600"),
                route: 0x0123_4567_89ab_cdef,
                takes_up: 7,
            };
            let beat = Beat { pulse, sequence: 0x89ab_cdef, driver_age_ms: 1_234 };
            assert_eq!(Beat::decode(&beat.encode()), Ok(beat));
        }
        for stance in Stance::ALL {
            for cause in Cause::ALL {
                let modes = Modes::one(4).with(Modes::one(17));
                let on_route = Before::OnRoute { modes, route: u64::MAX - 1 };
                for before in
                    [Before::Unknown, Before::Ours(modes), Before::Failsafe(modes), Before::Pilot, on_route]
                {
                    let report = Report { answer: Answer { stance, cause }, before, system_id: 9 };
                    assert_eq!(Report::decode(&report.encode()), Ok(report));
                }
            }
        }
    }

    #[test]
    fn every_other_record_is_refused_and_none_panics() {
        let refused = |[version, stance, cause, before]: [u8; 4]| {
            let mut bytes = [0; REPORT_LEN];
            bytes[..4].copy_from_slice(&[version, stance, cause, before]);
            Report::decode(&bytes).map(|_| ())
        };
        let code = |what, found, most| Err(RecordError::Code { what, found, most });
        assert_eq!(refused([VERSION, 6, 1, 4]), Ok(()));
        assert_eq!(refused([9, 6, 1, 3]), Err(RecordError::Version(9)));
        assert_eq!(refused([VERSION, 7, 0, 0]), code("stance", 7, 6));
        assert_eq!(refused([VERSION, 0, 3, 0]), code("cause", 3, 2));
        assert_eq!(refused([VERSION, 0, 0, 5]), code("before", 5, 4));
        for version in 0..=u8::MAX {
            for activity in 0..=u8::MAX {
                let mut bytes = [0xff; PULSE_LEN];
                (bytes[0], bytes[1]) = (version, activity);
                assert_eq!(Beat::decode(&bytes).is_ok(), version == VERSION && activity <= 4);
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
