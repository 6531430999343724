//! A running `astrarium serve`, and runs of the program that are expected to end.

use astrarium_testkit::{Client, Request};
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where items of the container are.
pub(crate) const DOCS: &str = "/dbs/d/colls/c/docs";

/// Longest time to start or to stop; an empty folder takes a fraction of a second.
const PATIENCE: Duration = Duration::from_mins(5);

/// A server process, killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    /// Reads what it complains about: nobody else would, and a full pipe would stop it.
    stderr: Option<JoinHandle<String>>,
    pub(crate) address: SocketAddr,
    /// The line that says that it is ready.
    pub(crate) ready_line: String,
    /// What it says afterwards.
    stdout: BufReader<ChildStdout>,
}

/// What a run of the program left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program without settings from the environment of whoever runs the tests.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_astrarium"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASTRARIUM_") || name == "ENABLE_EXPLORER" {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Ended {
    run_with(&[], arguments)
}

/// Runs the program to its end with settings from the environment.
pub(crate) fn run_with(variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
    let mut child = command(arguments).envs(variables.iter().copied()).spawn().unwrap();
    // Read while it runs: it may write more than a pipe holds.
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (stdout, stderr) = (read_all(stdout), read_all(stderr));
    let success = wait(&mut child);
    Ended { success, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Runs a program that must refuse, and checks a part of what it says.
#[track_caller]
pub(crate) fn refused(arguments: &[&str], fragments: &[&str]) -> Ended {
    refused_with(&[], arguments, fragments)
}

/// The same with settings from the environment.
#[track_caller]
pub(crate) fn refused_with(variables: &[(&str, &str)], arguments: &[&str], fragments: &[&str]) -> Ended {
    let ended = run_with(variables, arguments);
    assert!(!ended.success, "{variables:?} {arguments:?} was accepted: {ended:?}");
    for fragment in fragments {
        assert!(ended.stderr.contains(fragment), "{fragment:?} in {:?}", ended.stderr);
    }
    ended
}

pub(crate) fn wait(child: &mut Child) -> bool {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the program did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Program {
    /// Starts a server on a folder and waits until it is ready.
    pub(crate) fn on(folder: &Path, arguments: &[&str]) -> Program {
        let folder = folder.to_str().unwrap();
        Program::start(&[&["--data", folder], arguments].concat())
    }

    /// Starts a server on a store.
    pub(crate) fn on_store(url: &str, arguments: &[&str]) -> Program {
        Program::start(&[&["--store", url], arguments].concat())
    }

    /// Starts a server that keeps everything in memory.
    pub(crate) fn in_memory(arguments: &[&str]) -> Program {
        Program::start(&[&["--memory"], arguments].concat())
    }

    fn start(arguments: &[&str]) -> Program {
        Program::start_with(&[], &[&["--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// Starts a server on a folder in a process that may have only so many files open.
    pub(crate) fn under_limit(file_count: u32, folder: &Path) -> Program {
        let own = command(&[]);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {file_count} && exec \"$0\" \"$@\"")).arg(own.get_program());
        shell.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
        for (name, _) in own.get_envs() {
            shell.env_remove(name);
        }
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::launch(shell)
    }

    /// Starts a server with settings from the environment, which must include a free port.
    pub(crate) fn start_with(variables: &[(&str, &str)], arguments: &[&str]) -> Program {
        let mut command = command(&[&["serve"], arguments].concat());
        command.envs(variables.iter().copied());
        Program::launch(command)
    }

    fn launch(mut command: Command) -> Program {
        let mut child = command.spawn().unwrap();
        let mut ready_line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut ready_line).unwrap();
        let address =
            ready_line.split_once("AccountEndpoint=http://").and_then(|(_, rest)| rest.split('/').next());
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            let mut stderr = String::new();
            let _ = child.kill();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("no ready line but {ready_line:?} {stderr:?}");
        };
        let reader = read_all(child.stderr.take().unwrap());
        Program { child, stderr: Some(reader), address, ready_line, stdout }
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::of_process(self.address)
    }

    /// Makes the database `d` and the container `c`.
    pub(crate) fn furnish(&self) {
        let mut client = self.client();
        client.expect(201, &Request::new("POST", "/dbs").body("{\"id\":\"d\"}"));
        let container =
            "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
        client.expect(201, &Request::new("POST", "/dbs/d/colls").body(container));
    }

    /// The next line that it says.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Ends it as a failure of the machine would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for the end that was asked for.
    pub(crate) fn ended(mut self) -> Ended {
        let success = wait(&mut self.child);
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Ended { success, stdout: self.ready_line.clone(), stderr }
    }

    /// Ends it in good order.
    #[track_caller]
    pub(crate) fn stop(self) -> Ended {
        self.terminate();
        let ended = self.ended();
        assert!(ended.success, "{ended:?}");
        ended
    }

    /// A line of the process's state as the system tells it, such as `VmRSS`, in kilobytes.
    pub(crate) fn kilobytes(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The request that makes an item.
pub(crate) fn create(id: &str, filler: &str) -> Request {
    let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\",\"x\":\"{filler}\"}}");
    Request::new("POST", DOCS).partition_key("[\"a\"]").body(body)
}

/// The request that reads an item.
pub(crate) fn read(id: &str) -> Request {
    Request::new("GET", &format!("{DOCS}/{id}")).partition_key("[\"a\"]")
}
