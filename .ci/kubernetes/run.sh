#!/usr/bin/env bash
# Runs the chart on a Kubernetes of one node, in namespaces of its own: ten pods of the version
# before, on Kafka, Redis, PostgreSQL and an S3 store outside it. 200 WebSocket clients receive 50
# events a second while the pods are restarted, evicted, scaled, upgraded to this version and rolled
# back; every client must receive every event once. It needs root, containerd, runc,
# iptables, ip, curl, jq, openssl, redis-server, PostgreSQL and java, and leaves nothing behind but
# its log.
# usage: .ci/kubernetes/run.sh FOLDER [SECONDS]    FOLDER: of build.sh; SECONDS: of the load (420)
set -euo pipefail
folder=$1
seconds=${2:-420}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
group=/trunkline-kubernetes # of all pods
node=10.0.0.1

if [ -z "${KUBERNETES_INSIDE:-}" ]; then
	for program in containerd ctr curl ip iptables jq openssl redis-server runc; do
		command -v "$program" >/dev/null || { echo "$0: $program is missing" >&2; exit 1; }
	done
	work=$(mktemp -d)
	controllers=$(awk '$3 == "cgroup" && $2 ~ "^/sys/fs/cgroup/[a-z,]+$" {print $2}' /proc/mounts)
	end() {
		for controller in /sys/fs/cgroup/*; do find "$controller$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
		mkdir -p "$folder/log" && cp "$work"/*.log "$folder/log/" 2>/dev/null || true
		rm -rf "$work"
	}
	trap end EXIT
	for controller in $controllers; do mkdir -p "$controller$group"; done
	# The processes end with the first one of their namespace.
	KUBERNETES_INSIDE=$work unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc "$0" "$folder" "$seconds"
	exit
fi

work=$KUBERNETES_INSIDE
export PATH=$folder/bin:$PATH KUBECONFIG=$work/admin.yaml HELM_CACHE_HOME=$work/helm
say() { printf '%4ds  %s\n' "$SECONDS" "$1"; }
fail() {
	say "FAILED: $1" >&2
	{ kubectl get pods -o wide && kubectl get events --sort-by=.lastTimestamp | tail -n 20 && kubectl logs --tail 3 --prefix -l app.kubernetes.io/name=trunkline; } >&2 || true
	tail -n 5 "$work"/*.log >&2
	exit 1
}
background() { "$@" >"$work/$(basename "$1").log" 2>&1 & }
await() { # await WHAT COMMAND…
	local limit=$((SECONDS + 180))
	until "${@:2}" >/dev/null 2>&1; do ((SECONDS < limit)) || fail "waiting for $1"; sleep 0.2; done
}

# Settings of the kernel that are not of this network stay as they are.
hostname trunkline-node
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,rw /proc/sys/net
for one in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1; do # what kubelet would set
	file=$work/$(basename "${one%=*}")
	echo "${one#*=}" >"$file" && mount --bind "$file" "/proc/sys/${one%=*}"
done
ip link set lo up
ip link add node0 type veth peer name node1
ip addr add "$node/24" dev node0
ip link set node0 up && ip link set node1 up
ip route add default dev node0
echo 1 >/proc/sys/net/ipv4/ip_forward

say "Kafka, Redis, PostgreSQL, an S3 store"
mkdir -p "$work/services" "$work/store/recordings"
(cd "$work/services" && TRUNKLINE_TEST_HOST=$node TRUNKLINE_TEST_AMQP=none TRUNKLINE_TEST_REDIS_CLUSTER=none services start) >"$work/services.env"
trap '(cd "$work/services" && services stop)' EXIT
. "$work/services.env"
S3_ACCESS_KEY=access S3_SECRET_KEY=secret background s3 "$node:7070" "$work/store"

say "Kubernetes $(kubectl version --client -o json | jq -r .clientVersion.gitVersion)"
openssl genrsa -out "$work/accounts.key" 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,admin,system:masters" >"$work/tokens"
cat >"$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://$node:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: one, context: {cluster: one, user: admin}}]
current-context: one
END
background etcd --data-dir "$work/etcd" --listen-client-urls "http://$node:2379" --advertise-client-urls "http://$node:2379" \
	--listen-peer-urls "http://$node:2380" --initial-advertise-peer-urls "http://$node:2380" \
	--initial-cluster "default=http://$node:2380" --unsafe-no-fsync
background kube-apiserver --etcd-servers "http://$node:2379" --advertise-address "$node" --bind-address "$node" \
	--cert-dir "$work/certificates" --token-auth-file "$work/tokens" --authorization-mode RBAC --service-cluster-ip-range 10.96.0.0/16 \
	--service-account-issuer "https://$node" --service-account-key-file "$work/accounts.key" \
	--service-account-signing-key-file "$work/accounts.key" --allow-privileged=false
await "the API server" kubectl get --raw /readyz
background kube-controller-manager --kubeconfig "$KUBECONFIG" --service-account-private-key-file "$work/accounts.key" \
	--use-service-account-credentials=false --leader-elect=false --bind-address 127.0.0.1
background kube-scheduler --kubeconfig "$KUBECONFIG" --leader-elect=false --bind-address 127.0.0.1

mkdir -p "$work/network"
cat >"$work/network/10-bridge.conflist" <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isDefaultGateway": true,
  "hairpinMode": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "dataDir": "$work/addresses"}}]}
END
cat >"$work/containerd.toml" <<END
version = 2
root = "$work/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/trunkline:pause"
disable_apparmor = true
restrict_oom_score_adj = true # a session without CAP_SYS_RESOURCE cannot lower it
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$folder/bin"
conf_dir = "$work/network"
END
background containerd --config "$work/containerd.toml"
await containerd ctr version
for image in pause before this; do
	ctr -n k8s.io images import --base-name docker.io/library/trunkline "$folder/$image.tar" >>"$work/import.log"
done
cat >"$work/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: $group
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: /dev/null
END
background kubelet --config "$work/kubelet.yaml" --kubeconfig "$KUBECONFIG" --root-dir "$work/kubelet" \
	--cert-dir "$work/kubelet-certificates" --node-ip "$node" --hostname-override node
background kube-proxy --kubeconfig "$KUBECONFIG" --proxy-mode iptables --cluster-cidr 10.244.0.0/24 --hostname-override node \
	--conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
await "the node" sh -c 'kubectl get node node -o json | jq -e ".status.conditions[] | select(.type == \"Ready\").status == \"True\""'

say "ten pods of the version before"
password=$(openssl rand -hex 12)
cat >"$work/directory.yaml" <<END
accounts: [{id: root, name: Root, domain: root.test}, {id: a1, name: A1, domain: a1.root.test, parent: root}]
users: [{account: root, username: bench, password: $password, role: admin}]
END
kubectl create secret generic trunkline --from-literal=database="$TRUNKLINE_TEST_POSTGRES" \
	--from-literal=master="$(openssl rand -base64 32)" --from-file="$work/directory.yaml" \
	--from-literal=recordings="s3://access:secret@$node:7070/recordings?tls=false&region=eu-1" >/dev/null
cat >"$work/values.yaml" <<END
mode: cluster
image: {repository: trunkline, tag: before, pullPolicy: Never}
tls: {mode: "off"}
settings:
  kafka: {brokers: ["$TRUNKLINE_TEST_KAFKA"], partitions: 8, replication_factor: 1}
  redis: {address: "$TRUNKLINE_TEST_REDIS"}
  directory_file: /etc/directory/directory.yaml
  fanout: {max_connections_per_user: 0, max_connections_per_address: 0}
secrets:
  - {setting: database.url, secret: trunkline, key: database}
  - {setting: master_key, secret: trunkline, key: master}
  - {setting: recordings.url, secret: trunkline, key: recordings}
files: [{secret: trunkline, path: /etc/directory}]
components:
$(for one in ingest normalizer fanout api calls; do echo "  $one: {resources: {requests: {cpu: 10m, memory: 32Mi}}}"; done)
END
chart() { helm "$1" trunkline "$root/deploy/helm/trunkline" --values "$work/values.yaml" "${@:2}" >>"$work/helm.log"; }
settled() { # all deployments have rolled out
	for one in ingest normalizer fanout api calls; do
		kubectl rollout status "deployment/trunkline-$one" --timeout 180s >>"$work/rollout.log" || fail "the rollout of $one"
	done
}
chart install
settled
ready=$(kubectl get pods -o json | jq '[.items[] | select(.status.containerStatuses[0].ready)] | length')
[ "$ready" = 10 ] || fail "$ready of 10 pods are ready"

url=http://$(kubectl get service trunkline-fanout -o jsonpath='{.spec.clusterIP}')
say "200 clients of $url, 50 events a second, for $seconds s"
export TRUNKLINE_PASSWORD=$password TRUNKLINE_DATA_DIR=$work/load TRUNKLINE_KAFKA_BROKERS=$TRUNKLINE_TEST_KAFKA
trunkline-bench fanout --url "$url" --username bench --domain root.test --account a1 --through kafka --subscribers 200 \
	--rate 50 --duration "${seconds}s" --resume id --json >"$work/load.json" 2>"$work/load.log" &
load=$!
connections() { # the sum over the pods that are ready
	local sum=0 ip
	for ip in $(kubectl get endpoints trunkline-fanout-nodes -o jsonpath='{.subsets[*].addresses[*].ip}' 2>/dev/null); do
		sum=$((sum + $(curl -s "http://$ip:9464/metrics" | awk '$1 ~ /^trunkline_fanout_connections({|$)/ {n += $2} END {print n + 0}')))
	done
	echo "$sum"
}
everybody() { [ "$(connections)" = 200 ]; }
await "all clients" everybody
step() { # step WHAT COMMAND…
	local began=$SECONDS
	"${@:2}"
	settled
	await "all clients" everybody
	kill -0 $load 2>/dev/null || fail "the load ended before the story; give more seconds"
	say "$1: $((SECONDS - began)) s"
}
restart() { kubectl rollout restart deployment >>"$work/rollout.log"; }
evict() {
	local pod
	pod=$(kubectl get pods -l app.kubernetes.io/component=fanout -o jsonpath='{.items[0].metadata.name}')
	kubectl create --raw "/api/v1/namespaces/default/pods/$pod/eviction" -f - >>"$work/rollout.log" <<-END
		{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "$pod", "namespace": "default"}}
	END
	kubectl wait --for=delete "pod/$pod" --timeout 120s >>"$work/rollout.log"
}
autoscale() { # as many pods as there were
	chart upgrade --set components.fanout.replicas=3 --set components.fanout.autoscaling.enabled=true
	local replicas
	replicas=$(kubectl get deployment trunkline-fanout -o jsonpath='{.spec.replicas}')
	[ "$replicas" = 3 ] || fail "autoscaling left $replicas of 3 pods"
}
step "restarted" restart
step "a pod evicted" evict
step "scaled to three" chart upgrade --set components.fanout.replicas=3
step "given to the autoscaler" autoscale
step "scaled to two" chart upgrade
step "upgraded to this version" chart upgrade --set image.tag=this
step "rolled back" sh -c 'helm rollback trunkline >>"$KUBERNETES_INSIDE/helm.log"'

wait $load || fail "the load: $(tail -n 2 "$work/load.log")"
kubectl get events -o json >"$work/events.log"
jq -r '"\(.published) events, \(.deliveries) deliveries to \(.connected) clients, resumed \(.resumed) times: \(.lost) lost, \(.duplicated + .repeated_after_resume) repeated, \(.disordered) out of order; p50 \(.latency_ms.p50) ms, p99 \(.latency_ms.p99) ms"' "$work/load.json"
helm uninstall trunkline --wait >>"$work/helm.log"
