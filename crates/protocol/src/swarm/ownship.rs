//! The own aircraft: what its flight controller reported last, and what follows from that.

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::Point;

use super::clearance::STALE_S;
use super::geometry::Geometry;
use crate::{REPORT_HOLDS, Telemetry};

/// From a message that makes us stop to the beginning of the braking: our period and the flight controller's. That
/// the message itself is old is in the position that it reports.
pub(super) const REACTION_S: f64 = 0.5;

/// A braking that any multicopter manages (ArduCopter's guided default is 2.5 m/s², its brake mode's 7.5).
pub(super) const BRAKING_M_S2: f64 = 2.5;

/// An aircraft that held continues when it could stop clear of the one ahead from this speed.
const RESUMED_M_S: f64 = 5.0;

/// A position is extrapolated from a report for no longer than this.
const EXTRAPOLATED_FOR: Duration = Duration::from_millis(500);

/// A holding aircraft continues when it is slower than this: ArduCopter begins a guided target from standing,
/// whatever the speed, and those behind would take it for one that flies on.
const STANDS_M_S: f64 = 1.0;

/// Above its home, whatever the slope and the barometer's drift, an aircraft that stands is not so high, metres.
const STANDS_BELOW_M: f64 = 3.0;

/// Reports nearer to each other give no acceleration, seconds.
const REPORTS_APART_S: f64 = 0.1;

/// The own aircraft.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownship {
    telemetry: Option<Telemetry>,
    reported_at: Instant,
    /// Where it stood before its motors were armed.
    home: Option<Point>,
    acceleration_m_s2: f64,
    /// Of the report from which the acceleration was taken.
    sampled_at: Instant,
}

impl Ownship {
    /// Takes a report of the flight controller.
    pub(super) fn report(&mut self, now: Instant, telemetry: Telemetry) {
        self.sample_acceleration(now, &telemetry);
        (self.telemetry, self.reported_at) = (Some(telemetry), now);
        if !telemetry.armed {
            self.home = Some(telemetry.point());
        }
    }

    /// An aircraft that sets off is faster than it last reported when the brakes take hold.
    fn sample_acceleration(&mut self, now: Instant, telemetry: &Telemetry) {
        let past_s = now.since(self.sampled_at).as_secs_f64();
        let speed_m_s = telemetry.velocity_m_s.length();
        match self.telemetry {
            Some(before) if past_s < STALE_S => {
                let gained_m_s = speed_m_s - before.velocity_m_s.length();
                // Two reports of one instant give no acceleration.
                if past_s >= REPORTS_APART_S {
                    self.acceleration_m_s2 = (gained_m_s / past_s).clamp(0.0, BRAKING_M_S2);
                    self.sampled_at = now;
                }
            }
            _ => (self.acceleration_m_s2, self.sampled_at) = (0.0, now),
        }
    }

    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        self.telemetry.as_ref()
    }

    /// Its position as it is broadcast.
    pub(crate) fn point(&self) -> Option<Point> {
        self.telemetry.map(|telemetry| telemetry.point())
    }

    /// Altitude above sea level of what its heights are above, millimetre: the flight controller's home.
    pub(super) fn home_altitude_mm(&self) -> Option<i32> {
        let telemetry = self.telemetry?;
        Some(telemetry.position.altitude_mm.saturating_sub(telemetry.point().height_mm))
    }

    pub(crate) fn home(&self) -> Option<Point> {
        self.home
    }

    /// Where it stood before its motors were armed, as another machine saw it.
    pub(super) fn set_home(&mut self, home: Option<Point>) {
        self.home = home;
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.telemetry.is_some_and(|telemetry| telemetry.armed)
    }

    /// Whether it knows where it is. One that stands is where it was, unless it came down without knowing.
    pub(super) fn is_known(&self, now: Instant) -> bool {
        let is_located = self.telemetry.is_none_or(|telemetry| telemetry.is_located);
        is_located && (!self.is_armed() || now.since(self.reported_at) <= REPORT_HOLDS)
    }

    /// Whether it is higher than an aircraft that stands, on whatever slope.
    pub(super) fn is_above_ground(&self) -> bool {
        self.telemetry.is_some_and(|telemetry| telemetry.height_m > STANDS_BELOW_M)
    }

    /// Whether it has come to stand after it was ordered to hold.
    pub(crate) fn is_standing(&self) -> bool {
        self.telemetry.is_some_and(|telemetry| telemetry.velocity_m_s.length() < STANDS_M_S)
    }

    /// Its position by now. Reports come four times a second, and the others derive its speed from what it
    /// broadcasts.
    pub(crate) fn point_at(&self, now: Instant, geometry: &Geometry) -> Option<Point> {
        let telemetry = self.telemetry?;
        let past_s = now.since(self.reported_at).min(EXTRAPOLATED_FOR).as_secs_f64();
        Some(geometry.moved(telemetry.point(), telemetry.velocity_m_s * past_s))
    }

    /// How far it flies on if it is ordered now to stop. One that holds would continue only to get up to speed.
    pub(super) fn stopping_distance_m(&self, is_holding: bool) -> f64 {
        let Some(telemetry) = self.telemetry else { return 0.0 };
        let resumed_m_s = if is_holding { RESUMED_M_S } else { 0.0 };
        let speed_m_s = telemetry.velocity_m_s.length().max(resumed_m_s);
        let braked_m_s = speed_m_s + self.acceleration_m_s2 * REACTION_S;
        (speed_m_s + braked_m_s) / 2.0 * REACTION_S + braked_m_s * braked_m_s / (2.0 * BRAKING_M_S2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::plan::Plan;
    use wingbeat_geo::{DVec3, Position};

    fn report(speed_m_s: f64, armed: bool) -> Telemetry {
        Telemetry {
            position: Position { latitude_e7: 394_825_940, longitude_e7: 0, altitude_mm: 0 },
            height_m: 20.0,
            velocity_m_s: DVec3::new(0.0, speed_m_s, 0.0),
            heading_rad: 0.0,
            armed,
            landing: false,
            is_located: true,
        }
    }

    #[test]
    fn muscop_17_the_stopping_distance_grows_with_speed_and_acceleration() {
        let mut own = Ownship::default();
        assert_eq!(own.stopping_distance_m(false), 0.0);
        own.report(Instant::from_secs(1), report(10.0, true));
        // Half a second at 10 m/s, and 10 m/s at 2.5 m/s².
        assert_eq!(own.stopping_distance_m(false), 5.0 + 20.0);
        assert!(!own.is_standing());
        // 2 m/s faster within a second: it is faster still when the brakes take hold.
        own.report(Instant::from_secs(2), report(12.0, true));
        assert!(own.stopping_distance_m(false) > 6.0 + 28.8 + 0.1);
        // One that holds continues only if it could stop from 5 m/s.
        own.report(Instant::from_secs(5), report(0.0, true));
        assert!(own.is_standing());
        assert_eq!((own.stopping_distance_m(false), own.stopping_distance_m(true)), (0.0, 2.5 + 5.0));
    }

    #[test]
    fn muscop_20_the_home_is_where_the_motors_were_off_last() {
        let mut own = Ownship::default();
        own.report(Instant::ZERO, report(0.0, false));
        let home = own.home();
        let away = Telemetry { height_m: 50.0, ..report(5.0, true) };
        own.report(Instant::from_secs(1), away);
        assert_eq!((own.home(), own.is_armed()), (home, true));
        assert_eq!(own.point().unwrap().height_mm, 50_000);
    }

    #[test]
    fn muscop_17_the_position_is_extrapolated_for_half_a_second_at_most() {
        let mut own = Ownship::default();
        let geometry = Geometry::of(&Plan::default());
        assert_eq!(own.point_at(Instant::ZERO, &geometry), None);
        own.report(Instant::from_secs(1), report(10.0, true));
        let north_m = |after_ms: u64| {
            let at = own.point_at(Instant::from_millis(1_000 + after_ms), &geometry).unwrap();
            f64::from(at.latitude_e7 - 394_825_940) * 0.0111
        };
        assert!((north_m(200) - 2.0).abs() < 0.05, "{}", north_m(200));
        assert!((north_m(5_000) - 5.0).abs() < 0.05, "{}", north_m(5_000));
    }
}
