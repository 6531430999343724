//! Effective keys as the clients' own functions compute them, and the laws of the order.

use super::*;
use astrarium_value::PropertyPath;
use proptest::prelude::*;

fn definition(
    kind: PartitionKind,
    version: Option<HashVersion>,
    path_count: usize,
) -> PartitionKeyDefinition {
    let paths = (0..path_count).map(|index| PropertyPath::parse(&format!("/p{index}")).unwrap()).collect();
    PartitionKeyDefinition { paths, kind, version, system_key: false }
}

fn check(kind: PartitionKind, version: Option<HashVersion>, header: &str, expected: &str) {
    let key = PartitionKey::parse_header(header).unwrap();
    let effective = definition(kind, version, key.components().len()).effective(&key);
    assert_eq!(effective.to_string(), expected, "{header}");
    assert_eq!(EffectiveKey::parse(expected), Ok(effective));
}

fn check_v1(header: &str, expected: &str) {
    check(PartitionKind::Hash, None, header, expected);
    check(PartitionKind::Hash, Some(HashVersion::V1), header, expected);
}

fn check_v2(header: &str, expected: &str) {
    check(PartitionKind::Hash, Some(HashVersion::V2), header, expected);
    if PartitionKey::parse_header(header).unwrap().components().len() == 1 {
        check(PartitionKind::MultiHash, Some(HashVersion::V2), header, expected);
    }
}

/// A header with one string of a repeated character.
fn repeated(character: &str, count: usize) -> String {
    format!("[\"{}\"]", character.repeat(count))
}

#[test]
fn version_2_agrees_with_the_clients() {
    for (header, expected) in [
        (r#"["a"]"#, "3A5381E1114EB8D3FCC90795045B49B7"),
        (r#"[""]"#, "32E9366E637A71B4E710384B2F4970A0"),
        (r#"["partitionKey"]"#, "013AEFCF77FA271571CF665A58C933F1"),
        (r#"["redmond"]"#, "22E342F38A486A088463DFF7838A5963"),
        (r#"["ünïcödé-日本"]"#, "2E968580B3588843695FE23D81ADD338"),
        (r#"["😀"]"#, "28D7FCB721E75FBE0DAC3D71DAB82766"),
        (r#"["\ud83d\ude00"]"#, "28D7FCB721E75FBE0DAC3D71DAB82766"),
        ("[0]", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"),
        ("[1]", "20CD98B339BA78A5D0CF6953B87070B0"),
        ("[-1]", "19938E7A936C1C5B9E3AE842BBC16839"),
        ("[5]", "19C08621B135968252FB34B4CF66F811"),
        ("[5.5]", "0E2EE47829D1AF775EEFB6540FD1D0ED"),
        ("[100]", "34235CFA9F2448C372F53E4119DBB9AB"),
        ("[0.1]", "21DEBA97B3AF01087F4E1F889B0A7739"),
        ("[1e300]", "1234CB21048B20039B22F11DBB13CD7B"),
        ("[9007199254740991]", "12C221C7032CED1F9E6693CE1428E6CF"),
        ("[-0.0]", "3D018BB1DF3DB27235766E81FD10406E"),
        ("[true]", "0E711127C5B5A8E4726AC6DD306A3E59"),
        ("[false]", "2FE1BE91E90A3439635E0E9E37361EF2"),
        ("[null]", "378867E4430E67857ACE5C908374FE16"),
        ("[{}]", "11622DAA78F835834610ABE56EFF5CB5"),
        (r#"["a","b"]"#, "28E2BB69EC761CDAEA6471A1CFEB5BC6"),
        ("[]", ""),
        (&repeated("a", 100), "0DBD7D229437BB665DE6417747994D57"),
        (&repeated("a", 101), "08042541D30C8BF90D7092B1519AE0BC"),
        (&repeated("é", 100), "3428CD00D4B4D8205CBBBB9983064EB1"),
        (&repeated("x", 2048), "00A112B97CF01F8D71DBA928C98E2909"),
        (&repeated("x", 14), "2BB4ED8CE8ACD8A9CFAA9525DAA1FE77"),
        (&repeated("x", 15), "2B275C18C408A03A0A53709CD6F5829A"),
    ] {
        check_v2(header, expected);
    }
}

#[test]
fn version_1_agrees_with_the_clients() {
    for (header, expected) in [
        (r#"["a"]"#, "05C1D78593652C086200"),
        (r#"[""]"#, "05C1CF33970FF80800"),
        (r#"["partitionKey"]"#, "05C1E1B3D9CD2608716273756A756A706F4C667A00"),
        (r#"["redmond"]"#, "05C1EFE313830C087366656E706F6500"),
        (r#"["ünïcödé-日本"]"#, "05C1EBF38DAF3608C4BD6FC4B064C4B765C4AA2EE798A6E79DAD00"),
        (r#"["😀"]"#, "05C1814D5F9C08F1A0998100"),
        ("[0]", "05C1BF6DA11560058000"),
        ("[1]", "05C1ED172B6B2605BFF0"),
        ("[-1]", "05C1D1A5BDDF9C054010"),
        ("[5]", "05C1D9C1C5517C05C014"),
        ("[5.5]", "05C1D7A771716C05C016"),
        ("[100]", "05C1E30371BF2005C05980"),
        ("[1e300]", "05C1AB5FCFAF8005FE37F30F918103D738"),
        ("[9007199254740991]", "05C1B3FBA771A005C33FFFFFFFFFFFFFFE"),
        ("[-0.0]", "05C1E703ED99A0058000"),
        ("[true]", "05C1D7C5A903D803"),
        ("[false]", "05C1DB857D857C02"),
        ("[null]", "05C1ED45D7475601"),
        ("[{}]", "05C1D529E345DC00"),
        ("[]", ""),
        (&repeated("a", 100), &format!("05C1EB5921F70608{}00", "62".repeat(100))),
        (&repeated("a", 101), &format!("05C1EB5921F70608{}00", "62".repeat(100))),
        (&repeated("é", 100), &format!("05C1D9C91DF1D808{}C4", "C4AA".repeat(50))),
    ] {
        check_v1(header, expected);
    }
}

#[test]
fn version_1_cuts_strings_by_code_units() {
    assert_eq!(&*cut_string(&"😀".repeat(51)), "😀".repeat(50));
    let odd = format!("a{}", "😀".repeat(50));
    assert_eq!(&*cut_string(&odd), format!("a{}\u{FFFD}", "😀".repeat(49)));
}

#[test]
fn hierarchical_keys_are_hashed_level_by_level() {
    for (header, parts) in [
        (
            r#"["tenant1","user1","session1"]"#,
            &[
                "0DAE0B8467B011E957BC0B8B0DEB5ACA",
                "236A5BE3329A7AD57D4B998E8602BD7B",
                "3968A88FC4D9F7E8A7CC60434EE850D5",
            ][..],
        ),
        (r#"["tenant1"]"#, &["0DAE0B8467B011E957BC0B8B0DEB5ACA"]),
        (r#"["contoso",42]"#, &["0A4BA22644167DA7161C260336FB5423", "08E6D561F6FD951DCC25E7E4EA2884B5"]),
        (
            "[1,true,null]",
            &[
                "20CD98B339BA78A5D0CF6953B87070B0",
                "0E711127C5B5A8E4726AC6DD306A3E59",
                "378867E4430E67857ACE5C908374FE16",
            ],
        ),
        (
            r#"["x",{},5]"#,
            &[
                "11E3F358618BE9AA5BAFF4C7C74F0716",
                "11622DAA78F835834610ABE56EFF5CB5",
                "19C08621B135968252FB34B4CF66F811",
            ],
        ),
        ("[]", &[]),
    ] {
        check(PartitionKind::MultiHash, Some(HashVersion::V2), header, &parts.concat());
    }
    let prefix = PartitionKey::parse_header(r#"["tenant1"]"#).unwrap();
    let range =
        crate::EffectiveRange::of_prefix(definition(PartitionKind::MultiHash, None, 3).effective(&prefix));
    let ends = (range.min.to_string(), range.max.to_string());
    assert_eq!(
        (ends.0.as_str(), ends.1.as_str()),
        ("0DAE0B8467B011E957BC0B8B0DEB5ACA", "0DAE0B8467B011E957BC0B8B0DEB5ACAFF")
    );
}

#[test]
fn range_keys_are_not_hashed() {
    for (header, expected) in [
        (r#"["a"]"#, "086200".to_owned()),
        ("[1]", "05BFF0".to_owned()),
        ("[1,null]", "05BFF001".to_owned()),
        (&repeated("a", 101), format!("08{}", "62".repeat(101))),
        (&repeated("a", 102), format!("08{}", "62".repeat(101))),
    ] {
        check(PartitionKind::Range, None, header, &expected);
    }
}

#[test]
fn reads_hexadecimal_text() {
    assert_eq!(EffectiveKey::parse("05c1Ff").unwrap().as_bytes(), [0x05, 0xC1, 0xFF]);
    for text in ["0", "0G", "+1", " 0", "é"] {
        assert_eq!(EffectiveKey::parse(text), Err(EffectiveKeyError), "{text}");
    }
    assert_eq!(
        (EffectiveKey::MIN.to_string(), EffectiveKey::max().to_string()),
        (String::new(), "FF".to_owned())
    );
}

proptest! {
    #[test]
    fn keys_order_like_their_text(a: Vec<u8>, b: Vec<u8>) {
        let (a, b) = (EffectiveKey::from_bytes(a), EffectiveKey::from_bytes(b));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        prop_assert_eq!(EffectiveKey::parse(&a.to_string()), Ok(a));
    }

    #[test]
    fn every_key_is_below_the_maximum(text: String, number: f64) {
        let key = PartitionKey::new(vec![Component::String(text.into()), Component::Number(number)]);
        for kind in [PartitionKind::Hash, PartitionKind::MultiHash, PartitionKind::Range] {
            for version in [None, Some(HashVersion::V2)] {
                let effective = definition(kind, version, 2).effective(&key);
                prop_assert!(EffectiveKey::MIN < effective && effective < EffectiveKey::max());
            }
        }
    }

    #[test]
    fn binary_numbers_keep_their_order(a: f64, b: f64) {
        let place = |number: f64| binary(&[Component::Number(number)]);
        if let Some(order) = a.partial_cmp(&b) {
            prop_assert_eq!(place(a).cmp(&place(b)), order);
        }
    }
}
