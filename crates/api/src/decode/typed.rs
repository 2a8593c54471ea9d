//! From a tree to a Kubernetes type.
//!
//! serde stops at the first error, but an author wants to see all of them. So a
//! value of the wrong type is reported and a stand-in is given to serde, which
//! goes on; afterwards the tree is read once more without the wrong values, as
//! if they had not been written. An error that a type finds by itself ends a
//! pass, and the next one leaves that value out.
//!
//! Null is read as Go's JSON decoder reads it: a field that is null is absent,
//! and in lists and maps null is the type's zero value.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeOwned};

use super::node::Node;
use super::place::Place;
use super::problem::{Problem, ProblemKind, Problems};
use super::{MAX_FIELDS_PER_DOCUMENT, MAX_PROBLEMS_PER_DOCUMENT};
use crate::diagnostic::Span;

/// What came of a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<T> {
    /// The object, without the fields that have problems; in a list, an item
    /// with a problem is the type's zero value, so that positions stay as they
    /// are. `None` if not even that could be made.
    pub value: Option<T>,
    /// What is wrong, in the order of the text.
    pub problems: Vec<Problem>,
}

/// Reads a tree as a type. Unknown fields and values of the wrong type are
/// problems, and all of them are reported.
///
/// ```
/// use k8s_openapi::api::batch::v1::Job;
/// use stint_api::decode;
///
/// let documents = decode::read(b"spec: {paralelism: 2, completions: '3'}");
/// let decoded = decode::decode::<Job>(documents[0].root.as_ref().unwrap());
/// let problems: Vec<String> = decoded.problems.iter().map(|p| p.to_string()).collect();
/// assert_eq!(problems[0], r#"spec.paralelism: unknown field "paralelism""#);
/// assert_eq!(decoded.problems[0].help.as_deref(), Some(r#"did you mean "parallelism"?"#));
/// assert!(problems[1].starts_with("spec.completions: expected a whole number"));
/// ```
pub fn decode<T: DeserializeOwned>(node: &Node) -> Decoded<T> {
    let pass = Pass::default();
    let mut value = None;
    // Each pass but the last finds at least one new problem, and the first one
    // finds nearly all of them.
    for _ in 0..=MAX_PROBLEMS_PER_DOCUMENT {
        if pass.is_left_out(node) {
            break;
        }
        pass.field_count.set(0);
        let left_out_count = pass.left_out_count();
        let root = Place::root(node, &pass);
        match T::deserialize(root).map_err(|fault| fault.at(&root)) {
            Ok(_) if pass.left_out_count() > left_out_count => {}
            Ok(read) => {
                value = Some(read);
                break;
            }
            Err(fault) => {
                if !pass.take_note(fault) {
                    break;
                }
            }
        }
    }
    Decoded { value, problems: pass.problems.into_inner().finish() }
}

/// What all places of one tree share.
#[derive(Debug, Default)]
pub(super) struct Pass {
    problems: RefCell<Problems>,
    /// Values that have a problem, by their address: a tree that is borrowed
    /// does not move.
    reported: RefCell<HashSet<usize>>,
    left_out: RefCell<HashSet<usize>>,
    /// List items that cannot even be null.
    removed: RefCell<HashSet<usize>>,
    /// The fields of all objects that this pass has made.
    field_count: Cell<usize>,
}

impl Pass {
    /// Whether a value is to be passed over.
    pub(super) fn is_left_out(&self, node: &Node) -> bool {
        let left_out = self.left_out.borrow();
        !left_out.is_empty() && left_out.contains(&address(node))
    }

    /// Whether a list item is to be passed over as well.
    pub(super) fn is_removed(&self, node: &Node) -> bool {
        let removed = self.removed.borrow();
        !removed.is_empty() && removed.contains(&address(node))
    }

    fn left_out_count(&self) -> usize {
        self.left_out.borrow().len() + self.removed.borrow().len()
    }

    /// Takes an object of so many fields from the document's budget. An error ends all
    /// passes: no other would fare better.
    pub(super) fn charge(&self, fields: usize, node: &Node) -> Result<(), Fault> {
        self.field_count.set(self.field_count.get() + fields);
        if self.field_count.get() <= MAX_FIELDS_PER_DOCUMENT {
            return Ok(());
        }
        self.report(node, node.span, || {
            let message =
                format!("the objects up to here have more than {MAX_FIELDS_PER_DOCUMENT} fields");
            Problem::new(ProblemKind::Limit, node.span, message).help("split the Job")
        });
        Err(Fault::final_one())
    }

    /// Adds a problem, once for each value.
    pub(super) fn report(&self, node: &Node, span: Span, build: impl FnOnce() -> Problem) {
        if self.reported.borrow_mut().insert(address(node)) {
            self.problems.borrow_mut().add(span, build);
        }
    }

    /// Has the next pass go without this value.
    pub(super) fn leave_out(&self, node: &Node) {
        self.left_out.borrow_mut().insert(address(node));
    }

    /// Notes what ended a pass; `false` if the next one would end the same way.
    fn take_note(&self, fault: Fault) -> bool {
        let Some(cause) = fault.cause else {
            return false;
        };
        let Cause { address, problem } = *cause;
        if self.reported.borrow_mut().insert(address) {
            self.problems.borrow_mut().add(problem.span, || problem);
        }
        self.left_out.borrow_mut().insert(address) || self.removed.borrow_mut().insert(address)
    }
}

fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

/// An error that a type found by itself, and the value it is about.
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    cause: Option<Box<Cause>>,
    /// Whether it has been reported and ends all passes.
    is_final: bool,
}

#[derive(Debug)]
struct Cause {
    address: usize,
    problem: Problem,
}

impl Fault {
    fn final_one() -> Self {
        Self { message: String::new(), cause: None, is_final: true }
    }

    /// Says where the fault was found, unless that is known from further down.
    pub(super) fn at(mut self, place: &Place<'_, '_>) -> Self {
        if self.cause.is_none() && !self.is_final {
            let problem = Problem::new(ProblemKind::Type, place.node.span, self.message.as_str());
            self.cause = Some(Box::new(Cause {
                address: address(place.node),
                problem: problem.at(place.trail.to_field_path()),
            }));
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self { message: message.to_string(), cause: None, is_final: false }
    }
}

#[cfg(test)]
mod tests;
