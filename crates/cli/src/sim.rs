//! `wingbeat sim`: N simulated flight controllers on N TCP ports.

use std::io::Write as _;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use wingbeat_bench::serve;
use wingbeat_geo::{DVec3, Frame, Instant, Position};
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
    /// How many aircraft.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(UAVS_MAX)))]
    uavs: u8,
    /// First TCP port on 127.0.0.1; every further aircraft is 10 higher. 0 lets the system choose each.
    #[arg(long, default_value_t = 5760)]
    tcp: u16,
    /// Whose answers and motion they have.
    #[arg(long, value_enum, default_value = "3.5.7")]
    profile: ProfileName,
    /// Where the first one stands: latitude and longitude in degrees, altitude in metres, heading in
    /// degrees.
    #[arg(long, value_name = "LAT,LON,ALT,HEADING", default_value = "39.4824,-0.3464,10,0")]
    #[arg(allow_hyphen_values = true)]
    home: Home,
    /// Metres eastward from one aircraft to the next.
    #[arg(long, value_name = "M", default_value_t = 10.0)]
    spacing: f64,
    /// What chance is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How much faster than the clock on the wall, 0.1 to 100.
    #[arg(long, default_value_t = 1.0)]
    speedup: f64,
    /// Ready at once (warm), or after the 41 s that ArduCopter takes (cold).
    #[arg(long, value_enum, default_value = "warm")]
    boot: BootName,
}

#[derive(Clone, Copy, ValueEnum)]
enum ProfileName {
    #[value(name = "3.5.7")]
    Copter357,
    #[value(name = "4.6.2")]
    Copter462,
}

#[derive(Clone, Copy, ValueEnum)]
enum BootName {
    Cold,
    Warm,
}

/// A place with a heading.
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

async fn serve(arguments: &Arguments) -> Result<()> {
    // All ports before the first flight: nothing flies if one is taken.
    let mut listeners = Vec::new();
    for index in 0..u16::from(arguments.uavs) {
        let port = if arguments.tcp == 0 { 0 } else { arguments.tcp + PORT_STEP * index };
        let address = ("127.0.0.1", port);
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on port {port} of 127.0.0.1"))?;
        listeners.push(listener);
    }
    // Before anything is printed: whoever reads that may already want it to end.
    let end = crate::end_signal()?;
    let frame = Frame::new(arguments.home.position);
    let clock = Clock::start(arguments.speedup)?;
    let mut flights = JoinSet::new();
    for (index, listener) in listeners.into_iter().enumerate() {
        let offset = DVec3::new(arguments.spacing * index as f64, 0.0, 0.0);
        let mut config = Config::new(index as u8 + 1, frame.to_position(offset));
        config.heading_rad = arguments.home.heading_rad;
        config.profile = match arguments.profile {
            ProfileName::Copter357 => Profile::Copter357,
            ProfileName::Copter462 => Profile::Copter462,
        };
        config.boot = match arguments.boot {
            BootName::Cold => Boot::Cold,
            BootName::Warm => Boot::Warm,
        };
        // Nobody has to read where the aircraft are.
        let _ = writeln!(std::io::stdout(), "aircraft {}: tcp:{}", config.system_id, listener.local_addr()?);
        let fc = FlightController::new(config, arguments.seed, Instant::ZERO);
        flights.spawn(serve::flight_controller(listener, fc, clock, |_| {}));
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
