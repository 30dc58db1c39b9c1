//! Making room: an aircraft that hovers where another is about to land on its home moves aside until that one is down.
//!
//! A return that the operator commands waits until its column is clear ([`super::clearance`]). One that a failsafe of the
//! autopilot began waits for nothing: it flies home in its layer and descends, whatever aircraft hovers below.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::Point;

use super::navigation::CLIMBED_LEAST;
use super::{Host, State, Swarm, TakeOffPhase};
use crate::{Action, Actions, Input, Order, Severity, push, text};

/// An aircraft that moved aside stays there for at least this long.
const ASIDE_LEAST: Duration = Duration::from_secs(2);

/// Off its hover position, so that another can land.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside {
    site: Point,
    /// Where it hovered.
    back: Point,
    since: Instant,
    is_on_its_way_back: bool,
}

impl Aside {
    /// Returns how long this aircraft stays there at least.
    fn least(&self) -> Duration {
        if self.site.height_mm > self.back.height_mm { CLIMBED_LEAST } else { ASIDE_LEAST }
    }
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// Whether this aircraft is off its hover position, or on its way back to it.
    pub(crate) fn is_aside(&self) -> bool {
        self.aside.is_some()
    }

    /// Whether it has been for longer than an operator would let it.
    pub(crate) fn is_aside_too_long(&self, now: Instant) -> bool {
        self.aside.is_some_and(|aside| now >= self.config.patience_after(aside.since))
    }

    /// Where this aircraft hovers in the present state; none where it does not.
    fn hover_position<H: Host<FlyingState = F>>(&self, host: &H) -> Option<Point> {
        use TakeOffPhase::{Climbing, Confirming, InSlot, MovingToSlot, Waiting};
        let slot = || self.assignment.route().first().copied();
        let is_up = self.assignment.take_off_index().is_some() && self.ownship.is_armed();
        match self.state {
            State::TakingOff(InSlot | Confirming) | State::SetupFinished if is_up => slot(),
            State::Flying(flight) if is_up => host.hover_position(self, flight),
            State::TakingOff(Waiting | Climbing | MovingToSlot | InSlot | Confirming)
            | State::Start
            | State::Setup
            | State::ReadyToFly
            | State::SetupFinished
            | State::Flying(_)
            | State::MovingToLand
            | State::Landing
            | State::Finished
            | State::Aborted(_) => None,
        }
    }

    /// Moves aside, and back.
    pub(super) fn make_room<H: Host<FlyingState = F>>(
        &mut self,
        host: &H,
        now: Instant,
        input: &Input<'_>,
        out: &mut Actions,
    ) {
        let Some(back) = self.hover_position(host) else {
            self.aside = None;
            return;
        };
        if !self.checks_path(now, input) {
            return;
        }
        let Some(aside) = self.aside else {
            let above = self.clearance().above_adrift(now).filter(|_| !self.is_adrift());
            if let Some(site) = above {
                self.aside = Some(Aside { site, back, since: now, is_on_its_way_back: false });
                push(out, Action::Log(Severity::Warning, text!("another drifts towards here: climbing")));
                push(out, Action::Order(Order::FlyTo(site)));
            } else if let Some(site) = self.clearance().site_off_returns(back) {
                self.aside = Some(Aside { site, back, since: now, is_on_its_way_back: false });
                push(out, Action::Log(Severity::Warning, text!("another returns to below: moving aside")));
                push(out, Action::Order(Order::FlyTo(site)));
            }
            return;
        };
        let clearance = self.clearance();
        let is_free = clearance.is_off_returns(aside.back) && !clearance.is_drifted_over(now);
        if aside.is_on_its_way_back {
            if !is_free {
                self.aside = Some(Aside { is_on_its_way_back: false, ..aside });
                push(out, Action::Order(Order::FlyTo(aside.site)));
            } else if self.is_at(aside.back) && self.ownship.is_standing() {
                self.aside = None;
            }
        } else if is_free && now.since(aside.since) >= aside.least() {
            self.aside = Some(Aside { is_on_its_way_back: true, ..aside });
            push(out, Action::Order(Order::FlyTo(aside.back)));
        }
    }
}

#[cfg(test)]
impl Aside {
    /// Everything that decides what follows, for [`Swarm::fingerprint`].
    pub(super) fn fingerprint(
        &self,
        ages: &super::table::fingerprint::Ages,
        state: &mut impl core::hash::Hasher,
    ) {
        use super::table::fingerprint::coordinates;
        use core::hash::Hash as _;
        (coordinates(self.site), coordinates(self.back), ages.of(self.since)).hash(state);
        self.is_on_its_way_back.hash(state);
    }
}
