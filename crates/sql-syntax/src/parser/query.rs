//! Clauses: the shape of a query and of its sources.
//!
//! Each function reads one clause from its keyword on and returns it with the height of its highest expression.
//! Counts after TOP, OFFSET and LIMIT are judged here, where their digits are at hand.

use super::{Built, Parsed, Parser};
use crate::ast::{
    Collection, Count, Expression, ExpressionKind, FromClause, FromSource, FromSourceKind, Name, OffsetLimit,
    OrderBy, OrderItem, Select, SelectForm, SelectItem, SelectQuery, SortDirection,
};
use crate::error::code;
use crate::number::Number;
use crate::span::Span;
use crate::token::{Keyword, Symbol, TokenKind};

impl Parser<'_> {
    /// A query or subquery, up to the first token that no clause takes.
    pub(super) fn query(&mut self) -> Parsed<(Box<SelectQuery>, u32)> {
        let start = self.current.span;
        let mut height = 0;
        let mut query = Box::new(SelectQuery {
            select: self.select(&mut height)?,
            from: None,
            filter: None,
            group_by: Vec::new(),
            order_by: None,
            offset_limit: None,
            span: start,
        });
        self.later_clauses(&mut query, &mut height)?;
        query.span = start.to(self.previous);
        Ok((query, height))
    }

    fn later_clauses(&mut self, query: &mut SelectQuery, height: &mut u32) -> Parsed<()> {
        if self.at(Keyword::From) {
            query.from = Some(self.sources(height)?);
        }
        if self.accept(Keyword::Where) {
            query.filter = Some(self.tracked(height)?);
        }
        if self.at(Keyword::Group) {
            query.group_by = self.group_by(height)?;
        }
        if self.at(Keyword::Order) {
            query.order_by = Some(self.order_by(height)?);
        }
        if self.at(Keyword::Offset) {
            query.offset_limit = Some(self.offset_limit()?);
        }
        Ok(())
    }

    /// An expression whose height is added to the measure.
    fn tracked(&mut self, height: &mut u32) -> Parsed<Expression> {
        self.tracked_box(height).map(|expression| *expression)
    }

    fn tracked_box(&mut self, height: &mut u32) -> Parsed<Box<Expression>> {
        let built = self.expression()?;
        *height = (*height).max(built.height);
        Ok(built.expression)
    }

    fn select(&mut self, height: &mut u32) -> Parsed<Select> {
        let start = self.expect(Keyword::Select, "SELECT")?;
        let distinct = self.accept(Keyword::Distinct);
        let top = if self.accept(Keyword::Top) { Some(self.count("TOP", code::TOP_COUNT)?) } else { None };
        let projection = if self.accept_symbol(Symbol::Star) {
            SelectForm::Star
        } else if self.accept(Keyword::Value) {
            SelectForm::Value(self.tracked_box(height)?)
        } else {
            let mut items = vec![self.select_item(height)?];
            while self.accept_symbol(Symbol::Comma) {
                items.push(self.select_item(height)?);
            }
            SelectForm::List(items)
        };
        Ok(Select { distinct, top, projection, span: start.to(self.previous) })
    }

    fn select_item(&mut self, height: &mut u32) -> Parsed<SelectItem> {
        let expression = self.tracked(height)?;
        let alias = self.item_alias()?;
        let span = expression.span.to(self.previous);
        Ok(SelectItem { expression, alias, span })
    }

    /// The alias of a column: like that of a source, or any text in quotes after AS.
    fn item_alias(&mut self) -> Parsed<Option<Name>> {
        let is_quoted = matches!(self.following.kind, TokenKind::String { .. });
        if !(self.at(Keyword::As) && is_quoted) {
            return self.alias();
        }
        self.advance();
        let text = self.string_value()?;
        Ok(Some(Name { text, span: self.advance() }))
    }

    /// `AS name`, `name`, or nothing.
    fn alias(&mut self) -> Parsed<Option<Name>> {
        if self.accept(Keyword::As) || self.at_name() {
            return self.expect_name("a name").map(Some);
        }
        Ok(None)
    }

    fn sources(&mut self, height: &mut u32) -> Parsed<FromClause> {
        let start = self.advance();
        let first = self.source(height)?;
        let mut joins = Vec::new();
        while self.accept(Keyword::Join) {
            joins.push(self.source(height)?);
        }
        Ok(FromClause { first, joins, span: start.to(self.previous) })
    }

    fn source(&mut self, height: &mut u32) -> Parsed<FromSource> {
        let start = self.current.span;
        let kind = if self.at_symbol(Symbol::OpenParenthesis) {
            let query = self.source_subquery(height)?;
            FromSourceKind::Subquery { query, alias: self.alias()? }
        } else if self.at_name() && self.following.kind == TokenKind::Keyword(Keyword::In) {
            let alias = self.expect_name("a name")?;
            self.advance();
            let collection = if self.at_symbol(Symbol::OpenParenthesis) {
                Collection::Subquery(self.source_subquery(height)?)
            } else {
                Collection::Path(self.path(height)?)
            };
            FromSourceKind::Iterate { alias, collection }
        } else {
            let path = self.path(height)?;
            FromSourceKind::Path { path, alias: self.alias()? }
        };
        Ok(FromSource { kind, span: start.to(self.previous) })
    }

    fn source_subquery(&mut self, height: &mut u32) -> Parsed<Box<SelectQuery>> {
        self.expect_symbol(Symbol::OpenParenthesis, "'('")?;
        let (query, inner) = self.nested(Self::query)?;
        self.expect_symbol(Symbol::CloseParenthesis, "')' after the subquery")?;
        // A subquery is a level of its own, as it is for expressions.
        *height = (*height).max(inner + 1);
        Ok(query)
    }

    /// A name with members and constant indexes applied to it.
    fn path(&mut self, height: &mut u32) -> Parsed<Expression> {
        let name = self.expect_name("the name of a source or a subquery in parentheses")?;
        let root = self.build(ExpressionKind::Identifier(name.text), name.span, 0)?;
        let Built { expression, height: inner } = self.postfix(root)?;
        if let Some(index) = computed_index(&expression) {
            let message = super::incorrect_near(&crate::error::excerpt(index.of(self.text)));
            let expected = "expected a number, a string or a parameter";
            return Err(self.error(index, code::UNEXPECTED_TOKEN, message, expected));
        }
        *height = (*height).max(inner);
        Ok(*expression)
    }

    fn group_by(&mut self, height: &mut u32) -> Parsed<Vec<Expression>> {
        self.advance();
        self.expect(Keyword::By, "BY")?;
        let mut expressions = vec![self.tracked(height)?];
        while self.accept_symbol(Symbol::Comma) {
            expressions.push(self.tracked(height)?);
        }
        Ok(expressions)
    }

    fn order_by(&mut self, height: &mut u32) -> Parsed<OrderBy> {
        let start = self.advance();
        self.expect(Keyword::By, "BY")?;
        // RANK is a name as well; the clause is one only before a function's name.
        let scored = match self.following.kind {
            TokenKind::Identifier => true,
            TokenKind::Keyword(keyword) => {
                keyword.is_name() || matches!(keyword, Keyword::Left | Keyword::Right)
            }
            _ => false,
        };
        if scored && self.accept(Keyword::Rank) {
            let score = self.tracked(height)?;
            if self.accept(Keyword::Asc) || self.accept(Keyword::Desc) {
                let message =
                    "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";
                return Err(self.error(
                    self.previous,
                    code::RANK_DIRECTION,
                    message.to_owned(),
                    "the best comes first",
                ));
            }
            return Ok(OrderBy::Rank { score, span: start.to(self.previous) });
        }
        let mut items = vec![self.order_item(height)?];
        while self.accept_symbol(Symbol::Comma) {
            items.push(self.order_item(height)?);
        }
        Ok(OrderBy::Items { items, span: start.to(self.previous) })
    }

    fn order_item(&mut self, height: &mut u32) -> Parsed<OrderItem> {
        let expression = self.tracked(height)?;
        let direction = if self.accept(Keyword::Asc) {
            Some(SortDirection::Ascending)
        } else if self.accept(Keyword::Desc) {
            Some(SortDirection::Descending)
        } else {
            None
        };
        Ok(OrderItem { expression, direction })
    }

    fn offset_limit(&mut self) -> Parsed<OffsetLimit> {
        let start = self.advance();
        let offset = self.count("OFFSET", code::OFFSET_COUNT)?;
        self.expect(Keyword::Limit, "LIMIT")?;
        let limit = self.count("LIMIT", code::LIMIT_COUNT)?;
        Ok(OffsetLimit { offset, limit, span: start.to(self.previous) })
    }

    /// The number or parameter after `clause`.
    fn count(&mut self, clause: &str, error_code: &'static str) -> Parsed<Count> {
        let piece = self.piece();
        match self.current.kind {
            TokenKind::Parameter => {
                let name = piece.to_owned();
                Ok(Count::Parameter { name, span: self.advance() })
            }
            TokenKind::Number => {
                let span = self.advance();
                let message = match Number::read(piece) {
                    Some(Number::Integer(value)) => match u32::try_from(value) {
                        Ok(value) => return Ok(Count::Literal { value, span }),
                        Err(_) => format!("{clause} count exceeds the maximum allowed value."),
                    },
                    Some(Number::Double(value)) if value.fract() != 0.0 => {
                        format!("{clause} count must be an integer.")
                    }
                    _ => format!("{clause} count exceeds the maximum allowed value."),
                };
                let explanation = format!("counts go from 0 to {}", u32::MAX);
                Err(self.error(span, error_code, message, &explanation))
            }
            _ => Err(self.unexpected("a number or a parameter")),
        }
    }
}

/// The first index of a path that is not known before rows are read.
fn computed_index(mut path: &Expression) -> Option<Span> {
    loop {
        path = match &path.kind {
            ExpressionKind::Member { base, .. } => base,
            ExpressionKind::Index { base, index } => match index.kind {
                ExpressionKind::Number(_) | ExpressionKind::Parameter(_) => base,
                _ => return Some(index.span),
            },
            _ => return None,
        }
    }
}
