//! The operators of the query language over values.
//!
//! Each operator is a plain function, so that a compiled expression can hold it as a function pointer. Three-valued
//! results come in two forms: `Option<bool>` (none = undefined) for code that goes on deciding, `Value` for the rest.
//! Not here: which operator binds tighter (`sql-syntax`), evaluation of operands and short cuts (`sql-exec`).

mod access;
mod arithmetic;
mod comparison;
mod like;
mod logic;

pub use access::{coalesce, conditional, element, index, member};
pub use arithmetic::{
    add, bit_and, bit_exclusive_or, bit_not, bit_or, concatenate, divide, multiply, negate, plus, remainder,
    shift_left, shift_right, shift_right_unsigned, subtract,
};
pub use comparison::{
    between, equal, equals, greater, greater_or_equal, in_list, less, less_or_equal, not_equal, order,
};
pub use like::{LikePattern, like};
pub use logic::{all_true, and, any_true, not, or, truth, truth_value};
