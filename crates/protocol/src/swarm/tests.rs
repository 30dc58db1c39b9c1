//! One member of a swarm of three without a flight of its own, for the tests of the parts.

extern crate std;
use std::string::{String, ToString as _};
use std::vec::Vec;

use wingbeat_geo::{DVec3, Frame, Position};
use wingbeat_wire::{Message, VehicleId};

use super::timer::TimerSet;
use super::*;
use crate::{StateId, Telemetry, Text};

pub(super) const MASTER: VehicleId = VehicleId(10);
pub(super) const OTHER: VehicleId = VehicleId(11);
pub(super) const THIRD: VehicleId = VehicleId(12);

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

fn at(east_m: f64, north_m: f64, height_m: f64) -> Point {
    let position = Frame::new(ORIGIN).to_position(DVec3::new(east_m, north_m, 0.0));
    plan::point(position, (height_m * 1e3) as i32)
}

/// The message of a plan that one datagram carries.
pub(super) fn message_of(plan: &plan::Plan) -> Message {
    Message::Data(plan.with_waypoints(plan.waypoints.len()))
}

/// The messages of a plan, each once, in the order in which the master broadcasts them.
pub(super) fn messages_of(plan: &plan::Plan) -> Vec<Message> {
    let mut distribution = distribution::Distribution::of(plan).unwrap();
    let first = distribution.next_message(plan);
    let others = core::iter::repeat_with(|| distribution.next_message(plan));
    let others: Vec<Message> = others.take_while(|message| *message != first).collect();
    core::iter::once(first).chain(others).collect()
}

/// A host that never flies.
struct Grounded;

impl Host for Grounded {
    type FlyingState = ();

    fn on_message(&mut self, _: &mut Swarm<()>, _: Instant, _: usize, _: &Message) -> Result<(), Refused> {
        Ok(())
    }

    fn next(&self, _: &Swarm<()>, _: Instant, _: Trigger) -> Option<Transition<()>> {
        None
    }

    fn enter(&mut self, _: &mut Swarm<()>, _: Instant, _: State<()>, _: &mut Actions) -> Option<Urgency> {
        None
    }

    fn act(&mut self, _: &mut Swarm<()>, _: Instant, _: &Input<'_>, _: &mut Actions) -> Option<Urgency> {
        None
    }

    fn messages(&self, _: &Swarm<()>, _: Instant, (): ()) -> [Option<Message>; 2] {
        [None, None]
    }

    fn running(&self, _: &Swarm<()>) -> TimerSet {
        TimerSet::EMPTY
    }

    fn describe(&self, swarm: &Swarm<()>) -> (StateId, Text) {
        (swarm.state_id().unwrap_or(StateId::Flying), swarm.detail().unwrap_or_default())
    }
}

/// One member, which stands on the ground.
pub(super) struct Member {
    pub(super) swarm: Swarm<()>,
    pub(super) config: Config,
    pub(super) now: Instant,
    out: Vec<Action>,
}

impl Member {
    pub(super) fn new(me: VehicleId) -> Self {
        Self::with(Config::new(me, MASTER, 3))
    }

    pub(super) fn with(config: Config) -> Self {
        let me = config.me;
        let now = Instant::from_secs(1);
        let mut member = Self { swarm: Swarm::new(config.clone(), 1, now), config, now, out: Vec::new() };
        let stand = Self::stand(me);
        member.handle(Input::Telemetry(Telemetry {
            position: plan::position(stand),
            height_m: 0.0,
            velocity_m_s: DVec3::ZERO,
            heading_rad: 0.0,
            armed: false,
            landing: false,
            is_located: true,
        }));
        member
    }

    /// One that has adopted the plan and is not the leader.
    pub(super) fn planned() -> Self {
        let plan = Self::plan();
        assert_eq!(plan.slots[shape::center_slot(&plan)], MASTER);
        let mut member = Self::new(OTHER);
        member.handle(Input::Operator(Command::Setup));
        assert_eq!(member.receive_in(7, MASTER, message_of(&plan)), None);
        member.out.clear();
        member
    }

    pub(super) fn stand(id: VehicleId) -> Point {
        // The master stands between the others, and leads.
        at([0.0, -20.0, 20.0][(id.0 - MASTER.0) as usize], 0.0, 0.0)
    }

    /// What an aircraft that stands there broadcasts before it holds a plan.
    pub(super) fn call(id: VehicleId) -> Message {
        Self::call_from(Self::stand(id), 0)
    }

    pub(super) fn call_from(at: Point, altitude_mm: i32) -> Message {
        let Point { latitude_e7, longitude_e7, .. } = at;
        Message::Stands { at: wingbeat_wire::Location { latitude_e7, longitude_e7, altitude_mm } }
    }

    pub(super) fn plan() -> plan::Plan {
        Self::plan_of(2)
    }

    /// A plan with so many waypoints, on a line 200 m long.
    pub(super) fn plan_of(waypoints: usize) -> plan::Plan {
        let config = Config::new(MASTER, MASTER, 3);
        let task = Self::task_of(waypoints);
        plan::make(&config, &[MASTER, OTHER, THIRD].map(|id| (id, Self::stand(id))), &task).unwrap()
    }

    pub(super) fn task_of(waypoints: usize) -> Task {
        let leg_m = 200.0 / (waypoints - 1) as f64;
        let waypoints = (0..waypoints).map(|n| at(0.0, leg_m * n as f64, 20.0)).collect();
        Task { waypoints, ..Task::default() }
    }

    pub(super) fn leader(&self) -> VehicleId {
        self.swarm.assignment().id_of(self.swarm.members().leader()).unwrap()
    }

    pub(super) fn slot_of(&self, id: VehicleId) -> usize {
        self.swarm.members().slot_of(id).unwrap()
    }

    pub(super) fn handle(&mut self, input: Input<'_>) {
        let mut out = Actions::new();
        self.swarm.handle(&mut Grounded, self.now, input, &mut out);
        self.out.extend(out);
    }

    /// A message of this flight; why it was refused.
    pub(super) fn receive(&mut self, from: VehicleId, message: Message) -> Option<Refused> {
        self.receive_in(self.swarm.assignment().flight(), from, message)
    }

    pub(super) fn receive_in(&mut self, flight: u32, from: VehicleId, message: Message) -> Option<Refused> {
        let before = self.out.len();
        self.handle(Input::Message { from, flight, message: &message });
        self.out[before..].iter().find_map(|action| match action {
            Action::Refused(reason) => Some(*reason),
            Action::Order(_) | Action::Broadcast { .. } | Action::PassOn | Action::Log(..) => None,
        })
    }

    /// A member passes on a command of another.
    pub(super) fn receive_passed(
        &mut self,
        by: VehicleId,
        from: VehicleId,
        command: Message,
    ) -> Option<Refused> {
        let (before, flight) = (self.out.len(), self.swarm.assignment().flight());
        self.handle(Input::Passed { by, from, flight, command: &command });
        self.out[before..].iter().find_map(|action| match action {
            Action::Refused(reason) => Some(*reason),
            Action::Order(_) | Action::Broadcast { .. } | Action::PassOn | Action::Log(..) => None,
        })
    }

    /// The messages broadcast since this was asked last; all else that was done is forgotten.
    pub(super) fn take_broadcast(&mut self) -> Vec<Message> {
        let message = |action| match action {
            Action::Broadcast { message, .. } => Some(message),
            Action::Order(_) | Action::Refused(_) | Action::PassOn | Action::Log(..) => None,
        };
        self.out.drain(..).filter_map(message).collect()
    }

    pub(super) fn orders(&self) -> Vec<Order> {
        let order = |action: &Action| if let Action::Order(order) = action { Some(*order) } else { None };
        self.out.iter().filter_map(order).collect()
    }

    /// What was logged.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |action: &Action| -> Option<String> {
            if let Action::Log(_, line) = action { Some(line.to_string()) } else { None }
        };
        self.out.iter().filter_map(line).collect()
    }

    /// How many lines contain the words.
    pub(super) fn logged(&self, words: &str) -> usize {
        self.lines().iter().filter(|line| line.contains(words)).count()
    }
}
