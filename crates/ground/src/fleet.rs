//! The picture of the fleet: the last status of each aircraft, how long ago, and what the operator
//! can do now. It has no clock and no socket: the owner hands it what arrived together with the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use wingbeat_api::{
    Actions, AircraftStatus, Command, FleetAircraft, FleetMission, GeoPoint, Identity, LinkState,
    MissionUpload, Phase,
};

use crate::ledger::Ledger;

/// Silent for longer than this, the link is lost: seven of the five messages a second that an aircraft
/// sends.
pub(crate) const LOST_AFTER: Duration = Duration::from_millis(1500);

/// The version of the aircraft's API that this service uses.
const API_VERSION: u32 = 1;

/// One configured address and what answers there.
struct Aircraft {
    address: String,
    identity: Option<Identity>,
    status: Option<AircraftStatus>,
    received: Option<Instant>,
    link: LinkState,
    /// Why no status arrives, from the connection.
    trouble: Option<String>,
    /// Its identity or status makes no sense.
    mismatch: Option<String>,
    changed: bool,
}

impl Aircraft {
    fn new(address: String) -> Self {
        Self {
            address,
            identity: None,
            status: None,
            received: None,
            link: LinkState::NeverSeen,
            trouble: None,
            mismatch: None,
            changed: true,
        }
    }

    fn id(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.id.as_str())
    }

    fn name(&self) -> &str {
        let name =
            self.status.as_ref().map(|status| &status.name).or(self.identity.as_ref().map(|i| &i.name));
        name.filter(|name| !name.is_empty()).unwrap_or(&self.address)
    }
}

/// A mission whose waypoints are known.
struct Mission {
    upload: MissionUpload,
    /// Altitude of the take-off point that its heights count from; known with a holder's position.
    home_altitude_m: Option<f64>,
}

/// What a message of an aircraft changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The aircraft has an id that it did not have before.
    pub(crate) newcomer: Option<String>,
    /// Ids that answer at two addresses since now.
    pub(crate) duplicate: Option<String>,
    /// Log lines about links: index of the aircraft, and whether the link came up.
    pub(crate) link_up: bool,
}

/// Every configured aircraft.
pub(crate) struct Fleet {
    started: Instant,
    aircraft: Vec<Aircraft>,
    /// Which addresses answer with an id: more than one is a mistake in a configuration.
    by_id: BTreeMap<String, BTreeSet<usize>>,
    missions: BTreeMap<String, Mission>,
    /// Missions or their holders changed since the last picture, or the set of aircraft did.
    redraw: bool,
}

impl Fleet {
    /// A fleet of which no status was received yet.
    pub(crate) fn new(addresses: impl IntoIterator<Item = String>, now: Instant) -> Self {
        let aircraft = addresses.into_iter().map(Aircraft::new);
        let (aircraft, by_id, missions) = (aircraft.collect(), BTreeMap::new(), BTreeMap::new());
        Self { started: now, aircraft, by_id, missions, redraw: true }
    }

    /// Adds an aircraft that was found; its index, or none where its address or its id is known, or there are too many.
    pub(crate) fn add(&mut self, address: &str, id: &str) -> Option<usize> {
        let is_known = self.addresses().any(|known| known == address) || self.ids().any(|known| known == id);
        if is_known || self.aircraft.len() >= crate::MAX_AIRCRAFT {
            return None;
        }
        self.aircraft.push(Aircraft::new(address.to_owned()));
        self.redraw = true;
        Some(self.aircraft.len() - 1)
    }

    /// Milliseconds since the service started.
    pub(crate) fn time_ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// An aircraft sent its identity.
    pub(crate) fn identified(&mut self, index: usize, identity: Identity) -> Change {
        let mut change = Change::default();
        let Some(aircraft) = self.aircraft.get_mut(index) else { return change };
        aircraft.changed = true;
        aircraft.mismatch = (identity.api_version != API_VERSION).then(|| {
            format!(
                "{} uses version {} of the API, expected {API_VERSION}",
                aircraft.address, identity.api_version
            )
        });
        let old = aircraft.id().map(str::to_owned);
        let id = identity.id.clone();
        aircraft.identity = Some(identity);
        if old.as_deref() == Some(id.as_str()) {
            return change;
        }
        // Another aircraft has taken the address: the last status of the old one is not about this one.
        aircraft.status = None;
        aircraft.received = None;
        aircraft.link = LinkState::NeverSeen;
        self.redraw = true;
        if let Some(old) = old
            && let Some(addresses) = self.by_id.get_mut(&old)
        {
            addresses.remove(&index);
            addresses.iter().for_each(|i| self.aircraft[*i].changed = true);
        }
        let addresses = self.by_id.entry(id.clone()).or_default();
        addresses.insert(index);
        if addresses.len() > 1 {
            addresses.iter().for_each(|i| self.aircraft[*i].changed = true);
            change.duplicate = Some(id);
        } else {
            change.newcomer = Some(id);
        }
        change
    }

    /// A status arrived.
    pub(crate) fn status(&mut self, index: usize, status: AircraftStatus, now: Instant) -> Change {
        let mut change = Change::default();
        let Some(aircraft) = self.aircraft.get_mut(index) else { return change };
        if let Some(id) = aircraft.id()
            && status.id != id
        {
            let found =
                format!("{}: found a status of {}, expected one of {id}", aircraft.address, status.id);
            aircraft.changed = aircraft.changed || aircraft.mismatch.as_ref() != Some(&found);
            aircraft.mismatch = Some(found);
            return change;
        }
        let mission = |status: &Option<AircraftStatus>| {
            status.as_ref().and_then(|s| s.mission.as_ref()).map(|m| (m.hash.clone(), m.name.clone()))
        };
        let had = mission(&aircraft.status);
        aircraft.status = Some(status);
        self.redraw = self.redraw || mission(&aircraft.status) != had;
        change.link_up = aircraft.link != LinkState::Up;
        self.listened(index, now);
        change
    }

    /// Anything arrived: the link is up.
    pub(crate) fn listened(&mut self, index: usize, now: Instant) {
        let Some(aircraft) = self.aircraft.get_mut(index) else { return };
        aircraft.received = Some(now);
        aircraft.link = LinkState::Up;
        aircraft.trouble = None;
        aircraft.changed = true;
    }

    /// The connection reports why no status arrives.
    pub(crate) fn troubled(&mut self, index: usize, reason: String) {
        let Some(aircraft) = self.aircraft.get_mut(index) else { return };
        aircraft.changed = aircraft.changed || aircraft.trouble.as_ref() != Some(&reason);
        aircraft.trouble = Some(reason);
    }

    /// Finds the aircraft that have been silent for too long; returns those that were up until now.
    pub(crate) fn age(&mut self, now: Instant) -> Vec<usize> {
        let mut lost = Vec::new();
        for (index, aircraft) in self.aircraft.iter_mut().enumerate() {
            let silent = aircraft
                .received
                .is_some_and(|received| now.saturating_duration_since(received) > LOST_AFTER);
            if silent && aircraft.link == LinkState::Up {
                aircraft.link = LinkState::Lost;
                aircraft.changed = true;
                lost.push(index);
            }
        }
        lost
    }

    /// Marks the silent ones as changed, so that the consoles see their age grow.
    pub(crate) fn show_ages(&mut self) {
        self.aircraft.iter_mut().filter(|a| a.link == LinkState::Lost).for_each(|a| a.changed = true);
    }

    /// Id, name and time of the last status of an aircraft, for a log line about it.
    pub(crate) fn introduce(&self, index: usize) -> Option<(String, String, u64)> {
        let aircraft = self.aircraft.get(index)?;
        let time_ms = aircraft.status.as_ref().map_or(0, |status| status.time_ms);
        Some((aircraft.id()?.to_owned(), aircraft.name().to_owned(), time_ms))
    }

    /// Every id that was received.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.iter().filter(|(_, addresses)| !addresses.is_empty()).map(|(id, _)| id.as_str())
    }

    /// The id that answers at this index now.
    pub(crate) fn id_at(&self, index: usize) -> Option<&str> {
        self.aircraft.get(index)?.id()
    }

    /// Where to send a command for an id: its address, or why it cannot be commanded; `None` if no
    /// aircraft has this id.
    pub(crate) fn find(&self, id: &str) -> Option<Result<&str, String>> {
        let addresses = self.by_id.get(id)?;
        let first = *addresses.first()?;
        if let Some(problem) = self.duplicate_problem(id) {
            return Some(Err(problem));
        }
        let aircraft = &self.aircraft[first];
        Some(match &aircraft.mismatch {
            Some(mismatch) => Err(mismatch.clone()),
            None => Ok(&aircraft.address),
        })
    }

    /// The number of the flight that this aircraft is in; 0 where none is known.
    pub(crate) fn flight_of(&self, id: &str) -> u32 {
        let first = self.by_id.get(id).and_then(|addresses| addresses.first());
        let status = first.and_then(|&index| self.aircraft[index].status.as_ref());
        status.and_then(|status| status.swarm.as_ref()).map_or(0, |swarm| swarm.flight)
    }

    /// The sentence about an id that answers at two addresses.
    fn duplicate_problem(&self, id: &str) -> Option<String> {
        let addresses = self.by_id.get(id).filter(|addresses| addresses.len() > 1)?;
        let names: Vec<_> = addresses.iter().map(|index| self.aircraft[*index].address.as_str()).collect();
        Some(format!("id {id} answers at {}: none of them is commanded", names.join(" and ")))
    }

    /// Hashes of missions whose waypoints are not known, each with the aircraft that hold it and are
    /// received: the leader first, which was given it over HTTP; the others may have it by radio only.
    pub(crate) fn missing_missions(&self) -> BTreeMap<String, Vec<usize>> {
        let mut missing: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, aircraft) in self.aircraft.iter().enumerate().filter(|(_, a)| a.link == LinkState::Up) {
            let held = aircraft.status.as_ref().and_then(|status| status.mission.as_ref());
            if let Some(held) = held.filter(|held| !self.missions.contains_key(&held.hash)) {
                let holders = missing.entry(held.hash.clone()).or_default();
                let leads = aircraft.status.as_ref().and_then(|s| s.swarm.as_ref()).is_some_and(|s| s.leader);
                holders.insert(if leads { 0 } else { holders.len() }, index);
            }
        }
        missing
    }

    /// The address of an aircraft.
    pub(crate) fn address(&self, index: usize) -> Option<&str> {
        self.aircraft.get(index).map(|aircraft| aircraft.address.as_str())
    }

    /// The waypoints of a mission were read from a holder.
    pub(crate) fn mission(&mut self, hash: String, upload: MissionUpload) {
        self.missions.insert(hash, Mission { upload, home_altitude_m: None });
        self.redraw = true;
    }

    /// Forgets missions that no aircraft holds, and finds the home altitude of new ones. True if the whole
    /// picture must be drawn again.
    pub(crate) fn take_redraw(&mut self) -> bool {
        let aircraft = &self.aircraft;
        self.missions.retain(|hash, mission| {
            let mut holders = holders(aircraft, hash).peekable();
            let held = holders.peek().is_some();
            if mission.home_altitude_m.is_none() {
                let navigation = holders.find_map(|status| status.navigation);
                mission.home_altitude_m = navigation.map(|n| n.position.altitude_m - n.height_m);
                self.redraw = self.redraw || mission.home_altitude_m.is_some();
            }
            self.redraw = self.redraw || !held;
            held
        });
        std::mem::take(&mut self.redraw)
    }

    /// Every mission with known waypoints and altitude, each once.
    pub(crate) fn missions(&self) -> Vec<FleetMission> {
        let known = self
            .missions
            .iter()
            .filter_map(|(hash, mission)| Some((hash, mission, mission.home_altitude_m?)));
        let drawn = known.map(|(hash, mission, home_altitude_m)| FleetMission {
            hash: hash.clone(),
            name: mission.upload.name.clone(),
            waypoints: mission
                .upload
                .waypoints
                .iter()
                .map(|item| GeoPoint {
                    latitude_deg: item.latitude_deg,
                    longitude_deg: item.longitude_deg,
                    altitude_m: home_altitude_m + item.height_m,
                })
                .collect(),
            holders: holders(&self.aircraft, hash).map(|status| status.id.clone()).collect(),
        });
        drawn.collect()
    }

    /// Every aircraft: those with an id by id, then the others by address.
    pub(crate) fn all(&self, now: Instant) -> Vec<FleetAircraft> {
        self.in_order().into_iter().map(|index| self.shown(index, now)).collect()
    }

    /// The aircraft that changed since the last call.
    pub(crate) fn take_changed(&mut self, now: Instant) -> Vec<FleetAircraft> {
        let changed: Vec<_> =
            self.in_order().into_iter().filter(|index| self.aircraft[*index].changed).collect();
        self.aircraft.iter_mut().for_each(|aircraft| aircraft.changed = false);
        changed.into_iter().map(|index| self.shown(index, now)).collect()
    }

    /// Every address, in the order of [`Self::all`].
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.in_order().into_iter().map(|index| self.aircraft[index].address.as_str())
    }

    fn in_order(&self) -> Vec<usize> {
        let named = self.by_id.values().flatten().copied();
        let unnamed = (0..self.aircraft.len()).filter(|index| self.aircraft[*index].identity.is_none());
        named.chain(unnamed).collect()
    }

    fn shown(&self, index: usize, now: Instant) -> FleetAircraft {
        let aircraft = &self.aircraft[index];
        let age = aircraft.received.map(|received| now.saturating_duration_since(received).as_millis());
        FleetAircraft {
            address: aircraft.address.clone(),
            link: aircraft.link,
            age_ms: age.map(|age| u64::try_from(age).unwrap_or(u64::MAX)),
            status: aircraft.status.clone(),
            problem: self.problem(aircraft),
        }
    }

    fn problem(&self, aircraft: &Aircraft) -> Option<String> {
        let duplicate = aircraft.id().and_then(|id| self.duplicate_problem(id));
        // While messages arrive, what the connection last complained about is over.
        let trouble = aircraft.trouble.clone().filter(|_| aircraft.link != LinkState::Up);
        duplicate.or_else(|| aircraft.mismatch.clone()).or(trouble)
    }

    /// What the operator can do now. A blocked action names the first aircraft and its reason.
    pub(crate) fn actions(&self, ledger: &Ledger) -> Actions {
        let setup_blocked = self.blocked(ledger, Command::Setup, &[]);
        let start_blocked = self.blocked(ledger, Command::Start, &[]);
        Actions {
            setup: setup_blocked.is_empty(),
            setup_blocked,
            start: start_blocked.is_empty(),
            start_blocked,
        }
    }

    /// Why *Setup* or *Start* cannot be carried out by these aircraft (none named: by all), as text;
    /// empty if it can.
    pub(crate) fn blocked(&self, ledger: &Ledger, command: Command, vehicles: &[String]) -> String {
        if self.aircraft.is_empty() {
            return "no aircraft is configured".to_owned();
        }
        let meant = |a: &&Aircraft| {
            vehicles.is_empty() || a.id().is_some_and(|id| vehicles.iter().any(|vehicle| vehicle == id))
        };
        let mut idle = None;
        let mut any_due = false;
        for aircraft in self.in_order().into_iter().map(|index| &self.aircraft[index]).filter(meant) {
            match self.is_due(ledger, command, aircraft) {
                Err(reason) => return format!("{}: {reason}", aircraft.name()),
                Ok(true) => any_due = true,
                Ok(false) => idle = idle.or(aircraft.status.as_ref()),
            }
        }
        match idle.filter(|_| !any_due) {
            Some(status) => {
                format!(
                    "no aircraft {}: the state of {} is {}",
                    Wanted::of(command).description(),
                    status.name,
                    status.state
                )
            }
            None => String::new(),
        }
    }

    /// The aircraft that *Setup* or *Start* for all is sent to: the whole swarm, or of those that fly each
    /// for itself the ones that wait for it.
    pub(crate) fn due(&self, ledger: &Ledger, command: Command) -> Vec<String> {
        let due = self.aircraft.iter().filter(|a| self.is_due(ledger, command, a) == Ok(true));
        let mut ids: Vec<_> = due.filter_map(|a| a.id().map(str::to_owned)).collect();
        ids.sort();
        ids
    }

    /// Why an operator of `console` commands these aircraft only after a take-over, as text; empty if no other console is in charge.
    pub(crate) fn in_charge_of_another(&self, console: &str, ids: &[String]) -> String {
        let meant = |a: &&Aircraft| a.id().is_some_and(|id| ids.iter().any(|one| one == id));
        let mut held =
            self.aircraft.iter().filter(meant).filter_map(|a| Some((a, a.status.as_ref()?.lease.as_ref()?)));
        held.find(|(_, lease)| lease.console != console).map_or_else(String::new, |(aircraft, lease)| {
            format!("{}: console {:?} is in charge of it; take over first", aircraft.name(), lease.console)
        })
    }

    /// These ids, each with its display name.
    pub(crate) fn named(&self, ids: &[String]) -> Vec<(String, String)> {
        let name = |id: &str| {
            let first = self.by_id.get(id).and_then(|addresses| addresses.first());
            first.map_or_else(|| id.to_owned(), |index| self.aircraft[*index].name().to_owned())
        };
        ids.iter().map(|id| (id.clone(), name(id))).collect()
    }

    /// Whether each of these aircraft flies for itself, so that one can be set up and started without
    /// the others.
    pub(crate) fn each_alone(&self, vehicles: &[String]) -> bool {
        vehicles.iter().all(|id| {
            let status = self.aircraft.iter().find(|a| a.id() == Some(id)).and_then(|a| a.status.as_ref());
            status.is_some_and(is_alone)
        })
    }

    /// Ids of the aircraft that fly in a swarm, when `member` is to be excluded from it.
    ///
    /// # Errors
    /// No aircraft flies in a swarm, or this one does not; as text.
    pub(crate) fn in_swarm_with(&self, member: &str) -> Result<Vec<String>, String> {
        let planned = |a: &&Aircraft| {
            a.status.as_ref().and_then(|status| status.swarm.as_ref()).is_some_and(|s| s.slot.is_some())
        };
        let mut members: Vec<_> =
            self.aircraft.iter().filter(planned).filter_map(|a| a.id().map(str::to_owned)).collect();
        members.sort();
        members.dedup();
        if members.is_empty() {
            return Err(format!("exclude {member}: no swarm flies, no aircraft holds a plan"));
        }
        // An aircraft out of the ground's reach may still be a member: its swarm's status shows it.
        let outside = self.aircraft.iter().find(|a| a.id() == Some(member)).filter(|a| !planned(a));
        match outside.filter(|a| a.status.is_some()) {
            Some(aircraft) => Err(format!("{}: no member of a swarm that flies", aircraft.name())),
            None => Ok(members),
        }
    }

    /// Whether the swarm continues without this aircraft, as a member reports whose status arrives.
    fn is_absent(&self, id: &str) -> bool {
        self.aircraft.iter().filter(|a| a.link == LinkState::Up && a.id() != Some(id)).any(|a| {
            let swarm = a.status.as_ref().and_then(|status| status.swarm.as_ref());
            swarm.is_some_and(|swarm| swarm.absent.iter().any(|absent| absent.id == id))
        })
    }

    /// Whether an aircraft waits for *Setup* or *Start*; `Ok(false)` where it is past it and need not be
    /// asked; or the reason why it cannot be done.
    fn is_due(&self, ledger: &Ledger, command: Command, aircraft: &Aircraft) -> Result<bool, String> {
        let due = self.is_due_as_all(ledger, command, aircraft);
        // A member that its swarm does not wait for does not delay the start either.
        let starts = Wanted::of(command) == Wanted::Start;
        match due {
            Err(_) if starts && aircraft.id().is_some_and(|id| self.is_absent(id)) => Ok(false),
            due => due,
        }
    }

    fn is_due_as_all(&self, ledger: &Ledger, command: Command, aircraft: &Aircraft) -> Result<bool, String> {
        if let Some(problem) = self.problem(aircraft) {
            return Err(problem);
        }
        let status = match (aircraft.link, aircraft.status.as_ref()) {
            (LinkState::Up, Some(status)) => status,
            (LinkState::Lost, Some(_)) => return Err("its link is lost".to_owned()),
            _ => return Err("no status received yet".to_owned()),
        };
        let wanted = Wanted::of(command);
        let waits = match (wanted, status.phase) {
            (Wanted::Setup, Phase::Start) | (Wanted::Start, Phase::Ready) => true,
            // A setup that reached only some is pressed again: those that wait for a plan take it twice.
            (Wanted::Setup, Phase::Preparing) => !status.flight_controller.armed && self.is_any_unreached(),
            _ => false,
        };
        // An aircraft that flies for itself and is past this delays no other.
        let past = is_alone(status)
            && match wanted {
                Wanted::Setup => status.phase > Phase::Start,
                Wanted::Start => status.phase > Phase::Ready,
            };
        if !waits && past {
            return Ok(false);
        }
        if !waits {
            return Err(format!("its state is {}, expected one that {}", status.state, wanted.description()));
        }
        if let Some(recovery) = ledger.recovering(&status.id) {
            return Err(format!("{} is still being sent", recovery));
        }
        let failed = status.checks.iter().find(|check| check.is_required && !check.passed);
        let failed = failed.filter(|_| wanted == Wanted::Setup);
        match failed {
            Some(failed) => Err(format!("check {} has not passed: {}", failed.name, failed.detail)),
            None => Ok(true),
        }
    }

    fn is_any_unreached(&self) -> bool {
        self.aircraft.iter().any(|a| {
            a.status.as_ref().is_some_and(|status| status.phase == Phase::Start && !is_alone(status))
        })
    }
}

/// What an aircraft waits for on the ground or above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Setup,
    Start,
}

impl Wanted {
    fn of(command: Command) -> Self {
        if command == Command::Setup { Self::Setup } else { Self::Start }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Setup => "waits for setup",
            Self::Start => "is set up and waits for the start",
        }
    }
}

/// An aircraft with a mission of its own, in no swarm.
fn is_alone(status: &AircraftStatus) -> bool {
    status.swarm.is_none()
}

fn holders<'a>(aircraft: &'a [Aircraft], hash: &'a str) -> impl Iterator<Item = &'a AircraftStatus> {
    let holds =
        move |status: &&AircraftStatus| status.mission.as_ref().is_some_and(|mission| mission.hash == hash);
    aircraft.iter().filter_map(|a| a.status.as_ref()).filter(holds)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use wingbeat_api::{
        Check, FlightController, Measurements, MissionItem, MissionSummary, Navigation, Radio, StateId,
    };

    const A: &str = "000000000000000a";
    const B: &str = "000000000000000b";

    fn identity(id: &str) -> Identity {
        let (name, version, protocol) = (format!("UAV {id}"), "0.1.0".to_owned(), "muscop".to_owned());
        Identity { id: id.to_owned(), name, version, api_version: 1, protocol }
    }

    pub(crate) fn status(id: &str, state: StateId) -> AircraftStatus {
        AircraftStatus {
            id: id.to_owned(),
            name: format!("UAV {id}"),
            time_ms: 7,
            protocol: "muscop".to_owned(),
            state,
            phase: match state {
                StateId::Start => Phase::Start,
                StateId::SetupFinished => Phase::Ready,
                _ => Phase::Moving,
            },
            detail: String::new(),
            engaged: true,
            failsafe: false,
            flight_controller: FlightController {
                link: LinkState::Up,
                link_fault: None,
                heartbeat_age_ms: Some(1),
                firmware: None,
                mode: None,
                armed: false,
                refused: Vec::new(),
                autopilot: None,
                parameters: Vec::new(),
            },
            navigation: Some(Navigation {
                position: GeoPoint { latitude_deg: 39.5, longitude_deg: -0.3, altitude_m: 62.0 },
                height_m: 12.0,
                ground_speed_m_s: 0.0,
                climb_m_s: 0.0,
                heading_deg: 0.0,
                target: None,
            }),
            measurements: Measurements::default(),
            mission: None,
            flight_setup: None,
            fence: None,
            swarm: Some(wingbeat_api::Swarm {
                leader: id == A,
                leader_id: Some(A.to_owned()),
                size: 2,
                formation: "linear".to_owned(),
                slot: None,
                flight: 0,
                absent: Vec::new(),
                plan: None,
            }),
            avoidance: None,
            separation: None,
            radio: Radio::default(),
            http: wingbeat_api::HttpApi::default(),
            lease: None,
            gateway: None,
            cures: vec![],
            can_resume: false,
            log: Default::default(),
            checks: vec![Check {
                name: "gps".to_owned(),
                passed: true,
                is_required: true,
                detail: String::new(),
            }],
            commands: Vec::new(),
        }
    }

    fn two(now: Instant) -> Fleet {
        Fleet::new(["http://a".to_owned(), "http://b".to_owned()], now)
    }

    #[test]
    fn a_silent_aircraft_is_lost_and_stays_in_the_picture() {
        let start = Instant::now();
        let mut fleet = two(start);
        fleet.identified(0, identity(A));
        assert!(fleet.status(0, status(A, StateId::Start), start).link_up);
        assert!(!fleet.status(0, status(A, StateId::Start), start).link_up);
        assert_eq!(fleet.age(start + LOST_AFTER), [] as [usize; 0]);
        let later = start + LOST_AFTER + Duration::from_millis(1);
        assert_eq!(fleet.age(later), [0]);
        assert_eq!(fleet.age(later), [] as [usize; 0], "reported once");
        let all = fleet.all(later);
        assert_eq!((all[0].link, all[0].age_ms), (LinkState::Lost, Some(1501)));
        assert_eq!(
            all[0].status,
            Some(status(A, StateId::Start)),
            "stale data is shown as stale, never dropped"
        );
        assert_eq!((all[1].link, all[1].age_ms, &all[1].status), (LinkState::NeverSeen, None, &None));
        assert!(fleet.status(0, status(A, StateId::Start), later).link_up);
    }

    #[test]
    fn only_what_changed_is_taken() {
        let now = Instant::now();
        let mut fleet = two(now);
        assert_eq!(fleet.take_changed(now).len(), 2);
        assert_eq!(fleet.take_changed(now), []);
        fleet.identified(1, identity(B));
        fleet.status(1, status(B, StateId::Start), now);
        let changed = fleet.take_changed(now);
        assert_eq!(changed.iter().map(|a| a.address.as_str()).collect::<Vec<_>>(), ["http://b"]);
        fleet.troubled(0, "connection refused".to_owned());
        assert_eq!(fleet.take_changed(now)[0].problem.as_deref(), Some("connection refused"));
        fleet.troubled(0, "connection refused".to_owned());
        assert_eq!(fleet.take_changed(now), [], "the same trouble again is no change");
    }

    #[test]
    fn an_id_at_two_addresses_is_flagged_and_commanded_at_neither() {
        let now = Instant::now();
        let mut fleet = two(now);
        assert_eq!(fleet.identified(0, identity(A)).newcomer.as_deref(), Some(A));
        assert_eq!(fleet.find(A), Some(Ok("http://a")));
        assert_eq!(fleet.identified(1, identity(A)).duplicate.as_deref(), Some(A));
        let problem = format!("id {A} answers at http://a and http://b: none of them is commanded");
        assert_eq!(fleet.find(A), Some(Err(problem.clone())));
        assert!(fleet.all(now).iter().all(|aircraft| aircraft.problem.as_ref() == Some(&problem)));
        // The mistake is corrected: the second address answers with its own id.
        assert_eq!(fleet.identified(1, identity(B)).newcomer.as_deref(), Some(B));
        assert_eq!((fleet.find(A), fleet.find(B)), (Some(Ok("http://a")), Some(Ok("http://b"))));
        assert_eq!(fleet.find("0"), None);
    }

    #[test]
    fn a_status_of_another_aircraft_is_not_taken() {
        let now = Instant::now();
        let mut fleet = two(now);
        fleet.identified(0, identity(A));
        fleet.status(0, status(B, StateId::Start), now);
        let all = fleet.all(now);
        assert_eq!(all[0].status, None);
        assert!(all[0].problem.as_ref().is_some_and(|problem| problem.contains("expected one of")));
        assert!(fleet.find(A).is_some_and(|found| found.is_err()));
    }

    #[test]
    fn another_version_of_the_api_is_named() {
        let mut fleet = two(Instant::now());
        fleet.identified(0, Identity { api_version: 2, ..identity(A) });
        assert_eq!(fleet.find(A), Some(Err("http://a uses version 2 of the API, expected 1".to_owned())));
    }

    #[test]
    fn actions_name_the_first_aircraft_and_its_reason() {
        let now = Instant::now();
        let ledger = Ledger::default();
        assert_eq!(Fleet::new([], now).actions(&ledger).setup_blocked, "no aircraft is configured");
        let mut fleet = two(now);
        assert_eq!(fleet.actions(&ledger).setup_blocked, "http://a: no status received yet");
        fleet.identified(0, identity(A));
        fleet.identified(1, identity(B));
        fleet.status(0, status(A, StateId::Start), now);
        assert_eq!(fleet.actions(&ledger).setup_blocked, format!("UAV {B}: no status received yet"));
        let mut unready = status(B, StateId::Start);
        unready.checks[0].passed = false;
        "no position fix".clone_into(&mut unready.checks[0].detail);
        fleet.status(1, unready, now);
        let blocked = format!("UAV {B}: check gps has not passed: no position fix");
        assert_eq!(fleet.actions(&ledger).setup_blocked, blocked);
        fleet.status(1, status(B, StateId::Start), now);
        let actions = fleet.actions(&ledger);
        assert_eq!((actions.setup, actions.setup_blocked.as_str(), actions.start), (true, "", false));
        assert_eq!(
            actions.start_blocked,
            format!("UAV {A}: its state is Start, expected one that is set up and waits for the start")
        );
        fleet.status(0, status(A, StateId::SetupFinished), now);
        fleet.status(1, status(B, StateId::SetupFinished), now);
        let actions = fleet.actions(&ledger);
        assert_eq!((actions.setup, actions.start, actions.start_blocked.as_str()), (false, true, ""));
        fleet.age(now + Duration::from_secs(2));
        assert_eq!(fleet.actions(&ledger).start_blocked, format!("UAV {A}: its link is lost"));
    }

    #[test]
    fn an_aircraft_of_another_console_is_named_with_it() {
        let now = Instant::now();
        let mut fleet = two(now);
        fleet.identified(0, identity(A));
        fleet.identified(1, identity(B));
        let leased = |id: &str, console: &str| {
            let lease = wingbeat_api::Lease { console: console.to_owned(), console_id: None, left_ms: 5_000 };
            AircraftStatus { lease: Some(lease), ..status(id, StateId::Start) }
        };
        fleet.status(0, leased(A, "own:8700"), now);
        fleet.status(1, status(B, StateId::Start), now);
        let both = [A.to_owned(), B.to_owned()];
        assert_eq!(fleet.in_charge_of_another("own:8700", &both), "", "a free one is of no other");
        fleet.status(1, leased(B, "tablet:8700"), now);
        let found = format!("UAV {B}: console \"tablet:8700\" is in charge of it; take over first");
        assert_eq!(fleet.in_charge_of_another("own:8700", &both), found);
        assert_eq!(fleet.in_charge_of_another("own:8700", &both[..1]), "");
    }

    #[test]
    fn an_excluded_member_delays_no_start() {
        let (now, ledger) = (Instant::now(), Ledger::default());
        let mut fleet = two(now);
        assert!(fleet.in_swarm_with(B).is_err_and(|why| why.contains("no swarm flies")));
        fleet.identified(0, identity(A));
        fleet.identified(1, identity(B));
        let planned = |id: &str, state| {
            let mut status = status(id, state);
            status.swarm.iter_mut().for_each(|swarm| swarm.slot = Some(0));
            status
        };
        fleet.status(0, planned(A, StateId::SetupFinished), now);
        fleet.status(1, status(B, StateId::Start), now);
        assert_eq!(fleet.in_swarm_with(B), Err(format!("UAV {B}: no member of a swarm that flies")));
        fleet.status(1, planned(B, StateId::Aborted), now);
        assert_eq!(fleet.in_swarm_with(B), Ok(vec![A.to_owned(), B.to_owned()]));
        assert_eq!(
            fleet.in_swarm_with("000000000000000c").map(|members| members.len()),
            Ok(2),
            "not received here"
        );
        assert!(fleet.actions(&ledger).start_blocked.starts_with(&format!("UAV {B}: its state is Aborted")));
        let mut without = planned(A, StateId::SetupFinished);
        without.swarm.as_mut().expect("a swarm").absent = vec![wingbeat_api::Absent {
            id: B.to_owned(),
            silent: false,
            leaves: None,
            excluded_by: Some(A.to_owned()),
        }];
        fleet.status(0, without, now);
        assert_eq!(fleet.actions(&ledger).start_blocked, "");
        assert_eq!(fleet.due(&ledger, Command::Start), [A]);
        // It would have to be set up again for another flight.
        assert!(!fleet.actions(&ledger).setup);
    }

    #[test]
    fn a_setup_that_reached_only_some_is_pressed_again() {
        let (now, ledger) = (Instant::now(), Ledger::default());
        let mut fleet = two(now);
        fleet.identified(0, identity(A));
        fleet.identified(1, identity(B));
        fleet.status(0, status(A, StateId::Start), now);
        let mut waiting = AircraftStatus { phase: Phase::Preparing, ..status(B, StateId::Setup) };
        fleet.status(1, waiting.clone(), now);
        assert_eq!(fleet.due(&ledger, Command::Setup), [A, B]);
        waiting.flight_controller.armed = true;
        fleet.status(1, waiting.clone(), now);
        let blocked = format!("UAV {B}: its state is Setup, expected one that waits for setup");
        assert_eq!(fleet.actions(&ledger).setup_blocked, blocked);
    }

    #[test]
    fn an_aircraft_on_its_own_mission_waits_for_none_that_is_past_it() {
        let (now, ledger) = (Instant::now(), Ledger::default());
        let mut fleet = two(now);
        let alone = |id: &str, state| AircraftStatus { swarm: None, ..status(id, state) };
        fleet.identified(0, identity(A));
        fleet.identified(1, identity(B));
        // A is set up, B was not reached: setup again is for B only.
        fleet.status(0, alone(A, StateId::SetupFinished), now);
        fleet.status(1, alone(B, StateId::Start), now);
        let actions = fleet.actions(&ledger);
        assert_eq!((actions.setup, actions.start), (true, false));
        assert_eq!(fleet.due(&ledger, Command::Setup), [B]);
        let blocked =
            format!("UAV {B}: its state is Start, expected one that is set up and waits for the start");
        assert_eq!(actions.start_blocked, blocked);
        assert_eq!(fleet.blocked(&ledger, Command::Start, &[A.to_owned()]), "", "A alone can start");
        assert!(fleet.each_alone(&[A.to_owned(), B.to_owned()]) && !fleet.each_alone(&["0".to_owned()]));
        // A flies, in a state of its protocol alone.
        fleet.status(0, alone(A, StateId::StandStill), now);
        fleet.status(1, alone(B, StateId::SetupFinished), now);
        assert!(fleet.actions(&ledger).start);
        assert_eq!(fleet.due(&ledger, Command::Start), [B]);
        fleet.status(1, alone(B, StateId::Overtaking), now);
        let expected =
            format!("no aircraft is set up and waits for the start: the state of UAV {A} is StandStill");
        assert_eq!(fleet.actions(&ledger).start_blocked, expected);
    }

    #[test]
    fn missions_are_asked_for_once_and_drawn_above_sea_level() {
        let now = Instant::now();
        let mut fleet = two(now);
        for (index, id) in [A, B].into_iter().enumerate() {
            fleet.identified(index, identity(id));
            let mut status = status(id, StateId::Start);
            let (name, hash) = ("square".to_owned(), "00000000000000ff".to_owned());
            status.mission = Some(MissionSummary {
                name,
                hash,
                plan_hash: None,
                waypoints: 1,
                reached: None,
                notes: vec![],
            });
            fleet.status(index, status, now);
        }
        assert!(fleet.take_redraw());
        assert_eq!(fleet.missing_missions(), BTreeMap::from([("00000000000000ff".to_owned(), vec![0, 1])]));
        let waypoints = vec![MissionItem::at(39.0, -0.5, 20.0)];
        fleet.mission("00000000000000ff".to_owned(), MissionUpload::new("square", waypoints));
        assert!(fleet.take_redraw() && fleet.missing_missions().is_empty());
        let missions = fleet.missions();
        assert_eq!(
            (missions.len(), missions[0].holders.as_slice()),
            (1, [A.to_owned(), B.to_owned()].as_slice())
        );
        assert_eq!(missions[0].waypoints[0].altitude_m, 70.0);
        assert!(!fleet.take_redraw(), "nothing changed");
        fleet.status(0, status(A, StateId::Start), now);
        assert!(fleet.take_redraw(), "a holder less");
        assert_eq!(fleet.missions()[0].holders, [B]);
        fleet.status(1, status(B, StateId::Start), now);
        assert!(fleet.take_redraw() && fleet.missions().is_empty(), "no aircraft holds it");
    }
}
