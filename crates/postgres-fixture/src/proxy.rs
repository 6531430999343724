//! A TCP proxy that can lose the network: connections are cut or forgotten, or nothing comes through any more.
//!
//! In: the address of a server. Out: an address that leads there, as long as it is let.
//! Invariants
//! - Nothing passes while it is stalled, not even the end of a connection; what a pump was just writing
//!   excepted. At most one buffer of each direction is held back, and passes when it is resumed.
//! - After `cut` returns, connections are refused and none is open.
//! - At most `CONNECTIONS_MAX` connections, two threads and two buffers each; others are closed at once.

use crate::{Error, While as _, ports};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CONNECTIONS_MAX: usize = 512;
const BUFFER_BYTES: usize = 16 * 1024;
const STACK_BYTES: usize = 128 * 1024;
const CONNECT_MAX: Duration = Duration::from_mins(1);
/// How long the proxy's own threads may take to notice something.
const CHANGE_MAX: Duration = Duration::from_mins(5);

/// A proxy in front of one server. Dropped, it closes everything.
pub struct Proxy {
    shared: Arc<Shared>,
    /// One change of the mode after the other.
    changes: Mutex<()>,
    door: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Passing,
    Stalled,
    Cut,
    Ended,
}

struct Shared {
    target: SocketAddr,
    address: SocketAddr,
    state: Mutex<ProxyState>,
    changed: Condvar,
}

struct ProxyState {
    mode: Mode,
    is_listening: bool,
    /// Both sides of every connection; the far one is missing until it is made.
    connections: HashMap<u64, Vec<TcpStream>>,
    next: u64,
    /// Connections before this one are silent for ever.
    silenced: u64,
}

impl Proxy {
    /// Listens on a free loopback port and passes everything on to a server, which need not be there yet.
    pub fn start(target: SocketAddr) -> Result<Proxy, Error> {
        let listener = ports::listener()?;
        let address = listener.local_addr().while_doing("look at the proxy's address")?;
        let state = ProxyState {
            mode: Mode::Passing,
            is_listening: true,
            connections: HashMap::new(),
            next: 0,
            silenced: 0,
        };
        let shared = Arc::new(Shared { target, address, state: Mutex::new(state), changed: Condvar::new() });
        let of_door = Arc::clone(&shared);
        let door = thread("proxy", move || of_door.keep_door(listener)).while_doing("start a proxy")?;
        Ok(Proxy { shared, changes: Mutex::new(()), door: Some(door) })
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// How many connections are open.
    pub fn connection_count(&self) -> usize {
        self.shared.state().connections.len()
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        let _turn = self.changes.lock();
        self.shared.close(Mode::Cut);
    }

    /// Keeps connections open and takes new ones, but lets no byte through in either direction.
    pub fn stall(&self) {
        // After a cut there is nobody at the door.
        let _turn = self.changes.lock();
        self.shared.open(Mode::Stalled);
    }

    /// Lets no byte through any more over the connections that are open, whose sides are not told; new ones work. As when something on
    /// the way has forgotten them.
    pub fn silence(&self) {
        let _turn = self.changes.lock();
        let mut state = self.shared.state();
        state.silenced = state.next;
    }

    /// Works again: what was held back passes, new connections are taken.
    pub fn resume(&self) {
        let _turn = self.changes.lock();
        self.shared.open(Mode::Passing);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.close(Mode::Ended);
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}

impl Shared {
    /// Takes connections while it may; in between it has no listener, so that they are refused.
    fn keep_door(self: &Arc<Shared>, listener: TcpListener) {
        let mut listener = Some(listener);
        loop {
            if let Some(open) = listener.take() {
                self.accept(&open);
            }
            let mut state = self.state();
            state.is_listening = false;
            self.changed.notify_all();
            while state.mode == Mode::Cut {
                state = self.wait(state);
            }
            if state.mode == Mode::Ended {
                return;
            }
            drop(state);
            match TcpListener::bind(self.address) {
                Ok(open) => {
                    listener = Some(open);
                    self.state().is_listening = true;
                    self.changed.notify_all();
                }
                // Somebody may still hold it for a moment.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn accept(self: &Arc<Shared>, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            let mut state = self.state();
            if matches!(state.mode, Mode::Cut | Mode::Ended) {
                return;
            }
            let Ok((near, kept)) = accepted.and_then(|(near, _)| Ok((near.try_clone()?, near))) else {
                drop(state);
                // Out of file handles, most likely: let others end.
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            if state.connections.len() < CONNECTIONS_MAX {
                let number = state.next;
                state.next += 1;
                state.connections.insert(number, vec![kept]);
                drop(state);
                let shared = Arc::clone(self);
                if thread("proxy", move || shared.serve(number, near)).is_err() {
                    self.forget(number);
                }
            }
        }
    }

    /// One connection from its beginning to its end.
    fn serve(self: Arc<Shared>, number: u64, near: TcpStream) {
        let _ = self.connect_and_pump(number, near);
        self.forget(number);
    }

    fn connect_and_pump(self: &Arc<Shared>, number: u64, near: TcpStream) -> std::io::Result<()> {
        if !self.wait_until_passing(number) {
            return Ok(());
        }
        let far = TcpStream::connect_timeout(&self.target, CONNECT_MAX)?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let mut state = self.state();
        // Closed while this was on its way: the far side would never hear of it.
        if matches!(state.mode, Mode::Cut | Mode::Ended) {
            return Ok(());
        }
        state.connections.entry(number).or_default().push(far.try_clone()?);
        drop(state);
        let (near_back, far_back) = (near.try_clone()?, far.try_clone()?);
        let shared = Arc::clone(self);
        let back = thread("proxy", move || shared.pump(number, far_back, near_back))?;
        self.pump(number, near, far);
        let _ = back.join();
        Ok(())
    }

    /// Passes bytes on until one side ends.
    fn pump(&self, number: u64, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = from.read(&mut buffer);
            if !self.wait_until_passing(number) {
                return;
            }
            match read {
                Ok(count) if count > 0 => {
                    if to.write_all(&buffer[..count]).is_err() {
                        // The other side is gone: tell this one.
                        let _ = from.shutdown(Shutdown::Both);
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => {
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
            }
        }
    }

    /// Whether bytes of a connection may pass; waits while that is undecided.
    fn wait_until_passing(&self, number: u64) -> bool {
        let mut state = self.state();
        while state.mode == Mode::Stalled || (state.mode == Mode::Passing && number < state.silenced) {
            state = self.wait(state);
        }
        state.mode == Mode::Passing
    }

    fn forget(&self, number: u64) {
        for stream in self.state().connections.remove(&number).into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn open(&self, mode: Mode) {
        self.state().mode = mode;
        self.changed.notify_all();
        self.wait_until(|state| state.is_listening);
    }

    fn close(&self, mode: Mode) {
        let mut state = self.state();
        state.mode = mode;
        for stream in state.connections.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.changed.notify_all();
        // The door waits for a client: be one.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT_MAX);
        self.wait_until(|state| !state.is_listening && state.connections.is_empty());
    }

    fn wait_until(&self, is_so: impl Fn(&ProxyState) -> bool) {
        let began = Instant::now();
        let mut state = self.state();
        while !is_so(&state) {
            assert!(began.elapsed() < CHANGE_MAX, "the proxy's threads do not answer");
            state = self.changed.wait_timeout(state, CHANGE_MAX).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, ProxyState>) -> MutexGuard<'a, ProxyState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work)
}
