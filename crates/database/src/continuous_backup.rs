//! Continuous backup: whether every container keeps the history of its changes, as accounts of the service with continuous backup do.
//!
//! Writers record history only while it is on, so a history has a hole wherever it was off. The catalog keeps whether it is on; when it
//! is switched on, the history of every container that kept none begins there, and readers that are not that far are refused instead of
//! missing changes. Not here: the retention of single containers (`catalog`), removing what is too old (`change_feed`).

use crate::{AccountCore, Error};
use astrarium_catalog::container::Container;
use astrarium_catalog::records;
use astrarium_keys::Rid;
use astrarium_keys::account_state::AccountState;
use astrarium_keys::record::RecordKind;
use std::sync::atomic::Ordering;

/// How long an account with continuous backup keeps changes: the shorter one of the service's tiers, 7 days.
const RETENTION_MINUTES: u32 = 7 * 24 * 60;

impl AccountCore {
    /// The minutes that the account keeps changes of containers without a policy of their own.
    pub(crate) fn account_history(&self) -> Option<u32> {
        self.shared.keeps_all_history.load(Ordering::Relaxed).then_some(RETENTION_MINUTES)
    }

    /// Switches continuous backup on or off, or finds out whether it is on. Before anything is served.
    pub(crate) async fn settle_continuous_backup(&self, wanted: Option<bool>) -> Result<(), Error> {
        let stored = records::account_state(&*self.catalog().await?).await?.keeps_all_history;
        let keeps_all_history = wanted.unwrap_or(stored);
        if keeps_all_history && !stored {
            self.begin_histories().await?;
        }
        if keeps_all_history != stored {
            let mut batch = records::batch();
            records::stage_account_state(&mut batch, AccountState { keeps_all_history });
            self.engine().commit(batch).await?;
        }
        self.shared.keeps_all_history.store(keeps_all_history, Ordering::Relaxed);
        Ok(())
    }

    /// Ends what there is of the histories of containers that keep none, so that each begins now.
    async fn begin_histories(&self) -> Result<(), Error> {
        let view = self.catalog().await?;
        for database in records::list_all(&*view, RecordKind::Database, Rid::ROOT).await? {
            for resource in records::list_all(&*view, RecordKind::Container, database.rid).await? {
                let source_of = |shard, above| self.number_source(shard, above);
                let name = database.record.id.clone();
                let container = Container::load(self.engine(), resource, name, source_of, None).await?;
                if container.history_minutes.is_some() {
                    continue;
                }
                for range in &container.ranges {
                    let lsn = self.engine().shard(range.shard).await?.version;
                    astrarium_store::restore::end_history(self.engine(), range, lsn).await?;
                }
            }
        }
        Ok(())
    }
}
