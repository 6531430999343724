//! Where statements begin and end.
//!
//! A command is one line, longer only while a bracket of its JSON is open. SQL ends with `;` or an empty line, outside quotes, brackets and comments; at the prompt also
//! with a first line that is a whole query, or one that no further line can mend. A statement that goes on there over several lines ends with `;`, with an empty line
//! or with `.cancel`, whatever is open: whoever forgot a quote must get out.

use astrarium_sql_syntax::parse;

/// What the text so far leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct OpenEnds {
    /// What begins the string or comment that does not end.
    quote: Option<&'static str>,
    /// The brackets that are open, without those that were closed too often.
    brackets: Vec<&'static str>,
    depth: i32,
    /// Where the first `;` outside of everything is.
    terminator: Option<usize>,
    /// Where the first empty line after some text is; the byte after it.
    empty_line: Option<usize>,
}

impl OpenEnds {
    fn begin(&mut self, bracket: &'static str) {
        self.brackets.push(bracket);
        self.depth += 1;
    }

    fn end(&mut self) {
        self.brackets.pop();
        self.depth -= 1;
    }
}

/// What Enter does with what was typed at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedText<'a> {
    /// It is whole, so it runs.
    Whole(&'a str),
    /// It goes on in the next line.
    GoesOn,
    /// It is dropped.
    Dropped,
}

/// Judges the lines that were typed, or pasted, when Enter is pressed.
pub(crate) fn typed(text: &str) -> TypedText<'_> {
    if let Some((before, last)) = text.rsplit_once('\n') {
        match last.trim() {
            ".cancel" => return TypedText::Dropped,
            // Within quotes they would be a part of the text; the statement ends all the same, and says what is wrong with it.
            "" | ";" => return TypedText::Whole(before),
            _ => {}
        }
    }
    if is_complete(text) { TypedText::Whole(text) } else { TypedText::GoesOn }
}

/// What is open at the end of a statement that goes on: a quote, a comment, or the innermost bracket.
pub(crate) fn open_end(text: &str) -> Option<&'static str> {
    let open = scan(after_comments(text), is_sql(text));
    open.quote.or(open.brackets.last().copied())
}

/// Whether a text is SQL and not a command; comments may come first.
pub(crate) fn is_sql(text: &str) -> bool {
    let rest = after_comments(text);
    let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    word.eq_ignore_ascii_case("select")
}

/// The text without the comments and white space before its first word.
pub(crate) fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(comment) = rest.strip_prefix("--") {
            comment.find('\n').map_or("", |at| &comment[at..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or("", |at| &comment[at + 2..])
        } else {
            return rest;
        };
        rest = after.trim_start();
    }
}

/// Takes the first statement off a text: itself and where the next begins; none if there is nothing but white space and comments.
pub(crate) fn first(text: &str) -> Option<(&str, usize)> {
    let mut rest = after_comments(text);
    while let Some(after) = rest.strip_prefix(';') {
        rest = after_comments(after);
    }
    if rest.is_empty() {
        return None;
    }
    let start = text.len() - rest.len();
    let length = if is_sql(rest) {
        let open = scan(rest, true);
        match (open.terminator, open.empty_line) {
            (Some(semicolon), Some(line)) if line < semicolon => line,
            (Some(semicolon), _) => semicolon + 1,
            (None, Some(line)) => line,
            (None, None) => rest.len(),
        }
    } else {
        command_length(rest)
    };
    Some((rest[..length].trim_end(), start + length))
}

/// Whether a text at the prompt is a whole statement, so that Enter runs it.
pub(crate) fn is_complete(text: &str) -> bool {
    let rest = after_comments(text);
    if rest.is_empty() {
        return true;
    }
    if !is_sql(rest) {
        return command_length(&format!("{rest}\n")) <= rest.len() || text.ends_with('\n');
    }
    let open = scan(rest, true);
    if open.terminator.is_some() || open.empty_line.is_some() {
        return true;
    }
    if open.quote.is_some() {
        return false;
    }
    if open.depth > 0 {
        return rest.trim_end().ends_with(';');
    }
    if rest.trim_end().contains('\n') {
        return false;
    }
    match parse(rest) {
        // Without FROM it is seldom the whole.
        Ok(query) => query.from.is_some(),
        // What is wrong before the end stays wrong, however the text goes on.
        Err(error) => (error.span.end as usize) < rest.trim_end().len(),
    }
}

/// SQL without the `;` at its end.
pub(crate) fn without_terminator(text: &str) -> &str {
    match scan(text, true).terminator {
        Some(at) => text[..at].trim_end(),
        None => text.trim_end(),
    }
}

/// A command goes to the end of its line, or of the line on which its JSON is complete.
fn command_length(rest: &str) -> usize {
    for (at, _) in rest.match_indices('\n') {
        let open = scan(&rest[..at], false);
        let last = rest[..at].rfind('\n').map_or("", |newline| &rest[newline + 1..at]);
        if open.quote.is_none() && open.depth <= 0
            || (at > 0 && last.trim().is_empty() && rest[..at].contains('\n'))
        {
            return at;
        }
    }
    rest.len()
}

/// Quotes count in SQL everywhere, in commands only inside of JSON: `cat it's` has none.
fn scan(text: &str, is_sql: bool) -> OpenEnds {
    let bytes = text.as_bytes();
    let mut open = OpenEnds::default();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' if is_sql || open.depth > 0 => {
                let quote = if *byte == b'"' { "\"" } else { "'" };
                let Some(end) = quote_end(bytes, at) else { return OpenEnds { quote: Some(quote), ..open } };
                at = end;
            }
            b'-' if is_sql && bytes.get(at + 1) == Some(&b'-') => {
                at = bytes[at..]
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .map_or(bytes.len(), |length| at + length);
                continue;
            }
            b'/' if is_sql && bytes.get(at + 1) == Some(&b'*') => match text[at + 2..].find("*/") {
                Some(length) => at += length + 3,
                None => return OpenEnds { quote: Some("/*"), ..open },
            },
            b'(' if is_sql => open.begin("("),
            b'[' => open.begin("["),
            b'{' => open.begin("{"),
            b')' if is_sql => open.end(),
            b']' | b'}' => open.end(),
            b';' if is_sql && open.depth <= 0 => {
                open.terminator = Some(at);
                return open;
            }
            b'\n' if open.empty_line.is_none() => {
                let rest = &text[at + 1..];
                let line = rest.split('\n').next().unwrap_or_default();
                let is_ended = rest.len() > line.len() || line.is_empty();
                if line.trim().is_empty() && is_ended {
                    open.empty_line = Some(at + 1 + line.len());
                }
            }
            _ => {}
        }
        at += 1;
    }
    open
}

/// The closing quote of the string that begins at `start`.
fn quote_end(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes.get(start)?;
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        while let Some((statement, next)) = first(text) {
            found.push(statement);
            text = &text[next..];
        }
        found
    }

    #[test]
    fn several_statements() {
        assert_eq!(
            all("-- a\nSELECT ';', (1;2)\nFROM c; ls\n\ncd x\nSELECT 1\n\nSELECT 2"),
            ["SELECT ';', (1;2)\nFROM c;", "ls", "cd x", "SELECT 1", "SELECT 2"]
        );
        assert_eq!(all("put {\"a\":\n \"it's\"\n}\nls"), ["put {\"a\":\n \"it's\"\n}", "ls"]);
        assert_eq!(all("cat it's\nls"), ["cat it's", "ls"]);
        assert_eq!(all(" ; ;; /* x */ "), [""; 0]);
        assert_eq!(all("SELECT 1; SELECT 2;"), ["SELECT 1;", "SELECT 2;"]);
        assert_eq!(all("SELECT 'open"), ["SELECT 'open"]);
        assert_eq!(all("SELECT -- ; '\n 1;ls"), ["SELECT -- ; '\n 1;", "ls"]);
        assert_eq!(without_terminator("SELECT ';' ; "), "SELECT ';'");
    }

    #[test]
    fn what_enter_does() {
        for whole in [
            "",
            "ls",
            ".mode json",
            "SELECT * FROM c",
            "SELECT * FRM c",
            "SELECT *\nFROM c;",
            "SELECT *\nFROM c\n",
            "cat it's",
            "SELEC",
            "put {\"a\":1}",
            "SELECT (1;",
        ] {
            assert!(is_complete(whole), "{whole:?}");
        }
        for open in [
            "SELECT *",
            "SELECT c.id",
            "SELECT * FROM c WHERE",
            "SELECT (1",
            "SELECT 'a",
            "SELECT *\nFROM c",
            "put {\"a\":",
            "SELECT 1 /* ",
        ] {
            assert!(!is_complete(open), "{open:?}");
        }
    }

    #[test]
    fn statements_of_several_lines() {
        for (text, open) in [
            ("SELECT 'a", Some("'")),
            ("SELECT \"a\nSELECT 1;", Some("\"")),
            ("SELECT (1\n, [2", Some("[")),
            ("SELECT (1\n, [2]", Some("(")),
            ("SELECT 1 /* ", Some("/*")),
            ("put {\"a\":", Some("{")),
            ("SELECT *\nFROM c", None),
        ] {
            assert_eq!(typed(text), TypedText::GoesOn, "{text}");
            assert_eq!(open_end(text), open, "{text}");
            for end in ["", "  ", ";"] {
                assert_eq!(typed(&format!("{text}\n{end}")), TypedText::Whole(text), "{text} {end}");
            }
            assert_eq!(typed(&format!("{text}\n .cancel ")), TypedText::Dropped, "{text}");
        }
        for whole in ["SELECT 'a\nb';", "SELECT (1\n;;", "", "ls\ncd x"] {
            assert_eq!(typed(whole), TypedText::Whole(whole), "{whole}");
        }
    }
}
