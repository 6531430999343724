//! Writers that go on while an index is built.

use crate::world::{World, document, only};
use astrarium_database::{Error, WriteMode};
use astrarium_env::Random;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const DOCUMENT_COUNT: u64 = 150;

/// Creates, replaces and deletes documents of its own until told to stop; gives what they are at the end.
async fn work(world: Arc<World>, worker: u64, stop: Arc<AtomicBool>) -> Vec<(String, u64)> {
    let random = Random::from_seed(worker);
    let mut own = vec![None; DOCUMENT_COUNT as usize];
    while !stop.load(Ordering::Relaxed) {
        let (number, value) = (random.next_u64() % DOCUMENT_COUNT, random.next_u64() % 50);
        let id = format!("{worker}-{number}");
        let mut document = document(value as usize);
        (document["id"], document["n"], document["pk"]) = (json!(id), json!(value), json!(id));
        let known = &mut own[number as usize];
        match (random.next_u64() % 4, known.is_some()) {
            (0, true) => {
                world.delete(&document).await.unwrap();
                *known = None;
            }
            (1, false) => {
                world.write(WriteMode::Create, &document).await.unwrap();
                *known = Some(value);
            }
            (1, true) => {
                let refused = world.write(WriteMode::Create, &document).await;
                assert!(matches!(refused, Err(Error::Exists)));
            }
            _ => {
                world.put(&document).await;
                *known = Some(value);
            }
        }
        tokio::task::yield_now().await;
    }
    let of = |(number, value): (usize, Option<u64>)| Some((format!("{worker}-{number}"), value?));
    own.into_iter().enumerate().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_and_builder_meet_and_nothing_is_lost() {
    let world = Arc::new(World::new(json!({})).await);
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (world, stop) = (Arc::clone(&world), Arc::clone(&stop));
            #[expect(clippy::disallowed_methods, reason = "concurrent writers are the point")]
            tokio::spawn(work(world, worker, stop))
        })
        .collect();
    for round in 0..12 {
        let paths: &[&str] = [&["/n/?"][..], &["/list/*", "/n/?"], &["/text/?", "/n/?"]][round % 3];
        world.replace(only(paths)).await;
        let mut steps = 0;
        while world.account.maintenance().build_indexes().await.unwrap() {
            steps += 1;
            if round % 4 == 3 && steps == 3 {
                break;
            }
            tokio::task::yield_now().await;
        }
        if round % 2 == 0 {
            world.sweep().await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut expected = Vec::new();
    for worker in workers {
        expected.extend(worker.await.unwrap());
    }
    world.is_sound("after the last writer").await;
    world.build().await;
    world.sweep().await;
    world.is_sound("after the builder").await;
    for value in 0..50 {
        let found = world.query(&format!("SELECT VALUE c.id FROM c WHERE c.n = {value}")).await;
        let mut own: Vec<String> =
            expected.iter().filter(|(_, own)| *own == value).map(|(id, _)| format!("\"{id}\"")).collect();
        own.sort();
        assert_eq!(found, own, "value {value}");
    }
}
