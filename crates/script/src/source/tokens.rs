//! The words and marks of a JavaScript source, as far as finding functions needs them.
//!
//! Strings, templates, patterns, numbers and comments are skipped whole. A template's inner expressions are part of it.
//! Whether a slash starts a pattern is decided from the token before it, which is right for all but contrived sources.

/// One piece of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceToken<'a> {
    /// An identifier or keyword.
    Word(&'a str),
    /// A string, template, pattern or number.
    Text,
    /// `=>`.
    Arrow,
    /// Any other character; of operators each character is one.
    Mark(u8),
}

/// The tokens of a source, each with the offset where it ends.
pub(super) fn tokens(source: &str) -> Vec<(SourceToken<'_>, usize)> {
    let bytes = source.as_bytes();
    let mut found: Vec<(SourceToken<'_>, usize)> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let (token, end) = match (byte, next) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => (None, at + 1),
            (b'/', Some(b'/')) => (None, line_end(bytes, at)),
            (b'/', Some(b'*')) => (None, comment_end(bytes, at + 2)),
            (b'/', _) if pattern_may_start(&found) => (Some(SourceToken::Text), pattern_end(bytes, at + 1)),
            (b'"' | b'\'', _) => (Some(SourceToken::Text), string_end(bytes, at + 1, byte)),
            (b'`', _) => (Some(SourceToken::Text), template_end(bytes, at + 1)),
            (b'=', Some(b'>')) => (Some(SourceToken::Arrow), at + 2),
            (b'0'..=b'9', _) => (Some(SourceToken::Text), word_end(bytes, at)),
            _ if is_word(byte) => {
                let end = word_end(bytes, at);
                (Some(SourceToken::Word(&source[at..end])), end)
            }
            _ => (Some(SourceToken::Mark(byte)), at + 1),
        };
        found.extend(token.map(|token| (token, end)));
        at = end;
    }
    found
}

/// Everything outside ASCII is taken for a letter, so that no cut falls inside a character.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| is_word(**byte)).count()
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| **byte != b'\n').count()
}

fn comment_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.windows(2).position(|pair| pair == b"*/").map_or(bytes.len(), |offset| from + offset + 2)
}

fn string_end(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return at,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Braces inside `${ }` are counted; a backtick inside one ends the template too early only if it is itself unbalanced.
fn template_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut depth = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                depth += 1;
                at += 1;
            }
            b'{' if depth > 0 => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'`' if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn pattern_may_start(found: &[(SourceToken<'_>, usize)]) -> bool {
    match found.last() {
        None => true,
        Some((SourceToken::Word(word), _)) => {
            matches!(
                *word,
                "return" | "typeof" | "case" | "in" | "of" | "delete" | "void" | "throw" | "await"
            )
        }
        Some((SourceToken::Text | SourceToken::Mark(b')' | b']' | b'}'), _)) => false,
        Some((SourceToken::Arrow | SourceToken::Mark(_), _)) => true,
    }
}

fn pattern_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    let mut in_class = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return at + 1,
            // Not a pattern after all: patterns end on their line.
            b'\n' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(source: &str, expected: &[SourceToken<'_>]) {
        let found: Vec<_> = tokens(source).into_iter().map(|(token, _)| token).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn words_and_marks_are_told_from_texts() {
        use SourceToken::{Arrow, Mark, Text, Word};
        check("a = 'b\\'c' // d", &[Word("a"), Mark(b'='), Text]);
        check(
            "x => /a[/]b/.test(x)",
            &[Word("x"), Arrow, Text, Mark(b'.'), Word("test"), Mark(b'('), Word("x"), Mark(b')')],
        );
        check("a / b / c", &[Word("a"), Mark(b'/'), Word("b"), Mark(b'/'), Word("c")]);
        check("`a${ {b: '}'} }c`;", &[Text, Mark(b';')]);
        check("/* a", &[]);
        check("\"a\nb", &[Text, Word("b")]);
        check("größe", &[Word("größe")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(source in "[ -~\n\\\\`'\"/*${}()äß]{0,200}") {
            let mut last = 0;
            for (_, end) in tokens(&source) {
                prop_assert!(end > last && end <= source.len() && source.is_char_boundary(end));
                last = end;
            }
        }
    }
}
