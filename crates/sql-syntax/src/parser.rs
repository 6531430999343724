//! From text to syntax tree.
//!
//! Clauses and bracketed constructs are read by recursive descent (`query`, `primary`); operators by precedence with an
//! explicit stack (`expression`), so that neither parentheses nor operator chains use the machine's stack.
//!
//! Bounds
//! - The text has at most `TEXT_LENGTH_MAX` UTF-16 units.
//! - A tree has at most `HEIGHT_MAX` levels: `Built` carries the height of what was read, and a node that would pass
//!   the bound is refused before it is made, so that dropping, cloning and printing may recurse.
//! - Recursion of the parser itself is bounded by `NESTING_MAX`, waiting operators by `PENDING_MAX`.
//!
//! The first error ends the parse. Not here: rules about which clauses go together (`check`).

#![expect(clippy::unnecessary_box_returns, reason = "boxed errors keep the frames of the recursion small")]

mod expression;
mod habits;
mod primary;
mod query;

use crate::ast::{Expression, ExpressionKind, Name, SelectQuery};
use crate::error::{SyntaxError, code, excerpt};
use crate::lexer::Lexer;
use crate::span::Span;
use crate::token::{Keyword, Symbol, Token, TokenFault, TokenKind};

/// Longest query text, in UTF-16 units; the service's limit.
pub const TEXT_LENGTH_MAX: usize = 512 * 1024;

/// Most levels of a syntax tree, subqueries included.
pub const HEIGHT_MAX: u32 = 200;

/// Most brackets, calls and subqueries inside one another, which is how deep the parser recurses.
const NESTING_MAX: u32 = 128;

/// Most operators and parentheses that wait for an operand; far more than any printed tree needs.
const PENDING_MAX: usize = 32 * 1024;

/// Reads a whole query.
pub fn parse(text: &str) -> Result<SelectQuery, SyntaxError> {
    let whole = |mut parser: Parser<'_>| {
        let (query, _) = parser.query()?;
        parser.expect_end("another clause or the end of the query")?;
        Ok(*query)
    };
    Parser::new(text).and_then(whole).map_err(|error| *error)
}

/// Reads one scalar expression that stands alone.
pub fn parse_expression(text: &str) -> Result<Expression, SyntaxError> {
    let whole = |mut parser: Parser<'_>| {
        let built = parser.expression()?;
        parser.expect_end("an operator or the end of the expression")?;
        Ok(*built.expression)
    };
    Parser::new(text).and_then(whole).map_err(|error| *error)
}

/// The outcome of reading one construct. Errors and trees are boxed to keep the frames of the recursion small.
type Parsed<T> = Result<T, Box<SyntaxError>>;

/// An expression that was read, and its number of levels.
#[derive(Debug)]
struct Built {
    expression: Box<Expression>,
    height: u32,
}

/// The state of a parse: two tokens of lookahead and the operators that wait.
#[derive(Debug)]
struct Parser<'text> {
    text: &'text str,
    lexer: Lexer<'text>,
    current: Token,
    following: Token,
    /// The last token consumed, where a construct ends.
    previous: Span,
    nesting: u32,
    pending: Vec<expression::Pending>,
}

impl<'text> Parser<'text> {
    fn new(text: &'text str) -> Parsed<Self> {
        if text.len() > TEXT_LENGTH_MAX && text.encode_utf16().count() > TEXT_LENGTH_MAX {
            let message =
                format!("The SQL query text exceeded the maximum limit of {TEXT_LENGTH_MAX} characters.");
            let span = Span::new(0, text.len());
            return Err(Box::new(SyntaxError::new(text, span, code::TEXT_TOO_LONG, message, "")));
        }
        let mut lexer = Lexer::new(text);
        let (current, following) = (lexer.next(), lexer.next());
        Ok(Self {
            text,
            lexer,
            current,
            following,
            previous: Span::default(),
            nesting: 0,
            pending: Vec::new(),
        })
    }

    /// Consumes the current token and returns its span.
    fn advance(&mut self) -> Span {
        self.previous = self.current.span;
        self.current = self.following;
        self.following = self.lexer.next();
        self.previous
    }

    /// The text of the current token.
    fn piece(&self) -> &'text str {
        self.current.span.of(self.text)
    }

    fn at(&self, keyword: Keyword) -> bool {
        self.current.kind == TokenKind::Keyword(keyword)
    }

    fn at_symbol(&self, symbol: Symbol) -> bool {
        self.current.kind == TokenKind::Symbol(symbol)
    }

    /// Consumes the keyword if it is next.
    fn accept(&mut self, keyword: Keyword) -> bool {
        let found = self.at(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes the symbol if it is next.
    fn accept_symbol(&mut self, symbol: Symbol) -> bool {
        let found = self.at_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, keyword: Keyword, expected: &str) -> Parsed<Span> {
        if self.at(keyword) { Ok(self.advance()) } else { Err(self.unexpected(expected)) }
    }

    fn expect_symbol(&mut self, symbol: Symbol, expected: &str) -> Parsed<Span> {
        if self.at_symbol(symbol) { Ok(self.advance()) } else { Err(self.unexpected(expected)) }
    }

    fn expect_end(&self, expected: &str) -> Parsed<()> {
        if self.current.kind == TokenKind::End { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Whether the current token can be an alias.
    fn at_name(&self) -> bool {
        match self.current.kind {
            TokenKind::Identifier => true,
            TokenKind::Keyword(keyword) => keyword.is_name(),
            _ => false,
        }
    }

    fn expect_name(&mut self, expected: &str) -> Parsed<Name> {
        if !self.at_name() {
            return Err(self.unexpected(expected));
        }
        let text = self.piece().to_owned();
        Ok(Name { text, span: self.advance() })
    }

    /// Reads a bracketed construct one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == NESTING_MAX {
            return Err(self.too_deep(self.current.span));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Makes a node above parts of which the highest has `height` levels.
    fn build(&self, kind: ExpressionKind, span: Span, height: u32) -> Parsed<Built> {
        if height >= HEIGHT_MAX {
            // The parts are dropped here; each is within the bound.
            return Err(self.too_deep(span));
        }
        Ok(Built { expression: Box::new(Expression { kind, span }), height: height + 1 })
    }

    /// The error for the current token, which is not what the grammar asks for.
    fn unexpected(&self, expected: &str) -> Box<SyntaxError> {
        let piece = excerpt(self.piece());
        let (code, message, met) = match self.current.kind {
            TokenKind::End => (
                code::UNEXPECTED_END,
                "Syntax error, unexpected end-of-file.".to_owned(),
                "met the end of the query".to_owned(),
            ),
            TokenKind::Invalid(fault) => return self.invalid(fault),
            TokenKind::Keyword(_) => {
                (code::UNEXPECTED_TOKEN, incorrect_near(&piece), format!("met the reserved word '{piece}'"))
            }
            _ => (code::UNEXPECTED_TOKEN, incorrect_near(&piece), format!("met '{piece}'")),
        };
        self.error(
            self.current.span,
            code,
            message,
            &self.told(format!("{met}, expected {expected}"), expected),
        )
    }

    /// An explanation, with what to write instead where that is known.
    fn told(&self, explanation: String, expected: &str) -> String {
        match self.instead(expected) {
            Some(instead) => format!("{explanation}; {instead}"),
            None => explanation,
        }
    }

    /// The error for the current token, which is no token at all.
    fn invalid(&self, fault: TokenFault) -> Box<SyntaxError> {
        let piece = excerpt(self.piece());
        let (code, reason) = match fault {
            TokenFault::UnknownCharacter => (code::INVALID_TOKEN, "the language has no such character here"),
            TokenFault::BadNumber => (code::INVALID_TOKEN, "the number has no digits or is out of range"),
            TokenFault::UnterminatedString => (code::INVALID_STRING, "the string has no closing quote"),
            TokenFault::BadEscape => (code::INVALID_STRING, "the backslash begins no known escape"),
            TokenFault::ControlCharacter => (code::INVALID_STRING, "control characters must be escaped"),
        };
        let message = match code {
            code::INVALID_STRING => format!("Syntax error, invalid string literal token '{piece}'."),
            _ => format!("Syntax error, invalid token '{piece}'."),
        };
        self.error(self.current.span, code, message, &self.told(reason.to_owned(), ""))
    }

    fn too_deep(&self, span: Span) -> Box<SyntaxError> {
        let message = incorrect_near(&excerpt(span.of(self.text)));
        self.error(span, code::UNEXPECTED_TOKEN, message, "the query is nested too deeply")
    }

    fn error(&self, span: Span, code: &'static str, message: String, explanation: &str) -> Box<SyntaxError> {
        Box::new(SyntaxError::new(self.text, span, code, message, explanation))
    }
}

fn incorrect_near(piece: &str) -> String {
    format!("Syntax error, incorrect syntax near '{piece}'.")
}
