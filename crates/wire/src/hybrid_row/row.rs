//! A row as its schema lays it out: presence bits, fixed columns, columns with a length, then sparse fields.
//!
//! In: bytes and a [`Schema`]. Out: one [`Cell`] or nothing for each column; and the reverse.
//! Layout
//! - One presence bit for each fixed or variable column, in order; a fixed column takes its bytes even when it is absent.
//! - A sparse field is a type code, a token of the column's name, and the value. Tokens count the columns from 1; greater
//!   ones announce a name of that many bytes more, and fields of unknown names are skipped.
//!
//! Not here: bits as fixed columns and nested rows, which no schema here has.

use super::{ByteCursor, RowError, cursor};

/// The columns of a kind of rows; fixed ones come before variable ones, and these before sparse ones.
pub(super) struct Schema<const N: usize> {
    pub(super) id: i32,
    pub(super) columns: [Column; N],
}

/// One column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: ColumnType,
    pub(super) storage: Storage,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Bool,
    Int32,
    UInt32,
    Float64,
    Utf8,
    Binary,
}

/// Where a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// At its place, four bytes.
    Fixed,
    /// At its place among the present ones, after its length.
    Variable,
    /// Anywhere after those, with its type and name.
    Sparse,
}

/// The value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Utf8(&'a str),
    Binary(&'a [u8]),
}

/// The codes of the types that columns have.
mod code {
    pub(super) const NULL: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const INT32: u8 = 7;
    pub(super) const UINT32: u8 = 11;
    pub(super) const FLOAT64: u8 = 16;
    pub(super) const UTF8: u8 = 20;
    pub(super) const BINARY: u8 = 21;
}

/// Type and value of a sparse field. The value is `None` for null and for types that no column has.
type Field<'a> = Option<(ColumnType, Cell<'a>)>;

impl<const N: usize> Schema<N> {
    /// Reads a row, the header included.
    pub(super) fn read<'a>(&self, row: &'a [u8]) -> Result<[Option<Cell<'a>>; N], RowError> {
        let mut cursor = ByteCursor::new(row);
        if cursor.header()? != self.id {
            return Err(cursor.error("a row of another schema"));
        }
        let mut cells = [None; N];
        self.read_placed(&mut cursor, &mut cells)?;
        while !cursor.is_at_end() {
            let code = cursor.byte()?;
            let column = self.read_name(&mut cursor)?;
            let field = read_field(&mut cursor, code)?;
            let Some((column, cell)) =
                column.and_then(|index| self.columns.get(index).zip(cells.get_mut(index)))
            else {
                continue;
            };
            if field.is_some_and(|(kind, _)| kind != column.kind) || column.storage != Storage::Sparse {
                return Err(cursor.error("a field of another type"));
            }
            *cell = field.map(|(_, value)| value);
        }
        Ok(cells)
    }

    /// Reads what stands at its place.
    fn read_placed<'a>(
        &self,
        cursor: &mut ByteCursor<'a>,
        cells: &mut [Option<Cell<'a>>; N],
    ) -> Result<(), RowError> {
        let presence = cursor.take(self.placed().count().div_ceil(8))?;
        for ((index, column), cell) in self.placed().zip(cells) {
            let is_present = presence.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1);
            let value = match (column.storage, column.kind) {
                (Storage::Fixed, ColumnType::UInt32) => Cell::UInt32(u32::from_le_bytes(cursor.array()?)),
                (Storage::Fixed, _) => Cell::Int32(cursor.int32()?),
                _ if !is_present => continue,
                (_, ColumnType::Utf8) => Cell::Utf8(text(cursor)?),
                _ => Cell::Binary(cursor.prefixed()?),
            };
            *cell = is_present.then_some(value);
        }
        Ok(())
    }

    /// The columns that have a presence bit, with its number.
    fn placed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().take_while(|(_, column)| column.storage != Storage::Sparse)
    }

    /// The column that a sparse field names; `None` if there is none of that name.
    fn read_name(&self, cursor: &mut ByteCursor<'_>) -> Result<Option<usize>, RowError> {
        let token = usize::try_from(cursor.varuint()?).unwrap_or(usize::MAX);
        let Some(length) = token.checked_sub(N + 1) else {
            return Ok(token.checked_sub(1));
        };
        let name = cursor.take(length)?;
        Ok(self.columns.iter().position(|column| column.name.as_bytes() == name))
    }

    /// Writes a row, the header included.
    pub(super) fn write(&self, cells: [Option<Cell<'_>>; N]) -> Vec<u8> {
        let mut row = vec![super::FIRST_BYTE];
        row.extend_from_slice(&self.id.to_le_bytes());
        let placed = self.placed().count();
        let mut presence = vec![0_u8; placed.div_ceil(8)];
        for (index, _) in cells.iter().take(placed).enumerate().filter(|(_, cell)| cell.is_some()) {
            if let Some(byte) = presence.get_mut(index / 8) {
                *byte |= 1 << (index % 8);
            }
        }
        row.extend_from_slice(&presence);
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            match (column.storage, cell) {
                (Storage::Fixed, None) => row.extend_from_slice(&[0; 4]),
                (_, None) => {}
                (Storage::Sparse, Some(cell)) => {
                    row.push(cell.code());
                    cursor::write_varuint(index as u64 + 1, &mut row);
                    cell.write(&mut row);
                }
                (_, Some(cell)) => cell.write(&mut row),
            }
        }
        row
    }
}

fn text<'a>(cursor: &mut ByteCursor<'a>) -> Result<&'a str, RowError> {
    let bytes = cursor.prefixed()?;
    std::str::from_utf8(bytes).map_err(|_| cursor.error("text that is not UTF-8"))
}

/// Reads the value of a sparse field, or skips it if its type is one that no column has.
fn read_field<'a>(cursor: &mut ByteCursor<'a>, code: u8) -> Result<Field<'a>, RowError> {
    let unused_length = match code {
        code::NULL => 0,
        code::FALSE => return Ok(Some((ColumnType::Bool, Cell::Bool(false)))),
        code::TRUE => return Ok(Some((ColumnType::Bool, Cell::Bool(true)))),
        code::INT32 => return Ok(Some((ColumnType::Int32, Cell::Int32(cursor.int32()?)))),
        code::UINT32 => {
            return Ok(Some((ColumnType::UInt32, Cell::UInt32(u32::from_le_bytes(cursor.array()?)))));
        }
        code::FLOAT64 => {
            return Ok(Some((ColumnType::Float64, Cell::Float64(f64::from_le_bytes(cursor.array()?)))));
        }
        code::UTF8 => return Ok(Some((ColumnType::Utf8, Cell::Utf8(text(cursor)?)))),
        code::BINARY => return Ok(Some((ColumnType::Binary, Cell::Binary(cursor.prefixed()?)))),
        // Integers of one, two and eight bytes, and those of as many as they need.
        5 | 9 => 1,
        6 | 10 => 2,
        8 | 12 => 8,
        13 | 14 => {
            cursor.varuint()?;
            0
        }
        // A single-precision number, a decimal, a date, a GUID, a quadruple number, another date, an object id.
        15 => 4,
        17 | 19 | 22 => 16,
        18 | 23 => 8,
        24 => 12,
        _ => return Err(cursor.error("a field of an unknown type")),
    };
    cursor.take(unused_length).map(|_| None)
}

impl<'a> Cell<'a> {
    pub(super) fn bool(self) -> Option<bool> {
        if let Cell::Bool(value) = self { Some(value) } else { None }
    }

    pub(super) fn int32(self) -> Option<i32> {
        if let Cell::Int32(value) = self { Some(value) } else { None }
    }

    pub(super) fn uint32(self) -> Option<u32> {
        if let Cell::UInt32(value) = self { Some(value) } else { None }
    }

    pub(super) fn float64(self) -> Option<f64> {
        if let Cell::Float64(value) = self { Some(value) } else { None }
    }

    pub(super) fn utf8(self) -> Option<&'a str> {
        if let Cell::Utf8(value) = self { Some(value) } else { None }
    }

    pub(super) fn binary(self) -> Option<&'a [u8]> {
        if let Cell::Binary(value) = self { Some(value) } else { None }
    }

    fn code(self) -> u8 {
        match self {
            Cell::Bool(false) => code::FALSE,
            Cell::Bool(true) => code::TRUE,
            Cell::Int32(_) => code::INT32,
            Cell::UInt32(_) => code::UINT32,
            Cell::Float64(_) => code::FLOAT64,
            Cell::Utf8(_) => code::UTF8,
            Cell::Binary(_) => code::BINARY,
        }
    }

    fn write(self, row: &mut Vec<u8>) {
        match self {
            // Said by the code.
            Cell::Bool(_) => {}
            Cell::Int32(value) => row.extend_from_slice(&value.to_le_bytes()),
            Cell::UInt32(value) => row.extend_from_slice(&value.to_le_bytes()),
            Cell::Float64(value) => row.extend_from_slice(&value.to_le_bytes()),
            Cell::Utf8(value) => write_prefixed(value.as_bytes(), row),
            Cell::Binary(value) => write_prefixed(value, row),
        }
    }
}

fn write_prefixed(bytes: &[u8], row: &mut Vec<u8>) {
    cursor::write_varuint(bytes.len() as u64, row);
    row.extend_from_slice(bytes);
}
