//! The address of the autopilot, as one string of the configuration.

use core::{fmt, str::FromStr};
use std::{net::SocketAddr, path::PathBuf};

/// The slowest and the fastest rate that a Raspberry Pi's PL011 and ArduPilot's `SERIALn_BAUD` share.
const BAUD: std::ops::RangeInclusive<u32> = 1_200..=4_000_000;

/// Where the autopilot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A serial line: 8 data bits, no parity, 1 stop bit, exclusive.
    Serial {
        /// The device, for example `/dev/ttyAMA0`.
        path: PathBuf,
        /// Bits per second.
        baud: u32,
        /// Flow control by the RTS and CTS wires. Without those wires nothing would ever leave, so it is
        /// off unless asked for.
        rtscts: bool,
    },
    /// A TCP server, for example ArduPilot SITL. A name is resolved at every attempt.
    TcpClient {
        /// Address or name.
        host: String,
        /// Port.
        port: u16,
    },
    /// UDP: listen here, answer to the last sender.
    UdpListen(SocketAddr),
    /// UDP: send there, take only what comes from there.
    UdpSend(SocketAddr),
}

/// Why a string is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("autopilot endpoint: found \"{found}\" ({problem}), expected {expected}")]
pub struct EndpointError {
    /// The whole string.
    pub found: String,
    /// What is wrong with it.
    pub problem: String,
    /// The shape that it should have.
    pub expected: &'static str,
}

const EXPECTED: &str = "serial:/dev/ttyAMA0:921600, tcp:127.0.0.1:5760, udp:0.0.0.0:14550 (listen) or \
                        udpout:10.0.0.2:14550 (send)";
const EXPECTED_SERIAL: &str = "serial:DEVICE:BAUD, for example serial:/dev/ttyAMA0:921600, with :rtscts at its \
                               end where those wires are connected";
/// The last field of a serial line with flow control.
const RTSCTS: &str = "rtscts";
const EXPECTED_TCP: &str = "tcp:HOST:PORT, for example tcp:127.0.0.1:5760";
const EXPECTED_UDP: &str = "an address and a port, for example udp:0.0.0.0:14550";

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = |problem: String, expected| EndpointError { found: text.into(), problem, expected };
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(error("no scheme".into(), EXPECTED));
        };
        match scheme {
            "serial" => {
                let (rest, rtscts) = match rest.rsplit_once(':') {
                    Some((rest, RTSCTS)) => (rest, true),
                    _ => (rest, false),
                };
                let Some((path, baud)) = rest.rsplit_once(':') else {
                    return Err(error("no baud rate".into(), EXPECTED_SERIAL));
                };
                if !path.starts_with('/') {
                    return Err(error(
                        format!("\"{path}\" is not the absolute path of a device"),
                        EXPECTED_SERIAL,
                    ));
                }
                match baud.parse() {
                    Ok(baud) if BAUD.contains(&baud) => Ok(Self::Serial { path: path.into(), baud, rtscts }),
                    _ => Err(error(
                        format!("baud rate \"{baud}\" is not within {}..{}", BAUD.start(), BAUD.end()),
                        EXPECTED_SERIAL,
                    )),
                }
            }
            "tcp" => {
                let Some((host, port)) = rest.rsplit_once(':') else {
                    return Err(error("no port".into(), EXPECTED_TCP));
                };
                let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
                if host.is_empty() {
                    return Err(error("no host".into(), EXPECTED_TCP));
                }
                match port.parse() {
                    Ok(port) if port != 0 => Ok(Self::TcpClient { host: host.into(), port }),
                    _ => Err(error(format!("port \"{port}\" is not within 1..65535"), EXPECTED_TCP)),
                }
            }
            "udp" | "udpin" | "udpout" => {
                let address: SocketAddr = rest
                    .parse()
                    .map_err(|_| error(format!("\"{rest}\" is not an address and a port"), EXPECTED_UDP))?;
                match scheme {
                    "udpout" if address.port() == 0 => {
                        Err(error("port 0 cannot be sent to".into(), EXPECTED_UDP))
                    }
                    "udpout" => Ok(Self::UdpSend(address)),
                    _ => Ok(Self::UdpListen(address)),
                }
            }
            _ => Err(error(format!("\"{scheme}\" is not a scheme"), EXPECTED)),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial { path, baud, rtscts: false } => write!(f, "serial:{}:{baud}", path.display()),
            Self::Serial { path, baud, rtscts: true } => {
                write!(f, "serial:{}:{baud}:{RTSCTS}", path.display())
            }
            Self::TcpClient { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::TcpClient { host, port } => write!(f, "tcp:{host}:{port}"),
            Self::UdpListen(address) => write!(f, "udp:{address}"),
            Self::UdpSend(address) => write!(f, "udpout:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "serial:/dev/ttyAMA0:921600",
            "serial:/dev/ttyAMA0:921600:rtscts",
            "serial:/dev/serial/by-id/usb-ArduPilot_Pixhawk1_3E-if00:57600",
            "tcp:127.0.0.1:5760",
            "tcp:sitl.local:5760",
            "tcp:[::1]:5760",
            "udp:0.0.0.0:14550",
            "udp:[::]:14550",
            "udpout:10.0.0.2:14550",
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), text);
        }
        assert_eq!("udpin:0.0.0.0:1".parse::<Endpoint>(), "udp:0.0.0.0:1".parse());
    }

    #[test]
    fn a_bad_word_is_refused_with_what_was_found_and_expected() {
        for (text, problem) in [
            ("", "no scheme"),
            ("ttyAMA0", "no scheme"),
            ("usb:/dev/ttyACM0:57600", "\"usb\" is not a scheme"),
            ("serial:/dev/ttyAMA0", "no baud rate"),
            ("serial:/dev/ttyAMA0:rtscts", "no baud rate"),
            ("serial:/dev/ttyAMA0:57600:xonxoff", "baud rate \"xonxoff\""),
            ("serial:ttyAMA0:57600", "\"ttyAMA0\" is not the absolute path"),
            ("serial:/dev/ttyAMA0:fast", "baud rate \"fast\""),
            ("serial:/dev/ttyAMA0:0", "baud rate \"0\""),
            ("serial:/dev/ttyAMA0:99999999999", "baud rate"),
            ("tcp:127.0.0.1", "no port"),
            ("tcp::5760", "no host"),
            ("tcp:127.0.0.1:0", "port \"0\""),
            ("tcp:127.0.0.1:65536", "port \"65536\""),
            ("udp:localhost:14550", "is not an address"),
            ("udpout:10.0.0.2:0", "port 0"),
        ] {
            let error = text.parse::<Endpoint>().expect_err(text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(error.contains(&format!("found \"{text}\"")) && error.contains("expected"), "{error}");
        }
    }
}
