{{- define "stint.fullname" -}}
{{- if contains "stint" .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-stint" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stint.selector" -}}
app.kubernetes.io/name: stint
app.kubernetes.io/component: job-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stint.labels" -}}
{{ include "stint.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "stint.serviceAccount" -}}
{{- default (include "stint.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{/* A release has a Lease of its own: two releases must run different Jobs, which NOTES.txt says. */}}
{{- /* Whoever runs other Jobs has another Lease: whoever does not lead runs nothing. */ -}}
{{- define "stint.lease" -}}
{{- $jobs := printf "%s %s" .Values.managedBy (join "," .Values.namespaces) -}}
{{- $which := "" -}}
{{- if and .Values.replaceBuiltin (not .Values.namespaces) -}}
{{- $which = "-builtin" -}}
{{- else if or .Values.replaceBuiltin (ne $jobs "stint.dev/job-controller ") -}}
{{- $which = printf "%s %v" $jobs .Values.replaceBuiltin | sha256sum | trunc 8 | printf "-%s" -}}
{{- end -}}
{{- default (printf "%s-job-controller%s" (include "stint.fullname" .) $which) .Values.leaderElection.leaseName -}}
{{- end -}}

{{- define "stint.rules" -}}
# Watches them, and looks one up that it is not sure of.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch]
# Counts, indexes and conditions.
- apiGroups: [batch]
  resources: [jobs/status]
  verbs: [patch]
# Pods have their Job as an owner whose deletion they block, which the admission plugin
# OwnerReferencesPermissionEnforcement, where it is on, allows only to those who may do this.
- apiGroups: [batch]
  resources: [jobs/finalizers]
  verbs: [update]
# patch: the tracking finalizer, and the owner of a Pod that is adopted or released.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# patch: the count of an Event that is said again.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
