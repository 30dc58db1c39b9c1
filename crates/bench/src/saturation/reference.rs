//! What ns-3 and the authors of ArduSim found under the same loads.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::Load;

/// An operating point of ns-3.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    load: Load,
    /// Receptions of those possible.
    pub delivery: f64,
    /// Share of frames that overlapped another.
    pub overlapped: f64,
    /// From the hand-over of a datagram to its first bit on the air: mean, and what 50, 95 and 99 % do not exceed,
    /// milliseconds.
    pub access_ms: [f64; 4],
}

/// The columns of the file.
const HEADER: &str = "geometry,nodes,payload_bytes,rate_hz,seeds,offered_load,delivery_ratio,delivery_ratio_min,\
    delivery_ratio_max,frames_collided_ratio,access_delay_mean_ms,access_delay_p50_ms,access_delay_p95_ms,\
    access_delay_p99_ms";

/// Reads the file that `cargo xtask ns3` writes.
///
/// # Errors
/// Names the file, the line, what was found and what was expected.
pub fn read(path: &Path) -> Result<Vec<Point>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reference {}", path.display()))?;
    parse(&text).with_context(|| format!("reference {}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Point>> {
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, line)| line);
    ensure!(header == HEADER, "line 1: found '{header}', expected {HEADER}");
    lines.map(|(i, line)| point(line).with_context(|| format!("line {}", i + 1))).collect()
}

fn point(line: &str) -> Result<Point> {
    let fields: Vec<&str> = line.split(',').collect();
    let expected = HEADER.split(',').count();
    ensure!(fields.len() == expected, "found {} fields, expected {expected}", fields.len());
    let number = |i: usize| match fields[i].parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => bail!(
            "{}: found '{}', expected a number from 0",
            HEADER.split(',').nth(i).unwrap_or(""),
            fields[i]
        ),
    };
    let load = Load {
        geometry: fields[0].parse()?,
        nodes: number(1)? as usize,
        payload_bytes: number(2)? as usize,
        rate_hz: number(3)?,
    };
    let access_ms = [number(10)?, number(11)?, number(12)?, number(13)?];
    Ok(Point { load, delivery: number(6)?, overlapped: number(9)?, access_ms })
}

/// The point with this load, if the file has it.
pub fn find<'a>(points: &'a [Point], load: &Load) -> Option<&'a Point> {
    points.iter().find(|point| point.load == *load)
}

/// Radios of the published table, datagrams that waited and that collided in per cent: Fabra et al., ArduSim: accurate
/// and real-time multicopter simulation, Simulation Modelling Practice and Theory 87 (2018), Table 3. 705 bytes five times
/// a second.
const PUBLISHED: [(usize, f64, f64); 10] = [
    (25, 0.84, 0.08),
    (50, 3.40, 0.06),
    (75, 4.02, 0.10),
    (100, 4.25, 0.13),
    (125, 21.30, 0.56),
    (150, 60.01, 3.20),
    (175, 79.29, 8.69),
    (200, 92.07, 15.09),
    (225, 94.92, 17.52),
    (256, 94.82, 20.29),
];

/// Shares that waited and collided as published.
pub fn published(load: &Load) -> Option<(f64, f64)> {
    let is_its_load =
        load.geometry == super::Geometry::Equal && load.payload_bytes == 705 && load.rate_hz == 5.0;
    let row = PUBLISHED.iter().find(|(nodes, ..)| *nodes == load.nodes).filter(|_| is_its_load);
    row.map(|(_, waited, collided)| (waited / 100.0, collided / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saturation::Geometry;

    #[test]
    fn a_file_is_read_or_explained() {
        let good = "disc30,100,705,5,3,0.526,0.9727,0.97,0.98,0.0389,0.641,0.176,2.593,4.358";
        let points = parse(&format!("{HEADER}\n{good}\n")).unwrap();
        let load = Load {
            geometry: Geometry::Disc { radius_m: 30.0 },
            nodes: 100,
            payload_bytes: 705,
            rate_hz: 5.0,
        };
        assert_eq!(find(&points, &load).map(|p| (p.delivery, p.access_ms[3])), Some((0.9727, 4.358)));
        assert_eq!(find(&points, &Load { nodes: 99, ..load }), None);
        for (text, words) in [
            ("", "line 1: found ''"),
            (&format!("{HEADER}\nequal,1"), "line 2: found 2 fields, expected 14"),
            (
                &format!("{HEADER}\n{}", good.replace("disc30", "ring")),
                "found 'ring', expected equal or discMETRES",
            ),
            (&format!("{HEADER}\n{}", good.replace("0.9727", "NaN")), "delivery_ratio: found 'NaN'"),
        ] {
            let message = format!("{:#}", parse(text).unwrap_err());
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_published_table_is_of_one_load() {
        let load = Load { geometry: Geometry::Equal, nodes: 200, payload_bytes: 705, rate_hz: 5.0 };
        let (waited, collided) = published(&load).unwrap();
        assert!((waited - 0.9207).abs() < 1e-9 && (collided - 0.1509).abs() < 1e-9);
        assert_eq!(published(&Load { payload_bytes: 400, ..load }), None);
        assert_eq!(published(&Load { nodes: 201, ..load }), None);
    }
}
