//! What Tab offers: commands, names of the account, keywords, functions, and the properties of the container's documents.
//!
//! In: the text before the cursor. Out: where the replaced part begins, and what could stand there. What comes from the server is asked
//! for with a bound on time and number, remembered for a while, and left out if it could harm a terminal.

use crate::commands::COMMANDS;
use crate::json_text::quoted;
use crate::place::ShellPlace;
use crate::rows::OutputMode;
use crate::schema::SchemaTree;
use crate::session::Shell;
use crate::statement;
use astrarium_client::{QueryRequest, ScriptKind, harmless};
use astrarium_env::Instant;
use astrarium_value::json::Text;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest time that Tab may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Names that are offered at most.
const OFFERED_MAX: usize = 100;
/// How long names count.
const AGE_MAX: Duration = Duration::from_secs(10);

/// The words of the language that people type.
const KEYWORDS: &[&str] = &[
    "SELECT",
    "VALUE",
    "DISTINCT",
    "TOP",
    "FROM",
    "AS",
    "IN",
    "JOIN",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "EXISTS",
    "ARRAY",
    "GROUP",
    "BY",
    "ORDER",
    "ASC",
    "DESC",
    "RANK",
    "OFFSET",
    "LIMIT",
    "null",
    "true",
    "false",
    "undefined",
    "udf",
];
/// What aggregates; the table of functions has the others.
const AGGREGATES: &[&str] = &["COUNT", "SUM", "AVG", "MIN", "MAX"];

/// Names of the account that were asked for.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    known: BTreeMap<String, (Instant, Vec<String>)>,
}

/// What could stand before the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Where the replaced part begins.
    pub(crate) start: usize,
    pub(crate) words: Vec<String>,
}

/// What kind of thing is being typed.
#[derive(Debug, PartialEq, Eq)]
enum Typed<'a> {
    Nothing,
    /// One of a fixed list.
    OneOf {
        start: usize,
        partial: &'a str,
        words: Vec<&'static str>,
    },
    Path {
        start: usize,
        partial: &'a str,
        with_items: bool,
    },
    Procedure {
        start: usize,
        partial: &'a str,
    },
    /// A keyword or function.
    Word {
        start: usize,
        partial: &'a str,
    },
    /// A property: where its dot is, and the names from the document on.
    Member {
        dot: usize,
        path: Vec<String>,
        partial: &'a str,
    },
}

/// What Tab offers for a text that ends at the cursor.
pub(crate) fn complete(shell: &mut Shell, runtime: &Runtime, text: &str) -> Offers {
    let found = match typed(text) {
        Typed::Nothing => Offers { start: text.len(), words: Vec::new() },
        Typed::OneOf { start, partial, words } => {
            let fitting = words.into_iter().filter(|word| word.starts_with(partial)).map(str::to_owned);
            Offers { start, words: fitting.collect() }
        }
        Typed::Word { start, partial } => Offers { start, words: language_words(partial) },
        Typed::Path { start, partial, with_items } => {
            let words = patiently(runtime, paths(shell, partial, with_items));
            Offers { start, words }
        }
        Typed::Procedure { start, partial } => {
            let names = patiently(runtime, procedures(shell));
            Offers { start, words: names.into_iter().filter(|name| name.starts_with(partial)).collect() }
        }
        Typed::Member { dot, path, partial } => {
            let tree = patiently(runtime, schema(shell));
            Offers { start: dot, words: members(&tree, &path, partial) }
        }
    };
    let words = found.words.into_iter().filter(|word| matches!(harmless(word), Cow::Borrowed(_)));
    Offers { start: found.start, words: words.take(OFFERED_MAX).collect() }
}

fn patiently<T: Default>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await }).unwrap_or_default()
}

fn typed(text: &str) -> Typed<'_> {
    let lead = text.len() - statement::after_comments(text).len();
    let rest = &text[lead..];
    let Some(gap) = rest.find(char::is_whitespace) else {
        let words = COMMANDS.iter().flat_map(|entry| entry.names).copied();
        let words = words.chain(if rest.chars().next().is_some_and(char::is_lowercase) {
            ["select"]
        } else {
            ["SELECT"]
        });
        return Typed::OneOf { start: lead, partial: rest, words: words.collect() };
    };
    let command = &rest[..gap];
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let partial = &text[start..];
    let is_first = rest[gap..start - lead].trim().is_empty();
    match command {
        "cd" | "ls" if is_first => Typed::Path { start, partial, with_items: false },
        "cat" | "get" | "rm" | ".edit" if is_first => Typed::Path { start, partial, with_items: true },
        ".mode" if is_first => {
            Typed::OneOf { start, partial, words: OutputMode::NAMES.iter().map(|(name, _)| *name).collect() }
        }
        ".set" if is_first => {
            Typed::OneOf { start, partial, words: vec!["timing", "system", "pager", "key", "page"] }
        }
        ".set" => Typed::OneOf { start, partial, words: vec!["on", "off"] },
        ".sproc" if is_first => Typed::OneOf { start, partial, words: vec!["ls", "run"] },
        ".sproc" if rest[gap..start - lead].trim() == "run" => Typed::Procedure { start, partial },
        ".help" | "help" => Typed::OneOf {
            start,
            partial,
            words: COMMANDS.iter().flat_map(|entry| entry.names).copied().collect(),
        },
        ".explain" | ".index" => typed_sql(text),
        _ if statement::is_sql(rest) => typed_sql(text),
        _ => Typed::Nothing,
    }
}

/// What of a query is being typed; nothing inside quotes.
fn typed_sql(text: &str) -> Typed<'_> {
    let mut quote = None;
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '\'') => quote = Some(character),
            _ => {}
        }
    }
    if quote.is_some() {
        return Typed::Nothing;
    }
    let start = word_start(text);
    let partial = &text[start..];
    let Some(before) = text[..start].strip_suffix('.') else { return Typed::Word { start, partial } };
    match path_before(before) {
        Some(path) => Typed::Member { dot: start - 1, path: resolved(text, path), partial },
        None => Typed::Nothing,
    }
}

fn word_start(text: &str) -> usize {
    text.rfind(|one: char| !(one.is_alphanumeric() || matches!(one, '_' | '$')))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))
}

/// The names of the path that a text ends with: `c.a[0]["b"]` gives c, a, b.
fn path_before(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        if let Some(inner) = rest.strip_suffix(']') {
            let open = inner.rfind('[')?;
            let name = inner[open + 1..].trim();
            if let Some(name) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                names.push(name.to_owned());
            }
            rest = &inner[..open];
            continue;
        }
        let start = word_start(rest);
        if start == rest.len() {
            return None;
        }
        names.push(rest[start..].to_owned());
        rest = &rest[..start];
        match rest.strip_suffix('.') {
            Some(before) => rest = before,
            None => break,
        }
    }
    names.reverse();
    Some(names)
}

/// A path from the document on: the alias is left out, or replaced by what it stands for (`t IN c.tags`).
fn resolved(text: &str, path: Vec<String>) -> Vec<String> {
    let mut path = path;
    // As many steps as a query has joins at most; a name that stands for itself ends it.
    for _ in 0..8 {
        let Some(alias) = path.first() else { return path };
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = words.windows(3).find(|three| three[0] == alias && three[1].eq_ignore_ascii_case("in"));
        let Some(source) = found.and_then(|three| path_before(three[2].trim_end_matches([',', ';']))) else {
            return path.split_off(1);
        };
        path = source.into_iter().chain(path.into_iter().skip(1)).collect();
    }
    path
}

/// Keywords and functions that begin with what was typed, in the same case.
fn language_words(partial: &str) -> Vec<String> {
    let is_lower = partial.chars().next().is_some_and(char::is_lowercase);
    let functions =
        astrarium_sql_functions::all().map(|function| function.name).chain(AGGREGATES.iter().copied());
    let functions = functions.map(|name| format!("{name}("));
    let words = KEYWORDS.iter().map(|word| (*word).to_owned()).chain(functions);
    let fits = |word: &String| {
        word.len() > partial.len()
            && word.get(..partial.len()).is_some_and(|start| start.eq_ignore_ascii_case(partial))
    };
    let mut fitting: Vec<String> =
        words.filter(fits).map(|word| if is_lower { word.to_lowercase() } else { word }).collect();
    fitting.sort();
    fitting.dedup();
    fitting
}

/// Properties at a place; those that cannot stand after a dot are in brackets, in place of the dot.
fn members(tree: &SchemaTree, path: &[String], partial: &str) -> Vec<String> {
    let Some(place) = tree.at(path.iter().map(String::as_str)) else { return Vec::new() };
    let fitting = place.names().filter(|name| name.to_lowercase().starts_with(&partial.to_lowercase()));
    let written = |name: &str| {
        if astrarium_sql_syntax::is_plain_name(name) {
            format!(".{name}")
        } else {
            format!("[{}]", quoted(name))
        }
    };
    fitting.map(written).collect()
}

async fn schema(shell: &mut Shell) -> SchemaTree {
    let Ok(container) = shell.current_container().await else { return SchemaTree::default() };
    shell.schemas.of(&container).await
}

async fn procedures(shell: &mut Shell) -> Vec<String> {
    let Ok(container) = shell.current_container().await else { return Vec::new() };
    ids(&container.scripts(ScriptKind::Procedure).await.unwrap_or_default())
}

/// Names that a path could end with, with what was typed before the last slash.
async fn paths(shell: &mut Shell, partial: &str, with_items: bool) -> Vec<String> {
    let (folder, leaf) = partial.rfind('/').map_or(("", partial), |at| partial.split_at(at + 1));
    let Ok(place) = shell.place.follow_path(folder) else { return Vec::new() };
    let bare = leaf.strip_prefix('"').unwrap_or(leaf);
    let names = names_at(shell, &place, bare, with_items).await;
    let ending = if place.depth() == 0 || (place.depth() == 1 && with_items) { "/" } else { "" };
    let fitting = names.into_iter().filter(|name| name.starts_with(bare));
    let written = |name: String| {
        let is_plain = !name
            .contains(|one: char| one.is_whitespace() || matches!(one, '"' | '\'' | '/' | '\\'))
            && !name.starts_with(['-', '{', '[']);
        match (is_plain, folder.is_empty()) {
            (true, _) => Some(format!("{folder}{name}{ending}")),
            (false, true) => Some(format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))),
            (false, false) => None,
        }
    };
    fitting.filter_map(written).collect()
}

async fn names_at(shell: &mut Shell, place: &ShellPlace, prefix: &str, with_items: bool) -> Vec<String> {
    let memory = if place.depth() == 2 { format!("{place}\n{prefix}") } else { place.to_string() };
    if let Some((taken, names)) = shell.names.known.get(&memory)
        && taken.elapsed() < AGE_MAX
    {
        return names.clone();
    }
    let names = match (place.database(), place.container()) {
        (None, _) => ids(&shell.client.databases().await.unwrap_or_default()),
        (Some(database), None) => ids(&shell.client.containers(database).await.unwrap_or_default()),
        (_, Some((database, container))) if with_items && place.depth() == 2 => {
            let (database, container) = (database.to_owned(), container.to_owned());
            items(shell, &database, &container, prefix).await
        }
        _ => return Vec::new(),
    };
    if shell.names.known.len() > 200 {
        shell.names.known.clear();
    }
    shell.names.known.insert(memory, (Instant::now(), names.clone()));
    names
}

async fn items(shell: &mut Shell, database: &str, container: &str, prefix: &str) -> Vec<String> {
    let Ok(container) = shell.container(database, container).await else { return Vec::new() };
    let mut query = QueryRequest::new("SELECT c.id FROM c WHERE STARTSWITH(c.id, @prefix)");
    query.parameters = vec![("@prefix".to_owned(), quoted(prefix))];
    query.page_size = Some(OFFERED_MAX as u32);
    let page = container.query(query).next_page().await.ok().flatten();
    let id = |item: &bytes::Bytes| Some(Text::parse(item).ok()?.root().get("id")?.as_str()?.into_owned());
    page.map(|page| page.items.iter().filter_map(id).collect()).unwrap_or_default()
}

fn ids(definitions: &[Value]) -> Vec<String> {
    definitions.iter().filter_map(|one| Some(one.get("id")?.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema_of;

    fn member(text: &str) -> Option<(usize, Vec<String>, &str)> {
        match typed(text) {
            Typed::Member { dot, path, partial } => Some((dot, path, partial)),
            _ => None,
        }
    }

    #[test]
    fn properties() {
        assert_eq!(member("SELECT c.ad"), Some((8, vec![], "ad")));
        assert_eq!(member("SELECT c.address.ci"), Some((16, vec!["address".to_owned()], "ci")));
        assert_eq!(
            member("SELECT c.tags[0][\"a b\"]."),
            Some((23, vec!["tags".to_owned(), "a b".to_owned()], ""))
        );
        let joined = "SELECT * FROM c JOIN t IN c.tags WHERE t.na";
        assert_eq!(member(joined), Some((joined.len() - 3, vec!["tags".to_owned()], "na")));
        assert_eq!(member("SELECT 'c.a"), None);
        assert!(member("SELECT x IN x.y WHERE x.").is_some(), "a name that stands for itself ends");
        let tree = schema_of(&["{\"id\":1,\"address\":{\"city\":1,\"zip code\":2},\"order\":1}"]);
        assert_eq!(members(&tree, &[], "a"), [".address"]);
        assert_eq!(members(&tree, &[], "ord"), ["[\"order\"]"]);
        assert_eq!(members(&tree, &["address".to_owned()], ""), [".city", "[\"zip code\"]"]);
    }

    #[test]
    fn words_and_commands() {
        assert!(language_words("STARTS").contains(&"STARTSWITH(".to_owned()));
        assert_eq!(language_words("whe"), ["where"]);
        assert!(matches!(typed("SELECT * FROM c WH"), Typed::Word { start: 16, partial: "WH" }));
        assert!(matches!(typed(".explain SELECT * FR"), Typed::Word { partial: "FR", .. }));
        assert!(matches!(typed("cat a"), Typed::Path { start: 4, partial: "a", with_items: true }));
        assert!(matches!(typed(".sproc run x"), Typed::Procedure { start: 11, partial: "x" }));
        assert!(matches!(typed("put {"), Typed::Nothing));
        let Typed::OneOf { words, partial: ".ex", .. } = typed(".ex") else { panic!("commands") };
        assert!(words.contains(&".explain"));
        for text in ["", " ", "é", "SELECT é.", "SELECT ]", "SELECT a].", "SELECT .", "SELECT [.", "-- x"] {
            let _ = typed(text);
        }
    }
}
