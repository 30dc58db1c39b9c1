//! A daemon's configuration: the one place here that names every field.

use std::net::SocketAddr;

use wingbeat_agent::CompanionLoss;
use wingbeat_link::Endpoint;
use wingbeat_onboard::{Config, Hosts, gateway, keys::Keys};

/// Of a daemon without keys, files or guardian, whose aircraft ends with its test.
pub(crate) fn config(mut agent: wingbeat_agent::Config, autopilot: Endpoint) -> Config {
    agent.companion_loss = CompanionLoss::EndsWithIt;
    Config {
        name: format!("uav-{}", agent.coordination.me()),
        autopilot,
        http: ([127, 0, 0, 1], 0).into(),
        hosts: Hosts::default(),
        agent,
        protocols: Default::default(),
        guard: None,
        keys: Keys::insecure(),
        enrolled: None,
        configuration_fault: None,
        link_probe_period: None,
        log: None,
        chrony_socket: None,
        state: None,
        gateway: gateway::Config::default(),
        seed: 1,
    }
}

/// An autopilot behind TCP.
#[allow(dead_code, reason = "what other tests use")]
pub(crate) fn tcp(address: SocketAddr) -> Endpoint {
    Endpoint::TcpClient { host: address.ip().to_string(), port: address.port() }
}

/// A port without a listener: no autopilot.
#[allow(dead_code, reason = "what other tests use")]
pub(crate) fn none() -> Endpoint {
    tcp(([127, 0, 0, 1], 1).into())
}
