//! Preflight: what must hold before setup and again at the start, each with what was found.

use heapless::Vec;
use wingbeat_autopilot::Telemetry;
use wingbeat_autopilot::telemetry::Gnss;
use wingbeat_geo::{Duration, Instant};
use wingbeat_protocol::{Command, Phase, Protocol, Text, text};
use wingbeat_wire::VehicleId;

use crate::fence;
use crate::guardian::Answer;
use crate::layers::{self, GroundStation};
use crate::status::{CHECKS_MAX, Check};
use crate::{CompanionLoss, Config};

/// A report of the EKF older than this is not used.
const EKF_FRESH: Duration = Duration::from_secs(5);

/// Holds before the setup, and no longer.
pub(crate) const DISARMED: &str = "disarmed";

pub(crate) fn preflight(
    config: &Config,
    t: &Telemetry,
    protocol: &dyn Protocol,
    guard: Option<Answer>,
    ground: &GroundStation<'_>,
    (is_ready, swarm): (bool, Text),
    now: Instant,
) -> Vec<Check, CHECKS_MAX> {
    let view = protocol.view();
    let mut checks = Vec::new();
    let mut check = |name, passed, detail: Text| {
        let _ = checks.push(Check { name, passed, detail });
    };
    check(
        "flight controller",
        t.is_up(now),
        match t.frame_at {
            None => text!("no heartbeat received"),
            Some(at) if !t.is_up(now) => text!("silent for {} ms", now.since(at).as_millis()),
            Some(_) => text!("heartbeats received"),
        },
    );
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
    check(
        "position",
        t.position.is_some() && fresh && t.ekf_position == Some(true),
        match (t.position, fresh, t.ekf_position) {
            (None, _, _) => text!("unknown"),
            (_, false, _) => text!("no report of the EKF"),
            (_, _, Some(true)) => text!("known"),
            _ => text!("not valid in the EKF yet"),
        },
    );
    let least = config.battery_least_percent;
    let battery = t.measured.battery.as_ref().map(|battery| (battery.voltage_v, battery.remaining_percent));
    check(
        "battery",
        battery.is_some_and(|(_, percent)| percent.is_none_or(|p| p >= least)),
        match battery {
            None => text!("unknown"),
            Some((v, None)) => text!("{v:.1} V, charge not estimated"),
            Some((v, Some(p))) => text!("{p} %, {v:.1} V, least {least} %"),
        },
    );
    check(DISARMED, !t.armed, if t.armed { text!("motors are armed") } else { text!("yes") });
    let (caught, layers) = match config.companion_loss {
        CompanionLoss::EndsWithIt => (true, text!("the bench stops its aircraft when it ends")),
        CompanionLoss::FliesOn if view.is_piloted => (true, text!("its pilot flies it")),
        CompanionLoss::FliesOn => layers::judge(guard, ground, view.route_speed_m_s.is_some(), now),
    };
    check("companion loss", caught, layers);
    let (is_below, fence) = fence::judge(ground.parameters, protocol);
    check("fence", is_below, fence);
    check("swarm", is_ready, swarm);
    checks
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
