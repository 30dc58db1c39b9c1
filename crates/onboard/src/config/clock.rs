//! The section `clock`: how this computer's clock is set.

use std::path::PathBuf;

use serde::Deserialize;

use super::ConfigError;
use super::values::value;

/// A name that Debian's profile of AppArmor permits chronyd.
const CHRONY_SOCKET: &str = "/run/chrony.wingbeat.sock";
/// A local socket's path has no more bytes, and a zero.
const PATH_MAX: usize = 107;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    chrony_socket: Option<PathBuf>,
}

impl Clock {
    pub(super) fn chrony_socket(&self) -> Result<Option<PathBuf>, ConfigError> {
        let path = self.chrony_socket.clone().unwrap_or_else(|| CHRONY_SOCKET.into());
        let length = path.as_os_str().len();
        if length > 0 && (!path.is_absolute() || length > PATH_MAX) {
            let expected = format!("an absolute path of at most {PATH_MAX} bytes, or an empty one for none");
            return Err(value("clock.chrony_socket", &format!("{path:?}"), expected));
        }
        Ok((length > 0).then_some(path))
    }
}
