//! Rows as Parquet: a column for each property, of the narrowest type that holds every value of it unchanged.
//!
//! In: rows as they come. Out: a file that is written once all of them are known. Until then rows wait in a temporary file, so that a value that
//! comes last can still say what its column is; memory holds what is known of columns, and one row group.
//! Invariants
//! - No value is changed: what neither INT64, DOUBLE, BOOLEAN nor STRING can tell exactly makes its column one of JSON, with the text as it stands.
//! - A null and a missing property are both null, as in CSV.

use crate::error::ToolError;
use crate::output::OpenOutput;
use crate::output::room_beside;
use astrarium_client::raw_json;
use astrarium_rows::COLUMNS_MAX;
use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows and bytes of text that make a row group.
const GROUP_ROWS: usize = 100_000;
const GROUP_BYTES: usize = 64 << 20;

/// Parquet under way.
pub(super) struct ParquetSink {
    columns: Vec<ColumnFacts>,
    places: BTreeMap<String, usize>,
    /// Whether columns were given: then other properties are left out.
    is_told: bool,
    /// Where rows wait, with their lengths before them.
    spool: Option<BufWriter<File>>,
    folder: PathBuf,
    row_count: u64,
}

/// What is known of a column.
#[derive(Debug, Clone, Default)]
struct ColumnFacts {
    name: String,
    has_strings: bool,
    has_booleans: bool,
    has_integers: bool,
    /// Some of them are no doubles.
    has_long_integers: bool,
    has_doubles: bool,
    has_others: bool,
}

/// What a column becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WrittenType {
    String,
    Boolean,
    Int64,
    Double,
    Json,
}

impl ParquetSink {
    /// Rows wait in a folder: that of the output, where there has to be room anyway.
    pub(super) fn new(columns: &[String], output: Option<&Path>) -> ParquetSink {
        let folder = output.map_or_else(std::env::temp_dir, room_beside);
        let mut rows = ParquetSink {
            columns: Vec::new(),
            places: BTreeMap::new(),
            is_told: !columns.is_empty(),
            spool: None,
            folder,
            row_count: 0,
        };
        for name in columns {
            rows.place(name.clone());
        }
        rows
    }

    pub(super) fn take(&mut self, rows: &[Bytes]) -> Result<(), ToolError> {
        for row in rows {
            self.look_at(row)?;
            self.row_count += 1;
            let length =
                u32::try_from(row.len()).map_err(|_| ToolError::input("a row is longer than 4 GB"))?;
            let failed = ToolError::file("write a temporary file into", &self.folder);
            let spool = match &mut self.spool {
                Some(spool) => spool,
                empty => match tempfile::tempfile_in(&self.folder) {
                    Ok(file) => empty.insert(BufWriter::with_capacity(1 << 20, file)),
                    Err(error) => return Err(failed(error)),
                },
            };
            spool.write_all(&length.to_le_bytes()).and_then(|()| spool.write_all(row)).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes what has waited.
    pub(super) fn finish(&mut self, output: &mut OpenOutput) -> Result<(), ToolError> {
        if self.columns.is_empty() {
            // A file of no columns is none to many readers; this is what documents always have.
            self.place("id".to_owned());
        }
        let types: Vec<WrittenType> = self.columns.iter().map(ColumnFacts::settled).collect();
        let failed = |error: ParquetError| ToolError::input(format!("write Parquet: {error}"));
        let schema = self.schema(&types).map_err(failed)?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut writer = SerializedFileWriter::new(output, schema, Arc::new(properties)).map_err(failed)?;
        let mut rows = self.waiting()?;
        let mut left = self.row_count;
        while left > 0 {
            let mut group: Vec<GroupColumn> = types.iter().map(|kind| GroupColumn::new(*kind)).collect();
            let (mut count, mut bytes) = (0, 0);
            while left > 0 && count < GROUP_ROWS && bytes < GROUP_BYTES {
                let row = self.next_waiting(&mut rows)?;
                self.scatter(&row, &mut group)?;
                left -= 1;
                count += 1;
                bytes += row.len();
            }
            let mut group_writer = writer.next_row_group().map_err(failed)?;
            for values in &group {
                let column = group_writer.next_column().map_err(failed)?;
                let mut column =
                    column.ok_or_else(|| ToolError::input("write Parquet: a column is missing"))?;
                values.write(&mut column).map_err(failed)?;
                column.close().map_err(failed)?;
            }
            group_writer.close().map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(())
    }

    /// Where a property is, a new column if it is unknown.
    fn place(&mut self, name: String) -> usize {
        let next = self.columns.len();
        *self.places.entry(name).or_insert_with_key(|name| {
            self.columns.push(ColumnFacts { name: name.clone(), ..ColumnFacts::default() });
            next
        })
    }

    fn look_at(&mut self, row: &[u8]) -> Result<(), ToolError> {
        if row.first() != Some(&b'{') {
            return Err(ToolError::input("Parquet needs rows that are objects; SELECT VALUE gives others"));
        }
        for (name, value) in raw_json::members(row) {
            let name: String = serde_json::from_slice(name).map_err(|error| {
                ToolError::input(format!("a property has a name that Parquet cannot have: {error}"))
            })?;
            let place = match self.places.get(&name) {
                Some(place) => *place,
                None if self.is_told => continue,
                None if self.columns.len() >= COLUMNS_MAX => {
                    return Err(ToolError::input(format!(
                        "the rows have more than {COLUMNS_MAX} properties; name the columns with --columns"
                    )));
                }
                None => self.place(name),
            };
            if let Some(facts) = self.columns.get_mut(place) {
                facts.see(value);
            }
        }
        Ok(())
    }

    fn schema(&self, types: &[WrittenType]) -> Result<Arc<Type>, ParquetError> {
        let fields = self.columns.iter().zip(types).map(|(column, kind)| {
            let builder = Type::primitive_type_builder(&column.name, kind.physical());
            let builder = builder.with_repetition(Repetition::OPTIONAL);
            let builder = match kind {
                WrittenType::String => builder
                    .with_logical_type(Some(LogicalType::String))
                    .with_converted_type(ConvertedType::UTF8),
                WrittenType::Json => builder
                    .with_logical_type(Some(LogicalType::Json))
                    .with_converted_type(ConvertedType::JSON),
                _ => builder,
            };
            builder.build().map(Arc::new)
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        Type::group_type_builder("rows").with_fields(fields).build().map(Arc::new)
    }

    fn waiting(&mut self) -> Result<BufReader<File>, ToolError> {
        let failed = |error| ToolError::file("read a temporary file of", &self.folder)(error);
        let file = match self.spool.take() {
            Some(spool) => spool.into_inner().map_err(|error| failed(error.into_error()))?,
            None => tempfile::tempfile_in(&self.folder).map_err(failed)?,
        };
        let mut reader = BufReader::with_capacity(1 << 20, file);
        reader.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(reader)
    }

    fn next_waiting(&self, rows: &mut BufReader<File>) -> Result<Vec<u8>, ToolError> {
        let failed = |error| ToolError::file("read a temporary file of", &self.folder)(error);
        let mut length = [0; 4];
        rows.read_exact(&mut length).map_err(failed)?;
        let mut row = vec![0; u32::from_le_bytes(length) as usize];
        rows.read_exact(&mut row).map_err(failed)?;
        Ok(row)
    }

    /// Adds a row to the columns.
    fn scatter(&self, row: &[u8], group: &mut [GroupColumn]) -> Result<(), ToolError> {
        let rows = group.first().map_or(0, |values| values.levels.len());
        for (name, value) in raw_json::members(row) {
            let name: String = serde_json::from_slice(name).unwrap_or_default();
            let values = self.places.get(&name).and_then(|place| group.get_mut(*place));
            // Of a property that is there twice the first counts.
            if let Some(values) = values.filter(|values| values.levels.len() == rows)
                && value != b"null"
            {
                values.push(value).ok_or_else(|| {
                    ToolError::input(format!("the property {name:?} is not what it was when it was read"))
                })?;
            }
        }
        group
            .iter_mut()
            .filter(|values| values.levels.len() == rows)
            .for_each(|values| values.levels.push(0));
        Ok(())
    }
}

impl ColumnFacts {
    fn see(&mut self, value: &[u8]) {
        match value.first() {
            Some(b'n') => {}
            Some(b't' | b'f') => self.has_booleans = true,
            Some(b'"') if serde_json::from_slice::<String>(value).is_ok() => self.has_strings = true,
            Some(b'-' | b'0'..=b'9') if integer(value).is_some() => {
                self.has_integers = true;
                self.has_long_integers |= double(value).is_none();
            }
            Some(b'-' | b'0'..=b'9') if double(value).is_some() => self.has_doubles = true,
            // Objects, arrays, numbers that a double does not hold, and texts that are no UTF-8.
            _ => self.has_others = true,
        }
    }

    fn settled(&self) -> WrittenType {
        match (self.has_strings, self.has_booleans, self.has_integers, self.has_doubles) {
            _ if self.has_others => WrittenType::Json,
            (_, false, false, false) => WrittenType::String,
            (false, true, false, false) => WrittenType::Boolean,
            (false, false, true, false) => WrittenType::Int64,
            (false, false, _, true) if !self.has_long_integers => WrittenType::Double,
            _ => WrittenType::Json,
        }
    }
}

impl WrittenType {
    fn physical(self) -> PhysicalType {
        match self {
            WrittenType::String | WrittenType::Json => PhysicalType::BYTE_ARRAY,
            WrittenType::Boolean => PhysicalType::BOOLEAN,
            WrittenType::Int64 => PhysicalType::INT64,
            WrittenType::Double => PhysicalType::DOUBLE,
        }
    }
}

/// The values of a column in a row group.
struct GroupColumn {
    /// 1 where there is a value, for each row.
    levels: Vec<i16>,
    values: GroupValues,
}

enum GroupValues {
    Strings(Vec<ByteArray>),
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Json(Vec<ByteArray>),
}

impl GroupColumn {
    fn new(kind: WrittenType) -> GroupColumn {
        let values = match kind {
            WrittenType::String => GroupValues::Strings(Vec::new()),
            WrittenType::Boolean => GroupValues::Booleans(Vec::new()),
            WrittenType::Int64 => GroupValues::Integers(Vec::new()),
            WrittenType::Double => GroupValues::Doubles(Vec::new()),
            WrittenType::Json => GroupValues::Json(Vec::new()),
        };
        GroupColumn { levels: Vec::new(), values }
    }

    /// Adds a value; none if it is not of the type.
    fn push(&mut self, value: &[u8]) -> Option<()> {
        match &mut self.values {
            GroupValues::Strings(values) => {
                values.push(serde_json::from_slice::<String>(value).ok()?.into_bytes().into());
            }
            GroupValues::Booleans(values) => values.push(serde_json::from_slice(value).ok()?),
            GroupValues::Integers(values) => values.push(integer(value)?),
            GroupValues::Doubles(values) => values.push(double(value)?),
            GroupValues::Json(values) => values.push(value.to_vec().into()),
        }
        self.levels.push(1);
        Some(())
    }

    fn write(&self, column: &mut SerializedColumnWriter<'_>) -> Result<usize, ParquetError> {
        let levels = Some(&self.levels[..]);
        match &self.values {
            GroupValues::Strings(values) | GroupValues::Json(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)
            }
            GroupValues::Booleans(values) => column.typed::<BoolType>().write_batch(values, levels, None),
            GroupValues::Integers(values) => column.typed::<Int64Type>().write_batch(values, levels, None),
            GroupValues::Doubles(values) => column.typed::<DoubleType>().write_batch(values, levels, None),
        }
    }
}

/// A whole number of 64 bits that is spelled as such.
fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

/// A number that a double tells exactly as it is spelled, but for zeros and the form of its exponent: the shortest text of the double is the same
/// decimal number.
fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && decimal(text)? == decimal(&format!("{number:e}"))?).then_some(number)
}

/// Sign, digits without zeros around them, and the power of ten of the last one.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_end_matches('0');
    let (after_point, zeros) = (fraction.len(), digits.len() - trimmed.len());
    let power = exponent.checked_sub(after_point.try_into().ok()?)?.checked_add(zeros.try_into().ok()?)?;
    let digits = trimmed.trim_start_matches('0');
    Some((is_negative, digits.to_owned(), if digits.is_empty() { 0 } else { power }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stay_the_same() {
        for (text, is_integer, is_double) in [
            ("0", true, true),
            ("-0", false, true),
            ("-12", true, true),
            ("1.0", false, true),
            ("1.10", false, true),
            ("0.1", false, true),
            ("1e3", false, true),
            ("1E+3", false, true),
            ("1.5e300", false, true),
            ("9007199254740993", true, false),
            ("9223372036854775807", true, false),
            ("12345678901234567890", false, false),
            ("0.1000000000000000055511151231257827", false, false),
            ("1e400", false, false),
            ("1e-400", false, false),
            ("100000000000000000000", false, true),
        ] {
            assert_eq!(integer(text.as_bytes()).is_some(), is_integer, "{text}");
            assert_eq!(double(text.as_bytes()).is_some(), is_double, "{text}");
        }
    }

    #[test]
    fn types_of_columns() {
        let check = |values: &[&str], expected: WrittenType| {
            let mut facts = ColumnFacts::default();
            for value in values {
                facts.see(value.as_bytes());
            }
            assert_eq!(facts.settled(), expected, "{values:?}");
        };
        check(&[], WrittenType::String);
        check(&["null", "\"a\""], WrittenType::String);
        check(&["\"\\ud800\""], WrittenType::Json);
        check(&["true", "false", "null"], WrittenType::Boolean);
        check(&["1", "9223372036854775807"], WrittenType::Int64);
        check(&["1", "1.5"], WrittenType::Double);
        check(&["9007199254740993", "1.5"], WrittenType::Json);
        check(&["12345678901234567890"], WrittenType::Json);
        check(&["1", "true"], WrittenType::Json);
        check(&["1", "\"1\""], WrittenType::Json);
        check(&["{}"], WrittenType::Json);
    }
}
