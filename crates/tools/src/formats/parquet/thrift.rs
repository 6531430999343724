//! As much of Thrift's compact form as Parquet's footer and page headers need to be looked at before anything is believed.
//!
//! In: bytes of a file. Out: fields one after another; whatever is not asked for is skipped. Nothing is allocated, depth is bounded, and each
//! step consumes bytes, so hostile input costs no more than its length.

/// How deep structures may be: page headers have two levels, footers a few more.
const DEPTH_MAX: usize = 16;

/// Why a structure cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThriftFault {
    /// The bytes end within it.
    Short,
    /// It is none.
    Bad,
}

/// The type of a field or an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThriftType {
    True,
    False,
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

/// Reads from the start of some bytes.
#[derive(Debug, Clone)]
pub(super) struct ThriftReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Numbers and booleans of a structure by the number of their field.
pub(super) type SmallFields = [Option<i64>; 9];

impl<'a> ThriftReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> ThriftReader<'a> {
        ThriftReader { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next field of a structure, none at its end; `last` is the number of the field before.
    pub(super) fn field(&mut self, last: &mut i64) -> Result<Option<(i64, ThriftType)>, ThriftFault> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let number = match i64::from(head >> 4) {
            0 => self.integer()?,
            step => last.wrapping_add(step),
        };
        *last = number;
        Ok(Some((number, type_of(head & 15)?)))
    }

    /// The numbers and booleans of a structure, everything else skipped.
    pub(super) fn small_fields(&mut self) -> Result<SmallFields, ThriftFault> {
        let (mut fields, mut last) = (SmallFields::default(), 0);
        while let Some((number, kind)) = self.field(&mut last)? {
            let value = match kind {
                ThriftType::True => Some(1),
                ThriftType::False => Some(0),
                ThriftType::Integer => Some(self.integer()?),
                other => {
                    self.skip(other)?;
                    None
                }
            };
            if let Some(field) = usize::try_from(number).ok().and_then(|number| fields.get_mut(number)) {
                *field = value;
            }
        }
        Ok(fields)
    }

    /// An integer of any width.
    pub(super) fn integer(&mut self) -> Result<i64, ThriftFault> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Bytes or a text.
    pub(super) fn binary(&mut self) -> Result<&'a [u8], ThriftFault> {
        let length = usize::try_from(self.varint()?).map_err(|_| ThriftFault::Bad)?;
        let end = self.at.checked_add(length).ok_or(ThriftFault::Bad)?;
        let bytes = self.bytes.get(self.at..end).ok_or(ThriftFault::Short)?;
        self.at = end;
        Ok(bytes)
    }

    /// The length of a list and the type of its elements.
    pub(super) fn list(&mut self) -> Result<(u64, ThriftType), ThriftFault> {
        let head = self.byte()?;
        let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((length, type_of(head & 15)?))
    }

    /// Passes over a field.
    pub(super) fn skip(&mut self, kind: ThriftType) -> Result<(), ThriftFault> {
        self.skip_within(kind, DEPTH_MAX)
    }

    fn skip_within(&mut self, kind: ThriftType, depth: usize) -> Result<(), ThriftFault> {
        let depth = depth.checked_sub(1).ok_or(ThriftFault::Bad)?;
        match kind {
            ThriftType::True | ThriftType::False => Ok(()),
            ThriftType::Byte => self.byte().map(|_| ()),
            ThriftType::Integer => self.varint().map(|_| ()),
            ThriftType::Double => self.advance(8),
            ThriftType::Binary => self.binary().map(|_| ()),
            ThriftType::List => {
                let (length, element) = self.list()?;
                (0..length).try_for_each(|_| self.skip_element(element, depth))
            }
            ThriftType::Map => {
                let length = self.varint()?;
                if length == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (type_of(kinds >> 4)?, type_of(kinds & 15)?);
                (0..length).try_for_each(|_| {
                    self.skip_element(key, depth)?;
                    self.skip_element(value, depth)
                })
            }
            ThriftType::Struct => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip_within(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    /// A boolean takes a byte in a list, and none as a field.
    fn skip_element(&mut self, kind: ThriftType, depth: usize) -> Result<(), ThriftFault> {
        match kind {
            ThriftType::True | ThriftType::False => self.advance(1),
            other => self.skip_within(other, depth),
        }
    }

    fn advance(&mut self, count: usize) -> Result<(), ThriftFault> {
        self.at =
            self.at.checked_add(count).filter(|end| *end <= self.bytes.len()).ok_or(ThriftFault::Short)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, ThriftFault> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftFault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    /// Seven bits a byte, lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, ThriftFault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftFault::Bad)
    }
}

fn type_of(code: u8) -> Result<ThriftType, ThriftFault> {
    Ok(match code {
        1 => ThriftType::True,
        2 => ThriftType::False,
        3 => ThriftType::Byte,
        4..=6 => ThriftType::Integer,
        7 => ThriftType::Double,
        8 => ThriftType::Binary,
        9 | 10 => ThriftType::List,
        11 => ThriftType::Map,
        12 => ThriftType::Struct,
        _ => return Err(ThriftFault::Bad),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_skipped() {
        // Field 1 is 7, field 2 a list of two booleans, field 3 a text, field 7 false.
        let bytes = [0x15, 14, 0x19, 0x21, 1, 2, 0x18, 2, b'h', b'i', 0x42, 0];
        let mut reader = ThriftReader::new(&bytes);
        let fields = reader.small_fields().unwrap();
        assert_eq!((fields[1], fields[2], fields[3], fields[7]), (Some(7), None, None, Some(0)));
        assert_eq!(reader.position(), bytes.len());
        for cut in 0..bytes.len() {
            assert_eq!(ThriftReader::new(&bytes[..cut]).small_fields(), Err(ThriftFault::Short), "{cut}");
        }
        let deep = vec![0x1c; 100];
        assert_eq!(ThriftReader::new(&deep).small_fields(), Err(ThriftFault::Bad));
        let long = [0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(ThriftReader::new(&long).small_fields(), Err(ThriftFault::Bad));
    }
}
