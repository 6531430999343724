//! Names of resources: which texts may be the `id` of a document or of anything in the catalog.

use super::members::Members;
use super::{Invalid, excerpt};

/// Longest name of a database, container, script, user, permission or key, in characters.
pub const NAME_CHARACTERS_MAX: usize = 255;
/// Longest `id` of a document, in bytes of UTF-8.
pub const DOCUMENT_ID_BYTES_MAX: usize = 1023;

/// Checks the name of a database, container, user, permission or key. Such names stand in paths, so what would end a
/// path segment, and what cannot be seen, is refused.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    check(name, |_| false)
}

/// Checks the name of a script: tabs and line breaks are allowed there, as on the service.
pub fn check_script_name(name: &str) -> Result<(), Invalid> {
    check(name, |letter| matches!(letter, '\t' | '\r' | '\n'))
}

fn check(name: &str, is_allowed_control: fn(char) -> bool) -> Result<(), Invalid> {
    let problem = if name.is_empty() {
        Some("it is empty")
    } else if name.chars().count() > NAME_CHARACTERS_MAX {
        Some("it is longer than 255 characters")
    } else if name.contains(['/', '\\', '?', '#']) {
        Some("it contains one of the characters / \\ ? #")
    } else if name.chars().any(|letter| letter.is_control() && !is_allowed_control(letter)) {
        Some("it contains a control character such as a tab or a line break")
    } else if name.ends_with(' ') {
        Some("it ends with a space")
    } else {
        None
    };
    problem.map_or(Ok(()), |problem| Err(refusal(name, problem, "255")))
}

/// Checks the `id` of a document. Every character is allowed there: clients that escape ids reach those with slashes too.
pub fn check_document_id(id: &str) -> Result<(), Invalid> {
    let problem = if id.is_empty() {
        Some("it is empty")
    } else if id.len() > DOCUMENT_ID_BYTES_MAX {
        Some("it is longer than 1023 bytes")
    } else {
        None
    };
    problem.map_or(Ok(()), |problem| Err(refusal(id, problem, "1024")))
}

/// The checked `id` member of a catalog resource.
pub(super) fn name_of(body: &Members<'_>) -> Result<String, Invalid> {
    checked(body, check_name)
}

/// The checked `id` member of a script.
pub(super) fn script_name_of(body: &Members<'_>) -> Result<String, Invalid> {
    checked(body, check_script_name)
}

fn checked(body: &Members<'_>, check: fn(&str) -> Result<(), Invalid>) -> Result<String, Invalid> {
    match body.get("id") {
        Some(serde_json::Value::String(name)) => check(name).map(|()| name.clone()),
        _ => Err(Invalid::input(
            "'id' must be a string. Ensure to provide a unique non-empty string less than '255' characters",
        )),
    }
}

fn refusal(text: &str, problem: &str, limit: &str) -> Invalid {
    Invalid::new(format!(
        "The input name '{}' is invalid: {problem}. Ensure to provide a unique non-empty string less than '{limit}' \
         characters.",
        excerpt(text)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(run: fn(&str) -> Result<(), Invalid>, text: &str, expected: Option<&str>) {
        let actual = run(text);
        match expected {
            None => assert_eq!(actual, Ok(()), "{text:?}"),
            Some(fragment) => {
                let message = actual.unwrap_err().message().to_owned();
                assert!(message.contains(fragment), "{text:?}: {message}");
            }
        }
    }

    #[test]
    fn names() {
        let limit = Some("Ensure to provide a unique non-empty string less than '255' characters.");
        for good in ["a", " a b", "sample container", "日本", "..", "%20", &"x".repeat(255), &"é".repeat(255)]
        {
            judge(check_name, good, None);
        }
        for bad in ["", "a/b", "a\\b", "a?b", "a#b", "tab\t", "a\rb", "a\nb", "trailing ", &"x".repeat(256)] {
            judge(check_name, bad, limit);
        }
    }

    #[test]
    fn names_of_scripts() {
        let limit = Some("Ensure to provide a unique non-empty string less than '255' characters.");
        for good in ["a", "tab\t", "a\rb", "a\nb"] {
            judge(check_script_name, good, None);
        }
        for bad in ["", "a/b", "a\\b", "a?b", "a#b", "a\u{1}b", "trailing "] {
            judge(check_script_name, bad, limit);
        }
    }

    #[test]
    fn document_ids() {
        let limit = Some("Ensure to provide a unique non-empty string less than '1024' characters.");
        for good in ["a", " a ", "a?b#c", "tab\t\r\n", "%2F", ".", "a/b", "a\\b", "/", &"x".repeat(1023)] {
            judge(check_document_id, good, None);
        }
        for bad in ["", &"x".repeat(1024), &"é".repeat(512)] {
            judge(check_document_id, bad, limit);
        }
    }
}
