//! What the server and a script process say to each other.
//!
//! The server sends a [`ProcessOrder`]; the process works on it and sends [`ProcessReport`]s: questions, each of which waits for
//! its [`HostReply`], and at last the result. It works on one order at a time; the server may send some more ahead.

use super::encoding::{List, MessagePart, structure, variants};
use crate::sandbox::Purpose;
use crate::{Error, HostError, IndexAction, ScriptContainer, ScriptKey, ScriptLimits, ScriptWork};
use astrarium_value::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a process is to do.
#[derive(Debug)]
pub(super) enum ProcessOrder {
    /// The first one: how to work from here on.
    Begin { server: u32, limits: ScriptLimits, purpose: Purpose, memory_image: bool, cache_bytes_max: usize },
    /// Run a procedure or trigger.
    Run { script: NamedScript, setting: RunSetting, task: Box<Task> },
    /// Compile a source.
    Check { script: NamedScript },
    /// Make ready for calls of functions. Has no result of its own.
    OpenPage { functions: List<NamedScript>, setting: RunSetting },
    /// Call a function of the page, by its place in the list.
    Call { function: u32, arguments: List<Value> },
    /// Make calls that will be wanted, as many as can be made soon.
    CallMany { calls: List<(u32, List<Value>)> },
    /// Forget the functions. Has no result.
    ClosePage,
    /// The answer to the question that the process waits with. Orders that were sent ahead may come before it.
    Reply(HostReply),
}

/// A script without its source, which is asked for where it is not known.
#[derive(Debug)]
pub(super) struct NamedScript {
    pub(super) key: ScriptKey,
    pub(super) name: Arc<str>,
}

/// What every run has.
#[derive(Debug)]
pub(super) struct RunSetting {
    pub(super) time: Duration,
    /// For random numbers.
    pub(super) seed: u64,
}

/// What a procedure or trigger is given.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) work: ScriptWork,
    pub(super) container: ScriptContainer,
    pub(super) request_values: List<(String, String)>,
    pub(super) log: bool,
    /// Whether the host takes on work.
    pub(super) accepts: bool,
    /// Whether writes may be sent ahead.
    pub(super) ahead: bool,
    /// What the script is likely to read first.
    pub(super) foreseen: Option<Guessed>,
}

/// A document by its id, as the script would see it before its first write.
#[derive(Debug)]
pub(super) struct Guessed {
    pub(super) id: String,
    pub(super) document: Vec<u8>,
}

/// What a process sends.
#[derive(Debug)]
pub(super) enum ProcessReport {
    /// It has begun, and waits for orders.
    Ready,
    /// It needs something to go on.
    Ask(Question),
    /// It goes on as if a write had succeeded, or has read what was foreseen.
    Presume(Question),
    /// A procedure or trigger is over: its body, and its log.
    Ran { result: Result<Option<String>, Error>, log: String },
    /// A source was compiled.
    Checked { result: Result<(), Error> },
    /// A function was called.
    Called { result: Result<Value, Error> },
    /// Functions were called: the results of the first calls, not necessarily of all.
    CalledMany { results: List<Result<Value, Error>> },
}

/// What only the server has.
#[derive(Debug)]
pub(super) enum Question {
    /// The source of the script, or of a function of the page.
    Source {
        function: u32,
    },
    /// Microseconds since 1970.
    Time,
    Create {
        document: String,
        index: IndexAction,
    },
    Upsert {
        document: String,
        etag: Option<String>,
        index: IndexAction,
    },
    Replace {
        link: LinkMessage,
        document: String,
        etag: Option<String>,
        index: IndexAction,
    },
    Delete {
        link: LinkMessage,
        etag: Option<String>,
    },
    Read {
        link: LinkMessage,
        if_none_match: Option<String>,
    },
    ReadFeed {
        paging: PageRequest,
    },
    Query {
        text: String,
        parameters: Option<String>,
        enable_scan: bool,
        paging: PageRequest,
    },
    /// One of the functions of `__.spatial`, by its place in [`crate::Spatial`].
    Spatial {
        function: u8,
        first: String,
        second: String,
    },
}

/// Which document.
#[derive(Debug)]
pub(super) struct LinkMessage {
    pub(super) is_rid: bool,
    pub(super) id: String,
}

/// Which part of a result.
#[derive(Debug)]
pub(super) struct PageRequest {
    pub(super) row_count_max: Option<u32>,
    pub(super) continuation: Option<String>,
}

/// The answer to a question.
#[derive(Debug)]
pub(super) struct HostReply {
    /// Whether the host takes on more work.
    pub(super) accepts: bool,
    pub(super) result: Result<HostResult, HostError>,
}

/// What was found or done.
#[derive(Debug)]
pub(super) enum HostResult {
    Written { document: Vec<u8>, created: bool },
    Deleted,
    Document(Vec<u8>),
    NotModified,
    Feed { rows: List<Vec<u8>>, continuation: Option<String> },
    Text(String),
    Time(u64),
}

structure!(NamedScript { key, name });
structure!(RunSetting { time, seed });
structure!(Task { work, container, request_values, log, accepts, ahead, foreseen });
structure!(Guessed { id, document });
structure!(LinkMessage { is_rid, id });
structure!(PageRequest { row_count_max, continuation });
structure!(HostReply { accepts, result });
variants!(Purpose { 0 = Procedure, 1 = Function });
variants!(ProcessOrder {
    0 = Begin { server, limits, purpose, memory_image, cache_bytes_max },
    1 = Run { script, setting, task },
    2 = Check { script },
    3 = OpenPage { functions, setting },
    4 = Call { function, arguments },
    5 = ClosePage,
    6 = CallMany { calls },
    7 = Reply(reply),
});
variants!(ProcessReport {
    0 = Ask(question),
    1 = Ran { result, log },
    2 = Checked { result },
    3 = Called { result },
    4 = Ready,
    5 = CalledMany { results },
    6 = Presume(question),
});
variants!(Question {
    0 = Source { function },
    1 = Time,
    2 = Create { document, index },
    3 = Upsert { document, etag, index },
    4 = Replace { link, document, etag, index },
    5 = Delete { link, etag },
    6 = Read { link, if_none_match },
    7 = ReadFeed { paging },
    8 = Query { text, parameters, enable_scan, paging },
    9 = Spatial { function, first, second },
});
variants!(HostResult {
    0 = Written { document, created },
    1 = Deleted,
    2 = Document(document),
    3 = NotModified,
    4 = Feed { rows, continuation },
    5 = Text(text),
    6 = Time(micros),
});
