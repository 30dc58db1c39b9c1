//! A plan of the page as a file that the bench flies: `wingbeat bench run FILE`. The missions are part of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wingbeat_api::{
    FormationPicture, FormationPictures, FormationPlace, MissionExport, MissionExportFile, MissionFile,
    MissionFormat, PlanFile, PlanProtocol, SavedPlan,
};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{AIRCRAFT_MAX, Formation};

use crate::mission_file;

/// Speeds that the daemon's configuration takes, metres per second.
const SPEED_M_S: std::ops::RangeInclusive<f64> = 0.1..=30.0;
/// A plan that is not over by then has failed in the bench, seconds.
const TIME_LIMIT_S: u32 = 7_200;

/// Keys of the aircraft's configuration in a plan, and what they may be.
const FOLLOW_LANDING: &str = "follow_me.landing";
const FOLLOW_LANDING_DISTANCE: &str = "follow_me.landing_distance_m";
const FOLLOW_LANDINGS: [&str; 2] = ["in_place", "formation"];
/// Heights at which followers may gather, metres: up to the fence of the published flights.
const HEIGHT_M: std::ops::RangeInclusive<f64> = 2.0..=120.0;
/// Where none is stated: as the published flights, metres.
const HEIGHT_DEFAULT_M: f64 = 19.0;
/// The leader's pilot where none is stated: a flight of a minute that is drawn from the seed.
const PILOT: &str = "drawn:60";
/// How long a drawn pilot flies, seconds.
const DRAWN_S: std::ops::RangeInclusive<u32> = 30..=3_600;
/// How often the leader broadcasts where it is: the daemon's default, milliseconds.
const REFRESH_MS: u32 = 1_000;
const TAKE_OFF: &str = "muscop.take_off";
const LANDING: &str = "muscop.landing";
const MANNERS: [&str; 2] = ["sequential", "simultaneous"];

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// Reads a file that [`write`] wrote.
///
/// # Errors
/// Names the file, and what of it is not such a plan.
pub(crate) fn read(file: &SavedPlan) -> Result<PlanFile, String> {
    let here = |why: &dyn std::fmt::Display| format!("{}: {}", file.name, why.to_string().trim_end());
    let expected = "expected a plan that this console saved";
    let Written { swarm, mission, own, follow, mut vary, .. } =
        toml::from_str(&file.text).map_err(|why| here(&format_args!("{why}\n{expected}")))?;
    let missions = |name: &str, text: &str| {
        let read = MissionFile { name: name.to_owned(), text: text.to_owned(), protocol: None };
        let content = mission_file::read(&read).map_err(|why| here(&why))?;
        Ok::<_, String>(content.missions.into_iter().map(|read| read.mission).collect::<Vec<_>>())
    };
    let mut manner = |key: &str| match vary.remove(key) {
        Some([toml::Value::String(value)]) => Ok(Some(value)),
        Some([other]) => Err(here(&format_args!("vary.{key}: found {other}, {expected}"))),
        None => Ok(None),
    };
    let is_followed = follow.is_some();
    let take_off = manner(TAKE_OFF)?;
    let landing = manner(if is_followed { FOLLOW_LANDING } else { LANDING })?;
    let spaced = vary.remove(FOLLOW_LANDING_DISTANCE).map(|[value]| value.as_float());
    if spaced == Some(None) || (spaced.is_some() && !is_followed) {
        return Err(here(&format_args!(
            "found vary.{FOLLOW_LANDING_DISTANCE} that is no number of a follow, {expected}"
        )));
    }
    if let Some(other) = vary.keys().next() {
        return Err(here(&format_args!("found vary.{other}, {expected}")));
    }
    let plan = match (swarm, mission, own, follow) {
        (Some(swarm), Some(mission), None, None) => PlanFile {
            protocol: PlanProtocol::Muscop,
            aircraft: u8::try_from(swarm.aircraft).unwrap_or(u8::MAX),
            formation: swarm.formation,
            distance_m: swarm.distance_m,
            landing_distance_m: swarm.landing_distance_m,
            take_off,
            landing,
            speed_m_s: swarm.speed_m_s,
            height_m: None,
            pilot: None,
            missions: missions(&mission.file, &mission.text)?,
            home: None,
        },
        (None, None, None, Some(follow)) => {
            let Follow { pilot, height_m, speed_m_s, series: [series], .. } = follow;
            let Series { formation: [formation], aircraft: [aircraft], distance_m: [distance_m], .. } =
                series;
            PlanFile {
                protocol: PlanProtocol::FollowMe,
                aircraft: u8::try_from(aircraft).unwrap_or(u8::MAX),
                formation,
                distance_m,
                landing_distance_m: spaced.flatten(),
                take_off,
                landing,
                speed_m_s,
                height_m: Some(height_m),
                pilot: Some(pilot),
                missions: vec![],
                home: None,
            }
        }
        (None, None, Some(own), None) => {
            let [variant] = own.variants;
            let protocols = [PlanProtocol::Mbcap, PlanProtocol::MbcapE, PlanProtocol::Mission];
            let protocol = protocols.into_iter().find(|protocol| protocol.variant() == variant);
            let missions = missions(&own.file.path, &own.file.text)?;
            PlanFile {
                protocol: protocol
                    .ok_or_else(|| here(&format_args!("found own.variants {variant:?}, {expected}")))?,
                aircraft: u8::try_from(missions.len()).unwrap_or(u8::MAX),
                formation: Layout::Linear.name().to_owned(),
                distance_m: 50.0,
                landing_distance_m: None,
                take_off: None,
                landing: None,
                speed_m_s: own.file.speed_m_s,
                height_m: None,
                pilot: None,
                missions,
                home: None,
            }
        }
        _ => {
            return Err(here(&format_args!(
                "found no swarm with its mission, no missions of their own and no follow, {expected}"
            )));
        }
    };
    // What would not be written is not read.
    write(&plan).map_err(|why| here(&why))?;
    Ok(plan)
}

/// Every formation with its places for so many aircraft, as far apart as stated, seen with the heading up.
///
/// # Errors
/// A number of aircraft that no formation has, or a distance that is none.
pub(crate) fn formations(aircraft: usize, distance_m: f64) -> Result<FormationPictures, String> {
    let mut formations = vec![];
    // The slots of a custom one are in a file of the aircraft.
    for layout in Layout::ALL.into_iter().filter(|layout| *layout != Layout::Custom) {
        let formation =
            Formation::new(layout, aircraft, distance_m).map_err(|error| format!("{layout}: {error}"))?;
        let offsets = formation.offsets_m(0.0).map_err(|error| error.to_string())?;
        let places = offsets.iter().map(|at| FormationPlace { right_m: at.x, ahead_m: at.y }).collect();
        formations.push(FormationPicture {
            name: layout.to_string(),
            appearance: layout.appearance().to_owned(),
            places,
            leads: formation.center_slot(),
        });
    }
    Ok(FormationPictures { formations })
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    title: String,
    table: String,
    repeat: u32,
    time_limit_s: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    swarm: Option<Swarm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mission: Option<Mission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<Own>,
    #[serde(skip_serializing_if = "Option::is_none")]
    follow: Option<Follow>,
    channel: BTreeMap<String, String>,
    /// Keys of the aircraft's configuration, each with its one value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    vary: BTreeMap<String, [toml::Value; 1]>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Follow {
    pilot: String,
    height_m: f64,
    speed_m_s: f64,
    heading_noise_deg: f64,
    series: [Series; 1],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    name: String,
    formation: [String; 1],
    aircraft: [usize; 1],
    distance_m: [f64; 1],
    refresh_ms: [u32; 1],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Swarm {
    aircraft: usize,
    formation: String,
    distance_m: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    landing_distance_m: Option<f64>,
    speed_m_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mission {
    file: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    variants: [String; 1],
    height_m: f64,
    file: OwnFile,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    path: String,
    text: String,
    speed_m_s: f64,
}

/// The file, and what of the missions is not in it.
///
/// # Errors
/// What of the plan cannot be flown.
pub(crate) fn write(plan: &PlanFile) -> Result<MissionExportFile, String> {
    let (found, least, most) = (plan.speed_m_s, SPEED_M_S.start(), SPEED_M_S.end());
    if !SPEED_M_S.contains(&found) {
        return Err(format!("speed_m_s: found {found}, expected {least} to {most} m/s"));
    }
    let count = plan.missions.len();
    if plan.protocol == PlanProtocol::FollowMe {
        return write_follow(plan);
    }
    let format = if plan.protocol == PlanProtocol::Muscop { MissionFormat::Plan } else { MissionFormat::Kml };
    let exported =
        mission_file::export(&MissionExport { format, missions: plan.missions.clone(), home: plan.home })?;
    let first = plan.missions.first().ok_or("missions: found none, expected one or more")?;
    let (mut swarm, mut mission, mut own, mut vary) = (None, None, None, BTreeMap::new());
    let title = if plan.protocol == PlanProtocol::Muscop {
        if count != 1 {
            return Err(format!("missions: found {count}, expected 1: a swarm flies one"));
        }
        let (layout, aircraft) = formation_of(plan)?;
        let MissionExportFile { name: file, text, .. } = exported.clone();
        mission = Some(Mission { file, text });
        swarm = Some(Swarm {
            aircraft,
            formation: plan.formation.clone(),
            distance_m: plan.distance_m,
            landing_distance_m: plan.landing_distance_m,
            speed_m_s: plan.speed_m_s,
        });
        for (key, stated) in [(TAKE_OFF, &plan.take_off), (LANDING, &plan.landing)] {
            let Some(found) = stated else { continue };
            if !MANNERS.contains(&found.as_str()) {
                return Err(format!("{key}: found {found:?}, expected {}", MANNERS.join(" or ")));
            }
            vary.insert(key.to_owned(), [found.clone().into()]);
        }
        format!("{aircraft} aircraft in {layout}, {} m apart, {} m/s", plan.distance_m, plan.speed_m_s)
    } else {
        let MissionExportFile { name: path, text, .. } = exported.clone();
        let height_m = first.waypoints.first().map_or(20.0, |waypoint| waypoint.height_m);
        own = Some(Own {
            variants: [plan.protocol.variant().to_owned()],
            height_m,
            file: OwnFile { path, text, speed_m_s: plan.speed_m_s },
        });
        format!("{count} aircraft on missions of their own, {}", plan.protocol.variant())
    };
    let name = exported.name.rsplit_once('.').map_or(exported.name.as_str(), |(stem, _)| stem).to_owned();
    let written = Written {
        name: name.clone(),
        title,
        table: "flights".to_owned(),
        repeat: 1,
        time_limit_s: TIME_LIMIT_S,
        swarm,
        mission,
        own,
        follow: None,
        channel: BTreeMap::from([("model", "unrestricted"), ("draw", "second")].map(owned)),
        vary,
    };
    file(&written, exported.notes)
}

fn file(written: &Written, notes: Vec<String>) -> Result<MissionExportFile, String> {
    let text = toml::to_string_pretty(written).map_err(|error| format!("the plan: {error}"))?;
    let head = "# A plan of the PC Companion. Fly it in virtual time: wingbeat bench run FILE\n";
    Ok(MissionExportFile { name: format!("{}.toml", written.name), text: format!("{head}{text}"), notes })
}

/// A formation of so many that can be flown.
fn formation_of(plan: &PlanFile) -> Result<(Layout, usize), String> {
    let layout: Layout =
        plan.formation.parse().map_err(|error| format!("formation: found {:?}: {error}", plan.formation))?;
    let aircraft = usize::from(plan.aircraft);
    if layout == Layout::Custom || !(2..=AIRCRAFT_MAX).contains(&aircraft) {
        return Err(format!(
            "found {} and {aircraft} aircraft, expected a formation other than custom and 2 to {AIRCRAFT_MAX} aircraft",
            plan.formation
        ));
    }
    Formation::new(layout, aircraft, plan.distance_m).map_err(|error| format!("distance_m: {error}"))?;
    Ok((layout, aircraft))
}

/// A formation behind a piloted leader: there is no mission.
fn write_follow(plan: &PlanFile) -> Result<MissionExportFile, String> {
    let found = plan.missions.len();
    if found > 0 {
        return Err(format!("missions: found {found}, expected none: a pilot flies the leader"));
    }
    let (layout, aircraft) = formation_of(plan)?;
    let height_m = plan.height_m.unwrap_or(HEIGHT_DEFAULT_M);
    if !HEIGHT_M.contains(&height_m) {
        let (least, most) = (HEIGHT_M.start(), HEIGHT_M.end());
        return Err(format!("height_m: found {height_m}, expected {least} to {most} m"));
    }
    let pilot = plan.pilot.as_deref().unwrap_or(PILOT);
    let drawn = pilot.strip_prefix("drawn:").and_then(|seconds| seconds.parse().ok());
    if pilot != "published" && !drawn.is_some_and(|seconds: u32| DRAWN_S.contains(&seconds)) {
        return Err(format!("pilot: found {pilot:?}, expected published, or drawn:SECONDS with 30 to 3600"));
    }
    if let Some(found) = &plan.take_off {
        return Err(format!(
            "take_off: found {found:?}, expected none: the followers take off as the leader asks"
        ));
    }
    let mut vary = BTreeMap::new();
    if let Some(found) = &plan.landing {
        if !FOLLOW_LANDINGS.contains(&found.as_str()) {
            return Err(format!("landing: found {found:?}, expected {}", FOLLOW_LANDINGS.join(" or ")));
        }
        vary.insert(FOLLOW_LANDING.to_owned(), [found.clone().into()]);
    }
    if let Some(found) = plan.landing_distance_m {
        Formation::new(layout, aircraft, found).map_err(|error| format!("landing_distance_m: {error}"))?;
        vary.insert(FOLLOW_LANDING_DISTANCE.to_owned(), [found.into()]);
    }
    let title = format!(
        "{aircraft} aircraft in {layout} behind a pilot, {} m apart, {} m/s",
        plan.distance_m, plan.speed_m_s
    );
    let written = Written {
        name: "follow-me".to_owned(),
        title: title.clone(),
        table: "following".to_owned(),
        repeat: 1,
        time_limit_s: TIME_LIMIT_S,
        swarm: None,
        mission: None,
        own: None,
        follow: Some(Follow {
            pilot: pilot.to_owned(),
            height_m,
            speed_m_s: plan.speed_m_s,
            heading_noise_deg: 0.0,
            series: [Series {
                name: title,
                formation: [plan.formation.clone()],
                aircraft: [aircraft],
                distance_m: [plan.distance_m],
                refresh_ms: [REFRESH_MS],
            }],
        }),
        channel: BTreeMap::from([("model", "unrestricted"), ("draw", "second")].map(owned)),
        vary,
    };
    file(&written, vec![])
}
