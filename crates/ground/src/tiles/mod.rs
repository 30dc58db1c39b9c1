//! A map of the ground in a file: whether the page can open it, and how it is served. A PMTiles archive is read by the page piece by
//! piece; of MBTiles the service hands out tile by tile. What is wrong with the file as a whole is said here, before the service starts.

mod archive;
mod mbtiles;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

pub(crate) use mbtiles::{Database, NoTile, Tile};

const EXPECTED: &str = "a PMTiles archive of version 3, or MBTiles";

/// A map that the page can open.
#[derive(Clone, Debug)]
pub(crate) enum Map {
    /// A PMTiles archive.
    Archive(Arc<Path>),
    /// MBTiles.
    Tiles(Arc<Database>),
}

/// Checks that the file is a whole PMTiles archive, or MBTiles, of tiles and compressions that browsers can read.
///
/// # Errors
/// What was found and what is expected, as one line.
pub fn check(path: &Path) -> Result<(), String> {
    open(path).map(drop)
}

/// The same, to be served.
///
/// # Errors
/// As [`check`].
pub(crate) fn open(path: &Path) -> Result<Map, String> {
    let failed = |error: std::io::Error| format!("found {error}, expected {EXPECTED}");
    let mut file = File::open(path).map_err(failed)?;
    let file_len = file.metadata().map_err(failed)?.len();
    let mut header = Vec::with_capacity(archive::HEADER_LEN);
    let longest = u64::try_from(archive::HEADER_LEN).unwrap_or(u64::MAX);
    file.by_ref().take(longest).read_to_end(&mut header).map_err(failed)?;
    if header.starts_with(mbtiles::SQLITE) {
        return Database::open(path, &header, file_len).map(|database| Map::Tiles(Arc::new(database)));
    }
    if !header.starts_with(archive::MAGIC) {
        return Err(format!("found a file of another kind, expected {EXPECTED}"));
    }
    archive::judge(&header, file_len)?;
    Ok(Map::Archive(path.into()))
}
