//! Compiled scripts by version, the least recently used leaving first when they take too much memory.
//!
//! A version never changes, so nothing here grows stale: a script that is replaced or deleted just stops being asked for.

use crate::compile::Compiled;
use crate::{Error, ScriptKey};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// What an entry takes besides its bytecode: key, table, counters.
const ENTRY_BYTES: usize = 200;

/// The cache, shared by all threads.
pub(crate) struct Cache {
    bytes_max: usize,
    entries: Mutex<CachedCodes>,
}

#[derive(Default)]
struct CachedCodes {
    by_key: HashMap<ScriptKey, CachedCode, foldhash::fast::RandomState>,
    bytes: usize,
    clock: u64,
}

struct CachedCode {
    compiled: Arc<Compiled>,
    bytes: usize,
    used: u64,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { bytes_max, entries: Mutex::default() }
    }

    /// The compiled script, made if it is not there. Two threads may both make it; one of the results stays.
    pub(crate) fn get_or_compile(
        &self,
        key: &ScriptKey,
        compile: impl FnOnce() -> Result<Compiled, Error>,
    ) -> Result<Arc<Compiled>, Error> {
        if let Some(compiled) = self.get(key) {
            return Ok(compiled);
        }
        let compiled = Arc::new(compile()?);
        self.put(key.clone(), Arc::clone(&compiled));
        Ok(compiled)
    }

    /// Whether a script would not have to be compiled.
    pub(crate) fn has(&self, key: &ScriptKey) -> bool {
        self.entries.lock().by_key.contains_key(key)
    }

    /// How many scripts are kept, and what they take.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let entries = self.entries.lock();
        (entries.by_key.len(), entries.bytes)
    }

    fn get(&self, key: &ScriptKey) -> Option<Arc<Compiled>> {
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let now = entries.clock;
        let entry = entries.by_key.get_mut(key)?;
        entry.used = now;
        Some(Arc::clone(&entry.compiled))
    }

    fn put(&self, key: ScriptKey, compiled: Arc<Compiled>) {
        let bytes = compiled.byte_count() + key.id.len() + key.version.len() + ENTRY_BYTES;
        if bytes > self.bytes_max {
            return;
        }
        let mut entries = self.entries.lock();
        entries.clock += 1;
        let used = entries.clock;
        entries.bytes += bytes;
        if let Some(old) = entries.by_key.insert(key, CachedCode { compiled, bytes, used }) {
            entries.bytes -= old.bytes;
        }
        entries.shrink_to(self.bytes_max);
    }
}

impl CachedCodes {
    /// Drops the older part at once, so that a full cache does not look through all entries for every new one.
    fn shrink_to(&mut self, bytes_max: usize) {
        if self.bytes <= bytes_max {
            return;
        }
        let mut by_age: Vec<(u64, usize)> =
            self.by_key.values().map(|entry| (entry.used, entry.bytes)).collect();
        by_age.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = 0;
        let oldest_kept = by_age
            .iter()
            .take_while(|(_, bytes)| {
                kept += bytes;
                kept <= bytes_max / 8 * 7
            })
            .last()
            .map_or(u64::MAX, |(used, _)| *used);
        self.by_key.retain(|_, entry| entry.used >= oldest_kept);
        self.bytes = self.by_key.values().map(|entry| entry.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::{Script, ScriptLimits};

    fn script(number: usize) -> Script {
        let key = ScriptKey { id: number.to_string().into(), version: "1".into() };
        Script { key, name: "test".into(), source: format!("function f() {{ return {number}; }}").into() }
    }

    /// Asks for a script; returns whether it had to be compiled.
    fn compiles(cache: &Cache, number: usize) -> bool {
        let script = script(number);
        let mut compiled = false;
        let result = cache.get_or_compile(&script.key, || {
            compiled = true;
            compile(&ScriptLimits::default(), &script)
        });
        assert!(result.is_ok());
        compiled
    }

    #[test]
    fn what_was_used_last_stays() {
        let cache = Cache::new(usize::MAX);
        assert!(compiles(&cache, 0) && !compiles(&cache, 0));
        let each = cache.usage().1;
        let cache = Cache::new(10 * each + each / 2);
        for number in 0..200 {
            assert!(compiles(&cache, 1_000 + number));
            compiles(&cache, 1_000);
            let (count, bytes) = cache.usage();
            assert!(count <= 11 && bytes <= 10 * each + each / 2, "{count} {bytes}");
        }
        assert!(!compiles(&cache, 1_000), "used all the time");
        assert!(!compiles(&cache, 1_199), "used last");
        assert!(compiles(&cache, 1_001), "not used for long");
    }

    #[test]
    fn what_is_too_large_or_wrong_is_not_kept() {
        let cache = Cache::new(10);
        assert!(compiles(&cache, 0) && compiles(&cache, 0));
        let mut wrong = script(0);
        wrong.source = "function (".into();
        assert!(cache.get_or_compile(&wrong.key, || compile(&ScriptLimits::default(), &wrong)).is_err());
        assert_eq!(cache.usage(), (0, 0));
    }
}
