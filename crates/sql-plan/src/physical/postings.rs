//! Which postings are read to find the documents that can pass a filter, or whether all documents are scanned.
//!
//! Of conditions that must all hold, the smallest postings lead. Others join them one after another, from small to large, as
//! long as what they save in documents is more than what it costs to follow them; so do the postings of an index that has
//! several conditions at once, instead of the postings of each.
//! Invariant: candidates are never fewer than the documents that pass; a condition that is left out makes the path inexact.

use super::{AccessPath, IndexPlan, IndexUse, PlannedAccess, Statistics};
use crate::cost::{self, DOCUMENT_BY_NUMBER, FEW_DOCUMENTS, Postings, SORTED_ENTRIES_MAX, Wish};
use astrarium_index::{Access, Served, Together};
use std::pin::Pin;

/// What a function gives that calls itself.
type Boxed<'s, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 's>>;

/// What a page asks of a range of documents.
#[derive(Debug, Clone, Copy)]
pub struct Demand<'a> {
    /// Rows that the page needs; all of them with the greatest number.
    pub rows: u64,
    /// Whether documents have to come in order of insertion.
    pub in_order: bool,
    /// Whether every condition counts, whatever it costs: for answers from the index alone.
    pub whole: bool,
    /// The partitions that are looked at, if not all.
    pub scope: Option<&'a Served>,
    /// Whether indexes are used.
    pub index_use: IndexUse,
}

/// Chooses the way to the documents of a range that can pass a filter.
pub async fn choose_postings<'a, S: Statistics>(
    plan: &'a IndexPlan,
    demand: &Demand<'a>,
    statistics: &mut S,
) -> Result<PlannedAccess<'a>, S::Error> {
    let needs_all = plan.access == Access::Everything && !(demand.whole && demand.scope.is_some());
    let unserved = !plan.indexes.active.is_used() || needs_all;
    if demand.index_use == IndexUse::Never || unserved {
        return Ok(PlannedAccess::scan(0));
    }
    let by_cost = demand.index_use == IndexUse::ByCost && !demand.whole;
    let scan_all = |scope: u64| PlannedAccess { cost: cost::scan(scope), ..PlannedAccess::scan(scope) };
    let mut scope = 0;
    if let Some(served) = demand.scope {
        if by_cost && let Some(few) = few_documents(&plan.access, statistics).await? {
            return Ok(few);
        }
        scope = statistics.estimate(served).await?;
        if by_cost && cost::is_small(scope, condition_count(&plan.access)) {
            return Ok(scan_all(scope));
        }
    }
    let documents = statistics.documents().await?;
    let scope = if demand.scope.is_some() { scope } else { documents };
    let chooser = Chooser { documents, whole: demand.whole, rows: demand.rows };
    let found = match (&plan.access, demand.scope) {
        (Access::Nothing, _) => return Ok(EMPTY),
        (Access::Entries(served), None) => {
            chooser.leaf(served, false, statistics).await?.map(|node| chooser.alone(node))
        }
        (access, scope) => chooser.conjunction(access, scope, statistics).await?,
    };
    let Some(found) = found else { return Ok(scan_all(scope)) };
    let wish = chooser.wish(found.matching);
    let scan = if demand.in_order { wish.in_order_of_insertion(scope) } else { cost::scan(scope) };
    let is_dear = by_cost && found.cost >= scan;
    Ok(if is_dear { scan_all(scope) } else { PlannedAccess { cost: found.cost, ..found.node } })
}

/// The postings of a single value, if they have so few documents of the whole container that reading these costs less than looking up
/// how many the partitions have. Those of other partitions are left out when they are read.
async fn few_documents<'a, S: Statistics>(
    access: &'a Access,
    statistics: &mut S,
) -> Result<Option<PlannedAccess<'a>>, S::Error> {
    let parts = match access {
        Access::All(parts) | Access::Combined { apart: parts, .. } => parts,
        one => std::slice::from_ref(one),
    };
    let single = parts.iter().find_map(|part| match part {
        Access::Entries(served) if served.is_terms() && served.ranges.len() == 1 => Some(served),
        _ => None,
    });
    let Some(served) = single else { return Ok(None) };
    let documents = statistics.seek(served).await?;
    let cost = (documents * DOCUMENT_BY_NUMBER) as f64;
    let few = PlannedAccess { path: AccessPath::Seek(served), documents, exact: false, sorted: 0, cost };
    Ok((documents <= FEW_DOCUMENTS).then_some(few))
}

/// How many conditions are looked up for an access.
fn condition_count(access: &Access) -> usize {
    match access {
        Access::Everything | Access::Nothing => 0,
        Access::Entries(_) => 1,
        Access::All(parts) | Access::Any(parts) => parts.iter().map(condition_count).sum(),
        Access::Combined { apart, together } => {
            apart.iter().map(condition_count).sum::<usize>() + together.len()
        }
    }
}

/// About how many documents an access has, told without reading entries; more than there are for all of them.
pub(super) fn rough_estimate<'s, 'a: 's, S: Statistics>(
    access: &'a Access,
    statistics: &'s mut S,
) -> Boxed<'s, u64, S::Error> {
    Box::pin(async move {
        let (mut sum, mut least) = (0_u64, u64::MAX);
        match access {
            Access::Everything => {}
            Access::Nothing => least = 0,
            Access::Entries(served) => least = statistics.estimate(served).await?,
            Access::Any(parts) => {
                for part in parts {
                    sum = sum.saturating_add(rough_estimate(part, statistics).await?);
                }
                least = sum;
            }
            Access::All(parts) => {
                for part in parts {
                    least = least.min(rough_estimate(part, statistics).await?);
                }
            }
            Access::Combined { apart, together } => {
                for part in apart {
                    least = least.min(rough_estimate(part, statistics).await?);
                }
                for part in together {
                    least = least.min(statistics.estimate(&part.served).await?);
                }
            }
        }
        Ok(least)
    })
}

const EMPTY: PlannedAccess<'static> =
    PlannedAccess { path: AccessPath::Empty, documents: 0, exact: true, sorted: 0, cost: 0.0 };

impl PlannedAccess<'_> {
    /// These postings alone.
    fn postings(&self, all: u64) -> Postings {
        Postings::one(self.documents, self.sorted, all)
    }
}

/// What every choice in one range depends on.
struct Chooser {
    documents: u64,
    whole: bool,
    rows: u64,
}

/// Postings that may be part of an intersection.
struct Conjunct<'a> {
    node: PlannedAccess<'a>,
    /// The conditions that they stand for, by their places; none for the partitions that are looked at.
    places: Vec<usize>,
}

/// A way with what it costs.
struct Priced<'a> {
    node: PlannedAccess<'a>,
    cost: f64,
    /// About how many documents pass the whole filter.
    matching: u64,
}

/// Some of the conjuncts, by their places in a list, and what they cost together.
struct Subset {
    members: Vec<usize>,
    postings: Postings,
    cost: f64,
}

impl Chooser {
    fn wish(&self, matching: u64) -> Wish {
        Wish { documents: self.documents as f64, matching: matching as f64, rows: self.rows as f64 }
    }

    /// A way that has all conditions.
    fn alone<'a>(&self, node: PlannedAccess<'a>) -> Priced<'a> {
        let matching = node.documents;
        let cost = self.cost(&node.postings(self.documents), &self.wish(matching));
        Priced { node, cost, matching }
    }

    /// What postings cost: until a page is full, or all of them where no documents are read.
    fn cost(&self, postings: &Postings, wish: &Wish) -> f64 {
        if self.whole { postings.entries_cost() } else { postings.cost(wish) }
    }

    /// The postings of one index; none if they are too many to be put in order.
    async fn leaf<'a, S: Statistics>(
        &self,
        served: &'a Served,
        is_composite: bool,
        statistics: &mut S,
    ) -> Result<Option<PlannedAccess<'a>>, S::Error> {
        let is_terms = served.is_terms();
        let documents =
            if is_terms { statistics.seek(served).await? } else { statistics.estimate(served).await? };
        let sorted = if is_terms { 0 } else { documents };
        if sorted > SORTED_ENTRIES_MAX && !self.whole {
            return Ok(None);
        }
        let path = match (is_composite, is_terms) {
            (true, _) => AccessPath::Composite(served),
            (false, true) => AccessPath::Seek(served),
            (false, false) => AccessPath::Range(served),
        };
        Ok(Some(PlannedAccess { path, documents, exact: served.exact, sorted, cost: 0.0 }))
    }

    /// What is in one part of a conjunction.
    fn part<'s, 'a: 's, S: Statistics>(
        &'s self,
        access: &'a Access,
        statistics: &'s mut S,
    ) -> Boxed<'s, Option<PlannedAccess<'a>>, S::Error> {
        Box::pin(async move {
            let Access::Any(parts) = access else {
                let found = self.conjunction(access, None, statistics).await?;
                return Ok(found.map(|found| found.node));
            };
            let mut union = EMPTY;
            let mut nodes = Vec::with_capacity(parts.len());
            for part in parts {
                let Some(node) = self.part(part, statistics).await? else { return Ok(None) };
                union.documents = union.documents.saturating_add(node.documents);
                union.sorted = union.sorted.saturating_add(node.sorted);
                union.exact &= node.exact;
                nodes.push(node);
            }
            union.path = AccessPath::Union(nodes);
            Ok(Some(union))
        })
    }

    /// What is in all parts: those whose postings are worth reading.
    async fn conjunction<'a, S: Statistics>(
        &self,
        access: &'a Access,
        scope: Option<&'a Served>,
        statistics: &mut S,
    ) -> Result<Option<Priced<'a>>, S::Error> {
        let (parts, together): (&[Access], &[Together]) = match access {
            Access::Everything => (&[], &[]),
            Access::All(parts) => (parts, &[]),
            Access::Combined { apart, together } => (apart, together),
            one => (std::slice::from_ref(one), &[]),
        };
        let mut conjuncts = Vec::with_capacity(parts.len() + 1);
        if let Some(scope) = scope
            && let Some(node) = self.leaf(scope, false, statistics).await?
        {
            conjuncts.push(Conjunct { node, places: Vec::new() });
        }
        for (place, part) in parts.iter().enumerate() {
            let node = match part {
                Access::Everything => None,
                Access::Entries(served) => self.leaf(served, false, statistics).await?,
                part => self.part(part, statistics).await?,
            };
            conjuncts.extend(node.map(|node| Conjunct { node, places: vec![place] }));
        }
        for part in together {
            if let Some(node) = self.leaf(&part.served, true, statistics).await? {
                conjuncts.push(Conjunct { node, places: part.conditions.clone() });
            }
        }
        Ok(self.intersection(conjuncts, parts.len(), scope.is_some()))
    }

    /// The cheapest of the conjuncts together.
    fn intersection<'a>(
        &self,
        mut conjuncts: Vec<Conjunct<'a>>,
        condition_count: usize,
        is_scoped: bool,
    ) -> Option<Priced<'a>> {
        if conjuncts.len() <= 1 && condition_count == 1 && !is_scoped {
            return conjuncts.pop().map(|conjunct| self.alone(conjunct.node));
        }
        conjuncts.sort_by_key(|conjunct| (conjunct.node.documents, std::cmp::Reverse(conjunct.places.len())));
        let wish = self.wish(self.matching(&conjuncts));
        let is_single = |place: &usize| conjuncts[*place].places.len() <= 1;
        let singles: Vec<usize> = (0..conjuncts.len()).filter(is_single).collect();
        let mut best = self.subset(&conjuncts, &singles, &wish);
        let mut taken: Vec<usize> = Vec::new();
        for place in (0..conjuncts.len()).filter(|place| !is_single(place)) {
            let is_covered =
                |condition: &usize| taken.iter().any(|own| conjuncts[*own].places.contains(condition));
            if conjuncts[place].places.iter().filter(|condition| !is_covered(condition)).count() < 2 {
                continue;
            }
            let with: Vec<usize> = taken.iter().copied().chain([place]).collect();
            let stands_alone = |single: &usize| {
                !conjuncts[*single]
                    .places
                    .iter()
                    .any(|own| with.iter().any(|one| conjuncts[*one].places.contains(own)))
            };
            let mut usable: Vec<usize> =
                singles.iter().copied().filter(stands_alone).chain(with.clone()).collect();
            usable.sort_unstable();
            let other = self.subset(&conjuncts, &usable, &wish);
            let is_better = other.as_ref().is_some_and(|other| {
                other.members.contains(&place) && best.as_ref().is_none_or(|best| other.cost <= best.cost)
            });
            if is_better {
                (best, taken) = (other, with);
            }
        }
        let best = best?;
        let (cost, matching) = (best.cost, wish.matching as u64);
        Some(Priced { node: self.joined(conjuncts, &best, condition_count, is_scoped), cost, matching })
    }

    /// Of conjuncts from small to large, the first and those that cost less than they save.
    fn subset(&self, conjuncts: &[Conjunct<'_>], usable: &[usize], wish: &Wish) -> Option<Subset> {
        let mut best: Option<Subset> = None;
        for &place in usable {
            let node = &conjuncts[place].node;
            let Some(own) = &mut best else {
                let postings = node.postings(self.documents);
                best = Some(Subset { members: vec![place], postings, cost: self.cost(&postings, wish) });
                continue;
            };
            let postings = own.postings.and(node.documents, node.sorted, self.documents);
            let cost = self.cost(&postings, wish);
            if self.whole || cost < own.cost {
                own.members.push(place);
                (own.postings, own.cost) = (postings, cost);
            }
        }
        best
    }

    /// About how many documents pass. Postings for several conditions know it for these; others are taken to be independent.
    fn matching(&self, conjuncts: &[Conjunct<'_>]) -> u64 {
        let mut covered: Vec<usize> = Vec::new();
        let mut found: Option<Postings> = None;
        let mut by_count: Vec<&Conjunct<'_>> = conjuncts.iter().collect();
        by_count.sort_by_key(|conjunct| std::cmp::Reverse(conjunct.places.len()));
        for conjunct in by_count {
            if conjunct.places.iter().any(|place| covered.contains(place)) {
                continue;
            }
            covered.extend(&conjunct.places);
            let documents = conjunct.node.documents;
            found = Some(match found {
                None => Postings::one(documents, 0, self.documents),
                Some(found) => found.and(documents, 0, self.documents),
            });
        }
        found.map_or(self.documents, |found| found.candidates(self.documents))
    }

    fn joined<'a>(
        &self,
        conjuncts: Vec<Conjunct<'a>>,
        best: &Subset,
        condition_count: usize,
        is_scoped: bool,
    ) -> PlannedAccess<'a> {
        let is_member = |place: usize| best.members.contains(&place);
        let mut has_scope = !is_scoped;
        let mut served = vec![false; condition_count];
        let (mut nodes, mut sorted, mut exact) = (Vec::with_capacity(best.members.len()), 0_u64, true);
        for (_, conjunct) in conjuncts.into_iter().enumerate().filter(|(place, _)| is_member(*place)) {
            has_scope |= conjunct.places.is_empty();
            conjunct.places.iter().for_each(|place| served[*place] = true);
            sorted = sorted.saturating_add(conjunct.node.sorted);
            exact &= conjunct.node.exact;
            nodes.push(conjunct.node);
        }
        exact &= has_scope && served.into_iter().all(|served| served);
        let documents = best.postings.candidates(self.documents);
        if nodes.len() == 1 {
            return PlannedAccess { exact, ..nodes.remove(0) };
        }
        PlannedAccess { path: AccessPath::Intersection(nodes), documents, exact, sorted, cost: 0.0 }
    }
}
