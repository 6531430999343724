//! Key bytes only where they belong: functions of `keys`, which make and read them, are called by the crates that keep things
//! under keys. Everybody else has their functions with names of what is meant, and of `keys` only ids and values.
//!
//! A name that begins with a small letter is a function or a module of functions; types and constants begin with a large one.

use crate::sources;

/// The crates that keep things under keys.
const OWNERS: [&str; 5] = ["keys", "catalog", "changefeed", "index", "store"];

/// How uses of the crate begin.
const CRATE: &str = "astrarium_keys::";

pub(super) fn check(problems: &mut Vec<String>) -> anyhow::Result<()> {
    for path in sources::rust_files()? {
        let shown = sources::shown(&path);
        let Some((owner, rest)) = shown.strip_prefix("crates/").and_then(|path| path.split_once('/')) else {
            continue;
        };
        if OWNERS.contains(&owner) || !rest.starts_with("src/") {
            continue;
        }
        for name in forbidden(&sources::read(&path)?) {
            problems.push(format!(
                "{shown} uses {name} of `keys`: key bytes belong to {}; ask one of them",
                OWNERS.join(", ")
            ));
        }
    }
    Ok(())
}

/// What a file uses of `keys` besides types and constants.
fn forbidden(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (start, _) in text.match_indices(CRATE) {
        let rest = &text[start + CRATE.len()..];
        let is_use = text[..start].trim_end().ends_with("use");
        let end = if is_use { rest.find(';') } else { rest.find(|c: char| !is_of_path(c)) };
        leaves(&rest[..end.unwrap_or(rest.len())], &mut names);
    }
    names.retain(|name| name.starts_with(char::is_lowercase));
    names
}

fn is_of_path(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | ':')
}

/// The last names of a tree of paths such as `a::{B, c::{d, E}}`; `self` is the module before it. Of a path through a type,
/// such as `a::B::c`, the type.
fn leaves(tree: &str, names: &mut Vec<String>) {
    let mut modules: Vec<String> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut end = |path: &mut Vec<String>, modules: &[String]| {
        let leaf = path.iter().find(|name| name.starts_with(char::is_uppercase)).or(path.last());
        match leaf.map(String::as_str) {
            Some("self") => names.extend(modules.last().cloned()),
            Some(name) => names.push(name.to_owned()),
            None => {}
        }
        path.clear();
    };
    for token in tree.split_inclusive(['{', '}', ',']) {
        let words = token.trim_end_matches(['{', '}', ',']).split("::").map(str::trim);
        path.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
        match token.chars().last() {
            Some('{') => {
                modules.push(path.last().cloned().unwrap_or_default());
                path.clear();
            }
            Some('}') => {
                end(&mut path, &modules);
                modules.pop();
            }
            _ => end(&mut path, &modules),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_may_be_used_and_functions_may_not() {
        let fine = "use astrarium_keys::Rid;\nuse astrarium_keys::record::{KeyRangeRow, RecordKind};\n\
                    let record = astrarium_keys::record::Record { .. };\nastrarium_keys::rid::Rid::child(a, b);\n";
        assert_eq!(forbidden(fine), Vec::<String>::new());
        let text = "use astrarium_keys::{Rid, document, number};\nuse astrarium_keys::record::{self, Record, sweep_key};\n\
                    use astrarium_keys::{\n    Malformed,\n    index_entry::{Family, read_entry},\n};\n\
                    astrarium_keys::lease::lease_key(name)";
        let names = ["document", "number", "record", "sweep_key", "read_entry", "lease_key"];
        assert_eq!(forbidden(text), names);
    }
}
