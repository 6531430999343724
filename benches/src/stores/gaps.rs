//! For how long nobody's writes are acknowledged when something is killed.
//!
//! Clients create documents one after the other over all ranges, and repeat what was not acknowledged: at the same server, or, those
//! that *fail over*, at the next one. First one of three servers is killed; then the primary of a synchronous standby, which is promoted
//! at once, as an operator's tool would once it has noticed.
//! Invariants
//! - What was acknowledged is counted in the end, and must be there.
//! - A gap is the time between two acknowledged writes of one client, or of all that are alike; the time after the last one counts.

use super::servers::wait_until_known;
use super::{make, start_servers};
use crate::Plan;
use crate::caller::Caller;
use crate::items::{self, Signer};
use crate::process::Server;
use crate::queries::answers;
use crate::report::{Report, Table};
use anyhow::Context as _;
use astrarium_postgres_fixture::{Cluster, urls};
use astrarium_wire::headers;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
/// So many that each server owns some, and the throughput that gives them.
const RANGES: usize = 8;
const THROUGHPUT: u32 = 48_000;
const CLIENTS_EACH: usize = 4;
/// Before something is killed.
const PEACE: Duration = Duration::from_secs(2);
/// Writes of each client afterwards: enough to come by every range, whoever owned it.
const WRITES_AFTER: u64 = 100;
const RECOVERED_MAX: Duration = Duration::from_mins(1);
/// How long a client waits for an answer, and before it tries again.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// Statuses after which clients may try again; 0 without an answer.
const MAY_TRY_AGAIN: [u16; 6] = [0, 408, 410, 429, 449, 503];

/// A client's servers, the first of which it uses for as long as that answers.
struct Client {
    name: &'static str,
    addresses: Vec<SocketAddr>,
}

/// What a client saw: when each of its writes was acknowledged.
struct Seen {
    name: &'static str,
    acknowledged: Vec<Instant>,
    /// Statuses of what was not acknowledged; 0 without an answer.
    refusals: BTreeMap<u16, usize>,
}

/// What all clients saw, and when something was killed.
struct Course {
    seen: Vec<Seen>,
    killed: Instant,
    ended: Instant,
}

pub(super) fn answer(plan: &Plan, cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let mut servers = begin(plan, cluster, &cluster.url())?;
    let addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS_EACH {
        for address in &addresses[1..] {
            clients.push(Client { name: "of the others", addresses: vec![*address] });
        }
        clients.push(Client { name: "that fail over", addresses: addresses.clone() });
    }
    let first = servers.remove(0);
    let course = watch(&clients, || first.kill())?;
    course.print("One of three servers is killed: the longest time without an acknowledged write");
    course.check(&servers[0], report)
}

pub(super) fn answer_promoted(plan: &Plan, primary: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let standby = primary.standby()?;
    primary.make_synchronous(standby.name())?;
    let servers = begin(plan, primary, &urls(&[primary, &standby]))?;
    let of = |server: &Server| Client { name: "of all", addresses: vec![server.address] };
    let clients: Vec<_> = servers.iter().cycle().take(CLIENTS_EACH * SERVERS).map(of).collect();
    let mut promoted = Duration::ZERO;
    let course = watch(&clients, || {
        primary.kill()?;
        let began = Instant::now();
        standby.promote()?;
        promoted = began.elapsed();
        Ok(())
    })?;
    course.print("The primary is killed, its synchronous standby promoted: the longest time without an acknowledged write");
    println!("The promotion itself took {:.1} s.", promoted.as_secs_f64());
    course.check(&servers[0], report)
}

/// Servers that know of each other, with a container.
fn begin(plan: &Plan, cluster: &Cluster, url: &str) -> anyhow::Result<Vec<Server>> {
    let servers = start_servers(plan, cluster, url, SERVERS)?;
    let signer = Signer::new()?;
    let [database, _] = signer.setup()?;
    make(&servers[0], [database, signer.container("items", Some(THROUGHPUT), &json!({}))?])?;
    wait_until_known(cluster, SERVERS)?;
    Ok(servers)
}

/// Lets clients write, kills something, and lets them go on until all of them write again.
fn watch(clients: &[Client], kill: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Course> {
    let signer = Signer::new()?;
    let (is_over, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let counts: Vec<AtomicU64> = clients.iter().map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .zip(&counts)
            .map(|(client, count)| scope.spawn(|| client.write(&signer, &next, count, &is_over)))
            .collect();
        std::thread::sleep(PEACE);
        let killed = Instant::now();
        let outcome = kill();
        let before: Vec<u64> = counts.iter().map(|count| count.load(Relaxed)).collect();
        let has_recovered =
            || counts.iter().zip(&before).all(|(count, before)| count.load(Relaxed) >= before + WRITES_AFTER);
        while outcome.is_ok() && !has_recovered() && killed.elapsed() < RECOVERED_MAX {
            std::thread::sleep(PAUSE);
        }
        is_over.store(true, Relaxed);
        let ended = Instant::now();
        let seen = threads.into_iter().map(|thread| thread.join().expect("a thread of the bench ends"));
        let seen = seen.collect::<anyhow::Result<_>>()?;
        outcome?;
        Ok(Course { seen, killed, ended })
    })
}

impl Client {
    fn write(
        &self,
        signer: &Signer,
        next: &AtomicU64,
        count: &AtomicU64,
        is_over: &AtomicBool,
    ) -> anyhow::Result<Seen> {
        let mut seen = Seen { name: self.name, acknowledged: Vec::new(), refusals: BTreeMap::new() };
        let mut addresses = self.addresses.iter().cycle();
        let mut address = *addresses.next().context("a client has a server")?;
        let mut caller = None;
        while !is_over.load(Relaxed) {
            let request = signer.creates(std::iter::once(next.fetch_add(1, Relaxed)))?.remove(0);
            let mut was_sent = false;
            while !is_over.load(Relaxed) {
                let status = ask(&mut caller, address, &request);
                // What is there already was written by the attempt before.
                if status == Some(201) || (was_sent && status == Some(409)) {
                    seen.acknowledged.push(Instant::now());
                    count.fetch_add(1, Relaxed);
                    break;
                }
                *seen.refusals.entry(status.unwrap_or(0)).or_default() += 1;
                was_sent = true;
                caller = None;
                address = *addresses.next().context("a client has a server")?;
                std::thread::sleep(PAUSE);
            }
        }
        Ok(seen)
    }
}

/// The status of an answer; nothing if there was none.
fn ask(caller: &mut Option<Caller>, address: SocketAddr, request: &[u8]) -> Option<u16> {
    if caller.is_none() {
        *caller = Caller::open_within(address, ANSWER_MAX).ok();
    }
    caller.as_mut()?.ask(request).ok().map(|answer| answer.status)
}

impl Course {
    fn print(&self, title: &str) {
        let columns =
            ["clients", "count", "writes", "refused", "a client before, s", "a client, s", "all of them, s"];
        let mut table = Table::new(title, &columns);
        let mut names: Vec<_> = self.seen.iter().map(|seen| seen.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let alike: Vec<_> = self.seen.iter().filter(|seen| seen.name == name).collect();
            let writes: usize = alike.iter().map(|seen| seen.acknowledged.len()).sum();
            let refused: usize = alike.iter().flat_map(|seen| seen.refusals.values()).sum();
            let longest = |is_after: bool| {
                alike.iter().map(|seen| self.gap(seen.acknowledged.clone(), is_after)).fold(0.0, f64::max)
            };
            let together: Vec<_> = alike.iter().flat_map(|seen| seen.acknowledged.iter().copied()).collect();
            let values = [
                alike.len() as f64,
                writes as f64,
                refused as f64,
                longest(false),
                longest(true),
                self.gap(together, true),
            ];
            table.row(&[name], &values);
        }
        table.print();
    }

    /// The longest time between two of these before the kill, or of those that ended after it.
    fn gap(&self, mut times: Vec<Instant>, is_after: bool) -> f64 {
        times.push(self.ended);
        times.sort_unstable();
        let pairs = times.windows(2).filter(|pair| (pair[1] > self.killed) == is_after);
        pairs.map(|pair| (pair[1] - pair[0]).as_secs_f64()).fold(0.0, f64::max)
    }

    /// Everything acknowledged is there, and everybody writes again.
    fn check(&self, server: &Server, report: &mut Report) -> anyhow::Result<()> {
        let acknowledged: usize = self.seen.iter().map(|seen| seen.acknowledged.len()).sum();
        let query = json!({"query": "SELECT VALUE COUNT(1) FROM c"}).to_string();
        let (signer, path) = (Signer::new()?, format!("{}/docs", items::CONTAINER));
        let mut found = 0.0;
        for range in 0..RANGES {
            let lines = format!(
                "content-type: application/query+json\r\n{}: True\r\n{}: {range}\r\n",
                headers::IS_QUERY,
                headers::PARTITION_KEY_RANGE_ID,
            );
            let request = signer.request("POST", &path, &lines, &query)?;
            let mut caller = Caller::open(server.address)?;
            let rows = answers::rows_of(caller.expect(&[200], &request)?.body)?;
            found += rows.iter().filter_map(serde_json::Value::as_f64).sum::<f64>();
        }
        if found < acknowledged as f64 {
            report.wrong(format!("{acknowledged} writes were acknowledged, {found} documents are there"));
        }
        if self.ended.duration_since(self.killed) >= RECOVERED_MAX {
            report.wrong(format!("not all clients write again after {RECOVERED_MAX:?}"));
        }
        let mut refusals = BTreeMap::<u16, usize>::new();
        for (status, count) in self.seen.iter().flat_map(|seen| &seen.refusals) {
            *refusals.entry(*status).or_default() += count;
        }
        if let Some(status) = refusals.keys().find(|status| !MAY_TRY_AGAIN.contains(status)) {
            report.wrong(format!("a create was answered with status {status}"));
        }
        println!(
            "{acknowledged} writes were acknowledged, {found} documents are there. Refusals by status (0 is no answer): \
             {refusals:?}"
        );
        Ok(())
    }
}
