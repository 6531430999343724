//! The words of a command line: parted by white space, whole in quotes, JSON kept together.
//!
//! In: one command as typed. Out: words with whether they were quoted, so that a name may be anything.

use crate::failure::ShellFailure;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandWord {
    /// Its text, without the quotes around it.
    pub(crate) text: String,
    /// Whether it was in quotes: then it is a name and never an option or a path.
    pub(crate) is_quoted: bool,
}

/// Splits a command into words. A word that begins with `{` or `[` goes to the bracket that closes it.
pub(crate) fn split(text: &str) -> Result<Vec<CommandWord>, ShellFailure> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '"' | '\'' => quoted(rest, first)?,
            '{' | '[' => {
                let length = astrarium_client::raw_json::value_end(rest.as_bytes()).ok_or_else(|| {
                    ShellFailure::told("the JSON is not complete: a bracket or quote is missing")
                })?;
                let text = rest.get(..length).unwrap_or(rest).to_owned();
                (CommandWord { text, is_quoted: false }, length)
            }
            _ => {
                let length = bare_length(rest);
                (CommandWord { text: rest[..length].to_owned(), is_quoted: false }, length)
            }
        };
        words.push(word);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(words)
}

/// A bare word goes to the next white space outside quotes: `@name="two words"` is one.
fn bare_length(rest: &str) -> usize {
    let mut quote = None;
    for (at, character) in rest.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'') && rest[..at].ends_with('=') => quote = Some(character),
            None if character.is_whitespace() => return at,
            None => {}
        }
    }
    rest.len()
}

/// A word in quotes; a backslash takes the next character as it is.
fn quoted(rest: &str, quote: char) -> Result<(CommandWord, usize), ShellFailure> {
    let mut text = String::new();
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        if is_escaped {
            text.push(character);
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if character == quote {
            return Ok((CommandWord { text, is_quoted: true }, at + 1));
        } else {
            text.push(character);
        }
    }
    Err(ShellFailure::told(format!("the quote {quote} is not closed")))
}

/// The words of a command after its name, taken apart into options and the others.
#[derive(Debug, Default)]
pub(crate) struct CommandArguments {
    words: std::collections::VecDeque<CommandWord>,
    options: Vec<(String, Option<CommandWord>)>,
}

impl CommandArguments {
    /// Sorts words; `with_value` are the options that are followed by one, `flags` those that are not.
    pub(crate) fn sort(
        words: Vec<CommandWord>,
        with_value: &[&str],
        flags: &[&str],
    ) -> Result<CommandArguments, ShellFailure> {
        let mut sorted = CommandArguments::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let is_option = !word.is_quoted
                && word.text.len() > 1
                && word.text.starts_with('-')
                && word.text.parse::<f64>().is_err();
            if !is_option {
                sorted.words.push_back(word);
            } else if with_value.contains(&word.text.as_str()) {
                let value = words
                    .next()
                    .ok_or_else(|| ShellFailure::told(format!("{} needs a value after it", word.text)))?;
                sorted.options.push((word.text, Some(value)));
            } else if flags.contains(&word.text.as_str()) {
                sorted.options.push((word.text, None));
            } else {
                let known = [with_value, flags].concat().join(", ");
                let known =
                    if known.is_empty() { "it has none".to_owned() } else { format!("known are {known}") };
                return Err(ShellFailure::told(format!(
                    "{} is no option of this command; {known}",
                    word.text
                )));
            }
        }
        Ok(sorted)
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.options.iter().any(|(name, _)| name == flag)
    }

    pub(crate) fn option(&self, name: &str) -> Option<&CommandWord> {
        self.options.iter().rev().find(|(own, _)| own == name).and_then(|(_, value)| value.as_ref())
    }

    /// The next word.
    pub(crate) fn next(&mut self) -> Option<CommandWord> {
        self.words.pop_front()
    }

    /// The next word, which must be there; `what` names it.
    pub(crate) fn need(&mut self, what: &str) -> Result<CommandWord, ShellFailure> {
        self.next().ok_or_else(|| {
            ShellFailure::told(format!("{what} is missing; .help NAME shows what a command takes"))
        })
    }

    /// Refuses words that nobody asked for.
    pub(crate) fn end(&self) -> Result<(), ShellFailure> {
        match self.words.front() {
            None => Ok(()),
            Some(word) => Err(ShellFailure::told(format!(
                "{:?} is one word too many; put names with spaces into quotes",
                word.text
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words() {
        assert_eq!(texts("cat a 'b c' \"d\\\"e\""), ["cat", "a", "b c", "d\"e"]);
        assert_eq!(
            texts("put {\"a\": \"} b\", \"c\":[1, 2]} x"),
            ["put", "{\"a\": \"} b\", \"c\":[1, 2]}", "x"]
        );
        assert_eq!(texts(".params @a=\"x y\" @b=7"), [".params", "@a=\"x y\"", "@b=7"]);
        assert_eq!(texts("cat it's"), ["cat", "it's"]);
        assert!(split("cat 'a").is_err() && split("put {\"a\":").is_err());
        let mut sorted =
            CommandArguments::sort(split("a -y --key 7 -5").unwrap(), &["--key"], &["-y"]).unwrap();
        assert!(sorted.has("-y"));
        assert_eq!(sorted.option("--key").unwrap().text, "7");
        assert_eq!(
            (sorted.next().unwrap().text, sorted.next().unwrap().text),
            ("a".to_owned(), "-5".to_owned())
        );
        assert!(sorted.end().is_ok());
        assert!(CommandArguments::sort(split("--nope").unwrap(), &[], &[]).is_err());
    }
}
