//! One query per partition: its text, and how the client merges what the partitions send.
//!
//! In: a bound query. Out: a [`QueryInfo`]. The rewritten text makes every partition send what merging needs: sort keys
//! beside rows, grouping keys beside groups, aggregates in parts that can be added up.
//! - Aggregates and groups: whatever cuts rows (TOP, OFFSET, LIMIT, DISTINCT) leaves the text and is the client's work.
//! - Order: the filter gets a placeholder, which the client replaces by the condition from which it resumes.
//! - OFFSET becomes part of LIMIT, since nobody knows which partition the skipped rows are on.
//! - A query without FROM has one row and is sent as it is.
//!
//! Not here: ORDER BY RANK (`hybrid`), and whether the client can do all that (`features`).

use super::tree::{
    NamedDocument, and, array, as_aggregate, call, count, has_aggregate, identifier, item, member,
    name_document, object, raw, select_list, selected,
};
use super::{Asked, ClientOrder, DistinctType, QueryInfo};
use crate::bind::output_name;
use crate::error::PlanError;
use crate::plan::{NON_STREAMING, Order};
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_syntax::ast::{
    Expression, ExpressionKind, FromSourceKind, OffsetLimit, OrderBy, OrderItem, Select, SelectForm,
    SelectItem, SelectQuery,
};
use astrarium_sql_syntax::{Span, print, print_expression};

/// Where clients put the condition from which they resume.
const FILTER: &str = "({documentdb-formattableorderbyquery-filter})";

/// A count of the distinct rows of a subquery, which clients do by removing duplicates and then counting.
#[derive(Clone, Copy)]
pub(super) struct DistinctCount<'a> {
    /// The subquery.
    pub(super) rows: &'a SelectQuery,
    /// The only item of a SELECT list; none for `SELECT VALUE`.
    item: Option<&'a SelectItem>,
}

/// Recognises `SELECT COUNT(1) FROM (SELECT DISTINCT ..)`.
pub(super) fn distinct_count(query: &SelectQuery) -> Option<DistinctCount<'_>> {
    let from = query.from.as_ref().filter(|from| from.joins.is_empty())?;
    let FromSourceKind::Subquery { query: rows, alias } = &from.first.kind else { return None };
    let only = query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.offset_limit.is_none()
        && query.select.top.is_none()
        && !query.select.distinct;
    let (counted, item) = match &query.select.projection {
        SelectForm::Value(value) => (&**value, None),
        SelectForm::List(items) => match items.as_slice() {
            [item] => (&item.expression, Some(item)),
            _ => return None,
        },
        SelectForm::Star => return None,
    };
    let (AggregateFunction::Count, _, argument) = as_aggregate(counted)? else { return None };
    let every_row = match &argument.kind {
        ExpressionKind::Null
        | ExpressionKind::Boolean(_)
        | ExpressionKind::Number(_)
        | ExpressionKind::String(_) => true,
        ExpressionKind::Identifier(name) => alias.as_ref().is_some_and(|alias| alias.text == *name),
        _ => false,
    };
    let plain = rows.select.distinct && rows.group_by.is_empty() && !projects_aggregate(rows);
    (only && every_row && plain).then_some(DistinctCount { rows, item })
}

/// The plan of a count of distinct rows.
pub(super) fn counted(asked: &Asked<'_>, counted: DistinctCount<'_>) -> QueryInfo {
    QueryInfo {
        distinct: DistinctType::Unordered,
        rewritten_query: print(counted.rows),
        select_value: is_value(&asked.query.select),
        distinct_count_alias: Some(counted.item.map_or_else(String::new, |item| output_name(item, &mut 0))),
        ..QueryInfo::default()
    }
}

/// The plan of a query without ORDER BY RANK. `single_key`: all rows are in one logical partition.
pub(super) fn rewrite(asked: &Asked<'_>, single_key: bool) -> Result<QueryInfo, PlanError> {
    let query = asked.query;
    let select_value = is_value(&query.select);
    if query.from.is_none() {
        // One row of one partition: there is nothing to merge.
        return Ok(QueryInfo { select_value, ..QueryInfo::default() });
    }
    let info = QueryInfo {
        top: asked.top(),
        offset: asked.offset_limit().map(|(offset, _)| offset),
        limit: asked.offset_limit().map(|(_, limit)| limit),
        select_value,
        ..QueryInfo::default()
    };
    if !query.group_by.is_empty() || projects_aggregate(query) {
        return aggregated(query, info);
    }
    if let Some(OrderBy::Items { items, .. }) = &query.order_by {
        return ordered(asked, items, info);
    }
    Ok(if query.select.distinct { distinct(query, info) } else { plain(query, info, single_key) })
}

fn plain(query: &SelectQuery, mut info: QueryInfo, single_key: bool) -> QueryInfo {
    if single_key {
        // The partition itself skips and stops; a client that did so too would lose rows.
        (info.offset, info.limit) = (None, None);
    } else if query.offset_limit.is_some() {
        let rewritten = SelectQuery { offset_limit: first_rows(&info), ..query.clone() };
        info.rewritten_query = print(&rewritten);
    }
    info
}

fn distinct(query: &SelectQuery, mut info: QueryInfo) -> QueryInfo {
    info.distinct = DistinctType::Unordered;
    if query.select.top.is_some() || query.offset_limit.is_some() {
        info.rewritten_query = print(&without_limits(query));
    }
    info
}

fn ordered(asked: &Asked<'_>, items: &[OrderItem], mut info: QueryInfo) -> Result<QueryInfo, PlanError> {
    let query = asked.query;
    let named = document_of(query)?;
    info.order_by = client_order(asked, items);
    info.non_streaming_order = items.iter().any(|item| is_non_streaming(&item.expression));
    let keys = items.iter().map(|key| item(key.expression.clone())).collect();
    let mut top = info.top;
    let mut offset_limit = first_rows(&info);
    if query.select.distinct {
        info.distinct = distinct_type(&query.select.projection, items);
        // Rows are counted only after duplicates are gone.
        (top, offset_limit) = (None, None);
    }
    let list = vec![
        SelectItem {
            expression: member(identifier(&named.document), "_rid"),
            alias: None,
            span: Span::default(),
        },
        selected(array(keys), "orderByItems"),
        selected(payload(&query.select.projection, &named.row), "payload"),
    ];
    let rewritten = SelectQuery {
        select: select_list(top, list),
        filter: Some(resumable_filter(query)),
        from: Some(named.from),
        offset_limit,
        ..query.clone()
    };
    info.rewritten_query = print(&rewritten);
    Ok(info)
}

fn client_order(asked: &Asked<'_>, items: &[OrderItem]) -> Vec<ClientOrder> {
    let Order::Keys(keys) = &asked.bound.order else { return Vec::new() };
    let one = |(item, key): (&OrderItem, &crate::plan::OrderKey)| ClientOrder {
        expression: print_expression(&item.expression),
        descending: key.descending,
    };
    items.iter().zip(keys).map(one).collect()
}

/// Neighbours are all there is to compare when rows are sorted by exactly what they hold.
fn distinct_type(projection: &SelectForm, keys: &[OrderItem]) -> DistinctType {
    let keys = keys.iter().map(|key| &key.expression);
    let sorted = match projection {
        SelectForm::Star => false,
        SelectForm::Value(value) => keys.eq(std::iter::once(&**value)),
        SelectForm::List(items) => keys.eq(items.iter().map(|item| &item.expression)),
    };
    if sorted { DistinctType::Ordered } else { DistinctType::Unordered }
}

fn aggregated(query: &SelectQuery, mut info: QueryInfo) -> Result<QueryInfo, PlanError> {
    let (payload, members) = match &query.select.projection {
        SelectForm::Star => return Err(composition(query.select.span)),
        SelectForm::Value(value) => {
            let (part, function) = partial(value)?;
            info.aggregate = function;
            (if function.is_some() { array(vec![part]) } else { part }, Vec::new())
        }
        SelectForm::List(items) => {
            let mut unnamed = 0;
            let mut members = Vec::with_capacity(items.len());
            let mut parts = Vec::with_capacity(items.len());
            for item in items {
                let name = output_name(item, &mut unnamed);
                let (part, function) = partial(&item.expression)?;
                parts.push((name.clone(), part));
                members.push((name, function));
            }
            (object(parts), members)
        }
    };
    info.members = members;
    info.group_by = query.group_by.iter().map(print_expression).collect();
    let aggregates = info.aggregate.is_some() || info.members.iter().any(|(_, function)| function.is_some());
    // Clients remove duplicates before they merge groups, and two partitions may well send equal counts.
    if query.select.distinct && (query.group_by.is_empty() || !aggregates) {
        info.distinct = DistinctType::Unordered;
    }
    let projection = if !query.group_by.is_empty() {
        let keys = query.group_by.iter().cloned().map(item).collect();
        SelectForm::List(vec![selected(array(keys), "groupByItems"), selected(payload, "payload")])
    } else if info.select_value {
        SelectForm::Value(Box::new(payload))
    } else {
        SelectForm::List(vec![selected(payload, "payload")])
    };
    let mut rewritten = without_limits(query);
    rewritten.select.distinct = false;
    rewritten.select.projection = projection;
    info.rewritten_query = print(&rewritten);
    Ok(info)
}

/// What a partition sends for one member, and the aggregate that merges it.
fn partial(expression: &Expression) -> Result<(Expression, Option<AggregateFunction>), PlanError> {
    let Some((function, name, argument)) = as_aggregate(expression) else {
        return if has_aggregate(expression) {
            Err(composition(expression.span))
        } else {
            Ok((expression.clone(), None))
        };
    };
    let over = |name: &str| call(name, vec![argument.clone()]);
    let counted = |member: &str, name: &str| {
        object([(member.to_owned(), over(name)), ("count".to_owned(), over("COUNT"))])
    };
    // An extreme alone cannot say whether it is undefined because there were no rows.
    let extreme =
        |member: &str| object([("item".to_owned(), over(name)), ("item2".to_owned(), counted(member, name))]);
    let part = match function {
        AggregateFunction::Average => item(counted("sum", "SUM")),
        AggregateFunction::Minimum => extreme("min"),
        AggregateFunction::Maximum => extreme("max"),
        AggregateFunction::Count
        | AggregateFunction::CountIf
        | AggregateFunction::Sum
        | AggregateFunction::MakeList
        | AggregateFunction::MakeSet => item(expression.clone()),
    };
    Ok((part, Some(function)))
}

fn composition(span: Span) -> PlanError {
    PlanError::new(span, "", "Compositions of aggregates and other expressions are not allowed.")
}

fn projects_aggregate(query: &SelectQuery) -> bool {
    match &query.select.projection {
        SelectForm::Star => false,
        SelectForm::Value(value) => has_aggregate(value),
        SelectForm::List(items) => items.iter().any(|item| has_aggregate(&item.expression)),
    }
}

/// The query without what cuts its rows.
fn without_limits(query: &SelectQuery) -> SelectQuery {
    let mut query = query.clone();
    query.select.top = None;
    query.offset_limit = None;
    query
}

/// The rows of which a client skips the first ones itself.
fn first_rows(info: &QueryInfo) -> Option<OffsetLimit> {
    let (offset, limit) = (info.offset?, info.limit?);
    Some(OffsetLimit { offset: count(0), limit: count(offset.saturating_add(limit)), span: Span::default() })
}

fn is_value(select: &Select) -> bool {
    matches!(select.projection, SelectForm::Value(_))
}

fn is_non_streaming(key: &Expression) -> bool {
    matches!(&key.kind, ExpressionKind::Call { name, user_defined: false, .. }
        if NON_STREAMING.iter().any(|function| function.eq_ignore_ascii_case(name)))
}

/// The FROM clause with a name for the document.
pub(super) fn document_of(query: &SelectQuery) -> Result<NamedDocument, PlanError> {
    let message = "ORDER BY needs a FROM clause whose first source has a name.";
    let unnamed = || PlanError::new(query.span, "", message);
    query.from.as_ref().and_then(name_document).ok_or_else(unnamed)
}

/// The user's projection as one value.
pub(super) fn payload(projection: &SelectForm, row: &str) -> Expression {
    match projection {
        SelectForm::Star => identifier(row),
        SelectForm::Value(value) => (**value).clone(),
        SelectForm::List(items) => {
            let mut unnamed = 0;
            object(items.iter().map(|item| (output_name(item, &mut unnamed), item.expression.clone())))
        }
    }
}

/// The user's filter and the place for the condition from which a client resumes.
pub(super) fn resumable_filter(query: &SelectQuery) -> Expression {
    let filter = match &query.filter {
        Some(filter) => and(filter.clone(), raw(FILTER)),
        None => raw(FILTER),
    };
    match defined_value(&query.select.projection) {
        Some(defined) => and(filter, defined),
        None => filter,
    }
}

/// The condition that `SELECT VALUE` gives a row at all, which is lost when the value becomes a member of a row.
pub(super) fn defined_value(projection: &SelectForm) -> Option<Expression> {
    let SelectForm::Value(value) = projection else { return None };
    Some(call("IS_DEFINED", vec![(**value).clone()]))
}
