//! Rows of files: JSON lines, JSON values, CSV (`astrarium_rows`), Parquet.
//!
//! In: the bytes of a source. Out: [`InputRow`]s with the text of a JSON object each, or why a row is none, so that the caller decides whether to
//! go on. Each format is a file here; what all of them promise is [`InputRows`].

mod parquet;

use crate::error::ToolError;
use crate::input::{self, OpenInput};
use crate::progress::tell;
use astrarium_rows::csv::{self, CsvOptions, CsvRows, CsvShape};
use astrarium_rows::{InputRows, LineRows, TextFormat, ValueRows};
use clap::ValueEnum;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub(crate) use parquet::ParquetRows;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// One JSON object a line.
    JsonLines,
    /// A JSON array of objects, or objects one after another.
    Json,
    /// Values separated by commas, names in the first line.
    Csv,
    /// The same with tabs.
    Tsv,
    /// Columns with types, as data lakes have them.
    Parquet,
}

/// The format of a source: as told, by its name, or by its first bytes.
pub(crate) fn choose(
    told: Option<FileFormat>,
    path: &Path,
    opened: &OpenInput,
) -> Result<FileFormat, ToolError> {
    let format = format_of(told, path, &opened.head)?;
    if format == FileFormat::Parquet && (opened.size.is_none() || opened.is_compressed) {
        let what = if opened.is_compressed { "compressed as a whole" } else { "no plain file" };
        return Err(ToolError::input(format!(
            "{} is Parquet and {what}, but Parquet begins at its end: give a plain file (its columns are compressed inside)",
            path.display()
        )));
    }
    Ok(format)
}

fn format_of(told: Option<FileFormat>, path: &Path, head: &[u8]) -> Result<FileFormat, ToolError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_called_parquet = matches!(extension, "parquet" | "pq");
    let shown = path.display();
    match (told, head.starts_with(parquet::MAGIC)) {
        (None | Some(FileFormat::Parquet), true) => return Ok(FileFormat::Parquet),
        (Some(_), true) => {
            return Err(ToolError::input(format!(
                "{shown} is Parquet by its first bytes, and --format says otherwise"
            )));
        }
        (Some(format), false) if format != FileFormat::Parquet => return Ok(format),
        (None, false) if !is_called_parquet => {}
        (_, false) => {
            return Err(ToolError::input(format!("{shown} is no Parquet: its first bytes are not PAR1")));
        }
    }
    let format = TextFormat::of(extension, head).ok_or_else(|| {
        ToolError::input(format!(
            "what {} holds is told neither by its name nor by its first bytes; say --format json-lines, json, csv, tsv or parquet",
            path.display()
        ))
    })?;
    Ok(match format {
        TextFormat::JsonLines => FileFormat::JsonLines,
        TextFormat::Json => FileFormat::Json,
        TextFormat::Csv => FileFormat::Csv,
        TextFormat::Tsv => FileFormat::Tsv,
    })
}

/// The rows of a source.
pub(crate) fn rows(
    format: FileFormat,
    input: OpenInput,
    path: &Path,
    csv: &CsvOptions,
    shape: Option<CsvShape>,
) -> Result<Box<dyn InputRows>, ToolError> {
    Ok(match format {
        FileFormat::JsonLines => Box::new(LineRows::new(input.reader, path)),
        FileFormat::Json => Box::new(ValueRows::new(input.reader, path)),
        FileFormat::Csv => Box::new(CsvRows::new(input.reader, path, b',', csv, shape)?),
        FileFormat::Tsv => Box::new(CsvRows::new(input.reader, path, b'\t', csv, shape)?),
        FileFormat::Parquet => Box::new(parquet_rows(input, path, csv)?),
    })
}

/// Whether the kinds of columns are known only when all rows were read.
pub(crate) fn has_kinds_in_rows(format: FileFormat) -> bool {
    matches!(format, FileFormat::Csv | FileFormat::Tsv)
}

/// Says what columns are taken for.
pub(crate) fn tell_columns(shape: &CsvShape) {
    tell(&format!("columns: {} (change one with --type NAME=KIND)", shape.described()));
}

fn parquet_rows(input: OpenInput, path: &Path, options: &CsvOptions) -> Result<ParquetRows, ToolError> {
    let file = File::open(path).map_err(ToolError::file("open", path))?;
    Ok(ParquetRows::new(Box::new(file), input.read, path, options)?)
}

/// The rows of bytes in memory.
pub(crate) fn rows_of_bytes(
    format: FileFormat,
    bytes: &[u8],
    path: &Path,
    options: &CsvOptions,
) -> Result<Box<dyn InputRows>, ToolError> {
    let reader = || Box::new(std::io::Cursor::new(bytes.to_vec()));
    let separated = |separator| {
        let shape = csv::shape(reader(), path, separator, options)?;
        CsvRows::new(reader(), path, separator, options, Some(shape))
    };
    Ok(match format {
        FileFormat::JsonLines => Box::new(LineRows::new(reader(), path)),
        FileFormat::Json => Box::new(ValueRows::new(reader(), path)),
        FileFormat::Csv => Box::new(separated(b',')?),
        FileFormat::Tsv => Box::new(separated(b'\t')?),
        FileFormat::Parquet => Box::new(ParquetRows::new(reader(), Arc::default(), path, options)?),
    })
}

/// The kinds of columns, where a format has columns: a CSV file is read as a whole for them.
pub(crate) fn shape(
    format: FileFormat,
    path: &Path,
    options: &CsvOptions,
) -> Result<Option<CsvShape>, ToolError> {
    let opened = || input::open(path);
    Ok(match format {
        FileFormat::Csv => Some(csv::shape(opened()?.reader, path, b',', options)?),
        FileFormat::Tsv => Some(csv::shape(opened()?.reader, path, b'\t', options)?),
        FileFormat::Parquet => Some(parquet_rows(opened()?, path, options)?.shape()),
        FileFormat::JsonLines | FileFormat::Json => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_names_and_bytes() {
        let check = |name: &str, head: &[u8], expected: Option<FileFormat>| {
            assert_eq!(format_of(None, Path::new(name), head).ok(), expected, "{name}");
        };
        check("a.jsonl.gz", b"", Some(FileFormat::JsonLines));
        check("a.CSV", b"[", Some(FileFormat::Csv));
        check("a.json", b"{", Some(FileFormat::Json));
        check("-", b" \n[", Some(FileFormat::Json));
        check("-", b"{", Some(FileFormat::JsonLines));
        check("a.csv", b"PAR1", Some(FileFormat::Parquet));
        check("a.parquet", b"PAR1", Some(FileFormat::Parquet));
        check("a.parquet", b"{", None);
        assert!(format_of(Some(FileFormat::Csv), Path::new("a"), b"PAR1").is_err());
        assert!(format_of(Some(FileFormat::Parquet), Path::new("a.csv"), b"a,b").is_err());
        check("a.tsv.zst", b"x", Some(FileFormat::Tsv));
        check("a.dat", b"hello", None);
    }
}
