//! Computed properties as indexes take them in: their queries bound once, then evaluated on each document.
//!
//! In: a container's definition. Out: what `index` calls for every document that it makes entries of.
//! Invariant: a value here is the value that a query gives for the same property of the same document, because both
//! evaluate the same expression; where that fails, the document is left out of the index and every query looks at it.

use crate::Error;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_index::{Compute, Stored};
use astrarium_keys::Rid;
use astrarium_sql_functions::Context;
use astrarium_sql_plan::evaluate::{EvaluateError, Row, evaluate, step_into};
use astrarium_sql_plan::expression::{Expr, Slot, Step, SubqueryForm};
use astrarium_sql_plan::plan::{Projection, SourceKind};
use astrarium_sql_plan::{Catalog, Parameters, QueryPlan, plan};
use astrarium_store::indexed_system_property;
use astrarium_value::json::seek;
use astrarium_value::{Object, Value, system_properties};
use std::sync::Arc;

/// What gives the computed properties of a container's documents; none if it has none.
pub(crate) fn evaluator(container: Rid, definition: &ContainerDefinition) -> Option<Compute> {
    let properties = definition.computed_properties.iter();
    // One that cannot be bound has no value in any query either.
    let bound: Vec<(Arc<str>, Expr)> = properties
        .filter_map(|property| Some((property.name.as_str().into(), expression(&property.query).ok()?)))
        .collect();
    (!bound.is_empty()).then(|| {
        Compute::new(move |document| {
            let row = DocumentRow { container, document, context: Context::default() };
            let value = |(name, expression): &(Arc<str>, Expr)| {
                evaluate(expression, &row).ok().map(|value| (Arc::clone(name), value.into_owned()))
            };
            bound.iter().map(value).collect()
        })
    })
}

/// Refuses a definition with a computed property that could never be evaluated.
pub(crate) fn check(definition: &ContainerDefinition) -> Result<(), Error> {
    for (index, property) in definition.computed_properties.iter().enumerate() {
        expression(&property.query).map_err(|details| {
            // What a message repeats of a request is short.
            let query: String = property.query.chars().take(200).collect();
            Error::invalid(format!(
                "Computed property at index ({index}) has a malformed query: '{query}' Error details: '{details}'"
            ))
        })?;
    }
    Ok(())
}

/// The expression of `SELECT VALUE e FROM alias`; otherwise what is wrong.
fn expression(query: &str) -> Result<Expr, String> {
    let tree = astrarium_sql_syntax::parse(query).map_err(|error| error.message)?;
    if let Some(error) = astrarium_sql_syntax::check(&tree, query).into_iter().next() {
        return Err(error.message);
    }
    // Without the container: computed properties may not use each other.
    let plan = plan(&tree, &Catalog::default(), &Parameters::default()).map_err(|error| error.message)?;
    match (&plan.sources[..], plan.projection) {
        ([source], Projection::Value(expression)) if matches!(source.kind, SourceKind::Documents) => {
            Ok(expression)
        }
        _ => Err("The query must be SELECT VALUE expression FROM alias.".to_owned()),
    }
}

/// A document in the only slot that such an expression has.
struct DocumentRow<'a> {
    container: Rid,
    document: &'a Stored<'a>,
    context: Context<'static>,
}

impl DocumentRow<'_> {
    fn system_property(&self, name: &str) -> Option<Value> {
        indexed_system_property(self.container, self.document, name)
    }

    fn whole(&self) -> Value {
        let Value::Object(own) = seek::value(self.document.text) else { return Value::Undefined };
        let mut members: Vec<_> = own.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        for name in system_properties::SHOWN {
            members.extend(self.system_property(name).map(|value| (name.into(), value)));
        }
        Value::Object(Object::from_members(members))
    }
}

impl Row for DocumentRow<'_> {
    fn path(&self, _: Slot, steps: &[Step]) -> Value {
        let [first, rest @ ..] = steps else { return self.whole() };
        if let Step::Name(name) = first
            && let Some(value) = self.system_property(name)
        {
            return rest.iter().fold(value, |value, step| step_into(&value, step));
        }
        let raw = steps.iter().try_fold(self.document.text, |raw, step| match step {
            Step::Name(name) => seek::member(raw, name),
            Step::Position(position) => seek::element(raw, *position),
        });
        raw.map_or(Value::Undefined, seek::value)
    }

    fn group_key(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn aggregate(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn subquery(&self, _: SubqueryForm, _: &QueryPlan) -> Result<Value, EvaluateError> {
        Err(EvaluateError::Query("A computed property has no subquery.".to_owned()))
    }

    fn user_defined(&self, _: &str, _: &[Value]) -> Result<Value, EvaluateError> {
        Err(EvaluateError::Query("A computed property calls no user-defined function.".to_owned()))
    }

    fn context(&self) -> &Context<'_> {
        &self.context
    }
}
