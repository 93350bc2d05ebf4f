#!/bin/sh
# After removal. dpkg --purge removes the settings and their secrets; the data, with keys that
# recordings need, stay until somebody deletes them.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /etc/trunkline
	if [ -d /var/lib/trunkline ] && [ -n "$(ls -A /var/lib/trunkline)" ]; then
		echo "trunkline: its data are still in /var/lib/trunkline: rm -r /var/lib/trunkline; userdel trunkline"
	else
		rm -rf /var/lib/trunkline
		if getent passwd trunkline >/dev/null; then userdel trunkline; fi
	fi
fi
