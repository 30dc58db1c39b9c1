//! The flights of campaigns as one table of Parquet: a row for each flight, with the columns of the CSV file; and the tracks of
//! each flight, a file for each.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use wingbeat_record::export::parquet::{Column, Values, tracks, write as write_table};
use wingbeat_record::export::track;
use wingbeat_record::reader::Log;
use wingbeat_record::store::ENDING;

use super::row::FlightRow;
use super::stored::write_whole;

/// Writes them.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write(path: &Path, rows: &[FlightRow]) -> Result<()> {
    let here = || path.display().to_string();
    let table = columns(rows)?;
    let mut file = BufWriter::new(File::create(path).with_context(here)?);
    write_table(&table, &mut file).with_context(here)?;
    std::io::Write::flush(&mut file).with_context(here)
}

/// Where the tracks of a flight are among a campaign's results.
pub fn tracks_of(folder: &Path, key: &str) -> PathBuf {
    folder.join("tracks").join(format!("{key}.parquet"))
}

/// Writes the tracks of one flight, of which the logs are in a folder: a row for each position, by aircraft.
pub(super) fn write_tracks(folder: &Path, key: &str, logs: &Path) -> Result<()> {
    let here = || logs.display().to_string();
    let entries = fs::read_dir(logs).with_context(here)?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == ENDING));
    files.sort();
    let logs = files
        .iter()
        .map(|file| Log::read(file).with_context(|| file.display().to_string()))
        .collect::<Result<Vec<_>>>()?;
    let mut table = Vec::new();
    tracks(&track::tracks(&logs), &mut table).with_context(here)?;
    let path = tracks_of(folder, key);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    write_whole(&path, &table)
}

/// By name, in their order by name; what a flight has not is absent.
fn columns(rows: &[FlightRow]) -> Result<Vec<Column>> {
    let mut all: Vec<(String, Vec<Value>)> = Vec::new();
    for row in rows {
        let Value::Object(row) = serde_json::to_value(row)? else { bail!("found a flight without figures") };
        for (index, (name, value)) in row.into_iter().enumerate() {
            match all.get_mut(index) {
                Some((_, values)) => values.push(value),
                None => all.push((name, vec![value])),
            }
        }
    }
    Ok(all.into_iter().map(|(name, values)| Column { name, values: typed(&values) }).collect())
}

fn typed(values: &[Value]) -> Values {
    let there = || values.iter().filter(|value| !value.is_null());
    if there().all(Value::is_boolean) && there().next().is_some() {
        Values::Flag(values.iter().map(Value::as_bool).collect())
    } else if there().all(|value| value.as_i64().is_some()) && there().next().is_some() {
        Values::Integer(values.iter().map(Value::as_i64).collect())
    } else if there().all(Value::is_number) {
        Values::Number(values.iter().map(Value::as_f64).collect())
    } else {
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Values::Text(values.iter().map(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_of_what_its_values_are() {
        let of = |text: &str| typed(&serde_json::from_str::<Vec<Value>>(text).unwrap());
        assert_eq!(of("[true, null]"), Values::Flag(vec![Some(true), None]));
        assert_eq!(of("[1, null]"), Values::Integer(vec![Some(1), None]));
        assert_eq!(of("[1.0, 2]"), Values::Number(vec![Some(1.0), Some(2.0)]));
        assert_eq!(of("[null]"), Values::Number(vec![None]));
        assert_eq!(of("[\"a\", null]"), Values::Text(vec![Some("a".into()), None]));
    }
}
