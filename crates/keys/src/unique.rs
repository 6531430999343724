//! Unique keys in space `Log`: which document of a logical partition holds a combination of values.
//!
//! `03 | shard (8) | place in the policy (1) | partition | values` -> the document's number (8)
//! The partition is that part of a document's key; values are in their order (`ordered`), undefined as null. What would be
//! longer than `VALUES_BYTES_MAX` is its beginning and its SHA-256, so that no two combinations share a key.

use crate::{Malformed, ordered, tags};
use astrarium_value::Value;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Bytes of values that are kept as they are.
const VALUES_BYTES_MAX: usize = 256;

/// The key of a combination of values.
pub fn unique_key(shard: u64, place: u8, partition: &[u8], values: &[Value]) -> Bytes {
    let mut key = unique_prefix(shard).to_vec();
    key.push(place);
    key.extend_from_slice(partition);
    let start = key.len();
    for value in values {
        let value = if value.is_undefined() { &Value::Null } else { value };
        ordered::push_value(&mut key, value);
    }
    if key.len() - start > VALUES_BYTES_MAX {
        let digest = Sha256::digest(&key[start..]);
        key.truncate(start + VALUES_BYTES_MAX);
        // Follows a whole value nowhere else: values begin with their tags.
        key.push(0xFF);
        key.extend_from_slice(&digest);
    }
    key.into()
}

/// What all unique keys of a shard begin with.
pub fn unique_prefix(shard: u64) -> [u8; 9] {
    let mut prefix = [0; 9];
    prefix[0] = tags::log::UNIQUE;
    prefix[1..].copy_from_slice(&shard.to_be_bytes());
    prefix
}

/// The value of a unique key.
pub fn unique_value(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

/// The number in the value of a unique key.
pub fn read_unique_value(value: &[u8]) -> Result<u64, Malformed> {
    let bytes = value.try_into().map_err(|_| Malformed::new("unique key"))?;
    Ok(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_combinations_share_a_key() {
        let long = |end: &str| Value::from(format!("{}{end}", "x".repeat(1_000)).as_str());
        let combinations = [
            vec![Value::Null, Value::from("a")],
            vec![Value::from("a"), Value::Null],
            vec![Value::Number(1.0), Value::from("1")],
            vec![long("1"), Value::Null],
            vec![long("2"), Value::Null],
        ];
        let key = |values: &[Value]| unique_key(7, 1, b"partition", values);
        for (index, left) in combinations.iter().enumerate() {
            for (other, right) in combinations.iter().enumerate() {
                assert_eq!(key(left) == key(right), index == other, "{left:?} {right:?}");
            }
        }
        assert_eq!(key(&[Value::Undefined]), key(&[Value::Null]));
        assert_eq!(key(&[Value::Number(0.0)]), key(&[Value::Number(-0.0)]));
        assert_ne!(unique_key(7, 1, b"p", &[]), unique_key(7, 2, b"p", &[]));
        assert_eq!(read_unique_value(&unique_value(9)), Ok(9));
        assert!(key(&combinations[3]).len() < 400);
    }
}
