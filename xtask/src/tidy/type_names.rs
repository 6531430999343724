//! One type name, one meaning, across the workspace: search and review work by name.
//!
//! A struct, enum or trait whose name another crate or module also defines is a problem, unless it is listed here with its
//! number, which may only fall. Test code and the test kit are clients with words of their own, and are not looked at.

use crate::sources;
use std::collections::BTreeMap;

/// Names that every crate may define, because the path says whose they are.
const EVERYWHERE: [&str; 2] = ["Error", "Kind"];

/// Names that are still defined more than once, and how often.
const NOT_YET: &[(&str, usize)] = &[
    ("Access", 3),
    ("Action", 2),
    ("Answer", 2),
    ("Background", 2),
    ("Binding", 2),
    ("CancelOnDrop", 2),
    ("Change", 2),
    ("Clock", 2),
    ("Component", 2),
    ("CompositeIndex", 2),
    ("Condition", 2),
    ("Container", 2),
    ("Content", 2),
    ("Context", 2),
    ("Cursor", 2),
    ("Direction", 2),
    ("DistanceFunction", 2),
    ("Effect", 2),
    ("EffectiveRange", 2),
    ("Entries", 3),
    ("Execution", 2),
    ("Failure", 3),
    ("Feed", 2),
    ("Findings", 3),
    ("Found", 2),
    ("Group", 2),
    ("Health", 2),
    ("Identity", 2),
    ("Incoming", 2),
    ("IndexUse", 2),
    ("Inner", 2),
    ("Instant", 2),
    ("Language", 2),
    ("Limits", 3),
    ("Link", 2),
    ("Name", 2),
    ("Named", 2),
    ("Names", 2),
    ("Opened", 2),
    ("Operation", 3),
    ("Order", 2),
    ("Origin", 2),
    ("Pace", 2),
    ("Page", 4),
    ("PermissionMode", 2),
    ("Place", 3),
    ("Position", 2),
    ("Projection", 2),
    ("Query", 3),
    ("Queue", 2),
    ("RangeIndex", 2),
    ("Refusal", 2),
    ("Reply", 2),
    ("Report", 2),
    ("Request", 2),
    ("Restored", 2),
    ("Scope", 3),
    ("Search", 3),
    ("Setting", 2),
    ("Settings", 2),
    ("Shared", 2),
    ("Sink", 2),
    ("Source", 3),
    ("SourceKind", 2),
    ("Statistics", 3),
    ("Step", 2),
    ("Task", 2),
    ("TextTest", 2),
    ("Token", 2),
    ("Translator", 2),
    ("Turns", 2),
    ("Type", 2),
    ("Verdict", 2),
    ("View", 2),
    ("Waiting", 2),
    ("Work", 4),
    ("Worker", 2),
];

pub(super) fn check(problems: &mut Vec<String>) -> anyhow::Result<()> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources::rust_files()? {
        let shown = sources::shown(&path);
        let is_product = shown.starts_with("crates/") && shown.contains("/src/");
        if !is_product || shown.starts_with("crates/testkit/") || shown.ends_with("tests.rs") {
            continue;
        }
        for name in defined(&sources::read(&path)?) {
            places.entry(name).or_default().push(shown.clone());
        }
    }
    for (name, places) in places {
        let count_max = NOT_YET.iter().find(|(other, _)| *other == name).map_or(1, |(_, count)| *count);
        if !EVERYWHERE.contains(&&*name) && places.len() != count_max && places.len() > 1 {
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
