//! The contract suite, and what is there after a process ends: on the store that `ASTRARIUM_TEST_STORE` names, or on a PostgreSQL of our own.

use crate::ground::{any_store, open};
use astrarium_kv::Engine;
use astrarium_kv::contract::{self, Ending};
use std::sync::Arc;

#[test]
fn the_contract_holds() {
    if any_store().is_some() {
        contract::check(&|| Arc::new(open(&any_store().expect("there was one"))) as Arc<dyn Engine>);
    }
}

#[test]
fn acknowledged_commits_are_there_in_the_next_process() {
    for ending in [Ending::Close, Ending::Drop] {
        let Some(url) = any_store() else { return };
        contract::check_reopen(&|| Arc::new(open(&url)) as Arc<dyn Engine>, ending);
    }
}
