//! Replay protection of consoles' orders, apart for each program that signs with a console's key.
//!
//! A program of a console draws a random *session* when it starts, and counts its orders in that
//! session alone. Here each session has a window of its own, a lane. No counter of one program
//! makes an order of another old: neither a second service with the same key, nor a copy of the key
//! on a spare laptop, nor a clock that was an hour ahead takes *Hold*, *Land* and *Return* away
//! from a console. `docs/decisions/0009-orders.md` has the table of attacks.
//!
//! An order in a known lane must be newer than all before it there, and on its way for 2 s at most.
//! The first order of an unknown lane proves its age otherwise: it comes by a TLS connection of the
//! console itself, or its counter, which is the console's clock, is at most [`BEHIND_MAX`] behind
//! UTC. Where this aircraft knows no UTC it is taken.
//!
//! The aircraft's owner keeps the newest counter of each lane over a restart ([`KnownSession`]): a
//! recording of an order that was obeyed before is refused after it.

use core::num::NonZeroU32;

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Text, text};
use wingbeat_wire::{Refused, VehicleId};

use crate::senders::{AGE_MAX, AGE_MAX_US, CONSOLES_MAX, Window};
use crate::status::Check;

/// Sessions of one console that are known; of more, the one that was silent longest makes room.
const SESSIONS_MAX: usize = 4;
/// Lanes of all consoles of a roster.
const LANES_MAX: usize = SESSIONS_MAX * CONSOLES_MAX;
/// Lanes that are kept over a restart: those that began last.
const KNOWN_MAX: usize = 16;
/// Greatest age of the first order of a session that is received by radio, and of an order after a
/// minute of silence.
///
/// A console's clock may be so far behind. It is also the time in which a recording of a session
/// that this aircraft never received counts as an order.
const BEHIND_MAX: Duration = Duration::from_secs(600);
/// Time for which two programs with one key are reported after the last order of the older one.
const SHOWN_FOR: Duration = Duration::from_secs(600);

/// The name of the check.
pub(crate) const CHECK: &str = "console keys";

/// The session of a console's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) console: VehicleId,
    pub(crate) number: NonZeroU32,
}

/// The newest order of a console's program, for the agent after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSession {
    /// The console.
    pub console: VehicleId,
    /// The session that its program drew when it started.
    pub number: NonZeroU32,
    /// The counter of its newest order, microseconds by the console's clock.
    pub newest: u64,
}

impl KnownSession {
    fn session(&self) -> Session {
        Session { console: self.console, number: self.number }
    }
}

/// The path by which an order arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Broadcast, by its console or passed on.
    Radio,
    /// Over HTTP.
    Posted {
        /// Whether the console itself is the peer of the TLS connection: no recording comes this
        /// way.
        is_direct: bool,
    },
}

/// UTC, as far as this aircraft knows it, microseconds after 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Utc {
    /// This computer's clock, where all clocks are set (`security.clocks_are_set`).
    pub(crate) synchronised_us: Option<u64>,
    /// The earlier of this computer's clock and GNSS time.
    pub(crate) earliest_us: Option<u64>,
}

#[derive(Debug)]
struct Lane {
    session: Session,
    began_at: Instant,
    last_at: Instant,
    broadcast: Window,
    /// Orders over HTTP may be overtaken by those that are broadcast.
    posted: Option<Window>,
}

/// The lanes, and the console whose key two programs use.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    all: Vec<Lane, LANES_MAX>,
    /// Sessions that an agent before this one knew and that this one has not received.
    recalled: Vec<KnownSession, KNOWN_MAX>,
    doubled: Option<(VehicleId, Instant)>,
}

impl Lanes {
    /// Judges the age of an order by what its datagram claims.
    pub(crate) fn check(
        &self,
        now: Instant,
        session: Session,
        counter: u64,
        path: Path,
        utc: Utc,
    ) -> Result<(), Refused> {
        let Some(lane) = self.all.iter().find(|lane| lane.session == session) else {
            return self.check_first(session, counter, path, utc);
        };
        if path == Path::Radio {
            return lane.broadcast.check(now, counter, BEHIND_MAX);
        }
        if let Some(posted) = &lane.posted {
            if counter < lane.broadcast.newest().saturating_sub(AGE_MAX_US) {
                return Err(Refused::Stale);
            }
            return posted.check(now, counter, BEHIND_MAX);
        }
        // The lane is known by radio only: the clock behind its broadcasts judges the age of the first posted order.
        let is_overtaken = counter < lane.broadcast.newest().saturating_sub(AGE_MAX_US);
        match path {
            Path::Posted { is_direct: true } if !is_overtaken => Ok(()),
            Path::Posted { .. } | Path::Radio => lane.broadcast.check_overtaken(now, counter, BEHIND_MAX),
        }
    }

    /// Notes an order that was checked and opened. Returns whether it is the first that shows two
    /// programs with one key.
    pub(crate) fn note(&mut self, now: Instant, session: Session, counter: u64, path: Path) -> bool {
        let is_posted = path != Path::Radio;
        let Some(at) = self.all.iter().position(|lane| lane.session == session) else {
            self.make_room(session.console);
            self.recalled.retain(|known| known.session() != session);
            let broadcast = Window::new(now, counter);
            let posted = is_posted.then(|| broadcast.clone());
            let lane = Lane { session, began_at: now, last_at: now, broadcast, posted };
            // There is room.
            let _ = self.all.push(lane);
            return false;
        };
        let lane = &mut self.all[at];
        lane.last_at = now;
        lane.broadcast.note(now, counter);
        if is_posted {
            match &mut lane.posted {
                Some(posted) => posted.note(now, counter),
                None => lane.posted = Some(Window::new(now, counter)),
            }
        }
        // A program that was started again is silent after the new one began.
        let began_at = lane.began_at;
        let is_newer = |other: &Lane| {
            other.session.console == session.console
                && other.began_at > began_at
                && now.since(other.began_at) > AGE_MAX
        };
        if !self.all.iter().any(is_newer) {
            return false;
        }
        let is_first = self.doubled(now) != Some(session.console);
        self.doubled = Some((session.console, now));
        is_first
    }

    /// The console whose key two programs use.
    pub(crate) fn doubled(&self, now: Instant) -> Option<VehicleId> {
        let (console, at) = self.doubled?;
        (now.since(at) < SHOWN_FOR).then_some(console)
    }

    /// Reports it, for operators.
    pub(crate) fn judge(&self, now: Instant) -> Option<Check> {
        let console = self.doubled(now)?;
        Some(Check { name: CHECK, passed: false, is_required: false, detail: doubled_text(console) })
    }

    /// Counts the consoles for which `is_counted` holds.
    pub(crate) fn count(&self, is_counted: impl Fn(VehicleId) -> bool) -> usize {
        let is_first = |at: usize| {
            !self.all[..at].iter().any(|lane| lane.session.console == self.all[at].session.console)
        };
        (0..self.all.len()).filter(|&at| is_first(at) && is_counted(self.all[at].session.console)).count()
    }

    /// Recalls a session that an agent before this one knew ([`Lanes::known`]).
    pub(crate) fn recall(&mut self, known: KnownSession) {
        let is_known = self.all.iter().any(|lane| lane.session == known.session());
        if !is_known && !self.recalled.iter().any(|other| other.session() == known.session()) {
            // No more were kept.
            let _ = self.recalled.push(known);
        }
    }

    /// Returns the sessions that the next agent must know: those received last, then those of an
    /// agent before this one.
    pub(crate) fn known(&self) -> impl Iterator<Item = KnownSession> + Clone {
        let received = self.all.iter().rev().map(|lane| {
            let Session { console, number } = lane.session;
            KnownSession { console, number, newest: lane.broadcast.newest() }
        });
        received.chain(self.recalled.iter().copied()).take(KNOWN_MAX)
    }

    /// Judges the first order of a session that this agent receives.
    fn check_first(&self, session: Session, counter: u64, path: Path, utc: Utc) -> Result<(), Refused> {
        if path == (Path::Posted { is_direct: true }) {
            return Ok(());
        }
        if self.recalled.iter().any(|known| known.session() == session && counter <= known.newest) {
            return Err(Refused::Replayed);
        }
        let oldest = match utc {
            Utc { synchronised_us: Some(us), .. } => us.saturating_sub(AGE_MAX_US),
            Utc { earliest_us: Some(us), .. } => us.saturating_sub(BEHIND_MAX.as_micros() as u64),
            Utc { synchronised_us: None, earliest_us: None } => 0,
        };
        if counter < oldest { Err(Refused::Stale) } else { Ok(()) }
    }

    fn make_room(&mut self, console: VehicleId) {
        let is_own = |lane: &Lane| lane.session.console == console;
        let has_share = self.all.iter().filter(|lane| is_own(lane)).count() >= SESSIONS_MAX;
        if !has_share && !self.all.is_full() {
            return;
        }
        // Without keys ids have no end: there the oldest of all makes room.
        let of_them = (0..self.all.len()).filter(|&at| !has_share || is_own(&self.all[at]));
        if let Some(at) = of_them.min_by_key(|&at| self.all[at].last_at) {
            self.all.remove(at);
        }
    }
}

/// Names a console whose key two programs use.
pub(crate) fn doubled_text(console: VehicleId) -> Text {
    // At most 112 characters.
    text!("console {console} is used by two programs, both are obeyed: end one, enrol each with an own key")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: u64 = 1_795_435_200_000_000;
    const HOUR_US: u64 = 3_600_000_000;
    const UTC: Utc = Utc { synchronised_us: None, earliest_us: Some(NOW_US) };
    const DIRECT: Path = Path::Posted { is_direct: true };
    const RELAYED: Path = Path::Posted { is_direct: false };

    fn session(console: u64, number: u32) -> Session {
        Session { console: VehicleId(console), number: NonZeroU32::new(number).unwrap() }
    }

    /// An order that was sealed at `sent_ms` by a clock that is ahead of UTC, and received at
    /// `now_ms`.
    struct Sent {
        session: Session,
        ahead_us: i64,
        sent_ms: u64,
        now_ms: u64,
        path: Path,
    }

    fn take(lanes: &mut Lanes, sent: &Sent) -> Result<bool, Refused> {
        let counter = (NOW_US + sent.sent_ms * 1_000).saturating_add_signed(sent.ahead_us);
        let now = Instant::from_millis(sent.now_ms);
        let utc = Utc { earliest_us: Some(NOW_US + sent.now_ms * 1_000), ..UTC };
        lanes.check(now, sent.session, counter, sent.path, utc)?;
        Ok(lanes.note(now, sent.session, counter, sent.path))
    }

    fn sent(number: u32, ahead_us: i64, ms: u64, path: Path) -> Sent {
        Sent { session: session(9, number), ahead_us, sent_ms: ms, now_ms: ms, path }
    }

    #[test]
    fn an_order_is_obeyed_whatever_counters_another_program_with_the_key_has_used() {
        for path in [Path::Radio, DIRECT, RELAYED] {
            let mut lanes = Lanes::default();
            let ahead = HOUR_US as i64;
            assert_eq!(take(&mut lanes, &sent(1, 0, 1_000, path)), Ok(false));
            assert_eq!(take(&mut lanes, &sent(2, ahead, 2_000, path)), Ok(false), "counters an hour ahead");
            assert_eq!(
                take(&mut lanes, &sent(1, 0, 3_000, path)),
                Ok(false),
                "a restart within 2 s is one program"
            );
            assert_eq!(
                take(&mut lanes, &sent(1, 0, 5_000, path)),
                Ok(true),
                "the first is obeyed, and both are seen"
            );
            assert_eq!(take(&mut lanes, &sent(1, 0, 6_000, path)), Ok(false), "reported once");
            assert_eq!(lanes.doubled(Instant::from_millis(6_000)), Some(VehicleId(9)));
            assert!(lanes.judge(Instant::from_millis(6_000)).is_some_and(|c| !c.passed && !c.is_required));
            // A spare laptop with a copy of the key, whose clock is five minutes behind.
            assert_eq!(take(&mut lanes, &sent(3, -300_000_000, 7_000, path)), Ok(false));
            assert!(lanes.judge(Instant::from_secs(1_000)).is_none());
        }
    }

    #[test]
    fn replayed_delayed_and_reordered_orders_are_refused_in_their_own_lane() {
        for path in [Path::Radio, RELAYED, DIRECT] {
            let mut lanes = Lanes::default();
            assert_eq!(take(&mut lanes, &sent(1, 0, 10_000, path)), Ok(false));
            let again = Sent { now_ms: 10_500, ..sent(1, 0, 10_000, path) };
            assert_eq!(take(&mut lanes, &again), Err(Refused::Replayed));
            let withheld = Sent { now_ms: 14_000, ..sent(1, 0, 11_000, path) };
            assert_eq!(take(&mut lanes, &withheld), Err(Refused::Stale), "delayed by 3 s");
            assert_eq!(take(&mut lanes, &sent(1, 0, 15_000, path)), Ok(false));
            let reordered = Sent { now_ms: 15_100, ..sent(1, 0, 14_900, path) };
            assert_eq!(take(&mut lanes, &reordered), Err(Refused::Replayed));
            // After a minute of silence the console's clock is still known to ten minutes.
            let old = Sent { now_ms: 900_000, ..sent(1, 0, 16_000, path) };
            assert_eq!(take(&mut lanes, &old), Err(Refused::Stale));
            assert_eq!(take(&mut lanes, &sent(1, 0, 900_000, path)), Ok(false));
        }
    }

    /// A captured aircraft posts an order that its console broadcast to another one.
    #[test]
    fn a_recording_posted_into_a_lane_that_is_known_by_radio_is_refused_by_its_age() {
        let posted = |sent_ms, now_ms, path| {
            let mut lanes = Lanes::default();
            assert_eq!(take(&mut lanes, &sent(1, 0, 10_000, Path::Radio)), Ok(false));
            take(&mut lanes, &Sent { now_ms, ..sent(1, 0, sent_ms, path) })
        };
        assert_eq!(posted(12_000, 40_000, RELAYED), Err(Refused::Stale), "28 s old");
        assert_eq!(posted(12_000, 13_000, RELAYED), Ok(false));
        assert_eq!(posted(9_000, 10_500, RELAYED), Ok(false), "overtaken by 1 s");
        assert_eq!(posted(7_000, 10_500, RELAYED), Err(Refused::Stale), "overtaken by 3 s");
        assert_eq!(posted(12_000, 40_000, DIRECT), Ok(false), "no recording comes this way");
    }

    #[test]
    fn after_a_restart_of_the_daemon_a_recording_is_refused_by_its_age() {
        let hour_ago = Sent { now_ms: 3_600_000, ..sent(1, 0, 0, Path::Radio) };
        assert_eq!(take(&mut Lanes::default(), &hour_ago), Err(Refused::Stale));
        let posted = Sent { path: RELAYED, ..hour_ago };
        assert_eq!(
            take(&mut Lanes::default(), &posted),
            Err(Refused::Stale),
            "posted by a captured aircraft"
        );
        let direct = Sent { path: DIRECT, ..posted };
        assert_eq!(
            take(&mut Lanes::default(), &direct),
            Ok(false),
            "the console itself, with a clock an hour behind"
        );
        // After that its lane is known by radio too.
        let mut lanes = Lanes::default();
        let behind = -(HOUR_US as i64);
        assert_eq!(take(&mut lanes, &sent(1, behind, 1_000, DIRECT)), Ok(false));
        assert_eq!(take(&mut lanes, &sent(1, behind, 200_000, Path::Radio)), Ok(false));
        // Without UTC nothing tells its age; with clocks that are set, 2 s do.
        let check = |utc| Lanes::default().check(Instant::ZERO, session(9, 1), NOW_US, Path::Radio, utc);
        assert_eq!(check(Utc::default()), Ok(()));
        let set = |us| Utc { synchronised_us: Some(us), earliest_us: Some(us) };
        assert_eq!(check(set(NOW_US + 1_900_000)), Ok(()));
        assert_eq!(check(set(NOW_US + 2_100_000)), Err(Refused::Stale));
    }

    #[test]
    fn after_a_restart_of_the_daemon_a_recording_of_an_obeyed_order_is_refused_at_any_age() {
        let mut before = Lanes::default();
        assert_eq!(take(&mut before, &sent(1, 0, 10_000, Path::Radio)), Ok(false));
        let restarted = || {
            let mut lanes = Lanes::default();
            before.known().for_each(|known| lanes.recall(known));
            lanes
        };
        for path in [Path::Radio, RELAYED] {
            let recording = Sent { now_ms: 11_000, ..sent(1, 0, 10_000, path) };
            assert_eq!(take(&mut restarted(), &recording), Err(Refused::Replayed), "1 s old");
            assert_eq!(take(&mut restarted(), &sent(1, 0, 11_000, path)), Ok(false), "a newer one");
            assert_eq!(take(&mut restarted(), &sent(2, 0, 9_000, path)), Ok(false), "another program");
            let old = Sent { now_ms: 700_000, ..sent(1, 0, 11_000, path) };
            assert_eq!(take(&mut restarted(), &old), Err(Refused::Stale), "withheld for more than 10 min");
        }
        assert_eq!(take(&mut restarted(), &sent(1, -5_000_000, 11_000, DIRECT)), Ok(false), "no recording");
        // Each agent hands on those of the one before it, once each.
        let mut after = restarted();
        assert_eq!(take(&mut after, &sent(2, 0, 12_000, Path::Radio)), Ok(false));
        assert!(after.known().map(|known| known.number.get()).eq([2, 1]));
        assert_eq!(take(&mut after, &sent(1, 0, 13_000, Path::Radio)), Ok(false));
        assert!(after.recalled.is_empty() && after.known().all(|known| known.newest > NOW_US));
    }

    #[test]
    fn sessions_without_end_push_out_those_of_their_own_console_alone() {
        let mut lanes = Lanes::default();
        let of =
            |console, number, ms| Sent { session: session(console, number), ..sent(1, 0, ms, Path::Radio) };
        assert_eq!(take(&mut lanes, &of(1, 7, 1_000)), Ok(false));
        for number in 1..1_000 {
            let _ = take(&mut lanes, &of(2, number, 1_000 + u64::from(number)));
        }
        let again = Sent { now_ms: 2_100, ..of(1, 7, 1_000) };
        assert_eq!(take(&mut lanes, &again), Err(Refused::Replayed), "the other console's lane is known");
        assert_eq!(lanes.all.len(), 1 + SESSIONS_MAX);
        for console in 3..1_000 {
            let _ = take(&mut lanes, &of(console, 1, 3_000));
        }
        assert_eq!(lanes.all.len(), LANES_MAX);
        assert_eq!(lanes.count(|_| true), LANES_MAX);
    }
}
