//! What sensors are off by: a position that wanders and drifts, of a simulated flight controller's estimate and of what a program on
//! [`crate::rigid`] receives alike; and the noise of gyroscopes and accelerometers, which such a program alone has.
//!
//! No clock, no hidden randomness: each error has a generator of its own.

use wingbeat_geo::{DVec3, Duration};

use crate::rng::{Pcg64Mcg, normal};

/// How long a position error takes to wander off.
const WANDER_TIME_S: f64 = 30.0;
/// Time between two steps of a [`PositionError`], seconds.
pub const POSITION_STEP_S: f64 = 0.1;

/// Of a position, metres east, north and up.
#[derive(Debug)]
pub struct PositionError {
    generator: Pcg64Mcg,
    wandering: DVec3,
    drift: DVec3,
    /// What the drift is moving to, and how fast.
    goal: DVec3,
    goal_m_s: f64,
}

impl PositionError {
    /// None yet.
    pub fn new(generator: Pcg64Mcg) -> Self {
        Self { generator, wandering: DVec3::ZERO, drift: DVec3::ZERO, goal: DVec3::ZERO, goal_m_s: 0.0 }
    }
    /// By which it wanders.
    pub fn wandering(&self) -> DVec3 {
        self.wandering
    }
    /// By which it is off in addition: bias, jump, spoofing, barometer.
    pub fn drift(&self) -> DVec3 {
        self.drift
    }
    /// From now on the drift moves there, while the aircraft flies. It takes so long to get there.
    pub fn drift_to(&mut self, goal: DVec3, within: Duration) {
        self.goal = goal;
        self.goal_m_s = (goal - self.drift).length() / within.as_secs_f64().max(POSITION_STEP_S);
    }
    /// [`POSITION_STEP_S`] pass in flight; `deviation_m` is the standard deviation of the wandering on each axis over the ground. That is a
    /// first-order Gauss-Markov process; half as much upwards, where a barometer helps.
    pub fn step(&mut self, deviation_m: f64) {
        if deviation_m > 0.0 {
            let keep = 1.0 - POSITION_STEP_S / WANDER_TIME_S;
            let kick = deviation_m * libm::sqrt(1.0 - keep * keep);
            let mut draw = || normal(&mut self.generator);
            let noise = DVec3::new(draw(), draw(), 0.5 * draw());
            self.wandering = self.wandering * keep + noise * kick;
        }
        let left = self.goal - self.drift;
        if left != DVec3::ZERO {
            let step_m = self.goal_m_s * POSITION_STEP_S;
            self.drift += if left.length() <= step_m { left } else { left.normalize() * step_m };
        }
    }
}

/// Standard deviations of what an inertial sensor measures, on each axis, independent from one measurement to the next. Motors shake it:
/// it is that much at full thrust, and less as the thrust is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImuNoise {
    /// Of the gyroscopes.
    pub rate_rad_s: f64,
    /// Of the accelerometers.
    pub force_m_s2: f64,
}

impl ImuNoise {
    /// What is added to a turn rate (radians a second) and to a specific force (m/s²) at a share of the full thrust.
    pub fn draw(self, generator: &mut Pcg64Mcg, thrust_share: f64) -> (DVec3, DVec3) {
        if self == Self::default() {
            return (DVec3::ZERO, DVec3::ZERO);
        }
        let mut of = |deviation: f64| {
            let mut draw = || normal(generator) * deviation * thrust_share;
            DVec3::new(draw(), draw(), draw())
        };
        (of(self.rate_rad_s), of(self.force_m_s2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::child;

    fn spread(values: &[f64]) -> f64 {
        (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
    }

    #[test]
    fn a_position_wanders_by_its_deviation_and_half_as_much_upwards() {
        let mut error = PositionError::new(child(1, "test", 0));
        let mut axes = [vec![], vec![], vec![]];
        // 20 h: some 1200 independent values on each axis.
        for _ in 0..720_000 {
            error.step(0.5);
            let at = error.wandering();
            [at.x, at.y, at.z].into_iter().zip(&mut axes).for_each(|(value, axis)| axis.push(value));
        }
        for (axis, expected_m) in axes.iter().zip([0.5, 0.5, 0.25]) {
            assert!((spread(axis) / expected_m - 1.0).abs() < 0.1, "{} of {expected_m}", spread(axis));
        }
        assert_eq!(error.drift(), DVec3::ZERO);
    }

    #[test]
    fn a_drift_gets_there_in_its_time_and_back() {
        let mut error = PositionError::new(child(1, "test", 0));
        error.drift_to(DVec3::new(3.0, 0.0, -4.0), Duration::from_secs(2));
        for _ in 0..10 {
            error.step(0.0);
        }
        assert!((error.drift() - DVec3::new(1.5, 0.0, -2.0)).length() < 1e-9, "{:?}", error.drift());
        for _ in 0..11 {
            error.step(0.0);
        }
        assert_eq!(error.drift(), DVec3::new(3.0, 0.0, -4.0));
        error.drift_to(DVec3::ZERO, Duration::ZERO);
        error.step(0.0);
        assert_eq!((error.drift(), error.wandering()), (DVec3::ZERO, DVec3::ZERO));
    }

    #[test]
    fn an_inertial_sensor_is_noisier_the_more_it_is_shaken() {
        let noise = ImuNoise { rate_rad_s: 0.01, force_m_s2: 0.3 };
        let mut generator = child(1, "test", 0);
        for share in [0.0, 0.36, 1.0] {
            let drawn: Vec<(DVec3, DVec3)> = (0..20_000).map(|_| noise.draw(&mut generator, share)).collect();
            let rates: Vec<f64> = drawn.iter().map(|(rate, _)| rate.y).collect();
            let forces: Vec<f64> = drawn.iter().map(|(_, force)| force.z).collect();
            assert!((spread(&rates) - 0.01 * share).abs() < 0.0003, "{}", spread(&rates));
            assert!((spread(&forces) - 0.3 * share).abs() < 0.01, "{}", spread(&forces));
        }
        // Without noise nothing is drawn.
        let (mut one, mut other) = (child(2, "test", 0), child(2, "test", 0));
        assert_eq!(ImuNoise::default().draw(&mut one, 1.0), (DVec3::ZERO, DVec3::ZERO));
        assert_eq!(normal(&mut one), normal(&mut other));
    }
}
