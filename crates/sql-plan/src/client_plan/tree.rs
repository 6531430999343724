//! Building blocks of rewritten queries: short ways to make syntax, and questions about it.

use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_syntax::ast::{
    Collection, Count, Expression, ExpressionKind, FromClause, FromSource, FromSourceKind, LogicalOperator,
    Name, ObjectMember, Select, SelectForm, SelectItem, SelectQuery,
};
use astrarium_sql_syntax::visit::TreePart;
use astrarium_sql_syntax::{Number, Span};
use astrarium_value::Value;

/// A name that has no place in the text.
fn name(text: &str) -> Name {
    Name { text: text.to_owned(), span: Span::default() }
}

/// A row count in a rewritten text. What does not fit the grammar is cut: nobody has so many rows.
pub(super) fn count(value: u64) -> Count {
    Count::Literal { value: u32::try_from(value).unwrap_or(u32::MAX), span: Span::default() }
}

/// Text that is printed as it is.
pub(super) fn raw(text: impl Into<String>) -> Expression {
    ExpressionKind::Raw(text.into()).into()
}

/// A name of a source.
pub(super) fn identifier(name: &str) -> Expression {
    ExpressionKind::Identifier(name.to_owned()).into()
}

/// `base.name`.
pub(super) fn member(base: Expression, name: &str) -> Expression {
    ExpressionKind::Member { base: Box::new(base), name: name.to_owned(), bracketed: false }.into()
}

/// `name(arguments)`.
pub(super) fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    ExpressionKind::Call { name: name.to_owned(), user_defined: false, arguments }.into()
}

/// `[elements]`.
pub(super) fn array(elements: Vec<Expression>) -> Expression {
    ExpressionKind::Array(elements).into()
}

/// `{"name": value, ..}`.
pub(super) fn object(members: impl IntoIterator<Item = (String, Expression)>) -> Expression {
    let member = |(name, value)| ObjectMember { name, value, span: Span::default() };
    ExpressionKind::Object(members.into_iter().map(member).collect()).into()
}

/// `{"item": value}`, in which an undefined value can be sent.
pub(super) fn item(value: Expression) -> Expression {
    object([("item".to_owned(), value)])
}

/// `left AND right`, nested, as the service prints it.
pub(super) fn and(left: Expression, right: Expression) -> Expression {
    ExpressionKind::Logical { operator: LogicalOperator::And, operands: vec![left, right] }.into()
}

/// `left ?? right`.
pub(super) fn coalesce(left: Expression, right: Expression) -> Expression {
    ExpressionKind::Coalesce { left: Box::new(left), right: Box::new(right) }.into()
}

/// `expression AS alias` of a SELECT list.
pub(super) fn selected(expression: Expression, alias: &str) -> SelectItem {
    SelectItem { expression, alias: Some(name(alias)), span: Span::default() }
}

/// A SELECT clause of a list.
pub(super) fn select_list(top: Option<u64>, items: Vec<SelectItem>) -> Select {
    Select {
        distinct: false,
        top: top.map(count),
        projection: SelectForm::List(items),
        span: Span::default(),
    }
}

/// A value as a literal.
pub(super) fn literal(value: &Value) -> Expression {
    let kind = match value {
        Value::Undefined => ExpressionKind::Undefined,
        Value::Null => ExpressionKind::Null,
        Value::Bool(value) => ExpressionKind::Boolean(*value),
        Value::Number(number) => ExpressionKind::Number(Number::double(*number)),
        Value::String(text) => ExpressionKind::String(text.to_string()),
        Value::Array(items) => return array(items.iter().map(literal).collect()),
        Value::Object(members) => {
            return object(members.iter().map(|(name, value)| (name.to_owned(), literal(value))));
        }
    };
    kind.into()
}

/// The aggregate that an expression is, with its name as written and its argument.
pub(super) fn as_aggregate(expression: &Expression) -> Option<(AggregateFunction, &str, &Expression)> {
    let ExpressionKind::Call { name, user_defined: false, arguments } = &expression.kind else { return None };
    let function = AggregateFunction::find(name)?;
    arguments.first().map(|argument| (function, name.as_str(), argument))
}

/// Whether an expression has an aggregate outside of subqueries.
pub(super) fn has_aggregate(expression: &Expression) -> bool {
    let mut found = as_aggregate(expression).is_some();
    expression.parts(&mut |part| {
        if let TreePart::Expression(part) = part {
            found = found || has_aggregate(part);
        }
    });
    found
}

/// A FROM clause in which the whole document has a name.
pub(super) struct NamedDocument {
    /// The clause, changed where it had no such name.
    pub(super) from: FromClause,
    /// The name of the document.
    pub(super) document: String,
    /// The name of the first source, what `SELECT *` gives.
    pub(super) row: String,
}

/// Gives the document a name. `FROM x IN c.items` names only the items; it becomes `FROM c JOIN x IN c.items`, which has
/// the same rows. None for sources that nothing can refer to.
pub(super) fn name_document(from: &FromClause) -> Option<NamedDocument> {
    let row = source_name(&from.first)?;
    let (path, inner): (_, fn(Name, Expression) -> FromSourceKind) = match &from.first.kind {
        FromSourceKind::Path { path, .. } if !matches!(path.kind, ExpressionKind::Identifier(_)) => {
            (path, |alias, path| FromSourceKind::Subquery {
                query: Box::new(value_of(path)),
                alias: Some(alias),
            })
        }
        FromSourceKind::Iterate { collection: Collection::Path(path), .. } => {
            (path, |alias, path| FromSourceKind::Iterate { alias, collection: Collection::Path(path) })
        }
        _ => return Some(NamedDocument { from: from.clone(), document: row.clone(), row }),
    };
    let taken: Vec<String> =
        std::iter::once(&from.first).chain(&from.joins).filter_map(source_name).collect();
    let document = free_name(base_name(path), &taken);
    let source = |kind| FromSource { kind, span: Span::default() };
    let first = source(FromSourceKind::Path { path: identifier(&document), alias: None });
    let join = source(inner(name(&row), with_base(path, &document)));
    let joins = std::iter::once(join).chain(from.joins.iter().cloned()).collect();
    Some(NamedDocument { from: FromClause { first, joins, span: from.span }, document, row })
}

/// `(SELECT VALUE expression)` without sources of its own.
fn value_of(expression: Expression) -> SelectQuery {
    let projection = SelectForm::Value(Box::new(expression));
    SelectQuery {
        select: Select { distinct: false, top: None, projection, span: Span::default() },
        from: None,
        filter: None,
        group_by: Vec::new(),
        order_by: None,
        offset_limit: None,
        span: Span::default(),
    }
}

/// The name by which expressions refer to a source.
pub(super) fn source_name(source: &FromSource) -> Option<String> {
    match &source.kind {
        FromSourceKind::Iterate { alias, .. } => Some(alias.text.clone()),
        FromSourceKind::Subquery { alias, .. } => alias.as_ref().map(|alias| alias.text.clone()),
        FromSourceKind::Path { alias: Some(alias), .. } => Some(alias.text.clone()),
        FromSourceKind::Path { path, alias: None } => match &path.kind {
            ExpressionKind::Identifier(name) | ExpressionKind::Member { name, .. } => Some(name.clone()),
            _ => None,
        },
    }
}

/// The name that a path begins with; empty for what is no path.
pub(super) fn base_name(path: &Expression) -> &str {
    match &path.kind {
        ExpressionKind::Identifier(name) => name,
        ExpressionKind::Member { base, .. } | ExpressionKind::Index { base, .. } => base_name(base),
        _ => "",
    }
}

/// The path with another beginning.
fn with_base(path: &Expression, name: &str) -> Expression {
    match &path.kind {
        ExpressionKind::Member { base, name: member, bracketed } => ExpressionKind::Member {
            base: Box::new(with_base(base, name)),
            name: member.clone(),
            bracketed: *bracketed,
        }
        .into(),
        ExpressionKind::Index { base, index } => {
            ExpressionKind::Index { base: Box::new(with_base(base, name)), index: index.clone() }.into()
        }
        _ => identifier(name),
    }
}

/// The wanted name, or `root` with as many underscores as it takes.
fn free_name(wanted: &str, taken: &[String]) -> String {
    let is_free = |name: &str| taken.iter().all(|taken| taken != name);
    if is_free(wanted) {
        return wanted.to_owned();
    }
    let mut free = "root".to_owned();
    while !is_free(&free) {
        free.push('_');
    }
    free
}
