//! A page under way: what evaluates rows, and what was read so far.

use crate::budget::Budget;
use crate::frame::Frame;
use crate::pipeline::Machine;
use crate::report::Reports;
use crate::rows::{AccessWork, Reader};
use crate::scan::Job;
use astrarium_sql_plan::plan::QueryPlan;

/// What all operators of a page share.
pub(crate) struct Execution<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: &'a QueryPlan,
    pub(crate) frame: Frame,
    pub(crate) budget: Budget,
    /// What was read so far.
    pub(crate) access: AccessWork,
    /// What operators tell of themselves, if the query is explained.
    pub(crate) reports: Option<Reports>,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(job: &'a Job) -> Execution<'a> {
        Execution {
            job,
            plan: &job.plan,
            frame: job.frame(),
            budget: job.budget(),
            access: AccessWork::default(),
            reports: job.gauge.limits.explain.then(Reports::default),
        }
    }

    /// Hands what evaluates expressions to some work.
    pub(crate) fn with_machine<T>(&self, work: impl FnOnce(&Machine<'_>) -> T) -> T {
        self.job.with_machine(&self.frame, &self.budget, work)
    }

    pub(crate) fn count(&mut self, counts: AccessWork) {
        self.access.add(counts);
    }

    /// Takes over what a reader has done.
    pub(crate) fn looked_up(&mut self, reader: &mut Reader<'_>) {
        self.access.add(std::mem::take(&mut reader.work));
    }
}
