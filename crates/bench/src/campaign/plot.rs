//! Drawings, each the text of an SVG element: figures of all flights of a plan, and the course of one flight.

use anyhow::{Context as _, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use wingbeat_linktest::statistics::mean;
use wingbeat_sim::channel::{Losses, REACH_M};

use crate::course::Course;

const HEIGHT_PX: u32 = 260;
const COLUMN_PX: u32 = 26;
const MARGINS_PX: u32 = 90;
const WIDTH_LEAST_PX: u32 = 360;
const WIDTH_MOST_PX: u32 = 1_600;
const MARGIN_PX: u32 = 8;
const LEFT_PX: u32 = 58;
const BELOW_PX: u32 = 40;
const LABEL_PX: u32 = 12;
/// Drawings of a flight beside each other, two in a row.
const WIDTH_PX: u32 = 530;
/// That of a path is as wide as it is high.
const PATH_HEIGHT_PX: u32 = WIDTH_PX - LEFT_PX + BELOW_PX;
/// Room on a drawing for more points than this is only in the file.
const POINTS_MOST: usize = 300;
/// The bar of an aircraft in the drawing of states.
const BAR_PX: u32 = 18;
const BARS_MOST_PX: u32 = 900;
/// The colours of Okabe and Ito, which the colour-blind tell apart.
pub(super) const COLOURS: [RGBColor; 8] = [
    DOT,
    MEAN,
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0xb5, 0xa8, 0x00),
];
const DOT: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const MEAN: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

pub(super) fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// A figure of all flights: a column for each row of the table, a dot for each flight, a bar at the mean. Nothing where no flight
/// has the figure.
pub(super) fn dots(title: &str, columns: &[Vec<f64>]) -> Result<Option<String>> {
    let values = || columns.iter().flatten().copied();
    let (least, most) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)));
    if !least.is_finite() || !most.is_finite() {
        return Ok(None);
    }
    let room = ((most - least) * 0.08).max(most.abs() * 0.01).max(1e-3);
    let count = columns.len() as f64;
    let width = (columns.len() as u32 * COLUMN_PX + MARGINS_PX).clamp(WIDTH_LEAST_PX, WIDTH_MOST_PX);
    drawn((width, HEIGHT_PX), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 15))
            .margin(MARGIN_PX)
            .x_label_area_size(28)
            .y_label_area_size(LEFT_PX)
            .build_cartesian_2d(0.5..count + 0.5, least - room..most + room)
            .context("a drawing of flights")?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(columns.len().min(20))
            .x_label_formatter(&|x| format!("{x:.0}"))
            .draw()
            .context("axes")?;
        for (i, column) in columns.iter().enumerate() {
            let x = i as f64 + 1.0;
            let dots = column.iter().map(|y| Circle::new((x, *y), 3, DOT.mix(0.6).filled()));
            chart.draw_series(dots).context("dots")?;
            if let Some(mean) = mean(column.iter().copied()) {
                let bar = [(x - 0.3, mean), (x + 0.3, mean)];
                chart.draw_series([PathElement::new(bar, MEAN.stroke_width(2))]).context("means")?;
            }
        }
        Ok(())
    })
    .map(Some)
}

/// Where the aircraft were, seen from above, in one scale for both axes: a ring where each began, a cross where it ended.
pub(super) fn paths(course: &Course) -> Result<Option<String>> {
    let places = || course.aircraft.iter().flat_map(|trace| &trace.place_cm);
    let span = |axis: usize| {
        let along = places().map(move |place| metres(place[axis]));
        along.fold((f64::INFINITY, f64::NEG_INFINITY), |span, m| (span.0.min(m), span.1.max(m)))
    };
    let (east, north) = (span(0), span(1));
    if places().next().is_none() {
        return Ok(None);
    }
    let half_m = ((east.1 - east.0).max(north.1 - north.0) / 2.0 * 1.06).max(5.0);
    let around = |span: (f64, f64)| (span.0 + span.1) / 2.0 - half_m..(span.0 + span.1) / 2.0 + half_m;
    drawn((WIDTH_PX, PATH_HEIGHT_PX), |area| {
        let mut chart =
            builder(area).build_cartesian_2d(around(east), around(north)).context("a drawing of paths")?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc("east (m)").y_desc("north (m)").draw().context("axes")?;
        for (i, trace) in course.aircraft.iter().enumerate() {
            let points = trace.place_cm.iter().map(|place| (metres(place[0]), metres(place[1])));
            let path = thinned(points.collect());
            let ends = path.first().copied().zip(path.last().copied());
            let line = PathElement::new(path, colour(i).stroke_width(1));
            chart.draw_series([line]).context("a path")?;
            if let Some((first, last)) = ends {
                chart.draw_series([Circle::new(first, 4, colour(i).stroke_width(1))]).context("a ring")?;
                chart.draw_series([Cross::new(last, 4, colour(i).stroke_width(2))]).context("a cross")?;
            }
        }
        Ok(())
    })
    .map(Some)
}

/// Figures over the time of a flight, a line of each; where one has no value its line has a gap. Nothing where none has any.
pub(super) fn lines(
    what: &str,
    every_s: f64,
    from_zero: bool,
    lines: &[Vec<Option<f64>>],
) -> Result<Option<String>> {
    let values = || lines.iter().flatten().flatten().copied();
    let (least, most) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)));
    if !least.is_finite() || !most.is_finite() {
        return Ok(None);
    }
    let least = if from_zero { least.min(0.0) } else { least };
    // What never changed is drawn as a level, not as a thousandth.
    let room = if most > least { (most - least) * 0.06 } else { 0.5 };
    let below = if from_zero && least == 0.0 { 0.0 } else { room };
    let end_s = lines.iter().map(|line| line.len().saturating_sub(1)).max().unwrap_or(0) as f64 * every_s;
    drawn((WIDTH_PX, HEIGHT_PX), |area| {
        let mut chart = builder(area)
            .build_cartesian_2d(0.0..end_s.max(1.0), least - below..most + room)
            .context("a drawing over time")?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc("time (s)").y_desc(what).draw().context("axes")?;
        for (i, line) in lines.iter().enumerate() {
            let mut piece = Vec::new();
            let gap = [None];
            for (at, value) in line.iter().chain(&gap).enumerate() {
                match value {
                    Some(value) => piece.push((at as f64 * every_s, *value)),
                    None if piece.is_empty() => {}
                    None => {
                        let line = thinned(std::mem::take(&mut piece));
                        let line = PathElement::new(line, colour(i).stroke_width(1));
                        chart.draw_series([line]).context("a line")?;
                    }
                }
            }
        }
        Ok(())
    })
    .map(Some)
}

/// The states of each aircraft over time, a bar for each, coloured as [`Course::time_in_states`] orders them.
pub(super) fn states(course: &Course) -> Result<Option<String>> {
    let count = course.aircraft.len();
    if course.duration_s() <= 0.0 {
        return Ok(None);
    }
    let order: Vec<&str> = course.time_in_states().into_iter().map(|(state, _)| state).collect();
    let height = (count as u32 * BAR_PX).min(BARS_MOST_PX) + 2 * MARGIN_PX + BELOW_PX;
    drawn((2 * WIDTH_PX, height.max(110)), |area| {
        let mut chart = builder(area)
            .build_cartesian_2d(0.0..course.duration_s(), count as f64 + 0.5..0.5)
            .context("a drawing of states")?;
        let mut mesh = chart.configure_mesh();
        // The library's own size goes by the height, which is that of a few bars.
        mesh.label_style(("sans-serif", LABEL_PX)).axis_desc_style(("sans-serif", LABEL_PX));
        mesh.disable_mesh().x_desc("time (s)").y_desc("aircraft").y_labels(count.min(20));
        mesh.y_label_formatter(&|y| format!("{y:.0}")).draw().context("axes")?;
        for (i, trace) in course.aircraft.iter().enumerate() {
            let y = i as f64 + 1.0;
            for (from_s, to_s, state) in trace.stays(course.duration_s()) {
                let index = order.iter().position(|known| *known == state).unwrap_or(0);
                let corners = [(from_s, y - 0.4), (to_s, y + 0.4)];
                chart
                    .draw_series([Rectangle::new(corners, state_colour(index).filled())])
                    .context("a bar")?;
            }
        }
        Ok(())
    })
    .map(Some)
}

/// A colour for a state, beside [`colour`] paler from the ninth on.
pub(super) fn state_colour(index: usize) -> RGBAColor {
    let round = index / COLOURS.len();
    colour(index).mix(if round == 0 { 0.85 } else { 0.4 })
}

/// What the channel lost, per cent, by distance: a line for each row of the table.
pub(super) fn losses(rows: &[Vec<Losses>]) -> Result<Option<String>> {
    let share = |losses: &Losses| (losses.sent > 0).then(|| losses.lost as f64 / losses.sent as f64 * 100.0);
    let lines: Vec<Vec<(f64, f64)>> = rows
        .iter()
        .map(|row| {
            let known = row.iter().enumerate().filter_map(|(i, one)| Some((i as f64 * REACH_M, share(one)?)));
            known.collect()
        })
        .collect();
    let most_m = lines.iter().flatten().map(|point| point.0).fold(0.0, f64::max);
    if lines.iter().flatten().next().is_none() {
        return Ok(None);
    }
    drawn((WIDTH_PX, HEIGHT_PX), |area| {
        let mut chart =
            builder(area).build_cartesian_2d(0.0..most_m + REACH_M / 2.0, 0.0..103.0).context("losses")?;
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT)
            .x_desc("distance (m)")
            .y_desc("lost (%)")
            .draw()
            .context("axes")?;
        for (i, line) in lines.into_iter().enumerate() {
            let dots = line.iter().map(|point| Circle::new(*point, 3, colour(i).filled()));
            chart.draw_series(dots).context("dots")?;
            chart.draw_series([PathElement::new(line, colour(i).stroke_width(1))]).context("a line")?;
        }
        Ok(())
    })
    .map(Some)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn drawn(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let mut drawing = String::new();
    {
        let area = SVGBackend::with_string(&mut drawing, size).into_drawing_area();
        draw(&area)?;
        area.present().context("the end of a drawing")?;
    }
    Ok(drawing)
}

fn builder<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(MARGIN_PX).x_label_area_size(BELOW_PX).y_label_area_size(LEFT_PX);
    builder
}

fn metres(cm: i32) -> f64 {
    f64::from(cm) / 100.0
}

/// Every so many points, and the last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MOST).max(1);
    let last = points.len().saturating_sub(1);
    points
        .into_iter()
        .enumerate()
        .filter(|(i, _)| i % step == 0 || *i == last)
        .map(|(_, point)| point)
        .collect()
}
