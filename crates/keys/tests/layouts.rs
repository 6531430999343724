//! Laws of the key layouts: what is written is read back, order is what readers rely on, foreign bytes never panic.

#![expect(clippy::unwrap_used, reason = "a test that fails to set up fails")]

use astrarium_keys::body::{Body, HEADER_LENGTH, Header, IndexDirective};
use astrarium_keys::record::{KeyRangeRow, Record, RecordKind};
use astrarium_keys::{Rid, document, feed, number, record};
use astrarium_partition::{
    Component, EffectiveKey, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind,
};
use astrarium_value::PropertyPath;
use astrarium_value::json::{seek, write_string};
use proptest::prelude::*;

fn definition(kind: PartitionKind, version: HashVersion, levels: usize) -> PartitionKeyDefinition {
    let paths = (0..levels).map(|level| PropertyPath::parse(&format!("/k{level}")).unwrap()).collect();
    PartitionKeyDefinition { paths, kind, version: Some(version), system_key: false }
}

fn component() -> impl Strategy<Value = Component> {
    prop_oneof![
        Just(Component::Undefined),
        Just(Component::Null),
        any::<bool>().prop_map(Component::Bool),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(Component::Number),
        ".{0,12}".prop_map(|text| Component::String(text.into())),
        Just(Component::String("a\0b".into())),
    ]
}

fn any_definition() -> impl Strategy<Value = PartitionKeyDefinition> {
    prop_oneof![
        Just(definition(PartitionKind::Hash, HashVersion::V1, 1)),
        Just(definition(PartitionKind::Hash, HashVersion::V2, 1)),
        Just(definition(PartitionKind::MultiHash, HashVersion::V2, 2)),
        Just(definition(PartitionKind::MultiHash, HashVersion::V2, 3)),
    ]
}

fn key_of(definition: &PartitionKeyDefinition, components: &[Component]) -> PartitionKey {
    PartitionKey::new(components[..definition.paths.len()].to_vec())
}

proptest! {
    /// Bits of numbers count: 0 and -0 are two partitions because clients hash them apart.
    #[test]
    fn different_documents_have_different_keys(
        definition in any_definition(),
        left in prop::collection::vec(component(), 3),
        right in prop::collection::vec(component(), 3),
        ids in ("[a-c]{1,3}", "[a-c]{1,3}"),
    ) {
        let (left, right) = (key_of(&definition, &left), key_of(&definition, &right));
        let place = |key: &PartitionKey, id: &str| document::document_key(7, &definition.effective(key), key, id);
        let same = format!("{left:?}{:?}", ids.0) == format!("{right:?}{:?}", ids.1);
        prop_assert_eq!(place(&left, &ids.0) == place(&right, &ids.1), same);
    }

    #[test]
    fn a_partition_s_documents_are_exactly_its_prefix(
        definition in any_definition(),
        left in prop::collection::vec(component(), 3),
        right in prop::collection::vec(component(), 3),
        id in "[a-c]{1,3}",
    ) {
        let (left, right) = (key_of(&definition, &left), key_of(&definition, &right));
        let prefix = document::partition_prefix(7, &definition.effective(&left), &left);
        let key = document::document_key(7, &definition.effective(&right), &right, &id);
        prop_assert_eq!(key.starts_with(&prefix), format!("{left:?}") == format!("{right:?}"));
    }

    #[test]
    fn documents_are_ordered_by_effective_key(
        definition in any_definition(),
        left in prop::collection::vec(component(), 3),
        right in prop::collection::vec(component(), 3),
    ) {
        let (left, right) = (key_of(&definition, &left), key_of(&definition, &right));
        let effective = (definition.effective(&left), definition.effective(&right));
        let keys = (
            document::document_key(7, &effective.0, &left, "x"),
            document::document_key(7, &effective.1, &right, "x"),
        );
        if effective.0 != effective.1 {
            prop_assert_eq!(keys.0.cmp(&keys.1), effective.0.cmp(&effective.1));
        }
        let bound = document::effective_bound(7, &effective.1);
        prop_assert_eq!(keys.0 >= bound, effective.0 >= effective.1);
    }

    #[test]
    fn suffixes_lead_back_to_keys(suffix in prop::collection::vec(any::<u8>(), 0..50), shard: u64, other: u64) {
        let key = document::from_suffix(shard, &suffix);
        prop_assert_eq!(document::suffix(&key).unwrap(), &suffix[..]);
        let moved = document::from_suffix(other, &suffix);
        prop_assert_eq!(document::suffix(&moved).unwrap(), &suffix[..]);
    }

    #[test]
    fn log_keys_are_ordered_by_their_numbers(shard: u64, left: (u64, u32), right: (u64, u32)) {
        let feed = |(lsn, sequence): (u64, u32)| feed::feed_key(shard, lsn, sequence);
        prop_assert_eq!(feed(left).cmp(&feed(right)), left.cmp(&right));
        prop_assert_eq!(feed::read_position(&feed(left)).unwrap(), left);
        let numbers = (number::number_key(shard, left.0), number::number_key(shard, right.0));
        prop_assert_eq!(numbers.0.cmp(&numbers.1), left.0.cmp(&right.0));
        prop_assert_eq!(number::read_number(&numbers.0).unwrap(), left.0);
        prop_assert!(numbers.0.starts_with(&number::number_prefix(shard)));
    }

    #[test]
    fn bodies_are_read_back(
        numbers: (u64, u32, u64, u64, u64),
        ttl in prop::option::of(prop_oneof![1..=i32::MAX, Just(-1)]),
        index_directive in prop_oneof![
            Just(IndexDirective::Default),
            Just(IndexDirective::Include),
            Just(IndexDirective::Exclude)
        ],
        text in "\\{.{0,40}\\}",
    ) {
        let (lsn, sequence, number, etag, timestamp) = numbers;
        let header = Header { lsn, sequence, number, etag, timestamp, ttl, index_directive };
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes.extend_from_slice(text.as_bytes());
        let body = Body::decode(Body::in_place(header, bytes).into_bytes()).unwrap();
        prop_assert_eq!(body.header, header);
        prop_assert_eq!(body.text(), text.as_bytes());
    }

    #[test]
    fn members_are_found_with_and_without_a_table(
        names in prop::collection::btree_set("[a-c\"\\\\é]{0,3}", 0..12),
        value in prop_oneof![Just("1"), Just("\"x,}\""), Just("[{\"a\":2}]"), Just("{}")],
        padding in prop_oneof![9 => Just(0_usize), 1 => Just(70_000)],
    ) {
        let mut text = b"{".to_vec();
        for name in &names {
            write_string(name, &mut text);
            text.extend_from_slice(format!(":{value},").as_bytes());
        }
        text.extend_from_slice(format!("\"padding\":\"{}\"}}", "x".repeat(padding)).as_bytes());
        let header = Header {
            lsn: 0, sequence: 0, number: 1, etag: 2, timestamp: 3, ttl: None, index_directive: IndexDirective::Default,
        };
        let body = Body::in_place(header, [&[0; HEADER_LENGTH], &text[..]].concat());
        prop_assert_eq!(body.text(), &text[..]);
        prop_assert_eq!(&Body::decode(body.as_bytes().clone()).unwrap(), &body);
        for name in names.iter().map(String::as_str).chain(["padding", "absent", "", "a", "ab"]) {
            prop_assert_eq!(body.member(name), seek::member(&text, name), "{}", name);
        }
    }

    #[test]
    fn records_and_ranges_are_read_back(
        numbers: (u64, u64, u64),
        id in ".{0,30}",
        definition in ".{0,60}",
        ranges in prop::collection::vec(
            (any::<u32>(), any::<u64>(), any::<[u8; 3]>(), any::<[u8; 4]>(), any::<Vec<u32>>()),
            0..4,
        ),
    ) {
        let (version, etag, timestamp) = numbers;
        let record = Record { version, etag, timestamp, id, definition };
        prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        let rows: Vec<KeyRangeRow> = ranges
            .into_iter()
            .map(|(id, shard, min, max, parents)| {
                let is_merged = id % 3 == 0;
                KeyRangeRow { id, shard, min: min.into(), max: max.into(), parents, is_merged }
            })
            .collect();
        prop_assert_eq!(KeyRangeRow::decode_all(&KeyRangeRow::encode_all(&rows)).unwrap(), rows);
    }

    #[test]
    fn foreign_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in ".{0,30}") {
        if let Ok(body) = Body::decode(bytes.clone().into()) {
            let _ = (body.text(), body.member(&text));
        }
        let _ = Record::decode(&bytes);
        let _ = KeyRangeRow::decode_all(&bytes);
        let _ = feed::read_position(&bytes);
        let _ = number::read_number(&bytes);
        let _ = document::suffix(&bytes);
        let _ = Rid::parse(&text);
        if let Some(rid) = Rid::from_bytes(&bytes) {
            let _ = (rid.number(), rid.child_type(), rid.container_part(), rid.to_string());
            prop_assert_eq!(Rid::parse(&rid.to_string()), Some(rid));
        }
    }
}

#[test]
fn the_empty_effective_key_comes_first() {
    let none = PartitionKey::default();
    let empty = document::document_key(7, &EffectiveKey::MIN, &none, "z");
    let definition = definition(PartitionKind::Hash, HashVersion::V2, 1);
    let key = PartitionKey::new(vec![Component::Null]);
    assert!(empty < document::document_key(7, &definition.effective(&key), &key, "a"));
    assert!(empty >= document::effective_bound(7, &EffectiveKey::MIN));
}

#[test]
fn names_of_one_parent_never_reach_into_another() {
    let parents = [Rid::database(1), Rid::database(0x0100_0000)];
    let keys = parents.map(|parent| record::name_key(RecordKind::Container, parent, "x"));
    assert!(!keys[0].starts_with(&record::name_prefix(RecordKind::Container, parents[1])));
    assert!(!keys[1].starts_with(&record::name_prefix(RecordKind::Container, parents[0])));
}
