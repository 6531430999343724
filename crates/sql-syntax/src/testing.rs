//! Random syntax trees for property tests: everything `parse` can return, and nothing it cannot.
//!
//! Trees keep the invariants of `ast`, so printing and parsing gives them back. Names come from a small set, so that the
//! names of sources and those in expressions meet now and then; spans are empty. Every strategy is boxed: unboxed, the
//! values of one query would take more stack than a test thread has.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::ast::{
    BinaryOperator, Collection, Count, Expression, ExpressionKind, FromClause, FromSource, FromSourceKind,
    LogicalOperator, Name, ObjectMember, OffsetLimit, OrderBy, OrderItem, Select, SelectForm, SelectItem,
    SelectQuery, SortDirection, SubqueryForm, UnaryOperator,
};
use crate::number::Number;
use crate::span::Span;
use crate::token::is_plain_name;

/// Any query: every clause, subqueries included.
pub fn query() -> BoxedStrategy<SelectQuery> {
    query_of(expression())
}

/// Any scalar expression, a few levels high.
pub fn expression() -> BoxedStrategy<Expression> {
    leaf().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            3 => access(inner.clone()),
            4 => operation(&inner),
            2 => constructor(&inner),
            1 => (subquery_form(), query_of(inner))
                .prop_map(|(form, query)| ExpressionKind::Subquery { form, query: Box::new(query) }.into()),
        ]
    })
    .boxed()
}

/// A name that may stand anywhere.
pub fn identifier() -> BoxedStrategy<String> {
    prop_oneof![
        6 => prop::sample::select(vec!["c", "r", "x", "_rid", "root", "First", "ALL", "TRUE", "a1"])
            .prop_map(str::to_owned),
        1 => "[A-Za-z_][A-Za-z0-9_]{0,8}".prop_filter("reserved", |name| {
            crate::token::Keyword::of(name).is_none() && name != "NaN" && name != "Infinity"
        }),
    ]
    .boxed()
}

fn boxed(strategy: BoxedStrategy<Expression>) -> BoxedStrategy<Box<Expression>> {
    strategy.prop_map(Box::new).boxed()
}

fn name() -> BoxedStrategy<Name> {
    identifier().prop_map(|text| Name { text, span: Span::default() }).boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![3 => "[a-c'\"%_ \\\\]{0,6}", 1 => any::<String>()].boxed()
}

fn number() -> BoxedStrategy<Number> {
    prop_oneof![
        3 => (-9_i64..100).prop_map(Number::integer),
        1 => any::<i64>().prop_map(Number::integer),
        1 => any::<f64>().prop_map(Number::double),
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.5, 1e300])
            .prop_map(Number::double),
    ]
    .boxed()
}

fn parameter() -> BoxedStrategy<String> {
    "@[A-Za-z_][A-Za-z0-9_]{0,5}".boxed()
}

fn leaf() -> BoxedStrategy<Expression> {
    prop_oneof![
        1 => Just(ExpressionKind::Undefined),
        1 => Just(ExpressionKind::Null),
        1 => any::<bool>().prop_map(ExpressionKind::Boolean),
        3 => number().prop_map(ExpressionKind::Number),
        2 => text().prop_map(ExpressionKind::String),
        1 => parameter().prop_map(ExpressionKind::Parameter),
        4 => identifier().prop_map(ExpressionKind::Identifier),
    ]
    .prop_map(Expression::new)
    .boxed()
}

fn member(base: Expression, name: String, bracketed: bool) -> Expression {
    let bracketed = bracketed || !is_plain_name(&name);
    ExpressionKind::Member { base: Box::new(base), name, bracketed }.into()
}

fn index(base: Expression, index: Expression) -> Expression {
    match index.kind {
        ExpressionKind::String(name) => member(base, name, true),
        _ => ExpressionKind::Index { base: Box::new(base), index: Box::new(index) }.into(),
    }
}

fn access(inner: BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    prop_oneof![
        (inner.clone(), identifier(), any::<bool>())
            .prop_map(|(base, name, quoted)| member(base, name, quoted)),
        (inner.clone(), text()).prop_map(|(base, name)| member(base, name, true)),
        (inner.clone(), inner).prop_map(|(base, place)| index(base, place)),
    ]
    .boxed()
}

fn operation(inner: &BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    let one = || boxed(inner.clone());
    let some = || vec(inner.clone(), 1..4);
    prop_oneof![
        (unary_operator(), inner.clone()).prop_map(|(operator, operand)| unary(operator, operand)),
        (binary_operator(), one(), one()).prop_map(|(operator, left, right)| ExpressionKind::Binary {
            operator,
            left,
            right
        }
        .into()),
        (any::<bool>(), vec(inner.clone(), 2..5)).prop_map(|(or, operands)| logical(or, operands)),
        (one(), one(), one()).prop_map(|(condition, then, otherwise)| {
            ExpressionKind::Conditional { condition, then, otherwise }.into()
        }),
        (one(), one()).prop_map(|(left, right)| ExpressionKind::Coalesce { left, right }.into()),
        (one(), some(), any::<bool>()).prop_map(|(value, list, negated)| ExpressionKind::In {
            value,
            list,
            negated
        }
        .into()),
        (one(), one(), one(), any::<bool>()).prop_map(|(value, low, high, negated)| {
            ExpressionKind::Between { value, low, high, negated }.into()
        }),
        (one(), one(), option::of(any::<char>()), any::<bool>()).prop_map(
            |(value, pattern, escape, negated)| ExpressionKind::Like { value, pattern, escape, negated }
                .into()
        ),
    ]
    .boxed()
}

/// A prefix operator; the negative of a number is a number, which `parse` never returns as an operator.
fn unary(operator: UnaryOperator, operand: Expression) -> Expression {
    match (operator, operand.kind) {
        (UnaryOperator::Minus, ExpressionKind::Number(number)) => {
            ExpressionKind::Number(number.negate()).into()
        }
        (operator, kind) => ExpressionKind::Unary { operator, operand: Box::new(kind.into()) }.into(),
    }
}

/// A chain that begins with no chain of its own kind.
fn logical(or: bool, operands: Vec<Expression>) -> Expression {
    let operator = if or { LogicalOperator::Or } else { LogicalOperator::And };
    let mut chain = Vec::new();
    for (place, operand) in operands.into_iter().enumerate() {
        match operand.kind {
            ExpressionKind::Logical { operator: same, operands } if place == 0 && same == operator => {
                chain.extend(operands);
            }
            kind => chain.push(kind.into()),
        }
    }
    ExpressionKind::Logical { operator, operands: chain }.into()
}

fn constructor(inner: &BoxedStrategy<Expression>) -> BoxedStrategy<Expression> {
    let list = || vec(inner.clone(), 0..4);
    let object_member = (prop_oneof![identifier(), text()], inner.clone())
        .prop_map(|(name, value)| ObjectMember { name, value, span: Span::default() });
    prop_oneof![
        list().prop_map(|elements| ExpressionKind::Array(elements).into()),
        vec(object_member, 0..4).prop_map(|members| ExpressionKind::Object(members).into()),
        (identifier(), any::<bool>(), list()).prop_map(|(name, user_defined, arguments)| {
            ExpressionKind::Call { name, user_defined, arguments }.into()
        }),
        (prop::sample::select(vec!["LEFT", "right", "COUNT", "IS_DEFINED", "Abs"]), list()).prop_map(
            |(name, arguments)| {
                ExpressionKind::Call { name: name.to_owned(), user_defined: false, arguments }.into()
            }
        ),
    ]
    .boxed()
}

fn unary_operator() -> BoxedStrategy<UnaryOperator> {
    use UnaryOperator::{BitNot, Minus, Not, Plus};
    prop::sample::select(vec![Minus, Plus, BitNot, Not]).boxed()
}

fn binary_operator() -> BoxedStrategy<BinaryOperator> {
    use BinaryOperator::{
        Add, BitAnd, BitOr, BitXor, Concatenate, Divide, Equal, Greater, GreaterOrEqual, Less, LessOrEqual,
        Multiply, NotEqual, Remainder, ShiftLeft, ShiftRight, ShiftRightZero, Subtract,
    };
    prop::sample::select(vec![
        Multiply,
        Divide,
        Remainder,
        Add,
        Subtract,
        Concatenate,
        ShiftLeft,
        ShiftRight,
        ShiftRightZero,
        BitAnd,
        BitXor,
        BitOr,
        Equal,
        NotEqual,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual,
    ])
    .boxed()
}

fn subquery_form() -> BoxedStrategy<SubqueryForm> {
    use SubqueryForm::{All, Array, Exists, First, Last, Scalar};
    prop::sample::select(vec![Scalar, Exists, Array, All, First, Last]).boxed()
}

fn query_of(inner: BoxedStrategy<Expression>) -> BoxedStrategy<SelectQuery> {
    (
        select(inner.clone()),
        option::of(from_clause(&inner)),
        option::of(inner.clone()),
        vec(inner.clone(), 0..3),
        option::of(order_by(inner)),
        option::of((count(), count())),
    )
        .prop_map(|(select, from, filter, group_by, order_by, offset_limit)| SelectQuery {
            select,
            from,
            filter,
            group_by,
            order_by,
            offset_limit: offset_limit.map(|(offset, limit)| OffsetLimit {
                offset,
                limit,
                span: Span::default(),
            }),
            span: Span::default(),
        })
        .boxed()
}

fn select(inner: BoxedStrategy<Expression>) -> BoxedStrategy<Select> {
    let alias =
        prop_oneof![4 => name(), 1 => any::<String>().prop_map(|text| Name { text, span: Span::default() })];
    let item = (inner.clone(), option::of(alias)).prop_map(|(expression, alias)| SelectItem {
        expression,
        alias,
        span: Span::default(),
    });
    let projection = prop_oneof![
        Just(SelectForm::Star),
        boxed(inner).prop_map(SelectForm::Value),
        vec(item, 1..4).prop_map(SelectForm::List),
    ];
    (any::<bool>(), option::of(count()), projection)
        .prop_map(|(distinct, top, projection)| Select { distinct, top, projection, span: Span::default() })
        .boxed()
}

fn count() -> BoxedStrategy<Count> {
    prop_oneof![
        any::<u32>().prop_map(|value| Count::Literal { value, span: Span::default() }),
        parameter().prop_map(|name| Count::Parameter { name, span: Span::default() }),
    ]
    .boxed()
}

fn from_clause(inner: &BoxedStrategy<Expression>) -> BoxedStrategy<FromClause> {
    (source(inner), vec(source(inner), 0..3))
        .prop_map(|(first, joins)| FromClause { first, joins, span: Span::default() })
        .boxed()
}

fn source(inner: &BoxedStrategy<Expression>) -> BoxedStrategy<FromSource> {
    // Subqueries of sources are small, or each level would multiply the size of the tree.
    let subquery = || {
        select(inner.clone()).prop_map(|select| {
            let (span, group_by) = (Span::default(), Vec::new());
            let (from, filter, order_by, offset_limit) = (None, None, None, None);
            Box::new(SelectQuery { select, from, filter, group_by, order_by, offset_limit, span })
        })
    };
    prop_oneof![
        3 => (path(), option::of(name())).prop_map(|(path, alias)| FromSourceKind::Path { path, alias }),
        3 => (name(), path())
            .prop_map(|(alias, path)| FromSourceKind::Iterate { alias, collection: Collection::Path(path) }),
        1 => (name(), subquery()).prop_map(|(alias, query)| {
            FromSourceKind::Iterate { alias, collection: Collection::Subquery(query) }
        }),
        1 => (subquery(), option::of(name())).prop_map(|(query, alias)| FromSourceKind::Subquery { query, alias }),
    ]
    .prop_map(|kind| FromSource { kind, span: Span::default() })
    .boxed()
}

fn path() -> BoxedStrategy<Expression> {
    let constant = prop_oneof![
        (0_i64..5).prop_map(|place| ExpressionKind::Number(Number::integer(place))),
        text().prop_map(ExpressionKind::String),
        parameter().prop_map(ExpressionKind::Parameter),
    ];
    let step = prop_oneof![
        identifier().prop_map(|name| (Some(name), ExpressionKind::Null)),
        constant.prop_map(|place| (None, place)),
    ];
    (identifier(), vec(step, 0..3))
        .prop_map(|(root, steps)| {
            steps.into_iter().fold(
                ExpressionKind::Identifier(root).into(),
                |base, (name, place)| match name {
                    Some(name) => member(base, name, false),
                    None => index(base, place.into()),
                },
            )
        })
        .boxed()
}

fn order_by(inner: BoxedStrategy<Expression>) -> BoxedStrategy<OrderBy> {
    let direction =
        prop::sample::select(vec![None, Some(SortDirection::Ascending), Some(SortDirection::Descending)]);
    let item =
        (inner.clone(), direction).prop_map(|(expression, direction)| OrderItem { expression, direction });
    prop_oneof![
        3 => vec(item, 1..3).prop_map(|items| OrderBy::Items { items, span: Span::default() }),
        1 => (identifier(), vec(inner, 0..3)).prop_map(|(name, arguments)| OrderBy::Rank {
            score: ExpressionKind::Call { name, user_defined: false, arguments }.into(),
            span: Span::default(),
        }),
    ]
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, parse, parse_expression, print, print_expression};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn printed_queries_parse_to_the_same_tree(tree in query()) {
            let text = print(&tree);
            let parsed = parse(&text).map_err(|error| TestCaseError::fail(error.render(&text)))?;
            prop_assert_eq!(print(&parsed), text.clone());
            prop_assert_eq!(&parsed, &tree, "{}", text);
            check(&parsed, &text);
        }

        #[test]
        fn printed_expressions_parse_to_the_same_tree(tree in expression()) {
            let text = print_expression(&tree);
            let parsed = parse_expression(&text).map_err(|error| TestCaseError::fail(error.render(&text)))?;
            prop_assert_eq!(&parsed, &tree, "{}", text);
            prop_assert_eq!(parsed.span.of(&text), text.as_str());
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>()) {
            if let Err(error) = parse(&text) {
                prop_assert!(text.get(error.span.range()).is_some());
                error.render(&text);
            }
        }

        #[test]
        fn damaged_queries_are_parsed_or_refused(tree in query(), cut in 0_usize..200, junk in "\\PC{0,3}") {
            let mut text = print(&tree);
            let place = (0..=cut.min(text.len())).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0);
            text.insert_str(place, &junk);
            if let Err(error) = parse(&text) {
                prop_assert!(text.get(error.span.range()).is_some());
                error.render(&text);
            }
        }
    }
}
