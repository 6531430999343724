//! Whether queries on a store take as much CPU on many documents as on few, beside the embedded engine.
//!
//! One connection, the engines in turns, as `queries` does it.
//! Invariants
//! - Both engines give the same answer, of the known size, or the run fails in the end.

use super::sides::questions;
use super::{Watched, start_servers};
use crate::Plan;
use crate::items::Signer;
use crate::process::Server;
use crate::queries::documents::Documents;
use crate::queries::rows::Row;
use crate::queries::session::{self, Pages, Request, Session};
use crate::queries::{ITEM_COUNT_MAX, answers, turn};
use crate::report::{Bound, Report, Table, median};
use anyhow::Context as _;
use astrarium_postgres_fixture::Cluster;
use std::time::Duration;

/// A question on one engine at one size; medians over rounds.
#[derive(Debug, Clone, Copy)]
struct Figures {
    p50_micros: f64,
    server_cpu: f64,
    store_cpu: f64,
}

impl Figures {
    fn cpu(&self) -> f64 {
        self.server_cpu + self.store_cpu
    }
}

/// The two engines.
type Pair = [Figures; 2];

pub(super) fn answer(plan: &Plan, cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let mut sizes: Vec<Vec<(Row, Pair)>> = Vec::new();
    for count in &plan.store_sizes {
        let documents = Documents::new(*count)?;
        let folder = tempfile::tempdir()?;
        let embedded = Server::start(&plan.server, &folder.path().join("data"))?;
        let on_store = start_servers(plan, cluster, &cluster.url(), 1)?;
        let on_store = Watched { servers: &on_store, cluster: Some(cluster) };
        let embedded = [embedded];
        let embedded = Watched { servers: &embedded, cluster: None };
        for side in [embedded, on_store] {
            session::load(side.servers.first().context("a server is watched")?, &documents)?;
            side.wait(super::Count::Settled)?;
        }
        let measured = questions(&documents)?.into_iter().map(|row| {
            let pair = ask(plan, [embedded, on_store], &row, report)?;
            Ok((row, pair))
        });
        sizes.push(measured.collect::<anyhow::Result<_>>()?);
    }
    print(&plan.store_sizes, &sizes, report);
    Ok(())
}

fn print(counts: &[u64], sizes: &[Vec<(Row, Pair)>], report: &mut Report) {
    let mut table = Table::new("Queries over more and more documents, one connection", &COLUMNS);
    let Some(first) = sizes.first() else { return };
    for (place, (row, smallest)) in first.iter().enumerate() {
        for (count, size) in counts.iter().zip(sizes) {
            let [embedded, store] = &size[place].1;
            let growth = |engine: usize| size[place].1[engine].cpu() / smallest[engine].cpu();
            let values = [
                embedded.p50_micros,
                embedded.server_cpu,
                growth(0),
                store.p50_micros,
                store.server_cpu,
                store.store_cpu,
                growth(1),
            ];
            table.row(&[row.name, &count.to_string()], &values);
            if let (Some(most), Some(largest)) = (row.goals.growth_max, counts.last())
                && count == largest
            {
                let text = format!("{} on a store: growth of CPU to {count} documents", row.name);
                report.goal(text, growth(1), Bound::AtMost(most));
            }
        }
    }
    table.print();
}

const COLUMNS: [&str; 9] = [
    "query",
    "documents",
    "embedded p50 us",
    "CPU us",
    "growth",
    "store p50 us",
    "server CPU us",
    "PostgreSQL CPU us",
    "growth",
];

/// Checks the answers, then takes turns.
fn ask(plan: &Plan, sides: [Watched<'_>; 2], row: &Row, report: &mut Report) -> anyhow::Result<Pair> {
    let signer = Signer::new()?;
    let requests = row.variants.iter().map(|it| session::request(&signer, row.sql, it, ITEM_COUNT_MAX));
    let requests = requests.collect::<anyhow::Result<Vec<Request>>>()?;
    let mut sessions = Vec::new();
    for side in sides {
        sessions.push(Session::open(side.servers.first().context("a server is watched")?.address)?);
    }
    for request in &requests {
        let mut answers = Vec::new();
        for session in &mut sessions {
            let rows = session.query(request, Pages::All)?;
            answers.push(
                rows.map_err(|refusal| anyhow::anyhow!("status {}: {}", refusal.status, refusal.text))?,
            );
        }
        let difference = answers::difference(&answers[0], &answers[1], row.answer.ordered);
        if difference.is_some() || answers[0].len() as u64 != row.answer.row_count {
            report.wrong(format!("{}, embedded and store: {difference:?}", row.name));
        }
    }
    let time = Duration::from_millis(if plan.quick { 400 } else { 1_000 });
    let mut rounds: [Vec<Figures>; 2] = Default::default();
    for _ in 0..plan.rounds {
        for ((side, session), rounds) in sides.into_iter().zip(&mut sessions).zip(&mut rounds) {
            let before = side.store()?;
            let mut count = 0;
            let run = |at: usize| {
                count = at + 1;
                session.run(&requests[at % requests.len()])
            };
            let turned = turn(time, run, || side.servers[0].usage())?;
            let store_cpu = side.store()?.since(before).micros_per(count);
            let (p50_micros, server_cpu) = (turned.p50_micros, turned.cpu_micros);
            rounds.push(Figures { p50_micros, server_cpu, store_cpu });
        }
    }
    Ok(rounds.map(|rounds| {
        let of = |value: fn(&Figures) -> f64| median(rounds.iter().map(value));
        Figures {
            p50_micros: of(|it| it.p50_micros),
            server_cpu: of(|it| it.server_cpu),
            store_cpu: of(|it| it.store_cpu),
        }
    }))
}
