//! Sending batches to the server that owns their shard, so that they meet in one commit group instead of at one row.
//!
//! In: batches for shards that another server owns; connections of other servers. Out: outcomes, as if committed here.
//! One connection to each peer, kept open, carries many requests at once: a frame is a length, the number of the request, its bytes.
//! Invariants
//! - One hop: whoever is sent a batch commits it, whether he believes to own the shard or not.
//! - Nobody waits for a peer that does not answer: while one owes an answer for a second, batches are committed here instead.
//! - An owner that is cut off from the store costs the others a way to him: what he could not do is done here.
//! - A batch whose answer did not come has an unknown outcome, and is not sent or committed again.
//! - Servers of different protocols send each other nothing: each commits its own batches meanwhile.
//! - Both sides know each other by certificates that stand in the store (`identity`); a frame has a bound, and so has what a peer may
//!   have under way.

pub(crate) mod codec;
mod identity;

pub(crate) use identity::IdentityPlace;

use crate::PostgresCore;
use crate::error::is_out_of_reach;
use crate::members::AccountServer;
use astrarium_kv::contract;
use astrarium_kv::{CommitVersion, Error, WriteBatch};
use bytes::Bytes;
use codec::PeerRequest;
use identity::{PEER_NAME, PeerIdentity};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long connecting to a peer may take.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// After which time a peer that owes an answer is not sent anything more.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// After which time the outcome of what was sent is unknown.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(4);

/// How long a peer that could not be reached is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of a frame at most: a batch has 16 MiB of values at most, and some keys.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Requests of one peer that are under way at most, what they take in KiB together with those of all others, and connections of peers.
const UNDER_WAY_MAX: usize = 4096;
const UNDER_WAY_KIB_MAX: usize = 256 << 10;
const CONNECTIONS_MAX: usize = 64;

/// How soon a peer that is gone without a word is noticed: his connections would otherwise stay for ever.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);

/// A buffer that has become larger than this for once is not kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Takes what other servers tell.
pub type NoticeHandler = Arc<dyn Fn(Bytes) + Send + Sync>;

/// How often strangers make a server look who is alive, at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a server that joins waits until another one knows it.
const INTRODUCTION_TIME_MAX: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) identity: IdentityPlace,
    connections: Mutex<BTreeMap<u64, PeerState>>,
    handler: Mutex<Option<NoticeHandler>>,
    /// When a stranger last made this server look who is there.
    looked: Mutex<Option<Instant>>,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

enum PeerState {
    Open(Arc<PeerConnection>),
    /// It could not be reached at that time.
    Unreachable(Instant),
}

type Frame = (u64, Vec<u8>);

/// What servers say to each other, in what form (`codec`): raised with every change of it. Servers of different versions may run side by
/// side while they are replaced one by one; those that do not understand each other send each other nothing.
pub(crate) const PEER_PROTOCOL: u64 = 1;

/// What a server says first to whoever it has accepted: its protocol. In TLS 1.3 a client is done with its handshake before the server
/// has looked at its certificate, so what was sent before this might be thrown away.
const fn hello(protocol: u64) -> Frame {
    (protocol, Vec::new())
}

/// A connection to a peer.
struct PeerConnection {
    frames: mpsc::Sender<Frame>,
    awaited: Mutex<BTreeMap<u64, Awaited>>,
    next: AtomicU64,
    is_closed: AtomicBool,
}

/// Since when an answer is awaited, and by whom.
type Awaited = (Instant, oneshot::Sender<Vec<u8>>);

/// What became of a batch that was to be sent.
pub(crate) enum Forwarded {
    /// The owner has judged it.
    Done(Result<CommitVersion, Error>),
    /// It was not sent, or the owner cannot reach the store and has done nothing: it can be committed here.
    NotSent(Box<WriteBatch>),
}

impl PeerConnection {
    /// Whether the peer has owed an answer for so long that nothing more is sent.
    fn is_silent(&self) -> bool {
        // Numbers rise, so the first is the oldest.
        let awaited = self.awaited.lock();
        awaited.first_key_value().is_some_and(|(_, (since, _))| since.elapsed() > SILENCE_MAX)
    }

    /// Sends a request; nothing if it was not sent, otherwise where the answer will come.
    fn send(&self, request: Vec<u8>) -> Option<oneshot::Receiver<Vec<u8>>> {
        if self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.awaited.lock().insert(number, (Instant::now(), answer));
        if self.frames.try_send((number, request)).is_err() {
            self.awaited.lock().remove(&number);
            return None;
        }
        // Whoever closes it takes all that are awaited; one that came after that would wait for nobody.
        if self.is_closed.load(Ordering::SeqCst) {
            self.awaited.lock().remove(&number);
        }
        Some(receiver)
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.awaited.lock().clear();
    }
}

impl PostgresCore {
    /// Listens for other servers; tells where, and the certificate to publish.
    pub(crate) async fn listen(
        self: &Arc<PostgresCore>,
        address: SocketAddr,
    ) -> Result<(SocketAddr, Vec<u8>), Error> {
        let failed =
            |what: String| Error::Unavailable { reason: format!("listen for other servers: {what}") };
        let identity = Arc::new(PeerIdentity::make().map_err(failed)?);
        let config = identity.server_config(self).map_err(|error| failed(error.to_string()))?;
        let listener =
            TcpListener::bind(address).await.map_err(|error| failed(format!("{address}: {error}")))?;
        let bound = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        let certificate = identity.certificate.to_vec();
        self.peers.identity.set(identity);
        let (core, acceptor) = (Arc::clone(self), TlsAcceptor::from(config));
        self.runtime.spawn(async move {
            let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
            let memory = Arc::new(Semaphore::new(UNDER_WAY_KIB_MAX));
            while !core.is_closed() {
                let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (core, acceptor, memory) = (Arc::clone(&core), acceptor.clone(), Arc::clone(&memory));
                core.runtime.clone().spawn(async move {
                    set_up(&stream);
                    let shaken = tokio::time::timeout(CONNECT_TIMEOUT * 4, acceptor.accept(stream)).await;
                    match shaken {
                        Ok(Ok(stream)) => core.answer_peer(stream, memory).await,
                        // It may be a server that has just come.
                        Ok(Err(_)) => core.look_around().await,
                        Err(_) => {}
                    }
                    drop(permit);
                });
            }
        });
        Ok((bound, certificate))
    }

    /// Answers what one peer asks, until he closes the connection.
    async fn answer_peer(
        self: Arc<PostgresCore>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        memory: Arc<Semaphore>,
    ) {
        let (mut reader, writer) = tokio::io::split(stream);
        let (answers, frames) = mpsc::channel(UNDER_WAY_MAX);
        let writing = self.runtime.spawn(write_frames(writer, frames));
        if answers.send(hello(self.options.peer_protocol)).await.is_err() {
            return;
        }
        let under_way = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        while !self.is_closed() {
            let Ok((number, bytes)) = read_frame(&mut reader).await else { break };
            // Whoever waits here reads nothing more meanwhile, so that his peer waits too.
            let kib = (bytes.len() >> 10) as u32 + 1;
            let Ok(taken) = Arc::clone(&memory).acquire_many_owned(kib).await else { break };
            let Some(request) = codec::decode_request(Bytes::from(bytes)) else { break };
            let Ok(permit) = Arc::clone(&under_way).acquire_owned().await else { break };
            let (core, answers) = (Arc::clone(&self), answers.clone());
            self.runtime.spawn(async move {
                let outcome = core.answer_request(request).await;
                // A peer that is gone hears nothing, and takes the outcome for unknown.
                let _ = answers.send((number, codec::encode_outcome(&outcome))).await;
                drop((permit, taken));
            });
        }
        drop(answers);
        writing.abort();
    }

    async fn answer_request(self: &Arc<PostgresCore>, request: PeerRequest) -> Result<CommitVersion, Error> {
        match request {
            PeerRequest::Commit(batch) => {
                self.peers.received.fetch_add(1, Ordering::Relaxed);
                contract::validate(&batch)?;
                let (answer, receiver) = oneshot::channel();
                self.submit(*batch, answer)?;
                receiver.await.unwrap_or_else(|_| Err(crate::error::closed()))
            }
            PeerRequest::Notice(notice) => {
                let handler = self.peers.handler.lock().clone();
                if let Some(handler) = handler {
                    handler(notice);
                }
                Ok(CommitVersion(0))
            }
        }
    }

    /// Has the owner of a shard commit a batch.
    pub(crate) async fn forward(
        self: &Arc<PostgresCore>,
        owner: &AccountServer,
        batch: WriteBatch,
    ) -> Forwarded {
        let Some(peer) = self.peer(owner).await.filter(|peer| !peer.is_silent()) else {
            return Forwarded::NotSent(Box::new(batch));
        };
        let request = PeerRequest::Commit(Box::new(batch));
        let bytes = codec::encode_request(&request);
        // A longer one would end the connection, and with it all that is under way there.
        let sent = if bytes.len() <= FRAME_BYTES_MAX { peer.send(bytes) } else { None };
        let (receiver, batch) = match (sent, request) {
            (Some(receiver), PeerRequest::Commit(batch)) => (receiver, batch),
            (None, PeerRequest::Commit(batch)) => return Forwarded::NotSent(batch),
            (_, PeerRequest::Notice(_)) => return Forwarded::Done(Err(Error::Busy)),
        };
        self.peers.sent.fetch_add(1, Ordering::Relaxed);
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, receiver).await;
        let outcome = answer.ok().and_then(Result::ok).and_then(|bytes| codec::decode_outcome(&bytes));
        match outcome {
            Some(Err(error)) if is_out_of_reach(&error) => Forwarded::NotSent(batch),
            Some(outcome) => Forwarded::Done(outcome),
            None => {
                let reason = "the server that commits for the key range did not answer; whether the write happened is unknown";
                Forwarded::Done(Err(Error::Unavailable { reason: reason.to_owned() }))
            }
        }
    }

    /// Tells all other servers something, without waiting.
    pub(crate) async fn tell_peers(self: &Arc<PostgresCore>, notice: &Bytes) {
        for member in self.members.alive().iter().filter(|member| !member.is_here) {
            let Some(peer) = self.peer(member).await else { continue };
            if !peer.is_silent() {
                drop(peer.send(codec::encode_request(&PeerRequest::Notice(notice.clone()))));
            }
        }
    }

    pub(crate) fn hear_notices(&self, handler: NoticeHandler) {
        *self.peers.handler.lock() = Some(handler);
    }

    /// Looks who is alive before it is time to, some times a second at most.
    async fn look_around(self: &Arc<PostgresCore>) {
        {
            let mut looked = self.peers.looked.lock();
            if looked.is_some_and(|looked| looked.elapsed() < LOOK_INTERVAL) {
                return;
            }
            *looked = Some(Instant::now());
        }
        if self.beat_in_time().await.is_err() {
            tracing::debug!("the store does not tell who is alive");
        }
    }

    /// Makes itself known to the servers that are there: they look into the store when somebody knocks whom they do not know. From
    /// here on they have this one commit what it owns, and those that it leaves out because it is new stay the owners.
    pub(crate) async fn introduce(self: &Arc<PostgresCore>) {
        let introduce = async |member: &AccountServer| {
            // One that is not there at all is not waited for.
            if TcpStream::connect(&member.description.peer).await.is_err() {
                return;
            }
            while self.open_peer(member).await.is_none() {
                tokio::time::sleep(LOOK_INTERVAL / 4).await;
            }
        };
        let alive = self.members.alive();
        let others = alive.iter().filter(|member| !member.is_here && !member.description.peer.is_empty());
        for member in others {
            let _ = tokio::time::timeout(INTRODUCTION_TIME_MAX, introduce(member)).await;
        }
    }

    /// The connection to a peer, opened if need be; nothing if it cannot be reached.
    async fn peer(self: &Arc<PostgresCore>, member: &AccountServer) -> Option<Arc<PeerConnection>> {
        match self.peers.connections.lock().get(&member.id) {
            Some(PeerState::Open(peer)) if !peer.is_closed.load(Ordering::SeqCst) => {
                return Some(Arc::clone(peer));
            }
            Some(PeerState::Unreachable(since)) if since.elapsed() < RETRY_INTERVAL => return None,
            _ => {}
        }
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, self.open_peer(member)).await.ok().flatten();
        let mut connections = self.peers.connections.lock();
        connections
            .retain(|id, _| *id == member.id || self.members.alive().iter().any(|alive| alive.id == *id));
        let Some(peer) = opened else {
            connections.insert(member.id, PeerState::Unreachable(Instant::now()));
            return None;
        };
        // Somebody may have opened one meanwhile; both work, and the one that is not kept closes when its requests end.
        connections.insert(member.id, PeerState::Open(Arc::clone(&peer)));
        Some(peer)
    }

    async fn open_peer(self: &Arc<PostgresCore>, member: &AccountServer) -> Option<Arc<PeerConnection>> {
        let identity = self.peers.identity.get()?;
        let config = identity.client_config(&member.description.certificate).ok()?;
        let stream = TcpStream::connect(&member.description.peer).await.ok()?;
        set_up(&stream);
        let name = ServerName::try_from(PEER_NAME).ok()?;
        let stream = TlsConnector::from(config).connect(name, stream).await.ok()?;
        let (mut reader, writer) = tokio::io::split(stream);
        // Only with his first word is it known that he knows us, and whether he understands what we would say.
        if read_frame(&mut reader).await.ok()? != hello(self.options.peer_protocol) {
            return None;
        }
        let (frames, receiver) = mpsc::channel(UNDER_WAY_MAX);
        let peer = Arc::new(PeerConnection {
            frames,
            awaited: Mutex::default(),
            next: AtomicU64::new(1),
            is_closed: AtomicBool::new(false),
        });
        let writing = self.runtime.spawn(write_frames(writer, receiver));
        let reading = Arc::clone(&peer);
        self.runtime.spawn(async move {
            while let Ok((number, bytes)) = read_frame(&mut reader).await {
                let awaited = reading.awaited.lock().remove(&number);
                if let Some((_, answer)) = awaited {
                    // Nobody waits for a notice, or any more.
                    let _ = answer.send(bytes);
                }
            }
            reading.close();
            writing.abort();
        });
        Some(peer)
    }
}

/// Sends small frames at once, and notices when the other side is gone.
fn set_up(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let socket = socket2::SockRef::from(stream);
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(KEEPALIVE_IDLE + 3 * KEEPALIVE_INTERVAL));
}

async fn write_frames(mut writer: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Frame>) {
    let mut buffer = Vec::new();
    while let Some(first) = frames.recv().await {
        buffer.clear();
        put_frame(&mut buffer, &first);
        while buffer.len() < KEPT_BYTES_MAX
            && let Ok(next) = frames.try_recv()
        {
            put_frame(&mut buffer, &next);
        }
        if writer.write_all(&buffer).await.is_err() || writer.flush().await.is_err() {
            return;
        }
        if buffer.capacity() > KEPT_BYTES_MAX {
            buffer = Vec::new();
        }
    }
}

fn put_frame(buffer: &mut Vec<u8>, (number, bytes): &Frame) {
    buffer.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    buffer.extend_from_slice(&number.to_be_bytes());
    buffer.extend_from_slice(bytes);
}

async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Frame> {
    let length = reader.read_u32().await? as usize;
    if length > FRAME_BYTES_MAX {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let number = reader.read_u64().await?;
    let mut bytes = Vec::with_capacity(length.min(1 << 20));
    // Memory grows with what comes, whatever length is claimed.
    let read = reader.take(length as u64).read_to_end(&mut bytes).await?;
    if read == length { Ok((number, bytes)) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}
