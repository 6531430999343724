//! What the machine allows without the database: HTTP alone, the engine alone, fjall alone.
//!
//! Each runs in a process of its own, this program with a hidden subcommand. The engines' limits print one line of JSON.

pub(crate) mod bare_engine;
pub(crate) mod bare_fjall;
pub(crate) mod bare_http;

use crate::items::{self, Item};
use anyhow::Context as _;
use astrarium_keys::body::{Body, HEADER_LENGTH, Header, IndexDirective};
use astrarium_keys::{document, feed, number};
use astrarium_partition::{Component, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind};
use astrarium_value::PropertyPath;
use bytes::Bytes;
use clap::Args;
use serde_json::{Value, json};
use std::process::Command;

/// What a limit of storage is to do.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct EngineRun {
    /// Who commits at the same time.
    pub(crate) submitters: usize,
    /// Items to a synced batch; only for fjall alone.
    pub(crate) group_size: usize,
    /// How long.
    pub(crate) seconds: f64,
    /// Items at most.
    pub(crate) count: u64,
}

/// What a limit of storage did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EngineOutcome {
    pub(crate) count: u64,
    pub(crate) groups: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) prepare_micros: f64,
    pub(crate) write_micros: f64,
    pub(crate) publish_micros: f64,
}

impl EngineOutcome {
    /// Runs a limit in a process of its own.
    pub(crate) fn measure(limit: &str, run: &EngineRun) -> anyhow::Result<EngineOutcome> {
        let output = Command::new(std::env::current_exe()?)
            .arg(limit)
            .args([run.submitters, run.group_size].map(|number| number.to_string()))
            .args([run.seconds.to_string(), run.count.to_string()])
            .output()
            .context("run a limit")?;
        anyhow::ensure!(output.status.success(), "{limit}: {}", String::from_utf8_lossy(&output.stderr));
        let line: Value = serde_json::from_slice(&output.stdout).context("read what a limit printed")?;
        let number = |name: &str| line[name].as_f64().unwrap_or(f64::NAN);
        Ok(EngineOutcome {
            count: number("count") as u64,
            groups: number("groups") as u64,
            seconds: number("seconds"),
            cpu_seconds: number("cpu"),
            p50_micros: number("p50"),
            p99_micros: number("p99"),
            prepare_micros: number("prepare"),
            write_micros: number("write"),
            publish_micros: number("publish"),
        })
    }

    fn print(&self) {
        let line = json!({
            "count": self.count, "groups": self.groups, "seconds": self.seconds, "cpu": self.cpu_seconds,
            "p50": self.p50_micros, "p99": self.p99_micros, "prepare": self.prepare_micros,
            "write": self.write_micros, "publish": self.publish_micros,
        });
        println!("{line}");
    }

    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.count as f64
    }

    pub(crate) fn group_size(&self) -> f64 {
        self.count as f64 / self.groups as f64
    }
}

/// The shard that the server would give its first container.
const SHARD: u64 = 1;

/// The keys and values that a create of an item writes.
struct Written {
    body: (Bytes, Bytes),
    directory: (Bytes, Bytes),
    feed: (Bytes, Bytes),
}

/// What the server would write for the items, in order.
fn written(count: u64) -> anyhow::Result<Vec<Written>> {
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/pk")?],
        kind: PartitionKind::Hash,
        version: Some(HashVersion::V2),
        system_key: false,
    };
    let write = |at: u64| {
        let Item { id, partition_key, text } = items::item(at);
        let partition = PartitionKey::new(vec![Component::String(partition_key.as_str().into())]);
        let key = document::document_key(SHARD, &definition.effective(&partition), &partition, &id);
        let suffix = key.slice(document::SHARD_PREFIX_LENGTH..);
        let header = Header {
            lsn: 0,
            sequence: 0,
            number: at + 1,
            etag: at,
            timestamp: 1_700_000_000,
            ttl: None,
            index_directive: IndexDirective::Default,
        };
        let mut bytes = vec![0; HEADER_LENGTH];
        bytes.extend_from_slice(text.as_bytes());
        Written {
            body: (key, Body::in_place(header, bytes).into_bytes()),
            directory: (number::number_key(SHARD, at + 1), suffix.clone()),
            feed: (feed::feed_key(SHARD, at + 1, 0), suffix),
        }
    };
    Ok((0..count).map(write).collect())
}
