//! The section of a plan in which a formation follows a piloted leader (FollowMe).

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use wingbeat_geo::Duration;

use crate::scenario::follow::LeaderPilot;
use crate::scenario::{FollowTask, Scenario, Task};

/// Flights that follow a leader.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// The leader's pilot: `published`, `drawn:SECONDS` or `trace:FILE`.
    pub pilot: String,
    /// Height at which the followers assemble, metres above home.
    pub height_m: f64,
    /// Speed of the followers, metres per second.
    pub speed_m_s: f64,
    /// Standard deviation of the wandering heading error, degrees.
    pub heading_noise_deg: f64,
    /// Standard deviation of the wandering position error, metres.
    #[serde(default)]
    pub gps_noise_m: f64,
    /// Highest speed of the outermost slot that is due to a turn of the formation, metres per second; without it the
    /// formation turns with every yaw of the leader, as published.
    pub turn_m_s: Option<f64>,
    /// Rows of the table.
    pub series: Vec<Series>,
}

/// Flights that differ in one or more of these: every number with every other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Which figure or table it is, as text.
    pub name: String,
    /// `linear`, `matrix` or `circular`.
    pub formation: Vec<String>,
    /// Numbers of aircraft, the leader among them.
    pub aircraft: Vec<usize>,
    /// Distances between slots in flight, metres.
    pub distance_m: Vec<f64>,
    /// How often the leader broadcasts its position, milliseconds.
    pub refresh_ms: Vec<u64>,
}

impl Follow {
    /// Every flight of every series.
    pub(crate) fn scenarios(&self) -> Result<Vec<Scenario>> {
        let pilot: LeaderPilot = self.pilot.parse().map_err(|e| anyhow!("follow.pilot: {e}"))?;
        let noise_deg = self.heading_noise_deg;
        ensure!(
            (0.0..=30.0).contains(&noise_deg),
            "follow.heading_noise_deg: found {noise_deg}, expected 0 to 30"
        );
        let mut all = Vec::new();
        for series in &self.series {
            for ((formation, &aircraft), (&distance_m, &refresh_ms)) in
                pairs(&series.formation, &series.aircraft)
                    .flat_map(|a| pairs(&series.distance_m, &series.refresh_ms).map(move |b| (a, b)))
            {
                let layout = formation.parse().map_err(|e| anyhow!("follow.series.formation: {e}"))?;
                let task = FollowTask {
                    aircraft,
                    layout,
                    distance_m,
                    height_m: self.height_m,
                    speed_m_s: self.speed_m_s,
                    refresh: Duration::from_millis(refresh_ms),
                    heading_noise_rad: noise_deg.to_radians(),
                    turn_m_s: self.turn_m_s.unwrap_or(f64::INFINITY),
                    pilot: pilot.clone(),
                    ..FollowTask::new()
                };
                let mut scenario = Scenario::new(&series.name, Task::Follow(task));
                scenario.gps_noise_m = self.gps_noise_m;
                all.push(scenario);
            }
        }
        ensure!(!all.is_empty(), "follow.series: found no flight, expected one or more");
        Ok(all)
    }

    /// Keeps only flights of this many aircraft.
    pub(crate) fn keep(&mut self, aircraft: Option<usize>) -> Result<()> {
        let Some(aircraft) = aircraft else { return Ok(()) };
        self.series.iter_mut().for_each(|s| s.aircraft.retain(|n| *n == aircraft));
        self.series.retain(|s| !s.aircraft.is_empty());
        if self.series.is_empty() {
            bail!("aircraft: found {aircraft}, which no series of the plan flies");
        }
        Ok(())
    }
}

fn pairs<'a, A, B>(a: &'a [A], b: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    a.iter().flat_map(move |x| b.iter().map(move |y| (x, y)))
}

/// The plan's pilot, another than its own.
pub(crate) fn set_pilot(follow: Option<&mut Follow>, pilot: &str) -> Result<()> {
    let follow = follow.context("pilot: found one, expected none: no leader is piloted in this plan")?;
    follow.pilot = pilot.to_owned();
    Ok(())
}
