//! The work that a server does beside requests, one entry each: what it needs, how it begins, when it has ended.

use crate::caller::Caller;
use crate::items::{Signer, item};
use crate::load;
use crate::process::{Server, metric};
use crate::writes::load_items;
use astrarium_wire::headers;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A kind of work.
pub(super) struct Work {
    pub(super) name: &'static str,
    /// Makes what it needs.
    pub(super) prepare: fn(&Server, &Task) -> anyhow::Result<()>,
    pub(super) begin: fn(&Task) -> anyhow::Result<()>,
    pub(super) is_done: fn(&Task) -> anyhow::Result<bool>,
}

/// A work in some round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub(super) address: SocketAddr,
    pub(super) round: usize,
    /// Documents of the container that it is about.
    pub(super) size: u64,
}

impl Task {
    fn path(&self, name: &str) -> String {
        format!("dbs/bench/colls/{}", self.id(name))
    }

    fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.round)
    }

    /// Makes a container with documents.
    fn container(&self, server: &Server, name: &str, more: &Value) -> anyhow::Result<()> {
        self.ask(201, &Signer::new()?.container(&self.id(name), None, more)?)?;
        load_items(server, &self.path(name), self.size, item)?;
        Ok(())
    }

    fn ask(&self, status: u16, request: &[u8]) -> anyhow::Result<()> {
        let answer = load::once(self.address, request)?;
        anyhow::ensure!(load::status_of(&answer) == status, "{}", String::from_utf8_lossy(&answer));
        Ok(())
    }
}

/// Documents that expire do so when the clock is moved beyond this, and not before.
const TTL_SECONDS: u64 = 3_600;

/// All of them.
pub(super) const WORKS: &[Work] = &[
    Work {
        name: "removing a container",
        prepare: |server, task| task.container(server, "removed", &json!({})),
        begin: |task| task.ask(204, &Signer::new()?.request("DELETE", &task.path("removed"), "", "")?),
        is_done: |task| Ok(metric(task.address, "astrarium_sweeps_waiting")? == 0.0),
    },
    Work {
        name: "building an index",
        prepare: |server, task| {
            task.container(server, "indexed", &json!({"indexingPolicy": excluding("/name/?")}))
        },
        begin: |task| {
            let container = json!({"id": task.id("indexed"), "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
                                   "indexingPolicy": excluding("/city/?")});
            task.ask(200, &Signer::new()?.request("PUT", &task.path("indexed"), "", &container.to_string())?)
        },
        is_done: |task| {
            let line = format!("{}: true\r\n", headers::POPULATE_QUOTA_INFO);
            let request = Signer::new()?.request("GET", &task.path("indexed"), &line, "")?;
            let mut caller = Caller::open(task.address)?;
            let progress = caller.expect(&[200], &request)?.header(headers::INDEX_TRANSFORMATION_PROGRESS)?;
            Ok(progress == "100")
        },
    },
    Work {
        name: "erasing what has expired",
        prepare: |server, task| task.container(server, "expired", &json!({"defaultTtl": TTL_SECONDS})),
        begin: |task| {
            let body = json!({"advanceSeconds": TTL_SECONDS + 60}).to_string();
            task.ask(200, &Signer::new()?.request("POST", "_admin/clock", "", &body)?)
        },
        is_done: |task| {
            let erased = metric(task.address, "astrarium_expired_documents_total")?;
            Ok(erased >= ((task.round as u64 + 1) * task.size) as f64)
        },
    },
];

fn excluding(path: &str) -> Value {
    json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": path}]})
}
