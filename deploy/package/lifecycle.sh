#!/bin/sh
# Runs in a bare Debian, as root: install, start, serve, upgrade, remove, purge. The version before
# is the same files under a lower number.
set -eu
mount -t proc proc /proc

version=$(dpkg-deb -f /tmp/trunkline.deb Version)
dpkg-deb -R /tmp/trunkline.deb /tmp/before
sed -i 's/^Version: .*/Version: 0.0.1/' /tmp/before/DEBIAN/control
dpkg-deb -b /tmp/before /tmp/before.deb

dpkg -i /tmp/before.deb
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
events() { # a subscriber receives what the demonstration posts
	trunkline demo --config /etc/trunkline/trunkline.yaml --rate 10 >/tmp/demo 2>&1 &
	demo=$!
	TRUNKLINE_PASSWORD=Quiet-River-77-lamp timeout 120 trunkline listen --config /etc/trunkline/trunkline.yaml \
		--username bob --domain demo.local "$@" 2>/tmp/listen | grep -m 1 queue.call_entered || { cat /tmp/demo /tmp/listen; exit 1; }
	kill $demo
	wait $demo || true
}
start
trunkline account list --config /etc/trunkline/trunkline.yaml | grep demo.local
events

echo '# kept' >>/etc/trunkline/trunkline.yaml
dpkg -i /tmp/trunkline.deb
test "$(dpkg-query -f '${Version}' -W trunkline)" = "$version"
grep -q '# kept' /etc/trunkline/trunkline.yaml
stop
start
events --since earliest # also those of before
stop

dpkg -r trunkline
test -e /etc/trunkline/trunkline.yaml
dpkg -P trunkline
test ! -e /etc/trunkline
test ! -e /usr/bin/trunkline
test -d /var/lib/trunkline # the data stay
echo "installed, started, upgraded, removed and purged"
