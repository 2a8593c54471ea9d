//! A disk that takes no writes: it is said once, and when it is over.

use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use stint_store::StoreError;
use tokio::sync::watch::Receiver;
use tracing::{error, warn};

/// Says when the disk begins to refuse what is to be stored in this folder, and when it takes it
/// again.
pub(crate) async fn watch(
    mut refusal: Receiver<Option<StoreError>>,
    folder: PathBuf,
) -> Infallible {
    let folder = folder.display();
    loop {
        let why = begun(&mut refusal).await;
        error!(error = %why, %folder, "nothing can be stored until there is room on the disk; reads go on");
        if refusal.wait_for(Option::is_none).await.is_err() {
            pending().await
        }
        warn!(%folder, "writes are stored again");
    }
}

/// Waits until the disk has taken nothing for so long, and answers why.
pub(crate) async fn refused(
    mut refusal: Receiver<Option<StoreError>>,
    patience: Duration,
) -> StoreError {
    loop {
        let error = begun(&mut refusal).await;
        let over = tokio::time::timeout(patience, refusal.wait_for(Option::is_none)).await;
        match over.map(|over| over.is_ok()) {
            Err(_) => return error,
            Ok(true) => {}
            Ok(false) => pending().await,
        }
    }
}

/// Waits for the first refusal. A store that is closed refuses nothing any more.
async fn begun(refusal: &mut Receiver<Option<StoreError>>) -> StoreError {
    let error = refusal.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
    match error {
        Some(error) => error,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tokio::sync::watch::channel;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_comes_to_itself_is_waited_for_and_another_is_not() {
        let source = Arc::new(io::Error::from(io::ErrorKind::StorageFull));
        let error = StoreError::InDoubt { source };
        let (sender, receiver) = channel(None);
        let begun = Instant::now();
        let waiting = tokio::spawn(refused(receiver, Duration::from_secs(10)));
        for (seconds, news) in [(1, Some(error.clone())), (9, None), (100, Some(error))] {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            assert!(!waiting.is_finished(), "after {:?}", begun.elapsed());
            sender.send(news).expect("somebody waits");
        }
        let why = waiting.await.expect("it does not panic");
        assert!(matches!(why, StoreError::InDoubt { .. }));
        assert_eq!(begun.elapsed(), Duration::from_secs(120));
    }
}
