//! The courses of the flights that the page draws, a file for each, and their part of the page.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::plot;
use super::results::{escaped, swatch};
use super::row::FlightRow;
use super::stored::write_whole;
use crate::course::Course;

/// Flights on one page that went as expected, and that did not; the courses of others are files alone.
const GOOD_MOST: usize = 12;
const FAILED_MOST: usize = 6;
/// Swatches in a legend: colours repeat.
const LEGEND_MOST: usize = 32;

fn file(folder: &Path, key: &str) -> PathBuf {
    folder.join("courses").join(format!("{key}.json"))
}

/// Writes the course of a flight.
///
/// # Errors
/// Names the file.
pub(super) fn write(folder: &Path, key: &str, course: &Course) -> Result<()> {
    let path = file(folder, key);
    let here = || path.display().to_string();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(here)?;
    }
    let mut text = serde_json::to_vec(course).with_context(here)?;
    text.push(b'\n');
    write_whole(&path, &text)
}

/// One that is missing or damaged is not drawn: it decides about nothing.
fn read(folder: &Path, key: &str) -> Option<Course> {
    serde_json::from_slice(&fs::read(file(folder, key)).ok()?).ok()
}

/// The part of the page: paths, heights, separation, error in the formation, radio, batteries and states of flights.
///
/// # Errors
/// A drawing that cannot be made.
pub(super) fn section(folder: &Path, rows: &[FlightRow]) -> Result<String> {
    let some = |is_good: bool, most: usize| {
        let these = rows.iter().filter(move |row| row.is_good == is_good);
        these.filter_map(|row| Some((row, read(folder, &row.key)?))).take(most)
    };
    let known: Vec<(&FlightRow, Course)> = some(true, GOOD_MOST).chain(some(false, FAILED_MOST)).collect();
    let mut t = String::from("<h2>Courses</h2>\n");
    if known.is_empty() {
        t.push_str("<p>None was written.</p>\n");
        return Ok(t);
    }
    let there = rows.iter().filter(|row| file(folder, &row.key).is_file()).count();
    let left_out = there.saturating_sub(known.len());
    t.push_str(
        "<p>The first flight of each row, and each that failed: true places, metres from the flight's origin. \
         A ring is the beginning, a cross the end. Time begins when motors were first armed.</p>\n",
    );
    if left_out > 0 {
        let _ = writeln!(t, "<p>{left_out} more are in <code>courses</code>, not on this page.</p>");
    }
    for (i, (row, course)) in known.iter().enumerate() {
        let open = if i == 0 { " open" } else { "" };
        let reference = if row.is_reference { " (reference)" } else { "" };
        let outcome = if row.is_good { "" } else { ", not as expected" };
        let _ = writeln!(
            t,
            "<details{open}><summary>{}{reference}, seed {}{outcome}</summary>\n<p>{}</p><div class=\"pair\">",
            escaped(&row.flight),
            row.seed,
            legend(course.aircraft.len()),
        );
        for drawing in drawings(course)? {
            t.push_str(&drawing);
        }
        let _ = writeln!(t, "</div>\n{}</details>", states(course)?);
    }
    Ok(t)
}

fn legend(aircraft: usize) -> String {
    let mut t = String::from("aircraft");
    for i in 0..aircraft.min(LEGEND_MOST) {
        let _ = write!(t, " {}{}", swatch(plot::colour(i).into()), i + 1);
    }
    if aircraft > LEGEND_MOST {
        let _ = write!(t, " to {aircraft}, colours repeat");
    }
    t
}

/// With their captions.
fn drawings(course: &Course) -> Result<Vec<String>> {
    let heights: Vec<Vec<Option<f64>>> = course
        .aircraft
        .iter()
        .map(|trace| {
            let stood_cm = trace.place_cm.first().map_or(0, |place| place[2]);
            trace.place_cm.iter().map(|place| Some(f64::from(place[2] - stood_cm) / 100.0)).collect()
        })
        .collect();
    let batteries: Vec<Vec<Option<f64>>> = course
        .aircraft
        .iter()
        .map(|trace| trace.battery_percent.iter().map(|p| p.map(f64::from)).collect())
        .collect();
    let lost: Vec<Option<f64>> = course
        .receptions
        .iter()
        .map(|(all, lost)| (*all > 0).then(|| *lost as f64 / *all as f64 * 100.0))
        .collect();
    let over_time = |what: &str, from_zero, lines: &[Vec<Option<f64>>]| {
        plot::lines(what, course.every_s, from_zero, lines)
    };
    let one = |line: &Vec<Option<f64>>| vec![line.clone()];
    let all = [
        ("Paths from above", plot::paths(course)?),
        ("Heights above where each stood", over_time("height (m)", true, &heights)?),
        (
            "Separation: the nearest two of which one flew",
            over_time("distance (m)", true, &one(&course.separation_m))?,
        ),
        (
            "Error in the formation: mean distance from the slot",
            over_time("error (m)", true, &one(&course.error_m))?,
        ),
        ("Radio: receptions that the channel prevented", over_time("lost (%)", true, &one(&lost))?),
        ("Batteries", over_time("charge (%)", false, &batteries)?),
    ];
    let figure = |(caption, drawing): (&str, Option<String>)| {
        Some(format!("<figure>{}<figcaption>{caption}</figcaption></figure>\n", drawing?))
    };
    Ok(all.into_iter().filter_map(figure).collect())
}

fn states(course: &Course) -> Result<String> {
    let Some(drawing) = plot::states(course)? else { return Ok(String::new()) };
    let mut t = format!("<figure>{drawing}<figcaption>States</figcaption></figure>\n");
    t.push_str("<table><tr><th>time in state (s)</th><th>mean</th><th>least</th><th>most</th></tr>\n");
    for (i, (state, times)) in course.time_in_states().into_iter().enumerate() {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let swatch = swatch(plot::state_colour(i));
        let _ = writeln!(
            t,
            "<tr><td>{swatch}{}</td><td>{mean:.1}</td><td>{least:.1}</td><td>{most:.1}</td></tr>",
            escaped(state)
        );
    }
    t.push_str("</table>\n");
    Ok(t)
}
