//! A swarm in line over the ideal channel, with a simulated operator that sends *Setup* and *Start* to all.

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Reply};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::muscop;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::keys::Signatures;
use wingbeat_sim::motion::Profile;
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// A swarm in line: its size, distances, parameters and mission.
pub(crate) struct Row<'a> {
    pub(crate) count: usize,
    /// Between neighbours in flight and on the ground.
    pub(crate) distance_m: f64,
    pub(crate) ground_m: f64,
    /// Nearer than the separation budget has it for the speed.
    pub(crate) accepts_close: bool,
    pub(crate) profile: Profile,
    pub(crate) parameters: &'a [(Parameter, f32)],
    /// Capacity of each battery, milliampere hours.
    pub(crate) battery_mah: f64,
    /// Metres east and north of where the middle stands, at 15 m.
    pub(crate) mission_m: &'a [(f64, f64)],
    pub(crate) seed: u64,
    /// Orders wait for the flight controller's next report.
    pub(crate) orders_wait: bool,
    /// From the beginning on.
    pub(crate) fault: Option<Fault>,
    /// With the operator's console on the ground behind them, and real signatures.
    pub(crate) console: bool,
}

/// Three, 20 m apart, over two waypoints 100 m apart.
impl Default for Row<'_> {
    fn default() -> Self {
        Self {
            count: 3,
            distance_m: 20.0,
            ground_m: 10.0,
            accepts_close: false,
            profile: Profile::Copter357,
            parameters: &[],
            battery_mah: 10_000.0,
            mission_m: &[(0.0, 0.0), (0.0, 100.0)],
            seed: 0,
            orders_wait: false,
            fault: None,
            console: false,
        }
    }
}

impl Row<'_> {
    /// Flies until `done`, and so much longer.
    pub(crate) fn fly(&self, done: impl Fn(&World) -> bool, longer: Duration) -> World {
        let mut world = self.world();
        operate(&mut world, self.count, |world| done(world));
        world.run_until(world.now() + longer);
        world
    }

    /// Before the operator does anything.
    pub(crate) fn world(&self) -> World {
        let frame = Frame::new(ORIGIN);
        let at = |east_m: f64, north_m: f64| frame.to_position(DVec3::new(east_m, north_m, 0.0));
        let vehicles = (0..self.count).map(|i| {
            let mut muscop = muscop::Config::new(VehicleId(i as u64 + 1), VehicleId(1), self.count);
            (muscop.swarm.layout, muscop.swarm.distance_m) = (Layout::Linear, self.distance_m);
            muscop.swarm.accepts_close = self.accepts_close;
            let mut config = Config::new(muscop);
            config.companion_loss = CompanionLoss::EndsWithIt;
            let seed = 100 * self.seed + i as u64;
            let agent = Agent::new(config, seed, Instant::ZERO).unwrap();
            let home = at((i as f64 - (self.count / 2) as f64) * self.ground_m, 0.0);
            let mut controller = ControllerConfig::new(i as u8 + 1, home);
            controller.profile = self.profile;
            controller.parameters.extend(self.parameters);
            controller.battery.capacity_mah = self.battery_mah;
            (agent, FlightController::new(controller, seed, Instant::ZERO))
        });
        let radios = self.count + usize::from(self.console);
        let channel = Channel::new(Model::Unrestricted, Draw::PerPacket, self.seed + 1, radios);
        let mut world = World::new(ORIGIN, vehicles.collect(), channel, 5.0);
        if self.console {
            world = world.signing(Signatures::Ed25519, self.seed).unwrap();
            world = world.with_console(DVec3::new(0.0, -50.0, 0.0));
        }
        if self.orders_wait {
            world.send_replies_only();
        }
        if let Some(fault) = self.fault {
            world.inflict(Instant::ZERO, fault);
        }
        let waypoint = |&(east_m, north_m): &(f64, f64)| {
            let place = at(east_m, north_m);
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: 15_000 }
        };
        world.mission(0, &self.mission_m.iter().map(waypoint).collect::<Vec<_>>());
        world
    }
}

/// The operator presses *Setup* on all until it is taken, and *Start* when all are ready, until `done`.
///
/// # Panics
/// When that takes 200 s.
pub(crate) fn operate(world: &mut World, count: usize, mut done: impl FnMut(&mut World) -> bool) {
    let mut set_up = vec![false; count];
    let mut started = vec![];
    while !done(world) {
        world.run_until(world.now() + Duration::from_millis(200));
        assert!(world.now() < Instant::from_secs(200), "not done: {started:?}: {:?}", world.log());
        for (i, set_up) in set_up.iter_mut().enumerate() {
            let id = format!("{}", world.now().as_millis());
            if !*set_up {
                *set_up = world.command(i, &id, Command::Setup) == Reply::Accepted;
            } else if (0..count).all(|j| world.phase(j) == Phase::Ready) {
                started = (0..count).map(|j| world.command(j, "start", Command::Start)).collect();
            }
        }
    }
}

/// Whether all are on a leg.
pub(crate) fn all_move(world: &World, count: usize) -> bool {
    (0..count).all(|i| world.phase(i) == Phase::Moving)
}
