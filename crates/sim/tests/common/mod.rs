//! What several tests fly.

pub(crate) mod mission_flight;
pub(crate) mod muscop;
pub(crate) mod pair;
pub(crate) mod row;
