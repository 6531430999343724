//! The items of all questions, and the signed requests that read and create them.
//!
//! An item has 20 properties and exactly 1,024 bytes, and is a function of its number. Reads and creates of one
//! container differ in little else, so requests are made in a loop without allocating much.

use anyhow::Context as _;
use astrarium_env::Env;
use astrarium_wire::address::Address;
use astrarium_wire::authorization::{MasterKey, signing_payload};
use astrarium_wire::key_text::EMULATOR_KEY;
use astrarium_wire::{date, headers, percent};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Bytes of an item's text.
pub(crate) const ITEM_BYTES: usize = 1_024;
/// Partition keys in use: each has many items, as in most applications.
const PARTITION_KEY_COUNT: u64 = 500;
const COLORS: [&str; 3] = ["red", "green", "blue"];
pub(crate) const CONTAINER: &str = "dbs/bench/colls/items";

/// An item that a client would send.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) partition_key: String,
    pub(crate) text: String,
}

/// The item of a number.
pub(crate) fn item(number: u64) -> Item {
    let id = format!("item-{number:010}");
    let partition_key = format!("key-{}", number % PARTITION_KEY_COUNT);
    let mut object = json!({
        "id": id, "pk": partition_key, "name": format!("name-{number:08}"), "number": number,
        "score": (number.wrapping_mul(2_654_435_761) % 100_000) as f64 / 8.0, "grade": number % 10,
        "city": format!("city-{}", number % 100), "active": number.is_multiple_of(3), "parent": null,
        "tags": [format!("a{}", number % 7), format!("b{}", number % 11)],
        "address": {"street": format!("street {}", number % 1_000), "zip": format!("{:05}", number % 99_999)},
        "created": 1_700_000_000 + number, "price": (number % 10_000) as f64 / 100.0, "stock": number % 50,
        "color": COLORS[(number % 3) as usize], "size": number % 7, "weight": 1.5,
        "rating": (number % 50) as f64 / 10.0, "country": "somewhere", "note": "",
    });
    let missing = ITEM_BYTES - object.to_string().len();
    object["note"] = prose(number, missing).into();
    Item { id, partition_key, text: object.to_string() }
}

/// Something that looks like text and does not compress to nothing.
pub(crate) fn prose(seed: u64, length: usize) -> String {
    let mut text = String::with_capacity(length + 8);
    let mut random = seed;
    while text.len() < length {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "{:x} ", random >> 40);
    }
    text.truncate(length);
    text
}

/// Signs requests to one server.
pub(crate) struct Signer {
    key: MasterKey,
    date: String,
}

impl Signer {
    /// With the well-known key and the present time, so good for the next quarter of an hour.
    pub(crate) fn new() -> anyhow::Result<Signer> {
        let now = i64::try_from(Env::system().now_seconds()).context("read the clock")?;
        Ok(Signer { key: MasterKey::from_base64(EMULATOR_KEY)?, date: date::format_rfc1123(now) })
    }

    /// The request that makes the database, and the one that makes the container.
    pub(crate) fn setup(&self) -> anyhow::Result<[Vec<u8>; 2]> {
        let container =
            json!({"id": "items", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        Ok([
            self.request("POST", "dbs", "", &json!({"id": "bench"}).to_string())?,
            self.request("POST", "dbs/bench/colls", "", &container.to_string())?,
        ])
    }

    /// The request that makes a container; with throughput it may get several ranges. `more` are further parts of its definition.
    pub(crate) fn container(
        &self,
        id: &str,
        throughput: Option<u32>,
        more: &Value,
    ) -> anyhow::Result<Vec<u8>> {
        let mut container =
            json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        if let (Some(container), Some(more)) = (container.as_object_mut(), more.as_object()) {
            container.extend(more.clone());
        }
        let line = throughput.map(|units| format!("{}: {units}\r\n", headers::OFFER_THROUGHPUT));
        self.request("POST", "dbs/bench/colls", &line.unwrap_or_default(), &container.to_string())
    }

    /// Point reads of items.
    pub(crate) fn reads(&self, numbers: impl Iterator<Item = u64>) -> anyhow::Result<Vec<Vec<u8>>> {
        self.reads_of(CONTAINER, numbers)
    }

    /// Point reads of the items of a container.
    pub(crate) fn reads_of(
        &self,
        container: &str,
        numbers: impl Iterator<Item = u64>,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let read = |item: Item| {
            let path = format!("{container}/docs/{}", item.id);
            self.request("GET", &path, &partition_key_line(&item), "")
        };
        numbers.map(|number| read(item(number))).collect()
    }

    /// Creates of items.
    pub(crate) fn creates(&self, numbers: impl Iterator<Item = u64>) -> anyhow::Result<Vec<Vec<u8>>> {
        self.creates_in(CONTAINER, numbers)
    }

    /// Creates of items in a container.
    pub(crate) fn creates_in(
        &self,
        container: &str,
        numbers: impl Iterator<Item = u64>,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let path = format!("{container}/docs");
        let create = |item: Item| self.request("POST", &path, &partition_key_line(&item), &item.text);
        numbers.map(|number| create(item(number))).collect()
    }

    /// One bulk request that creates items in a container, each for itself.
    pub(crate) fn bulk(&self, container: &str, items: impl Iterator<Item = Item>) -> anyhow::Result<Vec<u8>> {
        let operation = |item: Item| {
            let key = json!([item.partition_key]).to_string();
            let key = Value::from(key);
            format!("{{\"operationType\":\"Create\",\"partitionKey\":{key},\"resourceBody\":{}}}", item.text)
        };
        let operations: Vec<String> = items.map(operation).collect();
        let lines = format!(
            "content-type: application/json\r\n{}: True\r\n{}: False\r\n{}: True\r\n{}: 0\r\n",
            headers::IS_BATCH_REQUEST,
            headers::BATCH_ATOMIC,
            headers::BATCH_CONTINUE_ON_ERROR,
            headers::PARTITION_KEY_RANGE_ID,
        );
        self.request("POST", &format!("{container}/docs"), &lines, &format!("[{}]", operations.join(",")))
    }

    /// A request; `more_lines` are header lines with their ends.
    pub(crate) fn request(
        &self,
        verb: &str,
        path: &str,
        more_lines: &str,
        body: &str,
    ) -> anyhow::Result<Vec<u8>> {
        let target = format!("/{path}");
        let address = Address::parse(&target, None).with_context(|| format!("address {target}"))?;
        let payload = signing_payload(verb, &address, Some(&self.date), None);
        let token = format!("type=master&ver=1.0&sig={}", self.key.sign_base64(payload.as_bytes()));
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let text = format!(
            "{verb} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
             accept: application/json\r\nauthorization: {}\r\n{more_lines}{length}\r\n{body}",
            self.date,
            percent::encode_component(&token),
        );
        Ok(text.into_bytes())
    }
}

fn partition_key_line(item: &Item) -> String {
    format!("{}: [\"{}\"]\r\n", headers::PARTITION_KEY, item.partition_key)
}
