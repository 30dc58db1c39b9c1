//! What this flight has shown of the battery so far: its charge, its rate of consumption, and what has been decided by them.

use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::telemetry::{ChargeState, Worst};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Command, Phase, Text, View, text};

use super::air::Progress;
use super::falls::Falls;
use super::rate::{MEASURED_FROM_PERCENT, Rate};
use super::{Reserve, SURE, holds, seconds};

/// So near to the height of home the aircraft stands, metres: hovering low costs nothing that matters here.
const STANDS_WITHIN_M: f64 = 1.0;
/// A charge that stands still for so long in flight is not measured.
const STANDS_STILL: Duration = Duration::from_secs(300);
/// Time constant of the smoothed current, seconds.
const CURRENT_S: f64 = 20.0;
/// A current below this share of the largest one is that of no flight.
const CURRENT_SHARE: f64 = 0.1;
/// So far below the voltage for a landing that begins after the configured time, as a share of that
/// voltage: a climb of a usual battery takes off as much.
const NEAR_SHARE: f64 = 0.01;
/// So far below it the landing begins after [`SURE`].
const DEEP_SHARE: f64 = 0.03;
/// A charge that is reported so much higher than before in a flight is told, per cent.
const RISE_PERCENT: u8 = 5;

/// Places of [`Gauge::below_since`].
pub(super) const RETURN: usize = 0;
pub(super) const LAND: usize = 1;

/// What this flight has consumed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Gauge {
    /// When it began, and with how much charge.
    began: Option<(Instant, u8)>,
    /// The charge that was reported last, and since when. It stays when the report is missing: the clock runs on.
    charge: Option<(Instant, u8)>,
    /// The lowest charge that was reported for [`SURE`] in this flight: a battery does not charge in flight.
    lowest: Option<u8>,
    rate: Rate,
    /// The charge jumped in this flight.
    has_jumped: bool,
    /// The smoothed current in flight, amperes, and when it was taken.
    current: Option<(Instant, f64)>,
    /// The largest current of this flight, amperes.
    largest_a: f32,
    /// Capacity of the battery, milliampere hours, where the autopilot has it.
    capacity_mah: Option<f64>,
    /// How long one per cent lasted in the last flight, seconds.
    last_flight_s: Option<f64>,
    /// What was told of the charge already.
    has_told: Told,
    /// Since when the aircraft waits, for its operator or for others.
    pub(super) waits_since: Option<Instant>,
    /// Since when the charge does not last: one report may be wrong.
    pub(super) low_since: Option<Instant>,
    /// Since when the charge does not carry the aircraft home.
    pub(super) short_since: Option<Instant>,
    /// This flight was ended to spare the battery.
    pub(super) has_ended: bool,
    /// And it was ended by a landing.
    pub(super) has_landed: bool,
    /// A pilot was told that the battery does not last.
    pub(super) has_told_pilot: bool,
    /// Since when the voltage or the reported state asks for a return, and for a landing; see [`tenths`]. 0 where it does not.
    below_since: [u32; 2],
    pub(super) progress: Progress,
    pub(super) falls: Falls,
}

/// What was told of the charge in this flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    standing: bool,
    missing: bool,
    rise: bool,
}

/// Tenths of a second of the agent's time, from 1: an agent has little memory left.
fn tenths(now: Instant) -> u32 {
    u32::try_from(now.as_micros() / 100_000).unwrap_or(u32::MAX - 1) + 1
}

impl Gauge {
    /// The operator has decided: a wait begins anew, and a flight that is resumed can be ended again.
    pub(crate) fn decide(&mut self, command: Command) {
        (self.waits_since, self.low_since, self.short_since) = (None, None, None);
        self.below_since = [0; 2];
        self.has_ended &= command != Command::Resume;
        self.has_landed = false;
    }

    /// Whether the aircraft flies: above its home, or below it in a valley.
    pub(super) fn flies(telemetry: &Telemetry) -> bool {
        telemetry.armed && telemetry.height_m.abs() > STANDS_WITHIN_M
    }

    /// Takes what the aircraft reports of itself.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        reserve: &Reserve,
        telemetry: &Telemetry,
        capacity_mah: Option<f64>,
    ) {
        let flies = Self::flies(telemetry);
        if !telemetry.armed {
            let last_flight_s = self.rate.each_s().or(self.last_flight_s);
            *self = Self { last_flight_s, falls: self.falls, progress: self.progress, ..Self::default() };
        }
        self.capacity_mah = capacity_mah;
        let worst = worst(reserve, telemetry);
        if flies {
            self.observe_charge(now, worst.and_then(|worst| worst.remaining_percent));
            self.observe_current(now, reserve, telemetry);
        }
        let voltage_mv = worst.filter(|_| flies).and_then(millivolts);
        let state = worst.filter(|_| flies).map_or(ChargeState::Unknown, |worst| worst.state);
        let limits =
            [(reserve.return_below_mv, ChargeState::Critical), (reserve.land_below_mv, ChargeState::Failed)];
        for (since, (limit_mv, from)) in self.below_since.iter_mut().zip(limits) {
            let is_below = voltage_mv.is_some_and(|voltage_mv| voltage_mv < limit_mv) || state >= from;
            *since = if !is_below {
                0
            } else if *since == 0 {
                tenths(now)
            } else {
                *since
            };
        }
    }

    fn observe_charge(&mut self, now: Instant, reported: Option<u8>) {
        let Some(reported) = reported else { return self.rate.interrupt() };
        if let Some((since, percent)) = self.charge
            && now.since(since) >= SURE
        {
            self.lowest = Some(self.lowest.map_or(percent, |lowest| lowest.min(percent)));
        }
        self.began.get_or_insert((now, reported));
        let counted = self.lowest.map_or(reported, |lowest| reported.min(lowest));
        match self.charge {
            Some((_, percent)) if percent == counted => {}
            Some((_, percent)) => {
                self.has_jumped |= self.rate.on_change(now, percent, counted);
                self.charge = Some((now, counted));
            }
            None => self.charge = Some((now, counted)),
        }
    }

    fn observe_current(&mut self, now: Instant, reserve: &Reserve, telemetry: &Telemetry) {
        // It is the first battery's, which may not carry the flight.
        let battery = telemetry.measured.battery.as_ref().filter(|_| reserve.other_batteries & 1 == 0);
        let Some(found_a) = battery.and_then(|battery| battery.current_a) else {
            return self.current = None;
        };
        self.largest_a = self.largest_a.max(found_a as f32);
        let smoothed_a = self.current.map_or(found_a, |(at, smoothed_a)| {
            let dt_s = now.since(at).as_secs_f64();
            smoothed_a + (found_a - smoothed_a) * dt_s / (dt_s + CURRENT_S)
        });
        self.current = Some((now, smoothed_a));
    }

    /// Returns for how many seconds the voltage, or the state that the autopilot reports, has asked
    /// for it, where that is long enough.
    pub(super) fn below_for_s(
        &self,
        now: Instant,
        reserve: &Reserve,
        telemetry: &Telemetry,
        which: usize,
    ) -> Option<u32> {
        let since = self.below_since[which];
        let found_mv = worst(reserve, telemetry).and_then(millivolts).unwrap_or(u16::MAX);
        let counts_after = if which == LAND {
            lands_after(reserve.below_for_s, reserve.land_below_mv, found_mv)
        } else {
            Duration::from_secs(u64::from(reserve.below_for_s))
        };
        let below_for = tenths(now).saturating_sub(since);
        let for_s = (below_for / 10).min(u32::from(reserve.below_for_s));
        (since != 0 && u128::from(below_for) * 100 > counts_after.as_millis()).then_some(for_s)
    }

    /// Returns what is wrong with the report of the charge, each fault once in a flight.
    pub(super) fn doubts(&mut self, now: Instant, reserve: &Reserve, telemetry: &Telemetry) -> Option<Text> {
        let (since, percent) = self.charge.filter(|_| Self::flies(telemetry))?;
        let reported = worst(reserve, telemetry).and_then(|worst| worst.remaining_percent);
        let tell = |told: &mut bool| !core::mem::replace(told, true);
        match reported {
            None if tell(&mut self.has_told.missing) => Some(text!(
                "battery: its charge is no longer reported: {percent} % from here on are reckoned by the clock"
            )),
            Some(found) if found >= percent.saturating_add(RISE_PERCENT) && tell(&mut self.has_told.rise) => {
                Some(text!("battery: its charge rose to {found} % in flight: {percent} % count"))
            }
            Some(found)
                if found == percent
                    && now.since(since) >= STANDS_STILL
                    && tell(&mut self.has_told.standing) =>
            {
                let still_s = STANDS_STILL.as_secs();
                Some(text!("battery: the charge stands still for {still_s} s of flight"))
            }
            Some(_) | None => None,
        }
    }

    /// How long the aircraft has been waiting in flight.
    pub(super) fn waited(&mut self, now: Instant, telemetry: &Telemetry, view: &View) -> Duration {
        let waits = match view.phase {
            Phase::Ready | Phase::Waiting => true,
            Phase::Aborted => holds(telemetry),
            Phase::Start | Phase::Preparing | Phase::Moving | Phase::Ending | Phase::Finished => false,
        };
        let flies = Self::flies(telemetry) && !view.is_returning;
        self.waits_since = (waits && flies).then_some(self.waits_since.unwrap_or(now));
        self.waits_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns how long one per cent lasts, seconds: measured in this flight before all else.
    fn each_s(&self, reserve: &Reserve) -> Option<f64> {
        // One more: the last is used in part.
        let on_average = |(began_at, began): (Instant, u8)| {
            let (at, percent) = self.charge?;
            let consumed = began.saturating_sub(percent);
            (consumed >= MEASURED_FROM_PERCENT)
                .then(|| at.since(began_at).as_secs_f64() / (f64::from(consumed) + 1.0))
        };
        let average_s = || self.began.filter(|_| !self.has_jumped).and_then(on_average);
        let by_current = || {
            // A sensor that drops to 0 measures no flight.
            let least_a = f64::from(self.largest_a) * CURRENT_SHARE;
            let (_, current_a) =
                self.current.filter(|(_, current_a)| *current_a > 0.0 && *current_a >= least_a)?;
            // One per cent in ampere seconds.
            Some(self.capacity_mah? * 0.036 / current_a)
        };
        self.rate
            .each_s()
            .or_else(average_s)
            .or_else(by_current)
            .or(reserve.endurance.map(|endurance| endurance.as_secs_f64() / 100.0))
            .or(self.last_flight_s)
    }

    /// How long the aircraft flies until its reserve begins; none where that is unknown.
    pub(crate) fn time_left(
        &self,
        now: Instant,
        reserve: &Reserve,
        telemetry: &Telemetry,
    ) -> Option<Duration> {
        let on_ground = || Some((now, worst(reserve, telemetry)?.remaining_percent?));
        let (since, percent) = self.charge.or_else(on_ground)?;
        let usable = f64::from(percent.saturating_sub(reserve.reserve_percent));
        if usable <= 0.0 {
            return Some(Duration::ZERO);
        }
        // By the clock: a charge that is reported wrongly flies no farther than a full battery.
        let by_clock = self.began.zip(reserve.endurance).map(|((at, began), endurance)| {
            let usable = f64::from(began.saturating_sub(reserve.reserve_percent)) / 100.0;
            seconds(usable * endurance.as_secs_f64() - now.since(at).as_secs_f64())
        });
        // What was consumed since the last change is not reported yet.
        let by_charge = seconds(usable * self.each_s(reserve)? - now.since(since).as_secs_f64());
        Some(by_clock.map_or(by_charge, |by_clock| by_charge.min(by_clock)))
    }

    /// Returns the charge that a flight of this length takes down to the reserve, per cent; none where that is unknown.
    pub(crate) fn charge_for(&self, reserve: &Reserve, needed: Duration) -> Option<f64> {
        let each_s = self.each_s(reserve).filter(|each_s| *each_s > 0.0)?;
        Some(f64::from(reserve.reserve_percent) + needed.as_secs_f64() / each_s)
    }
}

/// Returns the battery that counts, where one is measured.
pub(crate) fn worst(reserve: &Reserve, telemetry: &Telemetry) -> Option<Worst> {
    telemetry.measured.battery.as_ref()?.worst(reserve.other_batteries)
}

/// Returns how long a voltage stays below the one for a landing before that begins: the configured
/// time down to [`NEAR_SHARE`] below it, and [`SURE`] from [`DEEP_SHARE`] on. The charge that is
/// left there carries no landing from a height after the whole time.
pub(crate) fn lands_after(below_for_s: u8, land_below_mv: u16, found_mv: u16) -> Duration {
    let usual = Duration::from_secs(u64::from(below_for_s));
    let missing = f64::from(land_below_mv.saturating_sub(found_mv)) / f64::from(land_below_mv.max(1));
    let share = ((missing - NEAR_SHARE) / (DEEP_SHARE - NEAR_SHARE)).clamp(0.0, 1.0);
    let shorter_s = (usual.as_secs_f64() - SURE.as_secs_f64()).max(0.0) * share;
    usual.saturating_sub(seconds(shorter_s))
}

/// Returns the voltage in millivolts; none where it is not measured.
pub(crate) fn millivolts(worst: Worst) -> Option<u16> {
    worst.voltage_v.map(|voltage_v| (voltage_v * 1e3 + 0.5) as u16).filter(|millivolts| *millivolts > 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::telemetry;
    use super::*;

    #[test]
    fn time_left_is_of_this_flight_and_unknown_before_it_has_consumed_something() {
        let reserve = Reserve::default();
        let mut gauge = Gauge::default();
        let left = |gauge: &mut Gauge, s, percent, reserve: &Reserve| {
            let telemetry = telemetry(percent, 20.0);
            gauge.observe(Instant::from_secs(s), reserve, &telemetry, None);
            gauge.time_left(Instant::from_secs(s), reserve, &telemetry).map(|left| left.as_secs())
        };
        assert_eq!(left(&mut gauge, 10, Some(100), &reserve), None);
        assert_eq!(left(&mut gauge, 40, Some(98), &reserve), None, "too little to tell");
        // 100 s for up to five per cent, and 76 to the reserve.
        assert_eq!(left(&mut gauge, 110, Some(96), &reserve), Some(1520));
        assert_eq!(left(&mut gauge, 115, Some(96), &reserve), Some(1515), "the clock runs on");
        assert_eq!(left(&mut gauge, 120, None, &reserve), Some(1510), "also without a report");
        assert_eq!(left(&mut gauge, 125, Some(15), &reserve), Some(0), "in the reserve");
        let known = Reserve { endurance: Some(Duration::from_secs(1_000)), ..reserve };
        assert_eq!(left(&mut Gauge::default(), 10, Some(70), &known), Some(500));
    }

    #[test]
    fn the_current_shows_the_rate_before_the_charge_does() {
        let reserve = Reserve::default();
        let mut telemetry = telemetry(Some(60), 20.0);
        telemetry.measured.battery.as_mut().unwrap().current_a = Some(18.0);
        let mut gauge = Gauge::default();
        gauge.observe(Instant::from_secs(1), &reserve, &telemetry, Some(5_000.0));
        // 10 s for one per cent, and 40 to the reserve.
        let left = gauge.time_left(Instant::from_secs(1), &reserve, &telemetry);
        assert_eq!(left.map(|left| left.as_secs()), Some(400));
    }

    #[test]
    fn a_current_of_another_battery_or_of_a_sensor_that_fails_does_not_count() {
        let other = Reserve { other_batteries: 1, ..Reserve::default() };
        let mut t = telemetry(Some(60), 20.0);
        t.measured.battery.as_mut().unwrap().current_a = Some(18.0);
        let mut gauge = Gauge::default();
        gauge.observe(Instant::from_secs(1), &other, &t, Some(5_000.0));
        assert_eq!(gauge.each_s(&other), None);
        let (reserve, mut gauge) = (Reserve::default(), Gauge::default());
        gauge.observe(Instant::from_secs(1), &reserve, &t, Some(5_000.0));
        assert_eq!(gauge.each_s(&reserve), Some(10.0));
        t.measured.battery.as_mut().unwrap().current_a = Some(0.0);
        for s in 2..200 {
            gauge.observe(Instant::from_secs(s), &reserve, &t, Some(5_000.0));
        }
        assert_eq!(gauge.each_s(&reserve), None);
    }

    #[test]
    fn an_aircraft_below_the_height_of_its_home_flies_too() {
        for (height_m, flies) in [(20.0, true), (0.5, false), (-0.5, false), (-8.0, true)] {
            assert_eq!(Gauge::flies(&telemetry(None, height_m)), flies, "{height_m}");
        }
    }

    #[test]
    fn a_charge_that_rises_in_flight_does_not_count_and_is_told_once() {
        let reserve = Reserve::default();
        let mut gauge = Gauge::default();
        let mut seen = |s, percent| {
            let (now, telemetry) = (Instant::from_secs(s), telemetry(Some(percent), 20.0));
            gauge.observe(now, &reserve, &telemetry, None);
            (gauge.charge.map(|(_, percent)| percent), gauge.doubts(now, &reserve, &telemetry).is_some())
        };
        assert_eq!(seen(1, 60), (Some(60), false));
        // One report may be wrong, in either direction.
        assert_eq!(seen(10, 3), (Some(3), false));
        assert_eq!(seen(11, 60), (Some(60), false));
        assert_eq!(seen(20, 40), (Some(40), false));
        assert_eq!(seen(24, 40), (Some(40), false));
        assert_eq!(seen(25, 90), (Some(40), true));
        assert_eq!(seen(26, 90), (Some(40), false), "told already");
    }

    #[test]
    fn the_rate_of_the_last_flight_is_known_on_the_ground() {
        let reserve = Reserve::default();
        let mut gauge = Gauge::default();
        for s in 0..100 {
            let telemetry = telemetry(Some(100 - (s / 10) as u8), 20.0);
            gauge.observe(Instant::from_secs(s), &reserve, &telemetry, None);
        }
        let mut landed = telemetry(Some(90), 0.0);
        landed.armed = false;
        gauge.observe(Instant::from_secs(100), &reserve, &landed, None);
        let left = gauge.time_left(Instant::from_secs(101), &reserve, &landed).map(|left| left.as_secs());
        assert_eq!(left, Some(700));
        assert_eq!(gauge.charge_for(&reserve, Duration::from_secs(900)), Some(110.0));
    }

    #[test]
    fn a_voltage_counts_once_it_has_been_below_for_as_long_as_configured_without_a_pause() {
        let reserve = Reserve { return_below_mv: 14_000, land_below_mv: 13_400, ..Reserve::default() };
        let mut gauge = Gauge::default();
        let mut below = |ms, voltage_v, height_m| {
            let mut telemetry = telemetry(None, height_m);
            telemetry.measured.battery.as_mut().unwrap().voltage_v = voltage_v;
            let now = Instant::from_millis(ms);
            gauge.observe(now, &reserve, &telemetry, None);
            [RETURN, LAND].map(|which| gauge.below_for_s(now, &reserve, &telemetry, which).is_some())
        };
        assert_eq!(below(1_000, 14.0, 20.0), [false, false], "not below");
        assert_eq!(below(2_000, 13.999, 20.0), [false, false]);
        assert_eq!(below(11_900, 13.0, 20.0), [false, false], "for 9.9 s");
        // A climb has ended: the time begins anew, for the first and not for the second.
        assert_eq!(below(12_000, 14.1, 20.0), [false, false]);
        assert_eq!(below(13_000, 13.3, 20.0), [false, false]);
        assert_eq!(below(20_000, 13.5, 20.0), [false, false]);
        assert_eq!(below(21_000, 13.3, 20.0), [false, false]);
        assert_eq!(below(23_000, 13.3, 20.0), [false, false], "for 10.0 s");
        assert_eq!(below(23_200, 13.3, 20.0), [true, false]);
        assert_eq!(below(31_200, 13.3, 20.0), [true, true]);
        // Not measured is not low, and on the ground nothing is.
        assert_eq!(below(31_300, 0.0, 20.0), [false, false]);
        assert_eq!(below(40_000, 13.0, 0.5), [false, false]);
        assert_eq!(below(60_000, 13.0, 0.5), [false, false]);
    }

    #[test]
    fn safe_08_a_voltage_far_below_the_one_for_a_landing_counts_sooner() {
        let after_s = |found_mv| lands_after(10, 13_750, found_mv).as_secs();
        assert_eq!([13_750, 13_700, 13_475, 13_337, 12_000].map(after_s), [10, 10, 6, 3, 3]);
        // A shorter time is the operator's.
        assert_eq!(lands_after(2, 13_750, 12_000), Duration::from_secs(2));
        let reserve = Reserve { return_below_mv: 14_960, land_below_mv: 13_750, ..Reserve::default() };
        let mut gauge = Gauge::default();
        let mut telemetry = telemetry(None, 40.0);
        telemetry.measured.battery.as_mut().unwrap().voltage_v = 13.1;
        let mut first = [None; 2];
        for tenth in 10..130 {
            let now = Instant::from_millis(tenth * 100);
            gauge.observe(now, &reserve, &telemetry, None);
            for which in [RETURN, LAND] {
                let for_s = gauge.below_for_s(now, &reserve, &telemetry, which);
                first[which] = first[which].or(for_s.map(|for_s| (tenth, for_s)));
            }
        }
        assert_eq!(first, [Some((111, 10)), Some((41, 3))], "in tenths of a second");
    }
}
