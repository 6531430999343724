//! Which data folder a file belongs to.
//!
//! In: nothing, once for each folder, when it is made. Out: sixteen bytes that no other folder has. They stand in the list of
//! files, in the acknowledged mark, in every commit group, in every keyspace and in the list of runs, so that a file or a
//! folder that was put in from elsewhere is noticed, however much it looks like the right one.

use std::hash::{BuildHasher, RandomState};

/// A folder's own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FolderIdentity(pub(crate) [u8; FolderIdentity::BYTES]);

impl FolderIdentity {
    pub(crate) const BYTES: usize = 16;

    /// One that nobody has.
    pub(crate) fn new() -> FolderIdentity {
        // The seeds of the library's hasher come from the system's randomness.
        let halves = [0, 1].map(|half: u64| RandomState::new().hash_one((half, std::process::id())));
        let mut bytes = [0; FolderIdentity::BYTES];
        bytes[..8].copy_from_slice(&halves[0].to_be_bytes());
        bytes[8..].copy_from_slice(&halves[1].to_be_bytes());
        FolderIdentity(bytes)
    }

    /// Of 32 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<FolderIdentity> {
        let number = u128::from_str_radix(text, 16).ok()?;
        (text.len() == 2 * FolderIdentity::BYTES).then(|| FolderIdentity(number.to_be_bytes()))
    }
}

impl std::fmt::Display for FolderIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_and_round_trip() {
        let one = FolderIdentity::new();
        assert_ne!(one, FolderIdentity::new());
        assert_eq!(FolderIdentity::parse(&one.to_string()), Some(one));
        assert_eq!(FolderIdentity::parse("12"), None);
        assert_eq!(FolderIdentity::parse(&"x".repeat(32)), None);
    }
}
