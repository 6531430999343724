//! A disk that answers slowly, or not at all: request threads go on, and what is in memory is answered at once.

use astrarium_kv::contract::{block_on, shard_key};
use astrarium_kv::{Engine, ShardId, Space, Stamp, WriteBatch};
use astrarium_kv_fjall::{FjallEngine, Options, ReadHook};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A disk that stands still while it is shut; once it was slow, so that the engine knows.
#[derive(Default)]
struct Disk {
    is_slow: AtomicBool,
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Disk {
    fn hook(self: &Arc<Disk>) -> ReadHook {
        let disk = Arc::clone(self);
        Arc::new(move || {
            if disk.is_slow.swap(false, Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let shut = disk.is_shut.lock().unwrap();
            drop(disk.opened.wait_while(shut, |is_shut| *is_shut).unwrap());
        })
    }
}

fn key(number: u64) -> Bytes {
    shard_key(ShardId(1), &number.to_be_bytes())
}

#[test]
fn cold_reads_leave_request_threads_free() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::default());
    let options = Options { before_read: Some(disk.hook()), ..Options::default() };
    let engine = Arc::new(FjallEngine::open(folder.path(), options).unwrap());
    let mut batch = WriteBatch::new(ShardId(1), 0);
    for number in 0..100 {
        batch.put(Space::Body, key(number), Bytes::from(vec![1; 100]), Stamp::NONE);
    }
    block_on(engine.commit(batch)).unwrap();
    let read = |number: u64| {
        let engine = Arc::clone(&engine);
        async move {
            let view = engine.view(ShardId(1), 0).await.unwrap();
            view.get(Space::Body, &key(number)).await.unwrap().unwrap()
        }
    };
    let requests = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    requests.block_on(requests.spawn(read(0))).unwrap();
    disk.is_slow.store(true, Ordering::Relaxed);
    requests.block_on(requests.spawn(read(1))).unwrap();
    *disk.is_shut.lock().unwrap() = true;
    let cold: Vec<_> = (10..60).map(|number| requests.spawn(read(number))).collect();
    // Both threads would stand still before the disk now.
    for _ in 0..20 {
        requests.block_on(requests.spawn(read(0))).unwrap();
    }
    assert!(cold.iter().all(|read| !read.is_finished()), "nobody has read while the disk stands still");
    *disk.is_shut.lock().unwrap() = false;
    disk.opened.notify_all();
    for read in cold {
        assert_eq!(requests.block_on(read).unwrap().len(), 100);
    }
}
