//! What fuzz targets reach of the readers, which nobody else outside sees.
//!
//! In: any bytes. Out: nothing but that it comes back: no panic, bounded memory, and what is read is what is promised.

use crate::archive;
use crate::formats::{self, FileFormat};
use astrarium_rows::csv::CsvOptions;
use astrarium_rows::template::TextTemplate;
use astrarium_value::json::Text;
use std::path::Path;

/// Rows that are read of one input: some bytes can stand for millions.
const ROWS_MAX: usize = 2_000;

/// Reads bytes as a file of a format; how many rows it has, or none if they are refused.
///
/// # Panics
/// If a reader breaks its promise: numbers count up, and rows of columns are JSON.
pub fn read_rows(bytes: &[u8], format: FileFormat) -> Option<usize> {
    let path = Path::new("input");
    let mut rows = formats::rows_of_bytes(format, bytes, path, &CsvOptions::default()).ok()?;
    let has_columns = matches!(format, FileFormat::Csv | FileFormat::Tsv | FileFormat::Parquet);
    let mut count = 0;
    while count < ROWS_MAX {
        let Some(row) = rows.next_row().ok()? else { break };
        count += 1;
        assert_eq!(row.number, count as u64, "rows are counted");
        if let Ok(text) = row.text {
            assert!(!has_columns || Text::parse(&text).is_ok(), "a row of columns is JSON");
        }
    }
    Some(count)
}

/// Fills a template from a JSON text; none if either is refused.
pub fn fill_template(template: &str, row: &[u8]) -> Option<String> {
    let template = TextTemplate::parse(template).ok()?;
    let row = Text::parse(row).ok()?;
    template.fill(row.root(), 7).ok()
}

/// Checks bytes as the archive of a dump; whether it is whole.
pub fn check_archive(bytes: &[u8]) -> bool {
    archive::check_bytes(Box::new(std::io::Cursor::new(bytes.to_vec())), Path::new("input")).is_ok()
}
