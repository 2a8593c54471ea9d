//! The cluster's front door: who may come in, where, and how they find it. It knows nothing of
//! what is behind it.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use stint_apiserver::ApiServer;
use stint_apiserver::access::Authenticator;
use stint_apiserver::wire::{
    Certificates, CertificatesError, Kubeconfig, KubeconfigError, ListenError, ListenOptions,
    Listener, Served, ServerNames, Tokens, TokensError,
};
use thiserror::Error;

/// Where the door is.
#[derive(Clone, Debug)]
pub struct FrontOptions {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Whether it may be one that other machines reach.
    pub allow_remote: bool,
    /// Names and addresses that clients use besides those of this machine.
    pub names: Vec<String>,
    /// The name of the node that Pods run on.
    pub node: String,
}

/// Why there is no door.
#[derive(Debug, Error)]
pub enum FrontError {
    /// There are no certificates.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// There are no tokens.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The kubeconfig cannot be written.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
}

/// A door that clients can knock at.
pub struct Front {
    listener: Listener,
    certificates: Certificates,
    tokens: Tokens,
    node: String,
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Front {
    /// Listens, with certificates and tokens that are kept in a folder, or are gone with the
    /// process.
    pub async fn open(
        data_folder: Option<&Path>,
        options: FrontOptions,
    ) -> Result<Self, FrontError> {
        let names = ServerNames::new([options.listen.ip()], &options.names);
        let now = SystemTime::now();
        let (certificates, tokens) = match data_folder {
            Some(folder) => (Certificates::open(folder, &names, now)?, Tokens::open(folder)?),
            None => (Certificates::in_memory(&names, now)?, Tokens::in_memory()?),
        };
        let listen = ListenOptions {
            allow_remote: options.allow_remote,
            ..ListenOptions::new(options.listen)
        };
        let listener = Listener::bind(listen, &certificates).await?;
        Ok(Front { listener, certificates, tokens, node: options.node })
    }

    /// Knows who knocks.
    pub fn authenticator(&self) -> Authenticator {
        Authenticator::new(self.tokens.bearers(&self.node))
    }

    /// The authority whom clients must trust.
    pub fn authority_pem(&self) -> &str {
        self.certificates.authority_pem()
    }

    /// Where it is, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Finds out whether a kubeconfig can be written there, before there is anything to write.
    pub fn check_kubeconfig(path: &Path) -> Result<(), FrontError> {
        Ok(Kubeconfig::check(path)?)
    }

    /// Writes the file by which clients find the door and come in.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<(), FrontError> {
        let kubeconfig = Kubeconfig::with_certificates(self.address(), &self.certificates)
            .with_tokens(&self.tokens);
        Ok(kubeconfig.write(path)?)
    }

    /// Lets clients in until `shutdown` is there, and those who are in finish within `grace`.
    pub async fn serve(
        self,
        server: ApiServer,
        shutdown: impl Future<Output = ()>,
        grace: Duration,
    ) -> Served {
        let draining = server.clone();
        let shutdown = async move {
            shutdown.await;
            // Watches have no end of their own.
            draining.drain();
        };
        self.listener.serve(server, shutdown, grace).await
    }
}
