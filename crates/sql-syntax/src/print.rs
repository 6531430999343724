//! From syntax tree to the normalised text that query plans carry.
//!
//! Clauses stand on lines of their own, subqueries are indented; every operator is wrapped in parentheses; strings and
//! member names are double-quoted; names, parameters and function names stay as written; a direction is printed only
//! if the text had one.
//!
//! Invariants
//! - The text parses to an equal tree, unless the tree holds `Raw` or breaks an invariant of `ast`.
//! - The length is linear in the size of the tree: indentation stops growing at `INDENTATION_MAX` levels, and a chain of
//!   more than `NESTED_CHAIN_MAX` operands is printed flat. Shorter ones are printed pair by pair, as the service does.

use std::fmt::Write;

use crate::ast::{
    Collection, Count, Expression, ExpressionKind, FromClause, FromSource, FromSourceKind, LogicalOperator,
    ObjectMember, OrderBy, SelectForm, SelectItem, SelectQuery, SortDirection, SubqueryForm, UnaryOperator,
};
use crate::literal::write_string;
use crate::token::{is_alias_name, is_plain_name};

/// Deepest level that moves lines further to the right.
const INDENTATION_MAX: usize = 16;

/// Longest chain that is printed as nested pairs. Together with the bound on the height of trees this bounds the
/// parentheses inside one another, so that the parser accepts every printed tree.
const NESTED_CHAIN_MAX: usize = 64;

/// The normalised text of a query.
pub fn print(query: &SelectQuery) -> String {
    let mut printer = Printer { output: String::new(), indentation: 0 };
    printer.query(query);
    printer.output
}

/// The normalised text of an expression.
pub fn print_expression(expression: &Expression) -> String {
    let mut printer = Printer { output: String::new(), indentation: 0 };
    printer.expression(expression);
    printer.output
}

struct Printer {
    output: String,
    indentation: usize,
}

impl Printer {
    fn text(&mut self, text: &str) {
        self.output.push_str(text);
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        write!(self.output, "{value}").expect("writing to a string cannot fail");
    }

    fn new_line(&mut self) {
        self.output.push('\n');
        for _ in 0..self.indentation.min(INDENTATION_MAX) {
            self.output.push_str("    ");
        }
    }

    /// A clause on its own line, beginning with its keyword.
    fn clause(&mut self, keyword: &str) {
        self.new_line();
        self.text(keyword);
        self.text(" ");
    }

    fn separated<T>(&mut self, items: &[T], print: impl Fn(&mut Self, &T)) {
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.text(", ");
            }
            print(self, item);
        }
    }

    fn list(&mut self, expressions: &[Expression]) {
        self.separated(expressions, Self::expression);
    }

    fn query(&mut self, query: &SelectQuery) {
        self.text(if query.select.distinct { "SELECT DISTINCT " } else { "SELECT " });
        if let Some(count) = &query.select.top {
            self.text("TOP ");
            self.count(count);
            self.text(" ");
        }
        match &query.select.projection {
            SelectForm::Star => self.text("*"),
            SelectForm::Value(value) => {
                self.text("VALUE ");
                self.expression(value);
            }
            SelectForm::List(items) => self.separated(items, Self::select_item),
        }
        if let Some(from) = &query.from {
            self.sources(from);
        }
        if let Some(filter) = &query.filter {
            self.clause("WHERE");
            self.expression(filter);
        }
        if !query.group_by.is_empty() {
            self.clause("GROUP BY");
            self.list(&query.group_by);
        }
        if let Some(order_by) = &query.order_by {
            self.order_by(order_by);
        }
        if let Some(clause) = &query.offset_limit {
            self.clause("OFFSET");
            self.count(&clause.offset);
            self.text(" LIMIT ");
            self.count(&clause.limit);
        }
    }

    fn select_item(&mut self, item: &SelectItem) {
        self.expression(&item.expression);
        self.alias(item.alias.as_ref());
    }

    fn alias(&mut self, alias: Option<&crate::ast::Name>) {
        if let Some(name) = alias {
            self.text(" AS ");
            if is_alias_name(&name.text) {
                self.text(&name.text);
            } else {
                write_string(&mut self.output, &name.text);
            }
        }
    }

    fn count(&mut self, count: &Count) {
        match count {
            Count::Literal { value, .. } => self.display(value),
            Count::Parameter { name, .. } => self.text(name),
        }
    }

    fn sources(&mut self, from: &FromClause) {
        self.clause("FROM");
        self.source(&from.first);
        for source in &from.joins {
            self.clause("JOIN");
            self.source(source);
        }
    }

    fn source(&mut self, source: &FromSource) {
        match &source.kind {
            FromSourceKind::Path { path, alias } => {
                self.expression(path);
                self.alias(alias.as_ref());
            }
            FromSourceKind::Iterate { alias, collection } => {
                self.text(&alias.text);
                self.text(" IN ");
                match collection {
                    Collection::Path(path) => self.expression(path),
                    Collection::Subquery(query) => self.subquery(query),
                }
            }
            FromSourceKind::Subquery { query, alias } => {
                self.subquery(query);
                self.alias(alias.as_ref());
            }
        }
    }

    fn subquery(&mut self, query: &SelectQuery) {
        self.text("(");
        self.indentation += 1;
        self.new_line();
        self.query(query);
        self.indentation -= 1;
        self.new_line();
        self.text(")");
    }

    fn order_by(&mut self, order_by: &OrderBy) {
        self.clause("ORDER BY");
        match order_by {
            OrderBy::Items { items, .. } => self.separated(items, |printer, item| {
                printer.expression(&item.expression);
                match item.direction {
                    Some(SortDirection::Ascending) => printer.text(" ASC"),
                    Some(SortDirection::Descending) => printer.text(" DESC"),
                    None => {}
                }
            }),
            OrderBy::Rank { score, .. } => {
                self.text("RANK ");
                self.expression(score);
            }
        }
    }

    fn expression(&mut self, expression: &Expression) {
        use ExpressionKind as Kind;
        match &expression.kind {
            Kind::Undefined => self.text("undefined"),
            Kind::Null => self.text("null"),
            Kind::Boolean(value) => self.display(value),
            Kind::Number(number) => self.display(number),
            Kind::String(value) => write_string(&mut self.output, value),
            Kind::Parameter(text) | Kind::Identifier(text) | Kind::Raw(text) => self.text(text),
            Kind::Member { base, name, bracketed } => self.member(base, name, *bracketed),
            Kind::Index { base, index } => {
                self.tight(base);
                self.text("[");
                self.expression(index);
                self.text("]");
            }
            Kind::Call { name, user_defined, arguments } => {
                self.text(if *user_defined { "udf." } else { "" });
                self.text(name);
                self.text("(");
                self.list(arguments);
                self.text(")");
            }
            Kind::Array(elements) => {
                self.text("[");
                self.list(elements);
                self.text("]");
            }
            Kind::Object(members) => {
                self.text("{");
                self.separated(members, Self::object_member);
                self.text("}");
            }
            Kind::Subquery { form, query } => {
                self.text(subquery_word(*form));
                self.subquery(query);
            }
            Kind::Logical { operator, operands } => self.logical(*operator, operands),
            operation => {
                self.text("(");
                self.operation(operation);
                self.text(")");
            }
        }
    }

    /// The inside of the parentheses of an operator.
    fn operation(&mut self, kind: &ExpressionKind) {
        use ExpressionKind as Kind;
        match kind {
            Kind::Unary { operator, operand } => {
                self.text(match operator {
                    UnaryOperator::Minus => "-",
                    UnaryOperator::Plus => "+",
                    UnaryOperator::BitNot => "~",
                    UnaryOperator::Not => "NOT ",
                });
                // A minus sign before a number would become part of the number.
                if *operator == UnaryOperator::Minus { self.tight(operand) } else { self.expression(operand) }
            }
            Kind::Binary { operator, left, right } => self.pair(left, operator.symbol(), right),
            Kind::Coalesce { left, right } => self.pair(left, "??", right),
            Kind::Conditional { condition, then, otherwise } => {
                self.pair(condition, "?", then);
                self.text(" : ");
                self.expression(otherwise);
            }
            Kind::In { value, list, negated } => {
                self.expression(value);
                self.text(if *negated { " NOT IN (" } else { " IN (" });
                self.list(list);
                self.text(")");
            }
            Kind::Between { value, low, high, negated } => {
                self.pair(value, if *negated { "NOT BETWEEN" } else { "BETWEEN" }, low);
                self.text(" AND ");
                self.expression(high);
            }
            Kind::Like { value, pattern, escape, negated } => {
                self.pair(value, if *negated { "NOT LIKE" } else { "LIKE" }, pattern);
                if let Some(escape) = escape {
                    self.text(" ESCAPE ");
                    write_string(&mut self.output, escape.encode_utf8(&mut [0; 4]));
                }
            }
            _ => unreachable!("`expression` prints every other kind"),
        }
    }

    fn pair(&mut self, left: &Expression, operator: &str, right: &Expression) {
        self.expression(left);
        self.text(" ");
        self.text(operator);
        self.text(" ");
        self.expression(right);
    }

    fn logical(&mut self, operator: LogicalOperator, operands: &[Expression]) {
        let word = match operator {
            LogicalOperator::And => " AND ",
            LogicalOperator::Or => " OR ",
        };
        let nested = operands.len() <= NESTED_CHAIN_MAX;
        let pairs = if nested { operands.len().saturating_sub(1) } else { 1 };
        self.output.extend(std::iter::repeat_n('(', pairs));
        for (place, operand) in operands.iter().enumerate() {
            if place > 0 {
                self.text(word);
            }
            self.expression(operand);
            if nested && place > 0 {
                self.text(")");
            }
        }
        if !nested {
            self.text(")");
        }
    }

    /// An expression right after a sign or right before a dot or bracket, where a bare number would be misread.
    fn tight(&mut self, expression: &Expression) {
        if matches!(expression.kind, ExpressionKind::Number(_)) {
            self.text("(");
            self.expression(expression);
            self.text(")");
        } else {
            self.expression(expression);
        }
    }

    fn member(&mut self, base: &Expression, name: &str, bracketed: bool) {
        self.tight(base);
        if bracketed || !is_plain_name(name) {
            self.text("[");
            write_string(&mut self.output, name);
            self.text("]");
        } else {
            self.text(".");
            self.text(name);
        }
    }

    fn object_member(&mut self, member: &ObjectMember) {
        write_string(&mut self.output, &member.name);
        self.text(": ");
        self.expression(&member.value);
    }
}

/// What precedes the parenthesis of a subquery.
fn subquery_word(form: SubqueryForm) -> &'static str {
    match form {
        SubqueryForm::Scalar => "",
        SubqueryForm::Exists => "EXISTS",
        SubqueryForm::Array => "ARRAY",
        SubqueryForm::All => "ALL",
        SubqueryForm::First => "FIRST",
        SubqueryForm::Last => "LAST",
    }
}
