//! Which scripts wait for each of their writes for a while: those that had a write refused.
//!
//! A script that has gone on before its write was refused must run again. One that expects errors, for example by creating
//! a document that may exist, would run twice every time.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// For how many executions a script waits for each of its writes after one was refused.
const EXECUTIONS: u32 = 1_000;
/// How many scripts are remembered; with more, all are forgotten.
const SCRIPTS_MAX: usize = 10_000;

/// How many executions each script still waits for its writes, by script id.
#[derive(Default)]
pub(crate) struct Safety {
    left: Mutex<HashMap<Arc<str>, u32>>,
}

impl Safety {
    /// Whether the next execution of a script may go ahead.
    pub(crate) fn allows(&self, id: &str) -> bool {
        let mut left = self.left.lock();
        let Some(count) = left.get_mut(id) else { return true };
        *count -= 1;
        if *count == 0 {
            left.remove(id);
        }
        false
    }

    /// A write was refused that the script took for done.
    pub(crate) fn note(&self, id: Arc<str>) {
        let mut left = self.left.lock();
        if left.len() >= SCRIPTS_MAX {
            left.clear();
        }
        left.insert(id, EXECUTIONS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_careful_for_a_while() {
        let safety = Safety::default();
        assert!(safety.allows("a"));
        safety.note("a".into());
        assert!((0..EXECUTIONS).all(|_| !safety.allows("a")));
        assert!(safety.allows("a") && safety.allows("b"));
        (0..=SCRIPTS_MAX).for_each(|number| safety.note(number.to_string().into()));
        assert_eq!(safety.left.lock().len(), 1);
    }
}
