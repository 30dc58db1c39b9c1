//! Tests of the link to a flight controller that is opened, closed and unplugged.

mod reconnect;
mod unplug;
