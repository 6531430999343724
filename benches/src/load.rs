//! The load generator: one thread, many connections, ready-made requests, as little parsing as HTTP allows.
//!
//! A connection sends a request, waits for its whole answer, and takes the next one, at once or at its time. Only the status and
//! the length of an answer are looked at.

use crate::process::{Usage, own_usage};
use anyhow::Context as _;
use memchr::memmem;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// What to send, and for how long.
pub(crate) struct Load {
    pub(crate) requests: Vec<Vec<u8>>,
    pub(crate) connections: usize,
    pub(crate) time_max: Duration,
    /// Whether requests may be sent more than once.
    pub(crate) repeat: bool,
    /// The status that every answer must have.
    pub(crate) status: u16,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) count: usize,
    pub(crate) seconds: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    /// CPU of the generator itself.
    pub(crate) client: Usage,
}

impl Outcome {
    /// Of the time that each answer took.
    pub(crate) fn of(mut micros: Vec<f32>, seconds: f64, client: Usage) -> Outcome {
        micros.sort_by(f32::total_cmp);
        let at = |part: f64| {
            micros.get((micros.len() as f64 * part) as usize).copied().map_or(f64::NAN, f64::from)
        };
        Outcome { count: micros.len(), seconds, p50_micros: at(0.5), p99_micros: at(0.99), client }
    }
}

/// What the connections of one run share.
struct Run {
    load: Load,
    next: Cell<usize>,
    deadline: Instant,
    /// Between two requests of a connection; nothing if one follows at once.
    interval: Option<Duration>,
    /// Ends it before its time.
    is_over: Arc<AtomicBool>,
    micros: RefCell<Vec<f32>>,
}

/// Runs a load against a server.
pub(crate) fn run(address: SocketAddr, load: Load) -> anyhow::Result<Outcome> {
    run_on(vec![address], load)
}

/// Runs a load against several servers, its connections spread over them.
pub(crate) fn run_on(addresses: Vec<SocketAddr>, load: Load) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, drive(addresses, load, None, Arc::default()))
}

/// Runs several loads at once, until their time is over or somebody says so. Each of their connections sends a request in an
/// interval; one that is late because of the answer before counts from when it should have been sent.
pub(crate) fn run_paced(
    address: SocketAddr,
    loads: Vec<(Load, Duration)>,
    is_over: &Arc<AtomicBool>,
) -> anyhow::Result<Vec<Outcome>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let start = |(load, interval)| {
            tokio::task::spawn_local(drive(vec![address], load, Some(interval), Arc::clone(is_over)))
        };
        let tasks: Vec<_> = loads.into_iter().map(start).collect();
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await??);
        }
        Ok(outcomes)
    })
}

/// Sends one request and gives its whole answer.
pub(crate) fn once(address: SocketAddr, request: &[u8]) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(address).await?;
        connection.exchange(request).await?;
        Ok(connection.buffer)
    })
}

/// The status of an answer.
pub(crate) fn status_of(answer: &[u8]) -> u16 {
    let digits = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

async fn drive(
    addresses: Vec<SocketAddr>,
    load: Load,
    interval: Option<Duration>,
    is_over: Arc<AtomicBool>,
) -> anyhow::Result<Outcome> {
    let mut connections = Vec::new();
    for address in addresses.into_iter().cycle().take(load.connections) {
        connections.push(Connection::open(address).await?);
    }
    let (began, usage) = (Instant::now(), own_usage()?);
    let deadline = began + load.time_max;
    let (next, micros) = (Cell::new(0), RefCell::default());
    let run = Rc::new(Run { load, next, deadline, interval, is_over, micros });
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|connection| tokio::task::spawn_local(work(run.clone(), connection)))
        .collect();
    for task in tasks {
        task.await??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let client = own_usage()?.since(usage);
    Ok(Outcome::of(run.micros.take(), seconds, client))
}

async fn work(run: Rc<Run>, mut connection: Connection) -> anyhow::Result<()> {
    let count = run.load.requests.len();
    let mut due = Instant::now();
    loop {
        let began = match run.interval {
            Some(interval) => {
                due += interval;
                wait_until(due).await
            }
            None => Instant::now(),
        };
        let number = run.next.get();
        let is_over = began >= run.deadline || run.is_over.load(Relaxed);
        if is_over || (!run.load.repeat && number >= count) {
            return Ok(());
        }
        run.next.set(number + 1);
        connection.exchange(&run.load.requests[number % count]).await?;
        let status = status_of(&connection.buffer);
        if status != run.load.status {
            anyhow::bail!("a wrong answer: {}", String::from_utf8_lossy(&connection.buffer));
        }
        run.micros.borrow_mut().push(began.elapsed().as_secs_f32() * 1e6);
    }
}

/// Waits for a time, and gives the time from which to count: now, or the one waited for if it had passed before.
async fn wait_until(due: Instant) -> Instant {
    if Instant::now() >= due {
        return due;
    }
    tokio::time::sleep_until(due.into()).await;
    Instant::now()
}

struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Connection> {
        let socket = TcpStream::connect(address).await.with_context(|| format!("connect to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(Connection { socket, buffer: Vec::with_capacity(1 << 14) })
    }

    /// Sends a request and fills the buffer with its answer.
    async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.buffer.clear();
        self.socket.write_all(request).await?;
        let length = loop {
            self.more().await?;
            if let Some(head) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break head + 4 + content_length(&self.buffer[..head]);
            }
        };
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        let count = self.socket.read_buf(&mut self.buffer).await?;
        anyhow::ensure!(count > 0, "the server closed a connection");
        Ok(())
    }
}

/// Servers built on hyper write names in lower case.
pub(crate) fn content_length(head: &[u8]) -> usize {
    let name = b"\r\ncontent-length: ";
    let Some(at) = memmem::find(head, name) else { return 0 };
    let digits = head[at + name.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
}
