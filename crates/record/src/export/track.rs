//! Positions of flights in formats of others, on one time base. Metres are east and north of the first position of the
//! first flight, on the local plane.

use std::io::{self, Write};

use wingbeat_geo::{DVec3, Frame, Position};

use crate::clock::Clock;
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
    /// Time with armed motors, seconds: what the bench counts as flight time.
    pub armed_s: f64,
    /// UTC of time zero, microseconds after 1970, where it is known.
    pub utc_us: Option<u64>,
}

/// What a track needs of a log, which is little of it.
#[derive(Clone, Debug, Default)]
pub struct Flown {
    name: Option<String>,
    /// At agent time zero, microseconds after 1970.
    utc_us: Option<u64>,
    samples: Vec<Sampled>,
}

#[derive(Clone, Copy, Debug)]
struct Sampled {
    at_us: u64,
    armed: bool,
    position: Option<[i32; 3]>,
    height_mm: i32,
    velocity_cm_s: [i16; 3],
    heading_cdeg: u16,
}

impl Flown {
    /// Between the first and the last moment at which motors were armed; of a flight in which they never were, all of it.
    pub fn of(log: &Log) -> Self {
        let mut samples: Vec<Sampled> = Vec::new();
        for entry in log.entries() {
            let Ok(entry) = entry else { break };
            if let Event::Sample(sample) = entry.event {
                let Plotted { armed, position, height_mm, velocity_cm_s, heading_cdeg, .. } = sample;
                let at_us = entry.at.as_micros();
                samples.push(Sampled { at_us, armed, position, height_mm, velocity_cm_s, heading_cdeg });
            }
        }
        let first = samples.iter().position(|sample| sample.armed);
        let last = samples.iter().rposition(|sample| sample.armed);
        if let (Some(first), Some(last)) = (first, last) {
            samples = samples.drain(first..=last).collect();
        }
        Self { name: log.about.get("name").cloned(), utc_us: Clock::shared_base_us(log), samples }
    }
}

/// The tracks of flights, one log for each aircraft.
pub fn tracks<'a>(logs: impl IntoIterator<Item = &'a Log>) -> Vec<Track> {
    on_one_time(logs.into_iter().map(Flown::of).collect())
}

/// The tracks of what was flown at the same time.
pub fn on_one_time(all: Vec<Flown>) -> Vec<Track> {
    let mut frame: Option<Frame> = None;
    // Clocks that are known are put on one; where one is not, each agent's own time counts.
    let is_utc = all.iter().all(|flown| flown.utc_us.is_some());
    let base = |utc: Option<u64>| if is_utc { utc.unwrap_or(0) } else { 0 };
    let begun_us = |flown: &Flown| {
        let first = flown.samples.iter().find(|sample| sample.position.is_some())?;
        Some(base(flown.utc_us) + first.at_us)
    };
    let zero_us = all.iter().filter_map(begun_us).min().unwrap_or(0);
    all.into_iter()
        .enumerate()
        .map(|(index, Flown { name, utc_us, samples })| {
            let mut fixes: Vec<Fix> = Vec::new();
            let armed = samples.windows(2).filter(|pair| pair[1].armed);
            let armed_us: u64 = armed.map(|pair| pair[1].at_us.saturating_sub(pair[0].at_us)).sum();
            for sample in samples {
                let Some([latitude_e7, longitude_e7, altitude_mm]) = sample.position else { continue };
                let position = Position { latitude_e7, longitude_e7, altitude_mm };
                if fixes.last().is_some_and(|fix| fix.position == position) {
                    continue;
                }
                let origin = frame.get_or_insert_with(|| Frame::new(position));
                let [east, north, up] = sample.velocity_cm_s.map(f64::from);
                fixes.push(Fix {
                    time_s: (base(utc_us) + sample.at_us).saturating_sub(zero_us) as f64 / 1e6,
                    position,
                    local_m: origin.to_local(position),
                    height_m: f64::from(sample.height_mm) / 1e3,
                    speed_m_s: DVec3::new(east, north, up).length() / 1e2,
                    heading_rad: (f64::from(sample.heading_cdeg) / 1e2).to_radians(),
                });
            }
            let name = name.unwrap_or_else(|| format!("UAV {}", index + 1));
            Track { name, fixes, armed_s: armed_us as f64 / 1e6, utc_us: is_utc.then_some(zero_us) }
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

/// The same in a ZIP archive, as Google Earth opens it: its first file is `doc.kml`.
///
/// # Errors
/// What the writer answers.
pub fn kmz(tracks: &[Track], mut to: impl Write) -> io::Result<()> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    archive.start_file("doc.kml", zip::write::SimpleFileOptions::default())?;
    kml(tracks, &mut archive)?;
    to.write_all(archive.finish()?.get_ref())
}

/// A script that AutoCAD runs: a polyline for each aircraft, which an empty line ends; `3DPOLY` with heights, else
/// `PLINE`. With the incumbent's names of both, which are those of every language.
///
/// # Errors
/// What the writer answers.
pub fn autocad(tracks: &[Track], with_heights: bool, mut to: impl Write) -> io::Result<()> {
    for track in tracks.iter().filter(|track| !track.fixes.is_empty()) {
        writeln!(to, "{}", if with_heights { "._3DPOLY" } else { "._PLINE" })?;
        for fix in &track.fixes {
            write!(to, "{:.2},{:.2}", fix.local_m.x, fix.local_m.y)?;
            if with_heights {
                write!(to, ",{:.2}", fix.height_m)?;
            }
            writeln!(to)?;
        }
        writeln!(to)?;
    }
    Ok(())
}

/// ns-2 mobility, with or without heights, as `ns3::Ns2MobilityHelper` reads it: the initial position, then one at each time
/// (<https://www.nsnam.org/docs/models/html/mobility.html>). That moves a node on as it reads the file, so that without a position at
/// time 0 it would begin where it ends.
///
/// # Errors
/// What the writer answers.
pub fn ns2(tracks: &[Track], with_heights: bool, mut to: impl Write) -> io::Result<()> {
    for (node, track) in tracks.iter().enumerate() {
        let axes = |fix: &Fix| {
            let all = [("X_", fix.local_m.x), ("Y_", fix.local_m.y), ("Z_", fix.height_m)];
            all.into_iter().take(if with_heights { 3 } else { 2 })
        };
        let Some(first) = track.fixes.first() else { continue };
        for (axis, value) in axes(first) {
            writeln!(to, "$node_({node}) set {axis} {value:.2}")?;
        }
        writeln!(to, "$ns_ at 0.00 $node_({node}) set X_ {:.2}", first.local_m.x)?;
        let mut last = axes(first);
        for fix in track.fixes.iter().skip(1) {
            for ((axis, value), (_, before)) in axes(fix).zip(last) {
                if format!("{value:.2}") != format!("{before:.2}") {
                    writeln!(to, "$ns_ at {:.2} $node_({node}) set {axis} {value:.2}", fix.time_s)?;
                }
            }
            last = axes(fix);
        }
    }
    Ok(())
}

/// BonnMotion, as INET's `BonnMotionMobility` reads it: a line for each aircraft, `t x y z` again and again, or `t x y`
/// without heights, with times that never decrease
/// (<https://doc.omnetpp.org/inet/api-current/neddoc/inet.mobility.single.BonnMotionMobility.html>, `is3D`).
///
/// # Errors
/// What the writer answers.
pub fn bonnmotion(tracks: &[Track], with_heights: bool, mut to: impl Write) -> io::Result<()> {
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
            let plane = format!("{:.2} {:.2} {:.2}", fix.time_s, fix.local_m.x, fix.local_m.y);
            if with_heights { format!("{plane} {:.2}", fix.height_m) } else { plane }
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn track(name: &str, from_s: f64, count: u32) -> Track {
        let fixes = (0..count).map(|i| {
            let along_m = f64::from(i) * 2.5;
            Fix {
                time_s: from_s + f64::from(i) * 0.25,
                position: Position {
                    latitude_e7: 394_000_000,
                    longitude_e7: -3_000_000,
                    altitude_mm: 112_500,
                },
                local_m: DVec3::new(along_m, -3.0, 0.0),
                height_m: 12.5,
                speed_m_s: 10.0,
                heading_rad: 0.0,
            }
        });
        Track { name: name.into(), fixes: fixes.collect(), armed_s: 1.0, utc_us: None }
    }

    /// Two aircraft, of which the second begins later and ends earlier.
    fn both() -> [Track; 2] {
        [track("one & only", 0.0, 9), track("two", 0.5, 3)]
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn bonnmotion_has_the_tuples_that_inet_reads() {
        for (with_heights, width) in [(true, 4), (false, 3)] {
            let file = text(|to| bonnmotion(&both(), with_heights, to));
            assert_eq!(file.lines().count(), 2);
            for line in file.lines() {
                let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
                assert_eq!(numbers.len() % width, 0, "{line}");
                let times: Vec<f64> = numbers.chunks(width).map(|tuple| tuple[0]).collect();
                assert!(times.is_sorted(), "{line}");
                // Each stands before its flight and after it, over the same time.
                assert_eq!((times.first(), times.last()), (Some(&0.0), Some(&2.0)), "{line}");
                assert_eq!(numbers[2], -3.0);
                assert!(!with_heights || numbers[3] == 12.5);
            }
        }
    }

    #[test]
    fn ns2_has_heights_where_they_are_asked_for() {
        let file = text(|to| ns2(&both(), true, to));
        assert!(
            file.starts_with(
                "$node_(0) set X_ 0.00\n$node_(0) set Y_ -3.00\n$node_(0) set Z_ 12.50\n$ns_ at 0.00 $node_(0) set X_ 0.00\n"
            ),
            "{file}"
        );
        assert!(file.contains("$ns_ at 0.75 $node_(1) set X_ 2.50\n"), "{file}");
        let flat = text(|to| ns2(&both(), false, to));
        assert!(!flat.contains("Z_") && flat.contains("$node_(1) set Y_ -3.00\n"), "{flat}");
    }

    #[test]
    fn an_autocad_script_has_a_polyline_for_each_aircraft() {
        let tracks = [track("one", 0.0, 2), track("none", 0.0, 0), track("two", 0.0, 1)];
        let file = text(|to| autocad(&tracks, true, to));
        assert_eq!(file, "._3DPOLY\n0.00,-3.00,12.50\n2.50,-3.00,12.50\n\n._3DPOLY\n0.00,-3.00,12.50\n\n");
        let flat = text(|to| autocad(&tracks, false, to));
        assert_eq!(flat, "._PLINE\n0.00,-3.00\n2.50,-3.00\n\n._PLINE\n0.00,-3.00\n\n");
    }

    #[test]
    fn a_kmz_is_an_archive_of_the_kml() {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        kmz(&both(), &mut first).unwrap();
        kmz(&both(), &mut again).unwrap();
        assert_eq!(first, again, "no clock of this machine is in it");
        let mut archive = zip::ZipArchive::new(io::Cursor::new(first)).unwrap();
        assert_eq!(archive.len(), 1);
        let mut found = String::new();
        archive.by_name("doc.kml").unwrap().read_to_string(&mut found).unwrap();
        assert_eq!(found, text(|to| kml(&both(), to)));
        assert!(found.contains("<name>one &amp; only</name>"));
    }
}
