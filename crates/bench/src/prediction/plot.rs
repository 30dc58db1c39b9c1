//! The figures as a drawing (SVG): largest error of each beacon over the flight, and mean error of each
//! predicted location, as thesis figures 5.4 to 5.6, 5.8, 5.15 and 5.16 show them.

use std::fmt::Write as _;

use super::table::ahead_m;
use super::{Alternative, Flown};

const WIDTH_PX: f64 = 900.0;
const PANEL_PX: f64 = 300.0;
const MARGIN_PX: f64 = 55.0;

/// One curve.
struct Curve {
    name: &'static str,
    colour: &'static str,
    points: Vec<(f64, f64)>,
}

/// The drawing.
pub fn svg(all: &[Flown]) -> String {
    let over_time = all.iter().map(|flown| Curve {
        name: flown.alternative.name(),
        colour: colour(flown.alternative),
        points: flown.beacons.iter().map(|b| (b.at_s, b.max_m())).collect(),
    });
    let ahead = all.iter().map(|flown| Curve {
        name: flown.alternative.name(),
        colour: colour(flown.alternative),
        points: (0..)
            .map_while(|hop| Some((hop as f64 * flown.hop_s, ahead_m(flown, hop)?.0)))
            .take_while(|(ahead_s, _)| *ahead_s <= AHEAD_MOST_S)
            .collect(),
    });
    let height_px = 2.0 * (PANEL_PX + MARGIN_PX * 1.5);
    let mut t = String::new();
    let _ = writeln!(
        t,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH_PX} {height_px}\" \
         font-family=\"sans-serif\" font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    let below_px = PANEL_PX + MARGIN_PX * 1.5;
    panel(
        &mut t,
        0.0,
        "largest error of each beacon (m)",
        "time since the mission began (s)",
        &over_time.collect::<Vec<_>>(),
    );
    panel(&mut t, below_px, "mean error of each location (m)", "time ahead (s)", &ahead.collect::<Vec<_>>());
    t.push_str("</svg>\n");
    t
}

/// At 15 m/s locations farther ahead lie beyond the threshold.
const AHEAD_MOST_S: f64 = 8.0;

fn colour(alternative: Alternative) -> &'static str {
    // Distinguishable to the colour-blind (Okabe and Ito).
    match alternative {
        Alternative::One => "#e69f00",
        Alternative::Two => "#56b4e9",
        Alternative::Three => "#d55e00",
        Alternative::Enhanced => "#009e73",
    }
}

fn panel(t: &mut String, top_px: f64, title: &str, below: &str, curves: &[Curve]) {
    let points = || curves.iter().flat_map(|c| &c.points);
    let x_most = points().map(|p| p.0).fold(1.0, f64::max);
    let y_most = points().map(|p| p.1).fold(1.0, f64::max) * 1.05;
    let (left, top) = (MARGIN_PX, top_px + MARGIN_PX * 0.7);
    let (width, height) = (WIDTH_PX - 2.0 * MARGIN_PX, PANEL_PX - MARGIN_PX * 0.5);
    let x_px = |x: f64| left + x / x_most * width;
    let y_px = |y: f64| top + height - y / y_most * height;
    // Writing to a string does not fail.
    let _ = writeln!(t, "<text x=\"{left}\" y=\"{}\">{title}</text>", top - 10.0);
    for (most, vertical) in [(x_most, true), (y_most, false)] {
        let step = step(most);
        for n in 0..=(most / step) as usize {
            let value = n as f64 * step;
            let (x, y) = if vertical { (x_px(value), top + height) } else { (left, y_px(value)) };
            let (x2, y2) = if vertical { (x, top) } else { (left + width, y) };
            let _ = writeln!(
                t,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
            );
            let (x, y, anchor) = if vertical { (x, y + 15.0, "middle") } else { (x - 6.0, y + 4.0, "end") };
            let _ = writeln!(t, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{value}</text>");
        }
    }
    let (middle, bottom) = (left + width / 2.0, top + height + 32.0);
    let _ = writeln!(t, "<text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">{below}</text>");
    for (i, curve) in curves.iter().enumerate() {
        let path: String =
            curve.points.iter().map(|&(x, y)| format!("{:.1},{:.1} ", x_px(x), y_px(y))).collect();
        let (colour, name) = (curve.colour, curve.name);
        let _ = writeln!(
            t,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            path.trim_end()
        );
        // Beside the title, where no curve is.
        let (x, y) = (left + width - 110.0 * (curves.len() - i) as f64, top - 10.0);
        let _ = writeln!(t, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>");
    }
}

/// A round step that divides an axis into four to ten.
fn step(most: f64) -> f64 {
    let decade = decade_below(most / 10.0);
    [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|s| most / s <= 10.0).unwrap_or(most)
}

/// The power of ten below.
fn decade_below(value: f64) -> f64 {
    10f64.powf(value.max(1e-9).log10().floor())
}
