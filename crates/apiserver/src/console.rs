//! Visits to containers: programs that are run beside them, and what they say themselves. What can be
//! asked for, and who answers; how it goes over a connection is the business of `stream`, and where
//! containers run is that of whoever runs the Pods.

use std::fmt::Debug;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::io::AsyncWrite;

use crate::request::query::Query;
use crate::status::Status;

/// What a visitor wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Run a program beside the container.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// Read what the container writes from now on, and write to its input.
    Attach,
}

/// Which streams a visitor wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// To write to the input.
    pub stdin: bool,
    /// To read the standard output.
    pub stdout: bool,
    /// To read the standard error.
    pub stderr: bool,
    /// To have a terminal.
    pub tty: bool,
}

/// How large a screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How many characters a line has.
    pub columns: u16,
    /// How many lines there are.
    pub rows: u16,
}

/// A visit that is under way. It ends when the output is dropped, and with it the program.
pub struct Session {
    /// Where to write to; dropping it is the end of the input.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// What is written, made as it is read, and at last how it has ended.
    pub output: Pin<Box<dyn Stream<Item = Piece> + Send>>,
    /// What a screen of another size is told to.
    pub resize: Option<Box<dyn Fn(Size) + Send + Sync>>,
}

/// Something that a visitor sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Of the standard output.
    Stdout(Bytes),
    /// Of the standard error.
    Stderr(Bytes),
    /// The program has exited with this code.
    Exited(i32),
    /// Nobody knows how it has ended, and why that is so.
    Lost(String),
}

/// Whoever runs the containers of Pods.
pub trait ConsoleSource: Debug + Send + Sync {
    /// A container of a Pod, if it runs now.
    fn find(&self, pod: &Pod, container: &str) -> Option<Box<dyn Console>>;
}

/// A container that runs.
pub trait Console: Send {
    /// Begins a visit, or says why it cannot be.
    fn visit(
        self: Box<Self>,
        errand: Errand,
        wanted: Wanted,
    ) -> BoxFuture<'static, Result<Session, String>>;
}

/// A visit as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VisitOptions {
    /// To which container; it is one of the Pod's.
    pub(crate) container: String,
    pub(crate) errand: Errand,
    pub(crate) wanted: Wanted,
}

impl VisitOptions {
    /// Reads them from a query, for a Pod that is on a node. What a kubelet would refuse is refused in
    /// its words.
    pub(crate) fn read(query: &Query, pod: &Pod, is_exec: bool) -> Result<Self, Status> {
        let container = choose_container(query.get("container"), pod)?;
        let spec = pod.spec.as_ref();
        if spec.and_then(|spec| spec.node_name.as_deref()).unwrap_or("").is_empty() {
            let name = pod.metadata.name.as_deref().unwrap_or("");
            let message = format!("pod {name} does not have a host assigned");
            return Err(Status::bad_request(message));
        }
        let flag = |name| Ok::<_, Status>(query.flag(name)?.unwrap_or(false));
        let mut wanted = Wanted {
            stdin: flag("stdin")?,
            stdout: flag("stdout")?,
            stderr: flag("stderr")?,
            tty: flag("tty")?,
        };
        if !wanted.stdin && !wanted.stdout && !wanted.stderr {
            let message = "you must specify at least 1 of stdin, stdout, stderr";
            return Err(Status::bad_request(message));
        }
        let errand = if is_exec {
            let command: Vec<String> = query.all("command").map(str::to_owned).collect();
            if command.is_empty() {
                return Err(Status::bad_request("you must specify a command"));
            }
            Errand::Exec { command }
        } else {
            // Whether it has a terminal was settled when it was started.
            wanted.tty = find_container(pod, &container).is_some_and(|it| it.tty == Some(true));
            Errand::Attach
        };
        // A terminal has one output.
        wanted.stderr &= !wanted.tty;
        Ok(VisitOptions { container, errand, wanted })
    }
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    init.chain(spec.map(|spec| &spec.containers).into_iter().flatten())
}

fn find_container<'p>(pod: &'p Pod, name: &str) -> Option<&'p Container> {
    containers(pod).find(|container| container.name == name)
}

/// The container that is named, or the only one. Of those, init containers are not.
pub(crate) fn choose_container(asked: Option<&str>, pod: &Pod) -> Result<String, Status> {
    let pod_name = pod.metadata.name.as_deref().unwrap_or("");
    if let Some(asked) = asked {
        return match find_container(pod, asked) {
            Some(_) => Ok(asked.to_owned()),
            None => {
                let message = format!("container {asked} is not valid for pod {pod_name}");
                Err(Status::bad_request(message))
            }
        };
    }
    match pod.spec.as_ref().map_or(&[][..], |spec| &spec.containers) {
        [only] => Ok(only.name.clone()),
        [] => {
            let message = format!("a container name must be specified for pod {pod_name}");
            Err(Status::bad_request(message))
        }
        _ => {
            let names: Vec<&str> = containers(pod).map(|it| it.name.as_str()).collect();
            let names = names.join(" ");
            Err(Status::bad_request(format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{names}]"
            )))
        }
    }
}
