//! A script process as the server has it: started, given orders, answered, killed.
//!
//! The thread of the pool that owns it does all but the last, which `pool::watch` does from outside by way of
//! [`Process`]. A process that was killed, or went wrong in any way, is not used again.

use super::channel::Channel;
use super::encoding::List;
use super::messages::{
    Guessed, HostReply, HostResult, LinkMessage, NamedScript, PageRequest, ProcessOrder, ProcessReport,
    Question, RunSetting, Task,
};
use crate::deadline::{Deadline, Stop};
use crate::sandbox::Purpose;
use crate::speculation::Speculation;
use crate::{
    Call, DocumentLink, Error, Host, HostError, Paging, Read, Script, ScriptAnswer, ScriptFailure,
    ScriptLimits, ScriptQuery, ScriptWork, Spatial, UnseenWrite, Written,
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

/// How much is sent ahead: so little that sending it never waits for the process, which may be waiting to send.
const ANNOUNCED_BYTES_MAX: usize = 32 << 10;

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

/// How a run began: with which question.
#[derive(Debug, Default)]
pub(crate) enum Opening {
    /// None was asked.
    #[default]
    Nothing,
    /// By reading the document of this id.
    Read(String),
    /// By reading what was foreseen.
    Guessed,
    Other,
}

/// A procedure or trigger to be run.
pub(crate) struct ProcessRun<'a> {
    pub(crate) script: &'a Script,
    pub(crate) call: &'a Call,
    pub(crate) time: Duration,
    pub(crate) speculation: &'a Speculation,
}

/// A process, and the way to talk to it.
pub(crate) struct Child {
    channel: Channel,
    process: Arc<Process>,
    /// How many runs it knows of that nobody has waited for yet.
    announced: usize,
    /// Why it cannot be used any more.
    broken: Option<String>,
}

impl Child {
    /// Starts a process.
    pub(crate) fn start(
        command: &WorkerCommand,
        limits: &ScriptLimits,
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
        let (channel, process) = (Channel::new(own), Arc::new(process));
        let mut child = Child { channel, process, announced: 0, broken: None };
        let limits = limits.clone();
        let server = std::process::id();
        child.channel.send(&ProcessOrder::Begin {
            server,
            limits,
            purpose,
            memory_image,
            cache_bytes_max,
        })?;
        // What it takes to start is no script's time.
        child.channel.wait_at_most(Some(START_TIME))?;
        let Some(ProcessReport::Ready) = child.channel.receive()? else {
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

    /// Whether it was told of runs that nobody has waited for.
    pub(crate) fn is_ahead(&self) -> bool {
        self.announced > 0
    }

    /// Has the process run a procedure or trigger after those that it knows of. It hears of it with the next run that is
    /// waited for. Returns whether that is possible without waiting for the process.
    pub(crate) fn announce(&mut self, run: &ProcessRun<'_>, host: &mut impl Host) -> bool {
        let order = run_order(run, host);
        let is_announced = matches!(self.channel.put_off_within(ANNOUNCED_BYTES_MAX, &order), Ok(true));
        self.announced += usize::from(is_announced);
        is_announced
    }

    /// Runs a procedure or trigger: the first of those that were announced, if any were.
    pub(crate) fn run<H: Host>(
        &mut self,
        stop: &Stop,
        deadline: &Deadline,
        run: &ProcessRun<'_>,
        mut host: H,
    ) -> Result<ScriptAnswer<H>, Box<ScriptFailure<H>>> {
        let (script, call) = (run.script, run.call);
        host.begin(deadline.end.into());
        let order = (self.announced == 0).then(|| run_order(run, &mut host));
        self.announced = self.announced.saturating_sub(1);
        let mut context =
            QuestionContext::new(Some(&mut host), std::slice::from_ref(&script), &call.env, stop);
        let result = self.order_for(script, order.as_ref(), &mut context);
        let (is_void, opening) = (context.is_void, context.opening);
        if let ScriptWork::Procedure { parameters } = &call.work
            && call.ahead
        {
            run.speculation.note(&script.key.id, &opening, parameters);
        }
        let (result, log) = match result {
            _ if is_void => {
                (judged(Err(Error::Void { name: Arc::clone(&script.name) }), stop, script), String::new())
            }
            Ok(ProcessReport::Ran { result, log }) => (judged(result, stop, script), log),
            Ok(_) => (Err(self.mistaken(script)), String::new()),
            Err(error) => (Err(error), String::new()),
        };
        match result {
            Ok(body) => Ok(ScriptAnswer { body, log, host }),
            Err(error) => Err(Box::new(ScriptFailure { error, log, host: Some(host) })),
        }
    }

    /// Compiles a source.
    pub(crate) fn check(&mut self, stop: &Stop, script: &Script) -> Result<(), Error> {
        let env = Env::system();
        let mut context = QuestionContext::new(None, std::slice::from_ref(&script), &env, stop);
        match self.order_for(script, Some(&ProcessOrder::Check { script: named(script) }), &mut context)? {
            ProcessReport::Checked { result } => judged(result, stop, script),
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
        let order = ProcessOrder::OpenPage { functions: functions_named, setting: setting(deadline, env) };
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
        let order = ProcessOrder::Call { function: function as u32, arguments: List(arguments.to_vec()) };
        let script = &functions[function];
        let mut context = QuestionContext::new(None, &scripts, env, stop);
        match self.order_for(script, Some(&order), &mut context)? {
            ProcessReport::Called { result } => judged(result, stop, script),
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
        let order = ProcessOrder::CallMany { calls: List(calls.collect()) };
        let mut context = QuestionContext::new(None, &scripts, env, stop);
        match self.order_for(script, Some(&order), &mut context) {
            Ok(ProcessReport::CalledMany { results: List(results) }) => results,
            Ok(_) => vec![Err(self.mistaken(script))],
            // Whoever calls next hears of it.
            Err(_) => Vec::new(),
        }
    }

    /// Ends the page.
    pub(crate) fn close_page(&mut self) {
        if let Err(error) = self.channel.send(&ProcessOrder::ClosePage) {
            self.broken.get_or_insert(error.to_string());
        }
    }

    /// Sends an order, unless it was announced, and answers questions until it is done.
    fn order_for(
        &mut self,
        script: &Script,
        order: Option<&ProcessOrder>,
        context: &mut QuestionContext<'_>,
    ) -> Result<ProcessReport, Error> {
        let mut sent = match order {
            Some(order) => self.channel.send(order),
            None => self.channel.flush(),
        };
        loop {
            let received = sent.and_then(|()| self.channel.receive::<ProcessReport>());
            let question = match received {
                Ok(Some(ProcessReport::Ask(question))) => question,
                Ok(Some(ProcessReport::Presume(question))) => {
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
            sent = self.channel.send(&ProcessOrder::Reply(context.reply(question)));
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

fn named(script: &Script) -> NamedScript {
    NamedScript { key: script.key.clone(), name: Arc::clone(&script.name) }
}

fn setting(deadline: &Deadline, env: &Env) -> RunSetting {
    RunSetting { time: deadline.end.saturating_duration_since(Instant::now()), seed: env.random_u64() }
}

/// The order to run a procedure or trigger, with the document that a procedure is likely to read first.
fn run_order(run: &ProcessRun<'_>, host: &mut impl Host) -> ProcessOrder {
    let ProcessRun { script, call, time, speculation } = *run;
    let likely = match &call.work {
        ScriptWork::Procedure { parameters } if call.ahead => speculation.guess(&script.key.id, parameters),
        _ => None,
    };
    let foreseen = likely.and_then(|id| {
        let document = host.foresee(DocumentLink::Id(&id))?;
        Some(Guessed { id, document })
    });
    let task = Task {
        work: call.work.clone(),
        container: (*call.container).clone(),
        request_values: List(call.request_values.clone()),
        log: call.log,
        accepts: host.accepts(),
        ahead: call.ahead,
        foreseen,
    };
    ProcessOrder::Run {
        script: named(script),
        setting: RunSetting { time, seed: call.env.random_u64() },
        task: Box::new(task),
    }
}

/// What questions are answered from.
struct QuestionContext<'a> {
    host: Option<&'a mut dyn Host>,
    scripts: &'a [&'a Script],
    env: &'a Env,
    stop: &'a Stop,
    /// Whether a write was refused that the script took for done. It has to end, and its result counts for nothing.
    is_void: bool,
    opening: Opening,
}

impl<'a> QuestionContext<'a> {
    fn new(
        host: Option<&'a mut dyn Host>,
        scripts: &'a [&'a Script],
        env: &'a Env,
        stop: &'a Stop,
    ) -> QuestionContext<'a> {
        QuestionContext { host, scripts, env, stop, is_void: false, opening: Opening::Nothing }
    }

    fn reply(&mut self, question: Question) -> HostReply {
        self.note(&question, false);
        let result = self.answer(question);
        let accepts = self.host.as_mut().is_some_and(|host| host.accepts());
        HostReply { accepts, result }
    }

    /// Does a write that the script takes for done.
    fn presume(&mut self, question: &Question, channel: &Channel) -> io::Result<()> {
        self.note(question, true);
        if self.is_void || self.do_unseen(question).is_ok() {
            return Ok(());
        }
        self.is_void = true;
        // It may be in a loop that a script without error would never be in.
        channel.wait_at_most(Some(VOID_TIME))
    }

    fn note(&mut self, question: &Question, is_presumed: bool) {
        if !matches!(self.opening, Opening::Nothing) {
            return;
        }
        self.opening = match question {
            Question::Time | Question::Source { .. } => Opening::Nothing,
            Question::Read { .. } if is_presumed => Opening::Guessed,
            Question::Read { link, if_none_match: None } if !link.is_rid => Opening::Read(link.id.clone()),
            _ => Opening::Other,
        };
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
            Question::Read { link, if_none_match: None } => host.read_unseen(of(link)),
            _ => Err(HostError::fatal(500, "That can be neither a write nor what was foreseen.")),
        }
    }

    fn answer(&mut self, question: Question) -> Result<HostResult, HostError> {
        // Nobody waits for it any more.
        if self.stop.is_set() || self.is_void {
            return Err(HostError::fatal(408, "The script has been ended."));
        }
        match question {
            Question::Time => return Ok(HostResult::Time(self.env.now_micros())),
            Question::Source { function } => {
                let script = self.scripts.get(function as usize);
                return Ok(HostResult::Text(
                    script.map(|script| script.source.to_string()).unwrap_or_default(),
                ));
            }
            _ => {}
        }
        let Some(host) = self.host.as_mut() else {
            return Err(HostError::fatal(400, "There are no documents here."));
        };
        ask(&mut **host, question)
    }
}

fn ask(host: &mut dyn Host, question: Question) -> Result<HostResult, HostError> {
    let written = |Written { document, created }| HostResult::Written { document, created };
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
            HostResult::Deleted
        }
        Question::Read { link, if_none_match } => match host.read(of(&link), if_none_match.as_deref())? {
            Read::Document(document) => HostResult::Document(document),
            Read::NotModified => HostResult::NotModified,
        },
        Question::ReadFeed { paging } => feed(host.read_feed(part(&paging))?),
        Question::Query { text, parameters, enable_scan, paging } => {
            let query = ScriptQuery { text: &text, parameters: parameters.as_deref(), enable_scan };
            feed(host.query(query, part(&paging))?)
        }
        Question::Spatial { function, first, second } => HostResult::Text(host.spatial(match function {
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

fn feed(feed: crate::RowPage) -> HostResult {
    HostResult::Feed { rows: List(feed.rows), continuation: feed.continuation }
}

fn of(link: &LinkMessage) -> DocumentLink<'_> {
    if link.is_rid { DocumentLink::Rid(&link.id) } else { DocumentLink::Id(&link.id) }
}

fn part(paging: &PageRequest) -> Paging<'_> {
    Paging { row_count_max: paging.row_count_max, continuation: paging.continuation.as_deref() }
}
