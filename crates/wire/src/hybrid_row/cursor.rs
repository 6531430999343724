//! Reading the primitive parts of rows from bytes, with the place of a fault. Nothing is copied.

use super::RowError;

/// Bytes and how far they have been read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteCursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> ByteCursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// An error about what was read last or would come next.
    pub(super) fn error(&self, what: &'static str) -> RowError {
        RowError { what, offset: self.offset }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.offset == self.bytes.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], RowError> {
        let end = self.offset.checked_add(count);
        let bytes = end
            .and_then(|end| self.bytes.get(self.offset..end))
            .ok_or_else(|| self.error("the bytes end too early"))?;
        self.offset += count;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RowError> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("as many bytes as were taken"))
    }

    pub(super) fn byte(&mut self) -> Result<u8, RowError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn int32(&mut self) -> Result<i32, RowError> {
        self.array().map(i32::from_le_bytes)
    }

    /// A length or token of seven bits to a byte.
    pub(super) fn varuint(&mut self) -> Result<u64, RowError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number has too many bytes"))
    }

    /// Bytes after their length.
    pub(super) fn prefixed(&mut self) -> Result<&'a [u8], RowError> {
        let length = self.varuint()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The version and schema with which every row begins.
    pub(super) fn header(&mut self) -> Result<i32, RowError> {
        if self.byte()? != super::FIRST_BYTE {
            return Err(self.error("not a row of version 1"));
        }
        self.int32()
    }
}

/// Appends a length or token.
pub(super) fn write_varuint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        let check = |bytes: &[u8], expected: Option<u64>| {
            assert_eq!(ByteCursor::new(bytes).varuint().ok(), expected, "{bytes:02x?}");
        };
        check(&[0x00], Some(0));
        check(&[0x7F], Some(127));
        check(&[0x80, 0x01], Some(128));
        check(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], Some(u64::MAX));
        check(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], None);
        check(&[0x80; 20], None);
        check(&[0x80], None);
        check(&[], None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(number in any::<u64>(), bits in 0..64_u32) {
            let number = number >> bits;
            let mut bytes = Vec::new();
            write_varuint(number, &mut bytes);
            let mut cursor = ByteCursor::new(&bytes);
            prop_assert_eq!(cursor.varuint(), Ok(number));
            prop_assert!(cursor.is_at_end());
        }
    }
}
