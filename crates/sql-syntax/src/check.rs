//! Rules that a grammatical query must also keep, judged from the tree alone.
//!
//! In: a query from `parse` and its text. Out: every breach, in the order of the text; empty when there is none.
//! - A subquery has no TOP, ORDER BY, OFFSET LIMIT or ORDER BY RANK.
//! - `SELECT *` has exactly one source and no GROUP BY. TOP and OFFSET LIMIT exclude each other.
//! - A query has at most `JOIN_COUNT_MAX` joins per FROM, and `USER_FUNCTION_CALL_COUNT_MAX` calls of user functions.
//!
//! Not here: what needs names, functions, parameters or a container (`sql-plan`).

use crate::ast::{ExpressionKind, OrderBy, SelectForm, SelectQuery};
use crate::error::{SyntaxError, code};
use crate::span::Span;
use crate::visit::TreePart;

/// Most joins in one FROM clause.
pub const JOIN_COUNT_MAX: usize = 10;

/// Most calls of user-defined functions in one query.
pub const USER_FUNCTION_CALL_COUNT_MAX: usize = 10;

/// Every rule that the query breaks; `text` is what it was parsed from.
pub fn check(query: &SelectQuery, text: &str) -> Vec<SyntaxError> {
    let mut checker = Checker { text, errors: Vec::new(), user_function_calls: 0 };
    checker.query(query);
    checker.walk(TreePart::Subquery(query));
    if checker.user_function_calls > USER_FUNCTION_CALL_COUNT_MAX {
        let message = format!(
            "The SQL query exceeded the maximum number of user-defined function calls. \
             The allowed limit is {USER_FUNCTION_CALL_COUNT_MAX}."
        );
        checker.report(Span::new(0, text.len()), code::TOO_MANY_USER_FUNCTIONS, &message);
    }
    checker.errors.sort_by_key(|error| error.span.start);
    checker.errors
}

struct Checker<'text> {
    text: &'text str,
    errors: Vec<SyntaxError>,
    user_function_calls: usize,
}

impl Checker<'_> {
    fn report(&mut self, span: Span, code: &'static str, message: &str) {
        self.errors.push(SyntaxError::new(self.text, span, code, message.to_owned(), ""));
    }

    /// Visits everything below `part`, which itself is already judged.
    fn walk(&mut self, part: TreePart<'_>) {
        let mut visit = |inner: TreePart<'_>| {
            match inner {
                TreePart::Subquery(query) => {
                    self.query(query);
                    self.subquery(query);
                }
                TreePart::Expression(expression) => {
                    if matches!(expression.kind, ExpressionKind::Call { user_defined: true, .. }) {
                        self.user_function_calls += 1;
                    }
                }
            }
            self.walk(inner);
        };
        match part {
            TreePart::Expression(expression) => expression.parts(&mut visit),
            TreePart::Subquery(query) => query.parts(&mut visit),
        }
    }

    /// The rules of any query.
    fn query(&mut self, query: &SelectQuery) {
        let joins = query.from.as_ref().map_or(0, |from| from.joins.len());
        if query.select.projection == SelectForm::Star {
            let span = query.select.span;
            if query.from.is_none() {
                let message = "'SELECT *' is not valid if FROM clause is omitted.";
                self.report(span, code::STAR_NEEDS_ONE_SOURCE, message);
            }
            if joins > 0 {
                let message = "'SELECT *' is only valid with a single input set.";
                self.report(span, code::STAR_NEEDS_ONE_SOURCE, message);
            }
            if !query.group_by.is_empty() {
                self.report(span, code::STAR_WITH_GROUP_BY, "'SELECT *' is not allowed with GROUP BY.");
            }
        }
        if let (Some(_), Some(clause)) = (&query.select.top, &query.offset_limit) {
            let message = "'TOP' and 'OFFSET LIMIT' cannot be used in the same query.";
            self.report(clause.span, code::TOP_WITH_OFFSET_LIMIT, message);
        }
        if let (true, Some(from)) = (joins > JOIN_COUNT_MAX, &query.from) {
            let message = format!(
                "The SQL query exceeded the maximum number of joins. The allowed limit is {JOIN_COUNT_MAX}."
            );
            self.report(from.span, code::TOO_MANY_JOINS, &message);
        }
    }

    /// The rules of a query inside another.
    fn subquery(&mut self, query: &SelectQuery) {
        if let Some(count) = &query.select.top {
            self.report(count.span(), code::SUBQUERY_TOP, "'TOP' is not supported in subqueries.");
        }
        match &query.order_by {
            Some(OrderBy::Items { span, .. }) => {
                self.report(*span, code::SUBQUERY_ORDER_BY, "'ORDER BY' is not supported in subqueries.");
            }
            Some(OrderBy::Rank { span, .. }) => {
                self.report(*span, code::SUBQUERY_RANK, "'ORDER BY RANK' is not supported in subqueries.");
            }
            None => {}
        }
        if let Some(clause) = &query.offset_limit {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            self.report(clause.span, code::SUBQUERY_OFFSET_LIMIT, message);
        }
    }
}
