//! The section `radio`: datagrams to and from the other aircraft.

use std::net::Ipv4Addr;

use serde::Deserialize;
use wingbeat_radio::UdpConfig;

use super::ConfigError;
use super::values::{quoted, value};

/// Outside MAVLink's 14550 to 14559, which ground stations take.
const PORT: u16 = 14_600;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Radio {
    pub(super) interface: Option<String>,
    port: Option<u16>,
    broadcast: Option<String>,
    frequency_mhz: Option<u32>,
}

impl Radio {
    pub(super) fn settings(self) -> Result<UdpConfig, ConfigError> {
        let broadcast = match &self.broadcast {
            None => Ipv4Addr::BROADCAST,
            Some(address) => address.parse().map_err(|_| {
                quoted("radio.broadcast", address, "a broadcast address, for example 255.255.255.255")
            })?,
        };
        let port = self.port.unwrap_or(PORT);
        if port == 0 {
            return Err(value("radio.port", &port, "1 to 65535, the same on every aircraft"));
        }
        Ok(UdpConfig { interface: self.interface, port, broadcast })
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
