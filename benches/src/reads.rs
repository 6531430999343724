//! How fast are point reads of 1 KB, signed, over kept connections, beside a bare hyper server returning the same bytes?
//!
//! Two bare servers: one with all the headers that ours sends, which is the goal's yardstick, and one with 20, as the
//! project's outside measurement uses it.

use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load, Outcome};
use crate::process::{Server, Usage};
use crate::report::{Bound, Report, Table, median};
use std::time::Duration;

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Items read, in turn: more than fit into a processor's nearest caches.
const ITEM_COUNT: u64 = 1_000;

/// One run of one server.
struct Turn {
    outcome: Outcome,
    server: Usage,
}

impl Turn {
    fn rate(&self) -> f64 {
        self.outcome.count as f64 / self.outcome.seconds
    }

    fn cpu(&self) -> f64 {
        self.server.micros_per(self.outcome.count)
    }
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    let signer = Signer::new()?;
    fill(&server, &signer, ITEM_COUNT)?;
    let requests = signer.reads(0..ITEM_COUNT)?;
    let answer = load::once(server.address, &requests[0])?;
    let answer_file = folder.path().join("answer");
    std::fs::write(&answer_file, &answer)?;
    let text = String::from_utf8_lossy(&answer);
    let header_count = text.split("\r\n").take_while(|line| !line.is_empty()).count() - 1;
    let servers = [
        (format!("bare hyper, {header_count} headers"), Server::start_bare(&answer_file, usize::MAX)?),
        ("bare hyper, 20 headers".to_owned(), Server::start_bare(&answer_file, 20)?),
        ("astrarium".to_owned(), server),
    ];
    let mut rounds: Vec<Vec<Vec<Turn>>> = CONNECTIONS.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (connections, rounds) in CONNECTIONS.into_iter().zip(&mut rounds) {
            let turns = servers.iter().map(|(_, server)| turn(plan, server, &requests, connections));
            rounds.push(turns.collect::<anyhow::Result<Vec<_>>>()?);
        }
    }
    let title =
        format!("Point reads of a 1 KB item, signed, kept connections ({} bytes an answer)", answer.len());
    let mut table = Table::new(&title, &COLUMNS);
    for (connections, rounds) in CONNECTIONS.into_iter().zip(&rounds) {
        for (place, (name, _)) in servers.iter().enumerate() {
            table.row(&[&connections.to_string(), name], &medians(rounds, place));
        }
    }
    table.print();
    if let Some(rounds) = rounds.last() {
        let [.., rate, cpu] = medians(rounds, servers.len() - 1);
        report.goal("point read, 64 connections: server CPU / bare hyper's", cpu, Bound::AtMost(1.6));
        report.goal("point read, 64 connections: rate / bare hyper's", rate, Bound::AtLeast(0.75));
    }
    Ok(())
}

const COLUMNS: [&str; 9] = [
    "connections",
    "server",
    "reads/s",
    "p50 us",
    "p99 us",
    "server CPU us",
    "client CPU us",
    "rate / hyper",
    "CPU / hyper",
];

/// The values of a row: medians over rounds for the server at a place; ratios are taken within each round.
fn medians(rounds: &[Vec<Turn>], place: usize) -> [f64; 7] {
    let of = |value: fn(&Turn) -> f64| median(rounds.iter().map(|turns| value(&turns[place])));
    let ratio =
        |value: fn(&Turn) -> f64| median(rounds.iter().map(|turns| value(&turns[place]) / value(&turns[0])));
    [
        of(Turn::rate),
        of(|turn| turn.outcome.p50_micros),
        of(|turn| turn.outcome.p99_micros),
        of(Turn::cpu),
        of(|turn| turn.outcome.client.micros_per(turn.outcome.count)),
        ratio(Turn::rate),
        ratio(Turn::cpu),
    ]
}

/// Makes the container and its items.
pub(crate) fn fill(server: &Server, signer: &Signer, count: u64) -> anyhow::Result<()> {
    for request in signer.setup()? {
        let answer = load::once(server.address, &request)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    let requests = signer.creates(0..count)?;
    let load =
        Load { requests, connections: 64, time_max: Duration::from_mins(10), repeat: false, status: 201 };
    let outcome = load::run(server.address, load)?;
    anyhow::ensure!(outcome.count as u64 == count, "only {} items were created", outcome.count);
    Ok(())
}

fn turn(plan: &Plan, server: &Server, requests: &[Vec<u8>], connections: usize) -> anyhow::Result<Turn> {
    let time_max = Duration::from_millis(if plan.quick { 500 } else { 1_000 });
    let load = Load { requests: requests.to_vec(), connections, time_max, repeat: true, status: 200 };
    let before = server.usage()?;
    let outcome = load::run(server.address, load)?;
    Ok(Turn { outcome, server: server.usage()?.since(before) })
}
