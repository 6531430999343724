//! Has the processor fetch what a query will look at in the documents of a batch, while it does something else.
//!
//! A scan takes most of its time waiting for memory: each document is elsewhere, and the next one is asked for only when
//! the one before has been evaluated. So the places of the wanted members are touched in all documents of a batch first;
//! such loads do not depend on each other and go on side by side.
//! In: a plan, then batches of documents. Out: nothing but time. Where the members are is guessed from the first document
//! of the batch: its neighbours are mostly built alike, and a wrong guess costs next to nothing.

use astrarium_keys::body::Body;
use astrarium_sql_plan::expression::{Expr, Slot, Step};
use astrarium_sql_plan::plan::QueryPlan;
use std::hint::black_box;
use std::sync::Arc;

/// Members that are fetched at most, for each document.
const MEMBERS_MAX: usize = 8;
/// Bytes that the processor fetches together.
const LINE_BYTES: usize = 64;

/// The members of documents that a query looks at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead {
    names: Vec<Arc<str>>,
}

impl Ahead {
    pub(crate) fn new(plan: &QueryPlan) -> Ahead {
        let mut ahead = Ahead::default();
        if let Some(source) = plan.sources.first() {
            plan.expressions(&mut |expression| ahead.add(source.slot, expression));
        }
        ahead.names.truncate(MEMBERS_MAX);
        ahead
    }

    fn add(&mut self, documents: Slot, expression: &Expr) {
        match expression {
            Expr::Path(slot, steps) => {
                if let (true, Some(Step::Name(name))) = (*slot == documents, steps.first()) {
                    self.names.push(Arc::clone(name));
                }
            }
            _ => expression.parts().into_iter().for_each(|part| self.add(documents, part)),
        }
    }

    /// Touches the members in all documents of a batch.
    pub(crate) fn fetch(&self, bodies: &[Body]) {
        let Some((first, others)) = bodies.split_first() else { return };
        let start = first.as_bytes().as_ptr().addr();
        let place = |name: &Arc<str>| first.member(name).map(|raw| raw.as_ptr().addr() - start);
        let mut places: Vec<usize> = self.names.iter().filter_map(place).collect();
        places.sort_unstable();
        places.dedup_by_key(|place| *place / LINE_BYTES);
        let mut touched = 0;
        for body in others {
            for place in &places {
                touched ^= body.as_bytes().get(*place).copied().unwrap_or_default();
            }
        }
        black_box(touched);
    }
}
