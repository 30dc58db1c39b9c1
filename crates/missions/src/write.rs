//! What an operator drew, as files of the other two formats; QGC WPL 110 is in `waypoints.rs`.

use std::fmt::Write;

use quick_xml::escape::escape;
use serde_json::{Value, json};
use wingbeat_geo::Position;

use crate::{Altitude, Datum, Item, LatLon, Mission, command, waypoints::decimal};

/// The mission as a QGroundControl plan. [`crate::parse`] gives the same items, speed and planned home back; the format
/// cannot state the name and the notes.
pub fn write_plan(mission: &Mission) -> String {
    let items: Vec<_> = (1..).zip(&mission.items).map(|(number, item)| plan_item(number, item)).collect();
    let home = mission.planned_home.map(|home| {
        json!([degrees(home.latitude_e7), degrees(home.longitude_e7), f64::from(home.altitude_mm) / 1e3])
    });
    let mut document = json!({
        "fileType": "Plan",
        "version": 1,
        "groundStation": "Wingbeat",
        "mission": {
            // MAV_AUTOPILOT_ARDUPILOTMEGA and MAV_TYPE_QUADROTOR.
            "firmwareType": 3,
            "vehicleType": 2,
            "version": 2,
            "globalPlanAltitudeMode": 1,
            "cruiseSpeed": 15,
            "items": items,
        },
        "geoFence": { "version": 2, "circles": [], "polygons": [] },
        "rallyPoints": { "version": 2, "points": [] },
    });
    let fields = &mut document["mission"];
    if let Some(home) = home {
        fields["plannedHomePosition"] = home;
    }
    if let Some(speed_m_s) = mission.speed_m_s {
        fields["hoverSpeed"] = json!(speed_m_s);
    }
    format!("{document:#}\n")
}

fn plan_item(number: usize, item: &Item) -> Value {
    let nowhere = (json!(0), json!(0));
    let place =
        |position: LatLon| (json!(degrees(position.latitude_e7)), json!(degrees(position.longitude_e7)));
    let above_home = Altitude { value_mm: 0, datum: Datum::Home };
    let (command, altitude, first, second, (latitude, longitude)) = match *item {
        Item::TakeOff { altitude } => (command::TAKE_OFF, altitude, 0.0, 0.0, nowhere),
        Item::Waypoint { position, altitude, hold_s } => {
            (command::WAYPOINT, altitude, hold_s, 0.0, place(position))
        }
        Item::Land { position } => (command::LAND, above_home, 0.0, 0.0, position.map_or(nowhere, place)),
        Item::ReturnToLaunch => (command::RETURN_TO_LAUNCH, above_home, 0.0, 0.0, nowhere),
        Item::ChangeSpeed { speed_m_s } => (command::CHANGE_SPEED, above_home, 1.0, speed_m_s, nowhere),
        Item::Yaw { yaw_deg } => (command::YAW, above_home, yaw_deg, 0.0, nowhere),
    };
    // No yaw is stated: only there is null another thing than 0.
    let yaw = match item {
        Item::ChangeSpeed { .. } | Item::Yaw { .. } | Item::ReturnToLaunch => json!(0),
        Item::TakeOff { .. } | Item::Waypoint { .. } | Item::Land { .. } => Value::Null,
    };
    let altitude_m = f64::from(altitude.value_mm) / 1e3;
    // QGroundControl's altitude modes: 1 above home, 2 above sea level.
    let (frame, mode) = match altitude.datum {
        Datum::Home => (command::FRAME_HOME, 1),
        Datum::SeaLevel => (command::FRAME_SEA_LEVEL, 2),
    };
    json!({
        "type": "SimpleItem",
        "command": command,
        "frame": frame,
        "autoContinue": true,
        "doJumpId": number,
        "params": [first, second, 0, yaw, latitude, longitude, altitude_m],
        "AMSLAltAboveTerrain": null,
        "Altitude": altitude_m,
        "AltitudeMode": mode,
    })
}

/// The shortest decimal number that is read back as the same 1e-7 degree.
fn degrees(value_e7: i32) -> f64 {
    f64::from(value_e7) / 1e7
}

/// The missions as KML, a path each. [`crate::parse`] gives the same names and waypoints back, where no height is below
/// [`crate::Limits::kml_altitude_min_m`]; a path states no home, hold, speed or landing, and its take-off ends at the
/// height of its first point.
pub fn write_kml(missions: &[Mission]) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<kml xmlns=\"http://www.opengis.net/kml/2.2\">\n  <Document>\n",
    );
    for mission in missions {
        // XML has no way to write the control characters.
        let name: String = mission.name.chars().filter(|c| !c.is_control()).collect();
        let home_mm = mission.planned_home.map_or(0, |home: Position| home.altitude_mm);
        let points = mission.waypoints().map(|(position, altitude, _)| {
            let [longitude, latitude] =
                [position.longitude_e7, position.latitude_e7].map(|e7| decimal(e7, 7));
            format!("          {longitude},{latitude},{}\n", decimal(altitude.above_home_mm(home_mm), 3))
        });
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "    <Placemark>\n      <name>{}</name>\n      <LineString>\n        \
             <altitudeMode>relativeToGround</altitudeMode>\n        <coordinates>\n{}        </coordinates>\n      \
             </LineString>\n    </Placemark>\n",
            escape(name.as_str()),
            points.collect::<String>(),
        );
    }
    text + "  </Document>\n</kml>\n"
}
