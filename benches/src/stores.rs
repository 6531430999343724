//! What do servers over PostgreSQL do: beside the embedded engine and plain PostgreSQL, together, with more documents, and when
//! something is killed?
//!
//! Four answers, each with the CPU of servers and that of PostgreSQL apart: the usual requests on a store, on the embedded engine, and
//! on plain PostgreSQL with JSONB and GIN (`sides`); one, two and three servers over one store, and what three machines would do
//! (`servers`); growth with the number of documents (`growth`); the longest time without an acknowledged write after a server is
//! killed, and after a primary is killed and its standby promoted (`gaps`).
//! Invariants
//! - PostgreSQL is durable (`fsync`), with 512 MB of shared buffers, everything else as it comes, and is the same one for the store
//!   and for plain tables, which take turns on it. Its tables are new for every turn.
//! - CPU of writes counts what is done behind the last answer.

mod gaps;
mod growth;
mod servers;
mod sides;

use crate::Plan;
use crate::load::{self, Outcome};
use crate::postgres::client::Client;
use crate::process::{Server, Usage, family_usage, usage_when_quiet};
use crate::report::Report;
use anyhow::Context as _;
use astrarium_kv_postgres::init_store;
use astrarium_postgres_fixture::{Cluster, Installation, Settings};
use std::net::{Ipv4Addr, SocketAddr};

/// Where a store has its tables unless its address says otherwise.
const SCHEMA: &str = "astrarium";
const CONNECTIONS: usize = 64;
/// Creates a second that no run exceeds: as many requests are made ready.
const RATE_MAX: f64 = 20_000.0;

pub(crate) fn answer(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let installation = match Installation::find() {
        Ok(installation) => installation,
        Err(missing) => {
            println!("\nServers over PostgreSQL are left out: {missing}");
            return Ok(());
        }
    };
    let settings = Settings::default().durable().with("shared_buffers", "512MB");
    let cluster = Cluster::start(&installation, settings.clone())?;
    println!("\n{}, fsync on, 512 MB of shared buffers", installation.version()?);
    sides::answer(plan, &cluster, report)?;
    servers::answer(plan, &cluster)?;
    growth::answer(plan, &cluster, report)?;
    gaps::answer(plan, &cluster, report)?;
    drop(cluster);
    gaps::answer_promoted(plan, &Cluster::start(&installation, settings)?, report)
}

/// What was done in one turn, for each document or request.
#[derive(Debug, Clone)]
struct Turn {
    rate: f64,
    p50_micros: f64,
    /// Of each server.
    servers_cpu_micros: Vec<f64>,
    store_cpu_micros: f64,
    /// Batches to a commit group; nothing if nothing was committed.
    group_size: f64,
}

impl Turn {
    /// CPU of all servers.
    fn server_cpu(&self) -> f64 {
        if self.servers_cpu_micros.is_empty() { f64::NAN } else { self.servers_cpu_micros.iter().sum() }
    }

    /// CPU of servers and store, whichever there are.
    fn cpu(&self) -> f64 {
        [self.server_cpu(), self.store_cpu_micros].into_iter().filter(|cpu| !cpu.is_nan()).sum()
    }
}

/// Processes whose CPU is counted while they work.
#[derive(Clone, Copy)]
struct Watched<'run> {
    servers: &'run [Server],
    cluster: Option<&'run Cluster>,
}

/// Whether CPU is read only once nothing is left to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Settled,
    AtOnce,
}

impl Watched<'_> {
    /// Does something that gives so many documents or answers with each request, and counts.
    fn measure(
        self,
        count: Count,
        items_each: usize,
        work: impl FnOnce() -> anyhow::Result<Outcome>,
    ) -> anyhow::Result<Turn> {
        self.wait(count)?;
        let (servers, store, commits) = (self.servers()?, self.store()?, self.commits()?);
        let outcome = work()?;
        let commits_after = self.commits()?;
        self.wait(count)?;
        let item_count = outcome.count * items_each;
        let each = self.servers()?.into_iter().zip(servers);
        Ok(Turn {
            rate: item_count as f64 / outcome.seconds,
            p50_micros: outcome.p50_micros,
            servers_cpu_micros: each.map(|(now, then)| now.since(then).micros_per(item_count)).collect(),
            store_cpu_micros: match self.cluster {
                Some(_) => self.store()?.since(store).micros_per(item_count),
                None => f64::NAN,
            },
            group_size: (commits_after.0 - commits.0) / (commits_after.1 - commits.1),
        })
    }

    fn wait(self, count: Count) -> anyhow::Result<()> {
        let sum = || Ok(self.servers()?.into_iter().fold(self.store()?, |sum, one| Usage(sum.0 + one.0)));
        if count == Count::Settled {
            usage_when_quiet(sum)?;
        }
        Ok(())
    }

    fn servers(self) -> anyhow::Result<Vec<Usage>> {
        self.servers.iter().map(Server::usage).collect()
    }

    fn store(self) -> anyhow::Result<Usage> {
        let Some(cluster) = self.cluster else { return Ok(Usage::default()) };
        family_usage(*cluster.processes().first().context("PostgreSQL is running")?)
    }

    /// Commits and groups of all servers so far.
    fn commits(self) -> anyhow::Result<(f64, f64)> {
        let mut sum = (0.0, 0.0);
        for server in self.servers {
            sum.0 += server.metric("astrarium_storage_commits_total")?;
            sum.1 += server.metric("astrarium_storage_groups_total")?;
        }
        Ok(sum)
    }
}

/// A connection without anything of ours between.
fn connect(cluster: &Cluster) -> anyhow::Result<Client> {
    Client::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, cluster.port())), "postgres")
}

/// Removes all tables.
fn empty(cluster: &Cluster) -> anyhow::Result<()> {
    cluster.psql(&format!(
        "DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public"
    ))?;
    cluster.psql("CHECKPOINT")?;
    Ok(())
}

/// Servers over an empty store.
fn start_servers(plan: &Plan, cluster: &Cluster, url: &str, count: usize) -> anyhow::Result<Vec<Server>> {
    empty(cluster)?;
    init_store(url)?;
    (0..count).map(|_| Server::start_on_store(&plan.server, url)).collect()
}

/// Sends requests that make something.
fn make(server: &Server, requests: impl IntoIterator<Item = Vec<u8>>) -> anyhow::Result<()> {
    for request in requests {
        let answer = load::once(server.address, &request)?;
        anyhow::ensure!(load::status_of(&answer) == 201, "setup: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
