#!/bin/sh
# Runs a server on the embedded backends with demonstration traffic, and prints the events that
# user alice receives. Ctrl-C stops all programs.
# usage: deploy/run.sh TRUNKLINE
set -eu

program=$1
data=${TRUNKLINE_DATA_DIR:-data}
kept=$data/demo-password

# The demo users' password: from the environment, from the file of an earlier run,
# or, if there is no database with accounts yet, a new one. The server creates the
# demo users only because it is given this password.
password=${TRUNKLINE_DEMO_PASSWORD:-}
where="\$TRUNKLINE_DEMO_PASSWORD"
if [ -z "$password" ]; then
	where="\$(cat $kept)"
	if [ ! -s "$kept" ] && { [ ! -e "$data/trunkline.db" ] || [ "$("$program" account list --json 2>/dev/null)" = '[]' ]; }; then
		(
			umask 077
			mkdir -p "$data"
			od -An -N10 -tx1 /dev/urandom | tr -d ' \n' >"$kept.new"
			mv "$kept.new" "$kept"
		)
	fi
	[ ! -s "$kept" ] || password=$(cat "$kept")
fi

# Allows an AI provider on this machine, such as trunkline ai echo.
export TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS="${TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS-127.0.0.0/8}"

# Phones on this machine can register with the demo password.
export TRUNKLINE_AUTH_SIP_PORTAL_PASSWORD="${TRUNKLINE_AUTH_SIP_PORTAL_PASSWORD-allow}"

# Simulated calls are free of charge.
export TRUNKLINE_ORIGINATION_INTERNATIONAL="${TRUNKLINE_ORIGINATION_INTERNATIONAL-allow}"

# Click to call works without a phone: calls of users who have none registered
# are simulated.
export TRUNKLINE_ORIGINATION_DRIVER="${TRUNKLINE_ORIGINATION_DRIVER-auto}"

tmp=$(mktemp -d)
server='' first='' demo='' listen='' interrupted=''
trap 'rm -rf "$tmp"' EXIT
# The terminal sends Ctrl-C to the programs too, and a second signal would interrupt their
# shutdown; other signals are forwarded.
trap 'interrupted=yes' INT
trap 'end $server $first $demo $listen' TERM HUP

end() { [ $# -eq 0 ] || kill "$@" 2>/dev/null || true; } # it may have ended already

# hush NAME: prints the text written to $tmp/NAME, without messages that are expected here.
hush() {
	mkfifo "$tmp/$1"
	{
		trap '' INT TERM HUP # it ends with its writer
		while IFS= read -r line; do
			case $line in
			*' msg=request '* | 'trunkline: '[01]' events sent') ;;
			'trunkline: waiting '* | 'trunkline: sending '* | 'trunkline: see them '* | 'trunkline: its password '*) ;;
			*) printf '%s\n' "$line" ;;
			esac
		done <"$tmp/$1" >&2
		: >"$tmp/$1.ended"
	} &
}

hush serve
TRUNKLINE_DEMO_PASSWORD=$password "$program" serve >"$tmp/serve" 2>&1 &
server=$!

# An accepted event shows that everything is running.
hush first
"$program" demo --count 1 >"$tmp/first" 2>&1 &
first=$!
until [ -e "$tmp/first.ended" ] || [ -e "$tmp/serve.ended" ] || [ "$interrupted" ]; do
	sleep 0.1
done
if [ ! -e "$tmp/first.ended" ]; then
	[ "$interrupted" ] || end "$first" # the server has printed the reason
elif wait "$first"; then
	address=${TRUNKLINE_LISTEN:-:9443}
	case $address in :*) address=127.0.0.1$address ;; esac
	scheme=https
	[ "${TRUNKLINE_TLS_MODE:-auto}" != off ] || scheme=http
	cat >&2 <<-END

		Trunkline is up at $scheme://$address with demonstration traffic; Ctrl-C ends both.
		users     admin, alice, bob of domain demo.local
	END
	if [ "$password" ]; then
		shown=$password
		[ -z "${TRUNKLINE_DEMO_PASSWORD:-}" ] || shown='that of TRUNKLINE_DEMO_PASSWORD'
		cat >&2 <<-END
			password  $shown
			listen    TRUNKLINE_PASSWORD=$where $program listen --username bob --domain demo.local

		END
	else
		cat >&2 <<-END
			password  that of the first start: set TRUNKLINE_DEMO_PASSWORD to it, or remove $data to start empty

		END
	fi
	hush demo
	"$program" demo >"$tmp/demo" 2>&1 &
	demo=$!
	if [ "$password" ]; then
		TRUNKLINE_PASSWORD=$password "$program" listen --username alice --domain demo.local &
		listen=$!
	fi
else
	end "$server"
fi

wait "$server" && status=0 || status=$?
if [ "$status" -gt 128 ]; then # a trapped signal interrupts wait
	wait "$server" && status=0 || status=$?
fi
[ "$interrupted" ] || end $demo $listen
wait
exit "$status"
