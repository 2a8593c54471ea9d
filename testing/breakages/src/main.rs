//! Breaks the ledger on purpose, one way at a time, and shows that its rows and the
//! simulator notice.
//!
//! Works on a copy of the tree under `target/breakages`; the sources themselves are only
//! read. Prints a table for docs/testing.md and fails if a breakage goes unnoticed.

mod breakage;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use breakage::{BREAKAGES, Breakage};

/// How many seeds each broken ledger is tried on.
const SEEDS: u32 = 2_000;

/// Something that keeps breakages from being tried.
type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
Breaks the ledger on purpose and shows what notices.

Usage: cargo run --release -p stint-breakages -- [PART OF A NAME]...

Example: cargo run --release -p stint-breakages -- finalizer

Exit codes: 0 everything that was tried is noticed; 1 something is not, or could not be tried;
2 the arguments are wrong.";

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.iter().any(|arg| arg == "--help" || arg == "-h") {
        return say(HELP).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    if let Some(odd) = wanted.iter().find(|part| !is_part_of_a_name(part)) {
        let names: Vec<&str> = BREAKAGES.iter().map(|breakage| breakage.name).collect();
        let names = names.join("\n  ");
        eprintln!("breakages: no breakage has {odd:?} in its name. There are:\n  {names}");
        return ExitCode::from(2);
    }
    match try_all(&wanted) {
        Ok(unnoticed) if unnoticed.is_empty() => ExitCode::SUCCESS,
        Ok(unnoticed) => {
            eprintln!("breakages: neither tests nor seeds notice:\n  {}", unnoticed.join("\n  "));
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("breakages: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn is_part_of_a_name(part: &str) -> bool {
    BREAKAGES.iter().any(|breakage| breakage.name.contains(part))
}

/// Says something; fails where nobody reads it, and nothing more needs to be tried.
fn say(text: impl Display) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// Tries the breakages that are wanted, and returns those that went unnoticed.
fn try_all(wanted: &[String]) -> Result<Vec<&'static str>, Failure> {
    let bench = Bench::set_up()?;
    let healthy = bench.try_out()?;
    if healthy.is_noticed() {
        return Err("the ledger as it is does not pass: mend that first".into());
    }
    say(format_args!(
        "| what was broken | tests of the ledger that fail | seeds of {SEEDS} that show it |\n|---|---|---|"
    ))?;
    let mut unnoticed = Vec::new();
    let is_wanted = |breakage: &&Breakage| {
        wanted.is_empty() || wanted.iter().any(|part| breakage.name.contains(part.as_str()))
    };
    for breakage in BREAKAGES.iter().filter(is_wanted) {
        let path = bench.folder.join(breakage.file);
        let whole = fs::read_to_string(&path)?;
        if whole.matches(breakage.healthy).count() != 1 {
            return Err(format!("{}: its place is gone", breakage.name).into());
        }
        fs::write(&path, whole.replacen(breakage.healthy, breakage.broken, 1))?;
        let notice = bench.try_out();
        fs::write(&path, whole)?;
        let notice = notice?;
        if !notice.is_noticed() {
            unnoticed.push(breakage.name);
        }
        say(format_args!("| {} | {} | {} |", breakage.name, notice.rows, notice.seeds))?;
    }
    Ok(unnoticed)
}

/// A copy of the tree to break.
struct Bench {
    folder: PathBuf,
    target: PathBuf,
    /// Locked for as long as this run works there.
    _lock: File,
}

/// What noticed a breakage.
struct Notice {
    rows: usize,
    seeds: u32,
}

impl Notice {
    fn is_noticed(&self) -> bool {
        self.rows > 0 || self.seeds > 0
    }
}

impl Bench {
    fn set_up() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let place = root.join("target/breakages");
        fs::create_dir_all(&place)?;
        let lock = File::create(place.join("lock"))?;
        lock.try_lock().map_err(|error| {
            format!("{}: {error}; another run works there: wait for its end", place.display())
        })?;
        let (folder, target) = (place.join("tree"), place.join("target"));
        let bench = Self { folder, target, _lock: lock };
        let listed = Command::new("git")
            .args(["ls-files", "-coz", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .map_err(|error| format!("git, which lists the sources, does not run: {error}"))?;
        if !listed.status.success() {
            let why = String::from_utf8_lossy(&listed.stderr);
            return Err(format!("git does not list the sources: {}", why.trim()).into());
        }
        if bench.folder.exists() {
            fs::remove_dir_all(&bench.folder)?;
        }
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let (from, to) = (root.join(name), bench.folder.join(name));
            if from.is_file() {
                fs::create_dir_all(to.parent().ok_or("a file has a folder")?)?;
                fs::copy(&from, &to)?;
            }
        }
        Ok(bench)
    }

    fn cargo(&self, args: &[&str]) -> Result<(bool, String), Failure> {
        let mut command = Command::new("cargo");
        command.args(args).current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target);
        // Each broken ledger is built once and runs for seconds: what counts is the build.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off");
        command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        command.env("CARGO_PROFILE_RELEASE_INCREMENTAL", "true");
        let output = command.output()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        if text.contains("could not compile") {
            return Err(format!("a breakage must compile:\n{text}").into());
        }
        Ok((output.status.success(), text))
    }

    fn try_out(&self) -> Result<Notice, Failure> {
        let test = ["test", "-q", "--locked", "-p", "stint-ledger", "--no-fail-fast"];
        let (_, rows) = self.cargo(&test)?;
        let seeds = SEEDS.to_string();
        let sim = ["run", "-q", "--release", "--locked", "-p", "stint-sim", "--"];
        let args = ["--from", "1", "--seeds", &seeds, "--no-shrink"];
        let (is_clean, seeds) = self.cargo(&[&sim[..], &args].concat())?;
        let failed = seeds.lines().rev().find_map(|line| {
            let (_, rest) = line.split_once(" passed, ")?;
            rest.strip_suffix(" failed")?.parse().ok()
        });
        let seeds: u32 = failed.ok_or_else(|| format!("the simulator did not finish:\n{seeds}"))?;
        if (seeds == 0) != is_clean {
            return Err("the simulator's exit code does not fit what it says".into());
        }
        Ok(Notice { rows: count_failed(&rows)?, seeds })
    }
}

/// The tests that cargo says have failed.
fn count_failed(text: &str) -> Result<usize, Failure> {
    let number = |line: &str| -> Option<usize> {
        let (_, rest) = line.strip_prefix("test result:")?.split_once("passed; ")?;
        rest.split(' ').next()?.parse().ok()
    };
    let counts: Vec<usize> = text.lines().filter_map(number).collect();
    if counts.is_empty() {
        return Err(format!("the tests did not run:\n{text}").into());
    }
    Ok(counts.into_iter().sum())
}
