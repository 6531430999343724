//! What does an index take on disk, and how much is written for it, for documents of three kinds?
//!
//! The same load twice, with the default policy and with no index at all: the difference is the index. Flat business
//! records, deeply nested documents, and long text; all of them different from each other in most values. PostgreSQL's
//! table and its GIN index over the same documents stand beside.
//! Invariants
//! - Sizes are those after a clean stop; what was written (`write_bytes` of `/proc/PID/io`, of the server's process) is
//!   read after the load has settled, right before it.

use crate::Plan;
use crate::items::{CONTAINER, Item, Signer, prose};
use crate::load;
use crate::postgres::Postgres;
use crate::process::Server;
use crate::report::{Bound, Report, Table};
use crate::writes::{LOAD_UNIT, copy_line, load_items};
use serde_json::{Value, json};
use std::path::Path;

/// A kind of documents.
struct Kind {
    name: &'static str,
    item: fn(u64) -> Item,
    /// Documents of a run that takes its time.
    count: u64,
}

const KINDS: [Kind; 3] = [
    Kind { name: "flat business records", item: flat, count: 100_000 },
    Kind { name: "deeply nested", item: nested, count: 100_000 },
    Kind { name: "long text", item: long_text, count: 20_000 },
];

/// What a load left behind.
struct Left {
    disk: f64,
    index: f64,
    written: f64,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let postgres = Postgres::start().ok();
    let mut rows = Vec::new();
    for kind in KINDS {
        let count = if plan.quick { kind.count / 10 } else { kind.count };
        let json: usize = (0..count).map(|number| (kind.item)(number).text.len()).sum();
        let json = json as f64;
        let [indexed, bare] =
            [true, false].map(|is_indexed| load_kind(plan, &kind, count, is_indexed).map(|left| left / json));
        let (indexed, bare) = (indexed?, bare?);
        let theirs = match &postgres {
            Some(postgres) => postgres_sizes(postgres, &kind, count)?.map(|bytes| bytes / json),
            None => [f64::NAN; 2],
        };
        report.goal(
            format!("disk / JSON after a clean stop, {}", kind.name),
            indexed.disk,
            Bound::AtMost(1.5),
        );
        let per_document = json / count as f64;
        let values = [
            per_document,
            indexed.disk,
            indexed.index,
            indexed.index * per_document,
            indexed.written,
            bare.written,
            theirs[0],
            theirs[1],
        ];
        rows.push((kind.name, values));
    }
    let mut table = Table::new("Disk and bytes written, each divided by the bytes of JSON", &COLUMNS);
    for (name, values) in rows {
        table.row(&[name], &values);
    }
    table.print();
    Ok(())
}

const COLUMNS: [&str; 9] = [
    "documents",
    "bytes each",
    "disk",
    "index",
    "index bytes each",
    "written",
    "written without index",
    "PostgreSQL disk",
    "PostgreSQL index",
];

impl std::ops::Div<f64> for Left {
    type Output = Left;

    fn div(self, json: f64) -> Left {
        Left { disk: self.disk / json, index: self.index / json, written: self.written / json }
    }
}

fn load_kind(plan: &Plan, kind: &Kind, count: u64, is_indexed: bool) -> anyhow::Result<Left> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    let signer = Signer::new()?;
    let mut container =
        json!({"id": "items", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    if !is_indexed {
        container["indexingPolicy"] = json!({"indexingMode": "none", "automatic": false});
    }
    let setup = [("dbs", json!({"id": "bench"})), ("dbs/bench/colls", container)];
    for (path, body) in setup {
        let answer = load::once(server.address, &signer.request("POST", path, "", &body.to_string())?)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    let before = server.written_bytes()?;
    load_items(&server, CONTAINER, count, kind.item)?;
    server.usage_when_quiet()?;
    let written = server.written_bytes()? - before;
    server.terminate()?;
    Ok(Left { disk: bytes_below(&data)?, index: bytes_below(&data.join("set"))?, written })
}

/// Bytes of all files below a folder; they may come and go meanwhile.
pub(crate) fn bytes_below(folder: &Path) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(sum) };
    for entry in entries {
        let entry = entry?;
        let Ok(about) = entry.metadata() else { continue };
        sum += if about.is_dir() { bytes_below(&entry.path())? } else { about.len() as f64 };
    }
    Ok(sum)
}

/// Bytes of PostgreSQL's table with everything that belongs to it, and of its GIN index.
fn postgres_sizes(postgres: &Postgres, kind: &Kind, count: u64) -> anyhow::Result<[f64; 2]> {
    let mut client = postgres.connect()?;
    client.execute("CREATE TABLE items (id text PRIMARY KEY, pk text, doc jsonb)")?;
    client.execute("CREATE INDEX items_doc ON items USING gin (doc jsonb_path_ops)")?;
    let chunk = |first: u64| {
        let lines = (first..count.min(first + LOAD_UNIT)).map(|number| copy_line(&(kind.item)(number)));
        lines.collect::<String>()
    };
    client.copy_in("items", (0..count).step_by(LOAD_UNIT as usize).map(chunk))?;
    client.execute("VACUUM items")?;
    let mut sizes = [f64::NAN; 2];
    let queries = ["pg_total_relation_size('items')", "pg_relation_size('items_doc')"];
    for (size, query) in sizes.iter_mut().zip(queries) {
        let statement = client.prepare(&format!("SELECT {query} AS value"))?;
        let rows = client.query(&statement, &[])?;
        *size = rows.first().and_then(Value::as_f64).unwrap_or(f64::NAN);
    }
    client.execute("DROP TABLE items")?;
    Ok(sizes)
}

fn item(number: u64, mut object: Value) -> Item {
    let (id, partition_key) = (format!("item-{number:010}"), format!("key-{}", number % 500));
    object["id"] = id.as_str().into();
    object["pk"] = partition_key.as_str().into();
    Item { id, partition_key, text: object.to_string() }
}

/// An order of a shop: 30 properties, half of them with few values.
fn flat(number: u64) -> Item {
    let mixed = number.wrapping_mul(2_654_435_761) % 1_000_003;
    let mut object = json!({
        "customer": format!("customer-{}", mixed % 5_000), "order": format!("{number:09}"), "total": mixed as f64 / 100.0,
        "currency": "EUR", "status": format!("status-{}", number % 6), "paid": number.is_multiple_of(2),
        "created": 1_700_000_000 + number * 7, "shipped": null, "warehouse": number % 12, "priority": number % 4,
        "email": format!("someone{mixed}@mail{}.example", number % 40), "phone": format!("+41{:09}", mixed * 911),
        "street": format!("{} Long Street", number % 300), "city": format!("city-{}", mixed % 900),
        "zip": format!("{:05}", mixed % 99_991), "country": format!("country-{}", number % 60),
    });
    for field in 0..12 {
        object[format!("field{field}")] = json!(mixed.wrapping_mul(field + 3) % 1_000);
    }
    item(number, object)
}

/// A measurement of a machine: eight levels, arrays of objects.
fn nested(number: u64) -> Item {
    let mixed = number.wrapping_mul(1_640_531_527) % 1_000_003;
    let mut inner = json!({"value": mixed, "unit": "mm", "flags": [number % 2, number % 3, number % 5]});
    for level in 0..6 {
        inner = json!({"level": level, "name": format!("part-{}", mixed % 997), "child": inner});
    }
    let reading = |place: u64| {
        json!({"at": 1_700_000_000 + number * 60 + place, "sensor": format!("s{place}"),
               "range": {"low": place, "high": mixed % 1_000 + place}})
    };
    let readings: Vec<Value> = (0..5).map(reading).collect();
    item(number, json!({"machine": format!("machine-{}", number % 200), "tree": inner, "readings": readings}))
}

/// An article: a title, a few tags, 8 KB of text.
fn long_text(number: u64) -> Item {
    let object = json!({
        "title": format!("Article {number} about {}", prose(number, 24)), "author": format!("author-{}", number % 300),
        "tags": [format!("tag-{}", number % 90), format!("tag-{}", number % 70)], "text": prose(number, 8_000),
        "summary": prose(number + 1, 400),
    });
    item(number, object)
}
