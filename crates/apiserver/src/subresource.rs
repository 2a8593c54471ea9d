//! Parts of Pods that are no part of what is stored: binding, eviction, logs and visits.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{Response, StatusCode};
use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use stint_api::pod_conditions::set_evicted;
use stint_api::validation::binding::validate_binding;

use crate::answer::{Body, answer};
use crate::api::Api;
use crate::console::{Console, ConsoleSource, VisitOptions};
use crate::decode::{self, Format};
use crate::kind::{Names, Part};
use crate::kinds;
use crate::log::{LogOptions, LogText};
use crate::object::Object;
use crate::request::delete_options::DeleteOptions;
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::status::Status;
use crate::verb::delete::check_preconditions;
use crate::verb::{Which, metadata};

/// What a binding is called; it is stored nowhere.
pub(crate) const BINDING: Names = Names {
    group: "",
    version: "v1",
    kind: "Binding",
    plural: "pods/binding",
    singular: "binding",
    short_names: &[],
    categories: &[],
    is_namespaced: true,
};

/// What an eviction is called; it is stored nowhere, either.
pub(crate) const EVICTION: Names = Names {
    group: "policy",
    version: "v1",
    kind: "Eviction",
    plural: "pods/eviction",
    singular: "eviction",
    ..BINDING
};

impl Api {
    /// Binds a Pod to a node. Only the body names the Pod if the path does not.
    pub(crate) async fn bind(
        &self,
        namespace: &str,
        name: Option<&str>,
        body: &[u8],
        format: Format,
        options: WriteOptions,
    ) -> Result<(), Status> {
        let decoded = decode::body::<Binding>(body, format, options.validation, &BINDING)?;
        let mut binding = decoded.object;
        metadata::set_namespace(&mut binding.metadata, &BINDING, Some(namespace))?;
        let given = binding.metadata.name.as_deref().unwrap_or("");
        let name = name.unwrap_or(given);
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        if given != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let errors = validate_binding(&binding);
        if !errors.is_empty() {
            return Err(Status::invalid_of("", "Binding", name, &errors));
        }
        let now = Time(self.now());
        let which =
            Which { kind: kinds::pods(), namespace: Some(namespace), name, part: Part::Whole };
        self.change(which, options.is_dry_run, |object| {
            check_means(&binding, object, name)?;
            stint_api::binding::bind(object.expect_mut::<Pod>(), &binding, &now)
                .map_err(|error| Status::conflict(&BINDING, name, error))
        })
        .await?;
        Ok(())
    }

    /// Evicts a Pod: marks it, and deletes it as the eviction says. There are no disruption budgets here
    /// that could object.
    pub(crate) async fn evict(
        &self,
        namespace: &str,
        name: &str,
        body: &[u8],
        format: Format,
        query: &Query,
    ) -> Result<(), Status> {
        let write = WriteOptions::read(query, "CreateOptions", "")?;
        let decoded = decode::body::<Eviction>(body, format, write.validation, &EVICTION)?;
        let mut eviction = decoded.object;
        metadata::set_namespace(&mut eviction.metadata, &EVICTION, Some(namespace))?;
        if eviction.metadata.name.as_deref() != Some(name) {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = match eviction.delete_options {
            None => DeleteOptions::default(),
            Some(given) => DeleteOptions::of(given)?,
        };
        options.is_dry_run |= write.is_dry_run;
        let which =
            Which { kind: kinds::pods(), namespace: Some(namespace), name, part: Part::Whole };
        if !options.is_dry_run {
            let now = Time(self.now());
            let marked = self.change(which, false, |object| {
                let version = object.meta().resource_version.clone().unwrap_or_default();
                check_preconditions(which.kind, object, &version, &options)?;
                set_evicted(object.expect_mut::<Pod>(), &now);
                Ok(())
            });
            let revision = marked.await?.revision;
            if options.resource_version.is_some() {
                options.resource_version = revision.map(|revision| revision.to_string());
            }
        }
        self.delete(which, &options).await?;
        Ok(())
    }

    /// What somebody wants of a container of a Pod, and the container if it runs.
    pub(crate) fn visited(
        &self,
        namespace: &str,
        name: &str,
        query: &Query,
        is_exec: bool,
        consoles: Option<&dyn ConsoleSource>,
    ) -> Result<(VisitOptions, Box<dyn Console>), Status> {
        let current = self.current(kinds::pods(), Some(namespace), name)?;
        let pod = current.object.expect_ref::<Pod>();
        let options = VisitOptions::read(query, pod, is_exec)?;
        let console = consoles.and_then(|consoles| consoles.find(pod, &options.container));
        let console = console.ok_or_else(|| {
            // A kubelet's words, and those of kubectl around them.
            let container = &options.container;
            let message =
                format!("unable to upgrade connection: container not found ({container:?})");
            Status::bad_request(message)
        })?;
        Ok((options, console))
    }

    /// The log of a container of a Pod.
    pub(crate) fn log(
        &self,
        namespace: &str,
        name: &str,
        query: &Query,
        guard: impl Send + 'static,
    ) -> Result<Response<Body>, Status> {
        let current = self.current(kinds::pods(), Some(namespace), name)?;
        let pod = current.object.expect_ref::<Pod>();
        let options = LogOptions::read(query, pod, self.clock.now())?;
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.as_deref()).unwrap_or("");
        if node.is_empty() {
            // A Pod that is nowhere has written nothing.
            let mut nothing = Response::new(Body::empty());
            *nothing.status_mut() = StatusCode::NO_CONTENT;
            return Ok(nothing);
        }
        // Whoever keeps the logs says what is wrong in a kubelet's words.
        let text = self.logs.open(pod, &options).map_err(Status::bad_request)?;
        Ok(answer(
            StatusCode::OK,
            "text/plain",
            Body::stream(Guarded { text, _guard: guard }.take_until(Box::pin(self.drained()))),
        ))
    }
}

/// A log, and what is dropped when it ends, whoever ends it.
struct Guarded<G> {
    text: LogText,
    _guard: G,
}

impl<G> Unpin for Guarded<G> {}

impl<G> Stream for Guarded<G> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.text.as_mut().poll_next(context)
    }
}

/// A binding that names a uid or a version means that Pod, at that version.
fn check_means(binding: &Binding, pod: &dyn Object, name: &str) -> Result<(), Status> {
    let (asked, found) = (&binding.metadata, pod.meta());
    let differs = |asked: &Option<String>, found: &Option<String>| {
        asked.as_ref().is_some_and(|asked| !asked.is_empty() && Some(asked) != found.as_ref())
    };
    if differs(&asked.uid, &found.uid) {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            asked.uid.as_deref().unwrap_or(""),
            found.uid.as_deref().unwrap_or("")
        );
        return Err(Status::conflict(kinds::pods().names(), name, why));
    }
    if differs(&asked.resource_version, &found.resource_version) {
        return Err(Status::modified(kinds::pods().names(), name));
    }
    Ok(())
}
