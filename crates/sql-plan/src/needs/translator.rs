//! From a query to what its rows meet: sources first, which give slots their meaning, then filters.
//!
//! The work is bounded: an expression can hold another twice (a BETWEEN looks at its value twice), so nesting could
//! double it at every level; after [`STEPS_MAX`] steps nothing more is known.

use super::computed::Computed;
use super::part::Part;
use super::place::{Places, ValuePlace};
use crate::expression::{Expr, Slot};
use crate::plan::{PlanSource, Projection, QueryPlan, SourceKind};
use astrarium_index::Path;

/// Expressions looked at, at most.
const STEPS_MAX: usize = 100_000;

/// What is known while a query is translated.
pub(super) struct Translator<'p> {
    pub(super) places: Places<'p>,
    steps: usize,
}

/// What rows of sources meet.
struct Rows {
    part: Part,
    /// The sources that can give several rows.
    iterated: Vec<Slot>,
}

impl<'p> Translator<'p> {
    pub(super) fn new(computed: &'p [Computed]) -> Translator<'p> {
        Translator { places: Places::new(computed), steps: 0 }
    }

    /// What documents meet that give rows of a whole query. `Unknown` is part of it where they give several.
    pub(super) fn documents(&mut self, plan: &'p QueryPlan) -> Part {
        let rows = self.rows(plan);
        if rows.iterated.is_empty() { rows.part } else { Part::all([rows.part, Part::Unknown]) }
    }

    /// What documents meet for which a subquery has a row.
    pub(super) fn exists(&mut self, plan: &'p QueryPlan) -> Part {
        let rows = self.subquery(plan);
        rows.part.for_some(&rows.iterated)
    }

    /// The path of an expression, if it stands for one value of each document. Sources must have been looked at.
    pub(super) fn plain_path(&self, expression: &Expr) -> Option<Path> {
        self.places.of(expression)?.into_plain()
    }

    /// Counts a step; false when there were too many.
    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= STEPS_MAX
    }

    fn rows(&mut self, plan: &'p QueryPlan) -> Rows {
        let mut iterated = Vec::new();
        let sources: Vec<(Option<Slot>, Part)> =
            plan.sources.iter().map(|source| self.source(source, &mut iterated)).collect();
        let filters: Vec<Part> =
            plan.filters.iter().flatten().map(|filter| self.truth(filter, true)).collect();
        let mut part = Part::all(filters);
        // From the last on: what needs an element of a later source needs those that lead to it.
        for (element, source) in sources.into_iter().rev() {
            let adds = !matches!(source, Part::Always);
            if adds && element.is_none_or(|slot| !part.implies_element(slot)) {
                part = Part::all([source, part]);
            }
        }
        Rows { part, iterated }
    }

    /// Gives a source's slot its meaning. What rows meet because of it, with the slot if that is only its element.
    fn source(&mut self, source: &'p PlanSource, iterated: &mut Vec<Slot>) -> (Option<Slot>, Part) {
        let slot = source.slot;
        match &source.kind {
            SourceKind::Documents => {
                self.places.bind_documents(slot);
                (None, Part::Always)
            }
            SourceKind::Value(value) => match self.places.of(value) {
                Some(place) => {
                    self.places.bind(slot, place.clone());
                    (None, defined(place))
                }
                None => (None, Part::Unknown),
            },
            SourceKind::Elements(array) => {
                iterated.push(slot);
                (Some(slot), self.elements(slot, self.places.of(array)))
            }
            SourceKind::Rows(plan) => {
                let rows = self.subquery(plan);
                iterated.extend(rows.iterated);
                match (&plan.grouping, &plan.projection) {
                    (None, Projection::Members(members)) => self.places.bind_members(slot, members),
                    _ => {
                        if let Some(place) = self.projected(plan) {
                            self.places.bind(slot, place);
                        }
                    }
                }
                (None, rows.part)
            }
            SourceKind::ElementsOfRows(plan) => {
                let rows = self.subquery(plan);
                iterated.extend(rows.iterated);
                iterated.push(slot);
                let array = self.projected(plan);
                (None, Part::all([rows.part, self.elements(slot, array)]))
            }
        }
    }

    fn elements(&mut self, slot: Slot, array: Option<ValuePlace>) -> Part {
        match array {
            Some(array) => Part::defined(self.places.bind_elements(slot, array)),
            None => Part::Unknown,
        }
    }

    /// The rows of a subquery. One group of everything is there for no rows too.
    fn subquery(&mut self, plan: &'p QueryPlan) -> Rows {
        let groups = plan.grouping.as_ref().map(|grouping| grouping.keys.len());
        if groups == Some(0) {
            return Rows { part: Part::Unknown, iterated: Vec::new() };
        }
        let rows = self.rows(plan);
        let kept = match (&plan.grouping, &plan.projection) {
            (None, Projection::Star(_) | Projection::Members(_)) => Part::Always,
            (None, Projection::Value(Expr::Array(_) | Expr::Object(_))) => Part::Always,
            (None, Projection::Value(Expr::Constant(value))) if value.is_undefined() => Part::Never,
            (None, Projection::Value(Expr::Constant(_))) => Part::Always,
            (None, Projection::Value(value)) => self.places.of(value).map_or(Part::Unknown, defined),
            (Some(_), _) => Part::Unknown,
        };
        Rows { part: Part::all([rows.part, kept]), iterated: rows.iterated }
    }

    /// The place of a subquery's rows.
    fn projected(&self, plan: &QueryPlan) -> Option<ValuePlace> {
        match (&plan.grouping, &plan.projection) {
            (None, Projection::Value(value)) => self.places.of(value),
            (None, Projection::Star(slot)) => self.places.of_slot(*slot),
            _ => None,
        }
    }
}

/// A value is defined; what a slot holds always is.
fn defined(place: ValuePlace) -> Part {
    if place.is_whole() { Part::Always } else { Part::defined(place) }
}
