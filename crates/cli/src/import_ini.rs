//! `wingbeat import-ini`: the keys of ArduSim's `ardusim.ini` as a file for `conf.d`, and what has no counterpart. Keys of its
//! simulations (`SimulationParam.properties`, the protocols' `.properties`) are named with their place in a plan of the bench.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use wingbeat_geo::formation::Layout;
use wingbeat_protocol::{follow_me, swarm};
use wingbeat_wire::VehicleId;

/// Arguments of `wingbeat import-ini`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// ArduSim's configuration, ardusim.ini.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the configuration is written, for example /etc/wingbeat/conf.d/10-ardusim.toml. Default: standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the configuration, and on standard error what became of each key.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file).with_context(|| format!("reading {path}"))?;
    let Translation { toml, report } = translate(&text).with_context(|| path.to_string())?;
    for line in report {
        eprintln!("{line}");
    }
    match &arguments.out {
        Some(out) => {
            ensure!(!out.exists(), "{}: found a file, expected none there", out.display());
            std::fs::write(out, toml).with_context(|| format!("writing {}", out.display()))
        }
        None => std::io::stdout().write_all(toml.as_bytes()).context("writing the configuration"),
    }
}

#[derive(Debug, Default)]
struct Translation {
    toml: String,
    /// A line for each key, in the file's order.
    report: Vec<String>,
}

/// Which sections a protocol's keys are in.
const PROTOCOLS: [(&str, &str); 5] = [
    ("mbcap", "mbcap"),
    ("muscop", "muscop"),
    ("swarm", "muscop"),
    ("follow", "follow_me"),
    ("mission", "mission"),
];

/// ArduSim's names of formations; the part of a name that all its versions have.
const FORMATIONS: [(&str, &str); 8] = [
    ("random", "random"),
    ("split", "split-up"),
    ("compact matrix", "compact-matrix"),
    ("compact mesh", "compact-mesh"),
    ("linear", "linear"),
    ("matrix", "matrix"),
    ("circle", "circular"),
    ("circular", "circular"),
];

/// Keys of ArduSim's simulations, and where their counterpart is: nothing of them is written.
const OF_SIMULATIONS: [(&str, &str); 34] = [
    ("NUMUAVS", "the aircraft of a plan: `aircraft` of its task"),
    ("PROTOCOL", "the task of a plan: [swarm], [own] or [follow]"),
    ("PROTOCOLPARAMETERFILE", "the plan holds them itself"),
    ("ARDUCOPTERFILE", "`wingbeat bench run --autopilot arducopter:PATH`"),
    ("SPEEDFILE", "`own.speeds_file` of a plan"),
    ("MISSIONFILE", "`own.file.path`, or `path` of each [[own.flight.aircraft]], of a plan"),
    ("COMMUNICATIONMODEL", "`channel.model` of a plan"),
    ("FIXEDRANGEDISTANCE", "`channel.model` of a plan"),
    ("WINDENABLED", "`conditions.wind_m_s` of a plan"),
    ("WINDSPEED", "`conditions.wind_m_s` of a plan"),
    ("WINDDIRECTION", "`conditions.wind_from_deg` of a plan"),
    ("SIMSPEEDUP", "`wingbeat bench run` is as fast as the computer, `bench fleet --speed` sets a pace"),
    ("RESTRICTBATTERY", "[conditions] of a plan"),
    ("COLLISIONDETECTION", "the bench always measures the separation"),
    ("CHECKPERIOD", "the bench always measures the separation"),
    ("DISTANCETHRESHOLD", "the bench always measures the separation"),
    ("ALTITUDETHRESHOLD", "the bench always measures the separation"),
    ("CARRIERSENSING", "`channel.model = \"csma\"` of a plan"),
    ("PACKETCOLLISIONDETECTION", "`channel.model = \"csma\"` of a plan"),
    ("BUFFERSIZE", "the buffers of a plan's channel are not configured"),
    ("STOREDATA", "`wingbeat bench run --out`"),
    ("ARDUCOPTERLOGGING", "ArduCopter writes its logs as its parameters say"),
    ("SCREENREFRESHRATE", "the page draws as fast as the browser does"),
    ("MINSCREENREDRAWDISTANCE", "the page draws as fast as the browser does"),
    ("STARTINGALTITUDE", "homes of the bench are at the altitude of their mission"),
    ("LATITUDE", "missions of the bench state their places"),
    ("LONGITUDE", "missions of the bench state their places"),
    ("GROUNDMINDISTANCE", "aircraft take off from where they stand"),
    ("TAKEOFFSTRATEGY", "slots are always given out by the least total distance"),
    ("FLYINGFORMATION", "`formation` of a plan's task"),
    ("FLYINGMINDISTANCE", "`distance_m` of a plan's task"),
    ("LANDINGMINDISTANCE", "`landing_distance_m` of a plan's task"),
    ("SIMULATEDFLIGHTFILE", "`pilot` of a plan's [follow]"),
    ("INITIALALTITUDE", "`height_m` of a plan's [follow]"),
];

/// Keys without a counterpart, and why.
const NO_COUNTERPART: [(&str, &str); 19] = [
    ("COMPUTERPORT", "the PC Companion asks each aircraft over HTTP: http.bind"),
    ("UAVPORT", "the PC Companion asks each aircraft over HTTP: http.bind"),
    ("TAKEOFFALGORITHM", "slots are always given out by the least total distance, in milliseconds"),
    ("BATTERYCELLS", "the flight controller knows its battery: BATT_ARM_VOLT, BATT_LOW_VOLT"),
    ("BATTERYCAPACITY", "the flight controller knows its battery: BATT_CAPACITY"),
    ("MEASURECPU", "`wingbeat doctor` shows the computer's load"),
    ("VERBOSELOGGING", "RUST_LOG in the environment sets what is logged"),
    ("VERBOSESTORE", "each flight is logged into the folder of [log], always"),
    ("YAWOVERRIDE", "set WP_YAW_BEHAVIOR on the flight controller"),
    ("YAWVALUE", "set WP_YAW_BEHAVIOR on the flight controller"),
    (
        "KMLMINALTITUDE",
        "lower points of KML paths are raised when the file is read: `wingbeat fleet mission send --kml-height-least-m`",
    ),
    (
        "KMLOVERRIDEALTITUDE",
        "KML paths with heights are flown at them; those without at `wingbeat fleet mission send --kml-height-least-m`",
    ),
    (
        "KMLALTITUDE",
        "KML paths with heights are flown at them; those without at `wingbeat fleet mission send --kml-height-least-m`",
    ),
    (
        "KMLMISSIONEND",
        "KML paths end with a landing at their last point; a .waypoints or .plan file with a return or a landing is flown as it says",
    ),
    ("KMLRTLENDALTITUDE", "a mission that returns lands at home"),
    (
        "KMLWAYPOINTDELAY",
        "KML paths are flown without holds; the holds of a .waypoints or .plan file are flown, by formations not",
    ),
    ("KMLWAYPOINTDISTANCE", "set WPNAV_RADIUS on the flight controller"),
    ("BINGKEY", "the page needs no map from the Internet"),
    ("GROUNDFORMATION", "aircraft take off from where they stand"),
];

fn translate(text: &str) -> Result<Translation> {
    let keys = read(text)?;
    let protocol = protocol(&keys)?;
    let mut report = Vec::new();
    // Section, key, value as TOML.
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut top = Vec::new();
    for Line { number, key, value } in &keys {
        let (number, key, value) = (*number, key.as_str(), value.as_str());
        let wrong = |expected: &str| format!("line {number}: {key}: found {value:?}, expected {expected}");
        let mut becomes = |section: &'static str, name: &str, toml: String| {
            report.push(format!("{key}: {section}.{name} = {toml}"));
            sections.entry(section).or_default().push(format!("{name} = {toml}"));
        };
        let swarm = match protocol {
            Some(section @ ("muscop" | "follow_me")) => Some(section),
            _ => None,
        };
        match key {
            "UAVPROTOCOL" => {
                let Some(name) = protocol else { continue };
                report.push(format!("{key}: protocol = \"{name}\""));
                top.push(format!("protocol = \"{name}\""));
            }
            "UAVSPEED" => {
                let speed_m_s = positive(value).with_context(|| wrong("a speed in metres per second"))?;
                match protocol {
                    Some(section @ ("mbcap" | "mission")) => {
                        becomes(section, "planned_speed_m_s", format!("{speed_m_s:?}"));
                    }
                    _ => report.push(no_counterpart(
                        key,
                        "a formation flies at WPNAV_SPEED of the flight controllers",
                    )),
                }
            }
            "MACS" => {
                let first = value.split(',').next().unwrap_or_default();
                let id = mac(first).with_context(|| wrong("MAC addresses, separated by commas"))?;
                let name = if swarm == Some("follow_me") { "leader" } else { "master" };
                match swarm {
                    Some(section) => becomes(section, name, format!("\"{id:016x}\"")),
                    None => report.push(no_counterpart(key, "only formations have a master")),
                }
            }
            "AIRFORMATION" => {
                let lower = value.to_lowercase();
                let found = FORMATIONS.iter().find(|(theirs, _)| lower.contains(theirs));
                match (swarm, found) {
                    (None, _) => report.push(no_counterpart(key, "only formations have one")),
                    (Some(section), Some((_, ours))) => becomes(section, "formation", format!("\"{ours}\"")),
                    (Some(_), None) => {
                        let why = format!("{value:?} is none of {}", Layout::names());
                        report.push(no_counterpart(key, &why));
                    }
                }
            }
            "AIRDISTANCE" | "LANDDISTANCE" => {
                let distance_m = positive(value).with_context(|| wrong("a distance in metres"))?;
                let least_m = swarm.and_then(|section| least_m(section, key));
                if let Some(least_m) = least_m.filter(|least_m| distance_m < *least_m) {
                    report.push(format!(
                        "{key}: not written: Setup would refuse {distance_m} m, at least {least_m:.1} m would do with the default \
                         separation"
                    ));
                    continue;
                }
                let name = if key == "AIRDISTANCE" { "distance_m" } else { "landing_distance_m" };
                match swarm {
                    Some(section) => becomes(section, name, format!("{distance_m:?}")),
                    None => report.push(no_counterpart(key, "only formations have one")),
                }
            }
            "BROADCASTIP" => {
                let address: std::net::Ipv4Addr = value.parse().with_context(|| wrong("an IPv4 address"))?;
                becomes("radio", "broadcast", format!("\"{address}\""));
            }
            "BROADCASTPORT" => {
                let port: u16 = value.parse().with_context(|| wrong("1024 to 65535"))?;
                becomes("radio", "port", port.to_string());
            }
            "SERIALPORT" => {
                let baud = value_of(&keys, "BAUDRATE").unwrap_or("57600");
                let _: u32 =
                    baud.parse().with_context(|| format!("BAUDRATE: found {baud:?}, expected a rate"))?;
                becomes("autopilot", "endpoint", format!("{:?}", format!("serial:{value}:{baud}")));
            }
            "BAUDRATE" if value_of(&keys, "SERIALPORT").is_some() => {}
            "BAUDRATE" => report.push(no_counterpart(key, "no SERIALPORT besides it: autopilot.endpoint")),
            "GROUNDDISTANCE" => report.push(no_counterpart(key, "aircraft take off from where they stand")),
            _ => match NO_COUNTERPART.iter().find(|(theirs, _)| *theirs == key) {
                Some((_, why)) => report.push(no_counterpart(key, why)),
                None => match OF_SIMULATIONS.iter().find(|(theirs, _)| *theirs == key) {
                    Some((_, place)) => {
                        report.push(format!("{key}: a key of ArduSim's simulations: {place}"))
                    }
                    None => report.push(no_counterpart(key, "no key of ardusim.ini")),
                },
            },
        }
    }
    if let Some(section @ ("muscop" | "follow_me")) = protocol {
        let is_written = |name: &str| {
            sections.get(section).is_some_and(|lines| lines.iter().any(|line| line.starts_with(name)))
        };
        let leader = if section == "muscop" { "master" } else { "leader" };
        for name in ["aircraft", leader].into_iter().filter(|name| !is_written(&format!("{name} = "))) {
            report
                .push(format!("missing: {section}.{name}: ArduSim has no such key, and the daemon needs it"));
        }
    }
    let mut toml = String::from("# From ardusim.ini by `wingbeat import-ini`.\n");
    for line in top {
        writeln!(toml, "{line}")?;
    }
    for (section, lines) in sections {
        writeln!(toml, "\n[{section}]")?;
        for line in lines {
            writeln!(toml, "{line}")?;
        }
    }
    Ok(Translation { toml, report })
}

/// The least distance that *Setup* takes with the default separation budget, metres.
fn least_m(section: &str, key: &str) -> Option<f64> {
    let (me, aircraft) = (VehicleId(1), 2);
    let swarm = swarm::Config::new(me, me, aircraft);
    match (section, key) {
        (_, "LANDDISTANCE") => Some(swarm.budget().landing().distance_m),
        ("muscop", _) => Some(swarm.budget().spacing(0.0).distance_m),
        ("follow_me", _) => Some(follow_me::Config::new(me, me, aircraft).distance_least_m()),
        _ => None,
    }
}

fn no_counterpart(key: &str, why: &str) -> String {
    format!("{key}: no counterpart: {why}")
}

struct Line {
    number: usize,
    key: String,
    value: String,
}

/// The lines of the file that have a value.
fn read(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for (i, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (number, line) = (i + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            bail!("line {number}: found {line:?}, expected KEY=value");
        };
        let (key, value) = (key.trim().to_uppercase(), value.trim().to_owned());
        if let Some(earlier) = lines.iter().find(|earlier| earlier.key == key) {
            bail!("line {number}: found {key} again, expected it once: it is in line {}", earlier.number);
        }
        if !value.is_empty() {
            lines.push(Line { number, key, value });
        }
    }
    Ok(lines)
}

fn value_of<'a>(keys: &'a [Line], key: &str) -> Option<&'a str> {
    keys.iter().find(|line| line.key == key).map(|line| line.value.as_str())
}

fn protocol(keys: &[Line]) -> Result<Option<&'static str>> {
    let Some(name) = value_of(keys, "UAVPROTOCOL") else { return Ok(None) };
    let lower = name.to_lowercase();
    let found = PROTOCOLS.iter().find(|(theirs, _)| lower.contains(theirs));
    match found {
        Some((_, ours)) => Ok(Some(ours)),
        None => bail!("UAVPROTOCOL: found {name:?}, expected MBCAP, MUSCOP, Follow Me or Mission"),
    }
}

fn positive(text: &str) -> Result<f64> {
    let value: f64 = text.parse()?;
    ensure!(value.is_finite() && value > 0.0, "not a positive number");
    Ok(value)
}

fn mac(text: &str) -> Result<u64> {
    let digits: String = text.trim().chars().filter(|c| !matches!(c, ':' | '-')).collect();
    ensure!(digits.len() == 12, "not 12 hexadecimal digits");
    Ok(u64::from_str_radix(&digits, 16)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INI: &str = "# ArduSim\nUAVPROTOCOL=MUSCOP\nUAVSPEED=10.0\nMACS=b8:27:eb:01:02:03,b8:27:eb:00:00:01\n\
        SERIALPORT=/dev/ttyAMA0\nBAUDRATE=57600\nBROADCASTIP=192.168.1.255\nBROADCASTPORT=14650\n\
        AIRFORMATION=Compact matrix\nAIRDISTANCE=50\nLANDDISTANCE=12\nBATTERYCELLS=4\nCOMPUTERPORT=5750\n\
        TAKEOFFALGORITHM=Simplified\nBINGKEY=\nCOLOUR=red\n";

    #[test]
    fn the_result_is_a_configuration_and_every_key_is_accounted_for() {
        let Translation { toml, report } = translate(INI).unwrap();
        let expected = "# From ardusim.ini by `wingbeat import-ini`.\nprotocol = \"muscop\"\n\n[autopilot]\n\
            endpoint = \"serial:/dev/ttyAMA0:57600\"\n\n[muscop]\nmaster = \"0000b827eb010203\"\n\
            formation = \"compact-matrix\"\ndistance_m = 50.0\nlanding_distance_m = 12.0\n\n[radio]\n\
            broadcast = \"192.168.1.255\"\nport = 14650\n";
        assert_eq!(toml, expected);
        for key in ["UAVSPEED", "BATTERYCELLS", "COMPUTERPORT", "TAKEOFFALGORITHM", "COLOUR"] {
            assert!(
                report.iter().any(|line| line.starts_with(&format!("{key}: no counterpart: "))),
                "{report:?}"
            );
        }
        // One line each but BAUDRATE, which is part of the endpoint, and what is missing.
        assert_eq!(report.len(), 14, "{report:?}");
        assert!(report[13].starts_with("missing: muscop.aircraft"), "{report:?}");
        let rest = "id = \"0000b827eb010203\"\n[muscop]\naircraft = 3\n[security]\ninsecure = true\n";
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("wingbeatd.toml");
        std::fs::write(&config, rest).unwrap();
        std::fs::create_dir(folder.path().join("conf.d")).unwrap();
        std::fs::write(folder.path().join("conf.d/10-ardusim.toml"), toml).unwrap();
        let flags = wingbeat_onboard::config::Flags { config, overrides: Vec::new() };
        let layers = wingbeat_onboard::config::Layers::read(&flags).unwrap();
        let settings = wingbeat_onboard::config::read(&layers).unwrap();
        assert_eq!(settings.radio.port, 14_650);
        assert_eq!(settings.daemon.autopilot.to_string(), "serial:/dev/ttyAMA0:57600");
    }

    /// What is written holds: distances that Setup refuses are not written, and the number that would do is named.
    #[test]
    fn what_is_reported_is_so() {
        let of = |text: &str| translate(text).unwrap();
        let shipped = of("UAVPROTOCOL=MUSCOP\nAIRFORMATION=Random\nAIRDISTANCE=50\nLANDDISTANCE=2.5\n");
        assert!(
            shipped.toml.contains("formation = \"random\"") && !shipped.toml.contains("landing"),
            "{shipped:?}"
        );
        let least = |report: &[String], key: &str| {
            let line = report.iter().find(|line| line.starts_with(&format!("{key}: not written"))).unwrap();
            let (_, number) = line.split_once("at least ").unwrap();
            number.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let least_m = least(&shipped.report, "LANDDISTANCE");
        assert!(
            of(&format!("UAVPROTOCOL=MUSCOP\nLANDDISTANCE={}", least_m + 0.1))
                .toml
                .contains("landing_distance_m")
        );
        for name in ["muscop.aircraft", "muscop.master"] {
            let missing = format!("missing: {name}");
            assert!(shipped.report.iter().any(|line| line.starts_with(&missing)), "{name}: {shipped:?}");
        }
        let follows = of("UAVPROTOCOL=Follow Me\nAIRDISTANCE=50\n");
        assert_eq!(least(&follows.report, "AIRDISTANCE"), 60.0);
        for (key, words) in [
            ("KMLMINALTITUDE=12", "--kml-height-least-m"),
            ("KMLALTITUDE=25", "KML paths with heights are flown at them"),
            ("KMLMISSIONEND=RTL", "KML paths end with a landing"),
            ("VERBOSESTORE=true", "each flight is logged"),
            ("numUAVs=3", "a key of ArduSim's simulations"),
            ("missionFile=a;b", "[[own.flight.aircraft]]"),
        ] {
            let report = of(key).report;
            assert!(report[0].contains(words), "{key}: {report:?}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, words) in [
            ("UAVSPEED", "line 1: found \"UAVSPEED\", expected KEY=value"),
            ("UAVSPEED=1\n\nUAVSPEED=2", "line 3: found UAVSPEED again, expected it once: it is in line 1"),
            ("UAVPROTOCOL=Vision", "UAVPROTOCOL: found \"Vision\", expected MBCAP"),
            ("UAVPROTOCOL=MBCAP v4\nUAVSPEED=fast", "line 2: UAVSPEED: found \"fast\", expected a speed"),
            ("UAVSPEED=-1", "line 1: UAVSPEED: found \"-1\""),
            ("BROADCASTPORT=70000", "line 1: BROADCASTPORT: found \"70000\""),
            ("BROADCASTIP=all", "line 1: BROADCASTIP: found \"all\", expected an IPv4 address"),
            ("UAVPROTOCOL=MUSCOP\nMACS=b8:27", "line 2: MACS: found \"b8:27\""),
            ("SERIALPORT=/dev/ttyAMA0\nBAUDRATE=fast", "BAUDRATE: found \"fast\""),
        ] {
            let error = format!("{:#}", translate(text).unwrap_err());
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
