//! Why a statement did not do what was asked, in words for the person who typed it, and what the exit code is.

use astrarium_client::{ClientError, ServerRefusal, harmless, harmless_lines};

/// The exit code of statements that failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// The exit code of wrong usage.
pub(crate) const EXIT_USAGE: u8 = 2;
/// The exit code where there is no account to talk to.
pub(crate) const EXIT_UNREACHABLE: u8 = 3;
/// The exit code after Ctrl-C in a script, as shells have it.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Why a statement ended early.
#[derive(Debug)]
pub(crate) enum ShellFailure {
    /// The statement is wrong, or cannot be done as things are: the person's to mend.
    Told(String),
    /// The server or the way to it.
    Client(ClientError),
    /// Ctrl-C.
    Interrupted,
    /// The pager was left before the end: the end of the statement, and no error.
    SeenEnough,
    /// Nobody reads the output any more; the end of everything, and no error.
    OutputClosed,
    /// The person wants to leave.
    Leave,
}

impl ShellFailure {
    pub(crate) fn told(sentence: impl Into<String>) -> ShellFailure {
        ShellFailure::Told(sentence.into())
    }

    /// The exit code of a script that ends with this.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            ShellFailure::Client(error) if is_unreachable(error) => EXIT_UNREACHABLE,
            ShellFailure::Told(_) | ShellFailure::Client(_) => EXIT_FAILED,
            ShellFailure::Interrupted => EXIT_INTERRUPTED,
            ShellFailure::SeenEnough | ShellFailure::OutputClosed | ShellFailure::Leave => 0,
        }
    }

    /// The message, harmless for a terminal; with the text of the query where that helps.
    pub(crate) fn message(&self, query: Option<&str>) -> String {
        match self {
            ShellFailure::Told(sentence) => harmless_lines(sentence),
            ShellFailure::Interrupted => "cancelled".to_owned(),
            ShellFailure::SeenEnough | ShellFailure::OutputClosed | ShellFailure::Leave => String::new(),
            ShellFailure::Client(error) => client_message(error, query),
        }
    }
}

impl From<ClientError> for ShellFailure {
    fn from(error: ClientError) -> ShellFailure {
        ShellFailure::Client(error)
    }
}

/// Whether there is no account to talk to: no later statement can do better.
fn is_unreachable(error: &ClientError) -> bool {
    match error {
        ClientError::Settings(_) | ClientError::Connect { .. } | ClientError::NotCosmos { .. } => true,
        ClientError::Refused(refusal) => refusal.status == 401,
        _ => false,
    }
}

fn client_message(error: &ClientError, query: Option<&str>) -> String {
    let Some(refusal) = error.refusal() else { return harmless_lines(&error.to_string()) };
    if refusal.status == 401 {
        return format!(
            "the server refuses the key (--key, or ASTRARIUM_KEY): {}",
            harmless(&refusal.message)
        );
    }
    let text = harmless_lines(&refusal.to_string());
    match query.and_then(|query| caret(refusal, query)) {
        Some(place) => format!("{text}\n{place}"),
        None => text,
    }
}

/// The line of the query with a caret under the fault: where the server says, or where our own parser stumbles.
fn caret(refusal: &ServerRefusal, query: &str) -> Option<String> {
    if refusal.status != 400 {
        return None;
    }
    let (start, end) = if let Some((start, end)) = refusal.location {
        (byte_of_utf16(query, start), byte_of_utf16(query, end))
    } else {
        let error = astrarium_sql_syntax::parse(query).err()?;
        (error.span.start as usize, error.span.end as usize)
    };
    Some(excerpt(query, start, end))
}

/// Where the n-th UTF-16 unit of a text begins, in bytes.
fn byte_of_utf16(text: &str, unit: usize) -> usize {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units >= unit {
            return at;
        }
        units += character.len_utf16();
    }
    text.len()
}

/// A line of a text, cut to what a terminal shows, with carets under a part of it.
fn excerpt(text: &str, start: usize, end: usize) -> String {
    const BEFORE: usize = 50;
    const LENGTH: usize = 70;
    let start = (0..=start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let column = text[line_start..start].chars().count();
    let skipped = column.saturating_sub(BEFORE);
    let shown: String =
        line.chars().skip(skipped).take(LENGTH).map(|one| if one.is_control() { ' ' } else { one }).collect();
    let marked = text
        .get(start..end.max(start))
        .map_or(1, |piece| piece.chars().take_while(|one| *one != '\n').count());
    let room = shown.chars().count().saturating_sub(column - skipped).max(1);
    format!("  {shown}\n  {}{}", " ".repeat(column - skipped), "^".repeat(marked.clamp(1, room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets() {
        assert_eq!(excerpt("SELECT *\nFRM c", 9, 12), "  FRM c\n  ^^^");
        assert_eq!(excerpt("SELECT", 6, 6), "  SELECT\n        ^");
        assert_eq!(excerpt("é x", byte_of_utf16("é x", 2), 4), "  é x\n    ^");
        assert_eq!(excerpt("", 0, 0), "  \n  ^");
        assert_eq!(excerpt("a", 900, 2), "  a\n   ^");
        let long = format!("{}FRM c", "x".repeat(200));
        assert!(excerpt(&long, 200, 203).lines().all(|line| line.chars().count() < 80));
        assert_eq!(byte_of_utf16("a𝄞b", 3), 5);
        assert_eq!(byte_of_utf16("a", 9), 1);
    }
}
