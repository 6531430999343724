//! What queries that look at everything do with each document: sort, group, rank.

use crate::budget::Budget;
use crate::operators::finished::Collector;
use crate::operators::group::Groups;
use crate::operators::project::output;
use crate::operators::rank::{self, RankStatistics, ScoredRow};
use crate::pipeline::{Flow, Machine};
use crate::scan::DocumentSink;
use crate::tally::RowOperator;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::{QueryPlan, RankComponent};
use std::sync::Arc;

/// Sorted or distinct rows.
pub(crate) struct CollectorSink {
    pub(crate) collector: Collector,
}

impl DocumentSink for CollectorSink {
    fn take(&mut self, machine: &Machine<'_>, plan: &QueryPlan, number: u64) -> Result<(), EvaluateError> {
        let mut index = 0;
        machine.visit(plan, &mut || {
            machine.budget.counted(plan, RowOperator::Collecting, || {
                self.collector.take(&machine.row(), plan, (number, index))
            })?;
            index += 1;
            Ok(Flow::Continue(()))
        })
    }

    fn empty(&self) -> CollectorSink {
        CollectorSink { collector: self.collector.empty() }
    }

    fn merge(&mut self, later: CollectorSink, budget: &Budget) -> Result<(), EvaluateError> {
        self.collector.merge(later.collector, budget)
    }

    fn settle(&mut self, budget: &Budget) -> Result<(), EvaluateError> {
        self.collector.settle(budget)
    }
}

/// Groups and their aggregates.
pub(crate) struct GroupsSink {
    pub(crate) groups: Groups,
}

impl DocumentSink for GroupsSink {
    fn take(&mut self, machine: &Machine<'_>, plan: &QueryPlan, number: u64) -> Result<(), EvaluateError> {
        let Some(grouping) = &plan.grouping else { return Ok(()) };
        let mut index = 0;
        machine.visit(plan, &mut || {
            let place = (number, index);
            machine
                .budget
                .counted(plan, RowOperator::Grouping, || self.groups.add(machine, grouping, place))?;
            index += 1;
            machine.budget.hold(self.groups.bytes())?;
            Ok(Flow::Continue(()))
        })
    }

    fn empty(&self) -> GroupsSink {
        GroupsSink { groups: Groups::default() }
    }

    fn merge(&mut self, later: GroupsSink, budget: &Budget) -> Result<(), EvaluateError> {
        self.groups.merge(later.groups);
        budget.hold(self.groups.bytes())
    }
}

/// The statistics of full-text scores.
pub(crate) struct StatisticsSink {
    pub(crate) components: Arc<[RankComponent]>,
    pub(crate) statistics: Vec<RankStatistics>,
}

impl DocumentSink for StatisticsSink {
    fn take(&mut self, machine: &Machine<'_>, _: &QueryPlan, _: u64) -> Result<(), EvaluateError> {
        rank::count(machine, &self.components, &mut self.statistics)
    }

    fn empty(&self) -> StatisticsSink {
        StatisticsSink { components: Arc::clone(&self.components), statistics: Vec::new() }
    }

    fn merge(&mut self, later: StatisticsSink, _: &Budget) -> Result<(), EvaluateError> {
        rank::merge(&mut self.statistics, later.statistics);
        Ok(())
    }
}

/// Rows with their scores.
pub(crate) struct ScoreSink {
    pub(crate) components: Arc<[RankComponent]>,
    pub(crate) statistics: Arc<[RankStatistics]>,
    pub(crate) rows: Vec<ScoredRow>,
    pub(crate) bytes: usize,
}

impl DocumentSink for ScoreSink {
    fn take(&mut self, machine: &Machine<'_>, plan: &QueryPlan, number: u64) -> Result<(), EvaluateError> {
        let mut index = 0;
        machine.visit(plan, &mut || {
            let score = || rank::scores(machine, &self.components, &self.statistics);
            let scores = machine.budget.counted(plan, RowOperator::Collecting, score)?;
            if let Some(json) = output(plan, &machine.row())? {
                self.bytes += json.len() + 100;
                self.rows.push(ScoredRow { scores, place: (number, index), json });
                machine.budget.hold(self.bytes)?;
            }
            index += 1;
            Ok(Flow::Continue(()))
        })
    }

    fn empty(&self) -> ScoreSink {
        let (components, statistics) = (Arc::clone(&self.components), Arc::clone(&self.statistics));
        ScoreSink { components, statistics, rows: Vec::new(), bytes: 0 }
    }

    fn merge(&mut self, later: ScoreSink, budget: &Budget) -> Result<(), EvaluateError> {
        self.rows.extend(later.rows);
        self.bytes += later.bytes;
        budget.hold(self.bytes)
    }
}
