//! Are durable writes on eight key ranges as fast as on one?
//!
//! The same creates of 64 connections into containers of one range and of eight, by turns on fresh folders. The embedded
//! engine commits the batches of all ranges in the same groups, so more ranges should cost nothing, and cannot gain much.

use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load, Outcome};
use crate::process::Server;
use crate::report::{Bound, Report, Table, median};
use serde_json::json;
use std::time::Duration;

const CONNECTIONS: usize = 64;
/// Creates a second that no run exceeds: as many requests are made ready.
const RATE_MAX: f64 = 40_000.0;
/// Ranges, and the throughput that gives so many.
const SIDES: [(usize, u32); 2] = [(1, 400), (8, 48_000)];

struct Turn {
    outcome: Outcome,
    cpu: f64,
}

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let mut turns: [Vec<Turn>; 2] = [Vec::new(), Vec::new()];
    for round in 0..plan.rounds {
        // Who is first changes, since the machine does.
        for place in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            turns[place].push(turn(plan, SIDES[place])?);
        }
    }
    let columns =
        ["ranges", "items/s", "p50 us", "p99 us", "CPU us/item", "rate / one range", "CPU / one range"];
    let title = format!("Durable creates of 1 KB, {CONNECTIONS} connections, everything indexed");
    let mut table = Table::new(&title, &columns);
    let ratio = |side: usize, value: fn(&Turn) -> f64| {
        median(turns[side].iter().zip(&turns[0]).map(|(turn, one)| value(turn) / value(one)))
    };
    for (side, (ranges, _)) in SIDES.into_iter().enumerate() {
        let of = |value: fn(&Turn) -> f64| median(turns[side].iter().map(value));
        let values = [
            of(rate),
            of(|turn| turn.outcome.p50_micros),
            of(|turn| turn.outcome.p99_micros),
            of(|turn| turn.cpu),
            ratio(side, rate),
            ratio(side, |turn| turn.cpu),
        ];
        table.row(&[&ranges.to_string()], &values);
    }
    table.print();
    report.goal("durable creates on 8 ranges: rate / on 1", ratio(1, rate), Bound::AtLeast(0.9));
    Ok(())
}

fn rate(turn: &Turn) -> f64 {
    turn.outcome.count as f64 / turn.outcome.seconds
}

fn turn(plan: &Plan, (ranges, throughput): (usize, u32)) -> anyhow::Result<Turn> {
    let seconds = if plan.quick { 1.5 } else { 4.0 };
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    let signer = Signer::new()?;
    let [database, _] = signer.setup()?;
    let container = signer.container("items", Some(throughput), &json!({}))?;
    for request in [database, container] {
        let answer = load::once(server.address, &request)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    let answer =
        load::once(server.address, &signer.request("GET", "dbs/bench/colls/items/pkranges", "", "")?)?;
    let found = memchr::memmem::find_iter(&answer, b"\"minInclusive\"").count();
    anyhow::ensure!(found == ranges, "{found} ranges instead of {ranges}");
    let requests = signer.creates(0..(RATE_MAX * seconds) as u64)?;
    let time_max = Duration::from_secs_f64(seconds);
    let load = Load { requests, connections: CONNECTIONS, time_max, repeat: false, status: 201 };
    let before = server.usage_when_quiet()?;
    let outcome = load::run(server.address, load)?;
    let usage = server.usage_when_quiet()?.since(before);
    server.kill()?;
    Ok(Turn { outcome, cpu: usage.micros_per(outcome.count) })
}
