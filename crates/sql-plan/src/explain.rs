//! How a page is made as text, for people: one line per operator, in the order in which they work.

use crate::expression::{Expr, Step};
use crate::physical::{PageForm, PhysicalPlan};
use crate::plan::{Order, Projection, QueryPlan, SourceKind};

/// An operator of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Finds documents.
    Access,
    /// Checks a condition: by the number of sources it needs, and its place among those that need as many.
    Filter(usize, usize),
    /// Binds the values of a source.
    Join(usize),
    /// Makes groups.
    Group,
    /// Sorts, keeping what a page can need.
    TopK,
    /// Ranks by scores.
    Rank,
    /// Makes the row.
    Project,
    /// Keeps each row once.
    Distinct,
    /// Skips rows, and ends after so many.
    OffsetLimit,
}

impl Operator {
    /// What it is called in a picture of a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Operator::Access => "access",
            Operator::Filter(..) => "filter",
            Operator::Join(_) => "join",
            Operator::Group => "group",
            Operator::TopK => "sort",
            Operator::Rank => "rank",
            Operator::Project => "project",
            Operator::Distinct => "distinct",
            Operator::OffsetLimit => "limit",
        }
    }
}

/// Prints how a page is made, without figures that depend on the number of documents.
pub fn explain(plan: &QueryPlan, physical: &PhysicalPlan<'_>) -> String {
    operators(plan, physical, &format!("{physical:#}")).into_iter().map(|(_, text)| text + "\n").collect()
}

/// The operators of a page in the order in which they work, each with its text; `access` is that of the ways to documents.
/// What an index has done already is no operator: it is part of the access.
pub fn operators(plan: &QueryPlan, physical: &PhysicalPlan<'_>, access: &str) -> Vec<(Operator, String)> {
    let mut found = Vec::new();
    // The index alone answers only where it is exact.
    let is_checked = !physical.is_index_only();
    let filters = |needed: usize| plan.filters.get(needed).filter(|_| is_checked).into_iter().flatten();
    for (place, condition) in filters(0).enumerate() {
        found.push((Operator::Filter(0, place), format!("filter once {}", shown(condition))));
    }
    for (index, source) in plan.sources.iter().enumerate() {
        let slot = source.slot;
        let (operator, text) = match &source.kind {
            SourceKind::Documents if plan.input.is_some() => {
                (Operator::Access, format!("rows of the query above -> #{slot}"))
            }
            SourceKind::Documents => (Operator::Access, format!("{access} -> #{slot}")),
            SourceKind::Value(value) => (Operator::Join(index), format!("value {} -> #{slot}", shown(value))),
            SourceKind::Elements(value) => {
                (Operator::Join(index), format!("elements of {} -> #{slot}", shown(value)))
            }
            SourceKind::Rows(_) => (Operator::Join(index), format!("rows of subquery -> #{slot}")),
            SourceKind::ElementsOfRows(_) => {
                (Operator::Join(index), format!("elements of subquery -> #{slot}"))
            }
        };
        found.push((operator, text));
        for (place, condition) in filters(index + 1).enumerate() {
            found.push((Operator::Filter(index + 1, place), format!("filter {}", shown(condition))));
        }
    }
    found.extend(finishing(plan, physical.form));
    found
}

/// The operators after sources and filters.
fn finishing(plan: &QueryPlan, form: PageForm) -> Vec<(Operator, String)> {
    let mut found = Vec::new();
    if let Some(grouping) = &plan.grouping {
        let keys: Vec<String> = grouping.keys.iter().map(shown).collect();
        let aggregates: Vec<String> = grouping
            .aggregates
            .iter()
            .map(|aggregate| format!("{:?}({})", aggregate.function, shown(&aggregate.argument)))
            .collect();
        let text = format!("group by [{}] computing [{}]", keys.join(", "), aggregates.join(", "));
        found.push((Operator::Group, text));
    }
    match &plan.order {
        Order::None => {}
        Order::Keys(_) if form == PageForm::Merged => {}
        Order::Keys(keys) => {
            let direction = |descending| if descending { " descending" } else { "" };
            let keys: Vec<String> =
                keys.iter().map(|key| format!("{}{}", shown(&key.key), direction(key.descending))).collect();
            found.push((Operator::TopK, format!("sort by {}", keys.join(", "))));
        }
        Order::Rank(components) => {
            found.push((Operator::Rank, format!("rank by {} scores", components.len())));
        }
    }
    let given = match &plan.projection {
        Projection::Star(slot) => format!("give #{slot}"),
        Projection::Value(value) => format!("give {}", shown(value)),
        Projection::Members(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            format!("give {{{}}}", members.join(", "))
        }
    };
    found.push((Operator::Project, given));
    if plan.distinct {
        found.push((Operator::Distinct, "distinct".to_owned()));
    }
    let bounds = match (plan.offset, plan.limit) {
        (0, None) => return found,
        (0, Some(limit)) => format!("at most {limit}"),
        (offset, None) => format!("skip {offset}"),
        (offset, Some(limit)) => format!("skip {offset}, at most {limit}"),
    };
    found.push((Operator::OffsetLimit, bounds));
    found
}

/// An expression in short.
fn shown(expression: &Expr) -> String {
    match expression {
        Expr::Constant(value) => {
            let mut text = Vec::new();
            value.write_json(&mut text);
            if value.is_undefined() {
                "undefined".to_owned()
            } else {
                String::from_utf8_lossy(&text).into_owned()
            }
        }
        Expr::Path(slot, steps) => {
            let steps: String = steps.iter().map(shown_step).collect();
            format!("#{slot}{steps}")
        }
        Expr::Access(base, step) => format!("{}{}", shown(base), shown_step(step)),
        Expr::Binary(operator, left, right) => {
            format!("({} {} {})", shown(left), operator.symbol(), shown(right))
        }
        Expr::And(all) => format!("({})", all.iter().map(shown).collect::<Vec<_>>().join(" and ")),
        Expr::Or(all) => format!("({})", all.iter().map(shown).collect::<Vec<_>>().join(" or ")),
        Expr::GroupKey(index) => format!("key {index}"),
        Expr::Aggregate(index) => format!("aggregate {index}"),
        Expr::Subquery(form, _) => format!("{form:?} subquery"),
        Expr::Call(function, arguments, _) => {
            let arguments: Vec<String> = arguments.iter().map(shown).collect();
            format!("{}({})", function.name, arguments.join(", "))
        }
        Expr::UserDefined(name, arguments) => {
            let arguments: Vec<String> = arguments.iter().map(shown).collect();
            format!("udf.{name}({})", arguments.join(", "))
        }
        other => {
            let parts: Vec<String> = other.parts().into_iter().map(shown).collect();
            format!("{}({})", kind(other), parts.join(", "))
        }
    }
}

fn shown_step(step: &Step) -> String {
    match step {
        Step::Name(name) => format!("/{name}"),
        Step::Position(position) => format!("/[{position}]"),
    }
}

fn kind(expression: &Expr) -> &'static str {
    match expression {
        Expr::Index(..) => "index",
        Expr::Unary(..) => "unary",
        Expr::Conditional(..) => "if",
        Expr::Coalesce(..) => "coalesce",
        Expr::In(..) => "in",
        Expr::Between(..) => "between",
        Expr::Like(..) | Expr::LikeComputed(..) => "like",
        Expr::Array(_) => "array",
        Expr::Object(_) => "object",
        _ => "expression",
    }
}
