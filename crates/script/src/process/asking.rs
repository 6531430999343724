//! The script process's side of its questions: a host and a clock that ask the server.

use super::channel::Channel;
use super::encoding::List;
use super::messages::{
    Guessed, HostReply, HostResult, LinkMessage, PageRequest, ProcessOrder, ProcessReport, Question,
};
use crate::{
    DocumentLink, Host, HostError, IndexAction, Paging, Read, RowPage, ScriptQuery, Spatial, UnseenWrite,
    Written,
};
use astrarium_env::{Clock, Env, Random};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a script may send in one call; far more than any document may have.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// The way to the server. A process without server has nothing left to do.
#[derive(Clone)]
pub(super) struct Server(Arc<Mutex<ServerEnd>>);

struct ServerEnd {
    channel: Channel,
    /// Orders that came before the answer to a question.
    ahead: VecDeque<ProcessOrder>,
}

impl ServerEnd {
    fn receive(&mut self) -> ProcessOrder {
        match self.channel.receive() {
            Ok(Some(message)) => message,
            Ok(None) | Err(_) => std::process::exit(0),
        }
    }
}

impl Server {
    pub(super) fn new(channel: Channel) -> Server {
        Server(Arc::new(Mutex::new(ServerEnd { channel, ahead: VecDeque::new() })))
    }

    /// Waits for the next order.
    pub(super) fn next_order(&self) -> ProcessOrder {
        let mut end = self.0.lock();
        end.ahead.pop_front().unwrap_or_else(|| end.receive())
    }

    pub(super) fn report(&self, report: &ProcessReport) {
        if self.0.lock().channel.send(report).is_err() {
            std::process::exit(0);
        }
    }

    /// Has a report sent with the next one.
    fn put_off(&self, report: &ProcessReport) {
        if self.0.lock().channel.put_off(report).is_err() {
            std::process::exit(0);
        }
    }

    /// Sends what was put off.
    fn flush(&self) {
        if self.0.lock().channel.flush().is_err() {
            std::process::exit(0);
        }
    }

    pub(super) fn ask(&self, question: Question) -> HostReply {
        self.report(&ProcessReport::Ask(question));
        let mut end = self.0.lock();
        loop {
            match end.receive() {
                ProcessOrder::Reply(reply) => return reply,
                order => end.ahead.push_back(order),
            }
        }
    }

    /// Clock and randomness of a run: the server's time, asked for when a script wants it, and numbers from its seed.
    pub(super) fn env(&self, seed: u64) -> Env {
        Env::new(Box::new(ServerClock(self.clone())), Random::from_seed(seed))
    }
}

struct ServerClock(Server);

impl Clock for ServerClock {
    fn now_micros(&self) -> u64 {
        match self.0.ask(Question::Time).result {
            Ok(HostResult::Time(micros)) => micros,
            _ => 0,
        }
    }
}

/// How far a script may be ahead of the server: then it waits for a write, and hears whether more is accepted.
const AHEAD_COUNT_MAX: usize = 32;
const AHEAD_BYTES_MAX: usize = 128 << 10;

/// The transaction, which the server has.
pub(super) struct AskingHost {
    server: Server,
    accepts: bool,
    /// Whether writes may be sent ahead, how many were since the server last answered, and their size.
    ahead: bool,
    ahead_count: usize,
    ahead_bytes: usize,
    /// What the server has sent for the first question.
    foreseen: Option<Guessed>,
}

impl AskingHost {
    pub(super) fn new(server: Server, accepts: bool, ahead: bool, foreseen: Option<Guessed>) -> AskingHost {
        AskingHost { server, accepts, ahead, ahead_count: 0, ahead_bytes: 0, foreseen }
    }

    fn ask(&mut self, question: Question) -> Result<HostResult, HostError> {
        self.foreseen = None;
        (self.ahead_count, self.ahead_bytes) = (0, 0);
        let reply = self.server.ask(question);
        self.accepts = reply.accepts;
        reply.result
    }

    /// Goes on as if a write had succeeded. It is sent with the next message that somebody waits for.
    fn presume(&mut self, question: Question, bytes: usize) -> Result<(), HostError> {
        self.foreseen = None;
        self.ahead_count += 1;
        self.ahead_bytes += bytes;
        if !self.ahead || self.ahead_count > AHEAD_COUNT_MAX || self.ahead_bytes > AHEAD_BYTES_MAX {
            return self.ask(question).map(drop);
        }
        self.server.put_off(&ProcessReport::Presume(question));
        Ok(())
    }

    fn written(&mut self, question: Question) -> Result<Written, HostError> {
        match self.ask(question)? {
            HostResult::Written { document, created } => Ok(Written { document, created }),
            _ => Err(mistaken()),
        }
    }

    fn feed(&mut self, question: Question) -> Result<RowPage, HostError> {
        match self.ask(question)? {
            HostResult::Feed { rows: List(rows), continuation } => Ok(RowPage { rows, continuation }),
            _ => Err(mistaken()),
        }
    }
}

impl Host for AskingHost {
    fn create(&mut self, document: &str, index: IndexAction) -> Result<Written, HostError> {
        let document = bounded(document)?;
        self.written(Question::Create { document, index })
    }

    fn upsert(
        &mut self,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        let document = bounded(document)?;
        self.written(Question::Upsert { document, etag: owned(etag), index })
    }

    fn replace(
        &mut self,
        link: DocumentLink<'_>,
        document: &str,
        etag: Option<&str>,
        index: IndexAction,
    ) -> Result<Written, HostError> {
        let (link, document) = (self::link(link)?, bounded(document)?);
        self.written(Question::Replace { link, document, etag: owned(etag), index })
    }

    fn delete(&mut self, link: DocumentLink<'_>, etag: Option<&str>) -> Result<(), HostError> {
        match self.ask(Question::Delete { link: self::link(link)?, etag: owned(etag) })? {
            HostResult::Deleted => Ok(()),
            _ => Err(mistaken()),
        }
    }

    fn write_unseen(&mut self, write: UnseenWrite<'_>) -> Result<(), HostError> {
        let (question, bytes) = match write {
            UnseenWrite::Create { document, index } => {
                (Question::Create { document: bounded(document)?, index }, document.len())
            }
            UnseenWrite::Upsert { document, etag, index } => {
                let etag = owned(etag);
                (Question::Upsert { document: bounded(document)?, etag, index }, document.len())
            }
            UnseenWrite::Replace { link, document, etag, index } => {
                let (link, etag) = (self::link(link)?, owned(etag));
                (Question::Replace { link, document: bounded(document)?, etag, index }, document.len())
            }
            UnseenWrite::Delete { link, etag } => {
                (Question::Delete { link: self::link(link)?, etag: owned(etag) }, 0)
            }
        };
        self.presume(question, bytes)
    }

    fn read(&mut self, link: DocumentLink<'_>, if_none_match: Option<&str>) -> Result<Read, HostError> {
        if let (DocumentLink::Id(id), None) = (link, if_none_match)
            && let Some(foreseen) = self.foreseen.take_if(|foreseen| foreseen.id == id)
        {
            let link = self::link(link)?;
            self.server.put_off(&ProcessReport::Presume(Question::Read { link, if_none_match: None }));
            return Ok(Read::Document(foreseen.document));
        }
        match self.ask(Question::Read { link: self::link(link)?, if_none_match: owned(if_none_match) })? {
            HostResult::Document(document) => Ok(Read::Document(document)),
            HostResult::NotModified => Ok(Read::NotModified),
            _ => Err(mistaken()),
        }
    }

    fn read_feed(&mut self, paging: Paging<'_>) -> Result<RowPage, HostError> {
        let paging = page(paging)?;
        self.feed(Question::ReadFeed { paging })
    }

    fn query(&mut self, query: ScriptQuery<'_>, paging: Paging<'_>) -> Result<RowPage, HostError> {
        let (text, paging) = (bounded(query.text)?, page(paging)?);
        let parameters = query.parameters.map(bounded).transpose()?;
        self.feed(Question::Query { text, parameters, enable_scan: query.enable_scan, paging })
    }

    fn spatial(&mut self, function: Spatial<'_>) -> Result<String, HostError> {
        let (function, first, second) = match function {
            Spatial::Distance(first, second) => (0, first, second),
            Spatial::Intersects(first, second) => (1, first, second),
            Spatial::Within(first, second) => (2, first, second),
            Spatial::IsValid(shape) => (3, shape, ""),
            Spatial::IsValidDetailed(shape) => (4, shape, ""),
        };
        let (first, second) = (bounded(first)?, bounded(second)?);
        match self.ask(Question::Spatial { function, first, second })? {
            HostResult::Text(text) => Ok(text),
            _ => Err(mistaken()),
        }
    }

    fn catch_up(&mut self) {
        // A script that is in a loop because it took a write for done is ended only if the server knows of the write.
        if self.ahead_count > 0 {
            self.server.flush();
        }
    }

    fn accepts(&mut self) -> bool {
        self.accepts
    }
}

fn link(link: DocumentLink<'_>) -> Result<LinkMessage, HostError> {
    let (is_rid, id) = match link {
        DocumentLink::Rid(id) => (true, id),
        DocumentLink::Id(id) => (false, id),
    };
    Ok(LinkMessage { is_rid, id: bounded(id)? })
}

fn page(paging: Paging<'_>) -> Result<PageRequest, HostError> {
    let continuation = paging.continuation.map(bounded).transpose()?;
    Ok(PageRequest { row_count_max: paging.row_count_max, continuation })
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

fn bounded(text: &str) -> Result<String, HostError> {
    if text.len() <= DOCUMENT_BYTES_MAX {
        return Ok(text.to_owned());
    }
    Err(HostError::new(413, "Request size is too large"))
}

fn mistaken() -> HostError {
    HostError::fatal(500, "The server gave an answer to another question.")
}
