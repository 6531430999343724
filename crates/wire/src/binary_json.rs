//! Reads the binary form of JSON that some SDKs send instead of text: a first byte of 80, then one value.
//!
//! In: the body. Out: the same value as JSON text, which then goes the way of every other body. All integers are
//! little-endian; every value begins with a marker byte, and the markers below are all there are.
//! Invariants
//! - Total and bounded: lengths are checked against what is there, depth is at most 128, a text reference points
//!   backwards at a text that is no reference, and the output is at most [`OUTPUT_BYTES_MAX`] long.
//!
//! Not here: writing the form (clients read text answers), texts of a user dictionary (nobody sends one).

mod compressed;

use astrarium_value::json;

/// The first byte of a body in this form.
pub const FIRST_BYTE: u8 = 0x80;
/// Longest text that a body may become.
pub const OUTPUT_BYTES_MAX: usize = 8 << 20;
const DEPTH_MAX: usize = 128;

/// The body is not in the form, or not what it claims to be. The client's fault: 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the binary JSON of the request is invalid at byte {offset}")]
pub struct BinaryJsonError {
    /// Where reading stopped.
    pub offset: usize,
}

/// Texts that have a marker of their own, from 20 on.
const SYSTEM_TEXTS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

/// The JSON text of a body.
pub fn to_text(body: &[u8]) -> Result<Vec<u8>, BinaryJsonError> {
    let mut reader = BinaryReader { body, offset: 0, text: Vec::with_capacity(body.len() * 2) };
    let read = reader.document();
    match read {
        Some(()) => Ok(reader.text),
        None => Err(BinaryJsonError { offset: reader.offset.min(body.len()) }),
    }
}

struct BinaryReader<'a> {
    body: &'a [u8],
    offset: usize,
    text: Vec<u8>,
}

impl<'a> BinaryReader<'a> {
    fn document(&mut self) -> Option<()> {
        (self.byte()? == FIRST_BYTE).then_some(())?;
        self.value(0)?;
        (self.offset == self.body.len() && self.text.len() <= OUTPUT_BYTES_MAX).then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.body.get(self.offset)?;
        self.offset += 1;
        Some(byte)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.body.get(self.offset..self.offset.checked_add(count)?)?;
        self.offset += count;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    /// An unsigned integer of one, two, three or four bytes.
    fn unsigned(&mut self, width: usize) -> Option<usize> {
        let bytes = self.bytes(width)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        (depth <= DEPTH_MAX && self.text.len() <= OUTPUT_BYTES_MAX).then_some(())?;
        let marker = *self.body.get(self.offset)?;
        match marker {
            0xD0..=0xD2 => self.literal(),
            0x00..=0x1F | 0xC7..=0xCF | 0xD7..=0xDC => self.number(),
            0xE0..=0xE7 => self.list(depth),
            0xE8..=0xEF => self.object(depth),
            0xF0..=0xF3 => self.number_list(depth),
            _ => {
                let text = self.string(true)?;
                json::write_string(&text, &mut self.text);
                Some(())
            }
        }
    }

    fn literal(&mut self) -> Option<()> {
        let text: &[u8] = match self.byte()? {
            0xD0 => b"null",
            0xD1 => b"false",
            0xD2 => b"true",
            _ => return None,
        };
        self.text.extend_from_slice(text);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let marker = self.byte()?;
        self.number_of(marker)
    }

    /// The number that a marker announces, without the marker.
    fn number_of(&mut self, marker: u8) -> Option<()> {
        let integer: i128 = match marker {
            0x00..=0x1F => marker.into(),
            0xC8 | 0xD7 => self.byte()?.into(),
            0xD8 => i8::from_le_bytes(self.array()?).into(),
            0xC9 | 0xD9 => i16::from_le_bytes(self.array()?).into(),
            0xCA | 0xDA => i32::from_le_bytes(self.array()?).into(),
            0xCB | 0xDB => i64::from_le_bytes(self.array()?).into(),
            0xC7 => u64::from_le_bytes(self.array()?).into(),
            0xDC => u32::from_le_bytes(self.array()?).into(),
            0xCC | 0xCE => {
                let number = f64::from_le_bytes(self.array()?);
                return self.double(number);
            }
            0xCD => {
                let number = f32::from_le_bytes(self.array()?);
                return self.double(number.into());
            }
            _ => return None,
        };
        self.text.extend_from_slice(integer.to_string().as_bytes());
        Some(())
    }

    fn double(&mut self, number: f64) -> Option<()> {
        number.is_finite().then_some(())?;
        json::write_number(number, &mut self.text);
        Some(())
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        let end = self.content_end(0xE0)?;
        self.text.push(b'[');
        let mut first = true;
        while self.goes_on(end, &mut first)? {
            self.value(depth + 1)?;
        }
        self.text.push(b']');
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let end = self.content_end(0xE8)?;
        self.text.push(b'{');
        let mut first = true;
        while self.goes_on(end, &mut first)? {
            let name = self.string(true)?;
            json::write_string(&name, &mut self.text);
            self.text.push(b':');
            self.value(depth + 1)?;
        }
        self.text.push(b'}');
        Some(())
    }

    /// Whether another item follows, with the comma before it. An item that reaches beyond the content is an error.
    fn goes_on(&mut self, end: ContentEnd, first: &mut bool) -> Option<bool> {
        let more = match end {
            ContentEnd::None => false,
            ContentEnd::One => *first,
            ContentEnd::Until(end) => {
                (self.offset <= end).then_some(())?;
                self.offset < end
            }
        };
        if more && !std::mem::take(first) {
            self.text.push(b',');
        }
        Some(more)
    }

    /// Reads the marker of a list or object: empty, of one, with a byte length, with a byte length and a count.
    fn content_end(&mut self, empty: u8) -> Option<ContentEnd> {
        let form = self.byte()?.checked_sub(empty)?;
        let width = match form {
            0 => return Some(ContentEnd::None),
            1 => return Some(ContentEnd::One),
            2 | 5 => 1,
            3 | 6 => 2,
            4 | 7 => 4,
            _ => return None,
        };
        let length = self.unsigned(width)?;
        if form >= 5 {
            self.unsigned(width)?;
        }
        let end = self.offset.checked_add(length)?;
        (end <= self.body.len()).then_some(ContentEnd::Until(end))
    }

    /// A list of numbers of one kind: the kind's marker, a count, then the numbers; or such lists one after another.
    fn number_list(&mut self, depth: usize) -> Option<()> {
        let marker = self.byte()?;
        let width = if marker & 1 == 0 { 1 } else { 2 };
        let kind = self.byte()?;
        if marker <= 0xF1 {
            let count = self.unsigned(width)?;
            return self.numbers(kind, count);
        }
        // A list of lists: `kind` is the marker of the inner lists.
        (depth < DEPTH_MAX && matches!(kind, 0xF0 | 0xF1)).then_some(())?;
        let item = self.byte()?;
        let inner_count = self.unsigned(width)?;
        let outer_count = self.unsigned(width)?;
        self.text.push(b'[');
        for index in 0..outer_count {
            if index > 0 {
                self.text.push(b',');
            }
            self.numbers(item, inner_count)?;
        }
        self.text.push(b']');
        Some(())
    }

    fn numbers(&mut self, kind: u8, count: usize) -> Option<()> {
        (kind > 0x1F).then_some(())?;
        self.text.push(b'[');
        for index in 0..count {
            (self.text.len() <= OUTPUT_BYTES_MAX).then_some(())?;
            if index > 0 {
                self.text.push(b',');
            }
            self.number_of(kind)?;
        }
        self.text.push(b']');
        Some(())
    }

    /// A text; a reference to an earlier one only where `may_refer`, so that references do not chain.
    fn string(&mut self, may_refer: bool) -> Option<std::borrow::Cow<'a, str>> {
        let marker = self.byte()?;
        let length = match marker {
            0x20..=0x3F => return SYSTEM_TEXTS.get(usize::from(marker - 0x20)).map(|text| (*text).into()),
            0x80..=0xBF => usize::from(marker & 0x3F),
            0xC0 => self.unsigned(1)?,
            0xC1 => self.unsigned(2)?,
            0xC2 => self.unsigned(4)?,
            0xC3..=0xC6 if may_refer => return self.referred(usize::from(marker - 0xC2)),
            0x75..=0x77 => return self.guid(marker),
            0x78..=0x7F => return self.compressed(marker),
            _ => return None,
        };
        std::str::from_utf8(self.bytes(length)?).ok().map(Into::into)
    }

    fn referred(&mut self, width: usize) -> Option<std::borrow::Cow<'a, str>> {
        let target = self.unsigned(width)?;
        let back = self.offset;
        (target < back).then_some(())?;
        self.offset = target;
        let text = self.string(false);
        self.offset = back;
        text
    }

    fn compressed(&mut self, marker: u8) -> Option<std::borrow::Cow<'a, str>> {
        let (text, taken) = compressed::read(marker, self.body.get(self.offset..)?)?;
        self.offset += taken;
        Some(text.into())
    }

    /// Sixteen bytes written as a GUID: low half of each byte first, in lower case, upper case, or with quotes.
    fn guid(&mut self, marker: u8) -> Option<std::borrow::Cow<'a, str>> {
        let bytes = self.bytes(16)?;
        let mut text = String::with_capacity(38);
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte & 0x0F, byte >> 4] {
                text.push(char::from_digit(digit.into(), 16)?);
            }
        }
        Some(match marker {
            0x76 => text.to_ascii_uppercase().into(),
            0x77 => format!("\"{text}\"").into(),
            _ => text.into(),
        })
    }
}

/// Where the content of a list or object ends.
#[derive(Clone, Copy)]
enum ContentEnd {
    None,
    One,
    Until(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(body: &[u8], text: &str) {
        let read = to_text(body).map(|bytes| String::from_utf8(bytes).expect("JSON is UTF-8"));
        assert_eq!(read.as_deref(), Ok(text), "{body:02x?}");
    }

    #[test]
    fn what_the_rust_sdk_writes() {
        check(b"\x80\xD0", "null");
        check(b"\x80\x1F", "31");
        check(b"\x80\xCB\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-1");
        check(b"\x80\xCC\x00\x00\x00\x00\x00\x00\xF8\x3F", "1.5");
        check(b"\x80\x83a\"b", "\"a\\\"b\"");
        check(b"\x80\xC0\x02\xC3\xA9", "\"é\"");
        check(b"\x80\xE5\x02\x02\xD1\xD2", "[false,true]");
        check(b"\x80\xED\x0B\x02\x82id\x811\x82pk\x82ab", "{\"id\":\"1\",\"pk\":\"ab\"}");
        check(b"\x80\xE6\x00\x00\x00\x00", "[]");
    }

    #[test]
    fn what_others_may_write() {
        check(b"\x80\xE0", "[]");
        check(b"\x80\xE8", "{}");
        check(b"\x80\xE1\x05", "[5]");
        check(b"\x80\xE9\x2C\x811", "{\"id\":\"1\"}");
        check(b"\x80\xE2\x03\x82ab", "[\"ab\"]");
        check(b"\x80\xE2\x05\x82ab\xC3\x03", "[\"ab\",\"ab\"]");
        check(b"\x80\xF0\xD7\x03\x01\x02\x03", "[1,2,3]");
        check(b"\x80\xC8\xFF", "255");
        check(b"\x80\xC9\xFE\xFF", "-2");
        check(
            b"\x80\x75\x21\x43\x65\x87\x09\xBA\xDC\xFE\x00\x11\x22\x33\x44\x55\x66\x77",
            "\"12345678-90ab-cdef-0011-223344556677\"",
        );
    }

    /// The examples of the .NET SDK's own tests.
    #[test]
    fn compressed_texts_of_the_dotnet_sdk() {
        check(b"\x80\x7A\x13\x13\x62\x1C\xC7\x14\x30\xB4\x65\x2B\x04", "\"2015-06-30 23:45:13\"");
        check(
            b"\x80\x7A\x21\x13\x52\x2C\xC1\x92\x2E\xB5\x92\x2B\xD8\x46\x84\x4A\xC3\x81\x1B\x01",
            "\"2014-10-18T14:18:17.5337932-07:00\"",
        );
        check(b"\x80\x7A\x10\x21\x43\x65\x87\xA9\xDB\xEC\x0F", "\"0123456789:.-TZ \"");
        check(b"\x80\x78\x10\xCE\xAC\x3B\x09\xD0\x55\x9B\x64", "\"eccab3900d55b946\"");
        check(b"\x80\x79\x10\xCE\xAC\x3B\x09\xD0\x55\x9B\x64", "\"ECCAB3900D55B946\"");
        let pairs = [&b"\x80\x7B\x21\x61"[..], &[0x10; 16], &[0xF6]].concat();
        check(&pairs, "\"ababababababababababababababababg\"");
        check(
            b"\x80\x7C\x24\x61\xF3\x10\x48\x91\x50\x21\x3A\xDB\x8A\xBB\x89\xB2\x47\x86\xAB\x24\xCE\x43\x16\xC8\x78\x38\xF3",
            "\"thequickbrownfoxjumpedoverthelazydog\"",
        );
        check(
            b"\x80\x7D\x48\x41\xF3\x49\xC2\x34\x2A\xAA\x61\xEC\xDA\x6D\xE9\xDE\x29\xCD\xBE\xE4\xE8\xD6\x64\x3C\x9F\xE4\
              \x0A\xE6\xF8\xE8\x9A\xD3\x41\x40\x14\x22\x28\x41\xE4\x58\x4D\xE1\x5C\x09\xC5\x3C\xC4\xE0\x54\x44\x34\x1D\xC4\
              \x02\x64\xD8\xE0\x18",
            "\"thequickbrownfoxjumpedoverthelazydogTHEQUICKBROWNFOXJUMPEDOVERTHELAZYDOG\"",
        );
        let seven = b"\x74\x74\x39\x5E\x4F\x8F\xD7\x62\xF9\xFB\xEE\x36\xBF\xF1\xEA\x7A\x1B\x5E\x26\xBF\xED\x65\x39\x1D\x5D\x66\x87\xF5\
            \x79\xF2\xFB\x4C\x45\x16\xA3\xD5\xE4\x70\x29\x94\x3E\xAF\x4E\xE3\x13\xAB\xAC\x36\xA1\x45\xE2\xD3\x5A\x94\x52\x91\x45\x66\
            \x50\x9B\x25\x3E\x8F\xB0\x98\x6C\x46\xAB\xD9\x6E\xB8\x5C\x08\x38\x22\x95\xBC\x26\x15";
        let text =
            "\"thequickbrownfoxjumpedoverthelazydogTHEQUICKBROWNFOXJUMPEDOVERTHELAZYDOG0123456789!@#$%^&*\"";
        check(&[&b"\x80\x7E\x5A"[..], seven].concat(), text);
        check(&[&b"\x80\x7F\x5A\x00"[..], seven].concat(), text);
        // As the name of a member, and as what a reference points at.
        check(
            b"\x80\xEA\x0F\x78\x10\xCE\xAC\x3B\x09\xD0\x55\x9B\x64\x01\x811\xC3\x03",
            "{\"eccab3900d55b946\":1,\"1\":\"eccab3900d55b946\"}",
        );
    }

    #[test]
    fn damaged_bodies_are_refused() {
        let deep = [&[0x80][..], &[0xE1; 200], &[0x01]].concat();
        let bodies: [&[u8]; 13] = [
            b"\x80\x78",
            b"\x80\x7A\x13\x13\x62",
            b"\x80\x7F\x01",
            b"\x80\x7B\x02\x7F\x11",
            b"",
            b"\x80",
            b"{}",
            b"\x80\xC0\x05ab",
            b"\x80\xE5\x09\x01\x01",
            b"\x80\x82ab\x01",
            b"\x80\x81\xFF",
            b"\x80\xC3\x01",
            &deep,
        ];
        for body in bodies {
            assert!(to_text(body).is_err(), "{body:02x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_json_or_an_error(mut body in prop::collection::vec(any::<u8>(), 0..200)) {
            body.insert(0, FIRST_BYTE);
            if let Ok(text) = to_text(&body) {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok() || text.contains(&b'e'));
            }
        }
    }
}
