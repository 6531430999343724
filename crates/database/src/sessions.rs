//! Sessions: how far a client has seen a container's ranges, and whether the server is as far.
//!
//! A container that is made again under its name is another one and begins at LSN 1, and clients that knew the old one may still name its
//! positions. So the catalog keeps how far removed containers were ([`records::highest_former_lsn`]), and a position up to there that the
//! new container has not reached is taken for one of the old container. That holds in every process and over restarts.
//! How far a range is only grows, so whoever has seen it at a position once need not ask again for that one.

use crate::documents::touches;
use crate::{AccountCore, DocumentsHandle, Error};
use astrarium_catalog::records;
use astrarium_keys::record::KeyRangeRow;
use astrarium_kv::{self as kv, ShardId};
use astrarium_store::FeedScope;

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
                let Some(lsn) = range.seen_by(seen).filter(|lsn| !range.known_version.is_at_least(*lsn))
                else {
                    continue;
                };
                let version = core.engine().shard(range.shard).await?.version;
                range.known_version.note(version);
                if lsn > version && lsn > records::highest_former_lsn(&*core.catalog().await?).await? {
                    return Err(Error::SessionNotAvailable.into());
                }
            }
            Ok(())
        })
        .await
    }
}

impl AccountCore {
    /// How far the ranges of a container are that is about to go.
    pub(crate) async fn highest_lsn(&self, rows: &[KeyRangeRow]) -> Result<u64, Error> {
        let mut highest = 0;
        for row in rows {
            match self.engine().shard(ShardId(row.shard)).await {
                Ok(state) => highest = highest.max(state.version),
                // Replaced a moment ago: the commit that relies on it is refused.
                Err(kv::Error::Dropped { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(highest)
    }
}
