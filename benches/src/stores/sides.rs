//! The usual requests on each side: plain PostgreSQL with JSONB and GIN, the embedded engine, a store.
//!
//! Creates are of the items that all questions have, bulk loads of the documents that queries are asked over, and then those are asked.
//! Invariants
//! - Plain PostgreSQL has the indexes of `writes`: a primary key, GIN over the documents, a B-tree over the partition key. Its
//!   statements are prepared, and its table is vacuumed and analyzed before it is asked. Nothing serves ORDER BY there.

use super::{CONNECTIONS, Count, RATE_MAX, Turn, Watched, connect, empty, make, start_servers};
use crate::Plan;
use crate::items::{self, Signer};
use crate::load::{self, Load};
use crate::postgres::statements::{self, Statements};
use crate::process::Server;
use crate::queries::documents::Documents;
use crate::queries::rows::{self, Row};
use crate::queries::{ITEM_COUNT_MAX, session};
use crate::report::{Bound, Report, Table, median};
use crate::writes::{self, LOAD_UNIT, units};
use anyhow::Context as _;
use astrarium_postgres_fixture::Cluster;
use std::ops::Range;
use std::time::Duration;

const BULK_CONNECTIONS: usize = 8;
const BULK_MAX: Duration = Duration::from_mins(20);
const SIDES: [&str; 3] = ["plain PostgreSQL", "embedded", "store"];
/// The questions among those of `queries`.
pub(super) const QUESTIONS: [&str; 4] =
    [rows::POINT_READ, rows::EQUALITY, "ORDER BY, TOP 10", "COUNT, filter n/10"];

/// How much is done.
struct Amount {
    create: Duration,
    ask: Duration,
    documents: Documents,
}

pub(super) fn answer(plan: &Plan, cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let amount = Amount {
        create: Duration::from_millis(if plan.quick { 2_000 } else { 5_000 }),
        ask: Duration::from_millis(if plan.quick { 700 } else { 2_000 }),
        documents: Documents::new(if plan.quick { 5_000 } else { 50_000 })?,
    };
    let mut rounds: [Vec<Vec<Turn>>; 3] = Default::default();
    for _ in 0..plan.rounds {
        rounds[0].push(plain(cluster, &amount)?);
        rounds[1].push(embedded(plan, &amount)?);
        rounds[2].push(on_store(plan, cluster, &amount)?);
    }
    let title = format!(
        "Durable creates of 1 KB, bulk loads in units of {LOAD_UNIT}, reads over {} documents; {CONNECTIONS} connections, \
         {BULK_CONNECTIONS} for bulk",
        amount.documents.count
    );
    let mut table = Table::new(&title, &COLUMNS);
    let names = ["create", "bulk load"].into_iter().chain(QUESTIONS);
    for (place, name) in names.enumerate() {
        for (side, turns) in SIDES.into_iter().zip(&rounds) {
            let of = |value: fn(&Turn) -> f64| median(turns.iter().map(|turns| value(&turns[place])));
            let ratio = |value: fn(&Turn) -> f64| {
                let both = turns.iter().zip(&rounds[0]);
                median(both.map(|(ours, plain)| value(&ours[place]) / value(&plain[place])))
            };
            let rate = ratio(|turn| turn.rate);
            let values = [
                of(|turn| turn.rate),
                of(|turn| turn.p50_micros),
                of(Turn::server_cpu),
                of(|turn| turn.store_cpu_micros),
                of(|turn| turn.group_size),
                rate,
                ratio(Turn::cpu),
            ];
            table.row(&[name, side], &values);
            if place < 2 && side == SIDES[2] {
                let text = format!("{name} on a store: rate / plain PostgreSQL's with GIN");
                report.goal(text, rate, Bound::AtLeast(1.0));
            }
        }
    }
    table.print();
    Ok(())
}

const COLUMNS: [&str; 9] = [
    "what",
    "side",
    "per s",
    "p50 us",
    "server CPU us",
    "PostgreSQL CPU us",
    "items/group",
    "rate / plain",
    "CPU / plain",
];

/// The questions over some documents.
pub(super) fn questions(documents: &Documents) -> anyhow::Result<Vec<Row>> {
    let mut rows = rows::rows(documents);
    rows.retain(|row| row.indexed && QUESTIONS.contains(&row.name));
    let names: Vec<_> = rows.iter().map(|row| row.name).collect();
    anyhow::ensure!(names == QUESTIONS, "the questions are {names:?}");
    Ok(rows)
}

fn embedded(plan: &Plan, amount: &Amount) -> anyhow::Result<Vec<Turn>> {
    let folder = tempfile::tempdir()?;
    let server = Server::start(&plan.server, &folder.path().join("data"))?;
    on_server(Watched { servers: &[server], cluster: None }, amount)
}

fn on_store(plan: &Plan, cluster: &Cluster, amount: &Amount) -> anyhow::Result<Vec<Turn>> {
    let servers = start_servers(plan, cluster, &cluster.url(), 1)?;
    on_server(Watched { servers: &servers, cluster: Some(cluster) }, amount)
}

fn on_server(watched: Watched<'_>, amount: &Amount) -> anyhow::Result<Vec<Turn>> {
    let server = watched.servers.first().context("a server is watched")?;
    let (signer, documents) = (Signer::new()?, &amount.documents);
    make(server, signer.setup()?)?;
    make(server, [signer.container("documents", None, &Documents::container("documents"))?])?;
    let load = |requests, connections, time_max, status| Load {
        requests,
        connections,
        time_max,
        repeat: false,
        status,
    };
    let creates = signer.creates(0..(RATE_MAX * amount.create.as_secs_f64()) as u64)?;
    let creates = load(creates, CONNECTIONS, amount.create, 201);
    let mut turns = vec![watched.measure(Count::Settled, 1, || load::run(server.address, creates))?];
    let unit = |unit: Range<u64>| {
        signer.bulk("dbs/bench/colls/documents", unit.map(|number| documents.document(number)))
    };
    let bulk = units(0..documents.count).map(unit).collect::<anyhow::Result<Vec<_>>>()?;
    let bulk = load(bulk, BULK_CONNECTIONS, BULK_MAX, 200);
    turns.push(watched.measure(Count::Settled, LOAD_UNIT as usize, || load::run(server.address, bulk))?);
    for row in questions(documents)? {
        let requests = row.variants.iter().map(|it| session::request(&signer, row.sql, it, ITEM_COUNT_MAX));
        let requests =
            requests.map(|request| Ok(request?.into_bytes())).collect::<anyhow::Result<Vec<_>>>()?;
        let ask = Load { repeat: true, ..load(requests, CONNECTIONS, amount.ask, 200) };
        turns.push(watched.measure(Count::AtOnce, 1, || load::run(server.address, ask))?);
    }
    Ok(turns)
}

fn plain(cluster: &Cluster, amount: &Amount) -> anyhow::Result<Vec<Turn>> {
    empty(cluster)?;
    let mut client = connect(cluster)?;
    client.execute(writes::TABLE)?;
    client.execute(&writes::TABLE.replace("items", "documents"))?;
    let watched = Watched { servers: &[], cluster: Some(cluster) };
    let run = |load: &Statements<'_>| statements::run(|| connect(cluster), load);
    let documents = &amount.documents;
    let creates = (0..(RATE_MAX * amount.create.as_secs_f64()) as u64).map(items::item);
    let creates: Vec<_> = creates.map(|item| vec![item.id, item.partition_key, item.text]).collect();
    let create = Statements {
        sql: writes::INSERT,
        values: &creates,
        connections: CONNECTIONS,
        time_max: amount.create,
        repeat: false,
    };
    let mut turns = vec![watched.measure(Count::Settled, 1, || run(&create))?];
    let array = |unit: Range<u64>| {
        let texts: Vec<String> = unit.map(|number| documents.document(number).text).collect();
        vec![format!("[{}]", texts.join(","))]
    };
    let arrays: Vec<_> = units(0..documents.count).map(array).collect();
    let bulk = Statements {
        sql: &writes::INSERT_MANY.replace("items", "documents"),
        values: &arrays,
        connections: BULK_CONNECTIONS,
        time_max: BULK_MAX,
        repeat: false,
    };
    turns.push(watched.measure(Count::Settled, LOAD_UNIT as usize, || run(&bulk))?);
    client.execute("VACUUM ANALYZE documents")?;
    for row in questions(documents)? {
        let rival = row.rivals.first().context("PostgreSQL is asked the same")?;
        let ask = Statements {
            sql: rival.sql,
            values: &rival.values,
            connections: CONNECTIONS,
            time_max: amount.ask,
            repeat: true,
        };
        turns.push(watched.measure(Count::AtOnce, 1, || run(&ask))?);
    }
    Ok(turns)
}
