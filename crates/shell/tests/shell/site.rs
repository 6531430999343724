//! A server with some books, and runs of the shell against it.

use astrarium_env::{Clock as _, SystemClock};
use astrarium_testkit::Server;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What a run of the shell left behind.
#[derive(Debug)]
pub(crate) struct ShellEnded {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A server that shells of the machine's own clock can talk to.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) endpoint: String,
}

impl Site {
    pub(crate) fn empty() -> Site {
        let server = Server::in_memory();
        server.clock().set_seconds(SystemClock.now_micros() / 1_000_000);
        let endpoint = format!("http://127.0.0.1:{}", server.address().port());
        Site { server, endpoint }
    }

    /// With `library/books`, partitioned by author, and three books.
    pub(crate) fn with_books() -> Site {
        let site = Site::empty();
        site.good(&["-c", "mkdb library", "-c", "cd library", "-c", "mkcontainer books /author"]);
        site.good(&[
            "--use", "library/books",
            "-c", "put {\"id\":\"1\",\"author\":\"Ada\",\"title\":\"Notes\",\"pages\":66,\"big\":12345678901234567890}",
            "-c", "put {\"id\":\"2\",\"author\":\"Ada\",\"title\":\"Sketch, of \\\"it\\\"\",\"pages\":1.10}",
            "-c", "put {\"id\":\"3\",\"author\":\"Bob\",\"title\":\"Third\",\"tags\":[{\"name\":\"x\"}],\"address\":{\"city\":\"Rome\"}}",
        ]);
        site
    }

    /// The shell, without settings of whoever runs the tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        for name in ["ASTRARIUM_ENDPOINT", "ASTRARIUM_KEY", "NO_COLOR", "PAGER", "LESS", "VISUAL", "EDITOR"] {
            command.env_remove(name);
        }
        command.env("ASTRARIUM_HISTORY", "").env("TERM", "xterm");
        command.arg("--as-shell");
        if !self.endpoint.is_empty() {
            command.args(["--endpoint", &self.endpoint]);
        }
        command.args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ShellEnded {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> ShellEnded {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        ShellEnded {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A run that must succeed: what it wrote.
    #[track_caller]
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.stdout
    }

    /// A run that must fail: what it complained about.
    #[track_caller]
    pub(crate) fn bad(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {ended:?}");
        ended.stderr
    }
}
