//! One PostgreSQL for all tests of this program, and schemas of their own in it.

use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, init_store};
use astrarium_postgres_fixture::{Cluster, Installation, Settings, named_store};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The cluster that tests share; nothing where PostgreSQL is missing.
pub(crate) fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let start = || match Installation::find() {
        Ok(installation) => {
            Some(Cluster::start(&installation, Settings::default()).expect("PostgreSQL starts"))
        }
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    };
    CLUSTER.get_or_init(start).as_ref()
}

/// The address of a store of its own.
pub(crate) fn fresh_store(cluster: &Cluster) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let url = format!("{}?schema=test_{}", cluster.url(), NEXT.fetch_add(1, Ordering::Relaxed));
    init_store(&url).expect("the tables are made");
    url
}

/// The address of a store of its own: in the store that the environment names, or in the cluster that tests share.
pub(crate) fn any_store() -> Option<String> {
    let Some(url) = named_store() else { return cluster().map(fresh_store) };
    init_store(&url).expect("the tables are made");
    Some(url)
}

/// Space is given back only when a test says so.
pub(crate) fn options() -> PostgresOptions {
    PostgresOptions { reclaim_interval: Duration::from_hours(1), ..PostgresOptions::default() }
}

pub(crate) fn open(url: &str) -> PostgresEngine {
    PostgresEngine::open(url, options()).expect("the store opens")
}
