//! Threads that cannot be stopped, where scripts run on threads.

use crate::support::{
    BRIEF, MemoryHost, block_on, brief, patient, procedure, script, scripts, settings, with_prologue,
};
use crate::time::eventually;
use astrarium_script::{Error, ScriptLimits, ScriptSettings, Scripts};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A search that takes quadratic time inside one native function: nothing in the process can interrupt it.
const RUNAWAY: &str = "const text = 'a'.repeat(1e5); const part = 'a'.repeat(5e4) + 'b'; text.indexOf(part);";

#[test]
fn a_thread_that_cannot_be_stopped_is_left_behind_and_replaced() {
    let settings = ScriptSettings {
        limits: ScriptLimits { grace: BRIEF, ..patient() },
        procedure_threads_max: 1,
        long_threads_max: 1,
        waiting_time: Duration::from_millis(300),
        ..settings()
    };
    let scripts = Scripts::new(settings);
    let host = MemoryHost::default();
    let calls = Arc::clone(&host.calls);
    let source = with_prologue(&format!("{RUNAWAY} collection.createDocument(link, {{ id: '1' }});"));
    let failure = block_on(scripts.execute(script("runaway", &source), brief(), host));
    let failure = failure.expect_err("a timeout");
    assert!(matches!(failure.error, Error::Timeout { .. }), "{}", failure.error);
    assert!(failure.host.is_none(), "the host is with the thread, and nobody can commit it");
    assert_eq!((scripts.statistics().runaways, scripts.statistics().runaways_ever), (1, 1));

    // There is one more thread, but not two.
    let fine = script("fine", "function f() { __.response.setBody(1); }");
    let answer = block_on(scripts.execute(fine.clone(), procedure(&json!([])), MemoryHost::default()));
    assert_eq!(answer.expect("an answer").body.as_deref(), Some("1"));
    assert!(block_on(scripts.execute(script("runaway", &source), brief(), MemoryHost::default())).is_err());
    let refused = block_on(scripts.execute(fine.clone(), procedure(&json!([])), MemoryHost::default()));
    assert_eq!(refused.expect_err("no thread").error, Error::Busy);

    // What they still do has no effect, and their places come back.
    eventually(|| scripts.statistics().runaways == 0);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let answer = block_on(scripts.execute(fine, procedure(&json!([])), MemoryHost::default()));
    assert_eq!(answer.expect("an answer").body.as_deref(), Some("1"));
    assert_eq!(scripts.statistics().runaways_ever, 2);
}

#[test]
fn a_function_that_cannot_be_stopped_fails_its_query_alone() {
    let scripts = scripts(ScriptLimits { grace: BRIEF, ..patient() });
    let function = script("runaway", &format!("function f() {{ {RUNAWAY} }}"));
    let work = |page: astrarium_script::PageFunctions| drop(page.call("runaway", &[]));
    let result = block_on(scripts.run_page(vec![function], &crate::support::env(), Some(BRIEF), work));
    assert!(matches!(result, Err(Error::Timeout { .. })));
    assert_eq!(scripts.statistics().runaways, 1);
    eventually(|| scripts.statistics().runaways == 0);
}
