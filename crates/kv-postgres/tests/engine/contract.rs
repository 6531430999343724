//! The contract suite, and what is there after a process ends.

use crate::ground::{cluster, fresh_store, open};
use astrarium_kv::Engine;
use astrarium_kv::contract::{self, Ending};
use std::sync::Arc;

#[test]
fn the_contract_holds() {
    let Some(cluster) = cluster() else { return };
    contract::check(&|| Arc::new(open(&fresh_store(cluster))) as Arc<dyn Engine>);
}

#[test]
fn acknowledged_commits_are_there_in_the_next_process() {
    let Some(cluster) = cluster() else { return };
    for ending in [Ending::Close, Ending::Drop] {
        let url = fresh_store(cluster);
        contract::check_reopen(&|| Arc::new(open(&url)) as Arc<dyn Engine>, ending);
    }
}
