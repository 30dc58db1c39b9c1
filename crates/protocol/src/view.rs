//! What a protocol shows of itself, to the agent, to the status and to the bench.
//!
//! Two values by what they cost: a [`View`] is copied from fields and made at every input, [`Details`] are formatted
//! and searched for when a status is published.

use wingbeat_geo::{DVec2, Position};
use wingbeat_wire::{Avoidance, Ending, LOCATIONS_MAX, Phase, Point, SWARM_MAX, StateId, VehicleId};

use crate::Text;
use crate::mbcap::Tally;
use crate::swarm::plan::PlanError;

/// A protocol's state, copied from its fields: cheap enough to be made at every input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The state, by the name that the protocol's paper gives it.
    pub state: StateId,
    /// How far the flight has come.
    pub phase: Phase,
    /// The waypoint reached last.
    pub reached: Option<u16>,
    /// Where it is flying to.
    pub target: Option<Point>,
    /// Role and slot in the swarm.
    pub swarm: SwarmView,
    /// A pilot flies this aircraft. The protocol gives it no order then, and a change of its flight mode is the
    /// pilot's decision and no takeover.
    pub is_piloted: bool,
    /// Ordered home, it avoids others on its way, and may stand for one: its flight has been ended, and it goes on by itself.
    pub is_returning: bool,
    /// Speed at which the flight controller flies the route by its own navigation, metres per second; `None` where
    /// the protocol sends it from waypoint to waypoint.
    pub route_speed_m_s: Option<f64>,
    /// Height above home at which the aircraft returns, by its own decision or its autopilot's, millimetre; `None`
    /// where the pilot's own setting stays.
    pub return_height_mm: Option<i32>,
    /// Distance between the slots of the formation, metres, which has to suit the speed of the legs; `None` where a pilot
    /// leads, a close formation is accepted, or it is not known yet.
    pub spacing_m: Option<f64>,
    /// From the leader's slot to ours, metres east and north; `None` without a formation.
    pub slot_offset_m: Option<DVec2>,
    /// From the leader's slot to ours in a formation that turns with the leader: metres right of the leader's
    /// heading, and ahead; `None` where the formation keeps its heading.
    pub slot_in_heading_m: Option<DVec2>,
    /// What the avoidance of others came to so far; `None` where the protocol has none.
    pub avoidance_tally: Option<Tally>,
}

impl View {
    /// Of an aircraft that flies for itself, from waypoint to waypoint.
    pub const fn alone(state: StateId, phase: Phase) -> Self {
        Self {
            state,
            phase,
            reached: None,
            target: None,
            swarm: SwarmView::ALONE,
            is_piloted: false,
            is_returning: false,
            route_speed_m_s: None,
            return_height_mm: None,
            spacing_m: None,
            slot_offset_m: None,
            slot_in_heading_m: None,
            avoidance_tally: None,
        }
    }

    /// The same after this waypoint of the route: on the way to the next.
    pub fn on_route(self, route: &[Point], reached: Option<u16>) -> Self {
        let next = reached.map_or(0, |w| usize::from(w) + 1);
        Self { reached, target: route.get(next).copied(), ..self }
    }
}

/// What a protocol shows of itself when a status is published: formatted, searched for or planned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// One line: what it does or waits for.
    pub line: Text,
    /// Members of the swarm that are lost, left or excluded, by slot.
    pub absentees: Absentees,
    /// What it does to avoid others; `None` where the protocol does not.
    pub avoidance: Option<AvoidanceView>,
    /// The formation with its slots, where this aircraft plans it.
    pub formation: Option<FormationView>,
    /// Hash of the plan that the swarm shares.
    pub plan_hash: Option<u64>,
}

/// Role and slot in the swarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwarmView {
    /// Whether this aircraft leads the flight.
    pub leader: bool,
    /// The aircraft that leads, once known.
    pub leader_id: Option<VehicleId>,
    /// How many fly; before setup, how many the master has received calls of, itself included.
    pub size: usize,
    /// Name of the formation.
    pub formation: &'static str,
    /// Our slot, once assigned.
    pub slot: Option<usize>,
    /// The number of the flight; 0 before the plan is adopted.
    pub flight: u32,
}

impl SwarmView {
    /// Of an aircraft that belongs to no swarm.
    pub const ALONE: Self =
        Self { leader: false, leader_id: None, size: 1, formation: "none", slot: None, flight: 0 };
}

/// A member of the swarm that is lost, has left or is excluded, as this aircraft has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The member.
    pub id: VehicleId,
    /// Nothing was received from it for the time to live.
    pub is_lost: bool,
    /// How it leaves, where it has announced that.
    pub leaves: Option<Ending>,
    /// The operator excluded it: this aircraft's own id where the command came here, otherwise the aircraft that
    /// passed it on.
    pub excluded_by: Option<VehicleId>,
    /// It is waited for nevertheless: on the ground all are that are not excluded.
    pub is_waited_for: bool,
}

/// Lost, left and excluded members, by slot.
pub type Absentees = heapless::Vec<Absent, SWARM_MAX>;

/// The formation as the aircraft that plans has it.
#[derive(Clone, Debug, PartialEq)]
pub struct FormationView {
    /// Distance between slots, metres.
    pub distance_m: f64,
    /// Its heading, radians clockwise from north, once known.
    pub heading_rad: Option<f64>,
    /// The swarm has agreed on it. Otherwise it is what setup would plan now.
    pub is_planned: bool,
    /// Why setup would be refused.
    pub refused: Option<PlanError>,
    /// The slots; none before all aircraft have called and there is a mission.
    pub slots: heapless::Vec<SlotView, SWARM_MAX>,
}

/// A slot of the formation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// The aircraft that flies there.
    pub id: VehicleId,
    /// Its position.
    pub position: Point,
}

/// State of a protocol that avoids others.
#[derive(Clone, Debug, PartialEq)]
pub struct AvoidanceView {
    /// Its state.
    pub state: Avoidance,
    /// The aircraft that it is in conflict with.
    pub avoiding: Option<VehicleId>,
    /// Where it is and will be, as its last beacon has it.
    pub predicted: heapless::Vec<Position, LOCATIONS_MAX>,
    /// Where the conflict lies.
    pub risk: Option<Position>,
    /// Where it goes to give way.
    pub aside: Option<Position>,
    /// Whether it receives others; `None` where that is not known.
    pub receives: Option<bool>,
    /// Whether others receive it; `None` where that is not known.
    pub is_received: Option<bool>,
}
