//! The effective partition key: the bytes by which documents are placed, spelled in hexadecimal on the wire.
//!
//! In: a definition and a key. Out: `EffectiveKey`, whose order is the order of its upper-case text.
//! - `Hash` version 2: one 128-bit hash of all components; `MultiHash`: one such hash per component, one after the other.
//! - `Hash` version 1: a 32-bit hash as a number, then the components themselves, strings cut short.
//! - `Range`: the components themselves.
//!
//! Invariants
//! - A key without components has the smallest effective key, the empty one; every key is below `FF`.
//! - Clients compute the same bytes: nothing here may ever change.
//!
//! Not here: ranges and splits (`range`), the hash functions (`murmur`).

use std::fmt;

use crate::{Component, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind, murmur};

/// A place in the space of effective keys, from the empty key up to `FF`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectiveKey(Vec<u8>);

/// The text is no effective key. The fault of whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an effective partition key is an even number of hexadecimal digits")]
pub struct EffectiveKeyError;

/// What precedes each kind of component, in hash input and binary form alike.
mod marker {
    pub(super) const UNDEFINED: u8 = 0x00;
    pub(super) const NULL: u8 = 0x01;
    pub(super) const FALSE: u8 = 0x02;
    pub(super) const TRUE: u8 = 0x03;
    pub(super) const NUMBER: u8 = 0x05;
    pub(super) const STRING: u8 = 0x08;
}

/// Version 1 hashes and stores this many UTF-16 code units of a string.
const V1_STRING_UNITS_MAX: usize = 100;
/// The binary form of a string stops after this many bytes and then has no end mark.
const BINARY_STRING_BYTES_MAX: usize = 101;

impl EffectiveKey {
    /// The smallest place, where the first range of a container begins.
    pub const MIN: EffectiveKey = EffectiveKey(Vec::new());

    /// `FF`, above every key: where the last range of a container ends.
    pub fn max() -> Self {
        Self(vec![0xFF])
    }

    /// A place given by its bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Reads the hexadecimal form, digits of either case.
    pub fn parse(text: &str) -> Result<Self, EffectiveKeyError> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(EffectiveKeyError);
        }
        let byte = |[high, low]: &[u8; 2]| {
            let high = char::from(*high).to_digit(16)?;
            let low = char::from(*low).to_digit(16)?;
            Some((high * 16 + low) as u8)
        };
        pairs.iter().map(byte).collect::<Option<_>>().map(Self).ok_or(EffectiveKeyError)
    }

    /// The bytes, in the order of which keys compare.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The next place of the same length; none after the last.
    pub(crate) fn next_of_length(&self) -> Option<Self> {
        let mut bytes = self.0.clone();
        while let Some(last) = bytes.pop() {
            if last < 0xFF {
                bytes.push(last + 1);
                bytes.resize(self.0.len(), 0);
                return Some(Self(bytes));
            }
        }
        None
    }

    /// The exclusive end of all keys that begin with this one: `FF` appended.
    pub(crate) fn end_of_prefix(&self) -> Self {
        let mut bytes = self.0.clone();
        bytes.push(0xFF);
        Self(bytes)
    }
}

impl fmt::Display for EffectiveKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02X}"))
    }
}

impl fmt::Debug for EffectiveKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "EffectiveKey({self})")
    }
}

impl PartitionKeyDefinition {
    /// The place of a key. A prefix of a hierarchical key gives the prefix of its places
    /// (`EffectiveRange::of_prefix`); for the other kinds only a whole key means something.
    pub fn effective(&self, key: &PartitionKey) -> EffectiveKey {
        let components = key.components();
        if components.is_empty() {
            return EffectiveKey::MIN;
        }
        match (self.kind, self.hash_version()) {
            (PartitionKind::Range, _) => EffectiveKey(binary(components)),
            (PartitionKind::MultiHash, _) => {
                let parts = components.iter().flat_map(|component| hash_v2(std::slice::from_ref(component)));
                EffectiveKey(parts.collect())
            }
            (PartitionKind::Hash, HashVersion::V2) => EffectiveKey(hash_v2(components).to_vec()),
            (PartitionKind::Hash, HashVersion::V1) => hash_v1(components),
        }
    }
}

/// The 128-bit hash as a big-endian number below 2^126.
fn hash_v2(components: &[Component]) -> [u8; 16] {
    let (first, second) = murmur::hash_128(&hash_input(components, 0xFF), (0, 0));
    let hash = (u128::from(second) << 64) | u128::from(first);
    (hash & (u128::MAX >> 2)).to_be_bytes()
}

fn hash_v1(components: &[Component]) -> EffectiveKey {
    let cut: Vec<Component> = components
        .iter()
        .map(|component| match component {
            Component::String(text) => Component::String(cut_string(text)),
            other => other.clone(),
        })
        .collect();
    let mut bytes = v1_place(murmur::hash_32(&hash_input(&cut, 0x00)));
    bytes.extend(binary(&cut));
    EffectiveKey(bytes)
}

/// The bytes with which every key of this 32-bit hash begins.
pub(crate) fn v1_place(hash: u32) -> Vec<u8> {
    binary(&[Component::Number(hash.into())])
}

/// The hash at which a boundary between version 1 ranges lies; the inverse of `v1_place`.
pub(crate) fn v1_hash(place: &[u8]) -> Option<u32> {
    let (&[marker::NUMBER, first], groups) = place.split_first_chunk::<2>()? else {
        return None;
    };
    let mut ordered = u64::from(first) << 56;
    // Eight groups of seven bits complete the number; the first even byte is the last of them.
    for (index, group) in groups.iter().take(8).enumerate() {
        ordered |= u64::from(group >> 1) << (49 - 7 * index);
        if group & 1 == 0 {
            break;
        }
    }
    let number = f64::from_bits(ordered ^ (1 << 63));
    (number >= 0.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
}

/// Markers and values one after the other; `string_end` differs between the versions.
fn hash_input(components: &[Component], string_end: u8) -> Vec<u8> {
    let mut input = Vec::with_capacity(64);
    for component in components {
        input.push(marker_of(component));
        match component {
            Component::Number(number) => input.extend_from_slice(&number.to_le_bytes()),
            Component::String(text) => {
                input.extend_from_slice(text.as_bytes());
                input.push(string_end);
            }
            Component::Undefined | Component::Null | Component::Bool(_) => {}
        }
    }
    input
}

fn marker_of(component: &Component) -> u8 {
    match component {
        Component::Undefined => marker::UNDEFINED,
        Component::Null => marker::NULL,
        Component::Bool(false) => marker::FALSE,
        Component::Bool(true) => marker::TRUE,
        Component::Number(_) => marker::NUMBER,
        Component::String(_) => marker::STRING,
    }
}

/// The order-preserving form of the components.
fn binary(components: &[Component]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    for component in components {
        bytes.push(marker_of(component));
        match component {
            Component::Number(number) => push_number(*number, &mut bytes),
            Component::String(text) => push_string(text, &mut bytes),
            Component::Undefined | Component::Null | Component::Bool(_) => {}
        }
    }
    bytes
}

/// The ordered bits of the double: eight in the first byte, then seven per byte with the lowest bit telling whether
/// more follow. Zero bits at the end are left out, but one group is always written.
fn push_number(number: f64, bytes: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let bits = number.to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { bits.wrapping_neg() };
    bytes.push((ordered >> 56) as u8);
    let mut rest = ordered << 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            bytes.push(group & 0xFE);
            return;
        }
        bytes.push(group | 1);
    }
}

/// Every byte plus one, so that 00 can end the string; no UTF-8 byte is FF.
fn push_string(text: &str, bytes: &mut Vec<u8>) {
    bytes.extend(text.bytes().take(BINARY_STRING_BYTES_MAX).map(|byte| byte.saturating_add(1)));
    if text.len() < BINARY_STRING_BYTES_MAX {
        bytes.push(0x00);
    }
}

/// The first 100 UTF-16 code units. Where the cut halves a surrogate pair, clients' encoders write U+FFFD for the
/// half that remains, so we do as well.
fn cut_string(text: &str) -> Box<str> {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        let after = units + character.len_utf16();
        if after > V1_STRING_UNITS_MAX {
            let half = if units < V1_STRING_UNITS_MAX { "\u{FFFD}" } else { "" };
            return [&text[..at], half].concat().into();
        }
        units = after;
    }
    text.into()
}

#[cfg(test)]
mod tests;
