#!/usr/bin/env bash
# Compares this build with an earlier one on the path of an event, and prints a Markdown table:
# both run in turn, on the same broker, Redis and load generator, the normalizer on the path,
# beside the floor that writes waiting frames together. Run it before saying that a change costs
# nothing; nothing else should run on the machine.
# usage: deploy/compare.sh REVISION [ROUNDS [SCENARIO…]]
#   ROUNDS     times each build runs a scenario (3)
#   SCENARIO   one, highest, busy, many, hundred (all of them)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
revision=${1:?the revision to compare with}
rounds=${2:-3}
scenarios=("${@:3}")
((${#scenarios[@]})) || scenarios=(one busy highest many hundred)
accounts=200

for program in curl git go jq redis-server; do
	command -v "$program" >/dev/null || { echo "$0: $program is missing" >&2; exit 1; }
done
work=$(mktemp -d)
[ -d /dev/shm ] && data=$(mktemp -d /dev/shm/compare.XXXXXX) || data=$work/data
pids=()
end() {
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	pids=()
}
trap 'end; git worktree remove --force "$work/old" >/dev/null 2>&1 || true; rm -rf "$work" "$data"' EXIT

echo "building $revision and this tree" >&2
git worktree add --quiet --detach "$work/old" "$revision"
export GOFLAGS='-trimpath -buildvcs=false'
(cd "$work/old" && go build -tags grpcnotrace -o "$work/bin-old/" ./cmd/trunkline)
go build -o "$work/bin-new/" ./cmd/trunkline ./cmd/trunkline-bench

free_port() { # a port of loopback that nobody listens on
	local port
	while :; do
		port=$((RANDOM % 20000 + 32768))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
	done
}

ready() { # PID URL: waits until the process is ready
	until curl -sf "$2/readyz" >/dev/null; do
		kill -0 "$1" 2>/dev/null || { cat "$data"/*.log >&2; exit 1; }
		sleep 0.2
	done
}

ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; } # hundredths of a second of CPU

# climb_from BUILD: the events per second from which a climb begins. Each step is 15 % above the
# last, so the floor, which holds several times as many as a server, begins further up.
climb_from() {
	local from=${COMPARE_CLIMB_FROM:-40}
	[ "$1" != floor ] || from=$((from * 4))
	echo "$from"
}

# measure BUILD SCENARIO: appends a line "build scenario rate p50 p99 server all" to results.
measure() {
	local build=$1 scenario=$2 redis_port broker_port api_port metrics server_port server_metrics ids args url
	rm -rf "$data"; mkdir -p "$data"
	ids=$(seq -s, -f 'a%g' 1 $accounts)
	case $scenario in
	one) args="--account a1 --subscribers 1000 --rate 25 --duration 8s" ;;
	busy) args="--account a1 --subscribers 5000 --rate 80 --duration 6s" ;;
	highest) args="--account a1 --subscribers 5000 --rate $(climb_from "$build") --climb 200ms --duration 3s" ;;
	many) args="--account $ids --subscribers 2000 --rate 2000 --duration 12s" ;;
	hundred) args="--account a1 --subscribers 100 --rate 100 --duration 10s" ;;
	*) echo "$0: no scenario $scenario" >&2; exit 2 ;;
	esac

	if [ "$build" = floor ]; then
		[[ $scenario = one || $scenario = busy || $scenario = highest ]] || return 0
		"$work/bin-new/trunkline-bench" fanout --floor coalesced --url http://127.0.0.1 --json ${args/--account a1 /} \
			>"$work/out.json" 2>"$work/err" || true
	else
		redis_port=$(free_port) broker_port=$(free_port) api_port=$(free_port) metrics=$(free_port)
		server_port=$(free_port) server_metrics=$(free_port)
		{
			printf 'accounts:\n- {id: root, name: root, domain: root.test}\n'
			for n in $(seq $accounts); do echo "- {id: a$n, name: a$n, domain: a$n.root.test, parent: root}"; done
			printf 'users:\n- {account: root, username: bench, password: Quiet-River-77-lamp, role: admin}\n'
		} >"$data/directory.yaml"
		export TRUNKLINE_TLS_MODE=off TRUNKLINE_SIP_LISTEN=off TRUNKLINE_DISK_MIN_FREE=0 TRUNKLINE_REDIS_ADDRESS=127.0.0.1:$redis_port
		export TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_USER=0 TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_ADDRESS=0
		TRUNKLINE_MASTER_KEY=$(head -c 32 /dev/urandom | base64)
		export TRUNKLINE_MASTER_KEY

		redis-server --bind 127.0.0.1 --port "$redis_port" --save '' --appendonly no --dir "$data" >"$data/redis.log" &
		pids+=($!)
		TRUNKLINE_ROLES=api TRUNKLINE_LISTEN=127.0.0.1:$api_port TRUNKLINE_METRICS_LISTEN=127.0.0.1:$metrics TRUNKLINE_DATA_DIR=$data/broker \
			TRUNKLINE_KAFKA_EMBEDDED_LISTEN=127.0.0.1:$broker_port "$work/bin-new/trunkline" serve >"$data/broker.log" 2>&1 &
		pids+=($!)
		ready "${pids[1]}" "http://127.0.0.1:$metrics"
		TRUNKLINE_ROLES=normalizer,fanout,api TRUNKLINE_LISTEN=127.0.0.1:$server_port TRUNKLINE_METRICS_LISTEN=127.0.0.1:$server_metrics \
			TRUNKLINE_DATA_DIR=$data/server TRUNKLINE_DIRECTORY_FILE=$data/directory.yaml TRUNKLINE_KAFKA_BROKERS=127.0.0.1:$broker_port \
			"$work/bin-$build/trunkline" serve >"$data/server.log" 2>&1 &
		pids+=($!)
		ready "${pids[2]}" "http://127.0.0.1:$server_metrics"
		url=http://127.0.0.1:$server_port

		( # CPU of server, broker and Redis, while the load runs
			while sleep 0.25; do echo "$(date +%s%N) $(ticks "${pids[2]}") $(ticks "${pids[1]}") $(ticks "${pids[0]}")"; done >"$work/cpu" 2>/dev/null
		) &
		local sampler=$!
		TRUNKLINE_PASSWORD=Quiet-River-77-lamp TRUNKLINE_DATA_DIR=$data/load TRUNKLINE_KAFKA_BROKERS=127.0.0.1:$broker_port \
			"$work/bin-new/trunkline-bench" fanout --url "$url" --username bench --domain root.test --through kafka --json $args \
			>"$work/out.json" 2>"$work/err" || true
		kill $sampler 2>/dev/null || true
		wait $sampler 2>/dev/null || true
		end
	fi

	[ -s "$work/out.json" ] || { tail -n 5 "$work/err" >&2; exit 1; }
	if [ "$(jq '.lost + .duplicated + .disordered' "$work/out.json")" != 0 ]; then
		echo "$build, $scenario: events were lost, repeated or out of order" >&2
		exit 1
	fi
	# The last second is left out: the load has ended in it.
	awk -v window="$(jq '[.measured_seconds - 1.5, 2] | max' "$work/out.json")" '
		{ at[NR] = $1; s[NR] = $2; b[NR] = $3; r[NR] = $4 }
		END {
			end = NR - 2; if (end < 2) { print "0 0"; exit }
			for (i = end; i > 1 && (at[end] - at[i]) / 1e9 < window; i--);
			d = (at[end] - at[i]) / 1e9 * 100
			print (s[end] - s[i]) / d, (s[end] - s[i] + b[end] - b[i] + r[end] - r[i]) / d
		}' "$work/cpu" 2>/dev/null >"$work/share" || echo "0 0" >"$work/share"
	[ "$build" != floor ] || echo "0 0" >"$work/share"
	jq -r --arg b "$build" --arg s "$scenario" --arg share "$(cat "$work/share")" '
		($share | split(" ") | map(tonumber)) as $cpu |
		([(.climb // [])[] | select(.latency_ms.p99 <= 200) | .deliveries_per_second] | max) as $held |
		($held // .deliveries_per_second) as $rate |
		[$b, $s, $rate, .latency_ms.p50, .latency_ms.p99, ($cpu[0] * 1e6 / .deliveries_per_second), ($cpu[1] * 1e6 / .deliveries_per_second)] | @tsv' \
		"$work/out.json" | tee -a "$work/results" >&2
}

for round in $(seq "$rounds"); do
	for scenario in "${scenarios[@]}"; do
		for build in old new floor; do
			echo "round $round of $rounds: $scenario, $build" >&2
			measure "$build" "$scenario"
		done
	done
done

echo "$(date +%F), $revision (old) and $(git describe --tags --always --dirty) (new), medians of $rounds runs each"
echo
echo "| scenario | build | deliveries/s | p50 ms | p99 ms | server µs | all processes µs |"
echo "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
for scenario in "${scenarios[@]}"; do
	for build in old new floor; do
		row="| $scenario | $build |"
		for column in 3 4 5 6 7; do
			value=$(awk -v b="$build" -v s="$scenario" -v c=$column '$1 == b && $2 == s {print $c}' "$work/results" | median)
			row+=" $(printf '%.2f' "${value:-0}") |"
		done
		grep -q "^$build	$scenario	" "$work/results" && echo "$row"
	done
done
