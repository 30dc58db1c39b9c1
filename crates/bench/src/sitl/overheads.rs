//! What the avoidance costs in flight time, per aircraft: with real ArduCopters, with simulated flight
//! controllers, and as thesis Table 5.5 gives it for its simulator and its multicopters.

use std::fmt::Write as _;

use crate::flight::FlightResult;
use crate::scenario::{Scenario, Task, Variant};

/// Thesis Table 5.5 as data.
const PUBLISHED: &str = include_str!("../../published/mbcap-pairs-real.csv");

/// One flight of the plan under one variant, flown both ways.
pub(crate) struct Pair {
    /// The scenario that both flew.
    pub(crate) scenario: Scenario,
    /// With real ArduCopters, once per repeat.
    pub(crate) real: Vec<FlightResult>,
    /// With simulated flight controllers, once per repeat.
    pub(crate) simulated: Vec<FlightResult>,
}

impl Pair {
    fn variant(&self) -> Option<Variant> {
        match &self.scenario.task {
            Task::Own(own) => Some(own.variant),
            Task::Swarm(_) | Task::Follow(_) => None,
        }
    }
}

/// The table, one row per aircraft of each flight that was flown with and without the protocol. Empty if
/// there is none.
pub(crate) fn table(pairs: &[Pair]) -> String {
    let mut rows = String::new();
    for with in pairs {
        let protocol = with.variant().filter(|v| *v != Variant::Off);
        let is_yardstick =
            |p: &&Pair| p.variant() == Some(Variant::Off) && p.scenario.name == with.scenario.name;
        let (Some(protocol), Some(without)) = (protocol, pairs.iter().find(is_yardstick)) else { continue };
        for uav in 0..with.scenario.aircraft() {
            let [simulator, multicopter] = published(&with.scenario.name, uav, protocol);
            let ours = |with: &[FlightResult], without: &[FlightResult]| {
                let (on, off) = (flight_time_s(with, uav), flight_time_s(without, uav));
                format!("{on:>7.1} {off:>7.1} {:>6.1}", on - off)
            };
            let (real, simulated) =
                (ours(&with.real, &without.real), ours(&with.simulated, &without.simulated));
            let separation =
                format!("{:>7.2} {:>7.2}", separation_m(&with.real), separation_m(&with.simulated));
            let name = format!("{}, {}", with.scenario.name, protocol.name());
            // Writing to a string does not fail.
            let _ = writeln!(
                rows,
                "{name:<34} {:>3}   {simulator:>9} {multicopter:>6}   {real}   {simulated}   {separation}",
                uav + 1
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "{:<38}   {:>16}   {:<22}   {:<22}   least separation\n{:<34} UAV   simulated   real   \
         {:>7} {:>7} {:>6}   {:>7} {:>7} {:>6}   {:>7} {:>7}\n{rows}",
        "flight time (s)",
        "thesis, overhead",
        "SITL",
        "simulated",
        "",
        "on",
        "off",
        "over",
        "on",
        "off",
        "over",
        "SITL",
        "simul."
    )
}

fn flight_time_s(flights: &[FlightResult], uav: usize) -> f64 {
    let times = flights.iter().filter_map(|f| f.aircraft.get(uav)).map(|a| a.flight_time_s);
    times.sum::<f64>() / flights.len().max(1) as f64
}

fn separation_m(flights: &[FlightResult]) -> f64 {
    flights.iter().map(|f| f.swarm.separation_min_m).fold(f64::INFINITY, f64::min)
}

/// The overheads of the thesis' simulator and of its multicopters; its table is of MBCAP-e, and of
/// scenarios that begin with their numbers.
fn published(name: &str, uav: usize, protocol: Variant) -> [String; 2] {
    let scenario = name.split(' ').next().unwrap_or_default();
    let uav = (uav + 1).to_string();
    let found = PUBLISHED.lines().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
    let mut found =
        found.filter(|cells| protocol == Variant::MbcapE && cells.get(..2) == Some(&[scenario, &*uav]));
    let cells = found.next();
    [4, 7].map(|column| {
        cells.as_ref().and_then(|c| c.get(column)).map_or("-".to_owned(), |cell| (*cell).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{OwnMission, OwnTask};
    use wingbeat_sim::following::Following;
    use wingbeat_sim::observer::AircraftFigures;

    fn pair(name: &str, variant: Variant, real_s: [f64; 2], simulated_s: [f64; 2]) -> Pair {
        let mission =
            OwnMission { speed_m_s: 10.0, points: Vec::new(), start: None, leaves_at_s: Vec::new() };
        let task = OwnTask { variant, missions: vec![mission.clone(), mission] };
        let flight = |times_s: [f64; 2]| FlightResult {
            lateness: None,
            delays: None,
            following: Following::default(),
            aircraft: times_s
                .map(|flight_time_s| AircraftFigures { flight_time_s, ..AircraftFigures::default() })
                .to_vec(),
            swarm: wingbeat_sim::observer::SwarmFigures { separation_min_m: 8.5, ..Default::default() },
            encounters: Vec::new(),
            unprotected: variant == Variant::Off,
            is_disturbed: false,
            avoidance: Vec::new(),
            losses: Default::default(),
            radio: crate::flight::Radio::default(),
            duration: wingbeat_geo::Duration::ZERO,
            medium: None,
            flows: Vec::new(),
            trace_hash: 0,
            warnings: Vec::new(),
            causes: Vec::new(),
        };
        Pair {
            scenario: Scenario::new(name, Task::Own(task)),
            real: vec![flight(real_s)],
            simulated: vec![flight(simulated_s)],
        }
    }

    #[test]
    fn overheads_are_printed_with_those_of_the_thesis() {
        let name = "3 face to face";
        let pairs = [
            pair(name, Variant::Off, [180.0, 181.0], [182.0, 182.0]),
            pair(name, Variant::MbcapE, [220.5, 201.0], [222.25, 202.0]),
        ];
        let table = table(&pairs);
        let rows: Vec<Vec<&str>> =
            table.lines().skip(2).map(|l| l.split_whitespace().skip(5).collect()).collect();
        assert_eq!(rows.len(), 2, "{table}");
        let first = ["1", "43", "43", "220.5", "180.0", "40.5", "222.2", "182.0", "40.2", "8.50", "8.50"];
        assert_eq!(rows[0], first, "{table}");
        assert_eq!(rows[1][..6], ["2", "24", "19", "201.0", "181.0", "20.0"], "{table}");
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        let alone = [pair("3 face to face", Variant::MbcapE, [220.0, 200.0], [220.0, 200.0])];
        assert_eq!(table(&alone), "");
        // Not in the table of the thesis.
        assert_eq!(published("3 face to face", 0, Variant::Mbcap), ["-", "-"]);
        assert_eq!(published("7 anything", 0, Variant::MbcapE), ["-", "-"]);
    }
}
