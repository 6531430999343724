//! ORDER BY RANK: one query per score, and one for the statistics that full-text scores are made of.
//!
//! In: a bound query and its scoring expression. Out: a [`HybridSearchInfo`]. The client sums the statistics of all
//! partitions, puts them into the placeholders, sends every component, joins rows by `_rid`, ranks them by each score and
//! fuses the ranks.
//! - A component sends more rows than wanted, since the best after fusing need not be the best of any one score.
//! - Every row carries all scores, each with a value that ranks last where the score is undefined.
//! - A negative weight ranks the worst first.

use super::features::SKIP_ORDER_REWRITE;
use super::rewrite::{defined_value, document_of, payload, resumable_filter};
use super::tree::{
    NamedDocument, and, array, base_name, call, coalesce, count, identifier, item, literal, member, object,
    raw, select_list, selected,
};
use super::{Asked, ClientOrder, HybridSearchInfo, QueryInfo};
use crate::error::PlanError;
use crate::plan::{Order, RankComponent};
use astrarium_sql_syntax::ast::{
    BinaryOperator, Expression, ExpressionKind, FromClause, OffsetLimit, OrderBy, OrderItem, SelectForm,
    SelectItem, SelectQuery, SortDirection,
};
use astrarium_sql_syntax::{Number, Span, print, print_expression};
use astrarium_value::Value;

/// Scores that are fused at most. Every component sends all scores, so texts grow with the square of their number.
const COMPONENT_COUNT_MAX: usize = 32;
/// Rows that a component sends for each wanted one.
const ROWS_PER_TAKEN: u64 = 2;
/// Rows that a component sends at least.
const ROWS_MIN: u64 = 120;
/// Rows that a component sends at most: clients read the number as a signed 32-bit one.
const ROWS_MAX: u64 = 2_147_483_647;

/// A value that ranks behind every vector score, in the digits that the service writes.
const WORST_VECTOR_SCORE: &str = "-1.79769e+308";
/// The same where the least score is best.
const WORST_REVERSED_SCORE: &str = "1.79769e+308";

/// The plan of a query with ORDER BY RANK.
pub(super) fn rewrite(asked: &Asked<'_>, score: &Expression) -> Result<HybridSearchInfo, PlanError> {
    let query = asked.query;
    if query.select.distinct || !query.group_by.is_empty() {
        let message = "DISTINCT and GROUP BY cannot be combined with ORDER BY RANK across partitions.";
        return Err(PlanError::new(query.span, "", message));
    }
    let named = document_of(query)?;
    let (components, weighted) = components(asked, score);
    if components.len() > COMPONENT_COUNT_MAX {
        let message =
            format!("ORDER BY RANK can fuse at most {COMPONENT_COUNT_MAX} scores across partitions.");
        return Err(PlanError::new(score.span, "", message));
    }
    let statistics = statistics_query(query, &named, &components);
    let (skip, take) = match asked.offset_limit() {
        Some((skip, limit)) => (Some(skip), Some(limit)),
        None => (None, asked.top()),
    };
    let rows = take.map(|take| {
        let wanted = skip.unwrap_or(0).saturating_add(take);
        wanted.saturating_mul(ROWS_PER_TAKEN).clamp(ROWS_MIN, ROWS_MAX)
    });
    let search = Search { query, named, components: &components, rows, skips: skip.is_some() };
    let skip_rewrite = asked.supported.has(SKIP_ORDER_REWRITE);
    let infos = (0..components.len()).map(|place| match (skip_rewrite, components.len() > 1) {
        (true, true) => search.short(place),
        (true, false) => search.ordinary(place, Vec::new()),
        (false, _) => search.ordinary(place, components.iter().map(ScoreComponent::known_score).collect()),
    });
    Ok(HybridSearchInfo {
        global_statistics_query: print(&statistics),
        requires_global_statistics: components.iter().any(ScoreComponent::is_full_text),
        components: infos.collect(),
        weights: if weighted { components.iter().map(|one| one.weight.abs()).collect() } else { Vec::new() },
        skip,
        take,
    })
}

/// One score.
struct ScoreComponent {
    /// The function that computes it on one partition.
    score: Expression,
    /// What a full-text score counts.
    full_text: Option<FullText>,
    weight: f64,
}

struct FullText {
    text: Expression,
    terms: Vec<Expression>,
}

/// The scores of the clause, and whether they have weights.
fn components(asked: &Asked<'_>, score: &Expression) -> (Vec<ScoreComponent>, bool) {
    let arguments = match &score.kind {
        ExpressionKind::Call { name, arguments, .. } if name.eq_ignore_ascii_case("RRF") => {
            arguments.as_slice()
        }
        _ => std::slice::from_ref(score),
    };
    let Order::Rank(ranked) = &asked.bound.order else { return (Vec::new(), false) };
    let mut full_text_count = 0;
    let one = |(score, ranked): (&Expression, &RankComponent)| {
        component(asked, score, ranked.weight, &mut full_text_count)
    };
    (arguments.iter().zip(ranked).map(one).collect(), arguments.len() > ranked.len())
}

fn component(
    asked: &Asked<'_>,
    score: &Expression,
    weight: f64,
    full_text_count: &mut usize,
) -> ScoreComponent {
    let ExpressionKind::Call { name, arguments, .. } = &score.kind else {
        return ScoreComponent { score: score.clone(), full_text: None, weight };
    };
    match arguments.split_first() {
        Some((text, terms)) if name.eq_ignore_ascii_case("FULLTEXTSCORE") => {
            let full_text = FullText { text: text.clone(), terms: single_terms(asked, terms) };
            let score = full_text_score(&full_text, *full_text_count);
            *full_text_count += 1;
            ScoreComponent { score, full_text: Some(full_text), weight }
        }
        _ => ScoreComponent { score: call("_VectorScore", arguments.clone()), full_text: None, weight },
    }
}

/// The terms one by one: arrays of terms, written out or given as a parameter, are taken apart, because hits are
/// counted for each.
fn single_terms(asked: &Asked<'_>, terms: &[Expression]) -> Vec<Expression> {
    let mut single = Vec::new();
    for term in terms {
        match &term.kind {
            ExpressionKind::Array(items) => single.extend(items.iter().cloned()),
            ExpressionKind::Parameter(name) => match asked.parameters.get(name) {
                Some(Value::Array(items)) => single.extend(items.iter().map(literal)),
                _ => single.push(term.clone()),
            },
            _ => single.push(term.clone()),
        }
    }
    single
}

fn full_text_score(full_text: &FullText, place: usize) -> Expression {
    let statistic = |name: &str| raw(format!("{{documentdb-formattablehybridsearchquery-{name}}}"));
    call(
        "_FullTextScore",
        vec![
            full_text.text.clone(),
            array(full_text.terms.clone()),
            statistic("totaldocumentcount"),
            statistic(&format!("totalwordcount-{place}")),
            statistic(&format!("hitcountsarray-{place}")),
        ],
    )
}

impl ScoreComponent {
    fn is_full_text(&self) -> bool {
        self.full_text.is_some()
    }

    fn is_reversed(&self) -> bool {
        self.weight < 0.0
    }

    /// The score, or one that ranks last.
    fn known_score(&self) -> Expression {
        let worst = match (self.is_full_text(), self.is_reversed()) {
            (true, _) => ExpressionKind::Number(Number::integer(-1)).into(),
            (false, false) => raw(WORST_VECTOR_SCORE),
            (false, true) => raw(WORST_REVERSED_SCORE),
        };
        coalesce(self.score.clone(), worst)
    }

    /// The score turned so that greater is better, for clients that sort by it themselves.
    fn turned_score(&self) -> Expression {
        if !self.is_reversed() {
            return self.known_score();
        }
        ExpressionKind::Binary {
            operator: BinaryOperator::Multiply,
            left: Box::new(ExpressionKind::Number(Number::integer(-1)).into()),
            right: Box::new(coalesce(self.score.clone(), raw(WORST_REVERSED_SCORE))),
        }
        .into()
    }

    /// Best first. A vector score has no direction of its own but the best one.
    fn order_by(&self) -> OrderBy {
        let direction = match (self.is_reversed(), self.is_full_text()) {
            (true, _) => Some(SortDirection::Ascending),
            (false, true) => Some(SortDirection::Descending),
            (false, false) => None,
        };
        let items = vec![OrderItem { expression: self.score.clone(), direction }];
        OrderBy::Items { items, span: Span::default() }
    }
}

/// What the queries of all components share.
struct Search<'a> {
    query: &'a SelectQuery,
    named: NamedDocument,
    components: &'a [ScoreComponent],
    /// Rows that a component sends.
    rows: Option<u64>,
    /// Whether the query has OFFSET LIMIT rather than TOP.
    skips: bool,
}

impl Search<'_> {
    /// The form that is merged like any ORDER BY.
    fn ordinary(&self, place: usize, scores: Vec<Expression>) -> QueryInfo {
        let component = &self.components[place];
        let row = [("payload".to_owned(), self.payload()), ("componentScores".to_owned(), array(scores))];
        let list = vec![
            selected(array(vec![item(component.score.clone())]), "orderByItems"),
            selected(object(row), "payload"),
        ];
        let order = ClientOrder {
            expression: print_expression(&component.score),
            descending: !component.is_reversed(),
        };
        QueryInfo {
            order_by: vec![order],
            non_streaming_order: true,
            ..self.info(component, list, Some(resumable_filter(self.query)))
        }
    }

    /// The form for clients that rank rows by the scores in them.
    fn short(&self, place: usize) -> QueryInfo {
        let scores = self.components.iter().map(ScoreComponent::turned_score).collect();
        let list = vec![selected(self.payload(), "payload"), selected(array(scores), "componentScores")];
        let filter = match (self.query.filter.clone(), defined_value(&self.query.select.projection)) {
            (Some(filter), Some(defined)) => Some(and(filter, defined)),
            (filter, defined) => filter.or(defined),
        };
        self.info(&self.components[place], list, filter)
    }

    fn payload(&self) -> Expression {
        payload(&self.query.select.projection, &self.named.row)
    }

    fn info(
        &self,
        component: &ScoreComponent,
        mut list: Vec<SelectItem>,
        filter: Option<Expression>,
    ) -> QueryInfo {
        let expression = member(identifier(&self.named.document), "_rid");
        list.insert(0, SelectItem { expression, alias: None, span: Span::default() });
        let (top, limit) = if self.skips { (None, self.rows) } else { (self.rows, None) };
        let clause = |limit| OffsetLimit { offset: count(0), limit: count(limit), span: Span::default() };
        let rewritten = SelectQuery {
            select: select_list(top, list),
            from: Some(self.named.from.clone()),
            filter,
            group_by: Vec::new(),
            order_by: Some(component.order_by()),
            offset_limit: limit.map(clause),
            span: Span::default(),
        };
        QueryInfo {
            top,
            offset: limit.map(|_| 0),
            limit,
            rewritten_query: print(&rewritten),
            select_value: matches!(self.query.select.projection, SelectForm::Value(_)),
            ..QueryInfo::default()
        }
    }
}

/// What one partition counts: its documents, and for each full-text score the words and the documents with each term.
/// The user's filter has no part in it, because scores are about the whole container.
fn statistics_query(
    query: &SelectQuery,
    named: &NamedDocument,
    components: &[ScoreComponent],
) -> SelectQuery {
    let searched: Vec<&FullText> =
        components.iter().filter_map(|component| component.full_text.as_ref()).collect();
    let statistics = searched.iter().map(|full_text| {
        let hits = full_text.terms.iter().map(|term| {
            let hit = call("FullTextContains", vec![full_text.text.clone(), term.clone()]);
            call("COUNTIF", vec![hit])
        });
        let words = call("SUM", vec![call("_FullTextWordCount", vec![full_text.text.clone()])]);
        object([("totalWordCount".to_owned(), words), ("hitCounts".to_owned(), array(hits.collect()))])
    });
    let one = ExpressionKind::Number(Number::integer(1)).into();
    let list = vec![
        selected(call("COUNT", vec![one]), "documentCount"),
        selected(array(statistics.collect()), "fullTextStatistics"),
    ];
    // Joins multiply documents; they stay only where the text itself comes from one.
    let in_document = searched.iter().all(|full_text| base_name(&full_text.text) == named.document);
    let joins = if in_document { Vec::new() } else { named.from.joins.clone() };
    SelectQuery {
        select: select_list(None, list),
        from: Some(FromClause { first: named.from.first.clone(), joins, span: Span::default() }),
        filter: None,
        group_by: Vec::new(),
        order_by: None,
        offset_limit: None,
        span: query.span,
    }
}
