//! The section `http`: where the API is served.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Deserialize;

use super::ConfigError;
use super::values::{quoted, value};
use crate::Hosts;

/// This machine only: without keys any program that reaches the API commands, so serving it to a whole network is a decision of the
/// operator and not a default.
const BIND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// One machine has few names.
const HOSTS_MAX: usize = 16;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    bind: Option<String>,
    allowed_hosts: Option<Vec<String>>,
}

impl Http {
    pub(super) fn settings(&self) -> Result<SocketAddr, ConfigError> {
        let Some(bind) = &self.bind else { return Ok(BIND) };
        let expected = "an address and a port, for example 0.0.0.0:8080";
        bind.parse().map_err(|_| quoted("http.bind", bind, expected))
    }

    pub(super) fn hosts(&self) -> Result<Hosts, ConfigError> {
        let names = self.allowed_hosts.as_deref().unwrap_or_default();
        if names.len() > HOSTS_MAX {
            let found = format!("{} names", names.len());
            return Err(value("http.allowed_hosts", &found, format!("at most {HOSTS_MAX}")));
        }
        Hosts::new("http.allowed_hosts", names)
            .map_err(|error| quoted("http.allowed_hosts", &error.found, wingbeat_server::NameError::EXPECTED))
    }
}
