//! A plan of the page as a file that the bench flies: `wingbeat bench run FILE`. The missions are part of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wingbeat_api::{
    FormationPicture, FormationPictures, FormationPlace, GeoPoint, MissionExport, MissionExportFile,
    MissionFile, MissionFileOptions, MissionFormat, MissionUpload, PlanFile, PlanProtocol, SavedPlan,
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

/// The first line of each.
const HEAD: &str = "# A plan of the PC Companion. Fly it in virtual time: wingbeat bench run FILE";

const EXPECTED: &str = "expected a plan that this console saved";

/// Of KML, and of a flight without a mission.
const NO_HOME: &str = "not in the file: where the aircraft start";

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// Reads a file that [`write`] wrote. What the page does not hold would not be in the file when it is saved again, so it is not
/// opened either.
///
/// # Errors
/// Names the file, and what of it is not such a plan.
pub(crate) fn read(file: &SavedPlan) -> Result<PlanFile, String> {
    let here = |why: &dyn std::fmt::Display| format!("{}: {}", file.name, why.to_string().trim_end());
    let written: Written = toml::from_str(&file.text)
        .map_err(|why| here(&format_args!("{}\n{EXPECTED}", why.to_string().trim_end())))?;
    let plan = plan_of(written).map_err(|why| here(&why))?;
    // What would not be written is not read.
    let again = write(&plan).map_err(|why| here(&why))?;
    nothing_is_lost(&file.text, &again.text).map_err(|why| here(&why))?;
    Ok(plan)
}

/// The plan, without its file.
fn plan_of(written: Written) -> Result<PlanFile, String> {
    let Written { swarm, mission, own, follow, mut vary, .. } = written;
    let mut manner = |key: &str| match vary.remove(key).map(|values| one(&format!("vary.{key}"), values)) {
        Some(Ok(toml::Value::String(value))) => Ok(Some(value)),
        Some(Ok(other)) => Err(format!("vary.{key}: found {other}, expected text")),
        Some(Err(why)) => Err(why),
        None => Ok(None),
    };
    let is_followed = follow.is_some();
    let take_off = manner(TAKE_OFF)?;
    let landing = manner(if is_followed { FOLLOW_LANDING } else { LANDING })?;
    let spaced = match vary.remove(FOLLOW_LANDING_DISTANCE) {
        Some(values) if is_followed => {
            let value = one(&format!("vary.{FOLLOW_LANDING_DISTANCE}"), values)?;
            let metres = value.as_float().or(value.as_integer().map(|whole| whole as f64));
            Some(
                metres.ok_or_else(|| {
                    format!("vary.{FOLLOW_LANDING_DISTANCE}: found {value}, expected a number")
                })?,
            )
        }
        Some(_) => {
            return Err(format!("vary.{FOLLOW_LANDING_DISTANCE}: found one without a follow, expected none"));
        }
        None => None,
    };
    if let Some((other, values)) = vary.iter().next() {
        return Err(format!("vary.{other}: found {} values, expected none", values.len()));
    }
    match (swarm, mission, own, follow) {
        (Some(swarm), Some(mission), None, None) => {
            let (missions, home) = missions(&mission.file, &mission.text)?;
            Ok(PlanFile {
                protocol: PlanProtocol::Muscop,
                aircraft: number("swarm.aircraft", swarm.aircraft)?,
                formation: swarm.formation,
                distance_m: swarm.distance_m,
                landing_distance_m: swarm.landing_distance_m,
                take_off,
                landing,
                speed_m_s: swarm.speed_m_s,
                height_m: None,
                pilot: None,
                missions,
                home,
            })
        }
        (None, None, None, Some(follow)) => {
            let Follow { pilot, height_m, speed_m_s, series, .. } = follow;
            let Series { formation, aircraft, distance_m, refresh_ms, .. } = one("follow.series", series)?;
            one("follow.series.refresh_ms", refresh_ms)?;
            Ok(PlanFile {
                protocol: PlanProtocol::FollowMe,
                aircraft: number("follow.series.aircraft", one("follow.series.aircraft", aircraft)?)?,
                formation: one("follow.series.formation", formation)?,
                distance_m: one("follow.series.distance_m", distance_m)?,
                landing_distance_m: spaced,
                take_off,
                landing,
                speed_m_s,
                height_m: Some(height_m),
                pilot: Some(pilot),
                missions: vec![],
                home: None,
            })
        }
        (None, None, Some(own), None) => {
            let variant = one("own.variants", own.variants)?;
            let protocols = [PlanProtocol::Mbcap, PlanProtocol::MbcapE, PlanProtocol::Mission];
            let protocol = protocols.into_iter().find(|protocol| protocol.variant() == variant);
            let (missions, home) = missions(&own.file.path, &own.file.text)?;
            Ok(PlanFile {
                protocol: protocol.ok_or_else(|| {
                    format!("own.variants: found {variant:?}, {EXPECTED}: mbcap, mbcap-e or off")
                })?,
                aircraft: u8::try_from(missions.len()).unwrap_or(u8::MAX),
                formation: Layout::Linear.name().to_owned(),
                distance_m: 50.0,
                landing_distance_m: None,
                take_off,
                landing,
                speed_m_s: own.file.speed_m_s,
                height_m: None,
                pilot: None,
                missions,
                home,
            })
        }
        _ => Err(format!(
            "found no swarm with its mission, no missions of their own and no follow, {EXPECTED}"
        )),
    }
}

/// The missions of the file that a plan carries, and where they start.
fn missions(name: &str, text: &str) -> Result<(Vec<MissionUpload>, Option<GeoPoint>), String> {
    let file = MissionFile {
        name: name.to_owned(),
        text: text.to_owned(),
        archive: None,
        protocol: None,
        options: MissionFileOptions::default(),
    };
    let content = mission_file::read(&file)?;
    if let Some(note) = content.missions.iter().flat_map(|read| &read.notes).next() {
        return Err(format!("{name}: found something that no aircraft flies ({note}), {EXPECTED}"));
    }
    let home = mission_file::home(&file)?;
    Ok((content.missions.into_iter().map(|read| read.mission).collect(), home))
}

/// The one value of a list: the bench flies each, and the page holds one.
fn one<T>(key: &str, mut values: Vec<T>) -> Result<T, String> {
    let found = values.len();
    values
        .pop()
        .filter(|_| found == 1)
        .ok_or_else(|| format!("{key}: found {found} values, expected 1 ({EXPECTED})"))
}

fn number(key: &str, found: usize) -> Result<u8, String> {
    u8::try_from(found).map_err(|_| format!("{key}: found {found}, expected at most {AIRCRAFT_MAX}"))
}

/// Holds a file against the one that its plan is saved as.
///
/// # Errors
/// The first key that is not the same in both, or a comment that is not the console's.
fn nothing_is_lost(found: &str, again: &str) -> Result<(), String> {
    let table = |text: &str| text.parse::<toml::Table>().map_err(|why| why.to_string());
    same("", &toml::Value::Table(table(found)?), &toml::Value::Table(table(again)?))?;
    let source = toml_parser::Source::new(found);
    for token in source.lex() {
        let span = token.span();
        let text = found.get(span.start()..span.end()).unwrap_or_default();
        if token.kind() == toml_parser::lexer::TokenKind::Comment && text != HEAD {
            let line = found[..span.start()].matches('\n').count() + 1;
            return Err(format!(
                "line {line}: found the comment {}, expected none: it would be lost when the plan is saved again",
                shown(text)
            ));
        }
    }
    Ok(())
}

/// Whether two values of this key are the same; a whole number is one with decimals too.
fn same(key: &str, found: &toml::Value, again: &toml::Value) -> Result<(), String> {
    use toml::Value::{Array, Float, Integer, String, Table};
    let differs = |found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
        Err(format!("{key}: found {found}, expected {expected}: a plan that this console saves has no other"))
    };
    match (found, again) {
        (Table(found), Table(again)) => {
            let of = |name: &str| match key {
                "" => name.to_owned(),
                _ => format!("{key}.{name}"),
            };
            for (name, value) in found {
                let Some(again) = again.get(name) else {
                    return Err(format!(
                        "{}: found {}, expected none: it would be lost when the plan is saved again",
                        of(name),
                        shown(&value.to_string())
                    ));
                };
                same(&of(name), value, again)?;
            }
            match again.iter().find(|(name, _)| !found.contains_key(*name)) {
                Some((name, value)) => {
                    Err(format!("{}: found none, expected {}", of(name), shown(&value.to_string())))
                }
                None => Ok(()),
            }
        }
        (Array(found), Array(again)) if found.len() == again.len() => {
            found.iter().zip(again).try_for_each(|(found, again)| same(key, found, again))
        }
        (Array(found), Array(again)) => {
            differs(&format_args!("{} values", found.len()), &format_args!("{}", again.len()))
        }
        (Integer(whole), Float(decimal)) | (Float(decimal), Integer(whole)) if *whole as f64 == *decimal => {
            Ok(())
        }
        (String(found), String(again)) if found.contains('\n') || again.contains('\n') => {
            let (mut found, mut again) = (found.lines(), again.lines());
            let mut line = 0;
            loop {
                line += 1;
                match (found.next(), again.next()) {
                    (None, None) => return Ok(()),
                    (found, again) if found == again => {}
                    (found, again) => {
                        let text = |line: Option<&str>| line.map_or_else(|| "its end".to_owned(), shown);
                        return Err(format!(
                            "{key}, line {line}: found {}, expected {}: a plan that this console saves has no other",
                            text(found),
                            text(again)
                        ));
                    }
                }
            }
        }
        (found, again) if found == again => Ok(()),
        (found, again) => differs(&shown(&found.to_string()), &shown(&again.to_string())),
    }
}

/// A value for a message.
fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let mut line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if let Some((end, _)) = line.char_indices().nth(CHARACTERS_MAX) {
        line.truncate(end);
        line.push('…');
    }
    line
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
    /// Keys of the aircraft's configuration, each with its one value; in a file of another's making with any number of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    vary: BTreeMap<String, Vec<toml::Value>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Follow {
    pilot: String,
    height_m: f64,
    speed_m_s: f64,
    heading_noise_deg: f64,
    /// One, like everything in it: more is refused when it is read.
    series: Vec<Series>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    name: String,
    formation: Vec<String>,
    aircraft: Vec<usize>,
    distance_m: Vec<f64>,
    refresh_ms: Vec<u32>,
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
    /// One.
    variants: Vec<String>,
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
    let mut notes = exported.notes.clone();
    if plan.home.is_some() && format == MissionFormat::Kml {
        notes.push(NO_HOME.to_owned());
    }
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
            vary.insert(key.to_owned(), vec![found.clone().into()]);
        }
        format!("{aircraft} aircraft in {layout}, {} m apart, {} m/s", plan.distance_m, plan.speed_m_s)
    } else {
        let MissionExportFile { name: path, text, .. } = exported.clone();
        let height_m = first.waypoints.first().map_or(20.0, |waypoint| waypoint.height_m);
        own = Some(Own {
            variants: vec![plan.protocol.variant().to_owned()],
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
    file(&written, notes)
}

fn file(written: &Written, notes: Vec<String>) -> Result<MissionExportFile, String> {
    let text = toml::to_string_pretty(written).map_err(|error| format!("the plan: {error}"))?;
    Ok(MissionExportFile { name: format!("{}.toml", written.name), text: format!("{HEAD}\n{text}"), notes })
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
        vary.insert(FOLLOW_LANDING.to_owned(), vec![found.clone().into()]);
    }
    if let Some(found) = plan.landing_distance_m {
        Formation::new(layout, aircraft, found).map_err(|error| format!("landing_distance_m: {error}"))?;
        vary.insert(FOLLOW_LANDING_DISTANCE.to_owned(), vec![found.into()]);
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
            series: vec![Series {
                name: title,
                formation: vec![plan.formation.clone()],
                aircraft: vec![aircraft],
                distance_m: vec![plan.distance_m],
                refresh_ms: vec![REFRESH_MS],
            }],
        }),
        channel: BTreeMap::from([("model", "unrestricted"), ("draw", "second")].map(owned)),
        vary,
    };
    file(&written, plan.home.iter().map(|_| NO_HOME.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use wingbeat_api::MissionItem;

    use super::*;

    fn saved(name: &str, text: &str) -> SavedPlan {
        SavedPlan { name: name.to_owned(), text: text.to_owned() }
    }

    fn refused(text: &str) -> String {
        match read(&saved("a.toml", text)) {
            Err(why) => why,
            Ok(plan) => panic!("opened: {plan:?}\n{text}"),
        }
    }

    fn swarm() -> PlanFile {
        let waypoints = [0.0, 0.001].map(|east| MissionItem::at(39.4825, -0.3462 + east, 15.0)).to_vec();
        PlanFile {
            protocol: PlanProtocol::Muscop,
            aircraft: 5,
            formation: "wedge".to_owned(),
            distance_m: 50.0,
            landing_distance_m: Some(20.0),
            take_off: Some("simultaneous".to_owned()),
            landing: Some("sequential".to_owned()),
            speed_m_s: 8.0,
            height_m: None,
            pilot: None,
            missions: vec![MissionUpload::new("field", waypoints)],
            home: Some(GeoPoint { latitude_deg: 39.482, longitude_deg: -0.346, altitude_m: 7.5 }),
        }
    }

    fn apart() -> PlanFile {
        let PlanFile { missions, .. } = swarm();
        // As a path of KML is read: its take-off ends at the height of its first point.
        let missions =
            missions.into_iter().map(|mission| MissionUpload { take_off_height_m: Some(15.0), ..mission });
        let missions: Vec<_> = missions.collect();
        let other = MissionUpload { name: "other <field>".to_owned(), ..missions[0].clone() };
        PlanFile {
            protocol: PlanProtocol::MbcapE,
            aircraft: 2,
            formation: "linear".to_owned(),
            landing_distance_m: None,
            take_off: None,
            landing: None,
            missions: [missions, vec![other]].concat(),
            home: None,
            ..swarm()
        }
    }

    fn follow() -> PlanFile {
        PlanFile {
            protocol: PlanProtocol::FollowMe,
            take_off: None,
            landing: Some("formation".to_owned()),
            height_m: Some(25.0),
            pilot: Some("drawn:60".to_owned()),
            missions: vec![],
            home: None,
            ..swarm()
        }
    }

    #[test]
    fn what_is_saved_is_opened_and_saved_as_the_same_file() {
        for plan in [swarm(), apart(), follow()] {
            let file = write(&plan).expect("a file");
            assert_eq!(file.notes, Vec::<String>::new());
            let opened = read(&saved(&file.name, &file.text)).expect("it is opened");
            assert_eq!(opened, plan);
            assert_eq!(write(&opened).expect("a file"), file);
        }
    }

    #[test]
    fn where_the_aircraft_start_is_noted_where_the_file_has_no_place_for_it() {
        for plan in [apart(), follow()] {
            let plan = PlanFile { home: swarm().home, ..plan };
            assert_eq!(write(&plan).expect("a file").notes, [NO_HOME]);
        }
    }

    /// Every line of every plan that the console saves, as another program or a person may have changed it.
    #[test]
    fn what_would_be_lost_is_refused_by_its_key() {
        let [of_swarm, own, of_follow] = [swarm(), apart(), follow()].map(|plan| write(&plan).unwrap().text);
        let cases = [
            (
                &of_follow,
                "formation = [\"wedge\"]",
                "formation = [\"wedge\", \"linear\"]",
                "follow.series.formation: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "aircraft = [5]",
                "aircraft = [5, 9]",
                "follow.series.aircraft: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "aircraft = [5]",
                "aircraft = []",
                "follow.series.aircraft: found 0 values, expected 1",
            ),
            (
                &of_follow,
                "aircraft = [5]",
                "aircraft = [300]",
                "follow.series.aircraft: found 300, expected at most 128",
            ),
            (
                &of_follow,
                "distance_m = [50.0]",
                "distance_m = [50.0, 75.0]",
                "follow.series.distance_m: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "refresh_ms = [1000]",
                "refresh_ms = [1000, 500]",
                "follow.series.refresh_ms: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "refresh_ms = [1000]",
                "refresh_ms = [500]",
                "follow.series.refresh_ms: found 500, expected 1000",
            ),
            (
                &of_follow,
                "heading_noise_deg = 0.0",
                "heading_noise_deg = 1.1",
                "follow.heading_noise_deg: found 1.1, expected 0.0",
            ),
            (
                &of_follow,
                "[\"formation\"]",
                "[\"formation\", \"in_place\"]",
                "vary.follow_me.landing: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "[20.0]",
                "[20.0, 30.0]",
                "vary.follow_me.landing_distance_m: found 2 values, expected 1",
            ),
            (
                &of_follow,
                "[20.0]",
                "[true]",
                "vary.follow_me.landing_distance_m: found true, expected a number",
            ),
            (&of_follow, "[20.0]", "20.0", "invalid type: floating point"),
            (
                &own,
                "variants = [\"mbcap-e\"]",
                "variants = [\"mbcap-e\", \"off\"]",
                "own.variants: found 2 values, expected 1",
            ),
            (
                &own,
                "variants = [\"mbcap-e\"]",
                "variants = [\"sweep\"]",
                "own.variants: found \"sweep\", expected",
            ),
            (&own, "height_m = 15.0", "height_m = 40.0", "own.height_m: found 40.0, expected 15.0"),
            (
                &own,
                "[channel]",
                "[vary]\n\"muscop.landing\" = [\"sequential\"]\n[channel]",
                "vary: found { \"muscop.landing\" = [\"sequential\"] }, expected none",
            ),
            (
                &own,
                "<name>field</name>",
                "<name>field</name><Style/>",
                "own.file.text, line 5: found <name>field</name><Style/>, expected <name>field</name>",
            ),
            (
                &own,
                "[channel]",
                "[vary]\n\"mbcap.beacon_period_ms\" = [100, 200]\n[channel]",
                "vary.mbcap.beacon_period_ms: found 2 values, expected none",
            ),
            (
                &own,
                "[channel]",
                "[vary]\n\"follow_me.landing_distance_m\" = [10.0]\n[channel]",
                "vary.follow_me.landing_distance_m: found one without a follow",
            ),
            (
                &of_swarm,
                "[\"sequential\"]",
                "[\"sequential\", \"simultaneous\"]",
                "vary.muscop.landing: found 2 values, expected 1",
            ),
            (&of_swarm, "[\"sequential\"]", "[1]", "vary.muscop.landing: found 1, expected text"),
            (
                &of_swarm,
                "aircraft = 5",
                "aircraft = 1000",
                "swarm.aircraft: found 1000, expected at most 128",
            ),
            (&of_swarm, "repeat = 1", "repeat = 20", "repeat: found 20, expected 1"),
            (&of_swarm, "time_limit_s = 7200", "time_limit_s = 60", "time_limit_s: found 60, expected 7200"),
            (
                &of_swarm,
                "table = \"flights\"",
                "table = \"axes\"",
                "table: found \"axes\", expected \"flights\"",
            ),
            (
                &of_swarm,
                "name = \"field\"",
                "name = \"meadow\"",
                "name: found \"meadow\", expected \"field\"",
            ),
            (&of_swarm, "title = \"5", "title = \"Five, 5", "title: found \"Five, 5 aircraft"),
            (
                &of_swarm,
                "\"unrestricted\"",
                "\"802.11a\"",
                "channel.model: found \"802.11a\", expected \"unrestricted\"",
            ),
            (
                &of_swarm,
                "draw = \"second\"",
                "draw = \"packet\"",
                "channel.draw: found \"packet\", expected \"second\"",
            ),
            (
                &of_swarm,
                "draw = \"second\"",
                "draw = \"second\"\nsignatures = \"stand-in\"",
                "channel.signatures: found \"stand-in\", expected none",
            ),
            (
                &of_swarm,
                "distance_m = 50.0",
                "distance_m = 50.0\ngps_noise_m = 0.3",
                "unknown field `gps_noise_m`",
            ),
            (
                &of_swarm,
                "[channel]",
                "[[accept]]\nfigure = \"separation_least_m\"\nof = \"each\"\nleast = 5.0\n[channel]",
                "unknown field `accept`",
            ),
            (&of_swarm, "\"cruiseSpeed\": 15", "\"cruiseSpeed\": 12", "mission.text, line"),
            (
                &of_swarm,
                "\"circles\": []",
                "\"circles\": [{}]",
                "field.plan: found something that no aircraft flies (the plan's fence is not used",
            ),
            (
                &of_swarm,
                "repeat = 1",
                "# Flown on Tuesday.\nrepeat = 1",
                "line 5: found the comment # Flown on Tuesday., expected none",
            ),
        ];
        for (text, from, to, expected) in cases {
            assert!(text.contains(from), "{from}\n{text}");
            let found = refused(&text.replacen(from, to, 1));
            assert!(found.starts_with("a.toml: ") && found.contains(expected), "{found}\n{expected}\n{text}");
        }
        // As two plans of the bench have them.
        let of_bench = |name: &str| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/plans");
            read(&saved(name, &fs::read_to_string(folder.join(name)).expect("a plan"))).expect_err(name)
        };
        for (name, expected) in [
            ("followme-formations.toml", "follow.series: found 4 values, expected 1 (expected a plan"),
            (
                "followme-refresh.toml",
                "follow.series.refresh_ms: found 8 values, expected 1 (expected a plan",
            ),
        ] {
            let found = of_bench(name);
            assert!(found.contains(expected), "{found}");
        }
        // A whole number is the same number.
        let whole = of_swarm.replace("distance_m = 50.0", "distance_m = 50");
        assert_eq!(read(&saved("a.toml", &whole)).as_ref(), Ok(&swarm()));
    }

    /// The key that a refusal is about: the library's message quotes it, or the line that it stands in.
    fn key_in(why: &str) -> Option<&str> {
        for before in ["unknown field `", "missing field `"] {
            if let Some((_, after)) = why.split_once(before) {
                return after.split('`').next();
            }
        }
        if why.contains("invalid type") {
            let (_, after) = why.split_once(" | ")?;
            return after.lines().next().map(str::trim).filter(|line| !line.is_empty());
        }
        why.split(": ").nth(1)?.rsplit('.').next()
    }

    /// The plans that the bench flies are of other people's making.
    #[test]
    fn every_plan_of_the_bench_is_opened_whole_or_refused_by_a_key_that_it_has() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/plans");
        let mut count = 0;
        for entry in fs::read_dir(&folder).expect("the plans") {
            let path = entry.expect("a plan").path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("text");
            count += 1;
            match read(&saved(&name, &text)) {
                Ok(plan) => {
                    let again: toml::Table = write(&plan).expect("a file").text.parse().unwrap();
                    assert_eq!(Ok(again), text.parse(), "{name}");
                }
                Err(why) => {
                    let named = key_in(&why).unwrap_or_else(|| panic!("no key in {why}"));
                    let is_missing = why.contains("missing field");
                    assert!(
                        why.contains("expected") && (is_missing || text.contains(named)),
                        "{named:?}: {why}"
                    );
                }
            }
        }
        assert!(count > 20, "found {count} plans in {}", folder.display());
    }
}
