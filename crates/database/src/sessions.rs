//! Sessions: how far a client has seen a container's ranges, and whether the server is as far.
//!
//! A container that is made again under its name counts from the beginning, and clients that knew the old one may still name
//! its positions. So the positions of containers that went are kept by name, as long as the process runs: up to there a
//! client may have seen the old one.

use crate::documents::touches;
use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_kv::ShardId;
use astrarium_store::FeedScope;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// Names kept at most; beyond that the list starts anew.
const NAMES_MAX: usize = 10_000;

/// How far containers were that are gone, by their names.
#[derive(Default)]
pub(crate) struct GoneSessions {
    positions: Mutex<HashMap<Box<str>, u64, RandomState>>,
}

impl GoneSessions {
    fn of(&self, name: &str) -> u64 {
        self.positions.lock().get(name).copied().unwrap_or_default()
    }

    fn keep(&self, name: &str, lsn: u64) {
        let mut positions = self.positions.lock();
        if positions.len() >= NAMES_MAX {
            positions.clear();
        }
        let position = positions.entry(name.into()).or_default();
        *position = lsn.max(*position);
    }
}

impl DocumentsHandle<'_> {
    /// Checks that the ranges of a scope are as far as a client has seen them: `seen` tells by the id of a range or of one
    /// that it came from.
    pub async fn check_session(
        self,
        scope: &FeedScope,
        seen: impl Fn(u32) -> Option<u64>,
    ) -> Result<(), Error> {
        let DocumentsHandle { core, container } = self;
        let seen = &seen;
        core.attempt(container, |trial| async move {
            let container = &trial.container;
            for range in container.ranges.iter().filter(|range| touches(container, range, scope)) {
                if let Some(lsn) = range.seen_by(seen)
                    && lsn > core.engine().shard(range.shard).await?.version
                    && lsn > core.shared.gone_sessions.of(&container.resource.record.id)
                {
                    return Err(Error::SessionNotAvailable.into());
                }
            }
            Ok(())
        })
        .await
    }
}

impl AccountCore {
    /// Keeps how far a container is that is about to go.
    pub(crate) async fn keep_sessions(&self, name: &str, shards: &[u64]) -> Result<(), Error> {
        for shard in shards {
            let lsn = self.engine().shard(ShardId(*shard)).await?.version;
            self.shared.gone_sessions.keep(name, lsn);
        }
        Ok(())
    }
}
