//! How far each aircraft of a drill has come, read from the changes of its protocol's state.

use wingbeat_agent::StateId;
use wingbeat_geo::{Instant, Position};
use wingbeat_sim::world::Change;
use wingbeat_wire::VehicleId;

/// How far an aircraft has come, in the order of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Before *Setup*.
    Start,
    /// The plan is distributed.
    Setup,
    /// All aircraft have it.
    ReadyToFly,
    /// Between the first arming and the last slot.
    TakingOff,
    /// In the slots, before *Start*.
    SetupFinished,
    /// The pilot climbs (FollowMe).
    Waiting,
    /// The leader leads (FollowMe).
    Following,
    /// The mission (MUSCOP): twice the waypoint, and one more on the leg from it to the next.
    Mission(u16),
    /// To the landing position.
    MovingToLand,
    /// Descending.
    Landing,
    /// Landed, or ended before.
    Over,
}

impl Stage {
    /// Of an aircraft in this state of its protocol, that reached this waypoint last.
    fn of(state: StateId, reached: Option<u16>) -> Self {
        let reached = reached.unwrap_or(0);
        match state {
            StateId::Start => Self::Start,
            StateId::Setup => Self::Setup,
            StateId::ReadyToFly => Self::ReadyToFly,
            StateId::TakingOff => Self::TakingOff,
            StateId::SetupFinished => Self::SetupFinished,
            StateId::Ready | StateId::WaitMaster => Self::Waiting,
            StateId::FollowMe | StateId::Following | StateId::LeaderLost => Self::Following,
            StateId::WaypointReached => Self::Mission(reached * 2),
            StateId::MovingToWaypoint => Self::Mission(reached * 2 + 1),
            StateId::MovingToLand => Self::MovingToLand,
            StateId::Landing => Self::Landing,
            StateId::Finished | StateId::Aborted => Self::Over,
            // On missions of their own.
            StateId::Flying
            | StateId::Holding
            | StateId::Normal
            | StateId::StandStill
            | StateId::MovingAside
            | StateId::GoOnPlease
            | StateId::Overtaking => Self::Mission(reached * 2 + 1),
            StateId::EmergencyLand => Self::Landing,
        }
    }

    /// For a story.
    pub(super) fn name(self) -> String {
        match self {
            Self::Mission(m) if m % 2 == 0 => format!("WaypointReached {}", m / 2),
            Self::Mission(m) => format!("MovingToWaypoint {}", m / 2 + 1),
            other => format!("{other:?}"),
        }
    }
}

/// What an aircraft did between two steps of a drill.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Passed {
    pub(super) vehicle: usize,
    pub(super) at: Instant,
    pub(super) milestone: Milestone,
}

/// What a rule may want to judge.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Milestone {
    /// It entered a stage.
    Entered(Stage),
    /// The waypoint that it reports to have reached, and its true position then.
    Reached { waypoint: u16, position: Position },
    /// It is on the leg behind a waypoint, and did not wait for these members.
    Left { waypoint: u16, given_up: Vec<VehicleId> },
}

/// The progress of every aircraft.
pub(super) struct Progress {
    aircraft: Vec<Aircraft>,
}

#[derive(Clone, Copy)]
struct Aircraft {
    stage: Stage,
    since: Instant,
    reached: Option<u16>,
    left: Option<u16>,
}

impl Progress {
    pub(super) fn new(count: usize) -> Self {
        let aircraft = Aircraft { stage: Stage::Start, since: Instant::ZERO, reached: None, left: None };
        Self { aircraft: vec![aircraft; count] }
    }

    pub(super) fn stage(&self, i: usize) -> Stage {
        self.aircraft[i].stage
    }

    /// When the aircraft entered its stage.
    pub(super) fn since(&self, i: usize) -> Instant {
        self.aircraft[i].since
    }

    /// The waypoint that it reached last.
    pub(super) fn reached(&self, i: usize) -> Option<u16> {
        self.aircraft[i].reached
    }

    /// Returns whether an aircraft has not taken off yet.
    pub(super) fn has_not_flown(&self, i: usize) -> bool {
        self.stage(i) <= Stage::TakingOff
    }

    /// The stage of every aircraft, for a story.
    pub(super) fn names(&self) -> String {
        self.aircraft.iter().map(|a| a.stage.name()).collect::<Vec<_>>().join(", ")
    }

    /// Applies one change of state; what the aircraft passed by it, in order.
    pub(super) fn apply(&mut self, change: &Change) -> Vec<Passed> {
        let mut passed = Vec::new();
        let mut pass = |milestone| passed.push(Passed { vehicle: change.vehicle, at: change.at, milestone });
        let stage = Stage::of(change.state, change.reached);
        let aircraft = &mut self.aircraft[change.vehicle];
        if stage == aircraft.stage {
            return passed;
        }
        (aircraft.stage, aircraft.since) = (stage, change.at);
        pass(Milestone::Entered(stage));
        if let Stage::Mission(m) = stage {
            // An aircraft on its way to a waypoint has reached the one before.
            let waypoint = m / 2;
            if aircraft.reached.replace(waypoint) != Some(waypoint) {
                pass(Milestone::Reached { waypoint, position: change.position });
            }
            // One that rejoins on a leg left its waypoint before its daemon ended, and was judged then.
            if m % 2 == 1 && aircraft.left < Some(waypoint) {
                aircraft.left = Some(waypoint);
                pass(Milestone::Left { waypoint, given_up: change.given_up.clone() });
            }
        }
        passed
    }
}
