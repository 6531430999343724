//! The plan of a query: sources, filters, grouping, projection, order and limits, in the order they work.

use crate::expression::{Expr, Slot};
use astrarium_sql_functions::aggregates::AggregateFunction;
use std::sync::Arc;

/// A query or subquery, ready to run.
#[derive(Debug, Clone)]
pub struct QueryPlan {
    /// Where rows come from, each source once for each row of those before it.
    pub sources: Vec<PlanSource>,
    /// Conditions by the number of sources they need: `filters[i]` is checked after the first `i` sources are bound.
    pub filters: Vec<Vec<Expr>>,
    /// Grouping, if the query aggregates.
    pub grouping: Option<Grouping>,
    /// What each row becomes.
    pub projection: Projection,
    /// Whether equal rows are returned once.
    pub distinct: bool,
    /// The order of rows.
    pub order: Order,
    /// Rows to skip.
    pub offset: u64,
    /// Rows to return at most.
    pub limit: Option<u64>,
    /// Slots that a frame needs for this query and all inside it.
    pub slot_count: usize,
    /// The query whose rows are this one's documents: `FROM (SELECT ..)` of a whole query.
    pub input: Option<Arc<QueryPlan>>,
}

/// A source of rows, bound to a slot.
#[derive(Debug, Clone)]
pub struct PlanSource {
    /// Where each of its values is put.
    pub slot: Slot,
    /// What it gives.
    pub kind: SourceKind,
}

/// The forms of a source.
#[derive(Debug, Clone)]
pub enum SourceKind {
    /// The documents of the container; only the first source of a whole query.
    Documents,
    /// One value, unless it is undefined.
    Value(Expr),
    /// The elements of an array; nothing for any other value.
    Elements(Expr),
    /// The rows of a subquery.
    Rows(Box<QueryPlan>),
    /// The elements of the arrays that a subquery's rows are.
    ElementsOfRows(Box<QueryPlan>),
}

/// Grouping and aggregation.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// The grouping expressions; empty for one group of everything.
    pub keys: Vec<Expr>,
    /// What is computed for each group.
    pub aggregates: Vec<Aggregate>,
}

/// One aggregate.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Over what.
    pub argument: Expr,
}

/// What each row becomes.
#[derive(Debug, Clone)]
pub enum Projection {
    /// What a slot holds: the whole document where that is the root.
    Star(Slot),
    /// One value; undefined means no row.
    Value(Expr),
    /// An object of what is defined.
    Members(Vec<(Arc<str>, Expr)>),
}

/// The order of rows.
#[derive(Debug, Clone)]
pub enum Order {
    /// As they come.
    None,
    /// By keys, the most significant first.
    Keys(Vec<OrderKey>),
    /// By fused ranks of scores, best first.
    Rank(Vec<RankComponent>),
}

/// One sort key.
#[derive(Debug, Clone)]
pub struct OrderKey {
    /// The key.
    pub key: Expr,
    /// Whether greater comes first.
    pub descending: bool,
}

/// One score of ORDER BY RANK.
#[derive(Debug, Clone)]
pub struct RankComponent {
    /// What is scored.
    pub score: Score,
    /// Its weight; negative reverses the ranking.
    pub weight: f64,
}

/// A score.
#[derive(Debug, Clone)]
pub enum Score {
    /// BM25 of a text against terms.
    FullText {
        /// The text.
        text: Expr,
        /// The terms.
        terms: Vec<Expr>,
        /// The language of the text.
        language: astrarium_sql_functions::full_text::TextLanguage,
    },
    /// Similarity of vectors: the call as a score in which greater is better.
    Vector(Expr),
}

/// The functions by which a sorted query is not streamed: no index has their order.
pub(crate) const NON_STREAMING: [&str; 3] = ["VECTORDISTANCE", "_VECTORSCORE", "_FULLTEXTSCORE"];

impl QueryPlan {
    /// The keys that rows are sorted by; none if they are not, or by rank.
    pub fn order_keys(&self) -> &[OrderKey] {
        if let Order::Keys(keys) = &self.order { keys } else { &[] }
    }

    /// A plan of one empty row: what stands in while a plan is taken apart.
    pub(crate) fn nothing() -> QueryPlan {
        QueryPlan {
            sources: Vec::new(),
            filters: vec![Vec::new()],
            grouping: None,
            projection: Projection::Members(Vec::new()),
            distinct: false,
            order: Order::None,
            offset: 0,
            limit: None,
            slot_count: 0,
            input: None,
        }
    }

    /// Slots of outer queries that this one reads.
    pub fn outer_slots(&self, found: &mut Vec<Slot>) {
        let mut read = Vec::new();
        self.expressions(&mut |expression| expression.slots(&mut read));
        let own: Vec<Slot> = self.sources.iter().map(|source| source.slot).collect();
        found.extend(read.into_iter().filter(|slot| !own.contains(slot)));
    }

    /// Visits every expression of this query.
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expr)) {
        for source in &self.sources {
            match &source.kind {
                SourceKind::Documents => {}
                SourceKind::Value(value) | SourceKind::Elements(value) => visit(value),
                SourceKind::Rows(plan) | SourceKind::ElementsOfRows(plan) => plan.expressions(visit),
            }
        }
        self.filters.iter().flatten().for_each(&mut *visit);
        if let Some(grouping) = &self.grouping {
            grouping.keys.iter().for_each(&mut *visit);
            grouping.aggregates.iter().for_each(|aggregate| visit(&aggregate.argument));
        }
        match &self.projection {
            Projection::Star(slot) => visit(&Expr::Path(*slot, Vec::new())),
            Projection::Value(value) => visit(value),
            Projection::Members(members) => members.iter().for_each(|(_, value)| visit(value)),
        }
        match &self.order {
            Order::None => {}
            Order::Keys(keys) => keys.iter().for_each(|key| visit(&key.key)),
            Order::Rank(components) => components.iter().for_each(|component| match &component.score {
                Score::FullText { text, terms, .. } => {
                    visit(text);
                    terms.iter().for_each(&mut *visit);
                }
                Score::Vector(score) => visit(score),
            }),
        }
    }

    /// Whether rows of several ranges can be given one after another: nothing has to be merged.
    pub fn is_plain(&self) -> bool {
        self.grouping.is_none()
            && !self.distinct
            && matches!(self.order, Order::None)
            && self.offset == 0
            && self.limit.is_none()
            && self.input.is_none()
    }

    /// Whether rows are given as documents are read, so that every page looks at documents of its own.
    pub fn is_streamed(&self) -> bool {
        self.grouping.is_none() && !self.distinct && matches!(self.order, Order::None)
    }

    /// Whether rows are sorted by what only the documents tell. Clients that merge such rows take one page of each range, so
    /// that one has to hold all that the query asks for.
    pub fn has_non_streaming_order(&self) -> bool {
        let is_non_streaming = |key: &OrderKey| matches!(&key.key, Expr::Call(function, ..) if NON_STREAMING.contains(&function.name));
        self.order_keys().iter().any(is_non_streaming)
    }

    /// Whether the query can give more than one row for a row of the query around it.
    pub fn may_have_many_rows(&self) -> bool {
        let grouped_to_one = self.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
        let several = |source: &PlanSource| match &source.kind {
            SourceKind::Documents | SourceKind::Value(_) => false,
            SourceKind::Elements(_) | SourceKind::ElementsOfRows(_) => true,
            SourceKind::Rows(plan) => plan.may_have_many_rows(),
        };
        !grouped_to_one && self.sources.iter().any(several)
    }

    /// Whether the query reads documents at all.
    pub fn reads_documents(&self) -> bool {
        self.sources.first().is_some_and(|source| matches!(source.kind, SourceKind::Documents))
    }
}
