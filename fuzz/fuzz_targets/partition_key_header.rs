//! Partition keys of headers and documents: no text panics; the effective key is the same for the same key, below the
//! end of all ranges, and inside exactly one of a container's ranges.

use astrarium_keys::document;
use astrarium_partition::{
    EffectiveKey, EffectiveRange, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind,
};
use astrarium_value::PropertyPath;
use astrarium_value::json::Text;

pub(crate) fn run(text: &str) {
    if let Ok(key) = EffectiveKey::parse(text) {
        assert_eq!(EffectiveKey::parse(&key.to_string()), Ok(key));
    }
    if let Ok(path) = PropertyPath::parse(text) {
        assert_eq!(PropertyPath::parse(path.as_str()), Ok(path));
    }
    let definitions = definitions();
    if let Ok(json) = Text::parse(text.as_bytes()) {
        for definition in &definitions {
            check(definition, &definition.extract(json.root()));
        }
    }
    if let Ok(key) = PartitionKey::parse_header(text) {
        for definition in &definitions {
            check(definition, &definition.canonical(key.clone()));
        }
    }
}

fn check(definition: &PartitionKeyDefinition, key: &PartitionKey) {
    if key.check_size().is_err() || key.components().len() > definition.paths.len() {
        return;
    }
    let effective = definition.effective(key);
    assert_eq!(effective, definition.effective(key));
    assert!(effective < EffectiveKey::max());
    let slices = EffectiveRange::equal_slices(5, definition);
    let holders = slices.iter().filter(|slice| slice.contains(&effective)).count();
    assert_eq!(holders, 1, "{effective} lies in one range");
    let document = document::document_key(3, &effective, key, "id");
    assert!(document.starts_with(&document::partition_prefix(3, &effective, key)));
}

fn definitions() -> Vec<PartitionKeyDefinition> {
    let path = |text| PropertyPath::parse(text).expect("a path");
    let one = |kind, version, system_key| PartitionKeyDefinition {
        paths: vec![path("/a")],
        kind,
        version,
        system_key,
    };
    vec![
        one(PartitionKind::Hash, Some(HashVersion::V1), false),
        one(PartitionKind::Hash, Some(HashVersion::V2), false),
        one(PartitionKind::Hash, Some(HashVersion::V2), true),
        one(PartitionKind::Range, None, false),
        PartitionKeyDefinition {
            paths: vec![path("/a"), path("/b/c"), path("/d")],
            kind: PartitionKind::MultiHash,
            version: Some(HashVersion::V2),
            system_key: false,
        },
    ]
}
