//! Tells the program which commit it is built from, and when that was made. Nothing here depends
//! on when or where it is built, so that the same sources give the same program; and nothing
//! fails where neither git nor its folder is there.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["STINT_BUILD_COMMIT", "STINT_BUILD_DATE"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    // What HEAD means changes with each of its moves, and so does this file.
    if let Some(moves) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={moves}");
    }
    let commit = given("STINT_BUILD_COMMIT").or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let date = given("STINT_BUILD_DATE").or_else(|| {
        git(&["-c", "log.showSignature=false", "log", "-1", "--format=%cd", "--date=short"])
    });
    let unknown = || "unknown".to_owned();
    println!("cargo:rustc-env=STINT_COMMIT={}", commit.unwrap_or_else(unknown));
    println!("cargo:rustc-env=STINT_DATE={}", date.unwrap_or_else(unknown));
}

fn given(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| is_word(value))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && is_word(&text)).then_some(text)
}

/// A line of an environment variable, and of a header.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())
}
