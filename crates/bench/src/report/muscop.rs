//! The thesis' tables and figures of MUSCOP (section 6.3) and ours. Of its figures only what the text states of
//! them is printed as numbers, and stands under our table.

use wingbeat_sim::channel::{Losses, Model, REACH_M};
use wingbeat_sim::observer::Spread;

use super::{Row, line, mean};
use crate::flight::FlightResult;
use crate::scenario::{Scenario, Task};

/// Thesis Table 6.2 as data.
const PUBLISHED_OVERHEAD: &str = include_str!("../../published/muscop-overhead.csv");
/// Thesis Tables 6.1 and 6.3 as data.
const PUBLISHED_OFFSETS: &str = include_str!("../../published/muscop-offsets.csv");

/// Thesis Table 6.2 and ours.
pub fn overhead(rows: &[Row]) -> String {
    let published: Vec<Vec<f64>> = PUBLISHED_OVERHEAD
        .lines()
        .skip(1)
        .map(|l| l.split(',').filter_map(|v| v.parse().ok()).collect())
        .collect();
    let mut t = String::new();
    line(&mut t, "           alone (s)           swarm (s)           overhead (s)        per waypoint (s)");
    line(&mut t, "waypoints  published     ours  published     ours  published     ours  published     ours");
    for row in rows {
        let n = row.waypoints as f64;
        let alone = mean(row.alone.iter().map(|f| f.swarm.mission_time_s));
        let swarm = mean(row.flights.iter().map(|f| f.swarm.mission_time_s));
        let of = |column: usize| {
            let found = published.iter().find(|p| p.first() == Some(&n)).and_then(|p| p.get(column));
            found.copied()
        };
        let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.2}"));
        line(
            &mut t,
            &format!(
                "{:>9}  {:>9} {:>8.2}  {:>9} {:>8.2}  {:>9} {:>8.2}  {:>9} {:>8.2}",
                row.waypoints,
                show(of(1)),
                alone,
                show(of(2)),
                swarm,
                show(of(3)),
                swarm - alone,
                show(of(3).map(|v| v / n)),
                (swarm - alone) / n
            ),
        );
    }
    let mut distance = Vec::new();
    let mut time = Vec::new();
    for flight in rows.iter().flat_map(|r| &r.flights) {
        distance.push(&flight.swarm.distance_offset);
        time.push(&flight.swarm.time_offset);
    }
    let spread = |all: &[&Spread]| {
        let mean = mean(all.iter().map(|s| s.mean()));
        let max = all.iter().map(|s| s.max()).fold(0.0, f64::max);
        let deviation = super::mean(all.iter().map(|s| s.deviation()));
        format!("mean {mean:.3}, max {max:.2}, deviation {deviation:.3}")
    };
    line(&mut t, &format!("distance offset of followers (m): {}", spread(&distance)));
    line(&mut t, &format!("time offset of followers (s):     {}", spread(&time)));
    let failed =
        rows.iter().flat_map(|r| r.flights.iter().chain(&r.alone)).filter(|f| !f.succeeded()).count();
    line(&mut t, &format!("flights that failed: {failed}"));
    t
}

/// What all followers of some flights come to.
fn pooled<'a>(
    flights: impl Iterator<Item = &'a FlightResult>,
    of: impl Fn(&'a FlightResult) -> &'a Spread,
) -> Spread {
    let mut all = Spread::default();
    flights.for_each(|f| all.merge(of(f)));
    all
}

/// The thesis' names of its two channels.
fn channel(scenario: &Scenario) -> &'static str {
    match (&scenario.csma, &scenario.channel) {
        _ if scenario.ns3.is_some() => "ns3",
        (Some(_), _) => "csma",
        (None, Model::Unrestricted) => "ideal",
        (None, Model::FixedRange { .. } | Model::Ieee80211a) => "lossy",
        (None, Model::Table(_)) => "table",
    }
}

/// Formation, number of aircraft and distance; nothing of no swarm.
fn swarm(scenario: &Scenario) -> Option<(&'static str, usize, f64)> {
    let Task::Swarm(swarm) = &scenario.task else { return None };
    Some((swarm.layout.name(), swarm.aircraft, swarm.distance_m))
}

/// Rows of swarms, those with the same key next to each other together, with the scenario of the first.
fn grouped<K: PartialEq>(rows: &[Row], key: impl Fn(&Scenario) -> Option<K>) -> Vec<(&Scenario, Vec<&Row>)> {
    let mut groups: Vec<(&Scenario, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some(scenario) = &row.scenario else { continue };
        match groups.iter_mut().find(|(first, _)| key(first) == key(scenario)) {
            Some((_, group)) => group.push(row),
            None => groups.push((scenario, vec![row])),
        }
    }
    groups
}

fn published_offsets(channel: &str, formation: &str) -> Option<[f64; 6]> {
    PUBLISHED_OFFSETS.lines().filter(|l| !l.starts_with('#')).find_map(|l| {
        let mut cells = l.split(',');
        let is_it = cells.next() == Some(channel) && cells.next() == Some(formation);
        let numbers: Vec<f64> = cells.filter_map(|c| c.parse().ok()).collect();
        is_it.then_some(numbers)?.try_into().ok()
    })
}

/// Thesis Tables 6.1 and 6.3 and ours, each formation and channel. As published, means and deviations are those
/// of each mission, averaged over the missions: a long mission weighs no more than a short one.
pub fn offsets(rows: &[Row]) -> String {
    let mut t = String::new();
    line(&mut t, "                              distance offset (m)        time offset (s)");
    line(&mut t, "channel  formation               mean    max    std      mean    max    std   failed");
    for (scenario, group) in grouped(rows, |s| Some((channel(s), swarm(s)?.0))) {
        let Some((formation, ..)) = swarm(scenario) else { continue };
        let flights = || group.iter().flat_map(|r| &r.flights);
        let over_missions = |of: fn(&FlightResult) -> &Spread| {
            let spreads: Vec<Spread> = group.iter().map(|row| pooled(row.flights.iter(), of)).collect();
            let max = spreads.iter().map(Spread::max).fold(0.0, f64::max);
            [mean(spreads.iter().map(Spread::mean)), max, mean(spreads.iter().map(Spread::deviation))]
        };
        let row = |whose: &str, [a, b, c]: [f64; 3], [d, e, f]: [f64; 3], failed: &str| {
            format!(
                "{:<8} {formation:<10}  {whose:<9}  {a:>6.3} {b:>6.2} {c:>6.3}    {d:>6.3} {e:>6.2} {f:>6.3}   {failed:>6}",
                channel(scenario)
            )
        };
        if let Some([a, b, c, d, e, f]) = published_offsets(channel(scenario), formation) {
            line(&mut t, &row("published", [a, b, c], [d, e, f], ""));
        }
        let failed = flights().filter(|f| !f.succeeded()).count().to_string();
        line(
            &mut t,
            &row(
                "ours",
                over_missions(|f| &f.swarm.distance_offset),
                over_missions(|f| &f.swarm.time_offset),
                &failed,
            ),
        );
    }
    t
}

/// Thesis Figure 6.11: the time offset against the distance between aircraft.
pub fn distance(rows: &[Row]) -> String {
    let mut t = String::new();
    line(&mut t, "              time offset (s)       distance offset (m)   mission time (s)");
    line(&mut t, "distance (m)    mean    max    std    mean     max           mean   failed");
    for (scenario, group) in grouped(rows, swarm) {
        let Some((.., distance_m)) = swarm(scenario) else { continue };
        let flights = || group.iter().flat_map(|r| &r.flights);
        let time = pooled(flights(), |f| &f.swarm.time_offset);
        let offset = pooled(flights(), |f| &f.swarm.distance_offset);
        line(
            &mut t,
            &format!(
                "{distance_m:>12}  {:>6.3} {:>6.2} {:>6.3}  {:>6.3} {:>7.2}   {:>12.1}   {:>6}",
                time.mean(),
                time.max(),
                time.deviation(),
                offset.mean(),
                offset.max(),
                mean(flights().map(|f| f.swarm.mission_time_s)),
                flights().filter(|f| !f.succeeded()).count()
            ),
        );
    }
    line(&mut t, "published: the mean rises with the distance, and does not exceed 1 s up to 300 m");
    t
}

/// Thesis Figure 6.12: datagrams lost against distance, during the mission.
pub fn loss(rows: &[Row]) -> String {
    let mut t = String::new();
    let Some(scenario) = rows.iter().find_map(|r| r.scenario.as_ref()) else { return t };
    let flights = || rows.iter().flat_map(|r| &r.flights);
    line(&mut t, "distance (m)  receptions        lost   share   channel model");
    let reaches = flights().next().map_or(0, |f| f.losses.len());
    for reach in 0..reaches {
        let of = |pick: fn(&Losses) -> u64| flights().map(|f| pick(&f.losses[reach])).sum::<u64>();
        let (sent, lost) = (of(|l| l.sent), of(|l| l.lost));
        if sent == 0 {
            continue;
        }
        let distance_m = reach as f64 * REACH_M;
        let share = lost as f64 / sent as f64;
        let expected = match &scenario.csma {
            Some(_) => "none".to_owned(),
            None => format!("{:.3}", scenario.channel.loss(distance_m)),
        };
        line(&mut t, &format!("{distance_m:>12}  {sent:>10}  {lost:>10}  {share:>6.3}  {expected:>14}"));
    }
    line(&mut t, "published: more than 0.8 for the aircraft at the ends, 1200 m from the leader");
    let failed = flights().filter(|f| !f.succeeded()).count();
    let time = mean(flights().map(|f| f.swarm.mission_time_s));
    line(&mut t, &format!("flights {}, failed {failed}, mission time {time:.1} s", flights().count()));
    t
}

/// Thesis Figure 6.13: flight time against waypoints and number of aircraft.
pub fn scale(rows: &[Row]) -> String {
    let mut t = String::new();
    line(&mut t, "mission time (s), mean");
    let groups = grouped(rows, |s| Some((channel(s), swarm(s)?.1)));
    let waypoints = groups.first().map_or(Vec::new(), |(_, g)| g.iter().map(|r| r.waypoints).collect());
    let head: String = waypoints.iter().map(|w| format!("{w:>8}")).collect();
    line(&mut t, &format!("channel  aircraft  distance  waypoints{head}   separation (m)  failed"));
    for (scenario, group) in groups {
        let Some((_, aircraft, distance_m)) = swarm(scenario) else { continue };
        let cells: String = group
            .iter()
            .map(|r| format!("{:>8.1}", mean(r.flights.iter().map(|f| f.swarm.mission_time_s))))
            .collect();
        let flights = || group.iter().flat_map(|r| &r.flights);
        let separation = flights().map(|f| f.swarm.separation_min_m).fold(f64::INFINITY, f64::min);
        let failed = flights().filter(|f| !f.succeeded()).count();
        line(
            &mut t,
            &format!(
                "{:<8} {aircraft:>8}  {distance_m:>6.2} m           {cells}   {separation:>14.2}  {failed:>6}",
                channel(scenario)
            ),
        );
    }
    line(
        &mut t,
        "published: beyond 450 s with 30 waypoints; neither the number of aircraft nor the channel matters much",
    );
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_geo::Duration;

    #[test]
    fn the_published_tables_are_all_there() {
        assert_eq!(PUBLISHED_OVERHEAD.lines().count(), 8);
        let scenario = Scenario::muscop("14 waypoints", crate::scenario::staircase(14, 1840.0, 10.0));
        let table = overhead(&[Row::of(Some(&scenario), vec![], vec![])]);
        assert!(table.contains("326.00") && table.contains("334.33") && table.contains("8.33"), "{table}");
        for channel in ["ideal", "lossy"] {
            for formation in ["linear", "matrix", "circular"] {
                let [mean, max, deviation, ..] = published_offsets(channel, formation).unwrap();
                assert!(deviation < mean + 0.1 && mean < max, "{channel} {formation}");
            }
        }
        assert_eq!(published_offsets("lossy", "linear").unwrap()[4], 13.8883);
        assert_eq!(published_offsets("lossy", "vee"), None);
    }

    #[test]
    fn figures_of_one_kind_are_put_together_and_others_apart() {
        let flight = |time_offset_s: f64| {
            let mut flight = FlightResult {
                lateness: None,
                delays: None,
                aircraft: vec![],
                swarm: Default::default(),
                encounters: vec![],
                following: Default::default(),
                unprotected: false,
                is_disturbed: false,
                avoidance: vec![],
                losses: Default::default(),
                medium: None,
                flows: Vec::new(),
                radio: Default::default(),
                duration: Duration::ZERO,
                trace_hash: 0,
                warnings: vec![],
                causes: vec![],
            };
            flight.swarm.time_offset.add(time_offset_s);
            flight.losses[2] = Losses { sent: 10, lost: 4 };
            flight
        };
        let mut rows = Vec::new();
        for (model, name, time_offset_s) in
            [(Model::Unrestricted, "a", 1.0), (Model::Unrestricted, "b", 3.0), (Model::Ieee80211a, "a", 5.0)]
        {
            let mut scenario = Scenario::muscop(name, crate::scenario::staircase(4, 600.0, 10.0));
            scenario.channel = model;
            rows.push(Row::of(Some(&scenario), vec![flight(time_offset_s)], vec![]));
        }
        let table = offsets(&rows);
        let ours: Vec<&str> = table.lines().filter(|l| l.contains("ours")).collect();
        assert_eq!(ours.len(), 2, "{table}");
        assert!(ours[0].contains("2.000   3.00  0.000") && ours[1].contains("5.000   5.00"), "{table}");
        let table = loss(&rows);
        assert!(table.contains("         200          30          12   0.400"), "{table}");
        assert!(scale(&rows).contains("lossy           9   50.00 m"), "{}", scale(&rows));
    }
}
