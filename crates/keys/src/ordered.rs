//! Bytes that order like what they stand for: values, text and integers as parts of keys.
//!
//! In: `Value`, text, `u64`. Out: bytes appended to a key under construction, and back again from a key.
//! Layout
//! - A value is its tag, in the order of types, then: nothing (undefined, null, false, true); the number's ordered bits;
//!   the text; the elements and 00; for objects, for each member by name 01, the name as text, the value, then 00.
//! - Text is UTF-8 ended by 00, with 00 written 01 01 and 01 written 01 02, and the lead bytes EE and EF written F5 and
//!   F6, which puts U+E000..U+FFFF after the supplementary characters: the order of UTF-16 code units.
//! - Numbers are their IEEE bits, all inverted if negative, else the sign bit flipped; -0 as 0, all NaN as one, below.
//!
//! Invariants
//! - Bytes compare like the values (`Value`'s order); equal values give equal bytes; no encoding begins another one.
//! - Decoding takes any bytes and accepts exactly what encoding writes.
//!
//! Not here: which parts make up a key (the file of each key kind), cutting long text.

use std::sync::Arc;

use astrarium_value::{Object, Value, compare_text};

/// How deep a value may nest to be read back: beyond any document (128), with room for what queries build around
/// one, and short enough for any stack.
pub const VALUE_DEPTH_MAX: usize = 256;

/// The first byte of a value. 00 is free: it ends arrays and objects before any element.
mod tag {
    pub(super) const UNDEFINED: u8 = 0x10;
    pub(super) const NULL: u8 = 0x20;
    pub(super) const FALSE: u8 = 0x30;
    pub(super) const TRUE: u8 = 0x31;
    pub(super) const NUMBER: u8 = 0x40;
    pub(super) const STRING: u8 = 0x50;
    pub(super) const ARRAY: u8 = 0x60;
    pub(super) const OBJECT: u8 = 0x70;
}

const END: u8 = 0x00;
const MEMBER: u8 = 0x01;
const ESCAPE: u8 = 0x01;
/// From lead byte EE to F5 and from EF to F6.
const LEAD_SHIFT: u8 = 7;

/// Appends a value with its type.
pub fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Undefined => out.push(tag::UNDEFINED),
        Value::Null => out.push(tag::NULL),
        Value::Bool(false) => out.push(tag::FALSE),
        Value::Bool(true) => out.push(tag::TRUE),
        Value::Number(number) => {
            out.push(tag::NUMBER);
            push_u64(out, ordered_bits(*number));
        }
        Value::String(text) => {
            out.push(tag::STRING);
            push_text(out, text);
        }
        Value::Array(elements) => {
            out.push(tag::ARRAY);
            for element in elements {
                push_value(out, element);
            }
            out.push(END);
        }
        Value::Object(object) => {
            out.push(tag::OBJECT);
            for (name, value) in object.sorted_members() {
                out.push(MEMBER);
                push_text(out, name);
                push_value(out, value);
            }
            out.push(END);
        }
    }
}

/// Reads a value from the front of a key and returns what follows it. Members of objects come back by name,
/// which is equal to what was written. `None` for bytes that `push_value` never wrote.
pub fn read_value(bytes: &[u8]) -> Option<(Value, &[u8])> {
    read_nested(bytes, VALUE_DEPTH_MAX)
}

/// Appends text without a type, for places where only text can stand.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    push_text_prefix(out, text);
    out.push(END);
}

/// Appends text without its end: every text that begins with `text`, and no other, is encoded to bytes that
/// begin with these.
pub fn push_text_prefix(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 1);
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, 0x00 | 0x01 | 0xEE | 0xEF)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((&byte, after)) = special.split_first() {
            match byte {
                0x00 | 0x01 => out.extend_from_slice(&[ESCAPE, byte + 1]),
                lead => out.push(lead + LEAD_SHIFT),
            }
            rest = after;
        }
    }
    out.extend_from_slice(rest);
}

/// Reads text from the front of a key and returns what follows its end.
pub fn read_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == END)?;
    let (encoded, rest) = bytes.split_at_checked(end)?;
    let mut text = Vec::with_capacity(encoded.len());
    let mut encoded = encoded.iter();
    while let Some(&byte) = encoded.next() {
        text.push(match byte {
            ESCAPE => match encoded.next()? {
                0x01 => 0x00,
                0x02 => 0x01,
                _ => return None,
            },
            0xF5 | 0xF6 => byte - LEAD_SHIFT,
            0xEE | 0xEF => return None,
            plain => plain,
        });
    }
    Some((String::from_utf8(text).ok()?, rest.get(1..)?))
}

/// Appends an integer, the highest byte first.
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Reads an integer from the front of a key and returns what follows it.
pub fn read_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}

const SIGN: u64 = 1 << 63;

fn ordered_bits(number: f64) -> u64 {
    let canonical = match number {
        0.0 => 0.0,
        // With the sign set NaN comes before minus infinity, as in the order of values.
        nan if nan.is_nan() => f64::NAN.copysign(-1.0),
        other => other,
    };
    let bits = canonical.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn number_of(ordered: u64) -> Option<f64> {
    let bits = if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN };
    let number = f64::from_bits(bits);
    (ordered_bits(number) == ordered).then_some(number)
}

fn read_nested(bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let value = match tag {
        tag::UNDEFINED => Value::Undefined,
        tag::NULL => Value::Null,
        tag::FALSE => Value::Bool(false),
        tag::TRUE => Value::Bool(true),
        tag::NUMBER => {
            let (ordered, rest) = read_u64(rest)?;
            return Some((Value::Number(number_of(ordered)?), rest));
        }
        tag::STRING => {
            let (text, rest) = read_text(rest)?;
            return Some((Value::String(text.into()), rest));
        }
        tag::ARRAY => return read_array(rest, depth.checked_sub(1)?),
        tag::OBJECT => return read_object(rest, depth.checked_sub(1)?),
        _ => return None,
    };
    Some((value, rest))
}

fn read_array(mut bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let mut elements = Vec::new();
    loop {
        if let Some((&END, rest)) = bytes.split_first() {
            return Some((Value::Array(elements), rest));
        }
        let (element, rest) = read_nested(bytes, depth)?;
        elements.push(element);
        bytes = rest;
    }
}

fn read_object(mut bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let mut members: Vec<(Arc<str>, Value)> = Vec::new();
    loop {
        bytes = match bytes.split_first()? {
            (&END, rest) => return Some((Value::Object(Object::from_members(members)), rest)),
            (&MEMBER, rest) => rest,
            _ => return None,
        };
        let (name, rest) = read_text(bytes)?;
        let (value, rest) = read_nested(rest, depth)?;
        let ascending = members.last().is_none_or(|(last, _)| compare_text(last, &name).is_lt());
        if !ascending || value.is_undefined() {
            return None;
        }
        members.push((name.into(), value));
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        push_value(&mut out, value);
        out
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab\u{0}\u{1}\u{2}\u{7f}é\u{d7ff}\u{e000}\u{fffd}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
            any::<String>()
        ]
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let odd_numbers =
            vec![0.0, -0.0, 1.0, -1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
        let leaf = prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            proptest::sample::select(odd_numbers).prop_map(Value::Number),
            any::<f64>().prop_map(Value::Number),
            any_text().prop_map(|text| Value::String(text.into())),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let name = prop_oneof!["[a-c]", any_text()].prop_map(Arc::from);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|members| Value::Object(Object::from_members(members))),
            ]
        })
    }

    #[test]
    fn layout() {
        let check = |value: Value, expected: &[u8]| assert_eq!(encoded(&value), expected, "{value:?}");
        check(Value::Undefined, &[0x10]);
        check(Value::Null, &[0x20]);
        check(false.into(), &[0x30]);
        check(true.into(), &[0x31]);
        check(1.0.into(), &[0x40, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0]);
        check((-0.0).into(), &[0x40, 0x80, 0, 0, 0, 0, 0, 0, 0]);
        check((-2.0).into(), &[0x40, 0x3F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        check("".into(), &[0x50, 0x00]);
        check("a\u{0}\u{1}\u{2}".into(), &[0x50, b'a', 1, 1, 1, 2, 2, 0]);
        check("\u{e000}\u{ffff}".into(), &[0x50, 0xF5, 0x80, 0x80, 0xF6, 0xBF, 0xBF, 0]);
        check("\u{10ffff}".into(), &[0x50, 0xF4, 0x8F, 0xBF, 0xBF, 0]);
        check(Value::Array(vec![Value::Null, Value::Array(vec![])]), &[0x60, 0x20, 0x60, 0, 0]);
        let members = [("b".into(), Value::Null), ("a".into(), true.into())];
        check(Value::Object(Object::from_members(members)), &[0x70, 1, b'a', 0, 0x31, 1, b'b', 0, 0x20, 0]);
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| {
            let mut bytes = vec![tag::ARRAY; depth];
            bytes.resize(2 * depth, END);
            bytes
        };
        assert!(read_value(&nested(VALUE_DEPTH_MAX)).is_some());
        assert!(read_value(&nested(VALUE_DEPTH_MAX + 1)).is_none());
        assert!(read_value(&vec![tag::ARRAY; 1_000_000]).is_none());
    }

    #[test]
    fn refuses_what_is_never_written() {
        let check = |bytes: &[u8]| assert_eq!(read_value(bytes), None, "{bytes:02X?}");
        check(&[]);
        check(&[0x00]);
        check(&[tag::NUMBER, 1, 2, 3]);
        check(&[&[tag::NUMBER][..], &0x7FFF_FFFF_FFFF_FFFF_u64.to_be_bytes()].concat());
        check(&[&[tag::NUMBER][..], &u64::MAX.to_be_bytes()].concat());
        check(&[tag::STRING, b'a']);
        check(&[tag::STRING, ESCAPE, 3, END]);
        check(&[tag::STRING, ESCAPE, END]);
        check(&[tag::STRING, 0xEE, 0x80, 0x80, END]);
        check(&[tag::STRING, 0xFF, END]);
        check(&[tag::ARRAY, tag::NULL]);
        check(&[tag::OBJECT, MEMBER, b'a', END, tag::UNDEFINED, END]);
        check(&[tag::OBJECT, MEMBER, b'a', END, tag::NULL, MEMBER, b'a', END, tag::NULL, END]);
        check(&[tag::OBJECT, MEMBER, b'b', END, tag::NULL, MEMBER, b'a', END, tag::NULL, END]);
        check(&[tag::OBJECT, tag::NULL, END]);
    }

    proptest! {
        #[test]
        fn bytes_order_like_values(a in any_value(), b in any_value()) {
            let (a_bytes, b_bytes) = (encoded(&a), encoded(&b));
            prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(&b));
            prop_assert!(a == b || !b_bytes.starts_with(&a_bytes));
        }

        #[test]
        fn values_come_back(value in any_value(), after: Vec<u8>) {
            let mut bytes = encoded(&value);
            bytes.extend_from_slice(&after);
            prop_assert_eq!(read_value(&bytes), Some((value, &after[..])));
        }

        #[test]
        fn text_orders_comes_back_and_has_prefixes(a in any_text(), b in any_text(), after: Vec<u8>) {
            let (mut a_bytes, mut b_bytes, mut start) = (Vec::new(), Vec::new(), Vec::new());
            push_text(&mut a_bytes, &a);
            push_text(&mut b_bytes, &b);
            push_text_prefix(&mut start, &a);
            prop_assert_eq!(a_bytes.cmp(&b_bytes), compare_text(&a, &b));
            prop_assert_eq!(b_bytes.starts_with(&start), b.starts_with(&a));
            a_bytes.extend_from_slice(&after);
            prop_assert_eq!(read_text(&a_bytes), Some((a, &after[..])));
        }

        #[test]
        fn integers_order_and_come_back(a: u64, b: u64) {
            let (mut a_bytes, mut b_bytes) = (Vec::new(), Vec::new());
            push_u64(&mut a_bytes, a);
            push_u64(&mut b_bytes, b);
            prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(&b));
            prop_assert_eq!(read_u64(&a_bytes), Some((a, &[][..])));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = (read_text(&bytes), read_u64(&bytes), read_value(&bytes));
        }

        #[test]
        fn only_encodings_are_accepted(value in any_value(), at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = encoded(&value);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Some((read, rest)) = read_value(&bytes) {
                prop_assert_eq!(&encoded(&read), &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
