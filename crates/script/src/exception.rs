//! What a script threw, read out of the engine and put into the words of the service.
//!
//! In: the engine's pending exception, or any value that was thrown. Out: `Thrown`: text, number, stack.
//! Reading a thrown object can run code of the script (getters, `toString`), so it happens inside the sandbox, under the
//! same limits, and whatever goes wrong in it is printed as well as can be.
//!
//! Shape: `Encountered exception while executing Javascript. Exception = Error: text`, then `Stack trace: Error: text` on
//! a new line and one line `   at function (script.js:line:column)` for each frame. Frames of our own API are left out.

use crate::Exception;
use crate::api::OWN_FILE;
use crate::sandbox::{Hooks, Sandbox};
use crate::source::LEADING_COLUMNS;
use rquickjs::{Ctx, Function, String as Text, Value};

/// Longest text of one exception; a script can throw megabytes.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What was thrown, as far as it can be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thrown {
    /// `Error: text`, or the value itself.
    pub(crate) text: String,
    /// The number of a numbered error.
    pub(crate) number: Option<u32>,
    /// Each frame without its indentation and without `at`.
    frames: Vec<String>,
}

/// Reads the exception that a call of the engine ended with.
pub(crate) fn caught(ctx: &Ctx<'_>, sandbox: &Sandbox, error: &rquickjs::Error) -> Thrown {
    if error.is_exception() {
        let value = ctx.catch();
        thrown(ctx, sandbox, &value)
    } else {
        Thrown::from_text(error.to_string())
    }
}

/// Reads a value that was thrown.
pub(crate) fn thrown<'js>(ctx: &Ctx<'js>, sandbox: &Sandbox, value: &Value<'js>) -> Thrown {
    // With no memory left the engine has no error to throw, and throws nothing.
    if value.is_null() && sandbox.state.quota.was_refused() {
        return Thrown::out_of_memory();
    }
    let hooks = sandbox.hooks(ctx);
    let text = hooks.as_ref().ok().and_then(|hooks| described(hooks, value));
    let mut thrown = Thrown::from_stack(&text.unwrap_or_default(), "");
    if thrown.text.is_empty() {
        // Printing failed, for want of memory or time: what the engine itself says about the value is left.
        thrown.text = format!("{:?}", value.type_of());
    }
    if let (Some(object), Ok(hooks)) = (value.as_object(), &hooks) {
        let number = object.get::<_, Value<'js>>("number").ok().and_then(|number| number.as_number());
        thrown.number = number.filter(|number| *number >= 1.0 && *number < 1e9).map(|number| number as u32);
        let stack = object.get::<_, Value<'js>>("stack").ok().and_then(Value::into_string);
        let stack = stack.and_then(|stack| readable(hooks, &stack)).unwrap_or_default();
        thrown.frames = frames(&stack);
        // What a getter threw meanwhile is of no interest.
        drop(ctx.catch());
    }
    thrown
}

impl Thrown {
    /// A failure that no value stands for.
    pub(crate) fn from_text(text: String) -> Thrown {
        Thrown { text, number: None, frames: Vec::new() }
    }

    /// The failure of a script that took more memory than it may have.
    pub(crate) fn out_of_memory() -> Thrown {
        Thrown::from_text("InternalError: out of memory".to_owned())
    }

    /// A failure with the engine's stack of it.
    pub(crate) fn from_stack(text: &str, stack: &str) -> Thrown {
        Thrown { text: cut(text, TEXT_BYTES_MAX).to_owned(), number: None, frames: frames(stack) }
    }

    /// Line and column of the innermost frame inside the script.
    pub(crate) fn place(&self) -> Option<(u32, u32)> {
        self.frames.iter().find_map(|frame| {
            let place =
                frame.trim_end_matches(')').rsplit_once('(').map_or(frame.as_str(), |(_, place)| place);
            let (rest, column) = place.trim_end_matches(')').rsplit_once(':')?;
            let (_, line) = rest.rsplit_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?))
        })
    }

    /// The exception as callers get it.
    pub(crate) fn into_exception(self) -> Exception {
        let line = self.place().map(|(line, _)| line);
        let mut text = format!("Encountered exception while executing Javascript. Exception = {}", self.text);
        if !self.frames.is_empty() {
            text.push_str("\r\nStack trace: ");
            text.push_str(&self.text);
            for frame in &self.frames {
                text.push_str("\n   at ");
                text.push_str(frame);
            }
        }
        Exception { text, thrown: self.text, number: self.number, line }
    }
}

fn described<'js>(hooks: &Hooks<'js>, value: &Value<'js>) -> Option<String> {
    let described: Text<'js> = hooks.describe.call((value.clone(),)).ok()?;
    described.to_string().ok()
}

/// A text of the script, with what is no character replaced.
fn readable<'js>(hooks: &Hooks<'js>, text: &Text<'js>) -> Option<String> {
    if let Ok(text) = text.to_string() {
        return Some(text);
    }
    let well_formed: &Function<'js> = &hooks.well_formed;
    well_formed.call::<_, Text<'js>>((text.clone(),)).ok()?.to_string().ok()
}

fn frames(stack: &str) -> Vec<String> {
    stack.lines().filter_map(frame).take(32).collect()
}

/// A line of the engine's stack, unless it is one of ours.
fn frame(line: &str) -> Option<String> {
    let frame = line.trim_start().strip_prefix("at ")?;
    if frame.contains(OWN_FILE) || frame.len() > 1_000 {
        return None;
    }
    let frame = in_author_columns(frame);
    Some(match frame.strip_prefix("<anonymous> ") {
        Some(place) => format!("Anonymous function {place}"),
        None => frame,
    })
}

/// On the first line of a script something of ours stands before the author's text.
fn in_author_columns(frame: &str) -> String {
    let own = frame.rsplit_once(".js:1:").and_then(|(start, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let column: u32 = rest[..digits].parse().ok()?;
        let column = column.saturating_sub(LEADING_COLUMNS).max(1);
        Some(format!("{start}.js:1:{column}{}", &rest[digits..]))
    });
    own.unwrap_or_else(|| frame.to_owned())
}

/// As much of a text as fits, with no character cut in two.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stack: &str, place: Option<(u32, u32)>, text: &str) {
        let thrown = Thrown::from_stack("Error: no", stack);
        assert_eq!(thrown.place(), place, "{stack}");
        assert_eq!(thrown.into_exception().text, text, "{stack}");
    }

    #[test]
    fn stacks_are_told_as_the_service_does() {
        let start = "Encountered exception while executing Javascript. Exception = Error: no";
        check("", None, start);
        check(
            "    at f (a.js:3:7)\n    at <api>:1:1\n    at step (<api>:9:2)\n    at <anonymous> (a.js:9:1)\n",
            Some((3, 7)),
            &format!(
                "{start}\r\nStack trace: Error: no\n   at f (a.js:3:7)\n   at Anonymous function (a.js:9:1)"
            ),
        );
        check(
            "    at a.js:3:7\n",
            Some((3, 7)),
            &format!("{start}\r\nStack trace: Error: no\n   at a.js:3:7"),
        );
        check(
            "    at map (native)\n    at f (a.js:1:25)",
            Some((1, 2)),
            &format!("{start}\r\nStack trace: Error: no\n   at map (native)\n   at f (a.js:1:2)"),
        );
    }
}
