//! Breaks the ledger on purpose, one way at a time, and shows that its rows and the
//! simulator notice.
//!
//! Works on a copy of the tree under `target/breakages`; the sources themselves are only
//! read. Prints a table for docs/testing.md and fails if a breakage goes unnoticed.

mod breakage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use breakage::{BREAKAGES, Breakage};

/// How many seeds each broken ledger is tried on.
const SEEDS: u32 = 2_000;

/// Something that keeps breakages from being tried.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.iter().any(|arg| arg.starts_with('-')) {
        println!("Breaks the ledger on purpose and shows what notices.\n");
        println!("Usage: cargo run --release -p stint-breakages -- [PART OF A NAME]...\n");
        println!("Example: cargo run --release -p stint-breakages -- finalizer");
        return ExitCode::SUCCESS;
    }
    match try_all(&wanted) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(unnoticed) => {
            eprintln!("{unnoticed} went unnoticed");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("breakages: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn try_all(wanted: &[String]) -> Result<usize, Failure> {
    let bench = Bench::set_up()?;
    let healthy = bench.try_out()?;
    if healthy.is_noticed() {
        return Err("the ledger as it is does not pass: mend that first".into());
    }
    println!(
        "| what was broken | tests of the ledger that fail | seeds of {SEEDS} that show it |\n|---|---|---|"
    );
    let mut unnoticed = 0;
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
        unnoticed += usize::from(!notice.is_noticed());
        println!("| {} | {} | {} |", breakage.name, notice.rows, notice.seeds);
    }
    Ok(unnoticed)
}

/// A copy of the tree to break.
struct Bench {
    folder: PathBuf,
    target: PathBuf,
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
        let bench = Self { folder: place.join("tree"), target: place.join("target") };
        let listed = Command::new("git")
            .args(["ls-files", "-co", "--exclude-standard"])
            .current_dir(&root)
            .output()?;
        if bench.folder.exists() {
            fs::remove_dir_all(&bench.folder)?;
        }
        for name in String::from_utf8(listed.stdout)?.lines() {
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
