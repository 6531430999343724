//! Where shards live: the first store has the list of stores and the place of every shard.
//!
//! In: shards. Out: stores.
//! Invariants
//! - A shard's place is fixed by whoever first commits to it, in one statement, whatever others believe; afterwards it never changes, so
//!   it can be remembered for ever.
//! - The catalog's shard is in the first store, which has place 0.
//! - A shard that has no place yet has nothing, whichever store is asked.

use crate::PostgresCore;
use crate::error::Trouble;
use crate::store::{PostgresStore, sql_id};
use crate::url::StoreUrl;
use astrarium_kv::contract::META_SHARD;
use astrarium_kv::{Error, Place, PlaceId, ShardId};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What operators call the first store.
const FIRST_NAME: &str = "first";

/// A shard counts for as much when room is compared, so that empty ones are spread too.
const SHARD_BYTES: u64 = 1 << 20;

pub(crate) struct ShardPlacement {
    stores: RwLock<BTreeMap<PlaceId, Arc<PostgresStore>>>,
    draining: RwLock<BTreeSet<PlaceId>>,
    /// Bytes of stores, as of the last look.
    sizes: RwLock<BTreeMap<PlaceId, u64>>,
    fixed: RwLock<HashMap<ShardId, PlaceId, RandomState>>,
    refreshing: tokio::sync::Mutex<()>,
}

/// A further store without an address was removed (`account_stores`).
const READ_STORES: &str =
    "SELECT id, name, url, is_draining FROM store WHERE id = 0 OR url <> '' ORDER BY id";
const READ_PLACE: &str = "SELECT store, is_fixed FROM placement WHERE shard = $1";
/// Nothing if the store was removed; whoever removes one waits for those who chose it.
const FIX_PLACE: &str = "INSERT INTO placement (shard, store, is_fixed) \
    SELECT $1::bigint, id, true FROM store WHERE id = $2 AND (id = 0 OR url <> '') FOR SHARE \
    ON CONFLICT (shard) DO UPDATE SET is_fixed = true RETURNING store";
const SAY_PLACE: &str = "INSERT INTO placement AS p (shard, store, is_fixed) \
    SELECT $1::bigint, id, false FROM store WHERE id = $2 AND (id = 0 OR url <> '') FOR SHARE \
    ON CONFLICT (shard) DO UPDATE SET store = $2 WHERE NOT p.is_fixed OR p.store = $2 RETURNING store";
const COUNT_SHARDS: &str = "SELECT store, count(*) FROM placement WHERE is_fixed GROUP BY store";
const COUNT_LIVING: &str = "SELECT count(*) FROM shard WHERE NOT is_dropped";
const READ_SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";
const SET_DRAINING: &str = "UPDATE store SET is_draining = $2 WHERE id = $1";
const ADD_FIRST: &str = "INSERT INTO store (id, name, url) VALUES (0, $1, '') ON CONFLICT DO NOTHING";

impl ShardPlacement {
    pub(crate) fn new(first: Arc<PostgresStore>) -> ShardPlacement {
        let fixed: HashMap<_, _, RandomState> = [(META_SHARD, PlaceId::FIRST)].into_iter().collect();
        ShardPlacement {
            stores: RwLock::new([(PlaceId::FIRST, first)].into_iter().collect()),
            draining: RwLock::default(),
            sizes: RwLock::default(),
            fixed: RwLock::new(fixed),
            refreshing: tokio::sync::Mutex::default(),
        }
    }

    /// Every store that is known here, the first one first.
    pub(crate) fn stores(&self) -> Vec<Arc<PostgresStore>> {
        self.stores.read().values().cloned().collect()
    }

    /// Bytes of all stores, as of the last look.
    pub(crate) fn byte_count(&self) -> u64 {
        self.sizes.read().values().sum()
    }

    fn store(&self, place: PlaceId) -> Option<Arc<PostgresStore>> {
        self.stores.read().get(&place).cloned()
    }
}

impl PostgresCore {
    /// The first store.
    pub(crate) fn home(&self) -> Arc<PostgresStore> {
        self.placement.store(PlaceId::FIRST).expect("the first store is there from the beginning")
    }

    /// Learns of stores that were added, removed or got another address, and which are being drained.
    pub(crate) async fn refresh_stores(&self) -> Result<(), Error> {
        // One at a time: what was read first must not be put in last.
        let _turn = self.placement.refreshing.lock().await;
        let home = self.home();
        let connection = home.workers.get().await?;
        let rows = connection.query(READ_STORES, &[]).await?;
        if rows.is_empty() {
            connection.execute(ADD_FIRST, &[&FIRST_NAME]).await?;
        }
        drop(connection);
        let (mut draining, mut listed) = (BTreeSet::new(), BTreeSet::from([PlaceId::FIRST]));
        for row in rows {
            let place = PlaceId(row.get::<_, i32>(0).cast_unsigned());
            listed.insert(place);
            if row.get(3) {
                draining.insert(place);
            }
            let (name, url): (String, &str) = (row.get(1), row.get(2));
            let is_known = |store: Arc<PostgresStore>| store.id == PlaceId::FIRST || store.url.text() == url;
            if self.placement.store(place).is_some_and(is_known) {
                continue;
            }
            let url =
                StoreUrl::parse(url).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
            let identity = self.identity(place);
            let store = PostgresStore::new(&identity, name, url, self.options.connections, &self.runtime);
            if let Some(before) = self.placement.stores.write().insert(place, store) {
                // What is under way there ends there.
                before.close();
                self.history.change();
            }
        }
        *self.placement.draining.write() = draining;
        self.placement.stores.write().retain(|place, store| {
            let is_listed = listed.contains(place);
            if !is_listed {
                store.close();
            }
            is_listed
        });
        Ok(())
    }

    /// The store of a shard that something is to be written to: from then on it is that one's.
    pub(crate) async fn store_of(&self, shard: ShardId) -> Result<Arc<PostgresStore>, Error> {
        if let Some(store) = self.known_store(shard) {
            return Ok(store);
        }
        let fix = async || {
            let place = self.roomiest().0.cast_signed();
            let connection = self.home().workers.get().await?;
            Ok::<_, Error>(connection.query(FIX_PLACE, &[&sql_id(shard), &place]).await?)
        };
        let mut rows = fix().await?;
        if rows.is_empty() {
            // The roomiest one was removed meanwhile.
            self.refresh_stores().await?;
            rows = fix().await?;
        }
        let place = match rows.first() {
            Some(row) => place_of(Some(row)),
            None => return Err(Error::Unavailable { reason: "no store takes a new key range".to_owned() }),
        };
        self.placement.fixed.write().insert(shard, place);
        self.store_at(place).await
    }

    /// The store of a shard that something is to be read of.
    pub(crate) async fn store_to_read(&self, shard: ShardId) -> Result<Arc<PostgresStore>, Error> {
        if let Some(store) = self.known_store(shard) {
            return Ok(store);
        }
        let rows = self.home().workers.get().await?.query(READ_PLACE, &[&sql_id(shard)]).await?;
        match rows.first() {
            Some(row) if row.get(1) => {
                let place = place_of(Some(row));
                self.placement.fixed.write().insert(shard, place);
                self.store_at(place).await
            }
            _ => Ok(self.home()),
        }
    }

    fn known_store(&self, shard: ShardId) -> Option<Arc<PostgresStore>> {
        let place = *self.placement.fixed.read().get(&shard)?;
        self.placement.store(place)
    }

    pub(crate) async fn store_at(&self, place: PlaceId) -> Result<Arc<PostgresStore>, Error> {
        if let Some(store) = self.placement.store(place) {
            return Ok(store);
        }
        self.refresh_stores().await?;
        let missing =
            || Error::Unavailable { reason: format!("store {} is not in the list of stores", place.0) };
        self.placement.store(place).ok_or_else(missing)
    }

    /// Where a new shard goes.
    fn roomiest(&self) -> PlaceId {
        let (draining, sizes) = (self.placement.draining.read(), self.placement.sizes.read());
        let stores = self.placement.stores.read();
        let free = stores.keys().filter(|place| !draining.contains(place));
        free.min_by_key(|place| (sizes.get(place).copied().unwrap_or(0), **place))
            .copied()
            .unwrap_or(PlaceId::FIRST)
    }

    /// Learns how much stores hold.
    pub(crate) async fn refresh_sizes(&self) -> Result<(), Error> {
        let counts = self.home().workers.get().await?.query(COUNT_SHARDS, &[]).await?;
        let counts: BTreeMap<PlaceId, u64> =
            counts.iter().map(|row| (place_of(Some(row)), row.get::<_, i64>(1).cast_unsigned())).collect();
        for store in self.placement.stores() {
            let Ok(bytes) = byte_count(&store).await else { continue };
            let shards = counts.get(&store.id).copied().unwrap_or(0);
            self.placement.sizes.write().insert(store.id, bytes + shards * SHARD_BYTES);
        }
        Ok(())
    }

    /// Those of some shards that are in a store.
    pub(crate) async fn those_in(&self, shards: &BTreeSet<ShardId>, store: &PostgresStore) -> Vec<ShardId> {
        let mut those = Vec::with_capacity(shards.len());
        for shard in shards {
            // The commit would not have come here if one of them could not be found.
            if self.store_of(*shard).await.is_ok_and(|other| other.id == store.id) {
                those.push(*shard);
            }
        }
        those
    }

    pub(crate) async fn places(&self) -> Result<Vec<Place>, Error> {
        self.refresh_stores().await?;
        let draining = self.placement.draining.read().clone();
        let mut places = Vec::new();
        for store in self.placement.stores() {
            places.push(Place {
                id: store.id,
                name: store.name.clone(),
                is_draining: draining.contains(&store.id),
                // A store that does not answer is in the list too.
                shard_count: shard_count(&store).await.unwrap_or(0),
                byte_count: byte_count(&store).await.unwrap_or(0),
            });
        }
        Ok(places)
    }

    pub(crate) async fn place_of(&self, shard: ShardId) -> Result<PlaceId, Error> {
        if let Some(store) = self.known_store(shard) {
            return Ok(store.id);
        }
        let rows = self.home().workers.get().await?.query(READ_PLACE, &[&sql_id(shard)]).await?;
        Ok(rows.first().map_or_else(|| self.roomiest(), |row| place_of(Some(row))))
    }

    pub(crate) async fn place(&self, shard: ShardId, place: PlaceId) -> Result<(), Error> {
        let missing = |_| Error::Contract { what: format!("there is no place {}", place.0) };
        self.store_at(place).await.map_err(missing)?;
        if let Some(store) = self.known_store(shard) {
            return if store.id == place { Ok(()) } else { Err(Error::ShardExists { shard }) };
        }
        let connection = self.home().workers.get().await?;
        let said = connection.query(SAY_PLACE, &[&sql_id(shard), &place.0.cast_signed()]).await?;
        if said.is_empty() { Err(Error::ShardExists { shard }) } else { Ok(()) }
    }

    pub(crate) async fn set_draining(&self, place: PlaceId, is_draining: bool) -> Result<(), Error> {
        self.refresh_stores().await?;
        let draining = self.placement.draining.read().clone();
        let stores = self.placement.stores();
        if !stores.iter().any(|store| store.id == place) {
            return Err(Error::Contract { what: format!("there is no place {}", place.0) });
        }
        let has_other = stores.iter().any(|store| store.id != place && !draining.contains(&store.id));
        if is_draining && !has_other {
            return Err(Error::Contract {
                what: "there is no other place that would get new shards".to_owned(),
            });
        }
        let connection = self.home().workers.get().await?;
        connection.execute(SET_DRAINING, &[&place.0.cast_signed(), &is_draining]).await?;
        drop(connection);
        self.refresh_stores().await
    }
}

fn place_of(row: Option<&tokio_postgres::Row>) -> PlaceId {
    row.map_or(PlaceId::FIRST, |row| PlaceId(row.get::<_, i32>(0).cast_unsigned()))
}

async fn shard_count(store: &PostgresStore) -> Result<u64, Error> {
    let rows = store.workers.get().await?.query(COUNT_LIVING, &[]).await;
    let rows = rows.map_err(|trouble: Trouble| Error::from(trouble))?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

async fn byte_count(store: &PostgresStore) -> Result<u64, Error> {
    let rows = store.workers.get().await?.query(READ_SIZE, &[&store.url.schema]).await;
    let rows = rows.map_err(|trouble: Trouble| Error::from(trouble))?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}
