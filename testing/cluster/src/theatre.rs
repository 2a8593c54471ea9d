//! A cluster with a Job controller, and Pods that are driven: where plays are given.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use stint_kit::{Driver, Stage};
use tokio::task::JoinSet;

use crate::authority::User;
use crate::cluster::{Cluster, ClusterError, Manager, Options};
use crate::stint::{Build, Mode, Stint};

/// How long a condition may take to come true: longer than the longest backoff of a play (some 80
/// s), twice over.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long is long here: longer than everything else that happens to a Job at that time takes,
/// also on a machine that has much to do.
const LONG: Duration = Duration::from_secs(25);

/// Who runs the Jobs.
#[derive(Clone, Debug)]
pub enum Player {
    /// Stint, in place of the built-in controller.
    Stint(Build),
    /// The built-in controller.
    BuiltIn,
    /// Nobody: whoever it is, the scenario starts it itself.
    Nobody,
    /// Both: the built-in controller, and stint for the Jobs that name it.
    Both(Build),
}

impl Player {
    /// How it is called in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Player::Stint(_) => "stint",
            Player::BuiltIn => "built-in",
            Player::Nobody => "nobody",
            Player::Both(_) => "both",
        }
    }
}

/// A cluster where plays are given.
pub struct Theatre {
    /// The stage.
    pub stage: Stage,
    /// Stint, while it runs.
    pub stint: Option<Stint>,
    /// The cluster.
    pub cluster: Cluster,
    player: Player,
}

impl Theatre {
    /// Starts a cluster and who plays on it.
    pub async fn open(
        options: Options,
        player: &Player,
        driver: Driver,
    ) -> Result<Self, ClusterError> {
        let cluster = Cluster::start(options).await?;
        let kubelet = cluster.client(&User::kubelet()).await?;
        let mut background = JoinSet::new();
        driver.start(&mut background, kubelet, Arc::new(Timestamp::now), LONG);
        let mut stage = Stage::new(background, cluster.admin().await?, driver, PATIENCE);
        stage.keeps_start_time = match player {
            Player::BuiltIn => cluster.version().keeps_start_time(),
            Player::Stint(_) | Player::Nobody | Player::Both(_) => false,
        };
        let mut theatre = Theatre { stage, stint: None, cluster, player: player.clone() };
        theatre.start_player().await?;
        Ok(theatre)
    }

    /// Starts who runs the Jobs. The rest of kube-controller-manager runs in any case.
    pub async fn start_player(&mut self) -> Result<(), ClusterError> {
        let (manager, stint) = match &self.player {
            Player::Stint(build) => (Manager::WithoutJobs, Some((build, Mode::Replace))),
            Player::BuiltIn => (Manager::WithJobs, None),
            Player::Nobody => return Ok(()),
            Player::Both(build) => (Manager::WithJobs, Some((build, Mode::Beside))),
        };
        if self.cluster.manages() != Some(manager) {
            self.cluster.start_manager(manager).await?;
        }
        if let Some((build, mode)) = stint {
            self.stint = Some(Stint::start(&self.cluster, build, mode).await?);
        }
        Ok(())
    }

    /// Stops who runs the Jobs.
    pub async fn stop_player(&mut self) -> Result<(), ClusterError> {
        if let Some(stint) = self.stint.take() {
            stint.stop().await;
        }
        if self.cluster.manages() != Some(Manager::WithoutJobs) {
            self.cluster.start_manager(Manager::WithoutJobs).await?;
        }
        Ok(())
    }
}
