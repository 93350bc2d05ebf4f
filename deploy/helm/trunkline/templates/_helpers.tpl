{{- define "trunkline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "trunkline.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "trunkline.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "trunkline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "trunkline.selector" -}}
app.kubernetes.io/name: {{ include "trunkline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trunkline.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "trunkline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "trunkline.serviceAccount" -}}
{{- default (ternary (include "trunkline.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "trunkline.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The components of the mode, by name, with all keys that one can have. */}}
{{- define "trunkline.components" -}}
{{- include "trunkline.check" . -}}
{{- $given := .Values.components -}}
{{- if eq .Values.mode "single" -}}
{{- $roles := list "ingest" "normalizer" "fanout" "cdrindex" "stats" "origination" "aisession" "api" -}}
{{- $given = dict "node" (merge (dict "roles" $roles "replicas" 1 "autoscaling" (dict "enabled" false)) (omit .Values.single "persistence")) -}}
{{- end -}}
{{- $all := dict -}}
{{- range $name, $one := $given -}}
{{- if $one -}}
{{- $optional := dict "settings" dict "env" list "ports" list "hostNetwork" false "podAnnotations" dict
  "nodeSelector" dict "tolerations" list "affinity" dict "service" $.Values.service
  "autoscaling" (dict "metrics" list "behavior" dict) -}}
{{- $_ := set $all $name (merge (deepCopy $one) $optional) -}}
{{- end -}}
{{- end -}}
{{- $all | toYaml -}}
{{- end -}}

{{/* Replicas of a component: root, name, component. With autoscaling as many as run at the moment,
and at least minReplicas: where the field is missing, the API server scales to one pod, until the
autoscaler acts. */}}
{{- define "trunkline.replicas" -}}
{{- $scaling := .component.autoscaling -}}
{{- if $scaling.enabled -}}
{{- $deployment := printf "%s-%s" (include "trunkline.fullname" .root) .name -}}
{{- $running := lookup "apps/v1" "Deployment" .root.Release.Namespace $deployment | dig "spec" "replicas" 0 -}}
{{- min (max (int $running) (int $scaling.minReplicas)) (int $scaling.maxReplicas) -}}
{{- else -}}
{{- .component.replicas -}}
{{- end -}}
{{- end -}}

{{/* trunkline.yaml of a component: root, component. A fanout node that the autoscaler adds takes
connections from the others. */}}
{{- define "trunkline.settings" -}}
{{- $v := .root.Values -}}
{{- $tls := dict "mode" $v.tls.mode -}}
{{- if has $v.tls.mode (list "secret" "certManager") -}}
{{- $tls = dict "mode" "files" "cert_file" "/etc/trunkline/tls/tls.crt" "key_file" "/etc/trunkline/tls/tls.key" -}}
{{- end -}}
{{- $own := dict "listen" ":9443" "metrics_listen" ":9464" "data_dir" "/var/lib/trunkline" "drain_timeout" (printf "%ds" (int $v.drain.timeoutSeconds)) "tls" $tls -}}
{{- $scaled := dict -}}
{{- if and .component.autoscaling.enabled (has "fanout" .component.roles) -}}
{{- $scaled = dict "fanout" (dict "rebalance_time" "10m") -}}
{{- end -}}
{{- mergeOverwrite $scaled (deepCopy $v.settings) (deepCopy .component.settings) $own | toYaml -}}
{{- end -}}

{{- define "trunkline.tlsSecret" -}}
{{- if eq .Values.tls.mode "certManager" -}}
{{ default (printf "%s-tls" (include "trunkline.fullname" .)) .Values.tls.secretName }}
{{- else if eq .Values.tls.mode "secret" -}}
{{ required "tls.mode secret needs tls.secretName" .Values.tls.secretName }}
{{- end -}}
{{- end -}}

{{/* Invalid combinations are refused here, with the correction. */}}
{{- define "trunkline.check" -}}
{{- $secrets := list -}}
{{- range .Values.secrets -}}{{- $secrets = append $secrets .setting -}}{{- end -}}
{{- if eq .Values.mode "cluster" -}}
{{- if not (dig "kafka" "brokers" "" .Values.settings) -}}{{- fail "mode cluster needs settings.kafka.brokers" -}}{{- end -}}
{{- if not (or (dig "redis" "address" "" .Values.settings) (dig "redis" "cluster_addresses" "" .Values.settings) (dig "redis" "sentinel" "addresses" "" .Values.settings)) -}}
{{- fail "mode cluster needs settings.redis.address, cluster_addresses or sentinel.addresses" -}}
{{- end -}}
{{- range list "database.url" "master_key" "recordings.url" -}}
{{- if not (has . $secrets) -}}{{- fail (printf "mode cluster needs %s among secrets" .) -}}{{- end -}}
{{- end -}}
{{- if eq .Values.tls.mode "auto" -}}{{- fail "mode cluster needs tls.mode off, secret or certManager: each pod would make a certificate of its own" -}}{{- end -}}
{{- end -}}
{{- if and (eq .Values.tls.mode "certManager") (not (and .Values.tls.certManager.issuerRef.name .Values.tls.certManager.dnsNames)) -}}
{{- fail "tls.mode certManager needs tls.certManager.issuerRef.name and tls.certManager.dnsNames" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}{{- fail "ingress.enabled needs ingress.host" -}}{{- end -}}
{{- end -}}

{{- /* For HAProxy's ingress controller, ignored by others: subscribers of the same
events meet on one node, as in deploy/balancer/haproxy.cfg. */}}
{{- define "trunkline.haproxyAffinity" -}}
http-request set-var(txn.token) url_param(token)
http-request set-var(txn.token) http_auth_bearer
http-request set-var(txn.group) var(txn.token),jwt_header_query('$.account')
http-request set-var(txn.group) var(txn.token),jwt_header_query('$.partition')
balance hash var(txn.group)
hash-type consistent
hash-balance-factor 150
default-server weight 64
{{- end }}
