//! x
use crate::ScalarFunction;
/// D.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Language {
    /// a
    #[default]
    English,
}
pub(crate) static FUNCTIONS: &[ScalarFunction] = &[];
