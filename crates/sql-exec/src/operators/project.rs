//! The projection: what a row becomes, as a value or as the JSON that clients read.

use crate::pipeline::CurrentRow;
use astrarium_env::Instant;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::evaluate::{EvaluateError, Row, bounded, evaluate};
use astrarium_sql_plan::plan::{Projection, QueryPlan};
use astrarium_value::{Object, Value};

/// The value of a row; none if a `VALUE` is undefined.
pub(crate) fn project(plan: &QueryPlan, row: &CurrentRow<'_>) -> Result<Option<Value>, EvaluateError> {
    counted(plan, row, value)
}

/// A row as JSON. A whole document is copied as it is stored.
pub(crate) fn output(plan: &QueryPlan, row: &CurrentRow<'_>) -> Result<Option<Vec<u8>>, EvaluateError> {
    counted(plan, row, json)
}

/// JSON has no form for NaN and the infinities, so the service refuses a row that holds one.
pub(crate) fn refuse_not_json(value: &Value) -> Result<(), EvaluateError> {
    if value.is_json() { Ok(()) } else { Err(EvaluateError::Query(astrarium_sql_plan::NOT_JSON.to_owned())) }
}

/// Makes a row, and counts it if the query is explained.
fn counted<T>(
    plan: &QueryPlan,
    row: &CurrentRow<'_>,
    make: fn(&Projection, &CurrentRow<'_>) -> Result<Option<T>, EvaluateError>,
) -> Result<Option<T>, EvaluateError> {
    let Some(tally) = row.machine.budget.tally(plan) else { return make(&plan.projection, row) };
    let began = Instant::now();
    let made = make(&plan.projection, row)?;
    tally.projected(made.is_some(), began.elapsed());
    Ok(made)
}

fn value(projection: &Projection, row: &CurrentRow<'_>) -> Result<Option<Value>, EvaluateError> {
    let value = match projection {
        Projection::Star(slot) => row.path(*slot, &[]),
        Projection::Value(value) => evaluate(value, row)?.into_owned(),
        Projection::Members(members) => {
            let mut values = Vec::with_capacity(members.len());
            for (name, member) in members {
                values.push((name.clone(), evaluate(member, row)?.into_owned()));
            }
            bounded(Value::Object(Object::from_members(values)))?
        }
    };
    Ok((!value.is_undefined()).then_some(value))
}

fn json(projection: &Projection, row: &CurrentRow<'_>) -> Result<Option<Vec<u8>>, EvaluateError> {
    let mut json = Vec::new();
    let whole = match projection {
        Projection::Star(slot) => Some(*slot),
        Projection::Value(Expr::Path(slot, steps)) if steps.is_empty() => Some(*slot),
        _ => None,
    };
    if let Some(slot) = whole {
        row.machine.frame.push_json(slot, &mut json);
        return Ok((!json.is_empty()).then_some(json));
    }
    let Some(value) = value(projection, row)? else { return Ok(None) };
    refuse_not_json(&value)?;
    value.write_json(&mut json);
    Ok(Some(json))
}
