//! What people type who know other shells: SQL's, MongoDB's, the system's. None of it is done; each is told what does it here.

use crate::failure::ShellFailure;
use astrarium_sql_syntax::parse;

/// First words of other shells, in lower case, and what to write instead; NAME stands for the word that follows.
const WORDS: &[(&[&str], &str)] = &[
    (&["use", "\\c", "\\u", "connect"], "cd NAME goes to a database, cd DATABASE/CONTAINER to a container"),
    (
        &["show", "\\l", "\\d", "\\dt", "list", "dir", "ll", ".databases", ".tables"],
        "ls lists databases, containers or items; ls -l says more",
    ),
    (&["describe", "desc", ".schema"], ".info describes where you are, .index shows its indexing policy"),
    (&["insert"], "put {\"id\": \"1\", ...} writes an item"),
    (&["update"], ".edit ID changes an item, put {...} replaces it: this query language only reads"),
    (
        &["delete", "remove", "del", "rmdir"],
        "rm ID removes an item, rm PATH a container or database: this query language only reads",
    ),
    (&["drop", "truncate"], "rm PATH removes a container or database"),
    (&["mkdir"], "mkdb NAME makes a database, mkcontainer NAME /KEY a container"),
    (
        &["alter"],
        ".throughput and .index show what there is; definitions are changed in the explorer or by an SDK",
    ),
    (&["explain"], ".explain SELECT ... tells how a query runs"),
    (
        &["find", "count", "aggregate", "from", "with"],
        "queries begin with SELECT: SELECT * FROM c, SELECT VALUE COUNT(1) FROM c",
    ),
    (
        &["set", "\\set", "let", "declare"],
        ".set shows and changes settings, .params @NAME=VALUE sets parameters of queries",
    ),
    (
        &["begin", "commit", "rollback", "start"],
        "there are no transactions here; a stored procedure is one, see .help .sproc",
    ),
    (&["source", "\\.", "\\i", ".read"], "astrarium shell -f FILE runs the statements of a file"),
    (&["vi", "vim", "nano", "edit"], ".edit ID changes an item in $EDITOR"),
    (&["clear", "cls"], "Ctrl-L clears the screen"),
    (&["\\q", ".exit", ".q", "bye", "logout", ":q"], ".quit or Ctrl-D leaves"),
    (&["?", "\\?", "\\h", ".h", "man"], ".help lists the commands"),
];

/// What to write instead of a command that is none here.
pub(super) fn hint(text: &str) -> Option<ShellFailure> {
    let words: Vec<&str> = text
        .split_whitespace()
        .map(|word| word.trim_end_matches(';'))
        .filter(|word| !word.is_empty())
        .collect();
    let first = words.first()?.to_lowercase();
    let second = words.get(1).map(|word| word.to_lowercase());
    // Ours too, but with JSON after it.
    if first == "create" {
        let instead = match second.as_deref()? {
            "database" | "schema" => "mkdb NAME makes a database",
            "table" | "container" | "collection" => {
                "mkcontainer NAME /KEY makes a container, with its partition key"
            }
            "index" => {
                "indexes follow the indexing policy, which .index shows; it is changed in the explorer or by an SDK"
            }
            _ => return None,
        };
        return Some(told(text, instead));
    }
    if first.starts_with("db.") || first == "db" {
        return Some(told(text, "cd DATABASE/CONTAINER, then SELECT * FROM c, put {...} and rm ID"));
    }
    let (_, instead) = WORDS.iter().find(|(names, _)| names.contains(&first.as_str()))?;
    let name = words.get(1).filter(|_| matches!(first.as_str(), "use" | "\\c" | "connect"));
    Some(match name {
        Some(name) => told(text, &format!("write: cd {name}")),
        None => told(text, instead),
    })
}

/// What is missing in a query as others write it; the server knows the rest.
pub(super) fn query_hint(text: &str) -> Option<ShellFailure> {
    let upper = text.to_uppercase();
    let words: Vec<&str> = upper.split_whitespace().collect();
    if words == ["SELECT", "*"] {
        return Some(ShellFailure::told("SELECT * needs FROM: write SELECT * FROM c"));
    }
    if parse(text).is_ok() {
        return None;
    }
    let instead = if upper.replace(' ', "").contains("COUNT(*)") {
        "COUNT takes a value: SELECT VALUE COUNT(1) FROM c"
    } else if let [.., before, "LIMIT", _] = words.as_slice()
        && !words.contains(&"OFFSET")
        && *before != "LIMIT"
    {
        "LIMIT follows OFFSET: ... OFFSET 0 LIMIT 10; or begin with SELECT TOP 10"
    } else {
        return None;
    };
    Some(ShellFailure::told(format!("this is written otherwise here. {instead}")))
}

fn told(text: &str, instead: &str) -> ShellFailure {
    let first = text.split_whitespace().next().unwrap_or_default().trim_end_matches(';');
    ShellFailure::told(format!("{first} is no command here: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    fn said(failure: Option<ShellFailure>) -> String {
        failure.map(|failure| failure.message(None)).unwrap_or_default()
    }

    #[test]
    fn other_shells() {
        for (text, fragment) in [
            ("use shop;", "write: cd shop"),
            ("USE", "cd NAME"),
            ("show databases", "ls lists"),
            ("SHOW TABLES;", "ls lists"),
            ("db.orders.find()", "SELECT * FROM c"),
            ("create table t (a int)", "mkcontainer"),
            ("create database d", "mkdb"),
            ("insert into c values (1)", "put {"),
            ("\\q", ".quit"),
            ("create {\"id\":\"1\"}", ""),
            ("ls", ""),
            ("xyzzy", ""),
        ] {
            let said = said(hint(text));
            assert!(said.contains(fragment) && said.is_empty() == fragment.is_empty(), "{text}: {said}");
        }
        let own = COMMANDS.iter().flat_map(|entry| entry.names).copied();
        let taken: Vec<&str> = own.filter(|name| hint(name).is_some()).collect();
        assert!(taken.is_empty(), "{taken:?} are commands");
    }

    #[test]
    fn queries_of_others() {
        for (text, fragment) in [
            ("select *", "FROM c"),
            ("SELECT COUNT(*) FROM c", "COUNT(1)"),
            ("SELECT * FROM c LIMIT 10", "OFFSET 0 LIMIT 10"),
            ("SELECT * FROM c OFFSET 0 LIMIT 10", ""),
            ("SELECT VALUE COUNT(1) FROM c", ""),
            ("SELECT 'COUNT(*)' AS x FROM c", ""),
            ("SELECT * FRM c", ""),
        ] {
            let said = said(query_hint(text));
            assert!(said.contains(fragment) && said.is_empty() == fragment.is_empty(), "{text}: {said}");
        }
    }
}
