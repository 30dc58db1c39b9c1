//! The course of a flight, as it truly was, for drawings: paths, states, batteries, separation, error in the formation and what the
//! radio lost. Short whatever the flight's length: where it has too many samples, every second one is dropped.

use serde::{Deserialize, Serialize};
use wingbeat_geo::{DVec3, Duration, Instant};
use wingbeat_sim::observer::Spread;
use wingbeat_sim::world::World;

/// Samples of a longer flight are thinned to between half of this and this.
const SAMPLES_MOST: usize = 600;
/// Steps of the operator from one sample to the next, before any thinning.
const STEPS: u64 = 5;

/// The course of one flight, from the first arming on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// From one sample to the next, seconds.
    pub every_s: f64,
    /// Each aircraft.
    pub aircraft: Vec<Trace>,
    /// The least distance between any two of which one flew, since the sample before, metres.
    pub separation_m: Vec<Option<f64>>,
    /// Mean distance of the followers from their slots since the sample before, metres; none outside the mission.
    pub error_m: Vec<Option<f64>>,
    /// Receptions since the sample before, of which the channel prevented some: all, and those.
    pub receptions: Vec<(u64, u64)>,
    #[serde(skip)]
    steps: Steps,
}

/// One aircraft.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Where it was: centimetres east, north and up of the bench's origin.
    pub place_cm: Vec<[i32; 3]>,
    /// Charge of its battery, per cent, as its agent knew it.
    pub battery_percent: Vec<Option<u8>>,
    /// When its protocol entered which state, seconds after the beginning.
    pub states: Vec<(f64, String)>,
}

/// What is under way.
#[derive(Clone, Debug, Default, PartialEq)]
struct Steps {
    began: Option<Instant>,
    /// Since the last sample.
    count: u64,
    /// Of a sample.
    of_sample: u64,
    nearest_m: f64,
    /// Count and sum of errors at the last sample.
    errors: (u64, f64),
    /// Sent to and lost by receivers at the last sample.
    receptions: (u64, u64),
}

impl Course {
    /// Takes the world as it is after a step of the operator.
    pub(crate) fn on_step(&mut self, world: &World, step: Duration) {
        let truths: Vec<_> = (0..world.count()).map(|i| world.truth(i)).collect();
        if self.steps.began.is_none() {
            if !truths.iter().any(|truth| truth.armed) {
                return;
            }
            self.begin(world, step);
        }
        let places: Vec<DVec3> = (0..world.count()).map(|i| world.place(i)).collect();
        let flies = |i: usize| truths[i].armed && !truths[i].landed;
        for (i, place) in places.iter().enumerate() {
            for (j, other) in places.iter().enumerate().skip(i + 1) {
                if flies(i) || flies(j) {
                    self.steps.nearest_m = self.steps.nearest_m.min(place.distance(*other));
                }
            }
        }
        let at_s = world.now().since(self.steps.began.unwrap_or_default()).as_secs_f64();
        let batteries = (0..world.count()).map(|i| world.agent_of(i).sample(world.now()).battery_percent);
        let is_due = self.steps.count == 0;
        for ((i, trace), battery) in self.aircraft.iter_mut().enumerate().zip(batteries) {
            let state = world.agent_of(i).view().state;
            let name = if world.is_dead(i) { "no companion".to_owned() } else { state.to_string() };
            if trace.states.last().is_none_or(|(_, last)| *last != name) {
                trace.states.push((at_s, name));
            }
            if is_due {
                trace.place_cm.push((places[i] * 100.0).round().to_array().map(|cm| cm as i32));
                trace.battery_percent.push(battery);
            }
        }
        if is_due {
            self.sample(world);
        }
        self.steps.count = (self.steps.count + 1) % self.steps.of_sample;
    }

    fn begin(&mut self, world: &World, step: Duration) {
        self.every_s = step.as_secs_f64() * STEPS as f64;
        self.aircraft = vec![Trace::default(); world.count()];
        self.steps = Steps {
            began: Some(world.now()),
            count: 0,
            of_sample: STEPS,
            nearest_m: f64::INFINITY,
            errors: errors(world),
            receptions: receptions(world),
        };
    }

    fn sample(&mut self, world: &World) {
        let nearest_m = std::mem::replace(&mut self.steps.nearest_m, f64::INFINITY);
        self.separation_m.push(Some(nearest_m).filter(|m| m.is_finite()));
        let (count, sum) = errors(world);
        let (count_before, sum_before) = std::mem::replace(&mut self.steps.errors, (count, sum));
        let new = count.saturating_sub(count_before);
        self.error_m.push((new > 0).then(|| (sum - sum_before) / new as f64));
        let (all, lost) = receptions(world);
        let (all_before, lost_before) = std::mem::replace(&mut self.steps.receptions, (all, lost));
        self.receptions.push((all.saturating_sub(all_before), lost.saturating_sub(lost_before)));
        if self.separation_m.len() >= SAMPLES_MOST {
            self.thin();
        }
    }

    /// Of each two samples the first stays; what is of a stretch of time becomes that of both.
    fn thin(&mut self) {
        let least = |pair: &[Option<f64>]| pair.iter().flatten().copied().reduce(f64::min);
        self.separation_m = self.separation_m.chunks(2).map(least).collect();
        let mean = |pair: &[Option<f64>]| {
            let known: Vec<f64> = pair.iter().flatten().copied().collect();
            wingbeat_linktest::statistics::mean(known)
        };
        self.error_m = self.error_m.chunks(2).map(mean).collect();
        let sum = |pair: &[(u64, u64)]| pair.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        self.receptions = self.receptions.chunks(2).map(sum).collect();
        for trace in &mut self.aircraft {
            trace.place_cm = trace.place_cm.iter().copied().step_by(2).collect();
            trace.battery_percent = trace.battery_percent.iter().copied().step_by(2).collect();
        }
        self.every_s *= 2.0;
        self.steps.of_sample *= 2;
    }

    /// How long it is, seconds.
    pub fn duration_s(&self) -> f64 {
        self.separation_m.len().saturating_sub(1) as f64 * self.every_s
    }

    /// How long each aircraft was in each state, seconds, by the state's first occurrence.
    pub fn time_in_states(&self) -> Vec<(&str, Vec<f64>)> {
        let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
        for (i, trace) in self.aircraft.iter().enumerate() {
            for (from_s, to_s, state) in trace.stays(self.duration_s()) {
                let index = all.iter().position(|(known, _)| *known == state).unwrap_or_else(|| {
                    all.push((state, vec![0.0; self.aircraft.len()]));
                    all.len() - 1
                });
                all[index].1[i] += to_s - from_s;
            }
        }
        all
    }
}

impl Trace {
    /// Its stays in states: from, to and where, in a flight of this length, seconds.
    pub fn stays(&self, duration_s: f64) -> impl Iterator<Item = (f64, f64, &str)> {
        let ends = self.states.iter().skip(1).map(|(at_s, _)| *at_s);
        let ends = ends.chain([duration_s]);
        self.states
            .iter()
            .zip(ends)
            .map(|((from_s, state), to_s)| (*from_s, to_s.max(*from_s), state.as_str()))
    }
}

/// Count and sum of the distances from slots so far: of a formation behind a piloted leader, or of one on a mission.
fn errors(world: &World) -> (u64, f64) {
    let of = |spread: &Spread| (spread.count(), spread.mean() * spread.count() as f64);
    let observer = world.observer();
    match observer.following().formation.of_samples() {
        following if following.count() > 0 => of(following),
        _ => of(&observer.swarm().distance_offset),
    }
}

/// Receptions that could have happened so far, and those that did not.
fn receptions(world: &World) -> (u64, u64) {
    let counters = world.channel_counters();
    (counters.delivered + counters.lost, counters.lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::fly_traced;
    use crate::scenario::{Scenario, SwarmTask, Task, staircase};

    #[test]
    fn the_course_of_a_flight_is_what_its_figures_say() {
        let mut scenario = Scenario::muscop("stairs", staircase(3, 400.0, 10.0));
        let Task::Swarm(SwarmTask { aircraft, .. }) = &mut scenario.task else { panic!("a swarm") };
        *aircraft = 3;
        let (flight, course) = fly_traced(&scenario, 5, Duration::from_secs(900), None).unwrap();
        assert!(flight.succeeded());
        assert_eq!(flight, crate::flight::fly(&scenario, 5, Duration::from_secs(900)).unwrap());
        let samples = course.separation_m.len();
        assert!(samples < SAMPLES_MOST && course.aircraft.len() == 3, "{samples}");
        assert!(course.aircraft.iter().all(|trace| trace.place_cm.len() == samples));
        let least_m = course.separation_m.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        assert!((least_m - flight.swarm.separation_min_m).abs() < 0.5, "{least_m}, {:?}", flight.swarm);
        for (trace, figures) in course.aircraft.iter().zip(&flight.aircraft) {
            let place_m = |cm: &[i32; 3]| cm.map(|cm| f64::from(cm) / 100.0);
            let pairs = trace.place_cm.windows(2);
            let path_m: f64 =
                pairs.map(|pair| DVec3::from(place_m(&pair[0])).distance(place_m(&pair[1]).into())).sum();
            assert!((path_m / figures.distance_m - 1.0).abs() < 0.02, "{path_m}, {figures:?}");
            assert_eq!(trace.states.last().unwrap().1, "Finished");
        }
        let sums = course.time_in_states();
        for i in 0..3 {
            let sum_s: f64 = sums.iter().map(|(_, times)| times[i]).sum();
            assert!((sum_s - course.duration_s()).abs() < 1.0, "{sum_s}, {}", course.duration_s());
        }
        let (all, lost) = course.receptions.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(all > 100 && lost <= flight.radio.lost && all <= flight.radio.delivered + flight.radio.lost);
        let worst_m = course.error_m.iter().flatten().copied().fold(0.0, f64::max);
        assert!(worst_m > 0.0 && worst_m <= flight.swarm.distance_offset.max(), "{worst_m}");
        assert!(course.aircraft.iter().all(|trace| trace.battery_percent.last().unwrap().is_some()));
    }

    #[test]
    fn a_long_flight_is_thinned() {
        let mut course = Course { every_s: 1.0, aircraft: vec![Trace::default()], ..Course::default() };
        course.steps.of_sample = 5;
        for i in 0..4 {
            course.separation_m.push((i != 1).then_some(10.0 - f64::from(i)));
            course.error_m.push((i < 3).then_some(f64::from(i)));
            course.receptions.push((10, i as u64));
            course.aircraft[0].place_cm.push([i, 0, 0]);
            course.aircraft[0].battery_percent.push(Some(i as u8));
        }
        course.thin();
        assert_eq!(course.separation_m, [Some(10.0), Some(7.0)]);
        assert_eq!(course.error_m, [Some(0.5), Some(2.0)]);
        assert_eq!(course.receptions, [(20, 1), (20, 5)]);
        assert_eq!(course.aircraft[0].place_cm, [[0, 0, 0], [2, 0, 0]]);
        assert_eq!((course.every_s, course.steps.of_sample, course.duration_s()), (2.0, 10, 2.0));
    }
}
