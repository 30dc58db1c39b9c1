//! Which flight controller on the line is ours.
//!
//! ArduPilot forwards between its telemetry ports, and routers join lines, so that several systems speak on one.
//! The order in which they speak decides nothing:
//!
//! | known | adopted |
//! |---|---|
//! | a configured id | only that one |
//! | the id that an earlier daemon or the guardian had | only that one, until it is [released](RELEASED_AFTER) |
//! | nothing | after [`LISTENS`] the only one that can be flown; none while two can |

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};

use crate::identity::Vehicle;

/// A line without a known identity is listened to for this time. Heartbeats come at 1 Hz, so that each sender
/// is received twice or three times.
pub const LISTENS: Duration = Duration::from_millis(2_500);
/// A system whose last heartbeat is younger than this speaks.
pub const SPEAKS_FOR: Duration = Duration::from_secs(10);
/// Another flight controller replaces the known one after this time, in which it alone spoke, on the ground. A
/// reboot of ArduCopter takes 10 to 20 s.
pub const RELEASED_AFTER: Duration = Duration::from_secs(60);
/// The number of systems that are told apart.
pub const SYSTEMS_MAX: usize = 8;

/// The identity of the aircraft's flight controller, as an earlier daemon or the guardian knew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The MAVLink system id.
    pub system_id: u8,
    /// Whether its motors were armed when it was received last: then nothing replaces it.
    pub is_armed: bool,
}

/// A flight controller that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct System {
    system_id: u8,
    is_copter: bool,
    is_armed: bool,
    /// The first heartbeat after a silence of [`SPEAKS_FOR`].
    since: Instant,
    last_at: Instant,
}

/// The meaning of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It is of the adopted flight controller.
    Ours,
    /// Its sender is ours from now on.
    Adopt,
    /// Its sender is not ours; true at its first heartbeat.
    Other(bool),
}

/// The adopted flight controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adopted {
    pub(super) system_id: u8,
    pub(super) is_copter: bool,
    pub(super) is_armed: bool,
}

/// Decides which flight controller on the line is ours.
#[derive(Clone, Debug, Default)]
pub struct Identification {
    configured: Option<u8>,
    /// Whether an unknown line is listened to before one is adopted.
    listens: bool,
    known: Option<Known>,
    /// The known one that was replaced. The operator has not confirmed that yet.
    replaced: Option<u8>,
    systems: Vec<System, SYSTEMS_MAX>,
    /// Ids that were received, a bit for each: of more than [`SYSTEMS_MAX`] each is named once, too.
    received: [u32; 8],
}

impl Identification {
    /// Returns the identification of a line on which anything may speak; `configured` is the operator's choice.
    pub fn new(configured: Option<u8>) -> Self {
        Self { configured, listens: true, ..Self::default() }
    }

    /// Notes the identity that an earlier daemon or the guardian had. A configured id outranks it.
    pub fn expect(&mut self, known: Known) {
        self.known = Some(known);
    }

    /// Returns the only system id that is adopted, where one is known.
    pub fn expected(&self) -> Option<u8> {
        self.configured.or(self.known.map(|known| known.system_id))
    }

    /// Returns whether the operator has configured the id.
    pub fn is_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// Returns the id of the flight controller that the adopted one has replaced.
    pub fn replaced(&self) -> Option<u8> {
        self.replaced
    }

    /// Returns the ids of the flight controllers that speak now, lowest first.
    pub fn speaking(&self, now: Instant) -> Vec<u8, SYSTEMS_MAX> {
        self.received_within(now, SPEAKS_FOR)
    }

    /// Returns the ids of the flight controllers that stand in the way of a flight: at least two, and none configured.
    pub fn contenders(&self, now: Instant, is_adopted: bool) -> Option<Vec<u8, SYSTEMS_MAX>> {
        let within = if is_adopted { SPEAKS_FOR } else { RELEASED_AFTER };
        let ids = self.received_within(now, within);
        (self.configured.is_none() && ids.len() > 1).then_some(ids)
    }

    fn received_within(&self, now: Instant, within: Duration) -> Vec<u8, SYSTEMS_MAX> {
        let mut ids: Vec<u8, SYSTEMS_MAX> =
            self.systems.iter().filter(|s| now.since(s.last_at) < within).map(|s| s.system_id).collect();
        ids.sort_unstable();
        ids
    }

    /// Notes a heartbeat; true at the first of its sender.
    fn note(&mut self, now: Instant, system_id: u8, vehicle: Vehicle, is_armed: bool) -> bool {
        let is_copter = vehicle.is_copter();
        if let Some(system) = self.systems.iter_mut().find(|system| system.system_id == system_id) {
            if now.since(system.last_at) >= SPEAKS_FOR {
                system.since = now;
            }
            (system.is_copter, system.is_armed, system.last_at) = (is_copter, is_armed, now);
            return false;
        }
        let system = System { system_id, is_copter, is_armed, since: now, last_at: now };
        if let Err(system) = self.systems.push(system)
            && let Some(oldest) = self.systems.iter_mut().min_by_key(|system| system.last_at)
        {
            *oldest = system;
        }
        let bit = 1 << (system_id % 32);
        let Some(word) = self.received.get_mut(usize::from(system_id / 32)) else { return false };
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    /// Judges a heartbeat of a flight controller.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        system_id: u8,
        vehicle: Vehicle,
        is_armed: bool,
        adopted: Option<Adopted>,
    ) -> Judged {
        let is_first = self.note(now, system_id, vehicle, is_armed);
        let adopts = match adopted {
            Some(adopted) if adopted.system_id == system_id => {
                if adopted.is_copter || vehicle.is_copter() {
                    self.known = Some(Known { system_id, is_armed });
                }
                return Judged::Ours;
            }
            Some(adopted) => {
                let is_better = vehicle.is_copter() && !adopted.is_copter && self.expected().is_none();
                is_better && self.is_alone(now, system_id) || self.replaces(now, system_id, Some(adopted))
            }
            None => match self.expected() {
                Some(expected) => expected == system_id || self.replaces(now, system_id, None),
                None if !self.listens => true,
                None => self.has_listened(now) && self.is_alone(now, system_id),
            },
        };
        if !adopts {
            return Judged::Other(is_first);
        }
        if let Some(expected) = self.expected() {
            let before = self.replaced.unwrap_or(expected);
            self.replaced = Some(before).filter(|before| *before != system_id);
        }
        if vehicle.is_copter() {
            self.known = Some(Known { system_id, is_armed });
        }
        Judged::Adopt
    }

    fn has_listened(&self, now: Instant) -> bool {
        self.systems.iter().any(|system| now.since(system.since) >= LISTENS)
    }

    /// Returns whether no other can be meant: a multicopter where no second one was received, or another autopilot
    /// where no multicopter was.
    fn is_alone(&self, now: Instant, system_id: u8) -> bool {
        let of_late = |system: &&System| now.since(system.last_at) < RELEASED_AFTER;
        let mut copters = self.systems.iter().filter(of_late).filter(|system| system.is_copter);
        match (copters.next(), copters.next()) {
            (Some(only), None) => only.system_id == system_id,
            (None, _) => true,
            (Some(_), Some(_)) => false,
        }
    }

    /// Returns whether a flight controller takes the place of the known one: on the ground, and after a minute in
    /// which it alone spoke.
    fn replaces(&self, now: Instant, system_id: u8, adopted: Option<Adopted>) -> bool {
        if self.configured.is_some()
            || self.known.is_some_and(|known| known.is_armed)
            || adopted.is_some_and(|adopted| adopted.is_armed)
        {
            return false;
        }
        let is_only = self
            .systems
            .iter()
            .all(|system| system.system_id == system_id || now.since(system.last_at) >= RELEASED_AFTER);
        let candidate = self.systems.iter().find(|system| system.system_id == system_id);
        let is_proved = candidate.is_some_and(|system| {
            system.is_copter && !system.is_armed && now.since(system.since) >= RELEASED_AFTER
        });
        is_only && is_proved
    }

    /// Returns the identity to keep: that of the adopted multicopter, or the one that was expected. A replacement that the operator
    /// has not confirmed is not kept: the replaced one is.
    pub fn known(&self) -> Option<Known> {
        match self.replaced {
            // An armed one is not replaced.
            Some(system_id) => Some(Known { system_id, is_armed: false }),
            None => self.known,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec as StdVec;

    const COPTER: Vehicle = Vehicle { autopilot: 3, kind: 2 };
    const NONE: [(u64, u8); 0] = [];
    const PX4: Vehicle = Vehicle { autopilot: 12, kind: 2 };

    /// Heartbeats at 1 Hz: system, vehicle, armed, from and until when, in seconds.
    type Speaker = (u8, Vehicle, bool, u64, u64);

    /// The adopted systems with their times in seconds, and the systems that were called others.
    fn adopted(mut line: Identification, speakers: &[Speaker], seconds: u64) -> StdVec<(u64, u8)> {
        let (mut ours, mut all) = (None::<Adopted>, StdVec::new());
        for second in 0..seconds {
            for &(system_id, vehicle, is_armed, from, until) in speakers {
                if !(from..until).contains(&second) {
                    continue;
                }
                let now = Instant::from_millis(second * 1_000 + u64::from(system_id));
                let is_copter = vehicle.is_copter();
                match line.judge(now, system_id, vehicle, is_armed, ours) {
                    Judged::Adopt => {
                        all.push((second, system_id));
                        ours = Some(Adopted { system_id, is_copter, is_armed });
                    }
                    Judged::Ours => ours = Some(Adopted { system_id, is_copter, is_armed }),
                    Judged::Other(_) => {}
                }
            }
        }
        all
    }

    #[test]
    fn the_order_of_arrival_decides_nothing() {
        let (own, other) = ((1, COPTER, false, 0, 999), (2, COPTER, false, 0, 999));
        let late = |mut speaker: Speaker, from| {
            speaker.3 = from;
            speaker
        };
        let mut kept = Identification::new(None);
        kept.expect(Known { system_id: 1, is_armed: false });
        let unknown = || Identification::new(None);
        let given = || Identification::new(Some(1));
        for (line, speakers, expected) in [
            // Alone: after the line was listened to.
            (unknown(), &[own][..], &[(3, 1)][..]),
            (unknown(), &[late(own, 5)], &[(8, 1)]),
            // Two that can be flown: none.
            (unknown(), &[own, other], &[]),
            (unknown(), &[other, late(own, 2)], &[]),
            // A second one that comes later: the adopted one stays.
            (unknown(), &[own, late(other, 20)], &[(3, 1)]),
            // An autopilot that cannot be flown is named, and one that can is preferred, whoever was first.
            (unknown(), &[(9, PX4, false, 0, 999)], &[(3, 9)]),
            (unknown(), &[(9, PX4, false, 0, 999), late(own, 1)], &[(3, 1)]),
            (unknown(), &[(9, PX4, false, 0, 999), late(own, 20)], &[(3, 9), (20, 1)]),
            // Configured or kept: at its first heartbeat, and no other.
            (given(), &[other, late(own, 30)], &[(30, 1)]),
            (given(), &[other], &[]),
            (kept.clone(), &[other, late(own, 30)], &[(30, 1)]),
        ] {
            assert_eq!(adopted(line, speakers, 100), expected, "{speakers:?}");
        }
    }

    #[test]
    fn a_reboot_gives_the_aircraft_to_no_other_and_a_replacement_takes_a_minute_alone_on_the_ground() {
        let other = (2, COPTER, false, 0, 999);
        let known = |is_armed| {
            let mut line = Identification::new(None);
            line.expect(Known { system_id: 1, is_armed });
            line
        };
        let reboots = [(1, COPTER, false, 0, 10), (1, COPTER, false, 65, 999), other];
        assert_eq!(adopted(known(false), &reboots, 200), [(0, 1)]);
        // Replaced: it alone spoke for a minute.
        assert_eq!(adopted(known(false), &[other], 200), [(60, 2)]);
        assert_eq!(adopted(known(false), &[(1, COPTER, false, 0, 10), other], 200), [(0, 1), (69, 2)]);
        // Not in flight, neither's; not by one that cannot be flown; not while a third speaks.
        assert_eq!(adopted(known(true), &[other], 200), NONE);
        assert_eq!(adopted(known(false), &[(2, COPTER, true, 0, 999)], 200), NONE);
        assert_eq!(adopted(known(false), &[(1, COPTER, true, 0, 10), other], 200), [(0, 1)]);
        assert_eq!(adopted(known(false), &[(2, PX4, false, 0, 999)], 200), NONE);
        assert_eq!(adopted(known(false), &[other, (3, COPTER, false, 0, 999)], 200), NONE);
        // A line of two on which one falls silent.
        let two = [(1, COPTER, false, 0, 999), (2, COPTER, false, 0, 30)];
        assert_eq!(adopted(Identification::new(None), &two, 200), [(90, 1)]);
    }

    #[test]
    fn contenders_are_named_until_one_is_configured_or_silent() {
        let mut line = Identification::new(None);
        let at = |s| Instant::from_secs(s);
        for system_id in [7, 2] {
            assert_eq!(line.judge(at(0), system_id, COPTER, false, None), Judged::Other(true));
        }
        assert_eq!(line.contenders(at(9), true).as_deref(), Some(&[2, 7][..]));
        assert_eq!(line.contenders(at(10), true), None, "silent");
        assert_eq!(line.contenders(at(59), false).as_deref(), Some(&[2, 7][..]), "none is adopted yet");
        line.configured = Some(7);
        assert_eq!((line.contenders(at(1), true), line.expected()), (None, Some(7)));
    }

    #[test]
    fn a_line_with_many_systems_keeps_those_that_speak() {
        let mut line = Identification::new(None);
        for system_id in 1..=40 {
            line.judge(Instant::from_secs(u64::from(system_id)), system_id, COPTER, false, None);
        }
        assert_eq!(line.speaking(Instant::from_secs(40)).as_slice(), [33, 34, 35, 36, 37, 38, 39, 40]);
    }

    #[test]
    fn a_replacement_is_not_kept_and_the_first_identity_comes_back() {
        let mut line = Identification::new(None);
        line.expect(Known { system_id: 1, is_armed: false });
        let mut ours = None;
        let mut speaks = |line: &mut Identification, system_id, from: u64| {
            for second in from..from + 70 {
                if line.judge(Instant::from_secs(second), system_id, COPTER, false, ours) == Judged::Adopt {
                    ours = Some(Adopted { system_id, is_copter: true, is_armed: false });
                }
            }
            (ours.map(|ours| ours.system_id), line.replaced(), line.known().map(|known| known.system_id))
        };
        assert_eq!(speaks(&mut line, 2, 0), (Some(2), Some(1), Some(1)));
        assert_eq!(speaks(&mut line, 3, 200), (Some(3), Some(1), Some(1)));
        assert_eq!(speaks(&mut line, 1, 400), (Some(1), None, Some(1)));
    }

    #[test]
    fn of_many_systems_each_is_named_once() {
        let mut line = Identification::new(Some(1));
        let mut named = 0;
        for second in 0..20 {
            for system_id in 2..22 {
                let judged = line.judge(Instant::from_secs(second), system_id, COPTER, false, None);
                named += usize::from(judged == Judged::Other(true));
            }
        }
        assert_eq!(named, 20);
    }
}
