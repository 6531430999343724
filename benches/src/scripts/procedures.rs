//! Stored procedures: an empty one beside a point read, and one that reads one document and writes two beside the three
//! requests that a client would send instead.
//!
//! The working one is what the modelling articles do: it reads an author, counts a book more, and creates the book. All
//! documents have 1 KB. The three requests are sent in turns of their own, and their figures are added.

use super::{Turn, Turns, cpu, execution, make_script, of, p50, partition_key_line, ratio};
use crate::Plan;
use crate::items::{Signer, item};
use crate::process::Server;
use crate::reads;
use crate::report::{Bound, Report, Table, median};
use std::time::Duration;

/// One connection for latency, and more than there are cores.
const CONNECTIONS: [usize; 2] = [1, 16];
/// Authors, each in a partition of its own: more than there are connections.
const AUTHOR_COUNT: u64 = 400;
const CONTAINER: &str = "items";
const EMPTY: &str = "function empty() { }";
const ADD_BOOK: &str = "function addBook(authorId, book) {
    var collection = getContext().getCollection();
    var link = collection.getAltLink() + '/docs/' + authorId;
    accepted(collection.readDocument(link, function (error, author) {
        if (error) throw error;
        author.countOfBooks = (author.countOfBooks || 0) + 1;
        accepted(collection.replaceDocument(author._self, author, { etag: author._etag }, function (error) {
            if (error) throw error;
            accepted(collection.createDocument(collection.getSelfLink(), book, function (error, created) {
                if (error) throw error;
                getContext().getResponse().setBody({ id: created.id });
            }));
        }));
    }));
    function accepted(isAccepted) {
        if (!isAccepted) throw new Error('The operation was not accepted.');
    }
}";

/// Measures and prints.
pub(super) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    reads::fill(&server, &Signer::new()?, AUTHOR_COUNT)?;
    for (name, body) in [("empty", EMPTY), ("addBook", ADD_BOOK)] {
        make_script(&server, &Signer::new()?, CONTAINER, "sprocs", name, body)?;
    }
    empty(plan, &server, report)?;
    working(plan, &server, report)?;
    server.terminate()
}

const EMPTY_COLUMNS: [&str; 8] = [
    "connections",
    "request",
    "a second",
    "p50 us",
    "p99 us",
    "server CPU us",
    "a second and core",
    "CPU / point read",
];

fn empty(plan: &Plan, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let time = Duration::from_millis(if plan.quick { 500 } else { 1_500 });
    let mut table = Table::new("An empty stored procedure beside a point read of 1 KB", &EMPTY_COLUMNS);
    for connections in CONNECTIONS {
        let signer = Signer::new()?;
        let point_reads = signer.reads(0..AUTHOR_COUNT)?;
        let executions = (0..AUTHOR_COUNT)
            .map(|number| execution(&signer, CONTAINER, "empty", &item(number).partition_key, "[]"));
        let executions = executions.collect::<anyhow::Result<Vec<_>>>()?;
        let (mut reading, mut executing) = (Turns::new(), Turns::new());
        for _ in 0..plan.rounds {
            reading.push(Turn::of_reads(server, &point_reads, connections, time)?);
            executing.push(Turn::of_reads(server, &executions, connections, time)?);
        }
        for (name, turns) in [("point read", &reading), ("empty procedure", &executing)] {
            let figures = [
                of(turns, |turn| turn.rate),
                of(turns, p50),
                of(turns, |turn| turn.p99_micros),
                of(turns, cpu),
                of(turns, |turn| 1e6 / turn.cpu_micros),
                ratio(turns, &reading, cpu),
            ];
            table.row(&[&connections.to_string(), name], &figures);
        }
        if connections > 1 {
            let reached = of(&executing, |turn| 1e6 / turn.cpu_micros);
            report.goal("empty procedures a second and core", reached, Bound::AtLeast(EMPTY_RATE));
        } else {
            let reached = ratio(&executing, &reading, p50);
            report.goal(
                "empty procedure, 1 connection: p50 / point read's",
                reached,
                Bound::AtMost(EMPTY_LATENCY),
            );
        }
    }
    table.print();
    Ok(())
}

/// Goals of our own, for want of others: a fresh JavaScript world alone takes 0.15 to 0.23 ms of CPU.
const EMPTY_RATE: f64 = 4_000.0;
const EMPTY_LATENCY: f64 = 4.0;

/// One round of the procedure and of the requests it stands for.
struct Round {
    procedure: Turn,
    /// A read, a replace and a create.
    requests: [Turn; 3],
}

impl Round {
    /// What the three requests take together.
    fn sum(&self, value: fn(&Turn) -> f64) -> f64 {
        self.requests.iter().map(value).sum()
    }
}

fn working(plan: &Plan, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let count = if plan.quick { 1_000 } else { 4_000 };
    let columns = ["connections", "what", "p50 us", "server CPU us", "p50 / requests", "CPU / requests"];
    let mut table = Table::new(
        "A procedure that reads 1 and writes 2 documents of 1 KB, beside three requests",
        &columns,
    );
    // Books have numbers of their own, past those of authors.
    let mut first = AUTHOR_COUNT;
    for connections in CONNECTIONS {
        let mut rounds = Vec::new();
        for _ in 0..plan.rounds {
            rounds.push(round(server, connections, first, count)?);
            first += 2 * count;
        }
        let at = connections.to_string();
        for (place, name) in ["read", "replace", "create"].into_iter().enumerate() {
            let figure =
                |value: fn(&Turn) -> f64| median(rounds.iter().map(|round| value(&round.requests[place])));
            table.row(&[&at, name], &[figure(p50), figure(cpu)]);
        }
        let sum = |value: fn(&Turn) -> f64| median(rounds.iter().map(|round| round.sum(value)));
        table.row(&[&at, "three requests"], &[sum(p50), sum(cpu), 1.0, 1.0]);
        let own = |value: fn(&Turn) -> f64| median(rounds.iter().map(|round| value(&round.procedure)));
        let ratio = |value: fn(&Turn) -> f64| {
            median(rounds.iter().map(|round| value(&round.procedure) / round.sum(value)))
        };
        table.row(&[&at, "procedure"], &[own(p50), own(cpu), ratio(p50), ratio(cpu)]);
        let text =
            format!("procedure, reads 1 and writes 2, {connections} connections: CPU / three requests");
        report.goal(text, ratio(cpu), Bound::AtMost(1.2));
    }
    table.print();
    Ok(())
}

/// Adds as many books by the procedure as by requests.
fn round(server: &Server, connections: usize, first: u64, count: u64) -> anyhow::Result<Round> {
    let signer = Signer::new()?;
    let documents = format!("dbs/{}/colls/{CONTAINER}/docs", super::DATABASE);
    let author = |number: u64| item(number % AUTHOR_COUNT);
    let book = |number: u64| {
        // In its author's partition.
        let (mut book, author) = (item(number), author(number));
        book.text = book.text.replacen(&book.partition_key, &author.partition_key, 1);
        book
    };
    let executions = (first..first + count).map(|number| {
        let author = author(number);
        let parameters = format!("[\"{}\",{}]", author.id, book(number).text);
        execution(&signer, CONTAINER, "addBook", &author.partition_key, &parameters)
    });
    let replaces = (first..first + count).map(|number| {
        let author = author(number);
        let path = format!("{documents}/{}", author.id);
        // What changes is what the procedure changes.
        let text = author.text.replacen('{', &format!("{{\"countOfBooks\":{number},"), 1);
        signer.request("PUT", &path, &partition_key_line(&author.partition_key), &text)
    });
    let creates = (first + count..first + 2 * count).map(|number| {
        let line = partition_key_line(&author(number).partition_key);
        signer.request("POST", &documents, &line, &book(number).text)
    });
    let write = |requests: Vec<Vec<u8>>, status| Turn::of_writes(server, requests, connections, status);
    let numbers = (first..first + count).map(|number| number % AUTHOR_COUNT);
    Ok(Round {
        requests: [
            write(signer.reads(numbers)?, 200)?,
            write(replaces.collect::<anyhow::Result<_>>()?, 200)?,
            write(creates.collect::<anyhow::Result<_>>()?, 201)?,
        ],
        procedure: write(executions.collect::<anyhow::Result<_>>()?, 200)?,
    })
}
