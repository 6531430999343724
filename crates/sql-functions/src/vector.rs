//! x
use crate::ScalarFunction;
/// D.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DistanceFunction {
    /// a
    #[default]
    Cosine,
}
/// D.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DataType {
    /// a
    #[default]
    Float32,
}
pub(crate) static FUNCTIONS: &[ScalarFunction] = &[];
