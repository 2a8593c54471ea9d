//! Every example does what the comment at its top says.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::kit::home::{Home, is_root};
use crate::kit::{Bench, Ended, ended, example};

/// How many are run at once: most of them wait most of the time.
const AT_ONCE: usize = 4;

/// What is to come of an example. What is not told is not looked at.
#[derive(Clone, Copy)]
struct Expected {
    file: &'static str,
    arguments: &'static [&'static str],
    code: i32,
    /// Fields of the status, as they are printed.
    status: &'static [(&'static str, &'static str)],
    /// A condition that is true: its type and reason, and what is in its message.
    condition: Option<[&'static str; 3]>,
    /// What is said, by containers or by stint.
    says: &'static [&'static str],
}

const USUAL: Expected =
    Expected { file: "", arguments: &[], code: 0, status: &[], condition: None, says: &[] };

const EXAMPLES: &[Expected] = &[
    Expected {
        file: "pod-replacement.yaml",
        status: &[("completedIndexes", "0,1")],
        says: &["[pod-replacement/0] index 0 is done\n", "[pod-replacement/1] index 1 is done\n"],
        ..USUAL
    },
    Expected {
        file: "deadline.yaml",
        code: 1,
        condition: Some(["Failed", "DeadlineExceeded", ""]),
        says: &["This takes too long\n"],
        ..USUAL
    },
    Expected {
        file: "env.yaml",
        status: &[("completedIndexes", "0,1")],
        says: &[
            "in default, of team rockets (rockets@example.com)\n",
            "[env/1] index 1 writes to results/latest/1; $(BUCKET) is left as it is\n",
        ],
        ..USUAL
    },
    Expected {
        file: "execute-all.yaml",
        code: 1,
        status: &[
            ("completedIndexes", "0,3-7"),
            ("failedIndexes", "1,2"),
            ("succeeded", "6"),
            ("failed", "4"),
        ],
        condition: Some(["Failed", "FailedIndexes", ""]),
        ..USUAL
    },
    Expected {
        file: "fail-index.yaml",
        code: 1,
        // Index 4 failed once, and so did index 7 before it succeeded.
        status: &[("completedIndexes", "0-3,5-9"), ("failedIndexes", "4"), ("failed", "2")],
        condition: Some(["Failed", "FailedIndexes", ""]),
        ..USUAL
    },
    Expected { file: "hello.yaml", says: &["Hello from a Job on hello-"], ..USUAL },
    Expected {
        file: "indexed.yaml",
        status: &[("completedIndexes", "0-7")],
        says: &["[indexed/2] Index 2 says hello to Earth\n"],
        ..USUAL
    },
    Expected {
        file: "managed-by.yaml",
        code: 2,
        says: &["spec.managedBy", "use stint serve"],
        ..USUAL
    },
    Expected { file: "many-pods.yaml", status: &[("succeeded", "1000")], ..USUAL },
    Expected {
        file: "max-failed-indexes.yaml",
        code: 1,
        status: &[("failedIndexes", "0-5")],
        condition: Some(["Failed", "MaxFailedIndexesExceeded", ""]),
        ..USUAL
    },
    Expected {
        file: "peers.yaml",
        status: &[("completedIndexes", "0-2")],
        says: &["[peers/2] I am peers-2, my neighbour is peers-0.peers-svc\n"],
        ..USUAL
    },
    Expected {
        file: "pod-failure-policy.yaml",
        // With less, index 1 is tried again before index 2 has failed.
        arguments: &["--pod-failure-backoff-base", "10s"],
        code: 1,
        status: &[("completedIndexes", "0")],
        condition: Some([
            "Failed",
            "PodFailurePolicy",
            "failed with exit code 42 matching FailJob rule at index 0",
        ]),
        ..USUAL
    },
    Expected {
        file: "ring.yaml",
        says: &["[ring/0] round 0,1,2,3,4,5,6,7\n"],
        status: &[("completedIndexes", "0-7")],
        ..USUAL
    },
    Expected {
        file: "static-work.yaml",
        status: &[("completedIndexes", "0-99")],
        says: &["[static-work/1] index 1: the sum of 101 to 200 is 15050\n"],
        ..USUAL
    },
    Expected {
        file: "success-count.yaml",
        status: &[("completedIndexes", "0,1")],
        condition: Some(["SuccessCriteriaMet", "SuccessPolicy", ""]),
        ..USUAL
    },
    Expected {
        file: "success-leader-or-workers.yaml",
        status: &[("completedIndexes", "1-5")],
        condition: Some(["SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 1"]),
        ..USUAL
    },
    Expected {
        file: "success-leader.yaml",
        status: &[("completedIndexes", "0"), ("succeeded", "1")],
        condition: Some(["SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 0"]),
        ..USUAL
    },
    Expected {
        file: "suspend.yaml",
        code: 2,
        says: &["spec.suspend: true", "use stint serve"],
        ..USUAL
    },
    Expected {
        file: "test-suites.yaml",
        code: 1,
        // Suite 3 failed twice, and suite 5 once.
        status: &[("completedIndexes", "0-2,4-9"), ("failedIndexes", "3"), ("failed", "3")],
        condition: Some(["Failed", "FailedIndexes", ""]),
        ..USUAL
    },
    Expected {
        file: "volumes.yaml",
        status: &[("completedIndexes", "0,1")],
        says: &["[volumes/0 main] input for index 0\n", "[volumes/1 main] the file says index 1\n"],
        ..USUAL
    },
    Expected { file: "work-queue.yaml", status: &[("succeeded", "3")], ..USUAL },
];

#[test]
fn every_example_does_what_it_says() {
    let waiting = Mutex::new(EXAMPLES.iter());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(expected) = { waiting.lock().expect("nobody fails").next() } {
                    check(expected, |arguments| Bench::new().run(arguments));
                }
            });
        }
    });
}

/// If root runs the tests. That of a thousand Pods is left to one user.
#[test]
fn every_example_does_what_it_says_for_an_ordinary_user_too() {
    if !is_root() {
        return;
    }
    let waiting = Mutex::new(EXAMPLES.iter().filter(|it| it.file != "many-pods.yaml"));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(expected) = { waiting.lock().expect("nobody fails").next() } {
                    let home = Home::of_an_ordinary_user();
                    check(expected, |arguments| run_at(&home, arguments));
                }
            });
        }
    });
}

/// Runs an example, the last of the arguments, as somebody who may not be able to read it where it
/// is.
fn run_at(home: &Home, arguments: &[&str]) -> Ended {
    let (path, arguments) = arguments.split_last().expect("there is an example");
    let text = std::fs::read_to_string(path).expect("it is there");
    let mut command = home.run_command(arguments);
    ended(command.arg(home.file("job.yaml", &text)).spawn().expect("the binary starts"))
}

#[test]
fn every_example_is_tried() {
    let folder = example("");
    let entries = std::fs::read_dir(Path::new(&folder)).expect("it is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let there: BTreeSet<String> = names
        .map(|name| name.into_string().expect("it is UTF-8"))
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    let tried: BTreeSet<String> = EXAMPLES.iter().map(|it| it.file.to_owned()).collect();
    assert_eq!(there, tried);
}

fn check(expected: &Expected, run: impl Fn(&[&str]) -> Ended) {
    let file = expected.file;
    let path = example(file);
    let arguments = [&["--logs", "-o", "json"], expected.arguments, &[&path]].concat();
    let ended = run(&arguments);
    assert_eq!(ended.code, Some(expected.code), "{file}: {ended:?}");
    for text in expected.says {
        assert!(ended.stderr.contains(text), "{file}: {text}: {ended:?}");
    }
    if expected.code == 2 {
        return;
    }
    let status = &ended.json()["status"];
    for (field, value) in expected.status {
        let found = match &status[field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(found, *value, "{file}: {field}: {ended:?}");
    }
    let end = if expected.code == 0 { ["Complete", "", ""] } else { ["Failed", "", ""] };
    for [kind, reason, message] in [Some(end), expected.condition].into_iter().flatten() {
        let conditions = status["conditions"].as_array().expect("it has ended");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_there = conditions.iter().any(|it| {
            it["type"] == kind
                && it["status"] == "True"
                && text(&it["reason"]).contains(reason)
                && text(&it["message"]).contains(message)
        });
        assert!(is_there, "{file}: {kind} {reason} {message}: {ended:?}");
    }
}
