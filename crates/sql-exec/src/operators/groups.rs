//! Groups and their aggregates, in the order in which each group was first seen.

use crate::pipeline::Machine;
use astrarium_sql_functions::aggregates::Accumulator;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::Grouping;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// A row's place in order of insertion: the document's number, then the row's index within the document.
pub(crate) type RowPlace = (u64, u32);

/// Groups under way.
pub(crate) struct Groups<'a> {
    grouping: &'a Grouping,
    by_keys: HashMap<Vec<Value>, usize, RandomState>,
    found: Vec<Group>,
    bytes: usize,
}

struct Group {
    keys: Vec<Value>,
    accumulators: Vec<Accumulator>,
    first: RowPlace,
}

/// A group with its results.
pub(crate) struct FinishedGroup {
    pub(crate) keys: Vec<Value>,
    pub(crate) results: Vec<Value>,
    pub(crate) first: RowPlace,
}

/// What a group takes beside its keys and lists.
const GROUP_BYTES: usize = 200;

impl<'a> Groups<'a> {
    pub(crate) fn new(grouping: &'a Grouping) -> Groups<'a> {
        let mut groups = Groups { grouping, by_keys: HashMap::default(), found: Vec::new(), bytes: 0 };
        if grouping.keys.is_empty() {
            // Without GROUP BY there is one group, rows or not.
            groups.group(Vec::new(), (0, 0));
        }
        groups
    }

    /// Takes the machine's current row into its group.
    pub(crate) fn add(&mut self, machine: &Machine<'_>, place: RowPlace) -> Result<(), EvaluateError> {
        let keys: Vec<Value> =
            self.grouping.keys.iter().map(|key| machine.evaluate(key)).collect::<Result<_, _>>()?;
        let index = self.group(keys, place);
        for (position, aggregate) in self.grouping.aggregates.iter().enumerate() {
            let value = machine.evaluate(&aggregate.argument)?;
            let accumulator = &mut self.found[index].accumulators[position];
            let before = accumulator.bytes();
            accumulator.add(&value);
            self.bytes = (self.bytes + accumulator.bytes()).saturating_sub(before);
        }
        self.found[index].first = self.found[index].first.min(place);
        machine.budget.check_memory(self.bytes)
    }

    fn group(&mut self, keys: Vec<Value>, first: RowPlace) -> usize {
        if let Some(index) = self.by_keys.get(&keys) {
            return *index;
        }
        let accumulators =
            self.grouping.aggregates.iter().map(|aggregate| aggregate.function.start()).collect();
        self.bytes += GROUP_BYTES + keys.iter().map(approximate_bytes).sum::<usize>() * 2;
        self.by_keys.insert(keys.clone(), self.found.len());
        self.found.push(Group { keys, accumulators, first });
        self.found.len() - 1
    }

    pub(crate) fn finish(self) -> impl Iterator<Item = FinishedGroup> {
        self.found.into_iter().map(|group| FinishedGroup {
            results: group.accumulators.into_iter().map(Accumulator::finish).collect(),
            keys: group.keys,
            first: group.first,
        })
    }
}
