//! One type name, one meaning, across the workspace: search and review work by name.
//!
//! A struct, enum or trait whose name another crate or module also defines is a problem. Test code, the test
//! kit and the fixture of PostgreSQL have words of their own, and are not looked at.

use crate::sources;
use std::collections::BTreeMap;

/// Names that every crate may define, because the path says whose they are.
const EVERYWHERE: [&str; 2] = ["Error", "Kind"];

/// Crates that only tests use.
const TEST_CRATES: [&str; 2] = ["crates/testkit/", "crates/postgres-fixture/"];

pub(super) fn check(problems: &mut Vec<String>) -> anyhow::Result<()> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources::rust_files()? {
        let shown = sources::shown(&path);
        let is_product = shown.starts_with("crates/") && shown.contains("/src/");
        let is_for_tests =
            TEST_CRATES.iter().any(|name| shown.starts_with(name)) || shown.ends_with("tests.rs");
        if !is_product || is_for_tests {
            continue;
        }
        for name in defined(&sources::read(&path)?) {
            places.entry(name).or_default().push(shown.clone());
        }
    }
    for (name, places) in places {
        if !EVERYWHERE.contains(&&*name) && places.len() > 1 {
            let listed = places.join(", ");
            problems
                .push(format!("{name} names {} types, in {listed}: give each its own name", places.len()));
        }
    }
    Ok(())
}

/// Types that a source defines at the outermost level, its tests left out.
fn defined(text: &str) -> Vec<String> {
    let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let names = code.filter_map(|line| {
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest)
                .trim_start()
        });
        let rest = ["struct ", "enum ", "trait "].iter().find_map(|word| line.strip_prefix(word))?;
        let end = rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    });
    names.collect()
}
