//! An operator's console as a sender of datagrams: what it orders is repeated until each aircraft has carried it out.
//!
//! A [`Console`] has no clock, no keys and no radio: its owner passes the time in, seals what it emits, opens what
//! arrives, and asks when it wants to send next. Each repetition is a datagram of its own with a newer counter, so that a
//! receiver takes it whatever it has missed; the command's id makes them one command. The ground service broadcasts
//! with it, and so does the console of the simulated world.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

use core::num::NonZeroU32;

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::{
    ADDRESSEES_MAX, Addressees, Command, CommandId, Corrections, Datagram, Draft, Message, Opened, Order,
    OrderProgress, OrderTaken, SWARM_MAX, VehicleId,
};

/// Between two repetitions: where half of all datagrams are lost, 1 of 500 aircraft has received none of nine.
pub const REPEAT_PERIOD: Duration = Duration::from_millis(100);

/// Aircraft times orders that are repeated at the same time: a recovery command for each aircraft of a swarm, and as many
/// exclusions.
pub const REPEATED_MAX: usize = 2 * SWARM_MAX;

/// What is ordered: a command under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// The command's id.
    pub id: CommandId,
    /// The command.
    pub command: Command,
    /// The flight that an exclusion is for; 0 for other commands.
    pub flight: u32,
}

/// How far an aircraft has come with an order, by its own datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The aircraft.
    pub vehicle: VehicleId,
    /// The command's id.
    pub id: CommandId,
    /// How far it has come.
    pub progress: OrderProgress,
}

/// An order that is repeated for one aircraft.
struct Repeated {
    press: Press,
    vehicle: VehicleId,
    until: Instant,
    /// When it is sent next.
    due: Instant,
}

impl Repeated {
    fn is_exclusion(&self) -> bool {
        matches!(self.press.command, Command::Exclude { .. })
    }
}

/// The session of this program: its orders but for exclusions have a counter of their own.
#[derive(Clone, Copy, Debug)]
struct Session {
    number: NonZeroU32,
    base_us: u64,
    counter: u64,
}

impl Session {
    fn next_counter(&mut self, now: Instant) -> u64 {
        let clock_us = self.base_us.saturating_add(now.as_micros());
        self.counter = clock_us.max(self.counter.saturating_add(1));
        self.counter
    }
}

/// A console: its counter, and the orders that it repeats.
pub struct Console {
    id: VehicleId,
    base_us: u64,
    counter: u64,
    session: Option<Session>,
    repeated: Vec<Repeated, REPEATED_MAX>,
    next_at: Instant,
    /// Between two datagrams of a round; none where the orders have changed since it was computed.
    gap: Option<Duration>,
}

impl Console {
    /// One that counts its datagrams from here: its clock at time zero, microseconds, and above all that was sent before
    /// under its id.
    pub fn new(id: VehicleId, base_us: u64) -> Self {
        Self {
            id,
            base_us,
            counter: base_us,
            session: None,
            repeated: Vec::new(),
            next_at: Instant::NEVER,
            gap: None,
        }
    }

    /// Begins a session, in which no other program with this key sends: its number is drawn at random. Its orders are counted
    /// by `utc_base_us`, UTC at time zero of the clock in microseconds, whatever was sent before.
    pub fn begin_session(&mut self, number: NonZeroU32, utc_base_us: u64) {
        self.session = Some(Session { number, base_us: utc_base_us, counter: 0 });
    }

    /// Its id.
    pub fn id(&self) -> VehicleId {
        self.id
    }

    /// The counter of its last datagram: no later one has a lower.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Begins to repeat an order for one more aircraft, until this time at most. A command that takes an aircraft out of its
    /// flight replaces the one before: what the operator pressed last counts.
    pub fn begin(&mut self, now: Instant, press: &Press, vehicle: VehicleId, until: Instant) {
        if press.command.recovers() {
            self.end(vehicle, |other| other.command.recovers() && other.id != press.id);
        }
        let is_same = |order: &Repeated| order.vehicle == vehicle && order.press == *press;
        if !self.repeated.iter().any(is_same) {
            if self.repeated.is_full() {
                // An aircraft has one recovery command, so most are exclusions, and the first of those makes room.
                let first = self.repeated.iter().position(Repeated::is_exclusion);
                self.repeated.remove(first.unwrap_or(0));
            }
            let _ = self.repeated.push(Repeated { press: press.clone(), vehicle, until, due: now });
            self.gap = None;
        }
        self.next_at = self.next_at.min(now);
    }

    /// An aircraft needs these orders no longer: their effect was seen, or their end is known.
    pub fn end(&mut self, vehicle: VehicleId, which: impl Fn(&Press) -> bool) {
        self.repeated.retain(|order| order.vehicle != vehicle || !which(&order.press));
        self.gap = None;
        self.rest();
    }

    /// Whether an order is repeated for an aircraft.
    pub fn repeats(&self, id: &str, vehicle: VehicleId) -> bool {
        self.repeated.iter().any(|order| order.press.id == id && order.vehicle == vehicle)
    }

    /// When [`Console::poll`] has something to send.
    pub fn poll_timeout(&self) -> Instant {
        self.next_at
    }

    /// Emits the datagram that is due, if one is. Those of a round are spread over the period: the aircraft that one is for answer
    /// immediately, and what is sent then collides with their answers.
    pub fn poll(&mut self, now: Instant, mut emit: impl FnMut(&mut Draft)) {
        if now < self.next_at {
            return;
        }
        self.repeated.retain(|order| now < order.until);
        self.rest();
        let gap = self.gap.unwrap_or_else(|| self.gap_of_round());
        self.gap = Some(gap);
        // What recovers does not wait for what does not; of equal ones the first.
        let rank = |order: &&Repeated| (order.due > now, !order.press.command.recovers(), order.due);
        let Some(first) = self.repeated.iter().min_by_key(rank) else { return };
        let (press, is_exclusion) = (first.press.clone(), first.is_exclusion());
        let mut due: Vec<&mut Repeated, REPEATED_MAX> =
            // Those that are due soon too: aircraft that were added one after another are addressed together.
            self.repeated.iter_mut().filter(|order| order.press == press && order.due <= now + gap / 2).collect();
        // All are to know of an exclusion, and pass it on.
        due.truncate(if is_exclusion { REPEATED_MAX } else { ADDRESSEES_MAX });
        let to = if is_exclusion {
            Addressees::All
        } else {
            Addressees::Listed(due.iter().map(|order| order.vehicle).collect())
        };
        due.iter_mut().for_each(|order| order.due = now + REPEAT_PERIOD);
        drop(due);
        let next_due = self.repeated.iter().map(|order| order.due).min().unwrap_or(Instant::NEVER);
        self.next_at = next_due.max(now + gap);
        self.write(now, &press, to, &mut Draft::default(), &mut emit);
    }

    /// The period by the number of datagrams in it.
    fn gap_of_round(&self) -> Duration {
        let is_first = |at: usize| !self.repeated[..at].iter().any(|o| o.press == self.repeated[at].press);
        let datagrams: usize = (0..self.repeated.len())
            .filter(|&at| is_first(at))
            .map(|at| {
                let order = &self.repeated[at];
                let count = self.repeated[at..].iter().filter(|other| other.press == order.press).count();
                if order.is_exclusion() { 1 } else { count.div_ceil(ADDRESSEES_MAX) }
            })
            .sum();
        REPEAT_PERIOD / u32::try_from(datagrams.max(1)).unwrap_or(u32::MAX)
    }

    /// An order for a path other than the radio, with a counter of its own.
    pub fn draft(&mut self, now: Instant, press: &Press, to: Addressees) -> Draft {
        let mut sealed = Draft::default();
        self.write(now, press, to, &mut Draft::default(), &mut |draft: &mut Draft| sealed = draft.clone());
        sealed
    }

    /// A frame of its base station, to broadcast. Nothing repeats it: the next one is newer.
    pub fn corrections(&mut self, now: Instant, corrections: Corrections) -> Draft {
        let mut draft = Draft::default();
        self.counter = self.next_counter(now);
        // The longest fits.
        let _ = draft.write(self.id, self.counter, 0, &Message::Corrections(corrections));
        draft
    }

    fn next_counter(&self, now: Instant) -> u64 {
        self.base_us.saturating_add(now.as_micros()).max(self.counter.saturating_add(1))
    }

    fn write(
        &mut self,
        now: Instant,
        press: &Press,
        to: Addressees,
        draft: &mut Draft,
        emit: &mut impl FnMut(&mut Draft),
    ) {
        let is_exclusion = matches!(press.command, Command::Exclude { .. });
        let (counter, flight) = match &mut self.session {
            Some(session) if !is_exclusion => (session.next_counter(now), session.number.get()),
            _ => {
                self.counter = self.next_counter(now);
                (self.counter, press.flight)
            }
        };
        let order = Order { id: press.id.clone(), to, command: press.command };
        // The longest order fits half a datagram.
        if draft.write(self.id, counter, flight, &Message::Order(order)).is_ok() {
            emit(draft);
        }
    }

    /// Takes an aircraft's answer to an order of this console; nothing of any other datagram. What an aircraft has carried
    /// out, or never will, is no longer repeated for it. An exclusion it only has to know.
    pub fn on_datagram(&mut self, opened: &Opened<'_>) -> Option<Answer> {
        let mut datagram = Datagram::blank();
        opened.read_into(&mut datagram).ok()?;
        let Message::OrderTaken(OrderTaken { console, id, progress }) = datagram.message else { return None };
        if console != self.id {
            return None;
        }
        let is_known = self.repeated.iter().any(|order| order.press.id == id && order.is_exclusion());
        if progress != OrderProgress::Accepted || is_known {
            self.end(datagram.from, |press| press.id == id);
        }
        Some(Answer { vehicle: datagram.from, id, progress })
    }

    /// With nothing left to repeat nothing is due.
    fn rest(&mut self) {
        if self.repeated.is_empty() {
            self.next_at = Instant::NEVER;
        }
    }
}

#[cfg(test)]
mod tests;
