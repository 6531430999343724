//! What is done with rows that cannot simply be handed on: grouping, sorting, removing duplicates, ranking.

pub(crate) mod collect;
pub(crate) mod groups;
pub(crate) mod rank;
