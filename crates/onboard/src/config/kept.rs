//! The files of the configuration that a daemon last started with, kept in the state directory: one that finds the
//! present ones unusable, in flight or after a crash that garbled them, starts with these and says so.

use std::{fs, io, path::Path};

use super::{ConfigError, Flags, Layers};

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

/// Reads what is configured by `read`; where that is refused, what was kept in `state`.
///
/// # Errors
/// The mistake in the present files, if nothing was kept or that is refused too.
pub fn read_or_kept<T>(
    flags: &Flags,
    state: Option<&Path>,
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
    // On one line, without the drawing of the place.
    let fault = refused.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Found { settings, layers, fault: Some(fault) })
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
