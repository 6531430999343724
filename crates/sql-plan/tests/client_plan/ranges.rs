//! Where a query is sent: the partition keys that its filter leaves.

use super::{FEATURES, ask, container};
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_partition::{EffectiveRange, PartitionKey};
use serde_json::{Value, json};

/// Expected places.
enum Place<'a> {
    All,
    /// The one point that stands for no rows.
    Nowhere,
    /// Points, as partition key headers.
    Keys(&'a [&'a str]),
    /// Ranges, as headers of prefixes.
    Prefixes(&'a [&'a str]),
}

fn range(min: &str, max: &str) -> Value {
    json!({"min": min, "max": max, "isMinInclusive": true, "isMaxInclusive": max != "FF"})
}

fn check(container: &ContainerDefinition, filter: &str, place: &Place<'_>) {
    let definition = &container.partition_key;
    let effective =
        |header: &str| definition.effective(&PartitionKey::parse_header(header).expect("a header"));
    let mut expected: Vec<(String, String)> = match place {
        Place::All => vec![(String::new(), "FF".to_owned())],
        Place::Nowhere => vec![(String::new(), String::new())],
        Place::Keys(keys) => {
            keys.iter().map(|key| effective(key).to_string()).map(|key| (key.clone(), key)).collect()
        }
        Place::Prefixes(keys) => {
            let prefixes = keys.iter().map(|key| EffectiveRange::of_prefix(effective(key)));
            prefixes.map(|range| (range.min.to_string(), range.max.to_string())).collect()
        }
    };
    expected.sort();
    let expected: Vec<Value> = expected.iter().map(|(min, max)| range(min, max)).collect();
    let list = json!([{"name": "@key", "value": "a"}, {"name": "@keys", "value": ["a", "b"]}]);
    let query = format!("SELECT * FROM c {filter}");
    let plan = ask(&query, &list, container, Some(FEATURES)).expect("a plan");
    assert_eq!(plan["queryRanges"], Value::Array(expected), "{query}");
}

#[test]
fn filters_pin_keys() {
    use Place::{All, Keys, Nowhere};
    let cases = [
        ("", All),
        ("WHERE true", All),
        ("WHERE c.pk > 5", All),
        ("WHERE c.pk BETWEEN 1 AND 2", All),
        ("WHERE c.pk != 5", All),
        ("WHERE c.other = 5", All),
        ("WHERE LENGTH(c.pk) = 1", All),
        ("WHERE IS_STRING(c.pk)", All),
        ("WHERE c.pk = 5 OR c.other = 6", All),
        ("WHERE c.pk LIKE 'a%'", All),
        ("WHERE c.a = (SELECT VALUE c.pk FROM c WHERE c.pk = 5)", All),
        ("WHERE NOT ST_ISVALID({'type': 'Point', 'coordinates': [0, 0]}) AND c.a = 1", All),
        ("WHERE c.pk = 5", Keys(&["[5]"])),
        ("WHERE 'x' = c['pk']", Keys(&["[\"x\"]"])),
        ("WHERE c.pk = @key AND c.other > 3", Keys(&["[\"a\"]"])),
        ("WHERE c.pk", Keys(&["[true]"])),
        ("WHERE NOT c.pk", Keys(&["[false]"])),
        ("WHERE c.pk = null", Keys(&["[null]"])),
        ("WHERE c.pk LIKE 'a!%' ESCAPE '!'", Keys(&["[\"a%\"]"])),
        ("WHERE c.pk IN (1, 'a', 1)", Keys(&["[1]", "[\"a\"]"])),
        ("WHERE c.pk = 1 OR c.pk IN (2, 3)", Keys(&["[1]", "[2]", "[3]"])),
        ("WHERE c.pk IN (1, 2, 3) AND c.pk IN (2, 3, 4)", Keys(&["[2]", "[3]"])),
        ("WHERE c.pk = {} OR c.pk = [1]", Keys(&["[{}]"])),
        ("WHERE IS_NULL(c.pk)", Keys(&["[null]"])),
        ("WHERE IS_BOOL(c.pk)", Keys(&["[true]", "[false]"])),
        ("WHERE ABS(c.pk) = 2", Keys(&["[2]", "[-2]"])),
        ("WHERE 2 = ABS(c.pk) AND c.pk = -2", Keys(&["[-2]"])),
        ("WHERE ARRAY_CONTAINS([1, 2], c.pk)", Keys(&["[1]", "[2]"])),
        ("WHERE ARRAY_CONTAINS(@keys, c.pk)", Keys(&["[\"a\"]", "[\"b\"]"])),
        ("WHERE ARRAY_CONTAINS([1, 2, 3], c.pk) AND c.pk = 4", Nowhere),
        ("WHERE ABS(c.pk) = -1", Nowhere),
        ("WHERE c.pk = 1 AND c.pk = 2", Nowhere),
        ("WHERE false", Nowhere),
        ("WHERE 1 = 2", Nowhere),
    ];
    for version in [1, 2] {
        let container =
            container(&json!({"partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": version}}));
        for (filter, place) in &cases {
            check(&container, filter, place);
        }
    }
}

#[test]
fn hierarchical_keys_have_prefixes() {
    use Place::{All, Keys, Prefixes};
    let container =
        container(&json!({"partitionKey": {"paths": ["/a", "/b/c"], "kind": "MultiHash", "version": 2}}));
    let cases = [
        ("WHERE c.b.c = 1", All),
        ("WHERE c.a = 1", Prefixes(&["[1]"])),
        ("WHERE c.a IN (1, 2)", Prefixes(&["[1]", "[2]"])),
        ("WHERE c.a = 1 AND c.b.c = 'x'", Keys(&["[1, \"x\"]"])),
        ("WHERE c.a = 1 AND c.b.c IN ('x', 'y')", Keys(&["[1, \"x\"]", "[1, \"y\"]"])),
    ];
    for (filter, place) in &cases {
        check(&container, filter, place);
    }
}

#[test]
fn a_query_without_documents_is_sent_to_one_partition() {
    let container = super::keyed("/pk");
    for query in ["SELECT 1", "SELECT VALUE ABS(-5)"] {
        let plan = ask(query, &Value::Null, &container, None).unwrap();
        assert_eq!(plan["queryRanges"], json!([range("", "")]), "{query}");
    }
}

#[test]
fn a_count_of_distinct_rows_is_sent_where_the_rows_are() {
    let container = super::keyed("/pk");
    let query = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.k FROM c WHERE c.pk = 1)";
    let plan = ask(query, &Value::Null, &container, Some(FEATURES)).unwrap();
    let key = container.partition_key.effective(&PartitionKey::parse_header("[1]").unwrap()).to_string();
    assert_eq!(plan["queryRanges"], json!([range(&key, &key)]));
}
