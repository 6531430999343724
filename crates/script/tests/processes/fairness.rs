//! Runaway scripts of one client, and short scripts of another.

use crate::support::{BRIEF, MemoryHost, block_on, patient, procedure, script, settings};
use crate::time::eventually;
use astrarium_script::{Call, Error, ScriptLimits, ScriptSettings, Scripts};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many runaways may end while a short run waits for its turn. Threads have four of them at a time, and forty callers come again
/// and again: a short run that came behind them all would see at least so many.
const RUNAWAYS_MEANWHILE_MAX: u64 = 30;

/// Runaways of a few scripts, over and over, from many callers; short runs of another script must all be answered, and
/// before those who came earlier.
#[test]
fn short_scripts_get_their_turn_among_runaways() {
    let scripts = Scripts::new(ScriptSettings {
        limits: ScriptLimits { grace: BRIEF, ..patient() },
        procedure_threads_max: 4,
        ..settings()
    });
    let runaways: Vec<_> = (0..3)
        .map(|number| {
            let body = "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });";
            script(&format!("runaway{number}"), &format!("function f() {{ {body} }}"))
        })
        .collect();
    let is_over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        for number in 0..40 {
            let (scripts, runaways, is_over) = (&scripts, &runaways, &is_over);
            scope.spawn(move || {
                let call = Call { time: Some(Duration::from_secs(1)), ..procedure(&json!([])) };
                while !is_over.load(Ordering::Relaxed) {
                    let script = runaways[number % runaways.len()].clone();
                    let run = scripts.execute(script, call.clone(), MemoryHost::default());
                    let error = block_on(run).expect_err("no answer").error;
                    assert!(matches!(error, Error::Timeout { .. } | Error::Busy), "{error}");
                }
            });
        }
        let fine = script("fine", "function f() { __.response.setBody(1); }");
        // From here on there are runaways all the time.
        eventually(|| scripts.statistics().runaways_ever >= 4);
        let mut most = 0;
        for _ in 0..100 {
            let before = scripts.statistics().runaways_ever;
            let run = scripts.execute(fine.clone(), procedure(&json!([])), MemoryHost::default());
            let body = block_on(run).map(|answer| answer.body).map_err(|failure| failure.error);
            assert_eq!(body, Ok(Some("1".to_owned())));
            most = most.max(scripts.statistics().runaways_ever - before);
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        most
    });
    println!("during a short run at most {most} runaways ended");
    assert!(most < RUNAWAYS_MEANWHILE_MAX, "{most} runaways were done before a short run");
}
