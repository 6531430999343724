//! Prefixes whose keys are dropped: a merge that writes a run leaves them out.
//!
//! In: prefixes, and keys as they rise. Out: whether a key is to be left out.
//! A group's block keeps such keys, and so do segments in memory: a crash brings back what the journal has, so a key is gone only
//! when it is in no run and the journal may forget its group.

use bytes::Bytes;

/// Prefixes in order, none within another, and how far the keys are among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DroppedPrefixes {
    prefixes: Vec<Bytes>,
    /// Prefixes before this one are behind the last key.
    next: usize,
}

impl DroppedPrefixes {
    pub(crate) fn new(prefixes: Vec<Bytes>) -> DroppedPrefixes {
        DroppedPrefixes { prefixes, next: 0 }
    }

    /// Whether a key is dropped. Keys must not go down from one call to the next.
    #[inline]
    pub(crate) fn covers(&mut self, key: &[u8]) -> bool {
        while let Some(prefix) = self.prefixes.get(self.next) {
            if key.starts_with(prefix) {
                return true;
            }
            if key < &prefix[..] {
                return false;
            }
            self.next += 1;
        }
        false
    }
}

/// The first key beyond those with a prefix; nothing if there is none.
pub(crate) fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while end.last() == Some(&0xFF) {
        end.pop();
    }
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rising_keys_meet_their_prefixes() {
        let mut dropped = DroppedPrefixes::new(["b", "dd", "x"].map(Bytes::from).to_vec());
        let keys = ["a", "b", "b1", "c", "d", "dd", "ddz", "de", "x", "y"];
        let covered: Vec<_> = keys.into_iter().filter(|key| dropped.covers(key.as_bytes())).collect();
        assert_eq!(covered, ["b", "b1", "dd", "ddz", "x"]);
        assert!(!dropped.covers(b"z"));
        assert_eq!(end_of(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(end_of(&[0xFF]), None);
    }
}
