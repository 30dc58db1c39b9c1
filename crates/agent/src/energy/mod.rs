//! Energy: how long the battery still carries the aircraft, how long the way home takes, and when it must go.
//!
//! Time is reckoned from what this flight has consumed so far, in per cent of the charge that the autopilot estimates
//! (`SYS_STATUS.battery_remaining`, <https://mavlink.io/en/messages/common.html#SYS_STATUS>), of the worst battery. Where it
//! estimates none, that is not judged. The way home is reckoned with the speeds of the autopilot's own parameters, against the
//! wind that it measures ([`paths`], [`air`]).
//!
//! The charge is judged with each position report, in every state. While the way home ends with the reserve the flight continues. At
//! that limit the aircraft returns. It lands where it is if a return would end with less than a quarter of the reserve: by the
//! measured speed of the return, and by the prediction only where no time is left to measure it.
//!
//! In addition two voltages under load count where they are configured, as ArduPilot's
//! `BATT_LOW_VOLT` and `BATT_CRT_VOLT` (<https://ardupilot.org/copter/docs/failsafe-battery.html>):
//! below the first for [`Reserve::below_for_s`] the aircraft ends its flight as if its charge did
//! not last. Below the second it lands where it is, also on its way home, and sooner where the
//! voltage is far below it ([`lands_after`]). One report that is not below restarts the time: a
//! climb takes the voltage down for seconds, and no return begins for that. Of the states that the
//! autopilot reports of a battery, *critical* counts as the first voltage, *failed* and *emergency*
//! as the second.

mod air;
mod falls;
mod gauge;
mod paths;
mod rate;

use serde::{Deserialize, Serialize};
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::copter::Mode;
use wingbeat_autopilot::parameter::Watched;
use wingbeat_geo::{DVec2, Duration, Instant};
use wingbeat_protocol::{Command, ConfigError, EndFlight, Input, Phase, Severity, View, text};

use crate::takeover::Authority;
use crate::{Agent, Coordination, Outputs};
use air::Air;
pub(crate) use gauge::{Gauge, lands_after, millivolts, worst};
use gauge::{LAND, RETURN};
use paths::{Home, Reckoning, Speeds};

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
    /// Speed over ground of the way home and of a route that the aircraft flies from waypoint to waypoint, where the autopilot's
    /// own is not known, metres per second.
    pub cruise_m_s: f64,
    /// Wind where none is measured, metres per second; the swarm's where it is not stated.
    pub wind_m_s: Option<f64>,
    /// Airspeed of the aircraft at its greatest lean, metres per second; the swarm's, or the usual one of the autopilot's version,
    /// where it is not stated.
    pub airspeed_m_s: Option<f64>,
    /// Batteries that do not carry the flight, a bit for each, the lowest for the first: nothing is judged by them, also by the
    /// guardian.
    pub other_batteries: u16,
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
            wind_m_s: None,
            airspeed_m_s: None,
            other_batteries: 0,
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
        ConfigError::range("wind_m_s", self.wind_m_s.unwrap_or(0.0), 0.0, 30.0)?;
        ConfigError::range("airspeed_m_s", self.airspeed_m_s.unwrap_or(10.0), 1.0, 60.0)?;
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

/// A charge that does not last is acted upon when it has been reported for so long.
pub(crate) const SURE: Duration = Duration::from_secs(3);
/// A prediction of the wind or of the airspeed lands no aircraft that still flies for this time after a landing: its return
/// is flown first, and measured.
const MEASURES_WITHIN: Duration = Duration::from_secs(120);
/// With that much charge left a return is too slow for this time before the aircraft lands: gusts pass.
const GUSTS_PASS: Duration = Duration::from_secs(60);
/// A return that takes so much longer than a landing below the aircraft is not at its end.
const STILL_FAR: Duration = Duration::from_secs(15);

fn seconds(s: f64) -> Duration {
    Duration::from_millis((s.max(0.0) * 1e3) as u64)
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

/// The flight against the battery, for the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyStatus {
    /// How long the aircraft flies until its reserve begins; absent where that is not known.
    pub left: Option<Duration>,
    /// How long its flight takes: on the ground the rest of the route, in flight the way home, and where it does not return the
    /// landing below it; absent where that is not known.
    pub needed: Option<Duration>,
    /// How long a landing below the aircraft takes; absent on the ground.
    pub down: Option<Duration>,
    /// Batteries that nothing is judged by: [`Reserve::other_batteries`].
    pub other_batteries: u16,
}

/// The battery against the way home, at one time.
struct Outlook {
    /// Until the reserve begins.
    left: Option<Duration>,
    /// Until a quarter of the reserve is left.
    least: Option<Duration>,
    /// Until the battery is empty.
    empty: Option<Duration>,
    home: Home,
    down: Duration,
    /// Whether the present return has shown its speed.
    is_measured: bool,
}

impl Outlook {
    /// Whether the aircraft cannot come home with a quarter of its reserve, and is not above it yet. A prediction counts where
    /// no time is left to measure the return.
    fn is_short(&self) -> bool {
        let (takes, down) = (self.home.takes, self.down);
        let ends_within =
            |left: Duration| left < takes && (self.is_measured || left <= down + MEASURES_WITHIN);
        let is_short = takes > down + STILL_FAR && self.least.is_some_and(ends_within);
        // Where the battery would be empty on the way, it lands here near its home, too: it does not
        // fall, or not so far.
        let falls = takes > down + SURE && self.empty.is_some_and(ends_within);
        !self.home.is_there && (is_short || falls)
    }
}

/// A flight that is to be ended by its battery is ended this share of the way home earlier: one twentieth.
const MARGIN_SHARE: u32 = 20;

impl Agent {
    /// Returns the airspeed and the wind of the swarm's configuration, where there is one.
    fn stated_air(&self) -> Option<(Option<f64>, f64)> {
        let swarm = match &self.config.coordination {
            Coordination::Muscop(config) => &config.swarm,
            Coordination::FollowMe(config) => &config.swarm,
            Coordination::Mission(_) | Coordination::Mbcap(_) | Coordination::Sweep(_) => return None,
        };
        Some((swarm.airspeed_m_s, swarm.surroundings.wind_m_s))
    }

    /// Returns the speed that the route states for the leg that is flown.
    fn leg_m_s(&self, view: &View) -> Option<f64> {
        let next = view.reached.map_or(0, |reached| usize::from(reached) + 1);
        self.protocol.extras().speed_m_s(next)
    }

    /// Returns the same where the autopilot writes it into its own speed, by which it returns too: ArduCopter 3.
    fn written_leg_m_s(&self, view: &View) -> Option<f64> {
        let writes = self.telemetry.version.is_some_and(|version| version.major < 4);
        self.leg_m_s(view).filter(|_| writes)
    }

    fn reckoning<'a>(&'a self, reserve: &Reserve, view: &'a View) -> Reckoning<'a> {
        let telemetry = &self.telemetry;
        Reckoning {
            telemetry,
            view,
            extras: self.protocol.extras(),
            speeds: Speeds::of(&self.parameters, reserve, self.written_leg_m_s(view)),
            air: Air::of(reserve, self.stated_air(), telemetry, &self.gauge.progress),
            autopilots_m: self.autopilots_return_m(),
        }
    }

    fn outlook(&self, now: Instant, reserve: &Reserve, view: &View) -> Outlook {
        let reckoning = self.reckoning(reserve, view);
        let course = reckoning.home_m().map(DVec2::normalize_or_zero);
        let measured = course.and_then(|course| self.gauge.progress.of_return(now, course));
        let home = reckoning.home(measured);
        Outlook {
            left: self.gauge.time_left(now, reserve, &self.telemetry),
            least: self.gauge.time_left(now, &reserve.quarter(), &self.telemetry),
            empty: self.gauge.time_left(now, &Reserve { reserve_percent: 0, ..*reserve }, &self.telemetry),
            home,
            down: reckoning.down(),
            is_measured: measured.is_some(),
        }
    }

    /// How long the flight can last and how long the rest of it takes, where both are known.
    pub(crate) fn flight_against_battery(&self, now: Instant) -> Option<Need> {
        let (reserve, view) = (self.config.energy.as_ref()?, self.protocol.view());
        let left = self.gauge.time_left(now, reserve, &self.telemetry)?;
        let route = self.protocol.route();
        let reckoning = self.reckoning(reserve, &view);
        let (needed, airspeed_m_s) = (reckoning.rest_of_route(route)?, reckoning.air.assumed_m_s());
        if view.is_piloted || route.is_empty() {
            return None;
        }
        Some(Need { left, needed, percent: self.gauge.charge_for(reserve, needed), airspeed_m_s })
    }

    /// Returns the flight against the battery as it is shown.
    pub(crate) fn energy_status(&self, now: Instant) -> Option<EnergyStatus> {
        let reserve = self.config.energy.as_ref()?;
        let (view, other_batteries) = (self.protocol.view(), reserve.other_batteries);
        if !Gauge::flies(&self.telemetry) {
            let left = self.gauge.time_left(now, reserve, &self.telemetry);
            let route = self.protocol.route();
            let rest = || self.reckoning(reserve, &view).rest_of_route(route);
            let needed = if route.is_empty() || view.is_piloted { None } else { rest() };
            return Some(EnergyStatus { left, needed, down: None, other_batteries });
        }
        let Outlook { left, home, down, .. } = self.outlook(now, reserve, &view);
        let lands = self.telemetry.mode() == Some(Mode::Land) || !is_apart_on_return(&view);
        let needed = if lands { down } else { home.takes.max(down) };
        Some(EnergyStatus { left, needed: Some(needed), down: Some(down), other_batteries })
    }

    /// Logs a fall and an empty battery.
    pub(crate) fn watch_fall(&mut self, out: &mut Outputs) {
        let reserve = self.config.energy.unwrap_or_default();
        let descent_m_s = Speeds::of(&self.parameters, &reserve, None).fastest_descent_m_s();
        let is_by_hand = self.protocol.view().is_piloted || self.taken_by_pilot().is_some();
        let (t, falls) = (&self.telemetry, &mut self.gauge.falls);
        if let Some(line) = falls.observe(t, descent_m_s, is_by_hand) {
            out.log(Severity::Error, line);
        }
        let percent = worst(&reserve, t).and_then(|worst| worst.remaining_percent);
        if let Some(line) = falls.observe_charge(t, percent, Gauge::flies(t)) {
            out.log(Severity::Error, line);
        }
    }

    /// Ends the flight while the battery still carries the aircraft home: *Return*, and where that does not bring it down,
    /// *Land*.
    pub(crate) fn judge_energy(&mut self, now: Instant, out: &mut Outputs) {
        self.watch_fall(out);
        let Some(reserve) = self.config.energy else { return };
        let capacity_mah = self.parameters.last(Watched::BatteryCapacity).map(|mah| mah.as_f64());
        self.gauge.observe(now, &reserve, &self.telemetry, capacity_mah.filter(|mah| *mah > 0.0));
        let view = self.protocol.view();
        let track_m_s = Speeds::of(&self.parameters, &reserve, self.written_leg_m_s(&view)).track_m_s;
        let commanded_m_s = self.leg_m_s(&view).map_or(track_m_s, |leg_m_s| leg_m_s.min(track_m_s));
        self.gauge.progress.observe(now, &self.telemetry, commanded_m_s);
        if let Some(line) = self.gauge.doubts(now, &reserve, &self.telemetry) {
            out.log(Severity::Warning, line);
        }
        let waited = self.gauge.waited(now, &self.telemetry, &view);
        if !Gauge::flies(&self.telemetry) {
            return;
        }
        if let Some(for_s) = self.must_land(now, &reserve, &view) {
            self.log_cause(&reserve, LAND, (EndFlight::Land, for_s), out);
            (self.gauge.has_ended, self.gauge.has_landed) = (true, true);
            return self.end_flight(now, EndFlight::Land, out);
        }
        let outlook = self.outlook(now, &reserve, &view);
        if self.lands_short(now, &reserve, &view, &outlook, out) {
            return;
        }
        self.tell_pilot(&reserve, &view, &outlook, out);
        self.end_in_time(now, &reserve, (&view, waited), &outlook, out);
    }

    /// Lands an aircraft that cannot come home any more, whoever ordered it home. Returns whether it does.
    fn lands_short(
        &mut self,
        now: Instant,
        reserve: &Reserve,
        view: &View,
        outlook: &Outlook,
        out: &mut Outputs,
    ) -> bool {
        let mode = self.telemetry.mode();
        let comes_home = mode == Some(Mode::Rtl) || view.is_returning;
        let may_act = match self.authority {
            Authority::Ours => is_in_flight(view) && !view.is_piloted,
            // Its return is not the pilot's: the operator could take it back, too.
            Authority::Failsafe { .. } => mode == Some(Mode::Rtl),
            Authority::Pilot { .. } => false,
        };
        if !may_act || self.gauge.has_landed || mode == Some(Mode::Land) {
            self.gauge.short_since = None;
            return false;
        }
        let could_return = is_apart_on_return(view) && self.protocol.permits(Command::Return).is_ok();
        let (is_short, needed) = if view.phase == Phase::Ending && !comes_home {
            // On its way to its landing position.
            let target = view.target.filter(|_| mode != Some(Mode::Auto));
            let reckoning = self.reckoning(reserve, view);
            let needed = target.map_or(outlook.down, |target| reckoning.landing_at(target));
            let is_far = needed > outlook.down + STILL_FAR;
            (is_far && outlook.least.is_some_and(|least| least < needed), needed)
        } else if comes_home || could_return {
            (outlook.is_short(), outlook.home.takes)
        } else {
            (false, outlook.down)
        };
        if !is_short {
            self.gauge.short_since = None;
            return false;
        }
        let may_pass = outlook.least.is_some_and(|least| least > outlook.down + MEASURES_WITHIN);
        let lasts = if may_pass { GUSTS_PASS } else { SURE };
        if now.since(*self.gauge.short_since.get_or_insert(now)) < lasts {
            return false;
        }
        let (least, left_s, needed_s) = (
            reserve.quarter().reserve_percent,
            outlook.least.unwrap_or_default().as_secs(),
            needed.as_secs(),
        );
        let whose = if self.authority.is_ours() { "" } else { " of a failsafe's return" };
        out.log(
            Severity::Warning,
            text!("battery: it would be home below {least} %, {needed_s} s with {left_s} s left{whose}: lands here; keep clear"),
        );
        self.authority = Authority::Ours;
        (self.gauge.has_ended, self.gauge.has_landed) = (true, true);
        self.end_flight(now, EndFlight::Land, out);
        true
    }

    /// Ends the flight of an aircraft that goes on, or waits, while the rest of the battery brings it home.
    fn end_in_time(
        &mut self,
        now: Instant,
        reserve: &Reserve,
        (view, waited): (&View, Duration),
        outlook: &Outlook,
        out: &mut Outputs,
    ) {
        if !self.authority.is_ours() || !goes_on(&self.telemetry, view) || self.executor.ends_flight() {
            return;
        }
        let returns = is_apart_on_return(view)
            && !self.gauge.has_ended
            && self.protocol.permits(Command::Return).is_ok();
        let (ending, needed) = match returns {
            true => (EndFlight::Return, outlook.home.takes.max(outlook.down)),
            false => (EndFlight::Land, outlook.down),
        };
        if waited >= reserve.wait {
            let waited_s = waited.as_secs();
            out.log(Severity::Warning, text!("waited in flight for {waited_s} s: {ending}"));
            return self.end_flight(now, ending, out);
        }
        // After a return that was held up, only what holds still is to be ended.
        let may_end = !self.gauge.has_ended || holds(&self.telemetry);
        let below_for_s = self.gauge.below_for_s(now, reserve, &self.telemetry, RETURN);
        if let Some(for_s) = below_for_s.filter(|_| may_end) {
            self.log_cause(reserve, RETURN, (ending, for_s), out);
            self.gauge.has_ended = true;
            return self.end_flight(now, ending, out);
        }
        let Some(left) = outlook.left else { return };
        // It turns round first, and the last per cent of a charge is not reported.
        let margin = needed / MARGIN_SHARE;
        if left > needed + margin || !may_end {
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

    /// Tells the operator, once in a flight, that the battery of an aircraft in a pilot's hands does not last: Wingbeat commands
    /// nothing there.
    fn tell_pilot(&mut self, reserve: &Reserve, view: &View, outlook: &Outlook, out: &mut Outputs) {
        let is_pilots = view.is_piloted || self.taken_by_pilot().is_some();
        let needed = outlook.home.takes.max(outlook.down);
        let Some(left) = outlook.left.filter(|left| is_pilots && *left <= needed) else { return };
        if core::mem::replace(&mut self.gauge.has_told_pilot, true) {
            return;
        }
        let (left_s, needed_s, percent) = (left.as_secs(), needed.as_secs(), reserve.reserve_percent);
        out.log(
            Severity::Warning,
            text!("battery: {left_s} s until {percent} % are left, {needed_s} s to be home: the pilot has it; tell them to land"),
        );
    }

    /// Height of the autopilot's returns above home, where it is known, metres.
    fn autopilots_return_m(&self) -> Option<f64> {
        match self.parameters.last(Watched::ReturnHeight) {
            Some(centimetres) => Some(centimetres.as_f64() * 1e-2),
            None => self.parameters.last(Watched::ReturnHeightM).map(|metres| metres.as_f64()),
        }
    }

    /// Returns for how many seconds the voltage is so low that the aircraft lands wherever it is,
    /// on its route, on its way home, and where it holds, where that is long enough.
    fn must_land(&self, now: Instant, reserve: &Reserve, view: &View) -> Option<u32> {
        let is_flown_by_us = self.authority.is_ours() && !view.is_piloted;
        let lands = self.gauge.has_landed || self.telemetry.mode() == Some(Mode::Land);
        let may_land = is_flown_by_us && is_in_flight(view) && !lands;
        self.gauge.below_for_s(now, reserve, &self.telemetry, LAND).filter(|_| may_land)
    }

    /// Logs the voltage, or the reported state, that ends the flight.
    fn log_cause(
        &self,
        reserve: &Reserve,
        which: usize,
        (ending, for_s): (EndFlight, u32),
        out: &mut Outputs,
    ) {
        let worst = worst(reserve, &self.telemetry);
        let found_mv = worst.and_then(millivolts).unwrap_or_default();
        let limit_mv = if which == LAND { reserve.land_below_mv } else { reserve.return_below_mv };
        let line = match worst {
            Some(worst) if found_mv >= limit_mv => {
                let (number, state) = (worst.number, worst.state.name());
                text!("battery {number}: {state} for {for_s} s, as the flight controller reports: {ending}")
            }
            Some(_) | None => {
                let [found, limit] = [found_mv, limit_mv].map(volts);
                text!("battery: {found:.2} V, below {limit:.2} V for {for_s} s: {ending}")
            }
        };
        out.log(Severity::Warning, line);
    }

    fn end_flight(&mut self, now: Instant, ending: EndFlight, out: &mut Outputs) {
        self.gauge.waits_since = None;
        self.protocol_input(now, Input::BatteryLow(ending), out);
    }
}

/// Whether an aircraft that returns is kept apart from others: followers without layers return at one height, with nothing to
/// keep them apart, so that they land, as far apart as they fly.
fn is_apart_on_return(view: &View) -> bool {
    view.swarm.size < 2 || view.return_height_mm.is_some()
}

/// Whether the flight has begun and is not over.
fn is_in_flight(view: &View) -> bool {
    match view.phase {
        Phase::Preparing | Phase::Ready | Phase::Moving | Phase::Waiting | Phase::Ending | Phase::Aborted => {
            true
        }
        Phase::Start | Phase::Finished => false,
    }
}

/// What a flight needs of the battery, as the check before *Setup* and *Start* states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Need {
    /// How long the aircraft flies until its reserve begins.
    pub(crate) left: Duration,
    /// How long the rest of its route takes.
    pub(crate) needed: Duration,
    /// The charge that this takes, per cent: more than 100 where no battery of this kind lasts.
    pub(crate) percent: Option<f64>,
    /// The airspeed, where it is assumed and there is a wind, metres per second.
    pub(crate) airspeed_m_s: Option<f64>,
}

#[cfg(test)]
mod testing {
    use super::*;
    use wingbeat_autopilot::telemetry::Battery;

    /// An aircraft in flight with this charge.
    pub(super) fn telemetry(percent: Option<u8>, height_m: f64) -> Telemetry {
        let mut telemetry = Telemetry { armed: true, height_m, ..Telemetry::default() };
        telemetry.measured.battery = Some(Battery {
            voltage_v: 15.0,
            current_a: None,
            remaining_percent: percent,
            cells_v: heapless::Vec::new(),
            consumed_mah: None,
            packs: heapless::Vec::new(),
        });
        telemetry
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString as _;

    use super::*;

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
    fn a_prediction_lands_no_aircraft_that_has_charge_to_measure_its_return() {
        let s = Duration::from_secs;
        let outlook = |least_s, is_measured| Outlook {
            left: Some(s(least_s)),
            least: Some(s(least_s)),
            empty: Some(s(least_s + 50)),
            home: Home { takes: s(1_333), is_there: false },
            down: s(40),
            is_measured,
        };
        assert!(!outlook(900, false).is_short(), "it returns first");
        assert!(outlook(900, true).is_short());
        assert!(outlook(160, false).is_short(), "no time to measure it");
        assert!(!outlook(1_400, true).is_short());
    }

    #[test]
    fn an_aircraft_near_its_home_lands_where_its_battery_would_be_empty_before_it_is_home() {
        let s = Duration::from_secs;
        let outlook = |takes_s, empty_s, is_there| Outlook {
            left: Some(s(0)),
            least: Some(s(10)),
            empty: Some(s(empty_s)),
            home: Home { takes: s(takes_s), is_there },
            down: s(45),
            is_measured: false,
        };
        assert!(outlook(59, 55, false).is_short());
        assert!(!outlook(59, 62, false).is_short(), "it comes home");
        assert!(outlook(59, 40, false).is_short(), "it falls here, too, but not so far");
        assert!(!outlook(47, 40, false).is_short(), "it is as soon at home");
        assert!(!outlook(59, 55, true).is_short(), "it is there");
    }
}
