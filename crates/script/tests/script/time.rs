//! Time limits, waiting, and cancelling.

use crate::support::{
    BRIEF, MemoryHost, block_on, brief, check_body, patient, procedure, script, scripts, settings, short,
    with_prologue,
};
use astrarium_script::{Call, Error, Host, ScriptLimits, ScriptSettings, Scripts};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn timed_out(scripts: &Scripts, source: &str) {
    let result = block_on(scripts.execute(script("slow", source), brief(), MemoryHost::default()));
    let error = result.expect_err(source).error;
    assert!(matches!(&error, Error::Timeout { name, .. } if &**name == "slow"), "{source}: {error}");
}

/// Waits for something that other threads bring about; the end of that is the end of a test that hangs.
pub(crate) fn eventually(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_mins(5));
        std::thread::yield_now();
    }
}

#[test]
fn loops_of_all_kinds_end_with_the_time() {
    let scripts = scripts(patient());
    for body in [
        "for (;;) {}",
        "try { for (;;) {} } catch { answer('caught'); } finally { answer('finally'); }",
        "for (;;) { try { for (;;) {} } catch {} }",
        "const again = () => { Promise.resolve().then(again); }; again();",
        "const again = async () => { for (;;) await null; }; again();",
        "const again = () => queueMicrotask(again); again();",
        "const again = () => { collection.readDocuments(link, again); while (true) {} }; again();",
        "/(a+)+$/.test('a'.repeat(40) + 'b');",
        "const a = Array.from({ length: 1e5 }, (_, i) => i); for (;;) a.sort();",
        "const a = Array.from({ length: 1e5 }, (_, i) => i); for (;;) a.join();",
        "const a = 'x'.repeat(1e5); for (;;) a.split('');",
        "const a = Array.from({ length: 1e5 }, (_, i) => i); for (;;) JSON.stringify(a);",
        "for (;;) Promise.reject(1);",
        "answer({ toJSON() { for (;;) {} } });",
        "throw { get stack() { for (;;) {} }, toString() { for (;;) {} } };",
        "for (const x of (function* () { for (;;) yield 1; })()) {}",
        "new Proxy({}, { get() { for (;;) {} } }).x;",
        "collection.readDocuments(link, () => { for (;;) {} });",
        "2n ** (2n ** 19n); let x = 3n; for (;;) x = x * x % (1n << 4096n);",
    ] {
        timed_out(&scripts, &with_prologue(body));
    }
    timed_out(&scripts, "function f() {} for (;;) {}");
    eventually(|| scripts.statistics().runaways == 0);
}

#[test]
fn a_script_may_be_given_less_time_but_not_more() {
    // What would be wrong takes an hour.
    let (long, most) = (Duration::from_hours(1), Duration::from_mins(30));
    for (limits, time, least) in [
        (ScriptLimits { time: long, ..patient() }, Duration::from_millis(100), Duration::from_millis(90)),
        (short(), long, BRIEF.mul_f64(0.975)),
    ] {
        let scripts = scripts(limits);
        let call = Call { time: Some(time), ..procedure(&json!([])) };
        let start = Instant::now();
        let script = script("slow", "function f() { for (;;) {} }");
        assert!(block_on(scripts.execute(script, call, MemoryHost::default())).is_err());
        let took = start.elapsed();
        assert!((least..most).contains(&took), "{time:?}: {took:?}");
    }
}

#[test]
fn calls_are_not_accepted_near_the_end_of_the_time() {
    let scripts = scripts(ScriptLimits { accept_time: BRIEF, ..patient() });
    let source = with_prologue(
        "let count = 0;
         const next = () => {
            if (collection.upsertDocument(link, { id: String(count % 10) }, () => { count++; next(); })) return;
            answer([count > 0, __.filter(() => true).isAccepted, __.chain().isAccepted]);
         };
         next();",
    );
    let start = Instant::now();
    let run = scripts.execute(script("patient", &source), procedure(&json!([])), MemoryHost::default());
    let answer = block_on(run).expect("an answer");
    assert_eq!(answer.body.as_deref(), Some("[true,false,false]"));
    assert!(start.elapsed() >= BRIEF);
    assert!(!answer.host.documents.is_empty());
}

#[test]
fn too_many_waiting_are_turned_away() {
    let settings = ScriptSettings {
        limits: patient(),
        procedure_threads_max: 1,
        waiting_max: 2,
        waiting_time: Duration::from_millis(100),
        ..settings()
    };
    let scripts = Scripts::new(settings);
    let slow = script("slow", "function f() { for (;;) {} }");
    let results: Vec<Error> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| {
                let (scripts, slow) = (scripts.clone(), slow.clone());
                scope.spawn(move || {
                    // So long that the others come meanwhile.
                    let call = Call { time: Some(Duration::from_secs(3)), ..procedure(&json!([])) };
                    let run = scripts.execute(slow, call, MemoryHost::default());
                    block_on(run).expect_err("a failure").error
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("a result")).collect()
    });
    assert!(results.contains(&Error::Busy));
    assert!(results.iter().any(|error| matches!(error, Error::Timeout { .. })));
}

#[test]
fn dropping_the_future_ends_the_script() {
    let scripts = scripts(ScriptLimits { time: Duration::from_hours(1), ..patient() });
    let slow = script("slow", "function f() { for (;;) {} }");
    block_on(async {
        let run = scripts.execute(slow, procedure(&json!([])), MemoryHost::default());
        let mut run = Box::pin(run);
        // Started, and not waited for.
        std::future::poll_fn(|context| {
            assert!(run.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    });
    // Long before the time limit.
    eventually(|| scripts.statistics().running == 0 && scripts.statistics().waiting == 0);
}

#[test]
fn nothing_is_left_when_the_handle_is_dropped() {
    for _ in 0..20 {
        let scripts = scripts(patient());
        check_body("__.response.setBody(1);", &json!(1));
        let fine = script("fine", "function f() {}");
        assert!(block_on(scripts.execute(fine, procedure(&json!([])), MemoryHost::default())).is_ok());
    }
}

/// A host that waits in its first write until its caller has been answered; at the end of a test that hangs it gives up.
struct SlowHost {
    inner: MemoryHost,
    is_answered: Arc<AtomicBool>,
    has_given_up: Arc<AtomicBool>,
}

impl Host for SlowHost {
    fn create(
        &mut self,
        document: &str,
        index: astrarium_script::IndexAction,
    ) -> Result<astrarium_script::Written, astrarium_script::HostError> {
        let start = Instant::now();
        while !self.is_answered.load(Ordering::SeqCst) {
            if start.elapsed() > Duration::from_mins(2) {
                self.has_given_up.store(true, Ordering::SeqCst);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.inner.create(document, index)
    }

    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: astrarium_script::IndexAction,
    ) -> Result<astrarium_script::Written, astrarium_script::HostError> {
        self.inner.upsert(document, etag, index)
    }

    fn replace(
        &mut self,
        link: astrarium_script::DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: astrarium_script::IndexAction,
    ) -> Result<astrarium_script::Written, astrarium_script::HostError> {
        self.inner.replace(link, document, etag, index)
    }

    fn delete(
        &mut self,
        link: astrarium_script::DocumentLink<'_>,
        etag: Option<&str>,
    ) -> Result<(), astrarium_script::HostError> {
        self.inner.delete(link, etag)
    }

    fn read(
        &mut self,
        link: astrarium_script::DocumentLink<'_>,
        etag: Option<&str>,
    ) -> Result<astrarium_script::Read, astrarium_script::HostError> {
        self.inner.read(link, etag)
    }

    fn read_feed(
        &mut self,
        paging: astrarium_script::Paging<'_>,
    ) -> Result<astrarium_script::RowPage, astrarium_script::HostError> {
        self.inner.read_feed(paging)
    }

    fn query(
        &mut self,
        query: astrarium_script::ScriptQuery<'_>,
        paging: astrarium_script::Paging<'_>,
    ) -> Result<astrarium_script::RowPage, astrarium_script::HostError> {
        self.inner.query(query, paging)
    }
}

#[test]
fn a_host_that_takes_too_long_does_not_hold_its_caller() {
    let scripts = scripts(ScriptLimits { grace: BRIEF, ..patient() });
    let source = with_prologue("collection.createDocument(link, { id: '1' }, () => answer('created'));");
    let (is_answered, has_given_up) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let host = SlowHost {
        inner: MemoryHost::default(),
        is_answered: Arc::clone(&is_answered),
        has_given_up: Arc::clone(&has_given_up),
    };
    let run = scripts.execute(script("slow", &source), brief(), host);
    let failure = block_on(run).err().expect("a timeout");
    assert!(matches!(failure.error, Error::Timeout { .. }));
    assert!(!has_given_up.load(Ordering::SeqCst), "the answer came while the host was busy");
    is_answered.store(true, Ordering::SeqCst);
    eventually(|| scripts.statistics().runaways == 0);
}
