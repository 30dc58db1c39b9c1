//! What several tests fly.

pub mod mission_flight;
pub mod muscop;
pub mod pair;
pub mod row;
