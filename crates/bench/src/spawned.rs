//! Programs that are measured from outside: how long they take, what they use of the processor with
//! all that they start, and the most memory of their own process.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stint_peers::usage::{Usage, children_processor};

use crate::error::BenchError;
use crate::metric::{CPU, PEAK, Sample, WALL};

/// How often the memory of a program is looked at. The kernel keeps the most, so that only what
/// comes in the last of these pauses is missed.
const PAUSE: Duration = Duration::from_millis(10);

/// The most of its output that an error shows.
const MAX_WORDS: usize = 2000;

/// Runs a program to its end, which must be a good one.
pub(crate) fn measure(command: &mut Command) -> Result<Sample, BenchError> {
    let processor = children_processor();
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let program = child.get_program().to_string_lossy().into_owned();
    let child = child.spawn().map_err(|source| BenchError::Spawn { program, source })?;
    let (is_over, id) = (AtomicBool::new(false), child.id());
    let (took, peak, ended) = thread::scope(|scope| {
        let peak = scope.spawn(|| peak_of(id, &is_over));
        let ended = child.wait_with_output();
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        (took, peak.join().unwrap_or(0), ended)
    });
    let program = || command.get_program().to_string_lossy().into_owned();
    let ended = ended.map_err(|source| BenchError::Spawn { program: program(), source })?;
    if !ended.status.success() {
        let words: String =
            String::from_utf8_lossy(&ended.stderr).chars().take(MAX_WORDS).collect();
        let what = format!("ended with {}: {}", ended.status, words.trim());
        return Err(BenchError::Program { program: program(), what });
    }
    let processor = children_processor().saturating_sub(processor);
    Ok(Sample::default()
        .with(WALL, took.as_secs_f64())
        .with(CPU, processor.as_secs_f64())
        .with(PEAK, peak as f64))
}

/// The most memory that a process has had, until it is over.
fn peak_of(id: u32, is_over: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !is_over.load(Ordering::Relaxed) {
        peak = Usage::of(id).map_or(peak, |usage| usage.peak.max(peak));
        thread::sleep(PAUSE);
    }
    peak
}

/// The first line of what a program says of its version; nothing if there is no such program.
pub(crate) fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or("of an unknown version");
    Some(line.strip_prefix(program).unwrap_or(line).trim().to_owned())
}

/// A folder that is gone afterwards.
pub(crate) fn folder() -> Result<tempfile::TempDir, BenchError> {
    let made = tempfile::Builder::new().prefix("stint-bench-").tempdir();
    made.map_err(|source| BenchError::File { path: std::env::temp_dir(), source })
}

/// Writes a file.
pub(crate) fn write(path: &std::path::Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(|source| BenchError::File { path: path.to_owned(), source })
}

/// A program that is ended when nobody needs it any more.
pub(crate) struct Leashed(pub(crate) Child);

impl Drop for Leashed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_measured_to_its_end() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
        let sample = measure(&mut command).expect("a sample");
        let values: Vec<f64> = sample.values.iter().map(|(_, value)| *value).collect();
        assert!(values[0] > 0.0 && values[1] >= 0.0, "{values:?}");
    }

    #[test]
    fn a_bad_end_is_told_with_its_words() {
        let error = measure(Command::new("sh").args(["-c", "echo no >&2; exit 3"]));
        assert_eq!(error.expect_err("it fails").to_string(), "sh ended with exit status: 3: no");
        let error = measure(&mut Command::new("/nowhere/at-all")).expect_err("it is not there");
        assert!(error.to_string().starts_with("cannot start /nowhere/at-all: "), "{error}");
        assert!(version("/nowhere/at-all").is_none());
    }
}
