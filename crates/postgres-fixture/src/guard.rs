//! The guard of a cluster: a small shell that starts PostgreSQL, and ends it and removes its folders when this program is gone.
//!
//! In: words over a pipe. Out: what they came to, over another.
//! Invariants
//! - The pipe closes however this program ends, so that nothing needs to be caught or asked for. (A death signal of the kernel
//!   would come when the *thread* ends that started PostgreSQL, and tests have a thread each.)
//! - PostgreSQL is the guard's child: its process id means nothing else until the guard has reaped it.
//! - A guard without a running PostgreSQL still removes the folders.

use crate::installation::Installation;
use crate::{Error, While as _};
use rustix::process::Pid;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Arguments: folder of the data, folder of the log, the program and its arguments.
///
/// The end of input means an immediate shutdown, which does not write, and which gives back the segment of shared memory. If
/// PostgreSQL was killed before and not started again, that segment is left, and is named in the seventh line of its lock file.
const SCRIPT: &str = r#"trap "" INT TERM HUP
data=$1
folder=$2
shift 2
postmaster=
while read -r word; do
    case $word in
    start)
        "$@" < /dev/null > /dev/null 2>> "$folder/log" &
        postmaster=$!
        echo "$postmaster"
        ;;
    reap)
        wait "$postmaster"
        postmaster=
        echo reaped
        ;;
    esac
done
if [ -n "$postmaster" ]; then
    kill -CONT "$postmaster"
    kill -QUIT "$postmaster"
    wait "$postmaster"
fi
set -- $(sed -n 7p "$data/postmaster.pid")
[ -n "$2" ] && ipcrm -m "$2"
rm -rf "$data" "$folder"
"#;

/// A running guard.
pub(crate) struct Guard {
    child: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Guard {
    /// Guards two folders, and PostgreSQL in the first of them once it is told to start it.
    pub(crate) fn start(installation: &Installation, data: &Path, folder: &Path) -> Result<Guard, Error> {
        let mut command = installation.command(Path::new("sh"));
        command.args(["-c", SCRIPT, "guard"]).arg(data).arg(folder);
        command.arg(installation.folder().join("postgres")).arg("-D").arg(data);
        // A group of its own, so that an interrupt from the keyboard does not reach PostgreSQL before the guard does.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().while_doing("start a guard for PostgreSQL")?;
        let words = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| Error::new("the guard has no output"))?;
        Ok(Guard { child, words, answers: BufReader::new(answers) })
    }

    /// Starts PostgreSQL, which need not be ready yet.
    pub(crate) fn start_postmaster(&mut self) -> Result<Pid, Error> {
        let answer = self.ask("start")?;
        let number = answer.parse().ok().and_then(Pid::from_raw);
        number.ok_or_else(|| Error::new(format!("the guard of PostgreSQL answered {answer:?} to start")))
    }

    /// Forgets a PostgreSQL that has ended; waits for it if it has not.
    pub(crate) fn reap(&mut self) -> Result<(), Error> {
        self.ask("reap").map(drop)
    }

    fn ask(&mut self, word: &str) -> Result<String, Error> {
        let words = self.words.as_mut().ok_or_else(|| Error::new("the guard has no input"))?;
        writeln!(words, "{word}").while_doing("tell the guard of PostgreSQL")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).while_doing("hear the guard of PostgreSQL")?;
        Ok(answer.trim().to_owned())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.words.take());
        let _ = self.child.wait();
    }
}
