//! Where lines come from: files one after another, or standard input, compressed or not.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

/// The longest line that is looked at, in bytes.
const LONGEST_LINE: usize = 64 << 10;
/// How much is read at once, in bytes.
const BUFFER: usize = 256 << 10;

/// The lines of all logs, in the order in which the logs were named.
pub(super) struct Lines {
    waiting: VecDeque<(String, Box<dyn Read>)>,
    current: Option<(String, Box<dyn BufRead>)>,
    number: u64,
    buffer: Vec<u8>,
    progress: ProgressBar,
}

/// One line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The log that it is in.
    pub(super) log: &'a str,
    /// Its number there, from 1.
    pub(super) number: u64,
    /// The line, or what is wrong with it.
    pub(super) text: Result<Cow<'a, str>, String>,
}

impl Lines {
    /// Opens every log; `-` is standard input.
    ///
    /// # Errors
    ///
    /// When one cannot be opened.
    pub(super) fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut total = Some(0);
        let mut files = Vec::new();
        for path in paths {
            if path == Path::new("-") {
                total = None;
                files.push(("standard input".to_owned(), None));
                continue;
            }
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| format!("cannot read the log {name}"))?;
            let metadata = file
                .metadata()
                .with_context(|| format!("cannot read the log {name}"))?;
            if metadata.is_dir() {
                bail!("cannot read the log {name}: it is a folder");
            }
            total = total.map(|total| total + metadata.len());
            files.push((name, Some(file)));
        }
        let progress = bar(total);
        let waiting = files
            .into_iter()
            .map(|(name, file)| {
                let reader: Box<dyn Read> = match file {
                    Some(file) => Box::new(progress.wrap_read(file)),
                    None => Box::new(progress.wrap_read(io::stdin())),
                };
                (name, reader)
            })
            .collect();
        Ok(Self {
            waiting,
            current: None,
            number: 0,
            buffer: Vec::new(),
            progress,
        })
    }

    /// The next line that is not empty; none when there is no more.
    ///
    /// # Errors
    ///
    /// When a log cannot be read at all. One that cannot be read any further ends with a line that says so.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>> {
        loop {
            if self.current.is_none() && !self.start()? {
                self.progress.finish_and_clear();
                return Ok(None);
            }
            self.buffer.clear();
            self.number += 1;
            match self.fill() {
                Ok(0) => self.current = None,
                Ok(_) if self.buffer.trim_ascii().is_empty() => {}
                Ok(length) => {
                    let text = if length > LONGEST_LINE {
                        Err(format!("longer than {LONGEST_LINE} bytes"))
                    } else {
                        Ok(String::from_utf8_lossy(self.buffer.trim_ascii_end()))
                    };
                    return Ok(Some(Line {
                        log: self.current.as_ref().map_or("", |(name, _)| name),
                        number: self.number,
                        text,
                    }));
                }
                Err(error) => {
                    // A log that was cut off: what came before it is still good.
                    let name = self.current.take().map(|(name, _)| name).unwrap_or_default();
                    let number = self.number;
                    if number == 1 {
                        return Err(error).with_context(|| format!("cannot read the log {name}"));
                    }
                    let bad = format!("the log cannot be read any further: {error}");
                    return Ok(Some(Line {
                        log: self.ended(name),
                        number,
                        text: Err(bad),
                    }));
                }
            }
        }
    }

    /// Keeps the name of a log that has ended, for the line that says so.
    fn ended(&mut self, name: String) -> &str {
        let (name, _) = self.current.insert((name, Box::new(io::empty())));
        name
    }

    /// Begins with the next log.
    fn start(&mut self) -> Result<bool> {
        let Some((name, raw)) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let mut raw = BufReader::with_capacity(BUFFER, raw);
        let start = raw
            .fill_buf()
            .with_context(|| format!("cannot read the log {name}"))?;
        // As every gzip file begins (RFC 1952, section 2.3.1).
        let reader: Box<dyn BufRead> = if start.starts_with(&[0x1f, 0x8b]) {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw)))
        } else {
            Box::new(raw)
        };
        self.current = Some((name, reader));
        self.number = 0;
        Ok(true)
    }

    /// Reads to the end of the line and says how long it was. Of a line that is too long, only the beginning is kept.
    fn fill(&mut self) -> io::Result<usize> {
        let Some((_, reader)) = &mut self.current else {
            return Ok(0);
        };
        let mut length = 0;
        loop {
            let available = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            let room = (LONGEST_LINE + 1).saturating_sub(self.buffer.len());
            self.buffer
                .extend_from_slice(available.get(..taken.min(room)).unwrap_or_default());
            reader.consume(taken);
            length += taken;
            if end.is_some() || taken == 0 {
                return Ok(length);
            }
        }
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A bar on standard error, where that is a terminal.
fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, shape) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{wide_bar} {percent:>3} %  {bytes} of {total_bytes}, {eta} to go",
        ),
        None => (ProgressBar::no_length(), "{spinner} {bytes} read"),
    };
    // A shape that cannot be read leaves the default one.
    bar.with_style(ProgressStyle::with_template(shape).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn all(bytes: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut lines = Lines::open(&[file.path().to_owned()]).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.text.map(Cow::into_owned)));
        }
        all
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn empty_lines_count_and_are_left_out() {
        assert_eq!(
            all(b"one\r\n\n  \ntwo"),
            [(1, Ok("one".into())), (4, Ok("two".into()))]
        );
    }

    #[test]
    fn every_member_of_a_gzip_file_is_read() {
        let bytes = [gzip("one\nt"), gzip("wo\nthree\n")].concat();
        assert_eq!(
            all(&bytes),
            [
                (1, Ok("one".into())),
                (2, Ok("two".into())),
                (3, Ok("three".into()))
            ]
        );
    }

    #[test]
    fn a_gzip_file_that_was_cut_off_gives_what_it_has_and_says_so() {
        let text: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
        let bytes = gzip(&text);
        let read = all(&bytes[..bytes.len() / 2]);
        let (last, before) = read.split_last().unwrap();
        assert!(before.len() > 100, "{}", before.len());
        assert!(
            last.1
                .as_ref()
                .unwrap_err()
                .contains("cannot be read any further"),
            "{last:?}"
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_one_bad_line() {
        let bytes = [b"a\n".as_slice(), &vec![b'x'; 3 * LONGEST_LINE], b"\nb\n"].concat();
        let read = all(&bytes);
        assert_eq!(read[0], (1, Ok("a".into())));
        assert!(read[1].1.as_ref().unwrap_err().contains("longer than"));
        assert_eq!(read[2], (3, Ok("b".into())));
    }

    #[test]
    fn what_is_no_utf_8_is_read_all_the_same() {
        assert_eq!(all(b"a\xffb\n"), [(1, Ok("a\u{fffd}b".into()))]);
    }
}
