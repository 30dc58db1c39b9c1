//! From an agent's status to the API's: the one place where radians become degrees and ids become text.

use wingbeat_agent::{
    CommandProgress, Finding, LinkState, Navigation, Severity, Stage, Status, Watched, separation,
};
use wingbeat_api as api;
use wingbeat_autopilot::telemetry::LINK_TIMEOUT;
use wingbeat_geo::{Instant, Position};
use wingbeat_protocol::{Absent, AvoidanceView, Fence, FormationView, SlotView};
use wingbeat_radio::Screened;
use wingbeat_wire::{Ending, Point, Refused, VehicleId};

use crate::measurements::measurements;

/// What the daemon adds to its agent's status: link, radio, lease and gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct DaemonStatus {
    /// Datagrams that the agent wrote and the radio did not take, by reason.
    pub(crate) unsent: Vec<(&'static str, u64)>,
    /// Datagrams that arrived and were thrown away before the agent saw them.
    pub(crate) overflows: u64,
    /// Datagrams of outsiders, which ended at the radio, by reason.
    pub(crate) screened: Screened,
    /// Why the radio can neither send nor receive; nothing while it can.
    pub(crate) radio_down: Option<String>,
    /// Whether datagrams are signed, and HTTP is served by TLS alone.
    pub(crate) is_secured: bool,
    /// Whether chronyd takes GNSS time.
    pub(crate) is_clock_fed: bool,
    /// The keys that are held.
    pub(crate) keys: Option<api::Keys>,
    /// Chunks for the flight controller that the link did not take.
    pub(crate) unwritten: u64,
    /// Why the port to the flight controller is closed; nothing while it is open.
    pub(crate) port_closed: Option<String>,
    /// When bytes came from it last.
    pub(crate) bytes_at: Option<Instant>,
    /// Which console holds the lease.
    pub(crate) lease: Option<LeaseView>,
    /// What the HTTP server refused, by reason.
    pub(crate) http_refused: Vec<(&'static str, u64)>,
    /// A warning of a gateway that others reach and that asks for no key.
    pub(crate) open_gateway: Option<String>,
    /// The gateway's clients, and what was not passed on, by reason.
    pub(crate) gateway: Option<GatewayView>,
    /// The flight log.
    pub(crate) log: api::FlightLog,
    /// What the flight is set up with.
    pub(crate) flight_setup: Option<api::FlightSetupNow>,
    /// Where waypoints may lie.
    pub(crate) fence: Option<Fence>,
}

/// Which console holds the lease, who it proved to be, and for how long still.
#[derive(Clone, Debug)]
pub(crate) struct LeaseView {
    pub(crate) console: String,
    pub(crate) id: Option<VehicleId>,
    pub(crate) left: std::time::Duration,
}

/// Clients, and how much was refused by reason.
type GatewayView = (Vec<String>, Vec<(&'static str, u64)>);

impl DaemonStatus {
    /// Before anything happened.
    pub(crate) fn new() -> Self {
        Self {
            port_closed: Some("the port is not open yet".into()),
            radio_down: Some("the radio is not open yet".into()),
            ..Self::default()
        }
    }
}

impl DaemonStatus {
    /// Without keys everything is open, which is said elsewhere.
    fn gateway_check(&self) -> Option<api::Check> {
        let detail = self.open_gateway.clone().filter(|_| self.is_secured)?;
        Some(api::Check { name: "gateway".into(), passed: false, is_required: false, detail })
    }
}

/// The API's picture of an aircraft.
pub(crate) fn aircraft(
    status: &Status,
    name: &str,
    mission: Option<api::MissionSummary>,
    daemon: &DaemonStatus,
) -> api::AircraftStatus {
    let unsent: u64 = daemon.unsent.iter().map(|(_, count)| count).sum();
    let radio_refused = Refused::ALL
        .iter()
        .zip(status.refused.iter().zip(daemon.screened))
        .map(|(reason, (opened, screened))| (reason.name(), opened + screened))
        .chain(daemon.unsent.iter().copied())
        .chain([("overflow", daemon.overflows)]);
    api::AircraftStatus {
        id: status.id.to_string(),
        name: name.into(),
        time_ms: status.at.as_millis(),
        protocol: status.protocol.into(),
        state: status.state,
        phase: status.phase,
        detail: status.detail.as_str().into(),
        engaged: status.engaged,
        failsafe: status.failsafe,
        flight_controller: flight_controller(status, daemon),
        navigation: status.navigation.as_ref().map(|n| navigation(n, status.target)),
        measurements: measurements(status, daemon.is_clock_fed),
        mission,
        flight_setup: daemon.flight_setup.clone(),
        fence: daemon.fence.map(|fence| api::FenceBounds {
            height_least_m: fence.height_least_m,
            height_most_m: fence.height_most_m,
            distance_most_m: fence.distance_most_m,
        }),
        // No leader and no followers: it flies its own mission.
        swarm: (status.swarm.leader || status.swarm.leader_id.is_some()).then(|| api::Swarm {
            leader: status.swarm.leader,
            leader_id: status.swarm.leader_id.map(|id| id.to_string()),
            size: status.swarm.size.try_into().unwrap_or(u16::MAX),
            formation: status.swarm.formation.into(),
            slot: status.swarm.slot.and_then(|slot| slot.try_into().ok()),
            flight: status.swarm.flight,
            absent: status.absentees.iter().map(absent).collect(),
            plan: status.formation.as_ref().map(|view| plan(view, home_altitude_m(status))),
        }),
        avoidance: status.avoidance.as_ref().map(avoidance),
        separation: separation(&status.separation),
        log: daemon.log.clone(),
        radio: api::Radio {
            secured: daemon.is_secured,
            keys: daemon.keys.clone(),
            down: daemon.radio_down.clone(),
            sent: status.sent.saturating_sub(unsent),
            received: status.received,
            refused: refusals(radio_refused),
        },
        http: api::HttpApi {
            secured: daemon.is_secured,
            refused: refusals(daemon.http_refused.iter().copied()),
        },
        lease: daemon.lease.as_ref().map(|lease| api::Lease {
            console: lease.console.clone(),
            console_id: lease.id.map(|id| id.to_string()),
            left_ms: lease.left.as_millis() as u64,
        }),
        gateway: daemon.gateway.as_ref().map(|(clients, refused)| api::Gateway {
            clients: clients.clone(),
            refused: refusals(refused.iter().copied()),
        }),
        checks: status
            .checks
            .iter()
            .map(|c| api::Check {
                name: c.name.into(),
                passed: c.passed,
                is_required: c.is_required,
                detail: c.detail.as_str().into(),
            })
            .chain(daemon.gateway_check())
            .collect(),
        cures: status
            .cures
            .iter()
            .map(|cure| api::Cure {
                parameter: cure.name.to_string(),
                found: cure.found.as_f64(),
                expected: cure.expected.as_f64(),
            })
            .collect(),
        can_resume: status.can_resume,
        commands: status.commands.iter().map(progress).collect(),
    }
}

fn home_altitude_m(status: &Status) -> f64 {
    status.navigation.map_or(0.0, |n| n.position.altitude_m() - n.height_m)
}

fn plan(view: &FormationView, home_altitude_m: f64) -> api::SwarmPlan {
    let slot = |slot: &SlotView| api::SwarmSlot {
        place: api::GeoPoint {
            latitude_deg: f64::from(slot.position.latitude_e7) / 1e7,
            longitude_deg: f64::from(slot.position.longitude_e7) / 1e7,
            altitude_m: home_altitude_m + f64::from(slot.position.height_mm) / 1e3,
        },
        vehicle: slot.id.to_string(),
    };
    api::SwarmPlan {
        distance_m: view.distance_m,
        heading_deg: view.heading_rad.map(|heading| heading.to_degrees().rem_euclid(360.0)),
        planned: view.is_planned,
        refused: view.refused.map(|why| why.to_string()),
        slots: view.slots.iter().map(slot).collect(),
    }
}

fn absent(a: &Absent) -> api::Absent {
    api::Absent {
        id: a.id.to_string(),
        silent: a.is_lost,
        leaves: a.leaves.map(|how| {
            let ending = match how {
                Ending::Holding => "holding",
                Ending::Returning => "returning",
                Ending::Landing => "landing",
                Ending::Down => "down",
            };
            ending.into()
        }),
        excluded_by: a.excluded_by.map(|id| id.to_string()),
    }
}

fn avoidance(view: &AvoidanceView) -> api::Avoidance {
    let place = |p: &Position| api::GeoPoint {
        latitude_deg: f64::from(p.latitude_e7) / 1e7,
        longitude_deg: f64::from(p.longitude_e7) / 1e7,
        altitude_m: f64::from(p.altitude_mm) / 1e3,
    };
    api::Avoidance {
        state: view.state.into(),
        avoiding: view.avoiding.map(|id| id.to_string()),
        predicted: view.predicted.iter().map(place).collect(),
        risk: view.risk.as_ref().map(place),
        aside: view.aside.as_ref().map(place),
        receives: view.receives,
        is_received: view.is_received,
    }
}

/// None before the first beacon. Rounded to centimetres: a beacon is no more accurate.
fn separation(view: &separation::View) -> Option<api::Separation> {
    let separation::View { nearest, closing, flight, alarmed } = *view;
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let near = |n: separation::Near| api::Nearby {
        id: n.id.to_string(),
        distance_m: round(n.distance_m),
        horizontal_m: round(n.horizontal_m),
        vertical_m: round(n.vertical_m),
    };
    (nearest.is_some() || flight.least.is_some()).then(|| api::Separation {
        nearest: nearest.map(near),
        closest_approach: closing.map(|c| api::ClosestApproach {
            id: c.id.to_string(),
            time_s: round(c.time_s),
            distance_m: round(c.distance_m),
        }),
        flight_minimum: flight.least.map(near),
        alarmed,
        alarms: flight.alarms,
        collisions: flight.collisions,
        rule_collisions: flight.rule_collisions,
    })
}

/// The mission that it holds.
pub(crate) fn mission(status: &Status, name: &str, notes: &[String]) -> Option<api::MissionSummary> {
    let hash = status.route_hash?;
    Some(api::MissionSummary {
        name: name.into(),
        hash: format!("{hash:016x}"),
        plan_hash: status.plan_hash.map(|hash| format!("{hash:016x}")),
        waypoints: status.route_len,
        reached: status.reached,
        notes: notes.to_vec(),
    })
}

/// The waypoints of a route.
pub(crate) fn items(route: &[Point]) -> Vec<api::MissionItem> {
    route
        .iter()
        .map(|p| {
            let [latitude_deg, longitude_deg] = [p.latitude_e7, p.longitude_e7].map(|e7| f64::from(e7) / 1e7);
            api::MissionItem::at(latitude_deg, longitude_deg, f64::from(p.height_mm) / 1e3)
        })
        .collect()
}

/// The route of checked waypoints. What is not on earth or does not fit would be cut to the nearest that
/// is: [`crate::mission::check`] lets neither through.
pub(crate) fn route(items: &[api::MissionItem]) -> Vec<Point> {
    items
        .iter()
        .map(|item| Point {
            latitude_e7: (item.latitude_deg * 1e7).round() as i32,
            longitude_e7: (item.longitude_deg * 1e7).round() as i32,
            height_mm: (item.height_m * 1e3).round() as i32,
        })
        .collect()
}

/// The API's severity of a log line.
pub(crate) fn severity(severity: Severity) -> api::Severity {
    match severity {
        Severity::Info => api::Severity::Info,
        Severity::Warning => api::Severity::Warning,
        Severity::Error => api::Severity::Error,
    }
}

fn flight_controller(status: &Status, daemon: &DaemonStatus) -> api::FlightController {
    let (f, now) = (&status.flight_controller, status.at);
    api::FlightController {
        link: match f.link {
            LinkState::NeverSeen => api::LinkState::NeverSeen,
            LinkState::Up => api::LinkState::Up,
            LinkState::Lost => api::LinkState::Lost,
        },
        link_fault: link_fault(f.link, now, daemon),
        heartbeat_age_ms: f.heartbeat_at.map(|at| now.since(at).as_millis() as u64),
        firmware: f.version.map(|v| {
            let vehicle = if f.is_copter == Some(true) { "ArduCopter" } else { "not ArduCopter" };
            format!("{vehicle} {v}")
        }),
        mode: f.mode_number.map(|number| match f.mode() {
            Some(mode) => mode.name().into(),
            None => format!("mode {number}"),
        }),
        armed: f.armed,
        refused: refusals([
            ("garbage_bytes", u64::from(f.refused.garbage_bytes)),
            ("bad_checksum", u64::from(f.refused.bad_checksum)),
            ("bad_header", u64::from(f.refused.bad_header)),
            ("unknown_message", u64::from(f.refused.unknown_message)),
            ("overtaken", u64::from(f.refused.overtaken)),
            ("unknown_content", u64::from(f.refused.unknown_content)),
            ("unsigned", u64::from(f.refused.signature.unsigned)),
            ("signature_wrong", u64::from(f.refused.signature.wrong)),
            ("signature_replayed", u64::from(f.refused.signature.replayed)),
            ("signature_old", u64::from(f.refused.signature.old)),
            ("signature_senders", u64::from(f.refused.signature.too_many_streams)),
            ("unwritten", daemon.unwritten),
        ]),
        autopilot: f.vehicle.map(|vehicle| api::Autopilot {
            vehicle: vehicle.to_string(),
            capabilities: f.firmware.map(|firmware| format!("{:x}", firmware.capabilities)),
            hardware_id: f.firmware.map(|firmware| format!("{:016x}", firmware.uid)),
            board_version: f.firmware.map(|firmware| firmware.board_version),
            reboots: f.reboots,
            other_autopilots: f.other_autopilots.heartbeats,
        }),
        parameters: status
            .parameters
            .iter()
            .filter_map(|(which, finding)| parameter(which, finding))
            .collect(),
    }
}

/// Why no telemetry of the flight controller is received.
fn link_fault(link: LinkState, now: Instant, daemon: &DaemonStatus) -> Option<api::LinkFault> {
    if link == LinkState::Up {
        return None;
    }
    let (kind, detail) = match (&daemon.port_closed, daemon.bytes_at) {
        (Some(reason), _) => (api::LinkFaultKind::PortClosed, reason.clone()),
        (None, Some(at)) if now.since(at) < LINK_TIMEOUT => (
            api::LinkFaultKind::NoMavlink,
            "bytes come and no MAVLink of an autopilot: baud rate, SERIALn_PROTOCOL, or a console on the line".into(),
        ),
        (None, _) => (
            api::LinkFaultKind::Silent,
            "the port is open and no byte comes: power, wiring, SERIALn_PROTOCOL".into(),
        ),
    };
    Some(api::LinkFault { kind, detail })
}

fn parameter(which: Watched, finding: Finding) -> Option<api::Parameter> {
    let usual = which.names().usual;
    let (name, value, detail) = match finding {
        Finding::Unknown => return None,
        Finding::Known { name, value } => (name.to_string(), Some(value.as_f64()), String::new()),
        Finding::Absent => (usual.into(), None, "this autopilot does not have it".into()),
        Finding::WrongKind { found } => {
            (usual.into(), None, format!("found {found}, expected {}", which.kind()))
        }
        Finding::Unreadable => (usual.into(), None, "its value cannot be read".into()),
    };
    Some(api::Parameter { name, value, detail })
}

fn navigation(n: &Navigation, target: Option<Point>) -> api::Navigation {
    let altitude_m = n.position.altitude_m();
    let home_altitude_m = altitude_m - n.height_m;
    api::Navigation {
        position: api::GeoPoint {
            latitude_deg: n.position.latitude_deg(),
            longitude_deg: n.position.longitude_deg(),
            altitude_m,
        },
        height_m: n.height_m,
        ground_speed_m_s: n.velocity_m_s.truncate().length(),
        climb_m_s: n.velocity_m_s.z,
        heading_deg: n.heading_rad.to_degrees().rem_euclid(360.0),
        target: target.map(|p| api::GeoPoint {
            latitude_deg: f64::from(p.latitude_e7) / 1e7,
            longitude_deg: f64::from(p.longitude_e7) / 1e7,
            altitude_m: home_altitude_m + f64::from(p.height_mm) / 1e3,
        }),
    }
}

fn progress(c: &CommandProgress) -> api::CommandProgress {
    let (stage, detail) = match c.stage {
        Stage::Accepted => (api::CommandStage::Accepted, "accepted, its effect is not seen yet"),
        Stage::EffectSeen => (api::CommandStage::EffectSeen, "its effect was seen"),
        Stage::Failed => (api::CommandStage::Failed, "failed, or overtaken by a later command"),
    };
    api::CommandProgress { id: c.id.as_str().into(), command: c.command, stage, detail: detail.into() }
}

/// What occurred; reasons that never did are left out.
pub(crate) fn refusals(counts: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<api::Refusal> {
    counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| api::Refusal { reason: reason.into(), count })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_agent::{Agent, Config, Input, Outputs};
    use wingbeat_geo::{DVec3, Instant, Position};
    use wingbeat_protocol::muscop;

    fn status() -> Status {
        let me = VehicleId(0x00b8_27eb_0102_0304);
        let mut agent = Agent::new(Config::new(muscop::Config::new(me, me, 1)), 1, Instant::ZERO).unwrap();
        agent.handle(
            Instant::from_secs(3),
            Input::Datagram(wingbeat_wire::Roster::insecure().open(&[9])),
            &mut Outputs::default(),
        );
        agent.status(Instant::from_secs(3))
    }

    #[test]
    fn an_aircraft_without_telemetry_reports_no_values() {
        let api = aircraft(&status(), "one", None, &DaemonStatus::default());
        assert_eq!((api.id.as_str(), api.time_ms), ("00b827eb01020304", 3_000));
        assert_eq!(api.flight_controller.link, api::LinkState::NeverSeen);
        assert!(
            api.navigation.is_none()
                && api.measurements == api::Measurements::default()
                && api.mission.is_none()
        );
        assert!(api.flight_controller.mode.is_none() && api.flight_controller.heartbeat_age_ms.is_none());
        assert_eq!(api.radio.refused, [api::Refusal { reason: "version".into(), count: 1 }]);
        assert!(api.checks.iter().any(|c| !c.passed));
    }

    #[test]
    fn separation_is_shown_once_a_beacon_was_received() {
        let mut status = status();
        assert_eq!(aircraft(&status, "one", None, &DaemonStatus::default()).separation, None);
        let near = |distance_m| separation::Near {
            id: VehicleId(7),
            distance_m,
            horizontal_m: distance_m,
            vertical_m: 0.0,
        };
        status.separation.nearest = Some(near(12.3456));
        status.separation.closing =
            Some(separation::Closing { id: VehicleId(7), time_s: 1.999, distance_m: 6.0 });
        status.separation.flight.alarms = 1;
        let shown = aircraft(&status, "one", None, &DaemonStatus::default()).separation.unwrap();
        let (nearest, closing) = (shown.nearest.unwrap(), shown.closest_approach.unwrap());
        assert_eq!((nearest.id.as_str(), nearest.distance_m), ("0000000000000007", 12.35));
        assert_eq!((closing.time_s, closing.distance_m, shown.alarms), (2.0, 6.0, 1));
        // Afterwards the minimum stays.
        status.separation.nearest = None;
        status.separation.flight.least = Some(near(9.0));
        let shown = aircraft(&status, "one", None, &DaemonStatus::default()).separation.unwrap();
        assert_eq!((shown.nearest, shown.flight_minimum.unwrap().distance_m), (None, 9.0));
    }

    #[test]
    fn angles_heights_and_counters_are_converted() {
        let mut status = status();
        status.sent = 10;
        status.navigation = Some(Navigation {
            position: Position::from_degrees(39.5, -0.35, 130.0).unwrap(),
            height_m: 30.0,
            velocity_m_s: DVec3::new(3.0, 4.0, -1.5),
            heading_rad: -core::f64::consts::FRAC_PI_2,
        });
        status.target = Some(Point { latitude_e7: 395_000_000, longitude_e7: -3_500_000, height_mm: 20_000 });
        status.flight_controller.mode_number = Some(99);
        let daemon = DaemonStatus {
            unsent: vec![("radio_down", 4)],
            overflows: 2,
            unwritten: 1,
            ..DaemonStatus::default()
        };
        let api = aircraft(&status, "one", None, &daemon);
        let n = api.navigation.unwrap();
        assert_eq!((n.ground_speed_m_s, n.climb_m_s, n.heading_deg), (5.0, -1.5, 270.0));
        assert_eq!(n.target.unwrap().altitude_m, 120.0, "home is at 100 m");
        assert_eq!(api.flight_controller.mode.as_deref(), Some("mode 99"));
        assert_eq!(api.radio.sent, 6);
        let reasons: Vec<_> = api.radio.refused.iter().map(|r| (r.reason.as_str(), r.count)).collect();
        assert_eq!(reasons, [("version", 1), ("radio_down", 4), ("overflow", 2)]);
    }

    #[test]
    fn a_closed_port_a_silent_one_and_noise_are_three_failures() {
        let kind = |link, port_closed: Option<&str>, bytes_at| {
            let port_closed = port_closed.map(str::to_owned);
            let daemon = DaemonStatus { port_closed, bytes_at, ..DaemonStatus::default() };
            link_fault(link, Instant::from_secs(10), &daemon).map(|fault| fault.kind)
        };
        let (lost, bytes) = (LinkState::Lost, |ms| Some(Instant::from_millis(ms)));
        assert_eq!(kind(lost, Some("no such device"), bytes(9_999)), Some(api::LinkFaultKind::PortClosed));
        assert_eq!(kind(lost, None, bytes(9_999)), Some(api::LinkFaultKind::NoMavlink));
        assert_eq!(kind(lost, None, bytes(8_500)), Some(api::LinkFaultKind::Silent));
        assert_eq!(kind(LinkState::NeverSeen, None, None), Some(api::LinkFaultKind::Silent));
        assert_eq!(kind(LinkState::Up, Some("just now"), None), None);
    }

    #[test]
    fn a_route_survives_the_way_there_and_back() {
        let there = [Point { latitude_e7: 395_000_001, longitude_e7: -3_499_999, height_mm: 20_001 }];
        assert_eq!(route(&items(&there)), there);
    }
}
