//! What scripts cost: `cargo run --release -p astrarium-script --example speed`.
//!
//! Prints processor time of the program and its script processes per execution, because elapsed time on a shared machine
//! says little; run it under `taskset -c 0` for figures of one core. Each figure is taken with scripts on threads and with
//! scripts in processes: this program is its own worker.

use astrarium_env::Env;
use astrarium_script::{
    Call, DocumentLink, Host, HostError, IndexAction, Isolation, PageFunctions, Paging, Read, RowPage,
    Script, ScriptContainer, ScriptKey, ScriptQuery, ScriptSettings, ScriptWork, Scripts, WorkerCommand,
    Written, run_worker,
};
use astrarium_value::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A host that says yes to everything, so that scripts alone are measured.
struct EmptyHost;

impl Host for EmptyHost {
    fn create(&mut self, document: &str, _: IndexAction) -> Result<Written, HostError> {
        Ok(Written { document: document.as_bytes().to_vec(), created: true })
    }

    fn upsert(&mut self, document: &str, _: Option<&str>, _: IndexAction) -> Result<Written, HostError> {
        self.create(document, IndexAction::Default)
    }

    fn replace(
        &mut self,
        _: DocumentLink<'_>,
        document: &str,
        _: Option<&str>,
        _: IndexAction,
    ) -> Result<Written, HostError> {
        self.create(document, IndexAction::Default)
    }

    fn delete(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<(), HostError> {
        Ok(())
    }

    fn read(&mut self, _: DocumentLink<'_>, _: Option<&str>) -> Result<Read, HostError> {
        Ok(Read::Document(DOCUMENT.as_bytes().to_vec()))
    }

    fn read_feed(&mut self, _: Paging<'_>) -> Result<RowPage, HostError> {
        Ok(RowPage::default())
    }

    fn query(&mut self, _: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        self.read_feed(paging)
    }
}

const DOCUMENT: &str = r#"{"id":"1","author":"Ada","title":"Notes","tags":["a","b","c"],"pages":120,"price":{"value":12.5,"currency":"EUR"}}"#;
const EMPTY: &str = "function empty() { }";
const TYPICAL: &str = "function addBook(book) {
    var collection = getContext().getCollection();
    var link = collection.getSelfLink();
    var accepted = collection.createDocument(link, book, function (err, created) {
        if (err) throw err;
        var author = collection.getAltLink() + '/docs/' + book.author;
        collection.readDocument(author, function (err, document) {
            if (err) throw err;
            document.countOfBooks = (document.countOfBooks || 0) + 1;
            collection.replaceDocument(author, document, function (err) {
                if (err) throw err;
                getContext().getResponse().setBody(created.id);
            });
        });
    });
    if (!accepted) throw new Error('not accepted');
}";

fn main() -> Result<(), String> {
    if std::env::args().nth(1).as_deref() == Some("script-worker") {
        return run_worker().map_err(|error| error.to_string());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let command = WorkerCommand { program, arguments: vec!["script-worker".to_owned()] };
    for isolation in [Isolation::Threads, Isolation::Processes(command)] {
        println!("{}", if isolation == Isolation::Threads { "On threads:" } else { "In processes:" });
        for (what, source) in [("empty procedure", EMPTY), ("create + read + replace", TYPICAL)] {
            for (how, cache_bytes_max) in [("bytecode cache", 64 << 20), ("compiled each time", 0)] {
                procedures(what, source, how, settings(&isolation, cache_bytes_max))?;
            }
        }
        functions(settings(&isolation, 64 << 20))?;
    }
    thousand_scripts()
}

fn settings(isolation: &Isolation, cache_bytes_max: usize) -> ScriptSettings {
    let isolation = isolation.clone();
    ScriptSettings { cache_bytes_max, isolation, procedure_threads_max: 1, ..ScriptSettings::default() }
}

fn procedures(what: &str, source: &str, how: &str, settings: ScriptSettings) -> Result<(), String> {
    let scripts = Scripts::new(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let script = script(0, source);
    let mut latencies = Vec::new();
    let mut run = || {
        let start = Instant::now();
        let result = runtime.block_on(scripts.execute(script.clone(), call(), EmptyHost));
        latencies.push(start.elapsed());
        result.map(drop).map_err(|failure| failure.error.to_string())
    };
    for _ in 0..500 {
        run()?;
    }
    let (mut count, start, before) = (0_u32, Instant::now(), processor_time());
    while start.elapsed() < Duration::from_secs(4) {
        run()?;
        count += 1;
    }
    let used = processor_time().saturating_sub(before);
    let each = used.as_secs_f64() / f64::from(count);
    let median = middle(&mut latencies);
    // With a pause before each, the next sandbox is ready.
    let mut rested = Vec::new();
    for _ in 0..300 {
        std::thread::sleep(Duration::from_millis(2));
        let start = Instant::now();
        let result = runtime.block_on(scripts.execute(script.clone(), call(), EmptyHost));
        rested.push(start.elapsed());
        result.map_err(|failure| failure.error.to_string())?;
    }
    println!(
        "{what}, {how}: {:.0} per second of processor time ({:.0} us each); median latency {} us, {} us after a pause",
        1.0 / each,
        each * 1e6,
        median,
        middle(&mut rested)
    );
    Ok(())
}

/// The median, in microseconds.
fn middle(latencies: &mut [Duration]) -> u128 {
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).map_or(0, Duration::as_micros)
}

fn functions(settings: ScriptSettings) -> Result<(), String> {
    let scripts = Scripts::new(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let source = "function isLong(pages, limit) { return pages > limit; }";
    let page = |functions: PageFunctions| {
        let arguments = [Value::Number(120.0), Value::Number(100.0)];
        let name: Arc<str> = "script".into();
        let (mut count, start, before) = (0_u32, Instant::now(), processor_time());
        while start.elapsed() < Duration::from_secs(4) {
            // As a query does for a batch of documents.
            if functions.wants_announcements() {
                functions.announce(vec![(Arc::clone(&name), arguments.to_vec()); 100]);
            }
            for _ in 0..100 {
                functions.call("script", &arguments).map_err(|error| error.to_string())?;
            }
            count += 100;
        }
        let used = processor_time().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(count);
        let elapsed = start.elapsed().as_secs_f64() * 1e6 / f64::from(count);
        println!(
            "user-defined function of two numbers: {used:.2} us of processor time a call, {elapsed:.2} us elapsed"
        );
        Ok(())
    };
    let functions = vec![script(0, source)];
    let result = runtime.block_on(scripts.run_page(functions, &Env::system(), None, page));
    result.map_err(|error| error.to_string())?
}

fn thousand_scripts() -> Result<(), String> {
    let scripts = Scripts::new(ScriptSettings { procedure_threads_max: 1, ..ScriptSettings::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let run = |number: u32| {
        // Different texts, as different scripts have.
        let mut source = TYPICAL.replace("countOfBooks", &format!("countOfBooks{number}"));
        let _ = write!(source, "\nfunction helper{number}(x) {{ return x * {number}; }}");
        let script = script(number, &source);
        runtime
            .block_on(scripts.execute(script, call(), EmptyHost))
            .map_err(|failure| failure.error.to_string())
    };
    for _ in 0..200 {
        run(0)?;
    }
    let before = resident_kib();
    for number in 1..=1_000 {
        run(number)?;
    }
    let after = resident_kib();
    let kept = scripts.statistics();
    println!(
        "{} cached scripts of {} bytes: {} KiB of bytecode, resident memory grew by {} KiB",
        kept.cached_scripts,
        TYPICAL.len(),
        kept.cached_bytes / 1024,
        after.saturating_sub(before)
    );
    Ok(())
}

fn script(number: u32, source: &str) -> Script {
    let key = ScriptKey { id: number.to_string().into(), version: "1".into() };
    Script { key, name: "script".into(), source: source.into() }
}

fn call() -> Call {
    let container = ScriptContainer {
        self_link: "dbs/a/colls/b".to_owned(),
        alt_link: "dbs/library/colls/books".to_owned(),
        ..ScriptContainer::default()
    };
    Call {
        work: ScriptWork::Procedure { parameters: format!("[{DOCUMENT}]").into_bytes() },
        container: Arc::new(container),
        request_values: Vec::new(),
        env: Env::system(),
        time: None,
        log: false,
        ahead: true,
    }
}

/// User and system time of the program and its script processes, in the kernel's ticks of ten milliseconds; zero where
/// there is no `/proc`.
fn processor_time() -> Duration {
    let mut ticks = ticks_of("self");
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        ticks += children.split_whitespace().map(ticks_of).sum::<u64>();
    }
    Duration::from_millis(10 * ticks)
}

fn ticks_of(process: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * 4
}
