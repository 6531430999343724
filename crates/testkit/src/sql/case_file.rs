//! The text of a case file of the query language, taken apart.
//!
//! ```text
//! # What the file shows.
//! container {"partitionKey":"/pk"}
//! docs
//! {"id":"1","pk":"a","name":"Ada"}
//!
//! query A non-string argument gives undefined, so the property is left out.
//! from: docs
//! @prefix = "A"
//! SELECT c.id, STARTSWITH(c.name, @prefix) AS hit FROM c
//! ---- any order
//! {"id":"1","hit":true}
//!
//! values A table of expressions; c is the file's only document.
//! from: docs
//! STARTSWITH(c.name, "a") => false
//! STARTSWITH(1, "a") => undefined
//!
//! error Too few arguments: status, code, the piece of the text that is named, and how the message begins.
//! from: docs
//! SELECT STARTSWITH(c.name) FROM c
//! ----
//! 400 SC2050 STARTSWITH(c.name)
//! The STARTSWITH function requires 2 to 3 arguments.
//!
//! plan What EXPLAIN prints.
//! SELECT VALUE 1 + 1
//! ----
//! give 2
//! ```
//! Before `docs` may stand user-defined functions, `udf twice function (x) { return 2 * x; }`, with further lines indented.
//! Blocks stand apart by empty lines; a line that begins with `#` is a remark unless it is inside a query. A second
//! `container` block starts over with new documents. Further directives: `key: ["a"]` (the partition to look at),
//! `scope: closed` (cross-partition queries are not allowed), `tolerance: 1e-12` (relative, for numbers).
//! Not here: running (`runner`), comparing (`answer`).

use crate::json::Json;
use std::ops::Range;

/// Who may vouch for an expectation.
const SOURCES: [&str; 4] = ["docs", "emulator", "sdk", "guess"];

/// One block of a file.
#[derive(Debug)]
pub enum Block {
    /// A new container.
    Container(ContainerBlock),
    /// A query with its rows.
    Query(Case<Rows>),
    /// A query that is refused.
    Error(Case<Refusal>),
    /// A query with its plan.
    Plan(Case<Vec<String>>),
    /// A table of expressions.
    Values(Values),
}

/// A container and its documents.
#[derive(Debug)]
pub struct ContainerBlock {
    /// Number of its first line, from 1.
    pub line: usize,
    /// The definition without an id; `partitionKey` may be a path or a list of paths.
    pub definition: Json,
    /// User-defined functions: names and sources.
    pub functions: Vec<(String, String)>,
    /// The texts of the documents.
    pub documents: Vec<String>,
}

/// A query and what is expected of it.
#[derive(Debug)]
pub struct Case<Expected> {
    /// Number of its first line, from 1.
    pub line: usize,
    /// What it is asked with.
    pub setting: Setting,
    /// The text.
    pub query: String,
    /// What should come of it.
    pub expected: Expected,
    /// The lines after `----`, counted from 0.
    pub expected_lines: Range<usize>,
}

/// What a query is asked with besides its text.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// Parameters: names with `@`, and values.
    pub parameters: Vec<(String, Json)>,
    /// The partition to look at, as a header would name it.
    pub key: Option<String>,
    /// Whether only a filter may say which partition is meant.
    pub closed: bool,
    /// Relative difference that numbers may have.
    pub tolerance: f64,
}

/// The rows of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Patterns of the rows.
    pub rows: Vec<Json>,
    /// Whether they must come in this order.
    pub ordered: bool,
}

/// How a query is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The code, if it is known.
    pub code: Option<String>,
    /// The piece of the query that is named, if it is known.
    pub piece: Option<String>,
    /// How the message begins; empty if any will do.
    pub message: String,
}

/// A table of expressions.
#[derive(Debug)]
pub struct Values {
    /// What they are asked with.
    pub setting: Setting,
    /// The rows.
    pub entries: Vec<ValueEntry>,
}

/// One expression and its value.
#[derive(Debug)]
pub struct ValueEntry {
    /// Number of its line, from 1.
    pub line: usize,
    /// The expression.
    pub expression: String,
    /// Its value; `None` is undefined.
    pub expected: Option<Json>,
}

impl ValueEntry {
    /// Whether the expression looks at the document.
    pub fn reads_document(&self) -> bool {
        let text = &self.expression;
        text.match_indices('c').any(|(at, _)| {
            let starts =
                !text[..at].ends_with(|before: char| before.is_alphanumeric() || "_.\"'@".contains(before));
            starts
                && !text[at + 1..]
                    .starts_with(|after: char| after.is_alphanumeric() || "_(\"'".contains(after))
        })
    }
}

/// Reads a file; an error names the line.
pub fn parse(text: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let length = lines[start..].iter().position(|line| line.trim().is_empty());
        let end = length.map_or(lines.len(), |length| start + length);
        let first = (start..end).find(|index| !lines[*index].starts_with('#'));
        if let Some(first) = first {
            let block = parse_block(&lines, first..end);
            blocks.push(block.map_err(|(index, problem)| format!("line {}: {problem}", index + 1))?);
        }
        start = end + 1;
    }
    Ok(blocks)
}

/// What is wrong, and the line, counted from 0.
type Problem = (usize, String);

fn parse_block(lines: &[&str], block: Range<usize>) -> Result<Block, Problem> {
    let first = block.start;
    let (kind, _title) = lines[first].split_once(' ').unwrap_or((lines[first], ""));
    match kind {
        "container" => Ok(Block::Container(parse_container(lines, block)?)),
        "query" => Ok(Block::Query(parse_case(lines, block, true, parse_rows)?)),
        "error" => Ok(Block::Error(parse_case(lines, block, true, |_, lines| parse_refusal(lines))?)),
        "plan" => Ok(Block::Plan(parse_case(lines, block, false, |_, lines| {
            Ok(lines.iter().map(|line| (*line).to_owned()).collect())
        })?)),
        "values" => Ok(Block::Values(parse_values(lines, block)?)),
        _ => Err((first, format!("a block cannot begin with {kind:?}"))),
    }
}

fn parse_container(lines: &[&str], block: Range<usize>) -> Result<ContainerBlock, Problem> {
    let first = block.start;
    let definition = lines[first].trim_start_matches("container").trim();
    let definition = Json::parse(definition).map_err(|error| (first, error))?;
    let mut rest = lines[block.start + 1..block.end].iter().enumerate();
    let mut functions: Vec<(String, String)> = Vec::new();
    for (offset, line) in rest.by_ref() {
        match (line.strip_prefix("udf ").and_then(|function| function.split_once(' ')), functions.last_mut())
        {
            _ if *line == "docs" => break,
            (Some((name, source)), _) => functions.push((name.to_owned(), source.to_owned())),
            (None, Some((_, source))) if line.starts_with(' ') => {
                source.push('\n');
                source.push_str(line);
            }
            _ => {
                let problem = "the documents of a container stand after a line \"docs\"";
                return Err((first + 1 + offset, problem.to_owned()));
            }
        }
    }
    let documents = rest.map(|(offset, line)| match Json::parse(line) {
        Ok(_) => Ok((*line).to_owned()),
        Err(error) => Err((first + 1 + offset, error)),
    });
    let documents = documents.collect::<Result<_, _>>()?;
    Ok(ContainerBlock { line: first + 1, definition, functions, documents })
}

fn parse_case<Expected>(
    lines: &[&str],
    block: Range<usize>,
    vouched: bool,
    expected: impl Fn(&str, &[&str]) -> Result<Expected, String>,
) -> Result<Case<Expected>, Problem> {
    let split = block.clone().find(|index| lines[*index].starts_with("----"));
    let split = split.ok_or_else(|| (block.start, "a case without ----".to_owned()))?;
    let (setting, query_start) = parse_setting(lines, block.start + 1..split, vouched)?;
    let head = lines[split].trim_start_matches('-').trim();
    Ok(Case {
        line: block.start + 1,
        setting,
        query: lines[query_start..split].join("\n"),
        expected: expected(head, &lines[split + 1..block.end]).map_err(|problem| (split, problem))?,
        expected_lines: split + 1..block.end,
    })
}

/// The directives at the beginning of a case, and the first line after them.
fn parse_setting(lines: &[&str], block: Range<usize>, vouched: bool) -> Result<(Setting, usize), Problem> {
    let mut setting = Setting::default();
    let mut source = None;
    let mut after = block.end;
    for index in block.clone() {
        let line = lines[index];
        let parameter = line.strip_prefix('@').and_then(|line| line.split_once(" = "));
        let directive =
            line.split_once(": ").filter(|(name, _)| ["from", "key", "scope", "tolerance"].contains(name));
        match (parameter, directive) {
            (Some((name, value)), _) => {
                let value = Json::parse(value).map_err(|error| (index, error))?;
                setting.parameters.push((format!("@{name}"), value));
            }
            (None, Some(("from", value))) if SOURCES.contains(&value) => source = Some(value),
            (None, Some(("key", value))) => setting.key = Some(value.to_owned()),
            (None, Some(("scope", "closed"))) => setting.closed = true,
            (None, Some(("tolerance", value))) => {
                setting.tolerance = value.parse().map_err(|_| (index, "no number".to_owned()))?;
            }
            (None, Some(_)) => return Err((index, format!("unknown directive {line:?}"))),
            (None, None) if line.starts_with('#') => {}
            (None, None) => {
                after = index;
                break;
            }
        }
    }
    if vouched && source.is_none() {
        return Err((block.start, "a case needs from: docs, emulator, sdk or guess".to_owned()));
    }
    Ok((setting, after))
}

fn parse_rows(head: &str, lines: &[&str]) -> Result<Rows, String> {
    let ordered = match head {
        "" => true,
        "any order" => false,
        _ => return Err(format!("---- cannot be followed by {head:?}")),
    };
    let rows = lines.iter().map(|line| Json::parse_pattern(line));
    Ok(Rows { rows: rows.collect::<Result<_, _>>()?, ordered })
}

fn parse_refusal(lines: &[&str]) -> Result<Refusal, String> {
    let (first, message) = lines.split_first().ok_or("a refusal needs at least a status")?;
    let mut words = first.splitn(3, ' ');
    let status =
        words.next().and_then(|status| status.parse().ok()).ok_or("a refusal begins with its status")?;
    let code = words.next().filter(|code| *code != "-").map(str::to_owned);
    Ok(Refusal { status, code, piece: words.next().map(str::to_owned), message: message.join("\n") })
}

fn parse_values(lines: &[&str], block: Range<usize>) -> Result<Values, Problem> {
    let (setting, start) = parse_setting(lines, block.start + 1..block.end, true)?;
    let entries = (start..block.end).filter(|index| !lines[*index].starts_with('#')).map(|index| {
        let (expression, expected) =
            lines[index].rsplit_once(" => ").ok_or_else(|| (index, "a line needs =>".to_owned()))?;
        let expected = match expected.trim() {
            "undefined" => None,
            value => Some(Json::parse_pattern(value).map_err(|error| (index, error))?),
        };
        Ok(ValueEntry { line: index + 1, expression: expression.trim().to_owned(), expected })
    });
    Ok(Values { setting, entries: entries.collect::<Result<_, Problem>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart() {
        let text = "# Title.\ncontainer {\"partitionKey\":\"/pk\"}\ndocs\n{\"id\":\"1\"}\n\n# Remark.\nquery Shows.\n\
                    from: docs\n@p = [1]\nSELECT *\n-- remark\nFROM c\n---- any order\n{\"id\":\"1\",...}\n\n\
                    error E.\nfrom: sdk\nSELECT\n----\n400 SC1002\n\nvalues V.\nfrom: docs\n1 => 1\nNaN => undefined\n";
        let blocks = parse(text).unwrap();
        let [Block::Container(container), Block::Query(query), Block::Error(error), Block::Values(values)] =
            blocks.as_slice()
        else {
            panic!("{blocks:?}");
        };
        assert_eq!(container.documents, ["{\"id\":\"1\"}"]);
        assert_eq!((query.line, query.query.as_str()), (7, "SELECT *\n-- remark\nFROM c"));
        assert_eq!(query.setting.parameters, [("@p".to_owned(), Json::parse("[1]").unwrap())]);
        assert_eq!((query.expected.ordered, query.expected_lines.clone()), (false, 13..14));
        assert_eq!((error.expected.status, error.expected.code.as_deref()), (400, Some("SC1002")));
        assert_eq!(
            values.entries.iter().map(|entry| entry.expected.is_some()).collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err(), expected);
        check("\nquestion x", "line 2: a block cannot begin with \"question\"");
        check("query x\nfrom: docs\nSELECT 1", "line 1: a case without ----");
        check("query x\nSELECT 1\n----", "line 2: a case needs from: docs, emulator, sdk or guess");
        check("values x\nfrom: docs\n1", "line 3: a line needs =>");
        check("container {}\nx", "line 2: the documents of a container stand after a line \"docs\"");
    }

    #[test]
    fn expressions_that_read_the_document_are_known() {
        let check = |expression: &str, expected: bool| {
            let entry = ValueEntry { line: 1, expression: expression.to_owned(), expected: None };
            assert_eq!(entry.reads_document(), expected, "{expression}");
        };
        check("ABS(c.n)", true);
        check("c[\"n\"]", true);
        check("IS_OBJECT(c)", true);
        check("CONCAT('c', \"c\", @c, abc)", false);
        check("x.c + COS(1)", false);
    }
}
