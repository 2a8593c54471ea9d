//! One request, from what it asks for to its answer.

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, HeaderName, HeaderValue, IF_NONE_MATCH,
    LOCATION, USER_AGENT, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};
use stint_api::field_error::FieldError;
use stint_api::field_path::Path;
use stint_store::Revision;

use super::places::Client;
use super::{Inner, Share};
use crate::access::{Attributes, Identity, Peer, authorize};
use crate::answer::{
    self, Body, JSON, Layout, Managed, Shown, answer, entity_tag, mark_gzip, not_modified,
    status_answer, takes_gzip, written,
};
use crate::api::{Written, key};
use crate::audit::Record;
use crate::decode::{FieldValidation, Format, check_json, repeated_fields, strange_members};
use crate::discovery;
use crate::health;
use crate::kind::{AnyKind, Part};
use crate::metrics::RequestLabels;
use crate::openapi::{self, Found};
use crate::patch::{Patch, PatchType};
use crate::request::delete_options::DeleteOptions;
use crate::request::list_options::{ListOptions, read_version};
use crate::request::media::{
    ANSWERED, AnswerFormat, Count, MediaRange, Shape, View, accepted_format, body_format,
};
use crate::request::query::Query;
use crate::request::target::{Resource, Target, Verb};
use crate::request::write_options::WriteOptions;
use crate::review::Review;
use crate::status::Status;
use crate::stream::{self, Conversation, Patience, Takeover};
use crate::verb::apply::ApplyPatch;
use crate::verb::list::Listed;
use crate::verb::{Change, Which, patch_failed};

/// How often somebody in a container hears from the server. kubectl gives up after a minute without.
const SIGN_OF_LIFE: std::time::Duration = std::time::Duration::from_secs(10);

/// How long a description may be kept under its hash.
const YEAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 60 * 60);

/// A request whose target is known.
pub(super) struct Call<'r> {
    server: &'r Inner,
    method: &'r Method,
    headers: &'r HeaderMap,
    path: &'r str,
    peer: Option<&'r Peer>,
    takeover: Option<&'r Takeover>,
    managed: Managed,
    /// What becomes of fields that there are not, if the request does not say.
    validation: FieldValidation,
    /// Who asks, for whomever.
    caller: &'r str,
    identity: &'r Identity,
    query: Query,
    target: Target<'r>,
    verb: Option<Verb>,
}

impl<'r> Call<'r> {
    pub(super) fn new(
        server: &'r Inner,
        parts: &'r Parts,
        path: &'r str,
        caller: &'r str,
        identity: &'r Identity,
    ) -> Result<Self, Status> {
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let is_watch = query.flag("watch")?.unwrap_or(false);
        let target = Target::of(path);
        let verb = match &target {
            Target::Resource(resource) => Verb::of(&parts.method, resource, is_watch),
            Target::Bindings(_) => (parts.method == Method::POST).then_some(Verb::Create),
            Target::Review(_) => match parts.method {
                Method::POST => Some(Verb::Create),
                Method::GET => Some(Verb::List),
                Method::DELETE => Some(Verb::DeleteCollection),
                _ => None,
            },
            Target::Discovery(_) | Target::Path(_) | Target::Unknown => None,
        };
        let (method, headers) = (&parts.method, &parts.headers);
        let peer = parts.extensions.get::<Peer>();
        let takeover = parts.extensions.get::<Takeover>();
        let managed = parts.extensions.get().copied().unwrap_or(Managed::Shown);
        let validation = parts.extensions.get().copied().unwrap_or(FieldValidation::Warn);
        Ok(Call {
            server,
            method,
            headers,
            path,
            peer,
            takeover,
            managed,
            validation,
            caller,
            identity,
            query,
            target,
            verb,
        })
    }

    /// Whose places it takes.
    pub(super) fn share(&self) -> &'r Share {
        match self.peer {
            Some(Peer::InProcess(_)) => &self.server.inside,
            Some(Peer::Remote { .. }) | None => &self.server.outside,
        }
    }

    /// Whom it shares a turn with: whoever asks, also on behalf of others, or each name that there is not
    /// would have turns of its own.
    pub(super) fn client(&self) -> Client {
        let address = match self.peer {
            Some(Peer::Remote { address, .. }) => Some(*address),
            Some(Peer::InProcess(_)) | None => None,
        };
        Client { user: self.caller.to_owned(), address }
    }

    /// What the request is counted by.
    pub(super) fn label(&self, labels: &mut RequestLabels) {
        let names = match &self.target {
            Target::Resource(resource) => resource.kind.names(),
            Target::Review(review) => review.names(),
            Target::Bindings(_) | Target::Discovery(_) | Target::Path(_) | Target::Unknown => {
                return;
            }
        };
        if let Some(verb) = self.verb {
            labels.group = names.group;
            labels.resource = names.plural;
            // As Kubernetes counts it, whatever the method.
            labels.verb = if self.is_visit() { "connect" } else { verb.as_str() };
        }
    }

    /// What everybody is told who uses the kind.
    pub(super) fn deprecation(&self) -> Option<&'static str> {
        match &self.target {
            Target::Resource(resource) => resource.kind.manners().deprecation,
            Target::Bindings(_)
            | Target::Review(_)
            | Target::Discovery(_)
            | Target::Path(_)
            | Target::Unknown => None,
        }
    }

    /// Whether whoever asks may do this.
    pub(super) fn authorize(&self) -> Result<(), Status> {
        self.authorize_named(None)
    }

    /// Writes down what the request is about.
    pub(super) fn describe(&self, record: &mut Record, is_allowed: bool) {
        let method = self.method.as_str().to_ascii_lowercase();
        let version = match &self.target {
            Target::Resource(resource) => resource.kind.names().version,
            Target::Bindings(_) => "v1",
            Target::Review(review) => review.names().version,
            Target::Discovery(_) | Target::Path(_) | Target::Unknown => "",
        };
        record.about(&self.attributes(self.verb, &method, None), version, is_allowed);
    }

    /// What the request is judged by. `method` is its own in lower case.
    fn attributes<'a>(
        &'a self,
        verb: Option<Verb>,
        method: &'a str,
        created: Option<&'a str>,
    ) -> Attributes<'a> {
        match &self.target {
            Target::Resource(resource) => {
                let names = resource.kind.names();
                Attributes {
                    verb: verb.map_or(method, |verb| verb.as_str()),
                    group: names.group,
                    resource: names.plural,
                    subresource: resource.subresource,
                    namespace: resource.namespace,
                    name: created.or(resource.name),
                    path: self.path,
                }
            }
            Target::Bindings(namespace) => Attributes {
                verb: Verb::Create.as_str(),
                resource: "pods",
                subresource: Some("binding"),
                namespace: Some(namespace),
                path: self.path,
                ..Attributes::default()
            },
            Target::Review(review) => Attributes {
                verb: self.verb.map_or(method, |verb| verb.as_str()),
                group: review.names().group,
                resource: review.names().plural,
                path: self.path,
                ..Attributes::default()
            },
            Target::Discovery(_) | Target::Path(_) | Target::Unknown => {
                Attributes::of_path(method, self.path)
            }
        }
    }

    /// The same of a creation, whose address does not say what the object is called.
    fn authorize_named(&self, created: Option<&str>) -> Result<(), Status> {
        self.authorize_as(self.verb, created)
    }

    /// The same of another verb than that of the request.
    fn authorize_as(&self, verb: Option<Verb>, created: Option<&str>) -> Result<(), Status> {
        let method = self.method.as_str().to_ascii_lowercase();
        let attributes = self.attributes(verb, &method, created);
        authorize(self.identity, &attributes).map_err(|forbidden| {
            let message = forbidden.to_string();
            match &self.target {
                Target::Resource(resource) => {
                    let name = created.or(resource.name).unwrap_or("");
                    Status::denied(resource.kind.names(), name, message)
                }
                Target::Review(review) => Status::denied(review.names(), "", message),
                Target::Bindings(_) | Target::Discovery(_) | Target::Path(_) | Target::Unknown => {
                    Status::forbidden_path(message)
                }
            }
        })
    }

    /// Whether the answer may take any time.
    pub(super) fn is_long_running(&self) -> bool {
        let is_log =
            matches!(&self.target, Target::Resource(found) if found.subresource == Some("log"));
        self.verb == Some(Verb::Watch) || is_log || self.is_visit()
    }

    /// Whether it is to take its connection over.
    fn is_visit(&self) -> bool {
        let part = match &self.target {
            Target::Resource(found) => found.subresource,
            _ => None,
        };
        matches!(part, Some("exec" | "attach")) && *self.method != Method::DELETE
    }

    /// Whether there is something to be read.
    pub(super) fn reads_body(&self) -> bool {
        self.verb.is_some_and(|verb| !verb.is_read())
    }

    /// Carries the request out.
    pub(super) async fn run(&self, body: &Bytes) -> Result<Response<Body>, Status> {
        match &self.target {
            Target::Resource(resource) => self.resource(resource, body).await,
            Target::Bindings(namespace) => {
                self.verb.ok_or_else(Status::method_not_allowed)?;
                self.bind(namespace, None, body).await
            }
            Target::Review(review) => self.review(*review, body),
            Target::Discovery(path) => self.discover(path),
            Target::Path("/metrics") => {
                self.only_reads()?;
                let text = self.server.metrics.text(self.server.api.store.revision().get());
                let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                Ok(answer(StatusCode::OK, media_type, Body::from(Bytes::from(text))))
            }
            Target::Path(path) if path.starts_with("/openapi") => self.openapi(path).await,
            Target::Path(path) => {
                if let Some(answer) = health::answer_one(path, &self.server.api) {
                    self.only_reads()?;
                    return Ok(answer);
                }
                let document = match *path {
                    "/version" => Some(discovery::version()),
                    "/" => Some(json!({"paths": discovery::paths()})),
                    _ => None,
                };
                self.plain(document, Shape { is_pretty: self.is_pretty(), ..Shape::PLAIN })
            }
            Target::Unknown => Err(Status::no_such_path()),
        }
    }

    /// Groups and resources; in one document for who asks for that.
    fn discover(&self, path: &str) -> Result<Response<Body>, Status> {
        let whole = discovery::wants_aggregated(self.header(ACCEPT))
            .and_then(|format| Some((discovery::aggregated(path)?, format)));
        let Some((value, format)) = whole else {
            let shape = self.shape()?;
            return self.plain(discovery::discover(path), shape);
        };
        self.only_reads()?;
        let json = Bytes::from(serde_json::to_vec(&value).expect("JSON serialises"));
        let tag = entity_tag(&json);
        let shape = Shape { view: View::Whole, format, is_pretty: self.is_pretty() };
        let mut answer = if self.header(IF_NONE_MATCH) == Some(&tag) {
            not_modified()
        } else {
            let mut answer = written(StatusCode::OK, json, shape);
            let media_type = answer::media_type(format);
            let told = format!("{media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
            let told = HeaderValue::from_str(&told).expect("a header");
            answer.headers_mut().insert(CONTENT_TYPE, told);
            answer
        };
        let headers = answer.headers_mut();
        headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits"));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        Ok(answer)
    }

    /// A description of the API, which clients may keep.
    async fn openapi(&self, path: &str) -> Result<Response<Body>, Status> {
        let (place, accept) = (path.to_owned(), self.header(ACCEPT).map(str::to_owned));
        let is_gzip = takes_gzip(self.headers);
        // Whoever is first waits until it is made; nobody else does.
        let finding = tokio::task::spawn_blocking(move || {
            let found = openapi::find(&place, accept.as_deref());
            if let (true, Some(Found::Document(document) | Found::Part(document))) =
                (is_gzip, &found)
            {
                document.gzipped();
            }
            found
        });
        let found = finding.await.expect("making a description does not fail");
        let found = found.ok_or_else(Status::no_such_path)?;
        self.only_reads()?;
        let (document, is_part) = match found {
            Found::Document(document) => (document, false),
            Found::Part(document) => (document, true),
            Found::NotAcceptable => {
                let mut nothing = Response::new(Body::empty());
                *nothing.status_mut() = StatusCode::NOT_ACCEPTABLE;
                nothing.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
                return Ok(nothing);
            }
        };
        let hash = self.query.get("hash").filter(|_| is_part);
        let mut found = if hash.is_some_and(|hash| hash != document.hash()) {
            // An address that somebody has kept, of what is not so any more.
            let place = format!("{}?hash={}", path.trim_end_matches('/'), document.hash());
            let mut elsewhere = Response::new(Body::empty());
            *elsewhere.status_mut() = StatusCode::MOVED_PERMANENTLY;
            let place = HeaderValue::from_str(&place).expect("a path and hexadecimal digits");
            elsewhere.headers_mut().insert(LOCATION, place);
            elsewhere
        } else if self.header(IF_NONE_MATCH) == Some(&document.tag) {
            not_modified()
        } else if is_gzip {
            let body = Body::from(document.gzipped());
            let mut found = answer(StatusCode::OK, document.media_type, body);
            mark_gzip(found.headers_mut());
            found
        } else {
            answer(StatusCode::OK, document.media_type, Body::from(document.bytes.clone()))
        };
        let headers = found.headers_mut();
        headers.insert(ETAG, HeaderValue::from_str(&document.tag).expect("hexadecimal digits"));
        headers.append(VARY, HeaderValue::from_static("Accept"));
        if hash == Some(document.hash()) {
            let forever = HeaderValue::from_static("public, immutable");
            headers.insert(CACHE_CONTROL, forever);
            let until = self.server.api.now() + YEAR;
            let until = until.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            headers.insert(EXPIRES, HeaderValue::from_str(&until).expect("a time"));
        }
        Ok(found)
    }

    /// What a caller asks about itself. Nobody prints these as tables.
    fn review(&self, review: Review, body: &[u8]) -> Result<Response<Body>, Status> {
        if self.verb != Some(Verb::Create) {
            return Err(Status::method_not_allowed());
        }
        let options = self.write_options("CreateOptions", Vec::new())?;
        let accept = self.header(ACCEPT).unwrap_or("*/*");
        let ranges: Vec<&str> = accept
            .split(',')
            .filter(|range| MediaRange::read(range).parameter("as") != Some("Table"))
            .collect();
        if ranges.is_empty() {
            return Err(Status::not_acceptable_view(&ANSWERED));
        }
        let shape = Shape::negotiate(Some(&ranges.join(",")), None, self.is_pretty())?;
        let (format, now) = (self.format()?, self.server.api.now());
        let answered = review.answer(self.identity, now, body, format, options.validation)?;
        let object = match shape.view {
            View::Metadata(Count::One) => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": answered.object["metadata"],
            }),
            View::Metadata(Count::Many) => {
                return Err(Status::not_acceptable_shape(review.names(), false));
            }
            View::Whole | View::Table(_) => answered.object,
        };
        let json = Bytes::from(serde_json::to_vec(&object).expect("JSON serialises"));
        let mut answer = written(StatusCode::CREATED, json, shape);
        answer::add_warnings(&mut answer, &answered.warnings);
        Ok(answer)
    }

    fn only_reads(&self) -> Result<(), Status> {
        match *self.method {
            Method::GET | Method::HEAD => Ok(()),
            _ => Err(Status::method_not_allowed()),
        }
    }

    async fn resource(
        &self,
        resource: &Resource<'_>,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let kind = resource.kind;
        let verb = self.verb.ok_or_else(Status::method_not_allowed)?;
        let Some(subresource) = resource.subresource else {
            return self.whole(resource, verb, body).await;
        };
        let name = resource.name.expect("a part is a part of something");
        let namespace = resource.namespace.unwrap_or("");
        let has_part = discovery::parts(kind).iter().any(|(part, ..)| *part == subresource);
        match (subresource, verb) {
            _ if !has_part => Err(Status::no_such_path()),
            ("status", Verb::Get) => self.get(resource, name),
            ("status", Verb::Update | Verb::Patch) => {
                self.update(resource, name, verb, Part::Status, body).await
            }
            ("finalize", Verb::Update) => {
                self.update(resource, name, verb, Part::Finalize, body).await
            }
            ("log", Verb::Get) => {
                let guard = self.long_running()?;
                self.server.api.log(namespace, name, &self.query, guard)
            }
            ("exec" | "attach", Verb::Get | Verb::Create) => {
                self.visit(namespace, name, subresource == "exec")
            }
            ("binding", Verb::Create) => self.bind(namespace, Some(name), body).await,
            ("eviction", Verb::Create) => {
                let format = self.format()?;
                self.server.api.evict(namespace, name, body, format, &self.query).await?;
                Ok(status_answer(&Status::created(), self.accepted_format()))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Goes on with a visit to a container instead of HTTP. What is wrong is said before it is looked at
    /// how the client wants to go on: who has been refused one way tries another, and is to learn why.
    fn visit(&self, namespace: &str, name: &str, is_exec: bool) -> Result<Response<Body>, Status> {
        // A GET can run something, too: whoever may only read may not.
        self.authorize_as(Some(Verb::Create), None)?;
        let server = self.server;
        let consoles = server.consoles.get().map(|consoles| &**consoles);
        let visited = server.api.visited(namespace, name, &self.query, is_exec, consoles);
        let (options, console) = visited?;
        let running = self.long_running()?;
        // Each visit has a connection of its own, so they are shared by users.
        let visitor = Client { address: None, ..self.client() };
        let place = server.visits.take(visitor).map_err(|_| {
            let most = server.limits.visits;
            let why = format!(
                "of the {most} visits to containers that can be under way none is left for you, please \
                 try again later"
            );
            Status::too_many_requests(why, 1)
        })?;
        let agreed = stream::negotiate(self.headers)?;
        let Some(takeover) = self.takeover else {
            return Err(Status::bad_request("Upgrade request required, over HTTP/1.1"));
        };
        let patience =
            Patience { idle_time: server.limits.visit_idle_time, sign_of_life: SIGN_OF_LIFE };
        let conversation = Conversation::new(&agreed, console, options, patience);
        let drained = server.api.drained();
        takeover.hold((running, place));
        takeover.go_on(move |connection| conversation.run(connection, drained));
        Ok(stream::accept(&agreed))
    }

    async fn bind(
        &self,
        namespace: &str,
        name: Option<&str>,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options("CreateOptions", Vec::new())?;
        self.server.api.bind(namespace, name, body, self.format()?, options).await?;
        Ok(status_answer(&Status::created(), self.accepted_format()))
    }

    async fn whole(
        &self,
        resource: &Resource<'_>,
        verb: Verb,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, name, .. } = *resource;
        let names = kind.names();
        let is_everywhere = names.is_namespaced && namespace.is_none();
        let named = || name.ok_or_else(Status::method_not_allowed);
        match verb {
            Verb::Get => self.get(resource, named()?),
            Verb::List => self.list(resource).await,
            Verb::Watch => self.watch(resource).await,
            Verb::Create | Verb::DeleteCollection if is_everywhere => {
                Err(Status::method_not_allowed())
            }
            Verb::Create => {
                let options = self.write_options("CreateOptions", Vec::new())?;
                let shape = self.shape_of(kind, Count::One)?;
                let decoded = kind.decode(body, self.format()?, options.validation)?;
                let name = decoded.object.meta().name.as_deref().unwrap_or("");
                self.authorize_named(Some(name))?;
                let made = self.server.api.create(kind, namespace, decoded, options).await?;
                Ok(self.show(kind, shape, &made))
            }
            Verb::Update | Verb::Patch => {
                self.update(resource, named()?, verb, Part::Whole, body).await
            }
            Verb::Delete => self.delete(resource, named()?, body).await,
            Verb::DeleteCollection if !kind.manners().deletes_collections => {
                Err(Status::method_not_allowed())
            }
            Verb::DeleteCollection => self.delete_collection(resource, body).await,
        }
    }

    fn get(&self, resource: &Resource<'_>, name: &str) -> Result<Response<Body>, Status> {
        let kind = resource.kind;
        let shape = self.shape_of(kind, Count::One)?;
        let api = &self.server.api;
        if let Some(version) = self.query.get("resourceVersion") {
            api.check_reached(read_version(version)?)?;
        }
        let entry = api
            .store
            .get(&key(kind, resource.namespace, name))
            .ok_or_else(|| Status::not_found(kind.names(), name))?;
        let json = self.shown(kind, shape).one(&kind.as_stored(&entry), Some(entry.modified));
        Ok(written(StatusCode::OK, json, shape))
    }

    async fn list(&self, resource: &Resource<'_>) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, .. } = *resource;
        let shape = self.shape_of(kind, Count::Many)?;
        let options = ListOptions::read(&self.query, kind, false)?;
        let listed = self.server.api.list(kind, namespace, &options).await?;
        Ok(self.show_list(kind, shape, listed))
    }

    fn show_list(
        &self,
        kind: &'static dyn AnyKind,
        shape: Shape,
        listed: Listed,
    ) -> Response<Body> {
        let body = answer::list_body(self.shown(kind, shape), Layout::of(shape), listed);
        answer(StatusCode::OK, answer::media_type(shape.format), body)
    }

    async fn watch(&self, resource: &Resource<'_>) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, .. } = *resource;
        let shape = self.shape()?;
        let options = ListOptions::read(&self.query, kind, true)?;
        let guard = self.long_running()?;
        let watching = self.server.api.watch(kind, namespace, &options).await?;
        let recent = self.server.recent.clone();
        let unread = self.share().unread.as_ref();
        let body = answer::watch_body(self.shown(kind, shape), recent, watching, unread, guard);
        Ok(answer(StatusCode::OK, JSON, body))
    }

    async fn update(
        &self,
        resource: &Resource<'_>,
        name: &str,
        verb: Verb,
        part: Part,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, .. } = *resource;
        let shape = self.shape_of(kind, Count::One)?;
        let (change, options) = if verb == Verb::Patch {
            self.patch(name, body)?
        } else {
            let options = self.write_options("UpdateOptions", Vec::new())?;
            let decoded = kind.decode(body, self.format()?, options.validation)?;
            let may_create = match kind.manners().creates_on_update {
                true => self.authorize_as(Some(Verb::Create), Some(name)),
                false => Ok(()),
            };
            (Change::Replace { decoded, may_create }, options)
        };
        let which = Which { kind, namespace, name, part };
        let made = self.server.api.update(which, change, options).await?;
        Ok(self.show(kind, shape, &made))
    }

    /// What a patch asks for.
    fn patch(&self, name: &str, body: &Bytes) -> Result<(Change, WriteOptions), Status> {
        let header = self.header(CONTENT_TYPE).unwrap_or("");
        let patch_type = PatchType::from_content_type(header);
        let force = self.query.flag("force")?;
        let mut errors = Vec::new();
        match patch_type {
            Some(_) if force.is_some() => {
                let detail = "may not be specified for non-apply patch";
                errors.push(FieldError::forbidden(&Path::field("force"), detail));
            }
            None if media_type(header) != ApplyPatch::MEDIA_TYPE => {
                return Err(Status::unsupported_patch_type());
            }
            None if self.query.get("fieldManager").unwrap_or("").is_empty() => {
                let detail = "is required for apply patch";
                errors.push(FieldError::required(&Path::field("fieldManager"), detail));
            }
            Some(_) | None => {}
        }
        let options = self.write_options("PatchOptions", errors)?;
        check_json(body)?;
        let change = match patch_type {
            Some(patch_type) => {
                let patch = Patch::read(patch_type, body).map_err(patch_failed)?;
                let is_about_owners = may_be_about_owners(patch_type, body);
                let mut repeated = repeated_fields(body, options.validation);
                if patch_type == PatchType::Json && options.validation != FieldValidation::Ignore {
                    let found = repeated.iter().map(|words| format!("json patch {words}"));
                    repeated = found.chain(strange_members(body)).collect();
                }
                Change::Patch { patch, repeated, is_about_owners }
            }
            None => {
                let may_create = self.authorize_as(Some(Verb::Create), Some(name));
                let (manager, force) = (options.manager.clone(), force.unwrap_or(false));
                Change::Apply(ApplyPatch::read(body, manager, force, may_create)?)
            }
        };
        Ok((change, options))
    }

    async fn delete(
        &self,
        resource: &Resource<'_>,
        name: &str,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, .. } = *resource;
        let shape = self.shape_of(kind, Count::One)?;
        let options = self.delete_options(body)?;
        let which = Which { kind, namespace, name, part: Part::Whole };
        let deleted = self.server.api.delete(which, &options).await?;
        if deleted.is_gone && !kind.manners().returns_deleted {
            let status = Status::deleted(kind.names(), name, &deleted.uid);
            return Ok(status_answer(&status, shape.format));
        }
        let is_accepted = !deleted.is_gone && options.is_accepted_only;
        let code = if is_accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
        let stored = kind.restored(&deleted.stored, deleted.revision);
        let json = self.shown(kind, shape).one(&stored, Some(deleted.revision));
        let mut answer = written(code, json, shape);
        answer::add_warnings(&mut answer, delete_warnings(kind, &options));
        Ok(answer)
    }

    async fn delete_collection(
        &self,
        resource: &Resource<'_>,
        body: &Bytes,
    ) -> Result<Response<Body>, Status> {
        let Resource { kind, namespace, .. } = *resource;
        let shape = self.shape_of(kind, Count::Many)?;
        let list = ListOptions::read(&self.query, kind, false)?;
        let options = self.delete_options(body)?;
        let listed = self.server.api.delete_collection(kind, namespace, &list, &options).await?;
        let mut answer = self.show_list(kind, shape, listed);
        answer::add_warnings(&mut answer, delete_warnings(kind, &options));
        Ok(answer)
    }

    /// How something is to be deleted. Of what is empty the media type does not matter.
    fn delete_options(&self, body: &[u8]) -> Result<DeleteOptions, Status> {
        let format = if body.is_empty() { Format::Json } else { self.format()? };
        DeleteOptions::read(body, format, &self.query)
    }

    /// An object that was written.
    fn show(&self, kind: &'static dyn AnyKind, shape: Shape, made: &Written) -> Response<Body> {
        let code = if made.is_new { StatusCode::CREATED } else { StatusCode::OK };
        let stored = kind.restored(&made.stored, Revision::EMPTY);
        let json = self.shown(kind, shape).one(&stored, made.revision);
        let mut answer = written(code, json, shape);
        answer::add_warnings(&mut answer, &made.warnings);
        answer
    }

    fn shown(&self, kind: &'static dyn AnyKind, shape: Shape) -> Shown {
        Shown::new(kind, shape.view, self.managed, self.server.api.clock.clone())
    }

    /// A place among the requests that may take any time, which is counted.
    fn long_running(&self) -> Result<impl Send + use<>, Status> {
        let place = self.share().long_running.take(self.client());
        let place = place.map_err(|refused| Status::too_many_requests(refused.to_string(), 1))?;
        Ok((place, self.server.metrics.watcher()))
    }

    /// An answer that is no object of a kind, if there is one.
    fn plain(&self, value: Option<Value>, shape: Shape) -> Result<Response<Body>, Status> {
        let value = value.ok_or_else(Status::no_such_path)?;
        self.only_reads()?;
        let json = Bytes::from(serde_json::to_vec(&value).expect("JSON serialises"));
        Ok(written(StatusCode::OK, json, shape))
    }

    /// The shape of an answer with objects of a kind.
    fn shape_of(&self, kind: &dyn AnyKind, count: Count) -> Result<Shape, Status> {
        let shape = self.shape()?;
        match shape.view {
            View::Metadata(asked) if asked != count => {
                Err(Status::not_acceptable_shape(kind.names(), count == Count::Many))
            }
            View::Whole | View::Metadata(_) | View::Table(_) => Ok(shape),
        }
    }

    fn accepted_format(&self) -> AnswerFormat {
        accepted_format(self.headers)
    }

    fn shape(&self) -> Result<Shape, Status> {
        let include = self.query.get("includeObject");
        Shape::negotiate(self.header(ACCEPT), include, self.is_pretty())
    }

    /// Whether a person reads the answer: who says so, or uses what people use.
    fn is_pretty(&self) -> bool {
        if let Some(pretty) = self.query.get("pretty") {
            return pretty == "1" || pretty == "true";
        }
        let agent = self.user_agent();
        ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| agent.starts_with(known))
    }

    /// How a write is to be carried out, where these errors are known already.
    fn write_options(
        &self,
        kind: &'static str,
        errors: Vec<FieldError>,
    ) -> Result<WriteOptions, Status> {
        let (agent, validation) = (self.user_agent(), self.validation);
        WriteOptions::checked(&self.query, kind, agent, validation, errors)
    }

    fn user_agent(&self) -> &str {
        self.header(USER_AGENT).unwrap_or("")
    }

    fn format(&self) -> Result<Format, Status> {
        body_format(self.header(CONTENT_TYPE))
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Whether a patch may read or write managedFields. Hardly any does, and those that do not are
/// spared them.
fn may_be_about_owners(patch_type: PatchType, body: &[u8]) -> bool {
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    // An escape may hide anything.
    has(b"managedFields")
        || body.contains(&b'\\')
        || (patch_type == PatchType::Json && (has(b"\"/metadata\"") || has(b"\"\"") || has(b"~")))
}

/// A media type without its parameters.
fn media_type(header: &str) -> &str {
    header.split(';').next().unwrap_or("")
}

/// What whoever deletes something of a kind should know.
fn delete_warnings(kind: &dyn AnyKind, options: &DeleteOptions) -> &'static [&'static str] {
    if kind.manners().orphans_by_default && options.propagation.is_none() {
        &["child pods are preserved by default when jobs are deleted; set \
           propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
           this warning"]
    } else {
        &[]
    }
}
