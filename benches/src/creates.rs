//! How fast are durable creates of 1 KB over HTTP, beside the bare engine committing body, directory and feed key, and
//! fjall alone?
//!
//! The engine's limit commits ready-made batches from as many submitters as there are connections; fjall's limit writes
//! the same keys from one thread, in groups as large as the server's were. Every run starts on an empty folder.

use crate::items::Signer;
use crate::limits::{EngineOutcome, EngineRun};
use crate::load::{self, Load, Outcome};
use crate::process::{Server, Usage};
use crate::report::{Table, median};
use crate::{Plan, reads};
use std::time::Duration;

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Creates a second that no run exceeds: as many requests are made ready.
const RATE_MAX: f64 = 60_000.0;

/// One round at one number of connections.
struct Round {
    http: Outcome,
    server: Usage,
    commits: f64,
    groups: f64,
    engine: EngineOutcome,
    fjall: EngineOutcome,
}

impl Round {
    fn http_rate(&self) -> f64 {
        self.http.count as f64 / self.http.seconds
    }

    fn http_cpu(&self) -> f64 {
        self.server.micros_per(self.http.count)
    }
}

pub(crate) fn answer(plan: &Plan) -> anyhow::Result<()> {
    let mut rounds: Vec<Vec<Round>> = CONNECTIONS.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (connections, rounds) in CONNECTIONS.into_iter().zip(&mut rounds) {
            rounds.push(round(plan, connections)?);
        }
    }
    let mut table =
        Table::new("Durable creates of a 1 KB item, everything indexed; limits without an index", &COLUMNS);
    for (connections, rounds) in CONNECTIONS.into_iter().zip(&rounds) {
        let at = connections.to_string();
        table.row(&[&at, "bare fjall, one thread"], &engine_row(rounds, |round| &round.fjall));
        table.row(&[&at, "bare engine"], &engine_row(rounds, |round| &round.engine));
        table.row(&[&at, "astrarium"], &server_row(rounds));
    }
    table.print();
    let of =
        |value: fn(&Round) -> f64| rounds.last().map_or(f64::NAN, |rounds| median(rounds.iter().map(value)));
    println!(
        "At 64 submitters a commit costs the engine's one committer {:.1} us of checking, {:.1} us inside fjall with \
         its share of the sync, {:.1} us of answering.",
        of(|round| round.engine.prepare_micros),
        of(|round| round.engine.write_micros),
        of(|round| round.engine.publish_micros),
    );
    Ok(())
}

const COLUMNS: [&str; 10] = [
    "connections",
    "what",
    "items/s",
    "p50 us",
    "p99 us",
    "CPU us/item",
    "items/group",
    "syncs/s",
    "rate / engine",
    "CPU / engine",
];

/// Medians of a limit; ratios are taken within each round.
fn engine_row(rounds: &[Round], limit: fn(&Round) -> &EngineOutcome) -> [f64; 8] {
    let of = |value: fn(&EngineOutcome) -> f64| median(rounds.iter().map(|round| value(limit(round))));
    let ratio = |value: fn(&EngineOutcome) -> f64| {
        median(rounds.iter().map(|round| value(limit(round)) / value(&round.engine)))
    };
    [
        of(EngineOutcome::rate),
        of(|outcome| outcome.p50_micros),
        of(|outcome| outcome.p99_micros),
        of(EngineOutcome::cpu_micros),
        of(EngineOutcome::group_size),
        of(|outcome| outcome.groups as f64 / outcome.seconds),
        ratio(EngineOutcome::rate),
        ratio(EngineOutcome::cpu_micros),
    ]
}

/// Medians of the server.
fn server_row(rounds: &[Round]) -> [f64; 8] {
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    [
        of(Round::http_rate),
        of(|round| round.http.p50_micros),
        of(|round| round.http.p99_micros),
        of(Round::http_cpu),
        of(|round| round.commits / round.groups),
        of(|round| round.groups / round.http.seconds),
        of(|round| round.http_rate() / round.engine.rate()),
        of(|round| round.http_cpu() / round.engine.cpu_micros()),
    ]
}

fn round(plan: &Plan, connections: usize) -> anyhow::Result<Round> {
    let seconds = if plan.quick { 0.5 } else { 1.5 };
    let count = (RATE_MAX * seconds) as u64 * if connections == 1 { 1 } else { 2 } / 2;
    let (http, server, commits, groups) = over_http(plan, connections, seconds, count)?;
    let mut run = EngineRun { submitters: connections, group_size: 1, seconds, count };
    let engine = EngineOutcome::measure("bare-engine", &run)?;
    run.group_size = (commits / groups).round().max(1.0) as usize;
    let fjall = EngineOutcome::measure("bare-fjall", &run)?;
    Ok(Round { http, server, commits, groups, engine, fjall })
}

/// Creates items through a fresh server; gives also its CPU time, commits and groups.
fn over_http(
    plan: &Plan,
    connections: usize,
    seconds: f64,
    count: u64,
) -> anyhow::Result<(Outcome, Usage, f64, f64)> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    let signer = Signer::new()?;
    reads::fill(&server, &signer, 100)?;
    let requests = signer.creates(100..count + 100)?;
    let counters = || -> anyhow::Result<(f64, f64)> {
        let commits = server.metric("astrarium_storage_commits_total")?;
        Ok((commits, server.metric("astrarium_storage_groups_total")?))
    };
    let time_max = Duration::from_secs_f64(seconds);
    let load = Load { requests, connections, time_max, repeat: false, status: 201 };
    let ((commits, groups), before) = (counters()?, server.usage()?);
    let outcome = load::run(server.address, load)?;
    let usage = server.usage_when_quiet()?.since(before);
    let (commits_after, groups_after) = counters()?;
    server.kill()?;
    Ok((outcome, usage, commits_after - commits, groups_after - groups))
}
