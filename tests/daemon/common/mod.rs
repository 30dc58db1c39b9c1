//! What several tests use.

pub(crate) mod aircraft;
#[path = "../../../crates/onboard/tests/common/client.rs"]
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod operator;
pub(crate) mod rig;
pub(crate) mod spy;
pub(crate) mod strace;
