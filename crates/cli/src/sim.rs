//! `wingbeat sim`: N simulated flight controllers on N TCP ports, or behind N serial devices.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wingbeat_bench::serve_serial::{self, Line};
use wingbeat_geo::{DVec3, Frame, Instant, Position};
use wingbeat_hub::serve;
use wingbeat_radio::Clock;
use wingbeat_sim::flight_controller::{Boot, Config, FlightController};
use wingbeat_sim::motion::Profile;

/// Distance between the ports of two aircraft: SITL's.
const PORT_STEP: u16 = 10;
/// System ids 1 to 250 are vehicles'; the highest belong to ground stations.
const UAVS_MAX: u8 = 250;

/// Arguments of `wingbeat sim`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Number of aircraft.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(UAVS_MAX)))]
    uavs: u8,
    /// First TCP port on 127.0.0.1; every further aircraft is 10 higher. 0 lets the system choose each.
    #[arg(long, default_value_t = 5760)]
    tcp: u16,
    /// Instead of a TCP port, a pseudo-terminal like a flight controller's serial line, with this symbolic
    /// link to it. With several aircraft their numbers follow the link's name.
    #[arg(long, value_name = "LINK", conflicts_with = "tcp")]
    serial: Option<PathBuf>,
    /// Print each change of an aircraft's mode, of its arming, and of its being in the air.
    #[arg(long)]
    watch: bool,
    /// Whose answers and motion they have.
    #[arg(long, default_value_t = Profile::Copter357, value_name = "VERSION")]
    profile: Profile,
    /// Where the first one stands: latitude and longitude in degrees, altitude in metres, heading in
    /// degrees.
    #[arg(long, value_name = "LAT,LON,ALT,HEADING", default_value = "39.4824,-0.3464,10,0")]
    #[arg(allow_hyphen_values = true)]
    home: Home,
    /// Metres eastward from one aircraft to the next.
    #[arg(long, value_name = "M", default_value_t = 10.0)]
    spacing: f64,
    /// What randomness is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How much faster than the wall clock, 0.1 to 100.
    #[arg(long, default_value_t = 1.0)]
    speedup: f64,
    /// Its position sensor has an RTK fix only while it is handed corrections (GPS_RTCM_DATA).
    #[arg(long)]
    rtk: bool,
    /// Ready from the start (warm), or after the 41 s that ArduCopter takes (cold).
    #[arg(long, value_enum, default_value = "warm")]
    boot: BootName,
}

#[derive(Clone, Copy, ValueEnum)]
enum BootName {
    Cold,
    Warm,
}

/// A position with a heading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Home {
    position: Position,
    heading_rad: f64,
}

impl FromStr for Home {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Vec<f64> = text
            .split(',')
            .map(|part| part.trim().parse().map_err(|_| anyhow!("{part:?} is not a number")))
            .collect::<Result<_>>()?;
        let [latitude, longitude, altitude, heading] = numbers[..] else {
            bail!("{} numbers found, expected 4: LAT,LON,ALT,HEADING", numbers.len());
        };
        if !(-360.0..=360.0).contains(&heading) {
            bail!("heading {heading} is not within -360..360 degrees");
        }
        let position = Position::from_degrees(latitude, longitude, altitude)?;
        Ok(Self { position, heading_rad: heading.rem_euclid(360.0).to_radians() })
    }
}

/// Runs the subcommand until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !(0.1..=100.0).contains(&arguments.speedup) {
        bail!("--speedup: {} found, expected 0.1 to 100", arguments.speedup);
    }
    if !(0.0..=1000.0).contains(&arguments.spacing) {
        bail!("--spacing: {} m found, expected 0 to 1000", arguments.spacing);
    }
    let last = u32::from(arguments.tcp) + u32::from(PORT_STEP) * u32::from(arguments.uavs - 1);
    if last > u32::from(u16::MAX) {
        bail!("--tcp: {} aircraft would end at port {last}, expected at most 65535", arguments.uavs);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))
}

/// Where an aircraft is served.
enum Port {
    Tcp(TcpListener),
    Serial(Line),
}

async fn serve(arguments: &Arguments) -> Result<()> {
    // All ports before the first flight: nothing flies if one is taken.
    let mut ports = Vec::new();
    for index in 0..arguments.uavs {
        ports.push(match &arguments.serial {
            Some(link) => Port::Serial(line(link, index, arguments.uavs)?),
            None => Port::Tcp(listener(arguments.tcp, index).await?),
        });
    }
    // Before anything is printed: the reader of that may already want it to end.
    let end = crate::end_signal()?;
    let frame = Frame::new(arguments.home.position);
    let clock = Clock::start(arguments.speedup)?;
    let mut flights = JoinSet::new();
    for (index, port) in ports.into_iter().enumerate() {
        let offset = DVec3::new(arguments.spacing * index as f64, 0.0, 0.0);
        let mut config = Config::new(index as u8 + 1, frame.to_position(offset));
        config.heading_rad = arguments.home.heading_rad;
        (config.profile, config.is_exact) = (arguments.profile, true);
        config.needs_corrections = arguments.rtk;
        config.boot = match arguments.boot {
            BootName::Cold => Boot::Cold,
            BootName::Warm => Boot::Warm,
        };
        let id = config.system_id;
        let fc = FlightController::new(config, arguments.seed, Instant::ZERO);
        let watch = watcher(arguments.watch, id, clock);
        match port {
            Port::Tcp(listener) => {
                print(&format!("aircraft {id}: tcp:{}", listener.local_addr()?));
                flights.spawn(serve::flight_controller(listener, fc, clock, watch));
            }
            Port::Serial(line) => {
                print(&format!("aircraft {id}: serial:{}:921600", line.device().display()));
                flights.spawn(async move {
                    serve_serial::flight_controller(line, fc, clock, watch).await;
                    Ok(())
                });
            }
        }
    }
    tokio::select! {
        ended = flights.join_next() => match ended {
            Some(Ok(Err(error))) => Err(error).context("a port stopped listening"),
            Some(Err(error)) => Err(error).context("an aircraft's task ended"),
            Some(Ok(Ok(()))) | None => Ok(()),
        },
        () = end => Ok(()),
    }
}

async fn listener(first: u16, index: u8) -> Result<TcpListener> {
    let port = if first == 0 { 0 } else { first + PORT_STEP * u16::from(index) };
    TcpListener::bind(("127.0.0.1", port))
        .await
        .with_context(|| format!("cannot listen on port {port} of 127.0.0.1"))
}

fn line(link: &Path, index: u8, uavs: u8) -> Result<Line> {
    let mut name = link.as_os_str().to_owned();
    if uavs > 1 {
        name.push(format!("{}", index + 1));
    }
    Line::new(Path::new(&name))
        .with_context(|| format!("--serial: {}: expected to make a link there", Path::new(&name).display()))
}

/// A closed standard output is no error.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints the true state of an aircraft whenever it changes.
fn watcher(on: bool, id: u8, clock: Clock) -> impl FnMut(&mut FlightController) {
    let mut last = None;
    move |fc| {
        if !on {
            return;
        }
        let truth = fc.truth();
        let now = (truth.mode, truth.armed, truth.landed);
        if last.replace(now) != Some(now) {
            let armed = if truth.armed { "armed" } else { "disarmed" };
            let place = if truth.landed { "landed" } else { "in the air" };
            print(&format!(
                "aircraft {id}: {:.1} s: {}, {armed}, {place}, {:.1} m up, {:.1} m/s",
                clock.now().as_millis() as f64 / 1_000.0,
                truth.mode.name(),
                truth.local.z,
                truth.velocity.length()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_four_numbers_on_the_earth() {
        let home: Home = "39.5,-0.25,10,-90".parse().unwrap();
        assert_eq!(home.position, Position::from_degrees(39.5, -0.25, 10.0).unwrap());
        assert!((home.heading_rad.to_degrees() - 270.0).abs() < 1e-9);
        for (text, what) in [
            ("39.5,-0.25,10", "3 numbers"),
            ("39.5,west,10,0", "\"west\" is not a number"),
            ("99,0,0,0", "latitude 99"),
            ("NaN,0,0,0", "latitude NaN"),
            ("0,0,0,400", "heading 400"),
        ] {
            let message = text.parse::<Home>().unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        }
    }
}
