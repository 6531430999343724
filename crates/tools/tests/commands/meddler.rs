//! Somebody between a command and the server, who passes requests on and changes answers.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Makes of a request and its answer what the command gets to see.
type Change = dyn Fn(&str, Vec<u8>) -> Vec<u8> + Send + Sync;

/// The endpoint of a meddler before the server at a port.
pub(crate) fn meddler(
    port: u16,
    change: impl Fn(&str, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let change: Arc<Change> = Arc::new(change);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let change = Arc::clone(&change);
            std::thread::spawn(move || serve(&mut stream.unwrap(), port, &change));
        }
    });
    format!("http://{address}")
}

/// A refusal as the protocol has it.
pub(crate) fn refusal(status: u16) -> Vec<u8> {
    let body = "{\"code\":\"X\",\"message\":\"meddled\"}";
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn serve(client: &mut TcpStream, port: u16, change: &Arc<Change>) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    while let Some(request) = message(client) {
        server.write_all(&request).unwrap();
        let Some(answer) = message(&mut server) else { return };
        let answer = change(&String::from_utf8_lossy(&request), answer);
        if client.write_all(&answer).is_err() {
            return;
        }
    }
}

/// One message with its body; none at the end.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    bytes.extend_from_slice(&body);
    Some(bytes)
}
