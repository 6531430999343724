//! How fast are scripts and batches, beside the plain requests that would do the same?
//!
//! Four answers: stored procedures beside point reads and beside single requests (`procedures`), user-defined functions
//! beside built-in expressions (`functions`), batches beside single creates (`batches`), memory of compiled scripts
//! (`memory`). All sides of a comparison are asked of one server, in turns within each round.
//! Invariants
//! - Server CPU includes what is done behind the last answer of a turn: flushes, compaction, the next sandbox.
//! - Writers of one turn meet in no document, so nothing is counted that is done again after a conflict.

mod batches;
mod functions;
mod memory;
mod procedures;

use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load, Outcome};
use crate::process::{Server, Usage};
use crate::report::{Report, median};
use astrarium_wire::headers;
use serde_json::json;
use std::time::Duration;

const DATABASE: &str = "bench";
/// As many as there are requests in advance in every turn that writes.
const TURN_MAX: Duration = Duration::from_mins(2);

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    procedures::answer(plan, report)?;
    functions::answer(plan, report)?;
    batches::answer(plan, report)?;
    memory::answer(plan, report)
}

/// One turn of one side.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Requests a second.
    rate: f64,
    p50_micros: f64,
    p99_micros: f64,
    /// Of the server, for a request.
    cpu_micros: f64,
}

/// Turns of one side, one for each round.
type Turns = Vec<Turn>;

impl Turn {
    /// Sends every request once, and waits until the server has nothing left to do.
    fn of_writes(
        server: &Server,
        requests: Vec<Vec<u8>>,
        connections: usize,
        status: u16,
    ) -> anyhow::Result<Turn> {
        let count = requests.len();
        let load = Load { requests, connections, time_max: TURN_MAX, repeat: false, status };
        let before = server.usage_when_quiet()?;
        let outcome = load::run(server.address, load)?;
        anyhow::ensure!(outcome.count == count, "only {} of {count} requests were answered", outcome.count);
        Ok(Turn::new(&outcome, server.usage_when_quiet()?.since(before)))
    }

    /// Sends requests again and again for a while.
    fn of_reads(
        server: &Server,
        requests: &[Vec<u8>],
        connections: usize,
        time_max: Duration,
    ) -> anyhow::Result<Turn> {
        let load = Load { requests: requests.to_vec(), connections, time_max, repeat: true, status: 200 };
        let before = server.usage()?;
        let outcome = load::run(server.address, load)?;
        Ok(Turn::new(&outcome, server.usage()?.since(before)))
    }

    fn new(outcome: &Outcome, server: Usage) -> Turn {
        Turn {
            rate: outcome.count as f64 / outcome.seconds,
            p50_micros: outcome.p50_micros,
            p99_micros: outcome.p99_micros,
            cpu_micros: server.micros_per(outcome.count),
        }
    }
}

/// The median of a figure over rounds.
fn of(turns: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(value))
}

/// The median of one side's figure divided by another's, taken within rounds.
fn ratio(turns: &[Turn], beside: &[Turn], value: fn(&Turn) -> f64) -> f64 {
    median(turns.iter().zip(beside).map(|(turn, beside)| value(turn) / value(beside)))
}

fn cpu(turn: &Turn) -> f64 {
    turn.cpu_micros
}

fn p50(turn: &Turn) -> f64 {
    turn.p50_micros
}

fn rate(turn: &Turn) -> f64 {
    turn.rate
}

/// Makes a database with a container of this name; the database may be there already.
fn make_container(server: &Server, signer: &Signer, name: &str) -> anyhow::Result<()> {
    let database = signer.request("POST", "dbs", "", &json!({"id": DATABASE}).to_string())?;
    let status = load::status_of(&load::once(server.address, &database)?);
    anyhow::ensure!(status == 201 || status == 409, "no database: status {status}");
    let container = json!({"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    made(server, &signer.request("POST", &format!("dbs/{DATABASE}/colls"), "", &container.to_string())?)
}

/// Makes a script; the kind is `sprocs` or `udfs`.
fn make_script(
    server: &Server,
    signer: &Signer,
    container: &str,
    kind: &str,
    id: &str,
    body: &str,
) -> anyhow::Result<()> {
    let path = format!("dbs/{DATABASE}/colls/{container}/{kind}");
    made(server, &signer.request("POST", &path, "", &json!({"id": id, "body": body}).to_string())?)
}

fn made(server: &Server, request: &[u8]) -> anyhow::Result<()> {
    let answer = load::once(server.address, request)?;
    anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// The request that executes a stored procedure.
fn execution(
    signer: &Signer,
    container: &str,
    procedure: &str,
    partition_key: &str,
    parameters: &str,
) -> anyhow::Result<Vec<u8>> {
    let path = format!("dbs/{DATABASE}/colls/{container}/sprocs/{procedure}");
    signer.request("POST", &path, &partition_key_line(partition_key), parameters)
}

fn partition_key_line(partition_key: &str) -> String {
    format!("{}: [\"{partition_key}\"]\r\n", headers::PARTITION_KEY)
}
