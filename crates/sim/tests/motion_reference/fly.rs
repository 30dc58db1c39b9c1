//! Flies the manoeuvres of the reference runs and records them.

use wingbeat_geo::DVec3;
use wingbeat_sim::motion::{Multicopter, NavParameters, Profile, Sticks, Task};

/// The flight controller's step.
pub(crate) const DT_S: f64 = 0.02;

/// One recorded instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) t_s: f64,
    pub(crate) position: DVec3,
    pub(crate) velocity: DVec3,
    pub(crate) yaw_rate_rad_s: f64,
    pub(crate) landed: bool,
}

impl Sample {
    /// Horizontal speed.
    pub(crate) fn speed(&self) -> f64 {
        self.velocity.x.hypot(self.velocity.y)
    }

    /// Horizontal distance from a point.
    pub(crate) fn distance(&self, to: DVec3) -> f64 {
        (self.position.x - to.x).hypot(self.position.y - to.y)
    }
}

/// How a run was set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) profile: Profile,
    pub(crate) wpnav_speed_m_s: f64,
    pub(crate) angle_max_deg: f64,
    /// The air's velocity.
    pub(crate) wind_m_s: DVec3,
}

impl Setup {
    /// The profile's defaults with this WPNAV_SPEED.
    pub(crate) fn speed(profile: Profile, wpnav_speed_m_s: f64) -> Self {
        let angle_max_deg = NavParameters::new(profile).angle_max_rad.to_degrees();
        Self { profile, wpnav_speed_m_s, angle_max_deg, wind_m_s: DVec3::ZERO }
    }

    /// With wind from the east.
    pub(crate) fn east_wind(self, speed_m_s: f64) -> Self {
        Self { wind_m_s: DVec3::new(-speed_m_s, 0.0, 0.0), ..self }
    }

    pub(crate) fn plain(profile: Profile) -> Self {
        Self::speed(profile, NavParameters::new(profile).wpnav_speed_m_s)
    }

    /// With ANGLE_MAX 45 degrees.
    pub(crate) fn steep(profile: Profile, wpnav_speed_m_s: f64) -> Self {
        Self { angle_max_deg: 45.0, ..Self::speed(profile, wpnav_speed_m_s) }
    }
}

/// An aircraft and its record.
pub(crate) struct MotionRecord {
    pub(crate) aircraft: Multicopter,
    pub(crate) parameters: NavParameters,
    wind_m_s: DVec3,
    pub(crate) t_s: f64,
    pub(crate) record: Vec<Sample>,
}

impl MotionRecord {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { profile, wpnav_speed_m_s, angle_max_deg, wind_m_s } = setup;
        let parameters = NavParameters {
            wpnav_speed_m_s,
            angle_max_rad: angle_max_deg.to_radians(),
            ..NavParameters::new(profile)
        };
        let aircraft = Multicopter::new(profile, DVec3::ZERO, 0.0);
        Self { aircraft, parameters, wind_m_s, t_s: 0.0, record: Vec::new() }
    }

    pub(crate) fn set(&mut self, task: Task) {
        self.aircraft.set_task(task, &self.parameters);
    }

    pub(crate) fn step(&mut self) {
        self.aircraft.step(DT_S, &self.parameters, self.wind_m_s);
        self.t_s += DT_S;
        let state = self.aircraft.state();
        self.record.push(Sample {
            t_s: self.t_s,
            position: state.position,
            velocity: state.velocity,
            yaw_rate_rad_s: state.yaw_rate_rad_s,
            landed: state.landed,
        });
    }

    pub(crate) fn run(&mut self, seconds: f64) {
        for _ in 0..(seconds / DT_S).round() as usize {
            self.step();
        }
    }

    /// Until the condition holds; a manoeuvre that never gets there is a failure.
    pub(crate) fn run_until(&mut self, limit_s: f64, condition: impl Fn(&Self) -> bool) {
        for _ in 0..(limit_s / DT_S) as usize {
            self.step();
            if condition(self) {
                return;
            }
        }
        panic!("not within {limit_s} s: {:?}, {:?}", self.aircraft.task(), self.aircraft.state());
    }

    /// Take-off to 20 m until navigation reports it there.
    pub(crate) fn take_off(&mut self) {
        self.set(Task::TakeOff { altitude_m: 20.0 });
        self.run_until(60.0, |f| f.aircraft.destination_reached());
    }

    /// As the guided tests: take-off, and some seconds more at the top.
    pub(crate) fn guided(setup: Setup) -> Self {
        let mut flight = Self::new(setup);
        flight.take_off();
        flight.run(match setup.profile {
            Profile::Copter357 => 6.4,
            Profile::Copter462 => 2.6,
        });
        flight
    }

    /// A leg of a mission, and where the one after it goes, if it is flown through.
    pub(crate) fn leg(&mut self, destination: DVec3, fast: bool, next: Option<DVec3>) {
        self.set(Task::Waypoint { destination, fast, next, yaw: None });
    }

    /// A guided position.
    pub(crate) fn go_to(&mut self, position: DVec3) {
        self.set(Task::Position { position, yaw: None });
    }

    /// Loiter with the stick pushed forward by this part.
    pub(crate) fn loiter(&mut self, forward: f64) {
        self.set(Task::Loiter(Sticks { roll: 0.0, pitch: -forward, throttle: 0.5, yaw: 0.0 }));
    }

    /// The record from an instant on.
    pub(crate) fn since(&self, t_s: f64) -> &[Sample] {
        let from = self.record.partition_point(|s| s.t_s < t_s - 1e-9);
        &self.record[from..]
    }
}
