//! A plan as text, for people: one line per step, in the order the steps work.

use crate::expression::{Expr, Step};
use crate::plan::{Order, Projection, QueryPlan, SourceKind};
use std::fmt::Write as _;

/// Prints a plan.
pub fn explain(plan: &QueryPlan) -> String {
    let mut text = String::new();
    write_plan(plan, 0, &mut text);
    text
}

fn write_plan(plan: &QueryPlan, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let mut line = |content: String| {
        let _ = writeln!(text, "{indent}{content}");
    };
    for condition in &plan.filters[0] {
        line(format!("filter once {}", shown(condition)));
    }
    for (index, source) in plan.sources.iter().enumerate() {
        let slot = source.slot;
        match &source.kind {
            SourceKind::Documents => line(format!("scan documents -> #{slot}")),
            SourceKind::Value(value) => line(format!("value {} -> #{slot}", shown(value))),
            SourceKind::Elements(value) => line(format!("elements of {} -> #{slot}", shown(value))),
            SourceKind::Rows(_) => line(format!("rows of subquery -> #{slot}")),
            SourceKind::ElementsOfRows(_) => line(format!("elements of subquery -> #{slot}")),
        }
        for condition in plan.filters.get(index + 1).into_iter().flatten() {
            line(format!("filter {}", shown(condition)));
        }
    }
    if let Some(grouping) = &plan.grouping {
        let keys: Vec<String> = grouping.keys.iter().map(shown).collect();
        let aggregates: Vec<String> = grouping
            .aggregates
            .iter()
            .map(|aggregate| format!("{:?}({})", aggregate.function, shown(&aggregate.argument)))
            .collect();
        line(format!("group by [{}] computing [{}]", keys.join(", "), aggregates.join(", ")));
    }
    match &plan.order {
        Order::None => {}
        Order::Keys(keys) => {
            let direction = |descending| if descending { " descending" } else { "" };
            let keys: Vec<String> =
                keys.iter().map(|key| format!("{}{}", shown(&key.key), direction(key.descending))).collect();
            line(format!("sort by {}", keys.join(", ")));
        }
        Order::Rank(components) => line(format!("rank by {} scores", components.len())),
    }
    match &plan.projection {
        Projection::Star(slot) => line(format!("give #{slot}")),
        Projection::Value(value) => line(format!("give {}", shown(value))),
        Projection::Members(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            line(format!("give {{{}}}", members.join(", ")));
        }
    }
    if plan.distinct {
        line("distinct".to_owned());
    }
    if plan.offset > 0 || plan.limit.is_some() {
        line(format!("skip {}, at most {:?}", plan.offset, plan.limit));
    }
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
