//! One JSON object a line. A line that is none is a bad row, and the next line a row again; empty lines are no rows.

use crate::pieces::PlacedRows;
use crate::{BadRow, InputRow, InputRows, ROW_BYTES_MAX, RowsError, skip_space};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Rows of a text with one object a line.
pub struct LineRows {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    number: u64,
    /// Bytes taken of the text.
    offset: u64,
    /// Where the line of the last row began.
    started: u64,
    /// Whether the last line may go on beyond the text.
    has_touched_end: bool,
}

impl LineRows {
    /// Rows of a text.
    pub fn new(reader: Box<dyn BufRead + Send>, path: &Path) -> LineRows {
        LineRows::continued(reader, path, 0)
    }

    /// Rows of what follows others, which are counted.
    pub(crate) fn continued(reader: Box<dyn BufRead + Send>, path: &Path, number: u64) -> LineRows {
        LineRows { reader, path: path.to_owned(), number, offset: 0, started: 0, has_touched_end: false }
    }

    /// The next line that is not empty, from its first character on and without its end; whether it is longer than a row may be.
    fn line(&mut self) -> std::io::Result<Option<(Vec<u8>, bool)>> {
        self.offset += skip_space(&mut self.reader)?;
        self.started = self.offset;
        let mut line = Vec::new();
        let mut is_too_long = false;
        let mut is_begun = false;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                self.has_touched_end = true;
                return Ok(is_begun.then_some((line, is_too_long)));
            }
            is_begun = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = ROW_BYTES_MAX.saturating_sub(line.len());
            line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            is_too_long |= part.len() > room;
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.reader.consume(used);
            self.offset += used as u64;
            if end.is_some() {
                return Ok(Some((line, is_too_long)));
            }
        }
    }
}

impl InputRows for LineRows {
    fn next_row(&mut self) -> Result<Option<InputRow>, RowsError> {
        loop {
            let line = self.line().map_err(RowsError::file("read", &self.path))?;
            let Some((line, is_too_long)) = line else { return Ok(None) };
            let text = line.trim_ascii();
            if text.is_empty() && !is_too_long {
                continue;
            }
            self.number += 1;
            let text = if is_too_long {
                Err(BadRow::new(format!("the line is longer than {} MB", ROW_BYTES_MAX >> 20), text))
            } else {
                Ok(text.to_vec())
            };
            return Ok(Some(InputRow { number: self.number, text }));
        }
    }
}

impl PlacedRows for LineRows {
    fn offset(&self) -> u64 {
        self.offset
    }

    fn started(&self, _before: u64) -> u64 {
        self.started
    }

    fn has_touched_end(&self) -> bool {
        self.has_touched_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let long = "x".repeat(ROW_BYTES_MAX + 1);
        let text = format!("{{}}\r\n\n  \n[1]\n{long}\n{{\"a\":1}}");
        let mut rows = LineRows::new(Box::new(std::io::Cursor::new(text.into_bytes())), Path::new("x"));
        let mut next =
            || rows.next_row().unwrap().map(|row| (row.number, row.text.map_err(|bad| bad.reason)));
        assert_eq!(next(), Some((1, Ok(b"{}".to_vec()))));
        assert_eq!(next(), Some((2, Ok(b"[1]".to_vec()))));
        assert!(next().unwrap().1.unwrap_err().contains("longer than 4 MB"));
        assert_eq!(next(), Some((4, Ok(b"{\"a\":1}".to_vec()))));
        assert_eq!(next(), None);
    }
}
