//! Computed properties: names for expressions over a document, used in queries as if they were stored.
//!
//! In: the policy of a container. Out: names with their query texts, checked as far as the words of the query allow:
//! `SELECT VALUE <expression> FROM <alias>`, no other clause, no subquery, no aggregate, nothing that depends on more
//! than the document. Whether the expression itself is well formed shows when `sql-plan` binds it.

use crate::definition::members::Members;
use crate::definition::{Invalid, excerpt};
use astrarium_value::system_properties;
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::index_path::IndexStep;
use super::spatial_index::SpatialIndex;

/// Most computed properties of a container.
const COMPUTED_PROPERTIES_MAX: usize = 20;
/// Longest text of a query, in bytes.
const QUERY_BYTES_MAX: usize = 512 << 10;
/// Words that begin what a computed property cannot have.
const CLAUSES: [&str; 9] =
    ["SELECT", "DISTINCT", "TOP", "JOIN", "WHERE", "GROUP", "ORDER", "OFFSET", "LIMIT"];
/// Functions over more than one document, or whose value is not settled by the document.
const FUNCTIONS: [&str; 15] = [
    "AVG",
    "COUNT",
    "COUNTIF",
    "MAKELIST",
    "MAKESET",
    "MAX",
    "MIN",
    "SUM",
    "RAND",
    "GETCURRENTDATETIME",
    "GETCURRENTDATETIMESTATIC",
    "GETCURRENTTICKS",
    "GETCURRENTTICKSSTATIC",
    "GETCURRENTTIMESTAMP",
    "GETCURRENTTIMESTAMPSTATIC",
];

/// A property that queries see and documents do not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedProperty {
    /// Its name at the top level of documents.
    pub name: String,
    /// The query that gives its value.
    pub query: String,
}

/// Reads the `computedProperties` member of a container.
pub(super) fn from_json(
    container: &Members<'_>,
    spatial: &[SpatialIndex],
) -> Result<Vec<ComputedProperty>, Invalid> {
    let list = container.list("computedProperties")?;
    if list.len() > COMPUTED_PROPERTIES_MAX {
        let count = list.len();
        return Err(Invalid::new(format!(
            "Too many computed properties: {count}. A container has at most {COMPUTED_PROPERTIES_MAX}."
        )));
    }
    let properties = list.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut names = BTreeSet::new();
    for (index, property) in properties.iter().enumerate() {
        check_name(&property.name, index, spatial)?;
        if !names.insert(property.name.as_str()) {
            let name = excerpt(&property.name);
            return Err(Invalid::new(format!(
                "Computed property name '{name}' cannot be used in multiple definitions."
            )));
        }
    }
    for (index, property) in properties.iter().enumerate() {
        check_query(property, index, &names)?;
    }
    Ok(properties)
}

/// The `computedProperties` member as reads show it.
pub(super) fn to_json(properties: &[ComputedProperty]) -> Value {
    properties.iter().map(|property| json!({"name": property.name, "query": property.query})).collect()
}

fn read(value: &Value) -> Result<ComputedProperty, Invalid> {
    let body = Members::of(value, "a computed property")?;
    let text = |name: &str| match body.required_text(name)? {
        "" => Err(Invalid::new(format!("Computed property '{name}' is either empty or unspecified."))),
        text => Ok(text.to_owned()),
    };
    Ok(ComputedProperty { name: text("name")?, query: text("query")? })
}

fn check_name(name: &str, index: usize, spatial: &[SpatialIndex]) -> Result<(), Invalid> {
    if name == "id" || system_properties::SHOWN.contains(&name) {
        return Err(Invalid::new(format!(
            "The system property name '{name}' cannot be used as a computed property name."
        )));
    }
    let is_this =
        |index: &SpatialIndex| matches!(index.path.steps(), [IndexStep::Property(step)] if **step == *name);
    if spatial.iter().any(is_this) {
        let name = excerpt(name);
        return Err(Invalid::new(format!(
            "Computed property '{name}' at index ({index}) has a spatial index. Remove the spatial index on this path."
        )));
    }
    Ok(())
}

fn check_query(property: &ComputedProperty, index: usize, names: &BTreeSet<&str>) -> Result<(), Invalid> {
    let query = excerpt(&property.query);
    let malformed = |details: String| {
        Invalid::new(format!(
            "Computed property at index ({index}) has a malformed query: '{query}' Error details: '{details}'"
        ))
    };
    if property.query.len() > QUERY_BYTES_MAX {
        return Err(malformed(format!("The query is longer than {QUERY_BYTES_MAX} bytes.")));
    }
    let tokens = tokens(&property.query).map_err(|error| malformed(error.to_owned()))?;
    if !is_word(tokens.first(), "SELECT") {
        return Err(malformed("The query must be SELECT VALUE expression FROM alias.".to_owned()));
    }
    if let Some(word) = forbidden_word(&tokens) {
        let name = excerpt(&property.name);
        return Err(Invalid::new(format!(
            "Computed property '{name}' at index ({index}) cannot use {word}. Its query must be SELECT VALUE \
             expression FROM alias, where the expression depends on the document alone."
        )));
    }
    if !is_word(tokens.get(1), "VALUE") {
        return Err(Invalid::new(format!(
            "Required VALUE expression missing from computed property query '{query}' at index ({index})."
        )));
    }
    let alias = alias(&tokens).ok_or_else(|| malformed("The query must end with FROM alias.".to_owned()))?;
    let mut references = references(&tokens, alias);
    if let Some(name) = references.find(|name| *name != property.name && names.contains(name)) {
        return Err(Invalid::new(format!(
            "Computed property '{}' at index ({index}) cannot reference the computed property '{}'.",
            excerpt(&property.name),
            excerpt(name)
        )));
    }
    Ok(())
}

/// The first word that a computed property may not use.
fn forbidden_word<'a>(tokens: &[ComputedToken<'a>]) -> Option<&'a str> {
    (1..tokens.len())
        .find_map(|at| {
            let word = keyword(tokens, at)?;
            let is_call = tokens.get(at + 1) == Some(&ComputedToken::Symbol('('));
            let is_user_function =
                word.eq_ignore_ascii_case("udf") && tokens.get(at + 1) == Some(&ComputedToken::Symbol('.'));
            let is_spatial = word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ST_"));
            let is_in = |list: &[&str]| list.iter().any(|entry| entry.eq_ignore_ascii_case(word));
            (is_in(&CLAUSES) || is_user_function || (is_call && (is_spatial || is_in(&FUNCTIONS))))
                .then_some(word)
        })
        .or_else(|| tokens.contains(&ComputedToken::Symbol('@')).then_some("parameters"))
}

/// The alias of the document, if the query ends with `FROM alias`, `FROM root alias` or `FROM root AS alias`.
fn alias<'a>(tokens: &[ComputedToken<'a>]) -> Option<&'a str> {
    let from = (3..tokens.len())
        .find(|at| keyword(tokens, *at).is_some_and(|word| word.eq_ignore_ascii_case("FROM")))?;
    match &tokens[from + 1..] {
        [ComputedToken::Word(alias)] | [ComputedToken::Word(_), ComputedToken::Word(alias)] => Some(alias),
        [ComputedToken::Word(_), ComputedToken::Word(between), ComputedToken::Word(alias)]
            if between.eq_ignore_ascii_case("AS") =>
        {
            Some(alias)
        }
        _ => None,
    }
}

/// The names of the top-level properties that the query takes from the document.
fn references<'t, 'a>(tokens: &'t [ComputedToken<'a>], alias: &'a str) -> impl Iterator<Item = &'a str> + 't {
    (0..tokens.len()).filter(move |at| keyword(tokens, *at) == Some(alias)).filter_map(|at| {
        match tokens[at + 1..] {
            [ComputedToken::Symbol('.'), ComputedToken::Word(name), ..] => Some(name),
            [ComputedToken::Symbol('['), ComputedToken::Text(name), ..] => Some(name),
            _ => None,
        }
    })
}

/// The word at a place where it can be a keyword, a function or an alias: not the name of a property.
fn keyword<'a>(tokens: &[ComputedToken<'a>], at: usize) -> Option<&'a str> {
    let Some(ComputedToken::Word(word)) = tokens.get(at) else {
        return None;
    };
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_member = before == Some(&ComputedToken::Symbol('.'));
    let is_key = matches!(before, Some(ComputedToken::Symbol('{' | ',')))
        && tokens.get(at + 1) == Some(&ComputedToken::Symbol(':'));
    (!is_member && !is_key).then_some(word)
}

fn is_word(token: Option<&ComputedToken<'_>>, expected: &str) -> bool {
    matches!(token, Some(ComputedToken::Word(word)) if word.eq_ignore_ascii_case(expected))
}

/// The pieces of a query that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComputedToken<'a> {
    /// A keyword or an identifier.
    Word(&'a str),
    /// What stands between two quotes, with its escapes.
    Text(&'a str),
    /// A number.
    Number,
    /// Anything else.
    Symbol(char),
}

fn tokens(query: &str) -> Result<Vec<ComputedToken<'_>>, &'static str> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").ok_or("A comment is not closed.")? + 2
        } else if first == '"' || first == '\'' {
            let length = quoted_length(rest, first).ok_or("A string is not closed.")?;
            tokens.push(ComputedToken::Text(&rest[1..length - 1]));
            length
        } else if first.is_alphabetic() || first == '_' {
            let is_end = |character: char| !character.is_alphanumeric() && character != '_';
            let length = rest.find(is_end).unwrap_or(rest.len());
            tokens.push(ComputedToken::Word(&rest[..length]));
            length
        } else if first.is_ascii_digit() {
            tokens.push(ComputedToken::Number);
            number_length(rest)
        } else {
            tokens.push(ComputedToken::Symbol(first));
            first.len_utf8()
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return Some(at + 1);
        }
    }
    None
}

fn number_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_point = character == '.' && characters.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        if !character.is_alphanumeric() && !is_point {
            return at;
        }
    }
    rest.len()
}
