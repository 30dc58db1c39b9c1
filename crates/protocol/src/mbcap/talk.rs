//! What an aircraft tells of itself: its beacons, five a second, with the locations that its state calls for
//! (thesis section 5.1.3).

use super::{
    Action, Actions, Avoidance, DVec3, Instant, Locations, Mbcap, Message, Moving, STANDING_M_S, State, Told,
    Track, WAY_TOLD_M, predict, push,
};
use wingbeat_geo::Position;
use wingbeat_wire::{AGE_MAX_MS, Beacon, Location};

impl Mbcap {
    /// The locations of a new beacon (thesis section 5.1.3).
    fn locations(&self, avoidance: Avoidance) -> Locations {
        let mut locations = Locations::new();
        let moving = Moving {
            at: self.here,
            speed_m_s: self.speed_m_s(),
            acceleration_m_s2: self.acceleration.m_s2(),
            trail: self.trail,
        };
        let current = |locations: &mut Locations| {
            let _ = locations.push(self.here);
        };
        match avoidance {
            Avoidance::GoOnPlease => {
                current(&mut locations);
                if let Some(at) = self.risk_at {
                    let _ = locations.push(at);
                }
            }
            Avoidance::StandStill => {
                current(&mut locations);
                for &waypoint in self.waypoints.iter().skip(self.next()) {
                    let near = waypoint.truncate().distance(self.here.truncate()) < WAY_TOLD_M;
                    if locations.push(waypoint).is_err() || !near {
                        break; // the first that is far is still told
                    }
                }
            }
            _ if moving.speed_m_s < STANDING_M_S => current(&mut locations),
            Avoidance::MovingAside => match self.aside {
                Some(aside) => return predict::straight(&moving, aside, &self.config.prediction),
                None => current(&mut locations),
            },
            _ => {
                let track = Track { waypoints: &self.waypoints, next: self.next(), project: self.project };
                return track.ahead(&moving, &self.config.prediction);
            }
        }
        locations
    }

    pub(super) fn talk(&mut self, now: Instant, out: &mut Actions) {
        let avoidance = match self.state {
            State::Flying(avoidance) => avoidance,
            State::TakingOff | State::Landing => Avoidance::Normal,
            _ => return,
        };
        let (Some(frame), Some((measured_at, _)), true) = (&self.frame, self.at, self.armed()) else {
            return;
        };
        let changed = self.config.renew_at_change && self.told.state != Some(avoidance);
        if changed || self.told.sent.is_multiple_of(self.config.beacons_per_prediction) {
            let locations = self.locations(avoidance);
            let place = |&at: &DVec3| {
                let Position { latitude_e7, longitude_e7, altitude_mm } = frame.to_position(at);
                Location { latitude_e7, longitude_e7, altitude_mm }
            };
            self.told = Told {
                places: locations.iter().map(place).collect(),
                locations,
                measured_at,
                sent: 0,
                state: Some(avoidance),
                speed_m_s: self.speed_m_s(),
            };
        }
        self.told.sent += 1;
        self.told.state = Some(avoidance);
        let age_ms = now.since(self.told.measured_at).as_millis();
        // Where it was so long ago nobody would believe.
        if self.told.locations.is_empty() || age_ms > u128::from(AGE_MAX_MS) {
            return;
        }
        let beacon = Beacon {
            event: self.event,
            state: avoidance,
            landing: self.is_landing(),
            avoiding: self.avoiding,
            planned_speed_cm_s: cm_s(self.config.planned_speed_m_s),
            speed_cm_s: cm_s(self.told.speed_m_s),
            age_ms: age_ms as u16,
            locations: self.told.places.clone(),
        };
        push(out, Action::Broadcast { flight: 0, message: Message::Beacon(beacon) });
    }
}

fn cm_s(speed_m_s: f64) -> u16 {
    libm::round(speed_m_s * 100.0).clamp(0.0, f64::from(u16::MAX)) as u16
}
