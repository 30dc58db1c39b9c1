//! `wingbeat fleet spacing`: how far apart aircraft that stand report to be, how that wanders, and what `gnss_error_m` covers it.
//!
//! No aircraft can see a constant offset between two receivers by itself. A tape can: with the distance that a person measured
//! between two of them, the offset is known before they fly (docs/separation.md).

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wingbeat_api::{FleetAircraft, FleetPicture, LinkState, paths};
use wingbeat_geo::{DVec2, Frame, Position};
use wingbeat_ground::remote::Remote;

use super::orders::id_of;
use super::service::Service;
use super::{Code, show};

/// Positions are read this often: flight controllers report theirs four times a second.
const EVERY: Duration = Duration::from_millis(500);
/// Fewer samples than this give no deviation.
const SAMPLES_LEAST: usize = 10;
/// The budget takes so many standard deviations of the difference of two positions.
const DEVIATIONS: f64 = 4.0;

/// Arguments of `wingbeat fleet spacing`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Time for which positions are read, seconds; a quarter of an hour shows how they wander.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(5..=3600))]
    seconds: u16,
    /// Distance between two aircraft as measured with a tape, metres: AIRCRAFT AIRCRAFT METRES. Give it again for each pair.
    #[arg(long, num_args = 3, value_names = ["AIRCRAFT", "AIRCRAFT", "METRES"])]
    measured: Vec<String>,
    #[command(flatten)]
    pub(crate) service: Service,
}

/// Two aircraft that stand.
#[derive(Debug, PartialEq, Serialize)]
struct Pair {
    /// Their ids.
    aircraft: [String; 2],
    /// Mean distance between their reported positions over the ground, metres.
    reported_m: f64,
    /// Standard deviation of the difference of their positions, the larger of both axes, metres; absent of too few samples.
    deviation_m: Option<f64>,
    /// Distance measured with a tape, metres.
    measured_m: Option<f64>,
    /// The least `gnss_error_m` that covers the deviation and, where a tape was used, the offset, metres.
    gnss_error_m: Option<f64>,
}

impl Pair {
    /// Makes a pair from samples of the way from one to the other, metres east and north.
    fn new(aircraft: [String; 2], samples: &[DVec2], measured_m: Option<f64>) -> Self {
        let count = samples.len().max(1) as f64;
        let mean_m = samples.iter().fold(DVec2::ZERO, |sum, &at| sum + at) / count;
        let square = samples.iter().fold(DVec2::ZERO, |sum, &at| sum + (at - mean_m) * (at - mean_m)) / count;
        let deviation_m = (samples.len() >= SAMPLES_LEAST).then(|| square.x.max(square.y).sqrt());
        let reported_m = mean_m.length();
        let gnss_error_m = deviation_m.map(|deviation_m| {
            let offset_m = measured_m.map_or(0.0, |measured_m| (reported_m - measured_m).abs());
            (offset_m + DEVIATIONS * deviation_m) / (DEVIATIONS * std::f64::consts::SQRT_2)
        });
        Self { aircraft, reported_m, deviation_m, measured_m, gnss_error_m }
    }
}

/// Reads the distances that a person measured.
fn measured(picture: &FleetPicture, words: &[String]) -> Result<BTreeMap<[String; 2], f64>> {
    let mut all = BTreeMap::new();
    for words in words.chunks(3) {
        let [one, other, metres] = words else { bail!("--measured: expected AIRCRAFT AIRCRAFT METRES") };
        let mut pair = [id_of(picture, one)?, id_of(picture, other)?];
        let Some(metres) = metres.parse().ok().filter(|m: &f64| m.is_finite() && *m > 0.0) else {
            bail!("--measured {one} {other}: found {metres:?}, expected metres above 0");
        };
        if pair[0] == pair[1] {
            bail!("--measured: found {one} twice, expected two aircraft");
        }
        pair.sort();
        all.insert(pair, metres);
    }
    Ok(all)
}

/// Returns the position of an aircraft that is received and stands disarmed.
fn stands_at(aircraft: &FleetAircraft) -> Option<(String, Position)> {
    let status = aircraft.status.as_ref().filter(|_| aircraft.link == LinkState::Up)?;
    let at = status.navigation.as_ref().filter(|_| !status.flight_controller.armed)?.position;
    let position = Position::from_degrees(at.latitude_deg, at.longitude_deg, at.altitude_m).ok()?;
    Some((status.id.clone(), position))
}

pub(crate) async fn run(remote: &Remote, arguments: &Arguments) -> Result<Code> {
    let mut picture: FleetPicture = remote.get(paths::FLEET).await?;
    let tape = measured(&picture, &arguments.measured)?;
    let mut samples: BTreeMap<[String; 2], Vec<DVec2>> = BTreeMap::new();
    let rounds = Duration::from_secs(arguments.seconds.into()).as_millis() / EVERY.as_millis();
    for _ in 0..rounds {
        let mut standing: Vec<_> = picture.aircraft.iter().filter_map(stands_at).collect();
        standing.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (index, (id, at)) in standing.iter().enumerate() {
            let frame = Frame::new(*at);
            for (other, there) in &standing[index + 1..] {
                let way_m = frame.to_local(*there).truncate();
                samples.entry([id.clone(), other.clone()]).or_default().push(way_m);
            }
        }
        tokio::time::sleep(EVERY).await;
        picture = remote.get(paths::FLEET).await?;
    }
    if let Some(pair) = tape.keys().find(|pair| !samples.contains_key(*pair)) {
        let names = pair.each_ref().map(|id| show::name_of(&picture, id));
        bail!(
            "{} and {}: found no positions of both on the ground, disarmed and received",
            names[0],
            names[1]
        );
    }
    let pairs: Vec<Pair> = samples
        .into_iter()
        .map(|(pair, samples)| {
            let measured_m = tape.get(&pair).copied();
            Pair::new(pair, &samples, measured_m)
        })
        .collect();
    show::answer(arguments.service.json, &pairs, |pairs| shown(&picture, pairs))?;
    Ok(if pairs.is_empty() { Code::NotAll } else { Code::Done })
}

fn shown(picture: &FleetPicture, pairs: &[Pair]) -> String {
    if pairs.is_empty() {
        return "No two aircraft stand disarmed and report their positions.\n".to_owned();
    }
    let metres = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |m| format!("{m:.2}"));
    let rows: Vec<Vec<String>> = pairs
        .iter()
        .map(|pair| {
            let [one, other] = pair.aircraft.each_ref().map(|id| show::name_of(picture, id));
            let offset_m = pair.measured_m.map(|measured_m| pair.reported_m - measured_m);
            vec![
                one,
                other,
                format!("{:.2}", pair.reported_m),
                metres(pair.deviation_m),
                metres(pair.measured_m),
                metres(offset_m),
                metres(pair.gnss_error_m),
            ]
        })
        .collect();
    let head =
        ["aircraft", "aircraft", "reported m", "deviation m", "measured m", "offset m", "gnss_error_m"];
    let mut text = show::table(&head, &rows);
    let most_m = pairs.iter().filter_map(|pair| pair.gnss_error_m).fold(0.0, f64::max);
    text.push_str(&format!(
        "State gnss_error_m = {:.1} or more on every aircraft.\n",
        (most_m * 10.0).ceil() / 10.0
    ));
    if pairs.iter().any(|pair| pair.measured_m.is_none()) {
        text.push_str("Offsets between receivers are not known of pairs without --measured.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(samples: &[DVec2], measured_m: Option<f64>) -> Pair {
        Pair::new(["a".to_owned(), "b".to_owned()], samples, measured_m)
    }

    #[test]
    fn an_offset_that_a_tape_shows_and_the_wandering_are_covered_together() {
        // 10 m to the east on average, by turns half a metre more and less.
        let samples: Vec<DVec2> =
            (0..20).map(|i| DVec2::new(if i % 2 == 0 { 10.5 } else { 9.5 }, 0.0)).collect();
        let wanders = pair(&samples, None);
        assert_eq!((wanders.reported_m, wanders.deviation_m), (10.0, Some(0.5)));
        let covers_m = wanders.gnss_error_m.unwrap();
        assert!((covers_m - 0.5 / std::f64::consts::SQRT_2).abs() < 1e-9, "{covers_m}");
        let offset = pair(&samples, Some(8.0)).gnss_error_m.unwrap();
        assert!((offset - 4.0 / (4.0 * std::f64::consts::SQRT_2)).abs() < 1e-9, "{offset}");
    }

    #[test]
    fn too_few_samples_state_no_error() {
        let few = pair(&[DVec2::new(3.0, 4.0); 3], Some(5.0));
        assert_eq!((few.reported_m, few.deviation_m, few.gnss_error_m), (5.0, None, None));
    }
}
