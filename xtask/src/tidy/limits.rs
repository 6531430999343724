//! The table of limits against the source: every constant that `docs/limits.md` names is there, with that value.

use crate::sources;

pub(super) fn check(problems: &mut Vec<String>) -> anyhow::Result<()> {
    let page = sources::read(&sources::root().join("docs/limits.md"))?;
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("`crates/"));
    let mut count = 0;
    for row in rows {
        count += 1;
        let Some((file, name, value)) = named(row) else {
            problems.push(format!("docs/limits.md: a row does not end with `file` `NAME` = `value`: {row}"));
            continue;
        };
        let text = sources::read(&sources::root().join(file)).unwrap_or_default();
        if !has(&text, name, value) {
            problems.push(format!("docs/limits.md: {file} has no constant {name} with the value {value}"));
        }
    }
    anyhow::ensure!(count > 0, "docs/limits.md has no limits");
    Ok(())
}

/// The last cell of a row: file, constant and value.
fn named(row: &str) -> Option<(&str, &str, &str)> {
    let mut words = row.rsplit_once("| `")?.1.split('`').filter(|word| !word.trim().is_empty());
    let (file, name) = (words.next()?, words.next()?);
    let equals = words.next()?;
    (equals.trim() == "=").then_some((file, name, words.next()?))
}

fn has(text: &str, name: &str, value: &str) -> bool {
    text.lines().any(|line| {
        let declared = line.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let rest = declared.strip_prefix("const ").and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(':') && rest.ends_with(&format!(" = {value};")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_a_constant() {
        let row = "| what | 2 MB | 413 | `crates/x/y.rs` `A_MAX` = `2 << 20` |";
        assert_eq!(named(row), Some(("crates/x/y.rs", "A_MAX", "2 << 20")));
        assert_eq!(named("| what | `crates/x/y.rs` `A_MAX` |"), None);
        assert!(has("/// Most.\npub const A_MAX: usize = 2 << 20;", "A_MAX", "2 << 20"));
        assert!(!has("const A_MAX: usize = 1 << 20;", "A_MAX", "2 << 20"));
        assert!(!has("const A_MAXIMUM: usize = 7;", "A_MAX", "7"));
    }
}
