//! The files of the configuration that a daemon last started with, kept in the state directory: one that finds the
//! present ones unusable, in flight or after a crash that garbled them, starts with these and says so.

use std::{fs, io, path::Path};

use super::{ConfigError, Flags, Layers, security};

/// The file's name in the state directory.
const FILE: &str = "configuration.toml";

/// What a program starts with.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    /// What is configured.
    pub settings: T,
    /// Whence.
    pub layers: Layers,
    /// What is wrong with the present files, one line, where they are not used.
    pub fault: Option<String>,
}

/// Which kept configurations may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Any: the guardian starts whatever is wrong, and opens nothing to others.
    Any,
    /// None that is less secure than the present files ask for, as far as those can be read.
    AsSecure,
}

/// Reads what is configured by `read`; where that is refused, what was kept in `state`.
///
/// # Errors
/// The mistake in the present files, if nothing was kept, or what was kept is refused too or less secure.
pub fn read_or_kept<T>(
    flags: &Flags,
    state: Option<&Path>,
    which: Kept,
    read: impl Fn(&Layers) -> Result<T, ConfigError>,
) -> Result<Found<T>, ConfigError> {
    let refused =
        match Layers::read(flags).and_then(|layers| read(&layers).map(|settings| (settings, layers))) {
            Ok((settings, layers)) => return Ok(Found { settings, layers, fault: None }),
            Err(error) => error,
        };
    let kept = state.and_then(|state| fs::read_to_string(state.join(FILE)).ok());
    let kept = kept.and_then(|text| Layers::from_kept(&text, flags));
    let Some((settings, layers)) = kept.and_then(|layers| Some((read(&layers).ok()?, layers))) else {
        return Err(refused);
    };
    if which == Kept::AsSecure
        && let Some(less) = less_secure(&refused, &Layers::read_leniently(flags), &layers)
    {
        return Err(ConfigError::LessSecure { error: Box::new(refused), less });
    }
    // On one line, without the drawing of the place.
    let fault = refused.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Found { settings, layers, fault: Some(fault) })
}

/// The respect in which the kept configuration is less secure than the present one asks for, if there is one.
fn less_secure(refused: &ConfigError, present: &Layers, kept: &Layers) -> Option<&'static str> {
    let is_stated = |layers: &Layers, section, name| {
        layers.stated(section, name).is_some_and(|value| !matches!(value.as_str(), "" | "[]"))
    };
    if kept.is_insecure() && (refused.is_of("security") || security::asks_for_keys(present)) {
        return Some("flies without keys (security.insecure = true)");
    }
    let signing = |layers: &Layers| is_stated(layers, "autopilot", "signing_key_file");
    if signing(present) && !signing(kept) {
        return Some("takes unsigned MAVLink (no autopilot.signing_key_file)");
    }
    let gateway =
        |layers: &Layers| is_stated(layers, "gateway", "tcp") || is_stated(layers, "gateway", "udp");
    // Of a file that is no TOML it is not known whether it closes the gateway.
    if present.is_whole() && gateway(kept) && !gateway(present) {
        return Some("opens a gateway that the present files do not");
    }
    None
}

/// Keeps the files for the next start, whole or not at all.
///
/// # Errors
/// The system's, for example of a full disk.
pub fn keep(state: &Path, layers: &Layers) -> io::Result<()> {
    let path = state.join(FILE);
    let text = layers.to_kept();
    // Each start would otherwise wear the card.
    if fs::read_to_string(&path).is_ok_and(|kept| kept.trim_end() == text.trim_end()) {
        return Ok(());
    }
    wingbeat_keys::file::write(&path, &text)
}
