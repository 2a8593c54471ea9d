//! What came of scenarios, a line each.

use std::time::Duration;

/// What came of scenarios so far.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    failed: Vec<String>,
}

impl Report {
    /// Tells of a scenario.
    pub fn tell(&mut self, scenario: &str, took: Duration, result: Result<(), String>) {
        let seconds = took.as_secs_f64();
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("ok      {scenario:<34} {seconds:>6.1} s");
            }
            Err(why) => {
                println!("FAILED  {scenario:<34} {seconds:>6.1} s");
                why.lines().for_each(|line| println!("        {line}"));
                self.failed.push(scenario.to_owned());
            }
        }
    }

    /// Tells whether stint and the built-in controller leave the same.
    pub fn compare(&mut self, scenario: &str, took: Duration, differences: &[String]) {
        let result = match differences {
            [] => Ok(()),
            _ => Err(format!("stint leaves\n{}", differences.join("\n"))),
        };
        self.tell(&format!("{scenario} compared"), took, result);
    }

    /// Takes in what another tells of.
    pub fn add(&mut self, other: Report) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
    }

    /// How many have failed.
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Tells of all of them together.
    pub fn conclude(&self, took: Duration) {
        let (passed, failed, seconds) = (self.passed, self.failed.len(), took.as_secs_f64());
        println!("\n{passed} passed, {failed} failed, in {seconds:.1} s");
        for name in &self.failed {
            println!("  failed: {name}");
        }
    }
}
