//! How soon does a reader of the change feed who waits see a write, and how fast is a feed read from its beginning?
//!
//! Tail: one client writes, others wait with the position after the last change. What is measured goes from the moment at which
//! the writer has its answer to the moment at which a waiting reader has the change; a reader may be the first. The other
//! question is asked beside a read feed over the same documents, which reads them in the order of their keys.
//! Invariants
//! - Every reader sees every write, each once; every document comes once from the beginning.

use crate::Plan;
use crate::caller::Caller;
use crate::items::{CONTAINER, ITEM_BYTES, Signer, item};
use crate::process::Server;
use crate::report::{Bound, Report, Table, median};
use crate::writes::{load_items, setup};
use astrarium_wire::headers;
use memchr::memmem;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Who waits at the same time.
const READERS: [usize; 3] = [1, 16, 64];
/// Between two writes: readers are waiting again by then.
const WRITE_PAUSE: Duration = Duration::from_millis(10);
const PAGE_COUNTS: [u32; 2] = [100, 1_000];
/// Goals of our own.
const TAIL_MILLIS_MAX: f64 = 5.0;
const READ_FEED_SHARE_MIN: f64 = 0.5;

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    setup(&server)?;
    tails(plan, &server, report)?;
    server.kill()?;
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    setup(&server)?;
    from_the_beginning(plan, &server, report)
}

/// Times of one round, in milliseconds.
#[derive(Default)]
struct Tail {
    create: Vec<f64>,
    /// From when the write was sent.
    whole: Vec<f64>,
    /// From when the writer had its answer; nothing if a reader was first.
    seen: Vec<f64>,
}

fn tails(plan: &Plan, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let columns = [
        "readers",
        "create p50 ms",
        "create p99 ms",
        "sent until seen p50 ms",
        "acknowledged until seen p50 ms",
        "p99 ms",
        "server CPU us a write",
    ];
    let mut table = Table::new(
        "Change feed: a write acknowledged, until readers who wait have it; 100 writes/s",
        &columns,
    );
    let write_count = if plan.quick { 100 } else { 400 };
    let mut numbers = 0..;
    for readers in READERS {
        let (mut all, mut cpu) = (Tail::default(), Vec::new());
        for _ in 0..plan.rounds {
            let before = server.usage()?;
            let round: Vec<u64> = numbers.by_ref().take(write_count).collect();
            let tail = tail(server.address, readers, &round)?;
            cpu.push(server.usage()?.since(before).micros_per(write_count));
            all.create.extend(tail.create);
            all.whole.extend(tail.whole);
            all.seen.extend(tail.seen);
        }
        let part = |values: &mut Vec<f64>, part: f64| {
            values.sort_by(f64::total_cmp);
            values[(values.len() as f64 * part) as usize]
        };
        let row = [
            part(&mut all.create, 0.5),
            part(&mut all.create, 0.99),
            part(&mut all.whole, 0.5),
            part(&mut all.seen, 0.5),
            part(&mut all.seen, 0.99),
            median(cpu),
        ];
        table.row(&[&readers.to_string()], &row);
        if readers == 1 {
            report.goal(
                "change feed: acknowledged until seen, p99, ms",
                row[4],
                Bound::AtMost(TAIL_MILLIS_MAX),
            );
        }
    }
    table.print();
    Ok(())
}

/// Writes and has readers wait for each write.
fn tail(address: SocketAddr, readers: usize, numbers: &[u64]) -> anyhow::Result<Tail> {
    let (sender, seen) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..readers)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || wait_for(address, numbers.len(), &sender))
            })
            .collect();
        // Everybody has a position before the first write.
        for _ in 0..readers {
            seen.recv()?;
        }
        let (signer, mut caller) = (Signer::new()?, Caller::open(address)?);
        let creates = signer.creates(numbers.iter().copied())?;
        let mut tail = Tail::default();
        for create in creates {
            std::thread::sleep(WRITE_PAUSE);
            let began = Instant::now();
            caller.expect(&[201], &create)?;
            let acknowledged = Instant::now();
            tail.create.push(millis(acknowledged - began));
            for _ in 0..readers {
                let seen = seen.recv()?;
                tail.whole.push(millis(seen.saturating_duration_since(began)));
                tail.seen.push(millis(seen.saturating_duration_since(acknowledged)));
            }
        }
        waiting.into_iter().try_for_each(|reader| reader.join().expect("a reader ends"))?;
        Ok(tail)
    })
}

/// Waits for so many changes, and tells when each has come.
fn wait_for(address: SocketAddr, count: usize, seen: &mpsc::Sender<Instant>) -> anyhow::Result<()> {
    let (signer, mut caller) = (Signer::new()?, Caller::open(address)?);
    let mut position = caller.expect(&[304], &change_feed(&signer, "*", 0, 100)?)?.header(headers::ETAG)?;
    seen.send(Instant::now())?;
    let mut changes = 0;
    while changes < count {
        let answer = caller.expect(&[200, 304], &change_feed(&signer, &position, 10_000, 100)?)?;
        let now = Instant::now();
        position = answer.header(headers::ETAG)?;
        for _ in 0..document_count(answer.body) {
            changes += 1;
            seen.send(now)?;
        }
    }
    anyhow::ensure!(changes == count, "{changes} changes after {count} writes");
    Ok(())
}

fn change_feed(
    signer: &Signer,
    position: &str,
    wait_millis: u32,
    page_count: u32,
) -> anyhow::Result<Vec<u8>> {
    let lines = format!(
        "{}: Incremental feed\r\n{}: {position}\r\n{}: {wait_millis}\r\n{}: {page_count}\r\n",
        headers::A_IM,
        headers::IF_NONE_MATCH,
        headers::MAX_POLLING_INTERVAL,
        headers::MAX_ITEM_COUNT,
    );
    signer.request("GET", &format!("{CONTAINER}/docs"), &lines, "")
}

/// What a whole feed took.
struct Reading {
    seconds: f64,
    cpu: f64,
}

fn from_the_beginning(plan: &Plan, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let count = if plan.quick { 20_000 } else { 200_000 };
    load_items(server, CONTAINER, count, item)?;
    server.usage_when_quiet()?;
    let columns = ["documents a page", "what", "MB/s", "CPU us a document", "rate / read feed's"];
    let title = format!("Change feed from the beginning, {count} documents of 1 KB, one reader");
    let mut table = Table::new(&title, &columns);
    for page_count in PAGE_COUNTS {
        let (mut feeds, mut changes) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            feeds.push(read(server, count, |signer, position| {
                let token = position.map(|token| format!("{}: {token}\r\n", headers::CONTINUATION));
                let lines =
                    format!("{}: {page_count}\r\n{}", headers::MAX_ITEM_COUNT, token.unwrap_or_default());
                signer.request("GET", &format!("{CONTAINER}/docs"), &lines, "")
            })?);
            changes.push(read(server, count, |signer, position| {
                change_feed(signer, position.unwrap_or("\"0\""), 0, page_count)
            })?);
        }
        let megabytes = (count as usize * ITEM_BYTES) as f64 / 1e6;
        let rate = |readings: &[Reading]| median(readings.iter().map(|reading| megabytes / reading.seconds));
        let cpu = |readings: &[Reading]| median(readings.iter().map(|reading| reading.cpu));
        let share = median(feeds.iter().zip(&changes).map(|(feed, change)| feed.seconds / change.seconds));
        let page = page_count.to_string();
        table.row(&[&page, "read feed"], &[rate(&feeds), cpu(&feeds), 1.0]);
        table.row(&[&page, "change feed"], &[rate(&changes), cpu(&changes), share]);
        if page_count == PAGE_COUNTS[1] {
            let text = "change feed from the beginning: rate / read feed's";
            report.goal(text, share, Bound::AtLeast(READ_FEED_SHARE_MIN));
        }
    }
    table.print();
    Ok(())
}

/// Reads a feed page by page to its end.
fn read(
    server: &Server,
    count: u64,
    request: impl Fn(&Signer, Option<&str>) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Reading> {
    let (signer, mut caller) = (Signer::new()?, Caller::open(server.address)?);
    let (mut position, mut documents) = (None, 0);
    let (before, began) = (server.usage()?, Instant::now());
    while documents < count {
        let answer = caller.expect(&[200], &request(&signer, position.as_deref())?)?;
        documents += document_count(answer.body);
        let is_change_feed = answer.header(headers::CONTINUATION).is_err();
        let name = if is_change_feed { headers::ETAG } else { headers::CONTINUATION };
        position = answer.header(name).ok();
    }
    anyhow::ensure!(documents == count, "{documents} documents instead of {count}");
    let seconds = began.elapsed().as_secs_f64();
    Ok(Reading { seconds, cpu: server.usage()?.since(before).micros_per(count as usize) })
}

/// How many items a page has, by the property that each has once.
fn document_count(body: &[u8]) -> u64 {
    memmem::find_iter(body, b"\"_etag\":").count() as u64
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
