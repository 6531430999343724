//! Operands: literals, names, calls, array and object literals, subqueries, and what may follow them.
//!
//! Every construct with brackets recurses through `nested`, one function per construct, which keeps the frames of the
//! recursion small.

use super::{Built, Parsed, Parser};
use crate::ast::{Expression, ExpressionKind, ObjectMember, SubqueryForm};
use crate::literal::read_string;
use crate::number::Number;
use crate::span::Span;
use crate::token::{Keyword, Symbol, TokenFault, TokenKind};

/// Expressions in a row, and the height of the highest.
type BuiltList = (Vec<Expression>, u32);

impl Parser<'_> {
    /// An operand with its members and indexes, without prefix operators and parentheses.
    pub(super) fn primary(&mut self) -> Parsed<Built> {
        let built = match self.current.kind {
            TokenKind::Number | TokenKind::String { .. } | TokenKind::Parameter | TokenKind::Identifier => {
                if self.current.kind == TokenKind::Identifier && self.followed_by_parenthesis() {
                    self.call()?
                } else {
                    self.leaf()?
                }
            }
            TokenKind::Keyword(keyword) => self.keyword_primary(keyword)?,
            TokenKind::Symbol(Symbol::OpenBracket) => self.array()?,
            TokenKind::Symbol(Symbol::OpenBrace) => self.object()?,
            TokenKind::Symbol(Symbol::OpenParenthesis) => {
                let start = self.current.span;
                self.subquery(SubqueryForm::Scalar, start)?
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.postfix(built)
    }

    fn followed_by_parenthesis(&self) -> bool {
        self.following.kind == TokenKind::Symbol(Symbol::OpenParenthesis)
    }

    /// A literal, parameter or name.
    fn leaf(&mut self) -> Parsed<Built> {
        let piece = self.piece();
        let kind = match self.current.kind {
            TokenKind::Number => {
                let number = Number::read(piece).ok_or_else(|| self.invalid(TokenFault::BadNumber))?;
                ExpressionKind::Number(number)
            }
            TokenKind::String { .. } => ExpressionKind::String(self.string_value()?),
            TokenKind::Parameter => ExpressionKind::Parameter(piece.to_owned()),
            _ => match piece {
                "NaN" => ExpressionKind::Number(Number::double(f64::NAN)),
                "Infinity" => ExpressionKind::Number(Number::double(f64::INFINITY)),
                _ => ExpressionKind::Identifier(piece.to_owned()),
            },
        };
        let span = self.advance();
        self.build(kind, span, 0)
    }

    /// The value of the string that is the current token.
    pub(super) fn string_value(&self) -> Parsed<String> {
        let TokenKind::String { escaped } = self.current.kind else {
            return Err(self.unexpected("a string"));
        };
        read_string(self.piece(), escaped).ok_or_else(|| self.invalid(TokenFault::BadEscape))
    }

    fn keyword_primary(&mut self, keyword: Keyword) -> Parsed<Built> {
        let kind = match keyword {
            Keyword::True => ExpressionKind::Boolean(true),
            Keyword::False => ExpressionKind::Boolean(false),
            Keyword::Null => ExpressionKind::Null,
            Keyword::Undefined => ExpressionKind::Undefined,
            Keyword::Udf => return self.user_call(),
            Keyword::Exists => return self.keyword_subquery(SubqueryForm::Exists),
            Keyword::Array => return self.keyword_subquery(SubqueryForm::Array),
            Keyword::Left | Keyword::Right if self.followed_by_parenthesis() => return self.call(),
            Keyword::All | Keyword::First | Keyword::Last if self.followed_by_parenthesis() => {
                return self.call_or_subquery(keyword);
            }
            _ if keyword.is_name() => return self.leaf(),
            _ => return Err(self.unexpected("an expression")),
        };
        let span = self.advance();
        self.build(kind, span, 0)
    }

    /// `EXISTS (..)` or `ARRAY (..)`.
    fn keyword_subquery(&mut self, form: SubqueryForm) -> Parsed<Built> {
        let start = self.advance();
        self.subquery(form, start)
    }

    /// `ALL`, `FIRST` or `LAST` before a parenthesis: a subquery if SELECT follows, else a function of that name.
    fn call_or_subquery(&mut self, keyword: Keyword) -> Parsed<Built> {
        let name = self.piece().to_owned();
        let start = self.advance();
        let form = match keyword {
            Keyword::All => SubqueryForm::All,
            Keyword::First => SubqueryForm::First,
            _ => SubqueryForm::Last,
        };
        if self.following.kind == TokenKind::Keyword(Keyword::Select) {
            return self.subquery(form, start);
        }
        self.call_from_parenthesis(name, false, start)
    }

    /// `(SELECT ..)` at the parenthesis, as the `form` that began at `start`.
    fn subquery(&mut self, form: SubqueryForm, start: Span) -> Parsed<Built> {
        self.expect_symbol(Symbol::OpenParenthesis, "'(' and a subquery")?;
        let (query, height) = self.nested(Self::query)?;
        let end = self.expect_symbol(Symbol::CloseParenthesis, "')' after the subquery")?;
        self.build(ExpressionKind::Subquery { form, query }, start.to(end), height)
    }

    fn call(&mut self) -> Parsed<Built> {
        let name = self.piece().to_owned();
        let start = self.advance();
        self.call_from_parenthesis(name, false, start)
    }

    fn user_call(&mut self) -> Parsed<Built> {
        let start = self.advance();
        self.expect_symbol(Symbol::Dot, "'.' and the name of a user-defined function")?;
        let name = self.member_name("the name of a user-defined function")?;
        self.call_from_parenthesis(name, true, start)
    }

    fn call_from_parenthesis(&mut self, name: String, user_defined: bool, start: Span) -> Parsed<Built> {
        self.expect_symbol(Symbol::OpenParenthesis, "'(' and arguments")?;
        let (arguments, height) = self.list(Symbol::CloseParenthesis, "',' or ')' after the argument")?;
        let kind = ExpressionKind::Call { name, user_defined, arguments };
        self.build(kind, start.to(self.previous), height)
    }

    fn array(&mut self) -> Parsed<Built> {
        let start = self.advance();
        let (elements, height) = self.list(Symbol::CloseBracket, "',' or ']' after the element")?;
        self.build(ExpressionKind::Array(elements), start.to(self.previous), height)
    }

    /// Expressions between commas up to and with the closing symbol; possibly none.
    fn list(&mut self, close: Symbol, expected: &str) -> Parsed<BuiltList> {
        if self.accept_symbol(close) {
            return Ok((Vec::new(), 0));
        }
        self.filled_list(close, expected)
    }

    /// One or more expressions between commas up to and with the closing symbol.
    pub(super) fn filled_list(&mut self, close: Symbol, expected: &str) -> Parsed<BuiltList> {
        let mut expressions = Vec::new();
        let mut height = 0;
        loop {
            let built = self.nested(Self::expression)?;
            height = height.max(built.height);
            expressions.push(*built.expression);
            if self.accept_symbol(close) {
                return Ok((expressions, height));
            }
            self.expect_symbol(Symbol::Comma, expected)?;
        }
    }

    fn object(&mut self) -> Parsed<Built> {
        let start = self.advance();
        let mut members = Vec::new();
        let mut height = 0;
        if !self.accept_symbol(Symbol::CloseBrace) {
            loop {
                let (member, inner) = self.object_member()?;
                members.push(member);
                height = height.max(inner);
                if self.accept_symbol(Symbol::CloseBrace) {
                    break;
                }
                self.expect_symbol(Symbol::Comma, "',' or '}' after the member")?;
            }
        }
        self.build(ExpressionKind::Object(members), start.to(self.previous), height)
    }

    fn object_member(&mut self) -> Parsed<(ObjectMember, u32)> {
        // Any word can name a member: no other construct begins here, so none can be meant.
        let name = match self.current.kind {
            TokenKind::String { .. } => self.string_value()?,
            TokenKind::Identifier | TokenKind::Keyword(_) => self.piece().to_owned(),
            _ => return Err(self.unexpected("the name of a member or '}'")),
        };
        let start = self.advance();
        self.expect_symbol(Symbol::Colon, "':' after the name of the member")?;
        let Built { expression: value, height } = self.nested(Self::expression)?;
        let span = start.to(value.span);
        Ok((ObjectMember { name, value: *value, span }, height))
    }

    /// Members and indexes applied to `built`.
    pub(super) fn postfix(&mut self, mut built: Built) -> Parsed<Built> {
        loop {
            built = match self.current.kind {
                TokenKind::Symbol(Symbol::Dot) => self.dotted_member(built)?,
                TokenKind::Symbol(Symbol::OpenBracket) => self.indexed(built)?,
                _ => return Ok(built),
            }
        }
    }

    fn dotted_member(&mut self, base: Built) -> Parsed<Built> {
        self.advance();
        let name = self.member_name("the name of a property")?;
        let span = base.expression.span.to(self.previous);
        let kind = ExpressionKind::Member { base: base.expression, name, bracketed: false };
        self.build(kind, span, base.height)
    }

    fn member_name(&mut self, expected: &str) -> Parsed<String> {
        let accepted = match self.current.kind {
            TokenKind::Identifier => true,
            TokenKind::Keyword(keyword) => keyword.is_member_name(),
            _ => false,
        };
        if !accepted {
            return Err(self.unexpected(expected));
        }
        let name = self.piece().to_owned();
        self.advance();
        Ok(name)
    }

    fn indexed(&mut self, base: Built) -> Parsed<Built> {
        self.advance();
        let mut index = self.nested(Self::expression)?;
        let end = self.expect_symbol(Symbol::CloseBracket, "']' after the index")?;
        let span = base.expression.span.to(end);
        let height = base.height.max(index.height);
        let object = base.expression;
        let kind = if let ExpressionKind::String(name) = &mut index.expression.kind {
            ExpressionKind::Member { base: object, name: std::mem::take(name), bracketed: true }
        } else {
            ExpressionKind::Index { base: object, index: index.expression }
        };
        self.build(kind, span, height)
    }
}
