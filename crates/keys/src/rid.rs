//! Resource ids: the short binary names that the service gives every resource.
//!
//! A rid begins with its parent's rid, so it tells the whole path. Its text form is base64 with `-` for `/`.
//! Layouts (bytes): database 4; container 8 (second half has the high bit set); user 8 (high bit clear); document and
//! everything else below a container 16 (8-byte little-endian ordinal, type in the top four bits); permission 16;
//! client encryption key 16; offer 3, or 6 once 24 bits are used up.
//! Invariants
//! - Numbers are never reused and never zero, so neither are rids.
//! - The parts of a rid decode to the numbers that made it.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use std::sync::LazyLock;

/// Longest rid in bytes (an attachment's).
pub const RID_LENGTH_MAX: usize = 20;

/// Bytes of the longest text form.
const TEXT_LENGTH_MAX: usize = RID_LENGTH_MAX.div_ceil(3) * 4;
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

/// Reads text forms. They are written by `encode`, since every document that is given has four of them, and the general encoder takes
/// four times as long for so few bytes.
static BASE64: LazyLock<GeneralPurpose> = LazyLock::new(|| {
    let characters = std::str::from_utf8(CHARACTERS).expect("ASCII");
    let alphabet = Alphabet::new(characters).expect("sixty-four different characters");
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
    GeneralPurpose::new(&alphabet, config)
});

/// What lives below a container, as the top four bits of its ordinal say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildType {
    /// A document.
    Document,
    /// A conflict.
    Conflict,
    /// A partition key range.
    KeyRange,
    /// A user-defined function.
    UserDefinedFunction,
    /// A trigger.
    Trigger,
    /// A stored procedure.
    StoredProcedure,
}

impl ChildType {
    const ALL: [ChildType; 6] = [
        ChildType::Document,
        ChildType::Conflict,
        ChildType::KeyRange,
        ChildType::UserDefinedFunction,
        ChildType::Trigger,
        ChildType::StoredProcedure,
    ];

    fn nibble(self) -> u64 {
        match self {
            ChildType::Document => 0,
            ChildType::Conflict => 4,
            ChildType::KeyRange => 5,
            ChildType::UserDefinedFunction => 6,
            ChildType::Trigger => 7,
            ChildType::StoredProcedure => 8,
        }
    }
}

/// A resource id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid {
    bytes: [u8; RID_LENGTH_MAX],
    length: u8,
}

impl Rid {
    /// The parent of databases and offers.
    pub const ROOT: Rid = Rid { bytes: [0; RID_LENGTH_MAX], length: 0 };

    fn from_parts(parts: &[&[u8]]) -> Rid {
        let mut rid = Rid::ROOT;
        for part in parts {
            let start = usize::from(rid.length);
            rid.bytes[start..start + part.len()].copy_from_slice(part);
            rid.length += part.len() as u8;
        }
        rid
    }

    /// A database, from its number.
    pub fn database(number: u32) -> Rid {
        Rid::from_parts(&[&number.to_le_bytes()])
    }

    /// A container of a database; 31 bits of number.
    pub fn container(database: Rid, number: u32) -> Rid {
        Rid::from_parts(&[database.as_bytes(), &(number | 0x8000_0000).to_be_bytes()])
    }

    /// A user of a database; 31 bits of number.
    pub fn user(database: Rid, number: u32) -> Rid {
        Rid::from_parts(&[database.as_bytes(), &(number & 0x7FFF_FFFF).to_be_bytes()])
    }

    /// A client encryption key of a database.
    pub fn client_encryption_key(database: Rid, number: u32) -> Rid {
        Rid::from_parts(&[database.as_bytes(), &[0; 4], &number.to_le_bytes(), &2_u32.to_le_bytes()])
    }

    /// A permission of a user.
    pub fn permission(user: Rid, number: u64) -> Rid {
        Rid::from_parts(&[user.as_bytes(), &number.to_le_bytes()])
    }

    /// Something below a container; 60 bits of number.
    pub fn child(container: Rid, child: ChildType, number: u64) -> Rid {
        let ordinal = (number & 0x0FFF_FFFF_FFFF_FFFF) | (child.nibble() << 60);
        Rid::from_parts(&[container.as_bytes(), &ordinal.to_le_bytes()])
    }

    /// An offer; 48 bits of number.
    pub fn offer(number: u64) -> Rid {
        let bytes = number.to_be_bytes();
        if number >> 24 == 0 { Rid::from_parts(&[&bytes[5..]]) } else { Rid::from_parts(&[&bytes[2..]]) }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// From bytes, of any length up to the longest rid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Rid> {
        (bytes.len() <= RID_LENGTH_MAX).then(|| Rid::from_parts(&[bytes]))
    }

    /// From the text form, canonical base64 only.
    pub fn parse(text: &str) -> Option<Rid> {
        if text.len() > TEXT_LENGTH_MAX {
            return None;
        }
        let mut bytes = [0; 24];
        let length = BASE64.decode_slice(text, &mut bytes).ok()?;
        Rid::from_bytes(&bytes[..length])
    }

    /// The rid of the database that this one is in or is.
    pub fn database_part(&self) -> Option<Rid> {
        (self.length >= 4).then(|| Rid::from_parts(&[&self.bytes[..4]]))
    }

    /// The rid of the container or user that this one is in or is.
    pub fn container_part(&self) -> Option<Rid> {
        (self.length >= 8).then(|| Rid::from_parts(&[&self.bytes[..8]]))
    }

    /// Whether these eight bytes name a container and not a user.
    pub fn is_container(&self) -> bool {
        self.length == 8 && self.bytes[4] & 0x80 != 0
    }

    /// The number of the last part, without the bits that tell the type.
    pub fn number(&self) -> u64 {
        let bytes = self.as_bytes();
        match bytes.len() {
            4 => u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            8 => u64::from(u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) & 0x7FFF_FFFF),
            16 if bytes[4..8] == [0; 4] => {
                u64::from(u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]))
            }
            16 => self.ordinal() & 0x0FFF_FFFF_FFFF_FFFF,
            _ => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        }
    }

    /// The type of something below a container.
    pub fn child_type(&self) -> Option<ChildType> {
        let nibble = (self.length == 16 && self.bytes[4] & 0x80 != 0).then(|| self.ordinal() >> 60)?;
        ChildType::ALL.into_iter().find(|child| child.nibble() == nibble)
    }

    fn ordinal(&self) -> u64 {
        let mut ordinal = [0; 8];
        ordinal.copy_from_slice(&self.bytes[8..16]);
        u64::from_le_bytes(ordinal)
    }

    /// Appends the text form.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        let (text, length) = encode(self.as_bytes());
        out.extend_from_slice(&text[..length]);
    }
}

/// The text form of bytes, padded with `=` to whole groups of four, and its length.
fn encode(bytes: &[u8]) -> ([u8; TEXT_LENGTH_MAX], usize) {
    let mut text = [b'='; TEXT_LENGTH_MAX];
    let character = |group: u32, place: u32| CHARACTERS[(group >> (18 - 6 * place)) as usize & 0x3F];
    let mut length = 0;
    let (groups, rest) = bytes.as_chunks::<3>();
    for ([first, second, third], out) in groups.iter().zip(text.as_chunks_mut::<4>().0) {
        let group = u32::from(*first) << 16 | u32::from(*second) << 8 | u32::from(*third);
        *out = [0, 1, 2, 3].map(|place| character(group, place));
        length += 4;
    }
    if let [first, second @ ..] = rest {
        let second = second.first().copied();
        let group = u32::from(*first) << 16 | u32::from(second.unwrap_or(0)) << 8;
        for place in 0..=1 + u32::from(second.is_some()) {
            text[length + place as usize] = character(group, place);
        }
        length += 4;
    }
    (text, length)
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, length) = encode(self.as_bytes());
        f.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE: u32 = 0x0033_1B7A;
    const CONTAINER: u32 = 0x3C51_4600;

    /// The worked example of the protocol reference, section 4.1.
    #[test]
    fn rids_look_as_the_service_writes_them() {
        let database = Rid::database(DATABASE);
        let container = Rid::container(database, CONTAINER);
        let user = Rid::user(database, CONTAINER);
        let check = |rid: Rid, text: &str| {
            assert_eq!(rid.to_string(), text);
            assert_eq!(Rid::parse(text), Some(rid));
            let mut bytes = b"x".to_vec();
            rid.push_text(&mut bytes);
            assert_eq!(bytes[1..], *text.as_bytes());
        };
        check(database, "ehszAA==");
        check(container, "ehszALxRRgA=");
        check(user, "ehszADxRRgA=");
        check(Rid::child(container, ChildType::Document, 2), "ehszALxRRgACAAAAAAAAAA==");
        check(Rid::child(container, ChildType::StoredProcedure, 2), "ehszALxRRgACAAAAAAAAgA==");
        check(Rid::child(container, ChildType::Trigger, 2), "ehszALxRRgACAAAAAAAAcA==");
        check(Rid::child(container, ChildType::UserDefinedFunction, 2), "ehszALxRRgACAAAAAAAAYA==");
        check(Rid::child(container, ChildType::Conflict, 2), "ehszALxRRgACAAAAAAAAQA==");
        check(Rid::child(container, ChildType::KeyRange, 2), "ehszALxRRgACAAAAAAAAUA==");
        check(Rid::permission(user, 2), "ehszADxRRgACAAAAAAAAAA==");
        check(Rid::client_encryption_key(database, 1), "ehszAAAAAAABAAAAAgAAAA==");
        check(Rid::offer(0x00B9_3D8B), "uT2L");
    }

    #[test]
    fn parts_lead_back_to_what_made_them() {
        let database = Rid::database(7);
        let container = Rid::container(database, 9);
        let document = Rid::child(container, ChildType::Document, 1 << 50);
        assert_eq!(document.database_part(), Some(database));
        assert_eq!(document.container_part(), Some(container));
        assert_eq!(document.child_type(), Some(ChildType::Document));
        assert_eq!((database.number(), container.number(), document.number()), (7, 9, 1 << 50));
        assert_eq!(Rid::client_encryption_key(database, 5).number(), 5);
        assert_eq!((Rid::offer(1).number(), Rid::offer(1 << 30).number()), (1, 1 << 30));
        assert!(container.is_container() && !Rid::user(database, 9).is_container());
    }

    #[test]
    fn every_length_is_written_as_the_general_encoder_writes_it() {
        for length in 0..=RID_LENGTH_MAX {
            for seed in 0..50_u32 {
                let byte =
                    |place: u32| (seed.wrapping_mul(2_654_435_761).wrapping_add(place * 97) >> 11) as u8;
                let bytes: Vec<u8> = (0..length as u32).map(byte).collect();
                let rid = Rid::from_bytes(&bytes).unwrap();
                assert_eq!(rid.to_string(), BASE64.encode(&bytes));
                assert_eq!(Rid::parse(&rid.to_string()), Some(rid));
            }
        }
    }

    #[test]
    fn foreign_text_is_no_rid() {
        for text in ["a", "====", "ehszAA=", "ehsz/A==", "ehszAB==", "é", &"A".repeat(40)] {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
    }
}
