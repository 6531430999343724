//! x
use crate::ScalarFunction;
pub(crate) static FUNCTIONS: &[ScalarFunction] = &[];
