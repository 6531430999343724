//! The direct parts of expressions and queries, for walks that treat most kinds alike.
//!
//! `parts` calls back once per part, in the order of the text, and does not go deeper: the caller decides whether to
//! recurse, which is safe because trees are at most `HEIGHT_MAX` levels high.

use crate::ast::{
    Collection, Expression, ExpressionKind, FromSource, FromSourceKind, OrderBy, SelectForm, SelectQuery,
};

/// A part of a tree.
#[derive(Debug, Clone, Copy)]
pub enum TreePart<'tree> {
    /// A scalar expression.
    Expression(&'tree Expression),
    /// A subquery, as a value or as a source.
    Subquery(&'tree SelectQuery),
}

impl Expression {
    /// Calls `visit` with each direct part.
    pub fn parts<'tree>(&'tree self, visit: &mut dyn FnMut(TreePart<'tree>)) {
        use ExpressionKind::{
            Array, Between, Binary, Boolean, Call, Coalesce, Conditional, Identifier, In, Index, Like,
            Logical, Member, Null, Number, Object, Parameter, Raw, String, Subquery, Unary, Undefined,
        };
        let mut each = |expression: &'tree Expression| visit(TreePart::Expression(expression));
        match &self.kind {
            Undefined | Null | Boolean(_) | Number(_) | String(_) | Parameter(_) | Identifier(_) | Raw(_) => {
            }
            Member { base, .. } => each(base),
            Unary { operand, .. } => each(operand),
            Index { base: left, index: right }
            | Binary { left, right, .. }
            | Coalesce { left, right }
            | Like { value: left, pattern: right, .. } => {
                each(left);
                each(right);
            }
            Conditional { condition: first, then: second, otherwise: third }
            | Between { value: first, low: second, high: third, .. } => {
                each(first);
                each(second);
                each(third);
            }
            Logical { operands: list, .. } | Call { arguments: list, .. } | Array(list) => {
                list.iter().for_each(each);
            }
            In { value, list, .. } => {
                each(value);
                list.iter().for_each(each);
            }
            Object(members) => members.iter().for_each(|member| each(&member.value)),
            Subquery { query, .. } => visit(TreePart::Subquery(query)),
        }
    }
}

impl SelectQuery {
    /// Calls `visit` with each direct part, sources included.
    pub fn parts<'tree>(&'tree self, visit: &mut dyn FnMut(TreePart<'tree>)) {
        match &self.select.projection {
            SelectForm::Star => {}
            SelectForm::Value(value) => visit(TreePart::Expression(value)),
            SelectForm::List(items) => {
                for item in items {
                    visit(TreePart::Expression(&item.expression));
                }
            }
        }
        if let Some(from) = &self.from {
            std::iter::once(&from.first).chain(&from.joins).for_each(|source| visit(source.part()));
        }
        self.filter.iter().chain(&self.group_by).for_each(|part| visit(TreePart::Expression(part)));
        match &self.order_by {
            Some(OrderBy::Items { items, .. }) => {
                for item in items {
                    visit(TreePart::Expression(&item.expression));
                }
            }
            Some(OrderBy::Rank { score, .. }) => visit(TreePart::Expression(score)),
            None => {}
        }
    }
}

impl FromSource {
    /// The path or subquery that the source reads.
    pub fn part(&self) -> TreePart<'_> {
        match &self.kind {
            FromSourceKind::Path { path, .. }
            | FromSourceKind::Iterate { collection: Collection::Path(path), .. } => {
                TreePart::Expression(path)
            }
            FromSourceKind::Subquery { query, .. }
            | FromSourceKind::Iterate { collection: Collection::Subquery(query), .. } => {
                TreePart::Subquery(query)
            }
        }
    }
}
