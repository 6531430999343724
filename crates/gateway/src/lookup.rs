//! Queries over the small feeds of the catalog that SDKs send by themselves: one property equal to one value.
//!
//! `SELECT * FROM root r WHERE r.resource = @link` and its spellings are how every SDK finds the throughput of a
//! container. The SQL language takes this over when it comes; until then other queries get a clear refusal.

use crate::error::Failure;
use serde_json::{Map, Value};

/// `WHERE alias.property = value`, or everything.
#[derive(Debug, PartialEq)]
pub(crate) struct Lookup {
    condition: Option<(String, Value)>,
}

impl Lookup {
    /// No condition.
    pub(crate) const fn everything() -> Lookup {
        Lookup { condition: None }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.condition.is_none()
    }

    /// Reads the body of a query request.
    pub(crate) fn parse(body: &Value) -> Result<Lookup, Failure> {
        let query = body.get("query").and_then(Value::as_str).ok_or_else(|| {
            Failure::bad_request(
                "A query request needs a body of the form {\"query\": \"...\", \"parameters\": []}.",
            )
        })?;
        let parameters = body.get("parameters").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        parse_text(query, parameters).ok_or_else(unsupported)
    }

    /// Whether a resource is part of the answer.
    pub(crate) fn matches(&self, resource: &Map<String, Value>) -> bool {
        match &self.condition {
            None => true,
            Some((name, value)) => resource.get(name) == Some(value),
        }
    }
}

/// The refusal of everything that is not a lookup.
pub(crate) fn unsupported() -> Failure {
    Failure::bad_request(
        "This version of the server answers no SQL yet, except lookups of the form SELECT * FROM c WHERE c.property = \
         value over databases, containers, users, permissions and offers. Read the item by its id, or read the feed.",
    )
}

fn parse_text(query: &str, parameters: &[Value]) -> Option<Lookup> {
    let mut words = Words { rest: query };
    words.keyword("select")?;
    words.symbol('*')?;
    words.keyword("from")?;
    let mut alias = words.name()?;
    let mut lookahead = Words { rest: words.rest };
    if let Some(word) = lookahead.name() {
        if word.eq_ignore_ascii_case("as") {
            alias = lookahead.name()?;
            words = lookahead;
        } else if !word.eq_ignore_ascii_case("where") {
            alias = word;
            words = lookahead;
        }
    }
    if words.at_end() {
        return Some(Lookup { condition: None });
    }
    words.keyword("where")?;
    let owner = words.name()?;
    if owner != alias {
        return None;
    }
    let property = words.property()?;
    words.symbol('=')?;
    let value = words.value(parameters)?;
    words.at_end().then_some(Lookup { condition: Some((property, value)) })
}

struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn at_end(&mut self) -> bool {
        self.rest.trim().is_empty()
    }

    fn name(&mut self) -> Option<&'a str> {
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn keyword(&mut self, keyword: &str) -> Option<()> {
        self.name()?.eq_ignore_ascii_case(keyword).then_some(())
    }

    fn symbol(&mut self, symbol: char) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(symbol)?;
        Some(())
    }

    /// `.name` or `["name"]`.
    fn property(&mut self) -> Option<String> {
        if self.symbol('.').is_some() {
            return self.name().map(str::to_owned);
        }
        self.symbol('[')?;
        let name = self.text()?;
        self.symbol(']')?;
        Some(name)
    }

    fn text(&mut self) -> Option<String> {
        self.skip_space();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let end = self.rest[1..].find(quote)? + 1;
        let text = &self.rest[1..end];
        self.rest = &self.rest[end + 1..];
        (!text.contains('\\')).then(|| text.to_owned())
    }

    fn value(&mut self, parameters: &[Value]) -> Option<Value> {
        self.skip_space();
        if !self.rest.starts_with('@') {
            return self.text().map(Value::String);
        }
        self.symbol('@')?;
        let name = format!("@{}", self.name()?);
        let parameter =
            parameters.iter().find(|one| one.get("name").and_then(Value::as_str) == Some(&name))?;
        parameter.get("value").cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lookups_of_every_sdk_are_understood() {
        let check = |query: &str, expected: Option<(&str, Value)>| {
            let parameters = [json!({"name": "@link", "value": "dbs/x/"})];
            let expected = Some(Lookup { condition: expected.map(|(name, value)| (name.to_owned(), value)) });
            assert_eq!(parse_text(query, &parameters), expected, "{query}");
        };
        check("SELECT * FROM root r WHERE r.resource=@link", Some(("resource", json!("dbs/x/"))));
        check("SELECT * from root where root.resource = \"dbs/y/\"", Some(("resource", json!("dbs/y/"))));
        check("SELECT * FROM c WHERE c.offerResourceId = 'abc='", Some(("offerResourceId", json!("abc="))));
        check("SELECT * FROM c WHERE c[\"id\"] = 'x'", Some(("id", json!("x"))));
        check("select * from root as r", None);
        check("SELECT * FROM c", None);
    }

    #[test]
    fn everything_else_is_refused() {
        for query in [
            "",
            "SELECT",
            "SELECT c.id FROM c",
            "SELECT * FROM c WHERE c.id = 'a' AND 1=1",
            "SELECT * FROM c WHERE d.id = 'a'",
            "SELECT * FROM c WHERE c.id = '",
            "SELECT * FROM é",
        ] {
            assert_eq!(parse_text(query, &[]), None, "{query}");
        }
    }
}
