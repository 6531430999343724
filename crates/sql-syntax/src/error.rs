//! What is wrong with a query text, in the service's words and in ours.
//!
//! `message` is the service's sentence and nothing else, because tests of clients compare it; `detail` adds line, column,
//! what was met and what was expected. Whose fault: always the sender's; nothing can be retried.
//!
//! Not here: the HTTP body (`gateway`).

use std::fmt;

use crate::span::{Span, TextPosition};

/// Longest piece of the query that a message repeats, in characters.
const EXCERPT_LENGTH_MAX: usize = 60;

/// The codes that this crate reports. Those marked unsure have no recorded answer of the service behind the number.
pub mod code {
    /// A token where the grammar allows none of its kind.
    pub const UNEXPECTED_TOKEN: &str = "SC1001";
    /// The text ends too early.
    pub const UNEXPECTED_END: &str = "SC1002";
    /// A character or number that begins no token.
    pub const INVALID_TOKEN: &str = "SC1010";
    /// A string that does not end, or holds a bad escape or a bare control character.
    pub const INVALID_STRING: &str = "SC1012";
    /// `SELECT *` over several sources or over none (unsure of the number).
    pub const STAR_NEEDS_ONE_SOURCE: &str = "SC2040";
    /// `SELECT *` with GROUP BY.
    pub const STAR_WITH_GROUP_BY: &str = "SC2041";
    /// A count after TOP that is no 32-bit integer.
    pub const TOP_COUNT: &str = "SC2060";
    /// A count after LIMIT that is no 32-bit integer.
    pub const LIMIT_COUNT: &str = "SC2061";
    /// A count after OFFSET that is no 32-bit integer.
    pub const OFFSET_COUNT: &str = "SC2062";
    /// TOP and OFFSET LIMIT in one query (unsure of the number).
    pub const TOP_WITH_OFFSET_LIMIT: &str = "SC2063";
    /// ORDER BY in a subquery.
    pub const SUBQUERY_ORDER_BY: &str = "SC2202";
    /// TOP in a subquery.
    pub const SUBQUERY_TOP: &str = "SC2203";
    /// OFFSET LIMIT in a subquery.
    pub const SUBQUERY_OFFSET_LIMIT: &str = "SC2204";
    /// ORDER BY RANK in a subquery.
    pub const SUBQUERY_RANK: &str = "SC2228";
    /// ASC or DESC after ORDER BY RANK.
    pub const RANK_DIRECTION: &str = "SC2225";
    /// More joins than a query may have (unsure of the number).
    pub const TOO_MANY_JOINS: &str = "SC3004";
    /// More calls of user-defined functions than a query may have.
    pub const TOO_MANY_USER_FUNCTIONS: &str = "SC3005";
    /// A text longer than the service takes.
    pub const TEXT_TOO_LONG: &str = "SC3020";
}

/// A query text that is refused: where, with which code of the service, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The offending piece of the text; empty and at the end when the text stops too early.
    pub span: Span,
    /// The service's code, such as `SC1001`.
    pub code: &'static str,
    /// The service's sentence for this code.
    pub message: String,
    /// Line, column, and what was met or expected there.
    pub detail: String,
}

impl SyntaxError {
    /// An error at `span` of `text`; `explanation` is what follows the place in `detail` and may be empty.
    pub fn new(text: &str, span: Span, code: &'static str, message: String, explanation: &str) -> Self {
        let TextPosition { line, column } = span.position(text);
        let detail = if explanation.is_empty() {
            format!("line {line}, column {column}")
        } else {
            format!("line {line}, column {column}: {explanation}")
        };
        Self { span, code, message, detail }
    }

    /// Line and column of the place in the text that was parsed.
    pub fn position(&self, text: &str) -> TextPosition {
        self.span.position(text)
    }

    /// The whole story for a terminal: message, place, the line, and a caret under the place.
    pub fn render(&self, text: &str) -> String {
        let column = self.position(text).column - 1;
        let before = text.get(..self.span.start as usize).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.get(line_start..).unwrap_or("").lines().next().unwrap_or("");
        // A window of the line, so that one line of half a megabyte stays readable.
        let skipped = column.saturating_sub(EXCERPT_LENGTH_MAX);
        let excerpt: String = line.chars().skip(skipped).take(EXCERPT_LENGTH_MAX * 2).collect();
        let room = excerpt.chars().count().saturating_sub(column - skipped).max(1);
        let carets = "^".repeat(self.span.of(text).chars().count().clamp(1, room));
        let Self { code, message, detail, .. } = self;
        format!("{code}: {message}\n{detail}\n  {excerpt}\n  {}{carets}", " ".repeat(column - skipped))
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.code, self.message, self.detail)
    }
}

impl std::error::Error for SyntaxError {}

/// A piece of the query short enough to be repeated in a message.
pub(crate) fn excerpt(piece: &str) -> String {
    match piece.char_indices().nth(EXCERPT_LENGTH_MAX) {
        Some((end, _)) => format!("{}...", piece.get(..end).unwrap_or("")),
        None => piece.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendering_points_at_the_place() {
        let text = "SELECT *\nFRM c";
        let error =
            SyntaxError::new(text, Span::new(9, 12), code::UNEXPECTED_TOKEN, "No.".to_owned(), "met 'FRM'");
        assert_eq!(error.render(text), "SC1001: No.\nline 2, column 1: met 'FRM'\n  FRM c\n  ^^^");
        assert_eq!(error.to_string(), "SC1001: No. (line 2, column 1: met 'FRM')");
    }

    #[test]
    fn long_lines_and_pieces_are_cut() {
        let text = format!("{}!{}", "a".repeat(5000), "b".repeat(5000));
        let error = SyntaxError::new(&text, Span::new(5000, 10_001), code::INVALID_TOKEN, String::new(), "");
        assert!(error.render(&text).len() < 400);
        assert_eq!(excerpt(&text).chars().count(), EXCERPT_LENGTH_MAX + 3);
    }
}
