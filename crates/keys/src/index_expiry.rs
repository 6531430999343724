//! The family of the index that finds documents by the time at which they expire.
//!
//! Terms: `01 | second of expiry (8)` for a document with a lifetime of its own, `02 | _ts (8)` for one that lives as long as its
//! container's default says. So a change of the default moves no entry. A document that never expires has none.
//! Invariant: within each of the two, entries are in the order in which their documents expire.

use crate::index_entry::Family;

/// Describes the family.
const DESCRIPTION: &[u8] = &[5];
const OWN: u8 = 1;
const DEFAULT: u8 = 2;

/// What an entry says of when its document expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryTerm {
    /// At this second.
    At(u64),
    /// So long after this second as the container's default says.
    After(u64),
}

/// The family in a generation.
pub fn expiry_family(generation: u8) -> Family {
    Family::of(generation, DESCRIPTION)
}

impl ExpiryTerm {
    /// The term of a document, by its `_ts` and its own `ttl`; none if it never expires.
    pub fn of(timestamp: u64, ttl: Option<i32>) -> Option<ExpiryTerm> {
        match ttl.map(u64::try_from) {
            None => Some(ExpiryTerm::After(timestamp)),
            Some(Ok(seconds)) => Some(ExpiryTerm::At(timestamp.saturating_add(seconds))),
            Some(Err(_)) => None,
        }
    }

    /// The bytes in a key.
    pub fn encode(self) -> [u8; 9] {
        let (tag, second) = match self {
            ExpiryTerm::At(second) => (OWN, second),
            ExpiryTerm::After(second) => (DEFAULT, second),
        };
        let mut bytes = [tag; 9];
        bytes[1..].copy_from_slice(&second.to_be_bytes());
        bytes
    }

    /// Reads the bytes in a key.
    pub fn decode(bytes: &[u8]) -> Option<ExpiryTerm> {
        let (tag, second) = bytes.split_first()?;
        let second = u64::from_be_bytes(second.try_into().ok()?);
        match *tag {
            OWN => Some(ExpiryTerm::At(second)),
            DEFAULT => Some(ExpiryTerm::After(second)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_back_as_written() {
        for term in [ExpiryTerm::At(0), ExpiryTerm::At(u64::MAX), ExpiryTerm::After(1_700_000_000)] {
            assert_eq!(ExpiryTerm::decode(&term.encode()), Some(term));
        }
        for foreign in [&[][..], &[1], &[3, 0, 0, 0, 0, 0, 0, 0, 0], &[1; 10]] {
            assert_eq!(ExpiryTerm::decode(foreign), None);
        }
    }

    #[test]
    fn a_lifetime_makes_the_term() {
        for (ttl, term) in [
            (None, Some(ExpiryTerm::After(100))),
            (Some(7), Some(ExpiryTerm::At(107))),
            (Some(i32::MAX), Some(ExpiryTerm::At(2_147_483_747))),
            (Some(-1), None),
        ] {
            assert_eq!(ExpiryTerm::of(100, ttl), term);
        }
    }
}
