//! How fast are import and export, and how soon does the shell answer?
//!
//! A file of items is imported by the program itself, and the same items are written by the load generator, whose requests are ready before
//! the clock starts: that is the server's own rate of bulk writes. What was imported is exported again, into nothing, so that the disk has no
//! say. The shell is started with nothing to do, and with one query.
//! Invariants
//! - Every side starts with an empty server of its own, in turns, and each counts what is there in the end.
//! - The tool's memory is its peak, as the kernel counts it.

use crate::Plan;
use crate::items::{self, ITEM_BYTES, Signer, item};
use crate::load;
use crate::process::{self, Server};
use crate::report::{Bound, Report, Table, median};
use crate::writes::{load_items, setup};
use anyhow::Context as _;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the memory of a running tool is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Where the items are, for the tools.
const PLACE: &str = "bench/items";
const SHELL_STARTS: usize = 15;

/// What one run of a tool took.
#[derive(Debug, Clone, Copy)]
struct ToolRun {
    seconds: f64,
    cpu_micros: f64,
    peak_megabytes: f64,
    /// Bytes on its standard output.
    printed: u64,
}

/// What one round showed.
struct Round {
    bulk_rate: f64,
    import_rate: f64,
    import: ToolRun,
    export_rate: f64,
    export: ToolRun,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let count: u64 = if plan.quick { 50_000 } else { 1_000_000 };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("items.jsonl");
    write_items(&file, count)?;
    let rounds = (0..plan.rounds).map(|_| round(plan, &file, count)).collect::<anyhow::Result<Vec<_>>>()?;
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let title = format!("Import and export of {count} items of 1 KB as JSON lines");
    let mut table = Table::new(&title, &["what", "items/s", "MB/s", "tool CPU us/item", "tool MB at most"]);
    let megabytes = |rate: f64| rate * ITEM_BYTES as f64 / 1e6;
    table.row(&["bulk requests, ready made"], &[of(|r| r.bulk_rate), megabytes(of(|r| r.bulk_rate))]);
    let import = [of(|r| r.import.cpu_micros), of(|r| r.import.peak_megabytes)];
    table.row(
        &["astrarium import"],
        &[&[of(|r| r.import_rate), megabytes(of(|r| r.import_rate))], &import[..]].concat(),
    );
    let export = [of(|r| r.export.cpu_micros), of(|r| r.export.peak_megabytes)];
    let export_megabytes = of(|r| r.export.printed as f64 / r.export.seconds / 1e6);
    table.row(&["astrarium export"], &[&[of(|r| r.export_rate), export_megabytes], &export[..]].concat());
    table.print();
    let share = median(rounds.iter().map(|round| round.import_rate / round.bulk_rate));
    report.goal("import: rate / the server's rate of bulk requests", share, Bound::AtLeast(0.9));
    report.goal("import: memory at most, MB", of(|r| r.import.peak_megabytes), Bound::AtMost(128.0));
    report.goal("export: MB/s", export_megabytes, Bound::AtLeast(100.0));
    report.goal("export: memory at most, MB", of(|r| r.export.peak_megabytes), Bound::AtMost(128.0));
    shell(plan, report)
}

fn write_items(file: &Path, count: u64) -> anyhow::Result<()> {
    let mut lines = BufWriter::new(std::fs::File::create(file)?);
    for number in 0..count {
        writeln!(lines, "{}", item(number).text)?;
    }
    lines.into_inner()?.sync_all()?;
    Ok(())
}

fn round(plan: &Plan, file: &Path, count: u64) -> anyhow::Result<Round> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("bulk"))?;
    setup(&server)?;
    let bulk_seconds = load_items(&server, items::CONTAINER, count, item)?;
    expect_count(&server, count)?;
    server.kill()?;
    let server = Server::start(&plan.server, &folder.path().join("import"))?;
    setup(&server)?;
    let arguments = ["--quiet", PLACE];
    let import = run(tool(plan, &server, "import").args(arguments).arg(file), count)?;
    expect_count(&server, count)?;
    // What is still merged behind the last answer belongs to the import.
    server.usage_when_quiet()?;
    let export = run(tool(plan, &server, "export").args(arguments), count)?;
    anyhow::ensure!(export.printed > count * ITEM_BYTES as u64, "the export has {} bytes", export.printed);
    server.kill()?;
    let rate = |seconds: f64| count as f64 / seconds;
    Ok(Round {
        bulk_rate: rate(bulk_seconds),
        import_rate: rate(import.seconds),
        import,
        export_rate: rate(export.seconds),
        export,
    })
}

/// A tool of the program under test, pointed at a server.
fn tool(plan: &Plan, server: &Server, name: &str) -> Command {
    let mut command = Command::new(&plan.server);
    command.args([name, "--endpoint"]).arg(format!("http://{}", server.address));
    command
}

/// Runs a tool to its end, and takes what it prints.
fn run(command: &mut Command, count: u64) -> anyhow::Result<ToolRun> {
    let before = process::ended_children_usage()?;
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("start a tool")?;
    let mut output = child.stdout.take().context("its output is a pipe")?;
    let taker = std::thread::spawn(move || {
        let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
        loop {
            match output.read(&mut buffer)? {
                0 => return std::io::Result::Ok(bytes),
                read => bytes += read as u64,
            }
        }
    });
    let (status, peak_megabytes) = watch(&mut child)?;
    let seconds = began.elapsed().as_secs_f64();
    anyhow::ensure!(status.success(), "a tool ended with {status}");
    let printed = taker.join().map_err(|_| anyhow::anyhow!("the reader of a tool's output ended"))??;
    let used = process::ended_children_usage()?.since(before);
    Ok(ToolRun { seconds, cpu_micros: used.micros_per(count as usize), peak_megabytes, printed })
}

/// Waits for a process to end, and gives the most memory it was seen with.
fn watch(child: &mut Child) -> anyhow::Result<(std::process::ExitStatus, f64)> {
    let mut peak: f64 = 0.0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, peak));
        }
        // It may end at any moment.
        peak = peak.max(process::peak_megabytes_of(child.id()).unwrap_or(0.0));
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn expect_count(server: &Server, count: u64) -> anyhow::Result<()> {
    let body = "{\"query\":\"SELECT VALUE COUNT(1) FROM c\"}";
    let lines = "content-type: application/query+json\r\nx-ms-documentdb-isquery: true\r\n\
                 x-ms-documentdb-query-enablecrosspartition: true\r\nx-ms-documentdb-partitionkeyrangeid: 0\r\n";
    let request = Signer::new()?.request("POST", &format!("{}/docs", items::CONTAINER), lines, body)?;
    let answer = String::from_utf8_lossy(&load::once(server.address, &request)?).into_owned();
    anyhow::ensure!(answer.contains(&format!("[{count}]")), "{count} items are not there: {answer}");
    Ok(())
}

fn shell(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    setup(&server)?;
    let mut table = Table::new("The shell, from its start to its end", &["what", "ms", "MB at most"]);
    let mut starts =
        [("nothing to do", ""), ("one query", "SELECT VALUE 1")].into_iter().map(|(name, text)| {
            let runs = (0..SHELL_STARTS)
                .map(|_| run(tool(plan, &server, "shell").args(["--use", PLACE, "-c", text]), 1));
            let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
            let milliseconds = median(runs.iter().map(|run| run.seconds * 1e3));
            table.row(&[name], &[milliseconds, median(runs.iter().map(|run| run.peak_megabytes))]);
            anyhow::Ok(milliseconds)
        });
    let idle = starts.next().context("there is a start")??;
    starts.next().context("there is a query")??;
    drop(starts);
    table.print();
    report.goal("shell: start to end with nothing to do, ms", idle, Bound::AtMost(50.0));
    server.terminate()
}
