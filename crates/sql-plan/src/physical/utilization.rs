//! Which indexes serve a query, and which would, as policies write them: the index metrics are a view of the index plan.
//!
//! In: an [`IndexPlan`]. Out: an [`IndexUtilization`]. What indexes serve counts, as on the service, whether or not a page of
//! a small container reads its documents without them.

use super::IndexPlan;
use crate::needs::{composite_spec, single_spec, used_paths};
use astrarium_index::{Access, Need, OrderPath};

/// The indexes that a query uses, and those that would help it, as policies write them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUtilization {
    /// Paths whose index serves.
    pub utilized_single: Vec<String>,
    /// Paths that the policy leaves out.
    pub potential_single: Vec<String>,
    /// Composite indexes that serve.
    pub utilized_composite: Vec<Vec<String>>,
    /// Composite indexes that the policy could add.
    pub potential_composite: Vec<Vec<String>>,
}

impl IndexPlan {
    /// Whether some index serves a part of the filter, so that not all documents have to be looked at.
    pub fn serves_filter(&self) -> bool {
        self.access != Access::Everything
    }

    /// The indexes that the query uses, and those that would help it.
    pub fn utilization(&self) -> IndexUtilization {
        let (set, used) = (&self.indexes.active, used_paths(&self.requirements));
        let mut utilization = IndexUtilization::default();
        for path in used.single {
            let list = if set.is_used() && set.covers(&path.path) {
                &mut utilization.utilized_single
            } else {
                &mut utilization.potential_single
            };
            list.push(single_spec(&path.path));
        }
        let need = &self.requirements.needed.need;
        let serving = if set.is_used() { set.combinations(need) } else { Vec::new() };
        let specs = |paths: &[OrderPath]| paths.iter().map(composite_spec).collect::<Vec<String>>();
        utilization.utilized_composite = serving.iter().map(|(paths, _)| specs(paths)).collect();
        for wanted in used.filter_composite {
            let is_had = |(paths, count): &(Vec<OrderPath>, usize)| {
                wanted.len() <= *count
                    && wanted.iter().all(|own| paths[..*count].iter().any(|path| path.path == own.path))
            };
            if !serving.iter().any(is_had) {
                utilization.potential_composite.push(specs(&wanted));
            }
        }
        if let Some(paths) = used.order_composite {
            let list = if set.order(&paths, &Need::Anything).is_some() {
                &mut utilization.utilized_composite
            } else {
                &mut utilization.potential_composite
            };
            let own = specs(&paths);
            if !list.contains(&own) {
                list.push(own);
            }
        }
        utilization
    }
}
