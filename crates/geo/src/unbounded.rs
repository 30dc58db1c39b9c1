//! Numbers that may be infinite in formats for people, which cannot write them: none stands for infinity. For
//! `#[serde(with = "wingbeat_geo::unbounded")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// None of an infinite number.
///
/// # Errors
/// The format's.
pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number.is_finite().then_some(number).serialize(serializer)
}

/// Infinity of none.
///
/// # Errors
/// The format's.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}
