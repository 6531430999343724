//! Order-preserving keys: any bytes decode or are refused; what decodes encodes to the same bytes; two values compare
//! as their bytes do.

use astrarium_keys::ordered::{push_text, push_value, read_text, read_u64, read_value};
use astrarium_value::compare_text;

pub(crate) fn run(bytes: &[u8]) {
    let _ = read_u64(bytes);
    if let Some((text, rest)) = read_text(bytes) {
        let mut encoded = Vec::new();
        push_text(&mut encoded, &text);
        assert_eq!([&encoded[..], rest].concat(), bytes);
        if let Some((other, _)) = read_text(rest) {
            let mut other_encoded = Vec::new();
            push_text(&mut other_encoded, &other);
            assert_eq!(encoded.cmp(&other_encoded), compare_text(&text, &other));
        }
    }
    let Some((first, rest)) = read_value(bytes) else { return };
    let mut first_encoded = Vec::new();
    push_value(&mut first_encoded, &first);
    assert_eq!([&first_encoded[..], rest].concat(), bytes);
    let Some((second, _)) = read_value(rest) else { return };
    let mut second_encoded = Vec::new();
    push_value(&mut second_encoded, &second);
    assert_eq!(first_encoded.cmp(&second_encoded), first.cmp(&second));
}
