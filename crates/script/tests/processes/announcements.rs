//! Calls of functions that were announced, and made together.

use crate::support::{BRIEF, block_on, env, patient, script, settings};
use astrarium_script::{Error, PageFunctions, Script, ScriptLimits, ScriptSettings, Scripts};
use astrarium_value::Value;
use std::sync::Arc;
use std::time::Duration;

fn page<T: Send + 'static>(
    functions: Vec<Script>,
    time: Option<Duration>,
    work: impl FnOnce(PageFunctions) -> T + Send + 'static,
) -> Result<T, Error> {
    let limits = ScriptLimits { grace: BRIEF, ..patient() };
    block_on(Scripts::new(ScriptSettings { limits, ..settings() }).run_page(functions, &env(), time, work))
}

fn number(value: usize) -> Value {
    Value::Number(value as f64)
}

fn announce(page: PageFunctions, name: &str, arguments: impl IntoIterator<Item = usize>) {
    let name: Arc<str> = name.into();
    page.announce(
        arguments.into_iter().map(|argument| (Arc::clone(&name), vec![number(argument)])).collect(),
    );
}

#[test]
fn each_call_has_its_own_result() {
    let functions =
        vec![script("double", "x => 2 * x"), script("next", "let n = 0; function next() { return ++n; }")];
    let work = |page: PageFunctions| {
        assert!(page.wants_announcements());
        announce(page, "double", 0..300);
        for argument in (0..400).rev() {
            assert_eq!(page.call("double", &[number(argument)]), Ok(number(2 * argument)));
        }
        // Equal calls are made as often as they were announced, and what was not announced is made when it is wanted.
        announce(page, "next", [7, 7, 7]);
        let results: Vec<_> = (0..5).map(|_| page.call("next", &[number(7)])).collect();
        assert_eq!(results, (1..=5).map(|n| Ok(number(n))).collect::<Vec<_>>());
        // What was announced and not wanted is forgotten with the next announcement.
        announce(page, "next", [8, 8]);
        announce(page, "next", [9, 9]);
        assert_eq!(page.call("next", &[number(8)]), Ok(number(10)));
        announce(page, "nobody", [1, 2]);
        assert!(page.call("nobody", &[number(1)]).is_err());
    };
    page(functions, None, work).expect("a page");
}

#[test]
fn what_fails_or_takes_long_fails_only_those_who_call_it() {
    let source = "x => { if (x === 2) throw new Error('two'); for (let i = 0; i < x * 1e4; i++); return x; }";
    let work = |page: PageFunctions| {
        announce(page, "f", 0..30);
        for argument in [1, 3, 0, 2, 20, 29] {
            let result = page.call("f", &[number(argument)]);
            assert_eq!(result.is_err(), argument == 2, "{argument}: {result:?}");
        }
    };
    page(vec![script("f", source)], None, work).expect("a page");
    let runaway = "x => x === 3 ? Array.prototype.reverse.call({ length: 2 ** 53 - 1 }) : x";
    let work = |page: PageFunctions| {
        announce(page, "f", 0..30);
        page.call("f", &[number(1)])
    };
    let result = page(vec![script("f", runaway)], Some(BRIEF), work);
    assert!(matches!(result, Err(Error::Timeout { .. }) | Ok(Err(Error::Timeout { .. }))), "{result:?}");
}
