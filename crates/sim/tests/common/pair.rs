//! An agent and a flight controller on a line, in virtual time.

use wingbeat_agent::{Agent, Check, Coordination, Input, Outputs};
use wingbeat_geo::{Duration, Instant, Position};
use wingbeat_protocol::mission;
use wingbeat_sim::flight_controller::{Config, FlightController};
use wingbeat_wire::VehicleId;

pub(crate) const HOME: Position =
    Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
/// The agent starts so long after the flight controller.
const LATER: Duration = Duration::from_millis(12_345);
/// One way of the line.
const LINE: Duration = Duration::from_millis(3);

pub(crate) struct Pair {
    pub(crate) agent: Agent,
    pub(crate) controller: FlightController,
    /// The world's time; the agent's began later.
    world: Instant,
    out: Box<Outputs>,
    utc_at_boot_us: u64,
    pub(crate) lines: Vec<String>,
}

impl Pair {
    pub(crate) fn new(controller: Config, change: impl FnOnce(&mut wingbeat_agent::Config)) -> Self {
        let mut agent = wingbeat_agent::Config::new(Coordination::from(mission::Config::new(VehicleId(1))));
        change(&mut agent);
        Self {
            utc_at_boot_us: controller.utc_at_boot_us,
            controller: FlightController::new(controller, 1, Instant::ZERO),
            agent: Agent::new(agent, 1, Instant::ZERO).unwrap(),
            world: Instant::ZERO + LATER,
            out: Box::default(),
            lines: vec![],
        }
    }

    /// The agent's time.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.world.since(Instant::ZERO + LATER).as_micros() as u64)
    }

    /// UTC, microseconds after 1970.
    pub(crate) fn true_us(&self) -> u64 {
        self.utc_at_boot_us + self.world.as_micros()
    }

    /// The receiver's time steps ahead.
    pub(crate) fn step_utc(&mut self, ahead_us: u64) {
        self.controller.set_utc_us(self.world, self.true_us() + ahead_us);
    }

    pub(crate) fn feed(&mut self, input: Input<'_>) {
        let now = self.now();
        self.agent.handle(now, input, &mut self.out);
        self.lines.extend(self.out.log.iter().map(|line| line.text.to_string()));
        // Read at the controller's next tick.
        self.controller.receive(&self.out.autopilot);
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.world + time;
        while self.world < until {
            self.world = self.world + Duration::from_millis(7);
            let mut sent = vec![];
            self.controller.advance(self.world, &mut sent);
            self.world = self.world + LINE;
            for piece in sent.chunks(280) {
                self.feed(Input::Autopilot(piece));
            }
            self.feed(Input::Wake);
        }
    }

    pub(crate) fn check(&self, name: &str) -> Check {
        let checks = self.agent.status(self.now()).checks;
        checks.into_iter().find(|check| check.name == name).expect("the check")
    }
}
