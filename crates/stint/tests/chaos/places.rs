//! Folders that cannot be written, and a port that somebody else has.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::home::{Home, as_everybody, is_root};
use crate::kit::{Ended, ended, example};

/// Refusals are quick, on a busy machine as well.
const SOON: Duration = Duration::from_secs(30);

/// Runs something that must be refused, with what it needs to be told.
fn refused(home: &Home, arguments: &[&str], words: &[&str]) -> Ended {
    let mut command = home.command(home.program());
    command.args(arguments).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let begun = Instant::now();
    let ended = ended(command.spawn().expect("the binary starts"));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    assert!(home.strays().is_empty(), "{:?}", home.strays());
    ended
}

#[test]
fn a_folder_that_cannot_be_made_is_told_with_the_remedy() {
    as_everybody(|home| {
        let (hello, file) = (example_for(home), home.file("file", "mine"));
        let within = file.join("data");
        for folder in [Path::new("/proc/nowhere"), &within] {
            let folder = folder.to_str().expect("UTF-8");
            let words = [folder, "--data-dir"];
            refused(home, &["serve", "--data-dir", folder], &words);
            refused(home, &["run", "--data-dir", folder, &hello], &words);
        }
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
    });
}

#[test]
fn a_folder_of_somebody_elses_is_told_with_the_remedy() {
    // Whoever is root may write anywhere.
    let home = if is_root() { Home::of_an_ordinary_user() } else { Home::mine() };
    let hello = example_for(&home);
    let closed = home.folder("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("it is ours");
    let within = closed.join("data");
    for folder in [&closed, &within] {
        let folder = folder.to_str().expect("UTF-8");
        let words = [folder, "--data-dir", "Permission denied"];
        refused(&home, &["serve", "--data-dir", folder], &words);
        refused(&home, &["run", "--data-dir", folder, &hello], &words);
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn temporary_files_that_have_no_place_are_told_with_the_remedy() {
    as_everybody(|home| {
        let hello = example_for(home);
        let mut command = home.run_command(&[&hello]);
        let ended = ended(command.env("TMPDIR", "/proc/nowhere").spawn().expect("it starts"));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        for word in ["/proc/nowhere", "TMPDIR"] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        }
    });
}

#[test]
fn a_port_that_somebody_else_has_is_told_with_the_remedy() {
    as_everybody(|home| {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("it has one").to_string();
        let data = home.path("data");
        let data = data.to_str().expect("UTF-8");
        let words = [address.as_str(), "--listen"];
        refused(home, &["serve", "--listen", &address, "--data-dir", data], &words);
        drop(taken);
        // Nothing is left that keeps the next one from serving, and if that is stopped at once
        // there is nothing to complain of.
        let said = fs::File::create(home.path("said")).expect("it is ours");
        let mut command = home.serve(&[]);
        command.stderr(said);
        assert!(home.launch(command).0.stop().success());
        assert_eq!(fs::read_to_string(home.path("said")).expect("it is there"), "");
    });
}

/// A manifest that this user can read.
fn example_for(home: &Home) -> String {
    let text = fs::read_to_string(example("hello.yaml")).expect("it is there");
    home.file("hello.yaml", &text).to_str().expect("UTF-8").to_owned()
}
