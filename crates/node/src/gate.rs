//! A gate that somebody opens once. Before that nothing goes through.

use std::future::pending;

use tokio::sync::watch;

/// A gate. One that nobody has shut is open. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    is_open: Option<watch::Receiver<bool>>,
}

/// Opens a gate.
#[derive(Debug)]
pub struct GateKey {
    is_open: watch::Sender<bool>,
}

impl Gate {
    /// A gate that is shut, and what opens it. If that is dropped before, it stays shut.
    pub fn shut() -> (GateKey, Gate) {
        let (key, gate) = watch::channel(false);
        (GateKey { is_open: key }, Gate { is_open: Some(gate) })
    }

    /// Waits until it is open.
    pub async fn opened(&self) {
        if let Some(mut gate) = self.is_open.clone()
            && gate.wait_for(|is_open| *is_open).await.is_err()
        {
            pending::<()>().await;
        }
    }
}

impl GateKey {
    /// Opens the gate, for ever.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_gate_is_open_unless_somebody_has_shut_it_and_not_opened_it() {
        let is_open = |gate: &Gate| gate.opened().now_or_never().is_some();
        assert!(is_open(&Gate::default()));
        let (key, gate) = Gate::shut();
        assert!(!is_open(&gate));
        key.open();
        drop(key);
        assert!(is_open(&gate.clone()));
        let (key, gate) = Gate::shut();
        drop(key);
        assert!(!is_open(&gate));
    }
}
