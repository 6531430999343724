//! What do very many containers, and very many logical partitions, take in memory and time?
//!
//! Ten thousand containers are made, written to and read, so that all of them are open at once; then the server is started
//! anew, by a kill and by a clean stop, and all of them are read again. A hundred thousand logical partitions are written into
//! one container of eight ranges. Memory is the server's resident memory when it is quiet.
//! Invariants
//! - Whatever was written is read back.

use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load, Outcome};
use crate::process::Server;
use crate::report::{Bound, Report, Table};
use astrarium_wire::headers;
use serde_json::json;
use std::time::Duration;

const CONNECTIONS: usize = 16;
const DATABASE_COUNT: usize = 10;
const TIME_MAX: Duration = Duration::from_mins(10);
/// Goals of our own, in kilobytes of memory each.
const CONTAINER_KILOBYTES_MAX: f64 = 8.0;
const PARTITION_KILOBYTES_MAX: f64 = 1.0;
const START_MILLIS_MAX: f64 = 2_000.0;

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    containers(plan, report)?;
    partitions(plan, report)
}

/// Sends requests, each once, and all of them answered.
fn all(server: &Server, requests: Vec<Vec<u8>>, status: u16) -> anyhow::Result<Outcome> {
    let count = requests.len();
    let load = Load { requests, connections: CONNECTIONS, time_max: TIME_MAX, repeat: false, status };
    let outcome = load::run(server.address, load)?;
    anyhow::ensure!(outcome.count == count, "only {} of {count} requests were answered", outcome.count);
    Ok(outcome)
}

fn container_of(number: usize) -> String {
    format!("dbs/many-{}/colls/container-{number}", number % DATABASE_COUNT)
}

fn containers(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let count = if plan.quick { 1_000 } else { 10_000 };
    let columns = ["containers", "ready ms", "memory MB", "KB a container", "requests/s", "CPU us a request"];
    let mut table = Table::new("Very many containers, each with a document", &columns);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    let empty = server.resident_megabytes()?;
    let signer = Signer::new()?;
    let databases = (0..DATABASE_COUNT).map(|number| {
        signer.request("POST", "dbs", "", &json!({"id": format!("many-{number}")}).to_string())
    });
    all(&server, databases.collect::<anyhow::Result<_>>()?, 201)?;
    table.row(&["none"], &[millis(&server), empty]);
    let make = |number: usize| {
        let body = json!({"id": format!("container-{number}"),
                          "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        signer.request("POST", &format!("dbs/many-{}/colls", number % DATABASE_COUNT), "", &body.to_string())
    };
    let line = format!("{}: [\"a\"]\r\n", headers::PARTITION_KEY);
    let body = json!({"id": "1", "pk": "a", "name": "somebody", "number": 1}).to_string();
    let write =
        |number: usize| signer.request("POST", &format!("{}/docs", container_of(number)), &line, &body);
    let read = |number: usize| signer.request("GET", &format!("{}/docs/1", container_of(number)), &line, "");
    let mut row = |name: &str, server: &Server, requests: Vec<Vec<u8>>, status: u16| -> anyhow::Result<f64> {
        let before = server.usage()?;
        let outcome = all(server, requests, status)?;
        let cpu = server.usage()?.since(before).micros_per(count);
        server.usage_when_quiet()?;
        let memory = server.resident_megabytes()?;
        let each = (memory - empty) * 1024.0 / count as f64;
        table.row(&[name], &[millis(server), memory, each, count as f64 / outcome.seconds, cpu]);
        Ok(each)
    };
    let requests = |of: &dyn Fn(usize) -> anyhow::Result<Vec<u8>>| -> anyhow::Result<Vec<Vec<u8>>> {
        (0..count).map(of).collect()
    };
    row(&format!("{count} made"), &server, requests(&make)?, 201)?;
    row("written to", &server, requests(&write)?, 201)?;
    row("read", &server, requests(&read)?, 200)?;
    server.kill()?;
    let server = Server::start(&plan.server, &data)?;
    let after_kill = millis(&server);
    row("read after a kill", &server, requests(&read)?, 200)?;
    server.terminate()?;
    let server = Server::start(&plan.server, &data)?;
    let after_stop = millis(&server);
    let opened = row("read after a clean stop", &server, requests(&read)?, 200)?;
    server.terminate()?;
    table.print();
    report.goal(
        format!("{count} containers: start after a kill, ms"),
        after_kill,
        Bound::AtMost(START_MILLIS_MAX),
    );
    report.goal(
        format!("{count} containers: start after a clean stop, ms"),
        after_stop,
        Bound::AtMost(START_MILLIS_MAX),
    );
    let bound = Bound::AtMost(CONTAINER_KILOBYTES_MAX);
    report.goal(format!("{count} containers open: KB of memory each"), opened, bound);
    Ok(())
}

fn millis(server: &Server) -> f64 {
    server.ready_after.as_secs_f64() * 1e3
}

fn partitions(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let count: usize = if plan.quick { 10_000 } else { 100_000 };
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    let signer = Signer::new()?;
    let [database, _] = signer.setup()?;
    all(&server, vec![database], 201)?;
    all(&server, vec![signer.container("items", Some(48_000), &json!({}))?], 201)?;
    let key_line = |number: usize| format!("{}: [\"tenant-{number}\"]\r\n", headers::PARTITION_KEY);
    let write = |number: usize| {
        let body = json!({"id": "1", "pk": format!("tenant-{number}"), "name": format!("name {number}"), "number": number});
        signer.request("POST", "dbs/bench/colls/items/docs", &key_line(number), &body.to_string())
    };
    let read = |number: usize| signer.request("GET", "dbs/bench/colls/items/docs/1", &key_line(number), "");
    let empty = server.resident_megabytes()?;
    let columns = ["logical partitions", "ready ms", "memory MB", "KB a partition", "requests/s"];
    let mut table = Table::new("Very many logical partitions, each with a document, in 8 ranges", &columns);
    let mut row = |name: &str, server: &Server, outcome: Option<Outcome>| -> anyhow::Result<f64> {
        server.usage_when_quiet()?;
        let memory = server.resident_megabytes()?;
        let each = (memory - empty) * 1024.0 / count as f64;
        let rate = outcome.map_or(f64::NAN, |outcome| count as f64 / outcome.seconds);
        table.row(&[name], &[millis(server), memory, each, rate]);
        Ok(each)
    };
    row("none", &server, None)?;
    let written = all(&server, (0..count).map(write).collect::<anyhow::Result<_>>()?, 201)?;
    row(&format!("{count} written"), &server, Some(written))?;
    server.terminate()?;
    let server = Server::start(&plan.server, &data)?;
    let done = all(&server, (0..count).map(read).collect::<anyhow::Result<_>>()?, 200)?;
    let each = row("read after a clean stop", &server, Some(done))?;
    server.terminate()?;
    table.print();
    let bound = Bound::AtMost(PARTITION_KILOBYTES_MAX);
    report.goal(format!("{count} logical partitions read: KB of memory each"), each, bound);
    Ok(())
}
