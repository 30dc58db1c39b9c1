//! A plan of the page as a file that the bench flies: `wingbeat bench run FILE`. The missions are part of it.

use std::collections::BTreeMap;

use serde::Serialize;
use wingbeat_api::{
    FormationPicture, FormationPictures, FormationPlace, MissionExport, MissionExportFile, MissionFormat,
    PlanFile, PlanProtocol,
};
use wingbeat_geo::formation::Layout;
use wingbeat_geo::{AIRCRAFT_MAX, Formation};

use crate::mission_file;

/// Speeds that the daemon's configuration takes, metres per second.
const SPEED_M_S: std::ops::RangeInclusive<f64> = 0.1..=30.0;
/// A plan that is not over by then has failed in the bench, seconds.
const TIME_LIMIT_S: u32 = 7_200;

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

#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    title: String,
    table: &'a str,
    repeat: u32,
    time_limit_s: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    swarm: Option<Swarm<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mission: Option<Mission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<Own<'a>>,
    channel: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Swarm<'a> {
    aircraft: usize,
    formation: &'a str,
    distance_m: f64,
    speed_m_s: f64,
}

#[derive(Serialize)]
struct Mission {
    file: String,
    text: String,
}

#[derive(Serialize)]
struct Own<'a> {
    variants: [&'a str; 1],
    height_m: f64,
    file: OwnFile,
}

#[derive(Serialize)]
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
    let format = if plan.protocol == PlanProtocol::Muscop { MissionFormat::Plan } else { MissionFormat::Kml };
    let exported =
        mission_file::export(&MissionExport { format, missions: plan.missions.clone(), home: plan.home })?;
    let first = plan.missions.first().ok_or("missions: found none, expected one or more")?;
    let (mut swarm, mut mission, mut own) = (None, None, None);
    let title = if plan.protocol == PlanProtocol::Muscop {
        if count != 1 {
            return Err(format!("missions: found {count}, expected 1: a swarm flies one"));
        }
        let layout: Layout = plan
            .formation
            .parse()
            .map_err(|error| format!("formation: found {:?}: {error}", plan.formation))?;
        let aircraft = usize::from(plan.aircraft);
        if layout == Layout::Custom || !(2..=AIRCRAFT_MAX).contains(&aircraft) {
            return Err(format!(
                "found {} and {aircraft} aircraft, expected a formation other than custom and 2 to {AIRCRAFT_MAX} aircraft",
                plan.formation
            ));
        }
        Formation::new(layout, aircraft, plan.distance_m).map_err(|error| format!("distance_m: {error}"))?;
        let MissionExportFile { name: file, text, .. } = exported.clone();
        mission = Some(Mission { file, text });
        swarm = Some(Swarm {
            aircraft,
            formation: &plan.formation,
            distance_m: plan.distance_m,
            speed_m_s: plan.speed_m_s,
        });
        format!("{aircraft} aircraft in {layout}, {} m apart, {} m/s", plan.distance_m, plan.speed_m_s)
    } else {
        let MissionExportFile { name: path, text, .. } = exported.clone();
        let height_m = first.waypoints.first().map_or(20.0, |waypoint| waypoint.height_m);
        own = Some(Own {
            variants: [plan.protocol.variant()],
            height_m,
            file: OwnFile { path, text, speed_m_s: plan.speed_m_s },
        });
        format!("{count} aircraft on missions of their own, {}", plan.protocol.variant())
    };
    let name = exported.name.rsplit_once('.').map_or(exported.name.as_str(), |(stem, _)| stem).to_owned();
    let written = Written {
        name: &name,
        title,
        table: "flights",
        repeat: 1,
        time_limit_s: TIME_LIMIT_S,
        swarm,
        mission,
        own,
        channel: BTreeMap::from([("model", "unrestricted"), ("draw", "second")]),
    };
    let text = toml::to_string_pretty(&written).map_err(|error| format!("the plan: {error}"))?;
    let head = "# A plan of the PC Companion. Fly it in virtual time: wingbeat bench run FILE\n";
    Ok(MissionExportFile {
        name: format!("{name}.toml"),
        text: format!("{head}{text}"),
        notes: exported.notes,
    })
}
