//! Cuts a query text into tokens, one at a time.
//!
//! In: the text. Out: tokens in order, ending in `End` for ever; white space and `--` comments vanish. The longest token
//! wins (`>>>` before `>>`). Never fails: what is no token becomes `Invalid`, and the parser reports it when it gets
//! there, so that the first error of the text is the one reported. Every byte is looked at a bounded number of times.
//!
//! Not here: the values of strings and numbers (`literal`).

use crate::span::Span;
use crate::token::{Keyword, Symbol, Token, TokenFault, TokenKind, begins_word, continues_word};

/// Reads tokens from a text.
#[derive(Debug)]
pub(crate) struct Lexer<'text> {
    text: &'text str,
    offset: usize,
}

impl<'text> Lexer<'text> {
    /// A lexer at the start of the text.
    pub(crate) fn new(text: &'text str) -> Self {
        Self { text, offset: 0 }
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        self.skip_blanks();
        let start = self.offset;
        let kind = match self.peek(0) {
            None => TokenKind::End,
            Some(byte) if begins_word(byte) => self.word(),
            Some(byte) if byte.is_ascii_digit() => self.number(),
            Some(b'.') if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number(),
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            Some(b'@') => self.parameter(),
            Some(byte) => self.symbol(byte),
        };
        Token { kind, span: Span::new(start, self.offset) }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.offset + ahead).copied()
    }

    fn skip_while(&mut self, accepts: impl Fn(u8) -> bool) {
        let rest = self.text.as_bytes().get(self.offset..).unwrap_or(&[]);
        self.offset += rest.iter().position(|&byte| !accepts(byte)).unwrap_or(rest.len());
    }

    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C));
            if self.peek(0) != Some(b'-') || self.peek(1) != Some(b'-') {
                return;
            }
            self.skip_while(|byte| byte != b'\n');
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.offset;
        self.skip_while(continues_word);
        let word = self.text.get(start..self.offset).unwrap_or("");
        Keyword::of(word).map_or(TokenKind::Identifier, TokenKind::Keyword)
    }

    fn parameter(&mut self) -> TokenKind {
        self.offset += 1;
        if self.peek(0).is_some_and(begins_word) {
            self.skip_while(continues_word);
            TokenKind::Parameter
        } else {
            TokenKind::Invalid(TokenFault::UnknownCharacter)
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.peek(0) == Some(b'0') && matches!(self.peek(1), Some(b'x' | b'X')) {
            self.offset += 2;
            let digits_start = self.offset;
            self.skip_while(|byte| byte.is_ascii_hexdigit());
            return if self.offset == digits_start {
                TokenKind::Invalid(TokenFault::BadNumber)
            } else {
                TokenKind::Number
            };
        }
        let digits = |byte: u8| byte.is_ascii_digit();
        self.skip_while(digits);
        if self.peek(0) == Some(b'.') {
            self.offset += 1;
            self.skip_while(digits);
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(digits) {
                self.offset += 1 + sign;
                self.skip_while(digits);
            }
        }
        TokenKind::Number
    }

    fn string(&mut self, quote: u8) -> TokenKind {
        self.offset += 1;
        let mut escaped = false;
        loop {
            self.skip_while(|byte| byte != quote && byte != b'\\' && byte >= 0x20);
            match self.peek(0) {
                None => return TokenKind::Invalid(TokenFault::UnterminatedString),
                Some(b'\\') => {
                    escaped = true;
                    match self.escape_length() {
                        Some(length) => self.offset += length,
                        None => return TokenKind::Invalid(TokenFault::BadEscape),
                    }
                }
                Some(byte) if byte == quote => {
                    self.offset += 1;
                    return TokenKind::String { escaped };
                }
                Some(_) => return TokenKind::Invalid(TokenFault::ControlCharacter),
            }
        }
    }

    /// Bytes of the escape at the current backslash; `None` when the language has no such escape.
    fn escape_length(&self) -> Option<usize> {
        match self.peek(1)? {
            b'"' | b'\'' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
            b'u' => {
                (2..6).all(|ahead| self.peek(ahead).is_some_and(|byte| byte.is_ascii_hexdigit())).then_some(6)
            }
            _ => None,
        }
    }

    fn symbol(&mut self, byte: u8) -> TokenKind {
        use Symbol::{
            Ampersand, Bar, Caret, CloseBrace, CloseBracket, CloseParenthesis, Colon, Comma, Dot, DoubleBar,
            DoubleQuestion, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Minus, NotEqual, OpenBrace,
            OpenBracket, OpenParenthesis, Percent, Plus, Question, ShiftLeft, ShiftRight, ShiftRightZero,
            Slash, Star, Tilde,
        };
        let (symbol, length) = match (byte, self.peek(1), self.peek(2)) {
            (b'(', ..) => (OpenParenthesis, 1),
            (b')', ..) => (CloseParenthesis, 1),
            (b'[', ..) => (OpenBracket, 1),
            (b']', ..) => (CloseBracket, 1),
            (b'{', ..) => (OpenBrace, 1),
            (b'}', ..) => (CloseBrace, 1),
            (b',', ..) => (Comma, 1),
            (b'.', ..) => (Dot, 1),
            (b':', ..) => (Colon, 1),
            (b'?', Some(b'?'), _) => (DoubleQuestion, 2),
            (b'?', ..) => (Question, 1),
            (b'+', ..) => (Plus, 1),
            (b'-', ..) => (Minus, 1),
            (b'*', ..) => (Star, 1),
            (b'/', ..) => (Slash, 1),
            (b'%', ..) => (Percent, 1),
            (b'~', ..) => (Tilde, 1),
            (b'&', ..) => (Ampersand, 1),
            (b'^', ..) => (Caret, 1),
            (b'|', Some(b'|'), _) => (DoubleBar, 2),
            (b'|', ..) => (Bar, 1),
            (b'<', Some(b'<'), _) => (ShiftLeft, 2),
            (b'<', Some(b'='), _) => (LessOrEqual, 2),
            (b'<', Some(b'>'), _) => (NotEqual, 2),
            (b'<', ..) => (Less, 1),
            (b'>', Some(b'>'), Some(b'>')) => (ShiftRightZero, 3),
            (b'>', Some(b'>'), _) => (ShiftRight, 2),
            (b'>', Some(b'='), _) => (GreaterOrEqual, 2),
            (b'>', ..) => (Greater, 1),
            (b'=', ..) => (Equal, 1),
            (b'!', Some(b'='), _) => (NotEqual, 2),
            _ => return self.unknown(),
        };
        self.offset += length;
        TokenKind::Symbol(symbol)
    }

    fn unknown(&mut self) -> TokenKind {
        let rest = self.text.get(self.offset..).unwrap_or("");
        self.offset += rest.chars().next().map_or(1, char::len_utf8);
        TokenKind::Invalid(TokenFault::UnknownCharacter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut lexer = Lexer::new(text);
        let mut pieces = Vec::new();
        loop {
            let token = lexer.next();
            match token.kind {
                TokenKind::End => break,
                TokenKind::Invalid(fault) => {
                    pieces.push(format!("{fault:?} {}", token.span.of(text)));
                    break;
                }
                _ => pieces.push(token.span.of(text).to_owned()),
            }
        }
        assert_eq!(pieces, expected, "{text}");
    }

    #[test]
    fn the_longest_token_wins() {
        check("a>>>=b", &["a", ">>>", "=", "b"]);
        check("a>>b>=c>d", &["a", ">>", "b", ">=", "c", ">", "d"]);
        check("a<<b<=c<>d<e", &["a", "<<", "b", "<=", "c", "<>", "d", "<", "e"]);
        check("a??b?c:d||e|f", &["a", "??", "b", "?", "c", ":", "d", "||", "e", "|", "f"]);
        check("a!=b==c", &["a", "!=", "b", "=", "=", "c"]);
    }

    #[test]
    fn numbers_end_where_their_form_ends() {
        check("12 1.5 .5 1. 1e3 1E-3 1.5e+3", &["12", "1.5", ".5", "1.", "1e3", "1E-3", "1.5e+3"]);
        check("0x1F 0XaB 0x", &["0x1F", "0XaB", "BadNumber 0x"]);
        check("1e 2e+ c.12a", &["1", "e", "2", "e", "+", "c", ".12", "a"]);
    }

    #[test]
    fn strings_and_their_faults() {
        check(r#"'a"b' "a'b" '\'' "\u00e9\/""#, &[r#"'a"b'"#, r#""a'b""#, r"'\''", r#""\u00e9\/""#]);
        check("\"abc", &["UnterminatedString \"abc"]);
        check(r#""a\x""#, &[r#"BadEscape "a"#]);
        check(r#""a\u12""#, &[r#"BadEscape "a"#]);
        check("\"a\nb\"", &["ControlCharacter \"a"]);
    }

    #[test]
    fn blanks_comments_and_strangers() {
        check("a--b\n c -- d", &["a", "c"]);
        check("@p @_1.x @1", &["@p", "@_1", ".", "x", "UnknownCharacter @"]);
        check("a;", &["a", "UnknownCharacter ;"]);
        check("é", &["UnknownCharacter é"]);
        check("!", &["UnknownCharacter !"]);
    }
}
