//! Native functions that never ask whether to stop: their processes are killed, and nobody else notices.

use crate::support::{
    BRIEF, MemoryHost, block_on, brief, env, patient, procedure, script, settings, with_prologue,
};
use crate::time::eventually;
use astrarium_script::{
    Error, Isolation, PageFunctions, ScriptLimits, ScriptSettings, Scripts, WorkerCommand,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Work that takes minutes to years inside native functions.
const RUNAWAYS: &[&str] = &[
    "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });",
    "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);",
    "Array.prototype.join.call({ length: 2 ** 53 - 1 });",
    "Array.prototype.fill.call(new Proxy({ length: 2 ** 53 - 1 }, {}), 1);",
    "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1);",
    "Array.prototype.sort.call({ length: 2 ** 53 - 1 });",
    "Array.prototype.values.call({ length: 2 ** 53 - 1 }).drop(2 ** 52).next();",
    "var text = 'a'.repeat(1e6), part = 'a'.repeat(5e5) + 'b'; text.indexOf(part); text.split(part); text.replaceAll(part, '');",
    "var a = new Float64Array(2e6), b = new Float64Array(2e6).fill(1); b.forEach(a.indexOf, a);",
    "JSON.stringify(new Array(2 ** 32 - 1));",
    "String(3n ** (2n ** 22n));",
];

fn source(body: &str) -> String {
    with_prologue(&format!("{body} {body} collection.createDocument(link, {{ id: '1' }});"))
}

#[test]
fn runaways_of_all_kinds_are_killed_and_nothing_is_left_of_them() {
    let scripts = Scripts::new(ScriptSettings {
        limits: ScriptLimits { grace: BRIEF, ..patient() },
        procedure_threads_max: 4,
        waiting_time: Duration::from_mins(2),
        ..settings()
    });
    let host = MemoryHost::default();
    std::thread::scope(|scope| {
        for round in 0..8 {
            let (scripts, host) = (scripts.clone(), host.clone());
            scope.spawn(move || {
                for (number, body) in RUNAWAYS.iter().enumerate() {
                    let script = script(&format!("{round}-{number}"), &source(body));
                    let run = scripts.execute(script, brief(), host.clone());
                    let error = block_on(run).expect_err(body).error;
                    let known = matches!(error, Error::Timeout { .. } | Error::Exception(_));
                    assert!(known, "{body}: {error}");
                }
            });
        }
    });
    assert_eq!(host.calls.load(Ordering::Relaxed), 0, "none of them got to its write");
    assert!(scripts.statistics().runaways_ever >= 60, "{:?}", scripts.statistics());
    eventually(|| scripts.statistics().runaways == 0);
    let fine = script("fine", "function f() { __.response.setBody(1); }");
    let answer = block_on(scripts.execute(fine, procedure(&json!([])), MemoryHost::default()));
    assert_eq!(answer.expect("an answer").body.as_deref(), Some("1"));
}

#[test]
fn a_function_that_cannot_be_stopped_fails_its_page_alone() {
    let scripts =
        Scripts::new(ScriptSettings { limits: ScriptLimits { grace: BRIEF, ..patient() }, ..settings() });
    let runaway = || script("runaway", &format!("function f() {{ {} }}", RUNAWAYS[0]));
    let fine = || script("fine", "x => x");
    for _ in 0..10 {
        let work = |page: PageFunctions| {
            // On a slow machine the time may be over before the runaway is called.
            let _ = page.call("fine", &[true.into()]);
            (page.call("runaway", &[]), page.call("fine", &[]))
        };
        let result = block_on(scripts.run_page(vec![runaway(), fine()], &env(), Some(BRIEF), work));
        assert!(matches!(result, Err(Error::Timeout { .. }) | Ok((Err(Error::Timeout { .. }), Err(_)))));
    }
    let work = |page: PageFunctions| page.call("fine", &["well".into()]);
    let value =
        block_on(scripts.run_page(vec![fine()], &env(), None, work)).expect("a page").expect("a value");
    assert_eq!(value, "well".into());
    eventually(|| scripts.statistics().runaways == 0);
}

/// Compiling is work of the engine, too.
#[test]
fn a_source_that_takes_forever_to_compile_is_given_up() {
    // Time for a source that is quick to compile; compiling is not given less by a call.
    let limits = ScriptLimits { time: Duration::from_secs(5), ..patient() };
    let scripts =
        Scripts::new(ScriptSettings { limits: ScriptLimits { grace: BRIEF, ..limits }, ..settings() });
    let source = format!("function f() {{ {} }}", "label: ".repeat(300_000) + ";");
    assert!(block_on(scripts.check(script("slow", &source))).is_err());
    assert!(block_on(scripts.check(script("fine", "function f() {}"))).is_ok());
}

/// A client that hangs up takes its script with it, and what the script had.
#[test]
fn dropping_the_future_kills_what_does_not_stop() {
    let limits = ScriptLimits { time: Duration::from_hours(1), ..patient() };
    let scripts = Scripts::new(ScriptSettings { limits, ..settings() });
    let host = MemoryHost::default();
    let held = Arc::clone(&host.calls);
    for body in [RUNAWAYS[0], "for (;;) {}"] {
        block_on(async {
            let run = scripts.execute(script("slow", &source(body)), procedure(&json!([])), host.clone());
            let mut run = Box::pin(run);
            while scripts.statistics().running == 0 {
                std::future::poll_fn(|context| {
                    assert!(run.as_mut().poll(context).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
            }
        });
        // Long before the time limit.
        eventually(|| scripts.statistics().running == 0 && Arc::strong_count(&held) == 2);
    }
}

#[test]
fn a_process_that_fails_fails_its_script_alone() {
    let Isolation::Processes(mut command) = crate::isolation() else { panic!("no processes") };
    command.arguments.push("to-be-killed".to_owned());
    let isolation = Isolation::Processes(command);
    let scripts = Scripts::new(ScriptSettings { isolation, procedure_threads_max: 1, ..settings() });
    let run = |body: &str| {
        let script = script("test", &with_prologue(body));
        block_on(scripts.execute(script, procedure(&json!([])), MemoryHost::default()))
    };
    assert_eq!(run("answer(1);").expect("an answer").body.as_deref(), Some("1"));
    let killer = std::thread::spawn({
        let scripts = scripts.clone();
        move || {
            eventually(|| scripts.statistics().running == 1);
            let ids = processes_with("to-be-killed");
            assert_eq!(ids.len(), 1);
            let id = rustix::process::Pid::from_raw(ids[0]).expect("a process");
            rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("killed");
        }
    });
    let error = run("for (;;) {}").expect_err("no answer").error;
    assert!(matches!(&error, Error::Bug { what, .. } if what.contains("its process failed")), "{error}");
    killer.join().expect("killed");
    assert_eq!(run("answer(2);").expect("an answer").body.as_deref(), Some("2"));
}

/// The processes with this argument.
fn processes_with(argument: &str) -> Vec<i32> {
    let has = |id: &i32| {
        let line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.split('\0').any(|own| own == argument)
    };
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).collect()
}

#[test]
fn idle_processes_end() {
    let scripts = Scripts::new(ScriptSettings { idle_time: Duration::from_millis(100), ..settings() });
    assert_eq!(scripts.statistics().processes, 0);
    let fine = script("fine", "function f() {}");
    for _ in 0..2 {
        assert!(
            block_on(scripts.execute(fine.clone(), procedure(&json!([])), MemoryHost::default())).is_ok()
        );
        eventually(|| scripts.statistics().processes == 0);
    }
}

#[test]
fn a_program_that_is_no_worker_is_told() {
    for program in ["/nowhere", "/bin/true"] {
        let command = WorkerCommand { program: program.into(), arguments: Vec::new() };
        let isolation = Isolation::Processes(command);
        let scripts = Scripts::new(ScriptSettings { isolation, ..settings() });
        let fine = script("fine", "function f() {}");
        let run = scripts.execute(fine, procedure(&json!([])), MemoryHost::default());
        let error = block_on(run).expect_err("no answer").error;
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("no process could be started for it"), "{error}");
    }
}
