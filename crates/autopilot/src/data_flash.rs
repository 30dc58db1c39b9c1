//! ArduPilot's own logs (DataFlash) over MAVLink: which there are, and the bytes of one
//! (<https://mavlink.io/en/messages/common.html#LOG_REQUEST_LIST>; ArduPilot's side is `AP_Logger_MAVLinkLogTransfer.cpp`, 3.5.7's
//! `DataFlash_MAVLinkLogTransfer`).
//!
//! The last logs are listed, each is requested in windows of [`WINDOW_LEN`] bytes, and what is missing of a window is requested
//! again until all of it is there. The autopilot neither logs nor lets another read while it sends, so that every end, good or bad, is told it.
//!
//! ```text
//! Counting ──▶ Listing ──▶ Listed ──fetch──▶ Fetching ──last window──▶ Listed
//!     └────────────┴──────────── silence ───────┴──▶ Failed
//! ```

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};

use crate::codec::BufferFull;
use crate::dialect::{LOG_REQUEST_DATA_DATA, LOG_REQUEST_END_DATA, LOG_REQUEST_LIST_DATA, MavMessage};
use crate::job::{AUTOPILOT_COMPONENT_ID, Transmit};

/// Our MAVLink component for it: a second onboard computer, so that the agent's sequence numbers have no gaps.
pub const COMPONENT_ID: u8 = 192;
/// Logs that are listed at most, the newest.
pub const ENTRIES_MAX: usize = 16;
/// What one message carries, bytes.
const PACKET_LEN: u32 = 90;
/// Messages of a window: one bit each.
const WINDOW: u32 = 128;
/// What is requested at once, bytes: 1.2 s at 57600 baud.
pub const WINDOW_LEN: u32 = WINDOW * PACKET_LEN;
/// After so long without a byte more the rest is requested again.
const SILENCE: Duration = Duration::from_millis(700);
/// And given up after so many requests. 3.5.7 reads a directory of 500 logs for seconds before it lists one.
const TRIES: u8 = 20;

/// A log of the autopilot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its number in the list, from 1, the oldest first.
    pub id: u16,
    /// When it was begun, seconds after 1970, UTC; 0 where the autopilot did not know.
    pub utc_s: u32,
    /// Its length, bytes.
    pub len: u32,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogFailure {
    /// No list.
    #[error("found no answer to {TRIES} requests, expected the list of the flight controller's logs")]
    NoList,
    /// A log without its bytes.
    #[error("found no answer to {TRIES} requests, expected log {id} from byte {from} on")]
    NoData {
        /// The log.
        id: u16,
        /// The first byte that is missing.
        from: u32,
    },
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProgress {
    /// Waiting for the autopilot.
    Pending,
    /// The list is complete, or the log that was fetched.
    Ready,
    /// It has ended.
    Failed(LogFailure),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// How many there are is asked for.
    Counting,
    /// From the first that is wanted to the last.
    Listing { first: u16, last: u16 },
    /// The list is there, and nothing is fetched.
    Listed,
    /// A window of a log, which begins at byte `base`: the messages that are there, a bit for each.
    Fetching { entry: LogEntry, base: u32, have: u128 },
    /// It has ended.
    Failed(LogFailure),
}

/// Reads the logs of one autopilot.
#[derive(Debug)]
pub struct DataFlash {
    newest: u16,
    state: State,
    due: Instant,
    tries: u8,
    /// The message behind the last that was requested of a window: with that one the request is answered to its end, and what is
    /// still missing was lost.
    asked_end: u32,
    entries: Vec<LogEntry, ENTRIES_MAX>,
    window: [u8; WINDOW_LEN as usize],
}

/// Messages that a window has from `base` on, and the length of the last.
fn messages(entry: LogEntry, base: u32) -> (u32, u32) {
    let len = entry.len.saturating_sub(base).min(WINDOW_LEN);
    let count = len.div_ceil(PACKET_LEN);
    (count, len.saturating_sub(count.saturating_sub(1) * PACKET_LEN))
}

/// The bits of so many messages.
const fn bits(count: u32) -> u128 {
    if count >= WINDOW { u128::MAX } else { (1 << count) - 1 }
}

impl DataFlash {
    /// Lists the `newest` logs, at most [`ENTRIES_MAX`].
    pub fn list(now: Instant, newest: u16) -> Self {
        let newest = newest.clamp(1, ENTRIES_MAX as u16);
        Self {
            newest,
            state: State::Counting,
            due: now,
            tries: 0,
            asked_end: 0,
            entries: Vec::new(),
            window: [0; WINDOW_LEN as usize],
        }
    }

    /// The logs, the oldest first, once they are listed.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Begins to fetch a log from a byte on.
    pub fn fetch(&mut self, now: Instant, entry: LogEntry, from: u32) {
        let base = from.min(entry.len);
        let is_whole = base == entry.len;
        self.state = if is_whole { State::Listed } else { State::Fetching { entry, base, have: 0 } };
        (self.due, self.tries) = (now, 0);
    }

    /// How far it has come.
    pub fn progress(&self) -> LogProgress {
        match self.state {
            State::Counting | State::Listing { .. } | State::Fetching { .. } => LogProgress::Pending,
            State::Listed => LogProgress::Ready,
            State::Failed(failure) => LogProgress::Failed(failure),
        }
    }

    /// When [`DataFlash::poll`] is due.
    pub fn due(&self) -> Instant {
        match self.state {
            State::Listed | State::Failed(_) => Instant::NEVER,
            // A whole window waits for its owner.
            State::Fetching { entry, base, have } if have == bits(messages(entry, base).0) => Instant::NEVER,
            State::Counting | State::Listing { .. } | State::Fetching { .. } => self.due,
        }
    }

    /// Takes a message of the autopilot.
    #[allow(clippy::wildcard_enum_match_arm, reason = "a dialect has hundreds of names")]
    pub fn on_message(&mut self, now: Instant, message: &MavMessage) {
        match message {
            MavMessage::LOG_ENTRY(m) => {
                self.on_entry(now, m.num_logs, LogEntry { id: m.id, utc_s: m.time_utc, len: m.size });
            }
            MavMessage::LOG_DATA(m) => {
                self.on_data(now, m.id, m.ofs, &m.data[..usize::from(m.count).min(m.data.len())])
            }
            _ => {}
        }
    }

    fn on_entry(&mut self, now: Instant, count: u16, entry: LogEntry) {
        match self.state {
            State::Counting if count == 0 => self.state = State::Listed,
            State::Counting => {
                self.state =
                    State::Listing { first: count.saturating_sub(self.newest - 1).max(1), last: count };
                (self.due, self.tries) = (now, 0);
            }
            State::Listing { first, last } => {
                if !(first..=last).contains(&entry.id)
                    || self.entries.iter().any(|known| known.id == entry.id)
                {
                    return;
                }
                // No more numbers than places.
                let _ = self.entries.push(entry);
                self.entries.sort_unstable_by_key(|entry| entry.id);
                (self.due, self.tries) = (now + SILENCE, 0);
                if self.entries.len() == usize::from(last - first) + 1 {
                    self.state = State::Listed;
                }
            }
            State::Listed | State::Fetching { .. } | State::Failed(_) => {}
        }
    }

    fn on_data(&mut self, now: Instant, id: u16, from: u32, data: &[u8]) {
        let State::Fetching { entry, base, have } = &mut self.state else { return };
        let Some(offset) = from.checked_sub(*base).filter(|offset| offset % PACKET_LEN == 0) else { return };
        let (index, (count, last_len)) = (offset / PACKET_LEN, messages(*entry, *base));
        if id != entry.id || index >= count || *have & 1 << index != 0 {
            return;
        }
        // One that is shorter is one that the autopilot could not read: it is requested again.
        let len = if index + 1 == count { last_len } else { PACKET_LEN } as usize;
        let place = self.window.get_mut(offset as usize..offset as usize + len);
        let (Some(place), Some(data)) = (place, data.get(..len)) else { return };
        place.copy_from_slice(data);
        *have |= 1 << index;
        let is_answered = index + 1 == self.asked_end;
        (self.due, self.tries) = (if is_answered { now } else { now + SILENCE }, 0);
    }

    /// A whole window of the log that is fetched: its first byte's place, and the bytes.
    pub fn window(&self) -> Option<(u32, &[u8])> {
        let State::Fetching { entry, base, have } = self.state else { return None };
        let (count, last_len) = messages(entry, base);
        let len = count.saturating_sub(1) * PACKET_LEN + last_len;
        (have == bits(count)).then(|| (base, self.window.get(..len as usize).unwrap_or_default()))
    }

    /// Its owner has the window: the next is requested, or the log is whole.
    pub fn next(&mut self, now: Instant) {
        let Some((base, bytes)) = self.window() else { return };
        let base = base + bytes.len() as u32;
        let State::Fetching { entry, .. } = self.state else { return };
        self.fetch(now, entry, base);
    }

    /// Requests what is missing when it is time.
    ///
    /// # Errors
    /// No room; it stays due.
    pub fn poll(&mut self, now: Instant, transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
        if now < self.due() {
            return Ok(());
        }
        let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
        let list = |start, end| {
            MavMessage::LOG_REQUEST_LIST(LOG_REQUEST_LIST_DATA {
                start,
                end,
                target_system,
                target_component,
            })
        };
        let (message, failure) = match self.state {
            State::Listed | State::Failed(_) => return Ok(()),
            State::Counting => (list(1, 1), LogFailure::NoList),
            State::Listing { first, last } => {
                // The first gap.
                let is_there = |id: u16| self.entries.iter().any(|known| known.id == id);
                let from = (first..=last).find(|id| !is_there(*id)).unwrap_or(first);
                let end = (from..last).take_while(|id| !is_there(id + 1)).last().map_or(from, |id| id + 1);
                (list(from, end), LogFailure::NoList)
            }
            State::Fetching { entry, base, have } => {
                // The first gap, up to the next message that is there.
                let (count, last_len) = messages(entry, base);
                let first = have.trailing_ones().min(count);
                let gap = (have >> first.min(WINDOW - 1)).trailing_zeros().min(count - first);
                self.asked_end = first + gap;
                let is_last = first + gap == count;
                let len = if is_last { (gap.max(1) - 1) * PACKET_LEN + last_len } else { gap * PACKET_LEN };
                let from = base + first * PACKET_LEN;
                let request = LOG_REQUEST_DATA_DATA {
                    ofs: from,
                    count: len,
                    id: entry.id,
                    target_system,
                    target_component,
                };
                (MavMessage::LOG_REQUEST_DATA(request), LogFailure::NoData { id: entry.id, from })
            }
        };
        if self.tries >= TRIES {
            self.state = State::Failed(failure);
            return Ok(());
        }
        transmit.send_from(transmit.system_id, COMPONENT_ID, &message)?;
        (self.due, self.tries) = (now + SILENCE, self.tries + 1);
        Ok(())
    }
}

/// Lets the autopilot log again: after the last window, and where it is broken off.
///
/// # Errors
/// No room.
pub fn end(transmit: &mut Transmit<'_>) -> Result<(), BufferFull> {
    let (target_system, target_component) = (transmit.system_id, AUTOPILOT_COMPONENT_ID);
    let message = MavMessage::LOG_REQUEST_END(LOG_REQUEST_END_DATA { target_system, target_component });
    transmit.send_from(transmit.system_id, COMPONENT_ID, &message)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec as StdVec;

    use super::*;
    use crate::dialect::{LOG_DATA_DATA, LOG_ENTRY_DATA};
    use crate::job::testing::sent;

    /// An autopilot with logs, on a line that loses some of its messages.
    struct Autopilot {
        logs: StdVec<StdVec<u8>>,
        /// One of so many messages is lost; none of 0.
        loses: u32,
        count: u32,
        asked: u32,
    }

    impl Autopilot {
        fn new(lens: &[usize], loses: u32) -> Self {
            let log =
                |(i, len): (usize, &usize)| (0..*len).map(|byte| (byte * 7 + byte / 251 + i) as u8).collect();
            Self { logs: lens.iter().enumerate().map(log).collect(), loses, count: 0, asked: 0 }
        }

        fn is_lost(&mut self) -> bool {
            self.count += 1;
            self.loses > 0 && self.count.is_multiple_of(self.loses)
        }

        fn answer(&mut self, message: &MavMessage, to: &mut DataFlash, now: Instant) {
            let count = self.logs.len() as u16;
            match message {
                MavMessage::LOG_REQUEST_LIST(m) if count == 0 => {
                    assert_eq!((m.target_system, m.target_component), (1, 1));
                    to.on_message(now, &MavMessage::LOG_ENTRY(LOG_ENTRY_DATA::default()));
                }
                MavMessage::LOG_REQUEST_LIST(m) => {
                    for id in m.start.max(1)..=m.end.min(count) {
                        let size = self.logs[usize::from(id) - 1].len() as u32;
                        let entry =
                            LOG_ENTRY_DATA { id, num_logs: count, last_log_num: count, time_utc: 7, size };
                        if !self.is_lost() {
                            to.on_message(now, &MavMessage::LOG_ENTRY(entry));
                        }
                    }
                }
                MavMessage::LOG_REQUEST_DATA(m) => {
                    self.asked += 1;
                    let log = self.logs[usize::from(m.id) - 1].clone();
                    let (mut from, end) = (m.ofs as usize, (m.ofs + m.count) as usize);
                    while from < end {
                        let piece = &log[from.min(log.len())..end.min(log.len()).min(from + 90)];
                        let mut data = [0xEE; 90];
                        data[..piece.len()].copy_from_slice(piece);
                        let message =
                            LOG_DATA_DATA { ofs: from as u32, id: m.id, count: piece.len() as u8, data };
                        if !self.is_lost() {
                            to.on_message(now, &MavMessage::LOG_DATA(message));
                        }
                        from += 90;
                    }
                }
                _ => {}
            }
        }
    }

    /// Runs until it waits for its owner, for at most so many seconds.
    fn run(flash: &mut DataFlash, autopilot: &mut Autopilot, seconds: u64) -> StdVec<u8> {
        let mut bytes = StdVec::new();
        for ms in 0..seconds * 1_000 {
            let now = Instant::from_millis(ms);
            for message in sent(|transmit| flash.poll(now, transmit).unwrap()) {
                autopilot.answer(&message, flash, now);
            }
            if let Some((_, window)) = flash.window() {
                bytes.extend_from_slice(window);
                flash.next(now);
            }
            if flash.progress() != LogProgress::Pending {
                break;
            }
        }
        bytes
    }

    #[test]
    fn the_newest_are_listed_and_fetched_whole_over_a_line_that_loses_messages() {
        let w = WINDOW_LEN as usize;
        for loses in [0, 2, 3, 7, 50] {
            let lens = [1, 10, 0, 89, 90, 91, w - 1, w, w + 1, 3 * w + 45];
            let mut autopilot = Autopilot::new(&lens, loses);
            let mut flash = DataFlash::list(Instant::ZERO, 8);
            run(&mut flash, &mut autopilot, 60);
            let ids: StdVec<u16> = flash.entries().iter().map(|entry| entry.id).collect();
            assert_eq!((flash.progress(), ids), (LogProgress::Ready, (3..=10).collect()), "one of {loses}");
            for entry in StdVec::from(flash.entries()) {
                let log = autopilot.logs[usize::from(entry.id) - 1].clone();
                assert_eq!(entry.len as usize, log.len());
                flash.fetch(Instant::ZERO, entry, 0);
                assert_eq!(run(&mut flash, &mut autopilot, 200), log, "log {} of {loses}", entry.id);
                assert_eq!((flash.progress(), flash.due()), (LogProgress::Ready, Instant::NEVER));
                // From where another broke off, wherever that was.
                let from = log.len() / 3;
                flash.fetch(Instant::ZERO, entry, from as u32);
                assert_eq!(run(&mut flash, &mut autopilot, 200), log[from..], "log {} from {from}", entry.id);
            }
        }
    }

    #[test]
    fn without_loss_each_window_is_asked_for_once_and_gaps_alone_again() {
        let mut autopilot = Autopilot::new(&[3 * WINDOW_LEN as usize], 0);
        let mut flash = DataFlash::list(Instant::ZERO, 1);
        run(&mut flash, &mut autopilot, 10);
        flash.fetch(Instant::ZERO, flash.entries()[0], 0);
        run(&mut flash, &mut autopilot, 10);
        assert_eq!(autopilot.asked, 3);
    }

    #[test]
    fn an_autopilot_without_logs_or_without_an_answer_ends_it() {
        let mut flash = DataFlash::list(Instant::ZERO, 4);
        run(&mut flash, &mut Autopilot::new(&[], 0), 10);
        assert_eq!((flash.progress(), flash.entries().len()), (LogProgress::Ready, 0));
        let mut flash = DataFlash::list(Instant::ZERO, 4);
        run(&mut flash, &mut Autopilot::new(&[1], 1), 60);
        assert_eq!(flash.progress(), LogProgress::Failed(LogFailure::NoList));
        let mut autopilot = Autopilot::new(&[200], 0);
        let mut flash = DataFlash::list(Instant::ZERO, 4);
        run(&mut flash, &mut autopilot, 10);
        // One that it can read no further: what it sends is shorter than what it listed.
        let entry = LogEntry { len: 300, ..flash.entries()[0] };
        flash.fetch(Instant::ZERO, entry, 0);
        assert!(run(&mut flash, &mut autopilot, 60).is_empty());
        let failure = LogFailure::NoData { id: 1, from: 180 };
        assert_eq!(flash.progress(), LogProgress::Failed(failure));
        assert_eq!(
            std::string::ToString::to_string(&failure),
            "found no answer to 20 requests, expected log 1 from byte 180 on"
        );
    }

    #[test]
    fn what_is_not_asked_for_is_ignored() {
        let mut flash = DataFlash::list(Instant::ZERO, 4);
        let data = |id, ofs, count| MavMessage::LOG_DATA(LOG_DATA_DATA { ofs, id, count, data: [1; 90] });
        flash.on_message(Instant::ZERO, &data(1, 0, 90));
        flash.fetch(Instant::ZERO, LogEntry { id: 1, utc_s: 0, len: 200 }, 0);
        for other in
            [data(2, 0, 90), data(1, 1, 90), data(1, 270, 90), data(1, u32::MAX, 255), data(1, 90, 89)]
        {
            flash.on_message(Instant::ZERO, &other);
        }
        assert!(flash.window().is_none());
        for good in [data(1, 0, 90), data(1, 90, 90), data(1, 180, 20)] {
            flash.on_message(Instant::ZERO, &good);
        }
        assert_eq!(flash.window().map(|(from, bytes)| (from, bytes.len())), Some((0, 200)));
    }
}
