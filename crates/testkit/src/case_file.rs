//! The text of a case file, taken apart.
//!
//! ```text
//! # What the file shows.
//! given database d
//! given container d/c /pk
//! given item d/c ["a"] {"id":"1","pk":"a"}
//!
//! # What this case shows.
//! from: docs
//! POST /dbs/d/colls/c/docs
//! x-ms-documentdb-partitionkey: ["a"]
//! {"id":"2","pk":"a"}
//! ---- 201
//! etag: <save:etag>
//! {"id":"2","pk":"a","_rid":"<any>",...}
//! ```
//! Blocks stand apart by empty lines. What is given may also be a `sproc d/c/id`, `udf d/c/id` or `trigger d/c/id Pre
//! Create`, each followed by its source, which goes on in lines that are indented. A request's lines before its body are headers, or one of the directives `from`
//! (docs, emulator, sdk or guess: who says that this is the answer), `sign: none`, `key` (primary, secondary,
//! read-only, secondary-read-only, wrong), `token`, `date` (seconds from now, or none; any other value is the header),
//! `clock` (seconds to move the server's clock before), and `bytes` (the body, with escapes such as `\xFF`). After
//! `----` stand the status, those headers that matter (`<absent>` for none), and the body: JSON, or after `text ` exact
//! text, or `...` for whatever; nothing for an empty body.
//! Not here: running (`case_runner`), comparing (`pattern`).

use crate::json::Json;
use std::ops::Range;

/// Names of directives besides `date`; every other name before the body is a header.
const DIRECTIVES: [&str; 6] = ["from", "sign", "key", "token", "clock", "bytes"];
/// Who may vouch for an expectation.
const SOURCES: [&str; 4] = ["docs", "emulator", "sdk", "guess"];

/// A whole file.
#[derive(Debug)]
pub struct CaseFile {
    /// What happens, in order.
    pub steps: Vec<CaseStep>,
}

/// One thing that happens.
#[derive(Debug)]
pub enum CaseStep {
    /// Something that is made beforehand.
    Given {
        /// Number of its line, from 1.
        line: usize,
        /// What stands after `given`.
        text: String,
    },
    /// A request and its response.
    Case(Case),
}

/// A request and the response that is expected.
#[derive(Debug)]
pub struct Case {
    /// Number of the request line, from 1.
    pub line: usize,
    /// The verb.
    pub verb: String,
    /// The target, with holes.
    pub target: String,
    /// Directives and headers in their order, with holes.
    pub headers: Vec<(String, String)>,
    /// The body, with holes.
    pub body: String,
    /// What should come back.
    pub expected: Expected,
    /// The lines from `----` to the end of the case, counted from 0.
    pub expected_lines: Range<usize>,
}

impl Case {
    /// The value of a directive.
    pub fn directive(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, value)| own == name && is_directive(own, value));
        found.map(|(_, value)| value.as_str())
    }

    /// The headers that are sent.
    pub fn sent_headers(&self) -> impl Iterator<Item = &(String, String)> {
        self.headers.iter().filter(|(name, value)| !is_directive(name, value))
    }
}

/// The response that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The status.
    pub status: u16,
    /// Headers that matter: names and patterns.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: ExpectedBody,
}

/// The body that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedBody {
    /// None.
    Empty,
    /// Whatever.
    Anything,
    /// This text, with holes.
    Text(String),
    /// JSON of this form.
    Json(Json),
}

impl CaseFile {
    /// Reads a file; an error names the line.
    pub fn parse(text: &str) -> Result<CaseFile, String> {
        let lines: Vec<&str> = text.lines().collect();
        let mut steps = Vec::new();
        let mut start = 0;
        while start < lines.len() {
            let length = lines[start..].iter().position(|line| line.trim().is_empty());
            let end = length.map_or(lines.len(), |length| start + length);
            parse_block(&lines, start..end, &mut steps)?;
            start = end + 1;
        }
        Ok(CaseFile { steps })
    }
}

fn parse_block(lines: &[&str], block: Range<usize>, steps: &mut Vec<CaseStep>) -> Result<(), String> {
    let end = block.end;
    let mut rest = block.filter(|index| !lines[*index].starts_with('#')).peekable();
    while let Some(index) = rest.peek().copied() {
        let Some(text) = lines[index].strip_prefix("given ") else { break };
        let mut text = text.to_owned();
        rest.next();
        while let Some(more) = rest.next_if(|index| lines[*index].starts_with(' ')) {
            text.push('\n');
            text.push_str(lines[more]);
        }
        steps.push(CaseStep::Given { line: index + 1, text });
    }
    match rest.peek().copied() {
        None => Ok(()),
        Some(start) => {
            steps.push(CaseStep::Case(parse_case(lines, start..end)?));
            Ok(())
        }
    }
}

fn parse_case(lines: &[&str], block: Range<usize>) -> Result<Case, String> {
    let at = |index: usize, problem: &str| format!("line {}: {problem}", index + 1);
    let split = block.clone().find(|index| lines[*index].starts_with("----"));
    let split = split.ok_or_else(|| at(block.start, "a case without ----"))?;
    let mut headers = Vec::new();
    let mut request_line = None;
    let mut body = Vec::new();
    for (index, line) in lines.iter().enumerate().take(split).skip(block.start) {
        match header_line(line).filter(|_| body.is_empty()) {
            Some(header) => headers.push(header),
            None if request_line.is_none() => request_line = Some(index),
            None => body.push(*line),
        }
    }
    let request_line = request_line.ok_or_else(|| at(block.start, "a case without a request line"))?;
    let (verb, target) = lines[request_line]
        .split_once(' ')
        .filter(|(verb, target)| {
            verb.chars().all(|letter| letter.is_ascii_uppercase()) && target.starts_with('/')
        })
        .ok_or_else(|| at(request_line, "not a request line such as GET /dbs"))?;
    let case = Case {
        line: request_line + 1,
        verb: verb.to_owned(),
        target: target.to_owned(),
        headers,
        body: body.join("\n"),
        expected: parse_expected(&lines[split..block.end]).map_err(|error| at(split, &error))?,
        expected_lines: split..block.end,
    };
    match case.directive("from") {
        Some(source) if SOURCES.contains(&source) => Ok(case),
        _ => Err(at(request_line, "a case needs from: docs, emulator, sdk or guess")),
    }
}

fn parse_expected(lines: &[&str]) -> Result<Expected, String> {
    let status = lines[0].trim_start_matches('-').trim();
    let status = status.parse().map_err(|_| "---- needs a status".to_owned())?;
    let mut headers = Vec::new();
    let mut body = Vec::new();
    for line in &lines[1..] {
        match header_line(line).filter(|_| body.is_empty()) {
            Some(header) => headers.push(header),
            None => body.push(*line),
        }
    }
    let body = body.join("\n");
    let body = match body.strip_prefix("text ") {
        Some(text) => ExpectedBody::Text(text.to_owned()),
        None if body.is_empty() => ExpectedBody::Empty,
        None if body == "..." => ExpectedBody::Anything,
        None => ExpectedBody::Json(Json::parse_pattern(&body)?),
    };
    Ok(Expected { status, headers, body })
}

/// Whether a line is for the runner. `Date` is also a header of the protocol, whose value is neither of these.
fn is_directive(name: &str, value: &str) -> bool {
    DIRECTIVES.contains(&name) || (name == "date" && (value == "none" || value.parse::<i64>().is_ok()))
}

/// `name: value`, if the line is one.
fn header_line(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| (name.to_ascii_lowercase(), value.trim_start().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart() {
        let text = "# Title.\ngiven database d\n\n# Shows.\nfrom: docs\nPOST /dbs\nIf-Match: *\n{\"id\":\n\"d\"}\n---- 201\netag: <any>\n{\"id\":\"d\",...}\n\nGET /dbs\nfrom: guess\n---- 204\n";
        let file = CaseFile::parse(text).unwrap();
        let [CaseStep::Given { line: 2, text }, CaseStep::Case(create), CaseStep::Case(list)] =
            file.steps.as_slice()
        else {
            panic!("{file:?}");
        };
        assert_eq!(text, "database d");
        assert_eq!((create.line, create.verb.as_str(), create.target.as_str()), (6, "POST", "/dbs"));
        assert_eq!(create.sent_headers().collect::<Vec<_>>(), [&("if-match".to_owned(), "*".to_owned())]);
        assert_eq!(create.body, "{\"id\":\n\"d\"}");
        assert_eq!((create.expected.status, create.expected_lines.clone()), (201, 9..12));
        assert_eq!((list.expected.status, &list.expected.body), (204, &ExpectedBody::Empty));
    }

    #[test]
    fn what_is_given_goes_on_in_indented_lines() {
        let text = "given sproc d/c/s function () {\n    return 1;\n }\ngiven database e\nfrom: docs\nGET /\n---- 200\n";
        let file = CaseFile::parse(text).unwrap();
        let [CaseStep::Given { text: script, .. }, CaseStep::Given { line: 4, .. }, CaseStep::Case(_)] =
            file.steps.as_slice()
        else {
            panic!("{file:?}");
        };
        assert_eq!(script, "sproc d/c/s function () {\n    return 1;\n }");
    }

    #[test]
    fn mistakes_name_their_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(CaseFile::parse(text).unwrap_err(), expected);
        };
        check("from: docs\nGET /", "line 1: a case without ----");
        check("\nGET /\n---- 200", "line 2: a case needs from: docs, emulator, sdk or guess");
        check("from: rumour\nGET /\n---- 200", "line 2: a case needs from: docs, emulator, sdk or guess");
        check("from: docs\nget /\n---- 200", "line 2: not a request line such as GET /dbs");
        check("from: docs\nGET /\n---- ok", "line 3: ---- needs a status");
        check("from: docs\n---- 200", "line 1: a case without a request line");
    }
}
