#!/bin/sh
# Starts a server and two phones (baresip), connects them by click to call, and
# checks that each receives the other's audio. Run it in a network namespace of
# its own, because baresip opens sockets on every address: unshare -n deploy/phones.sh
set -eu
program=$(realpath "${1:-bin/trunkline}")
ip link set lo up
for name in $(env | sed -n 's/^\(TRUNKLINE_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done # settings of the caller's environment
here=$(mktemp -d)
cd "$here"
export TRUNKLINE_DATA_DIR="$here/data" TRUNKLINE_DEMO_PASSWORD=only-for-phones-42
pids=''
trap 'kill -9 $pids 2>/dev/null || true; rm -rf "$here"' EXIT

"$program" serve >serve.log 2>&1 &
server=$!
pids="$server"
until curl -sko /dev/null https://127.0.0.1:9443/api/v2/cc_events_channel/health; do sleep 0.2; done

# phone USER EXTENSION PORT HERTZ: plays a tone, answers automatically, records the received
# audio
phone() {
	password=$("$program" user device create "$1" --account demo)
	shift
	mkdir -p "$1/rec"
	sox -n -r 8000 -c 1 -b 16 "$1/tone.wav" synth 60 sine "$3" vol 0.3
	cat >"$1/config" <<-END
		sip_listen 127.0.0.1:$2
		net_interface 127.0.0.1
		module_path /usr/lib/baresip/modules
		module g711.so
		module aufile.so
		module aubridge.so
		module sndfile.so
		module_tmp account.so
		module_app menu.so
		module_app ctrl_tcp.so
		ctrl_tcp_listen 127.0.0.1:$(($2 + 1000))
		audio_source aufile,$here/$1/tone.wav
		audio_player aubridge,x
		snd_path $here/$1/rec
	END
	echo "<sip:$1@127.0.0.1>;auth_user=$1;auth_pass=$password;answermode=auto;audio_codecs=pcmu;regint=60" >"$1/accounts"
	baresip -f "$1" >"$1/log" 2>&1 &
	pids="$pids $!"
}
phone alice 1001 5071 440
phone bob 1002 5081 880
until [ "$(grep -ah '200 OK' 1001/log 1002/log | wc -l)" -ge 2 ]; do sleep 0.2; done

ask() { curl -sk -H "Authorization: Bearer $token" "$@"; }
token=$(curl -sk https://127.0.0.1:9443/ucp/v2/login -H 'Content-Type: application/json' \
	-d '{"username":"alice","password":"'$TRUNKLINE_DEMO_PASSWORD'","domain":"demo.local"}' |
	grep -o '"access_token":"[^"]*' | cut -d'"' -f4)

call=$(ask -X POST https://127.0.0.1:9443/ucp/v2/c2c/1002 | cut -d'"' -f4)
sleep 5
printf '20:{"command":"hangup"},' | timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/6071; cat >&3; head -c 1 <&3' >/dev/null
sleep 1

echo "progress: $(ask "https://127.0.0.1:9443/api/v2/calls/$call")"
now=$(date +%s)
echo "record:   $(ask "https://127.0.0.1:9443/api/v2/reports/cdrs?startDate=$((now - 60))&endDate=$now&origination_call_id=$call")"
for one in 1001 1002; do
	sox $one/rec/*-dec.wav -n trim 2 1 stat 2>&1 | awk -v who=$one '/Rough/ { print who " heard " $3 " Hz" }'
done
kill "$server"
wait "$server"
