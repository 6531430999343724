//! The text of the query language: text -> tokens -> syntax tree -> text.
//!
//! - `parse`: the whole grammar, every node with its place in the text;
//! - `check`: rules that need no container to be judged (what a subquery may hold, where `*` may stand, limits);
//! - `print`: the normalised text that query plans carry, which parses back to the same tree;
//! - `shape`: the text without the values in it, for logs;
//! - `visit`: the direct parts of an expression, so that walks need not list every kind;
//! - `testing` (cargo feature of that name): random trees for property tests.
//!
//! Invariants
//! - No text panics, and time and memory grow linearly with the text, which is at most `TEXT_LENGTH_MAX` characters.
//! - A tree that `parse` returns is at most `HEIGHT_MAX` levels high, so recursion over it is safe; a chain of `AND`
//!   or of `OR` is one level, however long.
//! - `parse(print(tree))` equals `tree`; equality of trees ignores positions.
//!
//! Not here: what names and functions mean, parameter values, grouping rules (`sql-plan`).
#![warn(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, reason = "a test that indexes wrongly fails, which is its job")
)]

pub mod ast;
pub mod check;
mod error;
mod lexer;
mod literal;
mod number;
mod parser;
mod print;
mod shape;
mod span;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;
pub mod visit;

pub use check::check;
pub use error::{SyntaxError, code};
pub use number::Number;
pub use parser::{HEIGHT_MAX, TEXT_LENGTH_MAX, parse, parse_expression};
pub use print::{print, print_expression};
pub use shape::shape;
pub use span::{Span, TextPosition};
pub use token::{is_plain_name, keywords};
