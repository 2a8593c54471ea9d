//! AppArmor profiles that a new Pod names in annotations, as before Kubernetes 1.30: they
//! become fields.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{AppArmorProfile, Pod};

use crate::names::annotation::APP_ARMOR_PREFIX;

/// A name that is longer is no profile; upstream's limit.
const PROFILE_MAX_BYTES: usize = 4095;

/// Fills in the profile of each container that has one in an annotation only, unless
/// that is the Pod's own.
pub(super) fn fill_in_profiles(pod: &mut Pod) {
    let (Some(annotations), Some(spec)) = (&pod.metadata.annotations, &mut pod.spec) else {
        return;
    };
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let of_pod =
        spec.security_context.as_ref().and_then(|context| context.app_armor_profile.as_ref());
    let containers = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
    let mut seen = BTreeSet::new();
    for container in containers {
        // A second container of a name is refused; a profile for each would be many.
        if !seen.insert(&container.name) {
            continue;
        }
        let Some(annotation) = annotations.get(&format!("{APP_ARMOR_PREFIX}{}", container.name))
        else {
            continue;
        };
        let own = container.security_context.as_ref();
        if own.is_some_and(|context| context.app_armor_profile.is_some()) {
            continue;
        }
        let profile = profile(annotation).filter(|profile| Some(profile) != of_pod);
        if let Some(profile) = profile {
            container.security_context.get_or_insert_default().app_armor_profile = Some(profile);
        }
    }
}

fn profile(annotation: &str) -> Option<AppArmorProfile> {
    let plain = |kind: &str| AppArmorProfile { type_: kind.to_owned(), localhost_profile: None };
    match annotation {
        "unconfined" => Some(plain("Unconfined")),
        "runtime/default" => Some(plain("RuntimeDefault")),
        _ => {
            let name = annotation.strip_prefix("localhost/")?;
            let is_name =
                !name.is_empty() && name.trim() == name && name.len() <= PROFILE_MAX_BYTES;
            is_name.then(|| AppArmorProfile {
                localhost_profile: Some(name.to_owned()),
                ..plain("Localhost")
            })
        }
    }
}
