//! The languages whose words can be taken apart.

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words;

/// A language of prose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English, the default.
    #[default]
    English,
    /// French.
    French,
    /// German.
    German,
    /// Italian.
    Italian,
    /// Portuguese, of Portugal and Brazil.
    Portuguese,
    /// Spanish.
    Spanish,
}

impl Language {
    /// Every language.
    pub const ALL: [Language; 6] = [
        Language::English,
        Language::French,
        Language::German,
        Language::Italian,
        Language::Portuguese,
        Language::Spanish,
    ];

    /// The language of a name such as `en-US`, by the part before the dash.
    pub fn from_name(name: &str) -> Option<Language> {
        let code = name.split('-').next().unwrap_or(name);
        Some(match code.to_ascii_lowercase().as_str() {
            "en" => Language::English,
            "fr" => Language::French,
            "de" => Language::German,
            "it" => Language::Italian,
            "pt" => Language::Portuguese,
            "es" => Language::Spanish,
            _ => return None,
        })
    }

    /// Whether a word in lower case is too common to be searched for.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        let words = match self {
            Language::English => stop_words::ENGLISH,
            Language::French => stop_words::FRENCH,
            Language::German => stop_words::GERMAN,
            Language::Italian => stop_words::ITALIAN,
            Language::Portuguese => stop_words::PORTUGUESE,
            Language::Spanish => stop_words::SPANISH,
        };
        words.binary_search(&word).is_ok()
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            Language::English => Algorithm::English,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Italian => Algorithm::Italian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Spanish => Algorithm::Spanish,
        })
    }
}
