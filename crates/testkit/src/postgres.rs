//! The PostgreSQL that all tests of one program share: started when the first of them asks, ended with the program.
//!
//! In: nothing. Out: stores that are empty, each a schema of its own; nothing, and a word why, where PostgreSQL is missing. With
//! `ASTRARIUM_TEST_STORE` stores are schemas of the one that is named, whoever speaks PostgreSQL's protocol there.

use astrarium_kv::Engine as _;
use astrarium_kv_postgres::{PostgresEngine, PostgresOptions, ServerDescription, init_store};
use astrarium_postgres_fixture::{Cluster, Installation, Settings, named_store};
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The cluster; nothing where PostgreSQL is missing.
pub fn cluster() -> Option<&'static Cluster> {
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

/// Whether there can be stores: in the one that the environment names, or in a PostgreSQL of our own.
pub fn is_there() -> bool {
    named_store().is_some() || cluster().is_some()
}

/// The address of a store that has no tables yet.
fn new_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if let Some(named) = named_store() {
        return named;
    }
    let cluster = cluster().expect("whoever asks knows that PostgreSQL is here");
    format!("{}?schema=test_{}", cluster.url(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The address of an empty store.
pub fn empty_store() -> String {
    let url = new_address();
    init_store(&url).expect("make the tables of an empty store");
    url
}

/// An engine over an empty store.
pub fn open_empty() -> PostgresEngine {
    open(&empty_store())
}

/// An engine of one of several servers over a store, which send each other what the other one is to commit.
pub fn open_joined(url: &str) -> PostgresEngine {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let engine = open(url);
    let name = format!("server {}", NEXT.fetch_add(1, Ordering::Relaxed));
    let description = ServerDescription { name, ..ServerDescription::default() };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    engine.join(description, Some(address)).expect("join the servers of a store");
    engine
}

fn open(url: &str) -> PostgresEngine {
    PostgresEngine::open(url, PostgresOptions::default()).expect("open a store")
}

/// The address of the first of so many empty stores, which are places that ranges can move between.
pub fn empty_stores(count: u32) -> String {
    let url = empty_store();
    let engine = open(&url);
    for place in 1..count {
        engine.add_store(&format!("place-{place}"), &new_address()).expect("add a store");
    }
    engine.close().expect("close a store");
    url
}

/// An engine over so many empty stores.
pub fn open_with_stores(count: u32) -> PostgresEngine {
    open(&empty_stores(count))
}
