//! What arrays and objects count for in ORDER BY: a hash of what they hold.
//!
//! The language leaves the order among arrays and among objects open. Clients that merge several ranges compare them by this
//! hash, and name a position among them by it alone, so rows have to come in its order.
//! In: a sort key. Out: the same, with an array or an object replaced by one of its type that holds the hash as text, which
//! sorts as the hash does: by its sixteen bytes, those of the low half first, each half from its lowest byte on.
//! Invariants
//! - Equal values have equal hashes: -0 counts as 0, members count in any order.
//! - `[]` is before every replaced array, and `{}` before every replaced object.

use astrarium_partition::hash_128;
use astrarium_value::{Object, Value};
use std::sync::Arc;

/// Both halves of a hash, the low one first.
pub(crate) type Hash = (u64, u64);

const ROOT: Hash = (0xBFC2_359E_AFC0_E2B7, 0x8846_E002_84C4_CF1F);
const NULL: Hash = (0x1380_F68B_B3B0_CFE4, 0x156C_918B_F564_EE48);
const FALSE: Hash = (0xC1BE_517F_E893_B40C, 0xE9FC_8A4C_531C_D0DD);
const TRUE: Hash = (0xF86D_4ABF_9A41_2E74, 0x7884_8836_5C8A_985D);
const NUMBER: Hash = (0x2400_E8B8_94CE_9C2A, 0x790B_E1EA_BD7B_9481);
const STRING: Hash = (0x61F5_3F0A_4420_4CFB, 0x0948_1BE8_EF4B_56DD);
const ARRAY: Hash = (0xFA57_3B01_4C4D_C18E, 0xA014_512C_858E_B115);
const OBJECT: Hash = (0x77B2_85AC_511A_EF30, 0x3DCF_1872_4582_2449);
const ELEMENT: Hash = (0xFE05_7204_216D_B999, 0x5B1C_C317_8BD9_C593);
const NAME: Hash = (0xC915_DDE0_5849_2A8A, 0x7C8B_E2EB_A72E_4634);

/// A sort key as it is compared.
pub(crate) fn compared(key: Value) -> Value {
    match &key {
        Value::Array(_) => array_of(hash(&key, ROOT)),
        Value::Object(_) => object_of(hash(&key, ROOT)),
        _ => key,
    }
}

/// What stands for arrays that have a hash.
pub(crate) fn array_of(hash: Hash) -> Value {
    Value::Array(vec![text_of(hash)])
}

/// What stands for objects that have a hash.
pub(crate) fn object_of(hash: Hash) -> Value {
    Value::Object(Object::from_members([(Arc::from("hash"), text_of(hash))]))
}

fn text_of((low, high): Hash) -> Value {
    Value::from(format!("{:016x}{:016x}", low.swap_bytes(), high.swap_bytes()).as_str())
}

fn hash(value: &Value, seed: Hash) -> Hash {
    let of_kind = |kind: Hash| hash_128(&bytes_of(kind), seed);
    match value {
        Value::Undefined => seed,
        Value::Null => of_kind(NULL),
        Value::Bool(false) => of_kind(FALSE),
        Value::Bool(true) => of_kind(TRUE),
        Value::Number(number) => {
            // A double, and two bytes that are only needed beyond its precision.
            let mut bytes = [0; 10];
            let number = if *number == 0.0 { 0.0 } else { *number };
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            hash_128(&bytes, of_kind(NUMBER))
        }
        Value::String(text) => hash_128(text.as_bytes(), of_kind(STRING)),
        Value::Array(elements) => {
            elements.iter().zip(0_u64..).fold(of_kind(ARRAY), |whole, (element, index)| {
                hash_128(&bytes_of(hash(element, plus(ELEMENT, index))), whole)
            })
        }
        Value::Object(members) => {
            let mut together = (0, 0);
            for (name, member) in members.iter() {
                let name = hash_128(name.as_bytes(), hash_128(&bytes_of(STRING), NAME));
                let own = hash(member, name);
                together = (together.0 ^ own.0, together.1 ^ own.1);
            }
            let kind = of_kind(OBJECT);
            if together == (0, 0) { kind } else { hash_128(&bytes_of(together), kind) }
        }
    }
}

fn bytes_of((low, high): Hash) -> [u8; 16] {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

fn plus((low, high): Hash, index: u64) -> Hash {
    let (low, carries) = low.overflowing_add(index);
    (low, high.wrapping_add(u64::from(carries)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_value::json::seek;

    /// What the .NET SDK (Microsoft.Azure.Cosmos 3.48) computes.
    #[test]
    fn hashes_are_those_of_clients() {
        let check = |text: &str, low: i64, high: i64| {
            let hashed = hash(&seek::value(text.as_bytes()), ROOT);
            assert_eq!(hashed, (low.cast_unsigned(), high.cast_unsigned()), "{text}");
        };
        check("[]", -6_706_074_647_855_398_782, 9_031_114_912_533_472_255);
        check("{}", 1_457_042_291_250_783_704, 1_493_060_239_874_959_160);
        check("[null]", 3_422_993_424_334_941_761, 4_507_694_720_966_932_533);
        check("[true]", 6_029_198_990_314_683_610, 3_209_706_050_120_083_421);
        check("[false]", -3_177_084_224_444_762_298, 8_828_444_787_757_411_411);
        check("[1]", 3_156_792_105_152_516_121, -4_093_997_899_287_633_148);
        check("[-1.5]", -7_585_230_955_523_944_140, 5_114_938_019_485_717_242);
        check("[1e300]", -3_982_522_086_496_791_460, 3_956_499_772_242_412_281);
        check("[0]", 744_847_658_927_082_520, -5_823_992_772_122_102_489);
        check("[\"abc\"]", -8_941_976_791_818_049_579, 1_292_626_409_783_875_350);
        check("[\"hé\\u0000😀\"]", -6_913_089_821_419_124_045, -7_961_061_762_191_088_843);
        check("[1,2,3]", -6_805_181_268_167_426_770, 8_082_636_597_619_141_244);
        check("[[],[1]]", -5_698_591_988_227_847_451, -2_763_671_902_105_296_605);
        check("{\"a\":1}", 6_626_721_030_009_087_975, 3_382_389_252_530_516_517);
        check("{\"b\":\"x\",\"a\":1}", 8_392_098_340_119_730_390, -4_787_301_616_242_328_831);
        check("{\"a\":{\"b\":[null,{}]}}", 7_926_077_959_229_723_184, -7_421_850_647_433_741_232);
        check("[[1,\"a\"],{\"k\":null}]", 8_203_779_580_806_199_439, 4_264_153_533_339_824_304);
    }

    /// As its comparison of elements puts them.
    #[test]
    fn arrays_and_objects_are_in_the_order_of_their_hashes() {
        let texts = ["[1]", "[3]", "[]", "[2]", "[\"abc\"]", "[[1]]", "{}"];
        let keys: Vec<Value> = texts.iter().map(|text| compared(seek::value(text.as_bytes()))).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert!(keys.iter().all(|key| *key > Value::Array(Vec::new())));
    }
}
