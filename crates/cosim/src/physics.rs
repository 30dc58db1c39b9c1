//! What moves an aircraft by its motors' outputs: our rigid body, or another program behind [`crate::proxy`].

use wingbeat_geo::{DQuat, DVec2, DVec3, Duration, Frame};
use wingbeat_sim::motion::Wind;
use wingbeat_sim::rigid::{MOTORS, Rigid};

use anyhow::Result;

use crate::copter::Config;
use crate::json;
use crate::proxy::{Measured, Proxy};

/// One step of our physics, of which there are 400 a second. The main loop of ArduCopter 3.5 has as many; that of 4.x wants
/// at least 1.8 measurements of its gyroscopes for each of its own, and has 200 (`SCHED_LOOP_RATE`).
pub(crate) const STEP: Duration = Duration::from_micros(2_500);
const STEP_S: f64 = 0.0025;
/// The wind is asked for so often.
const WIND_STEPS: u64 = 40;
/// An aircraft of another program's physics stands where it is no higher than this above where it began, metres, …
const STANDS_BELOW_M: f64 = 0.15;
/// … and no faster, metres a second.
const STANDS_M_S: f64 = 0.3;

/// An aircraft in motion.
#[derive(Debug)]
pub(crate) enum Physics {
    Own(Box<Own>),
    Proxy(Box<Behind>),
}

/// By our rigid body.
#[derive(Debug)]
pub(crate) struct Own {
    body: Rigid,
    wind: Wind,
    wind_m_s: DVec3,
    in_weather_m: DVec2,
    steps: u64,
}

/// By another program.
#[derive(Debug)]
pub(crate) struct Behind {
    proxy: Proxy,
    measured: Measured,
    step_s: f64,
    stands: bool,
    touchdown_m_s: f64,
}

impl Physics {
    /// Of an aircraft that stands.
    ///
    /// # Errors
    /// The system gives no socket.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        if let Some(back_end) = config.back_end {
            let (sin, cos) = (config.heading_rad * 0.5).sin_cos();
            let measured = Measured {
                time_s: 0.0,
                position: DVec3::ZERO,
                velocity: DVec3::ZERO,
                attitude: DQuat::from_xyzw(0.0, 0.0, sin, cos),
                line: String::new(),
            };
            let proxy = Proxy::new(back_end)?;
            return Ok(Self::Proxy(Box::new(Behind {
                proxy,
                measured,
                step_s: STEP_S,
                stands: true,
                touchdown_m_s: 0.0,
            })));
        }
        let (seed, origin) = config.weather;
        Ok(Self::Own(Box::new(Own {
            body: Rigid::new(config.body, config.battery, config.heading_rad),
            wind: Wind::new(config.wind, seed),
            wind_m_s: DVec3::ZERO,
            in_weather_m: Frame::new(origin).to_local(config.home).truncate(),
            steps: 0,
        })))
    }

    /// Moves on by one step with these outputs, of which the packet is that of [`crate::json`].
    ///
    /// # Errors
    /// Another program's physics ends the flight.
    pub(crate) fn step(
        &mut self,
        outputs: [f64; MOTORS],
        packet: &[u8],
        silence: std::time::Duration,
    ) -> Result<()> {
        match self {
            Self::Own(own) => {
                if own.steps.is_multiple_of(WIND_STEPS) {
                    let place_m = own.in_weather_m + own.body.position().truncate();
                    own.wind_m_s = own.wind.at(own.steps as f64 * STEP_S, place_m);
                }
                own.body.step(STEP_S, outputs, own.wind_m_s);
                own.steps += 1;
            }
            Self::Proxy(behind) => {
                let before = (behind.measured.time_s, behind.measured.velocity.z);
                behind.measured = behind.proxy.step(packet, STEP_S, silence)?;
                behind.step_s = behind.measured.time_s - before.0;
                let height_m = -behind.measured.position.z;
                let stands = height_m < STANDS_BELOW_M && behind.measured.velocity.length() < STANDS_M_S;
                if stands && !behind.stands {
                    behind.touchdown_m_s = before.1.max(0.0);
                }
                behind.stands = stands;
            }
        }
        Ok(())
    }

    /// What the autopilot is answered in the form of 3.5; nothing where another program's physics answers, whose form is that of 4.x.
    pub(crate) fn gazebo(&self) -> Option<[u8; crate::gazebo::SENSORS_LEN]> {
        match self {
            Self::Own(own) => Some(crate::gazebo::sensors(self.time_s() * json::STAMP_FACTOR, &own.body)),
            Self::Proxy(_) => None,
        }
    }

    /// What the autopilot is answered in the form of 4.x.
    pub(crate) fn json(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Own(own) => json::sensors(self.time_s() * json::STAMP_FACTOR, &own.body).into(),
            Self::Proxy(behind) => behind.measured.line.as_str().into(),
        }
    }

    /// Seconds since the aircraft was switched on.
    pub(crate) fn time_s(&self) -> f64 {
        match self {
            Self::Own(own) => own.steps as f64 * STEP_S,
            Self::Proxy(behind) => behind.measured.time_s,
        }
    }

    /// Whether one more step ends no later than so long after it was switched on.
    pub(crate) fn is_before(&self, until: Duration) -> bool {
        match self {
            Self::Own(own) => own.steps < until.as_micros() as u64 / STEP.as_micros() as u64,
            // Half a microsecond, because a stamp is no multiple of a step.
            Self::Proxy(behind) => {
                behind.measured.time_s + behind.step_s < until.as_micros() as f64 * 1e-6 + 0.5e-6
            }
        }
    }

    /// How long the last step was.
    pub(crate) fn step_length(&self) -> Duration {
        match self {
            Self::Own(_) => STEP,
            Self::Proxy(behind) => Duration::from_micros((behind.step_s * 1e6).round() as u64),
        }
    }

    /// Metres east, north and up of where it stood.
    pub(crate) fn position(&self) -> DVec3 {
        match self {
            Self::Own(own) => own.body.position(),
            Self::Proxy(behind) => to_enu(behind.measured.position),
        }
    }

    /// Metres a second east, north and up.
    pub(crate) fn velocity(&self) -> DVec3 {
        match self {
            Self::Own(own) => own.body.velocity(),
            Self::Proxy(behind) => to_enu(behind.measured.velocity),
        }
    }

    /// Where its nose points, 0 to 2π clockwise from north.
    pub(crate) fn heading_rad(&self) -> f64 {
        match self {
            Self::Own(own) => own.body.heading_rad(),
            Self::Proxy(behind) => {
                let nose = behind.measured.attitude * DVec3::X;
                nose.y.atan2(nose.x).rem_euclid(std::f64::consts::TAU)
            }
        }
    }

    /// Whether it stands on the ground.
    pub(crate) fn is_on_ground(&self) -> bool {
        match self {
            Self::Own(own) => own.body.is_on_ground(),
            Self::Proxy(behind) => behind.stands,
        }
    }

    /// The speed at which it last met the ground, metres a second.
    pub(crate) fn touchdown_m_s(&self) -> f64 {
        match self {
            Self::Own(own) => own.body.touchdown_m_s(),
            Self::Proxy(behind) => behind.touchdown_m_s,
        }
    }
}

fn to_enu(ned: DVec3) -> DVec3 {
    DVec3::new(ned.y, ned.x, -ned.z)
}
