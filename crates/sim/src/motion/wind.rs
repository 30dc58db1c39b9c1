//! Wind: a steady mean and gusts that come and go.
//!
//! A gust is an Ornstein-Uhlenbeck process per horizontal axis: normal with the given deviation,
//! forgotten with the given time constant. Stepping it in other strides gives other draws of the same
//! weather, never another weather.

use wingbeat_geo::DVec3;

use super::bounded;
use crate::rng::{Pcg64Mcg, child, normal};

/// What the weather is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindParameters {
    /// Mean speed of the air.
    pub speed_m_s: f64,
    /// Where the wind comes from, clockwise from north.
    pub direction_rad: f64,
    /// Standard deviation of the gusts, per horizontal axis.
    pub gust_deviation_m_s: f64,
    /// How long a gust lasts (its autocorrelation time); 0 draws every step anew.
    pub gust_time_constant_s: f64,
}

/// The air around the aircraft.
#[derive(Clone, Debug)]
pub struct Wind {
    mean: DVec3,
    deviation_m_s: f64,
    time_constant_s: f64,
    gust: DVec3,
    rng: Pcg64Mcg,
}

impl Wind {
    /// Wind from a seed: the same seed and strides give the same wind. Values that are no number
    /// count as zero.
    pub fn new(parameters: WindParameters, seed: u64) -> Self {
        let finite = |v: f64| if v.is_finite() { v } else { 0.0 };
        let speed = finite(parameters.speed_m_s);
        let direction = finite(parameters.direction_rad);
        let deviation_m_s = bounded(finite(parameters.gust_deviation_m_s), 0.0, 100.0);
        let mut rng = child(seed, "wind", 0);
        let gust = DVec3::new(normal(&mut rng), normal(&mut rng), 0.0) * deviation_m_s;
        Self {
            mean: DVec3::new(-speed * libm::sin(direction), -speed * libm::cos(direction), 0.0),
            deviation_m_s,
            time_constant_s: bounded(finite(parameters.gust_time_constant_s), 0.0, 1e6),
            gust,
            rng,
        }
    }

    /// Moves on; returns the air's velocity (where it blows to) in metres per second.
    pub fn step(&mut self, dt_s: f64) -> DVec3 {
        let dt_s = bounded(dt_s, 0.0, 1e6);
        if self.deviation_m_s > 0.0 && dt_s > 0.0 {
            let kept = if self.time_constant_s > 0.0 { libm::exp(-dt_s / self.time_constant_s) } else { 0.0 };
            let fresh = self.deviation_m_s * libm::sqrt(1.0 - kept * kept);
            let draw = DVec3::new(normal(&mut self.rng), normal(&mut self.rng), 0.0);
            self.gust = self.gust * kept + draw * fresh;
        }
        self.mean + self.gust
    }
}

/// What ArduCopter 4.6.2 estimates of the wind in flight, from the drag of the aircraft. On the ground its filter
/// estimates none.
///
/// The time constant is assumed: in SITL the message was seen, and how its value settles was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindEstimate {
    velocity_m_s: Option<DVec3>,
}

impl WindEstimate {
    /// So long the estimate takes for two thirds of a change.
    const TIME_CONSTANT_S: f64 = 10.0;

    /// Moves on by a time in which the air moved at `wind_m_s`.
    pub fn step(&mut self, dt_s: f64, wind_m_s: DVec3, flies: bool) {
        let share = 1.0 - libm::exp(-dt_s / Self::TIME_CONSTANT_S);
        let before = self.velocity_m_s.unwrap_or(DVec3::ZERO);
        self.velocity_m_s = flies.then(|| before + (wind_m_s - before) * share);
    }

    /// Velocity of the air: east, north, up. `None` on the ground.
    pub fn velocity_m_s(&self) -> Option<DVec3> {
        self.velocity_m_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUSTY: WindParameters = WindParameters {
        speed_m_s: 6.0,
        direction_rad: core::f64::consts::FRAC_PI_2,
        gust_deviation_m_s: 1.5,
        gust_time_constant_s: 4.0,
    };

    #[test]
    fn same_seed_same_wind() {
        let run = |seed| {
            let mut wind = Wind::new(GUSTY, seed);
            (0..500).map(|_| wind.step(0.02)).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn wind_from_the_east_blows_west_with_its_mean_and_deviation() {
        let mut wind = Wind::new(GUSTY, 1);
        let n = 40_000;
        let (mut sum, mut squares) = (DVec3::ZERO, 0.0);
        for _ in 0..n {
            let v = wind.step(0.5);
            sum += v;
            squares += v.y * v.y;
        }
        let mean = sum / f64::from(n);
        assert!((mean - DVec3::new(-6.0, 0.0, 0.0)).length() < 0.1, "{mean}");
        let deviation = libm::sqrt(squares / f64::from(n));
        assert!((deviation - 1.5).abs() < 0.1, "{deviation}");
    }

    #[test]
    fn an_estimate_begins_in_the_air_and_approaches_the_wind() {
        let wind = DVec3::new(-6.0, 2.0, 0.0);
        let mut estimate = WindEstimate::default();
        estimate.step(5.0, wind, false);
        assert_eq!(estimate.velocity_m_s(), None);
        let mut missing_m_s = wind.length();
        for _ in 0..20 {
            estimate.step(2.0, wind, true);
            let now_m_s = (wind - estimate.velocity_m_s().unwrap()).length();
            assert!(now_m_s < missing_m_s);
            missing_m_s = now_m_s;
        }
        assert!(missing_m_s < 0.2, "{missing_m_s}");
        estimate.step(0.1, wind, false);
        assert_eq!(estimate.velocity_m_s(), None);
    }

    #[test]
    fn wind_of_nonsense_is_finite() {
        let bad = f64::NAN;
        let parameters = WindParameters {
            speed_m_s: bad,
            direction_rad: f64::INFINITY,
            gust_deviation_m_s: bad,
            gust_time_constant_s: -1.0,
        };
        let mut wind = Wind::new(parameters, 1);
        for dt_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.02] {
            assert!(wind.step(dt_s).is_finite());
        }
    }
}
