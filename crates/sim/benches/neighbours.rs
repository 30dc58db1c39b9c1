//! What a hundred neighbours cost one aircraft: the agent's share of one core, and its allocations, while it
//! flies its mission and receives 100 others at 5 Hz.
//!
//! The flight is flown once against a simulated flight controller, and every input of the agent is kept. What
//! is measured is the replay: a fresh agent is handed the same inputs at the same times and must give the same
//! bytes. So the share is the agent's alone: MAVLink both ways, beacons, protocol, and nothing of the world.
//! Others fly 60 m higher, which is near enough to be checked and too high to be a conflict.
//!
//! Three skies: others spread over 5 × 5 km; all of them within 250 m, where no beacon can be passed over
//! for its distance; and the first with one sender more, which sends 2000 beacons a second.
//!
//! `cargo bench --package wingbeat-sim --bench neighbours`, which `cargo xtask bench` runs and whose lines that
//! begin with `neighbours: ` it reads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use wingbeat_agent::{Agent, Command, CompanionLoss, Config, Input, Outputs, Phase, Reply, StateId};
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant, Position};
use wingbeat_protocol::{Mbcap, mbcap};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController};
use wingbeat_sim::keys::{Keys, Signatures};
use wingbeat_sim::rng::{self, Pcg64Mcg};
use wingbeat_wire::{Beacon, Datagram, Location, Message, Point, Refused, Roster, Signer, VehicleId};

const ORIGIN: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 50_000 };
const SEED: u64 = 1;
const OTHERS: u64 = 100;
const SPEED_M_S: f64 = 10.0;
/// Locations predicted at that speed: the current location and 12 more.
const LOCATIONS: u16 = 13;
const HOP_S: f64 = 0.5;
const BEACON_PERIOD: Duration = Duration::from_millis(200);
const STORM_PERIOD: Duration = Duration::from_micros(500);
/// Where others fly above home, and where we do.
const OTHERS_HEIGHT_M: f64 = 90.0;
const HEIGHT_MM: i32 = 30_000;
/// On the mission well before this.
const WARM_UP: Duration = Duration::from_secs(40);
const MEASURED: Duration = Duration::from_secs(300);
/// The mean of so many replays is printed: the kernel reckons time on a core in steps of milliseconds.
const REPLAYS: usize = 5;

/// The system's allocator, counted.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer is from `alloc`, so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> Result<(), Box<dyn Error>> {
    println!("an agent takes {} bytes, of which MBCAP {}", size_of::<Agent>(), size_of::<Mbcap>());
    for sky in [
        Sky { name: "spread over 5 x 5 km", half_m: 2_500.0, storm: false },
        Sky { name: "all within 250 m", half_m: 125.0, storm: false },
        Sky { name: "spread, and a storm of 2000 a second", half_m: 2_500.0, storm: true },
    ] {
        let flight = fly(&sky)?;
        let replays = (0..REPLAYS).map(|_| replay(&flight)).collect::<Result<Vec<Measured>, _>>()?;
        let share_percent = replays.iter().map(|m| m.share_percent).sum::<f64>() / REPLAYS as f64;
        let m = &replays[0];
        println!(
            "neighbours: {}: {:.3} % of one core, {} beacons taken, {} refused as storm, {} allocations in {} s",
            sky.name,
            share_percent,
            m.taken,
            m.storm,
            m.allocations,
            MEASURED.as_secs()
        );
    }
    Ok(())
}

/// The other aircraft, which send beacons only.
struct Sky {
    name: &'static str,
    half_m: f64,
    storm: bool,
}

/// An input, with what it holds.
enum Kept {
    Wake,
    Autopilot(Vec<u8>),
    Datagram(Vec<u8>),
    Mission(Vec<Point>),
    Operator(String, Command),
}

impl Kept {
    fn input(&self, roster: &Roster) -> Input<'_> {
        match self {
            Self::Wake => Input::Wake,
            Self::Autopilot(bytes) => Input::Autopilot(bytes),
            Self::Datagram(bytes) => Input::Datagram(roster.open(bytes)),
            Self::Mission(points) => Input::Mission(points),
            Self::Operator(id, command) => Input::Operator { id, command: *command },
        }
    }
}

/// A flight as the agent saw it.
struct RecordedFlight {
    inputs: Vec<(Instant, Kept)>,
    /// When everything was under way.
    steady_at: Instant,
    /// Over all bytes that it gave.
    trace: u64,
}

/// What a replay gave, from `steady_at` on.
struct Measured {
    share_percent: f64,
    allocations: u64,
    taken: u64,
    storm: u64,
}

fn agent() -> Result<Agent, Box<dyn Error>> {
    let mut protocol = mbcap::Config::mbcap_e();
    (protocol.me, protocol.planned_speed_m_s) = (VehicleId(50), SPEED_M_S);
    protocol.distance_most_m = 10_000.0;
    let mut config = Config::new(protocol);
    config.companion_loss = CompanionLoss::EndsWithIt;
    Ok(Agent::new(config, SEED, Instant::ZERO)?)
}

/// What a signature costs is measured by itself: here it stands aside.
fn keys() -> Result<Keys, Box<dyn Error>> {
    Ok(Keys::new(Signatures::StandIn, SEED, [VehicleId(0)])?)
}

/// Another aircraft: it flies straight on, and turns back at the border.
struct Other {
    id: VehicleId,
    at: DVec2,
    velocity: DVec2,
    half_m: f64,
    period: Duration,
    due: Instant,
    counter: u64,
}

impl Other {
    fn new(id: u64, half_m: f64, period: Duration, generator: &mut Pcg64Mcg) -> Self {
        let mut within = |most: f64| (2.0 * rng::uniform(generator) - 1.0) * most;
        Self {
            id: VehicleId(id),
            at: DVec2::new(within(half_m), within(half_m)),
            velocity: DVec2::from_angle(within(std::f64::consts::PI)) * SPEED_M_S,
            half_m,
            period,
            due: Instant::from_micros(((within(0.5) + 0.5) * period.as_micros() as f64) as u64),
            counter: 0,
        }
    }

    /// Encodes its next beacon.
    fn beacon(&mut self, frame: &Frame, signer: &Signer) -> Result<Vec<u8>, Refused> {
        let border = |at: f64, velocity: f64| {
            if at.abs() > self.half_m { -at.signum() * velocity.abs() } else { velocity }
        };
        self.velocity = DVec2::new(border(self.at.x, self.velocity.x), border(self.at.y, self.velocity.y));
        let ahead = (0..LOCATIONS).map(|i| self.at + self.velocity * (f64::from(i) * HOP_S));
        let location = |at: DVec2| {
            let there = frame.to_position(DVec3::new(at.x, at.y, OTHERS_HEIGHT_M));
            Location {
                latitude_e7: there.latitude_e7,
                longitude_e7: there.longitude_e7,
                altitude_mm: there.altitude_mm,
            }
        };
        let beacon = Beacon {
            planned_speed_cm_s: (SPEED_M_S * 100.0) as u16,
            speed_cm_s: (SPEED_M_S * 100.0) as u16,
            age_ms: 120,
            locations: ahead.map(location).collect(),
            ..Beacon::default()
        };
        self.counter = self.due.as_micros();
        self.at += self.velocity * self.period.as_secs_f64();
        self.due = self.due + self.period;
        let message = Message::Beacon(beacon);
        let datagram = Datagram { from: self.id, counter: self.counter, flight: 0, message };
        Ok(signer.seal(&mut datagram.draft()?).to_vec())
    }
}

/// Flies, and records the agent's inputs.
fn fly(sky: &Sky) -> Result<RecordedFlight, Box<dyn Error>> {
    let (frame, keys) = (Frame::new(ORIGIN), keys()?);
    let mut generator = rng::child(SEED, "others", 0);
    let mut others: Vec<Other> =
        (1..=OTHERS).map(|i| Other::new(100 + i, sky.half_m, BEACON_PERIOD, &mut generator)).collect();
    if sky.storm {
        others.push(Other::new(7, sky.half_m, STORM_PERIOD, &mut generator));
    }
    let mut config = ControllerConfig::new(1, ORIGIN);
    config.boot = Boot::Warm;
    let mut controller = FlightController::new(config, SEED, Instant::ZERO);
    let (mut agent, mut out, mut bytes) = (agent()?, Outputs::default(), Vec::new());
    let mut flight = RecordedFlight { inputs: Vec::new(), steady_at: Instant::NEVER, trace: 0 };
    let mut give = |now: Instant, kept: Kept, agent: &mut Agent, controller: &mut FlightController| {
        agent.handle(now, kept.input(keys.roster()), &mut out);
        flight.trace = mixed(flight.trace, &out);
        controller.receive(&out.autopilot);
        flight.inputs.push((now, kept));
        out.reply.take()
    };

    // To and fro within 100 m, so that an aircraft that is near stays near.
    let route: Vec<Point> = (0..100)
        .map(|i| {
            let place =
                frame.to_position(DVec3::new(if i % 2 == 0 { 0.0 } else { 100.0 }, f64::from(i), 0.0));
            Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm: HEIGHT_MM }
        })
        .collect();
    let reply = give(Instant::ZERO, Kept::Mission(route), &mut agent, &mut controller);
    if reply != Some(Reply::Accepted) {
        return Err(format!("mission: found {reply:?}, expected Accepted").into());
    }
    let (mut now, mut set_up, mut begun, mut asked) = (Instant::ZERO, false, None, 0);
    loop {
        let radio = others.iter().map(|o| o.due).min().unwrap_or(Instant::NEVER);
        now = now.max(radio.min(controller.poll_timeout()).min(agent.poll_timeout().0));
        for other in others.iter_mut().filter(|o| o.due <= now) {
            let beacon = other.beacon(&frame, keys.signer(0))?;
            give(now, Kept::Datagram(beacon), &mut agent, &mut controller);
        }
        if controller.poll_timeout() <= now {
            bytes.clear();
            controller.advance(now, &mut bytes);
            if !bytes.is_empty() {
                give(now, Kept::Autopilot(bytes.clone()), &mut agent, &mut controller);
            }
            let phase = agent.view().phase;
            let command = match (phase, set_up, begun) {
                (Phase::Start, false, _) => Some(Command::Setup),
                (Phase::Ready, _, None) => Some(Command::Start),
                _ => None,
            };
            if let Some(command) = command {
                asked += 1;
                let kept = Kept::Operator(format!("{asked}"), command);
                if give(now, kept, &mut agent, &mut controller) == Some(Reply::Accepted) {
                    match command {
                        Command::Setup => set_up = true,
                        _ => begun = Some(now),
                    }
                }
            }
        }
        if agent.poll_timeout().0 <= now {
            give(now, Kept::Wake, &mut agent, &mut controller);
        }
        let steady_at = begun.map_or(Instant::NEVER, |at| at + WARM_UP);
        if now >= steady_at && now.since(steady_at) >= MEASURED {
            let state = agent.view().state;
            if state != StateId::Normal {
                return Err(format!("{}: found state {state}, expected Normal", sky.name).into());
            }
            flight.steady_at = steady_at;
            return Ok(flight);
        }
        if now > Instant::from_secs(400) {
            return Err(
                format!("{}: not under way after 400 s, state {}", sky.name, agent.view().state).into()
            );
        }
    }
}

/// The same inputs for a fresh agent: the same bytes, and what it took.
fn replay(flight: &RecordedFlight) -> Result<Measured, Box<dyn Error>> {
    let (mut agent, mut out, mut trace) = (agent()?, Outputs::default(), 0);
    let keys = keys()?;
    let steady = flight.inputs.partition_point(|(at, _)| *at < flight.steady_at);
    for (at, kept) in &flight.inputs[..steady] {
        agent.handle(*at, kept.input(keys.roster()), &mut out);
        trace = mixed(trace, &out);
    }
    let before = agent.status(flight.steady_at);
    let (allocations, core_s) = (ALLOCATIONS.load(Ordering::Relaxed), on_core_s()?);
    // Reading the time allocates too.
    let of_reading = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    for (at, kept) in &flight.inputs[steady..] {
        agent.handle(*at, kept.input(keys.roster()), &mut out);
        trace = mixed(trace, &out);
    }
    let all = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    let core_s = on_core_s()? - core_s;
    if trace != flight.trace {
        return Err(format!("replay: found trace {trace:016x}, expected {:016x}", flight.trace).into());
    }
    let after = agent.status(flight.steady_at + MEASURED);
    let storm = Refused::Storm as usize;
    Ok(Measured {
        share_percent: core_s / MEASURED.as_secs_f64() * 100.0,
        allocations: all - of_reading,
        taken: after.received - before.received,
        storm: after.refused[storm] - before.refused[storm],
    })
}

/// Mixes what an agent gave into a trace (FNV-1a).
fn mixed(trace: u64, out: &Outputs) -> u64 {
    let bytes = out.autopilot.iter().chain(out.datagrams.iter().flat_map(|draft| draft.content()));
    bytes.fold(trace, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Seconds that this process, which has one thread, had a core for itself (proc(5): schedstat). On a core that
/// no other process wants it is the time by the clock.
fn on_core_s() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(ns as f64 * 1e-9)
}
