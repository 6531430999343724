//! Refuses writes while the disk is nearly full, before fjall meets the end of it.
//!
//! fjall refuses everything once one write has failed, until it is opened again. So writes stop earlier, by a measure
//! of the free space, and go on by themselves when space is back: nothing needs repair.
//! In: a probe of the free bytes (given by the caller; the standard library has none). Out: a reason to refuse, or none.
//! Invariants
//! - The probe runs at most every [`PROBE_INTERVAL`], on the thread of whoever asks; others use the last answer.
//! - A batch that only frees space is let through until a quarter of the reserve is left.
//! - A probe that fails refuses nothing: it is a precaution, and fjall still notices a full disk.

use crate::{FreeSpaceProbe, Options};
use astrarium_kv::{Mutation, Space, WriteBatch};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two probes at least. At 500 MB a second, 50 MB are written in it, well below any sensible reserve.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct FreeSpace {
    folder: PathBuf,
    reserve: u64,
    probe: Option<FreeSpaceProbe>,
    probed: Mutex<Option<Instant>>,
    /// The last answer.
    free: AtomicU64,
}

impl FreeSpace {
    pub(crate) fn new(folder: PathBuf, options: Options) -> FreeSpace {
        FreeSpace {
            folder,
            reserve: options.free_space_reserve_bytes,
            probe: options.free_space,
            probed: Mutex::new(None),
            free: AtomicU64::new(u64::MAX),
        }
    }

    /// Why ordinary writes are refused now, if they are.
    pub(crate) fn refusal(&self) -> Option<String> {
        let free = self.measure();
        (free < self.reserve).then(|| self.reason(free))
    }

    /// Why this batch is refused now, if it is.
    pub(crate) fn refusal_of(&self, batch: &WriteBatch) -> Option<String> {
        let free = self.measure();
        let needed = if frees_space(batch) { self.reserve / 4 } else { self.reserve };
        (free < needed).then(|| self.reason(free))
    }

    /// Whether so many bytes can be written besides the reserve.
    pub(crate) fn has_room(&self, byte_count: u64) -> bool {
        self.measure() >= self.reserve.saturating_add(byte_count)
    }

    fn reason(&self, free: u64) -> String {
        let (folder, reserve) = (self.folder.display(), self.reserve);
        format!("{free} bytes are free on the disk of {folder}, and {reserve} are kept in reserve")
    }

    fn measure(&self) -> u64 {
        let Some(probe) = &self.probe else { return u64::MAX };
        // Whoever finds the lock taken uses the last answer instead of waiting.
        if let Some(mut probed) = self.probed.try_lock() {
            let now = Instant::now();
            if probed.is_none_or(|probed| now.duration_since(probed) >= PROBE_INTERVAL) {
                self.free.store(probe(&self.folder).unwrap_or(u64::MAX), Ordering::Relaxed);
                *probed = Some(now);
            }
        }
        self.free.load(Ordering::Relaxed)
    }
}

/// Removes something and writes no body: what deleting a document looks like, with its entry in the log.
fn frees_space(batch: &WriteBatch) -> bool {
    if !batch.drops.is_empty() {
        return true;
    }
    let is_body_put = |mutation: &Mutation| matches!(mutation, Mutation::Put { space: Space::Body, .. });
    let is_delete = |mutation: &Mutation| matches!(mutation, Mutation::Delete { .. });
    batch.mutations.iter().any(is_delete) && !batch.mutations.iter().any(is_body_put)
}
