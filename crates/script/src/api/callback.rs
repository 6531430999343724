//! Whether a callback can see more than the error it is given, by its source.
//!
//! A callback that looks only at whether there was an error need not be given the document that was written, and the
//! script can go on before the server has written it (`docs/decisions/0021-scripts-go-ahead.md`).
//! Invariant: the answer is yes only for functions of one parameter or none that have no other way to their arguments;
//! whatever is written in another way, or is no function of a script, may see everything.

/// Whether a function with this source (what `Function.prototype.toString` gives) sees at most its first argument.
pub(super) fn sees_error_only(source: &str) -> bool {
    has_one_parameter(source)
        && !source.contains("arguments")
        // Names may be written with escapes, and functions of the engine take what they like.
        && !source.contains("\\u")
        && !source.contains("[native code]")
}

/// `function name(e) {`, `function () {`, `e =>`, `(e) =>` or `() =>`, without defaults, patterns, or comments.
fn has_one_parameter(source: &str) -> bool {
    let is_function = source.strip_prefix("function").filter(|rest| !rest.starts_with(is_in_name));
    if let Some(rest) = is_function {
        let rest = after_name(rest.trim_start()).trim_start();
        return after_parameters(rest).is_some_and(|rest| rest.starts_with('{'));
    }
    let after_one = || Some(after_name(source)).filter(|rest| rest.len() < source.len()).map(str::trim_start);
    after_parameters(source).or_else(after_one).is_some_and(|rest| rest.starts_with("=>"))
}

/// What follows parentheses with one name in them or none.
fn after_parameters(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('(')?.trim_start();
    Some(after_name(inside).trim_start().strip_prefix(')')?.trim_start())
}

fn after_name(text: &str) -> &str {
    text.trim_start_matches(is_in_name)
}

fn is_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_callbacks() {
        for source in [
            "function (e) { if (e) throw e; }",
            "function(){}",
            "function done( error )\n{ }",
            "e => { throw e; }",
            "(e) => undefined",
            "( ) => x",
            "function f(e) { other(function (a, b) {}); }",
        ] {
            assert!(sees_error_only(source), "{source}");
        }
        for source in [
            "function (e, d) {}",
            "function (...all) {}",
            "function (e = 1) {}",
            "function ({ number }) {}",
            "function (e) { return arguments[1]; }",
            "function (e) { return \\u0061rguments[1]; }",
            "function (e /* none */) {}",
            "function* (e) {}",
            "function push() {\n    [native code]\n}",
            "async e => e",
            "async function (e) {}",
            "(e, d) => d",
            "(...all) => all",
            "method(e) {}",
            "e",
            "class { }",
            "",
        ] {
            assert!(!sees_error_only(source), "{source}");
        }
    }
}
