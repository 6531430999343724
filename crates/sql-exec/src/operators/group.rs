//! Groups and their aggregates, in the order in which each group was first seen.

use crate::pipeline::Machine;
use astrarium_sql_functions::aggregates::Accumulator;
use astrarium_sql_functions::limits::approximate_bytes;
use astrarium_sql_plan::Expr;
use astrarium_sql_plan::evaluate::EvaluateError;
use astrarium_sql_plan::plan::Grouping;
use astrarium_value::Value;
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// A row's place in order of insertion: the document's number, then the row's index within the document.
pub(crate) type RowPlace = (u64, u32);

/// Groups under way.
#[derive(Default)]
pub(crate) struct Groups {
    by_keys: HashMap<Vec<Value>, usize, RandomState>,
    found: Vec<Group>,
    bytes: usize,
    /// The keys of the row at hand, kept for their memory.
    keys: Vec<Value>,
    /// Groups of one key by the key's text, as far as it was seen: a look at it spares reading the value. One group may
    /// have several, such as `1` and `1.0`.
    by_text: HashMap<Box<[u8]>, usize, RandomState>,
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
pub(crate) const GROUP_BYTES: usize = 200;
/// Texts of keys that are remembered, and bytes of each, at most.
const TEXTS_MAX: usize = 1_024;
const TEXT_BYTES_MAX: usize = 64;

impl Groups {
    pub(crate) fn new(grouping: &Grouping) -> Groups {
        let mut groups = Groups::default();
        if grouping.keys.is_empty() {
            // Without GROUP BY there is one group, rows or not.
            groups.group(&[], grouping, (0, 0));
        }
        groups
    }

    /// About how much memory the groups hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the machine's current row into its group.
    pub(crate) fn add(
        &mut self,
        machine: &Machine<'_>,
        grouping: &Grouping,
        place: RowPlace,
    ) -> Result<(), EvaluateError> {
        let index = match self.known(machine, grouping) {
            Some(index) => index,
            None => self.of_row(machine, grouping, place)?,
        };
        let group = &mut self.found[index];
        for (accumulator, aggregate) in group.accumulators.iter_mut().zip(&grouping.aggregates) {
            let value = machine.value(&aggregate.argument)?;
            let before = accumulator.bytes();
            accumulator.add(&value);
            self.bytes = (self.bytes + accumulator.bytes()).saturating_sub(before);
        }
        group.first = group.first.min(place);
        Ok(())
    }

    /// The group of the machine's current row, if the text of its key was seen before.
    fn known(&self, machine: &Machine<'_>, grouping: &Grouping) -> Option<usize> {
        let [Expr::Path(slot, steps)] = &grouping.keys[..] else { return None };
        machine.frame.with_raw(*slot, steps, |text| self.by_text.get(text).copied())?
    }

    /// The group of the machine's current row, by the values of its keys.
    fn of_row(
        &mut self,
        machine: &Machine<'_>,
        grouping: &Grouping,
        place: RowPlace,
    ) -> Result<usize, EvaluateError> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        for key in &grouping.keys {
            keys.push(machine.evaluate(key)?);
        }
        let index = self.group(&keys, grouping, place);
        self.keys = keys;
        if let [Expr::Path(slot, steps)] = &grouping.keys[..]
            && self.by_text.len() < TEXTS_MAX
        {
            machine.frame.with_raw(*slot, steps, |text| {
                if text.len() <= TEXT_BYTES_MAX {
                    self.by_text.insert(text.into(), index);
                }
            });
        }
        Ok(index)
    }

    fn group(&mut self, keys: &[Value], grouping: &Grouping, first: RowPlace) -> usize {
        if let Some(index) = self.by_keys.get(keys) {
            return *index;
        }
        let accumulators = grouping.aggregates.iter().map(|aggregate| aggregate.function.start()).collect();
        self.keep(Group { keys: keys.to_vec(), accumulators, first })
    }

    fn keep(&mut self, group: Group) -> usize {
        self.bytes += GROUP_BYTES + group.keys.iter().map(approximate_bytes).sum::<usize>() * 2;
        self.by_keys.insert(group.keys.clone(), self.found.len());
        self.found.push(group);
        self.found.len() - 1
    }

    /// Takes in the groups of later rows.
    pub(crate) fn merge(&mut self, later: Groups) {
        for group in later.found {
            let Some(&index) = self.by_keys.get(&group.keys) else {
                self.keep(group);
                continue;
            };
            let own = &mut self.found[index];
            own.first = own.first.min(group.first);
            for (accumulator, later) in own.accumulators.iter_mut().zip(group.accumulators) {
                let before = accumulator.bytes();
                accumulator.merge(later);
                self.bytes = (self.bytes + accumulator.bytes()).saturating_sub(before);
            }
        }
    }

    pub(crate) fn finish(self) -> impl Iterator<Item = FinishedGroup> {
        self.found.into_iter().map(|group| FinishedGroup {
            results: group.accumulators.into_iter().map(Accumulator::finish).collect(),
            keys: group.keys,
            first: group.first,
        })
    }
}
