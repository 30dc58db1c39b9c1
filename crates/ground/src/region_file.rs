//! Files with a fence or rally points: the geoFence and the rallyPoints of a QGroundControl plan, and GeoJSON.
//!
//! In GeoJSON a polygon is an area to stay inside, or outside where its property `fence` is "exclusion"; its holes are areas to stay
//! outside. A point with the property `radius_m` is a circle, one with `height_m` a rally point.

use serde_json::Value;
use wingbeat_api::{
    FenceArea, GroundPoint, RallyPoint, Region, RegionFile, RegionFileContent, check_fence, check_rally,
};

/// Bytes of a file.
const FILE_MAX: usize = 2_000_000;

/// What the file holds.
///
/// # Errors
/// The first thing that is wrong, and where it stands.
pub(crate) fn read(file: &RegionFile) -> Result<RegionFileContent, String> {
    let name: String = file.name.chars().filter(|c| !c.is_control()).take(64).collect();
    parse(&file.text).map_err(|why| format!("{name}: {why}"))
}

fn parse(text: &str) -> Result<RegionFileContent, String> {
    let found = text.len();
    if found > FILE_MAX {
        return Err(format!("found {found} bytes, expected at most {FILE_MAX}"));
    }
    let root: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("found no JSON ({error}), expected a QGroundControl plan or GeoJSON"))?;
    let mut read = Reading::default();
    match (root["fileType"].as_str(), root["type"].as_str()) {
        (Some("Plan"), _) => read.plan(&root)?,
        (_, Some(_)) => read.geojson("", &root, &Value::Null)?,
        _ => {
            let expected = "fileType \"Plan\" (QGroundControl), or the type of a GeoJSON object";
            return Err(format!("found neither, expected {expected}"));
        }
    }
    let Reading { fence, rally, notes } = read;
    if fence.is_empty() && rally.is_empty() {
        return Err("found neither an area of a fence nor a rally point, expected at least one".to_owned());
    }
    check_fence(&fence)?;
    check_rally(&rally)?;
    let some = |is_empty: bool| (!is_empty).then_some(());
    let region = Region {
        fence: some(fence.is_empty()).map(|()| fence),
        rally: some(rally.is_empty()).map(|()| rally),
    };
    Ok(RegionFileContent { region, notes })
}

#[derive(Default)]
struct Reading {
    fence: Vec<FenceArea>,
    rally: Vec<RallyPoint>,
    notes: Vec<String>,
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}

fn list<'a>(at: &str, value: &'a Value) -> Result<&'a [Value], String> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(list) => Ok(list),
        other => Err(format!("{at}: found {}, expected a list", shown(other))),
    }
}

fn number(at: &str, value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{at}: found {}, expected a number", shown(value)))
}

fn inclusion(at: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{at}.inclusion: found {}, expected true or false", shown(value)))
}

/// A height as the flight controller keeps it: whole metres.
fn height(at: &str, value: &Value) -> Result<i16, String> {
    let height_m = number(at, value)?.round();
    if !(0.0..=10_000.0).contains(&height_m) {
        return Err(format!("{at}: found {height_m} m, expected 0 to 10000"));
    }
    Ok(height_m as i16)
}

/// Latitude and longitude; GeoJSON has them the other way round.
fn pair(at: &str, value: &Value, is_geojson: bool) -> Result<GroundPoint, String> {
    let all = list(at, value)?;
    let [first, second, ..] = all else {
        return Err(format!("{at}: found {} numbers, expected at least 2", all.len()));
    };
    let (first, second) = (number(&format!("{at}[0]"), first)?, number(&format!("{at}[1]"), second)?);
    let (latitude_deg, longitude_deg) = if is_geojson { (second, first) } else { (first, second) };
    Ok(GroundPoint { latitude_deg, longitude_deg })
}

impl Reading {
    fn plan(&mut self, root: &Value) -> Result<(), String> {
        let fence = &root["geoFence"];
        for (i, polygon) in list("geoFence.polygons", &fence["polygons"])?.iter().enumerate() {
            let at = format!("geoFence.polygons[{i}]");
            let corners = list(&at, &polygon["polygon"])?.iter().enumerate();
            let corners = corners.map(|(j, corner)| pair(&format!("{at}.polygon[{j}]"), corner, false));
            let corners = corners.collect::<Result<_, _>>()?;
            self.fence
                .push(FenceArea::Polygon { inclusion: inclusion(&at, &polygon["inclusion"])?, corners });
        }
        for (i, circle) in list("geoFence.circles", &fence["circles"])?.iter().enumerate() {
            let at = format!("geoFence.circles[{i}]");
            self.fence.push(FenceArea::Circle {
                inclusion: inclusion(&at, &circle["inclusion"])?,
                centre: pair(&format!("{at}.circle.center"), &circle["circle"]["center"], false)?,
                radius_m: number(&format!("{at}.circle.radius"), &circle["circle"]["radius"])?,
            });
        }
        if !fence["breachReturn"].is_null() {
            self.notes.push("geoFence.breachReturn is not used: no copter flies there".to_owned());
        }
        for (i, point) in list("rallyPoints.points", &root["rallyPoints"]["points"])?.iter().enumerate() {
            let at = format!("rallyPoints.points[{i}]");
            let GroundPoint { latitude_deg, longitude_deg } = pair(&at, point, false)?;
            let height_m = height(&format!("{at}[2]"), &point[2])?;
            self.rally.push(RallyPoint { latitude_deg, longitude_deg, height_m });
        }
        if list("mission.items", &root["mission"]["items"])?.is_empty() {
            return Ok(());
        }
        self.notes.push("the mission of the plan is not used here".to_owned());
        Ok(())
    }

    fn geojson(&mut self, at: &str, value: &Value, properties: &Value) -> Result<(), String> {
        let dot = if at.is_empty() { "" } else { "." };
        match value["type"].as_str() {
            Some("FeatureCollection") => {
                for (i, feature) in list("features", &value["features"])?.iter().enumerate() {
                    self.geojson(&format!("features[{i}]"), feature, &Value::Null)?;
                }
                Ok(())
            }
            // One in another is no GeoJSON, and would have no end.
            Some("Feature") if !at.ends_with("geometry") => {
                self.geojson(&format!("{at}{dot}geometry"), &value["geometry"], &value["properties"])
            }
            Some("Polygon") => {
                let is_exclusion = match &properties["fence"] {
                    Value::Null => false,
                    Value::String(text) if text == "inclusion" => false,
                    Value::String(text) if text == "exclusion" => true,
                    other => {
                        return Err(format!(
                            "{at}: the property fence: found {}, expected \"inclusion\" or \"exclusion\"",
                            shown(other)
                        ));
                    }
                };
                for (i, ring) in list(at, &value["coordinates"])?.iter().enumerate() {
                    let at = format!("{at}{dot}coordinates[{i}]");
                    let corners = list(&at, ring)?.iter().enumerate();
                    let corners = corners.map(|(j, corner)| pair(&format!("{at}[{j}]"), corner, true));
                    let mut corners = corners.collect::<Result<Vec<_>, _>>()?;
                    // A ring ends where it began.
                    if corners.len() > 1 && corners.first() == corners.last() {
                        corners.pop();
                    }
                    if is_exclusion && i > 0 {
                        self.notes.push(format!("{at} is not used: a hole in an area to stay outside"));
                        continue;
                    }
                    self.fence.push(FenceArea::Polygon { inclusion: !is_exclusion && i == 0, corners });
                }
                Ok(())
            }
            Some("Point") => {
                let at_point = format!("{at}{dot}coordinates");
                let place = pair(&at_point, &value["coordinates"], true)?;
                if !properties["radius_m"].is_null() {
                    let radius_m = number(&format!("{at}: the property radius_m"), &properties["radius_m"])?;
                    let inclusion = properties["fence"].as_str() != Some("exclusion");
                    self.fence.push(FenceArea::Circle { inclusion, centre: place, radius_m });
                } else if !properties["height_m"].is_null() {
                    let height_m = height(&format!("{at}: the property height_m"), &properties["height_m"])?;
                    let GroundPoint { latitude_deg, longitude_deg } = place;
                    self.rally.push(RallyPoint { latitude_deg, longitude_deg, height_m });
                } else {
                    return Err(format!(
                        "{at}: found a point without properties, expected radius_m (a circle) or height_m (a rally point)"
                    ));
                }
                Ok(())
            }
            found => Err(format!(
                "{at}{dot}type: found {}, expected FeatureCollection, Feature, Polygon or Point",
                found.map_or("none".to_owned(), |text| shown(&Value::from(text)))
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"fileType": "Plan", "version": 1, "mission": {"items": []}, "geoFence": {"version": 2,
        "circles": [{"circle": {"center": [39.4825, -0.3462], "radius": 30.5}, "inclusion": false, "version": 1}],
        "polygons": [{"polygon": [[39.48, -0.35], [39.48, -0.34], [39.49, -0.34]], "inclusion": true, "version": 1}]},
        "rallyPoints": {"version": 2, "points": [[39.4826, -0.3461, 24.6]]}}"#;
    const GEOJSON: &str = r#"{"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon",
            "coordinates": [[[-0.35, 39.48], [-0.34, 39.48], [-0.34, 39.49], [-0.35, 39.48]]]}},
        {"type": "Feature", "properties": {"fence": "exclusion", "radius_m": 30.5},
            "geometry": {"type": "Point", "coordinates": [-0.3462, 39.4825]}},
        {"type": "Feature", "properties": {"height_m": 25},
            "geometry": {"type": "Point", "coordinates": [-0.3461, 39.4826]}}]}"#;

    fn of(text: &str) -> Result<RegionFileContent, String> {
        read(&RegionFile { name: "a.plan".into(), text: text.into() })
    }

    #[test]
    fn a_plan_and_geojson_state_the_same() {
        let plan = of(PLAN).unwrap();
        let at = |latitude_deg, longitude_deg| GroundPoint { latitude_deg, longitude_deg };
        let corners = vec![at(39.48, -0.35), at(39.48, -0.34), at(39.49, -0.34)];
        let fence = vec![
            FenceArea::Polygon { inclusion: true, corners },
            FenceArea::Circle { inclusion: false, centre: at(39.4825, -0.3462), radius_m: 30.5 },
        ];
        let rally = vec![RallyPoint { latitude_deg: 39.4826, longitude_deg: -0.3461, height_m: 25 }];
        assert_eq!(plan.region, Region { fence: Some(fence), rally: Some(rally) });
        assert_eq!((of(GEOJSON).unwrap().region, plan.notes), (plan.region, vec![]));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named_with_its_place() {
        for (text, message) in [
            ("", "a.plan: found no JSON"),
            ("[]", "a.plan: found neither, expected fileType"),
            (r#"{"fileType": "Plan"}"#, "a.plan: found neither an area"),
            (
                &PLAN.replace("[39.48, -0.34]", "[39.48]"),
                "a.plan: geoFence.polygons[0].polygon[1]: found 1 numbers, expected at least 2",
            ),
            (&PLAN.replace("[39.48, -0.34], ", ""), "a.plan: fence[0]: found 2 corners, expected at least 3"),
            (&PLAN.replace("30.5", "\"wide\""), "a.plan: geoFence.circles[0].circle.radius: found \"wide\""),
            (
                &PLAN.replace("24.6", "null"),
                "a.plan: rallyPoints.points[0][2]: found null, expected a number",
            ),
            (&PLAN.replace("39.48,", "99.0,"), "a.plan: fence[0].corners[0]: latitude 99 is not"),
            (&GEOJSON.replace("\"height_m\": 25", ""), "a.plan: features[2].geometry: found a point without"),
            (
                &GEOJSON.replace("Polygon", "MultiPolygon"),
                "a.plan: features[0].geometry.type: found \"MultiPol",
            ),
            (
                r#"{"type": "Feature", "geometry": {"type": "Feature"}}"#,
                "a.plan: geometry.type: found \"Feature\"",
            ),
        ] {
            let found = of(text).unwrap_err();
            assert!(found.starts_with(message), "{found}\n{message}");
        }
    }
}
