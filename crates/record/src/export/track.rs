//! Positions of flights in formats of others, on one time base. Metres are east and north of the first position of the
//! first flight, on the local plane.

use std::io::{self, Write};

use wingbeat_geo::{DVec3, Frame, Position};

use crate::event::{Event, Plotted};
use crate::reader::Log;

/// Colours of the incumbent's KML, `aabbggrr`.
const COLOURS: [&str; 9] = [
    "FF000000", "FFFF0000", "FF0000FF", "FF00FF00", "FFFFFF00", "FFFF00FF", "FF00A5FF", "FFCBC0FF",
    "FF00FFFF",
];

/// One position of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// Time since the first sample of any flight, seconds.
    pub time_s: f64,
    /// Where.
    pub position: Position,
    /// Metres east, north and up of the origin.
    pub local_m: DVec3,
    /// Height above home, metres.
    pub height_m: f64,
    /// Speed, metres per second.
    pub speed_m_s: f64,
    /// Heading clockwise from north, radians.
    pub heading_rad: f64,
}

/// The track of one aircraft.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The aircraft's name.
    pub name: String,
    /// Its positions; consecutive equal ones are left out.
    pub fixes: Vec<Fix>,
    /// UTC of time zero, microseconds after 1970, where it is known.
    pub utc_us: Option<u64>,
}

/// The tracks of flights, one log for each aircraft, between the first and the last moment at which motors were armed; of
/// one that never was, all of it.
pub fn tracks(logs: &[Log]) -> Vec<Track> {
    let mut frame: Option<Frame> = None;
    let mut all = Vec::new();
    for log in logs {
        let utc = log.about.get("utc_of_agent_time_zero_us").and_then(|us| us.parse::<u64>().ok());
        let mut samples: Vec<(u64, Plotted<'_>)> = Vec::new();
        for entry in log.entries() {
            let Ok(entry) = entry else { break };
            if let Event::Sample(sample) = entry.event {
                samples.push((entry.at.as_micros(), sample));
            }
        }
        let first = samples.iter().position(|(_, sample)| sample.armed);
        let last = samples.iter().rposition(|(_, sample)| sample.armed);
        if let (Some(first), Some(last)) = (first, last) {
            samples = samples.drain(first..=last).collect();
        }
        let name = log.about.get("name").cloned().unwrap_or_else(|| format!("UAV {}", all.len() + 1));
        all.push((name, utc, samples));
    }
    // Clocks that are known are put on one; where one is not, each agent's own time counts.
    let is_utc = all.iter().all(|(_, utc, _)| utc.is_some());
    let base = |utc: Option<u64>| if is_utc { utc.unwrap_or(0) } else { 0 };
    let zero_us = all
        .iter()
        .filter_map(|(_, utc, samples)| Some(base(*utc) + samples.iter().find(|s| s.1.position.is_some())?.0))
        .min()
        .unwrap_or(0);
    all.into_iter()
        .map(|(name, utc, samples)| {
            let mut fixes: Vec<Fix> = Vec::new();
            for (at_us, sample) in samples {
                let Some([latitude_e7, longitude_e7, altitude_mm]) = sample.position else { continue };
                let position = Position { latitude_e7, longitude_e7, altitude_mm };
                if fixes.last().is_some_and(|fix| fix.position == position) {
                    continue;
                }
                let origin = frame.get_or_insert_with(|| Frame::new(position));
                let [east, north, up] = sample.velocity_cm_s.map(f64::from);
                fixes.push(Fix {
                    time_s: (base(utc) + at_us).saturating_sub(zero_us) as f64 / 1e6,
                    position,
                    local_m: origin.to_local(position),
                    height_m: f64::from(sample.height_mm) / 1e3,
                    speed_m_s: DVec3::new(east, north, up).length() / 1e2,
                    heading_rad: (f64::from(sample.heading_cdeg) / 1e2).to_radians(),
                });
            }
            Track { name, fixes, utc_us: is_utc.then_some(zero_us) }
        })
        .collect()
}

/// The incumbent's columns: position, heading, time, speed, acceleration, path.
///
/// # Errors
/// What the writer answers.
pub fn csv(track: &Track, mut to: impl Write) -> io::Result<()> {
    writeln!(to, "x(m),y(m),z(m),zRelative(m),heading(rad),t(s),s(m/s),a(m/s2),delta d(m),d(m)")?;
    let (mut path_m, mut last): (f64, Option<Fix>) = (0.0, None);
    for fix in &track.fixes {
        let (delta_m, a) = last.map_or((0.0, 0.0), |last| {
            let seconds = fix.time_s - last.time_s;
            let a = if seconds > 0.0 { (fix.speed_m_s - last.speed_m_s) / seconds } else { 0.0 };
            (fix.local_m.distance(last.local_m), a)
        });
        path_m += delta_m;
        writeln!(
            to,
            "{:.3},{:.3},{:.3},{:.3},{:.4},{:.3},{:.2},{:.2},{:.3},{:.3}",
            fix.local_m.x,
            fix.local_m.y,
            f64::from(fix.position.altitude_mm) / 1e3,
            fix.height_m,
            fix.heading_rad,
            fix.time_s,
            fix.speed_m_s,
            a,
            delta_m,
            path_m
        )?;
        last = Some(*fix);
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '&' => "&amp;".chars().collect::<Vec<_>>(),
            '<' => "&lt;".chars().collect(),
            '>' => "&gt;".chars().collect(),
            '"' => "&quot;".chars().collect(),
            c if c.is_control() => vec![],
            c => vec![c],
        })
        .collect()
}

/// KML 2.2: a line for each aircraft, with altitudes above sea level (<https://developers.google.com/kml/documentation/kmlreference>).
///
/// # Errors
/// What the writer answers.
pub fn kml(tracks: &[Track], mut to: impl Write) -> io::Result<()> {
    writeln!(to, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(to, r#"<kml xmlns="http://www.opengis.net/kml/2.2"><Document>"#)?;
    for (track, colour) in tracks.iter().zip(COLOURS.iter().cycle()) {
        writeln!(to, "<Placemark><name>{}</name>", escaped(&track.name))?;
        writeln!(to, "<Style><LineStyle><color>{colour}</color><width>4</width></LineStyle></Style>")?;
        write!(to, "<LineString><altitudeMode>absolute</altitudeMode><coordinates>")?;
        for fix in &track.fixes {
            let p = fix.position;
            let (longitude, latitude) = (p.longitude_deg(), p.latitude_deg());
            write!(to, "{longitude:.7},{latitude:.7},{:.2} ", f64::from(p.altitude_mm) / 1e3)?;
        }
        writeln!(to, "</coordinates></LineString></Placemark>")?;
    }
    writeln!(to, "</Document></kml>")
}

/// ns-2 mobility with heights, as `ns3::Ns2MobilityHelper` reads it: the initial position, then one at each time
/// (<https://www.nsnam.org/docs/models/html/mobility.html>).
///
/// # Errors
/// What the writer answers.
pub fn ns2(tracks: &[Track], mut to: impl Write) -> io::Result<()> {
    for (node, track) in tracks.iter().enumerate() {
        let axes = |fix: &Fix| [("X_", fix.local_m.x), ("Y_", fix.local_m.y), ("Z_", fix.height_m)];
        let Some(first) = track.fixes.first() else { continue };
        for (axis, value) in axes(first) {
            writeln!(to, "$node_({node}) set {axis} {value:.2}")?;
        }
        let mut last = axes(first);
        for fix in track.fixes.iter().skip(1) {
            for ((axis, value), (_, before)) in axes(fix).into_iter().zip(last) {
                if format!("{value:.2}") != format!("{before:.2}") {
                    writeln!(to, "$ns_ at {:.2} $node_({node}) set {axis} {value:.2}", fix.time_s)?;
                }
            }
            last = axes(fix);
        }
    }
    Ok(())
}

/// BonnMotion with heights, as INET's `BonnMotionMobility` reads it: a line for each aircraft, `t x y z` again and again
/// (<https://doc.omnetpp.org/inet/api-current/neddoc/inet.mobility.single.BonnMotionMobility.html>, `is3D`).
///
/// # Errors
/// What the writer answers.
pub fn bonnmotion(tracks: &[Track], mut to: impl Write) -> io::Result<()> {
    let end_s =
        tracks.iter().filter_map(|track| track.fixes.last()).map(|fix| fix.time_s).fold(0.0, f64::max);
    for track in tracks {
        let (Some(first), Some(last)) = (track.fixes.first(), track.fixes.last()) else { continue };
        let at_start = Fix { time_s: 0.0, ..*first };
        let at_end = Fix { time_s: end_s, ..*last };
        let begins_later = (first.time_s > 0.0).then_some(&at_start);
        let ends_earlier = (last.time_s < end_s).then_some(&at_end);
        let all = begins_later.into_iter().chain(&track.fixes).chain(ends_earlier);
        let tuple = |fix: &Fix| {
            format!("{:.2} {:.2} {:.2} {:.2}", fix.time_s, fix.local_m.x, fix.local_m.y, fix.height_m)
        };
        writeln!(to, "{}", all.map(tuple).collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}

/// GPX 1.1 (<https://www.topografix.com/GPX/1/1/>): a track for each aircraft; `time` gives the text of a moment,
/// microseconds after 1970, and times are left out where UTC is unknown.
///
/// # Errors
/// What the writer answers.
pub fn gpx(tracks: &[Track], time: impl Fn(u64) -> String, mut to: impl Write) -> io::Result<()> {
    writeln!(to, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(to, r#"<gpx version="1.1" creator="Wingbeat" xmlns="http://www.topografix.com/GPX/1/1">"#)?;
    for track in tracks {
        writeln!(to, "<trk><name>{}</name><trkseg>", escaped(&track.name))?;
        for fix in &track.fixes {
            let p = fix.position;
            write!(to, r#"<trkpt lat="{:.7}" lon="{:.7}">"#, p.latitude_deg(), p.longitude_deg())?;
            write!(to, "<ele>{:.2}</ele>", f64::from(p.altitude_mm) / 1e3)?;
            if let Some(utc_us) = track.utc_us {
                write!(to, "<time>{}</time>", time(utc_us + (fix.time_s * 1e6) as u64))?;
            }
            writeln!(to, "</trkpt>")?;
        }
        writeln!(to, "</trkseg></trk>")?;
    }
    writeln!(to, "</gpx>")
}
