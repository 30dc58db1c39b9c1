//! The protocols that an aircraft can be configured with, behind the one trait: one at a time flies it.

use wingbeat_geo::{DVec2, Instant};
use wingbeat_protocol::{
    Actions, AvoidanceView, Command, FollowMe, Input, Mbcap, Muscop, Phase, Protocol, SwarmView, Text,
    follow_me, mbcap, muscop,
};
use wingbeat_wire::{Point, VehicleId};

/// Which protocol flies the aircraft, with its numbers.
// One is kept for each aircraft.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Coordination {
    /// One mission, flown as a formation.
    Muscop(muscop::Config),
    /// A mission of its own, kept apart from others.
    Mbcap(mbcap::Config),
    /// A formation that follows an aircraft flown by a pilot.
    FollowMe(follow_me::Config),
}

impl From<follow_me::Config> for Coordination {
    fn from(config: follow_me::Config) -> Self {
        Self::FollowMe(config)
    }
}

impl From<muscop::Config> for Coordination {
    fn from(config: muscop::Config) -> Self {
        Self::Muscop(config)
    }
}

impl From<mbcap::Config> for Coordination {
    fn from(config: mbcap::Config) -> Self {
        Self::Mbcap(config)
    }
}

impl Coordination {
    /// Who we are.
    pub fn me(&self) -> VehicleId {
        match self {
            Self::Muscop(config) => config.swarm.me,
            Self::Mbcap(config) => config.me,
            Self::FollowMe(config) => config.swarm.me,
        }
    }

    /// Lowest and highest height of a waypoint above home, metres.
    pub fn heights_m(&self) -> (f64, f64) {
        match self {
            Self::Muscop(config) => (config.swarm.height_least_m, config.swarm.height_most_m),
            Self::Mbcap(config) => (config.height_least_m, config.height_most_m),
            Self::FollowMe(config) => (config.swarm.height_least_m, config.swarm.height_most_m),
        }
    }

    pub(crate) fn begin(&self, seed: u64, now: Instant) -> Flight {
        match self {
            Self::Muscop(config) => Flight::Muscop(Muscop::new(config.clone(), seed, now)),
            Self::Mbcap(config) => Flight::Mbcap(Mbcap::new(config.clone(), seed, now)),
            Self::FollowMe(config) => Flight::FollowMe(FollowMe::new(config.clone(), seed, now)),
        }
    }
}

/// The protocol of one flight.
// One lives at a time, in its agent, and there is no allocator to put the larger one elsewhere.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Flight {
    Muscop(Muscop),
    Mbcap(Mbcap),
    FollowMe(FollowMe),
}

macro_rules! each {
    ($flight:expr, $protocol:ident => $answer:expr) => {
        match $flight {
            Flight::Muscop($protocol) => $answer,
            Flight::Mbcap($protocol) => $answer,
            Flight::FollowMe($protocol) => $answer,
        }
    };
}

impl Flight {
    pub(crate) fn tally(&self) -> Option<mbcap::Tally> {
        match self {
            Self::Muscop(_) | Self::FollowMe(_) => None,
            Self::Mbcap(mbcap) => Some(mbcap.tally()),
        }
    }
}

impl Protocol for Flight {
    fn name(&self) -> &'static str {
        each!(self, p => p.name())
    }
    fn set_mission(&mut self, mission: &[Point]) -> Result<(), Text> {
        each!(self, p => p.set_mission(mission))
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        each!(self, p => p.handle(now, input, out));
    }
    fn poll_timeout(&self) -> (Instant, &'static str) {
        each!(self, p => p.poll_timeout())
    }
    fn permits(&self, command: Command) -> Result<(), Text> {
        each!(self, p => p.permits(command))
    }
    fn state(&self) -> &'static str {
        each!(self, p => p.state())
    }
    fn phase(&self) -> Phase {
        each!(self, p => p.phase())
    }
    fn detail(&self) -> Text {
        each!(self, p => p.detail())
    }
    fn route(&self) -> &[Point] {
        each!(self, p => p.route())
    }
    fn reached(&self) -> Option<u16> {
        each!(self, p => p.reached())
    }
    fn target(&self) -> Option<Point> {
        each!(self, p => p.target())
    }
    fn swarm(&self) -> SwarmView {
        each!(self, p => p.swarm())
    }
    fn route_speed_m_s(&self) -> Option<f64> {
        each!(self, p => p.route_speed_m_s())
    }
    fn avoidance(&self) -> Option<AvoidanceView> {
        each!(self, p => p.avoidance())
    }
    fn waits_for(&self, who: VehicleId) -> bool {
        each!(self, p => p.waits_for(who))
    }
    fn slot_offset_m(&self) -> Option<DVec2> {
        each!(self, p => p.slot_offset_m())
    }
    fn slot_in_heading_m(&self) -> Option<DVec2> {
        each!(self, p => p.slot_in_heading_m())
    }
    fn is_piloted(&self) -> bool {
        each!(self, p => p.is_piloted())
    }
    fn plan_hash(&self) -> Option<u64> {
        each!(self, p => p.plan_hash())
    }
}
