//! Missions before they are sent: where they lie against the real aircraft, the formation, how long they take, what
//! charge they need, and which aircraft come near to each other. Nothing here is sent.
//!
//! Durations are estimates, from ArduCopter's usual speeds and without wind; the formation is planned as *Setup* plans
//! it (`crates/protocol/src/swarm/plan.rs`), from where the aircraft stand now.

use wingbeat_api::{
    AircraftStatus, FleetAircraft, FleetMissionUpload, GeoPoint, LinkState, MissionEnd, MissionItem,
    MissionUpload, Phase, PlanConflict, PlanDraft, PlanFormation, PlanPreview, PlanProblem, PlannedFlight,
    SwarmSlot,
};
use wingbeat_geo::approach::nearest_between;
use wingbeat_geo::formation::Layout;
use wingbeat_geo::position::heading_rad;
use wingbeat_geo::{AIRCRAFT_MAX, DVec2, DVec3, Formation, Frame, Position, assign};
use wingbeat_missions::{Limits, Mission, check, distance_m};

use crate::mission_file;
use crate::refused::Refused;

/// A first waypoint farther away than this is said, metres: that is seldom meant.
const FAR_M: f64 = 500.0;
/// The swarm gathers above its middle unless the first waypoint is so near, metres (`plan.rs` of the protocols).
const ASSEMBLE_WITHIN_M: f64 = 30.0;
/// Where the aircraft reports no WPNAV_SPEED: ArduCopter's default, metres per second.
const SPEED_M_S: f64 = 5.0;
/// ArduCopter's defaults (`WPNAV_ACCEL`, `WPNAV_SPEED_UP`, `WPNAV_SPEED_DN`, `LAND_SPEED`, `LAND_ALT_LOW`).
const ACCELERATION_M_S2: f64 = 1.0;
const CLIMB_M_S: f64 = 2.5;
const DESCENT_M_S: f64 = 1.5;
const LANDING_M_S: f64 = 0.5;
const LANDS_SLOWLY_BELOW_M: f64 = 10.0;
/// The charge with which the aircraft is to be on the ground, per cent: the daemon's default `reserve_percent`.
const RESERVE_PERCENT: f64 = 20.0;
/// A full battery flies so long, seconds: as the daemon's `endurance_s`.
const ENDURANCE_S: std::ops::RangeInclusive<f64> = 60.0..=36_000.0;
/// Two aircraft nearer than this are in conflict, metres: MBCAP's distance of a risk.
const CONFLICT_M: f64 = 20.0;
/// Below this height it stands, metres.
const FLIES_ABOVE_M: f64 = 1.0;
/// Flights are compared second by second, for so long.
const COMPARED_S: usize = 7_200;
/// Conflicts that are listed.
const CONFLICTS_SHOWN: usize = 5;
/// Conflicts that are drawn: more would cover the map.
const CONFLICTS_DRAWN: usize = 32;

/// What the draft would be.
///
/// # Errors
/// A request that names no missions or too many, an aircraft that is not known or twice, or no duration.
pub(crate) fn preview(draft: &PlanDraft, fleet: &[FleetAircraft]) -> Result<PlanPreview, Refused> {
    let found = draft.missions.len();
    if !(1..=AIRCRAFT_MAX).contains(&found) {
        return Err(Refused::bad_request(format!("missions: found {found}, expected 1 to {AIRCRAFT_MAX}")));
    }
    if let Some(found) = draft.endurance_s.filter(|endurance_s| !ENDURANCE_S.contains(endurance_s)) {
        return Err(Refused::bad_request(format!("endurance_s: found {found}, expected 60 to 36000 s")));
    }
    let received = |aircraft: &&FleetAircraft| aircraft.link == LinkState::Up;
    let known: Vec<_> = fleet.iter().filter_map(|aircraft| aircraft.status.as_ref()).collect();
    let here: Vec<_> =
        fleet.iter().filter(received).filter_map(|aircraft| aircraft.status.as_ref()).collect();
    let mut plan =
        Plan { draft, known: &known, here: &here, preview: PlanPreview::default(), tracks: Vec::new() };
    for (index, FleetMissionUpload { vehicle, mission }) in draft.missions.iter().enumerate() {
        let Some(status) = known.iter().find(|status| status.id == *vehicle) else {
            let message = format!("vehicle: no status of an aircraft with the id {vehicle:?} is known");
            return Err(Refused::not_found(message));
        };
        if draft.missions[..index].iter().any(|before| before.vehicle == *vehicle) {
            return Err(Refused::bad_request(format!("vehicle: found {vehicle:?} twice, expected it once")));
        }
        plan.add(status, mission);
    }
    plan.compare();
    plan.weigh();
    let mut preview = plan.preview;
    preview.problems.sort_by_key(|problem| !problem.stops);
    Ok(preview)
}

struct Plan<'a> {
    draft: &'a PlanDraft,
    known: &'a [&'a AircraftStatus],
    /// Those that are in contact now.
    here: &'a [&'a AircraftStatus],
    preview: PlanPreview,
    /// Of aircraft that fly for themselves.
    tracks: Vec<Track<'a>>,
}

impl<'a> Plan<'a> {
    /// Each is said once.
    fn problem(&mut self, stops: bool, text: String) {
        let problem = PlanProblem { stops, text };
        if !self.preview.problems.contains(&problem) {
            self.preview.problems.push(problem);
        }
    }

    fn add(&mut self, status: &'a AircraftStatus, upload: &MissionUpload) {
        for note in upload.notes(&status.protocol) {
            if !self.preview.notes.contains(&note) {
                self.preview.notes.push(note);
            }
        }
        let name = &status.name;
        let refusals = upload.refusals(&status.protocol);
        if !refusals.is_empty() {
            self.problem(true, format!("{name} does not take it: {}", refusals.join("; ")));
        }
        let here = position(status);
        if !self.here.iter().any(|one| one.id == status.id) {
            let text = format!("{name} is out of contact: this is compared with where it was last");
            self.problem(false, text);
        }
        if status.phase != Phase::Start {
            self.problem(true, format!("{name} takes a mission before Set up only"));
        }
        if here.is_none() {
            self.problem(
                false,
                format!(
                    "The position of {name} is not known: how far the mission lies from it is not either"
                ),
            );
        }
        let mut flight = PlannedFlight {
            vehicle: status.id.clone(),
            distance_m: None,
            route: Vec::new(),
            length_m: None,
            duration_s: None,
            remaining_percent: remaining_percent(status),
            needed_percent: None,
        };
        let mission = match mission_file::mission(upload) {
            Ok(mission) => mission,
            Err(text) => {
                self.problem(true, text);
                return self.preview.flights.push(flight);
            }
        };
        if upload.waypoints.len() < 2 {
            let found = upload.waypoints.len();
            self.problem(
                true,
                format!("{name} does not take it: found {found} waypoint, expected 2 or more"),
            );
        }
        let limits = mission_file::limits_of(status.fence.as_ref());
        let near = here.is_none_or(|here| {
            let (first_m, farthest) = away(&mission, here);
            flight.distance_m = Some(first_m);
            if let Some((number, farthest_m)) = farthest.filter(|(_, m)| *m > limits.distance_from_home_m) {
                let (found, limit) = (distance(farthest_m), distance(limits.distance_from_home_m));
                let text = format!("Waypoint {number} lies {found} from {name}, expected at most {limit}");
                self.problem(true, text);
                return false;
            }
            if first_m > FAR_M {
                self.problem(false, format!("The first waypoint lies {} from {name}", distance(first_m)));
            }
            true
        });
        // What is too far was said already.
        if near && let Err(error) = check(&mission, &Limits { home: here, ..limits }) {
            self.problem(true, error.to_string());
        }
        match (here.filter(|_| near), status.protocol.as_str()) {
            (_, "follow_me") => {
                let text =
                    format!("{name} flies follow_me, which takes no mission: its leader is flown by a pilot");
                self.problem(true, text);
            }
            (_, "sweep") => {
                let found = upload.waypoints.len();
                if found != 3 {
                    let text = format!(
                        "{name} flies sweep: found {found} waypoints, expected 3, the corners of its area"
                    );
                    self.problem(true, text);
                }
                let text = format!(
                    "{name} flies lanes of its own over the area: how long they take is not estimated"
                );
                self.problem(false, text);
            }
            (Some(_), "muscop") => return self.add_swarm(status, upload, flight),
            (Some(here), _) => {
                let frame = Frame::new(home(status, here));
                let points = local(&frame, upload, status);
                flight.route = points.iter().map(|point| geo_point(&frame, *point)).collect();
                let speed_m_s = upload.speed_m_s.unwrap_or_else(|| speed_m_s(status));
                let track = Track::with_legs(status, DVec3::ZERO, &points, speed_m_s, Some(upload));
                flight.length_m = Some(track.length_m());
                flight.duration_s = Some(track.duration_s());
                self.tracks.push(Track { frame, ..track });
            }
            (None, _) => {}
        }
        self.preview.flights.push(flight);
    }

    /// A formation that is led by this aircraft.
    fn add_swarm(&mut self, leader: &'a AircraftStatus, upload: &MissionUpload, of_leader: PlannedFlight) {
        let members: Vec<(&AircraftStatus, Position)> = self
            .here
            .iter()
            .filter_map(|status| {
                let swarm = status.swarm.as_ref()?;
                let follows = swarm.leader_id.as_ref().is_none_or(|id| *id == leader.id);
                let is_member = status.id == leader.id || (follows && status.protocol == leader.protocol);
                is_member.then_some((*status, position(status)?))
            })
            .take(AIRCRAFT_MAX)
            .collect();
        let Some((_, here)) = members.iter().find(|(status, _)| status.id == leader.id) else {
            return self.preview.flights.push(of_leader);
        };
        let frame = Frame::new(home(leader, *here));
        let ground: Vec<DVec2> = members.iter().map(|(_, at)| frame.to_local(*at).truncate()).collect();
        let middle = ground.iter().sum::<DVec2>() / ground.len() as f64;
        let mut points = local(&frame, upload, leader);
        let Some(first) = points.first().copied() else { return };
        if first.truncate().distance(middle) > ASSEMBLE_WITHIN_M {
            points.insert(0, middle.extend(first.z));
        } else {
            points[0] = middle.extend(first.z);
        }
        let heading = points.get(1).map_or(0.0, |second| heading_rad(middle, second.truncate()));
        let swarm = leader.swarm.as_ref();
        let name = swarm.map_or("", |swarm| swarm.formation.as_str());
        let spacing_m = swarm.and_then(|swarm| swarm.plan.as_ref()).map(|plan| plan.distance_m);
        let formation = match (name.parse::<Layout>(), spacing_m) {
            (Ok(layout), Some(spacing_m)) => {
                if matches!(layout, Layout::Random { .. } | Layout::SplitUp { .. }) {
                    self.problem(
                        false,
                        format!("The places of the formation {name} are those of its default"),
                    );
                }
                Formation::new(layout, members.len(), spacing_m).map_err(|error| error.to_string())
            }
            (Err(error), _) => Err(error.to_string()),
            (Ok(_), None) => Err("its leader reports no distance between places".to_owned()),
        };
        let mut of_swarm = PlanFormation {
            name: name.to_owned(),
            distance_m: spacing_m,
            heading_deg: heading.to_degrees(),
            slots: Vec::new(),
        };
        let places =
            formation.and_then(|formation| formation.offsets_m(heading).map_err(|error| error.to_string()));
        match places {
            Err(error) => {
                self.problem(
                    false,
                    format!("The places of the formation are known after Set up only: {error}"),
                );
                self.preview.flights.push(of_leader);
            }
            Ok(places) => {
                let air: Vec<DVec2> = places.iter().map(|place| middle + place.truncate()).collect();
                let slot_of = assign(&ground, &air);
                let speed_m_s =
                    members.iter().map(|(status, _)| speed_m_s(status)).fold(f64::INFINITY, f64::min);
                let shifted =
                    |slot: usize| points.iter().map(|point| *point + places[slot]).collect::<Vec<_>>();
                let at_first = |slot: usize| geo_point(&frame, first + places[slot]);
                let mut slots: Vec<_> = (0..places.len())
                    .map(|slot| SwarmSlot { place: at_first(slot), vehicle: String::new() })
                    .collect();
                // They take off one after another and land together.
                let tracks: Vec<_> = members
                    .iter()
                    .zip(&ground)
                    .zip(&slot_of)
                    .map(|(((status, _), at), &slot)| {
                        slots[slot].vehicle.clone_from(&status.id);
                        (Track::new(status, at.extend(0.0), &shifted(slot), speed_m_s), slot)
                    })
                    .collect();
                let setup_s: f64 = tracks.iter().map(|(track, _)| track.first_s()).sum();
                let mission_s =
                    tracks.iter().map(|(track, _)| track.duration_s() - track.first_s()).fold(0.0, f64::max);
                for ((status, at), (track, slot)) in members.iter().zip(&tracks) {
                    let flown = shifted(*slot);
                    let distance_m =
                        distance_m((*at).into(), frame.to_position(first + places[*slot]).into());
                    self.preview.flights.push(PlannedFlight {
                        vehicle: status.id.clone(),
                        distance_m: Some(distance_m),
                        route: flown.iter().map(|point| geo_point(&frame, *point)).collect(),
                        length_m: Some(track.length_m()),
                        duration_s: Some(setup_s + mission_s),
                        remaining_percent: remaining_percent(status),
                        needed_percent: None,
                    });
                }
                of_swarm.slots = slots;
            }
        }
        self.preview.formation.get_or_insert(of_swarm);
    }

    /// Which aircraft come near to each other, if all start at the same time.
    fn compare(&mut self) {
        let Some(frame) = self.tracks.first().map(|track| track.frame) else { return };
        let last_s =
            self.tracks.iter().map(|track| track.duration_s() as usize).max().unwrap_or(0).min(COMPARED_S);
        let paths: Vec<Vec<DVec3>> = self
            .tracks
            .iter()
            .map(|track| {
                (0..=last_s).map(|second| track.frame.to_frame(&frame, track.at(second as f64))).collect()
            })
            .collect();
        // The highest that each may be then.
        let tops: Vec<Vec<f64>> = self
            .tracks
            .iter()
            .zip(&paths)
            .map(|(track, path)| path.iter().enumerate().map(|(at, place)| track.top_m(at, *place)).collect())
            .collect();
        let mut conflicts = Vec::new();
        for (index, one) in paths.iter().enumerate() {
            for (other, two) in paths.iter().enumerate().skip(index + 1) {
                // On the ground they stand where they stand.
                let offset = |at: usize| {
                    let apart = one[at] - two[at];
                    // Between the heights that the one and the other may have.
                    let (above_m, below_m) = (one[at].z - tops[other][at], tops[index][at] - two[at].z);
                    DVec3 { z: if above_m > 0.0 { above_m } else { below_m.min(0.0) }, ..apart }
                };
                let apart = (1..one.len()).map(|at| {
                    let flies = one[at].z > FLIES_ABOVE_M || two[at].z > FLIES_ABOVE_M;
                    if flies { nearest_between(offset(at - 1), offset(at)).length() } else { f64::INFINITY }
                });
                let nearest = (0..).zip(apart).min_by(|(_, a), (_, b)| a.total_cmp(b));
                if let Some((second, apart_m)) = nearest.filter(|(_, apart_m)| *apart_m < CONFLICT_M) {
                    conflicts.push((index, other, second, apart_m));
                }
            }
        }
        conflicts.sort_by(|a, b| a.3.total_cmp(&b.3));
        let drawn = conflicts.iter().take(CONFLICTS_DRAWN).map(|&(one, other, second, apart_m)| {
            // Of the second in which they are nearest the end at which they are.
            let at = [second, second + 1]
                .into_iter()
                .min_by(|a, b| {
                    let apart = |at: &usize| (paths[one][*at] - paths[other][*at]).length();
                    apart(a).total_cmp(&apart(b))
                })
                .unwrap_or(second);
            PlanConflict {
                vehicles: [one, other].map(|index| self.tracks[index].status.id.clone()).to_vec(),
                places: [one, other].map(|index| geo_point(&frame, paths[index][at])).to_vec(),
                apart_m,
                after_s: u32::try_from(second).unwrap_or(u32::MAX),
            }
        });
        self.preview.conflicts = drawn.collect();
        let lines: Vec<_> = conflicts.iter().take(CONFLICTS_SHOWN).map(|&(one, other, second, apart_m)| {
            let [one, other] = [one, other].map(|index| &self.tracks[index].status.name);
            format!("{one} and {other} come within {apart_m:.0} m of each other, {second} s after a start of both together")
        }).collect();
        for line in lines {
            self.problem(false, line);
        }
        if let Some(more @ 1..) = conflicts.len().checked_sub(CONFLICTS_SHOWN) {
            self.problem(false, format!("{more} more pairs come within {CONFLICT_M} m of each other"));
        }
    }

    /// What charge the flights take.
    fn weigh(&mut self) {
        let Some(endurance_s) = self.draft.endurance_s else { return };
        let mut low = Vec::new();
        for flight in &mut self.preview.flights {
            flight.needed_percent = flight.duration_s.map(|duration_s| 100.0 * duration_s / endurance_s);
            if let (Some(needed), Some(has)) = (flight.needed_percent, flight.remaining_percent) {
                let left = f64::from(has) - needed;
                if left < RESERVE_PERCENT {
                    low.push((left, flight.vehicle.clone()));
                }
            }
        }
        low.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((left, vehicle)) = low.first() else { return };
        let name = self.known.iter().find(|status| status.id == *vehicle).map_or("", |status| &status.name);
        let others = match low.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more below that"),
        };
        let text = if *left <= 0.0 {
            format!("The battery of {name} does not last{others}")
        } else {
            format!(
                "{name} would land with {left:.0} % of its battery, expected at least {RESERVE_PERCENT} %{others}"
            )
        };
        let stops = *left <= 0.0;
        self.problem(stops, text);
    }
}

/// Where one aircraft is at each time, in a frame of its own.
struct Track<'a> {
    status: &'a AircraftStatus,
    frame: Frame,
    /// When it is where: begins and ends on the ground.
    stops: Vec<(f64, DVec3)>,
    speed_m_s: f64,
    /// From when on it may be as high as this, seconds and metres: it returns at a height that it does not state.
    returns: Option<(f64, f64)>,
}

impl<'a> Track<'a> {
    fn new(status: &'a AircraftStatus, from: DVec3, points: &[DVec3], speed_m_s: f64) -> Self {
        Self::with_legs(status, from, points, speed_m_s, None)
    }

    /// Returns the track of an aircraft that flies the take-off height, the speeds, the holds and the end of its mission.
    fn with_legs(
        status: &'a AircraftStatus,
        from: DVec3,
        points: &[DVec3],
        speed_m_s: f64,
        upload: Option<&MissionUpload>,
    ) -> Self {
        let (frame, stops) = (Frame::new(Position::default()), vec![(0.0, from)]);
        let mut track = Self { status, frame, stops, speed_m_s, returns: None };
        let legs = upload.map_or(&[][..], |upload| upload.waypoints.as_slice());
        if let Some(first) = points.first() {
            let take_off_m = upload.and_then(|upload| upload.take_off_height_m);
            track.go(from.truncate().extend(take_off_m.unwrap_or(first.z)));
        }
        for (index, point) in points.iter().enumerate() {
            let leg = legs.get(index);
            track.speed_m_s = leg.and_then(|leg| leg.speed_m_s).unwrap_or(track.speed_m_s);
            track.go(*point);
            if let (Some(hold_s), Some((at_s, _))) =
                (leg.map(|leg| leg.hold_s).filter(|hold_s| *hold_s > 0.0), track.stops.last().copied())
            {
                track.stops.push((at_s + hold_s, *point));
            }
            let is_return = upload.is_some_and(|upload| upload.end == Some(MissionEnd::Return));
            if is_return && index + 1 == legs.len() && return_height_m(status).is_none() {
                let most_m = mission_file::limits_of(status.fence.as_ref()).fence_altitude_m;
                track.returns = track.stops.last().map(|(at_s, _)| (*at_s, most_m));
            }
        }
        if let Some(last) = points.last() {
            track.land(*last);
        }
        track
    }

    fn go(&mut self, to: DVec3) {
        let Some((at_s, from)) = self.stops.last().copied() else { return };
        let along_s = leg_s(from.truncate().distance(to.truncate()), self.speed_m_s);
        let climb_m = to.z - from.z;
        let vertical_s = if climb_m > 0.0 { climb_m / CLIMB_M_S } else { -climb_m / DESCENT_M_S };
        self.stops.push((at_s + along_s.max(vertical_s), to));
    }

    fn land(&mut self, from: DVec3) {
        let Some((at_s, _)) = self.stops.last().copied() else { return };
        let slowly_m = from.z.min(LANDS_SLOWLY_BELOW_M);
        let down_s = (from.z - slowly_m) / DESCENT_M_S + slowly_m / LANDING_M_S;
        self.stops.push((at_s + down_s, from.truncate().extend(0.0)));
    }

    /// Until it is at its first waypoint.
    fn first_s(&self) -> f64 {
        self.stops.get(2).map_or(0.0, |(at_s, _)| *at_s)
    }

    fn duration_s(&self) -> f64 {
        self.stops.last().map_or(0.0, |(at_s, _)| *at_s)
    }

    fn length_m(&self) -> f64 {
        self.stops.windows(2).map(|pair| pair[0].1.truncate().distance(pair[1].1.truncate())).sum()
    }

    /// Returns the highest that it may be in a second in which it is reckoned at a place.
    fn top_m(&self, second: usize, place: DVec3) -> f64 {
        let returns = self.returns.filter(|(from_s, _)| second as f64 >= *from_s && place.z > FLIES_ABOVE_M);
        returns.map_or(place.z, |(_, most_m)| place.z.max(most_m))
    }

    fn at(&self, time_s: f64) -> DVec3 {
        let next = self.stops.partition_point(|(at_s, _)| *at_s <= time_s);
        match (next.checked_sub(1).and_then(|before| self.stops.get(before)), self.stops.get(next)) {
            (Some((from_s, from)), Some((to_s, to))) => from.lerp(*to, (time_s - from_s) / (to_s - from_s)),
            (Some((_, last)), None) => *last,
            (None, first) => first.map_or(DVec3::ZERO, |(_, first)| *first),
        }
    }
}

/// From standstill to standstill.
fn leg_s(length_m: f64, speed_m_s: f64) -> f64 {
    if length_m * ACCELERATION_M_S2 < speed_m_s * speed_m_s {
        2.0 * (length_m / ACCELERATION_M_S2).sqrt()
    } else {
        length_m / speed_m_s + speed_m_s / ACCELERATION_M_S2
    }
}

/// To the first waypoint, and to the farthest with its number, over the ground.
fn away(mission: &Mission, here: Position) -> (f64, Option<(usize, f64)>) {
    let mut first_m = None;
    let mut farthest: Option<(usize, f64)> = None;
    for (number, (place, ..)) in (1..).zip(mission.waypoints()) {
        let away_m = distance_m(here.into(), place);
        first_m.get_or_insert(away_m);
        if farthest.is_none_or(|(_, most_m)| away_m > most_m) {
            farthest = Some((number, away_m));
        }
    }
    (first_m.unwrap_or(0.0), farthest)
}

/// Returns the waypoints east, north and up of home, with those to which its end leads.
fn local(frame: &Frame, upload: &MissionUpload, status: &AircraftStatus) -> Vec<DVec3> {
    let point = |item: &MissionItem| {
        let on_ground =
            Position::from_degrees(item.latitude_deg, item.longitude_deg, 0.0).unwrap_or_default();
        frame.to_local(on_ground).truncate().extend(item.height_m)
    };
    let mut points: Vec<DVec3> = upload.waypoints.iter().map(point).collect();
    let last_m = points.last().map_or(0.0, |last| last.z);
    match upload.end {
        Some(MissionEnd::Return) => {
            let return_m = return_height_m(status).map_or(last_m, |return_m| return_m.max(last_m));
            if let Some(last) = points.last().copied().filter(|last| return_m > last.z) {
                points.push(last.truncate().extend(return_m));
            }
            points.push(DVec3::Z * return_m);
        }
        Some(MissionEnd::LandAt { latitude_deg, longitude_deg }) => {
            points.push(point(&MissionItem::at(latitude_deg, longitude_deg, last_m)));
        }
        Some(MissionEnd::Land) | None => {}
    }
    points
}

fn geo_point(frame: &Frame, local: DVec3) -> GeoPoint {
    let at = frame.to_position(local);
    GeoPoint {
        latitude_deg: at.latitude_deg(),
        longitude_deg: at.longitude_deg(),
        altitude_m: at.altitude_m(),
    }
}

fn position(status: &AircraftStatus) -> Option<Position> {
    let at = status.navigation.as_ref()?.position;
    Position::from_degrees(at.latitude_deg, at.longitude_deg, at.altitude_m).ok()
}

/// The ground below it, as far as its home is level.
fn home(status: &AircraftStatus, here: Position) -> Position {
    let height_m = status.navigation.as_ref().map_or(0.0, |navigation| navigation.height_m);
    Position { altitude_mm: here.altitude_mm.saturating_sub((height_m * 1e3) as i32), ..here }
}

fn remaining_percent(status: &AircraftStatus) -> Option<u8> {
    status.measurements.battery.as_ref()?.remaining_percent
}

/// Returns the height of the aircraft's returns, metres, as far as the fence allows it; `None` where the aircraft does not state it.
fn return_height_m(status: &AircraftStatus) -> Option<f64> {
    let stated = |name: &str| {
        let parameters = &status.flight_controller.parameters;
        parameters.iter().find(|parameter| parameter.name == name)?.value
    };
    let height_m = stated("RTL_ALT").map(|cm| cm / 100.0).or_else(|| stated("RTL_ALT_M"))?;
    Some(height_m.min(mission_file::limits_of(status.fence.as_ref()).fence_altitude_m))
}

/// The speed that the flight controller is configured for.
fn speed_m_s(status: &AircraftStatus) -> f64 {
    let value = |name: &str| {
        let parameter =
            status.flight_controller.parameters.iter().find(|parameter| parameter.name == name)?;
        parameter.value.filter(|value| *value > 0.0)
    };
    // An aircraft reports both in cm/s, whatever the unit that its flight controller has.
    value("WPNAV_SPEED").or_else(|| value("WP_SPD")).map_or(SPEED_M_S, |cm_s| cm_s / 100.0)
}

/// A distance for the operator.
fn distance(metres: f64) -> String {
    if metres < 1_000.0 { format!("{metres:.0} m") } else { format!("{:.1} km", metres / 1_000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_takes_the_time_to_speed_up_and_to_stop() {
        assert_eq!(leg_s(0.0, 5.0), 0.0);
        // Never at full speed: half the way with 1 m/s², half back.
        assert!((leg_s(16.0, 5.0) - 8.0).abs() < 1e-9);
        assert!((leg_s(100.0, 5.0) - 25.0).abs() < 1e-9);
        // Both formulas meet where full speed is just reached.
        assert!((leg_s(25.0, 5.0) - leg_s(25.0 - 1e-9, 5.0)).abs() < 1e-6);
    }

    #[test]
    fn distances_are_short() {
        assert_eq!([distance(12.4), distance(999.0), distance(113_035.0)], ["12 m", "999 m", "113.0 km"]);
    }
}
