//! Runs a case file against a server: prepares, sends, compares, reports.
//!
//! In: the text of a file and a fresh [`Server`]. Out: nothing, or a report with the request, the response and each
//! difference; or, when updating, the text with today's answers.
//! Invariants
//! - The first case that fails ends the file: what follows builds upon it.
//! - Updating changes only lines after `----`, and only of cases that fail.
//!
//! Not here: finding files and choosing engines (`tests/rest.rs`).

use crate::case_file::{Case, CaseFile, CaseStep, Expected, ExpectedBody};
use crate::client::Client;
use crate::http::Response;
use crate::json::{self, Json};
use crate::pattern::Variables;
use crate::request::{Credential, Date, Key, Request};
use crate::rewrite;
use crate::server::Server;
use std::fmt::Write as _;

/// Most bytes of a body in a report.
const SHOWN_BYTES_MAX: usize = 4_000;

/// Runs a file; an error is the report of the first case that fails.
pub fn run(text: &str, server: &Server) -> Result<(), String> {
    let file = CaseFile::parse(text)?;
    let mut runner = Runner::new(server);
    for step in &file.steps {
        let failure = runner.step(step)?;
        if let Some(failure) = failure {
            return Err(failure.report);
        }
    }
    Ok(())
}

/// Runs a file and gives its text with the answers of failing cases replaced.
pub fn update(text: &str, server: &Server) -> Result<String, String> {
    let file = CaseFile::parse(text)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut runner = Runner::new(server);
    let mut replaced = Vec::new();
    for step in &file.steps {
        if let (CaseStep::Case(case), Some(failure)) = (step, runner.step(step)?) {
            replaced.push((
                case.expected_lines.clone(),
                rewrite::expected_lines(&case.expected, &failure.response),
            ));
        }
    }
    for (range, new) in replaced.into_iter().rev() {
        lines.splice(range, new);
    }
    Ok(lines.join("\n") + "\n")
}

struct CaseFailure {
    report: String,
    response: Response,
}

struct Runner<'a> {
    server: &'a Server,
    client: Client,
    variables: Variables,
}

impl<'a> Runner<'a> {
    fn new(server: &'a Server) -> Runner<'a> {
        Runner { server, client: server.client(), variables: Variables::default() }
    }

    fn step(&mut self, step: &CaseStep) -> Result<Option<CaseFailure>, String> {
        match step {
            CaseStep::Given { line, text } => {
                self.given(text).map_err(|error| format!("line {line}: given {text}: {error}"))?;
                Ok(None)
            }
            CaseStep::Case(case) => self.case(case).map_err(|error| format!("line {}: {error}", case.line)),
        }
    }

    /// Makes something, and remembers its rid, link and etag under its id.
    fn given(&mut self, text: &str) -> Result<(), String> {
        let (id, request) = given_request(text)?;
        let response = self.client.send(&request).map_err(|error| error.to_string())?;
        if response.status != 201 {
            return Err(format!("answered {} {}", response.status, response.text()));
        }
        let body = Json::parse(&response.text())?;
        for (name, member) in [("rid", "_rid"), ("self", "_self"), ("etag", "_etag")] {
            let value = body.get(member).and_then(Json::as_text).unwrap_or_default();
            self.variables.set(&format!("{id}.{name}"), value);
        }
        Ok(())
    }

    fn case(&mut self, case: &Case) -> Result<Option<CaseFailure>, String> {
        if let Some(seconds) = case.directive("clock") {
            let seconds =
                seconds.parse().map_err(|_| format!("clock: {seconds} is not a number of seconds"))?;
            self.server.clock().advance_seconds(seconds);
        }
        self.server.let_go();
        let request = self.request(case)?;
        let response = self
            .client
            .send(&request)
            .map_err(|error| format!("{} {} was not answered: {error}", request.verb, request.target))?;
        let differences = self.differences(&case.expected, &response);
        if differences.is_empty() {
            return Ok(None);
        }
        let report = report(case.line, &request, &response, &differences);
        Ok(Some(CaseFailure { report, response }))
    }

    fn request(&self, case: &Case) -> Result<Request, String> {
        let mut request = Request::new(&case.verb, &self.variables.fill(&case.target)?);
        for (name, value) in case.sent_headers() {
            request.headers.push((name.clone(), self.variables.fill(value)?));
        }
        request.body = match case.directive("bytes") {
            Some(escaped) => unescape(&self.variables.fill(escaped)?)?,
            None => self.variables.fill_body(&case.body)?.into_bytes(),
        };
        request.credential = match (case.directive("sign"), case.directive("token"), case.directive("key")) {
            (Some("none"), None, None) => Credential::None,
            (None, Some(token), None) => Credential::Token(self.variables.fill(token)?),
            (None, None, key) => Credential::Key(key_of(key.unwrap_or("primary"))?),
            _ => return Err("give one of sign: none, token: and key:".to_owned()),
        };
        request.date = match case.directive("date") {
            None => Date::Offset(0),
            Some("none") => Date::None,
            Some(text) => Date::Offset(text.parse().map_err(|_| format!("date: {text} is not a number"))?),
        };
        Ok(request)
    }

    fn differences(&mut self, expected: &Expected, response: &Response) -> Vec<String> {
        let mut differences = Vec::new();
        if response.status != expected.status {
            differences.push(format!("status: expected {}, got {}", expected.status, response.status));
        }
        for (name, pattern) in &expected.headers {
            let actual = response.header(name);
            let matched = match actual {
                None => Ok(pattern == "<absent>"),
                Some(_) if pattern == "<absent>" => Ok(false),
                Some(actual) => self.variables.matches(pattern, actual),
            };
            match matched {
                Ok(true) => {}
                Ok(false) => differences.push(format!("{name}: expected {pattern}, got {actual:?}")),
                Err(error) => differences.push(format!("{name}: {error}")),
            }
        }
        self.compare_body(&expected.body, response, &mut differences);
        differences
    }

    fn compare_body(&mut self, expected: &ExpectedBody, response: &Response, differences: &mut Vec<String>) {
        let text = response.text();
        match expected {
            ExpectedBody::Anything => {}
            ExpectedBody::Empty if text.is_empty() => {}
            ExpectedBody::Empty => differences.push("body: expected none".to_owned()),
            ExpectedBody::Text(pattern) => match self.variables.matches(pattern, &text) {
                Ok(true) => {}
                Ok(false) => differences.push(format!("body: expected the text {pattern}")),
                Err(error) => differences.push(format!("body: {error}")),
            },
            ExpectedBody::Json(pattern) => match Json::parse(&text) {
                Ok(actual) => self.variables.compare(pattern, &actual, "body", differences),
                Err(error) => differences.push(format!("body: {error}")),
            },
        }
    }
}

/// The request that makes what a `given` line names, and the id of it.
fn given_request(text: &str) -> Result<(String, Request), String> {
    let (kind, rest) = text.split_once(' ').ok_or("a given line needs a name")?;
    let (place, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (owner, id) = place.split_once('/').unwrap_or(("", place));
    let request = match kind {
        "database" => Request::new("POST", "/dbs").body(format!("{{\"id\":\"{place}\"}}")),
        "user" => Request::new("POST", &format!("/dbs/{owner}/users")).body(format!("{{\"id\":\"{id}\"}}")),
        "container" => {
            let definition = match rest.strip_prefix('{') {
                Some(members) => format!("{{\"id\":\"{id}\",{members}"),
                None => format!(
                    "{{\"id\":\"{id}\",\"partitionKey\":{{\"paths\":[\"{rest}\"],\"kind\":\"Hash\",\"version\":2}}}}"
                ),
            };
            Request::new("POST", &format!("/dbs/{owner}/colls")).body(definition)
        }
        "item" => {
            let (key, body) = rest.split_once(" {").ok_or("an item needs a partition key and a body")?;
            let body = format!("{{{body}");
            let item_id =
                Json::parse(&body)?.get("id").and_then(Json::as_text).unwrap_or_default().to_owned();
            let target = format!("/dbs/{owner}/colls/{id}/docs");
            return Ok((item_id, Request::new("POST", &target).partition_key(key).body(body)));
        }
        "sproc" | "udf" | "trigger" => return given_script(kind, owner, id, rest),
        _ => return Err(format!("a given line cannot make a {kind}")),
    };
    Ok((id.to_owned(), request))
}

/// The request that makes a script of a container: `place` is the container's id and the script's.
fn given_script(kind: &str, owner: &str, place: &str, rest: &str) -> Result<(String, Request), String> {
    let (container, id) = place.split_once('/').ok_or("a script needs database/container/id")?;
    let mut definition = vec![("id", id)];
    let mut source = rest;
    if kind == "trigger" {
        let mut words = rest.splitn(3, ' ');
        for name in ["triggerType", "triggerOperation"] {
            definition.push((name, words.next().unwrap_or_default()));
        }
        source = words.next().ok_or("a trigger needs a type, an operation and its source")?;
    }
    definition.push(("body", source));
    let members: Vec<String> =
        definition.iter().map(|(name, text)| format!("\"{name}\":\"{}\"", json::escape(text))).collect();
    let target = format!("/dbs/{owner}/colls/{container}/{kind}s");
    Ok((id.to_owned(), Request::new("POST", &target).body(format!("{{{}}}", members.join(",")))))
}

fn key_of(name: &str) -> Result<Key, String> {
    match name {
        "primary" => Ok(Key::Primary),
        "secondary" => Ok(Key::Secondary),
        "read-only" => Ok(Key::ReadOnly),
        "secondary-read-only" => Ok(Key::SecondaryReadOnly),
        "wrong" => Ok(Key::Unknown),
        _ => Err(format!("there is no key {name}")),
    }
}

/// Bytes written with `\xFF`, `\n`, `\r`, `\t` and `\\`.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let wrong = || format!("bytes: unknown escape before {after:?}");
        let letter = after.chars().next().ok_or_else(wrong)?;
        rest = &after[letter.len_utf8()..];
        match letter {
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            '\\' => bytes.push(b'\\'),
            'x' => {
                let digits = rest.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.push(digits.ok_or_else(wrong)?);
                rest = &rest[2..];
            }
            _ => return Err(wrong()),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn report(line: usize, request: &Request, response: &Response, differences: &[String]) -> String {
    let mut text = format!("line {line}:\n");
    for difference in differences {
        let _ = writeln!(text, "  * {difference}");
    }
    let _ = writeln!(text, "request:\n  {} {}", request.verb, request.target);
    for (name, value) in &request.headers {
        let _ = writeln!(text, "  {name}: {value}");
    }
    let _ = writeln!(text, "  {}", shown(&request.body));
    let _ = writeln!(text, "response:\n  {}", response.status);
    for (name, value) in &response.headers {
        let _ = writeln!(text, "  {name}: {value}");
    }
    let _ = writeln!(text, "  {}", shown(&response.body));
    text
}

fn shown(body: &[u8]) -> String {
    let start = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let text = String::from_utf8_lossy(start).into_owned();
    if start.len() < body.len() { format!("{text}... ({} bytes)", body.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_expectation_is_reported_and_updated() {
        let text = "# T.\nfrom: docs\nPOST /dbs\n{\"id\":\"d\"}\n---- 200\netag: <save:e>\n{\"id\":\"x\",\"_rid\":\"<any>\"}\n\nfrom: docs\nGET /dbs/d\nif-none-match: <e>\n---- 304\n";
        let report = run(text, &Server::in_memory()).unwrap_err();
        for part in
            ["line 3:", "status: expected 200, got 201", "body.id: expected \"x\", got \"d\"", "POST /dbs"]
        {
            assert!(report.contains(part), "{part} in {report}");
        }
        let updated = update(text, &Server::in_memory()).unwrap();
        assert!(updated.contains("---- 201\netag: <save:e>\n{\"id\":\"d\",\"_rid\":\"<any>\","), "{updated}");
        run(&updated, &Server::in_memory()).unwrap();
        assert_eq!(update(&updated, &Server::in_memory()).unwrap(), updated);
    }

    #[test]
    fn bytes_are_unescaped() {
        assert_eq!(unescape("a\\xFF\\n\\\\b"), Ok(b"a\xFF\n\\b".to_vec()));
        assert!(unescape("\\q").is_err() && unescape("\\x1").is_err() && unescape("\\").is_err());
    }
}
