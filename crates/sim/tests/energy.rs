//! SAFE-08: a flight ends while the battery still carries the aircraft down, whatever speed it flies with and however the wind
//! blows. Each aircraft touches down slowly and with charge left, at home where the battery carries it there.

use crate::common::row::{self, Row};

use wingbeat_agent::energy::Reserve;
use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Rejection, Reply};
use wingbeat_autopilot::copter::Mode;
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::mission;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, Parameter};
use wingbeat_sim::motion::{Profile, WindParameters};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };

/// One aircraft that flies a straight line to the north and back.
#[derive(Clone, Copy)]
struct Flight<'a> {
    profile: Profile,
    speed_m_s: f64,
    out_m: f64,
    height_m: f64,
    battery_mah: f64,
    /// Wind in metres per second, and where it comes from in degrees.
    wind: (f64, f64),
    parameters: &'a [(Parameter, f32)],
    reserve: Reserve,
    seed: u64,
}

const CALM: Flight<'_> = Flight {
    profile: Profile::Copter462,
    speed_m_s: 10.0,
    out_m: 2_000.0,
    height_m: 20.0,
    battery_mah: 5_000.0,
    wind: (0.0, 0.0),
    parameters: &[],
    reserve: Reserve {
        reserve_percent: 20,
        below_for_s: 10,
        return_below_mv: 0,
        land_below_mv: 0,
        endurance: None,
        wait: Duration::from_secs(600),
        cruise_m_s: 5.0,
        wind_m_s: None,
        airspeed_m_s: None,
        other_batteries: 0,
    },
    seed: 7_400_001,
};

fn weather((speed_m_s, from_deg): (f64, f64)) -> WindParameters {
    WindParameters {
        speed_m_s,
        direction_rad: f64::to_radians(from_deg),
        gust_deviation_m_s: speed_m_s / 4.0,
        gust_time_constant_s: 5.0,
        gust_length_m: 100.0,
    }
}

/// How an aircraft came down.
#[derive(Debug)]
struct Down {
    touchdown_m_s: f64,
    percent: f64,
    far_m: f64,
    lines: Vec<String>,
}

impl Down {
    fn says(&self, words: &str) -> bool {
        self.lines.iter().any(|line| line.contains(words))
    }

    fn is_soft_with_charge(&self) -> bool {
        self.touchdown_m_s < 2.0 && self.percent > 0.0
    }
}

impl Flight<'_> {
    fn world(&self) -> World {
        let mission =
            mission::Config { planned_speed_m_s: self.speed_m_s, ..mission::Config::new(VehicleId(1)) };
        let mut config = Config::new(mission);
        (config.companion_loss, config.energy) = (CompanionLoss::EndsWithIt, Some(self.reserve));
        let agent = Agent::new(config, self.seed, Instant::ZERO).unwrap();
        let mut controller = ControllerConfig::new(1, ORIGIN);
        (controller.boot, controller.gps_noise_m) = (Boot::Warm, 0.3);
        (controller.profile, controller.wind) = (self.profile, weather(self.wind));
        controller.battery.capacity_mah = self.battery_mah;
        controller.parameters.extend_from_slice(self.parameters);
        let vehicles = vec![(agent, FlightController::new(controller, self.seed, Instant::ZERO))];
        let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, self.seed, 1);
        let mut world = World::new(ORIGIN, vehicles, channel, 5.0);
        let at = |north_m: f64| {
            let place = Frame::new(ORIGIN).to_position(DVec2::new(0.0, north_m).extend(0.0));
            let height_mm = (self.height_m * 1e3) as i32;
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm }
        };
        assert_eq!(world.mission(0, &[at(0.0), at(self.out_m), at(0.0)]), Reply::Accepted);
        world
    }

    /// Flies; `step` acts in each second of it.
    fn fly(&self, mut step: impl FnMut(&mut World)) -> Down {
        let mut world = self.world();
        let is_down = |world: &World| {
            let status = world.status(0);
            !status.flight_controller.armed && matches!(status.phase, Phase::Finished | Phase::Aborted)
        };
        while !is_down(&world) {
            assert!(world.now() < Instant::from_secs(3_600), "{:?}", world.log());
            world.run_until(world.now() + Duration::from_secs(1));
            let id = format!("{}", world.now().as_millis());
            match world.phase(0) {
                Phase::Start => drop(world.command(0, &id, Command::Setup)),
                Phase::Ready => assert_eq!(world.command(0, &id, Command::Start), Reply::Accepted),
                _ => {}
            }
            step(&mut world);
        }
        down(&world, 0)
    }
}

fn down(world: &World, vehicle: usize) -> Down {
    let truth = world.truth(vehicle);
    let battery = world.status(vehicle).measured.battery;
    let lines = world.log().iter().filter(|line| line.vehicle == vehicle);
    let found = Down {
        touchdown_m_s: truth.touchdown_m_s,
        percent: battery.and_then(|battery| battery.remaining_percent).map_or(0.0, f64::from),
        far_m: far_m(world, vehicle),
        lines: lines.map(|line| line.entry.text.to_string()).collect(),
    };
    println!(
        "aircraft {vehicle}: {:.2} m/s, {} %, {:.0} m from the origin, {:?}",
        found.touchdown_m_s,
        found.percent,
        found.far_m,
        found.lines.iter().filter(|line| line.contains("battery")).collect::<Vec<_>>()
    );
    found
}

/// From the origin over the ground, in truth.
fn far_m(world: &World, vehicle: usize) -> f64 {
    Frame::new(ORIGIN).to_local(world.truth(vehicle).position).truncate().length()
}

fn north_m(world: &World) -> f64 {
    Frame::new(ORIGIN).to_local(world.truth(0).position).y
}

/// Slower than the 5 m/s that are configured for the way home: the route's own speed is in the autopilot's parameters.
#[test]
fn safe_08_a_slow_aircraft_turns_back_in_time_for_its_own_speed() {
    for (profile, speed_m_s) in [
        (Profile::Copter357, 2.0),
        (Profile::Copter357, 3.0),
        (Profile::Copter462, 2.0),
        (Profile::Copter462, 3.0),
    ] {
        let flight = Flight { profile, speed_m_s, out_m: 900.0, battery_mah: 3_000.0, ..CALM };
        let down = flight.fly(|_| {});
        assert!(
            down.is_soft_with_charge() && down.percent >= 15.0 && down.far_m < 5.0,
            "{speed_m_s}: {down:?}"
        );
        assert!(down.says("s to be down: return"), "{down:?}");
    }
}

#[test]
fn safe_08_the_return_has_a_speed_of_its_own() {
    let slow = [(Parameter::RTL_SPEED, 200.0)];
    let down = Flight { out_m: 3_000.0, battery_mah: 3_000.0, parameters: &slow, ..CALM }.fly(|_| {});
    assert!(down.is_soft_with_charge() && down.percent >= 15.0 && down.far_m < 5.0, "{down:?}");
}

#[test]
fn safe_08_a_slow_descent_is_part_of_the_way_home() {
    let slow = [(Parameter::LAND_SPEED, 30.0), (Parameter::WPNAV_SPEED_DN, 40.0)];
    let flight = Flight { out_m: 3_000.0, height_m: 60.0, battery_mah: 3_000.0, parameters: &slow, ..CALM };
    let down = flight.fly(|_| {});
    assert!(down.is_soft_with_charge() && down.percent >= 15.0 && down.far_m < 5.0, "{down:?}");
}

/// 4.x reports the wind: with the wind out, and against it home.
#[test]
fn safe_08_the_way_home_leads_against_the_wind() {
    for (wind_m_s, seed) in [(7.0, 7_400_002), (7.5, 7_400_003), (8.0, 7_400_004)] {
        let down = Flight { wind: (wind_m_s, 180.0), seed, ..CALM }.fly(|_| {});
        assert!(down.is_soft_with_charge(), "{wind_m_s}: {down:?}");
        assert!(down.far_m < 5.0 && !down.says("lands here"), "{wind_m_s}: {down:?}");
    }
}

/// Once it flies home the wind rises above what it flies through the air with, whoever sent it home.
#[test]
fn safe_08_a_return_that_no_longer_comes_home_lands_with_charge_left() {
    let radio = [(Parameter::FS_THR_ENABLE, 1.0)];
    for (who, seed) in [("battery", 7_400_005), ("operator", 7_400_006), ("failsafe", 7_400_007)] {
        let flight = Flight { wind: (5.0, 180.0), battery_mah: 3_000.0, parameters: &radio, seed, ..CALM };
        let (mut rises_at, mut is_sent) = (None, false);
        let down = flight.fly(|world| {
            let returns = world.truth(0).mode == Mode::Rtl;
            if north_m(world) > 500.0 && !core::mem::replace(&mut is_sent, true) {
                match who {
                    "operator" => assert_eq!(world.command(0, "home", Command::Return), Reply::Accepted),
                    "failsafe" => {
                        let fault = Fault::TransmitterLost { vehicle: 0, until: Instant::NEVER };
                        world.inflict(world.now(), fault);
                    }
                    _ => {}
                }
            }
            if returns && rises_at.is_none() {
                rises_at = Some(world.now());
                world.controller(0).set_wind(weather((10.5, 180.0)), seed);
            }
        });
        assert!(rises_at.is_some() && down.is_soft_with_charge(), "{who}: {down:?}");
        assert!(down.far_m > 50.0 && down.says("lands here"), "{who}: {down:?}");
        assert_eq!(down.says("of a failsafe's return"), who == "failsafe", "{who}: {down:?}");
    }
}

/// Out against the wind, so that the way home looks short; then it turns.
#[test]
fn safe_08_a_wind_that_turns_on_the_way_home_does_not_empty_the_battery() {
    for seed in [7_400_008, 7_400_009] {
        let mut has_turned = false;
        let down = Flight { wind: (6.0, 0.0), battery_mah: 3_500.0, seed, ..CALM }.fly(|world| {
            if world.truth(0).mode == Mode::Rtl && !core::mem::replace(&mut has_turned, true) {
                world.controller(0).set_wind(weather((8.0, 180.0)), seed);
            }
        });
        assert!(has_turned && down.is_soft_with_charge(), "{down:?}");
    }
}

/// Without an estimate of the wind the return measures it: 3.5.7 reports none.
#[test]
fn safe_08_a_return_measures_its_own_speed_where_no_wind_is_reported() {
    for (wind_m_s, seed) in [(12.0, 7_400_010), (14.0, 7_400_011)] {
        let profile = Profile::Copter357;
        let flight = Flight { profile, wind: (wind_m_s, 180.0), battery_mah: 4_000.0, seed, ..CALM };
        let down = flight.fly(|_| {});
        assert!(down.is_soft_with_charge(), "{wind_m_s}: {down:?}");
    }
}

/// A swarm that flies its legs with 2 and 2.5 m/s.
#[test]
fn safe_08_a_slow_swarm_is_down_with_charge_left() {
    for speed_cm_s in [200.0, 250.0] {
        let parameters = [(Parameter::WPNAV_SPEED, speed_cm_s)];
        let row = Row {
            parameters: &parameters,
            battery_mah: 5_000.0,
            mission_m: &[(0.0, 0.0), (0.0, 800.0)],
            seed: 7_400_012,
            ..Row::default()
        };
        let mut world = row.fly(|world| row::all_move(world, 1), Duration::ZERO);
        while (0..row.count).any(|i| world.truth(i).armed) {
            world.run_until(world.now() + Duration::from_secs(1));
            assert!(world.now() < Instant::from_secs(1_500), "{:?}", world.log());
        }
        for i in 0..row.count {
            let down = down(&world, i);
            assert!(down.is_soft_with_charge() && down.percent >= 12.0, "{speed_cm_s}: {i}: {down:?}");
        }
        let least_m = world.observer().swarm().separation_min_m;
        assert!(least_m > 5.0, "{least_m} m");
    }
}

/// On the ground, with the number that would do.
#[test]
fn safe_08_a_route_that_is_too_long_for_its_own_speed_is_refused_with_the_charge_that_would_do() {
    // 1800 m with 2 m/s; a full battery flies 1300 s.
    let reserve = Reserve { endurance: Some(Duration::from_secs(1_300)), ..CALM.reserve };
    let flight = Flight { speed_m_s: 2.0, out_m: 900.0, battery_mah: 10_000.0, reserve, ..CALM };
    let refusal = |percent: f64| {
        let mut world = flight.world();
        world.inflict(Instant::from_secs(1), Fault::BatteryAt { vehicle: 0, percent });
        world.run_until(Instant::from_secs(12));
        match world.command(0, "setup", Command::Setup) {
            Reply::Accepted => None,
            Reply::Refused(Rejection::Check { name: "battery", detail }) => Some(detail.to_string()),
            reply => panic!("{reply:?}"),
        }
    };
    assert_eq!(refusal(100.0), None);
    let detail = refusal(80.5).expect("it lasts for 780 s");
    assert!(detail.contains("s, the flight takes 9") && detail.ends_with("% would do"), "{detail}");
    let needed: f64 = detail.split(' ').rev().nth(3).unwrap().parse().unwrap();
    assert!((90.0..100.0).contains(&needed) && refusal(needed + 1.0).is_none(), "{detail}");
}

#[test]
fn safe_08_the_operator_reads_how_long_the_battery_lasts_and_the_way_home_takes() {
    let mut seen = Vec::new();
    let down = Flight { speed_m_s: 3.0, out_m: 900.0, battery_mah: 3_000.0, ..CALM }.fly(|world| {
        let status = world.status(0);
        if status.phase == Phase::Moving
            && let Some(energy) = status.energy
            && let (Some(left), Some(needed)) = (energy.left, energy.needed)
        {
            seen.push((left.as_secs(), needed.as_secs(), energy.down.unwrap().as_secs()));
        }
    });
    assert!(down.is_soft_with_charge(), "{down:?}");
    let (first, last) = (seen.first().unwrap(), seen.last().unwrap());
    // It returns with a twentieth of the way home to spare.
    assert!(first.0 > first.1 + 100 && last.0 <= last.1 * 21 / 20 && last.1 > last.2, "{first:?} {last:?}");
}

/// The aircraft's own log says that it falls.
#[test]
fn an_empty_battery_and_motors_that_stop_in_the_air_are_logged() {
    for (fault, words) in [
        (Fault::BatteryAt { vehicle: 0, percent: 0.0 }, "the battery is empty in flight"),
        (Fault::MotorsFail { vehicle: 0 }, "falls with"),
    ] {
        let mut world = Flight { height_m: 40.0, ..CALM }.world();
        let mut is_inflicted = false;
        for s in 0..120 {
            world.run_until(world.now() + Duration::from_secs(1));
            let id = format!("{s}");
            match world.phase(0) {
                Phase::Start => drop(world.command(0, &id, Command::Setup)),
                Phase::Ready => drop(world.command(0, &id, Command::Start)),
                _ => {}
            }
            if north_m(&world) > 50.0 && !core::mem::replace(&mut is_inflicted, true) {
                world.inflict(world.now(), fault);
            }
        }
        let down = down(&world, 0);
        assert!(is_inflicted && down.touchdown_m_s > 5.0, "{down:?}");
        for words in [words, "falls with", "the fall ended"] {
            assert!(down.says(words), "{words}: {down:?}");
        }
    }
}
