//! Mission through all layers: agent, MAVLink bytes, simulated flight controller; and the operator's commands in
//! each of its states in the air.

use wingbeat_agent::energy::Reserve;
use wingbeat_agent::{
    Agent, Command, CompanionLoss, Config, Coordination, Phase, Rejection, Reply, Stage, StateId,
};
use wingbeat_autopilot::codec::{MavHeader, encode_v2};
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::dialect::{
    COMMAND_LONG_DATA, MISSION_COUNT_DATA, MISSION_ITEM_INT_DATA, MavCmd, MavFrame, MavMessage,
};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::{ROUTE_MAX, mbcap, mission};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::{Direction, Fault};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// One aircraft over 150 m around a corner.
fn world(seed: u64) -> World {
    let legs = [DVec2::ZERO, DVec2::new(0.0, 100.0), DVec2::new(50.0, 100.0)];
    world_of(mission::Config::new(VehicleId(1)).into(), &legs, seed)
}

/// One aircraft over these waypoints, metres east and north, with a battery that outlasts every flight.
fn world_of(coordination: Coordination, waypoints: &[DVec2], seed: u64) -> World {
    world_with(coordination, waypoints, seed, 100_000.0, Reserve::default())
}

fn world_with(
    coordination: Coordination,
    waypoints: &[DVec2],
    seed: u64,
    battery_mah: f64,
    reserve: Reserve,
) -> World {
    world_monitored(coordination, waypoints, seed, (battery_mah, reserve), &[])
}

/// The same with these parameters of the flight controller.
fn world_monitored(
    coordination: Coordination,
    waypoints: &[DVec2],
    seed: u64,
    (battery_mah, reserve): (f64, Reserve),
    parameters: &[(Parameter, f32)],
) -> World {
    let frame = Frame::new(ORIGIN);
    let mut config = Config::new(coordination);
    (config.companion_loss, config.energy) = (CompanionLoss::EndsWithIt, Some(reserve));
    let agent = Agent::new(config, seed, Instant::ZERO).unwrap();
    let mut controller = ControllerConfig::new(1, ORIGIN);
    (controller.boot, controller.gps_noise_m) = (Boot::Warm, 0.3);
    controller.battery.capacity_mah = battery_mah;
    controller.parameters.extend_from_slice(parameters);
    let vehicles = vec![(agent, FlightController::new(controller, seed, Instant::ZERO))];
    let mut world =
        World::new(ORIGIN, vehicles, Channel::new(Model::Ieee80211a, Draw::PerPacket, seed, 1), 5.0);
    let point = |at: &DVec2| {
        let position = frame.to_position(at.extend(0.0));
        Point { latitude_e7: position.latitude_e7, longitude_e7: position.longitude_e7, height_mm: 10_000 }
    };
    let route: Vec<Point> = waypoints.iter().map(point).collect();
    assert_eq!(world.mission(0, &route), Reply::Accepted);
    world
}

/// Presses *Setup* and *Start*, until `enough` or an hour.
fn fly_until(world: &mut World, enough: impl Fn(&World) -> bool) {
    while world.now() < Instant::from_secs(3_600) && !enough(world) {
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

#[test]
fn a_mission_is_flown_and_ends_on_the_ground() {
    let mut world = world(1);
    fly_until(&mut world, is_down);
    assert_eq!((world.status(0).state, world.status(0).reached), (StateId::Finished, Some(2)));
    let figures = world.observer().aircraft()[0];
    assert!(figures.completed && (145.0..175.0).contains(&figures.distance_m), "{figures:?}");
}

/// AUTO takes its speed from a parameter that the flight controller keeps when it is switched off.
#[test]
fn the_pilots_speed_is_overridden_for_the_route_and_restored_after_the_flight() {
    let legs = [DVec2::ZERO, DVec2::new(0.0, 100.0), DVec2::new(50.0, 100.0)];
    let me = VehicleId(1);
    let of: [Coordination; 2] = [
        mission::Config { planned_speed_m_s: 8.0, ..mission::Config::new(me) }.into(),
        mbcap::Config { me, planned_speed_m_s: 8.0, ..mbcap::Config::mbcap_e() }.into(),
    ];
    for coordination in of {
        let mut world = world_of(coordination, &legs, 1);
        let speed_cm_s = |world: &mut World| world.controller(0).parameter(Parameter::WPNAV_SPEED).unwrap();
        let pilots = speed_cm_s(&mut world);
        assert_ne!(pilots, 800.0);
        fly_until(&mut world, |w| w.status(0).reached >= Some(1));
        assert_eq!(speed_cm_s(&mut world), 800.0);
        let owed = world.agent_of(0).owed();
        assert_eq!((owed.len(), owed[0].name.as_str()), (1, "WPNAV_SPEED"));
        fly_until(&mut world, is_down);
        world.run_until(world.now() + Duration::from_secs(3));
        assert_eq!(speed_cm_s(&mut world), pilots);
        assert!(world.agent_of(0).owed().is_empty());
        let checks = world.status(0).checks;
        assert!(checks.iter().any(|check| check.name == "route speed" && check.passed), "{checks:?}");
        for line in ["flies at 8 m/s; the pilot's WPNAV_SPEED 500", "the pilot's WPNAV_SPEED 500 restored"] {
            assert!(world.log().iter().any(|l| l.entry.text == line), "{line}");
        }
    }
}

/// The report of a reached waypoint comes once. That of the item which the flight controller flies to is repeated.
#[test]
fn a_waypoint_that_was_reached_while_the_line_was_cut_is_known_when_it_is_whole_again() {
    let reaches = |world: &mut World, waypoint| {
        fly_until(world, |w| w.status(0).reached >= Some(waypoint));
        world.now()
    };
    let mut whole = world(1);
    let (second_at, last_at) = (reaches(&mut whole, 1), reaches(&mut whole, 2));
    let mut cut = world(1);
    fly_until(&mut cut, |w| w.now() + Duration::from_secs(2) >= second_at);
    let until = second_at + Duration::from_secs(3);
    let fault = Fault::SerialLine { vehicle: 0, lost: Direction::Received, flaps: Duration::ZERO, until };
    cut.inflict(cut.now(), fault);
    cut.run_until(until);
    assert_eq!(cut.status(0).reached, Some(0));
    cut.run_until(until + Duration::from_secs(2));
    assert_eq!(cut.status(0).reached, Some(1));
    assert!(cut.now() < last_at, "it flies to the last one");
    fly_until(&mut cut, is_down);
    assert_eq!((cut.status(0).state, cut.status(0).reached), (StateId::Finished, Some(2)));
}

/// 20 lanes of 30 waypoints each, 12 m apart, there and back: 7.2 km.
#[test]
fn a_route_of_600_waypoints_is_loaded_and_flown_to_its_end() {
    let waypoints: Vec<DVec2> = (0..ROUTE_MAX)
        .map(|i| {
            let (lane, step) = (i / 30, i % 30);
            let along = if lane % 2 == 0 { step } else { 29 - step };
            DVec2::new(12.0 * lane as f64, 12.0 * along as f64)
        })
        .collect();
    let mbcap = mbcap::Config { me: VehicleId(1), ..mbcap::Config::mbcap_e() };
    for coordination in [Coordination::from(mission::Config::new(VehicleId(1))), mbcap.into()] {
        let mut world = world_of(coordination, &waypoints, 1);
        fly_until(&mut world, is_down);
        let status = world.status(0);
        assert_eq!((status.state, status.reached), (StateId::Finished, Some(599)), "{}", status.protocol);
        let figures = world.observer().aircraft()[0];
        assert!(figures.completed && (6_500.0..7_500.0).contains(&figures.distance_m), "{figures:?}");
    }
}

#[test]
fn the_operator_is_obeyed_from_the_first_propeller_to_the_last() {
    let commands = [(Command::Hold, Mode::Brake), (Command::Return, Mode::Rtl), (Command::Land, Mode::Land)];
    for state in [StateId::TakingOff, StateId::Flying, StateId::Landing] {
        for (command, mode) in commands {
            let mut world = world(2);
            // Well into it, so that there is something to end.
            fly_until(&mut world, |w| {
                let s = w.status(0);
                s.state == state && s.flight_controller.armed
            });
            world.run_until(world.now() + Duration::from_secs(1));
            assert_eq!(world.command(0, "end", command), Reply::Accepted, "{state}");
            world.run_until(world.now() + Duration::from_secs(3));
            let status = world.status(0);
            assert_eq!(status.state, StateId::Aborted, "{state}, {command:?}");
            assert_eq!(status.flight_controller.mode_number, Some(mode.number()), "{state}, {command:?}");
            if command == Command::Hold {
                let height_m = world.status(0).navigation.unwrap().height_m;
                world.run_until(world.now() + Duration::from_secs(20));
                let later_m = world.status(0).navigation.unwrap().height_m;
                assert!((later_m - height_m).abs() < 1.0, "{state}: {height_m} m, then {later_m} m");
                // Stopped before its skids had left the ground it has disarmed itself meanwhile.
                let reply = world.command(0, "down", Command::Land);
                assert_eq!(reply == Reply::Accepted, !is_down(&world), "{state}: {reply:?}");
            }
            world.run_until(world.now() + Duration::from_secs(120));
            assert!(is_down(&world), "{state}, {command:?}");
        }
    }
}

/// Nothing that the protocol asked for may start the motors after the operator aborted.
#[test]
fn an_aircraft_stopped_between_start_and_arming_does_not_take_off() {
    let mut world = world(3);
    fly_until(&mut world, |w| w.status(0).state == StateId::TakingOff);
    assert!(!world.status(0).flight_controller.armed);
    assert_eq!(world.command(0, "no", Command::Land), Reply::Accepted);
    world.run_until(world.now() + Duration::from_secs(60));
    let figures = world.observer().aircraft()[0];
    assert!(is_down(&world) && figures.flight_time_s < 20.0 && figures.distance_m < 1.0, "{figures:?}");
}

/// Ten minutes of battery, and a mission of four kilometres out: it turns back in time and stands at home with its reserve.
#[test]
fn an_aircraft_whose_battery_does_not_last_returns_in_time() {
    let out = [DVec2::ZERO, DVec2::new(0.0, 4_000.0)];
    for coordination in [
        Coordination::from(mission::Config::new(VehicleId(1))),
        mbcap::Config { me: VehicleId(1), ..mbcap::Config::mbcap_e() }.into(),
    ] {
        let mut world = world_with(coordination, &out, 4, 3_300.0, Reserve::default());
        fly_until(&mut world, is_down);
        let status = world.status(0);
        assert_eq!(status.state, StateId::Aborted);
        let far_m = Frame::new(ORIGIN).to_local(world.truth(0).position).truncate().length();
        assert!(far_m < 5.0, "{far_m} m from home");
        let percent = status.measured.battery.unwrap().remaining_percent.unwrap();
        assert!((20..60).contains(&percent), "{percent} %");
        assert!(world.log().iter().any(|l| l.entry.text.starts_with("battery: ")), "{:?}", world.log());
    }
}

/// Held by the operator and forgotten.
#[test]
fn an_aircraft_that_holds_returns_before_its_battery_is_empty() {
    let legs = [DVec2::ZERO, DVec2::new(0.0, 100.0)];
    let mission = mission::Config::new(VehicleId(1)).into();
    let mut world = world_with(mission, &legs, 4, 1_500.0, Reserve::default());
    fly_until(&mut world, |w| w.status(0).state == StateId::Flying);
    assert_eq!(world.command(0, "hold", Command::Hold), Reply::Accepted);
    while !is_down(&world) {
        world.run_until(world.now() + Duration::from_secs(1));
        assert!(world.now() < Instant::from_secs(1_000), "{:?}", world.log());
    }
    let percent = world.status(0).measured.battery.unwrap().remaining_percent.unwrap();
    assert!((15..40).contains(&percent), "{percent} %");
}

#[test]
fn a_mission_that_is_longer_than_the_battery_lasts_is_refused_on_the_ground() {
    let out = [DVec2::ZERO, DVec2::new(0.0, 4_000.0)];
    let mission: Coordination = mission::Config::new(VehicleId(1)).into();
    for (endurance_s, refused) in [(500, true), (700, false)] {
        let reserve = Reserve { endurance: Some(Duration::from_secs(endurance_s)), ..Reserve::default() };
        let mut world = world_with(mission.clone(), &out, 4, 10_000.0, reserve);
        world.run_until(Instant::from_secs(12));
        match world.command(0, "setup", Command::Setup) {
            Reply::Refused(Rejection::Check { name: "battery", detail }) => {
                assert!(refused && detail.contains("s, the flight takes"), "{detail}");
            }
            reply => assert!(!refused && reply == Reply::Accepted, "{reply:?}"),
        }
    }
}

/// Four cells, a monitor of the voltage alone, and a mission of four kilometres out.
fn by_voltage(coordination: Coordination, reserve: Reserve) -> World {
    let out = [DVec2::ZERO, DVec2::new(0.0, 4_000.0)];
    world_monitored(coordination, &out, 4, (3_300.0, reserve), &[(Parameter::BATT_MONITOR, 3.0)])
}

/// When a line was logged that begins so, seconds; and the line.
fn logged(world: &World, begins: &str) -> Vec<(f64, String)> {
    let lines = world.log().iter().filter(|line| line.entry.text.starts_with(begins));
    lines.map(|line| (line.at.as_secs_f64(), line.entry.text.to_string())).collect()
}

/// No charge is estimated: it returns once its voltage has been below for ten seconds, and not for the dip of its climb.
#[test]
fn an_aircraft_without_an_estimate_of_its_charge_returns_by_its_voltage() {
    for coordination in [
        Coordination::from(mission::Config::new(VehicleId(1))),
        mbcap::Config { me: VehicleId(1), ..mbcap::Config::mbcap_e() }.into(),
    ] {
        let reserve = Reserve { return_below_mv: 15_000, land_below_mv: 13_000, ..Reserve::default() };
        let mut world = by_voltage(coordination, reserve);
        let mut below_since = None;
        while !is_down(&world) && world.now() < Instant::from_secs(3_600) {
            let before = world.now();
            fly_until(&mut world, |w| w.now() > before);
            let status = world.status(0);
            let Some(battery) = status.measured.battery else { continue };
            assert_eq!((battery.remaining_percent, battery.current_a), (None, None));
            let is_low = battery.voltage_v < 15.0 && status.phase == Phase::Moving;
            below_since = is_low.then(|| below_since.unwrap_or(world.now().as_secs_f64())).or(
                // The flight has ended: what began it stays.
                below_since.filter(|_| status.phase == Phase::Aborted),
            );
        }
        let returns = logged(&world, "battery: ");
        let [(at_s, line)] = &returns[..] else { panic!("{returns:?}") };
        assert!(line.ends_with("below 15.00 V for 10 s: return"), "{line}");
        let waited_s = at_s - below_since.expect("it was low");
        assert!((9.7..11.5).contains(&waited_s), "{waited_s} s below, then {line}");
        let far_m = Frame::new(ORIGIN).to_local(world.truth(0).position).truncate().length();
        assert!(far_m < 5.0 && world.status(0).state == StateId::Aborted, "{far_m} m from home");
    }
}

/// Where the way home is longer than the battery lasts it lands on it, and not only where it would return.
#[test]
fn an_aircraft_whose_voltage_falls_on_its_way_home_lands_there() {
    let reserve = Reserve { return_below_mv: 15_000, land_below_mv: 14_800, ..Reserve::default() };
    let mut world = by_voltage(mission::Config::new(VehicleId(1)).into(), reserve);
    fly_until(&mut world, is_down);
    let ends = logged(&world, "battery: ");
    let [(returns_s, first), (lands_s, second)] = &ends[..] else { panic!("{ends:?}") };
    assert!(first.ends_with("below 15.00 V for 10 s: return"), "{first}");
    assert!(second.ends_with("below 14.80 V for 10 s: land"), "{second}");
    assert!(lands_s > returns_s, "{returns_s} s, then {lands_s} s");
    let far_m = Frame::new(ORIGIN).to_local(world.truth(0).position).truncate().length();
    assert!(far_m > 100.0, "{far_m} m from home");
}

/// The operator decides: *Hold* is kept for as long as a voltage must be low, and no longer.
#[test]
fn one_that_is_held_by_the_operator_lands_ten_seconds_later() {
    let reserve = Reserve { return_below_mv: 15_000, below_for_s: 15, ..Reserve::default() };
    let mut world = by_voltage(mission::Config::new(VehicleId(1)).into(), reserve);
    fly_until(&mut world, |w| !logged(w, "battery: ").is_empty());
    world.run_until(world.now() + Duration::from_secs(5));
    assert_eq!(world.command(0, "hold", Command::Hold), Reply::Accepted);
    let held_s = world.now().as_secs_f64();
    while logged(&world, "battery: ").len() < 2 {
        world.run_until(world.now() + Duration::from_secs(1));
        assert!(world.now().as_secs_f64() < held_s + 60.0, "{:?}", world.log());
    }
    let (at_s, line) = logged(&world, "battery: ").remove(1);
    assert!(line.ends_with("below 15.00 V for 15 s: land"), "{line}");
    assert!((14.8..19.0).contains(&(at_s - held_s)), "{held_s} s, then {at_s} s");
}

#[test]
fn a_voltage_for_another_battery_is_refused_on_the_ground() {
    for (reserve, found) in [
        (
            Reserve { return_below_mv: 22_000, ..Reserve::default() },
            "return_below_v, 22.00 V, before the flight",
        ),
        (Reserve { land_below_mv: 20_000, ..Reserve::default() }, "land_below_v, 20.00 V, before the flight"),
    ] {
        let mut world = by_voltage(mission::Config::new(VehicleId(1)).into(), reserve);
        world.run_until(Instant::from_secs(12));
        let reply = world.command(0, "setup", Command::Setup);
        let Reply::Refused(Rejection::Check { name: "battery", detail }) = &reply else {
            panic!("{reply:?}")
        };
        assert!(detail.starts_with("found 16.") && detail.ends_with(found), "{detail}");
    }
    let reserve = Reserve { return_below_mv: 14_000, land_below_mv: 13_400, ..Reserve::default() };
    let mut world = by_voltage(mission::Config::new(VehicleId(1)).into(), reserve);
    world.run_until(Instant::from_secs(12));
    let checks = world.status(0).checks;
    let battery = checks.iter().find(|check| check.name == "battery").expect("it is checked");
    let says = "V, charge not estimated; returns below 14.00 V, lands below 13.40 V";
    assert!(battery.passed && battery.detail.ends_with(says), "{battery:?}");
}

/// Of a ground station, or a pilot, on another line.
fn receive(world: &mut World, message: &MavMessage) {
    let header = MavHeader { system_id: 255, component_id: 190, sequence: 0 };
    let mut bytes = heapless::Vec::<u8, 300>::new();
    encode_v2(header, message, &mut bytes).unwrap();
    world.controller(0).receive(&bytes);
    world.run_until(world.now() + Duration::from_millis(300));
}

/// An upload of a mission of one item.
fn upload_another(world: &mut World) {
    let (target_system, target_component) = (1, 1);
    let count = MavMessage::MISSION_COUNT(MISSION_COUNT_DATA {
        count: 1,
        target_system,
        target_component,
        ..MISSION_COUNT_DATA::default()
    });
    let item = MavMessage::MISSION_ITEM_INT(MISSION_ITEM_INT_DATA {
        target_system,
        target_component,
        command: MavCmd::MAV_CMD_NAV_WAYPOINT,
        frame: MavFrame::MAV_FRAME_GLOBAL_RELATIVE_ALT,
        ..MISSION_ITEM_INT_DATA::default()
    });
    receive(world, &count);
    receive(world, &item);
}

/// What *Start* flies is what the flight controller holds then, not what it held at *Setup*.
#[test]
fn a_mission_that_another_has_replaced_is_not_started() {
    let mut world = world(5);
    world.run_until(Instant::from_secs(13));
    assert_eq!(world.command(0, "setup", Command::Setup), Reply::Accepted);
    world.run_until(Instant::from_secs(16));
    assert_eq!(world.phase(0), Phase::Ready);
    upload_another(&mut world);
    assert_eq!(world.command(0, "start", Command::Start), Reply::Accepted);
    world.run_until(world.now() + Duration::from_secs(20));
    let status = world.status(0);
    assert!(!status.flight_controller.armed && status.phase == Phase::Ready, "{:?}", world.log());
    let names_it = world.log().iter().any(|l| l.entry.text.contains("beginning the route: "));
    assert!(names_it, "{:?}", world.log());
    assert_eq!(status.commands.last().unwrap().stage, Stage::Failed);
}

/// *Hold* is no end where an aircraft flies for itself: *Resume* goes on to the waypoint that is next, and to the end.
#[test]
fn a_held_mission_is_resumed_and_completed() {
    let legs = [DVec2::ZERO, DVec2::new(0.0, 60.0), DVec2::new(60.0, 60.0)];
    for coordination in [
        Coordination::from(mission::Config::new(VehicleId(1))),
        mbcap::Config { me: VehicleId(1), ..mbcap::Config::mbcap_e() }.into(),
    ] {
        let mut world = world_of(coordination, &legs, 6);
        fly_until(&mut world, |w| w.status(0).reached == Some(0) && w.phase(0) == Phase::Moving);
        assert!(!world.status(0).can_resume);
        assert_eq!(world.command(0, "hold", Command::Hold), Reply::Accepted);
        world.run_until(world.now() + Duration::from_secs(20));
        assert!(world.status(0).can_resume && world.phase(0) == Phase::Aborted);
        assert_eq!(world.command(0, "resume", Command::Resume), Reply::Accepted);
        world.run_until(world.now() + Duration::from_secs(3));
        assert_eq!(world.status(0).commands.last().unwrap().stage, Stage::EffectSeen);
        fly_until(&mut world, is_down);
        assert_eq!((world.status(0).state, world.status(0).reached), (StateId::Finished, Some(2)));
    }
}

/// Waiting is bounded, also where the autopilot estimates no charge.
#[test]
fn an_aircraft_that_is_forgotten_in_flight_returns_after_its_wait() {
    let reserve = Reserve { wait: Duration::from_secs(180), ..Reserve::default() };
    let legs = [DVec2::ZERO, DVec2::new(0.0, 100.0)];
    let mut world = world_with(mission::Config::new(VehicleId(1)).into(), &legs, 4, 100_000.0, reserve);
    fly_until(&mut world, |w| w.status(0).state == StateId::Flying);
    assert_eq!(world.command(0, "hold", Command::Hold), Reply::Accepted);
    let since = world.now();
    while !is_down(&world) {
        world.run_until(world.now() + Duration::from_secs(1));
        assert!(world.now() < since + Duration::from_secs(400), "{:?}", world.log());
    }
    assert!(world.now() > since + Duration::from_secs(180));
    assert!(world.log().iter().any(|l| l.entry.text.contains("waited in flight for 180 s: return")));
}

/// While the mission is read back the motors are not started by us: an arming then is the pilot's.
#[test]
fn a_pilot_who_arms_while_the_mission_is_read_back_keeps_the_aircraft() {
    let mut world = world(5);
    world.run_until(Instant::from_secs(13));
    assert_eq!(world.command(0, "setup", Command::Setup), Reply::Accepted);
    world.run_until(Instant::from_secs(16));
    // Nothing that is sent arrives: the mission is asked for, again and again.
    let until = world.now() + Duration::from_secs(6);
    let cut = Fault::SerialLine { vehicle: 0, lost: Direction::Sent, flaps: Duration::ZERO, until };
    world.inflict(world.now(), cut);
    assert_eq!(world.command(0, "start", Command::Start), Reply::Accepted);
    world.run_until(world.now() + Duration::from_secs(2));
    let mode = world.truth(0).mode;
    receive(
        &mut world,
        &MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            command: MavCmd::MAV_CMD_COMPONENT_ARM_DISARM,
            param1: 1.0,
            target_system: 1,
            target_component: 1,
            ..COMMAND_LONG_DATA::default()
        }),
    );
    assert!(world.truth(0).armed);
    world.run_until(world.now() + Duration::from_secs(8));
    assert!(!world.status(0).engaged, "{:?}", world.log());
    assert_eq!(world.truth(0).mode, mode);
}

/// A heartbeat names the mode and not who set it; the switch shows him who chooses the mode that was ordered.
#[test]
fn a_pilot_who_switches_to_the_mode_of_our_order_has_the_aircraft() {
    let mut world = world(6);
    fly_until(&mut world, |w| w.status(0).reached == Some(0) && w.phase(0) == Phase::Moving);
    assert!(world.controller(0).set_mode_by_pilot(Mode::Auto));
    world.run_until(world.now() + Duration::from_millis(1_100));
    assert!(!world.status(0).engaged, "{:?}", world.log());
    assert!(world.log().iter().any(|logged| logged.entry.text.contains("the mode switch was moved")));
    let refused = world.command(0, "land", Command::Land);
    assert!(matches!(refused, Reply::Refused(Rejection::Disengaged(_))), "{refused:?}");
    world.run_until(world.now() + Duration::from_secs(8));
    assert_eq!(world.truth(0).mode, Mode::Auto);
}

/// A pilot may have flown it anywhere meanwhile.
#[test]
fn a_mission_is_not_resumed_after_another_has_flown_the_aircraft() {
    let mut world = world(6);
    fly_until(&mut world, |w| w.status(0).reached == Some(0) && w.phase(0) == Phase::Moving);
    assert!(world.controller(0).take_by_pilot(Mode::Loiter));
    world.run_until(world.now() + Duration::from_secs(5));
    assert!(world.controller(0).set_mode_by_pilot(Mode::Guided));
    world.run_until(world.now() + Duration::from_secs(3));
    assert_eq!(world.command(0, "engage", Command::Engage), Reply::Accepted);
    world.run_until(world.now() + Duration::from_secs(3));
    assert!(!world.status(0).can_resume);
    let refused = world.command(0, "resume", Command::Resume);
    assert!(matches!(refused, Reply::Refused(Rejection::Command(_))), "{refused:?}");
}
