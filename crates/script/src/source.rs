//! Finds the function in the source of a script, and makes a program of it that returns this function.
//!
//! In: the text a client stored. Out: the programs to try, in order; each is one function expression which, called,
//! returns the script's function. A source may be one function in any notation, or declarations, of which the first
//! function is the script.
//! Why read by hand: asking the engine which functions a source declares would mean running it. This reader only has to
//! tell names from strings, comments, templates and patterns, and a mistake of it makes a script fail to compile, no more.
//! Invariants
//! - The source starts on the first line of a program, after `LEADING_COLUMNS`: places in errors can be told as the
//!   author sees them.
//! - Time and memory are linear in the text.
//!
//! Not here: compiling (`compile`).

mod tokens;

use tokens::{SourceToken, tokens};

/// What can be tried with a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    /// The source as one expression.
    pub(crate) expression: String,
    /// The source as declarations, if it declares a function by name.
    pub(crate) declarations: Option<String>,
}

/// How many columns stand before the source on the first line of each program.
pub(crate) const LEADING_COLUMNS: u32 = 23;
const EXPRESSION_START: &str = "(function () { return (";
const DECLARATIONS_START: &str = "(function () {         ";

/// The programs of a source; nothing if there is no function in it.
pub(crate) fn programs(source: &str) -> Option<Programs> {
    // A byte order mark is no part of the language.
    let source = source.trim_start_matches('\u{feff}');
    let tokens = tokens(source);
    if !tokens.iter().any(|(token, _)| matches!(token, SourceToken::Word("function") | SourceToken::Arrow)) {
        return None;
    }
    // `function () { .. };` is a statement: without its end it is an expression.
    let end =
        tokens.iter().rev().find(|(token, _)| *token != SourceToken::Mark(b';')).map_or(0, |(_, end)| *end);
    let expression = format!("{EXPRESSION_START}{}\n); }})", &source[..end]);
    let declarations =
        entry_name(&tokens).map(|name| format!("{DECLARATIONS_START}{source}\n;return {name}; }})"));
    Some(Programs { expression, declarations })
}

/// How many blocks and functions a source has at most: its braces and arrows, wherever they stand.
pub(crate) fn block_count(source: &str) -> usize {
    source.matches('{').count() + source.matches("=>").count()
}

/// Whether a source that does not compile reads as if it were TypeScript.
pub(crate) fn looks_like_typescript(source: &str) -> bool {
    let tokens = tokens(source);
    let types =
        ["string", "number", "boolean", "any", "void", "unknown", "never", "object", "Array", "Promise"];
    tokens.windows(3).any(|three| match [three[0].0, three[1].0, three[2].0] {
        [SourceToken::Word("interface" | "namespace" | "enum" | "declare"), SourceToken::Word(_), _] => true,
        [SourceToken::Word("type"), SourceToken::Word(_), SourceToken::Mark(b'=')] => true,
        [_, SourceToken::Mark(b':'), SourceToken::Word(word)] => types.contains(&word),
        [
            SourceToken::Word(_) | SourceToken::Mark(b')' | b']'),
            SourceToken::Word("as"),
            SourceToken::Word(_),
        ] => true,
        _ => false,
    })
}

/// Whether a source uses the syntax of modules, which scripts are not.
pub(crate) fn looks_like_module(source: &str) -> bool {
    at_top_level(&tokens(source)).any(|token| matches!(token, SourceToken::Word("import" | "export")))
}

/// The first function declared at the top level; failing that, the first name given a value there.
fn entry_name<'a>(tokens: &[(SourceToken<'a>, usize)]) -> Option<&'a str> {
    let top: Vec<SourceToken<'a>> = at_top_level(tokens).collect();
    let declared = top.iter().enumerate().find_map(|(index, token)| {
        let is_statement = index.checked_sub(1).is_none_or(|before| may_end_statement(top[before]));
        match (token, top.get(index + 1), top.get(index + 2)) {
            (SourceToken::Word("function"), Some(SourceToken::Word(name)), _) if is_statement => Some(*name),
            (SourceToken::Word("function"), Some(SourceToken::Mark(b'*')), Some(SourceToken::Word(name)))
                if is_statement =>
            {
                Some(*name)
            }
            _ => None,
        }
    });
    declared.or_else(|| {
        top.windows(3).find_map(|three| match three {
            [
                SourceToken::Word("var" | "let" | "const"),
                SourceToken::Word(name),
                SourceToken::Mark(b'='),
            ] => Some(*name),
            _ => None,
        })
    })
}

/// Whether a declaration may follow: after an operator or its keyword a function is part of an expression.
fn may_end_statement(token: SourceToken<'_>) -> bool {
    match token {
        SourceToken::Text | SourceToken::Mark(b';' | b'}' | b')' | b']') => true,
        SourceToken::Word(word) => {
            !matches!(word, "new" | "typeof" | "void" | "delete" | "in" | "of" | "instanceof" | "await")
        }
        SourceToken::Arrow | SourceToken::Mark(_) => false,
    }
}

/// The tokens outside all brackets; of brackets the closing ones are kept, so that statements can be told apart.
fn at_top_level<'a, 'b>(
    tokens: &'b [(SourceToken<'a>, usize)],
) -> impl Iterator<Item = SourceToken<'a>> + 'b {
    let mut depth = 0_usize;
    tokens.iter().filter_map(move |(token, _)| {
        match token {
            SourceToken::Mark(b'{' | b'(' | b'[') => depth += 1,
            SourceToken::Mark(b'}' | b')' | b']') => {
                depth = depth.saturating_sub(1);
                return (depth == 0).then_some(*token);
            }
            _ => {}
        }
        (depth == 0).then_some(*token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, entry: Option<&str>) {
        assert_eq!(entry_name(&tokens(source)), entry, "{source}");
    }

    #[test]
    fn the_first_function_declared_is_the_script() {
        check("function a() { function b() {} } function c() {}", Some("a"));
        check("// function x() {}\n/* function y() {} */ function a() {}", Some("a"));
        check("'use strict'; async function a() {}", Some("a"));
        check("'use strict'\nfunction a() {}", Some("a"));
        check("const limit = 5; function a() {}", Some("a"));
        check("var f = function inner() {}; function a() {}", Some("a"));
        check("class K { function() {} } function a() {}", Some("a"));
        check("if (x) { function b() {} }\nfunction a() {}", Some("a"));
        check("function* a() {}", Some("a"));
        check("`${ function x() {} } }` ; function a() {}", Some("a"));
        check("let r = /function x() {/; function a() {}", Some("a"));
        check("let q = 4 / 2; let s = 'it\\'s function b()'; function a() {}", Some("a"));
        check("const a = (x) => x; const b = 1;", Some("a"));
        check("function () {}", None);
        check("", None);
    }

    #[test]
    fn a_source_without_a_function_has_no_program() {
        for source in ["", "42", "// function a() {}", "'function'"] {
            assert_eq!(programs(source), None, "{source}");
        }
    }

    #[test]
    fn programs_start_at_the_column_they_say() {
        for start in [EXPRESSION_START, DECLARATIONS_START] {
            assert_eq!(start.len(), LEADING_COLUMNS as usize);
        }
    }

    #[test]
    fn the_end_of_a_statement_is_left_out_of_the_expression() {
        let made = programs("function () {};;  // done\n").map(|made| made.expression);
        assert_eq!(made.as_deref(), Some("(function () { return (function () {}\n); })"));
    }

    #[test]
    fn typescript_and_modules_are_recognised() {
        for source in [
            "function a(x: string) {}",
            "interface Book { id: string }\nfunction a() {}",
            "function a() { return x as Book; }",
            "type Id = string; function a() {}",
            "function a(): void {}",
        ] {
            assert!(looks_like_typescript(source), "{source}");
        }
        for source in ["function a(x) { return { name: text }; }", "function a() { var as = 1; }"] {
            assert!(!looks_like_typescript(source), "{source}");
        }
        assert!(looks_like_module("import x from 'y'; function a() {}"));
        assert!(looks_like_module("export default function a() {}"));
        assert!(!looks_like_module("function a() { const { import: x } = {}; }"));
    }
}
