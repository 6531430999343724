//! Transactional batches of 100 creates, beside 100 single creates, all durable and indexed.
//!
//! A batch is one commit, so it saves syncs where one client waits for each answer, and requests everywhere. All figures
//! are for one document. Every turn creates documents of its own, in one container.

use super::{Turn, Turns, cpu, make_container, of, partition_key_line, rate, ratio};
use crate::Plan;
use crate::items::{Item, Signer, item};
use crate::process::Server;
use crate::report::{Bound, Report, Table};
use astrarium_wire::headers;

const CONTAINER: &str = "batches";
const BATCH_SIZE: u64 = 100;
/// Connections of single creates, and of batches beside them.
const CONNECTIONS: [(usize, usize); 2] = [(1, 1), (64, 4)];
/// Goals of our own: a document in a batch costs at most as much as alone, and half of it where single creates come in
/// one by one.
const CPU_MAX: f64 = 1.0;
const RATE_MIN: f64 = 3.0;

const COLUMNS: [&str; 7] = [
    "connections",
    "what",
    "documents/s",
    "p50 us a request",
    "server CPU us a document",
    "rate / single",
    "CPU / single",
];

/// Measures and prints.
pub(super) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    make_container(&server, &Signer::new()?, CONTAINER)?;
    let mut table = Table::new("A batch of 100 creates of 1 KB beside 100 single creates", &COLUMNS);
    let mut first = 0;
    for (single_connections, batch_connections) in CONNECTIONS {
        let count = if plan.quick || single_connections == 1 { 2_000 } else { 8_000 };
        let (mut single, mut batches) = (Turns::new(), Turns::new());
        for _ in 0..plan.rounds {
            let signer = Signer::new()?;
            let creates = (first..first + count).map(|number| create(&signer, number));
            let creates = creates.collect::<anyhow::Result<_>>()?;
            single.push(Turn::of_writes(&server, creates, single_connections, 201)?);
            first += count;
            let requests = (first..first + count).step_by(BATCH_SIZE as usize);
            let requests = requests.map(|first| batch(&signer, first)).collect::<anyhow::Result<_>>()?;
            let turn = Turn::of_writes(&server, requests, batch_connections, 200)?;
            batches.push(of_documents(turn));
            first += count;
        }
        for (name, connections, turns) in
            [("single creates", single_connections, &single), ("batches", batch_connections, &batches)]
        {
            let figures = [
                of(turns, rate),
                of(turns, |turn| turn.p50_micros),
                of(turns, cpu),
                ratio(turns, &single, rate),
                ratio(turns, &single, cpu),
            ];
            table.row(&[&connections.to_string(), name], &figures);
        }
        let beside = format!("beside {single_connections} connections");
        let reached = ratio(&batches, &single, cpu);
        report.goal(format!("batch of 100 creates, {beside}: CPU / single"), reached, Bound::AtMost(CPU_MAX));
        if single_connections == 1 {
            let reached = ratio(&batches, &single, rate);
            report.goal(
                format!("the same, {beside}: documents a second / single"),
                reached,
                Bound::AtLeast(RATE_MIN),
            );
        }
    }
    table.print();
    server.terminate()
}

/// The figures of a turn of batches for one document; latency stays that of a request.
fn of_documents(turn: Turn) -> Turn {
    let size = BATCH_SIZE as f64;
    Turn { rate: turn.rate * size, cpu_micros: turn.cpu_micros / size, ..turn }
}

/// Documents that go into one batch share a partition key.
fn document(number: u64) -> Item {
    let mut item = item(number);
    let partition_key = format!("batch-{}", number / BATCH_SIZE);
    item.text = item.text.replacen(&item.partition_key, &partition_key, 1);
    item.partition_key = partition_key;
    item
}

fn path() -> String {
    format!("dbs/{}/colls/{CONTAINER}/docs", super::DATABASE)
}

fn create(signer: &Signer, number: u64) -> anyhow::Result<Vec<u8>> {
    let document = document(number);
    signer.request("POST", &path(), &partition_key_line(&document.partition_key), &document.text)
}

fn batch(signer: &Signer, first: u64) -> anyhow::Result<Vec<u8>> {
    let operation = |number: u64| {
        let text = document(number).text;
        format!("{{\"operationType\":\"Create\",\"resourceBody\":{text}}}")
    };
    let operations: Vec<String> = (first..first + BATCH_SIZE).map(operation).collect();
    let lines = format!(
        "{}{}: True\r\n{}: True\r\n",
        partition_key_line(&document(first).partition_key),
        headers::IS_BATCH_REQUEST,
        headers::BATCH_ATOMIC,
    );
    signer.request("POST", &path(), &lines, &format!("[{}]", operations.join(",")))
}
