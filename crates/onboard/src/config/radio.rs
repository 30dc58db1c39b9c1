//! The section `radio`: datagrams to and from the other aircraft.

use std::{net::Ipv4Addr, time::Duration};

use serde::Deserialize;
use wingbeat_radio::{Destination, UdpConfig};

use super::ConfigError;
use super::values::{quoted, value};
use crate::links::PERIOD_MS;

/// Outside MAVLink's 14550 to 14559, which ground stations take.
const PORT: u16 = 14_600;
const LINK_PROBE_PERIOD_MS: u64 = 1_000;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Radio {
    pub(super) interface: Option<String>,
    port: Option<u16>,
    broadcast: Option<String>,
    frequency_mhz: Option<u32>,
    link_probe_period_ms: Option<u64>,
}

impl Radio {
    pub(super) fn settings(self) -> Result<UdpConfig, ConfigError> {
        let destination = match &self.broadcast {
            None => Destination::Broadcast(Ipv4Addr::BROADCAST),
            Some(text) => text.parse().map_err(|expected| quoted("radio.broadcast", text, expected))?,
        };
        let needs_interface = !matches!(destination, Destination::Broadcast(_));
        if let (true, None, Some(text)) = (needs_interface, &self.interface, &self.broadcast) {
            return Err(quoted(
                "radio.broadcast",
                text,
                "a radio.interface with it, or an IPv4 broadcast address",
            ));
        }
        let port = self.port.unwrap_or(PORT);
        if port == 0 {
            return Err(value("radio.port", &port, "1 to 65535, the same on every aircraft"));
        }
        Ok(UdpConfig { interface: self.interface, port, destination })
    }

    /// The time between probes of the links; none where they are turned off.
    pub(super) fn link_probe_period(&self) -> Result<Option<Duration>, ConfigError> {
        match self.link_probe_period_ms.unwrap_or(LINK_PROBE_PERIOD_MS) {
            0 => Ok(None),
            ms if PERIOD_MS.contains(&ms) => Ok(Some(Duration::from_millis(ms))),
            ms => Err(value("radio.link_probe_period_ms", &ms, "500 to 60000 ms, or 0")),
        }
    }

    /// The doctor compares it; nothing sets it.
    pub(super) fn frequency_mhz(&self) -> Result<Option<u32>, ConfigError> {
        match self.frequency_mhz {
            Some(mhz) if !(2_400..=5_925).contains(&mhz) => {
                Err(value("radio.frequency_mhz", &mhz, "2400 to 5925 MHz, for example 5180"))
            }
            frequency_mhz => Ok(frequency_mhz),
        }
    }
}
