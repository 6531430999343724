//! The suite: a table of tests, each run on several ways to connect, against one server that this process owns.

mod change_feed;
mod containers;
mod databases;
mod durability;
mod indexing;
mod items;
mod partition_keys;
mod queries;
mod throughput;
mod transport;

use futures::future::BoxFuture;
use libtest_mimic::{Arguments, Trial};
use sdk_tests::fixture::{Fixture, Way};
use sdk_tests::server::{self, Server};
use std::sync::Arc;

type Test = (&'static str, fn(Fixture) -> BoxFuture<'static, ()>);

/// One line per test.
macro_rules! table {
    ($($module:ident :: $test:ident,)*) => {
        &[$((concat!(stringify!($module), "::", stringify!($test)), |fixture| Box::pin($module::$test(fixture)))),*]
    };
}

const TESTS: &[Test] = table![
    databases::life,
    databases::list,
    databases::ids,
    databases::keys,
    containers::life,
    containers::policies,
    containers::without_index,
    containers::refusals,
    containers::replace_refusals,
    containers::list,
    containers::feed_ranges,
    containers::by_resource_id,
    throughput::manual,
    throughput::autoscale,
    throughput::absent,
    throughput::refused_at_creation,
    items::life,
    items::without_content,
    items::conditions,
    items::refusals,
    items::ids,
    items::values,
    items::session_tokens,
    items::time_to_live,
    items::list,
    partition_keys::scalars,
    partition_keys::nested,
    partition_keys::hierarchical,
    indexing::policies,
    indexing::unique_keys,
    queries::answers,
    queries::answers_of_several_ranges,
    queries::tokens,
    queries::tokens_of_several_ranges,
    queries::refusals,
    queries::scopes,
    queries::metrics,
    queries::charges,
    queries::other_resources,
    change_feed::from_the_beginning,
    change_feed::from_now_and_on,
    change_feed::all_versions_and_deletes,
    durability::kill_and_restart,
    durability::kill_under_writes,
    transport::protocol,
];

/// The SDK as it comes, over both schemes; and what it can be asked for.
const WAYS: [Way; 4] = [
    Way::default_over("http"),
    Way::default_over("https"),
    Way { scheme: "http", text: true, http1: true },
    Way { scheme: "https", text: true, http1: false },
];

fn main() {
    let arguments = Arguments::from_args();
    server::forget_authorities();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let shared = Arc::new(Server::in_memory());
    let trials = WAYS
        .iter()
        .flat_map(|way| TESTS.iter().map(move |test| (*way, *test)))
        .map(|(way, (name, test))| {
            let (server, handle) = (shared.clone(), runtime.handle().clone());
            Trial::test(format!("{}::{name}", way.name()), move || {
                handle.block_on(async { test(Fixture::new(server, way).await).await });
                Ok(())
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The process ends without dropping anything, so the server is stopped here.
    drop(shared);
    conclusion.exit();
}
