//! What is made of all flights of a campaign, next to their files: the table, a CSV file of flights and one of aircraft, all of
//! it as JSON, and one page that needs no other file.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use wingbeat_linktest::statistics::Summary;
use wingbeat_sim::channel::{Losses, REACHES};

use plotters::style::RGBAColor;

use super::effort::Effort;
use super::row::{FIGURES, FlightRow, groups};
use super::stored::{program, write_whole};
use super::{drawn, plot};
use crate::flight::FlightResult;

/// What was flown, for people.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Name of the plan.
    pub plan: String,
    /// Title of its table.
    pub title: String,
    /// Seed of the campaign.
    pub seed: u64,
    /// Flights of each row.
    pub repeat: u32,
    /// The autopilot, where it is not ArduCopter 3.5.7, simulated.
    pub flown_by: Option<String>,
    /// The plan's text.
    pub configuration: String,
    /// The command that makes these results again.
    pub command: String,
}

/// The statistics of one figure of one row of the table.
#[derive(Clone, Debug, Serialize)]
struct Statistic {
    flight: String,
    figure: &'static str,
    count: usize,
    mean: f64,
    deviation: f64,
    /// The mean's interval, 95 %; none of one flight.
    interval: Option<(f64, f64)>,
    least: f64,
    most: f64,
}

fn statistics(rows: &[FlightRow]) -> Vec<Statistic> {
    let mut all = Vec::new();
    for (flight, rows) in groups(rows) {
        for (figure, of) in FIGURES {
            let Some(s) = Summary::of(rows.iter().filter_map(|row| of(row))) else { continue };
            all.push(Statistic {
                flight: flight.clone(),
                figure,
                count: s.count,
                mean: s.mean,
                deviation: s.deviation,
                interval: s.half_width.map(|h| (s.mean - h, s.mean + h)),
                least: s.range.0,
                most: s.range.1,
            });
        }
    }
    all
}

/// Writes `table.txt`, `flights.csv`, `aircraft.csv`, `results.json` and `index.html`. The same flights make the same bytes, but for
/// what `index.html` states of the processes that flew them.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write(
    folder: &Path,
    about: &About,
    table: &str,
    rows: &[FlightRow],
    flights: &[FlightResult],
) -> Result<()> {
    write_whole(&folder.join("table.txt"), table.as_bytes())?;
    write_whole(&folder.join("flights.csv"), &csv(rows)?)?;
    write_whole(&folder.join("aircraft.csv"), &csv(&aircraft(rows, flights))?)?;
    let statistics = statistics(rows);
    let json = Json { about, program: program(), table, statistics: &statistics, flights: rows };
    write_whole(&folder.join("results.json"), &serde_json::to_vec_pretty(&json)?)?;
    write_whole(
        &folder.join("index.html"),
        page(folder, about, table, rows, flights, &statistics)?.as_bytes(),
    )
}

#[derive(Serialize)]
struct Json<'a> {
    about: &'a About,
    program: String,
    table: &'a str,
    statistics: &'a [Statistic],
    flights: &'a [FlightRow],
}

#[derive(Serialize)]
struct AircraftRow<'a> {
    key: &'a str,
    flight: &'a str,
    seed: u64,
    /// From 1.
    aircraft: usize,
    flight_time_s: f64,
    distance_m: f64,
    error_mean_m: f64,
    error_max_m: f64,
    completed: bool,
}

fn aircraft<'a>(rows: &'a [FlightRow], flights: &[FlightResult]) -> Vec<AircraftRow<'a>> {
    let mut all = Vec::new();
    for (row, flight) in rows.iter().zip(flights) {
        for (i, a) in flight.aircraft.iter().enumerate() {
            all.push(AircraftRow {
                key: &row.key,
                flight: &row.flight,
                seed: row.seed,
                aircraft: i + 1,
                flight_time_s: a.flight_time_s,
                distance_m: a.distance_m,
                error_mean_m: a.error_mean_m,
                error_max_m: a.error_max_m,
                completed: a.completed,
            });
        }
    }
    all
}

/// With a line of names.
pub fn csv<T: Serialize>(rows: &[T]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row)).context("a row of CSV")?;
    writer.into_inner().context("the end of CSV")
}

/// What is drawn.
const DRAWN: [&str; 6] = [
    "mission_time_s",
    "flight_time_most_s",
    "separation_least_m",
    "distance_offset_mean_m",
    "formation_error_mean_m",
    "lost",
];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;\
    color:#1a1a1a;background:#fff}pre{overflow-x:auto;background:#f5f5f5;padding:.75rem;font-size:13px}\
    table{border-collapse:collapse;font-size:13px}td,th{padding:.15rem .6rem;border-bottom:1px solid #ddd;text-align:right}\
    td:first-child,th:first-child{text-align:left}.wide{overflow-x:auto}svg{max-width:100%;height:auto}\
    figure{margin:.5rem 0}figure svg{display:block}figcaption{font-size:13px;color:#444}.pair{display:grid;\
    grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.5rem}summary{cursor:pointer;padding:.3rem 0;\
    font-weight:600}";

fn page(
    folder: &Path,
    about: &About,
    table: &str,
    rows: &[FlightRow],
    flights: &[FlightResult],
    statistics: &[Statistic],
) -> Result<String> {
    let mut t = String::new();
    let title = escaped(&about.title);
    let failed = rows.iter().filter(|row| !row.is_good).count();
    // Writing to a string does not fail.
    let _ = write!(
        t,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><h1>{title}</h1>\n<p>{} flights, {failed} failed, seed {}, {} flights per row, wingbeat {}; autopilot: {}.</p>\n\
         <h2>Table</h2>\n<pre>{}</pre>\n<h2>Figures</h2>\n<p>A column for each row, a dot for each flight, a bar at the mean.</p>\n",
        rows.len(),
        about.seed,
        about.repeat,
        escaped(&program()),
        escaped(about.flown_by.as_deref().unwrap_or("ArduCopter 3.5.7, simulated")),
        escaped(table),
    );
    let groups = groups(rows);
    for name in DRAWN {
        let columns: Vec<Vec<f64>> =
            groups.iter().map(|(_, rows)| rows.iter().filter_map(|row| row.figure(name)).collect()).collect();
        if columns.iter().flatten().all(|value| *value == 0.0) {
            continue;
        }
        if let Some(drawing) = plot::dots(name, &columns)? {
            t.push_str(&drawing);
        }
    }
    t.push_str("<ol>");
    for (i, (name, _)) in groups.iter().enumerate() {
        let _ = write!(t, "<li>{}{}</li>", swatch(plot::colour(i).into()), escaped(name));
    }
    t.push_str("</ol>\n");
    if let Some(drawing) = plot::losses(&losses(rows, flights))? {
        t.push_str("<h2>Radio</h2>\n<figure>");
        t.push_str(&drawing);
        t.push_str(
            "<figcaption>Receptions that the channel prevented between start and landing, by distance; \
             colours as in the list above</figcaption></figure>\n",
        );
    }
    t.push_str(&drawn::section(folder, rows)?);
    t.push_str(
        "<h2>Statistics</h2>\n<div class=\"wide\"><table><tr><th>flight</th><th>figure</th><th>flights</th>\
                <th>mean</th><th>95 % interval</th><th>deviation</th><th>least</th><th>most</th></tr>\n",
    );
    for s in statistics {
        let interval = s.interval.map_or_else(|| "-".to_owned(), |(a, b)| format!("{a:.3} to {b:.3}"));
        let _ = writeln!(
            t,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{interval}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td></tr>",
            escaped(&s.flight),
            s.figure,
            s.count,
            s.mean,
            s.deviation,
            s.least,
            s.most
        );
    }
    t.push_str("</table></div>\n<h2>Flights</h2>\n<div class=\"wide\"><table><tr><th>flight</th><th>seed</th><th>as expected</th>\
                <th>time (s)</th><th>separation (m)</th><th>collisions</th><th>sent</th><th>lost</th><th>trace</th></tr>\n");
    for row in rows {
        let separation = row.separation_least_m.map_or_else(|| "-".to_owned(), |m| format!("{m:.2}"));
        let _ = writeln!(
            t,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{separation}</td><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
            escaped(&row.flight),
            row.seed,
            match (&row.cause, row.is_good) {
                (_, true) => "yes".to_owned(),
                (Some(cause), false) => format!("no: {}", escaped(cause)),
                (None, false) => "no".to_owned(),
            },
            row.flight_time_most_s,
            row.collisions,
            row.sent,
            row.lost,
            row.trace
        );
    }
    t.push_str("</table></div>\n");
    t.push_str(&efforts(&Effort::read_all(folder)));
    let _ = write!(
        t,
        "<h2>Again</h2>\n<pre>{}</pre>\n<h2>Plan</h2>\n<pre>{}</pre>\n</body></html>\n",
        escaped(&about.command),
        escaped(&about.configuration)
    );
    Ok(t)
}

/// What the channel lost by distance, of all flights of each row, in the order of [`groups`].
fn losses(rows: &[FlightRow], flights: &[FlightResult]) -> Vec<Vec<Losses>> {
    let of = |keys: &[&FlightRow]| {
        let mut sum = vec![Losses::default(); REACHES];
        for (row, flight) in rows.iter().zip(flights) {
            if keys.iter().any(|known| known.key == row.key) {
                for (sum, one) in sum.iter_mut().zip(&flight.losses) {
                    (sum.sent, sum.lost) = (sum.sent + one.sent, sum.lost + one.lost);
                }
            }
        }
        sum
    };
    groups(rows).iter().map(|(_, rows)| of(rows)).collect()
}

/// What the processes used.
fn efforts(all: &[Effort]) -> String {
    let mut t = String::from("<h2>CPU</h2>\n");
    if all.is_empty() {
        t.push_str("<p>No process that flew these ended its work.</p>\n");
        return t;
    }
    let sum = |of: fn(&Effort) -> f64| all.iter().map(of).sum::<f64>();
    let (virtual_s, cpu_s) = (sum(|e| e.virtual_s), sum(|e| e.cpu_s));
    let _ = write!(
        t,
        "<p>{virtual_s:.0} s were flown in {cpu_s:.1} s of one core: {:.0} times real time. Processes of ArduCopter and ns-3, \
         and those that were killed, are not in it.</p>\n<div class=\"wide\"><table><tr><th>machine</th><th>shard</th>\
         <th>flights</th><th>threads</th><th>flown (s)</th><th>CPU (s)</th><th>took (s)</th></tr>\n",
        virtual_s / cpu_s.max(1e-3)
    );
    for one in all {
        let _ = writeln!(
            t,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td>{:.1}</td><td>{:.1}</td></tr>",
            escaped(&one.machine),
            escaped(&one.shard),
            one.flights,
            one.threads,
            one.virtual_s,
            one.cpu_s,
            one.wall_s
        );
    }
    t.push_str("</table></div>\n");
    t
}

/// A small square of a colour, for a legend.
pub(super) fn swatch(colour: RGBAColor) -> String {
    let RGBAColor(r, g, b, opacity) = colour;
    format!(
        "<svg width=\"11\" height=\"11\" viewBox=\"0 0 11 11\"><rect width=\"10\" height=\"10\" fill=\"rgb({r},{g},{b})\" \
         opacity=\"{opacity}\"/></svg> "
    )
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
