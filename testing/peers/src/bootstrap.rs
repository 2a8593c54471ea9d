//! What there is in every cluster before anything else: the default service account, and what the
//! users of the tests may do.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::authority::User;
use crate::cluster::ClusterError;
use crate::deployed;

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
    install_roles(admin).await
}

/// Lets stint's controller do what `deploy/` allows it, and no more: the roles of the overlays as
/// they are, bound to the service accounts that they name.
async fn install_roles(admin: &Client) -> Result<(), ClusterError> {
    for namespace in deployed::namespace()? {
        apply::<Namespace>(&Api::all(admin.clone()), &namespace).await?;
    }
    for overlay in ["managed-by", "replace-builtin"] {
        install(admin, &deployed::kustomized(&format!("overlays/{overlay}")).await?).await?;
    }
    Ok(())
}

/// Installs those of some objects that say who may do what: service accounts, roles and bindings.
pub async fn install(admin: &Client, objects: &[Value]) -> Result<(), ClusterError> {
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let admin = admin.clone();
        match kind {
            "ServiceAccount" => {
                apply::<ServiceAccount>(&Api::namespaced(admin, &namespace), object).await?;
            }
            "ClusterRole" => apply::<ClusterRole>(&Api::all(admin), object).await?,
            "ClusterRoleBinding" => apply::<ClusterRoleBinding>(&Api::all(admin), object).await?,
            "Role" => apply::<Role>(&Api::namespaced(admin, &namespace), object).await?,
            "RoleBinding" => {
                apply::<RoleBinding>(&Api::namespaced(admin, &namespace), object).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Applies an object as `kubectl apply --server-side` does, so that kubectl can apply it again.
async fn apply<K>(api: &Api<K>, object: &Value) -> Result<(), ClusterError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let params = PatchParams::apply("kubectl");
    match api.patch(name, &params, &Patch::Apply(object)).await {
        Ok(_) => Ok(()),
        Err(source) => {
            let what = format!("{name} cannot be applied");
            Err(ClusterError::Bootstrap { what, source })
        }
    }
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
