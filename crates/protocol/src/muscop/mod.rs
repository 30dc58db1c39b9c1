//! MUSCOP: one mission, flown by a swarm in formation (thesis chapter 6).
//!
//! The *master* owns the mission and organises the setup; the aircraft in the middle of the formation,
//! the *centre*, leads the flight: at every waypoint it waits until all have arrived, then releases all
//! to the next. Every message is repeated each 200 ms until its answer makes it useless, because any of
//! them may be lost.
//!
//! ```text
//! Start ─Setup▶ Setup ─all hold the plan▶ ReadyToFly ─all ready▶ TakingOff ─all in their slots▶
//! SetupFinished ─Start▶ WaypointReached(k) ◀─arrived── MovingToWaypoint(k+1) … last:
//! centre: Landing ▶ Finished      others: MovingToLand ▶ Landing ▶ Finished
//! any: Hold, Return, Land by the operator, or a failure ▶ Aborted
//! ```
//!
//! What comes before and after the flight is [`Swarm`]'s; here is the flight: the barrier at every waypoint,
//! and who leads. Deciding is apart from doing: [`Muscop::next`] maps state and books to the next state and
//! writes nothing. Departures from the thesis are listed with their reasons in `docs/protocols/muscop.md`.

#[cfg(test)]
mod tests;

use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_wire::{Message, Point, Refused, VehicleId};

use crate::swarm::{self, Abort, Heard, Swarm, plan};
use crate::{
    Action, Actions, Command, ConfigError, Configuration, Input, Phase, Protocol, SwarmView, Text, push, text,
};

/// What one aircraft knows before it meets the others. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Meeting, taking off, landing.
    pub swarm: swarm::Config,
    /// A follower that has not heard the centre for so long while waiting lands where it is.
    pub leader_timeout: Duration,
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, master: VehicleId, aircraft: usize) -> Self {
        Self { swarm: swarm::Config::new(me, master, aircraft), leader_timeout: Duration::from_secs(30) }
    }
}

impl Configuration for Config {
    type Flight = Muscop;

    fn me(&self) -> VehicleId {
        self.swarm.me
    }
    fn heights_m(&self) -> (f64, f64) {
        (self.swarm.height_least_m, self.swarm.height_most_m)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.swarm.check()
    }
    fn begin(&self, seed: u64, now: Instant) -> Muscop {
        Muscop::new(self.clone(), seed, now)
    }
}

/// States of the flight (thesis figure 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// At a waypoint, waiting for the others.
    WaypointReached {
        /// Which.
        waypoint: u16,
    },
    /// On the way to a waypoint.
    MovingToWaypoint {
        /// Which.
        waypoint: u16,
    },
}

/// All states.
pub type State = swarm::State<Flight>;

/// MUSCOP on one aircraft.
pub struct Muscop {
    swarm: Swarm<Flight>,
    leader_timeout: Duration,
    /// The centre's last release.
    move_to: Option<u16>,
    leader_heard_at: Instant,
}

impl Muscop {
    /// An aircraft in state [`State::Start`]. `seed` sets the phase of its timers, so that not all talk
    /// at once, and the number of the flights it plans.
    pub fn new(config: Config, seed: u64, now: Instant) -> Self {
        Self {
            swarm: Swarm::new(config.swarm, seed, now),
            leader_timeout: config.leader_timeout,
            move_to: None,
            leader_heard_at: now,
        }
    }

    fn last_waypoint(&self) -> u16 {
        self.swarm.route.len().saturating_sub(1) as u16
    }

    /// Writes an input into the books.
    fn absorb(&mut self, now: Instant, input: Input<'_>) -> Result<(), Refused> {
        let Some(Heard { slot, message }) = self.swarm.absorb(now, input)? else { return Ok(()) };
        let from_leader = slot == self.swarm.leader;
        if from_leader {
            self.leader_heard_at = now;
        }
        match message {
            Message::ReachedWaypointAck { waypoint }
                if self.swarm.state == State::Flying(Flight::WaypointReached { waypoint: *waypoint }) =>
            {
                self.swarm.acks |= 1 << slot;
            }
            Message::MoveToWaypoint { .. } if !from_leader => return Err(Refused::Stranger),
            Message::MoveToWaypoint { waypoint } => self.move_to = Some(*waypoint),
            _ => {}
        }
        Ok(())
    }

    /// The transition table: it reads and never writes, so a test can print it whole.
    fn next(&self, now: Instant) -> State {
        use Flight::{MovingToWaypoint, WaypointReached};
        let s = &self.swarm;
        let next = s.next(now);
        if next != s.state {
            return next;
        }
        let leaderless = now >= self.leader_heard_at + self.leader_timeout;
        match s.state {
            State::SetupFinished if s.asked == Some(Command::Start) => {
                State::Flying(WaypointReached { waypoint: 0 })
            }
            State::Flying(WaypointReached { waypoint }) if s.is_leader() && s.all(s.acks) => {
                if waypoint == self.last_waypoint() {
                    State::Landing
                } else {
                    State::Flying(MovingToWaypoint { waypoint: waypoint + 1 })
                }
            }
            State::Flying(WaypointReached { waypoint })
                if !s.is_leader() && self.move_to == Some(waypoint + 1) =>
            {
                State::Flying(MovingToWaypoint { waypoint: waypoint + 1 })
            }
            State::Flying(WaypointReached { waypoint })
                if !s.is_leader() && waypoint == self.last_waypoint() && s.land_at.is_some() =>
            {
                State::MovingToLand
            }
            State::Flying(WaypointReached { .. }) if !s.is_leader() && leaderless => {
                State::Aborted(Abort::Land)
            }
            State::Flying(MovingToWaypoint { waypoint }) if s.arrived => {
                State::Flying(WaypointReached { waypoint })
            }
            State::Flying(MovingToWaypoint { .. }) if now >= s.leg_deadline => s.failure(now),
            unchanged => unchanged,
        }
    }

    /// Takes a state, acts and tells.
    fn change(&mut self, now: Instant, new: State, out: &mut Actions) {
        let old = self.swarm.state;
        self.swarm.change(now, new, out);
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) => self.leader_heard_at = now,
            State::Flying(Flight::MovingToWaypoint { waypoint }) => {
                let place = self.swarm.route.get(usize::from(waypoint)).copied();
                self.swarm.fly_to(now, place, out);
            }
            _ => {}
        }
        let silent = matches!(old, State::Flying(Flight::WaypointReached { .. }))
            && self.swarm.state == State::Aborted(Abort::Land)
            && self.swarm.asked.is_none();
        let (name, detail) = (self.state(), self.detail());
        self.swarm.tell(old, name, &detail, silent.then_some("; the centre is silent"), out);
    }
}

/// What is repeated in flight.
fn in_flight(swarm: &Swarm<Flight>, flight: Flight) -> Option<Message> {
    Some(match flight {
        // Whoever missed the release to here must still hear it, and all that the leader is alive.
        Flight::WaypointReached { waypoint } | Flight::MovingToWaypoint { waypoint } if swarm.is_leader() => {
            Message::MoveToWaypoint { waypoint }
        }
        Flight::WaypointReached { waypoint } => Message::ReachedWaypointAck { waypoint },
        Flight::MovingToWaypoint { waypoint } => {
            Message::ReachedWaypointAck { waypoint: waypoint.checked_sub(1)? }
        }
    })
}

impl Protocol for Muscop {
    fn name(&self) -> &'static str {
        "muscop"
    }

    /// Only the master flies it as given; it replaces an earlier one.
    fn set_mission(&mut self, mission: &[Point]) -> Result<(), Text> {
        let config = &self.swarm.config;
        if config.me != config.master {
            return Err(text!("the mission belongs to the master, {}", config.master));
        }
        if self.swarm.state != State::Start {
            return Err(text!("a mission can be given in state Start, found {}", self.state()));
        }
        self.swarm.task.waypoints = plan::Route::from_slice(mission)
            .ok()
            .filter(|m| m.len() >= 2)
            .ok_or_else(|| text!("{}", plan::PlanError::Waypoints(mission.len())))?;
        Ok(())
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        if let Err(reason) = self.absorb(now, input) {
            push(out, Action::Refused(reason));
            return;
        }
        self.swarm.prepare(out);
        // Two changes at most follow from one input: a place reached that was the last to be waited for.
        for _ in 0..2 {
            let new = self.next(now);
            if new == self.swarm.state {
                break;
            }
            self.change(now, new, out);
        }
        self.swarm.asked = None;
        self.swarm.talk(now, input, in_flight, out);
    }

    fn poll_timeout(&self) -> (Instant, &'static str) {
        let first = self.swarm.poll_timeout();
        let own = match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) if !self.swarm.is_leader() => {
                (self.leader_heard_at + self.leader_timeout, "centre silent")
            }
            State::Flying(Flight::MovingToWaypoint { .. }) => (self.swarm.leg_deadline, "place not reached"),
            _ => return first,
        };
        if own.0 < first.0 { own } else { first }
    }

    fn permits(&self, command: Command) -> Result<(), Text> {
        self.swarm.permits(command, self.state())
    }

    fn state(&self) -> &'static str {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) => "WaypointReached",
            State::Flying(Flight::MovingToWaypoint { .. }) => "MovingToWaypoint",
            _ => self.swarm.state_name().unwrap_or_default(),
        }
    }

    fn phase(&self) -> Phase {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { .. }) => Phase::Waiting,
            State::Flying(Flight::MovingToWaypoint { .. }) => Phase::Moving,
            _ => self.swarm.phase().unwrap_or(Phase::Moving),
        }
    }

    fn detail(&self) -> Text {
        let last = self.last_waypoint();
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) if self.swarm.is_leader() => {
                text!("at waypoint {waypoint} of {last}, waiting for {}", self.swarm.missing(self.swarm.acks))
            }
            State::Flying(Flight::WaypointReached { waypoint }) => text!("at waypoint {waypoint} of {last}"),
            State::Flying(Flight::MovingToWaypoint { waypoint }) => text!("to waypoint {waypoint} of {last}"),
            _ => self.swarm.detail().unwrap_or_default(),
        }
    }

    fn route(&self) -> &[Point] {
        if self.swarm.planned() { &self.swarm.route } else { &self.swarm.task.waypoints }
    }

    fn reached(&self) -> Option<u16> {
        match self.swarm.state {
            State::Flying(Flight::WaypointReached { waypoint }) => Some(waypoint),
            State::Flying(Flight::MovingToWaypoint { waypoint }) => waypoint.checked_sub(1),
            State::MovingToLand | State::Landing | State::Finished => Some(self.last_waypoint()),
            _ => None,
        }
    }

    fn target(&self) -> Option<Point> {
        self.swarm.target
    }

    fn swarm(&self) -> SwarmView {
        self.swarm.view()
    }

    fn slot_offset_m(&self) -> Option<DVec2> {
        self.swarm.slot_offset_m()
    }

    fn plan_hash(&self) -> Option<u64> {
        self.swarm.plan_hash()
    }
}
