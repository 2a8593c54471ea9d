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
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false and serviceAccount.name is empty: name the account that is there, or let it be created" -}}
{{- end -}}
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

{{- /* A time as values.schema.json has it, in milliseconds. */ -}}
{{- define "stint.millis" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" . -1 -}}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" . | atoi) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{- /* Times that do not fit together, which a schema cannot say: stint would refuse to start. */ -}}
{{- define "stint.checkTimes" -}}
{{- $lease := .Values.leaderElection -}}
{{- $duration := include "stint.millis" $lease.leaseDuration | atoi -}}
{{- $renew := include "stint.millis" $lease.renewDeadline | atoi -}}
{{- $retry := include "stint.millis" $lease.retryPeriod | atoi -}}
{{- if le $duration $renew -}}
{{- fail (printf "leaderElection.leaseDuration (%s) must be longer than leaderElection.renewDeadline (%s)" $lease.leaseDuration $lease.renewDeadline) -}}
{{- end -}}
{{- if lt $retry 100 -}}
{{- fail (printf "leaderElection.retryPeriod (%s) must be 100ms at least" $lease.retryPeriod) -}}
{{- end -}}
{{- if le (mul 10 $renew) (mul 12 $retry) -}}
{{- fail (printf "leaderElection.renewDeadline (%s) must be longer than 1.2 times leaderElection.retryPeriod (%s)" $lease.renewDeadline $lease.retryPeriod) -}}
{{- end -}}
{{- $base := get .Values.config "pod-failure-backoff-base" | default "10s" -}}
{{- $cap := get .Values.config "pod-failure-backoff-max" | default "10m" -}}
{{- if gt (include "stint.millis" $base | atoi) (include "stint.millis" $cap | atoi) -}}
{{- fail (printf "config.pod-failure-backoff-base (%s) must not be longer than config.pod-failure-backoff-max (%s)" $base $cap) -}}
{{- end -}}
{{- end -}}

{{- /* A budget that all replicas are needed for: no node with one of them could be drained. Shares are rounded up, as
Kubernetes does. */ -}}
{{- define "stint.checkBudget" -}}
{{- $replicas := int .Values.replicaCount -}}
{{- $text := toString .Values.podDisruptionBudget.minAvailable -}}
{{- $least := trimSuffix "%" $text | atoi -}}
{{- if hasSuffix "%" $text -}}
{{- $least = div (add (mul $least $replicas) 99) 100 -}}
{{- end -}}
{{- if and .Values.podDisruptionBudget.enabled (gt $replicas 1) (ge (int $least) $replicas) -}}
{{- fail (printf "podDisruptionBudget.minAvailable (%s) must leave out one of replicaCount (%d) at least: else no node that runs a replica can be drained" $text $replicas) -}}
{{- end -}}
{{- end -}}

{{- /* Which controller a Job names cannot be told with this gate off: stint would refuse to start. */ -}}
{{- define "stint.checkGates" -}}
{{- /* Of a gate that is given twice the last one counts. */ -}}
{{- $given := regexFindAll "JobManagedBy=(true|false)" (get .Values.config "feature-gates" | default "") -1 -}}
{{- if and (not .Values.replaceBuiltin) $given (eq (last $given) "JobManagedBy=false") -}}
{{- fail "config.feature-gates turns JobManagedBy off, without which no Job names its controller: leave it on, or set replaceBuiltin" -}}
{{- end -}}
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
