//! Orders of a console: judged like every command of the operator, answered by radio, and passed on as the console
//! sealed them.
//!
//! An emergency order that is new is broadcast again once, by about [`RELAYS`] of the aircraft that received it: the
//! console itself repeats it, and each repetition is another datagram. It is 2 s old at most, as every datagram. An
//! exclusion is needed by members that were out of range for longer. It is kept, and broadcast again for as long as the
//! protocol has it to be: the number of the flight, which the console signed, bounds it, and within a flight an exclusion
//! that comes twice changes nothing.

use heapless::Vec;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Command, Severity, text};
use wingbeat_wire::{
    Addressees, CommandId, Datagram, Draft, EXCLUSION_LEN_MAX, Message, Opened, Order, OrderProgress,
    OrderTaken, Refused, VehicleId,
};

use crate::lanes::Lanes;
use crate::senders::{CONSOLES_MAX, Senders};
use crate::{Agent, Outputs, Rejection, Reply, Stage};

/// So many of the aircraft that receive an order broadcast it again, about: more of them occupy the channel that the
/// console needs.
const RELAYS: usize = 4;
/// No more in a second, whatever a console sends: they share the budget of this aircraft's own emergencies, of which they take
/// a fifth at most.
const RELAYS_PER_S_MAX: u8 = 32;
/// An aircraft that is asked again and again answers this often, and when it has come further.
const ANSWER_PERIOD: Duration = Duration::from_millis(500);
/// Exclusions that are kept; of more the first is no longer passed on.
const KEPT_MAX: usize = 4;

/// What is kept of orders.
#[derive(Default)]
pub(crate) struct Orders {
    exclusions: Vec<Exclusion, KEPT_MAX>,
    /// An order that was refused is not judged anew when its console repeats it: it was answered.
    refused: Option<(VehicleId, CommandId)>,
    /// When the second began in which orders are counted that were broadcast again, and how many they are.
    relayed: (Instant, u8),
    /// When the last answer was broadcast, and what it was.
    answered: Option<(Instant, OrderProgress)>,
    /// Orders that state a session.
    pub(crate) lanes: Lanes,
    /// What consoles posted without a session, which is no datagram.
    pub(crate) posted: Senders<CONSOLES_MAX>,
}

/// An exclusion as its console sealed it.
struct Exclusion {
    member: VehicleId,
    flight: u32,
    sealed: Vec<u8, EXCLUSION_LEN_MAX>,
}

impl Orders {
    fn exclusion(&self, flight: u32, member: VehicleId) -> Option<&Exclusion> {
        self.exclusions.iter().find(|kept| kept.member == member && kept.flight == flight)
    }

    fn keep(&mut self, flight: u32, member: VehicleId, sealed: &[u8]) {
        // The longest fits; without keys it is shorter.
        let Ok(sealed) = Vec::from_slice(sealed) else { return };
        if self.exclusion(flight, member).is_some() {
            return;
        }
        if self.exclusions.is_full() {
            self.exclusions.remove(0);
        }
        let _ = self.exclusions.push(Exclusion { member, flight, sealed });
    }
}

impl Agent {
    /// Whether an exclusion is for this flight, and was not received.
    pub(crate) fn lacks_exclusion(&self, flight: u32, member: VehicleId) -> bool {
        flight == self.protocol.view().swarm.flight
            && self.orders.exclusion(flight, member).is_none()
            && self.protocol.permits(Command::Exclude { member }).is_ok()
    }

    /// An order that was received by radio, from its console or passed on; `is_new` if it is newer than all of its console
    /// before it. Not inlined: an order is rare, and its room on
    /// the stack costs at every datagram.
    #[inline(never)]
    pub(crate) fn on_order(
        &mut self,
        now: Instant,
        opened: Opened<'_>,
        flight: u32,
        order: &Order,
        is_new: bool,
        out: &mut Outputs,
    ) {
        let console = opened.from();
        // The lease is held over HTTP.
        if order.command.needs_lease() {
            return self.refuse(Refused::NotPermitted);
        }
        if let Err(reason) = self.check_flight(flight, order.command) {
            return self.refuse(reason);
        }
        if is_new {
            self.pass_on(now, &opened, order, out);
        }
        self.received += 1;
        if !order.to.contains(self.id()) {
            return;
        }
        let was_refused =
            self.orders.refused.as_ref().is_some_and(|(by, id)| *by == console && *id == order.id);
        let reply =
            if was_refused { Reply::AlreadyKnown } else { self.judge_order(now, &opened, order, out) };
        if let Reply::Refused(why) = &reply {
            out.log(Severity::Warning, text!("{} by radio: refused: {why}", order.command));
            self.orders.refused = Some((console, order.id.clone()));
        }
        if reply == Reply::Accepted {
            out.log(Severity::Info, text!("{} by radio: accepted", order.command));
        }
        // One that was refused may have the id of another that was not.
        let stage = match &reply {
            Reply::Refused(_) => None,
            Reply::AlreadyKnown if was_refused => None,
            Reply::Accepted | Reply::AlreadyKnown => self.commands.stage_of(&order.id),
        };
        let is_answered = reply == Reply::AlreadyKnown;
        self.answer_order(
            now,
            OrderTaken { console, id: order.id.clone(), progress: progress(stage) },
            is_answered,
            out,
        );
    }

    /// An order that its console sent by another path.
    #[inline(never)]
    pub(crate) fn on_posted_order(
        &mut self,
        now: Instant,
        opened: Opened<'_>,
        is_direct: bool,
        out: &mut Outputs,
    ) -> Reply {
        let refused = |agent: &mut Self, reason| {
            agent.refuse(reason);
            Reply::Refused(Rejection::Order(reason))
        };
        let claim = opened.claim();
        if let Err(reason) = self.admits_posted(now, &claim, is_direct) {
            return refused(self, reason);
        }
        let mut datagram = Datagram::blank();
        if let Err(reason) = opened.read_into(&mut datagram) {
            return refused(self, reason);
        }
        let Datagram { flight, message, .. } = &datagram;
        let Message::Order(order) = message else { return refused(self, Refused::UnexpectedSender) };
        // Before it is judged: what is refused once is no longer new.
        self.note_posted(now, &claim, is_direct, out);
        if let Err(reason) = self.check_flight(*flight, order.command) {
            return refused(self, reason);
        }
        if !order.to.contains(self.id()) {
            return refused(self, Refused::UnexpectedSender);
        }
        self.judge_order(now, &opened, order, out)
    }

    /// An exclusion counts in the flight that it was made for, and in no other.
    fn check_flight(&self, flight: u32, command: Command) -> Result<(), Refused> {
        let is_exclusion = matches!(command, Command::Exclude { .. });
        let is_other = is_exclusion && flight != self.protocol.view().swarm.flight;
        if is_other { Err(Refused::OtherFlight) } else { Ok(()) }
    }

    fn judge_order(&mut self, now: Instant, opened: &Opened<'_>, order: &Order, out: &mut Outputs) -> Reply {
        if let Command::Exclude { member } = order.command
            && self.protocol.permits(order.command).is_ok()
        {
            // Before the protocol broadcasts it.
            self.orders.keep(self.protocol.view().swarm.flight, member, opened.sealed());
        }
        self.obey(now, &order.id, order.command, out)
    }

    /// Broadcasts an order as its console sealed it, where this aircraft is one of those that do.
    fn pass_on(&mut self, now: Instant, opened: &Opened<'_>, order: &Order, out: &mut Outputs) {
        let is_for_others = match &order.to {
            Addressees::All => true,
            Addressees::Listed(ids) => ids.iter().any(|id| *id != self.id()),
        };
        // Another choice for each repetition (Fibonacci hashing).
        let share = (self.known_senders() / RELAYS).max(1) as u64;
        let drawn = (opened.counter() ^ self.id().0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !is_for_others || !drawn.is_multiple_of(share) {
            return;
        }
        let (since, relayed) = &mut self.orders.relayed;
        if now.since(*since) >= Duration::from_secs(1) {
            (*since, *relayed) = (now, 0);
        }
        if *relayed < RELAYS_PER_S_MAX {
            *relayed += 1;
            relay(opened.sealed(), out);
        }
    }

    /// Broadcasts an exclusion as its console sealed it. False where none is kept: the operator commanded it without an order.
    pub(crate) fn pass_exclusion_on(&self, flight: u32, member: VehicleId, out: &mut Outputs) -> bool {
        let Some(kept) = self.orders.exclusion(flight, member) else { return false };
        relay(&kept.sealed, out);
        true
    }

    fn answer_order(&mut self, now: Instant, taken: OrderTaken, is_answered: bool, out: &mut Outputs) {
        let progress = taken.progress;
        let is_repeated = |(at, last)| last == progress && now.since(at) < ANSWER_PERIOD;
        if is_answered && self.orders.answered.is_some_and(is_repeated) {
            return;
        }
        self.orders.answered = Some((now, progress));
        self.broadcast(now, 0, &Message::OrderTaken(taken), out);
    }
}

fn progress(stage: Option<Stage>) -> OrderProgress {
    match stage {
        Some(Stage::Accepted) => OrderProgress::Accepted,
        Some(Stage::EffectSeen) => OrderProgress::EffectSeen,
        Some(Stage::Failed) => OrderProgress::Failed,
        None => OrderProgress::Refused,
    }
}

fn relay(sealed: &[u8], out: &mut Outputs) {
    if let Ok(draft) = Draft::relay(sealed) {
        // Beyond the bound nothing is asked for; it is repeated.
        let _ = out.datagrams.push(draft);
    }
}
