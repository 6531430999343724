//! Rows as they are written to a file: JSON lines, a JSON array, CSV; Parquet has a file of its own.

use super::parquet::ParquetSink;
use crate::error::ToolError;
use crate::formats::FileFormat;
use crate::output::OpenOutput;
use astrarium_client::raw_json;
use astrarium_rows::csv::write_cell;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

/// Rows that tell the columns of CSV.
const SAMPLE_ROWS: usize = 1_000;

/// Writes rows.
pub(super) enum RowSink {
    Lines,
    /// Whether a row was written.
    Array(bool),
    Separated(SeparatedRows),
    Parquet(ParquetSink),
}

/// CSV under way.
pub(super) struct SeparatedRows {
    separator: u8,
    columns: Vec<String>,
    /// Whether columns were given: then other properties are left out.
    is_told: bool,
    /// Rows held until the columns are known.
    held: Vec<Bytes>,
    is_begun: bool,
}

impl RowSink {
    pub(super) fn new(format: FileFormat, columns: &[String], output: Option<&Path>) -> RowSink {
        let separated = |separator| {
            let (columns, is_told) = (columns.to_vec(), !columns.is_empty());
            RowSink::Separated(SeparatedRows {
                separator,
                columns,
                is_told,
                held: Vec::new(),
                is_begun: false,
            })
        };
        match format {
            FileFormat::JsonLines => RowSink::Lines,
            FileFormat::Json => RowSink::Array(false),
            FileFormat::Csv => separated(b','),
            FileFormat::Tsv => separated(b'\t'),
            FileFormat::Parquet => RowSink::Parquet(ParquetSink::new(columns, output)),
        }
    }

    pub(super) fn write(&mut self, rows: &[Bytes], output: &mut OpenOutput) -> Result<(), ToolError> {
        let written = match self {
            RowSink::Lines => {
                rows.iter().try_for_each(|row| output.write_all(row).and_then(|()| output.write_all(b"\n")))
            }
            RowSink::Array(is_begun) => rows.iter().try_for_each(|row| {
                let before: &[u8] = if std::mem::replace(is_begun, true) { b",\n" } else { b"[\n" };
                output.write_all(before).and_then(|()| output.write_all(row))
            }),
            RowSink::Separated(separated) => return separated.take(rows, output),
            RowSink::Parquet(parquet) => return parquet.take(rows),
        };
        written.map_err(ToolError::file("write", Path::new("the output")))
    }

    pub(super) fn finish(&mut self, output: &mut OpenOutput) -> Result<(), ToolError> {
        let written = match self {
            RowSink::Lines => Ok(()),
            RowSink::Array(true) => output.write_all(b"\n]\n"),
            RowSink::Array(false) => output.write_all(b"[]\n"),
            RowSink::Separated(separated) => return separated.begin(output),
            RowSink::Parquet(parquet) => return parquet.finish(output),
        };
        written.map_err(ToolError::file("write", Path::new("the output")))
    }
}

impl SeparatedRows {
    fn take(&mut self, rows: &[Bytes], output: &mut OpenOutput) -> Result<(), ToolError> {
        if self.is_begun {
            return self.put(rows, output);
        }
        self.held.extend_from_slice(rows);
        if self.is_told || self.held.len() >= SAMPLE_ROWS { self.begin(output) } else { Ok(()) }
    }

    /// Writes names and what was held.
    fn begin(&mut self, output: &mut OpenOutput) -> Result<(), ToolError> {
        if self.is_begun {
            return Ok(());
        }
        self.is_begun = true;
        let held = std::mem::take(&mut self.held);
        if !self.is_told {
            let mut seen = BTreeSet::new();
            for row in &held {
                for (name, _) in raw_json::members(row) {
                    let name: String = serde_json::from_slice(name).unwrap_or_default();
                    if seen.insert(name.clone()) {
                        self.columns.push(name);
                    }
                }
            }
        }
        let mut line = Vec::new();
        for (index, name) in self.columns.iter().enumerate() {
            if index > 0 {
                line.push(self.separator);
            }
            write_cell(name.as_bytes(), self.separator, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        output.write_all(&line).map_err(ToolError::file("write", Path::new("the output")))?;
        self.put(&held, output)
    }

    fn put(&self, rows: &[Bytes], output: &mut OpenOutput) -> Result<(), ToolError> {
        let mut text = Vec::new();
        for row in rows {
            self.line(row, &mut text)?;
        }
        output.write_all(&text).map_err(ToolError::file("write", Path::new("the output")))
    }

    fn line(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), ToolError> {
        if row.first() != Some(&b'{') {
            return Err(ToolError::input("CSV needs rows that are objects; SELECT VALUE gives others"));
        }
        let mut cells: Vec<Vec<u8>> = vec![Vec::new(); self.columns.len()];
        for (name, value) in raw_json::members(row) {
            let name: String = serde_json::from_slice(name).unwrap_or_default();
            match self.columns.iter().position(|column| *column == name).and_then(|at| cells.get_mut(at)) {
                Some(cell) => *cell = cell_of(value),
                None if self.is_told => {}
                None => {
                    return Err(ToolError::input(format!(
                        "a later row has the property {name:?}, which the first {SAMPLE_ROWS} lack; name the columns with --columns"
                    )));
                }
            }
        }
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.push(self.separator);
            }
            write_cell(cell, self.separator, out);
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// Strings stand as they are, everything else as JSON; null is empty.
fn cell_of(value: &[u8]) -> Vec<u8> {
    match value.first() {
        Some(b'"') => serde_json::from_slice::<String>(value).unwrap_or_default().into_bytes(),
        Some(b'n') => Vec::new(),
        _ => value.to_vec(),
    }
}
