//! Why a query that is good syntax is refused.

use astrarium_sql_syntax::Span;

/// The service's sentence for a row with a number that JSON has no form for; its code is 4001.
pub const NOT_JSON: &str = "The response content contains a numeric value that cannot be represented in JSON (e.g. Infinity and NaN).";

/// A refusal with its place. Always the author's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// Where in the text.
    pub span: Span,
    /// The service's code, such as `SC2001`; empty where it gives none.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// What to write instead, where that is known; empty otherwise.
    pub instead: String,
}

impl PlanError {
    pub(crate) fn new(span: Span, code: &'static str, message: impl Into<String>) -> PlanError {
        PlanError { span, code, message: message.into(), instead: String::new() }
    }

    /// The same with what to write instead.
    pub(crate) fn instead(self, instead: impl Into<String>) -> PlanError {
        PlanError { instead: instead.into(), ..self }
    }
}
