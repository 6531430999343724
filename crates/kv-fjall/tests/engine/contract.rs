//! The contract suite on fjall, in fresh folders, and over many lives of one folder.

use crate::fixture::{open, small_set};
use astrarium_kv::contract::{self, Ending};
use astrarium_kv_fjall::{FjallEngine, Options};
use std::cell::RefCell;
use std::sync::Arc;

#[test]
fn keeps_the_contract() {
    for options in [Options::default(), small_set()] {
        let folders = RefCell::new(Vec::new());
        contract::check(&|| {
            let folder = tempfile::tempdir().unwrap();
            let engine = Arc::new(FjallEngine::open(folder.path(), options.clone()).unwrap());
            folders.borrow_mut().push(folder);
            engine
        });
    }
}

#[test]
fn keeps_everything_over_close_and_kill() {
    for ending in [Ending::Close, Ending::Drop] {
        let folder = tempfile::tempdir().unwrap();
        contract::check_reopen(&|| Arc::new(open(folder.path())), ending);
    }
}
