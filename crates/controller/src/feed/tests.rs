//! A feed on a server that answers from a script.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Ready;
use std::sync::Mutex;
use std::task::{Context, Poll};

use http::Response;
use http_body_util::Full;
use serde_json::{Value, json};
use tower_service::Service;

use super::*;
use crate::ticks::Ticks;

/// Answers requests one by one, and says how each was asked.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<(u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service<Request<Body>> for Script {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.asked.lock().expect("a lock").push(request.uri().to_string());
        let next = self.answers.lock().expect("a lock").pop_front();
        let (code, body) = next.unwrap_or((500, "the script is over".to_owned()));
        let answer = Response::builder().status(code).body(Full::new(body.into()));
        std::future::ready(Ok(answer.expect("an answer")))
    }
}

fn pod(kind: &str, name: &str, version: u64) -> String {
    let meta = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
    format!("{}\n", json!({"type": kind, "object": {"metadata": meta}}))
}

fn bookmark(version: u64, annotations: Value) -> String {
    let meta = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": meta});
    format!("{}\n", json!({"type": "BOOKMARK", "object": object}))
}

fn list_end(version: u64) -> String {
    bookmark(version, json!({LIST_ENDS: "true"}))
}

fn refused(code: u16) -> (u16, String) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": "x", "message": "x", "code": code,
    });
    (code, status.to_string())
}

/// A feed that a script answers, and what it tells.
fn feed(script: &Script) -> (Feed<WirePod>, mpsc::Receiver<(usize, News<SeenPod>)>) {
    let (listener, news) = mpsc::channel(100);
    let feed = Feed {
        client: Client::new(script.clone(), "ns"),
        path: "/pods".to_owned(),
        finalizer: "f".into(),
        scope: 7,
        listener,
        health: Health::new(Ticks::system()),
    };
    (feed, news)
}

/// Plays a script; what was told, a word each, and what was asked for, the path left out.
async fn play(answers: Vec<(u16, String)>) -> (Vec<String>, Vec<String>) {
    let script = Script::default();
    script.answers.lock().expect("a lock").extend(answers);
    let (feed, mut news) = feed(&script);
    let feeding = tokio::spawn(feed.run());
    while !script.answers.lock().expect("a lock").is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    feeding.abort();
    let mut told = Vec::new();
    while let Ok((scope, news)) = news.try_recv() {
        assert_eq!(scope, 7);
        told.extend(words(news));
    }
    let asked = script.asked.lock().expect("a lock").clone();
    (told, asked)
}

fn words(news: News<SeenPod>) -> Vec<String> {
    let change = |change: Change<SeenPod>| match change {
        Change::Seen(pod) => format!("seen {}", pod.facts.name),
        Change::Gone(pod) => format!("gone {}", pod.facts.name),
        Change::Reached(version) => format!("reached {version}"),
    };
    match news {
        News::Began => vec!["began".to_owned()],
        News::Items(items) => {
            let item = |item: Change<SeenPod>| match item {
                Change::Seen(pod) => format!("item {}", pod.facts.name),
                other => change(other),
            };
            items.into_iter().map(item).collect()
        }
        News::Listed(version) => vec![format!("listed {version}")],
        News::Changes(changes) => changes.into_iter().map(change).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_where_the_one_before_has_ended() {
    let first = pod("ADDED", "a", 3) + &list_end(5) + &pod("MODIFIED", "a", 6);
    let second = pod("DELETED", "a", 9) + &bookmark(20, json!({}));
    let (told, asked) = play(vec![(200, first), (200, second), (200, String::new())]).await;
    assert_eq!(told, ["began", "item a", "listed 5", "seen a", "gone a", "reached 20"]);
    assert!(asked[0].contains("sendInitialEvents=true") && !asked[0].contains("resourceVersion="));
    assert!(asked[1].ends_with("&resourceVersion=6"), "{}", asked[1]);
    assert!(asked[2].ends_with("&resourceVersion=20"), "{}", asked[2]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_far_behind_lists_again() {
    let gone = json!({"type": "ERROR", "object": serde_json::from_str::<Value>(&refused(410).1)
        .expect("a status")});
    let first = list_end(5) + &pod("ADDED", "a", 6) + &format!("{gone}\n");
    let second = pod("ADDED", "b", 8) + &list_end(9);
    let (told, asked) =
        play(vec![(200, first), (200, second), refused(410), (200, list_end(12))]).await;
    assert_eq!(
        told,
        ["began", "listed 5", "seen a", "began", "item b", "listed 9", "began", "listed 12"]
    );
    assert!(asked[1].contains("sendInitialEvents") && asked[3].contains("sendInitialEvents"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_begun_anew() {
    let half = pod("ADDED", "a", 3);
    let whole = pod("ADDED", "a", 3) + &list_end(5);
    let (told, _) = play(vec![(200, half), (200, whole)]).await;
    assert_eq!(told, ["began", "item a", "began", "item a", "listed 5"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_asked_page_by_page() {
    let page = |name: &str, token: &str| {
        let items = json!([{"metadata": {"name": name, "uid": name, "resourceVersion": "3"}}]);
        let metadata = json!({"resourceVersion": "5", "continue": token});
        (200, json!({"metadata": metadata, "items": items}).to_string())
    };
    let answers = vec![refused(422), page("a", "x y"), page("b", ""), (200, pod("ADDED", "c", 7))];
    let (told, asked) = play(answers).await;
    assert_eq!(told, ["began", "began", "item a", "item b", "listed 5", "seen c"]);
    assert_eq!(asked[1..3], ["/pods?limit=500", "/pods?limit=500&continue=x%20y"]);
    assert!(asked[3].ends_with("&resourceVersion=5"), "{}", asked[3]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_refused_is_told_of_in_the_words_of_the_server() {
    let script = Script::default();
    let forbidden = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": "pods is forbidden",
    });
    let answers = [(403, forbidden.to_string()), refused(410)];
    script.answers.lock().expect("a lock").extend(answers);
    let (feed, _) = feed(&script);
    for expected in ["not now: pods is forbidden", "refused: x"] {
        match feed.page("").await {
            Err(Stop::Failed(why, None)) => assert_eq!(why, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_goes_before_a_list_ends_is_told_in_its_place() {
    let first = pod("ADDED", "a", 3)
        + &pod("ADDED", "b", 4)
        + &pod("DELETED", "a", 6)
        + &list_end(7)
        + &pod("ADDED", "c", 8);
    let (told, _) = play(vec![(200, first)]).await;
    assert_eq!(told, ["began", "item a", "item b", "gone a", "listed 7", "seen c"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_read_keeps_no_other_from_being_told() {
    let odd = |name: &str, version: u64| {
        let meta = json!({"name": name, "uid": name, "resourceVersion": version.to_string()});
        let statuses = json!([{"name": "main", "restartCount": 4_294_967_296_u64}]);
        let object = json!({"metadata": meta, "status": {"containerStatuses": statuses}});
        format!("{}\n", json!({"type": "MODIFIED", "object": object}))
    };
    let first = list_end(5) + &pod("ADDED", "a", 6) + &odd("b", 7) + &pod("ADDED", "c", 8);
    let again = odd("b", 7) + &pod("ADDED", "c", 8);
    let (told, asked) = play(vec![(200, first), (200, again), (200, String::new())]).await;
    assert_eq!(told, ["began", "listed 5", "seen a", "reached 7", "seen c"]);
    assert!(asked[1].ends_with("&resourceVersion=6"), "{}", asked[1]);
    assert!(asked[2].ends_with("&resourceVersion=8"), "{}", asked[2]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_is_not_asked_before() {
    let busy = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
        "reason": "TooManyRequests", "message": "x", "details": {"retryAfterSeconds": 9},
    });
    let began = Instant::now();
    let (told, _) = play(vec![(429, busy.to_string()), (200, list_end(5))]).await;
    assert_eq!(told, ["began", "began", "listed 5"]);
    assert!(began.elapsed() >= Duration::from_secs(9 + 60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_short_but_tells_something_is_begun_anew_soon() {
    let mut answers = vec![(200, list_end(5))];
    answers.extend((6..26).map(|version| (200, pod("MODIFIED", "a", version))));
    let began = Instant::now();
    let (told, _) = play(answers).await;
    assert_eq!(told.iter().filter(|word| *word == "seen a").count(), 20);
    // 60 s are the test's own.
    assert!(began.elapsed() < Duration::from_secs(60 + 5), "{:?}", began.elapsed());
}
