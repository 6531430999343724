//! The query metrics header: what a page of a query counted, and how long its parts took.
//!
//! In: a page, and the time that writing its rows took. Out: `name=value` pairs with `;` between them and none at the end.
//! Invariants
//! - Every time is at least the last digit that is printed (0.01 ms), since clients want more than nothing of each.
//! - As printed, no whole is less than the sum of its parts. SDKs subtract the parts from the time of execution and from the total, and show
//!   what is left.

use crate::database::{QueryPage, QueryTimes};
use std::time::Duration;

/// Times as they are printed, in hundredths of a millisecond: preparation, execution and their parts add up to the total or less.
#[derive(Debug)]
struct PrintedTimes {
    total: u64,
    // Preparation.
    compile: u64,
    logical_plan: u64,
    physical_plan: u64,
    optimization: u64,
    execution: u64,
    // Parts of the execution.
    index_lookup: u64,
    document_load: u64,
    system_functions: u64,
    user_functions: u64,
    output: u64,
}

impl PrintedTimes {
    fn new(times: &QueryTimes, writing: Duration) -> PrintedTimes {
        let (lookup, load) = within(times.running, times.lookup, times.load);
        // What is left of the run computes rows. User-defined functions are part of it; their time is not known by itself.
        let computing = times.running.saturating_sub(lookup + load);
        let mut printed = PrintedTimes {
            total: hundredths(times.total + writing),
            compile: hundredths(times.reading),
            logical_plan: hundredths(times.planning),
            physical_plan: hundredths(times.choosing),
            optimization: hundredths(Duration::ZERO),
            execution: hundredths(times.running + writing),
            index_lookup: hundredths(lookup),
            document_load: hundredths(load),
            system_functions: hundredths(computing),
            user_functions: hundredths(Duration::ZERO),
            output: hundredths(writing),
        };
        printed.execution = printed.execution.max(printed.execution_parts());
        printed.total = printed.total.max(printed.preparation() + printed.execution);
        printed
    }

    fn preparation(&self) -> u64 {
        self.compile + self.logical_plan + self.physical_plan + self.optimization
    }

    fn execution_parts(&self) -> u64 {
        self.index_lookup + self.document_load + self.system_functions + self.user_functions + self.output
    }
}

/// The header's value.
pub(super) fn text(page: &QueryPage, writing: Duration) -> String {
    let times = PrintedTimes::new(&page.times, writing);
    let milliseconds = |hundredths: u64| hundredths as f64 / 100.0;
    let output: usize = page.rows.iter().map(Vec::len).sum();
    // Documents that passed of those that were loaded; not known where rows are not documents.
    let utilization = match page.documents {
        0 => 1.0,
        documents if page.incremental => (page.rows.len() as f64 / documents as f64).min(1.0),
        _ => 0.0,
    };
    format!(
        "totalExecutionTimeInMs={:.2};queryCompileTimeInMs={:.2};queryLogicalPlanBuildTimeInMs={:.2};\
         queryPhysicalPlanBuildTimeInMs={:.2};queryOptimizationTimeInMs={:.2};VMExecutionTimeInMs={:.2};\
         indexLookupTimeInMs={:.2};instructionCount=0;documentLoadTimeInMs={:.2};systemFunctionExecuteTimeInMs={:.2};\
         userFunctionExecuteTimeInMs={:.2};retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={};\
         outputDocumentSize={output};writeOutputTimeInMs={:.2};indexUtilizationRatio={utilization:.2}",
        milliseconds(times.total),
        milliseconds(times.compile),
        milliseconds(times.logical_plan),
        milliseconds(times.physical_plan),
        milliseconds(times.optimization),
        milliseconds(times.execution),
        milliseconds(times.index_lookup),
        milliseconds(times.document_load),
        milliseconds(times.system_functions),
        milliseconds(times.user_functions),
        page.documents,
        page.document_bytes,
        page.rows.len(),
        milliseconds(times.output),
    )
}

/// Two times as shares of a run. Threads that read side by side add up to more than the run took; then both shrink alike.
fn within(running: Duration, lookup: Duration, load: Duration) -> (Duration, Duration) {
    let parts = lookup + load;
    if parts <= running {
        return (lookup, load);
    }
    let share = running.as_secs_f64() / parts.as_secs_f64();
    (lookup.mul_f64(share), load.mul_f64(share))
}

fn hundredths(time: Duration) -> u64 {
    let rounded = (time.as_micros() + 5) / 10;
    u64::try_from(rounded).unwrap_or(u64::MAX / 100).clamp(1, u64::MAX / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in microseconds: reading, planning, choosing, running, lookup, load, total; and writing.
    #[track_caller]
    fn check(times: [u64; 7], writing: u64, total: u64, execution: u64) {
        let [reading, planning, choosing, running, lookup, load, whole] = times.map(Duration::from_micros);
        let times = QueryTimes { reading, planning, choosing, running, lookup, load, total: whole };
        let printed = PrintedTimes::new(&times, Duration::from_micros(writing));
        assert!(printed.execution_parts() <= printed.execution, "{printed:?}");
        assert!(printed.preparation() + printed.execution <= printed.total, "{printed:?}");
        assert_eq!((printed.total, printed.execution), (total, execution), "{printed:?}");
    }

    #[test]
    fn a_whole_is_never_less_than_its_parts() {
        // Nothing took long enough to be seen: each part is one hundredth.
        check([0; 7], 0, 9, 5);
        check([1, 1, 1, 4, 1, 1, 8], 1, 9, 5);
        // Rounded up one by one, the parts are more than the rounded whole.
        check([6, 6, 6, 30, 6, 16, 48], 6, 10, 6);
        // Long ones are as measured.
        check([100, 200, 300, 5_000, 1_000, 2_000, 5_700], 400, 610, 541);
        // Threads side by side loaded for longer than the run took.
        check([10, 10, 10, 1_000, 500, 3_500, 1_030], 10, 108, 104);
    }
}
