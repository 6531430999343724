//! The documents that queries are asked over: 20 properties, exactly 1,024 bytes, a function of number and count.
//!
//! Values are permutations of the numbers, so that every answer has a known size: `name`, `level`, `score` and `weight`
//! are unique, `city` has 100 documents a value, a tag has 10, `grade`, `category` and `kind` have 10 values, `branch` and
//! `shop` 1,000. All fractions are quarters, so that sums are the same in whatever order they are taken.
//! Invariants
//! - The count is a multiple of [`COUNT_UNIT`].
//! - The properties of [`NOT_INDEXED`] are not indexed by our container, nor by PostgreSQL's table.

use crate::items::{ITEM_BYTES, Item, prose};
use serde_json::{Value, json};

/// What makes all answers come out even.
pub(crate) const COUNT_UNIT: u64 = 1_000;
const NOT_INDEXED: [&str; 6] = ["/stock/?", "/amount/?", "/kind/?", "/shop/?", "/weight/?", "/lines/*"];
/// Near the golden section of 2^32 and friends: neighbours land far from each other.
const MULTIPLIERS: [u64; 4] = [2_654_435_761, 1_640_531_527, 3_266_489_917, 668_265_263];
const PARTITION_KEY_COUNT: u64 = 997;
const LINE_COUNT: u64 = 3;

/// All documents of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Documents {
    pub(crate) count: u64,
    multipliers: [u64; 4],
}

impl Documents {
    pub(crate) fn new(count: u64) -> anyhow::Result<Documents> {
        let even = count > 0 && count.is_multiple_of(COUNT_UNIT);
        anyhow::ensure!(even, "{count} is not a multiple of {COUNT_UNIT} documents");
        // What shares no factor with the count permutes the numbers below it.
        let coprime = |from: u64| {
            let mut candidates = from..from + count;
            candidates.find(|number| common_divisor(*number, count) == 1).unwrap_or(1)
        };
        Ok(Documents { count, multipliers: MULTIPLIERS.map(coprime) })
    }

    pub(crate) fn id(number: u64) -> String {
        format!("document-{number:08}")
    }

    pub(crate) fn partition_key(number: u64) -> String {
        format!("key-{}", number % PARTITION_KEY_COUNT)
    }

    /// The `name` of the document of a number.
    pub(crate) fn name_of(&self, number: u64) -> String {
        format!("name-{:08}", number * self.multipliers[0] % self.count)
    }

    /// Its `level`.
    pub(crate) fn level_of(&self, number: u64) -> u64 {
        number * self.multipliers[1] % self.count
    }

    /// The document of a number.
    pub(crate) fn document(&self, number: u64) -> Item {
        let (id, partition_key) = (Documents::id(number), Documents::partition_key(number));
        let [first, second, third, fourth] = self.multipliers.map(|factor| number * factor % self.count);
        let mut object = json!({
            "id": id, "pk": partition_key, "name": self.name_of(number), "level": second,
            "score": third as f64 + 0.25, "grade": first % 10, "category": format!("category-{}", second % 10),
            "branch": format!("branch-{}", third % 1_000), "city": format!("city-{}", first / 100),
            "tags": [format!("a{}", first / 10), format!("b{}", second / 10), format!("c{}", third / 10)],
            "active": number.is_multiple_of(2), "created": 1_700_000_000 + number,
            "address": {"street": format!("{} Long Street", number % 300), "zip": format!("{:05}", number % 99_991)},
            "stock": fourth % 1_000, "amount": (number * 37 % 40_000) as f64 / 4.0,
            "kind": format!("kind-{}", fourth % 10), "shop": format!("shop-{}", number * 7 % 1_000),
            "weight": fourth, "lines": (0..LINE_COUNT).map(|line| self.line(number, line)).collect::<Vec<_>>(),
            "note": "",
        });
        let missing = ITEM_BYTES - object.to_string().len();
        object["note"] = prose(number, missing).into();
        Item { id, partition_key, text: object.to_string() }
    }

    fn line(&self, number: u64, line: u64) -> Value {
        let place = (number * LINE_COUNT + line) * self.multipliers[0] % self.count;
        json!({"sku": format!("sku-{place}"), "quantity": place % 10, "price": (place % 400) as f64 / 4.0})
    }

    /// The container's definition.
    pub(crate) fn container(name: &str) -> Value {
        let excluded = NOT_INDEXED.iter().chain(&["/\"_etag\"/?"]).map(|path| json!({"path": path}));
        json!({
            "id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
            "indexingPolicy": {
                "indexingMode": "consistent", "automatic": true, "includedPaths": [{"path": "/*"}],
                "excludedPaths": excluded.collect::<Vec<_>>(),
            },
        })
    }
}

fn common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { common_divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// How many documents a value of a property has: the fewest and the most.
    fn check(property: &str, expected: (usize, usize)) {
        for count in [1_000, 3_000] {
            let documents = Documents::new(count).expect("an even count");
            let mut values = BTreeMap::<String, usize>::new();
            for number in 0..count {
                let text = documents.document(number).text;
                assert_eq!(text.len(), ITEM_BYTES);
                let document: Value = serde_json::from_str(&text).expect("a document is JSON");
                assert_eq!(document.as_object().map(serde_json::Map::len), Some(20));
                *values.entry(document[property].to_string()).or_default() += 1;
            }
            let sizes = (values.values().min().copied(), values.values().max().copied());
            assert_eq!(sizes, (Some(expected.0), Some(expected.1)), "{property} of {count}");
        }
    }

    #[test]
    fn values_have_the_promised_number_of_documents() {
        check("name", (1, 1));
        check("level", (1, 1));
        check("score", (1, 1));
        check("weight", (1, 1));
        check("city", (100, 100));
    }
}
