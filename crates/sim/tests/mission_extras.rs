//! Speeds, holds, yaws, take-off and ends of missions through all layers: agent, MAVLink bytes, simulated flight
//! controllers of both versions.

use wingbeat_agent::{
    Agent, Command, CompanionLoss, Config, Coordination, LegExtras, MissionExtras, Phase, Reply, RouteEnd,
    StateId,
};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::{mbcap, mission, sweep};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::motion::Profile;
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

fn point(east_m: f64, north_m: f64) -> Point {
    let at = Frame::new(ORIGIN).to_position(DVec2::new(east_m, north_m).extend(0.0));
    Point { latitude_e7: at.latitude_e7, longitude_e7: at.longitude_e7, height_mm: 10_000 }
}

/// A route of three legs of 100 m, or the corners of an area.
fn world(coordination: Coordination, profile: Profile, route: &[Point], extras: &MissionExtras) -> World {
    let config = Config { companion_loss: CompanionLoss::EndsWithIt, ..Config::new(coordination) };
    let agent = Agent::new(config, 7, Instant::ZERO).unwrap();
    let controller = ControllerConfig { boot: Boot::Warm, profile, ..ControllerConfig::new(1, ORIGIN) };
    let vehicles = vec![(agent, FlightController::new(controller, 7, Instant::ZERO))];
    let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, 7, 1);
    let mut world = World::new(ORIGIN, vehicles, channel, 5.0);
    assert_eq!(world.mission_with(0, route, extras), Reply::Accepted);
    world
}

/// Flies until `enough` or for half an hour.
fn fly_until(world: &mut World, enough: impl Fn(&World) -> bool) {
    while world.now() < Instant::from_secs(1_800) && !enough(world) {
        world.run_until(world.now() + Duration::from_millis(200));
        let id = format!("{}", world.now().as_millis());
        match world.phase(0) {
            Phase::Start => drop(world.command(0, &id, Command::Setup)),
            Phase::Ready => assert_eq!(world.command(0, &id, Command::Start), Reply::Accepted),
            _ => {}
        }
    }
}

fn is_down(world: &World) -> bool {
    let s = world.status(0);
    !s.flight_controller.armed && matches!(s.phase, Phase::Finished | Phase::Aborted)
}

fn square() -> [Point; 4] {
    [point(0.0, 0.0), point(0.0, 100.0), point(100.0, 100.0), point(100.0, 0.0)]
}

/// 4 m/s to the second waypoint and 20 s there, 8 m/s and the nose to the south to the third, 15 s at the last one, and home.
fn stated() -> MissionExtras {
    let mut extras = MissionExtras::default();
    extras.end = RouteEnd::Return { height_mm: 0 };
    for leg in [
        LegExtras { speed_cm_s: 400, hold_s: 20, ..LegExtras::none(1) },
        LegExtras { speed_cm_s: 800, yaw_cdeg: Some(18_000), ..LegExtras::none(2) },
        LegExtras { hold_s: 15, ..LegExtras::none(3) },
    ] {
        extras.push(leg).unwrap();
    }
    extras
}

/// Greatest speed over ground and yaws that are seen while the aircraft flies to a waypoint. 4.x begins a leg as it was planned
/// with the speed before, and brings it to the new speed within seconds: speeds count from then on.
fn watch(world: &mut World, to: u16) -> (f64, Vec<f64>) {
    let (mut most_m_s, mut yaws, begun) = (0.0_f64, Vec::new(), world.now());
    while world.status(0).reached < Some(to) && !is_down(world) {
        world.run_until(world.now() + Duration::from_millis(100));
        let truth = world.truth(0);
        if world.now().since(begun) >= Duration::from_secs(7) {
            most_m_s = most_m_s.max(truth.velocity.truncate().length());
        }
        yaws.push(truth.heading_rad.to_degrees().rem_euclid(360.0));
    }
    (most_m_s, yaws)
}

/// *Said is done*: what the mission states is flown, by Mission and MBCAP, with both versions of the flight controller.
#[test]
fn speeds_holds_yaws_and_the_return_of_a_mission_are_flown() {
    let me = VehicleId(1);
    let of: [Coordination; 2] =
        [mission::Config::new(me).into(), mbcap::Config { me, ..mbcap::Config::mbcap_e() }.into()];
    for coordination in of {
        for profile in [Profile::Copter357, Profile::Copter462] {
            let name = format!("{profile:?}");
            let mut world = world(coordination.clone(), profile, &square(), &stated());
            fly_until(&mut world, |w| w.status(0).reached >= Some(0));
            let begun = world.now();
            let (slow_m_s, _) = watch(&mut world, 1);
            assert!((3.2..4.6).contains(&slow_m_s), "{name}: {slow_m_s} m/s, stated 4");
            // 100 m at 4 m/s and 20 s there.
            let took_s = world.now().since(begun).as_secs_f64();
            assert!((42.0..60.0).contains(&took_s), "{name}: {took_s} s");
            let (fast_m_s, yaws) = watch(&mut world, 2);
            assert!((6.0..8.8).contains(&fast_m_s), "{name}: {fast_m_s} m/s, stated 8");
            let south = yaws.iter().filter(|yaw| (170.0..190.0).contains(*yaw)).count();
            assert!(2 * south > yaws.len(), "{name}: {south} of {} reports look south", yaws.len());
            fly_until(&mut world, is_down);
            let status = world.status(0);
            assert_eq!(status.state, StateId::Finished, "{name}");
            // Waypoints, the climb to the height of the autopilot's own returns (15 m), and the way home.
            // 4.x counts the last one as reached later than the aircraft stands there, which lands it.
            assert!(status.route_len == 6 && status.reached >= Some(4), "{name}: {:?}", status.reached);
            let home_m = world.place(0).truncate().length();
            assert!(home_m < 2.0, "{name}: landed {home_m:.1} m from home");
        }
    }
}

#[test]
fn a_mission_lands_where_it_states_and_takes_off_as_high_as_it_states() {
    let me = VehicleId(1);
    let end = RouteEnd::LandAt(point(40.0, 30.0));
    let mut extras = MissionExtras::default();
    (extras.end, extras.take_off_mm) = (end, 6_000);
    let corners = [point(0.0, 0.0), point(0.0, 60.0), point(30.0, 60.0)];
    let sweep = sweep::Config::new(me, 0, 1);
    for (coordination, route) in
        [(mission::Config::new(me).into(), &square()[..]), (Coordination::from(sweep), &corners)]
    {
        let mut world = world(coordination, Profile::Copter357, route, &extras);
        fly_until(&mut world, is_down);
        assert_eq!(world.status(0).state, StateId::Finished);
        let off_m = world.place(0).truncate().distance(DVec2::new(40.0, 30.0));
        assert!(off_m < 2.0, "landed {off_m:.1} m from where the mission lands");
    }
}

/// Holds and yaws at the corners of an area are none of its lanes'.
#[test]
fn a_sweep_refuses_a_hold_at_a_corner_of_its_area() {
    let corners = [point(0.0, 0.0), point(0.0, 60.0), point(30.0, 60.0)];
    let config = Config::new(Coordination::from(sweep::Config::new(VehicleId(1), 0, 1)));
    let agent = Agent::new(config, 7, Instant::ZERO).unwrap();
    let controller = ControllerConfig { boot: Boot::Warm, ..ControllerConfig::new(1, ORIGIN) };
    let vehicles = vec![(agent, FlightController::new(controller, 7, Instant::ZERO))];
    let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, 7, 1);
    let mut world = World::new(ORIGIN, vehicles, channel, 5.0);
    let Reply::Refused(why) = world.mission_with(0, &corners, &stated()) else { panic!("taken") };
    assert!(why.to_string().contains("area, corner 1"), "{why}");
}

/// AUTO that is entered again takes its speed from a parameter: the speed of the leg is commanded again.
#[test]
fn a_flight_that_is_held_and_resumed_keeps_the_speed_of_its_leg() {
    for profile in [Profile::Copter357, Profile::Copter462] {
        let mut extras = MissionExtras::default();
        extras.push(LegExtras { speed_cm_s: 300, ..LegExtras::none(1) }).unwrap();
        let mut world = world(mission::Config::new(VehicleId(1)).into(), profile, &square(), &extras);
        fly_until(&mut world, |w| w.status(0).reached >= Some(0));
        world.run_until(world.now() + Duration::from_secs(5));
        assert_eq!(world.command(0, "hold", Command::Hold), Reply::Accepted);
        world.run_until(world.now() + Duration::from_secs(8));
        assert_eq!(world.command(0, "resume", Command::Resume), Reply::Accepted);
        // The mode is asked for, and then the speed.
        world.run_until(world.now() + Duration::from_secs(6));
        let (most_m_s, _) = watch(&mut world, 1);
        assert!(most_m_s < 3.5, "{profile:?}: {most_m_s} m/s, stated 3");
    }
}
