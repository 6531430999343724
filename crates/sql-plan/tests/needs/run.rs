//! The rows of a plan over one document, by plain loops and the one evaluator of expressions.

use astrarium_sql_functions::Context;
use astrarium_sql_plan::evaluate::{EvaluateError, Row, evaluate, is_true, step_into};
use astrarium_sql_plan::expression::{Expr, Slot, Step, SubqueryForm};
use astrarium_sql_plan::plan::{Projection, QueryPlan, SourceKind};
use astrarium_value::{Object, Value};
use std::cell::RefCell;

/// How many rows a document gives, before the projection.
pub(crate) fn row_count(plan: &QueryPlan, document: &Value) -> usize {
    let frame = Frame {
        slots: RefCell::new(vec![Value::Undefined; plan.slot_count]),
        context: Context::default(),
        document: document.clone(),
    };
    let mut count = 0;
    frame.visit(plan, 0, &mut || count += 1);
    count
}

struct Frame {
    slots: RefCell<Vec<Value>>,
    context: Context<'static>,
    document: Value,
}

impl Frame {
    fn value(&self, expression: &Expr) -> Value {
        evaluate(expression, self).expect("a value").into_owned()
    }

    fn visit(&self, plan: &QueryPlan, index: usize, found: &mut dyn FnMut()) {
        if !plan.filters[index].iter().all(|filter| is_true(&self.value(filter))) {
            return;
        }
        let Some(source) = plan.sources.get(index) else { return found() };
        let items = match &source.kind {
            SourceKind::Documents => vec![self.document.clone()],
            SourceKind::Value(value) => vec![self.value(value)],
            SourceKind::Elements(array) => elements(self.value(array)),
            SourceKind::Rows(plan) => self.rows(plan),
            SourceKind::ElementsOfRows(plan) => self.rows(plan).into_iter().flat_map(elements).collect(),
        };
        for item in items.into_iter().filter(|item| !item.is_undefined()) {
            self.slots.borrow_mut()[source.slot] = item;
            self.visit(plan, index + 1, found);
        }
    }

    fn rows(&self, plan: &QueryPlan) -> Vec<Value> {
        assert!(plan.grouping.is_none(), "not made for groups");
        let mut rows = Vec::new();
        self.visit(plan, 0, &mut || {
            let row = match &plan.projection {
                Projection::Star(slot) => self.path(*slot, &[]),
                Projection::Value(value) => self.value(value),
                Projection::Members(members) => Value::Object(Object::from_members(
                    members.iter().map(|(name, member)| (name.clone(), self.value(member))),
                )),
            };
            rows.push(row);
        });
        rows.retain(|row| !row.is_undefined());
        rows
    }
}

fn elements(value: Value) -> Vec<Value> {
    if let Value::Array(elements) = value { elements } else { Vec::new() }
}

impl Row for Frame {
    fn path(&self, slot: Slot, steps: &[Step]) -> Value {
        let whole = self.slots.borrow()[slot].clone();
        steps.iter().fold(whole, |value, step| step_into(&value, step))
    }

    fn group_key(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn aggregate(&self, _: usize) -> Value {
        Value::Undefined
    }

    fn subquery(&self, form: SubqueryForm, plan: &QueryPlan) -> Result<Value, EvaluateError> {
        let mut rows = self.rows(plan);
        Ok(match form {
            SubqueryForm::Exists => Value::Bool(!rows.is_empty()),
            SubqueryForm::Array => Value::Array(rows),
            SubqueryForm::All => Value::Bool(rows.iter().all(is_true)),
            SubqueryForm::First => rows.into_iter().next().unwrap_or_default(),
            SubqueryForm::Last | SubqueryForm::Scalar => rows.pop().unwrap_or_default(),
        })
    }

    fn user_defined(&self, _: &str, _: &[Value]) -> Result<Value, EvaluateError> {
        Err(EvaluateError::Query("no functions here".to_owned()))
    }

    fn context(&self) -> &Context<'_> {
        &self.context
    }
}
