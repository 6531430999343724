//! The alphabet of the grammar: kinds of token, and which words are reserved where.
//!
//! Keywords are recognised in any case; `true`, `false`, `null`, `undefined` and `udf` only in lower case. Words other
//! than keywords are identifiers. Tokens hold no text: the parser slices it from the query by span.

use crate::span::Span;

/// One token of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Identifier,
    Keyword(Keyword),
    /// `@name`.
    Parameter,
    Number,
    /// A string with its quotes; `escaped` when it holds a backslash and must be decoded.
    String {
        escaped: bool,
    },
    Symbol(Symbol),
    Invalid(TokenFault),
    End,
}

/// Why the lexer could not form a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFault {
    UnknownCharacter,
    BadNumber,
    UnterminatedString,
    BadEscape,
    ControlCharacter,
}

/// Punctuation and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Dot,
    Colon,
    Question,
    DoubleQuestion,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Tilde,
    Ampersand,
    Caret,
    Bar,
    DoubleBar,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

macro_rules! keywords {
    ($($variant:ident $lower:literal),* $(,)?) => {
        /// A word with a meaning of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $($variant),*
        }

        /// All keywords, in lower case.
        pub(crate) const KEYWORDS: &[&str] = &[$($lower),*];

        /// The keyword that a lower-case word spells.
        fn keyword_of_lower_case(word: &[u8]) -> Option<Keyword> {
            $(const $variant: &[u8] = $lower.as_bytes();)*
            match word {
                $($variant => Some(Keyword::$variant),)*
                _ => None,
            }
        }
    };
}

#[expect(non_upper_case_globals, reason = "the constants of the table carry the names of the variants")]
mod keyword {
    keywords! {
        All "all", And "and", Array "array", As "as", Asc "asc", Between "between", By "by", Cross "cross", Desc "desc",
        Distinct "distinct", Escape "escape", Exists "exists", False "false", First "first", For "for", From "from",
        Group "group", In "in", Inner "inner", Is "is", Join "join", Last "last", Left "left", Let "let", Like "like",
        Limit "limit", Not "not", Null "null", Offset "offset", Or "or", Order "order", Over "over", Rank "rank",
        Right "right", Select "select", Set "set", Top "top", True "true", Udf "udf", Undefined "undefined",
        Value "value", Where "where",
    }

    /// Length of the longest keyword.
    const LENGTH_MAX: usize = "undefined".len();

    impl Keyword {
        /// The keyword that `word` spells, if it is one.
        pub(crate) fn of(word: &str) -> Option<Self> {
            let mut lower = [0; LENGTH_MAX];
            let lower = lower.get_mut(..word.len())?;
            lower.copy_from_slice(word.as_bytes());
            lower.make_ascii_lowercase();
            let keyword = keyword_of_lower_case(lower)?;
            let exact =
                matches!(keyword, Self::True | Self::False | Self::Null | Self::Undefined | Self::Udf);
            (!exact || lower == word.as_bytes()).then_some(keyword)
        }

        /// Whether the word may also be an alias, a property name or a function name.
        pub(crate) fn is_name(self) -> bool {
            matches!(self, Self::All | Self::First | Self::Last | Self::Let | Self::Rank)
        }

        /// Whether the word may follow a dot. The words that the native lexer reserves without a use in the grammar
        /// are let through here: refusing a property that the service takes would be worse than the reverse.
        pub(crate) fn is_member_name(self) -> bool {
            use Keyword::{Cross, For, Inner, Is, Over, Set};
            self.is_name() || matches!(self, Cross | For | Inner | Is | Over | Set)
        }
    }
}

pub(crate) use keyword::Keyword;

/// The words with a meaning of their own, as people write them. Those that are only reserved are left out.
pub fn keywords() -> impl Iterator<Item = String> {
    let is_used = |word: &&&str| !["cross", "for", "inner", "is", "let", "over", "set"].contains(*word);
    keyword::KEYWORDS.iter().filter(is_used).map(|word| {
        let upper = word.to_ascii_uppercase();
        // Some count in lower case only.
        if Keyword::of(&upper).is_some() { upper } else { (*word).to_owned() }
    })
}

/// Whether `name` can stand after a dot as it is; any other name needs brackets and quotes.
pub fn is_plain_name(name: &str) -> bool {
    is_identifier(name) && Keyword::of(name).is_none_or(Keyword::is_member_name)
}

/// Whether `name` can stand after AS as it is; any other text needs quotes there.
pub(crate) fn is_alias_name(name: &str) -> bool {
    is_identifier(name) && Keyword::of(name).is_none_or(Keyword::is_name)
}

/// Whether `name` has the form of an identifier, keyword or not.
fn is_identifier(name: &str) -> bool {
    name.bytes().next().is_some_and(begins_word) && name.bytes().all(continues_word)
}

/// Whether a word can begin with the byte.
pub(crate) fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether a word can go on with the byte.
pub(crate) fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_follow_a_dot() {
        for (name, expected) in [
            ("a", true),
            ("_rid", true),
            ("first", true),
            ("ALL", true),
            ("set", true),
            ("TRUE", true),
            ("true", false),
            ("Value", false),
            ("left", false),
            ("rank", true),
            ("", false),
            ("1a", false),
            ("a b", false),
            ("é", false),
        ] {
            assert_eq!(is_plain_name(name), expected, "{name}");
        }
    }
}
