//! Full-text search: which properties hold prose, in which language, and which of them are indexed.

use crate::definition::members::Members;
use crate::definition::{AsGiven, Invalid, Named, choices, excerpt};
use astrarium_value::PropertyPath;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Which properties hold prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPolicy {
    /// The language of properties that name none.
    pub default_language: AsGiven<Language>,
    /// The properties.
    pub paths: Vec<FullTextPath>,
}

/// A property that holds prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPath {
    /// The property.
    pub path: PropertyPath,
    /// Its language, if it is not the default one.
    pub language: Option<AsGiven<Language>>,
}

/// The languages whose words can be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English, United States.
    EnglishUnitedStates,
    /// French, France.
    FrenchFrance,
    /// German, Germany.
    GermanGermany,
    /// Italian, Italy.
    ItalianItaly,
    /// Portuguese, Brazil.
    PortugueseBrazil,
    /// Portuguese, Portugal.
    PortuguesePortugal,
    /// Spanish, Spain.
    SpanishSpain,
}

impl Named for Language {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::EnglishUnitedStates, "en-US"),
        (Self::FrenchFrance, "fr-FR"),
        (Self::GermanGermany, "de-DE"),
        (Self::ItalianItaly, "it-IT"),
        (Self::PortugueseBrazil, "pt-BR"),
        (Self::PortuguesePortugal, "pt-PT"),
        (Self::SpanishSpain, "es-ES"),
        // The numbers that older clients have for them.
        (Self::EnglishUnitedStates, "1033"),
        (Self::FrenchFrance, "1036"),
        (Self::GermanGermany, "1031"),
        (Self::ItalianItaly, "1040"),
        (Self::PortugueseBrazil, "1046"),
        (Self::PortuguesePortugal, "2070"),
        (Self::SpanishSpain, "3082"),
    ];
}

/// Reads the `fullTextPolicy` member of a container.
pub(super) fn from_json(container: &Members<'_>) -> Result<Option<FullTextPolicy>, Invalid> {
    let Some(policy) = container.object("fullTextPolicy", "fullTextPolicy")? else {
        return Ok(None);
    };
    let default_language = policy.text("defaultLanguage")?.ok_or_else(|| no_language("defaultLanguage"))?;
    let default_language = language(default_language)?;
    let paths = policy.list("fullTextPaths")?.iter().map(full_text_path).collect::<Result<Vec<_>, _>>()?;
    check_distinct(paths.iter().map(|entry| &entry.path), "Policy")?;
    Ok(Some(FullTextPolicy { default_language, paths }))
}

/// The `fullTextPolicy` member as reads show it.
pub(super) fn to_json(policy: &FullTextPolicy) -> Value {
    let shown = |entry: &FullTextPath| {
        let mut body = Map::new();
        body.insert("path".to_owned(), entry.path.as_str().into());
        if let Some(language) = &entry.language {
            body.insert("language".to_owned(), language.as_str().into());
        }
        Value::Object(body)
    };
    let paths: Vec<Value> = policy.paths.iter().map(shown).collect();
    json!({"defaultLanguage": policy.default_language.as_str(), "fullTextPaths": paths})
}

/// Reads the `fullTextIndexes` member of an indexing policy.
pub(super) fn indexes_from_json(policy: &Members<'_>) -> Result<Vec<PropertyPath>, Invalid> {
    let index = |value: &Value| {
        let text = Members::of(value, "a full-text index")?.required_text("path")?;
        path(text, "Indexing Policy")
    };
    let paths = policy.list("fullTextIndexes")?.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    check_distinct(paths.iter(), "Indexing Policy")?;
    Ok(paths)
}

/// The `fullTextIndexes` member as reads show it.
pub(super) fn indexes_to_json(paths: &[PropertyPath]) -> Value {
    paths.iter().map(|path| json!({"path": path.as_str()})).collect()
}

/// Checks that every indexed path is one the policy knows the language of.
pub(super) fn check_indexes(
    indexes: &[PropertyPath],
    policy: Option<&FullTextPolicy>,
) -> Result<(), Invalid> {
    let known: BTreeSet<&PropertyPath> =
        policy.iter().flat_map(|policy| &policy.paths).map(|entry| &entry.path).collect();
    match indexes.iter().find(|path| !known.contains(path)) {
        None => Ok(()),
        Some(path) => Err(Invalid::new(format!(
            "The Full Text Indexing Policy's path::{} is not in the Full Text Policy. Every full-text index needs an \
             entry of the same path in fullTextPolicy.",
            excerpt(path.as_str())
        ))),
    }
}

fn full_text_path(value: &Value) -> Result<FullTextPath, Invalid> {
    let body = Members::of(value, "a full-text path")?;
    if body.is_null("language") {
        return Err(no_language("language"));
    }
    let path = path(body.required_text("path")?, "Policy")?;
    Ok(FullTextPath { path, language: body.text("language")?.map(language).transpose()? })
}

fn no_language(name: &str) -> Invalid {
    Invalid::new(format!(
        "The Full Text Policy contains invalid syntax. Set '{name}' to a language such as 'en-US'."
    ))
}

fn language(text: &str) -> Result<AsGiven<Language>, Invalid> {
    AsGiven::parse(text).ok_or_else(|| {
        Invalid::new(format!(
            "The Full Text Policy contains an unsupported language {}. Supported languages are: {}.",
            excerpt(text),
            choices::<Language>()
        ))
    })
}

fn path(text: &str, policy: &str) -> Result<PropertyPath, Invalid> {
    PropertyPath::parse(text).map_err(|error| {
        Invalid::new(format!(
            "The Full Text {policy} contains an invalid Path: {}. A path names one property, such as /text ({error}).",
            excerpt(text)
        ))
    })
}

fn check_distinct<'a>(paths: impl Iterator<Item = &'a PropertyPath>, policy: &str) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for path in paths {
        if !seen.insert(path) {
            let path = excerpt(path.as_str());
            return Err(Invalid::new(format!("Duplicate Path: {path} found in Full Text {policy}.")));
        }
    }
    Ok(())
}
