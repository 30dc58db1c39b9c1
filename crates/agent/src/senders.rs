//! What was received last of each sender, so that a datagram counts once and in time: one that was recorded, delayed or
//! duplicated is refused, whatever it contains.
//!
//! A sender's counter is its clock. Ours differs from it by a number that is stated nowhere, but the smallest difference
//! seen is that of a datagram that came nearly without delay: what is more than [`AGE_MAX`] older than that was on its
//! way for longer. After [`QUIET`] that is judged anew, because a sender that was switched off begins where it had reserved
//! counters to, and not where its clock would be. Only datagrams that were opened come here, so that no other program moves these numbers.

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{ROSTER_MAX, Refused, SWARM_MAX, VehicleId};

/// Senders that are known: those of a roster, so that none of them is ever forgotten.
pub(crate) const SENDERS_MAX: usize = ROSTER_MAX;
/// Consoles that are known by what they post: those of a roster besides its aircraft.
pub(crate) const CONSOLES_MAX: usize = ROSTER_MAX - SWARM_MAX;

/// A datagram that was on its way for longer is refused: in this time a prediction of MBCAP ends.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(2);
/// The same, in the unit of counters.
pub(crate) const AGE_MAX_US: u64 = AGE_MAX.as_micros() as u64;
/// So much may two clocks drift apart, microseconds per millisecond: ten times what two crystals of 50 ppm do. It is also the
/// most by which a sender's datagrams can be delayed more and more without being noticed.
const DRIFT_US_PER_MS: i64 = 1;

/// After so long without a datagram of a sender its clock is not known any more.
const QUIET: Duration = Duration::from_secs(60);

/// The datagrams of one counter: the newest, and the clock behind it.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Of its newest datagram.
    counter: u64,
    /// The smallest difference of our clock from its counter, as it would be at time zero of our clock if the two had
    /// drifted apart since, microseconds.
    least_us: i64,
}

impl Window {
    /// Begins with its first datagram.
    pub(crate) fn new(now: Instant, counter: u64) -> Self {
        Self { counter, least_us: difference_us(now, counter).saturating_sub(drift_us(now)) }
    }

    /// The counter of its newest datagram.
    pub(crate) fn newest(&self) -> u64 {
        self.counter
    }

    /// Whether a datagram was on its way for longer than `age_max`, by the least delay that was seen.
    fn is_older(&self, now: Instant, counter: u64, age_max: Duration) -> bool {
        let age_us = signed(age_max.as_micros() as u64);
        difference_us(now, counter) > self.least_now_us(now).saturating_add(age_us)
    }

    /// Refuses what is not newer than all before it, and what is older than [`AGE_MAX`]; after [`QUIET`], than
    /// `quiet_age_max`.
    pub(crate) fn check(&self, now: Instant, counter: u64, quiet_age_max: Duration) -> Result<(), Refused> {
        if counter <= self.counter {
            return Err(Refused::Replayed);
        }
        let age_max = if self.is_quiet(now) { quiet_age_max } else { AGE_MAX };
        if self.is_older(now, counter, age_max) { Err(Refused::Stale) } else { Ok(()) }
    }

    /// Refuses a datagram that took another path than those of this window, and that is older than [`AGE_MAX`]; after
    /// [`QUIET`], than `quiet_age_max`. It may be overtaken by [`AGE_MAX`] at most.
    pub(crate) fn check_overtaken(
        &self,
        now: Instant,
        counter: u64,
        quiet_age_max: Duration,
    ) -> Result<(), Refused> {
        let age_max = if self.is_quiet(now) { quiet_age_max } else { AGE_MAX };
        let is_overtaken = counter < self.counter.saturating_sub(AGE_MAX_US);
        if is_overtaken || self.is_older(now, counter, age_max) { Err(Refused::Stale) } else { Ok(()) }
    }

    /// Notes a datagram that was checked and opened.
    pub(crate) fn note(&mut self, now: Instant, counter: u64) {
        let least_us = Self::new(now, counter).least_us;
        self.least_us = if self.is_quiet(now) { least_us } else { self.least_us.min(least_us) };
        self.counter = self.counter.max(counter);
    }

    /// The least that the difference may be now if the clocks drifted apart.
    fn least_now_us(&self, now: Instant) -> i64 {
        self.least_us.saturating_add(drift_us(now))
    }

    /// Whether it was silent for [`QUIET`].
    fn is_quiet(&self, now: Instant) -> bool {
        let sent_us = signed(self.counter).saturating_add(self.least_now_us(now));
        signed(now.as_micros()).saturating_sub(sent_us) >= signed(QUIET.as_micros() as u64)
    }

    /// When its newest datagram was sent, by our clock.
    fn sent_us(&self) -> i64 {
        signed(self.counter).saturating_add(self.least_us)
    }
}

/// One sender.
#[derive(Clone, Debug)]
struct Sender {
    id: VehicleId,
    window: Window,
}

/// How far clocks may have drifted apart since time zero of ours.
fn drift_us(now: Instant) -> i64 {
    signed(now.as_micros() / 1_000).saturating_mul(DRIFT_US_PER_MS)
}

/// A counter that no clock shows for 290 000 years is cut off.
fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

fn difference_us(now: Instant, counter: u64) -> i64 {
    signed(now.as_micros()) - signed(counter)
}

/// All of them, by their ids: of one row each as short as it can be, because an agent keeps all its tables in itself.
#[derive(Default)]
pub(crate) struct Senders<const N: usize>(Vec<Sender, N>);

impl<const N: usize> Senders<N> {
    /// Whether a datagram is newer than all before it of its sender, and no older than [`AGE_MAX`]; `utc_us` is our clock in
    /// the counters' unit where both clocks are known to be set.
    pub(crate) fn check(
        &self,
        now: Instant,
        utc_us: Option<u64>,
        id: VehicleId,
        counter: u64,
    ) -> Result<(), Refused> {
        if let Ok(i) = self.find(id) {
            let window = &self.0[i].window;
            if !window.is_quiet(now) {
                return window.check(now, counter, AGE_MAX);
            }
            if counter <= window.counter {
                return Err(Refused::Replayed);
            }
        }
        match utc_us {
            Some(utc_us) if counter < utc_us.saturating_sub(AGE_MAX_US) => Err(Refused::Stale),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes a datagram that was checked and opened. What was posted may be older than what was broadcast.
    pub(crate) fn note(&mut self, now: Instant, id: VehicleId, counter: u64) {
        if let Ok(i) = self.find(id) {
            return self.0[i].window.note(now, counter);
        }
        if self.0.is_full() {
            // Without keys ids have no end. The one that was silent longest makes room.
            let oldest = (0..self.0.len()).min_by_key(|&i| self.0[i].window.sent_us());
            oldest.map(|i| self.0.remove(i));
        }
        let i = self.0.partition_point(|sender| sender.id < id);
        let new = Sender { id, window: Window::new(now, counter) };
        // There is room: see above.
        let _ = self.0.insert(i, new);
    }

    /// Whether a datagram that took another path is older than [`AGE_MAX`], by the clock of a sender that is received.
    pub(crate) fn is_late(&self, now: Instant, id: VehicleId, counter: u64) -> bool {
        let window = self.find(id).ok().map(|i| &self.0[i].window).filter(|window| !window.is_quiet(now));
        window.is_some_and(|window| window.check_overtaken(now, counter, AGE_MAX).is_err())
    }

    /// The counter of a sender's newest datagram.
    pub(crate) fn newest(&self, id: VehicleId) -> Option<u64> {
        self.find(id).ok().map(|i| self.0[i].window.counter)
    }

    /// Whether this sender is known.
    pub(crate) fn is_known(&self, id: VehicleId) -> bool {
        self.find(id).is_ok()
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn find(&self, id: VehicleId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |sender| sender.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: VehicleId = VehicleId(2);
    /// What its clock shows when ours shows zero.
    const AHEAD_US: u64 = 1_795_435_200_000_000;

    /// Received `late_ms` after it was sent at `sent_ms` of our clock.
    fn receive(senders: &mut Senders<SENDERS_MAX>, sent_ms: u64, late_ms: u64) -> Result<(), Refused> {
        let (now, counter) = (Instant::from_millis(sent_ms + late_ms), AHEAD_US + sent_ms * 1_000);
        senders.check(now, None, PEER, counter)?;
        senders.note(now, PEER, counter);
        Ok(())
    }

    #[test]
    fn a_datagram_counts_once_and_none_before_it_counts_any_more() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        assert_eq!(receive(&mut senders, 1_000, 1), Ok(()));
        assert_eq!(receive(&mut senders, 1_000, 1), Err(Refused::Replayed), "twice");
        assert_eq!(receive(&mut senders, 1_200, 5), Ok(()));
        assert_eq!(receive(&mut senders, 1_000, 900), Err(Refused::Replayed), "late");
        // A recording, again and again, does not stand against the sender itself.
        for ms in (1_400..60_000).step_by(200) {
            assert_eq!(receive(&mut senders, ms, 2), Ok(()));
            assert_eq!(receive(&mut senders, 1_200, ms), Err(Refused::Replayed));
        }
    }

    #[test]
    fn what_was_on_its_way_for_more_than_two_seconds_is_refused() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        assert_eq!(receive(&mut senders, 10_000, 3_000), Ok(()), "what is normal is not known yet");
        assert_eq!(receive(&mut senders, 13_500, 1), Ok(()));
        assert_eq!(receive(&mut senders, 14_000, 2_000), Ok(()));
        assert_eq!(receive(&mut senders, 15_000, 2_010), Err(Refused::Stale));
        assert_eq!(receive(&mut senders, 17_100, 1), Ok(()), "the sender itself goes on");
        // Silent, and then the recording of what was not received before.
        assert_eq!(receive(&mut senders, 20_000, 50_000), Err(Refused::Stale));
    }

    #[test]
    fn a_recording_of_a_sender_that_is_received_is_late_on_every_path() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        assert_eq!(receive(&mut senders, 10_000, 1), Ok(()));
        let is_late = |sent_ms: u64, now_ms| {
            senders.is_late(Instant::from_millis(now_ms), PEER, AHEAD_US + sent_ms * 1_000)
        };
        assert!(is_late(12_000, 40_000), "28 s old");
        assert!(!is_late(12_000, 13_900) && !is_late(9_000, 10_500), "within 2 s");
        assert!(!is_late(12_000, 100_000), "silent for a minute: its clock is not known");
    }

    /// Its daemon was restarted twice within an hour, with two hours in between and no battery behind its clock: its counters are
    /// newer, and far behind where they would be.
    #[test]
    fn a_sender_that_was_switched_off_is_received_again() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        assert_eq!(receive(&mut senders, 1_000, 1), Ok(()));
        let behind = |senders: &mut Senders<SENDERS_MAX>, ms: u64, late_ms: u64| {
            let (now, counter) = (Instant::from_millis(ms + late_ms), AHEAD_US + (ms - 3_600_000) * 1_000);
            senders.check(now, None, PEER, counter).inspect(|()| senders.note(now, PEER, counter))
        };
        assert_eq!(behind(&mut senders, 7_200_000, 1), Ok(()));
        assert_eq!(behind(&mut senders, 7_200_200, 1), Ok(()));
        assert_eq!(behind(&mut senders, 7_201_000, 2_100), Err(Refused::Stale));
        assert_eq!(behind(&mut senders, 7_200_100, 1), Err(Refused::Replayed));
    }

    #[test]
    fn clocks_that_drift_apart_refuse_nothing() {
        // Ours gains 100 ppm on its, for a day.
        let mut senders = Senders::<SENDERS_MAX>::default();
        for s in 0..86_400_u64 {
            let now = Instant::from_micros(s * 1_000_100 + 500);
            let counter = AHEAD_US + s * 1_000_000;
            assert_eq!(senders.check(now, None, PEER, counter), Ok(()), "{s}");
            senders.note(now, PEER, counter);
        }
    }

    /// The process before had reserved counters ahead of its clock.
    #[test]
    fn a_sender_that_restarts_ahead_of_its_clock_is_received() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        assert_eq!(receive(&mut senders, 1_000, 1), Ok(()));
        let ahead = |senders: &mut Senders<SENDERS_MAX>, ms: u64, late_ms: u64| {
            let (now, counter) = (Instant::from_millis(ms + late_ms), AHEAD_US + (ms + 3_600_000) * 1_000);
            senders.check(now, None, PEER, counter).inspect(|()| senders.note(now, PEER, counter))
        };
        assert_eq!(ahead(&mut senders, 5_000, 1), Ok(()));
        assert_eq!(ahead(&mut senders, 5_200, 1), Ok(()));
        assert_eq!(ahead(&mut senders, 6_000, 2_100), Err(Refused::Stale));
    }

    #[test]
    fn where_clocks_are_set_the_first_datagram_is_judged_too() {
        let senders = Senders::<SENDERS_MAX>::default();
        let now = Instant::from_secs(5);
        let check = |age_ms: u64| senders.check(now, Some(AHEAD_US), PEER, AHEAD_US - age_ms * 1_000);
        assert_eq!(check(1_999), Ok(()));
        assert_eq!(check(2_001), Err(Refused::Stale));
        assert_eq!(senders.check(now, Some(AHEAD_US), PEER, AHEAD_US + 3_600_000_000), Ok(()));
    }

    #[test]
    fn ids_without_end_and_counters_at_their_ends_fill_no_table_and_panic_nowhere() {
        let mut senders = Senders::<SENDERS_MAX>::default();
        for id in 0..10_000 {
            let now = Instant::from_millis(id);
            for counter in [0, u64::MAX] {
                if senders.check(now, Some(u64::MAX), VehicleId(id), counter).is_ok() {
                    senders.note(now, VehicleId(id), counter);
                }
            }
        }
        assert_eq!(senders.0.len(), SENDERS_MAX);
        assert!(senders.0.is_sorted_by_key(|sender| sender.id));
    }
}
