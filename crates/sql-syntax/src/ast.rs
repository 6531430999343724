//! The syntax tree: plain data, every node with its place in the text.
//!
//! Invariants of trees from `parse`
//! - At most `HEIGHT_MAX` levels high, counting through subqueries.
//! - `Logical` has two or more operands, and its first operand is no `Logical` of the same operator: `a OR b OR c` is one
//!   node. Other binary operators have two operands.
//! - The negative of a number literal is a number literal. Parentheses leave no node, but count into spans.
//! - `x["name"]` is a `Member` with `bracketed` set; `Index` holds every other index.
//! - There is no `Raw`.
//!
//! Equality compares meaning and ignores spans. Not here: names resolved to sources, types, values (`sql-plan`).

use crate::number::Number;
use crate::span::Span;

/// A whole query or a subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectQuery {
    /// What each row becomes.
    pub select: Select,
    /// Where rows come from; without it there is one row and no names.
    pub from: Option<FromClause>,
    /// The condition after WHERE.
    pub filter: Option<Expression>,
    /// The expressions after GROUP BY; empty without that clause.
    pub group_by: Vec<Expression>,
    /// The ORDER BY clause.
    pub order_by: Option<OrderBy>,
    /// The OFFSET LIMIT clause.
    pub offset_limit: Option<OffsetLimit>,
    /// From `SELECT` to the last token.
    pub span: Span,
}

/// The SELECT clause.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Whether equal rows are returned once.
    pub distinct: bool,
    /// The number after TOP.
    pub top: Option<Count>,
    /// What follows.
    pub projection: SelectForm,
    /// From `SELECT` to the end of the projection.
    pub span: Span,
}

/// The form of a SELECT clause.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectForm {
    /// `*`: the row itself.
    Star,
    /// `VALUE e`: one value per row.
    Value(Box<Expression>),
    /// `e AS name, ..`: an object per row.
    List(Vec<SelectItem>),
}

/// One item of a SELECT list.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectItem {
    /// The value of the member.
    pub expression: Expression,
    /// The name as written after the optional AS; after AS in quotes any text.
    pub alias: Option<Name>,
    /// Expression and alias.
    pub span: Span,
}

/// A name that the query introduces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name as written; names are case-sensitive.
    pub text: String,
    /// Where it is introduced.
    pub span: Span,
}

/// A row count after TOP, OFFSET or LIMIT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// A number in the text.
    Literal {
        /// The count; the grammar takes 32 bits.
        value: u32,
        /// The number.
        span: Span,
    },
    /// A parameter whose value is judged when it is known.
    Parameter {
        /// The name with its `@`.
        name: String,
        /// The parameter.
        span: Span,
    },
}

impl Count {
    /// The number or parameter.
    pub fn span(&self) -> Span {
        match self {
            Self::Literal { span, .. } | Self::Parameter { span, .. } => *span,
        }
    }
}

/// The FROM clause with its joins.
#[derive(Debug, Clone, PartialEq)]
pub struct FromClause {
    /// The source after FROM.
    pub first: FromSource,
    /// The sources after each JOIN, in order; later ones may use the names of earlier ones.
    pub joins: Vec<FromSource>,
    /// From `FROM` to the last source.
    pub span: Span,
}

/// One source of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct FromSource {
    /// What it is.
    pub kind: FromSourceKind,
    /// With its alias, without FROM or JOIN.
    pub span: Span,
}

/// The forms of a source.
#[derive(Debug, Clone, PartialEq)]
pub enum FromSourceKind {
    /// `c`, `c.a.b AS x`: the container, or one value inside each row.
    Path {
        /// An identifier with members and indexes applied to it, nothing else.
        path: Expression,
        /// The name given to it; without one the last name of the path serves.
        alias: Option<Name>,
    },
    /// `x IN c.items`: one row per element.
    Iterate {
        /// The name of the element.
        alias: Name,
        /// Where the array comes from.
        collection: Collection,
    },
    /// `(SELECT ..) AS x`: one row per row of the subquery.
    Subquery {
        /// The subquery.
        query: Box<SelectQuery>,
        /// The name given to its rows.
        alias: Option<Name>,
    },
}

/// What an `IN` source iterates over.
#[derive(Debug, Clone, PartialEq)]
pub enum Collection {
    /// A path, of the same form as in `FromSourceKind::Path`.
    Path(Expression),
    /// The rows of a subquery.
    Subquery(Box<SelectQuery>),
}

/// The ORDER BY clause.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderBy {
    /// `ORDER BY e [ASC|DESC], ..`.
    Items {
        /// The sort keys, most significant first.
        items: Vec<OrderItem>,
        /// The whole clause.
        span: Span,
    },
    /// `ORDER BY RANK e`.
    Rank {
        /// The scoring function.
        score: Expression,
        /// The whole clause.
        span: Span,
    },
}

impl OrderBy {
    /// The whole clause.
    pub fn span(&self) -> Span {
        match self {
            Self::Items { span, .. } | Self::Rank { span, .. } => *span,
        }
    }
}

/// One sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// The key.
    pub expression: Expression,
    /// The direction, if the text names one; without it the order ascends.
    pub direction: Option<SortDirection>,
}

/// The direction of a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortDirection {
    /// ASC.
    Ascending,
    /// DESC.
    Descending,
}

/// The OFFSET LIMIT clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetLimit {
    /// Rows to skip.
    pub offset: Count,
    /// Rows to return at most.
    pub limit: Count,
    /// The whole clause.
    pub span: Span,
}

/// A scalar expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it stands, with the parentheses around it if any.
    pub span: Span,
}

impl Expression {
    /// An expression without a place, for trees that are built rather than parsed.
    pub fn new(kind: ExpressionKind) -> Self {
        Self { kind, span: Span::default() }
    }
}

impl From<ExpressionKind> for Expression {
    fn from(kind: ExpressionKind) -> Self {
        Self::new(kind)
    }
}

/// The forms of a scalar expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number with its sign.
    Number(Number),
    /// A string, decoded.
    String(String),
    /// `@name`, the name with its `@`.
    Parameter(String),
    /// A bare name: an alias of a source.
    Identifier(String),
    /// `base.name` or `base["name"]`.
    Member {
        /// The object.
        base: Box<Expression>,
        /// The property.
        name: String,
        /// Whether the text uses brackets; kept because the printed text keeps it.
        bracketed: bool,
    },
    /// `base[index]` where the index is not a string literal.
    Index {
        /// The array or object.
        base: Box<Expression>,
        /// The position or name.
        index: Box<Expression>,
    },
    /// A prefix operator.
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// Its operand.
        operand: Box<Expression>,
    },
    /// An operator between two operands.
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// A chain of AND or of OR, from left to right.
    Logical {
        /// The operator of the chain.
        operator: LogicalOperator,
        /// Two or more operands.
        operands: Vec<Expression>,
    },
    /// `condition ? then : otherwise`.
    Conditional {
        /// The condition.
        condition: Box<Expression>,
        /// The value when the condition is `true`.
        then: Box<Expression>,
        /// The value in every other case.
        otherwise: Box<Expression>,
    },
    /// `left ?? right`.
    Coalesce {
        /// The value unless undefined.
        left: Box<Expression>,
        /// The value otherwise.
        right: Box<Expression>,
    },
    /// `value [NOT] IN (list)`.
    In {
        /// The value looked for.
        value: Box<Expression>,
        /// One or more candidates.
        list: Vec<Expression>,
        /// Whether NOT is written.
        negated: bool,
    },
    /// `value [NOT] BETWEEN low AND high`.
    Between {
        /// The value tested.
        value: Box<Expression>,
        /// The lower bound, inclusive.
        low: Box<Expression>,
        /// The upper bound, inclusive.
        high: Box<Expression>,
        /// Whether NOT is written.
        negated: bool,
    },
    /// `value [NOT] LIKE pattern [ESCAPE 'c']`.
    Like {
        /// The text tested.
        value: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// The character that makes the next one of the pattern literal.
        escape: Option<char>,
        /// Whether NOT is written.
        negated: bool,
    },
    /// `name(arguments)` or `udf.name(arguments)`.
    Call {
        /// The function as written, without `udf.`; built-in names are case-insensitive, others are not.
        name: String,
        /// Whether `udf.` precedes the name.
        user_defined: bool,
        /// The arguments.
        arguments: Vec<Expression>,
    },
    /// `[a, b]`.
    Array(Vec<Expression>),
    /// `{name: value, ..}`.
    Object(Vec<ObjectMember>),
    /// A subquery as a value.
    Subquery {
        /// What its rows become.
        form: SubqueryForm,
        /// The subquery.
        query: Box<SelectQuery>,
    },
    /// Text that the printer copies as it is, such as the placeholders of query plans; `parse` never returns it.
    Raw(String),
}

/// One member of an object literal.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectMember {
    /// The name, decoded.
    pub name: String,
    /// The value.
    pub value: Expression,
    /// Name and value.
    pub span: Span,
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`.
    Minus,
    /// `+`.
    Plus,
    /// `~`.
    BitNot,
    /// `NOT`.
    Not,
}

/// Operators of chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogicalOperator {
    /// `AND`.
    And,
    /// `OR`.
    Or,
}

/// Operators between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; the spelling of each is in `symbol`")]
pub enum BinaryOperator {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    Concatenate,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    BitAnd,
    BitXor,
    BitOr,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl BinaryOperator {
    /// The operator as the printer writes it; `<>` is written `!=`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Concatenate => "||",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::ShiftRightZero => ">>>",
            Self::BitAnd => "&",
            Self::BitXor => "^",
            Self::BitOr => "|",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// What the rows of a subquery become when it stands as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryForm {
    /// `(SELECT ..)`: its only row.
    Scalar,
    /// `EXISTS(SELECT ..)`: whether there is a row.
    Exists,
    /// `ARRAY(SELECT ..)`: all rows.
    Array,
    /// `ALL(SELECT ..)`: whether no row fails.
    All,
    /// `FIRST(SELECT ..)`: the first row.
    First,
    /// `LAST(SELECT ..)`: the last row.
    Last,
}
