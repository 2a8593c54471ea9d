//! The server as a whole, in process: its limits, and what it must never store or give twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use jiff::Timestamp;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_store::Options;
use tower_service::Service;

use super::*;
use crate::clock::Clock;
use crate::log::NoLogs;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config(clock: Clock) -> Config {
    let (gates, logs) = (FeatureGates::default(), Arc::new(NoLogs));
    Config { gates, clock, logs, tracks_owners: true }
}

fn server(limits: Limits) -> LocalServer {
    let config = config(Clock::system());
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    ApiServer::new(store, nobody, config, limits).local(Identity::admin())
}

/// A server whose clock only moves when it is told to.
fn server_at(now: &Arc<Mutex<Timestamp>>) -> LocalServer {
    let now = now.clone();
    let clock = Clock::new(move || *now.lock().expect("nobody panicked"));
    let config = config(clock);
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    ApiServer::new(store, nobody, config, Limits::default()).local(Identity::admin())
}

fn few() -> Limits {
    Limits {
        requests: 1,
        bodies: 1,
        queue_time: Duration::from_secs(15),
        stall_time: Duration::from_secs(5),
        long_running: 1,
        unread_time: Duration::from_secs(30),
        request_time: Duration::from_secs(60),
        body_bytes: 100,
        visits: 2,
        visit_idle_time: Duration::from_secs(3600),
    }
}

async fn get(server: &LocalServer, path: &str) -> Response<Body> {
    let request = Request::get(path).body(Full::new(Bytes::new())).expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    answer
}

/// A request whose body does not come.
async fn post_nothing(server: LocalServer) -> Response<Body> {
    let pieces = stream::pending::<Result<Frame<Bytes>, Infallible>>();
    let request = Request::post(CONFIG_MAPS).body(StreamBody::new(pieces)).expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    answer
}

async fn reason(answer: Response<Body>) -> String {
    let body = answer.into_body().collect().await.expect("all of it");
    let status: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    status["reason"].as_str().expect("a reason").to_owned()
}

#[tokio::test]
async fn a_body_has_a_largest_size() {
    let server = server(few());
    let request = Request::post(CONFIG_MAPS).body(Full::new(Bytes::from(vec![b' '; 101])));
    let Ok(answer) = server.clone().call(request.expect("a request")).await;
    assert_eq!(answer.status(), 413);
    assert_eq!(reason(answer).await, "RequestEntityTooLarge");
}

/// A body of pieces of 50 bytes, and how many of them were read.
fn counted(
    pieces: usize,
) -> (StreamBody<impl stream::Stream<Item = Piece> + Send>, Arc<AtomicUsize>) {
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let pieces = stream::iter(0..pieces).map(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(vec![b' '; 50])))
    });
    (StreamBody::new(pieces), read)
}

type Piece = Result<Frame<Bytes>, Infallible>;

#[tokio::test]
async fn whoever_sends_too_much_may_finish_if_it_is_not_far_too_much() {
    let server = server(few());
    for (pieces, expected) in [(3, 3), (8, 8), (1_000, 12)] {
        let (body, read) = counted(pieces);
        let request = Request::post(CONFIG_MAPS).body(body).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        assert_eq!(answer.status(), 413);
        assert_eq!(read.load(Ordering::Relaxed), expected, "of {pieces}");
    }
}

#[tokio::test]
async fn a_body_has_a_largest_number_of_objects_however_it_comes() {
    let server = with_namespace().await;
    let containers = vec!["{}"; 110_000].join(",");
    let pod = format!(r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{containers}]}}}}"#);
    let pods = "/api/v1/namespaces/default/pods";
    let small = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(send(&server, "POST", pods, small).await.0, 201);
    let one = format!("{pods}/p");
    for (method, path, media_type) in [
        ("POST", pods, "application/json"),
        ("POST", pods, "application/yaml"),
        ("PATCH", &one, "application/merge-patch+json"),
        ("PATCH", &one, "application/strategic-merge-patch+json"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", media_type);
        let request = request.body(Full::new(Bytes::from(pod.clone()))).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        assert_eq!(answer.status(), 413, "{method} {media_type}");
        assert_eq!(reason(answer).await, "RequestEntityTooLarge");
    }
}

#[tokio::test]
async fn an_answer_names_a_thousand_errors_and_counts_the_rest() {
    let server = with_namespace().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (containers, causes, rest) in [(333, 998, None), (334, 1_000, Some(1))] {
        // None has a name or an image, and but for the first each has the same name.
        let containers = vec!["{}"; containers].join(",");
        let pod =
            format!(r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{containers}]}}}}"#);
        let (code, answer) = send(&server, "POST", pods, &pod).await;
        assert_eq!(code, 422);
        assert_eq!(answer["details"]["causes"].as_array().expect("causes").len(), causes);
        let message = answer["message"].as_str().expect("a message");
        let end = rest.map_or("]".to_owned(), |rest| format!("] and {rest} more"));
        assert!(message.ends_with(&end), "{}", &message[message.len() - 100..]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_takes_too_long_is_told_so_and_holds_up_nobody_who_sends_nothing() {
    let server = server(few());
    let slow = tokio::spawn(post_nothing(server.clone()));
    tokio::task::yield_now().await;
    let start = Instant::now();
    let list = get(&server, CONFIG_MAPS).await;
    assert_eq!((list.status().as_u16(), start.elapsed()), (200, Duration::ZERO));
    let slow = slow.await.expect("an answer");
    assert_eq!((slow.status().as_u16(), start.elapsed()), (504, few().request_time));
    assert_eq!(reason(slow).await, "Timeout");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_too_long_is_told_to_come_back() {
    let server = server(Limits { stall_time: Duration::from_secs(60), ..few() });
    let unread = get(&server, CONFIG_MAPS).await;
    let start = Instant::now();
    let refused = get(&server, CONFIG_MAPS).await;
    assert_eq!((refused.status().as_u16(), start.elapsed()), (429, few().queue_time));
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(reason(refused).await, "TooManyRequests");
    drop(unread);
    assert_eq!(get(&server, CONFIG_MAPS).await.status(), 200, "its place is free again");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_gives_way_to_those_who_wait() {
    let server = server(few());
    let slow = tokio::spawn(post_nothing(server.clone()));
    tokio::task::yield_now().await;
    let start = Instant::now();
    // Nothing is stored by this: a clock that stands still does not wait for a disk.
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let body = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let (code, made) = send(&server, "POST", reviews, body).await;
    assert_eq!((code, start.elapsed()), (201, few().stall_time), "{made}");
    let slow = slow.await.expect("an answer");
    assert_eq!(slow.status(), 429);
    assert_eq!(slow.headers()["retry-after"], "1");
    // It has left nothing behind, and nobody need wait any more.
    let start = Instant::now();
    assert_eq!(send(&server, "POST", reviews, body).await.0, 201);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn an_object_has_its_place_until_it_is_read() {
    let inside = server(Limits { body_bytes: 1 << 20, ..few() });
    let namespace = r#"{"metadata":{"name":"default"}}"#;
    assert_eq!(send(&inside, "POST", "/api/v1/namespaces", namespace).await.0, 201);
    let value = "v".repeat(200_000);
    let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"v":"{value}"}}}}"#);
    assert_eq!(send(&inside, "POST", CONFIG_MAPS, &body).await.0, 201);
    // Nothing is stored from now on.
    tokio::time::pause();
    let (outside, path) = (&inside.server, format!("{CONFIG_MAPS}/a"));
    let unread = ask(outside, 1, &path).await;
    let start = Instant::now();
    let second = ask(outside, 2, &path).await;
    assert_eq!(second.status(), 200);
    assert_eq!(start.elapsed().as_secs(), few().stall_time.as_secs());
    assert!(unread.into_body().collect().await.is_err(), "half an object is none");
    // It says how long it is, and comes in pieces that keep nothing else in memory.
    let mut body = second.into_body();
    let length = http_body::Body::size_hint(&body).exact().expect("it is known");
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("it is read in time").into_data().expect("data");
        assert!(piece.len() <= 64 << 10);
        read += piece.len() as u64;
    }
    assert_eq!(read, length);
    let start = Instant::now();
    assert_eq!(ask(outside, 3, &path).await.status(), 200);
    assert_eq!(start.elapsed().as_secs(), 0, "what was read has no place");
}

#[tokio::test]
async fn a_connection_has_a_share_of_the_watches_and_the_cluster_as_many_as_it_needs() {
    let inside = server(Limits { long_running: 64, ..few() });
    let (outside, path) = (&inside.server, format!("{CONFIG_MAPS}?watch=true&resourceVersion=0"));
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(ask(outside, 1, &path).await);
        assert_eq!(held.last().expect("it was just pushed").status(), 200);
    }
    let refused = ask(outside, 1, &path).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let said = refused.into_body().collect().await.expect("all of it").to_bytes();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("on this connection: it has 2"), "{said}");
    assert_eq!(ask(outside, 2, &path).await.status(), 200);
    for _ in 0..100 {
        held.push(get(&inside, &path).await);
        assert_eq!(held.last().expect("it was just pushed").status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_takes_a_place_of_its_own_until_it_ends() {
    let server = server(few());
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=0");
    let outside = &server.server;
    let watch = ask(outside, 1, &path).await;
    assert_eq!(watch.status(), 200);
    assert_eq!(ask(outside, 2, &path).await.status(), 429);
    assert_eq!(ask(outside, 2, CONFIG_MAPS).await.status(), 200, "others are not held up");
    drop(watch);
    assert_eq!(ask(outside, 2, &path).await.status(), 200);
}

#[tokio::test]
async fn a_watch_makes_no_more_than_a_piece_at_once_and_ends_when_nobody_reads_it() {
    let inside = server(Limits { body_bytes: 1 << 20, long_running: 32, ..few() });
    let namespace = r#"{"metadata":{"name":"default"}}"#;
    assert_eq!(send(&inside, "POST", "/api/v1/namespaces", namespace).await.0, 201);
    let value = "v".repeat(100_000);
    for name in 0..8 {
        let body = format!(r#"{{"metadata":{{"name":"a-{name}"}},"data":{{"v":"{value}"}}}}"#);
        assert_eq!(send(&inside, "POST", CONFIG_MAPS, &body).await.0, 201);
    }
    // Nothing is stored from now on.
    tokio::time::pause();
    let (outside, path) = (&inside.server, format!("{CONFIG_MAPS}?watch=true"));
    let mut watch = ask(outside, 1, &path).await.into_body();
    for _ in 0..2 {
        let piece = watch.frame().await.expect("a piece").expect("it is there").into_data();
        let length = piece.expect("data").len();
        assert!((100_000..120_000).contains(&length), "one object: {length}");
    }
    assert_eq!(ask(outside, 1, &path).await.status(), 429, "it has its share");
    tokio::time::sleep(few().unread_time + Duration::from_secs(1)).await;
    // What it had to tell is gone, and its place is free when the client has seen that.
    assert_eq!(ask(outside, 1, &path).await.status(), 429, "it may still be on its way");
    assert!(watch.frame().await.is_none(), "it ends as if its time were up");
    assert_eq!(ask(outside, 1, &path).await.status(), 200);
}

#[tokio::test]
async fn a_delete_without_a_body_has_any_media_type() {
    let server = with_namespace().await;
    for name in ["a", "b"] {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &body).await.0, 201);
    }
    for (path, body, code) in [
        (format!("{CONFIG_MAPS}/a"), "{}", 415),
        (format!("{CONFIG_MAPS}/a"), "", 200),
        (CONFIG_MAPS.to_owned(), "{}", 415),
        (CONFIG_MAPS.to_owned(), "", 200),
    ] {
        let request = Request::delete(&path).header("content-type", "text/plain");
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        assert_eq!(answer.status(), code, "{path} {body}");
    }
}

#[tokio::test]
async fn what_has_the_last_of_all_generations_can_be_deleted() {
    let server = with_namespace().await;
    let body =
        format!(r#"{{"metadata":{{"name":"a","generation":{},"finalizers":["f/a"]}}}}"#, i64::MAX);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &body).await.0, 201);
    let path = format!("{CONFIG_MAPS}/a");
    let (code, marked) = send(&server, "DELETE", &path, "").await;
    assert_eq!((code, &marked["metadata"]["generation"]), (200, &i64::MAX.into()), "{marked}");
    let (code, said) = send(&server, "PUT", &path, r#"{"metadata":{"name":"a"}}"#).await;
    assert_eq!(code, 200, "{said}");
    assert_eq!(send(&server, "GET", &path, "").await.0, 404);
}

#[tokio::test]
async fn owners_that_are_given_twice_are_owners_once() {
    let server = with_namespace().await;
    let owner =
        |uid: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"{uid}"}}"#);
    let owners = format!("{0},{1},{0},{1}", owner("u-1"), owner("u-2"));
    let body = format!(r#"{{"metadata":{{"name":"a","ownerReferences":[{owners}]}}}}"#);
    let one = format!("{CONFIG_MAPS}/a");
    for (method, path) in [("POST", CONFIG_MAPS), ("PUT", &one), ("PATCH", &one)] {
        let request = Request::builder().method(method).uri(path);
        let media_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = request.header("content-type", media_type);
        let request = request.body(Full::new(Bytes::from(body.clone()))).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        let warning = answer.headers().get("warning").expect(method).to_str().expect("text");
        assert!(warning.ends_with("duplicate UID(s) observed: u-1, u-2\""), "{method}: {warning}");
        let made = answer.into_body().collect().await.expect("all of it").to_bytes();
        let made: Value = serde_json::from_slice(&made).expect("JSON");
        let owners = made["metadata"]["ownerReferences"].as_array().map(Vec::len);
        assert_eq!(owners, Some(2), "{method}: {made}");
    }
}

#[tokio::test]
async fn an_update_that_creates_is_for_those_who_may_create() {
    let server = with_namespace().await;
    // It may update everything, and create little.
    let controller = server.server.local(Identity::new("c", crate::access::Role::Controller));
    let path = "/api/v1/namespaces/default/limitranges/l";
    let body = r#"{"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container"}]}}"#;
    let (code, said) = send(&controller, "PUT", path, body).await;
    assert_eq!(code, 403, "{said}");
    let message = said["message"].as_str().expect("a message");
    assert!(message.contains("cannot create resource \"limitranges\""), "{message}");
    assert_eq!(send(&server, "PUT", path, body).await.0, 201);
    assert_eq!(send(&controller, "PUT", path, body).await.0, 200);
}

#[tokio::test]
async fn of_many_wrong_texts_a_few_thousand_errors_are_made() {
    let server = with_namespace().await;
    let finalizers = |count: usize| {
        let finalizers = vec![r#""""#; count].join(",");
        format!(r#"{{"metadata":{{"name":"a","finalizers":[{finalizers}]}}}}"#)
    };
    let (code, said) = send(&server, "POST", CONFIG_MAPS, &finalizers(300_000)).await;
    assert_eq!(code, 422);
    let message = said["message"].as_str().expect("a message");
    let (_, more) = message.rsplit_once(" and ").expect("more than are told");
    let more: usize = more.trim_end_matches(" more").parse().expect("a number");
    assert!((1_000..20_000).contains(&more), "{more}");
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &finalizers(500_000)).await.0, 413);
}

#[tokio::test]
async fn an_age_in_a_watch_is_that_of_its_event() {
    let now = Arc::new(Mutex::new("2026-05-01T12:00:00Z".parse().expect("a time")));
    let server = server_at(&now);
    let namespace = r#"{"metadata":{"name":"default"}}"#;
    assert_eq!(send(&server, "POST", "/api/v1/namespaces", namespace).await.0, 201);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(send(&server, "POST", pods, pod).await.0, 201);

    let request = Request::get(format!("{pods}?watch=true"));
    let request = request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let Ok(watch) = server.clone().call(request).await;
    let mut events = watch.into_body();
    let mut age = async || {
        let event = events.frame().await.expect("an event").expect("it is whole");
        let event = event.into_data().expect("data");
        let event: Value = serde_json::from_slice(&event).expect("JSON");
        event["object"]["rows"][0]["cells"][4].clone()
    };
    for (seconds, expected) in [(3, "3s"), (42, "45s"), (300, "5m45s")] {
        *now.lock().expect("nobody panicked") += Duration::from_secs(seconds);
        if seconds > 3 {
            let labels = format!(r#"{{"metadata":{{"labels":{{"at":"{seconds}"}}}}}}"#);
            let request = Request::patch(format!("{pods}/p"));
            let request = request.header("content-type", "application/merge-patch+json");
            let request = request.body(Full::new(Bytes::from(labels))).expect("a request");
            let Ok(answer) = server.clone().call(request).await;
            assert_eq!(answer.status(), 200);
        }
        assert_eq!(age().await, expected);
    }
}

#[tokio::test]
async fn nobody_comes_in_without_a_name_but_for_the_health() {
    let server = server(Limits::default()).server;
    let rows = [
        ("/livez", 200),
        ("/readyz", 500),
        ("/livez/ping", 401),
        (CONFIG_MAPS, 401),
        ("/version", 401),
    ];
    for (path, code) in rows {
        let request = Request::get(path).body(Full::new(Bytes::new())).expect("a request");
        assert_eq!(server.handle(request).await.status(), code, "{path}");
    }
}

async fn send(server: &LocalServer, method: &str, path: &str, body: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("all of it");
    (code, serde_json::from_slice(&body.to_bytes()).expect("JSON"))
}

async fn with_namespace() -> LocalServer {
    begun(config(Clock::system())).await
}

/// A server with a namespace.
async fn begun(config: Config) -> LocalServer {
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    let server = ApiServer::new(store, nobody, config, Limits::default());
    let server = server.local(Identity::admin());
    let body = r#"{"metadata":{"name":"default"}}"#;
    assert_eq!(send(&server, "POST", "/api/v1/namespaces", body).await.0, 201);
    server
}

#[tokio::test]
async fn where_owners_are_not_tracked_they_are_only_of_what_is_applied() {
    let server = begun(Config { tracks_owners: false, ..config(Clock::system()) }).await;
    let managers = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().cloned();
        let names = entries.into_iter().flatten();
        names.map(|entry| entry["manager"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let body = r#"{"metadata":{"name":"a"},"data":{"x":"1"}}"#;
    let (code, made) = send(&server, "POST", CONFIG_MAPS, body).await;
    assert_eq!((code, managers(&made)), (201, vec![]));
    let path = format!("{CONFIG_MAPS}/a");
    let (code, changed) = send(&server, "PUT", &path, &body.replace('1', "2")).await;
    assert_eq!((code, managers(&changed)), (200, vec![]));
    assert_eq!(changed["data"]["x"], "2");
    let applied = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{}}"#;
    let path = format!("{CONFIG_MAPS}/b?fieldManager=me");
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(Full::new(Bytes::from(applied))).expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    let body = answer.into_body().collect().await.expect("all of it").to_bytes();
    let applied: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(managers(&applied), ["me"]);
}

#[tokio::test]
async fn what_could_not_be_read_again_is_refused() {
    let server = with_namespace().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for (time, expected) in [
        ("-000001-01-01T00:00:00.000000Z", 400),
        ("-009999-12-31T00:00:00.000000Z", 400),
        ("0000-01-01T00:00:00.000000Z", 201),
        ("9999-12-30T00:00:00.000000Z", 201),
    ] {
        let body =
            format!(r#"{{"metadata":{{"generateName":"l-"}},"spec":{{"renewTime":"{time}"}}}}"#);
        let (code, answer) = send(&server, "POST", leases, &body).await;
        assert_eq!(code, expected, "{time}: {answer}");
    }
    // What looks like one in another place is none.
    let body = r#"{"metadata":{"name":"a"},"data":{"when":"-000001-01-01"}}"#;
    assert_eq!(send(&server, "POST", CONFIG_MAPS, body).await.0, 201);
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = r#"{"metadata":{"name":"e"},"eventTime":"-000001-01-01T00:00:00.000000Z",
        "reportingController":"a.io/b","reportingInstance":"c","action":"d","reason":"e",
        "type":"Normal","regarding":{"namespace":"default"}}"#;
    assert_eq!(send(&server, "POST", events, event).await.0, 400);
    let (code, list) = send(&server, "GET", leases, "").await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_made_in_a_namespace_that_is_leaving() {
    const ROUNDS: usize = 40;
    const MAKERS: usize = 8;
    let server = server(Limits::default());
    for round in 0..ROUNDS {
        let space = format!("n{round}");
        let body = format!(r#"{{"metadata":{{"name":"{space}"}}}}"#);
        assert_eq!(send(&server, "POST", "/api/v1/namespaces", &body).await.0, 201);
        let (path, has_begun) =
            (format!("/api/v1/namespaces/{space}"), Arc::new(tokio::sync::Semaphore::new(0)));
        let make = |server: LocalServer| {
            let (maps, has_begun) = (format!("{path}/configmaps"), has_begun.clone());
            async move {
                let mut newest = 0;
                loop {
                    let body = r#"{"metadata":{"generateName":"c-"}}"#;
                    let (code, made) = send(&server, "POST", &maps, body).await;
                    if code != 201 {
                        assert_eq!(code, 403, "{made}");
                        return newest;
                    }
                    newest = version(&made);
                    has_begun.add_permits(1);
                }
            }
        };
        let makers: Vec<_> = (0..MAKERS).map(|_| tokio::spawn(make(server.clone()))).collect();
        let begun = has_begun.acquire_many(MAKERS as u32).await;
        drop(begun.expect("it is never closed"));
        let (code, leaving) = send(&server, "DELETE", &path, "").await;
        assert_eq!(code, 200, "{leaving}");
        for maker in makers {
            let newest = maker.await.expect("no panic");
            assert!(newest < version(&leaving), "{newest} after {leaving}");
        }
    }
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().expect("it is stored");
    version.parse().expect("a number")
}

#[tokio::test]
async fn a_node_makes_itself_and_no_other() {
    let admin = with_namespace().await;
    let body = r#"{"metadata":{"name":"kube-node-lease"}}"#;
    assert_eq!(send(&admin, "POST", "/api/v1/namespaces", body).await.0, 201);
    let node = admin.server.local(Identity::node("here"));
    for path in ["/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"]
    {
        for (meta, expected) in [
            (r#""name":"there""#, 403),
            (r#""generateName":"here""#, 403),
            (r#""name":"here""#, 201),
        ] {
            let body = format!(r#"{{"metadata":{{{meta}}}}}"#);
            let (code, answer) = send(&node, "POST", path, &body).await;
            assert_eq!(code, expected, "{path} {meta}: {answer}");
        }
    }
}

async fn with_many(count: usize) -> LocalServer {
    let server = with_namespace().await;
    let value = "v".repeat(1000);
    for number in 0..count {
        let body = format!(r#"{{"metadata":{{"name":"s{number}"}},"data":{{"v":"{value}"}}}}"#);
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &body).await.0, 201);
        let secret = format!(r#"{{"metadata":{{"name":"s{number}"}}}}"#);
        let secrets = "/api/v1/namespaces/default/secrets";
        assert_eq!(send(&server, "POST", secrets, &secret).await.0, 201);
    }
    server
}

#[tokio::test]
async fn a_long_list_is_made_as_it_is_read_in_every_format() {
    let server = with_many(300).await;
    let (_, expected) = send(&server, "GET", CONFIG_MAPS, "").await;
    for (accept, query) in
        [("application/json", ""), ("application/json", "?pretty=true"), ("application/yaml", "")]
    {
        let request = Request::get(format!("{CONFIG_MAPS}{query}")).header("accept", accept);
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        assert_eq!(answer.headers()["content-type"], accept);
        let mut body = answer.into_body();
        let (mut text, mut largest) = (Vec::new(), 0);
        while let Some(Ok(frame)) = body.frame().await {
            let piece = frame.into_data().expect("data");
            largest = largest.max(piece.len());
            text.extend_from_slice(&piece);
        }
        assert!(largest < 80 * 1024, "{accept}{query}: {largest} of {}", text.len());
        let read = stint_api::decode::read(&text).into_iter().find_map(|read| read.root);
        assert_eq!(read.expect("a list").to_json(), expected, "{accept}{query}");
    }
}

#[tokio::test]
async fn whoever_selects_among_many_lets_others_have_their_turn() {
    let server = with_many(300).await;
    let turns = Arc::new(AtomicUsize::new(0));
    let taken = turns.clone();
    tokio::spawn(async move {
        loop {
            taken.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let answer = get(&server, "/api/v1/secrets?fieldSelector=type%3Dnone").await;
    assert_eq!(answer.status(), 200);
    assert!(turns.load(Ordering::Relaxed) > 1, "nobody had a turn");
}

#[tokio::test]
async fn the_version_may_be_asked_for_with_a_slash() {
    let server = server(Limits::default());
    for path in ["/version", "/version/"] {
        let (code, version) = send(&server, "GET", path, "").await;
        assert_eq!((code, version["major"].as_str()), (200, Some("1")), "{path}");
    }
}

#[tokio::test]
async fn an_event_owns_nothing_and_goes_at_once() {
    let server = with_namespace().await;
    let events = "/api/v1/namespaces/default/events";
    let body = r#"{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}"#;
    for policy in ["Foreground", "Orphan"] {
        assert_eq!(send(&server, "POST", events, body).await.0, 201);
        let options = format!(r#"{{"propagationPolicy":"{policy}"}}"#);
        let one = format!("{events}/e");
        assert_eq!(send(&server, "DELETE", &one, &options).await.0, 200);
        assert_eq!(send(&server, "GET", &one, "").await.0, 404);
    }
}

#[tokio::test]
async fn no_two_services_have_the_same_address() {
    let server = with_namespace().await;
    let services = "/api/v1/namespaces/default/services";
    let body = |address: &str| {
        format!(
            r#"{{"metadata":{{"generateName":"s-"}},
                "spec":{{"ports":[{{"port":80}}],"clusterIP":"{address}"}}}}"#
        )
    };
    let (code, first) = send(&server, "POST", services, &body("")).await;
    assert_eq!(code, 201, "{first}");
    let address = first["spec"]["clusterIP"].as_str().expect("it has one");
    let (code, refused) = send(&server, "POST", services, &body(address)).await;
    assert_eq!(code, 422, "{refused}");
    assert!(refused["message"].as_str().expect("words").contains("already allocated"));
    let (_, second) = send(&server, "POST", services, &body("")).await;
    assert_ne!(second["spec"]["clusterIP"], first["spec"]["clusterIP"]);
    for _ in 0..2 {
        assert_eq!(send(&server, "POST", services, &body("None")).await.0, 201);
    }
}

#[tokio::test]
async fn a_list_has_its_place_until_it_is_read() {
    let server = server(Limits { queue_time: Duration::ZERO, ..few() });
    let list = get(&server, CONFIG_MAPS).await;
    assert_eq!(list.status(), 200);
    assert_eq!(get(&server, CONFIG_MAPS).await.status(), 429);
    drop(list);
    assert_eq!(get(&server, CONFIG_MAPS).await.status(), 200);
}

/// A request of somebody at the other end of a connection.
async fn ask(server: &ApiServer, port: u16, path: &str) -> Response<Body> {
    let mut request = Request::get(path).body(Full::new(Bytes::new())).expect("a request");
    let address = ([127, 0, 0, 1], port).into();
    let certificate = Some(Identity::admin());
    request.extensions_mut().insert(Peer::Remote { address, certificate });
    server.handle(request).await
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_read_gives_way_to_those_who_wait() {
    let inside = server(few());
    let outside = &inside.server;
    let unread = ask(outside, 1, CONFIG_MAPS).await;
    assert_eq!(unread.status(), 200);
    let before = Instant::now();
    let second = ask(outside, 2, CONFIG_MAPS).await;
    assert_eq!(second.status(), 200);
    assert_eq!(before.elapsed(), few().stall_time);
    assert!(unread.into_body().collect().await.is_err(), "half a list is no list");
    assert!(second.into_body().collect().await.is_ok());
    // Whoever is served at once takes nothing from anybody.
    let unread = ask(outside, 1, CONFIG_MAPS).await;
    tokio::time::sleep(few().stall_time * 2).await;
    assert!(unread.into_body().collect().await.is_ok());
}

#[tokio::test]
async fn clients_cannot_hold_up_the_cluster_itself() {
    let inside = server(Limits { queue_time: Duration::ZERO, ..few() });
    let outside = &inside.server;
    let watch = format!("{CONFIG_MAPS}?watch=true");
    let held = (ask(outside, 1, CONFIG_MAPS).await, ask(outside, 1, &watch).await);
    assert_eq!((held.0.status().as_u16(), held.1.status().as_u16()), (200, 200));
    assert_eq!(ask(outside, 2, CONFIG_MAPS).await.status(), 429);
    assert_eq!(ask(outside, 2, &watch).await.status(), 429);
    assert_eq!(get(&inside, CONFIG_MAPS).await.status(), 200);
    assert_eq!(get(&inside, &watch).await.status(), 200);
}

#[tokio::test]
async fn whoever_is_refused_may_say_all_first() {
    let inside = server(few());
    for (path, code) in [
        ("/api/v1/configmaps", 405),
        ("/apis/batch/v1/namespaces/default/cronjobs", 404),
        ("/version", 405),
    ] {
        let (body, read) = counted(2);
        let request = Request::post(path).body(body).expect("a request");
        let Ok(answer) = inside.clone().call(request).await;
        assert_eq!((answer.status().as_u16(), read.load(Ordering::Relaxed)), (code, 2), "{path}");
    }
    let stranger = &inside.server;
    let viewer = inside.server.local(Identity::view());
    let (body, read) = counted(2);
    let answer = stranger.handle(Request::post(CONFIG_MAPS).body(body).expect("a request")).await;
    assert_eq!((answer.status().as_u16(), read.load(Ordering::Relaxed)), (401, 2));
    let (body, read) = counted(2);
    let request = Request::post(CONFIG_MAPS).body(body).expect("a request");
    let Ok(answer) = viewer.clone().call(request).await;
    assert_eq!((answer.status().as_u16(), read.load(Ordering::Relaxed)), (403, 2));
}

#[tokio::test]
async fn whoever_is_refused_is_not_asked_for_a_body_first() {
    let inside = server(few());
    let viewer = inside.server.local(Identity::view());
    for (expects, read_bytes) in [(None, 2), (Some("100-continue"), 0), (Some("100-Continue"), 0)] {
        let (body, read) = counted(2);
        let mut request = Request::post(CONFIG_MAPS).body(body).expect("a request");
        if let Some(expects) = expects {
            request.headers_mut().insert("expect", HeaderValue::from_static(expects));
        }
        let Ok(answer) = viewer.clone().call(request).await;
        assert_eq!((answer.status().as_u16(), read.load(Ordering::Relaxed)), (403, read_bytes));
    }
    // Whoever was asked for it may say all.
    let (body, read) = counted(8);
    let request = Request::post(CONFIG_MAPS).header("expect", "100-continue");
    let Ok(answer) = inside.clone().call(request.body(body).expect("a request")).await;
    assert_eq!((answer.status().as_u16(), read.load(Ordering::Relaxed)), (413, 8));
}

/// A server with an audit log, and where that is.
fn audited(limits: Limits) -> (LocalServer, AuditFile, tempfile::TempDir) {
    let server = server(limits);
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditFile::open(&folder.path().join("audit.log")).expect("it opens");
    server.server.audit(log.clone());
    (server, log, folder)
}

async fn lines(log: &AuditFile, folder: &tempfile::TempDir) -> Vec<Value> {
    log.flush().await;
    let text = std::fs::read_to_string(folder.path().join("audit.log")).expect("it is there");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test]
async fn a_request_whose_client_leaves_is_in_the_audit_log() {
    let (server, log, folder) = audited(few());
    let left = tokio::spawn(post_nothing(server.clone()));
    while server.server.inner.inside.bodies.is_idle() {
        tokio::task::yield_now().await;
    }
    left.abort();
    assert!(left.await.expect_err("nobody waits for it").is_cancelled());
    let lines = lines(&log, &folder).await;
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line["requestURI"], CONFIG_MAPS);
    assert_eq!(line["user"]["username"], Identity::admin().user);
    assert_eq!(line["responseStatus"]["code"], 499);
    let said = line["responseStatus"]["message"].as_str().expect("a message");
    assert!(said.contains("the client left before the answer"), "{said}");
}

#[tokio::test]
async fn every_refusal_has_its_reason_in_the_audit_log() {
    let (server, log, folder) = audited(Limits::default());
    let rows = [
        ("/api/v1/namespaces/default/endpoints/none", 404, "NotFound"),
        ("/apis/batch/v1/namespaces/default/cronjobs", 404, "NotFound"),
        ("/api/v1/namespaces/default/endpoints?limit=x", 400, "BadRequest"),
    ];
    for (path, code, _) in rows {
        assert_eq!(get(&server, path).await.status(), code, "{path}");
    }
    let lines = lines(&log, &folder).await;
    assert_eq!(lines.len(), rows.len());
    for (line, (path, code, reason)) in lines.iter().zip(rows) {
        let status = &line["responseStatus"];
        assert_eq!((&line["requestURI"], &status["code"]), (&path.into(), &code.into()));
        assert_eq!((&status["status"], &status["reason"]), (&"Failure".into(), &reason.into()));
    }
}

#[tokio::test]
async fn a_server_that_cannot_write_is_not_well() {
    let store = Store::in_memory(Options::default());
    let config = config(Clock::system());
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let server = ApiServer::new(store.clone(), nobody, config, Limits::default());
    let server = server.local(Identity::admin());
    for (path, code) in
        [("/livez", 200), ("/livez/ping", 200), ("/healthz/store", 200), ("/livez/x", 404)]
    {
        assert_eq!(get(&server, path).await.status(), code, "{path}");
    }
    store.close().await.expect("it closes");
    for (path, code) in
        [("/livez", 500), ("/readyz", 500), ("/livez/ping", 200), ("/livez/store", 500)]
    {
        assert_eq!(get(&server, path).await.status(), code, "{path}");
    }
}

/// Writes something, which must be taken, and gives what came of it.
async fn write(server: &LocalServer, method: &str, path: &str, kind: &str, body: Value) -> Value {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Full::new(Bytes::from(body.to_string()))).expect("a request");
    let Ok(answer) = server.clone().call(request).await;
    let code = answer.status();
    let body = answer.into_body().collect().await.expect("all of it");
    let value: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
    assert!(code.is_success(), "{method} {path}: {value}");
    value
}

/// Who owns something, and since when.
fn managers(object: &Value) -> Vec<(String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("never").to_owned();
    entries.iter().map(|entry| (text(entry, "manager"), text(entry, "time"))).collect()
}

#[tokio::test]
async fn who_changes_nothing_does_so_at_no_time() {
    const JSON: &str = "application/json";
    const APPLY: &str = "application/apply-patch+yaml";
    let now = Arc::new(Mutex::new("2026-05-01T12:00:00Z".parse().expect("a time")));
    let later = |time: &str| *now.lock().expect("nobody panicked") = time.parse().expect("a time");
    let server = server_at(&now).named("first");
    let object = |value: &str| {
        serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"x": value}})
    };
    let namespace = serde_json::json!({"metadata": {"name": "default"}});
    write(&server, "POST", "/api/v1/namespaces", JSON, namespace).await;
    let path = format!("{CONFIG_MAPS}/a");
    let (first, second) = ("2026-05-01T12:00:00Z", "2026-05-01T12:00:01Z");
    let owned = |who: &str, when: &str| (who.to_owned(), when.to_owned());
    let made = write(&server, "POST", CONFIG_MAPS, JSON, object("1")).await;
    assert_eq!(managers(&made), [owned("first", first)]);

    later(second);
    let same = write(&server.clone().named("other"), "PUT", &path, JSON, object("1")).await;
    assert_eq!(same["metadata"], made["metadata"], "nothing has changed");
    let same = write(&server, "PUT", &path, JSON, object("1")).await;
    assert_eq!(same["metadata"], made["metadata"], "nothing has changed");
    let changed = write(&server, "PUT", &path, JSON, object("2")).await;
    assert_eq!(managers(&changed), [owned("first", second)]);

    later("2026-05-01T12:00:02Z");
    let apply = format!("{path}?fieldManager=m");
    let applied = write(&server, "PATCH", &apply, APPLY, object("2")).await;
    assert_eq!(managers(&applied), [owned("m", "never"), owned("first", second)]);
    let again = write(&server, "PATCH", &apply, APPLY, object("2")).await;
    assert_eq!(again["metadata"], applied["metadata"], "nothing has changed");
}

#[tokio::test]
async fn an_apply_keeps_items_that_nothing_tells_apart() {
    const JSON: &str = "application/json";
    const APPLY: &str = "application/apply-patch+yaml";
    let server = server(Limits::default());
    let namespace = serde_json::json!({"metadata": {"name": "default"}});
    write(&server, "POST", "/api/v1/namespaces", JSON, namespace).await;
    let account = |secrets: Value| {
        serde_json::json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "a"}, "secrets": secrets})
    };
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let before = serde_json::json!([{"namespace": "x"}, {"name": "a"}]);
    write(&server, "POST", accounts, JSON, account(before)).await;
    let apply = format!("{accounts}/a?fieldManager=m");
    let added = account(serde_json::json!([{"name": "b"}]));
    let made = write(&server, "PATCH", &apply, APPLY, added).await;
    // Of a reference to a secret only its name is kept.
    let mut secrets = made["secrets"].as_array().expect("a list").clone();
    secrets.sort_by_key(Value::to_string);
    let all = serde_json::json!([{"name": "a"}, {"name": "b"}, {}]);
    assert_eq!(Value::from(secrets), all);
}

#[tokio::test]
async fn an_apply_in_yaml_has_a_largest_number_of_objects() {
    let server = with_namespace().await;
    let path = "/api/v1/namespaces/default/pods/p?fieldManager=m";
    for (count, code) in [(10, 422), (100_001, 413)] {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  tolerations:\n{}",
            "  - key: a\n".repeat(count)
        );
        let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
        let request = request.body(Full::new(Bytes::from(text))).expect("a request");
        let Ok(answer) = server.clone().call(request).await;
        assert_eq!(answer.status(), code, "{count}");
    }
}

#[tokio::test]
async fn what_is_too_large_with_its_owners_is_stored_without() {
    const JSON: &str = "application/json";
    const MERGE: &str = "application/merge-patch+json";
    let server = server(Limits::default());
    let namespace = serde_json::json!({"metadata": {"name": "default"}});
    write(&server, "POST", "/api/v1/namespaces", JSON, namespace).await;
    let labels = |count: usize| -> Value {
        let labels = (0..count).map(|n| (format!("{n:060}"), Value::from("")));
        Value::Object(labels.collect())
    };
    let object = |name: &str, count: usize| serde_json::json!({"metadata": {"name": name, "labels": labels(count)}});
    let large = 25_000;
    let made = write(&server, "POST", CONFIG_MAPS, JSON, object("a", large)).await;
    assert_eq!(managers(&made), []);
    let small = write(&server, "POST", CONFIG_MAPS, JSON, object("b", 1)).await;
    assert_eq!(managers(&small).len(), 1);
    let path = format!("{CONFIG_MAPS}/b");
    let grown = write(&server, "PATCH", &path, MERGE, object("b", large)).await;
    assert_eq!(managers(&grown), []);
    assert_eq!(grown["metadata"]["labels"].as_object().map(serde_json::Map::len), Some(large));
}

#[tokio::test]
async fn owners_that_a_client_gives_are_valid_or_the_object_is_refused() {
    let server = with_namespace().await;
    let long = "m".repeat(129);
    // It owns what is not there: whoever writes owns all that is.
    let entry = |manager: &str, operation: &str, subresource: &str| {
        serde_json::json!({"manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:y": {}}},
            "subresource": subresource})
    };
    let object = |name: &str, entries: Value| {
        serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"},
            "metadata": {"name": name, "managedFields": entries}})
        .to_string()
    };
    let stored = object("old", serde_json::json!([entry("m", "Apply", "")]));
    let (code, stored) = send(&server, "POST", CONFIG_MAPS, &stored).await;
    assert_eq!(code, 201, "{stored}");
    let path = format!("{CONFIG_MAPS}/old");
    for (entries, path_of_error, why) in [
        (serde_json::json!([entry(&long, "Update", "")]), "[0].manager", "Too long"),
        (
            serde_json::json!([entry("m", "Apply", ""), entry("a\u{7}b", "Update", "")]),
            "[1].manager",
            "invalid character U+0007",
        ),
        (serde_json::json!([entry("m", "Apply", &"s".repeat(300))]), "[0].subresource", "Too long"),
    ] {
        for (method, path, name) in [("POST", CONFIG_MAPS, "new"), ("PUT", &*path, "old")] {
            let (code, answer) = send(&server, method, path, &object(name, entries.clone())).await;
            assert_eq!(code, 422, "{method} {entries}: {answer}");
            let said = answer["message"].as_str().expect("a message");
            let field = format!("metadata.managedFields{path_of_error}");
            assert!(said.contains(&field) && said.contains(why), "{method} {entries}: {said}");
        }
    }
    // Those that are no entries at all are passed over, and so are all others with them.
    let odd = serde_json::json!([entry("new", "Update", ""), entry("m", "Take", "")]);
    let (code, kept) = send(&server, "PUT", &path, &object("old", odd)).await;
    assert_eq!((code, managers(&kept)), (200, managers(&stored)));
    // One that says nothing, or none, takes all away.
    for reset in [serde_json::json!([{}]), serde_json::json!([])] {
        let (code, reset) = send(&server, "PUT", &path, &object("old", reset)).await;
        assert_eq!((code, managers(&reset)), (200, Vec::new()));
    }
}
