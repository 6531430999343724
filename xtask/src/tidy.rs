//! Rules of this repository that no compiler checks: who may use whom, function length, leftovers, living documents.

mod key_bytes;
mod limits;
mod type_names;

use crate::sources;
use anyhow::Context as _;
use std::collections::BTreeMap;

/// Longest function that may be added.
const FUNCTION_LINES_MAX: usize = 70;
/// Longest file that may be added.
const FILE_LINES_MAX: usize = 900;

pub(crate) fn run() -> anyhow::Result<bool> {
    let mut problems = Vec::new();
    check_dependencies(&mut problems)?;
    check_sources(&mut problems)?;
    key_bytes::check(&mut problems)?;
    type_names::check(&mut problems)?;
    check_operations(&mut problems)?;
    check_documents(&mut problems)?;
    limits::check(&mut problems)?;
    check_case_sources()?;
    for problem in &problems {
        println!("tidy: {problem}");
    }
    println!("tidy: {} problems", problems.len());
    Ok(problems.is_empty())
}

/// The table in ARCHITECTURE.md against the manifests: a new arrow needs a line there and a decision note.
fn check_dependencies(problems: &mut Vec<String>) -> anyhow::Result<()> {
    let table = dependency_table(&sources::read(&sources::root().join("ARCHITECTURE.md"))?);
    anyhow::ensure!(!table.is_empty(), "ARCHITECTURE.md has no table of who may use whom");
    for entry in std::fs::read_dir(sources::root().join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let manifest = sources::read(&folder.join("Cargo.toml"))?;
        let Some(allowed) = table.get(&name) else {
            problems.push(format!("crate {name} is missing in the table of ARCHITECTURE.md"));
            continue;
        };
        for used in used_crates(&manifest) {
            if !allowed.contains(&used) {
                problems.push(format!(
                    "crate {name} uses {used}, which the table of ARCHITECTURE.md does not allow"
                ));
            }
        }
    }
    Ok(())
}

/// Rows of the form `| crate | may use | must not know |`.
fn dependency_table(text: &str) -> BTreeMap<String, Vec<String>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate | may use"));
    rows.skip(2)
        .map_while(|line| line.strip_prefix('|'))
        .filter_map(|row| {
            let mut cells = row.split('|').map(str::trim);
            let (name, uses) = (cells.next()?, cells.next()?);
            let uses = uses.split(',').map(|used| used.trim().to_owned()).collect();
            Some((name.to_owned(), uses))
        })
        .collect()
}

fn used_crates(manifest: &str) -> Vec<String> {
    let dependencies = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    dependencies
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.strip_prefix("astrarium-")?.split('.').next().map(str::to_owned))
        .collect()
}

/// Headers that choose between operations; whoever else read one could disagree with what was authorized.
const CHOOSING_HEADERS: [&str; 6] = [
    "headers::IS_QUERY",
    "headers::QUERY)",
    "headers::IS_QUERY_PLAN_REQUEST",
    "headers::IS_BATCH_REQUEST",
    "headers::BATCH_ATOMIC",
    "headers::IS_UPSERT",
];

/// What a request asks for is read in one place, see decision 0009.
fn check_operations(problems: &mut Vec<String>) -> anyhow::Result<()> {
    for path in sources::rust_files()? {
        let shown = sources::shown(&path);
        let is_elsewhere = shown.starts_with("crates/gateway/src/") && !shown.contains("/operation");
        if !is_elsewhere {
            continue;
        }
        let text = sources::read(&path)?;
        for header in CHOOSING_HEADERS.iter().filter(|header| text.contains(**header)) {
            problems.push(format!("{shown} reads {header}, which only operation.rs may; use the operation"));
        }
    }
    Ok(())
}

fn check_sources(problems: &mut Vec<String>) -> anyhow::Result<()> {
    for path in sources::rust_files()? {
        let text = sources::read(&path)?;
        let shown = sources::shown(&path);
        if text.lines().count() > FILE_LINES_MAX {
            problems.push(format!("{shown} has over {FILE_LINES_MAX} lines"));
        }
        if !text.starts_with("//!") && !text.starts_with("#!") {
            problems.push(format!("{shown} has no module header"));
        }
        // A table of cases may be longer than code that somebody has to follow.
        let is_test =
            shown.contains("/tests/") || shown.ends_with("tests.rs") || shown.starts_with("crates/testkit/");
        let lines_max = if is_test { FUNCTION_LINES_MAX * 2 } else { FUNCTION_LINES_MAX };
        for function in sources::functions(&text).iter().filter(|one| one.length > lines_max) {
            let (name, length) = (&function.name, function.length);
            problems.push(format!("{shown}:{} {name} has {length} lines", function.line));
        }
        if !owns_time(&shown) {
            for (index, line) in text.lines().enumerate() {
                if let Some(word) = AMBIENT.iter().find(|word| line.contains(**word)) {
                    problems.push(format!(
                        "{shown}:{} says {word}: take time from `env`, and leave threads to `server`",
                        index + 1
                    ));
                }
            }
        }
        if has_documentation_test(&text) {
            problems
                .push(format!("{shown} has code in its documentation, which no step runs: make it a test"));
        }
        // Written so that this file does not find itself.
        for word in ["TO\u{44}O", "FIX\u{4d}E", "#[ign\u{6f}re"] {
            for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
                problems.push(format!("{shown}:{} says {word}", index + 1));
            }
        }
    }
    Ok(())
}

/// What a simulator could not own: clocks, timers, tasks and threads of the machine.
const AMBIENT: &[&str] = &[
    "SystemTime",
    "std::time::Instant",
    "Duration, Instant}",
    "tokio::time",
    "tokio::spawn",
    "spawn_blocking",
    "thread::Builder",
    "thread::park",
    "thread::scope",
    "thread::sleep",
    "thread::spawn",
];

/// Whether a file may use them: `env` gives time to everybody; programs, tests and the engines of storage and scripts have
/// threads and clocks of their own, clients among them; and so have the threads for queries, which can be done without.
fn owns_time(shown: &str) -> bool {
    let owners = [
        "env",
        "kv-fjall",
        "kv-postgres",
        "script",
        "gateway",
        "server",
        "client",
        "tools",
        "shell",
        "testkit",
        "postgres-fixture",
    ];
    let parts = ["database/src/workers", "kv/src/contract/"];
    let Some(rest) = shown.strip_prefix("crates/") else { return true };
    let (name, file) = rest.split_once('/').unwrap_or((rest, ""));
    owners.contains(&name) || !file.starts_with("src/") || parts.iter().any(|part| rest.starts_with(part))
}

/// Whether comments for documentation hold a block that `cargo test` would compile.
fn has_documentation_test(text: &str) -> bool {
    let comments = text.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    let mut fences = comments.filter_map(|comment| comment.trim_start().strip_prefix("```")).step_by(2);
    fences.any(|language| matches!(language.trim(), "" | "rust" | "no_run" | "should_panic"))
}

/// The tour and the guarantees name real functions and cases: `path/to/file.rs` `function_name()` pairs in backticks must
/// exist, and so must `path/to/file.case`.
fn check_documents(problems: &mut Vec<String>) -> anyhow::Result<()> {
    for document in ["docs/life-of-a-write.md", "docs/guarantees.md"] {
        let text = sources::read(&sources::root().join(document))?;
        let mut file: Option<String> = None;
        for piece in text.split('`').skip(1).step_by(2) {
            let extension = std::path::Path::new(piece).extension().and_then(|extension| extension.to_str());
            if extension == Some("case") && !sources::root().join(piece).is_file() {
                problems.push(format!("{document} names {piece}, which is not there"));
            }
            if extension == Some("rs") {
                let path = sources::root().join(piece);
                let content = sources::read(&path).with_context(|| format!("{document} names {piece}"));
                match content {
                    Ok(content) => file = Some(content),
                    Err(error) => problems.push(format!("{error:#}")),
                }
            } else if let (Some(name), Some(content)) = (piece.strip_suffix("()"), &file)
                && !content.contains(&format!("fn {name}("))
                && !content.contains(&format!("fn {name}<"))
            {
                problems.push(format!("{document} names {name}(), which is not in the file named before it"));
            }
        }
    }
    Ok(())
}

/// Counts expectations that are only guesses, so that they are seen.
fn check_case_sources() -> anyhow::Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut folders = vec![sources::root().join("tests/rest")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "case") {
                for line in sources::read(&path)?.lines() {
                    if let Some(source) = line.strip_prefix("from:") {
                        *counts.entry(source.trim().to_owned()).or_default() += 1;
                    }
                }
            }
        }
    }
    println!("tidy: sources of REST expectations: {counts:?}");
    Ok(())
}
