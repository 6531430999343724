//! The plan that client SDKs ask for: how to send a query to each partition and how to merge what comes back.
//!
//! In: a parsed query with its text and parameters, what the container defines, and the features that the client says it
//! can merge. Out: a [`ClientPlan`], whose JSON is the body of the answer.
//! - `rewrite`: the text for one partition and what the client does with its rows;
//! - `hybrid`: the same for ORDER BY RANK, which takes one query per score;
//! - `ranges`: where the rows can be;
//! - `features`: what the client must be able to do;
//! - `tree`: building blocks of rewritten queries.
//!
//! Invariants
//! - A query that `bind` refuses is refused with the same error; refusals made here concern merging only.
//! - A rewritten text parses, once the client has replaced its placeholders.
//!
//! Not here: headers and statuses (`gateway`), running the rewritten text (`sql-exec`, like any other query).

mod features;
mod hybrid;
mod json;
mod ranges;
mod rewrite;
mod tree;

use crate::bind::{Catalog, bind};
use crate::error::PlanError;
use crate::{Parameters, QueryPlan};
use astrarium_partition::EffectiveKey;
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_syntax::ast::{OrderBy, SelectQuery};
use astrarium_sql_syntax::check;
use features::Features;

/// How a client answers a query by asking partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientPlan {
    /// What is sent and how the answers are merged.
    pub query: ClientQuery,
    /// Where it is sent: sorted, disjoint, never empty. A query without rows names one point, since clients
    /// have to ask somebody.
    pub ranges: Vec<ClientRange>,
}

/// The two ways to merge.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientQuery {
    /// One query per partition.
    Plain(QueryInfo),
    /// Several queries per partition, whose ranks are fused.
    Hybrid(HybridSearchInfo),
}

/// What a client has to know to merge the rows of one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryInfo {
    /// Whether the client removes equal rows.
    pub distinct: DistinctType,
    /// Rows to return at most, of TOP.
    pub top: Option<u64>,
    /// Rows to skip after merging.
    pub offset: Option<u64>,
    /// Rows to return at most, of LIMIT.
    pub limit: Option<u64>,
    /// The sort keys to merge by.
    pub order_by: Vec<ClientOrder>,
    /// The grouping expressions, as text.
    pub group_by: Vec<String>,
    /// The aggregate of `SELECT VALUE`.
    pub aggregate: Option<AggregateFunction>,
    /// The members of a list that is aggregated or grouped, each with its aggregate unless it is a plain value.
    pub members: Vec<(String, Option<AggregateFunction>)>,
    /// What to send instead of the query; empty where the query itself is right.
    pub rewritten_query: String,
    /// Whether rows are values rather than objects.
    pub select_value: bool,
    /// The name under which distinct rows are counted, empty for a bare number.
    pub distinct_count_alias: Option<String>,
    /// Whether partitions do not send rows in order, so that the client has to sort them.
    pub non_streaming_order: bool,
}

/// How equal rows are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DistinctType {
    /// They are kept.
    #[default]
    None,
    /// They come one after the other.
    Ordered,
    /// They may come anywhere.
    Unordered,
}

/// One sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOrder {
    /// The key as text, which clients put into the filter that resumes a query.
    pub expression: String,
    /// Whether greater comes first.
    pub descending: bool,
}

/// How the scores of ORDER BY RANK are collected and fused.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridSearchInfo {
    /// What to ask first for word counts and hit counts.
    pub global_statistics_query: String,
    /// Whether any component needs those counts.
    pub requires_global_statistics: bool,
    /// One query per score.
    pub components: Vec<QueryInfo>,
    /// The weights of the scores without their signs; empty where none are given.
    pub weights: Vec<f64>,
    /// Rows to skip after fusing.
    pub skip: Option<u64>,
    /// Rows to return at most.
    pub take: Option<u64>,
}

/// A part of the space of effective partition keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientRange {
    /// The first key inside.
    pub min: EffectiveKey,
    /// The end: the first key beyond, or the same as `min` for a point.
    pub max: EffectiveKey,
}

impl ClientPlan {
    /// The same plan for a client that shall take whatever rows come from the same ranges, such as those of EXPLAIN.
    #[must_use]
    pub fn without_merging(self) -> ClientPlan {
        ClientPlan { query: ClientQuery::Plain(QueryInfo::default()), ranges: self.ranges }
    }
}

/// Makes the plan of a query for a client.
///
/// `text` is what `query` was parsed from. `supported_features` is the list that the client sends; a client that sends
/// none supports nothing that needs merging, as on the service.
pub fn client_plan(
    query: &SelectQuery,
    text: &str,
    catalog: &Catalog<'_>,
    parameters: &Parameters,
    supported_features: Option<&str>,
) -> Result<ClientPlan, PlanError> {
    if let Some(broken) = check(query, text).into_iter().next() {
        return Err(PlanError::new(broken.span, broken.code, broken.message));
    }
    let supported = Features::listed(supported_features.unwrap_or_default());
    let counted = rewrite::distinct_count(query);
    let bound = bind(counted.map_or(query, |counted| counted.rows), catalog, parameters)?;
    let asked = Asked { query, bound: &bound, parameters, supported: &supported };
    let (ranges, single_key) = ranges::of(&bound, catalog.container);
    let plan = match (&query.order_by, counted) {
        (_, Some(counted)) => ClientQuery::Plain(rewrite::counted(&asked, counted)),
        (Some(OrderBy::Rank { score, .. }), _) => ClientQuery::Hybrid(hybrid::rewrite(&asked, score)?),
        _ => ClientQuery::Plain(rewrite::rewrite(&asked, single_key)?),
    };
    supported.check(&plan, query.span)?;
    Ok(ClientPlan { query: plan, ranges })
}

/// What the files below work from.
struct Asked<'a> {
    query: &'a SelectQuery,
    bound: &'a QueryPlan,
    parameters: &'a Parameters,
    supported: &'a Features<'a>,
}

impl Asked<'_> {
    /// The value of TOP.
    fn top(&self) -> Option<u64> {
        self.query.select.top.as_ref().and(self.bound.limit)
    }

    /// The values of OFFSET and LIMIT.
    fn offset_limit(&self) -> Option<(u64, u64)> {
        self.query.offset_limit.as_ref().and(self.bound.limit).map(|limit| (self.bound.offset, limit))
    }
}
