//! Kinds of values that several sections have, and the message of a value that is refused.

use std::{fmt::Display, path::PathBuf, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{IntoDeserializer as _, value::StrDeserializer},
};
use wingbeat_wire::VehicleId;

use super::ConfigError;

/// A time in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Milliseconds(pub u64);

impl From<Milliseconds> for Duration {
    fn from(time: Milliseconds) -> Self {
        Self::from_millis(time.0)
    }
}

/// A time in seconds, to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;
    fn try_from(seconds: f64) -> Result<Self, String> {
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Self).map_err(|_| format!("found {seconds}, expected a time in seconds"))
    }
}

impl From<Seconds> for Duration {
    fn from(time: Seconds) -> Self {
        time.0
    }
}

/// One of an enumeration's names. The same message from the file and from the environment lists them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let name: StrDeserializer<'_, D::Error> = name.as_str().into_deserializer();
        T::deserialize(name).map(Self)
    }
}

/// Overwrites a default by what is configured.
pub(super) fn set<T>(target: &mut T, configured: Option<impl Into<T>>) {
    if let Some(configured) = configured {
        *target = configured.into();
    }
}

/// The same of an enumeration.
pub(super) fn choose<T>(target: &mut T, configured: Option<Choice<T>>) {
    set(target, configured.map(|choice| choice.0));
}

/// A value that cannot be used.
pub(super) fn value(key: &'static str, found: &dyn Display, expected: impl Into<String>) -> ConfigError {
    ConfigError::Value { key, found: found.to_string(), expected: expected.into() }
}

/// A text that cannot be used.
pub(super) fn quoted(key: &'static str, found: &str, expected: &str) -> ConfigError {
    value(key, &format!("{found:?}"), expected)
}

/// A key without a default.
pub(super) fn required<T: Clone>(
    key: &'static str,
    found: Option<&T>,
    expected: &str,
) -> Result<T, ConfigError> {
    found.cloned().ok_or_else(|| value(key, &"nothing", expected))
}

/// An aircraft's id.
pub(crate) fn vehicle(key: &'static str, text: &str) -> Result<VehicleId, ConfigError> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(id) if digits && id != 0 => Ok(VehicleId(id)),
        _ => Err(quoted(key, text, "16 hexadecimal digits, not all zero")),
    }
}

/// The MAC address of an interface, from the kernel.
pub(super) fn mac_address(interface: &str) -> Result<u64, String> {
    let path = PathBuf::from("/sys/class/net").join(interface).join("address");
    let text = std::fs::read_to_string(path).map_err(|_| format!("no interface {interface}"))?;
    let digits: String = text.trim().split(':').collect();
    match u64::from_str_radix(&digits, 16) {
        Ok(address) if address != 0 && digits.len() == 12 => Ok(address),
        _ => Err(format!("no MAC address on {interface}")),
    }
}
