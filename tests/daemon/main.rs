//! Whole daemons in flight: simulated flight controllers on TCP, a hub for a radio, real clients. One program: most of the time of
//! a small test is its linking.

#![allow(clippy::disallowed_methods, reason = "daemons and other processes run in real time")]

mod aids;
mod bad_swarm;
mod boots;
mod bundle;
mod common;
mod corrections;
mod descriptors;
mod flight;
mod gateway;
mod gateway_clients;
mod guard;
mod identity;
mod keys;
mod links;
mod namespaces;
mod orders;
mod owed;
mod parameters;
mod power_cuts;
mod regions;
mod restart;
mod watchdog;
