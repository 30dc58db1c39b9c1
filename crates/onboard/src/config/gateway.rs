//! The section `gateway`: the addresses at which ground stations receive the vehicle's MAVLink.

use std::net::IpAddr;

use serde::Deserialize;
use wingbeat_link::Endpoint;

use super::ConfigError;
use super::values::{quoted, value};
use crate::gateway::Config;

/// Each that sends to a fixed receiver is a client from the start.
const UDP_MAX: usize = 4;
/// More than are served have to prove their address.
const UDP_CLIENTS_MAX: usize = 16;
const EXPECTED_UDP: &str =
    "udpout:ADDRESS:PORT (send) or udp:ADDRESS:PORT (listen), for example udpout:127.0.0.1:14550";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gateway {
    udp: Option<Vec<String>>,
    udp_clients: Option<Vec<String>>,
    tcp: Option<String>,
}

impl Gateway {
    pub(super) fn settings(&self) -> Result<Config, ConfigError> {
        let udp = self.udp.as_deref().unwrap_or_default();
        if udp.len() > UDP_MAX {
            let found = format!("{} endpoints", udp.len());
            return Err(value("gateway.udp", &found, format!("at most {UDP_MAX}")));
        }
        let mut endpoints = Vec::new();
        for text in udp {
            match text.parse() {
                Ok(endpoint @ (Endpoint::UdpListen(_) | Endpoint::UdpSend(_))) => endpoints.push(endpoint),
                Ok(_) | Err(_) => return Err(quoted("gateway.udp", text, EXPECTED_UDP)),
            }
        }
        let expected = "an address and a port, for example 127.0.0.1:5790";
        let tcp = self
            .tcp
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| text.parse().map_err(|_| quoted("gateway.tcp", text, expected)));
        let udp_clients = match &self.udp_clients {
            Some(clients) if clients.len() > UDP_CLIENTS_MAX => {
                let found = format!("{} addresses", clients.len());
                return Err(value("gateway.udp_clients", &found, format!("at most {UDP_CLIENTS_MAX}")));
            }
            Some(clients) => {
                let address = |text: &String| {
                    let address: Result<IpAddr, _> = text.parse();
                    address.map_err(|_| {
                        quoted("gateway.udp_clients", text, "an IP address, for example 10.0.0.9")
                    })
                };
                clients.iter().map(address).collect::<Result<_, _>>()?
            }
            None => Config::default().udp_clients,
        };
        Ok(Config { udp: endpoints, tcp: tcp.transpose()?, udp_clients })
    }
}
