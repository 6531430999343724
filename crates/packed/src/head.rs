//! The prefix of a key as numbers: comparing two of them is a few instructions, where comparing keys is a call.
//!
//! In: a key. Out: its first bytes, as many as there are in two families. Keys are in the order of their starts, and those
//! with equal starts in the order of their bytes.

use crate::FAMILY_BYTES;

/// The first bytes of a key, the highest first, padded with zeros.
pub(crate) type KeyHead = [u128; 2];

#[inline]
pub(crate) fn head_of(key: &[u8]) -> KeyHead {
    if let [first, second, ..] = key.as_chunks::<FAMILY_BYTES>().0 {
        return [u128::from_be_bytes(*first), u128::from_be_bytes(*second)];
    }
    let mut padded = [0; 2 * FAMILY_BYTES];
    padded[..key.len()].copy_from_slice(key);
    let (halves, _) = padded.as_chunks::<FAMILY_BYTES>();
    [u128::from_be_bytes(halves[0]), u128::from_be_bytes(halves[1])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn starts_order_as_keys_do(left in vec(0..2u8, 0..40), right in vec(0..2u8, 0..40)) {
            let order = head_of(&left).cmp(&head_of(&right));
            prop_assert_eq!(order.then_with(|| left.cmp(&right)), left.cmp(&right));
        }
    }
}
