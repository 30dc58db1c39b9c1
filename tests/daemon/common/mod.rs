//! What several tests use.

pub mod aircraft;
#[path = "../../../crates/onboard/tests/common/client.rs"]
pub mod client;
pub mod config;
pub mod operator;
pub mod rig;
pub mod spy;
pub mod strace;
