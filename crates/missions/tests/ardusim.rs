//! Files of the shape of ArduSim's own samples: item 0 is a placeholder of zeros with command 0, the take-off is
//! above home, waypoints and the landing are in frame 0, and the last line does not continue.

use std::path::Path;

use wingbeat_missions::{Altitude, Datum, Item, LatLon, Limits, Mission, Note, Problem, parse};

const PLACEHOLDER: &str = "0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1\n";
const ITEMS: &str = "1\t0\t3\t22\t0\t0\t0\t0\t0\t0\t24\t1\n\
                     2\t0\t0\t16\t0\t0\t0\t0\t39.48211\t-0.34663\t26\t1\n\
                     3\t0\t0\t16\t0\t0\t0\t0\t39.48286\t-0.34474\t26\t1\n\
                     4\t0\t0\t21\t0\t0\t0\t0\t39.48286\t-0.34474\t26\t0\n";

fn file(home: &str) -> String {
    format!("QGC WPL 110\n{home}{ITEMS}")
}

fn parsed(text: &str) -> Mission {
    let missions = parse(Path::new("quad.waypoints"), text.as_bytes(), &Limits::default());
    missions.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

#[test]
fn a_placeholder_home_is_at_sea_level_and_all_altitudes_are_above_home() {
    let mission = parsed(&file(PLACEHOLDER));
    let altitude = |value_mm| Altitude { value_mm, datum: Datum::Home };
    let position = |latitude_e7, longitude_e7| LatLon { latitude_e7, longitude_e7 };
    let (first, second) = (position(394_821_100, -3_466_300), position(394_828_600, -3_447_400));
    assert_eq!(
        mission.items,
        [
            Item::TakeOff { altitude: altitude(24_000) },
            Item::Waypoint { position: first, altitude: altitude(26_000), hold_s: 0.0 },
            Item::Waypoint { position: second, altitude: altitude(26_000), hold_s: 0.0 },
            Item::Land { position: Some(second) },
        ]
    );
    let notes =
        [Note::ParametersNotUsed { items: 1 }, Note::StopsNotFlown { items: 1 }, Note::HomeAtSeaLevel];
    assert_eq!(
        (mission.planned_home, &mission.notes[..]),
        (None, &notes[..]),
        "the landing's altitude and stop"
    );
}

/// The placeholder alone converts: a home that is unknown gives no altitude reference.
#[test]
fn without_the_placeholder_altitudes_above_sea_level_need_a_home() {
    let unknown = PLACEHOLDER.replacen("\t0\t0\t0\t", "\t1\t0\t16\t", 1);
    let high = PLACEHOLDER.replacen("\t0\t1\n", "\t7\t1\n", 1);
    for home in [unknown, high] {
        let error =
            parse(Path::new("quad.waypoints"), file(&home).as_bytes(), &Limits::default()).unwrap_err();
        assert!(matches!(error.problem, Problem::NoHome), "{home}: {error}");
    }
}

#[test]
fn command_0_with_a_position_is_a_home() {
    let home = "0\t0\t0\t0\t0\t0\t0\t0\t39.4825\t-0.3462\t6\t1\n";
    let mission = parsed(&file(home));
    assert_eq!(mission.planned_home.unwrap().altitude_mm, 6_000);
    let heights: Vec<i32> =
        mission.waypoints().map(|(_, altitude, _)| altitude.above_home_mm(6_000)).collect();
    assert_eq!(heights, [20_000, 20_000]);
    let notes = [
        Note::ParametersNotUsed { items: 1 },
        Note::StopsNotFlown { items: 1 },
        Note::AltitudeAboveSeaLevel { waypoints: 2, home_altitude_m: 6.0 },
    ];
    assert_eq!(mission.notes, notes);
}
