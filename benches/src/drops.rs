//! What does it cost to remove a large container, and how soon is its space free?
//!
//! A container of many documents is removed beside a smaller one that stays. Watched are the bytes of the folder, the CPU of
//! the server, and what it writes, from the request until nothing changes any more.
//! Invariants
//! - What stays is asked for afterwards, and is there.

use crate::Plan;
use crate::items::{CONTAINER, Signer, item};
use crate::load;
use crate::process::Server;
use crate::report::{Bound, Report, Table};
use crate::space::bytes_below;
use crate::writes::{load_items, setup};
use serde_json::json;
use std::time::{Duration, Instant};

/// How long a removal is watched, and how often one looks.
const WATCH_MAX: Duration = Duration::from_secs(40);
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// What is freed counts as all of it from here on: bounds between tables stay with what lives.
const FREED_SHARE: f64 = 0.95;
/// Preallocated journals are no data.
const JOURNAL_BYTES: f64 = (64 << 20) as f64;

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let count: u64 = if plan.quick { 50_000 } else { 200_000 };
    let columns = ["beside it", "MB before", "MB at most", "MB after", "s until free", "CPU s", "MB written"];
    let title = format!("Removing a container of {count} documents of 1 KB, everything indexed");
    let mut table = Table::new(&title, &columns);
    let (mut seconds, mut cpu) = (0.0f64, 0.0f64);
    for staying in [0, count / 4, count * 2] {
        let removal = remove(plan, count, staying)?;
        seconds = seconds.max(removal.seconds);
        cpu = cpu.max(removal.cpu);
        let Removal { before, most, after, written, .. } = removal;
        let values = [before / 1e6, most / 1e6, after / 1e6, removal.seconds, removal.cpu, written / 1e6];
        table.row(&[&format!("{staying} documents")], &values);
    }
    table.print();
    report.goal("removing a container: seconds until its space is free", seconds, Bound::AtMost(10.0));
    report.goal("removing a container: CPU seconds", cpu, Bound::AtMost(2.0));
    Ok(())
}

struct Removal {
    before: f64,
    most: f64,
    after: f64,
    seconds: f64,
    cpu: f64,
    written: f64,
}

fn remove(plan: &Plan, count: u64, staying: u64) -> anyhow::Result<Removal> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    setup(&server)?;
    let signer = Signer::new()?;
    let made = load::once(server.address, &signer.container("large", None, &json!({}))?)?;
    anyhow::ensure!(load::status_of(&made) == 201, "setup: {}", String::from_utf8_lossy(&made));
    load_items(&server, "dbs/bench/colls/large", count - staying / 2, item)?;
    load_items(&server, CONTAINER, staying, item)?;
    // The two are mixed in some tables.
    load_items(&server, "dbs/bench/colls/large", staying / 2, |number| item(count - staying / 2 + number))?;
    let usage = server.usage_when_quiet()?;
    let (before, written) = (bytes_below(&data)?, server.written_bytes()?);
    let signer = Signer::new()?;
    let began = Instant::now();
    let answer = load::once(server.address, &signer.request("DELETE", "dbs/bench/colls/large", "", "")?)?;
    anyhow::ensure!(load::status_of(&answer) == 204, "remove: {}", String::from_utf8_lossy(&answer));
    // What the container took, as a share of all documents.
    let removed = (before - JOURNAL_BYTES).max(0.0) * count as f64 / (count + staying) as f64;
    let (mut most, mut seconds) = (before, f64::INFINITY);
    while began.elapsed() < WATCH_MAX && seconds.is_infinite() {
        std::thread::sleep(LOOK_INTERVAL);
        let now = bytes_below(&data)?;
        most = most.max(now);
        if before - now >= removed * FREED_SHARE {
            seconds = began.elapsed().as_secs_f64();
        }
    }
    let cpu = server.usage_when_quiet()?.since(usage).0;
    let (after, written) = (bytes_below(&data)?, server.written_bytes()? - written);
    if staying > 0 {
        let read = Signer::new()?.reads(staying - 1..staying)?;
        let answer = load::once(server.address, &read[0])?;
        anyhow::ensure!(load::status_of(&answer) == 200, "what stays: {}", String::from_utf8_lossy(&answer));
    }
    server.kill()?;
    Ok(Removal { before, most, after, seconds, cpu, written })
}
