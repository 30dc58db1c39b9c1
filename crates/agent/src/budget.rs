//! The parts of a swarm's separation budget that only the flight controller knows: how fast it flies its legs, and the
//! wind. Where positions err and aircraft stand, the protocol judges.

use wingbeat_autopilot::parameter::{Finding, Watch, Watched};
use wingbeat_autopilot::telemetry::Gnss;
use wingbeat_autopilot::{Telemetry, copter};
use wingbeat_geo::Instant;
use wingbeat_protocol::swarm::budget::{
    AIRSPEED_3_M_S, AIRSPEED_4_M_S, Budget, ESTIMATE_SHARE, Least, air_m_s, wind_most_m_s,
};
use wingbeat_protocol::{Handling, Measured, Protocol, Text, follow_me, swarm, text};

use crate::Coordination;
use crate::status::Check;

/// No leg is flown faster, metres per second: where the speed cannot be read it may be that.
const SPEED_MOST_M_S: f64 = 20.0;

/// A refusal names no slower speed than this, in metres per second: ArduCopter flies no leg slower (`WPNAV_SPEED`).
const SLOWEST_M_S: f64 = 0.2;

/// What the swarm is configured with, of a protocol that flies one.
fn swarm_of(coordination: &Coordination) -> Option<&swarm::Config> {
    match coordination {
        Coordination::Muscop(config) => Some(&config.swarm),
        Coordination::FollowMe(config) => Some(&config.swarm),
        Coordination::Mission(_) | Coordination::Mbcap(_) | Coordination::Sweep(_) => None,
    }
    .filter(|swarm| swarm.aircraft > 1)
}

/// How its flight controller moves it.
pub(crate) fn handling(t: &Telemetry) -> Handling {
    if copter::shapes_motion(t.version) { Handling::Shaped } else { Handling::Tracks }
}

/// Returns what the aircraft measures of where it flies.
pub(crate) fn measured(t: &Telemetry) -> Measured {
    let air_m_s = t.measured.wind.map(|wind| air_m_s(wind.speed_m_s, wind.from_rad));
    let has_lost_fix = t.measured.gnss.is_some_and(|gnss| !gnss.has_fix());
    Measured {
        gnss_error_m: t.measured.gnss.and_then(Gnss::error_m),
        air_m_s,
        is_blind: has_lost_fix || t.ekf_position == Some(false),
    }
}

/// What FollowMe's leader is configured with: a pilot flies this aircraft.
fn led(coordination: &Coordination) -> Option<&follow_me::Config> {
    match coordination {
        Coordination::FollowMe(config) => Some(config).filter(|c| c.swarm.me == c.swarm.master),
        Coordination::Muscop(_)
        | Coordination::Mission(_)
        | Coordination::Mbcap(_)
        | Coordination::Sweep(_) => None,
    }
}

/// Whether a pilot flies it.
pub(crate) fn is_piloted(coordination: &Coordination) -> bool {
    led(coordination).is_some()
}

/// The parameters that a flight depends on, to be read.
pub(crate) fn watch(coordination: &Coordination, now: Instant) -> Watch {
    if is_piloted(coordination) { Watch::of_piloted(now) } else { Watch::new(now) }
}

/// Whether the speed and the wind are within the budget.
pub(crate) fn judge(
    coordination: &Coordination,
    t: &Telemetry,
    parameters: &Watch,
    protocol: &dyn Protocol,
) -> Check {
    let (passed, detail) = match swarm_of(coordination) {
        None => (true, text!("no swarm")),
        Some(swarm) => match judge_wind(swarm, t).and_then(|()| match led(coordination) {
            Some(config) => judge_pilot(config, t, parameters),
            None => judge_speed(swarm, t, parameters, protocol),
        }) {
            Ok(found) => (true, found),
            Err(why) => (false, why),
        },
    };
    Check { name: "separation", passed, is_required: true, detail }
}

/// The distances follow the wind that is measured; beyond what the aircraft holds no distance is enough.
fn judge_wind(swarm: &swarm::Config, t: &Telemetry) -> Result<(), Text> {
    let stated_m_s = swarm.surroundings.wind_m_s;
    let by_version = t
        .version
        .map_or(AIRSPEED_4_M_S, |version| if version.major >= 4 { AIRSPEED_4_M_S } else { AIRSPEED_3_M_S });
    let airspeed_m_s = swarm.airspeed_m_s.unwrap_or(by_version);
    let most_m_s = wind_most_m_s(airspeed_m_s);
    if stated_m_s > most_m_s {
        return Err(text!(
            "wind_m_s {stated_m_s}: at most {most_m_s:.1} is held with {airspeed_m_s} m/s (airspeed_m_s: state yours)"
        ));
    }
    let reported_m_s = t.measured.wind.map_or(0.0, |wind| wind.speed_m_s);
    if reported_m_s > ESTIMATE_SHARE * most_m_s {
        return Err(text!(
            "wind {reported_m_s:.1} m/s: a mean of {most_m_s:.1} is held with {airspeed_m_s} m/s (airspeed_m_s)"
        ));
    }
    Ok(())
}

/// Followers that stay behind a fast pilot are flown into.
fn judge_pilot(config: &follow_me::Config, t: &Telemetry, parameters: &Watch) -> Result<Text, Text> {
    let found = [Watched::LoiterSpeed, Watched::OldLoiterSpeed].map(|which| parameters.finding(which));
    let known = found.into_iter().find_map(|finding| match finding {
        Finding::Known { name, value } => Some((name, value.as_f64() / 100.0)),
        Finding::Unknown | Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => None,
    });
    if known.is_none() && found.contains(&Finding::Unknown) {
        return Err(text!("{} not read yet", Watched::LoiterSpeed.names().usual));
    }
    let (name, speed_m_s) = match &known {
        Some((name, speed_m_s)) => (name.as_str(), *speed_m_s),
        None => ("LOITER unread", SPEED_MOST_M_S),
    };
    let (distance_m, least_m) = (config.swarm.distance_m, config.distance_least_at_m(speed_m_s, handling(t)));
    if distance_m < least_m && !config.accepts_close {
        return Err(text!(
            "distance_m {distance_m} at {speed_m_s} m/s ({name}), expected at least {least_m:.0}"
        ));
    }
    Ok(text!("{distance_m} m at {speed_m_s} m/s ({name}), least {least_m:.0} m"))
}

fn judge_speed(
    swarm: &swarm::Config,
    t: &Telemetry,
    parameters: &Watch,
    protocol: &dyn Protocol,
) -> Result<Text, Text> {
    let Some(found_m) = protocol.view().spacing_m else { return Ok(text!("not by the speed")) };
    let speed_m_s = match parameters.finding(Watched::TrackSpeed) {
        Finding::Unknown => return Err(text!("{} not read yet", Watched::TrackSpeed.names().usual)),
        Finding::Known { value, .. } => value.as_f64() / 100.0,
        Finding::Absent | Finding::WrongKind { .. } | Finding::Unreadable => SPEED_MOST_M_S,
    };
    let surroundings = swarm.surroundings.with(measured(t));
    let budget = Budget { surroundings, ..swarm.budget() };
    let Least { distance_m, term, term_m } = budget.spacing(speed_m_s);
    let error_m = surroundings.gnss_error_m;
    let errs = error_m > swarm.surroundings.gnss_error_m;
    if found_m < distance_m {
        let why = if errs { text!("GNSS errs by {error_m:.1} m") } else { text!("{term} {term_m:.1} m") };
        let slower = budget.speed_most_m_s(found_m).filter(|most_m_s| *most_m_s >= SLOWEST_M_S);
        let or = slower.map_or(text!(""), |most_m_s| text!(", or {most_m_s:.1} m/s"));
        return Err(text!(
            "distance_m {found_m} at {speed_m_s} m/s, expected at least {distance_m:.1}: {why}{or}"
        ));
    }
    let measured = if errs { text!(" (GNSS errs by {error_m:.1} m)") } else { text!("") };
    Ok(text!("{found_m} m at {speed_m_s} m/s, least {distance_m:.1} m{measured}"))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::settings::testing::reported;
    use wingbeat_autopilot::identity::Version;
    use wingbeat_autopilot::telemetry::Wind;
    use wingbeat_protocol::{Configuration as _, follow_me, mission, muscop};
    use wingbeat_wire::VehicleId;

    const ME: VehicleId = VehicleId(1);
    const OLD: Version = Version { major: 3, minor: 5, patch: 7 };
    const NEW: Version = Version { major: 4, minor: 6, patch: 2 };

    fn found(
        change: impl Fn(&mut swarm::Config),
        version: Version,
        wind_m_s: f64,
        speed: &[f32],
    ) -> (bool, Text) {
        let mut config = muscop::Config::new(ME, ME, 3);
        change(&mut config.swarm);
        let mut t = Telemetry { version: Some(version), ..Telemetry::default() };
        t.measured.wind = Some(Wind { speed_m_s: wind_m_s, from_rad: 0.0 });
        let parameters: std::vec::Vec<(&str, f32)> =
            speed.iter().map(|cm_s| ("WPNAV_SPEED", *cm_s)).collect();
        let protocol = config.begin(1, Instant::ZERO);
        let check = judge(&config.into(), &t, &reported(&parameters), &protocol);
        assert!(check.is_required && check.detail.len() < 87, "cut off in the log of an order: {check:?}");
        (check.passed, check.detail)
    }

    #[test]
    fn a_formation_too_close_for_its_speed_is_refused_with_the_numbers() {
        for (distance_m, speed, passed, words) in [
            (50.0, &[1_000.0][..], true, "50 m at 10 m/s, least 29.8 m"),
            (
                15.0,
                &[1_000.0],
                false,
                "distance_m 15 at 10 m/s, expected at least 29.8: braking 21.8 m, or 4.7 m/s",
            ),
            (16.0, &[500.0], true, "least 15.6 m"),
            (50.0, &[2_000.0], false, "expected at least 78.3"),
            (50.0, &[], false, "WPNAV_SPEED not read yet"),
        ] {
            let (found, detail) = found(|c| c.distance_m = distance_m, OLD, 0.0, speed);
            assert!(found == passed && detail.contains(words), "{distance_m} m, {speed:?}: {detail}");
        }
        let close = |c: &mut swarm::Config| (c.distance_m, c.accepts_close) = (15.0, true);
        assert!(found(close, OLD, 0.0, &[1_000.0]).0, "accepted");
    }

    #[test]
    fn wind_that_is_not_held_is_refused_and_the_rest_counts() {
        let stated = |m_s| move |c: &mut swarm::Config| c.surroundings.wind_m_s = m_s;
        let held = "wind_m_s 8: at most 4.5 is held with 10 m/s (airspeed_m_s: state yours)";
        for (stated_m_s, version, reported_m_s, passed, words) in [
            (6.0, OLD, 0.0, true, "50 m"),
            (8.0, OLD, 0.0, false, "at most 6.8"),
            (4.0, NEW, 0.0, true, "50 m"),
            (8.0, NEW, 0.0, false, held),
            (2.0, NEW, 6.7, true, "50 m"),
            (2.0, NEW, 6.9, false, "wind 6.9 m/s: a mean of 4.5 is held with 10 m/s (airspeed_m_s)"),
            (2.0, OLD, 6.9, true, "50 m"),
        ] {
            let (found, detail) = found(stated(stated_m_s), version, reported_m_s, &[500.0]);
            assert!(found == passed && detail.contains(words), "{stated_m_s}, {reported_m_s}: {detail}");
        }
        let strong = |c: &mut swarm::Config| {
            (c.surroundings.wind_m_s, c.airspeed_m_s) = (8.0, Some(18.0));
        };
        assert!(found(strong, NEW, 0.0, &[500.0]).0, "stated");
    }

    /// A receiver that errs by more than was stated needs the distance of its own error.
    #[test]
    fn the_accuracy_that_the_receiver_reports_counts_where_it_is_worse_than_stated() {
        let of = |h_acc_m: f64, hdop: f64| {
            let mut config = muscop::Config::new(ME, ME, 3);
            config.swarm.distance_m = 16.0;
            let mut t = Telemetry { version: Some(NEW), ..Telemetry::default() };
            let accuracy_m = (h_acc_m > 0.0).then_some(h_acc_m);
            t.measured.gnss = Some(Gnss { fix_type: 3, satellites: Some(9), accuracy_m, hdop: Some(hdop) });
            let protocol = config.begin(1, Instant::ZERO);
            let check = judge(&config.into(), &t, &reported(&[("WPNAV_SPEED", 500.0)]), &protocol);
            assert!(check.detail.len() < 87, "{check:?}");
            (check.passed, check.detail)
        };
        assert_eq!(of(0.9, 0.8), (true, text!("16 m at 5 m/s, least 15.6 m")));
        let (passed, detail) = of(4.0, 0.8);
        let words = "distance_m 16 at 5 m/s, expected at least 23.9: GNSS errs by 2.0 m";
        assert!(!passed && detail.contains(words), "{detail}");
        let (passed, detail) = of(0.0, 4.9);
        assert!(
            !passed && detail.contains("GNSS errs by 2.1 m"),
            "3.5.7 reports the dilution alone: {detail}"
        );
        assert!(of(0.0, 1.2).0);
    }

    #[test]
    fn the_speed_counts_for_no_pilots_formation_and_nothing_for_one_alone() {
        let t = Telemetry { version: Some(NEW), ..Telemetry::default() };
        let follow = follow_me::Config::new(VehicleId(2), ME, 3);
        let protocol = follow.begin(1, Instant::ZERO);
        let check = judge(&follow.into(), &t, &reported(&[]), &protocol);
        assert_eq!((check.passed, check.detail), (true, text!("not by the speed")));
        let alone = mission::Config::new(ME);
        let protocol = alone.begin(1, Instant::ZERO);
        assert!(judge(&alone.into(), &t, &reported(&[]), &protocol).passed);
    }

    #[test]
    fn a_formation_that_cannot_keep_up_with_its_pilot_is_refused() {
        for (version, parameters, passed, words) in [
            (OLD, &[("WPNAV_LOIT_SPEED", 500.0)][..], true, "60 m at 5 m/s (WPNAV_LOIT_SPEED), least 60 m"),
            (OLD, &[("WPNAV_LOIT_SPEED", 1_000.0)], false, "expected at least 240"),
            (NEW, &[("LOIT_SPEED", 500.0)], true, "60 m at 5 m/s (LOIT_SPEED), least 41 m"),
            (NEW, &[("LOIT_SPEED", 1_250.0)], false, "60 at 12.5 m/s (LOIT_SPEED), expected at least 95"),
            (NEW, &[("LOIT_SPEED_MS", 12.5)], false, "12.5 m/s (LOIT_SPEED_MS)"),
            (NEW, &[], false, "LOIT_SPEED not read yet"),
        ] {
            let t = Telemetry { version: Some(version), ..Telemetry::default() };
            let mut config = follow_me::Config::new(ME, ME, 3);
            config.swarm.distance_m = 60.0;
            let protocol = config.begin(1, Instant::ZERO);
            let check = judge(&config.clone().into(), &t, &reported(parameters), &protocol);
            assert!(check.passed == passed && check.detail.contains(words), "{check:?}");
            config.accepts_close = true;
            let close = judge(&config.into(), &t, &reported(parameters), &protocol);
            assert_eq!(close.passed, !parameters.is_empty(), "{close:?}");
        }
    }
}
