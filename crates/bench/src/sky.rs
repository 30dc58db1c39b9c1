//! The crowded sky: how long the world takes to fly a hundred aircraft through MBCAP-e, through every layer, on
//! one core.
//!
//! Each aircraft flies a mission of 100 waypoints, a seeded random walk over 5 × 5 km at 10 m/s: agents, MAVLink
//! bytes both ways, beacons at 5 Hz over the 802.11a channel, the checkers ten times a second. `wingbeat bench sky`
//! flies it; `cargo xtask bench sky` writes its figures into `docs/performance.md`.
#![allow(clippy::disallowed_methods, reason = "the time that a flight takes is measured")]

use std::fs;
use std::time::Instant as Clock;

use anyhow::{Context, Result, bail};
use rand_core::Rng;
use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Phase, Reply, StateId};
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::mbcap;
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::medium::Medium;
use wingbeat_sim::rng::{self, Pcg64Mcg};
use wingbeat_sim::world::World;
use wingbeat_wire::{Point, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const HEIGHT_MM: i32 = 30_000;
const SPEED_M_S: f64 = 10.0;
/// Half of the side of the square, metres.
const HALF_M: f64 = 2_500.0;
const WAYPOINTS: usize = 100;
/// One leg, metres: a hundred of the mean length are 64 minutes.
const LEG_M: (f64, f64) = (300.0, 470.0);
/// The most that a leg turns away from the one before, radians.
const TURN_RAD: f64 = 1.5;
/// Nobody starts nearer to another, metres.
const APART_M: f64 = 60.0;
/// Far more than a flight takes: what a battery lasts is not what is measured.
const BATTERY_MAH: f64 = 100_000.0;

/// Flies it, printing a line for each minute.
///
/// # Errors
/// The flight cannot be begun, or the system does not report what this process used.
pub fn run(aircraft: usize, minutes: u64, seed: u64) -> Result<()> {
    let channel = Channel::new(Model::Ieee80211a, Draw::PerPacket, seed, aircraft);
    let mut world = world(aircraft, seed, channel)?;
    let began = Clock::now();
    start(&mut world)?;
    println!(
        "{aircraft} aircraft set up and started after {:.1} s, in {:.3} s",
        world.now().as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    for minute in 1..=minutes {
        let (before, core_s) = (world.channel_counters(), on_core_s()?);
        world.run_until(world.now() + Duration::from_secs(60));
        let after = world.channel_counters();
        let flying = (0..aircraft).filter(|&i| matches!(world.phase(i), Phase::Moving | Phase::Waiting));
        println!(
            "minute {minute:2}: {:.3} s, {} on their missions, {} beacons sent, {} received",
            on_core_s()? - core_s,
            flying.count(),
            after.sent - before.sent,
            after.delivered - before.delivered,
        );
    }
    let (wall_s, core_s) = (began.elapsed().as_secs_f64(), on_core_s()?);
    let (now_s, swarm) = (world.now().as_secs_f64(), world.observer().swarm());
    println!(
        "least separation {:.1} m, {} pairs nearer than 5 m, {} landed because of a conflict",
        swarm.separation_min_m,
        swarm.collisions.len(),
        (0..aircraft).filter(|&i| world.status(i).state == StateId::EmergencyLand).count(),
    );
    println!("trace {:016x}", world.trace_hash());
    println!(
        "sky: {core_s:.1} s of one core ({wall_s:.1} s by the clock) for {aircraft} aircraft, {minutes} minutes and the start ({now_s:.1} s flown), {} MB at \
         most, seed {seed}",
        peak_mb()?,
    );
    Ok(())
}

/// The world with all aircraft on the ground, missions uploaded.
pub(crate) fn world(aircraft: usize, seed: u64, medium: impl Into<Box<dyn Medium>>) -> Result<World> {
    let frame = Frame::new(ORIGIN);
    let mut starts: Vec<DVec2> = Vec::new();
    let mut placement = rng::child(seed, "placement", 0);
    while starts.len() < aircraft {
        let place = DVec2::new(within(&mut placement, HALF_M), within(&mut placement, HALF_M));
        if starts.iter().all(|other| other.distance(place) > APART_M) {
            starts.push(place);
        }
    }
    let mut vehicles = Vec::new();
    for (i, start) in starts.iter().enumerate() {
        let mut protocol = mbcap::Config::mbcap_e();
        (protocol.me, protocol.planned_speed_m_s) = (VehicleId(i as u64 + 1), SPEED_M_S);
        protocol.distance_most_m = 4.0 * HALF_M;
        let mut config = Config::new(protocol);
        config.companion_loss = CompanionLoss::EndsWithIt;
        let agent_seed = rng::child(seed, "agent", i as u64).next_u64();
        let agent = Agent::new(config, agent_seed, Instant::ZERO)?;
        let mut controller = ControllerConfig::new(i as u8 + 1, frame.to_position(start.extend(0.0)));
        controller.boot = Boot::Warm;
        controller.battery.capacity_mah = BATTERY_MAH;
        let begins = Instant::from_millis(i as u64 * 137 % 1_000);
        vehicles.push((agent, FlightController::new(controller, seed, begins)));
    }
    let mut world = World::new(ORIGIN, vehicles, medium, 5.0);
    for (i, start) in starts.iter().enumerate() {
        let route = walk(*start, &frame, &mut rng::child(seed, "mission", i as u64));
        match world.mission(i, &route) {
            Reply::Accepted => {}
            other => {
                bail!("mission of aircraft {i}: found {other:?}, expected Accepted");
            }
        }
    }
    Ok(world)
}

/// Uniform in −`half_m` to `half_m`.
fn within(generator: &mut Pcg64Mcg, half_m: f64) -> f64 {
    (2.0 * rng::uniform(generator) - 1.0) * half_m
}

/// A walk that turns a little at every waypoint, and back inside at the border.
fn walk(start: DVec2, frame: &Frame, generator: &mut Pcg64Mcg) -> Vec<Point> {
    let (mut at, mut heading_rad) = (start, within(generator, std::f64::consts::PI));
    let mut route = Vec::new();
    while route.len() < WAYPOINTS {
        let place = frame.to_position(at.extend(0.0));
        route.push(Point {
            latitude_e7: place.latitude_e7,
            longitude_e7: place.longitude_e7,
            height_mm: HEIGHT_MM,
        });
        let length_m = LEG_M.0 + (LEG_M.1 - LEG_M.0) * rng::uniform(generator);
        heading_rad += within(generator, TURN_RAD);
        let mut step = DVec2::from_angle(heading_rad) * length_m;
        let next = at + step;
        if next.x.abs() > HALF_M {
            step.x = -step.x;
        }
        if next.y.abs() > HALF_M {
            step.y = -step.y;
        }
        heading_rad = step.to_angle();
        at += step;
    }
    route
}

/// Sets all aircraft up and starts them together.
pub(crate) fn start(world: &mut World) -> Result<()> {
    let count = world.count();
    let mut set_up = vec![false; count];
    while (0..count).any(|i| world.phase(i) != Phase::Ready) {
        world.run_until(world.now() + Duration::from_millis(500));
        for (i, done) in set_up.iter_mut().enumerate() {
            let id = format!("setup {}", world.now().as_millis());
            *done = *done || world.command(i, &id, Command::Setup) == Reply::Accepted;
        }
        if world.now() > Instant::from_secs(300) {
            bail!("the aircraft: found some not ready after 300 s, expected all");
        }
    }
    for i in 0..count {
        let reply = world.command(i, "start", Command::Start);
        if reply != Reply::Accepted {
            bail!("start of aircraft {i}: found {reply:?}, expected Accepted");
        }
    }
    Ok(())
}

/// Seconds that this process, which has one thread here, had a core for itself (proc(5): schedstat). On a core
/// that no other process wants it is the time by the clock.
///
/// # Errors
/// The kernel does not report it.
pub fn on_core_s() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/schedstat").context("/proc/self/schedstat")?;
    let ns: u64 = text.split(' ').next().unwrap_or_default().parse().context("/proc/self/schedstat")?;
    Ok(ns as f64 * 1e-9)
}

/// The most memory that this process ever held (proc(5): VmHWM).
fn peak_mb() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kb: Option<u64> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    Ok(kb.context("/proc/self/status: found no VmHWM, expected its kilobytes")? / 1024)
}
