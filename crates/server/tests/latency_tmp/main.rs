#![allow(dead_code, clippy::all, clippy::pedantic, clippy::unwrap_used)]
#[path = "../crash/client.rs"]
mod client;
#[path = "../crash/process.rs"]
mod process;
use astrarium_wire::headers;
use client::Client;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn doc(n: u64) -> String {
    let mut d = json!({"id": n.to_string(), "pk": (n % 100).to_string(), "n": n, "m": n % 7, "text": "some text of a document"});
    for i in 0..16 {
        d[format!("property{i}")] = json!(format!("value {}", n.wrapping_mul(i + 1) % 1000));
    }
    d.to_string()
}
fn def(policy: serde_json::Value) -> String {
    json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "indexingPolicy": policy}).to_string()
}
const C: &str = "dbs/d/colls/c";
static NEXT: AtomicU64 = AtomicU64::new(1_000_000);
fn measure(addr: std::net::SocketAddr, what: &str, seconds: f64) {
    let stop = AtomicBool::new(false);
    let all: Vec<(Vec<u64>, Vec<u64>)> = std::thread::scope(|s| {
        let hs: Vec<_> = (0..8)
            .map(|w| {
                let stop = &stop;
                s.spawn(move || {
                    let mut c = Client::new(addr);
                    let (mut reads, mut writes) = (vec![], vec![]);
                    let mut i = w * 7919u64;
                    while !stop.load(Ordering::Relaxed) {
                        i += 1;
                        let began = Instant::now();
                        if i % 2 == 0 {
                            let n = i * 31 % 10_000;
                            let key = json!([(n % 100).to_string()]).to_string();
                            let a = c.must_send(
                                "GET",
                                &format!("{C}/docs/{n}"),
                                &[(headers::PARTITION_KEY, &key)],
                                "",
                            );
                            assert_eq!(a.status, 200);
                            reads.push(began.elapsed().as_micros() as u64);
                        } else {
                            let n = NEXT.fetch_add(1, Ordering::Relaxed);
                            let key = json!([(n % 100).to_string()]).to_string();
                            let a = c.must_send(
                                "POST",
                                &format!("{C}/docs"),
                                &[(headers::PARTITION_KEY, &key)],
                                &doc(n),
                            );
                            assert_eq!(a.status, 201, "{}", a.text());
                            writes.push(began.elapsed().as_micros() as u64);
                        }
                        std::thread::sleep(Duration::from_millis(4));
                    }
                    (reads, writes)
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        hs.into_iter().map(|h| h.join().unwrap()).collect()
    });
    let p = |mut v: Vec<u64>| {
        v.sort();
        let n = v.len();
        format!("n {n} p50 {} p90 {} p99 {} max {}", v[n / 2], v[n * 9 / 10], v[n * 99 / 100], v[n - 1])
    };
    println!("{what}: reads {}", p(all.iter().flat_map(|a| a.0.clone()).collect()));
    println!("{what}: creates {}", p(all.iter().flat_map(|a| a.1.clone()).collect()));
}
#[test]
fn latency() {
    let folder = tempfile::tempdir().unwrap();
    let server = process::Server::start(folder.path());
    let addr = server.address();
    let mut c = Client::new(addr);
    c.must_send("POST", "dbs", &[], r#"{"id":"d"}"#);
    c.must_send(
        "POST",
        "dbs/d/colls",
        &[(headers::OFFER_THROUGHPUT, "400")],
        &def(json!({"indexingMode":"consistent"})),
    );
    std::thread::scope(|s| {
        for w in 0..16u64 {
            s.spawn(move || {
                let mut c = Client::new(addr);
                for n in (w..10_000).step_by(16) {
                    let key = json!([(n % 100).to_string()]).to_string();
                    assert_eq!(
                        c.must_send("POST", &format!("{C}/docs"), &[(headers::PARTITION_KEY, &key)], &doc(n))
                            .status,
                        201
                    );
                }
            });
        }
    });
    println!("loaded");
    std::thread::sleep(Duration::from_secs(2));
    measure(addr, "before", 4.0);
    let began = Instant::now();
    let a = c.must_send(
        "PUT",
        C,
        &[],
        &def(json!({"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/text/?"}]})),
    );
    assert_eq!(a.status, 200);
    measure(addr, "during", 4.0);
    println!("progress {}", c.index_progress(C));
    while c.index_progress(C) < 100 {
        std::thread::sleep(Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(120));
    }
    println!("built after {:?}", began.elapsed());
    measure(addr, "after", 4.0);
}
