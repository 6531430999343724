//! What a query needs of an index: its filter in the words of `index::condition`.
//!
//! In: a plan. Out: [`Requirements`]: the need that every document meets which gives a row, the paths of its order, whether
//! an index alone could answer; and which indexes it could use at all ([`used_paths`]).
//! Invariants
//! - A need is never stronger than the filter: `truth` of an expression translates only what follows from it.
//! - Undefined passes no condition: each condition asks for a value that is there.
//! - Constants in conditions are primitive; `OneOf` is sorted, with each value once.
//! - Size and time are bounded, whatever a client sends; beyond the bounds less is known.
//!
//! Below: `translator` (sources, subqueries), `filter` (operators), `functions`, `predicate` (constants), `place` (what slots
//! stand for), `part` (how parts are put together). Not here: whether an index has a path, and what it costs (`index`).

mod computed;
mod filter;
mod functions;
mod index_only;
mod part;
mod place;
mod predicate;
mod translator;
mod used_paths;

pub use computed::Computed;
use index_only::index_only;

pub use index_only::IndexOnly;
pub use used_paths::{PathUse, UsedPath, UsedPaths, composite_spec, single_spec, used_paths};

use crate::plan::QueryPlan;
use astrarium_index::{Need, OrderPath, Path};
use translator::Translator;

/// What documents meet that give rows, before the projection.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// Met by every document that gives a row.
    pub need: Need,
    /// Whether nothing of the filter and the sources is left out of the need. Then, if it [`is_exact`] too, a document
    /// that meets it gives one row exactly.
    pub complete: bool,
}

impl Needed {
    /// Whether the need says all that the query demands: it is complete and exact.
    pub fn decides(&self) -> bool {
        self.complete && is_exact(&self.need)
    }
}

/// Whether meeting a need is enough for the parts of the filter that it was made from.
pub fn is_exact(need: &Need) -> bool {
    match need {
        Need::Anything | Need::Nothing => true,
        Need::One { exact, .. } => *exact,
        Need::All(needs) | Need::Any(needs) => needs.iter().all(is_exact),
    }
}

/// What a plan asks of indexes, found in one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirements {
    /// What documents meet that give rows.
    pub needed: Needed,
    /// The paths of ORDER BY, if every key is a property of the document: then reading documents in the order of those
    /// paths gives rows in the order of the query.
    pub order: Option<Vec<OrderPath>>,
    /// Whether an index could answer the query alone, and how.
    pub only: Option<IndexOnly>,
}

impl Requirements {
    /// What a plan asks. For a query over another query's rows it is what that one asks of documents. `computed` are the computed properties that an
    /// index holds under their names; expressions that are theirs become conditions on those names.
    pub fn of(plan: &QueryPlan, computed: &[Computed]) -> Requirements {
        if let Some(input) = &plan.input {
            return Requirements { order: None, only: None, ..Requirements::of(input, computed) };
        }
        if !plan.reads_documents() {
            let needed = Needed { need: Need::Anything, complete: false };
            return Requirements { needed, order: None, only: None };
        }
        let mut translator = Translator::new(computed);
        let (need, complete) = translator.documents(plan).finish();
        let (needed, paths) = (Needed { need, complete }, Paths(translator));
        let order = order_paths(plan, &paths);
        let only = index_only(plan, &paths, &needed);
        Requirements { needed, order, only }
    }
}

fn order_paths(plan: &QueryPlan, paths: &Paths<'_>) -> Option<Vec<OrderPath>> {
    let keys = plan.order_keys();
    if keys.is_empty() || plan.grouping.is_some() {
        return None;
    }
    keys.iter()
        .map(|key| Some(OrderPath { path: paths.plain(&key.key)?, descending: key.descending }))
        .collect()
}

/// The paths of a plan's expressions.
struct Paths<'p>(Translator<'p>);

impl Paths<'_> {
    /// The path of an expression that stands for one value of each document.
    fn plain(&self, expression: &crate::Expr) -> Option<Path> {
        self.0.plain_path(expression)
    }
}
