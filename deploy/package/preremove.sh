#!/bin/sh
# Before removal, not before an upgrade: deb says remove, rpm the number of versions that remain.
set -e

if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl disable --now trunkline.service
	fi
fi
