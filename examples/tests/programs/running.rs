//! A built example: started, listened to, killed.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a program may take for what is waited for. Far more than it needs, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The example of this name, built from its sources as they are. Its build is shared with every other command of the workspace.
pub(crate) fn example(name: &str) -> Command {
    static BUILT: OnceLock<String> = OnceLock::new();
    let messages = BUILT.get_or_init(build);
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    Command::new(program.unwrap_or_else(|| panic!("cargo does not say where it built {name}")))
}

/// Builds the examples, and hands back what cargo says of it, a JSON object a line.
fn build() -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--workspace", "--example", "notify", "--example", "swap"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(repository)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the examples do not build");
    String::from_utf8(output.stdout).unwrap()
}

/// A program that runs until this is dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    said: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        listen(child.stdout.take().unwrap(), sender.clone());
        listen(child.stderr.take().unwrap(), sender);
        Self {
            child,
            lines,
            said: String::new(),
        }
    }

    /// Waits for a line that has every one of these, and hands it back.
    pub(crate) fn line(&mut self, parts: &[&str]) -> String {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.hear(&line);
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
        panic!("no line with {parts:?} came; it said:\n{}", self.said);
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself. Gives its exit code, and all that it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        // Its pipes close when it does, and the channel with them.
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("it does not end; it said:\n{}", self.said)
                }
            }
        }
        let code = self.child.wait().unwrap().code();
        (code, std::mem::take(&mut self.said))
    }

    fn hear(&mut self, line: &str) {
        self.said.push_str(line);
        self.said.push('\n');
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands on the lines of a pipe until it ends.
fn listen(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        let all = BufReader::new(pipe).lines().map_while(Result::ok);
        all.map_while(|line| lines.send(line).ok()).for_each(drop);
    });
}
