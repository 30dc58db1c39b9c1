//! A scenario flown in virtual time, as fast as it goes, with a simulated operator that sends *Setup* and
//! *Start* as soon as they can be pressed.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};
use wingbeat_agent::{AvoidanceTally, Command, Phase, Reply, Severity};
use wingbeat_geo::{Duration, Instant};

use wingbeat_sim::channel::{Losses, REACHES};
use wingbeat_sim::encounters::Encounter;
use wingbeat_sim::faults::Fault;
use wingbeat_sim::flight_controller::Boot;
use wingbeat_sim::following::Following;
use wingbeat_sim::medium::statistics::Statistics;
use wingbeat_sim::medium::{FlowFigures, Lateness, Medium};
use wingbeat_sim::observer::{AircraftFigures, SwarmFigures};
use wingbeat_sim::world::World;

use crate::causes::Causes;
use crate::course::Course;
use crate::lockstep::{autopilots, scripts};
use crate::media;
use crate::phases::Watch;
use crate::progress;
use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::timetable::Timetable;
use crate::trouble::Script;

/// A flight in which something went wrong is over when all have been on the ground for so long.
const REST: Duration = Duration::from_secs(60);
/// Agents log behind this why they give up a *Setup*.
const SETUP_REFUSED: &str = "setup refused: ";
/// A simulated flight controller that was warm takes *Setup* within this.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// A program, or one that was cold, has its position by then.
const PROGRAM_READY_WITHIN: Duration = Duration::from_secs(120);
/// How often the operator checks the swarm.
const STEP: Duration = Duration::from_millis(200);

/// The figures of one flown scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlightResult {
    /// Figures of every aircraft.
    pub aircraft: Vec<AircraftFigures>,
    /// Figures of the swarm.
    pub swarm: SwarmFigures,
    /// How near aircraft came to each other.
    pub encounters: Vec<Encounter>,
    /// Whether no protocol was to keep the aircraft apart.
    pub unprotected: bool,
    /// Whether aircraft flew and the plan let something go wrong: then an aircraft that is down has done what can be asked of it.
    pub is_disturbed: bool,
    /// How well the followers kept their slots, in a formation that turns with its leader.
    pub following: Following,
    /// Counts of each aircraft's avoidance, where there is one.
    pub avoidance: Vec<AvoidanceTally>,
    /// Datagrams on the air.
    pub radio: Radio,
    /// What became of every datagram, where the medium models frames.
    pub medium: Option<Statistics>,
    /// What traffic beside that of the aircraft brought.
    #[serde(default)]
    pub flows: Vec<FlowFigures>,
    /// How late receptions were dated, where the medium is ns-3.
    #[serde(default)]
    pub lateness: Option<Lateness>,
    /// How long each datagram was under way, where a recorded flight was put through a medium.
    #[serde(default)]
    pub delays: Option<Lateness>,
    /// What the channel lost between the swarm's start and its landing, by distance.
    pub losses: [Losses; REACHES],
    /// Virtual time that passed.
    pub duration: Duration,
    /// Hash over every byte that crossed a border.
    pub trace_hash: u64,
    /// Warnings and errors that aircraft logged.
    pub warnings: Vec<String>,
    /// Why the flight failed, a line for each aircraft or reason; a flight that has none is not failed for any.
    #[serde(default)]
    pub causes: Vec<String>,
}

/// Datagrams of a whole swarm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Radio {
    /// Datagrams sent.
    pub sent: u64,
    /// Receptions that happened.
    pub delivered: u64,
    /// Receptions that distance and random loss prevented.
    pub lost: u64,
    /// Datagrams that agents refused.
    pub refused: u64,
}

impl FlightResult {
    /// Stops because of a risk, all aircraft together.
    pub fn stops(&self) -> f64 {
        // In integers: the sum of no floats is -0.
        self.avoidance.iter().map(|a| u64::from(a.stops)).sum::<u64>() as f64
    }

    /// Returns whether every aircraft ended on the ground, disarmed, with nothing left to do, or at least on the ground where
    /// something was to go wrong; and whether no autopilot reported a crash.
    pub fn is_complete(&self) -> bool {
        self.causes.is_empty() && self.aircraft.iter().all(|a| a.completed || self.is_disturbed && a.is_down)
    }

    /// Every aircraft completed the mission and landed, and none collided that something kept apart.
    pub fn succeeded(&self) -> bool {
        self.is_complete() && (self.swarm.collisions.is_empty() || self.unprotected)
    }
}

/// Flies a scenario.
///
/// # Errors
/// The scenario cannot be flown, or it is not over after `time_limit` of virtual time.
pub fn fly(scenario: &Scenario, seed: u64, time_limit: Duration) -> Result<FlightResult> {
    fly_recorded(scenario, seed, time_limit, None)
}

/// The same, with a flight log of each aircraft in `folder`.
///
/// # Errors
/// As [`fly`], and a log that cannot be written.
pub fn fly_recorded(
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    folder: Option<&Path>,
) -> Result<FlightResult> {
    fly_observed(scenario, seed, time_limit, folder, None, None)
}

/// The same, with its course.
///
/// # Errors
/// As [`fly_recorded`].
pub fn fly_traced(
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    folder: Option<&Path>,
) -> Result<(FlightResult, Course)> {
    let mut course = Course::default();
    let result = fly_observed(scenario, seed, time_limit, folder, None, Some(&mut course))?;
    Ok((result, course))
}

/// The same without a log, watched.
///
/// # Errors
/// As [`fly`].
pub(crate) fn fly_watched(
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    watch: &Arc<Watch>,
) -> Result<FlightResult> {
    fly_observed(scenario, seed, time_limit, None, Some(watch), None)
}

fn fly_observed(
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    folder: Option<&Path>,
    watch: Option<&Arc<Watch>>,
    course: Option<&mut Course>,
) -> Result<FlightResult> {
    scenario.check()?;
    if scenario.network.is_some() {
        ensure!(watch.is_none(), "--phases: found media, expected one medium in the flight");
        let mut all = fly_through(&[scenario], seed, time_limit, folder, course)?;
        return all.pop().context("a result for each medium");
    }
    observed(scenario, seed, time_limit, folder, watch, course, None)
}

/// Flies scenarios once that differ in their networks only, and puts what was transmitted through each: a result for each.
///
/// # Errors
/// As [`fly_recorded`].
pub(crate) fn fly_through(
    scenarios: &[&Scenario],
    seed: u64,
    time_limit: Duration,
    folder: Option<&Path>,
    course: Option<&mut Course>,
) -> Result<Vec<FlightResult>> {
    let (recorder, recording) = media::Recorder::begin();
    let first = scenarios.first().context("a flight")?.without_network();
    let flight = observed(&first, seed, time_limit, folder, None, course, Some(recorder))?;
    let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(broadcasts) = first.broadcasts {
        recording.add(broadcasts, first.aircraft(), seed, Instant::ZERO + flight.duration);
    }
    scenarios
        .iter()
        .map(|scenario| {
            let through = media::put_through(&recording, &flight, &mut *scenario.radio(seed)?);
            through.with_context(|| format!("{}, flight seed {seed}", scenario.label()))
        })
        .collect()
}

/// Flies with this medium, or with that of the scenario.
pub(crate) fn observed(
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    folder: Option<&Path>,
    watch: Option<&Arc<Watch>>,
    course: Option<&mut Course>,
    medium: Option<Box<dyn Medium>>,
) -> Result<FlightResult> {
    let about = [("flight", scenario.label()), ("flight_seed", seed.to_string())];
    let recording = folder.map(|folder| Recording::begin(folder, &about)).transpose()?;
    let mut vehicles = Vec::new();
    for (i, autopilot) in autopilots(scenario, seed)?.into_iter().enumerate() {
        let autopilot = match watch {
            Some(watch) => watch.autopilot(autopilot),
            None => autopilot,
        };
        vehicles.push((scenario.agent(i, seed)?, autopilot));
    }
    let radio = match (medium, watch) {
        (Some(medium), _) => medium,
        (None, Some(watch)) => watch.radio(scenario, seed)?,
        (None, None) => scenario.radio(seed)?,
    };
    let mut world = World::new(scenario.origin, vehicles, radio, scenario.collision_distance_m)
        .signing(scenario.signatures_of_all(), seed)?
        .recorded(recording.as_ref().map(Recording::recorder));
    if scenario.orders_wait() {
        world.send_replies_only();
    }
    for (i, script) in scripts(scenario, seed)? {
        world.replace_agent(i, script);
    }
    for i in 0..scenario.aircraft() {
        if world.logic(i).is_some() {
            continue;
        }
        let Some(mission) = scenario.mission_for(i) else { continue };
        if let Reply::Refused(why) = world.mission_with(i, mission, &scenario.extras_for(i)?) {
            bail!("mission {} of aircraft {}: {why}", scenario.name, i + 1);
        }
    }
    for vehicle in (0..scenario.aircraft()).filter(|_| scenario.gnss_bias_m > 0.0) {
        let (offset_m, within, until) = (scenario.gnss_bias(vehicle, seed), Duration::ZERO, Instant::NEVER);
        world.inflict(Instant::ZERO, Fault::EstimateDrifts { vehicle, offset_m, within, until });
    }
    let mut script = Script::new(&scenario.trouble);
    let mut causes = Causes::default();
    let (losses, unkept) = operate(&mut world, scenario, seed, time_limit, &mut script, course, &mut causes);
    world.end_medium();
    if let Some(why) = world.failure() {
        bail!("{}, flight seed {seed}: {why}", scenario.label());
    }
    let printed = |i: usize| world.logic(i).map(|logic| logic.printed()).unwrap_or_default();
    let printed: Vec<String> = (0..world.count())
        .flat_map(|i| printed(i).into_iter().map(move |line| format!("script of aircraft {}: {line}", i + 1)))
        .collect();
    let unread = (0..world.count()).map(|i| world.status(i).refused.iter().sum::<u64>()).sum();
    let channel = world.channel_counters();
    let logged = world
        // Among aircraft of different owners conflicts are frequent, and the tables count them.
        .log_from(if scenario.variant().is_some() { Severity::Error } else { Severity::Warning })
        .map(|l| format!("{:9.3} s aircraft {}: {}", l.at.as_secs_f64(), l.vehicle + 1, l.entry.text));
    let warnings =
        unkept.into_iter().chain(script.story.iter().cloned()).chain(logged).chain(printed).collect();
    let is_disturbed =
        !script.is_empty() && world.observer().aircraft().iter().any(|a| a.flight_time_s > 0.0);
    let duration = world.now().since(Instant::ZERO);
    causes.hear(&world, scenario);
    causes.judge_ends(&world, is_disturbed, duration);
    let result = FlightResult {
        aircraft: world.observer().aircraft(),
        swarm: world.observer().swarm().clone(),
        encounters: world.observer().encounters().to_vec(),
        following: world.observer().following().clone(),
        unprotected: scenario.is_unprotected(),
        is_disturbed,
        avoidance: (0..world.count()).filter_map(|i| world.avoidance_tally(i)).collect(),
        losses,
        delays: None,
        medium: world.medium_statistics().cloned(),
        flows: world.flows().to_vec(),
        lateness: world.lateness(),
        radio: Radio {
            sent: channel.sent,
            delivered: channel.delivered,
            lost: channel.lost,
            refused: unread,
        },
        duration,
        trace_hash: world.trace_hash(),
        warnings,
        causes: causes.into_lines(),
    };
    // Its recorders end with it.
    drop(world);
    recording.map_or(Ok(()), Recording::end)?;
    Ok(result)
}

/// Presses the buttons until all have landed, *Setup* is refused for good, or time is up. Returns what the channel lost during the
/// mission, and what of a timetable was not kept.
fn operate(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    time_limit: Duration,
    script: &mut Script,
    mut course: Option<&mut Course>,
    causes: &mut Causes,
) -> ([Losses; REACHES], Vec<String>) {
    let end = Instant::ZERO + time_limit;
    let (mut before, mut after) = (*world.losses_by_distance(), None);
    let mut accepted: Vec<bool> = (0..world.count()).map(|i| world.logic(i).is_some()).collect();
    let mut refused = vec![None; world.count()];
    let mut timetable = Timetable::new(scenario);
    let (mut started, mut has_flown, mut rest_since) = (false, false, None);
    while world.now() < end && world.failure().is_none() {
        script.inflict(world, world.now() + STEP);
        world.run_until(world.now() + STEP);
        progress::flown(STEP);
        if let Some(course) = course.as_deref_mut() {
            course.on_step(world, STEP);
        }
        timetable.keep(world);
        let all_in = |world: &World, phases: &[Phase]| {
            (0..world.count()).all(|i| world.is_dead(i) || phases.contains(&world.phase(i)))
        };
        for (i, accepted) in accepted.iter_mut().enumerate().filter(|(_, a)| !**a) {
            // Refused until it is ready; the id differs each time because each press is a new one.
            let id = format!("setup at {}", world.now().as_millis());
            let reply = world.command(i, &id, Command::Setup);
            *accepted = reply == Reply::Accepted;
            if let Reply::Refused(why) = reply {
                refused[i] = Some(why);
            }
        }
        // What goes wrong may keep one from it for a while.
        if script.is_over() && setup_until(scenario) <= world.now() {
            let unset = accepted.iter().zip(&refused).position(|(accepted, why)| !accepted && why.is_some());
            if let Some((i, why)) = unset.and_then(|i| Some((i, refused[i].as_ref()?))) {
                causes.refused(i, why);
                break;
            }
        }
        // What was accepted is judged by the agent afterwards, which is back in its first state then.
        let back = |i: &usize| !started && accepted[*i] && world.phase(*i) == Phase::Start;
        let refusal = (0..world.count()).filter(back).find_map(|i| Some((i, setup_refusal(world, i)?)));
        if let Some((i, why)) = refusal {
            causes.refused(i, &why);
            break;
        }
        let is_ready =
            |i: usize| world.logic(i).is_some() || world.is_dead(i) || world.phase(i) == Phase::Ready;
        if !started && (0..world.count()).all(is_ready) {
            started = true;
            before = *world.losses_by_distance();
            for i in 0..world.count() {
                world.command(i, "start", Command::Start);
                if let Some(pilot) = scenario.pilot(i, seed) {
                    world.seat(i, pilot);
                }
            }
        }
        if started && after.is_none() && (0..world.count()).any(|i| world.phase(i) > Phase::Moving) {
            after = Some(*world.losses_by_distance());
        }
        if !script.is_empty() {
            let is_armed = (0..world.count()).any(|i| world.truth(i).armed);
            has_flown |= is_armed;
            let now = world.now();
            let since = *rest_since.get_or_insert(now);
            if is_armed || !script.is_over() {
                rest_since = None;
            } else if has_flown && now.since(since) >= REST {
                break;
            }
        }
        let is_disarmed = |i: usize| {
            if world.is_dead(i) || world.logic(i).is_some() {
                !world.truth(i).armed
            } else {
                !world.status(i).flight_controller.armed
            }
        };
        if all_in(world, &[Phase::Finished, Phase::Aborted]) && (0..world.count()).all(is_disarmed) {
            // The observer samples once more.
            world.run_until(world.now() + Duration::from_secs(1));
            break;
        }
    }
    let mut losses = after.unwrap_or(*world.losses_by_distance());
    for (during, before) in losses.iter_mut().zip(before) {
        during.sent -= before.sent;
        during.lost -= before.lost;
    }
    (losses, timetable.not_kept().collect())
}

/// Returns why an agent gave up a *Setup* that it had accepted, if it did.
fn setup_refusal(world: &World, vehicle: usize) -> Option<String> {
    let mut of_it = world.log().iter().rev().filter(|logged| logged.vehicle == vehicle);
    of_it.find_map(|logged| logged.entry.text.strip_prefix(SETUP_REFUSED).map(str::to_owned))
}

/// Returns the time until which an aircraft may refuse *Setup* because it is not ready yet. What it refuses then, it refuses for
/// good: its configuration, its place, its parameters.
fn setup_until(scenario: &Scenario) -> Instant {
    let is_slow = scenario.arducopter.is_some() || scenario.boot != Boot::Warm;
    Instant::ZERO + if is_slow { PROGRAM_READY_WITHIN } else { READY_WITHIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{OwnMission, OwnTask, SwarmTask, Task, Variant, route, staircase};
    use wingbeat_sim::channel::Model;

    #[test]
    fn a_swarm_flies_its_mission_and_a_second_run_is_the_same_byte_for_byte() {
        let mut scenario = Scenario::muscop("stairs", staircase(4, 600.0, 10.0));
        let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
        swarm.aircraft = 5;
        scenario.channel = Model::Ieee80211a;
        scenario.gps_noise_m = 0.3;
        let limit = Duration::from_secs(900);
        let flight = fly(&scenario, 7, limit).unwrap();
        assert!(
            flight.succeeded(),
            "{}",
            crate::report::flight(&flight.aircraft, &flight.swarm, &flight.radio)
        );
        assert_eq!(flight, fly(&scenario, 7, limit).unwrap());
        assert_ne!(flight.trace_hash, fly(&scenario, 8, limit).unwrap().trace_hash);
        assert!(flight.swarm.separation_min_m > 5.0);
        assert!((1..=4).all(|i| flight.aircraft[i].distance_m > 500.0));
    }

    #[test]
    fn a_setup_that_is_refused_for_good_ends_the_flight_with_the_refusal() {
        let mut scenario = Scenario::muscop("stairs", staircase(4, 300.0, 10.0));
        let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
        (swarm.aircraft, swarm.landing_distance_m) = (3, 2.5);
        let flight = fly(&scenario, 3, Duration::from_secs(3_600)).unwrap();
        assert!(!flight.succeeded() && flight.duration <= READY_WITHIN + STEP, "{:?}", flight.duration);
        assert_eq!(flight.causes.len(), 1, "{:?}", flight.causes);
        assert!(flight.causes[0].contains("took no Setup: "), "{:?}", flight.causes);
    }

    #[test]
    fn a_flight_that_is_not_over_in_time_names_each_aircraft_and_its_state() {
        let mut scenario = Scenario::muscop("stairs", staircase(4, 300.0, 10.0));
        let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
        swarm.aircraft = 2;
        let flight = fly(&scenario, 3, Duration::from_secs(40)).unwrap();
        assert_eq!(flight.causes.len(), 2, "{:?}", flight.causes);
        let first = &flight.causes[0];
        assert!(first.starts_with("aircraft 1: state ") && first.contains(" after 40 s, "), "{first}");
    }

    #[test]
    fn aircraft_that_broadcast_nothing_are_more_than_a_roster_holds() {
        let missions = |count: usize| {
            let at = |i: usize| route(&[[0.0, 30.0 * i as f64], [60.0, 30.0 * i as f64]], 10.0);
            let mission =
                |i| OwnMission { speed_m_s: 5.0, points: at(i), start: None, leaves_at_s: Vec::new() };
            (0..count).map(mission).collect::<Vec<_>>()
        };
        let crowd = |variant, count| {
            Scenario::new("crowd", Task::Own(OwnTask { variant, missions: missions(count) }))
        };
        let refused = |variant, count| crowd(variant, count).check().unwrap_err().to_string();
        assert_eq!(refused(Variant::Off, 513), "aircraft: found 513, expected 1 to 512");
        assert_eq!(refused(Variant::MbcapE, 129), "aircraft: found 129, expected 1 to 128");
        crowd(Variant::Off, 512).check().unwrap();
        let flight = fly(&crowd(Variant::Off, 256), 1, Duration::from_secs(3)).unwrap();
        assert_eq!(flight.aircraft.len(), 256);
        assert!(flight.causes.iter().all(|cause| !cause.contains("Setup: ")), "{:?}", flight.causes.first());
    }

    fn flown(scenario: &mut Scenario, configure: impl Fn(&mut SwarmTask)) -> FlightResult {
        let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
        configure(swarm);
        let flight = fly(scenario, 3, Duration::from_secs(900)).unwrap();
        assert!(flight.succeeded(), "{:?}", flight.warnings);
        flight
    }

    #[test]
    fn orders_that_wait_for_a_frame_cost_a_little_at_every_waypoint() {
        let mut scenario = Scenario::muscop("stairs", staircase(4, 300.0, 10.0));
        let mut time_s = |orders_wait| {
            let configured = |swarm: &mut SwarmTask| (swarm.aircraft, swarm.orders_wait) = (3, orders_wait);
            flown(&mut scenario, configured).swarm.mission_time_s
        };
        let added_s = time_s(true) - time_s(false);
        // Three legs; each order waits for at most a quarter of a second, and a check of arrival may then come one period later.
        assert!((0.1..2.2).contains(&added_s), "{added_s}");
    }

    #[test]
    fn clocks_that_walk_pull_a_swarm_apart() {
        let mut scenario = Scenario::muscop("stairs", staircase(3, 800.0, 10.0));
        let mut offset = |clock_walk_s| {
            let configured = |swarm: &mut SwarmTask| (swarm.aircraft, swarm.clock_walk_s) = (5, clock_walk_s);
            let flight = flown(&mut scenario, configured);
            (flight.swarm.distance_offset.mean(), flight.trace_hash)
        };
        let (in_step, apart) = (offset(0.0), offset(0.04));
        // On legs of 45 s two clocks are 0.04 √45 √2 s = 0.4 s apart at the end of the leg, which is 4 m.
        assert!((0.5..4.0).contains(&(apart.0 - in_step.0)), "{} and {} m", in_step.0, apart.0);
        assert_eq!(apart, offset(0.04));
    }
}
