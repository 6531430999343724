//! A JSON array of objects, or values one after another, read as a stream: only one value is in memory.
//!
//! What is inside a value is checked by whoever takes it; here only its end is found. Text that is broken between values, or ends within one,
//! ends the reading: there is no telling where the next value begins.

use crate::pieces::PlacedRows;
use crate::{BadRow, InputRow, InputRows, ROW_BYTES_MAX, RowsError, skip_space};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// What may come next between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonPlace {
    /// An array or a value.
    Start,
    /// The first value of the array, or its end.
    FirstOrEnd,
    /// A value of the array.
    Value,
    /// A comma or the end of the array.
    CommaOrEnd,
    /// Nothing more than space.
    Nothing,
    /// Another value, or the end of the text.
    ValueOrNothing,
}

impl JsonPlace {
    /// All of them, with names for what is remembered between pieces.
    pub const NAMES: [(JsonPlace, &'static str); 6] = [
        (JsonPlace::Start, "start"),
        (JsonPlace::FirstOrEnd, "first"),
        (JsonPlace::Value, "value"),
        (JsonPlace::CommaOrEnd, "comma"),
        (JsonPlace::Nothing, "end"),
        (JsonPlace::ValueOrNothing, "list"),
    ];
}

/// Rows of an array, or of values one after another.
pub struct ValueRows {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    number: u64,
    /// Bytes taken of the text.
    offset: u64,
    /// Where the last value began.
    started: u64,
    /// Whether the last value, or what is between values, may go on beyond the text.
    has_touched_end: bool,
    expected: JsonPlace,
}

impl ValueRows {
    /// Rows of a text.
    pub fn new(reader: Box<dyn BufRead + Send>, path: &Path) -> ValueRows {
        ValueRows::continued(reader, path, 0, JsonPlace::Start)
    }

    /// Rows of what follows others, which are counted.
    pub(crate) fn continued(
        reader: Box<dyn BufRead + Send>,
        path: &Path,
        number: u64,
        expected: JsonPlace,
    ) -> ValueRows {
        let path = path.to_owned();
        ValueRows { reader, path, number, offset: 0, started: 0, has_touched_end: false, expected }
    }

    /// What may come next.
    pub(crate) fn place(&self) -> JsonPlace {
        self.expected
    }

    fn peek(&mut self) -> Result<Option<u8>, RowsError> {
        let buffer = self.reader.fill_buf().map_err(RowsError::file("read", &self.path))?;
        self.has_touched_end |= buffer.is_empty();
        Ok(buffer.first().copied())
    }

    fn advance(&mut self, count: usize) {
        self.reader.consume(count);
        self.offset += count as u64;
    }

    fn peek_after_space(&mut self) -> Result<Option<u8>, RowsError> {
        self.offset += skip_space(&mut self.reader).map_err(RowsError::file("read", &self.path))?;
        self.peek()
    }

    fn broken(&self, what: &str) -> RowsError {
        RowsError::input(format!(
            "{} is not a JSON array or a list of objects: {what} at byte {}, after {} rows",
            self.path.display(),
            self.offset,
            self.number
        ))
    }

    /// Reads one value, which begins here.
    fn value(&mut self, first: u8) -> Result<Result<Vec<u8>, BadRow>, RowsError> {
        let mut value = Vec::new();
        let mut scan = ValueScan {
            depth: 0,
            is_string: false,
            is_escaped: false,
            is_scalar: !matches!(first, b'{' | b'[' | b'"'),
        };
        let mut is_too_long = false;
        loop {
            let buffer = self.reader.fill_buf().map_err(RowsError::file("read", &self.path))?;
            if buffer.is_empty() {
                self.has_touched_end = true;
                if scan.is_scalar {
                    break;
                }
                return Err(self.broken("the text ends within a value"));
            }
            let end = buffer.iter().position(|byte| scan.ends_before(*byte));
            let (used, is_over) = match end {
                // Brackets and quotes belong to the value, what follows a scalar does not.
                Some(at) if scan.is_scalar => (at, true),
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            let room = ROW_BYTES_MAX.saturating_sub(value.len());
            value.extend_from_slice(buffer.get(..used.min(room)).unwrap_or_default());
            is_too_long |= used > room;
            self.advance(used);
            if is_over {
                break;
            }
        }
        Ok(if is_too_long {
            Err(BadRow::new(format!("the value is longer than {} MB", ROW_BYTES_MAX >> 20), &value))
        } else {
            Ok(value)
        })
    }
}

/// Where the reading of a value is.
struct ValueScan {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
    is_scalar: bool,
}

impl ValueScan {
    /// Whether the value ends with this byte; of a scalar, before it.
    fn ends_before(&mut self, byte: u8) -> bool {
        if self.is_scalar {
            return byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b'{' | b'[' | b'"');
        }
        if self.is_escaped {
            self.is_escaped = false;
            return false;
        }
        match byte {
            b'\\' if self.is_string => self.is_escaped = true,
            b'"' => {
                self.is_string = !self.is_string;
                return !self.is_string && self.depth == 0;
            }
            _ if self.is_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl InputRows for ValueRows {
    fn next_row(&mut self) -> Result<Option<InputRow>, RowsError> {
        loop {
            let next = self.peek_after_space()?;
            match (self.expected, next) {
                (JsonPlace::Start, Some(b'[')) => {
                    self.advance(1);
                    self.expected = JsonPlace::FirstOrEnd;
                }
                (JsonPlace::FirstOrEnd | JsonPlace::CommaOrEnd, Some(b']')) => {
                    self.advance(1);
                    self.expected = JsonPlace::Nothing;
                }
                (JsonPlace::CommaOrEnd, Some(b',')) => {
                    self.advance(1);
                    self.expected = JsonPlace::Value;
                }
                (JsonPlace::CommaOrEnd, Some(_)) => return Err(self.broken("a comma is missing")),
                (JsonPlace::Nothing, Some(_)) => return Err(self.broken("something follows the array")),
                (JsonPlace::Start | JsonPlace::Nothing | JsonPlace::ValueOrNothing, None) => {
                    return Ok(None);
                }
                (_, None) => return Err(self.broken("the array does not end")),
                (_, Some(b',' | b']' | b'}' | b':')) => return Err(self.broken("a value is missing")),
                (_, Some(first)) => {
                    let is_list = matches!(self.expected, JsonPlace::Start | JsonPlace::ValueOrNothing);
                    self.number += 1;
                    self.started = self.offset;
                    let text = self.value(first)?;
                    self.expected = if is_list { JsonPlace::ValueOrNothing } else { JsonPlace::CommaOrEnd };
                    return Ok(Some(InputRow { number: self.number, text }));
                }
            }
        }
    }
}

impl PlacedRows for ValueRows {
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

    /// All rows, however the text is cut into buffers.
    fn read(text: &str) -> Result<Vec<String>, String> {
        let read = |capacity: usize| {
            let reader =
                std::io::BufReader::with_capacity(capacity, std::io::Cursor::new(text.as_bytes().to_vec()));
            let mut rows = ValueRows::new(Box::new(reader), Path::new("x"));
            let mut all = Vec::new();
            loop {
                match rows.next_row().map_err(|error| error.to_string())? {
                    Some(row) => all.push(
                        row.text.map_or_else(|bad| bad.reason, |text| String::from_utf8(text).unwrap()),
                    ),
                    None => return Ok(all),
                }
            }
        };
        let whole = read(1 << 16);
        assert_eq!(read(1), whole, "{text}");
        assert_eq!(read(3), whole, "{text}");
        whole
    }

    #[test]
    fn arrays_and_lists() {
        assert_eq!(
            read("[{\"a\":\"]}\\\"\"} ,\n{\"b\":[1,{}]},7,\"x\"]\n").unwrap(),
            ["{\"a\":\"]}\\\"\"}", "{\"b\":[1,{}]}", "7", "\"x\""]
        );
        assert_eq!(
            read("{\n \"a\": 1\n}\n{\"b\":2}{\"c\":3}").unwrap(),
            ["{\n \"a\": 1\n}", "{\"b\":2}", "{\"c\":3}"]
        );
        assert_eq!(read("[]").unwrap(), [""; 0]);
        assert_eq!(read("  ").unwrap(), [""; 0]);
        assert_eq!(read("7").unwrap(), ["7"]);
    }

    #[test]
    fn broken_texts() {
        for (text, fragment) in [
            ("[", "does not end"),
            ("[{}", "does not end"),
            ("[{},", "does not end"),
            ("[{} {}]", "comma"),
            ("[{}] x", "follows"),
            ("[,]", "value is missing"),
            ("[{\"a\":", "within a value"),
            ("{\"a", "within a value"),
            ("}", "value is missing"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(fragment), "{text}: {error}");
        }
    }
}
