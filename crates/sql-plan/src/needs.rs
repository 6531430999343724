//! What a query needs of an index: its filter in the words of `index::condition`.
//!
//! In: a plan. Out: the need that every document meets which gives a row ([`needs`]), the paths of its order
//! ([`order_need`]), whether an index alone could answer ([`index_only`]), and which indexes it could use at all
//! ([`used_paths`]).
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
pub use index_only::{IndexOnly, index_only};
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

/// What the filters, joins and subqueries of a plan ask of documents. `computed` are the computed properties that an index
/// holds under their names; expressions that are theirs become conditions on those names. For a query over another
/// query's rows, it is what that one asks: it is the one that reads documents.
pub fn needs(plan: &QueryPlan, computed: &[Computed]) -> Needed {
    if let Some(input) = &plan.input {
        return needs(input, computed);
    }
    if !plan.reads_documents() {
        return Needed { need: Need::Anything, complete: false };
    }
    let (need, complete) = Translator::new(computed).documents(plan).finish();
    Needed { need, complete }
}

/// The paths of ORDER BY, if every key is a property of the document: then reading documents in the order of those paths
/// gives rows in the order of the query.
pub fn order_need(plan: &QueryPlan, computed: &[Computed]) -> Option<Vec<OrderPath>> {
    let keys = plan.order_keys();
    if keys.is_empty() || plan.grouping.is_some() {
        return None;
    }
    let paths = Paths::of(plan, computed)?;
    keys.iter()
        .map(|key| Some(OrderPath { path: paths.plain(&key.key)?, descending: key.descending }))
        .collect()
}

/// The paths of a plan's expressions.
struct Paths<'p>(Translator<'p>);

impl<'p> Paths<'p> {
    /// None for a plan that reads no documents itself.
    fn of(plan: &'p QueryPlan, computed: &'p [Computed]) -> Option<Paths<'p>> {
        if plan.input.is_some() || !plan.reads_documents() {
            return None;
        }
        let mut translator = Translator::new(computed);
        translator.documents(plan);
        Some(Paths(translator))
    }

    /// The path of an expression that stands for one value of each document.
    fn plain(&self, expression: &crate::Expr) -> Option<Path> {
        self.0.plain_path(expression)
    }
}
