//! Admission of datagrams and orders by what they claim, before and after their signatures are
//! checked.

use wingbeat_geo::Instant;
use wingbeat_protocol::Severity;
use wingbeat_wire::{Claim, Refused, VehicleId};

use crate::lanes::{self, KnownSession, Path, Session, Utc};
use crate::{Agent, Outputs, senders};

impl Agent {
    /// Judges whether a datagram that claims this can be taken: for its host, which asks before it
    /// checks the signature ([`wingbeat_wire::Roster::open_if`]).
    ///
    /// # Errors
    /// Our own, one that is not newer than the last of its sender, or one that is too old. An
    /// exclusion that is new here may be older: it is passed on for as long as its flight.
    pub fn admits(&self, now: Instant, claim: &Claim) -> Result<(), Refused> {
        if claim.from == self.id() {
            // One that we have not sent must be proved: our key is used elsewhere.
            return if claim.counter <= self.counter { Err(Refused::Own) } else { Ok(()) };
        }
        self.unless_needed(self.check_age(now, claim), claim.exclusion)
    }

    /// Judges an order that its sender did not broadcast. A console repeats by radio meanwhile:
    /// what it broadcasts in 2 s does not overtake what it posts. `is_direct` states that the
    /// console itself is the peer of the TLS connection.
    ///
    /// # Errors
    /// As [`Agent::admits`].
    pub fn admits_posted(&self, now: Instant, claim: &Claim, is_direct: bool) -> Result<(), Refused> {
        let Claim { from, counter, exclusion, session } = *claim;
        if let Some(number) = session {
            let session = Session { console: from, number };
            return self.orders.lanes.check(now, session, counter, Path::Posted { is_direct }, self.utc(now));
        }
        let is_overtaken = self
            .senders
            .newest(from)
            .is_some_and(|newest| counter < newest.saturating_sub(senders::AGE_MAX_US));
        // The clock behind its broadcasts judges the age of what another program posts for it.
        let is_late = !is_direct && self.senders.is_late(now, from, counter);
        let checked = if is_overtaken || is_late {
            Err(Refused::Stale)
        } else {
            self.orders.posted.check(now, self.synchronised_us(now), from, counter)
        };
        self.unless_needed(checked, exclusion)
    }

    /// Notes an order that was posted and admitted, for both paths.
    pub(crate) fn note_posted(&mut self, now: Instant, claim: &Claim, is_direct: bool, out: &mut Outputs) {
        let Claim { from, counter, session, .. } = *claim;
        if let Some(number) = session {
            return self.note_order(
                now,
                Session { console: from, number },
                counter,
                Path::Posted { is_direct },
                out,
            );
        }
        if self.orders.posted.check(now, self.synchronised_us(now), from, counter).is_ok() {
            self.orders.posted.note(now, from, counter);
            self.senders.note(now, from, counter);
        }
    }

    /// Notes a datagram of the radio that was checked and opened.
    pub(crate) fn note_datagram(&mut self, now: Instant, claim: &Claim, out: &mut Outputs) {
        let Claim { from, counter, session, .. } = *claim;
        match session {
            Some(number) => {
                self.note_order(now, Session { console: from, number }, counter, Path::Radio, out);
            }
            None => self.senders.note(now, from, counter),
        }
    }

    /// Returns the sessions of consoles' programs that the agent after this one must know, 16 at
    /// most: it refuses recordings of orders that this one took.
    pub fn known_sessions(&self) -> impl Iterator<Item = KnownSession> + Clone {
        self.orders.lanes.known()
    }

    fn note_order(&mut self, now: Instant, session: Session, counter: u64, path: Path, out: &mut Outputs) {
        if self.orders.lanes.note(now, session, counter, path) {
            out.log(Severity::Error, lanes::doubled_text(session.console));
        }
    }

    /// An exclusion that was not received counts at any age.
    fn unless_needed(
        &self,
        checked: Result<(), Refused>,
        exclusion: Option<(u32, VehicleId)>,
    ) -> Result<(), Refused> {
        if checked.is_err() && exclusion.is_some_and(|(flight, member)| self.lacks_exclusion(flight, member))
        {
            return Ok(());
        }
        checked
    }

    /// Judges whether a datagram is newer than all before it, of its sender or in its console's
    /// session, and in time.
    pub(crate) fn check_age(&self, now: Instant, claim: &Claim) -> Result<(), Refused> {
        let Claim { from, counter, session, .. } = *claim;
        match session {
            Some(number) => {
                let session = Session { console: from, number };
                self.orders.lanes.check(now, session, counter, Path::Radio, self.utc(now))
            }
            None => self.senders.check(now, self.synchronised_us(now), from, counter),
        }
    }

    /// Counts the senders that are known, with the consoles of which orders alone are.
    pub(crate) fn known_senders(&self) -> usize {
        self.senders.len() + self.orders.lanes.count(|console| !self.senders.is_known(console))
    }

    fn utc(&self, now: Instant) -> Utc {
        Utc { synchronised_us: self.synchronised_us(now), earliest_us: self.earliest_us(now) }
    }

    /// UTC, where all clocks are set to it.
    fn synchronised_us(&self, now: Instant) -> Option<u64> {
        self.unix_us(now).filter(|_| self.config.clocks_are_set)
    }
}
