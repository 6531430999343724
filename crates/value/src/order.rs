//! The one total order of values, with the equality and the hash that follow from it.
//!
//! undefined < null < false < true < numbers < strings < arrays < objects.
//! - Numbers by value; -0 equals 0. NaN equals itself and comes before all numbers, so that the order is total; what
//!   the query operators say about NaN is decided by the operators.
//! - Strings by UTF-16 code units, as the service does. This differs from the order of UTF-8 bytes only where a
//!   supplementary character meets one of U+E000..U+FFFF.
//! - Arrays element by element, a prefix before what continues it.
//! - Objects as the sequence of their members sorted by name, each member compared by name, then value, a prefix
//!   before what continues it. The service leaves this order open; it must ignore the order in which members
//!   came, as equality does, and this one can be written as key bytes (`keys::ordered`).

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::{Object, Value};

/// Orders text by UTF-16 code units without converting it.
///
/// The first differing byte decides. Lead bytes EE and EF (U+E000..U+FFFF) stand after F0..F4 (supplementary
/// characters, whose surrogates are D800..DFFF); inside a character both sides share the lead byte, and all
/// other bytes order alike in both encodings.
pub fn compare_text(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Whole words first: keys and names of one container share long beginnings.
    let words = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(a, b)| a == b).count();
    let same = words * 8 + a[words * 8..].iter().zip(&b[words * 8..]).take_while(|(a, b)| a == b).count();
    match (a.get(same), b.get(same)) {
        (Some(&a), Some(&b)) => code_unit_rank(a).cmp(&code_unit_rank(b)),
        _ => a.len().cmp(&b.len()),
    }
}

fn code_unit_rank(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte + 7,
        _ => byte,
    }
}

/// Orders numbers by value, NaN first, -0 equal to 0.
pub fn compare_numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => compare_numbers(*a, *b),
        (Value::String(a), Value::String(b)) => compare_text(a, b),
        (Value::Array(a), Value::Array(b)) => a.iter().cmp(b),
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => type_rank(a).cmp(&type_rank(b)),
    }
}

fn compare_objects(a: &Object, b: &Object) -> Ordering {
    let (a, b) = (a.sorted_members(), b.sorted_members());
    for ((a_name, a_value), (b_name, b_value)) in a.iter().zip(&b) {
        let order = compare_text(a_name, b_name).then_with(|| compare(a_value, b_value));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn type_rank(value: &Value) -> u8 {
    match value {
        Value::Undefined => 0,
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other)
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        compare(self, other).is_eq()
    }
}

impl Eq for Value {}

impl Ord for Object {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_objects(self, other)
    }
}

impl PartialOrd for Object {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        // Most unequal objects differ in size, which is known without sorting.
        self.len() == other.len() && compare_objects(self, other).is_eq()
    }
}

impl Eq for Object {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(type_rank(self));
        match self {
            Value::Undefined | Value::Null => {}
            Value::Bool(value) => value.hash(state),
            Value::Number(value) => canonical_bits(*value).hash(state),
            Value::String(value) => value.hash(state),
            Value::Array(values) => values.hash(state),
            Value::Object(object) => object.hash(state),
        }
    }
}

impl Hash for Object {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sorted_members().hash(state);
    }
}

/// One bit pattern for numbers that are equal: both zeros, and all NaN.
fn canonical_bits(value: f64) -> u64 {
    let canonical = match value {
        0.0 => 0.0,
        nan if nan.is_nan() => f64::NAN,
        other => other,
    };
    canonical.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;
    use std::sync::Arc;

    fn object(members: &[(&str, Value)]) -> Value {
        Value::Object(Object::from_members(
            members.iter().map(|(name, value)| (Arc::from(*name), value.clone())),
        ))
    }

    /// Small pools make equal parts likely, which is where the laws are interesting.
    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            proptest::sample::select(vec![
                "",
                "a",
                "ab",
                "\u{0}",
                "\u{d7ff}",
                "\u{e000}",
                "\u{ffff}",
                "\u{10000}"
            ]),
            proptest::sample::select(vec!["a\u{10ffff}", "a\u{fffd}", "a\u{1}", "\u{1}", "b", "é", "日本"]),
        ];
        let number = prop_oneof![
            proptest::sample::select(vec![
                0.0,
                -0.0,
                1.0,
                -1.0,
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY
            ]),
            any::<f64>(),
        ];
        let leaf = prop_oneof![
            Just(Value::Undefined),
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number.prop_map(Value::Number),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            let name = text.clone().prop_map(Arc::from);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|members| Value::Object(Object::from_members(members))),
            ]
        })
    }

    fn hash(value: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn the_ladder() {
        let ladder = [
            Value::Undefined,
            Value::Null,
            false.into(),
            true.into(),
            f64::NAN.into(),
            f64::NEG_INFINITY.into(),
            (-1.5).into(),
            0.0.into(),
            5e-324.into(),
            f64::INFINITY.into(),
            "".into(),
            "a".into(),
            "a\u{0}".into(),
            "\u{d7ff}".into(),
            "\u{10000}".into(),
            "\u{10ffff}".into(),
            "\u{e000}".into(),
            "\u{ffff}".into(),
            Value::Array(vec![]),
            Value::Array(vec![Value::Undefined]),
            Value::Array(vec![1.0.into()]),
            Value::Array(vec![1.0.into(), Value::Null]),
            Value::Array(vec!["".into()]),
            object(&[]),
            object(&[("a", 1.0.into())]),
            object(&[("a", 1.0.into()), ("b", Value::Null)]),
            object(&[("a", 2.0.into())]),
            object(&[("b", Value::Null)]),
        ];
        for (i, a) in ladder.iter().enumerate() {
            for (j, b) in ladder.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn what_is_equal() {
        assert_eq!(Value::from(0.0), Value::from(-0.0));
        assert_ne!(Value::from(1.0), Value::from("1"));
        let (one, two) = (("a", Value::from(1.0)), ("b", Value::Null));
        assert_eq!(object(&[one.clone(), two.clone()]), object(&[two, one]));
    }

    proptest! {
        #[test]
        fn order_is_total(a in any_value(), b in any_value(), c in any_value()) {
            prop_assert_eq!(a.cmp(&a), Ordering::Equal);
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a == b, a.cmp(&b).is_eq());
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
            if a == b {
                prop_assert_eq!(hash(&a), hash(&b));
                prop_assert_eq!(a.cmp(&c), b.cmp(&c));
            }
        }

        #[test]
        fn text_orders_by_code_units(a in "[ab\u{1}é日\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
                                     b in "[ab\u{1}é日\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}") {
            prop_assert_eq!(compare_text(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }

        #[test]
        fn member_order_does_not_matter(members in prop::collection::vec(("[a-d]", any_value()), 0..6)) {
            let shared = members.iter().map(|(name, value)| (Arc::<str>::from(name.as_str()), value.clone()));
            let object = Object::from_members(shared);
            let mut reversed: Vec<_> = object.iter().map(|(name, value)| (name.into(), value.clone())).collect();
            reversed.reverse();
            prop_assert_eq!(&object, &Object::from_members(reversed));
        }
    }
}
