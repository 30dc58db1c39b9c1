//! MBTiles: a map of the ground in an SQLite file, from which the service hands out tile by tile.
//!
//! Source: <https://github.com/mapbox/mbtiles-spec/blob/master/1.3/spec.md>. The file is of another's making: it is opened for
//! reading and as one that does not change, none is opened beside it, and what is asked of it ends after [`STEPS_MAX`] whatever its
//! views compute.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use serde_json::{Value, json};

const EXPECTED: &str = "MBTiles of vectors (pbf) or pictures (png, jpg, webp)";
/// What SQLite's files begin with, and so MBTiles.
pub(super) const SQLITE: &[u8] = b"SQLite format 3\0";
/// Largest tile, and largest text of the metadata, bytes: tiles of street maps have up to 500 kB.
const VALUE_BYTES_MAX: i32 = 4 * 1024 * 1024;
/// Rows of the metadata that are read.
const METADATA_ROWS_MAX: usize = 1_000;
/// Steps of SQLite's machine between two looks at how many there were.
const STEPS_EACH: i32 = 10_000;
/// What one question may take, in those: less than a second. One tile takes some twenty steps where the table has its index.
const STEPS_MAX: u32 = 5_000;
/// The deepest zoom, as in a PMTiles archive: a column fits 32 bits.
const ZOOM_MAX: u8 = 30;
/// Longest attribution that is passed on, characters.
const ATTRIBUTION_MAX: usize = 4_000;

/// An open file.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Mutex<Connection>,
    /// Steps of the question that is being answered, in [`STEPS_EACH`].
    steps: Arc<AtomicU32>,
    is_of_vectors: bool,
    about: Value,
}

/// What a tile is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vectors,
    VectorsGzip,
    Png,
    Jpeg,
    WebP,
}

impl Kind {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::VectorsGzip),
            // A Mapbox vector tile is a list of layers, field 3.
            [0x1a, ..] => Some(Self::Vectors),
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => None,
        }
    }

    /// As MBTiles name the format.
    fn name(self) -> &'static str {
        match self {
            Self::Vectors | Self::VectorsGzip => "pbf",
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::WebP => "webp",
        }
    }

    fn is_vectors(self) -> bool {
        match self {
            Self::Vectors | Self::VectorsGzip => true,
            Self::Png | Self::Jpeg | Self::WebP => false,
        }
    }
}

/// A tile as HTTP carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) media_type: &'static str,
    pub(crate) is_gzip: bool,
}

/// Whether tiles of a format that the metadata name are vectors; `None` where no page shows them.
fn is_of_vectors(format: &str) -> Option<bool> {
    match format {
        "pbf" | "application/vnd.mapbox-vector-tile" | "application/x-protobuf" => Some(true),
        "png" | "jpg" | "jpeg" | "webp" | "image/png" | "image/jpeg" | "image/webp" => Some(false),
        _ => None,
    }
}

impl Database {
    /// Opens a file of that length, which begins with [`SQLITE`].
    ///
    /// # Errors
    /// What was found and what is expected, as one line.
    pub(super) fn open(path: &Path, header: &[u8], file_len: u64) -> Result<Self, String> {
        is_whole(header, file_len)?;
        for beside in ["-wal", "-journal"] {
            let mut name = OsString::from(path);
            name.push(beside);
            if std::fs::metadata(&name).is_ok_and(|facts| facts.len() > 0) {
                return Err(format!(
                    "found {} beside it, expected {EXPECTED} that no program is writing",
                    PathBuf::from(name).display()
                ));
            }
        }
        let failed = |error: rusqlite::Error| format!("found {error}, expected {EXPECTED}");
        let (connection, steps) = connect(path).map_err(failed)?;
        if let Err(error) = connection.prepare(TILE) {
            return Err(match lacking(&error) {
                Some(what) => format!(
                    "found an SQLite file in which {what}, expected {EXPECTED}: tiles (zoom_level, tile_column, tile_row, tile_data)"
                ),
                None => failed(error),
            });
        }
        let metadata = metadata(&connection)
            .map_err(|error| format!("found metadata that cannot be read ({error}), expected {EXPECTED}"))?;
        let ask = |question: &str| {
            steps.store(0, Ordering::Relaxed);
            connection.query_row(question, (), |row| row.get::<_, Option<i64>>(0))
        };
        steps.store(0, Ordering::Relaxed);
        let first = connection.query_row("SELECT tile_data FROM tiles LIMIT 1", (), blob).optional();
        let first = first.map_err(failed)?.ok_or_else(|| format!("found no tile, expected {EXPECTED}"))?;
        let kind = Kind::of(&first);
        let is_of_vectors = match metadata.get("format") {
            Some(format) => is_of_vectors(format)
                .ok_or_else(|| format!("found tiles of format {format:?}, expected {EXPECTED}"))?,
            None => kind.ok_or_else(|| format!("found no format, expected {EXPECTED}"))?.is_vectors(),
        };
        if kind.is_none_or(|kind| kind.is_vectors() != is_of_vectors) {
            let stated = metadata.get("format").map_or("", String::as_str);
            return Err(format!(
                "found a tile that begins with {}, expected one of format {stated}, vectors by gzip or not compressed",
                hexadecimal(&first)
            ));
        }
        let zoom = |name: &str, function: &str| match metadata.get(name) {
            Some(text) => {
                let zoom = text.trim().parse().ok().filter(|zoom| *zoom <= ZOOM_MAX);
                zoom.ok_or_else(|| format!("{name}: found {text:?}, expected 0 to {ZOOM_MAX}"))
            }
            None => {
                let found = ask(&format!("SELECT {function}(zoom_level) FROM tiles"));
                let found = found
                    .map_err(|error| format!("{name}: found none ({error}), expected 0 to {ZOOM_MAX}"))?;
                let zoom = found.and_then(|zoom| u8::try_from(zoom).ok()).filter(|zoom| *zoom <= ZOOM_MAX);
                zoom.ok_or_else(|| format!("zoom_level: found {found:?}, expected 0 to {ZOOM_MAX}"))
            }
        };
        let (least, most) = (zoom("minzoom", "min")?, zoom("maxzoom", "max")?);
        if least > most {
            return Err(format!("found zooms {least} to {most}, expected the least first"));
        }
        let bounds = match metadata.get("bounds") {
            Some(text) => stated_bounds(text)?,
            None => tiled_bounds(&ask, least).unwrap_or(WORLD),
        };
        let mut about = json!({
            "tilejson": "3.0.0",
            "scheme": "xyz",
            "tiles": ["/tiles/{z}/{x}/{y}"],
            "format": kind.map(Kind::name),
            "minzoom": least,
            "maxzoom": most,
            "bounds": bounds,
        });
        if let Some(text) = metadata.get("attribution") {
            about["attribution"] = text.chars().take(ATTRIBUTION_MAX).collect::<String>().into();
        }
        if let Some(name) = metadata.get("name") {
            about["name"] = name.clone().into();
        }
        let layers = metadata.get("json").and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(layers) = layers.and_then(|mut stated| stated.get_mut("vector_layers").map(Value::take)) {
            about["vector_layers"] = layers;
        }
        Ok(Self { connection: Mutex::new(connection), steps, is_of_vectors, about })
    }

    /// What the page has to know of the whole, as TileJSON 3.0.0 (<https://github.com/mapbox/tilejson-spec/tree/master/3.0.0>). The
    /// address of its tiles is relative to the service.
    pub(crate) fn about(&self) -> &Value {
        &self.about
    }

    /// A tile; rows count from the north, as in addresses. None where the file has none there.
    ///
    /// # Errors
    /// No such place, or what the file has there and what was expected.
    pub(crate) fn tile(&self, zoom: u8, column: u32, row: u32) -> Result<Option<Tile>, NoTile> {
        let count = 1_u64 << zoom.min(ZOOM_MAX);
        if zoom > ZOOM_MAX || u64::from(column.max(row)) >= count {
            return Err(NoTile::Nowhere(format!(
                "tile {zoom}/{column}/{row}: expected a zoom of 0 to {ZOOM_MAX}, a column and a row below 2^zoom"
            )));
        }
        // Of the tile map service, whose rows count from the south.
        let from_south = count - 1 - u64::from(row);
        let wrong = |what: &dyn std::fmt::Display| {
            NoTile::Wrong(format!("tile {zoom}/{column}/{row}: found {what}, expected {EXPECTED}"))
        };
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        self.steps.store(0, Ordering::Relaxed);
        let found = connection.prepare_cached(TILE).and_then(|mut tile| {
            tile.query_row((zoom, column, i64::try_from(from_south).unwrap_or(i64::MAX)), blob).optional()
        });
        drop(connection);
        let bytes = match found.map_err(|error| wrong(&error))? {
            Some(bytes) if !bytes.is_empty() => bytes,
            Some(_) | None => return Ok(None),
        };
        let kind = Kind::of(&bytes).filter(|kind| kind.is_vectors() == self.is_of_vectors);
        let Some(kind) = kind else {
            return Err(wrong(&format_args!("bytes that begin with {}", hexadecimal(&bytes))));
        };
        let media_type = match kind {
            Kind::Vectors | Kind::VectorsGzip => "application/x-protobuf",
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::WebP => "image/webp",
        };
        Ok(Some(Tile { bytes, media_type, is_gzip: kind == Kind::VectorsGzip }))
    }
}

/// Why there is no tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoTile {
    /// The earth has none there.
    Nowhere(String),
    /// The file.
    Wrong(String),
}

const TILE: &str =
    "SELECT tile_data FROM tiles WHERE zoom_level = ?1 AND tile_column = ?2 AND tile_row = ?3 LIMIT 1";

/// Which table or column a question did not find.
fn lacking(error: &rusqlite::Error) -> Option<&str> {
    let (rusqlite::Error::SqlInputError { msg, .. } | rusqlite::Error::SqliteFailure(_, Some(msg))) = error
    else {
        return None;
    };
    msg.starts_with("no such").then_some(msg)
}

fn blob(row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<u8>> {
    match row.get_ref(0)? {
        rusqlite::types::ValueRef::Blob(bytes) => Ok(bytes.to_vec()),
        _ => Ok(Vec::new()),
    }
}

/// A file that was copied in part is open and fails later, at the tiles that it lacks.
fn is_whole(header: &[u8], file_len: u64) -> Result<(), String> {
    // https://www.sqlite.org/fileformat2.html, section 1.3.
    let number =
        |at: usize| header.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes);
    let page_len = match number(14) & 0xffff {
        1 => 65_536,
        len => len,
    };
    let (pages, changed, counted) = (number(28), number(24), number(92));
    let expected = u64::from(page_len) * u64::from(pages);
    if changed == counted && file_len < expected {
        return Err(format!(
            "found {file_len} bytes, expected the {expected} of the whole file: was it copied to its end?"
        ));
    }
    Ok(())
}

/// Opens the file for reading; the counter is set to 0 before each question.
fn connect(path: &Path) -> rusqlite::Result<(Connection, Arc<AtomicU32>)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(address(path), flags)?;
    // What the file's own views may do.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let steps = Arc::new(AtomicU32::new(0));
    let counted = steps.clone();
    connection
        .progress_handler(STEPS_EACH, Some(move || counted.fetch_add(1, Ordering::Relaxed) >= STEPS_MAX));
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok((connection, steps))
}

/// The path as SQLite's address of a file that does not change: nothing is locked, and nothing is written beside it
/// (<https://www.sqlite.org/uri.html>).
fn address(path: &Path) -> String {
    let text = path.as_os_str().as_encoded_bytes();
    let text: Vec<u8> =
        text.iter().map(|byte| if cfg!(windows) && *byte == b'\\' { b'/' } else { *byte }).collect();
    let mut address = match text.as_slice() {
        [b'/', ..] => "file://".to_owned(),
        [_, b':', ..] if cfg!(windows) => "file:///".to_owned(),
        _ => "file:".to_owned(),
    };
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => address.push(byte.into()),
            b':' if cfg!(windows) => address.push(':'),
            _ => drop(write!(address, "%{byte:02X}")),
        }
    }
    address + "?immutable=1"
}

/// The file's statements about itself; of a name that stands twice, the first.
fn metadata(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement =
        connection.prepare("SELECT CAST(name AS TEXT), CAST(value AS TEXT) FROM metadata LIMIT ?1")?;
    let rows = statement.query_map([METADATA_ROWS_MAX], |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
    })?;
    let mut metadata = BTreeMap::new();
    for row in rows {
        if let (Some(name), Some(value)) = row? {
            metadata.entry(name).or_insert(value);
        }
    }
    Ok(metadata)
}

/// What is shown of a file that states no bounds and does not show them: west, south, east, north, degrees.
const WORLD: [f64; 4] = [-180.0, -85.051_129, 180.0, 85.051_129];

fn stated_bounds(text: &str) -> Result<[f64; 4], String> {
    let numbers: Vec<f64> = text.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    let bounds: Option<[f64; 4]> = numbers.try_into().ok();
    let is_place = |[west, south, east, north]: &[f64; 4]| {
        (-180.0..=180.0).contains(west)
            && (-180.0..=180.0).contains(east)
            && (-90.0..=90.0).contains(south)
            && (-90.0..=90.0).contains(north)
            && west < east
            && south < north
    };
    bounds.filter(|_| text.split(',').count() == 4).filter(is_place).ok_or_else(|| {
        format!("bounds: found {text:?}, expected west,south,east,north in degrees, the lesser first")
    })
}

/// Where the tiles of a zoom lie.
fn tiled_bounds(ask: &dyn Fn(&str) -> rusqlite::Result<Option<i64>>, zoom: u8) -> Option<[f64; 4]> {
    let count = (1_u64 << zoom) as f64;
    let edge = |function: &str, column: &str| {
        let question = format!("SELECT {function}({column}) FROM tiles WHERE zoom_level = {zoom}");
        ask(&question).ok().flatten().map(|number| number as f64)
    };
    let longitude = |column: f64| column / count * 360.0 - 180.0;
    // Rows from the south (https://wiki.openstreetmap.org/wiki/Slippy_map_tilenames).
    let latitude = |row: f64| (std::f64::consts::PI * (2.0 * row / count - 1.0)).sinh().atan().to_degrees();
    let bounds = [
        longitude(edge("min", "tile_column")?),
        latitude(edge("min", "tile_row")?),
        longitude(edge("max", "tile_column")? + 1.0),
        latitude(edge("max", "tile_row")? + 1.0),
    ];
    let [west, south, east, north] = bounds;
    (west >= WORLD[0] && south >= -90.0 && east <= WORLD[2] && north <= 90.0).then_some(bounds)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::super::{Map, check, open};
    use super::*;

    const TABLES: &str = "CREATE TABLE metadata (name text, value text);
        CREATE TABLE tiles (zoom_level integer, tile_column integer, tile_row integer, tile_data blob);
        CREATE UNIQUE INDEX tile_index ON tiles (zoom_level, tile_column, tile_row);";
    const PNG: &[u8] = &[0x89, b'P', b'N', b'G', 1];
    const GZIP: &[u8] = &[0x1f, 0x8b, 8, 0];

    struct Made {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    /// A file with these statements in it.
    fn made(statements: &str) -> Made {
        let folder = tempfile::tempdir().expect("a folder");
        // What an address would take for something else.
        let path = folder.path().join("fi el?d#%41.mbtiles");
        let connection = Connection::open(&path).expect("a file");
        connection.execute_batch(statements).expect("SQL");
        connection.close().expect("it is closed");
        Made { _folder: folder, path }
    }

    fn metadata(pairs: &[(&str, &str)]) -> String {
        let row = |(name, value): &(&str, &str)| {
            format!("INSERT INTO metadata VALUES ('{name}', '{}');", value.replace('\'', "''"))
        };
        pairs.iter().map(row).collect()
    }

    fn tile(zoom: u8, column: u32, from_south: u32, bytes: &[u8]) -> String {
        let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("INSERT INTO tiles VALUES ({zoom}, {column}, {from_south}, x'{bytes}');")
    }

    fn opened(statements: &str) -> (Made, Arc<Database>) {
        let made = made(statements);
        match open(&made.path) {
            Ok(Map::Tiles(database)) => (made, database),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tiles_are_read_with_rows_from_the_north_and_the_rest_is_told_as_tile_json() {
        let stated = [
            ("name", "field"),
            ("format", "pbf"),
            ("bounds", "-0.36,39.47,-0.33, 39.49"),
            ("minzoom", "3"),
            ("maxzoom", "14"),
            ("attribution", "<b>made here</b>"),
            ("json", r#"{"vector_layers":[{"id":"earth","fields":{}}]}"#),
        ];
        let plain = [0x1a, 0];
        let statements =
            [TABLES, &metadata(&stated), &tile(3, 3, 4, GZIP), &tile(3, 3, 5, &plain), &tile(3, 4, 4, &[])]
                .concat();
        let (made, database) = opened(&statements);
        let expected = json!({
            "tilejson": "3.0.0", "scheme": "xyz", "tiles": ["/tiles/{z}/{x}/{y}"], "format": "pbf", "name": "field",
            "minzoom": 3, "maxzoom": 14, "bounds": [-0.36, 39.47, -0.33, 39.49], "attribution": "<b>made here</b>",
            "vector_layers": [{ "id": "earth", "fields": {} }],
        });
        assert_eq!(database.about(), &expected);
        let vectors = |bytes: &[u8], is_gzip| {
            Ok(Some(Tile { bytes: bytes.to_vec(), media_type: "application/x-protobuf", is_gzip }))
        };
        // Eight rows: the fifth from the south is the fourth from the north.
        assert_eq!(database.tile(3, 3, 3), vectors(GZIP, true));
        assert_eq!(database.tile(3, 3, 2), vectors(&plain, false));
        for (zoom, column, row) in [(3, 3, 4), (3, 4, 3), (0, 0, 0), (30, (1 << 30) - 1, 0)] {
            assert_eq!(database.tile(zoom, column, row), Ok(None), "{zoom}/{column}/{row}");
        }
        for (zoom, column, row) in [(3, 8, 0), (3, 0, 8), (0, 0, 1), (31, 0, 0), (255, u32::MAX, u32::MAX)] {
            let found = database.tile(zoom, column, row);
            let Err(NoTile::Nowhere(why)) = found else { panic!("{found:?}") };
            assert!(why.contains("expected a zoom of 0 to 30, a column and a row below 2^zoom"), "{why}");
        }
        // Nothing was written, neither into the file nor beside it.
        let beside: Vec<_> = std::fs::read_dir(made.path.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
    }

    #[test]
    fn a_file_that_states_little_is_looked_into() {
        let jpeg = [0xff, 0xd8, 0xff, 0xe0];
        let webp = b"RIFF\0\0\0\0WEBPVP8 ";
        let (_made, database) =
            opened(&[TABLES, &tile(2, 1, 2, PNG), &tile(2, 2, 2, &jpeg), &tile(4, 9, 9, webp)].concat());
        assert_eq!(database.about()["format"], "png");
        assert_eq!((&database.about()["minzoom"], &database.about()["maxzoom"]), (&json!(2), &json!(4)));
        let bounds: Vec<_> = database.about()["bounds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edge| edge.as_f64().unwrap().round())
            .collect();
        assert_eq!(bounds, [-90.0, 0.0, 90.0, 67.0]);
        assert_eq!(database.about().get("attribution"), None);
        let kinds = [(2, 1, 1), (2, 2, 1), (4, 9, 6)]
            .map(|(zoom, column, row)| database.tile(zoom, column, row).unwrap().unwrap().media_type);
        assert_eq!(kinds, ["image/png", "image/jpeg", "image/webp"]);
    }

    #[test]
    fn tiles_in_a_view_are_read_and_what_a_view_computes_has_an_end() {
        let view = "CREATE TABLE metadata (name text, value text);
            CREATE TABLE map (zoom_level integer, tile_column integer, tile_row integer, tile_id text);
            CREATE TABLE images (tile_data blob, tile_id text);
            CREATE VIEW tiles AS SELECT zoom_level, tile_column, tile_row, tile_data FROM map JOIN images USING (tile_id);
            INSERT INTO map VALUES (0, 0, 0, 'a');
            INSERT INTO images VALUES (x'89504e4701', 'a');";
        let (_made, database) = opened(view);
        assert_eq!(database.tile(0, 0, 0).unwrap().unwrap().bytes, PNG);

        // The first is there at once; behind it nothing ends.
        let endless = "CREATE TABLE metadata (name text, value text);
            INSERT INTO metadata VALUES ('format', 'png'), ('minzoom', '0'), ('maxzoom', '1'), ('bounds', '-1,-1,1,1');
            CREATE VIEW tiles AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)
                SELECT i & 1 AS zoom_level, i - i AS tile_column, i & 1 AS tile_row, x'89504e4701' AS tile_data FROM n;";
        let (_made, database) = opened(endless);
        assert!(database.tile(0, 0, 0).unwrap().is_some());
        let found = database.tile(1, 0, 1);
        let Err(NoTile::Wrong(why)) = found else { panic!("{found:?}") };
        assert!(why.starts_with("tile 1/0/1: found interrupted"), "{why}");
        // The next question begins anew.
        assert!(database.tile(0, 0, 0).unwrap().is_some());
    }

    #[test]
    fn a_tile_that_is_none_or_too_large_is_named_and_the_others_are_served() {
        let large = format!(
            "INSERT INTO tiles VALUES (1, 0, 0, CAST(x'89504e47' || zeroblob({}) AS blob));",
            VALUE_BYTES_MAX
        );
        let (_made, database) = opened(
            &[TABLES, &metadata(&[("format", "png")]), &tile(1, 1, 1, PNG), &large, &tile(1, 1, 0, GZIP)]
                .concat(),
        );
        let wrong = |column, row| match database.tile(1, column, row) {
            Err(NoTile::Wrong(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(0, 1), format!("tile 1/0/1: found string or blob too big, expected {EXPECTED}"));
        assert_eq!(
            wrong(1, 1),
            format!("tile 1/1/1: found bytes that begin with 1f 8b 08 00, expected {EXPECTED}")
        );
        assert!(database.tile(1, 1, 0).unwrap().is_some());
    }

    #[test]
    fn a_file_that_is_no_map_is_refused_in_a_line() {
        let of =
            |pairs: &[(&str, &str)], bytes: &[u8]| [TABLES, &metadata(pairs), &tile(1, 1, 1, bytes)].concat();
        let png = |name: &str, value: &str| of(&[("format", "png"), (name, value)], PNG);
        for (statements, says) in [
            ("PRAGMA user_version = 1;".to_owned(), "found an SQLite file in which no such table: tiles"),
            ("CREATE TABLE a (b text);".to_owned(), "found an SQLite file in which no such table: tiles"),
            (
                "CREATE TABLE tiles (zoom_level integer, tile_data blob);".to_owned(),
                "found an SQLite file in which no such column: tile_column",
            ),
            (
                "CREATE TABLE tiles (zoom_level, tile_column, tile_row, tile_data);".to_owned(),
                "found metadata that cannot be read (no such table: metadata",
            ),
            (TABLES.to_owned(), "found no tile, expected MBTiles of vectors (pbf) or pictures"),
            (of(&[("format", "avif")], PNG), "found tiles of format \"avif\", expected MBTiles of vectors"),
            (
                of(&[("format", "pbf")], PNG),
                "found a tile that begins with 89 50 4e 47, expected one of format pbf",
            ),
            (
                of(&[("format", "pbf")], &[0x78, 0x9c]),
                "found a tile that begins with 78 9c, expected one of format pbf, vectors by gzip",
            ),
            (of(&[("format", "png")], &[]), "found a tile that begins with nothing"),
            (of(&[], b"text"), "found no format, expected MBTiles"),
            (png("minzoom", "-1"), "minzoom: found \"-1\", expected 0 to 30"),
            (png("maxzoom", "31"), "maxzoom: found \"31\", expected 0 to 30"),
            (png("minzoom", "2"), "found zooms 2 to 1, expected the least first"),
            (png("bounds", "1,2,3"), "bounds: found \"1,2,3\", expected west,south,east,north in degrees"),
            (png("bounds", "1,2,3,4,5"), "bounds: found \"1,2,3,4,5\""),
            (
                png("bounds", "3,2,1,4"),
                "bounds: found \"3,2,1,4\", expected west,south,east,north in degrees, the lesser first",
            ),
            (png("bounds", "1,2,3,NaN"), "bounds: found \"1,2,3,NaN\""),
            (
                [TABLES, "INSERT INTO tiles VALUES (99, 0, 0, x'89504e4701');"].concat(),
                "zoom_level: found Some(99), expected 0 to 30",
            ),
        ] {
            let found = check(&made(&statements).path).expect_err(says);
            assert!(found.contains(says), "{found}, expected {says}");
            assert!(!found.contains('\n'), "{found}");
        }
    }

    #[test]
    fn a_file_that_was_copied_in_part_or_is_being_written_is_refused() {
        let made = made(&[TABLES, &metadata(&[("format", "png")]), &tile(1, 1, 1, PNG)].concat());
        let whole = std::fs::read(&made.path).expect("the file");
        assert_eq!(check(&made.path), Ok(()));
        std::fs::write(&made.path, &whole[..whole.len() - 1]).expect("written");
        let found = check(&made.path).expect_err("cut");
        assert!(found.contains("of the whole file: was it copied to its end?"), "{found}");
        std::fs::write(&made.path, &whole[..60]).expect("written");
        let found = check(&made.path).expect_err("cut");
        assert!(found.contains("expected MBTiles of vectors"), "{found}");
        std::fs::write(&made.path, [&whole[..100], &vec![0xff; whole.len() - 100]].concat())
            .expect("written");
        let found = check(&made.path).expect_err("rubbish");
        assert!(found.contains("malformed"), "{found}");
        std::fs::write(&made.path, &whole).expect("written");
        for beside in ["-wal", "-journal"] {
            let mut name = made.path.clone().into_os_string();
            name.push(beside);
            std::fs::write(&name, "x").expect("written");
            let found = check(&made.path).expect_err("it is written");
            assert!(found.contains(&format!("%41.mbtiles{beside} beside it, expected MBTiles")), "{found}");
            std::fs::remove_file(&name).expect("it is gone");
        }
    }

    /// A map that another program keeps in write-ahead mode is read, and stays as it was.
    #[test]
    fn nothing_is_written_beside_a_file_in_write_ahead_mode() {
        let wal = ["PRAGMA journal_mode = WAL;", TABLES, &tile(0, 0, 0, PNG)].concat();
        let (made, database) = opened(&wal);
        assert!(database.tile(0, 0, 0).unwrap().is_some());
        let beside: Vec<_> = std::fs::read_dir(made.path.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
    }
}
