//! The list of an account's stores, as operators change it: one more, another address, one less.
//!
//! In: names and addresses. Out: the first store's list, which servers read every few seconds; or why not, in words.
//! Invariants
//! - A further store says itself which place it is, so that it is not added twice, nor taken for another one.
//! - A store is removed only when nothing lives there, and nothing can begin to: whoever fixes a shard's place holds the store's row
//!   (`placement`), and shards whose place was fixed there but never founded are dropped before they are looked at.
//! - Places are not used again: a removed store keeps its row, without an address.
//!
//! Not here: what is in stores (`overview`), which of them a shard gets (`placement`).

use crate::connection::{ConnectionPurpose, StoreConnection};
use crate::schema::{self, FORMAT};
use crate::store::PostgresStore;
use crate::url::StoreUrl;
use crate::{PostgresCore, PostgresEngine, StoreOpenError};
use astrarium_kv::{Error, PlaceId};
use std::sync::Arc;

const IS_FIRST_STORE: &str = "SELECT FROM store LIMIT 1";
const READ_PLACE_MARK: &str = "SELECT value FROM meta WHERE name = 'place'";
const SAY_PLACE_MARK: &str =
    "INSERT INTO meta VALUES ('place', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const FORGET_PLACE_MARK: &str = "DELETE FROM meta WHERE name = 'place'";
const ADD_STORE: &str =
    "INSERT INTO store (id, name, url) SELECT coalesce(max(id), 0) + 1, $1, $2 FROM store RETURNING id";
const SET_URL: &str = "UPDATE store SET url = $2 WHERE id = $1 AND id > 0 AND url <> ''";

/// The name becomes free for another one.
const TAKE_OFF_LIST: &str = "UPDATE store SET url = '', name = name || ' (removed ' || id || ')' \
    WHERE id = $1 AND id > 0 AND is_draining AND url <> ''";
const READ_SHARDS: &str = "SELECT shard FROM placement WHERE store = $1 AND is_fixed ORDER BY shard";
const DROP_UNFOUNDED: &str = "INSERT INTO shard (id, is_dropped) SELECT id, true FROM unnest($1::bigint[]) AS e(id) \
    ON CONFLICT (id) DO NOTHING";
const COUNT_LIVING: &str = "SELECT count(*) FROM shard WHERE NOT is_dropped OR pending IS NOT NULL";
/// Whoever is about to fix such a place waits, and finds another one.
const FORGET_SAID: &str = "UPDATE placement SET store = 0 WHERE store = $1 AND NOT is_fixed";
/// So that whoever still asks for one of them is told that it is gone.
const TAKE_DROPPED: &str = "UPDATE placement SET store = 0 WHERE store = $1";

impl PostgresEngine {
    /// Adds a store to the account, making its tables if need be.
    pub fn add_store(&self, name: &str, url: &str) -> Result<PlaceId, StoreOpenError> {
        let url = StoreUrl::parse(url)?;
        let core = Arc::clone(&self.core);
        let account = format!("{:032x}", core.account);
        let made = url.clone();
        self.blocking(async move { Ok::<_, Error>(schema::init(&made, Some(&account)).await) })??;
        let name = name.to_owned();
        Ok(self.blocking(async move { core.add_store(&name, &url).await })?)
    }

    /// Why a store cannot be added to this account, in words; nothing if it can, as far as can be told without adding it.
    pub fn refusal_to_add(&self, name: &str, url: &str) -> Result<Option<String>, StoreOpenError> {
        let url = StoreUrl::parse(url)?;
        let (core, name) = (Arc::clone(&self.core), name.to_owned());
        Ok(self.blocking(async move { core.refusal_to_add(&name, &url).await })?)
    }

    /// Changes where a further store is: it was moved, or restored elsewhere. What is there must be that store. Servers learn of it
    /// within seconds. Gives why not, in words.
    pub fn set_store_url(&self, name: &str, url: &str) -> Result<Option<String>, StoreOpenError> {
        let url = StoreUrl::parse(url)?;
        let (core, name) = (Arc::clone(&self.core), name.to_owned());
        Ok(self.blocking(async move { core.set_store_url(&name, &url).await })?)
    }

    /// Removes a further store that was drained from the account. Its tables stay where they are. Gives why not, in words.
    pub fn remove_store(&self, name: &str) -> Result<Option<String>, Error> {
        let (core, name) = (Arc::clone(&self.core), name.to_owned());
        self.blocking(async move { core.remove_store(&name).await })
    }
}

impl PostgresCore {
    async fn add_store(&self, name: &str, url: &StoreUrl) -> Result<PlaceId, Error> {
        self.refresh_stores().await?;
        let there = self.placement.stores().into_iter().find(|store| store.name == name);
        let place = match there {
            // It was killed when it was half done.
            Some(store) if store.id != PlaceId::FIRST && store.url.shown() == url.shown() => store.id,
            _ => {
                let rows = self.home().workers.get().await?.query(ADD_STORE, &[&name, &url.text()]).await?;
                PlaceId(rows.first().map_or(0, |row| row.get::<_, i32>(0).cast_unsigned()))
            }
        };
        let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
        connection.execute(SAY_PLACE_MARK, &[&place.0.to_string()]).await?;
        self.refresh_stores().await?;
        Ok(place)
    }

    async fn refusal_to_add(&self, name: &str, url: &StoreUrl) -> Result<Option<String>, Error> {
        self.refresh_stores().await?;
        for store in self.placement.stores() {
            if store.name == name && store.url.shown() == url.shown() && !is_marked(url).await? {
                return Ok(None);
            }
            if store.name == name {
                return Ok(Some(format!("there is a store {name} already, {}", store.url.shown())));
            }
            if store.url.shown() == url.shown() {
                return Ok(Some(format!("{} is the account's store {} already", url.shown(), store.name)));
            }
        }
        // Under another spelling of its address.
        let told = match schema::status(url).await {
            Ok(told) => told,
            Err(error) => return Ok(Some(error.to_string())),
        };
        if told.account != Some(format!("{:032x}", self.account)) || told.format != Some(FORMAT) {
            return Ok(None);
        }
        let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
        let is_used = !connection.query(IS_FIRST_STORE, &[]).await?.is_empty() || is_marked(url).await?;
        Ok(is_used.then(|| {
            format!("{} is one of the account's stores already, under another address", url.shown())
        }))
    }

    /// A further store of that name, or why there is none.
    async fn further_store(&self, name: &str) -> Result<Result<Arc<PostgresStore>, String>, Error> {
        self.refresh_stores().await?;
        let found = self.placement.stores().into_iter().find(|store| store.name == name);
        Ok(match found {
            None => Err(format!("there is no store {name}")),
            Some(store) if store.id == PlaceId::FIRST => {
                Err("the first store is where --store says, and stays".to_owned())
            }
            Some(store) => Ok(store),
        })
    }

    async fn set_store_url(&self, name: &str, url: &StoreUrl) -> Result<Option<String>, Error> {
        let store = match self.further_store(name).await? {
            Ok(store) => store,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let told = match schema::status(url).await {
            Ok(told) => told,
            Err(error) => return Ok(Some(error.to_string())),
        };
        if told.account != Some(format!("{:032x}", self.account)) || told.format != Some(FORMAT) {
            return Ok(Some(format!("{} is not a store of this account", url.shown())));
        }
        let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
        let rows = connection.query(READ_PLACE_MARK, &[]).await?;
        if rows.first().map(|row| row.get::<_, String>(0)) != Some(store.id.0.to_string()) {
            return Ok(Some(format!("{} is not the account's store {name}", url.shown())));
        }
        let home = self.home();
        home.workers.get().await?.execute(SET_URL, &[&store.id.0.cast_signed(), &url.text()]).await?;
        Ok(None)
    }

    async fn remove_store(&self, name: &str) -> Result<Option<String>, Error> {
        let store = match self.further_store(name).await? {
            Ok(store) => store,
            Err(refusal) => return Ok(Some(refusal)),
        };
        let home = self.home();
        let connection = home.workers.get().await?;
        // Dropped with the connection unless it is committed.
        connection.script("BEGIN").await?;
        let place = store.id.0.cast_signed();
        if connection.execute(TAKE_OFF_LIST, &[&place]).await? == 0 {
            return Ok(Some(format!(
                "store {name} is not being drained; `astrarium store drain {name}` has everything moved away from it"
            )));
        }
        connection.execute(FORGET_SAID, &[&place]).await?;
        let shards = connection.query(READ_SHARDS, &[&place]).await?;
        let shards: Vec<i64> = shards.iter().map(|row| row.get(0)).collect();
        let living = forget_unfounded(&store, &shards).await?;
        if living > 0 {
            return Ok(Some(format!(
                "{living} key ranges live in store {name} still; `astrarium status` tells which: wait until they have moved away"
            )));
        }
        connection.execute(DROP_UNFOUNDED, &[&shards]).await?;
        connection.execute(TAKE_DROPPED, &[&place]).await?;
        connection.script("COMMIT").await?;
        drop(connection);
        store.workers.get().await?.execute(FORGET_PLACE_MARK, &[]).await?;
        self.refresh_stores().await?;
        Ok(None)
    }
}

/// Whether a store says that it is one of an account's further ones.
async fn is_marked(url: &StoreUrl) -> Result<bool, Error> {
    let connection = StoreConnection::open(url, ConnectionPurpose::Work).await?;
    Ok(!connection.query(READ_PLACE_MARK, &[]).await?.is_empty())
}

/// Drops the shards that were to be founded in a store and were not; tells how many live there.
async fn forget_unfounded(store: &PostgresStore, shards: &[i64]) -> Result<i64, Error> {
    let connection = store.workers.get().await?;
    connection.execute(DROP_UNFOUNDED, &[&shards]).await?;
    let rows = connection.query(COUNT_LIVING, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}
