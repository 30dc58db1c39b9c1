//! Tables as Parquet, which pandas, polars, DuckDB and R open (<https://parquet.apache.org/docs/file-format/>): plain columns,
//! each with its unit as the last word of its name, uncompressed. The same table makes the same bytes.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::track::Track;

/// Why a table is not written.
pub type Problem = ParquetError;

/// Rows of one group: what a reader loads at a time.
const GROUP_ROWS: usize = 1 << 16;

/// A column by its name. Each column of a table has as many values.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// The values of a column; what is unknown is absent.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Integers.
    Integer(Vec<Option<i64>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Number(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes a table.
///
/// # Errors
/// What the writer answers; columns of different lengths.
pub fn write(columns: &[Column], to: impl Write + Send) -> Result<(), Problem> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    if let Some(other) = columns.iter().find(|column| column.values.len() != rows) {
        let found = other.values.len();
        return Err(ParquetError::General(format!("{}: found {found} values, expected {rows}", other.name)));
    }
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
    let properties =
        WriterProperties::builder().set_created_by(format!("wingbeat {}", crate::VERSION)).build();
    let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
    for from in (0..rows).step_by(GROUP_ROWS) {
        let until = rows.min(from + GROUP_ROWS);
        let mut group = file.next_row_group()?;
        for column in columns {
            let Some(mut writer) = group.next_column()? else { break };
            values(&column.values, from..until, &mut writer)?;
            writer.close()?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn field(column: &Column) -> Result<Arc<Type>, Problem> {
    let (physical, converted) = match column.values {
        Values::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
        Values::Integer(_) => (Physical::INT64, ConvertedType::NONE),
        Values::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE),
        Values::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_converted_type(converted)
        .with_repetition(Repetition::OPTIONAL)
        .build()?;
    Ok(Arc::new(field))
}

/// The values that are there, and at which rows.
fn values(
    values: &Values,
    rows: std::ops::Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), Problem> {
    fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
        values.iter().map(|value| i16::from(value.is_some())).collect()
    }
    match values {
        Values::Number(all) => {
            let all = &all[rows];
            let there: Vec<f64> = all.iter().flatten().copied().collect();
            writer.typed::<DoubleType>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Integer(all) => {
            let all = &all[rows];
            let there: Vec<i64> = all.iter().flatten().copied().collect();
            writer.typed::<Int64Type>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Flag(all) => {
            let all = &all[rows];
            let there: Vec<bool> = all.iter().flatten().copied().collect();
            writer.typed::<BoolType>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Text(all) => {
            let all = &all[rows];
            let there: Vec<ByteArray> = all.iter().flatten().map(|text| text.as_str().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&there, Some(&levels(all)), None)?;
        }
    }
    Ok(())
}

/// A column of each value of every fix.
fn numbers(tracks: &[Track], name: &str, of: impl Fn(&super::track::Fix) -> f64) -> Column {
    let values = tracks.iter().flat_map(|track| &track.fixes).map(|fix| Some(of(fix)));
    Column { name: name.to_owned(), values: Values::Number(values.collect()) }
}

/// The positions of flights: a row for each, with the aircraft's name.
///
/// # Errors
/// What the writer answers.
pub fn tracks(tracks: &[Track], to: impl Write + Send) -> Result<(), Problem> {
    let names = tracks.iter().flat_map(|track| track.fixes.iter().map(|_| Some(track.name.clone())));
    let utc = tracks.iter().flat_map(|track| {
        track.fixes.iter().map(|fix| i64::try_from(track.utc_us? + (fix.time_s * 1e6) as u64).ok())
    });
    let columns = [
        Column { name: "aircraft".to_owned(), values: Values::Text(names.collect()) },
        numbers(tracks, "time_s", |fix| fix.time_s),
        Column { name: "unix_us".to_owned(), values: Values::Integer(utc.collect()) },
        numbers(tracks, "latitude_deg", |fix| fix.position.latitude_deg()),
        numbers(tracks, "longitude_deg", |fix| fix.position.longitude_deg()),
        numbers(tracks, "altitude_m", |fix| f64::from(fix.position.altitude_mm) / 1e3),
        numbers(tracks, "height_m", |fix| fix.height_m),
        numbers(tracks, "east_m", |fix| fix.local_m.x),
        numbers(tracks, "north_m", |fix| fix.local_m.y),
        numbers(tracks, "speed_m_s", |fix| fix.speed_m_s),
        numbers(tracks, "heading_rad", |fix| fix.heading_rad),
    ];
    write(&columns, to)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn column(name: &str, values: Values) -> Column {
        Column { name: name.to_owned(), values }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_unknown_is_absent() {
        let rows = GROUP_ROWS + 3;
        let every = |nth: usize| move |i: usize| (!i.is_multiple_of(nth)).then_some(i);
        let table = [
            column("a_m", Values::Number((0..rows).map(|i| every(3)(i).map(|i| i as f64 / 4.0)).collect())),
            column("b", Values::Integer((0..rows).map(|i| every(5)(i).map(|i| -(i as i64))).collect())),
            column("c", Values::Flag((0..rows).map(|i| every(7)(i).map(|i| i % 2 == 0)).collect())),
            column(
                "d",
                Values::Text((0..rows).map(|i| every(2)(i).map(|i| format!("é {}", i % 9))).collect()),
            ),
        ];
        let (mut first, mut again) = (Vec::new(), Vec::new());
        write(&table, &mut first).unwrap();
        write(&table, &mut again).unwrap();
        assert_eq!(first, again);
        let file = tempfile::tempfile().unwrap();
        write(&table, &file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!((reader.num_row_groups(), reader.metadata().file_metadata().num_rows()), (2, rows as i64));
        for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            let found: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
            let expected = [
                every(3)(i).map_or(Field::Null, |i| Field::Double(i as f64 / 4.0)),
                every(5)(i).map_or(Field::Null, |i| Field::Long(-(i as i64))),
                every(7)(i).map_or(Field::Null, |i| Field::Bool(i % 2 == 0)),
                every(2)(i).map_or(Field::Null, |i| Field::Str(format!("é {}", i % 9))),
            ];
            assert!(found.into_iter().eq(&expected), "{i}: {row}");
        }
    }

    #[test]
    fn a_table_without_rows_is_one_and_unequal_columns_are_none() {
        let empty = [column("a", Values::Number(vec![]))];
        let mut bytes = Vec::new();
        write(&empty, &mut bytes).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let unequal = [column("a", Values::Number(vec![None])), column("b", Values::Flag(vec![]))];
        let error = write(&unequal, Vec::new()).unwrap_err().to_string();
        assert!(error.contains("b: found 0 values, expected 1"), "{error}");
    }
}
