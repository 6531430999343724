//! Which scripts do not go ahead of their writes for a while: those whose writes were refused.
//!
//! A script that was ahead of a write that is refused has to run again, so one that counts on errors (it creates what may
//! be there, say) would always run twice.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// For how many executions a script waits for each of its writes after one was refused.
const EXECUTIONS: u32 = 1_000;
/// How many scripts are remembered; with more, all are forgotten.
const SCRIPTS_MAX: usize = 10_000;

/// The scripts, by their id, and how long they still wait.
#[derive(Default)]
pub(crate) struct Caution {
    left: Mutex<HashMap<Arc<str>, u32>>,
}

impl Caution {
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
        let caution = Caution::default();
        assert!(caution.allows("a"));
        caution.note("a".into());
        assert!((0..EXECUTIONS).all(|_| !caution.allows("a")));
        assert!(caution.allows("a") && caution.allows("b"));
        (0..=SCRIPTS_MAX).for_each(|number| caution.note(number.to_string().into()));
        assert_eq!(caution.left.lock().len(), 1);
    }
}
