//! The position estimate: when it comes after boot, how it wanders, and how it is lost.

use wingbeat_autopilot::dialect::{
    EkfStatusFlags, GPS_GLOBAL_ORIGIN_DATA, HOME_POSITION_DATA, MavMessage, MavSeverity,
};
use wingbeat_geo::{DVec3, Duration, Instant};

use super::{Boot, FlightController, SLOW_S};
use crate::motion::Profile;
use crate::rng::{Pcg64Mcg, normal};
use crate::sensors::PositionError;

/// How long the nose takes to wander off: the headings of the pilot's flight published with the reference
/// (2 Hz, 684 s) correlate by 0.44 after 1.0 s and by 0.32 after 2.0 s.
const HEADING_TIME_S: f64 = 2.0;
/// The estimate continues without position fixes for so long before the position becomes invalid.
const DEAD_RECKONING: Duration = Duration::from_secs(5);

/// Seconds after power-on, one flight each (the shared reference of the autopilot, "Times"); the gyros
/// settle between the refusal at 8.3 s and the acceptance at 11.9 s of 3.5.7 in SITL.
struct Times {
    heartbeat_ms: u64,
    gyros_ms: u64,
    fix_ms: u64,
    origin_ms: u64,
    position_ms: u64,
}

const TIMES_357: Times =
    Times { heartbeat_ms: 2_300, gyros_ms: 10_000, fix_ms: 9_300, origin_ms: 19_100, position_ms: 40_900 };
const TIMES_462: Times =
    Times { heartbeat_ms: 1_800, gyros_ms: 12_000, fix_ms: 10_800, origin_ms: 20_800, position_ms: 42_300 };
const TIMES_WARM: Times = Times { heartbeat_ms: 0, gyros_ms: 0, fix_ms: 0, origin_ms: 0, position_ms: 0 };

/// A step of getting ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Dark,
    Sending,
    Fixed,
    Origin,
    Positioned,
}

#[derive(Debug)]
pub(super) struct Estimate {
    /// What it is off by.
    pub(super) error: PositionError,
    heading_generator: Pcg64Mcg,
    heading_off_rad: f64,
    speaks_at: Instant,
    gyros_at: Instant,
    fix_at: Instant,
    origin_at: Instant,
    position_at: Instant,
    announced: Stage,
    lost_at: Option<Instant>,
    is_divergent: bool,
    /// Where it was last known to be.
    known: DVec3,
}

impl Estimate {
    pub(super) fn new(generator: Pcg64Mcg, heading_generator: Pcg64Mcg) -> Self {
        Self {
            error: PositionError::new(generator),
            heading_generator,
            heading_off_rad: 0.0,
            speaks_at: Instant::NEVER,
            gyros_at: Instant::NEVER,
            fix_at: Instant::NEVER,
            origin_at: Instant::NEVER,
            position_at: Instant::NEVER,
            announced: Stage::Dark,
            lost_at: None,
            is_divergent: false,
            known: DVec3::ZERO,
        }
    }
    pub(super) fn boot(&mut self, profile: Profile, boot: Boot, now: Instant) {
        let times = match (boot, profile) {
            (Boot::Warm, _) => TIMES_WARM,
            (Boot::Cold, Profile::Copter357) => TIMES_357,
            (Boot::Cold, Profile::Copter462) => TIMES_462,
        };
        let at = |ms| now + Duration::from_millis(ms);
        self.speaks_at = at(times.heartbeat_ms);
        self.gyros_at = at(times.gyros_ms);
        self.fix_at = at(times.fix_ms);
        self.origin_at = at(times.origin_ms);
        self.position_at = at(times.position_ms);
        self.announced = Stage::Dark;
    }
    pub(super) fn diverge(&mut self, on: bool) {
        self.is_divergent = on;
    }
    /// How far the nose is from where the motion model has it.
    pub(super) fn heading_off_rad(&self) -> f64 {
        self.heading_off_rad
    }
    /// One step of the nose's wandering, a first-order Gauss-Markov process too.
    pub(super) fn wander_heading(&mut self, deviation_rad: f64, flying: bool) {
        if deviation_rad <= 0.0 || !flying {
            return;
        }
        let keep = 1.0 - SLOW_S / HEADING_TIME_S;
        let kick = deviation_rad * libm::sqrt(1.0 - keep * keep);
        self.heading_off_rad = self.heading_off_rad * keep + kick * normal(&mut self.heading_generator);
    }
    pub(super) fn lose(&mut self, lost: bool, now: Instant) {
        self.lost_at = match (lost, self.lost_at) {
            (false, _) => None,
            (true, None) => Some(now),
            (true, earlier) => earlier,
        };
    }
    pub(super) fn has_fix(&self, now: Instant) -> bool {
        now >= self.fix_at && self.lost_at.is_none()
    }
    pub(super) fn gyros_settled(&self, now: Instant) -> bool {
        now >= self.gyros_at
    }
    pub(super) fn has_origin(&self, now: Instant) -> bool {
        now >= self.origin_at
    }
    pub(super) fn has_position(&self, now: Instant) -> bool {
        now >= self.position_at
            && !self.is_divergent
            && self.lost_at.is_none_or(|at| now.since(at) < DEAD_RECKONING)
    }
    /// `EKF_STATUS_REPORT.flags` as 3.5.7 shows them: 0, then 229, then 895.
    pub(super) fn flags(&self, now: Instant) -> EkfStatusFlags {
        if self.has_position(now) {
            EkfStatusFlags::from_bits_truncate(895)
        } else if self.gyros_settled(now) {
            EkfStatusFlags::from_bits_truncate(229)
        } else {
            EkfStatusFlags::empty()
        }
    }
}

impl FlightController {
    /// Whether it has booted far enough to receive and send.
    pub(super) fn is_sending(&self) -> bool {
        self.now >= self.estimate.speaks_at
    }
    pub(super) fn position_ok(&self) -> bool {
        self.estimate.has_position(self.now)
    }

    /// What it reports as its position, and whether that is one: without, the place where it was known last, at the
    /// height of the barometer.
    pub(super) fn reported(&self) -> (DVec3, bool) {
        let (at, is_known) = (self.vehicle.state().position, self.position_ok());
        let place = if is_known || !self.estimate.has_origin(self.now) { at } else { self.estimate.known };
        (DVec3::new(place.x, place.y, at.z), is_known)
    }

    pub(super) fn note_position(&mut self) {
        if self.position_ok() {
            self.estimate.known = self.vehicle.state().position;
        }
    }

    /// Says what an operator sees as the estimate gets ready.
    pub(super) fn note_estimate_events(&mut self) {
        if self.estimate.announced == Stage::Positioned {
            return;
        }
        let (old, filter) = match self.profile() {
            Profile::Copter357 => (true, "EKF2"),
            Profile::Copter462 => (false, "EKF3"),
        };
        let info = MavSeverity::MAV_SEVERITY_INFO;
        if self.estimate.announced < Stage::Sending && self.is_sending() {
            self.estimate.announced = Stage::Sending;
            self.send_text(info, format_args!("{filter} IMU0 initial yaw alignment complete"));
        }
        if self.estimate.announced < Stage::Fixed && self.now >= self.estimate.fix_at {
            self.estimate.announced = Stage::Fixed;
            self.send_text(info, format_args!("GPS 1: detected as u-blox at 115200 baud"));
            self.send_text(info, format_args!("{filter} IMU0 tilt alignment complete"));
        }
        if self.estimate.announced < Stage::Origin && self.now >= self.estimate.origin_at {
            self.estimate.announced = Stage::Origin;
            for imu in 0..2 {
                let text = if old { "Origin set to GPS" } else { "origin set" };
                self.send_text(info, format_args!("{filter} IMU{imu} {text}"));
            }
            self.set_home(self.vehicle.state().position);
        }
        if self.estimate.announced < Stage::Positioned && self.now >= self.estimate.position_at {
            self.estimate.announced = Stage::Positioned;
            for imu in 0..2 {
                self.send_text(info, format_args!("{filter} IMU{imu} is using GPS"));
            }
        }
    }

    /// Sets home and reports it.
    pub(super) fn set_home(&mut self, local: DVec3) {
        self.home = Some(local);
        self.send_home();
    }

    /// Says where home and the origin of the estimate are, if they are.
    pub(super) fn send_home(&mut self) -> bool {
        let Some(home) = self.home else { return false };
        let position = self.frame.to_position(home);
        let origin = self.config.home;
        let time_usec = self.uptime().as_micros() as u64;
        self.send(&MavMessage::HOME_POSITION(HOME_POSITION_DATA {
            latitude: position.latitude_e7,
            longitude: position.longitude_e7,
            altitude: position.altitude_mm,
            q: [1.0, 0.0, 0.0, 0.0],
            time_usec,
            ..HOME_POSITION_DATA::DEFAULT
        }));
        self.send(&MavMessage::GPS_GLOBAL_ORIGIN(GPS_GLOBAL_ORIGIN_DATA {
            latitude: origin.latitude_e7,
            longitude: origin.longitude_e7,
            altitude: origin.altitude_mm,
            time_usec,
        }));
        true
    }
}
