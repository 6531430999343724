//! This server as one of several over the same store: it says that it is there, goes by the store's clock, and tells the gateway of
//! the others.

use crate::machine;
use crate::settings::ServeSettings;
use astrarium_env::ClockShift;
use astrarium_gateway::cluster::{Cluster, Measure, ServerEndpoint};
use astrarium_kv_postgres::{PoolUse, PostgresEngine, ServerDescription, StoreUse};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often the clock is set by the store's.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// A server whose last heartbeat is older asks for no requests: others take it for dead, or soon will.
const HEARTBEAT_AGE_MAX: Duration = Duration::from_secs(5);

/// Becomes one of the account's servers.
pub(crate) fn join(
    settings: &ServeSettings,
    engine: &Arc<PostgresEngine>,
    address: SocketAddr,
    clock_shift: ClockShift,
) -> anyhow::Result<()> {
    let authority = authority(address);
    let endpoint = settings.public_endpoint.clone().unwrap_or_else(|| format!("http://{authority}/"));
    if settings.public_endpoint.is_none() && address.ip().is_unspecified() {
        tracing::info!(
            endpoint,
            "clients of other servers are told this endpoint; --public-endpoint sets another"
        );
    }
    let description = ServerDescription {
        name: settings.server_name.clone().unwrap_or(authority),
        endpoint,
        peer: settings.peer_address.clone().unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..ServerDescription::default()
    };
    engine.join(description, peer_listen(settings, address))?;
    let engine = Arc::downgrade(engine);
    tokio::runtime::Handle::current().spawn(async move {
        while let Some(engine) = engine.upgrade() {
            clock_shift.set_micros(engine.clock_shift_micros());
            drop(engine);
            tokio::time::sleep(CLOCK_INTERVAL).await;
        }
    });
    Ok(())
}

/// Where to listen for other servers. One that listens on every address cannot tell them which one to use.
fn peer_listen(settings: &ServeSettings, address: SocketAddr) -> Option<SocketAddr> {
    let beside = (!address.ip().is_unspecified()).then(|| SocketAddr::new(address.ip(), 0));
    settings.peer_listen.or(beside)
}

/// Host and port by which others reach an address; one that means every network is reached by the machine's name.
fn authority(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("{}:{}", machine::host_name(), address.port());
    }
    address.to_string()
}

/// What the engine knows of the account's servers and stores, for the gateway.
pub(crate) struct Servers {
    engine: Arc<PostgresEngine>,
}

impl Servers {
    pub(crate) fn over(engine: &Arc<PostgresEngine>) -> Servers {
        Servers { engine: Arc::clone(engine) }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.servers()).finish()
    }
}

impl Cluster for Servers {
    fn servers(&self) -> Vec<ServerEndpoint> {
        let alive = self.engine.alive();
        let server = |member: &astrarium_kv_postgres::AccountServer| ServerEndpoint {
            name: member.description.name.clone(),
            endpoint: member.description.endpoint.clone(),
            is_here: member.is_here,
        };
        alive.iter().map(server).collect()
    }

    fn trouble(&self) -> Option<String> {
        let age = self.engine.usage().heartbeat_age.filter(|age| *age > HEARTBEAT_AGE_MAX)?;
        Some(format!("no heartbeat has reached the store for {} s", age.as_secs()))
    }

    fn remarks(&self) -> Vec<String> {
        let stores = self.engine.usage().stores.into_iter().filter(|store| !store.is_up);
        let remark =
            |name| format!("store {name} does not answer; requests for the ranges in it are refused");
        stores.map(|store| remark(store.name)).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let usage = self.engine.usage();
        let (sent, received) = self.engine.forwarded();
        let age = usage.heartbeat_age.map_or(f64::NAN, |age| age.as_secs_f64());
        let alive = self.engine.alive().len();
        vec![
            Measure::gauge(
                "servers_alive",
                "Servers of the account that were alive at the last heartbeat",
                alive as f64,
            ),
            Measure::gauge(
                "heartbeat_age_seconds",
                "Seconds since the last heartbeat that reached the store",
                age,
            ),
            Measure::counter(
                "forwarded_commits",
                "Batches that this server sent to their owner to commit",
                sent as f64,
            ),
            Measure::counter(
                "received_commits",
                "Batches that other servers sent to this one",
                received as f64,
            ),
            Measure::counter("index_merges", "Merges of indexes done by this server", usage.merges as f64),
            Measure::gauge(
                "index_unmerged_blocks",
                "Blocks of indexes that are in no run yet, of the ranges in this server's memory",
                usage.unmerged_blocks as f64,
            ),
            Measure::gauge("index_unmerged_bytes", "Their bytes", usage.unmerged_bytes as f64),
            by_store("store_up", "1 while the store answers", &usage.stores, |store| f64::from(store.is_up)),
            by_pool("store_connections_in_use", "Connections to the store in use", &usage.stores, |pool| {
                pool.in_use
            }),
            by_pool("store_connections_max", "Connections to the store at most", &usage.stores, |pool| {
                pool.connections_max
            }),
        ]
    }
}

fn by_store(
    name: &'static str,
    help: &'static str,
    stores: &[StoreUse],
    value: fn(&StoreUse) -> f64,
) -> Measure {
    let values = stores.iter().map(|store| (vec![("store", store.name.clone())], value(store)));
    Measure { name, help, is_counter: false, values: values.collect() }
}

fn by_pool(
    name: &'static str,
    help: &'static str,
    stores: &[StoreUse],
    value: fn(&PoolUse) -> usize,
) -> Measure {
    let of_store = |store: &StoreUse| {
        let labels =
            |pool: &PoolUse| vec![("store", store.name.clone()), ("purpose", pool.purpose.to_owned())];
        store.pools.map(|pool| (labels(&pool), value(&pool) as f64))
    };
    Measure { name, help, is_counter: false, values: stores.iter().flat_map(of_store).collect() }
}
