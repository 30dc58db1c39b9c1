use super::*;
use wingbeat_geo::DVec3;

const HOME: Position = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };

fn corner(east_m: f64, north_m: f64) -> Point {
    let p = Frame::new(HOME).to_position(DVec3::new(east_m, north_m, 0.0));
    Point { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, height_mm: 15_000 }
}

/// The lanes of all aircraft, each as its two ends, metres east and north.
fn swept(area: &[Point], aircraft: usize, lane_distance_m: f64) -> Vec<Vec<[DVec2; 2]>> {
    let frame = Frame::new(HOME);
    let local = |p: &Point| {
        let at = Position { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 };
        frame.to_local(at).truncate()
    };
    (0..aircraft)
        .map(|strip| {
            let config = Config { lane_distance_m, ..Config::new(VehicleId(1), strip, aircraft) };
            let mut sweep = config.begin(1, Instant::ZERO);
            sweep.set_mission(area, MissionExtras::NONE).unwrap();
            sweep.route().chunks(2).map(|lane| [local(&lane[0]), local(&lane[1])]).collect()
        })
        .collect()
}

extern crate std;
use std::string::ToString as _;
use std::vec::Vec;

#[test]
fn together_the_strips_cover_the_area_and_lanes_keep_their_distance() {
    // 200 m of lanes to the north, 130 m wide to the east, and the same mirrored to the west.
    for side in [1.0, -1.0] {
        let area = [corner(0.0, 0.0), corner(0.0, 200.0), corner(side * 130.0, 200.0)];
        for (aircraft, lane_distance_m) in [(1, 20.0), (3, 20.0), (4, 7.0), (5, 300.0)] {
            let strips = swept(&area, aircraft, lane_distance_m);
            let all: Vec<[DVec2; 2]> = strips.iter().flatten().copied().collect();
            let mut places: Vec<f64> = all.iter().map(|lane| lane[0].x * side).collect();
            assert!(places.is_sorted(), "strips lie in their order: {places:?}");
            places.insert(0, -places[0]);
            places.push(260.0 - places[places.len() - 1]);
            // Whatever lies in the area is at most half the distance from a lane.
            for pair in places.windows(2) {
                assert!(pair[1] - pair[0] <= lane_distance_m + 0.1, "{aircraft}: {places:?}");
                let narrow_m = (130.0 / aircraft as f64).min(lane_distance_m) / 2.0;
                assert!(pair[1] - pair[0] >= narrow_m - 0.1, "{aircraft}: {places:?}");
            }
            for strip in &strips {
                for (lane, [from, to]) in strip.iter().enumerate() {
                    let there = if lane % 2 == 0 { [0.0, 200.0] } else { [200.0, 0.0] };
                    assert!((from.y - there[0]).abs() < 0.1 && (to.y - there[1]).abs() < 0.1);
                }
            }
        }
    }
}

#[test]
fn an_area_that_is_none_is_refused() {
    let config = Config::new(VehicleId(1), 0, 2);
    let refused = |corners: &[Point]| {
        config.begin(1, Instant::ZERO).set_mission(corners, MissionExtras::NONE).unwrap_err().to_string()
    };
    assert!(refused(&[corner(0.0, 0.0); 2]).to_string().contains("found 2 corners, expected 3"));
    assert!(refused(&[corner(0.0, 0.0); 3]).to_string().contains("lanes of 0.0 m"));
    let wide = [corner(0.0, 0.0), corner(0.0, 100.0), corner(12_010.0, 100.0)];
    assert!(refused(&wide).to_string().contains("found 301 lanes for one aircraft, expected 300 at most"));
    for (config, words) in [
        (Config { strip: 2, ..config.clone() }, "strip: found 2, expected 0 to 1"),
        (Config { aircraft: 0, ..config.clone() }, "aircraft: found 0"),
        (
            Config { lane_distance_m: f64::NAN, ..config.clone() },
            "lane_distance_m: found NaN, expected more than 0",
        ),
    ] {
        let message = std::format!("{}", config.check().unwrap_err());
        assert!(message.contains(words), "{message}");
    }
    config.check().unwrap();
}

/// What the guide shows is what is compiled.
#[test]
fn the_guide_quotes_this_protocol_word_for_word() {
    let guide = include_str!("../../../../docs/protocols/writing-one.md");
    let sources = [
        ("crates/protocol/src/sweep.rs", include_str!("../sweep.rs")),
        ("crates/agent/src/coordination.rs", include_str!("../../../agent/src/coordination.rs")),
        ("crates/onboard/src/config/sweep.rs", include_str!("../../../onboard/src/config/sweep.rs")),
        ("crates/onboard/src/config/protocols.rs", include_str!("../../../onboard/src/config/protocols.rs")),
        ("crates/bench/src/scenario/own.rs", include_str!("../../../bench/src/scenario/own.rs")),
        ("crates/bench/plans/sweep.toml", include_str!("../../../bench/plans/sweep.toml")),
    ];
    let mut quoted = [0; 6];
    for (at, _) in guide.match_indices("\nFrom `") {
        let rest = &guide[at + "\nFrom `".len()..];
        let (name, rest) = rest.split_once('`').unwrap();
        let code = rest.split_once("```").unwrap().1.split_once('\n').unwrap().1;
        let code = code.split_once("```").unwrap().0;
        let file = sources.iter().position(|(path, _)| *path == name);
        let file = file.unwrap_or_else(|| panic!("{name}: a file that this test does not read"));
        // An ellipsis stands for what is left out.
        let mut from = 0;
        for part in code.split("// ...\n") {
            let part = part.trim_matches('\n');
            let found = sources[file].1[from..].find(part);
            from += found.unwrap_or_else(|| panic!("{name} does not contain, in this order:\n{part}"));
        }
        quoted[file] += 1;
    }
    assert!(quoted.iter().all(|&n| n > 0), "every file is quoted: {quoted:?}");
}
