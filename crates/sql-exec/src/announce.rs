//! Tells user-defined functions which calls are coming for the documents of a batch, so that they can be made together.
//!
//! Where functions run in another process, each call alone would be two messages. Told are calls that the query makes for
//! every document whatever is in it (those of the first filter, or of the output if there is no filter), and whose
//! arguments are paths into the document or constants. Calls that are not told are made when their turn comes.
//! In: a plan, then batches of documents. Out: nothing but time.

use crate::frame::Datum;
use crate::pipeline::Machine;
use crate::scan::Job;
use astrarium_sql_plan::evaluate::evaluate;
use astrarium_sql_plan::expression::{Expr, Slot};
use astrarium_sql_plan::plan::{Projection, QueryPlan, SourceKind};
use astrarium_value::Value;
use std::sync::Arc;

/// Documents whose calls are told together.
pub(crate) const WINDOW: usize = 128;
/// Bytes of documents whose calls are told together.
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// The calls that a query makes for each document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Announcer {
    calls: Vec<(Arc<str>, Vec<Expr>)>,
}

impl Announcer {
    pub(crate) fn new(job: &Job) -> Announcer {
        let mut announcer = Announcer::default();
        if job.runtime.user_functions.wants_announcements() {
            announcer.plan(&job.plan);
        }
        announcer
    }

    /// Tells the calls for some documents, which are the next ones to be looked at.
    pub(crate) fn tell<'a>(
        &self,
        job: &Job,
        machine: &Machine<'_>,
        documents: impl Iterator<Item = &'a Datum>,
    ) {
        if self.calls.is_empty() {
            return;
        }
        let (mut told, mut bytes) = (Vec::new(), 0);
        for document in documents.take(WINDOW) {
            if let Datum::Document(_, body) = document {
                bytes += body.text().len();
            }
            if bytes > WINDOW_BYTES_MAX {
                break;
            }
            job.bind(machine.frame, document.clone());
            for (name, arguments) in &self.calls {
                let row = machine.row();
                let values =
                    arguments.iter().map(|argument| Some(evaluate(argument, &row).ok()?.into_owned()));
                let values: Option<Vec<_>> = values.collect();
                // With an argument that is undefined there is no call.
                if let Some(values) = values.filter(|values| !values.iter().any(Value::is_undefined)) {
                    told.push((Arc::clone(name), values));
                }
            }
        }
        job.runtime.user_functions.announce(told);
    }

    fn plan(&mut self, plan: &QueryPlan) {
        let Some(source) = plan.sources.first() else { return };
        if !matches!(source.kind, SourceKind::Documents) || !plan.filters[0].is_empty() {
            return;
        }
        if let Some(first) = plan.filters.iter().flatten().next() {
            if plan.filters[1].first().is_some_and(|own| std::ptr::eq(own, first)) {
                self.add(source.slot, first);
            }
            return;
        }
        if plan.sources.len() > 1 || plan.grouping.is_some() {
            return;
        }
        match &plan.projection {
            Projection::Star(_) => {}
            Projection::Value(value) => self.add(source.slot, value),
            Projection::Members(members) => {
                for (_, value) in members {
                    self.add(source.slot, value);
                }
            }
        }
    }

    /// Adds the calls of an expression that are made whatever its other parts are.
    fn add(&mut self, documents: Slot, expression: &Expr) {
        match expression {
            Expr::UserDefined(name, arguments) if arguments.iter().all(|part| is_plain(documents, part)) => {
                self.calls.push((Arc::clone(name), arguments.clone()));
            }
            Expr::And(operands) | Expr::Or(operands) => {
                if let Some(first) = operands.first() {
                    self.add(documents, first);
                }
            }
            Expr::Conditional(first, ..) | Expr::Coalesce(first, _) => self.add(documents, first),
            Expr::In(first, _) => self.add(documents, first),
            Expr::Subquery(..) => {}
            _ => expression.parts().into_iter().for_each(|part| self.add(documents, part)),
        }
    }
}

/// Whether an argument has its value as soon as the document is there.
fn is_plain(documents: Slot, argument: &Expr) -> bool {
    match argument {
        Expr::Constant(_) => true,
        Expr::Path(slot, _) => *slot == documents,
        _ => false,
    }
}
