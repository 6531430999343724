//! The shape of a query: its text without the values in it, for logs.
//!
//! In: any text, right or wrong. Out: the same tokens on one line, `?` for each string and number, `...` for the rest of a
//! list of them; parameters keep their names. Names of properties stay, also in brackets.
//! Invariants
//! - No string and no number of the text is in its shape, and nothing that follows a string without an end.
//! - The shape is bounded by `length_max`; time grows linearly with the text.

use crate::lexer::Lexer;
use crate::token::{Symbol, TokenKind};

/// What stands for a value, for the rest of a list of values, and for what is left out.
const VALUE: &str = "?";
const MORE: &str = "...";

/// The shape of a query text, at most about `length_max` bytes.
pub fn shape(text: &str, length_max: usize) -> String {
    let mut lexer = Lexer::new(text);
    let mut shape = String::new();
    let mut before: [Option<TokenKind>; 2] = [None, None];
    let mut end = 0;
    while shape.len() < length_max {
        let token = lexer.next();
        let blank = if token.span.range().start > end && !shape.is_empty() { " " } else { "" };
        end = token.span.range().end;
        match token.kind {
            TokenKind::End => return shape,
            TokenKind::Invalid(_) => break,
            TokenKind::String { .. } | TokenKind::Number => {
                if is_index(before) {
                    shape.push_str(token.span.of(text));
                } else if !goes_on(&mut shape) {
                    shape.push_str(blank);
                    shape.push_str(VALUE);
                }
            }
            _ => {
                shape.push_str(blank);
                shape.push_str(token.span.of(text));
            }
        }
        before = [before[1], Some(token.kind)];
    }
    shape.truncate(shape.floor_char_boundary(length_max));
    shape.push_str(MORE);
    shape
}

/// Whether the next token names a property or an element: `[` after something that has them.
fn is_index(before: [Option<TokenKind>; 2]) -> bool {
    use Symbol::{CloseBracket, CloseParenthesis, OpenBracket};
    let owner =
        matches!(before[0], Some(TokenKind::Identifier | TokenKind::Symbol(CloseBracket | CloseParenthesis)));
    owner && before[1] == Some(TokenKind::Symbol(OpenBracket))
}

/// Takes a value into the list of values that the shape ends with, if it ends with one.
fn goes_on(shape: &mut String) -> bool {
    let Some(list) = shape.strip_suffix(',') else { return false };
    if list.ends_with(MORE) {
        shape.truncate(list.len());
        return true;
    }
    if list.ends_with(VALUE) {
        shape.truncate(list.len());
        shape.push_str(", ");
        shape.push_str(MORE);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(shape(text, 200), expected);
    }

    #[test]
    fn values_are_left_out() {
        check("SELECT * FROM c", "SELECT * FROM c");
        check(
            "SELECT *\n  FROM c -- who\nWHERE c.name='Ada'AND c.n>=1.5e3",
            "SELECT * FROM c WHERE c.name=?AND c.n>=?",
        );
        check(
            "SELECT c[\"first name\"], c.tags[0], f(c)['x'] FROM c",
            "SELECT c[\"first name\"], c.tags[0], f(c)['x'] FROM c",
        );
        check(
            "SELECT * FROM c WHERE c.id IN ('1', '2', '3') AND c.x = @x",
            "SELECT * FROM c WHERE c.id IN (?, ...) AND c.x = @x",
        );
        check("SELECT VALUE [1,2,3], {'a': 'b'}", "SELECT VALUE [?, ...], {?: ?}");
        check("SELECT ['x'] FROM c IN d WHERE true", "SELECT [?] FROM c IN d WHERE true");
        check("SELECT * FROM c WHERE c.x = 'secret", "SELECT * FROM c WHERE c.x =...");
        check("SELECT 'a\\q secret'", "SELECT...");
        check("", "");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shape("SELECT abcdef FROM c", 10), "SELECT abc...");
        let list = "1,".repeat(100_000);
        assert_eq!(shape(&format!("SELECT [{list}1]"), 100), "SELECT [?, ...]");
    }

    proptest! {
        #[test]
        fn secrets_stay_out(before in "[a-z @.,=(]{0,20}", secret in "[0-9]{6,12}", after in "[a-z '\".,=)]{0,20}") {
            for literal in [format!("'{secret}'"), format!("\"{secret}\""), secret.clone()] {
                let text = format!("{before} {literal} {after}");
                prop_assert!(!shape(&text, 1_000).contains(&secret), "{}", shape(&text, 1_000));
            }
        }

        #[test]
        fn total(text in ".*", length_max in 0..50_usize) {
            prop_assert!(shape(&text, length_max).len() <= length_max + MORE.len() + text.len());
        }
    }
}
