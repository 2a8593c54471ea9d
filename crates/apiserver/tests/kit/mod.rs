//! A server without sockets, and requests to it.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http::header::HeaderMap;
use http_body_util::{BodyExt, Full};
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Clock, Config, Limits, LocalServer};
use stint_store::Store;
use tower_service::Service;

/// What time it is there.
pub(crate) const NOW: &str = "2026-05-01T12:00:00Z";

/// A server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Server {
    local: LocalServer,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) code: u16,
    #[allow(dead_code, reason = "not every test looks at them")]
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Server {
    /// A server on a store.
    pub(crate) fn on(store: Store) -> Self {
        let config = Config {
            gates: FeatureGates::default(),
            clock: Clock::new(|| NOW.parse().expect("a time")),
            logs: Arc::new(NoLogs),
            tracks_owners: true,
        };
        let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
        let server = ApiServer::new(store, nobody, config, Limits::default());
        Server { local: server.local(Identity::admin()) }
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Answer {
        let mut local = self.local.clone();
        let Ok(answer) = local.call(request.map(Full::new)).await;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.expect("all of it");
        Answer { code: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() }
    }

    /// Sends a request whose answer is a watch. Time passes while it is read, as fast as
    /// nothing happens: so it ends at once.
    #[allow(dead_code, reason = "not every test watches")]
    pub(crate) async fn watch(&self, request: Request<Bytes>) -> Answer {
        let mut local = self.local.clone();
        let Ok(answer) = local.call(request.map(Full::new)).await;
        let (parts, body) = answer.into_parts();
        tokio::time::pause();
        let body = body.collect().await.expect("all of it");
        tokio::time::resume();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() }
    }

    /// Makes a namespace.
    pub(crate) async fn make_namespace(&self, name: &str) {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let request = Request::post("/api/v1/namespaces").body(body.into()).expect("a request");
        assert_eq!(self.send(request).await.code, 201, "{name}");
    }
}
