//! Campaigns in one SQLite database: a table of flights, one of aircraft.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, ToSql, params};

use super::stored::Stored;

/// `PRAGMA user_version` of what this program writes.
const SCHEMA: i64 = 1;

/// Adds flights to a database, which is made; those that are in it stay as they are. Answers how many were added.
///
/// # Errors
/// The file is no database, or one of another schema, or cannot be written: nothing was added then.
pub fn add(path: &Path, flights: &[Stored]) -> Result<usize> {
    let here = || path.display().to_string();
    let mut database = Connection::open(path).with_context(here)?;
    let transaction = database.transaction().with_context(here)?;
    let found: i64 =
        transaction.pragma_query_value(None, "user_version", |row| row.get(0)).with_context(here)?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .with_context(here)?;
    match found {
        SCHEMA => check_columns(&transaction, flights, &here)?,
        0 if tables == 0 => create(&transaction, flights).with_context(here)?,
        _ => bail!(
            "{}: found a database of schema {found}, expected {SCHEMA}: merge the folders into a new file",
            here()
        ),
    }
    let mut added = 0;
    for stored in flights {
        let columns = columns(stored)?;
        let names = columns.iter().map(|(name, _)| quoted(name)).collect::<Vec<_>>().join(", ");
        let marks = vec!["?"; columns.len()].join(", ");
        let values: Vec<&dyn ToSql> = columns.iter().map(|(_, value)| value as &dyn ToSql).collect();
        let insert = format!("INSERT OR IGNORE INTO flights ({names}) VALUES ({marks})");
        let new = transaction.prepare_cached(&insert)?.execute(&*values).with_context(here)?;
        added += new;
        if new == 0 {
            continue;
        }
        for (index, aircraft) in stored.result.aircraft.iter().enumerate() {
            transaction
                .prepare_cached("INSERT INTO aircraft VALUES (?, ?, ?, ?, ?, ?, ?)")?
                .execute(params![
                    stored.flown.key,
                    index as i64 + 1,
                    aircraft.flight_time_s,
                    aircraft.distance_m,
                    aircraft.error_mean_m,
                    aircraft.error_max_m,
                    aircraft.completed
                ])
                .with_context(here)?;
        }
    }
    transaction.commit().with_context(here)?;
    Ok(added)
}

/// A program of other figures made another table under the same number.
fn check_columns(database: &Connection, flights: &[Stored], here: &impl Fn() -> String) -> Result<()> {
    let Some(first) = flights.first() else { return Ok(()) };
    let mut table = database.prepare("SELECT name FROM pragma_table_info('flights')").with_context(here)?;
    let found = table.query_map([], |row| row.get(0)).with_context(here)?;
    let found = found.collect::<rusqlite::Result<BTreeSet<String>>>().with_context(here)?;
    let expected: BTreeSet<String> = columns(first)?.into_iter().map(|(name, _)| name).collect();
    let names = |names: &BTreeSet<String>, but: &BTreeSet<String>| {
        let some: Vec<&str> = names.difference(but).map(String::as_str).collect();
        if some.is_empty() { "none".to_owned() } else { some.join(", ") }
    };
    if found != expected {
        bail!(
            "{}: found a database of another program: its flights lack {}, and have {} that this one does not; expected the \
             columns of flights.csv: merge the folders into a new file",
            here(),
            names(&expected, &found),
            names(&found, &expected)
        );
    }
    Ok(())
}

fn create(database: &Connection, flights: &[Stored]) -> Result<()> {
    let Some(first) = flights.first() else { return Ok(()) };
    let columns: Vec<String> = columns(first)?
        .iter()
        .map(|(name, _)| match name.as_str() {
            "key" => "\"key\" TEXT PRIMARY KEY".to_owned(),
            name => quoted(name),
        })
        .collect();
    database.execute_batch(&format!(
        "CREATE TABLE flights ({});
         CREATE TABLE aircraft (\"key\" TEXT REFERENCES flights, aircraft INTEGER, flight_time_s REAL, distance_m REAL, \
         error_mean_m REAL, error_max_m REAL, completed INTEGER, PRIMARY KEY (\"key\", aircraft));
         PRAGMA user_version = {SCHEMA};",
        columns.join(", ")
    ))?;
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

struct Cell(Value);

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// The columns of a flight: those of its row.
fn columns(stored: &Stored) -> Result<Vec<(String, Cell)>> {
    let serde_json::Value::Object(row) = serde_json::to_value(stored.row())? else {
        bail!("{}: found a flight without figures", stored.flown.key);
    };
    let cell = |value: serde_json::Value| match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(is) => Value::Integer(i64::from(is)),
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Integer(number),
            None => number.as_f64().map_or(Value::Null, Value::Real),
        },
        other => Value::Text(other.to_string()),
    };
    Ok(row.into_iter().map(|(name, value)| (name, Cell(cell(value)))).collect())
}
