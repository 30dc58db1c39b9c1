//! The errors as an SVG drawing: the largest error of each beacon over time, and the mean error of each
//! predicted location, as thesis figures 5.4 to 5.6, 5.8, 5.15 and 5.16 show them.

use anyhow::{Context as _, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::table::ahead_m;
use super::{Alternative, Flown};

const SIZE_PX: (u32, u32) = (900, 750);
/// At 15 m/s locations farther ahead lie beyond the threshold.
const AHEAD_MAX_S: f64 = 8.0;

/// Error over time of one alternative.
struct Curve {
    alternative: Alternative,
    points: Vec<(f64, f64)>,
}

/// The text of an SVG file.
///
/// # Errors
/// The plotting library failed.
pub fn svg(all: &[Flown]) -> Result<String> {
    let over_time = all.iter().map(|flown| Curve {
        alternative: flown.alternative,
        points: flown.beacons.iter().map(|b| (b.at_s, b.max_m())).collect(),
    });
    let ahead = all.iter().map(|flown| Curve {
        alternative: flown.alternative,
        points: (0..)
            .map_while(|hop| Some((hop as f64 * flown.hop_s, ahead_m(flown, hop)?.0)))
            .take_while(|(ahead_s, _)| *ahead_s <= AHEAD_MAX_S)
            .collect(),
    });
    let mut drawing = String::new();
    {
        let area = SVGBackend::with_string(&mut drawing, SIZE_PX).into_drawing_area();
        area.fill(&WHITE).context("the background")?;
        let (above, below) = area.split_vertically(SIZE_PX.1 / 2);
        let over_time: Vec<_> = over_time.collect();
        panel(&above, "largest error of each beacon (m)", "time since the mission began (s)", &over_time)?;
        panel(&below, "mean error of each location (m)", "time ahead (s)", &ahead.collect::<Vec<_>>())?;
        area.present().context("the end of the drawing")?;
    }
    Ok(drawing)
}

/// Distinguishable to the colour-blind (Okabe and Ito).
pub(super) fn colour(alternative: Alternative) -> RGBColor {
    match alternative {
        Alternative::One => RGBColor(0xe6, 0x9f, 0x00),
        Alternative::Two => RGBColor(0x56, 0xb4, 0xe9),
        Alternative::Three => RGBColor(0xd5, 0x5e, 0x00),
        Alternative::Enhanced => RGBColor(0x00, 0x9e, 0x73),
    }
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &'static str,
    x_axis: &'static str,
    curves: &[Curve],
) -> Result<()> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x_max = points().map(|p| p.0).fold(1.0, f64::max);
    let y_max = points().map(|p| p.1).fold(1.0, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(45)
        .build_cartesian_2d(0.0..x_max, 0.0..y_max)
        .context(title)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc(x_axis).draw().context(title)?;
    for curve in curves {
        let style = colour(curve.alternative).stroke_width(2);
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), style))
            .context(title)?
            .label(curve.alternative.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw().context(title)?;
    Ok(())
}
