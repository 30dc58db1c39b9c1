//! The alarms of the fleet: derived from the aircraft's reports while the service runs, whether a page is open or not, and
//! acknowledged once for all consoles. The page judges its cards by the same conditions (`web/src/fleet/conditions.ts`).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use wingbeat_api::{
    AircraftStatus, AlarmAcknowledgement, AlarmKind, AlarmLevel, AlarmsAcknowledge, ApiError, CommandStage,
    FleetAircraft, FleetAlarm, FleetAlarms, KeysValidity, LinkState, Phase, StateId, paths,
};
use wingbeat_server::Connection;

use crate::access::{Caller, Wrote, wrote};
use crate::http::Body;
use crate::refused::Refused;
use crate::service::Service;

/// Ended alarms that are kept.
const ENDED_MAX: usize = 200;
/// Between two judgements of the fleet.
const JUDGED_EVERY_MS: u64 = 500;
/// Per cent of charge from which on a battery is a caution, and an alarm.
const BATTERY_CAUTION: u8 = 25;
const BATTERY_ALARM: u8 = 15;
/// Modes in which an aircraft follows its last target or its mission, and no landing ends the flight.
const UNSTEERED_MODES: [&str; 4] = ["GUIDED", "GUIDED_NOGPS", "AUTO", "BRAKE"];

/// The alarms that last, and the last that have ended.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    all: Vec<Kept>,
    last_number: u64,
    /// Counts the changes.
    revision: u64,
    judged_ms: Option<u64>,
}

#[derive(Debug)]
struct Kept {
    alarm: FleetAlarm,
    /// The revision in which it changed last.
    revision: u64,
}

/// A condition of an aircraft that is an alarm.
#[derive(Debug, PartialEq, Eq)]
struct Condition {
    kind: AlarmKind,
    level: AlarmLevel,
    text: String,
}

impl Alarms {
    /// Judges the fleet, twice a second.
    pub(crate) fn judge(&mut self, time_ms: u64, fleet: impl FnOnce() -> Vec<FleetAircraft>) {
        if self.judged_ms.is_some_and(|judged_ms| time_ms < judged_ms + JUDGED_EVERY_MS) {
            return;
        }
        self.judged_ms = Some(time_ms);
        self.update(time_ms, &fleet());
    }

    fn update(&mut self, time_ms: u64, fleet: &[FleetAircraft]) {
        let around = Around::of(fleet);
        // By the place in the fleet, so that new alarms are numbered in its order.
        let mut found: BTreeMap<(usize, AlarmKind), Condition> = BTreeMap::new();
        for (at, aircraft) in fleet.iter().enumerate() {
            found.extend(conditions(aircraft, &around).into_iter().map(|one| ((at, one.kind), one)));
        }
        for kept in self.all.iter_mut().filter(|kept| kept.alarm.ended_ms.is_none()) {
            let before = kept.alarm.clone();
            let aircraft = fleet.iter().enumerate().find(|(_, one)| one.address == before.address);
            let lasting = aircraft.and_then(|(at, one)| Some((one, found.remove(&(at, before.kind))?)));
            match lasting {
                Some((aircraft, Condition { level, text, .. })) => {
                    if level > before.level {
                        kept.alarm.acknowledged = None;
                    }
                    (kept.alarm.level, kept.alarm.text) = (level, text);
                    name_of(aircraft).clone_into(&mut kept.alarm.name);
                }
                None => kept.alarm.ended_ms = Some(time_ms),
            }
            if kept.alarm != before {
                self.revision += 1;
                kept.revision = self.revision;
            }
        }
        for ((at, _), Condition { kind, level, text }) in found {
            let Some(aircraft) = fleet.get(at) else { continue };
            self.revision += 1;
            self.last_number += 1;
            let alarm = FleetAlarm {
                number: self.last_number,
                address: aircraft.address.clone(),
                name: name_of(aircraft).to_owned(),
                kind,
                level,
                text,
                since_ms: time_ms,
                ended_ms: None,
                acknowledged: None,
            };
            tracing::warn!(name = alarm.name, text = alarm.text, level = ?alarm.level, "alarm");
            self.all.push(Kept { alarm, revision: self.revision });
        }
        let ended = self.all.iter().filter(|kept| kept.alarm.ended_ms.is_some()).count();
        let mut too_many = ended.saturating_sub(ENDED_MAX);
        self.all.retain(|kept| {
            let drop = too_many > 0 && kept.alarm.ended_ms.is_some();
            too_many -= usize::from(drop);
            !drop
        });
    }

    /// Acknowledges alarms that last.
    ///
    /// # Errors
    /// A number that no kept alarm has.
    pub(crate) fn acknowledge(
        &mut self,
        request: &AlarmsAcknowledge,
        by: &str,
        at_ms: u64,
    ) -> Result<FleetAlarms, Refused> {
        let is_known = |number: &u64| self.all.iter().any(|kept| kept.alarm.number == *number);
        if let Some(number) = request.numbers.iter().find(|number| !is_known(number)) {
            return Err(Refused::not_found(format!(
                "numbers: found {number}, expected numbers of alarms that are listed"
            )));
        }
        for kept in &mut self.all {
            let is_meant = request.numbers.is_empty() || request.numbers.contains(&kept.alarm.number);
            if is_meant && kept.alarm.ended_ms.is_none() && kept.alarm.acknowledged.is_none() {
                self.revision += 1;
                kept.revision = self.revision;
                kept.alarm.acknowledged = Some(AlarmAcknowledgement { by: by.to_owned(), at_ms });
            }
        }
        Ok(FleetAlarms { alarms: self.shown() })
    }

    /// All, by their numbers.
    pub(crate) fn shown(&self) -> Vec<FleetAlarm> {
        self.since(0)
    }

    /// Those that have changed since a revision.
    pub(crate) fn since(&self, revision: u64) -> Vec<FleetAlarm> {
        self.all.iter().filter(|kept| kept.revision > revision).map(|kept| kept.alarm.clone()).collect()
    }

    /// The revision of the last change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

fn name_of(aircraft: &FleetAircraft) -> &str {
    let name = aircraft.status.as_ref().map_or("", |status| status.name.as_str());
    if name.is_empty() { &aircraft.address } else { name }
}

/// The reports of the others, as far as the conditions of one depend on them.
struct Around<'a> {
    names: BTreeMap<&'a str, &'a str>,
    /// By id, the hash by which the aircraft's mission is compared.
    held: BTreeMap<&'a str, &'a str>,
    absences: BTreeMap<&'a str, Absence>,
}

/// What the members in contact report of a member that they do not wait for.
#[derive(Default)]
struct Absence {
    excluded: bool,
    silent: usize,
    leaves: String,
    asked: usize,
}

/// The hash by which a mission is compared: the swarm's plan, or before setup its waypoints.
fn mission_of(status: &AircraftStatus) -> Option<&str> {
    let mission = status.mission.as_ref()?;
    Some(mission.plan_hash.as_deref().unwrap_or(&mission.hash))
}

impl<'a> Around<'a> {
    fn of(fleet: &'a [FleetAircraft]) -> Self {
        let statuses = || fleet.iter().filter_map(|aircraft| aircraft.status.as_ref());
        let names = fleet.iter().filter_map(|one| Some((one.status.as_ref()?.id.as_str(), name_of(one))));
        let held = statuses().filter_map(|status| Some((status.id.as_str(), mission_of(status)?)));
        let in_contact = fleet.iter().filter(|aircraft| aircraft.link == LinkState::Up);
        let swarms = in_contact.filter_map(|aircraft| aircraft.status.as_ref()?.swarm.as_ref());
        let members: Vec<_> = swarms.filter(|swarm| swarm.slot.is_some()).collect();
        let mut absences: BTreeMap<&str, Absence> = BTreeMap::new();
        for one in members.iter().flat_map(|swarm| &swarm.absent) {
            let absence = absences.entry(&one.id).or_default();
            absence.asked = members.len();
            absence.excluded |= one.excluded_by.is_some();
            absence.silent += usize::from(one.silent);
            if let Some(leaves) = &one.leaves {
                leaves.clone_into(&mut absence.leaves);
            }
        }
        Self { names: names.collect(), held: held.collect(), absences }
    }

    fn name<'b>(&'b self, id: &'b str) -> &'b str {
        self.names.get(id).copied().unwrap_or(id)
    }
}

/// The conditions of an aircraft that are alarms.
fn conditions(aircraft: &FleetAircraft, around: &Around<'_>) -> Vec<Condition> {
    let mut found = Vec::new();
    let is_armed = aircraft.status.as_ref().is_some_and(|status| status.flight_controller.armed);
    let is_up = aircraft.link == LinkState::Up;
    let mut add = |kind, level, text: String| found.push(Condition { kind, level, text });
    if aircraft.link == LinkState::Lost {
        // On the ground, motors off, it endangers nothing.
        let level = if is_armed { AlarmLevel::Alarm } else { AlarmLevel::Caution };
        let armed = if is_armed { "armed" } else { "disarmed" };
        add(AlarmKind::Lost, level, format!("out of contact, {armed} when last received"));
    }
    if let Some(problem) = aircraft.problem.as_ref().filter(|_| is_up) {
        add(AlarmKind::Problem, AlarmLevel::Caution, problem.clone());
    }
    if let Some(status) = &aircraft.status {
        of_control(status, &mut add);
        of_devices(status, is_up, &mut add);
        if is_up && is_armed {
            of_encounters(status, around, &mut add);
        }
        of_swarm(status, around, &mut add);
    }
    found
}

/// Who commands it, and whether its mission goes on.
fn of_control(status: &AircraftStatus, add: &mut impl FnMut(AlarmKind, AlarmLevel, String)) {
    let armed = status.flight_controller.armed;
    let mode = status.flight_controller.mode.as_deref().unwrap_or_default();
    if status.failsafe {
        let mode = if mode.is_empty() { "unknown" } else { mode };
        let cause = failsafe_cause(&status.detail);
        let text = format!("{cause} failsafe of the flight controller, mode {mode}");
        return add(AlarmKind::Failsafe, AlarmLevel::Alarm, text);
    }
    if !status.engaged {
        let text = match mode {
            _ if !armed => "the companion computer commands nothing; Engage lets it command again".to_owned(),
            "" => "the companion computer commands nothing, and the flight mode is not known".to_owned(),
            mode if UNSTEERED_MODES.contains(&mode) => format!(
                "neither pilot nor companion computer commands it in mode {mode}: switch the flight mode on the \
                 transmitter"
            ),
            mode => format!("the pilot has control, mode {mode}"),
        };
        return add(AlarmKind::Takeover, AlarmLevel::Alarm, text);
    }
    if !armed {
        return;
    }
    let or_detail = |text: String| if status.detail.is_empty() { text } else { status.detail.clone() };
    let was_ordered =
        status.commands.iter().any(|step| step.command.recovers() && step.stage != CommandStage::Failed);
    if status.can_resume || status.state == StateId::Holding {
        add(AlarmKind::Holding, AlarmLevel::Caution, or_detail("holds its position".to_owned()));
    } else if status.phase == Phase::Aborted && !was_ordered {
        add(AlarmKind::Ended, AlarmLevel::Caution, or_detail(format!("its mission was ended, mode {mode}")));
    }
}

/// Flight controller, battery, guardian, radio and keys.
fn of_devices(status: &AircraftStatus, is_up: bool, add: &mut impl FnMut(AlarmKind, AlarmLevel, String)) {
    let armed = status.flight_controller.armed;
    let if_armed = |level| if armed { level } else { AlarmLevel::Caution };
    if is_up && status.flight_controller.link == LinkState::Lost {
        add(AlarmKind::Controller, AlarmLevel::Alarm, "its flight controller sends nothing".to_owned());
    }
    let charge = status.measurements.battery.as_ref().and_then(|battery| battery.remaining_percent);
    if let Some(charge) = charge.filter(|charge| *charge <= BATTERY_CAUTION) {
        let level = if charge <= BATTERY_ALARM { AlarmLevel::Alarm } else { AlarmLevel::Caution };
        add(AlarmKind::Battery, if_armed(level), format!("battery at {charge} %"));
    }
    let guard = status.checks.iter().find(|check| check.name == "companion loss" && !check.passed);
    if let Some(guard) = guard.filter(|_| armed) {
        add(AlarmKind::Companion, AlarmLevel::Alarm, guard.detail.clone());
    }
    // Before the flight it is not judged who receives whom.
    let avoidance = status.avoidance.as_ref().filter(|_| armed && is_up && !is_grounded(status.phase));
    if let Some(down) = &status.radio.down {
        add(AlarmKind::Radio, if_armed(AlarmLevel::Alarm), down.clone());
    } else if avoidance.is_some_and(|avoidance| avoidance.receives == Some(false)) {
        let text = "receives no other aircraft any more: land it soon".to_owned();
        add(AlarmKind::Radio, AlarmLevel::Alarm, text);
    } else if avoidance.is_some_and(|avoidance| avoidance.is_received == Some(false)) {
        let text = "another aircraft flies on as if it did not receive this one: check the radio".to_owned();
        add(AlarmKind::Radio, AlarmLevel::Alarm, text);
    }
    if status.radio.keys.as_ref().is_some_and(|keys| keys.validity == KeysValidity::Expired) {
        let text = "its keys have expired: no setup begins".to_owned();
        add(AlarmKind::Keys, AlarmLevel::Caution, text);
    }
}

/// The others around it.
fn of_encounters(
    status: &AircraftStatus,
    around: &Around<'_>,
    add: &mut impl FnMut(AlarmKind, AlarmLevel, String),
) {
    if let Some(separation) = status.separation.as_ref().filter(|separation| separation.alarmed) {
        let other = separation.nearest.as_ref().map_or("another aircraft", |other| around.name(&other.id));
        add(AlarmKind::Separation, AlarmLevel::Alarm, format!("too near to {other}"));
    }
    let Some(avoidance) = status.avoidance.as_ref().filter(|_| !is_grounded(status.phase)) else { return };
    if avoidance.avoiding.is_some() || avoidance.state != StateId::Normal {
        let with = avoidance.avoiding.as_deref().map(|id| format!(" with {}", around.name(id)));
        let text = format!("in conflict{}", with.unwrap_or_default());
        add(AlarmKind::Conflict, AlarmLevel::Caution, text);
    }
}

/// Its place in the swarm, and the plan.
fn of_swarm(
    status: &AircraftStatus,
    around: &Around<'_>,
    add: &mut impl FnMut(AlarmKind, AlarmLevel, String),
) {
    if let Some(absence) = around.absences.get(status.id.as_str()) {
        let text = if absence.excluded {
            "excluded from its swarm".to_owned()
        } else if absence.leaves.is_empty() {
            format!("not received by {} of {} others", absence.silent, absence.asked)
        } else {
            format!("leaves its swarm: {}", absence.leaves)
        };
        if absence.excluded || absence.silent > 0 || !absence.leaves.is_empty() {
            add(AlarmKind::Excluded, AlarmLevel::Caution, text);
        }
    }
    let leader = status.swarm.as_ref().and_then(|swarm| match swarm.leader {
        true => Some(status.id.as_str()),
        false => swarm.leader_id.as_deref(),
    });
    let expected = leader.and_then(|leader| around.held.get(leader));
    if let (Some(own), Some(expected)) = (mission_of(status), expected)
        && own != *expected
    {
        let text = "holds another mission than its leader".to_owned();
        add(AlarmKind::Mission, AlarmLevel::Caution, text);
    }
}

/// Returns whether an aircraft in this phase stands on the ground: its avoidance is that of the previous flight.
fn is_grounded(phase: Phase) -> bool {
    matches!(phase, Phase::Start | Phase::Ready | Phase::Finished)
}

/// Returns the cause of a failsafe, from the autopilot's own text.
fn failsafe_cause(detail: &str) -> &'static str {
    let text = detail.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_word = |word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|one| one == word);
    let causes = [
        (has(&["batt"]), "battery"),
        (has(&["ekf", "dead reckon", "deadreckon", "gps glitch"]), "EKF"),
        (has(&["fence"]), "fence"),
        (has(&["gcs", "ground station"]), "ground station"),
        (has(&["radio", "throttle"]) || is_word("rc"), "radio"),
    ];
    causes.into_iter().find(|(is_it, _)| *is_it).map_or("flight controller", |(_, cause)| cause)
}

/// The alarms of the fleet, with times and who acknowledged them. On the event stream they are a part of the picture.
#[utoipa::path(get, path = paths::FLEET_ALARMS, tag = "fleet", responses(
    (status = 200, description = "The alarms", body = FleetAlarms),
    (status = 503, description = "The service is ending", body = ApiError),
))]
pub(crate) async fn alarms(State(service): State<Service>) -> Result<Json<FleetAlarms>, Refused> {
    Ok(Json(FleetAlarms { alarms: service.picture().await?.alarms }))
}

/// Acknowledges alarms that last, for all consoles. Nothing is sent to aircraft.
#[utoipa::path(post, path = paths::FLEET_ALARMS, tag = "fleet", request_body = AlarmsAcknowledge, responses(
    (status = 200, description = "The alarms after it", body = FleetAlarms),
    (status = 400, description = "The request is wrong", body = ApiError),
    (status = 404, description = "No such alarm is listed", body = ApiError),
    (status = 503, description = "The service is ending", body = ApiError),
))]
pub(crate) async fn acknowledge_alarms(
    State(service): State<Service>,
    Extension(caller): Extension<Caller>,
    connection: Connection,
    Body(request): Body<AlarmsAcknowledge>,
) -> Response {
    let numbers: Vec<String> = request.numbers.iter().map(u64::to_string).collect();
    let all = if numbers.is_empty() { "all".to_owned() } else { numbers.join(" ") };
    let what = Wrote { action: "acknowledge", what: all, ..Wrote::default() };
    let by = if caller.name.is_empty() { connection.peer().to_string() } else { caller.name };
    wrote(what, service.acknowledge(request, by).await.map(Json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::status;

    const ID: &str = "00000000000000a1";

    fn flying(change: impl FnOnce(&mut AircraftStatus)) -> FleetAircraft {
        let mut status = status(ID, StateId::MovingToWaypoint);
        status.name = "UAV 1".to_owned();
        status.engaged = true;
        status.flight_controller.armed = true;
        status.flight_controller.link = LinkState::Up;
        change(&mut status);
        let address = "http://10.0.0.1:8080".to_owned();
        FleetAircraft { address, link: LinkState::Up, age_ms: Some(0), status: Some(status), problem: None }
    }

    fn lost() -> FleetAircraft {
        FleetAircraft { link: LinkState::Lost, ..flying(|_| ()) }
    }

    fn all() -> AlarmsAcknowledge {
        AlarmsAcknowledge::default()
    }

    #[test]
    fn an_alarm_begins_ends_and_begins_again_under_another_number() {
        let mut alarms = Alarms::default();
        alarms.update(0, &[flying(|_| ())]);
        assert_eq!(alarms.shown(), []);
        alarms.update(1_000, &[lost()]);
        alarms.update(2_000, &[lost()]);
        alarms.update(3_000, &[flying(|_| ())]);
        alarms.update(4_000, &[lost()]);
        let shown: Vec<_> =
            alarms.shown().into_iter().map(|alarm| (alarm.number, alarm.since_ms, alarm.ended_ms)).collect();
        assert_eq!(shown, [(1, 1_000, Some(3_000)), (2, 4_000, None)]);
        let alarm = &alarms.shown()[1];
        assert_eq!(
            (alarm.name.as_str(), alarm.kind, alarm.level),
            ("UAV 1", AlarmKind::Lost, AlarmLevel::Alarm)
        );
        assert_eq!(alarm.text, "out of contact, armed when last received");
        alarms.update(5_000, &[]);
        assert_eq!(alarms.shown()[1].ended_ms, Some(5_000), "the aircraft is no longer followed");
    }

    #[test]
    fn an_acknowledgement_names_the_user_and_ends_where_the_alarm_becomes_graver() {
        let charged = |percent: u8| {
            flying(|status| {
                let battery = serde_json::json!({"remaining_percent": percent, "voltage_v": 15.0});
                status.measurements.battery = serde_json::from_value(battery).expect("a battery");
            })
        };
        let mut alarms = Alarms::default();
        alarms.update(1_000, &[charged(25)]);
        let revision = alarms.revision();
        alarms.acknowledge(&all(), "anna", 1_500).expect("it lasts");
        assert_eq!(alarms.since(revision).len(), 1, "consoles are sent it");
        let by_anna = Some(AlarmAcknowledgement { by: "anna".to_owned(), at_ms: 1_500 });
        assert_eq!(alarms.shown()[0].acknowledged, by_anna);
        alarms.acknowledge(&all(), "berta", 1_600).expect("it lasts");
        alarms.update(2_000, &[charged(20)]);
        assert_eq!(
            alarms.shown()[0].acknowledged,
            by_anna,
            "the first counts, and another number is no other alarm"
        );
        assert_eq!(alarms.shown()[0].text, "battery at 20 %");
        alarms.update(3_000, &[charged(15)]);
        assert_eq!((alarms.shown()[0].level, &alarms.shown()[0].acknowledged), (AlarmLevel::Alarm, &None));
        let unknown = AlarmsAcknowledge { numbers: vec![1, 9] };
        assert!(alarms.acknowledge(&unknown, "anna", 4_000).is_err());
        assert_eq!(alarms.shown()[0].acknowledged, None, "nothing of it is carried out");
    }

    #[test]
    fn the_list_is_bounded_and_keeps_what_lasts() {
        let mut alarms = Alarms::default();
        let other = FleetAircraft { address: "http://10.0.0.2:8080".to_owned(), ..lost() };
        for i in 0..1_000 {
            let one = if i % 2 == 0 { lost() } else { flying(|_| ()) };
            alarms.update(i * 1_000, &[one, other.clone()]);
        }
        let shown = alarms.shown();
        assert_eq!(shown.iter().filter(|alarm| alarm.ended_ms.is_some()).count(), ENDED_MAX);
        assert_eq!(shown.iter().filter(|alarm| alarm.ended_ms.is_none()).count(), 1);
        assert!(shown.is_sorted_by_key(|alarm| alarm.number));
    }

    #[test]
    fn the_fleet_is_judged_twice_a_second() {
        let mut alarms = Alarms::default();
        let mut judged = 0;
        for ms in (0..=1_000).step_by(50) {
            alarms.judge(ms, || {
                judged += 1;
                Vec::new()
            });
        }
        assert_eq!(judged, 3);
    }

    #[test]
    fn conditions_are_those_of_the_page() {
        let of = |aircraft: FleetAircraft| {
            let fleet = [aircraft];
            let found = conditions(&fleet[0], &Around::of(&fleet));
            found.into_iter().map(|one| (one.kind, one.level, one.text)).collect::<Vec<_>>()
        };
        let (alarm, caution) = (AlarmLevel::Alarm, AlarmLevel::Caution);
        let one = |kind, level, text: &str| vec![(kind, level, text.to_owned())];
        assert_eq!(of(flying(|_| ())), []);
        let failsafe = flying(|status| {
            status.failsafe = true;
            status.engaged = false;
            status.detail = "Battery failsafe".to_owned();
            status.flight_controller.mode = Some("LAND".to_owned());
        });
        let text = "battery failsafe of the flight controller, mode LAND";
        assert_eq!(of(failsafe), one(AlarmKind::Failsafe, alarm, text));
        let nobody = flying(|status| {
            status.engaged = false;
            status.flight_controller.mode = Some("GUIDED".to_owned());
        });
        let text = "neither pilot nor companion computer commands it in mode GUIDED: switch the flight mode on the transmitter";
        assert_eq!(of(nobody), one(AlarmKind::Takeover, alarm, text));
        let silent = flying(|status| status.flight_controller.link = LinkState::Lost);
        assert_eq!(of(silent), one(AlarmKind::Controller, alarm, "its flight controller sends nothing"));
        let down = flying(|status| {
            status.radio.down = Some("wlan0 is down".to_owned());
            status.flight_controller.armed = false;
        });
        assert_eq!(of(down), one(AlarmKind::Radio, caution, "wlan0 is down"));
    }
}
