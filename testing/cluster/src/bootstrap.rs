//! What there is in every cluster before anything else: the default service account, and what the
//! users of the tests may do.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::authority::User;
use crate::cluster::ClusterError;

/// Makes it. Namespaces are kube-apiserver's own business.
pub(crate) async fn prepare(admin: &Client) -> Result<(), ClusterError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
    create(&accounts, json!({"metadata": {"name": "default"}})).await?;
    let everything = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let kubelet = json!([
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": everything},
        {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    ]);
    grant(admin, &User::kubelet(), kubelet).await?;
    grant(admin, &User::controller(), controller_rules()).await
}

/// What stint's controller may do, and no more.
fn controller_rules() -> Value {
    json!([
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["patch"]},
        {
            "apiGroups": [""], "resources": ["pods"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["get", "create", "update", "patch"],
        },
    ])
}

/// Lets somebody do what `rules` say, everywhere.
pub async fn grant(admin: &Client, user: &User, rules: Value) -> Result<(), ClusterError> {
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    create(&roles, json!({"metadata": {"name": user.name}, "rules": rules})).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    let binding = json!({
        "metadata": {"name": user.name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user.name,
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name,
        }],
    });
    create(&bindings, binding).await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<(), ClusterError>
where
    K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let what = format!("{} cannot be created", object["metadata"]["name"]);
    let object: K = serde_json::from_value(object).expect("an object of this kind");
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(source) => Err(ClusterError::Bootstrap { what, source }),
    }
}
