#!/bin/sh
# Runs in a bare Debian, as root: install, start, serve, upgrade, remove, purge.
set -eu
mount -t proc proc /proc

dpkg -i /tmp/trunkline.deb
getent passwd trunkline
test "$(stat -c %U:%G:%a /etc/trunkline/trunkline.yaml)" = root:trunkline:640
test "$(stat -c %U:%a /var/lib/trunkline)" = trunkline:700
trunkline version
trunkline config check --config /etc/trunkline/trunkline.yaml >/dev/null
test -e /usr/share/man/man1/trunkline.1.gz
test -e /usr/share/bash-completion/completions/trunkline

# As the unit does, for there is no systemd.
start() {
	TRUNKLINE_DEMO_PASSWORD=Quiet-River-77-lamp setpriv --reuid trunkline --regid trunkline --init-groups \
		trunkline serve --config /etc/trunkline/trunkline.yaml >/tmp/log 2>&1 &
	service=$!
	tries=0
	until trunkline health --config /etc/trunkline/trunkline.yaml; do
		tries=$((tries + 1))
		test $tries -lt 300 || { cat /tmp/log; exit 1; }
		sleep 0.2
	done
}
stop() {
	kill -TERM $service
	wait $service
}
start
trunkline account list --config /etc/trunkline/trunkline.yaml | grep demo.local

echo '# kept' >>/etc/trunkline/trunkline.yaml
dpkg -i /tmp/trunkline.deb
grep -q '# kept' /etc/trunkline/trunkline.yaml
stop
start
stop

dpkg -r trunkline
test -e /etc/trunkline/trunkline.yaml
dpkg -P trunkline
test ! -e /etc/trunkline
test ! -e /usr/bin/trunkline
test -d /var/lib/trunkline # the data stay
echo "installed, started, upgraded, removed and purged"
