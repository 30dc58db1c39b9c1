//! Flying to a place and noticing that it is reached.

use wingbeat_geo::{Duration, Frame, Instant, Position};
use wingbeat_wire::Point;

use super::{State, Swarm, TakeOff};
use crate::{Action, Actions, Order, push};

impl<F: Copy + PartialEq> Swarm<F> {
    /// Whether we hover at `place`: nearer than the arrival distance over the ground, and at its height
    /// within what the reference allows (1 m up to 20 m, 5 % up to 50 m, 2.5 m above).
    fn is_at(&self, place: Point) -> bool {
        let Some(at) = self.at else { return false };
        let height_m = f64::from(place.height_mm) / 1e3;
        let tolerance_m = match height_m {
            ..=20.0 => 1.0,
            ..=50.0 => 0.05 * height_m,
            _ => 2.5,
        };
        self.distance_m(place).is_some_and(|d| d <= self.config.arrival_m)
            && (at.height_m - height_m).abs() <= tolerance_m
    }

    fn distance_m(&self, place: Point) -> Option<f64> {
        let there =
            Position { latitude_e7: place.latitude_e7, longitude_e7: place.longitude_e7, altitude_mm: 0 };
        Some(Frame::new(there).to_local(self.at?.position).truncate().length())
    }

    pub(super) fn look(&mut self) {
        self.arrived = match self.state {
            State::TakingOff(TakeOff::Climbing) => {
                let enough_m = f64::from(self.first_height_mm()) / 1e3 * 0.95;
                self.at.is_some_and(|at| at.height_m >= enough_m)
            }
            _ => self.target.is_some_and(|t| self.is_at(t)),
        };
    }

    /// Orders the flight to a place and sets when it should long have been reached.
    pub fn fly_to(&mut self, now: Instant, place: Option<Point>, out: &mut Actions) {
        let Some(place) = place else { return };
        self.target = Some(place);
        // Generous: at half a metre per second any wind that can be flown in is beaten.
        let seconds = self.distance_m(place).unwrap_or(0.0) / 0.5 + 60.0;
        self.leg_deadline = now + Duration::from_millis((seconds * 1e3) as u64);
        push(out, Action::Order(Order::FlyTo(place)));
    }
}
