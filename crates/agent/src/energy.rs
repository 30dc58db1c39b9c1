//! Energy: how long the battery still carries the aircraft, how long the way home takes, and when it must go.
//!
//! Time is reckoned from what this flight has consumed so far, in per cent of the charge that the autopilot estimates
//! (`SYS_STATUS.battery_remaining`, <https://mavlink.io/en/messages/common.html#SYS_STATUS>). Where it estimates none, that is not
//! judged.
//!
//! Beside it, where they are configured, stand two voltages under load, as ArduPilot's `BATT_LOW_VOLT` and `BATT_CRT_VOLT`
//! (<https://ardupilot.org/copter/docs/failsafe-battery.html>): below the first for [`Reserve::below_for_s`] the aircraft ends its
//! flight as if its charge did not last, below the second it lands where it is, also on its way home. One report that is not below
//! begins the time anew: a climb takes the voltage down for seconds, and no return begins for that.

use serde::{Deserialize, Serialize};
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::parameter::Watched;
use wingbeat_geo::{DVec2, Duration, Frame, Instant, Position};
use wingbeat_protocol::{Command, ConfigError, EndFlight, Input, Phase, Severity, View, text};
use wingbeat_wire::Point;

use crate::{Agent, Outputs};

/// What is kept of the battery, and how fast the way home is reckoned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// Charge with which the aircraft is to be on the ground, per cent.
    pub reserve_percent: u8,
    /// How long a voltage stays below one of these before the flight ends, seconds; ArduPilot's `BATT_LOW_TIMER`.
    pub below_for_s: u8,
    /// Voltage under load below which the aircraft returns, millivolts; 0 for none.
    pub return_below_mv: u16,
    /// Voltage under load below which it lands where it is, millivolts; 0 for none.
    pub land_below_mv: u16,
    /// How long a full battery flies, until this flight has shown it; unknown without.
    pub endurance: Option<Duration>,
    /// How long an aircraft waits in flight, for its operator or for others, before its flight ends.
    pub wait: Duration,
    /// Speed over ground of the way home and of a route that the aircraft flies from waypoint to waypoint, metres per
    /// second.
    pub cruise_m_s: f64,
}

impl Default for Reserve {
    fn default() -> Self {
        Self {
            reserve_percent: 20,
            below_for_s: 10,
            return_below_mv: 0,
            land_below_mv: 0,
            endurance: None,
            wait: Duration::from_secs(600),
            cruise_m_s: 5.0,
        }
    }
}

impl Reserve {
    /// A quarter of it.
    fn quarter(&self) -> Self {
        Self { reserve_percent: self.reserve_percent / 4, ..*self }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::range("reserve_percent", f64::from(self.reserve_percent), 0.0, 90.0)?;
        check_voltage("return_below_v", self.return_below_mv)?;
        check_voltage("land_below_v", self.land_below_mv)?;
        check_below_for(self.below_for_s)?;
        let [returns, lands] = [self.return_below_mv, self.land_below_mv].map(volts);
        if returns > 0.0 {
            ConfigError::at_least("return_below_v", returns, lands, "energy.land_below_v")?;
        }
        let endurance_s = self.endurance.map_or(900.0, |endurance| endurance.as_secs_f64());
        ConfigError::range("endurance_s", endurance_s, 60.0, 36_000.0)?;
        // Longer than any wait that the protocols bound themselves.
        ConfigError::range("wait_s", self.wait.as_secs_f64(), 180.0, 36_000.0)?;
        ConfigError::speed("cruise_m_s", self.cruise_m_s)
    }
}

/// A voltage that batteries of 1 to 14 cells have, where one is configured; millivolts.
pub(crate) fn check_voltage(key: &'static str, millivolts: u16) -> Result<(), ConfigError> {
    match millivolts {
        0 => Ok(()),
        _ => ConfigError::range(key, volts(millivolts), 3.0, 60.0),
    }
}

/// ArduPilot's range of `BATT_LOW_TIMER`, but for 0, which turns a failsafe off there.
pub(crate) fn check_below_for(seconds: u8) -> Result<(), ConfigError> {
    ConfigError::range("below_for_s", f64::from(seconds), 1.0, 120.0)
}

/// As messages state it.
pub(crate) fn volts(millivolts: u16) -> f64 {
    f64::from(millivolts) * 1e-3
}

/// Below this height the aircraft stands, metres: hovering low costs nothing that matters here.
const FLIES_ABOVE_M: f64 = 1.0;
/// Until so much is consumed its rate is not known, per cent: the autopilot reports whole ones.
const MEASURED_FROM_PERCENT: u8 = 3;
/// From the decision until the aircraft is under way, with the wait of RTL above home (`RTL_LOIT_TIME`, 5 s).
const RETURN_DELAY: Duration = Duration::from_secs(10);
/// In a swarm others may be in the way home when it begins.
const OTHERS_CLEAR: Duration = Duration::from_secs(30);
/// A charge that stands still for so long in flight is not measured.
const STANDS_STILL: Duration = Duration::from_secs(300);
/// A charge that does not last is acted upon when it has been reported for so long.
const SURE: Duration = Duration::from_secs(3);
/// A stop and a wait at each waypoint.
const AT_WAYPOINT: Duration = Duration::from_secs(5);
/// ArduCopter's usual speeds up and down (`WPNAV_SPEED_UP`, `WPNAV_SPEED_DN`, `LAND_SPEED`), metres per second.
const CLIMB_M_S: f64 = 2.5;
const DESCENT_M_S: f64 = 1.5;
const LANDING_M_S: f64 = 0.5;
/// From this height on it lands slowly (`LAND_ALT_LOW`), metres.
const LANDS_SLOWLY_BELOW_M: f64 = 10.0;

/// What this flight has consumed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Gauge {
    /// When it began, and with how much charge.
    began: Option<(Instant, u8)>,
    /// The charge that was reported last, and since when.
    charge: Option<(Instant, u8)>,
    /// A charge that stands still has been reported.
    is_doubted: bool,
    /// Since when the aircraft waits, for its operator or for others.
    waits_since: Option<Instant>,
    /// Since when the charge does not last: one report may be wrong.
    low_since: Option<Instant>,
    /// This flight was ended to spare the battery.
    has_ended: bool,
    /// And it was ended by a landing, for a voltage.
    has_landed: bool,
    /// Since when the voltage is below that of a return, and that of a landing; see [`tenths`]. 0 where it is not.
    below_since: [u32; 2],
}

/// Places of [`Gauge::below_since`].
const RETURN: usize = 0;
const LAND: usize = 1;

/// Tenths of a second of the agent's time, from 1: an agent has little memory left.
fn tenths(now: Instant) -> u32 {
    u32::try_from(now.as_micros() / 100_000).unwrap_or(u32::MAX - 1) + 1
}

impl Gauge {
    /// The operator has decided: a wait begins anew, and a flight that is resumed can be ended again.
    pub(crate) fn decide(&mut self, command: Command) {
        (self.waits_since, self.low_since, self.below_since) = (None, None, [0; 2]);
        self.has_ended &= command != Command::Resume;
        self.has_landed = false;
    }

    /// Takes what the aircraft reports of itself.
    pub(crate) fn observe(&mut self, now: Instant, reserve: &Reserve, telemetry: &Telemetry) {
        let flies = telemetry.armed && telemetry.height_m > FLIES_ABOVE_M;
        if !telemetry.armed {
            *self = Self::default();
        } else if flies && self.began.is_none() {
            self.began = remaining_percent(telemetry).map(|percent| (now, percent));
        }
        let percent = remaining_percent(telemetry).filter(|_| flies);
        if percent != self.charge.map(|(_, percent)| percent) {
            self.charge = percent.map(|percent| (now, percent));
        }
        let voltage_mv = millivolts(telemetry).filter(|_| flies);
        let limits = [reserve.return_below_mv, reserve.land_below_mv];
        for (since, limit_mv) in self.below_since.iter_mut().zip(limits) {
            let is_below = voltage_mv.is_some_and(|voltage_mv| voltage_mv < limit_mv);
            *since = if !is_below {
                0
            } else if *since == 0 {
                tenths(now)
            } else {
                *since
            };
        }
    }

    /// Whether the voltage has been below one of its two for long enough.
    fn is_below(&self, now: Instant, reserve: &Reserve, which: usize) -> bool {
        let since = self.below_since[which];
        since != 0 && tenths(now).saturating_sub(since) > 10 * u32::from(reserve.below_for_s)
    }

    /// Whether the charge has stood still for so long that it is not measured; once in a flight.
    fn doubts(&mut self, now: Instant) -> bool {
        let stands_still = self.charge.is_some_and(|(since, _)| now.since(since) >= STANDS_STILL);
        stands_still && !core::mem::replace(&mut self.is_doubted, true)
    }

    /// How long the aircraft has been waiting in flight.
    fn waited(&mut self, now: Instant, telemetry: &Telemetry, view: &View) -> Duration {
        let waits = match view.phase {
            Phase::Ready | Phase::Waiting => true,
            Phase::Aborted => holds(telemetry),
            Phase::Start | Phase::Preparing | Phase::Moving | Phase::Ending | Phase::Finished => false,
        };
        let flies = telemetry.armed && telemetry.height_m > FLIES_ABOVE_M && !view.is_returning;
        self.waits_since = (waits && flies).then_some(self.waits_since.unwrap_or(now));
        self.waits_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// How long the aircraft flies until its reserve begins; none where that is unknown.
    pub(crate) fn time_left(
        &self,
        now: Instant,
        reserve: &Reserve,
        telemetry: &Telemetry,
    ) -> Option<Duration> {
        let percent = remaining_percent(telemetry)?;
        let usable = f64::from(percent.saturating_sub(reserve.reserve_percent));
        if usable <= 0.0 {
            return Some(Duration::ZERO);
        }
        // By the clock: a charge that is reported wrongly flies no farther than a full battery.
        let by_clock = self.began.zip(reserve.endurance).map(|((at, began), endurance)| {
            let usable = f64::from(began.saturating_sub(reserve.reserve_percent)) / 100.0;
            seconds(usable * endurance.as_secs_f64() - now.since(at).as_secs_f64())
        });
        let measured_s = self.began.and_then(|(at, began)| {
            let consumed = began.saturating_sub(percent);
            // One more: the last is used in part.
            let each_s = now.since(at).as_secs_f64() / (f64::from(consumed) + 1.0);
            (consumed >= MEASURED_FROM_PERCENT).then_some(each_s)
        });
        let each_s = measured_s.or(reserve.endurance.map(|endurance| endurance.as_secs_f64() / 100.0))?;
        let by_charge = seconds(usable * each_s);
        Some(by_clock.map_or(by_charge, |by_clock| by_charge.min(by_clock)))
    }
}

fn remaining_percent(telemetry: &Telemetry) -> Option<u8> {
    telemetry.measured.battery.as_ref()?.remaining_percent.filter(|percent| *percent <= 100)
}

/// The battery's voltage; none where it is not measured, which some autopilots report as 0.
fn millivolts(telemetry: &Telemetry) -> Option<u16> {
    let voltage_v = telemetry.measured.battery.as_ref()?.voltage_v;
    Some((voltage_v * 1e3 + 0.5) as u16).filter(|millivolts| *millivolts > 0)
}

fn seconds(s: f64) -> Duration {
    Duration::from_millis((s.max(0.0) * 1e3) as u64)
}

/// How long the descent from a height above home takes.
fn descent_s(height_m: f64) -> f64 {
    let slow_m = height_m.clamp(0.0, LANDS_SLOWLY_BELOW_M);
    (height_m - slow_m).max(0.0) / DESCENT_M_S + slow_m / LANDING_M_S
}

/// How long a return takes from here to standing at home, at the autopilot's height of returns where it is known; to a
/// home that is unknown only the descent counts.
pub(crate) fn way_home(
    reserve: &Reserve,
    telemetry: &Telemetry,
    view: &View,
    autopilots_m: Option<f64>,
) -> Duration {
    // After a restart in flight it is known from the autopilot's report alone, where that comes.
    let here = telemetry.position.zip(telemetry.disarmed_position.or(telemetry.home));
    let distance_m = here.map_or(0.0, |(here, home)| Frame::new(home).to_local(here).truncate().length());
    let own_m = view.return_height_mm.map(|mm| f64::from(mm) * 1e-3);
    let returns_at_m = own_m.or(autopilots_m).unwrap_or(telemetry.height_m);
    let height_m = telemetry.height_m.max(returns_at_m);
    let climb_s = (height_m - telemetry.height_m) / CLIMB_M_S;
    let others = if view.swarm.size > 1 { OTHERS_CLEAR } else { Duration::ZERO };
    RETURN_DELAY + others + seconds(climb_s + distance_m / reserve.cruise_m_s + descent_s(height_m))
}

/// How long the rest of a route takes, from here to standing at its end.
pub(crate) fn rest_of_route(
    reserve: &Reserve,
    telemetry: &Telemetry,
    view: &View,
    route: &[Point],
) -> Option<Duration> {
    let next = view.reached.map_or(0, |reached| usize::from(reached) + 1);
    let (rest, here) = (route.get(next..)?, telemetry.position?);
    let frame = Frame::new(here);
    let place = |w: &Point| {
        let position =
            Position { latitude_e7: w.latitude_e7, longitude_e7: w.longitude_e7, ..Position::default() };
        (frame.to_local(position).truncate(), f64::from(w.height_mm) * 1e-3)
    };
    let from = (DVec2::ZERO, telemetry.height_m);
    let (speed_m_s, wait_s) = match view.route_speed_m_s {
        Some(speed_m_s) => (speed_m_s, 0.0),
        None => (reserve.cruise_m_s, AT_WAYPOINT.as_secs_f64()),
    };
    let (mut total_s, mut last) = (0.0, from);
    for waypoint in rest.iter().map(place) {
        let climb_s = (waypoint.1 - last.1).abs() / DESCENT_M_S;
        total_s += ((waypoint.0 - last.0).length() / speed_m_s).max(climb_s) + wait_s;
        last = waypoint;
    }
    Some(seconds(total_s + descent_s(last.1)))
}

/// Whether the aircraft flies on, or hovers, until it is told to end: a pilot ends his own flight, and one that stands for another on
/// its way home goes on by itself.
fn goes_on(telemetry: &Telemetry, view: &View) -> bool {
    telemetry.armed
        && !view.is_piloted
        && !view.is_returning
        && match view.phase {
            Phase::Preparing | Phase::Ready | Phase::Moving | Phase::Waiting => true,
            Phase::Aborted => holds(telemetry),
            Phase::Start | Phase::Ending | Phase::Finished => false,
        }
}

fn holds(telemetry: &Telemetry) -> bool {
    telemetry.mode() == Some(Mode::Brake)
}

impl Agent {
    /// How long the flight can last and how long the rest of it takes, where both are known.
    pub(crate) fn flight_against_battery(&self, now: Instant) -> Option<(Duration, Duration)> {
        let (reserve, view) = (self.config.energy.as_ref()?, self.protocol.view());
        let left = self.gauge.time_left(now, reserve, &self.telemetry)?;
        let route = self.protocol.route();
        let needed = rest_of_route(reserve, &self.telemetry, &view, route)?;
        (!view.is_piloted && !route.is_empty()).then_some((left, needed))
    }

    /// Ends the flight while the battery still carries the aircraft home: *Return*, and where that does not bring it down,
    /// *Land*.
    pub(crate) fn judge_energy(&mut self, now: Instant, out: &mut Outputs) {
        let Some(reserve) = self.config.energy else { return };
        self.gauge.observe(now, &reserve, &self.telemetry);
        if self.gauge.doubts(now) {
            let charge_s = STANDS_STILL.as_secs();
            out.log(Severity::Warning, text!("battery: the charge stands still for {charge_s} s of flight"));
        }
        let view = self.protocol.view();
        let waited = self.gauge.waited(now, &self.telemetry, &view);
        if self.must_land(now, &reserve, &view) {
            self.log_voltage(&reserve, reserve.land_below_mv, EndFlight::Land, out);
            (self.gauge.has_ended, self.gauge.has_landed) = (true, true);
            return self.end_flight(now, EndFlight::Land, out);
        }
        if self.stands_too_long(now, &reserve, &view) {
            let (least, ending) = (reserve.quarter().reserve_percent, EndFlight::Land);
            out.log(Severity::Warning, text!("battery: it would be home below {least} %: {ending}"));
            self.gauge.has_landed = true;
            return self.end_flight(now, ending, out);
        }
        if !self.authority.is_ours() || !goes_on(&self.telemetry, &view) || self.executor.ends_flight() {
            return;
        }
        // Followers return at one height, with nothing to keep them apart: they land, as far apart as they fly.
        let is_apart_on_return = view.swarm.size < 2 || view.return_height_mm.is_some();
        let returns =
            is_apart_on_return && !self.gauge.has_ended && self.protocol.permits(Command::Return).is_ok();
        let down = RETURN_DELAY + seconds(descent_s(self.telemetry.height_m));
        let (ending, needed) = match returns {
            true => {
                let home = way_home(&reserve, &self.telemetry, &view, self.autopilots_return_m());
                (EndFlight::Return, home.max(down))
            }
            false => (EndFlight::Land, down),
        };
        if waited >= reserve.wait {
            let waited_s = waited.as_secs();
            out.log(Severity::Warning, text!("waited in flight for {waited_s} s: {ending}"));
            return self.end_flight(now, ending, out);
        }
        // After a return that was held up, only what holds still is to be ended.
        let may_end = !self.gauge.has_ended || holds(&self.telemetry);
        if may_end && self.gauge.is_below(now, &reserve, RETURN) {
            self.log_voltage(&reserve, reserve.return_below_mv, ending, out);
            self.gauge.has_ended = true;
            return self.end_flight(now, ending, out);
        }
        let Some(left) = self.gauge.time_left(now, &reserve, &self.telemetry) else { return };
        if left > needed || !may_end {
            self.gauge.low_since = None;
            return;
        }
        let since = *self.gauge.low_since.get_or_insert(now);
        if now.since(since) < SURE {
            return;
        }
        let (left_s, needed_s, percent) = (left.as_secs(), needed.as_secs(), reserve.reserve_percent);
        out.log(
            Severity::Warning,
            text!("battery: {left_s} s until {percent} % are left, {needed_s} s to be down: {ending}"),
        );
        self.gauge.has_ended = true;
        self.end_flight(now, ending, out);
    }

    /// Height of the autopilot's returns above home, where it is known, metres.
    fn autopilots_return_m(&self) -> Option<f64> {
        match self.parameters.value(Watched::ReturnHeight) {
            Some(centimetres) => Some(centimetres.as_f64() * 1e-2),
            None => self.parameters.value(Watched::ReturnHeightM).map(|metres| metres.as_f64()),
        }
    }

    /// Whether an aircraft that stands for another on its way home would be there with less than a quarter of the reserve.
    fn stands_too_long(&self, now: Instant, reserve: &Reserve, view: &View) -> bool {
        let stands = view.is_returning && self.telemetry.armed && self.telemetry.mode() != Some(Mode::Rtl);
        if !stands || !self.authority.is_ours() || self.gauge.has_landed {
            return false;
        }
        let least = reserve.quarter();
        // It has set out already.
        let home = way_home(&least, &self.telemetry, view, self.autopilots_return_m());
        let home = home.saturating_sub(RETURN_DELAY);
        self.gauge.time_left(now, &least, &self.telemetry).is_some_and(|left| left < home)
    }

    /// Whether the voltage is so low that the aircraft lands wherever it is: on its route, on its way home, and where it holds.
    fn must_land(&self, now: Instant, reserve: &Reserve, view: &View) -> bool {
        let is_flown_by_us = self.authority.is_ours() && !view.is_piloted;
        let is_in_flight = match view.phase {
            Phase::Preparing
            | Phase::Ready
            | Phase::Moving
            | Phase::Waiting
            | Phase::Ending
            | Phase::Aborted => true,
            Phase::Start | Phase::Finished => false,
        };
        let lands = self.gauge.has_landed || self.telemetry.mode() == Some(Mode::Land);
        is_flown_by_us && is_in_flight && !lands && self.gauge.is_below(now, reserve, LAND)
    }

    fn log_voltage(&self, reserve: &Reserve, limit_mv: u16, ending: EndFlight, out: &mut Outputs) {
        let found = volts(millivolts(&self.telemetry).unwrap_or_default());
        let (limit, for_s) = (volts(limit_mv), reserve.below_for_s);
        out.log(
            Severity::Warning,
            text!("battery: {found:.2} V, below {limit:.2} V for {for_s} s: {ending}"),
        );
    }

    fn end_flight(&mut self, now: Instant, ending: EndFlight, out: &mut Outputs) {
        self.gauge.waits_since = None;
        self.protocol_input(now, Input::BatteryLow(ending), out);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString as _;

    use super::*;
    use wingbeat_autopilot::telemetry::Battery;

    fn telemetry(percent: Option<u8>, height_m: f64) -> Telemetry {
        let mut telemetry = Telemetry { armed: true, height_m, ..Telemetry::default() };
        telemetry.measured.battery = Some(Battery {
            voltage_v: 15.0,
            current_a: None,
            remaining_percent: percent,
            cells_v: heapless::Vec::new(),
            consumed_mah: None,
        });
        telemetry
    }

    fn rounded_s(time: Duration) -> i64 {
        time.as_secs_f64().round() as i64
    }

    #[test]
    fn time_left_is_of_this_flight_and_unknown_before_it_has_consumed_something() {
        let reserve = Reserve::default();
        let mut gauge = Gauge::default();
        let left = |gauge: &mut Gauge, s, percent, reserve: &Reserve| {
            let telemetry = telemetry(percent, 20.0);
            gauge.observe(Instant::from_secs(s), reserve, &telemetry);
            gauge.time_left(Instant::from_secs(s), reserve, &telemetry).map(|left| left.as_secs())
        };
        assert_eq!(left(&mut gauge, 10, Some(100), &reserve), None);
        assert_eq!(left(&mut gauge, 40, Some(98), &reserve), None, "too little to tell");
        // 100 s for up to five per cent, and 76 to the reserve.
        assert_eq!(left(&mut gauge, 110, Some(96), &reserve), Some(1520));
        assert_eq!(left(&mut gauge, 110, Some(15), &reserve), Some(0), "in the reserve");
        assert_eq!(left(&mut gauge, 110, None, &reserve), None, "not estimated");
        let known = Reserve { endurance: Some(Duration::from_secs(1_000)), ..reserve };
        assert_eq!(left(&mut Gauge::default(), 10, Some(70), &known), Some(500));
    }

    #[test]
    fn a_voltage_counts_once_it_has_been_below_for_as_long_as_configured_without_a_pause() {
        let reserve = Reserve { return_below_mv: 14_000, land_below_mv: 13_400, ..Reserve::default() };
        let mut gauge = Gauge::default();
        let mut below = |ms, voltage_v, height_m| {
            let mut telemetry = telemetry(None, height_m);
            telemetry.measured.battery.as_mut().unwrap().voltage_v = voltage_v;
            let now = Instant::from_millis(ms);
            gauge.observe(now, &reserve, &telemetry);
            [gauge.is_below(now, &reserve, RETURN), gauge.is_below(now, &reserve, LAND)]
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
    fn voltages_that_cannot_be_kept_are_refused() {
        let refused = |reserve: Reserve| reserve.check().unwrap_err().within("energy").to_string();
        let of =
            |return_below_mv, land_below_mv| Reserve { return_below_mv, land_below_mv, ..Reserve::default() };
        for reserve in [of(0, 0), of(14_000, 13_400), of(14_000, 14_000), of(14_000, 0), of(0, 13_400)] {
            assert_eq!(reserve.check(), Ok(()), "{reserve:?}");
        }
        assert!(
            refused(of(13_400, 14_000)).contains("energy.return_below_v: found 13.4, expected at least 14")
        );
        assert!(refused(of(2_000, 0)).contains("energy.return_below_v: found 2, expected 3 to 60"));
        assert!(refused(of(0, 61_000)).contains("energy.land_below_v: found 61, expected 3 to 60"));
        for below_for_s in [0, 121] {
            let found = refused(Reserve { below_for_s, ..Reserve::default() });
            assert!(
                found.contains(&std::format!("energy.below_for_s: found {below_for_s}, expected 1 to 120")),
                "{found}"
            );
        }
    }

    #[test]
    fn the_way_home_climbs_flies_and_comes_down() {
        let view = View::alone(wingbeat_protocol::StateId::Flying, Phase::Moving);
        let mut t = telemetry(Some(50), 25.0);
        // 10 s, 15 m at 1.5 m/s, 10 m at 0.5 m/s.
        assert_eq!(rounded_s(way_home(&Reserve::default(), &t, &view, None)), 40);
        let home = Position::from_degrees(39.4824, -0.3464, 10.0).unwrap();
        (t.disarmed_position, t.position) =
            (Some(home), Some(Frame::new(home).to_position(wingbeat_geo::DVec3::new(300.0, 400.0, 0.0))));
        assert_eq!(rounded_s(way_home(&Reserve::default(), &t, &view, None)), 140, "500 m at 5 m/s");
        let higher = View { return_height_mm: Some(40_000), ..view };
        assert_eq!(
            rounded_s(way_home(&Reserve::default(), &t, &higher, None)),
            156,
            "15 m up, and down again"
        );
    }

    #[test]
    fn the_rest_of_a_route_begins_where_it_was_reached() {
        let view = View::alone(wingbeat_protocol::StateId::Flying, Phase::Moving);
        let home = Position::from_degrees(39.4824, -0.3464, 10.0).unwrap();
        let mut t = telemetry(Some(50), 10.0);
        t.position = Some(home);
        let frame = Frame::new(home);
        let waypoint = |north_m: f64| {
            let p = frame.to_position(wingbeat_geo::DVec3::new(0.0, north_m, 0.0));
            Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: 10_000 }
        };
        let route = [waypoint(0.0), waypoint(500.0), waypoint(0.0)];
        let rest = |view: &View| rest_of_route(&Reserve::default(), &t, view, &route).map(rounded_s);
        // Three stops, 1000 m at 5 m/s, 10 m at 0.5 m/s.
        assert_eq!(rest(&view), Some(235));
        assert_eq!(rest(&View { reached: Some(1), ..view }), Some(25), "it is there already");
        assert_eq!(rest(&View { reached: Some(2), ..view }), Some(20));
        let fast = View { route_speed_m_s: Some(10.0), ..view };
        assert_eq!(rest(&fast), Some(120), "in AUTO it stops nowhere");
    }
}
