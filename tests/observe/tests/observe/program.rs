//! Other programs: found, started, listened to, and ended with the test.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// How long a program may take for what is waited for. Far more than it needs, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// A file of `examples/observe`.
pub(crate) fn example_file(name: &str) -> PathBuf {
    repository().join("examples/observe").join(name)
}

/// A program that `.ci/observe-setup` installs, where it put it or where the search path has it.
pub(crate) fn installed(name: &str) -> Command {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let own = cache.map(|cache| cache.join("tripwit/tools/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = own
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|it| it.is_file());
    let Some(program) = found else {
        panic!("{name} is not installed. Install what these tests need: .ci/observe-setup");
    };
    Command::new(program)
}

/// The example, built from its sources as they are. Its build is shared with every other command of the workspace.
pub(crate) fn observe() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args([
                "build",
                "--workspace",
                "--bin",
                "observe",
                "--message-format",
                "json-render-diagnostics",
            ])
            .current_dir(repository())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "the example does not build");
        let messages = String::from_utf8(output.stdout).unwrap();
        let program = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find(|message| message["target"]["name"] == "observe" && message["executable"].is_string());
        program.expect("cargo tells of what it built")["executable"]
            .as_str()
            .unwrap()
            .into()
    });
    Command::new(program)
}

/// Runs a program to its end, and hands back what it printed when it was content.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?} failed:\n{printed}");
    printed
}

/// A program that runs until this is dropped.
pub(crate) struct Running {
    command: String,
    child: Child,
    lines: UnboundedReceiver<String>,
    said: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_with(command, "")
    }

    /// A program that reads this, which must be little enough for a pipe to hold.
    pub(crate) fn start_with(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let (sender, lines) = unbounded_channel();
        read(child.stdout.take().unwrap(), sender.clone());
        read(child.stderr.take().unwrap(), sender);
        Self {
            command: format!("{command:?}"),
            child,
            lines,
            said: String::new(),
        }
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Waits for a line that `pick` makes something of.
    pub(crate) async fn line<T>(&mut self, what: &str, pick: impl Fn(&str) -> Option<T>) -> T {
        let found = timeout(PATIENCE, async {
            while let Some(line) = self.next().await {
                let picked = pick(&line);
                if picked.is_some() {
                    return picked;
                }
            }
            None
        });
        let found = found.await.ok().flatten();
        found.unwrap_or_else(|| {
            panic!(
                "{what} did not come from {}, which said:\n{}",
                self.command, self.said
            )
        })
    }

    /// Waits until it has said all of these, in whichever order.
    pub(crate) async fn all(&mut self, parts: &[String]) {
        for part in parts {
            if !self.said.contains(part) {
                self.line(part, |line| line.contains(part).then_some(())).await;
            }
        }
    }

    /// Waits until it ends by itself.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        // Its pipes close when it does.
        let closed = timeout(PATIENCE, async { while self.next().await.is_some() {} });
        assert!(closed.await.is_ok(), "{} does not end", self.command);
        self.child.wait().unwrap()
    }

    async fn next(&mut self) -> Option<String> {
        let line = self.lines.recv().await?;
        self.said.push_str(&line);
        self.said.push('\n');
        Some(line)
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
fn read(pipe: impl Read + Send + 'static, lines: UnboundedSender<String>) {
    std::thread::spawn(move || {
        let all = BufReader::new(pipe).lines().map_while(Result::ok);
        all.map_while(|line| lines.send(line).ok()).for_each(drop);
    });
}
