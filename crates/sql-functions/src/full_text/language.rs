//! The languages whose words can be taken apart.

use rust_stemmers::{Algorithm, Stemmer};

use super::stop_words;

/// A language of prose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextLanguage {
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

impl TextLanguage {
    /// Every language.
    pub const ALL: [TextLanguage; 6] = [
        TextLanguage::English,
        TextLanguage::French,
        TextLanguage::German,
        TextLanguage::Italian,
        TextLanguage::Portuguese,
        TextLanguage::Spanish,
    ];

    /// The language of a name such as `en-US`, by the part before the dash.
    pub fn from_name(name: &str) -> Option<TextLanguage> {
        let code = name.split('-').next().unwrap_or(name);
        Some(match code.to_ascii_lowercase().as_str() {
            "en" => TextLanguage::English,
            "fr" => TextLanguage::French,
            "de" => TextLanguage::German,
            "it" => TextLanguage::Italian,
            "pt" => TextLanguage::Portuguese,
            "es" => TextLanguage::Spanish,
            _ => return None,
        })
    }

    /// Whether a word in lower case is too common to be searched for.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        let words = match self {
            TextLanguage::English => stop_words::ENGLISH,
            TextLanguage::French => stop_words::FRENCH,
            TextLanguage::German => stop_words::GERMAN,
            TextLanguage::Italian => stop_words::ITALIAN,
            TextLanguage::Portuguese => stop_words::PORTUGUESE,
            TextLanguage::Spanish => stop_words::SPANISH,
        };
        words.binary_search(&word).is_ok()
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::create(match self {
            TextLanguage::English => Algorithm::English,
            TextLanguage::French => Algorithm::French,
            TextLanguage::German => Algorithm::German,
            TextLanguage::Italian => Algorithm::Italian,
            TextLanguage::Portuguese => Algorithm::Portuguese,
            TextLanguage::Spanish => Algorithm::Spanish,
        })
    }
}
