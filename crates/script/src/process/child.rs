//! A script process as the server has it: started, given orders, answered, killed.
//!
//! The thread of the pool that owns it does all but the last, which `pool::watch` does from outside by way of
//! [`Process`]. A process that was killed, or went wrong in any way, is not used again.

use super::channel::Channel;
use super::encoding::List;
use super::messages::{Found, Link, Named, Order, Page, Question, Reply, Report, Setting, Task};
use crate::deadline::{Deadline, Stop};
use crate::sandbox::Purpose;
use crate::{
    Answer, Call, DocumentLink, Error, Failure, Host, HostError, Limits, Paging, Query, Read, Script,
    Spatial, UnseenWrite, Written,
};
use astrarium_env::Env;
use astrarium_value::Value;
use parking_lot::Mutex;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a process may take to start: a loaded machine needs some hundred milliseconds.
const START_TIME: Duration = Duration::from_secs(10);

/// How long-running scripts are treated beside everything else, in the system's measure of niceness.
const NICENESS_LONG: i32 = 15;

/// How long a process may go on with a run that is void.
const VOID_TIME: Duration = Duration::from_millis(200);

/// The program whose `main` calls [`crate::run_worker`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// Its file.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<String>,
}

/// The hold on a process that other threads have.
pub(crate) struct Process {
    child: Mutex<std::process::Child>,
    was_killed: AtomicBool,
}

impl Process {
    /// Ends it, whatever it does.
    pub(crate) fn kill(&self) {
        self.was_killed.store(true, Ordering::Relaxed);
        // One that has ended by itself is as good.
        let _ = self.child.lock().kill();
    }

    /// Has it wait for others.
    pub(crate) fn step_back(&self) {
        let mut child = self.child.lock();
        // The number of one that has ended may be another's by now.
        if matches!(child.try_wait(), Ok(None)) {
            let id = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::setpriority_process(Some(id), NICENESS_LONG);
        }
    }
}

/// A process, and the way to talk to it.
pub(crate) struct Child {
    channel: Channel,
    process: Arc<Process>,
    /// Why it cannot be used any more.
    broken: Option<String>,
}

impl Child {
    /// Starts a process.
    pub(crate) fn start(
        command: &WorkerCommand,
        limits: &Limits,
        purpose: Purpose,
        memory_image: bool,
        cache_bytes_max: usize,
    ) -> io::Result<Child> {
        let (own, other) = UnixStream::pair()?;
        let child = Command::new(&command.program)
            .arg0("astrarium")
            .args(&command.arguments)
            // Keys may be in the environment, and a terminal's signals are for the server to judge.
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .spawn()?;
        let process = Process { child: Mutex::new(child), was_killed: AtomicBool::new(false) };
        let mut child = Child { channel: Channel::new(own), process: Arc::new(process), broken: None };
        let limits = limits.clone();
        let server = std::process::id();
        child.channel.send(&Order::Begin { server, limits, purpose, memory_image, cache_bytes_max })?;
        // What it takes to start is no script's time.
        child.channel.wait_at_most(Some(START_TIME))?;
        let Some(Report::Ready) = child.channel.receive()? else {
            return Err(io::Error::other("it did not start"));
        };
        child.channel.wait_at_most(None)?;
        Ok(child)
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.broken.is_none() && !self.process.was_killed.load(Ordering::Relaxed)
    }

    /// Runs a procedure or trigger.
    pub(crate) fn run<H: Host>(
        &mut self,
        stop: &Stop,
        deadline: &Deadline,
        script: &Script,
        call: Call,
        mut host: H,
    ) -> Result<Answer<H>, Box<Failure<H>>> {
        host.begin(deadline.end.into());
        let task = Task {
            work: call.work,
            container: (*call.container).clone(),
            request_values: List(call.request_values),
            log: call.log,
            accepts: host.accepts(),
            ahead: call.ahead,
        };
        let order = Order::Run { script: named(script), setting: setting(deadline, &call.env), task };
        let mut context =
            Context { host: Some(&mut host), scripts: &[script], env: &call.env, stop, is_void: false };
        let result = self.order(&order, &mut context);
        let is_void = context.is_void;
        let (result, log) = match result {
            _ if is_void => {
                (judged(Err(Error::Void { name: Arc::clone(&script.name) }), stop, script), String::new())
            }
            Ok(Report::Ran { result, log }) => (judged(result, stop, script), log),
            Ok(_) => (Err(self.mistaken(script)), String::new()),
            Err(error) => (Err(error), String::new()),
        };
        match result {
            Ok(body) => Ok(Answer { body, log, host }),
            Err(error) => Err(Box::new(Failure { error, log, host: Some(host) })),
        }
    }

    /// Compiles a source.
    pub(crate) fn check(&mut self, stop: &Stop, script: &Script) -> Result<(), Error> {
        let mut context =
            Context { host: None, scripts: &[script], env: &Env::system(), stop, is_void: false };
        match self.order(&Order::Check { script: named(script) }, &mut context)? {
            Report::Checked { result } => judged(result, stop, script),
            _ => Err(self.mistaken(script)),
        }
    }

    /// Makes ready for calls; the process hears of it with the first one.
    pub(crate) fn open_page(
        &mut self,
        deadline: &Deadline,
        functions: &[Script],
        env: &Env,
    ) -> Result<(), Error> {
        let functions_named = List(functions.iter().map(named).collect());
        let order = Order::OpenPage { functions: functions_named, setting: setting(deadline, env) };
        self.channel.put_off(&order).map_err(|error| self.lost(first_name(functions), &error.to_string()))
    }

    /// Calls a function of the page.
    pub(crate) fn call(
        &mut self,
        functions: &[Script],
        env: &Env,
        stop: &Stop,
        function: usize,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        let scripts: Vec<&Script> = functions.iter().collect();
        let order = Order::Call { function: function as u32, arguments: List(arguments.to_vec()) };
        let script = &functions[function];
        let mut context = Context { host: None, scripts: &scripts, env, stop, is_void: false };
        match self.order_for(script, &order, &mut context)? {
            Report::Called { result } => judged(result, stop, script),
            _ => Err(self.mistaken(script)),
        }
    }

    /// Makes calls that will be wanted; gives the results of the first of them.
    pub(crate) fn call_many(
        &mut self,
        functions: &[Script],
        env: &Env,
        stop: &Stop,
        calls: Vec<(usize, Vec<Value>)>,
    ) -> Vec<Result<Value, Error>> {
        let Some(script) = functions.first() else { return Vec::new() };
        let scripts: Vec<&Script> = functions.iter().collect();
        let calls = calls.into_iter().map(|(function, arguments)| (function as u32, List(arguments)));
        let order = Order::CallMany { calls: List(calls.collect()) };
        let mut context = Context { host: None, scripts: &scripts, env, stop, is_void: false };
        match self.order_for(script, &order, &mut context) {
            Ok(Report::CalledMany { results: List(results) }) => results,
            Ok(_) => vec![Err(self.mistaken(script))],
            // Whoever calls next hears of it.
            Err(_) => Vec::new(),
        }
    }

    /// Ends the page.
    pub(crate) fn close_page(&mut self) {
        if let Err(error) = self.channel.send(&Order::ClosePage) {
            self.broken.get_or_insert(error.to_string());
        }
    }

    fn order(&mut self, order: &Order, context: &mut Context<'_>) -> Result<Report, Error> {
        let script = context.scripts[0];
        self.order_for(script, order, context)
    }

    /// Sends an order and answers questions until it is done.
    fn order_for(
        &mut self,
        script: &Script,
        order: &Order,
        context: &mut Context<'_>,
    ) -> Result<Report, Error> {
        let mut sent = self.channel.send(order);
        loop {
            let received = sent.and_then(|()| self.channel.receive::<Report>());
            let question = match received {
                Ok(Some(Report::Ask(question))) => question,
                Ok(Some(Report::Presume(question))) => {
                    sent = context.presume(&question, &self.channel);
                    continue;
                }
                Ok(Some(report)) => {
                    if context.is_void
                        && let Err(error) = self.channel.wait_at_most(None)
                    {
                        self.broken.get_or_insert(error.to_string());
                    }
                    return Ok(report);
                }
                Ok(None) => return Err(self.lost(&script.name, "it ended")),
                Err(error) => return Err(self.lost(&script.name, &error.to_string())),
            };
            sent = self.channel.send(&context.reply(question));
        }
    }

    /// What the owner of a script hears whose process is gone.
    fn lost(&mut self, name: &Arc<str>, why: &str) -> Error {
        self.broken.get_or_insert_with(|| why.to_owned());
        if self.process.was_killed.load(Ordering::Relaxed) {
            return Error::Timeout { name: Arc::clone(name) };
        }
        self.process.kill();
        let status = self.process.child.lock().wait();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Error::Bug { name: Arc::clone(name), what: format!("its process failed ({why}, {status})") }
    }

    fn mistaken(&mut self, script: &Script) -> Error {
        self.lost(&script.name, "it answered another question")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mut child = self.process.child.lock();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What failed after it was told to stop failed because of that: what it asked for then was refused.
fn judged<T>(result: Result<T, Error>, stop: &Stop, script: &Script) -> Result<T, Error> {
    result.map_err(
        |error| {
            if stop.is_set() { Error::Timeout { name: Arc::clone(&script.name) } } else { error }
        },
    )
}

fn first_name(functions: &[Script]) -> &Arc<str> {
    static NONE: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| "".into());
    functions.first().map_or(&NONE, |function| &function.name)
}

fn named(script: &Script) -> Named {
    Named { key: script.key.clone(), name: Arc::clone(&script.name) }
}

fn setting(deadline: &Deadline, env: &Env) -> Setting {
    Setting { time: deadline.end.saturating_duration_since(Instant::now()), seed: env.random_u64() }
}

/// What questions are answered from.
struct Context<'a> {
    host: Option<&'a mut dyn Host>,
    scripts: &'a [&'a Script],
    env: &'a Env,
    stop: &'a Stop,
    /// Whether a write was refused that the script took for done. It has to end, and its result counts for nothing.
    is_void: bool,
}

impl Context<'_> {
    fn reply(&mut self, question: Question) -> Reply {
        let result = self.answer(question);
        let accepts = self.host.as_mut().is_some_and(|host| host.accepts());
        Reply { accepts, result }
    }

    /// Does a write that the script takes for done.
    fn presume(&mut self, question: &Question, channel: &Channel) -> io::Result<()> {
        if self.is_void || self.do_unseen(question).is_ok() {
            return Ok(());
        }
        self.is_void = true;
        // It may be in a loop that a script without error would never be in.
        channel.wait_at_most(Some(VOID_TIME))
    }

    fn do_unseen(&mut self, question: &Question) -> Result<(), HostError> {
        let Some(host) = self.host.as_mut().filter(|_| !self.stop.is_set()) else {
            return Err(HostError::fatal(408, "The script has been ended."));
        };
        match question {
            Question::Create { document, index } => {
                host.write_unseen(UnseenWrite::Create { document, index: *index })
            }
            Question::Upsert { document, etag, index } => {
                host.write_unseen(UnseenWrite::Upsert { document, etag: etag.as_deref(), index: *index })
            }
            Question::Replace { link, document, etag, index } => {
                let (link, etag) = (of(link), etag.as_deref());
                host.write_unseen(UnseenWrite::Replace { link, document, etag, index: *index })
            }
            Question::Delete { link, etag } => {
                host.write_unseen(UnseenWrite::Delete { link: of(link), etag: etag.as_deref() })
            }
            _ => Err(HostError::fatal(500, "That is no write.")),
        }
    }

    fn answer(&mut self, question: Question) -> Result<Found, HostError> {
        // Nobody waits for it any more.
        if self.stop.is_set() || self.is_void {
            return Err(HostError::fatal(408, "The script has been ended."));
        }
        match question {
            Question::Time => return Ok(Found::Time(self.env.now_micros())),
            Question::Source { function } => {
                let script = self.scripts.get(function as usize);
                return Ok(Found::Text(script.map(|script| script.source.to_string()).unwrap_or_default()));
            }
            _ => {}
        }
        let Some(host) = self.host.as_mut() else {
            return Err(HostError::fatal(400, "There are no documents here."));
        };
        ask(&mut **host, question)
    }
}

fn ask(host: &mut dyn Host, question: Question) -> Result<Found, HostError> {
    let written = |Written { document, created }| Found::Written { document, created };
    Ok(match question {
        Question::Create { document, index } => written(host.create(&document, index)?),
        Question::Upsert { document, etag, index } => {
            written(host.upsert(&document, etag.as_deref(), index)?)
        }
        Question::Replace { link, document, etag, index } => {
            written(host.replace(of(&link), &document, etag.as_deref(), index)?)
        }
        Question::Delete { link, etag } => {
            host.delete(of(&link), etag.as_deref())?;
            Found::Deleted
        }
        Question::Read { link, if_none_match } => match host.read(of(&link), if_none_match.as_deref())? {
            Read::Document(document) => Found::Document(document),
            Read::NotModified => Found::NotModified,
        },
        Question::ReadFeed { paging } => feed(host.read_feed(part(&paging))?),
        Question::Query { text, parameters, enable_scan, paging } => {
            let query = Query { text: &text, parameters: parameters.as_deref(), enable_scan };
            feed(host.query(query, part(&paging))?)
        }
        Question::Spatial { function, first, second } => Found::Text(host.spatial(match function {
            0 => Spatial::Distance(&first, &second),
            1 => Spatial::Intersects(&first, &second),
            2 => Spatial::Within(&first, &second),
            3 => Spatial::IsValid(&first),
            _ => Spatial::IsValidDetailed(&first),
        })?),
        Question::Source { .. } | Question::Time => {
            return Err(HostError::fatal(500, "That is not the host's to answer."));
        }
    })
}

fn feed(feed: crate::Feed) -> Found {
    Found::Feed { rows: List(feed.rows), continuation: feed.continuation }
}

fn of(link: &Link) -> DocumentLink<'_> {
    if link.is_rid { DocumentLink::Rid(&link.id) } else { DocumentLink::Id(&link.id) }
}

fn part(paging: &Page) -> Paging<'_> {
    Paging { row_count_max: paging.row_count_max, continuation: paging.continuation.as_deref() }
}
