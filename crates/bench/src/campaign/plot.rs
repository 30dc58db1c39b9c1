//! A figure of all flights as a drawing: a column for each row of the table, a dot for each flight, a bar at the mean.

use anyhow::{Context as _, Result};
use plotters::prelude::*;
use wingbeat_linktest::statistics::mean;

const HEIGHT_PX: u32 = 260;
const COLUMN_PX: u32 = 26;
const MARGINS_PX: u32 = 90;
const WIDTH_LEAST_PX: u32 = 360;
const WIDTH_MOST_PX: u32 = 1_600;
/// Okabe and Ito's blue, which the colour-blind see.
const DOT: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const MEAN: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

/// The text of an SVG element; nothing where no flight has the figure.
pub(super) fn dots(title: &str, columns: &[Vec<f64>]) -> Result<Option<String>> {
    let values = || columns.iter().flatten().copied();
    let (least, most) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |r, v| (r.0.min(v), r.1.max(v)));
    if !least.is_finite() || !most.is_finite() {
        return Ok(None);
    }
    let room = ((most - least) * 0.08).max(most.abs() * 0.01).max(1e-3);
    let count = columns.len() as f64;
    let width = (columns.len() as u32 * COLUMN_PX + MARGINS_PX).clamp(WIDTH_LEAST_PX, WIDTH_MOST_PX);
    let mut drawing = String::new();
    {
        let area = SVGBackend::with_string(&mut drawing, (width, HEIGHT_PX)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(28)
            .y_label_area_size(58)
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
        area.present().context("the end of a drawing")?;
    }
    Ok(Some(drawing))
}
