//! How wrong MBCAP's predictions are (thesis sections 5.1.4 and 5.3.1.2): one aircraft flies two legs with
//! a right angle between them at 15 m/s, and each location of each beacon that it sends is compared with
//! where it actual was at that time.
//!
//! The agent, the MAVLink bytes and the beacon's bytes are the real ones; the truth is the simulated
//! flight controller's. Errors are distances over ground. As in the thesis, of the original's 25 s only
//! locations within its reaction threshold of 90 m count; of MBCAP-e all that it broadcasts.

pub mod plot;
pub mod table;

use anyhow::{Result, bail};
use strum::{IntoStaticStr, VariantArray};
use wingbeat_agent::{Agent, Command, CompanionLoss, Config as AgentConfig, Phase, Reply, StateId};
use wingbeat_geo::{DVec2, DVec3, Duration, Frame, Instant};
use wingbeat_protocol::mbcap::config::{Config, Projection};
use wingbeat_sim::channel::{Channel, Draw, Model};
use wingbeat_sim::flight_controller::{Boot, Config as ControllerConfig, FlightController, TICK};
use wingbeat_sim::world::World;
use wingbeat_wire::{Beacon, Location, Message, Point, VehicleId, read_unverified};

use crate::scenario::ORIGIN;

/// Speed of the flight, metres per second.
pub const SPEED_M_S: f64 = 15.0;
/// Length of each leg: long enough that the 25 s of the original end before the next manoeuvre.
pub const LEG_M: f64 = 1_500.0;
/// Of the original, farther locations do not count: its reaction threshold, metres.
const THRESHOLD_M: f64 = 90.0;
/// Slower than this share of the speed it is under way to or from it.
const CRUISE_SHARE: f64 = 0.95;
/// A course farther than this from both legs is the turn's, radians.
const COURSE_WITHIN_RAD: f64 = 0.05;
const HEIGHT_M: f64 = 20.0;
/// The flight takes five minutes.
const TIME_LIMIT: Duration = Duration::from_secs(900);

/// The prediction variants that are compared (thesis section 5.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub enum Alternative {
    /// From the position itself, with the speed.
    #[strum(serialize = "alternative 1")]
    One,
    /// From the mission's line, with the speed.
    #[strum(serialize = "alternative 2")]
    Two,
    /// From the mission's line, with speed and acceleration: MBCAP.
    #[strum(serialize = "alternative 3")]
    Three,
    /// MBCAP-e.
    #[strum(serialize = "MBCAP-e")]
    Enhanced,
}

impl Alternative {
    /// All, in the thesis' order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As tables name it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn config(self) -> Config {
        let mut config = Config::mbcap();
        match self {
            Self::One => {
                config.prediction.projection = Projection::None;
                config.prediction.accelerates = false;
            }
            Self::Two => config.prediction.accelerates = false,
            Self::Three => {}
            Self::Enhanced => config = Config::mbcap_e(),
        }
        (config.me, config.planned_speed_m_s) = (VehicleId(1), SPEED_M_S);
        config
    }

    fn threshold_m(self) -> f64 {
        if self == Self::Enhanced { f64::INFINITY } else { THRESHOLD_M }
    }
}

/// What the aircraft does during the time that a beacon covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
pub enum MotionPhase {
    /// Neither of the others.
    #[strum(serialize = "constant speed")]
    Constant,
    /// Accelerating.
    #[strum(serialize = "start")]
    Start,
    /// Turning at the corner.
    #[strum(serialize = "turn")]
    Turn,
    /// Coming to a stop at the last waypoint.
    #[strum(serialize = "braking")]
    Braking,
}

impl MotionPhase {
    /// All, constant speed first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As tables name it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The prediction errors of one beacon.
#[derive(Clone, Debug, PartialEq)]
pub struct BeaconErrors {
    /// When it was sent, seconds since the mission began.
    pub at_s: f64,
    /// What the aircraft did meanwhile.
    pub phase: MotionPhase,
    /// Error of each location that counts, metres; they are half a second apart, the current one first.
    pub errors_m: Vec<f64>,
}

impl BeaconErrors {
    /// The largest.
    pub fn max_m(&self) -> f64 {
        self.errors_m.iter().copied().fold(0.0, f64::max)
    }
    /// The mean.
    pub fn mean_m(&self) -> f64 {
        self.errors_m.iter().sum::<f64>() / self.errors_m.len().max(1) as f64
    }
}

/// The beacons of one flight, each with its errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Flown {
    /// Under which alternative.
    pub alternative: Alternative,
    /// Its beacons between the beginning of the mission and the landing.
    pub beacons: Vec<BeaconErrors>,
    /// Seconds between two locations.
    pub hop_s: f64,
    /// Seconds between two beacons.
    pub beacon_period_s: f64,
}

/// Flies all alternatives. Nothing in it is random: no wind, no position error, no other aircraft.
///
/// # Errors
/// A flight was not completed.
pub fn fly_all() -> Result<Vec<Flown>> {
    Alternative::ALL.iter().copied().map(fly).collect()
}

/// Where the aircraft was at one tick.
struct Fix {
    at: Instant,
    position: DVec2,
    velocity: DVec2,
}

/// Flies one alternative.
///
/// # Errors
/// The flight was not completed.
pub fn fly(alternative: Alternative) -> Result<Flown> {
    let config = alternative.config();
    let (hop_s, beacon_period_s) = (config.prediction.hop_s, config.beacon_period.as_secs_f64());
    let mut world = world(config)?;
    let frame = Frame::new(ORIGIN);
    let (mut fixes, mut sent) = (Vec::new(), Vec::new());
    let (mut setup, mut started, mut began) = (false, false, None);
    loop {
        world.run_until(world.now() + TICK);
        let now = world.now();
        if !setup {
            let id = format!("setup at {}", now.as_millis());
            setup = world.command(0, &id, Command::Setup) == Reply::Accepted;
        }
        if !started && world.phase(0) == Phase::Ready {
            started = world.command(0, "start", Command::Start) == Reply::Accepted;
        }
        let truth = world.controller(0).truth();
        fixes.push(Fix {
            at: now,
            position: frame.to_local(truth.position).truncate(),
            velocity: truth.velocity.truncate(),
        });
        let is_on_mission = world.agent_of(0).view().state == StateId::Normal;
        if is_on_mission && began.is_none() {
            began = Some(now);
        }
        for datagram in world.take_sent() {
            let Message::Beacon(beacon) = read_unverified(&datagram.bytes)?.message else { continue };
            if is_on_mission {
                sent.push((datagram.at, beacon));
            }
        }
        if world.phase(0) == Phase::Finished {
            break;
        }
        if now.since(Instant::ZERO) > TIME_LIMIT || world.phase(0) == Phase::Aborted {
            let status = world.status(0);
            bail!("{}: not completed: {} ({})", alternative.name(), status.state, status.detail);
        }
    }
    let Some(began) = began else { bail!("{}: the mission never began", alternative.name()) };
    fixes.retain(|f| f.at >= began);
    let Some(manoeuvres) = Manoeuvres::of(&fixes) else {
        bail!("{}: the flight has no start, turn and end to be measured", alternative.name())
    };
    let judge = |(at, beacon): &(Instant, Beacon)| {
        judge(*at, beacon, alternative, hop_s, &frame, &fixes, &manoeuvres)
            .map(|(phase, errors_m)| BeaconErrors { at_s: at.since(began).as_secs_f64(), phase, errors_m })
    };
    let beacons: Vec<BeaconErrors> = sent.iter().filter_map(judge).collect();
    Ok(Flown { alternative, beacons, hop_s, beacon_period_s })
}

fn world(config: Config) -> Result<World> {
    let frame = Frame::new(ORIGIN);
    let mut agent = AgentConfig::new(config);
    agent.companion_loss = CompanionLoss::EndsWithIt;
    let agent = Agent::new(agent, 0, Instant::ZERO)?;
    let mut controller = ControllerConfig::new(1, ORIGIN);
    controller.boot = Boot::Warm;
    let controller = FlightController::new(controller, 0, Instant::ZERO);
    let channel = Channel::new(Model::Unrestricted, Draw::PerSecond, 0, 1);
    let mut world = World::new(ORIGIN, vec![(agent, controller)], channel, 5.0);
    let corners = [DVec2::ZERO, DVec2::new(0.0, LEG_M), DVec2::new(LEG_M, LEG_M)];
    let mission = corners.map(|corner| {
        let place = frame.to_position(corner.extend(0.0));
        let height_mm = (HEIGHT_M * 1e3) as i32;
        Point { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, height_mm }
    });
    // Keeping datagrams begins here.
    world.take_sent();
    match world.mission(0, &mission) {
        Reply::Refused(why) => bail!("mission: {why}"),
        _ => Ok(world),
    }
}

/// The place of a location over ground.
fn over_ground(frame: &Frame, location: &Location) -> DVec2 {
    let local: DVec3 = frame.to_local(wingbeat_geo::Position {
        latitude_e7: location.latitude_e7,
        longitude_e7: location.longitude_e7,
        altitude_mm: ORIGIN.altitude_mm,
    });
    local.truncate()
}

/// What the aircraft did during a beacon's time, and the error of each location that counts. None of a
/// beacon from before the flight was recorded.
fn judge(
    sent_at: Instant,
    beacon: &Beacon,
    alternative: Alternative,
    hop_s: f64,
    frame: &Frame,
    fixes: &[Fix],
    manoeuvres: &Manoeuvres,
) -> Option<(MotionPhase, Vec<f64>)> {
    let age = Duration::from_millis(beacon.age_ms.into());
    if sent_at < fixes.first()?.at + age {
        return None;
    }
    let measured_at = sent_at - age;
    let here = over_ground(frame, beacon.locations.first()?);
    let mut errors_m = Vec::new();
    let mut last_at = measured_at;
    for (k, location) in beacon.locations.iter().enumerate() {
        let predicted = over_ground(frame, location);
        if predicted.distance(here) > alternative.threshold_m() {
            break;
        }
        let at = measured_at + Duration::from_micros((k as f64 * hop_s * 1e6) as u64);
        let Some(actual) = position_at(fixes, at) else { break };
        errors_m.push(predicted.distance(actual));
        last_at = at;
    }
    (!errors_m.is_empty()).then(|| (manoeuvres.during(measured_at, last_at), errors_m))
}

/// Where the aircraft was, between two ticks on the straight line. None outside the recording.
fn position_at(fixes: &[Fix], at: Instant) -> Option<DVec2> {
    let after = fixes.partition_point(|f| f.at < at);
    let b = fixes.get(after)?;
    let a = fixes.get(after.saturating_sub(1))?;
    let span_s = b.at.since(a.at).as_secs_f64();
    if span_s <= 0.0 {
        return Some(b.position);
    }
    Some(a.position.lerp(b.position, at.since(a.at).as_secs_f64() / span_s))
}

/// When the aircraft was not at constant speed on a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Manoeuvres {
    fast_at: Instant,
    turn: (Instant, Instant),
    slow_at: Instant,
}

impl Manoeuvres {
    fn of(fixes: &[Fix]) -> Option<Self> {
        let is_fast = |f: &Fix| f.velocity.length() >= CRUISE_SHARE * SPEED_M_S;
        // The first leg goes north, the second east.
        let is_on = |f: &Fix, leg: DVec2| is_fast(f) && f.velocity.angle_to(leg).abs() < COURSE_WITHIN_RAD;
        let first = fixes.iter().position(|f| is_on(f, DVec2::Y))?;
        let last_of_first = fixes.iter().rposition(|f| is_on(f, DVec2::Y))?;
        let first_of_second = fixes.iter().position(|f| is_on(f, DVec2::X))?;
        let last = fixes.iter().rposition(|f| is_on(f, DVec2::X))?;
        (last_of_first < first_of_second).then(|| Self {
            fast_at: fixes[first].at,
            turn: (fixes[last_of_first].at, fixes[first_of_second].at),
            slow_at: fixes[last].at,
        })
    }

    fn during(&self, from: Instant, to: Instant) -> MotionPhase {
        if from < self.fast_at {
            MotionPhase::Start
        } else if to > self.slow_at {
            MotionPhase::Braking
        } else if from < self.turn.1 && to > self.turn.0 {
            MotionPhase::Turn
        } else {
            MotionPhase::Constant
        }
    }
}

#[cfg(test)]
mod tests;
