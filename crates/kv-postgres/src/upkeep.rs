//! What runs beside requests for as long as the engine is open: the watchdog of connections, learning of stores, and giving space back.

use crate::PostgresCore;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the watchdog looks.
const WATCHDOG_INTERVAL: Duration = Duration::from_millis(500);

/// How often the list of stores is read: how soon servers use a store that was added, or another address.
const STORES_INTERVAL: Duration = Duration::from_secs(2);

/// How often it is asked how much stores hold.
const SIZE_INTERVAL: Duration = Duration::from_secs(30);

impl PostgresCore {
    pub(crate) fn start_upkeep(self: &Arc<PostgresCore>) {
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while !core.is_closed() {
                tokio::time::sleep(WATCHDOG_INTERVAL).await;
                core.placement.stores().iter().for_each(|store| store.watch());
            }
        });
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while !core.is_closed() {
                tokio::time::sleep(STORES_INTERVAL).await;
                // A store that does not answer is known to be there.
                let _ = core.refresh_stores().await;
            }
        });
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while !core.is_closed() {
                tokio::time::sleep(core.options.reclaim_interval).await;
                for store in core.placement.stores() {
                    // What does not succeed now is tried again.
                    let _ = core.reclaim(&store).await;
                    let _ = core.refresh_losses(&store).await;
                }
            }
        });
        let core = Arc::clone(self);
        self.runtime.spawn(async move {
            while !core.is_closed() {
                if core.refresh_sizes().await.is_ok() {
                    let bytes = core.placement.byte_count();
                    core.stats.bytes.store(bytes, Ordering::Relaxed);
                }
                let _ = core.forget_gone().await;
                for store in core.placement.stores() {
                    let _ = core.settle_all(&store).await;
                }
                tokio::time::sleep(SIZE_INTERVAL).await;
            }
        });
    }
}
