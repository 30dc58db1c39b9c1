//! Sweep: a swarm searches an area in parallel lanes. Every aircraft is handed the same area and cuts its own
//! strip from it; no messages are exchanged. The worked example of `docs/protocols/writing-one.md`.
//!
//! The operator's mission is the area, by three corners: the lanes lead from the first to the second, and the
//! strips lie side by side from the second to the third.
//!
//! ```text
//!      second corner          third corner
//!        ┌──▲──┬──┬──▲──┬──┬──▲──┐
//!        │  │  │  ▼  │  │  ▼  │  │  ...   lanes, there and back
//!        └──┴──┴──┴──┴──┴──┴──┴──┘
//!      first corner
//!        aircraft 0 │ aircraft 1 │ ...    strips
//! ```
//!
//! It promises that all lanes lie evenly side by side over the whole area, no farther apart than asked,
//! and what [`Mission`] promises, which flies each strip.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use wingbeat_geo::{DVec2, Frame, Instant, Position};
use wingbeat_wire::{Point, VehicleId};

use crate::{
    Actions, Command, ConfigError, Configuration, Denied, Details, Fence, Input, Mission, MissionError,
    MissionExtras, Protocol, Route, SwarmView, View, mission,
};

/// What one aircraft is configured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How it flies its strip.
    pub mission: mission::Config,
    /// How many aircraft share the area.
    pub aircraft: usize,
    /// Which strip is ours, from 0.
    pub strip: usize,
    /// Lanes are no farther apart than this, metres.
    pub lane_distance_m: f64,
}

impl Config {
    /// Lanes 20 m apart.
    pub fn new(me: VehicleId, strip: usize, aircraft: usize) -> Self {
        Self { mission: mission::Config::new(me), aircraft, strip, lane_distance_m: 20.0 }
    }
}

impl Configuration for Config {
    type Machine = Sweep;
    const SECTION: &'static str = "sweep";

    fn me(&self) -> VehicleId {
        self.mission.me
    }
    fn heights_m(&self) -> (f64, f64) {
        self.mission.heights_m()
    }
    fn check(&self) -> Result<(), ConfigError> {
        ConfigError::aircraft(self.aircraft, 1)?;
        ConfigError::range("strip", self.strip as f64, 0.0, (self.aircraft - 1) as f64)?;
        ConfigError::distance("lane_distance_m", self.lane_distance_m)?;
        self.mission.check().map_err(|error| error.within(mission::Config::SECTION))
    }
    fn begin(&self, _: u64, _: Instant) -> Sweep {
        Sweep { mission: Mission::new(self.mission.clone()), config: self.clone() }
    }
}

/// The sweep of one aircraft.
pub struct Sweep {
    config: Config,
    mission: Mission,
}

impl Sweep {
    /// The lanes of our strip, one after the other.
    fn lanes(&self, area: &[Point]) -> Result<Route, MissionError> {
        let &[first, second, third] = area else {
            return Err(MissionError::Corners { found: area.len() });
        };
        let position =
            |p: Point| Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
        let frame = Frame::new(position(first));
        let local = |p: Point| frame.to_local(position(p)).truncate();
        let (along, side) = (local(second), local(third) - local(second));
        let length_m = along.length();
        if length_m < 1.0 {
            return Err(MissionError::LaneLength { found_m: length_m });
        }
        let across = DVec2::new(along.y, -along.x) / length_m;
        let width_m = side.dot(across);
        let strip_m = width_m / self.config.aircraft as f64;
        let lanes = libm::ceil(strip_m.abs() / self.config.lane_distance_m).max(1.0);
        let mut route = Route::new();
        for lane in 0..lanes as usize {
            let beside_m = strip_m * (self.config.strip as f64 + (lane as f64 + 0.5) / lanes);
            let ends = [across * beside_m, across * beside_m + along];
            let [from, to] = if lane % 2 == 0 { ends } else { [ends[1], ends[0]] };
            for place in [from, to] {
                let there = frame.to_position(place.extend(0.0));
                let Position { latitude_e7, longitude_e7, .. } = there;
                let point = Point { latitude_e7, longitude_e7, height_mm: first.height_mm };
                route.push(point).map_err(|_| MissionError::Lanes { found: lanes })?;
            }
        }
        Ok(route)
    }
}

impl Protocol for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }
    fn set_mission(&mut self, area: &[Point], extras: &MissionExtras) -> Result<(), MissionError> {
        let lanes = self.lanes(area)?;
        self.mission.set_mission(&lanes, &extras.of_lanes()?)
    }
    fn extras(&self) -> &MissionExtras {
        self.mission.extras()
    }
    fn takes_up(&self) -> bool {
        self.mission.takes_up()
    }
    fn hold_found(&mut self, now: Instant, out: &mut Actions) {
        self.mission.hold_found(now, out);
    }
    fn take_up(
        &mut self,
        lanes: &[Point],
        extras: &MissionExtras,
        reached: Option<u16>,
    ) -> Result<(), MissionError> {
        self.mission.take_up(lanes, extras, reached)
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Actions) {
        self.mission.handle(now, input, out);
    }
    fn poll_timeout(&self) -> (Instant, &'static str) {
        self.mission.poll_timeout()
    }
    fn permits(&self, command: Command) -> Result<(), Denied> {
        self.mission.permits(command)
    }
    fn route(&self) -> &[Point] {
        self.mission.route()
    }
    fn fence(&self) -> Fence {
        self.mission.fence()
    }
    fn view(&self) -> View {
        let Config { aircraft, strip, .. } = self.config;
        let swarm = SwarmView { size: aircraft, slot: Some(strip), formation: "lanes", ..SwarmView::ALONE };
        View { swarm, ..self.mission.view() }
    }
    fn details(&self) -> Details {
        self.mission.details()
    }
}
