//! How soon is the server ready, and what does it use when nobody asks anything?

use crate::items::Signer;
use crate::process::Server;
use crate::report::{Bound, Report, Table, median};
use crate::{Plan, reads};
use std::path::Path;
use std::time::Duration;

/// How long an idle server is watched.
const IDLE_TIME: Duration = Duration::from_secs(2);

/// What one start showed.
struct Start {
    ready_milliseconds: f64,
    resident_megabytes: f64,
    idle_cpu_percent: f64,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let empty = on_empty_folders(plan)?;
    let item_count: u64 = if plan.quick { 10_000 } else { 100_000 };
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    reads::fill(&server, &Signer::new()?, item_count)?;
    server.kill()?;
    let (killed, server) = observe(plan, &data)?;
    server.terminate()?;
    let (clean, server) = observe(plan, &data)?;
    server.terminate()?;
    let columns = ["folder", "ready ms", "memory MB", "idle CPU %"];
    let mut table = Table::new("Start to ready, memory and CPU when idle for 2 s", &columns);
    let loaded = format!("{item_count} items, after a kill");
    let stopped = format!("{item_count} items, after a clean stop");
    for (name, start) in [("empty", &empty), (loaded.as_str(), &killed), (stopped.as_str(), &clean)] {
        table.row(&[name], &[start.ready_milliseconds, start.resident_megabytes, start.idle_cpu_percent]);
    }
    table.print();
    report.goal("start on an empty folder, ms", empty.ready_milliseconds, Bound::AtMost(100.0));
    report.goal("start after a kill, ms", killed.ready_milliseconds, Bound::AtMost(500.0));
    report.goal("start after a clean stop, ms", clean.ready_milliseconds, Bound::AtMost(1_000.0));
    report.goal("memory when idle on an empty folder, MB", empty.resident_megabytes, Bound::AtMost(60.0));
    report.goal("CPU when idle, %", empty.idle_cpu_percent, Bound::AtMost(0.5));
    Ok(())
}

fn on_empty_folders(plan: &Plan) -> anyhow::Result<Start> {
    let mut ready = Vec::new();
    for _ in 0..plan.rounds * 2 {
        let folder = tempfile::tempdir()?;
        let server = Server::start(&plan.server, &folder.path().join("data"))?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        server.terminate()?;
    }
    let folder = tempfile::tempdir()?;
    let (last, server) = observe(plan, &folder.path().join("data"))?;
    server.terminate()?;
    Ok(Start { ready_milliseconds: median(ready), ..last })
}

/// Starts a server and watches it doing nothing.
fn observe(plan: &Plan, data: &Path) -> anyhow::Result<(Start, Server)> {
    let server = Server::start(&plan.server, data)?;
    let before = server.usage_when_quiet()?;
    std::thread::sleep(IDLE_TIME);
    let used = server.usage()?.since(before);
    let start = Start {
        ready_milliseconds: server.ready_after.as_secs_f64() * 1e3,
        resident_megabytes: server.resident_megabytes()?,
        idle_cpu_percent: used.0 / IDLE_TIME.as_secs_f64() * 100.0,
    };
    Ok((start, server))
}
