//! A flight that the operator sets up otherwise than configured: another protocol, or other numbers, on the ground before it begins.

use wingbeat_geo::Instant;
use wingbeat_protocol::{Phase, Severity, View, text};

use crate::{Agent, Coordination, Outputs, Rejection, Reply, budget};

impl Agent {
    /// Sets the flight up otherwise, on the ground before it begins. The mission is kept where the protocol flies it.
    #[inline(never)]
    pub(crate) fn set_flight_up(&mut self, now: Instant, flight: &Coordination, out: &mut Outputs) -> Reply {
        if let Some(why) = self.check_flight_set_up(now, flight) {
            return Reply::Refused(why);
        }
        if *flight == self.config.coordination {
            return Reply::AlreadyKnown;
        }
        let is_piloted = budget::is_piloted(&self.config.coordination);
        self.config.coordination.clone_from(flight);
        if budget::is_piloted(flight) != is_piloted {
            self.parameters = budget::watch(flight, now);
        }
        self.begin_protocol(now);
        if !self.mission.is_empty()
            && let Err(why) = self.protocol.set_mission(self.mission.route(), self.mission.extras())
        {
            self.mission.clear();
            out.log(Severity::Warning, text!("the mission is dropped: {why}"));
        }
        Reply::Accepted
    }

    /// Why the flight cannot be set up so now.
    fn check_flight_set_up(&self, now: Instant, flight: &Coordination) -> Option<Rejection> {
        let (found, expected) = (flight.me(), self.id());
        if found != expected {
            return Some(Rejection::OtherAircraft { found, expected });
        }
        if let Err(why) = flight.check() {
            return Some(why.into());
        }
        // One that flies and was not received yet may be on its way to rejoin its flight.
        if !self.is_judged(now) {
            return Some(Rejection::NotReceived);
        }
        if let Some(by) = self.authority.taken_by() {
            return Some(Rejection::Disengaged(by.clone()));
        }
        if self.telemetry.armed || self.executor.arms() {
            return Some(Rejection::SetUpArmed);
        }
        let View { phase, state, .. } = self.protocol.view();
        if phase != Phase::Start {
            return Some(Rejection::Begun(state));
        }
        let is_busy = self.executor.is_busy() || self.waiting.is_some() || self.rejoin.answers();
        is_busy.then_some(Rejection::OrderUnderWay)
    }
}
