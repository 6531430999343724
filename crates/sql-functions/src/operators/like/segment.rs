//! A part of a LIKE pattern without `%`: a fixed number of characters, each one given, any, or one of a set.
//!
//! Plain text is found with a substring search. A segment with wildcards runs as one bit per element ("shift and"): bit i
//! says that the last i+1 characters match the first i+1 elements, and one shift and one mask per 64 elements take
//! in the next character.

use crate::limits::may_go_on;
use memchr::memmem::Finder;

/// Characters between two looks at whether to go on.
const CHARACTERS_PER_LOOK: usize = 1_024;

/// What one character of the text must be.
#[derive(Debug)]
pub(super) enum Element {
    /// This character.
    Literal(char),
    /// Any character.
    Any,
    /// A character of the set.
    CharacterSet(CharacterSet),
}

impl Element {
    pub(super) fn as_literal(&self) -> Option<char> {
        match self {
            Element::Literal(character) => Some(*character),
            _ => None,
        }
    }

    fn accepts(&self, character: char) -> bool {
        match self {
            Element::Literal(literal) => *literal == character,
            Element::Any => true,
            Element::CharacterSet(set) => set.accepts(character),
        }
    }
}

/// Characters given one by one or as ranges, or all others.
#[derive(Debug)]
pub(super) struct CharacterSet {
    negated: bool,
    /// Both ends belong to a range.
    ranges: Vec<(char, char)>,
}

impl CharacterSet {
    /// From what stood between the brackets, each character with whether it was escaped: `-` between two characters
    /// makes a range, at the ends it stands for itself.
    pub(super) fn new(negated: bool, members: &[(char, bool)]) -> CharacterSet {
        let mut ranges = Vec::new();
        let mut rest = members;
        loop {
            rest = match rest {
                [(low, _), ('-', false), (high, _), rest @ ..] => {
                    ranges.push((*low, *high));
                    rest
                }
                [(single, _), rest @ ..] => {
                    ranges.push((*single, *single));
                    rest
                }
                [] => return CharacterSet { negated, ranges },
            };
        }
    }

    fn accepts(&self, character: char) -> bool {
        let among = self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&character));
        among != self.negated
    }
}

/// Whether the elements are plain text.
pub(super) fn is_plain(elements: &[Element]) -> bool {
    elements.iter().all(|element| element.as_literal().is_some())
}

/// How many characters and ranges the elements name.
pub(super) fn part_count(elements: &[Element]) -> usize {
    let parts = |element: &Element| match element {
        Element::CharacterSet(set) => set.ranges.len() + 1,
        _ => 1,
    };
    elements.iter().map(parts).sum()
}

/// A segment, ready to be matched.
#[derive(Debug)]
pub(super) enum LikeSegment {
    Plain(Box<Finder<'static>>),
    Mixed(Mixed),
}

impl LikeSegment {
    pub(super) fn new(elements: Vec<Element>) -> LikeSegment {
        if is_plain(&elements) {
            let text: String = elements.iter().filter_map(Element::as_literal).collect();
            LikeSegment::Plain(Box::new(Finder::new(&text).into_owned()))
        } else {
            LikeSegment::Mixed(Mixed::new(elements))
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, LikeSegment::Plain(_))
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, LikeSegment::Plain(finder) if finder.needle().is_empty())
    }

    /// Where the match ends that begins at the text's start.
    pub(super) fn match_start(&self, text: &str) -> Option<usize> {
        match self {
            LikeSegment::Plain(finder) => {
                let needle = finder.needle();
                text.as_bytes().starts_with(needle).then_some(needle.len())
            }
            LikeSegment::Mixed(mixed) => {
                let mut characters = text.chars();
                let accepted = mixed
                    .elements
                    .iter()
                    .all(|element| characters.next().is_some_and(|character| element.accepts(character)));
                accepted.then(|| text.len() - characters.as_str().len())
            }
        }
    }

    /// Where the match begins that ends at the text's end.
    pub(super) fn match_end(&self, text: &str) -> Option<usize> {
        match self {
            LikeSegment::Plain(finder) => {
                let needle = finder.needle();
                text.as_bytes().ends_with(needle).then(|| text.len() - needle.len())
            }
            LikeSegment::Mixed(mixed) => {
                let mut characters = text.chars();
                let accepted = mixed.elements.iter().rev().all(|element| {
                    characters.next_back().is_some_and(|character| element.accepts(character))
                });
                accepted.then_some(characters.as_str().len())
            }
        }
    }

    /// Where the leftmost match ends.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        match self {
            LikeSegment::Plain(finder) => Some(finder.find(text.as_bytes())? + finder.needle().len()),
            LikeSegment::Mixed(mixed) => mixed.find(text),
        }
    }
}

/// A segment with wildcards.
///
/// Characters fall into classes that no element tells apart: the stretches between the ends of all literals and ranges.
#[derive(Debug)]
pub(super) struct Mixed {
    elements: Vec<Element>,
    /// The first character of each class, ascending, beginning with zero.
    classes: Vec<char>,
    /// For each class the elements that accept it, as bits, `words` numbers per class.
    masks: Vec<u64>,
    words: usize,
}

impl Mixed {
    fn new(elements: Vec<Element>) -> Mixed {
        let mut classes = vec!['\0'];
        for element in &elements {
            let single = element.as_literal().map(|character| (character, character));
            let ranges = match element {
                Element::CharacterSet(set) => set.ranges.as_slice(),
                _ => single.as_slice(),
            };
            for (low, high) in ranges {
                classes.push(*low);
                classes.extend(successor(*high));
            }
        }
        classes.sort_unstable();
        classes.dedup();
        let words = elements.len().div_ceil(64);
        let mut masks = vec![0; classes.len() * words];
        for (place, element) in elements.iter().enumerate() {
            for (class, first) in classes.iter().enumerate() {
                if element.accepts(*first) {
                    masks[class * words + place / 64] |= 1 << (place % 64);
                }
            }
        }
        Mixed { elements, classes, masks, words }
    }

    fn find(&self, text: &str) -> Option<usize> {
        // The longest patterns have 64 words; nearly all have one.
        let mut state = vec![0_u64; self.words];
        let last = self.elements.len() - 1;
        for (place, (offset, character)) in text.char_indices().enumerate() {
            if place % CHARACTERS_PER_LOOK == 0 && !may_go_on(CHARACTERS_PER_LOOK / 4 * self.words) {
                return None;
            }
            let class = self.classes.partition_point(|first| *first <= character) - 1;
            let mask = &self.masks[class * self.words..][..self.words];
            let mut carry = 1;
            for (word, mask) in state.iter_mut().zip(mask) {
                let next = *word >> 63;
                *word = ((*word << 1) | carry) & mask;
                carry = next;
            }
            if state[last / 64] >> (last % 64) & 1 == 1 {
                return Some(offset + character.len_utf8());
            }
        }
        None
    }
}

/// The character after this one, skipping the surrogates, which are no characters.
fn successor(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}
