//! Wind: a steady mean and gusts that come and go, the same for aircraft that are near to each other.
//!
//! A gust is a field over the ground and over time: per horizontal axis a sum of waves, normal with the given deviation.
//! Its correlation falls with e to the distance over `gust_length_m`, which is Dryden's along the wind (MIL-F-8785C: some
//! 100 m at heights of 20 m), and with e to the time over `gust_time_constant_s`. The same place and time have the same gust,
//! whichever aircraft asks and in whichever strides; the eddies stand and fade, they are not carried along.

use wingbeat_geo::{DVec2, DVec3};

use super::bounded;
use crate::rng::{Pcg64Mcg, child, uniform};

/// What the weather is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindParameters {
    /// Mean speed of the air.
    pub speed_m_s: f64,
    /// Where the wind comes from, clockwise from north.
    pub direction_rad: f64,
    /// Standard deviation of the gusts, per horizontal axis.
    pub gust_deviation_m_s: f64,
    /// How long a gust lasts (its autocorrelation time).
    pub gust_time_constant_s: f64,
    /// How wide a gust is (the distance over which it is correlated); 0 for gusts that differ from place to place.
    pub gust_length_m: f64,
}

/// Waves per axis: so many that their sum is nearly normal.
const WAVES: usize = 32;
/// Faster waves only shake, radians per second: ten samples a second do not show them.
const FASTEST_RAD_S: f64 = 10.0;
/// Nor does an aircraft feel eddies smaller than itself, metres.
const LENGTH_LEAST_M: f64 = 0.5;
/// Gusts are not shorter, seconds.
const TIME_LEAST_S: f64 = 0.1;

/// A wave of one axis.
#[derive(Clone, Copy, Debug)]
struct Wave {
    /// Wave number, radians per metre.
    number: DVec2,
    /// Radians per second.
    frequency: f64,
    phase_rad: f64,
}

impl Wave {
    /// Wave numbers have the spectrum of a field whose correlation falls exponentially with the distance in the plane,
    /// frequencies that of one which falls so with time (Cauchy's).
    fn draw(rng: &mut Pcg64Mcg, length_m: f64, time_s: f64) -> Self {
        let left = 1.0 - uniform(rng);
        let number = libm::sqrt(bounded(1.0 / (left * left) - 1.0, 0.0, 1e12)) / length_m;
        let (sin, cos) = libm::sincos(uniform(rng) * core::f64::consts::TAU);
        let frequency = libm::tan((uniform(rng) - 0.5) * core::f64::consts::PI) / time_s;
        Self {
            number: DVec2::new(cos, sin) * number,
            frequency: bounded(frequency, -FASTEST_RAD_S, FASTEST_RAD_S),
            phase_rad: uniform(rng) * core::f64::consts::TAU,
        }
    }

    fn at(&self, time_s: f64, place_m: DVec2) -> f64 {
        libm::cos(self.number.dot(place_m) + self.frequency * time_s + self.phase_rad)
    }
}

/// The air around the aircraft.
#[derive(Clone, Debug)]
pub struct Wind {
    mean: DVec3,
    /// The change by a front that passes.
    front: DVec3,
    deviation_m_s: f64,
    /// Towards the east, and towards the north; empty where it does not gust.
    waves: [Vec<Wave>; 2],
}

impl Wind {
    /// Wind from a seed: the same seed gives the same wind at each place and time. Values that are no number count as
    /// zero.
    pub fn new(parameters: WindParameters, seed: u64) -> Self {
        let finite = |v: f64| if v.is_finite() { v } else { 0.0 };
        let speed = finite(parameters.speed_m_s);
        let direction = finite(parameters.direction_rad);
        let deviation_m_s = bounded(finite(parameters.gust_deviation_m_s), 0.0, 100.0);
        let length_m = bounded(finite(parameters.gust_length_m), LENGTH_LEAST_M, 1e6);
        let time_s = bounded(finite(parameters.gust_time_constant_s), TIME_LEAST_S, 1e6);
        let count = if deviation_m_s > 0.0 { WAVES } else { 0 };
        let waves = [0, 1].map(|axis| {
            let mut rng = child(seed, "wind", axis);
            (0..count).map(|_| Wave::draw(&mut rng, length_m, time_s)).collect()
        });
        Self {
            mean: DVec3::new(-speed * libm::sin(direction), -speed * libm::cos(direction), 0.0),
            front: DVec3::ZERO,
            deviation_m_s,
            waves,
        }
    }

    /// Changes the mean wind by so much from now on, metres per second; zero restores it.
    pub fn shift(&mut self, by_m_s: DVec3) {
        self.front = if by_m_s.is_finite() { by_m_s } else { DVec3::ZERO };
    }

    /// The air's velocity (where it blows to) in metres per second, at a time and a place: seconds, and metres east and
    /// north of wherever the field begins.
    pub fn at(&self, time_s: f64, place_m: DVec2) -> DVec3 {
        let height_m_s = self.deviation_m_s * libm::sqrt(2.0 / WAVES as f64);
        let sum =
            |waves: &[Wave]| waves.iter().map(|wave| wave.at(time_s, place_m)).sum::<f64>() * height_m_s;
        let [east, north] = &self.waves;
        let gust = DVec3::new(sum(east), sum(north), 0.0);
        let mean = if self.front == DVec3::ZERO { self.mean } else { self.mean + self.front };
        if gust.is_finite() { mean + gust } else { mean }
    }
}

/// Returns the share of the wind at a height above the ground, where all of it blows from `full_m` on: below, it falls with the root
/// of the height to nothing on the ground, as in ArduPilot's own simulation (`SIM_WIND_T`), where that begins at 60 m.
pub fn share_at(height_m: f64, full_m: f64) -> f64 {
    libm::sqrt(bounded(height_m / full_m.max(1.0), 0.0, 1.0))
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
        gust_length_m: 100.0,
    };
    const MEAN: DVec3 = DVec3::new(-6.0, 0.0, 0.0);

    /// Of both axes, over many winds: what two gusts have in common, as a share of the variance.
    fn correlation(apart_s: f64, apart_m: f64) -> f64 {
        let (mut common, mut variance) = (0.0, 0.0);
        for seed in 0..3_000 {
            let wind = Wind::new(GUSTY, seed);
            let here = wind.at(10.0, DVec2::ZERO) - MEAN;
            let there = wind.at(10.0 + apart_s, DVec2::new(0.6, 0.8) * apart_m) - MEAN;
            common += here.dot(there);
            variance += here.dot(here);
        }
        common / variance
    }

    #[test]
    fn the_same_seed_place_and_time_have_the_same_wind() {
        let run = |seed| {
            let wind = Wind::new(GUSTY, seed);
            (0..500).map(|i| wind.at(f64::from(i) * 0.02, DVec2::new(3.0, 4.0))).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }

    #[test]
    fn wind_from_the_east_blows_west_with_its_mean_and_deviation() {
        let (n, mut sum, mut squares, mut beyond) = (20_000, DVec3::ZERO, 0.0, 0);
        for seed in 0..n {
            let gust = Wind::new(GUSTY, seed).at(7.0, DVec2::new(-20.0, 50.0)) - MEAN;
            sum += gust;
            squares += gust.y * gust.y;
            beyond += u32::from(gust.x.abs() > 2.0 * GUSTY.gust_deviation_m_s);
        }
        assert!((sum / n as f64).length() < 0.05, "{sum}");
        let deviation = libm::sqrt(squares / n as f64);
        assert!((deviation - 1.5).abs() < 0.05, "{deviation}");
        // Normal: 4.6 %.
        assert!((0.035..0.055).contains(&(f64::from(beyond) / n as f64)), "{beyond}");
    }

    #[test]
    fn gusts_are_alike_near_by_and_soon_after() {
        for (apart_s, apart_m, expected) in [
            (0.0, 10.0, 0.905),
            (0.0, 50.0, 0.607),
            (0.0, 300.0, 0.050),
            (0.4, 0.0, 0.905),
            (4.0, 0.0, 0.368),
            (20.0, 0.0, 0.007),
        ] {
            let found = correlation(apart_s, apart_m);
            assert!((found - expected).abs() < 0.06, "{apart_s} s, {apart_m} m: {found}");
        }
    }

    #[test]
    fn the_wind_fades_out_near_the_ground() {
        assert_eq!([-1.0, 0.0, 2.5, 10.0, 60.0].map(|m| share_at(m, 10.0)), [0.0, 0.0, 0.5, 1.0, 1.0]);
        assert_eq!([share_at(0.0, 0.0), share_at(f64::NAN, 5.0)], [0.0, 0.0]);
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
            gust_length_m: bad,
        };
        let wind = Wind::new(parameters, 1);
        for time_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.02] {
            assert!(wind.at(time_s, DVec2::new(bad, 0.0)).is_finite());
        }
    }
}
