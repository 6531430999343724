//! One, two and three servers over one store: the same load spread over them.
//!
//! All of them share the cores of this machine, so rates say little here; CPU of servers and store apart tells what machines of
//! their own would do, which is printed.
//! Invariants
//! - A load begins when every server knows of the others.

use super::{CONNECTIONS, Count, RATE_MAX, SCHEMA, Turn, Watched, make, start_servers};
use crate::Plan;
use crate::items::Signer;
use crate::load::{self, Load};
use crate::process::Server;
use crate::report::{Table, median};
use anyhow::Context as _;
use astrarium_postgres_fixture::Cluster;
use serde_json::json;
use std::time::{Duration, Instant};

const COUNTS: [usize; 3] = [1, 2, 3];
/// Containers: name, ranges, and the throughput that gives so many.
const CONTAINERS: [(&str, &str, u32); 2] = [("one", "1", 400), ("eight", "8", 48_000)];
const KNOWN_MAX: Duration = Duration::from_secs(30);
/// Heartbeats after which a server knows of the others, and they of that.
const BEATS: usize = 2;
const READ_COUNT_MAX: u64 = 1_000;
/// Machines of which one has the store.
const MACHINES: usize = 3;

/// Creates and point reads in one container.
struct Both {
    create: Turn,
    read: Turn,
}

/// One of the two.
type Which = fn(&Both) -> &Turn;

/// What they are called.
const KINDS: [(&str, Which); 2] = [("create", |both| &both.create), ("point read", |both| &both.read)];

pub(super) fn answer(plan: &Plan, cluster: &Cluster) -> anyhow::Result<()> {
    // For each container and number of servers, the turns of all rounds.
    let mut cells: Vec<Vec<Both>> = (0..CONTAINERS.len() * COUNTS.len()).map(|_| Vec::new()).collect();
    for _ in 0..if plan.quick { 1 } else { plan.rounds } {
        for (place, count) in COUNTS.into_iter().enumerate() {
            let servers = start_servers(plan, cluster, &cluster.url(), count)?;
            let signer = Signer::new()?;
            let [database, _] = signer.setup()?;
            make(&servers[0], [database])?;
            for (container, (name, _, throughput)) in CONTAINERS.into_iter().enumerate() {
                make(&servers[0], [signer.container(name, Some(throughput), &json!({}))?])?;
                wait_until_known(cluster, count)?;
                let watched = Watched { servers: &servers, cluster: Some(cluster) };
                cells[container * COUNTS.len() + place].push(turn(plan, watched, name)?);
            }
        }
    }
    let title =
        format!("Servers over one store, {CONNECTIONS} connections spread over them, all on this machine");
    let mut table = Table::new(&title, &COLUMNS);
    for (kind, which) in KINDS {
        for ((_, ranges, _), cells) in CONTAINERS.iter().zip(cells.chunks(COUNTS.len())) {
            for (count, rounds) in COUNTS.into_iter().zip(cells) {
                let of = |value: &dyn Fn(&Turn) -> f64| median(rounds.iter().map(|both| value(which(both))));
                let server = |place: usize| {
                    of(&|turn| turn.servers_cpu_micros.get(place).copied().unwrap_or(f64::NAN))
                };
                let values = [
                    of(&|turn| turn.rate),
                    of(&|turn| turn.p50_micros),
                    of(&|turn| turn.group_size),
                    server(0),
                    server(1),
                    server(2),
                    of(&|turn| turn.store_cpu_micros),
                ];
                table.row(&[kind, ranges, &count.to_string()], &values);
            }
        }
    }
    table.print();
    print_machines(&cells);
    Ok(())
}

const COLUMNS: [&str; 10] = [
    "what",
    "ranges",
    "servers",
    "per s",
    "p50 us",
    "items/group",
    "CPU us, server 1",
    "server 2",
    "server 3",
    "PostgreSQL",
];

/// What machines like this one would do, if CPU were all that counts: one with the store, the others with a server each.
fn print_machines(cells: &[Vec<Both>]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let servers = MACHINES - 1;
    let title =
        format!("By CPU, {MACHINES} machines of {cores} cores: {servers} with a server, 1 with the store");
    let columns =
        ["what", "ranges", "bound by", "per s", "servers could", "store could", "servers that fill a store"];
    let mut table = Table::new(&title, &columns);
    for (kind, which) in KINDS {
        for ((_, ranges, _), cells) in CONTAINERS.iter().zip(cells.chunks(COUNTS.len())) {
            let Some(rounds) = cells.get(servers - 1) else { continue };
            let of = |value: fn(&Turn) -> f64| median(rounds.iter().map(|both| value(which(both))));
            let (server_cpu, store_cpu) = (of(Turn::server_cpu), of(|turn| turn.store_cpu_micros));
            let could = (servers as f64 * cores * 1e6 / server_cpu, cores * 1e6 / store_cpu);
            let bound = if could.0 < could.1 { "servers" } else { "store" };
            table.row(
                &[kind, ranges, bound],
                &[could.0.min(could.1), could.0, could.1, server_cpu / store_cpu],
            );
        }
    }
    table.print();
}

/// Waits until all servers have said that they are there, and again after that.
pub(super) fn wait_until_known(cluster: &Cluster, count: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let beats = || -> anyhow::Result<Vec<String>> {
        let alive = format!("SELECT expires FROM {SCHEMA}.server WHERE expires > clock_timestamp()");
        Ok(cluster.psql(&alive)?.lines().map(str::to_owned).collect())
    };
    for _ in 0..BEATS {
        let before = beats()?;
        loop {
            let now = beats()?;
            let have_all = now.len() == count && now.iter().all(|beat| !before.contains(beat));
            if have_all {
                break;
            }
            anyhow::ensure!(
                began.elapsed() < KNOWN_MAX,
                "servers do not know of each other after {KNOWN_MAX:?}"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

fn turn(plan: &Plan, watched: Watched<'_>, container: &str) -> anyhow::Result<Both> {
    let time_max = Duration::from_millis(if plan.quick { 1_500 } else { 4_000 });
    let addresses: Vec<_> = watched.servers.iter().map(|server: &Server| server.address).collect();
    let (signer, container) = (Signer::new()?, format!("dbs/bench/colls/{container}"));
    let requests = signer.creates_in(&container, 0..(RATE_MAX * time_max.as_secs_f64()) as u64)?;
    let load = Load { requests, connections: CONNECTIONS, time_max, repeat: false, status: 201 };
    let mut created = 0;
    let create = watched.measure(Count::Settled, 1, || {
        let outcome = load::run_on(addresses.clone(), load)?;
        created = outcome.count as u64;
        Ok(outcome)
    })?;
    // A connection takes the next number when the one before was answered: all below the count are there.
    let requests = signer.reads_of(&container, 0..created.min(READ_COUNT_MAX))?;
    requests.first().context("nothing was created")?;
    let load = Load { requests, connections: CONNECTIONS, time_max: time_max / 2, repeat: true, status: 200 };
    let read = watched.measure(Count::AtOnce, 1, || load::run_on(addresses, load))?;
    Ok(Both { create, read })
}
