//! Question: what do address, header, signature and date of a signed point read cost, beside the HMAC itself?
//!
//! Run with `cargo run --release -p astrarium-wire --example point_read_cost`; prints nanoseconds of each step.

use std::hint::black_box;
use std::time::Instant;

use astrarium_wire::address::Address;
use astrarium_wire::authorization::{AccountKeys, Authorization, DateWindow, MasterKey, signing_payload};
use astrarium_wire::key_text::EMULATOR_KEY;
use astrarium_wire::{date, percent};

const PATH: &str = "/dbs/benchmark/colls/documents/docs/document-000123456";
const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
const ROUNDS: u32 = 500_000;

fn main() {
    let key = MasterKey::from_base64(EMULATOR_KEY).expect("the well-known key");
    let keys = AccountKeys::single(key.clone());
    let address = Address::parse(PATH, None).expect("a document");
    let payload = signing_payload("GET", &address, Some(DATE), None);
    let plain = format!("type=master&ver=1.0&sig={}", key.sign_base64(payload.as_bytes()));
    let header = percent::encode_component(&plain).into_owned();
    let now = date::parse(DATE).expect("a date");
    let window = DateWindow::default();

    measure("HMAC-SHA256 of the payload alone", || {
        black_box(key.sign(black_box(payload.as_bytes())));
    });
    measure("parse address", || {
        black_box(Address::parse(black_box(PATH), None).is_ok());
    });
    measure("parse authorization", || {
        black_box(Authorization::parse(black_box(&header)).is_ok());
    });
    measure("check date", || {
        black_box(window.check(black_box(Some(DATE)), None, now).is_ok());
    });
    let signature = key.sign_base64(payload.as_bytes());
    measure("verify, HMAC included", || {
        black_box(keys.verify(black_box(&signature), "GET", &address, Some(DATE), None).is_ok());
    });
    let whole = || {
        let address = Address::parse(black_box(PATH), None).ok()?;
        let authorization = Authorization::parse(black_box(&header)).ok()?;
        window.check(Some(DATE), None, now).ok()?;
        keys.verify(&authorization.signature, "GET", &address, Some(DATE), None).ok()
    };
    assert!(whole().is_some(), "the request is signed correctly");
    measure("all of it, with the signature", || {
        black_box(whole());
    });
}

/// Prints the best of ten runs: the one that neighbours disturbed least.
fn measure(question: &str, mut operation: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..ROUNDS / 10 {
            operation();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(ROUNDS / 10));
    }
    println!("{question}: {best:.0} ns");
}
