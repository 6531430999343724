//! What could be asked more cheaply: the rules of the service's query advisor that a query matches.
//!
//! In: a checked query with its parameters. Out: the rules, each once, in the order in which the parts of the query work:
//! sources, filters, groups, order, projection.
//! Invariants
//! - What folds to a constant gives no advice: it costs nothing.
//! - A computed property counts as the property it looks like, so that whoever followed the advice hears it no more.
//!
//! Not here: the header that carries the advice (`gateway`), the sentences for people (clients have them by rule).

use crate::bind::{Catalog, bind};
use crate::error::PlanError;
use crate::expression::Expr;
use crate::plan::{Order, Projection, QueryPlan, Score, SourceKind};
use crate::{Parameters, rules};
use astrarium_sql_syntax::ast::{BinaryOperator, SelectQuery};
use astrarium_value::Value;

/// A rule of the advisor that a query matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// `ARRAY_CONTAINS` that compares objects in part: `EXISTS` with a subquery is cheaper.
    PartialArrayContains,
    /// DISTINCT over a JOIN: `EXISTS` with a subquery is cheaper.
    DistinctAndJoin,
    /// `CONTAINS`, where `STARTSWITH` might be meant.
    Contains,
    /// `STARTSWITH` or `STRINGEQUALS` that ignores case: a computed property of `LOWER` is cheaper.
    CaseInsensitiveStartsWithOrStringEquals,
    /// `ENDSWITH` that ignores case: a computed property of `REVERSE` is cheaper.
    CaseInsensitiveEndsWith,
    /// GROUP BY of something computed: a computed property is cheaper.
    GroupByComputedProperty,
    /// A filter that compares `UPPER` or `LOWER` of something: a computed property is cheaper.
    UpperLowerComparison,
    /// `GETCURRENTDATETIME`, evaluated for each row, instead of its static form.
    GetCurrentDateTime,
    /// `GETCURRENTTICKS`, evaluated for each row, instead of its static form.
    GetCurrentTicks,
    /// `GETCURRENTTIMESTAMP`, evaluated for each row, instead of its static form.
    GetCurrentTimestamp,
}

impl Advice {
    /// The identifier by which clients know the rule.
    pub fn id(self) -> &'static str {
        match self {
            Advice::PartialArrayContains => "QA1000",
            Advice::DistinctAndJoin => "QA1001",
            Advice::Contains => "QA1002",
            Advice::CaseInsensitiveStartsWithOrStringEquals => "QA1003",
            Advice::CaseInsensitiveEndsWith => "QA1004",
            Advice::GroupByComputedProperty => "QA1005",
            Advice::UpperLowerComparison => "QA1006",
            Advice::GetCurrentDateTime => "QA1007",
            Advice::GetCurrentTicks => "QA1008",
            Advice::GetCurrentTimestamp => "QA1009",
        }
    }
}

/// The rules that a query matches. Refuses what `bind` refuses.
pub fn advise(query: &SelectQuery, parameters: &Parameters) -> Result<Vec<Advice>, PlanError> {
    // Bound without the container's definition: computed properties stay plain paths.
    let plan = rules::apply(bind(query, &Catalog::default(), parameters)?);
    let mut found = Findings { advice: Vec::new() };
    found.plan(&plan);
    Ok(found.advice)
}

struct Findings {
    advice: Vec<Advice>,
}

impl Findings {
    fn add(&mut self, advice: Advice) {
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }

    fn plan(&mut self, plan: &QueryPlan) {
        if let Some(input) = &plan.input {
            self.plan(input);
        }
        for source in &plan.sources {
            match &source.kind {
                SourceKind::Documents => {}
                SourceKind::Value(value) | SourceKind::Elements(value) => self.expression(value),
                SourceKind::Rows(plan) | SourceKind::ElementsOfRows(plan) => self.plan(plan),
            }
        }
        if plan.distinct && plan.sources.len() > 1 {
            self.add(Advice::DistinctAndJoin);
        }
        for filter in plan.filters.iter().flatten() {
            if compares_case(filter) {
                self.add(Advice::UpperLowerComparison);
            }
            self.expression(filter);
        }
        if let Some(grouping) = &plan.grouping {
            if grouping.keys.iter().any(is_computed) {
                self.add(Advice::GroupByComputedProperty);
            }
            grouping.keys.iter().for_each(|key| self.expression(key));
            grouping.aggregates.iter().for_each(|aggregate| self.expression(&aggregate.argument));
        }
        self.order(&plan.order);
        match &plan.projection {
            Projection::Star(_) => {}
            Projection::Value(value) => self.expression(value),
            Projection::Members(members) => members.iter().for_each(|(_, value)| self.expression(value)),
        }
    }

    fn order(&mut self, order: &Order) {
        match order {
            Order::None => {}
            Order::Keys(keys) => keys.iter().for_each(|key| self.expression(&key.key)),
            Order::Rank(components) => {
                for component in components {
                    match &component.score {
                        Score::FullText { text, .. } => self.expression(text),
                        Score::Vector(score) => self.expression(score),
                    }
                }
            }
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Subquery(_, plan) => return self.plan(plan),
            Expr::Call(function, arguments, _) => {
                let flagged = matches!(arguments.get(2), Some(Expr::Constant(Value::Bool(true))));
                match function.name {
                    "ARRAY_CONTAINS" if flagged => self.add(Advice::PartialArrayContains),
                    "CONTAINS" => self.add(Advice::Contains),
                    "STARTSWITH" | "STRINGEQUALS" if flagged => {
                        self.add(Advice::CaseInsensitiveStartsWithOrStringEquals);
                    }
                    "ENDSWITH" if flagged => self.add(Advice::CaseInsensitiveEndsWith),
                    "GETCURRENTDATETIME" => self.add(Advice::GetCurrentDateTime),
                    "GETCURRENTTICKS" => self.add(Advice::GetCurrentTicks),
                    "GETCURRENTTIMESTAMP" => self.add(Advice::GetCurrentTimestamp),
                    _ => {}
                }
            }
            _ => {}
        }
        expression.parts().into_iter().for_each(|part| self.expression(part));
    }
}

/// Whether a filter compares the upper or lower case form of something; those of subqueries are filters of their own.
fn compares_case(filter: &Expr) -> bool {
    use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let compared: &[&Expr] = match filter {
        Expr::Binary(Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual, left, right) => {
            &[left, right]
        }
        Expr::In(value, _)
        | Expr::Between(value, ..)
        | Expr::Like(value, _)
        | Expr::LikeComputed(value, ..) => &[value],
        _ => &[],
    };
    let changes_case =
        |one: &&Expr| matches!(one, Expr::Call(function, ..) if matches!(function.name, "UPPER" | "LOWER"));
    compared.iter().any(changes_case) || filter.parts().into_iter().any(compares_case)
}

/// Whether a grouping expression is more than a path, and something that a computed property can be.
fn is_computed(key: &Expr) -> bool {
    !matches!(key, Expr::Path(..) | Expr::Constant(_)) && is_deterministic(key)
}

fn is_deterministic(expression: &Expr) -> bool {
    let itself = match expression {
        Expr::Call(function, ..) => function.deterministic,
        Expr::UserDefined(..) | Expr::Subquery(..) => false,
        _ => true,
    };
    itself && expression.parts().into_iter().all(is_deterministic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let query = astrarium_sql_syntax::parse(text).expect("a query");
        let parameters = Parameters::new(vec![("@yes".to_owned(), Value::Bool(true))]);
        let advice = advise(&query, &parameters).expect("a plan");
        let found: Vec<&str> = advice.into_iter().map(Advice::id).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn rules_of_the_advisor() {
        // The examples of the rules' own pages.
        check("SELECT VALUE ARRAY_CONTAINS(c.auditEvents, {\"type\":\"invoice\"}, true) FROM c", &["QA1000"]);
        check("SELECT DISTINCT VALUE c.id FROM c JOIN t IN c.tags WHERE t.name = 'x'", &["QA1001"]);
        check("SELECT VALUE r.id FROM root r WHERE CONTAINS(r.name, 'Abc')", &["QA1002"]);
        check("SELECT * FROM c WHERE StringEquals(c.name, 'abc', true)", &["QA1003"]);
        check("SELECT * FROM c WHERE STARTSWITH(c.name, 'abc', @yes)", &["QA1003"]);
        check("SELECT * FROM c WHERE ENDSWITH(c.name, 'abc', true)", &["QA1004"]);
        check("SELECT LOWER(c.k) AS k, COUNT(1) AS n FROM c GROUP BY LOWER(c.k)", &["QA1005"]);
        check("SELECT * FROM c WHERE LOWER(c.name) = 'abc'", &["QA1006"]);
        check("SELECT * FROM c WHERE 'ABC' < UPPER(c.name) AND c.n = 1", &["QA1006"]);
        check("SELECT * FROM c WHERE NOT (LOWER(c.name) IN ('a', 'b'))", &["QA1006"]);
        check("SELECT * FROM c WHERE c.timestamp > GetCurrentDateTime()", &["QA1007"]);
        // In the order that the service's own example has: the filter before the projection.
        check("SELECT GetCurrentTicks() FROM root r WHERE GetCurrentTimestamp() > 10", &["QA1009", "QA1008"]);
    }

    #[test]
    fn nothing_to_say() {
        for text in [
            "SELECT * FROM c",
            "SELECT VALUE r.id FROM root r WHERE StringEquals(r.name, 'Abc', false)",
            "SELECT VALUE r.id FROM root r WHERE STARTSWITH(r.name, 'Abc')",
            "SELECT * FROM c WHERE ARRAY_CONTAINS(c.a, 1) AND ENDSWITH(c.b, 'x', false)",
            "SELECT * FROM c WHERE c.t > GetCurrentDateTimeStatic()",
            "SELECT * FROM c WHERE CONTAINS('abc', 'b') AND LOWER('A') = 'a'",
            "SELECT VALUE LOWER(c.name) FROM c",
            "SELECT DISTINCT c.k FROM c",
            "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
            "SELECT COUNT(1) AS n FROM c GROUP BY RAND() + c.k",
            "SELECT COUNT(1) AS n FROM c GROUP BY udf.f(c.k)",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn each_rule_once_from_anywhere() {
        check("SELECT CONTAINS(c.a, 'x') AS x FROM c WHERE CONTAINS(c.b, 'y') ORDER BY c.z", &["QA1002"]);
        check(
            "SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE LOWER(t) = 'a') FROM c",
            &["QA1006"],
        );
        check("SELECT * FROM (SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags) s", &["QA1001"]);
        check(
            "SELECT c.id FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE CONTAINS(t, 'a')) s",
            &["QA1002"],
        );
    }
}
