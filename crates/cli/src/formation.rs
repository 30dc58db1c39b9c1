//! `wingbeat formation`: lists the slots of a formation, and checks a file of them.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use wingbeat_geo::Formation;
use wingbeat_geo::formation::Layout;
use wingbeat_onboard::formation;

/// Arguments of `wingbeat formation`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The formation; without it, all formations are listed.
    name: Option<Layout>,
    /// How many aircraft: 9, or as many as the file of a custom formation has slots.
    #[arg(long, value_name = "N")]
    aircraft: Option<usize>,
    /// Least distance between two of them over the ground, metres.
    #[arg(long, value_name = "M", default_value_t = 50.0)]
    distance: f64,
    /// Heading, degrees clockwise from north.
    #[arg(long, value_name = "DEG", default_value_t = 0.0)]
    heading: f64,
    /// The slots of a custom formation.
    #[arg(long)]
    file: Option<PathBuf>,
}

/// Prints one line per slot: where it is, seen from the slot that leads. Without a name, one line per formation.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let text = match arguments.name {
        Some(layout) => slots(layout, arguments)?,
        None => Layout::ALL.map(|l| format!("{:14}  {}\n", l.to_string(), l.appearance())).concat(),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the list")
}

fn slots(layout: Layout, arguments: &Arguments) -> Result<String> {
    let distance_m = arguments.distance;
    let formation = if layout == Layout::Custom {
        let file = arguments.file.as_ref().context("--file: found none, expected the file of the slots")?;
        let offsets = formation::read(file).map_err(|cause| anyhow!("--file {cause}"))?;
        let count = arguments.aircraft.unwrap_or(offsets.len());
        Formation::custom(&offsets, count, distance_m)
            .with_context(|| format!("--file {}", file.display()))?
    } else {
        ensure!(arguments.file.is_none(), "--file: found one, expected it with custom only");
        Formation::new(layout, arguments.aircraft.unwrap_or(9), distance_m)?
    };
    let slots = formation.offsets_m(arguments.heading.to_radians()).context("--heading")?;
    let mut text = format!("{layout}, {} aircraft, at least {distance_m} m apart\n", formation.count());
    text += "slot   east (m)  north (m)     up (m)\n";
    for (slot, at) in slots.iter().enumerate() {
        let leads = if slot == formation.center_slot() { "  leads" } else { "" };
        // Adding zero turns a negative zero into a positive one.
        let [east, north, up] = [at.x, at.y, at.z].map(|m| (m * 100.0).round() / 100.0 + 0.0);
        text += &format!("{slot:4} {east:10.2} {north:10.2} {up:10.2}{leads}\n");
    }
    Ok(text)
}
