//! What is searched for: a word or phrase, exactly or up to a few letters.
//!
//! A phrase is found where its words stand as far apart as in the phrase, common words included in the counting.

use std::collections::HashMap;

use astrarium_value::Value;

use super::TextLanguage;
use super::words::for_each_word;
use crate::arguments::{as_text, whole};
use crate::limits::may_go_on;

/// The most letters in which a word may differ from a fuzzy term.
const DISTANCE_MAX: i64 = 2;
/// The most words of fuzzy terms in one call: each is compared with every word of the text, and has a bit.
const FUZZY_WORDS_MAX: usize = 32;
/// The most words of all terms in one call.
const WORDS_MAX: usize = 1024;

/// A word or phrase to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerm {
    /// The stems of its words, each with its place counted from the first.
    words: Vec<(String, usize)>,
    /// In how many letters each word may differ.
    distance: usize,
}

impl SearchTerm {
    /// A text, or an object `{"term": text, "distance": 0..2}`; none for anything else.
    pub fn parse(value: &Value, language: TextLanguage) -> Option<SearchTerm> {
        let (text, distance) = match value {
            Value::String(text) => (&**text, 0),
            Value::Object(object) => {
                let distance = match object.get("distance") {
                    None => 0,
                    Some(Value::Number(number)) => {
                        whole(*number).filter(|number| (0..=DISTANCE_MAX).contains(number))?
                    }
                    Some(_) => return None,
                };
                (as_text(object.get("term")?)?, distance as usize)
            }
            _ => return None,
        };
        let mut words: Vec<(String, usize)> = Vec::new();
        for_each_word(text, language, |stem, place| words.push((stem.to_owned(), place)));
        let first = words.first().map_or(0, |(_, place)| *place);
        for (_, place) in &mut words {
            *place -= first;
        }
        Some(SearchTerm { words, distance })
    }

    /// All terms of a call; none when one of them is no term, or when they have too many words.
    pub fn parse_all(values: &[Value], language: TextLanguage) -> Option<Vec<SearchTerm>> {
        let terms: Vec<SearchTerm> =
            values.iter().map(|value| SearchTerm::parse(value, language)).collect::<Option<_>>()?;
        let words: usize = terms.iter().map(|term| term.words.len()).sum();
        let fuzzy = terms.iter().filter(|term| term.distance > 0).map(|term| term.words.len());
        (words <= WORDS_MAX && fuzzy.sum::<usize>() <= FUZZY_WORDS_MAX).then_some(terms)
    }

    /// The stems of the term's words and their places, for a lookup in an index.
    pub fn words(&self) -> &[(String, usize)] {
        &self.words
    }

    /// In how many letters a word may differ from the term's.
    pub fn distance(&self) -> usize {
        self.distance
    }
}

/// How often each term stands in the text, and how many words the text has, common ones left out.
pub fn occurrences(text: &str, terms: &[SearchTerm], language: TextLanguage) -> (Vec<usize>, usize) {
    let mut search = TermSearch::new(terms);
    let mut length = 0;
    for_each_word(text, language, |stem, place| {
        length += 1;
        search.visit(stem, place);
    });
    (search.terms.iter().map(|term| search.count(term)).collect(), length)
}

/// What a word of a term is, among all words that are searched for.
#[derive(Clone, Copy)]
enum TermWord {
    /// The stem of that number, from 1.
    Exact(u32),
    /// The fuzzy word of that bit.
    Fuzzy(u32),
}

/// What a word of the text is, among all words that are searched for.
#[derive(Clone, Copy, Default)]
struct Met {
    /// The number of its stem, 0 when it is not searched for.
    exact: u32,
    /// The bits of the fuzzy words that it is near to.
    fuzzy: u32,
}

/// The words of all terms, and where they were met; eight bytes for each word of the text.
struct TermSearch<'a> {
    /// The words of each term, with their places.
    terms: Vec<Vec<(TermWord, usize)>>,
    /// The numbers of the stems.
    exact: HashMap<&'a str, u32>,
    /// The fuzzy words and the letters they may differ in, in the order of their bits.
    fuzzy: Vec<(&'a str, usize)>,
    met: Vec<Met>,
}

impl<'a> TermSearch<'a> {
    fn new(terms: &'a [SearchTerm]) -> Self {
        let mut search =
            TermSearch { terms: Vec::new(), exact: HashMap::new(), fuzzy: Vec::new(), met: Vec::new() };
        for term in terms {
            let words = term.words.iter().map(|(stem, place)| (search.wanted(stem, term.distance), *place));
            let words = words.collect();
            search.terms.push(words);
        }
        search
    }

    fn wanted(&mut self, stem: &'a str, distance: usize) -> TermWord {
        if distance == 0 {
            let next = self.exact.len() as u32 + 1;
            TermWord::Exact(*self.exact.entry(stem).or_insert(next))
        } else {
            self.fuzzy.push((stem, distance));
            TermWord::Fuzzy(1 << (self.fuzzy.len() - 1))
        }
    }

    fn visit(&mut self, stem: &str, place: usize) {
        let mut met = Met { exact: self.exact.get(stem).copied().unwrap_or(0), fuzzy: 0 };
        for (bit, (wanted, distance)) in self.fuzzy.iter().enumerate() {
            if differ_at_most(stem, wanted, *distance) {
                met.fuzzy |= 1 << bit;
            }
        }
        if met.exact != 0 || met.fuzzy != 0 {
            self.met.resize(place, Met::default());
            self.met.push(met);
        }
    }

    fn count(&self, term: &[(TermWord, usize)]) -> usize {
        if term.is_empty() {
            return 0;
        }
        let stands_at =
            |start: &usize| term.iter().all(|(wanted, place)| self.is_met(*wanted, start + place));
        (0..self.met.len()).filter(|start| may_go_on(1) && stands_at(start)).count()
    }

    fn is_met(&self, wanted: TermWord, place: usize) -> bool {
        self.met.get(place).is_some_and(|met| match wanted {
            TermWord::Exact(number) => met.exact == number,
            TermWord::Fuzzy(bit) => met.fuzzy & bit != 0,
        })
    }
}

/// Whether so many letters put in, left out or exchanged turn one word into the other.
fn differ_at_most(a: &str, b: &str, distance: usize) -> bool {
    /// Bytes of the longest character.
    const CHARACTER_BYTES_MAX: usize = 4;
    // Mostly that tells it, without looking at a single letter.
    if a.len().abs_diff(b.len()) > distance * CHARACTER_BYTES_MAX || !may_go_on((a.len() + b.len()) / 8) {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > distance {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, own) in a.iter().enumerate() {
        if !may_go_on(b.len() / 4) {
            return false;
        }
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(own != other);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
        if row.iter().all(|cost| *cost > distance) {
            return false;
        }
    }
    row[b.len()] <= distance
}
