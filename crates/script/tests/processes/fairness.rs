//! Runaway scripts of one client, and short scripts of another.

use crate::support::{MemoryHost, block_on, procedure, script, settings};
use astrarium_script::{Error, ScriptLimits, ScriptSettings, Scripts};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runaways of a few scripts, over and over, from many callers; short runs of another script must all be answered, and
/// soon.
#[test]
fn short_scripts_get_their_turn_among_runaways() {
    let limits = ScriptLimits { time: Duration::from_secs(3), ..ScriptLimits::default() };
    let scripts = Scripts::new(ScriptSettings { limits, procedure_threads_max: 4, ..settings() });
    let runaways: Vec<_> = (0..3)
        .map(|number| {
            let body = "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });";
            script(&format!("runaway{number}"), &format!("function f() {{ {body} }}"))
        })
        .collect();
    let is_over = AtomicBool::new(false);
    let slowest = std::thread::scope(|scope| {
        for number in 0..40 {
            let (scripts, runaways, is_over) = (&scripts, &runaways, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let script = runaways[number % runaways.len()].clone();
                    let run = scripts.execute(script, procedure(&json!([])), MemoryHost::default());
                    let error = block_on(run).expect_err("no answer").error;
                    assert!(matches!(error, Error::Timeout { .. } | Error::Busy), "{error}");
                }
            });
        }
        let begun = Instant::now();
        let fine = script("fine", "function f() { __.response.setBody(1); }");
        let mut slowest = Duration::ZERO;
        while begun.elapsed() < Duration::from_secs(8) {
            let start = Instant::now();
            let run = scripts.execute(fine.clone(), procedure(&json!([])), MemoryHost::default());
            let body = block_on(run).map(|answer| answer.body).map_err(|failure| failure.error);
            assert_eq!(body, Ok(Some("1".to_owned())));
            slowest = slowest.max(start.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        slowest
    });
    println!("the slowest of the short runs took {slowest:?}");
    assert!(slowest < Duration::from_secs(4), "{slowest:?}");
}
