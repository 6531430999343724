//! The indexes of containers, made from their policies once.

use crate::computed;
use astrarium_catalog::container::Container;
use astrarium_catalog::definition::container::ContainerDefinition;
use astrarium_index::{IndexSet, Indexes};
use astrarium_keys::Rid;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{Arc, Weak};

/// Containers whose indexes are kept at most; beyond that the cache starts anew.
const CONTAINERS_MAX: usize = 10_000;

/// Indexes by container. An entry counts for exactly the loaded container it was made for.
#[derive(Default)]
pub(crate) struct IndexCache {
    made: RwLock<HashMap<Rid, Made, RandomState>>,
}

struct Made {
    for_container: Weak<Container>,
    indexes: Arc<Indexes>,
}

impl IndexCache {
    /// The indexes of a container.
    pub(crate) fn of(&self, container: &Arc<Container>) -> Arc<Indexes> {
        if let Some(made) = self.made.read().get(&container.rid())
            && std::ptr::eq(made.for_container.as_ptr(), Arc::as_ptr(container))
        {
            return Arc::clone(&made.indexes);
        }
        let indexes = Arc::new(make(container));
        let mut made = self.made.write();
        if made.len() >= CONTAINERS_MAX {
            made.clear();
        }
        let own = Made { for_container: Arc::downgrade(container), indexes: Arc::clone(&indexes) };
        made.insert(container.rid(), own);
        indexes
    }
}

/// The indexes that a container's generations have.
pub(crate) fn make(container: &Container) -> Indexes {
    let set = |generation: u8, definition: &ContainerDefinition, has_expiry: bool| {
        let mut set = IndexSet::new(generation, definition);
        if has_expiry {
            set = set.expiring();
        }
        match computed::evaluator(container.rid(), definition) {
            Some(compute) => set.computing(compute),
            None => set,
        }
    };
    let generations = &container.generations;
    let expires = container.definition.indexes_expiry();
    let building =
        generations.building.map(|building| set(building.generation, &container.definition, expires));
    let active = set(generations.active, container.indexed_by(), generations.has_expiry);
    Indexes::new(active, building, container.definition.unique_keys.clone())
}
