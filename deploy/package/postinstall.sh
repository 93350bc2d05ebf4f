#!/bin/sh
# After installation and upgrade: the user, the folders, and a restart of a service that runs.
set -e

# A system without systemd, such as a container, has no systemd-sysusers.
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers trunkline.conf
elif ! getent passwd trunkline >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/trunkline --shell /usr/sbin/nologin trunkline
fi

install -d -m 750 -o root -g trunkline /etc/trunkline
install -d -m 700 -o root -g root /etc/trunkline/secrets
install -d -m 700 -o trunkline -g trunkline /var/lib/trunkline
chown root:trunkline /etc/trunkline/trunkline.yaml /etc/trunkline/environment

# It is not started at the first installation, so that its settings can be made first.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart trunkline.service
	systemctl is-enabled --quiet trunkline.service ||
		echo "trunkline: see /etc/trunkline/trunkline.yaml, then: systemctl enable --now trunkline"
fi
