//! The ports of a server: taken before its data is opened, so that a port in use leaves no new data folder behind, and listened on
//! only once the data is open, so that nobody connects to a server that cannot answer yet.

use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;
/// The first port that every user may listen on.
const FIRST_FREE_PORT: u16 = 1024;

/// A port that nobody listens on yet.
pub(crate) struct TakenPort {
    socket: TcpSocket,
    address: SocketAddr,
    setting: &'static str,
}

impl TakenPort {
    /// Takes a port; `setting` is the flag or variable that names another one.
    pub(crate) fn take(address: SocketAddr, setting: &'static str) -> anyhow::Result<TakenPort> {
        let taken = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // Otherwise a server that is started again at once would wait for the connections of the one before.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(socket)
        };
        let socket = taken().map_err(|error| refusal(error, address, setting))?;
        Ok(TakenPort { socket, address, setting })
    }

    /// Begins to listen.
    pub(crate) fn listen(self) -> anyhow::Result<TcpListener> {
        let TakenPort { socket, address, setting } = self;
        socket.listen(BACKLOG).map_err(|error| refusal(error, address, setting))
    }
}

/// Why there is no such port, and what to do.
fn refusal(error: io::Error, address: SocketAddr, setting: &str) -> anyhow::Error {
    let port = address.port();
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another program has this port, maybe another astrarium; stop that, or take another port with {setting} (0 is any free one)"
        ),
        io::ErrorKind::PermissionDenied if port < FIRST_FREE_PORT => format!(
            "ports below {FIRST_FREE_PORT} are for root, or for programs with the capability CAP_NET_BIND_SERVICE; \
             take another port with {setting}, such as {}",
            if port == 443 { 8443 } else { 8081 }
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine has no such address; give one of its own with {setting}")
        }
        _ => format!("{setting} names another address"),
    };
    anyhow::Error::new(error).context(format!("cannot listen on {address}: {advice}"))
}
