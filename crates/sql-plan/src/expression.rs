//! Expressions ready to be evaluated: slots instead of aliases, function pointers instead of names.

use crate::plan::QueryPlan;
use astrarium_sql_functions::ScalarFunction;
use astrarium_sql_functions::operators::LikePattern;
pub use astrarium_sql_syntax::ast::SubqueryForm;
use astrarium_sql_syntax::ast::{BinaryOperator, UnaryOperator};
use astrarium_value::Value;
use std::sync::Arc;

/// A place of the frame that holds what an alias stands for.
pub type Slot = usize;

/// One step into a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A property of an object.
    Name(Arc<str>),
    /// An element of an array.
    Position(usize),
}

/// An expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A value that is known.
    Constant(Value),
    /// A path into what a slot holds; without steps the whole of it.
    Path(Slot, Vec<Step>),
    /// A property or element of a computed value, by a constant step.
    Access(Box<Expr>, Step),
    /// A property or element, by a computed index.
    Index(Box<Expr>, Box<Expr>),
    /// A prefix operator.
    Unary(UnaryOperator, Box<Expr>),
    /// An operator between two values.
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// All of these, by three-valued logic.
    And(Vec<Expr>),
    /// Any of these, by three-valued logic.
    Or(Vec<Expr>),
    /// `condition ? then : otherwise`.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `left ?? right`.
    Coalesce(Box<Expr>, Box<Expr>),
    /// Membership in a list.
    In(Box<Expr>, Vec<Expr>),
    /// `low <= value <= high`.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A pattern known when the query is planned.
    Like(Box<Expr>, Arc<LikePattern>),
    /// A pattern that depends on the row.
    LikeComputed(Box<Expr>, Box<Expr>, Option<char>),
    /// A built-in function.
    Call(&'static ScalarFunction, Vec<Expr>, CallSettings),
    /// A user-defined function.
    UserDefined(Arc<str>, Vec<Expr>),
    /// An array of what is defined.
    Array(Vec<Expr>),
    /// An object of what is defined.
    Object(Vec<(Arc<str>, Expr)>),
    /// A subquery as a value.
    Subquery(SubqueryForm, Box<QueryPlan>),
    /// The value of a grouping expression, after grouping.
    GroupKey(usize),
    /// The result of an aggregate, after grouping.
    Aggregate(usize),
}

/// What the container says about the path that a call looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallSettings {
    /// The language of a full-text path.
    pub language: Option<astrarium_sql_functions::full_text::TextLanguage>,
    /// How vectors of a path are compared.
    pub vector: Option<astrarium_sql_functions::VectorDefaults>,
}

impl PartialEq for Expr {
    /// Equal trees; calls by the identity of their function. Subqueries are never equal: nothing needs it.
    fn eq(&self, other: &Expr) -> bool {
        use Expr::{
            Access, Aggregate, And, Array, Between, Binary, Call, Coalesce, Conditional, Constant, GroupKey,
            In, Index, Like, LikeComputed, Object, Or, Path, Unary, UserDefined,
        };
        match (self, other) {
            (Constant(left), Constant(right)) => left == right,
            (Path(left, steps), Path(right, others)) => left == right && steps == others,
            (Access(left, step), Access(right, other)) => step == other && left == right,
            (Index(left, index), Index(right, other)) => left == right && index == other,
            (Unary(operator, left), Unary(other, right)) => operator == other && left == right,
            (Binary(operator, a, b), Binary(other, c, d)) => operator == other && a == c && b == d,
            (And(left), And(right)) | (Or(left), Or(right)) | (Array(left), Array(right)) => left == right,
            (Conditional(one, two, three), Conditional(first, second, third))
            | (Between(one, two, three), Between(first, second, third)) => {
                one == first && two == second && three == third
            }
            (Coalesce(a, b), Coalesce(c, d)) => a == c && b == d,
            (In(value, list), In(other, others)) => value == other && list == others,
            (Like(value, pattern), Like(other, others)) => value == other && Arc::ptr_eq(pattern, others),
            (LikeComputed(a, b, escape), LikeComputed(c, d, other)) => a == c && b == d && escape == other,
            (Call(function, left, _), Call(other, right, _)) => {
                std::ptr::eq(*function, *other) && left == right
            }
            (UserDefined(name, left), UserDefined(other, right)) => name == other && left == right,
            (Object(left), Object(right)) => left == right,
            (GroupKey(left), GroupKey(right)) | (Aggregate(left), Aggregate(right)) => left == right,
            _ => false,
        }
    }
}

impl Expr {
    /// The constant, if it is one.
    pub fn as_constant(&self) -> Option<&Value> {
        match self {
            Expr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The direct parts of an expression; of a subquery none, since it has a life of its own.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Constant(_)
            | Expr::Path(..)
            | Expr::Subquery(..)
            | Expr::GroupKey(_)
            | Expr::Aggregate(_) => Vec::new(),
            Expr::Access(one, _) | Expr::Unary(_, one) | Expr::Like(one, _) => vec![one],
            Expr::Index(a, b)
            | Expr::Binary(_, a, b)
            | Expr::Coalesce(a, b)
            | Expr::LikeComputed(a, b, _) => vec![a, b],
            Expr::Conditional(a, b, c) | Expr::Between(a, b, c) => vec![a, b, c],
            Expr::And(all) | Expr::Or(all) | Expr::Array(all) => all.iter().collect(),
            Expr::Call(_, all, _) | Expr::UserDefined(_, all) => all.iter().collect(),
            Expr::In(one, all) => std::iter::once(&**one).chain(all).collect(),
            Expr::Object(members) => members.iter().map(|(_, value)| value).collect(),
        }
    }

    /// Slots that an expression reads, subqueries included.
    pub fn slots(&self, found: &mut Vec<Slot>) {
        match self {
            Expr::Path(slot, _) => found.push(*slot),
            Expr::Subquery(_, plan) => plan.outer_slots(found),
            _ => self.parts().into_iter().for_each(|part| part.slots(found)),
        }
    }
}
