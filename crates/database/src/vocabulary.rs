//! The words of the query language, and what is wrong with a text that somebody writes in it.

use crate::{Account, Container, Error, Query, QueryFault};
use astrarium_sql_functions as functions;
use astrarium_sql_functions::aggregates::AggregateFunction;
use astrarium_sql_plan::Catalog;
use astrarium_value::Value;
use std::sync::Arc;

/// Parameters of a text that are looked at.
const PARAMETERS_MAX: usize = 1_000;

/// A function of the query language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionHelp {
    /// Its name, in upper case.
    pub name: &'static str,
    /// Names and types of its arguments, and the type of its result.
    pub signature: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
}

/// The words with a meaning of their own.
pub fn query_keywords() -> Vec<String> {
    astrarium_sql_syntax::keywords().collect()
}

/// All functions that a query can call, by name.
pub fn query_functions() -> Vec<FunctionHelp> {
    let scalar = functions::all().map(|function| FunctionHelp {
        name: function.name,
        signature: function.signature,
        summary: function.summary,
    });
    let aggregates = AggregateFunction::ALL.into_iter().map(|function| FunctionHelp {
        name: function.name(),
        signature: function.signature(),
        summary: function.summary(),
    });
    let ranking = functions::rank_functions().map(|function| FunctionHelp {
        name: function.name,
        signature: function.signature,
        summary: function.summary,
    });
    let all = scalar.chain(aggregates).chain(ranking);
    // What begins so is for SDKs.
    let mut found: Vec<FunctionHelp> = all.filter(|function| !function.name.starts_with('_')).collect();
    found.sort_by_key(|function| function.name);
    found
}

impl Account {
    /// What is wrong with the text of a query, over a container or over any. Parameters have some value, whatever it is.
    pub fn query_faults(&self, text: &str, container: Option<&Arc<Container>>) -> Vec<QueryFault> {
        let parameters = parameter_names(text).map(|name| (name.to_owned(), Value::Number(1.0))).collect();
        let planned = Query::parse(text, parameters).and_then(|query| {
            query.plan(Catalog { container: container.map(|container| &container.definition) }).map(|_| ())
        });
        match planned {
            Ok(()) => Vec::new(),
            Err(Error::Query(faults)) => faults,
            Err(error) => {
                let end = text.encode_utf16().count();
                let message = error.to_string();
                vec![QueryFault { code: "", start: 0, end, detail: String::new(), message }]
            }
        }
    }
}

/// The names of parameters in a text; some that are in quotes, too.
fn parameter_names(text: &str) -> impl Iterator<Item = &str> {
    let name = |(at, _)| {
        let rest: &str = &text[at..];
        let length =
            rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(rest.len(), |end| end + 1);
        &rest[..length]
    };
    text.match_indices('@').map(name).take(PARAMETERS_MAX)
}
