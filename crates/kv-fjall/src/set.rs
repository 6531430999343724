//! What this engine gives the `packed` crate for its set.
//!
//! `packed` keeps keys in blobs, which are files here (`set_files`), and takes the blocks of the newest commit groups from a
//! journal, which is a keyspace of fjall here: a group's block is in its batch, so it is as durable as the rest of the group.
//! In: views to publish. Out: blocks, dropped prefixes, news of trouble.
//!
//! Not here: how keys are packed (`packed`), answers in the words of the contract (`kv-packed`), when groups are written
//! (`committer`).

use crate::Core;
use crate::store::Store;
pub(crate) use astrarium_kv_packed::{changes, intersect, losses, scan, scan_entries, told, untold};
use astrarium_packed::{Control, DamageSignal, Error, Journal, Publisher, SetView};
use bytes::Bytes;
use std::sync::Arc;

impl Journal for Store {
    fn blocks_after(&self, group: u64) -> Result<Vec<(u64, Bytes)>, Error> {
        self.set_blocks(group).map_err(untold)
    }

    fn release(&self, up_to: u64) -> Result<(), Error> {
        self.drop_set_blocks(up_to).map_err(|error| untold(crate::error::reading(&error)))
    }
}

impl Publisher for Core {
    fn view(&self) -> Arc<SetView> {
        self.set_view()
    }

    fn update(&self, change: &mut dyn FnMut(u64, &mut SetView)) {
        let _publishing = self.publishing.lock();
        let current = self.current.load();
        let mut view = SetView::clone(&current.set());
        change(current.group(), &mut view);
        self.current.store(Arc::new(current.with_set(view)));
    }

    fn journal(&self) -> Result<Arc<dyn Journal>, Error> {
        let current = self.current.load();
        let store = current.store().map_err(untold)?;
        Ok(Arc::<Store>::clone(store))
    }

    fn control(&self) -> &Control {
        &self.set
    }

    fn dropped(&self) -> Vec<Bytes> {
        let current = self.current.load();
        let dropped = current.store().map(|store| store.drops.load());
        dropped.map(|listed| listed.covered.in_space(None).cloned().collect()).unwrap_or_default()
    }

    fn damage(&self) -> Option<Arc<DamageSignal>> {
        self.current.load().store().ok().map(|store| Arc::clone(&store.set_damage))
    }

    fn has_room(&self, byte_count: u64) -> bool {
        self.free_space.has_room(byte_count)
    }

    fn fail(&self, reason: String) {
        self.health.fail(reason, true);
    }
}
