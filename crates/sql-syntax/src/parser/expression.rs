//! Operators: precedence with an explicit stack.
//!
//! The parser alternates between wanting an operand and wanting an operator. Prefix operators, open parentheses and
//! left halves wait on `Parser::pending`; an operator first completes every waiting one that binds at least as tightly,
//! then waits itself. `pending` is shared by nested expressions: each works above the length it found (`base`).
//!
//! Invariants
//! - Three entries complete only by their own token and stop every reduction: an open parenthesis, the condition before
//!   `:`, the lower bound before the AND of BETWEEN.
//! - A chain of AND or OR grows one node, also through redundant parentheses, so its length costs no height.

use super::{Built, PENDING_MAX, Parsed, Parser};
use crate::ast::{BinaryOperator, Expression, ExpressionKind, LogicalOperator, UnaryOperator};
use crate::span::Span;
use crate::token::{Keyword, Symbol, TokenKind};

/// How tightly an operator binds; a higher level binds tighter. The ladder is that of the service's own grammar: shifts
/// stand with the comparisons, the operators on bits with addition, and NOT with the signs.
mod level {
    /// Entries that wait for their own token.
    pub(super) const BARRIER: u8 = 0;
    pub(super) const CONDITIONAL: u8 = 1;
    pub(super) const COALESCE: u8 = 2;
    pub(super) const OR: u8 = 3;
    pub(super) const AND: u8 = 4;
    /// IN, LIKE and BETWEEN.
    pub(super) const MEMBERSHIP: u8 = 5;
    /// Comparisons and shifts.
    pub(super) const COMPARISON: u8 = 6;
    pub(super) const CONCATENATION: u8 = 7;
    /// Addition, subtraction, and the operators on bits.
    pub(super) const ADDITION: u8 = 8;
    pub(super) const MULTIPLICATION: u8 = 9;
    /// Signs, `~` and NOT.
    pub(super) const PREFIX: u8 = 10;
}

/// Something that waits for the operand to its right.
#[derive(Debug)]
pub(super) enum Pending {
    Group { open: Span },
    Prefix { operator: UnaryOperator, span: Span },
    Binary { left: Built, operator: BinaryOperator },
    Logical { left: Built, operator: LogicalOperator },
    Coalesce { left: Built },
    Like { value: Built, negated: bool },
    BetweenLow { value: Built, negated: bool },
    BetweenHigh { value_and_low: Box<(Built, Built)>, negated: bool },
    Condition { condition: Built },
    Otherwise { condition_and_then: Box<(Built, Built)> },
}

impl Pending {
    fn level(&self) -> u8 {
        match self {
            Self::Group { .. } | Self::Condition { .. } | Self::BetweenLow { .. } => level::BARRIER,
            Self::Otherwise { .. } => level::CONDITIONAL,
            Self::Coalesce { .. } => level::COALESCE,
            Self::Logical { operator: LogicalOperator::Or, .. } => level::OR,
            Self::Logical { operator: LogicalOperator::And, .. } => level::AND,
            Self::Like { .. } | Self::BetweenHigh { .. } => level::MEMBERSHIP,
            Self::Binary { operator, .. } => binary_level(*operator),
            Self::Prefix { .. } => level::PREFIX,
        }
    }
}

/// What the parser wants after an operator position.
enum OperatorStep {
    Operand,
    Operator(Built),
    Done(Built),
}

impl Parser<'_> {
    /// An expression, up to the first token that continues none.
    pub(super) fn expression(&mut self) -> Parsed<Built> {
        let base = self.pending.len();
        let mut operand = self.operand()?;
        loop {
            match self.operator(base, operand)? {
                OperatorStep::Operand => operand = self.operand()?,
                OperatorStep::Operator(built) => operand = built,
                OperatorStep::Done(built) => return Ok(built),
            }
        }
    }

    /// Prefix operators and open parentheses, which wait, then a primary expression.
    fn operand(&mut self) -> Parsed<Built> {
        loop {
            let operator = match self.current.kind {
                TokenKind::Symbol(Symbol::Minus) => UnaryOperator::Minus,
                TokenKind::Symbol(Symbol::Plus) => UnaryOperator::Plus,
                TokenKind::Symbol(Symbol::Tilde) => UnaryOperator::BitNot,
                TokenKind::Keyword(Keyword::Not) => UnaryOperator::Not,
                TokenKind::Symbol(Symbol::OpenParenthesis)
                    if self.following.kind != TokenKind::Keyword(Keyword::Select) =>
                {
                    let open = self.advance();
                    self.wait(Pending::Group { open })?;
                    continue;
                }
                _ => return self.primary(),
            };
            let span = self.advance();
            self.wait(Pending::Prefix { operator, span })?;
        }
    }

    fn wait(&mut self, pending: Pending) -> Parsed<OperatorStep> {
        if self.pending.len() >= PENDING_MAX {
            return Err(self.too_deep(self.previous));
        }
        self.pending.push(pending);
        Ok(OperatorStep::Operand)
    }

    /// Decides what the token after `operand` does with it.
    fn operator(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::CloseParenthesis) => self.close_group(base, operand),
            TokenKind::Symbol(Symbol::Question) => {
                let condition = self.reduce_strictly(base, operand, level::COALESCE)?;
                self.advance();
                self.wait(Pending::Condition { condition })
            }
            TokenKind::Symbol(Symbol::Colon) => self.otherwise(base, operand),
            TokenKind::Symbol(Symbol::DoubleQuestion) => {
                // The one operator that groups from the right: what waits on its level goes on waiting.
                let left = self.reduce_strictly(base, operand, level::COALESCE + 1)?;
                self.advance();
                self.wait(Pending::Coalesce { left })
            }
            TokenKind::Keyword(Keyword::Or) => {
                let left = self.reduce_strictly(base, operand, level::OR)?;
                self.advance();
                self.wait(Pending::Logical { left, operator: LogicalOperator::Or })
            }
            TokenKind::Keyword(Keyword::And) => self.and(base, operand),
            TokenKind::Keyword(Keyword::Not | Keyword::In | Keyword::Like | Keyword::Between) => {
                self.membership(base, operand)
            }
            TokenKind::Keyword(Keyword::Escape) => self.escape(base, operand),
            TokenKind::Symbol(symbol) => match binary_operator(symbol) {
                Some(operator) => {
                    let left = self.reduce(base, operand, binary_level(operator))?;
                    self.advance();
                    self.wait(Pending::Binary { left, operator })
                }
                None => self.finish(base, operand),
            },
            _ => self.finish(base, operand),
        }
    }

    /// `)`: ends a group of this expression, or the expression itself when the parenthesis is not its own.
    fn close_group(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let mut operand = self.reduce(base, operand, level::CONDITIONAL)?;
        if self.pending.len() > base
            && let Some(Pending::Group { open }) = self.pending.last()
        {
            operand.expression.span = open.to(self.current.span);
            self.pending.pop();
            self.advance();
            return self.postfix(operand).map(OperatorStep::Operator);
        }
        self.finish(base, operand)
    }

    /// `:`: ends the middle of a conditional.
    fn otherwise(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let then = self.reduce(base, operand, level::CONDITIONAL)?;
        if self.pending.len() == base {
            return Ok(OperatorStep::Done(then));
        }
        match self.pending.pop() {
            Some(Pending::Condition { condition }) => {
                self.advance();
                self.wait(Pending::Otherwise { condition_and_then: Box::new((condition, then)) })
            }
            barrier => Err(self.unclosed(barrier.as_ref())),
        }
    }

    /// `AND`: of BETWEEN if one waits for it, else the logical operator.
    fn and(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let operand = self.reduce(base, operand, level::AND)?;
        self.advance();
        if self.pending.len() > base {
            match self.pending.pop() {
                Some(Pending::BetweenLow { value, negated }) => {
                    let value_and_low = Box::new((value, operand));
                    return self.wait(Pending::BetweenHigh { value_and_low, negated });
                }
                other => self.pending.extend(other),
            }
        }
        self.wait(Pending::Logical { left: operand, operator: LogicalOperator::And })
    }

    /// `[NOT] IN`, `[NOT] LIKE`, `[NOT] BETWEEN`.
    fn membership(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let value = self.reduce_strictly(base, operand, level::MEMBERSHIP)?;
        let negated = self.accept(Keyword::Not);
        if self.accept(Keyword::Like) {
            return self.wait(Pending::Like { value, negated });
        }
        if self.accept(Keyword::Between) {
            return self.wait(Pending::BetweenLow { value, negated });
        }
        self.expect(Keyword::In, "IN, LIKE or BETWEEN")?;
        self.expect_symbol(Symbol::OpenParenthesis, "'(' and a list")?;
        let (list, height) = self.filled_list(Symbol::CloseParenthesis, "',' or ')' after the item")?;
        let span = value.expression.span.to(self.previous);
        let height = height.max(value.height);
        let kind = ExpressionKind::In { value: value.expression, list, negated };
        self.build(kind, span, height).map(OperatorStep::Operator)
    }

    /// `ESCAPE 'c'` after the pattern of a LIKE.
    fn escape(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let pattern = self.reduce(base, operand, level::MEMBERSHIP + 1)?;
        if self.pending.len() == base || !matches!(self.pending.last(), Some(Pending::Like { .. })) {
            return self.finish(base, pattern);
        }
        let Some(Pending::Like { value, negated }) = self.pending.pop() else {
            return Err(self.unexpected("an operator"));
        };
        self.advance();
        let text = self.string_value()?;
        let mut characters = text.chars();
        let (Some(escape), None) = (characters.next(), characters.next()) else {
            return Err(self.unexpected("a string of one character"));
        };
        let end = self.advance();
        self.like(value, pattern, Some(escape), negated, end).map(OperatorStep::Operator)
    }

    /// A token that continues no expression: everything that waits must be complete.
    fn finish(&mut self, base: usize, operand: Built) -> Parsed<OperatorStep> {
        let built = self.reduce(base, operand, level::CONDITIONAL)?;
        if self.pending.len() > base {
            Err(self.unclosed(self.pending.last()))
        } else {
            Ok(OperatorStep::Done(built))
        }
    }

    /// The error for a barrier whose own token is missing.
    fn unclosed(&self, barrier: Option<&Pending>) -> Box<crate::SyntaxError> {
        self.unexpected(match barrier {
            Some(Pending::Group { .. }) => "an operator or ')'",
            Some(Pending::Condition { .. }) => "an operator or the ':' of '?'",
            Some(Pending::BetweenLow { .. }) => "an operator or the AND of BETWEEN",
            _ => "an operator",
        })
    }

    /// Like `reduce`, for operators that cannot stand inside the lower bound of a BETWEEN.
    fn reduce_strictly(&mut self, base: usize, operand: Built, level: u8) -> Parsed<Built> {
        let operand = self.reduce(base, operand, level)?;
        match self.pending.last() {
            Some(barrier @ Pending::BetweenLow { .. }) if self.pending.len() > base => {
                Err(self.unclosed(Some(barrier)))
            }
            _ => Ok(operand),
        }
    }

    /// Completes what waits above `base` and binds at least as tightly as `level`.
    fn reduce(&mut self, base: usize, mut operand: Built, level: u8) -> Parsed<Built> {
        while self.pending.len() > base && self.pending.last().is_some_and(|top| top.level() >= level) {
            let Some(pending) = self.pending.pop() else { break };
            operand = self.complete(pending, operand)?;
        }
        Ok(operand)
    }

    /// Gives a waiting operator its right operand.
    fn complete(&self, pending: Pending, right: Built) -> Parsed<Built> {
        match pending {
            Pending::Prefix { operator, span } => self.unary(operator, span, right),
            Pending::Binary { left, operator } => {
                self.join(left, right, |left, right| ExpressionKind::Binary { operator, left, right })
            }
            Pending::Logical { left, operator } => self.logical(left, operator, right),
            Pending::Coalesce { left } => {
                self.join(left, right, |left, right| ExpressionKind::Coalesce { left, right })
            }
            Pending::Like { value, negated } => {
                let end = right.expression.span;
                self.like(value, right, None, negated, end)
            }
            Pending::BetweenHigh { value_and_low, negated } => {
                let (value, low) = *value_and_low;
                self.join_three(value, low, right, |value, low, high| ExpressionKind::Between {
                    value,
                    low,
                    high,
                    negated,
                })
            }
            Pending::Otherwise { condition_and_then } => {
                let (condition, then) = *condition_and_then;
                self.join_three(condition, then, right, |condition, then, otherwise| {
                    ExpressionKind::Conditional { condition, then, otherwise }
                })
            }
            Pending::Group { .. } | Pending::Condition { .. } | Pending::BetweenLow { .. } => {
                unreachable!("a barrier has the lowest level and is never reduced")
            }
        }
    }

    fn unary(&self, operator: UnaryOperator, span: Span, operand: Built) -> Parsed<Built> {
        let span = span.to(operand.expression.span);
        // A signed literal is one number: this keeps the least 64-bit integer exact.
        if let (UnaryOperator::Minus, ExpressionKind::Number(number)) = (operator, &operand.expression.kind) {
            return self.build(ExpressionKind::Number(number.negate()), span, 0);
        }
        let kind = ExpressionKind::Unary { operator, operand: operand.expression };
        self.build(kind, span, operand.height)
    }

    fn logical(&self, mut left: Built, operator: LogicalOperator, right: Built) -> Parsed<Built> {
        let span = left.expression.span.to(right.expression.span);
        match &mut left.expression.kind {
            ExpressionKind::Logical { operator: same, operands } if *same == operator => {
                if right.height >= crate::HEIGHT_MAX {
                    return Err(self.too_deep(span));
                }
                operands.push(*right.expression);
                left.expression.span = span;
                left.height = left.height.max(right.height + 1);
                Ok(left)
            }
            _ => {
                let operands = vec![*left.expression, *right.expression];
                self.build(
                    ExpressionKind::Logical { operator, operands },
                    span,
                    left.height.max(right.height),
                )
            }
        }
    }

    fn like(
        &self,
        value: Built,
        pattern: Built,
        escape: Option<char>,
        negated: bool,
        end: Span,
    ) -> Parsed<Built> {
        let span = value.expression.span.to(end);
        let height = value.height.max(pattern.height);
        let (value, pattern) = (value.expression, pattern.expression);
        self.build(ExpressionKind::Like { value, pattern, escape, negated }, span, height)
    }

    fn join(
        &self,
        left: Built,
        right: Built,
        make: impl FnOnce(Box<Expression>, Box<Expression>) -> ExpressionKind,
    ) -> Parsed<Built> {
        let span = left.expression.span.to(right.expression.span);
        let height = left.height.max(right.height);
        self.build(make(left.expression, right.expression), span, height)
    }

    fn join_three(
        &self,
        first: Built,
        second: Built,
        third: Built,
        make: impl FnOnce(Box<Expression>, Box<Expression>, Box<Expression>) -> ExpressionKind,
    ) -> Parsed<Built> {
        let span = first.expression.span.to(third.expression.span);
        let height = first.height.max(second.height).max(third.height);
        let kind = make(first.expression, second.expression, third.expression);
        self.build(kind, span, height)
    }
}

fn binary_operator(symbol: Symbol) -> Option<BinaryOperator> {
    Some(match symbol {
        Symbol::Star => BinaryOperator::Multiply,
        Symbol::Slash => BinaryOperator::Divide,
        Symbol::Percent => BinaryOperator::Remainder,
        Symbol::Plus => BinaryOperator::Add,
        Symbol::Minus => BinaryOperator::Subtract,
        Symbol::DoubleBar => BinaryOperator::Concatenate,
        Symbol::ShiftLeft => BinaryOperator::ShiftLeft,
        Symbol::ShiftRight => BinaryOperator::ShiftRight,
        Symbol::ShiftRightZero => BinaryOperator::ShiftRightZero,
        Symbol::Ampersand => BinaryOperator::BitAnd,
        Symbol::Caret => BinaryOperator::BitXor,
        Symbol::Bar => BinaryOperator::BitOr,
        Symbol::Equal => BinaryOperator::Equal,
        Symbol::NotEqual => BinaryOperator::NotEqual,
        Symbol::Less => BinaryOperator::Less,
        Symbol::LessOrEqual => BinaryOperator::LessOrEqual,
        Symbol::Greater => BinaryOperator::Greater,
        Symbol::GreaterOrEqual => BinaryOperator::GreaterOrEqual,
        _ => return None,
    })
}

fn binary_level(operator: BinaryOperator) -> u8 {
    use BinaryOperator::{
        Add, BitAnd, BitOr, BitXor, Concatenate, Divide, Equal, Greater, GreaterOrEqual, Less, LessOrEqual,
        Multiply, NotEqual, Remainder, ShiftLeft, ShiftRight, ShiftRightZero, Subtract,
    };
    match operator {
        Multiply | Divide | Remainder => level::MULTIPLICATION,
        Add | Subtract | BitAnd | BitXor | BitOr => level::ADDITION,
        Concatenate => level::CONCATENATION,
        ShiftLeft | ShiftRight | ShiftRightZero | Equal | NotEqual | Less | LessOrEqual | Greater
        | GreaterOrEqual => level::COMPARISON,
    }
}
