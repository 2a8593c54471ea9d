//! Calls to a server that cannot always answer.

use std::future::Future;
use std::time::{Duration, Instant};

/// How soon a call is made again that the server could not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// How long a server may say after its start that nobody may do anything.
const STRANGE: Duration = Duration::from_secs(30);

/// Makes a call until the server has decided about it.
pub(crate) async fn answered<T, F>(mut call: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let began = Instant::now();
    loop {
        match call().await {
            Err(kube::Error::Api(status)) if !is_passing(status.code, began.elapsed()) => {
                return Err(kube::Error::Api(status));
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
            decided => return decided,
        }
    }
}

/// Whether another answer may come later. A server that was just started does not know yet who may
/// do what, and says that nobody may.
fn is_passing(code: u16, since: Duration) -> bool {
    match code {
        401 | 403 => since < STRANGE,
        code => code >= 500 || code == 429,
    }
}
