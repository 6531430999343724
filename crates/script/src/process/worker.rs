//! The life of a script process: it takes orders from its server until the server is gone.
//!
//! It has one sandbox, which it makes fresh after each run rather than before the next, and compiled scripts of its own.
//! It asks the server for everything else. It needs no way to end what does not end: the server kills it.

use super::asking::{AskingHost, Server};
use super::channel::Channel;
use super::encoding::{List, MessagePart as _};
use super::messages::{HostResult, NamedScript, ProcessOrder, ProcessReport, Question, RunSetting, Task};
use crate::cache::Cache;
use crate::compile::check;
use crate::deadline::Deadline;
use crate::functions::{self, FunctionPage};
use crate::sandbox::{Purpose, Sandbox};
use crate::{Call, Error, Script, ScriptLimits, execution};
use astrarium_value::Value;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a process gets of the processor beside the server, in the system's measure of niceness.
const NICENESS: i32 = 5;
/// What calls may take that are made ahead.
const AHEAD_TIME: Duration = Duration::from_millis(1);
const AHEAD_BYTES_MAX: usize = 1 << 20;

/// Works for the server that started this process, whose socket is the standard input, and does not return before that
/// server is gone. For the program that [`crate::WorkerCommand`] names.
pub fn run_worker() -> io::Result<()> {
    let mut channel = Channel::new(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?));
    confine()?;
    let begin = channel.receive()?;
    let Some(ProcessOrder::Begin { server, limits, purpose, memory_image, cache_bytes_max }) = begin else {
        return Ok(());
    };
    // A server that was gone before `confine` does not take us with it.
    if rustix::process::getppid().is_none_or(|parent| parent.as_raw_pid().cast_unsigned() != server) {
        return Ok(());
    }
    let builder = std::thread::Builder::new().name("script".to_owned());
    let builder = builder.stack_size(limits.thread_stack_bytes());
    let work = move || {
        let cache = Arc::new(Cache::new(cache_bytes_max));
        let server = Server::new(channel);
        WorkerProcess {
            server,
            cache,
            limits,
            purpose,
            memory_image,
            sandbox: None,
            announced: None,
            page: None,
        }
        .work();
    };
    let ended = builder.spawn(work)?.join();
    ended.map_err(|_| io::Error::other("the script process has failed"))
}

/// Takes from the process what it does not need: it opens no files, writes none, leaves no dumps, and ends with its
/// server even while a script runs. Scripts cannot do any of that anyway; this is for a fault of the engine.
fn confine() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
        rustix::thread::set_name(c"script-worker")?;
    }
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    for resource in [Resource::Core, Resource::Fsize, Resource::Nofile] {
        setrlimit(resource, none)?;
    }
    // Where the system does not let us, scripts have as much of the processor as requests.
    let _ = rustix::process::nice(NICENESS);
    Ok(())
}

struct WorkerProcess {
    server: Server,
    cache: Arc<Cache>,
    limits: ScriptLimits,
    purpose: Purpose,
    memory_image: bool,
    // Values of the page belong to the sandbox, so they are dropped before it.
    page: Option<FunctionPage>,
    announced: Option<(Vec<NamedScript>, RunSetting)>,
    sandbox: Option<Rc<Sandbox>>,
}

impl WorkerProcess {
    fn work(mut self) {
        self.prepare();
        self.server.report(&ProcessReport::Ready);
        loop {
            self.prepare();
            match self.server.next_order() {
                // Comes first, and only then; and nothing was asked.
                ProcessOrder::Begin { .. } | ProcessOrder::Reply(_) => return,
                ProcessOrder::Run { script, setting, task } => self.run(script, &setting, *task),
                ProcessOrder::Check { script } => {
                    let result = check(&self.cache, &self.limits, &self.known(script, 0));
                    self.server.report(&ProcessReport::Checked { result });
                }
                ProcessOrder::OpenPage { functions: List(functions), setting } => {
                    self.announced = Some((functions, setting));
                }
                ProcessOrder::Call { function, arguments: List(arguments) } => {
                    self.open();
                    let result = self.call(function as usize, &arguments);
                    self.server.report(&ProcessReport::Called { result });
                }
                ProcessOrder::CallMany { calls: List(calls) } => {
                    self.open();
                    let results = List(self.call_many(&calls));
                    self.server.report(&ProcessReport::CalledMany { results });
                }
                ProcessOrder::ClosePage => (self.page, self.announced) = (None, None),
            }
        }
    }

    /// Makes the sandbox one that no script has seen, unless a page is using it.
    fn prepare(&mut self) {
        if self.page.is_some() {
            return;
        }
        let used = self.sandbox.take();
        self.sandbox = used.and_then(|mut sandbox| Rc::get_mut(&mut sandbox)?.renew().then_some(sandbox));
        if self.sandbox.is_none() {
            // Without memory for a sandbox there is nothing to do: the server hears of it by our end.
            let Ok(made) = Sandbox::new(&self.limits, self.purpose, self.memory_image) else {
                std::process::exit(1);
            };
            self.sandbox = Some(Rc::new(made));
        }
    }

    /// A script with its source, where that is needed.
    fn known(&self, script: NamedScript, function: u32) -> Script {
        let NamedScript { key, name } = script;
        if self.cache.has(&key) {
            return Script { key, name, source: "".into() };
        }
        let source = match self.server.ask(Question::Source { function }).result {
            Ok(HostResult::Text(source)) => source,
            _ => String::new(),
        };
        Script { key, name, source: source.into() }
    }

    fn run(&mut self, script: NamedScript, setting: &RunSetting, task: Task) {
        let deadline = self.limits.deadline(setting.time);
        let script = self.known(script, 0);
        let Some(sandbox) = &self.sandbox else { return };
        let host = AskingHost::new(self.server.clone(), task.accepts, task.ahead, task.foreseen);
        let call = Call {
            work: task.work,
            container: Arc::new(task.container),
            request_values: task.request_values.0,
            env: self.server.env(setting.seed),
            time: None,
            log: task.log,
            ahead: task.ahead,
        };
        let result = execution::run(sandbox, &self.cache, &self.limits, deadline, &script, &call, host);
        let report = match result {
            Ok(answer) => ProcessReport::Ran { result: Ok(answer.body), log: answer.log },
            Err(failure) => ProcessReport::Ran { result: Err(failure.error), log: failure.log },
        };
        self.server.report(&report);
    }

    /// Opens the page that was announced. Not earlier than with its first call: before that the server does not expect to
    /// be asked.
    fn open(&mut self) {
        let Some((functions, setting)) = self.announced.take() else { return };
        let deadline: Deadline = self.limits.deadline(setting.time);
        let functions = functions.into_iter().enumerate();
        let functions = functions.map(|(index, script)| self.known(script, index as u32)).collect();
        let Some(sandbox) = &self.sandbox else { return };
        let (cache, limits, env) =
            (Arc::clone(&self.cache), self.limits.clone(), self.server.env(setting.seed));
        let setting = functions::PageSetting { cache, limits, functions, env };
        self.page = Some(FunctionPage::new(sandbox, deadline, setting));
    }

    /// Makes calls that were not asked for yet: none that take long, since nobody may ask.
    fn call_many(&self, calls: &[(u32, List<Value>)]) -> Vec<Result<Value, Error>> {
        let (start, mut results, mut bytes) = (Instant::now(), Vec::new(), Vec::new());
        for (function, List(arguments)) in calls {
            let result = self.call(*function as usize, arguments);
            result.put(&mut bytes);
            let is_enough = result.is_err() || bytes.len() > AHEAD_BYTES_MAX || start.elapsed() > AHEAD_TIME;
            results.push(result);
            if is_enough {
                break;
            }
        }
        results
    }

    fn call(&self, function: usize, arguments: &[Value]) -> Result<Value, Error> {
        match &self.page {
            Some(page) => page.call(function, arguments),
            None => Err(Error::Bug { name: "".into(), what: "a call without a page".to_owned() }),
        }
    }
}
