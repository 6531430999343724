//! Turns of scripts that meet in one logical partition.
//!
//! Executions run side by side as long as none of them loses against another. One that has lost waits for a turn alone:
//! those that are running end first, later ones wait behind it. So fifty clients on one counter get through one after the
//! other instead of undoing each other's work, and scripts on different documents never wait. Other logical partitions
//! have gates of their own, and writes without scripts pass by all of them.

use astrarium_env::timeout;
use astrarium_keys::rid::Rid;
use astrarium_partition::EffectiveKey;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The container, and the effective partition key.
type GateKey = (Rid, EffectiveKey);
type Lock = Arc<RwLock<()>>;

/// The gates that somebody stands at.
#[derive(Default)]
pub(crate) struct Gates {
    locks: Arc<Mutex<HashMap<GateKey, Lock>>>,
}

impl Gates {
    /// The gate of a logical partition.
    pub(crate) fn of(&self, container: Rid, partition: EffectiveKey) -> Gate {
        let key = (container, partition);
        let lock = Arc::clone(self.locks.lock().entry(key.clone()).or_default());
        Gate { key, lock, locks: Arc::clone(&self.locks) }
    }
}

/// A place at the gate of one logical partition.
pub(crate) struct Gate {
    key: GateKey,
    lock: Lock,
    locks: Arc<Mutex<HashMap<GateKey, Lock>>>,
}

/// A turn; it ends when it is dropped.
pub(crate) enum GateLock {
    /// With others.
    Together { _guard: OwnedRwLockReadGuard<()> },
    /// With nobody else.
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

impl Gate {
    /// Waits for a turn; nothing if it takes longer than the time given.
    pub(crate) async fn turn(&self, alone: bool, time: Duration) -> Option<GateLock> {
        let lock = Arc::clone(&self.lock);
        let turn = async {
            if alone {
                GateLock::Alone { _guard: lock.write_owned().await }
            } else {
                GateLock::Together { _guard: lock.read_owned().await }
            }
        };
        timeout(time, turn).await
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut locks = self.locks.lock();
        // Nobody but the table and this place.
        if Arc::strong_count(&self.lock) <= 2 {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);
    const SHORT: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn turns() {
        let gates = Gates::default();
        let gate = || gates.of(Rid::ROOT, EffectiveKey::MIN);
        let (first, second) = (gate(), gate());
        let together = first.turn(false, LONG).await.unwrap();
        drop(second.turn(false, LONG).await.unwrap());
        assert!(second.turn(true, SHORT).await.is_none(), "alone while another runs");
        drop(together);
        let alone = second.turn(true, LONG).await.unwrap();
        assert!(first.turn(false, SHORT).await.is_none(), "beside one that is alone");
        drop(alone);
        drop(first);
        assert_eq!(gates.locks.lock().len(), 1);
        drop(second);
        assert_eq!(gates.locks.lock().len(), 0);
    }
}
