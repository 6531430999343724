//! What memory a thousand compiled scripts take: the server's resident memory before and after each ran once.
//!
//! A server that has been started anew has compiled nothing. One procedure is executed first, as often, so that threads,
//! sandboxes and the allocator have what they need; what comes on top are the scripts.

use super::{execution, make_container, make_script};
use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load};
use crate::process::Server;
use crate::report::{Bound, Report, Table};
use std::fmt::Write as _;
use std::time::Duration;

/// A container may have a hundred procedures.
const CONTAINER_COUNT: usize = 10;
const SCRIPT_COUNT: usize = 100;
/// Statements of each script, none of them like those of another.
const STATEMENT_COUNT: usize = 40;
const CONNECTIONS: usize = 4;
/// A goal of our own: with it the cache, which is bounded, holds two thousand such scripts.
const KILOBYTES_MAX: f64 = 32.0;

/// Measures and prints.
pub(super) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let server = Server::start(&plan.server, &data)?;
    let signer = Signer::new()?;
    let mut source_bytes = 0;
    for container in 0..CONTAINER_COUNT {
        make_container(&server, &signer, &format!("scripts-{container}"))?;
        for script in 0..SCRIPT_COUNT {
            let source = source(container * SCRIPT_COUNT + script);
            source_bytes += source.len();
            make_script(
                &server,
                &signer,
                &format!("scripts-{container}"),
                "sprocs",
                &format!("script-{script}"),
                &source,
            )?;
        }
    }
    server.terminate()?;
    let server = Server::start(&plan.server, &data)?;
    let count = CONTAINER_COUNT * SCRIPT_COUNT;
    run(&server, (0..count).map(|_| (0, 0)))?;
    let before = server.resident_megabytes()?;
    run(&server, (0..count).map(|number| (number / SCRIPT_COUNT, number % SCRIPT_COUNT)))?;
    let after = server.resident_megabytes()?;
    server.terminate()?;
    let columns = ["scripts", "KB of source each", "before, MB", "after, MB", "KB a script"];
    let mut table = Table::new("Memory of compiled scripts", &columns);
    let kilobytes = (after - before) * 1024.0 / count as f64;
    let source = source_bytes as f64 / 1024.0 / count as f64;
    table.row(&[&count.to_string()], &[source, before, after, kilobytes]);
    table.print();
    report.goal("memory of a thousand compiled scripts: KB each", kilobytes, Bound::AtMost(KILOBYTES_MAX));
    Ok(())
}

/// Executes procedures, given by container and number.
fn run(server: &Server, procedures: impl Iterator<Item = (usize, usize)>) -> anyhow::Result<()> {
    let signer = Signer::new()?;
    let requests = procedures.map(|(container, script)| {
        execution(&signer, &format!("scripts-{container}"), &format!("script-{script}"), "some", "[1]")
    });
    let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
    let (count, time_max) = (requests.len(), Duration::from_mins(1));
    let load = Load { requests, connections: CONNECTIONS, time_max, repeat: false, status: 200 };
    let outcome = load::run(server.address, load)?;
    anyhow::ensure!(outcome.count == count, "only {} of {count} executions ended", outcome.count);
    server.usage_when_quiet()?;
    Ok(())
}

fn source(number: usize) -> String {
    let mut source = format!("function script{number}(input) {{\n    var sum = input;\n");
    for statement in 0..STATEMENT_COUNT {
        let _ = writeln!(
            source,
            "    sum += input * {} + 'name {number} {statement}'.length;",
            number + statement
        );
    }
    source.push_str("    getContext().getResponse().setBody(sum);\n}\n");
    source
}
