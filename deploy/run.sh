#!/bin/sh
# Serves on the embedded default with the demo beside it; Ctrl-C ends both.
# usage: deploy/run.sh TRUNKLINE
set -eu

"$1" serve &
server=$!
"$1" demo &
demo=$!

finish() {
	kill "$demo" "$server" 2>/dev/null || true # one may have ended by itself
	wait
}
trap finish EXIT
trap 'exit 0' INT TERM
wait "$server"
