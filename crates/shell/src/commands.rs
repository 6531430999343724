//! Every command: its names, its help, and who does it. What is no command is SQL.

mod container;
mod edit;
mod habits;
mod items;
mod navigation;
mod options;
mod queries;
mod scripts;
mod watch;

use crate::failure::ShellFailure;
use crate::session::Shell;
use crate::statement;
use crate::words::{self, CommandWord};

pub(crate) use navigation::missing_container;

/// A command as help and completion know it.
pub(crate) struct CommandEntry {
    /// Its name; further ones do the same.
    pub(crate) names: &'static [&'static str],
    /// What follows it.
    pub(crate) usage: &'static str,
    pub(crate) summary: &'static str,
    /// What `.help NAME` says besides.
    pub(crate) details: &'static [&'static str],
}

const fn entry(
    names: &'static [&'static str],
    usage: &'static str,
    summary: &'static str,
    details: &'static [&'static str],
) -> CommandEntry {
    CommandEntry { names, usage, summary, details }
}

/// What is said about queries, which are no command.
pub(crate) const QUERY_HELP: &[&str] = &[
    "SELECT ... FROM c ...",
    "    a query in the container that you are in; FROM c is its items",
    "    It ends with ; or an empty line, or with Enter where it is whole. .cancel drops what was begun.",
    "    SELECT * FROM c WHERE c.author = 'Ada' ORDER BY c.year OFFSET 0 LIMIT 10",
];

/// All commands.
pub(crate) const COMMANDS: &[CommandEntry] = &[
    entry(
        &["ls"],
        "[-l] [PATH]",
        "list databases, containers or items",
        &[
            "-l has keys and times too. Paths are /DATABASE/CONTAINER, or from where you are: ls ..",
            "ls -l /library",
        ],
    ),
    entry(
        &["cd"],
        "[PATH]",
        "go to /DATABASE/CONTAINER; .. is up",
        &["Without a path it goes to the account.", "cd library/books", "cd .."],
    ),
    entry(&["pwd"], "", "tell where you are", &[]),
    entry(
        &["cat", "get"],
        "ID [--key KEY]",
        "show an item as it is stored",
        &["The partition key is only needed where several items have the id.", "cat 1 --key Ada"],
    ),
    entry(
        &["put"],
        "JSON | @FILE",
        "write an item, new or not",
        &[
            "The JSON may go over several lines.",
            "put {\"id\": \"1\", \"author\": \"Ada\"}",
            "put @item.json",
        ],
    ),
    entry(
        &["create"],
        "JSON | @FILE",
        "write a new item; fails if there is one",
        &["create {\"id\": \"1\", \"author\": \"Ada\"}"],
    ),
    entry(
        &["rm"],
        "[-y] PATH [--key KEY]",
        "remove an item, container or database",
        &["Asks before it does so; -y does not ask.", "rm 1 --key Ada", "rm -y /library/books"],
    ),
    entry(&["mkdb"], "NAME [--throughput RU]", "make a database", &["mkdb library"]),
    entry(
        &["mkcontainer"],
        "NAME /KEY... [--throughput RU]",
        "make a container",
        &["Up to three paths are a hierarchical partition key.", "mkcontainer books /author"],
    ),
    entry(
        &[".edit"],
        "ID [--key KEY]",
        "change an item in $EDITOR",
        &["It is written only if nobody changed it meanwhile; $VISUAL goes before $EDITOR."],
    ),
    entry(&[".explain"], "SQL", "tell how a query runs", &[".explain SELECT * FROM c WHERE c.year > 1900"]),
    entry(
        &[".index"],
        "[SQL]",
        "show the indexing policy, or what a query uses",
        &["With a query: the indexes that it uses, and those that would help."],
    ),
    entry(
        &[".watch"],
        "[--all] [--count N]",
        "show changes as they happen, until Ctrl-C",
        &["--all begins with what is there already; --count N ends after so many."],
    ),
    entry(
        &[".sproc"],
        "ls | run NAME [ARGUMENTS] [--key KEY]",
        "list or run stored procedures",
        &["Arguments are a JSON array.", ".sproc run archive [\"2026\", 7] --key Ada"],
    ),
    entry(
        &[".throughput"],
        "[RU | auto RU]",
        "show or change the throughput",
        &["auto is autoscale up to so many request units a second.", ".throughput auto 4000"],
    ),
    entry(&[".info"], "", "describe the account, database or container", &[]),
    entry(&[".mode"], "[table|json|jsonl|csv]", "show rows in another form", &[]),
    entry(
        &[".set"],
        "[NAME VALUE]",
        "show or change settings",
        &["Without a name all of them, with what they do.", ".set key Ada", ".set pager off"],
    ),
    entry(
        &[".params"],
        "[@NAME=VALUE...] [clear]",
        "show or set parameters of queries",
        &[
            "Values are JSON or a plain text.",
            ".params @author=Ada @year=1843",
            "SELECT * FROM c WHERE c.author = @author",
        ],
    ),
    entry(&[".help", "help"], "[COMMAND]", "tell about commands", &[]),
    entry(&[".quit", "exit", "quit"], "", "leave; Ctrl-D does too", &[]),
];

/// Runs a command or a query.
pub(crate) async fn run(shell: &mut Shell, text: &str) -> Result<(), ShellFailure> {
    let text = statement::after_comments(text).trim_end();
    if statement::is_sql(text) {
        if let Some(hint) = habits::query_hint(statement::without_terminator(text)) {
            return Err(hint);
        }
        return queries::select(shell, statement::without_terminator(text)).await;
    }
    let name = text.split_whitespace().next().unwrap_or_default();
    let rest = text.get(name.len()..).unwrap_or_default().trim();
    let name = name.trim_end_matches(';');
    let Some(entry) = COMMANDS.iter().find(|entry| entry.names.contains(&name)) else {
        if name.is_empty() || name == ".cancel" {
            return Ok(());
        }
        return Err(habits::hint(text).unwrap_or_else(|| unknown(name)));
    };
    let name = entry.names[0];
    match name {
        ".explain" => return queries::explain(shell, statement::without_terminator(rest)).await,
        ".index" if !rest.is_empty() => {
            return queries::index(shell, statement::without_terminator(rest)).await;
        }
        _ => {}
    }
    if let Some(hint) = habits::hint(text) {
        return Err(hint);
    }
    let rest = rest.strip_suffix(';').unwrap_or(rest);
    let words = words::split(rest)?;
    dispatch(shell, name, words).await
}

async fn dispatch(shell: &mut Shell, name: &str, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    match name {
        "ls" => navigation::ls(shell, words).await,
        "cd" => navigation::cd(shell, words).await,
        "pwd" => navigation::pwd(shell),
        "cat" => items::cat(shell, words).await,
        "put" => items::put(shell, words, true).await,
        "create" => items::put(shell, words, false).await,
        "rm" => items::rm(shell, words).await,
        "mkdb" => container::make_database(shell, words).await,
        "mkcontainer" => container::make_container(shell, words).await,
        ".edit" => edit::edit(shell, words).await,
        ".index" => queries::indexing_policy(shell).await,
        ".watch" => watch::watch(shell, words).await,
        ".sproc" => scripts::sproc(shell, words).await,
        ".throughput" => container::throughput(shell, words).await,
        ".info" => container::info(shell).await,
        ".mode" => options::mode(shell, words),
        ".set" => options::set(shell, words),
        ".params" => options::parameters(shell, words),
        ".help" => options::help(shell, words),
        _ => Err(ShellFailure::Leave),
    }
}

fn unknown(name: &str) -> ShellFailure {
    let known = COMMANDS.iter().flat_map(|entry| entry.names).copied().chain(["SELECT"]);
    let hint = nearest(name, known).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    ShellFailure::told(format!(
        "{name:?} is neither a command nor a query.{hint} Queries begin with SELECT; .help lists the commands."
    ))
}

/// The name that is most like a word, if one is like it at all.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower: Vec<char> = word.to_lowercase().chars().take(64).collect();
    let measured =
        names.map(|name| (distance(&lower, &name.to_lowercase().chars().take(64).collect::<Vec<_>>()), name));
    let best = measured.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= 1.max(lower.len() / 3) && best.0 < lower.len().max(1)).then_some(best.1)
}

/// How many characters must be put in, left out, changed or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, left) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, right) in b.iter().enumerate() {
            let change = above[column] + usize::from(left != right);
            let mut least = change.min(above[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && a[row - 1] == *right && *left == b[column - 1] {
                least = least.min(before[column - 1] + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness() {
        let near = |word: &str| {
            nearest(word, COMMANDS.iter().flat_map(|entry| entry.names).copied().chain(["SELECT"]))
        };
        for (word, expected) in [
            ("sl", Some("ls")),
            ("SELCT", Some("SELECT")),
            (".expalin", Some(".explain")),
            ("mkcontaner", Some("mkcontainer")),
            ("DROP", None),
            ("xyzzy", None),
        ] {
            assert_eq!(near(word), expected, "{word}");
        }
    }
}
