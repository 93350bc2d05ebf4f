#!/usr/bin/env bash
# Starts deploy/compose.yaml on a Docker of its own, in namespaces of its own, with stand-ins for the
# images of others. 100 WebSocket clients behind the balancer receive 50 events a second, posted over
# HTTP, while each fanout node is restarted; every client must receive every event once. It needs
# root, Go, git, dockerd and docker, iptables, haproxy, prometheus, redis-server, PostgreSQL, java, jq,
# curl, setpriv, and Kafka in the cache folder of make test; the first time the network, for modules.
# It leaves nothing behind but what it builds, in a cache folder.
# usage: [COMPOSE_SECONDS=120] .ci/compose/run.sh [FOLDER]
set -euo pipefail
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/compose}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
group=/trunkline-compose
export GOFLAGS='-trimpath -buildvcs=false'

newest() { # newest WHAT PATTERN HOW: prints the folder of the last file of the pattern; HOW: where it comes from
	local file
	file=$(compgen -G "$2" | sort -V | tail -n 1) || { echo "$0: $1 is missing: no $2; $3" >&2; exit 1; }
	dirname "$file"
}
KAFKA_LIBS=$(newest Kafka "${XDG_CACHE_HOME:-$HOME/.cache}/trunkline/kafka-*/libs/kafka_*.jar" 'make services gets it')
POSTGRES_BIN=$(newest PostgreSQL '/usr/lib/postgresql/*/bin/initdb' "Debian's package postgresql has it")

if [ -z "${COMPOSE_INSIDE:-}" ]; then
	for program in dockerd docker iptables haproxy prometheus redis-server java jq curl setpriv; do
		command -v "$program" >/dev/null || { echo "$0: $program is missing" >&2; exit 1; }
	done
	mkdir -p "$folder"
	CGO_ENABLED=0 nice go build -C "$root/.ci/compose" -p "${COMPOSE_BUILD_JOBS:-2}" -ldflags '-s -w' -o "$folder/docker-compose" github.com/docker/compose/v2/cmd
	cd "$root"
	go build -o "$folder/" ./cmd/trunkline-bench
	deploy/image.sh "$(deploy/version.sh)" "$(git rev-parse HEAD)" "$folder/image"
	work=$(mktemp -d)
	end() {
		for controller in /sys/fs/cgroup/*/; do
			find "$controller$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
		done
		rm -rf "$work"
	}
	trap end EXIT
	COMPOSE_INSIDE=$work unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc "$0" "$folder"
	exit
fi

work=$COMPOSE_INSIDE
say() { printf '%4ds  %s\n' "$SECONDS" "$1"; }
await() { # await WHAT COMMAND…
	local limit=$((SECONDS + 180))
	until "${@:2}" >/dev/null 2>&1; do
		((SECONDS < limit)) || { echo "$0: waiting for $1" >&2; tail -n 20 "$work/dockerd.log" >&2; exit 1; }
		sleep 0.2
	done
}
mount --make-rshared /
mount -t tmpfs tmpfs /run
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,rw /proc/sys/net
ip link set lo up

export DOCKER_HOST=unix:///run/docker.sock DOCKER_CONFIG=$work/config DOCKER_BUILDKIT=0
mkdir -p "$DOCKER_CONFIG/cli-plugins"
ln -s "$folder/docker-compose" "$DOCKER_CONFIG/cli-plugins/docker-compose"
echo '{}' >"$work/daemon.json"
dockerd --host "$DOCKER_HOST" --data-root "$work/docker" --cgroup-parent "$group" --config-file "$work/daemon.json" >"$work/dockerd.log" 2>&1 &
await dockerd docker info
say "$(docker version --format 'Docker {{.Server.Version}}'), $(docker compose version)"

# The stand-in: the folders of this machine's programs are mounted into it.
mkdir -p "$work/stand-in"/{usr,tmp,proc,sys,dev,run,kafka,var/lib,etc} && chmod 1777 "$work/stand-in/tmp"
for name in bin sbin lib lib64; do ln -s "usr/$name" "$work/stand-in/$name"; done
for one in /etc/{passwd,group,alternatives,ld.so.cache,ssl} /etc/java*; do cp -a "$one" "$work/stand-in/etc/"; done
tar -C "$work/stand-in" -cf - . | docker import - trunkline-stand-in >/dev/null

docker build -q -f "$root/deploy/Dockerfile" --target image -t trunkline:local "$folder/image" >/dev/null
cp -r "$root/deploy" "$work/deploy"
rm -rf "$work/deploy/compose/secrets"
NOFILE=$(ulimit -Hn)
export KAFKA_LIBS POSTGRES_BIN NOFILE COMPOSE_OVERRIDE=$root/.ci/compose/stand-in.yaml
compose() { docker compose --file "$work/deploy/compose.yaml" --file "$COMPOSE_OVERRIDE" "$@"; }
"$work/deploy/compose/up.sh" >"$work/up.log" 2>&1 || { cat "$work/up.log"; compose logs --tail 20; exit 1; }
say "up: $(compose ps --format json | jq -rs '[.[] | select(.State == "running")] | length') services"

export TRUNKLINE_DATA_DIR=$work/load TRUNKLINE_PASSWORD
TRUNKLINE_PASSWORD=$(cat "$work/deploy/compose/secrets/admin_password")
TRUNKLINE_API_KEY=$(compose exec -T core /trunkline apikey create --account main --scope ingest)
export TRUNKLINE_API_KEY
await "the balancer" curl -sf --cacert "$work/deploy/compose/secrets/tls.crt" https://localhost:9443/api/v2/cc_events_channel/health
sleep 2 # the key is known within a second
"$folder/trunkline-bench" fanout --url https://localhost:9443 --ca "$work/deploy/compose/secrets/tls.crt" --username admin \
	--domain main.example --account main --through http --subscribers 100 --rate 50 --duration "${COMPOSE_SECONDS:-120}s" --resume id --json \
	>"$work/load.json" 2>"$work/load.log" &
load=$!
sleep 10
for one in fanout-1 fanout-2; do
	compose restart "$one" >>"$work/up.log" 2>&1
	await "$one" sh -c "docker inspect trunkline-$one-1 | jq -e '.[0].State.Health.Status == \"healthy\"'"
	kill -0 $load || { cat "$work/load.log"; exit 1; }
	say "$one restarted"
	sleep 10
done
wait $load || { cat "$work/load.log" "$work/load.json"; exit 1; }
jq -r '"\(.published) events, \(.deliveries) deliveries to \(.connected) clients, resumed \(.resumed) times: \(.lost) lost, \(.duplicated + .repeated_after_resume) repeated, \(.disordered) out of order; p50 \(.latency_ms.p50) ms, p99 \(.latency_ms.p99) ms"' "$work/load.json"
up=$(curl -s 'http://127.0.0.1:9090/api/v1/query?query=count(up==1)' | jq -r '.data.result[0].value[1]')
say "Prometheus reads $up nodes"
compose down >>"$work/up.log" 2>&1
