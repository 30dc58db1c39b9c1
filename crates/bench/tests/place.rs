//! A flight is the same wherever on the earth its mission lies.

use wingbeat_bench::flight::{FlightResult, fly};
use wingbeat_bench::scenario::{OwnMission, OwnTask, Scenario, Task, Variant};
use wingbeat_geo::{DVec3, Duration, Frame, Position};
use wingbeat_sim::channel::Model;
use wingbeat_sim::motion::WindParameters;
use wingbeat_wire::Point;

/// Name, latitude and longitude; Fiji's mission crosses the date line.
const PLACES: [(&str, f64, f64); 7] = [
    ("Valencia", 39.4824, -0.3464),
    ("Delft", 51.9900, 4.3750),
    ("Cape Town", -33.9600, 18.4600),
    ("Seattle", 47.6100, -122.3300),
    ("Fiji", -16.7800, 179.9997),
    ("Canberra", -35.3633, 149.1652),
    ("70 degrees north", 70.0000, 25.7000),
];

/// Positions of waypoints, targets and telemetry are whole numbers of 1e-7 degree, 11.1 mm to the north. Each is off by at most
/// half of that per axis, 7.9 mm in the plane; a figure between two aircraft by twice that. Measured: 9 mm at most.
const QUANTUM_M: f64 = 0.0079;

/// The mission in metres east, north and up of a place.
const METRES: [[f64; 3]; 4] = [[0.0, 0.0, 20.0], [100.0, 0.0, 20.0], [150.0, 60.0, 20.0], [40.0, 60.0, 20.0]];

fn points(latitude_deg: f64, longitude_deg: f64) -> Vec<Point> {
    let frame = Frame::new(Position::from_degrees(latitude_deg, longitude_deg, 0.0).unwrap());
    let point = |[east, north, up]: &[f64; 3]| {
        let Position { latitude_e7, longitude_e7, .. } = frame.to_position(DVec3::new(*east, *north, 0.0));
        Point { latitude_e7, longitude_e7, height_mm: (up * 1e3) as i32 }
    };
    METRES.iter().map(point).collect()
}

fn flown(place: (&str, f64, f64), model: Model) -> FlightResult {
    let (name, latitude_deg, longitude_deg) = place;
    let mut scenario = Scenario::muscop(name, points(latitude_deg, longitude_deg)).measured_from_its_start();
    let Task::Swarm(swarm) = &mut scenario.task else { panic!("a swarm") };
    swarm.aircraft = 3;
    scenario.channel = model;
    // Gusts are a field over the ground, which must not move either.
    scenario.wind = WindParameters {
        speed_m_s: 2.0,
        direction_rad: 1.0,
        gust_deviation_m_s: 0.5,
        gust_time_constant_s: 4.0,
        gust_length_m: 100.0,
    };
    fly(&scenario, 5, Duration::from_secs(600)).unwrap()
}

#[test]
fn a_mission_has_the_same_result_at_seven_places() {
    for model in [Model::Unrestricted, Model::FixedRange { range_m: 60.0 }] {
        let all = PLACES.map(|place| flown(place, model.clone()));
        let [first, others @ ..] = &all;
        assert!(
            first.succeeded() && first.radio.lost > 0 || model == Model::Unrestricted,
            "{:?}",
            first.radio
        );
        for (flight, (name, ..)) in others.iter().zip(&PLACES[1..]) {
            assert!(flight.succeeded(), "{name}: {:?}", flight.causes);
            assert_eq!(flight.radio, first.radio, "{name}: receptions");
            assert_eq!(
                (flight.duration, flight.swarm.mission_time_s),
                (first.duration, first.swarm.mission_time_s)
            );
            for (figure, found, expected) in [
                ("mean offset", flight.swarm.distance_offset.mean(), first.swarm.distance_offset.mean()),
                ("largest offset", flight.swarm.distance_offset.max(), first.swarm.distance_offset.max()),
                ("separation", flight.swarm.separation_min_m, first.swarm.separation_min_m),
            ] {
                assert!(
                    (found - expected).abs() <= 2.0 * QUANTUM_M,
                    "{name}: {figure} {found}, expected {expected}"
                );
            }
        }
    }
}

#[test]
fn missions_that_one_plane_cannot_measure_are_refused_with_their_distance() {
    let of = |(_, latitude_deg, longitude_deg): (&str, f64, f64)| OwnMission {
        speed_m_s: 5.0,
        points: points(latitude_deg, longitude_deg),
        start: None,
        leaves_at_s: Vec::new(),
    };
    let together = |missions| {
        let task = Task::Own(OwnTask { variant: Variant::Off, missions });
        Scenario::new("two", task).measured_from_its_start().check()
    };
    for place in PLACES {
        together(vec![of(place), of(place)]).unwrap();
    }
    // Its antipode lies below the middle of the plane.
    let antipode = ("antipode", -39.4824, 179.6536);
    for other in [PLACES[1], PLACES[4], antipode] {
        let message = together(vec![of(PLACES[0]), of(other)]).unwrap_err().to_string();
        let named =
            ["mission two: aircraft 2: found", "km from the start of the flight", "expected 100 km at most"];
        assert!(named.iter().all(|part| message.contains(part)), "{message}");
    }
}
