//! `/healthz`, `/readyz` and `/metrics`, on an address of their own: for the kubelet and for
//! Prometheus. Nothing can be changed there, and nothing secret is told.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use stint_controller::{Health, Metrics};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How many may be connected: a kubelet and a few Prometheus servers, and room for people.
const MOST_CONNECTIONS: usize = 64;

/// How long a request may take to arrive, and how long a connection may be idle.
const READ_TIME: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted: descriptors may have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The text form that the counters are written in.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers for ever.
pub(super) async fn serve(listener: TcpListener, health: Health, metrics: Metrics) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let permit = room.clone().acquire_owned().await.expect("it is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (health, metrics) = (health.clone(), metrics.clone());
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path(), &health, &metrics);
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            // Whoever hangs up knows why.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READ_TIME)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
    }
}

fn answer(
    method: &Method,
    path: &str,
    health: &Health,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    let (code, kind, text) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/healthz" | "/livez") => match health.alive() {
            Ok(()) => (StatusCode::OK, PLAIN, "ok".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
        },
        (&Method::GET | &Method::HEAD, "/readyz") => match health.ready() {
            Ok(text) => (StatusCode::OK, PLAIN, text),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
        },
        (&Method::GET | &Method::HEAD, "/metrics") => {
            (StatusCode::OK, OPEN_METRICS, metrics.text())
        }
        (&Method::GET | &Method::HEAD, _) => {
            let text = "there is /healthz, /readyz and /metrics".to_owned();
            (StatusCode::NOT_FOUND, PLAIN, text)
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD".to_owned()),
    };
    let text = if kind == PLAIN { text + "\n" } else { text };
    let answer = Response::builder().status(code).header(CONTENT_TYPE, kind);
    answer.body(Full::new(text.into())).expect("its headers are constants")
}

#[cfg(test)]
mod tests {
    use stint_controller::Ticks;

    use super::*;

    #[test]
    fn each_path_answers_what_it_is_asked() {
        let (health, metrics) = (Health::new(Ticks::system()), Metrics::new());
        let code =
            |method: Method, path: &str| answer(&method, path, &health, &metrics).status().as_u16();
        let rows = [
            (Method::GET, "/healthz", 200),
            (Method::GET, "/readyz", 503),
            (Method::GET, "/metrics", 200),
            (Method::GET, "/", 404),
            (Method::POST, "/metrics", 405),
        ];
        for (method, path, expected) in rows {
            assert_eq!(code(method, path), expected, "{path}");
        }
    }
}
