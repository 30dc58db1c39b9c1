//! The simulated flight controller compared with a real ArduCopter: one scripted client flies one scenario on
//! both, and two traces become a table.

pub mod manoeuvres;
pub mod measure;
pub mod script;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use wingbeat_autopilot::codec::Decoder;
use wingbeat_geo::Instant;
use wingbeat_sim::flight_controller::{Config, FlightController, Parameter};
use wingbeat_sim::motion::{Profile, WindParameters};

use crate::scenario::ORIGIN;
use crate::sitl::parameters::{self, Wanted};
use crate::sitl::ports;
use crate::sitl::process::{Process, Program, Start};
use manoeuvres::Flight;
use measure::Quantity;
use script::{SPEED_M_S, Script, Trace};

/// A quantity is alike within this share, or the absolute amounts below where those are larger.
const TOLERANCE: f64 = 0.10;
const TOLERANCE_M: f64 = 0.3;
const TOLERANCE_S: f64 = 0.2;
const TOLERANCE_M_S: f64 = 0.1;
const TOLERANCE_DEG: f64 = 3.0;
/// The scenario takes about seven minutes of autopilot time.
const LIMIT_S: u64 = 1_200;
/// Nothing from the autopilot for so long is its end.
const SILENCE: Duration = Duration::from_secs(10);

/// Flies the scenario on a simulated flight controller, in virtual time.
///
/// # Errors
/// A step that does not end.
pub fn simulated(profile: Profile) -> Result<Trace> {
    simulated_by(profile, Script::new(), SPEED_M_S)
}

fn simulated_by(profile: Profile, mut script: Script, speed_m_s: f64) -> Result<Trace> {
    let mut config = Config::new(1, ORIGIN);
    config.profile = profile;
    config.parameters.push((Parameter::WPNAV_SPEED, (speed_m_s * 100.0) as f32));
    let mut fc = FlightController::new(config, 1, Instant::ZERO);
    let mut decoder = Decoder::default();
    let (mut received, mut sent) = (Vec::new(), Vec::new());
    while fc.poll_timeout() < Instant::from_secs(LIMIT_S) {
        received.clear();
        fc.advance(fc.poll_timeout(), &mut received);
        if let Some(trace) = feed(&mut script, &mut decoder, &received, &mut sent)? {
            return Ok(trace);
        }
        fc.receive(&sent);
        sent.clear();
    }
    bail!("the scenario: found no end within {LIMIT_S} s on the simulated flight controller")
}

fn feed(
    script: &mut Script,
    decoder: &mut Decoder,
    received: &[u8],
    sent: &mut Vec<u8>,
) -> Result<Option<Trace>> {
    let mut result = Ok(None);
    decoder.push(received, |frame| {
        if matches!(result, Ok(None)) {
            result = script.on_frame(&frame, sent);
        }
    });
    result
}

/// Flies the scenario on an ArduCopter process, `speedup` times as fast as the clock.
///
/// # Errors
/// No SITL, no free ports, an end of the process, a step that does not end.
pub async fn real(
    binary: &Path,
    instance: u16,
    speedup: f64,
    stop: impl Future<Output = ()>,
) -> Result<Option<Trace>> {
    let wanted = Wanted {
        speed_m_s: SPEED_M_S,
        wind: WindParameters::default(),
        log: false,
        position_hz: 4,
        extra: "",
    };
    fly(binary, instance, speedup, Script::new(), &parameters::file(&wanted), stop).await
}

/// Flies the manoeuvres on an ArduCopter process as its makers simulate it, `speedup` times as fast as the clock.
///
/// # Errors
/// As [`real`].
pub async fn on_its_own(
    binary: &Path,
    instance: u16,
    speedup: f64,
    flight: Flight,
    stop: impl Future<Output = ()>,
) -> Result<Option<Trace>> {
    fly(binary, instance, speedup, flight.script(), &flight.parameters(true), stop).await
}

async fn fly(
    binary: &Path,
    instance: u16,
    speedup: f64,
    script: Script,
    parameters: &str,
    stop: impl Future<Output = ()>,
) -> Result<Option<Trace>> {
    let program = Program::find(binary)?;
    let instance = ports::free_instances(instance, 1)?;
    let start = Start { instance, home: ORIGIN, heading_rad: 0.0, speedup };
    let mut process = Process::start(&program, &start, parameters)?;
    let flown = tokio::select! {
        trace = over_tcp(ports::serial0(instance), script) => Some(trace),
        ended = process.ended() => Some(Err(anyhow::anyhow!("SITL ended during the flight: {ended}"))),
        () = stop => None,
    };
    process.stop(None).await?;
    flown.transpose()
}

async fn over_tcp(port: u16, mut script: Script) -> Result<Trace> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let connect = async {
        loop {
            match TcpStream::connect(address).await {
                Ok(stream) => return stream,
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    };
    let mut stream = timeout(SILENCE * 3, connect)
        .await
        .with_context(|| format!("found no listener on {address}, expected SITL's SERIAL0"))?;
    stream.set_nodelay(true)?;
    let mut decoder = Decoder::default();
    let (mut buffer, mut sent) = ([0; 4096], Vec::new());
    loop {
        let n = timeout(SILENCE, stream.read(&mut buffer)).await.context("SITL fell silent")??;
        if n == 0 {
            bail!("{address}: found the connection closed, expected telemetry");
        }
        if let Some(trace) = feed(&mut script, &mut decoder, &buffer[..n], &mut sent)? {
            return Ok(trace);
        }
        stream.write_all(&sent).await?;
        sent.clear();
    }
}

/// What an ArduCopter 3.5.7 SITL process came to on this scenario in real time, 2026-11-21.
const COPTER_3_5_7: &str = include_str!("copter_3_5_7.csv");

/// The figures of the real flight that is kept here.
pub fn kept() -> Vec<Quantity> {
    let unit = |text: &str| ["s", "m", "m/s"].into_iter().find(|unit| *unit == text).unwrap_or("");
    let row = |line: &str| {
        let mut fields = line.rsplitn(3, ',');
        let (unit, value, name) = (unit(fields.next()?), fields.next()?.parse().ok()?, fields.next()?);
        Some(Quantity { name: name.replace(';', ","), value, unit })
    };
    COPTER_3_5_7.lines().skip(1).filter_map(row).collect()
}

/// Quantities of `ours` that are not alike to those of `theirs`, in order; a name that is missing in either
/// is not alike.
pub fn unlike(theirs: &[Quantity], ours: &[Quantity]) -> Vec<String> {
    let alike = |their: &&Quantity| !ours.iter().any(|our| our.name == their.name && is_alike(their, our));
    let missing = ours.iter().filter(|our| theirs.iter().all(|their| their.name != our.name));
    theirs.iter().filter(alike).chain(missing).map(|q| q.name.clone()).collect()
}

/// How two flights compare.
pub struct Comparison {
    /// The table, in Markdown.
    pub table: String,
    /// Quantities that are alike, of all.
    pub alike: (usize, usize),
}

/// Puts quantities side by side, under these heads.
pub fn side_by_side(theirs: (&str, &[Quantity]), ours: (&str, &[Quantity])) -> Comparison {
    let mut table = format!(
        "| quantity | {} | {} | difference | bound | alike |\n|---|---:|---:|---:|---:|---|\n",
        theirs.0, ours.0
    );
    let mut alike = (0, 0);
    for (ours, theirs) in ours.1.iter().zip(theirs.1) {
        let is_alike = is_alike(theirs, ours);
        alike = (alike.0 + usize::from(is_alike), alike.1 + 1);
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {:.2} {u} | {:.2} {u} | {:+.2} | {:.2} | {} |",
            theirs.name,
            theirs.value,
            ours.value,
            ours.value - theirs.value,
            bound(theirs),
            if is_alike { "yes" } else { "**no**" },
            u = theirs.unit
        );
    }
    Comparison { table, alike }
}

/// Puts a real flight and a simulated one side by side.
pub fn compare(real: &Trace, simulated: &Trace) -> Comparison {
    let (theirs, ours) = (measure::everything(real), measure::everything(simulated));
    let Comparison { mut table, alike } = side_by_side(("ArduCopter", &theirs), ("simulated", &ours));
    table.push_str("\nDistance between the two aircraft, each so long after the segment's command:\n\n");
    table.push_str(
        "| segment | length, ArduCopter | simulated | 2 s | 5 s | 10 s | 20 s | 40 s | mean | largest |\n",
    );
    table.push_str("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for segment in &real.segments {
        let Some(ours) = simulated.segment(segment.name).filter(|_| segment.name != "cruise") else {
            continue;
        };
        // Where a segment begins differs by what came before; the segment itself is compared.
        let (Some(from), Some(ours_from)) = (real.at(segment.from_s), simulated.at(ours.from_s)) else {
            continue;
        };
        let lengths = (segment.to_s - segment.from_s, ours.to_s - ours.from_s);
        let apart = |t_s: f64| {
            let theirs = real.at(segment.from_s + t_s)? - from;
            Some((simulated.at(ours.from_s + t_s)? - ours_from - theirs).length())
        };
        let within = lengths.0.min(lengths.1);
        let all: Vec<f64> = (0..(within * 10.0) as u32).filter_map(|i| apart(f64::from(i) * 0.1)).collect();
        let mark =
            |t_s: f64| apart(t_s).filter(|_| t_s <= within).map_or("-".to_owned(), |m| format!("{m:.2} m"));
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let largest = all.iter().copied().fold(0.0, f64::max);
        let marks = [2.0, 5.0, 10.0, 20.0, 40.0].map(mark).join(" | ");
        let _ = writeln!(
            table,
            "| {} | {:.1} s | {:.1} s | {marks} | {mean:.2} m | {largest:.2} m |",
            segment.name, lengths.0, lengths.1
        );
    }
    Comparison { table, alike }
}

/// How far ours may be from theirs.
fn bound(theirs: &Quantity) -> f64 {
    let absolute = match theirs.unit {
        "s" => TOLERANCE_S,
        "m" => TOLERANCE_M,
        "deg" | "deg/s" => TOLERANCE_DEG,
        _ => TOLERANCE_M_S,
    };
    absolute.max(theirs.value.abs() * TOLERANCE)
}

fn is_alike(theirs: &Quantity, ours: &Quantity) -> bool {
    (theirs.value - ours.value).abs() <= bound(theirs)
}

/// The manoeuvres on a simulated flight controller.
#[cfg(test)]
fn simulated_on(profile: Profile, flight: Flight) -> Result<Trace> {
    simulated_by(profile, flight.script(), 10.0)
}

#[cfg(test)]
fn kept_names_are_unique(all: &[Quantity]) {
    let names: std::collections::BTreeSet<_> = all.iter().map(|q| &q.name).collect();
    assert_eq!(names.len(), all.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use script::{LEGS, Sample, Segment};
    use wingbeat_geo::DVec3;

    #[test]
    fn both_profiles_fly_the_whole_scenario_and_a_flight_is_like_itself() {
        for profile in [Profile::Copter357, Profile::Copter462] {
            let trace = simulated(profile).unwrap();
            let names: Vec<_> = trace.segments.iter().map(|p| p.name).collect();
            assert_eq!((names.first(), names.last()), (Some(&"take-off"), Some(&"land")), "{names:?}");
            let missing: Vec<_> =
                measure::everything(&trace).into_iter().filter(|q| !q.value.is_finite()).collect();
            assert!(missing.is_empty(), "{missing:?}");
            let same = compare(&trace, &trace);
            assert_eq!(same.alike.0, same.alike.1, "{}", same.table);
            assert_eq!(trace, simulated(profile).unwrap(), "the same scenario, the same flight");
        }
    }

    /// The list can only shrink: a row that is met must be taken out, one that is lost must be explained.
    #[test]
    fn the_3_5_7_profile_flies_as_arducopter_3_5_7_flew() {
        let missed = [
            // At its last waypoint the simulated one flies past by more, and rests there.
            "legs: overshoot at the end",
            // 0.7 s later on the way home; the cause is not known.
            "return: command to half way",
        ];
        let ours = measure::everything(&simulated(Profile::Copter357).unwrap());
        assert_eq!(kept().len(), ours.len());
        assert_eq!(unlike(&kept(), &ours), missed);
    }

    #[test]
    fn the_two_profiles_are_distinguished() {
        let [old, new] = [Profile::Copter357, Profile::Copter462].map(|p| simulated(p).unwrap());
        let comparison = compare(&old, &new);
        assert!(comparison.alike.0 < comparison.alike.1, "{}", comparison.table);
    }

    #[test]
    fn a_cut_corner_is_measured_between_the_legs() {
        // Flies the first leg to 3 m before the corner and turns there.
        let corner = LEGS[1] - DVec3::new(0.0, 3.0, 0.0);
        let north = (0..40).map(|i| LEGS[0] + (corner - LEGS[0]) * (f64::from(i) / 39.0));
        let east = (1..40).map(|i| corner + DVec3::new(3.0, 0.0, 0.0) * f64::from(i));
        let samples = north.chain(east).enumerate().map(|(i, position)| Sample {
            t_s: i as f64,
            position,
            velocity: DVec3::new(3.0, 0.0, 0.0),
            heading_deg: f64::NAN,
        });
        let segments = vec![Segment { name: "legs", from_s: 0.0, to_s: 79.0 }];
        let trace = Trace { samples: samples.collect(), segments };
        let found = measure::everything(&trace);
        let cut = found.iter().find(|q| q.name == "legs: corner 1 cut").unwrap();
        assert!((cut.value - 3.0).abs() < 0.01, "{cut:?}");
        assert!(found.iter().any(|q| q.name.starts_with("return") && q.value.is_nan()));
    }
}
