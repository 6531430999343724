//! Parquet: flat columns of any type become the properties of rows.
//!
//! In: a file that can be read at any place, since what it holds is said at its end. Out: JSON objects; a null gives no property, as an empty cell
//! of CSV. Nested types are refused, naming the column, before anything is read. Rows come in batches, so that memory does not depend on the size
//! of row groups; pages are read by `pages`, within bounds, values made text by `cells`.
//!
//! The library decodes levels and values, and reads the footer. It was not written for hostile files and may panic on them, so each call of it is
//! guarded: a panic in it means that the file is broken. Stack overflows cannot be guarded, so the schema is looked at (`thrift`) before.

mod cells;
mod pages;
mod thrift;

use astrarium_rows::csv::{self, CellKind, CsvOptions, CsvShape};
use astrarium_rows::{BadRow, COLUMNS_MAX, InputRow, InputRows, ROW_BYTES_MAX, RowsError};
use astrarium_value::json::write_string;
use cells::{CellForm, ParquetCell};
use pages::{BoundedPages, ChunkPlace, PageSource, fault};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use thrift::{ThriftFault, ThriftReader, ThriftType};

pub(crate) use pages::SeekableBytes;

/// The first and last bytes of a file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";
/// Longest footer: it is held as a whole, and takes some times its size.
const FOOTER_BYTES_MAX: u32 = 32 << 20;
/// Rows and bytes, by the sizes that the file tells, that are decoded at once.
const BATCH_ROWS: u64 = 1_024;
const BATCH_BYTES: u64 = 32 << 20;

/// A column of a file.
struct ParquetColumn {
    name: String,
    form: CellForm,
    /// What becomes of it, which may be told.
    kind: CellKind,
}

/// The rows of a file.
pub(crate) struct ParquetRows {
    path: PathBuf,
    source: PageSource,
    metadata: ParquetMetaData,
    columns: Vec<ParquetColumn>,
    empty_is_null: bool,
    number: u64,
    /// The next row group.
    group: usize,
    readers: Vec<ColumnReader>,
    /// Rows of the group that were not decoded yet.
    rows_left: u64,
    batch_rows: u64,
    batch: Vec<DecodedColumn>,
    batch_left: u64,
}

/// Values of some rows.
struct DecodedColumn {
    /// Whether there is a value, for each row; empty if there always is.
    levels: Vec<i16>,
    values: DecodedValues,
    next_level: usize,
    next_value: usize,
}

enum DecodedValues {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl ParquetRows {
    pub(crate) fn new(
        bytes: Box<dyn SeekableBytes>,
        read: Arc<AtomicU64>,
        path: &Path,
        options: &CsvOptions,
    ) -> Result<ParquetRows, RowsError> {
        let source = PageSource::new(bytes, read);
        let footer = footer(&source, path)?;
        check_flat(&footer, path)?;
        let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&footer))
            .map_err(|error| broken(path, &error))?;
        let columns = columns(&metadata, path, options)?;
        Ok(ParquetRows {
            path: path.to_owned(),
            source,
            metadata,
            columns,
            empty_is_null: options.empty_is_null,
            number: 0,
            group: 0,
            readers: Vec::new(),
            rows_left: 0,
            batch_rows: BATCH_ROWS,
            batch: Vec::new(),
            batch_left: 0,
        })
    }

    /// Names and kinds, to be told.
    pub(crate) fn shape(&self) -> CsvShape {
        CsvShape { columns: self.columns.iter().map(|column| (column.name.clone(), column.kind)).collect() }
    }

    /// Opens row groups and decodes batches until there is a row; whether there is one.
    fn fill(&mut self) -> Result<bool, RowsError> {
        while self.batch_left == 0 {
            if self.rows_left == 0 {
                if self.group >= self.metadata.num_row_groups() {
                    return Ok(false);
                }
                self.open_group()?;
                continue;
            }
            let rows = self.rows_left.min(self.batch_rows);
            self.batch.clear();
            self.source.begin_batch();
            for (reader, column) in self.readers.iter_mut().zip(&self.columns) {
                let decoded = guarded(|| decode(reader, rows as usize));
                let decoded = decoded.map_err(|error| {
                    RowsError::input(format!(
                        "{} cannot be read after row {}: column {:?}: {}",
                        self.path.display(),
                        self.number,
                        column.name,
                        told(&error)
                    ))
                })?;
                self.batch.push(decoded);
            }
            self.rows_left -= rows;
            self.batch_left = rows;
        }
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), RowsError> {
        let group = self.metadata.row_group(self.group);
        self.group += 1;
        let bad = |what: &str| broken(&self.path, &fault(what));
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| bad("a row group has a negative number of rows"))?;
        self.source.begin_group(self.columns.len());
        let mut readers = Vec::with_capacity(self.columns.len());
        for index in 0..self.columns.len() {
            let place =
                chunk_place(group, index, rows).ok_or_else(|| bad("a column is at no place of the file"))?;
            let pages = BoundedPages::new(self.source.clone(), place);
            let descriptor = group.column(index).column_descr_ptr();
            let reader = guarded(|| Ok(get_column_reader(descriptor, Box::new(pages))));
            readers.push(reader.map_err(|error| broken(&self.path, &error))?);
        }
        self.readers = readers;
        self.rows_left = rows;
        let row_bytes = u64::try_from(group.total_byte_size()).unwrap_or(0).checked_div(rows).unwrap_or(0);
        self.batch_rows = (BATCH_BYTES / row_bytes.max(1)).clamp(1, BATCH_ROWS);
        Ok(())
    }

    /// The object of the next row. Every column is asked, also when one has a value that cannot be told.
    fn object(&mut self) -> Result<Vec<u8>, BadRow> {
        let mut object = Vec::from(*b"{");
        let mut reason = None;
        let mut text = Vec::new();
        for (column, decoded) in self.columns.iter().zip(&mut self.batch) {
            let cell = decoded.next();
            let start = object.len();
            let written = match cell {
                None if self.empty_is_null => {
                    column.begin(&mut object);
                    object.extend_from_slice(b"null");
                    Ok(())
                }
                None => Ok(()),
                Some(ParquetCell::Bytes(bytes)) if bytes.len() + object.len() > ROW_BYTES_MAX => {
                    Err(too_long())
                }
                Some(cell) => {
                    text.clear();
                    column.form.write(cell, &mut text).and_then(|()| column.put(&text, &mut object))
                }
            };
            if let Err(what) = written {
                object.truncate(start);
                reason.get_or_insert_with(|| format!("column {:?} {what}", column.name));
            }
        }
        object.push(b'}');
        match reason {
            // What can be told of the row is kept.
            Some(reason) => Err(BadRow::new(reason, &object)),
            None if object.len() > ROW_BYTES_MAX => {
                Err(BadRow::new(format!("the row {}", too_long()), object.get(..1 << 10).unwrap_or_default()))
            }
            None => Ok(object),
        }
    }
}

fn too_long() -> String {
    format!("is longer than {} MB", ROW_BYTES_MAX >> 20)
}

impl ParquetColumn {
    /// Adds the name of the property to an object.
    fn begin(&self, object: &mut Vec<u8>) {
        if object.len() > 1 {
            object.push(b',');
        }
        write_string(&self.name, object);
        object.push(b':');
    }

    fn put(&self, text: &[u8], object: &mut Vec<u8>) -> Result<(), String> {
        self.begin(object);
        csv::write_value(self.kind, text, object).map_err(|what| what.replace("NAME", &self.name))
    }
}

impl InputRows for ParquetRows {
    fn next_row(&mut self) -> Result<Option<InputRow>, RowsError> {
        if !self.fill()? {
            return Ok(None);
        }
        self.batch_left -= 1;
        self.number += 1;
        Ok(Some(InputRow { number: self.number, text: self.object() }))
    }
}

impl DecodedColumn {
    /// The value of the next row, none for null.
    fn next(&mut self) -> Option<ParquetCell<'_>> {
        if !self.levels.is_empty() {
            let level = self.levels.get(self.next_level).copied().unwrap_or(0);
            self.next_level += 1;
            if level == 0 {
                return None;
            }
        }
        let at = self.next_value;
        self.next_value += 1;
        Some(match &self.values {
            DecodedValues::Boolean(values) => ParquetCell::Boolean(*values.get(at)?),
            DecodedValues::Int32(values) => ParquetCell::Int32(*values.get(at)?),
            DecodedValues::Int64(values) => ParquetCell::Int64(*values.get(at)?),
            DecodedValues::Int96(values) => ParquetCell::Int96(values.get(at)?),
            DecodedValues::Float(values) => ParquetCell::Float(*values.get(at)?),
            DecodedValues::Double(values) => ParquetCell::Double(*values.get(at)?),
            DecodedValues::Bytes(values) => ParquetCell::Bytes(values.get(at)?.data()),
            DecodedValues::Fixed(values) => ParquetCell::Bytes(values.get(at)?.data()),
        })
    }
}

/// Calls the library: it ends with a value, an error, or, on a broken file, with a panic, which is an error too.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    // Nothing that the library was working on is used afterwards.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(fault("its bytes contradict each other")))
}

/// What the library says, without the kind of its error.
fn told(error: &ParquetError) -> String {
    match error {
        ParquetError::General(what) => what.clone(),
        other => other.to_string(),
    }
}

fn broken(path: &Path, error: &ParquetError) -> RowsError {
    RowsError::input(format!("{} cannot be read as Parquet: {}", path.display(), told(error)))
}

/// The bytes that say what the file holds.
fn footer(source: &PageSource, path: &Path) -> Result<Vec<u8>, RowsError> {
    let failed = |error| RowsError::file("read", path)(error);
    let bad = |what: &str| broken(path, &fault(what));
    let size = source.size().map_err(failed)?;
    let tail = source.read_at(size.saturating_sub(8), 8).map_err(failed)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else {
        return Err(bad("it is too short"));
    };
    match magic {
        magic if magic == MAGIC => {}
        b"PARE" => return Err(bad("it is encrypted")),
        _ => return Err(bad("its last bytes are not PAR1, so it was cut or is something else")),
    }
    let length = u32::from_le_bytes(*length);
    if length > FOOTER_BYTES_MAX || u64::from(length) + 12 > size {
        return Err(bad(&format!("its last bytes tell of {length} bytes before them, which cannot be")));
    }
    source.read_at(size - 8 - u64::from(length), length as usize).map_err(failed)
}

/// Refuses what is nested; also what would be too much for the library, which follows a schema into its depth.
fn check_flat(footer: &[u8], path: &Path) -> Result<(), RowsError> {
    let nested = find_nested(footer);
    let nested = nested.map_err(|_| broken(path, &fault("what it says about its columns is broken")))?;
    let Some((name, what)) = nested else { return Ok(()) };
    Err(RowsError::input(format!(
        "{}: column {name:?} is {what}, and only flat columns are read; nothing was written. Write it as JSON lines first, such as with DuckDB: COPY (FROM '{}') TO 'rows.jsonl'",
        path.display(),
        path.display(),
    )))
}

/// The first column that is not flat.
fn find_nested(footer: &[u8]) -> Result<Option<(String, &'static str)>, ThriftFault> {
    let mut reader = ThriftReader::new(footer);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        if (number, kind) != (2, ThriftType::List) {
            reader.skip(kind)?;
            continue;
        }
        let (count, element) = reader.list()?;
        if element != ThriftType::Struct {
            return Err(ThriftFault::Bad);
        }
        if count > COLUMNS_MAX as u64 + 1 {
            return Ok(Some((String::new(), "one of more than 10000")));
        }
        for index in 0..count {
            let SchemaElement { name, repetition, children } = schema_element(&mut reader)?;
            let name = String::from_utf8_lossy(name).into_owned();
            match (index, children, repetition) {
                // The first is the file itself.
                (0, ..) => {}
                (_, Some(_), Some(2)) => return Ok(Some((name, "a repeated group"))),
                (_, Some(_), _) => return Ok(Some((name, "a group of columns (a struct, list or map)"))),
                (_, None, Some(2)) => return Ok(Some((name, "a list of values"))),
                _ => {}
            }
        }
        return Ok(None);
    }
    Err(ThriftFault::Bad)
}

/// What matters of a column of the footer.
struct SchemaElement<'a> {
    name: &'a [u8],
    /// Required, optional, or repeated, which is 2.
    repetition: Option<i64>,
    /// A group has some.
    children: Option<i64>,
}

fn schema_element<'a>(reader: &mut ThriftReader<'a>) -> Result<SchemaElement<'a>, ThriftFault> {
    let mut element = SchemaElement { name: b"", repetition: None, children: None };
    let mut last = 0;
    while let Some((number, kind)) = reader.field(&mut last)? {
        match (number, kind) {
            (3, ThriftType::Integer) => element.repetition = Some(reader.integer()?),
            (4, ThriftType::Binary) => element.name = reader.binary()?,
            (5, ThriftType::Integer) => {
                element.children = Some(reader.integer()?).filter(|count| *count != 0);
            }
            (_, other) => reader.skip(other)?,
        }
    }
    Ok(element)
}

fn columns(
    metadata: &ParquetMetaData,
    path: &Path,
    options: &CsvOptions,
) -> Result<Vec<ParquetColumn>, RowsError> {
    let bad = |what: String| RowsError::input(format!("{}: {what}", path.display()));
    let mut columns: Vec<ParquetColumn> = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for descriptor in metadata.file_metadata().schema_descr().columns() {
        let name = descriptor.name().to_owned();
        if descriptor.max_rep_level() > 0
            || descriptor.max_def_level() > 1
            || descriptor.path().parts().len() != 1
        {
            return Err(bad(format!("column {name:?} is nested, and only flat columns are read")));
        }
        let form = CellForm::of(descriptor).map_err(|what| bad(format!("column {name:?}: {what}")))?;
        let told = options.kinds.iter().find(|(told, _)| *told == name).map(|(_, kind)| *kind);
        let (form, kind) = settled(&name, form, told).map_err(bad)?;
        if name.is_empty() || !names.insert(name.clone()) {
            return Err(bad(format!("two columns are called {name:?}, or one has no name")));
        }
        columns.push(ParquetColumn { name, form, kind });
    }
    if let Some((unknown, _)) = options.kinds.iter().find(|(told, _)| !names.contains(told)) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(bad(format!("there is no column {unknown:?} for --type; there are {names}")));
    }
    Ok(columns)
}

/// What becomes of a column, by itself or as it was told.
fn settled(name: &str, form: CellForm, told: Option<CellKind>) -> Result<(CellForm, CellKind), String> {
    let own = form.kind();
    match told {
        None if name == "id" => Ok((form, CellKind::Text)),
        None => Ok((form, own)),
        // Bytes without a type are base64, unless somebody knows that they are text.
        Some(kind) if form == CellForm::Bytes => Ok((CellForm::Text, kind)),
        Some(kind) if kind == own || kind == CellKind::Text || own == CellKind::Text => Ok((form, kind)),
        Some(CellKind::Json) => Ok((form, CellKind::Json)),
        Some(kind) => Err(format!(
            "--type {name}={}: the column is {} in the file; it can be that or a string",
            kind.name(),
            own.name()
        )),
    }
}

fn chunk_place(group: &RowGroupMetaData, index: usize, rows: u64) -> Option<ChunkPlace> {
    let chunk = group.column(index);
    // A writer that has no dictionary may say that it is at 0.
    let data = chunk.data_page_offset();
    let start = chunk.dictionary_page_offset().filter(|offset| *offset > 0 && *offset < data).unwrap_or(data);
    Some(ChunkPlace {
        column: index,
        offset: u64::try_from(start).ok()?,
        bytes: u64::try_from(chunk.compressed_size()).ok()?,
        rows,
        compression: chunk.compression(),
        is_optional: chunk.column_descr().max_def_level() > 0,
    })
}

/// The values of the next rows; it is an error if there are fewer.
fn decode(reader: &mut ColumnReader, rows: usize) -> Result<DecodedColumn, ParquetError> {
    let (levels, values) = match reader {
        ColumnReader::BoolColumnReader(reader) => values(reader, rows, DecodedValues::Boolean)?,
        ColumnReader::Int32ColumnReader(reader) => values(reader, rows, DecodedValues::Int32)?,
        ColumnReader::Int64ColumnReader(reader) => values(reader, rows, DecodedValues::Int64)?,
        ColumnReader::Int96ColumnReader(reader) => values(reader, rows, DecodedValues::Int96)?,
        ColumnReader::FloatColumnReader(reader) => values(reader, rows, DecodedValues::Float)?,
        ColumnReader::DoubleColumnReader(reader) => values(reader, rows, DecodedValues::Double)?,
        ColumnReader::ByteArrayColumnReader(reader) => values(reader, rows, DecodedValues::Bytes)?,
        ColumnReader::FixedLenByteArrayColumnReader(reader) => values(reader, rows, DecodedValues::Fixed)?,
    };
    // Bytes that were never set panic when they are looked at; here that is guarded.
    match &values {
        DecodedValues::Bytes(values) => values.iter().for_each(|value| _ = value.data()),
        DecodedValues::Fixed(values) => values.iter().for_each(|value| _ = value.data()),
        _ => {}
    }
    Ok(DecodedColumn { levels, values, next_level: 0, next_value: 0 })
}

fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    made: impl FnOnce(Vec<T::T>) -> DecodedValues,
) -> Result<(Vec<i16>, DecodedValues), ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (read, value_count, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let present = levels.iter().filter(|level| **level != 0).count();
    let expected = if levels.is_empty() { rows } else { present };
    if read != rows || value_count != expected || values.len() != expected {
        return Err(fault("it has fewer values than there are rows"));
    }
    Ok((levels, made(values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by pyarrow 26: all types, in the encodings and packings that it has.
    const FILES: [&[u8]; 4] = [
        include_bytes!("../../tests/files/snappy.parquet"),
        include_bytes!("../../tests/files/gzip_v2.parquet"),
        include_bytes!("../../tests/files/lz4_delta.parquet"),
        include_bytes!("../../tests/files/int96.parquet"),
    ];

    /// All rows, or why they cannot be read; a file that claims millions of rows is read for some.
    fn read(bytes: &[u8], options: &CsvOptions) -> Result<Vec<String>, String> {
        let source = Box::new(std::io::Cursor::new(bytes.to_vec()));
        let rows = ParquetRows::new(source, Arc::default(), Path::new("x"), options);
        let mut rows = rows.map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().map_err(|error| error.to_string())? {
            all.push(row.text.map_or_else(|bad| bad.reason, |text| String::from_utf8(text).unwrap()));
            if all.len() > 2_000 {
                break;
            }
        }
        Ok(all)
    }

    #[test]
    fn files_of_others() {
        let options = CsvOptions::default();
        let expected = [
            r#"{"id":"1","pk":"a","n":9223372036854775807,"u":18446744073709551615,"i8":-128,"f":0.1,"d":1e300,"h":1.5,"b":true,"dec":1234567890123456789012345678.99,"date":"2024-02-29","t":"23:59:59.999","ts":"2024-02-29T01:02:03.000004Z","local":"2024-02-29T01:02:03.000","raw":"AP8=","fixed":"YWJj","s":"ä\"\n"}"#,
            r#"{"id":"2","pk":"b","u":0,"i8":127,"d":0.1,"b":false,"dec":-0.05,"s":""}"#,
            r#"{"id":"3","pk":"a","n":-1,"f":1.5,"d":-0,"h":-2,"date":"1969-12-31","t":"00:00:00.000","ts":"1969-12-31T23:59:59.999999Z","raw":"","fixed":"eHl6"}"#,
        ];
        for file in &FILES[..3] {
            assert_eq!(read(file, &options).unwrap(), expected);
        }
        assert_eq!(
            read(FILES[3], &options).unwrap(),
            [
                r#"{"id":"1","pk":"a","ts":"2024-02-29T01:02:03.000004000Z"}"#,
                r#"{"id":"2","pk":"b"}"#,
                r#"{"id":"3","pk":"a","ts":"1969-12-31T23:59:59.999999000Z"}"#,
            ]
        );
    }

    #[test]
    fn kinds_can_be_told() {
        let told =
            |name: &str, kind| CsvOptions { kinds: vec![(name.to_owned(), kind)], empty_is_null: true };
        let rows = read(FILES[0], &told("n", CellKind::Text)).unwrap();
        assert!(
            rows[0].contains(r#""n":"9223372036854775807""#) && rows[1].contains(r#""n":null"#),
            "{rows:?}"
        );
        let rows = read(FILES[0], &told("fixed", CellKind::Text)).unwrap();
        assert!(rows[0].contains(r#""fixed":"abc""#), "{rows:?}");
        let rows = read(FILES[0], &told("pk", CellKind::Number)).unwrap();
        assert!(
            rows[0].contains("column \"pk\" has \"a\", which is not a number; say --type pk=string"),
            "{rows:?}"
        );
        let error = read(FILES[0], &told("n", CellKind::Boolean)).unwrap_err();
        assert!(error.contains("--type n=boolean: the column is number"), "{error}");
        assert!(read(FILES[0], &told("none", CellKind::Text)).unwrap_err().contains("no column"));
    }

    #[test]
    fn nested_files() {
        for (file, name) in [
            (&include_bytes!("../../tests/files/list.parquet")[..], "tags"),
            (include_bytes!("../../tests/files/struct.parquet"), "a"),
            (include_bytes!("../../tests/files/map.parquet"), "m"),
        ] {
            let error = read(file, &CsvOptions::default()).unwrap_err();
            assert!(
                error.contains(&format!("column {name:?} is a group"))
                    && error.contains("nothing was written"),
                "{error}"
            );
        }
    }

    /// Whatever is done to a file, it is read or refused.
    #[test]
    fn damaged_files() {
        let options = CsvOptions::default();
        for file in FILES {
            for cut in (0..file.len()).step_by(7) {
                assert!(read(&file[..cut], &options).is_err(), "{cut}");
            }
            for at in 0..file.len() {
                let mut damaged = file.to_vec();
                damaged[at] ^= [0x01, 0x80, 0xff][at % 3];
                let _ = read(&damaged, &options);
            }
        }
    }
}
