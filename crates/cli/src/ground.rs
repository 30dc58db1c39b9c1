//! `wingbeat ground`: the PC Companion.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use wingbeat_ground::{Config, ConsoleConfig, Ground, Hosts};
use wingbeat_link::Endpoint;
use wingbeat_radio::{Clock, UdpBroadcast, UdpConfig};
use wingbeat_wire::Role;

/// Arguments of `wingbeat ground`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Addresses of the aircraft's APIs, HOST:PORT.
    #[arg(required = true)]
    aircraft: Vec<String>,
    /// Where the console is served.
    #[arg(long, default_value = "127.0.0.1:8700")]
    bind: SocketAddr,
    /// Let --bind be an address that other computers reach. Whatever reaches it commands with this console's keys: there are no users.
    #[arg(long)]
    unprotected: bool,
    /// A name under which the console is opened, besides IP addresses, localhost and this computer's own name;
    /// may be repeated. Requests under another name are refused.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The folder of this console's keys: console.key and fleet.bundle, as `wingbeat fleet console` makes them.
    /// With it aircraft are reached by TLS alone; without it only those without keys are reached.
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Repeat emergency commands by radio too: network interface, broadcast address and UDP port of the aircraft, as in their
    /// `[radio]`, for example wlan0/192.168.1.255:14600 or wlan0/[ff12::5742]:14600.
    #[arg(long, value_name = "IF/ADDRESS:PORT", requires = "keys", value_parser = radio)]
    radio: Option<UdpConfig>,
    /// Broadcast the corrections (RTCM 3) of a base station to the aircraft's satellite receivers: tcp:HOST:PORT or
    /// serial:DEVICE:BAUD. The key must be an operator's.
    #[arg(long, value_name = "SOURCE", requires = "radio", value_parser = rtcm)]
    rtcm: Option<Endpoint>,
    /// The built page.
    #[arg(long, value_name = "DIR")]
    web: Option<PathBuf>,
    /// A map of the ground for the page, as a PMTiles archive of pictures or of vectors in the Protomaps schema. Without it the
    /// page draws a graticule.
    #[arg(long, value_name = "FILE", requires = "web", value_parser = tiles)]
    tiles: Option<PathBuf>,
}

/// A PMTiles archive of version 3 begins with its name and version.
fn tiles(text: &str) -> Result<PathBuf, String> {
    let mut start = [0; 8];
    let read =
        std::fs::File::open(text).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    match read {
        Ok(()) if start == *b"PMTiles\x03" => Ok(PathBuf::from(text)),
        Ok(()) => Err("found a file of another kind, expected a PMTiles archive of version 3".to_owned()),
        Err(error) => Err(format!("found {error}, expected a PMTiles archive of version 3")),
    }
}

/// The console's keys. Its counters are kept beside them.
fn console(folder: &Path, rtcm: Option<Endpoint>) -> Result<ConsoleConfig> {
    let keys = wingbeat_keys::read_console(folder)
        .map_err(|refused| anyhow!("--keys: found {}, expected {}", refused.found, refused.expected))?;
    if rtcm.is_some() && keys.role != Role::Operator {
        bail!("--rtcm: found the key of a console of role {}, expected an operator's", keys.role.name());
    }
    Ok(ConsoleConfig { keys, clock: Clock::real_time(), state: Some(folder.to_owned()), rtcm })
}

/// Where a base station's frames come from: what an autopilot's bytes do, but for what is listened on.
fn rtcm(text: &str) -> Result<Endpoint, String> {
    const EXPECTED: &str =
        "tcp:HOST:PORT or serial:DEVICE:BAUD, for example tcp:10.0.0.2:2101 or serial:/dev/ttyACM0:115200";
    match text.parse() {
        Ok(source @ (Endpoint::TcpClient { .. } | Endpoint::Serial { .. })) => Ok(source),
        Ok(Endpoint::UdpListen(_) | Endpoint::UdpSend(_)) => Err(format!("found UDP, expected {EXPECTED}")),
        Err(error) => Err(format!("found {}, expected {EXPECTED}", error.problem)),
    }
}

fn radio(text: &str) -> Result<UdpConfig, String> {
    let parsed = text.split_once('/').and_then(|(interface, address)| {
        let (address, port) = address.rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let interface = (!interface.is_empty()).then(|| interface.to_owned());
        Some(UdpConfig { interface, port: port.parse().ok()?, destination: address.parse().ok()? })
    });
    parsed.ok_or_else(|| {
        format!("found {text:?}, expected INTERFACE/ADDRESS:PORT, for example wlan0/192.168.1.255:14600")
    })
}

/// Serves until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let end = crate::end_signal()?;
        let is_reached = !arguments.bind.ip().is_loopback();
        if is_reached && !arguments.unprotected {
            bail!(
                "--bind: found {}, which other computers reach, expected an address of this computer alone, for example \
                 127.0.0.1:8700, or --unprotected: whatever reaches the console commands",
                arguments.bind
            );
        }
        let hosts = Hosts::new("--allow-host", &arguments.allow_host).context("--allow-host")?;
        let config = Config {
            bind: arguments.bind,
            aircraft: arguments.aircraft.clone(),
            web_dir: arguments.web.clone(),
            tiles: arguments.tiles.clone(),
            hosts,
            console: arguments
                .keys
                .as_deref()
                .map(|folder| console(folder, arguments.rtcm.clone()))
                .transpose()?,
        };
        let radio = arguments.radio.clone().map(UdpBroadcast::spawn);
        let ground = Ground::start_with(config, radio).await?;
        println!("PC Companion: http://{}", ground.address());
        if is_reached {
            println!("--unprotected: whatever reaches this address commands the aircraft");
        }
        end.await;
        ground.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_station_is_on_tcp_or_on_a_serial_line() {
        for good in ["tcp:10.0.0.2:2101", "tcp:base.local:2101", "serial:/dev/ttyACM0:115200"] {
            assert_eq!(rtcm(good).unwrap().to_string(), good);
        }
        for (bad, what) in [
            ("udp:0.0.0.0:2101", "found UDP, expected tcp:HOST:PORT or serial:DEVICE:BAUD"),
            ("ntrip://caster:2101/MOUNT", "found \"ntrip\" is not a scheme, expected tcp:HOST:PORT"),
            ("tcp:10.0.0.2", "found no port, expected"),
            ("serial:ttyACM0:115200", "found \"ttyACM0\" is not the absolute path of a device, expected"),
            ("", "found no scheme, expected"),
        ] {
            let message = rtcm(bad).unwrap_err();
            assert!(message.starts_with(what), "{message}");
        }
    }
}
