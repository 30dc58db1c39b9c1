//! What really happened: the checkers that sample the truth of every aircraft, never at what agents
//! believe, and the figures of a flight.
//!
//! Separation is judged by the closest approach *within* each interval between two samples (straight
//! motion between them), so nothing slips between samples.

use crate::encounters::{Encounter, Encounters};
use crate::following::{Following, Slave};
use serde::{Deserialize, Serialize};
use wingbeat_agent::Phase;
use wingbeat_geo::approach::nearest_between;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};

/// The truth of one aircraft at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// East, north, up of a common origin, metres.
    pub local: DVec3,
    /// Velocity, metres per second.
    pub velocity: DVec3,
    /// Motors armed.
    pub armed: bool,
    /// On the ground.
    pub landed: bool,
    /// How far its flight has come, as the agent reports it.
    pub phase: Phase,
    /// Whether it leads the flight.
    pub leader: bool,
    /// Where it should be from the middle of the formation, east and north, metres.
    pub slot_offset: Option<DVec3>,
    /// Where its nose points, clockwise from north.
    pub heading_rad: f64,
    /// Where it should be from the leader in a formation that turns with the leader: right of the leader's
    /// nose and ahead, metres.
    pub slot_in_heading: Option<DVec2>,
}

/// Figures of one aircraft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AircraftFigures {
    /// From arming to disarming, seconds.
    pub flight_time_s: f64,
    /// Distance flown, metres.
    pub distance_m: f64,
    /// Mean distance between where it was and where it should have been from the leader, during the
    /// mission (thesis equation 6.3), metres.
    pub error_mean_m: f64,
    /// The largest of those.
    pub error_max_m: f64,
    /// Whether it ended in state Finished, on the ground, disarmed.
    pub completed: bool,
    /// Whether it is on the ground, disarmed, whatever became of its flight.
    pub is_down: bool,
}

/// Mean, maximum and standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    max: f64,
}

impl Spread {
    /// Adds one value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
        self.max = self.max.max(value);
    }
    /// Adds all values of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.max = self.max.max(other.max);
    }
    /// Mean; zero of nothing.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
    /// Largest; zero of nothing.
    pub fn max(&self) -> f64 {
        self.max
    }
    /// Standard deviation over all values.
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        libm::sqrt((self.sum_of_squares / self.count as f64 - self.mean() * self.mean()).max(0.0))
    }
    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Two aircraft that came too close.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collision {
    /// Simulated time.
    pub at: Instant,
    /// The pair, the lower index first.
    pub pair: (usize, usize),
    /// How close, metres.
    pub distance_m: f64,
}

/// Figures of the whole swarm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SwarmFigures {
    /// From the start of the mission to the leader's landing, seconds.
    pub mission_time_s: f64,
    /// The closest that two aircraft ever were while one of them flew, metres.
    #[serde(with = "wingbeat_geo::unbounded")]
    pub separation_min_m: f64,
    /// Pairs closer than the limit, once each.
    pub collisions: Vec<Collision>,
    /// Distance offset of all followers (thesis equation 6.3), metres.
    pub distance_offset: Spread,
    /// Time offset: distance offset over own speed, where that is at least 0.5 m/s, seconds.
    pub time_offset: Spread,
}

/// Below this speed the time offset is not taken: it divides by the speed.
const SPEED_LEAST_M_S: f64 = 0.5;

/// More than a distance is wrong by rounding, metres.
const ROUNDING_M: f64 = 1e-6;

/// Samples all aircraft periodically.
pub struct Observer {
    collision_distance_m: f64,
    last: Option<(Instant, Vec<Sample>)>,
    aircraft: Vec<AircraftFigures>,
    errors: Vec<Spread>,
    swarm: SwarmFigures,
    mission: Option<Instant>,
    mission_over: bool,
    encounters: Encounters,
    following: Following,
    slaves: Vec<Slave>,
}

impl Observer {
    /// For `count` aircraft; closer than `collision_distance_m` counts as a collision.
    pub fn new(count: usize, collision_distance_m: f64) -> Self {
        Self {
            collision_distance_m,
            last: None,
            aircraft: vec![AircraftFigures::default(); count],
            errors: vec![Spread::default(); count],
            swarm: SwarmFigures { separation_min_m: f64::INFINITY, ..SwarmFigures::default() },
            mission: None,
            mission_over: false,
            encounters: Encounters::default(),
            following: Following::default(),
            slaves: Vec::new(),
        }
    }

    /// Takes a sample. Call it every 100 ms.
    ///
    /// # Panics
    /// If the number of samples is not the number of aircraft.
    pub fn sample(&mut self, now: Instant, samples: &[Sample]) {
        assert_eq!(samples.len(), self.aircraft.len(), "one sample per aircraft");
        self.follow_mission(now, samples);
        if let Some((before, last)) = self.last.take() {
            let step = now.since(before);
            self.move_on(step, &last, samples);
            self.separate(now, &last, samples);
            self.encounters.sample(now, &last, samples);
        }
        self.last = Some((now, samples.to_vec()));
    }

    fn follow_mission(&mut self, now: Instant, samples: &[Sample]) {
        let Some(leader) = samples.iter().find(|s| s.leader) else { return };
        if !matches!(leader.phase, Phase::Waiting | Phase::Moving) || self.mission_over {
            self.mission_over |= self.mission.is_some();
            return;
        }
        let began = *self.mission.get_or_insert(now);
        self.swarm.mission_time_s = now.since(began).as_secs_f64();
        if leader.phase == Phase::Moving && leader.slot_in_heading.is_some() {
            let slave = |s: &Sample| {
                let (place, flies) = (s.local.truncate(), s.armed && !s.landed);
                Some(Slave { place, slot: s.slot_in_heading?, flies })
            };
            self.slaves.clear();
            self.slaves.extend(samples.iter().filter(|s| !s.leader).filter_map(slave));
            self.following.sample(leader.local.truncate(), leader.heading_rad, &self.slaves);
        }
        // The centre's successor leads from its own slot.
        let middle = leader.local - leader.slot_offset.unwrap_or_default();
        for (i, s) in samples.iter().enumerate() {
            let Some(offset) = s.slot_offset.filter(|_| !s.leader) else { continue };
            let error_m = (middle + offset - s.local).truncate().length();
            self.errors[i].add(error_m);
            self.swarm.distance_offset.add(error_m);
            let speed_m_s = s.velocity.truncate().length();
            if speed_m_s >= SPEED_LEAST_M_S {
                self.swarm.time_offset.add(error_m / speed_m_s);
            }
        }
    }

    fn move_on(&mut self, step: Duration, last: &[Sample], samples: &[Sample]) {
        for ((figures, a), b) in self.aircraft.iter_mut().zip(last).zip(samples) {
            if b.armed {
                figures.flight_time_s += step.as_secs_f64();
                figures.distance_m += a.local.distance(b.local);
            }
            figures.is_down = !b.armed && b.landed;
            figures.completed = b.phase == Phase::Finished && figures.is_down;
        }
    }

    fn separate(&mut self, now: Instant, last: &[Sample], samples: &[Sample]) {
        for a in 0..samples.len() {
            for b in a + 1..samples.len() {
                let flies = |i: usize| samples[i].armed && !samples[i].landed;
                if !flies(a) && !flies(b) {
                    continue;
                }
                let (before, after) = (last[a].local - last[b].local, samples[a].local - samples[b].local);
                // Most pairs are far apart all the way: they change neither of the two figures.
                let limit_m = self.swarm.separation_min_m.max(self.collision_distance_m) + ROUNDING_M;
                let beyond = |p: f64, q: f64| p.min(q) > limit_m || p.max(q) < -limit_m;
                if beyond(before.x, after.x) || beyond(before.y, after.y) {
                    continue;
                }
                let distance_m = nearest_between(before, after).length();
                self.swarm.separation_min_m = self.swarm.separation_min_m.min(distance_m);
                let known = |c: &Collision| c.pair == (a, b);
                if distance_m < self.collision_distance_m && !self.swarm.collisions.iter().any(known) {
                    self.swarm.collisions.push(Collision { at: now, pair: (a, b), distance_m });
                }
            }
        }
    }

    /// Figures of every aircraft so far.
    pub fn aircraft(&self) -> Vec<AircraftFigures> {
        let with_error = |(f, e): (&AircraftFigures, &Spread)| AircraftFigures {
            error_mean_m: e.mean(),
            error_max_m: e.max(),
            ..*f
        };
        self.aircraft.iter().zip(&self.errors).map(with_error).collect()
    }

    /// Encounters so far, those under way with them.
    pub fn encounters(&self) -> &[Encounter] {
        self.encounters.all()
    }

    /// How well the slaves followed so far, in a formation that turns with its leader.
    pub fn following(&self) -> &Following {
        &self.following
    }

    /// Figures of the swarm so far.
    pub fn swarm(&self) -> &SwarmFigures {
        &self.swarm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flying(x: f64, vx: f64, phase: Phase, leader: bool) -> Sample {
        Sample {
            local: DVec3::new(x, 0.0, 20.0),
            velocity: DVec3::new(vx, 0.0, 0.0),
            armed: true,
            landed: false,
            phase,
            leader,
            slot_offset: Some(DVec3::new(if leader { 0.0 } else { 50.0 }, 0.0, 0.0)),
            heading_rad: 0.0,
            slot_in_heading: None,
        }
    }

    #[test]
    fn a_pass_between_two_samples_is_seen() {
        let mut observer = Observer::new(2, 5.0);
        observer.sample(
            Instant::ZERO,
            &[flying(0.0, 10.0, Phase::Start, true), flying(30.0, -10.0, Phase::Start, false)],
        );
        observer.sample(
            Instant::from_secs(3),
            &[flying(30.0, 10.0, Phase::Start, true), flying(0.0, -10.0, Phase::Start, false)],
        );
        assert_eq!(observer.swarm().separation_min_m, 0.0);
        assert_eq!(observer.swarm().collisions.len(), 1);
        assert_eq!(observer.aircraft()[0].distance_m, 30.0);
    }

    #[test]
    fn a_pass_of_aircraft_far_apart_at_both_samples_is_seen() {
        let mut observer = Observer::new(3, 5.0);
        for (second, third_m) in [(0, 300.0), (1, 300.0), (2, -300.0)] {
            if second == 2 {
                assert_eq!(observer.swarm().separation_min_m, 12.0);
            }
            let places_m = [0.0, 12.0, third_m];
            let samples = places_m.map(|x| flying(x, 0.0, Phase::Moving, false));
            observer.sample(Instant::from_secs(second), &samples);
        }
        assert_eq!(observer.swarm().separation_min_m, 0.0);
        let pairs: Vec<_> = observer.swarm().collisions.iter().map(|c| c.pair).collect();
        assert_eq!(pairs, [(0, 2), (1, 2)]);
    }

    #[test]
    fn a_leader_in_another_slot_than_the_middle_is_measured_from_there() {
        let mut observer = Observer::new(2, 5.0);
        let mut leader = flying(50.0, 2.0, Phase::Moving, true);
        leader.slot_offset = Some(DVec3::new(50.0, 0.0, 0.0));
        let mut follower = flying(-47.0, 2.0, Phase::Moving, false);
        follower.slot_offset = Some(DVec3::new(-50.0, 0.0, 0.0));
        observer.sample(Instant::ZERO, &[leader, follower]);
        assert_eq!(observer.swarm().distance_offset.max(), 3.0);
    }

    #[test]
    fn errors_count_during_the_mission_only() {
        let mut observer = Observer::new(2, 5.0);
        for (second, phase, follower_m) in [
            (0, Phase::Ready, 90.0),
            (1, Phase::Moving, 52.0),
            (2, Phase::Waiting, 54.0),
            (3, Phase::Ending, 99.0),
        ] {
            let samples = [flying(0.0, 2.0, phase, true), flying(follower_m, 2.0, phase, false)];
            observer.sample(Instant::from_secs(second), &samples);
        }
        let figures = observer.aircraft()[1];
        assert_eq!((figures.error_mean_m, figures.error_max_m), (3.0, 4.0));
        assert_eq!(observer.swarm().mission_time_s, 1.0);
        assert_eq!(observer.swarm().time_offset.mean(), 1.5);
    }
}
