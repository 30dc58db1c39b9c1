//! An aircraft without a position of its own, guided by nodes on the ground that know theirs (Park et al. 2020, section 8.2): it
//! broadcasts its schedule, each node that receives it answers with a vector from itself to a waypoint of the schedule, and the aircraft
//! flies along the sum of these vectors, the nearer the node the heavier. Who receives whom is ns-3's to decide, event by event.
//!
//! A node's vector is g = pₘ₊ₖ − pₙ, where pₘ is the waypoint nearest to the node and k the plan's `resolution`; the aircraft's direction is
//! D = Σ g/d over the nodes that answered, d its distance to each, and its heading has a Gaussian error. The aircraft is a point with
//! a speed and a heading.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use serde::Deserialize;
use wingbeat_cosim::ns3::Config;
use wingbeat_geo::{DVec2, DVec3, Duration, Instant};
use wingbeat_sim::medium::{Medium as _, Reception};
use wingbeat_sim::rng;

use crate::lockstep;

/// How often the point moves.
const STEP: Duration = Duration::from_millis(20);
/// Without an answer for so many broadcasts it is not guided any more.
const UNANSWERED_MOST: u32 = 5;
/// A waypoint of the schedule on the air: latitude and longitude.
const WAYPOINT_BYTES: usize = 8;
/// A vector on the air.
const ANSWER_BYTES: usize = 16;
/// The track is measured against so many pieces of the path.
const PIECES: usize = 2_000;
/// ns-3's radios.
const NODES_MOST: usize = 900;

/// The section of a plan.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guidance {
    /// Distance between neighbours of the square grid of nodes, metres: a row of the table each.
    pub intervals_m: Vec<f64>,
    /// The grid's corners, metres east and north.
    pub grid_east_north_m: [[f64; 2]; 2],
    /// The path is y = a x² + b x, from x = 0 to `end_m`.
    pub a_per_m: f64,
    /// Its b.
    pub b: f64,
    /// Where it ends, metres east.
    pub end_m: f64,
    /// Waypoints of the schedule.
    pub waypoints: usize,
    /// The k of the paper: a node points so many waypoints beyond that which is nearest to it.
    pub resolution: usize,
    /// Of the aircraft, metres per second.
    pub speed_m_s: f64,
    /// And its height, metres; nodes stand at 1.5 m.
    pub height_m: f64,
    /// Standard deviation of its heading's error, degrees.
    pub heading_error_deg: f64,
    /// From broadcast to broadcast, seconds.
    pub period_s: f64,
    /// Nodes answer after a time up to this, drawn for each answer, seconds.
    pub answer_within_s: f64,
}

/// What a flight came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Guided {
    nodes: usize,
    /// Root of the mean square distance from the path.
    rms_m: f64,
    most_m: f64,
    /// Where it was in the end.
    end: DVec2,
    /// Whether it came to the end of the path.
    arrived: bool,
    /// Answers received for each broadcast, mean.
    answers: f64,
    /// Hash over positions and receptions.
    pub trace_hash: u64,
    /// Time flown.
    pub duration: Duration,
}

fn within(key: &str, found: f64, low: f64, high: f64) -> Result<()> {
    ensure!((low..=high).contains(&found), "guidance.{key}: found {found}, expected {low} to {high}");
    Ok(())
}

impl Guidance {
    /// Refuses what cannot be flown.
    ///
    /// # Errors
    /// Names the key, what was found and what was expected.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.intervals_m.is_empty(), "guidance.intervals_m: found none, expected one or more");
        for corner in self.grid_east_north_m.iter().flatten() {
            within("grid_east_north_m", *corner, -10_000.0, 10_000.0)?;
        }
        for &interval_m in &self.intervals_m {
            within("intervals_m", interval_m, 1.0, 1_000.0)?;
            let found = self.grid(interval_m).len();
            ensure!(
                (1..=NODES_MOST).contains(&found),
                "guidance.intervals_m: found {interval_m}, which is {found} nodes, expected 1 to {NODES_MOST}"
            );
        }
        within("a_per_m", self.a_per_m, -10.0, 10.0)?;
        within("b", self.b, -100.0, 100.0)?;
        within("end_m", self.end_m, 1.0, 10_000.0)?;
        within("waypoints", self.waypoints as f64, 2.0, 180.0)?;
        within("resolution", self.resolution as f64, 1.0, self.waypoints as f64 - 1.0)?;
        within("speed_m_s", self.speed_m_s, 0.1, 30.0)?;
        within("height_m", self.height_m, 0.0, 500.0)?;
        within("heading_error_deg", self.heading_error_deg, 0.0, 180.0)?;
        within("period_s", self.period_s, 0.05, 60.0)?;
        within("answer_within_s", self.answer_within_s, 0.0, self.period_s)
    }

    /// Nodes at each interval from corner to corner.
    fn grid(&self, interval_m: f64) -> Vec<DVec2> {
        let [from, to] = self.grid_east_north_m.map(DVec2::from_array);
        let count = |metres: f64| (metres / interval_m + 1e-9).max(-1.0).floor() as i64 + 1;
        let (columns, rows) = (count(to.x - from.x), count(to.y - from.y));
        if columns.saturating_mul(rows) > NODES_MOST as i64 {
            return vec![from; NODES_MOST + 1];
        }
        let at = |i: i64| from + DVec2::new((i / rows) as f64, (i % rows) as f64) * interval_m;
        (0..columns.max(0) * rows.max(0)).map(at).collect()
    }

    fn on_path(&self, share: f64) -> DVec2 {
        let x = self.end_m * share;
        DVec2::new(x, self.a_per_m * x * x + self.b * x)
    }

    /// Flies it at one interval.
    ///
    /// # Errors
    /// ns-3 is not there or ends.
    pub fn fly(&self, interval_m: f64, config: &Config, seed: u64, limit: Duration) -> Result<Guided> {
        let nodes = self.grid(interval_m);
        let last = self.waypoints - 1;
        let schedule: Vec<DVec2> = (0..=last).map(|i| self.on_path(i as f64 / last as f64)).collect();
        let guidance: Vec<Option<DVec2>> = nodes.iter().map(|node| self.vector(&schedule, *node)).collect();
        let path: Vec<DVec2> = (0..=PIECES).map(|i| self.on_path(i as f64 / PIECES as f64)).collect();
        let mut air = lockstep::ns3(config, seed, nodes.len() + 1)?;
        let mut draws = rng::child(seed, "guidance", 0);
        let period = Duration::from_micros((self.period_s * 1e6) as u64);
        let mut places: Vec<DVec3> = vec![DVec3::ZERO; 1];
        places.extend(nodes.iter().map(|node| node.extend(1.5)));
        let mut at = schedule[0];
        // It begins as the schedule says.
        let mut direction = (schedule[1] - schedule[0]).normalize_or_zero();
        let (mut now, mut step_at, mut asks_at) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
        let mut pending: Vec<(Instant, usize)> = Vec::new();
        let mut answers: Vec<usize> = Vec::new();
        let (mut asked, mut answered, mut unanswered) = (0_u64, 0_u64, 0);
        let (mut squares_m2, mut most_m, mut samples) = (0.0, 0.0_f64, 0_u64);
        let (mut trace_hash, end) = (0_u64, Instant::ZERO + limit);
        let mut received: Vec<Reception> = Vec::new();
        let schedule_bytes: Arc<[u8]> = Arc::from(vec![0; self.waypoints * WAYPOINT_BYTES]);
        let answer_bytes: Arc<[u8]> = Arc::from([0; ANSWER_BYTES].as_slice());
        while now < end {
            let next_answer = pending.iter().map(|(at, _)| *at).min().unwrap_or(Instant::NEVER);
            let next = step_at.min(asks_at).min(next_answer);
            places[0] = at.extend(self.height_m);
            air.moved(now, &places);
            if air.poll_timeout() <= next {
                air.advance(next, &mut received).map_err(|why| anyhow!("medium: {why}"))?;
            }
            if !received.is_empty() {
                for one in received.drain(..) {
                    trace_hash = trace_hash.rotate_left(7) ^ one.at.as_micros() ^ one.to[0] as u64;
                    match (one.from, one.to[0]) {
                        (0, node) if guidance[node - 1].is_some() => {
                            let late_s = self.answer_within_s * rng::uniform(&mut draws);
                            pending
                                .push((one.at.max(now) + Duration::from_micros((late_s * 1e6) as u64), node));
                        }
                        (node, 0) => answers.push(node - 1),
                        // Nodes receive each other too, and do not listen.
                        _ => {}
                    }
                }
                continue;
            }
            now = next;
            if now == step_at {
                at += direction * (self.speed_m_s * STEP.as_secs_f64());
                step_at = now + STEP;
                let off_m = path.iter().map(|p| p.distance(at)).fold(f64::INFINITY, f64::min);
                squares_m2 += off_m * off_m;
                most_m = most_m.max(off_m);
                samples += 1;
                trace_hash = trace_hash.rotate_left(7) ^ at.x.to_bits() ^ at.y.to_bits().rotate_left(32);
            }
            if now == asks_at {
                let sum: DVec2 = answers
                    .iter()
                    .filter_map(|node| Some(guidance[*node]? / nodes[*node].distance(at).max(1.0)))
                    .sum();
                unanswered = if answers.is_empty() { unanswered + 1 } else { 0 };
                answered += answers.len() as u64;
                if unanswered > UNANSWERED_MOST {
                    break;
                }
                let error_rad = self.heading_error_deg.to_radians() * rng::normal(&mut draws);
                let wanted = if sum == DVec2::ZERO { direction } else { sum.normalize_or_zero() };
                let (sin, cos) = libm::sincos(error_rad);
                direction = DVec2::new(cos, sin).rotate(wanted);
                answers.clear();
                asked += 1;
                air.transmit(now, 0, Arc::clone(&schedule_bytes), &places, &mut received);
                asks_at = now + period;
            }
            for (_, node) in pending.extract_if(.., |(at, _)| *at <= now) {
                air.transmit(now, node, Arc::clone(&answer_bytes), &places, &mut received);
            }
        }
        let goal_m = schedule[last].distance(at);
        Ok(Guided {
            nodes: nodes.len(),
            rms_m: (squares_m2 / samples.max(1) as f64).sqrt(),
            most_m,
            end: at,
            arrived: goal_m <= interval_m.max(schedule[last].distance(schedule[last - 1])) * 2.0,
            answers: answered as f64 / asked.max(1) as f64,
            trace_hash,
            duration: now.since(Instant::ZERO),
        })
    }

    /// A node's vector; none where the aircraft seems to arrive.
    fn vector(&self, schedule: &[DVec2], node: DVec2) -> Option<DVec2> {
        let near = |i: &usize| schedule[*i].distance(node);
        let nearest = (0..schedule.len()).min_by(|a, b| near(a).total_cmp(&near(b)))?;
        Some(*schedule.get(nearest + self.resolution)? - node)
    }
}

/// A row for each interval, with its flights.
pub fn table(rows: &[(f64, &[Guided])]) -> String {
    let mut text = "interval  nodes  flights  arrived  rms error, mean (least to most)  largest  ended at x, y  answers to each broadcast\n".to_owned();
    for (interval_m, flights) in rows {
        let mean = |of: fn(&Guided) -> f64| flights.iter().map(of).sum::<f64>() / flights.len().max(1) as f64;
        let rms = flights.iter().map(|flight| flight.rms_m);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{interval_m:>6} m  {:>5}  {:>7}  {:>7}  {:>8.1} m ({:.1} to {:.1})  {:>12.1} m  {:>6.0}, {:.0}  {:>8.1}",
            flights.first().map_or(0, |flight| flight.nodes),
            flights.len(),
            flights.iter().filter(|flight| flight.arrived).count(),
            mean(|flight| flight.rms_m),
            rms.clone().fold(f64::INFINITY, f64::min),
            rms.fold(0.0, f64::max),
            flights.iter().map(|flight| flight.most_m).fold(0.0, f64::max),
            mean(|flight| flight.end.x),
            mean(|flight| flight.end.y),
            mean(|flight| flight.answers),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plan::Plan;
    use crate::run;

    fn plan() -> Plan {
        Plan::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/plans/dusc-guidance.toml"))).unwrap()
    }

    #[test]
    fn a_node_points_beyond_the_waypoint_that_is_nearest_to_it() {
        let guidance = plan().guidance.unwrap();
        let schedule = [DVec2::ZERO, DVec2::new(10.0, 0.0), DVec2::new(20.0, 0.0)];
        let guidance = Guidance { resolution: 1, ..guidance };
        assert_eq!(guidance.vector(&schedule, DVec2::new(1.0, 5.0)), Some(DVec2::new(9.0, -5.0)));
        assert_eq!(guidance.vector(&schedule, DVec2::new(19.0, 5.0)), None);
        assert_eq!(guidance.grid(40.0).len(), 9);
        for (key, guidance) in [
            ("guidance.intervals_m: found none", Guidance { intervals_m: vec![], ..guidance.clone() }),
            ("expected 1 to 900", Guidance { intervals_m: vec![1.0], ..guidance.clone() }),
            (
                "guidance.speed_m_s: found NaN, expected 0.1 to 30",
                Guidance { speed_m_s: f64::NAN, ..guidance },
            ),
        ] {
            let message = guidance.check().unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        }
    }

    #[test]
    fn many_nodes_guide_better_than_few_and_the_same_seed_flies_the_same_track() {
        if let Err(why) = wingbeat_cosim::ns3::find() {
            println!("skipped: {why:#}");
            return;
        }
        let (mut plan, folder) = (plan(), Path::new("."));
        plan.repeat = 1;
        let guidance = plan.guidance.as_mut().unwrap();
        guidance.intervals_m = vec![16.0, 40.0];
        let config = plan.channel.ns3.config(None, None).unwrap();
        let guidance = plan.guidance.clone().unwrap();
        let fly = |interval_m| guidance.fly(interval_m, &config, 7, plan.time_limit()).unwrap();
        let (many, few) = (fly(16.0), fly(40.0));
        assert!(many.rms_m < few.rms_m && many.answers > few.answers, "{many:?} {few:?}");
        assert_eq!(many, fly(16.0));
        let [one, two] = [1, 2].map(|threads| run::run(&plan, folder, 1, threads).unwrap());
        assert_eq!((&one.table, one.trace_hash), (&two.table, two.trace_hash));
    }
}
