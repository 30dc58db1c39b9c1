//! Preflight: what must hold before setup and again at the start, each with what was found.

use heapless::Vec;
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::parameter::{Watch, Watched};
use wingbeat_autopilot::telemetry::{ChargeState, Gnss};
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Command, Phase, Protocol, Text, text};
use wingbeat_wire::VehicleId;

use crate::budget;
use crate::energy::{self, Need, Reserve, volts};
use crate::fence::{self, Around};
use crate::guardian::Answer;
use crate::layers::{self, GroundStation};
use crate::region::Verdict;
use crate::settings::Loaded;
use crate::status::{CHECKS_MAX, Check};
use crate::{CompanionLoss, Config, home, identity, settings};

/// A report of the EKF older than this is not used.
const EKF_FRESH: Duration = Duration::from_secs(5);

/// Holds before the setup, and no longer.
pub(crate) const DISARMED: &str = "disarmed";

/// As that: what expires in flight ends no flight.
pub(crate) const KEYS: &str = "keys";

/// As that: a clock that is set in flight ends no flight.
pub(crate) const CLOCK: &str = "clock";

/// As that: it is a gate before arming.
pub(crate) const REMOTE_ID: &str = "remote ID";

/// As that: a daemon that forgets is better than none.
pub(crate) const STATE: &str = "state directory";

/// What is judged.
pub(crate) struct Preflight<'a> {
    pub(crate) config: &'a Config,
    pub(crate) telemetry: &'a Telemetry,
    pub(crate) protocol: &'a dyn Protocol,
    pub(crate) guard: Option<Answer>,
    /// What the rest of the flight needs of the battery.
    pub(crate) energy: Option<Need>,
    pub(crate) ground: GroundStation<'a>,
    /// From and until when the keys hold, where there are any that expire, and the time: microseconds after 1970.
    pub(crate) keys: Option<((u64, u64), Option<u64>)>,
    /// This computer's clock, where it is stated.
    pub(crate) clock: Option<Check>,
    /// Remote ID, where it is configured.
    pub(crate) remote_id: Option<Check>,
    /// Whether the aircraft's own height of return is in its autopilot.
    pub(crate) is_return_height_set: bool,
    /// How the route lies in the autopilot's polygon.
    pub(crate) verdict: Option<Verdict>,
    /// Whether the protocol permits setup, and one line about it.
    pub(crate) swarm: (bool, Text),
}

/// A clock that was never set is behind: it judges no expiry, and one that shows a time after the expiry is believed.
fn keys(from_us: u64, until_us: u64, now_us: Option<u64>) -> (bool, Text) {
    let hours = |us: u64| us / 3_600_000_000;
    match now_us {
        Some(now_us) if now_us >= until_us => {
            let hours = hours(now_us - until_us);
            (false, text!("expired {hours} h ago, expected a bundle that holds (wingbeat fleet renew, push)"))
        }
        Some(now_us) if now_us >= from_us => (true, text!("expire in {} h", hours(until_us - now_us))),
        Some(_) | None => (true, text!("the clock is not set: whether they have expired is not known")),
    }
}

/// Above this share of its bound an innovation of the position is near the EKF failsafe (`FS_EKF_THRESH` 0.8).
const DISPUTED: f64 = 0.8;

/// The flight would end as soon as it begins: a limit for another battery, or one that is empty. A voltage without load.
fn too_low(reserve: &Reserve, found_v: f64) -> Option<Text> {
    let limits = [("return_below_v", reserve.return_below_mv), ("land_below_v", reserve.land_below_mv)];
    let (key, limit_mv) = limits.into_iter().find(|(_, mv)| *mv > 0 && found_v <= volts(*mv))?;
    let limit_v = volts(limit_mv);
    Some(text!("found {found_v:.2} V, expected more than energy.{key}, {limit_v:.2} V, before the flight"))
}

/// What else the flight ends by, after the charge.
fn by_voltage(reserve: &Reserve) -> Text {
    let [returns, lands] = [reserve.return_below_mv, reserve.land_below_mv].map(volts);
    match (reserve.return_below_mv, reserve.land_below_mv) {
        (0, 0) => text!(""),
        (_, 0) => text!("; returns below {returns:.2} V"),
        (0, _) => text!("; lands below {lands:.2} V"),
        _ => text!("; returns below {returns:.2} V, lands below {lands:.2} V"),
    }
}

/// Judges the worst battery. A battery that is not measured, or is reported no longer, is not known, and does not pass.
fn battery(config: &Config, t: &Telemetry, parameters: &Watch, energy: Option<Need>) -> (bool, Text) {
    let reserve = config.energy.unwrap_or_default();
    let least = config.battery_least_percent;
    let Some(worst) = energy::worst(&reserve, t) else {
        return match parameters.integer(Watched::BatteryMonitor) {
            Some(0) => {
                (false, text!("not known: BATT_MONITOR is 0, no battery is measured; set BATT_MONITOR"))
            }
            Some(_) | None => (false, text!("not known: no battery is reported")),
        };
    };
    let all = t.measured.battery.as_ref();
    if let Some(number) = all.and_then(|battery| battery.silent()) {
        return (
            false,
            text!(
                "not known: battery {number} is no longer reported; check its plug and BATT{number}_MONITOR"
            ),
        );
    }
    let number = worst.number;
    let of = if all.is_some_and(|battery| battery.readings().count() > 1) {
        text!("battery {number}: ")
    } else {
        text!("")
    };
    let voltage = worst.voltage_v.map_or(text!("voltage not known"), |v| text!("{v:.1} V"));
    if worst.state > ChargeState::Good {
        let (state, charge) = (worst.state.name(), worst.remaining_percent.map(|p| text!(", {p} %")));
        let charge = charge.unwrap_or_default();
        return (
            false,
            text!("battery {number}: {state}{charge}, {voltage}, as the flight controller reports"),
        );
    }
    if let Some(why) = worst.voltage_v.and_then(|v| too_low(&reserve, v)).filter(|_| config.energy.is_some())
    {
        return (false, text!("{of}{why}"));
    }
    let policy = config.energy.as_ref().map(by_voltage).unwrap_or_default();
    let Some(p) = worst.remaining_percent else {
        let unwatched =
            if policy.is_empty() { "; nothing watches it: set energy.return_below_v" } else { "" };
        return (true, text!("{of}{voltage}, charge not estimated{policy}{unwatched}"));
    };
    let passed = p >= least;
    match energy {
        Some(need) if need.left < need.needed => {
            let (left_s, needed_s) = (need.left.as_secs(), need.needed.as_secs());
            let cure = match need.percent {
                Some(percent) if percent <= 100.0 => text!("{percent:.0} % would do"),
                Some(_) => text!("no charge would do: shorten it"),
                None => text!("charge it"),
            };
            let assumed = need.airspeed_m_s.map(|m_s| text!("; energy.airspeed_m_s {m_s:.1} assumed"));
            let assumed = assumed.unwrap_or_default();
            (
                false,
                text!(
                    "{of}{p} %, {voltage}; lasts {left_s} s, the flight takes {needed_s} s: {cure}{assumed}"
                ),
            )
        }
        Some(need) => {
            let (left_s, needed_s) = (need.left.as_secs(), need.needed.as_secs());
            let lasts = text!("lasts {left_s} s, the flight takes {needed_s} s");
            (passed, text!("{of}{p} %, {voltage}, least {least} %; {lasts}{policy}"))
        }
        None => (passed, text!("{of}{p} %, {voltage}, least {least} %{policy}")),
    }
}

pub(crate) fn preflight(judged: Preflight<'_>, now: Instant) -> Vec<Check, CHECKS_MAX> {
    let Preflight { config, telemetry: t, protocol, guard, energy, ref ground, .. } = judged;
    let view = protocol.view();
    let mut checks = Vec::new();
    let mut check = |name, passed, detail: Text| {
        let _ = checks.push(Check { name, passed, is_required: true, detail });
    };
    if let Some(why) = &config.refused {
        check("configuration", false, why.clone());
    }
    if let Some(((from_us, until_us), now_us)) = judged.keys {
        let (passed, detail) = keys(from_us, until_us, now_us);
        check(KEYS, passed, detail);
    }
    if let Some(several) = identity::several(t, now) {
        check(several.name, false, several.detail);
    }
    let is_certain = t.identification.replaced().is_none();
    check("flight controller", t.is_up(now) && is_certain, identity::line(t, now));
    check(
        "ArduCopter",
        t.is_copter == Some(true),
        match (t.vehicle, t.version) {
            (None, _) => text!("unknown"),
            (Some(vehicle), _) if !vehicle.is_copter() => text!("found {vehicle}, expected ArduCopter"),
            (Some(_), None) => text!("version unknown"),
            (Some(_), Some(version)) => text!("{version}"),
        },
    );
    let gnss = t.measured.gnss;
    let satellites = gnss.and_then(|gnss| gnss.satellites);
    let satellites = satellites.map_or(text!("satellites unknown"), |n| text!("{n} satellites"));
    check(
        "GNSS fix",
        gnss.is_some_and(Gnss::has_fix),
        match gnss {
            None => text!("unknown"),
            Some(gnss) if !gnss.has_fix() => text!("no three-dimensional fix, {satellites}"),
            Some(_) => satellites,
        },
    );
    let fresh = t.ekf_at.is_some_and(|at| now.since(at) < EKF_FRESH);
    // The autopilot's own failsafe is near: it holds no position on a filter that disagrees with its receiver.
    let disputed = t.measured.filter.map(|filter| filter.position).filter(|share| *share >= DISPUTED);
    check(
        "position",
        t.position.is_some() && fresh && t.ekf_position == Some(true) && disputed.is_none(),
        match (t.position, fresh, t.ekf_position) {
            (None, _, _) => text!("unknown"),
            (_, false, _) => text!("no report of the EKF"),
            (_, _, Some(true)) if disputed.is_some() => {
                let percent = disputed.unwrap_or_default() * 100.0;
                text!("the EKF disagrees with GNSS: {percent:.0} % of its bound, expected below 80: wait")
            }
            (_, _, Some(true)) => text!("known"),
            _ => text!("not valid in the EKF yet"),
        },
    );
    let (passed, detail) = battery(config, t, ground.parameters, energy);
    check("battery", passed, detail);
    check(DISARMED, !t.armed, if t.armed { text!("motors are armed") } else { text!("yes") });
    let (caught, layers) = match config.companion_loss {
        CompanionLoss::EndsWithIt => (true, text!("the bench stops its aircraft when it ends")),
        CompanionLoss::FliesOn if view.is_piloted => (true, text!("its pilot flies it")),
        CompanionLoss::FliesOn => layers::judge(guard, ground, view.route_speed_m_s.is_some(), now),
    };
    check("companion loss", caught, layers);
    let of_route =
        of_route(config, t, ground.parameters, protocol, judged.is_return_height_set, judged.verdict);
    let _ = checks.extend_from_slice(&of_route);
    let (passed, detail) = judged.swarm;
    let _ = checks.push(Check { name: "swarm", passed, is_required: true, detail });
    let forgets = config.forgets.as_ref().map(|forgets| Check {
        name: STATE,
        passed: false,
        is_required: forgets.is_refused,
        detail: forgets.why.clone(),
    });
    let _ = checks.extend_from_slice(forgets.as_slice());
    let _ = checks.extend_from_slice(judged.clock.as_slice());
    let _ = checks.extend_from_slice(judged.remote_id.as_slice());
    let _ = checks.push(settings::prearm(t, now));
    let _ = checks.push(settings::radio_control(t, ground.parameters));
    let _ = checks.extend_from_slice(&settings::advised_for_flight(ground.parameters));
    checks
}

/// What must hold for the route that is loaded.
pub(crate) fn of_route(
    config: &Config,
    t: &Telemetry,
    parameters: &Watch,
    protocol: &dyn Protocol,
    is_return_height_set: bool,
    verdict: Option<Verdict>,
) -> [Check; 6] {
    let allow_polygon_fence = config.allow_polygon_fence;
    let around = Around { parameters, home: t.disarmed_position, allow_polygon_fence, verdict };
    let (passed, detail) = fence::judge(&around, protocol);
    let view = protocol.view();
    // After the flight the pilot's speed is restored.
    let is_loaded = !matches!(view.phase, Phase::Start | Phase::Finished | Phase::Aborted);
    let loaded = Loaded {
        is_in_auto: view.route_speed_m_s.is_some(),
        return_height_mm: view.return_height_mm.filter(|_| is_return_height_set),
        speed_m_s: view.route_speed_m_s.filter(|_| is_loaded),
    };
    let [mut returns, landing, restart, speed] = settings::required_of_flight(parameters, t.version, loaded);
    if let Some(why) = home::refusal(t) {
        (returns.passed, returns.detail) = (false, why);
    }
    let separation = budget::judge(&config.coordination, t, parameters, protocol);
    [Check { name: "fence", passed, is_required: true, detail }, returns, landing, restart, speed, separation]
}

/// Whether the protocol permits setup: it needs a mission, and a master every member's call. Once the flight is under
/// way it is not asked again; `line` describes what it does.
pub(crate) fn swarm(me: VehicleId, protocol: &dyn Protocol, duplicate_id: bool, line: &Text) -> (bool, Text) {
    match protocol.view().phase {
        Phase::Start if duplicate_id => {
            (false, text!("{me}: another aircraft has this id: received by radio"))
        }
        Phase::Start => match protocol.permits(Command::Setup) {
            Ok(()) => (true, line.clone()),
            Err(why) => (false, text!("{why}")),
        },
        Phase::Preparing
        | Phase::Ready
        | Phase::Waiting
        | Phase::Moving
        | Phase::Ending
        | Phase::Finished
        | Phase::Aborted => (true, line.clone()),
    }
}
