//! A proxy passes bytes, holds them back, cuts connections and works again.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use astrarium_postgres_fixture::Proxy;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_mins(5);

#[test]
fn passes_bytes_and_the_end() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut client = connect(&proxy);
    let sent: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    let (copy, mut writer) = (sent.clone(), client.try_clone().unwrap());
    let writing = std::thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent);
    drop(client);
    wait_until("the connection is forgotten", || proxy.connection_count() == 0);
}

#[test]
fn stalled_it_holds_back_and_resumed_it_delivers() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut client = connect(&proxy);
    assert_echoes(&mut client);
    proxy.stall();
    let mut late = connect(&proxy);
    for held in [&mut client, &mut late] {
        held.write_all(b"held").unwrap();
        held.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let silent = held.read(&mut [0; 4]).unwrap_err().kind();
        assert!(matches!(silent, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent}");
    }
    proxy.resume();
    for held in [&mut client, &mut late] {
        held.set_read_timeout(Some(TIME_MAX)).unwrap();
        let mut answer = [0; 4];
        held.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"held");
        assert_echoes(held);
    }
}

#[test]
fn silenced_connections_stay_silent_and_new_ones_work() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut client = connect(&proxy);
    assert_echoes(&mut client);
    proxy.silence();
    assert_echoes(&mut connect(&proxy));
    proxy.stall();
    proxy.resume();
    client.write_all(b"lost").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let silent = client.read(&mut [0; 4]).unwrap_err().kind();
    assert!(matches!(silent, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent}");
    assert_echoes(&mut connect(&proxy));
    proxy.cut();
    client.set_read_timeout(Some(TIME_MAX)).unwrap();
    assert!(client.read(&mut [0; 4]).is_ok_and(|count| count == 0), "a cut ends it");
}

#[test]
fn cut_it_closes_and_refuses_until_resumed() {
    let proxy = Proxy::start(echo()).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| connect(&proxy)).collect();
    clients.iter_mut().for_each(assert_echoes);
    for round in 0..5 {
        if round == 3 {
            proxy.stall();
        }
        proxy.cut();
        assert_eq!(proxy.connection_count(), 0);
        for client in &mut clients {
            assert_eq!(client.read(&mut [0; 4]).unwrap_or(0), 0);
        }
        let refused = TcpStream::connect(proxy.address()).unwrap_err().kind();
        assert_eq!(refused, ErrorKind::ConnectionRefused);
        proxy.resume();
        clients = (0..20).map(|_| connect(&proxy)).collect();
        clients.iter_mut().for_each(assert_echoes);
    }
    let address = proxy.address();
    drop(proxy);
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(clients[0].read(&mut [0; 4]).unwrap_or(0), 0);
}

#[test]
fn a_target_that_is_not_there_closes_the_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::start(nobody).unwrap();
    assert_eq!(connect(&proxy).read(&mut [0; 4]).unwrap_or(0), 0);
}

/// A server that sends back what it gets.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut back = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut back);
                let _ = back.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    address
}

fn connect(proxy: &Proxy) -> TcpStream {
    let client = TcpStream::connect(proxy.address()).unwrap();
    client.set_read_timeout(Some(TIME_MAX)).unwrap();
    client
}

fn assert_echoes(client: &mut TcpStream) {
    client.write_all(b"ping").unwrap();
    let mut answer = [0; 4];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ping");
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIME_MAX, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}
